/*
 * pipeline_bench.c
 *		What a row costs in pipelines: pages of three int8 columns, 157 rows each; with the CPU engine a page a
 *		request, as a node of one process brings them.
 *
 *	pipeline_bench [--cuda FILE] [--pages N] [--request N] [--rounds N] [--job N] [--resident 1]
 *		--cuda FILE		the CUDA engine's library, in place of the CPU engine
 *		--pages N		of the table (default 16384: 128 MiB)
 *		--request N		pages of a request (default 1; with CUDA 4096)
 *		--rounds N		runs of each job; the least time is told (default 3)
 *		--job N			this one alone, from 1 (default 0: all)
 *		--resident 1	with CUDA: pages are on the device, in spans, and requests name runs of them, 20,000 pages each by
 *						default, which are all submitted before the first is waited for
 *
 * Times are of the processor in user mode, with CUDA those that pass, in nanoseconds a row.  Pages are registered where the
 * engine can do that.  Results are compared with what was written to
 * the pages; the status is 1 where one is wrong.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "engine/engine.h"
#include "engine/pipeline/pipeline.h"
#include "engine/pipeline/record_row.h"

#define PAGE_BYTES 8192
#define SPAN_PAGES 32768
#define TUPLE_BYTES 48			/* a header of 24, three int8 */
#define PAGE_ROWS ((PAGE_BYTES - GH_PAGE_LINES_AT) / (GH_LINE_BYTES + TUPLE_BYTES))
#ifndef KEYS
#define KEYS (1 << 20)
#endif
#define BOUND 500				/* of the condition, on values below a thousand */

enum column
{
	COLUMN_KEY,					/* below KEYS */
	COLUMN_A,					/* below a thousand */
	COLUMN_B,					/* any */
	COLUMN_INNER,				/* joins: what a probe fills */
	COLUMNS
};

typedef struct Job
{
	const char *what;
	uint64_t	below;			/* not 0: a condition, a < that */
	uint32_t	groups;			/* 0: one; else so many, by */
	bool		by_column;		/* a column; else by the key modulo that */
	uint32_t	copies;			/* not 0: joined by the key with a table that has it so many times */
	uint32_t	nkept;			/* values of its rows */
	uint16_t	summed;			/* a column; COLUMNS: count(*) */
	uint32_t	participants;	/* that fill the table together, each in a thread; 0: it is of one process */
} Job;

#define PARTICIPANTS_MAX 2

static const Job jobs[] = {
	{"count(*)", 0, 0, false, 0, 0, COLUMNS, 0},
	{"sum(b)", 0, 0, false, 0, 0, COLUMN_B, 0},
	{"sum(b) where a < x, true of half", BOUND, 0, false, 0, 0, COLUMN_B, 0},
	{"sum(b) in 1000 groups", 0, 1000, false, 0, 0, COLUMN_B, 0},
	{"sum(b) in 2^20 groups", 0, KEYS, false, 0, 0, COLUMN_B, 0},
	{"sum(b) in 1000 groups by a column", 0, 2 * BOUND, true, 0, 0, COLUMN_B, 0},
	{"sum of a joined column, carried by the table", 0, 0, false, 1, 1, COLUMN_INNER, 0},
	{"  in 1000 groups", 0, 1000, false, 1, 1, COLUMN_INNER, 0},
	{"  in 1000 groups by a column", 0, 2 * BOUND, true, 1, 1, COLUMN_INNER, 0},
	{"  shared by 1 participant", 0, 0, false, 1, 1, COLUMN_INNER, 1},
	{"  shared by 2", 0, 0, false, 1, 1, COLUMN_INNER, 2},
	{"sum of a joined column, in rows", 0, 0, false, 1, 2, COLUMN_INNER, 0},
	{"  shared by 1 participant", 0, 0, false, 1, 2, COLUMN_INNER, 1},
	{"  shared by 2", 0, 0, false, 1, 2, COLUMN_INNER, 2},
	{"sum of a joined column, two rows a key", 0, 0, false, 2, 2, COLUMN_INNER, 0},
	{"  shared by 1 participant", 0, 0, false, 2, 2, COLUMN_INNER, 1},
	{"  shared by 2", 0, 0, false, 2, 2, COLUMN_INNER, 2}
};

