/*
 * engine_bench_single.c
 *		Rows of a table of single values: insert, find, update, delete, upsert and
 *		mixed requests at a filled factor, and export.
 */
#include "engine_bench.h"

#include <stdlib.h>
#include <string.h>

#define INSERT_ORDER 0			/* ascending indexes: the keys are random anyhow */
#define QUERY_ORDER 11			/* other orders than that of the inserts */
#define HALF_ORDER 12
#define DELETE_ORDER 13
#define UPDATE_ORDER 14

enum
{
	ROW_INSERT,
	ROW_FIND_HIT,
	ROW_FIND_MISS,
	ROW_FIND_HALF,
	ROW_UPDATE,
	ROW_DELETE,
	ROW_UPSERT,
	ROW_MIXED,
	ROWS
};

typedef struct Single
{
	Bench	   *bench;
	GhTable    *table;
	uint64_t	n;
	void	   *keys;			/* in the order of the inserts */
	void	   *values;
	void	   *queries;
	void	   *results;		/* or other values */
	uint8_t    *bytes;			/* ops, n / 4 */
	uint8_t    *flags;
	BenchRow	row[ROWS];
} Single;

static void
single_open(Single *single, Bench *bench)
{
	size_t		bytes = bench->n * bench->key_size;
	static const BenchRow rows[ROWS] = {
		[ROW_INSERT] = {.op = "insert", .roof = BENCH_ROOF_CAS},
		[ROW_FIND_HIT] = {.op = "find_hit", .roof = BENCH_ROOF_GATHER},
		[ROW_FIND_MISS] = {.op = "find_miss", .roof = BENCH_ROOF_GATHER},
		[ROW_FIND_HALF] = {.op = "find_half", .roof = BENCH_ROOF_GATHER},
		[ROW_UPDATE] = {.op = "update", .roof = BENCH_ROOF_CAS},
		[ROW_DELETE] = {.op = "delete", .roof = BENCH_ROOF_CAS},
		[ROW_UPSERT] = {.op = "upsert", .roof = BENCH_ROOF_CAS},
		[ROW_MIXED] = {.op = "mixed"}
	};
	BenchStream stream = bench_unique(bench, 0, bench->n, INSERT_ORDER);
	int			r;

	memset(single, 0, sizeof(*single));
	memcpy(single->row, rows, sizeof(rows));
	single->bench = bench;
	single->n = bench->n;
	for (r = 0; r < ROWS; r++)
		single->row[r].n = bench->n;
	single->keys = bench_alloc(bench, bytes);
	single->values = bench_alloc(bench, bytes);
	single->queries = bench_alloc(bench, bytes);
	single->results = bench_alloc(bench, bytes);
	single->bytes = bench_alloc(bench, bench->n / 4 + 1);
	single->flags = bench_alloc(bench, bench->n / 4 + 1);
	bench_make_pairs(bench, &stream, bench->n, 0, single->keys, single->values);
}

static void
single_close(Single *single)
{
	const BenchPlace *place = &single->bench->place;

	place->free(single->keys);
	place->free(single->values);
	place->free(single->queries);
	place->free(single->results);
	place->free(single->bytes);
	place->free(single->flags);
}

/* Stores every key with op; right when each was new. */
static double
single_store(Single *single, GhOp op, bool *right)
{
	GhRequest	request = {.op = op, .count = single->n};
	double		seconds;

	request.keys = single->keys;
	request.values_in = single->values;
	seconds = bench_request(single->bench, single->table, &request);
	*right = request.outcome.inserted == single->n && request.outcome.replaced == 0 &&
		bench_stats(single->bench, single->table).keys == single->n;
	return seconds;
}

/* The three finds; with bucket reads for each find where the table counts them. */
static void
single_finds(Single *single, uint64_t version, bool count_reads)
{
	Bench	   *bench = single->bench;
	BenchFind	find = {.count = single->n, .high = single->n, .version = version};
	int			r;

	find.keys = single->queries;
	find.values = single->results;
	for (r = ROW_FIND_HIT; r <= ROW_FIND_HALF; r++)
	{
		uint64_t	before = count_reads ? bench_stats(bench, single->table).bucket_reads : 0;
		double		seconds = 0;
		bool		right;

		if (r == ROW_FIND_HIT)
			find.stream = bench_unique(bench, 0, single->n, QUERY_ORDER);
		else if (r == ROW_FIND_MISS)
			find.stream = bench_unique(bench, BENCH_MISS_FIRST, single->n, QUERY_ORDER);
		else
			find.stream = bench_unique(bench, 0, 2 * single->n, HALF_ORDER);
		right = bench_find(bench, single->table, &find, &seconds);
		if (count_reads)
		{
			single->row[r].reads = (double) (bench_stats(bench, single->table).bucket_reads -
											 before) / (double) single->n;
			single->row[r].right &= right;
		}
		else
			bench_row_add(&single->row[r], seconds, right);
	}
}

