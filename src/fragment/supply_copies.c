/*
 * supply_copies.c
 *		Pages that the caller copies into a request's buffer, and that are of no scan: leaf pages of an index.
 *
 * All lines of a page are asked for that are entries and not known as dead, and those that cannot be read are handed
 * back with the copy.
 */
#include "postgres.h"

#include "access/itup.h"

#include "fragment/supply.h"

/* Where the next page is to be copied to, BLCKSZ bytes, until the next call; NULL: the supply has failed. */
char *
gh_supply_copy_room(GhSupply *supply)
{
	const GhSupplyRequest *request = &supply->requests[supply->current];

	if (supply->failed || !gh_supply_take_buffers(supply))
		return NULL;
	if (request->ncopies == supply->copy_room || request->request.npages == supply->list_room ||
		request->nlines + MaxIndexTuplesPerPage > supply->lines_room)
		gh_supply_turn_over(supply);
	request = &supply->requests[supply->current];
	return supply->failed ? NULL : request->copies + (Size) request->ncopies * BLCKSZ;
}

/* The page is there, and has so many lines.  False: the supply has failed. */
bool
gh_supply_copied_page(GhSupply *supply, uint32 lines)
{
	GhSupplyRequest *request = &supply->requests[supply->current];
	uint32		i = request->request.npages++;

	request->blocks[i] = 0;
	request->pins[i] = InvalidBuffer;
	request->firsts[i] = request->nall++;
	request->nlines += lines;
	request->pages[i] = (GhPageRef)
	{
		.page = request->copies + (Size) request->ncopies++ * BLCKSZ,.lines = lines,.bitmap = GH_PAGE_ALL_LINES
	};
	supply->counts.pages++;
	return !supply->failed;
}

/* What was handed back of a request. */
void
gh_supply_give_lines_back(GhSupply *supply, const GhSupplyRequest *request)
{
	for (uint64 i = 0; i < request->request.nback; i++)
	{
		const GhBackRow *row = &request->back[i];

		if (row->page >= request->request.npages || row->line > request->pages[row->page].lines)
			elog(ERROR, "a pipeline on a device has handed back line %u of page %u", row->line, row->page);
		supply->line_back(supply->arg, request->pages[row->page].page, row->line);
	}
}
