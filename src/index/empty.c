/*
 * empty.c
 *		Blocks of a table that have no rows, and that the visibility map does not have as all-visible.
 *
 * A table is extended by many blocks at a time where many rows come, and those that no row has reached stay
 * as they are, for VACUUM marks no page that was never used.  A small table that was just rewritten may
 * consist of them to a half.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#include "heap/map.h"
#include "index/touched.h"

/*
 * Blocks that are looked at: each is read, and a table may have many that are not all-visible for other
 * reasons.
 */
#define GH_EMPTY_LOOKED 1024

static bool
is_empty(Relation heap, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(heap, block);
	Page		page = BufferGetPage(buffer);
	bool		empty;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	empty = PageIsNew(page) || PageIsEmpty(page);
	UnlockReleaseBuffer(buffer);
	return empty;
}

/* One block more, behind the others; false: there is no room. */
static bool
add_block(GhBlockRuns *runs, BlockNumber block)
{
	if (runs->n > 0 && runs->runs[runs->n - 1].first + runs->runs[runs->n - 1].count == block)
	{
		runs->runs[runs->n - 1].count++;
		return true;
	}
	if (runs->n == GH_BLOCK_RUNS)
		return false;
	runs->runs[runs->n].first = block;
	runs->runs[runs->n++].count = 1;
	return true;
}

/*
 * Of the blocks whose bit is not set, finds those that have no rows, or some of them; sets their bits, too;
 * how many they are.
 */
BlockNumber
gh_find_empty(Relation heap, BlockNumber nblocks, uint32 *bits, GhBlockRuns *runs)
{
	BlockNumber count = 0;
	int			looked = 0;

	runs->n = 0;
	/* nothing there says when a row comes to one */
	if (RecoveryInProgress())
		return 0;
	for (BlockNumber block = 0; block < nblocks && looked < GH_EMPTY_LOOKED; block++)
	{
		uint32	   *word = &bits[block / GH_BITS];
		uint32		bit = (uint32) 1 << block % GH_BITS;

		if (*word == PG_UINT32_MAX)
			block |= GH_BITS - 1;
		if ((*word & bit) != 0)
			continue;
		looked++;
		if (!is_empty(heap, block))
			continue;
		if (!add_block(runs, block))
			break;
		*word |= bit;
		count++;
	}
	return count;
}

/* How many blocks are all-visible, or have no rows, as far as that is looked for. */
BlockNumber
gh_count_visible_or_empty(Relation heap, BlockNumber nblocks)
{
	uint32	   *bits = palloc0((nblocks / GH_BITS + 1) * sizeof(uint32));
	GhBlockRuns empty;
	BlockNumber count = gh_map_read_visible(heap, nblocks, bits, NULL);

	count += gh_find_empty(heap, nblocks, bits, &empty);
	pfree(bits);
	return count;
}
