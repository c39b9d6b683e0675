/*
 * same_groups.h
 *		Nodes of a plan that read the same input into the same groups.
 */
#ifndef GPUHASH_SAME_GROUPS_H
#define GPUHASH_SAME_GROUPS_H

#include "postgres.h"

#include "nodes/plannodes.h"

extern void gh_walk_plans(Plan *plan, void (*visit) (Plan *, void *), void *arg);
extern void gh_walk_statement(const PlannedStmt *stmt, void (*visit) (Plan *, void *), void *arg);
extern Cost gh_share_groups(PlannedStmt *stmt, Cost *common);

#endif							/* GPUHASH_SAME_GROUPS_H */
