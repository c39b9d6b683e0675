/*
 * change.cuh
 *		change_kernel: INSERT and UPSERT in a table that has entries, a region by one block.
 *
 *	load	the region into shared memory
 *	place	each pair finds its key, or takes the first free slot of its buckets for it; of the
 *			pairs of a slot the one whose position counts owns it
 *	store	owners go to their slots in the table.  Flags of new keys are set; the values that were
 *			replaced go to the owners' pairs
 *
 * Where keys found both buckets full, these were queued, and what follows is instead
 *
 *	settle	the owners' values go to their slots in shared memory
 *	move	of equal keys in the queue one goes on (region.cuh)
 *	tell	flags and replaced values, as above
 *	store	the whole region
 *
 * Equal keys, and order: as in place.cuh.  Until entries move, slots are only filled, all threads
 * of a key try the same ones in the same order, and a key goes to the other bucket only when the one
 * that it prefers has no free slot.  A slot that was free stays as it was marked, EMPTY or FREED.
 *
 * A region is changed as a whole or not at all: when its entries find no place the block
 * gives it up, and with it the batch (change.cu).  What other blocks have changed by then is undone
 * by flags and pairs, so nothing is told of a region that is given up.
 */
#ifndef GPUHASH_CHANGE_CUH
#define GPUHASH_CHANGE_CUH

#include "cuda/table/region.cuh"

/* Pairs that a thread reads at a time. */
#define CHANGE_READS 4
/* Fragments of the region, likewise. */
#define CHANGE_LOADS 4

/* Pairs that a thread keeps: of other pairs slots are looked for again. */
#define CHANGE_KEPT (CHANGE_READS * REGION_THREADS)

#define OWNER_NONE UINT16_MAX
/* Pairs of a region's list, at most: owners are their numbers. */
#define CHANGE_PAIRS_MAX (OWNER_NONE - 1)

/* In the place of a pair's position: its value has changed places with what the key had. */
#define REPLACED UINT32_MAX

/* A block's shared memory, beside a region's. */
struct change_space
{
	uint32_t   *queue_pair;		/* numbers of the queued pairs */
	uint32_t   *fresh;			/* bits by slot: its key is new */
	uint16_t   *owner;			/* by slot: number of a pair */
};

template <typename L> static __host__ __device__ __forceinline__ size_t
change_shared_bytes(uint32_t slots, uint32_t queue)
{
	return region_shared_bytes<L>(slots, queue) + queue * sizeof(uint32_t) +
		(slots + 31) / 32 * sizeof(uint32_t) + slots * sizeof(uint16_t);
}

/* What the block's parts share. */
template <typename L> struct change_context
{
	region_context<L> region;
	change_space space;
	slot_pair<L> *pairs;		/* of the region's list */
	uint32_t   *positions;
	uint8_t    *flags;			/* by position */
	uint32_t   *gained;			/* shared, by subtable: entries */
};

/* LAST: the last position of a key counts, else the first. */
template <typename L, bool LAST> static __device__ __forceinline__ bool
change_counts(const change_context<L> &context, uint32_t i, uint32_t than)
{
	return LAST ? context.positions[i] > context.positions[than] :
		context.positions[i] < context.positions[than];
}

/* A thread's way through the slots of a region, front to back, in the table. */
template <typename L> struct region_walk
{
	const region_context<L> &context;
	uint32_t	sub;
	uint32_t	end;			/* of the subtable's slots */
	char	   *base;			/* where slot 0 would be */

	__device__ __forceinline__ void
	enter(uint32_t number, uint32_t first)
	{
		uint32_t	run = context.map.run[number];

		sub = number;
		end = first + run;
		base = context.view.sub[number].slots +
			((int64_t) context.region * run - (int64_t) first) * L::slot_bytes;
	}

	__device__ __forceinline__
	region_walk(const region_context<L> &of) : context(of)
	{
		enter(0, 0);
	}

	__device__ __forceinline__ slot_pair<L> *
	to(uint32_t slot)
	{
		while (slot >= end)
			enter(sub + 1, end);
		return reinterpret_cast<slot_pair<L> *>(base) + slot;
	}
};

