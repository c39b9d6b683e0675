/*
 * supply_resident.c
 *		Pages of a supply's relation that are on the device already, or that stay there (store/resident.h).
 *
 * They have their turn among the others, in the order of the blocks, so that nobody can tell from the rows
 * which page came from where.
 */
#include "postgres.h"

#include "service/service.h"
#include "fragment/supply.h"

/*
 * How many blocks from that one on are on the device; as many as the request that is filled has room for,
 * whatever lines they have.
 */
uint32
gh_supply_has_blocks(GhSupply *supply, BlockNumber block)
{
	const GhSupplyRequest *request = &supply->requests[supply->current];
	uint32		left = Max(supply->lines_room, request->nlines) - request->nlines;
	uint32		most = Min(left / MaxHeapTuplesPerPage, gh_supply_most_pages(supply) - request->nall);

	/* before buffers are taken it is not known; a request has room for one page at least */
	return supply->resident == NULL ? 0 : gh_resident_find(supply->resident, block, Max(most, 1), &supply->found);
}

/* GhPages.has_blocks */
static uint32
has_blocks(void *arg, BlockNumber block)
{
	return gh_supply_has_blocks(arg, block);
}

/* Before the first page is read; the snapshot is held. */
void
gh_supply_open_resident(GhSupply *supply)
{
	GhPages    *pages = supply->pages;

	if (supply->engine->shares_tables && supply->resident == NULL)
		supply->resident = gh_resident_open(pages->relation, pages->snapshot, supply->device, supply->context);
	if (supply->resident == NULL)
		return;
	pages->tells_lsn = true;
	pages->has_blocks = has_blocks;
	pages->has_blocks_arg = supply;
}

/* The supply's pages are read by others from here on, and by no device. */
void
gh_supply_close_resident(GhSupply *supply)
{
	supply->pages->tells_lsn = false;
	supply->pages->has_blocks = NULL;
}

/*
 * No request is in flight, and who knows when there will be a next page: others may put pages there, or need
 * the memory.  For that page it is opened again, under the same snapshot.
 */
void
gh_supply_leave_resident(GhSupply *supply)
{
	if (supply->resident == NULL)
		return;
	gh_resident_close(supply->resident);
	supply->resident = NULL;
	gh_supply_close_resident(supply);
}

/*
 * What is to become of the page that the pages' scan has read.  in_place: it stays pinned until the device
 * has read it.  Without that, one that has free lines does not stay there.
 */
GhResidentOffer
gh_supply_offer_page(GhSupply *supply, bool in_place, GhResidentNote *note)
{
	const GhPages *pages = supply->pages;

	if (supply->resident == NULL || !pages->visible_now)
		return GH_RESIDENT_NOT;
	return gh_resident_offer(supply->resident, pages->block, pages->lsn, pages->all_visible || in_place, note);
}

/*
 * Whether a page that has free lines was changed while the device read it, beside the pin: a tuple may have
 * got one of them.  With the lock, whoever was about to has done it.
 */
static bool
was_changed(Buffer buffer, XLogRecPtr lsn)
{
	XLogRecPtr	now;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	now = BufferGetLSNAtomic(buffer);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return now != lsn;
}

/*
 * The request is done, and its pages are pinned: others may know of those that are on the device.  Once for
 * each request.
 */
void
gh_supply_publish(GhSupply *supply, GhSupplyRequest *request)
{
	for (uint32 i = 0; i < request->nnotes; i++)
	{
		GhResidentNote *note = &request->notes[i];

		if (note->kept && note->unsure)
			note->spoilt = was_changed(request->pins[note->listed], note->heap_lsn);
	}
	if (request->nnotes > 0)
		gh_resident_publish(supply->resident, request->notes, request->nnotes);
	request->nnotes = 0;
}

/* The page of a request is at a place, or is to be put there. */
void
gh_supply_name_place(GhSupply *supply, GhSupplyRequest *request, GhPageRef *page, const GhResidentPlace *at)
{
	uint32		n = 0;

	/* mostly the last one; there is room for one more (is_full) */
	for (n = request->request.nspans; n > 0 && request->spans[n - 1] != at->span;)
		n--;
	if (n == 0)
	{
		n = ++request->request.nspans;
		request->spans[n - 1] = at->span;
		request->named[n - 1] = gh_resident_span(supply->resident, at->span);
	}
	page->span = n;
	page->place = at->place;
}

/* Whether the next block, in its place, goes on with the run that is a page of the list. */
static bool
follows(const GhSupply *supply, const GhSupplyRequest *request, uint32 listed, const GhResidentPlace *at)
{
	const GhPageRef *run = &request->pages[listed];

	return run->page == NULL && request->spans[run->span - 1] == at->span && run->place + run->run == at->place &&
		request->blocks[listed] + run->run == supply->pages->block;
}

/*
 * The next pages of the request are so many from that place on, of blocks from that of the supply's pages on.
 */
void
gh_supply_put_resident(GhSupply *supply, GhSupplyRequest *request, const GhResidentPlace *at, uint32 run, uint32 lines)
{
	uint32		i = request->request.npages;
	GhPageRef  *page = &request->pages[i];

	request->nall += run;
	request->nlines += lines;
	supply->counts.resident += run;
	if (i > 0 && follows(supply, request, i - 1, at))
	{
		page[-1].run += (uint16) run;
		page[-1].lines += lines;
		return;
	}
	request->request.npages++;
	request->blocks[i] = supply->pages->block;
	request->pins[i] = InvalidBuffer;
	memset(page, 0, sizeof(*page));
	page->block = request->blocks[i];
	page->lines = lines;
	page->run = (uint16) run;
	page->bitmap = GH_PAGE_ALL_LINES;
	gh_supply_name_place(supply, request, page, at);
	request->firsts[i] = request->nall - run;
	request->nresident++;
}

/* For other queries, when the request is done. */
void
gh_supply_note(GhSupplyRequest *request, const GhResidentNote *note)
{
	request->notes[request->nnotes++] = *note;
}
