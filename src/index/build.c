/*
 * build.c
 *		Building an index: nbtree does it.
 *
 * nbtree's sort of the entries accepts indexes of its own access method only: on servers before 18 with an
 * error, on all with assertions.  So for as long as it builds, the index's entry in this process's cache of
 * relations names that one.  The catalog never does, and nobody else sees the entry, which the caller has pinned.
 *
 * The cache may read an entry that is in use from the catalog again, at an invalidation, which any look into a catalog
 * may bring: a callback then puts the name in again.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "utils/inval.h"

#include "index/index.h"

/* A build of this process.  A function in an index's expression may build another index. */
typedef struct Build
{
	Relation	index;
	struct Build *outer;
} Build;

static Build *builds = NULL;

/* After the entry of that relation, or any (0), was read again. */
static void
name_again(Datum argument, Oid relation)
{
	for (Build *build = builds; build != NULL; build = build->outer)
		if (relation == InvalidOid || relation == RelationGetRelid(build->index))
			build->index->rd_rel->relam = BTREE_AM_OID;
}

IndexBuildResult *
gh_index_build(Relation heap, Relation index, IndexInfo *info)
{
	static bool registered = false;
	Build		build = {index, builds};
	Oid			method = index->rd_rel->relam;
	IndexBuildResult *result;

	if (!registered)
	{
		CacheRegisterRelcacheCallback(name_again, (Datum) 0);
		registered = true;
	}
	PG_TRY();
	{
		builds = &build;
		index->rd_rel->relam = BTREE_AM_OID;
		result = btbuild(heap, index, info);
	}
	PG_FINALLY();
	{
		builds = build.outer;
		index->rd_rel->relam = method;
	}
	PG_END_TRY();
	return result;
}
