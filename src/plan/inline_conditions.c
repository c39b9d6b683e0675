/*
 * inline_conditions.c
 *		Whether conditions around inlined queries may be computed for more rows than they are asked about now.
 *
 * A query that is computed once, apart, is a fence: what it leaves out no condition outside sees.  Inlined,
 * it has conditions on its columns pushed down into it, before or beside its own.  So these must not fail,
 * nor what their columns are computed by.  A condition on several tables stays above, unless the planner
 * makes of it what is one on a single table: an equality with what equals its other side; OR, of which what
 * concerns one table is taken out; NOT, CASE and COALESCE, of which constants leave a part; EXISTS and IN,
 * which become joins; and what reads columns of subqueries that are pulled up.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/inline.h"
#include "plan/unnest.h"

/* More columns of columns than this are not followed: by then it is planning that costs. */
#define GH_MOST_COLUMNS 10000

typedef struct Conditions
{
	const GhLevel *level;			/* in which the walk is */
	int			ncolumns;		/* looked at so far */
	bool		safe;
} Conditions;

static const RangeTblEntry *
table_of(const GhLevel *level, Index number)
{
	return list_nth_node(RangeTblEntry, level->query->rtable, (int) number - 1);
}

/* ----------------------------------------------------------------- columns */

static bool find_unsafe_column(Node *node, Conditions *all);

/* Whether an expression at that level reads only columns which are computed by what cannot fail. */
static bool
reads_safe_columns(const Node *expr, const GhLevel *level, Conditions *all)
{
	const GhLevel *before = all->level;
	bool		found;

	check_stack_depth();
	all->level = level;
	found = find_unsafe_column((Node *) expr, all);
	all->level = before;
	return !found;
}

/* GhSource */
static bool
is_safe_source(const Node *expr, const GhLevel *level, void *arg)
{
	return gh_unnest_is_safe((Node *) expr, level) && reads_safe_columns(expr, level, arg);
}

static bool
is_safe_var(const Var *var, Conditions *all)
{
	const GhLevel *level = gh_inline_level(all->level, var->varlevelsup);
	const RangeTblEntry *table;

	if (level == NULL || var->varattno <= 0 || ++all->ncolumns > GH_MOST_COLUMNS)
		return false;
	table = table_of(level, var->varno);
	if (table->rtekind == RTE_RELATION)
		return true;
	if (table->rtekind == RTE_VALUES)
		return is_safe_source((Node *) table->values_lists, level, all);
	return gh_inline_sources(table, var->varattno, level, is_safe_source, all);
}

static bool
find_unsafe_column(Node *node, Conditions *all)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const GhLevel level = {(Query *) node, all->level};
		bool		found;

		all->level = &level;
		found = query_tree_walker((Query *) node, find_unsafe_column, all, 0);
		all->level = level.upper;
		return found;
	}
	if (IsA(node, Var))
		return !is_safe_var((Var *) node, all);
	return expression_tree_walker(node, find_unsafe_column, all);
}

/* -------------------------------------------------------------- conditions */

/* Whether rows of the table may be those of an inlined query: not if it is one that is stored. */
static bool
may_be_inlined(const RangeTblEntry *table)
{
	return table->rtekind != RTE_RELATION && table->rtekind != RTE_VALUES;
}

static bool
reads_inlined(const Bitmapset *tables, const GhLevel *level)
{
	int			number = -1;

	while ((number = bms_next_member(tables, number)) >= 0)
		if (may_be_inlined(table_of(level, (Index) number)))
			return true;
	return false;
}

/*
 * Whether it reads rows of an inlined query that belong to a query around it, to which it may be pulled up.
 */
static bool
reads_inlined_above(Node *condition, const GhLevel *level)
{
	int			up = 1;

	for (level = level->upper; level != NULL; level = level->upper, up++)
		if (reads_inlined(gh_unnest_tables(condition, up), level))
			return true;
	return false;
}

static bool
find_with_below(Node *node, void *unused)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_with_below, unused);
	foreach(lc, ((Query *) node)->rtable)
		if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_CTE)
			return true;
	return query_tree_walker((Query *) node, find_with_below, unused, 0);
}

/* Whether a subquery of it becomes a join with rows of an inlined query. */
static bool
find_joined_with(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && ((SubLink *) node)->subLinkType != EXPR_SUBLINK && find_with_below(node, unused))
		return true;
	return expression_tree_walker(node, find_joined_with, unused);
}

/* ------------------------------------------------- what stays above */

static bool
is_equality(const Node *condition)
{
	const OpExpr *op = (const OpExpr *) condition;

	return IsA(condition, OpExpr) && list_length(op->args) == 2 &&
		op_mergejoinable(op->opno, exprType(linitial(op->args)));
}

