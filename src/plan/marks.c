/*
 * marks.c
 *		What the planner's halves of the nodes have in common.
 *
 * Marks: setrefs.c takes every part of a CustomScan's expressions that equals a column of
 * its scan tuple for that column.  An expression that must not be taken for one is marked,
 * wrapped in conversions to its own type.  No other expression looks like that, since the
 * planner drops conversions that convert nothing.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "compat.h"
#include "plan/planning.h"

/* Conversions that make a mark. */
#define GH_MARK_DEPTH 2

/*
 * By how much a parallel path's rows are divided among its processes: the leader helps
 * the less the more workers it has to look after, as PostgreSQL's costs have it.
 */
double
gh_parallel_divisor(int workers)
{
	double		divisor = workers;

	if (parallel_leader_participation)
		divisor += Max(1.0 - 0.3 * workers, 0.0);
	return Max(divisor, 1.0);
}

/*
 * Whether the order of joins is searched by GEQO, which tries a few orders of very many: a cost that is
 * another by little makes it find quite another order, better or worse.
 */
bool
gh_joins_are_searched_at_random(PlannerInfo *root)
{
	return gh_geqo_runs(root);
}

/* The share of so many rows that the query is thought to read of them. */
static double
share_read(PlannerInfo *root, double rows)
{
	Query	   *parse = root->parse;

	if (root->tuple_fraction <= 0 || root->query_pathkeys != NIL || parse->hasAggs || parse->groupClause != NIL ||
		parse->distinctClause != NIL || parse->hasWindowFuncs)
		return 1.0;
	return root->tuple_fraction < 1.0 ? root->tuple_fraction : Min(1.0, root->tuple_fraction / Max(rows, 1));
}

/* Whether a path of so many rows costs less than another, until all rows are there that the query reads. */
bool
gh_costs_less(PlannerInfo *root, double rows, Cost startup, Cost total, Cost other_startup, Cost other_total)
{
	double		share = share_read(root, rows);

	return total < other_total &&
		startup + share * (total - startup) <= other_startup + share * (other_total - other_startup);
}

/* Costs that a path keeps in its private list. */
List *
gh_costs_list(Cost startup, Cost total)
{
	Cost		costs[2] = {startup, total};
	int			words[4];

	memcpy(words, costs, sizeof(words));
	return list_make4_int(words[0], words[1], words[2], words[3]);
}

void
gh_read_costs(List *list, Cost *startup, Cost *total)
{
	Cost		costs[2];
	int			words[4];

	for (int i = 0; i < lengthof(words); i++)
		words[i] = list_nth_int(list, i);
	memcpy(costs, words, sizeof(words));
	*startup = costs[0];
	*total = costs[1];
}

/* The expression with a mark. */
Expr *
gh_marked(Expr *expr)
{
	Node	   *inside = (Node *) expr;
	Expr	   *marked = expr;

	for (int i = 0; i < GH_MARK_DEPTH; i++)
		marked = (Expr *) makeRelabelType(marked, exprType(inside), exprTypmod(inside),
										  exprCollation(inside), COERCE_IMPLICIT_CAST);
	return marked;
}

/* The expression without the mark that it may have. */
Expr *
gh_unmarked(Expr *expr)
{
	Expr	   *inside = expr;

	for (int i = 0; i < GH_MARK_DEPTH; i++)
	{
		if (!IsA(inside, RelabelType) ||
			((RelabelType *) inside)->resulttype != exprType((Node *) ((RelabelType *) inside)->arg))
			return expr;
		inside = ((RelabelType *) inside)->arg;
	}
	return inside;
}

/* The path that costs least; NULL: there is none. */
Path *
gh_cheapest_of(const List *paths)
{
	Path	   *cheapest = NULL;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		if (cheapest == NULL || path->total_cost < cheapest->total_cost)
			cheapest = path;
	}
	return cheapest;
}
