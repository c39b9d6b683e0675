/*
 * paging_bench.c
 *		Rates of tables that are larger than the device memory they may have.
 *
 *	paging_bench /path/gpuhash_cuda.so [--limit MB] [--batch KEYS]... [--times T]... [--bus GB/s]
 *			[--warm LOTS]
 *
 * A table of 8-byte keys and values with room for as many keys as make its buckets T times the
 * limit is filled, then looked up and changed by batches, whose arrays are page-locked memory of the
 * host.  Beside the limit there is device memory for the work on batches.  Keys are drawn uniformly
 * from those in the table, or by Zipf's law with exponent 0.99; before its rows so many lots of 2^24 keys
 * are looked up, each drawn anew, for the engine to learn which are used most.  Every result is checked.
 *
 * device_percent: look-ups that read memory of the device alone; empty where the engine does not count them.
 * bus_percent: bytes that came to the device, arrays and buckets, by what the bus moves in the time.
 */
#include "engine/engine.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKET_BYTES 64
#define ENTRY_BYTES 16
#define FILL 0.8				/* of the slots that the table has room for */
#define WORK_BYTES ((uint64_t) 256 << 20)	/* beside the limit: what a table leaves for that */
#define ZIPF_EXPONENT 0.99
#define LIST_MAX 8
#define ROUNDS 6				/* batches of a row, after one that does not count */
#define DRAWERS 16				/* threads that draw keys */
#define LOT ((uint64_t) 1 << 24)	/* keys that are drawn at a time */

typedef struct Bench
{
	const GhEngine *engine;
	uint64_t	limit;			/* bytes */
	double		bus;			/* bytes a second */
	GhTable    *table;
	double		times;			/* of the limit */
	uint64_t	keys;			/* in the table */
	uint64_t	batch;			/* keys of a request */
	uint64_t	state;			/* of random numbers */
	uint64_t	warm;			/* lots of keys that are looked up before the rows of a distribution */
	uint64_t	next;			/* of the keys that were drawn, the first of the next batch */
	uint64_t   *keys_in;
	uint64_t   *values_in;
	uint64_t   *values_out;
	uint8_t    *ops;
} Bench;

/* The stand-in for a device has its tables there. */
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

static void *
host_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

/* The budget of device memory. */
static uint64_t budget_left;

static bool
take_device(void *ctx, uint64_t bytes)
{
	(void) ctx;
	if (bytes > budget_left)
		return false;
	budget_left -= bytes;
	return true;
}

static void
give_device(void *ctx, uint64_t bytes)
{
	(void) ctx;
	budget_left += bytes;
}

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "paging_bench: %s: %s\n", what, why);
	exit(2);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static uint64_t
mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

static uint64_t
value_of(uint64_t key)
{
	return key * 3 + 1;
}

/* ------------------------------------------------------------------- draws */

/* A thread's part of the keys that are drawn. */
typedef struct Drawer
{
	pthread_t	thread;
	Bench	   *bench;
	uint64_t	state;			/* of random numbers */
	uint64_t	first;			/* its positions */
	uint64_t	end;
	bool		zipf;
} Drawer;

/* Above 0, below 1. */
static double
draw_unit(Drawer *drawer)
{
	drawer->state += UINT64_C(0x9E3779B97F4A7C15);
	return ((double) (mix(drawer->state) >> 11) + 0.5) * 0x1p-53;
}

/* Integral of x to the power of -exponent, and its inverse. */
static double
zipf_area(double x)
{
	return (pow(x, 1 - ZIPF_EXPONENT) - 1) / (1 - ZIPF_EXPONENT);
}

static double
zipf_rank(double area)
{
	return pow(area * (1 - ZIPF_EXPONENT) + 1, 1 / (1 - ZIPF_EXPONENT));
}

