/*
 * join_turned.c
 *		Hash joins of PostgreSQL's with the larger side in the table, the other way round.
 *
 * PostgreSQL puts the larger side into the table where a key of the smaller one has many rows, for it expects
 * to look at all of them for each outer row.  A GpuHashJoin that takes its place would write both sides to
 * files, because the larger one does not fit in memory; with the smaller one in the table it need not.  For
 * an inner join it is the same rows, in no order either way, so it takes the same place.
 *
 * Where a device may be expected the sides stay: it has room for the larger one, whose keys may be unique.
 */
#include "postgres.h"

#include <float.h>

#include "gpuhash.h"
#include "plan/chain.h"
#include "plan/join_path.h"
#include "plan/scan_path.h"
#include "service/placement.h"

/* Whether the sides may change places, and are such that it may be better. */
static bool
may_turn(const GhJoinInputs *inputs, const JoinPath *join)
{
	const Path *outer = join->outerjoinpath;
	Path	   *inner = join->innerjoinpath;

	/* each process of several would have all of what it has a part of now */
	if (join->path.parallel_workers > 0 && !join->path.parallel_aware)
		return false;
	return inputs->jointype == JOIN_INNER && inputs->extra->sjinfo->jointype == JOIN_INNER &&
		inner->rows > outer->rows && outer->param_info == NULL && inner->param_info == NULL &&
		!gh_side_fits_in_memory(inner) && !gh_device_is_expected(DBL_MAX);
}

/*
 * A join with the hash join's outer side in its table, if that fits in memory and costs less than this; or
 * NULL.
 */
Path *
gh_join_turned(const GhJoinInputs *inputs, const JoinPath *join, Cost cost)
{
	Path	   *path;

	if (!may_turn(inputs, join))
		return NULL;
	path = gh_join_of(inputs->root, inputs->joinrel, JOIN_INNER, inputs->extra->restrictlist,
					  gh_rowscan_absorbed(inputs->root, join->innerjoinpath), join->outerjoinpath,
					  join->path.parallel_aware, false);
	return path != NULL && gh_join_fits_in_memory((CustomPath *) path) && gh_step(path)->total_cost < cost ? path : NULL;
}
