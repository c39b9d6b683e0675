/*
 * relocate.cu
 *		Placing keys whose two buckets are full, by moving others.
 *
 * The callers give keys that are distinct and not in the table, so no thread
 * ever needs to know about another's key.  Two kernels try one after the other:
 *
 * search_kernel has a warp for each key.  It looks for the nearest free slot:
 * first in the other buckets of the entries in the key's two buckets, each of
 * which one lane reads, then in those of the entries there.  One lane then makes the
 * one or two moves.
 *
 * walk_kernel takes what is left, a thread a key.  A random walk along victims
 * and their other buckets finds a free slot.
 *
 * In both the entries on the way move up by one, last first.  A thread owns a slot from its compare-and-swap to BUSY until it stores
 * another word there, and only the owner touches the slot's value.  To move an
 * entry it owns both ends: the free slot first, then the entry's.  The value is
 * copied, the word is stored with release order behind it, and the slot left
 * behind becomes the free one of the next move.  If an entry is not where the
 * walk saw it, the free slot is given back and a new walk begins.  So every entry
 * is at every moment in a slot or in the hands of the one thread that moves
 * it, and is never dropped; and no thread ever waits for another, so there is
 * neither deadlock nor, attempts being bounded, livelock.
 *
 * A slot that is given back is FREED, never EMPTY: its bucket may have been full.
 *
 * Keys that stay without a slot are listed, and the host doubles a subtable and
 * tries again with just those.
 */
#include "probe.cuh"
#include "table.h"

/* Walks: at the highest filled factor about one bucket in six has room. */
#define WALK_STEPS 16
#define WALK_ATTEMPTS 16
/* Launches of walk_kernel before the table is said to be too full: failures may be
 * contention. */
#define WALK_ROUNDS 3

/* A slot that the thread owns, or means to. */
template <typename L> struct owned_slot
{
	typename L::word_type *slot;
	typename L::word_type word; /* seen there */
	uint32_t	sub;
};

/* Becomes the owner of a free slot of the bucket, or returns NULL. */
template <typename L> static __device__ typename L::word_type *
bucket_reserve(char *bucket)
{
	typedef typename L::word_type word_type;
	word_type	held[L::slots];

	/* all loads first: they travel together */
#pragma unroll
	for (uint32_t i = 0; i < L::slots; i++)
		held[i] = load_relaxed(bucket_slot<L>(bucket, i));
#pragma unroll
	for (uint32_t i = 0; i < L::slots; i++)
		if ((held[i] == L::empty_word || held[i] == L::freed_word) &&
			compare_and_swap(bucket_slot<L>(bucket, i), held[i], L::busy_word) == held[i])
		{
			/* the last owner's accesses to the value come before ours */
			__threadfence();
			return bucket_slot<L>(bucket, i);
		}
	return nullptr;
}

/* An entry of the bucket to move, the first at or after a random slot. */
template <typename L> static __device__ bool
bucket_victim(char *bucket, uint32_t from, owned_slot<L> *victim)
{
	for (uint32_t i = 0; i < L::slots; i++)
	{
		victim->slot = bucket_slot<L>(bucket, (from + i) % L::slots);
		victim->word = load_relaxed(victim->slot);
		if (!L::special(L::key_of(victim->word)))
			return true;
	}
	return false;
}

/*
 * Walks from a full bucket of subtable sub along random entries to their other
 * buckets until one has a free slot, which this thread then owns: *hole; the
 * entries on the way are in path.  Returns their number, 0 when the walk did not
 * get there.
 */
