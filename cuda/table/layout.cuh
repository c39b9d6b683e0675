/*
 * layout.cuh
 *		What is in device memory, and how a kernel is told where.
 *
 * A subtable is an array of buckets of BUCKET_BYTES.  Four layouts of a bucket's
 * slots cover all widths; kernels are compiled for each:
 *
 *	layout_k4v4		key and value of 4 bytes each in one 8-byte word
 *	layout_k8v8		key and value of 8 bytes each, side by side
 *	layout_k4		4-byte keys alone
 *	layout_k8		8-byte keys alone
 *
 * With keys alone the values, if there are any, stand in an array of their own
 * beside the buckets, indexed by slot number.  Of a multi table the slot's value
 * is the number of the key's record (values.cu): 4 bytes beside 4-byte keys, 8
 * beside 8-byte keys.
 *
 * The part of a slot that one atomic changes, and whose change takes or empties
 * the slot, is its word: key and value of layout_k4v4, the key of the others.
 * Three patterns of the key part have a meaning; the keys that look like
 * that live in the side bucket.
 *
 *	EMPTY	never used since its bucket was made
 *	FREED	free, in a bucket that may have been full
 *	BUSY	owned by a thread of a running relocation; never left behind by one
 *
 * A bucket that has an EMPTY slot has never been full, so no key that prefers
 * it is elsewhere: see "Order" in README.
 */
#ifndef GPUHASH_LAYOUT_CUH
#define GPUHASH_LAYOUT_CUH

#include <cuda_runtime.h>

#include "cuda/table/hash.cuh"
#include "engine/engine.h"

/* Measured: README, "What was measured".  64 or 128: search_kernel's groups of lanes want
 * four slots of every layout in a bucket. */
#ifndef BUCKET_BYTES
#define BUCKET_BYTES 64
#endif

/* Lanes of a warp that read one bucket together, 16 bytes each. */
#define TILE_LANES (BUCKET_BYTES / 16)
/* Buckets that a warp reads at a time. */
#define TILES (32 / TILE_LANES)

#define PAIRS_MAX (GH_SUBTABLES_MAX * (GH_SUBTABLES_MAX - 1) / 2)

/* Keys with a pattern of their own: the side bucket's slots. */
#define SIDE_SLOTS 3

/* a position that is none */
#define POSITION_NONE UINT32_MAX

#define BLOCK_THREADS 256
/* Blocks that a multiprocessor shall hold of kernels that go round: with more, registers
 * spill, with fewer, less is on its way. */
#define ROUND_BLOCKS 4

/* One thread's part of a bucket. */
typedef uint4 fragment;

template <typename KEY, typename WORD, int BYTES, bool WITH_VALUE>
struct layout
{
	typedef KEY key_type;
	typedef WORD word_type;

	static constexpr int slot_bytes = BYTES;
	/* the value is in the slot, behind the key */
	static constexpr bool together = WITH_VALUE;
	/* one word holds key and value: taking a slot stores both */
	static constexpr bool packed = sizeof(WORD) > sizeof(KEY);
	/* two words do, and some devices have an atomic for both */
	static constexpr bool paired = BYTES == 16;
	static constexpr int slots = BUCKET_BYTES / BYTES;	/* of a bucket */
	static constexpr int lane_slots = 16 / BYTES;	/* of a fragment */

	static constexpr KEY empty_key = (KEY) ~(KEY) 0;
	static constexpr KEY freed_key = (KEY) (empty_key - 1);
	static constexpr KEY busy_key = (KEY) (empty_key - 2);
	/* as whole words; new memory is filled with ones */
	static constexpr WORD empty_word = (WORD) ~(WORD) 0;
	static constexpr WORD freed_word = (WORD) (empty_word - 1);
	static constexpr WORD busy_word = (WORD) (empty_word - 2);

	static __host__ __device__ __forceinline__ KEY
	key_of(WORD word)
	{
		return (KEY) word;
	}

	/* No slot of a bucket can hold this key. */
	static __host__ __device__ __forceinline__ bool
	special(KEY key)
	{
		return key >= busy_key;
	}

