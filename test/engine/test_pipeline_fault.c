/*
 * test_pipeline_fault.c
 *		Pipelines on a device of which the n-th allocation or launch fails, for all n: rows go back for want of memory, or
 *		a call ends with the right status; a device that failed says so from then on; and nothing is left over.
 */
#include "pipeline_model.h"

#define ROWS 20000				/* more than a batch is made for at first */
#define KEYS 4000				/* of a table, five rows each */

/* One life of some pipelines. */
typedef struct Life
{
	Context    *c;
	HostState	state;
	GhHost		host;
	uint64_t   *low[2];
	uint64_t   *high;
	uint8_t    *null;
	GhBackRow  *back;
	GhStatus	expected;		/* what a failure is */
	bool		failed;
	bool		short_of_memory;	/* rows went back for it */
} Life;

static const char text[] = "texts of some lengths";

static void
life_init(Context *c, Life *life, GhStatus expected)
{
	memset(life, 0, sizeof(*life));
	life->c = c;
	life->expected = expected;
	host_init(&life->state, &life->host);
	life->low[0] = make_words(ROWS);
	life->low[1] = make_words(ROWS);
	life->high = make_words(ROWS);
	life->null = make_memory(ROWS);
	life->back = make_memory(ROWS * sizeof(GhBackRow));
	memset(life->null, 0, ROWS);
	for (uint32_t i = 0; i < ROWS; i++)
	{
		life->low[0][i] = i % KEYS;
		life->low[1][i] = (uintptr_t) text;
		life->high[i] = i % sizeof(text);
	}
}

static void
life_end(Life *life)
{
	CHECK_U64(life->c, "bytes left", life->state.allocated + life->state.device_bytes, 0);
	free(life->low[0]);
	free(life->low[1]);
	free(life->high);
	free(life->null);
	free(life->back);
}

/* True: the call went well; else the life is over. */
static bool
goes_on(Life *life, const char *what, GhStatus status)
{
	if (status == GH_OK)
		return true;
	CHECK_STATUS(life->c, what, status, life->expected);
	life->failed = true;
	return false;
}

static bool
give(Life *life, Stage *stage, GhInputKind kind, uint64_t count, uint64_t *counted)
{
	static const uint16_t given[] = {0, 1};
	GhVector	vectors[] = {{life->low[0], life->high, life->null}, {life->low[1], life->high, life->null}};
	GhPipelineRequest request = {.kind = kind,.ngiven = 2,.given = given,.vectors = vectors,.count = count,
	.back = life->back,.back_room = ROWS};

	if (!goes_on(life, "a request", stage_request(stage, &request)))
	{
		GhError		error;
		GhPipelineStats stats;

		CHECK_STATUS(life->c, "stats afterwards", life->c->engine->pipelines->stats(stage->pipeline, &stats, &error),
					 life->expected == GH_DEVICE_ERROR ? GH_DEVICE_ERROR : GH_OK);
		return false;
	}
	CHECK_U64(life->c, "rows that went back", request.nback, request.no_memory);
	life->short_of_memory |= request.no_memory > 0;
	*counted = request.counted;
	return true;
}

static bool
open_stage(Life *life, Stage *stage)
{
	GhError		error = {0};

	stage_finish(life->c, stage);
	return goes_on(life, "create", stage_create(stage, &life->host, &error));
}

static Stage *
new_stage(Life *life, uint32_t natts)
{
	Stage	   *stage = stage_make();

	stage->engine = life->c->engine;
	stage->options.source.natts = natts;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	(void) stage_column(stage, GH_CLASS_TEXT, 2);
	return stage;
}

/* All records; false: it failed. */
static bool
fetch(Life *life, Stage *stage)
{
	static uint64_t buffer[1 << 17];
	GhCursor	cursor = {0};
	GhError		error = {0};
	size_t		bytes;

	while (!cursor.finished)
		if (!goes_on(life, "results", life->c->engine->pipelines->results(stage->pipeline, &cursor, sizeof(buffer),
																		  buffer, &bytes, &error)))
			return false;
	return true;
}

