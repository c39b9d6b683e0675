/*
 * doubt.c
 *		How many more rows than expected may come out of joins, and what that is to a grouping over them.
 *
 * Two things make the planner's estimate of joined rows too low by a factor of ten and more: columns that make up a
 * key together are taken to be independent (gh_cautious_rows); and conditions on a table are taken to have nothing to do
 * with which of its keys another table has.  A calendar has two hundred years, and facts are of five: of 2020 the
 * planner expects a two-hundredth of the facts, and a fifth comes.
 *
 * Where a device does the joins either way, it costs nearly the same to have it make groups of many rows as of few,
 * while rows that come out of it are sorted and grouped one by one.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "plan/chain.h"
#include "plan/doubt.h"
#include "plan/join_path.h"
#include "plan/rows_path.h"

/* ---------------------------------------------------------------------- rows */

/* The table that a key of a join is a column of; NULL: it is none. */
static RelOptInfo *
table_of_key(PlannerInfo *root, Node **key)
{
	RelOptInfo *rel;

	if (IsA(*key, RelabelType))
		*key = (Node *) ((RelabelType *) *key)->arg;
	if (!IsA(*key, Var) || ((Var *) *key)->varlevelsup > 0 || ((Var *) *key)->varno <= 0)
		return NULL;
	rel = find_base_rel(root, ((Var *) *key)->varno);
	return rel->rtekind == RTE_RELATION && rel->tuples > 0 ? rel : NULL;
}

/* How many values a column has in its table; 0: nobody knows. */
static double
values_of_key(PlannerInfo *root, Node *key)
{
	VariableStatData data;
	bool		is_default;
	double		values;

	examine_variable(root, key, 0, &data);
	values = get_variable_numdistinct(&data, &is_default);
	ReleaseVariableStats(data);
	return is_default ? 0 : values;
}

/*
 * How many times more rows may match than the planner expects, where the one table has conditions and the other few
 * of its keys.  The planner takes the rows that the conditions leave to have a like share of these keys, but they may
 * have all of them.
 */
static double
more_matches(PlannerInfo *root, Node *key, Node *other)
{
	RelOptInfo *rel = table_of_key(root, &key);
	double		others;

	if (rel == NULL || rel->baserestrictinfo == NIL || table_of_key(root, &other) == NULL)
		return 1.0;
	others = values_of_key(root, other);
	if (others <= 0)
		return 1.0;
	return Max(Min(values_of_key(root, key) / others, rel->tuples / Max(rel->rows, 1.0)), 1.0);
}

/* Likewise of all joins of a chain. */
static double
more_in_chain(PlannerInfo *root, Path *joins)
{
	double		result = 1.0;
	List	   *sides;
	ListCell   *lc;

	if (!gh_is_join_path(joins))
		return 1.0;
	foreach(lc, gh_step(joins)->equalities)
	{
		const OpExpr *op = (const OpExpr *) lfirst_node(RestrictInfo, lc)->clause;

		if (!IsA(op, OpExpr) || list_length(op->args) != 2)
			continue;
		result = Max(result, more_matches(root, linitial(op->args), lsecond(op->args)));
		result = Max(result, more_matches(root, lsecond(op->args), linitial(op->args)));
	}
	sides = ((CustomPath *) joins)->custom_paths;
	return result * more_in_chain(root, linitial(sides)) * more_in_chain(root, lsecond(sides));
}

/* How many rows may come out of joins of ours. */
double
gh_doubtful_rows(PlannerInfo *root, Path *joins)
{
	List	   *sides = ((CustomPath *) joins)->custom_paths;

	return gh_cautious_rows(root, gh_step(joins), joins->rows, linitial(sides), lsecond(sides)) *
		more_in_chain(root, joins);
}

/* -------------------------------------------------------------------- groups */

/* Whether a path groups rows that come out of a device, sorted or joined with others in between. */
static bool
groups_rows_of_device(Path *path)
{
	switch (nodeTag(path))
	{
		case T_AggPath:
			return groups_rows_of_device(((AggPath *) path)->subpath);
		case T_GroupPath:
			return groups_rows_of_device(((GroupPath *) path)->subpath);
		case T_GroupingSetsPath:
			return groups_rows_of_device(((GroupingSetsPath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return groups_rows_of_device(((SortPath *) path)->subpath);
		case T_ProjectionPath:
			return groups_rows_of_device(((ProjectionPath *) path)->subpath);
		case T_GatherPath:
			return groups_rows_of_device(((GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return groups_rows_of_device(((GatherMergePath *) path)->subpath);
		case T_NestPath:
		case T_HashPath:
		case T_MergePath:
			return groups_rows_of_device(((JoinPath *) path)->outerjoinpath);
		default:
			if (gh_is_join_path(path))
				return groups_rows_of_device(linitial(((CustomPath *) path)->custom_paths));
			return gh_rows_joins(path) != NULL;
	}
}

/*
 * Where the device may make the groups: takes out the paths that group rows which come out of it, and would cost more if
 * so many rows came.  An order that these paths have does not make up for it.
 */
void
gh_drop_doubtful(RelOptInfo *rel, const Path *groups, double expected, double doubtful)
{
	const Cost	more = GH_COLLECTED_ROW_COST * cpu_tuple_cost * (doubtful - expected);
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (groups_rows_of_device(path) && !gh_has_more_disabled_nodes(groups, path, path) &&
			groups->total_cost < path->total_cost + more)
			rel->pathlist = foreach_delete_current(rel->pathlist, lc);
	}
}
