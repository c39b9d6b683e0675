/*
 * device_joins.c
 *		The joins' tables of a fragment, made on the device from the inner sides' pages.
 *
 * An inner side is a scan, or joins over one, whose pages are supplied like those of the outer one, to a
 * pipeline that makes a table (engine/pipeline/pipeline.h): of the rows that come out of it, by the join's
 * key, with the columns that the node's program reads.  The joins themselves make nothing.  Or it is rows of
 * any other plan, which the join stores (device_rows.c).
 *
 * Where that cannot be, or rows of an inner side are handed back, the joins make their tables as ever, on
 * the CPU engine.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "fragment/device.h"
#include "fragment/inner_side.h"
#include "fragment/joined.h"
#include "service/placement.h"
#include "service/service.h"
#include "store/index_copies.h"

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

/* Rows that come back are such. */
void
gh_device_refuse_rows(GhSupply *supply)
{
	supply->row_back = refuse_row;
	supply->arg = supply;
}

/*
 * Adds the tables of joins, those first that others are made with, and *rank is above all of theirs; false:
 * they are too many.
 */
static bool
add_tables(GhDeviceRun *device, GhJoined *joined, int *rank)
{
	if (gh_joined_first_within_limits(joined) > 0)
		return false;
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
	device->executor = -1;
	if (!add_tables(device, fragment->joined, &device->nranks))
		device->ntables = 0;
}

/* Before the first table is made or borrowed: whose tables they are to be, for all that a pipeline probes are of one. */
void
gh_device_choose_executor(GhFragment *fragment)
{
	fragment->device->executor = gh_device_has_copies(fragment) ? GH_DEVICE_COPY_EXECUTOR : -1;
	gh_service_use_table_executor(fragment->device->executor);
}

/*
 * Looks at what the tables are made of, and makes the programs for it.  What a program reads of a join's
 * inner side is what its table keeps, so it goes from the fragment's program down.  False: the device has
 * why_not.
 */
bool
gh_device_prepare_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;

	for (int i = device->ntables - 1; i >= 0; i--)
	{
		GhInnerSide *side;

		if (device->tables[i].side != NULL)
			continue;
		side = palloc0(sizeof(GhInnerSide));
		if (!gh_side_find(fragment, device->tables[i].level, side))
			return false;
		if (!gh_side_make_program(side))
			return gh_device_refuses(fragment, "an inner side has conditions or columns that the engines have not");
		device->tables[i].side = side;
	}
	return true;
}

/* Of a table that participants share, only this process's handles go. */
void
gh_device_drop_table(const GhDeviceRun *device, GhDeviceTable *made)
{
	const GhEngine *engine = device->engine;

	if (made->changed != NULL)
		engine->table_destroy(made->changed);
	if (made->instead != NULL)
		engine->table_destroy(made->instead);
	made->changed = made->instead = NULL;
	made->numbers = NULL;
	if (made->marks != NULL)
		engine->pipelines->marks_destroy(made->marks);
	if (made->table != NULL && (device->together || made->root != 0))
		engine->table_detach(made->table);
	else if (made->table != NULL)
		engine->table_destroy(made->table);
	made->marks = NULL;
	made->table = NULL;
	gh_device_leave_table(made);
}

/* Of a run that ended with an error; supplies see to themselves. */
static void
release_tables(void *arg)
{
	GhDeviceRun   *device = arg;

	for (int i = 0; i < GH_PROBES_MAX; i++)
		gh_device_drop_table(device, &device->tables[i]);
}

/* All tables go with the run's context, when the pipelines that probe them have gone. */
void
gh_device_register_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;

	if (device->callback.func != NULL)
		return;
	device->callback.func = release_tables;
	device->callback.arg = device;
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

	if (!gh_device_prepare_tables(fragment))
		return false;
	side = device->tables[number].side;
	if (side->joined != NULL)
		gh_joined_enter(side->joined);
	if (!side->by_rows)
	{
		gh_child_start(side->scan);
		gh_pages_begin(side->pages, side->scan);
		gh_child_stop(side->scan, 0);
		/* in an earlier run the join may have read it, and keeps its table over rescans */
		if (gh_pages_have_begun(side->pages))
			gh_device_rewind_table(fragment, number, false);
	}
	gh_side_options(side, &options);
	gh_device_register_tables(fragment);
	gh_service_use_table_executor(device->executor);
	supply = device->tables[number].supply = palloc0(sizeof(GhSupply));
	begun = gh_supply_begin(supply, device->engine, &options, shared, side->pages, device->context);
	gh_device_refuse_rows(supply);
	supply->timing = fragment->timing;
	supply->nsupplies = gh_device_set_size(fragment);
	return begun;
}

