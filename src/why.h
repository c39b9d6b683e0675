/*
 * why.h
 *		Why scans, joins and aggregates of a query stay with PostgreSQL, for gpuhash.explain_why.
 */
#ifndef GPUHASH_WHY_H
#define GPUHASH_WHY_H

#include "postgres.h"

#include "nodes/pathnodes.h"

extern bool gh_collects_why;

extern void gh_note_why(PlannerInfo *root, Relids relids, const char *why);
extern void gh_why_init(void);

/* Notes why a scan or a join of these relations, or NULL: the query's grouping, is not offloaded. */
static inline void
gh_why(PlannerInfo *root, Relids relids, const char *why)
{
	if (gh_collects_why)
		gh_note_why(root, relids, why);
}

#endif							/* GPUHASH_WHY_H */
