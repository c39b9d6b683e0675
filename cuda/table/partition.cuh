/*
 * partition.cuh
 *		A batch's keys and values by region, on the device.
 *
 * A tile of the batch is counted by bin in shared memory, takes its part of each bin's room
 * with one atomic, is put into the order of bins in shared memory, and is stored in runs.
 * With few regions one pass does it; with many, a first pass has bins of several
 * regions, whose pairs go to scratch memory, and a second one goes through each bin.
 *
 * Of an empty table the last pass stores a region's pairs where the region itself is in the
 * subtables, one subtable's run after the other: more than fit there cannot be stored anyhow.
 * Of another they go to lists in scratch memory, and with them their positions in the batch.
 *
 * A slot that has its value beside the key is just that pair, and so is what is moved here.
 * Keys with patterns of their own have no region; they are listed.
 */
#ifndef GPUHASH_PARTITION_CUH
#define GPUHASH_PARTITION_CUH

/* first: names of its templates are macros of ours */
#include <cub/block/block_scan.cuh>

#include "cuda/table/probe.cuh"
#include "cuda/table/regions.cuh"

#define PARTITION_THREADS 512
/* Pairs of a tile for each thread. */
#define PARTITION_ITEMS 8
#define PARTITION_TILE (PARTITION_THREADS * PARTITION_ITEMS)
/* Shared memory of a block beside what its launch asks for, at most: the scan's. */
#define PARTITION_FIXED_BYTES 4096

/* A slot of a layout with values together. */
template <typename L> struct alignas(L::slot_bytes) slot_pair
{
	typename L::key_type key;
	typename L::key_type value;
};

/* Where the index-th pair of a region lies. */
template <typename L> static __device__ __forceinline__ slot_pair<L> *
region_pair(const table_view &view, const region_map &map, uint32_t region, uint32_t index)
{
	uint32_t	sub = 0;

	while (index >= map.run[sub])
		index -= map.run[sub++];
	return reinterpret_cast<slot_pair<L> *>(view.sub[sub].slots) +
		(uint64_t) region * map.run[sub] + index;
}

/* Lists an entry; a list that is full gives up the whole batch. */
template <typename L> static __device__ __forceinline__ void
leave_over(const leftover_list &leftover, typename L::key_type key,
		   typename L::key_type value, uint32_t position, counters *counts)
{
	uint32_t	index = append_index(&counts->overflow);

	if (index >= leftover.room)
	{
		counts->invalid = 1;
		return;
	}
	static_cast<typename L::key_type *>(leftover.keys)[index] = key;
	static_cast<typename L::key_type *>(leftover.values)[index] = value;
	if (leftover.positions != nullptr)
		leftover.positions[index] = position;
}

/* Where a pass puts pairs. */
enum partition_target
{
	TO_BINS,					/* of several regions, in scratch memory */
	TO_TABLE,					/* where the region itself is */
	TO_LISTS					/* by region, in scratch memory */
};

template <typename L, bool POSITIONS> static __host__ __device__ __forceinline__ size_t
partition_shared_bytes(uint32_t bins)
{
	return PARTITION_TILE *
		(sizeof(slot_pair<L>) + sizeof(uint16_t) + (POSITIONS ? sizeof(uint32_t) : 0)) +
		2 * sizeof(uint32_t) * (size_t) bins;
}

/* A thread's pairs of a tile; those that there are not have no bin. */
template <typename L> struct tile_part
{
	slot_pair<L> pair[PARTITION_ITEMS];
	uint32_t	ranked[PARTITION_ITEMS];	/* bin << 16 | rank in it */
};

#define BIN_NONE UINT32_MAX

/* Reads a tile of the batch or, between the passes, of a bin. */
template <typename L, bool FROM_BATCH> static __device__ __forceinline__ void
tile_read(const partition &part, uint32_t start, uint32_t count, tile_part<L> &tile)
{
	typedef typename L::key_type key_type;
	const slot_pair<L> *pairs = static_cast<const slot_pair<L> *>(part.pairs) +
		(uint64_t) blockIdx.y * part.bin_room + start;
	uint32_t	first = part.first + start;

#pragma unroll
	for (uint32_t j = 0; j < PARTITION_ITEMS; j++)
	{
		uint32_t	i = j * PARTITION_THREADS + threadIdx.x;

		tile.ranked[j] = i < count ? 0 : BIN_NONE;
		if (i >= count)
			continue;
		if (!FROM_BATCH)
		{
			tile.pair[j] = pairs[i];
			continue;
		}
		tile.pair[j].key = __ldcs(static_cast<const key_type *>(part.keys) + first + i);
		tile.pair[j].value = part.values == nullptr ? (key_type) (first + i) :
			__ldcs(static_cast<const key_type *>(part.values) + first + i);
	}
}

/* Takes each bin's part of its room.  Returns how many pairs of the tile have a bin. */
static __device__ __forceinline__ uint32_t
bins_take(uint32_t bins, uint32_t *filled, uint32_t *starts, uint32_t *targets)
{
	typedef cub::BlockScan<uint32_t, PARTITION_THREADS> block_scan;
	__shared__ typename block_scan::TempStorage space;
	static_assert(sizeof(space) <= PARTITION_FIXED_BYTES, "it is counted");
	uint32_t	before = 0;

	for (uint32_t base = 0; base < bins; base += PARTITION_THREADS)
	{
		uint32_t	bin = base + threadIdx.x;
		uint32_t	mine = bin < bins ? starts[bin] : 0;
		uint32_t	taken = mine > 0 ? atomicAdd(&filled[bin], mine) : 0;
		uint32_t	start;
		uint32_t	total;

		block_scan(space).ExclusiveSum(mine, start, total);
		start += before;
		before += total;
		if (bin < bins)
		{
			starts[bin] = start;
			/* the pair at i of the tile goes to i + this of the bin */
			targets[bin] = taken - start;
		}
		__syncthreads();		/* the scan's memory is used again */
	}
	return before;
}

