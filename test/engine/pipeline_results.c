/*
 * pipeline_results.c
 *		What is in the sink of a stage of the tests of pipelines, against the model.
 */
#include "pipeline_model.h"

#define RESULT_BYTES 512		/* of a buffer of records, at first */
#define TRIES 4

char *
stage_records(Context *c, Stage *stage, size_t *bytes)
{
	size_t		room = RESULT_BYTES;
	char	   *all = make_memory(room);
	GhCursor	cursor = {0};
	GhError		error = {0};
	int			tries = 0;

	crew_turn(stage, 0);
	*bytes = 0;
	while (!cursor.finished)
	{
		size_t		came = 0;
		GhStatus	status = stage->engine->pipelines->results(stage->pipeline, &cursor, room - *bytes, all +
															   *bytes,
															   &came, &error);

		if (stage->scarce && lacks_memory(status) && tries++ < TRIES)
			continue;
		if (!CHECK(c, status == GH_OK || (status == GH_TOO_SMALL && came > room - *bytes), "results: %s",
				   error.message))
		{
			free(all);
			return NULL;
		}
		if (status == GH_OK)
			*bytes += came;
		room = 2 * room + came;
		all = realloc(all, room);
		if (all == NULL)
			exit(2);
	}
	return all;
}

/* Of floats NaN and zeros are one each, and sums are none of these tests. */
static bool
same_state(const GhAggregate *aggregate, const GhRecordHead *record, const GhAggregateState *got,
		   const GhAggregateState *expected)
{
	if (gh_is_text_extreme(aggregate) && expected->count > 0)
		return got->count == expected->count && got->high == expected->high && got->low <= record->bytes &&
			got->high <= record->bytes - got->low &&
			(got->high == 0 || memcmp((const char *) record + got->low, (const char *) (uintptr_t) expected->low,
									  got->high) == 0);
	if (gh_is_text_extreme(aggregate))
		return got->count == 0 && got->high == 0;
	if (gh_class_is_float(aggregate->value_class) && aggregate->kind > GH_AGGREGATE_COUNT && got->count > 0)
		return got->count == expected->count &&
			gh_code_of_float(got->low) == gh_code_of_float(expected->low);
	return memcmp(got, expected, sizeof(*got)) == 0;
}

static void
check_group(Context *c, const Stage *stage, const GhRecordHead *record, const ModelGroup *group)
{
	const GhGroupsSink *sink = &stage->options.sink.groups;
	const GhAggregateState *states = (const GhAggregateState *) (gh_record_keys(record) + sink->nkeys);

	CHECK_U64(c, "rows of a record", record->rows, sink->nkeys > 0 ? 1 : record->rows);
	for (uint32_t a = 0; a < sink->naggregates; a++)
		CHECK(c, same_state(&stage->aggregates[a], record, &states[a], &group->states[a]),
			  "aggregate %u (kind %d, class %d) is "
			  "%" PRIu64 ": %016" PRIx64 " %016" PRIx64 ", expected %" PRIu64 ": %016" PRIx64 " %016" PRIx64,
			  a,
			  stage->aggregates[a].kind, stage->aggregates[a].value_class, states[a].count, states[a].high,
			  states[a].low, group->states[a].count, group->states[a].high, group->states[a].low);
}

/* The records, by their keys; *count of them. */
static Keyed *
key_records(Context *c, const Stage *stage, const char *records, size_t bytes, uint64_t *count)
{
	uint32_t	nkeys = stage->options.sink.groups.nkeys;
	uint64_t	room = bytes / sizeof(GhRecordHead) + 1;
	Keyed	   *keyed = make_memory(room * sizeof(Keyed));
	GhValue		values[GH_VALUES_MAX];

	*count = 0;
	for (size_t at = 0; at < bytes;)
	{
		const GhRecordHead *record = (const GhRecordHead *) (records + at);

		if (!CHECK(c, record->bytes >= sizeof(GhRecordHead) && record->bytes % 8 == 0 &&
				   record->bytes <= bytes - at,
				   "a record of %" PRIu64 " bytes", record->bytes))
			break;
		for (uint32_t k = 0; k < nkeys; k++)
			values[k] = gh_record_group_value(&stage->keys[k], record, k, (const char *) record);
		keyed[(*count)++] = keyed_make(stage->keys, nkeys, values, at);
		at += record->bytes;
	}
	keyed_sort(keyed, *count);
	return keyed;
}

