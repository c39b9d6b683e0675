/*
 * layout_contention.cuh
 *    Many writers on few keys: upserts of 8-byte values (compare-and-swap of the
 *    entry, plain store, voter lock, spin lock) and of 64-byte values (voter lock,
 *    spin lock).  Operation i writes the value i, in all eight words when the value
 *    is wide, so that afterwards a value names its writer and a torn one shows.
 */
#pragma once

#include "layout_ops.cuh"

constexpr int WIDE_WORDS = 8;

/* A key's value outside the bucket: WIDE_WORDS words per slot. */
struct WideValues {
	uint64_t *words;
	int slots;					/* per bucket */

	__device__ uint64_t *at(uint32_t b, int slot) const
	{
		return words + (uint64_t(b) * slots + slot) * WIDE_WORDS;
	}
};

/* Each `distinct` operations in a row touch each of the distinct keys once. */
__global__ void make_upserts(uint64_t *keys, uint64_t *values, uint64_t distinct)
{
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;

	keys[i] = key_of<uint64_t>((i ^ mix64(i / distinct)) & (distinct - 1));
	values[i] = i;
}

/* ---- 8-byte values ---- */

/* Replace the value of a stored key by exchanging the whole entry until it works. */
template <class L>
__device__ inline void replace_entry(const L &t, uint32_t b, int slot, uint64_t seen,
									 Entry<uint64_t> e)
{
	for (;;)
	{
		const Entry<uint64_t> old = cas_entry(t.entry_at(b, slot), {e.key, seen}, e);

		if (old.value == seen)
			return;
		seen = old.value;
	}
}

/* take_slot() with the entry exchanged where another thread stored the key first. */
template <class L>
__device__ inline bool take_or_replace(const L &t, uint32_t b, const Seen<uint64_t> &s, Entry<uint64_t> e)
{
	uint32_t free = s.free;

	if (s.hit)
	{
		replace_entry(t, b, s.slot, s.value, e);
		return true;
	}
	while (free != 0)
	{
		const int slot = slot_of_bit<L>(__ffs(free) - 1);
		const Entry<uint64_t> old
			= cas_entry(t.entry_at(b, slot), {empty_key<uint64_t>(), empty_key<uint64_t>()}, e);

		free &= free - 1;
		if (old.key == empty_key<uint64_t>())
			return true;
		if (old.key == e.key)
		{
			replace_entry(t, b, slot, old.value, e);
			return true;
		}
	}
	return false;
}

/*
 * MERGE: of the lanes of a warp with the same key only the last one writes; the
 * others' values would be overwritten at once.
 */
template <class L, bool MERGE>
__global__ void upsert_cas(L t, Arrays<uint64_t> from, unsigned long long *unplaced)
{
	const Entry<uint64_t> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Choice at = t.choose(e.key);
	Seen<uint64_t> s{};
	Chunks<L> c;
	bool todo = true;
	uint32_t peers = 0;

	if (MERGE)
	{
		peers = __match_any_sync(ALL, static_cast<unsigned long long>(e.key));
		todo = 31 - __clz(static_cast<int>(peers)) == static_cast<int>(threadIdx.x % 32);
	}
	for (int pass = 0; pass < 2 && __any_sync(ALL, todo); pass++)
	{
		const uint32_t b = pass == 0 ? at.first : at.second;

		issue<L, true>(t, b, todo, c);
		resolve<L, WANT_FREE>(c, e.key, todo, s);
		if (todo)
			todo = !take_or_replace(t, b, s, e);
		__syncwarp();
	}

	/* an operation that left its value to another lane shares that lane's fate */
	const uint32_t failures = __ballot_sync(ALL, todo);

	tally(MERGE ? (failures & peers) != 0 : todo, unplaced);
}

/* A thread waits for its bucket's lock, backing off, and works alone under it. */
template <class L> struct SpinLock {
	uint32_t *locks;
	uint32_t b;
	unsigned wait = 32;

	/* Call in a loop until it is true: a lane that holds its lock then runs on. */
	__device__ bool attempt()
	{
		if (try_lock(locks, b))
		{
			__threadfence();	/* the lock before the bucket's words */
			return true;
		}
		__nanosleep(wait);
		wait = wait < 1024 ? 2 * wait : wait;
		return false;
	}
};

template <class L>
__global__ void upsert_spin(L t, Arrays<uint64_t> from, uint32_t *locks, unsigned long long *unplaced)
{
	const Entry<uint64_t> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Choice at = t.choose(e.key);
	bool stored = false;

	for (int pass = 0; pass < 2 && !stored; pass++)
	{
		SpinLock<L> lock = {locks, pass == 0 ? at.first : at.second};
		bool held = false;

		while (!held)
		{
			held = lock.attempt();
			if (held)
			{
				Seen<uint64_t> s{};

				thread_probe<L, true>(t, lock.b, e.key, s);
				stored = store_locked(t, lock.b, s, e);
				unlock(locks, lock.b);
			}
		}
	}
	__syncwarp();
	tally(!stored, unplaced);
}

/* ---- 64-byte values ---- */