/* The phase "load". */
template <typename L> static __device__ __forceinline__ void
change_load(const region_context<L> &context)
{
	const region_space<L> &space = context.space;
	uint32_t	fragments = context.map.slots / L::lane_slots;
	region_walk<L> walk(context);

	for (uint32_t base = threadIdx.x; base < fragments; base += CHANGE_LOADS * REGION_THREADS)
	{
		fragment	read[CHANGE_LOADS];

		/* all loads first: they travel together */
#pragma unroll
		for (uint32_t n = 0; n < CHANGE_LOADS; n++)
		{
			uint32_t	i = base + n * REGION_THREADS;

			if (i < fragments)
				read[n] = load_fragment(walk.to(i * L::lane_slots));
		}
#pragma unroll
		for (uint32_t n = 0; n < CHANGE_LOADS; n++)
		{
			uint32_t	i = base + n * REGION_THREADS;
			uint64_t	first = (uint64_t) read[n].y << 32 | read[n].x;
			uint64_t	second = (uint64_t) read[n].w << 32 | read[n].z;

			if (i >= fragments)
				continue;
			if (L::packed)
				*reinterpret_cast<ulonglong2 *>(space.words + 2 * i) =
					make_ulonglong2(first, second);
			else
			{
				space.words[i] = first;
				space.values[i] = second;
			}
		}
	}
}

/* Takes the first slot of a bucket that is still free; true also when the key has come to one. */
template <typename L> static __device__ __forceinline__ bool
change_take(const change_context<L> &context, uint32_t bucket, uint32_t free,
			const slot_pair<L> &pair, uint32_t *slot)
{
	uint64_t	word = L::make_word(pair.key, pair.value);

	for (; free != 0; free &= free - 1)
	{
		uint32_t	s = bucket * L::slots + (uint32_t) __ffs((int) free) - 1;
		uint64_t   *place = context.region.space.words + s;
		uint64_t	seen = L::empty_word;
		uint64_t	held = compare_and_swap(place, seen, word);

		if (held == L::freed_word)
		{
			seen = L::freed_word;
			held = compare_and_swap(place, seen, word);
		}
		*slot = s;
		if (held == seen)
			atomicOr(&context.space.fresh[s / 32], 1u << s % 32);
		if (held == seen || L::key_of(held) == pair.key)
			return true;
	}
	return false;
}

/* Finds a pair's slot, or takes one for it; false: there is none. */
template <typename L> static __device__ __forceinline__ bool
change_place(const change_context<L> &context, const region_buckets &buckets,
			 const slot_pair<L> &pair, uint32_t *slot)
{
	bucket_look preferred = look_at_bucket<L, true>(context.region.space, buckets.preferred, pair.key);
	bucket_look other;

	if (preferred.match != 0)
	{
		*slot = buckets.preferred * L::slots + (uint32_t) __ffs((int) preferred.match) - 1;
		return true;
	}
	other = look_at_bucket<L, true>(context.region.space, buckets.other, pair.key);
	if (other.match != 0)
	{
		*slot = buckets.other * L::slots + (uint32_t) __ffs((int) other.match) - 1;
		return true;
	}
	return change_take<L>(context, buckets.preferred, preferred.free, pair, slot) ||
		change_take<L>(context, buckets.other, other.free, pair, slot);
}

/* Pair i owns the slot, if its position counts more than those that came before. */
template <typename L, bool LAST> static __device__ __forceinline__ void
change_own(const change_context<L> &context, uint32_t slot, uint32_t i)
{
	uint16_t   *owner = context.space.owner + slot;
	uint16_t	held = atomicCAS(reinterpret_cast<unsigned short *>(owner), OWNER_NONE,
								 (uint16_t) i);

	while (held != OWNER_NONE && change_counts<L, LAST>(context, i, held))
	{
		uint16_t	seen = atomicCAS(reinterpret_cast<unsigned short *>(owner), held,
									 (uint16_t) i);

		if (seen == held)
			return;
		held = seen;
	}
}

