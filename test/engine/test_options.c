/*
 * test_options.c
 *		The options of a table at the edges of what is allowed, and beyond.
 */
#include "conformance.h"

#include <math.h>

/* Creates a table, says whether that went as expected, and what it said if not. */
static GhError
try_options(Context *c, const char *what, GhTableOptions options, GhStatus expected)
{
	HostState	state;
	GhHost		host;
	GhTable    *table = NULL;
	GhError		error = {0};
	GhStatus	status;

	host_init(&state, &host);
	status = c->engine->table_create(&host, &options, &table, &error);
	CHECK_STATUS(c, what, status, expected);
	if (status != GH_OK)
	{
		CHECK(c, error.status == status && error.message[0] != '\0', "%s: no message", what);
		CHECK(c, table == NULL, "%s: a table all the same", what);
	}
	else
		c->engine->table_destroy(table);
	CHECK_U64(c, "memory left", state.allocated, 0);
	return error;
}

/* The sentence of a refusal names what was wrong. */
static void
expect_words(Context *c, const GhError *error, const char *words)
{
	CHECK(c, strstr(error->message, words) != NULL, "the message \"%s\" does not say \"%s\"",
		  error->message, words);
}

static GhTableOptions
map_options(const Context *c)
{
	return options_of(c, type_of_kind(KIND_MAP));
}

static void
test_subtable_bounds(Context *c)
{
	static const struct
	{
		uint32_t	subtables;
		GhStatus	status;
	}			cases[] = {
		{GH_SUBTABLES_MIN - 1, GH_INVALID},
		{GH_SUBTABLES_MIN, GH_OK},
		{GH_SUBTABLES_DEFAULT, GH_OK},
		{GH_SUBTABLES_MAX, GH_OK},
		{GH_SUBTABLES_MAX + 1, GH_INVALID},
		{UINT32_MAX, GH_INVALID},
		{0, GH_OK}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		GhTableOptions options = map_options(c);
		GhError		error;

		options.subtables = cases[i].subtables;
		error = try_options(c, "subtables", options, cases[i].status);
		if (cases[i].status == GH_INVALID)
			expect_words(c, &error, "must be between 2 and 8");
	}
}

/* The bound of fill_min for d subtables, and the sentence that tells it. */
static void
try_fill_min(Context *c, uint32_t d, double fill_max)
{
	GhTableOptions options = map_options(c);
	double		bound = (double) d / (d + 1) * fill_max;
	char		words[100];
	GhError		error;

	options.subtables = d;
	options.fill_max = fill_max;
	options.fill_min = nextafter(bound, 0);
	try_options(c, "fill_min just below d / (d + 1) x fill_max", options, GH_OK);
	options.fill_min = bound;
	error = try_options(c, "fill_min at d / (d + 1) x fill_max", options, GH_INVALID);
	snprintf(words, sizeof(words), "above 0 and below %g with %u subtables and fill_max %g",
			 bound, (unsigned) d, fill_max);
	expect_words(c, &error, words);
	snprintf(words, sizeof(words), "fill_min is %g ", bound);
	expect_words(c, &error, words);
	options.fill_min = bound + 0.001;
	try_options(c, "fill_min above d / (d + 1) x fill_max", options, GH_INVALID);
	options.fill_min = 0.0001;
	try_options(c, "small fill_min", options, GH_OK);
	options.fill_min = -0.1;
	error = try_options(c, "negative fill_min", options, GH_INVALID);
	expect_words(c, &error, "fill_min is -0.1 ");
	options.fill_min = NAN;
	try_options(c, "fill_min not a number", options, GH_INVALID);
	options.fill_min = INFINITY;
	try_options(c, "infinite fill_min", options, GH_INVALID);
}

static void
test_fill_bounds(Context *c)
{
	static const double wrong[] = {GH_FILL_MAX_MAX + 0.0001, 1, -0.5, NAN, INFINITY};
	uint32_t	d;
	size_t		i;

	for (d = GH_SUBTABLES_MIN; d <= GH_SUBTABLES_MAX; d++)
	{
		GhTableOptions options = map_options(c);
		GhError		error;

		try_fill_min(c, d, GH_FILL_MAX_MAX);
		try_fill_min(c, d, GH_FILL_MAX_DEFAULT);
		try_fill_min(c, d, 0.3);
		options.subtables = d;
		for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		{
			options.fill_max = wrong[i];
			error = try_options(c, "fill_max", options, GH_INVALID);
			expect_words(c, &error, "must be above 0 and at most 0.95");
		}
		/* the default of the one is held against the other as it was given */
		options.fill_max = GH_FILL_MIN_DEFAULT;
		error = try_options(c, "fill_max at the default of fill_min", options, GH_INVALID);
		expect_words(c, &error, "fill_min is 0.4 ");
	}
}

