/*
 * cpu_pipeline.h
 *		What the files of pipelines on the CPU share.
 */
#ifndef GPUHASH_CPU_PIPELINE_H
#define GPUHASH_CPU_PIPELINE_H

#include "engine/pipeline/cpu_groups.h"
#include "engine/pipeline/cpu_rows.h"

/* A row that goes on. */
#define GH_CPU_NO_STEP GH_STEP_LIVE

/* Rows that came to the end wait in so many batches at most for the others that their rows become. */
#define GH_CPU_STAGED_MAX 16

/* Where rows become several: what the batches that wait hold, and what is done when they have no more room. */
typedef enum GhCpuStage
{
	GH_CPU_STAGE_OF_ALL,		/* all that some rows of level 0 become; no room: */
	GH_CPU_STAGE_IS_FULL,		/* they are to be fewer, and nothing of them is wanted any more */
	GH_CPU_STAGE_OF_ONE,		/* all that one row becomes; no room: */
	GH_CPU_STAGE_CHECKS,		/* a part of it; no room: places for the part are found, and it is forgotten */
	GH_CPU_STAGE_ADDS			/* a part of it, and there are places for all; no room: the part is added */
} GhCpuStage;

#define GH_CPU_GOES_BACK 2

/* A probe of the rows of a batch that is under way. */
typedef struct GhCpuProbing
{
	GhCpuPicks	picks;			/* live rows, and of those with a match still to be looked at: */
	GhCpuPicks	open;
	uint64_t	keys[GH_VECTOR_ROWS];	/* by pick */
	uint64_t	values[GH_VECTOR_ROWS]; /* by pick, then by open: what the index has; a row's number where it has rows */
	uint8_t		there[GH_VECTOR_ROWS];	/* by pick */
	uint8_t		matched[GH_VECTOR_ROWS];	/* by row of the batch: 1; GH_CPU_GOES_BACK */
	GhCpuPicks	passed;			/* of a round */
} GhCpuProbing;

/*
 * Level 0 has the rows of the source, or of a piece of a request.  Where a probe makes several rows of one, these
 * go on in the batch of the next level.
 */
typedef struct GhCpuLevel
{
	GhVectorBatch batch;
	void	   *memory;
	uint16_t	origin[GH_VECTOR_ROWS]; /* the row of level 0 that it comes from */
	GhCpuProbing probing;		/* last: where there are no probes there is no memory for it */
} GhCpuLevel;

/* Rows at the end: of the sink's vectors alone, or level 0 itself. */
typedef struct GhCpuStaged
{
	GhVectorBatch batch;
	void	   *memory;
	uint16_t	origin[GH_VECTOR_ROWS]; /* where rows become several: of level 0 */
	uint32_t	found[];		/* their groups, GH_VECTOR_ROWS of each set */
} GhCpuStaged;

/* A set of a sink that makes groups: what is added to the groups that its keys lead to. */
typedef struct GhCpuSet
{
	GhGroupsSink sink;			/* of this set alone */
	GhAggregate counted_as[GH_AGGREGATES_MAX];	/* its aggregates, where texts are only counted */
	bool		adds;			/* some aggregate may take a row */
} GhCpuSet;

/* Rows that are kept, as records (GhRecordHead). */
typedef struct GhCpuRecords
{
	char	   *bytes;
	uint64_t	used;
	uint64_t	room;
	uint64_t	count;
	GhCpuBlock	block;
} GhCpuRecords;

/* What the sink was before a request, as far as that is needed to have it so again. */
typedef struct GhCpuUndo
{
	bool		possible;		/* it can be had again: the request can be stopped */
	bool		saves;			/* groups, before their states change */
	uint64_t	records_used;
	uint64_t	records;
	uint64_t	rows;			/* of a table, and of them: */
	uint64_t	keyless;
	uint32_t	groups;
	uint64_t	texts_used;		/* of groups */
	uint64_t	texts_left;		/* of these, likewise */
	uint32_t	range;			/* of the pipeline: the order in which rows are added depends on it */
	uint64_t   *is_saved;		/* bit by group */
	uint64_t	nsaved;
	uint64_t	room;
	char	   *saved;
} GhCpuUndo;

