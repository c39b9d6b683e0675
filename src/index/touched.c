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
 * The lock guards who has which place, and LSNs.  Inserts and deletes set bits without it: they come when
 * recovery is over, and then no LSN counts any more.  What a maker leaves out it sets with the lock, in a
 * place that it still has, for it may do so in recovery.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "heap/map.h"
#include "index/index.h"
#include "index/places.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/resident_file.h"
#include "store/shared_copies.h"

GhTouched  *gh_touched = NULL;

/*
 * What this process knows of some indexes' places, as of a number of changes.  An index is known in one of a
 * few; its name is in the first of its places, also where it has none.
 */
#define GH_KNOWN 16
#define GH_KNOWN_WAYS 4

typedef struct Known
{
	uint64		changes;		/* 0: nothing */
	GhTouchedPlace places[GH_INDEX_PLACES];	/* of no blocks: there is none */
} Known;

static Known known[GH_KNOWN];

static Size
touched_size(void)
{
	return sizeof(GhTouched);
}

static void
touched_place(void *place, bool found)
{
	gh_touched = place;
	if (found)
		return;
	memset(gh_touched, 0, offsetof(GhTouched, words));
	LWLockInitialize(&gh_touched->lock, gh_store_area_tranche());
	pg_atomic_init_u64(&gh_touched->changes, 1);
	pg_atomic_init_u32(&gh_touched->ncopies, 0);
	for (uint32 i = 0; i < GH_TOUCHED_WORDS; i++)
		pg_atomic_init_u32(&gh_touched->words[i], 0);
}

void
gh_touched_init(void)
{
	if (process_shared_preload_libraries_in_progress)
		gh_service_add_memory("gpuhash touched blocks", touched_size, touched_place);
}

/* ------------------------------------------------------------------- places */

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
			const GhTouchedPlace *place = &gh_touched->places[i];
			uint32		end = place->first + gh_touched_all_words(place->nblocks, place->in_recovery);

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
free_place(GhTouchedPlace *place)
{
	memset(place, 0, sizeof(GhTouchedPlace));
	pg_atomic_fetch_sub_u32(&gh_touched->ncopies, 1);
	pg_atomic_fetch_add_u64(&gh_touched->changes, 1);
}

/* Those of the index in one place, but for the copy's of one generation.  With the lock, exclusively. */
static void
free_places(Relation index, int where, uint64 keep)
{
	for (int i = 0; i < GH_COPIES_MAX; i++)
	{
		GhTouchedPlace *place = &gh_touched->places[i];

		if (gh_touched_is_of(place, index) && place->where == where && place->generation != keep)
			free_place(place);
	}
}

/* An index that has as many places as it may have gives one up, wherever that copy is.  Likewise. */
static void
limit_places(Relation index, uint64 keep)
{
	GhTouchedPlace *oldest = NULL;
	int			n = 0;

	for (int i = 0; i < GH_COPIES_MAX; i++)
	{
		GhTouchedPlace *place = &gh_touched->places[i];

		if (!gh_touched_is_of(place, index))
			continue;
		n++;
		if (place->generation != keep && (oldest == NULL || place->generation < oldest->generation))
			oldest = place;
	}
	if (n >= GH_INDEX_PLACES)
		free_place(oldest);
}

