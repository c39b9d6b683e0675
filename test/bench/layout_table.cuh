/*
 * layout_table.cuh
 *    Tables of the layout laboratory: hashing, bucket layouts, tile probes, slot
 *    atomics.  Nothing here is the engine's; the laboratory stands alone so that a
 *    layout can be measured before the engine is built on it.
 *
 * A table is an array of buckets, cut into D subtables of equal size.  A key has
 * two candidate buckets, tried in an order fixed by its hash: with D = 1 both in
 * the one array, else one in each of two subtables that the hash picks (2-in-d).
 * A key goes to its second bucket only when the first one is full.  No bucket that
 * was once full gets an empty slot while only inserts run, so a find may stop at
 * an empty slot in the first bucket ("early exit").
 *
 * EMPTY is a key of all ones, and an empty entry is all ones in key and value; the
 * generated keys avoid it.
 */
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

constexpr uint32_t ALL = 0xffffffffu;
constexpr int BLOCK = 256;
constexpr int MAX_CHAIN = 1000;		/* evictions before a key counts as unplaced */

#define LAB_CHECK(call) lab_check((call), #call, __LINE__)

inline void lab_check(cudaError_t err, const char *what, int line)
{
	if (err == cudaSuccess)
		return;
	fprintf(stderr, "layout_bench: line %d: %s: %s\n", line, what, cudaGetErrorString(err));
	exit(1);
}

__host__ __device__ inline uint64_t mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

__host__ __device__ inline uint32_t mix32(uint32_t x)
{
	x = (x ^ (x >> 16)) * 0x7feb352du;
	x = (x ^ (x >> 15)) * 0x846ca68bu;
	return x ^ (x >> 16);
}

template <typename K> struct alignas(2 * sizeof(K)) Entry {
	K key;
	K value;
};

template <typename K> __host__ __device__ constexpr K empty_key() { return static_cast<K>(~K(0)); }

/* What a find writes for a key that is not there: no value_of() is all ones. */
template <typename K> __host__ __device__ constexpr K no_value() { return static_cast<K>(~K(0)); }

/* Key number i: distinct for distinct i below 2^31, never EMPTY. */
template <typename K> __device__ inline K key_of(uint64_t i)
{
	if (sizeof(K) == 8)
	{
		const uint64_t k = mix64(i + 0x1234567ull);

		return static_cast<K>(k == ~0ull ? mix64(0x1234566ull) : k);
	}
	const uint32_t k = mix32(static_cast<uint32_t>(i));

	return static_cast<K>(k == ALL ? mix32(0xfffffff0u) : k);
}

template <typename K> __device__ inline K value_of(K key)
{
	return static_cast<K>((key * K(0x9e3779b97f4a7c15ull) ^ (key >> 7)) & ~K(1));
}

/* Another order of [0, 2^bits). */
__device__ inline uint64_t shuffled(uint64_t i, int bits)
{
	const uint64_t mask = (1ull << bits) - 1;

	i = (i * 0x9e3779b97f4a7c15ull + 12345) & mask;
	i ^= i >> (bits / 2);
	i = (i * 0xd6e8feb86659fd93ull) & mask;
	i ^= i >> (bits / 2 + 1);
	return (i * 0xa0761d6478bd642full) & mask;
}

__device__ inline uint64_t hash_of(uint64_t key)
{
	key = (key ^ 0x2545f4914f6cdd1dull) * 0xd6e8feb86659fd93ull;
	key = (key ^ (key >> 32)) * 0xa0761d6478bd642full;
	return key ^ (key >> 32);
}

struct Choice {
	uint32_t first;
	uint32_t second;
};

/* Further hash bits, for choices beside the two bucket numbers. */
__device__ inline uint32_t spare_bits(uint64_t h)
{
	return (static_cast<uint32_t>(h >> 32) ^ static_cast<uint32_t>(h) * 0x9e3779b1u) * 0x85ebca6bu;
}

/* A bucket is only read by finds: bypass L1, which it would only thrash. */
__device__ inline uint4 load_const(const uint4 *p)
{
	uint4 d;

	asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
		: "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w) : "l"(p));
	return d;
}

/* Where a bucket's values are. */
enum class Place {
	together,					/* beside their keys, in the same 16 bytes */
	apart,						/* in an array of their own */
	halves						/* in the second half of the bucket */
};

