/*
 * inline.c
 *		Queries in WITH that are read more than once, put in the place of each reference.
 *
 * PostgreSQL inlines what is read once, and otherwise computes all rows, stores them, and reads them row by row.  In the place of
 * its references such a query is a part of what an engine does as a whole, and is computed only for the rows, and the
 * columns, that are asked for there: the groups of one year, not of all.  That it is computed more than once must not show:
 * it must give the same rows each time (inline_repeat.c) and conditions around it must not fail (inline_conditions.c).
 *
 * Only queries that make groups: of others the rows are read as fast from where they are stored, and are changed by more
 * of what is around them.  AS MATERIALIZED is obeyed.  plan_choice.c plans both ways.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "plan/inline.h"

/* Whether its rows are groups; of UNION and the like, of all of its queries. */
static bool
makes_groups(const Query *query, const Node *set)
{
	if (set == NULL)
		return query->hasAggs || query->groupClause != NIL || query->groupingSets != NIL;
	if (IsA(set, SetOperationStmt))
		return makes_groups(query, ((const SetOperationStmt *) set)->larg) &&
			makes_groups(query, ((const SetOperationStmt *) set)->rarg);
	query = list_nth_node(RangeTblEntry, query->rtable, ((const RangeTblRef *) set)->rtindex - 1)->subquery;
	return makes_groups(query, query->setOperations);
}

static bool
may_be_inlined(const CommonTableExpr *with)
{
	Query	   *query = (Query *) with->ctequery;

	return with->ctematerialized == CTEMaterializeDefault && with->cterefcount > 1 && !with->cterecursive &&
		query->commandType == CMD_SELECT && makes_groups(query, query->setOperations) && gh_inline_is_repeatable(query);
}

static bool
find_with(Node *node, List **found)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_with, found, 0);
	if (IsA(node, CommonTableExpr) && may_be_inlined((CommonTableExpr *) node))
		*found = lappend(*found, node);
	return expression_tree_walker(node, find_with, found);
}

/* Marks what may be inlined; false: nothing.  The query has no user's function. */
bool
gh_inline_with(Query *query)
{
	List	   *found = NIL;
	ListCell   *lc;

	(void) find_with((Node *) query, &found);
	if (found == NIL || !gh_inline_conditions_are_safe(query))
		return false;
	foreach(lc, found)
		lfirst_node(CommonTableExpr, lc)->ctematerialized = CTEMaterializeNever;
	return true;
}
