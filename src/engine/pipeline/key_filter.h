/*
 * key_filter.h
 *		Which keys may be among some: a Bloom filter with one hash function.
 *
 * Of a key that is not among them about one in eight is thought to be; of one that is, each.  A look at it costs a
 * fraction of a look into a table, for it is small: a byte for each key.
 */
#ifndef GPUHASH_ENGINE_PIPELINE_KEY_FILTER_H
#define GPUHASH_ENGINE_PIPELINE_KEY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of how many bits a filter is, as powers of two. */
#define GH_KEY_FILTER_LEAST 10
#define GH_KEY_FILTER_MOST 40

typedef struct GhKeyFilter
{
	uint32_t	shift;			/* of a hash, to its bit */
	uint64_t	bits[];
} GhKeyFilter;

/* The shift for so many keys, more or less, and the bytes of a filter with it, which are to be zeroes before it is set there. */
static inline uint32_t
gh_key_filter_shift(uint64_t keys)
{
	uint32_t	power = GH_KEY_FILTER_LEAST;

	while (power < GH_KEY_FILTER_MOST && UINT64_C(1) << power < 8 * keys)
		power++;
	return 64 - power;
}

static inline size_t
gh_key_filter_bytes(uint32_t shift)
{
	return sizeof(GhKeyFilter) + (size_t) (UINT64_C(1) << (64 - shift)) / 8;
}

static inline uint64_t
gh_key_filter_bit(const GhKeyFilter *filter, uint64_t key)
{
	return (key * UINT64_C(0x9E3779B97F4A7C15)) >> filter->shift;
}

static inline void
gh_key_filter_add(GhKeyFilter *filter, uint64_t key)
{
	uint64_t	bit = gh_key_filter_bit(filter, key);

	filter->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline bool
gh_key_filter_may_have(const GhKeyFilter *filter, uint64_t key)
{
	uint64_t	bit = gh_key_filter_bit(filter, key);

	return (filter->bits[bit / 64] >> (bit % 64) & 1) != 0;
}

#endif							/* GPUHASH_ENGINE_PIPELINE_KEY_FILTER_H */
