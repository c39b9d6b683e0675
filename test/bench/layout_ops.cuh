/*
 * layout_ops.cuh
 *    Kernels of the layout laboratory's first part: find, insert and delete in
 *    every style that is compared.  One thread owns one key throughout; n is a
 *    multiple of the block size, so there are no partial warps.
 */
#pragma once

#include "layout_table.cuh"

/* ---- find ---- */

template <class L, bool EARLY>
__global__ void find_thread(L t, const typename L::key_t *keys, typename L::key_t *out)
{
	using K = typename L::key_t;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const K key = __ldcs(keys + i);
	const Choice at = t.choose(key);
	uint32_t b = at.first;
	Seen<K> s{};

	thread_probe<L, false>(t, b, key, s);
	if (!s.hit && (!EARLY || s.free == 0))
	{
		b = at.second;
		thread_probe<L, false>(t, b, key, s);
	}

	K value = no_value<K>();

	if (s.hit)
		value = L::together ? s.value : __ldg(t.value_at(b, s.slot));
	__stcs(out + i, value);
}

/*
 * KEYS keys per lane: 2 doubles the loads in flight per warp.  BLOCKS is the
 * occupancy asked of the compiler (blocks of 256 threads per multiprocessor).
 */
template <class L, bool EARLY, int KEYS, int BLOCKS>
__global__ void __launch_bounds__(BLOCK, BLOCKS)
find_tile(L t, const typename L::key_t *keys, typename L::key_t *out)
{
	using K = typename L::key_t;
	constexpr Want WANT = EARLY ? WANT_OPEN : WANT_HIT;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK * KEYS + threadIdx.x;
	K key[KEYS];
	Choice at[KEYS];
	bool again[KEYS];
	Seen<K> s[KEYS] = {};
	Chunks<L> c[KEYS];

#pragma unroll
	for (int k = 0; k < KEYS; k++)
		key[k] = __ldcs(keys + i + k * BLOCK);
#pragma unroll
	for (int k = 0; k < KEYS; k++)
	{
		at[k] = t.choose(key[k]);
		issue<L, false>(t, at[k].first, true, c[k]);
	}
#pragma unroll
	for (int k = 0; k < KEYS; k++)
	{
		resolve<L, WANT>(c[k], key[k], true, s[k]);
		again[k] = !s[k].hit && (!EARLY || s[k].free == 0);
		if (__any_sync(ALL, again[k]))
			issue<L, false>(t, at[k].second, again[k], c[k]);
	}
#pragma unroll
	for (int k = 0; k < KEYS; k++)
	{
		if (__any_sync(ALL, again[k]))
			resolve<L, WANT_HIT>(c[k], key[k], again[k], s[k]);

		K value = no_value<K>();

		if (s[k].hit)
			value = L::together ? s[k].value
				: __ldg(t.value_at(again[k] ? at[k].second : at[k].first, s[k].slot));
		__stcs(out + i + k * BLOCK, value);
	}
}

/* ---- insert ---- */

/* Where an insert takes its entries from. */
template <typename K> struct Arrays {
	const K *keys;
	const K *values;

	__device__ Entry<K> get(uint64_t i) const { return {__ldcs(keys + i), __ldcs(values + i)}; }
};

template <typename K> struct Packed {
	const Entry<K> *entries;

	__device__ Entry<K> get(uint64_t i) const { return entries[i]; }
};

/*
 * Count the lanes where `is` holds.  A counter is CELLS words, and warps spread over
 * them: one atomicAdd per warp to a single word limits a kernel to some 6 G keys/s.
 */
constexpr int CELLS = 1024;

template <int SPREAD = CELLS> __device__ inline void tally(bool is, unsigned long long *counter)
{
	const uint32_t votes = __ballot_sync(ALL, is);
	const uint32_t cell = (blockIdx.x * (BLOCK / 32) + threadIdx.x / 32) % SPREAD;

	if (votes != 0 && threadIdx.x % 32 == 0)
		atomicAdd(counter + cell, static_cast<unsigned long long>(__popc(votes)));
}

/*
 * Take the lowest of the free slots that a probe saw; true when the key is stored,
 * by this thread or by another with the same key.  Slots are never emptied while
 * inserts run, so every thread passes a slot that another took before it: two
 * threads with the same key cannot both store it.
 */
template <class L, Put M>
__device__ inline bool take_slot(const L &t, uint32_t b, uint32_t free, Entry<typename L::key_t> e)
{
	using K = typename L::key_t;

	while (free != 0)
	{
		const int slot = slot_of_bit<L>(__ffs(free) - 1);
		const Entry<K> old = swap_slot<M>(t, b, slot, {empty_key<K>(), empty_key<K>()}, e);

		free &= free - 1;
		if (old.key != empty_key<K>() && old.key != e.key)
			continue;
		if (M == Put::key || old.key == e.key)
			*t.value_at(b, slot) = e.value;
		return true;
	}
	return false;
}

/*
 * Random walk: exchange the entry for a random one of a full bucket, and carry that
 * one to its other bucket.  A full bucket stays full, so early exits stay valid.
 * The laboratory drops the entry in hand at the end of a chain and counts it.
 */
