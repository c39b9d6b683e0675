/*
 * engine_bench.c
 *		Times each operation of a table engine on unique random keys.
 *
 *	engine_bench cpu|/path/to/gpuhash_cuda.so [--n N] [--fill F] [--batch N]
 *				 [--rounds N] [--seed N]
 *
 * Prints CSV, lib,op,keybits,n,load,Mops,ok: load is the filled factor that the
 * operation left, ok is 1 where the results were right.  Arrays are the engine's
 * buffers.  insert goes to a table made for N keys, insert_grow to one made for none.
 * The best of the rounds counts.
 */
#include "engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Bench
{
	const GhEngine *engine;
	uint64_t	n;
	uint64_t	batch;
	uint64_t	seed;
	double		fill_max;
	int			rounds;
	uint64_t   *keys;
	uint64_t   *shuffled;		/* the same keys in another order */
	uint64_t   *missing;		/* keys that are not in keys */
	uint64_t   *values;
	uint64_t   *out;
} Bench;

enum
{
	OP_INSERT,
	OP_INSERT_GROW,
	OP_EXCHANGE,
	OP_FIND_HIT,
	OP_FIND_MISS,
	OP_DELETE,
	OPS
};

static const char *const op_name[OPS] = {
	"insert", "insert_grow", "exchange", "find_hit", "find_miss", "delete"
};

static double best_seconds[OPS];
static double last_fill[OPS];
static int	all_right[OPS];

static void *
host_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

static GhRef
host_alloc(void *ctx, size_t bytes)
{
	(void) ctx;
	return (uintptr_t) aligned_alloc(64, (bytes + 63) & ~(size_t) 63);
}

static void
host_free(void *ctx, GhRef ref)
{
	(void) ctx;
	free((void *) (uintptr_t) ref);
}

