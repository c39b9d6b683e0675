/*
 * probe.cuh
 *		Looking keys up, a warp's 32 at a time; and counting with few atomics.
 *
 * Every lane has a key of its own, but buckets are read together: in each of
 * TILE_LANES rounds the warp reads the buckets of TILES lanes, 16 bytes a lane,
 * because one request for 64 adjacent bytes costs the memory system as much
 * as one for 16.  All rounds are read before the first is looked at, so that
 * their latencies overlap.  What the buckets hold goes back to the lanes that
 * asked by ballots, and from then on each lane deals with its own key.
 */
#ifndef GPUHASH_PROBE_CUH
#define GPUHASH_PROBE_CUH

#include "cuda/table/layout.cuh"
#include "cuda/table/memory.cuh"

#define ALL_LANES (~0u)

/* --------------------------------------------------------------- candidates */

/* A key's two buckets; [0] is the one it prefers. */
struct candidates
{
	char	   *bucket[2];
	uint32_t	sub[2];
};

static __device__ __forceinline__ char *
bucket_at(const table_view &view, uint32_t sub, uint64_t hash, uint32_t region_bits)
{
	const subtable_view &subtable = view.sub[sub];

	return subtable.slots +
		(uint64_t) hash_bucket(hash, subtable.seed, region_bits, subtable.regions,
							   subtable.span) * BUCKET_BYTES;
}

static __device__ __forceinline__ candidates
key_candidates(const table_view &view, uint64_t hash)
{
	uint32_t	index = hash_pair_index(hash, view.pairs);
	uint32_t	region_bits = hash_region_bits(hash, view.pairs);
	subtable_pair pair = hash_pair(index);
	bool		first = hash_steering_bits(hash) < view.bound[index];
	candidates	found;

	found.sub[0] = first ? pair.a : pair.b;
	found.sub[1] = first ? pair.b : pair.a;
	found.bucket[0] = bucket_at(view, found.sub[0], hash, region_bits);
	found.bucket[1] = bucket_at(view, found.sub[1], hash, region_bits);
	return found;
}

/* ------------------------------------------------------------- bucket scans */

/*
 * What a lane learns of its bucket.  Masks have a bit per slot; bit n is slot
 * mask_slot(n), in the order in which slots are taken.
 */
struct bucket_scan
{
	uint32_t	match;			/* the slot that holds the key */
	uint32_t	empty;
	uint32_t	freed;
	uint64_t	value;			/* the key's, where values are together with keys */
};

template <typename L> static __device__ __forceinline__ uint32_t
mask_slot(uint32_t bit)
{
	return bit % TILE_LANES * L::lane_slots + bit / TILE_LANES;
}

template <typename L> static __device__ __forceinline__ typename L::word_type *
bucket_slot(char *bucket, uint32_t slot)
{
	return reinterpret_cast<typename L::word_type *>(bucket + slot * L::slot_bytes);
}

/* The lowest slot of a mask, which is not zero. */
template <typename L> static __device__ __forceinline__ typename L::word_type *
mask_first(char *bucket, uint32_t mask)
{
	return bucket_slot<L>(bucket, mask_slot<L>((uint32_t) __ffs((int) mask) - 1));
}

/*
 * Reads each lane's bucket, if it is not NULL, and compares it with the lane's
 * key.  All lanes of the warp come here.  What is read may be late; the caller
 * knows what that means.  WHOLE: others store to slots, and nothing looks at what was read again.
 */
