/*
 * cpu_blocks.h
 *		cpu_blocks.c: memory of sinks on the CPU.
 */
#ifndef GPUHASH_CPU_BLOCKS_H
#define GPUHASH_CPU_BLOCKS_H

#include "engine/pipeline/record_row.h"

/* A piece of GhHost's memory. */
typedef struct GhCpuBlock
{
	GhRef		ref;			/* 0: none */
	uint64_t	bytes;
} GhCpuBlock;

/* What all processes have taken for a sink that they share; GhHost.lock guards it. */
typedef struct GhCpuTaken
{
	uint64_t	limit;			/* 0: none */
	uint64_t	bytes;
	uint64_t	bytes_peak;
} GhCpuTaken;

/* What a pipeline has taken of the host's memory, within its limit. */
typedef struct GhCpuSinkMemory
{
	GhHost		host;
	uint64_t	limit;			/* 0: none */
	uint64_t	bytes;
	uint64_t	bytes_peak;
	GhCpuTaken *common;			/* it counts there, too, within that limit; NULL: it is of one process */
} GhCpuSinkMemory;

/* Bytes of texts, one behind the other; the room grows by doubling, and at last to the limit of memory. */
typedef struct GhCpuTexts
{
	char	   *bytes;
	uint64_t	used;
	uint64_t	room;
	GhCpuBlock	block;
} GhCpuTexts;

/* Has somebody asked for an early end? */
static inline bool
gh_cpu_is_stopped(const GhHost *host)
{
	return host->stop != NULL && *host->stop != 0;
}

extern GhCpuBlock gh_cpu_block_take(GhCpuSinkMemory *memory, uint64_t bytes);
extern GhCpuBlock gh_cpu_block_take_instead(GhCpuSinkMemory *memory, GhCpuBlock old, uint64_t bytes);
extern void gh_cpu_block_give(GhCpuSinkMemory *memory, GhCpuBlock block);
extern void *gh_cpu_block_address(const GhCpuSinkMemory *memory, GhCpuBlock block);
extern bool gh_cpu_texts_reserve(GhCpuSinkMemory *memory, GhCpuTexts *texts, uint64_t bytes);
/* Appends a text, for which there is room; returns its place in bytes. */
extern uint64_t gh_cpu_texts_add(GhCpuTexts *texts, uint64_t low, uint64_t high);

#endif							/* GPUHASH_CPU_BLOCKS_H */
