/*
 * mixed.cu
 *		Mixed batches of INSERT, UPSERT, FIND and DELETE: one slice.
 *
 * The results are those of doing the positions one after the other, but nothing is
 * done in turn.  Most keys come once in a slice, or are only looked for: group.cu tells which do not.
 * Such a position looks its key up, which gives its result and what must become of the key.
 *
 * A key that comes again, not only to be found, is, at any time, in one of three states: gone, kept with
 * the value that the table had, or with the value of a position of the slice.  What
 * an operation does to a key is a map of states to states, which a pair of states
 * describes: what an absent key becomes, and what a present one does.  Maps are
 * composed, and composition is associative, so
 *
 *	- the positions of such keys are sorted by key and position;
 *	- a prefix scan by key composes for every position what was before it;
 *	- the leader of a key has looked it up, which gives the state to begin with;
 *	- every position then knows the state that it met, hence its result, and the
 *	  last one of a key knows what must become of the key.
 *
 * A key that is in every position of the slice takes the same time as any other.
 * All results are out before the table is changed.  New keys go in first, which is
 * what may fail; then values are replaced and keys removed.
 */
#include <cub/device/device_scan.cuh>

#include "cuda/table/hot.cuh"
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
	/* by leader; the first two of keys that come again */
	uint8_t    *there;			/* the key is in the table */
	uint64_t   *held;			/* where its value is, or the value, where it is together with the key */
	uint32_t   *final;			/* the state that it ends in */
	/* in the order of keys that come again */
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

/* Positions of a slice that are on their way at a time. */
struct mixed_part
{
	uint32_t	first;
	uint32_t	end;
};

/* What a position met and what must become of its key, if it is the key's last. */
struct mixed_outcome
{
	uint32_t	position;
	uint8_t		op;
	bool		told;			/* this thread has one */
	bool		present;		/* met by this position */
	const char *value;			/* found, where it is; NULL: it is `word` */
	uint64_t	word;			/* found, or the absent one */
	uint32_t	leader;
	bool		fresh;			/* `final` is the position to place */
	bool		changed;		/* the leader's key gets that state */
	uint32_t	final;
};

/* What becomes of a key that the table has, or has not, and that ends in that state. */
static __device__ __forceinline__ void
decide_action(mixed_outcome &outcome, bool there, uint32_t final, bool has_values)
{
	outcome.final = final;
	outcome.fresh = !there && final != STATE_GONE;
	outcome.changed = there && (final == STATE_GONE || (has_values && final != STATE_KEPT));
}

/*
 * Counts what the threads' positions did, each one of four things or nothing, and how many operations
 * are none.  The sums of a block, which are BLOCK_THREADS at most, travel in one word.
 */
static __device__ __forceinline__ void
count_outcomes(const mixed_outcome &outcome, bool invalid, counters *counts)
{
	static_assert(BLOCK_THREADS < 1 << 12, "sums of twelve bits");
	uint8_t		op = outcome.told ? outcome.op : 0;
	bool		present = outcome.present;
	uint64_t   *const counter[4] = {&counts->matched, &counts->inserted, &counts->replaced,
		&counts->removed};
	bool		counted[5] = {op == GH_FIND && present,
		(op == GH_INSERT || op == GH_UPSERT) && !present, op == GH_UPSERT && present,
		op == GH_DELETE && present, invalid};
	uint64_t	sums = 0;

	for (int i = 0; i < 5; i++)
		sums |= (uint64_t) (counted[i] ? 1 : 0) << (12 * i);
	sums = block_sum(sums);
	for (int i = 0; i < 4; i++)
		if ((sums >> (12 * i) & 0xfff) != 0)
			add_relaxed(counter[i], sums >> (12 * i) & 0xfff);
	if (sums >> 48 != 0)
		atomicAdd(&counts->invalid, (uint32_t) (sums >> 48));
}

/* Stores and lists outcomes.  All threads of the block come here, with one or without. */
static __device__ __forceinline__ void
tell_outcomes(const mixed_work &work, const slice_io &slice, uint32_t value_size,
			  const mixed_outcome &outcome, counters *counts)
{
	uint32_t	index;

	if (outcome.told)
		slice.flags[outcome.position] =
			outcome.present == (outcome.op == GH_FIND || outcome.op == GH_DELETE) ? 1 : 0;
	if (slice.values_out != nullptr)
	{
		char	   *to = slice.values_out + (uint64_t) outcome.position * value_size;

		warp_copy_values(outcome.value != nullptr, to, outcome.value, value_size);
		if (outcome.told && outcome.value == nullptr)
			value_from_word(to, outcome.word, value_size);
	}
	index = block_append_index(&counts->appended, outcome.fresh);
	if (outcome.fresh)
		work.fresh[index] = outcome.final;
	index = block_append_index(&counts->present, outcome.changed);
	if (outcome.changed)
	{
		work.final[outcome.leader] = outcome.final;
		work.changed[index] = outcome.leader;
	}
}

