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

/*
 * Parts of the groups that participants share, by the highest bits of the hash, of which partitions in files
 * (../aggregate/spill.c) use the others: so many that each has about as much to merge, whatever their number.
 */
#define GH_SHARED_PART_BITS 6
#define GH_SHARED_PARTS (1 << GH_SHARED_PART_BITS)

/* What some hundred groups, their table and its cache take; with less, they would mostly be written. */
#define GH_MEMORY_MIN ((Size) 256 * 1024)

/* Bytes that the groups of one process may take. */
static inline Size
gh_aggregate_memory_limit(void)
{
	return Max(get_hash_memory_limit(), GH_MEMORY_MIN);
}

/* ---- group_bounds.c ---- */

extern double gh_estimate_groups(PlannerInfo *root, List *exprs, double rows);

/* ---- target.c: what a grouping computes, and whether the engines can ---- */

/* What a query groups its rows by, and what comes out of the groups: of GROUP BY, or of DISTINCT. */
typedef struct GhGroupBy
{
	List	   *clauses;		/* SortGroupClauses; from 16 on, without what is the same in all rows anyway */
	List	   *written;		/* likewise, all of them */
	List	   *sets;			/* IntLists of their references, a grouping set each; NIL: there is one grouping */
	List	   *tlist;			/* that they refer to, as the relation sees it */
	List	   *having;			/* conditions on groups */
	PathTarget *target;			/* what comes out */
} GhGroupBy;

/* Expressions over the input's columns. */
typedef struct GhGrouping
{
	List	   *keys;			/* what comes out and is no aggregate is one, too */
	List	   *aggregates;		/* Aggrefs that differ */
	List	   *distinct;		/* and those with DISTINCT that add each value once */
	List	   *distinct_arguments;	/* of these: the last keys, but for what their FILTERs make of them */
	List	   *distinct_keys;	/* IntList, by these: which of those is its argument, from 0 */
	List	   *distinct_filters;	/* IntList, by these: which of the aggregates counts what its FILTER lets pass; -1: none */
	List	   *distinct_sets;	/* IntList, by `aggregates`: of which argument's groups it is, from 0 */
	List	   *sets;			/* IntLists, by grouping set: the numbers of its keys, from 0; NIL: there is one grouping */
	List	   *part_keys;		/* of grouping sets, IntList: the numbers of those that groups in one part have in common */
	List	   *shown_keys;		/* of grouping sets, by key: as it comes out */
	bool		looks_through;	/* of grouping sets: what is inside of a placeholder is computed of rows, not below a join */
	List	   *functions;		/* GroupingFuncs that differ */
	List	   *function_values;	/* IntLists, by these: by grouping set */
	const char *why_not;		/* what the engines have not, where they have not all */
	Expr	   *why_expr;		/* the key, aggregate, argument or condition that it is about; or NULL */
} GhGrouping;

/* Where the rows come from. */
typedef struct GhGroupingInput
{
	Index		varno;			/* of the columns, and their row type */
	TupleDesc	desc;
	List	   *columns;		/* expressions that are the columns; NIL: they are Vars of varno */
	List	   *typmods;		/* IntList, by these: the types' modifiers; NIL: those of the expressions */
	List	   *quals;			/* of the rows */
} GhGroupingInput;

extern bool gh_can_be_key(Expr *expr, Oid eqop);
extern bool gh_reads_open_numerics(Node *node);
extern bool gh_grouping_collect(PlannerInfo *root, const GhGroupBy *by, GhGrouping *grouping);
extern Expr *gh_aggregate_argument(Aggref *aggref);
extern bool gh_compares_texts(const Aggref *aggref);
extern bool gh_grouping_is_for_host(const GhGrouping *grouping);
extern bool gh_grouping_translates(GhGrouping *grouping, const GhGroupingInput *input,
								   int *ninstructions);

/* ---- sets.c: grouping sets ---- */

extern Node *gh_sets_row_expr(Node *expr);
extern bool gh_sets_add_key(PlannerInfo *root, GhGrouping *grouping, Expr *shown);
extern bool gh_sets_collect(const GhGroupBy *by, GhGrouping *grouping);
extern bool gh_sets_have_all_keys(const GhGrouping *grouping);
extern double gh_sets_estimate(PlannerInfo *root, GhGrouping *grouping, double rows);
extern List *gh_sets_path_list(const GhGrouping *grouping, double groups);
extern List *gh_sets_plan_list(List *of_path);
extern Expr *gh_sets_number_column(void);

/* ---- distinct.c: aggregates with DISTINCT ---- */

extern Aggref *gh_find_ordered(const GhGrouping *grouping);
extern bool gh_distinct_collect(GhGrouping *grouping, Aggref *aggref);
extern bool gh_distinct_add_keys(GhGrouping *grouping);
extern double gh_distinct_estimate(PlannerInfo *root, const GhGrouping *grouping, List *exprs, double rows);
extern int	gh_distinct_nkeys(List *of_path);
extern List *gh_distinct_path_list(const GhGrouping *grouping, double groups);
extern List *gh_distinct_plan_list(List *of_path);

/* ---- aggregate_path.c, rows_path.c, aggregate_plan.c ---- */

