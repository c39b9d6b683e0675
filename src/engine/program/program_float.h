/*
 * program_float.h
 *		What an instruction does to the floating-point numbers of one row, as PostgreSQL's
 *		float.h and float.c do it: NaNs are equal to each other and greater than all else,
 *		-0 is 0, an infinity out of finite numbers and a 0 out of others are errors.
 *
 * The results are the same everywhere because IEEE 754 rounds these operations exactly: +, -,
 * *, / and the square root.  Kernels use the intrinsics that are never contracted into a
 * fused multiply-add; on the CPU no function adds to a product.  Which bits a NaN has is not
 * defined.  Of libm there is sqrt() alone, which compilers name for the sake of errno though
 * it is never called with a negative number: rounding to an integer is done by additions.
 */
#ifndef GH_PROGRAM_FLOAT_H
#define GH_PROGRAM_FLOAT_H

#include "engine/program/program_ops.h"

#include <string.h>

GH_EVERYWHERE double
gh_to_double(uint64_t bits)
{
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

GH_EVERYWHERE uint64_t
gh_from_double(double value)
{
	uint64_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

#define GH_DOUBLE_SIGN (UINT64_C(1) << 63)
#define GH_DOUBLE_INFINITY (UINT64_C(0x7FF) << 52)

GH_EVERYWHERE bool
gh_is_inf(double value)
{
	return (gh_from_double(value) & ~GH_DOUBLE_SIGN) == GH_DOUBLE_INFINITY;
}

GH_EVERYWHERE bool
gh_is_nan(double value)
{
	return (gh_from_double(value) & ~GH_DOUBLE_SIGN) > GH_DOUBLE_INFINITY;
}

/* ------------------------------------------ the exactly rounded operations */

#ifdef __CUDA_ARCH__
#define GH_DEFINE_ROUNDED(name, operator, double_rounded, single_rounded) \
GH_EVERYWHERE double gh_double_##name(double a, double b) { return double_rounded(a, b); } \
GH_EVERYWHERE double gh_single_##name(double a, double b) \
{ return single_rounded((float) a, (float) b); }
#else
#define GH_DEFINE_ROUNDED(name, operator, double_rounded, single_rounded) \
GH_EVERYWHERE double gh_double_##name(double a, double b) { return a operator b; } \
GH_EVERYWHERE double gh_single_##name(double a, double b) \
{ return (float) ((float) a operator (float) b); }
#endif

GH_DEFINE_ROUNDED(add, +, __dadd_rn, __fadd_rn)
GH_DEFINE_ROUNDED(sub, -, __dsub_rn, __fsub_rn)
GH_DEFINE_ROUNDED(mul, *, __dmul_rn, __fmul_rn)
GH_DEFINE_ROUNDED(div, /, __ddiv_rn, __fdiv_rn)

/* Of a number that is not negative, or +0. */
GH_EVERYWHERE double
gh_double_sqrt(double a)
{
#ifdef __CUDA_ARCH__
	return __dsqrt_rn(a);
#else
	return __builtin_sqrt(a);
#endif
}

/* To the nearest integer, ties to even: beyond 2^52 there are but integers. */
GH_EVERYWHERE double
gh_double_round(double a)
{
	double		shift = gh_to_double((gh_from_double(a) & GH_DOUBLE_SIGN) | gh_from_double(0x1p52));
	double		magnitude = gh_to_double(gh_from_double(a) & ~GH_DOUBLE_SIGN);

	return magnitude < 0x1p52 ? gh_double_sub(gh_double_add(a, shift), shift) : a;
}

/* --------------------------------------------------------------- arithmetic */

/* FLOAT8 and FLOAT4, whose values come and go as those of a float8. */
#define GH_DEFINE_FLOAT_ARITHMETIC(size) \
GH_EVERYWHERE uint64_t \
gh_##size##_float_add(uint64_t a_bits, uint64_t b_bits, int width, uint64_t *bad) \
{ \
	double		a = gh_to_double(a_bits); \
	double		b = gh_to_double(b_bits); \
	double		sum = gh_##size##_add(a, b); \
\
	(void) width; \
	*bad |= gh_is_inf(sum) && !gh_is_inf(a) && !gh_is_inf(b); \
	return gh_from_double(sum); \
} \
\
GH_EVERYWHERE uint64_t \
gh_##size##_float_sub(uint64_t a_bits, uint64_t b_bits, int width, uint64_t *bad) \
{ \
	double		a = gh_to_double(a_bits); \
	double		b = gh_to_double(b_bits); \
	double		difference = gh_##size##_sub(a, b); \
\
	(void) width; \
	*bad |= gh_is_inf(difference) && !gh_is_inf(a) && !gh_is_inf(b); \
	return gh_from_double(difference); \
} \
\
GH_EVERYWHERE uint64_t \
gh_##size##_float_mul(uint64_t a_bits, uint64_t b_bits, int width, uint64_t *bad) \
{ \
	double		a = gh_to_double(a_bits); \
	double		b = gh_to_double(b_bits); \
	double		product = gh_##size##_mul(a, b); \
\
	(void) width; \
	*bad |= (gh_is_inf(product) && !gh_is_inf(a) && !gh_is_inf(b)) || \
		(product == 0 && a != 0 && b != 0); \
	return gh_from_double(product); \
} \
\
/* By 0 it is an error, but for NaN. */ \
GH_EVERYWHERE uint64_t \
gh_##size##_float_div(uint64_t a_bits, uint64_t b_bits, int width, uint64_t *bad) \
{ \
	double		a = gh_to_double(a_bits); \
	double		b = gh_to_double(b_bits); \
	double		quotient = gh_##size##_div(a, b == 0 ? 1 : b); \
\
	(void) width; \
	*bad |= (b == 0 && !gh_is_nan(a)) || (gh_is_inf(quotient) && !gh_is_inf(a)) || \
		(quotient == 0 && a != 0 && !gh_is_inf(b)); \
	return gh_from_double(quotient); \
}

GH_DEFINE_FLOAT_ARITHMETIC(double)
GH_DEFINE_FLOAT_ARITHMETIC(single)

GH_EVERYWHERE uint64_t
gh_float_neg(uint64_t bits, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return bits ^ GH_DOUBLE_SIGN;
}

GH_EVERYWHERE uint64_t
gh_float_abs(uint64_t bits, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return bits & ~GH_DOUBLE_SIGN;
}

/* It neither overflows nor vanishes; of -0 it is -0, and of NaN itself. */
GH_EVERYWHERE uint64_t
gh_float_sqrt(uint64_t bits, int width, uint64_t *bad)
{
	double		a = gh_to_double(bits);

	(void) width;
	*bad |= a < 0;
	return a > 0 ? gh_from_double(gh_double_sqrt(a)) : bits;
}

/* ---------------------------------------------------------- to whole numbers */

/* A zero has the sign of what it was made of, as with rint() and the like. */
GH_EVERYWHERE uint64_t
gh_signed_like(double value, uint64_t bits)
{
	return gh_from_double(value) | (bits & GH_DOUBLE_SIGN);
}

GH_EVERYWHERE uint64_t
gh_float_round(uint64_t bits, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return gh_signed_like(gh_double_round(gh_to_double(bits)), bits);
}

GH_EVERYWHERE uint64_t
gh_float_floor(uint64_t bits, int width, uint64_t *bad)
{
	double		a = gh_to_double(bits);
	double		rounded = gh_double_round(a);

	(void) width;
	(void) bad;
	return gh_signed_like(rounded > a ? gh_double_sub(rounded, 1) : rounded, bits);
}

GH_EVERYWHERE uint64_t
gh_float_ceil(uint64_t bits, int width, uint64_t *bad)
{
	double		a = gh_to_double(bits);
	double		rounded = gh_double_round(a);

	(void) width;
	(void) bad;
	return gh_signed_like(rounded < a ? gh_double_add(rounded, 1) : rounded, bits);
}

GH_EVERYWHERE uint64_t
gh_float_trunc(uint64_t bits, int width, uint64_t *bad)
{
	return gh_to_double(bits) < 0 ? gh_float_ceil(bits, width, bad) : gh_float_floor(bits, width, bad);
}

/* Of NaN it is 0. */
GH_EVERYWHERE uint64_t
gh_float_sign(uint64_t bits, int width, uint64_t *bad)
{
	double		a = gh_to_double(bits);

	(void) width;
	(void) bad;
	return gh_from_double(a > 0 ? 1 : a < 0 ? -1 : 0);
}

/* -------------------------------------------------------------- comparisons */

#define GH_DEFINE_FLOAT_COMPARISON(name, condition) \
GH_EVERYWHERE uint64_t \
gh_float_##name(uint64_t a_bits, uint64_t b_bits, int width, uint64_t *bad) \
{ \
	double		a = gh_to_double(a_bits); \
	double		b = gh_to_double(b_bits); \
\
	(void) width; \
	(void) bad; \
	return condition; \
}
GH_DEFINE_FLOAT_COMPARISON(eq, (a == b) | ((a != a) & (b != b)))
GH_DEFINE_FLOAT_COMPARISON(ne, (a != b) & ((a == a) | (b == b)))
GH_DEFINE_FLOAT_COMPARISON(lt, (a < b) | ((a == a) & (b != b)))
GH_DEFINE_FLOAT_COMPARISON(le, (a <= b) | (b != b))
GH_DEFINE_FLOAT_COMPARISON(gt, (a > b) | ((a != a) & (b == b)))
GH_DEFINE_FLOAT_COMPARISON(ge, (a >= b) | (a != a))

/* -------------------------------------------------------------- conversions */

GH_EVERYWHERE uint64_t
gh_float8_from_int(uint64_t a, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return gh_from_double((double) (int64_t) a);
}

/* At once: by way of a float8 some would be rounded twice. */
GH_EVERYWHERE uint64_t
gh_float4_from_int(uint64_t a, int width, uint64_t *bad)
{
	(void) width;
	(void) bad;
	return gh_from_double((float) (int64_t) a);
}

/* The upper limit is one more than the greatest number, which float8 may not have. */
GH_EVERYWHERE uint64_t
gh_float_to_int(uint64_t bits, int width, uint64_t *bad)
{
	double		rounded = gh_double_round(gh_to_double(bits));
	bool		fits = (rounded >= -0x1p63) & (rounded < 0x1p63);
	uint64_t	value = fits ? (uint64_t) (int64_t) rounded : 0;

	*bad |= (!fits) | gh_int_beyond(value, width);
	return value;
}

GH_EVERYWHERE uint64_t
gh_float8_to_float4(uint64_t bits, int width, uint64_t *bad)
{
	double		a = gh_to_double(bits);
	double		rounded = (float) a;

	(void) width;
	*bad |= (gh_is_inf(rounded) && !gh_is_inf(a)) || (rounded == 0 && a != 0);
	return gh_from_double(rounded);
}

/* By operation and class, as in program_ops.h. */
#define GH_FLOAT_FUNCTIONS_1(X) \
	X(GH_OP_NEG, GH_CLASS_FLOAT4, gh_float_neg) \
	X(GH_OP_ABS, GH_CLASS_FLOAT4, gh_float_abs) \
	X(GH_OP_NEG, GH_CLASS_FLOAT8, gh_float_neg) \
	X(GH_OP_ABS, GH_CLASS_FLOAT8, gh_float_abs) \
	X(GH_OP_SQRT, GH_CLASS_FLOAT8, gh_float_sqrt) \
	X(GH_OP_TRUNC, GH_CLASS_FLOAT8, gh_float_trunc) \
	X(GH_OP_FLOOR, GH_CLASS_FLOAT8, gh_float_floor) \
	X(GH_OP_CEIL, GH_CLASS_FLOAT8, gh_float_ceil) \
	X(GH_OP_ROUND, GH_CLASS_FLOAT8, gh_float_round) \
	X(GH_OP_SIGN, GH_CLASS_FLOAT8, gh_float_sign) \
	X(GH_OP_FROM_INT, GH_CLASS_FLOAT4, gh_float4_from_int) \
	X(GH_OP_FROM_INT, GH_CLASS_FLOAT8, gh_float8_from_int) \
	X(GH_OP_TO_INT, GH_CLASS_FLOAT8, gh_float_to_int) \
	X(GH_OP_TO_FLOAT4, GH_CLASS_FLOAT8, gh_float8_to_float4)

#define GH_FLOAT_FUNCTIONS_2(X) \
	X(GH_OP_ADD, GH_CLASS_FLOAT4, gh_single_float_add) \
	X(GH_OP_SUB, GH_CLASS_FLOAT4, gh_single_float_sub) \
	X(GH_OP_MUL, GH_CLASS_FLOAT4, gh_single_float_mul) \
	X(GH_OP_DIV, GH_CLASS_FLOAT4, gh_single_float_div) \
	X(GH_OP_ADD, GH_CLASS_FLOAT8, gh_double_float_add) \
	X(GH_OP_SUB, GH_CLASS_FLOAT8, gh_double_float_sub) \
	X(GH_OP_MUL, GH_CLASS_FLOAT8, gh_double_float_mul) \
	X(GH_OP_DIV, GH_CLASS_FLOAT8, gh_double_float_div) \
	X(GH_OP_EQ, GH_CLASS_FLOAT8, gh_float_eq) \
	X(GH_OP_NE, GH_CLASS_FLOAT8, gh_float_ne) \
	X(GH_OP_LT, GH_CLASS_FLOAT8, gh_float_lt) \
	X(GH_OP_LE, GH_CLASS_FLOAT8, gh_float_le) \
	X(GH_OP_GT, GH_CLASS_FLOAT8, gh_float_gt) \
	X(GH_OP_GE, GH_CLASS_FLOAT8, gh_float_ge)

#endif							/* GH_PROGRAM_FLOAT_H */
