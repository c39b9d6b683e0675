/*
 * packed.c
 *		Packs the values of a column, and unpacks them.
 */
#include "engine/clones.h"
#include "engine/page/packed.h"
#include "engine/program/aggregate.h"

#include <string.h>

/* Different texts that get codes, at most, and places to look for them: a power of two. */
#define CODES_MAX 256
#define CODE_PLACES 1024

/* ------------------------------------------------------------------- layout */

static size_t
aligned(size_t bytes)
{
	return (bytes + GH_PACKED_ALIGNMENT - 1) & ~(size_t) (GH_PACKED_ALIGNMENT - 1);
}

static uint8_t *
part(GhPackedColumn *packed, uint32_t at)
{
	return (uint8_t *) packed + at;
}

static const uint8_t *
const_part(const GhPackedColumn *packed, uint32_t at)
{
	return (const uint8_t *) packed + at;
}

/* Room for a further part; where it begins. */
static uint32_t
add_part(GhPackedColumn *packed, size_t bytes)
{
	uint32_t	at = packed->bytes;

	packed->bytes = (uint32_t) aligned(at + bytes);
	return at;
}

static bool
is_text(const GhColumn *column)
{
	return column->load == GH_LOAD_TEXT;
}

size_t
gh_packed_bytes_max(const GhColumn *column, const GhVector *vector, uint32_t nrows)
{
	/* each part may end anywhere */
	size_t		bytes = sizeof(GhPackedColumn) + 5 * GH_PACKED_ALIGNMENT + nrows;

	if (column->load == GH_LOAD_NUMERIC)
		return bytes + (size_t) nrows * 2 * sizeof(uint64_t);
	if (column->load == GH_LOAD_FIXED)
		return bytes + (size_t) nrows * column->length;
	if (!is_text(column))
		return bytes + (size_t) nrows * sizeof(uint64_t);
	bytes += (size_t) nrows + (nrows + 1) * sizeof(uint32_t);
	for (uint32_t i = 0; i < nrows; i++)
		bytes += vector->null[i] ? 0 : vector->high[i];
	return bytes;
}

/* ------------------------------------------------------------------ numbers */

/* The least and the greatest, by sign, of those that are not NULL; 0 and 0 of none. */
static void
find_bounds(const GhVector *vector, uint32_t nrows, int64_t *least, int64_t *greatest)
{
	bool		any = false;

	*least = *greatest = 0;
	for (uint32_t i = 0; i < nrows; i++)
	{
		int64_t		value = (int64_t) vector->low[i];

		if (vector->null[i])
			continue;
		if (!any || value < *least)
			*least = value;
		if (!any || value > *greatest)
			*greatest = value;
		any = true;
	}
}

static uint16_t
width_of(uint64_t range)
{
	return range == 0 ? 0 : range <= UINT8_MAX ? 1 : range <= UINT16_MAX ? 2 : range <= UINT32_MAX ? 4 : 8;
}

#define PACK_AS(type) \
	do { \
		type	   *to = (type *) (void *) part(packed, packed->values_at); \
		for (uint32_t i = 0; i < nrows; i++) \
			to[i] = (type) (vector->null[i] ? 0 : vector->low[i] - packed->base); \
	} while (0)

static void
pack_numbers(const GhVector *vector, uint32_t nrows, GhPackedColumn *packed)
{
	int64_t		least;
	int64_t		greatest;

	find_bounds(vector, nrows, &least, &greatest);
	packed->kind = GH_PACKED_NUMBERS;
	packed->base = (uint64_t) least;
	packed->width = width_of((uint64_t) greatest - (uint64_t) least);
	packed->values_at = add_part(packed, (size_t) nrows * packed->width);
	switch (packed->width)
	{
		case 1:
			PACK_AS(uint8_t);
			break;
		case 2:
			PACK_AS(uint16_t);
			break;
		case 4:
			PACK_AS(uint32_t);
			break;
		case 8:
			PACK_AS(uint64_t);
			break;
		default:
			break;
	}
}

/* Do 64 bits hold each of these numbers of 128? */
static bool
are_narrow(const GhVector *vector, uint32_t nrows)
{
	bool		narrow = true;

	for (uint32_t i = 0; i < nrows; i++)
		narrow &= vector->null[i] || vector->high[i] == gh_sign_extension(vector->low[i]);
	return narrow;
}

