/*
 * test_pipeline_columns.c
 *		Rows that enter a pipeline in the middle, as columns, and groups that are the source of another one.
 */
#include "pipeline_bench.h"
#include "engine/page/packed.h"

#define ENTERED 1024			/* rows, as many as engines do at a time at most */
#define MATCHES 32				/* of each: more than engines put aside */
#define MANY_TIMES 20			/* so many more rows that enter, of one key: more than are put aside of one row */

/* A program of columns and temporaries, all of them INT, or FLOAT8. */
typedef struct Small
{
	GhProgram	head;
	GhConstant	one;
	GhInstruction instructions[3];
	GhColumn	columns[2];
} Small;

/* Vectors: columns 0 and 1, constant 2, temporaries 3 and 4. */
static Small *
small_program(uint32_t ninstructions, uint8_t load)
{
	Small	   *small = aligned_alloc(16, (sizeof(Small) + 15) & ~(size_t) 15);
	GhColumn   *columns;

	memset(small, 0, sizeof(*small));
	small->head = (GhProgram) {GH_PROGRAM_MAGIC, 0, 1, 0, ninstructions, 2, 2, 0};
	small->one = (GhConstant) {GH_CLASS_INT, 0, {0}, 1, 0};
	columns = (GhColumn *) gh_program_columns(&small->head);
	columns[0] = (GhColumn) {1, load, 0, 0, 0};
	columns[1] = (GhColumn) {2, load, 0, 0, 0};
	small->head.bytes = (uint32_t) ((char *) (columns + 2) - (char *) small);
	return small;
}

static void
give(Context *c, GhPipeline *pipeline, uint32_t step, uint32_t ngiven, const uint16_t *given, uint64_t *const *low,
	 uint32_t count)
{
	static uint8_t null[ENTERED];
	static GhBackRow back[ENTERED];
	GhVector	vectors[2];
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.step = step,.ngiven = ngiven,.given = given,
	.vectors = vectors,.count = count,.back = back,.back_room = ENTERED};
	GhStatus	status;

	for (uint32_t v = 0; v < ngiven; v++)
		vectors[v] = (GhVector) {low[v], NULL, null};
	status = pipeline->engine->submit(pipeline, &request);
	if (status == GH_BUSY)
		status = pipeline->engine->wait(&request);
	CHECK_STATUS(c, "rows that are handed over", status, GH_OK);
	CHECK_U64(c, "rows that went back", request.nback, 0);
}

/* Keys 0 to 31, each so many times; key 0 in so many times as many rows as enter, too. */
static GhTable *
several_of_each(Context *c, const GhHost *host, uint32_t times)
{
	static const GhKeyPart part = {0, 64, 0};
	static const uint16_t given[2] = {0, 1};
	static uint64_t keys[ENTERED];
	uint64_t   *const low[2] = {keys, keys};
	Small	   *small = small_program(0, GH_LOAD_INT8);
	GhPipelineOptions options = {.program = &small->head,.program_bytes = small->head.bytes,
	.source = {.kind = GH_SOURCE_COLUMNS,.natts = 2},.sink = {.kind = GH_SINK_TABLE,
	.table = {.nparts = 1,.parts = &part,.matches = GH_MATCHES_ALL}}};
	GhPipeline *pipeline;
	GhMadeTable made = {0};
	GhError		error = {0};

	for (uint32_t i = 0; i < ENTERED; i++)
		keys[i] = i / MATCHES;
	CHECK_STATUS(c, "create", c->engine->pipelines->create(host, &options, &pipeline, &error), GH_OK);
	give(c, pipeline, 0, 2, given, low, ENTERED);
	memset(keys, 0, sizeof(keys));
	for (uint32_t i = 0; i < times; i++)
		give(c, pipeline, 0, 2, given, low, ENTERED);
	CHECK_STATUS(c, "make_table", pipeline->engine->make_table(pipeline, &made, &error), GH_OK);
	pipeline->engine->destroy(pipeline);
	free(small);
	return made.table;
}

/* The sum, of 64 bits, of the only group's only aggregate. */
static uint64_t
only_sum(Context *c, GhPipeline *pipeline)
{
	uint64_t	buffer[64];
	GhCursor	cursor = {0};
	GhError		error = {0};
	size_t		bytes = 0;

	CHECK_STATUS(c, "results", pipeline->engine->results(pipeline, &cursor, sizeof(buffer), buffer, &bytes, &error),
				 GH_OK);
	CHECK_U64(c, "bytes of results", bytes, sizeof(GhRecordHead) + sizeof(GhAggregateState));
	return ((const GhAggregateState *) ((const GhRecordHead *) buffer + 1))->low;
}

/*
 * Rows bring temporary 3, which steps set anew: 4 = 3 + 1, 3 = 4 + 1; then each has more matches than all that are
 * put aside, and with the CPU engine some of them alone have.  Each row is summed as often as it has matches.
 */
