/*
 * program_int128.h
 *		What an instruction does to the 128-bit integers of one row: numeric values times a
 *		power of ten, the scale, which is the same in a whole vector.
 *
 * PostgreSQL's numeric adds, subtracts and multiplies exactly, so these are its results
 * where 128 bits hold them; who writes the program keeps track of the scale, and of the one
 * that is displayed.  NaN and the infinities have no such value: their rows went back when
 * they were loaded.
 */
#ifndef GH_PROGRAM_INT128_H
#define GH_PROGRAM_INT128_H

#include "engine/program/program_float.h"

typedef __int128 GhInt128;
typedef unsigned __int128 GhUint128;

GH_EVERYWHERE GhInt128
gh_int128(uint64_t low, uint64_t high)
{
	return (GhInt128) ((GhUint128) high << 64 | low);
}

/* digits from 0 to GH_SCALE_MAX, and one more: that fits as well */
GH_EVERYWHERE GhInt128
gh_power_of_ten(int digits)
{
	GhUint128	power = 1;
	GhUint128	square = 10;	/* the last one may overflow, and is not used then */

	for (; digits > 0; digits >>= 1)
	{
		if (digits & 1)
			power *= square;
		square *= square;
	}
	return (GhInt128) power;
}

GH_EVERYWHERE GhInt128
gh_int128_add(GhInt128 a, GhInt128 b, uint64_t *bad)
{
	GhInt128	sum = (GhInt128) ((GhUint128) a + (GhUint128) b);

	*bad |= ((a ^ sum) & (b ^ sum)) < 0;
	return sum;
}

GH_EVERYWHERE GhInt128
gh_int128_sub(GhInt128 a, GhInt128 b, uint64_t *bad)
{
	GhInt128	difference = (GhInt128) ((GhUint128) a - (GhUint128) b);

	*bad |= ((a ^ b) & (a ^ difference)) < 0;
	return difference;
}

GH_EVERYWHERE GhUint128
gh_int128_magnitude(GhInt128 a)
{
	return a < 0 ? -(GhUint128) a : (GhUint128) a;
}

/* Of magnitudes, in halves: the upper ones must not meet, nor what crosses them overflow. */
GH_EVERYWHERE GhInt128
gh_int128_mul(GhInt128 a, GhInt128 b, uint64_t *bad)
{
	GhUint128	x = gh_int128_magnitude(a);
	GhUint128	y = gh_int128_magnitude(b);
	uint64_t	x_high = (uint64_t) (x >> 64);
	uint64_t	y_high = (uint64_t) (y >> 64);
	GhUint128	crossed = (GhUint128) x_high * (uint64_t) y + (GhUint128) y_high * (uint64_t) x;
	GhUint128	lower = (GhUint128) (uint64_t) x * (uint64_t) y;
	GhUint128	product = lower + (crossed << 64);

	*bad |= ((x_high != 0) & (y_high != 0)) | (crossed >> 64 != 0) | (product < lower) |
		(product >> 127 != 0);
	return (GhInt128) ((a < 0) != (b < 0) ? -product : product);
}

GH_EVERYWHERE GhInt128
gh_int128_neg(GhInt128 a, int digits, uint64_t *bad)
{
	(void) digits;
	return gh_int128_sub(0, a, bad);
}

GH_EVERYWHERE GhInt128
gh_int128_abs(GhInt128 a, int digits, uint64_t *bad)
{
	return a < 0 ? gh_int128_neg(a, digits, bad) : a;
}

/* The sign is the dividend's, as with int8. */
GH_EVERYWHERE GhInt128
gh_int128_mod(GhInt128 a, GhInt128 b, uint64_t *bad)
{
	*bad |= b == 0;
	return (GhUint128) b + 1 <= 1 ? 0 : a % b;
}

GH_EVERYWHERE GhInt128
gh_int128_trunc(GhInt128 a, int digits, uint64_t *bad)
{
	(void) bad;
	return a / gh_power_of_ten(digits);
}

GH_EVERYWHERE GhInt128
gh_int128_floor(GhInt128 a, int digits, uint64_t *bad)
{
	GhInt128	power = gh_power_of_ten(digits);
	GhInt128	quotient = a / power;

	(void) bad;
	return quotient - (quotient * power > a);
}

GH_EVERYWHERE GhInt128
gh_int128_ceil(GhInt128 a, int digits, uint64_t *bad)
{
	GhInt128	power = gh_power_of_ten(digits);
	GhInt128	quotient = a / power;

	(void) bad;
	return quotient + (quotient * power < a);
}

GH_EVERYWHERE GhInt128
gh_int128_sign(GhInt128 a, int digits, uint64_t *bad)
{
	(void) digits;
	(void) bad;
	return (a > 0) - (a < 0);
}

GH_EVERYWHERE GhInt128
gh_int128_bound(GhInt128 a, int digits, uint64_t *bad)
{
	*bad |= gh_int128_magnitude(a) >= (GhUint128) gh_power_of_ten(digits);
	return a;
}

