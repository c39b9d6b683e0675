/*
 * path.c
 *		When the planner considers a GpuHashJoin, and what it costs.
 *
 * The hook is called for every pair of inputs of every join, so it turns down by
 * join type and row count before it looks at a clause.  It never touches a GPU:
 * plans are made, and kept, where there may be none.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

#include "gpuhash.h"
#include "join/join.h"

/* Joins of fewer rows than this are over before a table is made. */
#define GH_MIN_ROWS 10000.0

static set_join_pathlist_hook_type previous_hook = NULL;

static const CustomPathMethods gh_join_path_methods = {
	.CustomName = GH_JOIN_NAME,
	.PlanCustomPath = gh_join_plan,
};

/*
 * Whether the clause compares an expression over one input with one over the
 * other, by an operator that can be hashed.
 */
static bool
is_hash_clause(PlannerInfo *root, RestrictInfo *rinfo, RelOptInfo *joinrel,
			   RelOptInfo *outerrel, RelOptInfo *innerrel, bool outer_join)
{
	GhKeyPlan	key;
	bool		outer_is_left;

	/* an outer join is decided by its own clauses alone */
	if (outer_join && RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
		return false;
	if (!rinfo->can_join || !OidIsValid(rinfo->hashjoinoperator))
		return false;
	outer_is_left = bms_is_subset(rinfo->left_relids, outerrel->relids) &&
		bms_is_subset(rinfo->right_relids, innerrel->relids);
	if (!outer_is_left &&
		!(bms_is_subset(rinfo->left_relids, innerrel->relids) &&
		  bms_is_subset(rinfo->right_relids, outerrel->relids)))
		return false;
	return gh_join_clause_key(rinfo, outer_is_left, &key) &&
		gh_key_is_quiet(root, rinfo, outer_is_left);
}

/* Bytes of row store and table for the inner side, as estimated. */
static double
estimate_memory(Path *inner)
{
	double		width = inner->pathtarget->width + sizeof(GhRow) + sizeof(Datum);

	return inner->rows * (width + gh_table_bytes_per_row());
}

/*
 * With gpuhash.force_offload, a path's cost is scaled down so far that it wins
 * against every other node, while forced paths still compare with each other.
 */
#define GH_FORCED_SCALE 1e-9

/* What the path costs, undoing that. */
static void
real_cost(Path *path, Cost *startup, Cost *total)
{
	bool		forced = gh_force_offload && IsA(path, CustomPath) &&
		((CustomPath *) path)->methods == &gh_join_path_methods;

	*startup = forced ? path->startup_cost / GH_FORCED_SCALE : path->startup_cost;
	*total = forced ? path->total_cost / GH_FORCED_SCALE : path->total_cost;
}

/* Pages of rows in temporary files, as PostgreSQL's hash join counts them. */
static double
spilled_pages(Path *path)
{
	return ceil(path->rows * (path->pathtarget->width + sizeof(GhRow) + sizeof(Datum)) /
				BLCKSZ);
}

/*
 * Startup: the whole inner side, stored and entered.  Then, for each outer row,
 * its look-up; for each match, the rechecks and join quals, and PostgreSQL's
 * usual cost of making a row.  Where memory does not hold the inner side, all
 * but the first partition of both sides is written and read once.
 */
static void
cost_join(PlannerInfo *root, CustomPath *cpath, Path *outer, Path *inner,
		  JoinPathExtraData *extra, List *hash_clauses)
{
	Path	   *path = &cpath->path;
	QualCost	quals;
	QualCost	hashed;
	double		memory = estimate_memory(inner);
	double		limit = get_hash_memory_limit();
	Cost		outer_startup;
	Cost		outer_total;
	Cost		inner_startup;
	Cost		inner_total;
	Cost		run;
	double		tuples;

	real_cost(outer, &outer_startup, &outer_total);
	real_cost(inner, &inner_startup, &inner_total);
	cost_qual_eval(&quals, extra->restrictlist, root);
	cost_qual_eval(&hashed, hash_clauses, root);
	/* the look-up's own price covers them once */
	quals.per_tuple -= hashed.per_tuple;
	path->startup_cost = outer_startup + inner_total +
		gh_setup_cost + gh_build_tuple_cost * inner->rows + quals.startup;
	/* counted as PostgreSQL's hash join counts them, lest like be held against unlike */
	tuples = path->rows;
	if (extra->inner_unique)
		tuples = clamp_row_est(outer->rows * extra->semifactors.outer_match_frac);
	run = outer_total - outer_startup +
		gh_probe_tuple_cost * outer->rows +
		(cpu_tuple_cost + quals.per_tuple) * tuples;
	if (memory > limit)
	{
		double		spilled = 1.0 - limit / memory;

		path->startup_cost += seq_page_cost * spilled * spilled_pages(inner);
		run += seq_page_cost * spilled * (spilled_pages(inner) + 2 * spilled_pages(outer));
	}
	path->startup_cost += path->pathtarget->cost.startup;
	run += path->pathtarget->cost.per_tuple * path->rows;
	path->total_cost = path->startup_cost + run;

	if (gh_force_offload)
	{
		path->startup_cost *= GH_FORCED_SCALE;
		path->total_cost *= GH_FORCED_SCALE;
	}
	gh_sum_disabled_nodes(path, outer, inner);
}

/*
 * Whether a scan tuple can be made of the relation's columns.  Row identities of
 * an inheritance tree that is being updated have no place in one, and EXPLAIN
 * finds the field names of an anonymous record in the plan node below a join,
 * which a CustomScan keeps elsewhere.
 */
static bool
columns_are_plain(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		Node	   *expr = (Node *) lfirst(lc);

		if (IsA(expr, Var) && ((Var *) expr)->varno == ROWID_VAR)
			return false;
		if (exprType(expr) == RECORDOID)
			return false;
	}
	return true;
}