template <typename K, int BYTES, Place P, int D = 1> struct Layout {
	using key_t = K;
	static constexpr int subtables = D;
	static constexpr Place place = P;
	static constexpr bool together = P == Place::together;
	static constexpr int bytes = BYTES;
	/* lanes that read a bucket's keys, 16 bytes each */
	static constexpr int tile = (P == Place::halves ? BYTES / 2 : BYTES) / 16;
	static constexpr int per_lane = 16 / (together ? 2 * sizeof(K) : sizeof(K));
	static constexpr int slots = tile * per_lane;

	uint4 *base;
	K *values;					/* only with Place::apart */
	uint32_t buckets;			/* a multiple of D */

	__device__ Choice choose(K key) const
	{
		const uint64_t h = hash_of(key);
		const uint32_t hi = static_cast<uint32_t>(h >> 32);
		const uint32_t lo = static_cast<uint32_t>(h);

		if (D == 1)
			return {__umulhi(hi, buckets), __umulhi(lo, buckets)};

		/* an ordered pair of different subtables, each pair equally likely */
		const uint32_t size = buckets / D;
		const uint32_t spare = spare_bits(h);
		const uint32_t one = __umulhi(spare, D);
		const uint32_t step = 1 + __umulhi(spare * 0xc2b2ae35u, D > 1 ? D - 1 : 1);
		const uint32_t two = one + step >= D ? one + step - D : one + step;

		return {one * size + __umulhi(hi, size), two * size + __umulhi(lo, size)};
	}
	static constexpr uint64_t bucket_bytes() { return P == Place::apart ? 2 * BYTES : BYTES; }

	__device__ const uint4 *chunk(uint32_t b, int lane) const
	{
		return base + uint64_t(b) * (BYTES / 16) + lane;
	}
	__device__ K *key_at(uint32_t b, int slot) const
	{
		K *bucket = reinterpret_cast<K *>(base + uint64_t(b) * (BYTES / 16));

		return bucket + (together ? 2 * slot : slot);
	}
	__device__ K *value_at(uint32_t b, int slot) const
	{
		if (together)
			return key_at(b, slot) + 1;
		if (P == Place::halves)
			return key_at(b, slot) + slots;
		return values + uint64_t(b) * slots + slot;
	}
	__device__ Entry<K> *entry_at(uint32_t b, int slot) const
	{
		return reinterpret_cast<Entry<K> *>(key_at(b, slot));
	}
};

/* Word j of 16 bytes, as keys: j is a compile-time constant after unrolling. */
template <typename K> __device__ inline K word_of(const uint4 &d, int j)
{
	if (sizeof(K) == 8)
		return static_cast<K>(j == 0 ? (uint64_t(d.y) << 32 | d.x) : (uint64_t(d.w) << 32 | d.z));
	return static_cast<K>(j == 0 ? d.x : j == 1 ? d.y : j == 2 ? d.z : d.w);
}

template <class L> __device__ inline typename L::key_t chunk_key(const uint4 &d, int sub)
{
	return word_of<typename L::key_t>(d, L::together ? 2 * sub : sub);
}

/* What a probe of one bucket tells the lane that owns the key. */
template <typename K> struct Seen {
	uint32_t slot;
	uint32_t free;				/* empty slots, one bit each; see WANT_OPEN */
	K value;					/* with Place::together */
	bool hit;
};

enum Want {
	WANT_HIT,					/* hit, slot, value */
	WANT_OPEN,					/* and free != 0 if there is any empty slot */
	WANT_FREE					/* and free names every empty slot */
};

template <class L> struct Chunks {
	uint4 d[L::tile];
};

/*
 * Issue the loads of one bucket per lane: in round r the tile reads the bucket of
 * its lane r.  Lanes whose `need` is false cause no memory traffic.
 */
template <class L, bool SHARED>
__device__ inline void issue(const L &t, uint32_t bucket, bool need, Chunks<L> &c)
{
	constexpr int T = L::tile;
	const int rank = threadIdx.x % T;
	const uint32_t needs = __ballot_sync(ALL, need) >> ((threadIdx.x % 32) - rank);

#pragma unroll
	for (int r = 0; r < T; r++)
	{
		const uint32_t b = __shfl_sync(ALL, bucket, r, T);

		c.d[r] = make_uint4(0, 0, 0, 0);
		if (needs >> r & 1)
			c.d[r] = SHARED ? __ldcg(t.chunk(b, rank)) : load_const(t.chunk(b, rank));
	}
}

