/*
 * change.cu
 *		INSERT and UPSERT of large batches in a table that has keys, region by region.
 *
 * A slice's pairs go to lists by region (partition.cuh), with their positions; then a block
 * changes each region in shared memory (change.cuh).  That reads the whole table, and writes what
 * changed: so there is a least number of keys beside the table's slots.
 *
 * New keys are placed as fast one by one, and batches for which the table may have to grow are not
 * done like this either.  A sample of the keys tells how many are new; when there are more in
 * the end than the table has room for, it grows afterwards.
 *
 * A slice is given up, and undone, when a region's list is too short (for many equal keys), when
 * a region has no room, and when the table cannot grow afterwards: new keys are told by their
 * flags, and values that were replaced are in the lists.
 */
#include "cuda/table/change.cuh"

/* Fewer keys are done as fast one by one. */
#define CHANGE_KEYS_MIN ((uint64_t) 1 << 16)
/* So is a smaller part of the table's slots: of keys that are there, and of new ones. */
#define UPSERT_SLOTS_SHARE 32
#define INSERT_SLOTS_SHARE 8
/* A slice has this part of the table's slots at most: its lists are scratch memory. */
#define SLICE_SLOTS_SHARE 4

/* Slots of a region for one place of the queue. */
#define CHANGE_QUEUE_SHARE 8

#define SIDE_LIST_MAX 65536

/* Keys of a sample, and the part of the new ones by which it may be wrong. */
#define SAMPLE_KEYS 16384
#define SAMPLE_ERROR 0.1
/* New keys, as part of all, from which on one by one is as fast. */
#define UPSERT_FRESH_MAX 0.9
#define INSERT_FRESH_MAX 0.6

/* How many keys of a sample are not in the table? */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
sample_kernel(const __grid_constant__ table_view view, entry_list list, uint32_t stride,
			  counters *counts)
{
	uint64_t	i = ELEMENT * stride;
	bool		asking = i < list.count;
	entry_place place = warp_locate<L>(view, asking ? list_key<L>(list, (uint32_t) i) : 0,
									   asking);

	block_add(&counts->matched, asking && !place.found ? 1 : 0);
}

/* Puts replaced values back: a block for each region's list, and one more. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
restore_kernel(const __grid_constant__ table_view view, const __grid_constant__ region_map map,
			   uint32_t side_count)
{
	typedef typename L::key_type key_type;
	bool		side = blockIdx.x == map.regions;
	uint64_t	first = (uint64_t) blockIdx.x * map.lists.room;
	const slot_pair<L> *pairs = static_cast<const slot_pair<L> *>(map.lists.pairs) + first;
	const uint32_t *positions = side ? map.leftover.positions : map.lists.positions + first;
	uint32_t	count = side ? side_count : map.filled[blockIdx.x];
	uint32_t	room = side ? map.leftover.room : map.lists.room;

	if (count > room)
		count = room;
	for (uint32_t base = 0; base < count; base += BLOCK_THREADS)
	{
		uint32_t	i = base + threadIdx.x;
		bool		replaced = i < count && positions[i] == REPLACED;
		slot_pair<L> pair = {};
		entry_place place;

		if (replaced && side)
			pair = {static_cast<const key_type *>(map.leftover.keys)[i],
				static_cast<const key_type *>(map.leftover.values)[i]};
		else if (replaced)
			pair = pairs[i];
		place = warp_locate<L>(view, pair.key, replaced);
		if (place.found)
			*reinterpret_cast<key_type *>(place.value) = pair.value;
	}
}

/*
 * Plans the first slice of so many keys; work->bytes is 0 where it is not to be done like this, nor
 * if it were of fewer.
 */
void
change_plan(const cuda_table *table, GhOp op, uint64_t count, change_work *work)
{
	region_map *map = &work->regions.map;
	uint64_t	slots = table_slots(table);
	uint64_t	most = slots / SLICE_SLOTS_SHARE;
	uint64_t	slices = (count + most - 1) / most;
	size_t		bytes = 0;

	*work = {};
	if (count < CHANGE_KEYS_MIN || !values_together(table))
		return;
	work->count = (count + slices - 1) / slices;
	if (work->count * (op == GH_UPSERT ? UPSERT_SLOTS_SHARE : INSERT_SLOTS_SHARE) < slots ||
		!regions_map(table, map))
		return;
	map->queue = map->slots / CHANGE_QUEUE_SHARE;
	map->lists.room = regions_bin_room((double) work->count / map->regions);
	TOGETHER_DISPATCH(table, bytes = change_shared_bytes<L>(map->slots, map->queue));
	if (bytes > regions_shared_most(table, REGION_FIXED_BYTES) ||
		map->lists.room > CHANGE_PAIRS_MAX ||
		!regions_plan_passes(table, work->count, true, &work->regions))
		return;
	change_carve(table, nullptr, work);
}

