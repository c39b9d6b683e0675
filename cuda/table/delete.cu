/*
 * delete.cu
 *		DELETE: one slice of a batch.
 *
 * Each position looks its key up and takes it out with one exchange of the slot's
 * word.  Of equal keys the one whose exchange finds the key still there counts;
 * nothing is inserted or moved meanwhile, so the others find the slot free, or do
 * not find the key at all.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS, ROUND_BLOCKS)
delete_kernel(const __grid_constant__ table_view view, entry_list list, uint8_t *flags,
			  const value_record *records, counters *counts)
{
	typedef typename L::key_type key_type;
	__shared__ uint32_t shared[block_sums::WORDS];
	block_sums	sums;
	/* by thread: values of the keys it removed; the loop has no registers to spare */
	__shared__ uint64_t values[BLOCK_THREADS];
	bool		count_values = L::together && records != nullptr;

	values[threadIdx.x] = 0;
	sums.begin(shared);
	FOR_ROUNDS(i, list.count)
	{
		bool		listed = i < list.count;
		key_type	key = listed ? list_key<L>(list, (uint32_t) i) : 0;
		entry_place place = warp_locate<L>(view, key, listed);
		bool		removed = place.found && place_empty<L>(view, place, key);

		/* the key went, its record stays until compaction */
		if (count_values && removed)
			values[threadIdx.x] += records[place.loaded].count;
		if (listed)
			flags[i] = removed ? 1 : 0;
		sums.add_one(block_sums::ENTRIES, removed);
		sums.add_reads(view, place.reads);
		sums.add_gains(view, removed, place.sub);
	}
	if (count_values)
		block_add(&counts->values, values[threadIdx.x]);
	sums.end(counts, &counts->removed, -1);
}

static size_t
delete_bytes(const cuda_table *table, uint64_t keys)
{
	(void) table;
	(void) keys;
	return 0;
}

static GhStatus
delete_run(cuda_table *table, GhRequest *request, const slice_io *slice, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {slice->keys, nullptr, nullptr, slice->count};
	const value_record *records = table_records(table);
	uint64_t	values;

	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, delete_kernel<L><<<resident_blocks(table, delete_kernel<L>, slice->count),
					BLOCK_THREADS, 0, lane->stream>>>(table_make_view(table), list, slice->flags, records,
									lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	table->keys -= lane->host_count->removed;
	request->outcome.removed += lane->host_count->removed;
	values = records != nullptr ? lane->host_count->values : lane->host_count->removed;
	request->outcome.values_count += values;
	if (table->options.multi)
	{
		table->values -= values;
		values_hold_back(table, table->keys, table->values);
	}
	return GH_OK;
}

const slice_operation delete_operation = {delete_bytes, delete_run, DEVICE_SLICE_MAX};
