/*
 * test_find.c
 *		FIND, COUNT and FIND_ALL beyond what every test asks of them.
 */
#include "conformance.h"

/* Values that look like "absent" are values; absent takes its low bytes. */
static void
test_absent(Context *c)
{
	static const uint64_t absents[] = {0, 1, UINT64_MAX, UINT64_C(0x0102030405060708)};
	uint64_t	keys[3] = {5, 6, 7};
	uint8_t		flags[3];
	TableType	type;
	uint32_t	t;
	uint32_t	i;

	for (t = 0; type_at(c, t, &type); t++)
	{
		char	   *out;
		void	   *packed = make_keys(type.key_size, keys, 3);
		GhRequest	find = {.op = GH_FIND, .count = 3, .keys = packed, .flags_out = flags};
		Subject		s;

		if (type.kind != KIND_MAP || !subject_open_type(&s, c, type))
		{
			free(packed);
			continue;
		}
		out = make_memory(3 * type.value_size);
		find.values_out = out;
		for (i = 0; i < sizeof(absents) / sizeof(absents[0]); i++)
		{
			memset(out, 0x33, 3 * type.value_size);
			/* key 6 has the value that is asked for as absent */
			do_checked(&s, GH_UPSERT, keys + 1, absents + i, 1);
			find.absent = absents[i];
			find.outcome.done = find.outcome.matched = 0;
			CHECK_STATUS(c, "find", do_request(c, s.table, &find), GH_OK);
			CHECK_U64(c, "found", find.outcome.matched, 1);
			CHECK(c, flags[0] == 0 && flags[1] == 1 && flags[2] == 0, "flags %d %d %d", flags[0],
				  flags[1], flags[2]);
			CHECK(c, value_is_absent(type.value_size, out, absents[i]) &&
				  value_is_absent(type.value_size, out + 2 * type.value_size, absents[i]),
				  "an absent key of %u-byte values is not absent", (unsigned) type.value_size);
			CHECK(c, value_is(type.value_size, out + type.value_size, absents[i]),
				  "the value that is as absent was not found");
		}
		free(out);
		free(packed);
		subject_close(&s);
	}
}

/* A find-all of no keys or of absent ones. */
static void
test_empty_find_all(Context *c)
{
	uint64_t	offsets[4] = {9, 9, 9, 9};
	uint64_t	keys[3] = {0, 1, UINT64_MAX};
	GhRequest	request = {.op = GH_FIND_ALL, .offsets_out = offsets};
	Subject		s;
	int			i;

	if (!subject_open_kind(&s, c, KIND_MULTI))
		return;
	CHECK_STATUS(c, "find-all of nothing", do_request(c, s.table, &request), GH_OK);
	CHECK_U64(c, "offset of nothing", offsets[0], 0);
	request = (GhRequest) {.op = GH_FIND_ALL, .count = 3, .keys = keys, .offsets_out = offsets};
	CHECK_STATUS(c, "find-all of absent keys", do_request(c, s.table, &request), GH_OK);
	CHECK_U64(c, "values of absent keys", request.outcome.values_count, 0);
	for (i = 0; i < 4; i++)
		CHECK_U64(c, "offset of an absent key", offsets[i], 0);
	subject_close(&s);
}

/* The same key many times in a find-all and a count, beside absent ones. */
static void
test_repeated_keys(Context *c)
{
	uint64_t	count = sized(c, 20000, 1000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 20 : count;
		Subject		s;

		if (type.kind != KIND_MULTI || !subject_open_type(&s, c, type))
			continue;
		for (i = 0; i < n / 10; i++)
			keys[i] = random_below(c, 1 + n / 50);
		do_checked(&s, GH_ADD, keys, NULL, n / 10);
		for (i = 0; i < n; i++)
			keys[i] = random_below(c, 2) == 0 ? random_below(c, n / 20) : 3;
		do_checked(&s, GH_FIND_ALL, keys, NULL, n);
		do_checked(&s, GH_COUNT, keys, NULL, n);
		do_checked(&s, GH_FIND, keys, NULL, n);
		subject_close(&s);
	}
	free(keys);
}

/* Counts after every way in which values come and go. */
static void
test_counts(Context *c)
{
	uint64_t	count = sized(c, 5000, 500);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	int			round;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 10 : count;
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		for (round = 0; round < 6; round++)
		{
			static const GhOp ops[] = {GH_ADD, GH_DELETE_ONE, GH_ADD, GH_DELETE, GH_INSERT, GH_UPSERT};

			for (i = 0; i < n; i++)
				keys[i] = random_below(c, 1 + n / 3);
			if (op_fits(&s, ops[round]))
				do_checked(&s, ops[round], keys, NULL, n);
			for (i = 0; i < n; i++)
				keys[i] = random_below(c, n);
			do_checked(&s, GH_COUNT, keys, NULL, n);
		}
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

const Test	find_tests[] = {
	{"absent", test_absent, false},
	{"empty find-all", test_empty_find_all, false},
	{"repeated keys", test_repeated_keys, false},
	{"counts", test_counts, false},
	{NULL, NULL, false}
};