/* Compare the loaded buckets with the tile's keys; each lane learns about its own. */
template <class L, Want W>
__device__ inline void resolve(const Chunks<L> &c, typename L::key_t key, bool need,
							   Seen<typename L::key_t> &s)
{
	using K = typename L::key_t;
	constexpr int T = L::tile;
	const int rank = threadIdx.x % T;
	const int first = (threadIdx.x % 32) - rank;
	constexpr uint32_t MASK = (1u << T) - 1;

#pragma unroll
	for (int r = 0; r < T; r++)
	{
		const K wanted = __shfl_sync(ALL, key, r, T);
		const bool owner = need && rank == r;
		uint32_t sub = L::per_lane;
		K value = 0;
		bool open = false;
		uint32_t free = 0;

#pragma unroll
		for (int j = 0; j < L::per_lane; j++)
		{
			const K k = chunk_key<L>(c.d[r], j);

			if (k == wanted)
			{
				sub = j;
				if (L::together)
					value = word_of<K>(c.d[r], 2 * j + 1);
			}
			open |= k == empty_key<K>();
			if (W == WANT_FREE)
				free |= ((__ballot_sync(ALL, k == empty_key<K>()) >> first) & MASK) << (j * T);
		}
		const uint32_t votes = (__ballot_sync(ALL, sub < L::per_lane) >> first) & MASK;
		const int source = (__ffs(votes) - 1) & (T - 1);

		if (W == WANT_OPEN)
			free = (__ballot_sync(ALL, open) >> first) & MASK;
		if (L::together)
			value = __shfl_sync(ALL, value, source, T);
		if (L::per_lane > 1)
			sub = __shfl_sync(ALL, sub, source, T);
		if (owner)
		{
			s.hit = votes != 0;
			s.slot = source * L::per_lane + (L::per_lane > 1 ? sub : 0);
			s.free = free;
			s.value = value;
		}
	}
}

/* Bit i of Seen.free stands for this slot (each sub-slot has its own ballot). */
template <class L> __device__ inline int slot_of_bit(int bit)
{
	return (bit % L::tile) * L::per_lane + bit / L::tile;
}

/* One thread reads a whole bucket: for evictions, and as a probe style of its own. */
template <class L, bool SHARED>
__device__ inline void thread_probe(const L &t, uint32_t b, typename L::key_t key,
									Seen<typename L::key_t> &s)
{
	using K = typename L::key_t;
	uint4 d[L::tile];

	s.hit = false;
	s.free = 0;
#pragma unroll
	for (int c = 0; c < L::tile; c++)
		d[c] = SHARED ? __ldcg(t.chunk(b, c)) : __ldg(t.chunk(b, c));
#pragma unroll
	for (int c = 0; c < L::tile; c++)
	{
#pragma unroll
		for (int j = 0; j < L::per_lane; j++)
		{
			const K k = chunk_key<L>(d[c], j);

			if (k == empty_key<K>())
				s.free |= 1u << (j * L::tile + c);
			if (k == key)
			{
				s.hit = true;
				s.slot = c * L::per_lane + j;
				if (L::together)
					s.value = word_of<K>(d[c], 2 * j + 1);
			}
		}
	}
}

/* ---- atomics on a slot ---- */

/* Publish by a CAS of the key, the value being stored after it, or of the entry. */
enum class Put {
	key,
	entry
};

__device__ inline uint64_t cas_word(uint64_t *p, uint64_t expect, uint64_t fresh)
{
	return atomicCAS(reinterpret_cast<unsigned long long *>(p), expect, fresh);
}

__device__ inline uint32_t cas_word(uint32_t *p, uint32_t expect, uint32_t fresh)
{
	return atomicCAS(p, expect, fresh);
}

__device__ inline Entry<uint32_t> cas_entry(Entry<uint32_t> *p, Entry<uint32_t> e, Entry<uint32_t> f)
{
	const uint64_t seen = cas_word(reinterpret_cast<uint64_t *>(p), uint64_t(e.value) << 32 | e.key,
								   uint64_t(f.value) << 32 | f.key);

	return {static_cast<uint32_t>(seen), static_cast<uint32_t>(seen >> 32)};
}

__device__ inline Entry<uint64_t> cas_entry(Entry<uint64_t> *p, Entry<uint64_t> e, Entry<uint64_t> f)
{
	Entry<uint64_t> seen;

	asm volatile("{\n\t.reg .b128 e, f, o;\n\t"
				 "mov.b128 e, {%3, %4};\n\tmov.b128 f, {%5, %6};\n\t"
				 "atom.relaxed.gpu.global.cas.b128 o, [%2], e, f;\n\t"
				 "mov.b128 {%0, %1}, o;\n\t}"
				 : "=l"(seen.key), "=l"(seen.value)
				 : "l"(p), "l"(e.key), "l"(e.value), "l"(f.key), "l"(f.value)
				 : "memory");
	return seen;
}

/* Replace `expect` by `fresh`; returns what was there.  With Put::key only keys count. */
template <Put M, class L>
__device__ inline Entry<typename L::key_t> swap_slot(const L &t, uint32_t b, int slot,
													 Entry<typename L::key_t> expect,
													 Entry<typename L::key_t> fresh)
{
	if constexpr (M == Put::entry)
		return cas_entry(t.entry_at(b, slot), expect, fresh);
	return {cas_word(t.key_at(b, slot), expect.key, fresh.key), expect.value};
}