template <typename L> static __device__ uint32_t
walk_to_hole(const table_view &view, char *bucket, uint32_t sub, uint64_t random,
			 owned_slot<L> *path, owned_slot<L> *hole)
{
	for (uint32_t depth = 0; depth < WALK_STEPS; depth++)
	{
		owned_slot<L> *step = &path[depth];
		candidates	candidate;
		uint32_t	other;

		random = mix64(random + GOLDEN_RATIO);
		if (!bucket_victim<L>(bucket, (uint32_t) random, step))
			return 0;			/* all slots are busy or were freed: look again */
		step->sub = sub;
		candidate = key_candidates(view, hash_key(view.seed, L::key_of(step->word)));
		other = candidate.sub[0] == sub ? 1 : 0;
		sub = candidate.sub[other];
		bucket = candidate.bucket[other];
		hole->slot = bucket_reserve<L>(bucket);
		hole->sub = sub;
		if (hole->slot != nullptr)
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
journal_note(const move_journal &journal, const move_record &move)
{
	uint32_t	index;

	if (journal.moves == nullptr)
		return true;
	index = atomicAdd(journal.used, 1u);
	if (index >= journal.room)
		return false;
	journal.moves[index] = move;
	return true;
}

/* Where a slot's value is when it does not travel in the word; NULL: nowhere. */
template <typename L> static __device__ __forceinline__ char *
loose_value(const table_view &view, const owned_slot<L> &place)
{
	if (L::packed || view.value_size == 0)
		return nullptr;
	return slot_value<L>(view, place.sub, place.slot);
}

/* Entries that subtables gain and lose by one thread's moves. */
static __device__ __forceinline__ void
count_move(uint32_t *shared, uint32_t to, uint32_t from)
{
	atomicAdd(&shared[to], 1u);
	atomicSub(&shared[from], 1u);
}

/*
 * Moves the entries of a walk up by one, the last first, so that the hole comes
 * to where the walk began.  False when one was gone; the hole is given back then,
 * and the moves made so far stand, for they are moves like any other.
 */
template <typename L> static __device__ bool
walk_back(const table_view &view, const owned_slot<L> *path, uint32_t depth,
		  owned_slot<L> *hole, const move_journal &journal, uint32_t *gained)
{
	while (depth-- > 0)
	{
		const owned_slot<L> *step = &path[depth];
		move_record move = {step->slot, hole->slot, loose_value<L>(view, *step),
			loose_value<L>(view, *hole)};

		if (compare_and_swap(step->slot, step->word, L::busy_word) != step->word)
		{
			store_release(hole->slot, L::freed_word);
			return false;
		}
		/* pairs with the release store that published the word: its value is seen */
		__threadfence();
		if (!journal_note(journal, move))
		{
			store_release(step->slot, step->word);
			store_release(hole->slot, L::freed_word);
			return false;
		}
		if (move.to_value != nullptr)
			value_copy(static_cast<char *>(move.to_value),
					   static_cast<const char *>(move.from_value), view.value_size);
		/* the value first, then the word: who owns the slot next moves both */
		store_release(hole->slot, step->word);
		count_move(gained, hole->sub, step->sub);
		hole->slot = step->slot;
		hole->sub = step->sub;
	}
	return true;
}

/* A key to be placed, and its value. */
template <typename L> struct new_entry
{
	typename L::key_type key;
	const char *value;			/* NULL: the word is all there is */
	uint64_t	word;			/* the value as a word */
};

template <typename L> static __device__ __forceinline__ new_entry<L>
list_entry(const table_view &view, const entry_list &list, uint32_t position)
{
	new_entry<L> entry = {list_key<L>(list, position), nullptr, position};

	if (list.values != nullptr)
		entry.value = list.values + (uint64_t) position * view.value_size;
	if (L::together && list.values != nullptr)
		entry.word = value_word(entry.value, view.value_size);
	return entry;
}

/* Stores a new entry in a slot that the thread owns; false when it may not. */
template <typename L> static __device__ bool
fill_hole(const table_view &view, const owned_slot<L> &hole, const new_entry<L> &entry,
		  const move_journal &journal)
{
	move_record move = {nullptr, hole.slot, nullptr, nullptr};
	char	   *to = loose_value<L>(view, hole);

	if (!journal_note(journal, move))
	{
		store_release(hole.slot, L::freed_word);
		return false;
	}
	if (to != nullptr && entry.value != nullptr)
		value_copy(to, entry.value, view.value_size);
	else if (to != nullptr)
		value_from_word(to, entry.word, view.value_size);
	store_release(hole.slot, L::make_word(entry.key, entry.word));
	return true;
}

/* Places the key, moving others out of the way; false when that did not work out. */
template <typename L> static __device__ bool
relocate_entry(const table_view &view, const new_entry<L> &entry,
			   const move_journal &journal, uint32_t *gained)
{
	owned_slot<L> path[WALK_STEPS];
	owned_slot<L> hole;
	uint64_t	hash = hash_key(view.seed, entry.key);
	candidates	candidate = key_candidates(view, hash);
	uint64_t	random = hash ^ (uint64_t) clock64();

	for (uint32_t attempt = 0; attempt < WALK_ATTEMPTS; attempt++)
	{
		/* the preferred bucket first: only when it is full may the key go elsewhere */
		for (int which = 0; which < 2; which++)
		{
			hole.slot = bucket_reserve<L>(candidate.bucket[which]);
			hole.sub = candidate.sub[which];
			if (hole.slot != nullptr)
				break;
		}
		if (hole.slot == nullptr)
		{
			uint32_t	which = (uint32_t) (hash + attempt) % 2;
			uint32_t	depth;

			random = mix64(random + attempt);
			depth = walk_to_hole<L>(view, candidate.bucket[which], candidate.sub[which],
									random, path, &hole);
			if (depth == 0 || !walk_back<L>(view, path, depth, &hole, journal, gained))
				continue;
		}
		if (!fill_hole<L>(view, hole, entry, journal))
			return false;
		atomicAdd(&gained[hole.sub], 1u);
		return true;
	}
	return false;
}

/* Entries that subtables gain by a block's moves, in shared memory. */
static __device__ __forceinline__ void
gains_begin(uint32_t *gained)
{
	if (threadIdx.x < GH_SUBTABLES_MAX)
		gained[threadIdx.x] = 0;
	__syncthreads();			/* nobody counts before the zeroes are there */
}

static __device__ __forceinline__ void
gains_end(const uint32_t *gained, counters *counts)
{
	__syncthreads();			/* all have counted */
	if (threadIdx.x < GH_SUBTABLES_MAX && gained[threadIdx.x] != 0)
		add_relaxed(&counts->gained[threadIdx.x],
					(uint64_t) (int64_t) (int32_t) gained[threadIdx.x]);
}

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
walk_kernel(const __grid_constant__ table_view view, entry_list list,
			move_journal journal, uint8_t *flags, uint32_t *overflow, counters *counts)
{
	__shared__ uint32_t gained[GH_SUBTABLES_MAX];
	uint64_t	i = ELEMENT;

	gains_begin(gained);
	if (i < list.count)
	{
		uint32_t	position = list_position(list, i);

		if (!relocate_entry<L>(view, list_entry<L>(view, list, position), journal, gained))
			overflow[append_index(&counts->overflow)] = position;
		else if (flags != nullptr)
			flags[position] = 1;
	}
	gains_end(gained, counts);
}

/* -------------------------------------------------------- the nearest free slot */

/* Tries before the key is left to walk_kernel. */
#define SEARCH_ATTEMPTS 4

/* The other bucket of an entry that is in that one; NULL for a slot that is not used. */
template <typename L> static __device__ __forceinline__ char *
other_bucket(const table_view &view, const char *bucket, typename L::word_type word,
			 uint32_t *sub)
{
	candidates	candidate;
	uint32_t	other;

	if (L::special(L::key_of(word)))
		return nullptr;
	candidate = key_candidates(view, hash_key(view.seed, L::key_of(word)));
	other = candidate.bucket[0] == bucket ? 1 : 0;
	*sub = candidate.sub[other];
	return candidate.bucket[other];
}

/* Has the bucket, if it is one, a free slot? */
template <typename L> static __device__ __forceinline__ bool
bucket_has_room(char *bucket)
{
	bool		room = false;

	if (bucket == nullptr)
		return false;
#pragma unroll
	for (int part = 0; part < TILE_LANES; part++)
	{
		fragment	read = load_fragment(bucket + part * 16);

#pragma unroll
		for (int s = 0; s < L::lane_slots; s++)
			room |= L::fragment_key(read, s) == L::empty_key ||
				L::fragment_key(read, s) == L::freed_key;
	}
	return room;
}

/* What a lane of a searching warp has looked at. */
template <typename L> struct search_node
{
	owned_slot<L> victim;
	char	   *bucket;			/* its other bucket; NULL: none */
	uint32_t	sub;			/* of that */
	bool		room;
};

template <typename L> static __device__ __forceinline__ search_node<L>
search_slot(const table_view &view, char *bucket, uint32_t sub, uint32_t slot)
{
	search_node<L> node = {{nullptr, 0, sub}, nullptr, 0, false};

	if (bucket == nullptr)
		return node;
	node.victim.slot = bucket_slot<L>(bucket, slot);
	node.victim.word = load_relaxed(node.victim.slot);
	node.bucket = other_bucket<L>(view, bucket, node.victim.word, &node.sub);
	node.room = bucket_has_room<L>(node.bucket);
	return node;
}

template <typename T> static __device__ __forceinline__ T *
shuffle_pointer(T *pointer, uint32_t lane)
{
	return reinterpret_cast<T *>(__shfl_sync(
		ALL_LANES, reinterpret_cast<unsigned long long>(pointer), (int) lane));
}

template <typename L> static __device__ __forceinline__ owned_slot<L>
shuffle_slot(const owned_slot<L> &place, uint32_t lane)
{
	return {shuffle_pointer(place.slot, lane),
		__shfl_sync(ALL_LANES, place.word, (int) lane),
		__shfl_sync(ALL_LANES, place.sub, (int) lane)};
}

/*
 * Finds a way from one of the key's buckets to a bucket with room: the entries to be
 * moved, in path, and the bucket, in *target with its subtable.  Returns the number
 * of entries, 0 when there is none so near.  All lanes of the warp come here and
 * get the same answer.
 */
template <typename L> static __device__ uint32_t
search_way(const table_view &view, const candidates &candidate, owned_slot<L> *path,
		   char **target, uint32_t *sub)
{
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	which = lane / L::slots % 2;
	bool		inside = lane < 2 * L::slots;
	search_node<L> first = search_slot<L>(view, inside ? candidate.bucket[which] : nullptr,
										  candidate.sub[which], lane % L::slots);
	uint32_t	found = __ballot_sync(ALL_LANES, first.room);

	if (found != 0)
	{
		uint32_t	chosen = (uint32_t) __ffs((int) found) - 1;

		path[0] = shuffle_slot<L>(first.victim, chosen);
		*target = shuffle_pointer(first.bucket, chosen);
		*sub = __shfl_sync(ALL_LANES, first.sub, (int) chosen);
		return 1;
	}
	for (uint32_t node = 0; node < 2 * L::slots * L::slots; node += 32)
	{
		uint32_t	parent = (node + lane) / L::slots % 32;
		char	   *bucket = shuffle_pointer(first.bucket, parent);
		uint32_t	parent_sub = __shfl_sync(ALL_LANES, first.sub, (int) parent);
		search_node<L> second = search_slot<L>(view, bucket, parent_sub, lane % L::slots);

		found = __ballot_sync(ALL_LANES, second.room);
		if (found != 0)
		{
			uint32_t	chosen = (uint32_t) __ffs((int) found) - 1;

			path[0] = shuffle_slot<L>(first.victim, __shfl_sync(ALL_LANES, parent,
																(int) chosen));
			path[1] = shuffle_slot<L>(second.victim, chosen);
			*target = shuffle_pointer(second.bucket, chosen);
			*sub = __shfl_sync(ALL_LANES, second.sub, (int) chosen);
			return 2;
		}
	}
	return 0;
}

/*
 * One try to place the key; one lane of the warp does this.  depth and path are the
 * way that was found, to that bucket.
 */
template <typename L> static __device__ bool
take_way(const table_view &view, const new_entry<L> &entry, const candidates &candidate,
		 const owned_slot<L> *path, uint32_t depth, char *target, uint32_t target_sub,
		 const move_journal &journal, uint32_t *gained)
{
	owned_slot<L> hole = {nullptr, 0, 0};

	/* a slot may be free by now; only when the preferred bucket is full may the key go
	 * elsewhere */
	for (int which = 0; which < 2 && hole.slot == nullptr; which++)
	{
		hole.slot = bucket_reserve<L>(candidate.bucket[which]);
		hole.sub = candidate.sub[which];
	}
	if (hole.slot == nullptr)
	{
		if (depth == 0)
			return false;
		hole.slot = bucket_reserve<L>(target);
		hole.sub = target_sub;
		if (hole.slot == nullptr ||
			!walk_back<L>(view, path, depth, &hole, journal, gained))
			return false;
	}
	if (!fill_hole<L>(view, hole, entry, journal))
		return false;
	atomicAdd(&gained[hole.sub], 1u);
	return true;
}

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
search_kernel(const __grid_constant__ table_view view, entry_list list,
			  move_journal journal, uint8_t *flags, uint32_t *overflow, counters *counts)
{
	__shared__ uint32_t gained[GH_SUBTABLES_MAX];
	uint64_t	i = ELEMENT / 32;
	bool		done = false;

	gains_begin(gained);
	if (i < list.count)
	{
		uint32_t	position = list_position(list, i);
		new_entry<L> entry = list_entry<L>(view, list, position);
		candidates	candidate = key_candidates(view, hash_key(view.seed, entry.key));

		for (int attempt = 0; attempt < SEARCH_ATTEMPTS && !done; attempt++)
		{
			owned_slot<L> path[2];
			char	   *target = nullptr;
			uint32_t	sub = 0;
			uint32_t	depth = search_way<L>(view, candidate, path, &target, &sub);

			if ((threadIdx.x & 31) == 0)
				done = take_way<L>(view, entry, candidate, path, depth, target, sub,
								   journal, gained);
			done = __shfl_sync(ALL_LANES, done, 0);
			if (depth == 0)
				break;
		}
		if ((threadIdx.x & 31) == 0)
		{
			if (!done)
				overflow[append_index(&counts->overflow)] = position;
			else if (flags != nullptr)
				flags[position] = 1;
		}
	}
	gains_end(gained, counts);
}

/* -------------------------------------------------------------------- undoing */

/*
 * Undoes the journal's moves, the last first, in one thread: each finds its
 * target as the move left it and its source free.
 */
template <typename L> static __global__ void
undo_kernel(move_journal journal, uint32_t value_size)
{
	typedef typename L::word_type word_type;
	uint32_t	moves = *journal.used < journal.room ? *journal.used : journal.room;

	while (moves-- > 0)
	{
		move_record move = journal.moves[moves];
		word_type  *to = static_cast<word_type *>(move.to);

		if (move.from != nullptr)
		{
			if (move.from_value != nullptr)
				value_copy(static_cast<char *>(move.from_value),
						   static_cast<const char *>(move.to_value), value_size);
			*static_cast<word_type *>(move.from) = *to;
		}
		*to = L::freed_word;
	}
}

/*
 * One launch of either kernel.  list->count is what is left, and list->positions
 * then one of the two spare lists.
 */
static GhStatus
relocate_once(cuda_table *table, bool search, entry_list *list, uint8_t *flags,
			  uint32_t *const *spare, const move_journal *journal, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint32_t   *overflow = list->positions == spare[0] ? spare[1] : spare[0];

	GH_TRY(lane_count_reset(table, lane, error));
	if (search)
		LAYOUT_DISPATCH(table, search_kernel<L><<<blocks_for((uint64_t) list->count * 32),
						BLOCK_THREADS, 0, lane->stream>>>(
							table_make_view(table), *list, *journal, flags, overflow,
							lane->device_count));
	else
		LAYOUT_DISPATCH(table, walk_kernel<L><<<blocks_for(list->count), BLOCK_THREADS, 0,
						lane->stream>>>(table_make_view(table), *list, *journal, flags,
										overflow, lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	list->positions = overflow;
	list->first = 0;
	list->count = lane->host_count->overflow;
	return GH_OK;
}

/*
 * Relocates for what a list holds and sets the flags (NULL: nobody asks) of those
 * that got a place.  list->count is what is left in the end, and list->positions
 * is then one of the two spare lists.
 */
GhStatus
relocate_rounds(cuda_table *table, entry_list *list, uint8_t *flags,
				uint32_t *const *spare, const move_journal *journal, GhError *error)
{
	if (list->count > 0)
		GH_TRY(relocate_once(table, true, list, flags, spare, journal, error));
	for (int round = 0; round < WALK_ROUNDS && list->count > 0; round++)
		GH_TRY(relocate_once(table, false, list, flags, spare, journal, error));
	return GH_OK;
}

/* Makes every slot hold what it held before the journal; counts are the caller's. */
GhStatus
relocation_undo(cuda_table *table, const move_journal *journal, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	LAYOUT_DISPATCH(table, undo_kernel<L><<<1, 1, 0, lane->stream>>>(
						*journal, table->slot_value_size));
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	return GH_OK;
}
