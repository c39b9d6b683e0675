/*
 * engine_bench_dynamic.c
 *		The dynamic experiment of "Dynamic Hash Tables on GPUs" (DyHash), sections 6.1
 *		and 6.5: a table that starts empty, grows and shrinks.
 *
 * 100 batches, each 1 million inserts of new keys, 1 million finds and r million
 * deletes; then the batches once more, the last one first, inserts and deletes
 * swapped.  Deletes take the oldest keys, so that the keys in the table always are
 * those of an interval of indexes: after b batches of B inserts and D deletes b D to
 * b B, and in the second phase the same downwards.  (Keys are random functions of
 * their index: the table cannot tell.)  Finds are of random indexes inserted so far,
 * some of them deleted.
 *
 * One of r, the lower bound alpha and the upper bound beta of the filled factor is
 * varied at a time.
 *
 *	experiment,lib,keybits,vary,r,alpha,beta,phase,batch,insert_ms,find_ms,delete_ms,Mops,
 *	fill,upsizes,downsizes,ok
 *
 * With the default parameters there is a line for each batch; for all, a line with phase
 * "total" whose times are sums and whose fill is the mean.
 */
#include "engine_bench.h"

#include <string.h>

#define BATCHES 100
#define FIND_ORDER 51

#define DEFAULT_R 0.4
#define DEFAULT_ALPHA 0.4
#define DEFAULT_BETA 0.85

typedef struct Dynamic
{
	Bench	   *bench;
	GhTable    *table;
	const char *vary;
	double		r;
	double		alpha;
	uint64_t	inserts;		/* B, of a batch */
	uint64_t	deletes;		/* D */
	uint64_t	slots_empty;
	uint64_t	low;			/* indexes in the table: low .. high - 1 */
	uint64_t	high;
	double		insert_seconds; /* of this batch */
	double		find_seconds;
	double		delete_seconds;
	bool		right;
	void	   *keys;
	void	   *values;
} Dynamic;

/* Keys and bounds are as they must be after a request. */
static void
check_table(Dynamic *dynamic)
{
	GhTableStats stats = bench_stats(dynamic->bench, dynamic->table);
	bool		bounded = stats.upsizes > 1 && bench_slots(&stats) > dynamic->slots_empty;

	dynamic->right &= stats.keys == dynamic->high - dynamic->low &&
		stats.fill <= dynamic->bench->load && (!bounded || stats.fill >= dynamic->alpha);
}

static void
insert_keys(Dynamic *dynamic, uint64_t first, uint64_t count)
{
	Bench	   *bench = dynamic->bench;
	BenchStream stream = bench_unique(bench, first, count, 0);
	GhRequest	request = {.op = GH_INSERT, .count = count};

	bench_make_pairs(bench, &stream, count, 0, dynamic->keys, dynamic->values);
	request.keys = dynamic->keys;
	request.values_in = dynamic->values;
	dynamic->insert_seconds = bench_request(bench, dynamic->table, &request);
	dynamic->right &= request.outcome.inserted == count;
	if (first < dynamic->low)
		dynamic->low = first;
	if (first + count > dynamic->high)
		dynamic->high = first + count;
	check_table(dynamic);
}

/* Deletes those of first .. that are there, at one end of the interval. */
static void
delete_keys(Dynamic *dynamic, uint64_t first, uint64_t count)
{
	Bench	   *bench = dynamic->bench;
	BenchStream stream = bench_unique(bench, first, count, 0);
	GhRequest	request = {.op = GH_DELETE, .count = count};

	bench_make_keys(bench, &stream, count, dynamic->keys);
	request.keys = dynamic->keys;
	dynamic->delete_seconds = bench_request(bench, dynamic->table, &request);
	dynamic->right &= request.outcome.removed == count;
	if (first == dynamic->low)
		dynamic->low += count;
	else
		dynamic->high -= count;
	check_table(dynamic);
}

static void
find_keys(Dynamic *dynamic, uint64_t inserted_so_far)
{
	BenchFind	find = {.count = dynamic->inserts};

	find.stream = bench_unique(dynamic->bench, 0, inserted_so_far, FIND_ORDER);
	find.stream.shape = BENCH_DRAWN;
	find.low = dynamic->low;
	find.high = dynamic->high;
	find.keys = dynamic->keys;
	find.values = dynamic->values;
	dynamic->find_seconds = 0;
	dynamic->right &= bench_find(dynamic->bench, dynamic->table, &find,
								 &dynamic->find_seconds);
}

/* A batch of the first phase, or the same batch in the second. */
static void
do_batch(Dynamic *dynamic, uint64_t b, bool forward)
{
	uint64_t	inserts = dynamic->inserts;
	uint64_t	deletes = dynamic->deletes;

	if (forward)
		insert_keys(dynamic, b * inserts, inserts);
	else
		insert_keys(dynamic, b * deletes, deletes);
	find_keys(dynamic, (b + 1) * inserts);
	if (forward)
		delete_keys(dynamic, b * deletes, deletes);
	else
		delete_keys(dynamic, b * inserts, inserts);
}

