/*
 * reload_index.c
 *		Makes copies of indexes again (../store/index_wanted.c): a background worker, which the launcher (../store/reload.c) starts for a
 *		database.
 *
 * The copy that there is stays in use meanwhile.  A copy is made in one transaction, for its leaf pages are
 * read with one snapshot.  It is in nobody's way: locks are taken where nobody holds one against them, or
 * waits for one, and whoever comes to wait for one of them has the copy given up after some thousand entries.
 * What has to wait for the end of older transactions, as CREATE INDEX CONCURRENTLY has, waits for this one as
 * for a query.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "fragment/prewarm.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/index_copies.h"
#include "store/index_wanted.h"

/* What others have made, and was used within so long, stays. */
#define GH_OTHERS_STAY_MS (10 * 60 * 1000)

typedef struct Making
{
	Oid			index;
	bool		goes_on;		/* with other indexes, when this one is done */
} Making;

/* NULL: it is gone, or somebody has a lock against ours, or waits for one. */
static Relation
open_unasked(Oid relid)
{
	return OidIsValid(relid) && ConditionalLockRelationOid(relid, AccessShareLock) ? try_relation_open(relid, NoLock) : NULL;
}

/* Whether somebody waits for a lock against ours: whoever does is before us in the queue for another one. */
static bool
is_waited_for(Oid relid)
{
	if (!ConditionalLockRelationOid(relid, RowShareLock))
		return true;
	UnlockRelationOid(relid, RowShareLock);
	return false;
}

/* GhCopyStop */
static bool
has_to_stop(Relation index, Relation heap)
{
	return gh_fault_leaves_out(GH_FAULT_POINT_INDEX_REMADE) || is_waited_for(RelationGetRelid(index)) ||
		is_waited_for(RelationGetRelid(heap)) || gh_loader_database_is_waited_for();
}

/* A copy in shared memory that is there, as soon as may be. */
static void
make_shared(Relation index, Relation heap)
{
	GhIndexCopy copy;
	int			place;

	if (gh_index_copy_look(index, &copy, &place) && gh_shared_copy_is_due(GH_COPY_OF_INDEX, index))
		(void) gh_index_copy_methods()->make(index, heap, has_to_stop);
}

/* Copies on devices that are not right for many blocks. */
static void
make_on_devices(Relation index, Relation heap)
{
	for (int device = 0; device < gh_service_devices(); device++)
	{
		GhIndexCopy copy = {0};
		GhCopyBlocks blocks;

		if (!gh_index_copy_methods()->look_up_on_device(index, device, &copy.generation, &copy.nblocks))
			continue;
		gh_copy_ask_blocks(index, heap, &copy, RelationGetNumberOfBlocks(heap), &blocks);
		if (gh_copy_is_stale(&blocks))
			(void) gh_index_copy_methods()->make_on_device(index, heap, device, has_to_stop);
		pfree(blocks.bits);
	}
}

/* In a transaction. */
static void
make_copy(void *arg)
{
	Making	   *making = arg;
	Relation	heap;
	Relation	index;

	making->goes_on = gh_loader_lock_database();
	if (!making->goes_on)
		return;
	heap = open_unasked(gh_is_index(making->index) ? IndexGetRelation(making->index, true) : InvalidOid);
	if (heap == NULL)
		return;
	index = open_unasked(making->index);
	if (index != NULL)
	{
		if (index->rd_rel->relkind == RELKIND_INDEX && index->rd_index->indrelid == RelationGetRelid(heap))
		{
			make_on_devices(index, heap);
			make_shared(index, heap);
		}
		relation_close(index, NoLock);
	}
	relation_close(heap, NoLock);
}

void
gh_copies_worker_main(Datum arg)
{
	Making		making = {.goes_on = true};

	gh_loader_begin(arg);
	gh_shared_copies_spare(GH_OTHERS_STAY_MS);
	while (making.goes_on && OidIsValid(making.index = gh_index_wanted_next()))
		gh_loader_in_transaction(make_copy, &making);
}
