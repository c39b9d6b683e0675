/*
 * in_memory.h
 *		in_memory.c: what paths cost where the pages that they read are in memory.
 */
#ifndef GPUHASH_IN_MEMORY_H
#define GPUHASH_IN_MEMORY_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/*
 * cpu_operator_cost: a page of an index on the way down, as PostgreSQL charges (DEFAULT_PAGE_CPU_MULTIPLIER)
 */
#define GH_DESCENT_PAGE_COST 50.0

/*
 * A page at random that is found in shared_buffers, with the row that is looked at there; what it takes more
 * where it is read from the system's cache; and a page that is read behind another one.  In cpu_tuple_cost.
 * Fitted to queries of tables of 110 and 380 MB beside 128 MB of shared_buffers, as what PostgreSQL's plans
 * for them take beside plans of this engine.
 */
#define GH_POOL_PAGE_COST 25.0
#define GH_CACHE_PAGE_COST 20.0
#define GH_NEXT_PAGE_COST 10.0

/* PostgreSQL's plan for a grouping, while there is none of ours. */
typedef struct GhPlanned
{
	bool		is_weighed;
	bool		is_spared;		/* it reads pages at random that may be in memory */
	Cost		cost;			/* if they are, as far as there is room */
	double		share;			/* of the pages, how many are in memory */
} GhPlanned;

/* The plan for a query: what it is not charged for if all pages that it reads are in memory. */
typedef struct GhWeighed
{
	bool		is_wanted;
	Cost		random;			/* of those at random */
	Cost		spared;			/* and of all; */
	Cost		uncharged;		/* what it takes beyond what it is charged for chains of ours, */
	List	   *subqueries;		/* a Cost for each time that a subquery is run, by its number */
	double		pages;			/* of tables and indexes that are read at random */
	bool		by_device;		/* a device is expected to do a part of it: its costs stand for less time */
} GhWeighed;

extern Cost gh_index_pages_cost(const IndexPath *path);
extern Cost gh_bitmap_conditions_cost(const BitmapHeapPath *path);
extern Cost gh_cost_in_memory(PlannerInfo *root, Path *path);
extern Cost gh_whole_cost_in_memory(Cost cost, Cost pages);
extern void gh_weigh_planned(PlannerInfo *root, const RelOptInfo *grouped, GhPlanned *planned);
extern bool gh_aggregate_loses_in_memory(PlannerInfo *root, const GhPlanned *planned, const Path *path,
										 Path *child, int ninstructions);
extern GhWeighed gh_weighed_begin(bool is_wanted);
extern GhWeighed gh_weighed_take(const GhWeighed *before);

#endif							/* GPUHASH_IN_MEMORY_H */
