/*
 * regions.cu
 *		A large batch into an empty table, region by region: what INSERT, UPSERT and BUILD
 *		begin with.
 *
 * Slices of the batch are partitioned by region (partition.cuh), which leaves each region's
 * pairs where the region is to be; then a block builds each region in shared memory
 * (region.cuh).  The few entries that found no place in their region, and keys with patterns
 * of their own, are placed as any others (place.cu).
 *
 * It is given up, and the table is empty again, when chance or many equal keys bring more pairs
 * to a region than it has slots, when too many entries are left, and, but in a build,
 * when two keys are equal: pairs do not tell which position came first.  The
 * operation then goes its other way.
 */
#include <math.h>

#include "cuda/table/region_claim.cuh"

/* Fewer keys are placed as fast one by one; nor are a few worth writing a large table. */
#define REGIONS_KEYS_MIN ((uint64_t) 1 << 16)
#define REGIONS_SLOTS_SHARE 8

/*
 * Bytes of pairs between the two passes: what lane 0 keeps; and where there is a pool to take them from,
 * for the device is not full where a slice ends.
 */
#define SLICE_BYTES ((uint64_t) 192 << 20)
#define POOLED_SLICE_BYTES ((uint64_t) 1 << 30)

/* Bins of the first of two passes, at most, and of one that is alone: runs should be
 * as long as a line of memory. */
#define COARSE_BINS_MAX 192
#define SINGLE_BINS_MAX 512

/* A bin has room for so many standard deviations, and part of the average, more. */
#define BIN_DEVIATIONS 8
#define BIN_EXTRA 16

#define LEFTOVER_MAX 65536

/* Slots of a region for one place of the queue, where shared memory is no matter. */
#define QUEUE_SHARE 8

/* Shared memory of a block of which three are on a multiprocessor, less REGION_FIXED_BYTES. */
#define THREE_BLOCKS_BYTES 76200

/* A batch with more positions of equal keys than this part of it is given up. */
#define EQUAL_SHARE 4

/* Tells which positions of a list, that are values of its keys, came with an equal key. */
template <typename KEY> static __global__ void __launch_bounds__(BLOCK_THREADS)
equals_kernel(const uint32_t *listed, uint32_t count, const KEY *values, uint32_t *positions,
			  uint8_t *flags)
{
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;
	positions[i] = (uint32_t) values[listed[i]];
	flags[positions[i]] = 0;
}

/* May a batch of so many keys be stored like this, once the table has room for them? */
bool
regions_may(const cuda_table *table, uint64_t count)
{
	/* in the host's memory, what is scattered would be scattered over the bus */
	return table->keys == 0 && table->stats.bytes_paged == 0 && count >= REGIONS_KEYS_MIN &&
		values_together(table);
}

bool
regions_worth(const cuda_table *table, uint64_t count)
{
	return regions_may(table, count) && count * REGIONS_SLOTS_SHARE >= table_slots(table);
}

/* Of a table that is empty and whose slots are all written. */
void
regions_begin(cuda_table *table)
{
	table->ordered = true;
	for (uint32_t i = 1; i < table->options.subtables; i++)
		if (table->sub[i].buckets != table->sub[0].buckets)
			table->ordered = false;
}

/* What a launch may ask for of a block's shared memory, beside the kernel's own. */
size_t
regions_shared_most(const cuda_table *table, size_t fixed)
{
	size_t		most = device_attribute(table->options.device,
										cudaDevAttrMaxSharedMemoryPerBlockOptin);

	return most > fixed ? most - fixed : 0;
}

static size_t
shared_bytes(const cuda_table *table, const region_map *map)
{
	size_t		bytes = 0;

	TOGETHER_DISPATCH(table, bytes = region_shared_bytes<L>(map->slots, map->queue));
	return bytes;
}

/*
 * Room for the keys of a region that find both buckets full: at filled factor 0.8 on average
 * 4.3 % of the slots where buckets have four, 1.8 % where they have eight; at 0.85 5.9 and 2.9, at
 * 0.9 7.8 and 4.4, with standard deviations of a tenth of that.  As long as three blocks of a
 * multiprocessor have room for six of these, that is what they get; else two do.
 */
uint32_t
regions_queue_room(const cuda_table *table, uint32_t slots)
{
	uint64_t	region_bytes = (uint64_t) slots * table->slot_bytes;
	/* a word, or two, a bucket and a link, and half a list */
	uint64_t	entry_bytes = table->slot_bytes + 5 * sizeof(uint32_t) / 2;
	double		most_filled = table->layout == LAYOUT_K4V4 ? 0.9 : 0.85;

	/* of a larger region, as one that grows has, too little would be left */
	if (region_bytes <= REGION_BYTES + REGION_BYTES / 128 &&
		table->options.fill_max <= most_filled)
		return (uint32_t) ((THREE_BLOCKS_BYTES - sizeof(uint32_t) - region_bytes) / entry_bytes);
	return slots / QUEUE_SHARE;
}