typedef struct Bench
{
	const GhPipelineEngine *engine;
	bool		on_device;
	uint32_t	npages;
	uint32_t	each;			/* pages of a request */
	bool		readable;
	uint8_t    *memory;
	uint32_t	rounds;
	uint32_t	job;			/* from 1; 0: all */
	uint32_t	resident;		/* not 0: pages are in spans */
	uint32_t	nspans;
	GhPageSpan **spans;			/* each of SPAN_PAGES */
	bool		wrong;
} Bench;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "pipeline_bench: %s: %s\n", what, why);
	exit(2);
}

static void *
make_memory(size_t bytes)
{
	void	   *memory = aligned_alloc(64, (bytes + 63) & ~(size_t) 63);

	if (memory == NULL)
		fail("memory", "there is none");
	memset(memory, 0, bytes);
	return memory;
}

static double
seconds_of(const Bench *bench)
{
	struct rusage usage;
	struct timespec now;

	if (bench->on_device)
	{
		(void) clock_gettime(CLOCK_MONOTONIC, &now);
		return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
	}
	(void) getrusage(RUSAGE_SELF, &usage);
	return (double) usage.ru_utime.tv_sec + (double) usage.ru_utime.tv_usec * 1e-6;
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

static pthread_rwlock_t host_locked = PTHREAD_RWLOCK_INITIALIZER;

static void
host_lock(void *ctx, GhLockMode mode)
{
	(void) ctx;
	if (mode == GH_LOCK_SHARED)
		pthread_rwlock_rdlock(&host_locked);
	else
		pthread_rwlock_wrlock(&host_locked);
}

static void
host_unlock(void *ctx)
{
	(void) ctx;
	pthread_rwlock_unlock(&host_locked);
}

static const GhHost host = {.alloc = host_alloc,.free = host_free,.address = host_address};
static const GhHost shared_host = {.alloc = host_alloc,.free = host_free,.address = host_address,.lock = host_lock,
	.unlock = host_unlock};

/* ---------------------------------------------------------------------- the table */

static uint64_t
column_value(uint64_t row, uint32_t column)
{
	uint64_t	word = gh_code_mix((row + 1) * UINT64_C(0x9E3779B97F4A7C15) + column);

	if (column == COLUMN_B)
		return word;
	return word % (column == COLUMN_KEY ? KEYS : 2 * BOUND);
}

static void
write_page(uint8_t *page, uint64_t first)
{
	const uint16_t version = PAGE_BYTES | GH_PAGE_VERSION;
	const uint16_t lower = GH_PAGE_LINES_AT + PAGE_ROWS * GH_LINE_BYTES;
	const uint16_t natts = COLUMN_INNER;

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
		for (uint32_t c = 0; c < COLUMN_INNER; c++)
		{
			uint64_t	value = column_value(first + r, c);

			memcpy(page + at + 24 + 8 * c, &value, 8);
		}
	}
}

/* What the inner rows of a key have. */
static uint64_t
inner_value(uint64_t key, uint32_t copy)
{
	return gh_code_mix(key) % 1000 + copy;
}

/* ------------------------------------------------------------------- pipelines */

static void
wait_for(const Bench *bench, GhPipeline *pipeline, GhPipelineRequest *request)
{
	GhStatus	status = bench->engine->submit(pipeline, request);

	if (status == GH_BUSY)
		status = bench->engine->wait(request);
	if (status != GH_OK || request->nback != 0)
		fail("a request", status != GH_OK ? request->error.message : "rows were handed back");
}

/* ------------------------------------------------------------ pages that stay */

