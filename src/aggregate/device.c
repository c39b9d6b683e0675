/*
 * device.c
 *		A GpuHashAggregate whose rows never pass through the host: pages go to the device, and
 *		groups come back.
 *
 * The program, the joins' tables and the groups are those of the CPU engine's way (input.c), but a
 * scan of the engine (engine/pipeline/scan.h) does the pages: supply.c brings them there, device_joins.c has
 * the tables made.  Rows that it hands back are added here, by PostgreSQL's expressions, to the same
 * groups that its results are merged into in the end.
 *
 * Nothing comes out of the node before all is read.  So when the device is lost, or cannot go on, its
 * part and that of the rows handed back are forgotten, and this participant reads the same blocks
 * again, by the CPU engine and under the same snapshot, as if there had been no device.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "aggregate/device.h"
#include "aggregate/joined.h"
#include "gpuhash.h"
#include "heap/layout.h"
#include "service/placement.h"
#include "service/service.h"

/* Pages that a read stream may read ahead. */
#define GH_DEVICE_PAGES_AHEAD 128
/* Bytes of results that are fetched at once, where memory is short. */
#define GH_PIECE_MIN ((Size) 64 * 1024)

#define GH_OTHER_FAILED_MESSAGE "another process could not join on the device"

void
gh_device_init(GhAggregateNode *node)
{
	node->device = palloc0(sizeof(GhDevice));
	node->device->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHashAggregate device",
												  ALLOCSET_SMALL_SIZES);
}

/* ------------------------------------------------------------ whether to */

/* Why the engines' scans cannot do what the node does; NULL: they can. */
static const char *
why_not(const GhAggregateNode *node)
{
	/* which of 0 and -0 a group has would depend on time */
	for (int k = 0; node->collected == NULL && k < node->nkeys; k++)
		if (gh_class_is_float(node->key_types[k].value_class))
			return "a key is a float";
	if (node->nkeys + node->nfetches > GH_SCAN_KEYS_MAX)
		return "there are too many keys";
	if (node->joined != NULL && node->member != NULL && !gh_service_enabled())
		return "joins in parallel queries need the service";
	if (node->joined != NULL && node->joined->nlevels > GH_SCAN_JOINS_MAX)
		return "there are too many joins";
	return NULL;
}

/* What the run costs, whose scan has begun. */
static void
add_run_costs(const GhAggregateNode *node, GhRunCosts *costs)
{
	gh_add_scan_costs(costs, node->pages, node->ninstructions);
	for (int i = 0; node->joined != NULL && i < node->joined->nlevels; i++)
	{
		GhJoinState *js = node->joined->levels[i].js;
		PlanState  *inner = gh_child(js, GH_INNER);

		/* other inner sides are not for a device */
		if (js->source[GH_INNER] != NULL)
			gh_add_join_costs(costs, ((ScanState *) inner)->ss_currentRelation, !bms_is_empty(inner->plan->extParam),
							  node->pages);
	}
}

/* Sets the engine that is to do the pages; false: the CPU engine does them. */
static bool
choose_engine(GhAggregateNode *node)
{
	GhDevice   *device = node->device;
	GhRunCosts	costs = {0};
	bool		again;

	device->tried = true;
	if (gh_engine_setting == GH_ENGINE_CPU)
		return false;
	if ((device->why_not = why_not(node)) != NULL)
		return false;
	gh_child_start(node->scan);
	gh_pages_begin(node->pages, node->scan);
	gh_child_stop(node->scan, 0);
	/* all participants of a parallel query do the same */
	again = node->rescanned && node->member == NULL;
	if (again)
		add_run_costs(node, &costs);
	device->engine = gh_choose_scan_engine(node->pages, again ? &costs : NULL, &device->number, &device->why_not);
	return device->engine != NULL;
}

/* -------------------------------------------------------------- the scan */