/* The table's regions; false: it has one only, or too large ones. */
bool
regions_map(const cuda_table *table, region_map *map)
{
	table_view	view = table_make_view(table);
	uint64_t	slots = 0;

	*map = {};
	map->regions = view.sub[0].regions;
	for (uint32_t i = 1; i < view.subtables; i++)
		if (view.sub[i].regions < map->regions)
			map->regions = view.sub[i].regions;
	for (uint32_t i = 0; i < view.subtables; i++)
	{
		uint64_t	run = table->sub[i].buckets / map->regions * table->bucket_slots;

		slots += run;
		if (slots > REGION_SLOTS_MAX)
			return false;
		map->run[i] = (uint32_t) run;
	}
	map->slots = (uint32_t) slots;
	return map->regions >= 2;
}

/* Has a block room for the bins of the passes? */
static bool
passes_fit(const cuda_table *table, const region_work *work)
{
	uint32_t	fine = 1u << work->part.shift;
	uint32_t	bins = work->single ? work->map.regions :
		work->part.bins > fine ? work->part.bins : fine;
	size_t		bytes = 0;

	TOGETHER_DISPATCH(table, bytes = work->positions ? partition_shared_bytes<L, true>(bins) :
					  partition_shared_bytes<L, false>(bins));
	return bytes <= regions_shared_most(table, PARTITION_FIXED_BYTES);
}

/* Room for pairs of which there are so many on average. */
uint32_t
regions_bin_room(double mean)
{
	return (uint32_t) (mean + mean / BIN_EXTRA + BIN_DEVIATIONS * sqrt(mean)) + 64;
}

/*
 * Plans the passes for the regions of work->map, for slices of work->slice positions, with the
 * pairs' positions or not.  False: they cannot be.
 */
bool
regions_plan_passes(const cuda_table *table, uint64_t count, bool positions, region_work *work)
{
	uint64_t	pair_bytes = table->slot_bytes + (positions ? sizeof(uint32_t) : 0);
	uint32_t	regions = work->map.regions;

	work->positions = positions;
	work->slice = (work->slice_bytes != 0 ? work->slice_bytes : SLICE_BYTES) / pair_bytes;
	if (work->slice > count)
		work->slice = count;
	work->part = {};
	work->single = regions <= SINGLE_BINS_MAX;
	if (work->single)
		work->slice = count;
	else
	{
		while ((regions - 1) >> work->part.shift >= COARSE_BINS_MAX)
			work->part.shift++;
		work->part.bins = ((regions - 1) >> work->part.shift) + 1;
		work->part.bin_room = regions_bin_room((double) work->slice *
											   (double) (1u << work->part.shift) / regions);
	}
	return passes_fit(table, work);
}

/* Cuts what the passes count in: of the regions, and of the bins of each slice, zeroed together. */
void
regions_carve_counts(carver *carver, uint64_t count, region_work *work)
{
	uint64_t	slices = (count + work->slice - 1) / work->slice;

	work->filled_bytes = (work->map.regions + slices * work->part.bins) * sizeof(uint32_t);
	work->map.filled = static_cast<uint32_t *>(carver->take(work->filled_bytes));
	work->part.filled = work->map.filled + work->map.regions;
}

/* Pairs that are between the two passes at a time, at most. */
uint64_t
regions_bin_pairs(const region_work *work)
{
	return (uint64_t) work->part.bins * work->part.bin_room;
}

/*
 * Finds out whether the batch suits, and cuts scratch memory, or with a NULL base only adds
 * up; work->bytes is 0 where it does not.
 */
static void
regions_carve(const cuda_table *table, uint64_t count, uint64_t slice_bytes, void *base, region_work *work)
{
	carver		carver = {static_cast<char *>(base), 0};
	uint64_t	slots = table_slots(table);
	uint64_t	pair_bytes;
	uint64_t	equal_bytes;

	*work = {};
	work->slice_bytes = slice_bytes;
	if (!regions_worth(table, count) || (double) count > table->options.fill_max * (double) slots ||
		!regions_map(table, &work->map))
		return;
	work->map.queue = regions_queue_room(table, work->map.slots);
	if (shared_bytes(table, &work->map) > regions_shared_most(table, REGION_FIXED_BYTES) ||
		!regions_plan_passes(table, count, false, work))
		return;
	pair_bytes = regions_bin_pairs(work) * table->slot_bytes;
	/* when regions are built these are through, and positions of equal keys go there */
	equal_bytes = table->options.multi ? count / EQUAL_SHARE * sizeof(uint32_t) : 0;
	if (pair_bytes < equal_bytes)
		pair_bytes = equal_bytes;
	regions_carve_counts(&carver, count, work);
	work->map.leftover.keys = carver.take(LEFTOVER_MAX * (size_t) table->options.key_size);
	work->map.leftover.values = carver.take(LEFTOVER_MAX * (size_t) table->slot_value_size);
	work->map.leftover.room = LEFTOVER_MAX;
	place_carve(&carver, LEFTOVER_MAX, &work->lists);
	work->lists.flags = carver.array<uint8_t>(LEFTOVER_MAX);
	work->part.pairs = carver.take(pair_bytes);
	work->bytes = carver.used;
}