/* AND, OR and NOT; and what becomes such a one, as <> true does. */
static bool
is_of_booleans(const Node *condition)
{
	return IsA(condition, BoolExpr) ||
		(IsA(condition, OpExpr) && exprType(linitial(((const OpExpr *) condition)->args)) == BOOLOID);
}

static bool
find_settling(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, Const))
		return ((Const *) node)->constisnull || ((Const *) node)->consttype == BOOLOID;
	return IsA(node, Param) || expression_tree_walker(node, find_settling, unused);
}

static bool
find_column(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	return IsA(node, Var) || IsA(node, CaseTestExpr) || expression_tree_walker(node, find_column, unused);
}

/* Whether constants or parameters alone may decide it. */
static bool
may_be_settled(Node *decision)
{
	return !find_column(decision, NULL) || find_settling(decision, NULL);
}

/* Whether a part of it may be all that the planner leaves. */
static bool
find_choice(Node *node, void *unused)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		return true;
	if (IsA(node, CaseExpr))
	{
		if (((CaseExpr *) node)->arg != NULL && may_be_settled((Node *) ((CaseExpr *) node)->arg))
			return true;
		foreach(lc, ((CaseExpr *) node)->args)
			if (may_be_settled((Node *) lfirst_node(CaseWhen, lc)->expr))
				return true;
	}
	if (IsA(node, CoalesceExpr))
		foreach(lc, ((CoalesceExpr *) node)->args)
			if (lnext(((CoalesceExpr *) node)->args, lc) != NULL && may_be_settled(lfirst(lc)))
				return true;
	return expression_tree_walker(node, find_choice, unused);
}

/* Whether columns of the table remain so, whatever is pulled up. */
static bool
is_apart(const RangeTblEntry *table, const GhLevel *level)
{
	const CommonTableExpr *with;
	const GhLevel *home;

	if (table->rtekind == RTE_SUBQUERY)
		return gh_inline_makes_groups(table->subquery);
	if (table->rtekind != RTE_CTE)
		return table->rtekind == RTE_RELATION;
	with = gh_inline_with_of(table, level, &home);
	return with != NULL && !with->cterecursive && gh_inline_makes_groups((Query *) with->ctequery);
}

static bool
stays_above(Node *condition, const Bitmapset *tables, const GhLevel *level)
{
	int			number = -1;
	int			apart = 0;

	while ((number = bms_next_member(tables, number)) >= 0)
		apart += is_apart(table_of(level, (Index) number), level);
	return apart > 1 && !is_equality(condition) && !is_of_booleans(condition) && !find_choice(condition, NULL);
}

static void
check_condition(Node *condition, const GhLevel *level, Conditions *all)
{
	Bitmapset  *tables;
	bool		above;

	if (condition == NULL || !all->safe)
		return;
	if (IsA(condition, List) || is_andclause(condition))
	{
		ListCell   *lc;

		foreach(lc, IsA(condition, List) ? (List *) condition : ((BoolExpr *) condition)->args)
			check_condition(lfirst(lc), level, all);
		return;
	}
	tables = gh_unnest_tables(condition, 0);
	above = reads_inlined_above(condition, level);
	if (!reads_inlined(tables, level) && !above && !find_joined_with(condition, NULL))
		return;
	all->safe = reads_safe_columns(condition, level, all) &&
		((!above && stays_above(condition, tables, level)) || gh_unnest_is_safe(condition, level));
}

static void
check_joins(Node *node, const GhLevel *level, Conditions *all)
{
	if (node == NULL)
		return;
	if (IsA(node, FromExpr))
	{
		ListCell   *lc;

		foreach(lc, ((FromExpr *) node)->fromlist)
			check_joins(lfirst(lc), level, all);
		check_condition(((FromExpr *) node)->quals, level, all);
	}
	else if (IsA(node, JoinExpr))
	{
		check_joins(((JoinExpr *) node)->larg, level, all);
		check_joins(((JoinExpr *) node)->rarg, level, all);
		check_condition(((JoinExpr *) node)->quals, level, all);
	}
}

static bool
check_queries(Node *node, Conditions *all)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const GhLevel level = {(Query *) node, all->level};

		check_joins((Node *) level.query->jointree, &level, all);
		check_condition(level.query->havingQual, &level, all);
		all->level = &level;
		(void) query_tree_walker((Query *) node, check_queries, all, 0);
		all->level = level.upper;
		return !all->safe;
	}
	return expression_tree_walker(node, check_queries, all);
}

/* Whether all conditions of the query, and of those in it, are. */
bool
gh_inline_conditions_are_safe(Query *query)
{
	Conditions	all = {.safe = true};

	(void) check_queries((Node *) query, &all);
	return all.safe;
}
