/*
 * region_claim.cuh
 *		region_kernel: the regions of an empty table, each built in shared memory by one block.
 *
 * The phases are those of region.cuh. As long as no two keys of a region are equal, slots need not be
 * searched: a bucket has a counter, whose old value is the number of the slot that a pair gets.
 *
 *	prefer	a pair takes a slot of the bucket that its key prefers, or is listed if there is none left
 *	other	who is listed takes a slot of its other bucket, or is queued
 *	check	no bucket has a key twice, nor has the preferred bucket of a key that was listed, nor
 *			either bucket of one that is queued.  Equal keys in the queue are seen while it is worked off
 *
 * Where two keys are equal the region is begun again, by region_fill, which finds out which of them came
 * second: pairs are still where they were read.  So is a region whose list is too short.
 *
 * Counters and list are where the queue's lists and words will be, which are used later: counters until
 * all have claimed, the list until its threads have read it.
 */
#ifndef GPUHASH_REGION_CLAIM_CUH
#define GPUHASH_REGION_CLAIM_CUH

#include "cuda/table/region.cuh"

/* Blocks of a multiprocessor where shared memory does not let more. */
#define REGION_BLOCKS_FEW 2
/* Bytes that a thread reads at a time: as many as it has registers for. */
#define CLAIM_BYTES 64
#define CLAIM_BYTES_FEW 128

/* Listed pairs of a thread, at most. */
#define CLAIM_LISTED 4

/* What phases of a block share that claims slots by counters. */
struct claim_space
{
	uint32_t   *claims;			/* two buckets a word */
	uint16_t   *listed;			/* pairs whose preferred buckets are full */
	uint32_t	list_room;
};

template <typename L> static __device__ __forceinline__ claim_space
claim_carve(const region_space<L> &space, uint32_t queue)
{
	uint32_t	room = queue * (uint32_t) (sizeof(uint64_t) / sizeof(uint16_t));

	return {space.queue_next, reinterpret_cast<uint16_t *>(space.queue_words),
		room < CLAIM_LISTED * REGION_THREADS ? room : CLAIM_LISTED * REGION_THREADS};
}

/* Puts a pair into a bucket, if it has a slot left. */
template <typename L> static __device__ __forceinline__ bool
claim_slot(const region_space<L> &space, uint32_t *claims, uint32_t bucket, const slot_pair<L> &pair)
{
	uint32_t	shift = bucket % 2 * 16;
	uint32_t	slot = atomicAdd(&claims[bucket / 2], 1u << shift) >> shift & 0xffff;

	if (slot >= L::slots)
		return false;
	slot += bucket * L::slots;
	space.words[slot] = L::make_word(pair.key, pair.value);
	if (!L::packed)
		space.values[slot] = pair.value;
	return true;
}

/* The phase "prefer". */
template <typename L, uint32_t READS> static __device__ __forceinline__ void
claim_preferred(const region_context<L> &context, const claim_space &claim, uint32_t pairs, uint32_t *listed)
{
	for (uint32_t j = 0; j < pairs; j += READS * REGION_THREADS)
	{
		slot_pair<L> pair[READS];

		/* all loads first: they travel together */
#pragma unroll
		for (uint32_t n = 0; n < READS; n++)
		{
			uint32_t	i = j + n * REGION_THREADS + threadIdx.x;

			if (i < pairs)
				pair[n] = *region_pair<L>(context.view, context.map, context.region, i);
		}
#pragma unroll
		for (uint32_t n = 0; n < READS; n++)
		{
			uint32_t	i = j + n * REGION_THREADS + threadIdx.x;

			if (i < pairs && !claim_slot<L>(context.space, claim.claims,
											region_candidates<L>(context, pair[n].key).preferred, pair[n]))
			{
				uint32_t	index = append_index(listed);

				if (index < claim.list_room)
					claim.listed[index] = (uint16_t) i;
			}
			__syncwarp();
		}
	}
}

/* The phase "other", and of "check" what concerns preferred buckets; *again: a key was there. */
template <typename L> static __device__ __forceinline__ void
claim_other(const region_context<L> &context, const claim_space &claim, uint32_t listed, uint32_t *queued,
			bool *again)
{
	uint32_t	number[CLAIM_LISTED];

#pragma unroll
	for (uint32_t n = 0; n < CLAIM_LISTED; n++)
	{
		uint32_t	i = n * REGION_THREADS + threadIdx.x;

		number[n] = i < listed ? claim.listed[i] : 0;
	}
	__syncthreads();			/* the queue may be written over the list */
#pragma unroll
	for (uint32_t n = 0; n < CLAIM_LISTED; n++)
		if (n * REGION_THREADS + threadIdx.x < listed)
		{
			slot_pair<L> pair = *region_pair<L>(context.view, context.map, context.region, number[n]);
			region_buckets buckets = region_candidates<L>(context, pair.key);

			if (look_at_bucket<L, false>(context.space, buckets.preferred, pair.key).match != 0)
				*again = true;
			if (!claim_slot<L>(context.space, claim.claims, buckets.other, pair) &&
				region_queue<L>(context, queued, pair, buckets.preferred) == QUEUE_NONE)
				*again = true;
		}
}

