/*
 * touched.c
 *		The touched map: for each index that a copy was made of, a bit for each block of the table that is
 *		set once the copy may be wrong for the block.
 *
 * A copy has the entries that the leaf pages had while they were read, and is never changed.  Its entries
 * on a block are the block's rows if the visibility map has the block as all-visible, and the block was
 * not touched since the copy was begun.  The story of why, and the interlocks by their names, are in the
 * README ("Copies").
 *
 * It is in shared memory, and there only with the library preloaded.  Without, and as long as no copy is
 * there, an insert looks at one number.  The bits of all indexes lie in one pool that is never unmapped:
 * whoever looked up an index's place before another one got it sets bits too many there, which is right of
 * bits.
 *
 * On a standby nobody tells what is replayed.  The LSNs of the visibility map's pages do: a copy that is
 * begun in recovery has them behind its bits (README, "On a standby").
 *
 * The lock guards who has which place, and LSNs.  Inserts and deletes set bits without it: they come when
 * recovery is over, and then no LSN counts any more.  What a maker leaves out it sets with the lock, in a
 * place that it still has, for it may do so in recovery.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "heap/map.h"
#include "index/index.h"
#include "index/touched.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/resident_file.h"
#include "store/shared_copies.h"

/* Indexes of which there are copies at a time, and words of bits for all: 32 M blocks, tables of 256 GB. */
#define GH_COPIES_MAX 64
#define GH_TOUCHED_WORDS (1024 * 1024)

typedef struct Place
{
	Oid			database;		/* InvalidOid: a free one */
	Oid			index;
	Oid			tablespace;
	Oid			number;			/* of its file */
	uint64		generation;
	BlockNumber nblocks;
	uint32		first;			/* of its words */
	bool		in_recovery;	/* it was begun then: an LSN for each page of the map is behind its bits */
	GhBlockRuns empty;			/* blocks that had no rows when the copy was begun */
} Place;

/* An LSN is in so many of the words. */
#define GH_LSN_WORDS 2

/* An index has the place of the copy that is in use, and of one that is being made to take its place. */
#define GH_INDEX_PLACES 2

typedef struct Touched
{
	LWLock		lock;			/* guards places; changes and ncopies are written under it */
	pg_atomic_uint64 changes;	/* of places, so far */
	pg_atomic_uint32 ncopies;
	Place		places[GH_COPIES_MAX];
	pg_atomic_uint32 words[GH_TOUCHED_WORDS];
} Touched;

static Touched *touched = NULL;

/*
 * What this process knows of some indexes' places, as of a number of changes.  An index is known in one of a
 * few; its name is in the first of its places, also where it has none.
 */
#define GH_KNOWN 16
#define GH_KNOWN_WAYS 4

typedef struct Known
{
	uint64		changes;		/* 0: nothing */
	Place		places[GH_INDEX_PLACES];	/* of no blocks: there is none */
} Known;

static Known known[GH_KNOWN];

static Size
touched_size(void)
{
	return sizeof(Touched);
}

static void
touched_place(void *place, bool found)
{
	touched = place;
	if (found)
		return;
	memset(touched, 0, offsetof(Touched, words));
	LWLockInitialize(&touched->lock, gh_store_area_tranche());
	pg_atomic_init_u64(&touched->changes, 1);
	pg_atomic_init_u32(&touched->ncopies, 0);
	for (uint32 i = 0; i < GH_TOUCHED_WORDS; i++)
		pg_atomic_init_u32(&touched->words[i], 0);
}

void
gh_touched_init(void)
{
	if (process_shared_preload_libraries_in_progress)
		gh_service_add_memory("gpuhash touched blocks", touched_size, touched_place);
}

/* ------------------------------------------------------------------- places */

static inline uint32
words_of(BlockNumber nblocks)
{
	return nblocks / GH_BITS + (nblocks % GH_BITS != 0);
}

/* Of the visibility map. */
static inline uint32
pages_of(BlockNumber nblocks)
{
	return nblocks / GH_MAP_BLOCKS + (nblocks % GH_MAP_BLOCKS != 0);
}

