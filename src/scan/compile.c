/*
 * compile.c
 *		The conditions of one execution as a program.
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
#include "heap/layout.h"
#include "scan/node.h"
#include "service/placement.h"

/* A translation of the first nquals conditions; NULL: one of them, *failed, has none. */
static GhTranslation *
translate(GhRowScan *node, int nquals, int *failed, ParamExecData **awaited)
{
	PlanState  *ps = &node->css.ss.ps;
	GhTranslation *translation = gh_translate_begin(RelationGetDescr(node->css.ss.ss_currentRelation),
													((Scan *) ps->plan)->scanrelid);

	for (int i = 0; i < nquals; i++)
		if (!gh_translate_filter(translation,
								 (Expr *) gh_fold_constants(ps, list_nth(ps->plan->qual, i), awaited)))
		{
			node->program.why_not = translation->why_not;
			*failed = i;
			return NULL;
		}
	return translation;
}

/* The pipeline that lists the rows of a page for which all conditions of the program are true. */
static bool
make_stage(GhRowScan *node)
{
	GhRowScanProgram *program = &node->program;
	GhStep		step = {.end = program->program->ninstructions};
	GhPipelineOptions options;
	GhError		error;

	gh_stage_options(node->css.ss.ss_currentRelation, program->program, &options);
	options.nsteps = 1;
	options.steps = &step;
	options.sink.kind = GH_SINK_PLACES;
	program->stage = gh_stage_create(&options, NULL, program->context, &error);
	if (program->stage == NULL && error.status == GH_NO_MEMORY)
		gh_report_error(&error, "evaluate conditions");
	if (program->stage == NULL)
		program->why_not = pstrdup(error.message);
	return program->stage != NULL;
}

static void
keep_program(GhRowScan *node, GhTranslation *translation, int nquals)
{
	GhRowScanProgram *program = &node->program;

	program->program = gh_translate_end(translation);
	if (program->program == NULL)
	{
		program->why_not = translation->why_not;
		return;
	}
	if (!make_stage(node))
	{
		program->program = NULL;
		return;
	}
	program->nquals = nquals;
	program->rest = ExecInitQual(list_copy_tail(node->css.ss.ps.plan->qual, nquals), &node->css.ss.ps);
}

/*
 * Whether there is a program for the first conditions, which is made at the first call, and made anew
 * when a subquery has been run whose result is in one of the others.
 */
bool
gh_rowscan_compile(GhRowScan *node)
{
	GhRowScanProgram *program = &node->program;
	int			nquals = list_length(node->css.ss.ps.plan->qual);
	GhTranslation *translation = NULL;
	ParamExecData *awaited = NULL;
	MemoryContext saved;

	if (program->tried && (program->awaited == NULL || program->awaited->execPlan != NULL))
		return program->program != NULL;
	gh_rowscan_forget_program(node);
	saved = MemoryContextSwitchTo(program->context);
	while (nquals > 0 && translation == NULL)
		translation = translate(node, nquals, &nquals, &awaited);
	if (translation != NULL)
		keep_program(node, translation, nquals);
	program->awaited = awaited;
	program->tried = true;
	MemoryContextSwitchTo(saved);
	return program->program != NULL;
}

/* Before a run with other parameters. */
void
gh_rowscan_forget_program(GhRowScan *node)
{
	MemoryContext context = node->program.context;

	MemoryContextReset(context);
	memset(&node->program, 0, sizeof(node->program));
	node->program.context = context;
}
