/*
 * sample.c
 *		What a device makes of some of the pages, before it reads all of them.
 *
 * The pages are spread evenly over the relation, and are read by a scan of its own: that of the fragment does
 * not move. They go through a pipeline of the fragment's program with a sink of its own.  Rows that it hands
 * back are left out, and nothing is counted.
 */
#include "postgres.h"

#include "fragment/device.h"

/* GhRowBack */
static void
leave_out(void *arg, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	(void) arg;
	(void) buffer;
	(void) block;
	(void) line;
}

/* Supplies the pages; false: the supply has failed. */
static bool
supply_pages(GhSupply *supply)
{
	bool		done = true;

	supply->row_back = leave_out;
	gh_supply_open_pages(supply, true);
	while (done && gh_pages_next(supply->pages, GH_PAGES_AHEAD_MAX))
		done = gh_supply_page(supply);
	done = done && gh_supply_flush(supply);
	gh_pages_park(supply->pages);
	gh_supply_close_pages(supply);
	return done;
}

/*
 * Hands over what comes of so many pages of the fragment's scan, some hundred kilobytes of records at a time.
 * False: the device could not go on; whoever reads all pages will see.
 */
bool
gh_device_sample(GhFragment *fragment, BlockNumber npages, void (*take) (void *arg, const char *records, Size bytes),
				 void *arg)
{
	MemoryContext saved = MemoryContextSwitchTo(fragment->device->context);
	GhSupply   *supply = palloc0(sizeof(GhSupply));
	GhPages    *pages = gh_sample_begin(fragment->pages, npages);
	bool		done;

	MemoryContextSwitchTo(saved);
	done = gh_device_begin_supply(fragment, supply, pages) && supply_pages(supply) &&
		gh_supply_fetch(supply, gh_device_piece(fragment), take, arg);
	gh_supply_end(supply);
	gh_sample_end(pages);
	return done;
}
