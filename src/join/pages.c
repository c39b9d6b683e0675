/*
 * pages.c
 *		The pages of a sequential heap scan, one after the other.
 *
 * The scan is the descriptor of a SeqScan node, made as that node makes it, and its
 * pages are read by PostgreSQL's own functions, which see to all that a page asks for
 * (README lists it): here, only the next block is chosen, as heap_getnext would
 * choose it.  So rescans and the end of the node find the descriptor as they
 * left it: rs_inited says whether the scan has begun since.
 *
 * From PostgreSQL 17 on, pages come through a read stream.  The descriptor's own would
 * hold pins on the pages that it has read ahead while the join's rows are returned,
 * for as long as a cursor stays open.  So the join has a stream of its own over the same
 * blocks, which ends after as many blocks as the caller wants, and then goes on.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/syncscan.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

#include "hints.h"
#include "join/source.h"

/* What one fetch brings: no more than a cache line. */
#define GH_FETCH_BYTES 64


/* ------------------------------------------------- which block is next */

/* The next block of a scan that workers share. */
static BlockNumber
next_shared_block(GhPages *pages)
{
	HeapScanDesc scan = pages->scan;
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	if (!pages->started)
		table_block_parallelscan_startblock_init(scan->rs_base.rs_rd,
												 scan->rs_parallelworkerdata, shared);
	return table_block_parallelscan_nextpage(scan->rs_base.rs_rd,
											 scan->rs_parallelworkerdata, shared);
}

/* The next block of a scan that starts anywhere and goes once around. */
static BlockNumber
next_own_block(GhPages *pages)
{
	HeapScanDesc scan = pages->scan;
	BlockNumber block;

	if (!pages->started)
		return scan->rs_nblocks == 0 ? InvalidBlockNumber : scan->rs_startblock;
	block = pages->block + 1;
	if (block >= scan->rs_nblocks)
		block = 0;
	/* at the end, too: the next scan should start where this one did */
	if (scan->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->rs_base.rs_rd, block);
	return block == scan->rs_startblock ? InvalidBlockNumber : block;
}

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
	block = pages->scan->rs_base.rs_parallel != NULL ?
		next_shared_block(pages) : next_own_block(pages);
	pages->started = true;
	pages->block = block;
	pages->finished = block == InvalidBlockNumber;
	return block;
}

/* -------------------------------------------------- how it is read */

/*
 * Asks for all of a page at once, before its tuples are looked at one by one, from the last line
 * upward to the first, which the processor does not foresee.  Both halves at a time, since they
 * may lie in different pages of memory.  Always inlined: a function that does no more than fetch is
 * one that gcc thinks need not be called.
 */
static pg_attribute_always_inline void
fetch_into_cache(Buffer buffer)
{
	const char *page = (const char *) BufferGetPage(buffer);

	for (int at = 0; at < BLCKSZ / 2; at += GH_FETCH_BYTES)
	{
		__builtin_prefetch(page + at);
		__builtin_prefetch(page + BLCKSZ / 2 + at);
	}
}

/*
 * Whether the tuple's hints say that it is visible: its inserter had committed before anything that the
 * snapshot does not see, and nobody has done more to it since than lock it.  The others are PostgreSQL's
 * to judge.
 */
static inline bool
is_plainly_visible(HeapTupleHeader tuple, Snapshot snapshot)
{
	return HeapTupleHeaderXminCommitted(tuple) &&
		(tuple->t_infomask & (HEAP_XMAX_INVALID | HEAP_XMAX_LOCK_ONLY)) != 0 &&
		(HeapTupleHeaderXminFrozen(tuple) ||
		 TransactionIdPrecedes(HeapTupleHeaderGetRawXmin(tuple), snapshot->xmin));
}

/* The page's tuples that are visible; it is locked. */
static void
collect_tuples(GhPages *pages, Page page)
{
	HeapScanDesc scan = pages->scan;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	OffsetNumber lines = PageGetMaxOffsetNumber(page);
	int			n = 0;

	for (OffsetNumber line = FirstOffsetNumber; line <= lines; line++)
	{
		ItemId		item = PageGetItemId(page, line);

		if (ItemIdIsNormal(item) &&
			(is_plainly_visible((HeapTupleHeader) PageGetItem(page, item), snapshot) ||
			 gh_pages_is_visible(pages, scan->rs_cbuf, scan->rs_cblock, line)))
			scan->rs_vistuples[n++] = line;
	}
	scan->rs_ntuples = n;
}