/* Pairs of a thread, and their slots. */
template <typename L> struct kept_pairs
{
	slot_pair<L> pair[CHANGE_READS];
	uint32_t	slot[CHANGE_READS];	/* SLOT_NONE: none, or there is no pair */
};

#define SLOT_NONE UINT32_MAX

template <typename L> static __device__ __forceinline__ void
change_read(const change_context<L> &context, uint32_t base, uint32_t count, kept_pairs<L> &kept)
{
#pragma unroll
	for (uint32_t n = 0; n < CHANGE_READS; n++)
	{
		uint32_t	i = base + n * REGION_THREADS + threadIdx.x;

		kept.slot[n] = SLOT_NONE;
		if (i < count)
			kept.pair[n] = context.pairs[i];
	}
}

/*
 * The phase "place", of the pairs from base on that were read.  Lanes come together again after
 * each pair.
 */
template <typename L, bool LAST> static __device__ __forceinline__ void
change_place_kept(const change_context<L> &context, uint32_t base, uint32_t count,
				  kept_pairs<L> &kept, uint32_t *queued)
{
#pragma unroll
	for (uint32_t n = 0; n < CHANGE_READS; n++)
	{
		uint32_t	i = base + n * REGION_THREADS + threadIdx.x;
		region_buckets buckets = {};
		bool		placed = false;

		if (i < count)
		{
			buckets = region_candidates<L>(context.region, kept.pair[n].key);
			placed = change_place<L>(context, buckets, kept.pair[n], &kept.slot[n]);
		}
		__syncwarp();
		if (placed)
			change_own<L, LAST>(context, kept.slot[n], i);
		else if (i < count)
		{
			uint32_t	index = region_queue<L>(context.region, queued, kept.pair[n],
												buckets.preferred);

			if (index != QUEUE_NONE)
				context.space.queue_pair[index] = i;
			else
				context.region.counts->invalid = 1;
		}
		__syncwarp();
	}
}

static __device__ __forceinline__ bool
change_fresh(const change_space &space, uint32_t slot)
{
	return (space.fresh[slot / 32] >> slot % 32 & 1) != 0;
}

/* Tells what pair i has done: it brought a new key, or replaced that value. */
template <typename L> static __device__ __forceinline__ void
change_tell(const change_context<L> &context, uint32_t i, bool fresh, typename L::key_type key,
			uint64_t old)
{
	if (fresh)
	{
		context.flags[context.positions[i]] = 1;
		return;
	}
	context.pairs[i] = {key, (typename L::key_type) old};
	context.positions[i] = REPLACED;
}

/* Each asking lane's subtable has gained an entry.  All lanes of the warp come here. */
template <typename L> static __device__ __forceinline__ void
change_count(const change_context<L> &context, bool asking, uint32_t sub)
{
	for (uint32_t i = 0; i < context.region.view.subtables; i++)
	{
		uint32_t	lanes = __ballot_sync(ALL_LANES, asking && sub == i);

		if ((threadIdx.x & 31) == 0 && lanes != 0)
			atomicAdd(&context.gained[i], (uint32_t) __popc(lanes));
	}
}

/* What a slot's value is in shared memory. */
template <typename L> static __device__ __forceinline__ uint64_t
change_value(const region_space<L> &space, uint32_t slot)
{
	return L::packed ? space.words[slot] >> 32 : space.values[slot];
}

/*
 * The phase "store" where nothing moves, of the pairs from base on, which all have slots.  INSERT
 * owns no slot whose key was there.
 */
