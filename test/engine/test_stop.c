/*
 * test_stop.c
 *		The stop flag: a request that it ends has done a prefix, and goes on there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* setitimer, sigaction */
#endif

#include "conformance.h"

#include <sys/time.h>

static volatile sig_atomic_t *alarm_flag;	/* NULL: nothing runs that is to be stopped */

static void
on_alarm(int signal)
{
	(void) signal;
	if (alarm_flag != NULL)
		*alarm_flag = 1;
}

static void
alarm_in(long microseconds)
{
	struct itimerval timer = {{0, 0}, {0, microseconds}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Runs the batch until it is done; returns how often it was stopped. */
uint64_t
run_with_alarms(Batch *b, long microseconds)
{
	Subject    *s = b->s;
	struct sigaction action = {0};
	uint64_t	stops = 0;
	GhStatus	status;

	action.sa_handler = on_alarm;
	sigaction(SIGALRM, &action, NULL);
	alarm_flag = &s->state.stop;
	do
	{
		s->state.stop = 0;
		alarm_in(microseconds);
		status = batch_run(b);
		alarm_in(0);
		s->state.stop = 0;
		stops += status == GH_STOPPED;
		/* longer each time, so that one that starts anew gets through */
		microseconds += microseconds / 4;
	} while (status == GH_STOPPED && stops < 60);
	alarm_flag = NULL;
	CHECK(s->c, status == GH_OK, "%s, stopped %" PRIu64 " times: %s", op_name(b->request.op), stops,
		  gh_status_name(status));
	return stops;
}

static void
draw_batch(Context *c, uint64_t *keys, uint8_t *ops, uint64_t count)
{
	static const GhOp mixed[] = {GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE};
	uint64_t	i;

	for (i = 0; i < count; i++)
	{
		keys[i] = mix(random_below(c, count));
		ops[i] = (uint8_t) mixed[random_below(c, 4)];
	}
}

/* A signal sets the flag at any moment of any operation. */
static uint64_t
try_alarms(Subject *s, uint64_t *keys, uint8_t *ops, uint64_t count)
{
	uint64_t	stops = 0;
	GhOp		op;

	for (op = GH_INSERT; op <= GH_MIXED; op++)
	{
		Batch		b;

		if (!op_fits(s, op))
			continue;
		draw_batch(s->c, keys, ops, count);
		if (op == GH_BUILD)
			subject_clear(s);
		batch_begin(s, &b, op, keys, NULL, op == GH_MIXED ? ops : NULL, count);
		stops += run_with_alarms(&b, 300);
		batch_end(&b);
		if (op != GH_FIND && op != GH_FIND_ALL && op != GH_COUNT)
			check_content(s);
	}
	return stops;
}

static void
test_alarms(Context *c)
{
	uint64_t	count = sized(c, 200000, 10000);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	uint64_t	stops = 0;
	TableType	type;
	uint32_t	t;

	for (t = 0; type_at(c, t, &type); t++)
	{
		Subject		s;

		/* every other width of either kind */
		if (t > 6 && t % 3 != 0)
			continue;
		if (!subject_open_type(&s, c, type))
			break;
		stops += try_alarms(&s, keys, ops, type.value_size > 64 ? count / 20 : count);
		subject_close(&s);
	}
	if (!c->reduced)
		CHECK(c, stops > 0, "nothing was ever stopped");
	free(keys);
	free(ops);
}

/* The flag is set before a call that is not a request begins. */
static void
try_flagged_call(Subject *s, const char *what, GhStatus status)
{
	CHECK(s->c, status == GH_STOPPED || status == GH_OK, "%s with the flag set: %s", what,
		  gh_status_name(status));
}

static void
test_flagged_calls(Context *c)
{
	uint64_t	count = sized(c, 100000, 5000);
	uint64_t   *keys = make_words(count);
	uint64_t	out[8];
	uint64_t	i;
	Kind		kind;

	for (i = 0; i < count; i++)
		keys[i] = mix(i / 2);
	for (kind = 0; kind < KINDS; kind++)
	{
		GhTableOptions options = options_of(c, type_of_kind(kind));
		GhCursor	cursor = {0};
		GhError		error = {0};
		uint64_t	got;
		GhStatus	status;
		Subject		s;

		memset(&s, 0, sizeof(s));
		host_init_locked(&s.state, &s.host);
		s.state.stop = 1;
		options.capacity = count;
		status = subject_try(&s, c, &options);
		try_flagged_call(&s, "create", status);
		if (status == GH_OK)
			subject_close(&s);
		CHECK_U64(c, "memory of a stopped create", s.state.allocated, 0);

		options.capacity = 0;
		if (!subject_open(&s, c, &options))
			break;
		do_checked(&s, storing_op(&s), keys, NULL, count);
		do_checked(&s, GH_DELETE, keys, NULL, count / 2);
		s.state.stop = 1;
		try_flagged_call(&s, "flush", c->engine->table_flush(s.table, &error));
		try_flagged_call(&s, "reserve", c->engine->table_reserve(s.table, 2 * count, &error));
		try_flagged_call(&s, "export", c->engine->table_export(s.table, &cursor, 4, out, out + 4,
															   &got, &error));
		s.state.stop = 0;
		check_content(&s);
		check_export(&s, 1000);
		CHECK_STATUS(c, "reserve", c->engine->table_reserve(s.table, 2 * count, &error), GH_OK);
		CHECK_STATUS(c, "flush", c->engine->table_flush(s.table, &error), GH_OK);
		check_content(&s);
		s.state.stop = 1;
		try_flagged_call(&s, "clear", c->engine->table_clear(s.table, &error));
		s.state.stop = 0;
		subject_clear(&s);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

/* The flag is set before a request of each kind, which may do a part or nothing. */
static void
test_flagged_requests(Context *c)
{
	uint64_t	count = sized(c, 50000, 3000);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	Kind		kind;
	GhOp		op;

	for (kind = 0; kind < KINDS; kind++)
	{
		Subject		s;

		if (!subject_open_kind(&s, c, kind))
			break;
		for (op = GH_INSERT; op <= GH_MIXED; op++)
		{
			GhStatus	status;
			Batch		b;

			if (!op_fits(&s, op))
				continue;
			draw_batch(c, keys, ops, count);
			if (op == GH_BUILD)
				subject_clear(&s);
			batch_begin(&s, &b, op, keys, NULL, op == GH_MIXED ? ops : NULL, count);
			s.state.stop = 1;
			status = batch_run(&b);
			s.state.stop = 0;
			CHECK(c, status == GH_STOPPED || status == GH_OK, "%s with the flag set: %s",
				  op_name(op), gh_status_name(status));
			check_content(&s);
			if (status == GH_STOPPED)
				CHECK_STATUS(c, "going on", batch_run(&b), GH_OK);
			batch_end(&b);
			check_content(&s);
		}
		subject_close(&s);
	}
	free(keys);
	free(ops);
}

/* The flag at the n-th taking of the lock; tells whether the batch was stopped. */
static bool
stop_at_slice(Context *c, Kind kind, GhOp op, uint64_t *keys, uint8_t *ops, uint64_t count,
			  uint64_t n)
{
	GhStatus	status;
	Subject		s;
	Batch		b;

	if (!subject_open_kind(&s, c, kind))
		return false;
	if (op_fits(&s, op))
	{
		if (op != GH_BUILD)
			do_checked(&s, storing_op(&s), keys, NULL, op <= GH_ADD ? count / 2 : count);
		batch_begin(&s, &b, op, keys, NULL, op == GH_MIXED ? ops : NULL, count);
		s.state.stop_at_lock = s.state.locks_shared + s.state.locks_exclusive + n;
		status = batch_run(&b);
		s.state.stop_at_lock = 0;
		s.state.stop = 0;
		/* wherever the request ended, the table holds the prefix and nothing else */
		check_content(&s);
		if (status == GH_STOPPED)
			CHECK_STATUS(c, "going on", batch_run(&b), GH_OK);
		batch_end(&b);
		check_content(&s);
	}
	else
		status = GH_OK;
	subject_close(&s);
	return status == GH_STOPPED;
}

static void
test_every_slice(Context *c)
{
	uint64_t	count = sized(c, 20000, 10000);
	uint64_t   *keys = make_words(count);
	uint8_t    *ops = make_memory(count);
	Kind		kind;
	GhOp		op;

	draw_batch(c, keys, ops, count);
	for (kind = 0; kind < KINDS; kind++)
	{
		for (op = GH_INSERT; op <= GH_MIXED; op++)
		{
			uint64_t	n = 1;

			while (stop_at_slice(c, kind, op, keys, ops, count, n) && n < 1000)
				n += 1 + n / 6;
			CHECK(c, n < 1000, "%s is still stopped at slice %" PRIu64, op_name(op), n);
			/* a find-all of few values is but two passes */
			if (kind == KIND_SET && op == GH_INSERT)
				CHECK(c, n > 3, "an insert of %" PRIu64 " keys takes %" PRIu64 " slices only",
					  count, n);
		}
	}
	free(keys);
	free(ops);
}

const Test	stop_tests[] = {
	{"alarms", test_alarms, false},
	{"calls with the flag set", test_flagged_calls, false},
	{"requests with the flag set", test_flagged_requests, false},
	{"every slice", test_every_slice, true},
	{NULL, NULL, false}
};