/* Where what is known of the index is noted, or is to be: in the place of one no longer right, or of any. */
static Known *
find_known(Relation index)
{
	static uint32 next = 0;
	uint64		changes = pg_atomic_read_u64(&gh_touched->changes);
	uint32		first = gh_relation_number(index);
	Known	   *old = NULL;

	for (uint32 way = 0; way < GH_KNOWN_WAYS; way++)
	{
		Known	   *one = &known[(first + way) % GH_KNOWN];

		if (gh_touched_is_of(&one->places[0], index))
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
	mine->places[0] = (GhTouchedPlace)
	{
		MyDatabaseId, RelationGetRelid(index), index->rd_rel->reltablespace, gh_relation_number(index)
	};
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (gh_touched_is_of(&gh_touched->places[i], index))
		{
			Assert(n < GH_INDEX_PLACES);
			mine->places[n++] = gh_touched->places[i];
		}
}

/* The index's places, GH_INDEX_PLACES, as they are now, or were when this was called; NULL: it has none. */
static const GhTouchedPlace *
look_up(Relation index)
{
	Known	   *mine = find_known(index);

	if (mine->changes != pg_atomic_read_u64(&gh_touched->changes) || !gh_touched_is_of(&mine->places[0], index))
	{
		LWLockAcquire(&gh_touched->lock, LW_SHARED);
		mine->changes = pg_atomic_read_u64(&gh_touched->changes);
		read_places(index, mine);
		LWLockRelease(&gh_touched->lock);
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
	return gh_touched != NULL && !gh_old_snapshots_end() && (!RecoveryInProgress() || RelationNeedsWAL(heap)) &&
		index->rd_index->indisvalid && index->rd_indam->aminsert == gh_index_insert &&
		heap->rd_rel->relam == HEAP_TABLE_AM_OID && heap->rd_rel->relpersistence != RELPERSISTENCE_TEMP &&
		!is_new(index) && !is_new(heap);
}

/*
 * Frees the place of the copy that was begun before all others, but for one; false: there is none.  With the
 * lock.
 */
static bool
free_oldest(const GhTouchedPlace *but)
{
	GhTouchedPlace *oldest = NULL;

	for (int i = 0; i < GH_COPIES_MAX; i++)
	{
		GhTouchedPlace *place = &gh_touched->places[i];

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
static GhTouchedPlace *
find_room(uint32 nwords, uint32 *first, GhTouchedPlace *kept)
{
	GhTouchedPlace *place;

	if (kept != NULL && gh_touched_all_words(kept->nblocks, kept->in_recovery) > GH_TOUCHED_WORDS - nwords)
	{
		free_place(kept);
		kept = NULL;
	}
	do
	{
		place = NULL;
		for (int i = 0; i < GH_COPIES_MAX && place == NULL; i++)
			if (!OidIsValid(gh_touched->places[i].database))
				place = &gh_touched->places[i];
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
	XLogRecPtr *lsns = palloc0(Max(gh_touched_map_pages(nblocks), 1) * sizeof(XLogRecPtr));
	uint32	   *bits = palloc(Max(gh_touched_words(nblocks), 1) * sizeof(uint32));

	(void) gh_map_read_visible(heap, nblocks, bits, lsns);
	pfree(bits);
	return lsns;
}

/* With the lock, exclusively. */
static void
note_lsns(const GhTouchedPlace *place, const XLogRecPtr *lsns)
{
	for (uint32 page = 0; page < gh_touched_map_pages(place->nblocks); page++)
	{
		pg_atomic_uint32 *words = gh_touched_lsn(place, page);

		pg_atomic_write_u32(&words[0], (uint32) lsns[page]);
		pg_atomic_write_u32(&words[1], (uint32) (lsns[page] >> 32));
	}
}

bool
gh_copy_begin(Relation index, Relation heap, int where, uint64 keep, GhCopied *copied)
{
	const bool	in_recovery = RecoveryInProgress();
	XLogRecPtr *lsns = NULL;
	GhTouchedPlace *place;
	uint32		nwords;
	uint32		first;

	if (!gh_may_be_copied(index, heap))
		return false;
	/* blocks that come later are not the copy's */
	copied->nblocks = RelationGetNumberOfBlocks(heap);
	nwords = gh_touched_all_words(copied->nblocks, in_recovery);
	/* copies of others would go, for nothing */
	if (nwords > GH_TOUCHED_WORDS)
		return false;
	if (in_recovery)
		lsns = read_lsns(heap, copied->nblocks);
	Assert(TransactionIdIsValid(MyProc->xmin));
	LWLockAcquire(&gh_touched->lock, LW_EXCLUSIVE);
	free_places(index, where, keep);
	limit_places(index, keep);
	place = copied->nblocks > 0 ? find_room(nwords, &first, gh_touched_find(index, keep)) : NULL;
	if (place != NULL)
	{
		for (uint32 word = 0; word < gh_touched_words(copied->nblocks); word++)
			pg_atomic_write_u32(&gh_touched->words[first + word], 0);
		/* whoever sees the place, with the lock, sees its words empty */
		copied->generation = pg_atomic_fetch_add_u64(&gh_touched->changes, 1) + 1;
		*place = (GhTouchedPlace)
		{
			MyDatabaseId, RelationGetRelid(index), index->rd_rel->reltablespace, gh_relation_number(index),
				copied->generation, copied->nblocks, where, false, first, in_recovery
		};
		if (in_recovery)
			note_lsns(place, lsns);
		pg_atomic_fetch_add_u32(&gh_touched->ncopies, 1);
	}
	LWLockRelease(&gh_touched->lock);
	if (lsns != NULL)
		pfree(lsns);
	/* only then the leaf pages are read: pairs with that of any_copies */
	pg_memory_barrier();
	return place != NULL;
}

bool
gh_copy_publish(Relation index, const GhCopied *copied)
{
	GhTouchedPlace *place;

	LWLockAcquire(&gh_touched->lock, LW_EXCLUSIVE);
	place = gh_touched_find(index, copied->generation);
	if (place != NULL)
	{
		free_places(index, place->where, copied->generation);
		place->published = true;
	}
	LWLockRelease(&gh_touched->lock);
	return place != NULL;
}

bool
gh_copy_look_up(Relation index, int where, GhCopied *copied)
{
	bool		found = false;

	if (gh_touched == NULL || pg_atomic_read_u32(&gh_touched->ncopies) == 0)
		return false;
	LWLockAcquire(&gh_touched->lock, LW_SHARED);
	for (int i = 0; i < GH_COPIES_MAX && !found; i++)
	{
		const GhTouchedPlace *place = &gh_touched->places[i];

		found = place->published && place->where == where && gh_touched_is_of(place, index);
		if (found)
			*copied = (GhCopied) {place->generation, place->nblocks};
	}
	LWLockRelease(&gh_touched->lock);
	return found;
}

void
gh_copy_note_empty(Relation index, const GhCopied *copied, const GhBlockRuns *runs)
{
	GhTouchedPlace *place;

	LWLockAcquire(&gh_touched->lock, LW_EXCLUSIVE);
	place = gh_touched_find(index, copied->generation);
	if (place != NULL)
	{
		place->empty = *runs;
		/* those who know the place as it was ask again */
		pg_atomic_fetch_add_u64(&gh_touched->changes, 1);
	}
	LWLockRelease(&gh_touched->lock);
}

void
gh_copy_end(const GhCopied *copied)
{
	/* none was begun */
	if (gh_touched == NULL || copied->generation == 0)
		return;
	LWLockAcquire(&gh_touched->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (OidIsValid(gh_touched->places[i].database) && gh_touched->places[i].generation == copied->generation)
			free_place(&gh_touched->places[i]);
	LWLockRelease(&gh_touched->lock);
}

void
gh_copies_end(Relation index)
{
	if (gh_touched == NULL)
		return;
	LWLockAcquire(&gh_touched->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_COPIES_MAX; i++)
		if (gh_touched_is_of(&gh_touched->places[i], index))
			free_place(&gh_touched->places[i]);
	LWLockRelease(&gh_touched->lock);
}

/* ------------------------------------------------------------------- touching */

/*
 * Whether there is anything to note.  What was done to the index before is seen by a copy that is begun
 * after we have looked: pairs with the barrier of gh_copy_begin.
 */
static bool
any_copies(void)
{
	if (gh_touched == NULL)
		return false;
	pg_memory_barrier();
	return pg_atomic_read_u32(&gh_touched->ncopies) > 0;
}

static inline void
touch(const GhTouchedPlace *place, BlockNumber block)
{
	pg_atomic_uint32 *word = &gh_touched->words[place->first + block / GH_BITS];
	uint32		bit = (uint32) 1 << block % GH_BITS;

	if ((pg_atomic_read_u32(word) & bit) == 0)
		pg_atomic_fetch_or_u32(word, bit);
}

void
gh_touch_inserted(Relation index, BlockNumber block)
{
	const GhTouchedPlace *places;

	if (!any_copies() || gh_fault_leaves_out(GH_FAULT_POINT_INDEX_INSERTED))
		return;
	places = look_up(index);
	if (places == NULL)
		return;
	for (int i = 0; i < GH_INDEX_PLACES && places[i].nblocks > 0; i++)
		if (block < places[i].nblocks)
			touch(&places[i], block);
}

/* Of such a block the copy has no entries, so that it is wrong only once one is made. */
static bool
was_empty(const GhTouchedPlace *place, BlockNumber block)
{
	for (uint32 i = 0; i < place->empty.n; i++)
		if (block - place->empty.runs[i].first < place->empty.runs[i].count)
			return true;
	return false;
}

void
gh_copy_leave_out(Relation index, const GhCopied *copied, const uint32 *bits)
{
	const GhTouchedPlace *place;

	if (gh_fault_leaves_out(GH_FAULT_POINT_INDEX_BEGIN))
		return;
	/* without it the words may become another one's, which has LSNs there */
	LWLockAcquire(&gh_touched->lock, LW_SHARED);
	place = gh_touched_find(index, copied->generation);
	for (BlockNumber block = 0; place != NULL && block < copied->nblocks; block++)
		if ((bits[block / GH_BITS] >> block % GH_BITS & 1) == 0 && !was_empty(place, block))
			touch(place, block);
	LWLockRelease(&gh_touched->lock);
}

/* Blocks that the visibility map does not have as all-visible, and that had rows when the copy was begun. */
static void
touch_removed(Relation heap, const GhTouchedPlace *place, GhMapPage *map)
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
	const GhTouchedPlace *found;
	GhTouchedPlace places[GH_INDEX_PLACES];
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
