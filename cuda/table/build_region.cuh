/*
 * build_region.cuh
 *		count_kernel: the regions of an empty multi table, each with its records and values by one block.
 *
 *	count	each pair of the region's list finds its key's slot, or takes the first free one of the key's
 *			buckets; slots count their pairs.  A key whose buckets are full is queued once, and counted there
 *	move	queued keys get slots, and their counts with them (region.cuh)
 *	scan	of the counts, which gives each key its record and its first value's place
 *	fill	each pair finds its slot again, and its value takes the key's next place
 *	store	the region in whole lines, each slot with its record's number
 *
 * A region's records and values lie together, where two counters have room for them.  Pairs whose key
 * has no slot in the end are listed, as keys with patterns of their own are: they are added afterwards.
 *
 * Equal keys: as in region.cuh until keys are queued, which they are if both buckets are full of others.
 * Equal ones go to one list of the queue, whose head is changed by who has looked through it.
 */
#ifndef GPUHASH_BUILD_REGION_CUH
#define GPUHASH_BUILD_REGION_CUH

#include "cuda/table/region.cuh"

/* Pairs of which a thread keeps a bit each. */
#define COUNT_PAIRS (32 * REGION_THREADS)
/* Shared memory of a block beside what its launch asks for, at most. */
#define COUNT_FIXED_BYTES 1024

#define SLOT_NONE UINT32_MAX

/* Where records and values go. */
struct store_view
{
	value_record *records;
	char	   *values;
};

typedef cub::BlockScan<uint64_t, REGION_THREADS, cub::BLOCK_SCAN_WARP_SCANS> slot_scan;

/* The word that counts, by slot and by place of the queue; in the end the slot's is its value. */
template <typename L> static __device__ __forceinline__ uint32_t *
count_word(uint64_t *words, uint64_t *values, uint32_t number)
{
	return L::packed ? reinterpret_cast<uint32_t *>(words + number) + 1 :
		reinterpret_cast<uint32_t *>(values + number);
}

template <typename L> static __device__ __forceinline__ uint32_t *
slot_count(const region_space<L> &space, uint32_t slot)
{
	return count_word<L>(space.words, space.values, slot);
}

template <typename L> static __device__ __forceinline__ uint32_t *
queue_count(const region_space<L> &space, uint32_t place)
{
	return count_word<L>(space.queue_words, space.queue_values, place);
}

/* The slot of a key in a bucket, found or taken; SLOT_NONE: all are others'. */
template <typename L> static __device__ __forceinline__ uint32_t
count_put(const region_space<L> &space, uint32_t bucket, typename L::key_type key)
{
	bucket_look look = look_at_bucket<L, false>(space, bucket, key);
	uint32_t	first = bucket * L::slots;

	if (look.match != 0)
		return first + (uint32_t) __ffs((int) look.match) - 1;
	for (; look.free != 0; look.free &= look.free - 1)
	{
		uint32_t	slot = first + (uint32_t) __ffs((int) look.free) - 1;
		uint64_t	held = compare_and_swap(&space.words[slot], L::empty_word, L::make_word(key, 0));

		if (held == L::empty_word || L::key_of(held) == key)
			return slot;
	}
	return SLOT_NONE;
}

/* Counts a key in the queue, for which it is there or comes to be. */
template <typename L> static __device__ void
count_queued(const region_context<L> &context, uint32_t *queued, typename L::key_type key,
			 uint32_t preferred)
{
	const region_space<L> &space = context.space;
	uint32_t   *head = &space.heads[preferred % region_heads(context.map.queue)];
	uint32_t	seen = *static_cast<volatile uint32_t *>(head);
	uint32_t	mine = QUEUE_NONE;

	for (;;)
	{
		uint32_t	held;

		for (uint32_t i = seen; i != QUEUE_NONE; i = static_cast<volatile uint32_t *>(space.queue_next)[i])
			if (L::key_of(static_cast<volatile uint64_t *>(space.queue_words)[i]) == key)
			{
				atomicAdd(queue_count<L>(space, i), 1u);
				/* another has come first */
				if (mine != QUEUE_NONE)
					space.queue_bucket[mine] = QUEUE_NONE;
				return;
			}
		if (mine == QUEUE_NONE)
		{
			mine = append_index(queued);
			if (mine >= context.map.queue)
			{
				context.counts->invalid = 1;
				return;
			}
			space.queue_bucket[mine] = preferred;
			space.queue_words[mine] = L::make_word(key, 1);
			if (!L::packed)
				space.queue_values[mine] = 1;
		}
		space.queue_next[mine] = seen;
		__threadfence_block();	/* who sees the head sees the entry */
		held = atomicCAS(head, seen, mine);
		if (held == seen)
			return;
		seen = held;
	}
}

