/*
 * simplehash_bench.c
 *		PostgreSQL's simplehash.h on the data of engine_bench, to compare the CPU
 *		engine with in the same run.
 *
 *	simplehash_bench [N [ROUNDS]]
 *
 * Random 8-byte keys with 8-byte values, one core: inserts into a table made for all of
 * them, and finds one by one, as the executor does them.  Prints engine_bench's CSV;
 * load is the filled factor that simplehash chose: its sizes are powers of two.
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

	clock_gettime(CLOCK_MONOTONIC, &time);
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

int
main(int argc, char **argv)
{
	uint64_t	n = argc > 1 ? strtoull(argv[1], NULL, 0) : 10000000;
	int			rounds = argc > 2 ? atoi(argv[2]) : 3;
	double		seconds[OPS][ROUNDS_MAX + 1];
	bool		right[OPS] = {true, true, true};
	double		load;
	Data		data;
	pairs_hash *table;
	int			r;
	int			op;

	if (n < 1 || n >= BENCH_MISS_FIRST || rounds < 1 || rounds > ROUNDS_MAX)
		fail("usage: simplehash_bench [N [ROUNDS]]");
	make_data(&data, n);
	table = pairs_create((uint32) n, NULL);
	for (r = 0; r <= rounds; r++)
	{
		pairs_reset(table);
		right[OP_INSERT] &= insert_all(&data, table, &seconds[OP_INSERT][r]);
		seconds[OP_FIND_HIT][r] = find_all(&data, table, data.hits);
		right[OP_FIND_HIT] &= found_right(&data, true);
		seconds[OP_FIND_MISS][r] = find_all(&data, table, data.misses);
		right[OP_FIND_MISS] &= found_right(&data, false);
	}
	load = (double) table->members / (double) table->size;
	pairs_destroy(table);
	printf("lib,op,keybits,n,load,Mops,ok,reads,ratio,fill,bytes,peak\n");
	for (op = 0; op < OPS; op++)
	{
		/* the first round warms up */
		qsort(seconds[op] + 1, (size_t) rounds, sizeof(double), compare_seconds);
		printf("simplehash,%s,64,%" PRIu64 ",%.2f,%.2f,%s,,,%.4f,,\n", op_name[op], n, load,
			   (double) n / seconds[op][1 + rounds / 2] * 1e-6, right[op] ? "yes" : "no", load);
	}
	return right[OP_INSERT] && right[OP_FIND_HIT] && right[OP_FIND_MISS] ? 0 : 1;
}
