/*
 * test_pipeline_sets.c
 *		Rows that are added to groups of several sets: as of aggregates with DISTINCT of several arguments, where a group
 *		of set s has the s-th of them as a key, and NULL in place of all others; with filters, with rows that go back, in
 *		rows that become several, with more groups than are expected, and with memory for none, some and all of them.
 */
#include "pipeline_model.h"

#define GROUPS 40
#define VALUES 3000
#define LABELS 1500
#define DIVISORS 97				/* 0 is one: such rows go back */
#define LARGE_EVERY 41			/* rows with a value that is not summed */
#define MATCHES 5				/* rows of a key, at most */
#define SETS 8

typedef struct Case
{
	uint32_t	sets;
	bool		keyless;		/* one group, of all sets */
	bool		several;		/* a probe makes several rows of one */
	uint64_t	cut;			/* rows of a request */
	uint64_t	expected;
	uint64_t	limit;			/* of the sink's memory; 0: none */
	uint64_t	fail_at;		/* the allocation that fails; 0: none */
} Case;

typedef struct Result
{
	uint64_t	backs;
	bool		whole;			/* it came to its end */
	bool		refused;		/* an allocation failed */
} Result;

/* Columns of the source. */
enum
{
	GROUP, NUMBER, LABEL, VALUE, DIVISOR, LARGE, SOME, COLUMNS
};

static const uint8_t classes[COLUMNS] = {
	GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_TEXT, GH_CLASS_INT, GH_CLASS_INT, GH_CLASS_INT128, GH_CLASS_BOOL
};

/* What sets have as their own key, in turns. */
static const uint32_t arguments[] = {NUMBER, LABEL, VALUE};

static uint32_t
argument_of(uint32_t set)
{
	return arguments[set % (sizeof(arguments) / sizeof(arguments[0]))];
}

/* -------------------------------------------------------------------- a table */

/* Up to so many rows of each of some keys. */
static Stage *
make_table(Context *c, const GhHost *host)
{
	Stage	   *stage = stage_make();

	stage->options.source.natts = 2;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	(void) stage_column(stage, GH_CLASS_INT, 2);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage_part(stage, 0, 64);
	stage_keep(stage, 1, GH_CLASS_INT, 8);
	stage_finish(c, stage);
	for (uint32_t i = 0; i < GROUPS * MATCHES; i++)
		if (i / GROUPS <= i % GROUPS % MATCHES)
			stage_row(stage, (GhValue[]) {{i % GROUPS, 0, 0}, {i % 7, 0, i % 9 == 0}});
	(void) stage_run(c, stage, host);
	stage_end(stage);
	return stage;
}

/* ------------------------------------------------------------------- the sets */

/* The keys of all sets: the group, unless there is no room for it, and an argument for each set. */
static void
put_keys(Stage *stage, const Case *this, uint32_t no_number, uint32_t no_text)
{
	GhGroupsSink *sink = &stage->options.sink.groups;
	uint32_t	first = this->sets < STAGE_KEYS_MAX;

	if (this->keyless)
		return;
	if (first != 0)
		stage_key(stage, GROUP, GH_CLASS_INT);
	for (uint32_t s = 0; s < this->sets; s++)
		stage_key(stage, argument_of(s), classes[argument_of(s)]);
	for (uint32_t s = 0; s < this->sets; s++)
		for (uint32_t k = 0; k < sink->nkeys; k++)
		{
			GhRecordKey *key = &stage->keys[s * sink->nkeys + k];

			*key = stage->keys[k];
			if (k >= first)
				key->vector = (uint16_t) (k - first == s ? argument_of(s) :
										  key->value_class == GH_CLASS_TEXT ? no_text : no_number);
		}
}

