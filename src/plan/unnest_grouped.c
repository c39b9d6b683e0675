/*
 * unnest_grouped.c
 *		A grouping as a query in FROM, so that subqueries in its results and in HAVING are those of rows.
 *
 *		SELECT o.k, sum(o.x), (SELECT count(*) FROM i WHERE i.k = o.k) FROM o GROUP BY o.k
 *		HAVING sum(o.x) > (SELECT avg(i.x) FROM i WHERE i.k = o.k) AND count(*) > 2
 *
 * gives the same as
 *
 *		SELECT g.k, g.s, (SELECT count(*) FROM i WHERE i.k = g.k) FROM (
 *			SELECT o.k AS k, sum(o.x) AS s FROM o GROUP BY o.k HAVING count(*) > 2) g
 *		WHERE g.s > (SELECT avg(i.x) FROM i WHERE i.k = g.k)
 *
 * whose subqueries unnest.c may take.  Where it does not, the query stays as it was.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/rewriteManip.h"

#include "compat.h"
#include "plan/unnest.h"

/* The groups of a query on their way into FROM. */
typedef struct Grouped
{
	List	   *targets;		/* of the groups: keys first */
	int			nkeys;
	int			depth;			/* of queries in the query, at which an expression is */
	bool		fails;
} Grouped;

/* Whether it is a grouping of which columns can be taken; grouping sets put NULLs into theirs. */
static bool
is_grouping(const Query *query)
{
	return query->groupClause != NIL && query->groupingSets == NIL && query->commandType == CMD_SELECT &&
		query->hasSubLinks && query->setOperations == NULL && query->rowMarks == NIL && !query->hasModifyingCTE &&
		!query->hasTargetSRFs && !query->hasWindowFuncs && query->jointree->fromlist != NIL;
}

/* The number of the column that an expression of the query is, or becomes, of the groups. */
static AttrNumber
find_target(Grouped *grouped, Node *expr)
{
	ListCell   *lc;
	int			number = list_length(grouped->targets) + 1;

	foreach(lc, grouped->targets)
		if (equal(lfirst_node(TargetEntry, lc)->expr, expr))
			return lfirst_node(TargetEntry, lc)->resno;
	grouped->targets = lappend(grouped->targets, makeTargetEntry((Expr *) expr, (AttrNumber) number, psprintf("column%d", number), false));
	return (AttrNumber) number;
}

/* What stands for an expression of the query, where it is read. */
static Node *
column_for(Grouped *grouped, Node *expr)
{
	return (Node *) makeVar(1, find_target(grouped, expr), exprType(expr), exprTypmod(expr), exprCollation(expr), (Index) grouped->depth);
}

/*
 * The expression of a query in the query as it would be in this one itself, where it has columns of this one
 * alone; else NULL.
 */
static Node *
of_query(const Grouped *grouped, Node *expr)
{
	if (grouped->depth == 0)
		return expr;
	if (checkExprHasSubLink(expr))
		return NULL;
	/* an aggregate has no columns of queries within the one that it is of */
	if (!IsA(expr, Aggref) && !contain_vars_of_level(expr, grouped->depth))
		return NULL;
	for (int level = 0; level < grouped->depth; level++)
		if (contain_vars_of_level(expr, level))
			return NULL;
	expr = copyObject(expr);
	IncrementVarSublevelsUp(expr, -grouped->depth, grouped->depth);
	return expr;
}

static bool
is_key(const Grouped *grouped, const Node *expr)
{
	for (int i = 0; i < grouped->nkeys; i++)
		if (equal(list_nth_node(TargetEntry, grouped->targets, i)->expr, expr))
			return true;
	return false;
}

/* Whether it is an aggregate, or a column, of the query; from a column that is no key it depends on keys. */
static bool
is_of_query(const Grouped *grouped, const Node *expr)
{
	return (IsA(expr, Aggref) && (int) ((const Aggref *) expr)->agglevelsup == grouped->depth) ||
		(IsA(expr, Var) && (int) ((const Var *) expr)->varlevelsup == grouped->depth);
}

/* Puts columns of the groups in the place of keys, of columns that depend on them, and of aggregates. */
static Node *
take_columns(Node *node, Grouped *grouped)
{
	Node	   *own;
	bool		all;

	if (node == NULL)
		return NULL;
	if (IsA(node, Query))
	{
		grouped->depth++;
		node = (Node *) query_tree_mutator((Query *) node, take_columns, grouped, 0);
		grouped->depth--;
		return node;
	}
	all = is_of_query(grouped, node);
	/* parts of expressions, which are none by themselves */
	own = IsA(node, List) || IsA(node, TargetEntry) || IsA(node, CaseWhen) ? NULL : of_query(grouped, node);
	if (own != NULL && (all || is_key(grouped, own)))
		return column_for(grouped, own);
	grouped->fails |= all || IsA(node, GroupingFunc);
	return expression_tree_mutator(node, take_columns, grouped);
}

