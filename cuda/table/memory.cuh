/*
 * memory.cuh
 *		Loads, stores and atomics with a stated memory order, for words that
 *		other threads of the same kernel change; and copies of values.
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

/* Two words at a 16-byte boundary. */
struct __align__(16) word_pair
{
	uint64_t	x;
	uint64_t	y;
};

/* 16 bytes at once, never in parts, though other threads store there. */
static __device__ __forceinline__ word_pair
load_whole(const void *place)
{
	word_pair	words;

	asm volatile("{\n\t"
				 ".reg .b128 held;\n\t"
				 "ld.relaxed.gpu.global.b128 held, [%2];\n\t"
				 "mov.b128 {%0, %1}, held;\n\t"
				 "}"
				 : "=l"(words.x), "=l"(words.y) : "l"(__cvta_generic_to_global(place)) : "memory");
	return words;
}

/* The same of a store. */
static __device__ __forceinline__ void
store_whole(void *place, word_pair words)
{
	asm volatile("{\n\t"
				 ".reg .b128 held;\n\t"
				 "mov.b128 held, {%1, %2};\n\t"
				 "st.relaxed.gpu.global.b128 [%0], held;\n\t"
				 "}"
				 : : "l"(__cvta_generic_to_global(place)), "l"(words.x), "l"(words.y) : "memory");
}

static __device__ __forceinline__ void
store_relaxed(uint64_t *word, uint64_t value)
{
	asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void
store_relaxed(uint32_t *word, uint32_t value)
{
	asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}

/*
 * 16 bytes of a bucket, not kept in L1, which random reads would only churn.
 * Words that other threads change are read whole, but maybe late.
 */
static __device__ __forceinline__ uint4
load_fragment(const void *place)
{
	return __ldcg(static_cast<const uint4 *>(place));
}

/* Of many that are read once or seldom: it leaves the cache of a multiprocessor before all else. */
static __device__ __forceinline__ uint64_t
load_passing(const uint64_t *place)
{
	uint64_t	word;

	asm("ld.global.L1::evict_first.u64 %0, [%1];" : "=l"(word) : "l"(__cvta_generic_to_global(place)));
	return word;
}

/* Brings a place's line to L2; nobody waits for it. */
static __device__ __forceinline__ void
prefetch(const void *place)
{
	asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(place)));
}