/* The i-th of a tile's pairs, in the order of bins, goes to its place. */
template <typename L, partition_target TARGET, bool POSITIONS> static __device__ __forceinline__ void
pair_store(const table_view &view, const region_map &map, const partition &part, uint32_t bin,
		   uint32_t at, const slot_pair<L> &pair, uint32_t position, counters *counts)
{
	slot_pair<L> *lists = static_cast<slot_pair<L> *>(TARGET == TO_LISTS ? map.lists.pairs :
													  part.pairs);
	uint32_t   *positions = TARGET == TO_LISTS ? map.lists.positions : part.positions;
	uint32_t	room = TARGET == TO_TABLE ? map.slots : TARGET == TO_LISTS ? map.lists.room :
		part.bin_room;

	if (at >= room)
		counts->invalid = 1;
	else if (TARGET == TO_TABLE)
		*region_pair<L>(view, map, bin, at) = pair;
	else
	{
		lists[(uint64_t) bin * room + at] = pair;
		if (POSITIONS)
			positions[(uint64_t) bin * room + at] = position;
	}
}

/*
 * FROM_BATCH: of the whole batch; else a row of blocks for each bin of the pass before.
 * POSITIONS: pairs have theirs with them.
 */
template <typename L, bool FROM_BATCH, partition_target TARGET, bool POSITIONS>
static __global__ void __launch_bounds__(PARTITION_THREADS, 2)
partition_kernel(const __grid_constant__ table_view view,
				 const __grid_constant__ region_map map,
				 const __grid_constant__ partition part, counters *counts)
{
	extern __shared__ __align__(16) char shared[];
	slot_pair<L> *staged = reinterpret_cast<slot_pair<L> *>(shared);
	uint32_t   *staged_positions = reinterpret_cast<uint32_t *>(staged + PARTITION_TILE);
	uint32_t   *starts = staged_positions + (POSITIONS ? PARTITION_TILE : 0);
	uint32_t   *targets = starts + part.bins;
	uint16_t   *bin_of = reinterpret_cast<uint16_t *>(targets + part.bins);
	uint32_t	first_region = FROM_BATCH ? 0 : blockIdx.y << part.shift;
	uint32_t	start = blockIdx.x * PARTITION_TILE;
	uint32_t	count = FROM_BATCH ? part.count : part.filled[blockIdx.y];
	tile_part<L> tile;

	if (!FROM_BATCH && count > part.bin_room)
		count = part.bin_room;
	if (start >= count)
		return;
	count = count - start < PARTITION_TILE ? count - start : PARTITION_TILE;
	tile_read<L, FROM_BATCH>(part, start, count, tile);
	for (uint32_t bin = threadIdx.x; bin < part.bins; bin += PARTITION_THREADS)
		starts[bin] = 0;
	__syncthreads();			/* nobody counts before the zeroes are there */
#pragma unroll
	for (uint32_t j = 0; j < PARTITION_ITEMS; j++)
	{
		if (tile.ranked[j] == BIN_NONE)
			continue;
		if (FROM_BATCH && L::special(tile.pair[j].key))
		{
			tile.ranked[j] = BIN_NONE;
			leave_over<L>(map.leftover, tile.pair[j].key, tile.pair[j].value,
						  part.first + start + j * PARTITION_THREADS + threadIdx.x, counts);
		}
		else
		{
			uint64_t	hash = hash_key(view.seed, tile.pair[j].key);
			uint32_t	region = hash_scale(hash_region_bits(hash, view.pairs), map.regions);
			uint32_t	bin = TARGET == TO_BINS ? region >> part.shift : region - first_region;

			tile.ranked[j] = bin << 16 | atomicAdd(&starts[bin], 1u);
		}
	}
	__syncthreads();			/* all have counted */
	count = bins_take(part.bins, TARGET == TO_BINS ? part.filled : map.filled + first_region,
					  starts, targets);
#pragma unroll
	for (uint32_t j = 0; j < PARTITION_ITEMS; j++)
		if (tile.ranked[j] != BIN_NONE)
		{
			uint32_t	bin = tile.ranked[j] >> 16;
			uint32_t	at = starts[bin] + (tile.ranked[j] & 0xffff);
			uint32_t	i = start + j * PARTITION_THREADS + threadIdx.x;

			staged[at] = tile.pair[j];
			bin_of[at] = (uint16_t) bin;
			if (POSITIONS)
				staged_positions[at] = FROM_BATCH ? part.first + i :
					part.positions[(uint64_t) blockIdx.y * part.bin_room + i];
		}
	__syncthreads();			/* the tile is in the order of bins */
	for (uint32_t i = threadIdx.x; i < count; i += PARTITION_THREADS)
	{
		uint32_t	bin = bin_of[i];

		pair_store<L, TARGET, POSITIONS>(view, map, part, first_region + bin, targets[bin] + i,
										 staged[i], POSITIONS ? staged_positions[i] : 0, counts);
	}
}

#endif							/* GPUHASH_PARTITION_CUH */
