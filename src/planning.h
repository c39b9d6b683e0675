/*
 * planning.h
 *		What the planner's halves of the nodes have in common.
 */
#ifndef GPUHASH_PLANNING_H
#define GPUHASH_PLANNING_H

#include "postgres.h"

#include "nodes/primnodes.h"

/* Joins and aggregates of fewer rows than this are over before a table is made. */
#define GH_MIN_ROWS 10000.0

/*
 * With gpuhash.force_offload, a path's cost is scaled down so far that it wins
 * against every other node, while forced paths still compare with each other.
 */
#define GH_FORCED_SCALE 1e-9

extern double gh_parallel_divisor(int workers);
extern Expr *gh_marked(Expr *expr);
extern Expr *gh_unmarked(Expr *expr);

#endif							/* GPUHASH_PLANNING_H */
