/*
 * unnest_safe.c
 *		What of a correlated subquery may be computed for rows that nobody asks for.
 *
 * PostgreSQL runs a correlated scalar subquery for those outer rows that reach it.  As groups beside them, it
 * is computed for all keys there are.  Nobody may see that: no error that an expression raises for another
 * row, no call of a user's function.  So what is computed with columns must be of a short list of built-in
 * functions that cannot fail, and a query with a user's function anywhere is left alone: planning it twice
 * may call that, and another order of joins, too.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "plan/inline.h"
#include "plan/unnest.h"

/* ------------------------------------------------------------ what varies */

/*
 * Whether it is computed when rows are, and may fail then.  Times of the transaction do not, nor what is made
 * of them.
 */
static bool
is_computed_late(Oid function, void *unused)
{
	switch (function)
	{
		case F_NOW:
		case F_TRANSACTION_TIMESTAMP:
		case F_STATEMENT_TIMESTAMP:
		case F_TIMESTAMPTZ_DATE:
		case F_DATE_TIMESTAMPTZ:
		case F_TIMESTAMP_TIMESTAMPTZ:
		case F_TIMESTAMPTZ_TIMESTAMP:
		case F_TIMESTAMPTZ_PL_INTERVAL:
		case F_TIMESTAMPTZ_MI_INTERVAL:
			return false;
		default:
			return func_volatile(function) != PROVOLATILE_IMMUTABLE;
	}
}

static bool
find_varying(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var) || IsA(node, Param) || IsA(node, Aggref) || IsA(node, CaseTestExpr) || IsA(node, SubLink) ||
		IsA(node, Query) || check_functions_in_node(node, is_computed_late, unused))
		return true;
	return expression_tree_walker(node, find_varying, unused);
}

/* Whether it is more than constants, of which PostgreSQL computes what there is, and fails, when it plans. */
static bool
varies(const void *node)
{
	return find_varying((Node *) node, NULL);
}

/* ------------------------------------------------------------------ types */

/*
 * Whether values of the type are compared by a built-in function that runs no others: not arrays, rows and
 * ranges.
 */
static bool
is_plain_type(Oid type)
{
	if (!OidIsValid(type))
		return false;
	type = getBaseType(type);
	if (type_is_enum(type))
		return true;
	/* a deep tsquery may lack the stack to be compared */
	return type < FirstUnpinnedObjectId && type != TSQUERYOID && get_typtype(type) == TYPTYPE_BASE &&
		!OidIsValid(get_element_type(type));
}

static bool
are_plain(const List *args)
{
	ListCell   *lc;

	foreach(lc, args)
		if (!is_plain_type(exprType(lfirst(lc))))
			return false;
	return true;
}

/* Whether a collation that the arguments need is missing: it is looked for when the function is run. */
bool
gh_lacks_collation(Oid collation, const List *args)
{
	ListCell   *lc;

	if (OidIsValid(collation))
		return false;
	foreach(lc, args)
		/* that of arguments which are members of an equivalence class was taken off */
		if (type_is_collatable(exprType(lfirst(lc))))
			return true;
	return false;
}

/* -------------------------------------------------------------- functions */

/* LIKE calls itself for each % of a pattern; longer ones might not have the stack for that. */
#define GH_SAFE_PATTERN_MAX 200

/* Of LIKE's arguments: a pattern that does not end within an escape, and a collation that LIKE can use. */
static bool
is_safe_pattern(Oid collation, const List *args)
{
	const Const *pattern = lsecond(args);
	text	   *value;

	if (!IsA(pattern, Const) || !OidIsValid(collation) || !get_collation_isdeterministic(collation))
		return false;
	if (pattern->constisnull)
		return true;
	value = DatumGetTextPP(pattern->constvalue);
	return VARSIZE_ANY_EXHDR(value) == 0 ||
		(VARSIZE_ANY_EXHDR(value) <= GH_SAFE_PATTERN_MAX && VARDATA_ANY(value)[VARSIZE_ANY_EXHDR(value) - 1] != '\\');
}

/* Whether it is LIKE, or NOT LIKE, that cannot fail, whatever the text. */
static bool
is_safe_like(Oid function, Oid collation, const List *args)
{
	switch (function)
	{
		case F_TEXTLIKE:
		case F_TEXTNLIKE:
		case F_BPCHARLIKE:
		case F_BPCHARNLIKE:
			return is_safe_pattern(collation, args);
		default:
			return false;
	}
}

