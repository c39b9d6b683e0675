/*
 * supply_back.c
 *		Rows that an engine's pipeline hands back to the one that supplies its pages (supply.c).
 *
 * Those that the engine cannot do go to the caller, in their buffer.  Of those whose hints do not tell
 * whether they are visible that is found out here, as PostgreSQL does it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "fragment/supply.h"

/*
 * Tuples of a hinted page that may have to be judged for want of hints, on average, before these are doubted.
 * So many are judged in the time that it takes to look at all tuples of a page.
 */
#define GH_JUDGED_MOST 8

/* Which page of the list it is, by its number among all. */
uint32
gh_supply_listed(const GhSupplyRequest *request, uint32 page)
{
	uint32		low = 0;
	uint32		high = request->request.npages - 1;

	if (request->nall == request->request.npages)
		return page;
	while (low < high)
	{
		uint32		middle = high - (high - low) / 2;

		if (request->firsts[middle] <= page)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* The block of a page, by its number among all. */
BlockNumber
gh_supply_block(const GhSupplyRequest *request, uint32 page)
{
	uint32		listed = gh_supply_listed(request, page);

	return request->blocks[listed] + (page - request->firsts[listed]);
}

/* The blocks of all requests that are not done, in the order in which they were supplied; how many. */
uint32
gh_supply_blocks(const GhSupply *supply, BlockNumber **blocks)
{
	uint32		n = 0;

	for (int i = 0; i < GH_SUPPLY_REQUESTS; i++)
		n += supply->requests[i].nall;
	/* the caller may have one run more */
	*blocks = MemoryContextAlloc(supply->context, sizeof(BlockNumber) * (n + supply->pages->run + 1));
	n = 0;
	/* the one that is filled is the newest, and the next one the oldest; or else that is the oldest itself */
	for (int i = supply->requests[supply->current].submitted ? 0 : 1, last = i + GH_SUPPLY_REQUESTS; i < last; i++)
	{
		const GhSupplyRequest *request = &supply->requests[(supply->current + i) % GH_SUPPLY_REQUESTS];

		for (uint32 p = 0; p < request->request.npages; p++)
			for (uint32 k = 0; k < Max(request->pages[p].run, 1); k++)
				(*blocks)[n++] = request->blocks[p] + k;
	}
	return n;
}

/*
 * Whether the line was asked for, by the page as it was supplied: lines of a page that was copied may have
 * got other tuples since.  Of a page that is on the device that cannot be seen here: which lines are tuples
 * is to be seen in the buffer (gh_supply_has_tuple), where those that the engine tells of are what they were.
 */
bool
gh_supply_asks(const GhSupplyRequest *request, uint32 number, OffsetNumber line)
{
	const GhPageRef *page = &request->pages[number];

	if (page->page == NULL)
		return line <= page->lines;
	if (page->bitmap == GH_PAGE_ALL_LINES)
		return ItemIdIsNormal(PageGetItemId((Page) page->page, line));
	return (request->bitmaps[page->bitmap + (line - 1) / 64] >> (line - 1) % 64 & 1) != 0;
}

/* Whether the line of a page that is pinned is a tuple's. */
bool
gh_supply_has_tuple(Buffer buffer, OffsetNumber line)
{
	Page		page = BufferGetPage(buffer);

	return line <= PageGetMaxOffsetNumber(page) && ItemIdIsNormal(PageGetItemId(page, line));
}

/* Rows of one page that were handed back. */
typedef struct PageBack
{
	uint32		listed;			/* the page's number in the list */
	const GhPageRef *page;
	BlockNumber block;
	Buffer		buffer;
	const GhBackRow *rows;
	uint64		count;
} PageBack;

/* Whether the snapshot sees the tuple of a line. */
bool
gh_supply_is_visible(GhSupply *supply, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	bool		visible;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	visible = gh_pages_is_visible(supply->pages, buffer, block, line);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return visible;
}

/*
 * Whether a row of a page that was handed back, or a line of one that was so as a whole, is one that was
 * asked for.  Which lines a page on the device has is not known here: there the snapshot tells.
 */
static bool
has_row(GhSupply *supply, const GhSupplyRequest *request, uint32 listed, Buffer buffer, BlockNumber block,
		OffsetNumber line, bool whole)
{
	return gh_supply_asks(request, listed, line) && gh_supply_has_tuple(buffer, line) &&
		(!whole || request->pages[listed].page != NULL || gh_supply_is_visible(supply, buffer, block, line));
}

/*
 * A row, or all that was asked for of the page.  Of a page as a whole the engine has not seen any row.
 */
static void
give_back(GhSupply *supply, const GhSupplyRequest *request, const PageBack *back, const GhBackRow *row)
{
	bool		whole = row->line == 0;
	OffsetNumber last = whole ? Min(back->page->lines, MaxHeapTuplesPerPage) : row->line;

	for (OffsetNumber line = Max(row->line, 1); line <= last; line++)
		if (has_row(supply, request, back->listed, back->buffer, back->block, line, whole))
		{
			supply->counts.tuples += whole;
			supply->row_back(supply->arg, back->buffer, back->block, line);
		}
}

/* Whether it is not known of a row, or of those of a page, which one is visible. */
static bool
is_untold(const PageBack *back, const GhBackRow *row)
{
	return back->page->hinted && (row->step == GH_STEP_VISIBILITY || row->line == 0);
}

/* Judges the untold ones of some rows of a page that were handed back. */
static void
judge(GhSupply *supply, const PageBack *back)
{
	GhJudgedPage *judged = &supply->judged[supply->njudged];

	judged->page = back->listed;
	judged->lines = 0;
	memset(judged->visible, 0, sizeof(judged->visible));
	LockBuffer(back->buffer, BUFFER_LOCK_SHARE);
	for (uint64 i = 0; i < back->count; i++)
	{
		const GhBackRow *row = &back->rows[i];
		OffsetNumber last = row->line != 0 ? row->line : back->page->lines;

		if (!is_untold(back, row))
			continue;
		for (OffsetNumber line = Max(row->line, 1); line <= Min(last, MaxHeapTuplesPerPage); line++)
		{
			/* of a page as a whole, others are there for their values, which nobody may be to know of */
			supply->counts.judged += !gh_pages_hints_tell(supply->pages, back->buffer, line);
			if (!gh_pages_is_visible(supply->pages, back->buffer, back->block, line))
				continue;
			judged->visible[(line - 1) / 64] |= UINT64CONST(1) << (line - 1) % 64;
			judged->lines = line;
		}
	}
	LockBuffer(back->buffer, BUFFER_LOCK_UNLOCK);
	supply->njudged += judged->lines > 0;
}

static void
give_rows_back(GhSupply *supply, const GhSupplyRequest *request, const PageBack *back)
{
	uint64		untold = 0;

	for (uint64 i = 0; i < back->count; i++)
		untold += is_untold(back, &back->rows[i]);
	if (untold > 0)
		judge(supply, back);
	for (uint64 i = 0; i < back->count; i++)
		if (!is_untold(back, &back->rows[i]))
			give_back(supply, request, back, &back->rows[i]);
}

static void
check_row(const GhSupplyRequest *request, uint64 i)
{
	const GhBackRow *row = &request->back[i];

	if (row->page >= request->nall || row->line > request->pages[gh_supply_listed(request, row->page)].lines ||
		(i > 0 && row->page < row[-1].page))
		elog(ERROR, "a pipeline on a device has handed back line %u of page %u", row->line, row->page);
}

/*
 * All rows of a request that were handed back.  Of a page that is not pinned, the page itself is pinned
 * again: visible tuples are still where they were.
 */
void
gh_supply_give_back(GhSupply *supply, const GhSupplyRequest *request)
{
	uint64		nback = request->request.nback;
	uint64		before = supply->counts.judged;
	PageBack	back;

	for (uint64 i = 0; i < nback; i++)
		check_row(request, i);
	for (uint64 i = 0; i < nback; i += back.count)
	{
		bool		is_pinned;

		back.rows = &request->back[i];
		back.listed = gh_supply_listed(request, back.rows->page);
		back.page = &request->pages[back.listed];
		back.block = gh_supply_block(request, back.rows->page);
		back.buffer = request->pins[back.listed];
		is_pinned = BufferIsValid(back.buffer);
		for (back.count = 1; i + back.count < nback && back.rows[back.count].page == back.rows->page;)
			back.count++;
		CHECK_FOR_INTERRUPTS();
		if (!is_pinned)
			back.buffer = gh_pages_pin_again(supply->pages, back.block);
		give_rows_back(supply, request, &back);
		if (!is_pinned)
			ReleaseBuffer(back.buffer);
	}
	if (request->nhinted > 0)
		supply->pages->headers_doubted = supply->counts.judged - before > (uint64) request->nhinted * GH_JUDGED_MOST;
}
