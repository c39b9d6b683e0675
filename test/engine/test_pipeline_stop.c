/*
 * test_pipeline_stop.c
 *		Pipelines that are stopped: a request leaves the sink as it was, at whatever point it is stopped, and is done in
 *		full when it is submitted again; so are results; a table whose making is stopped leaves nothing.
 *
 * The flag is set between two polls, at each allocation, and by a timer after more and more time.  An engine on a device
 * does more rows at a time, and need not see the flag on the way of requests as these.
 */
#include "pipeline_model.h"

#include <signal.h>
#include <sys/time.h>

#define BEFORE 3000				/* rows of the request before the one that is stopped */
#define STOPPED 30000			/* and of that one: no short one, or */
#define SHORT 8000
#define KEYS 12000				/* of all rows, from 0 on */
#define MANY_KEY 12345			/* none that is drawn: so many rows of a table have it, */
#define MANY 20000				/* more than the CPU engine has waiting at a time, */
#define MANY_ROWS 3				/* and so many of the request that is stopped */
#define RECORD_BYTES ((size_t) 1 << 23)

/* Two integers, and a text of some of their bytes. */
typedef struct Input
{
	uint64_t	low[3][BEFORE + STOPPED];
	uint64_t	high[BEFORE + STOPPED];
	uint8_t		null[BEFORE + STOPPED];
	GhBackRow	back[STOPPED];
} Input;

typedef enum SinkKind
{
	BY_NUMBER,					/* groups */
	BY_WIDE_NUMBERS,
	BY_TEXT,
	WITHOUT_KEYS,
	JOINED,						/* groups of rows that a probe makes several of */
	JOINED_MANY,				/* very many of some */
	KEPT_ROWS,
	KEPT_TABLE,
	KEPT_MANY_ROWS,				/* of rows that a probe makes very many of */
	KEPT_MANY_TABLE,
	SINKS
} SinkKind;

/* What is stopped. */
typedef struct Trap
{
	Context    *c;
	SinkKind	kind;
	uint32_t	count;			/* rows of the request that is stopped */
	HostState	state;
	GhHost		host;
	Input	   *input;
	Stage	   *stage;
	Stage	   *table;			/* what is probed; NULL: nothing */
	uint32_t	pieces;			/* in which results came, but for the last one */
	char	   *records;		/* of two calls each */
	char	   *before;
	size_t		before_bytes;
} Trap;

/* ------------------------------------------------------------------ the flag */

static volatile sig_atomic_t *timer_flag;

static void
timer_rang(int signal_number)
{
	(void) signal_number;
	*timer_flag = 1;
}

/* Slow checkers need more time for all; these are few dozens up to a second. */
static uint32_t
later(uint32_t microseconds)
{
	return microseconds + microseconds / 4 + 20;
}

/* 0: never */
static void
set_timer(Trap *trap, uint32_t microseconds)
{
	struct itimerval timer = {{0, 0}, {0, microseconds}};

	timer_flag = &trap->state.stop;
	(void) signal(SIGALRM, timer_rang);
	(void) setitimer(ITIMER_REAL, &timer, NULL);
}

static GhRef (*plain_alloc) (void *ctx, size_t bytes);
static bool (*plain_take) (void *ctx, uint64_t bytes);
static uint64_t stop_at_alloc;	/* which of them sets the flag; 0: none */

static void
count_alloc(HostState *state)
{
	if (stop_at_alloc > 0 && --stop_at_alloc == 0)
		state->stop = 1;
}

static GhRef
stopping_alloc(void *ctx, size_t bytes)
{
	count_alloc(ctx);
	return plain_alloc(ctx, bytes);
}

static bool
stopping_take(void *ctx, uint64_t bytes)
{
	count_alloc(ctx);
	return plain_take(ctx, bytes);
}

/* -------------------------------------------------------------------- input */