/* Of a place: its bits and LSNs. */
static inline uint32
all_words_of(BlockNumber nblocks, bool in_recovery)
{
	return words_of(nblocks) + (in_recovery ? pages_of(nblocks) * GH_LSN_WORDS : 0);
}

/* The first of the words that have the LSN of a page of the map. */
static inline pg_atomic_uint32 *
lsn_words(const Place *place, uint32 page)
{
	return &touched->words[place->first + words_of(place->nblocks) + page * GH_LSN_WORDS];
}

static inline bool
is_of(const Place *place, Relation index)
{
	return place->index == RelationGetRelid(index) && place->number == gh_relation_number(index) &&
		place->tablespace == index->rd_rel->reltablespace && place->database == MyDatabaseId;
}

/* The place of the index's copy of that generation.  With the lock. */
static Place *
find_place(Relation index, uint64 generation)
{
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (is_of(&touched->places[i], index) && touched->places[i].generation == generation)
			return &touched->places[i];
	return NULL;
}

/* Where so many words are free together; GH_TOUCHED_WORDS: nowhere.  With the lock. */
static uint32
find_words(uint32 wanted)
{
	uint32		from = 0;
	bool		moved = true;

	while (moved && wanted <= GH_TOUCHED_WORDS && from <= GH_TOUCHED_WORDS - wanted)
	{
		moved = false;
		for (int i = 0; i < GH_COPIES_MAX; i++)
		{
			const Place *place = &touched->places[i];
			uint32		end = place->first + all_words_of(place->nblocks, place->in_recovery);

			if (OidIsValid(place->database) && place->first < from + wanted && end > from)
			{
				from = end;
				moved = true;
			}
		}
	}
	return moved || wanted > GH_TOUCHED_WORDS ? GH_TOUCHED_WORDS : from;
}

/* With the lock, exclusively. */
static void
free_place(Place *place)
{
	memset(place, 0, sizeof(Place));
	pg_atomic_fetch_sub_u32(&touched->ncopies, 1);
	pg_atomic_fetch_add_u64(&touched->changes, 1);
}

/* Those of the index, but for the copy's of one generation; 0: all.  With the lock, exclusively. */
static void
free_places(Relation index, uint64 keep)
{
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (is_of(&touched->places[i], index) && touched->places[i].generation != keep)
			free_place(&touched->places[i]);
}

/* Where what is known of the index is noted, or is to be: in the place of one no longer right, or of any. */
static Known *
find_known(Relation index)
{
	static uint32 next = 0;
	uint64		changes = pg_atomic_read_u64(&touched->changes);
	uint32		first = gh_relation_number(index);
	Known	   *old = NULL;

	for (uint32 way = 0; way < GH_KNOWN_WAYS; way++)
	{
		Known	   *one = &known[(first + way) % GH_KNOWN];

		if (is_of(&one->places[0], index))
			return one;
		if (one->changes != changes)
			old = one;
	}
	return old != NULL ? old : &known[(first + next++ % GH_KNOWN_WAYS) % GH_KNOWN];
}

/* With the lock. */
static void
read_places(Relation index, Known *mine)
{
	uint32		n = 0;

	memset(mine->places, 0, sizeof(mine->places));
	mine->places[0] = (Place)
	{
		MyDatabaseId, RelationGetRelid(index), index->rd_rel->reltablespace, gh_relation_number(index)
	};
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (is_of(&touched->places[i], index))
		{
			Assert(n < GH_INDEX_PLACES);
			mine->places[n++] = touched->places[i];
		}
}

/* The index's places, GH_INDEX_PLACES, as they are now, or were when this was called; NULL: it has none. */
static const Place *
look_up(Relation index)
{
	Known	   *mine = find_known(index);

	if (mine->changes != pg_atomic_read_u64(&touched->changes) || !is_of(&mine->places[0], index))
	{
		LWLockAcquire(&touched->lock, LW_SHARED);
		mine->changes = pg_atomic_read_u64(&touched->changes);
		read_places(index, mine);
		LWLockRelease(&touched->lock);
	}
	return mine->places[0].nblocks > 0 ? mine->places : NULL;
}