/* Of some of the tuples, the last one among them: those without hints are mostly there. */
static bool
hints_are_set(const GhPages *pages, Page page)
{
	OffsetNumber lines = PageGetMaxOffsetNumber(page);
	const OffsetNumber some[] = {lines, lines / 2, Min(lines, FirstOffsetNumber)};

	for (int i = 0; i < lengthof(some); i++)
	{
		OffsetNumber line = some[i];

		if (line != InvalidOffsetNumber && ItemIdIsNormal(PageGetItemId(page, line)) &&
			!is_plainly_visible((HeapTupleHeader) PageGetItem(page, PageGetItemId(page, line)),
								pages->scan->rs_base.rs_snapshot))
			return false;
	}
	return true;
}

/*
 * Whether somebody else is to find what is visible by the tuples' hints, beside the pin; README says why
 * that is right.  The page is locked.
 */
static bool
leave_to_headers(GhPages *pages, Page page)
{
	return pages->headers_suffice && PageGetMaxOffsetNumber(page) <= MaxHeapTuplesPerPage &&
		(!pages->headers_doubted || hints_are_set(pages, page));
}

/*
 * Where lines suffice, does what PostgreSQL does when it prepares a page.  Whether all of its tuples
 * are visible, and will be as long as it is pinned, is told without a look at them: no line that
 * is free now can be used by a new one then.  False: the page is PostgreSQL's to prepare.
 */
static bool
prepare_lines(GhPages *pages)
{
	HeapScanDesc scan = pages->scan;
	Relation	relation = scan->rs_base.rs_rd;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	Page		page = BufferGetPage(scan->rs_cbuf);

	pages->all_visible = pages->by_headers = false;
	if (!pages->lines_suffice || CheckForSerializableConflictOutNeeded(relation, snapshot))
		return false;
	heap_page_prune_opt(relation, scan->rs_cbuf);
	LockBuffer(scan->rs_cbuf, BUFFER_LOCK_SHARE);
	gh_test_old_snapshot(snapshot, relation, page);
	pages->all_visible = PageIsAllVisible(page) && !PageHasFreeLinePointers(page) &&
		!snapshot->takenDuringRecovery;
	pages->by_headers = !pages->all_visible && leave_to_headers(pages, page);
	pages->upper = ((PageHeader) page)->pd_upper;
	if (pages->all_visible || pages->by_headers)
		scan->rs_ntuples = PageGetMaxOffsetNumber(page);
	else
	{
		fetch_into_cache(scan->rs_cbuf);
		collect_tuples(pages, page);
	}
	LockBuffer(scan->rs_cbuf, BUFFER_LOCK_UNLOCK);
	return true;
}

/* The next page, where it was last; false: it is not known to be there, or there is none. */
static bool
read_hinted(GhPages *pages)
{
	HeapScanDesc scan = pages->scan;
	BlockNumber block;

	if (!pages->hinted)
		return false;
	block = choose_block(pages);
	if (block == InvalidBlockNumber)
		return false;
	if (!gh_hint_read(scan->rs_base.rs_rd, block, &scan->rs_cbuf))
	{
		scan->rs_cbuf = InvalidBuffer;
		pages->chosen = block;
		return false;
	}
	scan->rs_cblock = block;
	return true;
}

#if GH_HAVE_READ_STREAM

/* ReadStreamBlockNumberCB */
static BlockNumber
choose_block_in_budget(ReadStream *stream, void *arg, void *per_buffer_data)
{
	GhPages    *pages = (GhPages *) arg;
	BlockNumber block = pages->budget > 0 ? choose_block(pages) : InvalidBlockNumber;

	/* the stream reads what has to be looked up, and the first page that has not ends it */
	if (pages->hinted && block != InvalidBlockNumber && pages->ahead > 0 &&
		gh_hint_is_good(pages->scan->rs_base.rs_rd, block))
	{
		pages->chosen = block;
		block = InvalidBlockNumber;
	}
	pages->ended = block == InvalidBlockNumber;
	if (!pages->ended)
	{
		pages->budget--;
		pages->ahead++;
	}
	return block;
}

