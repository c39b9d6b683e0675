/*
 * test_pipeline_requests.c
 *		Requests to pipelines, and calls, that are refused or stopped; rows that keep their order.
 */
#include "pipeline_bench.h"

static void
expect_request(Context *c, Stage *stage, GhPipelineRequest request, GhStatus expected, const char *what)
{
	GhStatus	status = stage_request(stage, &request);

	CHECK_STATUS(c, what, status, expected);
	CHECK_STATUS(c, what, request.status, expected);
	CHECK(c, expected == GH_OK || (request.counted | request.seen | request.nback | request.passed[0]) == 0,
		  "%s: it has counted", what);
}

/* Columns for a request: numbers, texts, truths. */
typedef struct Given
{
	uint16_t	numbers[4];
	GhVector	vectors[4];
	uint64_t	low[3][10];
	uint64_t	high[10];
	uint8_t		null[10];
	GhBackRow	back[10];
} Given;

static GhPipelineRequest
make_request(Given *given, const Stage *stage)
{
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 3,.count = 10,.back_room = 10};

	memset(given, 0, sizeof(*given));
	for (uint32_t v = 0; v < 3; v++)
	{
		given->numbers[v] = (uint16_t) v;
		given->vectors[v] = (GhVector) {given->low[v], given->high, given->null};
		for (uint32_t i = 0; i < 10; i++)
			given->low[v][i] = rows_at(&stage->source, i)[v].low;
	}
	request.given = given->numbers;
	request.vectors = given->vectors;
	request.back = given->back;
	return request;
}

#define REQUEST_REFUSED(target, value) \
	do { \
		__typeof__(target) was = target; \
		target = value; \
		expect_request(c, stage, request, GH_INVALID, #target " = " #value); \
		target = was; \
	} while (0)

static void
refused_requests(Context *c)
{
	Bench		bench;
	Given	   *given = make_memory(sizeof(Given));
	GhPipelineRequest request;
	GhPipelineStats stats;
	Stage	   *stage;
	GhError		error = {0};

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		stage->probes[0].marks = bench.marks;
		request = make_request(given, stage);
		CHECK(c, stage_create(stage, &bench.host, &error) == GH_OK, "create: %s", error.message);
		REQUEST_REFUSED(request.kind, 0);
		REQUEST_REFUSED(request.kind, GH_INPUT_PAGES);
		REQUEST_REFUSED(request.kind, GH_INPUT_SOURCE);
		REQUEST_REFUSED(request.kind, GH_INPUT_UNMATCHED + 1);
		REQUEST_REFUSED(request.step, 4);
		REQUEST_REFUSED(request.step, 1);	/* what the first step sets is missing */
		REQUEST_REFUSED(request.given, NULL);
		REQUEST_REFUSED(request.vectors, NULL);
		REQUEST_REFUSED(request.ngiven, 0);
		REQUEST_REFUSED(request.ngiven, GH_PROGRAM_VECTORS_MAX + 1);
		REQUEST_REFUSED(request.back, NULL);
		REQUEST_REFUSED(request.back_room, 9);
		REQUEST_REFUSED(request.count, GH_REQUEST_LINES_MAX + 1);
		REQUEST_REFUSED(given->numbers[0], TEXT);
		REQUEST_REFUSED(given->numbers[2], CONSTANT);
		REQUEST_REFUSED(given->numbers[2], VECTORS);
		REQUEST_REFUSED(given->vectors[0].low, NULL);
		REQUEST_REFUSED(given->vectors[0].null, NULL);
		REQUEST_REFUSED(given->vectors[1].high, NULL);
		expect_request(c, stage, request, GH_OK, "a request");
		request.count = 0;
		expect_request(c, stage, request, GH_OK, "a request of no rows");
		CHECK_STATUS(c, "stats", c->engine->pipelines->stats(stage->pipeline, &stats, &error), GH_OK);
		CHECK_U64(c, "rows counted", stats.counted, 10);
	}
	bench_close(c, &bench);
	free(given);
}