/* The phase "count" of so many pairs, COUNT_PAIRS at most. */
template <typename L> static __device__ __forceinline__ void
count_part(const region_context<L> &context, const slot_pair<L> *pairs, uint32_t count, uint32_t *queued)
{
	typedef typename L::key_type key_type;
	uint32_t	full = 0;		/* a bit for each pair of the thread */

	for (uint32_t j = 0; j * REGION_THREADS < count; j += REGION_READS)
	{
		key_type	key[REGION_READS];

		/* all loads first: they travel together */
#pragma unroll
		for (uint32_t n = 0; n < REGION_READS; n++)
		{
			uint32_t	i = (j + n) * REGION_THREADS + threadIdx.x;

			if (i < count)
				key[n] = pairs[i].key;
		}
#pragma unroll
		for (uint32_t n = 0; n < REGION_READS; n++)
		{
			uint32_t	i = (j + n) * REGION_THREADS + threadIdx.x;

			if (i < count)
			{
				uint32_t	slot = count_put<L>(context.space, region_candidates<L>(context, key[n]).preferred,
												key[n]);

				if (slot != SLOT_NONE)
					atomicAdd(slot_count<L>(context.space, slot), 1u);
				else
					full |= 1u << (j + n);
			}
			__syncwarp();
		}
	}
	for (; __any_sync(ALL_LANES, full != 0); full &= full - 1)
	{
		if (full != 0)
		{
			key_type	key = pairs[((uint32_t) __ffs((int) full) - 1) * REGION_THREADS + threadIdx.x].key;
			region_buckets buckets = region_candidates<L>(context, key);
			uint32_t	slot = count_put<L>(context.space, buckets.other, key);

			if (slot != SLOT_NONE)
				atomicAdd(slot_count<L>(context.space, slot), 1u);
			else
				count_queued<L>(context, queued, key, buckets.preferred);
		}
		__syncwarp();
	}
}

/* What a slot adds to the sums: its key's record above, its values below. */
template <typename L> static __device__ __forceinline__ uint64_t
slot_sum(const region_space<L> &space, uint32_t slot, uint32_t slots, bool values)
{
	if (slot >= slots || L::key_of(space.words[slot]) == L::empty_key)
		return 0;
	return (uint64_t) 1 << 32 | (values ? *slot_count<L>(space, slot) : 0);
}

/* How many records and values the region has, to all threads.  *total is zero before. */
template <typename L> static __device__ __forceinline__ uint64_t
region_sum(const region_context<L> &context, uint64_t *total)
{
	uint64_t	sum = 0;

	for (uint32_t slot = threadIdx.x; slot < context.map.slots; slot += REGION_THREADS)
		sum += slot_sum<L>(context.space, slot, context.map.slots, true);
	sum = warp_sum(sum);
	if ((threadIdx.x & 31) == 0)
		atomicAdd(reinterpret_cast<unsigned long long *>(total), (unsigned long long) sum);
	__syncthreads();			/* all have added */
	return *total;
}

/*
 * The phase "scan": records are written, and slots have in the place of their counts where their values
 * begin.  NUMBERS: afterwards, once more, for slots to have their records' numbers.
 */
template <typename L, bool NUMBERS> static __device__ __forceinline__ void
region_scan(const region_context<L> &context, const store_view &store, uint64_t record_first,
			uint64_t value_first, typename slot_scan::TempStorage &space)
{
	uint64_t	before = 0;

	for (uint32_t base = 0; base < context.map.slots; base += REGION_THREADS)
	{
		uint32_t	slot = base + threadIdx.x;
		uint64_t	mine = slot_sum<L>(context.space, slot, context.map.slots, !NUMBERS);
		uint64_t	start;
		uint64_t	total;

		slot_scan(space).ExclusiveSum(mine, start, total);
		start += before;
		before += total;
		if (mine != 0 && NUMBERS)
			*slot_count<L>(context.space, slot) = (uint32_t) (record_first + (start >> 32));
		else if (mine != 0)
		{
			uint64_t	values = (uint32_t) mine;

			store.records[record_first + (start >> 32)] = {
				store.values + (value_first + (uint32_t) start) * sizeof(typename L::key_type), values, values};
			*slot_count<L>(context.space, slot) = (uint32_t) start;
		}
		__syncthreads();		/* the scan's memory is used again */
	}
}

