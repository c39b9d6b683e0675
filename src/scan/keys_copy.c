/*
 * keys_copy.c
 *		The keys of a GpuHashKeys, and their entries in the copy of the index.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "compat.h"
#include "plan/keys_path.h"
#include "scan/keys.h"

/* Entries of a line of memory, and those that are gone through line by line. */
#define GH_LINE_ENTRIES 8
#define GH_NEAR_ENTRIES 512

/* ---------------------------------------------------------------------- keys */

/* Of a type that are_numbers (../plan/keys_path.c) has, of that width. */
int64
gh_keys_number(Datum value, int width)
{
	switch (width)
	{
		case sizeof(int16):
			return DatumGetInt16(value);
		case sizeof(int32):
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

/* The array's elements, but for those that are NULL, as numbers; none of an array that is NULL. */
void
gh_keys_read_array(GhKeysNode *node)
{
	bool		null;
	Datum		value = ExecEvalExprSwitchContext(node->array, node->css.ss.ps.ps_ExprContext, &null);
	int			width = get_typlen(node->element);
	ArrayType  *array;
	const uint8 *bitmap;
	const char *element;
	int			count;

	if (null)
		return;
	array = DatumGetArrayTypeP(value);
	count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	bitmap = ARR_NULLBITMAP(array);
	element = ARR_DATA_PTR(array);
	node->keys = MemoryContextAllocHuge(node->context, sizeof(int64) * ((Size) count + 1));
	for (int i = 0; i < count; i++)
	{
		if (bitmap != NULL && (bitmap[i / BITS_PER_BYTE] & 1 << i % BITS_PER_BYTE) == 0)
			continue;
		node->keys[node->nkeys++] = gh_keys_number(fetch_att(element, true, width), width);
		element += width;
	}
}

/* Sorted, each once. */
static void
arrange_keys(GhKeysNode *node)
{
	Size		kept = Min(node->nkeys, 1);

	gh_sort_numbers(node->keys, node->nkeys);
	for (Size i = 1; i < node->nkeys; i++)
		if (node->keys[i] != node->keys[kept - 1])
			node->keys[kept++] = node->keys[i];
	node->nkeys = kept;
}

/* Of the inner child, all rows' keys but NULL; false: they pass the memory that a hash table may take. */
bool
gh_keys_read_rows(GhKeysNode *node)
{
	const Size	most = get_hash_memory_limit() / sizeof(int64);
	const int	width = get_typlen(node->element);
	Size		room = Min(GH_KEYS_MIN, most);

	node->keys = MemoryContextAllocHuge(node->context, sizeof(int64) * room);
	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(innerPlanState(node));
		bool		null;
		Datum		value;

		if (TupIsNull(slot))
			return true;
		value = slot_getattr(slot, 1, &null);
		if (null)
			continue;
		if (node->nkeys == room)
		{
			/* those that come again take no memory, as in a hash table */
			arrange_keys(node);
			CHECK_FOR_INTERRUPTS();
			if (node->nkeys > most / 2)
				return false;
			room = Min(Max(room, 2 * node->nkeys), most);
			node->keys = repalloc_huge(node->keys, sizeof(int64) * room);
		}
		node->keys[node->nkeys++] = gh_keys_number(value, width);
	}
}

/* Of the keys that are sorted, whether this is one. */
bool
gh_keys_have(const GhKeysNode *node, int64 value)
{
	Size		low = 0;
	Size		high = node->nkeys;

	while (low < high)
	{
		Size		middle = low + (high - low) / 2;

		if (node->keys[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low < node->nkeys && node->keys[low] == value;
}

/* ------------------------------------------------------------------- the copy */

/* Where the copy has a column; false: it has not. */
static bool
map_column(const GhKeysNode *node, KeysColumn *column)
{
	const GhIndexCopy *copy = node->hold.copy;
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(node->css.ss.ss_currentRelation), column->attno - 1);

	column->is_key = column->attno == node->key_attno;
	for (int c = 0; c < copy->ncolumns; c++)
	{
		const GhCopyColumn *from = &copy->columns[c];

		if (from->attno != column->attno ||
			!gh_value_type_init(&column->type, attribute->atttypid, (GhClass) from->held.value_class, from->column.scale))
			continue;
		column->low = gh_copy_address(&node->hold, from->low);
		column->high = gh_copy_address(&node->hold, from->high);
		column->null = gh_copy_address(&node->hold, from->null);
		column->base = from->held.value_class != GH_CLASS_TEXT ? 0 :
			(uint64) (uintptr_t) gh_copy_address(&node->hold, copy->texts);
		return true;
	}
	return false;
}

/* Whether the copy has the key by itself, in its order, and all columns that are read. */
static bool
map_columns(GhKeysNode *node)
{
	const GhIndexCopy *copy = node->hold.copy;

	if (copy->nkeys != 1 || !copy->ascending)
		return false;
	node->key_attno = copy->columns[0].attno;
	node->key_width = TupleDescAttr(RelationGetDescr(node->css.ss.ss_currentRelation), node->key_attno - 1)->attlen;
	node->max_attno = Max(node->max_attno, node->key_attno);
	node->nothers = 0;
	for (int c = 0; c < node->ncolumns; c++)
	{
		if (!map_column(node, &node->columns[c]))
			return false;
		node->nothers += !node->columns[c].is_key;
	}
	node->entries = gh_copy_address(&node->hold, copy->keys);
	node->entry_blocks = gh_copy_address(&node->hold, copy->blocks);
	return true;
}

/*
 * Whether the copy is worth reading the blocks that it is not right for.  Where the keys are rows of a plan,
 * that is read, and the child was planned for many: it may read the whole table for few.
 */
static bool
does_pay(const GhKeysNode *node)
{
	const BlockNumber wrong = node->pages.nblocks - node->blocks.right;

	if (node->array == NULL && wrong <= GH_COPY_HEAP_MAX(node->pages.nblocks, 1))
		return true;
	return gh_keys_pay(node->nkeys, node->hold.copy->rows, node->nothers, wrong);
}

/* Opens the copy, where it has all that is read, and asks for its blocks; else why not. */
const char *
gh_keys_open_copy(GhKeysNode *node, Relation index)
{
	Relation	heap = node->css.ss.ss_currentRelation;
	GhIndexCopy seen = {0};
	int			place;

	/* to attach it takes longer than to look up few keys of an array */
	if (!gh_index_copy_look(index, &seen, &place))
		return GH_COPY_IS_NOT_THERE;
	if (node->array != NULL && !gh_keys_pay(node->nkeys, seen.rows, 0, 0))
		return GH_COPY_FEW_FOR_COPY;
	if (!gh_shared_copy_open(GH_COPY_OF_INDEX, index, &node->hold))
		return GH_COPY_IS_NOT_THERE;
	if (!map_columns(node))
		return GH_COPY_LACKS_COLUMNS;
	arrange_keys(node);
	gh_keys_begin_scan(node);
	gh_copy_ask_blocks(index, heap, node->hold.copy, node->pages.nblocks, &node->blocks);
	(void) gh_copy_make_again(index, &node->blocks);
	return does_pay(node) ? NULL : node->array != NULL ? GH_COPY_FEW_FOR_COPY : GH_COPY_MUCH_CHANGED;
}

/* The rows come from the first key's on. */
void
gh_keys_find_from_first(GhKeysNode *node)
{
	node->all_right = node->blocks.right == node->pages.nblocks && node->blocks.right == node->blocks.copied;
	node->key = 0;
	node->entry = 0;
	node->nfound = node->found_next = 0;
}

/*
 * The first entry from this one on whose key is not less.  A line of memory after the other at first, which
 * the processor foresees; then by steps that double, and by halves.
 */
static uint64
find_entry(const GhKeysNode *node, uint64 entry, int64 key)
{
	const uint64 rows = node->hold.copy->rows;
	const uint64 near = Min(entry + GH_NEAR_ENTRIES, rows);
	uint64		low = entry;
	uint64		high;
	uint64		step = GH_LINE_ENTRIES;

	while (low + step <= near && (int64) node->entries[low + step - 1] < key)
		low += step;
	if (low + step > near)
		while (low + step <= rows && (int64) node->entries[low + step - 1] < key)
		{
			low += step;
			step *= 2;
		}
	for (high = Min(low + step - 1, rows); low < high;)
	{
		uint64		middle = low + (high - low) / 2;

		if ((int64) node->entries[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
store_entry(GhKeysNode *node, uint64 entry, TupleTableSlot *slot)
{
	MemoryContext saved = MemoryContextSwitchTo(node->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);

	for (int c = 0; c < node->ncolumns; c++)
	{
		const KeysColumn *column = &node->columns[c];
		GhSqlValue	value = {.kind = GH_SQL_HELD};
		bool	   *null = &slot->tts_isnull[column->attno - 1];

		if (column->is_key)
			value.low = node->entries[entry];
		else if (column->null != NULL && column->null[entry])
			value.kind = GH_SQL_NULL;
		else
		{
			value.low = column->low[entry] + column->base;
			value.high = column->high != NULL ? column->high[entry] : 0;
		}
		slot->tts_values[column->attno - 1] = gh_datum_of_value(&column->type, value, null);
	}
	MemoryContextSwitchTo(saved);
}

/* Whether an entry is a row; if so, its values are fetched, for they are looked at soon. */
static inline bool
take_entry(const GhKeysNode *node, uint64 entry)
{
	if (!node->all_right && !gh_copy_is_right(&node->blocks, node->entry_blocks[entry]))
		return false;
	for (int c = 0; c < node->ncolumns; c++)
		if (!node->columns[c].is_key)
			__builtin_prefetch(&node->columns[c].low[entry]);
	return true;
}

/* Finds the next rows that the copy has; false: there are no more. */
static bool
find_rows(GhKeysNode *node)
{
	const uint64 rows = node->hold.copy->rows;
	uint64		entry = node->entry;

	CHECK_FOR_INTERRUPTS();
	node->nfound = node->found_next = 0;
	while (node->key < node->nkeys && node->nfound < GH_KEYS_FOUND)
	{
		const int64 key = node->keys[node->key];

		entry = find_entry(node, entry, key);
		for (; entry < rows && (int64) node->entries[entry] == key && node->nfound < GH_KEYS_FOUND; entry++)
			if (take_entry(node, entry))
				node->found[node->nfound++] = entry;
		/* of a key with more entries, the others come next */
		if (node->nfound < GH_KEYS_FOUND || entry >= rows || (int64) node->entries[entry] != key)
			node->key++;
	}
	node->entry = entry;
	return node->nfound > 0;
}

/* The next row that the copy has; false: there are no more. */
bool
gh_keys_next_entry(GhKeysNode *node, TupleTableSlot *slot)
{
	if (node->found_next == node->nfound && !find_rows(node))
		return false;
	store_entry(node, node->found[node->found_next++], slot);
	return true;
}
