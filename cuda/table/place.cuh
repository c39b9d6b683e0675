/*
 * place.cuh
 *		place_kernel: every key into one of its two buckets, on the device.
 *
 * The kernel looks at a key's two buckets and either finds the key there, or
 * takes a free slot by one compare-and-swap, in the bucket that the key prefers,
 * or else in the other.  No slot becomes free while it runs, so one that was seen
 * taken stays so.
 *
 * No key gets in twice, without locks: of equal keys every thread tries the same
 * slots in the same order, those of the preferred bucket first, and passes one
 * only when it has seen another key in it.  So whoever comes second meets the
 * first one's key, at the latest as what the compare-and-swap found.
 *
 * Where one atomic changes a whole entry, a key that finds both buckets full is
 * placed by a single move (displace.cuh).  Equal keys must not both do that, so they
 * claim the key in a scratch table first, and only the first of them goes on.  The
 * argument above holds on: slots are still never free again while the kernel runs,
 * and a key that was moved is in the other bucket, in the first slot that was free
 * there, which is one that every other thread of that key tries, too.
 *
 * Keys that are left are listed, and so are positions whose keys were there, or came
 * with another position.  What becomes of them is place.cu's.
 */
#ifndef GPUHASH_PLACE_CUH
#define GPUHASH_PLACE_CUH

#include "cuda/table/displace.cuh"

/* Places of the scratch table of claims, at least; and those that a claim tries. */
#define CLAIM_PLACES_MIN 64
#define CLAIM_PROBES 16

enum place_outcome
{
	NOT_ASKED,
	PLACED,
	PRESENT,
	FULL
};

/* What a key found, and where. */
struct placing
{
	place_outcome outcome;
	uint32_t	sub;
	void	   *slot;
};

/* A key and its value, to be stored. */
template <typename L> struct new_entry
{
	typename L::key_type key;
	uint64_t	value;			/* where values are together with keys */
};

/*
 * Takes a slot for the entry if it still is as seen, free: PLACED; else PRESENT or
 * FULL, as it now has the same key or another.  Where one atomic can, it stores the
 * value as well; else place_kernel does.
 */
template <typename L> static __device__ __forceinline__ place_outcome
take_slot(void *slot, typename L::word_type seen, const new_entry<L> &entry)
{
	typedef typename L::word_type word_type;
	typename L::key_type held;

#if HAVE_ATOMIC_128
	if constexpr (L::paired)
	{
		/* blank_value's; anything else would take one more try */
		word_pair	expected = {seen, ~UINT64_C(0)};

		for (;;)
		{
			word_pair	found = compare_and_swap(static_cast<word_pair *>(slot), expected,
												 {entry.key, entry.value});

			held = L::key_of(found.x);
			if (found.x != seen || found.y == expected.y)
				break;
			expected.y = found.y;
		}
	}
	else
#endif
		held = L::key_of(compare_and_swap(static_cast<word_type *>(slot), seen,
										  L::make_word(entry.key, entry.value)));
	return held == L::key_of(seen) ? PLACED : held == entry.key ? PRESENT : FULL;
}

/*
 * Tries the free slots of a bucket that a scan saw, in order.  FULL: others took
 * them all.
 */
template <typename L> static __device__ __forceinline__ place_outcome
take_seen(char *bucket, const bucket_scan &scan, const new_entry<L> &entry, void **slot)
{
	for (uint32_t mask = scan.empty | scan.freed; mask != 0; mask &= mask - 1)
	{
		bool		empty = (mask & (0 - mask) & scan.empty) != 0;
		place_outcome outcome;

		*slot = mask_first<L>(bucket, mask);
		outcome = take_slot<L>(*slot, empty ? L::empty_word : L::freed_word, entry);
		if (outcome != FULL)
			return outcome;
	}
	return FULL;
}

