/*
 * arms.c
 *		What INTERSECT, EXCEPT and UNION compare, made distinct before.
 *
 * PostgreSQL has all rows of both queries come together, and then counts equal ones, or leaves them out.  But without
 * ALL it makes no difference how often a query has a row, so
 *
 *		SELECT a FROM t INTERSECT SELECT b FROM u
 *
 * gives the same as
 *
 *		SELECT DISTINCT a FROM t INTERSECT SELECT DISTINCT b FROM u
 *
 * where a fragment makes the groups of each, and few rows come out of it.  Values that are equal must look the same, too:
 * which row of equal ones comes out would be another.  plan_choice.c plans the query both ways.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "parser/parse_clause.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"

#include "compat.h"
#include "plan/inline.h"
#include "plan/unnest.h"

typedef struct Arms
{
	bool		may_end_early;	/* not all rows of the query that is looked at need be read */
	bool		done;
} Arms;

/* Whether the query returns rows as they are, in no order, with columns of the types that the operation compares. */
static bool
may_be_distinct(const Query *arm, const SetOperationStmt *operation)
{
	ListCell   *lc;
	int			column = 0;

	if (arm->commandType != CMD_SELECT || arm->setOperations != NULL || arm->distinctClause != NIL || arm->groupClause != NIL ||
		arm->groupingSets != NIL || arm->hasAggs || arm->hasWindowFuncs || arm->hasTargetSRFs || arm->sortClause != NIL ||
		arm->limitCount != NULL || arm->limitOffset != NULL || arm->rowMarks != NIL || arm->jointree->fromlist == NIL)
		return false;
	foreach(lc, arm->targetList)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);
		Node	   *expr = (Node *) entry->expr;
		int32		typmod;

		if (entry->resjunk || column >= list_length(operation->colTypes) ||
			exprType(expr) != list_nth_oid(operation->colTypes, column))
			return false;
		/* -1 where the queries have different ones, such as 1.0 and 1.00 */
		typmod = list_nth_int(operation->colTypmods, column);
		/* the rows are compared by another collation, perhaps, than they are made distinct by */
		if (!gh_is_identical_type(exprType(expr), typmod, exprCollation(expr)) ||
			!gh_is_identical_type(exprType(expr), typmod, list_nth_oid(operation->colCollations, column)))
			return false;
		column++;
	}
	return column > 0;
}

static void
make_distinct(Query *arm)
{
	ListCell   *lc;

	foreach(lc, arm->targetList)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);
		SortGroupClause *clause = makeNode(SortGroupClause);
		bool		hashable;

		get_sort_group_operators(exprType((Node *) entry->expr), false, true, false, &clause->sortop, &clause->eqop, NULL,
								 &hashable);
		clause->hashable = hashable;
		clause->tleSortGroupRef = assignSortGroupRef(entry, arm->targetList);
		arm->distinctClause = lappend(arm->distinctClause, clause);
	}
}

/* Whether the operation makes no difference of how often a query has a row, and reads all of them. */
static bool
compares_rows(const SetOperationStmt *operation, const Arms *arms)
{
	if (operation->all)
		return false;
	return !arms->may_end_early || (operation->op == SETOP_UNION ? GH_UNION_READS_ALL : GH_SETOP_READS_ALL);
}

/* The queries that the operation compares. */
static void
visit_operation(const Query *query, Node *node, Arms *arms)
{
	SetOperationStmt *operation = (SetOperationStmt *) node;
	Node	   *sides[2];

	if (!IsA(node, SetOperationStmt))
		return;
	sides[0] = operation->larg;
	sides[1] = operation->rarg;
	for (int i = 0; i < 2; i++)
	{
		Query	   *arm;

		visit_operation(query, sides[i], arms);
		if (!IsA(sides[i], RangeTblRef) || !compares_rows(operation, arms))
			continue;
		arm = rt_fetch(((RangeTblRef *) sides[i])->rtindex, query->rtable)->subquery;
		if (!may_be_distinct(arm, operation))
			continue;
		make_distinct(arm);
		arms->done = true;
	}
}

static bool
visit_below(Node *node, Arms *arms)
{
	bool		above = arms->may_end_early;

	/* a recursive query would have its rows made distinct in each step */
	if (node == NULL || (IsA(node, CommonTableExpr) && ((CommonTableExpr *) node)->cterecursive))
		return false;
	if (IsA(node, SubLink))
		arms->may_end_early = true;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		arms->may_end_early |= query->limitCount != NULL;
		if (query->setOperations != NULL)
			visit_operation(query, query->setOperations, arms);
		(void) query_tree_walker(query, visit_below, arms, 0);
	}
	else
		(void) expression_tree_walker(node, visit_below, arms);
	arms->may_end_early = above;
	return false;
}

/* Changes the query, which is the caller's own; false: there is nothing to change. */
bool
gh_make_arms_distinct(Query *query)
{
	Arms		arms = {0};

	(void) visit_below((Node *) query, &arms);
	return arms.done;
}