static void
vectors_set_anew(Context *c)
{
	static const uint16_t given[2] = {0, 3};
	static const GhKeyPart part = {0, 64, 0};
	static uint64_t keys[ENTERED];
	static uint64_t brought[ENTERED];
	uint64_t   *const low[2] = {keys, brought};
	GhAggregate aggregate = {GH_AGGREGATE_SUM, GH_CLASS_INT, 3, GH_AGGREGATE_NO_FILTER, 0};
	GhStep		steps[3] = {{1, 0}, {3, 0}, {3, 1}};
	GhProbe		probe = {.kind = GH_PROBE_INNER,.nparts = 1,.parts = &part};
	Small	   *small;
	HostState	state;
	GhHost		host;
	GhPipelineOptions options = {0};
	GhPipeline *pipeline;
	GhError		error = {0};
	uint32_t	times = c->on_host ? MANY_TIMES : 0;
	uint64_t	expected = 0;

	if (no_pipelines(c))
		return;
	host_init(&state, &host);
	small = small_program(3, GH_LOAD_INT8);
	small->instructions[0] = (GhInstruction) {GH_OP_ADD, GH_CLASS_INT, 8, 3, {1, 2, 0}, 0};
	small->instructions[1] = (GhInstruction) {GH_OP_ADD, GH_CLASS_INT, 8, 4, {3, 2, 0}, 0};
	small->instructions[2] = (GhInstruction) {GH_OP_ADD, GH_CLASS_INT, 8, 3, {4, 2, 0}, 0};
	probe.table = several_of_each(c, &host, times);
	options = (GhPipelineOptions) {.program = &small->head,.program_bytes = small->head.bytes,
	.source = {.kind = GH_SOURCE_COLUMNS,.natts = 2},.nsteps = 3,.steps = steps,.nprobes = 1,.probes = &probe,
	.sink = {.kind = GH_SINK_GROUPS,.groups = {.naggregates = 1,.aggregates = &aggregate}}};
	for (uint32_t i = 0; i < ENTERED; i++)
	{
		keys[i] = i % MATCHES;
		brought[i] = i;
		expected += (uint64_t) (i + 2) * (MATCHES + (keys[i] == 0 ? times * ENTERED : 0));
	}
	CHECK_STATUS(c, "create", c->engine->pipelines->create(&host, &options, &pipeline, &error), GH_OK);
	give(c, pipeline, 1, 2, given, low, ENTERED);
	CHECK_U64(c, "the sum", only_sum(c, pipeline), expected);
	/* once more, now that it is known how many fit */
	give(c, pipeline, 1, 2, given, low, ENTERED);
	CHECK_U64(c, "the sum of all", only_sum(c, pipeline), 2 * expected);
	pipeline->engine->destroy(pipeline);
	c->engine->table_destroy(probe.table);
	free(small);
	CHECK_U64(c, "bytes left", state.allocated, 0);
}

/* A sum of float8 out of groups, of either sign: it always fits. */
static void
float_sums(Context *c)
{
	static const uint16_t given[2] = {0, 1};
	static const GhGroupColumn columns[2] = {{GH_GROUP_VALUE, 0}, {GH_GROUP_VALUE, 0}};
	GhAggregate aggregate = {GH_AGGREGATE_SUM, GH_CLASS_FLOAT8, 0, GH_AGGREGATE_NO_FILTER, 0};
	GhPipelineRequest request = {.kind = GH_INPUT_SOURCE,.count = 1,.back_room = 1};
	GhBackRow	back;
	Small	   *small;
	HostState	state;
	GhHost		host;
	GhPipelineOptions options;
	GhPipeline *groups;
	GhPipeline *reader;
	GhError		error = {0};

	if (no_pipelines(c))
		return;
	host_init(&state, &host);
	small = small_program(0, GH_LOAD_FLOAT8);
	for (int sign = -1; sign <= 1; sign += 2)
	{
		uint64_t	value = gh_from_double(sign * 1.5);
		uint64_t   *const low[2] = {&value, &value};

		options = (GhPipelineOptions) {.program = &small->head,.program_bytes = small->head.bytes,
		.source = {.kind = GH_SOURCE_COLUMNS,.natts = 2},
		.sink = {.kind = GH_SINK_GROUPS,.groups = {.naggregates = 1,.aggregates = &aggregate}}};
		CHECK_STATUS(c, "groups", c->engine->pipelines->create(&host, &options, &groups, &error), GH_OK);
		give(c, groups, 0, 2, given, low, 1);
		options.source = (GhPipelineSource) {.kind = GH_SOURCE_GROUPS,.natts = 2,.groups = groups,.columns = columns};
		CHECK_STATUS(c, "a reader", c->engine->pipelines->create(&host, &options, &reader, &error), GH_OK);
		request.back = &back;
		if (reader->engine->submit(reader, &request) == GH_BUSY)
			(void) reader->engine->wait(&request);
		CHECK_STATUS(c, "the group", request.status, GH_OK);
		CHECK_U64(c, "groups that went back", request.nback, 0);
		CHECK_U64(c, "the sum", only_sum(c, reader), value);
		reader->engine->destroy(reader);
		groups->engine->destroy(groups);
	}
	free(small);
	CHECK_U64(c, "bytes left", state.allocated, 0);
}

