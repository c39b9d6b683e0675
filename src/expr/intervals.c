/*
 * intervals.c
 *		Intervals in programs: dates and timestamps that are moved by a constant one, and what lies between two.
 *
 * An interval has no vector.  A constant one (a parameter, say) becomes months, days and microseconds, which
 * are added one after the other, as PostgreSQL does.  What lies between two timestamps is a number of
 * microseconds, as long as it is but compared, or asked for its seconds or days: there are no months in it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "expr/translate.h"

/* Of larger intervals, and those that are infinite, there is no program. */
#define GH_MONTHS_MAX 1000000
#define GH_DAYS_MAX 1000000
#define GH_TIME_MAX (GH_DAYS_MAX * USECS_PER_DAY)

/* A constant that is an interval within these bounds, or NULL: all of it 0. */
static bool
constant_interval(GhTranslation *translation, const Const *constant, Interval *interval)
{
	memset(interval, 0, sizeof(*interval));
	if (!IsA(constant, Const) || constant->consttype != INTERVALOID)
		return gh_translation_fails(translation, "an interval is not constant");
	if (!constant->constisnull)
		*interval = *DatumGetIntervalP(constant->constvalue);
	if (interval->month < -GH_MONTHS_MAX || interval->month > GH_MONTHS_MAX ||
		interval->day < -GH_DAYS_MAX || interval->day > GH_DAYS_MAX ||
		interval->time < -GH_TIME_MAX || interval->time > GH_TIME_MAX)
		return gh_translation_fails(translation, "an interval is too long");
	return true;
}

/* --------------------------------------------------------------- moved by one */

/* One step; there is always one by NULL, and the result is, too. */
static bool
add_step(GhTranslation *translation, GhProgramOp op, bool null, int64 by, GhOperand *timestamp)
{
	GhOperand	args[2] = {*timestamp};

	if (by == 0 && !null)
		return true;
	return gh_add_constant(translation, GH_CLASS_INT, null, (uint64) by, 0, &args[1]) &&
		gh_add_int(translation, op, 0, 2, args, timestamp);
}

/* Likewise of what clocks show at a moment. */
static bool
add_local_step(GhTranslation *translation, GhProgramOp op, int64 by, GhOperand *moment)
{
	return by == 0 || (gh_add_local_time(translation, gh_session_zone(translation), moment, moment) &&
					   add_step(translation, op, false, by, moment) &&
					   gh_add_moment(translation, gh_session_zone(translation), moment, moment));
}

static bool
translate_moved(GhTranslation *translation, GhOperand *timestamp, const Const *constant, bool with_zone, int sign,
				GhOperand *result)
{
	Interval	interval;
	int64		months;
	int64		days;

	if (!constant_interval(translation, constant, &interval))
		return false;
	months = sign * interval.month;
	days = sign * interval.day * USECS_PER_DAY;
	/* which moment is a day later, the time zone says */
	if (with_zone && !constant->constisnull ?
		!add_local_step(translation, GH_OP_TIMESTAMP_ADD_MONTHS, months, timestamp) ||
		!add_local_step(translation, GH_OP_TIMESTAMP_ADD, days, timestamp) :
		!add_step(translation, GH_OP_TIMESTAMP_ADD_MONTHS, constant->constisnull, months, timestamp) ||
		!add_step(translation, GH_OP_TIMESTAMP_ADD, false, days, timestamp))
		return false;
	if (!add_step(translation, GH_OP_TIMESTAMP_ADD, false, sign * interval.time, timestamp))
		return false;
	*result = *timestamp;
	return true;
}

static bool
translate_date_moved(GhTranslation *translation, List *exprs, int sign, GhOperand *result)
{
	GhOperand	day;
	GhOperand	timestamp;

	return gh_translate_value(translation, linitial(exprs), &day) &&
		gh_add_int(translation, GH_OP_DATE_TO_TIMESTAMP, 0, 1, &day, &timestamp) &&
		translate_moved(translation, &timestamp, lsecond(exprs), false, sign, result);
}

static bool
translate_timestamp_moved(GhTranslation *translation, List *exprs, bool with_zone, int sign, GhOperand *result)
{
	GhOperand	timestamp;

	return gh_translate_value(translation, linitial(exprs), &timestamp) &&
		translate_moved(translation, &timestamp, lsecond(exprs), with_zone, sign, result);
}

/* ------------------------------------------------------- between two timestamps */

