/*
 * pages.c
 *		Pages that a request brings: their list, copied and held against the memory that its client may show.
 *
 * What lies in pages is not checked: the engine takes any bytes, also such that change while it reads them.  Called by
 * threads.
 */
#include "postgres.h"

#include <stdlib.h>

#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "service/pool.h"
#include "service/threads.h"

/* Whether a page is whole in a buffer of the process that asks. */
static bool
is_in_buffer(const GhSlot *asked, const char *page, uint32 page_bytes)
{
	const char *area = gh_buffer_at(0);
	uint32		first;
	uint32		begin;
	uint32		end;
	const GhSlot *slot;

	if (page < area || page >= gh_buffer_at(gh_service->units) ||
		page_bytes > (Size) (gh_buffer_at(gh_service->units) - page))
		return false;
	begin = (uint32) ((page - area) / GH_UNIT_BYTES);
	end = (uint32) ((page + page_bytes - 1 - area) / GH_UNIT_BYTES);
	first = pg_atomic_read_u32(gh_unit_at(begin));
	if (first == 0 || first > gh_service->units || pg_atomic_read_u32(gh_unit_at(end)) != first)
		return false;
	slot = gh_slot_at(first - 1);
	return slot->procno == asked->procno && slot->pid == asked->pid;
}

/* Whether it is a page of the server's buffers. */
static bool
is_in_pool(const char *page, uint32 page_bytes)
{
	return page_bytes == BLCKSZ && page >= BufferBlocks &&
		page < BufferBlocks + (Size) NBuffers * BLCKSZ && (page - BufferBlocks) % BLCKSZ == 0;
}

/* A page of the server's buffers, where the device reads it; where it does not, it is copied. */
static void
place_in_pool(GhRunning *running, GhPageRef *page)
{
	if (!running->in_pool)
		running->in_pool = gh_pool_enter();
	if (running->in_pool)
	{
		page->page = gh_pool_place(page->page);
		running->ndirect++;
	}
	else
		running->readable = false;
}

/* All processes have that memory at the same addresses; the buffers' device has another. */
static bool
place_pages(const GhSlot *asked, uint32 page_bytes, GhRunning *running)
{
	for (uint32 i = 0; i < running->npages; i++)
	{
		const char *page = running->pages[i].page;

		/* it is in a span: the engine looks at that */
		if (page == NULL)
		{
			running->nresident++;
			continue;
		}
		if (is_in_buffer(asked, page, page_bytes))
			continue;
		if (!is_in_pool(page, page_bytes))
			return false;
		place_in_pool(running, &running->pages[i]);
	}
	return true;
}

const char *
gh_pages_take(const GhSlot *asked, const GhPageRef *list, uint32 count, uint32 page_bytes, GhRunning *running)
{
	running->readable = gh_worker.device->registered;
	running->ndirect = running->nresident = 0;
	running->npages = count;
	running->page_bytes = page_bytes;
	running->pages = malloc(Max(count, 1) * sizeof(GhPageRef));
	if (running->pages == NULL)
		return "out of memory for a list of pages";
	memcpy(running->pages, list, count * sizeof(GhPageRef));
	if (!place_pages(asked, page_bytes, running))
		return "a page of the request is not in memory that its session may show";
	return NULL;
}

void
gh_pages_drop(GhRunning *running)
{
	free(running->pages);
	running->pages = NULL;
	running->npages = running->ndirect = running->nresident = 0;
	running->readable = false;
	if (running->in_pool)
		gh_pool_leave();
	running->in_pool = false;
}

void
gh_pages_count(const GhRunning *running, uint64 bitmap_words, uint64 back_bytes)
{
	uint64		page_bytes = (uint64) (running->npages - running->nresident) * running->page_bytes;

	gh_executor_count(GH_COUNT_PAGE_BATCHES, running->pages != NULL ? 1 : 0);
	gh_executor_count(GH_COUNT_PAGES, running->npages);
	gh_executor_count(GH_COUNT_PAGES_RESIDENT, running->nresident);
	if (running->readable)
		gh_executor_count(GH_COUNT_PAGES_DIRECT, running->ndirect);
	gh_executor_count(GH_COUNT_PAGE_BYTES, page_bytes);
	gh_executor_count(GH_COUNT_BYTES_TO, page_bytes + running->npages * sizeof(GhPageRef) +
					  bitmap_words * sizeof(uint64));
	gh_executor_count(GH_COUNT_BYTES_FROM, back_bytes);
}
