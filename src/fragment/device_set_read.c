/*
 * device_set_read.c
 *		What the devices of a set (device_set.c) read, and what comes of it.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/rel.h"

#include "fragment/device_set.h"
#include "gpuhash.h"

/* The n-th of those that are left, from 0 on. */
static GhDeviceRun *
nth_left(const GhDeviceSet *set, int n)
{
	int			i = 0;

	while (set->runs[i]->lost || n-- > 0)
		i++;
	return set->runs[i];
}

/*
 * Whose turn a block is: that of the device that has it by its number, or, if that is lost, of one of the
 * others.
 */
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
		nth_left(set, gh_share_of_block(block / (BlockNumber) set->nruns, gh_set_count_left(set))) : run;
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

/*
 * The first one has begun its pipeline, or has failed to, and the others begin theirs.  False: none has one.
 */
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
			gh_set_lose(set, run, &run->supply);
		run->supply.row_back = keep_row;
		run->supply.arg = run;
		run->supply.timing = fragment->timing;
		run->supply.nsupplies = set->nruns;
		if (fragment->parts != NULL)
			run->parts = MemoryContextAllocZero(run->context, sizeof(GhPartRows) * fragment->nparts);
	}
	return gh_set_goes_on(set);
}

/* --------------------------------------------------------------------- the pages */

/*
 * The i-th of the devices that a block is looked for on: first that whose turn it is; each of the others is
 * second equally often.
 */
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

/* The pages that come next are those of the fragment's part. */
static void
open_pages(GhDeviceSet *set)
{
	GhPages    *pages = set->fragment->pages;

	for (int i = 0; i < set->nruns; i++)
		if (!set->runs[i]->lost && set->runs[i]->supply.pages != pages)
			gh_supply_turn_to(&set->runs[i]->supply, pages);
	gh_supplies_open_pages(&set->supplies, pages, has_blocks, set);
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
		gh_set_lose(set, run, &run->supply);
	if (!pages->elsewhere)
		gh_supplies_tell_pages(&set->supplies, fragment->pages);
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
	gh_supplies_flush(&set->supplies);
	for (int i = 0; i < set->nruns; i++)
	{
		GhDeviceRun *run = set->runs[i];

		if (run->lost)
			continue;
		if (run->supply.failed)
			gh_set_lose(set, run, &run->supply);
		else if (run->parts != NULL)
			count_part(run, set->fragment->part);
	}
}

/*
 * All pages, once; those of devices that were lost meanwhile are left.  Participants that have made tables
 * together do not come back to those that are left, so all pages are taken then, whatever becomes of the
 * devices.
 */
static void
supply_all(GhDeviceSet *set)
{
	GhFragment *fragment = set->fragment;
	bool		all = set->runs[0]->together;

	do
	{
		gh_pages_begin(fragment->pages, fragment->scan);
		open_pages(set);
		while ((gh_set_goes_on(set) || all) && gh_pages_next(fragment->pages, GH_PAGES_AHEAD_MAX))
		{
			if (gh_set_goes_on(set))
				supply_page(set);
			else
				gh_log_blocks(&set->again, set->runs[0]->context, fragment->part, fragment->pages->block, fragment->pages->run);
		}
		flush(set);
	} while ((gh_set_goes_on(set) || all) && gh_parts_next(fragment));
}

/* Those that lost devices have read, for the others.  Each is named in some log at any time. */
static void
supply_again(GhDeviceSet *set)
{
	GhFragment *fragment = set->fragment;

	while (gh_set_goes_on(set) && set->again.count > 0)
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
		if (!gh_set_goes_on(set))
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
		gh_set_lose(set, run, &run->supply);
		return false;
	}
	return true;
}

/* As gh_supplies_take_buffers. */
bool
gh_device_set_take_buffers(GhFragment *fragment)
{
	return gh_supplies_take_buffers(&fragment->device->set->supplies);
}

/* Whether this participant had pipelines when it began to read. */
bool
gh_device_set_has_begun(const GhFragment *fragment)
{
	const GhDeviceSet *set = fragment->device->set;

	for (int i = 0; set != NULL && i < set->nruns; i++)
		if (set->runs[i]->running)
			return true;
	return fragment->device->running;
}

/* Has the devices read all pages that are left.  False: they could not. */
bool
gh_device_set_read(GhFragment *fragment)
{
	GhDeviceSet *set = fragment->device->set;
	int			part;

	if (!gh_set_goes_on(set))
		return false;
	supply_all(set);
	part = fragment->part;
	while (gh_set_goes_on(set) && (set->again.count > 0 || !have_buffers(set)))
		supply_again(set);
	gh_parts_turn_to(fragment, part);
	for (int i = 0; i < set->nruns; i++)
		if (set->runs[i]->running)
			gh_supply_close_pages(&set->runs[i]->supply);
	return gh_set_goes_on(set);
}

/* ------------------------------------------------------------------- what comes of it */

/* Whether rows were handed back, and are kept. */
bool
gh_device_set_keeps_rows(const GhFragment *fragment)
{
	const GhDeviceSet *set = fragment->device->set;
	bool		any = fragment->device->nkept > 0;

	for (int i = 0; set != NULL && i < set->nruns; i++)
		any |= !set->runs[i]->lost && set->runs[i]->nkept > 0;
	return any;
}

/*
 * Whether rows were handed back that have to be joined, and cannot be; participants together see to that
 * later.
 */
static bool
lacks_host_tables(GhDeviceSet *set)
{
	if (set->runs[0]->together || !gh_device_set_keeps_rows(set->fragment) || gh_device_open_host_tables(set->fragment))
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

/*
 * All devices have gone through to the end: adds rows that were handed back, and the counts, which become the
 * first one's.
 */
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
	fragment->counts.devices = Max(fragment->counts.devices, (uint32) gh_set_count_left(set));
}

/* All have done their parts, but the first one's error says why that is of no use. */
void
gh_device_set_decline(GhFragment *fragment)
{
	if (fragment->device->set != NULL)
		fragment->device->set->declined = &fragment->device->supply;
}

/* What was read was set back. */
void
gh_device_set_forget_log(GhFragment *fragment)
{
	GhDeviceSet *set = fragment->device->set;

	fragment->device->log.count = 0;
	for (int i = 0; set != NULL && i < set->nruns; i++)
		set->runs[i]->log.count = 0;
	if (set != NULL)
		set->again.count = 0;
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
		gh_set_move_log(set, set->runs[i]);
	for (int i = 0; i < set->again.count; i++)
		gh_device_log(first, set->again.ranges[i].part, set->again.ranges[i].first, set->again.ranges[i].count);
	set->again.count = 0;
}