/* The phase "fill" */
template <typename L> static __device__ __forceinline__ void
region_fill_values(const region_context<L> &context, const slot_pair<L> *pairs, uint32_t count, char *values)
{
	typedef typename L::key_type key_type;
	const region_space<L> &space = context.space;

	for (uint32_t j = 0; j < count; j += REGION_READS * REGION_THREADS)
	{
		slot_pair<L> pair[REGION_READS];

#pragma unroll
		for (uint32_t n = 0; n < REGION_READS; n++)
		{
			uint32_t	i = j + n * REGION_THREADS + threadIdx.x;

			if (i < count)
				pair[n] = pairs[i];
		}
#pragma unroll
		for (uint32_t n = 0; n < REGION_READS; n++)
		{
			if (j + n * REGION_THREADS + threadIdx.x < count)
			{
				region_buckets buckets = region_candidates<L>(context, pair[n].key);
				uint32_t	bucket = buckets.preferred;
				uint32_t	match = look_at_bucket<L, false>(space, bucket, pair[n].key).match;

				if (match == 0)
				{
					bucket = buckets.other;
					match = look_at_bucket<L, false>(space, bucket, pair[n].key).match;
				}
				if (match != 0)
				{
					uint32_t	slot = bucket * L::slots + (uint32_t) __ffs((int) match) - 1;

					reinterpret_cast<key_type *>(values)[atomicAdd(slot_count<L>(space, slot), 1u)] =
						pair[n].value;
				}
				else
					leave_over<L>(context.map.leftover, pair[n].key, pair[n].value, 0, context.counts);
			}
			__syncwarp();
		}
	}
}

/* A block for each region.  Batches that are given up need not be built. */
template <typename L> static __global__ void __launch_bounds__(REGION_THREADS, REGION_BLOCKS)
count_kernel(const __grid_constant__ table_view view, const __grid_constant__ region_map map,
			 const __grid_constant__ store_view store, const __grid_constant__ equal_list equals, counters *counts)
{
	extern __shared__ __align__(16) char shared[];
	__shared__ uint32_t queued;
	__shared__ uint32_t taken;	/* of those */
	__shared__ uint32_t entries[GH_SUBTABLES_MAX];
	__shared__ bool useless;
	__shared__ region_geometry geometry;
	__shared__ uint64_t total;
	__shared__ uint64_t first[2];	/* record and value of the region */
	__shared__ typename slot_scan::TempStorage scan_space;
	static_assert(sizeof(geometry) + sizeof(entries) + sizeof(scan_space) + 64 <= COUNT_FIXED_BYTES,
				  "they are counted");
	region_context<L> context = {view, map, equals, counts, blockIdx.x, &geometry,
		region_carve<L>(shared, map.slots, map.queue)};
	const slot_pair<L> *pairs = static_cast<const slot_pair<L> *>(map.lists.pairs) +
		(uint64_t) blockIdx.x * map.lists.room;
	uint32_t	count = map.filled[blockIdx.x];
	uint32_t	queue;
	uint64_t	sum;

	if (threadIdx.x == 0)
	{
		queued = 0;
		taken = 0;
		total = 0;
		useless = load_relaxed(&counts->invalid) != 0 || count > map.lists.room;
	}
	region_measure<L>(view, map, blockIdx.x, &geometry);
	if (threadIdx.x < GH_SUBTABLES_MAX)
		entries[threadIdx.x] = 0;
	for (uint32_t i = threadIdx.x; i < map.slots; i += REGION_THREADS)
	{
		context.space.words[i] = L::empty_word;
		if (!L::packed)
			context.space.values[i] = 0;
	}
	for (uint32_t i = threadIdx.x; i < region_heads(map.queue); i += REGION_THREADS)
		context.space.heads[i] = QUEUE_NONE;
	__syncthreads();			/* the region is empty */
	if (useless)
		return;
	for (uint32_t done = 0; done < count; done += COUNT_PAIRS)
		count_part<L>(context, pairs + done, count - done < COUNT_PAIRS ? count - done : COUNT_PAIRS, &queued);
	__syncthreads();			/* all are counted */
	queue = queued < map.queue ? queued : map.queue;
	region_move_queued<L, REGION_COUNTED>(context, queue, &taken, nullptr);
	__syncthreads();			/* nothing moves any more */
	sum = region_sum<L>(context, &total);
	if (threadIdx.x == 0)
	{
		first[0] = atomicAdd(&counts->appended, (uint32_t) (sum >> 32));
		first[1] = atomicAdd(reinterpret_cast<unsigned long long *>(&counts->values),
							 (unsigned long long) (uint32_t) sum);
	}
	__syncthreads();			/* it is known where they go */
	region_scan<L, false>(context, store, first[0], first[1], scan_space);
	region_fill_values<L>(context, pairs, count, store.values + first[1] * sizeof(typename L::key_type));
	__syncthreads();			/* no values come any more */
	region_scan<L, true>(context, store, first[0], first[1], scan_space);
	region_store<L>(context, entries);
	__syncthreads();			/* all have counted */
	if (threadIdx.x != 0)
		return;
	for (uint32_t sub = 0; sub < view.subtables; sub++)
		add_relaxed(&counts->gained[sub], entries[sub]);
	add_relaxed(&counts->inserted, sum >> 32);
}

#endif							/* GPUHASH_BUILD_REGION_CUH */
