/*
 * program_values.c
 *		Values for the tests of programs: mostly those at which something changes.
 */
#include "program_test.h"

#include <float.h>
#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t int_edges[] = {
	0, 1, -1, 2, -2, 7, 10, 31, 32, 33, 63, 64, INT16_MAX, INT16_MIN, INT16_MAX + 1, INT16_MIN - 1,
	INT32_MAX, INT32_MIN, INT64_C(2147483648), INT64_C(-2147483649), INT64_MAX, INT64_MIN,
	INT64_MAX - 1, INT64_MIN + 1, -2451545, -2451546, 2145031948, 2145031949, 106751982,
	106751983, 65536, 46341, -46341, INT64_C(3037000500), INT64_C(9007199254740993), 16777217
};

static const double float_edges[] = {
	0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 10.0, INFINITY, -INFINITY, NAN,
	DBL_MAX, -DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, FLT_MAX, FLT_MIN, FLT_TRUE_MIN,
	FLT_MAX * (1 + 0x1p-25), FLT_TRUE_MIN / 2, 0x1.000001p0, 4503599627370495.5, 0x1p52, 0x1p53,
	0x1p63, -0x1p63, 0x1.fffffffffffffp62, 2147483647.5, 2147483647.4999998, -2147483648.5,
	-2147483648.4999995, 32767.5, -32768.5, 32767.499999999996, 0.49999999999999994, 0x1p511,
	0x1p512, 0x1p-538, 0x1p63 * 2
};

static uint64_t
random_word(Context *c)
{
	return random_next(c) >> random_below(c, 64);
}

static int64_t
random_int(Context *c)
{
	switch (random_below(c, 4))
	{
		case 0:
			return (int64_t) random_below(c, 21) - 10;
		case 1:
			return (int64_t) (random_below(c, 2) ? random_word(c) : -random_word(c));
		default:
			return int_edges[random_below(c, COUNT(int_edges))];
	}
}

static double
random_double(Context *c)
{
	switch (random_below(c, 4))
	{
		case 0:
			return ((double) random_below(c, 41) - 20) / 2;
		case 1:
			return gh_to_double(random_next(c));
		case 2:
			return (double) random_int(c) / (double) (1 + random_below(c, 4));
		default:
			return float_edges[random_below(c, COUNT(float_edges))];
	}
}

static GhInt128
random_int128(Context *c)
{
	GhInt128	value = random_int(c);
	uint64_t	digits = random_below(c, 39);

	switch (random_below(c, 5))
	{
		case 0:
			return value;
		case 1:
			return gh_int128(random_next(c), random_word(c));
		case 2:
			return gh_int128(random_below(c, 2) - 1, (UINT64_C(1) << 63) - random_below(c, 2));
		case 3:
			value = (int64_t) random_below(c, 3) - 1 + (random_below(c, 2) ? 5 : 10);
			while (digits-- > 1)
				value *= 10;
			value += (int64_t) random_below(c, 3) - 1;
			return random_below(c, 2) ? value : -value;
		default:
			return value * (int64_t) random_word(c);
	}
}

/* A stored numeric that is a text as well: its header is a long one, and no byte is above 127. */
static size_t
draw_stored(Context *c, char *text)
{
	size_t		groups = random_below(c, 6);
	size_t		length = 4 + 2 * groups;

	memset(text, 0, length);
	text[0] = (char) random_below(c, random_below(c, 4) == 0 ? 64 : 12);
	text[1] = random_below(c, 2) ? 0x40 : 0;
	text[2] = (char) random_below(c, random_below(c, 8) == 0 ? 12 : 3);
	for (size_t i = 4; i < length; i += 2)
	{
		text[i] = (char) random_below(c, random_below(c, 3) == 0 ? 1 : 128);
		text[i + 1] = (char) random_below(c, random_below(c, 16) == 0 ? 128 : 39);
	}
	return length;
}

void
make_pool(Context *c, Pool *pool)
{
	/* characters of UTF-8, as PostgreSQL sees to it that they are */
	static const char *const characters[] = {"a", "b", "A", " ", " ", "", "\xc3\xa9", "\xc3\xbf", "\xe6\x97\xa5", "%", "%", "_", "\\"};
	size_t		i;

	for (i = 0; i < TEXTS; i++)
	{
		uint64_t	n = random_below(c, 6);
		char		text[32];
		size_t		length = 0;

		for (; n > 0; n--)
		{
			const char *character = characters[random_below(c, COUNT(characters))];
			size_t		bytes = *character == '\0' ? 1 : strlen(character);

			memcpy(text + length, character, bytes);
			length += bytes;
		}
		if (i % 2 == 0)
			length = draw_stored(c, text);
		pool->lengths[i] = length;
		pool->texts[i] = make_memory(length);
		memcpy(pool->texts[i], text, length);
	}
}

