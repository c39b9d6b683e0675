/*
 * source.h
 *		A child that is a plain heap scan, or a join of ours, as the join reads it by
 *		itself, without the executor between.
 */
#ifndef GPUHASH_JOIN_SOURCE_H
#define GPUHASH_JOIN_SOURCE_H

#include "postgres.h"

#include "access/htup_details.h"

#include "fragment/page_conditions.h"
#include "heap/pages.h"
#include "heap/tuple.h"
#include "join/join.h"

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
	GhPageConditions conditions;	/* the scan's, and where its page is read */
	int			counted;		/* of the page's visible tuples: those that the statistics know */
	bool		passed;			/* the next one has passed the conditions */
	bool		peeked;			/* it is a row that the join knows to be there */
	int			row;			/* of page: the next one, read row by row */
	int			rows_peak;		/* the most rows that a page had */
	int			blank;			/* pages without a row, since the last one that had some */
	GhPage		page;
} GhSource;

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
