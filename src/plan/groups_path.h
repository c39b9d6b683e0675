/*
 * groups_path.h
 *		A grouping over a subquery that is a grouping.
 */
#ifndef GPUHASH_GROUPS_PATH_H
#define GPUHASH_GROUPS_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "plan/aggregate_plan.h"

extern const CustomPath *gh_groups_below(const RelOptInfo *rel);
extern bool gh_groups_translate(PlannerInfo *root, const RelOptInfo *rel, GhGrouping *grouping, int *ninstructions);

#endif							/* GPUHASH_GROUPS_PATH_H */
