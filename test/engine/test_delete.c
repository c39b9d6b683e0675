/*
 * test_delete.c
 *		DELETE and DELETE_ONE.
 */
#include "conformance.h"

/* n positions of one key remove n values, or as many as there are. */
static void
test_delete_one(Context *c)
{
	uint64_t	count = sized(c, 6000, 800);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	int			round;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 6 : count;
		Subject		s;

		if (type.kind != KIND_MULTI || !subject_open_type(&s, c, type))
			continue;
		for (round = 0; round < 12; round++)
		{
			uint64_t	spread = UINT64_C(1) << random_below(c, 12);

			for (i = 0; i < n; i++)
				keys[i] = random_below(c, spread) - 3;
			do_checked(&s, GH_ADD, keys, NULL, n);
			check_content(&s);
			for (i = 0; i < n; i++)
				keys[i] = random_below(c, 1 + spread / 2) - 3;
			/* a part of the values, then more than there are */
			do_checked(&s, GH_DELETE_ONE, keys, NULL, round % 2 == 0 ? n / 3 : n);
			check_content(&s);
			do_checked(&s, GH_DELETE_ONE, keys, NULL, n);
			if (round % 3 == 0)
				check_content(&s);
		}
		check_content(&s);
		check_export(&s, 64);
		subject_close(&s);
	}
	free(keys);
}

/* One long list taken away value by value, in batches of every size. */
static void
test_drain_list(Context *c)
{
	uint64_t	count = sized(c, 100000, 2000);
	uint64_t   *keys = make_words(count);
	GhTableStats stats;
	Subject		s;
	uint64_t	batch = 1;
	uint64_t	left;
	uint64_t	i;
	int			built;

	for (i = 0; i < count; i++)
		keys[i] = 77;
	for (built = 0; built <= 1; built++)
	{
		if (!subject_open_kind(&s, c, KIND_MULTI))
			break;
		do_checked(&s, built ? GH_BUILD : GH_ADD, keys, NULL, count);
		for (left = count; left > 0; left -= batch)
		{
			batch = 1 + random_below(c, 1 + (left < count ? count - left : 1));
			batch = batch < left ? batch : left;
			do_checked(&s, GH_DELETE_ONE, keys, NULL, batch);
			do_checked(&s, GH_COUNT, keys, NULL, 1);
		}
		CHECK_U64(c, "values left in the model", s.model->values, 0);
		check_content(&s);
		check_shape(c, s.table, &stats);
		/* the key comes again */
		do_checked(&s, GH_ADD, keys, NULL, 3);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

/* Deletes of keys that are there, are not, and both many times in a batch. */
static void
test_delete(Context *c)
{
	uint64_t	count = sized(c, 20000, 1500);
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
		for (round = 0; round < 4; round++)
		{
			for (i = 0; i < n; i++)
				keys[i] = mix(random_below(c, n));
			do_checked(&s, storing_op(&s), keys, NULL, n);
			for (i = 0; i < n; i++)
				keys[i] = mix(random_below(c, round % 2 == 0 ? 2 * n : 1 + n / 20));
			do_checked(&s, GH_DELETE, keys, NULL, n);
			check_content(&s);
			do_checked(&s, GH_DELETE, keys, NULL, n);
		}
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

const Test	delete_tests[] = {
	{"delete", test_delete, false},
	{"delete-one", test_delete_one, false},
	{"drain list", test_drain_list, false},
	{NULL, NULL, false}
};
