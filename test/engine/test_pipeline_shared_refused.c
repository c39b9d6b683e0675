/*
 * test_pipeline_shared_refused.c
 *		Participants of a table that are refused, come too early or too late, or go away.
 */
#include "pipeline_bench.h"

#define ROWS 10

static Stage *
make_filler(Context *c)
{
	Stage	   *stage = three_columns();

	stage->options.sink.kind = GH_SINK_TABLE;
	stage->options.sink.table.numbered = 1;
	stage_part(stage, NUMBER, 64);
	stage_keep(stage, NUMBER, GH_CLASS_INT, 8);
	stage_keep(stage, TRUTH, GH_CLASS_BOOL, 0);
	stage_finish(c, stage);
	return stage;
}

static void
bring(Context *c, GhPipeline *pipeline)
{
	static uint64_t words[ROWS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1};
	static uint64_t truths[ROWS];
	static uint8_t nulls[ROWS];
	static const uint16_t given[2] = {NUMBER, TRUTH};
	GhVector	vectors[2] = {{words, NULL, nulls}, {truths, NULL, nulls}};
	GhBackRow	back[ROWS];
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS,.ngiven = 2,.given = given,.vectors = vectors,.count = ROWS,
	.back = back,.back_room = ROWS};
	GhStatus	status = pipeline->engine->submit(pipeline, &request);

	if (status == GH_BUSY)
		status = pipeline->engine->wait(&request);
	CHECK_STATUS(c, "rows", status, GH_OK);
}

/* A sink with two participants of one process. */
typedef struct Pair
{
	Crew	   *crew;
	const GhHost *host;
	Stage	   *filler;
	GhRef		root;
	GhPipeline *pipelines[2];
} Pair;

static void
pair_open(Context *c, Pair *pair)
{
	GhError		error = {0};

	memset(pair, 0, sizeof(*pair));
	pair->crew = crew_of(1);
	if (pair->crew == NULL)
		exit(2);
	pair->host = &pair->crew->members[0].host;
	pair->filler = make_filler(c);
	CHECK_STATUS(c, "share_sink", c->engine->pipelines->share_sink(pair->host, &pair->filler->options, &pair->root,
																   &error), GH_OK);
	pair->filler->options.shared_sink = pair->root;
	for (uint32_t p = 0; p < 2; p++)
		CHECK_STATUS(c, "create", c->engine->pipelines->create(pair->host, &pair->filler->options,
															   &pair->pipelines[p], &error), GH_OK);
}

static void
pair_close(Context *c, Pair *pair)
{
	for (uint32_t p = 0; p < 2; p++)
		c->engine->pipelines->destroy(pair->pipelines[p]);
	c->engine->pipelines->unshare_sink(pair->host, pair->root);
	CHECK_U64(c, "blocks left", arena_blocks(pair->crew->arena), 0);
	CHECK(c, !pair->crew->state.lock_misused, "locks were misused");
	crew_end(pair->crew);
	stage_drop(c, pair->filler);
}

static void
check_refused(Context *c, const char *what, GhStatus status, GhStatus expected, GhError *error)
{
	CHECK(c, status == expected && error->status == expected && error->message[0] != '\0', "%s: %s, %s", what,
		  gh_status_name(status), error->message);
	memset(error, 0, sizeof(*error));
}

/* Roots, hosts and options that are none. */
static void
refuse_options(Context *c, Pair *pair)
{
	const GhPipelineEngine *pipelines = c->engine->pipelines;
	GhPipelineOptions options = pair->filler->options;
	GhHost		lockless = *pair->host;
	GhError		error = {0};
	GhPipeline *pipeline;
	GhMadeTable made;
	GhRef		root;

	options.shared_sink = 0;
	lockless.lock = NULL;
	check_refused(c, "a host without a lock", pipelines->share_sink(&lockless, &options, &root, &error), GH_INVALID,
				  &error);
	options.sink.kind = GH_SINK_PLACES;
	check_refused(c, "a sink of places", pipelines->share_sink(pair->host, &options, &root, &error), GH_UNSUPPORTED,
				  &error);
	options.shared_sink = pair->root;
	check_refused(c, "places in a table", pipelines->create(pair->host, &options, &pipeline, &error), GH_UNSUPPORTED,
				  &error);
	options.sink.kind = GH_SINK_TABLE;
	options.sink.table.nkept--;
	check_refused(c, "another sink", pipelines->create(pair->host, &options, &pipeline, &error), GH_INVALID, &error);
	options = pair->filler->options;
	options.shared_sink = pair->root + 4096;
	check_refused(c, "another root", pipelines->create(pair->host, &options, &pipeline, &error), GH_INVALID, &error);
	check_refused(c, "no root", pipelines->table_attach(pair->host, 0, &made, &error), GH_INVALID, &error);
}

