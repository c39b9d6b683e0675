/*
 * unfailing.c
 *		Which expressions can be evaluated before PostgreSQL would do it.
 *
 * PostgreSQL evaluates an expression when a row needs it, and may never come to it.  Nobody may notice that
 * it was evaluated sooner: it may raise no error, and run nothing of a user's (functions, checks of domains,
 * input functions, which run these).  This is a white list.  Of functions it has built-in ones that depend on
 * nothing but their arguments, the transaction's time and the time zone, each with bounds for its arguments
 * within which it raises nothing: values that occur in practice lie far inside of them. What is not on the
 * list, or is out of bounds, is left to PostgreSQL's expressions.
 *
 * Comparisons, and arithmetic that programs have (functions.c), need not be here: a program hands a row back
 * where they fail.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "expr/translate.h"
#include "heap/layout.h"

/* ------------------------------------------------------ bounds of arguments */

/*
 * Times within the years 1000 to 9999: with intervals of up to a thousand years, PostgreSQL's hold ten times
 * that.
 */
#define GH_DAY_MIN (-365242)
#define GH_DAY_MAX 2921939
#define GH_SAFE_MONTHS (12 * 1000)
#define GH_SAFE_DAYS (366 * 1000)
#define GH_INTERVAL_FACTOR_MAX 1000.0

/* Numerics up to this are far from their largest one, in sums, products and quotients. */
#define GH_NUMERIC_MAX INT64CONST(1000000000000000000)
#define GH_NUMERIC_DIGITS 18

static bool
day_is_common(DateADT day)
{
	return day >= GH_DAY_MIN && day <= GH_DAY_MAX;
}

static bool
timestamp_is_common(Timestamp timestamp)
{
	return timestamp >= GH_DAY_MIN * USECS_PER_DAY && timestamp <= GH_DAY_MAX * USECS_PER_DAY;
}

/* An interval of at most a thousand years, by the given part. */
static bool
interval_is_common(const Interval *interval, int part)
{
	int			months = GH_SAFE_MONTHS / part;
	int			days = GH_SAFE_DAYS / part;
	int64		time = GH_SAFE_DAYS / part * USECS_PER_DAY;

	return interval->month >= -months && interval->month <= months &&
		interval->day >= -days && interval->day <= days &&
		interval->time >= -time && interval->time <= time;
}

static bool
integer_is_days(int32 days)
{
	return days >= -GH_SAFE_DAYS && days <= GH_SAFE_DAYS;
}

/* Whether -limit <= value <= limit; NaN is larger than any number. */
static bool
numeric_is_within(Datum value, int64 limit)
{
	Datum		high = NumericGetDatum(int64_to_numeric(limit));
	Datum		low = NumericGetDatum(int64_to_numeric(-limit));

	return DatumGetBool(DirectFunctionCall2(numeric_ge, value, low)) &&
		DatumGetBool(DirectFunctionCall2(numeric_le, value, high));
}

/* Whether the text is one of these words, in lower or upper case. */
static bool
text_is_in(Datum value, const char *const *words, int nwords)
{
	char	   *word = TextDatumGetCString(value);

	for (int i = 0; i < nwords; i++)
		if (pg_strcasecmp(word, words[i]) == 0)
			return true;
	return false;
}

/* -------------------------------------------- checks of not-NULL arguments */

static bool
any_arguments(const NullableDatum *args)
{
	(void) args;
	return true;
}

static bool
one_day(const NullableDatum *args)
{
	return day_is_common(DatumGetDateADT(args[0].value));
}

static bool
day_and_integer(const NullableDatum *args)
{
	return one_day(args) && integer_is_days(DatumGetInt32(args[1].value));
}

static bool
day_and_interval(const NullableDatum *args)
{
	return one_day(args) && interval_is_common(DatumGetIntervalP(args[1].value), 1);
}

static bool
one_timestamp(const NullableDatum *args)
{
	return timestamp_is_common(DatumGetTimestamp(args[0].value));
}

static bool
timestamp_and_interval(const NullableDatum *args)
{
	return one_timestamp(args) && interval_is_common(DatumGetIntervalP(args[1].value), 1);
}

