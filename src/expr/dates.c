/*
 * dates.c
 *		Parts of dates and times in programs: EXTRACT, date_part, date_trunc, times of a day.
 *
 * A timestamp with time zone is what clocks show in the session's (zones.c), and there is cut off as one
 * without.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "expr/translate.h"

/* A field, by the name that EXTRACT's keywords have; others have more names. */
typedef struct Field
{
	const char *name;
	GhProgramOp part;			/* of a day; 0: it is worked out of others */
	GhProgramOp truncated;		/* the first day of such; 0: there is none */
	int64		length;			/* of a time of the day: microseconds */
	int64		in_next;		/* and how many there are in the next larger one; 0: a time of 24:00 has 24 hours */
	int			scale;			/* digits after the point that EXTRACT shows */
} Field;

static const Field fields[] = {
	{"year", GH_OP_DATE_YEAR, GH_OP_DATE_TO_YEAR, 0, 0, 0},
	{"quarter", 0, GH_OP_DATE_TO_QUARTER, 0, 0, 0},
	{"month", GH_OP_DATE_MONTH, GH_OP_DATE_TO_MONTH, 0, 0, 0},
	{"week", 0, GH_OP_DATE_TO_WEEK, 0, 0, 0},
	{"day", GH_OP_DATE_DAY, 0, 0, 0, 0},
	{"dow", GH_OP_DATE_WEEKDAY, 0, 0, 0, 0},
	{"isodow", 0, 0, 0, 0, 0},
	{"isoyear", 0, 0, 0, 0, 0},
	{"doy", 0, 0, 0, 0, 0},
	{"hour", 0, 0, USECS_PER_HOUR, 0, 0},
	{"minute", 0, 0, USECS_PER_MINUTE, 60, 0},
	{"second", 0, 0, USECS_PER_SEC, 60, 6},
	{"epoch", 0, 0, 0, 0, 6},
};

static bool
is_field(const Field *field, const char *name)
{
	return strcmp(field->name, name) == 0;
}

static bool
no_field(GhTranslation *translation)
{
	return gh_translation_fails(translation, "a part of a date or timestamp is not supported");
}

static const Field *
find_field(GhTranslation *translation, const Const *name)
{
	const char *string;

	if (!IsA(name, Const) || name->consttype != TEXTOID || name->constisnull)
	{
		(void) gh_translation_fails(translation, "a part of a date is not named by a constant");
		return NULL;
	}
	string = TextDatumGetCString(name->constvalue);
	for (Size i = 0; i < lengthof(fields); i++)
		if (pg_strcasecmp(fields[i].name, string) == 0)
			return &fields[i];
	(void) no_field(translation);
	return NULL;
}

/* ------------------------------------------------------- instructions on whole numbers */

/* One more. */
bool
gh_add_int(GhTranslation *translation, GhProgramOp op, int width, int nargs, const GhOperand *args, GhOperand *result)
{
	GhOperand	made = {.value_class = GH_CLASS_INT};

	if (!gh_add_instruction(translation, op, GH_CLASS_INT, width, 0, nargs, args, &made))
		return false;
	*result = made;
	return true;
}

/* Likewise, on a number and a constant; the number becomes its result. */
bool
gh_add_int_constant(GhTranslation *translation, GhProgramOp op, int width, GhOperand *number, int64 constant)
{
	GhOperand	args[2] = {*number};

	return gh_add_constant(translation, GH_CLASS_INT, false, (uint64) constant, 0, &args[1]) &&
		gh_add_int(translation, op, width, 2, args, number);
}

/* The number as a numeric of that scale, whose digits it has, or as a float8. */
static bool
as_result(GhTranslation *translation, const GhOperand *number, GhClass result_class, int scale, GhOperand *result)
{
	result->value_class = result_class;
	result->scale = result_class == GH_CLASS_INT128 ? scale : 0;
	return gh_add_instruction(translation, GH_OP_FROM_INT, result_class, 0, 0, 1, number, result);
}

