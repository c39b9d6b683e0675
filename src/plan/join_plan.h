/*
 * join_plan.h
 *		A GpuHashJoin's path and plan: what they carry, and what is asked of them.
 */
#ifndef GPUHASH_JOIN_PLAN_H
#define GPUHASH_JOIN_PLAN_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

#include "plan/chain.h"

/* Also the name that EXPLAIN shows. */
#define GH_JOIN_NAME "GpuHashJoin"

/* Bytes of a stored inner row before its null flags (GhRow). */
#define GH_ROW_HEADER_BYTES 16

/* ---- join_plan.c: what a plan carries ---- */

/*
 * custom_private, element by element.  The scan tuple has the kept outer
 * columns, then the kept inner columns, then copies of kept columns, then
 * columns that only keys read.
 */
typedef enum GhJoinPrivate
{
	GH_PRIVATE_JOINTYPE,		/* Integer: JoinType; a node is first, for others may look at it (README) */
	GH_PRIVATE_INNER_UNIQUE,	/* Integer: an outer row has one match at most */
	GH_PRIVATE_KEPT_OUTER,		/* Integer: kept outer columns */
	GH_PRIVATE_KEPT_INNER,		/* Integer: kept inner columns */
	GH_PRIVATE_COPIES,			/* Integer: copies */
	GH_PRIVATE_SCAN_SIDES,		/* IntList: by scan column, GH_OUTER or GH_INNER */
	GH_PRIVATE_SCAN_ATTNOS,		/* IntList: by scan column, the child's column */
	GH_PRIVATE_KEY_ENCODINGS,	/* IntList: by key, outer and inner in turn */
	GH_PRIVATE_KEY_PROCS,		/* OidList: likewise */
	GH_PRIVATE_KEY_COLLATIONS,	/* OidList: by key */
	GH_PRIVATE_KEY_BITS,		/* IntList: by key */
	GH_PRIVATE_KEYS_REPEAT,		/* Integer: statistics say that inner rows share keys */
	GH_PRIVATE_PLAIN,			/* Integer: nodes above may look rows up in the join's table, as far as its
								 * clauses are concerned */
	GH_PRIVATE_INDEX			/* OidList of one: the index of the inner side's table that has all that the join reads of
								 * it; InvalidOid: there is none */
} GhJoinPrivate;

/* custom_exprs, element by element: each a list. */
typedef enum GhJoinExprs
{
	GH_EXPRS_OUTER_KEYS,
	GH_EXPRS_INNER_KEYS,
	GH_EXPRS_HASH_CLAUSES,
	GH_EXPRS_JOIN_QUALS			/* of the join itself, hash clauses left out */
} GhJoinExprs;

extern bool gh_columns_are_plain(RelOptInfo *rel);
extern bool gh_step_keys_are_exact(const GhJoinStep *step);
extern bool gh_step_fills_inner(const GhJoinStep *step);
extern bool gh_is_key_column(Node *expr);
extern void gh_split_pair(PlannerInfo *root, const GhJoinStep *step, RelOptInfo *joinrel,
						  RelOptInfo *outerrel);
extern double gh_most_matches(PlannerInfo *root, const GhJoinStep *step, RelOptInfo *outerrel, RelOptInfo *innerrel);
extern Plan *gh_join_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path,
						  List *tlist, List *clauses, List *custom_plans);

/* ---- ahead.c ---- */

extern bool gh_may_show(Node *exprs);
extern bool gh_rows_may_stay_unread(PlannerInfo *root, RelOptInfo *joinrel);
extern bool gh_key_is_quiet(RestrictInfo *rinfo, bool outer_is_left);
extern bool gh_outer_is_quiet(PlannerInfo *root, RelOptInfo *outerrel);

#endif							/* GPUHASH_JOIN_PLAN_H */
