/*
 * program_model.c
 *		What an instruction should do to a row, worked out another way than the engine does it:
 *		integers in 128 bits, 128 bits by the compiler's checked arithmetic, float4 by float8,
 *		numeric to float8 by its digits.
 *
 * PostgreSQL's rules are those of float.h, int.c, int8.c, numeric.c, date.c and varlena.c.
 */
#include "program_test.h"

#include <math.h>

/* An operation on arguments that are not NULL. */
typedef struct Case
{
	const GhProgram *program;
	const GhInstruction *in;
	const GhValue *args;
	uint64_t   *low;			/* of the result */
	GhInt128   *wide;			/* of a result of class INT128 */
} Case;

/* ----------------------------------------------------------------- integers */

static bool
fits(GhInt128 value, int bytes)
{
	GhInt128	limit = (GhInt128) 1 << (8 * bytes - 1);

	return value >= -limit && value < limit;
}

static Outcome
int_result(const Case *at, GhInt128 value, int bytes)
{
	*at->low = (uint64_t) value;
	return fits(value, bytes) ? OUTCOME_VALUE : OUTCOME_BACK;
}

/* Cut off to so many bytes, as C's conversions do. */
static int64_t
cut(int64_t value, int bytes)
{
	return bytes == 2 ? (int16_t) value : bytes == 4 ? (int32_t) value : value;
}

static Outcome
model_shift(const Case *at, int64_t a, int64_t count)
{
	int			width = at->in->width;

	if (count < 0 || count >= (width == 8 ? 64 : 32))
		return OUTCOME_BACK;
	if (at->in->op == GH_OP_SHIFT_RIGHT)
	{
		if (!fits(a, width))
			return OUTCOME_BACK;
		*at->low = (uint64_t) (int64_t) floorl(ldexpl((long double) a, (int) -count));
		return OUTCOME_VALUE;
	}
	*at->low = (uint64_t) cut((int64_t) ((uint64_t) a << count), width);
	return OUTCOME_VALUE;
}

static Outcome
model_int(const Case *at)
{
	int64_t		a = (int64_t) at->args[0].low;
	int64_t		b = (int64_t) at->args[1].low;
	int			width = at->in->width;

	switch (at->in->op)
	{
		case GH_OP_ADD:
			return int_result(at, (GhInt128) a + b, width);
		case GH_OP_SUB:
			return int_result(at, (GhInt128) a - b, width);
		case GH_OP_MUL:
			return int_result(at, (GhInt128) a * b, width);
		case GH_OP_DIV:
			return b == 0 ? OUTCOME_BACK : int_result(at, (GhInt128) a / b, width);
		case GH_OP_MOD:
			return b == 0 ? OUTCOME_BACK : int_result(at, (GhInt128) a % b, width);
		case GH_OP_NEG:
			return int_result(at, -(GhInt128) a, width);
		case GH_OP_ABS:
			return int_result(at, a < 0 ? -(GhInt128) a : a, width);
		case GH_OP_TO_INT:
			return int_result(at, a, width);
		case GH_OP_BIT_AND:
			return int_result(at, ~(~a | ~b), 8);
		case GH_OP_BIT_OR:
			return int_result(at, ~(~a & ~b), 8);
		case GH_OP_BIT_XOR:
			return int_result(at, (a | b) - (a & b), 8);
		case GH_OP_BIT_NOT:
			return int_result(at, -(GhInt128) a - 1, 8);
		case GH_OP_SHIFT_LEFT:
		case GH_OP_SHIFT_RIGHT:
			return model_shift(at, a, b);
		case GH_OP_ZONE_SHIFT:
			return model_zone(at->program, at->in, a, at->low);
		default:
			return model_dates(at->in, a, b, at->low);
	}
}

/* --------------------------------------------------------------- 128 bits */

static GhInt128
wide_of(GhValue value)
{
	return gh_int128(value.low, value.high);
}

static void
digits_of(GhInt128 value, char *text)
{
	GhUint128	rest = value < 0 ? -(GhUint128) value : (GhUint128) value;
	char		reversed[48];
	int			n = 0;

	if (value < 0)
		*text++ = '-';
	do
		reversed[n++] = (char) ('0' + (int) (rest % 10));
	while ((rest /= 10) > 0);
	while (n > 0)
		*text++ = reversed[--n];
	*text = '\0';
}

