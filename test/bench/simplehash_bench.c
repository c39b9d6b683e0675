/*
 * simplehash_bench.c
 *		PostgreSQL's simplehash.h and the CPU engine on the data of engine_bench, by turns.
 *
 *	simplehash_bench [N [ROUNDS]]
 *
 * Random 8-byte keys with 8-byte values, one core: inserts into a table made for all of
 * them, and finds; simplehash's one by one, as the executor does them, the engine's in requests
 * of as many keys as a batch of a pipeline has, and in one request.  Prints engine_bench's CSV of
 * simplehash, whose load is the filled factor that it chose (its sizes are powers of two), and as
 * comments what the engine makes of each.  Rates are by processor time, so that other programs
 * disturb them less; each is the median of rounds in which both tables had their turn.
 *
 * Built with the server's headers and without the server: memory comes from malloc, as
 * a backend's does in the end (the CPU engine asks for huge pages, a backend does not),
 * and the error that simplehash can raise ends the program.
 */
#include "postgres.h"

/* a server built with assertions has them in its headers, a benchmark does without */
#undef Assert
#define Assert(condition) ((void) true)

/* in words that every server version's headers leave alone */
static void fail(const char *what,...) __attribute__((__noreturn__, __format__(__printf__, 1, 2)));

#undef elog
#define elog(level, ...) fail(__VA_ARGS__)

#define SH_PREFIX pairs
#define SH_ELEMENT_TYPE Pair
#define SH_KEY_TYPE uint64
#define SH_KEY key
#define SH_HASH_KEY(table, key) pair_hash(key)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_RAW_ALLOCATOR pair_alloc
#define SH_DEFINE
#define SH_DECLARE

typedef struct Pair
{
	uint64		key;
	uint64		value;
	uint32		status;
} Pair;

static inline void *
pair_alloc(size_t bytes)
{
	void	   *memory = calloc(1, bytes);

	if (memory == NULL)
		fail("no memory");
	return memory;
}

#undef pfree
#define pfree(memory) free(memory)

/* As good a hash as the executor's, and cheaper: the finalizer of murmurhash. */
static inline uint32
pair_hash(uint64 key)
{
	key = (key ^ (key >> 33)) * UINT64CONST(0xFF51AFD7ED558CCD);
	key = (key ^ (key >> 33)) * UINT64CONST(0xC4CEB9FE1A85EC53);
	return (uint32) (key ^ (key >> 33));
}

#include "lib/simplehash.h"

#include "engine_bench_jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* not the server's, which are in a library of its own */
#undef printf
#undef fprintf
#undef vfprintf
#undef qsort

#define ROUNDS_MAX 31
#define LOAD 0.8				/* engine_bench's for the CPU engine */
#define BATCH 1024				/* GH_VECTOR_ROWS */
#define QUERY_ORDER 11			/* engine_bench's */

enum
{
	OP_INSERT,
	OP_FIND_HIT,
	OP_FIND_MISS,
	OPS
};

static const char *const op_name[OPS] = {"insert", "find_hit", "find_miss"};

typedef struct Data
{
	uint64_t	n;
	uint64_t   *keys;
	uint64_t   *values;
	uint64_t   *hits;
	uint64_t   *misses;
	uint64_t   *found;
} Data;