static GhScanOptions *
scan_options(GhAggregateNode *node)
{
	GhScanOptions *options = palloc(sizeof(GhScanOptions));

	gh_scan_options(node->device->engine, node->device->number, ((ScanState *) node->scan)->ss_currentRelation,
					node->program.program, options);
	options->nkeys = node->nkeys + node->nfetches;
	options->keys = gh_aggregate_scan_keys(node);
	options->naggregates = node->naggregates;
	options->aggregates = node->program.aggregates;
	options->each_row = node->collected != NULL;
	options->joins_at = node->program.nfilters;
	if (options->nkeys > 0)
		options->groups = (uint64) Max(node->css.ss.ps.plan->plan_rows, 1);
	if (node->joined != NULL)
	{
		options->njoins = node->joined->nlevels;
		options->joins = gh_device_joins(node);
	}
	return options;
}

/* ------------------------------------------------------- rows that come back */

static void
keep_row(GhDevice *device, BlockNumber block, OffsetNumber line)
{
	if (device->nkept == GH_KEPT_ROWS_MAX)
	{
		device->supply.failed = true;
		(void) gh_error_set(&device->supply.error, GH_DECLINED, "the device hands too many rows back");
		return;
	}
	if (device->nkept == device->kept_room)
	{
		device->kept_room = Max(2 * device->kept_room, 256);
		device->kept = device->kept == NULL ?
			MemoryContextAlloc(device->context, sizeof(ItemPointerData) * device->kept_room) :
			repalloc(device->kept, sizeof(ItemPointerData) * device->kept_room);
	}
	/* a macro, until 15 */
	ItemPointerSet(&device->kept[device->nkept], block, line);
	device->nkept++;
}

/* Makes the joins' tables on the host, too: a row that was handed back is to be joined. */
static bool
open_joins(GhAggregateNode *node)
{
	GhSupply   *supply = &node->device->supply;

	if (node->joined == NULL || node->joined->open)
		return true;
	if (gh_joined_open_tables(node, true))
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
	GhAggregateNode *node = arg;
	GhSupply   *supply = &node->device->supply;

	if (supply->failed)
		return;
	if (gh_aggregate_order_matters(node))
	{
		supply->failed = true;
		(void) gh_error_set(&supply->error, GH_DECLINED,
							"rows that the device handed back must be added in their order");
		return;
	}
	/* where the joins then do all, not even this process's part is of any use */
	if (node->device->together && !node->joined->for_device)
	{
		keep_row(node->device, block, line);
		return;
	}
	if (!open_joins(node))
		return;
	node->counts.rows += gh_add_tuple(node, buffer, block, line);
	ExecClearTuple(((ScanState *) node->scan)->ss_ScanTupleSlot);
	gh_aggregate_keep_within_memory(node);
}

/* The rows that were kept: they are still where they were. */
static void
add_kept_rows(GhAggregateNode *node)
{
	GhDevice   *device = node->device;

	if (device->nkept > 0 && !node->joined->open)
		elog(ERROR, "the tables of joins cannot be made on the host");
	for (int i = 0; i < device->nkept; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&device->kept[i]);
		Buffer		buffer = gh_pages_pin_again(node->pages, block);

		node->counts.rows += gh_add_tuple(node, buffer, block,
										  ItemPointerGetOffsetNumber(&device->kept[i]));
		ExecClearTuple(((ScanState *) node->scan)->ss_ScanTupleSlot);
		ReleaseBuffer(buffer);
		gh_aggregate_keep_within_memory(node);
	}
}

/* ---------------------------------------------------------------- results */

