/*
 * pipeline_shared.c
 *		Pipelines that several sessions supply together, and tables that they share, for tests: each call is a step of
 *		one session.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/block.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "service/placement.h"

#include "../../status_name.h"
#include "pipeline_trial.h"

PG_FUNCTION_INFO_V1(gpuhash_trial_shared);

#define REQUEST_PAGES 8

/* What a session holds from one step to the next. */
static GhPipeline *held_pipeline = NULL;
static GhTable *held_table = NULL;
static GhMarks *held_marks = NULL;

/* A step, with what it is about. */
typedef struct Step
{
	GhTrial		trial;
	GhTrialStage stage;
	uint64		number;			/* a root, or how many rows */
	Oid			relation;
	BlockNumber first;
	BlockNumber end;
	char	   *answer;
} Step;

static void
check(GhStatus status, const GhError *error)
{
	if (status != GH_OK)
		gh_report_error(error, "do the step of a test");
}

/* The handle alone: the pipeline is others', too. */
static void
drop_pipeline(void)
{
	if (held_pipeline != NULL)
		gh_service_pipelines.destroy(held_pipeline);
	held_pipeline = NULL;
}

static void
share_stage(Step *step)
{
	GhHost		host;
	GhRef		root;
	GhError		error;

	drop_pipeline();
	gh_host_init(&host, TopMemoryContext);
	step->stage.options.device = gh_service_choose_device();
	check(gh_service_pipeline_create_shared(&host, &step->stage.options, &root, &held_pipeline, &error), &error);
	step->answer = psprintf("%llu", (unsigned long long) root);
}

static void
make_groups(Step *step)
{
	gh_trial_stage_begin(&step->stage, NULL);
	gh_trial_stage_groups(&step->stage);
	share_stage(step);
}

static void
make_table(Step *step)
{
	gh_trial_stage_begin(&step->stage, NULL);
	gh_trial_stage_table(&step->stage);
	share_stage(step);
}

/* Rows joined with the table that is held, whose matches are marked. */
static void
make_marking(Step *step)
{
	held_marks = gh_trial_marks(&step->trial, held_table);
	gh_trial_stage_begin(&step->stage, NULL);
	gh_trial_stage_probe(&step->stage, GH_PROBE_INNER, 2, held_table, held_marks);
	gh_trial_stage_rows(&step->stage);
	share_stage(step);
}

static void
attach(Step *step)
{
	GhHost		host;
	GhError		error;

	drop_pipeline();
	gh_host_init(&host, TopMemoryContext);
	check(gh_service_pipeline_attach(step->number, &host, &held_pipeline, &error), &error);
}

static void
bring(Step *step)
{
	gh_trial_bring(&step->trial, held_pipeline, step->relation, step->first, step->end);
	step->answer = psprintf("%llu", (unsigned long long) step->trial.counted);
}

/* Rows of the table without a match, numbers first to end. */
static void
bring_unmatched(Step *step)
{
	gh_trial_bring_rows(&step->trial, held_pipeline, GH_INPUT_UNMATCHED, 0, step->number);
	step->answer = psprintf("%llu", (unsigned long long) step->trial.counted);
}

static void
fetch_groups(Step *step)
{
	step->answer = gh_trial_groups_text(&step->trial, held_pipeline, 1);
}

static void
fetch_digest(Step *step)
{
	step->answer = gh_trial_digest(&step->trial, held_pipeline);
}

static void
finish_table(Step *step)
{
	GhMadeTable made;

	gh_trial_make_table(&step->trial, held_pipeline, &made);
	held_table = made.table;
	step->answer = psprintf("%llu", (unsigned long long) made.rows);
}

static void
attach_table(Step *step)
{
	GhHost		host;
	GhError		error;

	gh_host_init(&host, TopMemoryContext);
	check(gh_service_engine()->table_attach(&host, step->number, &held_table, &error), &error);
}

/* A pipeline of this session alone, which probes the table that is held. */
static void
probe(Step *step)
{
	gh_trial_stage_begin(&step->stage, NULL);
	gh_trial_stage_probe(&step->stage, GH_PROBE_INNER, 2, held_table, NULL);
	gh_trial_stage_groups(&step->stage);
	gh_trial_create(&step->trial, &step->stage);
	gh_trial_bring(&step->trial, step->stage.pipeline, step->relation, 0, MaxBlockNumber);
	step->answer = gh_trial_groups_text(&step->trial, step->stage.pipeline, 3);
}