static void
fail(const char *what,...)
{
	va_list		args;

	fprintf(stderr, "simplehash_bench: ");
	va_start(args, what);
	vfprintf(stderr, what, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static BenchStream
unique_stream(uint64_t first, uint64_t n, uint64_t order)
{
	BenchStream stream = {.shape = BENCH_UNIQUE, .key_size = 8, .seed = 1};

	stream.first = first;
	stream.range = n;
	stream.order = order;
	return stream;
}

static void
make_data(Data *data, uint64_t n)
{
	BenchStream stored = unique_stream(0, n, 0);
	BenchStream hits = unique_stream(0, n, QUERY_ORDER);
	BenchStream misses = unique_stream(BENCH_MISS_FIRST, n, QUERY_ORDER);
	uint64_t	i;

	data->n = n;
	data->keys = pair_alloc(n * sizeof(uint64_t));
	data->values = pair_alloc(n * sizeof(uint64_t));
	data->hits = pair_alloc(n * sizeof(uint64_t));
	data->misses = pair_alloc(n * sizeof(uint64_t));
	data->found = pair_alloc(n * sizeof(uint64_t));
	for (i = 0; i < n; i++)
	{
		data->keys[i] = bench_key(&stored, bench_index(&stored, i));
		data->values[i] = bench_value(&stored, bench_index(&stored, i), 0);
		data->hits[i] = bench_key(&hits, bench_index(&hits, i));
		data->misses[i] = bench_key(&misses, bench_index(&misses, i));
	}
}

static bool
insert_all(const Data *data, pairs_hash *table, double *seconds)
{
	double		begin = now();
	uint64_t	i;

	for (i = 0; i < data->n; i++)
	{
		bool		found;
		Pair	   *pair = pairs_insert(table, data->keys[i], &found);

		if (!found)
			pair->value = data->values[i];
	}
	*seconds = now() - begin;
	return table->members == data->n;
}

static double
find_all(const Data *data, pairs_hash *table, const uint64_t *keys)
{
	double		begin = now();
	uint64_t	i;

	for (i = 0; i < data->n; i++)
	{
		const Pair *pair = pairs_lookup(table, keys[i]);

		data->found[i] = pair != NULL ? pair->value : BENCH_ABSENT;
	}
	return now() - begin;
}

/* ------------------------------------------------------------- the engine */

static void *
engine_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

static GhRef
engine_alloc(void *ctx, size_t bytes)
{
	(void) ctx;
	return (uintptr_t) aligned_alloc(64, (bytes + 63) & ~(size_t) 63);
}

static void
engine_free(void *ctx, GhRef ref)
{
	(void) ctx;
	free((void *) (uintptr_t) ref);
}

static GhTable *
engine_table(uint64_t n)
{
	static const GhHost host = {.alloc = engine_alloc, .free = engine_free, .address = engine_address};
	GhTableOptions options = {.key_size = 8, .value_size = 8, .capacity = n, .fill_max = LOAD, .seed = 1};
	GhTable    *table = NULL;
	GhError		error = {0};

	if (gh_cpu_engine()->table_create(&host, &options, &table, &error) != GH_OK)
		fail("table_create: %s", error.message);
	return table;
}

static void
engine_clear(GhTable *table)
{
	GhError		error = {0};

	if (gh_cpu_engine()->table_clear(table, &error) != GH_OK)
		fail("table_clear: %s", error.message);
}

/* All keys, in requests of so many; returns the keys that were new or that were there. */
static uint64_t
engine_request(const Data *data, GhTable *table, GhOp op, const uint64_t *keys, uint64_t batch, double *seconds)
{
	const GhEngine *engine = gh_cpu_engine();
	double		begin = now();
	uint64_t	done = 0;
	uint64_t	i;

	for (i = 0; i < data->n; i += batch)
	{
		GhRequest	request = {.op = op, .count = data->n - i < batch ? data->n - i : batch, .keys = keys + i};

		request.absent = BENCH_ABSENT;
		if (op == GH_INSERT)
			request.values_in = data->values + i;
		else
			request.values_out = data->found + i;
		if (engine->submit(table, &request) != GH_BUSY || engine->wait(&request) != GH_OK)
			fail("request: %s", request.error.message);
		done += request.outcome.inserted + request.outcome.matched;
	}
	*seconds = now() - begin;
	return done;
}

static bool
found_right(const Data *data, bool hits)
{
	BenchJob	job = {.kind = BENCH_CHECK_FOUND};
	uint64_t	wrong = 0;
	uint64_t	i;

	job.stream = unique_stream(hits ? 0 : BENCH_MISS_FIRST, data->n, QUERY_ORDER);
	job.high = data->n;
	job.values = data->found;
	for (i = 0; i < data->n; i++)
		wrong += bench_element(&job, i);
	return wrong == 0;
}

static int
compare_seconds(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
median(double *seconds, int rounds)
{
	/* the first round warms up */
	qsort(seconds + 1, (size_t) rounds, sizeof(double), compare_seconds);
	return seconds[1 + rounds / 2];
}

typedef struct Times
{
	double		seconds[OPS][ROUNDS_MAX + 1];
	bool		right[OPS];
} Times;

static void
simplehash_round(const Data *data, pairs_hash *table, Times *times, int r)
{
	pairs_reset(table);
	times->right[OP_INSERT] &= insert_all(data, table, &times->seconds[OP_INSERT][r]);
	times->seconds[OP_FIND_HIT][r] = find_all(data, table, data->hits);
	times->right[OP_FIND_HIT] &= found_right(data, true);
	times->seconds[OP_FIND_MISS][r] = find_all(data, table, data->misses);
	times->right[OP_FIND_MISS] &= found_right(data, false);
}

static void
engine_round(const Data *data, GhTable *table, uint64_t batch, Times *times, int r)
{
	engine_clear(table);
	times->right[OP_INSERT] &= data->n ==
		engine_request(data, table, GH_INSERT, data->keys, batch, &times->seconds[OP_INSERT][r]);
	times->right[OP_FIND_HIT] &= data->n ==
		engine_request(data, table, GH_FIND, data->hits, batch, &times->seconds[OP_FIND_HIT][r]) &&
		found_right(data, true);
	times->right[OP_FIND_MISS] &= 0 ==
		engine_request(data, table, GH_FIND, data->misses, batch, &times->seconds[OP_FIND_MISS][r]) &&
		found_right(data, false);
}

int
main(int argc, char **argv)
{
	uint64_t	n = argc > 1 ? strtoull(argv[1], NULL, 0) : 10000000;
	int			rounds = argc > 2 ? atoi(argv[2]) : 3;
	static Times theirs = {.right = {true, true, true}};
	static Times whole = {.right = {true, true, true}};
	static Times batches = {.right = {true, true, true}};
	bool		right = true;
	double		load;
	Data		data;
	pairs_hash *table;
	GhTable    *ours;
	int			r;
	int			op;

	if (n < 1 || n >= BENCH_MISS_FIRST || rounds < 1 || rounds > ROUNDS_MAX)
		fail("usage: simplehash_bench [N [ROUNDS]]");
	make_data(&data, n);
	table = pairs_create((uint32) n, NULL);
	ours = engine_table(n);
	for (r = 0; r <= rounds; r++)
	{
		simplehash_round(&data, table, &theirs, r);
		engine_round(&data, ours, n, &whole, r);
		engine_round(&data, ours, BATCH, &batches, r);
	}
	load = (double) table->members / (double) table->size;
	pairs_destroy(table);
	gh_cpu_engine()->table_destroy(ours);
	printf("lib,op,keybits,n,load,Mops,ok,reads,ratio,fill,bytes,peak\n");
	for (op = 0; op < OPS; op++)
	{
		double		rate = (double) n / median(theirs.seconds[op], rounds) * 1e-6;
		double		in_one = (double) n / median(whole.seconds[op], rounds) * 1e-6;
		double		in_batches = (double) n / median(batches.seconds[op], rounds) * 1e-6;
		bool		engine_right = whole.right[op] && batches.right[op];

		printf("simplehash,%s,64,%" PRIu64 ",%.2f,%.2f,%s,,,%.4f,,\n", op_name[op], n, load, rate,
			   theirs.right[op] ? "yes" : "no", load);
		printf("# %s of gpuhash_cpu over simplehash, load %.1f%s: %.2f (%.2f Mops), in batches of %d %.2f (%.2f Mops)\n",
			   op_name[op], LOAD, engine_right ? "" : ", WRONG RESULTS", in_one / rate, in_one, BATCH,
			   in_batches / rate, in_batches);
		right &= theirs.right[op] && engine_right;
	}
	return right ? 0 : 1;
}
