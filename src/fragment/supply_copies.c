/*
 * supply_copies.c
 *		Pages of no scan, which the caller copies into a request's buffer, or pins where they are: leaf pages of an
 *		index.
 *
 * All lines of a page are asked for that are entries and not known as dead, and those that cannot be read are handed
 * back with the page.  One that is pinned may be changed by others while the device reads it: then its LSN is another
 * one behind that, and what was read is not to be used.
 */
#include "postgres.h"

#include "access/itup.h"
#include "storage/bufmgr.h"

#include "fragment/supply.h"

/* Whether there is no room for another page, of which `ncopies` of `copy_room` are copies. */
static bool
is_full(const GhSupply *supply, const GhSupplyRequest *request)
{
	return request->request.npages == Min(supply->list_room, supply->room) ||
		(!supply->pins && request->ncopies == supply->copy_room) ||
		request->nlines + MaxIndexTuplesPerPage > supply->lines_room;
}

/* Where the next page is to be copied to, BLCKSZ bytes, until the next call; NULL: the supply has failed. */
char *
gh_supply_copy_room(GhSupply *supply)
{
	const GhSupplyRequest *request = &supply->requests[supply->current];

	if (supply->failed || !gh_supply_take_buffers(supply))
		return NULL;
	if (is_full(supply, request))
		gh_supply_turn_over(supply);
	request = &supply->requests[supply->current];
	return supply->failed ? NULL : request->copies + (Size) request->ncopies * BLCKSZ;
}

static void
put_page(GhSupply *supply, const void *page, Buffer pin, uint32 lines)
{
	GhSupplyRequest *request = &supply->requests[supply->current];
	uint32		i = request->request.npages++;

	request->blocks[i] = 0;
	request->pins[i] = pin;
	request->firsts[i] = request->nall++;
	request->nlines += lines;
	request->pages[i] = (GhPageRef) {.page = page,.lines = lines,.bitmap = GH_PAGE_ALL_LINES};
	supply->counts.pages++;
}

/* The page is there, and has so many lines.  False: the supply has failed. */
bool
gh_supply_copied_page(GhSupply *supply, uint32 lines)
{
	GhSupplyRequest *request = &supply->requests[supply->current];

	put_page(supply, request->copies + (Size) request->ncopies * BLCKSZ, InvalidBuffer, lines);
	request->ncopies++;
	return !supply->failed;
}

/*
 * Takes over a pin, of a page that had so many lines, and that LSN, under its lock; gh_supply_pins_pages was true.  False:
 * the supply has failed.
 */
bool
gh_supply_pinned_page(GhSupply *supply, Buffer buffer, uint32 lines, XLogRecPtr lsn)
{
	GhSupplyRequest *request = &supply->requests[supply->current];

	if (!supply->failed && is_full(supply, request))
		gh_supply_turn_over(supply);
	if (supply->failed)
	{
		ReleaseBuffer(buffer);
		return false;
	}
	request = &supply->requests[supply->current];
	if (request->lsns == NULL)
		request->lsns = MemoryContextAlloc(supply->context, sizeof(XLogRecPtr) * supply->list_room);
	request->lsns[request->request.npages] = lsn;
	supply->counts.pinned++;
	put_page(supply, BufferGetPage(buffer), buffer, lines);
	return true;
}

/* Whether a page has changed since it was pinned, as its LSN tells. */
static bool
some_changed(const GhSupplyRequest *request)
{
	bool		changed = false;

	for (uint32 i = 0; i < request->request.npages && !changed; i++)
	{
		if (!BufferIsValid(request->pins[i]))
			continue;
		LockBuffer(request->pins[i], BUFFER_LOCK_SHARE);
		changed = PageGetLSN(BufferGetPage(request->pins[i])) != request->lsns[i];
		LockBuffer(request->pins[i], BUFFER_LOCK_UNLOCK);
	}
	return changed;
}

/* What was handed back of a request. */
void
gh_supply_give_lines_back(GhSupply *supply, const GhSupplyRequest *request)
{
	if (some_changed(request))
	{
		supply->line_back(supply->arg, NULL, 0);
		return;
	}
	for (uint64 i = 0; i < request->request.nback; i++)
	{
		const GhBackRow *row = &request->back[i];

		if (row->page >= request->request.npages || row->line > request->pages[row->page].lines)
			elog(ERROR, "a pipeline on a device has handed back line %u of page %u", row->line, row->page);
		supply->line_back(supply->arg, request->pages[row->page].page, row->line);
	}
}