/*
 * Of a part of the slice: operations are checked; positions for which order does not matter have their
 * results; of the others, which are listed, leaders look their keys up.
 */
template <typename L, bool HOT> static __global__ void __launch_bounds__(BLOCK_THREADS)
once_kernel(const __grid_constant__ table_view view, const __grid_constant__ slice_io slice, mixed_part part,
			const __grid_constant__ mixed_work work, uint64_t absent, counters *counts)
{
	uint64_t	i = part.first + ELEMENT;
	bool		listed = i < part.end;
	uint32_t	group = listed ? work.group.place[i] : 0;
	bool		again = listed && work.group.repeated[group] != 0;
	bool		leader = listed && (!again || work.group.first[group] == (uint32_t) i);
	mixed_outcome outcome = {};
	typename L::key_type key = leader ? static_cast<const typename L::key_type *>(slice.keys)[i] : 0;
	hot_use		use;
	entry_place place = HOT ? warp_locate_hot<L>(view, key, leader, &use) : warp_locate<L>(view, key, leader);
	bool		invalid;
	uint32_t	index;

	outcome.position = outcome.leader = listed ? (uint32_t) i : 0;
	outcome.word = absent;
	outcome.op = listed ? slice.ops[i] : (uint8_t) GH_FIND;
	outcome.told = listed && !again;
	invalid = outcome.op != GH_INSERT && outcome.op != GH_UPSERT && outcome.op != GH_FIND &&
		outcome.op != GH_DELETE;
	if (outcome.told)
	{
		state_map	map = operation_map(outcome.op, outcome.position);

		outcome.present = place.found;
		if (outcome.op == GH_FIND && place.found && L::together)
			outcome.word = place.loaded;
		else if (outcome.op == GH_FIND && place.found)
			outcome.value = place.value;
		decide_action(outcome, place.found, map_state(map, place.found ? STATE_KEPT : STATE_GONE),
					  view.value_size != 0);
	}
	else if (leader)
	{
		work.there[i] = place.found ? 1 : 0;
		work.held[i] = L::together ? place.loaded : reinterpret_cast<uint64_t>(place.value);
	}
	tell_outcomes(work, slice, view.value_size, outcome, counts);
	index = block_append_index(&counts->repeated, again);
	if (again)
		work.order.unsorted[index] = order_number(work.order, group, (uint32_t) i);
	count_outcomes(outcome, invalid, counts);
	__syncthreads();			/* block_sum's words are read */
	if (view.count_reads != 0)
		block_add(&counts->bucket_reads, place.reads);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
maps_kernel(const __grid_constant__ mixed_work work, uint32_t count, const uint8_t *ops)
{
	uint64_t	i = ELEMENT;

	if (i < count)
	{
		uint32_t	position = order_position(work.order, work.order.sorted[i]);

		work.maps[i] = operation_map(ops[position], position);
	}
}

/* The results of positions of keys that come again, each from the state that it met. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
again_kernel(const __grid_constant__ mixed_work work, const __grid_constant__ slice_io slice, uint32_t count,
			 uint64_t absent, uint32_t value_size, bool together, counters *counts)
{
	uint64_t	i = ELEMENT;
	mixed_outcome outcome = {};

	outcome.word = absent;
	if (i < count)
	{
		uint64_t	number = work.order.sorted[i];
		uint32_t	place = order_place(work.order, number);
		bool		last = i + 1 == count || order_place(work.order, work.order.sorted[i + 1]) != place;
		bool		there;
		uint32_t	state;

		outcome.leader = work.group.first[place];
		there = work.there[outcome.leader] != 0;
		state = map_state(work.before[i], there ? STATE_KEPT : STATE_GONE);
		outcome.position = order_position(work.order, number);
		outcome.op = slice.ops[outcome.position];
		outcome.told = true;
		outcome.present = state != STATE_GONE;
		if (outcome.op == GH_FIND && state == STATE_KEPT && together)
			outcome.word = work.held[outcome.leader];
		else if (outcome.op == GH_FIND && outcome.present)
			outcome.value = state == STATE_KEPT ? reinterpret_cast<const char *>(work.held[outcome.leader]) :
				slice.values + (uint64_t) state * value_size;
		if (last)
			decide_action(outcome, there, map_state(work.maps[i], state), value_size != 0);
	}
	tell_outcomes(work, slice, value_size, outcome, counts);
	count_outcomes(outcome, false, counts);
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

/* Are two numbers of an order of one key? */
struct same_key
{
	int			position_bits;

	__host__ __device__ __forceinline__ bool
	operator() (uint64_t a, uint64_t b) const
	{
		return a >> position_bits == b >> position_bits;
	}
};

/* The prefix scan; with a NULL space it only tells how much it wants. */
static cudaError_t
scan_maps(const mixed_work *work, void *space, size_t *space_bytes, uint32_t count,
		  cudaStream_t stream)
{
	same_key	same = {work->order.position_bits};

	try
	{
		return cub::DeviceScan::ExclusiveScanByKey(space, *space_bytes,
												   work->order.sorted, work->maps,
												   work->before, compose_maps(),
												   (state_map) MAP_IDENTITY, count, same, stream);
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

	work.group = group_carve(&carver, keys, GROUP_REPEATED);
	place_carve(&carver, keys, &work.lists);
	/* flags of placing are by the position that gave the value: not the slice's */
	work.lists.flags = carver.array<uint8_t>(keys);
	work.there = carver.array<uint8_t>(keys);
	work.held = carver.array<uint64_t>(keys);
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
 * The results of keys that come once, and which positions have the others.  Waits for the device; the
 * counters are in lane 0.
 */
static GhStatus
mixed_once(cuda_table *table, const GhRequest *request, const slice_io *slice,
		   const mixed_work *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {slice->keys, nullptr, nullptr, slice->count};
	group_view	group = work->group;
	uint32_t	wave = paging_wave(table, slice->count);
	table_view	view = table_make_view(table);
	mixed_part	part;

	group.ops = slice->ops;
	GH_TRY(group_positions(table, &list, &group, GROUP_REPEATED, error));
	GH_TRY(lane_count_reset(table, lane, error));
	for (part.first = 0; part.first < slice->count; part.first = part.end)
	{
		uint32_t	blocks;

		part.end = slice->count - part.first < wave ? slice->count : part.first + wave;
		blocks = blocks_for(part.end - part.first);
		if (table->hot.bytes != 0)
			LAYOUT_DISPATCH(table, once_kernel<L, true><<<blocks, BLOCK_THREADS, 0, lane->stream>>>(
								view, *slice, part, *work, request->absent, lane->device_count));
		else
			LAYOUT_DISPATCH(table, once_kernel<L, false><<<blocks, BLOCK_THREADS, 0, lane->stream>>>(
								view, *slice, part, *work, request->absent, lane->device_count));
		LAUNCH_TRY(table, error);
	}
	return lane_count_look(table, lane, error);
}

/* Those of the others, of so many positions; counters go on. */
static GhStatus
mixed_again(cuda_table *table, const GhRequest *request, const slice_io *slice, const mixed_work *work,
			uint32_t count, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	size_t		bytes = work->scan_bytes;
	uint32_t	blocks = blocks_for(count);

	GH_TRY(order_numbers(table, &work->order, count, error));
	maps_kernel<<<blocks, BLOCK_THREADS, 0, lane->stream>>>(*work, count, slice->ops);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, scan_maps(work, work->scan_space, &bytes, count, lane->stream), error);
	again_kernel<<<blocks, BLOCK_THREADS, 0, lane->stream>>>(*work, *slice, count, request->absent,
															 table->options.value_size, values_together(table),
															 lane->device_count);
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
	uint32_t	wave = paging_wave(table, changed);
	table_view	view = table_make_view(table);

	static_assert(STATE_GONE == POSITION_NONE, "what hot_refresh is told of keys that are gone");
	GH_TRY(hot_refresh(table, &list, work->final, error));
	GH_TRY(lane_count_reset(table, lane, error));
	for (uint32_t first = 0; first < changed; first += wave)
	{
		list.positions = work->changed + first;
		list.count = changed - first < wave ? changed - first : wave;
		LAYOUT_DISPATCH(table, change_kernel<L><<<blocks_for(list.count), BLOCK_THREADS, 0,
						lane->stream>>>(view, list, work->final, lane->device_count));
		LAUNCH_TRY(table, error);
	}
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

	GH_TRY(mixed_once(table, request, slice, &work, error));
	count = *table->lanes[0].host_count;
	table->stats.bucket_reads += count.bucket_reads;
	if (count.invalid > 0)
		return gh_error_set(error, GH_INVALID,
							"%u of %u operations of a mixed request are none of insert, upsert, find and delete",
							(unsigned) count.invalid, (unsigned) slice->count);
	if (count.repeated > 0)
	{
		GH_TRY(mixed_again(table, request, slice, &work, count.repeated, error));
		count = *table->lanes[0].host_count;
	}
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

const slice_operation mixed_operation = {mixed_bytes, mixed_run, MIXED_SLICE_MAX};