static void
add_join_path(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra,
			  List *hash_clauses)
{
	Path	   *outer = outerrel->cheapest_total_path;
	Path	   *inner = innerrel->cheapest_total_path;
	CustomPath *cpath;

	/* lateral and parameterised inputs stay with PostgreSQL */
	if (outer->param_info != NULL || inner->param_info != NULL ||
		!bms_is_empty(joinrel->lateral_relids))
		return;
	if (!columns_are_plain(outerrel) || !columns_are_plain(innerrel) ||
		!gh_outer_is_quiet(root, outerrel))
		return;
	cpath = makeNode(CustomPath);
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = joinrel;
	cpath->path.pathtarget = joinrel->reltarget;
	cpath->path.parallel_safe = joinrel->consider_parallel &&
		outer->parallel_safe && inner->parallel_safe;
	cpath->path.rows = joinrel->rows;
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make2(outer, inner);
	cpath->methods = &gh_join_path_methods;
	gh_set_path_restrictinfo(cpath, extra->restrictlist);
	cpath->custom_private = list_make4(makeInteger(jointype),
									   makeInteger(extra->inner_unique),
									   extra->restrictlist,
									   hash_clauses);
	cost_join(root, cpath, outer, inner, extra, hash_clauses);
	add_path(joinrel, &cpath->path);
}

static void
consider_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	List	   *hash_clauses = NIL;
	ListCell   *lc;

	if (!gh_enabled || !gh_enable_join)
		return;
	if (jointype != JOIN_INNER && jointype != JOIN_LEFT)
		return;
	if (!gh_force_offload && outerrel->rows + innerrel->rows < GH_MIN_ROWS)
		return;

	foreach(lc, extra->restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->pseudoconstant && !GH_CORE_GATES_JOINS)
			return;
		if (is_hash_clause(root, rinfo, joinrel, outerrel, innerrel, jointype == JOIN_LEFT))
			hash_clauses = lappend(hash_clauses, rinfo);
	}
	if (hash_clauses != NIL)
		add_join_path(root, joinrel, outerrel, innerrel, jointype, extra, hash_clauses);
}

static void
join_pathlist_hook(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				   RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	if (previous_hook)
		previous_hook(root, joinrel, outerrel, innerrel, jointype, extra);
	consider_join(root, joinrel, outerrel, innerrel, jointype, extra);
}

/* Called by _PG_init. */
void
gh_join_init(void)
{
	RegisterCustomScanMethods(&gh_join_scan_methods);
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = join_pathlist_hook;
}
