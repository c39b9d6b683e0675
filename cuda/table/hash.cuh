/*
 * hash.cuh
 *		Where a key may live: pure arithmetic, the same on host and device.
 *
 * The two-layer scheme: a first hash of the key picks a pair of the d
 * subtables, so that every key has two candidate buckets whatever d is.
 *
 * Bits of that hash that picking the pair has left pick the key's region.  A region
 * is a run of `span` buckets in every subtable, so both candidates of a key are in
 * the same one.  A second hash, seeded per subtable, picks the bucket of the run.  Bits
 * are scaled to a number by a multiplication, so any number will do, and doubling the
 * number sends what had number b to 2b and 2b + 1 only.
 */
#ifndef GPUHASH_HASH_CUH
#define GPUHASH_HASH_CUH

#include <stdint.h>

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__ __forceinline__
#else
#define HOST_DEVICE static inline
#endif

#define GOLDEN_RATIO UINT64_C(0x9e3779b97f4a7c15)
/* of Steele and Vigna, "Computationally easy, spectrally good multipliers" */
#define BUCKET_MULTIPLIER UINT64_C(0xd1342543de82ef95)

struct subtable_pair
{
	uint32_t	a;				/* a < b */
	uint32_t	b;
};

/* A bijection of 64-bit words in which every input bit reaches every output bit. */
HOST_DEVICE uint64_t
mix64(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	return x;
}

/* The first-layer hash; the others are made from it. */
HOST_DEVICE uint64_t
hash_key(uint64_t seed, uint64_t key)
{
	return mix64((key ^ seed) + GOLDEN_RATIO);
}

/* The seed of subtable i's own hash function. */
HOST_DEVICE uint64_t
hash_subtable_seed(uint64_t seed, uint32_t i)
{
	return mix64(seed + (i + 1) * GOLDEN_RATIO);
}

/* Number of pairs among d subtables. */
HOST_DEVICE uint32_t
hash_pair_count(uint32_t subtables)
{
	return subtables * (subtables - 1) / 2;
}

/* Maps 32 random bits to 0 .. n - 1 without a division. */
HOST_DEVICE uint32_t
hash_scale(uint32_t bits, uint32_t n)
{
	return (uint32_t) (((uint64_t) bits * n) >> 32);
}

/* Which of the pairs: the hash's upper half. */
HOST_DEVICE uint32_t
hash_pair_index(uint64_t hash, uint32_t pairs)
{
	return hash_scale((uint32_t) (hash >> 32), pairs);
}

/* 32 bits for the region: the fraction that picking the pair has left. */
HOST_DEVICE uint32_t
hash_region_bits(uint64_t hash, uint32_t pairs)
{
	return (uint32_t) (hash >> 32) * pairs;
}

/*
 * Pair number to pair.  Pairs are numbered (0,1) (0,2) (1,2) (0,3) ..., so
 * pair (a, b) has number b (b - 1) / 2 + a and the numbering does not depend
 * on d.
 */
HOST_DEVICE subtable_pair
hash_pair(uint32_t index)
{
	uint32_t	b = 1;
	struct subtable_pair pair;

	for (uint32_t next = 2; next < 8; next++)
		b += index >= next * (next - 1) / 2 ? 1 : 0;
	pair.a = index - b * (b - 1) / 2;
	pair.b = b;
	return pair;
}

/* 32 bits of the hash function with that seed. */
HOST_DEVICE uint32_t
hash_bucket_bits(uint64_t hash, uint64_t subtable_seed)
{
	return (uint32_t) (((hash ^ subtable_seed) * BUCKET_MULTIPLIER) >> 32);
}

/* The bucket in a subtable with that seed, of that many regions of `span` buckets each. */
HOST_DEVICE uint32_t
hash_bucket(uint64_t hash, uint64_t subtable_seed, uint32_t region_bits, uint32_t regions,
			uint32_t span)
{
	return hash_scale(region_bits, regions) * span +
		hash_scale(hash_bucket_bits(hash, subtable_seed), span);
}

/*
 * Theorem 1 of the paper (dyhash.txt, section 5.2): conflicts are fewest when
 * a new key goes to subtable i with a probability proportional to
 * n_i / C(m_i, 2), n_i its slots and m_i its entries.  Returns the share of
 * the first of two subtables as a bound for 32 random bits.
 */
HOST_DEVICE uint32_t
hash_steering(double slots_a, double entries_a, double slots_b, double entries_b)
{
	double		conflicts_a = entries_a * (entries_a - 1) / 2;
	double		conflicts_b = entries_b * (entries_b - 1) / 2;
	/* below two entries there is no conflict to avoid: size alone decides */
	double		weight_a = slots_a / (conflicts_a < 1 ? 1 : conflicts_a);
	double		weight_b = slots_b / (conflicts_b < 1 ? 1 : conflicts_b);

	return (uint32_t) (weight_a / (weight_a + weight_b) * 4294967295.0);
}

/* The bound while both subtables are treated alike. */
#define STEERING_EVEN UINT32_C(0x80000000)

/* The 32 bits that hash_steering's bound is compared with. */
HOST_DEVICE uint32_t
hash_steering_bits(uint64_t hash)
{
	/* the lower half: the upper one picked the pair */
	return (uint32_t) hash;
}

#endif							/* GPUHASH_HASH_CUH */