/* How many of the keys from 0 on the table that is held has, so many as the number says. */
static void
find_keys(Step *step)
{
	step->answer = psprintf("%llu", (unsigned long long) gh_trial_find(&step->trial, held_table, 0, step->number, NULL));
}

/* What a table that a pipeline made is not for. */
static void
misuse_table(Step *step)
{
	GhRequest	find = {0};
	GhRequest	insert = {0};
	GhTableStats stats;
	GhError		error;

	find.op = GH_FIND;
	insert.op = GH_INSERT;
	find.count = insert.count = 1;
	find.keys = find.values_out = step->trial.lanes[0].buffer;
	insert.keys = insert.values_in = step->trial.lanes[0].buffer;
	step->answer = psprintf("values %s, insert %s, clear %s, reserve %s, flush %s, stats %s",
							gh_status_name(gh_service_engine()->submit(held_table, &find)),
							gh_status_name(gh_service_engine()->submit(held_table, &insert)),
							gh_status_name(gh_service_engine()->table_clear(held_table, &error)),
							gh_status_name(gh_service_engine()->table_reserve(held_table, 100, &error)),
							gh_status_name(gh_service_engine()->table_flush(held_table, &error)),
							gh_status_name(gh_service_engine()->table_stats(held_table, &stats, &error)));
}

/* The handles of this session. */
static void
leave(Step *step)
{
	(void) step;
	drop_pipeline();
	if (held_table != NULL)
		gh_service_engine()->table_detach(held_table);
	if (held_marks != NULL)
		gh_service_pipelines.marks_destroy(held_marks);
	held_table = NULL;
	held_marks = NULL;
}

static void
destroy_table(Step *step)
{
	(void) step;
	gh_service_engine()->table_destroy(held_table);
	held_table = NULL;
}

static void
release(Step *step)
{
	gh_service_table_release(step->number);
}

static const struct
{
	const char *name;
	void		(*run) (Step *step);
}			steps[] = {
	{"make groups", make_groups},
	{"make table", make_table},
	{"make marking", make_marking},
	{"attach", attach},
	{"attach table", attach_table},
	{"leave", leave},
	{"release", release},
	/* from here on with a pipeline, or a table, that is held */
	{"bring", bring},
	{"bring unmatched", bring_unmatched},
	{"fetch groups", fetch_groups},
	{"fetch digest", fetch_digest},
	{"finish table", finish_table},
	{"probe", probe},
	{"find", find_keys},
	{"misuse table", misuse_table},
	{"destroy table", destroy_table},
};

#define STEPS_WITHOUT_HOLD 7

static void
run_step(Step *step, const char *name)
{
	for (int i = 0; i < (int) lengthof(steps); i++)
		if (strcmp(steps[i].name, name) == 0)
		{
			if (i >= STEPS_WITHOUT_HOLD && held_pipeline == NULL && held_table == NULL)
				elog(ERROR, "this session holds nothing");
			steps[i].run(step);
			return;
		}
	elog(ERROR, "there is no step \"%s\"", name);
}

/*
 * gpuhash_trial_shared(step text, number bigint, relation oid, first int, last int): a step; the number is a root, or how
 * many rows; first and end are blocks.
 */
Datum
gpuhash_trial_shared(PG_FUNCTION_ARGS)
{
	Step	   *step = (Step *) TYPEALIGN(64, palloc0(sizeof(Step) + 64));

	gh_trial_begin(&step->trial, "service", "pinned", REQUEST_PAGES, 2, 65536);
	step->number = (uint64) PG_GETARG_INT64(1);
	step->relation = PG_GETARG_OID(2);
	step->first = (BlockNumber) PG_GETARG_INT32(3);
	step->end = (BlockNumber) PG_GETARG_INT32(4);
	step->answer = "done";
	PG_TRY();
	{
		run_step(step, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	}
	PG_FINALLY();
	{
		gh_trial_destroy(&step->stage);
		gh_trial_give_back(&step->trial);
	}
	PG_END_TRY();
	PG_RETURN_TEXT_P(cstring_to_text(step->answer));
}