template <typename L, bool WHOLE = false> static __device__ __forceinline__ bucket_scan
warp_scan(const char *bucket, typename L::key_type key)
{
	typedef typename L::key_type key_type;
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	part = lane % TILE_LANES;
	uint32_t	tile = lane / TILE_LANES;
	fragment	read[TILE_LANES];
	key_type	wanted[TILE_LANES];
	bucket_scan scan = {0, 0, 0, 0};

#pragma unroll
	for (int round = 0; round < TILE_LANES; round++)
	{
		int			asker = round * TILES + (int) tile;
		const char *place = reinterpret_cast<const char *>(
			__shfl_sync(ALL_LANES, reinterpret_cast<unsigned long long>(bucket), asker));

		wanted[round] = __shfl_sync(ALL_LANES, key, asker);
		read[round] = make_uint4(0, 0, 0, 0);
		if (place != nullptr && WHOLE)
		{
			word_pair	words = load_whole(place + part * 16);

			read[round] = make_uint4((uint32_t) words.x, (uint32_t) (words.x >> 32), (uint32_t) words.y,
									 (uint32_t) (words.y >> 32));
		}
		else if (place != nullptr)
			read[round] = load_fragment(place + part * 16);
	}

#pragma unroll
	for (int round = 0; round < TILE_LANES; round++)
	{
		bool		mine = lane / TILES == (uint32_t) round;
		uint32_t	shift = lane % TILES * TILE_LANES;
		uint64_t	value = 0;

#pragma unroll
		for (int s = 0; s < L::lane_slots; s++)
		{
			key_type	held = L::fragment_key(read[round], s);
			uint32_t	matches = __ballot_sync(ALL_LANES, held == wanted[round]);
			uint32_t	empties = __ballot_sync(ALL_LANES, held == L::empty_key);
			uint32_t	freed = __ballot_sync(ALL_LANES, held == L::freed_key);
			uint32_t	bits = (1u << TILE_LANES) - 1;

			if (mine)
			{
				scan.match |= (matches >> shift & bits) << (s * TILE_LANES);
				scan.empty |= (empties >> shift & bits) << (s * TILE_LANES);
				scan.freed |= (freed >> shift & bits) << (s * TILE_LANES);
			}
			if (L::together && held == wanted[round])
				value = L::fragment_value(read[round], s);
		}
		if (L::together)
		{
			/* the lane that read the slot has the value */
			uint32_t	bit = (uint32_t) __ffs((int) scan.match) - 1;
			int			source = (int) (shift + bit % TILE_LANES);
			uint64_t	fetched = L::packed ?
				__shfl_sync(ALL_LANES, (uint32_t) value, source) :
				__shfl_sync(ALL_LANES, value, source);

			if (mine)
				scan.value = fetched;
		}
	}
	return scan;
}

/*
 * The same for lanes of which few may ask, those of `askers`: if they are no more
 * than a warp reads buckets at a time, it takes one round.
 */
template <typename L> static __device__ __forceinline__ bucket_scan
warp_scan_some(const char *bucket, typename L::key_type key, uint32_t askers)
{
	typedef typename L::key_type key_type;
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	tile = lane / TILE_LANES;
	uint32_t	asking = (uint32_t) __popc(askers);
	uint32_t	bits = (1u << TILE_LANES) - 1;
	/* a tile reads for the asker of its number, and an asker is told by that tile */
	int			asker;
	uint32_t	shift = (uint32_t) __popc(askers & ((1u << lane) - 1)) % TILES * TILE_LANES;
	const char *place;
	key_type	wanted;
	fragment	read;
	uint64_t	value = 0;
	bucket_scan scan = {0, 0, 0, 0};

	if (asking > TILES)
		return warp_scan<L>(bucket, key);
	asker = (int) (__fns(askers, 0, (int) tile + 1) % 32);
	place = reinterpret_cast<const char *>(
		__shfl_sync(ALL_LANES, reinterpret_cast<unsigned long long>(bucket), asker));
	wanted = __shfl_sync(ALL_LANES, key, asker);
	read = make_uint4(0, 0, 0, 0);
	if (tile < asking)
		read = load_fragment(place + lane % TILE_LANES * 16);
#pragma unroll
	for (int s = 0; s < L::lane_slots; s++)
	{
		key_type	held = L::fragment_key(read, s);
		uint32_t	matches = __ballot_sync(ALL_LANES, held == wanted);
		uint32_t	empties = __ballot_sync(ALL_LANES, held == L::empty_key);
		uint32_t	freed = __ballot_sync(ALL_LANES, held == L::freed_key);

		scan.match |= (matches >> shift & bits) << (s * TILE_LANES);
		scan.empty |= (empties >> shift & bits) << (s * TILE_LANES);
		scan.freed |= (freed >> shift & bits) << (s * TILE_LANES);
		if (L::together && held == wanted)
			value = L::fragment_value(read, s);
	}
	if (L::together)
	{
		/* the lane that read the slot has the value */
		uint32_t	bit = (uint32_t) __ffs((int) scan.match) - 1;

		scan.value = __shfl_sync(ALL_LANES, value, (int) (shift + bit % TILE_LANES));
	}
	return scan;
}