/* A column that a probe fills is given as well, packed, with numbers of few bits: what is known of these is not so of what is filled in. */
static void
filled_over_packed(Context *c)
{
	static const uint16_t given[2] = {0, 1};
	static const GhKeyPart part = {0, 64, 0};
	static const GhProbeFill fill = {1, 0};
	static const GhKept kept = {1, GH_CLASS_INT, 8};
	static const GhRecordKey key = {0, GH_CLASS_INT, 0};
	static const uint64_t large = UINT64_C(1) << 61;
	static uint64_t zeroes[ENTERED];
	static uint64_t larges[ENTERED];
	static uint8_t null[ENTERED];
	static GhBackRow back[ENTERED];
	uint64_t   *const inner[2] = {zeroes, larges};
	GhVector	vector = {zeroes, NULL, null};
	GhPackedColumn *packed[2];
	GhAggregate aggregate = {GH_AGGREGATE_SUM, GH_CLASS_INT, 1, GH_AGGREGATE_NO_FILTER, 0};
	GhStep		steps[1] = {{0, 1}};
	GhProbe		probe = {.kind = GH_PROBE_INNER,.nparts = 1,.parts = &part,.nfills = 1,.fills = &fill};
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 2,.given = given,.count = ENTERED,.back = back,.back_room = ENTERED};
	uint64_t	buffer[64];
	const GhAggregateState *sum;
	GhCursor	cursor = {0};
	size_t		bytes = 0;
	Small	   *small;
	HostState	state;
	GhHost		host;
	GhPipelineOptions options;
	GhPipeline *pipeline;
	GhMadeTable made = {0};
	GhError		error = {0};

	if (no_pipelines(c) || !c->engine->pipelines->takes_packed)
		return;
	host_init(&state, &host);
	small = small_program(0, GH_LOAD_INT8);
	larges[0] = large;
	options = (GhPipelineOptions) {.program = &small->head,.program_bytes = small->head.bytes,
	.source = {.kind = GH_SOURCE_COLUMNS,.natts = 2},.sink = {.kind = GH_SINK_TABLE,
	.table = {.nparts = 1,.parts = &part,.nkept = 1,.kept = &kept,.matches = GH_MATCHES_ANY}}};
	CHECK_STATUS(c, "create", c->engine->pipelines->create(&host, &options, &pipeline, &error), GH_OK);
	give(c, pipeline, 0, 2, given, inner, 1);
	CHECK_STATUS(c, "make_table", pipeline->engine->make_table(pipeline, &made, &error), GH_OK);
	pipeline->engine->destroy(pipeline);
	probe.table = made.table;
	options = (GhPipelineOptions) {.program = &small->head,.program_bytes = small->head.bytes,
	.source = {.kind = GH_SOURCE_COLUMNS,.natts = 1},.nsteps = 1,.steps = steps,.nprobes = 1,.probes = &probe,
	.sink = {.kind = GH_SINK_GROUPS,.groups = {.nkeys = 1,.keys = &key,.naggregates = 1,.aggregates = &aggregate}}};
	CHECK_STATUS(c, "create", c->engine->pipelines->create(&host, &options, &pipeline, &error), GH_OK);
	for (uint32_t i = 0; i < 2; i++)
	{
		const GhColumn *column = &gh_program_columns(&small->head)[i];

		packed[i] = aligned_alloc(64, (gh_packed_bytes_max(column, &vector, ENTERED) + 63) & ~(size_t) 63);
		gh_pack_column(column, &vector, ENTERED, packed[i]);
	}
	request.packed = (const GhPackedColumn *const *) packed;
	if (pipeline->engine->submit(pipeline, &request) == GH_BUSY)
		(void) pipeline->engine->wait(&request);
	CHECK_STATUS(c, "packed rows", request.status, GH_OK);
	CHECK_STATUS(c, "results", pipeline->engine->results(pipeline, &cursor, sizeof(buffer), buffer, &bytes, &error), GH_OK);
	/* a record: head, the key, the state */
	sum = (const GhAggregateState *) ((const char *) buffer + bytes - sizeof(GhAggregateState));

	CHECK_U64(c, "rows", sum->count, ENTERED);
	CHECK_U64(c, "the sum, below", sum->low, 0);
	CHECK_U64(c, "the sum, above", sum->high, ENTERED / 8);
	pipeline->engine->destroy(pipeline);
	c->engine->table_destroy(probe.table);
	free(packed[0]);
	free(packed[1]);
	free(small);
	CHECK_U64(c, "bytes left", state.allocated, 0);
}

const Test	pipeline_column_tests[] = {
	{"pipelines: vectors that steps set anew", vectors_set_anew, false},
	{"pipelines: filled over packed", filled_over_packed, false},
	{"pipelines: sums of floats out of groups", float_sums, false},
	{NULL, NULL, false}
};
