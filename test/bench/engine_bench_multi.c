/*
 * engine_bench_multi.c
 *		Rows of tables of many values: adding, counting, find-all, static builds, and
 *		one key with a great many values.
 *
 * Keys have 1, 3, 5 and 7 values, 4 in the mean.  A value is the position that
 * stored it, so that a find-all shows each position once, in the list of its key.
 */
#include "engine_bench.h"

#include <string.h>

#define STORE_ORDER 21
#define QUERY_ORDER 22

typedef struct Multi
{
	Bench	   *bench;
	GhTable    *table;
	uint64_t	values_stored;
	uint64_t	keys_stored;
	void	   *keys;			/* as they are stored */
	void	   *values;
	void	   *queries;		/* every key once */
	void	   *found;			/* values */
	uint64_t   *words;			/* offsets, or counts */
	uint32_t   *seen;
} Multi;

/* What is stored: positions of keys, each key `multiplicity` (1 or 4) times in the mean. */
static BenchStream
stored_stream(const Multi *multi)
{
	BenchStream stream = bench_unique(multi->bench, 0, multi->values_stored, 0);

	if (multi->keys_stored != multi->values_stored)
	{
		stream.shape = multi->keys_stored == 1 ? BENCH_HOT : BENCH_MULTI;
		stream.order = STORE_ORDER;
	}
	return stream;
}

static void
multi_open(Multi *multi, Bench *bench, uint64_t values, uint64_t keys)
{
	size_t		bytes = values * bench->key_size;
	BenchJob	job = {.kind = BENCH_MAKE_POSITIONS};
	BenchStream queries = bench_unique(bench, 0, keys, QUERY_ORDER);

	memset(multi, 0, sizeof(*multi));
	multi->bench = bench;
	multi->values_stored = values;
	multi->keys_stored = keys;
	multi->keys = bench_alloc(bench, bytes);
	multi->values = bench_alloc(bench, bytes);
	multi->queries = bench_alloc(bench, keys * bench->key_size);
	multi->found = bench_alloc(bench, bytes);
	multi->words = bench_alloc(bench, (keys + 1) * sizeof(uint64_t));
	multi->seen = bench_alloc(bench, values / 8 + 4);

	job.stream = stored_stream(multi);
	job.keys = multi->keys;
	job.values = multi->values;
	(void) bench->place.run(&job, values);
	bench_make_keys(bench, &queries, keys, multi->queries);
}

static void
multi_close(Multi *multi)
{
	const BenchPlace *place = &multi->bench->place;

	place->free(multi->keys);
	place->free(multi->values);
	place->free(multi->queries);
	place->free(multi->found);
	place->free(multi->words);
	place->free(multi->seen);
}

static bool
multi_table(Multi *multi, bool timing)
{
	GhTableOptions options = bench_options(multi->bench, multi->keys_stored);

	options.multi = true;
	options.timing = timing;
	multi->table = bench_table(multi->bench, &options);
	return multi->table != NULL;
}

/* Stores everything in a cleared table with GH_ADD or GH_BUILD. */
static void
multi_store(Multi *multi, GhOp op, BenchRow *row)
{
	Bench	   *bench = multi->bench;
	GhRequest	request = {.op = op, .count = multi->values_stored};
	GhTableStats stats;
	double		seconds;

	bench_clear(bench, multi->table);
	request.keys = multi->keys;
	request.values_in = multi->values;
	seconds = bench_request(bench, multi->table, &request);
	stats = bench_stats(bench, multi->table);
	row->fill = stats.fill;
	bench_row_memory(row, &stats);
	bench_row_add(row, seconds, request.outcome.inserted == multi->keys_stored &&
				  stats.keys == multi->keys_stored && stats.values == multi->values_stored);
}

/* Are the lists found those stored, and is each position in one? */
static bool
lists_right(Multi *multi)
{
	Bench	   *bench = multi->bench;
	BenchJob	job = {.kind = BENCH_CHECK_LISTS};

	job.stream = bench_unique(bench, 0, multi->keys_stored, QUERY_ORDER);
	job.limit = multi->values_stored;
	job.stored_order = STORE_ORDER;
	job.values = multi->found;
	job.words = multi->words;
	job.seen = multi->seen;
	bench->place.fill(multi->seen, 0, multi->values_stored / 8 + 4);
	if (multi->keys_stored != multi->values_stored && multi->keys_stored != 1)
		return bench->place.run(&job, multi->keys_stored) == 0;

	/* one value for each key, or all values for the one key */
	job.kind = BENCH_CHECK_OFFSETS;
	job.limit = multi->values_stored / multi->keys_stored;
	if (bench->place.run(&job, multi->keys_stored + 1) != 0)
		return false;
	job.limit = multi->values_stored;
	/* unique keys ascend in what was stored: the position is the index */
	job.kind = multi->keys_stored == 1 ? BENCH_CHECK_POSITIONS : BENCH_CHECK_FOUND;
	job.high = multi->keys_stored;
	return bench->place.run(&job, multi->values_stored) == 0;
}

static void
multi_find_all(Multi *multi, BenchRow *row)
{
	Bench	   *bench = multi->bench;
	GhRequest	request = {.op = GH_FIND_ALL, .count = multi->keys_stored};
	double		seconds;

	bench->place.fill(multi->found, 0xA5, multi->values_stored * bench->key_size);
	bench->place.fill(multi->words, 0xA5, (multi->keys_stored + 1) * sizeof(uint64_t));
	request.keys = multi->queries;
	request.values_out = multi->found;
	request.offsets_out = multi->words;
	request.values_capacity = multi->values_stored;
	seconds = bench_request(bench, multi->table, &request);
	bench_row_add(row, seconds, !bench->failed && request.outcome.matched == multi->keys_stored &&
				  request.outcome.values_count == multi->values_stored && lists_right(multi));
}

