/*
 * source.h
 *		A child that is a plain heap scan, as the join reads it by itself:
 *		its pages and its tuples, without the executor between.
 */
#ifndef GPUHASH_JOIN_SOURCE_H
#define GPUHASH_JOIN_SOURCE_H

#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "portability/instr_time.h"

#include "join/join.h"

/* What of a node's time, if that is asked for, went where: since *last, which is now then; sum NULL: begins. */
static inline void
gh_clock(bool timing, instr_time *sum, instr_time *last)
{
	instr_time	now;

	if (!timing)
		return;
	INSTR_TIME_SET_CURRENT(now);
	if (sum != NULL)
		INSTR_TIME_ACCUM_DIFF(*sum, now, *last);
	*last = now;
}

/* ---- pages.c: the pages of a heap scan ---- */

typedef struct GhPages
{
	HeapScanDesc scan;			/* the child's; rs_cbuf is the page that is read */
	MemoryContext context;		/* of the stream */
	struct ReadStream *stream;	/* since 17 */
	bool		started;		/* block is one */
	bool		finished;		/* there are no more blocks */
	BlockNumber block;			/* chosen last */
	int			budget;			/* blocks that the stream may still choose */
	int			ahead;			/* blocks that it has chosen and that were not read yet */
	bool		ended;			/* it has been told of no more blocks */
	bool		tuples_unread;	/* the caller asks only how many there are */
	BlockNumber chosen;			/* but not read yet; or InvalidBlockNumber */
	bool		hinted;			/* pages may be looked for where they were last (hints.h) */
	bool		lines_suffice;	/* or, where all are visible, only how many lines the page has */
	bool		headers_suffice;	/* the same where tuples' hints tell most of what is visible */
	bool		headers_doubted;	/* whether they do is to be seen of some on each page */
	/* what was told of the page; with neither, rs_vistuples, and else rs_ntuples is how many lines it has */
	bool		all_visible;
	bool		by_headers;		/* what is visible is to be found by hints */
	uint32		upper;			/* byte of the page at which its lowest tuple begins */
} GhPages;

extern void gh_pages_init(GhPages *pages, MemoryContext context);
extern bool gh_pages_next(GhPages *pages, int wanted);
extern void gh_pages_read_block(GhPages *pages, BlockNumber block);
extern Buffer gh_pages_pin_again(GhPages *pages, BlockNumber block);
extern bool gh_pages_hints_tell(const GhPages *pages, Buffer buffer, OffsetNumber line);
extern bool gh_pages_is_visible(const GhPages *pages, Buffer buffer, BlockNumber block, OffsetNumber line);
extern void gh_pages_leave(GhPages *pages);
extern void gh_pages_forget_ahead(GhPages *pages);
extern void gh_pages_park(GhPages *pages);
extern void gh_pages_end(GhPages *pages);

/* ---- tuple.c: columns straight from a heap tuple ---- */

/* An attribute of the relation, as far as stepping over it needs. */
typedef struct GhAttribute
{
	int16		len;
	bool		byval;
	uint8		alignby;		/* bytes */
} GhAttribute;

typedef struct GhReaderColumn
{
	int			attno;			/* of the relation */
	int			output;			/* where its value goes */
	int			offset;			/* bytes, for one of the nfixed: in the tuple's data */
	GhAttribute attribute;
} GhReaderColumn;

/*
 * Reads some columns of a relation's tuples.  In a tuple without NULLs among its first
 * prefix attributes, the first nfixed columns lie at offsets that are the same for all.
 */
typedef struct GhTupleReader
{
	TupleDesc	desc;
	GhAttribute *attributes;	/* up to the last column's */
	int			ncolumns;
	GhReaderColumn *columns;	/* in the order of the relation */
	int			nfixed;
	int			prefix;
	int			walk_offset;	/* bytes: where the attribute after the prefix starts */
} GhTupleReader;

extern void gh_reader_init(GhTupleReader *reader, TupleDesc desc, int ncolumns,
						   const int *attnos, const int *outputs);
extern void gh_reader_walk(const GhTupleReader *reader, HeapTupleHeader tuple, bool prefix,
						   Datum *values, bool *nulls);

/* Whether the tuple has its first natts attributes, and none of them is NULL. */
static inline bool
gh_tuple_has_prefix(HeapTupleHeader tuple, int natts)
{
	uint8		rest = (1 << natts % 8) - 1;

	if (HeapTupleHeaderGetNatts(tuple) < natts)
		return false;
	if ((tuple->t_infomask & HEAP_HASNULL) == 0)
		return true;
	for (int i = 0; i < natts / 8; i++)
		if (tuple->t_bits[i] != 0xff)
			return false;
	return rest == 0 || (tuple->t_bits[natts / 8] & rest) == rest;
}

