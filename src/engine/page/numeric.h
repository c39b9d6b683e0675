/*
 * numeric.h
 *		PostgreSQL's numeric values, as they are stored, as 128-bit integers.
 *
 * A stored numeric is a header of 2 or 4 bytes and digits of base 10000, the first of
 * which counts 10000 to the power of the weight.  Its display scale says how many decimal
 * digits are shown after the point, and results take theirs from it; so a value is read
 * at its own scale, or at a larger one by callers who read the display scale as well.  What
 * is not finite or wider than 127 bits is not read at all.  C11 and CUDA alike.
 */
#ifndef GPUHASH_NUMERIC_H
#define GPUHASH_NUMERIC_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/everywhere.h"
#include "engine/program/program_int128.h"

/* The first 16 bits: a long header's two highest tell the sign, and its weight follows. */
#define GH_NUMERIC_KIND_MASK 0xc000
#define GH_NUMERIC_POSITIVE 0x0000
#define GH_NUMERIC_NEGATIVE 0x4000
#define GH_NUMERIC_SHORT 0x8000
#define GH_NUMERIC_SPECIAL 0xc000	/* NaN and the infinities */
#define GH_NUMERIC_SCALE_MASK 0x3fff
/* A short header has all in them. */
#define GH_NUMERIC_SHORT_NEGATIVE 0x2000
#define GH_NUMERIC_SHORT_SCALE_MASK 0x1f80
#define GH_NUMERIC_SHORT_SCALE_SHIFT 7
#define GH_NUMERIC_SHORT_WEIGHT_SIGN 0x0040
#define GH_NUMERIC_SHORT_WEIGHT_MASK 0x003f

#define GH_NUMERIC_BASE 10000
#define GH_NUMERIC_BASE_DIGITS 4	/* decimal digits in one of base 10000 */
#define GH_NUMERIC_WEIGHT_MAX 9	/* 10000 to the power of 10 is wider than 127 bits */

/* A magnitude of up to 127 bits. */
typedef struct GhMagnitude
{
	uint64_t	low;
	uint64_t	high;
} GhMagnitude;

/* Times a factor and plus a summand of at most 10000 each; false: it gets too wide. */
GH_EVERYWHERE bool
gh_magnitude_append(GhMagnitude *m, uint32_t factor, uint32_t summand)
{
	uint64_t	part;
	uint64_t	low;

	part = (m->low & UINT32_MAX) * factor + summand;
	low = part & UINT32_MAX;
	part = (m->low >> 32) * factor + (part >> 32);
	m->low = part << 32 | low;
	if ((part >> 32 | m->high) == 0)
		return true;
	part = (m->high & UINT32_MAX) * factor + (part >> 32);
	low = part & UINT32_MAX;
	part = (m->high >> 32) * factor + (part >> 32);
	m->high = part << 32 | low;
	return part <= INT32_MAX;
}

/* A stored numeric, taken apart. */
typedef struct GhNumeric
{
	bool		negative;
	uint32_t	scale;			/* decimal digits shown after the point */
	int32_t		weight;			/* of the first digit */
	uint32_t	ndigits;		/* of base 10000 */
	const uint8_t *digits;		/* 2 bytes each */
} GhNumeric;

/* False: it is no number, or not one at all. */
GH_EVERYWHERE bool
gh_numeric_open(const uint8_t *at, uint32_t bytes, GhNumeric *numeric)
{
	uint32_t	header_bytes = 2;
	uint32_t	header;

	if (bytes < header_bytes || bytes % 2 != 0)
		return false;
	header = gh_read_u16(at);
	switch (header & GH_NUMERIC_KIND_MASK)
	{
		case GH_NUMERIC_SPECIAL:
			return false;
		case GH_NUMERIC_SHORT:
			numeric->negative = (header & GH_NUMERIC_SHORT_NEGATIVE) != 0;
			numeric->scale = (header & GH_NUMERIC_SHORT_SCALE_MASK) >> GH_NUMERIC_SHORT_SCALE_SHIFT;
			numeric->weight = (int32_t) (header & GH_NUMERIC_SHORT_WEIGHT_MASK);
			if (header & GH_NUMERIC_SHORT_WEIGHT_SIGN)
				numeric->weight -= GH_NUMERIC_SHORT_WEIGHT_MASK + 1;
			break;
		default:
			header_bytes = 4;
			if (bytes < header_bytes)
				return false;
			numeric->negative = (header & GH_NUMERIC_KIND_MASK) == GH_NUMERIC_NEGATIVE;
			numeric->scale = header & GH_NUMERIC_SCALE_MASK;
			numeric->weight = (int16_t) gh_read_u16(at + 2);
			break;
	}
	numeric->ndigits = (bytes - header_bytes) / 2;
	numeric->digits = at + header_bytes;
	return true;
}

