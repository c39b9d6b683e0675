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

/* Whether there is no room for another page. */
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
 * Takes over a pin, of a page that had so many lines, and that LSN, under its lock; gh_supply_pins_pages was
 * true.  False: the supply has failed.
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

/* Locks a page that is pinned; false: it has changed since, as its LSN tells. */
static bool
lock_same(const GhSupplyRequest *request, uint32 i)
{
	LockBuffer(request->pins[i], BUFFER_LOCK_SHARE);
	return PageGetLSN(BufferGetPage(request->pins[i])) == request->lsns[i];
}

/* Lines of one page that were handed back, the first one of which is given; how many.  -1: the page has changed. */
static int64
give_page_back(GhSupply *supply, const GhSupplyRequest *request, uint64 first)
{
	const GhBackRow *rows = &request->back[first];
	uint32		page = rows->page;
	bool		pinned;
	bool		same;
	int64		n = 0;

	if (page >= request->request.npages)
		elog(ERROR, "a pipeline on a device has handed back page %u", page);
	pinned = BufferIsValid(request->pins[page]);
	/* what is read of it now is what the device has read */
	same = !pinned || lock_same(request, page);
	for (; same && first + n < request->request.nback && rows[n].page == page; n++)
	{
		if (rows[n].line > request->pages[page].lines)
			elog(ERROR, "a pipeline on a device has handed back line %u of page %u", rows[n].line, page);
		supply->line_back(supply->arg, request->pages[page].page, rows[n].line);
	}
	if (pinned)
		LockBuffer(request->pins[page], BUFFER_LOCK_UNLOCK);
	return same ? n : -1;
}

/* Whether some page has changed since it was pinned. */
static bool
some_changed(const GhSupplyRequest *request)
{
	bool		same = true;

	for (uint32 i = 0; i < request->request.npages && same; i++)
	{
		if (!BufferIsValid(request->pins[i]))
			continue;
		same = lock_same(request, i);
		LockBuffer(request->pins[i], BUFFER_LOCK_UNLOCK);
	}
	return !same;
}

/* What was handed back of a request. */
void
gh_supply_give_lines_back(GhSupply *supply, const GhSupplyRequest *request)
{
	bool		changed = some_changed(request);
	int64		n = 0;

	for (uint64 i = 0; i < request->request.nback && !changed; i += n)
	{
		CHECK_FOR_INTERRUPTS();
		n = give_page_back(supply, request, i);
		changed = n < 0;
	}
	if (changed)
		supply->line_back(supply->arg, NULL, 0);
}
