/*
 * stage.h
 *		A pipeline of an engine (engine/pipeline/pipeline.h), and the rows that a node brings to it.
 */
#ifndef GPUHASH_STAGE_H
#define GPUHASH_STAGE_H

#include "postgres.h"

#include "compat.h"
#include "engine/pipeline/pipeline.h"
#include "heap/pages.h"
#include "host.h"
#include "store/columns.h"

/* Words of a bit for each line of a page. */
#define GH_LINE_WORDS ((MaxHeapTuplesPerPage + 63) / 64)

/* Pages of a request, at most. */
#define GH_HELD_MAX 32

/*
 * Pages that are done in one request, each pinned meanwhile (stage_pages.c); and a run of blocks of which
 * columns are stored, which is done by itself, when no pages are held (stage_columns.c).
 */
typedef struct GhHeldPages
{
	uint32		most;			/* pages of the next request */
	uint32		npages;
	uint32		nlines;			/* of all, visible or not, and of them: */
	uint32		ntuples;		/* without pages, of the run */
	Buffer	   *buffers;		/* pinned */
	GhPageRef  *refs;
	uint64	   *asked;			/* GH_LINE_WORDS of each page: a bit for each line */
	GhPipelineRequest request;	/* the last one */
	GhBackRow  *listed;			/* rows that were handed back by it, as the engine lists them */
	uint32		nback;
	GhBackRow  *back;			/* and line by line, in their order; of a run, by row */

	uint32		run;			/* blocks from that one on: */
	BlockNumber run_block;
	GhColumnRows run_rows;
	bool		run_again;		/* of its rows, those whose bits are set are brought again */
	uint64	   *run_asked;
	Buffer		run_buffer;		/* the page of a row that was handed back, pinned; or InvalidBuffer */
	BlockNumber run_buffer_block;
} GhHeldPages;

/* A pipeline of the CPU engine, in this process, to which pages are brought where they are. */
typedef struct GhStage
{
	GhPipeline *pipeline;
	GhHost		host;
	MemoryContext context;
	MemoryContextCallback callback;
	char	   *copy;			/* room for a page; NULL: none was needed */
	GhPipelineRequest request;	/* of a page: that was brought last, or some lines of it */
	GhPageRef	page;
	uint64		asked[GH_LINE_WORDS];
	ErrorData  *raised;			/* by what the engine calls back: it ends the query; NULL: nothing was */
	GhHeldPages *held;			/* NULL: there were none yet */
	const GhPages *columns_of;	/* whose columns were asked for last */
	GhColumnsUse *columns;		/* NULL: none are stored of it */
	uint32		ngiven;			/* vectors of the program that are columns of the source */
	uint16		given[GH_PROGRAM_VECTORS_MAX];
} GhStage;

/* Rows that are brought as columns. */
typedef struct GhEnteringRows
{
	uint32		ngiven;
	uint16	   *given;			/* vectors of the program */
	const GhColumn *columns;	/* by vector; NULL: the caller fills the vectors by itself */
	GhVector   *vectors;		/* their values */
	uint16	   *numbers;		/* of the rows, as the caller has them */
	GhBackRow  *back;			/* room for as many */
} GhEnteringRows;

extern void gh_stage_options(Relation relation, const GhProgram *program, GhPipelineOptions *options);
extern bool gh_ask_for_lines(const GhPages *pages, GhPageRef *page, uint64 *asked);
extern GhStage *gh_stage_create(const GhPipelineOptions *options, const GhHost *host, MemoryContext context,
								GhError *error);
extern void gh_stage_table_sink(const GhTableOptions *table, GhSink *sink);
extern GhEnteringRows *gh_entering_create(const GhProgram *program, int natts, uint32 nrows);
extern GhEnteringRows *gh_entering_create_before(const GhStage *stage, uint32 step, const GhColumn *columns, uint32 nrows);
extern bool gh_entering_put(const GhEnteringRows *rows, uint32 row, const Datum *values, const bool *nulls,
							MemoryContext unpacked);
extern uint32 gh_list_rows(const GhPages *pages, GhBackRow *back);
extern uint32 gh_stage_page(GhStage *stage, const GhPages *pages, GhBackRow *back);
extern uint32 gh_stage_page_again(GhStage *stage, uint32 nrows, GhBackRow *rows);
extern const void *gh_stage_aligned_page(GhStage *stage, const GhPages *pages);
extern void gh_stage_run(GhStage *stage, GhPipelineRequest *request);
extern void gh_stage_rows(GhStage *stage, uint32 step, const GhEnteringRows *rows, uint32 nrows,
						  GhPipelineRequest *request);
extern GhStatus gh_stage_results(GhStage *stage, GhCursor *cursor, Size room, char *buffer, Size *bytes);
extern void gh_stage_stats(GhStage *stage, GhPipelineStats *stats);
extern void gh_stage_clear(GhStage *stage);
extern void gh_stage_destroy(GhStage *stage);

/* stage_pages.c: several pages in one request */
extern bool gh_stage_has_room(const GhStage *stage, const GhPages *pages);
extern void gh_stage_hold(GhStage *stage, GhPages *pages);
extern void gh_stage_run_held(GhStage *stage);
extern void gh_stage_run_held_again(GhStage *stage);
extern void gh_stage_release(GhStage *stage);
extern void gh_stage_make_held(GhStage *stage);
extern Buffer gh_stage_back_row(GhStage *stage, GhPages *pages, const GhBackRow *row, BlockNumber *block,
								OffsetNumber *line);

/* The pages that the next request brings, or has brought. */
static inline uint32
gh_held_count(const GhHeldPages *held)
{
	return held->npages > 0 ? held->npages : held->run;
}

/* stage_columns.c: columns that are stored, in the place of pages */
extern bool gh_stage_begin_reading(GhStage *stage, GhPages *pages);
extern void gh_stage_end_reading(const GhStage *stage, GhPages *pages);
extern void gh_stage_hold_run(GhStage *stage, const GhPages *pages);
extern void gh_stage_run_rows(GhStage *stage);
extern void gh_stage_ask_again_of_run(GhHeldPages *held);
extern Buffer gh_stage_pin_row(GhStage *stage, GhPages *pages, const GhBackRow *row, BlockNumber *block,
							   OffsetNumber *line);
extern void gh_stage_leave_row(GhHeldPages *held);

/* scan_engine.c */
extern GhPageAttribute *gh_scan_attributes(Relation relation);

#endif							/* GPUHASH_STAGE_H */
