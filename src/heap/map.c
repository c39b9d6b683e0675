/*
 * map.c
 *		Reads pages of a relation's visibility map.
 *
 * PostgreSQL's functions tell of one block at a time, and nothing of the page's LSN.  The layout is that of
 * visibilitymap.c: BITS_PER_HEAPBLOCK bits a block behind the page's header.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"

#include "heap/map.h"

/*
 * Reads a page of the map, its bits and its LSN under one share lock.  Where there is none, or it is broken,
 * no block is all-visible by it.
 */
void
gh_map_read(Relation relation, BlockNumber page, GhMapPage *map)
{
	Buffer		buffer;
	Page		read;

	map->lsn = InvalidXLogRecPtr;
	memset(map->bits, 0, sizeof(map->bits));
	if (!smgrexists(RelationGetSmgr(relation), VISIBILITYMAP_FORKNUM) ||
		page >= smgrnblocks(RelationGetSmgr(relation), VISIBILITYMAP_FORKNUM))
		return;
	/* a broken page is none, as PostgreSQL has it */
	buffer = ReadBufferExtended(relation, VISIBILITYMAP_FORKNUM, page, RBM_ZERO_ON_ERROR, NULL);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	read = BufferGetPage(buffer);
	if (!PageIsNew(read))
	{
		map->lsn = BufferGetLSNAtomic(buffer);
		memcpy(map->bits, PageGetContents(read), sizeof(map->bits));
	}
	UnlockReleaseBuffer(buffer);
}

/*
 * Which of 32 blocks are all-visible, by the 8 bytes of the map that have them: the first of two bits each.
 */
static uint32
visible_of(const uint8 *bytes)
{
	uint64		bits = 0;

	for (int i = 0; i < (int) sizeof(bits); i++)
		bits |= (uint64) bytes[i] << i * BITS_PER_BYTE;
	/* they move together, to twice as many each time */
	bits &= UINT64CONST(0x5555555555555555);
	bits = (bits | bits >> 1) & UINT64CONST(0x3333333333333333);
	bits = (bits | bits >> 2) & UINT64CONST(0x0f0f0f0f0f0f0f0f);
	bits = (bits | bits >> 4) & UINT64CONST(0x00ff00ff00ff00ff);
	bits = (bits | bits >> 8) & UINT64CONST(0x0000ffff0000ffff);
	return (uint32) (bits | bits >> 16);
}

/*
 * Sets the bits of those blocks that are all-visible, and clears those of the others of the last word; how
 * many they are.
 * lsns, unless NULL: of each page of the map, the LSN that it has with these bits.
 */
BlockNumber
gh_map_read_visible(Relation relation, BlockNumber nblocks, uint32 *bits, XLogRecPtr *lsns)
{
	GhMapPage  *map = palloc(sizeof(GhMapPage));
	BlockNumber count = 0;

	StaticAssertStmt(BITS_PER_HEAPBLOCK == 2 && VISIBILITYMAP_ALL_VISIBLE == 1, "another layout of the visibility map");
	StaticAssertStmt(GH_MAP_BLOCKS % GH_BITS == 0, "a word of bits is of one page of the map");
	for (BlockNumber block = 0; block < nblocks; block += GH_BITS)
	{
		uint32	   *word = &bits[block / GH_BITS];

		if (block % GH_MAP_BLOCKS == 0)
		{
			gh_map_read(relation, gh_map_page_of(block), map);
			if (lsns != NULL)
				lsns[gh_map_page_of(block)] = map->lsn;
		}
		*word = visible_of(map->bits + block % GH_MAP_BLOCKS / GH_BITS * sizeof(uint64));
		if (nblocks - block < GH_BITS)
			*word &= ((uint32) 1 << (nblocks - block)) - 1;
		count += pg_popcount32(*word);
	}
	pfree(map);
	return count;
}
