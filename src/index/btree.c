/*
 * btree.c
 *		Calls of nbtree that an index has to have nbtree's name for.
 *
 * nbtree's sort of the entries of a new index accepts those of its own access method only: on servers
 * before 18 with an error, on all with assertions, and these also have it in what looks at an index's
 * options, when a page is full.  So while nbtree builds, and with assertions while it inserts, the
 * index's entry in this process's cache of relations names that access method.  The catalog never does,
 * and no other process sees the entry, which the caller has pinned.
 *
 * The cache may read an entry that is in use from the catalog again, at an invalidation, which any look
 * into a catalog may bring: a callback then puts the name in again.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "storage/ipc.h"
#include "utils/inval.h"

#include "index/index.h"
#include "index/touched.h"

/* A call of this process.  A function in an index's expression may build another index. */
typedef struct Call
{
	Relation	index;
	Oid			method;
	struct Call *outer;
} Call;

static Call *calls = NULL;

/*
 * After the entry of that relation, or any (0), was read again.  A process that ends does not unwind its
 * calls, and what they name is freed before its last invalidations.
 */
static void
name_again(Datum argument, Oid relation)
{
	if (proc_exit_inprogress)
		return;
	for (Call *call = calls; call != NULL; call = call->outer)
		if (relation == InvalidOid || relation == RelationGetRelid(call->index))
			call->index->rd_rel->relam = BTREE_AM_OID;
}

/* From here on to end_call, which an error must not leave out. */
static void
begin_call(Call *call, Relation index)
{
	call->index = index;
	call->method = index->rd_rel->relam;
	call->outer = calls;
	calls = call;
	index->rd_rel->relam = BTREE_AM_OID;
}

static void
end_call(Call *call)
{
	calls = call->outer;
	call->index->rd_rel->relam = call->method;
}

/* Of _PG_init: there are few places for callbacks, and a process without one ends. */
void
gh_index_init(void)
{
	CacheRegisterRelcacheCallback(name_again, (Datum) 0);
}

IndexBuildResult *
gh_index_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result;
	Call		call;

	/* TRUNCATE of a table that is new in the transaction leaves the file its name */
	gh_copies_end(index);
	begin_call(&call, index);
	PG_TRY();
	{
		result = btbuild(heap, index, info);
	}
	PG_FINALLY();
	{
		end_call(&call);
	}
	PG_END_TRY();
	return result;
}

bool
gh_index_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
				IndexUniqueCheck unique, bool unchanged, IndexInfo *info)
{
	bool		is_unique;

#ifdef USE_ASSERT_CHECKING
	Call		call;

	begin_call(&call, index);
	PG_TRY();
	{
		is_unique = btinsert(index, values, isnull, tid, heap, unique, unchanged, info);
	}
	PG_FINALLY();
	{
		end_call(&call);
	}
	PG_END_TRY();
#else
	is_unique = btinsert(index, values, isnull, tid, heap, unique, unchanged, info);
#endif
	gh_touch_inserted(index, ItemPointerGetBlockNumber(tid));
	return is_unique;
}

/* Of VACUUM, also in its workers, and of CREATE INDEX CONCURRENTLY, whose callback removes nothing. */
IndexBulkDeleteResult *
gh_index_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *result, IndexBulkDeleteCallback callback,
				void *state)
{
	result = btbulkdelete(info, result, callback, state);
	gh_touch_removed(info->index);
	return result;
}
