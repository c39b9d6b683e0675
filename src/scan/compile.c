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

/* How the columns that the program reads lie in the relation's tuples. */
static bool
prepare_shape(GhRowScan *node)
{
	GhRowScanProgram *program = &node->program;
	TupleDesc	desc = RelationGetDescr(node->css.ss.ss_currentRelation);
	GhPageAttribute *attributes = palloc(sizeof(GhPageAttribute) * desc->natts);
	GhError		error;

	for (int i = 0; i < desc->natts; i++)
		attributes[i] = gh_page_attribute(desc, i + 1);
	return gh_page_shape_init(&program->shape, BLCKSZ, desc->natts, attributes, program->program->ncolumns,
							  gh_program_columns(program->program), &error) == GH_OK;
}

static void
keep_program(GhRowScan *node, GhTranslation *translation, int nquals)
{
	GhRowScanProgram *program = &node->program;
	GhError		error;

	program->program = gh_translate_end(translation);
	if (program->program == NULL)
	{
		program->why_not = translation->why_not;
		return;
	}
	if (gh_program_check(program->program, program->program->bytes, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	if (!prepare_shape(node))
	{
		program->program = NULL;
		program->why_not = "the relation's tuples are not known to the engines";
		return;
	}
	gh_batch_prepare(&program->batch, program->program,
					 (void *) TYPEALIGN(64, palloc(gh_batch_bytes(program->program) + 64)));
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
