/*
 * batch.cu
 *		INSERT, UPSERT, EXCHANGE, ADD and DELETE: one slice of a batch.
 *
 * The outcome must be that of doing the positions one after the other; only the order
 * of an exchange's chain and of a key's values is left to chance.  So a slice first groups its positions by key,
 * in a scratch hash table of positions, and from then on one position of each
 * group, the leader, acts for the key:
 *
 *	group	every position finds its group; the smallest position is the
 *			leader, and what the operation needs to know of the others (the last
 *			one, the one before, the rank) comes out of one atomic per position
 *	locate	leaders look their keys up; those whose keys are absent are listed,
 *			with the value to store
 *	room	the host doubles subtables until the new keys fit fill_max
 *	insert	the listed leaders' keys are placed (insert.cu).  No two threads ever
 *			insert the same key, and none inserts a key that is there
 *	settle	leaders of present keys store the new value; exchange hands out
 *			the chain of values; add appends (values.cu)
 *
 * Up to the end of insert nothing but the listed keys has been added to the
 * table.  If they cannot all be placed for want of memory they are taken out
 * again and a smaller slice is tried, so that what fits is done and an error
 * leaves a finished prefix.
 */
#include "probe.cuh"
#include "table.h"

static __global__ void __launch_bounds__(BLOCK_THREADS)
group_kernel(batch_view batch, uint64_t seed, GhOp op)
{
	uint64_t	i = ELEMENT;

	if (i >= batch.count)
		return;

	uint32_t	position = (uint32_t) i;
	uint64_t	key = batch.keys[i];
	uint32_t	group = (uint32_t) hash_key(seed, key) & batch.group_mask;
	uint32_t	holder;

	/*
	 * Linear probing for the key's group or a free place.  A group's position
	 * only ever changes to another of the same key, so whichever is read tells
	 * the group's key.  Half of the places stay free: the probe ends.
	 */
	for (;;)
	{
		holder = load_relaxed(&batch.first[group]);
		if (holder == POSITION_NONE)
		{
			holder = atomicCAS(&batch.first[group], POSITION_NONE, position);
			if (holder == POSITION_NONE)
				holder = position;
		}
		if (batch.keys[holder] == key)
			break;
		group = (group + 1) & batch.group_mask;
	}
	batch.group[i] = group;
	/* the word only sinks: a stale value is too large, never too small */
	if (position < holder)
		atomicMin(&batch.first[group], position);

	if (op == GH_UPSERT)
	{
		/* the word only rises; looking first spares a hot key's atomics */
		if (load_relaxed(&batch.last[group]) < position)
			atomicMax(&batch.last[group], position);
	}
	else if (op == GH_EXCHANGE)
		batch.order[i] = atomicExch(&batch.last[group], position);
	else if (op == GH_ADD)
		batch.order[i] = atomicAdd(&batch.last[group], 1u);
}

/* The value that a leader whose key is absent stores. */
static __device__ __forceinline__ uint64_t
value_to_store(const batch_view &batch, GhOp op, uint32_t leader)
{
	if (batch.values == nullptr)
		return 0;
	if (op == GH_INSERT)
		return batch.values[leader];
	return batch.values[batch.last[batch.group[leader]]];
}

/* Looks the leaders' keys up; flags and lists those that are absent. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
locate_kernel(table_view view, batch_view batch, GhOp op, uint64_t record_used,
			  counters *counts)
{
	uint64_t	i = ELEMENT;

	if (i >= batch.count)
		return;

	uint8_t		flag = 0;

	if (batch.first[batch.group[i]] == i)
	{
		entry_place place = table_find(view, batch.keys[i]);

		if (place.slot == nullptr)
		{
			uint32_t	index = append_index(&counts->absent);

			flag = 1;
			batch.absent[index] = (uint32_t) i;
			/* in a multi table the value is the number of a new record */
			batch.entries[i] = op == GH_ADD ? record_used + index :
				value_to_store(batch, op, (uint32_t) i);
		}
		else if (batch.values != nullptr)
			batch.entries[i] = place.slot[BUCKET_SLOTS];
	}
	batch.flags[i] = flag;
}