/* A numeric column of pages that is decoded when a step is to read it, of the rows that are live then. */
typedef struct GhCpuLater
{
	uint32_t	vector;
	uint32_t	scale;
	uint32_t	step;			/* the first that reads it; the one behind the last is the sink, and then none */
	uint32_t	instruction;	/* of a step that is no probe: before this one */
} GhCpuLater;

/* Of a probe: rows are dropped whose keys are not in its table, without a look into it (cpu_sieve.c). */
typedef struct GhCpuSieve
{
	struct GhKeyFilter *filter; /* of the table's keys; NULL: there is none */
	uint64_t	version;		/* of the table, when it was made */
	uint64_t	looked;			/* keys since it was made; without one, that were looked up */
	uint64_t	passed;			/* of these; without one, that were found */
	bool		given_up;
} GhCpuSieve;

/* Rows of a page among those of level 0, from where the part before ends. */
typedef struct GhCpuPart
{
	uint32_t	page;			/* of the request */
	uint32_t	end;
} GhCpuPart;

typedef struct GhCpuPipeline
{
	GhPipeline	base;			/* first */
	GhHost		host;
	GhPipelinePlan plan;
	GhRecordPlan record_plan;	/* keys and aggregates, for those who write records */
	GhPageShape shape;			/* the plan's, but that columns of these are places in the page: */
	uint32_t	nlater;
	GhCpuLater	later[GH_PROGRAM_VECTORS_MAX];	/* by step and instruction */
	uint32_t	decoded;		/* of level 0's rows now, so many of these are values */
	GhCpuSinkMemory memory;		/* of groups and records */
	GhCpuGrouping groups;
	GhCpuSet	sets[GH_SINK_SETS_MAX];
	GhCpuRecords records;
	GhCpuRows  *rows;			/* of a table that is made; NULL: the table has been made, or there is none */
	GhPipelineStats made_stats; /* of the table, when it was */

	GhCpuSieve	sieves[GH_PROBES_MAX];
	bool		multiplies;		/* some probe makes several rows of one */
	/* Some probe marks: what a row becomes goes on although the row goes back, so that all its matches are marked. */
	bool		marks;
	uint32_t	nlevels;
	GhCpuLevel *levels[GH_PROBES_MAX + 1];
	GhCpuStaged *staged[GH_CPU_STAGED_MAX];	/* the first one also stands for level 0 */
	uint32_t	nstaged;
	GhCpuStage	stage;
	uint64_t	staged_rows;	/* that were staged since the steps began, and for which places were found */
	uint64_t	staged_bytes;	/* of their records, or of the texts that a table keeps */
	uint32_t	range;			/* so many rows of level 0 fitted the last time; 0: all of a batch */

	/* the rows of level 0 */
	uint8_t		state[GH_VECTOR_ROWS];	/* as they came */
	uint32_t	nback;			/* rows that go back */
	uint64_t	ended;			/* rows that went into the sink */
	uint16_t	back_step[GH_VECTOR_ROWS];	/* the first one at which that was seen, or GH_CPU_NO_STEP */
	uint64_t  (*came)[GH_VECTOR_ROWS];	/* where rows become several: by step, how many came so far */
	uint32_t	live[GH_STEPS_MAX]; /* where they do not: rows behind each step, those that go back later among them */
	bool		order_is_broken;	/* in_order: a row of the request was handed back */

	GhCpuUndo	undo;			/* of the oldest request */
	bool		stopped;		/* what is under way of it is to be left */

	uint64_t	at;				/* the first of them, of a request without pages */
	uint16_t	lines[GH_VECTOR_ROWS];	/* of pages: the line of each row */
	uint32_t	nparts;
	GhCpuPart	parts[GH_VECTOR_ROWS];	/* and the pages, in their order, those without a row left out */
	uint16_t   *numbers;		/* room for those of a page's lines */
	uint16_t   *all_numbers;	/* as much room, for those from 1 on; which are there up to this: */
	uint32_t	numbered;
	uint16_t   *untold;			/* of those that are not known to be visible */
	GhPipelineRequest *first;	/* oldest */
	GhPipelineRequest *last;
	GhPipelineIntake intake;
	uint64_t	counted;
} GhCpuPipeline;

