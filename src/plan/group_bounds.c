/*
 * group_bounds.c
 *		How many groups a grouping has, also where its keys are expressions of which statistics know nothing.
 *
 * The planner takes an expression to have as many values as the columns in it, which it has not where it is a
 * month, a remainder or one of some constants: five million moments have 60 months.  So many groups would
 * have to be sorted, and a grouping by hashing would seem not to pay.  What such an expression may give at
 * most follows from its constants, and from the least and the greatest value of its column by statistics.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "plan/aggregate_plan.h"

#define DAY ((double) USECS_PER_DAY)

/* Of the rows that were counted, so many may be there. */
#define GH_GROWN_SHARE 1.2

/* A part of a date or time, by the names that EXTRACT and date_trunc have. */
typedef struct Part
{
	const char *name;
	double		length;			/* microseconds */
	double		values;			/* of EXTRACT; 0: as many as there are of such a length */
} Part;

static const Part parts[] = {
	{"millennium", 365242.5 * DAY, 0},
	{"century", 36524.25 * DAY, 0},
	{"decade", 3652.425 * DAY, 0},
	{"year", 365.2425 * DAY, 0},
	{"isoyear", 365.2425 * DAY, 0},
	{"quarter", 91.310625 * DAY, 4},
	{"month", 30.436875 * DAY, 12},
	{"week", 7 * DAY, 53},
	{"day", DAY, 31},
	{"dow", 0, 7},
	{"isodow", 0, 7},
	{"doy", 0, 366},
	{"hour", (double) USECS_PER_HOUR, 24},
	{"minute", (double) USECS_PER_MINUTE, 60},
	{"second", (double) USECS_PER_SEC, 0},
};

static const Part *
find_part(const Node *name)
{
	const Const *constant = (const Const *) name;
	char	   *string;

	if (!IsA(name, Const) || constant->consttype != TEXTOID || constant->constisnull)
		return NULL;
	string = TextDatumGetCString(constant->constvalue);
	for (Size i = 0; i < lengthof(parts); i++)
		if (pg_strcasecmp(parts[i].name, string) == 0)
			return &parts[i];
	return NULL;
}

/* ------------------------------------------------------------------------- ranges */

/* A value as a number, moments and days as microseconds; false: it is none. */
static bool
number_of(Oid type, Datum value, double *number)
{
	switch (type)
	{
		case INT2OID:
			*number = DatumGetInt16(value);
			return true;
		case INT4OID:
			*number = DatumGetInt32(value);
			return true;
		case INT8OID:
			*number = (double) DatumGetInt64(value);
			return true;
		case DATEOID:
			*number = DatumGetDateADT(value) * DAY;
			return !DATE_NOT_FINITE(DatumGetDateADT(value));
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			*number = (double) DatumGetTimestamp(value);
			return !TIMESTAMP_NOT_FINITE(DatumGetTimestamp(value));
		default:
			return false;
	}
}

/* Widens the range by the values of a kind of statistics. */
static void
widen(HeapTuple statistics, int kind, double *low, double *high)
{
	AttStatsSlot slot;
	double		number;

	if (!get_attstatsslot(&slot, statistics, kind, InvalidOid, ATTSTATSSLOT_VALUES))
		return;
	for (int i = 0; i < slot.nvalues; i++)
	{
		if (!number_of(slot.valuetype, slot.values[i], &number))
			continue;
		*low = Min(*low, number);
		*high = Max(*high, number);
	}
	free_attstatsslot(&slot);
}

/* Without what makes a moment of a day, or of a moment with a time zone, or the other way. */
static Node *
below_casts(Node *expr)
{
	for (;;)
	{
		const FuncExpr *call = (const FuncExpr *) expr;

		if (IsA(expr, RelabelType))
			expr = (Node *) ((RelabelType *) expr)->arg;
		else if (IsA(expr, FuncExpr) && list_length(call->args) == 1 &&
				 (call->funcid == F_TIMESTAMP_DATE || call->funcid == F_TIMESTAMPTZ_DATE ||
				  call->funcid == F_TIMESTAMP_TIMESTAMPTZ || call->funcid == F_TIMESTAMPTZ_TIMESTAMP))
			expr = linitial(call->args);
		else
			return expr;
	}
}

/*
 * Whether a table has as many rows, nearly, as when they were counted last: of one that has grown since,
 * statistics know neither the least nor the greatest value.
 */
static bool
is_as_counted(PlannerInfo *root, const RelOptInfo *rel)
{
	HeapTuple	tuple;
	double		counted = -1;

	if (rel == NULL || !IS_SIMPLE_REL(rel) || planner_rt_fetch(rel->relid, root)->rtekind != RTE_RELATION)
		return false;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(planner_rt_fetch(rel->relid, root)->relid));
	if (HeapTupleIsValid(tuple))
	{
		counted = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return rel->tuples <= GH_GROWN_SHARE * counted;
}