/* Whether a file is new in this transaction: who writes to it need not tell what all others see. */
static bool
is_new(Relation relation)
{
	return relation->rd_createSubid != InvalidSubTransactionId ||
		gh_new_file_subid(relation) != InvalidSubTransactionId;
}

bool
gh_may_be_copied(Relation index, Relation heap)
{
	return touched != NULL && !gh_old_snapshots_end() && (!RecoveryInProgress() || RelationNeedsWAL(heap)) &&
		index->rd_index->indisvalid && index->rd_indam->aminsert == gh_index_insert &&
		heap->rd_rel->relam == HEAP_TABLE_AM_OID && heap->rd_rel->relpersistence != RELPERSISTENCE_TEMP &&
		!is_new(index) && !is_new(heap);
}

/*
 * Frees the place of the copy that was begun before all others, but for one; false: there is none.  With the
 * lock.
 */
static bool
free_oldest(const Place *but)
{
	Place	   *oldest = NULL;

	for (int i = 0; i < GH_COPIES_MAX; i++)
	{
		Place	   *place = &touched->places[i];

		if (OidIsValid(place->database) && place != but &&
			(oldest == NULL || place->generation < oldest->generation))
			oldest = place;
	}
	if (oldest != NULL)
		free_place(oldest);
	return oldest != NULL;
}

/*
 * A free place, and where in words its own are; NULL: they are too many.  The place that is kept, which may
 * be NULL, goes last, or at once where both have no room.  With the lock, exclusively.
 */
static Place *
find_room(uint32 nwords, uint32 *first, Place *kept)
{
	Place	   *place;

	if (kept != NULL && all_words_of(kept->nblocks, kept->in_recovery) > GH_TOUCHED_WORDS - nwords)
	{
		free_place(kept);
		kept = NULL;
	}
	do
	{
		place = NULL;
		for (int i = 0; i < GH_COPIES_MAX && place == NULL; i++)
			if (!OidIsValid(touched->places[i].database))
				place = &touched->places[i];
		*first = find_words(nwords);
		if (place != NULL && *first != GH_TOUCHED_WORDS)
			return place;
	} while (free_oldest(kept) || free_oldest(NULL));
	return NULL;
}

/* By page of the map; palloc'd. */
static XLogRecPtr *
read_lsns(Relation heap, BlockNumber nblocks)
{
	XLogRecPtr *lsns = palloc0(Max(pages_of(nblocks), 1) * sizeof(XLogRecPtr));
	uint32	   *bits = palloc(Max(words_of(nblocks), 1) * sizeof(uint32));

	(void) gh_map_read_visible(heap, nblocks, bits, lsns);
	pfree(bits);
	return lsns;
}

/* With the lock, exclusively. */
static void
note_lsns(const Place *place, const XLogRecPtr *lsns)
{
	for (uint32 page = 0; page < pages_of(place->nblocks); page++)
	{
		pg_atomic_uint32 *words = lsn_words(place, page);

		pg_atomic_write_u32(&words[0], (uint32) lsns[page]);
		pg_atomic_write_u32(&words[1], (uint32) (lsns[page] >> 32));
	}
}

