/*
 * device_joins.c
 *		The joins' tables of a fragment, made on the device from the inner sides' pages.
 *
 * An inner side is a scan whose pages are supplied like those of the outer one, to a pipeline that makes a table
 * (engine/pipeline/pipeline.h): of the rows that pass the inner scan's conditions, by
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
#include "service/service.h"

/* Pages that a read stream may read ahead. */
#define GH_TABLE_PAGES_AHEAD 128

/* An inner side: what its table is made of. */
typedef struct GhInnerSide
{
	GhFragment *fragment;
	GhJoinLevel *level;
	GhJoined   *joined;			/* it is these joins; NULL: a scan */
	PlanState  *scan;
	Relation	relation;
	GhPages    *pages;
	GhTranslation *translation;
	GhOperand  *keys;
	GhOperand  *kept;			/* by the level's columns; behind them, where it is asked for, the place */
	GhProgram  *program;
	uint32		nfilters;		/* instructions of the scan's conditions */
} GhInnerSide;

static bool
fails(GhFragment *fragment, const char *why)
{
	fragment->device->why_not = why;
	return false;
}

/* --------------------------------------------------------------- the program */

/* A column of the inner side's rows, as the program reads it. */
static bool
translate_column(GhInnerSide *side, int resno, GhOperand *operand)
{
	int			attno = side->joined != NULL ? gh_joined_attno(side->joined, side->joined->sources[resno - 1]) :
		gh_relation_attno(side->scan, resno);

	return gh_translate_attribute(side->translation, attno, operand);
}

/* The columns of an inner side that its table has. */
static int
count_kept(const GhJoinLevel *level)
{
	return level->ncolumns + (level->place_vector >= 0);
}

/* What the outer program reads must be what the table has. */
static bool
is_kept_as_read(const GhInnerSide *side, const GhJoinedColumn *column, const GhOperand *operand)
{
	const GhColumn *kept = &side->translation->columns[operand->vector];

	return kept->load == column->load && kept->scale == column->scale;
}

