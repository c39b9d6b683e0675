/*
 * test_memory.c
 *		Memory that runs out: the limit of the table, the host's allocator.
 */
#include "conformance.h"

static GhOp
storing_op(Kind kind)
{
	return kind == KIND_MULTI ? GH_ADD : kind == KIND_MAP ? GH_EXCHANGE : GH_INSERT;
}

/* The model is told what a request that ended early has done: a prefix. */
static void
model_store_prefix(Subject *s, const GhRequest *request, uint64_t from)
{
	uint64_t	i;

	for (i = from; i < request->done; i++)
	{
		ModelEntry *entry = model_entry(s->model, request->keys[i]);
		uint64_t	value = request->values_in != NULL ? request->values_in[i] : i;

		if (s->kind == KIND_MULTI)
			model_add(s->model, entry, value);
		else
			model_put(s->model, entry, value);
	}
	/* those not done must be absent, or as before */
	for (; i < request->count; i++)
		model_entry(s->model, request->keys[i]);
}

/* A limit that is too small for the table to be made. */
static void
test_limit_at_create(Context *c)
{
	GhTableOptions options = options_of(c, KIND_MAP);
	HostState	state;
	GhHost		host;
	uint64_t	limit;

	options.capacity = sized(c, 100000, 5000);
	for (limit = 1; limit < options.capacity * 16; limit = limit * 3 + 1)
	{
		GhTable    *table = NULL;
		GhError		error = {0};

		host_init(&state, &host);
		options.memory_limit = limit;
		CHECK_STATUS(c, "create under a small limit",
					 c->engine->table_create(&host, &options, &table, &error), GH_LIMIT);
		CHECK(c, error.message[0] != '\0', "no message");
		CHECK_U64(c, "memory left", state.allocated, 0);
	}
}

/* The table meets its limit while it is filled, again and again. */
static void
test_limit_midway(Context *c)
{
	uint64_t	count = sized(c, 200000, 20000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	uint64_t   *values = make_memory(count * sizeof(uint64_t));
	uint64_t   *out = make_memory(count * sizeof(uint64_t));
	Kind		kind;

	for (kind = 0; kind < KINDS; kind++)
	{
		GhTableOptions options = options_of(c, kind);
		GhTableStats stats;
		GhRequest	request = {.op = storing_op(kind), .count = count, .keys = keys};
		Subject		s;
		uint64_t	i;
		uint64_t	done;

		/* a new table and a little more */
		if (!subject_open(&s, c, &options))
			break;
		check_shape(c, s.table, &stats);
		subject_close(&s);
		options.memory_limit = stats.bytes + count * 4;
		if (!subject_open(&s, c, &options))
			break;
		for (i = 0; i < count; i++)
		{
			keys[i] = kind == KIND_MULTI && i % 2 != 0 ? keys[i - 1] : random_next(c);
			values[i] = ~keys[i] + i;
		}
		if (kind != KIND_SET)
			request.values_in = values;
		if (request.op == GH_EXCHANGE)
			request.values_out = out;
		CHECK_STATUS(c, "storing under a limit", do_request(c, s.table, &request), GH_LIMIT);
		CHECK(c, request.done < count, "all was done");
		model_store_prefix(&s, &request, 0);
		check_content(&s);
		check_shape(c, s.table, &stats);
		CHECK(c, stats.bytes_peak <= options.memory_limit, "%" PRIu64 " bytes under a limit of %"
			  PRIu64, stats.bytes_peak, options.memory_limit);

		/* once more: the same refusal, and nothing lost */
		done = request.done;
		CHECK_STATUS(c, "storing at the limit", do_request(c, s.table, &request), GH_LIMIT);
		model_store_prefix(&s, &request, done);
		check_content(&s);

		/* with room made it goes on */
		do_checked(&s, GH_DELETE, keys, NULL, request.done / 2);
		check_content(&s);
		done = request.done;
		do_request(c, s.table, &request);
		CHECK(c, request.done > done, "no key was stored after deletes");
		model_store_prefix(&s, &request, done);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
	free(values);
	free(out);
}

/* Creates, fills, empties and clears a table whose host's fail_at-th allocation
 * fails; false: there was no such allocation. */
static bool
survive_failure(Context *c, Kind kind, uint64_t fail_at, uint64_t *keys, uint64_t *values,
				uint64_t *out, uint64_t count)
{
	GhTableOptions options = options_of(c, kind);
	GhRequest	request = {.op = storing_op(kind), .count = count, .keys = keys};
	GhError		error = {0};
	GhStatus	status;
	Subject		s = {.c = c, .kind = kind, .next_value = 1};
	bool		failed;

	host_init_locked(&s.state, &s.host);
	s.state.fail_at = fail_at;
	options.subtables = 2 + (uint32_t) (fail_at % 7);
	status = c->engine->table_create(&s.host, &options, &s.table, &error);
	if (status != GH_OK)
	{
		CHECK_STATUS(c, "create without memory", status, GH_NO_MEMORY);
		CHECK(c, s.state.failed, "create failed for no reason");
		CHECK_U64(c, "memory left by a failed create", s.state.allocated, 0);
		return true;
	}
	s.model = model_make();
	if (kind != KIND_SET)
		request.values_in = values;
	if (request.op == GH_EXCHANGE)
		request.values_out = out;
	while ((status = do_request(c, s.table, &request)) == GH_NO_MEMORY)
	{
		model_store_prefix(&s, &request, s.model->values);
		check_content(&s);
		if (!CHECK(c, s.state.failed, "a request failed for no reason"))
			break;
	}
	CHECK_STATUS(c, "storing in the end", status, GH_OK);
	CHECK_U64(c, "done in the end", request.done, count);
	model_store_prefix(&s, &request, s.model->values);
	check_content(&s);
	/* memory is no reason for these to fail */
	do_checked(&s, GH_DELETE, keys, NULL, count - count / 8);
	check_content(&s);
	CHECK_STATUS(c, "clear", c->engine->table_clear(s.table, &error), GH_OK);
	model_clear(s.model);
	check_content(&s);
	failed = s.state.failed;
	s.state.fail_at = 0;
	do_checked(&s, storing_op(kind), keys, NULL, count);
	check_content(&s);
	subject_close(&s);
	return failed;
}

static void
test_failed_allocations(Context *c)
{
	uint64_t	count = sized(c, 4000, 1500);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	uint64_t   *values = make_memory(count * sizeof(uint64_t));
	uint64_t   *out = make_memory(count * sizeof(uint64_t));
	Kind		kind;
	uint64_t	i;

	for (kind = 0; kind < KINDS; kind++)
	{
		uint64_t	fail_at = 1;

		for (i = 0; i < count; i++)
		{
			keys[i] = kind == KIND_MULTI ? random_below(c, count / 3) : mix(c->seed + i);
			values[i] = i + 1;
		}
		/* the model above counts positions by values, so none may be equal */
		while (survive_failure(c, kind, fail_at, keys, values, out, count) && fail_at < 10000)
			fail_at++;
		CHECK(c, fail_at > 8, "only %" PRIu64 " allocations were seen to fail", fail_at);
	}
	free(keys);
	free(values);
	free(out);
}

const Test	memory_tests[] = {
	{"limit at create", test_limit_at_create, false},
	{"limit midway", test_limit_midway, false},
	{"failed allocations", test_failed_allocations, true},
	{NULL, NULL, false}
};
