/*
 * supply_back.c
 *		Rows that an engine's pipeline hands back to the one that supplies its pages (supply.c).
 *
 * Those that the engine cannot do go to the caller, in their buffer.  Of those whose hints do not tell whether
 * they are visible that is found out here, as PostgreSQL does it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "fragment/supply.h"

/*
 * Tuples of a hinted page that may have to be judged for want of hints, on average, before these are doubted.  So many are judged
 * in the time that it takes to look at all tuples of a page.
 */
#define GH_JUDGED_MOST 8

/*
 * Whether the line was asked for, by the page as it was supplied: lines of a page that was copied may have got other
 * tuples since.  Those of a page that is on the device have not: it was all-visible, without a line for a new tuple.  But
 * which of them are tuples is to be seen in the buffer (gh_supply_has_tuple).
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

/*
 * A row, or all that was asked for of the page.  Of a page as a whole the engine has not seen any row.
 */
static void
give_back(GhSupply *supply, const GhSupplyRequest *request, Buffer buffer, const GhBackRow *row)
{
	const GhPageRef *page = &request->pages[row->page];
	BlockNumber block = request->blocks[row->page];

	for (OffsetNumber line = Max(row->line, 1); line <= (row->line != 0 ? row->line : page->lines); line++)
		if (gh_supply_asks(request, row->page, line) && gh_supply_has_tuple(buffer, line))
		{
			supply->counts.tuples += row->line == 0;
			supply->row_back(supply->arg, buffer, block, line);
		}
}

/* Whether it is not known of a row, or of those of a page, which one is visible. */
static bool
is_untold(const GhSupplyRequest *request, const GhBackRow *row)
{
	return request->pages[row->page].hinted && (row->step == GH_STEP_VISIBILITY || row->line == 0);
}

/* Judges the untold ones of some rows of a page that were handed back. */
static void
judge(GhSupply *supply, const GhSupplyRequest *request, Buffer buffer, const GhBackRow *rows, uint64 count)
{
	uint32		number = rows[0].page;
	BlockNumber block = request->blocks[number];
	GhJudgedPage *judged = &supply->judged[supply->njudged];

	judged->page = number;
	judged->lines = 0;
	memset(judged->visible, 0, sizeof(judged->visible));
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	for (uint64 i = 0; i < count; i++)
	{
		OffsetNumber last = rows[i].line != 0 ? rows[i].line : request->pages[number].lines;

		if (!is_untold(request, &rows[i]))
			continue;
		for (OffsetNumber line = Max(rows[i].line, 1); line <= Min(last, MaxHeapTuplesPerPage); line++)
		{
			/* of a page as a whole, others are there for their values, which nobody may be to know of */
			supply->counts.judged += !gh_pages_hints_tell(supply->pages, buffer, line);
			if (!gh_pages_is_visible(supply->pages, buffer, block, line))
				continue;
			judged->visible[(line - 1) / 64] |= UINT64CONST(1) << (line - 1) % 64;
			judged->lines = line;
		}
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	supply->njudged += judged->lines > 0;
}

/* Rows of one page. */
static void
give_rows_back(GhSupply *supply, const GhSupplyRequest *request, Buffer buffer, const GhBackRow *rows, uint64 count)
{
	uint64		untold = 0;

	for (uint64 i = 0; i < count; i++)
		untold += is_untold(request, &rows[i]);
	if (untold > 0)
		judge(supply, request, buffer, rows, count);
	for (uint64 i = 0; i < count; i++)
		if (!is_untold(request, &rows[i]))
			give_back(supply, request, buffer, &rows[i]);
}

static void
check_row(const GhSupplyRequest *request, uint64 i)
{
	const GhBackRow *row = &request->back[i];

	if (row->page >= request->request.npages || row->line > request->pages[row->page].lines ||
		(i > 0 && row->page < row[-1].page))
		elog(ERROR, "a pipeline on a device has handed back line %u of page %u", row->line, row->page);
}

/*
 * All rows of a request that were handed back.  Of a copied page, the page itself is pinned again: visible
 * tuples are still where they were.
 */
void
gh_supply_give_back(GhSupply *supply, const GhSupplyRequest *request)
{
	uint64		nback = request->request.nback;
	uint64		before = supply->counts.judged;
	uint64		count;

	for (uint64 i = 0; i < nback; i++)
		check_row(request, i);
	for (uint64 i = 0; i < nback; i += count)
	{
		const GhBackRow *rows = &request->back[i];
		Buffer		buffer = request->pins[rows->page];
		bool		is_copy = !BufferIsValid(buffer);

		for (count = 1; i + count < nback && rows[count].page == rows->page;)
			count++;
		CHECK_FOR_INTERRUPTS();
		if (is_copy)
			buffer = gh_pages_pin_again(supply->pages, request->blocks[rows->page]);
		give_rows_back(supply, request, buffer, rows, count);
		if (is_copy)
			ReleaseBuffer(buffer);
	}
	if (request->nhinted > 0)
		supply->pages->headers_doubted = supply->counts.judged - before > (uint64) request->nhinted * GH_JUDGED_MOST;
}
