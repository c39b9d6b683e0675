/*
 * adversary_cuda.cc
 *		Keys that collide in the CUDA engine's hash, made with the hash itself.
 *		hash.cuh is plain arithmetic, which any C++ compiler takes.
 */
#include "../../cuda/hash.cuh"
#include "conformance.h"

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

		/* the lowest of 2^bits buckets is the lowest part of any other number */
		if (hash_pair_index(hash, pairs) == 0 && hash_bucket(hash, seed_a, 1u << bits) == 0 &&
			hash_bucket(hash, seed_b, 1u << bits) == 0)
			keys[found++] = key;
	}
	return found;
}