/* timestamp - timestamp, in microseconds; *is_one: it is. */
static bool
translate_difference(GhTranslation *translation, Expr *expr, bool *is_one, GhOperand *result)
{
	const OpExpr *difference = (OpExpr *) expr;
	GhOperand	args[2];

	*is_one = IsA(expr, OpExpr) &&
		(difference->opfuncid == F_TIMESTAMP_MI || difference->opfuncid == F_TIMESTAMPTZ_MI);
	return *is_one && gh_translate_value(translation, linitial(difference->args), &args[0]) &&
		gh_translate_value(translation, lsecond(difference->args), &args[1]) &&
		gh_add_int(translation, GH_OP_TIMESTAMP_DIFF, 0, 2, args, result);
}

/* An interval as a comparison takes it: a month has 30 days, and a day 24 hours. */
static bool
translate_compared(GhTranslation *translation, Expr *expr, GhOperand *result)
{
	const Const *constant = (Const *) expr;
	Interval	interval;
	bool		is_one;
	bool		done = translate_difference(translation, expr, &is_one, result);

	if (is_one)
		return done;
	memset(result, 0, sizeof(*result));
	return constant_interval(translation, constant, &interval) &&
		gh_add_constant(translation, GH_CLASS_INT, constant->constisnull,
						(uint64) ((interval.month * INT64CONST(30) + interval.day) * USECS_PER_DAY + interval.time), 0,
						result);
}

static bool
translate_comparison(GhTranslation *translation, GhProgramOp op, List *exprs, GhOperand *result)
{
	GhOperand	args[2];

	result->value_class = GH_CLASS_BOOL;
	return translate_compared(translation, linitial(exprs), &args[0]) &&
		translate_compared(translation, lsecond(exprs), &args[1]) &&
		gh_add_instruction(translation, op, GH_CLASS_INT, 0, 0, 2, args, result);
}

/* How many days, or with EXTRACT seconds, lie between two timestamps. */
static bool
translate_part(GhTranslation *translation, List *exprs, GhClass result_class, GhOperand *result)
{
	const Const *name = linitial(exprs);
	const char *field = IsA(name, Const) && name->consttype == TEXTOID && !name->constisnull ?
		TextDatumGetCString(name->constvalue) : "";
	bool		days = pg_strcasecmp(field, "day") == 0;
	GhOperand	between;
	bool		is_one;

	if (!days && (result_class != GH_CLASS_INT128 || pg_strcasecmp(field, "epoch") != 0))
		return gh_translation_fails(translation, "a part of an interval is not supported");
	if (!translate_difference(translation, lsecond(exprs), &is_one, &between))
		return gh_translation_fails(translation, "a part is of an interval that is no difference of timestamps");
	if (days && !gh_add_int_constant(translation, GH_OP_DIV, sizeof(int64), &between, USECS_PER_DAY))
		return false;
	result->value_class = result_class;
	result->scale = days ? 0 : 6;
	return gh_add_instruction(translation, GH_OP_FROM_INT, result_class, 0, 0, 1, &between, result);
}

/* ------------------------------------------------------------------------ all */

/* A call of one of these functions; *is_one: it is. */
bool
gh_translate_interval_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one, GhOperand *result)
{
	*is_one = true;
	switch (function)
	{
		case F_DATE_PL_INTERVAL:
			return translate_date_moved(translation, exprs, 1, result);
		case F_DATE_MI_INTERVAL:
			return translate_date_moved(translation, exprs, -1, result);
		case F_TIMESTAMP_PL_INTERVAL:
			return translate_timestamp_moved(translation, exprs, false, 1, result);
		case F_TIMESTAMP_MI_INTERVAL:
			return translate_timestamp_moved(translation, exprs, false, -1, result);
		case F_TIMESTAMPTZ_PL_INTERVAL:
			return translate_timestamp_moved(translation, exprs, true, 1, result);
		case F_TIMESTAMPTZ_MI_INTERVAL:
			return translate_timestamp_moved(translation, exprs, true, -1, result);
		case F_INTERVAL_EQ:
			return translate_comparison(translation, GH_OP_EQ, exprs, result);
		case F_INTERVAL_NE:
			return translate_comparison(translation, GH_OP_NE, exprs, result);
		case F_INTERVAL_LT:
			return translate_comparison(translation, GH_OP_LT, exprs, result);
		case F_INTERVAL_LE:
			return translate_comparison(translation, GH_OP_LE, exprs, result);
		case F_INTERVAL_GT:
			return translate_comparison(translation, GH_OP_GT, exprs, result);
		case F_INTERVAL_GE:
			return translate_comparison(translation, GH_OP_GE, exprs, result);
		case F_EXTRACT_TEXT_INTERVAL:
			return translate_part(translation, exprs, GH_CLASS_INT128, result);
		case F_DATE_PART_TEXT_INTERVAL:
			return translate_part(translation, exprs, GH_CLASS_FLOAT8, result);
		default:
			*is_one = false;
			return false;
	}
}
