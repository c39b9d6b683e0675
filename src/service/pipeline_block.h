/*
 * pipeline_block.h
 *		The options of a pipeline as a block of bytes (block.h): written by the client, read by a thread of the
 *		worker.
 */
#ifndef GPUHASH_SERVICE_PIPELINE_BLOCK_H
#define GPUHASH_SERVICE_PIPELINE_BLOCK_H

#include "service/shared.h"

/* What a pipeline uses, by the roots of the entries; 0: none. */
typedef struct GhPipelineNames
{
	GhRef		source;			/* the table, or the pipeline with the groups */
	GhRef		tables[GH_PROBES_MAX];	/* by probe */
	GhRef		marks[GH_PROBES_MAX];
	GhRef		changed[GH_PROBES_MAX];
	GhRef		instead[GH_PROBES_MAX];
} GhPipelineNames;

/* Options that were read out of a block.  They point into its copy, and to the probes. */
typedef struct GhPipelineBlock
{
	GhPipelineOptions options;
	GhPipelineNames names;
	GhProbe		probes[GH_PROBES_MAX];	/* their tables and marks, and the source, are the reader's to fill in */
	void	   *memory;			/* the copy, malloc()ed */
} GhPipelineBlock;

/*
 * Writes the options, which use these, as a block to `to`, aligned to 16, or, where that is NULL, returns
 * only how many bytes it has; 0: it would be more than any block.
 */
extern Size gh_pipeline_block_write(const GhPipelineOptions *options, const GhPipelineNames *names, void *to);
/*
 * Copies a block that others may change, and then reads the copy: every array lies in it, but what they hold
 * is the engine's to check.  Called by threads.
 */
extern GhStatus gh_pipeline_block_read(const void *from, Size bytes, GhPipelineBlock *block, GhError *error);
extern void gh_pipeline_block_drop(GhPipelineBlock *block);

#endif							/* GPUHASH_SERVICE_PIPELINE_BLOCK_H */