/* Microseconds as seconds: EXTRACT shows six digits, date_part divides. */
static bool
as_seconds(GhTranslation *translation, const GhOperand *number, GhClass result_class, GhOperand *result)
{
	float8		million = 1000000;
	uint64		bits;
	GhOperand	args[2] = {{0}};

	if (result_class == GH_CLASS_INT128)
		return as_result(translation, number, result_class, 6, result);
	memcpy(&bits, &million, sizeof(bits));
	result->value_class = GH_CLASS_FLOAT8;
	return as_result(translation, number, GH_CLASS_FLOAT8, 0, &args[0]) &&
		gh_add_constant(translation, GH_CLASS_FLOAT8, false, bits, 0, &args[1]) &&
		gh_add_instruction(translation, GH_OP_DIV, GH_CLASS_FLOAT8, 0, 0, 2, args, result);
}

/* -------------------------------------------------------------- parts of a day */

/* The Thursday of the day's week, whose year is the week's. */
static bool
add_thursday(GhTranslation *translation, const GhOperand *day, GhOperand *thursday)
{
	return gh_add_int(translation, GH_OP_DATE_TO_WEEK, 0, 1, day, thursday) &&
		gh_add_int_constant(translation, GH_OP_ADD, sizeof(int32), thursday, 3);
}

/* How many days the day is behind its year's first one. */
static bool
add_day_of_year(GhTranslation *translation, const GhOperand *day, GhOperand *part)
{
	GhOperand	args[2] = {*day};

	return gh_add_int(translation, GH_OP_DATE_TO_YEAR, 0, 1, day, &args[1]) &&
		gh_add_int(translation, GH_OP_SUB, sizeof(int32), 2, args, part);
}

/* What no instruction tells by itself: (month + 2) / 3, (dow + 6) % 7 + 1, and so on. */
static bool
work_out(GhTranslation *translation, const Field *field, const GhOperand *day, GhOperand *part)
{
	const int	width = sizeof(int32);
	GhOperand	thursday;

	if (is_field(field, "quarter"))
		return gh_add_int(translation, GH_OP_DATE_MONTH, 0, 1, day, part) &&
			gh_add_int_constant(translation, GH_OP_ADD, width, part, 2) &&
			gh_add_int_constant(translation, GH_OP_DIV, width, part, 3);
	if (is_field(field, "isodow"))
		return gh_add_int(translation, GH_OP_DATE_WEEKDAY, 0, 1, day, part) &&
			gh_add_int_constant(translation, GH_OP_ADD, width, part, 6) &&
			gh_add_int_constant(translation, GH_OP_MOD, width, part, 7) &&
			gh_add_int_constant(translation, GH_OP_ADD, width, part, 1);
	if (is_field(field, "doy"))
		return add_day_of_year(translation, day, part) && gh_add_int_constant(translation, GH_OP_ADD, width, part, 1);
	if (is_field(field, "isoyear"))
		return add_thursday(translation, day, &thursday) && gh_add_int(translation, GH_OP_DATE_YEAR, 0, 1, &thursday, part);
	if (is_field(field, "week"))
		return add_thursday(translation, day, &thursday) && add_day_of_year(translation, &thursday, part) &&
			gh_add_int_constant(translation, GH_OP_DIV, width, part, 7) &&
			gh_add_int_constant(translation, GH_OP_ADD, width, part, 1);
	return no_field(translation);
}

static bool
translate_day_part(GhTranslation *translation, const Field *field, const GhOperand *day, GhClass result_class,
				   GhOperand *result)
{
	GhOperand	part;

	return (field->part != 0 ? gh_add_int(translation, field->part, 0, 1, day, &part) :
			work_out(translation, field, day, &part)) && as_result(translation, &part, result_class, 0, result);
}

/* -------------------------------------------------------------- times of a day */

/* Microseconds since midnight, of a timestamp and its day. */
static bool
add_time_of_day(GhTranslation *translation, const GhOperand *timestamp, const GhOperand *day, GhOperand *result)
{
	GhOperand	args[2] = {*timestamp};

	return gh_add_int(translation, GH_OP_DATE_TO_TIMESTAMP, 0, 1, day, &args[1]) &&
		gh_add_int(translation, GH_OP_SUB, sizeof(int64), 2, args, result);
}

/*
 * An hour, minute or second of so many microseconds since midnight.  Of date_part seconds are a sum of their
 * whole part and the rest, which is rounded otherwise than a quotient.
 */
