/*
 * doubt.h
 *		How many more rows than expected may come out of joins.
 */
#ifndef GPUHASH_DOUBT_H
#define GPUHASH_DOUBT_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* How many times more rows may come out of joins than are expected, for that to count. */
#define GH_DOUBTFUL_ROWS 10.0

extern double gh_doubtful_rows(PlannerInfo *root, Path *joins);
extern double gh_key_factor(PlannerInfo *root, const RelOptInfo *joinrel, RelOptInfo *outerrel, RelOptInfo *innerrel, List *clauses);
extern void gh_drop_doubtful(RelOptInfo *rel, const Path *groups, double expected, double doubtful);

#endif							/* GPUHASH_DOUBT_H */