/* Digit i; what is behind the last one is 0, and GH_NUMERIC_BASE is none. */
GH_EVERYWHERE uint32_t
gh_numeric_digit(const GhNumeric *numeric, uint32_t i)
{
	uint32_t	digit = i < numeric->ndigits ? gh_read_u16(numeric->digits + 2 * i) : 0;

	return digit < GH_NUMERIC_BASE ? digit : GH_NUMERIC_BASE;
}

/* The digits as an integer, times 10 to the power of scale; false: it is none, or too wide. */
GH_EVERYWHERE bool
gh_numeric_magnitude(const GhNumeric *numeric, uint32_t scale, GhMagnitude *m)
{
	int32_t		last = -(int32_t) (scale / GH_NUMERIC_BASE_DIGITS);
	uint32_t	part = scale % GH_NUMERIC_BASE_DIGITS;	/* decimal digits of the one after last */
	uint32_t	i = 0;
	uint32_t	power = 1;
	uint32_t	digit;
	int32_t		position;

	m->low = 0;
	m->high = 0;
	if (numeric->ndigits == 0)
		return true;
	/* a stored value starts with a digit that is not 0, so this one is too wide */
	if (numeric->weight > GH_NUMERIC_WEIGHT_MAX)
		return false;
	for (position = numeric->weight; position >= last; position--)
	{
		digit = gh_numeric_digit(numeric, i++);
		if (digit == GH_NUMERIC_BASE || !gh_magnitude_append(m, GH_NUMERIC_BASE, digit))
			return false;
	}
	if (part > 0)
	{
		for (uint32_t k = 0; k < part; k++)
			power *= 10;
		/* a small value may start behind this place */
		digit = numeric->weight >= last - 1 ? gh_numeric_digit(numeric, i++) : 0;
		if (digit == GH_NUMERIC_BASE || digit % (GH_NUMERIC_BASE / power) != 0 ||
			!gh_magnitude_append(m, power, digit / (GH_NUMERIC_BASE / power)))
			return false;
	}
	for (; i < numeric->ndigits; i++)
		if (gh_numeric_digit(numeric, i) != 0)
			return false;
	return true;
}

/* Times 10 to the power of exponent, which is less than 32, where that has room. */
GH_EVERYWHERE uint64_t
gh_times_power(uint64_t value, uint32_t exponent)
{
	value *= (exponent & 1) ? 10 : 1;
	value *= (exponent & 2) ? 100 : 1;
	value *= (exponent & 4) ? 10000 : 1;
	value *= (exponent & 8) ? 100000000 : 1;
	value *= (exponent & 16) ? UINT64_C(10000000000000000) : 1;
	return value;
}

/*
 * What most are: four digits of base 10000 at most, behind a short header, and 18 decimal digits with those of the scale.
 * False: it is another one, or cannot be read.
 */
