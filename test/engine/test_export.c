/*
 * test_export.c
 *		Exports: every entry once, whatever the room.
 */
#include "conformance.h"

static void
test_export_sizes(Context *c)
{
	static const uint64_t capacities[] = {1, 2, 3, 7, 64, 1000, 100000};
	uint64_t	count = sized(c, 3000, 300);
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

/* Finds, counts and statistics between two calls are no changes. */
static void
test_export_interleaved(Context *c)
{
	uint64_t	count = sized(c, 5000, 500);
	uint64_t   *keys = make_words(count);
	uint64_t   *seen = make_words(count);
	GhCursor	cursor[2] = {{0}, {0}};
	uint64_t	got[2] = {0, 0};
	uint64_t	out[64];
	uint64_t	values[64];
	GhError		error = {0};
	Subject		s;
	uint64_t	i;
	int			which = 0;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (i = 0; i < count; i++)
	{
		keys[i] = i;
		seen[i] = 0;
	}
	do_checked(&s, GH_INSERT, keys, keys, count);
	/* two exports at a time */
	while (!cursor[0].finished || !cursor[1].finished)
	{
		uint64_t	n = 0;

		which = cursor[!which].finished ? which : !which;
		if (!CHECK_STATUS(c, "export", c->engine->table_export(s.table, &cursor[which], 64, out,
															   values, &n, &error), GH_OK))
			break;
		got[which] += n;
		for (i = 0; i < n; i++)
		{
			if (CHECK(c, out[i] < count && values[i] == out[i], "a strange entry"))
				seen[out[i]] += UINT64_C(1) << 32 * which;
		}
		do_checked(&s, GH_FIND, keys, NULL, 100);
		do_checked(&s, GH_COUNT, keys, NULL, 100);
	}
	CHECK_U64(c, "entries of the one export", got[0], count);
	CHECK_U64(c, "entries of the other", got[1], count);
	for (i = 0; i < count; i++)
		CHECK_U64(c, "times of an entry in either", seen[i], UINT64_C(0x100000001));
	subject_close(&s);
	free(keys);
	free(seen);
}

const Test	export_tests[] = {
	{"export", test_export_sizes, false},
	{"export of a long list", test_export_long_list, false},
	{"export interleaved", test_export_interleaved, false},
	{NULL, NULL, false}
};
