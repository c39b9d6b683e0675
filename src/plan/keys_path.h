/*
 * keys_path.h
 *		keys_path.c: a GpuHashKeys' path and plan.
 *
 * The CustomScan has the relation as its own (scanrelid), the conditions but for that on the keys as its quals, and as
 * its child PostgreSQL's scan of the index with all conditions, whose columns are those of the node, in the same order.
 */
#ifndef GPUHASH_KEYS_PATH_H
#define GPUHASH_KEYS_PATH_H

#include "postgres.h"

#include "gpuhash.h"

/* Also the name that EXPLAIN shows. */
#define GH_KEYS_NAME "GpuHashKeys"

/* Fewer keys are found as fast by PostgreSQL's scan of the index. */
#define GH_KEYS_MIN 2000
/*
 * Nor does the copy pay where there is less than a key for so many values that a process may have to have mapped, those of
 * the keys and of each other column that is read,
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

/* custom_private of the CustomScan; custom_exprs is the array alone. */
typedef enum GhKeysPrivate
{
	GH_KEYS_INDEX				/* Oid list of one */
} GhKeysPrivate;

extern void gh_keys_init(void);

#endif							/* GPUHASH_KEYS_PATH_H */
