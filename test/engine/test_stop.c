/*
 * test_stop.c
 *		The stop flag: a request that it ends has done a prefix, and goes on there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* setitimer, sigaction */
#endif

#include "conformance.h"

#include <sys/time.h>

static volatile sig_atomic_t *alarm_flag;

static void
on_alarm(int signal)
{
	(void) signal;
	*alarm_flag = 1;
}

static void
alarm_in(long microseconds)
{
	struct itimerval timer = {{0, 0}, {0, microseconds}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Submits until it is done; returns how often it was stopped. */
static uint64_t
do_with_alarms(Subject *s, GhRequest *request, long microseconds)
{
	Context    *c = s->c;
	uint64_t	stops = 0;
	GhStatus	status;

	do
	{
		uint64_t	before = request->done;

		s->state.stop = 0;
		/* longer each time, so that a slow machine gets through */
		alarm_in(microseconds + (long) stops * 200);
		status = do_request(c, s->table, request);
		alarm_in(0);
		s->state.stop = 0;
		if (status == GH_STOPPED)
			stops++;
		CHECK(c, request->op == GH_FIND_ALL || request->done >= before, "done went back");
	} while (status == GH_STOPPED && stops < 100000);
	CHECK_STATUS(c, "stopped request in the end", status, GH_OK);
	CHECK_U64(c, "done in the end", request->done, request->count);
	return stops;
}

/* A signal sets the flag at any moment. */
static void
test_alarms(Context *c)
{
	uint64_t	count = sized(c, 300000, 20000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	uint64_t   *values = make_memory(count * sizeof(uint64_t));
	uint64_t   *offsets = make_memory((count + 1) * sizeof(uint64_t));
	uint64_t   *out = make_memory(2 * count * sizeof(uint64_t));
	struct sigaction action = {0};
	uint64_t	stops = 0;
	Kind		kind;
	uint64_t	i;

	action.sa_handler = on_alarm;
	sigaction(SIGALRM, &action, NULL);
	for (i = 0; i < count; i++)
	{
		keys[i] = mix(c->seed + i);
		values[i] = ~keys[i];
	}
	for (kind = 0; kind < KINDS; kind++)
	{
		GhRequest	store = {.op = kind == KIND_MULTI ? GH_ADD : GH_INSERT, .count = count};
		GhRequest	find = {.op = GH_FIND, .count = count, .keys = keys};
		GhRequest	all = {.op = GH_FIND_ALL, .count = count, .keys = keys};
		GhRequest	drop = {.op = GH_DELETE, .count = count, .keys = keys};
		Subject		s;

		if (!subject_open_kind(&s, c, kind))
			break;
		alarm_flag = &s.state.stop;
		store.keys = keys;
		store.values_in = kind == KIND_SET ? NULL : values;
		find.values_out = kind == KIND_MAP ? out : NULL;
		all.offsets_out = offsets;
		all.values_out = out;
		all.values_capacity = count;
		stops += do_with_alarms(&s, &store, 300);
		CHECK_U64(c, "stored between stops", store.matched, count);
		stops += do_with_alarms(&s, &find, 300);
		CHECK_U64(c, "found between stops", find.matched, count);
		for (i = 0; kind == KIND_MAP && i < count; i++)
			CHECK(c, out[i] == values[i], "a value found between stops is wrong");
		if (kind == KIND_MULTI)
		{
			stops += do_with_alarms(&s, &all, 300);
			CHECK_U64(c, "values found between stops", all.values_count, count);
			for (i = 0; i < count; i++)
				CHECK(c, offsets[i] == i && out[i] == values[i], "find-all between stops is wrong");
		}
		stops += do_with_alarms(&s, &drop, 300);
		CHECK_U64(c, "deleted between stops", drop.matched, count);
		check_content(&s);
		subject_close(&s);
	}
	if (!c->reduced)
		CHECK(c, stops > 0, "nothing was ever stopped");
	free(keys);
	free(values);
	free(offsets);
	free(out);
}

/* The flag is set before a request, a clear and a create begin. */
static void
test_flag_set_before(Context *c)
{
	uint64_t	count = sized(c, 100000, 5000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	uint64_t   *values = make_memory(count * sizeof(uint64_t));
	GhTableOptions options = options_of(c, KIND_MAP);
	GhRequest	store = {.op = GH_INSERT, .count = count, .keys = keys, .values_in = values};
	HostState	state;
	GhHost		host;
	GhTable    *table = NULL;
	GhError		error = {0};
	GhStatus	status;
	Subject		s;
	uint64_t	i;

	host_init(&state, &host);
	state.stop = 1;
	options.capacity = count;
	status = c->engine->table_create(&host, &options, &table, &error);
	CHECK(c, status == GH_STOPPED || status == GH_OK, "create with the flag set: %s",
		  gh_status_name(status));
	if (status == GH_OK)
		c->engine->table_destroy(table);
	CHECK_U64(c, "memory of a stopped create", state.allocated, 0);

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	for (i = 0; i < count; i++)
		keys[i] = values[i] = mix(c->seed + i);
	s.state.stop = 1;
	status = do_request(c, s.table, &store);
	CHECK(c, status == GH_STOPPED || status == GH_OK, "request with the flag set: %s",
		  gh_status_name(status));
	for (i = 0; i < store.done; i++)
		model_put(s.model, model_entry(s.model, keys[i]), values[i]);
	for (; i < count; i++)
		model_entry(s.model, keys[i]);
	s.state.stop = 0;
	check_content(&s);
	CHECK_STATUS(c, "the request goes on", do_request(c, s.table, &store), GH_OK);
	for (i = 0; i < count; i++)
		model_put(s.model, model_entry(s.model, keys[i]), values[i]);
	check_content(&s);

	s.state.stop = 1;
	status = c->engine->table_clear(s.table, &error);
	CHECK(c, status == GH_STOPPED || status == GH_OK, "clear with the flag set: %s",
		  gh_status_name(status));
	s.state.stop = 0;
	CHECK_STATUS(c, "clear", c->engine->table_clear(s.table, &error), GH_OK);
	model_clear(s.model);
	check_content(&s);
	subject_close(&s);
	free(keys);
	free(values);
}

/*
 * The flag is set at the n-th taking of the lock, for every n: wherever the request
 * ends, the table holds the prefix and nothing else.
 */
static void
test_every_slice(Context *c)
{
	uint64_t	count = sized(c, 30000, 10000);
	uint64_t   *keys = make_memory(count * sizeof(uint64_t));
	uint64_t	n;

	for (n = 1; n < 1000; n += 1 + n / 10)
	{
		GhOp		op = n % 3 == 0 ? GH_DELETE : GH_INSERT;
		GhRequest	request = {.op = op, .count = count, .keys = keys};
		GhStatus	status;
		Subject		s;
		uint64_t	i;

		if (!subject_open_kind(&s, c, KIND_SET))
			break;
		for (i = 0; i < count; i++)
			keys[i] = mix(n * count + i);
		if (op == GH_DELETE)
			do_checked(&s, GH_INSERT, keys, NULL, count);
		s.state.stop_at_lock = s.state.locks_shared + s.state.locks_exclusive + n;
		status = do_request(c, s.table, &request);
		s.state.stop_at_lock = 0;
		s.state.stop = 0;
		for (i = 0; i < count; i++)
		{
			ModelEntry *entry = model_entry(s.model, keys[i]);

			if (i < request.done && op == GH_INSERT)
				model_put(s.model, entry, 0);
			else if (i < request.done)
				model_remove(s.model, entry);
		}
		check_content(&s);
		if (status == GH_STOPPED)
			CHECK_STATUS(c, "going on", do_request(c, s.table, &request), GH_OK);
		CHECK_U64(c, "matched in all", request.matched, count);
		subject_close(&s);
		if (status == GH_OK)
			break;
	}
	CHECK(c, n > 3, "the request takes %" PRIu64 " slices only", n);
	free(keys);
}

const Test	stop_tests[] = {
	{"alarms", test_alarms, false},
	{"flag set before", test_flag_set_before, false},
	{"every slice", test_every_slice, true},
	{NULL, NULL, false}
};
