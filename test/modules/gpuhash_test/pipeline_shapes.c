/*
 * pipeline_shapes.c
 *		Pipelines of several shapes through the service or on the CPU engine, for tests that compare these.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "host.h"
#include "service/placement.h"

#include "pipeline_trial.h"

PG_FUNCTION_INFO_V1(gpuhash_trial_pipeline);

#define PLAIN_KEYS 500			/* of a table that no pipeline made */
#define OUTER_GROUPS 1000		/* different values of the outer table's first column */
#define FOUND_KEYS 2000			/* below 0, and from there on */
#define HASTY_ROUNDS 3

/* All that a shape has, so that it is given back after an error, too. */
typedef struct Shape
{
	GhTrial		trial;
	Oid			outer;
	Oid			inner;
	bool		early;			/* what is used goes before its users begin */
	GhTrialStage build;			/* makes the inner table */
	GhTrialStage again;			/* makes another one of the same rows */
	GhTrialStage main;
	GhMadeTable made;
	GhMadeTable made_again;
	GhTable    *plain;
	GhMarks    *marks;
	char	   *answer;
} Shape;

static void
drop_table(Shape *shape, GhTable **table)
{
	if (*table != NULL)
		shape->trial.engine->table_destroy(*table);
	*table = NULL;
}

/* What is used goes first: it is the worker's to keep it as long as needed; the CPU engine has no such care. */
static void
drop_used(Shape *shape)
{
	gh_trial_destroy(&shape->build);
	gh_trial_destroy(&shape->again);
	drop_table(shape, &shape->made.table);
	drop_table(shape, &shape->made_again.table);
	drop_table(shape, &shape->plain);
	if (shape->marks != NULL)
		shape->trial.engine->pipelines->marks_destroy(shape->marks);
	shape->marks = NULL;
}

static void
drop_shape(Shape *shape)
{
	gh_trial_give_back(&shape->trial);
	if (shape->trial.engine == gh_cpu_engine())
		gh_trial_destroy(&shape->main);
	drop_used(shape);
	gh_trial_destroy(&shape->main);
}

/* The users of tables and marks are there. */
static void
let_go_early(Shape *shape)
{
	if (shape->early && shape->trial.engine != gh_cpu_engine())
		drop_used(shape);
}

/* A table of the inner table's rows, by a stage whose sink is one. */
static void
make_table(Shape *shape, GhTrialStage *stage, GhMadeTable *made)
{
	gh_trial_create(&shape->trial, stage);
	gh_trial_bring(&shape->trial, stage->pipeline, shape->inner, 0, MaxBlockNumber);
	gh_trial_make_table(&shape->trial, stage->pipeline, made);
}

static void
make_inner(Shape *shape)
{
	gh_trial_stage_begin(&shape->build, NULL);
	gh_trial_stage_table(&shape->build);
	make_table(shape, &shape->build, &shape->made);
}

static void
run_main(Shape *shape)
{
	gh_trial_create(&shape->trial, &shape->main);
	let_go_early(shape);
	gh_trial_bring(&shape->trial, shape->main.pipeline, shape->outer, 0, MaxBlockNumber);
}

static void
finish(Shape *shape, bool records)
{
	shape->answer = psprintf("%s, table of %llu%s", gh_trial_digest(&shape->trial, records ? shape->main.pipeline : NULL),
							 (unsigned long long) shape->made.rows, shape->made.several ? ", several" : "");
}

/* --------------------------------------------------------------------- shapes */

static void
try_groups(Shape *shape)
{
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_groups(&shape->main);
	run_main(shape);
	shape->answer = gh_trial_groups_text(&shape->trial, shape->main.pipeline, 1);
}

static void
try_rows(Shape *shape)
{
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_rows(&shape->main);
	run_main(shape);
	finish(shape, true);
}

static void
try_places(Shape *shape)
{
	make_inner(shape);
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_probe(&shape->main, GH_PROBE_SEMI, 0, shape->made.table, NULL);
	gh_trial_stage_places(&shape->main);
	run_main(shape);
	finish(shape, false);
}

/* Groups that were emptied, and filled once more. */
static void
try_clear(Shape *shape)
{
	GhError		error;
	GhPipelineStats stats;

	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_groups(&shape->main);
	run_main(shape);
	if (shape->trial.engine->pipelines->clear(shape->main.pipeline, &error) != GH_OK)
		gh_report_error(&error, "clear the pipeline of a test");
	gh_trial_bring(&shape->trial, shape->main.pipeline, shape->inner, 0, MaxBlockNumber);
	if (shape->trial.engine->pipelines->stats(shape->main.pipeline, &stats, &error) != GH_OK)
		gh_report_error(&error, "ask for the numbers of a pipeline of a test");
	finish(shape, true);
	shape->answer = psprintf("%s, %llu entries of %llu rows", shape->answer, (unsigned long long) stats.entries,
							 (unsigned long long) stats.counted);
}

static void
try_probe(Shape *shape, GhProbeKind kind)
{
	make_inner(shape);
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_probe(&shape->main, kind, kind > GH_PROBE_LEFT ? 0 : 2, shape->made.table, NULL);
	gh_trial_stage_groups(&shape->main);
	run_main(shape);
	finish(shape, true);
}