static Input *
make_input(Context *c)
{
	static const char text[] = "what is in the sink when a request was stopped is what was there before it";
	Input	   *input = make_memory(sizeof(Input));

	memset(input, 0, sizeof(*input));
	for (uint32_t i = 0; i < BEFORE + STOPPED; i++)
	{
		uint64_t	key = i < BEFORE ? random_below(c, 2000) : random_below(c, KEYS);

		input->low[0][i] = key;
		input->low[1][i] = mix(key);
		input->low[2][i] = (uintptr_t) text + key % 64;
		input->high[i] = key % 11;
		input->null[i] = key % 100 == 7;
	}
	return input;
}

/* Request 0 or 1. */
static GhPipelineRequest
make_request(Trap *trap, int which, GhVector *vectors)
{
	static const uint16_t given[] = {0, 1, 2};
	uint32_t	at = which == 0 ? 0 : BEFORE;
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 3,.given = given,.vectors = vectors,
	.back = trap->input->back};

	for (uint32_t v = 0; v < 3; v++)
		vectors[v] = (GhVector) {trap->input->low[v] + at, trap->input->high + at, trap->input->null + at};
	request.count = which == 0 ? BEFORE : trap->count;
	request.back_room = request.count;
	return request;
}

/* -------------------------------------------------------------------- stages */

static bool
makes_many(SinkKind kind)
{
	return kind == JOINED_MANY || kind == KEPT_MANY_ROWS || kind == KEPT_MANY_TABLE;
}

static bool
makes_table(SinkKind kind)
{
	return kind == KEPT_TABLE || kind == KEPT_MANY_TABLE;
}

/* Thirty rows of each of some keys, and very many of one. */
static Stage *
make_several(Trap *trap)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = 1;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage_part(stage, 0, 64);
	stage_keep(stage, 0, GH_CLASS_INT, 8);
	stage_finish(trap->c, stage);
	for (uint32_t i = 0; i < 3000 + (makes_many(trap->kind) ? MANY : 0); i++)
	{
		GhValue    *row = rows_add(&stage->source, NULL, false);

		model_blank(stage, row);
		row[0] = (GhValue) {i < 3000 ? i / 30 * 7 : MANY_KEY, 0, 0};
	}
	(void) stage_run(trap->c, stage, &trap->host);
	stage_end(stage);
	return stage;
}

static void
set_sink(Trap *trap, Stage *stage)
{
	bool		groups = trap->kind <= JOINED_MANY;
	bool		rows = trap->kind == KEPT_ROWS || trap->kind == KEPT_MANY_ROWS;

	stage->options.sink.kind = groups ? GH_SINK_GROUPS : rows ? GH_SINK_ROWS : GH_SINK_TABLE;
	if (makes_table(trap->kind))
	{
		stage->options.sink.table.numbered = 1;
		stage_part(stage, 0, 64);
		stage_keep(stage, 1, GH_CLASS_INT, 8);
		stage_keep(stage, 2, GH_CLASS_TEXT, 0);
		return;
	}
	if (trap->kind != WITHOUT_KEYS && trap->kind != BY_TEXT)
		stage_key(stage, 0, GH_CLASS_INT);
	if (trap->kind == BY_WIDE_NUMBERS || rows)
		stage_key(stage, 1, GH_CLASS_INT);
	if (trap->kind == BY_TEXT || rows)
		stage_key(stage, 2, GH_CLASS_TEXT);
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_aggregate(stage, GH_AGGREGATE_SUM, 1, GH_CLASS_INT);
	stage_aggregate(stage, GH_AGGREGATE_MIN, 0, GH_CLASS_INT);
}

/* A pipeline, with the first request done. */
static bool
open_pipeline(Trap *trap)
{
	GhVector	vectors[3];
	GhPipelineRequest request = make_request(trap, 0, vectors);
	GhError		error = {0};

	trap->state.stop = 0;
	return CHECK(trap->c, stage_create(trap->stage, &trap->host, &error) == GH_OK, "create: %s", error.message) &&
		CHECK_STATUS(trap->c, "the first request", stage_request(trap->stage, &request), GH_OK);
}

