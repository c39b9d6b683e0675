/*
 * index_side.h
 *		index_side.c: an index whose copy may be the table of a join's inner side.
 */
#ifndef GPUHASH_INDEX_SIDE_H
#define GPUHASH_INDEX_SIDE_H

#include "postgres.h"

#include "nodes/pathnodes.h"

#include "plan/chain.h"

/* The index of the access method gpuhash that has all that a join reads of its inner side, or InvalidOid. */
extern Oid	gh_inner_index(const GhJoinStep *step, const RelOptInfo *outerrel, const Path *inner);
extern Cost gh_copy_saves(const GhJoinStep *step, const Path *outer, Path *inner);

#endif							/* GPUHASH_INDEX_SIDE_H */
