/*
 * region.cuh
 *		The regions of an empty table, each built in shared memory by one block (region_claim.cuh).
 *
 *	read	the region's pairs, which partition.cuh has put where the region is to be
 *	prefer	each goes to the first free slot of the bucket that its key prefers
 *	other	those that found it full go to their other bucket
 *	move	what is left is queued.  Of equal keys in the queue one goes on; it takes the slot
 *			of an entry of its preferred bucket, if possible of one that has room in its own
 *			other bucket, where that goes, and so on
 *	store	the region in whole lines, over the pairs
 *
 * Equal keys: until entries move, slots are only filled, all threads of a key try the
 * same slots in the same order, and pass one only when it has another key.  So whoever comes
 * second meets the first one's key, as in place.cuh; a key is queued only if no slot
 * of either bucket has it, and then none will.
 *
 * Order: no slot becomes EMPTY again, and a key is put elsewhere than it prefers only if it
 * found no EMPTY slot there.  So that holds in the end as well.
 *
 * While entries move, a slot whose word is BUSY is its owner's alone, who reads the value
 * there, writes another, and stores the key at last.  Nobody waits: who meets BUSY looks at the
 * bucket anew, and after some steps the entry in hand is listed.  Entries of one word are
 * just exchanged.
 */
#ifndef GPUHASH_REGION_CUH
#define GPUHASH_REGION_CUH

#include "cuda/table/partition.cuh"		/* first, for CUB's sake */
#include "cuda/table/place.cuh"

#define REGION_THREADS 512
/* Blocks of a multiprocessor, where shared memory lets them; compute capability 7.5 has room
 * for 1024 threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define REGION_BLOCKS 2
#else
#define REGION_BLOCKS 3
#endif
/* Shared memory of a block beside what its launch asks for, at most: the geometry, mostly. */
#define REGION_FIXED_BYTES 512
/* Slots of a region, at most: a thread has a bit for each of its pairs. */
#define REGION_SLOTS_MAX (32 * REGION_THREADS)
/* Pairs that a thread reads at a time. */
#define REGION_READS 4
/* Entries that are moved for a queued one, at most. */
#define REGION_STEPS 256

#define QUEUE_NONE UINT32_MAX

/* What becomes of positions that come with an equal key. */
struct equal_list
{
	uint32_t   *positions;		/* NULL: there must not be any */
	uint32_t	room;
	uint8_t    *flags;			/* by position */
};

/* A block's shared memory. */
template <typename L> struct region_space
{
	uint64_t   *words;			/* by slot: what the slot's word will be */
	uint64_t   *values;			/* by slot, of layouts with keys in words of their own */
	uint64_t   *queue_words;
	uint64_t   *queue_values;	/* likewise */
	uint32_t   *queue_bucket;	/* that the key prefers */
	uint32_t   *queue_next;		/* the next queued of the same list */
	uint32_t   *heads;			/* the first of a list; equal keys are in the same */
};

/* Lists of a queue: shared memory has better uses than one for each of its places. */
static __host__ __device__ __forceinline__ uint32_t
region_heads(uint32_t queue)
{
	return (queue + 1) / 2;
}

template <typename L> static __host__ __device__ __forceinline__ size_t
region_shared_bytes(uint32_t slots, uint32_t queue)
{
	return (slots + queue) * sizeof(uint64_t) * (L::packed ? 1 : 2) +
		(2 * queue + region_heads(queue)) * sizeof(uint32_t);
}

template <typename L> static __device__ __forceinline__ region_space<L>
region_carve(char *shared, uint32_t slots, uint32_t queue)
{
	region_space<L> space;

	space.words = reinterpret_cast<uint64_t *>(shared);
	space.values = L::packed ? nullptr : space.words + slots;
	space.queue_words = space.words + (L::packed ? 1 : 2) * slots;
	space.queue_values = L::packed ? nullptr : space.queue_words + queue;
	space.queue_bucket = reinterpret_cast<uint32_t *>(space.queue_words +
													  (L::packed ? 1 : 2) * queue);
	space.queue_next = space.queue_bucket + queue;
	space.heads = space.queue_next + queue;
	return space;
}