/*
 * UPSERT and EXCHANGE, when every new key is in the table: leaders of keys that
 * were there before store the last position's value.  They look the key up
 * again, for making room may have moved it.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
settle_kernel(table_view view, batch_view batch, GhOp op, uint64_t absent)
{
	uint64_t	i = ELEMENT;

	if (i >= batch.count)
		return;

	uint32_t	group = batch.group[i];
	uint32_t	leader = batch.first[group];

	if (leader == i && batch.flags[i] == 0)
	{
		entry_place place = table_find(view, batch.keys[i]);

		if (place.slot != nullptr)
			place.slot[BUCKET_SLOTS] = batch.values[batch.last[group]];
	}
	if (op == GH_EXCHANGE)
	{
		uint32_t	before = batch.order[i];

		if (before != POSITION_NONE)
			batch.values_out[i] = batch.values[before];
		else
			batch.values_out[i] = batch.flags[leader] != 0 ? absent :
				batch.entries[leader];
	}
}

/*
 * Leaders take their keys out.  Each slot is emptied by one thread, and one that
 * sees another's slot before or after that comes to the same conclusion.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
delete_kernel(table_view view, batch_view batch, const value_record *records,
			  counters *counts)
{
	__shared__ int shared[GH_SUBTABLES_MAX];
	block_gains gains;
	uint64_t	i = ELEMENT;
	uint64_t	values = 0;
	uint8_t		flag = 0;

	gains.begin(shared);
	if (i < batch.count && batch.first[batch.group[i]] == i)
	{
		entry_place place = table_find(view, batch.keys[i]);

		if (place.slot != nullptr)
		{
			flag = 1;
			values = records == nullptr ? 1 : records[place.slot[BUCKET_SLOTS]].count;
			*place.slot = SLOT_EMPTY;
			gains.add(place.sub, -1);
		}
	}
	if (i < batch.count)
		batch.flags[i] = flag;
	gains.end(counts);
	block_add(&counts->matched, flag);
	block_add(&counts->values, values);
}

/* Cuts lane 0's buffer, or with a NULL base only adds up. */
static batch_view
carve_batch(const cuda_table *table, void *base, GhOp op, uint64_t keys, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	batch_view	batch = {};
	uint64_t	groups = 2;

	/* at most half full, for short probes */
	while (groups < 2 * keys)
		groups *= 2;
	batch.count = (uint32_t) keys;
	batch.group_mask = (uint32_t) (groups - 1);
	batch.keys = carver.array<uint64_t>(keys);
	batch.flags = carver.array<uint8_t>(keys);
	batch.group = carver.array<uint32_t>(keys);
	batch.first = carver.array<uint32_t>(groups);
	if (op != GH_DELETE)
	{
		if (table->has_values)
			batch.values = carver.array<uint64_t>(keys);
		batch.entries = carver.array<uint64_t>(keys);
		batch.last = carver.array<uint32_t>(groups);
		batch.absent = carver.array<uint32_t>(keys);
		batch.overflow[0] = carver.array<uint32_t>(keys);
		batch.overflow[1] = carver.array<uint32_t>(keys);
	}
	if (op == GH_EXCHANGE)
		batch.values_out = carver.array<uint64_t>(keys);
	if (op == GH_EXCHANGE || op == GH_ADD)
		batch.order = carver.array<uint32_t>(keys);
	if (op == GH_ADD)
	{
		batch.fresh = carver.array<uint64_t>(keys + 1);
		batch.moved = carver.array<uint64_t>(keys + 1);
		batch.scan_bytes = scan_space_bytes(keys + 1);
		batch.scan_space = carver.take(batch.scan_bytes);
	}
	*bytes = carver.used;
	return batch;
}

size_t
batch_bytes(const cuda_table *table, GhOp op, uint64_t keys)
{
	size_t		bytes;

	(void) carve_batch(table, nullptr, op, keys, &bytes);
	return bytes;
}

/* Copies the slice in and groups it. */
static GhStatus
slice_group(cuda_table *table, const GhRequest *request, const batch_view *batch,
			GhError *error)
{
	lane	   *lane = &table->lanes[0];
	size_t		groups = (size_t) batch->group_mask + 1;
	size_t		bytes = batch->count * sizeof(uint64_t);

	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(lane_copy_in(table, lane, batch->keys, request->keys + request->done, bytes,
						error));
	if (batch->values != nullptr)
		GH_TRY(lane_copy_in(table, lane, batch->values, request->values_in + request->done,
							bytes, error));
	GH_TRY(lane_mark(table, lane, 1, error));
	GH_TRY(lane_count_reset(table, lane, error));
	/* POSITION_NONE has all bits set */
	CUDA_TRY(table, cudaMemsetAsync(batch->first, 0xff, groups * sizeof(uint32_t),
									lane->stream), error);
	if (batch->last != nullptr)
		CUDA_TRY(table, cudaMemsetAsync(batch->last, request->op == GH_EXCHANGE ? 0xff : 0,
										groups * sizeof(uint32_t), lane->stream), error);
	group_kernel<<<blocks_for(batch->count), BLOCK_THREADS, 0, lane->stream>>>(
		*batch, table->options.seed, request->op);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Copies the slice's results out and waits for them. */
static GhStatus
slice_results(cuda_table *table, GhRequest *request, const batch_view *batch,
			  GhError *error)
{
	lane	   *lane = &table->lanes[0];

	GH_TRY(lane_mark(table, lane, 2, error));
	if (request->flags_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->flags_out + request->done,
							 batch->flags, batch->count, error));
	if (batch->values_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->values_out + request->done,
							 batch->values_out, batch->count * sizeof(uint64_t), error));
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	GH_TRY(lane_add_times(table, lane, error));
	request->done += batch->count;
	return GH_OK;
}

/* Makes room for the absent keys and places them, or leaves the table's keys as
 * they were. */
static GhStatus
slice_insert(cuda_table *table, const batch_view *batch, uint32_t absent, GhError *error)
{
	GhStatus	status;

	GH_TRY(table_make_room(table, table->keys + absent, error));
	status = entries_insert(table, batch, absent, error);
	if (status != GH_OK)
	{
		if (status != GH_DEVICE_ERROR)
			GH_TRY(entries_remove(table, batch, absent, error));
		return status;
	}
	table->keys += absent;
	return GH_OK;
}

