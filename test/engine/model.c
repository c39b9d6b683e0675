/*
 * model.c
 *		What a table should hold: an open hash of keys with their values.  A key
 *		once seen keeps its entry when it leaves, so that its absence is checked.
 */
#include "conformance.h"

Model *
model_make(void)
{
	Model	   *model = make_memory(sizeof(Model));

	memset(model, 0, sizeof(*model));
	return model;
}

void
model_drop(Model *model)
{
	uint64_t	i;

	for (i = 0; i < model->count; i++)
	{
		free(model->entries[i]->values);
		free(model->entries[i]);
	}
	free(model->entries);
	free(model->bucket);
	free(model);
}

/* The entries carry no links: a bucket is the head of a probe sequence. */
static void
place_entry(Model *model, ModelEntry *entry)
{
	uint64_t	at = mix(entry->key) & (model->buckets - 1);

	while (model->bucket[at] != NULL)
		at = (at + 1) & (model->buckets - 1);
	model->bucket[at] = entry;
}

static void
grow_model(Model *model)
{
	uint64_t	i;

	model->room = model->room > 0 ? 2 * model->room : 1024;
	model->entries = realloc(model->entries, model->room * sizeof(ModelEntry *));
	free(model->bucket);
	model->buckets = 2 * model->room;
	model->bucket = make_memory(model->buckets * sizeof(ModelEntry *));
	memset(model->bucket, 0, model->buckets * sizeof(ModelEntry *));
	for (i = 0; i < model->count; i++)
		place_entry(model, model->entries[i]);
}

/* The key's entry, made if need be. */
ModelEntry *
model_entry(Model *model, uint64_t key)
{
	ModelEntry *entry;
	uint64_t	at;

	if (model->count == model->room)
		grow_model(model);
	at = mix(key) & (model->buckets - 1);
	for (; (entry = model->bucket[at]) != NULL; at = (at + 1) & (model->buckets - 1))
	{
		if (entry->key == key)
			return entry;
	}
	entry = make_memory(sizeof(ModelEntry));
	memset(entry, 0, sizeof(*entry));
	entry->key = key;
	model->entries[model->count++] = entry;
	model->bucket[at] = entry;
	return entry;
}

/* One more value, and the key is present. */
void
model_add(Model *model, ModelEntry *entry, uint64_t value)
{
	if (entry->count == entry->room)
	{
		entry->room = entry->room > 0 ? 2 * entry->room : 1;
		entry->values = realloc(entry->values, entry->room * sizeof(uint64_t));
	}
	entry->values[entry->count++] = value;
	model->values++;
	model->keys += !entry->present;
	entry->present = true;
}

/* The key is present with this value alone. */
void
model_put(Model *model, ModelEntry *entry, uint64_t value)
{
	if (entry->present)
		entry->values[0] = value;
	else
		model_add(model, entry, value);
}

void
model_remove(Model *model, ModelEntry *entry)
{
	model->keys -= entry->present;
	model->values -= entry->count;
	entry->present = false;
	entry->count = 0;
}

void
model_clear(Model *model)
{
	uint64_t	i;

	for (i = 0; i < model->count; i++)
		model_remove(model, model->entries[i]);
}