bool
gh_copy_begin(Relation index, Relation heap, uint64 keep, GhCopied *copied)
{
	const bool	in_recovery = RecoveryInProgress();
	XLogRecPtr *lsns = NULL;
	Place	   *place;
	uint32		nwords;
	uint32		first;

	if (!gh_may_be_copied(index, heap))
		return false;
	/* blocks that come later are not the copy's */
	copied->nblocks = RelationGetNumberOfBlocks(heap);
	nwords = all_words_of(copied->nblocks, in_recovery);
	/* copies of others would go, for nothing */
	if (nwords > GH_TOUCHED_WORDS)
		return false;
	if (in_recovery)
		lsns = read_lsns(heap, copied->nblocks);
	Assert(TransactionIdIsValid(MyProc->xmin));
	LWLockAcquire(&touched->lock, LW_EXCLUSIVE);
	free_places(index, keep);
	place = copied->nblocks > 0 ? find_room(nwords, &first, find_place(index, keep)) : NULL;
	if (place != NULL)
	{
		for (uint32 word = 0; word < words_of(copied->nblocks); word++)
			pg_atomic_write_u32(&touched->words[first + word], 0);
		/* whoever sees the place, with the lock, sees its words empty */
		copied->generation = pg_atomic_fetch_add_u64(&touched->changes, 1) + 1;
		*place = (Place)
		{
			MyDatabaseId, RelationGetRelid(index), index->rd_rel->reltablespace, gh_relation_number(index),
				copied->generation, copied->nblocks, first, in_recovery
		};
		if (in_recovery)
			note_lsns(place, lsns);
		pg_atomic_fetch_add_u32(&touched->ncopies, 1);
	}
	LWLockRelease(&touched->lock);
	if (lsns != NULL)
		pfree(lsns);
	/* only then the leaf pages are read: pairs with that of any_copies */
	pg_memory_barrier();
	return place != NULL;
}

void
gh_copy_note_empty(Relation index, const GhCopied *copied, const GhBlockRuns *runs)
{
	Place	   *place;

	LWLockAcquire(&touched->lock, LW_EXCLUSIVE);
	place = find_place(index, copied->generation);
	if (place != NULL)
	{
		place->empty = *runs;
		/* those who know the place as it was ask again */
		pg_atomic_fetch_add_u64(&touched->changes, 1);
	}
	LWLockRelease(&touched->lock);
}

