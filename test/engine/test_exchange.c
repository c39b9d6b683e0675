/*
 * test_exchange.c
 *		Handles that exchange at the same time, in threads and in processes.
 */
#include "crowd.h"

#include <sys/wait.h>
#include <unistd.h>

typedef struct Start
{
	Worker	   *worker;
	GhRef		root;
	pthread_t	thread;
} Start;

static void *
thread_main(void *arg)
{
	Start	   *start = arg;

	crowd_work(start->worker, start->root);
	return NULL;
}

static void
run_threads(Crowd *crowd, GhRef root)
{
	Start		start[WORKERS];
	uint32_t	w;

	for (w = 0; w < WORKERS; w++)
	{
		start[w].worker = &crowd->worker[w];
		start[w].root = root;
		/* those that began would wait for the others for ever */
		if (pthread_create(&start[w].thread, NULL, thread_main, &start[w]) != 0)
		{
			printf("conformance: no threads\n");
			exit(2);
		}
	}
	for (w = 0; w < WORKERS; w++)
	{
		pthread_join(start[w].thread, NULL);
		crowd->c->failures += crowd->worker[w].failures;
	}
}

/* failing: of the allocations while the threads are at work, some fail. */
static void
test_threads_of(Context *c, uint32_t size, bool roomy, bool failing)
{
	uint64_t	count = sized(c, 150000, 15000);
	uint32_t	universe = (uint32_t) (1 + random_below(c, 2 * count));
	Crowd	   *crowd = crowd_make(c, size, count, universe);
	GhTableOptions options = crowd_options(c, crowd, roomy);
	GhHost		host;
	GhTable    *table = NULL;
	GhError		error = {0};
	uint32_t	w;

	host_init(&crowd->state, &host);
	for (w = 0; w < WORKERS; w++)
		crowd->worker[w].memory = host;
	host = crowd_host(&crowd->worker[0]);
	if (CHECK_STATUS(c, "create", c->engine->table_create(&host, &options, &table, &error), GH_OK))
	{
		crowd_store_before(crowd, table);
		crowd->state.fail_at = failing ? crowd->state.calls + 1 + random_below(c, 4) : 0;
		run_threads(crowd, c->engine->table_root(table));
		crowd_check(crowd, table);
		c->engine->table_destroy(table);
	}
	CHECK_U64(c, "memory left", crowd->state.allocated, 0);
	crowd_drop(crowd);
}

static void
test_crowd_threads(Context *c)
{
	int			round;

	for (round = 0; round < 12 && c->failures == 0; round++)
		test_threads_of(c, round % 2 == 0 ? 8 : 4, true, false);
}

static void
test_crowd_grows(Context *c)
{
	int			round;

	for (round = 0; round < 12 && c->failures == 0; round++)
		test_threads_of(c, round % 2 == 0 ? 8 : 4, false, round % 3 == 0);
}

/* The same in processes, each with a mapping of its own. */
static void
run_processes(Crowd *crowd, Arena *arena, GhRef root)
{
	Context    *c = crowd->c;
	uint32_t	w;

	fflush(stdout);
	for (w = 0; w < WORKERS; w++)
	{
		Worker	   *worker = &crowd->worker[w];

		if (fork() != 0)
			continue;
		if (arena_host(arena, &worker->memory))
			crowd_work(worker, root);
		_exit(worker->failures > 0 ? 1 : 0);
	}
	for (w = 0; w < WORKERS; w++)
	{
		int			status = 0;

		CHECK(c, wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0,
			  "a process failed");
	}
}

static void
test_crowd_processes(Context *c)
{
	int			round;

	for (round = 0; round < 6 && c->failures == 0; round++)
	{
		uint64_t	count = sized(c, 150000, 15000);
		Crowd	   *crowd = crowd_make(c, round % 2 == 0 ? 8 : 4, count,
									   (uint32_t) (1 + random_below(c, 2 * count)));
		GhTableOptions options = crowd_options(c, crowd, round < 4);
		Arena	   *arena = arena_make(256 << 20);
		GhTable    *table = NULL;
		GhHost		host = crowd_host(&crowd->worker[0]);
		GhHost		memory;
		GhError		error = {0};

		if (!CHECK(c, arena != NULL && arena_host(arena, &memory), "no arena"))
			return;
		crowd->worker[0].memory = memory;
		if (CHECK_STATUS(c, "create", c->engine->table_create(&host, &options, &table, &error),
						 GH_OK))
		{
			crowd_store_before(crowd, table);
			run_processes(crowd, arena, c->engine->table_root(table));
			crowd->worker[0].memory = memory;
			crowd_check(crowd, table);
			c->engine->table_destroy(table);
		}
		CHECK_U64(c, "blocks left in the arena", arena_blocks(arena), 0);
		arena_host_unmap(&memory);
		arena_drop(arena);
		crowd_drop(crowd);
	}
}

/* --------------------------------------------------- those who must not be there */

#ifndef __SANITIZE_THREAD__