/* Each aggregate takes rows of one set alone, but one, which takes those of all. */
static void
put_aggregates(Stage *stage, const Case *this, uint32_t never, uint32_t filled)
{
	GhGroupsSink *sink = &stage->options.sink.groups;

	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_aggregate(stage, GH_AGGREGATE_SUM, VALUE, GH_CLASS_INT);
	stage_aggregate(stage, GH_AGGREGATE_SUM, LARGE, GH_CLASS_INT128);
	stage_aggregate(stage, GH_AGGREGATE_COUNT, LABEL, GH_CLASS_TEXT);
	stage_aggregate(stage, GH_AGGREGATE_MIN, NUMBER, GH_CLASS_INT);
	stage_aggregate(stage, GH_AGGREGATE_BOOL_OR, SOME, GH_CLASS_BOOL);
	stage_aggregate(stage, GH_AGGREGATE_SUM, filled, GH_CLASS_INT);
	for (uint32_t s = 0; s < this->sets; s++)
		for (uint32_t a = 0; a < sink->naggregates; a++)
		{
			GhAggregate *aggregate = &stage->aggregates[s * sink->naggregates + a];

			*aggregate = stage->aggregates[a];
			aggregate->filter = (uint16_t) (a == 0 ? GH_AGGREGATE_NO_FILTER : a % this->sets != s ? never :
											a % 2 == 0 ? SOME : GH_AGGREGATE_NO_FILTER);
		}
}

static Stage *
make_stage(Context *c, const Case *this, ModelTable *table)
{
	Stage	   *stage = stage_make();
	uint32_t	p = 0;
	uint32_t	no_number;
	uint32_t	no_text;
	uint32_t	never;

	stage->options.source.natts = COLUMNS;
	for (uint32_t i = 0; i < COLUMNS; i++)
		(void) stage_column(stage, classes[i], i + 1);
	if (this->several)
		p = stage_probe(stage, table, GH_PROBE_LEFT, true);
	no_number = stage_null(stage, GH_CLASS_INT);
	no_text = stage_null(stage, GH_CLASS_TEXT);
	never = stage_constant(stage, GH_CLASS_BOOL, 0);
	(void) stage_compute(stage, GH_OP_DIV, GH_CLASS_INT, VALUE, DIVISOR);
	if (this->several)
		stage_probe_part(stage, p, GROUP, 64);
	stage_run_step(stage);
	if (this->several)
		stage_probe_step(stage, p);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage->options.sink.groups.nsets = this->sets;
	stage->options.sink.groups.expected = this->expected;
	stage->options.sink.groups.seed = c->seed;
	stage->options.memory_limit = this->limit;
	put_keys(stage, this, no_number, no_text);
	put_aggregates(stage, this, never, this->several ? stage->fills[p][0].column : VALUE);
	stage->scarce = this->limit > 0 || this->fail_at > 0;
	stage->cut = this->cut;
	stage_finish(c, stage);
	return stage;
}

/* Keys that are NULL, so that a group is one of several sets, and equal ones of different sets. */
static void
put_rows(Stage *stage, uint32_t count)
{
	static char text[LABELS + 16];

	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (char) ('a' + i * 7 % 26 + i / 26 % 5);
	for (uint32_t i = 0; i < count; i++)
		stage_row(stage, (GhValue[]) {
			{i % GROUPS, 0, i % 113 == 0}, {i * 31 % VALUES, 0, i % 17 == 0},
			{(uintptr_t) text + i * 13 % LABELS, i % 11, i % 19 == 0}, {i % 501, 0, i % 23 == 0}, {i % DIVISORS, 0, 0},
			{i, i % LARGE_EVERY == 0 ? UINT64_C(1) << 40 : 0, 0}, {i % 3 == 0, 0, i % 5 == 0}
		});
}

