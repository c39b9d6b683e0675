/*
 * program_model_numeric.c
 *		What the quotients, whole numbers and bounds of numerics should be: by their decimal digits, in groups of
 *		four as PostgreSQL has them, and one digit after the other.
 */
#include "program_test.h"

static GhInt128
wide_of(GhValue value)
{
	return gh_int128(value.low, value.high);
}

static GhUint128
magnitude_of(GhInt128 value)
{
	return value < 0 ? -(GhUint128) value : (GhUint128) value;
}

/* The digit that a number begins with, of 10000, and what power of 10000 it counts; 0 and 0 of 0. */
static int
first_group(GhInt128 value, int scale, int *first)
{
	char		digits[128];
	int			before = 0;		/* places before the point, a multiple of 4 */
	GhUint128	rest = magnitude_of(value);
	int			place;

	memset(digits, 0, sizeof(digits));
	/* the point stands behind place 47 */
	for (place = 47 + scale; rest > 0; place--)
	{
		digits[place] = (char) (rest % 10);
		rest /= 10;
	}
	*first = 0;
	for (place = 0; place + 3 < (int) sizeof(digits); place += 4)
	{
		*first = digits[place] * 1000 + digits[place + 1] * 100 + digits[place + 2] * 10 + digits[place + 3];
		before = 48 - place;
		if (*first != 0)
			return before / 4 - 1;
	}
	return 0;
}

/* As select_div_scale() chooses; -1: there is none, or not in a vector. */
static int
quotient_scale(const GhInstruction *in, const GhValue *args)
{
	int			first_a;
	int			first_b;
	int			weight_a = first_group(wide_of(args[0]), in->immediate, &first_a);
	int			weight_b = first_group(wide_of(args[1]), in->immediate, &first_b);
	int64_t		scale = 16 - 4 * (int64_t) (weight_a - weight_b - (first_a <= first_b));

	if ((int64_t) args[2].low > scale)
		scale = (int64_t) args[2].low;
	scale = scale < 0 ? 0 : scale;
	return wide_of(args[1]) == 0 || scale > 24 ? -1 : (int) scale;
}

/* A digit at a time; where the last digits are near what 128 bits hold it may go back as well. */
static Outcome
model_quotient(const GhValue *args, int scale, GhInt128 *wide)
{
	const GhUint128 large = (GhUint128) 10000000000000000000U * 1000000000000000000U;	/* 1e37 */
	GhUint128	b = magnitude_of(wide_of(args[1]));
	GhUint128	quotient = magnitude_of(wide_of(args[0])) / b;
	GhUint128	rest = magnitude_of(wide_of(args[0])) % b;
	bool		negative = (wide_of(args[0]) < 0) != (wide_of(args[1]) < 0);
	GhInt128	value;
	bool		easy;
	int			i;

	for (i = 0; i < scale; i++)
	{
		if (rest >> 124 != 0 || quotient >> 123 != 0)
			return b >= large ? OUTCOME_EITHER : OUTCOME_BACK;
		quotient = quotient * 10 + rest * 10 / b;
		rest = rest * 10 % b;
	}
	quotient += rest >= b - rest;
	easy = b < large && quotient / 10 < large;
	if (quotient >> 127 != 0)
		return OUTCOME_BACK;
	value = (GhInt128) quotient;
	for (; i < 24; i++)
		if (__builtin_mul_overflow(value, 10, &value))
			return easy ? OUTCOME_BACK : OUTCOME_EITHER;
	*wide = negative ? -value : value;
	return easy ? OUTCOME_VALUE : OUTCOME_EITHER;
}

/* The quotient's digits: how many, or itself. */
Outcome
model_division(const GhInstruction *in, const GhValue *args, GhValue *result)
{
	int			scale = quotient_scale(in, args);
	GhInt128	wide = 0;
	Outcome		outcome;

	if (args[2].null)
	{
		result->null = 1;
		return OUTCOME_VALUE;
	}
	if (scale < 0)
		return OUTCOME_BACK;
	if (in->op == GH_OP_QUOTIENT_SCALE)
	{
		result->low = (uint64_t) scale;
		return OUTCOME_VALUE;
	}
	outcome = model_quotient(args, scale, &wide);
	result->low = (uint64_t) wide;
	result->high = (uint64_t) ((GhUint128) wide >> 64);
	return outcome;
}

