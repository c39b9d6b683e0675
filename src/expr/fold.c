/*
 * fold.c
 *		What has no columns in an expression, made constants for one execution.
 *
 * A node does so before its rows are read, and so before PostgreSQL would evaluate anything: parameters and
 * expressions of them are made constants that raise no error and run nothing of a user's (unfailing.c). They
 * are evaluated here, not by the executor, because each function's arguments are looked at before it is
 * called.  Where another part is left as it is, there is no program, and PostgreSQL's expressions do the
 * rows.  A parameter that stands for a subquery not run yet is left, for the node to ask again when it was.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "expr/fold.h"
#include "expr/translate.h"

/* Of the functions that can be evaluated ahead. */
#define GH_ARGUMENTS_MAX 3

/* Bytes of an array's elements: no array is refused for its size by far. */
#define GH_ARRAY_BYTES_MAX (1024 * 1024)

typedef struct Folding
{
	PlanState  *ps;
	ParamExecData *awaited;		/* the result of a subquery that was not run yet; or NULL */
} Folding;

static bool evaluate(Folding *folding, Expr *expr, NullableDatum *result);

/*
 * A parameter of the statement.  A function's variable is asked for in the way in which that raises no error.
 */
static bool
extern_param(Folding *folding, const Param *param, NullableDatum *result)
{
	ParamListInfo params = folding->ps->ps_ExprContext->ecxt_param_list_info;
	ParamExternData workspace;
	ParamExternData *data;

	if (params == NULL || param->paramid < 1 || param->paramid > params->numParams)
		return false;
	data = params->paramFetch == NULL ? &params->params[param->paramid - 1] :
		params->paramFetch(params, param->paramid, true, &workspace);
	if (data->ptype != param->paramtype)
		return false;
	result->value = data->value;
	result->isnull = data->isnull;
	return true;
}

/* A value of the execution: an outer row's, or a subquery's result. */
static bool
exec_param(Folding *folding, const Param *param, NullableDatum *result)
{
	ParamExecData *data = &folding->ps->ps_ExprContext->ecxt_param_exec_vals[param->paramid];

	if (data->execPlan != NULL)
	{
		folding->awaited = data;
		return false;
	}
	result->value = data->value;
	result->isnull = data->isnull;
	return true;
}

/* The transaction's time: dates and times only, which raise nothing. */
static bool
sql_value(const SQLValueFunction *expr, NullableDatum *result)
{
	result->isnull = false;
	switch (expr->op)
	{
		case SVFOP_CURRENT_DATE:
			result->value = DateADTGetDatum(GetSQLCurrentDate());
			return true;
		case SVFOP_CURRENT_TIME:
		case SVFOP_CURRENT_TIME_N:
			result->value = TimeTzADTPGetDatum(GetSQLCurrentTime(expr->typmod));
			return true;
		case SVFOP_CURRENT_TIMESTAMP:
		case SVFOP_CURRENT_TIMESTAMP_N:
			result->value = TimestampTzGetDatum(GetSQLCurrentTimestamp(expr->typmod));
			return true;
		case SVFOP_LOCALTIME:
		case SVFOP_LOCALTIME_N:
			result->value = TimeADTGetDatum(GetSQLLocalTime(expr->typmod));
			return true;
		case SVFOP_LOCALTIMESTAMP:
		case SVFOP_LOCALTIMESTAMP_N:
			result->value = TimestampGetDatum(GetSQLLocalTimestamp(expr->typmod));
			return true;
		default:
			return false;
	}
}

/* A strict function of the list, if it raises no error for its arguments. */
static bool
call(Folding *folding, Oid function, Oid collation, List *exprs, NullableDatum *result)
{
	LOCAL_FCINFO(fcinfo, GH_ARGUMENTS_MAX);
	FmgrInfo	flinfo;
	int			nargs = 0;
	ListCell   *lc;

	if (list_length(exprs) > GH_ARGUMENTS_MAX)
		return false;
	result->value = (Datum) 0;
	result->isnull = false;
	foreach(lc, exprs)
	{
		if (!evaluate(folding, lfirst(lc), &fcinfo->args[nargs]))
			return false;
		result->isnull = result->isnull || fcinfo->args[nargs].isnull;
		nargs++;
	}
	if (result->isnull)
		return true;
	if (!gh_unfailing_allows(function, fcinfo->args))
		return false;
	fmgr_info(function, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, nargs, collation, NULL, NULL);
	result->value = FunctionCallInvoke(fcinfo);
	result->isnull = fcinfo->isnull;
	return true;
}

