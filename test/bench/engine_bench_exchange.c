/*
 * engine_bench_exchange.c
 *		Exchange, as a hash join builds its table: by one handle on a table of its own,
 *		and by several processes at the same time on a table in shared memory.
 *
 * The latter is for the CPU engine, whose tables are in the host's memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* MAP_ANONYMOUS, pthread_barrier_t */
#endif

#include "engine_bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 64

/* Keys of a request: a join's batch. */
#define BATCH 65536

/* A table's memory, at the same address in every process. */
typedef struct Shared
{
	pthread_rwlock_t lock;
	pthread_barrier_t start;
	uint64_t	used;			/* bytes handed out */
	uint64_t	bytes;			/* of this mapping */
	double		begin[PROCESSES_MAX];
	double		end[PROCESSES_MAX];
	uint64_t	inserted[PROCESSES_MAX];
} Shared;

static GhRef
shared_alloc(void *ctx, size_t bytes)
{
	Shared	   *shared = ctx;
	/* as of a huge page's start, as large blocks of an allocator are */
	uint64_t	at = (shared->used + 4095) & ~(uint64_t) 4095;

	if (at + bytes > shared->bytes)
		return 0;
	shared->used = at + bytes;
	return at;
}

/* The mapping goes as a whole. */
static void
shared_free(void *ctx, GhRef ref)
{
	(void) ctx;
	(void) ref;
}

static void *
shared_address(void *ctx, GhRef ref)
{
	return (char *) ctx + ref;
}

static void
shared_lock(void *ctx, GhLockMode mode)
{
	Shared	   *shared = ctx;

	if (mode == GH_LOCK_SHARED)
		pthread_rwlock_rdlock(&shared->lock);
	else
		pthread_rwlock_wrlock(&shared->lock);
}

static void
shared_unlock(void *ctx)
{
	pthread_rwlock_unlock(&((Shared *) ctx)->lock);
}

static Shared *
make_shared(uint64_t bytes, unsigned processes)
{
	Shared	   *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_rwlockattr_t lock;
	pthread_barrierattr_t barrier;

	if (shared == MAP_FAILED)
		bench_die("no memory for a table", "shared");
	pthread_rwlockattr_init(&lock);
	pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&shared->lock, &lock);
	pthread_barrierattr_init(&barrier);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->start, &barrier, processes);
	shared->bytes = bytes;
	shared->used = sizeof(Shared);
	return shared;
}

/* All keys, and room for what a request replaces. */
typedef struct Arrays
{
	void	   *keys;
	void	   *values;
	void	   *out;
} Arrays;

/* Exchanges keys begin to end in a join's batches; how many were new. */
static uint64_t
exchange_part(Bench *bench, GhTable *table, const Arrays *arrays, uint64_t begin, uint64_t end)
{
	uint64_t	inserted = 0;
	uint64_t	at;

	for (at = begin; at < end; at += BATCH)
	{
		GhRequest	request = {.op = GH_EXCHANGE, .absent = BENCH_ABSENT};

		request.count = end - at < BATCH ? end - at : BATCH;
		request.keys = (char *) arrays->keys + at * bench->key_size;
		request.values_in = (char *) arrays->values + at * bench->key_size;
		request.values_out = arrays->out;
		(void) bench_request(bench, table, &request);
		inserted += request.outcome.inserted;
	}
	return inserted;
}

/* What each process does, with a handle of its own. */
static void
run_process(Bench *bench, const GhHost *host, GhRef root, const Arrays *arrays,
			unsigned number, unsigned processes)
{
	Shared	   *shared = host->ctx;
	GhTable    *table = NULL;
	GhError		error = {0};

	/* pages of its own, and not the parent's to be copied on the way */
	bench->place.fill(arrays->out, 1, BATCH * bench->key_size);
	if (bench->engine->table_attach(host, root, &table, &error) != GH_OK)
		bench_die("table_attach", error.message);
	pthread_barrier_wait(&shared->start);
	shared->begin[number] = bench_now();
	shared->inserted[number] = exchange_part(bench, table, arrays, bench->n * number / processes,
											 bench->n * (number + 1) / processes);
	shared->end[number] = bench_now();
	_exit(bench->failed ? 2 : 0);
}

/* Seconds from the first process's begin to the last one's end; all new keys. */
static double
run_processes(Bench *bench, const GhHost *host, GhRef root, const Arrays *arrays,
			  unsigned processes, uint64_t *inserted)
{
	Shared	   *shared = host->ctx;
	double		begin = 0;
	double		end = 0;
	unsigned	p;

	fflush(NULL);
	for (p = 0; p < processes; p++)
	{
		pid_t		child = fork();

		if (child == 0)
			run_process(bench, host, root, arrays, p, processes);
		if (child < 0)
			bench_die("fork", "no process");
	}
	*inserted = 0;
	for (p = 0; p < processes; p++)
	{
		int			status = 0;

		if (wait(&status) < 0 || status != 0)
			bench->failed = true;
	}
	for (p = 0; p < processes; p++)
	{
		begin = p == 0 || shared->begin[p] < begin ? shared->begin[p] : begin;
		end = shared->end[p] > end ? shared->end[p] : end;
		*inserted += shared->inserted[p];
	}
	return end - begin;
}