	/* The key of slot s of a fragment. */
	static __device__ __forceinline__ KEY
	fragment_key(const fragment &f, int s)
	{
		if (BYTES == 4)
			return (KEY) (s == 0 ? f.x : s == 1 ? f.y : s == 2 ? f.z : f.w);
		if (sizeof(KEY) == 4)
			return (KEY) (s == 0 ? f.x : f.z);
		return (KEY) (s == 0 ? (uint64_t) f.y << 32 | f.x : (uint64_t) f.w << 32 | f.z);
	}

	/* The value of slot s of a fragment, where it is together with the key. */
	static __device__ __forceinline__ uint64_t
	fragment_value(const fragment &f, int s)
	{
		if (packed)
			return s == 0 ? f.y : f.w;
		return (uint64_t) f.w << 32 | f.z;
	}

	/* A fragment of free slots. */
	static __device__ __forceinline__ void
	fill_fragment(fragment &f, WORD word)
	{
		uint32_t	low = (uint32_t) word;
		uint32_t	high = (uint32_t) ((uint64_t) word >> (BYTES == 4 ? 0 : 32));

		f = make_uint4(low, high, BYTES == 16 ? ~0u : low, BYTES == 16 ? ~0u : high);
	}

	/* Copies slot s. */
	static __device__ __forceinline__ void
	copy_slot(fragment &to, const fragment &from, int s)
	{
		if (BYTES == 16)
			to = from;
		else if (BYTES == 8 && s == 0)
			to.x = from.x, to.y = from.y;
		else if (BYTES == 8)
			to.z = from.z, to.w = from.w;
		else if (s == 0)
			to.x = from.x;
		else if (s == 1)
			to.y = from.y;
		else if (s == 2)
			to.z = from.z;
		else
			to.w = from.w;
	}

	/* Stores slot s, with the value that is together with the key. */
	static __device__ __forceinline__ void
	store_slot(void *slot, const fragment &from, int s)
	{
		if (BYTES == 16)
			*static_cast<fragment *>(slot) = from;
		else if (BYTES == 8)
			*static_cast<uint2 *>(slot) = s == 0 ? make_uint2(from.x, from.y) :
				make_uint2(from.z, from.w);
		else
			*static_cast<uint32_t *>(slot) = (uint32_t) fragment_key(from, s);
	}

	/* The word that a new entry's slot is taken with. */
	static __device__ __forceinline__ WORD
	make_word(KEY key, uint64_t value)
	{
		return packed ? (WORD) ((uint64_t) value << 32 | (uint32_t) key) : (WORD) key;
	}
};

typedef layout<uint32_t, uint64_t, 8, true> layout_k4v4;
typedef layout<uint64_t, uint64_t, 16, true> layout_k8v8;
typedef layout<uint32_t, uint32_t, 4, false> layout_k4;
typedef layout<uint64_t, uint64_t, 8, false> layout_k8;

struct subtable_view
{
	char	   *slots;			/* buckets */
	char	   *values;			/* by slot number; NULL: together, or none */
	uint64_t	seed;			/* of its hash function */
	uint32_t	regions;
	uint32_t	span;			/* buckets of a region */
	uint64_t	near_bytes;		/* of the slots; those behind are in the host's memory */
};

/* Copies of the entries that are used most (hot.cu). */
struct hot_view
{
	char	   *buckets;
	uint32_t	count;			/* buckets; 0: there are none */
};

/* A table as kernels see it, passed by value. */
struct table_view
{
	subtable_view sub[GH_SUBTABLES_MAX];
	/* of pair p, a key whose steering bits are below bound[p] prefers the first */
	uint32_t	bound[PAIRS_MAX];
	uint32_t	pairs;
	uint32_t	subtables;
	uint32_t	value_size;		/* bytes that a slot has for a value; 0 in a set */
	uint64_t	seed;
	/* every key was placed under even bounds: an EMPTY slot ends a search */
	uint32_t	ordered;
	uint32_t	count_reads;	/* sum up the buckets read, for the statistics */
	uint32_t   *side_present;	/* SIDE_SLOTS: 1 where the key is there */
	char	   *side_values;	/* SIDE_SLOTS, by value_size */
	hot_view	hot;
};

/* Multi tables: what a slot's value is the number of. */
struct value_record
{
	char	   *start;			/* its values, contiguous */
	uint64_t	count;			/* values */
	uint64_t	room;			/* values that fit at start */
};

