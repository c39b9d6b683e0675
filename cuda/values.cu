/*
 * values.cu
 *		Multi tables: where the values of a key are kept, and ADD.
 *
 * A key's value word in its bucket is the number of a record (start, count,
 * room).  Its values are contiguous at start, so that FIND_ALL copies runs.
 * Room is handed out of segments front to back.  A key whose new values do not
 * fit its room gets twice as much elsewhere, and its values are moved there by
 * all threads together, however many they are; the old room is lost until
 * compaction.  Growth alone loses and reserves less than three times what the
 * values take, so more than four times means deletions, and then everything
 * is copied into one segment and one array of records, and the old ones are freed.
 * The same is done when an ADD finds no memory.  Under a memory limit as much as
 * the copy takes is held back, for otherwise a table that met its limit could never
 * use again what was deleted.
 *
 * The pointer in a record is an address of device memory: a table that pages
 * values out will need to name segments instead.
 */
#include <cub/device/device_scan.cuh>

#include "probe.cuh"
#include "table.h"

/* The least a segment or the records are made for. */
#define VALUES_MIN ((uint64_t) 1024)
/* Below this compaction is not worth its launches. */
#define COMPACT_SLACK ((uint64_t) 65536)

/* ------------------------------------------------------------- prefix sums */

/*
 * CUB's prefix sum in place; with a NULL space it only tells how much it wants.
 * CUB returns statuses, but parts of the library below it may throw: nothing of
 * that leaves this function.
 */
static cudaError_t
inclusive_sum(void *space, size_t *space_bytes, uint64_t *sums, uint64_t elements,
			  cudaStream_t stream)
{
	try
	{
		return cub::DeviceScan::InclusiveSum(space, *space_bytes, sums, sums,
											 (int64_t) elements, stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* Bytes that scan_sums wants for that many elements. */
size_t
scan_space_bytes(uint64_t elements)
{
	size_t		bytes = 0;

	if (inclusive_sum(nullptr, &bytes, nullptr, elements, nullptr) != cudaSuccess)
	{
		/* the failure is the device's and shows at the next call */
		(void) cudaGetLastError();
		bytes = 0;
	}
	return bytes > 0 ? bytes : 1;
}

/* Replaces each element by the sum of those up to and with it. */
GhStatus
scan_sums(cuda_table *table, lane *lane, uint64_t *sums, uint64_t elements, void *space,
		  size_t space_bytes, GhError *error)
{
	CUDA_TRY(table, inclusive_sum(space, &space_bytes, sums, elements, lane->stream),
			 error);
	return GH_OK;
}

/* -------------------------------------------------------------------- ADD */

/* What each leader's record needs: element i + 1 is position i's, element 0 is 0. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
plan_kernel(batch_view batch, const value_record *records)
{
	uint64_t	i = ELEMENT;
	uint64_t	fresh = 0;
	uint64_t	moved = 0;

	if (i >= batch.count)
		return;
	if (i == 0)
		batch.fresh[0] = batch.moved[0] = 0;
	if (batch.first[batch.group[i]] == i)
	{
		uint64_t	added = batch.last[batch.group[i]];

		if (batch.flags[i] != 0)
			fresh = added;
		else
		{
			value_record record = records[batch.entries[i]];

			if (record.count + added > record.room)
			{
				/* twice as much, so that a value is moved a bounded number of times */
				fresh = record.count + added > 2 * record.room ?
					record.count + added : 2 * record.room;
				moved = record.count;
			}
		}
	}
	batch.fresh[i + 1] = fresh;
	batch.moved[i + 1] = moved;
}