static void
test_sizes(Context *c)
{
	static const uint32_t wrong_keys[] = {0, 1, 2, 3, 5, 6, 7, 9, 16, UINT32_MAX};
	static const uint32_t values[] = {0, 1, 2, 3, 4, 7, 8, 9, GH_VALUE_SIZE_MAX - 1, GH_VALUE_SIZE_MAX};
	static const uint32_t wrong_values[] = {GH_VALUE_SIZE_MAX + 1, 1 << 16, UINT32_MAX};
	GhTableOptions options;
	GhError		error;
	size_t		i;
	int			multi;

	for (i = 0; i < sizeof(wrong_keys) / sizeof(wrong_keys[0]); i++)
	{
		options = map_options(c);
		options.key_size = wrong_keys[i];
		error = try_options(c, "key_size", options, GH_INVALID);
		expect_words(c, &error, "must be 4 or 8");
	}
	for (multi = 0; multi <= 1; multi++)
	{
		options = map_options(c);
		options.multi = multi;
		for (i = 0; i < 2 * sizeof(values) / sizeof(values[0]); i++)
		{
			options.key_size = i % 2 == 0 ? 4 : 8;
			options.value_size = values[i / 2];
			try_options(c, "value_size", options,
						multi && options.value_size == 0 ? GH_INVALID : GH_OK);
		}
		for (i = 0; i < sizeof(wrong_values) / sizeof(wrong_values[0]); i++)
		{
			options.value_size = wrong_values[i];
			error = try_options(c, "value_size", options, GH_INVALID);
			expect_words(c, &error, "may be 1024 at most");
		}
	}
	options.value_size = 0;
	error = try_options(c, "a multi table without values", options, GH_INVALID);
	expect_words(c, &error, "must be 1 or more");
}

static void
test_device_bounds(Context *c)
{
	GhTableOptions options = map_options(c);
	GhError		error;

	options.device = -1;
	error = try_options(c, "device -1", options, GH_INVALID);
	expect_words(c, &error, "device is -1 ");
	options.device = 0;
	try_options(c, "device 0", options, GH_OK);
}

/* Capacities and limits that no machine has, and the exact limit of a table. */
static void
test_capacity_bounds(Context *c)
{
	static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 8, UINT64_C(1) << 62, UINT64_C(1) << 50};
	GhTableOptions options = map_options(c);
	GhTableStats stats;
	Subject		s;
	size_t		i;

	options.memory_limit = 1 << 20;
	for (i = 0; i < sizeof(huge) / sizeof(huge[0]); i++)
	{
		options.capacity = huge[i];
		try_options(c, "capacity beyond the limit", options, GH_LIMIT);
	}
	options.memory_limit = 1;
	options.capacity = 0;
	try_options(c, "a limit of one byte", options, GH_LIMIT);
	options.memory_limit = UINT64_MAX;
	options.capacity = 1;
	try_options(c, "the largest limit", options, GH_OK);
	/* a device's engine may size its working memory by the limit */
	if (!c->on_host || !subject_open(&s, c, &options))
		return;
	check_shape(c, s.table, &stats);
	subject_close(&s);
	options.memory_limit = stats.bytes_peak;
	try_options(c, "a limit of just the bytes needed", options, GH_OK);
	options.memory_limit = stats.bytes_peak + 1;
	try_options(c, "a limit of a byte more", options, GH_OK);
	options.memory_limit = stats.bytes_peak - 1;
	try_options(c, "a limit of a byte less", options, GH_LIMIT);
}

/* Capacities around powers of two, at every width. */
static void
test_small_capacities(Context *c)
{
	TableType	type;
	uint32_t	i;
	uint64_t	capacity;

	for (i = 0; type_at(c, i, &type); i++)
	{
		GhTableOptions options = options_of(c, type);

		for (capacity = 1; capacity < 600; capacity = 2 * capacity + random_below(c, 3))
		{
			options.capacity = capacity;
			options.subtables = (uint32_t) (GH_SUBTABLES_MIN + random_below(c, 7));
			try_options(c, "a small capacity", options, GH_OK);
		}
	}
}

const Test	option_tests[] = {
	{"subtable bounds", test_subtable_bounds, false},
	{"fill bounds", test_fill_bounds, false},
	{"key and value sizes", test_sizes, false},
	{"device bounds", test_device_bounds, false},
	{"capacity bounds", test_capacity_bounds, false},
	{"small capacities", test_small_capacities, false},
	{NULL, NULL, false}
};
