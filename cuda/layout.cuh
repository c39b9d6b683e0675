/*
 * layout.cuh
 *		What is in device memory, and how a kernel is told where.
 *
 * A bucket is 8 key words in one 64-byte line, followed in tables with values
 * by the 8 value words in the next: a probe reads keys alone, and the value of
 * key word w is w[BUCKET_SLOTS].  Two key words have a meaning of their own;
 * the two keys with those bit patterns live in the side bucket, slots 0 and 1,
 * whose key words only say whether they are there.
 */
#ifndef GPUHASH_LAYOUT_CUH
#define GPUHASH_LAYOUT_CUH

#include "../src/engine/engine.h"
#include "hash.cuh"

#define BUCKET_SLOTS 8
#define PAIRS_MAX (GH_SUBTABLES_MAX * (GH_SUBTABLES_MAX - 1) / 2)

/* no entry here; all bits set, so that cudaMemset can write it */
#define SLOT_EMPTY UINT64_MAX
/* owned by a thread of a running relocation kernel; never left behind by one */
#define SLOT_BUSY (UINT64_MAX - 1)
/* in the side bucket: the key is there */
#define SIDE_PRESENT UINT64_C(0)

/* a position that is none */
#define POSITION_NONE UINT32_MAX

#define BLOCK_THREADS 256

struct subtable_view
{
	uint64_t   *words;			/* buckets */
	uint64_t	mask;			/* buckets - 1 */
	uint64_t	seed;			/* of its hash function */
};

/* A table as kernels see it, passed by value. */
struct table_view
{
	subtable_view sub[GH_SUBTABLES_MAX];
	uint64_t   *side;			/* the side bucket */
	uint64_t	seed;
	uint32_t	pairs;
	uint32_t	bucket_words;	/* 8, or 16 with values */
};

/* For pair p, 32 random bits below bound[p] mean its first subtable. */
struct steering_view
{
	uint32_t	bound[PAIRS_MAX];
};

/* Multi tables: the value word of a key is the number of its record. */
struct value_record
{
	uint64_t   *start;			/* its values, contiguous */
	uint64_t	count;			/* values */
	uint64_t	room;			/* values that fit at start */
};

/* What kernels tell the host; zeroed before, copied out after. */
struct counters
{
	uint64_t	matched;		/* keys found */
	uint64_t	values;			/* values of removed keys */
	uint64_t	residuals;		/* entries too many for a halved bucket */
	uint64_t	gained[GH_SUBTABLES_MAX];	/* entries, wraps below zero */
	uint32_t	absent;			/* length of the list of absent keys */
	uint32_t	overflow;		/* length of the list of keys not placed */
	uint32_t	appended;		/* length of a list of residuals or records */
};

/* An entry that went to a slot, from another or, when from is NULL, from outside. */
struct move_record
{
	uint64_t   *from;
	uint64_t   *to;
};

/* The moves of a relocation in the order they were made, to undo them; or none. */
struct move_journal
{
	move_record *moves;			/* NULL: nobody will undo */
	uint32_t   *used;			/* may pass room; what passed was not made */
	uint32_t	room;
};

/* One slice of a modifying batch in device memory; arrays of `count` elements. */
struct batch_view
{
	uint32_t	count;			/* positions, below 2^31 */
	uint32_t	group_mask;		/* size of first and last, less one */
	uint64_t   *keys;
	uint64_t   *values;			/* NULL in a set */
	uint64_t   *values_out;		/* exchange */
	/* of leaders: what the table holds for the key, or shall hold if absent */
	uint64_t   *entries;
	uint8_t    *flags;
	uint32_t   *group;			/* index into first and last */
	uint32_t   *order;			/* exchange: position before; add: rank in group */
	uint32_t   *first;			/* by group: smallest position, the leader */
	uint32_t   *last;			/* by group: last position; add: positions */
	uint32_t   *absent;			/* leaders whose keys are not in the table */
	uint32_t   *overflow[2];	/* leaders not placed yet, two generations */
	/* add, count + 1 elements: prefix sums over positions */
	uint64_t   *fresh;			/* of values' room to hand out */
	uint64_t   *moved;			/* of values to move there */
	void	   *scan_space;		/* CUB's */
	size_t		scan_bytes;
};

HOST_DEVICE uint64_t
element_index(uint64_t block, uint32_t block_threads, uint32_t thread)
{
	return block * block_threads + thread;
}

/* The element that a thread of a one-element-per-thread kernel works on. */
#define ELEMENT element_index(blockIdx.x, blockDim.x, threadIdx.x)

/* Blocks for that many elements; a grid may have 2^31 - 1, that is 2^39 elements. */
static inline uint32_t
blocks_for(uint64_t elements)
{
	return (uint32_t) ((elements + BLOCK_THREADS - 1) / BLOCK_THREADS);
}

#endif							/* GPUHASH_LAYOUT_CUH */
