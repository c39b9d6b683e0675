/*
 * pipeline_trial.h
 *		Pipelines for tests: stages, which bring the pages of tables, and digests of what comes out.
 */
#ifndef GPUHASH_TEST_PIPELINE_TRIAL_H
#define GPUHASH_TEST_PIPELINE_TRIAL_H

#include "service/client.h"

#define GH_TRIAL_LANES_MAX 4
#define GH_TRIAL_PAGES_MAX 64	/* of a request */
#define GH_TRIAL_FILLS 2		/* of a probe: both columns of the table */
#define GH_TRIAL_PROBES_MAX 3
#define GH_TRIAL_COLUMNS_MAX (2 + GH_TRIAL_PROBES_MAX * GH_TRIAL_FILLS)

/*
 * A pipeline over rows of an int4 and an int8, columns 0 and 1; what probe p fills is columns 2 + 2p and 3 + 2p.  Options,
 * and what they point to.
 */
typedef struct GhTrialStage
{
	GhPipelineOptions options;
	pg_attribute_aligned(16) GhProgram program;
	GhColumn	columns[GH_TRIAL_COLUMNS_MAX];	/* behind the program */
	GhPageAttribute attributes[2];
	GhGroupColumn group_columns[2];
	GhStep		steps[GH_TRIAL_PROBES_MAX];
	GhProbe		probes[GH_TRIAL_PROBES_MAX];
	GhProbeFill fills[GH_TRIAL_PROBES_MAX][GH_TRIAL_FILLS];
	GhKeyPart	part;
	GhRecordKey	values[GH_TRIAL_COLUMNS_MAX];
	GhAggregate aggregates[GH_TRIAL_COLUMNS_MAX];
	GhRecordKey set_keys[GH_SINK_SETS_MAX];
	GhAggregate set_aggregates[GH_SINK_SETS_MAX * GH_TRIAL_COLUMNS_MAX];
	GhKept		kept[2];
	GhPipeline *pipeline;
} GhTrialStage;

/* A request, its buffer, and what it has pinned. */
typedef struct GhTrialLane
{
	char	   *buffer;
	char	   *copies;
	GhPageRef *pages;
	uint64	   *bitmaps;
	GhBackRow  *back;
	Buffer		pins[GH_TRIAL_PAGES_MAX];
	uint32		npins;
	GhPipelineRequest request;
	bool		busy;
} GhTrialLane;

typedef struct GhTrial
{
	const GhEngine *engine;
	bool		pinned;			/* pages are shown where they are, and not copied */
	bool		bitmaps;		/* rows are asked for one by one */
	int			npages;			/* of a request */
	int			flight;			/* requests at a time */
	size_t		capacity;		/* bytes of results at a time */
	bool		hasty;			/* the last requests are not waited for, until gh_trial_wait */
	GhTrialLane lanes[GH_TRIAL_LANES_MAX];
	int			at;				/* requests so far, each in the next lane */
	uint64		nback;			/* sums of all requests */
	uint64		seen;
	uint64		counted;
	uint64		passed[GH_TRIAL_PROBES_MAX];
	uint64		places;			/* a digest of the rows that went back or are listed */
} GhTrial;

/* Throws where there are no buffers.  The mode has "pinned" in it, or "copied", and maybe "bitmaps". */
extern void gh_trial_begin(GhTrial *trial, const char *engine, const char *mode, int npages, int flight,
						   int capacity);
extern void gh_trial_give_back(GhTrial *trial);

/* A stage over pages, or over groups, with neither probes nor a sink. */
extern void gh_trial_stage_begin(GhTrialStage *stage, GhPipeline *groups);
/* Probes a table by the first column, and fills columns with so many values of the table, of two at most. */
extern void gh_trial_stage_probe(GhTrialStage *stage, GhProbeKind kind, uint16 nfills, GhTable *table, GhMarks *marks);
/* Groups by the first column, with their count and the sums of all other ones. */
extern void gh_trial_stage_groups(GhTrialStage *stage);
/* The same of several sets: groups by the first column and by the second one in turns. */
extern void gh_trial_stage_sets(GhTrialStage *stage, uint32 nsets);
/* Rows of all columns. */
extern void gh_trial_stage_rows(GhTrialStage *stage);
extern void gh_trial_stage_places(GhTrialStage *stage);
/* A table by the first column, of the first two. */
extern void gh_trial_stage_table(GhTrialStage *stage);
extern void gh_trial_create(GhTrial *trial, GhTrialStage *stage);
extern void gh_trial_destroy(GhTrialStage *stage);

/* Brings blocks of a relation, from one up to another or the last. */
extern void gh_trial_bring(GhTrial *trial, GhPipeline *pipeline, Oid relid, BlockNumber first, BlockNumber end);
/* Brings so many rows of the source, or of what a probe's step has not matched. */
extern void gh_trial_bring_rows(GhTrial *trial, GhPipeline *pipeline, GhInputKind kind, uint32 step, uint64 rows);
extern void gh_trial_wait(GhTrial *trial);
extern void gh_trial_make_table(GhTrial *trial, GhPipeline *pipeline, GhMadeTable *made);
/* How many of so many keys, from the first on, requests find in a table; *sum, if there is one, is that of their values. */
extern uint64 gh_trial_find(GhTrial *trial, GhTable *table, int64 first, uint64 count, int64 *sum);
extern GhMarks *gh_trial_marks(GhTrial *trial, GhTable *table);
/* "records digest, seen ...": of what came out and of all requests; records in any order. */
extern char *gh_trial_digest(GhTrial *trial, GhPipeline *pipeline);
/* "key count sums,...": of each group, in the order of the keys. */
extern char *gh_trial_groups_text(GhTrial *trial, GhPipeline *pipeline, int nsums);

#endif							/* GPUHASH_TEST_PIPELINE_TRIAL_H */
