/*
 * scan_path.h
 *		What the other nodes' planning asks of GpuHashScan.
 */
#ifndef GPUHASH_SCAN_PATH_H
#define GPUHASH_SCAN_PATH_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

extern const CustomPathMethods gh_rowscan_path_methods;

static inline bool
gh_is_rowscan_path(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &gh_rowscan_path_methods;
}

extern void gh_rowscan_cost(Path *path, Cost *startup, Cost *total);
extern bool gh_rowscan_is_for_device(PlannerInfo *root, Path *path);
extern bool gh_reading_all_wins(PlannerInfo *root, RelOptInfo *rel, Path *path, Cost startup, Cost total, Cost pages);
extern Path *gh_rowscan_absorbed(PlannerInfo *root, Path *path);
extern void gh_absorbed_saves(PlannerInfo *root, const Path *scan, Cost *pages, Cost *rows);
extern void gh_condition_columns_save(PlannerInfo *root, RelOptInfo *rel, double divisor, Cost *pages, Cost *rows);

#endif							/* GPUHASH_SCAN_PATH_H */
