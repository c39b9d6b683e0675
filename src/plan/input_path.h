/*
 * input_path.h
 *		Inputs whose pages the nodes read by themselves, as paths: a table, or a chain of joins
 *		over one.
 */
#ifndef GPUHASH_INPUT_PATH_H
#define GPUHASH_INPUT_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"

#include "fragment/costs.h"
#include "plan/aggregate_plan.h"
#include "plan/chain.h"

extern TupleDesc gh_columns_desc(PlannerInfo *root, List *columns, bool by_rows);
extern bool gh_are_columns(List *exprs);

extern bool gh_conditions_translate(PlannerInfo *root, List *conditions);
extern Path *gh_find_joins(PlannerInfo *root, RelOptInfo *rel, bool partial);
extern Path *gh_find_whole(PlannerInfo *root, RelOptInfo *rel, bool partial);
extern Path *gh_joins_with_target(PlannerInfo *root, Path *join, List *exprs);
extern bool gh_joins_translate(PlannerInfo *root, GhGrouping *grouping, Path *joins, List *exprs,
							   int *ninstructions);

extern Cost gh_pages_cost(PlannerInfo *root, Path *scan, int ninstructions, double divisor);
extern Cost gh_charged(const GhSpared *spared, Cost cost);
extern Cost gh_joins_cost(PlannerInfo *root, Path *join, const GhSpared *spared, int ninstructions, double divisor);

#endif							/* GPUHASH_INPUT_PATH_H */