template <typename L, bool LAST> static __device__ __forceinline__ void
change_store_kept(const change_context<L> &context, uint32_t base, const kept_pairs<L> &kept)
{
	const region_context<L> &region = context.region;

#pragma unroll
	for (uint32_t n = 0; n < CHANGE_READS; n++)
	{
		uint32_t	i = base + n * REGION_THREADS + threadIdx.x;
		uint32_t	slot = kept.slot[n];
		region_walk<L> walk(region);
		bool		owns = slot != SLOT_NONE && context.space.owner[slot] == i;
		bool		fresh = owns && change_fresh(context.space, slot);

		if (owns && (LAST || fresh))
		{
			*walk.to(slot) = kept.pair[n];
			change_tell<L>(context, i, fresh, kept.pair[n].key,
						   change_value<L>(region.space, slot));
		}
		__syncwarp();
		if (__any_sync(ALL_LANES, fresh))
			change_count<L>(context, fresh, walk.sub);
	}
}

/* The phase "settle".  INSERT owns no slot whose key was there. */
template <typename L, bool LAST> static __device__ __forceinline__ void
change_settle(const change_context<L> &context)
{
	const region_space<L> &space = context.region.space;

	for (uint32_t s = threadIdx.x; s < context.region.map.slots; s += REGION_THREADS)
	{
		uint32_t	i = context.space.owner[s];
		slot_pair<L> pair;

		if (i == OWNER_NONE)
			continue;
		if (!LAST && !change_fresh(context.space, s))
		{
			context.space.owner[s] = OWNER_NONE;
			continue;
		}
		pair = context.pairs[i];
		if (L::packed)
			space.words[s] = L::make_word(pair.key, pair.value);
		else
			space.values[s] = pair.value;
	}
}

/* The phase "tell": what was in a slot before is in the table yet. */
template <typename L> static __device__ __forceinline__ void
change_tell_all(const change_context<L> &context, uint32_t queued)
{
	const region_context<L> &region = context.region;
	region_walk<L> walk(region);

	for (uint32_t s = threadIdx.x; s < region.map.slots; s += REGION_THREADS)
		if (context.space.owner[s] != OWNER_NONE)
		{
			slot_pair<L> old = *walk.to(s);

			change_tell<L>(context, context.space.owner[s], change_fresh(context.space, s), old.key,
						   old.value);
		}
	for (uint32_t i = threadIdx.x; i < queued; i += REGION_THREADS)
		if (region.space.queue_bucket[i] != QUEUE_NONE)
			change_tell<L>(context, context.space.queue_pair[i], true, 0, 0);
}

/* Of equal keys in the queue one stays, the one whose position counts. */
template <typename L, bool LAST> static __device__ __forceinline__ void
change_pick(const change_context<L> &context, uint32_t queued)
{
	const region_space<L> &space = context.region.space;
	const uint32_t *pair = context.space.queue_pair;

	for (uint32_t i = threadIdx.x; i < queued; i += REGION_THREADS)
	{
		uint32_t	next = space.heads[space.queue_bucket[i] % region_heads(context.region.map.queue)];
		bool		stays = true;

		for (; next != QUEUE_NONE && stays; next = space.queue_next[next])
			stays = L::key_of(space.queue_words[next]) != L::key_of(space.queue_words[i]) ||
				!change_counts<L, LAST>(context, pair[next], pair[i]);
		if (!stays)
			space.queue_bucket[i] = QUEUE_NONE;
	}
	__syncthreads();			/* the others are out */
}

