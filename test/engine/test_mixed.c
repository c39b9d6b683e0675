/*
 * test_mixed.c
 *		MIXED: every position sees what those before it did.
 */
#include "conformance.h"

static const GhOp mixed_ops[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};

static void
draw_ops(Context *c, uint8_t *ops, uint64_t count, uint64_t different)
{
	uint64_t	first = random_below(c, 4);
	uint64_t	i;

	for (i = 0; i < count; i++)
		ops[i] = (uint8_t) mixed_ops[(first + random_below(c, different)) % 4];
}

/* Few keys many times, many keys once, and between; some or all of the operations. */
static void
test_mixed(Context *c)
{
	uint64_t	count = sized(c, 12000, 1500);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	int			round;

	for (t = 0; type_at(c, t, &type); t++)
	{
		GhTableOptions options = options_of(c, type);
		Subject		s;

		options.subtables = GH_SUBTABLES_MIN + t % 7;
		if (type.kind == KIND_MULTI || !subject_open(&s, c, &options))
			continue;
		for (round = 0; round < 16; round++)
		{
			uint64_t	spread = UINT64_C(1) << random_below(c, 15);
			uint64_t	n = 1 + random_below(c, type.value_size > 64 ? count / 10 : count);

			for (i = 0; i < n; i++)
				keys[i] = random_below(c, spread) - 3;
			draw_ops(c, ops, n, 1 + random_below(c, 4));
			s.bare = round % 5 == 4;
			do_mixed(&s, ops, keys, NULL, n);
			s.bare = false;
			check_content(&s);
		}
		subject_close(&s);
	}
	free(keys);
	free(ops);
}

/* Every sequence of five operations on one key, absent or present, told by the model. */
static void
test_short_sequences(Context *c)
{
	enum
	{
		LENGTH = 5,
		SEQUENCES = 1024
	};
	uint64_t   *keys = make_words(SEQUENCES * LENGTH);
	uint8_t    *ops = make_memory(SEQUENCES * LENGTH);
	int			round;
	int			k;
	int			i;

	/* the sequences of different keys are dealt like cards */
	for (i = 0; i < LENGTH; i++)
	{
		for (k = 0; k < SEQUENCES; k++)
		{
			keys[i * SEQUENCES + k] = (uint64_t) k;
			ops[i * SEQUENCES + k] = (uint8_t) mixed_ops[k >> 2 * i & 3];
		}
	}
	for (round = 0; round < 2; round++)
	{
		TableType	types[] = {{KIND_SET, 4, 0}, {KIND_MAP, 8, 8}, {KIND_MAP, 4, 12}};
		int			t;

		for (t = 0; t < 3; t++)
		{
			Subject		s;

			if (!subject_open_type(&s, c, types[t]))
				break;
			if (round == 1)
				do_checked(&s, GH_INSERT, keys, NULL, SEQUENCES);
			do_mixed(&s, ops, keys, NULL, SEQUENCES * LENGTH);
			check_content(&s);
			subject_close(&s);
		}
	}
	free(keys);
	free(ops);
}

/* A byte that is no operation: refused, with a prefix done that ends before it. */
static void
test_wrong_ops(Context *c)
{
	static const uint8_t wrong[] = {
		0, GH_EXCHANGE, GH_ADD, GH_BUILD, GH_COUNT, GH_FIND_ALL, GH_DELETE_ONE, GH_MIXED,
		GH_MIXED + 1, 127, 128, 255
	};
	uint64_t	count = sized(c, 20000, 1000);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	Subject		s;
	size_t		w;
	uint64_t	i;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (w = 0; w < sizeof(wrong); w++)
	{
		uint64_t	at = w % 3 == 0 ? 0 : w % 3 == 1 ? count - 1 : random_below(c, count);
		Batch		b;

		for (i = 0; i < count; i++)
			keys[i] = random_below(c, count);
		draw_ops(c, ops, count, 4);
		ops[at] = wrong[w];
		batch_begin(&s, &b, GH_MIXED, keys, NULL, ops, count);
		CHECK_STATUS(c, "a wrong operation in a mixed batch", do_request(c, s.table, &b.request),
					 GH_INVALID);
		if (CHECK(c, b.request.outcome.done <= at, "%" PRIu64 " positions are done of a mixed batch that is "
				  "wrong at %" PRIu64, b.request.outcome.done, at))
			check_stage(&b, b.request.outcome.done);
		batch_end(&b);
		check_content(&s);
	}
	subject_close(&s);
	free(keys);
	free(ops);
}

/* Mixed batches that grow the table, shrink it and do both at once. */
static void
test_mixed_resizes(Context *c)
{
	uint64_t	count = sized(c, 200000, 5000);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	GhTableStats stats;
	Subject		s;
	uint64_t	i;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (i = 0; i < count; i++)
	{
		keys[i] = i;
		ops[i] = i % 2 == 0 ? GH_INSERT : GH_UPSERT;
	}
	do_mixed(&s, ops, keys, NULL, count);
	check_content(&s);
	check_shape(c, s.table, &stats);
	CHECK(c, stats.upsizes > 0, "a mixed batch did not grow the table");
	/* old keys leave while others come */
	for (i = 0; i < count; i++)
	{
		keys[i] = i % 2 == 0 ? i : count + i;
		ops[i] = i % 2 == 0 ? GH_DELETE : GH_INSERT;
	}
	do_mixed(&s, ops, keys, NULL, count);
	check_content(&s);
	memset(ops, GH_DELETE, count);
	for (i = 0; i < count; i++)
		keys[i] = i;
	do_mixed(&s, ops, keys, NULL, count);
	for (i = 0; i < count; i++)
		keys[i] = count + i;
	do_mixed(&s, ops, keys, NULL, count);
	check_content(&s);
	CHECK_U64(c, "keys left", s.model->keys, 0);
	check_shape(c, s.table, &stats);
	subject_close(&s);
	free(keys);
	free(ops);
}

const Test	mixed_tests[] = {
	{"mixed batches", test_mixed, false},
	{"mixed short sequences", test_short_sequences, false},
	{"mixed wrong operations", test_wrong_ops, false},
	{"mixed resizes", test_mixed_resizes, false},
	{NULL, NULL, false}
};