void
gh_copy_end(const GhCopied *copied)
{
	/* none was begun */
	if (touched == NULL || copied->generation == 0)
		return;
	LWLockAcquire(&touched->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (OidIsValid(touched->places[i].database) && touched->places[i].generation == copied->generation)
			free_place(&touched->places[i]);
	LWLockRelease(&touched->lock);
}

void
gh_copies_end(Relation index)
{
	if (touched == NULL)
		return;
	LWLockAcquire(&touched->lock, LW_EXCLUSIVE);
	free_places(index, 0);
	LWLockRelease(&touched->lock);
}

/* ------------------------------------------------------------------- touching */

/*
 * Whether there is anything to note.  What was done to the index before is seen by a copy that is begun
 * after we have looked: pairs with the barrier of gh_copy_begin.
 */
static bool
any_copies(void)
{
	if (touched == NULL)
		return false;
	pg_memory_barrier();
	return pg_atomic_read_u32(&touched->ncopies) > 0;
}

static inline void
touch(const Place *place, BlockNumber block)
{
	pg_atomic_uint32 *word = &touched->words[place->first + block / GH_BITS];
	uint32		bit = (uint32) 1 << block % GH_BITS;

	if ((pg_atomic_read_u32(word) & bit) == 0)
		pg_atomic_fetch_or_u32(word, bit);
}

void
gh_touch_inserted(Relation index, BlockNumber block)
{
	const Place *places;

	if (!any_copies() || gh_fault_leaves_out(GH_FAULT_POINT_INDEX_INSERTED))
		return;
	places = look_up(index);
	if (places == NULL)
		return;
	for (int i = 0; i < GH_INDEX_PLACES; i++)
		if (block < places[i].nblocks)
			touch(&places[i], block);
}

/* Of such a block the copy has no entries, so that it is wrong only once one is made. */
static bool
was_empty(const Place *place, BlockNumber block)
{
	for (uint32 i = 0; i < place->empty.n; i++)
		if (block - place->empty.runs[i].first < place->empty.runs[i].count)
			return true;
	return false;
}

void
gh_copy_leave_out(Relation index, const GhCopied *copied, const uint32 *bits)
{
	const Place *place;

	if (gh_fault_leaves_out(GH_FAULT_POINT_INDEX_BEGIN))
		return;
	/* without it the words may become another one's, which has LSNs there */
	LWLockAcquire(&touched->lock, LW_SHARED);
	place = find_place(index, copied->generation);
	for (BlockNumber block = 0; place != NULL && block < copied->nblocks; block++)
		if ((bits[block / GH_BITS] >> block % GH_BITS & 1) == 0 && !was_empty(place, block))
			touch(place, block);
	LWLockRelease(&touched->lock);
}

/* Blocks that the visibility map does not have as all-visible, and that had rows when the copy was begun. */
static void
touch_removed(Relation heap, const Place *place, GhMapPage *map)
{
	for (BlockNumber start = 0, end; start < place->nblocks; start = end)
	{
		CHECK_FOR_INTERRUPTS();
		end = Min(place->nblocks, (gh_map_page_of(start) + 1) * GH_MAP_BLOCKS);
		gh_map_read(heap, gh_map_page_of(start), map);
		for (BlockNumber block = gh_map_next_unmarked(map, start, end); block < end;
			 block = gh_map_next_unmarked(map, block + 1, end))
			if (!was_empty(place, block))
				touch(place, block);
	}
}

void
gh_touch_removed(Relation index)
{
	const Place *found;
	Place		places[GH_INDEX_PLACES];
	Relation	heap;
	GhMapPage  *map;

	if (!any_copies() || gh_fault_leaves_out(GH_FAULT_POINT_INDEX_REMOVED))
		return;
	found = look_up(index);
	if (found == NULL)
		return;
	memcpy(places, found, sizeof(places));
	/* locked by whoever vacuums */
	heap = table_open(IndexGetRelation(RelationGetRelid(index), false), NoLock);
	map = palloc(sizeof(GhMapPage));
	for (int i = 0; i < GH_INDEX_PLACES; i++)
		touch_removed(heap, &places[i], map);
	pfree(map);
	table_close(heap, NoLock);
	/* before VACUUM lets anybody use the rows' places again */
	pg_memory_barrier();
}

/* ------------------------------------------------------------------- asking */

/* Of blocks whose page of the map has another LSN than at the begin, or none, bits may have been set. */
static void
leave_out_changed(const Place *place, const XLogRecPtr *lsns, uint32 *bits)
{
	for (BlockNumber block = 0; block < place->nblocks; block += GH_BITS)
	{
		uint32		page = gh_map_page_of(block);
		pg_atomic_uint32 *words = lsn_words(place, page);
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
read_touched(Relation index, const GhCopied *copied, const XLogRecPtr *lsns, uint32 *bits, Place *asked)
{
	const bool	compares = !gh_fault_leaves_out(GH_FAULT_POINT_INDEX_LSN);
	const Place *place;
	bool		same;

	LWLockAcquire(&touched->lock, LW_SHARED);
	place = find_place(index, copied->generation);
	same = place != NULL;
	for (uint32 word = 0; same && word < words_of(copied->nblocks); word++)
		bits[word] = pg_atomic_read_u32(&touched->words[place->first + word]);
	if (same)
	{
		*asked = *place;
		if (place->in_recovery && compares)
			leave_out_changed(place, lsns, bits);
	}
	LWLockRelease(&touched->lock);
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
	uint32		nwords = words_of(copied->nblocks);
	/* it may have been truncated */
	BlockNumber nblocks = Max(copied->nblocks, RelationGetNumberOfBlocks(heap));
	uint32	   *map = palloc0(words_of(nblocks) * sizeof(uint32));
	uint32	   *touches = palloc0(nwords * sizeof(uint32));
	XLogRecPtr *lsns = palloc0(pages_of(nblocks) * sizeof(XLogRecPtr));
	Place		asked = {0};
	BlockNumber count = 0;
	BlockNumber visible = 0;
	bool		same = touched != NULL && index->rd_index->indisvalid;

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
		gh_shared_copy_retire(GH_COPY_OF_INDEX, index, copied->generation);
	}
	if (all_visible != NULL)
		*all_visible = same ? visible : 0;
	return count;
}
