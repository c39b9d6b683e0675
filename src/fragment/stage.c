/*
 * stage.c
 *		Pipelines of the CPU engine in this process, to which a node brings rows: pages of a relation, which are done
 *		where they are, and columns.  Several pages in one request: stage_pages.c.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "expr/values.h"
#include "fragment/stage.h"
#include "gpuhash.h"
#include "heap/layout.h"
#include "service/placement.h"

/*
 * Options of a pipeline over the pages of a relation, or, without one, over rows that are brought as columns;
 * all else is 0.  Their arrays are in the memory context.
 */
void
gh_stage_options(Relation relation, const GhProgram *program, GhPipelineOptions *options)
{
	memset(options, 0, sizeof(*options));
	options->program = program;
	options->program_bytes = program->bytes;
	options->source.kind = relation != NULL ? GH_SOURCE_PAGES : GH_SOURCE_COLUMNS;
	if (relation == NULL)
		return;
	options->source.natts = RelationGetDescr(relation)->natts;
	options->source.page_bytes = BLCKSZ;
	options->source.attributes = gh_scan_attributes(relation);
}

/* The pipeline's handle and the memory that it works in are not in the context. */
static void
destroy_pipeline(void *arg)
{
	gh_stage_destroy(arg);
}

/* The pipeline goes before its context does.  Not twice. */
void
gh_stage_destroy(GhStage *stage)
{
	if (stage->pipeline != NULL)
		stage->pipeline->engine->destroy(stage->pipeline);
	stage->pipeline = NULL;
}

/*
 * It goes with the context.  host: whose memory the sink's is; NULL: the context's.  NULL is returned where
 * the pipeline cannot be made, and *error says why.
 *
 * One that participants share is the caller's to destroy while their memory is there: when a process ends,
 * that has gone before its contexts do.
 */
GhStage *
gh_stage_create(const GhPipelineOptions *options, const GhHost *host, MemoryContext context, GhError *error)
{
	GhStage    *stage = MemoryContextAllocZero(context, sizeof(GhStage));

	if (host != NULL)
		stage->host = *host;
	else
		gh_host_init(&stage->host, context);
	/* what keeps nothing takes no longer for a page than other nodes take between two looks */
	if (options->sink.kind == GH_SINK_PLACES)
		stage->host.stop = NULL;
	stage->context = context;
	if (gh_cpu_engine()->pipelines->create(&stage->host, options, &stage->pipeline, error) != GH_OK)
	{
		pfree(stage);
		return NULL;
	}
	stage->request.kind = GH_INPUT_PAGES;
	stage->request.npages = 1;
	stage->request.pages = &stage->page;
	stage->request.bitmaps = stage->asked;
	stage->request.nbitmaps = GH_LINE_WORDS;
	stage->request.back_room = MaxHeapTuplesPerPage;
	stage->callback.func = destroy_pipeline;
	stage->callback.arg = stage;
	if (options->shared_sink == 0)
		MemoryContextRegisterResetCallback(context, &stage->callback);
	return stage;
}

/* Room for these vectors of so many rows, in the current context. */
static GhEnteringRows *
make_entering(uint32 ngiven, const uint16 *given, const GhColumn *columns, uint32 nrows)
{
	GhEnteringRows *rows = palloc(sizeof(GhEnteringRows));

	rows->ngiven = ngiven;
	rows->given = palloc(sizeof(uint16) * Max(ngiven, 1));
	memcpy(rows->given, given, sizeof(uint16) * ngiven);
	rows->columns = columns;
	rows->vectors = palloc(sizeof(GhVector) * Max(ngiven, 1));
	for (uint32 g = 0; g < ngiven; g++)
	{
		rows->vectors[g].low = palloc0(sizeof(uint64) * nrows);
		rows->vectors[g].high = palloc0(sizeof(uint64) * nrows);
		rows->vectors[g].null = palloc0(nrows);
	}
	rows->numbers = palloc(sizeof(uint16) * nrows);
	rows->back = palloc(sizeof(GhBackRow) * nrows);
	return rows;
}