/* ------------------------------------------------ steps: cpu_pipeline_run.c */

/*
 * Does the rows of level 0 that are live, from a step on, and puts what is live at the end into the sink.  Adds
 * to the request's counts; afterwards back_step tells which rows go back, and state of level 0 which of the others are
 * live at the end (where rows do not become several).
 */
extern void gh_cpu_run_rows(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t step);
/* From a step on, the rows of a level.  False: none of them has come to the end. */
extern bool gh_cpu_run_level(GhCpuPipeline *pipeline, uint32_t level, uint32_t step);
/* A row of a level is to be handed back: that of level 0 that it comes from. */
extern void gh_cpu_hand_back(GhCpuPipeline *pipeline, uint32_t level, uint32_t row, uint32_t step);
/* Behind the last row of a batch states are none that counts, as gh_batch_count() has it; how many rows are live. */
extern uint32_t gh_cpu_pad(const GhCpuPipeline *pipeline, GhVectorBatch *batch);
/* Those that an instruction has found to be. */
extern void gh_cpu_note_back(GhCpuPipeline *pipeline, uint32_t level, uint32_t step);
/* Rows have come behind a step. */
extern void gh_cpu_note_came(GhCpuPipeline *pipeline, uint32_t level, uint32_t step, const GhCpuPicks *picks);

/* ---------------------------------------------- probes: cpu_pipeline_probe.c */

/* False: the rows that go on are in the next level, and have been done. */
extern bool gh_cpu_probe(GhCpuPipeline *pipeline, uint32_t level, uint32_t step);
/* A row's key; false: a part is NULL. */
extern bool gh_cpu_row_key(const GhKeyPart *parts, uint32_t nparts, const GhVectorBatch *batch, uint32_t row,
						   uint64_t *key);

/* ------------------------------------------------------ sieves: cpu_sieve.c */

/* So many keys were looked up in a table that a pipeline has made, and so many of them found: may make a filter. */
extern void gh_cpu_sieve_found(GhCpuSieve *sieve, GhTable *table, uint64_t looked, uint64_t found);
/* Drops rows whose keys, by pick, are not in the table; they are picked no longer. */
extern void gh_cpu_sieve_rows(GhCpuSieve *sieve, const GhTable *table, uint8_t *state, GhCpuPicks *picks, uint64_t *keys);
extern void gh_cpu_sieve_end(GhCpuSieve *sieve);

/* ------------------------------------------------- sinks: cpu_pipeline_sink.c */

extern GhStatus gh_cpu_sink_init(GhCpuPipeline *pipeline, GhError *error);
extern void gh_cpu_sink_drop(GhCpuPipeline *pipeline);
/* Puts the live rows of a level aside. */
extern void gh_cpu_stage(GhCpuPipeline *pipeline, uint32_t level);
/*
 * Puts all that is staged, or level 0, into the sink, but for rows that go back.  In GH_CPU_STAGE_CHECKS nothing is
 * added: there are places for all that the row became, or it goes back.
 */
extern void gh_cpu_sink_rows(GhCpuPipeline *pipeline, GhPipelineRequest *request);
extern GhStatus gh_cpu_sink_results(GhCpuPipeline *pipeline, GhCursor *cursor, size_t capacity, void *buffer,
									size_t *bytes, GhError *error);

/* ----------------- the least and the greatest of texts: cpu_group_texts.c */

