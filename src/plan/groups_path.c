/*
 * groups_path.c
 *		A grouping over a subquery that is a grouping, as the planner sees it: where a device makes the groups of one, it
 *		may make those of the other out of them (../aggregate/nested.c).
 *
 * At run time a sum of numerics has the digits of its argument, which the subquery's column does not tell.  So a column that
 * is an aggregate is taken to have a scale where what it adds has one.  That decides on no more than whether the node is
 * considered: where the groups are not made on a device, or have not all digits there, their rows come as any other's.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/numeric.h"

#include "expr/aggregates.h"
#include "expr/translate.h"
#include "gpuhash.h"
#include "plan/aggregate_plan.h"
#include "plan/groups_path.h"
#include "plan/input_path.h"

/* A scale, for numerics that have one which is not known yet. */
#define GH_SOME_SCALE 4

/*
 * The subquery's grouping, where the relation is its groups as they are, a device is expected to make them,
 * and they may be more than come to the host in less time than it takes to begin on them there; NULL: it is
 * not so.  Estimates of groups may be wrong a thousand times, so that the rows tell; at run time it is known
 * how many there are (../aggregate/narrow.c).
 */
const CustomPath *
gh_groups_below(const RelOptInfo *rel)
{
	const Path *path = rel->cheapest_total_path;
	const CustomPath *below;

	if (!IsA(path, SubqueryScanPath) || rel->baserestrictinfo != NIL || path->param_info != NULL)
		return NULL;
	path = ((const SubqueryScanPath *) path)->subpath;
	below = (const CustomPath *) path;
	if (!IsA(path, CustomPath) || strcmp(below->methods->CustomName, GH_AGGREGATE_NAME) != 0 || path->parallel_aware ||
		list_nth(below->custom_private, GH_AGGREGATE_PATH_SETS) != NIL ||
		!boolVal(list_nth(below->custom_private, GH_AGGREGATE_PATH_ON_DEVICE)))
		return NULL;
	return gh_force_offload || ((const Path *) linitial(below->custom_paths))->rows > gh_batch_rows ? below : NULL;
}

/* Whether it is an aggregate whose result has the digits of its argument, which has a scale. */
static bool
has_scale(const Node *expr)
{
	const Aggref *aggref = (const Aggref *) expr;
	const GhAggregateFunction *function;

	if (!IsA(expr, Aggref) || aggref->aggtype != NUMERICOID || (function = gh_find_aggregate(aggref->aggfnoid)) == NULL)
		return false;
	return (function->final == GH_FINAL_SUM_NUMERIC || function->final == GH_FINAL_VALUE) &&
		!gh_reads_open_numerics((Node *) aggref->args);
}

/* By column of the relation, the type's modifier as it is known of the groups. */
static List *
typmods_of(const RelOptInfo *rel, List *columns)
{
	List	   *typmods = NIL;
	ListCell   *lc;

	foreach(lc, columns)
	{
		Node	   *column = lfirst(lc);
		int32		typmod = exprTypmod(column);
		TargetEntry *tle = NULL;

		if (IsA(column, Var) && ((Var *) column)->varno == (int) rel->relid && ((Var *) column)->varattno > 0)
			tle = get_tle_by_resno(rel->subroot->processed_tlist, ((Var *) column)->varattno);
		if (typmod < 0 && tle != NULL && has_scale((Node *) tle->expr))
			typmod = ((NUMERIC_MAX_PRECISION << 16) | GH_SOME_SCALE) + VARHDRSZ;
		typmods = lappend_int(typmods, typmod);
	}
	return typmods;
}

/* Whether there is a program for the expressions of a grouping over such groups. */
bool
gh_groups_translate(PlannerInfo *root, const RelOptInfo *rel, GhGrouping *grouping, int *ninstructions)
{
	List	   *columns = rel->cheapest_total_path->pathtarget->exprs;
	GhGroupingInput input = {.varno = INDEX_VAR,.columns = columns};

	input.desc = gh_columns_desc(root, columns, true);
	input.typmods = typmods_of(rel, columns);
	return input.desc != NULL && gh_grouping_translates(grouping, &input, ninstructions);
}
