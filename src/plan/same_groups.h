/*
 * same_groups.h
 *		Nodes of a plan that read the same input into the same groups.
 */
#ifndef GPUHASH_SAME_GROUPS_H
#define GPUHASH_SAME_GROUPS_H

#include "postgres.h"

#include "nodes/plannodes.h"

/* Whether the plan is one of our nodes, by its name. */
extern bool gh_is_node(const Plan *plan, const char *name);
extern void gh_walk_plans(Plan *plan, void (*visit) (Plan *, void *), void *arg);
extern void gh_walk_statement(const PlannedStmt *stmt, void (*visit) (Plan *, void *), void *arg);
extern Cost gh_share_groups(PlannedStmt *stmt, Cost *common);

#endif							/* GPUHASH_SAME_GROUPS_H */