template <class L, Put M>
__device__ bool evict(const L &t, Entry<typename L::key_t> e, Choice at)
{
	using K = typename L::key_t;
	uint32_t dice = static_cast<uint32_t>(hash_of(e.key) >> 7) | 1;
	uint32_t b = dice & 2 ? at.first : at.second;

	for (int step = 0; step < MAX_CHAIN; step++)
	{
		dice = dice * 1664525u + 1013904223u;

		const int slot = __umulhi(dice, L::slots);
		const Entry<K> victim = {__ldcg(t.key_at(b, slot)), __ldcg(t.value_at(b, slot))};
		const Entry<K> old = swap_slot<M>(t, b, slot, victim, e);

		if (old.key != victim.key || (M == Put::entry && old.value != victim.value))
			continue;
		if (victim.key == empty_key<K>())
			return true;
		e = victim;
		at = t.choose(e.key);
		b = b == at.first ? at.second : at.first;

		Seen<K> s{};

		thread_probe<L, true>(t, b, e.key, s);
		if (take_slot<L, M>(t, b, s.free, e))
			return true;
	}
	return false;
}

/*
 * Insert or replace.  With EVICT and values apart only the keys move, and the
 * caller stores the values afterwards (see set_values): such a build is not timed.
 */
template <class L, Put M, bool EVICT, class Source, int BLOCKS>
__global__ void __launch_bounds__(BLOCK, BLOCKS)
insert_tile(L t, Source from, unsigned long long *unplaced)
{
	using K = typename L::key_t;
	const Entry<K> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Choice at = t.choose(e.key);
	Seen<K> s{};
	Chunks<L> c;
	bool done;

	issue<L, true>(t, at.first, true, c);
	resolve<L, WANT_FREE>(c, e.key, true, s);
	if (s.hit)
		*t.value_at(at.first, s.slot) = e.value;
	done = s.hit || take_slot<L, M>(t, at.first, s.free, e);
	if (__any_sync(ALL, !done))
	{
		issue<L, true>(t, at.second, !done, c);
		resolve<L, WANT_FREE>(c, e.key, !done, s);
		if (!done)
		{
			if (s.hit)
				*t.value_at(at.second, s.slot) = e.value;
			done = s.hit || take_slot<L, M>(t, at.second, s.free, e);
		}
		if (EVICT && !done)
			done = evict<L, M>(t, e, at);
		__syncwarp();
	}
	tally(!done, unplaced);
}

/* ---- insert under a lock per bucket (one bit each) ---- */

__device__ inline bool try_lock(uint32_t *locks, uint32_t b)
{
	return (atomicOr(locks + b / 32, 1u << b % 32) >> b % 32 & 1) == 0;
}

__device__ inline void unlock(uint32_t *locks, uint32_t b)
{
	__threadfence();			/* the bucket's words before the lock's release */
	atomicAnd(locks + b / 32, ~(1u << b % 32));
}

/* Store into a locked bucket; false when it is full. */
template <class L>
__device__ inline bool store_locked(const L &t, uint32_t b, const Seen<typename L::key_t> &s,
									Entry<typename L::key_t> e)
{
	if (!s.hit && s.free == 0)
		return false;

	const int slot = s.hit ? s.slot : slot_of_bit<L>(__ffs(s.free) - 1);

	if constexpr (L::together)
	{
		*t.entry_at(b, slot) = e;
	}
	else
	{
		*t.key_at(b, slot) = e.key;
		*t.value_at(b, slot) = e.value;
	}
	return true;
}

/* The whole warp inspects one bucket for one key. */
template <class L>
__device__ inline Seen<typename L::key_t> warp_probe(const L &t, uint32_t b, typename L::key_t key)
{
	using K = typename L::key_t;
	const int lane = threadIdx.x % 32;
	const bool reads = lane < L::tile;
	const uint4 d = reads ? __ldcg(t.chunk(b, lane)) : make_uint4(0, 0, 0, 0);
	Seen<K> s{};

#pragma unroll
	for (int j = 0; j < L::per_lane; j++)
	{
		const K k = chunk_key<L>(d, j);
		const uint32_t hits = __ballot_sync(ALL, reads && k == key);

		s.free |= __ballot_sync(ALL, reads && k == empty_key<K>()) << (j * L::tile);
		if (hits != 0)
		{
			s.hit = true;
			s.slot = (__ffs(hits) - 1) * L::per_lane + j;
		}
	}
	return s;
}

/* The next of the voting lanes, from `turn` on and round. */
__device__ inline int elect(uint32_t votes, int turn)
{
	const uint32_t later = turn < 32 ? votes & (ALL << turn) : 0;

	return __ffs(later != 0 ? later : votes) - 1;
}

/*
 * DyHash's voter (section 4 of the paper): the warp elects a lane, that lane tries
 * its bucket's lock, and on success the warp inspects the bucket for it; on failure
 * the next lane that still has work is elected.  The turn goes round, so that a
 * lane whose bucket is busy does not hold up the others.
 */