/* What comes too early or too late; the last of it ends the sink. */
static void
refuse_steps(Context *c, Pair *pair)
{
	const GhPipelineEngine *pipelines = c->engine->pipelines;
	GhPipelineRequest request = {.kind = GH_INPUT_COLUMNS};
	GhError		error = {0};
	GhMadeTable made;
	bool		ready;

	check_refused(c, "a table before it is ready", pipelines->table_attach(pair->host, pair->root, &made, &error),
				  GH_INVALID, &error);
	check_refused(c, "entering before it began", pipelines->index_enter(pair->host, pair->root, &ready, &error),
				  GH_INVALID, &error);
	check_refused(c, "a table of its own", pipelines->make_table(pair->pipelines[0], &made, &error), GH_INVALID,
				  &error);
	CHECK_STATUS(c, "finish", pipelines->finish(pair->pipelines[0], &error), GH_OK);
	check_refused(c, "finishing twice", pipelines->finish(pair->pipelines[0], &error), GH_INVALID, &error);
	CHECK_STATUS(c, "rows behind the end", pipelines->submit(pair->pipelines[0], &request), GH_INVALID);
	check_refused(c, "an index before all have finished", pipelines->index_begin(pair->host, pair->root, &error),
				  GH_INVALID, &error);
	check_refused(c, "entering nothing", pipelines->index_enter(pair->host, pair->root, &ready, &error), GH_INVALID,
				  &error);
}

/* Who goes away with rows loses them; who has had none does not. */
static void
go_away(Context *c, bool with_rows)
{
	const GhPipelineEngine *pipelines = c->engine->pipelines;
	GhError		error = {0};
	bool		ready = false;
	Pair		pair;
	GhMadeTable made;

	pair_open(c, &pair);
	bring(c, pair.pipelines[0]);
	if (with_rows)
		bring(c, pair.pipelines[1]);
	pipelines->destroy(pair.pipelines[1]);
	pair.pipelines[1] = NULL;
	CHECK_STATUS(c, "finish", pipelines->finish(pair.pipelines[0], &error), GH_OK);
	if (with_rows)
		check_refused(c, "an index without the rows of one", pipelines->index_begin(pair.host, pair.root, &error),
					  GH_INVALID, &error);
	for (int i = 0; !with_rows && !ready && i < 3; i++)
	{
		CHECK_STATUS(c, "index_begin", pipelines->index_begin(pair.host, pair.root, &error), GH_OK);
		CHECK_STATUS(c, "index_enter", pipelines->index_enter(pair.host, pair.root, &ready, &error), GH_OK);
	}
	CHECK(c, ready != with_rows, "a table is ready: %d", ready);
	if (ready)
	{
		CHECK_STATUS(c, "table_attach", pipelines->table_attach(pair.host, pair.root, &made, &error), GH_OK);
		CHECK_U64(c, "rows", made.rows, ROWS);
		c->engine->table_detach(made.table);
		check_refused(c, "one more participant", pipelines->create(pair.host, &pair.filler->options,
																   &pair.pipelines[1], &error), GH_INVALID, &error);
	}
	pair_close(c, &pair);
}

static void
test_refused(Context *c)
{
	Pair		pair;

	if (no_shared_sinks(c))
		return;
	pair_open(c, &pair);
	refuse_options(c, &pair);
	refuse_steps(c, &pair);
	pair_close(c, &pair);
	go_away(c, true);
	go_away(c, false);
}

const Test	pipeline_shared_refused_tests[] = {
	{"pipelines: participants that are refused, or go away", test_refused, true},
	{NULL, NULL, false}
};