static const GhHost host = {
	.alloc = host_alloc,
	.free = host_free,
	.address = host_address
};

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* A permutation of the 64-bit words, so that different i give different keys. */
static uint64_t
key_number(const Bench *bench, uint64_t i)
{
	uint64_t	z = i * UINT64_C(0x9E3779B97F4A7C15) + bench->seed;

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static void
die(const char *what, const GhError *error)
{
	fprintf(stderr, "engine_bench: %s: %s\n", what, error != NULL ? error->message : "");
	exit(1);
}

static uint64_t *
make_array(const Bench *bench)
{
	size_t		bytes = (size_t) bench->n * sizeof(uint64_t);
	uint64_t   *array = bench->engine->buffer_alloc != NULL ?
		bench->engine->buffer_alloc(0, bytes) : malloc(bytes);

	if (array == NULL)
		die("no memory for the arrays", NULL);
	return array;
}

static void
make_keys(Bench *bench)
{
	uint64_t	i;

	bench->keys = make_array(bench);
	bench->shuffled = make_array(bench);
	bench->missing = make_array(bench);
	bench->values = make_array(bench);
	bench->out = make_array(bench);
	for (i = 0; i < bench->n; i++)
	{
		bench->keys[i] = bench->shuffled[i] = key_number(bench, i);
		bench->missing[i] = key_number(bench, bench->n + i);
		bench->values[i] = ~bench->keys[i];
	}
	for (i = bench->n - 1; i > 0; i--)
	{
		uint64_t	j = key_number(bench, UINT64_C(1) << 40 | i) % (i + 1);
		uint64_t	key = bench->shuffled[i];

		bench->shuffled[i] = bench->shuffled[j];
		bench->shuffled[j] = key;
	}
}

/* Does op on all keys in batches; returns the matched keys. */
static uint64_t
run(const Bench *bench, GhTable *table, GhOp op, const uint64_t *keys)
{
	uint64_t	matched = 0;
	uint64_t	at;

	for (at = 0; at < bench->n; at += bench->batch)
	{
		uint64_t	left = bench->n - at;
		GhRequest	request = {.op = op};
		GhStatus	status;

		request.count = left < bench->batch ? left : bench->batch;
		request.keys = keys + at;
		if (op == GH_INSERT || op == GH_EXCHANGE)
			request.values_in = bench->values + at;
		if (op == GH_FIND || op == GH_EXCHANGE)
			request.values_out = bench->out + at;
		status = bench->engine->submit(table, &request);
		if (status == GH_OK || status == GH_BUSY)
			status = bench->engine->wait(&request);
		if (status != GH_OK)
			die(gh_status_name(status), &request.error);
		matched += request.matched;
	}
	return matched;
}

/* Every value of out is the complement of its key, or 0 where there is none. */
static int
values_are(const Bench *bench, const uint64_t *keys, int complement)
{
	uint64_t	i;

	for (i = 0; i < bench->n; i++)
	{
		if (bench->out[i] != (complement ? ~keys[i] : 0))
			return 0;
	}
	return 1;
}

static void
measure(const Bench *bench, GhTable *table, int which, GhOp op, const uint64_t *keys,
		uint64_t expected)
{
	double		begin = seconds_now();
	uint64_t	matched = run(bench, table, op, keys);
	double		seconds = seconds_now() - begin;
	GhTableStats stats;
	GhError		error;

	if (best_seconds[which] == 0 || seconds < best_seconds[which])
		best_seconds[which] = seconds;
	if (bench->engine->table_stats(table, &stats, &error) != GH_OK)
		die("stats", &error);
	last_fill[which] = stats.fill;
	all_right[which] &= matched == expected;
	if (op == GH_FIND)
		all_right[which] &= values_are(bench, keys, expected > 0);
	if (op == GH_EXCHANGE)
		all_right[which] &= values_are(bench, keys, expected == 0);
}

static GhTable *
make_table(const Bench *bench, uint64_t capacity)
{
	GhTableOptions options = {.key_size = 8, .value_size = 8};
	GhTable    *table;
	GhError		error;

	options.capacity = capacity;
	options.fill_max = bench->fill_max;
	options.seed = bench->seed;
	if (bench->engine->table_create(&host, &options, &table, &error) != GH_OK)
		die("create", &error);
	return table;
}

static void
run_round(const Bench *bench)
{
	GhTable    *table = make_table(bench, 0);

	measure(bench, table, OP_INSERT_GROW, GH_INSERT, bench->keys, bench->n);
	bench->engine->table_destroy(table);

	table = make_table(bench, bench->n);
	measure(bench, table, OP_INSERT, GH_INSERT, bench->keys, bench->n);
	measure(bench, table, OP_FIND_HIT, GH_FIND, bench->shuffled, bench->n);
	measure(bench, table, OP_FIND_MISS, GH_FIND, bench->missing, 0);
	measure(bench, table, OP_DELETE, GH_DELETE, bench->shuffled, bench->n);
	measure(bench, table, OP_EXCHANGE, GH_EXCHANGE, bench->keys, bench->n);
	bench->engine->table_destroy(table);
}

static const GhEngine *
open_engine(const char *name)
{
	const GhEngine *engine;
	GhError		error = {0};

	if (strcmp(name, "cpu") == 0)
		engine = gh_cpu_engine();
	else if (gh_engine_load(name, false, &engine, &error) != GH_OK)
		die(name, &error);
	if (engine->open_device(0, &error) != GH_OK)
		die(name, &error);
	return engine;
}

int
main(int argc, char **argv)
{
	Bench		bench = {.n = 10000000, .batch = 1 << 24, .rounds = 3, .seed = 1};
	int			a;
	int			i;

	if (argc < 2)
		die("usage: engine_bench cpu|/path/to/gpuhash_cuda.so [--n N] [--fill F] "
			"[--batch N] [--rounds N] [--seed N]", NULL);
	for (a = 2; a + 1 < argc; a += 2)
	{
		if (strcmp(argv[a], "--n") == 0)
			bench.n = strtoull(argv[a + 1], NULL, 0);
		else if (strcmp(argv[a], "--batch") == 0)
			bench.batch = strtoull(argv[a + 1], NULL, 0);
		else if (strcmp(argv[a], "--fill") == 0)
			bench.fill_max = strtod(argv[a + 1], NULL);
		else if (strcmp(argv[a], "--rounds") == 0)
			bench.rounds = atoi(argv[a + 1]);
		else if (strcmp(argv[a], "--seed") == 0)
			bench.seed = strtoull(argv[a + 1], NULL, 0);
		else
			die(argv[a], NULL);
	}
	if (bench.n == 0 || bench.batch == 0 || bench.rounds <= 0)
		die("n, batch and rounds must be above 0", NULL);

	bench.engine = open_engine(argv[1]);
	make_keys(&bench);
	for (i = 0; i < OPS; i++)
		all_right[i] = 1;
	for (i = 0; i < bench.rounds; i++)
		run_round(&bench);

	printf("lib,op,keybits,n,load,Mops,ok\n");
	for (i = 0; i < OPS; i++)
		printf("gpuhash_%s,%s,64,%" PRIu64 ",%.3f,%.2f,%d\n", bench.engine->name, op_name[i],
			   bench.n, last_fill[i], (double) bench.n / best_seconds[i] * 1e-6, all_right[i]);
	for (i = 0; i < OPS; i++)
	{
		if (!all_right[i])
			return 1;
	}
	return 0;
}
