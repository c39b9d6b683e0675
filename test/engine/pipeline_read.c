/*
 * pipeline_read.c
 *		Finds out, for the tests of pipelines, which number each row of a table has, and each group.
 *
 * Groups are the source of a pipeline that brings them out one by one.  So does one that probes a table, and marks no
 * match, for all its rows are without one.  Those that hand back have numbers of which only this is known: it does
 * not matter, for whatever matches one of them is handed back, and then no marks are looked at.
 */
#include "pipeline_model.h"

static bool
is_of_groups(const Stage *stage)
{
	return stage->options.sink.kind == GH_SINK_GROUPS;
}

static void
read_groups(Stage *reader, Stage *stage)
{
	uint32_t	nkeys = stage->options.sink.groups.nkeys;

	stage_from_groups(reader, stage);
	reader->options.source.natts = nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		reader->group_columns[k] = (GhGroupColumn) {GH_GROUP_KEY, (uint8_t) k};
		(void) stage_column(reader, stage->keys[k].value_class, k + 1);
		stage_key(reader, k, stage->keys[k].value_class);
	}
}

/* A pipeline that does nothing to the rows of the table, or the groups. */
static Stage *
make_reader(Context *c, Stage *stage)
{
	Stage	   *reader = stage_make();

	if (is_of_groups(stage))
		read_groups(reader, stage);
	else
	{
		stage_of_table(reader, &stage->made);
		for (uint32_t k = 0; k < stage->made.nkept; k++)
			stage_key(reader, k, stage->made.kept[k].value_class);
	}
	reader->options.sink.kind = GH_SINK_ROWS;
	reader->engine = stage->engine;
	reader->scarce = stage->scarce;
	stage_finish(c, reader);
	return reader;
}

/* As which a row is known that hands back. */
static Keyed
keyed_back(uint64_t number)
{
	return keyed_make(NULL, 0, NULL, number);
}

/* The row of this number; false: there is none, or it failed. */
static bool
read_one(Context *c, Stage *stage, Stage *reader, uint64_t number, Keyed *keyed)
{
	GhBackRow	back;
	GhPipelineRequest request = {
		.kind = is_of_groups(stage) ? GH_INPUT_SOURCE : GH_INPUT_UNMATCHED,
		.first = number,.count = 1,.back = &back,.back_room = 1
	};
	GhRecordKey	keys[STAGE_KEPT_MAX];
	GhValue		values[STAGE_KEPT_MAX];
	GhError		error = {0};
	size_t		bytes;
	char	   *record;
	bool		good = CHECK(c, stage_request(reader, &request) == GH_OK, "reading a row: %s",
							 request.error.message);

	if (good && request.nback == 1 && back.step < reader->options.nsteps)
	{
		*keyed = keyed_back(number);
		return true;
	}
	good = good && (request.counted == 1 || stage->scarce);
	record = good ? stage_records(c, reader, &bytes) : NULL;
	good = record != NULL && bytes > 0;
	for (uint32_t k = 0; good && k < reader->options.sink.rows.nvalues; k++)
	{
		keys[k] = reader->keys[k];
		/* so that groups that are one have the same bytes */
		keys[k].padded = is_of_groups(stage) && stage->keys[k].padded;
		values[k] = gh_record_group_value(&keys[k], (const GhRecordHead *) record, k, record);
	}
	if (good)
		*keyed = keyed_make(keys, reader->options.sink.rows.nvalues, values, number);
	free(record);
	crew_turn(reader, 0);
	CHECK_STATUS(c, "clear", stage->engine->pipelines->clear(reader->pipeline, &error), GH_OK);
	return good;
}

/* What the model has, by the same bytes. */
static Keyed *
key_rows(const Stage *stage, const Stage *reader, uint64_t count)
{
	Keyed	   *keyed = make_memory(count * sizeof(Keyed));
	GhRecordKey	keys[STAGE_KEPT_MAX];

	for (uint32_t k = 0; k < reader->options.sink.rows.nvalues; k++)
	{
		keys[k] = reader->keys[k];
		keys[k].padded = is_of_groups(stage) && stage->keys[k].padded;
	}
	for (uint64_t i = 0; i < count; i++)
		if (!is_of_groups(stage) && stage->made.back[i])
			keyed[i] = keyed_back(i);
		else
			keyed[i] = keyed_make(keys, reader->options.sink.rows.nvalues, is_of_groups(stage) ?
								  stage->groups[i].keys : rows_at(&stage->made.rows, i), i);
	keyed_sort(keyed, count);
	return keyed;
}

/* The model's row `from[i]` gets number i. */
static void
put_in_order(Stage *stage, const uint64_t *from, uint64_t count)
{
	ModelTable	old = stage->made;
	ModelGroup *groups = stage->groups;

	if (is_of_groups(stage))
	{
		stage->groups = make_memory((count + 1) * sizeof(ModelGroup));
		for (uint64_t i = 0; i < count; i++)
			stage->groups[i] = groups[from[i]];
		free(groups);
		return;
	}
	rows_init(&stage->made.rows, old.nkept);
	stage->made.keys = make_words(count);
	stage->made.has_key = make_memory(count);
	stage->made.back = make_memory(count);
	for (uint64_t i = 0; i < count; i++)
	{
		(void) rows_add(&stage->made.rows, rows_at(&old.rows, from[i]), false);
		stage->made.keys[i] = old.keys[from[i]];
		stage->made.has_key[i] = old.has_key[from[i]];
		stage->made.back[i] = old.back[from[i]];
	}
	rows_drop(&old.rows);
	free(old.keys);
	free(old.has_key);
	free(old.back);
}

/* The rows that were read are the model's. */
static bool
match_rows(Context *c, Stage *stage, const Stage *reader, Keyed *got, uint64_t count)
{
	Keyed	   *expected = key_rows(stage, reader, count);
	uint64_t   *from = make_words(count);
	bool		good = true;

	keyed_sort(got, count);
	for (uint64_t i = 0; i < count && good; i++)
	{
		good = CHECK(c, keyed_same(&got[i], &expected[i]), "row %" PRIu64 " that is read is none",
					 got[i].row);
		from[got[i].row] = expected[i].row;
	}
	if (good)
		put_in_order(stage, from, count);
	keyed_drop(expected, count);
	free(from);
	return good;
}

bool
stage_number(Context *c, Stage *stage)
{
	uint64_t	count = is_of_groups(stage) ? stage->ngroups : stage->made.rows.count;
	Stage	   *reader = make_reader(c, stage);
	Keyed	   *got = make_memory(count * sizeof(Keyed));
	uint64_t	n = 0;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	bool		good;

	host_init(&state, &host);
	if (stage->crew != NULL)
	{
		reader->crew = stage->crew;
		reader->first_member = stage->first_member;
		reader->nmembers = 1;
	}
	good = CHECK(c, stage_create(reader, &host, &error) == GH_OK, "a pipeline that reads a table: %s",
				 error.message);
	while (good && n < count && read_one(c, stage, reader, n, &got[n]))
		n++;
	/* where memory is scarce there may be groups without rows among them */
	if (good && !stage->scarce)
		good = CHECK_U64(c, "rows read one by one", n, count);
	good = good && n == count && match_rows(c, stage, reader, got, n);
	stage_end(reader);
	CHECK_U64(c, "bytes left by a pipeline that reads", state.allocated + state.device_bytes, 0);
	keyed_drop(got, n);
	stage_drop(c, reader);
	return good;
}
