/*
 * device_set.c
 *		A fragment on several devices: its pages are divided among them, and each makes groups or rows of its own.
 *
 * One process drives a pipeline on each device, of the same program, and joins' tables are made on each.  It goes over the
 * scan once.  A run of pages that is on one of the devices goes there; other pages go by turns, GH_SHARE_BLOCKS of them to
 * each, by their numbers: so a page stays on one device, and the same one in each query.  What the devices have made comes
 * back one device after the other: parts of groups are merged as those that were made at different times, rows are appended.
 *
 * Functions for one device find their run in fragment->device, so that is turned to each of the set in its turn.  It is the
 * first one's outside of this file, which has the set.
 *
 * A device that is lost has made groups that nobody has seen.  Its pages are read once more, for those that are left.  So
 * nothing of a device may be elsewhere before all have read everything: rows that it hands back are kept until then.  Where
 * none is left, or one fails when some of its groups have come, or rows are for the CPU engine alone, all is forgotten, and
 * the CPU engine reads all pages, as if there had been one device.
 *
 * It is done where parts of groups can be put together in any order, and where nothing has to know of all rows: not with
 * floats that are added or compared, very many groups, right or full joins, groups that nodes have in common, joins in parallel queries, whose
 * participants share the tables, nor for a GpuHashScan, whose rows come in the order of the table.  Of a parallel query without
 * joins each participant has a set of its own.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/partition.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "fragment/device.h"
#include "fragment/inner_side.h"
#include "fragment/shared_groups.h"
#include "gpuhash.h"
#include "service/placement.h"
#include "service/service.h"

typedef struct GhDeviceSet
{
	GhFragment *fragment;
	int			nruns;
	GhDeviceRun *runs[GH_DEVICES_PER_QUERY_MAX];	/* by their turns */
	int			alone;			/* the device that does all, if the pages are not divided */
	uint64		read_before;	/* pages in the first one's log that no device had */
	GhDeviceRun *holder;		/* on whose device the blocks are that were looked up last */
	GhBlockLog	again;			/* what lost devices have read */
	const GhSupply *declined;	/* whose rows are for the CPU engine; NULL: none are */
} GhDeviceSet;

/* ------------------------------------------------------------------ which devices */

/* The table that has this one's partition, and so on. */
static Oid
root_of(Relation relation)
{
	List	   *ancestors = NIL;

	if (relation->rd_rel->relispartition)
		ancestors = get_partition_ancestors(RelationGetRelid(relation));
	return ancestors == NIL ? RelationGetRelid(relation) : llast_oid(ancestors);
}

/*
 * The devices that a relation's pages are divided among, GH_DEVICES_PER_QUERY_MAX at most, in the order of their turns: how
 * many.  ready: no others than are ready now.
 */
int
gh_device_set_of(Relation relation, bool ready, int *devices)
{
	return gh_service_choose_devices(root_of(relation), ready, gh_devices_per_query, devices);
}

/* Whether what comes of parts of the pages can be put together. */
static bool
can_be_divided(const GhFragment *fragment)
{
	return gh_devices_per_query > 1 && fragment->device->engine->shares_tables &&
		(fragment->member == NULL || fragment->joined == NULL) && fragment->methods->take_records != NULL && !gh_shared_groups_apply(fragment) &&
		(fragment->joined == NULL || !fragment->joined->fills_inner) && !fragment->methods->adds_floats(fragment);
}

static GhDeviceRun *
create_run(GhDeviceSet *set, const GhDeviceRun *first, int number)
{
	GhDeviceRun *run = MemoryContextAllocZero(first->context, sizeof(GhDeviceRun));

	run->fragment = set->fragment;
	run->context = AllocSetContextCreate(first->context, "GpuHash further device", ALLOCSET_SMALL_SIZES);
	run->engine = first->engine;
	run->number = number;
	run->tried = true;
	run->set = set;
	return run;
}

/*
 * Pages that have to be there for each group that is expected.  Several devices read a page in less time than one, by up to 50 ns
 * each, and then the process merges their groups, at 0.5 to 2 us each; one device merges its own.
 */
#define GH_PAGES_OF_GROUP GH_WITH_FAULT_POINTS(0.05, 64)

static bool
are_groups_few(const GhFragment *fragment, double pages)
{
	return fragment->methods->expected_groups == NULL ||
		fragment->methods->expected_groups(fragment) * GH_PAGES_OF_GROUP <= pages;
}