/*
 * What tells a key's buckets, in shared memory: lanes look at different subtables and pairs,
 * for which constant memory takes turns.
 */
struct region_geometry
{
	struct alignas(16) place
	{
		uint64_t	seed;
		uint32_t	regions;
		uint32_t	span;
	}			sub[GH_SUBTABLES_MAX];
	/* added to a subtable's bucket it is the number in the region, through all subtables */
	uint32_t	base[GH_SUBTABLES_MAX];
	/* the bound of a pair, and its subtables as a | b << 16 */
	uint2		pair[PAIRS_MAX];
};

/* A key's two buckets in its region. */
struct region_buckets
{
	uint32_t	preferred;
	uint32_t	other;
};

/* All that a block needs to know of where keys belong. */
template <typename L> struct region_context
{
	const table_view &view;
	const region_map &map;
	const equal_list &equals;
	counters   *counts;
	uint32_t	region;
	const region_geometry *geometry;	/* shared */
	region_space<L> space;
};

/* By the first threads of a block. */
template <typename L> static __device__ __forceinline__ void
region_measure(const table_view &view, const region_map &map, uint32_t region,
			   region_geometry *geometry)
{
	uint32_t	i = threadIdx.x;

	if (i < view.subtables)
	{
		uint32_t	before = 0;

		for (uint32_t sub = 0; sub < i; sub++)
			before += map.run[sub];
		geometry->sub[i] = {view.sub[i].seed, view.sub[i].regions, view.sub[i].span};
		geometry->base[i] = before / L::slots - region * (map.run[i] / L::slots);
	}
	if (i < view.pairs)
	{
		subtable_pair pair = hash_pair(i);

		geometry->pair[i] = make_uint2(view.bound[i], pair.a | pair.b << 16);
	}
}

static __device__ __forceinline__ uint32_t
region_bucket(const region_geometry *geometry, uint32_t sub, uint64_t hash,
			  uint32_t region_bits)
{
	region_geometry::place place = geometry->sub[sub];

	return hash_bucket(hash, place.seed, region_bits, place.regions, place.span) +
		geometry->base[sub];
}

template <typename L> static __device__ __forceinline__ region_buckets
region_candidates(const region_context<L> &context, typename L::key_type key)
{
	uint64_t	hash = hash_key(context.view.seed, key);
	uint32_t	region_bits = hash_region_bits(hash, context.view.pairs);
	uint2		pair = context.geometry->pair[hash_pair_index(hash, context.view.pairs)];
	bool		first = hash_steering_bits(hash) < pair.x;
	uint32_t	a = pair.y & 0xffff;
	uint32_t	b = pair.y >> 16;

	return {region_bucket(context.geometry, first ? a : b, hash, region_bits),
		region_bucket(context.geometry, first ? b : a, hash, region_bits)};
}

/* A bucket's slots, as bits: those that have the key, and the free ones. */
struct bucket_look
{
	uint32_t	match;
	uint32_t	free;
};

/* FILLED: slots may be free that were used. */
template <typename L, bool FILLED> static __device__ __forceinline__ bucket_look
look_at_bucket(const region_space<L> &space, uint32_t bucket, typename L::key_type key)
{
	const uint64_t *slots = space.words + bucket * L::slots;
	bucket_look look = {0, 0};

#pragma unroll
	for (uint32_t n = 0; n < L::slots / 2; n++)
	{
		/* lanes begin at different slots, or they all would want the same banks */
		uint32_t	s = (n + threadIdx.x) % (L::slots / 2) * 2;
		ulonglong2	two = *reinterpret_cast<const ulonglong2 *>(slots + s);
		typename L::key_type first = L::key_of(two.x);
		typename L::key_type second = L::key_of(two.y);

		look.match |= ((first == key ? 1u : 0u) | (second == key ? 2u : 0u)) << s;
		look.free |= (((FILLED ? L::special(first) : first == L::empty_key) ? 1u : 0u) |
					  ((FILLED ? L::special(second) : second == L::empty_key) ? 2u : 0u)) << s;
	}
	return look;
}

