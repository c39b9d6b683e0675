/*
 * join_consider.c
 *		Whether GpuHashJoin is considered for a pair of relations, before its clauses are looked at.
 *
 * A query of many tables asks about thousands of pairs, and most of the joins would cost more: they are
 * to be refused for little.
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"
#include "plan/planning.h"
#include "plan/rows_path.h"
#include "plan/why.h"
#include "service/placement.h"

/* Whether PostgreSQL has made, and kept, a hash join of the two inputs as they are now. */
static inline bool
has_same_hash_join(const GhJoinInputs *inputs, List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		if (gh_is_same_hash_join(inputs, lfirst(lc)))
			return true;
	}
	return false;
}

/* Join types that were not there when this was written stay with PostgreSQL. */
static bool
knows_join_type(JoinType jointype)
{
	switch (jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_RIGHT:
		case JOIN_FULL:
		case JOIN_SEMI:
		case JOIN_ANTI:
		case JOIN_UNIQUE_OUTER:
		case JOIN_UNIQUE_INNER:
			return true;
		default:
			return gh_is_right_anti(jointype) || gh_is_right_semi(jointype);
	}
}

/* Whether a path of rel has parameters, and not from the other input, which cannot give them. */
static inline bool
has_parameters_from_outside(RelOptInfo *rel, RelOptInfo *other)
{
	ListCell   *lc;

	/* nearly always: the cheapest path, which has none */
	if (list_length(rel->cheapest_parameterized_paths) == 1 && rel->cheapest_total_path->param_info == NULL)
		return false;
	foreach(lc, rel->cheapest_parameterized_paths)
	{
		Path	   *path = (Path *) lfirst(lc);

		if (path->param_info != NULL && !gh_needs_rel(path, other))
			return true;
	}
	return false;
}

/* Whether a device may be expected to do the join, with those below it. */
static bool
may_be_for_device(const GhJoinInputs *inputs)
{
	RelOptInfo *outerrel = inputs->outerrel;

	return gh_device_may_be_expected() &&
		(gh_rows_may_win(inputs->root, inputs->joinrel, outerrel->cheapest_total_path,
						 inputs->innerrel->cheapest_total_path) ||
		 gh_kept_joins(inputs->root, outerrel, false) != NULL ||
		 gh_kept_joins(inputs->root, outerrel, true) != NULL);
}

/* Whether GpuHashJoin has to be looked at, whatever it may cost. */
static inline bool
must_consider(const GhJoinInputs *inputs)
{
	RelOptInfo *joinrel = inputs->joinrel;

	return gh_force_offload || may_be_for_device(inputs) ||
		has_same_hash_join(inputs, joinrel->pathlist) ||
		has_same_hash_join(inputs, joinrel->partial_pathlist);
}

/*
 * Whether any path could win, before the clauses are looked at: a query of many tables
 * asks about thousands of pairs.  An inner join is asked about both ways round, and
 * hashing the smaller side costs less in all.  Otherwise, what a path is sure to cost counts.
 */
static inline bool
may_win(const GhJoinInputs *inputs, JoinType jointype)
{
	RelOptInfo *joinrel = inputs->joinrel;
	Path	   *outer = inputs->outerrel->cheapest_total_path;
	Path	   *inner = inputs->innerrel->cheapest_total_path;
	Cost		outer_cost;
	Cost		inner_cost;
	Cost		startup;
	Cost		total;

	if (must_consider(inputs))
		return true;
	if (gh_joins_are_searched_at_random(inputs->root))
		return false;
	if (has_parameters_from_outside(inputs->outerrel, inputs->innerrel) ||
		has_parameters_from_outside(inputs->innerrel, inputs->outerrel))
		return true;
	if (jointype == JOIN_INNER &&
		(inner->rows > outer->rows ||
		 (inner->rows == outer->rows && inner->pathtarget->width > outer->pathtarget->width)))
		return false;
	/* or others than of these two */
	if (joinrel->consider_parallel && inputs->outerrel->partial_pathlist != NIL)
		return true;
	gh_real_cost(inner, &startup, &inner_cost);
	gh_real_cost(outer, &startup, &outer_cost);
	startup += inner_cost;
	total = outer_cost + inner_cost + gh_setup_cost +
		gh_build_tuple_cost * inner->rows + gh_probe_tuple_cost * outer->rows;
	return gh_why_wins(inputs->root, joinrel->relids, GH_JOIN_NAME, startup, total,
					   gh_wins_clearly(joinrel->pathlist, outer, inner, total));
}

/* Why no path is considered, as far as that can be told without looking at the clauses. */
const char *
gh_why_not_considered(const GhJoinInputs *inputs, JoinType jointype)
{
	if (!gh_enable_join)
		return "gpuhash.enable_join is off";
	if (!knows_join_type(jointype))
		return "joins of this type are not known";
	if (gh_has_few_rows(inputs->outerrel->rows + inputs->innerrel->rows))
		return "it has few rows";
	if (!may_win(inputs, jointype))
		return "it would cost more";
	/* the paths with the fewest parameters: what these need, all the others need */
	if (gh_needs_rel(inputs->outerrel->cheapest_total_path, inputs->innerrel) ||
		gh_needs_rel(inputs->innerrel->cheapest_total_path, inputs->outerrel))
		return "one side has parameters from the other";
	return NULL;
}