/* To a whole number, by taking digits away and looking whether any was not 0. */
static GhInt128
model_whole(GhProgramOp op, GhInt128 value, int digits)
{
	bool		rest = false;
	bool		negative = value < 0;

	for (; digits > 0; digits--)
	{
		rest |= value % 10 != 0;
		value /= 10;
	}
	if (rest && op == GH_OP_FLOOR && negative)
		return value - 1;
	if (rest && op == GH_OP_CEIL && !negative)
		return value + 1;
	return value;
}

/* Operations on one numeric, or two, whose results are never out of 128 bits. */
Outcome
model_numeric(const GhInstruction *in, const GhValue *args, GhInt128 *wide)
{
	GhInt128	a = wide_of(args[0]);
	GhInt128	b = wide_of(args[1]);
	GhUint128	rest = magnitude_of(a);
	int			i;

	switch (in->op)
	{
		case GH_OP_MOD:
			if (b == 0)
				return OUTCOME_BACK;
			rest %= magnitude_of(b);
			*wide = a < 0 ? -(GhInt128) rest : (GhInt128) rest;
			return OUTCOME_VALUE;
		case GH_OP_SIGN:
			*wide = a < 0 ? -1 : a != 0;
			return OUTCOME_VALUE;
		case GH_OP_BOUND:
			*wide = a;
			for (i = 0; i < in->immediate; i++)
				rest /= 10;
			return rest == 0 ? OUTCOME_VALUE : OUTCOME_BACK;
		default:
			*wide = model_whole((GhProgramOp) in->op, a, in->immediate);
			return OUTCOME_VALUE;
	}
}

/* ------------------------------------------------------------------- stored */

#define PLACES 400				/* decimal digits; the point stands behind POINT of them */
#define POINT 80

/* The digits of a stored numeric in their places; false: there are none, or not so many. */
static bool
place_digits(GhText text, int weight, size_t first, char *places)
{
	memset(places, 0, PLACES);
	for (size_t at = first; at < text.length; at += 2, weight--)
	{
		int			group = text.bytes[at] | text.bytes[at + 1] << 8;
		int			place = POINT - 4 * (weight + 1);

		if (group > 9999 || place < 0 || place + 4 > PLACES)
			return false;
		for (int i = 3; i >= 0; i--, group /= 10)
			places[place + i] = (char) (group % 10);
	}
	return true;
}

/* With so many digits behind the point, of which not all may be shown; no others may be but zeros. */
static bool
whole_of(const char *places, int shown, int digits, GhUint128 *whole)
{
	const GhUint128 most = ((GhUint128) 1 << 127) - 1;

	*whole = 0;
	for (int place = 0; place < POINT + digits; place++)
	{
		GhUint128	digit = place < POINT + shown ? (GhUint128) places[place] : 0;

		if (*whole > (most - digit) / 10)
			return false;
		*whole = *whole * 10 + digit;
	}
	for (int place = POINT + shown; place < PLACES; place++)
		if (places[place] != 0)
			return false;
	return true;
}

Outcome
model_stored(const GhInstruction *in, GhText text, GhValue *result)
{
	char		places[PLACES];
	int			head = text.length < 2 ? 0xc000 : text.bytes[0] | text.bytes[1] << 8;
	bool		is_short = head >> 14 == 2;
	size_t		first = is_short ? 2 : 4;
	int			shown = is_short ? head >> 7 & 0x3f : head & 0x3fff;
	bool		negative = is_short ? (head >> 13 & 1) != 0 : head >> 14 == 1;
	int			weight;
	GhUint128	whole;

	if (head >> 14 == 3 || text.length % 2 != 0 || text.length < first)
		return OUTCOME_BACK;
	weight = is_short ? (head & 0x3f) - (head & 0x40) : (int16_t) (text.bytes[2] | text.bytes[3] << 8);
	if (in->op == GH_OP_NUMERIC_SCALE)
	{
		result->low = (uint64_t) shown;
		return OUTCOME_VALUE;
	}
	/* of a number that starts with zeros, which none does, only the weight is looked at */
	if (shown > in->immediate || (text.length > first && weight > 9) ||
		!place_digits(text, weight, first, places) || !whole_of(places, shown, in->immediate, &whole))
		return OUTCOME_BACK;
	if (negative)
		whole = -whole;
	result->low = (uint64_t) whole;
	result->high = (uint64_t) (whole >> 64);
	return OUTCOME_VALUE;
}
