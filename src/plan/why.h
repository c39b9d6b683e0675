/*
 * why.h
 *		Why scans, joins and aggregates of a query stay with PostgreSQL, for gpuhash.explain_why.
 */
#ifndef GPUHASH_WHY_H
#define GPUHASH_WHY_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

extern bool gh_collects_why;

extern void gh_add_reason(PlannerInfo *root, Relids relids, const char *why);
extern void gh_add_offer(PlannerInfo *root, Relids relids, const char *node, Cost startup, Cost total, bool partial);
extern void gh_add_copy_reason(PlannerInfo *root, Relids relids, Oid index, const char *why);
extern const char *gh_name_expression(PlannerInfo *root, const char *why, Node *expr);
extern List *gh_why_begin(void);
extern List *gh_why_take_lines(const PlannedStmt *plan);
extern void gh_why_end(List *before, List *taken);
extern void gh_why_init(void);

/* SELECT DISTINCT in the place of relations, whose numbers begin at 1. */
#define GH_WHY_DISTINCT bms_make_singleton(0)

/* Notes why a scan or a join of these relations, or NULL: the query's grouping, is not offloaded. */
static inline void
gh_why(PlannerInfo *root, Relids relids, const char *why)
{
	if (gh_collects_why)
		gh_add_reason(root, relids, why);
}

/* Notes what one of our nodes would cost there; partial: as a part of a parallel plan. */
static inline void
gh_why_cost(PlannerInfo *root, Relids relids, const char *node, Cost startup, Cost total, bool partial)
{
	if (gh_collects_why)
		gh_add_offer(root, relids, node, startup, total, partial);
}

/* Notes why a scan of the relation does not look keys up in the copy of that index, which would fit. */
static inline void
gh_why_copy(PlannerInfo *root, Relids relids, Oid index, const char *why)
{
	if (gh_collects_why)
		gh_add_copy_reason(root, relids, index, why);
}

/* What it is sure to cost at the least, where that is too much. */
static inline bool
gh_why_wins(PlannerInfo *root, Relids relids, const char *node, Cost startup, Cost total, bool wins)
{
	if (!wins)
		gh_why_cost(root, relids, node, startup, total, false);
	return wins;
}

/* The reason with the expression that it is about, an expression of the planner's, or NULL. */
static inline const char *
gh_why_of(PlannerInfo *root, const char *why, Node *expr)
{
	return gh_collects_why && why != NULL && expr != NULL ? gh_name_expression(root, why, expr) : why;
}

#endif							/* GPUHASH_WHY_H */
