/*
 * device_set.c
 *		A fragment on several devices: its pages are divided among them, and each makes groups or rows of its own.
 *
 * One process drives a pipeline on each device, of the same program, and joins' tables are made on each.  It
 * goes over the scan once.  A run of pages that is on one of the devices goes there; other pages go by turns,
 * GH_SHARE_BLOCKS of them to each, by their numbers: so a page stays on one device, and the same one in each
 * query.  What the devices have made comes back one device after the other: parts of groups are merged as
 * those that were made at different times, rows are appended.
 *
 * Functions for one device find their run in fragment->device, so that is turned to each of the set in its
 * turn.  It is the first one's outside of this file, which has the set.
 *
 * A device that is lost has made groups that nobody has seen.  Its pages are read once more, for those that
 * are left.  So nothing of a device may be elsewhere before all have read everything: rows that it hands back
 * are kept until then.  Where none is left, or one fails when some of its groups have come, or rows are for
 * the CPU engine alone, all is forgotten, and the CPU engine reads all pages, as if there had been one
 * device.
 *
 * It is done where parts of groups can be put together in any order, and where nothing has to know of all
 * rows: not with floats that are added or compared, very many groups, right or full joins, groups that nodes
 * have in common, nor for a GpuHashScan, whose rows come in the order of the table.  Of a parallel query each
 * participant has a set of its own; where there are joins it is of the same devices, on each of which they
 * make the tables together (device_parallel.c), and all of them go over the scan to its end.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/partition.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "fragment/device_set.h"
#include "fragment/inner_side.h"
#include "fragment/shared_groups.h"
#include "gpuhash.h"
#include "service/placement.h"
#include "service/service.h"

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
 * The devices that a relation's pages are divided among, GH_DEVICES_PER_QUERY_MAX at most, in the order of
 * their turns: how many.  ready: no others than are ready now.
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
		fragment->methods->take_records != NULL && !gh_shared_groups_apply(fragment) &&
		(fragment->joined == NULL || !fragment->joined->fills_inner) && !fragment->methods->adds_floats(fragment);
}

static GhDeviceRun *
create_run(GhDeviceSet *set, const GhDeviceRun *first, int turn, int number)
{
	GhDeviceRun *run = MemoryContextAllocZero(first->context, sizeof(GhDeviceRun));

	run->fragment = set->fragment;
	run->context = AllocSetContextCreate(first->context, "GpuHash further device", ALLOCSET_SMALL_SIZES);
	run->engine = first->engine;
	run->number = number;
	run->turn = turn;
	run->tried = true;
	run->set = set;
	return run;
}

static void
create_set(GhFragment *fragment, int ndevices, const int *numbers)
{
	GhDeviceRun *first = fragment->device;
	GhDeviceSet *set = MemoryContextAllocZero(first->context, sizeof(GhDeviceSet));

	set->fragment = fragment;
	set->nruns = ndevices;
	set->alone = first->number;
	set->read_before = gh_device_pages_logged(first);
	set->runs[0] = first;
	first->number = numbers[0];
	for (int i = 1; i < set->nruns; i++)
		set->runs[i] = create_run(set, first, i, numbers[i]);
	set->supplies.count = set->nruns;
	for (int i = 0; i < set->nruns; i++)
		set->supplies.supplies[i] = &set->runs[i]->supply;
	first->set = set;
}

/*
 * Pages that have to be there for each group that is expected.  Several devices read a page in less time than
 * one, by up to 50 ns each, and then the process merges their groups, at 0.5 to 2 us each; one device merges
 * its own.
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
	int			numbers[GH_DEVICES_PER_QUERY_MAX];
	double		pages;
	int			n;

	if (!can_be_divided(fragment))
		return;
	/* there has to be something for each */
	pages = gh_fragment_pages(fragment);
	if (pages <= GH_SHARE_BLOCKS || !are_groups_few(fragment, pages))
		return;
	n = gh_device_set_of(((ScanState *) fragment->scan)->ss_currentRelation, true, numbers);
	n = (int) Min(n, ceil(pages / GH_SHARE_BLOCKS));
	if (n > 1)
		create_set(fragment, n, numbers);
}