/* What this thread did before is seen by whoever reads the word and fences. */
static __device__ __forceinline__ void
store_release(uint64_t *word, uint64_t value)
{
	asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void
store_release(uint32_t *word, uint32_t value)
{
	asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}

/* Returns what the word held; it was replaced when that equals expected. */
static __device__ __forceinline__ uint64_t
compare_and_swap(uint64_t *word, uint64_t expected, uint64_t desired)
{
	return atomicCAS(reinterpret_cast<unsigned long long *>(word),
					 (unsigned long long) expected, (unsigned long long) desired);
}

static __device__ __forceinline__ uint32_t
compare_and_swap(uint32_t *word, uint32_t expected, uint32_t desired)
{
	return atomicCAS(word, expected, desired);
}

/* 128-bit atomics came with compute capability 9.0. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAVE_ATOMIC_128 1
#else
#define HAVE_ATOMIC_128 0
#endif

/* Does one atomic change a whole entry of the layout? */
#define HAVE_WHOLE(L) (L::packed || (L::paired && HAVE_ATOMIC_128))

#if HAVE_ATOMIC_128

#define DEFINE_COMPARE_AND_SWAP_128(name, order) \
	static __device__ __forceinline__ word_pair \
	name(word_pair *words, word_pair expected, word_pair desired) \
	{ \
		word_pair	held; \
		\
		asm volatile("{\n\t" \
					 ".reg .b128 expected, desired, held;\n\t" \
					 "mov.b128 expected, {%3, %4};\n\t" \
					 "mov.b128 desired, {%5, %6};\n\t" \
					 "atom." order ".gpu.global.cas.b128 held, [%2], expected, desired;\n\t" \
					 "mov.b128 {%0, %1}, held;\n\t" \
					 "}" \
					 : "=l"(held.x), "=l"(held.y) \
					 : "l"(__cvta_generic_to_global(words)), "l"(expected.x), \
					 "l"(expected.y), "l"(desired.x), "l"(desired.y) \
					 : "memory"); \
		return held; \
	}

DEFINE_COMPARE_AND_SWAP_128(compare_and_swap, "relaxed")
DEFINE_COMPARE_AND_SWAP_128(compare_and_swap_release, "release")

#endif

/* The same; what this thread did before is seen by whoever sees the new word. */
static __device__ __forceinline__ uint64_t
compare_and_swap_release(uint64_t *word, uint64_t expected, uint64_t desired)
{
	uint64_t	held;

	asm volatile("atom.release.gpu.global.cas.b64 %0, [%1], %2, %3;"
				 : "=l"(held)
				 : "l"(__cvta_generic_to_global(word)), "l"(expected), "l"(desired)
				 : "memory");
	return held;
}

static __device__ __forceinline__ uint64_t
exchange(uint64_t *word, uint64_t value)
{
	return atomicExch(reinterpret_cast<unsigned long long *>(word),
					  (unsigned long long) value);
}

static __device__ __forceinline__ uint32_t
exchange(uint32_t *word, uint32_t value)
{
	return atomicExch(word, value);
}

static __device__ __forceinline__ void
add_relaxed(uint64_t *word, uint64_t amount)
{
	atomicAdd(reinterpret_cast<unsigned long long *>(word), (unsigned long long) amount);
}

/* Adds the amounts of a warp's threads, all of which come here, to a counter. */
static __device__ __forceinline__ void
add_tally(uint32_t *counter, uint32_t amount)
{
	for (int offset = 16; offset > 0; offset /= 2)
		amount += __shfl_down_sync(~0u, amount, offset);
	if (threadIdx.x % 32 == 0 && amount > 0)
		atomicAdd(counter, amount);
}

static __device__ __forceinline__ void
add_tally(uint64_t *counter, uint32_t amount)
{
	for (int offset = 16; offset > 0; offset /= 2)
		amount += __shfl_down_sync(~0u, amount, offset);
	if (threadIdx.x % 32 == 0 && amount > 0)
		add_relaxed(counter, amount);
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

/* ------------------------------------------------------------------ values */

/* The widest unit that values of that size can be copied in wherever they stand. */
static __host__ __device__ __forceinline__ uint32_t
value_unit(uint32_t size)
{
	return size % 16 == 0 ? 16 : size % 8 == 0 ? 8 : size % 4 == 0 ? 4 : 1;
}

/* Copies a unit that both places are aligned to. */
static __device__ __forceinline__ void
copy_unit(char *to, const char *from, uint32_t unit)
{
	if (unit == 16)
		*reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
	else if (unit == 8)
		*reinterpret_cast<uint2 *>(to) = *reinterpret_cast<const uint2 *>(from);
	else if (unit == 4)
		*reinterpret_cast<uint32_t *>(to) = *reinterpret_cast<const uint32_t *>(from);
	else
		*to = *from;
}

/* Copies one value, by the calling thread alone. */
static __device__ __forceinline__ void
value_copy(char *to, const char *from, uint32_t size)
{
	uint32_t	unit = value_unit(size);

	for (uint32_t at = 0; at < size; at += unit)
		copy_unit(to + at, from + at, unit);
}

/* Values up to this size are copied by the thread that has the key. */
#define VALUE_ALONE 16

/*
 * Copies a value for each lane that asks for it.  All lanes of the warp come here;
 * those of wide values copy each together, so that it moves in whole lines.
 */
static __device__ __forceinline__ void
warp_copy_values(bool mine, char *to, const char *from, uint32_t size)
{
	uint32_t	unit = value_unit(size);
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	asking;

	if (size <= VALUE_ALONE)
	{
		if (mine)
			value_copy(to, from, size);
		return;
	}
	asking = __ballot_sync(~0u, mine);
	while (asking != 0)
	{
		int			owner = __ffs((int) asking) - 1;
		char	   *owner_to = reinterpret_cast<char *>(
			__shfl_sync(~0u, reinterpret_cast<unsigned long long>(to), owner));
		const char *owner_from = reinterpret_cast<const char *>(
			__shfl_sync(~0u, reinterpret_cast<unsigned long long>(from), owner));

		for (uint32_t at = lane * unit; at < size; at += 32 * unit)
			copy_unit(owner_to + at, owner_from + at, unit);
		asking &= asking - 1;
	}
}

/* The value as a word; of a wider one the first 8 bytes. */
static __device__ __forceinline__ uint64_t
value_word(const char *value, uint32_t size)
{
	uint64_t	word = 0;

	if (size == 8)
		return *reinterpret_cast<const uint64_t *>(value);
	if (size == 4)
		return *reinterpret_cast<const uint32_t *>(value);
	for (uint32_t at = 0; at < size && at < 8; at++)
		word |= (uint64_t) (uint8_t) value[at] << (8 * at);
	return word;
}

/* The value that a word stands for (GhRequest.absent). */
static __device__ __forceinline__ void
value_from_word(char *value, uint64_t word, uint32_t size)
{
	if (size == 8)
		*reinterpret_cast<uint64_t *>(value) = word;
	else if (size == 4)
		*reinterpret_cast<uint32_t *>(value) = (uint32_t) word;
	else
		for (uint32_t at = 0; at < size; at++)
			value[at] = at < 8 ? (char) (word >> (8 * at)) : 0;
}

#endif							/* GPUHASH_MEMORY_CUH */