/* -------------------------------------------------------------- looking up */

/* Where an entry is. */
struct entry_place
{
	bool		found;
	bool		side;			/* in the side bucket: slot is NULL */
	bool		has_empty;		/* its bucket has an EMPTY slot */
	uint32_t	sub;			/* subtable that counts it */
	uint32_t	reads;			/* buckets read */
	void	   *slot;			/* its word */
	char	   *value;			/* its value in the table */
	uint64_t	loaded;			/* its value, where values are together with keys */
};

template <typename L> static __device__ __forceinline__ uint32_t
side_index(typename L::key_type key)
{
	return (uint32_t) (L::empty_key - key);
}

/* Where the value of a side slot is: 16-byte aligned. */
static __device__ __forceinline__ char *
side_value(const table_view &view, uint32_t index)
{
	return view.side_values + (uint64_t) index * ((view.value_size + 15) / 16 * 16);
}

/* Where the value of a slot is. */
template <typename L> static __device__ __forceinline__ char *
slot_value(const table_view &view, uint32_t sub, void *slot)
{
	const subtable_view &subtable = view.sub[sub];
	char	   *place = static_cast<char *>(slot);

	if (L::together)
		return place + sizeof(typename L::key_type);
	return subtable.values +
		(uint64_t) (place - subtable.slots) / L::slot_bytes * view.value_size;
}

/*
 * What stands beside a free key, where values do: what place.cuh's 128-bit
 * compare-and-swap expects there, as in a bucket that was never used.
 */
template <typename L> static __device__ __forceinline__ void
blank_value(void *slot)
{
	if (L::paired)
		static_cast<uint64_t *>(slot)[1] = ~UINT64_C(0);
}

/* Frees a slot that is BUSY: the value first, for whoever takes it next. */
template <typename L> static __device__ __forceinline__ void
free_slot(typename L::word_type *slot)
{
	blank_value<L>(slot);
	store_release(slot, L::freed_word);
}

/* Frees the slots that place_kernel left BUSY, as far as they are listed, by all threads of a grid. */
template <typename L> static __device__ __forceinline__ void
free_listed(const claim_view &claims, const counters *counts)
{
	uint32_t	dead = load_relaxed(&counts->dead);

	if (dead > claims.dead_room)
		dead = claims.dead_room;
	for (uint64_t i = ELEMENT; i < dead; i += (uint64_t) gridDim.x * blockDim.x)
		free_slot<L>(reinterpret_cast<typename L::word_type *>(claims.dead[i]));
}

template <typename L> static __device__ __forceinline__ entry_place
side_locate(const table_view &view, typename L::key_type key)
{
	entry_place place = {};
	uint32_t	index = side_index<L>(key);

	place.side = true;
	place.found = view.side_present[index] != 0;
	place.value = side_value(view, index);
	if (L::together && place.found)
		place.loaded = value_word(place.value, view.value_size);
	return place;
}

/*
 * Looks up the key of each lane that asks.  All lanes of the warp come here.  No
 * kernel that uses this inserts or moves entries.
 */