/* One device does all. */
static void
dissolve(GhDeviceSet *set)
{
	set->runs[0]->set = NULL;
	set->runs[0]->number = set->alone;
}

/* --------------------------------------------------------------- a device is lost */

/* What it has read is to be read again. */
void
gh_set_move_log(GhDeviceSet *set, GhDeviceRun *run)
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
 * A device can do nothing more, as its supply's error says.  While others are left that is told as the
 * reason, and counted; the last one's is the query's, as of one device.
 */
void
gh_set_lose(GhDeviceSet *set, GhDeviceRun *run, const GhSupply *supply)
{
	GhFragment *fragment = set->fragment;

	run->lost = run->supply.failed = true;
	run->nkept = 0;
	gh_set_move_log(set, run);
	if (supply->error.status == GH_DECLINED)
		set->declined = supply;
	else if (gh_set_count_left(set) == 0)
		gh_device_give_up(fragment, supply);
	else
	{
		gh_count_fallback(supply->engine, &supply->error);
		strlcpy(fragment->counts.fallback_reason, supply->error.message, sizeof(fragment->counts.fallback_reason));
	}
}

/* ----------------------------------------------------------------- joins' tables */

/*
 * Whether the tables may be made on each device: their pages, which each reads, are no more than those that
 * it has of the outer side.  Rows of other plans are within work_mem.
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
	supply = made ? NULL : gh_device_failed_supply(run);
	if (supply != NULL)
	{
		gh_set_lose(set, run, supply);
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
	made = made && gh_set_count_left(set) > 0;
	if (!made)
		gh_device_set_end(fragment);
	return made;
}

/* ----------------------------------------- joins' tables that participants make together */

/*
 * Turns functions for one device to the one that has this turn; false: there is none, and they are turned to
 * the first one.
 */
bool
gh_device_turn_to(GhFragment *fragment, int turn)
{
	GhDeviceSet *set = fragment->device->set;
	bool		there = turn < (set == NULL ? 1 : set->nruns);

	if (set != NULL)
		fragment->device = set->runs[there ? turn : 0];
	return there;
}

/* The devices that all participants are to use, by their turns: how many. */
int
gh_device_set_propose(GhFragment *fragment, int *numbers)
{
	GhDeviceSet *set = fragment->device->set;

	if (set != NULL && !may_have_each(fragment))
		dissolve(set);
	set = fragment->device->set;
	numbers[0] = fragment->device->number;
	for (int i = 1; set != NULL && i < set->nruns; i++)
		numbers[i] = set->runs[i]->number;
	return set == NULL ? 1 : set->nruns;
}

/* This participant uses those devices, too, whichever it would have chosen; it has begun nothing. */
void
gh_device_set_agree(GhFragment *fragment, int ndevices, const int *numbers)
{
	GhDeviceRun *first = fragment->device;

	if (first->set != NULL)
		dissolve(first->set);
	first->number = numbers[0];
	if (ndevices > 1)
		create_set(fragment, ndevices, numbers);
	for (int i = 1; gh_device_turn_to(fragment, i); i++)
	{
		fragment->device->together = true;
		gh_device_list_tables(fragment);
	}
}

/* The device at hand has none of the tables, or they are out of reach: this participant does not use it. */
void
gh_device_set_lose_tables(GhFragment *fragment)
{
	GhDeviceRun *run = fragment->device;
	const GhSupply *supply = gh_device_failed_supply(run);

	if (supply == NULL)
		run->lost = run->supply.failed = true;
	else
	{
		fragment->device = run->set->runs[0];
		gh_set_lose(run->set, run, supply);
		fragment->device = run;
	}
	gh_device_end_tables(fragment);
}

/* Whether there is a device whose tables are within reach. */
bool
gh_device_set_has_tables(GhFragment *fragment)
{
	GhDeviceSet *set = fragment->device->set;

	if (set->declined != NULL)
		gh_device_give_up(fragment, set->declined);
	return gh_set_goes_on(set);
}

/* How many devices the fragment is on. */
int
gh_device_set_size(const GhFragment *fragment)
{
	return fragment->device->set == NULL ? 1 : fragment->device->set->nruns;
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
