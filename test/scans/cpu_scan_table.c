/*
 * cpu_scan_table.c
 *		The table that a scan on the CPU makes: rows with their keys and values, and a hash table
 *		with linear probing over the first row of each key, from which a list leads to the others.
 */
#include "cpu_scan.h"

#define ROOM_MIN 64				/* entries */
#define ROOM_MAX (UINT64_C(1) << 40)

static GhCpuEntry *
entry_at(const GhCpuScanTable *table, uint64_t entry)
{
	return (GhCpuEntry *) (table->entries + entry * table->entry_bytes);
}

static GhScanValue *
entry_values(const GhCpuEntry *entry)
{
	return (GhScanValue *) (entry + 1);
}

static uint8_t
kept_class(const GhCpuScanTable *table, uint32_t kept)
{
	return table->plan->classes[table->plan->options.kept[kept]];
}

static bool
is_null(const GhCpuEntry *entry, uint32_t kept)
{
	return (entry->nulls[kept / 64] >> kept % 64 & 1) != 0;
}

/* --------------------------------------------------------------------- rows */

void
gh_cpu_table_init(GhCpuScanTable *table, GhCpuSinkMemory *memory, const GhScanPlan *plan)
{
	memset(table, 0, sizeof(*table));
	table->memory = memory;
	table->plan = plan;
	table->entry_bytes = (uint32_t) (sizeof(GhCpuEntry) +
									 plan->options.nkept * sizeof(GhScanValue));
}

void
gh_cpu_table_drop(GhCpuScanTable *table)
{
	gh_cpu_block_give(table->memory, table->marks_block);
	gh_cpu_block_give(table->memory, table->slots_block);
	gh_cpu_block_give(table->memory, table->texts.block);
	gh_cpu_block_give(table->memory, table->block);
	table->marks_block.ref = table->slots_block.ref = table->texts.block.ref = table->block.ref = 0;
}

/* False: there is no memory for one more row, and all is as it was. */
static bool
grow(GhCpuScanTable *table)
{
	uint64_t	room = table->room == 0 ? ROOM_MIN : table->room * 2;
	GhCpuBlock	block;
	char	   *entries;

	if (table->count < table->room)
		return true;
	if (room > ROOM_MAX)
		return false;
	block = gh_cpu_block_take(table->memory, room * table->entry_bytes);
	if (block.ref == 0)
		return false;
	entries = gh_cpu_block_address(table->memory, block);
	if (table->count > 0)
		memcpy(entries, table->entries, table->count * table->entry_bytes);
	gh_cpu_block_give(table->memory, table->block);
	table->block = block;
	table->entries = entries;
	table->room = room;
	return true;
}

bool
gh_cpu_table_add(GhCpuScanTable *table, const uint64_t *key, const GhVectorBatch *batch, uint32_t row)
{
	const GhScanOptions *options = &table->plan->options;
	uint64_t	text_bytes = 0;
	GhCpuEntry *entry;

	for (uint32_t k = 0; k < options->nkept; k++)
	{
		const GhVector *vector = &batch->vectors[options->kept[k]];

		if (kept_class(table, k) == GH_CLASS_TEXT && !vector->null[row])
			text_bytes += vector->high[row];
	}
	if (!gh_cpu_texts_reserve(table->memory, &table->texts, text_bytes) || !grow(table))
		return false;
	entry = entry_at(table, table->count++);
	memset(entry, 0, table->entry_bytes);
	if (key != NULL)
		entry->key = *key;
	else
		entry->next = GH_CPU_NO_KEY;
	for (uint32_t k = 0; k < options->nkept; k++)
	{
		const GhVector *vector = &batch->vectors[options->kept[k]];
		GhScanValue *value = &entry_values(entry)[k];

		if (vector->null[row])
		{
			entry->nulls[k / 64] |= UINT64_C(1) << k % 64;
			continue;
		}
		value->low = vector->low[row];
		value->high = gh_scan_has_high(kept_class(table, k)) ? vector->high[row] : 0;
		if (kept_class(table, k) == GH_CLASS_TEXT)
			value->low = gh_cpu_texts_add(&table->texts, value->low, value->high);
	}
	return true;
}

