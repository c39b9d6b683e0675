/*
 * map.c
 *		Reads pages of a relation's visibility map.
 *
 * PostgreSQL's functions tell of one block at a time, and nothing of the page's LSN.  The layout is that of
 * visibilitymap.c: BITS_PER_HEAPBLOCK bits a block behind the page's header.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "storage/smgr.h"

#include "heap/map.h"

/*
 * Reads a page of the map, its bits and its LSN under one share lock.  Where there is none, or it is broken, no block is
 * all-visible by it.
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
