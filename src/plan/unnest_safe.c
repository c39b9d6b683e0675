/*
 * unnest_safe.c
 *		What of a correlated subquery may be computed for rows that nobody asks for.
 *
 * PostgreSQL runs a correlated scalar subquery for those outer rows that reach it.  As groups beside them, it is computed for
 * all keys there are.  Nobody may see that: no error that an expression raises for another row, no call of a user's
 * function.  So what is computed with columns must be of a short list of built-in functions that cannot fail, but for
 * results no storage would hold.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/unnest.h"

static bool
contains_vars(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, contains_vars, unused, 0);
	return expression_tree_walker(node, contains_vars, unused);
}

/* Arithmetic that has room for its result, and casts to wider types. */
static bool
is_safe_function(Oid function)
{
	switch (function)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
		case F_INT4_INT2:
		case F_INT8_INT2:
		case F_INT8_INT4:
		case F_FLOAT8_INT4:
		case F_FLOAT8_INT8:
		case F_TIMESTAMP_DATE:
		case F_TEXT_BPCHAR:
		case F_TEXTLIKE:
		case F_TEXTNLIKE:
		case F_BPCHARLIKE:
		case F_BPCHARNLIKE:
			return true;
		default:
			return false;
	}
}

/* Comparisons of built-in types, and the functions above. */
static bool
is_safe_operator(Oid operator)
{
	if (operator >= FirstUnpinnedObjectId)
		return false;
	return is_safe_function(get_opcode(operator)) || gh_is_comparison(operator);
}

/* What is NULL, or of count 0, without rows. */
bool
gh_unnest_is_count(const Aggref *aggref)
{
	return aggref->aggfnoid == F_COUNT_ || aggref->aggfnoid == F_COUNT_ANY;
}

/* Sums of floats overflow; those of integers are wider than these. */
static bool
is_safe_aggregate(const Aggref *aggref)
{
	char	   *name;
	Oid			type;

	if (aggref->aggfnoid >= FirstUnpinnedObjectId || aggref->aggorder != NIL || aggref->aggdirectargs != NIL ||
		aggref->agglevelsup != 0)
		return false;
	if (gh_unnest_is_count(aggref))
		return true;
	name = get_func_name(aggref->aggfnoid);
	if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0 || strcmp(name, "bool_and") == 0 ||
		strcmp(name, "bool_or") == 0 || strcmp(name, "every") == 0)
		return true;
	if ((strcmp(name, "sum") != 0 && strcmp(name, "avg") != 0) || list_length(aggref->args) != 1)
		return false;
	type = exprType((Node *) linitial_node(TargetEntry, aggref->args)->expr);
	return type == INT2OID || type == INT4OID || type == INT8OID || type == NUMERICOID;
}

/* Whether computing the node for more rows, or earlier, may show. */
static bool
is_unsafe(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_RangeTblRef:
		case T_CaseTestExpr:
			return false;
		case T_Query:
			return ((Query *) node)->commandType != CMD_SELECT || ((Query *) node)->rowMarks != NIL ||
				((Query *) node)->hasModifyingCTE || query_tree_walker((Query *) node, is_unsafe, unused, 0);
		case T_Aggref:
			if (!is_safe_aggregate((Aggref *) node))
				return true;
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			if (contains_vars(node, NULL) && !is_safe_operator(((OpExpr *) node)->opno))
				return true;
			break;
		case T_ScalarArrayOpExpr:
			if (contains_vars(node, NULL) && !is_safe_operator(((ScalarArrayOpExpr *) node)->opno))
				return true;
			break;
		case T_FuncExpr:
			if (contains_vars(node, NULL) && !is_safe_function(((FuncExpr *) node)->funcid))
				return true;
			break;
		case T_List:
		case T_TargetEntry:
		case T_FromExpr:
		case T_JoinExpr:
		case T_SubLink:
		case T_Param:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_ArrayExpr:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, is_unsafe, unused);
}

/* An expression, or a query with all that is in it. */
bool
gh_unnest_is_safe(Node *node)
{
	return !is_unsafe(node, NULL) && !contain_volatile_functions(node);
}
