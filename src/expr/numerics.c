/*
 * numerics.c
 *		Numerics in programs: their scales, quotients, rounding, numeric(p, s); and whole numbers as truth values.
 *
 * A numeric is an integer of 128 bits at a scale that is known here.  What PostgreSQL shows of it is in
 * scales.c.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"

#include "compat.h"
#include "engine/page/numeric.h"
#include "engine/program/program_int128.h"
#include "expr/translate.h"
#include "heap/layout.h"

/* ------------------------------------------------------------------- scales */

/* Decimal digits after the point that all values of numeric(p, s) have; -1: they differ. */
int
gh_scale_of_typmod(int32 typmod)
{
	int			scale;

	/* of no digits in all: what gh_shown_note() leaves */
	if (typmod < (int32) VARHDRSZ || (typmod - VARHDRSZ) >> 16 == 0)
		return -1;
	scale = gh_typmod_scale(typmod);
	return scale >= 0 && scale <= GH_SCALE_MAX ? scale : -1;
}

/* A numeric as an integer of 128 bits at its own scale; false: it is none. */
bool
gh_numeric_parts(Datum value, GhOperand *result, uint64 *low, uint64 *high)
{
	struct varlena *stored = PG_DETOAST_DATUM_PACKED(value);
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(stored);
	GhNumeric	numeric;

	if (!gh_numeric_open(bytes, VARSIZE_ANY_EXHDR(stored), &numeric))
		return false;
	result->scale = numeric.scale;
	return result->scale <= GH_SCALE_MAX &&
		gh_numeric_read(bytes, VARSIZE_ANY_EXHDR(stored), numeric.scale, low, high);
}

/* Makes a constant one of so many more digits, or fewer; false: it is none, or is too large then. */
static bool
rescale_constant(GhTranslation *translation, int digits, const GhOperand *operand, GhOperand *changed)
{
	const GhConstant *constant = gh_constant_of(translation, operand);
	uint64		bad = 0;
	GhInt128	value;

	if (constant == NULL)
		return false;
	value = gh_int128_rescale(gh_int128(constant->low, constant->high), digits, &bad);
	return bad == 0 && gh_add_constant(translation, GH_CLASS_INT128, constant->null, (uint64) value,
									   (uint64) ((GhUint128) value >> 64), changed);
}

/*
 * The operand with so many more digits, or fewer, by an operation that makes one of another; not its scales.
 */
static bool
change_scale(GhTranslation *translation, GhProgramOp op, int scale, GhOperand *operand)
{
	GhOperand	changed = {.value_class = GH_CLASS_INT128, .scale = scale, .mixed_scale = operand->mixed_scale,
		.open_scale = operand->open_scale};
	int			digits = scale - operand->scale;

	if (digits == 0)
		return true;
	if (digits > GH_SCALE_MAX || digits < -GH_SCALE_MAX || scale > GH_SCALE_MAX)
		return gh_translation_fails(translation, "a numeric has too many digits after the point");
	if ((op != GH_OP_RESCALE || !rescale_constant(translation, digits, operand, &changed)) &&
		!gh_add_instruction(translation, op, GH_CLASS_INT128, 0, op == GH_OP_RESCALE ? digits : -digits, 1, operand,
							&changed))
		return false;
	*operand = changed;
	return true;
}

/* Brings numerics to the largest scale among them. */
bool
gh_to_one_scale(GhTranslation *translation, GhOperand *args, int nargs)
{
	int			scale = 0;

	for (int i = 0; i < nargs; i++)
		scale = Max(scale, args[i].scale);
	for (int i = 0; i < nargs; i++)
		if (!change_scale(translation, GH_OP_RESCALE, scale, &args[i]))
			return false;
	return true;
}

/* ------------------------------------------------------------------- stored */

/*
 * The instruction that reads a stored numeric so, if it is among those that every row gets to with the next
 * one.
 */
static int
find_stored(const GhTranslation *translation, const GhOperand *stored, int digits)
{
	for (int i = translation->ninstructions - 1; i >= 0 && translation->instructions[i].op != GH_OP_FILTER; i--)
	{
		const GhInstruction *in = &translation->instructions[i];

		if (in->op == GH_OP_NUMERIC && in->args[0] == stored->vector && in->immediate == digits)
			return i;
	}
	return -1;
}

/*
 * A numeric of a column without a scale, whose bytes are there: at so many digits, of which rows may show
 * fewer.
 */
