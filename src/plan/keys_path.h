/*
 * keys_path.h
 *		keys_path.c: a GpuHashKeys' path and plan; keys_join.c: that of a semi join.
 *
 * The CustomScan has the relation as its own (scanrelid), the conditions but for that on the keys as its
 * quals, and as its outer child the plan whose rows it returns without the copy, with all conditions, whose
 * columns are those of the node, in the same order: PostgreSQL's scan of the index, or a semi join.  Keys are
 * of an array, or the only column of the inner child's rows.
 */
#ifndef GPUHASH_KEYS_PATH_H
#define GPUHASH_KEYS_PATH_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

#include "gpuhash.h"

/* Also the name that EXPLAIN shows. */
#define GH_KEYS_NAME "GpuHashKeys"

/* Fewer keys are found as fast by PostgreSQL's scan of the index. */
#define GH_KEYS_MIN 2000
/*
 * Nor does the copy pay where there is less than a key for so many values that a process may have to have
 * mapped, those of the keys and of each other column that is read,
 */
#define GH_KEYS_VALUES 1000
/* or fewer keys than so many for each block that it is not right for: of these all rows are looked at. */
#define GH_KEYS_BLOCK 10

static inline bool
gh_keys_pay(double nkeys, double rows, int nothers, double wrong_blocks)
{
	return gh_force_offload ||
		nkeys >= GH_KEYS_MIN + rows * (nothers + 1) / GH_KEYS_VALUES + GH_KEYS_BLOCK * wrong_blocks;
}

/*
 * Where PostgreSQL has a nested loop over the index in place of one scan for all keys, each takes it so many
 * times longer (BENCHMARKS.md, "Keys of a subquery").
 */
#define GH_KEYS_LOOP 2

/* Of cpu_operator_cost: to sort a key, and to find it in the copy. */
#define GH_FOUND_COST 10.0

/* custom_private of the CustomScan; custom_exprs is the array alone, or nothing. */
typedef enum GhKeysPrivate
{
	GH_KEYS_INDEX				/* Oid list of one */
} GhKeysPrivate;

/* custom_private of the CustomPath. */
typedef enum GhKeysPathPrivate
{
	GH_KEYS_PATH_INDEX,			/* IndexOptInfo */
	GH_KEYS_PATH_CONDITION		/* RestrictInfo of the array; there is none of a semi join */
} GhKeysPathPrivate;

extern const CustomPathMethods gh_keys_path_methods;

extern void gh_keys_init(void);
extern bool gh_keys_are_equal_by(const IndexOptInfo *index, Oid op, Oid key, Oid other);
extern bool gh_keys_has_index(const IndexOptInfo *index, const RelOptInfo *rel, Oid method);
extern int	gh_keys_others(const IndexOptInfo *index, const RelOptInfo *rel);
extern Cost gh_keys_copy_cost(const IndexOptInfo *index, const RelOptInfo *rel, double nkeys, double rows, double share);
extern CustomPath *gh_keys_path(RelOptInfo *rel, IndexOptInfo *index, Path *child, Cost startup, Cost total);

/* ---- keys_join.c ---- */

extern Path *gh_keys_replaced(Path *path);

extern void gh_keys_consider_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *keys, RelOptInfo *rel,
								  const List *clauses);

#endif							/* GPUHASH_KEYS_PATH_H */
