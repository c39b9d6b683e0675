/*
 * supply_back.c
 *		Rows that an engine's scan hands back to the one that supplies its pages (supply.c).
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
 * tuples since.
 */
bool
gh_supply_asks(const GhSupplyRequest *request, uint32 number, OffsetNumber line)
{
	const GhScanPage *page = &request->pages[number];

	if (page->bitmap == GH_SCAN_ALL)
		return ItemIdIsNormal(PageGetItemId((Page) page->page, line));
	return (request->bitmaps[page->bitmap + (line - 1) / 64] >> (line - 1) % 64 & 1) != 0;
}

/* A row, or all that was asked for of the page. */
static void
give_back(GhSupply *supply, const GhSupplyRequest *request, Buffer buffer, const GhScanRow *row)
{
	const GhScanPage *page = &request->pages[row->page];
	BlockNumber block = request->blocks[row->page];

	for (OffsetNumber line = Max(row->line, 1); line <= (row->line != 0 ? row->line : page->lines); line++)
		if (gh_supply_asks(request, row->page, line))
		{
			supply->counts.tuples++;
			supply->row_back(supply->arg, buffer, block, line);
		}
}

/*
 * Judges the tuples of a hinted page that were handed back: rows[0], and those up to count that are of the
 * same page.  Returns how many these were.
 */
static uint64
judge(GhSupply *supply, const GhSupplyRequest *request, Buffer buffer, const GhScanRow *rows, uint64 count)
{
	uint32		number = rows[0].page;
	BlockNumber block = request->blocks[number];
	GhJudgedPage *judged = &supply->judged[supply->njudged];
	uint64		n = 0;

	judged->page = number;
	judged->lines = 0;
	memset(judged->visible, 0, sizeof(judged->visible));
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	for (; n < count && rows[n].page == number; n++)
	{
		OffsetNumber last = rows[n].line != 0 ? rows[n].line : request->pages[number].lines;

		for (OffsetNumber line = Max(rows[n].line, 1); line <= Min(last, MaxHeapTuplesPerPage); line++)
		{
			/* the others are there for their values, which nobody may be to know of */
			supply->counts.judged += !gh_pages_hints_tell(supply->pages, buffer, line);
			if (!gh_pages_is_visible(supply->pages, buffer, block, line))
				continue;
			judged->visible[(line - 1) / 64] |= UINT64CONST(1) << (line - 1) % 64;
			judged->lines = line;
		}
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	supply->njudged += judged->lines > 0;
	return n;
}

static void
check_row(const GhSupplyRequest *request, uint64 i)
{
	const GhScanRow *row = &request->back[i];

	if (row->page >= request->request.npages || row->line > request->pages[row->page].lines ||
		(i > 0 && row->page < row[-1].page))
		elog(ERROR, "a scan on a device has handed back line %u of page %u", row->line, row->page);
}

/*
 * All rows of a request that were handed back.  Of a copied page, the page itself is pinned again: visible
 * tuples are still where they were.
 */
void
gh_supply_give_back(GhSupply *supply, const GhSupplyRequest *request)
{
	Buffer		buffer = InvalidBuffer;
	uint32		pinned = 0;
	uint64		before = supply->counts.judged;

	for (uint64 i = 0; i < request->request.nback; i++)
		check_row(request, i);
	for (uint64 i = 0; i < request->request.nback;)
	{
		GhScanRow	row = request->back[i];

		Buffer		place = request->pins[row.page];

		if (!BufferIsValid(place))
		{
			if (buffer == InvalidBuffer || pinned != row.page)
			{
				if (buffer != InvalidBuffer)
					ReleaseBuffer(buffer);
				buffer = gh_pages_pin_again(supply->pages, request->blocks[row.page]);
				pinned = row.page;
			}
			place = buffer;
		}
		CHECK_FOR_INTERRUPTS();
		if (request->pages[row.page].hinted)
			i += judge(supply, request, place, &request->back[i], request->request.nback - i);
		else
		{
			give_back(supply, request, place, &row);
			i++;
		}
	}
	if (buffer != InvalidBuffer)
		ReleaseBuffer(buffer);
	if (request->nhinted > 0)
		supply->pages->headers_doubted = supply->counts.judged - before > (uint64) request->nhinted * GH_JUDGED_MOST;
}