static void
pack_wide(const GhVector *vector, uint32_t nrows, GhPackedColumn *packed)
{
	uint64_t   *to;

	packed->kind = GH_PACKED_WIDE;
	packed->values_at = add_part(packed, (size_t) nrows * 2 * sizeof(uint64_t));
	to = (uint64_t *) (void *) part(packed, packed->values_at);
	for (uint32_t i = 0; i < nrows; i++)
	{
		to[2 * i] = vector->null[i] ? 0 : vector->low[i];
		to[2 * i + 1] = vector->null[i] ? 0 : vector->high[i];
	}
}

/* -------------------------------------------------------------------- texts */

static const uint8_t *
text_of(const GhVector *vector, uint32_t row)
{
	return (const uint8_t *) (uintptr_t) vector->low[row];
}

/* Different texts, by the rows that have them first. */
typedef struct Codes
{
	uint32_t	count;
	uint32_t	rows[CODES_MAX];
	uint16_t	places[CODE_PLACES];	/* code + 1; 0: free */
} Codes;

static uint32_t
hash_text(const uint8_t *text, uint64_t length)
{
	uint32_t	hash = 2166136261u ^ (uint32_t) length;

	/* FNV-1a, of long ones of both ends */
	for (uint64_t i = 0; i < length; i++)
	{
		if (i == 16 && length > 32)
			i = length - 16;
		hash = (hash ^ text[i]) * 16777619u;
	}
	return hash ^ hash >> 15;
}

/* The code of a row's text; CODES_MAX: there are too many. */
static uint32_t
code_of(Codes *codes, const GhVector *vector, uint32_t row)
{
	const uint8_t *text = text_of(vector, row);
	uint64_t	length = vector->high[row];
	uint32_t	place = hash_text(text, length) % CODE_PLACES;

	for (;; place = (place + 1) % CODE_PLACES)
	{
		uint32_t	code = codes->places[place];

		if (code == 0)
			break;
		code--;
		if (vector->high[codes->rows[code]] == length && memcmp(text_of(vector, codes->rows[code]), text, length) == 0)
			return code;
	}
	if (codes->count == CODES_MAX)
		return CODES_MAX;
	codes->places[place] = (uint16_t) (codes->count + 1);
	codes->rows[codes->count] = row;
	return codes->count++;
}

/* Puts texts one behind the other; rows: whose texts they are, or NULL: each row's. */
static void
add_texts(const GhVector *vector, const uint32_t *rows, uint32_t ntexts, GhPackedColumn *packed)
{
	uint32_t   *ends;
	uint32_t	end = 0;

	packed->ntexts = ntexts;
	packed->ends_at = add_part(packed, (ntexts + 1) * sizeof(uint32_t));
	packed->texts_at = packed->bytes;
	ends = (uint32_t *) (void *) part(packed, packed->ends_at);
	ends[0] = 0;
	for (uint32_t t = 0; t < ntexts; t++)
	{
		uint32_t	row = rows != NULL ? rows[t] : t;
		uint32_t	length = vector->null[row] ? 0 : (uint32_t) vector->high[row];

		if (length > 0)
			memcpy(part(packed, packed->texts_at) + end, text_of(vector, row), length);
		end += length;
		ends[t + 1] = end;
	}
	packed->bytes = (uint32_t) aligned(packed->texts_at + (size_t) end);
}

/* False: there are too many different ones. */
static bool
pack_codes(const GhVector *vector, uint32_t nrows, GhPackedColumn *packed)
{
	Codes		codes = {0};
	uint32_t	before = packed->bytes;
	uint8_t    *to;

	packed->values_at = add_part(packed, nrows);
	to = part(packed, packed->values_at);
	for (uint32_t i = 0; i < nrows; i++)
	{
		uint32_t	code = vector->null[i] ? 0 : code_of(&codes, vector, i);

		/* nor is it worth it where each has a text of its own */
		if (code == CODES_MAX || (i >= CODES_MAX / 4 && codes.count > i / 2))
		{
			packed->bytes = before;
			return false;
		}
		to[i] = (uint8_t) code;
	}
	packed->kind = GH_PACKED_CODES;
	add_texts(vector, codes.rows, codes.count, packed);
	return true;
}