template <class L>
__global__ void insert_voter(L t, Arrays<typename L::key_t> from, uint32_t *locks,
							 unsigned long long *unplaced)
{
	using K = typename L::key_t;
	const int lane = threadIdx.x % 32;
	const Entry<K> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Choice at = t.choose(e.key);
	uint32_t bucket = at.first;
	bool active = true;
	bool second = false;
	bool failed = false;
	int turn = 0;
	uint32_t votes;

	while ((votes = __ballot_sync(ALL, active)) != 0)
	{
		const int leader = elect(votes, turn);
		const uint32_t b = __shfl_sync(ALL, bucket, leader);
		bool locked = false;

		turn = leader + 1;
		if (lane == leader)
			locked = try_lock(locks, b);
		if (!__shfl_sync(ALL, locked, leader))
			continue;
		__threadfence();		/* the lock before the bucket's words */

		const Seen<K> s = warp_probe(t, b, __shfl_sync(ALL, e.key, leader));

		if (lane == leader)
		{
			const bool stored = store_locked(t, b, s, e);

			unlock(locks, b);
			failed = !stored && second;
			active = !stored && !second;
			second = true;
			bucket = at.second;
		}
		__syncwarp();
	}
	tally(failed, unplaced);
}

/*
 * The same idea with as many elections at once as there are lanes: every lane tries
 * its own bucket's lock, tiles serve the lanes that got theirs, the others try
 * again in the next round.  Nobody waits while holding a lock.
 */
template <class L>
__global__ void insert_trylock(L t, Arrays<typename L::key_t> from, uint32_t *locks,
							   unsigned long long *unplaced)
{
	using K = typename L::key_t;
	const Entry<K> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Choice at = t.choose(e.key);
	uint32_t bucket = at.first;
	bool active = true;
	bool second = false;
	bool failed = false;
	Chunks<L> c;

	while (__any_sync(ALL, active))
	{
		const bool locked = active && try_lock(locks, bucket);
		Seen<K> s{};

		__threadfence();		/* the locks before the buckets' words */
		__syncwarp();
		issue<L, true>(t, bucket, locked, c);
		resolve<L, WANT_FREE>(c, e.key, locked, s);
		if (locked)
		{
			const bool stored = store_locked(t, bucket, s, e);

			unlock(locks, bucket);
			failed = !stored && second;
			active = !stored && !second;
			second = true;
			bucket = at.second;
		}
	}
	tally(failed, unplaced);
}

/* ---- delete ---- */

/*
 * Both buckets are read: a delete may have emptied a slot of the first.  SPREAD = 1
 * counts the removed keys in one word, to show what that costs.
 */
template <class L, Put M, int SPREAD>
__global__ void delete_tile(L t, const typename L::key_t *keys, unsigned long long *removed)
{
	using K = typename L::key_t;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const K key = __ldcs(keys + i);
	const Choice at = t.choose(key);
	Seen<K> s{};
	Chunks<L> c;
	bool gone = false;

	issue<L, true>(t, at.first, true, c);
	resolve<L, WANT_HIT>(c, key, true, s);

	const bool again = !s.hit;

	if (__any_sync(ALL, again))
	{
		issue<L, true>(t, at.second, again, c);
		resolve<L, WANT_HIT>(c, key, again, s);
	}
	if (s.hit)
		gone = swap_slot<M>(t, again ? at.second : at.first, s.slot, {key, s.value},
							{empty_key<K>(), empty_key<K>()}).key == key;
	tally<SPREAD>(gone, removed);
}

/* ---- preparation, checks and counts (not timed) ---- */

template <typename K>
__global__ void make_data(K *keys, K *values, K *hits, K *misses, uint64_t n, int bits)
{
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;

	keys[i] = key_of<K>(i);
	values[i] = value_of(keys[i]);
	hits[i] = key_of<K>(shuffled(i, bits));
	misses[i] = key_of<K>(n + i);
}

template <class L> __global__ void set_values(L t)
{
	using K = typename L::key_t;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;

	if (i < uint64_t(t.buckets) * L::slots)
	{
		const K key = *t.key_at(i / L::slots, i % L::slots);

		*t.value_at(i / L::slots, i % L::slots) = value_of(key);
	}
}

template <class L> __global__ void count_entries(L t, unsigned long long *count)
{
	using K = typename L::key_t;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const bool used = i < uint64_t(t.buckets) * L::slots
		&& *t.key_at(i / L::slots, i % L::slots) != empty_key<K>();

	tally(used, count);
}

/* counter 0: right values; counter 1: not found; anything else is a wrong answer. */
template <typename K>
__global__ void check_finds(const K *queries, const K *out, unsigned long long *count)
{
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;

	tally(out[i] == value_of(queries[i]), count);
	tally(out[i] == no_value<K>(), count + CELLS);
}

template <class L, bool EARLY>
__global__ void count_reads(L t, const typename L::key_t *keys, unsigned long long *count)
{
	using K = typename L::key_t;
	const K key = keys[uint64_t(blockIdx.x) * BLOCK + threadIdx.x];
	Seen<K> s{};

	thread_probe<L, false>(t, t.choose(key).first, key, s);
	tally(!s.hit && (!EARLY || s.free == 0), count);
}
