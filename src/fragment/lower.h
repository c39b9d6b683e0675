/*
 * lower.h
 *		A hash join below a node that may do it by itself, as that one sees it.
 *
 * The join stays a node of the plan.  The node above may read the join's outer side in its place, and probe
 * a table that the join makes of its inner side.
 */
#ifndef GPUHASH_LOWER_H
#define GPUHASH_LOWER_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "engine/engine.h"
#include "expr/key.h"
#include "heap/pages.h"

typedef struct GhLowerJoin GhLowerJoin;

/* Where a column of the join's scan tuple comes from. */
typedef struct GhLowerColumn
{
	int			side;			/* GH_OUTER or GH_INNER */
	int			column;			/* of the outer child's rows, from 1; of the inner columns that are kept, from 0 */
} GhLowerColumn;

typedef struct GhLowerMethods
{
	/*
	 * Before the join begins: open may be called for it.  read: by kept column, whether a pipeline may read it; NULL:
	 * all.  False: it may not.
	 */
	bool		(*offer) (GhLowerJoin *lower, const bool *read);
	/*
	 * Reads the inner side.  on_host: with engine = cuda, too, the table is to be one of the CPU engine.  True:
	 * lower->table may be probed, and no rows are to be asked for.  False: the join returns its rows.
	 */
	bool		(*open) (GhLowerJoin *lower, bool on_host);
	/* It returns its rows although it was opened: it is one of this process alone. */
	void		(*return_rows) (GhLowerJoin *lower);
	/* All of the outer side has been read. */
	void		(*close) (GhLowerJoin *lower);
	/* Whether it would look for an outer row before it reads its inner side. */
	bool		(*asks_outer_first) (GhLowerJoin *lower);
	/* Whether participants of a parallel query do it together. */
	bool		(*is_shared) (const GhLowerJoin *lower);
	/* Of the pages of the outer side: whether there is a row, which then is the first one that is read. */
	bool		(*peek) (GhLowerJoin *lower);
	/* Leaves the page to the caller that was peeked at: its first visible tuple that is one; -1: nothing was peeked at. */
	int			(*leave_page) (GhLowerJoin *lower);
	/*
	 * Reads an inner side that is rows, if that was not done: they stay stored, whatever the join does later.
	 * False: they are not all in memory.
	 */
	bool		(*store_inner) (GhLowerJoin *lower);
	/*
	 * The next of these that has a key, and its kept columns; from the first one on since store_inner.  False:
	 * there is none.
	 */
	bool		(*next_stored) (GhLowerJoin *lower, uint64 *key, Datum *values, bool *nulls);
	/* A kept column of a stored row, not NULL, by the reference that the table has in place of it (by_ref). */
	Datum		(*stored_value) (const GhLowerJoin *lower, int column, uint64 ref);
	/*
	 * By PostgreSQL's expressions, of the row whose columns the caller has put into the scan tuple, but for those that
	 * only its keys read: whether it is a match, as far as the conditions on the pair say; whether it comes out.
	 */
	bool		(*is_match) (GhLowerJoin *lower);
	bool		(*comes_out) (GhLowerJoin *lower);
	/* For EXPLAIN: a device's table was made of the copy of its index, but for so many blocks, with such rows; 0, 0, 0: it was not. */
	void		(*tell_copy) (GhLowerJoin *lower, uint64 copy_blocks, uint64 heap_blocks, uint64 heap_rows);
} GhLowerMethods;

struct GhLowerJoin
{
	PlanState  *ps;
	const GhLowerMethods *methods;
	PlanState  *children[2];	/* by side, as the following */
	const GhKeySide *keys[2];
	GhPages    *pages[2];		/* NULL: rows come through the executor */
	JoinType	jointype;
	Oid			index;			/* whose copy may be the table, as planned (../plan/index_side.c); or InvalidOid */
	bool		single_match;	/* an outer row's first match is enough */
	bool		is_plain;		/* as planned: it may be probed by steps of a pipeline */
	List	   *join_quals;		/* conditions on the pair; where is_coded, the keys' equalities are the first of them */
	/*
	 * The keys are no whole number together: rows are looked up by a code of them (../expr/key_code.c).  Key columns are
	 * columns of the children then, and those of the inner side are kept.
	 */
	bool		is_coded;
	List	   *key_clauses;	/* the keys' equalities, by key column */
	int			nkept;			/* columns of the inner side */
	const int  *kept_attnos;	/* of the inner child's rows, from 1 */
	int			ncolumns;
	const GhLowerColumn *columns;	/* by column of the scan tuple, but for those that only its keys read */
	const int  *output_columns; /* by output column, that of the scan tuple; NULL: the output is more than columns */

	/* the table; while it is open */
	GhTable    *table;
	int			key_bits;		/* of its only key column, which has more than the join's clauses need; 0: as these say */
	const bool *by_ref;			/* by kept column: the table has a reference to the row in place of it */
};

/* The node's join as such, if it is one; else NULL. */
typedef GhLowerJoin *(*GhLowerFind) (PlanState *ps);

extern void gh_lower_register(GhLowerFind find);
extern GhLowerJoin *gh_lower_join(PlanState *ps);

/* Whether inner rows come out that have no match. */
static inline bool
gh_lower_fills_inner(const GhLowerJoin *lower)
{
	return lower->jointype == JOIN_RIGHT || lower->jointype == JOIN_FULL;
}

/* Whether there are conditions beside the keys, on what is a match or on what comes out. */
static inline bool
gh_lower_has_conditions(const GhLowerJoin *lower)
{
	return lower->join_quals != NIL || lower->ps->plan->qual != NIL;
}

/* Parts of the key that a row is looked up by. */
static inline int
gh_lower_nparts(const GhLowerJoin *lower)
{
	return lower->is_coded ? 1 : lower->keys[GH_OUTER]->ncolumns;
}

/* Bits of such a part, by one of the sides. */
static inline int
gh_lower_part_bits(const GhLowerJoin *lower, int side, int part)
{
	return lower->is_coded ? GH_KEY_BITS : lower->keys[side]->columns[part].bits;
}

/* Where is_coded: which of the kept columns is a key column. */
static inline int
gh_lower_kept_key(const GhLowerJoin *lower, int key)
{
	int			c = 0;

	while (lower->kept_attnos[c] != lower->keys[GH_INNER]->columns[key].attno)
		c++;
	return c;
}

static inline TupleDesc
gh_lower_inner_desc(const GhLowerJoin *lower)
{
	return lower->children[GH_INNER]->ps_ResultTupleDesc;
}

#endif							/* GPUHASH_LOWER_H */
