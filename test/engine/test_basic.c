/*
 * test_basic.c
 *		Each operation on each kind of table, the keys that an implementation
 *		might mistake for its marks, and batches of equal keys.
 */
#include "conformance.h"

#define SPECIALS 24

/* Patterns that mark empty or deleted slots, lists or locks in some table. */
static void
special_keys(uint64_t keys[SPECIALS])
{
	static const uint64_t patterns[SPECIALS] = {
		0, UINT64_MAX, UINT64_C(1) << 63, INT64_MAX, 1, 2, UINT64_MAX - 1, UINT64_MAX - 2,
		UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX << 32, (UINT64_C(1) << 63) + 1,
		(UINT64_C(1) << 63) | UINT32_MAX, UINT64_C(0x7FFFFFFF), UINT64_C(0x80000000),
		UINT64_C(0xFFFFFFFF80000000), UINT64_C(0x8000000080000000),
		UINT64_C(0xA5A5A5A5A5A5A5A5), UINT64_C(0xCCCCCCCCCCCCCCCC),
		UINT64_C(0xFFF5000000000000), UINT64_C(0xFFF5010000000000),
		UINT64_C(0xDEADBEEFDEADBEEF), UINT64_C(0x7FF0000000000000), UINT64_C(0xFFFF)
	};

	memcpy(keys, patterns, sizeof(patterns));
}

static GhOp
storing_op(Kind kind)
{
	return kind == KIND_MULTI ? GH_ADD : GH_INSERT;
}

static void
test_special_keys_of(Context *c, Kind kind)
{
	static const GhOp map_ops[] = {GH_INSERT, GH_UPSERT, GH_EXCHANGE};
	uint64_t	keys[SPECIALS];
	Subject		s;
	int			round;
	int			i;

	special_keys(keys);
	if (!subject_open_kind(&s, c, kind))
		return;
	for (round = 0; round < 3; round++)
	{
		GhOp		op = kind == KIND_MULTI ? GH_ADD :
			kind == KIND_SET && round == 2 ? GH_INSERT : map_ops[round];

		do_checked(&s, GH_FIND, keys, NULL, SPECIALS);
		/* one by one, so that each is there without the next */
		for (i = 0; i < SPECIALS; i++)
		{
			/* special values too */
			do_checked(&s, op, keys + i, keys + (i + round) % SPECIALS, 1);
			do_checked(&s, GH_FIND, keys, NULL, SPECIALS);
		}
		do_checked(&s, op, keys, NULL, SPECIALS);
		check_content(&s);
		for (i = 0; i < SPECIALS; i++)
		{
			do_checked(&s, GH_DELETE, keys + i, NULL, 1);
			do_checked(&s, GH_DELETE, keys + i, NULL, 1);
			check_content(&s);
		}
		CHECK_U64(c, "keys left", s.model->keys, 0);
		do_checked(&s, op, keys, NULL, SPECIALS);
		do_checked(&s, GH_DELETE, keys, NULL, SPECIALS);
		check_content(&s);
	}
	subject_close(&s);
}

static void
test_special_keys(Context *c)
{
	Kind		kind;

	for (kind = 0; kind < KINDS; kind++)
		test_special_keys_of(c, kind);
}

/* Batch sizes around what an engine may do at a time. */
static void
test_batch_sizes(Context *c)
{
	static const uint64_t sizes[] = {
		0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097,
		8191, 8192, 8193, 65535, 65536, 65537
	};
	size_t		n = sized(c, sizeof(sizes) / sizeof(sizes[0]), 19);
	uint64_t   *keys = make_memory(65537 * sizeof(uint64_t));
	Kind		kind;
	size_t		i;

	for (kind = 0; kind < KINDS; kind++)
	{
		for (i = 0; i < n; i++)
		{
			uint64_t	k;
			Subject		s;

			if (!subject_open_kind(&s, c, kind))
				break;
			for (k = 0; k < sizes[i]; k++)
				keys[k] = random_next(c);
			do_checked(&s, storing_op(kind), keys, NULL, sizes[i]);
			do_checked(&s, GH_FIND, keys, NULL, sizes[i]);
			check_content(&s);
			do_checked(&s, GH_DELETE, keys, NULL, sizes[i]);
			do_checked(&s, GH_FIND, keys, NULL, sizes[i]);
			check_content(&s);
			subject_close(&s);
		}
	}
	free(keys);
}