/* Arithmetic that has room for its result, and casts to wider types. */
static bool
is_safe_function(Oid function, Oid collation, const List *args, const GhLevel *level)
{
	switch (function)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
		case F_NUMERIC_UMINUS:
			return gh_unnest_is_bounded(args, level);
		case F_NUMERIC_DIV:
			return gh_unnest_is_safe_divisor(lsecond(args)) && gh_unnest_is_bounded(args, level);
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
		case F_INT4_INT2:
		case F_INT8_INT2:
		case F_INT8_INT4:
		case F_FLOAT8_INT4:
		case F_FLOAT8_INT8:
		case F_TEXT_BPCHAR:
			return true;
		default:
			return is_safe_like(function, collation, args);
	}
}

/* Whether it is LIKE, or a comparison of built-in types, which cannot fail whatever the values. */
bool
gh_operator_is_safe(const OpExpr *op)
{
	return op->opno < FirstUnpinnedObjectId &&
		(is_safe_like(get_opcode(op->opno), op->inputcollid, op->args) ||
		 (gh_is_comparison(op->opno) && are_plain(op->args) && !gh_lacks_collation(op->inputcollid, op->args)));
}

/* Likewise of a value with those of an array. */
bool
gh_array_operator_is_safe(const ScalarArrayOpExpr *op)
{
	return op->opno < FirstUnpinnedObjectId && gh_is_comparison(op->opno) && is_plain_type(exprType(linitial(op->args))) &&
		is_plain_type(get_base_element_type(exprType(lsecond(op->args)))) && !gh_lacks_collation(op->inputcollid, op->args);
}

/* The same, and the functions above. */
static bool
is_safe_operator(const OpExpr *op, const GhLevel *level)
{
	return gh_operator_is_safe(op) ||
		(op->opno < FirstUnpinnedObjectId && is_safe_function(get_opcode(op->opno), op->inputcollid, op->args, level));
}

/* ------------------------------------------------------------- aggregates */

/* What is NULL, or of count 0, without rows. */
bool
gh_unnest_is_count(const Aggref *aggref)
{
	return aggref->aggfnoid == F_COUNT_ || aggref->aggfnoid == F_COUNT_ANY;
}

/* Sums of floats overflow; those of integers are wider than these. */
static bool
is_safe_aggregate(const Aggref *aggref, const GhLevel *level)
{
	char	   *name;
	Oid			type;
	Node	   *arg;

	if (aggref->aggfnoid >= FirstUnpinnedObjectId || aggref->aggorder != NIL || aggref->aggdirectargs != NIL ||
		aggref->agglevelsup != 0)
		return false;
	if (aggref->aggfnoid == F_COUNT_)
		return true;
	if (list_length(aggref->args) != 1)
		return false;
	arg = (Node *) linitial_node(TargetEntry, aggref->args)->expr;
	type = exprType(arg);
	if (aggref->aggdistinct != NIL && !is_plain_type(type))
		return false;
	if (gh_unnest_is_count(aggref))
		return true;
	name = get_func_name(aggref->aggfnoid);
	if (strcmp(name, "bool_and") == 0 || strcmp(name, "bool_or") == 0 || strcmp(name, "every") == 0)
		return true;
	if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
		return is_plain_type(type) && (OidIsValid(aggref->inputcollid) || !OidIsValid(exprCollation(arg)));
	if (strcmp(name, "sum") != 0 && strcmp(name, "avg") != 0)
		return false;
	return type == INT2OID || type == INT4OID || type == INT8OID || (type == NUMERICOID && gh_unnest_is_bounded(list_make1(arg), level));
}

/* ---------------------------------------------------------------- queries */

/* Whether what is read from the table is stored here, as it is read. */
static bool
is_stored(const RangeTblEntry *table)
{
	Relation	relation;
	bool		result;

	if (table->rtekind != RTE_RELATION)
		return true;
	if (table->relkind == RELKIND_FOREIGN_TABLE)
		return false;
	relation = table_open(table->relid, NoLock);
	result = !gh_has_virtual_columns(RelationGetDescr(relation));
	table_close(relation, NoLock);
	return result;
}

/*
 * Whether no table of the query is a foreign one, or one with columns that are computed when they are read.
 */
bool
gh_unnest_tables_are_stored(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
		if (!is_stored(lfirst_node(RangeTblEntry, lc)))
			return false;
	return true;
}

static bool
is_safe_query(const Query *query)
{
	return query->commandType == CMD_SELECT && query->rowMarks == NIL && !query->hasModifyingCTE &&
		query->limitCount == NULL && query->limitOffset == NULL && gh_unnest_tables_are_stored(query);
}