static void
multi_count(Multi *multi, BenchRow *row)
{
	Bench	   *bench = multi->bench;
	GhRequest	request = {.op = GH_COUNT, .count = multi->keys_stored};
	BenchJob	job = {.kind = BENCH_CHECK_COUNTS};
	double		seconds;

	bench->place.fill(multi->words, 0xA5, multi->keys_stored * sizeof(uint64_t));
	request.keys = multi->queries;
	request.counts_out = multi->words;
	seconds = bench_request(bench, multi->table, &request);
	job.stream = bench_unique(bench, 0, multi->keys_stored, QUERY_ORDER);
	job.words = multi->words;
	bench_row_add(row, seconds, !bench->failed && request.outcome.matched == multi->keys_stored &&
				  request.outcome.values_count == multi->values_stored &&
				  bench->place.run(&job, multi->keys_stored) == 0);
}

/* Bucket reads for each key of what `work` does, in a table that counts them. */
static double
multi_reads(Multi *multi, GhOp op, void (*work) (Multi *multi, BenchRow *row))
{
	Bench	   *bench = multi->bench;
	BenchRow	ignored = {0};
	uint64_t	before;
	double		reads = 0;

	if (!multi_table(multi, true))
		return 0;
	multi_store(multi, op, &ignored);
	before = bench_stats(bench, multi->table).bucket_reads;
	if (!bench->failed)
		work(multi, &ignored);
	reads = (double) (bench_stats(bench, multi->table).bucket_reads - before);
	bench->engine->table_destroy(multi->table);
	return reads / (double) multi->keys_stored;
}

void
bench_multi_rows(Bench *bench)
{
	Multi		multi;
	BenchRow	add = {.op = "add", .roof = BENCH_ROOF_CAS, .n = bench->n};
	BenchRow	find_all = {.op = "find_all", .roof = BENCH_ROOF_GATHER, .n = bench->n};
	BenchRow	count = {.op = "count", .roof = BENCH_ROOF_GATHER, .n = bench->n / 4};
	int			r;

	multi_open(&multi, bench, bench->n, bench->n / 4);
	if (multi_table(&multi, false))
	{
		for (r = 0; r <= bench->rounds && !bench->failed; r++)
		{
			multi_store(&multi, GH_ADD, &add);
			multi_find_all(&multi, &find_all);
			multi_count(&multi, &count);
		}
		bench->engine->table_destroy(multi.table);
		find_all.reads = multi_reads(&multi, GH_ADD, multi_find_all);
		count.reads = multi_reads(&multi, GH_ADD, multi_count);
		find_all.fill = count.fill = add.fill;
	}
	bench_row_print(bench, &add);
	bench_row_print(bench, &find_all);
	bench_row_print(bench, &count);
	multi_close(&multi);
}

/* Static builds of one multiplicity, and finding all of it. */
static void
build_rows(Bench *bench, uint64_t keys, const char *build_name, const char *find_name)
{
	Multi		multi;
	BenchRow	build = {.roof = BENCH_ROOF_CAS, .n = bench->n};
	BenchRow	find_all = {.roof = BENCH_ROOF_GATHER, .n = bench->n};
	int			r;

	build.op = build_name;
	find_all.op = find_name;
	multi_open(&multi, bench, bench->n, keys);
	if (multi_table(&multi, false))
	{
		for (r = 0; r <= bench->rounds && !bench->failed; r++)
		{
			multi_store(&multi, GH_BUILD, &build);
			multi_find_all(&multi, &find_all);
		}
		bench->engine->table_destroy(multi.table);
		find_all.reads = multi_reads(&multi, GH_BUILD, multi_find_all);
		find_all.fill = build.fill;
	}
	bench_row_print(bench, &build);
	bench_row_print(bench, &find_all);
	multi_close(&multi);
}

void
bench_build_rows(Bench *bench)
{
	build_rows(bench, bench->n, "static_build", "static_find_all");
	build_rows(bench, bench->n / 4, "static_build_m4", "static_find_all_m4");
}

/* All copies of one key, by GH_ADD and by GH_BUILD. */
void
bench_hot_rows(Bench *bench)
{
	static const char *const names[2][2] = {
		{"hot_insert", "hot_find_all"}, {"hot_build", "hot_build_find_all"}
	};
	static const GhOp ops[2] = {GH_ADD, GH_BUILD};
	int			which;
	int			r;

	for (which = 0; which < 2; which++)
	{
		Multi		multi;
		BenchRow	store = {.op = names[which][0], .n = bench->hot};
		BenchRow	find_all = {.op = names[which][1], .n = bench->hot};

		multi_open(&multi, bench, bench->hot, 1);
		if (multi_table(&multi, false))
		{
			for (r = 0; r <= 2 && !bench->failed; r++)
			{
				multi_store(&multi, ops[which], &store);
				multi_find_all(&multi, &find_all);
			}
			bench->engine->table_destroy(multi.table);
		}
		store.fill = find_all.fill = 0;
		bench_row_print(bench, &store);
		bench_row_print(bench, &find_all);
		multi_close(&multi);
		bench->failed = false;
	}
}