/* The device's groups, or rows, are kept: a piece at a time. */
static bool
keep_results(GhAggregateNode *node)
{
	GhSupply   *supply = &node->device->supply;
	GhCursor	cursor = {0};
	Size		room;
	char	   *buffer = gh_supply_buffer(supply, &room);
	Size		piece = Min(room, Max(node->memory_limit / 4, GH_PIECE_MIN));

	while (buffer != NULL && !cursor.finished)
	{
		size_t		bytes = 0;
		GhStatus	status = supply->engine->scans->results(supply->scan, &cursor, piece, buffer, &bytes,
															&supply->error);

		if (status == GH_STOPPED)
		{
			gh_serve_interrupt();
			continue;
		}
		/* one alone is larger */
		if (status == GH_TOO_SMALL && piece < room)
		{
			piece = room;
			continue;
		}
		if (status != GH_OK)
		{
			supply->failed = true;
			return false;
		}
		if (node->collected != NULL)
			gh_collect_records(node, buffer, bytes);
		else
			gh_final_groups_put(node->final, buffer, bytes);
	}
	return true;
}

/* Tells the nodes below what the device has done in their place. */
static void
tell_children(GhAggregateNode *node)
{
	const GhSupplyCounts *counts = &node->device->supply.counts;
	uint64		passed = counts->passed + node->counts.rows;
	uint64		joined[GH_SCAN_JOINS_MAX];

	node->counts.rows = passed;
	pgstat_count_index_tuples(node->pages->relation, counts->tuples);
	InstrCountFiltered1(node->scan, counts->tuples - passed);
	gh_child_start(node->scan);
	gh_child_stop(node->scan, (double) passed);
	if (node->joined == NULL)
		return;
	gh_device_tell_inner_scans(node);
	memcpy(joined, counts->joined, sizeof(joined));
	if (node->joined->conditions != NIL)
	{
		int			last = node->joined->nlevels - 1;

		/* no row was handed back: those that came to the end have passed them */
		InstrCountFiltered1(node->child, joined[last] - counts->counted);
		joined[last] = counts->counted;
	}
	gh_joined_add_rows(node, joined);
}

/* *elapsed: time that has been counted, waits and rows that came back included. */
void
gh_device_keep_counts(GhAggregateNode *node, const GhSupply *supply, instr_time *elapsed)
{
	GhAggregateCounts *counts = &node->counts;
	GhScanStats stats;
	GhError		error;
	uint64		queue_ns;
	uint64		kernel_ns;

	if (supply->engine->scans->times != NULL)
	{
		supply->engine->scans->times(supply->scan, &queue_ns, &kernel_ns);
		counts->queue_ns += queue_ns;
		counts->kernel_ns += kernel_ns;
	}
	counts->device_pages += supply->counts.pages;
	counts->pinned_pages += supply->counts.pinned;
	counts->hinted_pages += supply->counts.hinted;
	counts->judged += supply->counts.judged;
	counts->unmatched += supply->counts.unmatched;
	counts->device_bytes += supply->counts.bytes;
	INSTR_TIME_ADD(counts->wait_time, supply->counts.wait_time);
	INSTR_TIME_ADD(counts->evaluate_time, supply->counts.back_time);
	INSTR_TIME_SUBTRACT(*elapsed, supply->counts.wait_time);
	INSTR_TIME_SUBTRACT(*elapsed, supply->counts.back_time);
	/* what is shared counts once */
	if (!supply->attached && supply->engine->scans->stats(supply->scan, &stats, &error) == GH_OK)
		counts->device_memory += stats.bytes_peak + stats.work_bytes;
}

/* ------------------------------------------------------------ what was read */

void
gh_device_log(GhAggregateNode *node, BlockNumber block)
{
	GhDevice   *device = node->device;
	GhBlockRange *last = device->nranges > 0 ? &device->ranges[device->nranges - 1] : NULL;

	if (last != NULL && block == last->first + last->count)
	{
		last->count++;
		return;
	}
	if (device->nranges == device->ranges_room)
	{
		device->ranges_room = Max(2 * device->ranges_room, 64);
		device->ranges = device->ranges == NULL ?
			MemoryContextAlloc(device->context, sizeof(GhBlockRange) * device->ranges_room) :
			repalloc(device->ranges, sizeof(GhBlockRange) * device->ranges_room);
	}
	last = &device->ranges[device->nranges++];
	last->first = block;
	last->count = 1;
}