/* Everything else that can be done with a table, until the others are done. */
static void *
disturb_main(void *arg)
{
	Start	   *start = arg;
	Worker	   *worker = start->worker;
	Context		own = *worker->crowd->c;
	GhHost		host = crowd_host(worker);
	GhTable    *table = NULL;
	GhError		error = {0};
	uint64_t	keys[512];
	uint64_t	values[512];
	uint64_t	turn;

	own.engine->table_attach(&host, start->root, &table, &error);
	pthread_barrier_wait(&worker->crowd->start);
	for (turn = 0; turn < sized(&own, 400, 100) && table != NULL; turn++)
	{
		static const GhOp ops[] = {GH_FIND, GH_DELETE, GH_UPSERT, GH_COUNT};
		GhRequest	request = {.op = ops[turn % 4], .count = 512, .keys = keys};
		GhTableStats stats;
		GhCursor	cursor = {0};
		uint64_t	i;

		for (i = 0; i < 512; i++)
			values[i] = keys[i] = mix(random_below(&own, worker->crowd->universe));
		request.values_in = request.op == GH_UPSERT ? values : NULL;
		request.values_out = request.op == GH_FIND ? values : NULL;
		request.counts_out = request.op == GH_COUNT ? values : NULL;
		do_request(&own, table, &request);
		own.engine->table_stats(table, &stats, &error);
		own.engine->table_export(table, &cursor, 512, keys, values, &i, &error);
		if (turn % 64 == 63)
			own.engine->table_clear(table, &error);
		if (turn % 64 == 31)
			own.engine->table_flush(table, &error);
	}
	if (table != NULL)
		own.engine->table_detach(table);
	worker->failures = own.failures;
	return NULL;
}

/* Against the contract; answers are anyone's guess, but the table must stay one. */
static void
test_crowd_disturbed(Context *c)
{
	uint64_t	count = sized(c, 300000, 30000);
	Crowd	   *crowd = crowd_make(c, 8, count, (uint32_t) count);
	GhTableOptions options = crowd_options(c, crowd, false);
	Start		start[WORKERS];
	GhHost		host;
	GhTable    *table = NULL;
	GhTableStats stats;
	GhError		error = {0};
	uint32_t	w;

	crowd->stopping = false;
	host_init(&crowd->state, &host);
	for (w = 0; w < WORKERS; w++)
		crowd->worker[w].memory = host;
	host = crowd_host(&crowd->worker[0]);
	if (!CHECK_STATUS(c, "create", c->engine->table_create(&host, &options, &table, &error), GH_OK))
		return;
	for (w = 0; w < WORKERS; w++)
	{
		start[w] = (Start) {.worker = &crowd->worker[w], .root = c->engine->table_root(table)};
		if (pthread_create(&start[w].thread, NULL, w == 0 ? disturb_main : thread_main,
						   &start[w]) != 0)
			exit(2);
	}
	for (w = 0; w < WORKERS; w++)
	{
		pthread_join(start[w].thread, NULL);
		c->failures += crowd->worker[w].failures;
	}
	check_shape(c, table, &stats);
	c->engine->table_destroy(table);
	CHECK_U64(c, "memory left", crowd->state.allocated, 0);
	crowd_drop(crowd);
}

#endif							/* no thread sanitizer */

/* Room under fill_max is for all handles together. */
static void
test_crowd_fill(Context *c)
{
	uint64_t	keys[50];
	GhTableOptions options = options_of(c, type_of_kind(KIND_MAP));
	GhTableStats stats;
	Subject		s;
	int			round;
	int			i;

	options.concurrent_exchange = true;
	/* so low that no key finds its buckets full before */
	options.fill_max = 0.3;
	options.fill_min = 0.1;
	if (!subject_open(&s, c, &options))
		return;
	for (round = 0; round < 100; round++)
	{
		for (i = 0; i < 50; i++)
			keys[i] = random_next(c);
		do_checked(&s, GH_EXCHANGE, keys, NULL, 50);
		check_shape(c, s.table, &stats);
	}
	check_content(&s);
	subject_close(&s);
}

/* One handle with the permission: shared locks, and few others. */
static void
test_crowd_locks(Context *c)
{
	uint64_t	count = sized(c, 200000, 50000);
	uint64_t   *keys = make_words(count);
	GhTableOptions options = options_of(c, type_of_kind(KIND_MAP));
	uint64_t	before;
	Subject		s;
	uint64_t	i;

	options.concurrent_exchange = true;
	options.capacity = 2 * count;
	if (!subject_open(&s, c, &options))
		return;
	for (i = 0; i < count; i++)
		keys[i] = 1 + random_below(c, count);
	before = s.state.locks_exclusive;
	do_checked(&s, GH_EXCHANGE, keys, NULL, count);
	CHECK(c, s.state.locks_exclusive - before <= 2 + count / 50000, "an exchange took %" PRIu64
		  " exclusive locks", s.state.locks_exclusive - before);
	check_content(&s);
	/* values beside the buckets are not for it */
	subject_close(&s);
	options.value_size = 4;
	if (!subject_open(&s, c, &options))
		return;
	do_checked(&s, GH_EXCHANGE, keys, NULL, count);
	CHECK_U64(c, "shared locks", s.state.locks_shared, 0);
	check_content(&s);
	subject_close(&s);
	free(keys);
}

const Test	exchange_tests[] = {
	{"exchange by threads at the same time", test_crowd_threads, true},
	{"exchange at the same time, growing", test_crowd_grows, true},
	{"exchange by processes at the same time", test_crowd_processes, true},
#ifndef __SANITIZE_THREAD__
	/* that would report the races which the contract rules out */
	{"exchange at the same time, disturbed", test_crowd_disturbed, true},
#endif
	{"exchange at the same time, fill", test_crowd_fill, true},
	{"exchange at the same time, locks", test_crowd_locks, true},
	{NULL, NULL, false}
};
