/*
 * device_joins.c
 *		The joins' tables of a fragment, made on the device from the inner sides' pages.
 *
 * An inner side is a scan whose pages are supplied like those of the outer one, to a scan of the
 * engine that makes a table (engine/pipeline/scan.h): of the rows that pass the inner scan's conditions, by
 * the join's key, with the columns that the node's program reads.  The joins themselves make nothing.
 *
 * Where that cannot be, or rows of an inner side are handed back, the joins make their tables as ever, on
 * the CPU engine.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "fragment/device.h"
#include "fragment/joined.h"
#include "expr/translate.h"
#include "service/placement.h"

/* Pages that a read stream may read ahead. */
#define GH_TABLE_PAGES_AHEAD 128

/* One inner side while its table is made. */
typedef struct InnerSide
{
	GhFragment *fragment;
	GhJoinLevel *level;
	PlanState  *scan;
	Relation	relation;
	GhPages    *pages;
	GhTranslation *translation;
	uint32		nfilters;		/* instructions of the scan's conditions */
	GhOperand  *keys;
	GhOperand  *kept;			/* by the level's columns; behind them, where it is asked for, the place */
} InnerSide;

static bool
fails(GhFragment *fragment, const char *why)
{
	fragment->device->why_not = why;
	return false;
}

/* --------------------------------------------------------------- the program */

/* A column of the inner scan's output, as the program reads it. */
static bool
translate_column(InnerSide *side, int resno, GhOperand *operand)
{
	return gh_translate_attribute(side->translation, gh_relation_attno(side->scan, resno), operand);
}

/* The columns of an inner side that its table has. */
static int
count_kept(const GhJoinLevel *level)
{
	return level->ncolumns + (level->place_vector >= 0);
}

/* What the outer program reads must be what the table has. */
static bool
is_kept_as_read(const InnerSide *side, const GhJoinedColumn *column, const GhOperand *operand)
{
	const GhColumn *kept = &side->translation->columns[operand->vector];

	return kept->load == column->load && kept->scale == column->scale;
}

static bool
translate_side(InnerSide *side)
{
	GhJoinLevel *level = side->level;
	const GhLowerJoin *lower = level->lower;
	ListCell   *lc;

	foreach(lc, side->scan->plan->qual)
	{
		ParamExecData *awaited = NULL;
		Expr	   *qual = gh_fragment_folded(side->fragment, lfirst(lc), &awaited);

		if (awaited != NULL || !gh_translate_filter(side->translation, qual))
			return false;
	}
	side->nfilters = side->translation->ninstructions;
	for (int k = 0; k < level->nkeys; k++)
		if (!translate_column(side, lower->keys[GH_INNER]->columns[k].attno, &side->keys[k]) ||
			side->keys[k].value_class != GH_CLASS_INT)
			return false;
	for (int c = 0; c < level->ncolumns; c++)
		if (!translate_column(side, lower->kept_attnos[level->columns[c].column], &side->kept[c]) ||
			!is_kept_as_read(side, &level->columns[c], &side->kept[c]))
			return false;
	return level->place_vector < 0 || gh_add_place(side->translation, &side->kept[level->ncolumns]);
}

static GhScanPart *
key_parts(const GhKeySide *keys, int nkeys)
{
	GhScanPart *parts = palloc0(sizeof(GhScanPart) * nkeys);

	for (int k = 0; k < nkeys; k++)
		parts[k].bits = keys->columns[k].bits;
	return parts;
}

/* With conditions, a single match may be one of several rows with the key. */
static bool
returns_all_matches(const GhLowerJoin *lower)
{
	return (!lower->single_match || lower->join_quals != NIL) && lower->jointype != JOIN_SEMI &&
		lower->jointype != JOIN_ANTI;
}

static bool
table_options(InnerSide *side, GhScanOptions *options)
{
	GhJoinLevel *level = side->level;
	GhProgram  *program;
	GhScanPart *parts = key_parts(level->lower->keys[GH_INNER], level->nkeys);
	int			nkept = count_kept(level);
	uint16	   *kept = palloc(sizeof(uint16) * Max(nkept, 1));

	side->translation = gh_translate_begin(RelationGetDescr(side->relation),
										   ((Scan *) side->scan->plan)->scanrelid);
	side->keys = palloc0(sizeof(GhOperand) * level->nkeys);
	side->kept = palloc0(sizeof(GhOperand) * Max(nkept, 1));
	if (!translate_side(side) || (program = gh_translate_end(side->translation)) == NULL)
		return false;
	for (int k = 0; k < level->nkeys; k++)
		parts[k].vector = gh_final_vector(side->translation, &side->keys[k]);
	for (int c = 0; c < nkept; c++)
		kept[c] = gh_final_vector(side->translation, &side->kept[c]);
	gh_scan_options(side->fragment->device->engine, side->fragment->device->number, side->relation, program, options);
	options->joins_at = side->nfilters;
	options->nparts = level->nkeys;
	options->parts = parts;
	options->nkept = nkept;
	options->kept = kept;
	options->all_matches = returns_all_matches(level->lower);
	options->marks_matches = gh_lower_fills_inner(level->lower);
	options->groups = (uint64) Max(side->scan->plan->plan_rows, 1);
	return true;
}