static uint64
pages_logged(const GhDevice *device)
{
	uint64		pages = 0;

	for (int i = 0; i < device->nranges; i++)
		pages += device->ranges[i].count;
	return pages;
}

/*
 * Nothing of what this participant has read is kept: the same blocks are read again, by the CPU engine.
 * left: what is to be read then, as far as it is known.  Returns what is.
 */
static GhJoinedInput
start_anew(GhAggregateNode *node, GhJoinedInput left)
{
	GhDevice   *device = node->device;
	uint64		pages = 0;

	gh_aggregate_start_anew(node);
	if (node->joined != NULL && !device->together && !node->joined->open &&
		!gh_joined_open_tables(node, true))
	{
		table_rescan(((ScanState *) node->scan)->ss_currentScanDesc, NULL);
		left = GH_JOINED_ROWS;
	}
	if (left == GH_JOINED_ROWS)
	{
		gh_aggregate_forget_program(node);
		return left;
	}
	for (int i = 0; i < device->nranges; i++)
		for (BlockNumber b = 0; b < device->ranges[i].count; b++)
		{
			gh_aggregate_reread(node, device->ranges[i].first + b, pages++ < device->read_before);
			gh_aggregate_keep_within_memory(node);
		}
	return left;
}

/* ---------------------------------------------------------------- the run */

/* The device cannot go on: what it did is forgotten. */
void
gh_device_give_up(GhAggregateNode *node, const GhSupply *supply)
{
	gh_supply_gave_up(supply, node->collected != NULL ? "join on the GPU" : "aggregate on the GPU", node->counts.fallback_reason,
					  sizeof(node->counts.fallback_reason));
}

static void
end_run(GhAggregateNode *node)
{
	GhDevice   *device = node->device;

	if (device->running)
		gh_supply_end(&device->supply);
	device->running = false;
	gh_device_end_tables(node);
}

/* For a node over joins, before it reads anything: has their tables made on the device. */
GhDeviceTables
gh_device_open_joins(GhAggregateNode *node)
{
	GhDevice   *device = node->device;
	GhDeviceTables result = GH_DEVICE_NO_TABLES;
	bool		able;

	if (device->tried)
		return GH_DEVICE_NO_TABLES;
	/* with changed parameters, it is not yet known of the scan that it begins anew */
	gh_joined_reset(node);
	able = choose_engine(node);
	/* whether a device is there may look different to others, but all do the same */
	device->together = node->member != NULL && gh_service_enabled() && gh_engine_setting != GH_ENGINE_CPU;
	if (!able && !device->together)
		return GH_DEVICE_NO_TABLES;
	if (able && !gh_aggregate_compile(node))
	{
		device->why_not = node->program.why_not;
		able = false;
	}
	if (device->together)
		result = gh_device_make_tables_together(node, able);
	else if (able && gh_device_make_tables(node))
		result = device->no_rows ? GH_DEVICE_NO_INPUT : GH_DEVICE_TABLES;
	device->tables_made = result == GH_DEVICE_TABLES;
	if (device->no_rows)
		gh_device_tell_inner_scans(node);
	if (!device->tables_made)
		gh_device_end_tables(node);
	return result;
}

/* Whether the rest of the pages are to go to the device: asked before each, until it is known. */
bool
gh_device_wants(GhAggregateNode *node)
{
	GhDevice   *device = node->device;
	MemoryContext saved;

	if (node->joined != NULL ? !device->tables_made : device->tried)
		return false;
	/* a subquery's result may still be awaited */
	if (!gh_aggregate_compile(node) || (node->joined == NULL && !choose_engine(node)))
		return false;
	saved = MemoryContextSwitchTo(device->context);
	device->running = gh_supply_begin(&device->supply, device->engine, scan_options(node),
									  NULL, node->pages, device->context);
	MemoryContextSwitchTo(saved);
	device->supply.row_back = add_row;
	device->supply.arg = node;
	device->supply.timing = node->timing;
	if (!device->running)
		gh_device_give_up(node, &device->supply);
	/* with joins, all begins anew */
	return device->running || node->joined != NULL;
}

