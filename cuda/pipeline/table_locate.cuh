/*
 * table_locate.cuh
 *		A thread looks one key up in a table that nobody changes.
 *
 * The slots of a bucket are read together, the second bucket only where the first one is full and has no such
 * key.
 */
#ifndef GPUHASH_TABLE_LOCATE_CUH
#define GPUHASH_TABLE_LOCATE_CUH

#include "cuda/table/probe.cuh"

/*
 * Is the key there?  Of a layout that has values together with keys *value is the key's, and *place where it
 * is.
 */
template <typename L> static __device__ __forceinline__ bool
locate_key(const table_view &view, uint64_t key, uint64_t *value, uint64_t **place)
{
	constexpr int fragments = BUCKET_BYTES / 16;
	candidates	candidate;

	if (L::special(key))
	{
		uint32_t	index = side_index<L>(key);

		if (view.side_present[index] == 0)
			return false;
		if (L::together)
		{
			*place = reinterpret_cast<uint64_t *>(side_value(view, index));
			*value = **place;
		}
		return true;
	}
	candidate = key_candidates(view, hash_key(view.seed, key));
	for (int which = 0; which < 2; which++)
	{
		char	   *bucket = candidate.bucket[which];
		fragment	read[fragments];
		int			match = -1;
		bool		free_slot = false;

#pragma unroll
		for (int f = 0; f < fragments; f++)
			read[f] = load_fragment(bucket + f * 16);
#pragma unroll
		for (int f = 0; f < fragments; f++)
#pragma unroll
			for (int s = 0; s < L::lane_slots; s++)
			{
				uint64_t	held = L::fragment_key(read[f], s);

				free_slot |= held == L::empty_key;
				if (held == key)
				{
					match = f * L::lane_slots + s;
					if (L::together)
						*value = L::fragment_value(read[f], s);
				}
			}
		if (match >= 0)
		{
			if (L::together)
				*place = reinterpret_cast<uint64_t *>(bucket + match * L::slot_bytes) + 1;
			return true;
		}
		if (free_slot && view.ordered)
			break;
	}
	return false;
}

/*
 * Where the value of the key is, in a table of 8 bytes each; NULL: there is no such key.  *value is what it
 * is.
 */
static __device__ __forceinline__ uint64_t *
scan_locate(const table_view &view, uint64_t key, uint64_t *value)
{
	uint64_t   *place = nullptr;

	return locate_key<layout_k8v8>(view, key, value, &place) ? place : nullptr;
}

#endif							/* GPUHASH_TABLE_LOCATE_CUH */
