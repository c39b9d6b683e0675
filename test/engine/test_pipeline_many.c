/*
 * test_pipeline_many.c
 *		Rows that become very many by probes: into each sink, by one probe and by two, with matches that hand back late,
 *		with marks, with too little memory.
 *
 * The CPU engine does all of them; others may hand back those that become more than GH_ROW_MATCHES_MAX.
 */
#include "pipeline_model.h"

#define MANY_KEY 5				/* that so many rows have */
#define MANY 18000				/* more than the CPU engine has waiting at a time */
#define MANY_OF_TWO 140			/* the same, squared */
/* another engine: more than a row's matches may be; the tests read each row of a table by a request of its own */
#define MANY_ELSEWHERE 5000
#define KEYS 10					/* of other rows */
#define PROBING 30				/* rows */
#define NO_BACK UINT32_MAX

/* What is probed.  The small table has a few rows of each of some numbers. */
typedef enum Shape
{
	ONE,						/* the table of many */
	TWICE,						/* that, and once more */
	BEHIND,						/* the small one, with marks, then that of many */
	AHEAD,						/* that of many, with marks, then the small one by its numbers */
	SHAPES
} Shape;

typedef struct Case
{
	Shape		shape;
	uint32_t	many;			/* rows of the one key */
	bool		left;			/* the probe of the many is a left one */
	bool		condition;		/* on the pair there */
	/* the number of the row that hands back those that match it; AHEAD: the key of such rows; NO_BACK: there is none */
	uint32_t	back;
	GhSinkKind	sink;
	bool		one_group;
	uint64_t	limit;			/* of the sink; 0: none */
	uint64_t	fail_at;		/* the allocation that fails from the second stage on; 0: none */
} Case;

/* Columns of both tables, and what they keep. */
enum
{
	KEY, NUMBER, TEXT, BACK, COLUMNS
};

typedef struct Result
{
	uint64_t	backs;
	bool		whole;			/* it came to its end */
	bool		refused;		/* the allocation failed */
} Result;

static const uint8_t classes[COLUMNS] = {GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_TEXT, GH_CLASS_BOOL};

/* ------------------------------------------------------------------- tables */

static Stage *
new_table(Context *c)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = COLUMNS;
	for (uint32_t i = 0; i < COLUMNS; i++)
		(void) stage_column(stage, classes[i], i + 1);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.numbered = 1;
	stage->options.sink.table.back_vector = BACK + 1;
	stage_part(stage, KEY, 64);
	stage_keep(stage, KEY, GH_CLASS_INT, 8);
	stage_keep(stage, NUMBER, GH_CLASS_INT, 8);
	stage_keep(stage, TEXT, GH_CLASS_TEXT, 0);
	stage_finish(c, stage);
	return stage;
}

static void
put_row(Stage *stage, uint64_t key, uint64_t number, bool back)
{
	static const char text[] = "the bytes of all texts that rows of these tables keep";
	GhValue		values[COLUMNS] = {
		{key, 0, 0}, {number, 0, 0}, {(uintptr_t) text + number % 30, number % 23, number % 50 == 1}, {back, 0, 0}
	};

	stage_row(stage, values);
}

/* Numbers from 0 on are those of rows with the one key, in their order. */
static Stage *
make_table_of_many(Context *c, const Case *this, const GhHost *host)
{
	Stage	   *stage = new_table(c);

	for (uint32_t i = 0; i < this->many; i++)
		put_row(stage, MANY_KEY, i, this->shape != AHEAD && i == this->back);
	for (uint32_t i = 0; i < 2 * KEYS; i++)
		if (i % KEYS != MANY_KEY)
			put_row(stage, i % KEYS, this->many + i, false);
	(void) stage_run(c, stage, host);
	stage_end(stage);
	return stage;
}

/* Two rows of each of the first numbers, and of the last of many. */
static Stage *
make_small_table(Context *c, const Case *this, const GhHost *host)
{
	Stage	   *stage = new_table(c);

	for (uint32_t i = 0; i < 2 * (KEYS + 1); i++)
	{
		uint32_t	key = i / 2 < KEYS ? i / 2 : this->many - 1;

		put_row(stage, key, i, this->shape == AHEAD && key == this->back);
	}
	(void) stage_run(c, stage, host);
	stage_end(stage);
	return stage;
}

/* ------------------------------------------------------------ who probes them */

static uint32_t
fill_of(const Stage *stage, uint32_t probe, uint32_t kept)
{
	return stage->fills[probe][kept].column;
}

static void
put_sink(Stage *stage, const Case *this, uint32_t number, uint32_t text)
{
	stage->options.sink.kind = this->sink;
	stage->options.memory_limit = this->limit;
	if (this->sink == GH_SINK_TABLE)
	{
		stage_part(stage, number, 64);
		stage_keep(stage, number, GH_CLASS_INT, 8);
		stage_keep(stage, text, GH_CLASS_TEXT, 0);
		return;
	}
	if (!this->one_group)
	{
		stage_key(stage, number, GH_CLASS_INT);
		stage_key(stage, text, GH_CLASS_TEXT);
	}
	if (this->sink != GH_SINK_GROUPS)
		return;
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_aggregate(stage, GH_AGGREGATE_SUM, number, GH_CLASS_INT);
	stage_aggregate(stage, GH_AGGREGATE_COUNT, text, GH_CLASS_TEXT);
}