/* One thread per value that moves to its record's new room. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
move_kernel(batch_view batch, const value_record *records, uint64_t *start, uint64_t moved)
{
	uint64_t	i = ELEMENT;

	if (i >= moved)
		return;

	uint64_t	leader = owner_of(batch.moved, batch.count, i);
	uint64_t	offset = i - batch.moved[leader];

	start[batch.fresh[leader] + offset] = records[batch.entries[leader]].start[offset];
}

/* Leaders write their records, and leave in entries where their values go. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
commit_kernel(batch_view batch, value_record *records, uint64_t *start)
{
	uint64_t	i = ELEMENT;

	if (i >= batch.count || batch.first[batch.group[i]] != i)
		return;

	value_record record = {nullptr, 0, 0};
	uint64_t	number = batch.entries[i];
	uint64_t	room = batch.fresh[i + 1] - batch.fresh[i];

	if (batch.flags[i] == 0)
		record = records[number];
	if (room > 0)
	{
		record.start = start + batch.fresh[i];
		record.room = room;
	}
	batch.entries[i] = reinterpret_cast<uint64_t>(record.start + record.count);
	record.count += batch.last[batch.group[i]];
	records[number] = record;
}

/* Every position writes its value at its rank among those of its key. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
append_kernel(batch_view batch)
{
	uint64_t	i = ELEMENT;

	if (i >= batch.count)
		return;

	uint64_t   *start = reinterpret_cast<uint64_t *>(
		batch.entries[batch.first[batch.group[i]]]);

	start[batch.order[i]] = batch.values[i];
}

/* After locate: how much room the slice needs.  Waits for the device. */
GhStatus
values_plan(cuda_table *table, const batch_view *batch, value_plan *plan, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	plan_kernel<<<blocks_for(batch->count), BLOCK_THREADS, 0, lane->stream>>>(
		*batch, table->store.records);
	LAUNCH_TRY(table, error);
	GH_TRY(scan_sums(table, lane, batch->fresh, batch->count + (uint64_t) 1,
					 batch->scan_space, batch->scan_bytes, error));
	GH_TRY(scan_sums(table, lane, batch->moved, batch->count + (uint64_t) 1,
					 batch->scan_space, batch->scan_bytes, error));
	CUDA_TRY(table, cudaMemcpyAsync(&plan->fresh, batch->fresh + batch->count,
									sizeof(uint64_t), cudaMemcpyDeviceToHost,
									lane->stream), error);
	CUDA_TRY(table, cudaMemcpyAsync(&plan->moved, batch->moved + batch->count,
									sizeof(uint64_t), cudaMemcpyDeviceToHost,
									lane->stream), error);
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	return GH_OK;
}

