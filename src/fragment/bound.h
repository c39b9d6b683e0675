/*
 * bound.h
 *		bound.c: how many of a node's rows are wanted, and which.
 */
#ifndef GPUHASH_FRAGMENT_BOUND_H
#define GPUHASH_FRAGMENT_BOUND_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

/* The Sort right above a node, and the Limit above that; NULL: there is none. */
typedef struct GhBound
{
	const Sort *sort;
	const Limit *limit;
} GhBound;

extern void gh_bound_find(GhBound *bound, const EState *estate, const Plan *plan);
extern uint64 gh_bound_rows(const GhBound *bound, PlanState *ps);
extern Expr *gh_bound_key(const GhBound *bound, const Plan *plan);

#endif							/* GPUHASH_FRAGMENT_BOUND_H */
