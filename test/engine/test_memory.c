/*
 * test_memory.c
 *		The memory limit of a table: met at every point, and never passed.
 */
#include "conformance.h"

/* A limit that is too small for the table to be made. */
static void
test_limit_at_create(Context *c)
{
	TableType	type;
	uint32_t	t;

	for (t = 0; type_at(c, t, &type); t++)
	{
		GhTableOptions options = options_of(c, type);
		HostState	state;
		GhHost		host;
		uint64_t	limit;

		options.capacity = sized(c, 100000, 5000);
		for (limit = 1; limit < options.capacity * (type.key_size + type.value_size);
			 limit = limit * 3 + 1)
		{
			GhTable    *table = NULL;
			GhError		error = {0};

			/* a multi table's values come with the values */
			if (type.kind == KIND_MULTI && limit >= options.capacity * type.key_size)
				break;
			host_init(&state, &host);
			options.memory_limit = limit;
			CHECK_STATUS(c, "create under a small limit",
						 c->engine->table_create(&host, &options, &table, &error), GH_LIMIT);
			CHECK(c, error.message[0] != '\0', "no message");
			CHECK_U64(c, "memory left", state.allocated, 0);
		}
	}
}

static void
check_limit(Subject *s, uint64_t limit)
{
	GhTableStats stats;

	if (check_shape(s->c, s->table, &stats))
		CHECK(s->c, stats.bytes_peak <= limit, "%" PRIu64 " bytes under a limit of %" PRIu64,
			  stats.bytes_peak, limit);
}

/* The table meets its limit while it is filled, again and again. */
static void
fill_to_limit(Subject *s, GhOp op, const uint64_t *keys, uint64_t count, uint64_t limit)
{
	Context    *c = s->c;
	uint8_t    *ops = make_memory(count);
	uint64_t	done;
	uint64_t	again;
	Batch		b;

	memset(ops, GH_UPSERT, count);
	batch_begin(s, &b, op, keys, NULL, op == GH_MIXED ? ops : NULL, count);
	CHECK_STATUS(c, "storing under a limit", batch_run(&b), GH_LIMIT);
	CHECK(c, b.request.outcome.done < count, "all was done");
	check_content(s);
	check_limit(s, limit);
	/* once more: the same refusal, and nothing lost */
	CHECK_STATUS(c, "storing at the limit", batch_run(&b), GH_LIMIT);
	check_content(s);
	/* with room made it goes on */
	done = b.request.outcome.done;
	do_checked(s, GH_DELETE, keys, NULL, done / 2);
	check_content(s);
	batch_run(&b);
	again = b.request.outcome.done;
	CHECK(c, again > done, "%s of %u-byte values: nothing was stored after deletes", op_name(op),
		  (unsigned) s->value_size);
	check_content(s);
	check_limit(s, limit);
	batch_end(&b);
	free(ops);
}

static void
test_limit_midway(Context *c)
{
	uint64_t	count = sized(c, 100000, 20000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	t;
	uint64_t	i;
	GhOp		op;

	for (t = 0; type_at(c, t, &type); t++)
	{
		uint64_t	n = type.value_size > 64 ? count / 4 : count;
		GhTableOptions options = options_of(c, type);

		options.memory_limit = bytes_when_new(c, &options) +
			n * (type.key_size + type.value_size) / 3;
		for (i = 0; i < n; i++)
			keys[i] = type.kind == KIND_MULTI && i % 2 != 0 ? keys[i - 1] : random_next(c);
		for (op = GH_INSERT; op <= GH_MIXED; op++)
		{
			Subject		s;

			if ((op > GH_ADD && op < GH_MIXED) || !subject_open(&s, c, &options))
				continue;
			if (op_fits(&s, op))
				fill_to_limit(&s, op, keys, n, options.memory_limit);
			subject_close(&s);
		}
	}
	free(keys);
}

/* Stores in small batches up to the end or the limit; notes the peaks on the way. */
static uint64_t
fill_in_steps(Subject *s, const uint64_t *keys, uint64_t count, uint64_t *peaks, uint64_t room)
{
	uint64_t	step = count / 50;
	uint64_t	n = 0;
	uint64_t	i;

	for (i = 0; i + step <= count && s->c->failures == 0; i += step)
	{
		GhTableStats stats;
		GhStatus	status;
		Batch		b;

		batch_begin(s, &b, storing_op(s), keys + i, NULL, NULL, step);
		status = batch_run(&b);
		batch_end(&b);
		check_shape(s->c, s->table, &stats);
		if (n < room && (n == 0 || stats.bytes_peak > peaks[n - 1]))
			peaks[n++] = stats.bytes_peak;
		if (status == GH_LIMIT)
			break;
		CHECK_STATUS(s->c, "a step", status, GH_OK);
	}
	return n;
}

/* Every point at which the table takes more memory is one where it gets none. */
static void
test_limit_at_each_growth(Context *c)
{
	enum
	{
		PEAKS = 100
	};
	uint64_t	count = sized(c, 10000, 2000);
	uint64_t   *keys = make_words(count);
	uint64_t	peaks[PEAKS];
	TableType	type;
	uint32_t	t;
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = mix(i / 2 + c->seed);
	for (t = 0; type_at(c, t, &type); t++)
	{
		GhTableOptions options = options_of(c, type);
		uint64_t	n = type.value_size > 64 ? count / 4 : count;
		uint64_t	points;
		Subject		s;

		options.fill_max = GH_FILL_MAX_MAX;
		options.subtables = GH_SUBTABLES_MIN + t % 7;
		if (!subject_open(&s, c, &options))
			break;
		points = fill_in_steps(&s, keys, n, peaks, PEAKS);
		check_content(&s);
		subject_close(&s);
		for (i = 1; i < points; i++)
		{
			options.memory_limit = peaks[i] - 1;
			/* an engine may keep back a part of a limit that it is told */
			if (!c->on_host && options.memory_limit < peaks[0] + peaks[0] / 4)
				continue;
			if (!subject_open(&s, c, &options))
				break;
			fill_in_steps(&s, keys, n, NULL, 0);
			check_content(&s);
			check_limit(&s, options.memory_limit);
			do_checked(&s, GH_DELETE, keys, NULL, n / 2);
			check_content(&s);
			subject_close(&s);
		}
	}
	free(keys);
}

const Test	memory_tests[] = {
	{"limit at create", test_limit_at_create, false},
	{"limit midway", test_limit_midway, false},
	{"limit at each growth", test_limit_at_each_growth, false},
	{NULL, NULL, false}
};
