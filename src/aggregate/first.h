/*
 * first.h
 *		first.c: ORDER BY ... LIMIT above groups, on a device (narrow.c) and on the host (output.c).
 */
#ifndef GPUHASH_AGGREGATE_FIRST_H
#define GPUHASH_AGGREGATE_FIRST_H

#include "postgres.h"

#include "aggregate/exec.h"
#include "aggregate/having.h"

/* The first groups of an order: a condition that lets them through, and few others. */
typedef struct GhFirstGroups GhFirstGroups;

/* On a device. */
extern GhFirstGroups *gh_first_begin(GhAggregateNode *node, uint64 ngroups);
extern uint64 gh_first_sample(const GhFirstGroups *first);
extern void gh_first_take(GhFirstGroups *first, const char *records, Size size);
extern bool gh_first_end(GhFirstGroups *first);
extern bool gh_first_translate(const GhFirstGroups *first, GhTranslation *translation);

/* On the host. */
extern void gh_first_look(GhAggregateNode *node);
extern bool gh_first_awaits(const GhAggregateNode *node);
extern GhGroupsProgram *gh_first_program(const GhAggregateNode *node);
extern void gh_first_forget(GhAggregateNode *node);

#endif							/* GPUHASH_AGGREGATE_FIRST_H */
