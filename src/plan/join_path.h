/*
 * join_path.h
 *		What the files share that make GpuHashJoin's paths and price them.
 */
#ifndef GPUHASH_JOIN_PATH_H
#define GPUHASH_JOIN_PATH_H

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "plan/chain.h"

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
	Cost		inner_cost;		/* of that, for its inner side: read, stored, and written to files and read again */
} GhJoinChoice;

/* What the paths have in common that one call of the hook adds. */
typedef struct GhJoinInputs
{
	PlannerInfo *root;
	RelOptInfo *joinrel;
	RelOptInfo *outerrel;
	RelOptInfo *innerrel;
	JoinType	jointype;
	JoinPathExtraData *extra;
	bool		is_in_chain;	/* a node above reads the scan that the outer sides end in */
	bool		may_stay_unread;	/* rows of the join: see ahead.c */
	List	   *equalities;		/* of both sides, that can be hashed */
	List	   *hash_clauses;	/* those of them that are the keys; the others are conditions on the pair */
	bool		keys_are_exact;	/* else the hash clauses are rechecked */
	bool		keys_are_short; /* and exact: of 32 bits at most */
	bool		has_semifactors;	/* extra->semifactors are there */
	Selectivity hash_selectivity;	/* where they are not: of the hash clauses */
	QualCost	hash_cost;		/* of evaluating the hash clauses */
	QualCost	qual_cost;		/* and all of the join's clauses */
	GhJoinPair *pair;			/* of the paths without clauses from elsewhere; NULL: there is none yet */
	Path	   *priced_outer;	/* of the join without parameters that was priced last; NULL: none was */
	Path	   *priced_inner;
	GhJoinChoice priced;		/* and what it costs */
} GhJoinInputs;

/* Whether the path needs parameters from the relation, or from the parent that it is a part of. */
static inline bool
gh_needs_rel(Path *path, RelOptInfo *rel)
{
	return path->param_info != NULL &&
		(bms_overlap(PATH_REQ_OUTER(path), rel->relids) ||
		 bms_overlap(PATH_REQ_OUTER(path), rel->top_parent_relids));
}

/* Whether it is a hash join of PostgreSQL's that is made of the two inputs as they are now. */
static inline bool
gh_is_same_hash_join(const GhJoinInputs *inputs, Path *path)
{
	JoinPath   *join = (JoinPath *) path;

	return IsA(path, HashPath) && join->outerjoinpath->parent == inputs->outerrel &&
		join->innerjoinpath->parent == inputs->innerrel;
}

/* ---- join_path.c ---- */

extern Path *gh_join_of(PlannerInfo *root, RelOptInfo *joinrel, JoinType jointype, List *clauses, Path *outer,
						Path *inner, bool common_table, bool is_in_chain);

/* ---- join_turned.c ---- */

extern Path *gh_join_turned(const GhJoinInputs *inputs, const JoinPath *join, Cost cost);

/* ---- join_consider.c ---- */

extern const char *gh_why_not_considered(const GhJoinInputs *inputs, JoinType jointype);

/* ---- join_keys.c ---- */

extern bool gh_find_keys(GhJoinInputs *inputs);
extern bool gh_is_hash_clause(const GhJoinInputs *inputs, const RestrictInfo *rinfo);

/* ---- loops.c ---- */

extern void gh_replace_loops(const GhJoinInputs *inputs);

/* ---- join_cost.c ---- */

extern Selectivity gh_hash_selectivity(const GhJoinInputs *inputs, List *hash_clauses);
extern void gh_prepare_join_costs(GhJoinInputs *inputs);
extern void gh_cost_join(const GhJoinInputs *inputs, GhJoinChoice *choice);
extern bool gh_side_fits_in_memory(Path *inner);
extern bool gh_join_fits_in_memory(const CustomPath *path);
extern Path *gh_below_gather(Path *path);
extern void gh_real_cost(Path *path, Cost *startup, Cost *total);
extern void gh_inner_chains_save(PlannerInfo *root, Path *joins, Cost *pages, Cost *rows);
extern void gh_real_hash_join_cost(JoinPath *join, Cost *startup, Cost *total);
extern Cost gh_whole_tables_cost(PlannerInfo *root, Path *path, bool on_device, bool real);
extern Selectivity gh_pair_selectivity(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel, RestrictInfo *clause);
extern double gh_cautious_rows(PlannerInfo *root, GhJoinStep *step, double rows, Path *outer, Path *inner);
extern Path *gh_path_to_beat(List *paths, Path *outer, Path *inner, Cost *total);
extern bool gh_wins_clearly(List *paths, Path *outer, Path *inner, Cost total);

#endif							/* GPUHASH_JOIN_PATH_H */
