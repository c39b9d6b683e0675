/*
 * arms.c
 *		What INTERSECT, EXCEPT and UNION compare, made distinct before.
 *
 * PostgreSQL has all rows of both queries come together, and then counts equal ones, or leaves them out.  But
 * without ALL it makes no difference how often a query has a row, so
 *
 *		SELECT a FROM t INTERSECT SELECT b FROM u
 *
 * gives the same as
 *
 *		SELECT DISTINCT a FROM t INTERSECT SELECT DISTINCT b FROM u
 *
 * where a fragment makes the groups of each, and few rows come out of it.  Values that are equal must look
 * the same, too: which row of equal ones comes out would be another.  plan_choice.c plans the query both
 * ways, and leaves it as it is where groups would be PostgreSQL's.
 *
 * Of several columns of a table, nobody knows how many rows come out: PostgreSQL takes a tenth of the table's
 * for the most that there are, and so expects few of nearly all rows.  Where their values may make so many,
 * the query is left as well.
 */
#include "postgres.h"

#include "access/table.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_clause.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"
#include "utils/relcache.h"

#include "compat.h"
#include "gpuhash.h"
#include "plan/aggregate_plan.h"
#include "plan/inline.h"
#include "plan/planning.h"
#include "plan/same_groups.h"
#include "plan/unnest.h"

/* Where more than this share of the rows may be distinct, they are not made so. */
#define GH_DOUBTFUL_SHARE 0.5

typedef struct Arms
{
	bool		may_end_early;	/* not all rows of the query that is looked at need be read */
	bool		done;
} Arms;

/* -------------------------------------------------------------- estimates */

/* A table, and those of its columns that are looked at. */
typedef struct Columns
{
	const Query *query;			/* where it is read */
	int			varno;
	Bitmapset  *attnos;
	double		values;			/* the product of how many each has */
} Columns;

/* What an arm returns: Columns. */
typedef struct Returned
{
	const Query *arm;
	List	   *tables;
} Returned;

/* The column of a table that a column of the query is, with the query that reads this; NULL: it is none. */
static const Var *
table_column(const Query **query, const Var *var)
{
	for (;;)
	{
		const RangeTblEntry *rte = rt_fetch(var->varno, (*query)->rtable);
		const Node *expr;

		if (rte->rtekind == RTE_RELATION || var->varattno <= 0)
			return rte->rtekind == RTE_RELATION ? var : NULL;
		if (rte->rtekind == RTE_JOIN)
			expr = list_nth(rte->joinaliasvars, var->varattno - 1);
		else if (rte->rtekind == RTE_SUBQUERY && gh_is_plain_selection(rte->subquery))
		{
			*query = rte->subquery;
			expr = (Node *) list_nth_node(TargetEntry, (*query)->targetList, var->varattno - 1)->expr;
		}
		else
			return NULL;
		if (expr != NULL && IsA(expr, RelabelType))
			expr = (const Node *) ((const RelabelType *) expr)->arg;
		if (expr == NULL || !IsA(expr, Var) || ((const Var *) expr)->varlevelsup > 0)
			return NULL;
		var = (const Var *) expr;
	}
}

static Columns *
columns_of(Returned *returned, const Query *query, int varno)
{
	Columns    *columns;
	ListCell   *lc;

	foreach(lc, returned->tables)
	{
		columns = lfirst(lc);
		if (columns->query == query && columns->varno == varno)
			return columns;
	}
	columns = palloc0(sizeof(Columns));
	columns->query = query;
	columns->varno = varno;
	columns->values = 1;
	returned->tables = lappend(returned->tables, columns);
	return columns;
}

static bool
find_columns(Node *node, Returned *returned)
{
	const Query *query = returned->arm;
	const Var  *var;
	Columns    *columns;
	double		values;

	if (node == NULL || IsA(node, Query))
		return false;
	if (!IsA(node, Var))
		return expression_tree_walker(node, find_columns, returned);
	if (((Var *) node)->varlevelsup > 0 || (var = table_column(&query, (Var *) node)) == NULL)
		return false;
	values = gh_unnest_values(query, (const Node *) var);
	columns = columns_of(returned, query, var->varno);
	if (values <= 0 || bms_is_member(var->varattno, columns->attnos))
		return false;
	columns->attnos = bms_add_member(columns->attnos, var->varattno);
	columns->values *= values;
	return false;
}

/* Of the largest table that a query reads: of joins, nobody knows more. */
static double
rows_read(const Query *query)
{
	double		rows = 0;
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		rows = Max(rows, rte->rtekind == RTE_SUBQUERY ? rows_read(rte->subquery) : gh_unnest_rows(rte));
	}
	return rows;
}

/* Whether somebody had statistics made of several of a table's columns together: these are believed. */
static bool
has_own_statistics(Oid relid)
{
	Relation	relation = table_open(relid, NoLock);
	List	   *statistics = RelationGetStatExtList(relation);

	table_close(relation, NoLock);
	return statistics != NIL;
}

/*
 * Whether all that is known of the values which the arm returns is that nearly all of its rows may be
 * distinct.
 */
static bool
may_all_differ(const Query *arm)
{
	Returned	returned = {.arm = arm};
	double		values = 1;
	bool		is_known = false;
	ListCell   *lc;

	(void) find_columns((Node *) arm->targetList, &returned);
	foreach(lc, returned.tables)
	{
		const Columns *columns = lfirst(lc);
		const RangeTblEntry *table = rt_fetch(columns->varno, columns->query->rtable);
		double		rows = gh_unnest_rows(table);

		if (rows > 0)
			values *= Min(columns->values, rows);
		is_known |= bms_membership(columns->attnos) == BMS_MULTIPLE && has_own_statistics(table->relid);
	}
	list_free_deep(returned.tables);
	return !is_known && values > GH_DOUBTFUL_SHARE * rows_read(arm);
}

/* ------------------------------------------------------------------- arms */

/*
 * Whether the query returns rows as they are, in no order, with columns of the types that the operation
 * compares.
 */
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
		if (!may_be_distinct(arm, operation) || (!gh_force_offload && may_all_differ(arm)))
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

/* -------------------------------------------------------------- of a plan */

/*
 * The node that a node has its rows from, as they are or in another order; NULL: it reads them, or has them
 * from several.
 */
static Plan *
rows_from(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SubqueryScan:
			return ((const SubqueryScan *) plan)->subplan;
		case T_Agg:
		case T_Group:
		case T_Unique:
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Result:
		case T_Gather:
		case T_GatherMerge:
			return outerPlan(plan);
		default:
			return NULL;
	}
}

static bool
makes_groups(const Plan *plan)
{
	return IsA(plan, Agg) || IsA(plan, Group) || IsA(plan, Unique);
}

static void
count_groups(Plan *plan, void *arg)
{
	Plan	   *below;

	if (!makes_groups(plan) || outerPlan(plan)->plan_rows < GH_MIN_ROWS)
		return;
	/* groups that are made in several steps count once, and those not that ours are put together in */
	for (below = rows_from(plan); below != NULL; below = rows_from(below))
	{
		if (makes_groups(below) || gh_is_node(below, GH_AGGREGATE_NAME))
			return;
	}
	(*(int *) arg)++;
}

/* How many times PostgreSQL makes groups of many rows that are none yet. */
int
gh_groups_of_postgres(const PlannedStmt *stmt)
{
	int			result = 0;

	gh_walk_statement(stmt, count_groups, &result);
	return result;
}
