/*
 * planning.h
 *		What the planner's halves of the nodes have in common.
 */
#ifndef GPUHASH_PLANNING_H
#define GPUHASH_PLANNING_H

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "gpuhash.h"

/* Joins and aggregates of fewer rows than this are over before a table is made. */
#define GH_MIN_ROWS 10000.0

/*
 * With gpuhash.force_offload, a path's cost is scaled down so far that it wins
 * against every other node, while forced paths still compare with each other.
 */
#define GH_FORCED_SCALE 1e-9

/*
 * Forced, a path of another node costs this share of the one whose place it takes: so it takes the place of
 * every one that it can, and no other plan changes.
 */
#define GH_FORCED_SHARE 0.98

/*
 * A path that takes the place of one of PostgreSQL's that works alike costs what that one does, and what it
 * saves changes no choice above it.  To win against another, it has to cost no more than this share of it:
 * estimates of rows are wrong by more than that, and random_page_cost is much too high for pages in memory.
 */
#define GH_CLEAR_SHARE 0.5

/* Whether so many rows are too few to be looked at. */
static inline bool
gh_has_few_rows(double rows)
{
	return rows < GH_MIN_ROWS && !gh_force_offload;
}

/* ---- what _PG_init calls ---- */

extern void gh_rowscan_init(void);
extern void gh_join_init(void);
extern void gh_aggregate_init(void);
extern void gh_plan_choice_init(void);
extern void gh_in_memory_init(void);
extern void gh_key_values_init(void);

/* ---- condition_order.c ---- */

extern List *gh_conditions_in_order(List *conditions);
extern void gh_order_conditions(const PlannedStmt *stmt);

/* ---- marks.c ---- */

extern double gh_parallel_divisor(int workers);
extern bool gh_joins_are_searched_at_random(PlannerInfo *root);
extern bool gh_costs_less(PlannerInfo *root, double rows, Cost startup, Cost total, Cost other_startup,
						  Cost other_total);
extern Path *gh_cheapest_of(const List *paths);
extern List *gh_costs_list(Cost startup, Cost total);
extern void gh_read_costs(List *list, Cost *startup, Cost *total);
extern Expr *gh_marked(Expr *expr);
extern Expr *gh_unmarked(Expr *expr);

#endif							/* GPUHASH_PLANNING_H */