/*
 * Of rows that come before the first step: the program's columns of the first natts attributes; joins fill
 * the others.
 */
GhEnteringRows *
gh_entering_create(const GhProgram *program, int natts, uint32 nrows)
{
	const GhColumn *columns = gh_program_columns(program);
	uint16		given[GH_PROGRAM_VECTORS_MAX];
	uint32		ngiven = 0;

	for (uint32 v = 0; v < program->ncolumns; v++)
		if (columns[v].attribute <= natts)
			given[ngiven++] = v;
	return make_entering(ngiven, given, columns, nrows);
}

/*
 * Of rows that come before some step, or behind the last one: what is read from there on.  columns: as of
 * GhEnteringRows.
 */
GhEnteringRows *
gh_entering_create_before(const GhStage *stage, uint32 step, const GhColumn *columns, uint32 nrows)
{
	const GhPipelinePlan *plan = stage->pipeline->plan;
	uint16		given[GH_PROGRAM_VECTORS_MAX];
	uint32		ngiven = 0;

	for (uint32 v = 0; v < GH_PROGRAM_VECTORS_MAX; v++)
		if ((plan->needed[step][v / 64] >> v % 64 & 1) != 0)
			given[ngiven++] = v;
	return make_entering(ngiven, given, columns, nrows);
}

/* Puts a row, by attributes, into the vectors; false: they do not hold it.  unpacked: of gh_store_value. */
bool
gh_entering_put(const GhEnteringRows *rows, uint32 row, const Datum *values, const bool *nulls,
				MemoryContext unpacked)
{
	for (uint32 g = 0; g < rows->ngiven; g++)
	{
		const GhColumn *column = &rows->columns[rows->given[g]];
		int			at = column->attribute - 1;

		if (!gh_store_value(column, values[at], nulls[at], unpacked, &rows->vectors[g], row))
			return false;
	}
	return true;
}

/* What tables are like, into a sink that makes one. */
void
gh_stage_table_sink(const GhTableOptions *table, GhSink *sink)
{
	sink->kind = GH_SINK_TABLE;
	sink->table.seed = table->seed;
	sink->table.subtables = table->subtables;
	sink->table.fill_min = table->fill_min;
	sink->table.fill_max = table->fill_max;
}

/*
 * Asks for what is visible on a page, which is not empty.  True: for lines by their bits, which are set, and
 * the caller is to say where they are.
 */
bool
gh_ask_for_lines(const GhPages *pages, GhPageRef *page, uint64 *asked)
{
	const OffsetNumber *visible = pages->lines;
	int			n = pages->ntuples;

	memset(page, 0, sizeof(*page));
	page->block = pages->block;
	page->bitmap = GH_PAGE_ALL_LINES;
	page->hinted = pages->by_headers ? pages->upper : 0;
	page->lines = pages->all_visible || pages->by_headers ? n : visible[n - 1];
	if (page->lines == (uint32) n)
		return false;
	memset(asked, 0, sizeof(uint64) * GH_LINE_WORDS);
	for (int i = 0; i < n; i++)
		asked[(visible[i] - 1) / 64] |= UINT64CONST(1) << (visible[i] - 1) % 64;
	return true;
}

/* The page, at an address such as engines ask for; PostgreSQL 15 has temporary tables' pages anywhere. */
const void *
gh_stage_aligned_page(GhStage *stage, const GhPages *pages)
{
	const char *page = BufferGetPage(pages->buffer);

	if (TYPEALIGN(GH_PAGE_ALIGNMENT, page) == (uintptr_t) page)
		return page;
	if (stage->copy == NULL)
		stage->copy = (char *) TYPEALIGN(GH_PAGE_ALIGNMENT,
										 MemoryContextAlloc(stage->context, BLCKSZ + GH_PAGE_ALIGNMENT));
	memcpy(stage->copy, page, BLCKSZ);
	return stage->copy;
}

