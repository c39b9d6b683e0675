/*
 * adversary_cuda.cc
 *		Keys that collide in the CUDA engine's hash, made with the hash itself.
 *		hash.cuh is plain arithmetic, which any C++ compiler takes.
 */
#include "cuda/table/hash.cuh"
#include "conformance.h"

/* No region of a table that may be filled to 0.85 has more buckets in a subtable. */
#define SPAN_MAX 1024

extern "C" uint64_t
adversary_keys_cuda(const GhTableOptions *options, uint32_t bits, uint64_t *next, uint64_t tries,
					uint64_t *keys, uint64_t most)
{
	uint32_t	subtables = options->subtables != 0 ? options->subtables : GH_SUBTABLES_DEFAULT;
	uint32_t	pairs = hash_pair_count(subtables);
	subtable_pair pair = hash_pair(0);
	uint64_t	seed_a = hash_subtable_seed(options->seed, pair.a);
	uint64_t	seed_b = hash_subtable_seed(options->seed, pair.b);
	uint64_t	found = 0;

	for (; tries > 0 && found < most; tries--, (*next)++)
	{
		uint64_t	key = options->key_size == 4 ? (uint32_t) *next : mix(*next);
		uint64_t	hash = hash_key(options->seed, key);

		/* the lowest of 2^bits buckets is the lowest part of any other number; small tables
		 * have one region */
		if (hash_pair_index(hash, pairs) == 0 && hash_bucket(hash, seed_a, 0, 1, 1u << bits) == 0 &&
			hash_bucket(hash, seed_b, 0, 1, 1u << bits) == 0)
			keys[found++] = key;
	}
	return found;
}

/* The number by which this odd one is 1. */
static uint64_t
inverse(uint64_t odd)
{
	uint64_t	x = odd;

	/* each step doubles the bits that are right, of which there are 3 at first */
	for (int i = 0; i < 5; i++)
		x *= 2 - odd * x;
	return x;
}

/* mix64 backwards: x ^ x >> 33 is its own inverse. */
static uint64_t
unmix(uint64_t x)
{
	x ^= x >> 33;
	x *= inverse(UINT64_C(0xc4ceb9fe1a85ec53));
	x ^= x >> 33;
	x *= inverse(UINT64_C(0xff51afd7ed558ccd));
	x ^= x >> 33;
	return x;
}

extern "C" uint64_t
adversary_twins_cuda(const GhTableOptions *options, uint32_t bits, uint64_t *keys, uint64_t most)
{
	uint32_t	subtables = options->subtables != 0 ? options->subtables : GH_SUBTABLES_DEFAULT;
	uint32_t	pairs = hash_pair_count(subtables);
	subtable_pair pair = hash_pair(0);
	uint64_t	seed_a = hash_subtable_seed(options->seed, pair.a);
	uint64_t	seed_b = hash_subtable_seed(options->seed, pair.b);
	/* the first pair, and the first of 2^bits regions */
	uint64_t	high_end = (UINT64_C(1) << (32 - bits)) / pairs;
	uint64_t	found = 0;

	for (uint64_t high = 0; high < high_end && found < most; high++)
		for (uint64_t low = 0; low >> 32 == 0 && found < most; low++)
		{
			uint64_t	hash = high << 32 | low;
			uint64_t	key = (unmix(hash) - GOLDEN_RATIO) ^ options->seed;

			/* and the first bucket of a region of any size */
			if (hash_bucket(hash, seed_a, 0, 1, SPAN_MAX) == 0 &&
				hash_bucket(hash, seed_b, 0, 1, SPAN_MAX) == 0 &&
				hash_key(options->seed, key) == hash)
				keys[found++] = key;
		}
	return found;
}