/* The same for a bucket that was not scanned, since the other had an EMPTY slot. */
template <typename L> static __device__ place_outcome
take_unseen(char *bucket, const new_entry<L> &entry, void **slot)
{
	for (uint32_t bit = 0; bit < L::slots; bit++)
	{
		typename L::word_type *place = bucket_slot<L>(bucket, mask_slot<L>(bit));
		typename L::word_type held = load_relaxed(place);
		place_outcome outcome = L::key_of(held) == entry.key ? PRESENT : FULL;

		*slot = place;
		if (held == L::empty_word || held == L::freed_word)
			outcome = take_slot<L>(place, held, entry);
		if (outcome != FULL)
			return outcome;
	}
	return FULL;
}

/*
 * What take_slot has left to do, when another thread took the slot that the key
 * tried first: in the bucket of that slot, and in the other one after it.
 */
template <typename L> static __device__ placing
take_next(const candidates &candidate, bucket_scan preferred, bucket_scan other, bool both,
		  const new_entry<L> &entry)
{
	placing		result = {FULL, candidate.sub[0], nullptr};

	result.outcome = take_seen<L>(candidate.bucket[0], preferred, entry, &result.slot);
	if (result.outcome != FULL)
		return result;
	result.sub = candidate.sub[1];
	result.outcome = both ?
		take_seen<L>(candidate.bucket[1], other, entry, &result.slot) :
		take_unseen<L>(candidate.bucket[1], entry, &result.slot);
	return result;
}

/* Each asking lane's key into its buckets.  All lanes of the warp come here. */
template <typename L> static __device__ __forceinline__ placing
warp_place(const table_view &view, typename L::key_type key, uint64_t value, bool asking,
		   uint32_t *reads)
{
	placing		result = {NOT_ASKED, 0, nullptr};
	candidates	candidate = key_candidates(view, hash_key(view.seed, key));
	new_entry<L> entry = {key, value};
	bucket_scan preferred = warp_scan<L>(asking ? candidate.bucket[0] : nullptr, key);
	bucket_scan other = {0, 0, 0, 0};
	bool		both = asking && preferred.match == 0 &&
		!(view.ordered != 0 && preferred.empty != 0);
	uint32_t	askers = __ballot_sync(ALL_LANES, both);
	uint32_t	first;
	bool		elsewhere;
	bool		empty;

	if (askers != 0)
		other = warp_scan_some<L>(both ? candidate.bucket[1] : nullptr, key, askers);
	if (!asking)
		return result;
	*reads = both ? 2 : 1;
	if (preferred.match != 0 || (both && other.match != 0))
	{
		result.outcome = PRESENT;
		return result;
	}
	/* all lanes try their first free slot at once, whichever bucket it is in */
	elsewhere = (preferred.empty | preferred.freed) == 0;
	first = elsewhere ? other.empty | other.freed : preferred.empty | preferred.freed;
	if (elsewhere && !both)
		first = 0;
	result.outcome = FULL;
	if (first != 0)
	{
		result.sub = elsewhere ? candidate.sub[1] : candidate.sub[0];
		result.slot = mask_first<L>(elsewhere ? candidate.bucket[1] : candidate.bucket[0],
									first);
		empty = (first & (0 - first) & (elsewhere ? other.empty : preferred.empty)) != 0;
		result.outcome = take_slot<L>(result.slot, empty ? L::empty_word : L::freed_word,
									  entry);
		if (result.outcome == FULL)
			result = take_next<L>(candidate, preferred, other, both, entry);
	}
	return result;
}

/* One of the threads with that key gets true. */
enum claim_outcome
{
	CLAIMED,
	OTHERS,
	UNDECIDED					/* the scratch table is too full around there */
};

template <typename L> static __device__ claim_outcome
claim_key(const entry_list &list, const claim_view &claims, uint64_t hash,
		  typename L::key_type key, uint32_t position)
{
	uint32_t	place = (uint32_t) (hash >> 16) & claims.mask;

	for (uint32_t probe = 0; probe < CLAIM_PROBES; probe++)
	{
		uint32_t	holder = load_relaxed(&claims.holder[place]);

		if (holder == POSITION_NONE)
			holder = atomicCAS(&claims.holder[place], POSITION_NONE, position);
		if (holder == POSITION_NONE)
			return CLAIMED;
		if (list_key<L>(list, holder) == key)
			return OTHERS;
		place = (place + 1) & claims.mask;
	}
	return UNDECIDED;
}

