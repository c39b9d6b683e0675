/*
 * device.c
 *		A GpuHashScan whose conditions a device evaluates.
 *
 * Pages go to a pipeline of an engine, which tells which tuples its program lets through, or hands back, in
 * the order in which they lie in the table.  Requests are read one after the other, while the next ones are
 * worked on, and their pages stay where they are until their rows have come out.  So what comes out, and in
 * which order, is what a Seq Scan returns.
 *
 * When the device is lost, requests that have been read stay as they are; the blocks of the others are read
 * again by this process.
 *
 * Between the FETCHes of a cursor nothing is held: what the device has told of is kept as a list of rows, and
 * these are found again, a page at a time, when their turn comes.
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clock.h"
#include "fragment/device.h"
#include "scan/node.h"

/* What is left of a request; pages of its rows are not pinned. */
typedef struct GhKeptRequest
{
	uint64		removed;		/* rows that are still to be counted as such, */
	uint64		tuples;			/* and to the relation's statistics */
	uint64		nrows;
	uint64		room;			/* rows */
	GhDeviceRow *rows;
} GhKeptRequest;

/* What is listed of a run on the device (GhFragment.device), whose memory context all of it is in. */
typedef struct GhRowScanDevice
{
	GhDeviceRun *run;			/* the fragment's */
	bool		all_read;		/* there are no more pages */
	GhSupplyRequest *reading;	/* whose rows come out; NULL: none */
	int			nkept;			/* requests that were kept, before that or in its place */
	int			next_kept;		/* whose rows come out */
	GhKeptRequest kept[GH_SUPPLY_REQUESTS];
	uint64		next;			/* of the rows of the request that is read, or was kept */
	uint32		line;			/* of a page that was handed back whole: done */
	Buffer		pinned;			/* again, of a page that was copied or not kept; or InvalidBuffer */
	BlockNumber pinned_block;
	uint32		nagain;			/* blocks that are read again, for the device was lost */
	uint32		next_again;
	BlockNumber *again;
} GhRowScanDevice;

void
gh_rowscan_device_init(GhRowScan *node)
{
	gh_device_init(&node->fragment);
	node->device = palloc0(sizeof(GhRowScanDevice));
	node->device->run = node->fragment.device;
	node->device->pinned = InvalidBuffer;
}

/* ------------------------------------------------------------- the run */

static void
unpin(GhRowScanDevice *device)
{
	if (device->pinned != InvalidBuffer)
		ReleaseBuffer(device->pinned);
	device->pinned = InvalidBuffer;
}

static void
end_run(GhRowScan *node)
{
	GhRowScanDevice *device = node->device;

	unpin(device);
	if (device->run->running)
	{
		gh_counts_add_supply(&node->fragment.counts, &device->run->supply, &node->fragment.counts.source_time);
		gh_supply_close_pages(&device->run->supply);
		gh_supply_end(&device->run->supply);
	}
	device->run->running = false;
	device->reading = NULL;
	/* of the page that was read last, nothing is left to be done */
	node->conditions.tuple = node->counted = node->fragment.pages->ntuples;
}

/* Reads what the device has not done by the CPU engine. */
static void
give_up(GhRowScan *node, bool last)
{
	GhRowScanDevice *device = node->device;
	BlockNumber end = node->fragment.pages->block + node->fragment.pages->run - 1;

	gh_device_give_up(&node->fragment, &device->run->supply);
	device->nagain = gh_supply_blocks(&device->run->supply, &device->again);
	device->next_again = 0;
	/* it may have been lost before these were in a request */
	if (last && (device->nagain == 0 || device->again[device->nagain - 1] != end))
		for (uint32 k = 0; k < node->fragment.pages->run; k++)
			device->again[device->nagain++] = node->fragment.pages->block + k;
	end_run(node);
}