/* One key at every position, new and old, special and not. */
static void
test_equal_keys(Context *c)
{
	uint64_t	count = sized(c, 20000, 3000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	uint64_t	special[SPECIALS];
	Kind		kind;
	uint64_t	i;
	int			which;

	special_keys(special);
	for (kind = 0; kind < KINDS; kind++)
	{
		Subject		s;

		if (!subject_open_kind(&s, c, kind))
			break;
		for (which = 0; which < 4; which++)
		{
			GhOp		op;

			for (i = 0; i < count; i++)
				keys[i] = which < 3 ? special[which] : UINT64_C(0x123456789ABCDEF);
			for (op = GH_INSERT; op <= GH_DELETE; op++)
			{
				bool		fits = kind == KIND_MULTI ? op >= GH_ADD :
					op <= (kind == KIND_MAP ? GH_EXCHANGE : GH_UPSERT) || op == GH_FIND || op == GH_DELETE;

				if (op == GH_FIND || op == GH_FIND_ALL || !fits)
					continue;
				do_checked(&s, op, keys, NULL, count);
				check_content(&s);
				do_checked(&s, op, keys, NULL, count);
				check_content(&s);
				if (which % 2 == 0)
					do_checked(&s, GH_DELETE, keys, NULL, count);
			}
			check_content(&s);
		}
		subject_close(&s);
	}
	free(keys);
}

/* A few keys, each many times and mixed: every order matters. */
static void
test_few_keys(Context *c)
{
	static const GhOp ops[KINDS][4] = {
		{GH_INSERT, GH_UPSERT, GH_DELETE, GH_FIND},
		{GH_INSERT, GH_UPSERT, GH_EXCHANGE, GH_DELETE},
		{GH_ADD, GH_ADD, GH_FIND_ALL, GH_DELETE}
	};
	uint64_t	count = sized(c, 9000, 2000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	Kind		kind;
	int			round;
	uint64_t	i;

	for (kind = 0; kind < KINDS; kind++)
	{
		Subject		s;

		if (!subject_open_kind(&s, c, kind))
			break;
		for (round = 0; round < 24; round++)
		{
			uint64_t	different = 1 + random_below(c, 40);
			uint64_t	n = 1 + random_below(c, count);

			for (i = 0; i < n; i++)
				keys[i] = random_below(c, different) - 5;
			do_checked(&s, ops[kind][round % 4], keys, NULL, n);
			check_content(&s);
		}
		subject_close(&s);
	}
	free(keys);
}

/* flags_out and, in a map, values_out of a find may be left out. */
static void
test_optional_arrays(Context *c)
{
	enum
	{
		COUNT = 1000
	};
	uint64_t	keys[COUNT];
	uint64_t	values[COUNT];
	Kind		kind;
	int			i;

	for (kind = 0; kind < KINDS; kind++)
	{
		GhRequest	store = {.op = storing_op(kind), .count = COUNT, .keys = keys};
		GhRequest	find = {.op = GH_FIND, .count = COUNT, .keys = keys};
		GhRequest	drop = {.op = GH_DELETE, .count = COUNT, .keys = keys};
		Subject		s;

		if (!subject_open_kind(&s, c, kind))
			break;
		for (i = 0; i < COUNT; i++)
		{
			keys[i] = random_next(c);
			values[i] = ~keys[i];
		}
		store.values_in = kind == KIND_SET ? NULL : values;
		CHECK_STATUS(c, "store", do_request(c, s.table, &store), GH_OK);
		CHECK_U64(c, "stored", store.matched, COUNT);
		CHECK_STATUS(c, "find", do_request(c, s.table, &find), GH_OK);
		CHECK_U64(c, "found", find.matched, COUNT);
		CHECK_STATUS(c, "delete", do_request(c, s.table, &drop), GH_OK);
		CHECK_U64(c, "deleted", drop.matched, COUNT);
		subject_close(&s);
	}
}

/* Several requests submitted before the first is waited for. */
static void
test_several_in_flight(Context *c)
{
	enum
	{
		FLIGHTS = 8
	};
	uint64_t	count = sized(c, 50000, 2000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	uint64_t   *values = make_memory(count * sizeof(uint64_t));
	uint64_t   *out = make_memory(FLIGHTS * count * sizeof(uint64_t));
	GhRequest	store = {.op = GH_UPSERT, .count = count, .keys = keys, .values_in = values};
	GhRequest	flight[FLIGHTS];
	Subject		s;
	uint64_t	i;
	int			f;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (i = 0; i < count; i++)
	{
		keys[i] = random_next(c);
		values[i] = ~keys[i];
	}
	c->engine->submit(s.table, &store);
	for (f = 0; f < FLIGHTS; f++)
	{
		flight[f] = (GhRequest) {.op = GH_FIND, .count = count - f, .keys = keys + f};
		flight[f].values_out = out + f * count;
		c->engine->submit(s.table, &flight[f]);
	}
	/* the last first: it may not overtake the upsert */
	for (f = FLIGHTS - 1; f >= 0; f--)
	{
		GhStatus	status;

		do
			status = c->engine->poll(&flight[f]);
		while (status == GH_BUSY);
		CHECK_STATUS(c, "find in flight", status, GH_OK);
		CHECK_U64(c, "found in flight", flight[f].matched, count - f);
		for (i = 0; i < count - f; i++)
			CHECK(c, out[f * count + i] == values[i + f], "a value in flight is wrong");
	}
	CHECK_STATUS(c, "upsert in flight", c->engine->wait(&store), GH_OK);
	subject_close(&s);
	free(keys);
	free(values);
	free(out);
}

/* Arrays out of the engine's own buffers; device information. */
static void
test_devices_and_buffers(Context *c)
{
	GhDeviceInfo info;
	GhError		error;
	int			count = 0;
	Subject		s;
	uint64_t   *keys;
	uint64_t	i;

	CHECK_STATUS(c, "device_count", c->engine->device_count(&count, &error), GH_OK);
	CHECK(c, count >= 1, "%d devices", count);
	CHECK_STATUS(c, "device_info", c->engine->device_info(0, &info, &error), GH_OK);
	CHECK(c, info.name[0] != '\0' && info.memory_total > 0 &&
		  info.memory_free <= info.memory_total, "the device has no name or memory");
	CHECK(c, c->engine->open_device(count + 1000, &error) != GH_OK, "a device too many opened");
	if (c->engine->buffer_alloc == NULL || !subject_open_kind(&s, c, KIND_MAP))
		return;
	keys = c->engine->buffer_alloc(0, 10000 * sizeof(uint64_t));
	if (CHECK(c, keys != NULL, "buffer_alloc gave nothing"))
	{
		for (i = 0; i < 10000; i++)
			keys[i] = random_next(c);
		do_checked(&s, GH_INSERT, keys, NULL, 10000);
		check_content(&s);
		c->engine->buffer_free(keys);
	}
	subject_close(&s);
}

static void
test_clear(Context *c)
{
	uint64_t	count = sized(c, 200000, 5000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	Kind		kind;
	uint64_t	i;
	int			round;

	for (kind = 0; kind < KINDS; kind++)
	{
		GhTableOptions options = options_of(c, kind);
		GhTableStats before;
		GhTableStats after;
		GhError		error;
		Subject		s;

		options.capacity = 1000;
		if (!subject_open(&s, c, &options))
			break;
		check_shape(c, s.table, &before);
		for (round = 0; round < 3; round++)
		{
			for (i = 0; i < count; i++)
				keys[i] = i < 10 ? i : mix(i);
			/* twice, so that a multi table has lists */
			do_checked(&s, storing_op(kind), keys, NULL, count);
			do_checked(&s, storing_op(kind), keys, NULL, count / 2);
			CHECK_STATUS(c, "clear", c->engine->table_clear(s.table, &error), GH_OK);
			model_clear(s.model);
			check_content(&s);
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
	GhTableOptions options = options_of(c, KIND_MAP);
	GhTableStats first;
	GhTableStats second;
	Subject		s;
	int			i;

	options.timing = true;
	if (!subject_open(&s, c, &options))
		return;
	for (i = 0; i < COUNT; i++)
		keys[i] = random_next(c);
	check_shape(c, s.table, &first);
	CHECK_U64(c, "reads of a new table", first.reads, 0);
	CHECK_U64(c, "writes of a new table", first.writes, 0);
	CHECK_U64(c, "subtables by default", first.subtables, GH_SUBTABLES_DEFAULT);
	CHECK(c, first.fill_min == GH_FILL_MIN_DEFAULT && first.fill_max == GH_FILL_MAX_DEFAULT,
		  "fill bounds by default are %g and %g", first.fill_min, first.fill_max);
	do_checked(&s, GH_INSERT, keys, NULL, COUNT);
	do_checked(&s, GH_FIND, keys, NULL, COUNT);
	check_shape(c, s.table, &second);
	CHECK_U64(c, "keys", second.keys, COUNT);
	CHECK_U64(c, "values", second.values, COUNT);
	CHECK_U64(c, "reads", second.reads, COUNT);
	CHECK_U64(c, "writes", second.writes, COUNT);
	CHECK(c, second.upsizes > 0, "the table did not grow");
	CHECK(c, second.bytes > first.bytes, "the memory did not grow");
	if (c->on_host)
		CHECK_U64(c, "bytes", second.bytes, s.state.allocated);
	subject_close(&s);
}

const Test	basic_tests[] = {
	{"special keys", test_special_keys, false},
	{"batch sizes", test_batch_sizes, false},
	{"equal keys", test_equal_keys, false},
	{"few keys", test_few_keys, false},
	{"optional arrays", test_optional_arrays, false},
	{"several in flight", test_several_in_flight, false},
	{"devices and buffers", test_devices_and_buffers, false},
	{"clear", test_clear, false},
	{"stats", test_stats, false},
	{NULL, NULL, false}
};