/* A key whose buckets are full: by a single move, if it is this thread's to do. */
template <typename L> static __device__ __forceinline__ placing
place_by_move(const table_view &view, const entry_list &list, const claim_view &claims,
			  const new_entry<L> &entry, uint32_t position, counters *counts,
			  bool *unclaimed)
{
	placing		result = {FULL, 0, nullptr};
	uint64_t	hash = hash_key(view.seed, entry.key);
	candidates	candidate = key_candidates(view, hash);
	dead_slots	dead = {claims.dead, claims.dead_room, &counts->dead};

	switch (claim_key<L>(list, claims, hash, entry.key, position))
	{
		case OTHERS:
			result.outcome = PRESENT;
			return result;
		case UNDECIDED:
			*unclaimed = true;
			return result;
		case CLAIMED:
			break;
	}
	for (uint32_t i = 0; i < 2 * L::slots; i++)
	{
		char	   *bucket = candidate.bucket[i / L::slots];
		uint32_t	slot = ((uint32_t) hash + i) % L::slots;

		if (displace<L>(view, bucket, bucket + slot * L::slot_bytes,
						make_whole<L>(entry.key, entry.value), dead, &result.sub))
		{
			result.outcome = PLACED;
			break;
		}
	}
	return result;
}

template <typename L> static __device__ __forceinline__ placing
side_place(const table_view &view, typename L::key_type key)
{
	placing		result = {PRESENT, 0, nullptr};

	if (exchange(&view.side_present[side_index<L>(key)], 1u) == 0)
		result.outcome = PLACED;
	return result;
}

/* Keys that a warp will place by moves, when it has enough of them for all lanes. */
template <typename L> struct move_queue
{
	typename L::key_type key[64];
	uint64_t	value[64];
	uint32_t	position[64];
};

/* What place_kernel's parts share. */
template <typename L> struct place_context
{
	const table_view &view;
	const entry_list &list;
	const claim_view &claims;
	uint8_t    *flags;
	uint32_t   *present;
	uint32_t   *overflow;
	counters   *counts;
	block_sums	sums;
};

/* The value of a placed entry, where it was not stored with the key. */
template <typename L> static __device__ __forceinline__ void
store_placed_value(const place_context<L> &context, const placing &result,
				   typename L::key_type key, uint64_t value, uint32_t position)
{
	const table_view &view = context.view;
	bool		placed = result.outcome == PLACED;
	bool		special = L::special(key);
	char	   *to = placed && !special ? slot_value<L>(view, result.sub, result.slot) :
		side_value(view, special ? side_index<L>(key) : 0);

	if (!L::together)
		warp_copy_values(placed, to,
						 context.list.values + (uint64_t) position * view.value_size,
						 view.value_size);
	else if (placed && (special || !HAVE_WHOLE(L)))
		value_from_word(to, value, view.value_size);
}

/* Tells each lane's outcome.  All lanes of the warp come here. */
template <typename L> static __device__ __forceinline__ void
tell_outcome(place_context<L> &context, const placing &result, uint32_t position)
{
	counters   *counts = context.counts;
	bool		placed = result.outcome == PLACED;

	if (result.outcome != NOT_ASKED)
		context.flags[position] = placed ? 1 : 0;
	if (result.outcome == PRESENT)
		context.present[append_index(&counts->present)] = position;
	else if (result.outcome == FULL)
		context.overflow[append_index(&counts->overflow)] = position;
	__syncwarp();
	context.sums.add_one(block_sums::ENTRIES, placed);
	context.sums.add_gains(context.view, placed, result.sub);
}

