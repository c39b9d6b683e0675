/*
 * test_threads.c
 *		Different handles in different threads at the same time, and handles that go
 *		from one thread to another.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pthread_barrier_t, sigfillset */
#endif

#include "conformance.h"

#include <pthread.h>

#define THREADS 4

/* What a thread has; its context is its own, the budget everyone's. */
typedef struct Worker
{
	Context		c;
	pthread_t	thread;
	pthread_barrier_t *start;
	uint32_t	number;
	Budget	   *budget;
	Subject    *subject;		/* one that another thread opened, or NULL */
} Worker;

typedef void *(*WorkerMain) (void *worker);

/* Runs as many at the same time; what failed in one failed in the test. */
static void
run_workers(Context *c, Worker *workers, WorkerMain worker_main)
{
	pthread_barrier_t start;
	sigset_t	all;
	sigset_t	before;
	int			begun = 0;
	int			i;

	pthread_barrier_init(&start, NULL, THREADS);
	/* as the contract has it: these threads handle no signal */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (i = 0; i < THREADS; i++)
	{
		workers[i].c = *c;
		workers[i].c.random = mix(c->seed + (uint64_t) i);
		workers[i].number = (uint32_t) i;
		workers[i].start = &start;
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0)
			begun++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	/* those that began would wait for the others for ever */
	if (begun != THREADS)
	{
		printf("conformance: no threads\n");
		exit(2);
	}
	for (i = 0; i < THREADS; i++)
	{
		pthread_join(workers[i].thread, NULL);
		c->failures += workers[i].c.failures;
	}
	pthread_barrier_destroy(&start);
}

/* Fills a table, looks at it, empties it again, in every way that takes memory. */
static void
live_through(Subject *s, uint64_t *keys, uint64_t count)
{
	Context    *c = s->c;
	GhError		error = {0};
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = i < SPECIALS ? special_keys[i] : mix(random_below(c, count));
	do_checked(s, storing_op(s), keys, NULL, count);
	check_content(s);
	do_checked(s, GH_DELETE, keys, NULL, count - count / 8);
	CHECK_STATUS(c, "flush in a thread", c->engine->table_flush(s->table, &error), GH_OK);
	check_content(s);
	CHECK_STATUS(c, "reserve in a thread", c->engine->table_reserve(s->table, count, &error),
				 GH_OK);
	do_checked(s, storing_op(s), keys, NULL, count / 2);
	check_content(s);
	check_export(s, 1000);
	subject_clear(s);
	if (s->kind == KIND_MULTI)
		do_checked(s, GH_BUILD, keys, NULL, count);
	check_content(s);
}

static void *
tables_main(void *arg)
{
	Worker	   *worker = arg;
	Context    *c = &worker->c;
	uint64_t	count = sized(c, 30000, 3000);
	uint64_t   *keys = make_words(count);
	TableType	type;
	uint32_t	types = 0;
	uint32_t	t;

	while (type_at(c, types, &type))
		types++;
	pthread_barrier_wait(worker->start);
	/* each begins with another kind of table */
	for (t = 0; t < types && c->failures == 0; t++)
	{
		GhTableOptions options;
		Subject		s;

		type_at(c, (t + worker->number * types / THREADS) % types, &type);
		options = options_of(c, type);
		options.timing = t % 2 != 0;
		if (!subject_open_budget(&s, c, &options, worker->budget))
			break;
		live_through(&s, keys, type.value_size > 64 ? count / 20 : count);
		subject_close(&s);
	}
	free(keys);
	return NULL;
}

static void
test_tables_of_threads(Context *c)
{
	Budget		budget = {UINT64_MAX, 0};
	Worker		workers[THREADS] = {{.budget = &budget}, {.budget = &budget},
	{.budget = &budget}, {.budget = &budget}};

	run_workers(c, workers, tables_main);
	CHECK_U64(c, "of the budget after all", budget_taken(&budget), 0);
}

/* Fills a table that another thread opened. */
static void *
fill_main(void *arg)
{
	Worker	   *worker = arg;
	uint64_t	count = sized(&worker->c, 50000, 3000);
	uint64_t   *keys = make_words(count);
	uint64_t	i;

	for (i = 0; i < count; i++)
		keys[i] = random_next(&worker->c);
	worker->subject->c = &worker->c;
	pthread_barrier_wait(worker->start);
	do_checked(worker->subject, storing_op(worker->subject), keys, NULL, count);
	check_content(worker->subject);
	free(keys);
	return NULL;
}

/* Makes and leaves a table. */
static void *
open_main(void *arg)
{
	Worker	   *worker = arg;

	pthread_barrier_wait(worker->start);
	subject_open_kind(worker->subject, &worker->c, (Kind) (worker->number % KINDS));
	return NULL;
}

/* Each table is made by one thread, filled by another, told about and freed by a third. */
static void
test_handed_over(Context *c)
{
	Worker		workers[THREADS];
	Subject		subjects[THREADS];
	int			i;

	memset(workers, 0, sizeof(workers));
	for (i = 0; i < THREADS; i++)
		workers[i].subject = &subjects[i];
	run_workers(c, workers, open_main);
	if (c->failures > 0)
		return;
	for (i = 0; i < THREADS; i++)
		workers[i].subject = &subjects[(i + 1) % THREADS];
	run_workers(c, workers, fill_main);
	for (i = 0; i < THREADS; i++)
	{
		GhTableStats stats;

		subjects[i].c = c;
		check_shape(c, subjects[i].table, &stats);
		CHECK_U64(c, "keys of another thread's table", stats.keys, subjects[i].model->keys);
		/* every other one is looked up by this thread, too */
		if (i % 2 != 0)
			check_content(&subjects[i]);
		subject_close(&subjects[i]);
	}
}

const Test	thread_tests[] = {
	{"tables of threads", test_tables_of_threads, false},
	{"handles handed over", test_handed_over, false},
	{NULL, NULL, false}
};
