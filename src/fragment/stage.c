/*
 * stage.c
 *		Pipelines of the CPU engine over the pages of a relation, which are done one by one, where they are.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "fragment/stage.h"
#include "gpuhash.h"
#include "service/placement.h"

/* Options of a pipeline over the pages of a relation, all else 0.  Their arrays are the caller's, in its memory context. */
void
gh_page_source(Relation relation, const GhProgram *program, GhPipelineOptions *options)
{
	memset(options, 0, sizeof(*options));
	options->program = program;
	options->program_bytes = program->bytes;
	options->source.kind = GH_SOURCE_PAGES;
	options->source.natts = RelationGetDescr(relation)->natts;
	options->source.page_bytes = BLCKSZ;
	options->source.attributes = gh_page_attributes(relation);
}

/* The pipeline's handle and the memory that it works in are not in the context. */
static void
destroy_pipeline(void *arg)
{
	GhStage    *stage = arg;

	stage->pipeline->engine->destroy(stage->pipeline);
}

/* It goes with the context.  NULL: the pipeline cannot be made, and *error says why. */
GhStage *
gh_stage_create(const GhPipelineOptions *options, MemoryContext context, GhError *error)
{
	GhStage    *stage = MemoryContextAllocZero(context, sizeof(GhStage));

	gh_host_init(&stage->host, context);
	if (gh_cpu_engine()->pipelines->create(&stage->host, options, &stage->pipeline, error) != GH_OK)
	{
		pfree(stage);
		return NULL;
	}
	stage->callback.func = destroy_pipeline;
	stage->callback.arg = stage;
	MemoryContextRegisterResetCallback(context, &stage->callback);
	return stage;
}

/*
 * Asks for what is visible on a page, which is not empty.  True: for lines by their bits, which are set, and the
 * caller is to say where they are.
 */
bool
gh_ask_for_lines(const GhPages *pages, GhScanPage *page, uint64 *asked)
{
	const OffsetNumber *visible = pages->lines;
	int			n = pages->ntuples;

	memset(page, 0, sizeof(*page));
	page->block = pages->block;
	page->bitmap = GH_SCAN_ALL;
	page->hinted = pages->by_headers ? pages->upper : 0;
	page->lines = pages->all_visible || pages->by_headers ? n : visible[n - 1];
	if (page->lines > MaxHeapTuplesPerPage)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" has %u line pointers, of %d at most", pages->block,
						RelationGetRelationName(pages->relation), page->lines, (int) MaxHeapTuplesPerPage)));
	if (page->lines == (uint32) n)
		return false;
	memset(asked, 0, sizeof(uint64) * GH_LINE_WORDS);
	for (int i = 0; i < n; i++)
		asked[(visible[i] - 1) / 64] |= UINT64CONST(1) << (visible[i] - 1) % 64;
	return true;
}

/* Submits the stage's request, and sees it done. */
static void
run(GhStage *stage)
{
	const GhPipelineEngine *engine = stage->pipeline->engine;
	GhPipelineRequest *request = &stage->request;

	for (;;)
	{
		GhStatus	status = engine->submit(stage->pipeline, request);

		if (status == GH_BUSY)
			status = engine->wait(request);
		if (status == GH_OK)
			return;
		if (status != GH_STOPPED)
			gh_report_error(&request->error, "run a pipeline");
		gh_serve_interrupt();
	}
}

/* All rows of the page, in the place of the page as a whole. */
static uint32
list_all(const GhPages *pages, GhBackRow *back)
{
	for (int i = 0; i < pages->ntuples; i++)
		back[i] = (GhBackRow) {.line = pages->lines[i]};
	return pages->ntuples;
}

/*
 * Brings the page that is pinned, of which the visible lines are known.  How many rows of it were handed back, or are
 * listed, in the order of their lines; room for MaxHeapTuplesPerPage.  Counts are those of stage->request.
 */
uint32
gh_stage_page(GhStage *stage, const GhPages *pages, GhBackRow *back)
{
	GhPipelineRequest *request = &stage->request;

	memset(request, 0, sizeof(*request));
	if (pages->ntuples == 0)
		return 0;
	request->kind = GH_INPUT_PAGES;
	request->npages = 1;
	request->pages = &stage->page;
	if (gh_ask_for_lines(pages, &stage->page, stage->asked))
	{
		stage->page.bitmap = 0;
		request->bitmaps = stage->asked;
		request->nbitmaps = GH_LINE_WORDS;
	}
	stage->page.page = BufferGetPage(pages->buffer);
	request->back = back;
	request->back_room = MaxHeapTuplesPerPage;
	run(stage);
	return request->nback == 1 && back[0].line == 0 ? list_all(pages, back) : request->nback;
}