/* Whether the subquery cannot fail for its number of rows. */
static bool
is_safe_link(const SubLink *link)
{
	const Query *query = (const Query *) link->subselect;

	if (link->subLinkType == EXPR_SUBLINK)
		return query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL && !query->hasTargetSRFs;
	return link->subLinkType == EXISTS_SUBLINK || link->subLinkType == ANY_SUBLINK || link->subLinkType == ALL_SUBLINK;
}

static bool is_unsafe(Node *node, const GhLevel *level);

/*
 * Whether rows of UNION ALL are those of its queries: where types differ, they are cast when the query is
 * planned.
 */
static bool
has_casts(const Query *query, const Node *set)
{
	const SetOperationStmt *both = (const SetOperationStmt *) set;

	if (IsA(set, SetOperationStmt))
		return has_casts(query, both->larg) || has_casts(query, both->rarg);
	return !tlist_same_datatypes(rt_fetch(((const RangeTblRef *) set)->rtindex, query->rtable)->subquery->targetList,
								 ((const SetOperationStmt *) query->setOperations)->colTypes, true);
}

/* Whether a table stands for a query in WITH that PostgreSQL puts in its place, and which is not safe. */
static bool
reads_unsafe_with(const RangeTblEntry *table, const GhLevel *level)
{
	const GhLevel *home;
	const CommonTableExpr *with;

	if (table->rtekind != RTE_CTE || table->self_reference)
		return false;
	with = gh_inline_with_of(table, level, &home);
	if (with == NULL)
		return true;
	return !gh_inline_is_apart(with) && is_unsafe(with->ctequery, home);
}

static bool
has_unsafe_tables(const Query *query, const GhLevel *level)
{
	ListCell   *lc;

	if (query->setOperations != NULL && has_casts(query, query->setOperations))
		return true;
	foreach(lc, query->rtable)
		if (reads_unsafe_with(lfirst_node(RangeTblEntry, lc), level))
			return true;
	return false;
}

/* Whether computing the node for more rows, or earlier, may show; level: the query that it is in. */
static bool
is_unsafe(Node *node, const GhLevel *level)
{
	const GhLevel inner = {(Query *) node, level};
	bool		safe = true;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_RangeTblRef:
		case T_SortGroupClause:
		case T_CaseTestExpr:
		case T_SQLValueFunction:
		case T_GroupingFunc:
			return false;
		case T_Query:
			return !is_safe_query((Query *) node) || has_unsafe_tables((Query *) node, &inner) ||
				query_tree_walker((Query *) node, is_unsafe, (void *) &inner, 0);
		case T_Aggref:
			safe = is_safe_aggregate((Aggref *) node, level);
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			safe = !varies(node) || is_safe_operator((OpExpr *) node, level);
			break;
		case T_ScalarArrayOpExpr:
			safe = !varies(node) || gh_array_operator_is_safe((ScalarArrayOpExpr *) node);
			break;
		case T_FuncExpr:
			safe = !varies(node) || is_safe_function(((FuncExpr *) node)->funcid, ((FuncExpr *) node)->inputcollid,
													 ((FuncExpr *) node)->args, level);
			break;
		case T_SubLink:
			safe = is_safe_link((SubLink *) node);
			break;
		case T_SetOperationStmt:
			safe = ((SetOperationStmt *) node)->op == SETOP_UNION && ((SetOperationStmt *) node)->all;
			break;
		case T_ArrayExpr:
			safe = !((ArrayExpr *) node)->multidims;
			break;
		case T_List:
		case T_TargetEntry:
		case T_FromExpr:
		case T_JoinExpr:
		case T_Param:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
			break;
		default:
			return true;
	}
	return !safe || expression_tree_walker(node, is_unsafe, (void *) level);
}

/* An expression, or a query with all that is in it; level: the query that it is in. */
bool
gh_unnest_is_safe(Node *node, const GhLevel *level)
{
	return !is_unsafe(node, level) && !contain_volatile_functions(node);
}

static bool
is_users_function(Oid function, void *unused)
{
	return function >= FirstUnpinnedObjectId;
}

static bool
find_users_function(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_users_function, unused))
		return true;
	if (IsA(node, SortGroupClause))
		return ((SortGroupClause *) node)->eqop >= FirstUnpinnedObjectId ||
			((SortGroupClause *) node)->sortop >= FirstUnpinnedObjectId;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_users_function, unused, QTW_EXAMINE_SORTGROUP);
	return expression_tree_walker(node, find_users_function, unused);
}

/* Whether a user may see how often, and when, parts of a query, or an expression, are planned or run. */
bool
gh_has_users_functions(Node *node)
{
	return find_users_function(node, NULL);
}