/* A request of pages from first on, up to so many: copied into their places, or runs of those that are there. */
static void
fill_request(const Bench *bench, GhPipelineRequest *request, uint32_t first, uint32_t count, bool copies)
{
	GhPageRef  *pages = make_memory(count * sizeof(GhPageRef));
	uint16_t   *lines = make_memory(count * sizeof(uint16_t));

	request->kind = GH_INPUT_PAGES;
	request->readable = bench->readable;
	request->pages = pages;
	request->page_lines = lines;
	request->spans = bench->spans;
	request->nspans = bench->nspans;
	request->back_room = (uint64_t) count * PAGE_ROWS;
	request->back = make_memory(request->back_room * sizeof(GhBackRow));
	for (uint32_t p = 0; p < count; p++)
		lines[p] = PAGE_ROWS;
	for (uint32_t p = 0, run; p < count; p += run, request->npages++)
	{
		uint32_t	place = (first + p) % SPAN_PAGES;

		run = count - p < SPAN_PAGES - place ? count - p : SPAN_PAGES - place;
		run = copies ? 1 : run;
		pages[request->npages] = (GhPageRef) {.page = copies ? bench->memory + (size_t) (first + p) * PAGE_BYTES : NULL,
			.lines = run * PAGE_ROWS,.bitmap = GH_PAGE_ALL_LINES,.block = first + p,
			.span = (uint16_t) ((first + p) / SPAN_PAGES + 1),.place = place,.run = (uint16_t) (copies ? 0 : run)};
	}
}

static void
drop_request(GhPipelineRequest *request)
{
	free((void *) request->pages);
	free((void *) request->page_lines);
	free(request->back);
}

/* Pages per request, all requests one behind the other; the seconds from the first submission on. */
static double
run_spans(const Bench *bench, GhPipeline *pipeline, bool copies)
{
	uint32_t	each = copies ? 4096 : bench->each;
	uint32_t	n = (bench->npages + each - 1) / each;
	GhPipelineRequest *requests = make_memory(n * sizeof(GhPipelineRequest));
	double		seconds;

	for (uint32_t r = 0; r < n; r++)
		fill_request(bench, &requests[r], r * each, r + 1 < n ? each : bench->npages - r * each, copies);
	seconds = seconds_of(bench);
	for (uint32_t r = 0; r < n; r++)
		if (bench->engine->submit(pipeline, &requests[r]) != GH_BUSY && requests[r].status != GH_OK)
			fail("submit", requests[r].error.message);
	for (uint32_t r = 0; r < n; r++)
		if (bench->engine->wait(&requests[r]) != GH_OK || requests[r].nback != 0)
			fail("a request", requests[r].nback != 0 ? "rows were handed back" : requests[r].error.message);
	seconds = seconds_of(bench) - seconds;
	for (uint32_t r = 0; r < n; r++)
		drop_request(&requests[r]);
	free(requests);
	return seconds;
}

/* Columns, then two constants, then two temporaries. */
static GhProgram *
make_program(const Job *job, size_t *bytes)
{
	uint32_t	ncolumns = COLUMN_INNER + (job->copies > 0);
	uint32_t	ninstructions = 2 * (job->below > 0) + (job->groups > 0 && !job->by_column);
	GhProgram  *program;
	GhInstruction *in;

	*bytes = sizeof(GhProgram) + 2 * sizeof(GhConstant) + ninstructions * sizeof(GhInstruction) +
		ncolumns * sizeof(GhColumn);
	program = make_memory(*bytes);
	program->magic = GH_PROGRAM_MAGIC;
	program->bytes = (uint32_t) *bytes;
	program->nconstants = program->ntemporaries = 2;
	program->ninstructions = ninstructions;
	program->ncolumns = ncolumns;
	for (uint32_t i = 0; i < 2; i++)
		*(GhConstant *) &gh_program_constants(program)[i] = (GhConstant) {GH_CLASS_INT, 0, {0},
		i == 0 ? job->below : job->groups, 0};
	in = (GhInstruction *) gh_program_instructions(program);
	if (job->below > 0)
	{
		*in++ = (GhInstruction) {GH_OP_LT, GH_CLASS_INT, 0, (uint16_t) (ncolumns + 2),
		{COLUMN_A, (uint16_t) ncolumns, 0}, 0};
		*in++ = (GhInstruction) {GH_OP_FILTER, GH_CLASS_BOOL, 0, 0, {(uint16_t) (ncolumns + 2), 0, 0}, 0};
	}
	if (job->groups > 0 && !job->by_column)
		*in++ = (GhInstruction) {GH_OP_MOD, GH_CLASS_INT, 8, (uint16_t) (ncolumns + 3),
		{COLUMN_KEY, (uint16_t) (ncolumns + 1), 0}, 0};
	for (uint32_t c = 0; c < ncolumns; c++)
		*(GhColumn *) &gh_program_columns(program)[c] = (GhColumn) {(uint16_t) (c + 1), GH_LOAD_INT8, 0, 0, 0};
	return program;
}

