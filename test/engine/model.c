/*
 * model.c
 *		What a table should hold: an open-addressing hash of keys with their values.
 *		A key once seen keeps its entry when it leaves, so that its absence is checked.
 */
#include "conformance.h"

#define CHUNK_ENTRIES 4096

Model *
model_make(bool multi)
{
	Model	   *model = make_memory(sizeof(Model));

	memset(model, 0, sizeof(*model));
	model->multi = multi;
	return model;
}

void
model_drop(Model *model)
{
	uint64_t	i;

	for (i = 0; i < model->count; i++)
		free(model_at(model, i)->values);
	for (i = 0; i < model->chunks; i++)
		free(model->chunk[i]);
	free(model->chunk);
	free(model->slot);
	free(model);
}

ModelEntry *
model_at(const Model *model, uint64_t i)
{
	return model->chunk[i / CHUNK_ENTRIES] + i % CHUNK_ENTRIES;
}

/* The key's slot, or the free one where it belongs. */
static ModelSlot *
find_slot(const Model *model, uint64_t key)
{
	uint64_t	at = mix(key ^ UINT64_C(0x5851F42D4C957F2D)) & (model->slots - 1);

	while (model->slot[at].entry != NULL && model->slot[at].key != key)
		at = (at + 1) & (model->slots - 1);
	return &model->slot[at];
}

static void
grow_slots(Model *model)
{
	uint64_t	i;

	model->slots = model->slots > 0 ? 4 * model->slots : 64;
	free(model->slot);
	model->slot = make_memory(model->slots * sizeof(ModelSlot));
	memset(model->slot, 0, model->slots * sizeof(ModelSlot));
	for (i = 0; i < model->count; i++)
	{
		ModelEntry *entry = model_at(model, i);

		*find_slot(model, entry->key) = (ModelSlot) {entry->key, entry};
	}
}

static ModelEntry *
make_entry(Model *model)
{
	ModelEntry *entry;

	if (model->count == model->chunks * CHUNK_ENTRIES)
	{
		model->chunk = realloc(model->chunk, (model->chunks + 1) * sizeof(ModelEntry *));
		model->chunk[model->chunks++] = make_memory(CHUNK_ENTRIES * sizeof(ModelEntry));
	}
	entry = model_at(model, model->count++);
	memset(entry, 0, sizeof(*entry));
	return entry;
}

ModelEntry *
model_entry(Model *model, uint64_t key)
{
	ModelSlot  *slot;

	if (2 * model->count >= model->slots)
		grow_slots(model);
	slot = find_slot(model, key);
	if (slot->entry == NULL)
	{
		slot->key = key;
		slot->entry = make_entry(model);
		slot->entry->key = key;
	}
	return slot->entry;
}

/* The key is there with this value alone. */
void
model_put(Model *model, ModelEntry *entry, uint64_t value)
{
	model->keys += entry->count == 0;
	model->values += entry->count == 0;
	entry->count = 1;
	entry->value = value;
}

/* One more value for the key. */
void
model_add(Model *model, ModelEntry *entry, uint64_t value)
{
	if (entry->held == entry->room)
	{
		entry->room = entry->room > 0 ? 2 * entry->room : 2;
		entry->values = realloc(entry->values, entry->room * sizeof(uint64_t));
	}
	entry->values[entry->held++] = value;
	model->keys += entry->count == 0;
	model->values++;
	entry->count++;
}

void
model_remove(Model *model, ModelEntry *entry)
{
	model->keys -= entry->count > 0;
	model->values -= entry->count;
	entry->count = entry->held = 0;
}

/* One value less; which one, the next find-all tells. */
void
model_remove_one(Model *model, ModelEntry *entry)
{
	if (entry->count == 1)
		model_remove(model, entry);
	else
	{
		entry->count--;
		model->values--;
	}
}

void
model_clear(Model *model)
{
	uint64_t	i;

	for (i = 0; i < model->count; i++)
		model_remove(model, model_at(model, i));
}

uint64_t
value_sum(uint64_t value)
{
	return mix(value + UINT64_C(0x9E3779B97F4A7C15));
}

uint64_t
model_sum(const ModelEntry *entry)
{
	uint64_t	sum = 0;
	uint64_t	i;

	for (i = 0; i < entry->held; i++)
		sum += value_sum(entry->values[i]);
	return sum;
}

static int
compare_u64(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

bool
model_settle(ModelEntry *entry, uint64_t *got, uint64_t count)
{
	uint64_t	sum = 0;
	uint64_t	at = 0;
	uint64_t	i;

	if (count != entry->count)
		return false;
	for (i = 0; i < count; i++)
		sum += value_sum(got[i]);
	if (entry->held == count && sum == model_sum(entry))
		return true;
	/* each of got has one of its own among those that may be left */
	qsort(got, count, sizeof(uint64_t), compare_u64);
	qsort(entry->values, entry->held, sizeof(uint64_t), compare_u64);
	for (i = 0; i < count; i++, at++)
	{
		while (at < entry->held && entry->values[at] < got[i])
			at++;
		if (at == entry->held || entry->values[at] != got[i])
			return false;
	}
	memcpy(entry->values, got, count * sizeof(uint64_t));
	entry->held = count;
	return true;
}
