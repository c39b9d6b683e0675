/*
 * memory.cuh
 *		Loads, stores and atomics with a stated memory order, for words that
 *		other threads of the same kernel change.
 *
 * A plain load may be served from the multiprocessor's own L1 cache, which
 * stores of other multiprocessors do not update; a relaxed load at device scope
 * goes to L2, where stores and atomics meet.  What an earlier kernel of the
 * stream wrote needs none of this: kernel boundaries order everything.
 */
#ifndef GPUHASH_MEMORY_CUH
#define GPUHASH_MEMORY_CUH

#include <cuda_runtime.h>
#include <stdint.h>

struct word_pair
{
	uint64_t	x;
	uint64_t	y;
};

static __device__ __forceinline__ uint64_t
load_relaxed(const uint64_t *word)
{
	uint64_t	value;

	asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
}

static __device__ __forceinline__ uint32_t
load_relaxed(const uint32_t *word)
{
	uint32_t	value;

	asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
	return value;
}

/* Two words at a 16-byte boundary; each is read whole, the two not at once. */
static __device__ __forceinline__ word_pair
load_pair_relaxed(const uint64_t *words)
{
	word_pair	pair;

	asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];"
				 : "=l"(pair.x), "=l"(pair.y) : "l"(words) : "memory");
	return pair;
}

/* Two words at a 16-byte boundary that no thread of this kernel cares about losing a race on. */
static __device__ __forceinline__ word_pair
load_pair(const uint64_t *words)
{
	ulonglong2	raw = *reinterpret_cast<const ulonglong2 *>(words);
	word_pair	pair = {raw.x, raw.y};

	return pair;
}

static __device__ __forceinline__ void
store_relaxed(uint64_t *word, uint64_t value)
{
	asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

/* What this thread did before is seen by whoever reads the word and fences. */
static __device__ __forceinline__ void
store_release(uint64_t *word, uint64_t value)
{
	asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

/* Returns what the word held; it was replaced when that equals expected. */
static __device__ __forceinline__ uint64_t
compare_and_swap(uint64_t *word, uint64_t expected, uint64_t desired)
{
	return atomicCAS(reinterpret_cast<unsigned long long *>(word),
					 (unsigned long long) expected, (unsigned long long) desired);
}

static __device__ __forceinline__ void
add_relaxed(uint64_t *word, uint64_t amount)
{
	atomicAdd(reinterpret_cast<unsigned long long *>(word), (unsigned long long) amount);
}

/*
 * The next index of a list under construction.  The lanes that arrive together
 * take theirs with one atomic, so that appending does not queue on one word.
 */
static __device__ __forceinline__ uint32_t
append_index(uint32_t *used)
{
	uint32_t	together = __activemask();
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	leader = (uint32_t) __ffs((int) together) - 1;
	uint32_t	first = 0;

	if (lane == leader)
		first = atomicAdd(used, (uint32_t) __popc(together));
	first = __shfl_sync(together, first, (int) leader);
	return first + (uint32_t) __popc(together & ((1u << lane) - 1));
}

#endif							/* GPUHASH_MEMORY_CUH */
