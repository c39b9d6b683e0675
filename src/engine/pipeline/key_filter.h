/*
 * key_filter.h
 *		Which keys may be among some: a Bloom filter, in which all bits of a key are in one word.
 *
 * Of a key that is not among them about one in a hundred is thought to be; of one that is, each.  A look at it costs a
 * fraction of a look into a table, for it is small, two to four bytes for each key, and takes one line of the cache.
 */
#ifndef GPUHASH_ENGINE_PIPELINE_KEY_FILTER_H
#define GPUHASH_ENGINE_PIPELINE_KEY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of how many words a filter is, as powers of two; four keys to each at most. */
#define GH_KEY_FILTER_LEAST 4
#define GH_KEY_FILTER_MOST 34
#define GH_KEY_FILTER_KEYS 4

typedef struct GhKeyFilter
{
	uint32_t	shift;			/* of a hash, to its word */
	uint64_t	words[];
} GhKeyFilter;

/* The shift for so many keys, more or less, and the bytes of a filter with it, which are to be zeroes before it is set there. */
static inline uint32_t
gh_key_filter_shift(uint64_t keys)
{
	uint32_t	power = GH_KEY_FILTER_LEAST;

	while (power < GH_KEY_FILTER_MOST && (UINT64_C(1) << power) * GH_KEY_FILTER_KEYS < keys)
		power++;
	return 64 - power;
}

static inline size_t
gh_key_filter_bytes(uint32_t shift)
{
	return sizeof(GhKeyFilter) + sizeof(uint64_t) * ((size_t) 1 << (64 - shift));
}

/* Its three bits, by those of the hash behind the word's number. */
static inline uint64_t
gh_key_filter_bits(const GhKeyFilter *filter, uint64_t hash)
{
	return UINT64_C(1) << (hash >> (filter->shift - 6) & 63) | UINT64_C(1) << (hash >> (filter->shift - 12) & 63) |
		UINT64_C(1) << (hash >> (filter->shift - 18) & 63);
}

static inline uint64_t
gh_key_filter_hash(uint64_t key)
{
	return key * UINT64_C(0x9E3779B97F4A7C15);
}

static inline void
gh_key_filter_add(GhKeyFilter *filter, uint64_t key)
{
	uint64_t	hash = gh_key_filter_hash(key);

	filter->words[hash >> filter->shift] |= gh_key_filter_bits(filter, hash);
}

static inline bool
gh_key_filter_may_have(const GhKeyFilter *filter, uint64_t key)
{
	uint64_t	hash = gh_key_filter_hash(key);
	uint64_t	bits = gh_key_filter_bits(filter, hash);

	return (filter->words[hash >> filter->shift] & bits) == bits;
}

#endif							/* GPUHASH_ENGINE_PIPELINE_KEY_FILTER_H */