static GhPipeline *
create(const Bench *bench, const GhPipelineOptions *options)
{
	GhPipeline *pipeline;
	GhError		error;

	if (bench->engine->create(options->shared_sink != 0 ? &shared_host : &host, options, &pipeline, &error) != GH_OK)
		fail("create", error.message);
	return pipeline;
}

/* One of those who fill a table, with its part of the rows. */
typedef struct Participant
{
	const Bench *bench;
	const GhPipelineOptions *options;
	pthread_barrier_t *barrier;
	GhPipelineRequest request;
	GhVector	vectors[3];
} Participant;

static void *
take_part(void *arg)
{
	Participant *self = arg;
	const GhPipelineEngine *engine = self->bench->engine;
	GhRef		root = self->options->shared_sink;
	GhPipeline *pipeline = create(self->bench, self->options);
	GhError		error;
	bool		ready = false;

	self->request.vectors = self->vectors;
	wait_for(self->bench, pipeline, &self->request);
	if (engine->finish(pipeline, &error) != GH_OK)
		fail("finish", error.message);
	engine->destroy(pipeline);
	while (!ready)
	{
		if (pthread_barrier_wait(self->barrier) == PTHREAD_BARRIER_SERIAL_THREAD &&
			engine->index_begin(&shared_host, root, &error) != GH_OK)
			fail("index_begin", error.message);
		(void) pthread_barrier_wait(self->barrier);
		if (engine->index_enter(&shared_host, root, &ready, &error) != GH_OK)
			fail("index_enter", error.message);
	}
	return NULL;
}

/* The rows of a request, divided among participants. */
static void
make_shared(const Bench *bench, GhPipelineOptions *options, const GhPipelineRequest *request, uint32_t participants,
			GhMadeTable *made)
{
	Participant selves[PARTICIPANTS_MAX];
	pthread_t	threads[PARTICIPANTS_MAX];
	pthread_barrier_t barrier;
	GhError		error;
	uint64_t	n = request->count / participants;

	if (bench->engine->share_sink(&shared_host, options, &options->shared_sink, &error) != GH_OK)
		fail("share_sink", error.message);
	(void) pthread_barrier_init(&barrier, NULL, participants);
	for (uint32_t p = 0; p < participants; p++)
	{
		selves[p] = (Participant) {bench, options, &barrier, *request, {{0}}};
		selves[p].request.count = selves[p].request.back_room = n;
		selves[p].request.back += p * n;
		for (uint32_t v = 0; v < 3; v++)
			selves[p].vectors[v] = (GhVector) {request->vectors[v].low + p * n, NULL,
				request->vectors[v].null + p * n};
		if (pthread_create(&threads[p], NULL, take_part, &selves[p]) != 0)
			fail("threads", "there are none");
	}
	for (uint32_t p = 0; p < participants; p++)
		(void) pthread_join(threads[p], NULL);
	(void) pthread_barrier_destroy(&barrier);
	if (bench->engine->table_attach(&shared_host, options->shared_sink, made, &error) != GH_OK)
		fail("table_attach", error.message);
}