bool
gh_translate_stored(GhTranslation *translation, const GhOperand *stored, int digits, GhOperand *result)
{
	int			before = find_stored(translation, stored, digits);

	result->value_class = GH_CLASS_INT128;
	result->scale = digits;
	result->mixed_scale = true;
	result->scales = gh_scales_stored(stored);
	if (before >= 0)
		result->vector = translation->instructions[before].result;
	return before >= 0 ||
		gh_add_instruction(translation, GH_OP_NUMERIC, GH_CLASS_TEXT, 0, digits, 1, stored, result);
}

/* ----------------------------------------------------------------- quotients */

/*
 * Decimal digits that 1 / value has after the point, where it ends: of a product of twos and fives, as many
 * as the twos or as the fives, whichever are more; -1: it does not end, or there is no such number.
 */
static int
digits_of_inverse(GhUint128 value)
{
	int			twos = 0;
	int			fives = 0;

	if (value == 0)
		return -1;
	for (; value % 2 == 0; value /= 2)
		twos++;
	for (; value % 5 == 0; value /= 5)
		fives++;
	return value == 1 ? Max(twos, fives) : -1;
}

/*
 * The scale at which all quotients of such numbers are held.  By a divisor such as 2 or 100 that stands in
 * the query, a quotient has a few digits more than the number, however many PostgreSQL shows; and where it is
 * rounded to fewer digits, these are enough, too.  Sums of large quotients have no room for more (GH_SUM_BITS
 * of the engines).
 */
static int
quotient_scale(GhTranslation *translation, const GhOperand *args, const Node *divisor)
{
	const GhConstant *constant = gh_constant_of(translation, &args[1]);
	bool		is_written = IsA(divisor, Const) && ((const Const *) divisor)->location != GH_FOLDED_LOCATION &&
		!list_member_ptr(translation->stand_ins, divisor);
	int			digits = -1;

	/* with a parameter it would be another scale than before the parameter was known */
	if (constant != NULL && !constant->null && is_written)
		digits = digits_of_inverse(gh_int128_magnitude(gh_int128(constant->low, constant->high)));
	if (digits < 0)
		return GH_QUOTIENT_SCALE;
	digits += args[0].scale - args[1].scale;
	return Min(Max(digits, 0), GH_QUOTIENT_SCALE);
}

/* The scales of quotients differ from row to row; digits behind those are 0. */
static bool
translate_quotient(GhTranslation *translation, GhOperand *args, const Node *divisor, GhOperand *result)
{
	const GhScales *shown = gh_scales_joined(GH_SCALES_LARGER, gh_scales_of(&args[0]), gh_scales_of(&args[1]));
	int			scale = quotient_scale(translation, args, divisor);

	if (shown == NULL)
		return gh_translation_fails(translation, "it is not known how many digits a quotient has");
	if (Max(args[0].scale, args[1].scale) > GH_QUOTIENT_SCALE)
		return gh_translation_fails(translation, "a numeric has too many digits after the point");
	if (!gh_to_one_scale(translation, args, 2) || !gh_add_scales(translation, shown, &args[2]))
		return false;
	result->value_class = GH_CLASS_INT128;
	result->scale = GH_QUOTIENT_SCALE;
	result->mixed_scale = true;
	if (!gh_add_instruction(translation, GH_OP_QUOTIENT, GH_CLASS_INT128, 0, args[0].scale, 3, args, result) ||
		!change_scale(translation, GH_OP_TRUNC, scale, result))
		return false;
	gh_mix_scales(result, gh_scales_of_quotient(args, args[0].scale));
	return true;
}

/* ------------------------------------------------------------------ rounding */

/* The integer that an argument is, if it is a constant. */
static bool
constant_int4(GhTranslation *translation, const Const *constant, int32 *value)
{
	if (!IsA(constant, Const) || constant->consttype != INT4OID || constant->constisnull)
		return gh_translation_fails(translation, "how many digits a numeric has is no constant");
	*value = DatumGetInt32(constant->constvalue);
	return true;
}

/*
 * round(x, digits) or trunc(x, digits): all rows have that many digits after the point then, and none where
 * it is negative.
 */
