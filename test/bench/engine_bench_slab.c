/*
 * engine_bench_slab.c
 *		Experiments of "A Dynamic Hash Table for the GPU" (slab hash): incremental
 *		insertion (section VI-B, figure 6) and mixes of operations (VI-C, figure 7a).
 */
#include "engine_bench.h"

#include <string.h>

#define CHECK_ORDER 61

/* ------------------------------------------------------------- incremental */

/*
 * Elements come in batches until there are `total`.  Batches are total / 64 (32 k of 2
 * M) to total.
 *
 *	incremental	inserted into one table made for all of them, filled to 0.65 at the end
 *	grow		inserted into one table that starts empty, with the default bounds
 *	rebuild		after each batch, a new table of a filled factor of 0.65 for all so far
 *
 *	experiment,lib,keybits,total,batch,method,inserted,ms,ok
 *
 * ms is the time so far, from the first batch on.
 */
#define INCREMENTAL_FILL 0.65
#define BATCHES_MAX 64

typedef enum Method
{
	METHOD_INCREMENTAL,
	METHOD_GROW,
	METHOD_REBUILD,
	METHODS
} Method;

static const char *const method_name[METHODS] = {"incremental", "grow", "rebuild"};

typedef struct Incremental
{
	Bench	   *bench;
	uint64_t	total;
	void	   *keys;
	void	   *values;
	void	   *queries;
	void	   *results;
} Incremental;

static GhTable *
incremental_table(Incremental *incremental, Method method, uint64_t keys)
{
	Bench	   *bench = incremental->bench;
	GhTableOptions options;

	bench->load = method == METHOD_GROW ? GH_FILL_MAX_DEFAULT : INCREMENTAL_FILL;
	options = bench_options(bench, method == METHOD_GROW ? 0 : keys);
	return bench_table(bench, &options);
}

/* Inserts first .. end - 1; whether all were new. */
static bool
insert_range(Incremental *incremental, GhTable *table, uint64_t first, uint64_t end,
			 double *seconds)
{
	Bench	   *bench = incremental->bench;
	GhRequest	request = {.op = GH_INSERT, .count = end - first};

	request.keys = (char *) incremental->keys + first * bench->key_size;
	request.values_in = (char *) incremental->values + first * bench->key_size;
	*seconds += bench_request(bench, table, &request);
	return request.outcome.inserted == end - first;
}

/* One run: `at` and `ms` of each batch, and whether all keys are there in the end. */
static bool
incremental_run(Incremental *incremental, Method method, uint64_t batch, double *ms)
{
	Bench	   *bench = incremental->bench;
	GhTable    *table = NULL;
	BenchFind	find = {.count = incremental->total, .high = incremental->total};
	double		seconds = 0;
	double		ignored = 0;
	bool		right = true;
	uint64_t	end;
	int			step = 0;

	for (end = batch; end <= incremental->total && !bench->failed; end += batch)
	{
		bool		whole = method == METHOD_REBUILD;
		double		begin;

		if (table != NULL && whole)
			bench->engine->table_destroy(table);
		bench->place.sync();
		begin = bench_now();
		if (table == NULL || whole)
			table = incremental_table(incremental, method, whole ? end : incremental->total);
		/* a table made once is there before the first batch */
		if (whole)
			seconds += bench_now() - begin;
		if (table == NULL)
			return false;
		right &= insert_range(incremental, table, whole ? 0 : end - batch, end, &seconds);
		ms[step++] = seconds * 1e3;
	}
	find.stream = bench_unique(bench, 0, incremental->total, CHECK_ORDER);
	find.keys = incremental->queries;
	find.values = incremental->results;
	right = right && !bench->failed && bench_find(bench, table, &find, &ignored);
	bench->engine->table_destroy(table);
	return right;
}

static void
incremental_total(Incremental *incremental)
{
	Bench	   *bench = incremental->bench;
	size_t		bytes = incremental->total * bench->key_size;
	BenchStream stream = bench_unique(bench, 0, incremental->total, 0);
	double		ms[BATCHES_MAX] = {0};
	int			parts;
	int			method;
	int			step;

	incremental->keys = bench_alloc(bench, bytes);
	incremental->values = bench_alloc(bench, bytes);
	incremental->queries = bench_alloc(bench, bytes);
	incremental->results = bench_alloc(bench, bytes);
	bench_make_pairs(bench, &stream, incremental->total, 0, incremental->keys,
					 incremental->values);
	for (parts = BATCHES_MAX; parts >= 1; parts /= 2)
	{
		uint64_t	batch = incremental->total / (uint64_t) parts;

		for (method = 0; method < METHODS; method++)
		{
			/* the first run warms up */
			bool		right = incremental_run(incremental, method, batch, ms) &&
				incremental_run(incremental, method, batch, ms);

			for (step = 0; step < parts; step++)
				printf("incremental,%s,%u,%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",%.4f,%s\n",
					   bench->lib, bench->key_size * 8, incremental->total, batch,
					   method_name[method], batch * (uint64_t) (step + 1), ms[step],
					   right ? "yes" : "no");
			fflush(stdout);
			bench->wrong |= !right;
			bench->failed = false;
		}
	}
	bench->place.free(incremental->keys);
	bench->place.free(incremental->values);
	bench->place.free(incremental->queries);
	bench->place.free(incremental->results);
}

