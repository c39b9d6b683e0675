/*
 * relocate.cu
 *		Placing keys whose two buckets are full, by moving others.
 *
 * The callers give keys that are distinct and not in the table, so no thread
 * ever needs to know about another's key.  Two kernels try one after the other:
 *
 * search_kernel has a group of lanes for each key, which looks for a free slot
 * nearby: first in the other buckets of the entries in the key's two buckets, each
 * of which one lane reads, then in those of the entries there.  One lane then makes
 * the one or two moves.
 *
 * walk_kernel takes what is left, a thread a key.  A random walk along victims
 * and their other buckets finds a free slot.  Of a subtable that was halved it takes all first, since most
 * have room in their other bucket.
 *
 * In both the entries on the way move up by one, last first.  A thread owns a slot
 * from its compare-and-swap to BUSY until it stores another word there, and only the
 * owner touches the slot's value.  To move an entry it owns both ends: the free slot
 * first, then the entry's.  The value is copied, the word is stored with release order
 * behind it, and the slot left behind becomes the free one of the next move.  If an entry is not where the
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
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

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

/* Gives up a slot that the thread owns, free. */
template <typename L> static __device__ __forceinline__ void
give_back(const owned_slot<L> &hole)
{
	free_slot<L>(hole.slot);
}

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
	/* a full journal is not counted on, lest the number wraps */
	if (load_relaxed(journal.used) >= journal.room)
		return false;
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
			give_back<L>(*hole);
			return false;
		}
		/* pairs with the release store that published the word: its value is seen */
		__threadfence();
		if (!journal_note(journal, move))
		{
			store_release(step->slot, step->word);
			give_back<L>(*hole);
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
		give_back<L>(hole);
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

/* Lanes that search for one key together, reading a bucket each. */
#define SEARCH_LANES 8

/* What a lane has looked at. */
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

/* From a lane of the same group. */
template <typename T> static __device__ __forceinline__ T *
group_shuffle(T *pointer, uint32_t lane)
{
	return reinterpret_cast<T *>(__shfl_sync(
		ALL_LANES, reinterpret_cast<unsigned long long>(pointer), (int) lane, SEARCH_LANES));
}

template <typename L> static __device__ __forceinline__ owned_slot<L>
group_shuffle(const owned_slot<L> &place, uint32_t lane)
{
	return {group_shuffle(place.slot, lane),
		__shfl_sync(ALL_LANES, place.word, (int) lane, SEARCH_LANES),
		__shfl_sync(ALL_LANES, place.sub, (int) lane, SEARCH_LANES)};
}

/* Which lane of each group says so first; SEARCH_LANES: none. */
static __device__ __forceinline__ uint32_t
group_first(bool says)
{
	uint32_t	base = (threadIdx.x & 31) / SEARCH_LANES * SEARCH_LANES;
	uint32_t	found = __ballot_sync(ALL_LANES, says) >> base & ((1u << SEARCH_LANES) - 1);

	return found == 0 ? SEARCH_LANES : (uint32_t) __ffs((int) found) - 1;
}

/* A way from one of the key's buckets to a bucket with room. */
template <typename L> struct search_result
{
	uint32_t	depth;			/* entries to be moved; 0: none that near */
	owned_slot<L> path[2];
	char	   *target;
	uint32_t	sub;			/* of the target */
};

/* The chosen lane's node ends the way of its group; nothing where none is chosen. */
template <typename L> static __device__ __forceinline__ void
take_node(const search_node<L> &node, uint32_t chosen, owned_slot<L> *step,
		  search_result<L> *way)
{
	owned_slot<L> victim = group_shuffle<L>(node.victim, chosen);
	char	   *target = group_shuffle(node.bucket, chosen);
	uint32_t	sub = __shfl_sync(ALL_LANES, node.sub, (int) chosen, SEARCH_LANES);

	if (chosen < SEARCH_LANES)
	{
		*step = victim;
		way->target = target;
		way->sub = sub;
	}
}

/* The node before it on the way. */
template <typename L> static __device__ __forceinline__ void
take_parent(const search_node<L> &node, bool chosen, uint32_t parent,
			search_result<L> *way)
{
	owned_slot<L> victim = group_shuffle<L>(node.victim, parent);

	if (chosen)
		way->path[0] = victim;
}

/*
 * Searches for each group that is to, near and then farther; all lanes of a group
 * get the same answer.  All lanes of the warp come here.
 */
template <typename L> static __device__ void
search_way(const table_view &view, const candidates &candidate, bool searching,
		   search_result<L> *way)
{
	constexpr uint32_t rounds = 2 * L::slots / SEARCH_LANES;
	uint32_t	lane = threadIdx.x % SEARCH_LANES;
	search_node<L> near[rounds];

	way->depth = 0;
#pragma unroll
	for (uint32_t round = 0; round < rounds; round++)
	{
		uint32_t	number = round * SEARCH_LANES + lane;
		uint32_t	which = number / L::slots;
		uint32_t	chosen;

		near[round] = search_slot<L>(view, searching && way->depth == 0 ?
									 candidate.bucket[which] : nullptr,
									 candidate.sub[which], number % L::slots);
		chosen = group_first(near[round].room);
		if (__ballot_sync(ALL_LANES, chosen < SEARCH_LANES) == 0)
			continue;
		if (chosen < SEARCH_LANES)
			way->depth = 1;
		take_node<L>(near[round], chosen, &way->path[0], way);
	}
#pragma unroll
	for (uint32_t round = 0; round < rounds; round++)
		for (uint32_t step = 0; step < L::slots; step++)
		{
			uint32_t	parent = (step * SEARCH_LANES + lane) / L::slots;
			char	   *bucket = group_shuffle(near[round].bucket, parent);
			uint32_t	sub = __shfl_sync(ALL_LANES, near[round].sub, (int) parent,
										  SEARCH_LANES);
			bool		wanted = searching && way->depth == 0;
			search_node<L> far;
			uint32_t	chosen;

			if (__ballot_sync(ALL_LANES, wanted) == 0)
				return;
			far = search_slot<L>(view, wanted ? bucket : nullptr, sub,
								 (step * SEARCH_LANES + lane) % L::slots);
			chosen = group_first(far.room);
			if (__ballot_sync(ALL_LANES, chosen < SEARCH_LANES) == 0)
				continue;
			parent = __shfl_sync(ALL_LANES, parent, (int) chosen, SEARCH_LANES);
			take_parent<L>(near[round], chosen < SEARCH_LANES, parent, way);
			take_node<L>(far, chosen, &way->path[1], way);
			if (chosen < SEARCH_LANES)
				way->depth = 2;
		}
}

/* One try to place the key along the way that was found; one lane of a group does this. */
template <typename L> static __device__ bool
take_way(const table_view &view, const new_entry<L> &entry, const candidates &candidate,
		 const search_result<L> &way, const move_journal &journal, uint32_t *gained)
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
		if (way.depth == 0)
			return false;
		hole.slot = bucket_reserve<L>(way.target);
		hole.sub = way.sub;
		if (hole.slot == nullptr ||
			!walk_back<L>(view, way.path, way.depth, &hole, journal, gained))
			return false;
	}
	if (!fill_hole<L>(view, hole, entry, journal))
		return false;
	atomicAdd(&gained[hole.sub], 1u);
	return true;
}

