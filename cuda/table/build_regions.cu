/*
 * build_regions.cu
 *		BUILD where keys have several values each: count, scan and fill, region by region.
 *
 * Pairs of key and value go to lists by region (partition.cuh), in scratch memory of their own, while the
 * host gets memory for records and values.  Then a block makes each region, its records and its values
 * (build_region.cuh).  Pairs that have no slot there are added as by ADD.
 *
 * It is given up, and the table is empty again, when a list is too short, as for a key that comes very often,
 * when too many keys find both buckets full, and when there is no memory for it: the build then goes its
 * other way.
 */
#include "cuda/table/build_region.cuh"
#include "cuda/table/build.cuh"

/* Pairs that are left over, at most: one slice of ADD. */
#define LEFT_MAX 65536

/* A build by lists, and its scratch memory. */
struct list_build
{
	region_work regions;
	void	   *memory;
	uint64_t	bytes;			/* 0: it does not suit */
};

/* Cuts scratch memory, or with a NULL base only adds up. */
static void
lists_carve(const cuda_table *table, uint64_t count, list_build *build)
{
	carver		carver = {static_cast<char *>(build->memory), 0};
	region_map *map = &build->regions.map;

	regions_carve_counts(&carver, count, &build->regions);
	map->leftover.keys = carver.take(LEFT_MAX * (size_t) table->options.key_size);
	map->leftover.values = carver.take(LEFT_MAX * (size_t) table->options.value_size);
	map->leftover.room = LEFT_MAX;
	build->regions.part.pairs = carver.take(regions_bin_pairs(&build->regions) * table->slot_bytes);
	map->lists.pairs = carver.take((uint64_t) map->regions * map->lists.room * table->slot_bytes);
	build->bytes = carver.used;
}

/* Finds out whether the batch suits. */
static void
lists_plan(const cuda_table *table, const build_work *work, list_build *build)
{
	region_map *map = &build->regions.map;
	uint64_t	count = work->list.count;
	size_t		bytes = 0;

	/* a list has no positions, which flags would take, and values in the place of slots' */
	if (work->flags_wanted || table->options.value_size != table->options.key_size ||
		!regions_worth(table, count) || !regions_map(table, map))
		return;
	map->queue = regions_queue_room(table, map->slots);
	map->lists.room = regions_bin_room((double) count / map->regions);
	TOGETHER_DISPATCH(table, bytes = region_shared_bytes<L>(map->slots, map->queue));
	if (bytes <= regions_shared_most(table, COUNT_FIXED_BYTES) &&
		regions_plan_passes(table, count, false, &build->regions))
		lists_carve(table, count, build);
}

template <typename L> static GhStatus
launch_count(cuda_table *table, const table_view &view, const region_map &map, const store_view &store,
			 GhError *error)
{
	lane	   *lane = &table->lanes[0];
	size_t		bytes = region_shared_bytes<L>(map.slots, map.queue);
	equal_list	none = {};

	GH_TRY(regions_allow_shared(table, count_kernel<L>, COUNT_FIXED_BYTES, error));
	count_kernel<L><<<map.regions, REGION_THREADS, bytes, lane->stream>>>(view, map, store, none,
																		 lane->device_count);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Adds the pairs that are left over. */
static GhStatus
add_left(cuda_table *table, const region_map *map, uint32_t left, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	GhRequest	request = {};
	slice_io	slice = {};
	size_t		scratch = add_operation.scratch_bytes(table, left);
	carver		carver = {nullptr, 0};
	GhStatus	status;

	(void) carver.take(scratch);
	(void) carver.array<uint8_t>(left);
	status = lane_reserve(table, lane, carver.used);
	if (status != GH_OK)
		return gh_error_set(error, status, "no device memory for %u keys", (unsigned) left);
	carver = {static_cast<char *>(lane->buffer), 0};
	slice.scratch = carver.take(scratch);
	slice.flags = carver.array<uint8_t>(left);
	slice.count = left;
	slice.keys = map->leftover.keys;
	slice.values = static_cast<const char *>(map->leftover.values);
	return add_operation.run(table, &request, &slice, error);
}

/* All phases; an error other than the device's, or *stored false, leave what is to be cleared. */
static GhStatus
lists_store(cuda_table *table, const build_work *work, const list_build *build, bool *stored, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	value_store *values = &table->store;
	const counters *count = lane->host_count;
	const region_map *map = &build->regions.map;
	uint64_t	slots = table_slots(table);
	entry_list	list = work->list;
	table_view	view;
	store_view	store;

	list.values = work->values;
	regions_begin(table);
	view = table_make_view(table);
	GH_TRY(lane_count_reset(table, lane, error));
	GH_TRY(regions_list(table, view, &list, &build->regions, error));
	/* while the device is busy */
	GH_TRY(values_room_for(table, list.count, list.count < slots ? list.count : slots, error));
	if (stop_seen(table))
		return GH_STOPPED;
	store = {values->records, values->segments[0].values};
	TOGETHER_DISPATCH(table, GH_TRY(launch_count<L>(table, view, *map, store, error)));
	GH_TRY(lane_count_read(table, lane, error));
	if (count->invalid != 0)
		return GH_OK;
	subtables_add_gains(table, count);
	table->keys += count->inserted;
	table->values = values->used = values->segments[0].used = count->values;
	values->record_used = count->appended;
	if (count->overflow > 0)
		GH_TRY(add_left(table, map, count->overflow, error));
	*stored = true;
	return GH_OK;
}

/*
 * Builds the whole table, if the batch suits; else it stays empty, and *stored is false.
 */
GhStatus
build_by_lists(cuda_table *table, const build_work *work, bool *stored, GhError *error)
{
	uint64_t	crowded_slots = table->crowded_slots;
	uint64_t	crowded_keys = table->crowded_keys;
	list_build	build = {};
	GhStatus	status;
	GhError		why;

	*stored = false;
	lists_plan(table, work, &build);
	if (build.bytes == 0)
		return GH_OK;
	status = device_alloc(table, build.bytes, &build.memory, &why);
	if (status == GH_OK)
	{
		uint64_t	bytes = build.bytes;

		lists_carve(table, work->list.count, &build);
		status = lists_store(table, work, &build, stored, &why);
		device_free(table, build.memory, bytes);
	}
	if (table->failed)
	{
		*error = table->error;
		return GH_DEVICE_ERROR;
	}
	if (status == GH_STOPPED || (status == GH_OK && *stored))
		return status;
	values_clear(table);
	GH_TRY(table_erase(table, error));
	/* that size was too small before, and is so still */
	table->crowded_slots = crowded_slots;
	table->crowded_keys = crowded_keys;
	return GH_OK;
}