/* Rows of sources, and those without a match, from behind the last one on. */
static void
refused_ranges(Context *c)
{
	Bench		bench;
	GhBackRow	back[20];
	GhPipelineRequest request = {
		.kind = GH_INPUT_UNMATCHED,.step = 1,.count = 10,.back = back,.back_room = 20
	};
	Stage	   *stage;
	GhError		error = {0};

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		stage->marking[0] = true;
		CHECK(c, stage_create(stage, &bench.host, &error) == GH_OK, "create: %s", error.message);
		REQUEST_REFUSED(request.step, 0);
		REQUEST_REFUSED(request.step, 2);
		REQUEST_REFUSED(request.step, 3);
		REQUEST_REFUSED(request.step, UINT32_MAX);
		REQUEST_REFUSED(request.count, 11);
		REQUEST_REFUSED(request.first, 1);
		REQUEST_REFUSED(request.first, 11);
		REQUEST_REFUSED(request.first, UINT64_MAX);
		REQUEST_REFUSED(request.count, UINT64_MAX);
		expect_request(c, stage, request, GH_OK, "rows without a match");
		request.first = 10;
		request.count = 0;
		expect_request(c, stage, request, GH_OK, "no rows without a match");
		stage_end(stage);
		stage = stage_make();
		stage_from_groups(stage, bench.groups);
		stage->group_columns[0] = (GhGroupColumn) {GH_GROUP_KEY, 0};
		stage->options.source.natts = 1;
		(void) stage_column(stage, GH_CLASS_BOOL, 1);
		stage->options.sink.kind = GH_SINK_ROWS;
		stage_finish(c, stage);
		stage->engine = c->engine;
		CHECK(c, stage_create(stage, &bench.host, &error) == GH_OK, "create: %s", error.message);
		request = (GhPipelineRequest) {.kind = GH_INPUT_SOURCE,.count = 2,.back = back,.back_room = 20};
		expect_request(c, stage, request, GH_OK, "groups");
		REQUEST_REFUSED(request.count, 3);
		REQUEST_REFUSED(request.first, 1);
		REQUEST_REFUSED(request.first, UINT64_MAX);
		REQUEST_REFUSED(request.kind, GH_INPUT_UNMATCHED);
		REQUEST_REFUSED(request.kind, GH_INPUT_PAGES);
		stage_end(stage);
		stage_drop(c, stage);
	}
	bench_close(c, &bench);
}

/* -------------------------------------------------------------------- handles */

/* What a handle is asked for in the wrong order; a request that is stopped; what clear leaves. */
static void
handles(Context *c)
{
	Bench		bench;
	Given	   *given = make_memory(sizeof(Given));
	const GhPipelineEngine *pipelines = c->engine->pipelines;
	GhPipelineRequest request;
	GhPipelineStats stats;
	GhMadeTable made;
	GhMarks    *marks;
	GhCursor	cursor = {0};
	Stage	   *stage;
	GhError		error = {0};
	size_t		bytes;
	char	   *records;
	char		room[64];

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		request = make_request(given, stage);
		CHECK(c, stage_create(stage, &bench.host, &error) == GH_OK, "create: %s", error.message);
		bench.state.stop = 1;
		expect_request(c, stage, request, GH_STOPPED, "a request that is stopped");
		bench.state.stop = 0;
		expect_request(c, stage, request, GH_OK, "a request");
		CHECK_STATUS(c, "make_table of groups", pipelines->make_table(stage->pipeline, &made, &error),
					 GH_INVALID);
		CHECK_STATUS(c, "results without room", pipelines->results(stage->pipeline, &cursor, 8, room, &bytes,
																   &error),
					 GH_TOO_SMALL);
		CHECK(c, bytes > 8 && !cursor.finished, "a record needs %zu bytes", bytes);
		for (int i = 0; i < 2; i++)
		{
			records = stage_records(c, stage, &bytes);
			CHECK(c, records != NULL && bytes > 0, "no records");
			free(records);
		}
		CHECK_STATUS(c, "clear", pipelines->clear(stage->pipeline, &error), GH_OK);
		records = stage_records(c, stage, &bytes);
		CHECK(c, records != NULL && bytes == 0, "%zu bytes of records", bytes);
		free(records);
		CHECK_STATUS(c, "stats", pipelines->stats(stage->pipeline, &stats, &error), GH_OK);
		CHECK_U64(c, "groups", stats.entries, 0);
		expect_request(c, stage, request, GH_OK, "a request after clear");
		CHECK_STATUS(c, "marks of a table without numbers",
					 pipelines->marks_create(&bench.host, bench.unnumbered->made.table, &marks,
											 &error), GH_INVALID);
		CHECK_STATUS(c, "marks of a table that no pipeline made",
					 pipelines->marks_create(&bench.host, bench.other, &marks, &error), GH_INVALID);
		pipelines->destroy(NULL);
		pipelines->marks_destroy(NULL);
	}
	bench_close(c, &bench);
	free(given);
}