static GhStatus
records_copy(cuda_table *table, void *to, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	if (table->store.record_used > 0)
		CUDA_TRY(table, cudaMemcpyAsync(to, table->store.records,
										table->store.record_used * sizeof(value_record),
										cudaMemcpyDeviceToDevice, stream), error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/* Memory for `wanted` elements or, if there is not that much, for `least`. */
static GhStatus
alloc_elements(cuda_table *table, uint64_t wanted, uint64_t least, uint64_t element_bytes,
			   void **memory, uint64_t *room, GhError *error)
{
	GhStatus	status;

	*room = wanted > least ? wanted : least;
	status = device_alloc(table, *room * element_bytes, memory, error);
	if ((status == GH_LIMIT || status == GH_NO_MEMORY) && *room > least)
	{
		*room = least;
		status = device_alloc(table, *room * element_bytes, memory, error);
	}
	return status;
}

static GhStatus
records_reserve(cuda_table *table, uint64_t least, GhError *error)
{
	value_store *store = &table->store;
	uint64_t	wanted = 2 * store->record_room;
	uint64_t	room;
	void	   *memory;
	GhStatus	status;

	if (least <= store->record_room)
		return GH_OK;
	GH_TRY(alloc_elements(table, wanted > VALUES_MIN ? wanted : VALUES_MIN, least,
						  sizeof(value_record), &memory, &room, error));
	status = records_copy(table, memory, error);
	if (status != GH_OK)
	{
		device_free(table, memory, room * sizeof(value_record));
		return status;
	}
	device_free(table, store->records, store->record_room * sizeof(value_record));
	store->records = static_cast<value_record *>(memory);
	store->record_room = room;
	return GH_OK;
}

/*
 * Finds room for `added` values and the records of `absent` new keys, changing
 * nothing that the table holds.
 */
GhStatus
values_reserve(cuda_table *table, value_plan *plan, uint32_t absent, uint32_t added,
			   GhError *error)
{
	value_store *store = &table->store;
	segment    *last = store->segment_count > 0 ?
		&store->segments[store->segment_count - 1] : nullptr;
	void	   *memory;
	uint64_t	room;

	values_hold_back(table, table->keys + absent, table->values + added);
	if (!device_fits(table, 0))
		return gh_error_set(error, GH_LIMIT,
							"the table's memory limit of %llu bytes does not allow %llu values",
							(unsigned long long) table->options.memory_limit,
							(unsigned long long) (table->values + added));
	GH_TRY(records_reserve(table, store->record_used + absent, error));
	if (last == nullptr || last->room - last->used < plan->fresh)
	{
		if (store->segment_count == SEGMENTS_MAX)
			return gh_error_set(error, GH_NO_MEMORY,
								"the table's values are in %d pieces and there is no memory to join them",
								SEGMENTS_MAX);
		GH_TRY(alloc_elements(table, store->used / 2 > VALUES_MIN ?
							  store->used / 2 : VALUES_MIN, plan->fresh,
							  sizeof(uint64_t), &memory, &room, error));
		last = &store->segments[store->segment_count++];
		*last = {static_cast<uint64_t *>(memory), room, 0};
	}
	plan->from = last;
	plan->start = last->values + last->used;
	return GH_OK;
}

/* The keys are in the table: moves what must move, and appends the slice's values. */
GhStatus
values_commit(cuda_table *table, const batch_view *batch, const value_plan *plan,
			  uint32_t absent, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	value_record *records = table->store.records;

	if (plan->moved > 0)
	{
		/* before commit_kernel, which forgets the old places */
		move_kernel<<<blocks_for(plan->moved), BLOCK_THREADS, 0, stream>>>(
			*batch, records, plan->start, plan->moved);
		LAUNCH_TRY(table, error);
	}
	commit_kernel<<<blocks_for(batch->count), BLOCK_THREADS, 0, stream>>>(
		*batch, records, plan->start);
	LAUNCH_TRY(table, error);
	append_kernel<<<blocks_for(batch->count), BLOCK_THREADS, 0, stream>>>(*batch);
	LAUNCH_TRY(table, error);
	plan->from->used += plan->fresh;
	table->store.used += plan->fresh;
	table->store.record_used += absent;
	table->values += batch->count;
	return GH_OK;
}

/* --------------------------------------------------------------- compaction */

/* Frees all segments and records. */
void
values_clear(cuda_table *table)
{
	value_store *store = &table->store;

	for (uint32_t i = 0; i < store->segment_count; i++)
		device_free(table, store->segments[i].values,
					store->segments[i].room * sizeof(uint64_t));
	device_free(table, store->records, store->record_room * sizeof(value_record));
	*store = {};
	table->reserved = 0;
}

/*
 * One thread per slot: live keys get new numbers in any order, their records go
 * to the new array, and their counts to sums[number + 1].
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
renumber_kernel(uint64_t *words, uint64_t slots, const value_record *records,
				value_record *fresh, uint64_t *sums, counters *counts)
{
	uint64_t	i = ELEMENT;

	if (i >= slots)
		return;

	uint64_t   *slot = words + i / BUCKET_SLOTS * (2 * BUCKET_SLOTS) + i % BUCKET_SLOTS;

	if (*slot == SLOT_EMPTY)
		return;

	uint32_t	number = append_index(&counts->appended);
	value_record record = records[slot[BUCKET_SLOTS]];

	fresh[number] = record;
	sums[number + (uint64_t) 1] = record.count;
	slot[BUCKET_SLOTS] = number;
}

/* One thread per value: copies it into the one new segment. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
gather_kernel(const value_record *records, const uint64_t *sums, uint64_t keys,
			  uint64_t *values, uint64_t count)
{
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;

	uint64_t	number = owner_of(sums, keys, i);

	values[i] = records[number].start[i - sums[number]];
}

/* One thread per record: it is where its values are now. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
resettle_kernel(value_record *records, const uint64_t *sums, uint64_t keys, uint64_t *values)
{
	uint64_t	i = ELEMENT;

	if (i >= keys)
		return;
	records[i].start = values + sums[i];
	records[i].room = records[i].count;
}

/* Memory for a compaction: what stays, and what is freed after it. */
struct compaction
{
	value_record *records;
	uint64_t   *values;
	void	   *scratch;
	uint64_t	scratch_bytes;
	uint64_t   *sums;
	void	   *scan_space;
	size_t		scan_bytes;
};

/* Cuts the scratch, or with a NULL base only adds up. */
static void
compaction_carve(compaction *work, void *base, uint64_t keys)
{
	carver		carver = {static_cast<char *>(base), 0};

	work->scan_bytes = scan_space_bytes(keys + 1);
	work->sums = carver.array<uint64_t>(keys + 1);
	work->scan_space = carver.take(work->scan_bytes);
	work->scratch_bytes = carver.used;
}

/*
 * Under a memory limit, keeps as much of it free as compacting that many keys
 * and values takes.
 */
void
values_hold_back(cuda_table *table, uint64_t keys, uint64_t values)
{
	compaction	work = {};

	table->reserved = 0;
	if (table->options.memory_limit == 0 || keys == 0)
		return;
	compaction_carve(&work, nullptr, keys);
	table->reserved = keys * sizeof(value_record) + values * sizeof(uint64_t) +
		work.scratch_bytes;
}

static void
compaction_free(cuda_table *table, compaction *work)
{
	device_free(table, work->records, table->keys * sizeof(value_record));
	device_free(table, work->values, table->values * sizeof(uint64_t));
	device_free(table, work->scratch, work->scratch_bytes);
}

static GhStatus
compaction_alloc(cuda_table *table, compaction *work, GhError *error)
{
	void	   *memory;

	GH_TRY(device_alloc(table, table->keys * sizeof(value_record), &memory, error));
	work->records = static_cast<value_record *>(memory);
	GH_TRY(device_alloc(table, table->values * sizeof(uint64_t), &memory, error));
	work->values = static_cast<uint64_t *>(memory);
	compaction_carve(work, nullptr, table->keys);
	GH_TRY(device_alloc(table, work->scratch_bytes, &work->scratch, error));
	compaction_carve(work, work->scratch, table->keys);
	return GH_OK;
}

/* Copies everything live to the new memory.  Waits for the device. */
static GhStatus
compaction_run(cuda_table *table, const compaction *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	cudaStream_t stream = lane->stream;

	GH_TRY(lane_count_reset(table, lane, error));
	CUDA_TRY(table, cudaMemsetAsync(work->sums, 0, sizeof(uint64_t), stream), error);
	/* the side bucket comes last, as one more subtable of a single bucket */
	for (uint32_t i = 0; i <= table->options.subtables; i++)
	{
		bool		side = i == table->options.subtables;
		uint64_t	slots = side ? BUCKET_SLOTS : table->sub[i].buckets * BUCKET_SLOTS;

		renumber_kernel<<<blocks_for(slots), BLOCK_THREADS, 0, stream>>>(
			side ? table->side : table->sub[i].words, slots, table->store.records,
			work->records, work->sums, lane->device_count);
		LAUNCH_TRY(table, error);
	}
	GH_TRY(scan_sums(table, lane, work->sums, table->keys + 1, work->scan_space,
					 work->scan_bytes, error));
	gather_kernel<<<blocks_for(table->values), BLOCK_THREADS, 0, stream>>>(
		work->records, work->sums, table->keys, work->values, table->values);
	LAUNCH_TRY(table, error);
	resettle_kernel<<<blocks_for(table->keys), BLOCK_THREADS, 0, stream>>>(
		work->records, work->sums, table->keys, work->values);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/*
 * Compacts if anything can be gained; *done tells.  Without memory for the copy
 * the table stays as it is, which is no error.
 */
GhStatus
values_compact(cuda_table *table, bool *done, GhError *error)
{
	value_store *store = &table->store;
	compaction	work = {};
	GhError		why;
	GhStatus	status;

	*done = false;
	if (store->used == table->values && store->record_used == table->keys &&
		store->segment_count <= 1)
		return GH_OK;
	/* numbers of records are counted in 32 bits while compacting */
	if (table->keys >= UINT32_MAX)
		return GH_OK;
	/* this is what was held back for */
	table->reserved = 0;
	if (table->keys == 0)
	{
		values_clear(table);
		*done = true;
		return GH_OK;
	}

	status = compaction_alloc(table, &work, &why);
	if (status == GH_OK)
		status = compaction_run(table, &work, &why);
	if (status != GH_OK)
	{
		compaction_free(table, &work);
		values_hold_back(table, table->keys, table->values);
		if (status != GH_DEVICE_ERROR)
			return GH_OK;
		*error = why;
		return status;
	}
	values_clear(table);
	device_free(table, work.scratch, work.scratch_bytes);
	store->records = work.records;
	store->record_room = store->record_used = table->keys;
	store->segments[0] = {work.values, table->values, table->values};
	store->segment_count = 1;
	store->used = table->values;
	values_hold_back(table, table->keys, table->values);
	*done = true;
	return GH_OK;
}

/* Compacts when that gives back much. */
GhStatus
values_compact_if_due(cuda_table *table, GhError *error)
{
	const value_store *store = &table->store;
	bool		done;

	if (store->used <= 4 * table->values + COMPACT_SLACK &&
		store->record_used <= 2 * table->keys + COMPACT_SLACK &&
		store->segment_count < SEGMENTS_MAX)
		return GH_OK;
	return values_compact(table, &done, error);
}
