/*
 * mixed.cu
 *		Mixed batches of INSERT, UPSERT, FIND and DELETE: one slice.
 *
 * The results are those of doing the positions one after the other, but nothing is
 * done in turn.  At any time a key is in one of three states: gone, kept with
 * the value that the table had, or with the value of a position of the slice.  What
 * an operation does to a key is a map of states to states, which a pair of states
 * describes: what an absent key becomes, and what a present one does.  Maps are
 * composed, and composition is associative, so
 *
 *	- the positions are sorted by key, a stable sort of the places at which group.cu
 *	  has them meet;
 *	- a prefix scan by key composes for every position what was before it;
 *	- the leader of a key looks it up, which gives the state to begin with;
 *	- every position then knows the state that it met, hence its result, and the
 *	  last one of a key knows what must become of the key.
 *
 * A key that is in every position of the slice takes the same time as any other.
 * All results are out before the table is changed.  New keys go in first, which is
 * what may fail; then values are replaced and keys removed.
 */
#include <cub/device/device_scan.cuh>

#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* States of a key; any other number is the position that gave its value. */
#define STATE_GONE UINT32_MAX
#define STATE_KEPT (UINT32_MAX - 1)	/* of the table's value; of a map: unchanged */

/* A map of states: what becomes of an absent key << 32 | of a present one. */
typedef uint64_t state_map;

#define MAP_IDENTITY ((uint64_t) STATE_GONE << 32 | STATE_KEPT)

static __host__ __device__ __forceinline__ state_map
make_map(uint32_t of_absent, uint32_t of_present)
{
	return (uint64_t) of_absent << 32 | of_present;
}

/* What the map makes of a state. */
static __host__ __device__ __forceinline__ uint32_t
map_state(state_map map, uint32_t state)
{
	if (state == STATE_GONE)
		return (uint32_t) (map >> 32);
	return (uint32_t) map == STATE_KEPT ? state : (uint32_t) map;
}

/* One map after the other. */
struct compose_maps
{
	__host__ __device__ __forceinline__ state_map
	operator() (state_map before, state_map after) const
	{
		return make_map(map_state(after, (uint32_t) (before >> 32)),
						map_state(after, (uint32_t) before));
	}
};

static __device__ __forceinline__ state_map
operation_map(uint8_t op, uint32_t position)
{
	switch (op)
	{
		case GH_INSERT:
			return make_map(position, STATE_KEPT);
		case GH_UPSERT:
			return make_map(position, position);
		case GH_DELETE:
			return make_map(STATE_GONE, STATE_GONE);
		default:
			return MAP_IDENTITY;
	}
}

/* A slice's arrays in scratch memory. */
struct mixed_work
{
	group_view	group;
	place_lists lists;
	/* by leader */
	uint8_t    *there;			/* the key is in the table */
	char	  **held;			/* where its value is */
	uint32_t   *final;			/* the state that it ends in */
	/* in the order of keys */
	key_order	order;
	state_map  *maps;
	state_map  *before;			/* maps of all positions of the key before this one */
	/* lists */
	uint32_t   *fresh;			/* positions whose keys and values are to be placed */
	uint32_t   *changed;		/* leaders of keys to change or remove */
	void	   *scan_space;
	size_t		scan_bytes;
};

/* ------------------------------------------------------------------ kernels */

/* Operations are checked; leaders look their keys up. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
begin_kernel(const __grid_constant__ table_view view, entry_list list, mixed_work work,
			 const uint8_t *ops, counters *counts)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < list.count;
	bool		leader = listed && work.group.first[work.group.place[i]] == (uint32_t) i;
	uint8_t		op = listed ? ops[i] : (uint8_t) GH_FIND;
	bool		invalid = op != GH_INSERT && op != GH_UPSERT && op != GH_FIND &&
		op != GH_DELETE;
	uint32_t	invalids = (uint32_t) __popc(__ballot_sync(ALL_LANES, invalid));
	entry_place place = warp_locate<L>(view, leader ? list_key<L>(list, (uint32_t) i) : 0,
									   leader);

	if ((threadIdx.x & 31) == 0 && invalids != 0)
		atomicAdd(&counts->invalid, invalids);
	if (leader)
	{
		work.there[i] = place.found ? 1 : 0;
		work.held[i] = place.value;
	}
	if (view.count_reads != 0)
		block_add(&counts->bucket_reads, place.reads);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
maps_kernel(mixed_work work, uint32_t count, const uint8_t *ops)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		work.maps[i] = operation_map(ops[work.order.positions[i]],
									 work.order.positions[i]);
}

/*
 * Counts what a thread's position did, which is one of four things or nothing.  The
 * four sums of a block, which are BLOCK_THREADS at most, travel in one word.
 */