/* The descriptor may have got another strategy with the rescan. */
static void
start_reading(GhPages *pages)
{
	MemoryContext saved = MemoryContextSwitchTo(pages->context);

	gh_pages_end(pages);
	pages->stream = read_stream_begin_relation(GH_READ_STREAM_FLAGS, pages->scan->rs_strategy,
											   pages->scan->rs_base.rs_rd, MAIN_FORKNUM,
											   choose_block_in_budget, pages, 0);
	MemoryContextSwitchTo(saved);
}

/* The page through the stream; false at the end of the scan. */
static bool
read_from_stream(GhPages *pages, int wanted)
{
	HeapScanDesc scan = pages->scan;

	/* a stream that was told of no more blocks asks again when it is reset */
	if (pages->ended && pages->ahead == 0)
		read_stream_reset(pages->stream);
	/* what is wanted is told anew for each page, so that mostly it need not be */
	pages->budget = Max(wanted - pages->ahead, 0);
	scan->rs_cbuf = read_stream_next_buffer(pages->stream, NULL);
	if (!BufferIsValid(scan->rs_cbuf))
		return false;
	pages->ahead--;
	scan->rs_cblock = BufferGetBlockNumber(scan->rs_cbuf);
	if (pages->hinted)
		gh_hint_keep(scan->rs_base.rs_rd, scan->rs_cblock, scan->rs_cbuf);
	return true;
}

static bool
read_page(GhPages *pages, int wanted)
{
	HeapScanDesc scan = pages->scan;

	if ((pages->ahead > 0 || !read_hinted(pages)) && !read_from_stream(pages, wanted))
		return false;
	if (!pages->tuples_unread)
		fetch_into_cache(scan->rs_cbuf);
	if (!prepare_lines(pages))
		heap_prepare_pagescan((TableScanDesc) scan);
	return true;
}

static void
read_block(HeapScanDesc scan, BlockNumber block)
{
	scan->rs_cbuf = ReadBufferExtended(scan->rs_base.rs_rd, MAIN_FORKNUM, block, RBM_NORMAL,
									   scan->rs_strategy);
	scan->rs_cblock = block;
	heap_prepare_pagescan((TableScanDesc) scan);
}

/*
 * Gives up the stream's pins, and keeps that on the page that was read last.  Blocks that workers share
 * are chosen for good.
 */
void
gh_pages_forget_ahead(GhPages *pages)
{
	if (pages->ahead == 0 || pages->scan->rs_base.rs_parallel != NULL)
		return;
	read_stream_reset(pages->stream);
	pages->ahead = 0;
	pages->ended = false;
	pages->block = pages->scan->rs_cblock;
	pages->finished = false;
	pages->chosen = InvalidBlockNumber;
}

void
gh_pages_end(GhPages *pages)
{
	if (pages->stream != NULL)
		read_stream_end(pages->stream);
	pages->stream = NULL;
}

#else

static void
start_reading(GhPages *pages)
{
}

static void
read_block(HeapScanDesc scan, BlockNumber block)
{
	heapgetpage((TableScanDesc) scan, block);
}

static bool
read_page(GhPages *pages, int wanted)
{
	HeapScanDesc scan = pages->scan;
	bool		hinted = pages->lines_suffice && read_hinted(pages);
	BlockNumber block = hinted ? scan->rs_cblock : choose_block(pages);

	if (block == InvalidBlockNumber)
		return false;
	if (pages->lines_suffice && !hinted)
	{
		scan->rs_cbuf = ReadBufferExtended(scan->rs_base.rs_rd, MAIN_FORKNUM, block, RBM_NORMAL,
										   scan->rs_strategy);
		scan->rs_cblock = block;
		if (pages->hinted)
			gh_hint_keep(scan->rs_base.rs_rd, block, scan->rs_cbuf);
	}
	/* a page that was pinned already gives up the pin, and takes another one */
	if (!prepare_lines(pages))
		read_block(scan, block);
	if (!pages->tuples_unread)
		fetch_into_cache(scan->rs_cbuf);
	return true;
}

