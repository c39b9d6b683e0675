/*
 * page_conditions.c
 *		The conditions of a scan as a program over its pages, and the rows that they accept, one by one, for those who
 *		read the pages.
 *
 * Conditions are taken in the plan's order up to the first that has no program; those that follow are
 * evaluated row by row, for rows that passed the others, and for rows that the program hands back all are,
 * when their turn comes.  So nothing is evaluated that PostgreSQL would not, and nothing sooner than a
 * condition in front of it.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "expr/fold.h"
#include "expr/translate.h"
#include "fragment/page_conditions.h"
#include "service/placement.h"

void
gh_page_conditions_init(GhPageConditions *conditions, ScanState *scan, GhPages *pages, bool wants_rest)
{
	memset(conditions, 0, sizeof(*conditions));
	conditions->scan = scan;
	conditions->pages = pages;
	conditions->wants_rest = wants_rest;
	conditions->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHash page conditions",
												ALLOCSET_DEFAULT_SIZES);
}

/* ------------------------------------------------------------- the program */

/*
 * A translation of the first *nquals conditions; NULL: one of them has none, and these are those before it.
 */
static GhTranslation *
translate(GhPageConditions *conditions, int *nquals, ParamExecData **awaited)
{
	PlanState  *ps = &conditions->scan->ps;
	List	   *quals = list_truncate(list_copy(ps->plan->qual), *nquals);
	GhTranslation *translation = gh_translate_begin(RelationGetDescr(conditions->scan->ss_currentRelation),
													((Scan *) ps->plan)->scanrelid);

	if (gh_translate_conditions(ps, translation, quals, nquals, awaited))
		return translation;
	conditions->why_not = translation->why_not;
	return NULL;
}

/* The pipeline that lists the rows of a page for which all conditions of the program are true. */
static bool
make_stage(GhPageConditions *conditions)
{
	GhStep		steps[] = {{.end = conditions->nfilters}, {.end = conditions->program->ninstructions}};
	bool		narrowed = steps[0].end < steps[1].end;
	GhPipelineOptions options;
	GhError		error;

	gh_stage_options(conditions->scan->ss_currentRelation, conditions->program, &options);
	options.nsteps = narrowed ? 2 : 1;
	options.steps = narrowed ? steps : steps + 1;
	options.sink.kind = GH_SINK_PLACES;
	conditions->stage = gh_stage_create(&options, NULL, conditions->context, &error);
	if (conditions->stage == NULL && error.status == GH_NO_MEMORY)
		gh_report_error(&error, "evaluate conditions");
	if (conditions->stage == NULL)
		conditions->why_not = pstrdup(error.message);
	return conditions->stage != NULL;
}

/* The first nfilters instructions are those of the plan's conditions. */
static void
keep_program(GhPageConditions *conditions, GhTranslation *translation, int nfilters, int nquals)
{
	PlanState  *ps = &conditions->scan->ps;

	conditions->program = gh_translate_end(translation);
	conditions->nfilters = nfilters;
	if (conditions->program == NULL)
	{
		conditions->why_not = translation->why_not;
		return;
	}
	if (!make_stage(conditions))
	{
		conditions->program = NULL;
		return;
	}
	conditions->nquals = nquals;
	if (conditions->wants_rest)
		conditions->rest = ExecInitQual(list_copy_tail(ps->plan->qual, nquals), ps);
	else if (nquals < list_length(ps->plan->qual))
		conditions->rest = ps->qual;
}

/*
 * Whether there is a program for the first conditions of the scan, which is made at the first call, and made
 * anew when a subquery has been run whose result is in one of the others.
 */
bool
gh_page_conditions_compile(GhPageConditions *conditions)
{
	int			nquals = list_length(conditions->scan->ps.plan->qual);
	GhTranslation *translation = NULL;
	ParamExecData *awaited = NULL;
	MemoryContext saved;

	if (conditions->tried && (conditions->awaited == NULL || conditions->awaited->execPlan != NULL))
		return conditions->program != NULL;
	gh_page_conditions_forget(conditions);
	saved = MemoryContextSwitchTo(conditions->context);
	while (nquals > 0 && translation == NULL)
		translation = translate(conditions, &nquals, &awaited);
	if (translation != NULL)
		keep_program(conditions, translation, translation->ninstructions, nquals);
	conditions->awaited = awaited;
	conditions->tried = true;
	MemoryContextSwitchTo(saved);
	return conditions->program != NULL;
}

/* Of a scan, and whether the result of a subquery is awaited. */
typedef struct Computed
{
	PlanState  *ps;
	ParamExecData *awaited;
} Computed;

/* GhOverRows */
static Expr *
folded(Expr *expr, void *arg)
{
	Computed   *computed = arg;

	return (Expr *) gh_fold_constants(computed->ps, (Node *) expr, &computed->awaited);
}

