/*
 * engine_bench_run.c
 *		Tables, requests with their time, rows, and arrays in host memory.
 */
#include "../status_name.h"
#include "engine_bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---------------------------------------------------------- host memory */

static const GhEngine *host_engine;

static void *
host_alloc(size_t bytes)
{
	size_t		whole = (bytes + 4095) & ~(size_t) 4095;

	if (host_engine->buffer_alloc != NULL)
		return host_engine->buffer_alloc(0, whole);
	return aligned_alloc(4096, whole);
}

static void
host_free(void *memory)
{
	if (host_engine->buffer_alloc != NULL)
		host_engine->buffer_free(memory);
	else
		free(memory);
}

static void
host_fill(void *memory, int byte, size_t bytes)
{
	memset(memory, byte, bytes);
}

static void
host_copy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static uint64_t
host_run(const BenchJob *job, uint64_t count)
{
	uint64_t	sum = 0;
	uint64_t	i;

	for (i = 0; i < count; i++)
		sum += bench_element(job, i);
	return sum;
}

static void
host_sync(void)
{
}

/* Arrays in the host memory that the engine likes best. */
BenchPlace
bench_host_place(const GhEngine *engine)
{
	BenchPlace	place = {
		.alloc = host_alloc,
		.free = host_free,
		.fill = host_fill,
		.copy_in = host_copy,
		.run = host_run,
		.sync = host_sync
	};

	host_engine = engine;
	return place;
}

void
bench_die(const char *what, const char *why)
{
	fprintf(stderr, "engine_bench: %s: %s\n", what, why);
	exit(2);
}

void *
bench_alloc(const Bench *bench, size_t bytes)
{
	void	   *memory = bench->place.alloc(bytes > 0 ? bytes : 1);

	if (memory == NULL)
		bench_die("no memory for arrays", bench->place.on_device ? "device" : "host");
	return memory;
}

double
bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* ------------------------------------------------------- tables, requests */

static void *
table_memory_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

static GhRef
table_memory_alloc(void *ctx, size_t bytes)
{
	(void) ctx;
	return (uintptr_t) aligned_alloc(64, (bytes + 63) & ~(size_t) 63);
}

static void
table_memory_free(void *ctx, GhRef ref)
{
	(void) ctx;
	free((void *) (uintptr_t) ref);
}

void
bench_error(Bench *bench, const char *what, const GhError *error)
{
	fprintf(stderr, "engine_bench: %s, %s: %s\n", bench->lib, what, error->message);
	bench->failed = true;
}

GhTableOptions
bench_options(const Bench *bench, uint64_t capacity)
{
	GhTableOptions options = {0};

	options.key_size = bench->key_size;
	options.value_size = bench->key_size;
	options.capacity = capacity;
	options.fill_max = bench->load;
	options.seed = bench_mix64(bench->seed);
	return options;
}

GhTable *
bench_table(Bench *bench, const GhTableOptions *options)
{
	/* a worker of the service goes on after a table has gone */
	static const GhHost lasting = {0};
	static const GhHost host = {
		.alloc = table_memory_alloc,
		.free = table_memory_free,
		.address = table_memory_address,
		.lasting = &lasting
	};
	GhTable    *table = NULL;
	GhError		error = {0};

	if (bench->engine->table_create(&host, options, &table, &error) != GH_OK)
	{
		bench_error(bench, "table_create", &error);
		return NULL;
	}
	return table;
}

GhTableStats
bench_stats(Bench *bench, GhTable *table)
{
	GhTableStats stats = {0};
	GhError		error = {0};

	if (bench->engine->table_stats(table, &stats, &error) != GH_OK)
		bench_error(bench, "table_stats", &error);
	return stats;
}

uint64_t
bench_slots(const GhTableStats *stats)
{
	uint64_t	slots = 0;
	uint32_t	s;

	for (s = 0; s < stats->subtables; s++)
		slots += stats->subtable[s].slots;
	return slots;
}

void
bench_clear(Bench *bench, GhTable *table)
{
	GhError		error = {0};

	if (bench->engine->table_clear(table, &error) != GH_OK)
		bench_error(bench, "table_clear", &error);
}

static const void *
at_key(const void *array, uint64_t element, uint32_t size)
{
	return array != NULL ? (const char *) array + element * size : NULL;
}

