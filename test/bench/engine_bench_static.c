/*
 * engine_bench_static.c
 *		The static experiment of "Dynamic Hash Tables on GPUs" (DyHash), sections 6.1
 *		and 6.4, tables 4 to 8: insert and find at filled factors from 0.75 to 0.95, and
 *		how many inserts fail.
 *
 * The data sets are made here in the shape of the paper's:
 *	RAND	100 million unique random keys
 *	LINE	100 million rows in the shape of TPC-H's lineitem, order, part and line number
 *			packed into 64 bits
 *	DUP		100 million positions over 130 thousand keys, nearly by Zipf's law with
 *			exponent 1, stored by upserts: the many duplicates of the others
 *
 * An insert into this table does not fail, it makes the table grow.  So failures are
 * upsizes for 100 keys of a table that was made for just these keys, and lost are keys
 * that are not found afterwards.
 *
 *	experiment,lib,dataset,op,keybits,n,load,fill,Mops,upsizes,failures_pct,lost,ok
 */
#include "engine_bench.h"

#include <string.h>

#define ROUNDS 3
#define QUERY_ORDER 41
#define SKEW_ORDER 42
#define SKEW_QUERY_ORDER 43

static const double loads[] = {0.75, 0.80, 0.85, 0.90, 0.95};

typedef struct Static
{
	Bench	   *bench;
	const char *dataset;
	BenchStream stored;			/* what is stored, position by position */
	BenchStream queries;
	uint64_t	n;				/* positions of both */
	uint64_t	distinct;		/* keys */
	void	   *keys;
	void	   *values;
	void	   *queried;
	void	   *found;
	uint64_t   *last;			/* skewed: of each key */
	BenchRow	insert;
	BenchRow	find;
	uint64_t	upsizes;
	uint64_t	lost;
} Static;

static bool
is_skewed(const Static *set)
{
	return set->stored.shape == BENCH_SKEWED;
}

/* The arrays; in a skewed set, which position of a key is the last. */
static void
static_open(Static *set)
{
	Bench	   *bench = set->bench;
	size_t		bytes = set->n * bench->key_size;
	BenchJob	job = {.kind = is_skewed(set) ? BENCH_MAKE_POSITIONS : BENCH_MAKE_PAIRS};
	uint64_t	range = (uint64_t) 1 << set->stored.octaves;

	set->keys = bench_alloc(bench, bytes);
	set->values = bench_alloc(bench, bytes);
	set->queried = bench_alloc(bench, bytes);
	set->found = bench_alloc(bench, bytes);
	set->last = bench_alloc(bench, range * sizeof(uint64_t));
	job.stream = set->stored;
	job.keys = set->keys;
	job.values = set->values;
	(void) bench->place.run(&job, set->n);
	bench_make_keys(bench, &set->queries, set->n, set->queried);

	set->distinct = set->n;
	if (!is_skewed(set))
		return;
	bench->place.fill(set->last, 0, range * sizeof(uint64_t));
	job.kind = BENCH_MAKE_LAST;
	job.words = set->last;
	(void) bench->place.run(&job, set->n);
	job.kind = BENCH_COUNT_STORED;
	job.stream.shape = BENCH_UNIQUE;
	job.stream.order = 0;
	set->distinct = bench->place.run(&job, range);
}

static void
static_close(Static *set)
{
	const BenchPlace *place = &set->bench->place;

	place->free(set->keys);
	place->free(set->values);
	place->free(set->queried);
	place->free(set->found);
	place->free(set->last);
}

/* Looks up all queries; counts the stored keys among them that are not found. */
static void
static_find(Static *set, GhTable *table)
{
	Bench	   *bench = set->bench;
	GhRequest	request = {.op = GH_FIND, .count = set->n, .absent = BENCH_ABSENT};
	BenchJob	job = {.kind = BENCH_COUNT_STORED, .stream = set->queries};
	uint64_t	present = set->n;
	double		seconds;

	job.words = set->last;
	job.values = set->found;
	job.high = set->n;
	if (is_skewed(set))
		present = bench->place.run(&job, set->n);
	bench->place.fill(set->found, 0xA5, set->n * bench->key_size);
	request.keys = set->queried;
	request.values_out = set->found;
	seconds = bench_request(bench, table, &request);
	job.kind = is_skewed(set) ? BENCH_CHECK_LAST : BENCH_CHECK_FOUND;
	if (!bench->failed && request.outcome.matched < present)
		set->lost += present - request.outcome.matched;
	bench_row_add(&set->find, seconds, !bench->failed && request.outcome.matched == present &&
				  bench->place.run(&job, set->n) == 0);
}

