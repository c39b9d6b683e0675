/*
 * scan_bench.c
 *		What a page of a scan takes: pages of three int8 columns, 157 rows each, in memory that
 *		the engine registers, which is where a server's buffers are for it.
 *
 *	scan_bench cpu | /path/gpuhash_cuda.so [options]	cpu: of tests alone, ../scans
 *		--pages N		of the table (default 65536: 512 MiB)
 *		--request N		pages of a request (default: 1024 and 4096)
 *		--flight N		requests that are under way at a time (default 2)
 *		--rounds N		scans of the table that are timed; their median is told (default 5)
 *		--only TEXT		jobs whose name contains TEXT
 *
 * Every result is compared with what was written to the pages.  Prints a line for each job;
 * the status is 1 where a result is wrong.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* MAP_ANONYMOUS */
#endif

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cpu_scan.h"
#include "engine/engine.h"
#include "engine/pipeline/scan_row.h"

#define PAGE_BYTES 8192
#define TUPLE_BYTES 48			/* a header of 24, three int8 */
#define PAGE_ROWS ((PAGE_BYTES - GH_PAGE_LINES_AT) / (GH_LINE_BYTES + TUPLE_BYTES))
#define FEW_GROUPS 1000
#define MANY_GROUPS (1 << 20)
#define BOUND 500000			/* of the condition, on values below a million */
#define ROUNDS_MAX 100
#define FLIGHT_MAX 16
#define ROW_VALUES 5
#define RECORDS_BYTES (1 << 20)
#define ROWS_BYTES (8 << 20)	/* of a buffer of records of rows */

/* Columns of the table, which are the vectors of the programs, too. */
enum column
{
	COLUMN_KEY,					/* below MANY_GROUPS */
	COLUMN_A,					/* below a million */
	COLUMN_B,					/* any */
	COLUMNS
};

typedef struct Job
{
	const char *name;
	const char *what;
	uint32_t	ncolumns;		/* that the program has */
	uint32_t	groups;			/* 0: no key; else the key is taken modulo so many */
	uint32_t	below;			/* not 0: a condition, a < that */
	uint32_t	naggregates;		/* 0: rows of five values are returned */
	GhAggregate aggregates[8];
} Job;

#define ALL GH_AGGREGATE_NO_FILTER
#define COUNT_ROWS {GH_AGGREGATE_COUNT_ROWS, 0, 0, ALL, 0}
#define OF(kind, column) {kind, GH_CLASS_INT, column, ALL, 0}
#define SUM(column) OF(GH_AGGREGATE_SUM, column)

static const Job jobs[] = {
	{"count", "count(*)", 0, 0, 0, 1, {COUNT_ROWS}},
	{"sum", "sum(b)", COLUMNS, 0, 0, 1, {SUM(COLUMN_B)}},
	{"groups", "sum(a), sum(b) in 1000 groups", COLUMNS, FEW_GROUPS, 0, 2,
	{SUM(COLUMN_A), SUM(COLUMN_B)}},
	{"condition", "sum(b) where a < x, true of half", COLUMNS, 0, BOUND, 1, {SUM(COLUMN_B)}},
	{"eight", "eight aggregates, a condition, 4 groups", COLUMNS, 4, BOUND, 8,
		{COUNT_ROWS, SUM(COLUMN_A), SUM(COLUMN_B), OF(GH_AGGREGATE_MIN, COLUMN_A),
			OF(GH_AGGREGATE_MAX, COLUMN_A), OF(GH_AGGREGATE_MIN, COLUMN_B),
		OF(GH_AGGREGATE_MAX, COLUMN_B), OF(GH_AGGREGATE_COUNT, COLUMN_A)}},
	{"many", "sum(b) in 2^20 groups", COLUMNS, MANY_GROUPS, 0, 1, {SUM(COLUMN_B)}},
	{"few rows", "rows of five values, one of 100", COLUMNS, 0, BOUND / 50, 0, {COUNT_ROWS}},
	{"all rows", "rows of five values, all", COLUMNS, 0, 0, 0, {COUNT_ROWS}}
};