/* ------------------------------------------------------------------ the table */

/* GhRowBack: the table would lack the row. */
static void
refuse_row(void *arg, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	GhSupply   *supply = arg;

	(void) buffer;
	(void) block;
	(void) line;
	supply->failed = true;
	(void) gh_error_set(&supply->error, GH_DECLINED, "rows of an inner side were handed back");
}

/* Whether the inner side is pages that make a table; and which. */
static bool
find_side(GhFragment *fragment, int number, InnerSide *side)
{
	GhJoinLevel *level = &fragment->joined->levels[number];
	const GhLowerJoin *lower = level->lower;

	memset(side, 0, sizeof(*side));
	side->fragment = fragment;
	side->level = level;
	side->scan = lower->children[GH_INNER];
	if (lower->pages[GH_INNER] == NULL)
		return fails(fragment, "an inner side is not a plain scan");
	if (lower->keys[GH_INNER]->has_exprs)
		return fails(fragment, "an inner key is an expression");
	if (count_kept(level) > 0 && (lower->jointype == JOIN_SEMI || lower->jointype == JOIN_ANTI))
		return fails(fragment, "columns of an inner side are read of which there is no row");
	side->relation = ((ScanState *) side->scan)->ss_currentRelation;
	side->pages = lower->pages[GH_INNER];
	return true;
}

/* Begins a side's scan on the device; shared: as of gh_supply_begin. */
bool
gh_device_begin_table(GhFragment *fragment, int number, GhRef *shared)
{
	GhDevice   *device = fragment->device;
	GhSupply   *supply;
	InnerSide	side;
	GhScanOptions options;
	bool		begun;

	if (!find_side(fragment, number, &side))
		return false;
	gh_child_start(side.scan);
	gh_pages_begin(side.pages, side.scan);
	gh_child_stop(side.scan, 0);
	/* in an earlier run the join may have read it, and keeps its table over rescans */
	if (gh_pages_have_begun(side.pages))
		gh_device_rewind_table(fragment, number, false);
	if (!table_options(&side, &options))
		return fails(fragment, "an inner side has conditions or columns that the engines have not");
	supply = device->tables[number] = palloc0(sizeof(GhSupply));
	begun = gh_supply_begin(supply, device->engine, &options, shared, side.pages, device->context);
	supply->row_back = refuse_row;
	supply->arg = supply;
	supply->timing = fragment->timing;
	return begun;
}

/*
 * Supplies the side's pages: this process's part of them, where participants share the scan, and
 * else all of them or, if another one is elected, none.
 */
bool
gh_device_supply_table(GhFragment *fragment, int number, bool elected)
{
	GhSupply   *supply = fragment->device->tables[number];
	PlanState  *scan = fragment->joined->levels[number].lower->children[GH_INNER];
	bool		done = true;

	gh_supply_open_pages(supply, true);
	while (done && (elected || scan->plan->parallel_aware) &&
		   gh_pages_next(supply->pages, GH_TABLE_PAGES_AHEAD))
		done = gh_supply_page(supply);
	done = done && gh_supply_flush(supply);
	gh_pages_park(supply->pages);
	gh_supply_close_pages(supply);
	if (done)
	{
		pgstat_count_index_tuples(supply->pages->relation, supply->counts.tuples);
		gh_supply_free_buffers(supply);
	}
	return done;
}

/* The join may have to read it all the same; for_all: of a scan that participants share. */
void
gh_device_rewind_table(GhFragment *fragment, int number, bool for_all)
{
	PlanState  *child = fragment->joined->levels[number].lower->children[GH_INNER];
	TableScanDesc scan = IsA(child, SeqScanState) ? ((ScanState *) child)->ss_currentScanDesc : NULL;

	if (scan == NULL)
		return;
	if (for_all && scan->rs_parallel != NULL)
		table_parallelscan_reinitialize(scan->rs_rd, scan->rs_parallel);
	table_rescan(scan, NULL);
}

/* Whether nothing comes out of all the joins where this one's inner side is empty. */
static bool
needs_inner_rows(const GhJoined *joined, const GhLowerJoin *lower)
{
	/* where a right or full join is above, its inner rows come out without a match */
	if (joined->fills_inner)
		return lower->jointype == JOIN_RIGHT;
	return lower->jointype == JOIN_INNER || lower->jointype == JOIN_SEMI;
}