/*
 * Makes the program anew: with all that PostgreSQL computes of rows that pass, so that one for which it might
 * raise an error is handed back, and a further condition of the caller's, or NULL.  False: there is no such
 * program, and it is as it was; so it is where it does not have all of the plan's conditions.
 */
bool
gh_page_conditions_narrow(GhPageConditions *conditions, Expr *further)
{
	PlanState  *ps = &conditions->scan->ps;
	GhPageConditions before = *conditions;
	MemoryContext saved = MemoryContextSwitchTo(conditions->context);
	int			nquals = list_length(ps->plan->qual);
	Computed	computed = {.ps = ps};
	GhTranslation *translation = translate(conditions, &nquals, &computed.awaited);
	int			nfilters = translation == NULL ? 0 : translation->ninstructions;

	conditions->program = NULL;
	if (translation != NULL && gh_translate_computed(translation, ps->plan->targetlist, folded, &computed) &&
		(further == NULL || gh_translate_filter(translation, further)) && computed.awaited == NULL)
		keep_program(conditions, translation, nfilters, nquals);
	MemoryContextSwitchTo(saved);
	if (conditions->program == NULL)
	{
		*conditions = before;
		return false;
	}
	conditions->tried = true;
	return true;
}

/* Rows of a request that pass the plan's conditions, but not what narrows them. */
uint64
gh_page_conditions_left(const GhPageConditions *conditions, const GhPipelineRequest *request)
{
	return conditions->nfilters < conditions->program->ninstructions ? request->passed[0] - request->counted : 0;
}

/* Before a run with other parameters. */
void
gh_page_conditions_forget(GhPageConditions *conditions)
{
	gh_page_conditions_leave(conditions);
	MemoryContextReset(conditions->context);
	conditions->tried = false;
	conditions->awaited = NULL;
	conditions->why_not = NULL;
	conditions->nquals = 0;
	conditions->nfilters = 0;
	conditions->program = NULL;
	conditions->rest = NULL;
	conditions->stage = NULL;
}

/* ------------------------------------------------------- the rows of a page */

/*
 * A page is pinned: picks rows of it by the program, or, where there is none or it is not to be run, all for
 * PostgreSQL's expressions.  Or there is a run of blocks (gh_page_conditions_read).
 */
void
gh_page_conditions_pick(GhPageConditions *conditions, bool by_program)
{
	conditions->left = 0;
	if (conditions->in_run)
	{
		gh_page_columns_pick(conditions);
		return;
	}
	conditions->tuple = conditions->next = 0;
	if (!by_program || !gh_page_conditions_compile(conditions))
		conditions->npicks = gh_list_rows(conditions->pages, conditions->picks);
	else
	{
		conditions->npicks = gh_stage_page(conditions->stage, conditions->pages, conditions->picks);
		/* of an empty page the stage was not asked */
		if (conditions->pages->ntuples > 0)
			conditions->left = gh_page_conditions_left(conditions, &conditions->stage->request);
	}
	conditions->pages_picked++;
	conditions->seen += conditions->pages->ntuples;
	conditions->picked += conditions->npicks;
	if (conditions->npicks == 0)
		(void) gh_page_conditions_next(conditions);
}

/* Whatever is left of the pages that were read is not asked for. */
void
gh_page_conditions_leave(GhPageConditions *conditions)
{
	conditions->in_run = false;
	conditions->next = conditions->npicks = 0;
	conditions->seen = conditions->picked = conditions->pages_picked = 0;
}

/*
 * Goes on to the page's next tuple that the conditions accept, from conditions->tuple on, which is that one
 * then; false: it has no more.
 */
bool
gh_page_conditions_next(GhPageConditions *conditions)
{
	ScanState  *scan = conditions->scan;
	GhPages    *pages = conditions->pages;
	int			first = conditions->tuple;
	bool		found = false;

	while (!found && conditions->next < conditions->npicks)
	{
		const GhBackRow *pick = &conditions->picks[conditions->next++];
		ExprState  *quals;

		conditions->is_back = pick->step != GH_STEP_LIVE;
		quals = conditions->is_back ? scan->ps.qual : conditions->rest;
		conditions->in_slot = quals != NULL;
		found = quals == NULL || gh_scan_accepts(scan, pages, pages->buffer, pages->block, pick->line, quals);
		if (found && conditions->in_run)
			conditions->tuple = (int) pick->page;
		while (found && pages->lines[conditions->tuple] != pick->line)
			conditions->tuple++;
	}
	if (!found)
		conditions->tuple = pages->ntuples;
	InstrCountFiltered1(scan, conditions->tuple - first);
	return found;
}
