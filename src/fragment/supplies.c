/*
 * supplies.c
 *		Supplies of the same pages on several devices: each page goes to one of them (device_set_read.c), or to all
 *		(device_joins.c).  One that has failed is passed over.
 */
#include "postgres.h"

#include "storage/bufmgr.h"

#include "fragment/supply.h"

bool
gh_supplies_go_on(const GhSupplies *all)
{
	for (int i = 0; i < all->count; i++)
		if (!all->supplies[i]->failed)
			return true;
	return false;
}

/* What some of the supplies can do with the pages is told of all: others copy what these leave. */
void
gh_supplies_tell_pages(const GhSupplies *all, GhPages *pages)
{
	bool		pins = false;

	for (int i = 0; i < all->count; i++)
		pins |= !all->supplies[i]->failed && all->supplies[i]->pins;
	pages->tuples_unread = pages->tells_pooled = pins;
}

/* As gh_supply_open_pages.  has_blocks, with its argument, tells which of them are on the devices. */
void
gh_supplies_open_pages(GhSupplies *all, GhPages *pages, uint32 (*has_blocks) (void *arg, BlockNumber block), void *arg)
{
	bool		any = false;

	for (int i = 0; i < all->count; i++)
	{
		if (all->supplies[i]->failed)
			continue;
		gh_supply_open_pages(all->supplies[i], true);
		any |= all->supplies[i]->resident != NULL;
	}
	pages->has_blocks = any ? has_blocks : NULL;
	pages->has_blocks_arg = arg;
	gh_supplies_tell_pages(all, pages);
}

/* Before the first page: takes buffers on all devices.  False: one has none, and then no other has. */
bool
gh_supplies_take_buffers(GhSupplies *all)
{
	for (int i = 0; i < all->count; i++)
	{
		if (all->supplies[i]->failed || gh_supply_take_buffers(all->supplies[i]))
			continue;
		all->supplies[i]->failed = false;
		while (i-- > 0)
			if (!all->supplies[i]->failed)
				gh_supply_free_buffers(all->supplies[i]);
		return false;
	}
	return true;
}

/*
 * The page that was read last, or run of them, goes to all of them.  Each has a pin of its own, which a
 * supply takes over or gives up.
 */
void
gh_supplies_page(GhSupplies *all, GhPages *pages)
{
	Buffer		buffer = pages->buffer;

	for (int i = 0; i < all->count; i++)
	{
		bool		shares = BufferIsValid(buffer) && i < all->count - 1;

		if (all->supplies[i]->failed)
			continue;
		if (shares)
			IncrBufferRefCount(buffer);
		(void) gh_supply_page(all->supplies[i]);
		if (shares && BufferIsValid(pages->buffer))
			ReleaseBuffer(buffer);
		if (shares)
			pages->buffer = buffer;
	}
	if (!pages->elsewhere)
		gh_supplies_tell_pages(all, pages);
}

/* Ends all requests, which the devices work on at a time. */
void
gh_supplies_flush(GhSupplies *all)
{
	for (int i = 0; i < all->count; i++)
		gh_supply_submit_last(all->supplies[i]);
	for (int i = 0; i < all->count; i++)
		if (!all->supplies[i]->failed)
			(void) gh_supply_flush(all->supplies[i]);
}