static __device__ __forceinline__ void
count_results(uint8_t op, bool present, counters *counts)
{
	uint64_t   *const counter[4] = {&counts->matched, &counts->inserted, &counts->replaced,
		&counts->removed};
	bool		counted[4] = {op == GH_FIND && present,
		(op == GH_INSERT || op == GH_UPSERT) && !present, op == GH_UPSERT && present,
		op == GH_DELETE && present};
	uint64_t	sums = 0;

	for (int i = 0; i < 4; i++)
		sums |= (uint64_t) (counted[i] ? 1 : 0) << (16 * i);
	sums = block_sum(sums);
	for (int i = 0; i < 4; i++)
		if ((sums >> (16 * i) & 0xffff) != 0)
			add_relaxed(counter[i], sums >> (16 * i) & 0xffff);
}

/* The last position of a key lists what must become of it. */
static __device__ __forceinline__ void
list_action(const mixed_work &work, uint32_t leader, uint32_t final, bool has_values,
			counters *counts)
{
	bool		there = work.there[leader] != 0;

	if (!there && final != STATE_GONE)
		work.fresh[append_index(&counts->appended)] = final;
	if (there && (final == STATE_GONE || (has_values && final != STATE_KEPT)))
	{
		work.final[leader] = final;
		work.changed[append_index(&counts->present)] = leader;
	}
}

/* Every position's results, from the state that it met. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
results_kernel(mixed_work work, slice_io slice, uint64_t absent, uint32_t value_size,
			   counters *counts)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < slice.count;
	uint32_t	position = 0;
	uint8_t		op = 0;
	bool		present = false;	/* met by this position */
	const char *value = nullptr;	/* found */

	if (listed)
	{
		uint32_t	place = work.order.places[i];
		uint32_t	leader = work.group.first[place];
		bool		last = i + 1 == slice.count || work.order.places[i + 1] != place;
		uint32_t	state = map_state(work.before[i],
									  work.there[leader] != 0 ? STATE_KEPT : STATE_GONE);

		position = work.order.positions[i];
		op = slice.ops[position];
		present = state != STATE_GONE;
		if (op == GH_FIND && present)
			value = state == STATE_KEPT ? work.held[leader] :
				slice.values + (uint64_t) state * value_size;
		slice.flags[position] = present == (op == GH_FIND || op == GH_DELETE) ? 1 : 0;
		if (last)
			list_action(work, leader, map_state(work.maps[i], state), value_size != 0,
						counts);
	}
	if (slice.values_out != nullptr)
	{
		char	   *to = slice.values_out + (uint64_t) position * value_size;

		warp_copy_values(value != nullptr, to, value, value_size);
		if (listed && value == nullptr)
			value_from_word(to, absent, value_size);
	}
	count_results(op, present, counts);
}

