/*
 * device_rows.c
 *		Inner sides that are rows of any plan, for a table on the device.
 *
 * The join reads them through the executor and stores them, as it would for a table of its own, within work_mem.  They are
 * then supplied as columns (supply_rows.c): the key, and the columns that the outer side's program reads.  They stay
 * stored, so that the plan below never runs twice: where the device fails, or hands rows back, the join makes its own
 * table of them.
 *
 * That plan may call functions of a user, or raise an error.  So it is run only when the executor would run it: inner sides
 * are read in the executor's order (make_chain of device_joins.c), and where it looks for an outer row first, that is
 * done here, too, by PostgreSQL's expressions over the scan's first rows.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "expr/translate.h"
#include "fragment/inner_side.h"

/* The relation of rows: the key, and then the level's columns. */
#define GH_ROWS_VARNO 1
/* Rows of a scan that are looked at for one that its conditions accept. */
#define GH_ROWS_LOOKED_AT 100000

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
	TupleDesc	inner = gh_lower_inner_desc(level->lower);
	TupleDesc	desc = CreateTemplateTupleDesc(level->ncolumns + 1);

	TupleDescInitEntry(desc, 1, NULL, INT8OID, -1, 0);
	for (int c = 0; c < level->ncolumns; c++)
		TupleDescCopyEntry(desc, c + 2, inner, level->lower->kept_attnos[level->columns[c].column]);
	return gh_translate_begin(desc, GH_ROWS_VARNO);
}

/* --------------------------------------------------------- whether they are read */

typedef enum Found
{
	FOUND_NONE,					/* there is no row */
	FOUND_ONE,
	FOUND_UNKNOWN				/* none so far */
} Found;

static bool
accepts(PlanState *scan, TupleTableSlot *slot)
{
	ExprContext *econtext = scan->ps_ExprContext;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	return scan->qual == NULL || ExecQual(scan->qual, econtext);
}

/* Whether the scan has a row that its conditions accept, by the executor's expressions.  The scan itself does not move. */
static Found
look_for_row(PlanState *scan)
{
	Relation	relation = ((ScanState *) scan)->ss_currentRelation;
	TableScanDesc desc = table_beginscan(relation, scan->state->es_snapshot, 0, NULL);
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	Found		found = FOUND_NONE;
	int			looked_at = 0;

	while (found == FOUND_NONE && table_scan_getnextslot(desc, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (accepts(scan, slot))
			found = FOUND_ONE;
		else if (++looked_at == GH_ROWS_LOOKED_AT)
			found = FOUND_UNKNOWN;
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(desc);
	return found;
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
 * Whether the executor would read the inner side of a join by now, from that join up: there is an outer row, where it looks
 * for one before, and the tables that it has made before are not empty.
 */
static Found
is_reached(const GhDeviceRun *device, const GhJoined *joined, int number)
{
	Found		found = FOUND_ONE;

	for (; joined != NULL && found == FOUND_ONE; number = joined->within_level, joined = joined->within)
	{
		GhLowerJoin *lower = joined->levels[number].lower;

		if (is_chain_empty(device, joined))
			return FOUND_NONE;
		if (lower->methods->asks_outer_first(lower))
			found = look_for_row(joined->scan);
	}
	return found;
}

/* -------------------------------------------------------------------- the rows */

/* All rows that the join has stored. */
static bool
supply_stored(const GhInnerSide *side, GhSupply *supply)
{
	const GhJoinLevel *level = side->level;
	GhLowerJoin *lower = level->lower;
	GhSupplyRows *rows = gh_supply_open_rows(supply, side->program);
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
		gh_supply_free_buffers(supply);
	return done;
}

static bool
refuse(GhSupply *supply, const char *why)
{
	supply->failed = true;
	(void) gh_error_set(&supply->error, GH_DECLINED, "%s", why);
	return false;
}

/* Has the join read its rows through the executor, in the memory in which that works. */
static bool
store_rows(GhLowerJoin *lower)
{
	MemoryContext saved = MemoryContextSwitchTo(lower->ps->state->es_query_cxt);
	bool		stored;

	gh_child_start(lower->ps);
	stored = lower->methods->store_inner(lower);
	gh_child_stop(lower->ps, 0);
	MemoryContextSwitchTo(saved);
	return stored;
}

/*
 * Has the join read its rows, if the executor would, and supplies them to the pipeline, which was begun.  Rows that it would
 * not read have no match: nothing comes out of the joins above.
 */
bool
gh_side_supply_rows(GhFragment *fragment, int number)
{
	const GhDeviceTable *made = &fragment->device->tables[number];
	GhSupply   *supply = made->supply;

	switch (is_reached(fragment->device, made->joined, (int) (made->level - made->joined->levels)))
	{
		case FOUND_NONE:
			return true;
		case FOUND_UNKNOWN:
			return refuse(supply, "it would take long to see whether there is an outer row");
		case FOUND_ONE:
			break;
	}
	if (!store_rows(made->level->lower))
		return refuse(supply, "rows of an inner side do not fit in memory");
	return supply_stored(made->side, supply);
}
