/*
 * device_replay.c
 *		What a participant remembers of what it has read for a device: blocks, to read them again by the CPU engine where the
 *		device is lost, and rows that were handed back, to join them later.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "fragment/device.h"
#include "fragment/joined.h"

/* ---------------------------------------------------------------- the blocks */

/* Appends blocks of a part of the fragment; the log grows in the context. */
void
gh_log_blocks(GhBlockLog *log, MemoryContext context, int part, BlockNumber block, uint32 count)
{
	GhBlockRange *last = log->count > 0 ? &log->ranges[log->count - 1] : NULL;

	if (last != NULL && last->part == part && block == last->first + last->count)
	{
		last->count += count;
		return;
	}
	if (log->count == log->room)
	{
		log->room = Max(2 * log->room, 64);
		log->ranges = log->ranges == NULL ?
			MemoryContextAlloc(context, sizeof(GhBlockRange) * log->room) :
			repalloc(log->ranges, sizeof(GhBlockRange) * log->room);
	}
	last = &log->ranges[log->count++];
	last->part = part;
	last->first = block;
	last->count = count;
}

/* Blocks of a part have been taken. */
void
gh_device_log(GhDeviceRun *device, int part, BlockNumber block, uint32 count)
{
	gh_log_blocks(&device->log, device->context, part, block, count);
}

uint64
gh_device_pages_logged(const GhDeviceRun *device)
{
	uint64		pages = 0;

	for (int i = 0; i < device->log.count; i++)
		pages += device->log.ranges[i].count;
	return pages;
}

/*
 * Nothing of what this participant has read is kept: the same blocks are read again, by the CPU engine.
 * left: what is to be read then, as far as it is known.  Returns what is.
 */
GhJoinedInput
gh_device_start_anew(GhFragment *fragment, GhJoinedInput left)
{
	GhDeviceRun   *device = fragment->device;
	uint64		pages = 0;
	int			part = fragment->part;

	gh_fragment_start_anew(fragment);
	if (fragment->joined != NULL && !device->together && !fragment->joined->open &&
		!gh_joined_open_tables(fragment, true))
	{
		gh_fragment_rewind(fragment);
		left = GH_JOINED_ROWS;
	}
	if (left == GH_JOINED_ROWS)
	{
		gh_fragment_forget_program(fragment);
		return left;
	}
	for (int i = 0; i < device->log.count; i++)
	{
		gh_parts_turn_to(fragment, device->log.ranges[i].part);
		for (BlockNumber b = 0; b < device->log.ranges[i].count; b++)
		{
			gh_fragment_reread(fragment, device->log.ranges[i].first + b, pages++ < device->read_before);
			fragment->methods->keep_within_memory(fragment);
		}
	}
	gh_parts_turn_to(fragment, part);
	return left;
}

/* ------------------------------------------------------------------ the rows */

/* A row that was handed back is to be added when there are tables to join it with. */
void
gh_device_keep_row(GhDeviceRun *device, int part, BlockNumber block, OffsetNumber line)
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
			MemoryContextAlloc(device->context, sizeof(GhKeptRow) * device->kept_room) :
			repalloc(device->kept, sizeof(GhKeptRow) * device->kept_room);
	}
	device->kept[device->nkept].part = part;
	/* a macro, until 15 */
	ItemPointerSet(&device->kept[device->nkept].at, block, line);
	device->nkept++;
}

/* The rows that were kept: they are still where they were. */
void
gh_device_add_kept_rows(GhDeviceRun *device)
{
	GhFragment *fragment = device->fragment;

	if (device->nkept > 0 && fragment->joined != NULL && !fragment->joined->open)
		elog(ERROR, "the tables of joins cannot be made on the host");
	for (int i = 0; i < device->nkept; i++)
	{
		const GhKeptRow *row = &device->kept[i];
		BlockNumber block = ItemPointerGetBlockNumber(&row->at);
		Buffer		buffer;
		bool		accepted;

		gh_parts_turn_to(fragment, row->part);
		buffer = gh_pages_pin_again(fragment->pages, block);
		accepted = gh_add_tuple(fragment, buffer, block, ItemPointerGetOffsetNumber(&row->at));
		fragment->counts.rows += accepted;
		if (fragment->parts != NULL)
			fragment->parts[row->part].passed += accepted;
		ExecClearTuple(((ScanState *) fragment->scan)->ss_ScanTupleSlot);
		ReleaseBuffer(buffer);
		fragment->methods->keep_within_memory(fragment);
	}
}