/* Changes or removes the keys of the listed leaders. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
change_kernel(const __grid_constant__ table_view view, entry_list list,
			  const uint32_t *final, counters *counts)
{
	typedef typename L::key_type key_type;
	__shared__ uint32_t shared[block_sums::WORDS];
	block_sums	sums;
	uint64_t	i = ELEMENT;
	bool		listed = i < list.count;
	uint32_t	leader = listed ? list_position(list, i) : 0;
	key_type	key = listed ? list_key<L>(list, leader) : 0;
	uint32_t	state = listed ? final[leader] : STATE_GONE;
	entry_place place;
	bool		removed;

	sums.begin(shared);
	place = warp_locate<L>(view, key, listed);
	removed = place.found && state == STATE_GONE && place_empty<L>(view, place, key);
	warp_copy_values(place.found && state != STATE_GONE, place.value,
					 list.values + (uint64_t) state * view.value_size, view.value_size);
	sums.add_one(block_sums::ENTRIES, removed);
	sums.add_reads(view, place.reads);
	sums.add_gains(view, removed, place.sub);
	sums.end(counts, &counts->removed, -1);
}

/* The prefix scan; with a NULL space it only tells how much it wants. */
static cudaError_t
scan_maps(const mixed_work *work, void *space, size_t *space_bytes, uint32_t count,
		  cudaStream_t stream)
{
	try
	{
		return cub::DeviceScan::ExclusiveScanByKey(space, *space_bytes,
												   work->order.places, work->maps,
												   work->before, compose_maps(),
												   (state_map) MAP_IDENTITY, count,
												   ::cuda::std::equal_to<>(), stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* ---------------------------------------------------------------- the host */

static mixed_work
mixed_carve(void *base, uint64_t keys, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	mixed_work	work = {};

	work.group = group_carve(&carver, keys, GROUP_FIRST);
	place_carve(&carver, keys, &work.lists);
	/* flags of placing are by the position that gave the value: not the slice's */
	work.lists.flags = carver.array<uint8_t>(keys);
	work.there = carver.array<uint8_t>(keys);
	work.held = carver.array<char *>(keys);
	work.final = carver.array<uint32_t>(keys);
	work.order = order_carve(&carver, &work.group, keys);
	work.maps = carver.array<state_map>(keys);
	work.before = carver.array<state_map>(keys);
	work.fresh = carver.array<uint32_t>(keys);
	work.changed = carver.array<uint32_t>(keys);
	if (scan_maps(&work, nullptr, &work.scan_bytes, (uint32_t) keys, nullptr) != cudaSuccess)
		/* the failure is the device's and shows at the next call */
		(void) cudaGetLastError();
	work.scan_space = carver.take(work.scan_bytes);
	*bytes = carver.used;
	return work;
}

static size_t
mixed_bytes(const cuda_table *table, uint64_t keys)
{
	size_t		bytes;

	(void) table;
	(void) mixed_carve(nullptr, keys, &bytes);
	return bytes;
}

/*
 * Finds out every position's result and what must become of each key, changing
 * nothing.  Waits for the device; the counters are in lane 0.
 */
static GhStatus
mixed_results(cuda_table *table, const GhRequest *request, const slice_io *slice,
			  const mixed_work *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {slice->keys, nullptr, nullptr, slice->count};
	size_t		bytes = work->scan_bytes;
	uint32_t	blocks = blocks_for(slice->count);

	GH_TRY(group_positions(table, &list, &work->group, GROUP_FIRST, error));
	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, begin_kernel<L><<<blocks, BLOCK_THREADS, 0, lane->stream>>>(
						table_make_view(table), list, *work, slice->ops,
						lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(order_positions(table, &work->group, &work->order, slice->count, error));
	maps_kernel<<<blocks, BLOCK_THREADS, 0, lane->stream>>>(*work, slice->count, slice->ops);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, scan_maps(work, work->scan_space, &bytes, slice->count, lane->stream),
			 error);
	results_kernel<<<blocks, BLOCK_THREADS, 0, lane->stream>>>(
		*work, *slice, request->absent, table->options.value_size, lane->device_count);
	LAUNCH_TRY(table, error);
	return lane_count_read(table, lane, error);
}

/* Changes and removes what is listed. */
static GhStatus
mixed_change(cuda_table *table, const slice_io *slice, const mixed_work *work,
			 uint32_t changed, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {slice->keys, slice->values, work->changed, changed};

	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, change_kernel<L><<<blocks_for(changed), BLOCK_THREADS, 0,
					lane->stream>>>(table_make_view(table), list, work->final,
									lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	table->keys -= lane->host_count->removed;
	return GH_OK;
}

static GhStatus
mixed_run(cuda_table *table, GhRequest *request, const slice_io *slice, GhError *error)
{
	size_t		bytes;
	mixed_work	work = mixed_carve(slice->scratch, slice->count, &bytes);
	entry_list	fresh = {slice->keys, slice->values, work.fresh, 0};
	uint32_t	placed;
	uint32_t	present;
	counters	count;

	GH_TRY(mixed_results(table, request, slice, &work, error));
	count = *table->lanes[0].host_count;
	table->stats.bucket_reads += count.bucket_reads;
	if (count.invalid > 0)
		return gh_error_set(error, GH_INVALID,
							"%u of %u operations of a mixed request are none of insert, upsert, find and delete",
							(unsigned) count.invalid, (unsigned) slice->count);
	fresh.count = count.appended;
	if (fresh.count > 0)
		GH_TRY(entries_place(table, &fresh, &work.lists, &placed, &present, error));
	if (count.present > 0)
		GH_TRY(mixed_change(table, slice, &work, count.present, error));
	request->outcome.matched += count.matched;
	request->outcome.inserted += count.inserted;
	request->outcome.replaced += count.replaced;
	request->outcome.removed += count.removed;
	request->outcome.values_count += count.removed;
	return GH_OK;
}

const slice_operation mixed_operation = {mixed_bytes, mixed_run, SLICE_MAX};
