/*
 * test_pipeline_large.c
 *		Requests of more rows than an engine does at a time, into each sink, out of a table, and through probes that make
 *		several rows of one.  What must come of them is worked out from the rows' numbers.  And what an engine keeps of
 *		the memory that such requests are worked on in.
 */
#include "pipeline_model.h"

#define KEYS 5000				/* of groups */
#define LIVE 4000				/* keys below it pass the filter */
#define DIVISORS 997			/* 0 is one: such rows go back */
#define DIVIDEND 1000000
#define TEXTS 64
#define LENGTHS 23				/* of texts */

/* Vectors of the stage. */
enum
{
	KEY, DIVISOR, LABEL, BOUND, NUMBER, IS_LIVE, QUOTIENT
};

/* All its bytes are different, so that rows have equal ones of it where they have the same. */
static char text[TEXTS + LENGTHS];

/* The rows of a request, and an engine's pipelines. */
typedef struct Large
{
	Context    *c;
	HostState	state;
	GhHost		host;
	uint32_t	count;
	uint64_t   *low[3];
	uint64_t   *high;
	uint8_t    *null;
	GhBackRow  *back;
	uint64_t	live;			/* rows that come to the end */
	uint64_t	backs;
} Large;

static bool
passes(uint32_t i)
{
	return i % KEYS < LIVE;
}

static bool
goes_back(uint32_t i)
{
	return passes(i) && i % DIVISORS == 0;
}

static void
large_init(Context *c, Large *large, uint32_t count)
{
	memset(large, 0, sizeof(*large));
	large->c = c;
	large->count = count;
	host_init(&large->state, &large->host);
	for (uint32_t v = 0; v < 3; v++)
		large->low[v] = make_words(count);
	large->high = make_words(count);
	large->null = make_memory(count);
	large->back = make_memory(count * sizeof(GhBackRow));
	memset(large->null, 0, count);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (char) (i + 1);
	for (uint32_t i = 0; i < count; i++)
	{
		large->low[KEY][i] = i % KEYS;
		large->low[DIVISOR][i] = i % DIVISORS;
		large->low[LABEL][i] = (uintptr_t) text + i % TEXTS;
		large->high[i] = i % LENGTHS;
		large->backs += goes_back(i);
		large->live += passes(i) && !goes_back(i);
	}
}

static void
large_end(Large *large)
{
	CHECK_U64(large->c, "bytes left", large->state.allocated + large->state.device_bytes, 0);
	for (uint32_t v = 0; v < 3; v++)
		free(large->low[v]);
	free(large->high);
	free(large->null);
	free(large->back);
}

/* Three columns; a filter by the first, and a division by the second. */
static Stage *
new_stage(Large *large)
{
	Stage	   *stage = stage_make();

	stage->engine = large->c->engine;
	stage->options.source.natts = 3;
	(void) stage_column(stage, GH_CLASS_INT, 1);
	(void) stage_column(stage, GH_CLASS_INT, 2);
	(void) stage_column(stage, GH_CLASS_TEXT, 3);
	(void) stage_constant(stage, GH_CLASS_INT, LIVE);
	(void) stage_constant(stage, GH_CLASS_INT, DIVIDEND);
	stage_filter(stage, stage_compute(stage, GH_OP_LT, GH_CLASS_INT, KEY, BOUND));
	(void) stage_compute(stage, GH_OP_DIV, GH_CLASS_INT, NUMBER, DIVISOR);
	stage_run_step(stage);
	return stage;
}

static bool
open_stage(Large *large, Stage *stage)
{
	GhError		error = {0};

	stage_finish(large->c, stage);
	return CHECK(large->c, stage_create(stage, &large->host, &error) == GH_OK, "create: %s", error.message);
}

