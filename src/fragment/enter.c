/*
 * enter.c
 *		Rows enter the pipeline of a fragment, on the CPU: those of a page of the scan, and those that are brought as
 *		columns.  Joins that the node does by itself (joined.c) are steps of it.
 *
 * Where the sink has no memory for a row, the node makes some (GhFragmentMethods.make_memory), and the row
 * comes again.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "fragment/fragment.h"
#include "fragment/joined.h"
#include "service/placement.h"

/* ------------------------------------------------------------ the pipeline */

/* The code of a join's key is made in front of its probe: in the step before, unless that is a probe. */
static void
add_code(const GhJoinLevel *level, GhStep *steps, GhPipelineOptions *options)
{
	if (!level->lower->is_coded)
		return;
	if (steps[options->nsteps - 1].probe != 0)
		options->nsteps++;
	steps[options->nsteps - 1].end = level->key_end;
}

/* The step of a join's probe, with its conditions on the pair, and that of those on the joined row. */
static void
add_join(GhJoinLevel *level, GhStep *steps, GhPipelineOptions *options)
{
	add_code(level, steps, options);
	level->step = level->last_step = options->nsteps;
	steps[options->nsteps++] = (GhStep) {.end = level->pair_end,.probe = ++options->nprobes};
	if (level->filter_end == level->pair_end)
		return;
	level->last_step = options->nsteps;
	steps[options->nsteps++].end = level->filter_end;
}

/*
 * The steps of a pipeline, whose program begins with the scan's conditions, nfilters instructions; joined: of
 * the joins that are probed, or NULL.  apart: these are a step even if there are none.
 */
void
gh_fragment_add_steps(GhJoined *joined, uint32 nfilters, bool apart, GhPipelineOptions *options)
{
	uint32		ninstructions = options->program->ninstructions;
	int			first = joined == NULL ? 0 : joined->base + 1;
	int			nlevels = joined == NULL ? 0 : joined->nlevels;
	GhStep	   *steps = palloc0(sizeof(GhStep) * (3 * (nlevels - first) + 2));

	/* a step of their own for the scan's conditions: rows that pass them are counted */
	if (first < nlevels || ((apart || nfilters > 0) && nfilters < ninstructions))
		steps[options->nsteps++].end = nfilters;
	for (int i = first; i < nlevels; i++)
		add_join(&joined->levels[i], steps, options);
	if (first == nlevels || steps[options->nsteps - 1].end < ninstructions)
		steps[options->nsteps++].end = ninstructions;
	options->steps = steps;
}

/*
 * The options of a pipeline of the fragment's program, but for its sink; their arrays are in the current context.
 * probes: of the joins that are probed.
 */
void
gh_fragment_stage_options(GhFragment *fragment, const GhProbe *probes, GhPipelineOptions *options)
{
	const GhFragmentProgram *program = &fragment->program;

	gh_stage_options(fragment->by_rows ? NULL : ((ScanState *) fragment->scan)->ss_currentRelation, program->program,
					 options);
	if (fragment->by_rows)
		options->source.natts = gh_joined_nprobes(fragment) > 0 ? gh_joined_natts(fragment->joined) :
			fragment->ncolumns;
	gh_fragment_add_steps(fragment->joined, program->nfilters, program->narrowed, options);
	options->probes = probes;
}

/*
 * Makes the program's pipeline, in the current context, which is the program's; doing: for a message.  False:
 * there is none, and so no program.
 */
bool
gh_fragment_create_stage(GhFragment *fragment, const GhPipelineOptions *options, const char *doing)
{
	GhFragmentProgram *program = &fragment->program;
	GhError		error;

	program->stage = gh_stage_create(options, NULL, program->context, &error);
	if (program->stage != NULL)
		return true;
	if (error.status == GH_NO_MEMORY)
		gh_report_error(&error, doing);
	program->why_not = pstrdup(error.message);
	program->program = NULL;
	return false;
}

/*
 * How many rows of the request, not handed back, the scan's conditions accept; and those that came through
 * the joins.
 */
static uint64
count_passed(GhFragment *fragment, const GhPipelineRequest *request)
{
	if (gh_joined_nprobes(fragment) > 0)
		gh_joined_count(fragment->joined, request->passed);
	return request->passed[0];
}

/*
 * Of rows that were handed back: whether they are to come again, because some had no memory, and now there
 * is.  Not if none was taken with the sink as empty as it gets, which *emptied says.
 */
static bool
make_memory(GhFragment *fragment, const GhPipelineRequest *request, bool *emptied)
{
	CHECK_FOR_INTERRUPTS();
	if (request->no_memory == 0 || (*emptied && request->counted == 0))
		return false;
	fragment->methods->make_memory(fragment);
	*emptied = true;
	return true;
}

/* ------------------------------------------------------------------- columns */

/* The values of a row to another one's place. */
void
gh_entering_move(GhEnteringRows *rows, uint32 to, uint32 from)
{
	for (uint32 v = 0; v < rows->ngiven && to != from; v++)
	{
		rows->vectors[v].low[to] = rows->vectors[v].low[from];
		rows->vectors[v].high[to] = rows->vectors[v].high[from];
		rows->vectors[v].null[to] = rows->vectors[v].null[from];
	}
}

/* Keeps the rows that were handed back, in front. */
static void
keep_rows(GhEnteringRows *rows, uint32 nback)
{
	for (uint32 i = 0; i < nback; i++)
	{
		uint32		from = rows->back[i].page;

		gh_entering_move(rows, i, from);
		rows->numbers[i] = rows->numbers[from];
	}
}

/*
 * The first rows of the vectors, nrows of them, enter before a step.  How many are handed back: these are
 * then the first in rows->numbers.
 */
uint32
gh_enter_columns(GhFragment *fragment, uint32 step, GhEnteringRows *rows, uint32 nrows)
{
	GhPipelineRequest request;
	bool		emptied = false;

	do
	{
		if (nrows == 0)
			break;
		gh_stage_rows(fragment->program.stage, step, rows, nrows, &request);
		if (step == 0)
			(void) count_passed(fragment, &request);
		nrows = request.nback;
		keep_rows(rows, nrows);
	} while (make_memory(fragment, &request, &emptied));
	return nrows;
}

/* --------------------------------------------------------------------- pages */

/*
 * The page that is pinned.  How many of its rows, not handed back, the scan's conditions accept; *nback are,
 * and these rows are in back.
 */
uint64
gh_enter_page(GhFragment *fragment, GhBackRow *back, uint32 *nback)
{
	GhStage    *stage = fragment->program.stage;
	bool		emptied = false;
	uint64		passed;

	fragment->methods->enter_waiting(fragment);
	*nback = gh_stage_page(stage, fragment->pages, back);
	passed = count_passed(fragment, &stage->request);
	while (make_memory(fragment, &stage->request, &emptied))
	{
		*nback = gh_stage_page_again(stage, *nback, back);
		passed += count_passed(fragment, &stage->request);
	}
	return passed;
}

/*
 * The pages that the stage holds, likewise: of how many rows, not handed back, the scan's conditions accept.
 */
uint64
gh_enter_held(GhFragment *fragment)
{
	GhStage    *stage = fragment->program.stage;
	bool		emptied = false;
	uint64		passed;

	fragment->methods->enter_waiting(fragment);
	gh_stage_run_held(stage);
	passed = count_passed(fragment, &stage->held->request);
	while (make_memory(fragment, &stage->held->request, &emptied))
	{
		gh_stage_run_held_again(stage);
		passed += count_passed(fragment, &stage->held->request);
	}
	return passed;
}