static void
pack_fixed(const GhColumn *column, const GhVector *vector, uint32_t nrows, GhPackedColumn *packed)
{
	uint8_t    *to;

	packed->kind = GH_PACKED_FIXED;
	packed->width = column->length;
	packed->values_at = add_part(packed, (size_t) nrows * column->length);
	to = part(packed, packed->values_at);
	for (uint32_t i = 0; i < nrows; i++, to += column->length)
	{
		if (vector->null[i])
			memset(to, 0, column->length);
		else
			memcpy(to, text_of(vector, i), column->length);
	}
}

/* ---------------------------------------------------------------------- pack */

static void
pack_nulls(const GhVector *vector, uint32_t nrows, GhPackedColumn *packed)
{
	uint8_t		any = 0;

	for (uint32_t i = 0; i < nrows; i++)
		any |= vector->null[i];
	if (any == 0)
		return;
	packed->has_nulls = 1;
	packed->nulls_at = add_part(packed, nrows);
	memcpy(part(packed, packed->nulls_at), vector->null, nrows);
}

void
gh_pack_column(const GhColumn *column, const GhVector *vector, uint32_t nrows, GhPackedColumn *to)
{
	memset(to, 0, sizeof(*to));
	to->nrows = nrows;
	to->bytes = (uint32_t) aligned(sizeof(*to));
	pack_nulls(vector, nrows, to);
	if (column->load == GH_LOAD_FIXED)
		pack_fixed(column, vector, nrows, to);
	else if (column->load == GH_LOAD_NUMERIC && !are_narrow(vector, nrows))
		pack_wide(vector, nrows, to);
	else if (!is_text(column))
		pack_numbers(vector, nrows, to);
	else if (!pack_codes(vector, nrows, to))
	{
		to->kind = GH_PACKED_TEXTS;
		add_texts(vector, NULL, nrows, to);
	}
}

/* -------------------------------------------------------------------- unpack */

/* Does so much, from there on, lie in the column? */
static bool
has_part(const GhPackedColumn *packed, uint32_t at, uint64_t bytes)
{
	return at >= sizeof(*packed) && at <= packed->bytes && bytes <= packed->bytes - at &&
		at % GH_PACKED_ALIGNMENT == 0;
}

/* Do the ends not go back, and end in the column? */
static bool
has_texts(const GhPackedColumn *packed)
{
	const uint32_t *ends;
	bool		rising = true;

	if (packed->ntexts > GH_PACKED_ROWS_MAX ||
		!has_part(packed, packed->ends_at, (packed->ntexts + UINT64_C(1)) * sizeof(uint32_t)))
		return false;
	ends = (const uint32_t *) (const void *) const_part(packed, packed->ends_at);
	for (uint32_t t = 0; t < packed->ntexts; t++)
		rising &= ends[t] <= ends[t + 1];
	return rising && has_part(packed, packed->texts_at, ends[packed->ntexts]);
}

bool
gh_packed_is_of(const GhPackedColumn *packed, const GhColumn *column, uint64_t nrows)
{
	uint64_t	rows = packed->nrows;
	uint16_t	width = packed->width;

	if (nrows > rows || rows > GH_PACKED_ROWS_MAX || packed->bytes < sizeof(*packed) ||
		(packed->has_nulls && !has_part(packed, packed->nulls_at, rows)))
		return false;
	switch (packed->kind)
	{
		case GH_PACKED_NUMBERS:
			return !is_text(column) && column->load != GH_LOAD_FIXED &&
				(width == 0 || width == 1 || width == 2 || width == 4 || width == 8) &&
				(width == 0 || has_part(packed, packed->values_at, rows * width));
		case GH_PACKED_WIDE:
			return column->load == GH_LOAD_NUMERIC && has_part(packed, packed->values_at, rows * 2 * sizeof(uint64_t));
		case GH_PACKED_CODES:
			/* of NULLs alone there is no text */
			return is_text(column) && packed->ntexts <= CODES_MAX && (packed->ntexts > 0 || packed->has_nulls || rows == 0) &&
				has_part(packed, packed->values_at, rows) && has_texts(packed);
		case GH_PACKED_TEXTS:
			return is_text(column) && packed->ntexts == rows && has_texts(packed);
		case GH_PACKED_FIXED:
			return column->load == GH_LOAD_FIXED && width == column->length && width > 0 &&
				has_part(packed, packed->values_at, rows * width);
		default:
			return false;
	}
}

