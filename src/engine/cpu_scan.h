/*
 * cpu_scan.h
 *		The groups of a scan on the CPU.
 */
#ifndef GPUHASH_CPU_SCAN_H
#define GPUHASH_CPU_SCAN_H

#include "scan_row.h"

#define GH_CPU_NO_GROUP UINT32_MAX

/* A piece of GhHost's memory. */
typedef struct GhCpuBlock
{
	GhRef		ref;			/* 0: none */
	uint64_t	bytes;
} GhCpuBlock;

/*
 * Groups by number, each with its keys and states; a hash table of their numbers; the bytes of
 * keys that are text.  All of it grows by doubling, within the memory limit.
 */
typedef struct GhCpuGroups
{
	GhHost		host;
	const GhScanPlan *plan;
	uint32_t	count;
	uint32_t	room;			/* groups: half the slots, a power of two */
	char	   *records;		/* group_bytes each */
	uint64_t   *hashes;
	GhAggregateState *states;
	uint32_t   *slots;			/* a group's number + 1; 0: free */
	char	   *texts;
	uint64_t	texts_used;		/* bytes */
	uint64_t	texts_room;
	GhCpuBlock	groups_block;	/* has records, hashes, states and slots */
	GhCpuBlock	texts_block;
	uint64_t	bytes;			/* of both */
	uint64_t	bytes_peak;
} GhCpuGroups;

static inline GhScanGroup *
gh_cpu_group_at(const GhCpuGroups *groups, uint32_t group)
{
	return (GhScanGroup *) (groups->records + (size_t) group * groups->plan->group_bytes);
}

/* cpu_scan_groups.c */
extern GhStatus gh_cpu_groups_init(GhCpuGroups *groups, const GhHost *host, const GhScanPlan *plan,
								   GhError *error);
extern void gh_cpu_groups_drop(GhCpuGroups *groups);
extern uint32_t gh_cpu_group_find(GhCpuGroups *groups, const GhValue *values);

#endif							/* GPUHASH_CPU_SCAN_H */