/* Finds out whether the batch suits, and gets lane 0's memory for it; work->bytes is 0 where it does not. */
GhStatus
regions_reserve(cuda_table *table, uint64_t count, region_work *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	slice_bytes = table->host.lasting != nullptr ? POOLED_SLICE_BYTES : SLICE_BYTES;
	GhStatus	status;

	for (;;)
	{
		regions_carve(table, count, slice_bytes, nullptr, work);
		if (work->bytes == 0)
			return GH_OK;
		status = lane_reserve(table, lane, work->bytes);
		if (status == GH_OK || status == GH_DEVICE_ERROR || slice_bytes == SLICE_BYTES)
			break;
		slice_bytes = SLICE_BYTES;
	}
	if (status == GH_DEVICE_ERROR)
		*error = table->error;
	if (status == GH_OK)
		regions_carve(table, count, slice_bytes, lane->buffer, work);
	else
		*work = {};
	return status == GH_DEVICE_ERROR ? status : GH_OK;
}

/* ------------------------------------------------------------------- phases */

/* Launches one pass; rows: of blocks, of so many pairs each. */
template <typename L, bool FROM_BATCH, partition_target TARGET, bool POSITIONS> static GhStatus
run_pass(cuda_table *table, const table_view &view, const region_map &map,
		 const partition &part, uint64_t pairs, uint32_t rows, GhError *error)
{
	size_t		bytes = partition_shared_bytes<L, POSITIONS>(part.bins);
	lane	   *lane = &table->lanes[0];
	dim3		grid((uint32_t) ((pairs + PARTITION_TILE - 1) / PARTITION_TILE), rows);

	GH_TRY((regions_allow_shared(table, partition_kernel<L, FROM_BATCH, TARGET, POSITIONS>,
								 PARTITION_FIXED_BYTES, error)));
	partition_kernel<L, FROM_BATCH, TARGET, POSITIONS><<<grid, PARTITION_THREADS, bytes, lane->stream>>>(
		view, map, part, lane->device_count);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Puts every pair where its region is to be, or with its position into the region's list. */
template <typename L, partition_target TARGET, bool POSITIONS> static GhStatus
partition_batch(cuda_table *table, const table_view &view, const entry_list *list,
				const region_work *work, GhError *error)
{
	partition	batch = work->part;

	batch.keys = list->keys;
	batch.values = list->values;
	CUDA_TRY(table, cudaMemsetAsync(work->map.filled, 0, work->filled_bytes,
									table->lanes[0].stream), error);
	for (uint64_t done = 0; done < list->count; done += batch.count)
	{
		partition	bins = work->part;

		if (stop_seen(table))
			return GH_STOPPED;
		batch.first = (uint32_t) done;
		batch.count = (uint32_t) (list->count - done < work->slice ?
								  list->count - done : work->slice);
		if (work->single)
		{
			batch.bins = work->map.regions;
			GH_TRY((run_pass<L, true, TARGET, POSITIONS>(table, view, work->map, batch,
														 batch.count, 1, error)));
			continue;
		}
		GH_TRY((run_pass<L, true, TO_BINS, POSITIONS>(table, view, work->map, batch, batch.count,
													  1, error)));
		bins.bins = 1u << bins.shift;
		bins.filled = batch.filled;
		GH_TRY((run_pass<L, false, TARGET, POSITIONS>(table, view, work->map, bins, bins.bin_room,
													  work->part.bins, error)));
		batch.filled += batch.bins;
	}
	return GH_OK;
}

/* All pairs of a list, with their positions if they are wanted, into the regions' lists. */
GhStatus
regions_list(cuda_table *table, const table_view &view, const entry_list *list,
			 const region_work *work, GhError *error)
{
	if (work->positions)
		TOGETHER_DISPATCH(table, GH_TRY((partition_batch<L, TO_LISTS, true>(table, view, list, work,
																			error))));
	else
		TOGETHER_DISPATCH(table, GH_TRY((partition_batch<L, TO_LISTS, false>(table, view, list, work,
																			 error))));
	return GH_OK;
}

template <typename L> static GhStatus
build_regions(cuda_table *table, const table_view &view, const region_work *work,
			  const equal_list &equals, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	size_t		bytes = region_shared_bytes<L>(work->map.slots, work->map.queue);

	if (bytes > THREE_BLOCKS_BYTES)
	{
		GH_TRY((regions_allow_shared(table, region_kernel<L, true>, REGION_FIXED_BYTES, error)));
		region_kernel<L, true><<<work->map.regions, REGION_THREADS, bytes, lane->stream>>>(
			view, work->map, equals, lane->device_count);
	}
	else
	{
		GH_TRY((regions_allow_shared(table, region_kernel<L, false>, REGION_FIXED_BYTES, error)));
		region_kernel<L, false><<<work->map.regions, REGION_THREADS, bytes, lane->stream>>>(
			view, work->map, equals, lane->device_count);
	}
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Places what is left; *useless: it cannot be, or not as the operation wants. */
static GhStatus
place_leftover(cuda_table *table, const region_work *work, const equal_list *equals,
			   uint32_t left, regions_outcome *outcome, bool *useless, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	entry_list	list = {work->map.leftover.keys,
		static_cast<const char *>(work->map.leftover.values), nullptr, left};
	uint32_t	placed;
	uint32_t	present;
	GhStatus	status = entries_place(table, &list, &work->lists, &placed, &present, error);

	*useless = status != GH_OK || (present > 0 && equals->positions == nullptr) ||
		present > equals->room - outcome->present;
	if (status == GH_DEVICE_ERROR)
		return status;
	if (*useless)
		return GH_OK;
	if (present > 0)
	{
		TOGETHER_DISPATCH(table, equals_kernel<<<blocks_for(present), BLOCK_THREADS, 0, stream>>>(
							 work->lists.present, present,
							 static_cast<const L::key_type *>(work->map.leftover.values),
							 equals->positions + outcome->present, equals->flags));
		LAUNCH_TRY(table, error);
	}
	outcome->placed += placed;
	outcome->present += present;
	return GH_OK;
}

/* All phases; outcome->stored tells how it went, and then the table is as it came to be. */
static GhStatus
store_regions(cuda_table *table, const entry_list *list, const region_work *work,
			  const equal_list *equals, regions_outcome *outcome, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	const counters *count = lane->host_count;
	table_view	view = table_make_view(table);
	bool		useless;

	GH_TRY(lane_count_reset(table, lane, error));
	if (equals->flags != nullptr)
		CUDA_TRY(table, cudaMemsetAsync(equals->flags, 1, list->count, lane->stream), error);
	TOGETHER_DISPATCH(table, GH_TRY((partition_batch<L, TO_TABLE, false>(table, view, list, work,
																		 error))));
	if (stop_seen(table))
		return GH_STOPPED;
	TOGETHER_DISPATCH(table, GH_TRY(build_regions<L>(table, view, work, *equals, error)));
	/* a build will want so much memory of its own, and gets it while the device is busy */
	if (equals->positions != nullptr &&
		values_room_for(table, list->count, list->count, error) == GH_DEVICE_ERROR)
		return GH_DEVICE_ERROR;
	GH_TRY(lane_count_read(table, lane, error));
	if (count->invalid != 0 || (count->present > 0 && equals->positions == nullptr))
		return GH_OK;
	subtables_add_gains(table, count);
	table->keys += count->inserted;
	outcome->placed = (uint32_t) count->inserted;
	outcome->present = count->present;
	if (count->overflow > 0)
	{
		GH_TRY(place_leftover(table, work, equals, count->overflow, outcome, &useless, error));
		if (useless)
			return GH_OK;
	}
	outcome->stored = true;
	return GH_OK;
}

/*
 * Stores all positions of a list, if they suit; else the table stays empty, and
 * outcome->stored is false.  flags, by position and NULL where nobody asks, are as
 * entries_place's.  With with_equals those whose keys came with another are listed; without, there are none.
 */
GhStatus
regions_store(cuda_table *table, const entry_list *list, const region_work *work,
			  uint8_t *flags, bool with_equals, regions_outcome *outcome, GhError *error)
{
	equal_list	equals = {nullptr, list->count / EQUAL_SHARE, flags};
	uint64_t	crowded_slots = table->crowded_slots;
	uint64_t	crowded_keys = table->crowded_keys;
	GhStatus	status;

	*outcome = {};
	if (with_equals)
	{
		equals.positions = static_cast<uint32_t *>(work->part.pairs);
		outcome->equals = equals.positions;
	}
	regions_begin(table);
	status = store_regions(table, list, work, &equals, outcome, error);
	if (status == GH_DEVICE_ERROR || (status == GH_OK && outcome->stored))
		return status;
	GH_TRY(table_erase(table, error));
	/* what the other way needs first may be wanting */
	if (with_equals)
		values_clear(table);
	/* that size was too small before, and is so still */
	table->crowded_slots = crowded_slots;
	table->crowded_keys = crowded_keys;
	return status;
}