/* Fewer digits: halves are rounded away from zero.  The remainder twice stays in range. */
GH_EVERYWHERE GhInt128
gh_int128_rescale(GhInt128 a, int digits, uint64_t *bad)
{
	GhInt128	power = gh_power_of_ten(digits < 0 ? -digits : digits);
	GhInt128	quotient;
	GhInt128	remainder;

	if (digits >= 0)
		return gh_int128_mul(a, power, bad);
	quotient = a / power;
	remainder = a - quotient * power;
	if (remainder >= power - remainder)
		quotient++;
	else if (-remainder >= power + remainder)
		quotient--;
	return quotient;
}

/* ------------------------------------------------------ to and from one word */

GH_EVERYWHERE GhInt128
gh_int128_from_int(uint64_t a, int digits, uint64_t *bad)
{
	return gh_int128_mul((int64_t) a, gh_power_of_ten(digits), bad);
}

GH_EVERYWHERE uint64_t
gh_int128_to_int(GhInt128 a, int width, int digits, uint64_t *bad)
{
	GhInt128	rounded = gh_int128_rescale(a, -digits, bad);

	*bad |= (rounded != (int64_t) rounded) | gh_int_beyond((uint64_t) rounded, width);
	return (uint64_t) rounded;
}

/*
 * PostgreSQL reads the digits, so its result is the nearest float8.  So is ours where value
 * and power of ten are float8s, and one division rounds; and an integer's, rounded once.
 */
GH_EVERYWHERE uint64_t
gh_int128_to_float8(GhInt128 a, int width, int digits, uint64_t *bad)
{
	int64_t		value = (int64_t) a;
	bool		exact = gh_int128_magnitude(a) <= (UINT64_C(1) << 53);
	double		power = 1;

	(void) width;
	if (a != value || (digits > 0 && (!exact || digits > 22)))
	{
		*bad |= 1;
		return 0;
	}
	while (digits-- > 0)
		power = gh_double_mul(power, 10);
	return gh_from_double(gh_double_div((double) value, power));
}

#define GH_DEFINE_INT128_COMPARISON(name, operator) \
GH_EVERYWHERE uint64_t \
gh_int128_##name(GhInt128 a, GhInt128 b) \
{ \
	return a operator b; \
}
GH_DEFINE_INT128_COMPARISON(eq, ==)
GH_DEFINE_INT128_COMPARISON(ne, !=)
GH_DEFINE_INT128_COMPARISON(lt, <)
GH_DEFINE_INT128_COMPARISON(le, <=)
GH_DEFINE_INT128_COMPARISON(gt, >)
GH_DEFINE_INT128_COMPARISON(ge, >=)

/* By operation: f(a, immediate, bad), f(a, b, bad), f(a, b). */
#define GH_INT128_FUNCTIONS_1(X) \
	X(GH_OP_NEG, GH_CLASS_INT128, gh_int128_neg) \
	X(GH_OP_ABS, GH_CLASS_INT128, gh_int128_abs) \
	X(GH_OP_RESCALE, GH_CLASS_INT128, gh_int128_rescale) \
	X(GH_OP_TRUNC, GH_CLASS_INT128, gh_int128_trunc) \
	X(GH_OP_FLOOR, GH_CLASS_INT128, gh_int128_floor) \
	X(GH_OP_CEIL, GH_CLASS_INT128, gh_int128_ceil) \
	X(GH_OP_SIGN, GH_CLASS_INT128, gh_int128_sign) \
	X(GH_OP_BOUND, GH_CLASS_INT128, gh_int128_bound)

#define GH_INT128_FUNCTIONS_2(X) \
	X(GH_OP_ADD, GH_CLASS_INT128, gh_int128_add) \
	X(GH_OP_SUB, GH_CLASS_INT128, gh_int128_sub) \
	X(GH_OP_MUL, GH_CLASS_INT128, gh_int128_mul) \
	X(GH_OP_MOD, GH_CLASS_INT128, gh_int128_mod)

/* From one word, and to one: f(a, immediate, bad), f(a, width, immediate, bad). */
#define GH_INT128_FROM_WORD(X) \
	X(GH_OP_FROM_INT, GH_CLASS_INT128, gh_int128_from_int)

#define GH_INT128_TO_WORD(X) \
	X(GH_OP_TO_INT, GH_CLASS_INT128, gh_int128_to_int) \
	X(GH_OP_TO_FLOAT8, GH_CLASS_INT128, gh_int128_to_float8)

#define GH_INT128_COMPARISONS(X) \
	X(GH_OP_EQ, GH_CLASS_INT128, gh_int128_eq) \
	X(GH_OP_NE, GH_CLASS_INT128, gh_int128_ne) \
	X(GH_OP_LT, GH_CLASS_INT128, gh_int128_lt) \
	X(GH_OP_LE, GH_CLASS_INT128, gh_int128_le) \
	X(GH_OP_GT, GH_CLASS_INT128, gh_int128_gt) \
	X(GH_OP_GE, GH_CLASS_INT128, gh_int128_ge)

#endif							/* GH_PROGRAM_INT128_H */