extern void gh_cpu_texts_init(GhCpuPipeline *pipeline);
/* Bytes of texts that the live rows of a batch may leave with their groups. */
extern uint64_t gh_cpu_texts_bytes(const GhCpuPipeline *pipeline, const GhVectorBatch *batch);
/* Room for so many; false: there is no memory. */
extern bool gh_cpu_texts_have_room(GhCpuPipeline *pipeline, uint64_t bytes);
/* Room for a batch's, if need be for those of the first rows alone: how many rows these are. */
extern uint32_t gh_cpu_texts_make_room(GhCpuPipeline *pipeline, const GhVectorBatch *batch);
/* The live rows of a batch have been added to these groups, of a set, and there is room for their texts. */
extern void gh_cpu_texts_keep(GhCpuPipeline *pipeline, const GhGroupsSink *sink, const GhVectorBatch *batch,
							  const uint32_t *found);
/* Between requests: takes away what was left, where that is much. */
extern void gh_cpu_texts_tidy(GhCpuPipeline *pipeline);
/* There is no memory: the same within a request.  False: there is as little as before. */
extern bool gh_cpu_texts_give_back(GhCpuPipeline *pipeline);

/* --------------------- rows that are kept: cpu_pipeline_records.c */

/* Room for so many more bytes; false: there is no memory. */
extern bool gh_cpu_records_reserve(GhCpuPipeline *pipeline, uint64_t bytes);
/* Of all live rows of a batch. */
extern uint64_t gh_cpu_records_bytes(const GhCpuPipeline *pipeline, const GhVectorBatch *batch);
/* Appends these, for which there is room. */
extern void gh_cpu_records_add(GhCpuPipeline *pipeline, const GhVectorBatch *batch);

/* ------------------------------------- requests that stop: cpu_pipeline_undo.c */

/* Before a request of so many rows. */
extern void gh_cpu_undo_begin(GhCpuPipeline *pipeline, uint64_t rows);
/* Before the live rows of a batch are added to these groups. */
extern void gh_cpu_undo_note(GhCpuPipeline *pipeline, const GhVectorBatch *batch, const uint32_t *found);
/* The sink is again what it was before the request. */
extern void gh_cpu_undo(GhCpuPipeline *pipeline);
extern void gh_cpu_undo_end(GhCpuPipeline *pipeline);
/* Looks at the stop flag, if the request can be stopped; true: all that is under way of it is to be left. */
extern bool gh_cpu_sees_stop(GhCpuPipeline *pipeline);

/* ------------------------------------ columns that wait: cpu_pipeline_later.c */

/* Which columns wait, of a plan that was accepted, and the shape by which pages are loaded. */
extern void gh_cpu_later_init(GhCpuPipeline *pipeline);
/* The instructions of a step that is no probe, with the columns that they read. */
extern void gh_cpu_run_instructions(GhCpuPipeline *pipeline, uint32_t level, uint32_t step);
/* The columns that wait for this step, or, behind the last one, for the sink.  False: rows are handed back. */
extern bool gh_cpu_decode_for(GhCpuPipeline *pipeline, uint32_t level, uint32_t step);

/* -------------------------------------------- pages that stay: cpu_spans.c */

extern GhStatus gh_cpu_span_create(const GhHost *host, int device, uint32_t page_bytes, uint32_t npages,
								   GhPageSpan **span, GhError *error);
extern void gh_cpu_span_destroy(GhPageSpan *span);
/* A page that has a place: as it is in it, where it is put first if it is given. */
extern GhPageRef gh_cpu_place_page(const GhPipelineRequest *request, const GhPageRef *page);

/* ----------------------------------------------- input: cpu_pipeline_input.c */

/* Some of a request's rows from *at on, which it advances; false: there are no more. */
extern bool gh_cpu_input(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint64_t *at);
/* The rows of level 0 once more, as they came: steps that were run may have set vectors that they brought. */
extern void gh_cpu_refill(GhCpuPipeline *pipeline, const GhPipelineRequest *request);

#endif							/* GPUHASH_CPU_PIPELINE_H */
