/*
 * constants.c
 *		The parts of an expression that have no columns, and so one value for all rows.
 *
 * A planner puts some constant of the type in their place, to see whether the rest has a
 * program; an executor, what they are in this execution.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "scan/translate.h"

typedef struct ConstantsContext
{
	GhMakeConstant make;
	void	   *arg;
} ConstantsContext;

/*
 * Whether a function may do more than to give a value or raise an error, after which all is as
 * before.  A user's may do anything; of the built-in ones, those that run queries are marked as
 * no work for parallel workers.
 */
static bool
is_not_harmless(Oid function, void *context)
{
	return function >= FirstNormalObjectId || func_parallel(function) != PROPARALLEL_SAFE;
}

/*
 * Whether the value depends on a row, on what stands around the expression, or on when it is asked
 * for, or whether there are several.
 */
static bool
depends_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_PlaceHolderVar:
		case T_CaseTestExpr:
		case T_CoerceToDomainValue:
		case T_Aggref:
		case T_GroupingFunc:
		case T_WindowFunc:
		case T_SubPlan:
		case T_AlternativeSubPlan:
			return true;
		case T_FuncExpr:
			if (((FuncExpr *) node)->funcretset)
				return true;
			break;
		case T_OpExpr:
			if (((OpExpr *) node)->opretset)
				return true;
			break;
		case T_CoerceToDomain:
			/* its constraints may be a user's functions */
			return true;
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN &&
				((Param *) node)->paramkind != PARAM_EXEC;
		default:
			break;
	}
	/* it is evaluated where PostgreSQL may not do so at all, and its error is forgotten */
	return check_functions_in_node(node, is_not_harmless, NULL) ||
		expression_tree_walker(node, depends_walker, context);
}

/*
 * Whether the expression is one that becomes a constant as a whole.  Of others that have one
 * value, an AND for instance, the parts do.
 */
static bool
is_constant(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Param:
		case T_FuncExpr:
		case T_OpExpr:
		case T_SQLValueFunction:
		case T_CoerceViaIO:
		case T_ArrayExpr:
		case T_ArrayCoerceExpr:
		case T_RelabelType:
			return !depends_walker(node, NULL) && !contain_volatile_functions(node);
		default:
			return false;
	}
}

static Node *
make_constants_mutator(Node *node, ConstantsContext *context)
{
	Const	   *constant;

	if (node == NULL)
		return NULL;
	/* its parameters have values only while it is evaluated itself */
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return node;
	if (is_constant(node))
	{
		constant = context->make((Expr *) node, context->arg);
		if (constant != NULL)
			return (Node *) constant;
	}
	return expression_tree_mutator(node, make_constants_mutator, (void *) context);
}

/*
 * A copy of the expression in which the largest parts with neither columns nor volatile
 * functions are the constants that `make` gives; where it gives NULL, their parts are tried.
 */
Node *
gh_make_constants(Node *node, GhMakeConstant make, void *arg)
{
	ConstantsContext context = {.make = make, .arg = arg};

	return make_constants_mutator(node, &context);
}

/*
 * A GhMakeConstant for a translation that is just to tell whether there is a program: some value
 * of the expression's type, a numeric of scale 0.  NULL where no program has the type.
 */
Const *
gh_some_constant(Expr *expr, void *translation)
{
	GhTranslation *for_planning = translation;
	Const	   *constant;
	Oid			type = exprType((Node *) expr);
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);
	Datum		value = (Datum) 0;
	bool		null = false;
	int16		typlen;
	bool		typbyval;

	get_typlenbyval(type, &typlen, &typbyval);
	if (OidIsValid(element))
		value = PointerGetDatum(construct_empty_array(element));
	else if (base == NUMERICOID)
		value = DirectFunctionCall1(int4_numeric, Int32GetDatum(0));
	else if (base == TEXTOID || base == VARCHAROID || base == BPCHAROID)
		value = CStringGetTextDatum("");
	else
		null = !typbyval;
	constant = makeConst(type, exprTypmod((Node *) expr), exprCollation((Node *) expr), typlen, value,
						 null, typbyval);
	for_planning->stand_ins = lappend(for_planning->stand_ins, constant);
	return constant;
}