/* Puts a pair into the first free slot of a bucket, unless it meets its key. */
template <typename L> static __device__ __forceinline__ place_outcome
region_put(const region_space<L> &space, uint32_t bucket, const slot_pair<L> &pair)
{
	uint64_t   *slots = space.words + bucket * L::slots;
	uint64_t	word = L::make_word(pair.key, pair.value);
	uint32_t	free = 0;
	bool		match = false;

#pragma unroll
	for (uint32_t n = 0; n < L::slots / 2; n++)
	{
		/* lanes begin at different slots, or they all would want the same banks */
		uint32_t	s = (n + threadIdx.x) % (L::slots / 2) * 2;
		ulonglong2	two = *reinterpret_cast<const ulonglong2 *>(slots + s);

		match |= L::key_of(two.x) == pair.key || L::key_of(two.y) == pair.key;
		free |= ((L::key_of(two.x) == L::empty_key ? 1u : 0u) |
				 (L::key_of(two.y) == L::empty_key ? 2u : 0u)) << s;
	}
	if (match)
		return PRESENT;
	for (; free != 0; free &= free - 1)
	{
		uint32_t	s = (uint32_t) __ffs((int) free) - 1;
		uint64_t	held = compare_and_swap(&slots[s], L::empty_word, word);

		if (held == L::empty_word)
		{
			/* nobody reads it before a barrier */
			if (!L::packed)
				space.values[bucket * L::slots + s] = pair.value;
			return PLACED;
		}
		if (L::key_of(held) == pair.key)
			return PRESENT;
	}
	return FULL;
}

/* A position whose key is there. */
template <typename L> static __device__ __forceinline__ void
tell_equal(const region_context<L> &context, uint32_t position)
{
	const equal_list &equals = context.equals;
	uint32_t	index = append_index(&context.counts->present);

	if (equals.positions == nullptr)
		return;
	if (index >= equals.room)
	{
		context.counts->invalid = 1;
		return;
	}
	equals.positions[index] = position;
	equals.flags[position] = 0;
}

/* Queues a pair whose buckets are full; returns its number there, or QUEUE_NONE where there is no room. */
template <typename L> static __device__ __forceinline__ uint32_t
region_queue(const region_context<L> &context, uint32_t *queued, const slot_pair<L> &pair,
			 uint32_t preferred)
{
	const region_space<L> &space = context.space;
	uint32_t	index = append_index(queued);

	if (index >= context.map.queue)
		return QUEUE_NONE;
	space.queue_bucket[index] = preferred;
	space.queue_words[index] = L::make_word(pair.key, pair.value);
	if (!L::packed)
		space.queue_values[index] = pair.value;
	return index;
}

/*
 * The phases "prefer" and "other".  Lanes come together again after each pair: on their own
 * they would go on one by one.
 */