static void
trap_init(Context *c, Trap *trap, SinkKind kind)
{
	memset(trap, 0, sizeof(*trap));
	trap->c = c;
	trap->kind = kind;
	/* of rows that become several there are more; a device is soon done with all of them */
	trap->count = (kind == JOINED && c->on_host) || makes_many(kind) ? STOPPED / 10 : STOPPED;
	host_init(&trap->state, &trap->host);
	plain_alloc = trap->host.alloc;
	plain_take = trap->host.take_device;
	trap->host.alloc = stopping_alloc;
	trap->host.take_device = stopping_take;
	trap->input = make_input(c);
	trap->records = make_memory(2 * RECORD_BYTES);
	trap->before = make_memory(RECORD_BYTES);
	/* one is of the request before */
	for (uint32_t i = 0; makes_many(kind) && i <= MANY_ROWS; i++)
		trap->input->low[0][BEFORE - 999 + 1000 * i] = MANY_KEY;
	if (kind == JOINED || makes_many(kind))
		trap->table = make_several(trap);
	trap->stage = stage_make();
	trap->stage->options.source.natts = 3;
	(void) stage_column(trap->stage, GH_CLASS_INT, 1);
	(void) stage_column(trap->stage, GH_CLASS_INT, 2);
	(void) stage_column(trap->stage, GH_CLASS_TEXT, 3);
	if (trap->table != NULL)
	{
		uint32_t	p = stage_probe(trap->stage, &trap->table->made, GH_PROBE_LEFT, true);

		stage_probe_part(trap->stage, p, 0, 64);
		stage_probe_step(trap->stage, p);
	}
	set_sink(trap, trap->stage);
	stage_finish(c, trap->stage);
	trap->stage->engine = c->engine;
}

static void
trap_end(Trap *trap)
{
	stage_end(trap->stage);
	if (trap->table != NULL)
		stage_end_table(trap->table);
	CHECK_U64(trap->c, "bytes left", trap->state.allocated + trap->state.device_bytes, 0);
	stage_drop(trap->c, trap->stage);
	stage_drop(trap->c, trap->table);
	free(trap->before);
	free(trap->records);
	free(trap->input);
}

/* --------------------------------------------------------------------- checks */

static int
order_records(const void *left, const void *right)
{
	const GhRecordHead *a = *(const GhRecordHead *const *) left;
	const GhRecordHead *b = *(const GhRecordHead *const *) right;

	return a->bytes != b->bytes ? (a->bytes < b->bytes ? -1 : 1) : memcmp(a, b, a->bytes);
}

/* Which number a group has on a device depends on who comes first: records are compared in another order. */
static void
sort_records(char *records, size_t bytes)
{
	const GhRecordHead **sorted = make_memory((bytes / sizeof(GhRecordHead) + 1) * sizeof(GhRecordHead *));
	char	   *copy = make_memory(bytes);
	size_t		count = 0;

	memcpy(copy, records, bytes);
	for (size_t at = 0; at < bytes; at += sorted[count++]->bytes)
		sorted[count] = (const GhRecordHead *) (copy + at);
	qsort(sorted, count, sizeof(*sorted), order_records);
	for (size_t i = 0; i < count; records += sorted[i++]->bytes)
		memcpy(records, sorted[i], sorted[i]->bytes);
	free(copy);
	free(sorted);
}

/* All records in the order in which they come; how many bytes. */
static size_t
all_records(Trap *trap, char *to)
{
	const GhPipelineEngine *pipelines = trap->c->engine->pipelines;
	GhCursor	cursor = {0};
	GhError		error = {0};
	size_t		used = 0;

	while (!cursor.finished)
	{
		size_t		bytes = 0;
		GhStatus	status = pipelines->results(trap->stage->pipeline, &cursor, RECORD_BYTES - used, to + used, &bytes,
												&error);

		if (status == GH_STOPPED && CHECK_U64(trap->c, "bytes of results that were stopped", bytes, 0))
			trap->state.stop = 0;
		else if (!CHECK(trap->c, status == GH_OK, "results: %s", error.message))
			break;
		used += bytes;
		/* there is room for all */
		trap->pieces += status == GH_OK && !cursor.finished;
	}
	if (!trap->c->on_host && trap->kind <= JOINED_MANY)
		sort_records(to, used);
	return used;
}