/* All visible rows of the page, as if they were handed back; how many. */
uint32
gh_list_rows(const GhPages *pages, GhBackRow *back)
{
	for (int i = 0; i < pages->ntuples; i++)
		back[i] = (GhBackRow) {.line = pages->lines[i]};
	return pages->ntuples;
}

/* Does a request to its end.  It is an error if it is not done. */
void
gh_stage_run(GhStage *stage, GhPipelineRequest *request)
{
	const GhPipelineEngine *engine = stage->pipeline->engine;

	for (;;)
	{
		GhStatus	status = engine->submit(stage->pipeline, request);

		if (status == GH_BUSY)
			status = engine->wait(request);
		if (stage->raised != NULL)
			ReThrowError(stage->raised);
		if (status == GH_OK)
			return;
		if (status != GH_STOPPED)
			elog(ERROR, "%s", request->error.message);
		gh_serve_interrupt();
	}
}

/* Brings the first nrows rows of the vectors before a step; which are handed back is in rows->back. */
void
gh_stage_rows(GhStage *stage, uint32 step, const GhEnteringRows *rows, uint32 nrows,
			  GhPipelineRequest *request)
{
	memset(request, 0, sizeof(*request));
	request->kind = GH_INPUT_COLUMNS;
	request->step = step;
	request->ngiven = rows->ngiven;
	request->given = rows->given;
	request->vectors = rows->vectors;
	request->count = request->back_room = nrows;
	request->back = rows->back;
	gh_stage_run(stage, request);
}

/*
 * Brings the page that is pinned, of which the visible lines are known.  How many rows of it were handed
 * back, or are listed, in the order of their lines; room for MaxHeapTuplesPerPage.  stage->request has the
 * page's counts, unless it is empty.
 */
uint32
gh_stage_page(GhStage *stage, const GhPages *pages, GhBackRow *back)
{
	GhPipelineRequest *request = &stage->request;

	if (pages->ntuples == 0)
		return 0;
	if (gh_ask_for_lines(pages, &stage->page, stage->asked))
		stage->page.bitmap = 0;
	stage->page.page = gh_stage_aligned_page(stage, pages);
	request->back = back;
	gh_stage_run(stage, request);
	/* the page as a whole */
	return request->nback == 1 && back[0].line == 0 ? gh_list_rows(pages, back) : request->nback;
}

/*
 * Brings some rows of that page again, in their order; as of gh_stage_page(), which are handed back, in their
 * place.
 */
uint32
gh_stage_page_again(GhStage *stage, uint32 nrows, GhBackRow *rows)
{
	GhPageRef *page = &stage->page;

	memset(stage->asked, 0, sizeof(stage->asked));
	for (uint32 i = 0; i < nrows; i++)
		stage->asked[(rows[i].line - 1) / 64] |= UINT64CONST(1) << (rows[i].line - 1) % 64;
	page->lines = rows[nrows - 1].line;
	page->bitmap = 0;
	page->hinted = 0;
	gh_stage_run(stage, &stage->request);
	return stage->request.nback;
}

/* As GhPipelineEngine.results; GH_OK or GH_TOO_SMALL. */
GhStatus
gh_stage_results(GhStage *stage, GhCursor *cursor, Size room, char *buffer, Size *bytes)
{
	GhError		error;
	for (;;)
	{
		size_t		came = 0;
		GhStatus	status = stage->pipeline->engine->results(stage->pipeline, cursor, room, buffer, &came, &error);

		*bytes = came;
		if (status == GH_OK || status == GH_TOO_SMALL)
			return status;
		if (status != GH_STOPPED)
			elog(ERROR, "%s", error.message);
		gh_serve_interrupt();
	}
}

void
gh_stage_stats(GhStage *stage, GhPipelineStats *stats)
{
	GhError		error;

	if (stage->pipeline->engine->stats(stage->pipeline, stats, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
}

/* Empties the sink. */
void
gh_stage_clear(GhStage *stage)
{
	GhError		error;

	if (stage->pipeline->engine->clear(stage->pipeline, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
}