/* A rank from 1 to n by rejection-inversion (Hoermann and Derflinger, 1996). */
static uint64_t
draw_zipf(Drawer *drawer, uint64_t n)
{
	double		least = zipf_area(1.5) - 1;
	double		most = zipf_area((double) n + 0.5);

	for (;;)
	{
		double		area = most + draw_unit(drawer) * (least - most);
		double		x = zipf_rank(area);
		double		rank = floor(x + 0.5);

		rank = rank < 1 ? 1 : rank > (double) n ? (double) n : rank;
		if (area >= zipf_area(rank + 0.5) - pow(rank, -ZIPF_EXPONENT))
			return (uint64_t) rank;
	}
}

static void *
drawer_run(void *arg)
{
	Drawer	   *drawer = arg;
	Bench	   *bench = drawer->bench;

	for (uint64_t i = drawer->first; i < drawer->end; i++)
	{
		uint64_t	number = drawer->zipf ? draw_zipf(drawer, bench->keys) :
			1 + (uint64_t) (draw_unit(drawer) * (double) bench->keys);

		bench->keys_in[i] = mix(number > bench->keys ? bench->keys : number);
		bench->values_in[i] = value_of(bench->keys_in[i]);
		bench->ops[i] = (uint8_t) (i % 4 == 0 ? GH_UPSERT : i % 4 == 1 ? GH_INSERT : GH_FIND);
	}
	return NULL;
}

/* Draws so many keys for the batches to come. */
static void
draw_keys(Bench *bench, uint64_t count, bool zipf)
{
	Drawer		drawers[DRAWERS];

	bench->next = 0;
	for (uint64_t d = 0; d < DRAWERS; d++)
	{
		bench->state = mix(bench->state + UINT64_C(0x9E3779B97F4A7C15));
		drawers[d] = (Drawer) {.bench = bench, .state = bench->state, .first = count * d / DRAWERS,
		.end = count * (d + 1) / DRAWERS, .zipf = zipf};
		if (pthread_create(&drawers[d].thread, NULL, drawer_run, &drawers[d]) != 0)
			die("threads", "cannot be had");
	}
	for (int d = 0; d < DRAWERS; d++)
		(void) pthread_join(drawers[d].thread, NULL);
}

/* -------------------------------------------------------------------- rows */

static GhTableStats
stats_of(Bench *bench)
{
	GhTableStats stats;
	GhError		error = {0};

	if (bench->engine->table_stats(bench->table, &stats, &error) != GH_OK)
		die("stats", error.message);
	return stats;
}

