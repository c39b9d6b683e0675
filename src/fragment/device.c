/*
 * device.c
 *		A fragment whose rows never pass through the host: pages go to the device, and
 *		groups or rows come back.
 *
 * The program is that of the CPU engine's way (input.c), but a pipeline on the device does the pages:
 * supply.c brings them there, device_joins.c has the tables made.  Rows that it hands back are added here, by
 * PostgreSQL's expressions, to the same groups or rows that its results go to.
 *
 * Nothing comes out of the node before all is read.  So when the device is lost, or cannot go on, its
 * part and that of the rows handed back are forgotten, and this participant reads the same blocks
 * again, by the CPU engine and under the same snapshot, as if there had been no device.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "expr/translate.h"
#include "fragment/device.h"
#include "fragment/joined.h"
#include "fragment/shared_groups.h"
#include "gpuhash.h"
#include "heap/layout.h"
#include "service/placement.h"
#include "service/service.h"

/* Bytes of results that are fetched at once, where memory is short. */
#define GH_RESULTS_PIECE_MIN ((Size) 64 * 1024)

void
gh_device_init(GhFragment *fragment)
{
	fragment->device = palloc0(sizeof(GhDeviceRun));
	fragment->device->fragment = fragment;
	fragment->device->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHash device",
												  ALLOCSET_SMALL_SIZES);
}

/* ------------------------------------------------------------ whether to */

/* Why a device cannot do what the node does; NULL: it can. */
static const char *
why_not_on_device(const GhFragment *fragment)
{
	const char *why_not = fragment->methods->why_not_on_device(fragment);

	if (why_not != NULL)
		return why_not;
	if (fragment->joined != NULL && fragment->member != NULL && !gh_service_enabled())
		return "joins in parallel queries need the service";
	if (fragment->joined != NULL && fragment->device->ntables == 0)
		return "there are too many joins";
	return NULL;
}

/* What the run costs, whose scan has begun. */
static void
add_run_costs(const GhFragment *fragment, GhRunCosts *costs)
{
	gh_add_scan_costs(costs, fragment->pages, fragment->ninstructions);
	for (int i = 1; i < fragment->nparts; i++)
	{
		gh_pages_begin(&fragment->parts[i].pages, fragment->parts[i].scan);
		gh_add_part_costs(costs, &fragment->parts[i].pages, fragment->ninstructions);
	}
	for (int i = 0; fragment->joined != NULL && i < fragment->joined->nlevels; i++)
	{
		const GhLowerJoin *lower = fragment->joined->levels[i].lower;
		PlanState  *inner = lower->children[GH_INNER];

		/* other inner sides' rows were read before, or are read once by either engine */
		if (lower->pages[GH_INNER] != NULL)
			gh_add_join_costs(costs, ((ScanState *) inner)->ss_currentRelation, !bms_is_empty(inner->plan->extParam),
							  fragment->pages);
	}
}

/* Rows of the tables that are read: of the scan, if it has any, and of those it is joined with. */
static double
rows_read(const GhFragment *fragment)
{
	double		rows = gh_fragment_rows(fragment);

	for (int i = 0; rows > 0 && fragment->joined != NULL && i < fragment->joined->nlevels; i++)
	{
		const GhLowerJoin *lower = fragment->joined->levels[i].lower;
		Relation	inner;

		if (lower->pages[GH_INNER] == NULL)
			continue;
		inner = ((ScanState *) lower->children[GH_INNER])->ss_currentRelation;
		rows += gh_rows_of_pages(inner, RelationGetNumberOfBlocks(inner));
	}
	return rows;
}

/* Sets the engine that is to do the pages; false: the CPU engine does them. */
static bool
choose_engine(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	GhRunCosts	costs = {0};
	bool		is_child = fragment->scan != &fragment->css.ss.ps;
	bool		again;

	device->tried = true;
	if (gh_engine_setting == GH_ENGINE_CPU)
		return false;
	if ((device->why_not = why_not_on_device(fragment)) != NULL)
		return false;
	/* a scan that is the node itself is being executed */
	if (is_child)
		gh_child_start(fragment->scan);
	gh_pages_begin(fragment->pages, fragment->scan);
	if (is_child)
		gh_child_stop(fragment->scan, 0);
	/* all participants of a parallel query do the same */
	again = fragment->rescanned && fragment->member == NULL;
	if (again)
		add_run_costs(fragment, &costs);
	device->engine = gh_choose_scan_engine(rows_read(fragment), again ? &costs : NULL, &device->number,
										   &device->why_not);
	if (device->engine == NULL)
		return false;
	gh_shared_groups_choose_device(fragment, &device->number);
	gh_device_set_choose(fragment);
	return true;
}