static void
static_round(Static *set, GhTable *table)
{
	Bench	   *bench = set->bench;
	GhRequest	request = {.count = set->n};
	GhTableStats stats;
	double		seconds;

	bench_clear(bench, table);
	stats = bench_stats(bench, table);
	set->upsizes = stats.upsizes;
	request.op = is_skewed(set) ? GH_UPSERT : GH_INSERT;
	request.keys = set->keys;
	request.values_in = set->values;
	seconds = bench_request(bench, table, &request);
	stats = bench_stats(bench, table);
	set->upsizes = stats.upsizes - set->upsizes;
	set->insert.fill = stats.fill;
	bench_row_add(&set->insert, seconds, request.outcome.inserted == set->distinct &&
				  request.outcome.replaced == set->n - set->distinct &&
				  stats.keys == set->distinct);
	static_find(set, table);
}

static void
static_print(Static *set, const char *op, const BenchRow *row)
{
	Bench	   *bench = set->bench;
	double		seconds = bench_row_seconds(row);
	bool		right = row->right && row->runs > 0 && !bench->failed && set->lost == 0;

	printf("static,%s,%s,%s,%u,%" PRIu64 ",%.2f,%.4f,%.2f,%" PRIu64 ",%.2e,%" PRIu64 ",%s\n",
		   bench->lib, set->dataset, op, bench->key_size * 8, set->n, bench->load,
		   set->insert.fill, seconds > 0 ? (double) set->n / seconds * 1e-6 : 0,
		   set->upsizes, 100.0 * (double) set->upsizes / (double) set->distinct,
		   set->lost, right ? "yes" : "no");
	fflush(stdout);
	bench->wrong |= !right;
}

static void
static_set(Static *set)
{
	Bench	   *bench = set->bench;
	size_t		i;
	int			r;

	static_open(set);
	for (i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
	{
		GhTableOptions options;
		GhTable    *table;

		bench->failed = false;
		bench->load = loads[i];
		memset(&set->insert, 0, sizeof(set->insert));
		memset(&set->find, 0, sizeof(set->find));
		set->lost = 0;
		options = bench_options(bench, set->distinct);
		table = bench_table(bench, &options);
		if (table != NULL)
		{
			for (r = 0; r <= ROUNDS && !bench->failed; r++)
				static_round(set, table);
			bench->engine->table_destroy(table);
		}
		static_print(set, is_skewed(set) ? "upsert" : "insert", &set->insert);
		static_print(set, "find", &set->find);
	}
	static_close(set);
}

void
bench_experiment_static(Bench *bench)
{
	Static		set = {.bench = bench};

	printf("experiment,lib,dataset,op,keybits,n,load,fill,Mops,upsizes,failures_pct,lost,ok\n");
	set.n = (uint64_t) (bench->scale * 1e8) / 16 * 16;
	set.dataset = "RAND";
	set.stored = bench_unique(bench, 0, set.n, 0);
	set.queries = bench_unique(bench, 0, set.n, QUERY_ORDER);
	static_set(&set);

	if (bench->key_size == 8)	/* the keys do not fit 4 bytes */
	{
		set.dataset = "LINE";
		set.stored.line_keys = set.queries.line_keys = true;
		static_set(&set);
	}

	set.dataset = "DUP";
	set.stored = set.queries = bench_unique(bench, 0, set.n, SKEW_ORDER);
	set.stored.shape = set.queries.shape = BENCH_SKEWED;
	while (((uint64_t) 762 << set.stored.octaves) < set.n)
		set.stored.octaves++;
	set.queries.octaves = set.stored.octaves;
	set.queries.order = SKEW_QUERY_ORDER;
	static_set(&set);
}
