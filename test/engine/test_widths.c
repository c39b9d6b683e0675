/*
 * test_widths.c
 *		Every operation at every width, with the keys that an implementation might
 *		mistake for its marks, and with random ones.
 */
#include "conformance.h"

static bool
changes_table(GhOp op)
{
	return op != GH_FIND && op != GH_FIND_ALL && op != GH_COUNT;
}

/* One operation on the special keys: one by one, so that each is there without the
 * next, then all at once, on an empty table and on one that has them. */
static void
try_special_keys(Subject *s, GhOp op)
{
	uint8_t		ops[SPECIALS];
	int			i;

	subject_clear(s);
	for (i = 0; i < SPECIALS; i++)
	{
		static const GhOp mixed[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};

		ops[i] = (uint8_t) mixed[random_below(s->c, 4)];
	}
	for (i = 0; i < SPECIALS && op != GH_BUILD && op != GH_MIXED; i++)
	{
		/* special values too */
		do_checked(s, op, special_keys + i, special_keys + (i + 1) % SPECIALS, 1);
		do_checked(s, GH_FIND, special_keys, NULL, SPECIALS);
	}
	if (op == GH_MIXED)
		do_mixed(s, ops, special_keys, NULL, SPECIALS);
	else
		do_checked(s, op, special_keys, NULL, SPECIALS);
	check_content(s);
	for (i = 0; i < SPECIALS; i++)
	{
		do_checked(s, GH_DELETE, special_keys + i, NULL, 1);
		do_checked(s, GH_DELETE, special_keys + i, NULL, 1);
		do_checked(s, GH_COUNT, special_keys, NULL, SPECIALS);
	}
	CHECK_U64(s->c, "keys left", s->model->keys, 0);
	do_checked(s, storing_op(s), special_keys, NULL, SPECIALS);
	if (op == GH_MIXED)
		do_mixed(s, ops, special_keys, NULL, SPECIALS);
	else if (op != GH_BUILD)
		do_checked(s, op, special_keys, NULL, SPECIALS);
	check_content(s);
	check_export(s, 5);
}

static void
test_special_keys(Context *c)
{
	TableType	type;
	uint32_t	t;
	GhOp		op;

	for (t = 0; type_at(c, t, &type); t++)
	{
		GhTableOptions options = options_of(c, type);
		Subject		s;

		options.subtables = GH_SUBTABLES_MIN + t % (GH_SUBTABLES_MAX - GH_SUBTABLES_MIN + 1);
		if (!subject_open(&s, c, &options))
			return;
		for (op = GH_INSERT; op <= GH_MIXED; op++)
		{
			if (op_fits(&s, op) && changes_table(op))
				try_special_keys(&s, op);
		}
		subject_close(&s);
	}
}

/* Special keys stay what they are while the table grows and shrinks around them. */
static void
test_special_keys_resized(Context *c)
{
	uint64_t	count = sized(c, 20000, 4000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = mix(c->seed + i);
	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 8 : count;
		GhTableStats stats;
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		do_checked(&s, storing_op(&s), special_keys, NULL, SPECIALS);
		do_checked(&s, storing_op(&s), keys, NULL, n);
		check_content(&s);
		do_checked(&s, GH_DELETE, keys, NULL, n - n / 16);
		check_content(&s);
		check_shape(c, s.table, &stats);
		CHECK(c, stats.upsizes > 0, "the table of %u-byte values did not grow",
			  (unsigned) type.value_size);
		do_checked(&s, GH_DELETE, special_keys, NULL, SPECIALS);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

/* Random batches of every operation, each key some times: old and new, there and not. */
static void
try_every_operation(Subject *s, uint64_t count, uint64_t *keys, uint8_t *ops)
{
	Context    *c = s->c;
	GhOp		op;
	uint64_t	i;

	for (op = GH_INSERT; op <= GH_MIXED; op++)
	{
		static const GhOp mixed[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};
		uint64_t	n = 1 + random_below(c, count);

		if (!op_fits(s, op))
			continue;
		for (i = 0; i < n; i++)
		{
			keys[i] = mix(random_below(c, count));
			ops[i] = (uint8_t) mixed[random_below(c, 4)];
		}
		if (op == GH_BUILD)
			subject_clear(s);
		if (op == GH_MIXED)
			do_mixed(s, ops, keys, NULL, n);
		else
			do_checked(s, op, keys, NULL, n);
		if (changes_table(op))
			check_content(s);
	}
}

static void
test_every_operation(Context *c)
{
	uint64_t	count = sized(c, 6000, 1000);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	TableType	type;
	uint32_t	t;
	uint32_t	round;

	for (t = 0; type_at(c, t, &type); t++)
	{
		for (round = 0; round < (c->reduced ? 1 : 4); round++)
		{
			GhTableOptions options = options_of(c, type);
			Subject		s;

			options.subtables = GH_SUBTABLES_MIN + (t + round) % 7;
			if (!subject_open(&s, c, &options))
				break;
			try_every_operation(&s, type.value_size > 64 ? count / 4 : count, keys, ops);
			try_every_operation(&s, 1 + random_below(c, 60), keys, ops);
			check_export(&s, 1 + random_below(c, count));
			subject_close(&s);
		}
	}
	free(keys);
	free(ops);
}

/* Values of other sizes than the types above: every size up to 40 bytes, and the ends. */
static void
test_every_value_size(Context *c)
{
	uint64_t	count = sized(c, 600, 100);
	uint64_t   *keys = make_words(count);
	uint32_t	size;
	uint32_t	multi;
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = i % 2 == 0 ? mix(i) : mix(random_below(c, count));
	for (size = 1; size <= GH_VALUE_SIZE_MAX; size += size < 40 ? 1 : c->reduced ? 492 : 41)
	{
		for (multi = 0; multi <= 1; multi++)
		{
			TableType	type = {multi ? KIND_MULTI : KIND_MAP, size % 2 != 0 ? 4 : 8, size};
			Subject		s;

			if (!subject_open_type(&s, c, type))
				break;
			do_checked(&s, storing_op(&s), keys, NULL, count);
			do_checked(&s, GH_DELETE, keys, NULL, count / 3);
			do_checked(&s, storing_op(&s), keys, NULL, count / 2);
			check_content(&s);
			check_export(&s, 1 + random_below(c, count));
			subject_close(&s);
		}
	}
	free(keys);
}

const Test	width_tests[] = {
	{"special keys", test_special_keys, false},
	{"special keys resized", test_special_keys_resized, false},
	{"every operation", test_every_operation, false},
	{"every value size", test_every_value_size, false},
	{NULL, NULL, false}
};