/* Digit by digit; the last one that goes decides. */
static Outcome
model_rescale(GhInt128 value, int digits, GhInt128 *result)
{
	int			last = 0;

	for (; digits > 0; digits--)
		if (__builtin_mul_overflow(value, 10, &value))
			return OUTCOME_BACK;
	for (; digits < 0; digits++)
	{
		last = (int) (value % 10);
		value /= 10;
	}
	*result = value + (last >= 5) - (last <= -5);
	return OUTCOME_VALUE;
}

static Outcome
model_to_float8(const Case *at, GhInt128 value)
{
	int			digits = at->in->immediate;
	char		text[64];
	size_t		length;
	GhInt128	exact = (GhInt128) 1 << 53;
	bool		easy = digits == 0 || (digits <= 22 && value <= exact && value >= -exact);

	digits_of(value, text);
	length = strlen(text);
	snprintf(text + length, sizeof(text) - length, "e-%d", digits);
	*at->low = gh_from_double(strtod(text, NULL));
	return fits(value, 8) && easy ? OUTCOME_VALUE : OUTCOME_EITHER;
}

static Outcome
model_int128(const Case *at)
{
	GhInt128	a = wide_of(at->args[0]);
	GhInt128	b = wide_of(at->args[1]);
	bool		overflow = false;
	GhInt128	rounded = 0;

	switch (at->in->op)
	{
		case GH_OP_ADD:
			overflow = __builtin_add_overflow(a, b, at->wide);
			break;
		case GH_OP_SUB:
			overflow = __builtin_sub_overflow(a, b, at->wide);
			break;
		case GH_OP_MUL:
			overflow = __builtin_mul_overflow(a, b, at->wide);
			break;
		case GH_OP_ABS:
			overflow = __builtin_mul_overflow(a, a < 0 ? -1 : 1, at->wide);
			break;
		case GH_OP_NEG:
			overflow = __builtin_mul_overflow(a, -1, at->wide);
			break;
		case GH_OP_RESCALE:
			overflow = model_rescale(a, at->in->immediate, at->wide) == OUTCOME_BACK;
			break;
		case GH_OP_FROM_INT:
			return model_rescale((int64_t) at->args[0].low, at->in->immediate, at->wide);
		case GH_OP_TO_INT:
			(void) model_rescale(a, -at->in->immediate, &rounded);
			return int_result(at, rounded, at->in->width);
		case GH_OP_TO_FLOAT8:
			return model_to_float8(at, a);
		default:
			return model_numeric(at->in, at->args, at->wide);
	}
	/* the smallest number of all may be handed back as well */
	if (!overflow && *at->wide == gh_int128(0, UINT64_C(1) << 63))
		return OUTCOME_EITHER;
	return overflow ? OUTCOME_BACK : OUTCOME_VALUE;
}

/* ------------------------------------------------------------------- floats */

static bool
infinite(double value)
{
	return isinf(value) != 0;
}

static Outcome
model_float_to_int(const Case *at, double a)
{
	long double rounded = rintl((long double) a);
	long double limit = ldexpl(1, 8 * at->in->width - 1);

	if (isnan(a) || rounded < -limit || rounded >= limit)
		return OUTCOME_BACK;
	*at->low = (uint64_t) (int64_t) rounded;
	return OUTCOME_VALUE;
}

/* + - * / of float8; a float4's exact result, or nearest float8, rounds to the same float4. */
static Outcome
model_arithmetic(const Case *at, double a, double b)
{
	bool		single = at->in->op_class == GH_CLASS_FLOAT4;
	volatile double result;
	bool		vanished;

	if (at->in->op == GH_OP_DIV && b == 0)
	{
		*at->low = gh_from_double(NAN);
		return isnan(a) ? OUTCOME_VALUE : OUTCOME_BACK;
	}
	result = at->in->op == GH_OP_ADD ? a + b : at->in->op == GH_OP_SUB ? a - b :
		at->in->op == GH_OP_MUL ? a * b : a / b;
	if (single)
		result = (float) result;
	*at->low = gh_from_double(result);
	if (infinite(result) && !infinite(a) && (at->in->op == GH_OP_DIV || !infinite(b)))
		return OUTCOME_BACK;
	vanished = result == 0 && a != 0 &&
		((at->in->op == GH_OP_MUL && b != 0) || (at->in->op == GH_OP_DIV && !infinite(b)));
	return vanished ? OUTCOME_BACK : OUTCOME_VALUE;
}