/* ----------------------------------------------------------------- its table */

/* The slot that has the key's first entry, or the free one where it goes. */
static uint64_t *
find_slot(const GhCpuScanTable *table, uint64_t key)
{
	uint64_t	at = gh_scan_mix(key ^ table->plan->options.seed);

	for (;; at++)
	{
		uint64_t   *slot = &table->slots[at & (table->nslots - 1)];

		if (*slot == 0 || entry_at(table, *slot - 1)->key == key)
			return slot;
	}
}

static GhStatus
no_memory(const GhCpuScanTable *table, GhError *error)
{
	return gh_error_set(error, table->memory->limit != 0 ? GH_LIMIT : GH_NO_MEMORY,
						"there is no memory for a table of %llu rows", (unsigned long long) table->count);
}

/* No key is marked. */
static GhStatus
make_marks(GhCpuScanTable *table, GhError *error)
{
	if (table->plan->options.marks_matches == 0 || table->count == 0)
		return GH_OK;
	table->marks_block = gh_cpu_block_take(table->memory, table->count);
	if (table->marks_block.ref == 0)
		return no_memory(table, error);
	table->marks = gh_cpu_block_address(table->memory, table->marks_block);
	memset(table->marks, 0, table->count);
	return GH_OK;
}

GhStatus
gh_cpu_table_make(GhCpuScanTable *table, GhScanTable *made, GhError *error)
{
	uint64_t	nslots = 2;

	while (nslots < 2 * table->count)
		nslots *= 2;
	table->slots_block = gh_cpu_block_take(table->memory, nslots * sizeof(uint64_t));
	if (table->slots_block.ref == 0)
		return no_memory(table, error);
	table->slots = gh_cpu_block_address(table->memory, table->slots_block);
	table->nslots = nslots;
	memset(table->slots, 0, nslots * sizeof(uint64_t));
	made->rows = table->count;
	made->keys = 0;
	/* from the last one on: each becomes the first of its key */
	for (uint64_t i = table->count; i-- > 0;)
	{
		GhCpuEntry *entry = entry_at(table, i);
		uint64_t   *slot;

		if (entry->next == GH_CPU_NO_KEY)
			continue;
		slot = find_slot(table, entry->key);
		made->keys += *slot == 0;
		table->several |= *slot != 0;
		entry->next = *slot;
		*slot = i + 1;
	}
	return make_marks(table, error);
}

void
gh_cpu_table_mark(const GhCpuScanTable *table, const GhCpuEntry *entry)
{
	uint64_t	number = (uint64_t) ((const char *) entry - table->entries) / table->entry_bytes;

	/* it is looked at when all have marked what they found: who comes first does not matter */
	__atomic_store_n(&table->marks[number], 1, __ATOMIC_RELAXED);
}

const GhCpuEntry *
gh_cpu_table_unmarked(const GhCpuScanTable *table, uint64_t number)
{
	const GhCpuEntry *entry = entry_at(table, number);
	uint64_t	first;

	if (entry->next == GH_CPU_NO_KEY)
		return entry;
	first = *find_slot(table, entry->key) - 1;
	return __atomic_load_n(&table->marks[first], __ATOMIC_RELAXED) == 0 ? entry : NULL;
}

const GhCpuEntry *
gh_cpu_table_next(const GhCpuScanTable *table, const GhCpuEntry *entry)
{
	return entry->next == 0 ? NULL : entry_at(table, entry->next - 1);
}

const GhCpuEntry *
gh_cpu_table_find(const GhCpuScanTable *table, uint64_t key)
{
	uint64_t	slot = *find_slot(table, key);

	return slot == 0 ? NULL : entry_at(table, slot - 1);
}

/* A value of an entry as a vector has it; false: it is NULL. */
bool
gh_cpu_table_value(const GhCpuScanTable *table, const GhCpuEntry *entry, uint32_t kept,
				   GhScanValue *value)
{
	if (is_null(entry, kept))
		return false;
	*value = entry_values(entry)[kept];
	if (kept_class(table, kept) == GH_CLASS_TEXT)
		value->low += (uintptr_t) table->texts.bytes;
	return true;
}