static double
run(Bench *bench, GhOp op, uint64_t count, GhOutcome *outcome)
{
	GhRequest	request = {.op = op, .count = count, .keys = bench->keys_in + bench->next};
	double		begin = now();
	GhStatus	status;

	if (op != GH_FIND)
		request.values_in = bench->values_in + bench->next;
	if (op == GH_FIND || op == GH_MIXED)
		request.values_out = bench->values_out;
	request.ops = op == GH_MIXED ? bench->ops + bench->next : NULL;
	status = bench->engine->submit(bench->table, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = bench->engine->wait(&request);
	if (status != GH_OK)
		die("request", request.error.message);
	*outcome = request.outcome;
	return now() - begin;
}

/* Of a batch of keys that all are there. */
static bool
is_right(const Bench *bench, GhOp op, const GhOutcome *outcome)
{
	if (outcome->done != bench->batch || outcome->inserted != 0 || outcome->removed != 0)
		return false;
	for (uint64_t i = 0; op != GH_INSERT && i < bench->batch; i++)
		if ((op == GH_FIND || bench->ops[bench->next + i] == GH_FIND) &&
			bench->values_out[i] != bench->values_in[bench->next + i])
			return false;
	return true;
}

/* What came to the device between the two. */
static double
bytes_in(const GhTableStats *before, const GhTableStats *after)
{
	double		paged = (double) after->bytes_paged;
	double		share = 0;
	uint64_t	slots = 0;

	for (uint32_t i = 0; i < after->subtables; i++)
		slots += after->subtable[i].slots;
	share = paged / (double) (slots * ENTRY_BYTES);
	return (double) (after->bytes_to_device - before->bytes_to_device) + (share < 1 ? share : 1) * BUCKET_BYTES *
		(double) (after->bucket_reads - before->bucket_reads);
}

/* Look-ups between the two that read memory of the device alone, of 100; below 0: it is not known. */
static double
on_device(const GhTableStats *before, const GhTableStats *after)
{
	uint64_t	reads = after->reads - before->reads;
	uint64_t	paged = after->reads_paged - before->reads_paged;

	if (reads == 0 || (after->bytes_paged > 0 && paged == 0))
		return -1;
	return 100 * (double) (reads - paged) / (double) reads;
}

static void
print_row(const Bench *bench, const char *op, const char *distribution, uint64_t keys, double seconds,
		  const GhTableStats *before, const GhTableStats *after, bool right)
{
	double		bytes = bytes_in(before, after);
	double		percent = on_device(before, after);

	printf("%s,%s,%g,%.1f,%.1f,%s,%" PRIu64 ",", op, distribution, bench->times,
		   (double) keys / seconds / 1e6,
		   100 * bytes / seconds / bench->bus, right ? "yes" : "NO", bench->batch);
	if (percent >= 0)
		printf("%.1f", percent);
	printf("\n");
	fflush(stdout);
}

static void
measure(Bench *bench, GhOp op, const char *name, bool zipf)
{
	GhTableStats before = {0};
	GhTableStats after;
	double		seconds = 0;
	bool		right = true;

	/* no batch has been there before */
	draw_keys(bench, (ROUNDS + 1) * bench->batch, zipf);
	for (int i = 0; i <= ROUNDS; i++)
	{
		GhOutcome	outcome;
		double		took;

		bench->next = (uint64_t) i * bench->batch;
		took = run(bench, op, bench->batch, &outcome);
		right = right && is_right(bench, op, &outcome);
		if (i > 0)
			seconds += took;
		else
			before = stats_of(bench);
	}
	after = stats_of(bench);
	print_row(bench, name, zipf ? "zipf" : "uniform", ROUNDS * bench->batch, seconds, &before, &after, right);
}

/* Look-ups by which the engine may learn which keys are used most. */
static void
warm_up(Bench *bench, bool zipf)
{
	uint64_t	batch = bench->batch;

	bench->batch = (uint64_t) 1 << 20;
	for (uint64_t lot = 0; lot < bench->warm; lot++)
	{
		draw_keys(bench, LOT, zipf);
		for (; bench->next < LOT; bench->next += bench->batch)
		{
			GhOutcome	outcome;

			(void) run(bench, GH_FIND, bench->batch, &outcome);
			if (!is_right(bench, GH_FIND, &outcome))
				die("look-up before the rows", "a wrong result");
		}
	}
	bench->batch = batch;
}

/* ------------------------------------------------------------------ tables */

/* All keys, in batches; the rate is that of all of them. */
static void
fill(Bench *bench)
{
	GhTableStats before = stats_of(bench);
	GhTableStats after;
	double		seconds = 0;
	uint64_t	inserted = 0;

	bench->next = 0;
	for (uint64_t first = 0; first < bench->keys; first += bench->batch)
	{
		uint64_t	count = bench->keys - first < bench->batch ? bench->keys - first : bench->batch;
		GhOutcome	outcome;

		for (uint64_t i = 0; i < count; i++)
		{
			bench->keys_in[i] = mix(first + i + 1);
			bench->values_in[i] = value_of(bench->keys_in[i]);
		}
		seconds += run(bench, GH_INSERT, count, &outcome);
		inserted += outcome.inserted;
	}
	after = stats_of(bench);
	print_row(bench, "insert", "uniform", bench->keys, seconds, &before, &after,
			  inserted == bench->keys && after.keys == bench->keys);
	fprintf(stderr, "%g times the limit: %" PRIu64 " keys, %" PRIu64 " MB on the device, %" PRIu64 " MB paged\n",
			bench->times, bench->keys, after.bytes >> 20, after.bytes_paged >> 20);
}

static void
open_table(Bench *bench)
{
	GhHost		host = {.alloc = host_alloc, .free = host_free, .address = host_address,
	.take_device = take_device, .give_device = give_device};
	GhTableOptions options = {.key_size = 8, .value_size = 8, .fill_max = 0.85, .fill_min = 0.1,
	.seed = 7, .timing = true, .pages = true};
	uint64_t	slots = (uint64_t) (bench->times * (double) bench->limit / ENTRY_BYTES);
	GhError		error = {0};

	budget_left = bench->limit + WORK_BYTES;
	bench->keys = (uint64_t) (FILL * (double) slots);
	options.capacity = (uint64_t) (0.85 * (double) slots);
	if (bench->engine->table_create(&host, &options, &bench->table, &error) != GH_OK)
		die("create", error.message);
}

static void *
buffer(const Bench *bench, size_t bytes)
{
	void	   *memory = bench->engine->buffer_alloc(0, bytes);

	if (memory == NULL)
		die("buffer", "out of page-locked memory");
	return memory;
}

static void
measure_all(Bench *bench, const uint64_t *batches, int nbatches, uint64_t most)
{
	open_table(bench);
	bench->batch = most;
	fill(bench);
	for (int zipf = 0; zipf <= 1; zipf++)
	{
		warm_up(bench, zipf != 0);
		for (int b = 0; b < nbatches; b++)
		{
			bench->batch = batches[b];
			measure(bench, GH_FIND, "find", zipf != 0);
			measure(bench, GH_MIXED, "mixed", zipf != 0);
			if (zipf != 0)
				measure(bench, GH_INSERT, "insert", true);
		}
	}
	bench->engine->table_destroy(bench->table);
}

int
main(int argc, char **argv)
{
	Bench		bench = {.limit = (uint64_t) 1 << 30, .bus = 55e9, .state = 42};
	double		times[LIST_MAX] = {1, 1.5, 2, 4, 8};
	uint64_t	batches[LIST_MAX] = {(uint64_t) 1 << 20};
	int			ntimes = 5;
	int			nbatches = 1;
	int			given_times = 0;
	int			given_batches = 0;
	uint64_t	most = LOT;
	GhError		error = {0};

	for (int a = 2; a + 1 < argc; a += 2)
	{
		if (strcmp(argv[a], "--limit") == 0)
			bench.limit = strtoull(argv[a + 1], NULL, 0) << 20;
		else if (strcmp(argv[a], "--bus") == 0)
			bench.bus = atof(argv[a + 1]) * 1e9;
		else if (strcmp(argv[a], "--warm") == 0)
			bench.warm = strtoull(argv[a + 1], NULL, 0);
		else if (strcmp(argv[a], "--batch") == 0 && given_batches < LIST_MAX)
			batches[given_batches++] = strtoull(argv[a + 1], NULL, 0);
		else if (strcmp(argv[a], "--times") == 0 && given_times < LIST_MAX)
			times[given_times++] = atof(argv[a + 1]);
		else
			die("unknown option", argv[a]);
	}
	if (argc < 2 || argc % 2 != 0)
		die("usage", "paging_bench /path/gpuhash_cuda.so [--limit MB] [--batch KEYS] [--times T] "
			"[--bus GB/s] [--warm LOTS]");
	ntimes = given_times > 0 ? given_times : ntimes;
	nbatches = given_batches > 0 ? given_batches : nbatches;
	for (int b = 0; b < nbatches; b++)
		most = (ROUNDS + 1) * batches[b] > most ? (ROUNDS + 1) * batches[b] : most;
	if (gh_engine_load(argv[1], false, &bench.engine, &error) != GH_OK ||
		bench.engine->open_device(0, &error) != GH_OK)
		die(argv[1], error.message);
	bench.keys_in = buffer(&bench, most * sizeof(uint64_t));
	bench.values_in = buffer(&bench, most * sizeof(uint64_t));
	bench.values_out = buffer(&bench, most * sizeof(uint64_t));
	bench.ops = buffer(&bench, most);
	printf("op,distribution,times_limit,Mops,bus_percent,ok,batch,device_percent\n");
	for (int t = 0; t < ntimes; t++)
	{
		bench.times = times[t];
		measure_all(&bench, batches, nbatches, most);
	}
	return 0;
}