static Outcome
model_float(const Case *at)
{
	double		a = gh_to_double(at->args[0].low);
	double		b = gh_to_double(at->args[1].low);
	double		result;

	switch (at->in->op)
	{
		case GH_OP_NEG:
			result = copysign(a, signbit(a) ? 1 : -1);
			break;
		case GH_OP_ABS:
			result = fabs(a);
			break;
		case GH_OP_SQRT:
			if (a < 0)
				return OUTCOME_BACK;
			result = sqrt(a);
			break;
		case GH_OP_TRUNC:
			result = trunc(a);
			break;
		case GH_OP_FLOOR:
			result = floor(a);
			break;
		case GH_OP_CEIL:
			result = ceil(a);
			break;
		case GH_OP_ROUND:
			result = rint(a);
			break;
		case GH_OP_SIGN:
			result = isnan(a) || a == 0 ? 0 : copysign(1, a);
			break;
		case GH_OP_FROM_INT:
			result = (double) (long double) (int64_t) at->args[0].low;
			if (at->in->op_class == GH_CLASS_FLOAT4)
				result = (float) (long double) (int64_t) at->args[0].low;
			break;
		case GH_OP_TO_INT:
			return model_float_to_int(at, a);
		case GH_OP_TO_FLOAT4:
			result = (float) a;
			if ((infinite(result) && !infinite(a)) || (result == 0 && a != 0))
				return OUTCOME_BACK;
			break;
		default:
			return model_arithmetic(at, a, b);
	}
	*at->low = gh_from_double(result);
	return OUTCOME_VALUE;
}

/* -------------------------------------------------------------- comparisons */

static GhText
text_of(GhValue value, GhClass op_class)
{
	GhText		text = gh_text(value.low, value.high);

	while (op_class == GH_CLASS_BPCHAR && text.length > 0 && text.bytes[text.length - 1] == ' ')
		text.length--;
	return text;
}

static int
order_texts(GhText a, GhText b)
{
	uint64_t	i;

	for (i = 0; i < a.length && i < b.length; i++)
		if (a.bytes[i] != b.bytes[i])
			return a.bytes[i] < b.bytes[i] ? -1 : 1;
	return a.length < b.length ? -1 : a.length > b.length;
}

/* -1, 0, 1: NaN is the greatest */
static int
order(const GhInstruction *in, GhValue a, GhValue b)
{
	double		x = gh_to_double(a.low);
	double		y = gh_to_double(b.low);

	switch (in->op_class)
	{
		case GH_CLASS_INT128:
			return wide_of(a) < wide_of(b) ? -1 : wide_of(a) > wide_of(b);
		case GH_CLASS_FLOAT8:
			if (isnan(x) || isnan(y))
				return !!isnan(x) - !!isnan(y);
			return x < y ? -1 : x > y;
		case GH_CLASS_TEXT:
		case GH_CLASS_BPCHAR:
			return order_texts(text_of(a, in->op_class), text_of(b, in->op_class));
		default:
			return (int64_t) a.low < (int64_t) b.low ? -1 : (int64_t) a.low > (int64_t) b.low;
	}
}

static bool
compare(const GhInstruction *in, GhValue a, GhValue b)
{
	int			sign = order(in, a, b);

	switch (in->op)
	{
		case GH_OP_EQ:
			return sign == 0;
		case GH_OP_NE:
			return sign != 0;
		case GH_OP_LT:
			return sign < 0;
		case GH_OP_LE:
			return sign <= 0;
		case GH_OP_GT:
			return sign > 0;
		default:
			return sign >= 0;
	}
}

