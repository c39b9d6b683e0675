/*
 * asked.c
 *		Which blocks of the table a copy of an index is right for, as a snapshot asks (README, "Copies").
 *
 * On a standby nobody tells what is replayed.  The LSNs of the visibility map's pages do: a copy that is
 * begun in recovery has them behind its bits (README, "On a standby").
 */
#include "postgres.h"

#include "access/xlog.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"

#include "index/places.h"
#include "service/faults.h"
#include "store/shared_copies.h"

/* Of blocks whose page of the map has another LSN than at the begin, or none, bits may have been set. */
static void
leave_out_changed(const GhTouchedPlace *place, const XLogRecPtr *lsns, uint32 *bits)
{
	for (BlockNumber block = 0; block < place->nblocks; block += GH_BITS)
	{
		uint32		page = gh_map_page_of(block);
		pg_atomic_uint32 *words = gh_touched_lsn(place, page);
		XLogRecPtr	noted = pg_atomic_read_u32(&words[0]) | (uint64) pg_atomic_read_u32(&words[1]) << 32;

		if (lsns[page] == InvalidXLogRecPtr || lsns[page] != noted)
			bits[block / GH_BITS] = PG_UINT32_MAX;
	}
}

/*
 * The blocks that were touched, into bits, and the copy's place; false: it has none.  lsns: of the visibility
 * map, as it was read before.
 */
static bool
read_touched(Relation index, const GhCopied *copied, const XLogRecPtr *lsns, uint32 *bits, GhTouchedPlace *asked)
{
	const bool	compares = !gh_fault_leaves_out(GH_FAULT_POINT_INDEX_LSN);
	const GhTouchedPlace *place;
	bool		same;

	LWLockAcquire(&gh_touched->lock, LW_SHARED);
	place = gh_touched_find(index, copied->generation);
	same = place != NULL;
	for (uint32 word = 0; same && word < gh_touched_words(copied->nblocks); word++)
		bits[word] = pg_atomic_read_u32(&gh_touched->words[place->first + word]);
	if (same)
	{
		*asked = *place;
		if (place->in_recovery && compares)
			leave_out_changed(place, lsns, bits);
	}
	LWLockRelease(&gh_touched->lock);
	return same;
}

/* Blocks that had no rows at the begin, and were not touched, become all-visible; how many were not. */
static BlockNumber
add_empty(const GhBlockRuns *empty, const uint32 *touches, uint32 *map)
{
	BlockNumber count = 0;

	for (uint32 i = 0; i < empty->n; i++)
		for (BlockNumber n = 0; n < empty->runs[i].count; n++)
		{
			BlockNumber block = empty->runs[i].first + n;
			uint32		bit = (uint32) 1 << block % GH_BITS & ~touches[block / GH_BITS];

			count += (bit & ~map[block / GH_BITS]) != 0;
			map[block / GH_BITS] |= bit;
		}
	return count;
}

BlockNumber
gh_copy_blocks(Relation index, Relation heap, const GhCopied *copied, uint32 *bits, BlockNumber *all_visible)
{
	uint32		nwords = gh_touched_words(copied->nblocks);
	/* it may have been truncated */
	BlockNumber nblocks = Max(copied->nblocks, RelationGetNumberOfBlocks(heap));
	uint32	   *map = palloc0(gh_touched_words(nblocks) * sizeof(uint32));
	uint32	   *touches = palloc0(nwords * sizeof(uint32));
	XLogRecPtr *lsns = palloc0(gh_touched_map_pages(nblocks) * sizeof(XLogRecPtr));
	GhTouchedPlace asked = {.where = GH_COPY_SHARED};
	BlockNumber count = 0;
	BlockNumber visible = 0;
	bool		same = gh_touched != NULL && index->rd_index->indisvalid;

	/* a fault: the other order, which is wrong */
	if (same && gh_fault_leaves_out(GH_FAULT_POINT_INDEX_ORDER))
	{
		same = read_touched(index, copied, lsns, touches, &asked);
		pg_usleep(30000);
		visible = gh_map_read_visible(heap, nblocks, map, lsns);
	}
	else if (same)
	{
		visible = gh_map_read_visible(heap, nblocks, map, lsns);
		(void) gh_fault_pass(GH_FAULT_POINT_INDEX_ASKED);
		/* what was touched before the map had a block as all-visible is seen now */
		pg_memory_barrier();
		same = read_touched(index, copied, lsns, touches, &asked);
		(void) gh_fault_pass(GH_FAULT_POINT_INDEX_ASKED);
	}
	/* those that were made in recovery end with it */
	same = same && asked.in_recovery == RecoveryInProgress();
	visible += add_empty(&asked.empty, touches, map);
	for (uint32 word = 0; word < nwords; word++)
	{
		uint32		left = copied->nblocks - word * GH_BITS;
		uint32		own = left < GH_BITS ? ((uint32) 1 << left) - 1 : PG_UINT32_MAX;

		bits[word] = same ? map[word] & own & ~touches[word] : 0;
		count += pg_popcount32(bits[word]);
	}
	pfree(lsns);
	pfree(touches);
	pfree(map);
	/*
	 * Only with files that come back would such a one be right again: its memory is for others, and nobody
	 * looks at the map for it.
	 */
	if (count == 0 && (asked.in_recovery || RecoveryInProgress()))
	{
		gh_copy_end(copied);
		if (asked.where == GH_COPY_SHARED)
			gh_shared_copy_retire(GH_COPY_OF_INDEX, index, copied->generation);
	}
	if (all_visible != NULL)
		*all_visible = same ? visible : 0;
	return count;
}