static bool
translate_side(GhInnerSide *side)
{
	GhJoinLevel *level = side->level;
	const GhLowerJoin *lower = level->lower;
	ParamExecData *awaited = NULL;

	if (!gh_fragment_translate_input(side->fragment, side->translation, side->scan, side->joined, &awaited,
									 &side->nfilters) || awaited != NULL)
		return false;
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

static GhKeyPart *
key_parts(const GhKeySide *keys, int nkeys)
{
	GhKeyPart *parts = palloc0(sizeof(GhKeyPart) * nkeys);

	for (int k = 0; k < nkeys; k++)
		parts[k].bits = keys->columns[k].bits;
	return parts;
}

/* With conditions, a single match may be one of several rows with the key. */
static bool
returns_all_matches(const GhLowerJoin *lower)
{
	return !lower->single_match || lower->join_quals != NIL;
}

/* How the table keeps a column, of a program that was made. */
static GhKept
kept_value(const GhInnerSide *side, const GhOperand *operand)
{
	GhKept		kept = {0};

	kept.vector = gh_final_vector(side->translation, operand);
	kept.value_class = gh_vector_class(operand->value_class);
	kept.bytes = kept.value_class == GH_CLASS_INT ? sizeof(uint64) : 0;
	return kept;
}

/* Where there are marks of them, rows have numbers, and any of a key may be marked. */
static void
set_sink(const GhInnerSide *side, const GhTableOptions *table, GhKeyPart *parts, GhKept *kept, GhSink *sink)
{
	const GhLowerJoin *lower = side->level->lower;
	bool		fills = gh_lower_fills_inner(lower);

	sink->kind = GH_SINK_TABLE;
	sink->table.nparts = side->level->nkeys;
	sink->table.parts = parts;
	sink->table.nkept = count_kept(side->level);
	sink->table.kept = kept;
	sink->table.matches = fills || returns_all_matches(lower) ? GH_MATCHES_ALL : GH_MATCHES_ANY;
	sink->table.numbered = fills;
	sink->table.expected = (uint64) Max(lower->children[GH_INNER]->plan->plan_rows, 1);
	sink->table.seed = table->seed;
	sink->table.subtables = table->subtables;
	sink->table.fill_min = table->fill_min;
	sink->table.fill_max = table->fill_max;
}

static GhTranslation *
begin_translation(const GhInnerSide *side)
{
	if (side->joined != NULL)
		return gh_translate_begin(gh_joined_desc(side->joined), gh_joined_varno(side->joined));
	return gh_translate_begin(RelationGetDescr(side->relation), ((Scan *) side->scan->plan)->scanrelid);
}

/* The side's program; with it, the tables of its own joins are known to keep what it reads of them. */
static bool
make_program(GhInnerSide *side)
{
	side->keys = palloc0(sizeof(GhOperand) * side->level->nkeys);
	side->kept = palloc0(sizeof(GhOperand) * Max(count_kept(side->level), 1));
	side->translation = begin_translation(side);
	if (!translate_side(side) || (side->program = gh_translate_end(side->translation)) == NULL)
		return false;
	if (side->joined == NULL)
		return true;
	gh_joined_forget_columns(side->joined);
	gh_joined_take_columns(side->joined, side->program);
	return true;
}

static GhProbe *make_probes(const GhDeviceRun *device, const GhJoined *joined);

/* Options of the pipeline that makes the table.  The tables of the side's own joins are there. */
static void
table_options(GhInnerSide *side, GhPipelineOptions *options)
{
	const GhDeviceRun *device = side->fragment->device;
	const GhJoinLevel *level = side->level;
	GhKeyPart *parts = key_parts(level->lower->keys[GH_INNER], level->nkeys);
	int			nkept = count_kept(level);
	GhKept	   *kept = palloc(sizeof(GhKept) * Max(nkept, 1));
	GhTableOptions table;

	for (int k = 0; k < level->nkeys; k++)
		parts[k].vector = gh_final_vector(side->translation, &side->keys[k]);
	for (int c = 0; c < nkept; c++)
		kept[c] = kept_value(side, &side->kept[c]);
	gh_stage_options(side->relation, side->program, options);
	gh_fragment_add_steps(side->joined, side->nfilters, options);
	if (side->joined != NULL)
		options->probes = make_probes(device, side->joined);
	gh_device_options(device->engine, device->number, options, &table);
	set_sink(side, &table, parts, kept, &options->sink);
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

/* Whether the inner side is pages that make a table, with joins or without; and which. */
static bool
find_side(GhFragment *fragment, GhJoinLevel *level, GhInnerSide *side)
{
	const GhLowerJoin *lower = level->lower;

	side->fragment = fragment;
	side->level = level;
	side->joined = level->inner;
	if (side->joined == NULL && lower->pages[GH_INNER] == NULL)
		return fails(fragment, "an inner side is not a plain scan");
	if (lower->keys[GH_INNER]->has_exprs)
		return fails(fragment, "an inner key is an expression");
	if (level->has_no_columns)
		return fails(fragment, "columns of an inner side are read of which there is no row");
	/* there are tuples of several tables */
	if (side->joined != NULL && level->place_vector >= 0)
		return fails(fragment, "tuples of an inner side that is joins are fetched");
	side->scan = side->joined != NULL ? side->joined->scan : lower->children[GH_INNER];
	side->relation = ((ScanState *) side->scan)->ss_currentRelation;
	side->pages = side->joined != NULL ? gh_joined_pages(side->joined) : lower->pages[GH_INNER];
	return true;
}

/* Adds the tables of joins, those first that others are made with, and *rank is above all of theirs; false: they are too many. */
static bool
add_tables(GhDeviceRun *device, GhJoined *joined, int *rank)
{
	for (int i = 0; i < joined->nlevels; i++)
	{
		GhJoinLevel *level = &joined->levels[i];
		GhDeviceTable *table;
		int			own = 0;

		if ((level->inner != NULL && !add_tables(device, level->inner, &own)) || device->ntables == GH_PROBES_MAX)
			return false;
		level->table = device->ntables++;
		table = &device->tables[level->table];
		table->joined = joined;
		table->level = level;
		table->rank = own;
		*rank = Max(*rank, own + 1);
	}
	return true;
}

/* Before anything else of a run: which tables there are to be; none where they are too many. */
void
gh_device_list_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;

	device->ntables = device->nranks = 0;
	if (!add_tables(device, fragment->joined, &device->nranks))
		device->ntables = 0;
}

/*
 * Looks at what the tables are made of, and makes the programs for it.  What a program reads of a join's inner side is what
 * its table keeps, so it goes from the fragment's program down.  False: the device has why_not.
 */
static bool
prepare_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;

	for (int i = device->ntables - 1; i >= 0; i--)
	{
		GhInnerSide *side;

		if (device->tables[i].side != NULL)
			continue;
		side = palloc0(sizeof(GhInnerSide));
		if (!find_side(fragment, device->tables[i].level, side))
			return false;
		if (!make_program(side))
			return fails(fragment, "an inner side has conditions or columns that the engines have not");
		device->tables[i].side = side;
	}
	return true;
}