typedef struct Bench
{
	const GhEngine *engine;
	uint8_t    *memory;
	uint32_t	npages;
	uint32_t	request;		/* pages; 0: the default ones */
	uint32_t	flight;
	uint32_t	rounds;
	const char *only;
	bool		registered;
	bool		wrong;
} Bench;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "scan_bench: %s: %s\n", what, why);
	exit(2);
}

static void *
make_memory(size_t bytes)
{
	void	   *memory = calloc(1, bytes > 0 ? bytes : 1);

	if (memory == NULL)
		fail("memory", "there is none");
	return memory;
}

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static GhRef
host_alloc(void *ctx, size_t bytes)
{
	void	   *memory;

	(void) ctx;
	return posix_memalign(&memory, 64, bytes) == 0 ? (GhRef) (uintptr_t) memory : 0;
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

/* ---------------------------------------------------------------------- the table */

static int64_t
column_value(uint64_t row, enum column column)
{
	uint64_t	word = gh_scan_mix((row + 1) * UINT64_C(0x9E3779B97F4A7C15) + column);

	if (column == COLUMN_B)
		return (int64_t) word;
	return (int64_t) (word % (column == COLUMN_KEY ? MANY_GROUPS : 2 * BOUND));
}

static void
write_page(uint8_t *page, uint64_t first)
{
	const uint16_t version = PAGE_BYTES | GH_PAGE_VERSION;
	const uint16_t lower = GH_PAGE_LINES_AT + PAGE_ROWS * GH_LINE_BYTES;
	const uint16_t natts = COLUMNS;

	memset(page, 0, PAGE_BYTES);
	memcpy(page + GH_PAGE_LOWER_AT, &lower, 2);
	memcpy(page + GH_PAGE_VERSION_AT, &version, 2);
	for (uint32_t r = 0; r < PAGE_ROWS; r++)
	{
		uint32_t	at = PAGE_BYTES - (r + 1) * TUPLE_BYTES;
		uint32_t	line = at | GH_LINE_NORMAL << GH_LINE_OFFSET_BITS |
			(uint32_t) TUPLE_BYTES << (GH_LINE_OFFSET_BITS + GH_LINE_STATE_BITS);

		memcpy(page + GH_PAGE_LINES_AT + r * GH_LINE_BYTES, &line, 4);
		memcpy(page + at + GH_TUPLE_INFOMASK2_AT, &natts, 2);
		page[at + GH_TUPLE_HOFF_AT] = 24;
		for (int c = 0; c < COLUMNS; c++)
		{
			int64_t		value = column_value(first + r, (enum column) c);

			memcpy(page + at + 24 + 8 * c, &value, 8);
		}
	}
}

static void
make_table(Bench *bench)
{
	size_t		bytes = (size_t) bench->npages * PAGE_BYTES;
	GhError		error;

	bench->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bench->memory == MAP_FAILED)
		fail("the table", "no memory");
	for (uint32_t p = 0; p < bench->npages; p++)
		write_page(bench->memory + (size_t) p * PAGE_BYTES, (uint64_t) p * PAGE_ROWS);
	bench->registered = bench->engine->memory_register != NULL;
	if (bench->registered &&
		bench->engine->memory_register(0, bench->memory, bytes, true, &error) != GH_OK)
		fail("memory_register", error.message);
}

/* -------------------------------------------------------------------- the program */

/*
 * Columns 0 to 2; then constants: how many groups less one, the bound; then temporaries: the
 * key, and what is to be true.
 */
enum vector
{
	VECTOR_MASK = COLUMNS,
	VECTOR_BOUND,
	VECTOR_KEY,
	VECTOR_TRUTH
};

