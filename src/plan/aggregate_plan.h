/*
 * aggregate_plan.h
 *		A GpuHashAggregate's or GpuHashRows' path and plan: what a grouping computes, and
 *		what they carry.
 */
#ifndef GPUHASH_AGGREGATE_PLAN_H
#define GPUHASH_AGGREGATE_PLAN_H

#include "postgres.h"

#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* Also the name that EXPLAIN shows. */
#define GH_AGGREGATE_NAME "GpuHashAggregate"
/* Likewise, of the node that returns rows in place of groups. */
#define GH_ROWS_NAME "GpuHashRows"

/* Bytes of groups that a participant leaves to others in shared memory, not in a file. */
#define GH_SHARED_GROUPS_MAX (1024 * 1024)

/* What some hundred groups, their table and its cache take; with less, they would mostly be written. */
#define GH_MEMORY_MIN ((Size) 256 * 1024)

/* Bytes that the groups of one process may take. */
static inline Size
gh_aggregate_memory_limit(void)
{
	return Max(get_hash_memory_limit(), GH_MEMORY_MIN);
}

/* ---- target.c: what a grouping computes, and whether the engines can ---- */

/* Expressions over the input's columns. */
typedef struct GhGrouping
{
	List	   *keys;			/* what comes out and is no aggregate is one, too */
	List	   *aggregates;		/* Aggrefs that differ */
	const char *why_not;		/* what the engines have not, where they have not all */
	Expr	   *why_expr;		/* the key, aggregate, argument or condition that it is about; or NULL */
} GhGrouping;

/* Where the rows come from. */
typedef struct GhGroupingInput
{
	Index		varno;			/* of the columns, and their row type */
	TupleDesc	desc;
	List	   *columns;		/* expressions that are the columns; NIL: they are Vars of varno */
	List	   *quals;			/* of the rows */
} GhGroupingInput;

extern bool gh_grouping_collect(PlannerInfo *root, RelOptInfo *grouped, GroupPathExtraData *extra,
								GhGrouping *grouping);
extern Expr *gh_aggregate_argument(Aggref *aggref);
extern bool gh_grouping_translates(GhGrouping *grouping, const GhGroupingInput *input,
								   int *ninstructions);

/* ---- aggregate_path.c, rows_path.c, aggregate_plan.c ---- */

/* custom_private of the CustomPath. */
typedef enum GhAggregatePathPrivate
{
	GH_AGGREGATE_PATH_KEYS,		/* as of GhGrouping */
	GH_AGGREGATE_PATH_AGGREGATES,
	GH_AGGREGATE_PATH_HAVING,	/* quals of the groups */
	GH_ROWS_PATH_COSTS			/* of a GpuHashRows alone: its own, as of gh_costs_list() */
} GhAggregatePathPrivate;

/*
 * The scan tuple: the child's columns, then keys that are none of these, then the aggregates.
 * custom_private, element by element.
 */
typedef enum GhAggregatePrivate
{
	GH_AGGREGATE_PRIVATE_COLUMNS,	/* Integer: the child's columns */
	GH_AGGREGATE_PRIVATE_KEYS,	/* IntList: by key, the scan column where its value goes, from 0 */
	GH_AGGREGATE_PRIVATE_FIRST, /* Integer: the first aggregate's scan column, from 0 */
	GH_AGGREGATE_PRIVATE_FUNCTIONS	/* OidList: by aggregate, PostgreSQL's function */
} GhAggregatePrivate;

/* custom_exprs, element by element: each a list, over the child's columns. */
typedef enum GhAggregateExprs
{
	GH_AGGREGATE_EXPRS_KEYS,	/* by key */
	GH_AGGREGATE_EXPRS_ARGUMENTS,	/* by aggregate; a NULL Const for count(*) */
	GH_AGGREGATE_EXPRS_FILTERS	/* by aggregate; a true Const where there is none */
} GhAggregateExprs;

extern Plan *gh_aggregate_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path,
							   List *tlist, List *clauses, List *custom_plans);
/*
 * Of a GpuHashRows: its keys are columns of the child, and there are no aggregates.  Columns that are no keys are of
 * tables whose tuples are fetched (../rows/fetch.c).
 */
extern Plan *gh_rows_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
						  List *clauses, List *custom_plans);

#endif							/* GPUHASH_AGGREGATE_PLAN_H */