/* Of a table there are no records, but how many rows; and what was counted. */
static size_t
contents(Trap *trap, char *to)
{
	GhPipelineStats stats = {0};
	GhError		error = {0};
	size_t		bytes = makes_table(trap->kind) ? 0 : all_records(trap, to);

	CHECK_STATUS(trap->c, "stats", trap->c->engine->pipelines->stats(trap->stage->pipeline, &stats, &error), GH_OK);
	memcpy(to + bytes, &stats.counted, sizeof(stats.counted));
	bytes += sizeof(stats.counted);
	memcpy(to + bytes, &stats.entries, sizeof(stats.entries));
	return bytes + sizeof(stats.entries);
}

static void
check_contents(Trap *trap, const char *what, const char *expected, size_t bytes)
{
	char	   *got = trap->records + RECORD_BYTES;
	size_t		got_bytes = contents(trap, got);

	CHECK(trap->c, got_bytes == bytes && memcmp(got, expected, bytes) == 0, "%s: other records than before, %zu bytes "
		  "and %zu", what, got_bytes, bytes);
}

/* Makes the table: its rows, and that no key has several but those of the input. */
static uint64_t
table_rows(Trap *trap)
{
	GhMadeTable made = {0};
	GhError		error = {0};

	CHECK(trap->c, trap->c->engine->pipelines->make_table(trap->stage->pipeline, &made, &error) == GH_OK,
		  "make_table: %s", error.message);
	if (made.table != NULL)
		trap->c->engine->table_destroy(made.table);
	return made.rows;
}

/* What the sink is with both requests and none stopped, to trap->records; how many bytes. */
static size_t
undisturbed(Trap *trap)
{
	GhVector	vectors[3];
	GhPipelineRequest request = make_request(trap, 1, vectors);
	size_t		bytes = 0;

	if (open_pipeline(trap))
	{
		trap->before_bytes = contents(trap, trap->before);
		CHECK_STATUS(trap->c, "a request", stage_request(trap->stage, &request), GH_OK);
		bytes = contents(trap, trap->records);
	}
	stage_end(trap->stage);
	return bytes;
}

/* How the flag is set. */
typedef struct Stop
{
	uint32_t	microseconds;
	uint64_t	alloc;
	uint32_t	polls;			/* UINT32_MAX: never between polls */
} Stop;

static GhStatus
run_stopped(Trap *trap, GhPipelineRequest *request, Stop stop)
{
	const GhPipelineEngine *pipelines = trap->c->engine->pipelines;
	GhStatus	status = pipelines->submit(trap->stage->pipeline, request);

	set_timer(trap, stop.microseconds);
	stop_at_alloc = stop.alloc;
	for (uint32_t i = 0; i < stop.polls && status == GH_BUSY; i++)
		status = pipelines->poll(request);
	trap->state.stop |= stop.polls != UINT32_MAX;
	if (status == GH_BUSY)
		status = pipelines->wait(request);
	set_timer(trap, 0);
	stop_at_alloc = 0;
	trap->state.stop = 0;
	return status;
}

/* Stops the second request so; true: it came to its end before. */
static bool
stop_once(Trap *trap, Stop stop)
{
	GhVector	vectors[3];
	GhPipelineRequest request = make_request(trap, 1, vectors);
	GhStatus	status = run_stopped(trap, &request, stop);

	if (status == GH_OK)
		return true;
	CHECK_STATUS(trap->c, "a request that is stopped", status, GH_STOPPED);
	CHECK(trap->c, (request.nback | request.counted | request.seen | request.passed[0]) == 0, "it has counted");
	check_contents(trap, "a request that is stopped", trap->before, trap->before_bytes);
	return false;
}