/* A chain of comparisons with OR: true where one is, else unknown where one is. */
static GhValue
model_in(const GhProgram *program, const GhInstruction *in, GhValue a)
{
	const GhList *list = &gh_program_lists(program)[in->immediate];
	const void *values = (const char *) program + list->values;
	GhValue		result = {0, 0, list->has_null || (a.null && list->count > 0)};
	uint32_t	i;

	for (i = 0; i < list->count && !a.null; i++)
	{
		GhValue		value = {0, 0, 0};

		if (list->value_class == GH_CLASS_INT)
			value.low = (uint64_t) ((const int64_t *) values)[i];
		else
		{
			value.low = (uint64_t) (uintptr_t) program + ((const GhListText *) values)[i].offset;
			value.high = ((const GhListText *) values)[i].length;
		}
		if (order(in, a, value) == 0)
		{
			result.low = 1;
			result.null = 0;
		}
	}
	return result;
}

/* ---------------------------------------------------------------------- all */

/* 0 false, 1 unknown, 2 true: AND is the least, OR the greatest, NOT turns it over. */
static int
truth(GhValue value)
{
	return value.null ? 1 : value.low ? 2 : 0;
}

static GhValue
of_truth(int value)
{
	GhValue		result = {value == 2, 0, value == 1};

	return result;
}

static bool
distinct(const GhInstruction *in, GhValue a, GhValue b)
{
	return a.null || b.null ? a.null != b.null : order(in, a, b) != 0;
}

static bool
model_with_nulls(const GhProgram *program, const GhInstruction *in, const GhValue *args,
				 GhValue *result)
{
	int			a = truth(args[0]);
	int			b = truth(args[1]);

	switch (in->op)
	{
		case GH_OP_DISTINCT:
			*result = of_truth(distinct(in, args[0], args[1]) ? 2 : 0);
			return true;
		case GH_OP_NOT_DISTINCT:
			*result = of_truth(distinct(in, args[0], args[1]) ? 0 : 2);
			return true;
		case GH_OP_AND:
			*result = of_truth(a < b ? a : b);
			return true;
		case GH_OP_OR:
			*result = of_truth(a > b ? a : b);
			return true;
		case GH_OP_NOT:
			*result = of_truth(2 - a);
			return true;
		case GH_OP_IS_TRUE:
			*result = of_truth(a == 2 ? 2 : 0);
			return true;
		case GH_OP_IS_NOT_TRUE:
			*result = of_truth(a == 2 ? 0 : 2);
			return true;
		case GH_OP_IS_FALSE:
			*result = of_truth(a == 0 ? 2 : 0);
			return true;
		case GH_OP_IS_NOT_FALSE:
			*result = of_truth(a == 0 ? 0 : 2);
			return true;
		case GH_OP_IS_NULL:
			*result = of_truth(args[0].null ? 2 : 0);
			return true;
		case GH_OP_IS_NOT_NULL:
			*result = of_truth(args[0].null ? 0 : 2);
			return true;
		case GH_OP_SELECT:
			*result = args[a == 2 ? 1 : 2];
			return true;
		case GH_OP_COALESCE:
			*result = args[args[0].null ? 1 : 0];
			return true;
		case GH_OP_IN:
			*result = model_in(program, in, args[0]);
			return true;
		default:
			return false;
	}
}

/* Which arguments there are, beyond the first, in operations whose NULLs spread. */
static bool
has_two(const GhInstruction *in)
{
	switch (in->op)
	{
		case GH_OP_NEG:
		case GH_OP_ABS:
		case GH_OP_SQRT:
		case GH_OP_TRUNC:
		case GH_OP_FLOOR:
		case GH_OP_CEIL:
		case GH_OP_ROUND:
		case GH_OP_SIGN:
		case GH_OP_BOUND:
		case GH_OP_BIT_NOT:
		case GH_OP_RESCALE:
		case GH_OP_FROM_INT:
		case GH_OP_TO_INT:
		case GH_OP_TO_FLOAT4:
		case GH_OP_TO_FLOAT8:
		case GH_OP_DATE_TO_TIMESTAMP:
		case GH_OP_TIMESTAMP_TO_DATE:
		case GH_OP_DATE_YEAR:
		case GH_OP_DATE_MONTH:
		case GH_OP_DATE_DAY:
		case GH_OP_DATE_WEEKDAY:
		case GH_OP_DATE_TO_YEAR:
		case GH_OP_DATE_TO_QUARTER:
		case GH_OP_DATE_TO_MONTH:
		case GH_OP_DATE_TO_WEEK:
		case GH_OP_ZONE_SHIFT:
		case GH_OP_UNPADDED:
		case GH_OP_LENGTH:
		case GH_OP_LENGTH_UTF8:
		case GH_OP_NUMERIC:
		case GH_OP_NUMERIC_SCALE:
			return false;
		default:
			return true;
	}
}

