/*
 * pages.c
 *		The pages of a relation that a query reads, one after the other.
 *
 * Which block is next, and what PostgreSQL does with its page, is the maker's to know (heap_scan.c); here,
 * pages are read and held.
 *
 * From PostgreSQL 17 on, pages come through a read stream.  One that belongs to a scan's descriptor would
 * hold pins on the pages that it has read ahead while a node's rows are returned,
 * for as long as a cursor stays open.  So there is a stream of our own over the same
 * blocks, which ends after as many blocks as the caller wants, and then goes on.
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "heap/hints.h"
#include "heap/pages.h"

/* Chooses a block; InvalidBlockNumber when all have been. */
static BlockNumber
choose_block(GhPages *pages)
{
	BlockNumber block = pages->chosen;

	pages->chosen = InvalidBlockNumber;
	if (block != InvalidBlockNumber)
		return block;
	if (pages->finished)
		return InvalidBlockNumber;
	block = pages->maker->choose(pages, pages->first);
	pages->first = false;
	pages->last_chosen = block;
	pages->finished = block == InvalidBlockNumber;
	return block;
}

/*
 * Chooses the blocks behind that one, as many as the order of the scan has there, `most` at most; how many.
 */
static uint32
choose_run(GhPages *pages, BlockNumber block, uint32 most)
{
	uint32		run = 0;

	if (pages->maker->choose_run != NULL && !pages->finished)
	{
		run = pages->maker->choose_run(pages, most);
		pages->last_chosen = block + run;
		return run;
	}
	for (; run < most; run++)
	{
		BlockNumber next = choose_block(pages);

		if (next != block + run + 1)
		{
			pages->chosen = next;
			break;
		}
	}
	return run;
}

/*
 * Whether pages may be looked for where they were last.  A scan through a ring leaves few pages in the pool,
 * but it may be there as a whole: a table that is larger than a quarter of it.
 */
static inline bool
uses_hints(const GhPages *pages)
{
	return pages->pooled;
}

/* The next pages, if the caller has them; false: it has not the next one, or there is none. */
static bool
leave_to_caller(GhPages *pages)
{
	BlockNumber block;
	uint32		most;

	if (pages->has_blocks == NULL)
		return false;
	block = choose_block(pages);
	if (block == InvalidBlockNumber)
		return false;
	most = pages->has_blocks(pages->has_blocks_arg, block);
	if (most == 0)
	{
		pages->chosen = block;
		return false;
	}
	/* as far as the order of the scan goes along with that */
	pages->run = 1 + choose_run(pages, block, most - 1);
	pages->block = block;
	pages->ntuples = 0;
	pages->all_visible = pages->elsewhere = true;
	pages->by_headers = pages->was_read = false;
	return true;
}

/* The next page, where it was last; false: it is not known to be there, or there is none. */
static bool
read_hinted(GhPages *pages)
{
	BlockNumber block;

	if (!uses_hints(pages))
		return false;
	block = choose_block(pages);
	if (block == InvalidBlockNumber)
		return false;
	if (!gh_hint_read(pages->relation, block, pages->strategy != NULL, &pages->buffer))
	{
		pages->buffer = InvalidBuffer;
		pages->chosen = block;
		return false;
	}
	pages->block = block;
	pages->was_read = false;
	return true;
}

/* A page that was not found by its hint has been read; its hint is for those that stay in the pool. */
static inline void
keep_hint(const GhPages *pages)
{
	if (uses_hints(pages) && !pages->was_read)
		gh_hint_keep(pages->relation, pages->block, pages->buffer);
}

/* The page that was read, and the one that is mostly next. */
static inline void
fetch_pages(const GhPages *pages)
{
	gh_page_fetch(pages->buffer);
	if (uses_hints(pages))
		gh_hint_fetch(pages->relation, pages->block + 1);
}

/* Gives up the pin on the visibility map. */
static void
leave_map(GhPages *pages)
{
	if (BufferIsValid(pages->map))
		ReleaseBuffer(pages->map);
	pages->map = InvalidBuffer;
}

#if GH_HAVE_READ_STREAM

/* Notes of the block that is chosen whether a ring is to read it, before the stream does. */
static void
note_missed(GhPages *pages, BlockNumber block)
{
	uint32		number = (pages->nread + pages->ahead) % GH_PAGES_AHEAD_MAX;
	uint64		bit = UINT64CONST(1) << number % 64;

	if (pages->tells_pooled && pages->pooled && gh_block_is_in_pool(pages->relation, block))
		pages->missed[number / 64] &= ~bit;
	else
		pages->missed[number / 64] |= bit;
}

