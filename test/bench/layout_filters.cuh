/*
 * layout_filters.cuh
 *    What a table can keep beside its buckets to spare bucket reads: a mark per
 *    bucket that sent a key to its second bucket, or a fingerprint per slot.
 *    Both are filled from a built table here; only finds are timed.
 */
#pragma once

#include "layout_ops.cuh"

/* ---- overflow marks: one bit per bucket ---- */

/* A bucket is marked when a key that has it as its first choice is in its second. */
template <class L> __global__ void set_marks(L t, uint32_t *marks)
{
	using K = typename L::key_t;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;

	if (i >= uint64_t(t.buckets) * L::slots)
		return;

	const K key = *t.key_at(i / L::slots, i % L::slots);
	const uint32_t first = t.choose(key).first;

	if (key != empty_key<K>() && first != i / L::slots)
		atomicOr(marks + first / 32, 1u << first % 32);
}

/*
 * A miss ends at an unmarked bucket, also after deletes emptied slots of it.
 * AHEAD reads the mark along with the bucket; otherwise only lanes that did not
 * find their key read it.
 */
template <class L, bool AHEAD, bool COUNT>
__global__ void find_marked(L t, const uint32_t *marks, const typename L::key_t *keys,
							typename L::key_t *out, unsigned long long *reads)
{
	using K = typename L::key_t;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const K key = __ldcs(keys + i);
	const Choice at = t.choose(key);
	const uint32_t *word = marks + at.first / 32;
	Seen<K> s{};
	Chunks<L> c;
	uint32_t mark = 0;

	issue<L, false>(t, at.first, true, c);
	if (AHEAD)
		mark = __ldg(word);
	resolve<L, WANT_HIT>(c, key, true, s);
	if (!AHEAD && !s.hit)
		mark = __ldg(word);

	const bool again = !s.hit && (mark >> at.first % 32 & 1);

	if (COUNT)
		tally(again, reads);
	if (__any_sync(ALL, again))
	{
		issue<L, false>(t, at.second, again, c);
		resolve<L, WANT_HIT>(c, key, again, s);
	}
	__stcs(out + i, s.hit ? s.value : no_value<K>());
}

/* ---- fingerprints: a byte per slot, eight slots a group ---- */

constexpr uint64_t ONES = 0x0101010101010101ull;
constexpr uint64_t LOWS = 0x7f7f7f7f7f7f7f7full;
constexpr uint8_t NO_FINGERPRINT = 0xff;	/* the byte of an empty slot */

__device__ inline uint8_t fingerprint(uint64_t key)
{
	const uint8_t byte = static_cast<uint8_t>(spare_bits(hash_of(key)) >> 8);

	return byte == NO_FINGERPRINT ? 0 : byte;
}

/* The high bit of each byte of x that is zero, exactly. */
__device__ inline uint64_t zero_bytes(uint64_t x)
{
	return ~(((x & LOWS) + LOWS) | x | LOWS);
}

template <class L> __global__ void set_fingerprints(L t, uint8_t *prints)
{
	using K = typename L::key_t;
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;

	if (i >= uint64_t(t.buckets) * L::slots)
		return;

	const K key = *t.key_at(i / L::slots, i % L::slots);

	prints[i] = key == empty_key<K>() ? NO_FINGERPRINT : fingerprint(key);
}

__device__ inline Entry<uint64_t> load_entry(const Entry<uint64_t> *p)
{
	const uint4 d = load_const(reinterpret_cast<const uint4 *>(p));

	return {word_of<uint64_t>(d, 0), word_of<uint64_t>(d, 1)};
}

__device__ inline Entry<uint32_t> load_entry(const Entry<uint32_t> *p)
{
	const uint64_t d = __ldg(reinterpret_cast<const unsigned long long *>(p));

	return {static_cast<uint32_t>(d), static_cast<uint32_t>(d >> 32)};
}

/*
 * One thread per key: read the group of the first bucket, then only the entries
 * whose fingerprint is right.  counter 0: groups read, counter 1: entries read.
 */
template <class L, bool EARLY, bool COUNT>
__global__ void find_prints(L t, const uint64_t *groups, const typename L::key_t *keys,
							typename L::key_t *out, unsigned long long *count)
{
	using K = typename L::key_t;
	static_assert(L::slots == 8 && L::together, "a group is the eight slots of a bucket");
	const uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
	const K key = __ldcs(keys + i);
	const Choice at = t.choose(key);
	const uint64_t pattern = fingerprint(key) * ONES;
	K value = no_value<K>();
	uint32_t group_reads = 0;
	uint32_t slot_reads = 0;

	for (int pass = 0; pass < 2; pass++)
	{
		const uint32_t b = pass == 0 ? at.first : at.second;
		const uint64_t group = __ldg(reinterpret_cast<const unsigned long long *>(groups + b));
		uint64_t same = zero_bytes(group ^ pattern);

		group_reads++;
		while (same != 0 && value == no_value<K>())
		{
			const Entry<K> e = load_entry(t.entry_at(b, (__ffsll(static_cast<long long>(same)) - 1) / 8));

			slot_reads++;
			same &= same - 1;
			if (e.key == key)
				value = e.value;
		}
		if (value != no_value<K>() || (EARLY && zero_bytes(~group) != 0))
			break;
	}
	__stcs(out + i, value);
	if (COUNT)
	{
		group_reads = __reduce_add_sync(ALL, group_reads);
		slot_reads = __reduce_add_sync(ALL, slot_reads);
		if (threadIdx.x % 32 == 0)
		{
			atomicAdd(count, static_cast<unsigned long long>(group_reads));
			atomicAdd(count + CELLS, static_cast<unsigned long long>(slot_reads));
		}
	}
}