/* From the least to the greatest value, as numbers, by statistics; infinity: they do not tell. */
static double
range_of(PlannerInfo *root, Node *expr, double *low)
{
	VariableStatData data;
	double		high = -HUGE_VAL;

	*low = HUGE_VAL;
	expr = below_casts(expr);
	if (!IsA(expr, Var))
		return HUGE_VAL;
	examine_variable(root, expr, 0, &data);
	if (HeapTupleIsValid(data.statsTuple) && is_as_counted(root, data.rel))
	{
		widen(data.statsTuple, STATISTIC_KIND_HISTOGRAM, low, &high);
		widen(data.statsTuple, STATISTIC_KIND_MCV, low, &high);
	}
	ReleaseVariableStats(data);
	return high >= *low ? high - *low : HUGE_VAL;
}

/* ------------------------------------------------------------------------- values */

/* So many pieces of such a length the argument's values lie in; they begin anywhere. */
static double
pieces_of(PlannerInfo *root, Node *argument, double length)
{
	double		low;

	return length > 0 ? ceil(range_of(root, argument, &low) / length) + 1 : HUGE_VAL;
}

static double
values_of_part(PlannerInfo *root, List *args, bool truncated)
{
	const Part *part = list_length(args) >= 2 ? find_part(linitial(args)) : NULL;

	if (part == NULL)
		return HUGE_VAL;
	if (!truncated && part->values > 0)
		return part->values;
	/* of seconds EXTRACT has what is behind the point */
	if (!truncated && part->length < DAY)
		return HUGE_VAL;
	return pieces_of(root, lsecond(args), part->length);
}

/* A division by a constant, or what remains. */
static double
values_of_division(PlannerInfo *root, List *args, bool remains)
{
	const Const *divisor = lsecond(args);
	double		by;
	double		low;
	double		range;

	if (!IsA(divisor, Const) || divisor->constisnull || !number_of(divisor->consttype, divisor->constvalue, &by) ||
		by == 0)
		return HUGE_VAL;
	by = fabs(by);
	if (!remains)
		return pieces_of(root, linitial(args), by);
	range = range_of(root, linitial(args), &low);
	return low >= 0 && !isinf(range) ? by : 2 * by - 1;
}

static double values_at_most(PlannerInfo *root, Node *expr);

/* A function of one argument beside constants has no more values than that. */
static double
values_of_image(PlannerInfo *root, Oid function, List *args)
{
	Node	   *argument = NULL;
	ListCell   *lc;

	foreach(lc, args)
	{
		if (IsA(lfirst(lc), Const))
			continue;
		if (argument != NULL)
			return HUGE_VAL;
		argument = lfirst(lc);
	}
	if (argument == NULL || func_volatile(function) == PROVOLATILE_VOLATILE || get_func_retset(function))
		return HUGE_VAL;
	return values_at_most(root, argument);
}

static double
values_of_call(PlannerInfo *root, Oid function, List *args)
{
	switch (function)
	{
		case F_EXTRACT_TEXT_DATE:
		case F_EXTRACT_TEXT_TIME:
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIME:
		case F_DATE_PART_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
			return values_of_part(root, args, false);
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
			return values_of_part(root, args, true);
		case F_DATE_TIMESTAMP:
		case F_DATE_TIMESTAMPTZ:
			return pieces_of(root, linitial(args), DAY);
		case F_MOD_INT2_INT2:
		case F_MOD_INT4_INT4:
		case F_MOD_INT8_INT8:
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
			return values_of_division(root, args, true);
		case F_INT2DIV:
		case F_INT4DIV:
		case F_INT8DIV:
			return values_of_division(root, args, false);
		default:
			return values_of_image(root, function, args);
	}
}

/* One of some constants. */
static double
values_of_case(const CaseExpr *choice)
{
	ListCell   *lc;

	if (choice->defresult != NULL && !IsA(choice->defresult, Const))
		return HUGE_VAL;
	foreach(lc, choice->args)
	{
		if (!IsA(lfirst_node(CaseWhen, lc)->result, Const))
			return HUGE_VAL;
	}
	return list_length(choice->args) + 1;
}

/* How many values the expression has at most, NULL aside; infinity: nobody knows. */
static double
values_at_most(PlannerInfo *root, Node *expr)
{
	if (IsA(expr, RelabelType))
		return values_at_most(root, (Node *) ((RelabelType *) expr)->arg);
	if (IsA(expr, CaseExpr))
		return values_of_case((CaseExpr *) expr);
	if (IsA(expr, FuncExpr))
		return values_of_call(root, ((FuncExpr *) expr)->funcid, ((FuncExpr *) expr)->args);
	if (IsA(expr, OpExpr))
		return values_of_call(root, ((OpExpr *) expr)->opfuncid, ((OpExpr *) expr)->args);
	return HUGE_VAL;
}

/* estimate_num_groups, or less: as many as the expressions may give, each with NULL beside its values. */
double
gh_estimate_groups(PlannerInfo *root, List *exprs, double rows)
{
	double		groups = estimate_num_groups(root, exprs, rows, NULL, NULL);
	double		most = 1.0;
	List	   *others = NIL;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		double		values = values_at_most(root, lfirst(lc));

		if (isinf(values))
			others = lappend(others, lfirst(lc));
		else
			most *= values + 1;
	}
	if (list_length(others) == list_length(exprs))
		return groups;
	if (others != NIL)
		most *= estimate_num_groups(root, others, rows, NULL, NULL);
	return clamp_row_est(Min(groups, most));
}
