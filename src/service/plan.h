/*
 * plan.h
 *		The options of a scan as one block of bytes without addresses, for the way from a
 *		session to a worker: written by the client, read by a thread of the worker.
 */
#ifndef GPUHASH_SERVICE_PLAN_H
#define GPUHASH_SERVICE_PLAN_H

#include "service/shared.h"

/* Where the table of a join is: an entry of the same device. */
typedef struct GhPlanTable
{
	uint32		table;
	uint64		generation;
} GhPlanTable;

/* Options that were read out of a block; they point into it, and to the joins. */
typedef struct GhPlan
{
	GhScanOptions options;
	GhScanJoin	joins[GH_SCAN_JOINS_MAX];	/* their tables are the reader's to fill in */
	GhPlanTable tables[GH_SCAN_JOINS_MAX];
	void	   *memory;			/* the block's copy, malloc()ed */
} GhPlan;

/*
 * Writes the options, whose joins have these tables, as a block to `to`, aligned to 16, or, where
 * that is NULL, tells only how many bytes it has; 0: it would be more than any plan is.
 */
extern Size gh_plan_write(const GhScanOptions *options, const GhPlanTable *tables, void *to);
/*
 * Copies a block that others may change, and then reads the copy: every array lies in it, but what
 * they hold is the engine's to check.  Called by threads.
 */
extern GhStatus gh_plan_read(const void *block, Size bytes, GhPlan *plan, GhError *error);
extern void gh_plan_drop(GhPlan *plan);

#endif							/* GPUHASH_SERVICE_PLAN_H */
