/*
 * input_path.h
 *		Inputs whose pages the nodes read by themselves, as paths: a table, or a chain of joins
 *		over one.
 */
#ifndef GPUHASH_AGGREGATE_INPUT_PATH_H
#define GPUHASH_AGGREGATE_INPUT_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"

#include "aggregate/node.h"
#include "gpuhash.h"

/*
 * What a row costs beside PostgreSQL's executor; each in the unit that it names.  To be calibrated on the
 * benchmarks.
 */
#define GH_PAGE_ROW_COST (1.0 / 3)	/* cpu_tuple_cost: a row of a page */
#define GH_KEPT_ROW_COST 0.25	/* cpu_tuple_cost: a row of another plan, kept until there are some hundred */
#define GH_INSTRUCTION_COST 0.1 /* cpu_operator_cost: an instruction, for one row */
#define GH_DEVICE_TABLE_COST 0.05	/* cpu_tuple_cost: a row of a joined table, on a device; gpuhash.device_page_cost
									 * and others have what pages cost */

/*
 * What one of several processes does to read a table's pages, for the planner and for who chooses an engine at run
 * time: with the CPU engine,
 */
static inline Cost
gh_cpu_pages_cost(double pages, double rows, double page_cost, int ninstructions, double divisor)
{
	return page_cost * pages + rows / divisor *
		(GH_PAGE_ROW_COST * cpu_tuple_cost + GH_INSTRUCTION_COST * cpu_operator_cost * ninstructions);
}

/*
 * ... and for a device, but for its start: each page costs the process that supplies it, and at the least the bus;
 * rows are decoded and added meanwhile.
 */
static inline Cost
gh_device_pages_cost(double pages, double page_cost, double divisor)
{
	return pages * (page_cost + Max(gh_device_page_cost / divisor, gh_device_bus_cost));
}

extern bool gh_is_plain_table(PlannerInfo *root, RelOptInfo *rel);
extern TupleDesc gh_columns_desc(List *columns);
extern bool gh_are_columns(List *exprs);

extern Path *gh_scan_below_joins(PlannerInfo *root, Path *path);
extern Path *gh_find_joins(PlannerInfo *root, List *paths);
extern Path *gh_joins_with_target(PlannerInfo *root, Path *join, List *exprs);
extern bool gh_joins_translate(PlannerInfo *root, GhGrouping *grouping, Path *joins, List *exprs,
							   int *ninstructions);

extern Cost gh_pages_cost(Path *scan, int ninstructions, double divisor);
extern Cost gh_joins_cost(Path *join, int ninstructions, double divisor);
extern bool gh_device_reads(PlannerInfo *root, Path *child);
extern Cost gh_device_scan_cost(Path *scan, double divisor);
extern Cost gh_device_reading_cost(Path *child, double divisor);

#endif							/* GPUHASH_AGGREGATE_INPUT_PATH_H */