/* The rest of the phase "check". */
template <typename L> static __device__ __forceinline__ void
claim_check(const region_context<L> &context, uint32_t queued, bool *again)
{
	const region_space<L> &space = context.space;

	for (uint32_t bucket = threadIdx.x; bucket < context.map.slots / L::slots; bucket += REGION_THREADS)
	{
		typename L::key_type key[L::slots];
		bool		equal = false;

#pragma unroll
		for (uint32_t n = 0; n < L::slots / 2; n++)
		{
			/* lanes whose buckets are in the same banks begin at different slots */
			uint32_t	s = (n + threadIdx.x / (16 / L::slots)) % (L::slots / 2) * 2;
			ulonglong2	two = *reinterpret_cast<const ulonglong2 *>(space.words + bucket * L::slots + s);

			key[2 * n] = L::key_of(two.x);
			key[2 * n + 1] = L::key_of(two.y);
		}
#pragma unroll
		for (uint32_t s = 1; s < L::slots; s++)
#pragma unroll
			for (uint32_t before = 0; before < s; before++)
				equal |= key[s] == key[before] && key[s] != L::empty_key;
		if (equal)
			*again = true;
	}
	for (uint32_t i = threadIdx.x; i < queued; i += REGION_THREADS)
	{
		typename L::key_type key = L::key_of(space.queue_words[i]);
		uint32_t	other = region_candidates<L>(context, key).other;

		if (look_at_bucket<L, false>(space, other, key).match != 0)
			*again = true;
	}
}

/* No slot is taken, no list has anything. */
template <typename L> static __device__ __forceinline__ void
region_clear(const region_context<L> &context)
{
	ulonglong2 *words = reinterpret_cast<ulonglong2 *>(context.space.words);

	for (uint32_t i = threadIdx.x; i < context.map.slots / 2; i += REGION_THREADS)
		words[i] = make_ulonglong2(L::empty_word, L::empty_word);
}

template <typename L> static __device__ __forceinline__ void
region_clear_heads(const region_context<L> &context)
{
	for (uint32_t i = threadIdx.x; i < region_heads(context.map.queue); i += REGION_THREADS)
		context.space.heads[i] = QUEUE_NONE;
	__syncthreads();			/* before who links or fills */
}

/* Counters of a block. */
struct region_counts
{
	uint32_t	queued;
	uint32_t	taken;			/* of those */
	uint32_t	listed;
	bool		again;			/* the region is to be filled again */
	bool		useless;
};

/* All pairs get slots or are queued. */
template <typename L, uint32_t READS> static __device__ __forceinline__ void
region_place(const region_context<L> &context, region_counts *block)
{
	uint32_t	pairs = context.map.filled[context.region];
	claim_space claim = claim_carve<L>(context.space, context.map.queue);

	claim_preferred<L, READS>(context, claim, pairs, &block->listed);
	__syncthreads();			/* every key that finds room where it prefers is there */
	if (block->listed <= claim.list_room)
	{
		claim_other<L>(context, claim, block->listed, &block->queued, &block->again);
		__syncthreads();		/* all are placed or queued */
		claim_check<L>(context, block->queued < context.map.queue ? block->queued : context.map.queue,
					   &block->again);
	}
	else if (threadIdx.x == 0)
		block->again = true;
	region_clear_heads<L>(context);
	if (!block->again)
		return;
	region_clear<L>(context);
	if (threadIdx.x == 0)
		block->queued = 0;
	__syncthreads();			/* the region is empty */
	region_fill<L>(context, pairs, &block->queued);
	__syncthreads();			/* all are placed or queued, and all values are there */
}

/*
 * A block for each region.  Batches that are given up need not be built.  FEW: no more than
 * REGION_BLOCKS_FEW fit a multiprocessor.
 */
template <typename L, bool FEW> static __global__ void
__launch_bounds__(REGION_THREADS, FEW ? REGION_BLOCKS_FEW : REGION_BLOCKS)
region_kernel(const __grid_constant__ table_view view, const __grid_constant__ region_map map,
			  const __grid_constant__ equal_list equals, counters *counts)
{
	extern __shared__ __align__(16) char shared[];
	__shared__ region_counts block;
	__shared__ uint32_t entries[GH_SUBTABLES_MAX];
	__shared__ region_geometry geometry;
	static_assert(sizeof(geometry) + sizeof(entries) + sizeof(block) <= REGION_FIXED_BYTES,
				  "they are counted");
	region_context<L> context = {view, map, equals, counts, blockIdx.x, &geometry,
		region_carve<L>(shared, map.slots, map.queue)};
	uint32_t   *claims = claim_carve<L>(context.space, map.queue).claims;
	uint32_t	queued;
	uint32_t	sum = 0;

	if (threadIdx.x == 0)
	{
		block = {};
		block.useless = load_relaxed(&counts->invalid) != 0 ||
			(equals.positions == nullptr && load_relaxed(&counts->present) != 0);
	}
	region_measure<L>(view, map, blockIdx.x, &geometry);
	if (threadIdx.x < GH_SUBTABLES_MAX)
		entries[threadIdx.x] = 0;
	region_clear<L>(context);
	for (uint32_t i = threadIdx.x; i < (map.slots / L::slots + 1) / 2; i += REGION_THREADS)
		claims[i] = 0;
	__syncthreads();			/* the region is empty */
	if (block.useless)
		return;
	region_place<L, (FEW ? CLAIM_BYTES_FEW : CLAIM_BYTES) / L::slot_bytes>(context, &block);
	queued = block.queued < map.queue ? block.queued : map.queue;
	region_link_queue<L>(context, queued);
	region_move_queued<L, REGION_EMPTY>(context, queued, &block.taken, nullptr);
	__syncthreads();			/* nothing moves any more */
	region_store<L>(context, entries);
	__syncthreads();			/* all have counted */
	if (threadIdx.x != 0)
		return;
	for (uint32_t sub = 0; sub < view.subtables; sub++)
	{
		sum += entries[sub];
		add_relaxed(&counts->gained[sub], entries[sub]);
	}
	add_relaxed(&counts->inserted, sum);
}

#endif							/* GPUHASH_REGION_CLAIM_CUH */