static void
put_probes(Stage *stage, const Case *this, ModelTable *many, ModelTable *small)
{
	GhProbeKind kind = this->left ? GH_PROBE_LEFT : GH_PROBE_INNER;
	uint32_t	first = stage_probe(stage, this->shape == BEHIND ? small : many, this->shape == BEHIND ? GH_PROBE_LEFT :
									kind, true);
	uint32_t	second = 0;
	uint32_t	three;

	if (this->shape != ONE)
		second = stage_probe(stage, this->shape == AHEAD ? small : many, this->shape == AHEAD ? GH_PROBE_LEFT : kind,
							 true);
	three = stage_constant(stage, GH_CLASS_INT, 3);
	stage->marking[first] = this->shape == BEHIND || this->shape == AHEAD;
	stage_probe_part(stage, first, KEY, 64);
	stage_run_step(stage);
	if (this->condition)
		stage_filter(stage, stage_compute(stage, GH_OP_GE, GH_CLASS_INT, fill_of(stage, first, NUMBER), three));
	stage_probe_step(stage, first);
	if (this->shape == ONE)
		return;
	stage_probe_part(stage, second, fill_of(stage, first, this->shape == AHEAD ? NUMBER : KEY), 64);
	stage_probe_step(stage, second);
}

static Stage *
make_prober(Context *c, const Case *this, ModelTable *many, ModelTable *small)
{
	Stage	   *stage = stage_make();
	uint32_t	filled = this->shape == TWICE || this->shape == BEHIND;

	stage->options.source.natts = 1;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	put_probes(stage, this, many, small);
	put_sink(stage, this, fill_of(stage, filled, NUMBER), fill_of(stage, filled, TEXT));
	stage->scarce = this->limit > 0 || this->fail_at > 0;
	stage_finish(c, stage);
	/* BEHIND: the rows of the small table that become many are those that nothing here matches */
	for (uint32_t i = 0; i < (c->reduced ? PROBING / 2 : PROBING); i++)
		if (this->shape != BEHIND || i % (KEYS + 2) != MANY_KEY)
			stage_row(stage, &(GhValue) {i % (KEYS + 2), 0, i % 13 == 0});
	return stage;
}

static Result
run_case(Context *c, const Case *this)
{
	HostState	state;
	GhHost		host;
	Stage	   *many;
	Stage	   *small;
	Stage	   *prober;
	Result		result = {0, false, false};

	host_init(&state, &host);
	many = make_table_of_many(c, this, &host);
	small = make_small_table(c, this, &host);
	prober = make_prober(c, this, &many->made, &small->made);
	if (this->fail_at > 0)
	{
		state.fail_at = state.calls + this->fail_at;
		state.refuse_at = state.takes + this->fail_at;
	}
	if (c->failures == 0)
		result.whole = stage_run(c, prober, &host);
	result.backs = prober->backs;
	result.refused = state.failed || state.refused;
	stage_end(prober);
	stage_end_table(prober);
	stage_end_table(small);
	stage_end_table(many);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	CHECK(c, !state.overdrawn && !state.damaged, "the host's memory was misused");
	stage_drop(c, prober);
	stage_drop(c, small);
	stage_drop(c, many);
	if (c->failures > 0)
		printf("  shape %d, sink %d, %u rows, left %d, condition %d, back %u, limit %" PRIu64 ", failing %" PRIu64 "\n",
			   this->shape, this->sink, this->many, this->left, this->condition, this->back, this->limit, this->fail_at);
	return result;
}

/* ---------------------------------------------------------------------- tests */

/* One key has so many rows; a row that probes becomes them all. */
static void
many_matches(Context *c)
{
	static const uint32_t counts[] = {
		1, GH_VECTOR_ROWS, GH_VECTOR_ROWS + 1, GH_ROW_MATCHES_MAX, GH_ROW_MATCHES_MAX + 1, 16 * GH_VECTOR_ROWS,
		16 * GH_VECTOR_ROWS + 1, 32 * GH_VECTOR_ROWS, 50000
	};
	uint32_t	n = sizeof(counts) / sizeof(counts[0]) - (c->reduced && !c->on_host ? 2 : 0);

	if (no_pipelines(c))
		return;
	for (uint32_t i = 0; i < n && c->failures == 0; i++)
		for (uint32_t how = 0; how < 2 && c->failures == 0; how++)
		{
			Case		this = {.shape = ONE,.many = counts[i],.condition = how != 0,.back = NO_BACK,
			.sink = GH_SINK_GROUPS,.one_group = true};
			Result		result = run_case(c, &this);

			CHECK(c, result.backs == 0 || (!c->on_host && counts[i] > GH_ROW_MATCHES_MAX),
				  "with %u matches %" PRIu64 " rows go back", counts[i], result.backs);
		}
}