/* Joined groups as text, to compare with PostgreSQL's. */
static void
try_joined(Shape *shape)
{
	try_probe(shape, GH_PROBE_INNER);
	shape->answer = gh_trial_groups_text(&shape->trial, shape->main.pipeline, 3);
}

static void
try_two(Shape *shape)
{
	make_inner(shape);
	gh_trial_stage_begin(&shape->again, NULL);
	gh_trial_stage_table(&shape->again);
	make_table(shape, &shape->again, &shape->made_again);
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_probe(&shape->main, GH_PROBE_INNER, 2, shape->made.table, NULL);
	gh_trial_stage_probe(&shape->main, GH_PROBE_LEFT, 2, shape->made_again.table, NULL);
	gh_trial_stage_probe(&shape->main, GH_PROBE_SEMI, 0, shape->made.table, NULL);
	gh_trial_stage_groups(&shape->main);
	run_main(shape);
	finish(shape, true);
}

/* Matches are marked, and rows of the table without one come behind the others. */
static void
try_unmatched(Shape *shape)
{
	make_inner(shape);
	shape->marks = gh_trial_marks(&shape->trial, shape->made.table);
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_probe(&shape->main, GH_PROBE_INNER, 2, shape->made.table, shape->marks);
	gh_trial_stage_rows(&shape->main);
	run_main(shape);
	gh_trial_bring_rows(&shape->trial, shape->main.pipeline, GH_INPUT_UNMATCHED, 0, shape->made.rows);
	finish(shape, true);
}

/* Groups are the source of a pipeline that counts them by their keys. */
static void
try_regrouped(Shape *shape)
{
	GhError		error;
	GhPipelineStats stats;

	gh_trial_stage_begin(&shape->build, NULL);
	gh_trial_stage_groups(&shape->build);
	gh_trial_create(&shape->trial, &shape->build);
	gh_trial_bring(&shape->trial, shape->build.pipeline, shape->outer, 0, MaxBlockNumber);
	if (shape->trial.engine->pipelines->stats(shape->build.pipeline, &stats, &error) != GH_OK)
		gh_report_error(&error, "ask for the numbers of a pipeline of a test");
	gh_trial_stage_begin(&shape->main, shape->build.pipeline);
	gh_trial_stage_groups(&shape->main);
	gh_trial_create(&shape->trial, &shape->main);
	let_go_early(shape);
	gh_trial_bring_rows(&shape->trial, shape->main.pipeline, GH_INPUT_SOURCE, 0, stats.entries);
	finish(shape, true);
}

/*
 * A pipeline reads groups that are made, read and emptied without a wait in between: each sees what was requested
 * before it.  The CPU engine, where nothing runs but inside waits, does one after the other.
 */
static void
try_hasty(Shape *shape)
{
	GhError		error;

	gh_trial_stage_begin(&shape->build, NULL);
	gh_trial_stage_groups(&shape->build);
	gh_trial_create(&shape->trial, &shape->build);
	gh_trial_stage_begin(&shape->main, shape->build.pipeline);
	gh_trial_stage_groups(&shape->main);
	gh_trial_create(&shape->trial, &shape->main);
	shape->trial.hasty = shape->trial.engine != gh_cpu_engine();
	for (int round = 0; round < HASTY_ROUNDS; round++)
	{
		gh_trial_bring(&shape->trial, shape->build.pipeline, shape->outer, 0, MaxBlockNumber);
		gh_trial_bring_rows(&shape->trial, shape->main.pipeline, GH_INPUT_SOURCE, 0, OUTER_GROUPS);
		if (shape->trial.engine->pipelines->clear(shape->build.pipeline, &error) != GH_OK)
			gh_report_error(&error, "clear the pipeline of a test");
	}
	gh_trial_wait(&shape->trial);
	finish(shape, true);
}

/*
 * Requests find keys in tables that a pipeline made: in one that keeps the key, and for requests has it as its value, and
 * in one that keeps more, and is a set.
 */
static void
try_found(Shape *shape)
{
	int64		sum;
	uint64		there;

	gh_trial_stage_begin(&shape->again, NULL);
	gh_trial_stage_table(&shape->again);
	shape->again.options.sink.table.nkept = 1;
	shape->again.options.sink.table.matches = GH_MATCHES_ANY;
	shape->again.options.sink.table.numbered = 0;
	make_table(shape, &shape->again, &shape->made_again);
	make_inner(shape);
	there = gh_trial_find(&shape->trial, shape->made_again.table, -FOUND_KEYS, 2 * FOUND_KEYS, &sum);
	shape->answer = psprintf("%llu %lld, %llu",
							 (unsigned long long) there, (long long) sum,
							 (unsigned long long) gh_trial_find(&shape->trial, shape->made.table, -FOUND_KEYS,
																2 * FOUND_KEYS, NULL));
}

