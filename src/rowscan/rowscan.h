/*
 * rowscan.h
 *		What the other nodes' planning asks of GpuHashScan.
 */
#ifndef GPUHASH_ROWSCAN_H
#define GPUHASH_ROWSCAN_H

#include "postgres.h"

#include "nodes/pathnodes.h"

extern bool gh_is_rowscan_path(const Path *path);
extern void gh_rowscan_cost(Path *path, Cost *startup, Cost *total);
extern bool gh_reading_all_wins(PlannerInfo *root, RelOptInfo *rel, Path *path, Cost startup, Cost total);
extern Path *gh_rowscan_absorbed(PlannerInfo *root, Path *path);

#endif							/* GPUHASH_ROWSCAN_H */
