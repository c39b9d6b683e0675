/*
 * records.cu
 *		Multi tables whose keys have one value each, in their slots; and how they get records.
 *
 * What a BUILD by regions stores without equal keys has no records: a slot has its key's value, as in a
 * table of single values (value_store.in_slots).  All that reads or deletes goes by slots then.  An ADD makes
 * the records first, for all keys: a value goes from its slot to the store, and the number of its record to
 * the slot.  That is done in full or, without memory for it, not at all.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* What records are made in. */
struct record_making
{
	value_record *records;
	char	   *values;
	counters   *counts;
};

/* The value at a slot, if there is one, gets a record.  All threads of the block come here. */
template <typename L> static __device__ __forceinline__ void
make_record(const record_making &making, bool used, typename L::key_type *value)
{
	typedef typename L::key_type key_type;
	uint32_t	number = block_append_index(&making.counts->appended, used);
	key_type   *to = reinterpret_cast<key_type *>(making.values) + number;

	if (!used)
		return;
	*to = *value;
	making.records[number] = {reinterpret_cast<char *>(to), 1, 1};
	*value = (key_type) number;
}

/* One thread per slot. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
records_kernel(char *slots, uint64_t count, record_making making)
{
	typedef typename L::key_type key_type;
	uint64_t	i = ELEMENT;
	/* in multi tables a slot is a key and a number of its size */
	key_type   *slot = reinterpret_cast<key_type *>(slots + i * L::slot_bytes);

	make_record<L>(making, i < count && !L::special(slot[0]), slot + 1);
}

/* The same for the side bucket, in one block. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
side_records_kernel(const __grid_constant__ table_view view, record_making making)
{
	uint32_t	i = threadIdx.x;
	bool		used = i < SIDE_SLOTS && view.side_present[i] != 0;

	make_record<L>(making, used, reinterpret_cast<typename L::key_type *>(side_value(view, used ? i : 0)));
}

/* What slots' values are the numbers of; NULL: they are a key's values. */
value_record *
table_records(const cuda_table *table)
{
	return table->options.multi && !table->store.in_slots ? table->store.records : nullptr;
}

/* Each key gets a record for the value that its slot has, if slots have values. */
GhStatus
records_make(cuda_table *table, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	value_store *store = &table->store;
	record_making making;
	GhStatus	status;

	if (!store->in_slots)
		return GH_OK;
	store->in_slots = false;
	if (table->keys == 0)
		return GH_OK;
	status = values_room_for(table, table->keys, table->keys, error);
	if (status != GH_OK)
	{
		/* one of two may be there */
		values_clear(table);
		store->in_slots = true;
		return status;
	}
	making = {store->records, store->segments[0].values, lane->device_count};
	GH_TRY(lane_count_reset(table, lane, error));
	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		uint64_t	slots = table->sub[i].buckets * table->bucket_slots;

		TOGETHER_DISPATCH(table, records_kernel<L><<<blocks_for(slots), BLOCK_THREADS, 0, lane->stream>>>(
						   table->sub[i].slots, slots, making));
		LAUNCH_TRY(table, error);
	}
	TOGETHER_DISPATCH(table, side_records_kernel<L><<<1, BLOCK_THREADS, 0, lane->stream>>>(
					   table_make_view(table), making));
	LAUNCH_TRY(table, error);
	store->segments[0].used = store->used = table->keys;
	store->record_used = table->keys;
	return GH_OK;
}