/* All rows in one request. */
static bool
give_all(Large *large, Stage *stage)
{
	static const uint16_t given[] = {KEY, DIVISOR, LABEL};
	Context    *c = large->c;
	GhVector	vectors[3];
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 3,.given = given,.vectors = vectors,
	.count = large->count,.back = large->back,.back_room = large->count};
	uint64_t	b = 0;

	for (uint32_t v = 0; v < 3; v++)
		vectors[v] = (GhVector) {large->low[v], large->high, large->null};
	if (!CHECK_STATUS(c, "a large request", stage_request(stage, &request), GH_OK))
		return false;
	CHECK_U64(c, "rows seen", request.seen, large->count);
	CHECK_U64(c, "rows counted", request.counted, large->live);
	CHECK_U64(c, "rows behind the step", request.passed[0], large->live);
	if (!CHECK_U64(c, "rows that go back", request.nback, large->backs))
		return false;
	for (uint32_t i = 0; i < large->count && c->failures == 0; i++)
		if (goes_back(i))
		{
			CHECK(c, large->back[b].page == i && large->back[b].step == 0, "row %u goes back in place of row %u, at step "
				  "%u", large->back[b].page, i, large->back[b].step);
			b++;
		}
	return c->failures == 0;
}

/* ---------------------------------------------------------------------- sinks */

/* Groups by the key, or by the text: how many rows, the sum of quotients. */
static void
check_groups(Large *large, Stage *stage, bool by_text, uint32_t times)
{
	Context    *c = large->c;
	uint32_t	most = by_text ? TEXTS * LENGTHS : LIVE;
	uint64_t   *rows = make_words(most);
	uint64_t   *sums = make_words(most);
	size_t		bytes = 0;
	uint64_t	groups = 0;
	uint64_t	expected = 0;
	char	   *records = stage_records(c, stage, &bytes);

	memset(rows, 0, most * sizeof(uint64_t));
	memset(sums, 0, most * sizeof(uint64_t));
	for (uint32_t i = 0; i < large->count; i++)
		if (passes(i) && !goes_back(i))
		{
			uint32_t	group = by_text ? (i % TEXTS) * LENGTHS + i % LENGTHS : i % KEYS;

			/* no bytes are the same text wherever they are not */
			if (by_text && i % LENGTHS == 0)
				group = 0;
			rows[group] += times;
			sums[group] += times * (uint64_t) (DIVIDEND / (i % DIVISORS));
		}
	for (uint32_t g = 0; g < most; g++)
		expected += rows[g] > 0;
	for (size_t at = 0; records != NULL && at < bytes && c->failures == 0; groups++)
	{
		const GhRecordHead *record = (const GhRecordHead *) (records + at);
		const GhRecordValue *key = gh_record_keys(record);
		const GhAggregateState *states = (const GhAggregateState *) (key + 1);
		uint64_t	group = key->low;

		if (by_text)
			for (group = 0; group < most; group++)
				if (group % LENGTHS == key->high && memcmp(text + group / LENGTHS, (const char *) record + key->low, key->high) == 0)
					break;
		if (!CHECK(c, group < most, "there is no such key"))
			break;
		CHECK_U64(c, "rows of a group", states[0].count, rows[group]);
		CHECK_U64(c, "the sum of a group", states[1].low, sums[group]);
		at += record->bytes;
	}
	CHECK_U64(c, "groups", groups, expected);
	free(records);
	free(rows);
	free(sums);
}

/* Twice: the second time the groups are there. */
static void
add_to_groups(Large *large, bool by_text)
{
	Stage	   *stage = new_stage(large);

	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_key(stage, by_text ? LABEL : KEY, by_text ? GH_CLASS_TEXT : GH_CLASS_INT);
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_aggregate(stage, GH_AGGREGATE_SUM, QUOTIENT, GH_CLASS_INT);
	if (open_stage(large, stage))
		for (uint32_t times = 1; times <= 2 && give_all(large, stage); times++)
			check_groups(large, stage, by_text, times);
	stage_end(stage);
	stage_drop(large->c, stage);
}

static void
large_groups(Context *c)
{
	Large		large;

	if (no_pipelines(c))
		return;
	large_init(c, &large, (uint32_t) sized(c, 2500000, 100000));
	for (uint32_t by_text = 0; by_text < 2 && c->failures == 0; by_text++)
		add_to_groups(&large, by_text != 0);
	large_end(&large);
}

