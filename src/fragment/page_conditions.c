/*
 * page_conditions.c
 *		The conditions of a scan as a program over its pages, for those who read them and want rows that pass.
 *
 * Conditions are taken in the plan's order up to the first that has no program; those that follow are
 * evaluated row by row, for rows that passed the others.  So nothing is evaluated that PostgreSQL
 * would not, and nothing sooner than a condition in front of it.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "expr/fold.h"
#include "expr/translate.h"
#include "fragment/page_conditions.h"
#include "service/placement.h"

/* A translation of the first nquals conditions; NULL: one of them, *failed, has none. */
static GhTranslation *
translate(GhPageConditions *conditions, ScanState *scan, int nquals, int *failed, ParamExecData **awaited)
{
	PlanState  *ps = &scan->ps;
	GhTranslation *translation = gh_translate_begin(RelationGetDescr(scan->ss_currentRelation),
													((Scan *) ps->plan)->scanrelid);

	for (int i = 0; i < nquals; i++)
		if (!gh_translate_filter(translation,
								 (Expr *) gh_fold_constants(ps, list_nth(ps->plan->qual, i), awaited)))
		{
			conditions->why_not = translation->why_not;
			*failed = i;
			return NULL;
		}
	return translation;
}

/* The pipeline that lists the rows of a page for which all conditions of the program are true. */
static bool
make_stage(GhPageConditions *conditions, ScanState *scan)
{
	GhStep		step = {.end = conditions->program->ninstructions};
	GhPipelineOptions options;
	GhError		error;

	gh_stage_options(scan->ss_currentRelation, conditions->program, &options);
	options.nsteps = 1;
	options.steps = &step;
	options.sink.kind = GH_SINK_PLACES;
	conditions->stage = gh_stage_create(&options, NULL, conditions->context, &error);
	if (conditions->stage == NULL && error.status == GH_NO_MEMORY)
		gh_report_error(&error, "evaluate conditions");
	if (conditions->stage == NULL)
		conditions->why_not = pstrdup(error.message);
	return conditions->stage != NULL;
}

static void
keep_program(GhPageConditions *conditions, ScanState *scan, GhTranslation *translation, int nquals)
{
	conditions->program = gh_translate_end(translation);
	if (conditions->program == NULL)
	{
		conditions->why_not = translation->why_not;
		return;
	}
	if (!make_stage(conditions, scan))
	{
		conditions->program = NULL;
		return;
	}
	conditions->nquals = nquals;
	if (conditions->wants_rest)
		conditions->rest = ExecInitQual(list_copy_tail(scan->ps.plan->qual, nquals), &scan->ps);
}

/*
 * Whether there is a program for the first conditions of the scan, which is made at the first call, and made anew
 * when a subquery has been run whose result is in one of the others.
 */
bool
gh_page_conditions_compile(GhPageConditions *conditions, ScanState *scan)
{
	int			nquals = list_length(scan->ps.plan->qual);
	GhTranslation *translation = NULL;
	ParamExecData *awaited = NULL;
	MemoryContext saved;

	if (conditions->tried && (conditions->awaited == NULL || conditions->awaited->execPlan != NULL))
		return conditions->program != NULL;
	gh_page_conditions_forget(conditions);
	saved = MemoryContextSwitchTo(conditions->context);
	while (nquals > 0 && translation == NULL)
		translation = translate(conditions, scan, nquals, &nquals, &awaited);
	if (translation != NULL)
		keep_program(conditions, scan, translation, nquals);
	conditions->awaited = awaited;
	conditions->tried = true;
	MemoryContextSwitchTo(saved);
	return conditions->program != NULL;
}

/* Before a run with other parameters. */
void
gh_page_conditions_forget(GhPageConditions *conditions)
{
	MemoryContext context = conditions->context;
	bool		wants_rest = conditions->wants_rest;

	MemoryContextReset(context);
	memset(conditions, 0, sizeof(*conditions));
	conditions->context = context;
	conditions->wants_rest = wants_rest;
}
