/*
 * progress.h
 *		progress.c: how far work is that takes long and is no query: gpuhash_stat_progress.
 */
#ifndef GPUHASH_PROGRESS_H
#define GPUHASH_PROGRESS_H

#include "postgres.h"

#include "utils/palloc.h"

typedef enum GhProgressCommand
{
	GH_PROGRESS_PREWARM,		/* gpuhash_prewarm() of a table */
	GH_PROGRESS_RELOAD,			/* what was on a device, after a restart */
	GH_PROGRESS_COPY,			/* a copy of an index, for whoever */
	GH_PROGRESS_COMMANDS
} GhProgressCommand;

typedef enum GhProgressPhase
{
	GH_PROGRESS_BEGINS,			/* nothing is counted */
	GH_PROGRESS_READS,			/* pages of the relation are counted */
	GH_PROGRESS_ENTERS,			/* rows that enter a hash table are */
	GH_PROGRESS_SHARES,			/* into shared memory: nothing is counted */
	GH_PROGRESS_PHASES
} GhProgressPhase;

/*
 * This process does that from now on, until the context is reset or deleted.  device: by its CUDA number; -1:
 * none. Without the service, or where too many do such, nothing is shown.
 */
extern void gh_progress_begin(MemoryContext context, GhProgressCommand command, Oid relation, int device);
/* The next phase, and how many there are to be done in it; 0: not known. */
extern void gh_progress_phase(GhProgressPhase phase, uint64 total);
extern void gh_progress_done(uint64 done);

#endif							/* GPUHASH_PROGRESS_H */