template <typename L> static __device__ __forceinline__ entry_place
warp_locate(const table_view &view, typename L::key_type key, bool asking)
{
	entry_place place = {};
	bool		special = L::special(key);
	candidates	candidate = key_candidates(view, hash_key(view.seed, key));
	bool		pending = asking && !special;

#pragma unroll
	for (int which = 0; which < 2; which++)
	{
		uint32_t	askers = __ballot_sync(ALL_LANES, pending);
		const char *bucket = pending ? candidate.bucket[which] : nullptr;
		bucket_scan scan;

		if (askers == 0)
			break;
		scan = which == 0 ? warp_scan<L>(bucket, key) :
			warp_scan_some<L>(bucket, key, askers);
		if (pending)
		{
			place.reads++;
			if (scan.match != 0)
			{
				place.found = true;
				place.sub = candidate.sub[which];
				place.slot = mask_first<L>(candidate.bucket[which], scan.match);
				place.value = slot_value<L>(view, place.sub, place.slot);
				place.loaded = scan.value;
			}
			place.has_empty = scan.empty != 0;
			pending = !place.found && !(view.ordered != 0 && place.has_empty);
		}
	}
	if (asking && special)
		place = side_locate<L>(view, key);
	return place;
}

/*
 * Takes an entry out; true for the one thread, of those that want the same out, that
 * did.  In a bucket that may have been full the slot stays marked as used.
 */
template <typename L> static __device__ __forceinline__ bool
place_empty(const table_view &view, const entry_place &place, typename L::key_type key)
{
	typedef typename L::word_type word_type;
	bool		mine;

	if (place.side)
		return exchange(&view.side_present[side_index<L>(key)], 0u) != 0;
	mine = !L::special(L::key_of(exchange(static_cast<word_type *>(place.slot),
										  place.has_empty ? L::empty_word :
										  L::freed_word)));
	if (mine)
		blank_value<L>(place.slot);
	return mine;
}

/* The key at a position of a list's arrays. */
template <typename L> static __device__ __forceinline__ typename L::key_type
list_key(const entry_list &list, uint32_t position)
{
	return static_cast<const typename L::key_type *>(list.keys)[position];
}

static __device__ __forceinline__ uint32_t
list_position(const entry_list &list, uint64_t i)
{
	return list.positions == nullptr ? list.first + (uint32_t) i : list.positions[i];
}

/* ---------------------------------------------------------------- counting */

/* Sum over the lanes of the warp, in all of them. */
template <typename T> static __device__ __forceinline__ T
warp_sum(T amount)
{
	for (int apart = 16; apart > 0; apart /= 2)
		amount += __shfl_xor_sync(ALL_LANES, amount, apart);
	return amount;
}

/*
 * Sums of a block, added to the counters by one atomic each.  All threads of the
 * block come to begin and end, which have barriers, and all lanes of a warp to
 * the others.
 */
struct block_sums
{
	enum
	{
		ENTRIES,				/* placed, found or removed */
		READS,					/* buckets read */
		CACHED,					/* answered by copies of entries */
		FAR,					/* that read memory of the host */
		GAINS,					/* by subtable */
		WORDS = GAINS + GH_SUBTABLES_MAX
	};

	uint32_t   *sum;			/* shared memory, WORDS */

	__device__ __forceinline__ void
	begin(uint32_t *shared)
	{
		sum = shared;
		if (threadIdx.x < WORDS)
			sum[threadIdx.x] = 0;
		__syncthreads();		/* nobody adds before the zeroes are there */
	}

	__device__ __forceinline__ void
	add_one(uint32_t which, bool one)
	{
		uint32_t	lanes = (uint32_t) __popc(__ballot_sync(ALL_LANES, one));

		if ((threadIdx.x & 31) == 0 && lanes != 0)
			atomicAdd(&sum[which], lanes);
	}

	__device__ __forceinline__ void
	add_reads(const table_view &view, uint32_t reads)
	{
		if (view.count_reads != 0)
		{
			reads = warp_sum(reads);
			if ((threadIdx.x & 31) == 0)
				atomicAdd(&sum[READS], reads);
		}
	}

	/* An entry came to, or left, each asking lane's subtable. */
	__device__ __forceinline__ void
	add_gains(const table_view &view, bool asking, uint32_t sub)
	{
		for (uint32_t i = 0; i < view.subtables; i++)
			add_one(GAINS + i, asking && sub == i);
	}