/* Stops it at one point after the other, in one pipeline, until it comes to its end. */
static uint32_t
stop_everywhere(Trap *trap, uint32_t how, const char *expected, size_t bytes)
{
	uint32_t	stops = 0;
	Stop		stop = {0, 0, UINT32_MAX};

	if (open_pipeline(trap))
	{
		for (uint32_t i = 1; trap->c->failures == 0; i++, stops++)
		{
			/* of a device, many polls find it at work */
			if (how == 0)
				stop.polls = i == 1 ? 0 : stop.polls + stop.polls / 8 + 1;
			else if (how == 1)
				stop.alloc = i;
			else if (makes_many(trap->kind) && !trap->c->reduced)
				/* so that it is stopped in each pass over a row that becomes very many */
				stop.microseconds += stop.microseconds / 20 + 20;
			else
				stop.microseconds = later(stop.microseconds);
			if (stop_once(trap, stop))
				break;
		}
		if (trap->c->failures == 0)
			check_contents(trap, "a request that was stopped before", expected, bytes);
		if (trap->c->failures == 0 && trap->kind == KEPT_TABLE)
			CHECK_U64(trap->c, "rows of the table", table_rows(trap), BEFORE + STOPPED);
	}
	stage_end(trap->stage);
	return stops;
}

static void
short_requests(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t kind = 0; kind < SINKS && c->failures == 0; kind++)
	{
		Trap		trap;
		size_t		bytes;

		if (kind == JOINED || makes_many((SinkKind) kind) || makes_table((SinkKind) kind))
			continue;
		trap_init(c, &trap, (SinkKind) kind);
		trap.count = SHORT;
		bytes = undisturbed(&trap);
		for (uint32_t i = 0; i < (c->reduced ? 1 : 10) && c->failures == 0; i++)
			for (uint32_t how = 0; how < 3 && c->failures == 0; how++)
				(void) stop_everywhere(&trap, how, trap.records, bytes);
		trap_end(&trap);
	}
}

static void
stopped_requests(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t kind = 0; kind < SINKS && c->failures == 0; kind++)
	{
		Trap		trap;
		uint32_t	stops[3] = {0, 0, 0};
		size_t		bytes;

		trap_init(c, &trap, (SinkKind) kind);
		bytes = undisturbed(&trap);
		for (uint32_t how = 0; how < 3 && c->failures == 0; how++)
			stops[how] = stop_everywhere(&trap, how, trap.records, bytes);
		/* those that a probe makes many of are too many for a device to be done at a time, too */
		CHECK(c, c->failures > 0 || (stops[0] > 0 && (stops[0] + stops[2] > 1 || (!c->on_host && kind != JOINED))),
			  "it was stopped %u times between polls and %u times on the way", stops[0], stops[2]);
		CHECK(c, c->failures > 0 || kind != BY_NUMBER || stops[1] > 0 || !c->on_host, "growth was not stopped");
		if (c->failures > 0)
			printf("  sink %u\n", kind);
		trap_end(&trap);
	}
}

/* ------------------------------------------------------------- other long calls */

/* Results that are stopped go on where they ended. */
static void
stopped_results(Context *c)
{
	static const SinkKind kinds[] = {BY_NUMBER, KEPT_ROWS};

	if (no_pipelines(c))
		return;
	for (uint32_t k = 0; k < 2 && c->failures == 0; k++)
	{
		Trap		trap;
		GhVector	vectors[3];
		GhPipelineRequest request;
		GhCursor	cursor = {0};
		GhError		error = {0};
		size_t		bytes;

		trap_init(c, &trap, kinds[k]);
		request = make_request(&trap, 1, vectors);
		if (open_pipeline(&trap) && CHECK_STATUS(c, "a request", stage_request(trap.stage, &request), GH_OK))
		{
			size_t		all = contents(&trap, trap.records);

			trap.state.stop = 1;
			CHECK_STATUS(c, "results", c->engine->pipelines->results(trap.stage->pipeline, &cursor, RECORD_BYTES,
																	 trap.before, &bytes, &error), GH_STOPPED);
			CHECK(c, bytes == 0 && !cursor.finished, "%zu bytes came", bytes);
			for (uint32_t when = 10; when < 100000 && trap.pieces == 0 && c->failures == 0 && c->on_host; when = later(when))
			{
				trap.state.stop = 0;
				set_timer(&trap, when);
				check_contents(&trap, "results that are stopped", trap.records, all);
				set_timer(&trap, 0);
			}
			trap.state.stop = 0;
			check_contents(&trap, "results once more", trap.records, all);
			CHECK(c, c->failures > 0 || trap.pieces > 0 || !c->on_host, "they were never stopped on the way");
		}
		trap_end(&trap);
	}
}

