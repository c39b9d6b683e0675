/*
 * why_copy.h
 *		why_copy.c: why a join is not done by the copy of an index, for gpuhash.explain_why.
 */
#ifndef GPUHASH_WHY_COPY_H
#define GPUHASH_WHY_COPY_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/*
 * The index that would fit, and why its copy would not be the join's table, as EXPLAIN says it; NULL: there
 * is no such index, or reason.
 */
extern const char *gh_why_no_copy(PlannerInfo *root, const JoinPath *join);
/* The same of a join of ours, which may return its rows, or have the index's table at its outer side. */
extern const char *gh_why_no_copy_of_ours(PlannerInfo *root, Path *join, bool returns_rows);

#endif							/* GPUHASH_WHY_COPY_H */
