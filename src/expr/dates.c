/*
 * dates.c
 *		Parts of dates and timestamps in programs: EXTRACT, date_part, date_trunc.
 *
 * Of a timestamp, what a day tells.  With a time zone it would depend on the session's.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "expr/translate.h"

/* A field, by the name that EXTRACT's keywords have; others have more names. */
typedef struct Field
{
	const char *name;
	GhProgramOp part;			/* 0: it is worked out of others */
	GhProgramOp truncated;		/* the first day of such; 0: there is none */
} Field;

static const Field fields[] = {
	{"year", GH_OP_DATE_YEAR, GH_OP_DATE_TO_YEAR},
	{"quarter", 0, GH_OP_DATE_TO_QUARTER},
	{"month", GH_OP_DATE_MONTH, GH_OP_DATE_TO_MONTH},
	{"week", 0, GH_OP_DATE_TO_WEEK},
	{"day", GH_OP_DATE_DAY, 0},
	{"dow", GH_OP_DATE_WEEKDAY, 0},
	{"isodow", 0, 0},
	{"doy", 0, 0},
};

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
		if (strcmp(fields[i].name, string) == 0)
			return &fields[i];
	(void) gh_translation_fails(translation, "a part of a date or timestamp is not supported");
	return NULL;
}

/* One more instruction on whole numbers. */
static bool
add_int(GhTranslation *translation, GhProgramOp op, int width, int nargs, const GhOperand *args, GhOperand *result)
{
	memset(result, 0, sizeof(*result));
	result->value_class = GH_CLASS_INT;
	return gh_add_instruction(translation, op, GH_CLASS_INT, width, 0, nargs, args, result);
}

/* Likewise, on a number and a constant; the number becomes its result. */
static bool
add_int_constant(GhTranslation *translation, GhProgramOp op, GhOperand *number, int64 constant)
{
	GhOperand	args[2] = {*number};

	return gh_add_constant(translation, GH_CLASS_INT, false, (uint64) constant, 0, &args[1]) &&
		add_int(translation, op, sizeof(int32), 2, args, number);
}

/* What no instruction tells by itself: (month + 2) / 3, (dow + 6) % 7 + 1, day - the year's first + 1. */
static bool
work_out(GhTranslation *translation, const Field *field, const GhOperand *day, GhOperand *part)
{
	GhOperand	args[2] = {*day};

	if (strcmp(field->name, "quarter") == 0)
		return add_int(translation, GH_OP_DATE_MONTH, 0, 1, day, part) &&
			add_int_constant(translation, GH_OP_ADD, part, 2) && add_int_constant(translation, GH_OP_DIV, part, 3);
	if (strcmp(field->name, "isodow") == 0)
		return add_int(translation, GH_OP_DATE_WEEKDAY, 0, 1, day, part) &&
			add_int_constant(translation, GH_OP_ADD, part, 6) && add_int_constant(translation, GH_OP_MOD, part, 7) &&
			add_int_constant(translation, GH_OP_ADD, part, 1);
	if (strcmp(field->name, "doy") == 0)
		return add_int(translation, GH_OP_DATE_TO_YEAR, 0, 1, day, &args[1]) &&
			add_int(translation, GH_OP_SUB, sizeof(int32), 2, args, part) &&
			add_int_constant(translation, GH_OP_ADD, part, 1);
	return gh_translation_fails(translation, "a part of a date or timestamp is not supported");
}

/* numeric, or of date_part float8 */
static bool
translate_part(GhTranslation *translation, const Field *field, const GhOperand *day, GhClass result_class,
			   GhOperand *result)
{
	GhOperand	part;

	if (!(field->part != 0 ? add_int(translation, field->part, 0, 1, day, &part) :
		  work_out(translation, field, day, &part)))
		return false;
	result->value_class = result_class;
	return gh_add_instruction(translation, GH_OP_FROM_INT, result_class, 0, 0, 1, &part, result);
}

static bool
translate_truncated(GhTranslation *translation, const Field *field, const GhOperand *day, GhOperand *result)
{
	GhOperand	first = *day;

	if (field->truncated == 0 && strcmp(field->name, "day") != 0)
		return gh_translation_fails(translation, "a part of a date or timestamp is not supported");
	return (field->truncated == 0 || add_int(translation, field->truncated, 0, 1, day, &first)) &&
		add_int(translation, GH_OP_DATE_TO_TIMESTAMP, 0, 1, &first, result);
}

/* A call of one of these functions; *is_one: it is. */
bool
gh_translate_date_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one, GhOperand *result)
{
	bool		of_date = function == F_EXTRACT_TEXT_DATE;
	const Field *field;
	GhOperand	day;
	GhOperand	timestamp;

	*is_one = of_date || function == F_EXTRACT_TEXT_TIMESTAMP || function == F_DATE_PART_TEXT_TIMESTAMP ||
		function == F_DATE_TRUNC_TEXT_TIMESTAMP;
	if (!*is_one || (field = find_field(translation, linitial(exprs))) == NULL)
		return false;
	if (!gh_translate_value(translation, lsecond(exprs), of_date ? &day : &timestamp))
		return false;
	if (!of_date && !add_int(translation, GH_OP_TIMESTAMP_TO_DATE, 0, 1, &timestamp, &day))
		return false;
	if (function == F_DATE_TRUNC_TEXT_TIMESTAMP)
		return translate_truncated(translation, field, &day, result);
	return translate_part(translation, field, &day,
						  function == F_DATE_PART_TEXT_TIMESTAMP ? GH_CLASS_FLOAT8 : GH_CLASS_INT128, result);
}
