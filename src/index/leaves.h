/*
 * leaves.h
 *		leaves.c: what the leaf pages of an index have.
 */
#ifndef GPUHASH_INDEX_LEAVES_H
#define GPUHASH_INDEX_LEAVES_H

#include "postgres.h"

#include "storage/block.h"
#include "utils/rel.h"

/*
 * An entry: the block of its row, and the columns' values, which are good until the function returns.
 * False: no more.
 */
typedef bool (*GhLeafEntry) (void *arg, BlockNumber block, const Datum *values, const bool *nulls);

/*
 * Has the function called for all entries, from the least to the greatest, but for those that are known to be
 * of rows that nobody sees any more.  A snapshot is held from before the call to its end.  False: the
 * function was false, or a page is not as nbtree writes it.
 */
extern bool gh_leaves_read(Relation index, GhLeafEntry entry, void *arg);

#endif							/* GPUHASH_INDEX_LEAVES_H */