	/* total: what ENTRIES adds to; sign: of the gains */
	__device__ __forceinline__ void
	end(counters *counts, uint64_t *total, int sign)
	{
		__syncthreads();		/* all have counted */
		if (threadIdx.x < WORDS && sum[threadIdx.x] != 0)
		{
			uint64_t	amount = sum[threadIdx.x];

			if (threadIdx.x == ENTRIES)
				add_relaxed(total, amount);
			else if (threadIdx.x == READS)
				add_relaxed(&counts->bucket_reads, amount);
			else if (threadIdx.x == CACHED)
				add_relaxed(&counts->cached, amount);
			else if (threadIdx.x == FAR)
				add_relaxed(&counts->far, amount);
			else
				add_relaxed(&counts->gained[threadIdx.x - GAINS],
							sign < 0 ? 0 - amount : amount);
		}
	}
};

/*
 * Sum of every thread's amount, in thread 0; the others get nothing.  All threads of
 * the block come here, once in a kernel, for the sums of warps are not guarded
 * against a second call.
 */
static __device__ __forceinline__ uint64_t
block_sum(uint64_t amount)
{
	__shared__ uint64_t of_warp[BLOCK_THREADS / 32];
	uint64_t	total = 0;

	amount = warp_sum(amount);
	if ((threadIdx.x & 31) == 0)
		of_warp[threadIdx.x / 32] = amount;
	__syncthreads();			/* all warps' sums are there */
	if (threadIdx.x != 0)
		return 0;
	for (int i = 0; i < BLOCK_THREADS / 32; i++)
		total += of_warp[i];
	return total;
}

/*
 * Adds every thread's amount to a counter, one atomic for a block: those of all warps
 * on one word would be what a lookup kernel waits for.  As block_sum, once in a kernel.
 */
static __device__ __forceinline__ void
block_add(uint64_t *counter, uint64_t amount)
{
	amount = block_sum(amount);
	if (amount != 0)
		add_relaxed(counter, amount);
}

/*
 * The next index of a list under construction for each thread that appends, with one
 * atomic for the block.  All threads of the block come here.
 */
static __device__ __forceinline__ uint32_t
block_append_index(uint32_t *used, bool appending)
{
	__shared__ uint32_t of_warp[BLOCK_THREADS / 32];
	uint32_t	warp = threadIdx.x / 32;
	uint32_t	lanes = __ballot_sync(ALL_LANES, appending);

	if ((threadIdx.x & 31) == 0)
		of_warp[warp] = (uint32_t) __popc(lanes);
	__syncthreads();			/* all warps' numbers are there */
	if (threadIdx.x == 0)
	{
		uint32_t	total = 0;
		uint32_t	first;

		for (int i = 0; i < BLOCK_THREADS / 32; i++)
			total += of_warp[i];
		first = total != 0 ? atomicAdd(used, total) : 0;
		for (int i = 0; i < BLOCK_THREADS / 32; i++)
		{
			total = of_warp[i];
			of_warp[i] = first;
			first += total;
		}
	}
	__syncthreads();			/* all warps' first indexes are */

	uint32_t	index = of_warp[warp] + (uint32_t) __popc(lanes & ((1u << (threadIdx.x & 31)) - 1));

	__syncwarp();				/* all lanes have read: the next call may write */
	return index;
}

/*
 * Which of n owners an element belongs to, by the prefix sums of what they own
 * (n + 1, ascending): the last whose sum is not above the element, which is
 * never one that owns nothing.
 */
static __device__ __forceinline__ uint64_t
owner_of(const uint64_t *sums, uint64_t n, uint64_t element)
{
	uint64_t	low = 0;
	uint64_t	high = n;		/* sums[low] <= element < sums[high] */

	while (high - low > 1)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (sums[middle] <= element)
			low = middle;
		else
			high = middle;
	}
	return low;
}

#endif							/* GPUHASH_PROBE_CUH */