/*
 * Supplies the pages that are left.  False: the supply has failed.  Together, all pages have been taken
 * then, too, for the others do not come back to those that are left.
 */
static bool
supply_pages(GhAggregateNode *node)
{
	GhDevice   *device = node->device;
	bool		done = true;

	gh_pages_begin(node->pages, node->scan);
	gh_supply_open_pages(&device->supply, !gh_aggregate_adds_floats(node));
	while ((done || device->together) && gh_pages_next(node->pages, GH_DEVICE_PAGES_AHEAD))
	{
		gh_device_log(node, node->pages->block);
		done = done && gh_supply_page(&device->supply);
	}
	return done && gh_supply_flush(&device->supply);
}

/*
 * Of a right or full join, asks for the inner rows that had no match, as one of the participants: all that had one
 * are marked when everybody has read, if no row was handed back to anyone.  done: so it was here.  False: the
 * supply has failed, or another one's.
 */
static bool
supply_unmatched(GhAggregateNode *node, bool done)
{
	GhDevice   *device = node->device;
	bool		asks = true;

	if (device->together && !gh_device_all_have_read(node, done, &asks))
	{
		if (done)
			(void) gh_error_set(&device->supply.error, GH_DECLINED, GH_OTHER_FAILED_MESSAGE);
		return false;
	}
	return done && (!asks || gh_supply_unmatched(&device->supply, device->inner_rows));
}

/*
 * Has the device read the pages that are left.  True: that was all; false: it could not, the same
 * pages were read by the CPU engine or are to be, and *input is what is left.
 */
bool
gh_device_read(GhAggregateNode *node, GhJoinedInput *input)
{
	GhDevice   *device = node->device;
	instr_time	clock = {0};
	uint64		before = node->counts.rows;
	GhJoinedInput left = GH_JOINED_PAGES;
	bool		done;

	gh_aggregate_clock(node, NULL, &clock);
	device->read_before = pages_logged(device);
	node->counts.rows = 0;
	done = device->running && supply_pages(node);
	gh_pages_park(node->pages);
	if (device->running)
		gh_supply_close_pages(&device->supply);
	if (node->joined != NULL && node->joined->fills_inner)
		done = supply_unmatched(node, done);
	gh_aggregate_clock(node, &node->counts.source_time, &clock);
	done = done && keep_results(node);
	gh_aggregate_clock(node, &node->counts.merge_time, &clock);
	if (device->together)
		left = gh_device_meet(node, !done || device->nkept > 0, device->running);
	if (done && left != GH_JOINED_NOTHING && device->together)
	{
		done = false;
		(void) gh_error_set(&device->supply.error, GH_DECLINED, "%s",
							node->joined->for_device ? GH_OTHER_FAILED_MESSAGE :
							"tables of joins do not fit in memory");
	}
	if (done)
	{
		add_kept_rows(node);
		gh_device_keep_counts(node, &device->supply, &node->counts.source_time);
		node->counts.pages += device->supply.counts.pages;
		tell_children(node);
		node->counts.rows += before;
	}
	else if (device->running)
		gh_device_give_up(node, &device->supply);
	end_run(node);
	if (!done)
		*input = start_anew(node, left);
	return done;
}

/* Before a run with other parameters, or the end. */
void
gh_device_forget(GhAggregateNode *node)
{
	GhDevice   *device = node->device;
	MemoryContext context = device->context;

	end_run(node);
	MemoryContextReset(context);
	memset(device, 0, sizeof(*device));
	device->context = context;
}
