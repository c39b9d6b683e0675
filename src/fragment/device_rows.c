/*
 * device_rows.c
 *		Inner sides that are rows of any plan, for a table on the device.
 *
 * The join reads them through the executor and stores them, within work_mem, as it would for a table of its
 * own.  They are then supplied as columns (supply_rows.c): the key, and the columns that the outer side's
 * program reads.  They stay stored, so that the plan below never runs twice: where the device fails, or
 * hands rows back, the join makes its own table of them.
 *
 * That plan may call a user's functions, or raise an error, so it does not run where the executor would see
 * before that there is nothing to join.  Inner sides are read in the executor's order (make_chain of
 * device_joins.c), and none behind an empty table that leaves no rows.  Where a join has the executor look
 * for an outer row first, the rows of the scan below are looked at until its conditions accept one.  As on
 * the CPU (joined_open.c), such a row of the scan is enough: the joins between may drop all that they get.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "compat.h"
#include "expr/translate.h"
#include "fragment/inner_side.h"

/* The relation of rows: the key, and then the level's columns. */
#define GH_ROWS_VARNO 1

/* ----------------------------------------------------------------- the program */

/* Why a device does not make the table of rows; NULL: it can. */
const char *
gh_side_rows_refused(const GhInnerSide *side)
{
	const GhJoinLevel *level = side->level;

	if (side->fragment->member != NULL)
		return "rows of an inner side come through the executor in a parallel query";
	if (gh_lower_fills_inner(level->lower))
		return "rows of the inner side of a right or full join come through the executor";
	if (level->place_vector >= 0)
		return "tuples of an inner side that comes through the executor are fetched";
	return NULL;
}

/* Of the rows as they are supplied. */
GhTranslation *
gh_side_begin_rows(const GhInnerSide *side)
{
	const GhJoinLevel *level = side->level;
	const GhLowerJoin *lower = level->lower;
	TupleDesc	desc = CreateTemplateTupleDesc(level->ncolumns + 1);

	TupleDescInitEntry(desc, 1, NULL, INT8OID, -1, 0);
	for (int c = 0; c < level->ncolumns; c++)
		TupleDescCopyEntry(desc, c + 2, gh_lower_inner_desc(lower),
						   lower->kept_attnos[level->columns[c].column]);
	gh_finish_desc(desc);
	return gh_translate_begin(desc, GH_ROWS_VARNO);
}

/* --------------------------------------------------------- whether they are read */

static bool
accepts(PlanState *scan, TupleTableSlot *slot)
{
	ExprContext *econtext = scan->ps_ExprContext;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	return scan->qual == NULL || ExecQual(scan->qual, econtext);
}

/*
 * Whether the scan has a visible row; accepted: one that its conditions accept, by the executor's
 * expressions. The scan itself does not move.  Where there is none among the first ones this takes long; but
 * the host would read them all, too.
 */
bool
gh_device_scan_has_row(PlanState *scan, bool accepted)
{
	Relation	relation = ((ScanState *) scan)->ss_currentRelation;
	TableScanDesc desc = gh_beginscan((ScanState *) scan);
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	bool		found = false;

	while (!found && table_scan_getnextslot(desc, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		found = !accepted || accepts(scan, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(desc);
	return found;
}

/* Whether there is one that they accept, looked for once for each chain in a run. */
static bool
has_outer_row(const GhFragment *fragment, const GhJoined *joined)
{
	GhDeviceTable *lowest = &fragment->device->tables[joined->levels[0].table];

	if (!lowest->looked)
		lowest->found = joined == fragment->joined ? gh_fragment_has_row(fragment, true) :
			gh_device_scan_has_row(joined->scan, true);
	lowest->looked = true;
	return lowest->found;
}

/* Whether another join of the chain has an empty table, so that nothing comes out of the chain. */
static bool
is_chain_empty(const GhDeviceRun *device, const GhJoined *joined)
{
	for (int i = 0; i < joined->nlevels; i++)
	{
		const GhDeviceTable *made = &device->tables[joined->levels[i].table];

		if (made->table != NULL && made->rows == 0 && gh_drops_without_match(joined->levels[i].lower))
			return true;
	}
	return false;
}

/*
 * Whether the executor would read the inner side of a join by now, from that join up: the tables that it has
 * made before are not empty, and there is an outer row, where it looks for one.  Without a row of the
 * fragment's own scan, nothing comes out of the joins at all.
 */
static bool
is_reached(GhFragment *fragment, const GhJoined *joined, int number)
{
	GhDeviceRun *device = fragment->device;

	for (; joined != NULL; number = joined->within_level, joined = joined->within)
	{
		GhLowerJoin *lower = joined->levels[number].lower;

		if (is_chain_empty(device, joined))
			return false;
		if (lower->methods->asks_outer_first(lower) && !has_outer_row(fragment, joined))
		{
			device->no_rows = joined == fragment->joined && !joined->fills_inner;
			return false;
		}
	}
	return true;
}

/*
 * Has the join read and store its rows, if the executor would read them; *reached: whether it would.  Rows
 * that it would not read have no match: nothing comes out of the joins above.  False: they do not fit in
 * memory.
 */
bool
gh_side_store_rows(GhFragment *fragment, int number, bool *reached)
{
	const GhDeviceTable *made = &fragment->device->tables[number];
	GhLowerJoin *lower = made->level->lower;
	MemoryContext saved;
	bool		stored;

	*reached = is_reached(fragment, made->joined, (int) (made->level - made->joined->levels));
	if (!*reached)
		return true;
	/* the executor's memory is that of the query */
	saved = MemoryContextSwitchTo(lower->ps->state->es_query_cxt);
	gh_child_start(lower->ps);
	stored = lower->methods->store_inner(lower);
	gh_child_stop(lower->ps, 0);
	MemoryContextSwitchTo(saved);
	return stored;
}

/* -------------------------------------------------------------------- the rows */

/*
 * Supplies all rows that the join has stored to the pipeline, which was begun.  False: the supply has
 * failed.
 */
bool
gh_side_supply_rows(GhFragment *fragment, int number)
{
	const GhDeviceTable *made = &fragment->device->tables[number];
	const GhJoinLevel *level = made->level;
	GhLowerJoin *lower = level->lower;
	GhSupplyRows *rows = gh_supply_open_rows(made->supply, made->side->program);
	Datum	   *kept = palloc(sizeof(Datum) * Max(lower->nkept, 1));
	bool	   *nulls = palloc(sizeof(bool) * Max(lower->nkept, 1));
	Datum	   *values = palloc(sizeof(Datum) * (level->ncolumns + 1));
	bool	   *values_null = palloc0(sizeof(bool) * (level->ncolumns + 1));
	bool		done = rows != NULL;
	uint64		key;

	while (done && lower->methods->next_stored(lower, &key, kept, nulls))
	{
		CHECK_FOR_INTERRUPTS();
		values[0] = Int64GetDatum((int64) key);
		for (int c = 0; c < level->ncolumns; c++)
		{
			values[c + 1] = kept[level->columns[c].column];
			values_null[c + 1] = nulls[level->columns[c].column];
		}
		done = gh_supply_row(rows, values, values_null);
	}
	done = done && gh_supply_close_rows(rows);
	if (done)
		gh_supply_free_buffers(made->supply);
	return done;
}