static GhProgram *
make_program(const Job *job, size_t *bytes)
{
	uint32_t	ninstructions = (job->groups > 0) + 2 * (job->below > 0);
	uint32_t	nconstants = job->ncolumns > 0 ? 2 : 0;
	GhProgram  *program;
	GhConstant *constants;
	GhInstruction *in;
	GhColumn   *columns;

	*bytes = sizeof(GhProgram) + nconstants * sizeof(GhConstant) +
		ninstructions * sizeof(GhInstruction) + job->ncolumns * sizeof(GhColumn);
	program = make_memory(*bytes + 16);
	program->magic = GH_PROGRAM_MAGIC;
	program->bytes = (uint32_t) *bytes;
	program->nconstants = nconstants;
	program->ninstructions = ninstructions;
	program->ncolumns = job->ncolumns;
	program->ntemporaries = ninstructions > 0 ? 2 : 0;
	constants = (GhConstant *) gh_program_constants(program);
	for (uint32_t i = 0; i < nconstants; i++)
		constants[i].value_class = GH_CLASS_INT;
	if (nconstants > 0)
	{
		constants[0].low = job->groups;
		constants[1].low = job->below;
	}
	in = (GhInstruction *) gh_program_instructions(program);
	if (job->below > 0)
	{
		*in++ = (GhInstruction) {GH_OP_LT, GH_CLASS_INT, 0, VECTOR_TRUTH,
		{COLUMN_A, VECTOR_BOUND, 0}, 0};
		*in++ = (GhInstruction) {GH_OP_FILTER, GH_CLASS_BOOL, 0, 0, {VECTOR_TRUTH, 0, 0}, 0};
	}
	if (job->groups > 0)
		*in++ = (GhInstruction) {GH_OP_MOD, GH_CLASS_INT, 8, VECTOR_KEY,
		{COLUMN_KEY, VECTOR_MASK, 0}, 0};
	columns = (GhColumn *) gh_program_columns(program);
	for (uint32_t i = 0; i < job->ncolumns; i++)
	{
		columns[i].attribute = (uint16_t) (i + 1);
		columns[i].load = GH_LOAD_INT8;
	}
	return program;
}

/* ----------------------------------------------------------------- what is expected */

static uint64_t
job_group(const Job *job, uint64_t row)
{
	return job->groups == 0 ? 0 : (uint64_t) column_value(row, COLUMN_KEY) % job->groups;
}

/* The states of all groups, when the table is scanned once. */
static GhAggregateState *
expected_states(const Bench *bench, const Job *job)
{
	uint32_t	n = job->naggregates;
	GhAggregateState *states = make_memory((job->groups + 1) * n * sizeof(GhAggregateState));

	for (uint64_t row = 0; row < (uint64_t) bench->npages * PAGE_ROWS; row++)
	{
		GhAggregateState *group = states + job_group(job, row) * n;

		if (job->below > 0 && column_value(row, COLUMN_A) >= job->below)
			continue;
		for (uint32_t a = 0; a < n; a++)
		{
			uint64_t	value = (uint64_t) column_value(row, (enum column) job->aggregates[a].argument);

			(void) gh_aggregate_add(&job->aggregates[a], &group[a],
									job->aggregates[a].kind <= GH_AGGREGATE_COUNT ? 0 : value, 0);
		}
	}
	return states;
}

static bool
right_record(const Job *job, const GhScanGroup *record, const GhAggregateState *expected,
			 uint32_t times)
{
	const GhScanValue *keys = gh_scan_keys(record);
	uint32_t	nkeys = job->groups > 0;
	uint64_t	group = nkeys > 0 ? keys[0].low : 0;
	const GhAggregateState *states = (const GhAggregateState *) (keys + nkeys);

	if (group > job->groups)
		return false;
	for (uint32_t a = 0; a < job->naggregates; a++)
	{
		GhAggregateState state = {0};

		for (uint32_t i = 0; i < times; i++)
			(void) gh_aggregate_merge(&job->aggregates[a], &state, &expected[group * job->naggregates + a]);
		if (memcmp(&states[a], &state, sizeof(state)) != 0)
			return false;
	}
	return true;
}

/* Is every group what it has to be after so many scans, and none missing? */
static bool
right_results(const Bench *bench, const Job *job, GhScan *scan, const GhAggregateState *expected,
			  uint32_t times)
{
	uint64_t   *buffer = make_memory(RECORDS_BYTES);
	GhCursor	cursor = {0};
	GhError		error;
	uint64_t	missing = 0;
	bool		right = true;

	for (uint64_t g = 0; g < (job->groups > 0 ? job->groups : 1); g++)
		missing += expected[g * job->naggregates].count > 0;
	while (!cursor.finished)
	{
		size_t		bytes;

		if (bench->engine->scans->results(scan, &cursor, RECORDS_BYTES, buffer, &bytes, &error) != GH_OK)
			fail("results", error.message);
		for (size_t at = 0; at < bytes; missing--)
		{
			const GhScanGroup *record = (const GhScanGroup *) ((char *) buffer + at);

			right &= right_record(job, record, expected, times);
			at += record->bytes;
		}
	}
	free(buffer);
	return right && missing == 0;
}

