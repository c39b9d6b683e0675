/*
 * handler.c
 *		What CREATE INDEX ... USING gpuhash does: an index of this access method is a B-tree of
 *		PostgreSQL's own, in its files, its WAL and its scans.
 *
 * The routine is nbtree's, copied, with the functions of this room in the place of some of nbtree's,
 * each of which calls that.  What bthandler returns is never changed itself.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "fmgr.h"
#include "optimizer/cost.h"
#include "storage/lockdefs.h"
#include "utils/index_selfuncs.h"

#include "compat.h"
#include "index/index.h"

PG_FUNCTION_INFO_V1(gpuhash_index_handler);

/*
 * Before 18 the planner knows how many levels an index has of PostgreSQL's own access method alone, and
 * without it a descent would cost nothing: of two indexes with the same columns the other one would never be
 * used.
 */
static void
note_height(IndexOptInfo *info)
{
	Relation	index;

	if (GH_INDEXES_KNOW_HEIGHT || info->tree_height >= 0 || info->hypothetical)
		return;
	/* the planner has locked it */
	index = index_open(info->indexoid, NoLock);
	info->tree_height = _bt_getrootheight(index);
	index_close(index, NoLock);
}

static void
estimate_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
			  Selectivity *selectivity, double *correlation, double *pages)
{
	note_height(path->indexinfo);
	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
}

Datum
gpuhash_index_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = makeNode(IndexAmRoutine);

	*routine = *GetIndexAmRoutineByAmId(BTREE_AM_OID, false);
	gh_limit_index(routine);
	routine->ambuild = gh_index_build;
	routine->aminsert = gh_index_insert;
	routine->ambulkdelete = gh_index_delete;
	routine->amcostestimate = estimate_cost;
	PG_RETURN_POINTER(routine);
}