/* Whether that is rows, which the join stores. */
static bool
is_by_rows(const GhDeviceTable *table)
{
	return table->side != NULL && table->side->by_rows;
}

/* What is read for a table. */
static PlanState *
scan_of(const GhDeviceTable *table)
{
	const GhJoinLevel *level = table->level;

	return level->inner != NULL ? level->inner->scan : level->lower->children[GH_INNER];
}

/* GhPages.has_blocks: those that are on all of the devices that they go to. */
static uint32
all_have_blocks(void *arg, BlockNumber block)
{
	const GhSupplies *all = arg;
	uint32		most = PG_UINT32_MAX;

	for (int i = 0; i < all->count && most > 0; i++)
		if (!all->supplies[i]->failed)
			most = Min(most, gh_supply_has_blocks(all->supplies[i], block));
	return most == PG_UINT32_MAX ? 0 : most;
}

/*
 * Supplies the pages of a side to the devices that make its table, each of which has a supply: this process's
 * part of them, where participants share the scan, and else all of them or, if another one is elected, none.
 * A supply that fails tells so.
 */
void
gh_device_supply_tables(const GhDeviceTable *table, GhSupplies *all, bool elected)
{
	GhPages    *pages = all->supplies[0]->pages;
	bool		reads = elected || scan_of(table)->plan->parallel_aware;
	uint64		tuples = 0;

	gh_supplies_open_pages(all, pages, all_have_blocks, all);
	/* without buffers it leaves its part to the elected one, which reads to the end or refuses */
	if (reads && !elected)
		reads = gh_supplies_take_buffers(all);
	while (reads && gh_supplies_go_on(all) && gh_pages_next(pages, GH_PAGES_AHEAD_MAX))
		gh_supplies_page(all, pages);
	gh_supplies_flush(all);
	gh_pages_park(pages);
	for (int i = 0; i < all->count; i++)
	{
		GhSupply   *supply = all->supplies[i];

		gh_supply_close_pages(supply);
		if (supply->failed)
			continue;
		tuples = supply->counts.tuples;
		gh_supply_free_buffers(supply);
		gh_supply_leave_resident(supply);
	}
	pgstat_count_index_tuples(pages->relation, tuples);
}

/* The join may have to read it all the same; for_all: of a scan that participants share. */
void
gh_device_rewind_table(GhFragment *fragment, int number, bool for_all)
{
	PlanState  *child = scan_of(&fragment->device->tables[number]);

	/* rows are stored */
	if (!IsA(child, SeqScanState) || is_by_rows(&fragment->device->tables[number]))
		return;
	if (for_all)
		gh_child_rewind_for_all(child);
	gh_child_rewind(child);
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
	return gh_drops_without_match(lower);
}

/*
 * What is not there yet: the table, of all that was supplied, and marks of its rows, where it is a right or
 * full join's. *shared: the name of marks that other processes are to set, too, or NULL.
 */