/* The program is that of the page conditions. */
static bool
begin_run(GhRowScan *node)
{
	GhFragment *fragment = &node->fragment;

	fragment->program.program = node->conditions.program;
	fragment->program.nfilters = node->conditions.nfilters;
	fragment->ninstructions = node->conditions.program->ninstructions;
	fragment->program.narrowed = node->conditions.nfilters < node->conditions.program->ninstructions;
	if (!gh_device_begin(fragment))
		return false;
	/* the order of the rows is to be the table's: what the device cannot judge would come behind it */
	gh_supply_open_pages(&fragment->device->supply, false);
	return true;
}

/* Whether the rest of the pages are to go to a device: asked before each, until it is known. */
bool
gh_rowscan_device_wants(GhRowScan *node)
{
	GhRowScanDevice *device = node->device;

	if (device->run->tried)
		return device->run->running;
	/* with a subquery's result there may be a better program */
	if (!gh_page_conditions_compile(&node->conditions) || node->conditions.awaited != NULL)
		return false;
	return begin_run(node);
}

/* ------------------------------------------------------------- rows */

/* Whether one row was handed back: neither one that passes, nor a page. */
static inline bool
is_row_back(const GhBackRow *told)
{
	return told->line != 0 && told->step != GH_STEP_LIVE;
}

/* What the device removed of a request's rows, as this one's turn comes. */
static void
count_told(GhRowScan *node, uint64 removed, uint64 tuples)
{
	InstrCountFiltered1(node, removed);
	pgstat_count_index_tuples(node->fragment.css.ss.ss_currentRelation, tuples);
}

/*
 * Rows that were handed back are among them until they meet the conditions: what is counted where no more
 * rows are asked for, below a LIMIT, must not depend on values of rows that nobody may be to know of.
 */
static uint64
told_removed(GhRowScan *node, const GhPipelineRequest *request)
{
	uint64		left = gh_page_conditions_left(&node->conditions, request);

	node->fragment.counts.groups_left += left;
	return request->seen - request->counted - left;
}

/* Supplies pages while there is room for them.  False: the device was lost. */
static bool
supply_pages(GhRowScan *node)
{
	GhRowScanDevice *device = node->device;

	if (!device->all_read)
		gh_supply_open_resident(&device->run->supply);
	while (!device->all_read && gh_supply_has_room(&device->run->supply))
	{
		if (!gh_pages_next(node->fragment.pages, GH_PAGES_AHEAD_MAX))
			device->all_read = true;
		else
		{
			node->fragment.counts.pages += node->fragment.pages->run;
			if (!gh_supply_page(&device->run->supply))
			{
				give_up(node, true);
				return false;
			}
		}
	}
	return true;
}

/* Goes on to the next request; false: all are read, or the device was lost. */
static bool
next_request(GhRowScan *node)
{
	GhRowScanDevice *device = node->device;
	const GhPipelineRequest *request;

	if (device->reading != NULL)
		gh_supply_done(&device->run->supply, device->reading);
	device->reading = NULL;
	if (!supply_pages(node))
		return false;
	device->reading = gh_supply_next(&device->run->supply);
	device->next = 0;
	device->line = 0;
	if (device->reading == NULL)
	{
		if (device->run->supply.failed)
			give_up(node, false);
		else
			end_run(node);
		return false;
	}
	request = &device->reading->request;
	count_told(node, told_removed(node, request), request->seen);
	return true;
}

/*
 * Pins the page of a request that has it as a copy, or was kept: tuples that were visible are where they
 * were.
 */
static Buffer
pin_again(GhRowScan *node, BlockNumber block)
{
	GhRowScanDevice *device = node->device;

	if (device->pinned != InvalidBuffer && device->pinned_block == block)
		return device->pinned;
	unpin(device);
	device->pinned = gh_pages_pin_again(node->fragment.pages, block);
	device->pinned_block = block;
	return device->pinned;
}

/*
 * The next row of the request that is read, of a page of that number in the list; false: there are no more.
 * What is not a tuple that was asked for did not come from a device that works.
 */