static bool
translate_rounded(GhTranslation *translation, GhProgramOp op, GhOperand *number, int32 digits, GhOperand *result)
{
	if (digits > GH_SCALE_MAX || digits < -GH_SCALE_MAX)
		return gh_translation_fails(translation, "a numeric has too many digits after the point");
	/* of what is handed back the number and the rounded one differ: they must not be one vector (aggregate/enter.c) */
	if (number->mixed_scale && digits == number->scale &&
		!gh_add_instruction(translation, GH_OP_RESCALE, GH_CLASS_INT128, 0, 0, 1, number, number))
		return false;
	if (!change_scale(translation, digits > number->scale ? GH_OP_RESCALE : op, digits, number) ||
		(digits < 0 && !change_scale(translation, GH_OP_RESCALE, 0, number)))
		return false;
	*result = *number;
	result->mixed_scale = result->open_scale = false;
	return true;
}

/* floor(x), ceil(x), sign(x): a whole number. */
static bool
translate_whole(GhTranslation *translation, GhProgramOp op, GhOperand *number, GhOperand *result)
{
	result->value_class = GH_CLASS_INT128;
	return gh_add_instruction(translation, op, GH_CLASS_INT128, 0, op == GH_OP_SIGN ? 0 : number->scale, 1, number,
							  result);
}

/*
 * numeric(precision, scale): rounded, and within its precision; what is not goes back, for PostgreSQL's
 * error.
 */
static bool
translate_typmod(GhTranslation *translation, GhOperand *number, int32 typmod, GhOperand *result)
{
	int			scale = gh_scale_of_typmod(typmod);
	int			precision;
	GhOperand	rounded;

	if (scale < 0)
		return gh_translation_fails(translation, "a numeric type has no scale, or a large one");
	precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	if (!translate_rounded(translation, GH_OP_RESCALE, number, scale, &rounded))
		return false;
	*result = rounded;
	/* 128 bits hold no more digits */
	return precision > GH_SCALE_MAX + 1 ||
		gh_add_instruction(translation, GH_OP_BOUND, GH_CLASS_INT128, 0, Min(precision, GH_SCALE_MAX), 1, &rounded, result);
}

/* ---------------------------------------------------------------------- all */

/* A truth value of a whole number. */
static bool
translate_bool(GhTranslation *translation, GhOperand *args, GhOperand *result)
{
	result->value_class = GH_CLASS_BOOL;
	return gh_add_constant(translation, GH_CLASS_INT, false, 0, 0, &args[1]) &&
		gh_add_instruction(translation, GH_OP_NE, GH_CLASS_INT, 0, 0, 2, args, result);
}

/* A call of one of these functions; *is_one: it is. */
bool
gh_translate_number_call(GhTranslation *translation, Oid function, List *exprs, bool *is_one, GhOperand *result)
{
	GhOperand	args[3] = {{0}};
	int32		digits = 0;
	bool		has_digits = function == F_ROUND_NUMERIC_INT4 || function == F_TRUNC_NUMERIC_INT4 ||
		function == F_NUMERIC_NUMERIC_INT4;

	*is_one = has_digits || function == F_NUMERIC_DIV || function == F_CEIL_NUMERIC || function == F_CEILING_NUMERIC ||
		function == F_FLOOR_NUMERIC || function == F_SIGN_NUMERIC || function == F_BOOL_INT4;
	if (!*is_one || !gh_translate_value(translation, linitial(exprs), &args[0]))
		return false;
	if (args[0].value_class != (function == F_BOOL_INT4 ? GH_CLASS_INT : GH_CLASS_INT128))
		return gh_translation_fails(translation, "an argument is of another type");
	if (has_digits && !constant_int4(translation, lsecond(exprs), &digits))
		return false;
	switch (function)
	{
		case F_NUMERIC_DIV:
			return gh_translate_value(translation, lsecond(exprs), &args[1]) &&
				translate_quotient(translation, args, lsecond(exprs), result);
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
			if (!translate_rounded(translation, function == F_ROUND_NUMERIC_INT4 ? GH_OP_RESCALE : GH_OP_TRUNC, args,
								   digits, result))
				return false;
			/* what a parameter will be is not known yet */
			result->open_scale = list_member_ptr(translation->stand_ins, lsecond(exprs));
			return true;
		case F_NUMERIC_NUMERIC_INT4:
			return translate_typmod(translation, args, digits, result);
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
			return translate_whole(translation, GH_OP_CEIL, args, result);
		case F_FLOOR_NUMERIC:
			return translate_whole(translation, GH_OP_FLOOR, args, result);
		case F_SIGN_NUMERIC:
			return translate_whole(translation, GH_OP_SIGN, args, result);
		default:
			return translate_bool(translation, args, result);
	}
}