/* ----------------------------------------------------------------------- the scan */

static GhScan *
make_scan(const Bench *bench, const Job *job)
{
	static const GhPageAttribute attributes[COLUMNS] = {{8, 8}, {8, 8}, {8, 8}};
	static const GhHost host = {.alloc = host_alloc,.free = host_free,.address = host_address};
	static const GhScanKey key = {VECTOR_KEY, GH_CLASS_INT, 0};
	static const GhScanKey values[ROW_VALUES] = {
		{COLUMN_KEY, GH_CLASS_INT, 0}, {COLUMN_A, GH_CLASS_INT, 0}, {COLUMN_B, GH_CLASS_INT, 0},
	{COLUMN_A, GH_CLASS_INT, 0}, {COLUMN_B, GH_CLASS_INT, 0}};
	GhScanOptions options = {0};
	GhProgram  *program = make_program(job, &options.program_bytes);
	GhError		error;
	GhScan	   *scan;

	options.program = program;
	options.page_bytes = PAGE_BYTES;
	options.natts = COLUMNS;
	options.attributes = attributes;
	options.nkeys = job->groups > 0;
	options.keys = &key;
	if (job->naggregates == 0)
	{
		options.each_row = 1;
		options.nkeys = ROW_VALUES;
		options.keys = values;
	}
	options.naggregates = job->naggregates;
	options.aggregates = job->aggregates;
	options.seed = 1;
	if (bench->engine->scans->create(&host, &options, &scan, &error) != GH_OK)
		fail("create", error.message);
	free(program);
	return scan;
}

static void
wait_for(const Bench *bench, GhScanRequest *request)
{
	if (bench->engine->scans->wait(request) != GH_OK)
		fail("wait", request->error.message);
	if (request->nback != 0)
		fail("wait", "rows were handed back");
}

/* Scans the table once, so many pages a request; returns the seconds. */
static double
scan_table(const Bench *bench, GhScan *scan, const GhScanPage *pages, uint32_t cut, GhScanRow *back)
{
	GhScanRequest requests[FLIGHT_MAX];
	uint32_t	count = (bench->npages + cut - 1) / cut;
	double		begin = seconds_now();

	for (uint32_t r = 0; r < count + bench->flight; r++)
	{
		GhScanRequest *request = &requests[r % bench->flight];

		if (r >= bench->flight)
			wait_for(bench, request);
		if (r >= count)
			continue;
		memset(request, 0, sizeof(*request));
		request->npages = r + 1 < count ? cut : bench->npages - r * cut;
		request->readable = bench->registered;
		request->pages = pages + (size_t) r * cut;
		request->back = back;
		request->back_room = (uint64_t) cut * PAGE_ROWS;
		(void) bench->engine->scans->submit(scan, request);
	}
	return seconds_now() - begin;
}

