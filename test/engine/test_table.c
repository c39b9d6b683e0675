/*
 * test_table.c
 *		Clear, flush and statistics.
 */
#include "conformance.h"

static void
test_clear(Context *c)
{
	uint64_t	count = sized(c, 50000, 2000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	int			round;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 20 : count;
		GhTableOptions options = options_of(c, type);
		GhTableStats before;
		GhTableStats after;
		GhError		error = {0};
		Subject		s;

		options.capacity = 1000;
		if (!subject_open(&s, c, &options))
			break;
		check_shape(c, s.table, &before);
		for (round = 0; round < 3; round++)
		{
			for (i = 0; i < n; i++)
				keys[i] = i < SPECIALS ? special_keys[i] : mix(i);
			/* twice, so that a multi table has lists */
			do_checked(&s, storing_op(&s), keys, NULL, n);
			do_checked(&s, storing_op(&s), keys, NULL, n / 2);
			subject_clear(&s);
			check_content(&s);
			check_export(&s, 3);
			check_shape(c, s.table, &after);
			for (i = 0; i < before.subtables; i++)
				CHECK_U64(c, "slots after clear", after.subtable[i].slots,
						  before.subtable[i].slots);
			CHECK_STATUS(c, "clear again", c->engine->table_clear(s.table, &error), GH_OK);
		}
		subject_close(&s);
	}
	free(keys);
}

/* Counters move with the work and never back. */
static void
test_stats(Context *c)
{
	enum
	{
		COUNT = 5000
	};
	uint64_t	keys[COUNT];
	uint8_t		ops[COUNT];
	GhTableOptions options = options_of(c, type_of_kind(KIND_MAP));
	GhTableStats first;
	GhTableStats second;
	uint64_t	looked_at;
	Subject		s;
	int			i;

	options.timing = true;
	if (!subject_open(&s, c, &options))
		return;
	for (i = 0; i < COUNT; i++)
	{
		keys[i] = random_next(c);
		ops[i] = GH_DELETE;
	}
	check_shape(c, s.table, &first);
	CHECK_U64(c, "reads of a new table", first.reads, 0);
	CHECK_U64(c, "writes of a new table", first.writes, 0);
	CHECK_U64(c, "subtables by default", first.subtables, GH_SUBTABLES_DEFAULT);
	CHECK(c, first.fill_min == GH_FILL_MIN_DEFAULT && first.fill_max == GH_FILL_MAX_DEFAULT,
		  "fill bounds by default are %g and %g", first.fill_min, first.fill_max);
	CHECK_U64(c, "buckets looked at of a new table", first.bucket_reads, 0);
	do_checked(&s, GH_INSERT, keys, NULL, COUNT);
	check_shape(c, s.table, &second);
	looked_at = second.bucket_reads;
	CHECK(c, looked_at >= COUNT, "%d keys were stored by looking at %" PRIu64 " buckets", COUNT,
		  looked_at);
	do_checked(&s, GH_FIND, keys, NULL, COUNT);
	check_shape(c, s.table, &second);
	looked_at = second.bucket_reads - looked_at;
	CHECK(c, looked_at >= COUNT && looked_at <= 2 * COUNT,
		  "%d keys were looked up in %" PRIu64 " buckets", COUNT, looked_at);
	CHECK_U64(c, "keys", second.keys, COUNT);
	CHECK_U64(c, "values", second.values, COUNT);
	CHECK_U64(c, "reads", second.reads, COUNT);
	CHECK_U64(c, "writes", second.writes, COUNT);
	CHECK(c, second.upsizes > 0, "the table did not grow");
	CHECK(c, second.bytes > first.bytes, "the memory did not grow");
	if (c->on_host)
		CHECK_U64(c, "bytes", second.bytes, s.state.allocated);
	looked_at = second.bucket_reads;
	do_mixed(&s, ops, keys, NULL, COUNT);
	check_shape(c, s.table, &second);
	CHECK(c, second.bucket_reads >= looked_at + COUNT,
		  "%d keys were deleted by looking at %" PRIu64 " buckets", COUNT,
		  second.bucket_reads - looked_at);
	CHECK_U64(c, "writes with a mixed batch", second.writes, 2 * COUNT);
	CHECK(c, second.bytes_peak >= second.bytes, "the peak is below the bytes");
	subject_close(&s);
}

/* Flush gives memory back, keeps the content, and has no reason to fail. */
static void
test_flush(Context *c)
{
	uint64_t	count = sized(c, 40000, 3000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	int			round;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 4 : count;
		GhTableStats full;
		GhTableStats stats;
		GhError		error = {0};
		Subject		s;

		if (!subject_open_type(&s, c, type))
			break;
		CHECK_STATUS(c, "flush of an empty table", c->engine->table_flush(s.table, &error), GH_OK);
		for (round = 0; round < 3; round++)
		{
			for (i = 0; i < n; i++)
				keys[i] = type.kind == KIND_MULTI ? i / (round == 1 ? 100 : 5) : mix(i);
			do_checked(&s, storing_op(&s), keys, NULL, n);
			check_shape(c, s.table, &full);
			do_checked(&s, round == 2 && type.kind == KIND_MULTI ? GH_DELETE_ONE : GH_DELETE, keys,
					   NULL, n - n / 8);
			CHECK_STATUS(c, "flush", c->engine->table_flush(s.table, &error), GH_OK);
			check_content(&s);
			check_export(&s, 100);
			check_shape(c, s.table, &stats);
			/* a small table may have no more than the least */
			CHECK(c, stats.bytes < full.bytes || (c->reduced && stats.bytes == full.bytes),
				  "a flush of %u-byte values left %" PRIu64 " bytes, before the deletes there were %"
				  PRIu64, (unsigned) type.value_size, stats.bytes, full.bytes);
			CHECK_STATUS(c, "flush again", c->engine->table_flush(s.table, &error), GH_OK);
			do_checked(&s, storing_op(&s), keys, NULL, n / 2);
			check_content(&s);
		}
		subject_close(&s);
	}
	free(keys);
}

/* Flush gets no memory at all: that is no error, and nothing is lost. */
static void
test_flush_without_memory(Context *c)
{
	uint64_t	count = sized(c, 20000, 3000);
	uint64_t   *keys = make_words(count);
	uint64_t	fail_at;
	uint64_t	i;
	Kind		kind;

	for (kind = 0; kind < KINDS; kind++)
	{
		for (fail_at = 1; fail_at < 12; fail_at++)
		{
			GhError		error = {0};
			Subject		s;

			if (!subject_open_kind(&s, c, kind))
				break;
			for (i = 0; i < count; i++)
				keys[i] = i / 3;
			do_checked(&s, storing_op(&s), keys, NULL, count);
			for (i = 0; i < count; i++)
				keys[i] = i % (count / 4);
			/* every allocation from the fail_at-th on */
			s.state.fail_at = s.state.calls + fail_at;
			s.state.fail_after = true;
			do_checked(&s, GH_DELETE, keys, NULL, count);
			CHECK_STATUS(c, "flush without memory", c->engine->table_flush(s.table, &error), GH_OK);
			check_content(&s);
			s.state.fail_at = 0;
			CHECK_STATUS(c, "flush", c->engine->table_flush(s.table, &error), GH_OK);
			check_content(&s);
			do_checked(&s, storing_op(&s), keys, NULL, count);
			check_content(&s);
			subject_close(&s);
		}
	}
	free(keys);
}

const Test	table_tests[] = {
	{"clear", test_clear, false},
	{"stats", test_stats, false},
	{"flush", test_flush, false},
	{"flush without memory", test_flush_without_memory, true},
	{NULL, NULL, false}
};