static inline Datum
gh_fetch_attribute(const char *place, GhAttribute attribute)
{
	return fetch_att(place, attribute.byval, attribute.len);
}

/* Puts the columns' values where they go. */
static inline void
gh_reader_load(const GhTupleReader *reader, HeapTupleHeader tuple, Datum *values, bool *nulls)
{
	const char *data = (const char *) tuple + tuple->t_hoff;

	if (!gh_tuple_has_prefix(tuple, reader->prefix))
	{
		gh_reader_walk(reader, tuple, false, values, nulls);
		return;
	}
	for (int i = 0; i < reader->nfixed; i++)
	{
		const GhReaderColumn *column = &reader->columns[i];

		values[column->output] = gh_fetch_attribute(data + column->offset, column->attribute);
		nulls[column->output] = false;
	}
	if (reader->nfixed < reader->ncolumns)
		gh_reader_walk(reader, tuple, true, values, nulls);
}

/* ---- source.c: rows of a scan that the join reads itself ---- */

/* The rows of a page that passed the scan's quals; good while the page is pinned. */
typedef struct GhPage
{
	int			nrows;
	HeapTupleHeader tuples[MaxHeapTuplesPerPage];
	uint16		sizes[MaxHeapTuplesPerPage];	/* bytes */
	bool		has_key[MaxHeapTuplesPerPage];
	uint64		keys[MaxHeapTuplesPerPage];
} GhPage;

/* What to do to get the key of a tuple. */
typedef enum GhKeyLoad
{
	GH_KEY_LOAD_ANY,			/* load the columns, ask key.c */
	GH_KEY_LOAD_INT4,			/* an integer of 4 bytes is the key */
	GH_KEY_LOAD_INT8
} GhKeyLoad;

typedef struct GhSource
{
	PlanState  *child;
	int			side;
	GhPages		pages;
	GhKeyLoad	key_load;
	int			key_bits;		/* how many of the integer are the key */
	GhTupleReader key_columns;	/* what keys read, into slot */
	GhTupleReader slot_columns; /* what is kept, into slot */
	GhTupleReader kept_columns; /* what is kept, into an array of just these */
	TupleTableSlot *slot;		/* a row of the child, as far as it was loaded */
	int			visible;		/* of the scan's page: the visible tuple that is next */
	int			counted;		/* of them: those that the statistics know */
	bool		passed;			/* the next one has passed the quals */
	bool		peeked;			/* it is a row that the join knows to be there */
	int			row;			/* of page: the next one, read row by row */
	int			rows_peak;		/* the most rows that a page had */
	int			blank;			/* pages without a row, since the last one that had some */
	GhPage		page;
} GhSource;

extern bool gh_may_read_pages(PlanState *child, EState *estate, int eflags);
extern int	gh_relation_attno(PlanState *child, int resno);
extern void gh_pages_begin(GhPages *pages, PlanState *child);
extern void gh_child_start(PlanState *child);
extern void gh_child_stop(PlanState *child, double rows);
extern void gh_source_init(GhJoinState *js, int side, EState *estate, int eflags);
extern GhPage *gh_source_page(GhJoinState *js, GhSource *source, int rows_wanted);
extern bool gh_source_peek(GhSource *source);
extern int	gh_source_leave_page(GhSource *source);
extern TupleTableSlot *gh_source_row(GhJoinState *js, GhSource *source, uint64 *key,
									 bool *has_key);
extern TupleTableSlot *gh_source_slot(GhSource *source, HeapTupleHeader tuple);
extern void gh_source_park(GhSource *source);
extern void gh_source_reset(GhSource *source);
extern void gh_source_end(GhSource *source);

/* ---- pipe.c: an outer side that is a hash join of ours ---- */

/* How the join's outer columns and keys are read from that one's scan tuple. */
typedef struct GhPipe
{
	GhJoinState *child;
	GhColumns	columns;
	bool		maps_keys;		/* keys are plain columns that need no function's memory */
	GhKeySide	keys;
} GhPipe;

extern void gh_pipe_init(GhJoinState *js);
extern bool gh_pipe_next(GhJoinState *js, uint64 *key, bool *has_key);
extern Size gh_pipe_copy(GhJoinState *js, bool *nulls, Datum *values, MemoryContext arena);

#endif							/* GPUHASH_JOIN_SOURCE_H */
