/*
 * heap_scan.c
 *		The pages of a sequential scan of PostgreSQL's: a maker of pages.
 *
 * The scan is the descriptor of a SeqScan node, made as that node makes it.  Its next block is chosen here as
 * heap_getnext would choose it, and its pages are prepared by PostgreSQL's own functions, which see to all
 * that a page asks for (README lists it).  So rescans and the end of the node find the descriptor as they left
 * it: rs_inited says whether the scan has begun since.  The pin on the page is that of GhPages alone.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/syncscan.h"
#include "access/tableam.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "heap/pages.h"

/* Blocks between those that PostgreSQL reports of a synchronised scan (SYNC_SCAN_REPORT_INTERVAL). */
#define GH_REPORTED_BLOCKS (128 * 1024 / BLCKSZ)

/* ------------------------------------------------- which block is next */

/* The next block of a scan that workers share. */
static BlockNumber
next_shared_block(HeapScanDesc scan, bool first)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	if (first)
		gh_parallelscan_init(scan->rs_base.rs_rd, scan->rs_parallelworkerdata, shared);
	return table_block_parallelscan_nextpage(scan->rs_base.rs_rd, scan->rs_parallelworkerdata, shared);
}

/* The next block of a scan that starts anywhere and goes once around. */
static BlockNumber
next_own_block(HeapScanDesc scan, BlockNumber last, bool first)
{
	BlockNumber block;

	if (first)
		return scan->rs_nblocks == 0 ? InvalidBlockNumber : scan->rs_startblock;
	block = last + 1;
	if (block >= scan->rs_nblocks)
		block = 0;
	/* at the end, too: the next scan should start where this one did */
	if (scan->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->rs_base.rs_rd, block);
	return block == scan->rs_startblock ? InvalidBlockNumber : block;
}

static BlockNumber
choose(GhPages *pages, bool first)
{
	HeapScanDesc scan = pages->source;

	return scan->rs_base.rs_parallel != NULL ? next_shared_block(scan, first) :
		next_own_block(scan, pages->last_chosen, first);
}

/* Of a scan of one's own: up to the end of the relation, or to where it began. */
static uint32
choose_run(GhPages *pages, uint32 most)
{
	HeapScanDesc scan = pages->source;
	BlockNumber next = pages->last_chosen + 1;
	BlockNumber end = next <= scan->rs_startblock ? scan->rs_startblock : scan->rs_nblocks;
	uint32		run = Min(most, end - Min(next, end));

	/* others may begin at it; what is between is not reported */
	if (run > 0 && (scan->rs_base.rs_flags & SO_ALLOW_SYNC) != 0)
		ss_report_location(scan->rs_base.rs_rd, (next + run - 1) / GH_REPORTED_BLOCKS * GH_REPORTED_BLOCKS);
	return run;
}

/* ------------------------------------------------------- what is visible */

static void
prepare(GhPages *pages)
{
	HeapScanDesc scan = pages->source;

#if GH_HAVE_READ_STREAM
	if (!BufferIsValid(pages->buffer))
		pages->buffer = gh_pages_read_buffer(pages);
	gh_pages_check_lines(pages);
	scan->rs_cbuf = pages->buffer;
	scan->rs_cblock = pages->block;
	heap_prepare_pagescan((TableScanDesc) scan);
#else
	/* it gives up a pin that there is, and takes another one */
	scan->rs_cbuf = gh_pages_take_pin(pages);
	heapgetpage((TableScanDesc) scan, pages->block);
	pages->buffer = scan->rs_cbuf;
	gh_pages_check_lines(pages);
#endif
	scan->rs_cbuf = InvalidBuffer;
	pages->ntuples = scan->rs_ntuples;
}

/* --------------------------------------------------------------- its begin */

static bool
is_new(const GhPages *pages)
{
	return !((HeapScanDesc) pages->source)->rs_inited;
}

/* What a rescan may change. */
static void
look_at_scan(GhPages *pages)
{
	HeapScanDesc scan = pages->source;

	pages->nblocks = scan->rs_nblocks;
	pages->strategy = scan->rs_strategy;
	pages->shared = scan->rs_base.rs_parallel != NULL;
}

static void
begin(GhPages *pages)
{
	look_at_scan(pages);
	((HeapScanDesc) pages->source)->rs_inited = true;
}

static const GhPagesMaker heap_scan_maker = {
	.is_new = is_new,
	.begin = begin,
	.choose = choose,
	.choose_run = choose_run,
	.prepare = prepare,
};

static const GhPagesMaker shared_scan_maker = {
	.is_new = is_new,
	.begin = begin,
	.choose = choose,
	.prepare = prepare,
};

/* The next block of some that are spread evenly over the relation. */
static BlockNumber
choose_sampled(GhPages *pages, bool first)
{
	BlockNumber stride = pages->nblocks / pages->sampled;
	BlockNumber block = first ? stride / 2 : pages->last_chosen + stride;

	return block < pages->nblocks && block / stride < pages->sampled ? block : InvalidBlockNumber;
}

static const GhPagesMaker sample_maker = {
	.is_new = is_new,
	.begin = begin,
	.choose = choose_sampled,
	.prepare = prepare,
};

/* --------------------------------------------------- blocks that are named */