/* What kernels tell the host; zeroed before, copied out after. */
struct counters
{
	uint64_t	matched;		/* keys found */
	uint64_t	inserted;		/* keys placed */
	uint64_t	removed;		/* keys taken out */
	uint64_t	replaced;
	uint64_t	values;			/* values of removed keys, or of all positions */
	uint64_t	residuals;		/* entries too many for a halved bucket */
	uint64_t	bucket_reads;
	uint64_t	cached;			/* look-ups that copies of entries answered (hot.cu) */
	uint64_t	far;			/* look-ups that read memory of the host */
	uint64_t	gained[GH_SUBTABLES_MAX];	/* entries, wraps below zero */
	uint32_t	present;		/* length of the list of keys that were there */
	uint32_t	overflow;		/* length of the list of keys not placed */
	uint32_t	repeated;		/* length of the list of positions whose keys come again */
	uint32_t	appended;		/* length of a list of residuals or records, or of keys that are
								 * not placed yet after a search */
	uint32_t	unclaimed;		/* keys not placed that may be there more than once */
	uint32_t	dead;			/* length of the list of slots left BUSY */
	uint32_t	invalid;		/* operations of a mixed batch that are none */
};

/* An entry that went to a slot, from another or, when from is NULL, from outside. */
struct move_record
{
	void	   *from;			/* words */
	void	   *to;
	void	   *from_value;		/* values apart from the words; else NULL */
	void	   *to_value;
};

/* The moves of a relocation in the order they were made, to undo them; or none. */
struct move_journal
{
	move_record *moves;			/* NULL: nobody will undo */
	uint32_t   *used;			/* may pass room; what passed was not made */
	uint32_t	room;
};

/*
 * A scratch table in which the positions of equal keys meet (group.cu).  Half of
 * its places stay free.
 */
struct group_view
{
	uint32_t	mask;			/* places, a power of two, less one */
	uint32_t   *first;			/* by place: the leader, the smallest position or any; or NONE */
	uint32_t   *last;			/* by place: largest position, or number of them */
	/* of GROUP_REPEATED, by place: 1 where a key has several positions, not all of them finds */
	uint8_t    *repeated;
	const uint8_t *ops;			/* by position */
	uint32_t   *place;			/* by index into the list */
	uint32_t   *rank;			/* by index into the list; NULL: not wanted */
};

/*
 * Which position of the slice acts for a key that found no slot (place.cu): a
 * scratch table of positions, with as many places as the slice has keys, or more.
 */
struct claim_view
{
	uint32_t   *holder;			/* by place: a position, or NONE */
	uint32_t	mask;			/* places, a power of two, less one */
	char	  **dead;			/* slots left BUSY */
	uint32_t	dead_room;
};

/*
 * Keys and values that kernels work through, in device memory: positions of two
 * arrays, all of them or those of a list.
 */
struct entry_list
{
	const void *keys;			/* by key_size */
	const char *values;			/* by slot_value_size; NULL: none, or the positions */
	const uint32_t *positions;	/* NULL: first to first + count - 1 */
	uint32_t	count;
	uint32_t	first = 0;
};

HOST_DEVICE uint64_t
element_index(uint64_t block, uint32_t block_threads, uint32_t thread)
{
	return block * block_threads + thread;
}

/* The element that a thread of a one-element-per-thread kernel works on. */
#define ELEMENT element_index(blockIdx.x, blockDim.x, threadIdx.x)

/*
 * Kernels that count over blocks run as many blocks as the device holds at a time,
 * each of which goes through the elements in strides of the whole grid: so warps
 * wait for each other once.  All lanes of a warp do the same rounds.
 */
#define FOR_ROUNDS(i, count) \
	for (uint64_t i = ELEMENT, round_base = i - (threadIdx.x & 31); round_base < (count); \
		 i += (uint64_t) gridDim.x * blockDim.x, \
		 round_base += (uint64_t) gridDim.x * blockDim.x)

/* Blocks for that many elements; a grid may have 2^31 - 1, that is 2^39 elements. */
static inline uint32_t
blocks_for(uint64_t elements)
{
	return (uint32_t) ((elements + BLOCK_THREADS - 1) / BLOCK_THREADS);
}

#endif							/* GPUHASH_LAYOUT_CUH */
