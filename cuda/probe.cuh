/*
 * probe.cuh
 *		Device functions that several operations share: looking a key up, and
 *		counting with one atomic per block.
 */
#ifndef GPUHASH_PROBE_CUH
#define GPUHASH_PROBE_CUH

#include "layout.cuh"
#include "memory.cuh"

/* Where an entry is; slot is NULL when it is not in the table. */
struct entry_place
{
	uint64_t   *slot;			/* key word */
	uint32_t	sub;			/* subtable that counts it */
};

static __device__ __forceinline__ bool
key_is_special(uint64_t key)
{
	return key >= SLOT_BUSY;
}

/* The key word of a special key in the side bucket. */
static __device__ __forceinline__ uint64_t *
side_slot(const table_view &view, uint64_t key)
{
	return view.side + (key == SLOT_EMPTY ? 0 : 1);
}

static __device__ __forceinline__ uint64_t *
bucket_at(const table_view &view, uint32_t sub, uint64_t hash)
{
	return view.sub[sub].words +
		hash_bucket(hash, view.sub[sub].seed, view.sub[sub].mask) * view.bucket_words;
}

/* The key's slot in a bucket, or NULL. */
static __device__ __forceinline__ uint64_t *
bucket_find(uint64_t *bucket, uint64_t key)
{
	uint64_t   *slot = nullptr;

	/* all four loads first: they are independent and travel together */
#pragma unroll
	for (int i = 0; i < BUCKET_SLOTS; i += 2)
	{
		word_pair	pair = load_pair(bucket + i);

		if (pair.x == key)
			slot = bucket + i;
		if (pair.y == key)
			slot = bucket + i + 1;
	}
	return slot;
}

/*
 * Looks the key up.  No kernel that uses this inserts or moves entries, so
 * plain loads do: what is there was written by earlier kernels.
 */
static __device__ __forceinline__ entry_place
table_find(const table_view &view, uint64_t key)
{
	entry_place place = {nullptr, 0};

	if (key_is_special(key))
	{
		uint64_t   *slot = side_slot(view, key);

		if (*slot == SIDE_PRESENT)
			place.slot = slot;
		return place;
	}

	uint64_t	hash = hash_key(view.seed, key);
	subtable_pair pair = hash_pair(hash_pair_index(hash, view.pairs));

	place.sub = pair.a;
	place.slot = bucket_find(bucket_at(view, pair.a, hash), key);
	if (place.slot == nullptr)
	{
		place.sub = pair.b;
		place.slot = bucket_find(bucket_at(view, pair.b, hash), key);
	}
	return place;
}

/*
 * Adds every thread's amount to a counter, one atomic per block.  All threads
 * of the block must come here: it has barriers.
 */
static __device__ __forceinline__ void
block_add(uint64_t *counter, uint64_t amount)
{
	__shared__ uint64_t sum;

	if (threadIdx.x == 0)
		sum = 0;
	__syncthreads();			/* nobody adds before the zero is there */
	if (amount != 0)
		add_relaxed(&sum, amount);
	__syncthreads();			/* all have added */
	if (threadIdx.x == 0 && sum != 0)
		add_relaxed(counter, sum);
	__syncthreads();			/* a second call may zero it now */
}

/*
 * Entries gained and lost per subtable, counted in shared memory by a block
 * and added to the counters at the end.  begin and end are for all threads.
 */
struct block_gains
{
	int		   *gained;			/* shared, GH_SUBTABLES_MAX */

	__device__ __forceinline__ void
	begin(int *shared)
	{
		gained = shared;
		if (threadIdx.x < GH_SUBTABLES_MAX)
			gained[threadIdx.x] = 0;
		__syncthreads();		/* nobody counts before the zeroes are there */
	}

	__device__ __forceinline__ void
	add(uint32_t sub, int amount)
	{
		atomicAdd(&gained[sub], amount);
	}

	__device__ __forceinline__ void
	end(counters *count)
	{
		__syncthreads();		/* all have counted */
		if (threadIdx.x < GH_SUBTABLES_MAX && gained[threadIdx.x] != 0)
			add_relaxed(&count->gained[threadIdx.x],
						(uint64_t) (int64_t) gained[threadIdx.x]);
	}
};

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