static void
make_own(const Bench *bench, const GhPipelineOptions *options, GhPipelineRequest *request, GhMadeTable *made)
{
	GhPipeline *pipeline = create(bench, options);
	GhError		error;

	wait_for(bench, pipeline, request);
	if (bench->engine->make_table(pipeline, made, &error) != GH_OK)
		fail("make_table", error.message);
	bench->engine->destroy(pipeline);
}

/* Of keys in no order, handed over as columns; the seconds are of its making, too. */
static GhTable *
make_inner(const Bench *bench, const Job *job, double *seconds)
{
	static const Job plain = {"", 0, 0, false, 0, 0, COLUMNS, 0};
	static const GhKeyPart part = {COLUMN_KEY, 64, 0};
	static const GhKept kept[2] = {{COLUMN_A, GH_CLASS_INT, 8}, {COLUMN_B, GH_CLASS_INT, 8}};
	static const uint16_t given[3] = {COLUMN_KEY, COLUMN_A, COLUMN_B};
	uint64_t	n = (uint64_t) job->copies * KEYS;
	uint64_t   *keys = make_memory(n * 8);
	uint64_t   *values = make_memory(n * 8);
	uint8_t    *nulls = make_memory(n);
	GhBackRow  *back = make_memory(n * sizeof(GhBackRow));
	GhVector	vectors[3] = {{keys, NULL, nulls}, {values, NULL, nulls}, {values, NULL, nulls}};
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 3,.given = given,.vectors = vectors,.count = n,
	.back = back,.back_room = n};
	GhPipelineOptions options = {0};
	GhMadeTable made;

	for (uint64_t i = 0; i < n; i++)
	{
		keys[i] = i * 7919 % KEYS;
		values[i] = inner_value(keys[i], (uint32_t) (i / KEYS));
	}
	options.program = make_program(&plain, &options.program_bytes);
	options.source = (GhPipelineSource) {.kind = GH_SOURCE_COLUMNS,.natts = COLUMNS};
	options.sink.kind = GH_SINK_TABLE;
	options.sink.table = (GhTableSink) {.nparts = 1,.parts = &part,.nkept = job->nkept,.kept = kept,
	.matches = GH_MATCHES_ALL,.seed = 1};
	*seconds = seconds_of(bench);
	if (job->participants > 0)
		make_shared(bench, &options, &request, job->participants, &made);
	else
		make_own(bench, &options, &request, &made);
	*seconds = seconds_of(bench) - *seconds;
	free((void *) options.program);
	free(keys);
	free(values);
	free(nulls);
	free(back);
	return made.table;
}

static GhPipeline *
make_pipeline(const Bench *bench, const Job *job, GhTable *inner)
{
	static const GhPageAttribute attributes[COLUMN_INNER] = {{8, 8}, {8, 8}, {8, 8}};
	static const GhKeyPart part = {COLUMN_KEY, 64, 0};
	static const GhProbeFill fill = {COLUMN_INNER, 0};
	GhProbe		probe = {.table = inner,.kind = GH_PROBE_INNER,.nparts = 1,.parts = &part,.nfills = 1,.fills = &fill};
	GhPipelineOptions options = {0};
	GhStep		steps[2] = {{0, 1}, {0, 0}};
	GhAggregate aggregate = {GH_AGGREGATE_SUM, GH_CLASS_INT, job->summed, GH_AGGREGATE_NO_FILTER, 0};
	GhRecordKey	key = {0, GH_CLASS_INT, 0};
	GhPipeline *pipeline;

	options.program = make_program(job, &options.program_bytes);
	steps[1].end = options.program->ninstructions;
	key.vector = (uint16_t) (job->by_column ? COLUMN_A : options.program->ncolumns + 3);
	if (job->summed == COLUMNS)
		aggregate = (GhAggregate) {GH_AGGREGATE_COUNT_ROWS, 0, 0, GH_AGGREGATE_NO_FILTER, 0};
	options.source = (GhPipelineSource) {.kind = GH_SOURCE_PAGES,.natts = COLUMN_INNER,.page_bytes = PAGE_BYTES,
	.attributes = attributes};
	options.steps = inner != NULL ? steps : steps + 1;
	options.nsteps = inner != NULL ? 2 : 1;
	options.probes = &probe;
	options.nprobes = inner != NULL;
	options.sink.kind = GH_SINK_GROUPS;
	options.sink.groups = (GhGroupsSink) {.nkeys = job->groups > 0,.keys = &key,.naggregates = 1,
	.aggregates = &aggregate,.expected = job->groups,.seed = 1};
	pipeline = create(bench, &options);
	free((void *) options.program);
	return pipeline;
}