static bool
was_missed(const GhPages *pages)
{
	uint32		number = pages->nread % GH_PAGES_AHEAD_MAX;

	return (pages->missed[number / 64] >> number % 64 & 1) != 0;
}

/* Whether the stream is not to read the block: the caller has it, or it is where it was last. */
static bool
need_not_be_looked_up(const GhPages *pages, BlockNumber block)
{
	return (pages->has_blocks != NULL && pages->has_blocks(pages->has_blocks_arg, block) > 0) ||
		(uses_hints(pages) && gh_hint_is_good(pages->relation, block, pages->strategy != NULL));
}

/* ReadStreamBlockNumberCB */
static BlockNumber
choose_block_in_budget(ReadStream *stream, void *arg, void *per_buffer_data)
{
	GhPages    *pages = (GhPages *) arg;
	BlockNumber block = pages->budget > 0 ? choose_block(pages) : InvalidBlockNumber;

	/* the stream reads what has to be looked up, and the first page that has not ends it */
	if (block != InvalidBlockNumber && pages->ahead > 0 && need_not_be_looked_up(pages, block))
	{
		pages->chosen = block;
		block = InvalidBlockNumber;
	}
	pages->ended = block == InvalidBlockNumber;
	if (!pages->ended)
	{
		if (pages->strategy != NULL)
			note_missed(pages, block);
		pages->budget--;
		pages->ahead++;
	}
	return block;
}

static void
end_stream(GhPages *pages)
{
	if (pages->stream != NULL)
		read_stream_end(pages->stream);
	pages->stream = NULL;
}

/* The strategy may be another one than in the last run. */
static void
start_stream(GhPages *pages)
{
	MemoryContext saved = MemoryContextSwitchTo(pages->context);

	end_stream(pages);
	pages->stream = read_stream_begin_relation(GH_READ_STREAM_FLAGS, pages->strategy, pages->relation,
											   MAIN_FORKNUM, choose_block_in_budget, pages, 0);
	MemoryContextSwitchTo(saved);
}

/* The page through the stream; false at the end. */
static bool
read_from_stream(GhPages *pages, int wanted)
{
	int64		nread = pgBufferUsage.shared_blks_read;

	/* a stream that was told of no more blocks asks again when it is reset */
	if (pages->ended && pages->ahead == 0)
		read_stream_reset(pages->stream);
	/* what is wanted is told anew for each page, so that mostly it need not be */
	pages->budget = Max(Min(wanted, GH_PAGES_AHEAD_MAX) - pages->ahead, 0);
	pages->buffer = read_stream_next_buffer(pages->stream, NULL);
	if (!BufferIsValid(pages->buffer))
		return false;
	if (pgBufferUsage.shared_blks_read != nread)
		pages->last_read = pages->nread;
	if (pages->tells_pooled)
		pages->was_read = pages->strategy != NULL && was_missed(pages);
	else
		pages->was_read = pages->strategy != NULL && pages->nread - pages->last_read < GH_PAGES_AHEAD_MAX;
	pages->nread++;
	pages->ahead--;
	pages->block = BufferGetBlockNumber(pages->buffer);
	keep_hint(pages);
	return true;
}

static bool
read_page(GhPages *pages, int wanted)
{
	if (pages->ahead == 0 && leave_to_caller(pages))
		return true;
	if ((pages->ahead > 0 || !read_hinted(pages)) && !read_from_stream(pages, wanted))
		return false;
	if (!pages->tuples_unread)
		fetch_pages(pages);
	if (!gh_pages_prepare_lines(pages))
		pages->maker->prepare(pages);
	return true;
}

/*
 * Gives up the stream's pins, and keeps that on the page that was read last.  Blocks that processes share
 * are chosen for good.
 */
void
gh_pages_forget_ahead(GhPages *pages)
{
	leave_map(pages);
	if (pages->ahead == 0 || pages->shared)
		return;
	read_stream_reset(pages->stream);
	pages->ahead = 0;
	pages->ended = false;
	pages->last_chosen = pages->block;
	pages->finished = false;
	pages->chosen = InvalidBlockNumber;
}

#else

#define start_stream(pages) ((void) 0)
#define end_stream(pages) ((void) 0)

static bool
read_page(GhPages *pages, int wanted)
{
	bool		hinted;
	BlockNumber block;

	if (leave_to_caller(pages))
		return true;
	hinted = pages->lines_suffice && read_hinted(pages);
	block = hinted ? pages->block : choose_block(pages);
	if (block == InvalidBlockNumber)
		return false;
	pages->block = block;
	if (pages->lines_suffice && !hinted)
	{
		int64		nread = pgBufferUsage.shared_blks_read;

		pages->buffer = gh_pages_read_buffer(pages);
		pages->was_read = pages->strategy != NULL && pgBufferUsage.shared_blks_read != nread;
		keep_hint(pages);
	}
	if (!gh_pages_prepare_lines(pages))
		pages->maker->prepare(pages);
	if (!pages->tuples_unread)
		fetch_pages(pages);
	return true;
}