/* Of a table that participants share, only this process's handles go. */
static void
drop_table(const GhDeviceRun *device, GhDeviceTable *made)
{
	const GhEngine *engine = device->engine;

	if (made->marks != NULL)
		engine->pipelines->marks_destroy(made->marks);
	if (made->table != NULL && device->together)
		engine->table_detach(made->table);
	else if (made->table != NULL)
		engine->table_destroy(made->table);
	made->marks = NULL;
	made->table = NULL;
}

/* Of a run that ended with an error; supplies see to themselves. */
static void
release_tables(void *arg)
{
	GhDeviceRun   *device = ((GhFragment *) arg)->device;

	for (int i = 0; i < GH_PROBES_MAX; i++)
		drop_table(device, &device->tables[i]);
}

/* All tables go with the run's context, when the pipelines that probe them have gone. */
static void
register_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;

	if (device->callback.func != NULL)
		return;
	device->callback.func = release_tables;
	device->callback.arg = fragment;
	MemoryContextRegisterResetCallback(device->context, &device->callback);
}

/* Begins a side's pipeline on the device; shared: as of gh_supply_begin. */
bool
gh_device_begin_table(GhFragment *fragment, int number, GhRef *shared)
{
	GhDeviceRun   *device = fragment->device;
	GhInnerSide *side;
	GhSupply   *supply;
	GhPipelineOptions options;
	bool		begun;

	if (!prepare_tables(fragment))
		return false;
	side = device->tables[number].side;
	if (side->joined != NULL)
		gh_joined_enter(side->joined);
	gh_child_start(side->scan);
	gh_pages_begin(side->pages, side->scan);
	gh_child_stop(side->scan, 0);
	/* in an earlier run the join may have read it, and keeps its table over rescans */
	if (gh_pages_have_begun(side->pages))
		gh_device_rewind_table(fragment, number, false);
	table_options(side, &options);
	register_tables(fragment);
	supply = device->tables[number].supply = palloc0(sizeof(GhSupply));
	begun = gh_supply_begin(supply, device->engine, &options, shared, side->pages, device->context);
	supply->row_back = refuse_row;
	supply->arg = supply;
	supply->timing = fragment->timing;
	return begun;
}

/* What is read for a table. */
static PlanState *
scan_of(const GhDeviceTable *table)
{
	const GhJoinLevel *level = table->level;

	return level->inner != NULL ? level->inner->scan : level->lower->children[GH_INNER];
}

/*
 * Supplies the side's pages: this process's part of them, where participants share the scan, and
 * else all of them or, if another one is elected, none.
 */