static int
compare_seconds(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

/* All of the table's pages, with all of their rows. */
static GhScanPage *
list_pages(const Bench *bench)
{
	GhScanPage *pages = make_memory(bench->npages * sizeof(GhScanPage));

	for (uint32_t p = 0; p < bench->npages; p++)
	{
		pages[p].page = bench->memory + (size_t) p * PAGE_BYTES;
		pages[p].lines = PAGE_ROWS;
		pages[p].bitmap = GH_SCAN_ALL;
		pages[p].hinted = 0;
	}
	return pages;
}

/* ------------------------------------------------------------------------- rows */

/* Rows in any order: their number, and a sum of hashes. */
typedef struct RowSum
{
	uint64_t	rows;
	uint64_t	hash;
} RowSum;

static void
add_row(RowSum *sum, int64_t key, int64_t a, int64_t b)
{
	sum->rows++;
	sum->hash += gh_scan_mix((uint64_t) key + gh_scan_mix((uint64_t) a + gh_scan_mix((uint64_t) b)));
}

static RowSum
expected_rows(const Bench *bench, const Job *job)
{
	RowSum		sum = {0, 0};

	for (uint64_t row = 0; row < (uint64_t) bench->npages * PAGE_ROWS; row++)
		if (job->below == 0 || column_value(row, COLUMN_A) < job->below)
			add_row(&sum, column_value(row, COLUMN_KEY), column_value(row, COLUMN_A),
					column_value(row, COLUMN_B));
	return sum;
}

/* Fetches all rows of a scan; returns the seconds, without those that looking at them takes. */
static double
fetch_rows(const Bench *bench, GhScan *scan, char *buffer, RowSum *sum, uint64_t *all_bytes)
{
	GhCursor	cursor = {0};
	GhError		error;
	double		seconds = 0;

	*sum = (RowSum) {0, 0};
	*all_bytes = 0;
	while (!cursor.finished)
	{
		double		begin = seconds_now();
		size_t		bytes;

		if (bench->engine->scans->results(scan, &cursor, ROWS_BYTES, buffer, &bytes, &error) != GH_OK)
			fail("results", error.message);
		seconds += seconds_now() - begin;
		*all_bytes += bytes;
		for (size_t at = 0; at < bytes;)
		{
			const GhScanGroup *record = (const GhScanGroup *) (buffer + at);
			const GhScanValue *values = gh_scan_keys(record);

			if (record->rows != 1 || record->nulls != 0 || values[3].low != values[1].low ||
				values[4].low != values[2].low)
				fail("results", "a row is wrong");
			add_row(sum, (int64_t) values[0].low, (int64_t) values[1].low, (int64_t) values[2].low);
			at += record->bytes;
		}
	}
	return seconds;
}

/* Each round is a scan of its own, as rows come on top of those that are there. */
static void
run_rows(Bench *bench, const Job *job, RowSum expected, uint32_t cut)
{
	GhScanPage *pages = list_pages(bench);
	GhScanRow  *back = make_memory((size_t) cut * PAGE_ROWS * sizeof(GhScanRow));
	char	   *buffer = mmap(NULL, ROWS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double		seconds[ROUNDS_MAX];
	double		fetching[ROUNDS_MAX];
	uint64_t	bytes = 0;
	GhError		error;
	bool		right = true;
	double		page;

	if (buffer == MAP_FAILED ||
		(bench->registered &&
		 bench->engine->memory_register(0, buffer, ROWS_BYTES, false, &error) != GH_OK))
		fail("a buffer of rows", "no memory");
	for (uint32_t i = 0; i < bench->rounds; i++)
	{
		GhScan	   *scan = make_scan(bench, job);
		RowSum		sum;

		seconds[i] = scan_table(bench, scan, pages, cut, back);
		fetching[i] = fetch_rows(bench, scan, buffer, &sum, &bytes);
		right &= sum.rows == expected.rows && sum.hash == expected.hash;
		bench->engine->scans->destroy(scan);
	}
	qsort(seconds, bench->rounds, sizeof(double), compare_seconds);
	qsort(fetching, bench->rounds, sizeof(double), compare_seconds);
	page = seconds[bench->rounds / 2] / bench->npages;
	bench->wrong |= !right;
	printf("%-10s %5u pages a request  %7.1f ns a page  %6.2f GB/s  records: %.0f MB, %6.2f GB/s  %s\n",
		   job->name, cut, page * 1e9, PAGE_BYTES / page * 1e-9, (double) bytes * 1e-6,
		   (double) bytes * 1e-9 / fetching[bench->rounds / 2], right ? "right" : "WRONG");
	fflush(stdout);
	if (bench->registered)
		bench->engine->memory_unregister(0, buffer);
	munmap(buffer, ROWS_BYTES);
	free(back);
	free(pages);
}

/* ----------------------------------------------------------------------- groups */

static void
run_job(Bench *bench, const Job *job, const GhAggregateState *expected, uint32_t cut)
{
	GhScanPage *pages = list_pages(bench);
	GhScanRow  *back = make_memory((size_t) cut * PAGE_ROWS * sizeof(GhScanRow));
	GhScan	   *scan = make_scan(bench, job);
	double		seconds[ROUNDS_MAX];
	double		page;
	bool		right;

	/* the first one finds the memory and the groups */
	(void) scan_table(bench, scan, pages, cut, back);
	for (uint32_t i = 0; i < bench->rounds; i++)
		seconds[i] = scan_table(bench, scan, pages, cut, back);
	qsort(seconds, bench->rounds, sizeof(double), compare_seconds);
	page = seconds[bench->rounds / 2] / bench->npages;
	right = right_results(bench, job, scan, expected, bench->rounds + 1);
	bench->wrong |= !right;
	printf("%-10s %5u pages a request  %7.1f ns a page  %6.2f GB/s  (%.2f to %.2f)  %s\n", job->name, cut,
		   page * 1e9, PAGE_BYTES / page * 1e-9, PAGE_BYTES * 1e-9 * bench->npages / seconds[bench->rounds - 1],
		   PAGE_BYTES * 1e-9 * bench->npages / seconds[0], right ? "right" : "WRONG");
	fflush(stdout);
	bench->engine->scans->destroy(scan);
	free(back);
	free(pages);
}

/* ------------------------------------------------------------------------ options */

static uint32_t
number_of(const char *text, uint32_t most)
{
	char	   *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*end != 0 || number < 1 || number > most)
		fail(text, "no number that it could be");
	return (uint32_t) number;
}

static void
read_options(Bench *bench, int argc, char **argv)
{
	for (int a = 2; a < argc; a += 2)
	{
		if (a + 1 == argc)
			fail(argv[a], "no value");
		if (strcmp(argv[a], "--pages") == 0)
			bench->npages = number_of(argv[a + 1], 1 << 24);
		else if (strcmp(argv[a], "--request") == 0)
			bench->request = number_of(argv[a + 1], GH_SCAN_PAGES_MAX);
		else if (strcmp(argv[a], "--flight") == 0)
			bench->flight = number_of(argv[a + 1], FLIGHT_MAX);
		else if (strcmp(argv[a], "--rounds") == 0)
			bench->rounds = number_of(argv[a + 1], ROUNDS_MAX);
		else if (strcmp(argv[a], "--only") == 0)
			bench->only = argv[a + 1];
		else
			fail(argv[a], "no option");
	}
}

static void
open_engine(Bench *bench, const char *name)
{
	GhError		error;
	GhStatus	status = GH_OK;

	if (strcmp(name, "cpu") == 0)
		bench->engine = gh_cpu_engine_with_scans();
	else
		status = gh_engine_load(name, false, &bench->engine, &error);
	if (status == GH_OK)
		status = bench->engine->open_device(0, &error);
	if (status != GH_OK)
		fail(name, error.message);
	if (bench->engine->scans == NULL)
		fail(name, "it does no scans");
}

static void
do_job(Bench *bench, const Job *job)
{
	static const uint32_t cuts[] = {1024, 4096};
	bool		rows = job->naggregates == 0;
	GhAggregateState *states = rows ? NULL : expected_states(bench, job);
	RowSum		sum = {0, 0};

	if (rows)
		sum = expected_rows(bench, job);
	for (int i = 0; i < (bench->request != 0 ? 1 : 2); i++)
	{
		uint32_t	cut = bench->request != 0 ? bench->request : cuts[i];

		if (rows)
			run_rows(bench, job, sum, cut);
		else
			run_job(bench, job, states, cut);
	}
	free(states);
}

int
main(int argc, char **argv)
{
	Bench		bench = {0};

	if (argc < 2)
		fail("usage", "scan_bench cpu | /path/gpuhash_cuda.so [--pages N] [--request N] [--flight N] "
			 "[--rounds N] [--only TEXT]");
	bench.npages = 65536;
	bench.flight = 2;
	bench.rounds = 5;
	read_options(&bench, argc, argv);
	open_engine(&bench, argv[1]);
	make_table(&bench);
	for (size_t j = 0; j < sizeof(jobs) / sizeof(jobs[0]); j++)
	{
		if (bench.only != NULL && strstr(jobs[j].name, bench.only) == NULL)
			continue;
		printf("%s: %s\n", jobs[j].name, jobs[j].what);
		do_job(&bench, &jobs[j]);
	}
	if (bench.registered)
		bench.engine->memory_unregister(0, bench.memory);
	return bench.wrong ? 1 : 0;
}
