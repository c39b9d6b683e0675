/*
 * add.cu
 *		ADD: one slice of a batch.
 *
 *	group	positions of equal keys meet; each gets its rank among them, and the
 *			leader their number
 *	locate	leaders look their keys up, list those that are absent, and say how much
 *			new room their records need: prefix sums hand it out
 *	reserve	the host finds memory for that; the table is as it was
 *	place	the absent keys get their slots, with the numbers of new records
 *	commit	values that move do, leaders write the records, and every position
 *			writes its value at its rank
 *
 * Nothing can fail any more when the first record is written.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* A slice's arrays in scratch memory. */
struct add_work
{
	group_view	group;
	place_lists lists;
	void	   *numbers;		/* by leader: its record; of slot_value_size each */
	/* by leader: where its values were, then where the slice's go */
	char	  **values;
	uint64_t   *fresh;			/* count + 1: sums of the new room */
	uint64_t   *moved;			/* count + 1: sums of the values that move to it */
	uint32_t   *absent;			/* leaders whose keys are new */
	void	   *scan_space;
	size_t		scan_bytes;
	long_runs	later;
};

/*
 * Leaders look their keys up.  Element i + 1 of fresh and moved becomes what
 * position i needs, element 0 is 0: their prefix sums are where it is.
 */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
locate_kernel(const __grid_constant__ table_view view, entry_list list, add_work work,
			  const value_record *records, uint64_t record_used, uint8_t *flags,
			  counters *counts)
{
	typedef typename L::key_type key_type;
	uint64_t	i = ELEMENT;
	bool		listed = i < list.count;
	uint32_t	group = listed ? work.group.place[i] : 0;
	bool		leader = listed && work.group.first[group] == (uint32_t) i;
	key_type	key = leader ? list_key<L>(list, (uint32_t) i) : 0;
	entry_place place = warp_locate<L>(view, key, leader);
	uint32_t	index = block_append_index(&counts->appended, leader && !place.found);
	uint64_t	fresh = 0;
	uint64_t	moved = 0;

	if (leader)
	{
		uint64_t	added = work.group.last[group];
		uint64_t	number = place.loaded;

		if (!place.found)
		{
			work.absent[index] = (uint32_t) i;
			number = record_used + index;
			fresh = added;
		}
		else
		{
			value_record record = records[number];

			if (record.count + added > record.room)
			{
				/* twice as much, so that a value is moved a bounded number of times */
				fresh = record.count + added > 2 * record.room ?
					record.count + added : 2 * record.room;
				moved = record.count;
				work.values[i] = record.start;
			}
		}
		static_cast<key_type *>(work.numbers)[i] = (key_type) number;
	}
	if (listed)
	{
		flags[i] = leader && !place.found ? 1 : 0;
		work.fresh[i + 1] = fresh;
		work.moved[i + 1] = moved;
	}
	if (i == 0)
		work.fresh[0] = work.moved[0] = 0;
	if (view.count_reads != 0)
		block_add(&counts->bucket_reads, place.reads);
}

/* Leaders write their records, and leave where their positions' values go. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
commit_kernel(add_work work, uint32_t count, value_record *records, char *start,
			  uint32_t value_size, const uint8_t *flags)
{
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;

	uint32_t	group = work.group.place[i];

	if (work.group.first[group] != (uint32_t) i)
		return;

	value_record record = {nullptr, 0, 0};
	uint64_t	number = static_cast<const typename L::key_type *>(work.numbers)[i];
	uint64_t	room = work.fresh[i + 1] - work.fresh[i];

	if (flags[i] == 0)
		record = records[number];
	if (room > 0)
	{
		record.start = start + work.fresh[i] * value_size;
		record.room = room;
	}
	work.values[i] = record.start + record.count * value_size;
	record.count += work.group.last[group];
	records[number] = record;
}

/* Every position writes its value at its rank among those of its key. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
append_kernel(add_work work, uint32_t count, const char *values, uint32_t value_size)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < count;
	char	   *to = nullptr;

	if (listed)
		to = work.values[work.group.first[work.group.place[i]]] +
			(uint64_t) work.group.rank[i] * value_size;
	warp_copy_values(listed, to, values + i * value_size, value_size);
}

static add_work
add_carve(const cuda_table *table, void *base, uint64_t keys, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	add_work	work = {};

	work.group = group_carve(&carver, keys, GROUP_COUNT);
	place_carve(&carver, keys, &work.lists);
	work.numbers = carver.take(keys * table->slot_value_size);
	work.values = carver.array<char *>(keys);
	work.fresh = carver.array<uint64_t>(keys + 1);
	work.moved = carver.array<uint64_t>(keys + 1);
	work.absent = carver.array<uint32_t>(keys);
	work.scan_bytes = scan_space_bytes(keys + 1);
	work.scan_space = carver.take(work.scan_bytes);
	/* any of the keys may have very many values to move */
	work.later = runs_carve(&carver, keys);
	*bytes = carver.used;
	return work;
}