/* Of a fragment whose scan has begun, and that a device is to do: makes a set, if several are to. */
void
gh_device_set_choose(GhFragment *fragment)
{
	GhDeviceRun *first = fragment->device;
	int			numbers[GH_DEVICES_PER_QUERY_MAX];
	double		pages;
	GhDeviceSet *set;
	int			n;

	if (!can_be_divided(fragment))
		return;
	/* there has to be something for each */
	pages = gh_fragment_pages(fragment);
	if (pages <= GH_SHARE_BLOCKS || !are_groups_few(fragment, pages))
		return;
	n = gh_device_set_of(((ScanState *) fragment->scan)->ss_currentRelation, true, numbers);
	n = (int) Min(n, ceil(pages / GH_SHARE_BLOCKS));
	if (n < 2)
		return;
	set = MemoryContextAllocZero(first->context, sizeof(GhDeviceSet));
	set->fragment = fragment;
	set->nruns = n;
	set->alone = first->number;
	set->read_before = gh_device_pages_logged(first);
	set->runs[0] = first;
	first->number = numbers[0];
	for (int i = 1; i < set->nruns; i++)
		set->runs[i] = create_run(set, first, numbers[i]);
	first->set = set;
}

/* One device does all. */
static void
dissolve(GhDeviceSet *set)
{
	set->runs[0]->set = NULL;
	set->runs[0]->number = set->alone;
}

static int
count_left(const GhDeviceSet *set)
{
	int			left = 0;

	for (int i = 0; i < set->nruns; i++)
		left += !set->runs[i]->lost;
	return left;
}

/* The n-th of those that are left, from 0 on. */
static GhDeviceRun *
nth_left(const GhDeviceSet *set, int n)
{
	int			i = 0;

	while (set->runs[i]->lost || n-- > 0)
		i++;
	return set->runs[i];
}

/* Whose turn a block is: that of the device that has it by its number, or, if that is lost, of one of the others. */
static int
turn_of(const GhDeviceSet *set, BlockNumber block)
{
	return gh_share_of_block(block, set->nruns);
}

static GhDeviceRun *
run_for(const GhDeviceSet *set, BlockNumber block)
{
	GhDeviceRun *run = set->runs[turn_of(set, block)];

	return run->lost ?
		nth_left(set, gh_share_of_block(block / (BlockNumber) set->nruns, count_left(set))) : run;
}

/* --------------------------------------------------------------- a device is lost */

/* What it has read is to be read again. */
static void
move_log(GhDeviceSet *set, GhDeviceRun *run)
{
	uint64		stay = run == set->runs[0] ? set->read_before : 0;
	int			nstay = 0;

	for (int i = 0; i < run->log.count; i++)
	{
		GhBlockRange *range = &run->log.ranges[i];
		BlockNumber own = (BlockNumber) Min(stay, range->count);

		if (own < range->count)
			gh_log_blocks(&set->again, set->runs[0]->context, range->part, range->first + own, range->count - own);
		range->count = own;
		stay -= own;
		nstay += own > 0;
	}
	run->log.count = nstay;
}

/*
 * A device can do nothing more, as its supply's error says.  While others are left that is told as the reason, and counted;
 * the last one's is the query's, as of one device.
 */
static void
lose(GhDeviceSet *set, GhDeviceRun *run, const GhSupply *supply)
{
	GhFragment *fragment = set->fragment;

	run->lost = true;
	run->nkept = 0;
	move_log(set, run);
	if (supply->error.status == GH_DECLINED)
		set->declined = supply;
	else if (count_left(set) == 0)
		gh_device_give_up(fragment, supply);
	else
	{
		gh_count_fallback(supply->engine, &supply->error);
		strlcpy(fragment->counts.fallback_reason, supply->error.message, sizeof(fragment->counts.fallback_reason));
	}
}

static bool
goes_on(const GhDeviceSet *set)
{
	return set->declined == NULL && count_left(set) > 0;
}

/* ----------------------------------------------------------------- joins' tables */

/*
 * Whether the tables may be made on each device: their pages, which each reads, are no more than those that it has of the outer
 * side.  Rows of other plans are within work_mem.
 */
static bool
are_inner_sides_small(GhFragment *fragment)
{
	const GhDeviceRun *device = fragment->device;
	double		pages = 0;

	for (int i = 0; i < device->ntables; i++)
		if (device->tables[i].side->relation != NULL)
			pages += RelationGetNumberOfBlocks(device->tables[i].side->relation);
	return pages * device->set->nruns <= gh_fragment_pages(fragment);
}