static void
fill_plain(Shape *shape, uint64 first)
{
	GhRequest	request = {0};
	uint64	   *arrays = (uint64 *) shape->trial.lanes[0].buffer;

	for (uint64 i = 0; i < PLAIN_KEYS; i++)
	{
		arrays[i] = first + i;
		arrays[PLAIN_KEYS + i] = 7 * (first + i);
	}
	request.op = GH_INSERT;
	request.count = PLAIN_KEYS;
	request.keys = arrays;
	request.values_in = arrays + PLAIN_KEYS;
	if (gh_run_request(shape->plain, &request) != GH_OK)
		gh_report_error(&request.error, "fill the table of a test");
}

/* A table that no pipeline made, of keys and values of 8 bytes. */
static void
make_plain(Shape *shape)
{
	GhTableOptions options;
	GhHost		host;
	GhError		error;

	gh_options_init(&options, shape->trial.engine);
	options.capacity = 16;
	gh_host_init(&host, TopMemoryContext);
	host.ctx = shape->trial.engine == gh_cpu_engine() ? host.ctx : NULL;
	if (gh_create_table(shape->trial.engine, &host, &options, &shape->plain, &error) != GH_OK)
		gh_report_error(&error, "make the table of a test");
	fill_plain(shape, 1);
}

/* It grows while it is probed. */
static void
try_plain(Shape *shape)
{
	make_plain(shape);
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_probe(&shape->main, GH_PROBE_LEFT, 1, shape->plain, NULL);
	gh_trial_stage_groups(&shape->main);
	gh_trial_create(&shape->trial, &shape->main);
	gh_trial_bring(&shape->trial, shape->main.pipeline, shape->outer, 0, MaxBlockNumber);
	fill_plain(shape, PLAIN_KEYS);
	gh_trial_bring(&shape->trial, shape->main.pipeline, shape->outer, 0, MaxBlockNumber);
	finish(shape, true);
}

/* It is emptied while requests are in flight, which find what was there before. */
static void
try_emptied(Shape *shape)
{
	GhError		error;

	make_plain(shape);
	gh_trial_stage_begin(&shape->main, NULL);
	gh_trial_stage_probe(&shape->main, GH_PROBE_INNER, 1, shape->plain, NULL);
	gh_trial_stage_groups(&shape->main);
	gh_trial_create(&shape->trial, &shape->main);
	shape->trial.hasty = shape->trial.engine != gh_cpu_engine();
	gh_trial_bring(&shape->trial, shape->main.pipeline, shape->outer, 0, MaxBlockNumber);
	if (shape->trial.engine->table_clear(shape->plain, &error) != GH_OK)
		gh_report_error(&error, "empty the table of a test");
	gh_trial_wait(&shape->trial);
	finish(shape, true);
}

static void
try_left(Shape *shape)
{
	try_probe(shape, GH_PROBE_LEFT);
}

static void
try_semi(Shape *shape)
{
	try_probe(shape, GH_PROBE_SEMI);
}

static void
try_anti(Shape *shape)
{
	try_probe(shape, GH_PROBE_ANTI);
}

static const struct
{
	const char *name;
	void		(*try) (Shape *shape);
}			shapes[] = {
	{"groups", try_groups},
	{"rows", try_rows},
	{"places", try_places},
	{"clear", try_clear},
	{"joined", try_joined},
	{"left", try_left},
	{"semi", try_semi},
	{"anti", try_anti},
	{"two", try_two},
	{"unmatched", try_unmatched},
	{"regrouped", try_regrouped},
	{"hasty", try_hasty},
	{"found", try_found},
	{"plain", try_plain},
	{"emptied", try_emptied},
};

static void
try_shape(Shape *shape, const char *name)
{
	for (int i = 0; i < (int) lengthof(shapes); i++)
		if (strcmp(shapes[i].name, name) == 0)
		{
			shapes[i].try(shape);
			return;
		}
	elog(ERROR, "there is no shape \"%s\"", name);
}

/*
 * gpuhash_trial_pipeline(engine text, shape text, outer oid, inner oid, mode text, pages int, flight int, capacity int,
 * early bool): what comes out of a pipeline of that shape, by the engine "service" or "cpu", with so many pages a
 * request, requests at a time, and bytes of results at a time.  early: what it uses is given up before it begins.
 */
Datum
gpuhash_trial_pipeline(PG_FUNCTION_ARGS)
{
	/* large for the stack; programs are aligned to 16 */
	Shape	   *shape = (Shape *) TYPEALIGN(64, palloc0(sizeof(Shape) + 64));

	shape->outer = PG_GETARG_OID(2);
	shape->inner = PG_GETARG_OID(3);
	shape->early = PG_GETARG_BOOL(8);
	gh_trial_begin(&shape->trial, text_to_cstring(PG_GETARG_TEXT_PP(0)), text_to_cstring(PG_GETARG_TEXT_PP(4)),
				   PG_GETARG_INT32(5), PG_GETARG_INT32(6), PG_GETARG_INT32(7));
	PG_TRY();
	{
		try_shape(shape, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	}
	PG_FINALLY();
	{
		drop_shape(shape);
	}
	PG_END_TRY();
	PG_RETURN_TEXT_P(cstring_to_text(shape->answer));
}
