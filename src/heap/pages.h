/*
 * pages.h
 *		The pages of a relation that a query reads, and what is visible on them.
 */
#ifndef GPUHASH_PAGES_H
#define GPUHASH_PAGES_H

#include "postgres.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "utils/snapshot.h"

/* Pages that a caller asks for, and blocks that a stream is told of ahead, at most. */
#define GH_PAGES_AHEAD_MAX 128

typedef struct GhPages GhPages;

/*
 * Whoever knows which blocks are read, and in which order; README has what is left to it.  pages.c reads
 * them, and visible.c finds what is visible where that takes less than the maker's own way.
 */
typedef struct GhPagesMaker
{
	/* Whether the next page is the first one, in the first run or in a later one. */
	bool		(*is_new) (const GhPages *pages);
	/* A run begins: nblocks, strategy and shared are set to what they are now. */
	void		(*begin) (GhPages *pages);
	/* The next block; first: of all.  InvalidBlockNumber: there are no more. */
	BlockNumber (*choose) (GhPages *pages, bool first);
	/* How many of the blocks that come next, `most` at most, follow the last one by number: they are chosen.  NULL: not known. */
	uint32		(*choose_run) (GhPages *pages, uint32 most);
	/* Sets lines and ntuples of the page; pins it first where no buffer is set. */
	void		(*prepare) (GhPages *pages);
} GhPagesMaker;

struct GhPages
{
	/* -- the page that was read last */
	Buffer		buffer;			/* pinned, not locked; InvalidBuffer: none */
	BlockNumber block;
	int			ntuples;		/* that are visible; with one of the next two, how many lines it has */
	bool		all_visible;	/* all tuples are, now and as long as the page is pinned */
	bool		by_headers;		/* which ones are is to be found by their hints */
	OffsetNumber *lines;		/* with neither of these, the visible tuples; room for MaxHeapTuplesPerPage */
	uint32		upper;			/* with one of them: byte of the page at which its lowest tuple begins */
	bool		was_read;		/* through a ring: it was not found in the pool, or may not have been */
	bool		elsewhere;		/* it was not read, since the caller has it: all_visible, and no buffer */
	uint32		run;			/* how many blocks from `block` on this is; more than one only elsewhere */
	bool		visible_now;	/* lines_suffice: all tuples were visible when the page was locked; a line that is free may
								 * get another one meanwhile */
	XLogRecPtr	lsn;			/* with visible_now, if the caller asks for it: the page's, when that was so */

	/* -- set by the caller: what it can do with */
	bool		tuples_unread;	/* it asks only how many there are */
	bool		lines_suffice;	/* or, where all are visible, only how many lines the page has */
	bool		headers_suffice;	/* the same where tuples' hints tell most of what is visible */
	bool		headers_doubted;	/* whether they do is to be seen of some on each page */
	bool		tells_pooled;	/* it wants to know which pages were found in the pool: was_read */
	bool		tells_lsn;
	/* How many blocks it has from that one on, with all of their rows visible, so that these need not be read; NULL: none. */
	uint32		(*has_blocks) (void *arg, BlockNumber block);
	void	   *has_blocks_arg;

	/* -- whose pages */
	const GhPagesMaker *maker;	/* NULL: it has not begun */
	void	   *source;			/* the maker's */
	Relation	relation;
	Snapshot	snapshot;
	BlockNumber nblocks;		/* of the relation, when the scan began */
	BufferAccessStrategy strategy;	/* a ring; NULL: none */
	bool		shared;			/* blocks are handed out to several processes, each for good */
	BlockNumber sampled;		/* of a sample: how many blocks it has */
	bool		read_only;		/* the query is known to leave the relation as it is; false before 19 */
	Buffer		map;			/* visible.c: a page of the visibility map, pinned; or InvalidBuffer */
	HeapTupleData tuple;		/* stored last (gh_pages_store): the slot points to it */

	/* -- pages.c: how they are read */
	MemoryContext context;		/* of the stream */
	struct ReadStream *stream;	/* since 17 */
	bool		first;			/* no block was chosen */
	bool		finished;		/* there are no more blocks */
	BlockNumber last_chosen;
	BlockNumber chosen;			/* but not read yet; or InvalidBlockNumber */
	int			budget;			/* blocks that the stream may still choose */
	int			ahead;			/* blocks that it has chosen and that were not read yet */
	bool		ended;			/* it has been told of no more blocks */
	bool		pooled;			/* pages are in the server's pool, and not local */
	uint32		nread;			/* pages that the stream has brought: the number of the next one */
	uint32		last_read;		/* the last of them before which the stream has read some from disk */
	uint64		missed[GH_PAGES_AHEAD_MAX / 64];	/* by the numbers of the blocks ahead: was_read */
};

