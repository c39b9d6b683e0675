/*
 * resident_lookup.c
 *		Pages of relations that stay on a device: which of a relation's blocks are there, and are what they were.
 *
 * Blocks are looked up a chunk at a time, and what is found are runs of them: what a query pays for each of
 * its pages is paid here. Where all blocks of a chunk were what they were, and lie side by side, that is
 * noted with the chunk (GhChunkWhole).  Then a query looks at the map's bits and at the LSN, and at no block.
 * README, "Resident pages", has the rules.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "heap/hints.h"
#include "service/faults.h"
#include "store/inside.h"
#include "store/resident_use.h"

/* --------------------------------------------------------------------- maps */

/*
 * Reads a page of the map; at the fault point its LSN, and its bits later, as if there were no lock over
 * both.
 */
static void
read_map_now(const GhResident *resident, BlockNumber number, GhMapPage *map)
{
	XLogRecPtr	lsn;

	gh_map_read(resident->relation, number, map);
	lsn = map->lsn;
	if (gh_fault_pass(GH_FAULT_POINT_RESIDENT_SPLIT) == GH_FAULT_NONE)
		return;
	gh_map_read(resident->relation, number, map);
	map->lsn = lsn;
}

/*
 * Reads a page of the map.  At the fault point it is the one that this process's last use of the relation has
 * read: as if it were read before the snapshot was taken.
 */
static void
read_map(const GhResident *resident, BlockNumber number, GhMapPage *map)
{
	static GhMapPage last;
	static Oid	last_relation = InvalidOid;
	static BlockNumber last_number;
	Oid			relation = RelationGetRelid(resident->relation);

	if (gh_fault_pass(GH_FAULT_POINT_RESIDENT_ORDER) == GH_FAULT_NONE)
	{
		read_map_now(resident, number, map);
		return;
	}
	if (last_relation != relation || last_number != number)
		gh_map_read(resident->relation, number, &last);
	last_relation = relation;
	last_number = number;
	*map = last;
}

const GhMapPage *
gh_resident_map(GhResident *resident, BlockNumber block)
{
	BlockNumber number = gh_map_page_of(block);

	if (number >= resident->nmaps)
	{
		uint32		nmaps = Max(number + 1, gh_map_page_of(resident->nblocks) + 1);
		GhMapPage **maps = MemoryContextAllocZero(resident->context, nmaps * sizeof(GhMapPage *));

		if (resident->nmaps > 0)
			memcpy(maps, resident->maps, resident->nmaps * sizeof(GhMapPage *));
		resident->maps = maps;
		resident->nmaps = nmaps;
	}
	if (resident->maps[number] == NULL)
	{
		GhMapPage  *map = MemoryContextAlloc(resident->context, sizeof(GhMapPage));

		read_map(resident, number, map);
		resident->maps[number] = map;
	}
	return resident->maps[number];
}

/* --------------------------------------------------------- blocks of a chunk */

/*
 * Copies what is known of the chunk.  No more is done under the lock: who begins or ends a use needs it
 * alone, and would wait for all that look up.
 */
static void
copy_chunk(GhResident *resident)
{
	GhResidentFile *file = resident->file;
	const GhResidentBlock *known;

	LWLockAcquire(&file->lock, LW_SHARED);
	known = gh_file_chunk(gh_store_area(), file, resident->chunk / GH_CHUNK_BLOCKS, false);
	if (known != NULL)
		memcpy(resident->blocks, known, sizeof(resident->blocks));
	LWLockRelease(&file->lock);
	if (known == NULL)
		memset(resident->blocks, 0, sizeof(resident->blocks));
}

/* Whether the span of that number is there, and held from here on.  The first look at each takes the lock. */
static bool
holds_span(GhResident *resident, uint32 number)
{
	bool		held;

	if (number < resident->nspans && resident->spans[number].state != SPAN_UNKNOWN)
		return resident->spans[number].state == SPAN_HELD;
	LWLockAcquire(&resident->file->lock, LW_SHARED);
	held = gh_resident_hold_span(resident, number);
	LWLockRelease(&resident->file->lock);
	return held;
}

/* What the map says of the block: its page, which has to be read before. */
static inline bool
is_visible(const GhMapPage *map, BlockNumber block)
{
	return map->lsn != InvalidXLogRecPtr && gh_map_is_visible(map, block);
}

/*
 * Blocks of a chunk, from one up to another, which the same page of the map has: what is known of them, and
 * which of them are what they were by that page alone; which may be so yet, although it has changed
 * (doubted), and which are in the place behind that of the block before.  Returns how many are doubted.
 */
