/*
 * planning.c
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

#include "planning.h"

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