/* Every value is replaced by that of version 1, in another order. */
static void
single_update(Single *single)
{
	Bench	   *bench = single->bench;
	BenchStream stream = bench_unique(bench, 0, single->n, UPDATE_ORDER);
	GhRequest	request = {.op = GH_UPSERT, .count = single->n};
	BenchFind	find = {.count = single->n, .high = single->n, .version = 1};
	double		seconds;
	double		ignored = 0;

	bench_make_pairs(bench, &stream, single->n, 1, single->queries, single->results);
	request.keys = single->queries;
	request.values_in = single->results;
	seconds = bench_request(bench, single->table, &request);

	find.stream = bench_unique(bench, 0, single->n, QUERY_ORDER);
	find.keys = single->queries;
	find.values = single->results;
	bench_row_add(&single->row[ROW_UPDATE], seconds, request.outcome.replaced == single->n &&
				  request.outcome.inserted == 0 &&
				  bench_find(bench, single->table, &find, &ignored));
}

/* Removes every key; with bucket reads for each where the table counts them. */
static void
single_delete(Single *single, bool count_reads)
{
	Bench	   *bench = single->bench;
	BenchStream stream = bench_unique(bench, 0, single->n, DELETE_ORDER);
	GhRequest	request = {.op = GH_DELETE, .count = single->n};
	BenchFind	find = {.count = single->n};
	GhTableStats before = bench_stats(bench, single->table);
	GhTableStats after;
	double		seconds;
	double		ignored = 0;
	bool		right;

	bench_make_keys(bench, &stream, single->n, single->queries);
	request.keys = single->queries;
	seconds = bench_request(bench, single->table, &request);
	after = bench_stats(bench, single->table);

	find.stream = stream;
	find.keys = single->queries;
	find.values = single->results;
	right = request.outcome.removed == single->n && after.keys == 0 &&
		bench_find(bench, single->table, &find, &ignored);
	if (!count_reads)
	{
		bench_row_add(&single->row[ROW_DELETE], seconds, right);
		return;
	}
	single->row[ROW_DELETE].reads = (double) (after.bucket_reads - before.bucket_reads) /
		(double) single->n;
	single->row[ROW_DELETE].right &= right;
}

/* Slab hash's 20 % inserts, 20 % deletes, 30 % hits and 30 % misses, as one request. */
static void
single_mixed(Single *single)
{
	Bench	   *bench = single->bench;
	BenchMixed	mixed = {.count = single->n / 4};
	double		seconds = 0;
	bool		right;

	mixed.mix = (BenchMix) {.inserts = 51, .deletes = 51, .hits = 77, .salt = bench->seed};
	mixed.mix.insert_first = single->n;
	mixed.mix.hit_first = mixed.count;
	mixed.mix.hit_range = single->n - mixed.count;
	mixed.stream = bench_unique(bench, 0, single->n, INSERT_ORDER);
	mixed.keys = single->queries;
	mixed.values = single->results;
	mixed.found = (char *) single->results + mixed.count * bench->key_size;
	mixed.ops = single->bytes;
	mixed.flags = single->flags;
	right = bench_mixed(bench, single->table, &mixed, &seconds);
	single->row[ROW_MIXED].n = mixed.count;
	bench_row_add(&single->row[ROW_MIXED], seconds, right);
}

static void
single_round(Single *single)
{
	Bench	   *bench = single->bench;
	bool		right;
	double		seconds = single_store(single, GH_INSERT, &right);
	GhTableStats stats = bench_stats(bench, single->table);
	int			r;

	bench_row_add(&single->row[ROW_INSERT], seconds, right);
	bench_row_memory(&single->row[ROW_INSERT], &stats);
	for (r = 0; r < ROWS; r++)
		single->row[r].fill = stats.fill;
	single_finds(single, 0, false);
	single_update(single);
	single_delete(single, false);

	bench_clear(bench, single->table);
	seconds = single_store(single, GH_UPSERT, &right);
	bench_row_add(&single->row[ROW_UPSERT], seconds, right);
	single_mixed(single);
	bench_clear(bench, single->table);
}

