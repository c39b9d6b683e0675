/*
 * delete_one.cu
 *		DELETE_ONE: one slice of a batch.
 *
 * Positions of equal keys are counted, and the leader takes that many values, or
 * as many as there are, off the end of its record.  A key that loses its last
 * value goes, as in delete.cu; its record stays until compaction.
 *
 * When a key has fewer values than positions, the first of these removed them.
 * Which those are takes a sort of the positions by key, done for a slice
 * that has such keys.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* A slice's arrays in scratch memory. */
struct delete_one_work
{
	group_view	group;
	uint32_t   *gone;			/* by leader: values removed */
	key_order	order;
	uint32_t   *begin;			/* by leader: index of its first position in the order */
};

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
shorten_kernel(const __grid_constant__ table_view view, entry_list list,
			   delete_one_work work, value_record *records, counters *counts)
{
	typedef typename L::key_type key_type;
	__shared__ uint32_t shared[block_sums::WORDS];
	block_sums	sums;
	uint64_t	i = ELEMENT;
	bool		listed = i < list.count;
	uint32_t	group = listed ? work.group.place[i] : 0;
	bool		leader = listed && work.group.first[group] == (uint32_t) i;
	key_type	key = leader ? list_key<L>(list, (uint32_t) i) : 0;
	uint64_t	gone = 0;
	bool		removed = false;
	entry_place place;

	sums.begin(shared);
	place = warp_locate<L>(view, key, leader);
	if (place.found)
	{
		value_record *record = records == nullptr ? nullptr : &records[place.loaded];
		uint64_t	left = record == nullptr ? 1 : record->count;

		gone = work.group.last[group];
		gone = gone < left ? gone : left;
		if (record != nullptr)
			record->count = left - gone;
		if (gone == left)
			removed = place_empty<L>(view, place, key);
	}
	if (leader)
	{
		work.gone[i] = (uint32_t) gone;
		if (gone != 0 && gone < work.group.last[group])
			(void) append_index(&counts->appended);
	}
	__syncwarp();
	block_add(&counts->values, gone);
	sums.add_one(block_sums::ENTRIES, removed);
	sums.add_reads(view, place.reads);
	sums.add_gains(view, removed, place.sub);
	sums.end(counts, &counts->removed, -1);
}

/* Keys had values for all of their positions or for none. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
flags_kernel(delete_one_work work, uint32_t count, uint8_t *flags)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		flags[i] = work.gone[work.group.first[work.group.place[i]]] != 0 ? 1 : 0;
}

/* Leaders are the first of their keys in the order. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
begin_kernel(delete_one_work work, uint32_t count)
{
	uint64_t	i = ELEMENT;
	const uint64_t *numbers = work.order.sorted;

	if (i < count && (i == 0 || order_place(work.order, numbers[i]) != order_place(work.order, numbers[i - 1])))
		work.begin[order_position(work.order, numbers[i])] = (uint32_t) i;
}

/* A key's first positions have removed what there was. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
ordered_flags_kernel(delete_one_work work, uint32_t count, uint8_t *flags)
{
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;

	uint64_t	number = work.order.sorted[i];
	uint32_t	leader = work.group.first[order_place(work.order, number)];

	flags[order_position(work.order, number)] = i - work.begin[leader] < work.gone[leader] ? 1 : 0;
}

static delete_one_work
delete_one_carve(void *base, uint64_t keys, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	delete_one_work work;

	work.group = group_carve(&carver, keys, GROUP_COUNT);
	work.gone = carver.array<uint32_t>(keys);
	work.order = order_carve(&carver, &work.group, keys);
	work.begin = carver.array<uint32_t>(keys);
	*bytes = carver.used;
	return work;
}

static size_t
delete_one_bytes(const cuda_table *table, uint64_t keys)
{
	size_t		bytes;

	(void) table;
	(void) delete_one_carve(nullptr, keys, &bytes);
	return bytes;
}

/* Enqueues the flags; in_part: there are keys with fewer values than positions. */
static GhStatus
delete_one_flags(cuda_table *table, const slice_io *slice, const delete_one_work *work,
				 bool in_part, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint32_t	blocks = blocks_for(slice->count);

	if (!in_part)
	{
		flags_kernel<<<blocks, BLOCK_THREADS, 0, stream>>>(*work, slice->count,
														   slice->flags);
		LAUNCH_TRY(table, error);
		return GH_OK;
	}
	GH_TRY(order_positions(table, &work->group, &work->order, slice->count, error));
	begin_kernel<<<blocks, BLOCK_THREADS, 0, stream>>>(*work, slice->count);
	LAUNCH_TRY(table, error);
	ordered_flags_kernel<<<blocks, BLOCK_THREADS, 0, stream>>>(*work, slice->count,
															   slice->flags);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

static GhStatus
delete_one_run(cuda_table *table, GhRequest *request, const slice_io *slice,
			   GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {slice->keys, nullptr, nullptr, slice->count};
	size_t		bytes;
	delete_one_work work = delete_one_carve(slice->scratch, slice->count, &bytes);

	GH_TRY(group_positions(table, &list, &work.group, GROUP_COUNT, error));
	GH_TRY(lane_count_reset(table, lane, error));
	TOGETHER_DISPATCH(table, shorten_kernel<L><<<blocks_for(slice->count), BLOCK_THREADS, 0,
				   lane->stream>>>(table_make_view(table), list, work,
								   table_records(table), lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	GH_TRY(delete_one_flags(table, slice, &work, lane->host_count->appended != 0, error));
	subtables_add_gains(table, lane->host_count);
	table->keys -= lane->host_count->removed;
	table->values -= lane->host_count->values;
	request->outcome.removed += lane->host_count->removed;
	request->outcome.values_count += lane->host_count->values;
	values_hold_back(table, table->keys, table->values);
	return GH_OK;
}

const slice_operation delete_one_operation = {
	delete_one_bytes,
	delete_one_run,
	SLICE_MAX
};