/* What one fetch brings: no more than a cache line. */
#define GH_FETCH_BYTES 64

/*
 * Reads a byte of each line of a page from the first one on, before its tuples are looked at one by one, from
 * the last line upward: the processor foresees only the former, and so the page comes twice as fast as by
 * prefetches of all of it.
 */
static inline void
gh_page_fetch(Buffer buffer)
{
	const volatile char *page = (const volatile char *) BufferGetPage(buffer);

	for (int at = 0; at < BLCKSZ; at += GH_FETCH_BYTES)
		(void) page[at];
}

/* ---- pages.c: one page after the other ---- */

extern void gh_pages_init(GhPages *pages, MemoryContext context);
extern bool gh_pages_have_begun(const GhPages *pages);
extern bool gh_pages_next(GhPages *pages, int wanted);
extern void gh_pages_read_block(GhPages *pages, BlockNumber block);
extern bool gh_pages_turn_to(GhPages *pages, BlockNumber block, int ntuples);
extern Buffer gh_pages_read_buffer(const GhPages *pages);
extern Buffer gh_pages_pin_again(GhPages *pages, BlockNumber block);
extern Buffer gh_pages_take_pin(GhPages *pages);
extern void gh_pages_leave(GhPages *pages);
extern void gh_pages_forget_ahead(GhPages *pages);
extern void gh_pages_park(GhPages *pages);
extern void gh_pages_end(GhPages *pages);

/*
 * Puts a tuple of a page that is pinned into a slot, which takes a pin of its own; it is good up to the next.
 */
static inline void
gh_pages_store(GhPages *pages, Buffer buffer, BlockNumber block, OffsetNumber line, TupleTableSlot *slot)
{
	Page		page = BufferGetPage(buffer);
	ItemId		item = PageGetItemId(page, line);

	pages->tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	pages->tuple.t_len = ItemIdGetLength(item);
	ItemPointerSet(&pages->tuple.t_self, block, line);
	ExecStoreBufferHeapTuple(&pages->tuple, slot, buffer);
}

/* ---- visible.c: what is visible on a page ---- */

extern bool gh_pages_prepare_lines(GhPages *pages);
extern void gh_pages_check_lines(const GhPages *pages);
extern bool gh_pages_hints_tell(const GhPages *pages, Buffer buffer, OffsetNumber line);
extern bool gh_pages_is_visible(const GhPages *pages, Buffer buffer, BlockNumber block, OffsetNumber line);

/* ---- heap_scan.c: the pages of a scan of PostgreSQL's ---- */

extern TableScanDesc gh_begin_scan_aside(Relation relation, Snapshot snapshot, BlockNumber first);
extern void gh_pages_of_scan(GhPages *pages, TableScanDesc scan);
extern GhPages *gh_sample_begin(const GhPages *all, BlockNumber npages);
extern void gh_sample_end(GhPages *sample);
extern GhPages *gh_named_create(MemoryContext context);
extern void gh_named_turn_to(GhPages *named, const GhPages *scan, BlockNumber first, BlockNumber count);
extern void gh_pages_return_to_scan(GhPages *pages, int ndone, bool ended);

/* ---- child.c: a scan of the plan whose pages the node above reads ---- */

extern bool gh_may_read_relation(Relation relation, EState *estate);
extern bool gh_may_read_pages(PlanState *child, EState *estate, int eflags);
extern int	gh_relation_attno(PlanState *child, int resno);
extern void gh_pages_begin(GhPages *pages, PlanState *child);
extern bool gh_scan_accepts(ScanState *scan, GhPages *pages, Buffer buffer, BlockNumber block, OffsetNumber line,
							ExprState *quals);
extern void gh_child_start(PlanState *child);
extern void gh_child_stop(PlanState *child, double rows);
extern void gh_child_rewind(PlanState *child);
extern void gh_child_rewind_for_all(PlanState *child);

#endif							/* GPUHASH_PAGES_H */