/* splitmix64, whose state is this number less the step that it begins with. */
static uint64_t
model_mix(uint64_t number)
{
	number ^= number >> 30;
	number *= UINT64_C(0xBF58476D1CE4E5B9);
	number ^= number >> 27;
	number *= UINT64_C(0x94D049BB133111EB);
	return number ^ number >> 31;
}

/* Words of eight bytes, the lowest first; those behind the last one, the first of them highest; how many there are. */
static uint64_t
model_hash_text(GhText text, uint64_t code)
{
	uint64_t	words = text.length / 8;
	uint64_t	rest = 0;
	uint64_t	i;

	for (i = 0; i < words; i++)
	{
		uint64_t	word = 0;
		int			b;

		for (b = 7; b >= 0; b--)
			word = word * 256 + text.bytes[8 * i + (uint64_t) b];
		code = model_mix(code + word);
	}
	for (i = 8 * words; i < text.length; i++)
		rest = rest * 256 + text.bytes[i];
	return model_mix(model_mix(code + rest) + text.length);
}

static uint64_t
model_hash(const GhInstruction *in, GhValue value, uint64_t code)
{
	GhText		text = gh_text(value.low, value.high);
	double		number;

	switch (in->op_class)
	{
		case GH_CLASS_BPCHAR:
			while (text.length > 0 && text.bytes[text.length - 1] == ' ')
				text.length--;
			return model_hash_text(text, code);
		case GH_CLASS_TEXT:
			return model_hash_text(text, code);
		case GH_CLASS_FLOAT8:
			memcpy(&number, &value.low, sizeof(number));
			return model_mix(code + (number == 0 ? 0 : number != number ? UINT64_C(0x7ff8) << 48 : value.low));
		case GH_CLASS_INT128:
			return model_mix(model_mix(code + value.low) + value.high);
		default:
			return model_mix(code + value.low);
	}
}

Outcome
model_instruction(const GhProgram *program, const GhInstruction *in, const GhValue *args,
				  GhValue *result)
{
	GhInt128	wide = 0;
	Case		at = {program, in, args, &result->low, &wide};
	Outcome		outcome;

	memset(result, 0, sizeof(*result));
	if (args[0].null || (has_two(in) && args[1].null) || in->op >= GH_OP_AND ||
		in->op == GH_OP_DISTINCT || in->op == GH_OP_NOT_DISTINCT)
	{
		if (!model_with_nulls(program, in, args, result))
			result->null = 1;
		return OUTCOME_VALUE;
	}
	if (in->op <= GH_OP_GE)
	{
		result->low = compare(in, args[0], args[1]);
		return OUTCOME_VALUE;
	}
	if (in->op == GH_OP_HASH)
	{
		result->low = model_hash(in, args[0], args[1].low);
		return OUTCOME_VALUE;
	}
	if (in->op_class == GH_CLASS_TEXT)
		return model_text(in, args, result);
	if (in->op == GH_OP_QUOTIENT || in->op == GH_OP_QUOTIENT_SCALE)
		return model_division(in, args, result);
	if (in->op_class == GH_CLASS_INT128)
		outcome = model_int128(&at);
	else if (in->op_class == GH_CLASS_FLOAT4 || in->op_class == GH_CLASS_FLOAT8)
		outcome = model_float(&at);
	else
		outcome = model_int(&at);
	if (result_class(in) == GH_CLASS_INT128)
	{
		result->low = (uint64_t) wide;
		result->high = (uint64_t) ((GhUint128) wide >> 64);
	}
	return outcome;
}