/* Were all keys stored, each once, with its value? */
static bool
content_is_right(Bench *bench, GhTable *table, uint64_t inserted)
{
	BenchFind	find = {.count = bench->n, .high = bench->n};
	double		ignored = 0;
	bool		right;

	find.stream = bench_unique(bench, 0, bench->n, 11);
	find.keys = bench_alloc(bench, bench->n * bench->key_size);
	find.values = bench_alloc(bench, bench->n * bench->key_size);
	right = inserted == bench->n && bench_stats(bench, table).keys == bench->n &&
		bench_find(bench, table, &find, &ignored);
	bench->place.free(find.keys);
	bench->place.free(find.values);
	return right;
}

/* A round of several processes, on a table that is made anew. */
static void
shared_round(Bench *bench, const Arrays *arrays, unsigned processes, BenchRow *row)
{
	GhTableOptions options = bench_options(bench, bench->n);
	uint64_t	bytes = bench->n * 2 * bench->key_size * 3 + (1 << 20);
	Shared	   *shared = make_shared(bytes, processes);
	const GhHost host = {
		.ctx = shared,
		.alloc = shared_alloc,
		.free = shared_free,
		.address = shared_address,
		.lock = shared_lock,
		.unlock = shared_unlock
	};
	GhTable    *table = NULL;
	GhError		error = {0};
	uint64_t	inserted = 0;
	double		seconds;

	options.concurrent_exchange = true;
	if (bench->engine->table_create(&host, &options, &table, &error) != GH_OK)
		bench_error(bench, "table_create", &error);
	else
	{
		seconds = run_processes(bench, &host, bench->engine->table_root(table), arrays, processes,
								&inserted);
		bench_row_add(row, seconds, content_is_right(bench, table, inserted));
		row->fill = bench_stats(bench, table).fill;
		bench->engine->table_destroy(table);
	}
	munmap(shared, bytes);
}

static void
own_round(Bench *bench, GhTable *table, const Arrays *arrays, BenchRow *row)
{
	double		begin = bench_now();
	uint64_t	inserted = exchange_part(bench, table, arrays, 0, bench->n);
	double		seconds = bench_now() - begin;

	bench_row_add(row, seconds, content_is_right(bench, table, inserted));
	row->fill = bench_stats(bench, table).fill;
	bench_clear(bench, table);
}

void
bench_exchange_rows(Bench *bench)
{
	uint64_t	bytes = bench->n * bench->key_size;
	unsigned	most = bench->engine == gh_cpu_engine() ?
		(unsigned) sysconf(_SC_NPROCESSORS_ONLN) : 0;
	GhTableOptions options = bench_options(bench, bench->n);
	BenchStream stream = bench_unique(bench, 0, bench->n, 0);
	BenchRow	own = {.op = "exchange", .n = bench->n};
	BenchRow	row[8];
	GhTable    *table = bench_table(bench, &options);
	Arrays		arrays;
	unsigned	p;
	int			rows = 0;
	int			r;

	arrays.keys = bench_alloc(bench, bytes);
	arrays.values = bench_alloc(bench, bytes);
	arrays.out = bench_alloc(bench, BATCH * bench->key_size);
	bench_make_pairs(bench, &stream, bench->n, 0, arrays.keys, arrays.values);
	bench->place.fill(arrays.out, 0, BATCH * bench->key_size);
	for (r = 0; r <= bench->rounds && !bench->failed; r++)
	{
		static const char *const names[] = {
			"exchange_1", "exchange_2", "exchange_4", "exchange_8", "exchange_16", "exchange_32"
		};

		own_round(bench, table, &arrays, &own);
		for (p = 1, rows = 0; p <= most && rows < 6; p *= 2, rows++)
		{
			if (r == 0)
				row[rows] = (BenchRow) {.op = names[rows], .n = bench->n};
			if (!bench->failed)
				shared_round(bench, &arrays, p, &row[rows]);
		}
	}
	bench_row_print(bench, &own);
	for (r = 0; r < rows; r++)
		bench_row_print(bench, &row[r]);
	if (table != NULL)
		bench->engine->table_destroy(table);
	bench->place.free(arrays.keys);
	bench->place.free(arrays.values);
	bench->place.free(arrays.out);
}