/* How many groups of key and text: rows that have both in common are further apart, but for those of the empty text. */
static uint64_t
count_pairs(const Large *large)
{
	static bool seen[KEYS];
	uint64_t	pairs = 0;

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < large->count; i++)
	{
		if (!passes(i) || goes_back(i) || (i % LENGTHS == 0 && seen[i % KEYS]))
			continue;
		seen[i % KEYS] |= i % LENGTHS == 0;
		pairs++;
	}
	return pairs;
}

/*
 * Groups of key and text, far more of them than expected, so that room for groups and room for texts run out in turn
 * while many rows look for theirs: each must find it all the same.
 */
static void
unexpected_groups(Context *c)
{
	Large		large;
	Stage	   *stage;
	size_t		bytes = 0;
	uint64_t	groups = 0;
	uint64_t	rows = 0;

	if (no_pipelines(c))
		return;
	large_init(c, &large, (uint32_t) sized(c, 500000, 50000));
	stage = new_stage(&large);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage->options.sink.groups.expected = 50;
	stage_key(stage, KEY, GH_CLASS_INT);
	stage_key(stage, LABEL, GH_CLASS_TEXT);
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	if (open_stage(&large, stage) && give_all(&large, stage))
	{
		char	   *records = stage_records(c, stage, &bytes);

		for (size_t at = 0; records != NULL && at < bytes; groups++)
		{
			const GhRecordHead *record = (const GhRecordHead *) (records + at);
			const GhAggregateState *states = (const GhAggregateState *) (gh_record_keys(record) + 2);

			rows += states[0].count;
			at += record->bytes;
		}
		CHECK_U64(c, "rows of all groups", rows, large.live);
		CHECK_U64(c, "groups", groups, count_pairs(&large));
		free(records);
	}
	stage_end(stage);
	stage_drop(c, stage);
	large_end(&large);
}

/* Records of key and text, of which each has what the row has. */
static void
put_records(Large *large)
{
	Context    *c = large->c;
	Stage	   *stage = new_stage(large);
	size_t		bytes = 0;
	size_t		at = 0;

	stage->options.sink.kind = GH_SINK_ROWS;
	stage_key(stage, KEY, GH_CLASS_INT);
	stage_key(stage, LABEL, GH_CLASS_TEXT);
	stage_key(stage, QUOTIENT, GH_CLASS_INT);
	if (open_stage(large, stage) && give_all(large, stage))
	{
		char	   *records = stage_records(c, stage, &bytes);

		for (uint32_t i = 0; records != NULL && i < large->count && c->failures == 0; i++)
		{
			const GhRecordHead *record = (const GhRecordHead *) (records + at);
			const GhRecordValue *values = gh_record_keys(record);

			if (!passes(i) || goes_back(i))
				continue;
			if (!CHECK(c, at < bytes, "there are fewer records than rows"))
				break;
			CHECK(c, values[0].low == i % KEYS && values[2].low == DIVIDEND / (i % DIVISORS) && values[1].high == i % LENGTHS &&
				  memcmp((const char *) record + values[1].low, text + i % TEXTS, i % LENGTHS) == 0, "the record of row %u is "
				  "another's", i);
			at += record->bytes;
		}
		CHECK_U64(c, "bytes of records", at, bytes);
		free(records);
	}
	stage_end(stage);
	stage_drop(c, stage);
}

static void
large_rows(Context *c)
{
	Large		large;

	if (no_pipelines(c))
		return;
	large_init(c, &large, (uint32_t) sized(c, 2500000, 100000));
	put_records(&large);
	large_end(&large);
}

/* ------------------------------------------------------------------ memory kept */