/* ARRAY[...] of one dimension. */
static bool
array(Folding *folding, const ArrayExpr *expr, NullableDatum *result)
{
	int			nelements = list_length(expr->elements);
	Datum	   *values = palloc(sizeof(Datum) * Max(nelements, 1));
	bool	   *nulls = palloc(sizeof(bool) * Max(nelements, 1));
	int			lower = 1;
	Size		bytes = 0;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	get_typlenbyvalalign(expr->element_typeid, &typlen, &typbyval, &typalign);
	for (int i = 0; i < nelements; i++)
	{
		NullableDatum element;

		if (!evaluate(folding, list_nth(expr->elements, i), &element))
			return false;
		values[i] = element.value;
		nulls[i] = element.isnull;
		bytes += element.isnull ? 0 : typlen == -1 ? toast_raw_datum_size(element.value) : Max(typlen, 0);
		if (bytes > GH_ARRAY_BYTES_MAX)
			return false;
	}
	result->isnull = false;
	result->value = PointerGetDatum(nelements == 0 ? construct_empty_array(expr->element_typeid) :
									construct_md_array(values, nulls, 1, &nelements, &lower,
													   expr->element_typeid, typlen, typbyval, typalign));
	return true;
}

/* The same elements under another name of their type. */
static bool
relabelled_array(Folding *folding, const ArrayCoerceExpr *expr, NullableDatum *result)
{
	ArrayType  *copy;

	if (!evaluate(folding, expr->arg, result))
		return false;
	if (result->isnull)
		return true;
	copy = DatumGetArrayTypePCopy(result->value);
	ARR_ELEMTYPE(copy) = get_element_type(expr->resulttype);
	result->value = PointerGetDatum(copy);
	return true;
}

/* The value of an expression that gh_is_unfailing() accepts; false: it has none yet, or is out of bounds. */
static bool
evaluate(Folding *folding, Expr *expr, NullableDatum *result)
{
	const Const *constant = (Const *) expr;
	const Param *param = (Param *) expr;
	const FuncExpr *function = (FuncExpr *) expr;
	const OpExpr *op = (OpExpr *) expr;

	check_stack_depth();
	switch (nodeTag(expr))
	{
		case T_Const:
			result->value = constant->constvalue;
			result->isnull = constant->constisnull;
			return true;
		case T_Param:
			return param->paramkind == PARAM_EXTERN ? extern_param(folding, param, result) :
				exec_param(folding, param, result);
		case T_SQLValueFunction:
			return sql_value((SQLValueFunction *) expr, result);
		case T_RelabelType:
			return evaluate(folding, ((RelabelType *) expr)->arg, result);
		case T_FuncExpr:
			return call(folding, function->funcid, function->inputcollid, function->args, result);
		case T_OpExpr:
			return call(folding, op->opfuncid, op->inputcollid, op->args, result);
		case T_ArrayExpr:
			return array(folding, (ArrayExpr *) expr, result);
		case T_ArrayCoerceExpr:
			return relabelled_array(folding, (ArrayCoerceExpr *) expr, result);
		default:
			return false;
	}
}

/* A GhMakeConstant: the expression's value; NULL: there is none ahead of time. */
static Const *
evaluated(Expr *expr, void *arg)
{
	Oid			type = exprType((Node *) expr);
	NullableDatum result;
	int16		typlen;
	bool		typbyval;
	Const	   *constant;

	if (!evaluate(arg, expr, &result))
		return NULL;
	get_typlenbyval(type, &typlen, &typbyval);
	constant = makeConst(type, exprTypmod((Node *) expr), exprCollation((Node *) expr), typlen,
						 result.isnull ? (Datum) 0 : datumCopy(result.value, typbyval, typlen),
						 result.isnull, typbyval);
	constant->location = GH_FOLDED_LOCATION;
	return constant;
}

/*
 * A copy of the expression with constants, as they are in this execution of the node, for what has no
 * columns and can be evaluated ahead.  *awaited is set where the result of a subquery would be one.
 */
Node *
gh_fold_constants(PlanState *ps, Node *expr, ParamExecData **awaited)
{
	Folding		folding = {.ps = ps};
	Node	   *result = gh_make_constants(expr, evaluated, &folding);

	if (folding.awaited != NULL)
		*awaited = folding.awaited;
	return result;
}

/*
 * Translates conditions of a node, as they are in this execution.  False: one of them has no program, and
 * *failed, where it is asked for, is its number.  *awaited: as above.
 */
bool
gh_translate_conditions(PlanState *ps, GhTranslation *translation, const List *conditions, int *failed,
						ParamExecData **awaited)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		if (gh_translate_filter(translation, (Expr *) gh_fold_constants(ps, lfirst(lc), awaited)))
			continue;
		if (failed != NULL)
			*failed = foreach_current_index(lc);
		return false;
	}
	return true;
}