/* False: the tables are made on one device, or cannot be, which is found there. */
static bool
may_have_each(GhFragment *fragment)
{
	MemoryContext saved = MemoryContextSwitchTo(fragment->device->context);
	bool		may = fragment->device->ntables > 0 && gh_device_prepare_tables(fragment) && are_inner_sides_small(fragment);

	MemoryContextSwitchTo(saved);
	return may;
}

/* The supply of a table that could not be made; NULL: it is none of the device's. */
static const GhSupply *
failed_supply(const GhDeviceRun *run)
{
	for (int i = 0; i < run->ntables; i++)
		if (run->tables[i].supply != NULL && run->tables[i].supply->failed)
			return run->tables[i].supply;
	return NULL;
}

/* Makes the tables on one of the devices.  False: none of the others need try. */
static bool
make_tables(GhDeviceSet *set, GhDeviceRun *run)
{
	GhFragment *fragment = set->fragment;
	GhDeviceRun *first = set->runs[0];
	const GhSupply *supply;
	bool		made;

	fragment->device = run;
	if (run != first)
		gh_device_list_tables(fragment);
	made = gh_device_make_tables(fragment);
	supply = made ? NULL : failed_supply(run);
	if (supply != NULL)
	{
		lose(set, run, supply);
		if (set->declined != NULL)
			gh_device_give_up(fragment, supply);
		gh_device_end_tables(fragment);
	}
	fragment->device = first;
	first->no_rows |= run->no_rows;
	first->why_not = run->why_not;
	return made || (supply != NULL && set->declined == NULL);
}

/* As gh_device_make_tables, on each device of a set, if there is one. */
bool
gh_device_set_make_tables(GhFragment *fragment)
{
	GhDeviceSet *set = fragment->device->set;
	bool		made = true;

	if (set != NULL && !may_have_each(fragment))
		dissolve(set);
	if (fragment->device->set == NULL)
		return gh_device_make_tables(fragment);
	for (int i = 0; i < set->nruns && made && !fragment->device->no_rows; i++)
		made = make_tables(set, set->runs[i]);
	made = made && count_left(set) > 0;
	if (!made)
		gh_device_set_end(fragment);
	return made;
}

/* ---------------------------------------------------------------- the pipelines */

/* GhRowBack: it is added when it is known that the device goes through to the end. */
static void
keep_row(void *arg, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	GhDeviceRun *run = arg;

	(void) buffer;
	if (!run->supply.failed)
		gh_device_keep_row(run, run->fragment->part, block, line);
}

/* Makes a pipeline on a device that is not the first. */
static void
begin_run(GhDeviceSet *set, GhDeviceRun *run)
{
	GhFragment *fragment = set->fragment;
	MemoryContext saved = MemoryContextSwitchTo(run->context);

	fragment->device = run;
	run->running = gh_device_begin_supply(fragment, &run->supply, fragment->pages);
	fragment->device = set->runs[0];
	MemoryContextSwitchTo(saved);
}

/* The first one has begun its pipeline, or has failed to, and the others begin theirs.  False: none has one. */
bool
gh_device_set_begin(GhFragment *fragment)
{
	GhDeviceSet *set = fragment->device->set;

	for (int i = 0; i < set->nruns; i++)
	{
		GhDeviceRun *run = set->runs[i];

		if (run->lost)
			continue;
		if (i > 0)
			begin_run(set, run);
		if (!run->running)
			lose(set, run, &run->supply);
		run->supply.row_back = keep_row;
		run->supply.arg = run;
		run->supply.timing = fragment->timing;
		run->supply.nsupplies = set->nruns;
		if (fragment->parts != NULL)
			run->parts = MemoryContextAllocZero(run->context, sizeof(GhPartRows) * fragment->nparts);
	}
	return goes_on(set);
}

/* --------------------------------------------------------------------- the pages */

/* The i-th of the devices that a block is looked for on: first that whose turn it is; each of the others is second equally often. */
static GhDeviceRun *
candidate(const GhDeviceSet *set, BlockNumber block, int i)
{
	int			turn = turn_of(set, block);
	int			others = set->nruns - 1;
	int			shift = gh_share_of_block(block / (BlockNumber) set->nruns, others);

	return set->runs[i == 0 ? turn : (turn + 1 + (i - 1 + shift) % others) % set->nruns];
}