/* A table that is refused memory at first has it when what was kept is freed. */
static void
make_table_of_kept(Context *c, const Budget *kept)
{
	GhTableOptions options = options_of(c, type_of_kind(0));
	Subject		s;

	memset(&s, 0, sizeof(s));
	host_init(&s.state, &s.host);
	s.state.refuse_at = 1;
	CHECK(c, budget_taken(kept) > 0, "nothing is kept");
	if (CHECK_STATUS(c, "create with what was kept", subject_try(&s, c, &options), GH_OK))
		subject_close(&s);
	CHECK_U64(c, "of what is kept", budget_taken(kept), 0);
}

/* Pipelines of other layouts have what those before them left, in a budget of its own. */
static void
memory_is_kept(Context *c)
{
	/* as long as the process */
	static HostState state;
	static GhHost lasting;
	static Budget kept;
	Large		large;

	if (no_pipelines(c))
		return;
	host_init(&state, &lasting);
	state.budget = &kept;
	kept.limit = UINT64_MAX;
	large_init(c, &large, (uint32_t) sized(c, 300000, 30000));
	large.host.lasting = &lasting;
	for (uint32_t n = 0; n < 4 && c->failures == 0; n++)
	{
		if (n % 2 != 0)
			put_records(&large);
		else
			add_to_groups(&large, n == 2);
		CHECK_U64(c, "memory of a pipeline that is gone", large.state.device_bytes, 0);
	}
	/* the stand-in has no memory of a device */
	if (!c->on_host && !c->stand_in)
		make_table_of_kept(c, &kept);
	kept.limit = 0;
	add_to_groups(&large, false);
	CHECK_U64(c, "of what is kept without a budget", budget_taken(&kept), 0);
	large_end(&large);
}

/* ---------------------------------------------------------------------- tables */

/* The sum of a column of a table's rows, and how many there are. */
static void
read_table(Large *large, ModelTable *table, uint64_t rows, uint64_t sum)
{
	Context    *c = large->c;
	Stage	   *stage = stage_make();
	GhPipelineRequest request = {.kind = GH_INPUT_UNMATCHED,.count = rows,.back = large->back,.back_room = large->count};
	size_t		bytes = 0;
	char	   *records;

	stage->engine = c->engine;
	stage_of_table(stage, table);
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_aggregate(stage, GH_AGGREGATE_COUNT, 1, GH_CLASS_TEXT);
	stage_aggregate(stage, GH_AGGREGATE_SUM, 0, GH_CLASS_INT);
	if (open_stage(large, stage) && CHECK_STATUS(c, "a request for all rows", stage_request(stage, &request), GH_OK))
	{
		records = stage_records(c, stage, &bytes);
		if (CHECK_U64(c, "bytes", bytes, sizeof(GhRecordHead) + 2 * sizeof(GhAggregateState)))
		{
			const GhAggregateState *states = (const GhAggregateState *) (records + sizeof(GhRecordHead));

			CHECK_U64(c, "rows read", states[0].count, rows);
			CHECK_U64(c, "their sum", states[1].low, sum);
		}
		free(records);
	}
	stage_end(stage);
	stage_drop(c, stage);
}

