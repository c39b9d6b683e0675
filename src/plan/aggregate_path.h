/*
 * aggregate_path.h
 *		What is known of a grouping while its paths are made.
 */
#ifndef GPUHASH_AGGREGATE_PATH_H
#define GPUHASH_AGGREGATE_PATH_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

#include "plan/aggregate_plan.h"
#include "plan/in_memory.h"

/* What the paths have in common that one call of the hook adds. */
typedef struct GhAggregateInputs
{
	PlannerInfo *root;
	RelOptInfo *input_rel;
	RelOptInfo *output_rel;
	GhGroupBy	by;
	Relids		why_of;			/* as which reasons are noted: NULL or GH_WHY_DISTINCT */
	GhGrouping	grouping;
	bool		pages;			/* the node reads the input's pages */
	Path	   *join;			/* or the input is joins over a table whose pages it reads: this path,
								 * or NULL */
	Path	   *partial_join;	/* likewise, of several participants */
	const SortPath *sort;		/* of all rows, in PostgreSQL's plan for it; or NULL */
	GhPlanned	planned;		/* that plan, if it is weighed */
	const CustomPath *below;	/* or a grouping's groups, which a device has; or NULL */
	int			ninstructions;	/* of the program over a page's rows */
	bool		wide;			/* rows have wide texts, for which they are handed back on the host */
	double		rows;			/* to be grouped */
	double		groups;			/* by all keys */
	double		returned;		/* before HAVING; fewer where the last key is the argument of aggregates with DISTINCT, and
								 * of all grouping sets */
} GhAggregateInputs;

/* ---- aggregate_path.c ---- */

extern bool gh_is_aggregate_path(const Path *path);

/* ---- aggregate_cost.c ---- */

extern SortPath *gh_sort_of_rows(const RelOptInfo *grouped);
extern bool gh_aggregate_is_for_device(const GhAggregateInputs *inputs, Path *child);
extern bool gh_aggregate_is_spared_doubt(const GhAggregateInputs *inputs, Path *child, double *doubtful);
extern bool gh_aggregate_is_merged_by_all(const GhAggregateInputs *inputs, int workers);
extern double gh_aggregate_groups_out(const GhAggregateInputs *inputs, double groups);
extern void gh_cost_aggregate(const GhAggregateInputs *inputs, CustomPath *cpath, double emitted);

#endif							/* GPUHASH_AGGREGATE_PATH_H */
