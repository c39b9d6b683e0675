/*
 * inline_repeat.c
 *		Whether a query in WITH gives the same rows, to the byte, whenever it is run in one snapshot.
 *
 * PostgreSQL computes it once, and all that read it see the same rows.  Computed for each of them, it may
 * differ: by the order in which rows come (sums of floats, LIMIT, window functions over equal rows, arrays),
 * by which of equal values stands for its group (1.0 and 1.00, texts that a collation calls equal), and by
 * functions that are not immutable.  A query in WITH that it reads, and that is read there alone, comes along
 * into each place: the same holds for that.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "plan/inline.h"
#include "plan/unnest.h"

/* ------------------------------------------------------------------ values */

/* Whether equal values of the type have the same bytes, so that it does not matter which one is taken. */
bool
gh_is_identical_type(Oid type, int32 typmod, Oid collation)
{
	type = getBaseTypeAndTypmod(type, &typmod);
	switch (type)
	{
		case BOOLOID:
		case CHAROID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case UUIDOID:
		case BYTEAOID:
			return true;
		case NUMERICOID:
			return typmod >= 0;
		case BPCHAROID:
			return typmod >= 0 && OidIsValid(collation) && get_collation_isdeterministic(collation);
		case NAMEOID:
		case TEXTOID:
		case VARCHAROID:
			return OidIsValid(collation) && get_collation_isdeterministic(collation);
		default:
			return type_is_enum(type);
	}
}

static bool
is_identical(const Node *expr)
{
	return gh_is_identical_type(exprType(expr), exprTypmod(expr), exprCollation(expr));
}

/* Whether all that rows are grouped by is. */
static bool
are_identical(const List *clauses, List *targets)
{
	ListCell   *lc;

	foreach(lc, clauses)
		if (!is_identical(get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc), targets)))
			return false;
	return true;
}

/* Of UNION, INTERSECT and EXCEPT, all columns are keys; of UNION ALL, none. */
static bool
is_identical_set(const SetOperationStmt *set)
{
	ListCell   *type;
	ListCell   *typmod;
	ListCell   *collation;

	if (set->op == SETOP_UNION && set->all)
		return true;
	forthree(type, set->colTypes, typmod, set->colTypmods, collation, set->colCollations)
		if (!gh_is_identical_type(lfirst_oid(type), lfirst_int(typmod), lfirst_oid(collation)))
			return false;
	return true;
}

/* -------------------------------------------------------------- aggregates */

static bool
is_one_of(const char *name, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* Whether it gives the same in whatever order rows come. */
static bool
is_repeatable_aggregate(const Aggref *aggref)
{
	static const char *const of_bool[] = {"bool_and", "bool_or", "every", NULL};
	static const char *const of_order[] = {"min", "max", NULL};
	static const char *const of_sums[] = {"sum", "avg", "variance", "var_pop", "var_samp", "stddev", "stddev_pop", "stddev_samp", NULL};
	const Node *arg;
	char	   *name;
	Oid			type;

	if (aggref->aggfnoid >= FirstUnpinnedObjectId || aggref->aggorder != NIL || aggref->aggdirectargs != NIL ||
		aggref->agglevelsup != 0)
		return false;
	if (gh_unnest_is_count(aggref))
		return true;
	if (list_length(aggref->args) != 1)
		return false;
	arg = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	if (aggref->aggdistinct != NIL && !is_identical(arg))
		return false;
	name = get_func_name(aggref->aggfnoid);
	if (is_one_of(name, of_bool))
		return true;
	if (is_one_of(name, of_order))
		return is_identical(arg);
	type = getBaseType(exprType(arg));
	return is_one_of(name, of_sums) && (type == INT2OID || type == INT4OID || type == INT8OID || type == NUMERICOID);
}

/* ----------------------------------------------------------------- queries */

typedef struct Repeat
{
	const GhLevel *level;		/* in which the walk is */
} Repeat;

static bool find_unrepeatable(Node *node, Repeat *repeat);

/* Whether the rows of a query in WITH are computed once for all, or the same each time. */
static bool
is_repeatable_with(const RangeTblEntry *table, const GhLevel *level)
{
	Repeat		repeat = {0};
	const CommonTableExpr *with = gh_inline_with_of(table, level, &repeat.level);

	check_stack_depth();
	if (with == NULL)
		return false;
	return gh_inline_is_apart(with) || !find_unrepeatable(with->ctequery, &repeat);
}

static bool
are_repeatable_tables(const Query *query, const GhLevel *level)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		const RangeTblEntry *table = lfirst_node(RangeTblEntry, lc);

		if (table->rtekind == RTE_FUNCTION || table->rtekind == RTE_TABLEFUNC || table->rtekind == RTE_NAMEDTUPLESTORE ||
			table->tablesample != NULL || (table->rtekind == RTE_CTE && !is_repeatable_with(table, level)))
			return false;
	}
	return gh_unnest_tables_are_stored(query);
}

static bool
is_repeatable_query(const Query *query, const GhLevel *level)
{
	return query->commandType == CMD_SELECT && query->rowMarks == NIL && !query->hasModifyingCTE && !query->hasRecursive &&
		query->limitCount == NULL && query->limitOffset == NULL && !query->hasWindowFuncs && !query->hasTargetSRFs &&
		!query->hasDistinctOn && are_identical(query->groupClause, query->targetList) &&
		are_identical(query->distinctClause, query->targetList) && are_repeatable_tables(query, level);
}

static bool
is_mutable(Oid function, void *unused)
{
	return func_volatile(function) != PROVOLATILE_IMMUTABLE;
}

static bool
find_in_query(Query *query, Repeat *repeat)
{
	const GhLevel level = {query, repeat->level};
	bool		found;

	repeat->level = &level;
	found = !is_repeatable_query(query, &level) || query_tree_walker(query, find_unrepeatable, repeat, 0);
	repeat->level = level.upper;
	return found;
}

static bool
find_unrepeatable(Node *node, Repeat *repeat)
{
	bool		repeatable = true;

	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_mutable, NULL))
		return true;
	switch (nodeTag(node))
	{
		case T_Query:
			return find_in_query((Query *) node, repeat);
		case T_Var:
			repeatable = ((Var *) node)->varattno > 0;
			break;
		case T_Aggref:
			repeatable = is_repeatable_aggregate((Aggref *) node);
			break;
		case T_SetOperationStmt:
			repeatable = is_identical_set((SetOperationStmt *) node);
			break;
		case T_SubLink:
			/* in the order in which its rows come */
			repeatable = ((SubLink *) node)->subLinkType != ARRAY_SUBLINK;
			break;
		case T_Const:
		case T_Param:
		case T_RangeTblRef:
		case T_SortGroupClause:
		case T_GroupingSet:
		case T_CaseTestExpr:
		case T_SQLValueFunction:
		case T_GroupingFunc:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_FuncExpr:
		case T_ArrayExpr:
		case T_List:
		case T_TargetEntry:
		case T_FromExpr:
		case T_JoinExpr:
		case T_CommonTableExpr:
		case T_RelabelType:
		case T_CoerceViaIO:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
			break;
		default:
			return true;
	}
	return !repeatable || expression_tree_walker(node, find_unrepeatable, repeat);
}

/* level: the query whose WITH it is in. */
bool
gh_inline_is_repeatable(Query *with, const GhLevel *level)
{
	Repeat		repeat = {level};

	return !find_unrepeatable((Node *) with, &repeat);
}