/* Cuts scratch memory, or with a NULL base only adds up. */
void
change_carve(const cuda_table *table, void *base, change_work *work)
{
	carver		carver = {static_cast<char *>(base), 0};
	region_map *map = &work->regions.map;
	partition  *part = &work->regions.part;
	uint64_t	listed = (uint64_t) map->regions * map->lists.room;
	uint64_t	binned = regions_bin_pairs(&work->regions);

	regions_carve_counts(&carver, work->count, &work->regions);
	map->leftover.keys = carver.take(SIDE_LIST_MAX * (size_t) table->options.key_size);
	map->leftover.values = carver.take(SIDE_LIST_MAX * (size_t) table->slot_value_size);
	map->leftover.positions = carver.array<uint32_t>(SIDE_LIST_MAX);
	map->leftover.room = SIDE_LIST_MAX;
	part->pairs = carver.take(binned * table->slot_bytes);
	part->positions = carver.array<uint32_t>(binned);
	map->lists.pairs = carver.take(listed * table->slot_bytes);
	map->lists.positions = carver.array<uint32_t>(listed);
	work->bytes = carver.used;
}

/* Is a list to be done like this, as far as a sample of its keys tells? */
GhStatus
change_suits(cuda_table *table, GhOp op, const entry_list *list, bool *suits, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint32_t	stride = list->count / SAMPLE_KEYS + 1;
	uint64_t	asked = (list->count + stride - 1) / stride;
	double		fresh;

	*suits = false;
	if (table->keys == 0)
		return GH_OK;
	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, sample_kernel<L><<<blocks_for(asked), BLOCK_THREADS, 0, lane->stream>>>(
						table_make_view(table), *list, stride, lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	fresh = (double) lane->host_count->matched / (double) asked;
	*suits = fresh <= (op == GH_UPSERT ? UPSERT_FRESH_MAX : INSERT_FRESH_MAX) &&
		(double) table->keys + fresh * list->count * (1 - SAMPLE_ERROR) <=
		table->options.fill_max * (double) table_slots(table);
	return GH_OK;
}

template <typename L, bool LAST> static GhStatus
launch_change(cuda_table *table, const table_view &view, const region_map &map, uint8_t *flags,
			  GhError *error)
{
	lane	   *lane = &table->lanes[0];
	size_t		bytes = change_shared_bytes<L>(map.slots, map.queue);

	GH_TRY((regions_allow_shared(table, change_kernel<L, LAST>, REGION_FIXED_BYTES, error)));
	change_kernel<L, LAST><<<map.regions + 1, REGION_THREADS, bytes, lane->stream>>>(
		view, map, flags, lane->device_count);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Undoes what was changed. */
static GhStatus
change_undo(cuda_table *table, const entry_list *list, const region_map *map,
			uint32_t side_count, const uint8_t *flags, GhError *error)
{
	TOGETHER_DISPATCH(table, restore_kernel<L><<<map->regions + 1, BLOCK_THREADS, 0,
					  table->lanes[0].stream>>>(table_make_view(table), *map, side_count));
	LAUNCH_TRY(table, error);
	GH_TRY(entries_unplace(table, list, flags, error));
	return table_downsize_if_due(table, false, error);
}

GhStatus
change_run(cuda_table *table, GhOp op, const entry_list *list, const change_work *work,
		   uint8_t *flags, bool *done, uint32_t *inserted, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	const counters *count = lane->host_count;
	const region_map *map = &work->regions.map;
	table_view	view;
	uint32_t	side_count;

	*done = false;
	/* as when keys are placed one by one */
	for (uint32_t i = 1; i < table->options.subtables; i++)
		if (table->sub[i].buckets != table->sub[0].buckets)
			table->ordered = false;
	view = table_make_view(table);
	GH_TRY(lane_count_reset(table, lane, error));
	CUDA_TRY(table, cudaMemsetAsync(flags, 0, list->count, lane->stream), error);
	GH_TRY(regions_list(table, view, list, &work->regions, error));
	if (stop_seen(table))
		return GH_STOPPED;
	TOGETHER_DISPATCH(table, GH_TRY(
		op == GH_UPSERT ? (launch_change<L, true>(table, view, *map, flags, error)) :
		(launch_change<L, false>(table, view, *map, flags, error))));
	GH_TRY(lane_count_read(table, lane, error));
	*inserted = (uint32_t) count->inserted;
	side_count = count->overflow;
	subtables_add_gains(table, count);
	table->keys += count->inserted;
	*done = count->invalid == 0;
	/* there may be more new keys than the sample had */
	if (*done && (double) table->keys > table->options.fill_max * (double) table_slots(table))
	{
		GhStatus	status = table_make_room(table, table->keys, GROW_ALIKE, error);

		if (status == GH_DEVICE_ERROR)
			return status;
		*done = status == GH_OK;
	}
	return *done ? GH_OK : change_undo(table, list, map, side_count, flags, error);
}