/* The part of the request from key `at` on, with results of its own. */
static GhRequest
request_part(const Bench *bench, const GhRequest *whole, uint64_t at)
{
	GhRequest	part = {.op = whole->op, .absent = whole->absent};
	uint64_t	left = whole->count - at;
	uint32_t	size = bench->key_size;

	part.on_device = bench->place.on_device;
	part.offsets_out = whole->offsets_out;
	part.values_capacity = whole->values_capacity;
	part.count = left < bench->batch ? left : bench->batch;
	part.keys = at_key(whole->keys, at, size);
	part.values_in = at_key(whole->values_in, at, size);
	part.ops = at_key(whole->ops, at, 1);
	part.flags_out = (uint8_t *) at_key(whole->flags_out, at, 1);
	part.counts_out = (uint64_t *) at_key(whole->counts_out, at, 8);
	part.values_out = whole->op == GH_FIND_ALL ? whole->values_out :
		(void *) at_key(whole->values_out, at, size);
	return part;
}

/* A build and a find-all are one request each, whatever the batch. */
static bool
request_is_whole(const GhRequest *request)
{
	return request->op == GH_BUILD || request->op == GH_FIND_ALL;
}

double
bench_request(Bench *bench, GhTable *table, GhRequest *request)
{
	uint64_t	at = 0;
	double		seconds = 0;

	if (bench->failed)			/* the section is over */
		return 0;
	do
	{
		GhRequest	part = request_part(bench, request, at);
		double		begin;

		if (request_is_whole(request))
			part.count = request->count;
		bench->place.sync();
		begin = bench_now();
		request->status = bench->engine->submit(table, &part);
		if (request->status == GH_OK || request->status == GH_BUSY)
			request->status = bench->engine->wait(&part);
		seconds += bench_now() - begin;
		request->outcome.matched += part.outcome.matched;
		request->outcome.inserted += part.outcome.inserted;
		request->outcome.replaced += part.outcome.replaced;
		request->outcome.removed += part.outcome.removed;
		request->outcome.values_count += part.outcome.values_count;
		if (request->status != GH_OK)
		{
			bench_error(bench, gh_status_name(request->status), &part.error);
			return seconds;
		}
		at += part.count;
	} while (at < request->count);
	return seconds;
}

/* -------------------------------------------------------------------- rows */

void
bench_row_add(BenchRow *row, double seconds, bool right)
{
	if (row->runs == 0)
		row->right = true;
	row->right &= right;
	if (row->runs < BENCH_ROUNDS_MAX)
		row->seconds[row->runs++] = seconds;
}