typedef struct NamedBlocks
{
	BlockNumber first;
	BlockNumber end;
	bool		begun;
	OffsetNumber lines[MaxHeapTuplesPerPage];
} NamedBlocks;

static bool
named_are_new(const GhPages *pages)
{
	return !((const NamedBlocks *) pages->source)->begun;
}

static void
begin_named(GhPages *pages)
{
	((NamedBlocks *) pages->source)->begun = true;
}

static BlockNumber
choose_named(GhPages *pages, bool first)
{
	const NamedBlocks *named = pages->source;
	BlockNumber block = first ? named->first : pages->last_chosen + 1;

	return block < named->end ? block : InvalidBlockNumber;
}

/* Whom this page would have to be prepared for goes without it. */
static void
prepare_none(GhPages *pages)
{
	pages->ntuples = 0;
}

static const GhPagesMaker named_maker = {
	.is_new = named_are_new,
	.begin = begin_named,
	.choose = choose_named,
	.prepare = prepare_none,
};

/*
 * Pages that are read by their numbers, for those to whom lines suffice, beside a scan of the relation, by
 * its snapshot and its ring.  There is nothing to be ended but what the memory context has, and pins
 * (gh_pages_park).
 */
GhPages *
gh_named_create(MemoryContext context)
{
	GhPages    *named = MemoryContextAllocZero(context, sizeof(GhPages));
	NamedBlocks *blocks = MemoryContextAllocZero(context, sizeof(NamedBlocks));

	gh_pages_init(named, context);
	named->maker = &named_maker;
	named->source = blocks;
	named->lines = blocks->lines;
	named->lines_suffice = named->tells_lsn = true;
	return named;
}

/* So many blocks come next, which the relation of the scan has. */
void
gh_named_turn_to(GhPages *named, const GhPages *scan, BlockNumber first, BlockNumber count)
{
	NamedBlocks *blocks = named->source;

	named->relation = scan->relation;
	named->snapshot = scan->snapshot;
	named->read_only = scan->read_only;
	named->nblocks = scan->nblocks;
	named->strategy = scan->strategy;
	blocks->first = first;
	blocks->end = first + count;
	blocks->begun = false;
}

/*
 * A scan that nobody waits for.  It begins at that block, at no other scan's, and goes through a ring however
 * small the relation is, so that pages of others stay in the pool.
 */
TableScanDesc
gh_begin_scan_aside(Relation relation, Snapshot snapshot, BlockNumber first)
{
	TableScanDesc scan = table_beginscan_strat(relation, snapshot, 0, NULL, true, false);
	HeapScanDesc heap_scan = (HeapScanDesc) scan;

	/* the scan's end frees it */
	if (heap_scan->rs_strategy == NULL)
		heap_scan->rs_strategy = GetAccessStrategy(BAS_BULKREAD);
	heap_setscanlimits(scan, first, InvalidBlockNumber);
	return scan;
}

/* The scan, in page mode, has begun, and is ended by whoever began it. */
void
gh_pages_of_scan(GhPages *pages, TableScanDesc scan)
{
	Assert((scan->rs_flags & SO_ALLOW_PAGEMODE) != 0);
	pages->maker = scan->rs_parallel != NULL ? &shared_scan_maker : &heap_scan_maker;
	pages->source = scan;
	pages->relation = scan->rs_rd;
	pages->snapshot = scan->rs_snapshot;
	pages->read_only = gh_scan_is_read_only(scan);
	pages->lines = ((HeapScanDesc) scan)->rs_vistuples;
	pages->tuple.t_tableOid = RelationGetRelid(scan->rs_rd);
	look_at_scan(pages);
}

/* So many pages of the relation, which has as many, by a scan of their own: the other one does not move. */
GhPages *
gh_sample_begin(const GhPages *all, BlockNumber npages)
{
	GhPages    *sample = palloc0(sizeof(GhPages));

	gh_pages_init(sample, CurrentMemoryContext);
	gh_pages_of_scan(sample, table_beginscan_strat(all->relation, all->snapshot, 0, NULL, true, false));
	sample->maker = &sample_maker;
	sample->sampled = npages;
	return sample;
}

void
gh_sample_end(GhPages *sample)
{
	gh_pages_end(sample);
	table_endscan((TableScanDesc) sample->source);
}

/*
 * Leaves the descriptor as a Seq Scan would have left it after so many visible tuples of the page; ended:
 * after the last one of all.
 */
void
gh_pages_return_to_scan(GhPages *pages, int ndone, bool ended)
{
	HeapScanDesc scan = pages->source;

	if (pages->maker == NULL)
		return;
	gh_pages_forget_ahead(pages);
	/* the scan goes on behind a page that it has to have read */
	if (pages->elsewhere)
	{
		gh_pages_read_block(pages, pages->block + pages->run - 1);
		ndone = pages->ntuples;
	}
	scan->rs_cblock = pages->block;
	scan->rs_ntuples = pages->ntuples;
	if (ended)
		scan->rs_inited = false;
	else if (scan->rs_inited)
	{
		scan->rs_cbuf = gh_pages_take_pin(pages);
		scan->rs_cindex = ndone - 1;
		/* 18 puts the block there once a page */
		ItemPointerSet(&scan->rs_ctup.t_self, scan->rs_cblock, FirstOffsetNumber);
		gh_scan_goes_on_from(scan, scan->rs_cblock);
	}
	gh_pages_end(pages);
}