static uint32
judge_by_map(GhResident *resident, uint32 from, uint32 to, const GhMapPage *map, uint64 *doubted)
{
	uint32		last = PG_UINT32_MAX;
	uint32		next_place = PG_UINT32_MAX;
	uint32		lines = resident->lines_before[from];
	uint32		count = 0;

	for (uint32 i = from; i < to; i++)
	{
		GhResidentBlock block = resident->blocks[i];
		uint64		bit = UINT64CONST(1) << i % 64;

		if (block.there && block.place / GH_PLACES_OF_SPAN != last)
		{
			last = block.place / GH_PLACES_OF_SPAN;
			/* of a span that is gone nothing is there */
			if (!holds_span(resident, last))
				last = PG_UINT32_MAX;
		}
		block.there = resident->blocks[i].there = block.there && block.place / GH_PLACES_OF_SPAN == last;
		lines += block.lines;
		resident->lines_before[i + 1] = lines;
		if (block.place == next_place && block.place % GH_PLACES_OF_SPAN != 0)
			resident->follows[i / 64] |= bit;
		next_place = block.place + 1;
		if (!block.there || !is_visible(map, resident->chunk + i))
			continue;
		if (block.map_lsn == map->lsn || gh_fault_pass(GH_FAULT_POINT_RESIDENT_MAP) != GH_FAULT_NONE)
			resident->fresh[i / 64] |= bit;
		else
		{
			doubted[i / 64] |= bit;
			count++;
		}
	}
	return count;
}

static inline bool
has_bit(const uint64 *bits, uint32 i)
{
	return (bits[i / 64] >> i % 64 & 1) != 0;
}

/* The copies of these blocks are as of the pages of the map that this use has read. */
static void
renew(GhResident *resident, const uint64 *renewed)
{
	GhResidentFile *file = resident->file;
	GhResidentBlock *known;

	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	known = gh_file_chunk(gh_store_area(), file, resident->chunk / GH_CHUNK_BLOCKS, false);
	if (known != NULL)
		gh_chunk_whole(known)->map_lsn = InvalidXLogRecPtr;
	for (uint32 i = 0; known != NULL && i < GH_CHUNK_BLOCKS; i++)
		if (has_bit(renewed, i) && known[i].there && known[i].place == resident->blocks[i].place)
			known[i].map_lsn = Max(known[i].map_lsn, gh_resident_map(resident, resident->chunk + i)->lsn);
	LWLockRelease(&file->lock);
}

/* How far ahead what will be read of a buffer is fetched. */
#define GH_LSNS_AHEAD 8

/*
 * Of doubted blocks whose pages are in shared buffers, the pages' LSNs tell (rule 3): those that have the
 * copies' LSNs are not read.  The map's pages have been read before, under their locks: whatever a page was
 * changed by before it was all-visible there is to be seen in its LSN.
 */
static void
judge_by_heap(GhResident *resident, const uint64 *doubted, uint32 count)
{
	uint64		renewed[GH_CHUNK_BLOCKS / 64] = {0};
	bool		any = false;

	for (uint32 i = 0; i < GH_CHUNK_BLOCKS && count > 0; i++)
	{
		XLogRecPtr	lsn;

		if (i + GH_LSNS_AHEAD < GH_CHUNK_BLOCKS && has_bit(doubted, i + GH_LSNS_AHEAD))
			gh_hint_fetch_header(resident->relation, resident->chunk + i + GH_LSNS_AHEAD);
		if (!has_bit(doubted, i))
			continue;
		count--;
		if (!gh_hint_lsn(resident->relation, resident->chunk + i, &lsn) || lsn == InvalidXLogRecPtr ||
			(lsn != resident->blocks[i].heap_lsn && gh_fault_pass(GH_FAULT_POINT_RESIDENT_HEAP) == GH_FAULT_NONE))
			continue;
		renewed[i / 64] |= UINT64CONST(1) << i % 64;
		resident->fresh[i / 64] |= UINT64CONST(1) << i % 64;
		resident->counts.revalidated++;
		any = true;
	}
	if (any)
		renew(resident, renewed);
}

/* ------------------------------------------------------------- whole chunks */

/* Whether the chunk, which was looked up, can be known of as a whole: one page of the map has it. */
static bool
may_be_whole(const GhResident *resident)
{
	const GhResidentBlock *blocks = resident->blocks;
	bool		whole = has_bit(resident->fresh, 0);

	for (uint32 i = 1; i < GH_CHUNK_BLOCKS && whole; i++)
		whole = has_bit(resident->fresh, i) && has_bit(resident->follows, i) && blocks[i].map_lsn == blocks[0].map_lsn;
	return whole;
}

/* Notes that, unless others have changed it meanwhile. */
static void
note_whole(GhResident *resident)
{
	GhResidentFile *file = resident->file;
	GhResidentBlock *known;
	GhChunkWhole *whole;

	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	known = gh_file_chunk(gh_store_area(), file, resident->chunk / GH_CHUNK_BLOCKS, false);
	if (known != NULL && memcmp(known, resident->blocks, sizeof(resident->blocks)) == 0)
	{
		whole = gh_chunk_whole(known);
		whole->map_lsn = known[0].map_lsn;
		whole->place = known[0].place;
		for (uint32 i = 0; i < GH_CHUNK_BLOCKS; i++)
			whole->lines[i] = known[i].lines;
	}
	LWLockRelease(&file->lock);
}

