/*
 * whole.h
 *		The planner's joins of a relation, all as steps of one chain.
 */
#ifndef GPUHASH_WHOLE_H
#define GPUHASH_WHOLE_H

#include "postgres.h"

#include "nodes/pathnodes.h"

extern Path *gh_whole_joins(PlannerInfo *root, RelOptInfo *rel, bool partial);
extern bool gh_plan_is_lighter(PlannerInfo *root, RelOptInfo *rel, Path *joins);

#endif							/* GPUHASH_WHOLE_H */
