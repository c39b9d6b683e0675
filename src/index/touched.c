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
 * whoever looked up an index's place before another one got it sets bits too many there, which is always
 * right.
 *
 * The lock guards who has which place.  Bits are set without it.
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
	GhBlockRuns empty;			/* blocks that had no rows when the copy was begun */
} Place;

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
 * What this process knows of some indexes' places, as of a number of changes.  An index is known in one of a few; its name is in
 * the first of its places, also where it has none.
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
			uint32		end = place->first + words_of(place->nblocks);

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

/* Where it is noted what is known of the index, or is to be: in the place of one that is no longer right, or of any. */
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

static bool
may_be_copied(Relation index, Relation heap)
{
	return touched != NULL && !RecoveryInProgress() && !gh_old_snapshots_end() &&
		index->rd_index->indisvalid && index->rd_indam->aminsert == gh_index_insert &&
		heap->rd_rel->relam == HEAP_TABLE_AM_OID && heap->rd_rel->relpersistence != RELPERSISTENCE_TEMP &&
		!is_new(index) && !is_new(heap);
}

/* Frees the place of the copy that was begun before all others, but for one; false: there is none.  With the lock. */
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
 * A free place, and where in words its bits are; NULL: they are too many.  The place that is kept, which may be NULL, goes last, or
 * at once where both have no room.  With the lock, exclusively.
 */
static Place *
find_room(BlockNumber nblocks, uint32 *first, Place *kept)
{
	Place	   *place;

	if (kept != NULL && words_of(kept->nblocks) > GH_TOUCHED_WORDS - words_of(nblocks))
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
		*first = find_words(words_of(nblocks));
		if (place != NULL && *first != GH_TOUCHED_WORDS)
			return place;
	} while (free_oldest(kept) || free_oldest(NULL));
	return NULL;
}

bool
gh_copy_begin(Relation index, Relation heap, uint64 keep, GhCopied *copied)
{
	Place	   *place;
	uint32		first;

	if (!may_be_copied(index, heap))
		return false;
	/* blocks that come later are not the copy's */
	copied->nblocks = RelationGetNumberOfBlocks(heap);
	/* copies of others would go, for nothing */
	if (words_of(copied->nblocks) > GH_TOUCHED_WORDS)
		return false;
	Assert(TransactionIdIsValid(MyProc->xmin));
	LWLockAcquire(&touched->lock, LW_EXCLUSIVE);
	free_places(index, keep);
	place = copied->nblocks > 0 ? find_room(copied->nblocks, &first, find_place(index, keep)) : NULL;
	if (place != NULL)
	{
		for (uint32 word = 0; word < words_of(copied->nblocks); word++)
			pg_atomic_write_u32(&touched->words[first + word], 0);
		/* whoever sees the place, with the lock, sees its words empty */
		copied->generation = pg_atomic_fetch_add_u64(&touched->changes, 1) + 1;
		*place = (Place)
		{
			MyDatabaseId, RelationGetRelid(index), index->rd_rel->reltablespace, gh_relation_number(index),
				copied->generation, copied->nblocks, first
		};
		pg_atomic_fetch_add_u32(&touched->ncopies, 1);
	}
	LWLockRelease(&touched->lock);
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

/* If the copy is no longer the index's, another one has bits too many. */
void
gh_copy_leave_out(Relation index, const GhCopied *copied, const uint32 *bits)
{
	const Place *places = look_up(index);

	for (int i = 0; places != NULL && i < GH_INDEX_PLACES; i++)
		for (BlockNumber block = 0; places[i].generation == copied->generation && block < copied->nblocks; block++)
			if ((bits[block / GH_BITS] >> block % GH_BITS & 1) == 0 && !was_empty(&places[i], block))
				touch(&places[i], block);
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

/* The blocks that were touched, into bits, and those that had no rows; false: the copy is not this one. */
static bool
read_touched(Relation index, const GhCopied *copied, uint32 *bits, GhBlockRuns *empty)
{
	const Place *place;
	bool		same;

	LWLockAcquire(&touched->lock, LW_SHARED);
	place = find_place(index, copied->generation);
	same = place != NULL;
	for (uint32 word = 0; same && word < words_of(copied->nblocks); word++)
		bits[word] = pg_atomic_read_u32(&touched->words[place->first + word]);
	if (same)
		*empty = place->empty;
	LWLockRelease(&touched->lock);
	return same;
}

BlockNumber
gh_copy_blocks(Relation index, Relation heap, const GhCopied *copied, uint32 *bits, BlockNumber *all_visible)
{
	uint32		nwords = words_of(copied->nblocks);
	/* it may have been truncated */
	BlockNumber nblocks = Max(copied->nblocks, RelationGetNumberOfBlocks(heap));
	uint32	   *map = palloc0(words_of(nblocks) * sizeof(uint32));
	uint32	   *touches = palloc0(nwords * sizeof(uint32));
	GhBlockRuns empty = {0};
	BlockNumber count = 0;
	BlockNumber visible = 0;
	bool		same = touched != NULL && !RecoveryInProgress() && index->rd_index->indisvalid;

	/* a fault: the other order, which is wrong */
	if (same && gh_fault_leaves_out(GH_FAULT_POINT_INDEX_ORDER))
	{
		same = read_touched(index, copied, touches, &empty);
		pg_usleep(30000);
		visible = gh_map_read_visible(heap, nblocks, map);
	}
	else if (same)
	{
		visible = gh_map_read_visible(heap, nblocks, map);
		(void) gh_fault_pass(GH_FAULT_POINT_INDEX_ASKED);
		/* what was touched before the map had a block as all-visible is seen now */
		pg_memory_barrier();
		same = read_touched(index, copied, touches, &empty);
		(void) gh_fault_pass(GH_FAULT_POINT_INDEX_ASKED);
	}
	for (uint32 i = 0; i < empty.n; i++)
		for (BlockNumber block = empty.runs[i].first; block < empty.runs[i].first + empty.runs[i].count; block++)
		{
			uint32		bit = (uint32) 1 << block % GH_BITS & ~touches[block / GH_BITS];

			visible += (bit & ~map[block / GH_BITS]) != 0;
			map[block / GH_BITS] |= bit;
		}
	for (uint32 word = 0; word < nwords; word++)
	{
		uint32		left = copied->nblocks - word * GH_BITS;
		uint32		own = left < GH_BITS ? ((uint32) 1 << left) - 1 : PG_UINT32_MAX;

		bits[word] = same ? map[word] & own & ~touches[word] : 0;
		count += pg_popcount32(bits[word]);
	}
	pfree(touches);
	pfree(map);
	if (all_visible != NULL)
		*all_visible = same ? visible : 0;
	return count;
}
