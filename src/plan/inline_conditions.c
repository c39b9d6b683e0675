/*
 * inline_conditions.c
 *		Whether conditions around inlined queries may be computed for more rows than they are asked about now.
 *
 * A query that is computed once, apart, is a fence: what it leaves out no condition outside sees.  Inlined, it has conditions
 * on its columns pushed down into it, before or beside its own.  So these must not fail, nor what their columns are
 * computed by.  A condition on several tables stays above; as an equality it may give another on one of them, whose sides
 * must not fail, then.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/inline.h"
#include "plan/unnest.h"

/* More columns of columns than this are not followed: by then it is planning that costs. */
#define GH_MOST_COLUMNS 10000

/* A query, and the one around it. */
typedef struct Level
{
	const Query *query;
	const struct Level *upper;
} Level;

typedef struct Conditions
{
	const Level *level;			/* in which the walk is */
	int			ncolumns;		/* looked at so far */
	bool		safe;
} Conditions;

static bool is_safe_column(const Query *query, AttrNumber column, const Level *upper, Conditions *all);

static const RangeTblEntry *
table_of(const Level *level, Index number)
{
	return list_nth_node(RangeTblEntry, level->query->rtable, (int) number - 1);
}

/* The query in WITH that a table stands for; *home: whose WITH. */
static const CommonTableExpr *
with_of(const RangeTblEntry *table, const Level *level, const Level **home)
{
	ListCell   *lc;

	for (Index up = table->ctelevelsup; up > 0 && level != NULL; up--)
		level = level->upper;
	*home = level;
	if (level == NULL)
		return NULL;
	foreach(lc, level->query->cteList)
		if (strcmp(lfirst_node(CommonTableExpr, lc)->ctename, table->ctename) == 0)
			return lfirst_node(CommonTableExpr, lc);
	return NULL;
}

/* ----------------------------------------------------------------- columns */

static bool find_unsafe_column(Node *node, Conditions *all);

/* Whether an expression at that level reads only columns which are computed by what cannot fail. */
static bool
reads_safe_columns(const Node *expr, const Level *level, Conditions *all)
{
	const Level *before = all->level;
	bool		found;

	check_stack_depth();
	all->level = level;
	found = find_unsafe_column((Node *) expr, all);
	all->level = before;
	return !found;
}

static bool
is_safe_var(const Var *var, Conditions *all)
{
	const Level *level = all->level;
	const RangeTblEntry *table;
	const CommonTableExpr *with;
	const Level *home;
	const Node *named;

	for (Index up = var->varlevelsup; up > 0 && level != NULL; up--)
		level = level->upper;
	if (level == NULL || var->varattno <= 0 || ++all->ncolumns > GH_MOST_COLUMNS)
		return false;
	table = table_of(level, var->varno);
	switch (table->rtekind)
	{
		case RTE_RELATION:
		case RTE_VALUES:
			return true;
		case RTE_SUBQUERY:
			return is_safe_column(table->subquery, var->varattno, level, all);
		case RTE_CTE:
			with = with_of(table, level, &home);
			return with != NULL && !with->cterecursive &&
				is_safe_column((Query *) with->ctequery, var->varattno, home, all);
		default:
			named = gh_named_expression(table, var->varattno);
			return named != NULL && gh_unnest_is_safe((Node *) named) && reads_safe_columns(named, level, all);
	}
}

static bool
find_unsafe_column(Node *node, Conditions *all)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		const Level level = {(Query *) node, all->level};
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

/* Whether a query computes its column by what cannot fail; of UNION and the like, each of its queries. */
static bool
is_safe_leaf(const Node *set, AttrNumber column, const Level *level, Conditions *all)
{
	if (IsA(set, SetOperationStmt))
		return is_safe_leaf(((const SetOperationStmt *) set)->larg, column, level, all) &&
			is_safe_leaf(((const SetOperationStmt *) set)->rarg, column, level, all);
	return is_safe_column(table_of(level, (Index) ((const RangeTblRef *) set)->rtindex)->subquery, column, level, all);
}

static bool
is_safe_column(const Query *query, AttrNumber column, const Level *upper, Conditions *all)
{
	const Level level = {query, upper};
	TargetEntry *target;

	if (query->setOperations != NULL)
		return is_safe_leaf(query->setOperations, column, &level, all);
	target = get_tle_by_resno(query->targetList, column);
	return target != NULL && gh_unnest_is_safe((Node *) target->expr) &&
		reads_safe_columns((Node *) target->expr, &level, all);
}

/* -------------------------------------------------------------- conditions */

/* Whether rows of the table may be those of an inlined query: not if it is one that is stored. */
static bool
may_be_inlined(const RangeTblEntry *table)
{
	return table->rtekind != RTE_RELATION && table->rtekind != RTE_VALUES;
}

static bool
reads_inlined(const Bitmapset *tables, const Level *level)
{
	int			number = -1;

	while ((number = bms_next_member(tables, number)) >= 0)
		if (may_be_inlined(table_of(level, (Index) number)))
			return true;
	return false;
}

static bool
is_equality(const Node *condition)
{
	const OpExpr *op = (const OpExpr *) condition;

	return IsA(condition, OpExpr) && list_length(op->args) == 2 &&
		op_mergejoinable(op->opno, exprType(linitial(op->args)));
}

static void
check_condition(Node *condition, const Level *level, Conditions *all)
{
	Bitmapset  *tables;

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
	if (!reads_inlined(tables, level))
		return;
	all->safe = reads_safe_columns(condition, level, all) &&
		((bms_membership(tables) == BMS_MULTIPLE && !is_equality(condition)) || gh_unnest_is_safe(condition));
}

static void
check_joins(Node *node, const Level *level, Conditions *all)
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
		const Level level = {(Query *) node, all->level};

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