/* What the model has, by its keys. */
static Keyed *
key_model(const Stage *stage, uint64_t *count)
{
	uint32_t	nkeys = stage->options.sink.groups.nkeys;
	bool		groups = stage->options.sink.kind == GH_SINK_GROUPS;
	Keyed	   *keyed;
	GhValue		values[GH_VALUES_MAX];

	*count = groups ? stage->ngroups : stage->sink.count;
	keyed = make_memory(*count * sizeof(Keyed));
	for (uint64_t i = 0; i < *count; i++)
	{
		for (uint32_t k = 0; k < nkeys; k++)
			values[k] = groups ? stage->groups[i].keys[k] : rows_at(&stage->sink, i)[stage->keys[k].vector];
		keyed[i] = keyed_make(stage->keys, nkeys, values, i);
	}
	keyed_sort(keyed, *count);
	return keyed;
}

static bool
check_results(Context *c, Stage *stage)
{
	size_t		bytes;
	char	   *records = stage_records(c, stage, &bytes);
	uint64_t	ngot;
	uint64_t	nexpected;
	Keyed	   *got;
	Keyed	   *expected;
	bool		good = true;

	if (records == NULL)
		return false;
	got = key_records(c, stage, records, bytes, &ngot);
	expected = key_model(stage, &nexpected);
	CHECK_U64(c, "records", ngot, nexpected);
	for (uint64_t i = 0; i < ngot && i < nexpected && good; i++)
	{
		good = CHECK(c, keyed_same(&got[i], &expected[i]), "record %" PRIu64 " has other keys", i);
		if (good && stage->options.sink.kind == GH_SINK_GROUPS)
			check_group(c, stage, (const GhRecordHead *) (records + got[i].row),
						&stage->groups[expected[i].row]);
	}
	keyed_drop(got, ngot);
	keyed_drop(expected, nexpected);
	free(records);
	return good;
}

static bool
make_table(Context *c, Stage *stage)
{
	GhMadeTable made = {0};
	GhError		error = {0};
	GhStatus	status = stage->crew != NULL ? crew_make_table(c, stage, &made, &error) :
		stage->engine->pipelines->make_table(stage->pipeline, &made, &error);

	if (stage->scarce && lacks_memory(status))
		return false;
	if (!CHECK(c, status == GH_OK, "make_table: %s", error.message))
		return false;
	stage->made.table = made.table;
	model_table(stage);
	CHECK_U64(c, "rows of a table", made.rows, stage->sink.count);
	CHECK(c, !stage->made.all || made.several == stage->made.several, "some key has several rows: %d",
		  made.several);
	/* without memory there may be none for a request either */
	if (!stage->scarce)
		stage_find(c, stage, made.value_size);
	return !stage->made.numbered || stage->made.nkept == 0 || stage_number(c, stage);
}

/* Those of one participant, and of a pipeline without others. */
static void
add_stats(Context *c, const Stage *stage, uint32_t participant, GhPipelineStats *sum)
{
	GhPipeline *pipeline = stage->crew != NULL ? stage->pipelines[participant] : stage->pipeline;
	GhPipelineStats stats = {0};
	GhError		error = {0};

	crew_turn(stage, participant);
	if (!CHECK_STATUS(c, "stats", stage->engine->pipelines->stats(pipeline, &stats, &error), GH_OK))
		return;
	sum->counted += stats.counted;
	sum->entries += stats.entries;
	sum->bytes_peak += stats.bytes_peak;
}

static void
check_stats(Context *c, Stage *stage)
{
	GhPipelineStats stats = {0};
	uint64_t	limit = stage->options.memory_limit;
	bool		groups = stage->options.sink.kind == GH_SINK_GROUPS;
	uint64_t	entries = groups ? stage->ngroups :
		stage->options.sink.kind == GH_SINK_PLACES ? 0 : stage->sink.count;

	for (uint32_t p = 0; p == 0 || p < stage->nmembers; p++)
		add_stats(c, stage, p, &stats);
	CHECK_U64(c, "rows counted by the pipeline", stats.counted, stage->sink.count);
	CHECK(c, stats.entries == entries || (stage->scarce && stats.entries > entries), "%"
		  PRIu64 " entries, expected %"
		  PRIu64, stats.entries, entries);
	CHECK(c, limit == 0 || stats.bytes <= limit, "%" PRIu64 " bytes of %" PRIu64, stats.bytes, limit);
	/* while groups are moved, what they leave is there, too */
	CHECK(c, limit == 0 || stats.bytes_peak <= (groups ? 2 * limit : limit), "%" PRIu64 " bytes at most, of %" PRIu64,
		  stats.bytes_peak, limit);
}

bool
stage_results(Context *c, Stage *stage)
{
	bool		good = true;

	if (stage->options.sink.kind == GH_SINK_GROUPS)
		model_groups(stage);
	check_stats(c, stage);
	if (stage->options.sink.kind == GH_SINK_TABLE)
		return make_table(c, stage);
	if (stage->options.sink.kind != GH_SINK_PLACES)
		good = check_results(c, stage);
	if (good && stage->options.sink.kind == GH_SINK_GROUPS)
		good = stage_number(c, stage);
	return good;
}