static bool
translate_time_part(GhTranslation *translation, const Field *field, const GhOperand *time, GhClass result_class,
					GhOperand *result)
{
	GhOperand	part = *time;
	GhOperand	rest;
	GhOperand	sum[2] = {{0}};
	const int	width = sizeof(int64);

	if (field->in_next > 0 &&
		!gh_add_int_constant(translation, GH_OP_MOD, width, &part, field->length * field->in_next))
		return false;
	rest = part;
	if (field->scale > 0 && result_class == GH_CLASS_INT128)
		return as_seconds(translation, &part, result_class, result);
	if (!gh_add_int_constant(translation, GH_OP_DIV, width, &part, field->length))
		return false;
	if (field->scale == 0)
		return as_result(translation, &part, result_class, 0, result);
	result->value_class = GH_CLASS_FLOAT8;
	return gh_add_int_constant(translation, GH_OP_MOD, width, &rest, field->length) &&
		as_result(translation, &part, GH_CLASS_FLOAT8, 0, &sum[0]) &&
		as_seconds(translation, &rest, GH_CLASS_FLOAT8, &sum[1]) &&
		gh_add_instruction(translation, GH_OP_ADD, GH_CLASS_FLOAT8, 0, 0, 2, sum, result);
}

/* -------------------------------------------------------- dates and timestamps */

/* 1970-01-01 00:00, in microseconds since 2000 */
#define UNIX_EPOCH ((int64) (UNIX_EPOCH_JDATE - POSTGRES_EPOCH_JDATE) * USECS_PER_DAY)

static bool
translate_of_timestamp(GhTranslation *translation, const Field *field, GhOperand *timestamp, GhClass result_class,
					   GhOperand *result)
{
	GhOperand	day;
	GhOperand	time;

	if (is_field(field, "epoch"))
		return gh_add_int_constant(translation, GH_OP_TIMESTAMP_DIFF, 0, timestamp, UNIX_EPOCH) &&
			as_seconds(translation, timestamp, result_class, result);
	if (!gh_add_int(translation, GH_OP_TIMESTAMP_TO_DATE, 0, 1, timestamp, &day))
		return false;
	if (field->length == 0)
		return translate_day_part(translation, field, &day, result_class, result);
	return add_time_of_day(translation, timestamp, &day, &time) &&
		translate_time_part(translation, field, &time, result_class, result);
}

/* Whole seconds, as a date has nothing else. */
static bool
translate_of_date(GhTranslation *translation, const Field *field, GhOperand *day, GhOperand *result)
{
	if (is_field(field, "epoch"))
		return gh_add_int_constant(translation, GH_OP_DATE_DIFF, 0, day, UNIX_EPOCH_JDATE - POSTGRES_EPOCH_JDATE) &&
			gh_add_int_constant(translation, GH_OP_MUL, sizeof(int64), day, SECS_PER_DAY) &&
			as_result(translation, day, GH_CLASS_INT128, 0, result);
	/* of hours and the like, PostgreSQL raises an error */
	if (field->length > 0)
		return no_field(translation);
	return translate_day_part(translation, field, day, GH_CLASS_INT128, result);
}

static bool
translate_of_time(GhTranslation *translation, const Field *field, const GhOperand *time, GhClass result_class,
				  GhOperand *result)
{
	if (is_field(field, "epoch"))
		return as_seconds(translation, time, result_class, result);
	return field->length > 0 ? translate_time_part(translation, field, time, result_class, result) :
		no_field(translation);
}

/*
 * The first day of such as a timestamp; or the timestamp without what is behind the hour, minute or second.
 */
static bool
translate_truncated(GhTranslation *translation, const Field *field, const GhOperand *timestamp, GhOperand *result)
{
	GhOperand	args[2] = {*timestamp};
	GhOperand	day;

	if (field->truncated == 0 && field->length == 0 && !is_field(field, "day"))
		return no_field(translation);
	if (!gh_add_int(translation, GH_OP_TIMESTAMP_TO_DATE, 0, 1, timestamp, &day))
		return false;
	if (field->length > 0)
		return add_time_of_day(translation, timestamp, &day, &args[1]) &&
			gh_add_int_constant(translation, GH_OP_MOD, sizeof(int64), &args[1], field->length) &&
			gh_add_int(translation, GH_OP_SUB, sizeof(int64), 2, args, result);
	return (field->truncated == 0 || gh_add_int(translation, field->truncated, 0, 1, &day, &day)) &&
		gh_add_int(translation, GH_OP_DATE_TO_TIMESTAMP, 0, 1, &day, result);
}