/* The i-th of a list, by a group of lanes; returns whether it was placed, to its first. */
template <typename L> static __device__ __forceinline__ bool
search_entry(const table_view &view, const entry_list &list, const move_journal &journal,
			 uint32_t position, bool listed, uint32_t *gained)
{
	bool		leading = listed && threadIdx.x % SEARCH_LANES == 0;
	new_entry<L> entry = list_entry<L>(view, list, position);
	candidates	candidate = key_candidates(view, hash_key(view.seed, entry.key));
	bool		done = !listed;

	for (int attempt = 0; attempt < SEARCH_ATTEMPTS; attempt++)
	{
		search_result<L> way;

		if (__ballot_sync(ALL_LANES, !done) == 0)
			break;
		search_way<L>(view, candidate, !done, &way);
		if (leading && !done)
			done = take_way<L>(view, entry, candidate, way, journal, gained);
		done = __shfl_sync(ALL_LANES, done, 0, SEARCH_LANES);
	}
	return done;
}

/*
 * A list's entries; those that are left go to another one.  With ahead_most it is right behind
 * place_kernel, whose list is only counted on the device: of so many at most, and none where equal
 * keys may be among them.
 */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
search_kernel(const __grid_constant__ table_view view, entry_list list,
			  move_journal journal, uint8_t *flags, uint32_t *left, uint32_t ahead_most,
			  claim_view claims, counters *counts)
{
	__shared__ uint32_t gained[GH_SUBTABLES_MAX];
	uint32_t   *left_count = ahead_most != 0 ? &counts->appended : &counts->overflow;
	uint64_t	threads;

	if (ahead_most != 0)
	{
		free_listed<L>(claims, counts);
		list.count = load_relaxed(&counts->overflow);
		if (load_relaxed(&counts->unclaimed) != 0 || list.count > ahead_most)
			return;
	}
	threads = (uint64_t) list.count * SEARCH_LANES;
	gains_begin(gained);
	/* all threads of a block do the same rounds */
	for (uint64_t base = (uint64_t) blockIdx.x * BLOCK_THREADS; base < threads;
		 base += (uint64_t) gridDim.x * BLOCK_THREADS)
	{
		uint64_t	i = (base + threadIdx.x) / SEARCH_LANES;
		bool		listed = i < list.count;
		uint32_t	position = list_position(list, listed ? i : 0);
		bool		done = search_entry<L>(view, list, journal, position, listed, gained);

		if (!listed || threadIdx.x % SEARCH_LANES != 0)
			continue;
		if (!done)
			left[append_index(left_count)] = position;
		else if (flags != nullptr)
			flags[position] = 1;
	}
	gains_end(gained, counts);
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
		LAYOUT_DISPATCH(table, search_kernel<L><<<blocks_for((uint64_t) list->count * SEARCH_LANES),
						BLOCK_THREADS, 0, lane->stream>>>(
							table_make_view(table), *list, *journal, flags, overflow, 0,
							claim_view {}, lane->device_count));
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
 * The first round for the list that place_kernel leaves at list->positions, behind it in the stream: of
 * so many at most, into `left`, which counts->appended counts.  Slots that place_kernel left BUSY become free.
 */
GhStatus
relocate_ahead(cuda_table *table, const entry_list *list, uint32_t most, const claim_view *claims,
			   uint8_t *flags, uint32_t *left, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	keys = list->count < most ? list->count : most;
	move_journal none = {};

	LAYOUT_DISPATCH(table, search_kernel<L><<<
						resident_blocks(table, search_kernel<L>, keys * SEARCH_LANES),
						BLOCK_THREADS, 0, lane->stream>>>(table_make_view(table), *list, none, flags,
														  left, most, *claims, lane->device_count));
	LAUNCH_TRY(table, error);
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
	/* new keys have found both buckets full; what was taken out of a halved one has not looked */
	if (list->count > 0 && journal->moves != nullptr)
		GH_TRY(relocate_once(table, false, list, flags, spare, journal, error));
	if (list->count > 0)
		GH_TRY(relocate_once(table, true, list, flags, spare, journal, error));
	for (int round = 0; round < WALK_ROUNDS && list->count > 0; round++)
		GH_TRY(relocate_once(table, false, list, flags, spare, journal, error));
	return GH_OK;
}
