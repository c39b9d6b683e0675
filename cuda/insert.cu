/*
 * insert.cu
 *		Placing entries: the insert path.
 *
 * The callers give keys that are distinct and not in the table, so no thread
 * ever needs to know about another's key.  What is left is to share the slots:
 *
 *	place_kernel	a key goes to the one of its two buckets that theorem 1 of the
 *			paper picks, or else to the other.  A slot is taken by changing its key
 *			word from SLOT_EMPTY to the key, one 64-bit compare-and-swap.  Nothing
 *			is moved and no slot is emptied, so nothing else is needed.
 *	relocate_kernel	for the few that found both buckets full: a random walk
 *			along victims and their other buckets finds a free slot, and the
 *			entries on the way move up by one, last first.
 *
 * Moving, in relocate_kernel alone.  A thread owns a slot from its
 * compare-and-swap to SLOT_BUSY until it stores another key word there, and only
 * the owner touches the slot's value.  To move an entry it owns both ends: the
 * free slot first, then the entry's.  The value is copied, the key word is
 * stored with release order behind it, and the slot left behind becomes the
 * free one of the next move.  If an entry is not where the walk saw it, the
 * free slot is given back and a new walk begins.  So every entry is at every
 * moment in a slot or in the hands of the one thread that moves it, and is
 * never dropped; and no thread ever waits for another, so there is neither
 * deadlock nor, attempts being bounded, livelock.
 *
 * Keys that stay without a slot are listed, and the host doubles a subtable and
 * tries again with just those.
 */
#include "probe.cuh"
#include "table.h"

/* Walks: at the highest filled factor, 0.95, about one bucket in four has room. */
#define WALK_STEPS 8
#define WALK_ATTEMPTS 16
/* Launches before the table is said to be too full: failures may be contention. */
#define RELOCATE_ROUNDS 3

/* Entries to insert: positions into two arrays. */
struct entry_list
{
	const uint64_t *keys;
	const uint64_t *values;		/* NULL in a set */
	const uint32_t *positions;	/* NULL: 0 to count - 1 */
	uint32_t	count;
};

struct walk_step
{
	uint64_t   *slot;
	uint64_t	key;			/* seen there */
	uint32_t	sub;
};

static __device__ __forceinline__ uint32_t
list_position(const entry_list &list, uint64_t i)
{
	return list.positions == nullptr ? (uint32_t) i : list.positions[i];
}

/* Takes a free slot of the bucket for the key, or returns NULL. */
static __device__ __forceinline__ uint64_t *
bucket_take(uint64_t *bucket, uint64_t key)
{
	/*
	 * One look at each slot is enough: slots are only ever filled in this
	 * kernel, so one that was not free, or was lost to another thread, stays so.
	 */
	for (int i = 0; i < BUCKET_SLOTS; i += 2)
	{
		word_pair	pair = load_pair_relaxed(bucket + i);

		if (pair.x == SLOT_EMPTY &&
			compare_and_swap(bucket + i, SLOT_EMPTY, key) == SLOT_EMPTY)
			return bucket + i;
		if (pair.y == SLOT_EMPTY &&
			compare_and_swap(bucket + i + 1, SLOT_EMPTY, key) == SLOT_EMPTY)
			return bucket + i + 1;
	}
	return nullptr;
}