/* ---------------------------------------------------------------------- results */

/* What all groups come to together. */
static uint64_t
expected_sum(const Bench *bench, const Job *job)
{
	uint64_t	sum = 0;

	for (uint64_t row = 0; row < (uint64_t) bench->npages * PAGE_ROWS; row++)
	{
		if (job->below > 0 && column_value(row, COLUMN_A) >= job->below)
			continue;
		for (uint32_t copy = 0; copy < job->copies; copy++)
			sum += inner_value(column_value(row, COLUMN_KEY), copy);
		if (job->copies == 0)
			sum += job->summed == COLUMNS ? 1 : column_value(row, job->summed);
	}
	return sum;
}

static uint64_t
sum_of_groups(const Bench *bench, const Job *job, GhPipeline *pipeline)
{
	static uint64_t buffer[1 << 17];
	GhCursor	cursor = {0};
	GhError		error;
	uint64_t	sum = 0;

	while (!cursor.finished)
	{
		size_t		bytes;

		if (bench->engine->results(pipeline, &cursor, sizeof(buffer), buffer, &bytes, &error) != GH_OK)
			fail("results", error.message);
		for (size_t at = 0; at < bytes; at += ((const GhRecordHead *) ((char *) buffer + at))->bytes)
		{
			const GhRecordValue *keys = gh_record_keys((const GhRecordHead *) ((char *) buffer + at));
			const GhAggregateState *state = (const GhAggregateState *) (keys + (job->groups > 0));

			sum += job->summed == COLUMNS ? state->count : state->low;
		}
	}
	return sum;
}

/* All pages of the table, each out of the host's memory. */
static double
run_pages(const Bench *bench, GhPipeline *pipeline)
{
	GhBackRow  *back = make_memory((size_t) bench->each * PAGE_ROWS * sizeof(GhBackRow));
	GhPageRef *pages = make_memory(bench->each * sizeof(GhPageRef));
	double		seconds = seconds_of(bench);

	for (uint32_t p = 0; p < bench->npages;)
	{
		GhPipelineRequest request = {.kind = GH_INPUT_PAGES,.pages = pages,.readable = bench->readable,.back = back,
		.back_room = (uint64_t) bench->each * PAGE_ROWS};

		for (; request.npages < bench->each && p < bench->npages; request.npages++, p++)
			pages[request.npages] = (GhPageRef) {.page = bench->memory + (size_t) p * PAGE_BYTES,
				.lines = PAGE_ROWS,.bitmap = GH_PAGE_ALL_LINES,.block = p};
		wait_for(bench, pipeline, &request);
	}
	seconds = seconds_of(bench) - seconds;
	free(pages);
	free(back);
	return seconds;
}

static double
run_job(Bench *bench, const Job *job, double *build)
{
	GhTable    *inner = job->copies > 0 ? make_inner(bench, job, build) : NULL;
	GhPipeline *pipeline = make_pipeline(bench, job, inner);
	double		seconds = bench->resident != 0 ? run_spans(bench, pipeline, false) : run_pages(bench, pipeline);

	if (sum_of_groups(bench, job, pipeline) != expected_sum(bench, job))
	{
		printf("WRONG: %s\n", job->what);
		bench->wrong = true;
	}
	bench->engine->destroy(pipeline);
	if (inner != NULL)
		inner->engine->table_destroy(inner);
	return seconds;
}