/* Makes the table, of all that was supplied. */
bool
gh_device_finish_table(GhFragment *fragment, int number)
{
	GhSupply   *supply = fragment->device->tables[number];
	const GhLowerJoin *lower = fragment->joined->levels[number].lower;
	GhScanTable table;
	GhStatus	status;

	do
	{
		status = supply->engine->scans->make_table(supply->scan, &table, &supply->error);
		if (status == GH_STOPPED)
			gh_serve_interrupt();
	} while (status == GH_STOPPED);
	supply->failed = status != GH_OK;
	if (supply->failed)
		return false;
	if (table.rows == 0 && needs_inner_rows(fragment->joined, lower))
		fragment->device->no_rows = true;
	/* of the last join, in the end */
	fragment->device->inner_rows = table.rows;
	return true;
}

/* Makes all tables, until one is empty; false: the device has why_not, or the supply of one has failed. */
bool
gh_device_make_tables(GhFragment *fragment)
{
	GhDevice   *device = fragment->device;
	MemoryContext saved = MemoryContextSwitchTo(device->context);
	instr_time	clock = {0};
	bool		done = true;

	gh_fragment_clock(fragment, NULL, &clock);
	for (int i = 0; i < fragment->joined->nlevels && done && !device->no_rows; i++)
	{
		done = gh_device_begin_table(fragment, i, NULL) && gh_device_supply_table(fragment, i, true) &&
			gh_device_finish_table(fragment, i);
		gh_device_rewind_table(fragment, i, false);
	}
	gh_device_tables_are_done(fragment, done);
	gh_fragment_clock(fragment, &fragment->counts.build_time, &clock);
	MemoryContextSwitchTo(saved);
	return done;
}

/* Where they are not made: why. */
void
gh_device_tables_are_done(GhFragment *fragment, bool made)
{
	GhDevice   *device = fragment->device;

	for (int i = 0; i < GH_SCAN_JOINS_MAX && device->tables[i] != NULL; i++)
		if (!made && device->tables[i]->failed)
			gh_device_give_up(fragment, device->tables[i]);
}

/*
 * The device has gone through to the end: counts what was done for the tables, and tells the inner
 * sides' scans of it, where no join has done it once more for rows that were handed back.
 */
void
gh_device_tell_inner_scans(GhFragment *fragment)
{
	for (int i = 0; i < fragment->joined->nlevels; i++)
	{
		const GhSupply *supply = fragment->device->tables[i];
		PlanState  *scan = fragment->joined->levels[i].lower->children[GH_INNER];

		if (supply == NULL)
			continue;
		gh_device_keep_counts(fragment, supply, &fragment->counts.build_time);
		if (fragment->joined->open)
			continue;
		InstrCountFiltered1(scan, supply->counts.tuples - supply->counts.passed);
		gh_child_start(scan);
		gh_child_stop(scan, (double) supply->counts.passed);
	}
}

void
gh_device_end_tables(GhFragment *fragment)
{
	GhDevice   *device = fragment->device;

	for (int i = 0; i < GH_SCAN_JOINS_MAX; i++)
	{
		if (device->tables[i] != NULL)
			gh_supply_end(device->tables[i]);
		device->tables[i] = NULL;
	}
	device->tables_made = false;
}

/* -------------------------------------------------------- for the outer scan */

static GhScanJoinKind
join_kind(JoinType type)
{
	switch (type)
	{
		case JOIN_INNER:
			return GH_SCAN_INNER;
		case JOIN_LEFT:
			return GH_SCAN_LEFT;
		case JOIN_SEMI:
			return GH_SCAN_SEMI;
		case JOIN_ANTI:
			return GH_SCAN_ANTI;
		case JOIN_RIGHT:
			return GH_SCAN_RIGHT;
		case JOIN_FULL:
			return GH_SCAN_FULL;
		default:
			elog(ERROR, "join type %d is not done by scans", (int) type);
	}
}

/* The joins of the outer scan, with the tables that were made. */
GhScanJoin *
gh_device_joins(GhFragment *fragment)
{
	GhJoined   *joined = fragment->joined;
	GhScanJoin *joins = palloc0(sizeof(GhScanJoin) * joined->nlevels);

	for (int i = 0; i < joined->nlevels; i++)
	{
		GhJoinLevel *level = &joined->levels[i];
		int			nfills = count_kept(level);
		GhScanFill *fills = palloc0(sizeof(GhScanFill) * Max(nfills, 1));

		for (int c = 0; c < nfills; c++)
		{
			fills[c].column = c < level->ncolumns ? level->columns[c].vector : level->place_vector;
			fills[c].kept = c;
		}
		joins[i].table = fragment->device->tables[i]->scan;
		joins[i].kind = join_kind(level->lower->jointype);
		joins[i].nparts = level->nkeys;
		joins[i].parts = gh_joined_parts(level, level->key_vectors);
		joins[i].nfills = nfills;
		joins[i].fills = fills;
	}
	return joins;
}
