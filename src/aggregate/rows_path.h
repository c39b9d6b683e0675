/*
 * rows_path.h
 *		What the planning of joins and aggregates asks of GpuHashRows.
 */
#ifndef GPUHASH_AGGREGATE_ROWS_PATH_H
#define GPUHASH_AGGREGATE_ROWS_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"

extern bool gh_rows_may_win(RelOptInfo *joinrel, Path *outer, Path *inner);
extern Path *gh_rows_of_join(PlannerInfo *root, Path *join);
extern void gh_rows_add_paths(PlannerInfo *root, Path *join, bool itself,
							  void (*add) (RelOptInfo *, Path *));
extern Path *gh_rows_joins(Path *path);
extern Path *gh_rows_unwrapped(Path *path);

#endif							/* GPUHASH_AGGREGATE_ROWS_PATH_H */