/* -------------------------------------------------------------- the pipeline */

static void
make_options(GhFragment *fragment, GhPipelineOptions *options)
{
	GhDeviceRun   *device = fragment->device;
	GhTableOptions table;

	gh_fragment_stage_options(fragment, fragment->joined != NULL ? gh_device_probes(fragment) : NULL, options);
	gh_device_options(device->engine, device->number, options, &table);
	fragment->methods->device_sink(fragment, &options->sink);
	options->sink.groups.seed = table.seed;
}

/* Makes a pipeline of the program, which pages go to; false: the supply says why not. */
bool
gh_device_begin_supply(GhFragment *fragment, GhSupply *supply, GhPages *pages)
{
	GhDeviceRun   *device = fragment->device;
	GhPipelineOptions options;

	make_options(fragment, &options);
	return gh_supply_begin(supply, device->engine, &options, NULL, pages, device->context);
}

/* The same of the node's own run: it may have its groups in common with other nodes. */
static bool
begin_run(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	GhPipelineOptions options;

	make_options(fragment, &options);
	return gh_shared_groups_begin(fragment, &device->supply, &options, &device->has_groups) ||
		gh_supply_begin(&device->supply, device->engine, &options, NULL, fragment->pages, device->context);
}

/* ------------------------------------------------------- rows that come back */

/*
 * Makes the joins' tables on the host, too: a row that was handed back is to be joined.  False: the supply
 * has failed.
 */
bool
gh_device_open_host_tables(GhFragment *fragment)
{
	GhSupply   *supply = &fragment->device->supply;

	if (fragment->joined == NULL || fragment->joined->open)
		return true;
	if (gh_joined_open_tables(fragment, true))
		return true;
	supply->failed = true;
	(void) gh_error_set(&supply->error, GH_DECLINED,
						"rows that the device handed back must be joined one by one");
	return false;
}

/*
 * GhRowBack.  Where the order of rows can be told from the result, this one has its turn among the others:
 * added after them, or without them, floats might overflow that do not in PostgreSQL's order.
 */
static void
add_row(void *arg, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	GhFragment *fragment = arg;
	GhSupply   *supply = &fragment->device->supply;

	if (supply->failed)
		return;
	if (fragment->methods->order_matters(fragment))
	{
		supply->failed = true;
		(void) gh_error_set(&supply->error, GH_DECLINED,
							"rows that the device handed back must be added in their order");
		return;
	}
	/* where the joins then do all, not even this process's part is of any use */
	if (fragment->device->together && !fragment->joined->fills_inner)
	{
		gh_device_keep_row(fragment->device, fragment->part, block, line);
		return;
	}
	if (!gh_device_open_host_tables(fragment))
		return;
	fragment->counts.rows += gh_add_tuple(fragment, buffer, block, line);
	ExecClearTuple(((ScanState *) fragment->scan)->ss_ScanTupleSlot);
	fragment->methods->keep_within_memory(fragment);
}

/* ---------------------------------------------------------------- results */

static void
take_records(void *arg, const char *records, Size bytes)
{
	GhFragment *fragment = arg;

	fragment->methods->take_records(fragment, records, bytes);
}

/* Bytes of results that are kept at a time. */
Size
gh_device_piece(const GhFragment *fragment)
{
	return Max(fragment->memory_limit / 4, GH_RESULTS_PIECE_MIN);
}

/* The device's groups, or rows, are kept: all, or what is left of them. */
static bool
keep_results(GhFragment *fragment)
{
	GhSupply   *supply = &fragment->device->supply;

	if (fragment->device->set != NULL)
		return gh_device_set_keep_results(fragment, take_records);
	/* it has supplied nothing, or had no buffers and left that to others */
	if (supply->buffers[0] == NULL)
		return true;
	if (fragment->methods->narrow != NULL && fragment->methods->narrow(fragment))
		return !supply->failed;
	return gh_supply_fetch(supply, gh_device_piece(fragment), take_records, fragment);
}