/* The phase "store" after moves; counts the entries that each subtable gains. */
template <typename L> static __device__ __forceinline__ void
change_store_region(const change_context<L> &context)
{
	const region_context<L> &region = context.region;
	const region_space<L> &space = region.space;
	uint32_t	before = 0;

	for (uint32_t sub = 0; sub < region.view.subtables; sub++)
	{
		uint32_t	run = region.map.run[sub];
		fragment   *to = reinterpret_cast<fragment *>(
			region.view.sub[sub].slots + (uint64_t) region.region * run * L::slot_bytes);
		uint32_t	gain = 0;

		for (uint32_t i = threadIdx.x; i < run / L::lane_slots; i += REGION_THREADS)
		{
			uint32_t	s = before + i * L::lane_slots;
			fragment	old = load_fragment(&to[i]);
			ulonglong2	out;

			out.x = space.words[s];
			/* beside a free key stands blank_value's, as it was read */
			out.y = L::packed ? space.words[s + 1] : space.values[s];
			to[i] = make_uint4((uint32_t) out.x, (uint32_t) (out.x >> 32), (uint32_t) out.y,
							   (uint32_t) (out.y >> 32));
			/* slots do not become free */
#pragma unroll
			for (int n = 0; n < L::lane_slots; n++)
				gain += L::special(L::fragment_key(old, n)) &&
					!L::special(L::key_of(n == 0 ? out.x : out.y)) ? 1 : 0;
		}
		gain = warp_sum(gain);
		if ((threadIdx.x & 31) == 0 && gain != 0)
			atomicAdd(&context.gained[sub], gain);
		before += run;
	}
}

/* Keys with patterns of their own, by the one block that has no region. */
template <typename L, bool LAST> static __device__ __forceinline__ void
change_side(const table_view &view, const leftover_list &listed, uint8_t *flags, counters *counts)
{
	__shared__ uint32_t best[SIDE_SLOTS];	/* numbers in the list */
	const typename L::key_type *keys = static_cast<const typename L::key_type *>(listed.keys);
	typename L::key_type *values = static_cast<typename L::key_type *>(listed.values);
	uint32_t	count = load_relaxed(&counts->overflow);
	uint32_t	side = threadIdx.x;

	if (side < SIDE_SLOTS)
		best[side] = QUEUE_NONE;
	__syncthreads();			/* none is best yet */
	for (uint32_t i = threadIdx.x; i < count; i += REGION_THREADS)
	{
		uint32_t   *of_key = &best[side_index<L>(keys[i])];
		uint32_t	held = atomicCAS(of_key, QUEUE_NONE, i);

		while (held != QUEUE_NONE && (LAST ? listed.positions[i] > listed.positions[held] :
									  listed.positions[i] < listed.positions[held]))
		{
			uint32_t	seen = atomicCAS(of_key, held, i);

			if (seen == held)
				break;
			held = seen;
		}
	}
	__syncthreads();			/* all have compared */
	if (side >= SIDE_SLOTS || best[side] == QUEUE_NONE)
		return;

	typename L::key_type *to = reinterpret_cast<typename L::key_type *>(side_value(view, side));
	uint32_t	i = best[side];
	typename L::key_type value = values[i];

	if (view.side_present[side] == 0)
	{
		view.side_present[side] = 1;
		flags[listed.positions[i]] = 1;
		add_relaxed(&counts->gained[0], 1);
		add_relaxed(&counts->inserted, 1);
	}
	else if (LAST)
	{
		values[i] = *to;
		listed.positions[i] = REPLACED;
	}
	else
		return;
	*to = value;
}

/*
 * A block for each region, and one more.  No more is changed of a batch that is given up;
 * flags are zero.
 */