/* Pairs of a key and a row of the table that has it. */
static uint64_t
pairs_of(Trap *trap, GhTable *table)
{
	static const uint16_t given[] = {0};
	ModelTable	model = {.table = table};
	uint64_t   *words = make_memory(KEYS * sizeof(uint64_t));
	uint8_t    *nulls = make_memory(KEYS);
	GhVector	vector = {words, words, nulls};
	GhBackRow  *back = make_memory(KEYS * sizeof(GhBackRow));
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 1,.given = given,.vectors = &vector,.count = KEYS,
	.back = back,.back_room = KEYS};
	Stage	   *stage = stage_make();
	GhError		error = {0};

	for (uint32_t i = 0; i < KEYS; i++)
		words[i] = i;
	memset(nulls, 0, KEYS);
	stage->engine = trap->c->engine;
	stage->options.source.natts = 1;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	(void) stage_probe(stage, &model, GH_PROBE_INNER, false);
	stage_probe_part(stage, 0, 0, 64);
	stage_probe_step(stage, 0);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_finish(trap->c, stage);
	if (CHECK(trap->c, stage_create(stage, &trap->host, &error) == GH_OK, "create: %s", error.message))
		CHECK_STATUS(trap->c, "a request for all keys", stage_request(stage, &request), GH_OK);
	stage_end(stage);
	stage_drop(trap->c, stage);
	free(words);
	free(nulls);
	free(back);
	return request.counted;
}

static void
check_table(Trap *trap, const GhMadeTable *made)
{
	uint64_t	pairs = 0;

	for (uint32_t i = 0; i < BEFORE + STOPPED; i++)
		pairs += !trap->input->null[i];
	CHECK_U64(trap->c, "rows", made->rows, BEFORE + STOPPED);
	CHECK_U64(trap->c, "rows that are found", pairs_of(trap, made->table), pairs);
}

/* A table whose making was stopped is made by the next call, and rows may come before that. */
static void
stopped_tables(Context *c)
{
	Trap		trap;
	uint32_t	stops = 0;
	bool		made_it = false;

	if (no_pipelines(c))
		return;
	trap_init(c, &trap, KEPT_TABLE);
	for (uint32_t when = 0; when < 900000 && !made_it && c->failures == 0; when = later(when))
	{
		GhVector	vectors[3];
		GhPipelineRequest request = make_request(&trap, 1, vectors);
		GhMadeTable made = {0};
		GhError		error = {0};
		GhStatus	status;

		if (!open_pipeline(&trap) || !CHECK_STATUS(c, "a request", stage_request(trap.stage, &request), GH_OK))
			break;
		trap.state.stop = when == 0;
		set_timer(&trap, when);
		status = c->engine->pipelines->make_table(trap.stage->pipeline, &made, &error);
		set_timer(&trap, 0);
		trap.state.stop = 0;
		made_it = status == GH_OK;
		if (!made_it)
		{
			stops++;
			CHECK_STATUS(c, "make_table", status, GH_STOPPED);
			CHECK(c, made.table == NULL, "there is a table");
			request.count = 0;
			CHECK_STATUS(c, "a request without rows", stage_request(trap.stage, &request), GH_OK);
			status = c->engine->pipelines->make_table(trap.stage->pipeline, &made, &error);
		}
		if (CHECK(c, status == GH_OK, "make_table: %s", error.message))
			check_table(&trap, &made);
		CHECK_STATUS(c, "a request behind it", stage_request(trap.stage, &request), GH_INVALID);
		stage_end(trap.stage);
		if (made.table != NULL)
			c->engine->table_destroy(made.table);
		CHECK_U64(c, "bytes left", trap.state.allocated, 0);
	}
	CHECK(c, c->failures > 0 || (made_it && stops > 1), "the table was made: %d, it was stopped %u times", made_it, stops);
	trap_end(&trap);
}

const Test	pipeline_stop_tests[] = {
	{"pipelines: requests that are stopped", stopped_requests, false},
	{"pipelines: short requests that are stopped", short_requests, false},
	{"pipelines: results that are stopped", stopped_results, false},
	{"pipelines: tables whose making is stopped", stopped_tables, false},
	{NULL, NULL, false}
};