static GhStatus
make_table(GhFragment *fragment, int number, GhRef *shared, GhError *error)
{
	GhDeviceRun   *device = fragment->device;
	GhDeviceTable *made = &device->tables[number];
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

/* Makes what is not there yet of a table, and marks; *marks: as of make_table. */
bool
gh_device_note_table(GhFragment *fragment, int number, GhRef *marks, GhError *error)
{
	GhDeviceTable *made = &fragment->device->tables[number];
	GhStatus	status;

	while ((status = make_table(fragment, number, marks, error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status != GH_OK)
		return false;
	if (made->rows == 0 && needs_inner_rows(fragment, made))
		fragment->device->no_rows = true;
	/* of the last join, whose table need not be made last */
	if (number == fragment->device->ntables - 1)
		fragment->device->inner_rows = made->rows;
	return true;
}

/* Makes the table of what was supplied; *marks: as of make_table. */
bool
gh_device_finish_table(GhFragment *fragment, int number, GhRef *marks)
{
	GhSupply   *supply = fragment->device->tables[number].supply;

	supply->failed = !gh_device_note_table(fragment, number, marks, &supply->error);
	return !supply->failed;
}

/*
 * What is not there yet: a handle on a table that another participant has made, and on its marks, unless they
 * are 0.
 */
static GhStatus
attach_once(GhDeviceRun *device, GhDeviceTable *made, GhRef table, GhRef marks, GhError *error)
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

/*
 * Handles on a table of that name, and on marks, which have to be registered; false: they are out of reach.
 */
bool
gh_device_attach(GhDeviceRun *device, GhDeviceTable *made, GhRef table, GhRef marks)
{
	GhError		error;
	GhStatus	status;

	while ((status = attach_once(device, made, table, marks, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	return status == GH_OK;
}

/* False: this participant has no handles, and the device why_not. */
bool
gh_device_attach_table(GhFragment *fragment, int number, GhRef table, GhRef marks)
{
	GhDeviceRun   *device = fragment->device;

	gh_device_register_tables(fragment);
	return gh_device_attach(device, &device->tables[number], table, marks) ||
		gh_device_refuses(fragment, "tables that another process has made on the GPU are out of reach");
}

/* Whether an inner side that is joins has no rows, since a table of these is empty. */
static bool
is_known_empty(const GhDeviceRun *device, const GhInnerSide *side)
{
	for (int i = 0; side->joined != NULL && i < side->joined->nlevels; i++)
	{
		const GhJoinLevel *level = &side->joined->levels[i];

		if (device->tables[level->table].rows == 0 && gh_drops_without_match(level->lower))
			return true;
	}
	return false;
}

/* Supplies all its pages, or none, to one device. */
static bool
supply_table(const GhDeviceTable *table, bool reads)
{
	GhSupplies	one = {1, {table->supply}};

	gh_device_supply_tables(table, &one, reads);
	return !table->supply->failed;
}

/* Makes one of them, for this process alone. */
static bool
make_one(GhFragment *fragment, int number)
{
	GhDeviceRun   *device = fragment->device;
	GhDeviceTable *table = &device->tables[number];
	bool		by_rows = is_by_rows(table);
	bool		reached = true;
	bool		done = true;
	GhCopyTable copy;

	if (by_rows && !gh_side_store_rows(fragment, number, &reached))
		return gh_device_refuses(fragment, "rows of an inner side do not fit in memory");
	if (device->no_rows)
		return true;
	/* other nodes may have made tables meanwhile */
	gh_service_use_table_executor(device->executor);
	copy = gh_device_copy_table(fragment, number);
	if (copy != GH_COPY_NOT_USED)
		return copy != GH_COPY_FAILED;
	if (gh_device_borrow_table(fragment, number, NULL))
		return true;
	if (!gh_device_begin_table(fragment, number, table->source != NULL ? &table->root : NULL))
		return false;
	if (!by_rows)
		done = supply_table(table, !is_known_empty(device, table->side));
	else if (reached)
		done = gh_side_supply_rows(fragment, number);
	done = done && gh_device_finish_table(fragment, number, NULL);
	if (done)
		gh_device_keep_table(fragment, number);
	gh_device_rewind_table(fragment, number, false);
	return done;
}

/*
 * Makes the tables of a chain up to a level, in the order in which the executor has the inner sides read
 * (joined_open.c): so rows come when it would have them, and it is known by then which tables are empty.
 */
static bool
make_chain(GhFragment *fragment, GhJoined *joined, int number)
{
	GhDeviceRun   *device = fragment->device;
	GhJoinLevel *level;
	bool		asks;

	if (number < 0 || device->no_rows)
		return true;
	level = &joined->levels[number];
	asks = level->lower->methods->asks_outer_first(level->lower);
	if (asks && !make_chain(fragment, joined, number - 1))
		return false;
	/* one that has stayed needs none of the tables that it was made with */
	if (level->inner != NULL && gh_device_borrow_table(fragment, level->table, NULL))
		return asks || make_chain(fragment, joined, number - 1);
	if (level->inner != NULL)
	{
		gh_joined_enter(level->inner);
		if (!make_chain(fragment, level->inner, level->inner->nlevels - 1))
			return false;
	}
	if (!device->no_rows && !make_one(fragment, level->table))
		return false;
	return asks || make_chain(fragment, joined, number - 1);
}

/* The supply of a table that could not be made; NULL: it is none of the device's. */
const GhSupply *
gh_device_failed_supply(const GhDeviceRun *device)
{
	for (int i = 0; i < device->ntables; i++)
		if (device->tables[i].supply != NULL && device->tables[i].supply->failed)
			return device->tables[i].supply;
	return NULL;
}

/* Makes all tables, until one is empty; false: the device has why_not, or the supply of one has failed. */
bool
gh_device_make_tables(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	MemoryContext saved = MemoryContextSwitchTo(device->context);
	instr_time	clock = {0};
	bool		done;

	gh_fragment_clock(fragment, NULL, &clock);
	/* nothing of an inner side is read before it is known that all can be made */
	done = device->ntables > 0 && gh_device_prepare_tables(fragment);
	if (done)
		gh_device_choose_executor(fragment);
	done = done && make_chain(fragment, fragment->joined, fragment->joined->nlevels - 1);
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

	/* of several devices others may go on */
	if (device->set != NULL)
		return;
	/* of a later rank there may be none where one before failed */
	for (int i = 0; i < device->ntables; i++)
		if (!made && device->tables[i].supply != NULL && device->tables[i].supply->failed)
			gh_device_give_up(fragment, device->tables[i].supply);
}

/*
 * The device has gone through to the end: counts what was done for the tables, and tells the inner sides'
 * scans of it, where no join has done it once more for rows that were handed back.  told: by table, those
 * that were told of it, for another device.
 */
void
gh_device_tell_inner_scans(GhFragment *fragment, bool told[GH_PROBES_MAX])
{
	for (int i = 0; i < fragment->device->ntables; i++)
	{
		const GhDeviceTable *table = &fragment->device->tables[i];
		const GhSupply *supply = table->supply;
		PlanState  *scan = scan_of(table);

		if (supply == NULL)
			continue;
		gh_device_keep_counts(fragment, supply, &fragment->counts.build_time);
		/* rows came through the executor, or from an index */
		if (told[i] || fragment->joined->open || is_by_rows(table) || table->copied)
			continue;
		told[i] = true;
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
		gh_device_drop_table(device, &device->tables[i]);
		if (device->tables[i].supply != NULL)
			gh_supply_end(device->tables[i].supply);
		device->tables[i].supply = NULL;
		device->tables[i].side = NULL;
		device->tables[i].looked_for = device->tables[i].copied = false;
		device->tables[i].source = NULL;
	}
	device->tables_made = false;
}

/* ------------------------------------------------------ for the outer side's pipeline */

/* The probes of the tables that were made, of a chain. */
GhProbe *
gh_device_make_probes(const GhDeviceRun *device, const GhJoined *joined)
{
	GhProbe    *probes = palloc(sizeof(GhProbe) * joined->nlevels);

	for (int i = 0; i < joined->nlevels; i++)
	{
		const GhJoinLevel *level = &joined->levels[i];
		const GhDeviceTable *made = &device->tables[level->table];
		int			nfills = gh_side_count_kept(level);
		GhProbeFill *fills = palloc0(sizeof(GhProbeFill) * Max(nfills, 1));

		for (int c = 0; c < nfills; c++)
		{
			fills[c].column = c < level->ncolumns ? level->columns[c].vector : level->place_vector;
			fills[c].kept = c;
		}
		gh_joined_probe(level, level->key_vectors, made->table, made->marks, &probes[i]);
		probes[i].changed = made->changed;
		probes[i].instead = made->instead;
		probes[i].nfills = nfills;
		probes[i].fills = fills;
		gh_device_probe_copy(made, &probes[i], fills);
	}
	return probes;
}

GhProbe *
gh_device_probes(GhFragment *fragment)
{
	return gh_device_make_probes(fragment->device, fragment->joined);
}