/* Groups, by text, of rows that a probe of the table makes five of each. */
static void
probe(Life *life, ModelTable *table, bool whole)
{
	Stage	   *stage = new_stage(life, 2);
	uint32_t	p = stage_probe(stage, table, GH_PROBE_INNER, true);
	uint64_t	counted = 0;

	stage_probe_part(stage, p, 0, 64);
	stage_probe_step(stage, p);
	stage->marking[p] = true;
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_key(stage, 1, GH_CLASS_TEXT);
	stage_key(stage, stage->fills[p][0].column, GH_CLASS_INT);
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	if (open_stage(life, stage) && give(life, stage, GH_INPUT_COLUMNS, ROWS, &counted))
	{
		CHECK(life->c, !whole || life->short_of_memory || counted == (uint64_t) ROWS * (ROWS / KEYS), "%" PRIu64
			  " rows were counted", counted);
		(void) fetch(life, stage);
	}
	stage_end(stage);
	stage_drop(life->c, stage);
}

/* The rows of the table as records. */
static void
read_rows(Life *life, ModelTable *table, uint64_t rows)
{
	Stage	   *stage = stage_make();
	uint64_t	counted = 0;

	stage->engine = life->c->engine;
	stage_of_table(stage, table);
	stage->options.sink.kind = GH_SINK_ROWS;
	stage_key(stage, 0, GH_CLASS_INT);
	stage_key(stage, 1, GH_CLASS_TEXT);
	if (open_stage(life, stage) && give(life, stage, GH_INPUT_UNMATCHED, rows, &counted))
		(void) fetch(life, stage);
	stage_end(stage);
	stage_drop(life->c, stage);
}

static void
live(Life *life)
{
	Stage	   *stage = new_stage(life, 2);
	GhMadeTable made = {0};
	GhError		error = {0};
	uint64_t	counted = 0;

	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.numbered = 1;
	stage_part(stage, 0, 64);
	stage_keep(stage, 0, GH_CLASS_INT, 8);
	stage_keep(stage, 1, GH_CLASS_TEXT, 0);
	if (open_stage(life, stage) && give(life, stage, GH_INPUT_COLUMNS, ROWS, &counted) &&
		goes_on(life, "make_table", life->c->engine->pipelines->make_table(stage->pipeline, &made, &error)))
	{
		bool		whole = !life->short_of_memory;

		CHECK_U64(life->c, "rows of the table", made.rows, counted);
		stage->made.table = made.table;
		stage->made.nkept = 2;
		memcpy(stage->made.kept, stage->kept, sizeof(stage->made.kept));
		probe(life, &stage->made, whole);
		if (!life->failed)
			read_rows(life, &stage->made, made.rows);
	}
	stage_end(stage);
	stage_end_table(stage);
	stage_drop(life->c, stage);
}

/* The n-th allocation, or launch, fails, for ever larger n, until a life comes to its end without. */
static void
fail_each(Context *c, bool launches)
{
	FaultArm	arm = no_pipelines(c) ? NULL : find_fault_arm(c);
	uint64_t	n = 1;
	uint64_t	quiet = 0;		/* lives that nothing came of */

	if (arm == NULL)
		return;
	/* an allocation that fails may be met by a smaller one */
	for (; quiet < (launches ? 1 : 20) && n < 2000 && c->failures == 0; n += c->reduced ? 3 : 1)
	{
		Life		life;

		life_init(c, &life, launches ? GH_DEVICE_ERROR : GH_NO_MEMORY);
		arm(launches ? 0 : n, launches ? n : 0);
		live(&life);
		arm(0, 0);
		quiet = life.failed || life.short_of_memory ? 0 : quiet + 1;
		life_end(&life);
		if (c->failures > 0)
			printf("  %s %" PRIu64 " failed\n", launches ? "launch" : "allocation", n);
	}
	/* of the stand-in a request is one launch */
	CHECK(c, c->failures > 0 || (n > (c->stand_in ? 3 : 10) && n < 2000), "%" PRIu64 " failures were tried", n);
}

static void
failing_allocations(Context *c)
{
	fail_each(c, false);
}

static void
failing_launches(Context *c)
{
	fail_each(c, true);
}

const Test	pipeline_fault_tests[] = {
	{"pipelines: failed device allocations", failing_allocations, false},
	{"pipelines: failed device launches", failing_launches, false},
	{NULL, NULL, false}
};
