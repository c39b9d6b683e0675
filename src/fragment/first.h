/*
 * first.h
 *		first.c: what lets the first rows of an order through, and few others, as some of the rows tell.
 */
#ifndef GPUHASH_FRAGMENT_FIRST_H
#define GPUHASH_FRAGMENT_FIRST_H

#include "postgres.h"

#include "nodes/plannodes.h"

typedef struct GhFirstValues GhFirstValues;

extern GhFirstValues *gh_first_values_begin(const Sort *sort, Expr *key, uint64 wanted);
extern void gh_first_values_add(GhFirstValues *first, NullableDatum value);
extern Expr *gh_first_values_comparison(const GhFirstValues *first);
extern Expr *gh_first_values_condition(const GhFirstValues *first);
extern double gh_first_sample_pages(double pages, double wanted);
extern uint64 gh_first_sample_groups(uint64 groups, uint64 wanted, uint64 least);

#endif							/* GPUHASH_FRAGMENT_FIRST_H */