/* Of a pipeline that makes a table. */
static void
table_handles(Context *c)
{
	Bench		bench;
	Given	   *given = make_memory(sizeof(Given));
	const GhPipelineEngine *pipelines = c->engine->pipelines;
	GhPipelineRequest request;
	GhMadeTable made = {0};
	GhCursor	cursor = {0};
	Stage	   *stage;
	GhError		error = {0};
	size_t		bytes;
	char		room[64];

	if (bench_open(c, &bench))
	{
		stage = bench.stage;
		request = make_request(given, stage);
		stage->options.sink.kind = GH_SINK_TABLE;
		stage_part(stage, FILLED, 64);
		CHECK(c, stage_create(stage, &bench.host, &error) == GH_OK, "create: %s", error.message);
		expect_request(c, stage, request, GH_OK, "a request");
		CHECK_STATUS(c, "results of a table", pipelines->results(stage->pipeline, &cursor, 64, room, &bytes,
																 &error),
					 GH_INVALID);
		CHECK_STATUS(c, "clear of a table", pipelines->clear(stage->pipeline, &error), GH_INVALID);
		CHECK_STATUS(c, "make_table", pipelines->make_table(stage->pipeline, &made, &error), GH_OK);
		expect_request(c, stage, request, GH_INVALID, "a request when the table was made");
		if (made.table != NULL)
			c->engine->table_destroy(made.table);
		CHECK_U64(c, "rows", made.rows, 10);
		CHECK(c, !made.several, "several rows of a key");
		CHECK_STATUS(c, "make_table again", pipelines->make_table(stage->pipeline, &made, &error),
					 GH_INVALID);
	}
	bench_close(c, &bench);
	free(given);
}

/* ---------------------------------------------------------------------- order */

/* Floats are added in the order of the rows, where that is asked for; behind a row that goes back all do. */
static void
sums_in_order(Context *c)
{
	HostState	state;
	GhHost		host;
	Stage	   *stage;
	GhBackRow	back[600];
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.count = 600,.back = back,.back_room = 600};
	uint16_t	given[] = {0, 1};
	uint64_t	low[2][600];
	uint64_t	high[600] = {0};
	uint8_t		null[600] = {0};
	GhVector	vectors[] = {{low[0], high, null}, {low[1], high, null}};
	float		sum = 0;
	GhStatus	status;
	GhError		error = {0};
	size_t		bytes;
	char	   *records;

	if (no_pipelines(c))
		return;
	host_init(&state, &host);
	stage = stage_make();
	stage->options.source.natts = 2;
	(void) stage_column(stage, GH_CLASS_FLOAT4, 1);
	(void) stage_column(stage, GH_CLASS_INT, 2);
	(void) stage_constant(stage, GH_CLASS_INT, 1);
	(void) stage_compute(stage, GH_OP_DIV, GH_CLASS_INT, 2, 1);
	stage_run_step(stage);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage->options.sink.groups.in_order = 1;
	stage_aggregate(stage, GH_AGGREGATE_SUM, 0, GH_CLASS_FLOAT4);
	stage_finish(c, stage);
	stage->engine = c->engine;
	status = stage_create(stage, &host, &error);
	if (status == GH_UNSUPPORTED)
		c->skip = "the engine adds in another order";
	else if (CHECK_STATUS(c, "create", status, GH_OK))
	{
		for (uint32_t i = 0; i < 600; i++)
		{
			float		value = (float) random_below(c, 1000000) / 7;

			low[0][i] = gh_from_double((double) value);
			low[1][i] = i != 400;
			if (i < 400)
				sum += value;
		}
		request.given = given;
		request.ngiven = 2;
		request.vectors = vectors;
		CHECK_STATUS(c, "a request", stage_request(stage, &request), GH_OK);
		CHECK_U64(c, "rows counted", request.counted, 400);
		CHECK_U64(c, "rows behind the step", request.passed[0], 400);
		if (CHECK_U64(c, "rows that go back", request.nback, 200))
			for (uint32_t i = 0; i < 200; i++)
				CHECK(c, back[i].page == 400 + i && back[i].step == (i > 0), "row %u goes back at step %u",
					  back[i].page,
					  back[i].step);
		records = stage_records(c, stage, &bytes);
		if (CHECK(c, records != NULL && bytes == sizeof(GhRecordHead) + sizeof(GhAggregateState), "%zu bytes",
				  bytes))
			CHECK_U64(c, "the sum", ((const GhAggregateState *) (records + sizeof(GhRecordHead)))->low,
					  gh_from_double((double) sum));
		free(records);
	}
	stage_end(stage);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	stage_drop(c, stage);
}

const Test	pipeline_request_tests[] = {
	{"pipelines: requests that are refused", refused_requests, false},
	{"pipelines: ranges that are refused", refused_ranges, false},
	{"pipelines: calls in the wrong order", handles, false},
	{"pipelines: calls in the wrong order, of tables", table_handles, false},
	{"pipelines: sums in the order of rows", sums_in_order, false},
	{NULL, NULL, false}
};