/* GhPages.has_blocks: of those that are on one of the devices, so many as have the same turn. */
static uint32
has_blocks(void *arg, BlockNumber block)
{
	GhDeviceSet *set = arg;
	uint32		most = GH_SHARE_BLOCKS - block % GH_SHARE_BLOCKS;

	for (int i = 0; i < set->nruns; i++)
	{
		GhDeviceRun *run = candidate(set, block, i);
		uint32		count = run->lost ? 0 : gh_supply_has_blocks(&run->supply, block);

		if (count == 0)
			continue;
		set->holder = run;
		return Min(count, most);
	}
	return 0;
}

/* What some of the supplies can do with the pages is told of all: others copy what these leave. */
static void
tell_pages(const GhDeviceSet *set)
{
	GhPages    *pages = set->fragment->pages;
	bool		pins = false;

	for (int i = 0; i < set->nruns; i++)
		pins |= !set->runs[i]->lost && set->runs[i]->supply.pins;
	pages->tuples_unread = pages->tells_pooled = pins;
}

/* The pages that come next are those of the fragment's part. */
static void
open_pages(GhDeviceSet *set)
{
	GhPages    *pages = set->fragment->pages;
	bool		any = false;

	for (int i = 0; i < set->nruns; i++)
	{
		GhSupply   *supply = &set->runs[i]->supply;

		if (set->runs[i]->lost)
			continue;
		if (supply->pages != pages)
			gh_supply_turn_to(supply, pages);
		gh_supply_open_pages(supply, true);
		any |= supply->resident != NULL;
	}
	pages->has_blocks = any ? has_blocks : NULL;
	pages->has_blocks_arg = set;
	tell_pages(set);
}

/* The page that was read last, or run of them, goes to a device. */
static void
supply_page(GhDeviceSet *set)
{
	GhFragment *fragment = set->fragment;
	const GhPages *pages = fragment->pages;
	GhDeviceRun *run = pages->elsewhere ? set->holder : run_for(set, pages->block);

	gh_device_log(run, fragment->part, pages->block, pages->run);
	if (!gh_supply_page(&run->supply))
		lose(set, run, &run->supply);
	if (!pages->elsewhere)
		tell_pages(set);
}

/* What the device has done of the part. */
static void
count_part(GhDeviceRun *run, int part)
{
	const GhSupplyCounts *counts = &run->supply.counts;

	run->parts[part].tuples += counts->tuples - run->counted.tuples;
	run->parts[part].passed += counts->passed[0] - run->counted.passed;
	run->counted.tuples = counts->tuples;
	run->counted.passed = counts->passed[0];
}

/* Ends all requests, which the devices work on at a time. */
static void
flush(GhDeviceSet *set)
{
	for (int i = 0; i < set->nruns; i++)
		if (!set->runs[i]->lost)
			gh_supply_submit_last(&set->runs[i]->supply);
	for (int i = 0; i < set->nruns; i++)
	{
		GhDeviceRun *run = set->runs[i];

		if (run->lost)
			continue;
		if (!gh_supply_flush(&run->supply))
			lose(set, run, &run->supply);
		else if (run->parts != NULL)
			count_part(run, set->fragment->part);
	}
}

/* All pages, once; those of devices that were lost meanwhile are left. */
static void
supply_all(GhDeviceSet *set)
{
	GhFragment *fragment = set->fragment;

	do
	{
		gh_pages_begin(fragment->pages, fragment->scan);
		open_pages(set);
		while (goes_on(set) && gh_pages_next(fragment->pages, GH_PAGES_AHEAD_MAX))
			supply_page(set);
		flush(set);
	} while (goes_on(set) && gh_parts_next(fragment));
}

/* Those that lost devices have read, for the others.  Each is named in some log at any time. */
static void
supply_again(GhDeviceSet *set)
{
	GhFragment *fragment = set->fragment;

	while (goes_on(set) && set->again.count > 0)
	{
		GhBlockRange *range = &set->again.ranges[set->again.count - 1];
		int			part = range->part;
		BlockNumber block = range->first++;

		if (--range->count == 0)
			set->again.count--;
		if (part != fragment->part)
		{
			flush(set);
			gh_parts_turn_to(fragment, part);
			open_pages(set);
		}
		if (!goes_on(set))
		{
			gh_log_blocks(&set->again, set->runs[0]->context, part, block, 1);
			return;
		}
		gh_pages_read_block(fragment->pages, block);
		supply_page(set);
	}
	flush(set);
}

/* Results come through buffers, which may have been given back between parts.  False: one has none. */
static bool
have_buffers(GhDeviceSet *set)
{
	for (int i = 0; i < set->nruns; i++)
	{
		GhDeviceRun *run = set->runs[i];

		if (run->lost || run->supply.counts.tuples == 0 || gh_supply_take_buffers(&run->supply))
			continue;
		lose(set, run, &run->supply);
		return false;
	}
	return true;
}

