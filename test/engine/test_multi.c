/*
 * test_multi.c
 *		Keys of many values.
 */
#include "conformance.h"

/* Values of any pattern, among them those that look like lists. */
static void
test_any_value(Context *c)
{
	uint64_t	count = sized(c, 70000, 3000);
	uint64_t   *keys = make_words(count);
	uint64_t   *values = make_words(count);
	Subject		s;
	uint64_t	i;
	int			round;

	if (!subject_open_kind(&s, c, KIND_MULTI))
		return;
	/* every upper half of a word, on keys of one and of several values */
	for (round = 0; round < 3; round++)
	{
		for (i = 0; i < count; i++)
		{
			keys[i] = round == 2 ? i / 3 : i;
			values[i] = i << 48 | (random_below(c, 2) != 0 ? random_next(c) >> 16 : i);
		}
		do_checked(&s, GH_ADD, keys, values, count);
		check_content(&s);
		do_checked(&s, GH_DELETE, keys, NULL, count / 2);
		check_content(&s);
	}
	subject_close(&s);
	free(keys);
	free(values);
}

/* Lists of every short length, grown one by one. */
static void
test_list_lengths(Context *c)
{
	uint64_t	longest = sized(c, 300, 80);
	uint64_t   *keys = make_words(longest);
	Subject		s;
	uint64_t	n;
	uint64_t	i;

	if (!subject_open_kind(&s, c, KIND_MULTI))
		return;
	for (n = longest; n > 0; n--)
	{
		/* key i gets its values in i batches */
		for (i = 0; i < n; i++)
			keys[i] = longest - 1 - i;
		do_checked(&s, GH_ADD, keys, NULL, n);
		do_checked(&s, GH_FIND_ALL, keys, NULL, n);
	}
	check_content(&s);
	for (i = 0; i < longest; i++)
		do_checked(&s, GH_DELETE, keys + i, NULL, 1);
	check_content(&s);
	subject_close(&s);
	free(keys);
}

/* One key of very many values beside a few others. */
static void
test_one_long_list(Context *c)
{
	uint64_t	count = sized(c, 1000000, 5000);
	uint64_t   *keys = make_words(count);
	GhTableStats first;
	GhTableStats second;
	GhTableStats empty;
	Subject		s;
	uint64_t	i;
	int			round;

	if (!subject_open_kind(&s, c, KIND_MULTI))
		return;
	for (i = 0; i < count; i++)
		keys[i] = i % 1000 == 999 ? i : 42;
	for (round = 0; round < 4; round++)
	{
		uint64_t	another[2] = {41, 42};

		do_checked(&s, GH_ADD, keys, NULL, count);
		check_content(&s);
		check_shape(c, s.table, round == 0 ? &first : &second);
		do_checked(&s, GH_DELETE, another, NULL, 2);
		check_content(&s);
	}
	do_checked(&s, GH_DELETE, keys, NULL, count);
	check_shape(c, s.table, &empty);
	/* an engine with memory of its own may keep it for later values */
	if (c->on_host)
		CHECK(c, empty.bytes < second.bytes / 8, "%" PRIu64 " bytes of values are kept by an empty table",
			  empty.bytes);
	CHECK(c, second.bytes <= first.bytes + first.bytes / 2,
		  "the memory of deleted values is not used again: %" PRIu64 " bytes, then %" PRIu64,
		  first.bytes, second.bytes);
	subject_close(&s);
	free(keys);
}

/*
 * Values come and go in lists of random length, beside a few that stay.  The memory
 * follows the most values at a time, not all that ever were.
 */
static void
test_value_memory(Context *c)
{
	enum
	{
		STAYING = 3
	};
	uint64_t	count = sized(c, 20000, 2000);
	uint64_t	rounds = 180;
	uint64_t   *keys = make_words(count);
	GhTableStats stats;
	uint64_t	after_some = 0;
	Subject		s;
	uint64_t	i;
	uint64_t	round;

	if (!subject_open_kind(&s, c, KIND_MULTI))
		return;
	for (i = 0; i < 4 * STAYING; i++)
		keys[i] = i % STAYING;
	do_checked(&s, GH_ADD, keys, NULL, 4 * STAYING);
	for (round = 0; round < rounds; round++)
	{
		/* every length from 1 to count in turn */
		uint64_t	spread = UINT64_C(1) << round % 15;

		spread = spread < count ? spread : count;
		for (i = 0; i < count; i++)
			keys[i] = STAYING + random_below(c, spread);
		do_checked(&s, GH_ADD, keys, NULL, count);
		for (i = 0; i < count; i++)
			keys[i] = STAYING + i;
		do_checked(&s, GH_DELETE, keys, NULL, count);
		check_shape(c, s.table, &stats);
		if (round == rounds / 3)
			after_some = stats.bytes;
	}
	check_content(&s);
	CHECK(c, stats.bytes <= after_some + after_some / 2,
		  "the memory creeps: %" PRIu64 " bytes, earlier %" PRIu64, stats.bytes, after_some);
	subject_close(&s);
	free(keys);
}

const Test	multi_tests[] = {
	{"any value", test_any_value, false},
	{"list lengths", test_list_lengths, false},
	{"one long list", test_one_long_list, false},
	{"value memory", test_value_memory, false},
	{NULL, NULL, false}
};
