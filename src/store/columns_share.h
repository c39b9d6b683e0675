/*
 * columns_share.h
 *		columns_share.c: of how many of a table's blocks columns are in shared memory.
 */
#ifndef GPUHASH_COLUMNS_SHARE_H
#define GPUHASH_COLUMNS_SHARE_H

#include "postgres.h"

#include "nodes/bitmapset.h"
#include "storage/block.h"
#include "utils/rel.h"

extern double gh_columns_share(Relation relation, BlockNumber npages, const Bitmapset *attributes);
extern uint64 gh_columns_missing(Relation relation, double rows, const Bitmapset *attributes);

#endif							/* GPUHASH_COLUMNS_SHARE_H */