/* Places the last queued keys, up to one a lane, by moves; returns how many are left. */
template <typename L> static __device__ __forceinline__ uint32_t
place_queued(place_context<L> &context, const move_queue<L> &queue, uint32_t queued)
{
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	taken = queued < 32 ? queued : 32;
	placing		result = {NOT_ASKED, 0, nullptr};
	uint32_t	position = 0;

	__syncwarp();				/* what other lanes have queued */
	if (lane < taken)
	{
		uint32_t	index = queued - taken + lane;
		bool		unclaimed = false;

		position = queue.position[index];
		result = place_by_move<L>(context.view, context.list, context.claims,
								  {queue.key[index], queue.value[index]}, position,
								  context.counts, &unclaimed);
		if (unclaimed)
			context.counts->unclaimed = 1;
	}
	__syncwarp();				/* all have read: the queue may be written again */
	tell_outcome<L>(context, result, position);
	return queued - taken;
}

/* Has the next round's key and value on their way to L2. */
template <typename L> static __device__ __forceinline__ void
fetch_ahead(const place_context<L> &context, uint64_t i)
{
	const entry_list &list = context.list;

	if (list.positions != nullptr || i >= list.count)
		return;
	prefetch(static_cast<const typename L::key_type *>(list.keys) + list.first + i);
	if (L::together && list.values != nullptr)
		prefetch(list.values + (list.first + i) * context.view.value_size);
}

/* One key for each lane; those whose buckets are full are queued.  Returns how many are. */
template <typename L> static __device__ __forceinline__ uint32_t
place_round(place_context<L> &context, move_queue<L> &queue, uint32_t queued, uint64_t i)
{
	const entry_list &list = context.list;
	const table_view &view = context.view;
	bool		listed = i < list.count;
	uint32_t	position = listed ? list_position(list, i) : 0;
	typename L::key_type key = listed ? list_key<L>(list, position) : 0;
	bool		special = L::special(key);
	uint64_t	value = position;	/* of a list without values */
	uint32_t	reads = 0;
	placing		result;

	if (L::together && listed && list.values != nullptr)
		value = value_word(list.values + (uint64_t) position * view.value_size,
						   view.value_size);
	fetch_ahead<L>(context, i + (uint64_t) gridDim.x * blockDim.x);
	result = warp_place<L>(view, key, value, listed && !special, &reads);
	__syncwarp();
	if (listed && special)
		result = side_place<L>(view, key);
	/* nobody reads the value before the next kernel */
	if (view.value_size != 0)
		store_placed_value<L>(context, result, key, value, position);
	context.sums.add_reads(view, reads);
	if (HAVE_WHOLE(L))
	{
		uint32_t	full = __ballot_sync(ALL_LANES, result.outcome == FULL);
		uint32_t	index = queued + (uint32_t) __popc(full & ((1u << (threadIdx.x & 31)) - 1));

		if (result.outcome == FULL)
		{
			queue.key[index] = key;
			queue.value[index] = value;
			queue.position[index] = position;
			result.outcome = NOT_ASKED;
		}
		queued += (uint32_t) __popc(full);
	}
	else if (result.outcome == FULL)
		context.counts->unclaimed = 1;
	tell_outcome<L>(context, result, position);
	return queued;
}

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS, ROUND_BLOCKS)
place_kernel(const __grid_constant__ table_view view,
			 const __grid_constant__ entry_list list,
			 const __grid_constant__ claim_view claims, uint8_t *flags, uint32_t *present,
			 uint32_t *overflow, counters *counts)
{
	__shared__ uint32_t shared[block_sums::WORDS];
	__shared__ move_queue<L> queues[HAVE_WHOLE(L) ? BLOCK_THREADS / 32 : 1];
	move_queue<L> &queue = queues[HAVE_WHOLE(L) ? threadIdx.x / 32 : 0];
	place_context<L> context = {view, list, claims, flags, present, overflow, counts, {}};
	uint32_t	queued = 0;

	context.sums.begin(shared);
	FOR_ROUNDS(i, list.count)
	{
		queued = place_round<L>(context, queue, queued, i);
		if (HAVE_WHOLE(L) && queued >= 32)
			queued = place_queued<L>(context, queue, queued);
	}
	if (HAVE_WHOLE(L) && queued > 0)
		(void) place_queued<L>(context, queue, queued);
	context.sums.end(counts, &counts->inserted, 1);
}

#endif							/* GPUHASH_PLACE_CUH */
