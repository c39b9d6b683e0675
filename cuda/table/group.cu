/*
 * group.cu
 *		Grouping: the positions of equal keys of a batch meet in a scratch table, so
 *		that one of them, the leader, can act for the key.
 *
 * The scratch table has 32-bit positions for keys and is probed linearly.  A place's
 * position only ever changes to another of the same key, so whichever is read
 * tells the place's key.  Lanes of a warp that meet in a place send one of them
 * on: a key that is a million times in a batch costs a million reads of
 * one line, and few atomics.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* The place of each lane's key, found or taken, and the position of the key that it met there, or NONE. */
template <typename L> static __device__ __forceinline__ uint32_t
group_find(const entry_list &list, const group_view &group, uint64_t seed,
		   typename L::key_type key, uint32_t position, uint32_t *met)
{
	uint32_t	place = (uint32_t) hash_key(seed, key) & group.mask;

	for (;;)
	{
		uint32_t	holder = load_relaxed(&group.first[place]);

		if (holder == POSITION_NONE)
			holder = atomicCAS(&group.first[place], POSITION_NONE, position);
		*met = holder;
		if (holder == POSITION_NONE || list_key<L>(list, holder) == key)
			return place;
		/* half of the places stay free: this ends */
		place = (place + 1) & group.mask;
	}
}

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
group_kernel(entry_list list, group_view group, uint64_t seed, group_mode mode)
{
	uint64_t	i = ELEMENT;

	if (i >= list.count)
		return;

	uint32_t	position = list_position(list, i);
	uint32_t	met;
	uint32_t	place = group_find<L>(list, group, seed, list_key<L>(list, position),
									  position, &met);

	group.place[i] = place;
	if (mode == GROUP_REPEATED)
	{
		/* the one that took the place is met by all others, so that any two but finds show here */
		if (met != POSITION_NONE && (group.ops[met] != GH_FIND || group.ops[position] != GH_FIND))
			group.repeated[place] = 1;
		return;
	}

	uint32_t	active = __activemask();
	uint32_t	peers = __match_any_sync(active, place);
	uint32_t	lane = threadIdx.x & 31;
	uint32_t	before = peers & ((1u << lane) - 1);
	uint32_t	lowest = position;
	uint32_t	highest = position;

	/* positions of a list are in any order */
	for (uint32_t rest = peers; rest != 0; rest &= rest - 1)
	{
		uint32_t	other = __shfl_sync(peers, position, __ffs((int) rest) - 1);

		lowest = other < lowest ? other : lowest;
		highest = other > highest ? other : highest;
	}
	if (before == 0)
	{
		/* the words only sink and rise: looking first spares a hot key's atomics */
		if (lowest < load_relaxed(&group.first[place]))
			atomicMin(&group.first[place], lowest);
		if (mode == GROUP_LAST && load_relaxed(&group.last[place]) < highest)
			atomicMax(&group.last[place], highest);
	}
	if (mode == GROUP_COUNT)
	{
		uint32_t	base = 0;

		if (before == 0)
			base = atomicAdd(&group.last[place], (uint32_t) __popc(peers));
		base = __shfl_sync(peers, base, __ffs((int) peers) - 1);
		group.rank[i] = base + (uint32_t) __popc(before);
	}
}

group_view
group_carve(carver *carver, uint64_t keys, group_mode mode)
{
	group_view	group = {};
	uint64_t	places = 2;

	/* at most half full, for short probes */
	while (places < 2 * keys)
		places *= 2;
	group.mask = (uint32_t) (places - 1);
	group.first = carver->array<uint32_t>(places);
	group.place = carver->array<uint32_t>(keys);
	if (mode == GROUP_REPEATED)
		group.repeated = carver->array<uint8_t>(places);
	if (mode == GROUP_LAST || mode == GROUP_COUNT)
		group.last = carver->array<uint32_t>(places);
	if (mode == GROUP_COUNT)
		group.rank = carver->array<uint32_t>(keys);
	return group;
}

GhStatus
group_positions(cuda_table *table, const entry_list *list, const group_view *group,
				group_mode mode, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	size_t		places = (size_t) group->mask + 1;

	/* POSITION_NONE has all bits set */
	CUDA_TRY(table, cudaMemsetAsync(group->first, 0xff, places * sizeof(uint32_t), stream), error);
	if (mode == GROUP_REPEATED)
		CUDA_TRY(table, cudaMemsetAsync(group->repeated, 0, places, stream), error);
	if (mode == GROUP_LAST || mode == GROUP_COUNT)
		CUDA_TRY(table, cudaMemsetAsync(group->last, 0, places * sizeof(uint32_t), stream), error);
	LAYOUT_DISPATCH(table, group_kernel<L><<<blocks_for(list->count), BLOCK_THREADS, 0,
					stream>>>(*list, *group, table->options.seed, mode));
	LAUNCH_TRY(table, error);
	return GH_OK;
}
