/*
 * unnest_digits.c
 *		How many digits before the point a numeric has at most: whether arithmetic with it may overflow.
 *
 * A numeric of a declared precision has a thousand digits, and one that was computed from such has little
 * more; 131,072 are too many.  What a column of a subquery or of a query in WITH is computed by is looked up
 * there.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/inline.h"
#include "plan/unnest.h"

/* Of a declared precision; 15 and later have negative scales, down to -1000. */
#define GH_DECLARED 2000
/* More than of an integer, and what a sum of so many rows as there can be has more than each of them. */
#define GH_INTEGER 20
/* Of a double. */
#define GH_FLOAT 310
/* Nothing is computed with more of them. */
#define GH_MOST_DIGITS 50000
#define GH_UNKNOWN (2 * GH_MOST_DIGITS)
/* More columns of columns are not followed: each WITH may double them. */
#define GH_MOST_COLUMNS 1000

static int	digits_of(const Node *expr, const GhLevel *level, int *columns);

static int
sum_of(int left, int right)
{
	return left < GH_UNKNOWN - right ? left + right : GH_UNKNOWN;
}

/* A function, as a macro would look twice. */
static inline int
larger_of(int left, int right)
{
	return left > right ? left : right;
}

static int
most_digits(const List *exprs, const GhLevel *level, int *columns)
{
	int			most = 0;
	ListCell   *lc;

	foreach(lc, exprs)
		most = larger_of(most, digits_of(lfirst(lc), level, columns));
	return most;
}

/* Of a column's sources, the most; columns: looked at so far. */
typedef struct Most
{
	int			digits;
	int		   *columns;
} Most;

/* GhSource */
static bool
add_source(const Node *expr, const GhLevel *level, void *arg)
{
	Most	   *most = arg;

	most->digits = larger_of(most->digits, digits_of(expr, level, most->columns));
	return true;
}

static int
digits_of_var(const Var *var, const GhLevel *level, int *columns)
{
	Most		most = {.columns = columns};
	const RangeTblEntry *table;

	level = gh_inline_level(level, var->varlevelsup);
	if (level == NULL || var->varattno <= 0 || ++*columns > GH_MOST_COLUMNS)
		return GH_UNKNOWN;
	table = rt_fetch(var->varno, level->query->rtable);
	return table->rtekind != RTE_RELATION && gh_inline_sources(table, var->varattno, level, add_source, &most) ?
		most.digits : GH_UNKNOWN;
}

/* Of a scalar subquery. */
static int
digits_of_link(const SubLink *link, const GhLevel *level, int *columns)
{
	Most		most = {.columns = columns};

	return link->subLinkType == EXPR_SUBLINK &&
		gh_inline_column_sources((Query *) link->subselect, 1, level, add_source, &most) ? most.digits : GH_UNKNOWN;
}

/*
 * Whether a division by it neither fails nor gives more digits before the point: by a whole number other than
 * 0.
 */
bool
gh_unnest_is_safe_divisor(const Node *divisor)
{
	const FuncExpr *cast = (const FuncExpr *) divisor;
	const Const *number;

	if (!IsA(divisor, FuncExpr) || (cast->funcid != F_NUMERIC_INT4 && cast->funcid != F_NUMERIC_INT8))
		return false;
	number = linitial(cast->args);
	if (!IsA(number, Const) || number->constisnull)
		return false;
	return cast->funcid == F_NUMERIC_INT4 ? DatumGetInt32(number->constvalue) != 0 : DatumGetInt64(number->constvalue) != 0;
}

static int
digits_of_call(Oid function, const List *args, const GhLevel *level, int *columns)
{
	switch (function)
	{
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
			return sum_of(most_digits(args, level, columns), 1);
		case F_NUMERIC_MUL:
			return sum_of(digits_of(linitial(args), level, columns), digits_of(lsecond(args), level, columns));
		case F_NUMERIC_DIV:
			return gh_unnest_is_safe_divisor(lsecond(args)) ? digits_of(linitial(args), level, columns) : GH_UNKNOWN;
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_ABS:
			return digits_of(linitial(args), level, columns);
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
			return GH_INTEGER;
		case F_NUMERIC_FLOAT4:
		case F_NUMERIC_FLOAT8:
			return GH_FLOAT;
		default:
			return GH_UNKNOWN;
	}
}

static int
digits_of_aggregate(Oid function, const List *args, const GhLevel *level, int *columns)
{
	switch (function)
	{
		case F_SUM_INT8:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
			return 2 * GH_INTEGER;
		case F_SUM_NUMERIC:
		case F_AVG_NUMERIC:
			return sum_of(most_digits(args, level, columns), GH_INTEGER);
		case F_MIN_NUMERIC:
		case F_MAX_NUMERIC:
			return most_digits(args, level, columns);
		default:
			return GH_UNKNOWN;
	}
}

static int
digits_of_const(const Const *value)
{
	return value->constisnull ? 0 :
		(int) Min(strlen(DatumGetCString(DirectFunctionCall1(numeric_out, value->constvalue))), GH_UNKNOWN);
}

static int
digits_of_case(const CaseExpr *expr, const GhLevel *level, int *columns)
{
	int			most = expr->defresult == NULL ? 0 : digits_of((Node *) expr->defresult, level, columns);
	ListCell   *lc;

	foreach(lc, expr->args)
		most = larger_of(most, digits_of((Node *) lfirst_node(CaseWhen, lc)->result, level, columns));
	return most;
}

/* At most so many; level: the query whose columns it has; columns: looked at so far. */
static int
digits_of(const Node *expr, const GhLevel *level, int *columns)
{
	int32		typmod;

	check_stack_depth();
	if (IsA(expr, TargetEntry))
		return digits_of((Node *) ((const TargetEntry *) expr)->expr, level, columns);
	typmod = exprTypmod(expr);
	if (getBaseTypeAndTypmod(exprType(expr), &typmod) != NUMERICOID)
		return GH_INTEGER;
	if (typmod >= 0)
		return GH_DECLARED;
	switch (nodeTag(expr))
	{
		case T_Var:
			return digits_of_var((const Var *) expr, level, columns);
		case T_Const:
			return digits_of_const((const Const *) expr);
		case T_RelabelType:
			return digits_of((Node *) ((const RelabelType *) expr)->arg, level, columns);
		case T_OpExpr:
			return digits_of_call(get_opcode(((const OpExpr *) expr)->opno), ((const OpExpr *) expr)->args, level, columns);
		case T_NullIfExpr:
			return digits_of(linitial(((const NullIfExpr *) expr)->args), level, columns);
		case T_FuncExpr:
			return digits_of_call(((const FuncExpr *) expr)->funcid, ((const FuncExpr *) expr)->args, level, columns);
		case T_Aggref:
			return digits_of_aggregate(((const Aggref *) expr)->aggfnoid, ((const Aggref *) expr)->args, level, columns);
		case T_WindowFunc:
			return digits_of_aggregate(((const WindowFunc *) expr)->winfnoid, ((const WindowFunc *) expr)->args, level,
									   columns);
		case T_CaseExpr:
			return digits_of_case((const CaseExpr *) expr, level, columns);
		case T_CoalesceExpr:
			return most_digits(((const CoalesceExpr *) expr)->args, level, columns);
		case T_SubLink:
			return digits_of_link((const SubLink *) expr, level, columns);
		default:
			return GH_UNKNOWN;
	}
}

/* Whether sums and products of numerics among the arguments have room for all of their digits. */
bool
gh_unnest_is_bounded(const List *args, const GhLevel *level)
{
	int			columns = 0;

	return most_digits(args, level, &columns) <= GH_MOST_DIGITS;
}
