/*
 * stage_columns.c
 *		Blocks of which columns are in shared memory, in the place of their pages: rows of a pipeline of the CPU engine.
 *
 * They have their turn among the pages, in the order of the blocks, and so nobody can tell from the rows
 * where they came from.  A run of them is a request by itself, behind that of the pages that were held before
 * it.  A row that is handed back is read from its page, where it still is.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "fragment/stage.h"

/* Bits for the rows of a run. */
#define GH_RUN_WORDS ((GH_STRIPE_ROWS + 63) / 64)

/* GhPages.has_blocks: as few as pages are held, where rows come back. */
static uint32
has_blocks(void *arg, BlockNumber block)
{
	GhStage    *stage = arg;
	uint32		count = gh_columns_find(stage->columns, block);

	return stage->held->most < GH_HELD_MAX ? Min(count, stage->held->most) : count;
}

/* The columns of the pipeline's program that are the source's. */
static void
open_columns(GhStage *stage, GhPages *pages)
{
	const GhPipelineOptions *options = &stage->pipeline->plan->options;
	const GhColumn *columns = gh_program_columns(options->program);
	GhColumn	wanted[GH_PROGRAM_VECTORS_MAX];

	stage->ngiven = 0;
	for (uint32 v = 0; v < options->program->ncolumns; v++)
	{
		if (columns[v].attribute > options->source.natts)
			continue;
		wanted[stage->ngiven] = columns[v];
		stage->given[stage->ngiven++] = v;
	}
	stage->columns = gh_columns_open(pages, options->source.natts, options->source.attributes, stage->ngiven, wanted,
									 stage->context);
}

static void
make_run_room(GhStage *stage)
{
	GhHeldPages *held = stage->held;

	if (held->run_asked != NULL)
		return;
	held->run_asked = MemoryContextAlloc(stage->context, sizeof(uint64) * GH_RUN_WORDS);
	held->back = repalloc(held->back, sizeof(GhBackRow) * GH_STRIPE_ROWS);
}

/*
 * Pages of the scan, which has begun, are read for the stage from here on, up to gh_stage_end_reading().
 * True: a run of blocks waits to be brought before any of them.
 */
bool
gh_stage_begin_reading(GhStage *stage, GhPages *pages)
{
	if (stage->columns_of != pages)
	{
		if (stage->columns != NULL)
			gh_columns_close(stage->columns);
		stage->columns = NULL;
		stage->columns_of = pages;
		open_columns(stage, pages);
	}
	if (stage->columns == NULL)
		return false;
	gh_stage_make_held(stage);
	make_run_room(stage);
	pages->has_blocks = has_blocks;
	pages->has_blocks_arg = stage;
	return stage->held->run > 0;
}

void
gh_stage_end_reading(const GhStage *stage, GhPages *pages)
{
	if (stage->columns != NULL)
		pages->has_blocks = NULL;
}

/* The blocks that were read last are in no buffer. */
void
gh_stage_hold_run(GhStage *stage, const GhPages *pages)
{
	GhHeldPages *held = stage->held;

	held->run_block = pages->block;
	held->run = pages->run;
	held->run_rows = gh_columns_rows(stage->columns, pages->block, pages->run);
	held->run_buffer = InvalidBuffer;
	held->run_again = false;
	if (held->npages == 0)
		held->ntuples = held->run_rows.count;
}

/*
 * Brings the rows of the run, or, again, those whose bits are set.  Which are handed back is in held->back.
 */
void
gh_stage_run_rows(GhStage *stage)
{
	GhHeldPages *held = stage->held;
	GhPipelineRequest *request = &held->request;

	memset(request, 0, sizeof(*request));
	request->kind = GH_INPUT_COLUMNS;
	request->ngiven = stage->ngiven;
	request->given = stage->given;
	request->packed = gh_columns_packed(stage->columns);
	request->first = held->run_rows.first;
	request->count = held->run_rows.count;
	request->bitmaps = held->run_again ? held->run_asked : NULL;
	request->nbitmaps = GH_RUN_WORDS;
	request->back = held->back;
	request->back_room = GH_STRIPE_ROWS;
	gh_stage_run(stage, request);
	held->nback = request->nback;
}

/* Those that were handed back are to be brought once more. */
void
gh_stage_ask_again_of_run(GhHeldPages *held)
{
	memset(held->run_asked, 0, sizeof(uint64) * GH_RUN_WORDS);
	for (uint32 i = 0; i < held->nback; i++)
		held->run_asked[held->back[i].page / 64] |= UINT64CONST(1) << held->back[i].page % 64;
	held->run_again = true;
}

/* The page of a row of the run that was handed back, pinned until the next one's, or the run's release. */
Buffer
gh_stage_pin_row(GhStage *stage, GhPages *pages, const GhBackRow *row, BlockNumber *block, OffsetNumber *line)
{
	GhHeldPages *held = stage->held;

	*line = gh_columns_line(stage->columns, held->run_rows.first + row->page, block);
	if (BufferIsValid(held->run_buffer) && held->run_buffer_block == *block)
		return held->run_buffer;
	gh_stage_leave_row(held);
	held->run_buffer = gh_pages_pin_again(pages, *block);
	held->run_buffer_block = *block;
	return held->run_buffer;
}

void
gh_stage_leave_row(GhHeldPages *held)
{
	if (BufferIsValid(held->run_buffer))
		ReleaseBuffer(held->run_buffer);
	held->run_buffer = InvalidBuffer;
}
