/*
 * collect.c
 *		The rows that a GpuHashRows has read, until they come out.
 *
 * Every row is kept, in a tuplestore.  Nothing comes out before all is read: so whatever happens
 * to the device until then, the rows can be made anew.
 *
 * Of relations whose tuples are fetched (fetch.c), a row that the device has made is kept with their places.
 * Rows that were handed back, and joined on the host, are kept with all of their columns.
 *
 * Where the joins' rows come through the executor after all, they are passed on one by one.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "engine/pipeline/record.h"
#include "fragment/records.h"
#include "rows/node.h"

/* Rows whose by-reference values are made before memory for them is given back. */
#define GH_COLLECT_ROWS 64

/* In the place of a tuple's place: its columns are in the row.  No tuple is there. */
#define GH_PLACE_NONE 0

static TupleDesc
row_desc(const GhRowsNode *node)
{
	TupleDesc	scan = node->fragment.css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	TupleDesc	desc = CreateTemplateTupleDesc(node->fragment.ncolumns + node->nfetches);

	for (int c = 1; c <= node->fragment.ncolumns; c++)
		TupleDescCopyEntry(desc, c, scan, c);
	for (int f = 1; f <= node->nfetches; f++)
		TupleDescInitEntry(desc, node->fragment.ncolumns + f, NULL, INT8OID, -1, 0);
	gh_finish_desc(desc);
	return desc;
}

void
gh_collect_init(GhRowsNode *node, EState *estate)
{
	GhCollected *collected = &node->collected;

	gh_fetch_init(node, estate);
	collected->desc = row_desc(node);
	collected->row = palloc0(sizeof(Datum) * Max(collected->desc->natts, 1));
	collected->nulls = palloc0(sizeof(bool) * Max(collected->desc->natts, 1));
	collected->kept = ExecInitExtraTupleSlot(estate, collected->desc, &TTSOpsMinimalTuple);
	collected->values = AllocSetContextCreate(CurrentMemoryContext, "GpuHashRows values", ALLOCSET_DEFAULT_SIZES);
}

/* ------------------------------------------------------------------- rows in */

static Tuplestorestate *
store_of(GhRowsNode *node)
{
	GhCollected *collected = &node->collected;
	MemoryContext saved;

	if (collected->store != NULL)
		return collected->store;
	saved = MemoryContextSwitchTo(node->fragment.css.ss.ps.state->es_query_cxt);
	/* read from the start once more by a rescan, never backward */
	collected->store = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_set_eflags(collected->store, EXEC_FLAG_REWIND);
	MemoryContextSwitchTo(saved);
	return collected->store;
}

static void
put_row(GhRowsNode *node)
{
	GhCollected *collected = &node->collected;

	tuplestore_putvalues(store_of(node), collected->desc, collected->row, collected->nulls);
	node->fragment.counts.groups++;
}

/* A row of which all columns are there. */
static void
put_columns(GhRowsNode *node, const TupleTableSlot *slot)
{
	GhCollected *collected = &node->collected;

	memcpy(collected->row, slot->tts_values, sizeof(Datum) * node->fragment.ncolumns);
	memcpy(collected->nulls, slot->tts_isnull, sizeof(bool) * node->fragment.ncolumns);
	for (int f = 0; f < node->nfetches; f++)
	{
		collected->row[node->fragment.ncolumns + f] = UInt64GetDatum(GH_PLACE_NONE);
		collected->nulls[node->fragment.ncolumns + f] = false;
	}
	put_row(node);
}

/* GhFragmentMethods */
void
gh_collect_scan_tuple(GhFragment *fragment)
{
	put_columns(gh_rows_of(fragment), fragment->css.ss.ss_ScanTupleSlot);
}

/* GhFragmentMethods */
void
gh_collect_child_row(GhFragment *fragment, TupleTableSlot *slot)
{
	put_columns(gh_rows_of(fragment), slot);
}

/* Sets a column of the row from a key, in memory that lasts until the next row. */
static inline void
set_column(GhRowsNode *node, int k, GhSqlValue value)
{
	int			column = node->value_columns[k];

	node->collected.row[column] = gh_datum_of_value(&node->value_types[k], value, &node->collected.nulls[column]);
}

/* Before the values of a row are made. */
static MemoryContext
begin_values(GhCollected *collected)
{
	if (++collected->nvalues == GH_COLLECT_ROWS)
	{
		MemoryContextReset(collected->values);
		collected->nvalues = 0;
	}
	return MemoryContextSwitchTo(collected->values);
}