template <typename L> static __device__ __forceinline__ void
region_fill(const region_context<L> &context, uint32_t pairs, uint32_t *queued)
{
	uint32_t	full = 0;		/* a bit for each pair of the thread */

	for (uint32_t j = 0; j * REGION_THREADS < pairs; j += REGION_READS)
	{
		slot_pair<L> pair[REGION_READS];

		/* all loads first: they travel together */
#pragma unroll
		for (uint32_t n = 0; n < REGION_READS; n++)
		{
			uint32_t	i = (j + n) * REGION_THREADS + threadIdx.x;

			if (i < pairs)
				pair[n] = *region_pair<L>(context.view, context.map, context.region, i);
		}
#pragma unroll
		for (uint32_t n = 0; n < REGION_READS; n++)
		{
			uint32_t	i = (j + n) * REGION_THREADS + threadIdx.x;
			place_outcome outcome = NOT_ASKED;

			if (i < pairs)
				outcome = region_put<L>(context.space,
										region_candidates<L>(context, pair[n].key).preferred,
										pair[n]);
			__syncwarp();
			full |= outcome == FULL ? 1u << (j + n) : 0;
			if (outcome == PRESENT)
				tell_equal<L>(context, (uint32_t) pair[n].value);
			__syncwarp();
		}
	}
	__syncthreads();			/* every key that finds room where it prefers is there */
	for (; __any_sync(ALL_LANES, full != 0); full &= full - 1)
	{
		uint32_t	i = ((uint32_t) __ffs((int) full) - 1) * REGION_THREADS + threadIdx.x;
		slot_pair<L> pair;
		region_buckets buckets = {};
		place_outcome outcome = NOT_ASKED;

		if (full != 0)
		{
			pair = *region_pair<L>(context.view, context.map, context.region, i);
			buckets = region_candidates<L>(context, pair.key);
			outcome = region_put<L>(context.space, buckets.other, pair);
		}
		__syncwarp();
		if (outcome == FULL && region_queue<L>(context, queued, pair, buckets.preferred) == QUEUE_NONE)
			context.counts->invalid = 1;
		else if (outcome == PRESENT)
			tell_equal<L>(context, (uint32_t) pair.value);
		__syncwarp();
	}
}

/* An entry on its way from slot to slot. */
template <typename L> struct moving_entry
{
	uint64_t	word;
	uint64_t	value;
};

/* Puts an entry into a free slot of a bucket; FILLED: it may be one that was used. */
template <typename L, bool FILLED> static __device__ __forceinline__ bool
region_settle(const region_space<L> &space, uint32_t bucket, const moving_entry<L> &entry)
{
	volatile uint64_t *slots = space.words + bucket * L::slots;

	for (uint32_t s = 0; s < L::slots; s++)
	{
		uint64_t   *slot = space.words + bucket * L::slots + s;
		uint64_t	seen = slots[s];

		if ((seen != L::empty_word && !(FILLED && seen == L::freed_word)) ||
			compare_and_swap(slot, seen, L::packed ? entry.word : L::busy_word) != seen)
			continue;
		if (!L::packed)
		{
			space.values[bucket * L::slots + s] = entry.value;
			__threadfence_block();	/* who sees the key sees the value */
			slots[s] = entry.word;
		}
		return true;
	}
	return false;
}

/* Of a region that was empty a bucket's slots are filled in their order. */
template <typename L, bool FILLED> static __device__ __forceinline__ bool
region_has_room(const region_space<L> &space, uint32_t bucket)
{
	const volatile uint64_t *slots = space.words + bucket * L::slots;
	bool		room = slots[L::slots - 1] == L::empty_word;

	if constexpr (FILLED)
#pragma unroll
		for (uint32_t s = 0; s < L::slots; s++)
		{
			uint64_t	word = slots[s];

			room |= word == L::empty_word || word == L::freed_word;
		}
	return room;
}

/* The other bucket of a key that is in this one. */
template <typename L> static __device__ __forceinline__ uint32_t
region_other(const region_context<L> &context, uint32_t bucket, typename L::key_type key)
{
	region_buckets buckets = region_candidates<L>(context, key);

	return buckets.preferred == bucket ? buckets.other : buckets.preferred;
}

/* Changes places with the entry of a slot; false: another thread owns that. */
template <typename L> static __device__ __forceinline__ bool
region_exchange(const region_space<L> &space, uint32_t number, moving_entry<L> *entry)
{
	uint64_t   *slot = space.words + number;
	uint64_t	held = exchange(slot, L::packed ? entry->word : L::busy_word);

	if (!L::packed)
	{
		uint64_t	value;

		if (held == L::busy_word)
			return false;
		__threadfence_block();	/* the value that came before the key */
		value = space.values[number];
		space.values[number] = entry->value;
		__threadfence_block();
		*static_cast<volatile uint64_t *>(slot) = entry->word;
		entry->value = value;
	}
	entry->word = held;
	return true;
}

