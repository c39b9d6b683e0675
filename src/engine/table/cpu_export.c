/*
 * cpu_export.c
 *		Copies a table's entries out, a bounded number a call.
 *
 * A cursor's position 0 is the key of the empty pattern, which lives in the root;
 * after it come the slots of the subtables, one after the other.  In the middle of a
 * list the cursor says how many of its values are through.  Which node that is,
 * the handle remembers; where another call came in between or something has been
 * written, the list is walked from its start instead, so that no cursor, however
 * old, leads to memory that is gone.
 */
#include "engine/table/cpu_internal.h"

/* Buckets that a call looks at. */
#define EXPORT_BUCKETS GH_CPU_SLICE_BUCKETS

typedef struct Export
{
	GhCpuTable *table;
	GhCursor   *cursor;
	char	   *keys;
	char	   *values;
	uint64_t	room;			/* entries that may still come */
	uint64_t	count;			/* entries that came */
} Export;

static void
put_key(Export *export, uint64_t key)
{
	GhCpuShape	shape = export->table->view.shape;

	gh_cpu_key_put(shape, export->keys + (export->count << gh_cpu_key_shift(shape)), key);
}

/* Some values of one key. */
static void
put_values(Export *export, uint64_t key, const void *values, uint64_t count)
{
	uint32_t	size = export->table->view.value_size;
	uint64_t	i;

	if (size > 0)
		memcpy(export->values + export->count * size, values, count * size);
	for (i = 0; i < count; i++)
	{
		put_key(export, key);
		export->count++;
	}
	export->room -= count;
}

/* The node that holds the first value that is not through, and which it is there;
 * 0: all are through. */
static uint64_t
resume_list(const Export *export, uint64_t name, uint64_t *index)
{
	const GhCpuTable *table = export->table;
	const GhCpuExported *last = &table->exported;
	const GhCursor *cursor = export->cursor;
	uint64_t	skip = cursor->value;

	if (skip > 0 && last->version == table->view.root->version &&
		last->cursor.position == cursor->position && last->cursor.value == skip)
	{
		*index = last->index;
		return last->node;
	}
	while (name != 0)
	{
		const uint64_t *node = gh_cpu_node(table, name);

		if (skip < gh_cpu_node_used(node))
			break;
		skip -= gh_cpu_node_used(node);
		name = gh_cpu_node_next(node);
	}
	*index = skip;
	return name;
}

/* true: to the end of the list */
static bool
put_list(Export *export, uint64_t key, uint64_t head)
{
	GhCpuTable *table = export->table;
	uint32_t	size = table->view.value_size;
	uint64_t	index;
	uint64_t	name = resume_list(export, head, &index);

	while (name != 0 && export->room > 0)
	{
		uint64_t   *node = gh_cpu_node(table, name);
		uint64_t	left = gh_cpu_node_used(node) - index;
		uint64_t	now = left < export->room ? left : export->room;

		put_values(export, key, gh_cpu_node_values(node) + index * size, now);
		export->cursor->value += now;
		index += now;
		if (now == left)
		{
			name = gh_cpu_node_next(node);
			index = 0;
		}
	}
	table->exported.cursor = *export->cursor;
	table->exported.version = table->view.root->version;
	table->exported.node = name;
	table->exported.index = index;
	return name == 0;
}

/* What is at a position; false: there was no room for all of it. */
static bool
put_entry(Export *export, uint64_t key, const char *value)
{
	uint64_t	word;

	if (export->room == 0)
		return false;
	if (!export->table->view.root->options.multi)
		put_values(export, key, value, 1);
	else
	{
		word = *(const uint64_t *) (const void *) value;
		if (!gh_cpu_is_list(word))
			put_values(export, key, &word, 1);
		else if (!put_list(export, key, gh_cpu_list_head(word)))
			return false;
	}
	return true;
}

/* The slots of a subtable from the one named on, within the buckets of the call. */
static bool
put_slots(Export *export, uint32_t subtable, uint64_t slot, int64_t *buckets)
{
	const GhCpuView *view = &export->table->view;
	const GhCpuArea *area = &view->area[subtable];
	uint32_t	per_bucket = gh_cpu_slots(view->shape);
	uint64_t	slots = view->root->subtable[subtable].buckets * per_bucket;

	for (; slot < slots && *buckets > 0; slot++)
	{
		char	   *at = area->base + (slot / per_bucket << GH_CPU_BUCKET_SHIFT) +
			(slot % per_bucket << gh_cpu_key_shift(view->shape));
		uint64_t	key = gh_cpu_key_at(view->shape, at);

		if (key != GH_CPU_EMPTY &&
			!put_entry(export, key, gh_cpu_value(view->shape, area, at, view->stride)))
			return false;
		*buckets -= slot % per_bucket == 0;
		export->cursor->position++;
		export->cursor->value = 0;
	}
	return slot == slots;
}

static bool
put_all(Export *export)
{
	const GhCpuView *view = &export->table->view;
	const GhCpuRoot *root = view->root;
	GhCursor   *cursor = export->cursor;
	int64_t		buckets = EXPORT_BUCKETS;
	uint64_t	before = 1;
	uint32_t	i;

	if (cursor->position == 0)
	{
		if (view->has_empty_key &&
			!put_entry(export, GH_CPU_EMPTY, (const char *) root->empty_key_value))
			return false;
		cursor->position = 1;
		cursor->value = 0;
	}
	for (i = 0; i < root->options.subtables; i++)
	{
		uint64_t	slots = root->subtable[i].buckets * gh_cpu_slots(view->shape);

		if (cursor->position < before + slots &&
			!put_slots(export, i, cursor->position - before, &buckets))
			return false;
		before += slots;
	}
	return true;
}

GhStatus
gh_cpu_table_export(GhTable *common, GhCursor *cursor, uint64_t capacity,
					void *keys, void *values, uint64_t *count, GhError *error)
{
	GhCpuTable *table = (GhCpuTable *) common;
	Export		export = {.table = table, .cursor = cursor, .keys = keys, .values = values};
	const GhCpuView *view = &table->view;

	*count = 0;
	if (table->rows != NULL)
		return gh_made_refuse(error);
	gh_cpu_drain(table);
	gh_cpu_lock(table, GH_LOCK_SHARED);
	if (capacity > 0 && (keys == NULL || (values == NULL && view->value_size > 0)))
	{
		gh_cpu_unlock(table);
		return gh_error_set(error, GH_INVALID, "an export has no room for keys or values");
	}
	export.room = gh_cpu_slice(GH_CPU_SLICE_VALUES, view->value_size, 256);
	if (export.room > capacity)
		export.room = capacity;
	if (!cursor->finished)
		cursor->finished = view->hidden || put_all(&export);
	*count = export.count;
	gh_cpu_unlock(table);
	return GH_OK;
}

void
gh_cpu_each_key(const GhCpuTable *table, void (*take) (void *arg, uint64_t key), void *arg)
{
	const GhCpuView *view = &table->view;
	uint32_t	per_bucket = gh_cpu_slots(view->shape);

	if (view->hidden)
		return;
	if (view->has_empty_key)
		take(arg, GH_CPU_EMPTY);
	for (uint32_t i = 0; i < view->root->options.subtables; i++)
		for (uint64_t b = 0; b < view->root->subtable[i].buckets; b++)
		{
			const char *bucket = view->area[i].base + (b << GH_CPU_BUCKET_SHIFT);

			for (uint32_t s = 0; s < per_bucket; s++)
			{
				uint64_t	key = gh_cpu_key(view->shape, bucket, s);

				if (key != GH_CPU_EMPTY)
					take(arg, key);
			}
		}
}