static bool
one_interval(const NullableDatum *args)
{
	return interval_is_common(DatumGetIntervalP(args[0].value), 1);
}

static bool
two_intervals(const NullableDatum *args)
{
	return one_interval(args) && interval_is_common(DatumGetIntervalP(args[1].value), 1);
}

static bool
factor_of_interval(const Interval *interval, float8 factor)
{
	return interval_is_common(interval, 1000) && factor >= -GH_INTERVAL_FACTOR_MAX &&
		factor <= GH_INTERVAL_FACTOR_MAX;
}

static bool
interval_and_factor(const NullableDatum *args)
{
	return factor_of_interval(DatumGetIntervalP(args[0].value), DatumGetFloat8(args[1].value));
}

static bool
factor_and_interval(const NullableDatum *args)
{
	return factor_of_interval(DatumGetIntervalP(args[1].value), DatumGetFloat8(args[0].value));
}

static bool
unit_and_timestamp(const NullableDatum *args)
{
	static const char *const units[] = {"second", "minute", "hour", "day", "week", "month", "quarter", "year"};

	return timestamp_is_common(DatumGetTimestamp(args[1].value)) &&
		text_is_in(args[0].value, units, lengthof(units));
}

static bool
zone_and_timestamp(const NullableDatum *args)
{
	static const char *const zones[] = {"UTC", "GMT"};

	return timestamp_is_common(DatumGetTimestamp(args[1].value)) &&
		text_is_in(args[0].value, zones, lengthof(zones)) && pg_tzset(zones[0]) != NULL;
}

static bool
two_numerics(const NullableDatum *args)
{
	return numeric_is_within(args[0].value, GH_NUMERIC_MAX) && numeric_is_within(args[1].value, GH_NUMERIC_MAX);
}

static bool
dividend_and_divisor(const NullableDatum *args)
{
	return two_numerics(args) &&
		DatumGetBool(DirectFunctionCall2(numeric_ne, args[1].value, NumericGetDatum(int64_to_numeric(0))));
}

/* numeric(precision, scale): rounded, it must have at most precision - scale digits before the point. */
static bool
numeric_and_typmod(const NullableDatum *args)
{
	int32		typmod = DatumGetInt32(args[1].value);
	int			digits;
	int64		limit = 1;

	if (typmod < (int32) VARHDRSZ)
		return numeric_is_within(args[0].value, GH_NUMERIC_MAX);
	/* rounded before the point, a number may have one more digit */
	if (gh_typmod_scale(typmod) < 0)
		return false;
	digits = (((typmod - VARHDRSZ) >> 16) & 0xffff) - gh_typmod_scale(typmod);
	for (int i = 0; i < digits && i < GH_NUMERIC_DIGITS; i++)
		limit *= 10;
	return digits > 0 && numeric_is_within(args[0].value, limit - 1);
}

/* --------------------------------------------------------------- functions */

typedef struct Unfailing
{
	Oid			function;		/* strict */
	bool		(*check) (const NullableDatum *args);
} Unfailing;