/* What the lanes of a tile know of the entry that they move. */
template <typename L> struct tile_move
{
	moving_entry<L> entry;
	uint32_t	bucket;			/* where it is to be */
	uint32_t	steps;
	bool		moving;
};

/* The tile's next entry of the queue; QUEUE_NONE for a bucket: it was taken out. */
template <typename L> static __device__ __forceinline__ void
tile_fetch(const region_context<L> &context, uint32_t i, tile_move<L> *tile)
{
	const region_space<L> &space = context.space;

	tile->entry.word = space.queue_words[i];
	tile->entry.value = L::packed ? 0 : space.queue_values[i];
	tile->bucket = space.queue_bucket[i];
	tile->steps = 0;
	tile->moving = tile->bucket != QUEUE_NONE;
}

/* Of equal keys in the queue only the last of their list goes on. */
template <typename L> static __device__ __forceinline__ void
tile_pass_equal(const region_context<L> &context, uint32_t i, bool leader, tile_move<L> *tile)
{
	const region_space<L> &space = context.space;
	uint32_t	later = space.queue_next[i];

	while (later != QUEUE_NONE &&
		   L::key_of(space.queue_words[later]) != L::key_of(tile->entry.word))
		later = space.queue_next[later];
	tile->moving = later == QUEUE_NONE;
	if (!tile->moving && leader)
		tell_equal<L>(context, (uint32_t) (L::packed ? tile->entry.word >> 32 :
										   tile->entry.value));
}

/*
 * One step of each tile's entry: each lane looks whether the entry of one slot of the bucket
 * has room in its other bucket.  The lane of one that has, or of any, changes places.
 */
template <typename L, bool FILLED> static __device__ __forceinline__ void
tile_step(const region_context<L> &context, tile_move<L> *tile)
{
	const volatile uint64_t *slots = context.space.words + tile->bucket * L::slots;
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	slot = lane % L::slots;
	uint32_t	first = lane - slot;
	typename L::key_type key = tile->moving ? L::key_of(slots[slot]) : L::empty_key;
	uint32_t	other = L::special(key) ? 0 : region_other<L>(context, tile->bucket, key);
	bool		room = !L::special(key) && region_has_room<L, FILLED>(context.space, other);
	uint32_t	rooms = __ballot_sync(ALL_LANES, room) >> first & ((1u << L::slots) - 1);
	uint32_t	pick = rooms != 0 ? (uint32_t) __ffs((int) rooms) - 1 :
		((uint32_t) tile->entry.word * 0x9e3779b1u + tile->steps * 0x85ebca6bu) >> 16;
	bool		settled = false;

	pick %= L::slots;
	if (tile->moving && slot == pick &&
		region_exchange<L>(context.space, tile->bucket * L::slots + pick, &tile->entry))
	{
		/* it may be another one by now */
		tile->bucket = L::key_of(tile->entry.word) == key ? other :
			region_other<L>(context, tile->bucket, L::key_of(tile->entry.word));
		settled = region_settle<L, FILLED>(context.space, tile->bucket, tile->entry);
	}
	__syncwarp();
	/* the others hear of it */
	tile->entry.word = __shfl_sync(ALL_LANES, tile->entry.word, first + pick);
	if (!L::packed)
		tile->entry.value = __shfl_sync(ALL_LANES, tile->entry.value, first + pick);
	tile->bucket = __shfl_sync(ALL_LANES, tile->bucket, first + pick);
	tile->moving &= !__shfl_sync(ALL_LANES, settled, first + pick);
	tile->steps++;
}