#define UNPACK_FROM(type) \
	do { \
		const type *from = (const type *) (const void *) const_part(packed, packed->values_at) + first; \
		for (uint32_t i = 0; i < n; i++) \
			low[i] = base + from[i]; \
	} while (0)

static gh_always_inline void
unpack_numbers(const GhPackedColumn *packed, uint64_t first, uint32_t n, uint64_t *low)
{
	uint64_t	base = packed->base;

	switch (packed->width)
	{
		case 1:
			UNPACK_FROM(uint8_t);
			break;
		case 2:
			UNPACK_FROM(uint16_t);
			break;
		case 4:
			UNPACK_FROM(uint32_t);
			break;
		case 8:
			UNPACK_FROM(uint64_t);
			break;
		default:
			for (uint32_t i = 0; i < n; i++)
				low[i] = base;
			break;
	}
}

static gh_always_inline void
unpack_wide(const GhPackedColumn *packed, uint64_t first, uint32_t n, const GhVector *vector)
{
	const uint64_t *from = (const uint64_t *) (const void *) const_part(packed, packed->values_at) + 2 * first;

	for (uint32_t i = 0; i < n; i++)
	{
		vector->low[i] = from[2 * i];
		vector->high[i] = from[2 * i + 1];
	}
}

static gh_always_inline void
unpack_texts(const GhPackedColumn *packed, uint64_t first, uint32_t n, const GhVector *vector)
{
	const uint32_t *ends = (const uint32_t *) (const void *) const_part(packed, packed->ends_at);
	const uint8_t *texts = const_part(packed, packed->texts_at);
	const uint8_t *codes = packed->kind == GH_PACKED_CODES ? const_part(packed, packed->values_at) + first : NULL;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	text = codes != NULL ? codes[i] : (uint32_t) (first + i);

		/* the place of a NULL has any code */
		if (text >= packed->ntexts)
			text = 0;
		vector->low[i] = (uint64_t) (uintptr_t) (texts + ends[text]);
		vector->high[i] = packed->ntexts == 0 ? 0 : ends[text + 1] - ends[text];
	}
}

static gh_always_inline void
unpack_fixed(const GhPackedColumn *packed, uint64_t first, uint32_t n, const GhVector *vector)
{
	const uint8_t *from = const_part(packed, packed->values_at) + first * packed->width;

	for (uint32_t i = 0; i < n; i++, from += packed->width)
	{
		vector->low[i] = (uint64_t) (uintptr_t) from;
		vector->high[i] = packed->width;
	}
}

GH_CLONES static void
unpack_rows(const GhPackedColumn *packed, uint64_t first, uint32_t n, bool wide, const GhVector *vector)
{
	if (packed->has_nulls)
		memcpy(vector->null, const_part(packed, packed->nulls_at) + first, n);
	else
		memset(vector->null, 0, n);
	switch (packed->kind)
	{
		case GH_PACKED_NUMBERS:
			unpack_numbers(packed, first, n, vector->low);
			for (uint32_t i = 0; wide && i < n; i++)
				vector->high[i] = gh_sign_extension(vector->low[i]);
			break;
		case GH_PACKED_WIDE:
			unpack_wide(packed, first, n, vector);
			break;
		case GH_PACKED_FIXED:
			unpack_fixed(packed, first, n, vector);
			break;
		default:
			unpack_texts(packed, first, n, vector);
			break;
	}
}

void
gh_unpack_rows(const GhPackedColumn *packed, uint64_t first, uint32_t n, bool wide, const GhVector *vector)
{
	unpack_rows(packed, first, n, wide, vector);
}

uint8_t
gh_packed_bits(const GhPackedColumn *packed)
{
	uint64_t	base = packed->base;
	uint64_t	range;
	uint8_t		least;
	uint8_t		greatest;

	if (packed->kind != GH_PACKED_NUMBERS)
		return 0;
	range = packed->width == 0 ? 0 : UINT64_MAX >> (64 - 8 * packed->width);
	/* the range may be more than the numbers' own */
	if ((int64_t) base >= 0 ? (int64_t) (base + range) < (int64_t) base : range > (uint64_t) INT64_MAX)
		return 64;
	least = gh_value_bits(base, gh_sign_extension(base));
	greatest = gh_value_bits(base + range, gh_sign_extension(base + range));
	return least > greatest ? least : greatest;
}