static bool
told_row(GhRowScanDevice *device, GhDeviceRow *row, uint32 *page)
{
	const GhSupplyRequest *request = device->reading;

	while (device->next < request->request.nback)
	{
		GhBackRow	told = request->back[device->next];
		uint32		line = told.line;
		uint32		listed = told.page < request->nall ? gh_supply_listed(request, told.page) : 0;

		if (told.page >= request->nall || line > request->pages[listed].lines ||
			(line != 0 && !gh_supply_asks(request, listed, line)))
			elog(ERROR, "a pipeline on a device has listed line %u of page %u", line, told.page);
		if (line != 0)
			device->next++;
		else
		{
			/* all that was asked of the page */
			line = ++device->line;
			if (line > Min(request->pages[listed].lines, MaxHeapTuplesPerPage))
			{
				device->line = 0;
				device->next++;
				continue;
			}
			if (!gh_supply_asks(request, listed, line))
				continue;
		}
		row->block = gh_supply_block(request, told.page);
		row->line = line;
		row->back = told.step != GH_STEP_LIVE;
		row->removed = is_row_back(&told);
		*page = listed;
		return true;
	}
	return false;
}

/* Its buffer, which is pinned. */
static Buffer
request_row(GhRowScan *node, GhDeviceRow *row)
{
	GhRowScanDevice *device = node->device;
	Buffer		buffer;
	uint32		page;

	if (!told_row(device, row, &page))
		return InvalidBuffer;
	buffer = device->reading->pins[page];
	return BufferIsValid(buffer) ? buffer : pin_again(node, row->block);
}

/* Likewise the next row of the requests that were kept. */
static Buffer
kept_row(GhRowScan *node, GhDeviceRow *row)
{
	GhRowScanDevice *device = node->device;

	for (; device->next_kept < device->nkept; device->next_kept++, device->next = 0)
	{
		GhKeptRequest *kept = &device->kept[device->next_kept];

		if (device->next == 0)
			count_told(node, kept->removed, kept->tuples);
		if (device->next < kept->nrows)
		{
			*row = kept->rows[device->next++];
			return pin_again(node, row->block);
		}
		if (kept->rows != NULL)
			pfree(kept->rows);
		unpin(device);
	}
	device->nkept = device->next_kept = 0;
	return InvalidBuffer;
}

/* ------------------------------------------------- while nothing is asked for */

static void
keep_row(GhRowScanDevice *device, GhKeptRequest *kept, const GhDeviceRow *row)
{
	if (kept->nrows == kept->room)
	{
		kept->room = Max(2 * kept->room, 64);
		kept->rows = kept->rows == NULL ?
			MemoryContextAlloc(device->run->context, sizeof(GhDeviceRow) * kept->room) :
			repalloc(kept->rows, sizeof(GhDeviceRow) * kept->room);
	}
	kept->rows[kept->nrows++] = *row;
}

/* Keeps the rows of the request that is read, from the next one on. */
static void
keep_rest(GhRowScan *node, uint64 removed, uint64 tuples)
{
	GhRowScanDevice *device = node->device;
	GhKeptRequest *kept = &device->kept[device->nkept++];
	GhDeviceRow row;
	uint32		page;

	memset(kept, 0, sizeof(*kept));
	kept->removed = removed;
	kept->tuples = tuples;
	while (told_row(device, &row, &page))
		keep_row(device, kept, &row);
	gh_supply_done(&device->run->supply, device->reading);
	device->reading = NULL;
	device->next = 0;
	device->line = 0;
}

/* Waits for all requests, and keeps what the device tells of them. */
static void
keep_requests(GhRowScan *node)
{
	GhRowScanDevice *device = node->device;

	if (device->reading != NULL)
		keep_rest(node, 0, 0);
	while ((device->reading = gh_supply_next(&device->run->supply)) != NULL)
		keep_rest(node, told_removed(node, &device->reading->request), device->reading->request.seen);
	if (device->run->supply.failed)
		give_up(node, false);
	else if (device->all_read)
		end_run(node);
	else
		gh_supply_free_buffers(&device->run->supply);
}

/*
 * No page is pinned any more, and no buffer taken; the device's pipeline stays as long as there are pages for
 * it.
 */
