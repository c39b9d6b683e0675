/*
 * adversary_cpu.c
 *		Keys that collide in the CPU engine's hash, made with the hash itself.
 */
#include "conformance.h"
#include "engine/table/cpu_internal.h"

uint64_t
adversary_keys_cpu(GhTable *table, uint32_t key_size, uint32_t bits, uint64_t *next,
				   uint64_t tries, uint64_t *keys, uint64_t most)
{
	const GhCpuView *view = &((GhCpuTable *) table)->view;
	/* the bits that choose the bucket from its number's lowest on */
	uint64_t	mask = (((uint64_t) 1 << bits) - 1) << GH_CPU_BUCKET_SHIFT;
	uint64_t	found = 0;

	for (; tries > 0 && found < most; tries--, (*next)++)
	{
		uint64_t	key = key_size == 4 ? (uint32_t) *next : mix(*next);
		uint64_t	hash[2];

		gh_cpu_hash(view, key, hash);
		if (((hash[0] | hash[1]) & mask) == 0 && gh_cpu_pair(view, hash) == view->pair)
			keys[found++] = key;
	}
	return found;
}