/* Tells a scan below what the device has done in its place. */
static void
tell_scan(PlanState *scan, Relation relation, uint64 tuples, uint64 passed)
{
	pgstat_count_index_tuples(relation, tuples);
	InstrCountFiltered1(scan, tuples - passed);
	gh_child_start(scan);
	gh_child_stop(scan, (double) passed);
}

/* Likewise those of the inner sides. */
static void
tell_inner_scans(GhFragment *fragment)
{
	bool		told[GH_PROBES_MAX] = {false};

	gh_device_tell_inner_scans(fragment, told);
}

static void
tell_parts(const GhFragment *fragment)
{
	for (int i = 0; i < fragment->nparts; i++)
	{
		GhFragmentPart *part = &fragment->parts[i];

		/* not those that were read before the device was begun */
		if (part->tuples > 0)
			tell_scan(part->scan, part->pages.relation, part->tuples, part->passed);
		part->tuples = part->passed = 0;
	}
}

/* Likewise all nodes below. */
static void
tell_children(GhFragment *fragment)
{
	const GhSupplyCounts *counts = &fragment->device->supply.counts;
	uint64		passed = counts->passed[0] + fragment->counts.rows;
	uint64		steps[GH_STEPS_MAX];

	fragment->counts.rows = passed;
	if (fragment->parts != NULL)
		tell_parts(fragment);
	else
		tell_scan(fragment->scan, fragment->pages->relation, counts->tuples, passed);
	if (fragment->joined == NULL)
		return;
	if (fragment->device->set == NULL)
		tell_inner_scans(fragment);
	/* they come out of the last join's probe, too */
	memcpy(steps, counts->passed, sizeof(steps));
	steps[fragment->joined->levels[fragment->joined->nlevels - 1].step] += counts->unmatched;
	gh_joined_add_rows(fragment->joined, steps);
}

/* No row has come in: the groups were there. */
static void
count_shared(GhFragment *fragment)
{
	GhPipeline *pipeline = fragment->device->supply.pipeline;
	GhPipelineStats stats = {0};
	GhError		error;

	(void) pipeline->engine->stats(pipeline, &stats, &error);
	fragment->counts.groups_shared += stats.entries;
	fragment->counts.on_device = true;
}

static uint64
memory_of_pipeline(GhPipeline *pipeline)
{
	GhPipelineStats stats;
	GhError		error;

	if (pipeline->engine->stats(pipeline, &stats, &error) != GH_OK)
		return 0;
	return stats.bytes_peak + stats.work_bytes;
}

void
gh_device_keep_counts(GhFragment *fragment, const GhSupply *supply, instr_time *elapsed)
{
	GhFragmentCounts *counts = &fragment->counts;

	gh_counts_add_supply(counts, supply, elapsed);
	/* what is shared counts once */
	if (!supply->attached)
		counts->device_memory += memory_of_pipeline(supply->pipeline);
	for (int i = 0; i < supply->nlevels; i++)
		counts->device_memory += memory_of_pipeline(supply->levels[i]);
}

/* ---------------------------------------------------------------- the run */

/* The device cannot go on: what it did is forgotten. */
void
gh_device_give_up(GhFragment *fragment, const GhSupply *supply)
{
	gh_supply_gave_up(supply, fragment->methods->doing, fragment->counts.fallback_reason,
					  sizeof(fragment->counts.fallback_reason));
}

static void
end_run(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;

	gh_device_set_end(fragment);
	if (device->running)
	{
		gh_shared_groups_end(fragment);
		gh_supply_end(&device->supply);
	}
	device->running = false;
	gh_device_end_tables(fragment);
}

/* Whether another node has made the groups: then no table is needed. */
static bool
groups_are_there(GhFragment *fragment)
{
	MemoryContext saved = MemoryContextSwitchTo(fragment->device->context);
	GhPipelineOptions options;
	bool		there = false;

	if (gh_shared_groups_apply(fragment))
	{
		make_options(fragment, &options);
		there = gh_shared_groups_are_there(fragment, &options);
	}
	MemoryContextSwitchTo(saved);
	return there;
}