/* Rows become several by a probe of the table, whose keys are those that pass; some match nothing. */
static void
probe_table(Large *large, ModelTable *table, const uint64_t *rows_of, GhProbeKind kind, uint64_t unmatched)
{
	Context    *c = large->c;
	Stage	   *stage = stage_make();
	uint32_t	p = stage_probe(stage, table, kind, true);
	uint32_t	count = large->count / 10;
	uint16_t	given = 2;
	GhVector	vector = {large->low[KEY], large->high, large->null};
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 1,.given = &given,.vectors = &vector,.count = count,
	.back = large->back,.back_room = large->count};
	uint64_t	lines = 0;
	uint64_t	sum = 0;
	size_t		bytes = 0;
	char	   *records;

	stage->engine = c->engine;
	stage->options.source.natts = 1;
	given = (uint16_t) stage_column(stage, GH_CLASS_INT, 1);
	stage_probe_part(stage, p, given, 64);
	stage_probe_step(stage, p);
	stage->marking[p] = true;
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_aggregate(stage, GH_AGGREGATE_SUM, stage->fills[p][0].column, GH_CLASS_INT);
	for (uint32_t i = 0; i < count; i++)
	{
		uint64_t	n = i % KEYS < LIVE ? rows_of[i % KEYS] : 0;

		lines += n > 0 ? n : kind == GH_PROBE_LEFT;
		sum += n * (i % KEYS);
	}
	if (open_stage(large, stage) && CHECK_STATUS(c, "a request of rows that probe", stage_request(stage, &request), GH_OK))
	{
		CHECK_U64(c, "rows that go back", request.nback, 0);
		CHECK_U64(c, "rows behind the probe", request.passed[0], lines);
		CHECK_U64(c, "rows counted", request.counted, lines);
		records = stage_records(c, stage, &bytes);
		if (CHECK_U64(c, "bytes", bytes, sizeof(GhRecordHead) + 2 * sizeof(GhAggregateState)))
		{
			const GhAggregateState *states = (const GhAggregateState *) (records + sizeof(GhRecordHead));

			CHECK_U64(c, "rows in the group", states[0].count, lines);
			CHECK_U64(c, "the sum", states[1].low, sum);
		}
		free(records);
		request = (GhPipelineRequest) {.kind = GH_INPUT_UNMATCHED,.count = table->rows.count,.back = large->back,
		.back_room = large->count};
		CHECK_STATUS(c, "a request for rows without a match", stage_request(stage, &request), GH_OK);
		CHECK_U64(c, "rows without a match", request.counted, unmatched);
	}
	stage_end(stage);
	stage_drop(c, stage);
}

/* Few enough rows a key that the probes' rows are many, but do not go back. */
static void
large_tables(Context *c)
{
	Large		large;
	Stage	   *stage;
	GhMadeTable made = {0};
	GhError		error = {0};
	uint64_t   *rows_of = make_words(LIVE);
	uint64_t	sum = 0;

	memset(rows_of, 0, LIVE * sizeof(uint64_t));
	if (no_pipelines(c))
	{
		free(rows_of);
		return;
	}
	large_init(c, &large, (uint32_t) sized(c, 1500000, 60000));
	stage = new_stage(&large);
	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.numbered = 1;
	stage_part(stage, KEY, 64);
	stage_keep(stage, KEY, GH_CLASS_INT, 8);
	stage_keep(stage, LABEL, GH_CLASS_TEXT, 0);
	for (uint32_t i = 0; i < large.count; i++)
		if (passes(i) && !goes_back(i))
		{
			rows_of[i % KEYS]++;
			sum += i % KEYS;
		}
	if (open_stage(&large, stage) && give_all(&large, stage) &&
		CHECK(c, c->engine->pipelines->make_table(stage->pipeline, &made, &error) == GH_OK, "make_table: %s",
			  error.message))
	{
		uint64_t	seen = 0;

		stage->made.table = made.table;
		stage->made.nkept = 2;
		memcpy(stage->made.kept, stage->kept, sizeof(stage->made.kept));
		CHECK_U64(c, "rows of the table", made.rows, large.live);
		CHECK(c, made.several, "no key has several rows");
		read_table(&large, &stage->made, made.rows, sum);
		stage->made.rows.count = made.rows;
		for (uint32_t k = 0; k < LIVE && k < large.count / 10; k++)
			seen += rows_of[k];
		probe_table(&large, &stage->made, rows_of, GH_PROBE_INNER, made.rows - seen);
		probe_table(&large, &stage->made, rows_of, GH_PROBE_LEFT, made.rows - seen);
		stage->made.rows.count = 0;
	}
	stage_end(stage);
	stage_end_table(stage);
	stage_drop(c, stage);
	free(rows_of);
	large_end(&large);
}

const Test	pipeline_large_tests[] = {
	{"pipelines: large requests, groups", large_groups, false},
	{"pipelines: large requests, groups that nobody expects", unexpected_groups, false},
	{"pipelines: large requests, rows", large_rows, false},
	{"pipelines: large requests, tables", large_tables, false},
	{"pipelines: memory that is kept", memory_is_kept, false},
	{NULL, NULL, false}
};
