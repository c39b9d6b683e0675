/*
 * scan_plan.h
 *		A GpuHashScan's path and plan.
 */
#ifndef GPUHASH_SCAN_PLAN_H
#define GPUHASH_SCAN_PLAN_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/* Also the name that EXPLAIN shows. */
#define GH_ROWSCAN_NAME "GpuHashScan"

/* custom_private of the CustomPath. */
typedef enum GhRowScanPathPrivate
{
	GH_ROWSCAN_PATH_CONDITIONS,	/* RestrictInfos, in the order in which they are evaluated */
	GH_ROWSCAN_PATH_COSTS		/* its own: gh_costs_list() */
} GhRowScanPathPrivate;

/* ---- conditions.c ---- */

/* The conditions of a scan, in the order in which they are to be evaluated: RestrictInfos. */
typedef struct GhConditions
{
	List	   *programmed;		/* the first ones, which have a program */
	List	   *rest;			/* the others */
	int			ninstructions;	/* of the program */
	const char *why_not;		/* why there are others */
} GhConditions;

extern void gh_rowscan_conditions(PlannerInfo *root, RelOptInfo *rel, TupleDesc desc,
								  GhConditions *conditions);

/* scan_plan.c: the path's custom_private are the conditions in their order */
extern Plan *gh_rowscan_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
							 List *clauses, List *custom_plans);

#endif							/* GPUHASH_SCAN_PLAN_H */
