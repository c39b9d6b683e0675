/*
 * hot.cuh
 *		The keys that are used most, of tables of which a part is in the host's memory: kernels'
 *		part.  hot.cu has what holds of them.
 *
 * They are in buckets like those of the table, one for a key.  The slots of a bucket are in the order
 * in which slots are taken elsewhere, and a key in front is used more: a key that is found changes
 * places with the one before it, and a new one takes the place of the last.
 */
#ifndef GPUHASH_HOT_CUH
#define GPUHASH_HOT_CUH

#include "cuda/table/probe.cuh"

/* A key's bucket: near that of a key of a region nearby, as batches that are arranged want it. */
static __device__ __forceinline__ char *
hot_bucket(const table_view &view, uint64_t hash)
{
	return view.hot.buckets +
		(uint64_t) hash_scale(hash_region_bits(hash, view.pairs), view.hot.count) * BUCKET_BYTES;
}

/* A slot whole, as it was at some time, though others store to it. */
template <typename L> static __device__ __forceinline__ word_pair
hot_load(const char *bucket, uint32_t bit)
{
	const char *slot = bucket + mask_slot<L>(bit) * L::slot_bytes;

	if (L::paired)
		return load_whole(slot);
	return {load_relaxed(reinterpret_cast<const typename L::word_type *>(slot)), 0};
}

/* Stores a slot whole. */
template <typename L> static __device__ __forceinline__ void
hot_store(char *bucket, uint32_t bit, word_pair held)
{
	char	   *slot = bucket + mask_slot<L>(bit) * L::slot_bytes;

	if (L::paired)
		store_whole(slot, held);
	else
		store_relaxed(reinterpret_cast<typename L::word_type *>(slot), (typename L::word_type) held.x);
}

template <typename L> static __device__ __forceinline__ word_pair
hot_entry(typename L::key_type key, uint64_t value)
{
	return {(uint64_t) L::make_word(key, value), value};
}

/* Buckets of the host's memory among the first so many of a key's two. */
static __device__ __forceinline__ uint32_t
far_buckets(const table_view &view, uint64_t hash, uint32_t reads)
{
	candidates	candidate = key_candidates(view, hash);
	uint32_t	far = 0;

#pragma unroll
	for (uint32_t which = 0; which < 2; which++)
	{
		const subtable_view &subtable = view.sub[candidate.sub[which]];

		far += which < reads &&
			(uint64_t) (candidate.bucket[which] - subtable.slots) >= subtable.near_bytes ? 1 : 0;
	}
	return far;
}

/* What a look-up was answered by. */
struct hot_use
{
	bool		hit;			/* a key that is used much */
	bool		far;			/* memory of the host */
};

/*
 * warp_locate, which first looks among the keys that are used most.  Of a key that was found there
 * only `loaded` is known.  What is in the host's memory goes there.  No kernel that uses this changes the
 * table.
 */
template <typename L> static __device__ __forceinline__ entry_place
warp_locate_hot(const table_view &view, typename L::key_type key, bool asking, hot_use *use)
{
	uint64_t	hash = hash_key(view.seed, key);
	bool		ordinary = asking && !L::special(key);
	char	   *bucket = ordinary ? hot_bucket(view, hash) : nullptr;
	bucket_scan scan = warp_scan<L, true>(bucket, key);
	entry_place place;

	use->hit = ordinary && scan.match != 0;
	place = warp_locate<L>(view, key, asking && !use->hit);
	use->far = ordinary && !use->hit && far_buckets(view, hash, place.reads) != 0;
	if (use->hit)
	{
		uint32_t	bit = (uint32_t) __ffs((int) scan.match) - 1;

		place.found = true;
		place.loaded = scan.value;
		if (bit > 0)
		{
			word_pair	before = hot_load<L>(bucket, bit - 1);

			/* another thread may have been as fast */
			if (L::key_of((typename L::word_type) before.x) != key)
			{
				hot_store<L>(bucket, bit - 1, hot_entry<L>(key, scan.value));
				hot_store<L>(bucket, bit, before);
			}
		}
	}
	else if (use->far && place.found)
		hot_store<L>(bucket, scan.empty != 0 ? (uint32_t) __ffs((int) scan.empty) - 1 : L::slots - 1,
					 hot_entry<L>(key, place.loaded));
	return place;
}

#endif							/* GPUHASH_HOT_CUH */