bool
gh_device_supply_table(GhFragment *fragment, int number, bool elected)
{
	GhSupply   *supply = fragment->device->tables[number].supply;
	bool		reads = elected || scan_of(&fragment->device->tables[number])->plan->parallel_aware;
	bool		done = true;

	gh_supply_open_pages(supply, true);
	/* without buffers it leaves its part to the elected one, which reads to the end or refuses */
	if (reads && !elected && !gh_supply_take_buffers(supply))
		reads = supply->failed = false;
	while (done && reads && gh_pages_next(supply->pages, GH_TABLE_PAGES_AHEAD))
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
	PlanState  *child = scan_of(&fragment->device->tables[number]);

	if (!IsA(child, SeqScanState))
		return;
	if (for_all)
		gh_child_rewind_for_all(child);
	gh_child_rewind(child);
}

static bool
drops_without_match(const GhLowerJoin *lower)
{
	return lower->jointype == JOIN_INNER || lower->jointype == JOIN_SEMI;
}

/* Whether nothing comes out of all the joins where this one's inner side is empty. */
static bool
needs_inner_rows(const GhFragment *fragment, const GhDeviceTable *table)
{
	const GhJoined *joined = fragment->joined;
	const GhLowerJoin *lower = table->level->lower;

	/* joins of an inner side: that may be empty, and then it is looked at */
	if (table->joined != joined)
		return false;
	/* where a right or full join is above, its inner rows come out without a match */
	if (joined->fills_inner)
		return lower->jointype == JOIN_RIGHT;
	return drops_without_match(lower);
}

/*
 * What is not there yet: the table, of all that was supplied, and marks of its rows, where it is a right or full join's.
 * *shared: the name of marks that other processes are to set, too, or NULL.
 */
static GhStatus
make_table(GhFragment *fragment, int number, GhRef *shared)
{
	GhDeviceRun   *device = fragment->device;
	GhDeviceTable *made = &device->tables[number];
	GhError    *error = &made->supply->error;
	GhHost		host;

	gh_host_init(&host, device->context);
	if (made->table == NULL)
	{
		GhMadeTable table;
		GhStatus	status = device->engine->pipelines->make_table(made->supply->pipeline, &table, error);

		if (status != GH_OK)
			return status;
		made->table = table.table;
		made->rows = table.rows;
	}
	if (made->marks != NULL || !gh_lower_fills_inner(made->level->lower))
		return GH_OK;
	if (device->together)
		return gh_service_marks_create_shared(&host, made->table, shared, &made->marks, error);
	return device->engine->pipelines->marks_create(&host, made->table, &made->marks, error);
}

/* Makes the table; *marks: as of make_table. */
bool
gh_device_finish_table(GhFragment *fragment, int number, GhRef *marks)
{
	GhDeviceTable *made = &fragment->device->tables[number];
	GhStatus	status;

	while ((status = make_table(fragment, number, marks)) == GH_STOPPED)
		gh_serve_interrupt();
	made->supply->failed = status != GH_OK;
	if (made->supply->failed)
		return false;
	if (made->rows == 0 && needs_inner_rows(fragment, made))
		fragment->device->no_rows = true;
	/* of the last join, in the end */
	fragment->device->inner_rows = made->rows;
	return true;
}

/* What is not there yet: a handle on a table that another participant has made, and on its marks, unless they are 0. */
static GhStatus
attach_table(GhDeviceRun *device, GhDeviceTable *made, GhRef table, GhRef marks, GhError *error)
{
	GhStatus	status = GH_OK;
	GhHost		host;

	gh_host_init(&host, device->context);
	if (made->table == NULL)
		status = device->engine->table_attach(&host, table, &made->table, error);
	if (status == GH_OK && marks != 0 && made->marks == NULL)
		status = gh_service_marks_attach(marks, &host, &made->marks, error);
	return status;
}

