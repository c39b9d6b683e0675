/*
 * pages.c
 *		Pages that a request brings: their list, copied and held against the memory that its client may show.
 *
 * What lies in pages is not checked: the engine takes any bytes, also such that change while it reads them.
 * Called by threads.
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

/*
 * Whether a page of the list may stand for a run of pages: all of them in one span, and nothing else said of
 * them.
 */
static bool
is_run(const GhRunning *running, const GhPageRef *page)
{
	return page->page == NULL && page->span > 0 && page->span <= running->nspans && page->hinted == 0 &&
		page->bitmap == GH_PAGE_ALL_LINES && page->run <= running->spans[page->span - 1]->npages &&
		page->place <= running->spans[page->span - 1]->npages - page->run;
}

static const uint16 *
lines_in_span(const GhRunning *running, const GhPageRef *run)
{
	return gh_worker.tables[running->span_tables[run->span - 1]].span_lines + run->place;
}

/* Whether the run's pages have the lines that it says. */
static bool
has_lines(const GhPageRef *run, const uint16 *lines)
{
	uint64		sum = 0;

	for (uint32 k = 0; k < run->run; k++)
		sum += lines[k];
	return sum == run->lines;
}

/* The pages of a run, one by one, for an engine that takes no runs. */
static void
list_run(const GhPageRef *run, const uint16 *lines, GhPageRef *to)
{
	for (uint32 k = 0; k < run->run; k++)
	{
		to[k] = *run;
		to[k].run = 0;
		to[k].place += k;
		to[k].block += k;
		to[k].lines = lines[k];
	}
}

/*
 * Takes over a page of the list, or a run, of which at most so many pages are left; NULL, or what is wrong.
 */
static const char *
take_page(GhRunning *running, GhPageRef page, uint64 left)
{
	uint32		run = Max(page.run, 1);
	uint16		own = (uint16) page.lines;
	const uint16 *lines = &own;

	if (run > left)
		return "the list of pages changes";
	if (run > 1)
	{
		if (!is_run(running, &page))
			return "a run of pages is not in its span";
		lines = lines_in_span(running, &page);
	}
	else if (page.lines > PG_UINT16_MAX)
		return "a page has too many lines";
	if (running->page_lines != NULL)
	{
		/* what is checked is this copy: a request of another session may put pages there, which it should not */
		memcpy(running->page_lines + running->npages, lines, run * sizeof(uint16));
		lines = running->page_lines + running->npages;
	}
	if (run > 1 && !has_lines(&page, lines))
		return "a run of pages is not in its span";
	if (run > 1 && running->page_lines == NULL)
	{
		list_run(&page, lines, running->pages + running->nlisted);
		running->nlisted += run;
	}
	else
		running->pages[running->nlisted++] = page;
	running->npages += run;
	running->nlines += page.lines;
	return NULL;
}

/* The list; that of an engine that takes no runs has all pages of these.  NULL, or what is wrong. */
static const char *
list_pages(GhRunning *running, const GhPageRef *list, uint32 count)
{
	bool		runs = gh_worker.engine->pipelines->takes_runs;
	uint64		npages = gh_request_pages(list, count);
	const char *why = NULL;

	if (npages > GH_REQUEST_PAGES_MAX)
		return "a request has too many pages";
	running->pages = malloc(Max(runs ? count : npages, 1) * sizeof(GhPageRef));
	running->page_lines = runs ? malloc(Max(npages, 1) * sizeof(uint16)) : NULL;
	if (running->pages == NULL || (runs && running->page_lines == NULL))
		return "out of memory for a list of pages";
	/* each is a copy: its session may change what it shows */
	for (uint32 i = 0; i < count && why == NULL; i++)
		why = take_page(running, list[i], npages - running->npages);
	return why;
}

/* All processes have that memory at the same addresses; the buffers' device has another. */
static bool
place_pages(const GhSlot *asked, uint32 page_bytes, GhRunning *running)
{
	for (uint32 i = 0; i < running->nlisted; i++)
	{
		const char *page = running->pages[i].page;

		/* it is in a span: the engine looks at that */
		if (page == NULL)
		{
			running->nresident += Max(running->pages[i].run, 1);
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
	const char *why;

	running->readable = gh_worker.device->registered;
	running->ndirect = running->nresident = running->nlisted = running->npages = 0;
	running->nlines = 0;
	running->page_bytes = page_bytes;
	why = list_pages(running, list, count);
	if (why != NULL)
		return why;
	if (!place_pages(asked, page_bytes, running))
		return "a page of the request is not in memory that its session may show";
	return NULL;
}

void
gh_pages_drop(GhRunning *running)
{
	free(running->pages);
	free(running->page_lines);
	running->pages = NULL;
	running->page_lines = NULL;
	running->nlisted = running->npages = running->ndirect = running->nresident = 0;
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
	gh_executor_count(GH_COUNT_BYTES_TO, page_bytes + running->nlisted * sizeof(GhPageRef) +
					  bitmap_words * sizeof(uint64));
	gh_executor_count(GH_COUNT_BYTES_FROM, back_bytes);
}