void
gh_pages_forget_ahead(GhPages *pages)
{
	leave_map(pages);
}

#endif							/* GH_HAVE_READ_STREAM */

/* ----------------------------------------------------------- for readers */

/* Its maker is set when it begins. */
void
gh_pages_init(GhPages *pages, MemoryContext context)
{
	memset(pages, 0, sizeof(*pages));
	pages->context = context;
	pages->block = InvalidBlockNumber;
}

/* Whether a page was read in this run. */
bool
gh_pages_have_begun(const GhPages *pages)
{
	return pages->maker != NULL && !pages->maker->is_new(pages);
}

static void
begin_run(GhPages *pages)
{
	pages->maker->begin(pages);
	pages->first = true;
	pages->finished = pages->ended = false;
	pages->budget = pages->ahead = 0;
	pages->chosen = InvalidBlockNumber;
	pages->pooled = !RelationUsesLocalBuffers(pages->relation);
	start_stream(pages);
}

/*
 * Reads the next page; false at the end.  It is pinned, not locked, and what is visible is known.  The caller
 * wants so many pages, this one included, before it returns to the executor.
 */
bool
gh_pages_next(GhPages *pages, int wanted)
{
	gh_pages_leave(pages);
	/* there may be any number of pages without a row */
	CHECK_FOR_INTERRUPTS();
	pages->elsewhere = false;
	pages->run = 1;
	if (pages->maker->is_new(pages))
		begin_run(pages);
	return read_page(pages, wanted);
}

/* The page of pages->block, pinned. */
Buffer
gh_pages_read_buffer(const GhPages *pages)
{
	return ReadBufferExtended(pages->relation, MAIN_FORKNUM, pages->block, RBM_NORMAL, pages->strategy);
}

/* Reads a block that was read before, once more.  The next page is the one that it was. */
void
gh_pages_read_block(GhPages *pages, BlockNumber block)
{
	gh_pages_leave(pages);
	CHECK_FOR_INTERRUPTS();
	pages->all_visible = pages->by_headers = pages->elsewhere = pages->visible_now = false;
	pages->was_read = pages->strategy != NULL;
	pages->run = 1;
	pages->block = block;
	pages->maker->prepare(pages);
	gh_page_fetch(pages->buffer);
}

/*
 * Pins the page of a block that the caller has, of those that were read last: it has so many tuples, all of
 * which are visible, and the caller sets the lines of those that it wants.  True: it was not in the pool.
 */
bool
gh_pages_turn_to(GhPages *pages, BlockNumber block, int ntuples)
{
	int64		nread = pgBufferUsage.shared_blks_read;

	gh_pages_leave(pages);
	if (!uses_hints(pages) || !gh_hint_read(pages->relation, block, pages->strategy != NULL, &pages->buffer))
		pages->buffer = gh_pages_pin_again(pages, block);
	pages->block = block;
	pages->ntuples = ntuples;
	pages->all_visible = pages->by_headers = pages->elsewhere = false;
	pages->run = 1;
	return pgBufferUsage.shared_blks_read != nread;
}

/*
 * Pins a page that was read before, for tuples that were visible then: they are where they were, unless
 * the snapshot has become too old, which is an error.
 */
Buffer
gh_pages_pin_again(GhPages *pages, BlockNumber block)
{
	Buffer		buffer = ReadBufferExtended(pages->relation, MAIN_FORKNUM, block, RBM_NORMAL,
											pages->strategy);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	gh_test_old_snapshot(pages->snapshot, pages->relation, BufferGetPage(buffer));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return buffer;
}

/* The pin on the page becomes the caller's. */
Buffer
gh_pages_take_pin(GhPages *pages)
{
	Buffer		buffer = pages->buffer;

	pages->buffer = InvalidBuffer;
	return buffer;
}

/* Gives up the pin on the page. */
void
gh_pages_leave(GhPages *pages)
{
	if (BufferIsValid(pages->buffer))
		ReleaseBuffer(gh_pages_take_pin(pages));
}

/* Gives up every pin, before the executor takes over for who knows how long. */
void
gh_pages_park(GhPages *pages)
{
	gh_pages_leave(pages);
	gh_pages_forget_ahead(pages);
}

void
gh_pages_end(GhPages *pages)
{
	gh_pages_leave(pages);
	leave_map(pages);
	end_stream(pages);
}