static size_t
add_bytes(const cuda_table *table, uint64_t keys)
{
	size_t		bytes;

	(void) add_carve(table, nullptr, keys, &bytes);
	return bytes;
}

/* Groups the slice and finds out what it needs.  Waits for the device. */
static GhStatus
add_plan(cuda_table *table, const slice_io *slice, const add_work *work, value_plan *plan,
		 uint32_t *absent, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {slice->keys, nullptr, nullptr, slice->count};
	uint64_t	elements = slice->count + (uint64_t) 1;

	GH_TRY(group_positions(table, &list, &work->group, GROUP_COUNT, error));
	GH_TRY(lane_count_reset(table, lane, error));
	TOGETHER_DISPATCH(table, locate_kernel<L><<<blocks_for(slice->count), BLOCK_THREADS, 0,
				   lane->stream>>>(table_make_view(table), list, *work,
								   table->store.records, table->store.record_used,
								   slice->flags, lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(scan_sums(table, lane, work->fresh, elements, work->scan_space,
					 work->scan_bytes, error));
	GH_TRY(scan_sums(table, lane, work->moved, elements, work->scan_space,
					 work->scan_bytes, error));
	CUDA_TRY(table, cudaMemcpyAsync(&plan->fresh, work->fresh + slice->count,
									sizeof(uint64_t), cudaMemcpyDeviceToHost,
									lane->stream), error);
	CUDA_TRY(table, cudaMemcpyAsync(&plan->moved, work->moved + slice->count,
									sizeof(uint64_t), cudaMemcpyDeviceToHost,
									lane->stream), error);
	GH_TRY(lane_count_read(table, lane, error));
	*absent = lane->host_count->appended;
	table->stats.bucket_reads += lane->host_count->bucket_reads;
	return GH_OK;
}

/* The keys are in the table: moves what must move, and appends the slice's values. */
static GhStatus
add_commit(cuda_table *table, const slice_io *slice, const add_work *work,
		   const value_plan *plan, uint32_t absent, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint32_t	value_size = table->options.value_size;
	run_list	runs = {slice->count, work->values, sizeof(char *), work->moved, work->fresh,
		0, plan->moved, plan->start};

	/* before commit_kernel, which forgets the old places */
	GH_TRY(runs_copy(table, &runs, &work->later, error));
	TOGETHER_DISPATCH(table, commit_kernel<L><<<blocks_for(slice->count), BLOCK_THREADS, 0,
				   stream>>>(*work, slice->count, table->store.records, plan->start,
							 value_size, slice->flags));
	LAUNCH_TRY(table, error);
	append_kernel<<<blocks_for(slice->count), BLOCK_THREADS, 0, stream>>>(
		*work, slice->count, slice->values, value_size);
	LAUNCH_TRY(table, error);
	plan->from->used += plan->fresh;
	table->store.used += plan->fresh;
	table->store.record_used += absent;
	table->values += slice->count;
	return GH_OK;
}

/* Up to the point from where nothing fails but by the device's failure. */
static GhStatus
add_prepare(cuda_table *table, const slice_io *slice, const add_work *work,
			value_plan *plan, uint32_t *absent, GhError *error)
{
	entry_list	list = {slice->keys, static_cast<const char *>(work->numbers),
		work->absent, 0};
	uint32_t	placed;
	uint32_t	present;

	GH_TRY(records_make(table, error));
	GH_TRY(add_plan(table, slice, work, plan, absent, error));
	GH_TRY(values_reserve(table, plan, *absent, slice->count, error));
	list.count = *absent;
	if (*absent > 0)
		GH_TRY(entries_place(table, &list, &work->lists, &placed, &present, error));
	return GH_OK;
}

static GhStatus
add_run(cuda_table *table, GhRequest *request, const slice_io *slice, GhError *error)
{
	size_t		bytes;
	add_work	work = add_carve(table, slice->scratch, slice->count, &bytes);
	value_plan	plan = {};
	uint32_t	absent = 0;

	work.lists.flags = slice->flags;
	GH_TRY(add_prepare(table, slice, &work, &plan, &absent, error));
	GH_TRY(add_commit(table, slice, &work, &plan, absent, error));
	request->outcome.inserted += absent;
	return GH_OK;
}

const slice_operation add_operation = {add_bytes, add_run, SLICE_MAX};
