/*
 * path.h
 *		What the files share that make GpuHashJoin's paths and price them.
 */
#ifndef GPUHASH_JOIN_PATH_H
#define GPUHASH_JOIN_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/* What the paths have in common that one call of the hook adds. */
typedef struct GhJoinInputs
{
	PlannerInfo *root;
	RelOptInfo *joinrel;
	RelOptInfo *outerrel;
	RelOptInfo *innerrel;
	JoinType	jointype;
	JoinPathExtraData *extra;
	bool		may_stay_unread;	/* rows of the join: see ahead.c */
	List	   *hash_clauses;
	bool		keys_are_exact;	/* else the hash clauses are rechecked */
	bool		has_semifactors;	/* extra->semifactors are there */
	Selectivity hash_selectivity;	/* where they are not: of the hash clauses */
	QualCost	hash_cost;		/* of evaluating the hash clauses */
	QualCost	qual_cost;		/* and all of the join's clauses */
} GhJoinInputs;

/* A path that may be made, and what it would cost. */
typedef struct GhJoinChoice
{
	Path	   *outer;
	Path	   *inner;
	List	   *clauses;		/* of the join, those that parameters bring among them */
	bool		has_parameters;
	int			workers;		/* of a path of which each process gives a part, else 0 */
	bool		common_table;	/* whose inner rows each reads a part of */
	double		rows;			/* that come out, of one process */
	Cost		startup_cost;
	Cost		total_cost;
} GhJoinChoice;

/* ---- cost.c ---- */

extern void gh_prepare_join_costs(GhJoinInputs *inputs);
extern void gh_cost_join(const GhJoinInputs *inputs, GhJoinChoice *choice);
extern bool gh_join_fits_in_memory(const CustomPath *path);
extern void gh_real_cost(Path *path, Cost *startup, Cost *total);
extern bool gh_wins_clearly(List *paths, Path *outer, Path *inner, Cost total);

#endif							/* GPUHASH_JOIN_PATH_H */