/* INSERT, UPSERT, EXCHANGE and ADD. */
static GhStatus
slice_store(cuda_table *table, GhRequest *request, const batch_view *batch, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	value_plan	plan = {};
	uint32_t	absent;

	GH_TRY(slice_group(table, request, batch, error));
	locate_kernel<<<blocks_for(batch->count), BLOCK_THREADS, 0, lane->stream>>>(
		table_make_view(table), *batch, request->op, table->store.record_used,
		lane->device_count);
	LAUNCH_TRY(table, error);
	if (request->op == GH_ADD)
		GH_TRY(values_plan(table, batch, &plan, error));
	GH_TRY(lane_count_read(table, lane, error));
	absent = lane->host_count->absent;

	if (request->op == GH_ADD)
		GH_TRY(values_reserve(table, &plan, absent, batch->count, error));
	if (absent > 0)
		GH_TRY(slice_insert(table, batch, absent, error));

	/* nothing below fails but by the device's failure */
	if (request->op == GH_ADD)
		GH_TRY(values_commit(table, batch, &plan, absent, error));
	else if (request->op != GH_INSERT && table->has_values)
	{
		settle_kernel<<<blocks_for(batch->count), BLOCK_THREADS, 0, lane->stream>>>(
			table_make_view(table), *batch, request->op, request->absent);
		LAUNCH_TRY(table, error);
	}
	GH_TRY(slice_results(table, request, batch, error));
	request->matched += absent;
	return GH_OK;
}

static GhStatus
slice_delete(cuda_table *table, GhRequest *request, const batch_view *batch, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	GH_TRY(slice_group(table, request, batch, error));
	delete_kernel<<<blocks_for(batch->count), BLOCK_THREADS, 0, lane->stream>>>(
		table_make_view(table), *batch,
		table->options.multi ? table->store.records : nullptr, lane->device_count);
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	subtables_add_gains(table, lane->host_count);
	table->keys -= lane->host_count->matched;
	if (table->options.multi)
	{
		table->values -= lane->host_count->values;
		values_hold_back(table, table->keys, table->values);
	}
	request->matched += lane->host_count->matched;
	request->values_count += lane->host_count->values;
	GH_TRY(slice_results(table, request, batch, error));
	if (table->options.multi)
		GH_TRY(values_compact_if_due(table, error));
	return table_downsize_if_due(table, error);
}

/* Gets lane 0 a buffer for up to *keys keys, which may be lowered to what there
 * is memory for: SLICE_MIN at least. */
static GhStatus
reserve_slice(cuda_table *table, GhOp op, uint64_t *keys, GhError *error)
{
	GhStatus	status;

	while ((status = lane_reserve(table, &table->lanes[0],
								  batch_bytes(table, op, *keys))) != GH_OK)
	{
		if (status == GH_DEVICE_ERROR || *keys <= SLICE_MIN)
			return gh_error_set(error, status, "no device memory for a slice of %llu keys",
								(unsigned long long) *keys);
		*keys = *keys / 2 > SLICE_MIN ? *keys / 2 : SLICE_MIN;
	}
	return GH_OK;
}

/* One slice of that many keys; an error leaves the table as it was. */
static GhStatus
slice_run(cuda_table *table, GhRequest *request, uint64_t keys, GhError *error)
{
	size_t		bytes;
	batch_view	batch = carve_batch(table, table->lanes[0].buffer, request->op, keys, &bytes);
	GhStatus	status = request->op == GH_DELETE ?
		slice_delete(table, request, &batch, error) :
		slice_store(table, request, &batch, error);

	/* room held back for values that did not come */
	if (status != GH_OK && status != GH_DEVICE_ERROR && table->options.multi)
		values_hold_back(table, table->keys, table->values);
	return status;
}

/*
 * Does the request's next slice: GH_BUSY when that went well, GH_OK when there
 * was nothing left to do.
 */
GhStatus
batch_step(cuda_table *table, GhRequest *request, GhError *error)
{
	uint64_t	keys = request->count - request->done;
	bool		tried = false;	/* to compact */
	GhStatus	status;
	GhError		why;

	if (keys == 0)
		return GH_OK;
	if (keys > SLICE_MAX)
		keys = SLICE_MAX;
	if (table->options.multi)
		GH_TRY(values_compact_if_due(table, error));
	GH_TRY(reserve_slice(table, request->op, &keys, error));

	while ((status = slice_run(table, request, keys, &why)) != GH_OK)
	{
		if (status != GH_LIMIT && status != GH_NO_MEMORY)
			break;
		/* deleted values may take the memory: once, try without them */
		if (table->options.multi && !tried)
		{
			bool		compacted;

			tried = true;
			GH_TRY(values_compact(table, &compacted, error));
			if (compacted)
				continue;
		}
		/* less may still go, down to a single key */
		if (keys == 1)
			break;
		keys /= 2;
	}
	if (status == GH_OK)
		return GH_BUSY;
	*error = why;
	return status;
}
