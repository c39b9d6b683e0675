/*
 * layout_subtables.cuh
 *    d-probe: a key has one candidate bucket in each of d subtables, and an operation
 *    tries them one after the other.  DyHash works so; the two-layer scheme of its
 *    successor (2-in-d, Layout with D > 1) gives a key two candidates whatever d is.
 *
 * The subtable a key starts with is fixed by its hash (so that all fill evenly), and
 * the order goes round from there.  A key is in its i-th bucket only when the i - 1
 * before it are full, evicted keys included; hence the early exit holds here too.
 */
#pragma once

#include "layout_ops.cuh"

template <class L> struct Walk {
	uint32_t hi;
	uint32_t lo;
	uint32_t size;				/* buckets of a subtable */
	int start;

	__device__ Walk(const L &t, typename L::key_t key)
	{
		const uint64_t h = hash_of(key);

		hi = static_cast<uint32_t>(h >> 32);
		lo = static_cast<uint32_t>(h);
		size = t.buckets / L::subtables;
		start = __umulhi(spare_bits(h), L::subtables);
	}
	/* The bucket in one subtable: double hashing gives the d hash functions. */
	__device__ uint32_t in(int subtable) const
	{
		return subtable * size + __umulhi(hi + subtable * lo, size);
	}
	/* The i-th bucket that the key tries. */
	__device__ uint32_t nth(int i) const
	{
		const int s = start + i;

		return in(s >= L::subtables ? s - L::subtables : s);
	}
};

/* Random walk of an entry whose d buckets are full; see evict() for the rules. */
template <class L> __device__ bool evict_walk(const L &t, Entry<typename L::key_t> e)
{
	using K = typename L::key_t;
	uint32_t dice = static_cast<uint32_t>(hash_of(e.key) >> 7) | 1;
	uint32_t from = ALL;		/* the bucket that e was evicted from: full */

	for (int step = 0; step < MAX_CHAIN; step++)
	{
		const Walk<L> w(t, e.key);

		dice = dice * 1664525u + 1013904223u;

		const uint32_t b = w.in(__umulhi(dice, L::subtables));

		if (b == from)
			continue;
		dice = dice * 1664525u + 1013904223u;

		const int slot = __umulhi(dice, L::slots);
		const Entry<K> victim = {__ldcg(t.key_at(b, slot)), __ldcg(t.value_at(b, slot))};
		const Entry<K> old = swap_slot<Put::entry>(t, b, slot, victim, e);

		if (old.key != victim.key || old.value != victim.value)
			continue;
		if (victim.key == empty_key<K>())
			return true;
		e = victim;
		from = b;

		const Walk<L> next(t, e.key);

		for (int i = 0; i < L::subtables; i++)
		{
			Seen<K> s{};

			if (next.nth(i) == from)
				continue;
			thread_probe<L, true>(t, next.nth(i), e.key, s);
			if (take_slot<L, Put::entry>(t, next.nth(i), s.free, e))
				return true;
		}
	}
	return false;
}

template <class L>
__global__ void insert_walk(L t, Arrays<typename L::key_t> from, unsigned long long *unplaced)
{
	using K = typename L::key_t;
	const Entry<K> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Walk<L> w(t, e.key);
	bool done = false;
	Chunks<L> c;

	for (int i = 0; i < L::subtables && __any_sync(ALL, !done); i++)
	{
		const uint32_t b = w.nth(i);
		Seen<K> s{};

		issue<L, true>(t, b, !done, c);
		resolve<L, WANT_FREE>(c, e.key, !done, s);
		if (!done && s.hit)
			*t.value_at(b, s.slot) = e.value;
		if (!done)
			done = s.hit || take_slot<L, Put::entry>(t, b, s.free, e);
		__syncwarp();
	}
	if (!done)
		done = evict_walk(t, e);
	__syncwarp();
	tally(!done, unplaced);
}

/*
 * OWN: probe in the key's own order; otherwise subtables 0, 1, .. for every key, as
 * a table must where any subtable may hold the key.  With reads != NULL the bucket
 * reads are counted there.
 */
template <class L, bool EARLY, bool OWN, bool COUNT>
__global__ void find_walk(L t, const typename L::key_t *keys, typename L::key_t *out,
						  unsigned long long *reads)
{
	using K = typename L::key_t;
	constexpr Want WANT = EARLY ? WANT_OPEN : WANT_HIT;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const K key = __ldcs(keys + i);
	const Walk<L> w(t, key);
	bool looking = true;
	Seen<K> s{};
	Chunks<L> c;

	for (int step = 0; step < L::subtables && __any_sync(ALL, looking); step++)
	{
		if (COUNT)
			tally(looking, reads);
		issue<L, false>(t, OWN ? w.nth(step) : w.in(step), looking, c);
		resolve<L, WANT>(c, key, looking, s);
		looking = looking && !s.hit && (!EARLY || s.free == 0);
	}
	__stcs(out + i, s.hit ? s.value : no_value<K>());
}