/* custom_private of the CustomPath. */
typedef enum GhAggregatePathPrivate
{
	GH_AGGREGATE_PATH_KEYS,		/* as of GhGrouping */
	GH_AGGREGATE_PATH_AGGREGATES,
	GH_AGGREGATE_PATH_HAVING,	/* quals of the groups */
	GH_AGGREGATE_PATH_DISTINCT, /* of a GpuHashAggregate alone: as of gh_distinct_path_list() */
	GH_ROWS_PATH_COSTS = GH_AGGREGATE_PATH_DISTINCT,	/* of a GpuHashRows alone: its own, as of gh_costs_list() */
	GH_AGGREGATE_PATH_SETS,		/* as of GhSetsPathPrivate; NIL: no grouping sets */
	GH_AGGREGATE_PATH_GROUPS,	/* Integer: groups by all keys that are expected in one process */
	GH_AGGREGATE_PATH_ON_DEVICE,	/* Boolean: a device is expected to make them */
	GH_AGGREGATE_PATH_INSTRUCTIONS	/* Integer: as ninstructions of GhAggregateInputs */
} GhAggregatePathPrivate;

/* Of grouping sets in a path, element by element. */
typedef enum GhSetsPathPrivate
{
	GH_SETS_PATH_SETS,			/* as sets of GhGrouping */
	GH_SETS_PATH_VALUES,		/* as function_values of GhGrouping */
	GH_SETS_PATH_GROUPS,		/* Integer: groups by all keys that are expected in one process */
	GH_SETS_PATH_PARTS,			/* IntList: numbers of the keys that groups in one part have in common; NIL: all keys */
	GH_SETS_PATH_KEYS,			/* as shown_keys of GhGrouping */
	GH_SETS_PATH_FUNCTIONS		/* as functions of GhGrouping */
} GhSetsPathPrivate;

/*
 * The scan tuple: the child's columns, then keys that are none of these, then the aggregates, then those of
 * them that add each value once.  Of grouping sets: the child's columns, all keys as they come out, the
 * number of the set, the results of GROUPING(), the aggregates. custom_private, element by element.
 */
typedef enum GhAggregatePrivate
{
	GH_AGGREGATE_PRIVATE_COLUMNS,	/* Integer: the child's columns; a node is first, for others may look at it (README) */
	GH_AGGREGATE_PRIVATE_KEYS,	/* IntList: by key, the scan column where its value goes, from 0; of grouping sets
								 * then that of the set's number */
	GH_AGGREGATE_PRIVATE_FIRST, /* Integer: the first aggregate's scan column, from 0 */
	GH_AGGREGATE_PRIVATE_FUNCTIONS, /* OidList: by aggregate, PostgreSQL's function */
	GH_AGGREGATE_PRIVATE_DISTINCT,	/* List: as of GhDistinctPrivate; NIL: no aggregate adds each value once */
	GH_AGGREGATE_PRIVATE_SETS,	/* List: as of GhSetsPrivate; NIL: no grouping sets */
	GH_ROWS_PRIVATE_ON_HOST,	/* Integer, of a GpuHashRows that the CPU engine is to do; else there is none */
	GH_AGGREGATE_PRIVATE_GROUPS = GH_ROWS_PRIVATE_ON_HOST,	/* Integer: as GH_AGGREGATE_PATH_GROUPS */
	GH_AGGREGATE_PRIVATE_SHARERS	/* Integer: so many nodes of the plan, with this one, read the same input into the same
								 * groups on a device, as far as the plan tells (same_groups.c); 0: just this one, or
								 * no device is expected to make them; -1: not known yet */
} GhAggregatePrivate;

/* Plans with such a node were made so often, in this process. */
extern uint64 gh_aggregate_plans;
/* Of them, those that read several tables as one. */
extern uint64 gh_parts_plans;

/* Of aggregates that add each value once, element by element. */
typedef enum GhDistinctPrivate
{
	GH_DISTINCT_PRIVATE_FUNCTIONS,	/* OidList: by aggregate, PostgreSQL's function */
	GH_DISTINCT_PRIVATE_FILTERS,	/* IntList: as distinct_filters of GhGrouping */
	GH_DISTINCT_PRIVATE_GROUPS, /* Integer: groups by all keys that are expected in one process */
	GH_DISTINCT_PRIVATE_KEYS,	/* IntList: as distinct_keys of GhGrouping */
	GH_DISTINCT_PRIVATE_SETS	/* IntList: as distinct_sets of GhGrouping */
} GhDistinctPrivate;

/* Of grouping sets, element by element: as the first ones of GhSetsPathPrivate. */
typedef enum GhSetsPrivate
{
	GH_SETS_PRIVATE_SETS,
	GH_SETS_PRIVATE_VALUES,
	GH_SETS_PRIVATE_GROUPS,
	GH_SETS_PRIVATE_PARTS
} GhSetsPrivate;

/* custom_exprs, element by element: each a list, over the child's columns. */
typedef enum GhAggregateExprs
{
	GH_AGGREGATE_EXPRS_KEYS,	/* by key */
	GH_AGGREGATE_EXPRS_ARGUMENTS,	/* by aggregate but those that add each value once; a NULL Const for count(*) */
	GH_AGGREGATE_EXPRS_FILTERS	/* likewise; a true Const where there is none */
} GhAggregateExprs;

extern Plan *gh_aggregate_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path,
							   List *tlist, List *clauses, List *custom_plans);
/*
 * Of a GpuHashRows: its keys are columns of the child, and there are no aggregates.  Columns that are no keys
 * are of tables whose tuples are fetched (../rows/fetch.c).
 */
extern Plan *gh_rows_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
						  List *clauses, List *custom_plans);

#endif							/* GPUHASH_AGGREGATE_PLAN_H */
