/*
 * map.h
 *		Pages of a relation's visibility map, as bytes: which blocks are all-visible, and as of when.
 */
#ifndef GPUHASH_MAP_H
#define GPUHASH_MAP_H

#include "postgres.h"

#include "access/visibilitymapdefs.h"
#include "access/xlogdefs.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

/* Bytes of bits on a page of the map, and the blocks that they are of. */
#define GH_MAP_BYTES (BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define GH_MAP_BLOCKS ((BlockNumber) (GH_MAP_BYTES * (BITS_PER_BYTE / BITS_PER_HEAPBLOCK)))

/* A page of the map, read under its lock: the bits are those of the LSN. */
typedef struct GhMapPage
{
	XLogRecPtr	lsn;			/* 0: it is not to be relied upon */
	uint8		bits[GH_MAP_BYTES];
} GhMapPage;

/* The page of the map that has the block. */
static inline BlockNumber
gh_map_page_of(BlockNumber block)
{
	return block / GH_MAP_BLOCKS;
}

/* Whether the block, one of the page's, is all-visible by it. */
static inline bool
gh_map_is_visible(const GhMapPage *map, BlockNumber block)
{
	uint32		bit = block % GH_MAP_BLOCKS * BITS_PER_HEAPBLOCK;

	return (map->bits[bit / BITS_PER_BYTE] >> bit % BITS_PER_BYTE & VISIBILITYMAP_ALL_VISIBLE) != 0;
}

/*
 * The first block from `block` on that is not all-visible by the map's page, which has it; `end`: none before
 * that.
 */
static inline BlockNumber
gh_map_next_unmarked(const GhMapPage *map, BlockNumber block, BlockNumber end)
{
	const BlockNumber together = sizeof(uint64) * BITS_PER_BYTE / BITS_PER_HEAPBLOCK;
	const uint64 marks = UINT64CONST(0x5555555555555555) * VISIBILITYMAP_ALL_VISIBLE;

	for (; block < end; block++)
	{
		uint64		bits;

		while (block % GH_MAP_BLOCKS % together == 0 && block + together <= end)
		{
			memcpy(&bits, map->bits + block % GH_MAP_BLOCKS / together * sizeof(uint64), sizeof(bits));
			if ((bits & marks) != marks)
				break;
			block += together;
		}
		if (block < end && !gh_map_is_visible(map, block))
			return block;
	}
	return end;
}

/* Blocks whose bits are in a word, where there is one for each of a table. */
#define GH_BITS 32

extern void gh_map_read(Relation relation, BlockNumber page, GhMapPage *map);
extern BlockNumber gh_map_read_visible(Relation relation, BlockNumber nblocks, uint32 *bits,
									   XLogRecPtr *lsns);

#endif							/* GPUHASH_MAP_H */