void
bench_experiment_incremental(Bench *bench)
{
	static const double totals[] = {1 << 21, 1 << 25};
	Incremental incremental = {.bench = bench};
	int			i;

	printf("experiment,lib,keybits,total,batch,method,inserted,ms,ok\n");
	for (i = 0; i < 2; i++)
	{
		/* batches that start at 16-byte boundaries */
		incremental.total = (uint64_t) (bench->scale * totals[i]) / 1024 * 1024;
		if (incremental.total < 1024)
			incremental.total = 1024;
		incremental_total(&incremental);
	}
}

/* ------------------------------------------------------------------- mixes */

/*
 * A table of n keys at a filled factor; batches that mix operations at random in the
 * shares of the paper's three distributions, as many deletes as inserts.
 *
 *	experiment,lib,keybits,mix,inserts,deletes,hits,misses,load,fill,n,batch,Mops,ok
 *
 * The shares are of 256.
 */
#define MIX_BATCHES 8

typedef struct Mixes
{
	Bench	   *bench;
	GhTable    *table;
	uint64_t	n;
	BenchMixed	batch;			/* with room for n keys and values */
	BenchRow	row;
} Mixes;

/* The batches together delete from the first half and find in the second. */
static void
mix_batch(Mixes *mixes, const BenchMix *shares, uint64_t b)
{
	BenchMixed *batch = &mixes->batch;
	double		seconds = 0;
	bool		right;

	batch->mix = *shares;
	batch->mix.salt = b + 1;
	batch->mix.insert_first = mixes->n + b * batch->count;
	batch->mix.delete_first = b * batch->count;
	batch->mix.hit_first = mixes->n / 2;
	batch->mix.hit_range = mixes->n / 2;
	right = bench_mixed(mixes->bench, mixes->table, batch, &seconds);
	bench_row_add(&mixes->row, seconds, right);
}

/* A new table of n keys, then the batches of one distribution. */
static void
mix_at(Mixes *mixes, const char *name, const BenchMix *shares, double fill)
{
	Bench	   *bench = mixes->bench;
	BenchStream stream = bench_unique(bench, 0, mixes->n, 0);
	GhRequest	request = {.op = GH_INSERT, .count = mixes->n};
	GhTableOptions options;
	double		seconds;
	bool		right;
	uint64_t	b;

	memset(&mixes->row, 0, sizeof(mixes->row));
	bench->failed = false;
	/* n keys fill it to `fill`, and a batch's inserts come before its deletes */
	bench->load = fill + 0.05 < GH_FILL_MAX_MAX ? fill + 0.05 : GH_FILL_MAX_MAX;
	options = bench_options(bench, (uint64_t) ((double) mixes->n * bench->load / fill));
	mixes->table = bench_table(bench, &options);
	if (mixes->table != NULL)
	{
		mixes->batch.stream = stream;
		bench_make_pairs(bench, &stream, mixes->n, 0, mixes->batch.keys, mixes->batch.values);
		request.keys = mixes->batch.keys;
		request.values_in = mixes->batch.values;
		(void) bench_request(bench, mixes->table, &request);
		mixes->row.fill = bench_stats(bench, mixes->table).fill;
		for (b = 0; b < MIX_BATCHES && !bench->failed; b++)
			mix_batch(mixes, shares, b);
		bench->engine->table_destroy(mixes->table);
	}
	seconds = bench_row_seconds(&mixes->row);
	right = mixes->row.runs == MIX_BATCHES && mixes->row.right && !bench->failed &&
		request.outcome.inserted == mixes->n;
	printf("mixes,%s,%u,%s,%u,%u,%u,%u,%.2f,%.4f,%" PRIu64 ",%" PRIu64 ",%.2f,%s\n",
		   bench->lib, bench->key_size * 8, name, shares->inserts, shares->deletes,
		   shares->hits, 256 - shares->inserts - shares->deletes - shares->hits, fill,
		   mixes->row.fill, mixes->n, mixes->batch.count,
		   seconds > 0 ? (double) mixes->batch.count / seconds * 1e-6 : 0, right ? "yes" : "no");
	fflush(stdout);
	bench->wrong |= !right;
}

void
bench_experiment_mixes(Bench *bench)
{
	static const double fills[] = {0.5, 0.6, 0.7, 0.8, 0.9};
	static const char *const names[] = {"G0", "G1", "G2"};
	static const BenchMix shares[] = {
		{.inserts = 128, .deletes = 128},
		{.inserts = 51, .deletes = 51, .hits = 77},
		{.inserts = 26, .deletes = 26, .hits = 102}
	};
	Mixes		mixes = {.bench = bench};
	BenchMixed *batch = &mixes.batch;
	int			f;
	int			m;

	printf("experiment,lib,keybits,mix,inserts,deletes,hits,misses,load,fill,n,batch,Mops,ok\n");
	mixes.n = (uint64_t) (bench->scale * (1 << 25)) / 256 * 256;
	batch->count = mixes.n / (2 * MIX_BATCHES);
	batch->keys = bench_alloc(bench, mixes.n * bench->key_size);
	batch->values = bench_alloc(bench, mixes.n * bench->key_size);
	batch->found = bench_alloc(bench, batch->count * bench->key_size);
	batch->ops = bench_alloc(bench, batch->count);
	batch->flags = bench_alloc(bench, batch->count);
	for (m = 0; m < 3; m++)
	{
		for (f = 0; f < 5; f++)
			mix_at(&mixes, names[m], &shares[m], fills[f]);
	}
	bench->place.free(batch->keys);
	bench->place.free(batch->values);
	bench->place.free(batch->found);
	bench->place.free(batch->ops);
	bench->place.free(batch->flags);
}
