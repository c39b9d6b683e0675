/*
 * node.h
 *		GpuHashRows: the rows of joins that a device does.
 */
#ifndef GPUHASH_ROWS_NODE_H
#define GPUHASH_ROWS_NODE_H

#include "postgres.h"

#include "utils/tuplestore.h"

#include "fragment/bound.h"
#include "fragment/parallel.h"
#include "fragment/records.h"
#include "plan/aggregate_plan.h"

typedef enum GhRowsPhase
{
	GH_ROWS_START,				/* nothing read */
	GH_ROWS_EMIT,				/* rows come out */
	GH_ROWS_DONE
} GhRowsPhase;

/*
 * A relation of the joins, all of whose columns that come out are of its tuples: the device returns where
 * these are.
 */
typedef struct GhFetch
{
	int			level;			/* as of GhColumnSource */
	Relation	relation;		/* NULL: of an inner side that is no scan, and of which no place is known */
	BlockNumber nblocks;		/* that it had when somebody looked */
	TupleTableSlot *slot;		/* a copy of the tuple that was fetched last */
	int			ncolumns;
	int		   *columns;		/* of the scan tuple */
	int		   *attnos;			/* of the relation */
	int			last_attno;		/* the largest of them */
} GhFetch;

/* Rows that are kept until all is read. */
typedef struct GhCollected
{
	Tuplestorestate *store;		/* NULL: nothing was kept */
	TupleDesc	desc;			/* of its rows: the columns, and the place of each relation's tuple (int8), or NULL */
	Datum	   *row;			/* that is being put there */
	bool	   *nulls;
	TupleTableSlot *kept;		/* a row as it is in there */
	MemoryContext values;		/* of rows that are being put there */
	int			nvalues;		/* rows since that was emptied */
} GhCollected;

/* ORDER BY ... LIMIT above (first.c). */
typedef struct GhFirstRows
{
	GhBound		bound;
	bool		computes;		/* the program has all that PostgreSQL computes of a row, too, */
	Expr	   *condition;		/* and this, over the scan tuple; or NULL */
	uint64		left;			/* rows that the device has left out by it */
	uint64		unwanted;		/* the same, in all runs */
} GhFirstRows;

/* What participants of a parallel query share. */
typedef struct GhRowsShared
{
	GhFragmentShared fragment;	/* must be first */
	uint64		wanted;			/* rows, as of gh_bound_rows: workers do not see the Limit */
} GhRowsShared;

typedef struct GhRowsNode
{
	GhFragment	fragment;		/* must be first */

	/* what the plan says */
	int			nvalues;		/* columns that a device returns */
	int		   *value_columns;	/* of the scan tuple */
	List	   *values;			/* expressions, over the child's columns */
	GhValueType *value_types;
	int			nfetches;		/* relations whose columns come from tuples that are fetched */
	GhFetch    *fetches;

	/* of the program, in its context */
	GhOperand  *operands;		/* while it is made: of the values, and behind them of the places */
	uint16	   *vectors;		/* likewise */

	GhRecordBuffer buffer;		/* of rows that the CPU engine has made */
	bool		reading;		/* by the CPU engine: there is more to be read */
	GhRowsPhase phase;
	GhCollected collected;
	GhFirstRows first;
} GhRowsNode;

static inline GhRowsNode *
gh_rows_of(GhFragment *fragment)
{
	return (GhRowsNode *) fragment;
}

/* exec.c */
extern void gh_rows_register(void);

/* collect.c */
extern void gh_collect_init(GhRowsNode *node, EState *estate);
extern void gh_collect_scan_tuple(GhFragment *fragment);
extern void gh_collect_child_row(GhFragment *fragment, TupleTableSlot *slot);
extern Size gh_collect_load(GhRowsNode *node, const char *records, Size left);
extern void gh_collect_records(GhFragment *fragment, const char *records, Size size);
extern void gh_collect_clear(GhFragment *fragment);
extern void gh_collect_empty(GhRowsNode *node);
extern void gh_collect_rewind(GhRowsNode *node);
extern bool gh_collect_next(GhRowsNode *node);

/* first.c */
extern void gh_first_rows_share(GhRowsNode *node, GhRowsShared *shared);
extern void gh_first_rows_sample(GhFragment *fragment);
extern bool gh_first_rows_translate(GhRowsNode *node, GhTranslation *translation);
extern void gh_first_rows_end(GhFragment *fragment);
extern void gh_first_rows_forget(GhRowsNode *node);

/* fetch.c */
extern void gh_fetch_init(GhRowsNode *node, EState *estate);
extern void gh_fetch_columns(GhRowsNode *node, GhFetch *fetch, uint64 place);
extern void gh_fetch_park(GhRowsNode *node);

#endif							/* GPUHASH_ROWS_NODE_H */