void
free_pool(Pool *pool)
{
	size_t		i;

	for (i = 0; i < TEXTS; i++)
		free(pool->texts[i]);
}

GhValue
random_value(Context *c, const Pool *pool, GhClass value_class)
{
	GhValue		value = {0, 0, 0};
	uint64_t	text = random_below(c, TEXTS);
	GhInt128	wide;

	switch (value_class)
	{
		case GH_CLASS_BOOL:
			value.low = random_below(c, 2);
			break;
		case GH_CLASS_INT128:
			wide = random_int128(c);
			value.low = (uint64_t) wide;
			value.high = (uint64_t) ((GhUint128) wide >> 64);
			break;
		case GH_CLASS_FLOAT4:
			value.low = gh_from_double((float) random_double(c));
			break;
		case GH_CLASS_FLOAT8:
			value.low = gh_from_double(random_double(c));
			break;
		case GH_CLASS_TEXT:
			value.low = (uint64_t) (uintptr_t) pool->texts[text];
			value.high = pool->lengths[text];
			break;
		default:
			value.low = (uint64_t) random_int(c);
	}
	return value;
}

void
make_row_batch(RowBatch *batch, const GhProgram *program)
{
	batch->memory = aligned_alloc(64, gh_batch_bytes(program));
	if (batch->memory == NULL)
		abort();
	gh_batch_prepare(&batch->batch, program, batch->memory);
}

void
free_row_batch(RowBatch *batch)
{
	free(batch->memory);
}

/* Values of 64 bits, or some of them, in a column of 128, and how many these are. */
static void
make_narrow(Context *c, GhVectorBatch *batch, uint32_t column)
{
	const GhVector *vector = &batch->vectors[column];
	uint32_t	shift = (uint32_t) random_below(c, 64);

	batch->bits[column] = (uint8_t) (64 - shift);
	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		if (vector->null[i] || batch->state[i] != GH_ROW_LIVE)
			continue;
		vector->low[i] = (uint64_t) ((int64_t) vector->low[i] >> shift);
		vector->high[i] = gh_sign_extension(vector->low[i]);
	}
}

void
fill_row_batch(Context *c, const Pool *pool, const GhProgram *program, RowBatch *batch, uint32_t nrows)
{
	GhVectorBatch *b = &batch->batch;
	bool		known = random_below(c, 2) == 0;
	uint32_t	row;
	uint32_t	i;

	b->nrows = nrows;
	gh_batch_forget_bits(b);
	for (row = 0; row < nrows; row++)
	{
		b->state[row] = random_below(c, 16) == 0 ? 1 + random_below(c, 2) : GH_ROW_LIVE;
		for (i = 0; i < program->ncolumns; i++)
		{
			GhValue		value = random_value(c, pool, column_class(&gh_program_columns(program)[i]));

			value.null = random_below(c, 8) == 0;
			if (value.null || b->state[row] != GH_ROW_LIVE)
				value.low = value.high = random_next(c);
			b->vectors[i].low[row] = value.low;
			b->vectors[i].high[row] = value.high;
			b->vectors[i].null[row] = value.null;
		}
	}
	for (i = 0; known && i < program->ncolumns; i++)
		if (column_class(&gh_program_columns(program)[i]) == GH_CLASS_INT128)
			make_narrow(c, b, i);
}

GhValue
batch_value(const RowBatch *batch, uint32_t vector, uint32_t row)
{
	const GhVector *v = &batch->batch.vectors[vector];
	GhValue		value = {v->low[row], v->high[row], v->null[row]};

	return value;
}

/* What is no part of a value does not count: the words of NULL, the bits of NaN. */
bool
same_value(GhClass value_class, GhValue a, GhValue b)
{
	if (a.null || b.null)
		return a.null == b.null;
	if ((value_class == GH_CLASS_FLOAT4 || value_class == GH_CLASS_FLOAT8) &&
		isnan(gh_to_double(a.low)) && isnan(gh_to_double(b.low)))
		return true;
	/* no bytes may lie anywhere */
	if (value_class == GH_CLASS_TEXT && a.high == 0 && b.high == 0)
		return true;
	return a.low == b.low &&
		((value_class != GH_CLASS_INT128 && value_class != GH_CLASS_TEXT) || a.high == b.high);
}