__device__ inline void store_wide(uint64_t *words, uint64_t value)
{
	ulonglong2 *p = reinterpret_cast<ulonglong2 *>(words);

#pragma unroll
	for (int i = 0; i < WIDE_WORDS / 2; i++)
		p[i] = make_ulonglong2(value, value);
}

/* The slot for a key in a locked bucket, its key stored; -1 when it is full. */
template <class L>
__device__ inline int claim_locked(const L &t, uint32_t b, const Seen<uint64_t> &s, uint64_t key)
{
	if (s.hit)
		return s.slot;
	if (s.free == 0)
		return -1;

	const int slot = slot_of_bit<L>(__ffs(s.free) - 1);

	*t.key_at(b, slot) = key;
	return slot;
}

/* insert_voter() with the warp writing the value: DyHash's reason for the voter. */
template <class L>
__global__ void wide_voter(L t, WideValues wide, Arrays<uint64_t> from, uint32_t *locks,
						   unsigned long long *unplaced)
{
	const int lane = threadIdx.x % 32;
	const Entry<uint64_t> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
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
		int slot = -1;

		turn = leader + 1;
		if (lane == leader)
			locked = try_lock(locks, b);
		if (!__shfl_sync(ALL, locked, leader))
			continue;
		__threadfence();		/* the lock before the bucket's words */

		const Seen<uint64_t> s = warp_probe(t, b, __shfl_sync(ALL, e.key, leader));
		const uint64_t value = __shfl_sync(ALL, e.value, leader);

		if (lane == leader)
			slot = claim_locked(t, b, s, e.key);
		slot = __shfl_sync(ALL, slot, leader);
		if (slot >= 0 && lane < WIDE_WORDS)
		{
			wide.at(b, slot)[lane] = value;
			__threadfence();	/* each writer's word before the leader's release */
		}
		__syncwarp();
		if (lane == leader)
		{
			unlock(locks, b);
			failed = slot < 0 && second;
			active = slot < 0 && !second;
			second = true;
			bucket = at.second;
		}
		__syncwarp();
	}
	tally(failed, unplaced);
}

/* insert_trylock(): all lanes try their locks at once, tiles inspect. */
template <class L>
__global__ void wide_trylock(L t, WideValues wide, Arrays<uint64_t> from, uint32_t *locks,
							 unsigned long long *unplaced)
{
	const Entry<uint64_t> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Choice at = t.choose(e.key);
	uint32_t bucket = at.first;
	bool active = true;
	bool second = false;
	bool failed = false;
	Chunks<L> c;

	while (__any_sync(ALL, active))
	{
		const bool locked = active && try_lock(locks, bucket);
		Seen<uint64_t> s{};

		__threadfence();		/* the locks before the buckets' words */
		__syncwarp();
		issue<L, true>(t, bucket, locked, c);
		resolve<L, WANT_FREE>(c, e.key, locked, s);
		if (locked)
		{
			const int slot = claim_locked(t, bucket, s, e.key);

			if (slot >= 0)
				store_wide(wide.at(bucket, slot), e.value);
			unlock(locks, bucket);
			failed = slot < 0 && second;
			active = slot < 0 && !second;
			second = true;
			bucket = at.second;
		}
		__syncwarp();
	}
	tally(failed, unplaced);
}

template <class L>
__global__ void wide_spin(L t, WideValues wide, Arrays<uint64_t> from, uint32_t *locks,
						  unsigned long long *unplaced)
{
	const Entry<uint64_t> e = from.get(uint64_t(blockIdx.x) * BLOCK + threadIdx.x);
	const Choice at = t.choose(e.key);
	bool stored = false;

	for (int pass = 0; pass < 2 && !stored; pass++)
	{
		SpinLock<L> lock = {locks, pass == 0 ? at.first : at.second};
		bool held = false;

		while (!held)
		{
			held = lock.attempt();
			if (held)
			{
				Seen<uint64_t> s{};

				thread_probe<L, true>(t, lock.b, e.key, s);

				const int slot = claim_locked(t, lock.b, s, e.key);

				stored = slot >= 0;
				if (stored)
					store_wide(wide.at(lock.b, slot), e.value);
				unlock(locks, lock.b);
			}
		}
	}
	__syncwarp();
	tally(!stored, unplaced);
}

/* ---- check ---- */

/*
 * counter 0: operations whose key now has a value that some operation on that key
 * wrote, the same in every word; counter 1: operations whose key is not there.
 */
template <class L>
__global__ void check_upserts(L t, WideValues wide, const uint64_t *keys, uint64_t ops,
							  unsigned long long *count)
{
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const uint64_t key = keys[i];
	const Choice at = t.choose(key);
	uint32_t b = at.first;
	Seen<uint64_t> s{};
	bool good = false;

	thread_probe<L, true>(t, b, key, s);
	if (!s.hit)
	{
		b = at.second;
		thread_probe<L, true>(t, b, key, s);
	}
	if (s.hit)
	{
		const uint64_t *words = L::together ? t.value_at(b, s.slot) : wide.at(b, s.slot);
		const uint64_t value = words[0];

		good = value < ops && keys[value] == key;
		for (int w = 1; !L::together && w < WIDE_WORDS; w++)
			good = good && words[w] == value;
	}
	__syncwarp();
	tally(good, count);
	tally(!s.hit, count + CELLS);
}