template <typename L, bool LAST> static __global__ void __launch_bounds__(REGION_THREADS, 2)
change_kernel(const __grid_constant__ table_view view, const __grid_constant__ region_map map,
			  uint8_t *flags, counters *counts)
{
	extern __shared__ __align__(16) char shared[];
	__shared__ uint32_t queued;
	__shared__ uint32_t taken;	/* of those */
	__shared__ uint32_t gained[GH_SUBTABLES_MAX];
	__shared__ bool useless;
	__shared__ bool full;		/* entries find no place */
	__shared__ region_geometry geometry;
	static_assert(sizeof(geometry) + sizeof(gained) + SIDE_SLOTS * sizeof(uint32_t) +
				  4 * sizeof(uint32_t) <= REGION_FIXED_BYTES, "they are counted");
	equal_list	none = {};
	region_space<L> region_part = region_carve<L>(shared, map.slots, map.queue);
	uint64_t	list = (uint64_t) blockIdx.x * map.lists.room;
	change_context<L> context = {
		{view, map, none, counts, blockIdx.x, &geometry, region_part}, {},
		static_cast<slot_pair<L> *>(map.lists.pairs) + list, map.lists.positions + list, flags, gained};
	uint32_t	fresh_words = (map.slots + 31) / 32;
	uint32_t	count;
	kept_pairs<L> kept;
	uint64_t	sum = 0;

	if (threadIdx.x == 0)
	{
		queued = 0;
		taken = 0;
		full = false;
		useless = load_relaxed(&counts->invalid) != 0;
	}
	__syncthreads();
	if (useless)
		return;
	if (blockIdx.x == map.regions)
	{
		change_side<L, LAST>(view, map.leftover, flags, counts);
		return;
	}
	count = map.filled[blockIdx.x];
	if (count == 0)
		return;
	context.space.queue_pair = region_part.heads + region_heads(map.queue);
	context.space.fresh = context.space.queue_pair + map.queue;
	context.space.owner = reinterpret_cast<uint16_t *>(context.space.fresh + fresh_words);
	region_measure<L>(view, map, blockIdx.x, &geometry);
	if (threadIdx.x < GH_SUBTABLES_MAX)
		gained[threadIdx.x] = 0;
	for (uint32_t i = threadIdx.x; i < region_heads(map.queue); i += REGION_THREADS)
		region_part.heads[i] = QUEUE_NONE;
	for (uint32_t i = threadIdx.x; i < fresh_words; i += REGION_THREADS)
		context.space.fresh[i] = 0;
	for (uint32_t i = threadIdx.x; i < map.slots / 2; i += REGION_THREADS)
		reinterpret_cast<uint32_t *>(context.space.owner)[i] = UINT32_MAX;
	change_read<L>(context, 0, count, kept);
	change_load<L>(context.region);
	__syncthreads();			/* the region is there */
	for (uint32_t base = CHANGE_KEPT; base < count; base += CHANGE_KEPT)
	{
		kept_pairs<L> more;

		change_read<L>(context, base, count, more);
		change_place_kept<L, LAST>(context, base, count, more, &queued);
	}
	change_place_kept<L, LAST>(context, 0, count, kept, &queued);
	__syncthreads();			/* all are placed or queued, and slots have their owners */
	if (queued > map.queue)
		return;					/* region_queue has said so */
	if (queued == 0)
	{
		change_store_kept<L, LAST>(context, 0, kept);
		for (uint32_t base = CHANGE_KEPT; base < count; base += CHANGE_KEPT)
		{
			change_read<L>(context, base, count, kept);
			change_place_kept<L, LAST>(context, base, count, kept, &queued);
			change_store_kept<L, LAST>(context, base, kept);
		}
	}
	else
	{
		change_settle<L, LAST>(context);
		region_link_queue<L>(context.region, queued);
		change_pick<L, LAST>(context, queued);
		region_move_queued<L, REGION_FILLED>(context.region, queued, &taken, &full);
		__syncthreads();		/* nothing moves any more */
		if (full)
		{
			counts->invalid = 1;
			return;
		}
		change_tell_all<L>(context, queued);
		__syncthreads();		/* what was in the table has been read */
		change_store_region<L>(context);
	}
	__syncthreads();			/* all gains are counted */
	if (threadIdx.x != 0)
		return;
	for (uint32_t sub = 0; sub < view.subtables; sub++)
		if (gained[sub] != 0)
		{
			add_relaxed(&counts->gained[sub], gained[sub]);
			sum += gained[sub];
		}
	if (sum != 0)
		add_relaxed(&counts->inserted, sum);
}

#endif							/* GPUHASH_CHANGE_CUH */
