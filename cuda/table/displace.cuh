/*
 * displace.cuh
 *		Single moves, where one atomic changes a whole entry: an entry that is in the
 *		bucket it prefers goes to its other bucket, and a new one takes its slot.
 *
 * The entry is copied first, and then replaced by the new one, each with one
 * compare-and-swap.  If the second fails, for another thread was quicker, the copy
 * is taken back.  That is safe: a copy is in the bucket that its key does not
 * prefer, and only entries that are where they prefer to be are moved like this, so
 * nobody else touches it.  An entry is thus moved once at most, and whoever looks
 * into the preferred bucket first and into the other one then cannot miss it.
 */
#ifndef GPUHASH_DISPLACE_CUH
#define GPUHASH_DISPLACE_CUH

#include "cuda/table/probe.cuh"

/* What one atomic changes: key and value. */
template <typename L> struct whole_entry
{
	word_pair	words;			/* of layout_k8v8 both, of layout_k4v4 the first */
};

template <typename L> static __device__ __forceinline__ whole_entry<L>
make_whole(typename L::key_type key, uint64_t value)
{
	if (L::packed)
		return {{L::make_word(key, value), 0}};
	return {{(uint64_t) key, value}};
}

template <typename L> static __device__ __forceinline__ whole_entry<L>
load_whole(const char *slot)
{
	if (L::packed)
		return {{load_relaxed(reinterpret_cast<const uint64_t *>(slot)), 0}};

	fragment	read = load_fragment(slot);

	return {{(uint64_t) read.y << 32 | read.x, (uint64_t) read.w << 32 | read.z}};
}

/* True when the slot held what was expected and now holds the other. */
template <typename L> static __device__ __forceinline__ bool
swap_whole(char *slot, const whole_entry<L> &expected, const whole_entry<L> &desired,
		   bool release)
{
	if constexpr (L::packed)
	{
		uint64_t   *word = reinterpret_cast<uint64_t *>(slot);
		uint64_t	held = release ?
			compare_and_swap_release(word, expected.words.x, desired.words.x) :
			compare_and_swap(word, expected.words.x, desired.words.x);

		return held == expected.words.x;
	}
#if HAVE_ATOMIC_128
	if constexpr (L::paired)
	{
		word_pair  *words = reinterpret_cast<word_pair *>(slot);
		word_pair	held = release ?
			compare_and_swap_release(words, expected.words, desired.words) :
			compare_and_swap(words, expected.words, desired.words);

		return held.x == expected.words.x && held.y == expected.words.y;
	}
#endif
	return false;
}

template <typename L> static __device__ __forceinline__ bool
whole_is_free(const whole_entry<L> &entry)
{
	return entry.words.x == L::empty_word || entry.words.x == L::freed_word;
}

/* Puts an entry into the first free slot of the bucket; its address, or NULL. */
template <typename L> static __device__ __forceinline__ char *
bucket_put(char *bucket, const whole_entry<L> &entry)
{
	whole_entry<L> held[L::slots];

	/* all loads first: they travel together */
#pragma unroll
	for (uint32_t i = 0; i < L::slots; i++)
		held[i] = load_whole<L>(bucket + mask_slot<L>(i) * L::slot_bytes);
#pragma unroll
	for (uint32_t i = 0; i < L::slots; i++)
		if (whole_is_free<L>(held[i]) &&
			swap_whole<L>(bucket + mask_slot<L>(i) * L::slot_bytes, held[i], entry, false))
			return bucket + mask_slot<L>(i) * L::slot_bytes;
	return nullptr;
}

/*
 * Copies that were taken back.  Other threads rely on slots being filled only, so
 * these stay BUSY until the kernel is over; the search behind it, or a kernel of its own, frees them.
 */
struct dead_slots
{
	char	  **slots;
	uint32_t	room;			/* of slots */
	uint32_t   *used;			/* may pass room: then the host looks for them */
};

template <typename L> static __device__ __forceinline__ void
take_back(char *hole, const dead_slots &dead)
{
	typedef typename L::word_type word_type;
	uint32_t	index;

	store_release(reinterpret_cast<word_type *>(hole), L::busy_word);
	index = append_index(dead.used);
	if (index < dead.room)
		dead.slots[index] = hole;
}

/* Replaces the victim by the entry, if the victim can move to its other bucket. */
template <typename L> static __device__ __forceinline__ bool
displace(const table_view &view, char *bucket, char *slot, const whole_entry<L> &entry,
		 const dead_slots &dead, uint32_t *sub)
{
	whole_entry<L> victim = load_whole<L>(slot);
	candidates	candidate;
	char	   *hole;

	if (L::special(L::key_of(victim.words.x)))
		return false;
	candidate = key_candidates(view, hash_key(view.seed, L::key_of(victim.words.x)));
	if (candidate.bucket[0] != bucket)
		return false;
	hole = bucket_put<L>(candidate.bucket[1], victim);
	if (hole == nullptr)
		return false;
	/* the copy is there before the victim goes: who does not see the one sees the other */
	if (!swap_whole<L>(slot, victim, entry, true))
	{
		take_back<L>(hole, dead);
		return false;
	}
	*sub = candidate.sub[1];
	return true;
}

#endif							/* GPUHASH_DISPLACE_CUH */