/* Bucket reads are counted in a table of their own: counting takes time. */
static void
single_count_reads(Single *single)
{
	Bench	   *bench = single->bench;
	GhTableOptions options = bench_options(bench, single->n);
	bool		right;

	options.timing = true;
	single->table = bench_table(bench, &options);
	if (single->table == NULL)
		return;
	(void) single_store(single, GH_INSERT, &right);
	single->row[ROW_INSERT].reads = (double) bench_stats(bench, single->table).bucket_reads /
		(double) single->n;
	single->row[ROW_INSERT].right &= right;
	if (!bench->failed)
		single_finds(single, 0, true);
	if (!bench->failed)
		single_delete(single, true);
	bench->engine->table_destroy(single->table);
}

void
bench_single_rows(Bench *bench)
{
	Single		single;
	GhTableOptions options = bench_options(bench, bench->n);
	int			r;

	single_open(&single, bench);
	single.table = bench_table(bench, &options);
	if (single.table != NULL)
	{
		for (r = 0; r <= bench->rounds && !bench->failed; r++)
			single_round(&single);
		bench->engine->table_destroy(single.table);
		single_count_reads(&single);
	}
	for (r = 0; r < ROWS; r++)
		bench_row_print(bench, &single.row[r]);
	single_close(&single);
}

/* ------------------------------------------------------------------ export */

#define EXPORT_CHUNK ((uint64_t) 1 << 22)	/* entries */

typedef struct Export
{
	void	   *keys;			/* of a chunk, on the host */
	void	   *values;
	void	   *placed_keys;	/* and where they are checked */
	void	   *placed_values;
	uint32_t   *seen;
} Export;

/* Exports the table chunk by chunk; right when each key came once, with its value. */
static void
export_table(Bench *bench, GhTable *table, Export *export, BenchRow *row)
{
	GhCursor	cursor = {0};
	GhError		error = {0};
	BenchJob	job = {.kind = BENCH_CHECK_PAIRS, .high = bench->n};
	uint64_t	total = 0;
	uint64_t	wrong = 0;
	double		seconds = 0;

	job.stream = bench_unique(bench, 0, bench->n, INSERT_ORDER);
	job.keys = export->placed_keys;
	job.values = export->placed_values;
	job.seen = export->seen;
	bench->place.fill(export->seen, 0, bench->n / 8 + 4);
	while (!cursor.finished && total <= bench->n)
	{
		double		begin = bench_now();
		uint64_t	count = 0;

		if (bench->engine->table_export(table, &cursor, EXPORT_CHUNK, export->keys,
										export->values, &count, &error) != GH_OK)
		{
			bench_error(bench, "table_export", &error);
			return;
		}
		seconds += bench_now() - begin;
		bench->place.copy_in(export->placed_keys, export->keys, count * bench->key_size);
		bench->place.copy_in(export->placed_values, export->values, count * bench->key_size);
		wrong += bench->place.run(&job, count);
		total += count;
	}
	bench_row_add(row, seconds, total == bench->n && wrong == 0);
}

void
bench_export_rows(Bench *bench)
{
	Single		single;
	Export		export;
	BenchPlace	host = bench_host_place(bench->engine);
	GhTableOptions options = bench_options(bench, bench->n);
	BenchRow	row = {.op = "export", .n = bench->n};
	size_t		bytes = EXPORT_CHUNK * bench->key_size;
	bool		right = false;
	int			r;

	single_open(&single, bench);
	export.keys = host.alloc(bytes);
	export.values = host.alloc(bytes);
	if (export.keys == NULL || export.values == NULL)
		bench_die("no memory for arrays", "host");
	export.placed_keys = bench_alloc(bench, bytes);
	export.placed_values = bench_alloc(bench, bytes);
	export.seen = bench_alloc(bench, bench->n / 8 + 4);

	single.table = bench_table(bench, &options);
	if (single.table != NULL)
	{
		(void) single_store(&single, GH_INSERT, &right);
		row.fill = bench_stats(bench, single.table).fill;
		for (r = 0; r <= 2 && !bench->failed; r++)
			export_table(bench, single.table, &export, &row);
		row.right &= right;
		bench->engine->table_destroy(single.table);
	}
	bench_row_print(bench, &row);
	host.free(export.keys);
	host.free(export.values);
	bench->place.free(export.placed_keys);
	bench->place.free(export.placed_values);
	bench->place.free(export.seen);
	single_close(&single);
}