/* ------------------------------------------------------- with time zone */

static bool
translate_of_moment(GhTranslation *translation, const Field *field, GhOperand *moment, GhClass result_class,
					GhOperand *result)
{
	GhOperand	local;

	if (is_field(field, "epoch"))
		return translate_of_timestamp(translation, field, moment, result_class, result);
	return gh_add_local_time(translation, gh_session_zone(translation), moment, &local) &&
		translate_of_timestamp(translation, field, &local, result_class, result);
}

/*
 * Cut off at an hour or less, what is left is as far from UTC as the moment was; a day or more begins when
 * clocks show it.
 */
static bool
translate_truncated_moment(GhTranslation *translation, const Field *field, const GhZone *zone, const GhOperand *moment,
						   GhOperand *result)
{
	GhOperand	shift;
	GhOperand	local;
	GhOperand	truncated;

	if (zone == NULL || !gh_add_zone_shift(translation, zone, true, moment, &shift) ||
		!gh_add_shifted(translation, moment, &shift, false, &local) ||
		!translate_truncated(translation, field, &local, &truncated))
		return false;
	return field->length > 0 ? gh_add_shifted(translation, &truncated, &shift, true, result) :
		gh_add_moment(translation, zone, &truncated, result);
}

/* ------------------------------------------------------------------------ all */

/* A field of a value, or a value cut off at one. */
static bool
translate_field(GhTranslation *translation, Oid function, List *exprs, GhOperand *result)
{
	const Field *field = find_field(translation, linitial(exprs));
	GhOperand	value;

	if (field == NULL || !gh_translate_value(translation, lsecond(exprs), &value))
		return false;
	switch (function)
	{
		case F_EXTRACT_TEXT_DATE:
			return translate_of_date(translation, field, &value, result);
		case F_EXTRACT_TEXT_TIME:
			return translate_of_time(translation, field, &value, GH_CLASS_INT128, result);
		case F_DATE_PART_TEXT_TIME:
			return translate_of_time(translation, field, &value, GH_CLASS_FLOAT8, result);
		case F_EXTRACT_TEXT_TIMESTAMP:
			return translate_of_timestamp(translation, field, &value, GH_CLASS_INT128, result);
		case F_DATE_PART_TEXT_TIMESTAMP:
			return translate_of_timestamp(translation, field, &value, GH_CLASS_FLOAT8, result);
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
			return translate_of_moment(translation, field, &value, GH_CLASS_INT128, result);
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
			return translate_of_moment(translation, field, &value, GH_CLASS_FLOAT8, result);
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
			return translate_truncated_moment(translation, field, gh_session_zone(translation), &value, result);
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
			return translate_truncated_moment(translation, field, gh_named_zone(translation, lthird(exprs)), &value, result);
		default:
			return translate_truncated(translation, field, &value, result);
	}
}

/* A call of one of these functions; *is_one: it is. */
bool
gh_translate_date_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one, GhOperand *result)
{
	GhOperand	timestamp;
	GhOperand	day;

	*is_one = true;
	switch (function)
	{
		case F_EXTRACT_TEXT_DATE:
		case F_EXTRACT_TEXT_TIME:
		case F_DATE_PART_TEXT_TIME:
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMP:
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
			return translate_field(translation, function, exprs, result);
		case F_TIME_TIMESTAMP:
		case F_TIME_TIMESTAMPTZ:
			return gh_translate_value(translation, linitial(exprs), &timestamp) &&
				(function == F_TIME_TIMESTAMP ||
				 gh_add_local_time(translation, gh_session_zone(translation), &timestamp, &timestamp)) &&
				gh_add_int(translation, GH_OP_TIMESTAMP_TO_DATE, 0, 1, &timestamp, &day) &&
				add_time_of_day(translation, &timestamp, &day, result);
		default:
			*is_one = false;
			return false;
	}
}
