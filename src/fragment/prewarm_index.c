/*
 * prewarm_index.c
 *		gpuhash_prewarm() of an index: makes its copies before a join needs them, on each GPU, and in shared memory
 *		for what the CPU engine does.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "fragment/prewarm.h"
#include "gpuhash.h"
#include "service/service.h"
#include "store/index_copies.h"

/* Between two looks at whether somebody else still makes a copy. */
#define GH_MAKER_LOOK_MS 10

bool
gh_is_index(Oid relid)
{
	char		kind = get_rel_relkind(relid);

	return kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX;
}

/* Of how many of the table's blocks the copy's rows are those that everybody sees; *all: of all it can. */
static BlockNumber
count_blocks(Relation index, Relation heap, bool *all)
{
	GhCopyHold	hold;
	volatile BlockNumber count = 0;
	BlockNumber visible = 0;
	uint32	   *bits;

	*all = false;
	if (!gh_shared_copy_open(GH_COPY_OF_INDEX, index, &hold))
		return 0;
	PG_TRY();
	{
		bits = palloc0((hold.copy->nblocks / 32 + 1) * sizeof(uint32));
		count = gh_index_copy_methods()->blocks(index, heap, hold.copy, bits, &visible);
		pfree(bits);
	}
	PG_FINALLY();
	{
		gh_shared_copy_close(&hold);
	}
	PG_END_TRY();
	*all = count >= visible;
	return count;
}

/* Until nobody else makes one: the error would be theirs, not this one's. */
static void
wait_for_maker(Relation index)
{
	while (gh_shared_copy_is_made(GH_COPY_OF_INDEX, index))
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, GH_MAKER_LOOK_MS,
						 gh_wait_event(GH_WAIT_COPY));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Sees to it that there is a copy that is right for what it can be; *blocks: of the table, for which it is.
 * False: none can be made.
 */
static bool
have_copy(Relation index, Relation heap, BlockNumber *blocks)
{
	bool		made;
	bool		all;

	do
	{
		wait_for_maker(index);
		*blocks = count_blocks(index, heap, &all);
		/* where it is right for fewer than it could be, another one is made */
		if (*blocks > 0 && all)
			return true;
		made = gh_index_copy_methods()->make(index, heap, NULL);
		/* somebody else has begun in between */
	} while (!made && gh_shared_copy_is_made(GH_COPY_OF_INDEX, index));
	if (made)
		*blocks = count_blocks(index, heap, &all);
	return made;
}

/*
 * Sees to it that each device has a copy that is right for what it can be; of the table's blocks, the most
 * for which one is.  0: there is none.
 */
static BlockNumber
have_device_copies(Relation index, Relation heap)
{
	const char *reason;
	bool		down;
	BlockNumber most = 0;

	if (gh_engine_setting == GH_ENGINE_CPU || !gh_enable_resident || !gh_service_ready(&reason, &down))
		return 0;
	for (int device = 0; device < gh_service_devices(); device++)
	{
		GhIndexCopy copy = {0};
		GhCopyBlocks blocks = {0};

		CHECK_FOR_INTERRUPTS();
		if (!gh_copy_is_right_on_device(index, heap, device, &copy, &blocks) &&
			gh_index_copy_methods()->make_on_device(index, heap, device, NULL))
			(void) gh_copy_is_right_on_device(index, heap, device, &copy, &blocks);
		most = Max(most, blocks.right);
	}
	return most;
}

static int64
prewarm_index(Oid relid)
{
	Oid			heapid = IndexGetRelation(relid, true);
	/* the table first, as whoever changes either locks them */
	Relation	heap = OidIsValid(heapid) ? try_table_open(heapid, AccessShareLock) : NULL;
	Relation	index = heap != NULL ? try_relation_open(relid, AccessShareLock) : NULL;
	BlockNumber blocks = 0;
	BlockNumber there;

	/* dropped meanwhile */
	if (index == NULL)
	{
		if (heap != NULL)
			table_close(heap, AccessShareLock);
		return 0;
	}
	there = have_device_copies(index, heap);
	if ((there == 0 || gh_engine_setting != GH_ENGINE_CUDA) && !have_copy(index, heap, &blocks) && there == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no copy of index \"%s\" can be made", RelationGetRelationName(index)),
				 errdetail("It is no index USING gpuhash on all rows of a table, its first column is no whole number, its table has too few all-visible pages, or there is no room."),
				 errhint("VACUUM the table, or look at \"gpuhash.resident_memory\".")));
	relation_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	return Max(blocks, there);
}

static void
check_index(Oid relid)
{
	Oid			heapid = IndexGetRelation(relid, false);

	if (pg_class_aclcheck(heapid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(heapid)), get_rel_name(heapid));
	if (!gh_service_enabled())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("copies of indexes are kept only with gpuhash preloaded"),
				 errhint("Add \"gpuhash\" to \"shared_preload_libraries\" and restart the server.")));
	if (!gh_enable_index)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("copies of indexes are not kept"),
				 errhint("Set \"gpuhash.enable_index\" to \"on\".")));
}

/* The copies of an index, and of those of its partitions: the tables' blocks that they are right for. */
int64
gh_prewarm_index(Oid relid)
{
	List	   *indexes;
	ListCell   *lc;
	int64		blocks = 0;

	check_index(relid);
	indexes = find_all_inheritors(relid, NoLock, NULL);
	foreach(lc, indexes)
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_INDEX)
			blocks += prewarm_index(lfirst_oid(lc));
	return blocks;
}
