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

/*
 * What the join costs less where a copy is the table of its inner side, which then is not read: 0 where that
 * is no index's.  One that is there costs what look-ups in it do; where there is none, one is made, which is
 * not priced.
 */
extern Cost gh_copy_saves(PlannerInfo *root, Path *join);

/* The same of joins down the outer sides, by copies that are there alone. */
extern Cost gh_copies_save(PlannerInfo *root, Path *joins);
/*
 * For what share of the inner side's blocks a copy is right that is there and would be used; 0: there is
 * none.
 */
extern double gh_copied_share(PlannerInfo *root, Path *join);
/* The same where a device has the table of the copy, or makes it once for all queries. */
extern double gh_device_copied_share(PlannerInfo *root, const GhJoinStep *step, const RelOptInfo *outerrel,
									 const Path *inner, int workers);
/*
 * Of how many of the table's blocks the copy of that index is right, if there is one, as a share; 0: there is
 * none.
 */
extern double gh_index_copied_share(PlannerInfo *root, RelOptInfo *rel, Oid index);
/* Whether there is a copy of it, in less time. */
extern bool gh_index_is_copied(Oid index);
/* Whether memory holds the rows of the blocks that a copy is not right for, which is right for that share. */
extern bool gh_copy_rows_fit(const RelOptInfo *rel, double share);
/* Whether the index has all that is read of the relation, which has no conditions. */
extern bool gh_index_has_target(const IndexOptInfo *index, const RelOptInfo *rel);
/* Whether a copy of the index has that column's values; any expression may be asked about. */
extern bool gh_index_has_value(const IndexOptInfo *index, const Var *var);
/*
 * What it costs, in cpu_operator_cost, to have a part of a copy mapped that so many look-ups see, of so many
 * bytes.
 */
extern double gh_mapped_cost(double nlookups, double bytes);
/* Whether the table has an index of which there could be a copy. */
extern bool gh_may_have_copy(const RelOptInfo *rel);

#endif							/* GPUHASH_INDEX_SIDE_H */
