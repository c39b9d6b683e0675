/*
 * cpu_rows_shared.h
 *		The rows of a table that several participants fill together, as they lie in the memory that these share.
 */
#ifndef GPUHASH_CPU_ROWS_SHARED_H
#define GPUHASH_CPU_ROWS_SHARED_H

#include "engine/pipeline/cpu_rows.h"

#define GH_CPU_SHARED_MAGIC UINT64_C(0x53574F5243504847)

typedef enum GhCpuPhase
{
	GH_CPU_PHASE_FILLING = 1,
	GH_CPU_PHASE_ENTERING,
	GH_CPU_PHASE_READY,
	GH_CPU_PHASE_FAILED
} GhCpuPhase;

/* What one participant has kept. */
typedef struct GhCpuShare
{
	GhRef		next;
	GhCpuBlock	block;			/* its own */
	uint64_t	rows;
	uint32_t	nchunks;
	uint32_t	ntexts;
	GhCpuBlock	blocks[];		/* chunks, then texts */
} GhCpuShare;

/* The root. */
typedef struct GhCpuSharedRows
{
	uint64_t	magic;
	GhTableSink sink;			/* never changes; without its arrays, but for: */
	GhKept		kept[GH_TABLE_KEPT_MAX];

	/* GhHost.lock guards these */
	GhCpuTaken	taken;			/* but for the index */
	uint32_t	joined;			/* participants */
	uint32_t	finished;
	bool		lost;			/* one went away with rows */
	GhRef		shares;
	uint64_t	count;			/* rows of those who have finished */
	uint64_t	nkeyless;
	bool		any_null;
	bool		any_back;

	/* counted atomically */
	uint64_t	ntexts;			/* numbers given to blocks of texts */
	uint64_t	next;			/* entering: the first row that nobody has claimed; it may pass them */
	uint64_t	entered;		/* rows */
	uint32_t	twice;			/* some key came twice */
	uint32_t	failure;		/* a GhStatus: the first that somebody met */

	/* set by one while nobody else is in here */
	uint32_t	phase;
	uint32_t	nchunks;
	GhCpuBlock	directory;		/* blocks: chunks in the order of the rows, then texts by number */
	GhRef		index;
	bool		carried;
	bool		several;
} GhCpuSharedRows;

/* A process at the root. */
typedef struct At
{
	GhCpuSinkMemory memory;
	GhCpuSharedRows *shared;
	GhRef		root;
} GhCpuAt;

static inline GhCpuShare *
gh_cpu_share_at(const GhCpuAt *at, GhRef ref)
{
	return ref == 0 ? NULL : at->memory.host.address(at->memory.host.ctx, ref);
}

/* Of all blocks. */
static inline GhCpuBlock *
gh_cpu_directory_of(const GhCpuAt *at)
{
	return gh_cpu_block_address(&at->memory, at->shared->directory);
}

/* ------------------------------------------------------- cpu_rows_shared.c */

/* To a root; GH_INVALID: there is none, or the host is none whose memory processes share. */
extern GhStatus gh_cpu_shared_come(const GhHost *host, GhRef root, GhCpuAt *at, GhError *error);
/* Rows of this process, with what is laid out alike in all; NULL: there is no memory. */
extern GhCpuRows *gh_cpu_shared_rows(const GhCpuAt *at, GhError *error);
/* All rows and the index, for this process; NULL: there is no memory. */
extern GhCpuRows *gh_cpu_shared_open(const GhCpuAt *at, GhError *error);
/* Gives all blocks of the directory back. */
extern void gh_cpu_shared_give(GhCpuAt *at);

#endif							/* GPUHASH_CPU_ROWS_SHARED_H */
