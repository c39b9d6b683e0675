/*
 * index_copy.c
 *		A copy of an index of the access method gpuhash, in this session's memory, and whether it is right
 *		for the blocks that the touched map and the visibility map say it is.
 *
 * Of an index on two columns of type bigint, one of them included: (k) INCLUDE (a).
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "index/touched.h"
#include "service/faults.h"

#include "gpuhash_test.h"

PG_FUNCTION_INFO_V1(gpuhash_test_copy_index);
PG_FUNCTION_INFO_V1(gpuhash_test_check_copy);

typedef struct Entry
{
	BlockNumber block;
	uint64		digest;
} Entry;

static Entry *entries = NULL;
static int64 nentries = 0;
static int64 room = 0;
static GhCopied copied;

static uint64
digest_of(int64 k, int64 a)
{
	uint64		digest = (uint64) k * UINT64CONST(0x9e3779b97f4a7c15) ^
		(uint64) a * UINT64CONST(0xc2b2ae3d27d4eb4f);

	return digest ^ digest >> 29;
}

static Page
lock_page(Relation index, BlockNumber block, Buffer *buffer)
{
	*buffer = ReadBuffer(index, block);
	LockBuffer(*buffer, BUFFER_LOCK_SHARE);
	return BufferGetPage(*buffer);
}

/* The first leaf page, or one that was it; P_NONE: the index is empty. */
static BlockNumber
first_leaf(Relation index)
{
	Buffer		buffer;
	BlockNumber block = BTPageGetMeta(lock_page(index, BTREE_METAPAGE, &buffer))->btm_root;

	UnlockReleaseBuffer(buffer);
	while (block != P_NONE)
	{
		Page		page = lock_page(index, block, &buffer);
		BTPageOpaque opaque = BTPageGetOpaque(page);

		if (P_ISLEAF(opaque))
		{
			UnlockReleaseBuffer(buffer);
			break;
		}
		if (P_IGNORE(opaque))
			block = opaque->btpo_next;
		else
		{
			ItemId		first = PageGetItemId(page, P_FIRSTDATAKEY(opaque));

			block = BTreeTupleGetDownLink((IndexTuple) PageGetItem(page, first));
		}
		UnlockReleaseBuffer(buffer);
	}
	return block;
}

static void
copy_page(Relation index, Page page, BTPageOpaque opaque)
{
	TupleDesc	desc = RelationGetDescr(index);

	for (OffsetNumber at = P_FIRSTDATAKEY(opaque); at <= PageGetMaxOffsetNumber(page); at++)
	{
		IndexTuple	tuple = (IndexTuple) PageGetItem(page, PageGetItemId(page, at));
		bool		isnull[2];
		int64		k = DatumGetInt64(index_getattr(tuple, 1, desc, &isnull[0]));
		int64		a = DatumGetInt64(index_getattr(tuple, 2, desc, &isnull[1]));

		if (BTreeTupleIsPosting(tuple) || isnull[0] || isnull[1])
			elog(ERROR, "not an entry of (bigint) INCLUDE (bigint)");
		if (nentries == room)
		{
			room = Max(room * 2, 1024);
			entries = entries == NULL ? MemoryContextAllocHuge(TopMemoryContext, room * sizeof(Entry)) :
				repalloc_huge(entries, room * sizeof(Entry));
		}
		entries[nentries++] = (Entry)
		{
			ItemPointerGetBlockNumber(&tuple->t_tid), digest_of(k, a)
		};
	}
}

/* gpuhash_test_copy_index(index regclass, us int) returns bigint: entries; us: to wait after each page. */
Datum
gpuhash_test_copy_index(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	Relation	heap = table_open(index->rd_index->indrelid, AccessShareLock);
	BlockNumber next;
	GhCopied	begun;
	bool		may_be;

	gh_test_needs_service();
	may_be = gh_copy_begin(index, heap, GH_COPY_SHARED, 0, &begun);
	if (may_be)
	{
		copied = begun;
		nentries = 0;
	}
	for (BlockNumber block = may_be ? first_leaf(index) : P_NONE; block != P_NONE; block = next)
	{
		Buffer		buffer;
		Page		page = lock_page(index, block, &buffer);
		BTPageOpaque opaque = BTPageGetOpaque(page);

		if (!P_IGNORE(opaque))
			copy_page(index, page, opaque);
		next = opaque->btpo_next;
		UnlockReleaseBuffer(buffer);
		(void) gh_fault_pass(GH_FAULT_POINT_INDEX_LEAF);
		CHECK_FOR_INTERRUPTS();
		if (PG_GETARG_INT32(1) > 0)
			pg_usleep(PG_GETARG_INT32(1));
	}
	table_close(heap, AccessShareLock);
	index_close(index, AccessShareLock);
	PG_RETURN_INT64(may_be ? nentries : -1);
}

/*
 * gpuhash_test_check_copy(index regclass): blocks that the copy is right for, entries on them, and how many
 * blocks it is wrong for: those whose rows, by the statement's snapshot, are others.
 */
Datum
gpuhash_test_check_copy(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	Relation	heap = table_open(index->rd_index->indrelid, AccessShareLock);
	BlockNumber nblocks = copied.nblocks;
	uint32	   *bits = palloc0((nblocks / 32 + 1) * sizeof(uint32));
	uint64	   *digests = palloc0((nblocks + 1) * sizeof(uint64));
	int		   *counts = palloc0((nblocks + 1) * sizeof(int));
	AttrNumber	key = index->rd_index->indkey.values[0];
	AttrNumber	value = index->rd_index->indkey.values[1];
	BlockNumber right = gh_copy_blocks(index, heap, &copied, bits, NULL);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TableScanDesc scan;
	int64		used = 0;
	int64		wrong = 0;

#define IS_RIGHT(block) ((block) < nblocks && (bits[(block) / 32] >> (block) % 32 & 1) != 0)
	for (int64 i = 0; i < nentries; i++)
		if (IS_RIGHT(entries[i].block))
		{
			digests[entries[i].block] += entries[i].digest;
			counts[entries[i].block]++;
			used++;
		}
	scan = gh_beginscan_of(heap, GetActiveSnapshot());
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		BlockNumber block = ItemPointerGetBlockNumber(&slot->tts_tid);
		bool		isnull[2];

		if (!IS_RIGHT(block))
			continue;
		digests[block] -= digest_of(DatumGetInt64(slot_getattr(slot, key, &isnull[0])),
									DatumGetInt64(slot_getattr(slot, value, &isnull[1])));
		counts[block]--;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	for (BlockNumber block = 0; block < nblocks; block++)
		wrong += digests[block] != 0 || counts[block] != 0;
	table_close(heap, AccessShareLock);
	index_close(index, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%u " INT64_FORMAT " " INT64_FORMAT, right, used, wrong)));
}