static const Unfailing functions[] = {
	{F_NOW, any_arguments},
	{F_TRANSACTION_TIMESTAMP, any_arguments},
	{F_STATEMENT_TIMESTAMP, any_arguments},

	{F_DATE_PLI, day_and_integer},
	{F_DATE_MII, day_and_integer},
	{F_DATE_PL_INTERVAL, day_and_interval},
	{F_DATE_MI_INTERVAL, day_and_interval},
	{F_TIMESTAMP_PL_INTERVAL, timestamp_and_interval},
	{F_TIMESTAMP_MI_INTERVAL, timestamp_and_interval},
	{F_TIMESTAMPTZ_PL_INTERVAL, timestamp_and_interval},
	{F_TIMESTAMPTZ_MI_INTERVAL, timestamp_and_interval},
	{F_DATE_TRUNC_TEXT_TIMESTAMP, unit_and_timestamp},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ, unit_and_timestamp},
	{F_TIMEZONE_TEXT_TIMESTAMPTZ, zone_and_timestamp},

	{F_INTERVAL_UM, one_interval},
	{F_INTERVAL_PL, two_intervals},
	{F_INTERVAL_MI, two_intervals},
	{F_INTERVAL_MUL, interval_and_factor},
	{F_MUL_D_INTERVAL, factor_and_interval},

	{F_TIMESTAMP_DATE, one_day},
	{F_TIMESTAMPTZ_DATE, one_day},
	{F_DATE_TIMESTAMP, one_timestamp},
	{F_DATE_TIMESTAMPTZ, one_timestamp},
	{F_TIMESTAMP_TIMESTAMPTZ, one_timestamp},
	{F_TIMESTAMPTZ_TIMESTAMP, one_timestamp},

	{F_NUMERIC_ADD, two_numerics},
	{F_NUMERIC_SUB, two_numerics},
	{F_NUMERIC_MUL, two_numerics},
	{F_NUMERIC_DIV, dividend_and_divisor},
	{F_NUMERIC_NUMERIC_INT4, numeric_and_typmod},

	{F_INT4_INT2, any_arguments},
	{F_INT8_INT2, any_arguments},
	{F_INT8_INT4, any_arguments},
	{F_NUMERIC_INT2, any_arguments},
	{F_NUMERIC_INT4, any_arguments},
	{F_NUMERIC_INT8, any_arguments},
	{F_FLOAT8_INT2, any_arguments},
	{F_FLOAT8_INT4, any_arguments},
	{F_FLOAT8_INT8, any_arguments},
	{F_TEXT_BPCHAR, any_arguments},
};

static const Unfailing *
find_function(Oid function)
{
	for (Size i = 0; i < lengthof(functions); i++)
		if (functions[i].function == function)
			return &functions[i];
	return NULL;
}

/* Whether the function raises no error, whatever its arguments are. */
bool
gh_never_fails(Oid function)
{
	const Unfailing *found = find_function(function);

	return found != NULL && found->check == any_arguments;
}

/* Whether the function, which is on the list, raises no error for these arguments, none of them NULL. */
bool
gh_unfailing_allows(Oid function, const NullableDatum *args)
{
	const Unfailing *found = find_function(function);

	return found != NULL && found->check(args);
}

/* ------------------------------------------------------------- expressions */

/* Of an array its elements' type alone changes, to one of the same bytes. */
static bool
relabels_elements(const ArrayCoerceExpr *expr)
{
	const RelabelType *relabel = (const RelabelType *) expr->elemexpr;

	return relabel != NULL && IsA(relabel, RelabelType) && IsA(relabel->arg, CaseTestExpr);
}

static bool
are_unfailing(List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (!gh_is_unfailing(lfirst(lc)))
			return false;
	}
	return true;
}

/*
 * Whether the expression has no columns and is of the kinds that fold.c evaluates, so that it has a
 * value before a row needs it, unless arguments are out of bounds.
 */
bool
gh_is_unfailing(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Const:
			return true;
		case T_Param:
			return ((Param *) node)->paramkind == PARAM_EXTERN || ((Param *) node)->paramkind == PARAM_EXEC;
		case T_SQLValueFunction:
			/* of the others some look into catalogs */
			return ((SQLValueFunction *) node)->op <= SVFOP_LOCALTIMESTAMP_N;
		case T_RelabelType:
			return gh_is_unfailing((Node *) ((RelabelType *) node)->arg);
		case T_FuncExpr:
			return find_function(((FuncExpr *) node)->funcid) != NULL && are_unfailing(((FuncExpr *) node)->args);
		case T_OpExpr:
			return find_function(((OpExpr *) node)->opfuncid) != NULL && are_unfailing(((OpExpr *) node)->args);
		case T_ArrayExpr:
			return !((ArrayExpr *) node)->multidims && are_unfailing(((ArrayExpr *) node)->elements);
		case T_ArrayCoerceExpr:
			return relabels_elements((ArrayCoerceExpr *) node) &&
				gh_is_unfailing((Node *) ((ArrayCoerceExpr *) node)->arg);
		default:
			return false;
	}
}
