/*
 * unnest_order.c
 *		Whether joins of a query may be made in another order than with its subqueries.
 *
 * A condition with a subquery over the columns of one table is checked when that is scanned, before any join.
 * As a join with groups, it may come after others.  Then their conditions are computed for rows that it would
 * have removed: they must not be able to fail, nor be volatile.  Conditions of one table are computed at its
 * scan either way, and there before the subquery, which costs more; but for such with subqueries themselves
 * that are run for each row, too.
 */
#include "postgres.h"

#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"

#include "plan/unnest.h"

/*
 * Whether nothing that may fail stands behind columns of a subquery in FROM: it may become a part of the
 * query around it.
 */
static bool
is_plain_source(Query *source, const GhLevel *level)
{
	return source->hasAggs || source->hasWindowFuncs || source->groupClause != NIL || source->distinctClause != NIL ||
		source->limitCount != NULL || source->limitOffset != NULL || gh_unnest_is_safe((Node *) source, level);
}

static bool
is_plain_with(const GhLevel *level, const RangeTblEntry *table)
{
	ListCell   *lc;

	if (table->ctelevelsup != 0)
		return false;
	foreach(lc, level->query->cteList)
	{
		const CommonTableExpr *with = lfirst_node(CommonTableExpr, lc);

		if (strcmp(with->ctename, table->ctename) == 0)
			return gh_inline_is_apart(with) || is_plain_source((Query *) with->ctequery, level);
	}
	return false;
}

static bool
is_plain_table(const GhLevel *level, int number)
{
	const RangeTblEntry *table = list_nth_node(RangeTblEntry, level->query->rtable, number - 1);

	switch (table->rtekind)
	{
		case RTE_RELATION:
			return true;
		case RTE_SUBQUERY:
			return is_plain_source(table->subquery, level);
		case RTE_JOIN:
			return gh_unnest_is_safe((Node *) table->joinaliasvars, level);
		case RTE_CTE:
			return is_plain_with(level, table);
		default:
			return false;
	}
}

/*
 * The tables of which columns are in an expression, or in a list of them; levelsup: of the query around it by
 * so much.
 */
Bitmapset *
gh_unnest_tables(Node *node, int levelsup)
{
	Bitmapset  *tables = NULL;
	ListCell   *lc;

	foreach(lc, pull_vars_of_level(node, levelsup))
		tables = bms_add_member(tables, (int) lfirst_node(Var, lc)->varno);
	return tables;
}

/* Whether the condition may be computed for any rows. */
static bool
may_move(const GhLevel *level, Node *condition)
{
	Bitmapset  *tables = gh_unnest_tables(condition, 0);
	int			number = -1;

	if (!gh_unnest_is_safe(condition, level))
		return false;
	while ((number = bms_next_member(tables, number)) >= 0)
		if (!is_plain_table(level, number))
			return false;
	return true;
}

static bool
find_fixed(Node *node, const GhLevel *level)
{
	if (node == NULL)
		return false;
	if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;

		return (join->quals != NULL && !may_move(level, join->quals)) || find_fixed(join->larg, level) ||
			find_fixed(join->rarg, level);
	}
	if (IsA(node, FromExpr))
		return expression_tree_walker((Node *) ((FromExpr *) node)->fromlist, find_fixed, (void *) level);
	return false;
}

/*
 * Whether a subquery in a condition may be run for each row.  A scalar one that reads nothing of a query
 * around it is run once, when its result is asked for first, and costs next to nothing then.
 */
static bool
asks_for_each_row(Node *node, void *unused)
{
	const SubLink *link = (const SubLink *) node;

	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		return link->subLinkType != EXPR_SUBLINK || gh_reads_outer_columns(link->subselect);
	return expression_tree_walker(node, asks_for_each_row, unused);
}

/* Whether all conditions of the level's query allow that; conditions: of its WHERE. */
bool
gh_unnest_may_reorder(const GhLevel *level, List *conditions)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		Node	   *condition = lfirst(lc);

		if (bms_membership(gh_unnest_tables(condition, 0)) == BMS_MULTIPLE ||
			asks_for_each_row(condition, NULL) ?
			!may_move(level, condition) : contain_volatile_functions(condition))
			return false;
	}
	return !find_fixed((Node *) level->query->jointree, level);
}