static const GhEngine *
open_device(Bench *bench, const char *library)
{
	const GhEngine *engine;
	GhError		error;

	if (gh_engine_load(library, false, &engine, &error) != GH_OK || engine->open_device(0, &error) != GH_OK)
		fail(library, error.message);
	bench->engine = engine->pipelines;
	bench->on_device = true;
	return engine;
}

/* Puts all pages into spans. */
static void
make_spans(Bench *bench)
{
	GhPipeline *pipeline = make_pipeline(bench, &jobs[0], NULL);
	GhError		error;

	bench->nspans = (bench->npages + SPAN_PAGES - 1) / SPAN_PAGES;
	bench->spans = make_memory(bench->nspans * sizeof(GhPageSpan *));
	for (uint32_t s = 0; s < bench->nspans; s++)
		if (bench->engine->span_create(&host, 0, PAGE_BYTES, SPAN_PAGES, &bench->spans[s], &error) != GH_OK)
			fail("span_create", error.message);
	(void) run_spans(bench, pipeline, true);
	bench->engine->destroy(pipeline);
}

int
main(int argc, char **argv)
{
	Bench		bench = {.engine = gh_cpu_engine()->pipelines,.npages = 16384,.rounds = 3};
	const GhEngine *device = NULL;

	for (int i = 1; i + 1 < argc; i += 2)
	{
		uint32_t   *option = strcmp(argv[i], "--pages") == 0 ? &bench.npages :
			strcmp(argv[i], "--request") == 0 ? &bench.each :
			strcmp(argv[i], "--rounds") == 0 ? &bench.rounds :
			strcmp(argv[i], "--job") == 0 ? &bench.job :
			strcmp(argv[i], "--resident") == 0 ? &bench.resident : NULL;

		if (strcmp(argv[i], "--cuda") == 0)
		{
			device = open_device(&bench, argv[i + 1]);
			continue;
		}
		if (option == NULL || atoi(argv[i + 1]) <= 0)
			fail(argv[i], "an option is --cuda FILE, --pages N, --request N, --rounds N, --job N or --resident 1");
		*option = (uint32_t) atoi(argv[i + 1]);
	}
	if (bench.resident != 0 && (!bench.on_device || !bench.engine->takes_runs))
		fail("--resident", "it is for an engine that takes runs of pages");
	if (bench.each == 0)
		bench.each = bench.resident != 0 ? 20000 : bench.on_device ? 4096 : 1;
	bench.memory = make_memory((size_t) bench.npages * PAGE_BYTES);
	if (device != NULL && device->memory_register != NULL)
	{
		GhError		error;

		bench.readable = device->memory_register(0, bench.memory, (size_t) bench.npages * PAGE_BYTES, false,
												 &error) == GH_OK;
	}
	for (uint32_t p = 0; p < bench.npages; p++)
		write_page(bench.memory + (size_t) p * PAGE_BYTES, (uint64_t) p * PAGE_ROWS);
	if (bench.resident != 0)
		make_spans(&bench);
	for (size_t j = 0; j < sizeof(jobs) / sizeof(jobs[0]); j++)
	{
		double		least = 1e9;
		double		least_build = 1e9;

		if ((bench.job != 0 && bench.job != j + 1) ||
			(jobs[j].participants > 0 && !bench.engine->shares_sinks))
			continue;
		for (uint32_t round = 0; round < bench.rounds; round++)
		{
			double		build = 0;
			double		seconds = run_job(&bench, &jobs[j], &build);

			least = seconds < least ? seconds : least;
			least_build = build < least_build ? build : least_build;
		}
		printf("%-46s %7.3f", jobs[j].what, least / bench.npages / PAGE_ROWS * 1e9);
		if (jobs[j].copies > 0)
			printf("   inner rows %7.2f", least_build / KEYS / jobs[j].copies * 1e9);
		printf("\n");
		(void) fflush(stdout);
	}
	return bench.wrong ? 1 : 0;
}