/* Whether all of the chunk is what it was, as far as it is known of as a whole. */
static bool
find_whole(GhResident *resident, BlockNumber first)
{
	GhResidentFile *file = resident->file;
	const GhMapPage *map = gh_resident_map(resident, first);
	GhResidentBlock *known;
	bool		found = false;

	if (map->lsn == InvalidXLogRecPtr ||
		gh_map_next_unmarked(map, first, first + GH_CHUNK_BLOCKS) < first + GH_CHUNK_BLOCKS)
		return false;
	LWLockAcquire(&file->lock, LW_SHARED);
	known = gh_file_chunk(gh_store_area(), file, first / GH_CHUNK_BLOCKS, false);
	if (known != NULL && gh_chunk_whole(known)->map_lsn == map->lsn)
	{
		const GhChunkWhole *whole = gh_chunk_whole(known);

		resident->whole_place = whole->place;
		memcpy(resident->whole_lines, whole->lines, sizeof(whole->lines));
		found = gh_resident_hold_span(resident, whole->place / GH_PLACES_OF_SPAN);
	}
	LWLockRelease(&file->lock);
	return found;
}

/* ------------------------------------------------------------------- look-up */

/* Looks up the blocks of a chunk: what is known of them, and which of them are what they were. */
static void
look_up(GhResident *resident, BlockNumber first)
{
	uint64		doubted[GH_CHUNK_BLOCKS / 64] = {0};
	BlockNumber left = GH_MAP_BLOCKS - first % GH_MAP_BLOCKS;
	uint32		split = (uint32) Min(left, (BlockNumber) GH_CHUNK_BLOCKS);
	const GhMapPage *map = gh_resident_map(resident, first);
	const GhMapPage *second = split < GH_CHUNK_BLOCKS ? gh_resident_map(resident, first + split) : map;
	uint32		count;

	resident->is_whole = split == GH_CHUNK_BLOCKS && find_whole(resident, first);
	resident->chunk = first;
	if (resident->is_whole)
		return;
	memset(resident->fresh, 0, sizeof(resident->fresh));
	memset(resident->follows, 0, sizeof(resident->follows));
	resident->lines_before[0] = 0;
	copy_chunk(resident);
	count = judge_by_map(resident, 0, split, map, doubted);
	count += judge_by_map(resident, split, GH_CHUNK_BLOCKS, second, doubted);
	if (count > 0)
		judge_by_heap(resident, doubted, count);
	else if (split == GH_CHUNK_BLOCKS && may_be_whole(resident))
		note_whole(resident);
}

/* How many bits from that one on are set in both, of `most` at most; the first one is in one of them. */
static uint32
count_set(const uint64 *fresh, const uint64 *follows, uint32 from, uint32 most)
{
	uint32		count = 1;

	while (count < most)
	{
		uint32		i = from + count;
		uint64		off = ~(fresh[i / 64] & follows[i / 64]) >> i % 64;

		if (off != 0)
			return Min(count + pg_rightmost_one_pos64(off), most);
		count += 64 - i % 64;
	}
	return most;
}

/*
 * How many blocks from that one on, `most` at most, have their rows on the device, in places of one span that
 * lie one behind the other: these need not be read.  *at: where the first one is, and its lines.
 */
uint32
gh_resident_find(GhResident *resident, BlockNumber block, uint32 most, GhResidentPlace *at)
{
	uint32		i = block % GH_CHUNK_BLOCKS;
	const GhResidentBlock *found = &resident->blocks[i];
	uint32		count;

	if (resident->chunk == InvalidBlockNumber || block - i != resident->chunk)
		look_up(resident, block - i);
	if (resident->is_whole)
	{
		gh_set_place(at, resident->whole_place + i, resident->whole_lines[i]);
		return Min(most, GH_CHUNK_BLOCKS - i);
	}
	if (!has_bit(resident->fresh, i))
		return 0;
	count = count_set(resident->fresh, resident->follows, i, Min(most, GH_CHUNK_BLOCKS - i));
	gh_set_place(at, found->place, found->lines);
	return count;
}

/* Lines of so many blocks that were found together. */
uint32
gh_resident_lines(const GhResident *resident, BlockNumber block, uint32 count)
{
	uint32		i = block % GH_CHUNK_BLOCKS;
	uint32		lines = 0;

	if (resident->is_whole)
	{
		for (uint32 k = i; k < i + count; k++)
			lines += resident->whole_lines[k];
		return lines;
	}
	return resident->lines_before[i + count] - resident->lines_before[i];
}