static bool
find_link(Node *node, void *unused)
{
	if (node == NULL || IsA(node, Aggref))
		return false;
	return IsA(node, SubLink) || expression_tree_walker(node, find_link, unused);
}

/* The keys, as the query groups by them. */
static void
take_keys(Grouped *grouped, const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->groupClause)
	{
		TargetEntry *entry = copyObject(get_sortgroupclause_tle(lfirst_node(SortGroupClause, lc), query->targetList));

		entry->resno = (AttrNumber) list_length(grouped->targets) + 1;
		entry->resname = psprintf("column%d", entry->resno);
		entry->resjunk = false;
		grouped->targets = lappend(grouped->targets, entry);
		grouped->nkeys++;
	}
}

/* Divides HAVING into what the groups are asked, and what is asked of their rows. */
static List *
take_conditions(const Query *query, List **of_rows)
{
	List	   *of_groups = NIL;
	ListCell   *lc;

	foreach(lc, gh_conjuncts(query->havingQual))
	{
		if (find_link(lfirst(lc), NULL))
			*of_rows = lappend(*of_rows, lfirst(lc));
		else
			of_groups = lappend(of_groups, lfirst(lc));
	}
	return of_groups;
}

/* What the query has in WITH is one query farther away for its groups. */
static bool
move_references(Node *node, Grouped *grouped)
{
	RangeTblEntry *table = (RangeTblEntry *) node;
	bool		result;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		if (table->rtekind == RTE_CTE && (int) table->ctelevelsup == grouped->depth)
			table->ctelevelsup++;
		return false;
	}
	if (!IsA(node, Query))
		return expression_tree_walker(node, move_references, grouped);
	grouped->depth++;
	result = query_tree_walker((Query *) node, move_references, grouped, QTW_EXAMINE_RTES_BEFORE);
	grouped->depth--;
	return result;
}

/* The query above the groups: what has to be done when these are made. */
static void
put_above(Query *query, Query *groups, List *conditions)
{
	RangeTblRef *ref = makeNode(RangeTblRef);

	ref->rtindex = 1;
	gh_set_tables(query, list_make1(gh_unnest_subquery(groups, "grouped", groups->targetList)));
	query->jointree = makeFromExpr(list_make1(ref), gh_conjunction(conditions));
	query->groupClause = NIL;
	query->groupDistinct = false;
	query->havingQual = NULL;
	query->hasAggs = false;
	query->hasRowSecurity = false;
}

/*
 * A copy of the query that has it in FROM; NULL: it is no grouping, or one that cannot be there, or has no
 * subquery to gain by it.
 */
Query *
gh_unnest_as_rows(const Query *original)
{
	Query	   *query;
	Query	   *groups;
	Grouped		grouped = {0};
	List	   *conditions = NIL;

	if (!is_grouping(original) ||
		(!find_link((Node *) original->targetList, NULL) && !find_link(original->havingQual, NULL)))
		return NULL;
	query = copyObject((Query *) original);
	query->targetList = (List *) gh_without_group_names(query, (Node *) query->targetList);
	query->havingQual = gh_without_group_names(query, query->havingQual);
	gh_drop_group_names(query, gh_group_names(query));
	take_keys(&grouped, query);
	groups = copyObject(query);
	groups->havingQual = gh_conjunction(take_conditions(query, &conditions));
	groups->sortClause = groups->distinctClause = NIL;
	groups->hasDistinctOn = false;
	groups->limitOffset = groups->limitCount = NULL;
	query->targetList = (List *) take_columns((Node *) query->targetList, &grouped);
	conditions = (List *) take_columns((Node *) conditions, &grouped);
	if (grouped.fails)
		return NULL;
	groups->targetList = grouped.targets;
	groups->hasSubLinks = checkExprHasSubLink((Node *) groups);
	IncrementVarSublevelsUp((Node *) groups, 1, 1);
	groups->cteList = NIL;
	groups->hasRecursive = false;
	(void) query_tree_walker(groups, move_references, &grouped, QTW_EXAMINE_RTES_BEFORE);
	put_above(query, groups, conditions);
	return query;
}
