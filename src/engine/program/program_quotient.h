/*
 * program_quotient.h
 *		Division of the 128-bit integers that are numerics.
 *
 * PostgreSQL's quotient has as many digits after the point as its select_div_scale() chooses from the
 * two numbers, so that some 16 of them count: by where their first digits are, to the base of 10000, and
 * by how many digits are shown of each.  It is rounded there, halves away from zero.  All quotients of
 * a vector have one scale here, so that those of fewer digits are filled up with zeros; whoever shows them
 * needs the scales themselves, which are another instruction.
 */
#ifndef GH_PROGRAM_QUOTIENT_H
#define GH_PROGRAM_QUOTIENT_H

#include "engine/program/program_int128.h"

#define GH_SIGNIFICANT_DIGITS 16	/* PostgreSQL's NUMERIC_MIN_SIG_DIGITS */
#define GH_BASE_DIGITS 4		/* decimal ones of its digits */
#define GH_MOST_DIGITS 38		/* 10 to the power of it fits in 127 bits */

/* 64 of 0 */
GH_EVERYWHERE int
gh_leading_zeros(uint64_t word)
{
#ifdef __CUDA_ARCH__
	return __clzll((long long) word);
#else
	return word == 0 ? 64 : __builtin_clzll(word);
#endif
}

/* 0 of 0.  By the number of bits, of which a digit has 3.3: that gives as many, or one too few. */
GH_CALLED int
gh_decimal_digits(GhUint128 value)
{
	uint64_t	high = (uint64_t) (value >> 64);
	int			bits = high != 0 ? 128 - gh_leading_zeros(high) : 64 - gh_leading_zeros((uint64_t) value);
	int			digits = bits * 1233 >> 12;

	return digits + (value >= (GhUint128) gh_power_of_ten(digits));
}

/* The first digit to the base of 10000, and the power of 10000 that it counts; both are 0 of 0. */
GH_EVERYWHERE int
gh_numeric_weight(GhUint128 value, int scale, int *first)
{
	int			exponent = gh_decimal_digits(value) - 1 - scale;
	int			weight = (exponent >= 0 ? exponent : exponent - (GH_BASE_DIGITS - 1)) / GH_BASE_DIGITS;
	int			behind = scale + GH_BASE_DIGITS * weight;

	*first = 0;
	if (value == 0)
		return 0;
	if (behind >= 0)
		*first = (int) (value / (GhUint128) gh_power_of_ten(behind));
	else
		*first = (int) (value * (GhUint128) gh_power_of_ten(-behind));
	return weight;
}

/* Digits after the point of a / b, both of `scale` of them, where `shown` are shown of one or the other. */
GH_CALLED int
gh_quotient_scale(GhInt128 a, GhInt128 b, int64_t shown, int scale, uint64_t *bad)
{
	int			first_a;
	int			first_b;
	int			weight = gh_numeric_weight(gh_int128_magnitude(a), scale, &first_a) -
		gh_numeric_weight(gh_int128_magnitude(b), scale, &first_b);
	int64_t		digits;

	if (first_a <= first_b)
		weight--;
	digits = GH_SIGNIFICANT_DIGITS - GH_BASE_DIGITS * weight;
	if (digits < shown)
		digits = shown;
	if (digits < 0)
		digits = 0;
	if (b != 0 && digits <= GH_QUOTIENT_SCALE)
		return (int) digits;
	*bad |= 1;
	return 0;
}

/* Of so many digits after the point, then filled up: long division, some digits at a time. */
GH_CALLED GhInt128
gh_quotient(GhInt128 a, GhInt128 b, int digits, uint64_t *bad)
{
	GhUint128	x = gh_int128_magnitude(a);
	GhUint128	y = b == 0 ? 1 : gh_int128_magnitude(b);
	GhUint128	quotient = x / y;
	GhUint128	rest = x - quotient * y;
	int			most = GH_MOST_DIGITS - gh_decimal_digits(y);
	GhUint128	result;

	for (int left = digits; left > 0 && *bad == 0;)
	{
		int			step = left < most ? left : most;
		GhUint128	power = (GhUint128) gh_power_of_ten(step > 0 ? step : 0);
		GhUint128	more = rest * power / y;

		*bad |= (step <= 0) | (gh_decimal_digits(quotient) + step > GH_MOST_DIGITS);
		quotient = quotient * power + more;
		rest = rest * power - more * y;
		left -= step;
	}
	quotient += rest >= y - rest;
	*bad |= quotient >> 127 != 0;
	result = (GhUint128) gh_int128_mul((GhInt128) quotient, gh_power_of_ten(GH_QUOTIENT_SCALE - digits), bad);
	return (GhInt128) ((a < 0) != (b < 0) ? -result : result);
}

#endif							/* GH_PROGRAM_QUOTIENT_H */
