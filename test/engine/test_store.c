/*
 * test_store.c
 *		INSERT, UPSERT, EXCHANGE, ADD: which of a batch's equal keys wins.
 */
#include "conformance.h"

/* One key at every position, new and old, special and not. */
static void
test_equal_keys(Context *c)
{
	uint64_t	count = sized(c, 20000, 2000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	int			which;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 10 : count;
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		for (which = 0; which < 4; which++)
		{
			GhOp		op;

			for (i = 0; i < n; i++)
				keys[i] = which < 3 ? special_keys[which] : UINT64_C(0x123456789ABCDEF);
			for (op = GH_INSERT; op <= GH_ADD; op++)
			{
				if (!op_fits(&s, op))
					continue;
				do_checked(&s, op, keys, NULL, n);
				do_checked(&s, GH_FIND, keys, NULL, n);
				do_checked(&s, op, keys, NULL, n);
				check_content(&s);
				if (which % 2 == 0)
					do_checked(&s, GH_DELETE, keys, NULL, n);
			}
		}
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

/* A few keys, each many times and mixed: every order matters. */
static void
test_few_keys(Context *c)
{
	static const GhOp ops[] = {GH_INSERT, GH_UPSERT, GH_EXCHANGE, GH_ADD, GH_DELETE};
	uint64_t	count = sized(c, 9000, 1000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	int			round;
	uint64_t	i;

	for (t = 0; type_at(c, t, &type); t++)
	{
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		for (round = 0; round < 20; round++)
		{
			uint64_t	different = 1 + random_below(c, 40);
			uint64_t	n = 1 + random_below(c, type.value_size > 64 ? count / 10 : count);

			if (!op_fits(&s, ops[round % 5]))
				continue;
			for (i = 0; i < n; i++)
				keys[i] = random_below(c, different) - 5;
			do_checked(&s, ops[round % 5], keys, NULL, n);
			check_content(&s);
		}
		subject_close(&s);
	}
	free(keys);
}

/*
 * The winner told by hand, without the model: the first position of an insert, the
 * last of an upsert, in one batch of several slices.
 */
static void
test_winners(Context *c)
{
	uint64_t	count = sized(c, 300000, 5000);
	uint64_t	different = count / 100;
	uint64_t   *keys = make_words(count);
	uint64_t   *positions = make_words(count);
	uint64_t   *out = make_words(different);
	GhRequest	store = {.count = count, .keys = keys, .values_in = positions};
	GhRequest	find = {.op = GH_FIND, .count = different, .keys = keys, .values_out = out};
	uint64_t	i;
	int			round;

	for (i = 0; i < count; i++)
	{
		keys[i] = i % different;
		positions[i] = i;
	}
	for (round = 0; round < 2; round++)
	{
		Subject		s;

		if (!subject_open_kind(&s, c, KIND_MAP))
			break;
		store.op = round == 0 ? GH_INSERT : GH_UPSERT;
		store.outcome.done = store.outcome.inserted = store.outcome.replaced = 0;
		CHECK_STATUS(c, "store", do_request(c, s.table, &store), GH_OK);
		CHECK_U64(c, "inserted", store.outcome.inserted, different);
		CHECK_U64(c, "replaced", store.outcome.replaced, round == 0 ? 0 : count - different);
		find.outcome.done = find.outcome.matched = 0;
		CHECK_STATUS(c, "find", do_request(c, s.table, &find), GH_OK);
		for (i = 0; i < different; i++)
			CHECK(c, out[i] == (round == 0 ? i : count - different + i),
				  "%s of equal keys left position %" PRIu64 "'s value", op_name(store.op), out[i]);
		subject_close(&s);
	}
	free(keys);
	free(positions);
	free(out);
}

/* Chains of exchange over batches and slices, of keys that are often there. */
static void
test_exchange_chains(Context *c)
{
	static const uint32_t sizes[] = {4, 8};
	uint64_t	count = sized(c, 100000, 3000);
	uint64_t   *keys = make_words(count);
	uint32_t	i;
	uint64_t	k;
	int			round;

	for (i = 0; i < 4; i++)
	{
		TableType	type = {KIND_MAP, i < 2 ? 4 : 8, sizes[i % 2]};
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		for (round = 0; round < 6; round++)
		{
			uint64_t	spread = UINT64_C(1) << 3 * round;

			for (k = 0; k < count; k++)
				keys[k] = random_below(c, spread) * UINT64_C(0x9E3779B97F4A7C15);
			do_checked(&s, GH_EXCHANGE, keys, NULL, count);
			do_checked(&s, GH_FIND, keys, NULL, count);
			do_checked(&s, round % 2 == 0 ? GH_UPSERT : GH_DELETE, keys, NULL, count / 3);
		}
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

const Test	store_tests[] = {
	{"equal keys", test_equal_keys, false},
	{"few keys", test_few_keys, false},
	{"winners", test_winners, false},
	{"exchange chains", test_exchange_chains, false},
	{NULL, NULL, false}
};
