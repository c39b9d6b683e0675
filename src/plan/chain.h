/*
 * chain.h
 *		What a GpuHashJoin's path carries, and the chain of joins that it is the last one of.
 */
#ifndef GPUHASH_CHAIN_H
#define GPUHASH_CHAIN_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

/*
 * What is the same for all paths that join the same two relations, in this order, by the same clauses.
 * Each part is filled when it is asked for.
 */
typedef struct GhJoinPair
{
	bool		is_split;
	bool		is_plain;		/* is_plain of join_plan.c */
	List	   *conditions;		/* of a plain join, beside its keys: what makes a match, and what a row must pass
								 * to come out */
	bool		has_matches;
	double		matches;		/* of the most common key, by statistics */
	bool		has_doubtful;
	Selectivity doubtful;		/* gh_cautious_rows: what may be wrong in the estimate of rows */
} GhJoinPair;

/* Of what a chain costs, what a node above is not charged for (gh_charged). */
typedef struct GhSpared
{
	Cost		pages;			/* more than those that the plan reads which it replaces */
	Cost		doubt;			/* what that plan will cost beyond what it says, */
	Cost		least;			/* but the chain is charged for so much */
} GhSpared;

/* The only element of the path's custom_private. */
typedef struct GhJoinStep
{
	ExtensibleNode node;
	JoinType	jointype;
	bool		inner_unique;	/* an outer row has one match at most */
	List	   *clauses;		/* RestrictInfos of the join */
	List	   *hash_clauses;	/* those of them that are hashed */
	List	   *equalities;		/* and that could be */
	Cost		startup_cost;	/* its own, whatever the path is said to cost */
	Cost		total_cost;
	Cost		inner_cost;		/* of that, for the inner side */
	GhSpared	spared;			/* gh_whole_joins */
	GhJoinPair *pair;

	/*
	 * The chain of GpuHashJoins that goes down the outer sides, filled when it is asked for: one step
	 * more than that of the outer path.
	 */
	bool		is_linked;
	Path	   *scan;			/* a Seq Scan at its end, whose rows a node above may look up in all the
								 * joins' tables; or NULL.  The last join may be for a device alone */
	bool		needs_device;	/* which it is: a right or full one */
	bool		on_device;		/* a device is expected to read the scan, and to make the tables */
	bool		ends_on_device; /* it is expected to read what the chain ends in */
	bool		has_rows;		/* a GpuHashRows is in between, or on the inner side of one of the joins */
	Relids		inner_joined;	/* tables of inner sides that are no plain scans, and those that are read as one */
	bool		awaits;			/* a condition of the scan compares with a subquery's result */
	Relids		unread;			/* tables of which no row comes out: of the inner sides of semi and anti joins */
	int			ntables;		/* that a device would make: also those of inner sides that are joins */
	Cost		inner_device_cost;	/* what it costs that a device makes them */

	double		cautious_rows;	/* gh_cautious_rows; 0: it was not asked for yet */
	bool		has_whole_tables_cost;
	Cost		whole_tables_cost[2];	/* gh_whole_tables_cost, of the path; [1]: on a device */
} GhJoinStep;

extern const CustomPathMethods gh_join_path_methods;

/* What follows is asked for thousands of times while a query of many tables is planned. */

static inline bool
gh_is_join_path(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &gh_join_path_methods;
}

static inline GhJoinStep *
gh_step(const Path *join)
{
	Assert(gh_is_join_path(join));
	return linitial(((const CustomPath *) join)->custom_private);
}

extern GhJoinStep *gh_link_path(PlannerInfo *root, Path *join);

/* The step of a join's path, with its chain. */
static inline GhJoinStep *
gh_linked_step(PlannerInfo *root, Path *join)
{
	GhJoinStep *step = gh_step(join);

	return step->is_linked ? step : gh_link_path(root, join);
}

extern void gh_chain_init(void);

/* ---- chain.c ---- */

extern GhJoinStep *gh_make_step(const GhJoinStep *from);
extern void gh_link_step(PlannerInfo *root, GhJoinStep *step, RelOptInfo *joinrel, Path *outer,
						 Path *inner, int workers);
extern bool gh_ends_on_device(PlannerInfo *root, Path *path);

extern bool gh_chain_is_usable(const GhJoinStep *step);
extern Path *gh_scan_below_joins(PlannerInfo *root, Path *path);
extern List *gh_chain_conditions(PlannerInfo *root, Path *join);
extern bool gh_device_reads(PlannerInfo *root, Path *path);
extern Cost gh_device_scan_cost(PlannerInfo *root, Path *scan, double divisor);
extern Cost gh_chain_device_cost(PlannerInfo *root, const GhJoinStep *step, int workers);
extern bool gh_chain_cost_above(PlannerInfo *root, Path *outer, Path *inner, int workers, Cost *cost);
extern Cost gh_device_reading_cost(PlannerInfo *root, Path *path);

#endif							/* GPUHASH_CHAIN_H */