static Result
run_case(Context *c, const Case *this, uint32_t rows)
{
	HostState	state;
	GhHost		host;
	Stage	   *table;
	Stage	   *stage;
	Result		result = {0, false, false};

	host_init(&state, &host);
	table = make_table(c, &host);
	stage = make_stage(c, this, &table->made);
	put_rows(stage, rows);
	if (this->fail_at > 0)
	{
		state.fail_at = state.calls + this->fail_at;
		state.refuse_at = state.takes + this->fail_at;
	}
	if (c->failures == 0)
		result.whole = stage_run(c, stage, &host);
	result.backs = stage->backs;
	result.refused = state.failed || state.refused;
	stage_end(stage);
	stage_end_table(table);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	CHECK(c, !state.overdrawn && !state.damaged, "the host's memory was misused");
	stage_drop(c, stage);
	stage_drop(c, table);
	if (c->failures > 0)
		printf("  %u sets, keyless %d, several %d, requests of %" PRIu64 ", limit %" PRIu64 ", failing %" PRIu64 "\n",
			   this->sets, this->keyless, this->several, this->cut, this->limit, this->fail_at);
	return result;
}

static bool
no_sets(Context *c)
{
	if (no_pipelines(c))
		return true;
	if (!c->engine->pipelines->adds_sets)
		c->skip = "the engine adds rows for one set";
	return c->skip != NULL;
}

/* ---------------------------------------------------------------------- tests */

/* Each number of sets, in one request and in many; some rows go back, of which nothing is in any set. */
static void
all_sets(Context *c)
{
	static const uint64_t cuts[] = {700, 1000000};
	uint32_t	rows = (uint32_t) sized(c, 5000, 1000);

	if (no_sets(c))
		return;
	for (uint32_t sets = 1; sets <= SETS; sets++)
		for (uint32_t how = 0; how < 4 && c->failures == 0; how++)
		{
			Case		this = {.sets = sets,.keyless = how == 3,.several = how == 2,.cut = cuts[how % 2],.expected = how == 1};
			Result		result = run_case(c, &this, rows);

			CHECK(c, c->failures > 0 || result.backs >= rows / DIVISORS, "%" PRIu64 " rows go back", result.backs);
		}
}

/* Far more groups than are expected, found by many rows at a time. */
static void
many_groups(Context *c)
{
	Case		this = {.sets = 3,.cut = 1000000,.expected = 50};

	if (no_sets(c))
		return;
	(void) run_case(c, &this, (uint32_t) sized(c, 120000, 10000));
}

/* Limits of the sink's memory, from one for hardly a group up to one for all: a row has its groups of all sets, or goes back. */
static void
limited_sets(Context *c)
{
	uint32_t	rows = (uint32_t) sized(c, 5000, 1000);

	if (no_sets(c))
		return;
	for (uint32_t several = 0; several < 2; several++)
	{
		Case		this = {.sets = 3,.several = several != 0,.cut = 2500,.expected = 1};
		Result		all = run_case(c, &this, rows);
		Result		result = {0, false, false};
		uint32_t	short_of = 0;

		for (this.limit = 8000; (!result.whole || result.backs > all.backs) && c->failures == 0; this.limit += this.limit / 2)
		{
			result = run_case(c, &this, rows);
			short_of += result.whole && result.backs > all.backs;
			if (this.limit > UINT64_C(1) << 34)
				break;
		}
		CHECK(c, c->failures > 0 || (short_of > 0 && result.whole), "rows went back with %u limits", short_of);
	}
}

static void
failing_sets(Context *c)
{
	if (no_sets(c))
		return;
	for (uint32_t several = 0; several < 2; several++)
	{
		Case		this = {.sets = 3,.several = several != 0,.cut = 700,.expected = 1};
		Result		result = {0, false, true};

		for (this.fail_at = 1; result.refused && c->failures == 0; this.fail_at += c->reduced ? 7 : 1)
			result = run_case(c, &this, (uint32_t) sized(c, 1500, 700));
	}
}

const Test	pipeline_set_tests[] = {
	{"pipelines: groups of several sets", all_sets, false},
	{"pipelines: groups of several sets that nobody expects", many_groups, false},
	{"pipelines: groups of several sets, with limits of memory", limited_sets, false},
	{"pipelines: groups of several sets, each allocation fails", failing_sets, false},
	{NULL, NULL, false}
};
