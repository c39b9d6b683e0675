/*
 * test_packed.c
 *		Packed columns: drawn values of all kinds come out as they went in, and any bytes are refused or harmless.
 */
#include "engine/page/packed.h"
#include "pipeline_model.h"

#define ROWS 3000
#define TRIALS 400
#define TEXT_MAX 40

/* A column of one kind of values, with as wide a range as this draw has. */
typedef struct Drawn
{
	GhColumn	column;
	uint32_t	nrows;
	uint64_t   *low;
	uint64_t   *high;
	uint8_t    *null;
	uint8_t    *bytes;			/* of texts, TEXT_MAX each */
} Drawn;

static GhVector
vector_of(const Drawn *drawn)
{
	return (GhVector) {drawn->low, drawn->high, drawn->null};
}

static bool
has_bytes(const GhColumn *column)
{
	return column->load == GH_LOAD_TEXT || column->load == GH_LOAD_FIXED;
}

static uint64_t
draw_number(Context *c, const GhColumn *column, uint32_t bits)
{
	uint64_t	value = bits == 0 ? 0 : random_next(c) >> (64 - bits);

	if (column->load == GH_LOAD_BOOL)
		return value & 1;
	/* around the middle, and at either end */
	return random_below(c, 50) == 0 ? (uint64_t) INT64_MIN + value : random_below(c, 2) == 0 ? value : UINT64_C(0) - value;
}

static void
draw_bytes(Context *c, Drawn *drawn, uint32_t row, uint32_t different)
{
	uint8_t    *to = drawn->bytes + (size_t) row * TEXT_MAX;
	uint32_t	which = (uint32_t) random_below(c, different);
	uint32_t	length = drawn->column.load == GH_LOAD_FIXED ? drawn->column.length : (which * 7 + 3) % TEXT_MAX;

	for (uint32_t k = 0; k < length; k++)
		to[k] = (uint8_t) (which >> 8 * (k % 3));
	drawn->low[row] = (uint64_t) (uintptr_t) to;
	drawn->high[row] = length;
}

static void
draw(Context *c, Drawn *drawn)
{
	static const uint8_t loads[] = {GH_LOAD_INT2, GH_LOAD_INT4, GH_LOAD_INT8, GH_LOAD_OID, GH_LOAD_BOOL, GH_LOAD_FLOAT4,
		GH_LOAD_FLOAT8, GH_LOAD_NUMERIC, GH_LOAD_TEXT, GH_LOAD_FIXED, GH_LOAD_TID};
	uint32_t	bits = (uint32_t) random_below(c, 65);
	uint32_t	different = 1 + (uint32_t) (random_next(c) >> (32 + random_below(c, 32)));
	uint32_t	nulls = (uint32_t) random_below(c, 4);
	bool		wide = random_below(c, 2) == 0;

	drawn->column = (GhColumn) {1, loads[random_below(c, sizeof(loads))], 0, 0, 0};
	drawn->column.length = drawn->column.load == GH_LOAD_FIXED ? 1 + (uint16_t) random_below(c, TEXT_MAX) : 0;
	drawn->nrows = (uint32_t) random_below(c, ROWS + 1);
	drawn->low = make_words(drawn->nrows);
	drawn->high = make_words(drawn->nrows);
	drawn->null = make_memory(drawn->nrows);
	drawn->bytes = make_memory((size_t) drawn->nrows * TEXT_MAX);
	for (uint32_t i = 0; i < drawn->nrows; i++)
	{
		drawn->null[i] = nulls == 3 || (nulls > 0 && random_below(c, 8) == 0);
		drawn->low[i] = draw_number(c, &drawn->column, bits);
		drawn->high[i] = wide ? random_next(c) : gh_sign_extension(drawn->low[i]);
		if (has_bytes(&drawn->column))
			draw_bytes(c, drawn, i, different);
		/* what there is of a NULL is anything */
		if (drawn->null[i])
			drawn->low[i] = drawn->high[i] = random_next(c);
	}
}

static void
drop(Drawn *drawn)
{
	free(drawn->low);
	free(drawn->high);
	free(drawn->null);
	free(drawn->bytes);
}

/* Is the value of a vector's row that of a drawn one? */
static bool
is_same(const Drawn *drawn, uint32_t row, const GhVector *vector, uint32_t at)
{
	if (drawn->null[row] != vector->null[at])
		return false;
	if (drawn->null[row])
		return true;
	if (has_bytes(&drawn->column))
		return vector->high[at] == drawn->high[row] &&
			memcmp((const void *) (uintptr_t) vector->low[at], (const void *) (uintptr_t) drawn->low[row],
				   drawn->high[row]) == 0;
	return vector->low[at] == drawn->low[row] &&
		(drawn->column.load != GH_LOAD_NUMERIC || vector->high[at] == drawn->high[row]);
}

