/*
 * loops.c
 *		Hash joins in place of nested loops that read all of their inner side for each outer row.
 *
 * Where one outer row is expected, such a nested loop costs what a hash join does, and as it begins earlier,
 * the planner keeps it alone.  But rows of joins are estimated by multiplying what conditions leave, as if
 * these had nothing to do with each other, and where tens of thousands come in place of the one, the loop
 * takes the product of both sides and the hash join their sum. So of two that cost nearly the same, the hash
 * join is taken where a side is no plain table, or has several conditions.
 *
 * The hash join stands where the loop stood, and says that it costs what the loop does: all joins above are
 * chosen as without it, for rows that are hard to estimate are no ground for another order.  It has the
 * loop's sides, too, so that it reads nothing of the inner one where no outer row comes.  The other way round
 * it would: it fetches a row of what would be its outer side then.
 *
 * Where a condition holds a subquery, or costs as much otherwise, the loop stays: what such conditions are
 * expected to cost is nearly all of both, so that they always cost nearly the same, and yet few rows may ever
 * be asked, where a loop ends early.
 *
 * Where the loop keeps an order that its outer side was sorted for, the hash join is sorted: such a loop is
 * what a LIMIT takes where very many rows are expected, of which few would do.  Little is lost with it where
 * such a side is read to its end before its first row, and all rows of the hash join cost no more than the
 * first ones of the loop.
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/join_path.h"
#include "plan/planning.h"

/* What the hash join may cost of the nested loop. */
#define GH_LOOP_MARGIN 1.05
/*
 * A loop that costs less is left alone, or one that reads, of a side that is sure, no more rows than this for
 * each of the other.
 */
#define GH_LOOP_COST 100.0
#define GH_LOOP_ROWS 10.0
/* Of an outer side whose rows are sorted, at least so much of the cost comes before its first row. */
#define GH_SORTED_SHARE 0.5
/* Conditions that cost more than so many operators, for each row, cost much. */
#define GH_COSTLY_OPERATORS 50.0

/*
 * Whether the rows of a side are estimated from more than a table's own statistics, of one condition or a
 * unique index.
 */
static bool
is_unsure(PlannerInfo *root, RelOptInfo *rel)
{
	return !IS_SIMPLE_REL(rel) || rel->rtekind != RTE_RELATION ||
		(list_length(rel->baserestrictinfo) > 1 && !gh_is_one_row(root, rel));
}

static bool
is_blind_loop(const GhJoinInputs *inputs, const Path *path)
{
	const NestPath *loop = (const NestPath *) path;
	Path	   *outer;
	Path	   *inner;
	bool		outer_is_unsure;
	bool		inner_is_unsure;

	if (!IsA(path, NestPath) || path->param_info != NULL || path->total_cost < GH_LOOP_COST)
		return false;
	outer = loop->jpath.outerjoinpath;
	inner = loop->jpath.innerjoinpath;
	if (outer->parent != inputs->outerrel || inner->parent != inputs->innerrel || gh_needs_rel(inner, inputs->outerrel))
		return false;
	/* one that goes along an index has its first rows early */
	if (path->pathkeys != NIL && outer->startup_cost < GH_SORTED_SHARE * outer->total_cost)
		return false;
	outer_is_unsure = is_unsure(inputs->root, outer->parent);
	inner_is_unsure = is_unsure(inputs->root, inner->parent);
	return (outer_is_unsure && inner_is_unsure) || (outer_is_unsure && inner->rows > GH_LOOP_ROWS) ||
		(inner_is_unsure && outer->rows > GH_LOOP_ROWS);
}

static bool
are_costly(PlannerInfo *root, List *clauses)
{
	QualCost	cost;

	cost_qual_eval(&cost, clauses, root);
	return cost.per_tuple > GH_COSTLY_OPERATORS * cpu_operator_cost;
}

/* Whether conditions of one of these tables, or of one that a subquery among them reads, cost much. */
static bool
has_costly_tables(PlannerInfo *root, Relids relids)
{
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		const RelOptInfo *rel = root->simple_rel_array[relid];

		/* an outer join has no relation */
		if (rel == NULL)
			continue;
		if (are_costly(root, rel->baserestrictinfo) ||
			(rel->subroot != NULL && has_costly_tables(rel->subroot, rel->subroot->all_baserels)))
			return true;
	}
	return false;
}