void
gh_pages_forget_ahead(GhPages *pages)
{
}

void
gh_pages_end(GhPages *pages)
{
}

#endif							/* GH_HAVE_READ_STREAM */

/* ------------------------------------------------------- for source.c */

/* The scan is set when there is one. */
void
gh_pages_init(GhPages *pages, MemoryContext context)
{
	memset(pages, 0, sizeof(*pages));
	pages->context = context;
}

/*
 * Reads the next page; false at the end of the scan.  It is pinned, not locked, and
 * rs_vistuples of the scan tells its rows.  The caller wants so many pages, this one
 * included, before it returns to the executor.
 */
bool
gh_pages_next(GhPages *pages, int wanted)
{
	gh_pages_leave(pages);
	/* the scan may go over any number of pages without a row */
	CHECK_FOR_INTERRUPTS();
	if (!pages->scan->rs_inited)
	{
		pages->started = pages->finished = pages->ended = false;
		pages->budget = pages->ahead = 0;
		pages->chosen = InvalidBlockNumber;
		pages->hinted = pages->scan->rs_strategy == NULL &&
			!RelationUsesLocalBuffers(pages->scan->rs_base.rs_rd);
		start_reading(pages);
		pages->scan->rs_inited = true;
	}
	return read_page(pages, wanted);
}

/* Reads a block that was read before, once more.  The next page is the one that it was. */
void
gh_pages_read_block(GhPages *pages, BlockNumber block)
{
	gh_pages_leave(pages);
	CHECK_FOR_INTERRUPTS();
	pages->all_visible = pages->by_headers = false;
	read_block(pages->scan, block);
	fetch_into_cache(pages->scan->rs_cbuf);
}

/*
 * Pins a page that was read before, for tuples that were visible then: they are where they were, unless
 * the snapshot has become too old, which is an error.
 */
Buffer
gh_pages_pin_again(GhPages *pages, BlockNumber block)
{
	HeapScanDesc scan = pages->scan;
	Buffer		buffer = ReadBufferExtended(scan->rs_base.rs_rd, MAIN_FORKNUM, block, RBM_NORMAL, scan->rs_strategy);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	gh_test_old_snapshot(scan->rs_base.rs_snapshot, scan->rs_base.rs_rd, BufferGetPage(buffer));
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return buffer;
}

/* Whether a line leads to a tuple whose hints say that it is visible.  The page of the buffer is locked. */
bool
gh_pages_hints_tell(const GhPages *pages, Buffer buffer, OffsetNumber line)
{
	Page		page = BufferGetPage(buffer);

	return line <= PageGetMaxOffsetNumber(page) && ItemIdIsNormal(PageGetItemId(page, line)) &&
		is_plainly_visible((HeapTupleHeader) PageGetItem(page, PageGetItemId(page, line)),
						   pages->scan->rs_base.rs_snapshot);
}

/* Whether a line leads to a tuple that is visible.  The page of the buffer, that block, is locked. */
bool
gh_pages_is_visible(const GhPages *pages, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	HeapScanDesc scan = pages->scan;
	Page		page = BufferGetPage(buffer);
	HeapTupleData tuple;
	ItemId		item;

	/* lines at the end that lead nowhere may have gone */
	if (line > PageGetMaxOffsetNumber(page))
		return false;
	item = PageGetItemId(page, line);
	if (!ItemIdIsNormal(item))
		return false;
	tuple.t_tableOid = RelationGetRelid(scan->rs_base.rs_rd);
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple.t_len = ItemIdGetLength(item);
	ItemPointerSet(&tuple.t_self, block, line);
	return HeapTupleSatisfiesVisibility(&tuple, scan->rs_base.rs_snapshot, buffer);
}

/* Gives up the pin on the page. */
void
gh_pages_leave(GhPages *pages)
{
	HeapScanDesc scan = pages->scan;

	if (scan == NULL || !BufferIsValid(scan->rs_cbuf))
		return;
	ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = InvalidBuffer;
}

/* Gives up every pin, before the executor takes over for who knows how long. */
void
gh_pages_park(GhPages *pages)
{
	if (pages->scan == NULL)
		return;
	gh_pages_leave(pages);
	gh_pages_forget_ahead(pages);
}