/* Has the devices read all pages that are left.  False: they could not. */
bool
gh_device_set_read(GhFragment *fragment)
{
	GhDeviceSet *set = fragment->device->set;
	int			part;

	if (!goes_on(set))
		return false;
	supply_all(set);
	part = fragment->part;
	while (goes_on(set) && (set->again.count > 0 || !have_buffers(set)))
		supply_again(set);
	gh_parts_turn_to(fragment, part);
	for (int i = 0; i < set->nruns; i++)
		if (set->runs[i]->running)
			gh_supply_close_pages(&set->runs[i]->supply);
	return goes_on(set);
}

/* ------------------------------------------------------------------- what comes of it */

/* Whether rows were handed back that have to be joined, and cannot be. */
static bool
lacks_host_tables(GhDeviceSet *set)
{
	bool		any = false;

	for (int i = 0; i < set->nruns; i++)
		any |= !set->runs[i]->lost && set->runs[i]->nkept > 0;
	if (!any || gh_device_open_host_tables(set->fragment))
		return false;
	set->declined = &set->runs[0]->supply;
	return true;
}

/* Hands over the groups, or rows, of all devices.  False: not all of them came. */
bool
gh_device_set_keep_results(GhFragment *fragment, void (*take) (void *arg, const char *records, Size bytes))
{
	GhDeviceSet *set = fragment->device->set;

	for (int i = 0; i < set->nruns; i++)
	{
		GhDeviceRun *run = set->runs[i];

		if (run->lost || run->supply.buffers[0] == NULL)
			continue;
		if (gh_supply_fetch(&run->supply, gh_device_piece(fragment), take, fragment))
			continue;
		gh_device_give_up(fragment, &run->supply);
		return false;
	}
	return !lacks_host_tables(set);
}

static void
add_counts(GhSupplyCounts *sum, const GhSupplyCounts *counts)
{
	sum->pages += counts->pages;
	sum->tuples += counts->tuples;
	sum->counted += counts->counted;
	sum->back += counts->back;
	for (int s = 0; s < GH_STEPS_MAX; s++)
		sum->passed[s] += counts->passed[s];
}

/* All devices have gone through to the end: adds rows that were handed back, and the counts, which become the first one's. */
void
gh_device_set_finish(GhFragment *fragment)
{
	GhDeviceRun *first = fragment->device;
	GhDeviceSet *set = first->set;
	GhSupplyCounts sum = {0};
	bool		told[GH_PROBES_MAX] = {false};

	for (int i = 0; i < set->nruns; i++)
	{
		GhDeviceRun *run = set->runs[i];

		fragment->device = run;
		if (fragment->joined != NULL)
			gh_device_tell_inner_scans(fragment, told);
		fragment->device = first;
		if (run->lost)
			continue;
		add_counts(&sum, &run->supply.counts);
		gh_device_keep_counts(fragment, &run->supply, &fragment->counts.source_time);
		for (int p = 0; p < fragment->nparts; p++)
		{
			fragment->parts[p].tuples += run->parts[p].tuples;
			fragment->parts[p].passed += run->parts[p].passed;
		}
		gh_device_add_kept_rows(run);
	}
	first->supply.counts = sum;
	fragment->counts.devices = Max(fragment->counts.devices, (uint32) count_left(set));
}

/* What they did is forgotten, and what was read is in the first one's log. */
void
gh_device_set_gave_up(GhFragment *fragment)
{
	GhDeviceRun *first = fragment->device;
	GhDeviceSet *set = first->set;

	if (set->declined != NULL)
		gh_device_give_up(fragment, set->declined);
	for (int i = 1; i < set->nruns; i++)
		move_log(set, set->runs[i]);
	for (int i = 0; i < set->again.count; i++)
		gh_device_log(first, set->again.ranges[i].part, set->again.ranges[i].first, set->again.ranges[i].count);
	set->again.count = 0;
}

/* Of all but the first one: nothing is left but memory. */
void
gh_device_set_end(GhFragment *fragment)
{
	GhDeviceRun *first = fragment->device;
	GhDeviceSet *set = first->set;

	for (int i = 1; set != NULL && i < set->nruns; i++)
	{
		GhDeviceRun *run = set->runs[i];

		if (run->running)
			gh_supply_end(&run->supply);
		run->running = false;
		fragment->device = run;
		gh_device_end_tables(fragment);
	}
	fragment->device = first;
}