static void
print_line(Dynamic *dynamic, const char *phase, int batch, double operations, double fill,
		   const GhTableStats *stats)
{
	Bench	   *bench = dynamic->bench;
	double		seconds = dynamic->insert_seconds + dynamic->find_seconds +
		dynamic->delete_seconds;
	bool		right = dynamic->right && !bench->failed;

	printf("dynamic,%s,%u,%s,%.2f,%.2f,%.2f,%s,%d,%.4f,%.4f,%.4f,%.2f,%.4f,%" PRIu64 ",%" PRIu64 ",%s\n",
		   bench->lib, bench->key_size * 8, dynamic->vary, dynamic->r, dynamic->alpha, bench->load, phase, batch,
		   dynamic->insert_seconds * 1e3, dynamic->find_seconds * 1e3,
		   dynamic->delete_seconds * 1e3, seconds > 0 ? operations / seconds * 1e-6 : 0,
		   fill, stats->upsizes, stats->downsizes, right ? "yes" : "no");
	bench->wrong |= !right;
}

/* Both phases on a new table; a line for each batch where wanted, and the sum. */
static void
do_phases(Dynamic *dynamic, bool each_batch)
{
	Bench	   *bench = dynamic->bench;
	double		operations = 2.0 * (double) dynamic->inserts + (double) dynamic->deletes;
	double		insert_seconds = 0;
	double		find_seconds = 0;
	double		delete_seconds = 0;
	double		fill = 0;
	GhTableStats stats = bench_stats(bench, dynamic->table);
	int			step;

	dynamic->slots_empty = bench_slots(&stats);
	dynamic->low = dynamic->high = 0;
	dynamic->right = true;
	for (step = 0; step < 2 * BATCHES && !bench->failed; step++)
	{
		bool		forward = step < BATCHES;
		int			b = forward ? step : 2 * BATCHES - 1 - step;

		do_batch(dynamic, (uint64_t) b, forward);
		stats = bench_stats(bench, dynamic->table);
		if (each_batch)
			print_line(dynamic, forward ? "forward" : "reverse", b, operations, stats.fill,
					   &stats);
		insert_seconds += dynamic->insert_seconds;
		find_seconds += dynamic->find_seconds;
		delete_seconds += dynamic->delete_seconds;
		fill += stats.fill / (2 * BATCHES);
	}
	dynamic->insert_seconds = insert_seconds;
	dynamic->find_seconds = find_seconds;
	dynamic->delete_seconds = delete_seconds;
	dynamic->right &= stats.keys == 0;
	print_line(dynamic, "total", 2 * BATCHES, 2 * BATCHES * operations, fill, &stats);
	fflush(stdout);
}

static void
do_setting(Dynamic *dynamic, const char *vary, double r, double alpha, double beta)
{
	Bench	   *bench = dynamic->bench;
	bool		each_batch = strcmp(vary, "none") == 0;
	GhTableOptions options;
	int			run;

	dynamic->vary = vary;
	dynamic->r = r;
	dynamic->alpha = alpha;
	dynamic->deletes = (uint64_t) (r * (double) dynamic->inserts) / 16 * 16;
	bench->load = beta;
	bench->failed = false;
	options = bench_options(bench, 0);
	options.fill_min = alpha;
	/* the first one warms up: it is printed under another name */
	for (run = each_batch ? 0 : 1; run < 2; run++)
	{
		dynamic->vary = run == 0 ? "warmup" : vary;
		dynamic->table = bench_table(bench, &options);
		if (dynamic->table == NULL)
		{
			bench->wrong = true;
			return;
		}
		do_phases(dynamic, each_batch && run == 1);
		bench->engine->table_destroy(dynamic->table);
	}
}

void
bench_experiment_dynamic(Bench *bench)
{
	static const double rs[] = {0.1, 0.2, 0.3, 0.4, 0.5};
	static const double alphas[] = {0.20, 0.25, 0.30, 0.35, 0.40};
	static const double betas[] = {0.70, 0.75, 0.80, 0.85, 0.90};
	Dynamic		dynamic = {.bench = bench};
	size_t		bytes;
	int			i;

	printf("experiment,lib,keybits,vary,r,alpha,beta,phase,batch,insert_ms,find_ms,delete_ms,"
		   "Mops,fill,upsizes,downsizes,ok\n");
	dynamic.inserts = (uint64_t) (bench->scale * 1e6) / 16 * 16;
	if (dynamic.inserts < 160)
		dynamic.inserts = 160;
	bytes = dynamic.inserts * bench->key_size;
	dynamic.keys = bench_alloc(bench, bytes);
	dynamic.values = bench_alloc(bench, bytes);
	do_setting(&dynamic, "none", DEFAULT_R, DEFAULT_ALPHA, DEFAULT_BETA);
	for (i = 0; i < 5; i++)
		do_setting(&dynamic, "r", rs[i], DEFAULT_ALPHA, DEFAULT_BETA);
	for (i = 0; i < 5; i++)
		do_setting(&dynamic, "alpha", DEFAULT_R, alphas[i], DEFAULT_BETA);
	for (i = 0; i < 5; i++)
		do_setting(&dynamic, "beta", DEFAULT_R, DEFAULT_ALPHA, betas[i]);
	bench->place.free(dynamic.keys);
	bench->place.free(dynamic.values);
}