static void
let_go(GhRowScan *node)
{
	GhRowScanDevice *device = node->device;

	unpin(device);
	if (!device->run->running)
		return;
	gh_pages_park(node->fragment.pages);
	/* they are taken with the first page: while rows are left that were kept, there are none */
	if (device->run->supply.buffers[0] != NULL)
		keep_requests(node);
	if (device->run->running)
		gh_supply_leave_resident(&device->run->supply);
}

/*
 * After a row, or none, it is not known when the next one will be asked for: a cursor may be left where it is
 * for days.  At most the page of that row is pinned then.
 */
void
gh_rowscan_device_park(GhRowScan *node)
{
	ScanState  *ss = &node->fragment.css.ss;
	bool		is_top = ss->ps.plan == ss->ps.state->es_plannedstmt->planTree;

	/*
	 * The row that came out last is the cursor's current one.  Nodes above may go on with it, and what they have
	 * of it are addresses in the page, which the slot then keeps pinned.
	 */
	if (is_top && !TTS_EMPTY(ss->ss_ScanTupleSlot) && (node->device->run->running || node->device->nkept > 0))
		ExecMaterializeSlot(ss->ss_ScanTupleSlot);
	let_go(node);
}

/* ------------------------------------------------------------ the next row */

/* Reads what comes next; false: there is no more. */
static bool
read_more(GhRowScan *node)
{
	instr_time	clock = {0};
	bool		more;

	gh_clock(node->fragment.timing, NULL, &clock);
	more = next_request(node);
	/* the executor will not say when it stops for a while */
	if (more && node->may_stop)
		let_go(node);
	gh_clock(node->fragment.timing, &node->fragment.counts.source_time, &clock);
	return more;
}

/* The next line that the device has told of, or that is one of a page that it handed back; as below. */
static Buffer
next_line(GhRowScan *node, GhDeviceRow *row)
{
	GhRowScanDevice *device = node->device;

	for (;;)
	{
		Buffer		buffer = kept_row(node, row);

		if (!BufferIsValid(buffer) && device->reading != NULL)
			buffer = request_row(node, row);
		if (BufferIsValid(buffer))
			return buffer;
		CHECK_FOR_INTERRUPTS();
		if (!device->run->running || !read_more(node))
			return InvalidBuffer;
	}
}

/* The next row of the device's, and its buffer; InvalidBuffer: there are none, and the scan goes on alone. */
Buffer
gh_rowscan_device_row(GhRowScan *node, GhDeviceRow *row)
{
	Buffer		buffer;

	while (BufferIsValid(buffer = next_line(node, row)))
	{
		/* of a page that it has not looked at there may be lines that nobody asked for */
		bool		whole = row->back && !row->removed;

		if (gh_supply_has_tuple(buffer, row->line) &&
			(!whole || gh_supply_is_visible(&node->device->run->supply, buffer, row->block, row->line)))
			break;
		if (!whole)
			elog(ERROR, "a pipeline on a device has listed line %u of block %u", row->line, row->block);
	}
	return buffer;
}

/* ------------------------------------------------------------- what is left */

/* Reads the next page by this process, a block that the device has lost first; false: there are no more. */
bool
gh_rowscan_next_page(GhRowScan *node, int wanted)
{
	GhRowScanDevice *device = node->device;

	if (device->next_again < device->nagain)
	{
		gh_pages_read_block(node->fragment.pages, device->again[device->next_again++]);
		return true;
	}
	/* from a page that was passed over no scan goes on backward */
	if (device->all_read || !gh_page_conditions_read(&node->conditions, wanted, !node->is_scrolled))
		return false;
	node->fragment.counts.pages += node->conditions.pages_read;
	node->fragment.counts.column_pages += node->conditions.column_pages;
	return true;
}

/* No more rows are asked for in this run. */
void
gh_rowscan_device_stop(GhRowScan *node)
{
	if (!node->device->run->running)
		return;
	end_run(node);
	node->device->all_read = true;
}

/* Before a rescan, or the end. */
void
gh_rowscan_device_end(GhRowScan *node)
{
	end_run(node);
	gh_device_forget(&node->fragment);
	memset(node->device, 0, sizeof(GhRowScanDevice));
	node->device->run = node->fragment.device;
	node->device->pinned = InvalidBuffer;
}