static Case
case_of(const Context *c, Shape shape, uint32_t sink, uint32_t back)
{
	static const GhSinkKind sinks[] = {GH_SINK_GROUPS, GH_SINK_TABLE, GH_SINK_ROWS};

	uint32_t	many = c->on_host ? MANY : MANY_ELSEWHERE;

	return (Case) {.shape = shape,.many = shape == TWICE ? MANY_OF_TWO : many,.left = sink % 2 != 0,.back = back,
	.sink = sinks[sink]};
}

/* Rows of a batch that is done in parts, of which some in each go back in front of the probe. */
static void
backs_in_parts(Context *c)
{
	Case		this = case_of(c, ONE, 0, NO_BACK);
	HostState	state;
	GhHost		host;
	Stage	   *many;
	Stage	   *prober;
	uint32_t	p;

	if (no_pipelines(c))
		return;
	this.many = 200;
	host_init(&state, &host);
	many = make_table_of_many(c, &this, &host);
	prober = stage_make();
	prober->options.source.natts = 2;
	(void) stage_column(prober, GH_CLASS_INT, 1);
	(void) stage_column(prober, GH_CLASS_INT, 2);
	p = stage_probe(prober, &many->made, GH_PROBE_INNER, true);
	(void) stage_compute(prober, GH_OP_DIV, GH_CLASS_INT, 0, 1);
	stage_probe_part(prober, p, 0, 64);
	stage_run_step(prober);
	stage_probe_step(prober, p);
	put_sink(prober, &this, fill_of(prober, p, NUMBER), fill_of(prober, p, TEXT));
	stage_finish(c, prober);
	for (uint32_t i = 0; i < 400; i++)
		stage_row(prober, (GhValue[]) {{MANY_KEY, 0, 0}, {i % 40, 0, 0}});
	(void) stage_run(c, prober, &host);
	CHECK(c, prober->backs >= 10, "%" PRIu64 " rows go back", prober->backs);
	stage_end(prober);
	stage_end_table(many);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	stage_drop(c, prober);
	stage_drop(c, many);
}

static void
many_rows(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t shape = 0; shape < SHAPES; shape++)
		for (uint32_t sink = 0; sink < 3 && c->failures == 0; sink++)
		{
			Case		this = case_of(c, (Shape) shape, sink, NO_BACK);
			Result		result;

			this.condition = sink == 2;
			result = run_case(c, &this);
			CHECK(c, result.backs == 0 || !c->on_host, "%" PRIu64 " rows go back", result.backs);
		}
}

/* One of the matches hands the row back: the first one that entered the table, or the last one. */
static void
late_backs(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t shape = 0; shape < SHAPES; shape++)
		for (uint32_t sink = 0; sink < 3; sink++)
			for (uint32_t last = c->reduced; last < 2 && c->failures == 0; last++)
			{
				Case		this = case_of(c, (Shape) shape, sink, 0);
				Result		result;

				if (last != 0)
					this.back = this.many - 1;
				result = run_case(c, &this);
				CHECK(c, result.backs > 0, "no row goes back");
			}
}

/* Limits of the sink's memory, from one for hardly a row of many up to one for all. */
static void
limited_sinks(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t shape = 0; shape < SHAPES; shape++)
		for (uint32_t sink = 0; sink < 3; sink++)
		{
			Case		this = case_of(c, (Shape) shape, sink, NO_BACK);
			uint32_t	short_of = 0;
			Result		result = {0, false, false};

			for (this.limit = 40000; !result.whole || result.backs > 0; this.limit *= c->reduced ? 4 : 2)
			{
				result = run_case(c, &this);
				short_of += result.backs > 0;
				if (c->failures > 0 || this.limit > UINT64_C(1) << 34)
					break;
			}
			CHECK(c, c->failures > 0 || (short_of > 0 && result.whole), "rows went back with %u limits", short_of);
		}
}

static void
failing_allocations(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint32_t shape = 0; shape < SHAPES; shape++)
		for (uint32_t sink = 0; sink < 3; sink++)
		{
			Case		this = case_of(c, (Shape) shape, sink, NO_BACK);
			Result		result = {0, false, true};

			for (this.fail_at = 1; result.refused && c->failures == 0; this.fail_at += c->reduced ? 7 : 1)
				result = run_case(c, &this);
		}
}

const Test	pipeline_many_tests[] = {
	{"pipelines: as many matches as may be", many_matches, false},
	{"pipelines: rows that go back in each part of a batch", backs_in_parts, false},
	{"pipelines: rows that become very many", many_rows, false},
	{"pipelines: rows that become very many, with a match that hands back", late_backs, false},
	{"pipelines: rows that become very many, with limits of memory", limited_sinks, false},
	{"pipelines: rows that become very many, each allocation fails", failing_allocations, false},
	{NULL, NULL, false}
};