/* Of the clauses, those that a hash join can be made by. */
static List *
hash_clauses(const GhJoinInputs *inputs)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, inputs->extra->restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (gh_is_hash_clause(inputs, rinfo))
			result = lappend(result, rinfo);
	}
	return result;
}

/* A hash join of the same rows, in the same order; NULL: there is none. */
static Path *
hash_join(const GhJoinInputs *inputs, const Path *loop, List *clauses)
{
	bool		is_sorted = loop->pathkeys != NIL;
	Path	   *outer = is_sorted && loop->parallel_workers == 0 ? inputs->outerrel->cheapest_total_path :
		((const NestPath *) loop)->jpath.outerjoinpath;
	Path	   *inner = inputs->innerrel->cheapest_total_path;
	JoinCostWorkspace workspace;
	Path	   *result;

	if (inner->param_info != NULL || outer->param_info != NULL || (is_sorted && !enable_sort) ||
		(loop->parallel_safe && !(outer->parallel_safe && inner->parallel_safe)))
		return NULL;
	initial_cost_hashjoin(inputs->root, &workspace, inputs->jointype, clauses, outer, inner, inputs->extra, false);
	result = (Path *) create_hashjoin_path(inputs->root, inputs->joinrel, inputs->jointype, &workspace, inputs->extra, outer,
										   inner, false, inputs->extra->restrictlist, NULL, clauses);
	return is_sorted ? (Path *) create_sort_path(inputs->root, inputs->joinrel, result, loop->pathkeys, -1.0) : result;
}

/* Whether rows are asked for as they come, and only the first of them: a loop has those early. */
static bool
first_rows_count(const PlannerInfo *root)
{
	const Query *query = root->parse;

	return root->tuple_fraction > 0 && !query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL &&
		query->distinctClause == NIL && query->sortClause == NIL && !query->hasWindowFuncs;
}

/* What it costs to have the rows of the loop that are wanted: of those in order, perhaps, the first. */
static Cost
cost_of_wanted(const GhJoinInputs *inputs, const Path *loop)
{
	double		fraction = inputs->root->tuple_fraction;

	if (loop->pathkeys == NIL || fraction <= 0)
		return loop->total_cost;
	if (fraction >= 1)
		fraction /= Max(inputs->joinrel->rows, 1);
	return loop->startup_cost + Min(fraction, 1) * (loop->total_cost - loop->startup_cost);
}

/*
 * Puts hash joins that cost nearly the same in the places of loops.  Which path of a list wins is not asked
 * again: the order of the list is that of the costs, and these stay.
 */
static void
replace_loops(const GhJoinInputs *inputs, List *paths, List *clauses)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *loop = lfirst(lc);
		Path	   *hashed = is_blind_loop(inputs, loop) ? hash_join(inputs, loop, clauses) : NULL;

		if (hashed == NULL || hashed->total_cost > GH_LOOP_MARGIN * cost_of_wanted(inputs, loop) ||
			gh_has_more_disabled_nodes(hashed, ((NestPath *) loop)->jpath.outerjoinpath, ((NestPath *) loop)->jpath.innerjoinpath))
			continue;
		hashed->startup_cost = loop->startup_cost;
		hashed->total_cost = loop->total_cost;
		gh_copy_disabled_nodes(hashed, loop);
		lfirst(lc) = hashed;
	}
}

/*
 * For a pair of relations whose paths PostgreSQL has made; the join is one of those that have nested loops.
 */
void
gh_replace_loops(const GhJoinInputs *inputs)
{
	List	   *clauses;

	/* a search at random would go elsewhere by the smallest difference */
	if (!enable_hashjoin || first_rows_count(inputs->root) || gh_joins_are_searched_at_random(inputs->root) ||
		!(is_unsure(inputs->root, inputs->outerrel) || is_unsure(inputs->root, inputs->innerrel)))
		return;
	clauses = hash_clauses(inputs);
	if (clauses == NIL || are_costly(inputs->root, inputs->extra->restrictlist) ||
		has_costly_tables(inputs->root, inputs->joinrel->relids))
		return;
	replace_loops(inputs, inputs->joinrel->pathlist, clauses);
	replace_loops(inputs, inputs->joinrel->partial_pathlist, clauses);
}