/* The places of a row's tuples; the columns that are of these are no part of what is kept. */
static void
set_places(GhRowsNode *node, const GhRecordHead *record, const GhRecordValue *places)
{
	GhCollected *collected = &node->collected;

	for (int f = 0; f < node->nfetches; f++)
	{
		const GhFetch *fetch = &node->fetches[f];
		bool		null = (record->nulls >> (node->nvalues + f) & 1) != 0;

		for (int i = 0; i < fetch->ncolumns; i++)
			collected->nulls[fetch->columns[i]] = true;
		if (!null && places[f].low == GH_PLACE_NONE)
			elog(ERROR, "row of a scan has no place");
		collected->row[node->fragment.ncolumns + f] = UInt64GetDatum(places[f].low);
		collected->nulls[node->fragment.ncolumns + f] = null;
	}
}

/*
 * Loads a row of an engine's pipeline into the row that is kept next: the first of the records, of which so
 * many bytes are left.  Its size.
 */
Size
gh_collect_load(GhRowsNode *node, const char *records, Size left)
{
	const GhRecordHead *record = gh_record_of(records, left, node->nvalues + node->nfetches);
	MemoryContext saved = begin_values(&node->collected);

	for (int k = 0; k < node->nvalues; k++)
		set_column(node, k, gh_record_value(record, k, &node->value_types[k]));
	MemoryContextSwitchTo(saved);
	set_places(node, record, (const GhRecordValue *) (record + 1) + node->nvalues);
	return record->bytes;
}

/* GhFragmentMethods: rows as engine/pipeline/record.h has them, one behind the other. */
void
gh_collect_records(GhFragment *fragment, const char *records, Size size)
{
	for (Size at = 0; at < size;)
	{
		CHECK_FOR_INTERRUPTS();
		at += gh_collect_load(gh_rows_of(fragment), records + at, size - at);
		put_row(gh_rows_of(fragment));
	}
}

/* GhFragmentMethods: what was collected is forgotten. */
void
gh_collect_clear(GhFragment *fragment)
{
	GhRowsNode *node = gh_rows_of(fragment);

	if (node->collected.store != NULL)
		tuplestore_end(node->collected.store);
	node->collected.store = NULL;
	gh_fetch_park(node);
	MemoryContextReset(node->collected.values);
	node->collected.nvalues = 0;
}

/* ------------------------------------------------------------------ rows out */

/* All rows have come out, and are not asked for again. */
void
gh_collect_empty(GhRowsNode *node)
{
	if (node->collected.store != NULL)
		tuplestore_clear(node->collected.store);
}

/* Begins with the first row again. */
void
gh_collect_rewind(GhRowsNode *node)
{
	if (node->collected.store != NULL)
		tuplestore_rescan(node->collected.store);
}

/* Columns that are not in the row, but of tuples whose places are. */
static void
fetch_columns(GhRowsNode *node, const TupleTableSlot *row)
{
	for (int f = 0; f < node->nfetches; f++)
	{
		int			column = node->fragment.ncolumns + f;

		if (!row->tts_isnull[column] && DatumGetUInt64(row->tts_values[column]) != GH_PLACE_NONE)
			gh_fetch_columns(node, &node->fetches[f], DatumGetUInt64(row->tts_values[column]));
	}
}

/* The next row into the scan tuple, from the child or from what was collected; false: there are no more. */
bool
gh_collect_next(GhRowsNode *node)
{
	TupleTableSlot *scan = node->fragment.css.ss.ss_ScanTupleSlot;
	TupleTableSlot *from = node->collected.kept;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(node->fragment.css.ss.ps.ps_ExprContext);
	if (node->fragment.passes_on)
		from = ExecProcNode(node->fragment.child);
	else if (node->collected.store == NULL ||
			 !tuplestore_gettupleslot(node->collected.store, true, false, from))
		from = NULL;
	if (TupIsNull(from))
	{
		gh_fetch_park(node);
		return false;
	}
	slot_getallattrs(from);
	ExecClearTuple(scan);
	memcpy(scan->tts_values, from->tts_values, sizeof(Datum) * node->fragment.ncolumns);
	memcpy(scan->tts_isnull, from->tts_isnull, sizeof(bool) * node->fragment.ncolumns);
	if (!node->fragment.passes_on)
		fetch_columns(node, from);
	ExecStoreVirtualTuple(scan);
	node->fragment.css.ss.ps.ps_ExprContext->ecxt_scantuple = scan;
	return true;
}