/* For a node over joins, before it reads anything: has their tables made on the device. */
GhDeviceTables
gh_device_open_joins(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	GhDeviceTables result = GH_DEVICE_NO_TABLES;
	bool		able;

	if (device->tried)
		return GH_DEVICE_NO_TABLES;
	/* with changed parameters, it is not yet known of the scan that it begins anew */
	gh_joined_reset(fragment);
	gh_device_list_tables(fragment);
	able = choose_engine(fragment);
	/* whether a device is there may look different to others, but all do the same */
	device->together = fragment->member != NULL && gh_service_enabled() && gh_engine_setting != GH_ENGINE_CPU;
	if (!able && !device->together)
		return GH_DEVICE_NO_TABLES;
	if (able)
		gh_device_run_first(fragment);
	if (able && !gh_fragment_compile(fragment))
	{
		device->why_not = fragment->program.why_not;
		able = false;
	}
	if (device->together)
		result = gh_device_make_tables_together(fragment, able);
	else if (able && groups_are_there(fragment))
		result = GH_DEVICE_TABLES;
	else if (able && gh_device_set_make_tables(fragment))
		result = device->no_rows ? GH_DEVICE_NO_INPUT : GH_DEVICE_TABLES;
	device->tables_made = result == GH_DEVICE_TABLES;
	if (device->no_rows)
		tell_inner_scans(fragment);
	if (!device->tables_made)
		gh_device_end_tables(fragment);
	return result;
}

/* Has the node look at some pages, if it wants to. */
static void
look_at_sample(GhFragment *fragment)
{
	instr_time	clock = {0};

	if (fragment->methods->sample == NULL)
		return;
	gh_fragment_clock(fragment, NULL, &clock);
	fragment->methods->sample(fragment);
	gh_fragment_clock(fragment, &fragment->counts.source_time, &clock);
}

/*
 * Of a fragment that has a program: makes the pipeline that the pages are to go to.  False: it is none of a
 * device, or cannot be made.
 */
bool
gh_device_begin(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	MemoryContext saved;

	if (fragment->joined == NULL && !choose_engine(fragment))
		return false;
	saved = MemoryContextSwitchTo(device->context);
	/* of several, this one may have failed to make tables */
	if (!device->lost)
	{
		look_at_sample(fragment);
		device->running = begin_run(fragment);
	}
	MemoryContextSwitchTo(saved);
	device->supply.timing = fragment->timing;
	if (device->set != NULL)
		return gh_device_set_begin(fragment);
	/* with joins, all begins anew, or others do all */
	if (!device->running && fragment->joined == NULL)
		gh_device_give_up(fragment, &device->supply);
	return device->running;
}

/* Whether the rest of the pages are to go to the device: asked before each, until it is known. */
bool
gh_device_wants(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	bool		begun;

	if (fragment->joined != NULL ? !device->tables_made : device->tried)
		return false;
	/* without joins, a subquery's result may still be awaited */
	if (!gh_fragment_compile(fragment))
		return false;
	begun = gh_device_begin(fragment);
	if (device->set == NULL)
	{
		device->supply.row_back = add_row;
		device->supply.arg = fragment;
	}
	return begun || fragment->joined != NULL;
}

/*
 * Supplies the scan's pages that are left.  False: the supply has failed, or had done so before.  Together,
 * all pages have been taken then, too, for the others do not come back to those that are left.
 */
static bool
supply_scan(GhFragment *fragment, bool done)
{
	GhDeviceRun   *device = fragment->device;

	gh_pages_begin(fragment->pages, fragment->scan);
	if (done)
		gh_supply_open_pages(&device->supply, !fragment->methods->adds_floats(fragment));
	while ((done || device->together) && gh_pages_next(fragment->pages, GH_PAGES_AHEAD_MAX))
	{
		gh_device_log(device, fragment->part, fragment->pages->block, fragment->pages->run);
		done = done && gh_supply_page(&device->supply);
	}
	return done && gh_supply_flush(&device->supply);
}

/* Likewise of all parts that are left, one after the other. */
static bool
supply_parts(GhFragment *fragment)
{
	GhDeviceRun *device = fragment->device;
	GhSupply   *supply = &device->supply;
	uint64		tuples = 0;
	uint64		passed = 0;
	bool		supplied = false;
	bool		done = true;

	do
	{
		GhFragmentPart *part = &fragment->parts[fragment->part];

		if (done && supply->pages != &part->pages)
			gh_supply_turn_to(supply, &part->pages);
		done = supply_scan(fragment, done);
		part->tuples = supply->counts.tuples - tuples;
		part->passed = supply->counts.passed[0] + fragment->counts.rows - passed;
		tuples += part->tuples;
		passed += part->passed;
		supplied |= supply->buffers[0] != NULL;
	} while ((done || device->together) && gh_parts_next(fragment));
	/* results come through them */
	return done && (!supplied || gh_supply_take_buffers(supply));
}