static void
check_rows(Context *c, const Drawn *drawn, const GhPackedColumn *packed)
{
	uint32_t	first = (uint32_t) random_below(c, drawn->nrows + 1);
	uint32_t	n = (uint32_t) random_below(c, drawn->nrows - first + 1);
	Drawn		came = {.low = make_words(n),.high = make_words(n),.null = make_memory(n)};
	GhVector	vector = vector_of(&came);
	uint32_t	wrong = 0;

	gh_unpack_rows(packed, first, n, drawn->column.load == GH_LOAD_NUMERIC || has_bytes(&drawn->column), &vector);
	for (uint32_t i = 0; i < n; i++)
		wrong += !is_same(drawn, first + i, &vector, i);
	CHECK(c, wrong == 0, "%u of %u rows of load %u, packed as kind %u of width %u", wrong, n, drawn->column.load,
		  packed->kind, packed->width);
	drop(&came);
}

/* Any bytes in the place of some: refused, or rows come out of the column's own bytes. */
static void
check_damaged(Context *c, const Drawn *drawn, const GhPackedColumn *packed)
{
	GhPackedColumn *damaged = aligned_alloc(16, (packed->bytes + 15) & ~15u);
	GhVector	vector = vector_of(drawn);
	uint32_t	rows;

	memcpy(damaged, packed, packed->bytes);
	for (int k = 0; k < 3; k++)
		((uint8_t *) damaged)[random_below(c, random_below(c, 2) == 0 ? sizeof(*packed) : packed->bytes)] =
			(uint8_t) random_next(c);
	damaged->bytes = damaged->bytes > packed->bytes ? packed->bytes : damaged->bytes;
	rows = drawn->nrows;
	/* what is unpacked is overwritten: nothing is asked of it but that it is read within the column */
	if (gh_packed_is_of(damaged, &drawn->column, rows) && rows > 0)
		gh_unpack_rows(damaged, 0, rows, true, &vector);
	free(damaged);
}

static void
packed_values(Context *c)
{
	for (int t = 0; t < TRIALS; t++)
	{
		Drawn		drawn;
		GhVector	vector;
		GhPackedColumn *packed;
		size_t		most;

		draw(c, &drawn);
		vector = vector_of(&drawn);
		most = gh_packed_bytes_max(&drawn.column, &vector, drawn.nrows);
		packed = aligned_alloc(16, (most + 15) & ~(size_t) 15);
		gh_pack_column(&drawn.column, &vector, drawn.nrows, packed);
		CHECK(c, packed->bytes <= most, "a packed column of load %u has %u bytes, of %zu", drawn.column.load,
			  packed->bytes, most);
		CHECK(c, gh_packed_is_of(packed, &drawn.column, drawn.nrows), "a packed column of load %u is refused",
			  drawn.column.load);
		CHECK(c, !gh_packed_is_of(packed, &drawn.column, drawn.nrows + UINT64_C(1)), "a packed column has a row more");
		check_rows(c, &drawn, packed);
		check_damaged(c, &drawn, packed);
		drop(&drawn);
		free(packed);
	}
}

/* How few bytes it takes: the ranges and texts that columns of tables have. */
static void
packed_widths(Context *c)
{
	static const uint64_t ranges[] = {0, 255, 256, 65535, 65536, UINT32_MAX, UINT64_C(1) << 32};
	static const uint16_t widths[] = {0, 1, 2, 2, 4, 4, 8};
	GhColumn	column = {1, GH_LOAD_INT8, 0, 0, 0};
	uint64_t	low[2];
	uint8_t		null[2] = {0};
	GhVector	vector = {low, NULL, null};
	union
	{
		GhPackedColumn packed;
		char		bytes[512];
	}			to;

	for (uint32_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
	{
		low[0] = (uint64_t) INT64_C(-7);
		low[1] = low[0] + ranges[i];
		gh_pack_column(&column, &vector, 2, &to.packed);
		CHECK(c, to.packed.kind == GH_PACKED_NUMBERS && to.packed.width == widths[i], "range %u takes %u bytes", i,
			  to.packed.width);
	}
	/* either end of 64 bits */
	low[0] = (uint64_t) INT64_MIN;
	low[1] = (uint64_t) INT64_MAX;
	gh_pack_column(&column, &vector, 2, &to.packed);
	CHECK(c, to.packed.width == 8 && to.packed.base == low[0], "all of 64 bits take %u bytes", to.packed.width);
}

GhPackedColumn *
pack_drawn(const GhColumn *column, const GhVector *vector, uint32_t nrows)
{
	GhPackedColumn *packed = aligned_alloc(16, (gh_packed_bytes_max(column, vector, nrows) + 15) & ~(size_t) 15);

	gh_pack_column(column, vector, nrows, packed);
	return packed;
}

const Test	packed_tests[] = {
	{"packed columns: values", packed_values, true},
	{"packed columns: how wide", packed_widths, true},
	{NULL, NULL, false}
};
