/*
 * test_page_numeric.c
 *		Stored numerics as integers: at the edges of 128 bits, drawn ones, and any bytes.
 */
#include "page_writer.h"

/* The widest values, and one beyond, at every scale and in both forms. */
static void
numeric_edges(Context *c)
{
	const unsigned __int128 half = (unsigned __int128) 1 << 127;

	for (uint32_t i = 0; i < 4 * (GH_SCALE_MAX + 1); i++)
	{
		uint32_t	scale = i / 4;
		uint8_t		bytes[NUMERIC_BYTES_MAX];
		uint64_t	low;
		uint64_t	high;
		uint32_t	n = numeric_write(bytes, i & 1, half - 1, scale, i & 2);

		if (CHECK(c, gh_numeric_read(bytes, n, scale, &low, &high), "scale %u: widest", scale))
			CHECK(c, low == (i & 1 ? 1 : UINT64_MAX) && high == (i & 1 ? half >> 64 : (half - 1) >> 64),
				  "scale %u: %" PRIx64 " %" PRIx64, scale, high, low);
		n = numeric_write(bytes, i & 1, half, scale, i & 2);
		CHECK(c, !gh_numeric_read(bytes, n, scale, &low, &high), "scale %u: too wide", scale);
		n = numeric_write(bytes, false, 0, scale, i & 2);
		CHECK(c, gh_numeric_read(bytes, n, scale, &low, &high) && low == 0 && high == 0,
			  "scale %u: zero", scale);
		CHECK(c, !gh_numeric_read(bytes, n, scale + 1, &low, &high) &&
			  (scale == 0 || !gh_numeric_read(bytes, n, scale - 1, &low, &high)),
			  "zero of scale %u is read at another", scale);
	}
}

/* At as many digits, or more: times a power of ten, where there is room; never at fewer. */
static void
check_upto(Context *c, const uint8_t *bytes, uint32_t n, uint32_t scale, const Written *written)
{
	uint32_t	digits = (uint32_t) random_below(c, GH_SCALE_MAX + 1);
	__int128	value = (__int128) ((unsigned __int128) written->high << 64 | written->low);
	bool		fits = written->kind == WRITTEN_VALUE && digits >= scale;
	uint64_t	low = 0;
	uint64_t	high = 0;
	bool		read;

	for (uint32_t i = scale; fits && i < digits; i++)
		fits = !__builtin_mul_overflow(value, 10, &value);
	read = gh_numeric_read_upto(bytes, n, digits, &low, &high);
	/* a value that was drawn to be none at its scale may be one at another */
	if (written->kind == WRITTEN_VALUE)
		CHECK(c, read == fits, "a numeric of %u digits at %u: read %d", scale, digits, read);
	CHECK(c, !read || !fits || (low == (uint64_t) value && high == (uint64_t) ((unsigned __int128) value >> 64)),
		  "a numeric of %u digits at %u is %" PRIx64 " %" PRIx64, scale, digits, high, low);
	if (written->kind == WRITTEN_VALUE)
		CHECK(c, gh_numeric_scale(bytes, n, &low) && low == scale, "a numeric is shown with %u digits", scale);
}

static void
numeric_values(Context *c)
{
	uint64_t	values = sized(c, 1000000, 100000);

	for (uint64_t i = 0; i < values; i++)
	{
		/* just as many bytes as there are, for the sanitizer */
		uint8_t		drawn[NUMERIC_BYTES_MAX];
		uint32_t	scale = (uint32_t) random_below(c, GH_SCALE_MAX + 1);
		Written		written = {0};
		uint32_t	bytes = numeric_draw(c, drawn, scale, random_below(c, 10) == 0, &written);
		uint8_t    *exact = make_memory(bytes);
		uint64_t	low = 0;
		uint64_t	high = 0;
		bool		read;

		memcpy(exact, drawn, bytes);
		read = gh_numeric_read(exact, bytes, scale, &low, &high);
		CHECK(c, read == (written.kind == WRITTEN_VALUE), "numeric %" PRIu64 ": read %d", i, read);
		CHECK(c, !read || (low == written.low && high == written.high), "numeric %" PRIu64
			  " at scale %u is %" PRIx64 " %" PRIx64 ", expected %" PRIx64 " %" PRIx64, i, scale,
			  high, low, written.high, written.low);
		check_upto(c, exact, bytes, scale, &written);
		/* any bytes, any number of them */
		for (uint32_t k = 0; k < bytes; k++)
			if (random_below(c, 4) == 0)
				exact[k] = (uint8_t) random_next(c);
		(void) gh_numeric_read(exact, (uint32_t) random_below(c, bytes + 1), scale, &low, &high);
		free(exact);
	}
}

const Test	page_numeric_tests[] = {
	{"pages: numerics at the edges", numeric_edges, true},
	{"pages: numerics", numeric_values, true},
	{NULL, NULL, false}
};