static int
compare_seconds(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

/* The median of all rounds but the first, which warms up. */
double
bench_row_seconds(const BenchRow *row)
{
	double		sorted[BENCH_ROUNDS_MAX];
	int			runs = row->runs > 1 ? row->runs - 1 : row->runs;

	if (runs == 0)
		return 0;
	memcpy(sorted, row->seconds + (row->runs - runs), (size_t) runs * sizeof(double));
	qsort(sorted, (size_t) runs, sizeof(double), compare_seconds);
	return runs % 2 == 1 ? sorted[runs / 2] : (sorted[runs / 2 - 1] + sorted[runs / 2]) / 2;
}

void
bench_row_memory(BenchRow *row, const GhTableStats *stats)
{
	if (row->held > 0 || stats->values == 0)
		return;
	row->held = (double) stats->bytes / (double) stats->values;
	row->peak = (double) stats->bytes_peak / (double) stats->values;
}

void
bench_row_print(Bench *bench, const BenchRow *row)
{
	double		seconds = bench_row_seconds(row);
	double		rate = seconds > 0 && !bench->failed ? (double) row->n / seconds * 1e-6 : 0;
	double		roof = bench->roof[row->roof];
	bool		right = row->right && row->runs > 0 && !bench->failed;

	printf("%s,%s,%u,%" PRIu64 ",%.2f,%.2f,%s,", bench->lib, row->op, bench->key_size * 8,
		   row->n, bench->load, rate, right ? "yes" : "no");
	if (row->reads > 0)
		printf("%.3f", row->reads);
	printf(",");
	if (roof > 0 && rate > 0)
		printf("%.3f", row->roof == BENCH_ROOF_COPY ?
			   row->bytes / seconds * 1e-9 / roof : rate / roof);
	printf(",");
	if (row->fill > 0)
		printf("%.4f", row->fill);
	printf(",");
	if (row->held > 0)
		printf("%.3f,%.3f", row->held, row->peak);
	else
		printf(",");
	printf("\n");
	fflush(stdout);
	bench->wrong |= !right;
}

/* -------------------------------------------------------------------- data */

BenchStream
bench_unique(const Bench *bench, uint64_t first, uint64_t range, uint64_t order)
{
	BenchStream stream = {.shape = BENCH_UNIQUE};

	stream.key_size = bench->key_size;
	stream.seed = bench->seed;
	stream.first = first;
	stream.range = range;
	stream.order = order;
	return stream;
}

void
bench_make_keys(Bench *bench, const BenchStream *stream, uint64_t count, void *keys)
{
	BenchJob	job = {.kind = BENCH_MAKE_KEYS, .stream = *stream, .keys = keys};

	(void) bench->place.run(&job, count);
}

void
bench_make_pairs(Bench *bench, const BenchStream *stream, uint64_t count, uint64_t version,
				 void *keys, void *values)
{
	BenchJob	job = {.kind = BENCH_MAKE_PAIRS, .stream = *stream, .version = version};

	job.keys = keys;
	job.values = values;
	(void) bench->place.run(&job, count);
}

bool
bench_find(Bench *bench, GhTable *table, const BenchFind *find, double *seconds)
{
	BenchJob	job = {.kind = BENCH_COUNT_PRESENT, .stream = find->stream};
	GhRequest	request = {.op = GH_FIND, .absent = BENCH_ABSENT};
	uint64_t	present;

	bench_make_keys(bench, &find->stream, find->count, find->keys);
	job.low = find->low;
	job.high = find->high;
	job.version = find->version;
	present = bench->place.run(&job, find->count);

	/* what the engine leaves out shows */
	bench->place.fill(find->values, 0xA5, find->count * bench->key_size);
	request.count = find->count;
	request.keys = find->keys;
	request.values_out = find->values;
	*seconds += bench_request(bench, table, &request);

	job.kind = BENCH_CHECK_FOUND;
	job.values = find->values;
	return !bench->failed && request.outcome.matched == present &&
		bench->place.run(&job, find->count) == 0;
}

/* As many positions as there are of a part in the mix. */
static uint64_t
count_part(const Bench *bench, const BenchJob *job, BenchMixPart part, uint64_t count)
{
	BenchJob	counting = *job;

	counting.kind = BENCH_COUNT_MIX;
	counting.part = part;
	return bench->place.run(&counting, count);
}

/* Makes the batch, does it as one request and checks all that it returns. */
bool
bench_mixed(Bench *bench, GhTable *table, const BenchMixed *mixed, double *seconds)
{
	BenchJob	job = {.kind = BENCH_MAKE_MIX, .stream = mixed->stream, .mix = mixed->mix};
	GhRequest	request = {.op = GH_MIXED, .count = mixed->count, .absent = BENCH_ABSENT};
	uint64_t	before = bench_stats(bench, table).keys;

	job.keys = mixed->keys;
	job.values = mixed->values;
	job.bytes = mixed->ops;
	(void) bench->place.run(&job, mixed->count);
	bench->place.fill(mixed->found, 0xA5, mixed->count * bench->key_size);
	bench->place.fill(mixed->flags, 0xA5, mixed->count);

	request.keys = mixed->keys;
	request.values_in = mixed->values;
	request.ops = mixed->ops;
	request.values_out = mixed->found;
	request.flags_out = mixed->flags;
	*seconds += bench_request(bench, table, &request);

	job.kind = BENCH_CHECK_MIX;
	job.values = mixed->found;
	job.bytes = mixed->flags;
	return !bench->failed && bench->place.run(&job, mixed->count) == 0 &&
		request.outcome.inserted == count_part(bench, &job, BENCH_MIX_INSERT, mixed->count) &&
		request.outcome.removed == count_part(bench, &job, BENCH_MIX_DELETE, mixed->count) &&
		request.outcome.matched == count_part(bench, &job, BENCH_MIX_HIT, mixed->count) &&
		request.outcome.replaced == 0 &&
		bench_stats(bench, table).keys == before + request.outcome.inserted - request.outcome.removed;
}
