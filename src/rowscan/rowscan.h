/*
 * rowscan.h
 *		What the other nodes' planning asks of GpuHashScan.
 */
#ifndef GPUHASH_ROWSCAN_H
#define GPUHASH_ROWSCAN_H

#include "postgres.h"

#include "nodes/pathnodes.h"

extern Path *gh_rowscan_absorbed(PlannerInfo *root, Path *path);

#endif							/* GPUHASH_ROWSCAN_H */
