/*
 * test_export.c
 *		Exports: every entry once, whatever the room.
 */
#include "conformance.h"

static void
test_export_sizes(Context *c)
{
	static const uint64_t capacities[] = {1, 2, 3, 7, 64, 1000, 100000};
	/* entry by entry, which takes a device its time */
	uint64_t	count = sized(c, c->on_host ? 3000 : 600, 150);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;

	for (t = 0; type_at(c, t, &type); t++)
	{
		GhTableOptions options = options_of(c, type);
		Subject		s;

		options.subtables = GH_SUBTABLES_MIN + t % 7;
		if (!subject_open(&s, c, &options))
			break;
		check_export(&s, 1);
		check_export(&s, 100);
		for (i = 0; i < count; i++)
			keys[i] = i < SPECIALS ? special_keys[i] : mix(random_below(c, count));
		do_checked(&s, storing_op(&s), keys, NULL, count);
		/* a multi table: some keys of two values and more */
		do_checked(&s, storing_op(&s), keys, NULL, count / 3);
		for (i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
			check_export(&s, capacities[i]);
		do_checked(&s, GH_DELETE, keys, NULL, count / 2);
		check_export(&s, 7);
		do_checked(&s, GH_DELETE, keys, NULL, count);
		check_export(&s, 2);
		subject_close(&s);
	}
	free(keys);
}

/* A key whose values do not fit one export, made by adds and by a build. */
static void
test_export_long_list(Context *c)
{
	uint64_t	count = sized(c, 120000, 4000);
	uint64_t   *keys = make_words(count);
	uint64_t	i;
	int			built;

	for (i = 0; i < count; i++)
		keys[i] = i % 6 == 5 ? i : 11;
	for (built = 0; built <= 1; built++)
	{
		static const uint32_t sizes[] = {8, 4, 12};
		uint32_t	w;

		for (w = 0; w < 3; w++)
		{
			TableType	type = {KIND_MULTI, w == 1 ? 4 : 8, sizes[w]};
			Subject		s;

			if (!subject_open_type(&s, c, type))
				break;
			do_checked(&s, built ? GH_BUILD : GH_ADD, keys, NULL, count);
			check_export(&s, 1000);
			check_export(&s, 12345);
			check_export(&s, 2 * count);
			if (c->on_host)
				check_export(&s, 1 + random_below(c, 7));
			do_checked(&s, GH_DELETE_ONE, keys, NULL, count / 2);
			check_content(&s);
			check_export(&s, 999);
			subject_close(&s);
		}
	}
	free(keys);
}

/*
 * Two exports at a time, with finds, counts and statistics between their calls, which
 * are no changes.  Every value is another one, so that it says what came.
 */
static void
test_export_interleaved_of(Context *c, Kind kind)
{
	enum
	{
		ROOM = 64
	};
	uint64_t	count = sized(c, 20000, 1000);
	uint64_t   *keys = make_words(count);
	uint64_t   *numbers = make_words(count);
	uint64_t   *seen = make_words(count);
	GhCursor	cursor[2] = {{0}, {0}};
	uint64_t	out[ROOM];
	uint64_t	values[ROOM];
	GhTableStats stats;
	GhError		error = {0};
	Subject		s;
	uint64_t	i;

	if (!subject_open_kind(&s, c, kind))
		return;
	for (i = 0; i < count; i++)
	{
		/* lists of one value to hundreds, or one value each */
		keys[i] = kind == KIND_MULTI ? i / (1 + i / 40) : i;
		numbers[i] = i;
		seen[i] = 0;
	}
	do_checked(&s, storing_op(&s), keys, numbers, count);
	while ((!cursor[0].finished || !cursor[1].finished) && c->failures == 0)
	{
		uint64_t	which = random_below(c, 2);
		uint64_t	n = 0;

		which = cursor[which].finished ? !which : which;
		CHECK_STATUS(c, "export", c->engine->table_export(
						 s.table, &cursor[which], 1 + random_below(c, ROOM), out, values, &n, &error),
					 GH_OK);
		for (i = 0; i < n && i < ROOM; i++)
		{
			if (CHECK(c, values[i] < count && keys[values[i]] == out[i], "a strange entry"))
				seen[values[i]] += UINT64_C(1) << 32 * which;
		}
		if (random_below(c, 8) == 0)
		{
			do_checked(&s, GH_FIND, keys, NULL, 100);
			do_checked(&s, GH_COUNT, keys, NULL, 100);
			check_shape(c, s.table, &stats);
		}
	}
	for (i = 0; i < count; i++)
		CHECK_U64(c, "times of an entry in either export", seen[i], UINT64_C(0x100000001));
	subject_close(&s);
	free(keys);
	free(numbers);
	free(seen);
}

static void
test_export_interleaved(Context *c)
{
	test_export_interleaved_of(c, KIND_MAP);
	test_export_interleaved_of(c, KIND_MULTI);
}

const Test	export_tests[] = {
	{"export", test_export_sizes, false},
	{"export of a long list", test_export_long_list, false},
	{"export interleaved", test_export_interleaved, false},
	{NULL, NULL, false}
};