/* Lists the queued by their buckets, so that equal keys are in the same list. */
template <typename L> static __device__ __forceinline__ void
region_link_queue(const region_context<L> &context, uint32_t queued)
{
	const region_space<L> &space = context.space;

	for (uint32_t i = threadIdx.x; i < queued; i += REGION_THREADS)
	{
		uint32_t	list = space.queue_bucket[i] % region_heads(context.map.queue);

		space.queue_next[i] = atomicExch(&space.heads[list], i);
	}
	__syncthreads();			/* the lists are whole */
}

/* What a region is that queued entries get into. */
enum region_kind
{
	REGION_EMPTY,				/* it was; equal keys may be in the queue */
	REGION_FILLED,				/* it had entries, and slots that are free again */
	REGION_COUNTED				/* as empty, and no keys of the queue are equal (build_region.cuh) */
};

/*
 * The phase "move", a tile of as many lanes as a bucket has slots for each queued entry.
 * What is left in hand in the end is listed; of a region that was filled, then *full; of one that is
 * counted, it is left out.
 */
template <typename L, region_kind KIND> static __device__ __forceinline__ void
region_move_queued(const region_context<L> &context, uint32_t queued, uint32_t *taken,
				   bool *full)
{
	constexpr bool FILLED = KIND == REGION_FILLED;
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	first = lane / L::slots * L::slots;
	tile_move<L> tile = {};
	uint32_t	next = 0;

	while (__any_sync(ALL_LANES, tile.moving || next < queued))
	{
		if (!tile.moving && next < queued && lane == first)
			next = atomicAdd(taken, 1u);
		__syncwarp();
		next = __shfl_sync(ALL_LANES, next, first);
		if (!tile.moving && next < queued)
		{
			tile_fetch<L>(context, next, &tile);
			if (KIND == REGION_EMPTY)
				tile_pass_equal<L>(context, next, lane == first, &tile);
		}
		__syncwarp();
		tile_step<L, FILLED>(context, &tile);
		if (tile.moving && tile.steps == REGION_STEPS)
		{
			tile.moving = false;
			if (FILLED)
				*full = true;
			else if (KIND == REGION_EMPTY && lane == first)
				leave_over<L>(context.map.leftover, L::key_of(tile.entry.word),
							  (typename L::key_type) (L::packed ? tile.entry.word >> 32 :
													  tile.entry.value), 0, context.counts);
		}
		__syncwarp();
	}
}

/* The phase "store"; counts the entries of each subtable. */
template <typename L> static __device__ __forceinline__ void
region_store(const region_context<L> &context, uint32_t *entries)
{
	const region_space<L> &space = context.space;
	uint32_t	before = 0;

	for (uint32_t sub = 0; sub < context.view.subtables; sub++)
	{
		uint32_t	run = context.map.run[sub];
		fragment   *to = reinterpret_cast<fragment *>(
			context.view.sub[sub].slots + (uint64_t) context.region * run * L::slot_bytes);
		uint32_t	used = 0;

		for (uint32_t i = threadIdx.x; i < run / L::lane_slots; i += REGION_THREADS)
		{
			ulonglong2	out;

			if (L::packed)
				out = *reinterpret_cast<const ulonglong2 *>(space.words + before + 2 * i);
			else
			{
				out.x = space.words[before + i];
				/* beside a free key stands blank_value's */
				out.y = out.x == L::empty_word ? ~UINT64_C(0) : space.values[before + i];
			}
			used += out.x != L::empty_word ? 1 : 0;
			used += L::packed && out.y != L::empty_word ? 1 : 0;
			to[i] = make_uint4((uint32_t) out.x, (uint32_t) (out.x >> 32), (uint32_t) out.y,
							   (uint32_t) (out.y >> 32));
		}
		used = warp_sum(used);
		if ((threadIdx.x & 31) == 0 && used != 0)
			atomicAdd(&entries[sub], used);
		before += run;
	}
}

#endif							/* GPUHASH_REGION_CUH */