/* All pages that are left; none where the groups are there. */
static bool
supply_pages(GhFragment *fragment)
{
	if (fragment->device->set != NULL)
		return gh_device_set_read(fragment);
	if (fragment->device->has_groups)
		return gh_supply_take_buffers(&fragment->device->supply);
	return fragment->parts != NULL ? supply_parts(fragment) : supply_scan(fragment, true);
}

/* This participant has done its part, but another one could not. */
static void
fail_with_others(GhFragment *fragment)
{
	fragment->counts.fell_with_others = true;
	(void) gh_error_set(&fragment->device->supply.error, GH_DECLINED, "another process could not join on the device");
}

/*
 * Of a right or full join, asks for the inner rows that had no match, as one of the participants: all that
 * had one are marked when everybody has read, if no row was handed back to anyone.  done: so it was here.
 * False: the supply has failed, or another one's.
 */
static bool
supply_unmatched(GhFragment *fragment, bool done)
{
	GhDeviceRun   *device = fragment->device;
	bool		asks = true;

	if (device->together && !gh_device_all_have_read(fragment, done, &asks))
	{
		if (done)
			fail_with_others(fragment);
		return false;
	}
	return done && (!asks || gh_supply_unmatched(&device->supply,
												 fragment->joined->levels[fragment->joined->nlevels - 1].step,
												 device->inner_rows));
}

/*
 * Has the device read the pages that are left.  True: that was all; false: it could not, the same
 * pages were read by the CPU engine or are to be, and *input is what is left.
 */
bool
gh_device_read(GhFragment *fragment, GhJoinedInput *input)
{
	GhDeviceRun   *device = fragment->device;
	instr_time	clock = {0};
	uint64		before = fragment->counts.rows;
	GhJoinedInput left = GH_JOINED_PAGES;
	bool		done;

	gh_fragment_clock(fragment, NULL, &clock);
	device->read_before = gh_device_pages_logged(device);
	fragment->counts.rows = 0;
	done = (device->together && gh_device_leaves_pages(fragment)) ||
		((device->running || device->set != NULL) && supply_pages(fragment));
	gh_pages_park(fragment->pages);
	if (device->running && device->set == NULL)
		gh_supply_close_pages(&device->supply);
	if (fragment->joined != NULL && fragment->joined->fills_inner)
		done = supply_unmatched(fragment, done);
	if (done)
		gh_shared_groups_offer(fragment);
	gh_fragment_clock(fragment, &fragment->counts.source_time, &clock);
	done = done && keep_results(fragment);
	gh_fragment_clock(fragment, &fragment->counts.merge_time, &clock);
	if (device->together)
		left = gh_device_meet(fragment, !done || gh_device_set_keeps_rows(fragment), gh_device_set_has_begun(fragment));
	if (done && left != GH_JOINED_NOTHING && device->together)
	{
		done = false;
		if (fragment->joined->fills_inner)
			fail_with_others(fragment);
		else
			(void) gh_error_set(&device->supply.error, GH_DECLINED, "tables of joins do not fit in memory");
		gh_device_set_decline(fragment);
	}
	if (done)
	{
		if (device->set != NULL)
			gh_device_set_finish(fragment);
		else
			gh_device_add_kept_rows(device);
		if (device->running && device->set == NULL)
			gh_device_keep_counts(fragment, &device->supply, &fragment->counts.source_time);
		fragment->counts.pages += device->supply.counts.pages;
		if (device->has_groups)
			count_shared(fragment);
		else
			tell_children(fragment);
		fragment->counts.rows += before;
	}
	else if (device->set != NULL)
		gh_device_set_gave_up(fragment);
	else
		gh_device_give_up(fragment, &device->supply);
	end_run(fragment);
	if (!done)
		*input = gh_device_start_anew(fragment, left);
	return done;
}

/* Before a run with other parameters, or the end. */
void
gh_device_forget(GhFragment *fragment)
{
	GhDeviceRun   *device = fragment->device;
	MemoryContext context = device->context;

	end_run(fragment);
	MemoryContextReset(context);
	memset(device, 0, sizeof(*device));
	device->fragment = fragment;
	device->context = context;
}