/* Places the key without moving any other; false when both buckets are full. */
static __device__ __forceinline__ bool
place_entry(const table_view &view, const steering_view &steering, uint64_t key,
			uint64_t value, block_gains &gains)
{
	uint64_t   *slot;
	uint32_t	sub = 0;

	if (key_is_special(key))
	{
		slot = side_slot(view, key);
		*slot = SIDE_PRESENT;
	}
	else
	{
		uint64_t	hash = hash_key(view.seed, key);
		uint32_t	index = hash_pair_index(hash, view.pairs);
		subtable_pair pair = hash_pair(index);
		bool		first = hash_steering_bits(hash) < steering.bound[index];

		sub = first ? pair.a : pair.b;
		slot = bucket_take(bucket_at(view, sub, hash), key);
		if (slot == nullptr)
		{
			sub = first ? pair.b : pair.a;
			slot = bucket_take(bucket_at(view, sub, hash), key);
		}
		if (slot == nullptr)
			return false;
	}
	/* nobody reads the value before the next kernel */
	if (view.bucket_words > BUCKET_SLOTS)
		slot[BUCKET_SLOTS] = value;
	gains.add(sub, 1);
	return true;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
place_kernel(table_view view, steering_view steering, entry_list list, uint32_t *overflow,
			 counters *counts)
{
	__shared__ int shared[GH_SUBTABLES_MAX];
	block_gains gains;
	uint64_t	i = ELEMENT;

	gains.begin(shared);
	if (i < list.count)
	{
		uint32_t	position = list_position(list, i);
		uint64_t	value = list.values == nullptr ? 0 : list.values[position];

		if (!place_entry(view, steering, list.keys[position], value, gains))
			overflow[append_index(&counts->overflow)] = position;
	}
	gains.end(counts);
}

/* Becomes the owner of a free slot of the bucket, or returns NULL. */
static __device__ uint64_t *
bucket_reserve(uint64_t *bucket)
{
	for (int i = 0; i < BUCKET_SLOTS; i++)
		if (load_relaxed(bucket + i) == SLOT_EMPTY &&
			compare_and_swap(bucket + i, SLOT_EMPTY, SLOT_BUSY) == SLOT_EMPTY)
		{
			/* the last owner's accesses to the value come before ours */
			__threadfence();
			return bucket + i;
		}
	return nullptr;
}

/* An entry of the bucket to move, the first at or after a random slot. */
static __device__ uint64_t *
bucket_victim(uint64_t *bucket, uint32_t from, uint64_t *key)
{
	for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
	{
		uint64_t   *slot = bucket + (from + i) % BUCKET_SLOTS;

		*key = load_relaxed(slot);
		if (!key_is_special(*key))
			return slot;
	}
	return nullptr;
}

/*
 * Walks from a full bucket of subtable sub along random entries to their other
 * buckets until one has a free slot, which this thread then owns: its place is
 * in *hole and its subtable in *hole_sub, and the entries on the way are in path.
 * Returns their number, 0 when the walk did not get there.
 */
static __device__ uint32_t
walk_to_hole(const table_view &view, uint64_t *bucket, uint32_t sub, uint64_t random,
			 walk_step *path, uint64_t **hole, uint32_t *hole_sub)
{
	for (uint32_t depth = 0; depth < WALK_STEPS; depth++)
	{
		walk_step  *step = &path[depth];

		random = mix64(random + GOLDEN_RATIO);
		step->slot = bucket_victim(bucket, (uint32_t) random, &step->key);
		if (step->slot == nullptr)
			return 0;			/* all slots are busy or were freed: look again */
		step->sub = sub;

		uint64_t	hash = hash_key(view.seed, step->key);
		subtable_pair pair = hash_pair(hash_pair_index(hash, view.pairs));

		sub = sub == pair.a ? pair.b : pair.a;
		bucket = bucket_at(view, sub, hash);
		*hole = bucket_reserve(bucket);
		*hole_sub = sub;
		if (*hole != nullptr)
			return depth + 1;
	}
	return 0;
}

/*
 * Notes a move, while the thread owns both ends: so the journal's order is the
 * order in which any slot changed.  False when the journal is full; then the move
 * must not be made.
 */
static __device__ bool
journal_note(const move_journal &journal, uint64_t *from, uint64_t *to)
{
	uint32_t	index;

	if (journal.moves == nullptr)
		return true;
	index = atomicAdd(journal.used, 1u);
	if (index >= journal.room)
		return false;
	journal.moves[index] = {from, to};
	return true;
}

/*
 * Moves the entries of a walk up by one, the last first, so that the hole comes
 * to where the walk began.  False when one was gone; the hole is given back then,
 * and the moves made so far stand, for they are moves like any other.
 */
static __device__ bool
walk_back(const table_view &view, const walk_step *path, uint32_t depth, uint64_t **hole,
		  uint32_t *hole_sub, const move_journal &journal, block_gains &gains)
{
	while (depth-- > 0)
	{
		const walk_step *step = &path[depth];

		if (compare_and_swap(step->slot, step->key, SLOT_BUSY) != step->key)
		{
			store_release(*hole, SLOT_EMPTY);
			return false;
		}
		/* pairs with the release store that published the key: its value is seen */
		__threadfence();
		if (!journal_note(journal, step->slot, *hole))
		{
			store_release(step->slot, step->key);
			store_release(*hole, SLOT_EMPTY);
			return false;
		}
		if (view.bucket_words > BUCKET_SLOTS)
			store_relaxed(*hole + BUCKET_SLOTS, load_relaxed(step->slot + BUCKET_SLOTS));
		/* the value first, then the key: who owns the slot next moves both */
		store_release(*hole, step->key);
		gains.add(*hole_sub, 1);
		gains.add(step->sub, -1);
		*hole = step->slot;
		*hole_sub = step->sub;
	}
	return true;
}

/* Places the key, moving others out of the way; false when that did not work out. */
static __device__ bool
relocate_entry(const table_view &view, uint64_t key, uint64_t value,
			   const move_journal &journal, block_gains &gains)
{
	walk_step	path[WALK_STEPS];
	uint64_t	hash = hash_key(view.seed, key);
	subtable_pair pair = hash_pair(hash_pair_index(hash, view.pairs));
	uint64_t	random = hash ^ clock64();

	for (uint32_t attempt = 0; attempt < WALK_ATTEMPTS; attempt++)
	{
		uint32_t	sub = (hash + attempt) % 2 == 0 ? pair.a : pair.b;
		uint64_t   *bucket = bucket_at(view, sub, hash);
		uint64_t   *hole = bucket_reserve(bucket);

		if (hole == nullptr)
		{
			uint32_t	hole_sub;
			uint32_t	depth;

			random = mix64(random + attempt);
			depth = walk_to_hole(view, bucket, sub, random, path, &hole, &hole_sub);
			if (depth == 0 ||
				!walk_back(view, path, depth, &hole, &hole_sub, journal, gains))
				continue;
		}
		if (!journal_note(journal, nullptr, hole))
		{
			store_release(hole, SLOT_EMPTY);
			return false;
		}
		if (view.bucket_words > BUCKET_SLOTS)
			store_relaxed(hole + BUCKET_SLOTS, value);
		store_release(hole, key);
		gains.add(sub, 1);
		return true;
	}
	return false;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
relocate_kernel(table_view view, entry_list list, move_journal journal, uint32_t *overflow,
				counters *counts)
{
	__shared__ int shared[GH_SUBTABLES_MAX];
	block_gains gains;
	uint64_t	i = ELEMENT;

	gains.begin(shared);
	if (i < list.count)
	{
		uint32_t	position = list_position(list, i);
		uint64_t	value = list.values == nullptr ? 0 : list.values[position];

		if (!relocate_entry(view, list.keys[position], value, journal, gains))
			overflow[append_index(&counts->overflow)] = position;
	}
	gains.end(counts);
}

/* Takes listed keys out again, those that are there. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
remove_kernel(table_view view, entry_list list, counters *counts)
{
	__shared__ int shared[GH_SUBTABLES_MAX];
	block_gains gains;
	uint64_t	i = ELEMENT;

	gains.begin(shared);
	if (i < list.count)
	{
		entry_place place = table_find(view, list.keys[list_position(list, i)]);

		if (place.slot != nullptr)
		{
			*place.slot = SLOT_EMPTY;
			gains.add(place.sub, -1);
		}
	}
	gains.end(counts);
}

/*
 * Undoes the journal's moves, the last first, in one thread: each finds its
 * target as the move left it and its source empty.
 */
static __global__ void
undo_kernel(move_journal journal, uint32_t bucket_words)
{
	uint32_t	moves = *journal.used < journal.room ? *journal.used : journal.room;

	while (moves-- > 0)
	{
		move_record move = journal.moves[moves];

		if (move.from != nullptr)
		{
			if (bucket_words > BUCKET_SLOTS)
				move.from[BUCKET_SLOTS] = move.to[BUCKET_SLOTS];
			*move.from = *move.to;
		}
		*move.to = SLOT_EMPTY;
	}
}

/* Takes over what kernels counted; counts below zero wrap and come out right. */
void
subtables_add_gains(cuda_table *table, const counters *count)
{
	for (uint32_t i = 0; i < table->options.subtables; i++)
		table->sub[i].entries += count->gained[i];
}

/*
 * Relocates for what a list holds, up to RELOCATE_ROUNDS times.  list->count is
 * what is left in the end, and list->positions is then one of the two spare lists.
 */
static GhStatus
relocate_rounds(cuda_table *table, entry_list *list, uint32_t *const *spare,
				const move_journal *journal, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	for (int round = 0; round < RELOCATE_ROUNDS && list->count > 0; round++)
	{
		uint32_t   *overflow = list->positions == spare[0] ? spare[1] : spare[0];

		GH_TRY(lane_count_reset(table, lane, error));
		relocate_kernel<<<blocks_for(list->count), BLOCK_THREADS, 0, lane->stream>>>(
			table_make_view(table), *list, *journal, overflow, lane->device_count);
		LAUNCH_TRY(table, error);
		GH_TRY(lane_count_read(table, lane, error));
		subtables_add_gains(table, lane->host_count);
		list->positions = overflow;
		list->count = lane->host_count->overflow;
	}
	return GH_OK;
}

/*
 * Inserts the batch's absent keys with the values in batch->entries, doubling
 * subtables where the keys cannot be placed.  After an error some are in the
 * table and some are not: entries_remove takes them out.
 */
GhStatus
entries_insert(cuda_table *table, const batch_view *batch, uint32_t absent, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	move_journal none = {};
	entry_list	list = {batch->keys, table->has_values ? batch->entries : nullptr,
		batch->absent, absent};

	GH_TRY(lane_count_reset(table, lane, error));
	place_kernel<<<blocks_for(absent), BLOCK_THREADS, 0, lane->stream>>>(
		table_make_view(table), table_make_steering(table), list, batch->overflow[0],
		lane->device_count);
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	list.positions = batch->overflow[0];
	list.count = lane->host_count->overflow;

	for (;;)
	{
		GH_TRY(relocate_rounds(table, &list, batch->overflow, &none, error));
		if (list.count == 0)
			return GH_OK;
		/* too full for these keys, by chance, below fill_max: grow early */
		GH_TRY(table_upsize(table, error));
	}
}

/* Takes the batch's absent keys out again, after entries_insert failed. */
GhStatus
entries_remove(cuda_table *table, const batch_view *batch, uint32_t absent, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {batch->keys, nullptr, batch->absent, absent};

	GH_TRY(lane_count_reset(table, lane, error));
	remove_kernel<<<blocks_for(absent), BLOCK_THREADS, 0, lane->stream>>>(
		table_make_view(table), list, lane->device_count);
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	return GH_OK;
}

/*
 * Inserts *left residuals of a halved subtable by relocation, noting every move
 * in the journal; *left is then the number that could not be placed.  lists: two
 * spare lists of that many positions.
 */
GhStatus
residuals_insert(cuda_table *table, const uint64_t *keys, const uint64_t *values,
				 uint32_t *const *lists, uint32_t *left, const move_journal *journal,
				 GhError *error)
{
	entry_list	list = {keys, values, nullptr, *left};

	GH_TRY(relocate_rounds(table, &list, lists, journal, error));
	*left = list.count;
	return GH_OK;
}

/* Makes every slot what it was before residuals_insert; counts are the caller's. */
GhStatus
residuals_undo(cuda_table *table, const move_journal *journal, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	undo_kernel<<<1, 1, 0, lane->stream>>>(*journal, table_make_view(table).bucket_words);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	return GH_OK;
}