/* False: this participant has no handles, and the device why_not. */
bool
gh_device_attach_table(GhFragment *fragment, int number, GhRef table, GhRef marks)
{
	GhDeviceRun   *device = fragment->device;
	GhError		error;
	GhStatus	status;

	register_tables(fragment);
	while ((status = attach_table(device, &device->tables[number], table, marks, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	return status == GH_OK || fails(fragment, "tables that another process has made on the GPU are out of reach");
}

/* Whether an inner side that is joins has no rows, since a table of these is empty. */
static bool
is_known_empty(const GhDeviceRun *device, const GhInnerSide *side)
{
	for (int i = 0; side->joined != NULL && i < side->joined->nlevels; i++)
	{
		const GhJoinLevel *level = &side->joined->levels[i];

		if (device->tables[level->table].rows == 0 && drops_without_match(level->lower))
			return true;
	}
	return false;
}

/* Makes all tables, until one is empty; false: the device has why_not, or the supply of one has failed. */
bool
gh_device_make_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	MemoryContext saved = MemoryContextSwitchTo(device->context);
	instr_time	clock = {0};
	bool		done = true;

	gh_fragment_clock(fragment, NULL, &clock);
	for (int i = 0; i < device->ntables && done && !device->no_rows; i++)
	{
		done = gh_device_begin_table(fragment, i, NULL) &&
			gh_device_supply_table(fragment, i, !is_known_empty(device, device->tables[i].side)) &&
			gh_device_finish_table(fragment, i, NULL);
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
	GhDeviceRun   *device = fragment->device;

	/* of a later rank there may be none where one before failed */
	for (int i = 0; i < device->ntables; i++)
		if (!made && device->tables[i].supply != NULL && device->tables[i].supply->failed)
			gh_device_give_up(fragment, device->tables[i].supply);
}

/*
 * The device has gone through to the end: counts what was done for the tables, and tells the inner
 * sides' scans of it, where no join has done it once more for rows that were handed back.
 */
void
gh_device_tell_inner_scans(GhFragment *fragment)
{
	for (int i = 0; i < fragment->device->ntables; i++)
	{
		const GhDeviceTable *table = &fragment->device->tables[i];
		const GhSupply *supply = table->supply;
		PlanState  *scan = scan_of(table);

		if (supply == NULL)
			continue;
		gh_device_keep_counts(fragment, supply, &fragment->counts.build_time);
		if (fragment->joined->open)
			continue;
		InstrCountFiltered1(scan, supply->counts.tuples - supply->counts.passed[0]);
		gh_child_start(scan);
		gh_child_stop(scan, (double) supply->counts.passed[0]);
		if (table->level->inner != NULL)
			gh_joined_add_rows(table->level->inner, supply->counts.passed);
	}
}

/* No pipeline probes them any more. */
void
gh_device_end_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;

	for (int i = 0; i < GH_PROBES_MAX; i++)
	{
		drop_table(device, &device->tables[i]);
		if (device->tables[i].supply != NULL)
			gh_supply_end(device->tables[i].supply);
		device->tables[i].supply = NULL;
		device->tables[i].side = NULL;
	}
	device->tables_made = false;
}

/* ------------------------------------------------------ for the outer side's pipeline */

/* The probes of the tables that were made, of a chain. */
static GhProbe *
make_probes(const GhDeviceRun *device, const GhJoined *joined)
{
	GhProbe    *probes = palloc(sizeof(GhProbe) * joined->nlevels);

	for (int i = 0; i < joined->nlevels; i++)
	{
		const GhJoinLevel *level = &joined->levels[i];
		const GhDeviceTable *made = &device->tables[level->table];
		int			nfills = count_kept(level);
		GhProbeFill *fills = palloc0(sizeof(GhProbeFill) * Max(nfills, 1));

		for (int c = 0; c < nfills; c++)
		{
			fills[c].column = c < level->ncolumns ? level->columns[c].vector : level->place_vector;
			fills[c].kept = c;
		}
		gh_joined_probe(level, level->key_vectors, made->table, made->marks, &probes[i]);
		probes[i].nfills = nfills;
		probes[i].fills = fills;
	}
	return probes;
}

GhProbe *
gh_device_probes(GhFragment *fragment)
{
	return make_probes(fragment->device, fragment->joined);
}