GH_EVERYWHERE bool
gh_numeric_read_small(const uint8_t *at, uint32_t bytes, uint32_t scale, uint64_t *low, uint64_t *high)
{
	uint32_t	ndigits = bytes / 2 - 1;
	uint32_t	header;
	uint32_t	digit;
	uint32_t	most = 0;		/* of the digits */
	int32_t		weight;
	int32_t		exponent;		/* of the last digit, in decimal digits of the result */
	uint64_t	value = 0;
	uint64_t	rest = 0;		/* behind the digits that are shown */

	if (bytes < 2 || bytes > 10 || bytes % 2 != 0)
		return false;
	header = gh_read_u16(at);
	if ((header & GH_NUMERIC_KIND_MASK) != GH_NUMERIC_SHORT ||
		(header & GH_NUMERIC_SHORT_SCALE_MASK) >> GH_NUMERIC_SHORT_SCALE_SHIFT != scale)
		return false;
	/* the sign is the highest bit of the weight's */
	weight = (int32_t) (header & GH_NUMERIC_SHORT_WEIGHT_MASK) - (int32_t) (header & GH_NUMERIC_SHORT_WEIGHT_SIGN);
	if (GH_NUMERIC_BASE_DIGITS * (weight + 1) + (int32_t) scale > 18)
		return false;
	for (uint32_t i = 0; i < ndigits; i++)
	{
		digit = gh_read_u16(at + 2 + 2 * i);
		most = digit > most ? digit : most;
		value = value * GH_NUMERIC_BASE + digit;
	}
	if (most >= GH_NUMERIC_BASE)
		return false;
	exponent = GH_NUMERIC_BASE_DIGITS * (weight + 1 - (int32_t) ndigits) + (int32_t) scale;
	switch (exponent)
	{
		case -1:
			rest = value % 10;
			value /= 10;
			break;
		case -2:
			rest = value % 100;
			value /= 100;
			break;
		case -3:
			rest = value % 1000;
			value /= 1000;
			break;
		default:
			/* of zero there are no digits, whatever the weight */
			if (exponent < 0 && value != 0)
				return false;
			value = exponent < 0 ? 0 : gh_times_power(value, (uint32_t) exponent);
			break;
	}
	if (rest != 0)
		return false;
	*low = header & GH_NUMERIC_SHORT_NEGATIVE ? 0 - value : value;
	*high = 0 - (uint64_t) (*low >> 63);
	return true;
}

/*
 * Reads a numeric that is shown with scale digits after the point: the value times 10 to
 * the power of scale, in two's complement.  False: it cannot be read, and low and high
 * are anything.
 */
GH_EVERYWHERE bool
gh_numeric_read(const uint8_t *at, uint32_t bytes, uint32_t scale, uint64_t *low, uint64_t *high)
{
	GhNumeric	numeric;
	GhMagnitude m;

	if (gh_numeric_read_small(at, bytes, scale, low, high))
		return true;
	if (!gh_numeric_open(at, bytes, &numeric) || numeric.scale != scale ||
		!gh_numeric_magnitude(&numeric, scale, &m))
		return false;
	if (numeric.negative)
	{
		m.low = 0 - m.low;
		m.high = ~m.high + (m.low == 0);
	}
	*low = m.low;
	*high = m.high;
	return true;
}

/* Likewise one that is shown with scale digits or fewer. */
GH_EVERYWHERE bool
gh_numeric_read_upto(const uint8_t *at, uint32_t bytes, uint32_t scale, uint64_t *low, uint64_t *high)
{
	GhNumeric	numeric;
	uint64_t	bad = 0;
	GhInt128	value;

	if (!gh_numeric_open(at, bytes, &numeric) || numeric.scale > scale ||
		!gh_numeric_read(at, bytes, numeric.scale, low, high))
		return false;
	value = gh_int128_rescale(gh_int128(*low, *high), (int) (scale - numeric.scale), &bad);
	*low = (uint64_t) value;
	*high = (uint64_t) ((GhUint128) value >> 64);
	return bad == 0;
}

/* How many decimal digits a numeric is shown with after the point; false: it is no number. */
GH_EVERYWHERE bool
gh_numeric_scale(const uint8_t *at, uint32_t bytes, uint64_t *scale)
{
	GhNumeric	numeric;

	if (!gh_numeric_open(at, bytes, &numeric))
		return false;
	*scale = numeric.scale;
	return true;
}

#endif							/* GPUHASH_NUMERIC_H */
