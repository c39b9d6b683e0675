/*
 * compact.cu
 *		Multi tables: giving back the room that values and records lost.
 *
 * Growth alone loses and reserves less than three times what the values take,
 * so more than four times means deletions, and then everything is copied
 * into one segment and one array of records, and the old ones are freed.  The same is
 * done when an ADD finds no memory.  Under a memory limit as much as the copy
 * takes is held back, for otherwise a table that met its limit could never use
 * again what was deleted.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* Below this much compaction is not worth its launches. */
#define COMPACT_SLACK_BYTES ((uint64_t) 512 * 1024)
#define COMPACT_SLACK_RECORDS ((uint64_t) 65536)

/* A live key's record gets the next number; returns it. */
static __device__ __forceinline__ uint32_t
renumber(const value_record *records, uint64_t old_number, value_record *fresh,
		 uint64_t *sums, counters *counts)
{
	uint32_t	number = append_index(&counts->appended);
	value_record record = records[old_number];

	fresh[number] = record;
	sums[number + (uint64_t) 1] = record.count;
	return number;
}

/*
 * One thread per slot: live keys get new numbers in any order, their records go
 * to the new array, and their counts to sums[number + 1].
 */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
renumber_kernel(char *slots, uint64_t count, const value_record *records,
				value_record *fresh, uint64_t *sums, counters *counts)
{
	typedef typename L::key_type key_type;
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;

	/* in multi tables a slot is a key and a number of its size */
	key_type   *slot = reinterpret_cast<key_type *>(slots + i * L::slot_bytes);

	if (!L::special(slot[0]))
		slot[1] = (key_type) renumber(records, slot[1], fresh, sums, counts);
}

/* The same for the side bucket, in one small block. */
template <typename L> static __global__ void
renumber_side_kernel(const __grid_constant__ table_view view, const value_record *records,
					 value_record *fresh, uint64_t *sums, counters *counts)
{
	typedef typename L::key_type key_type;
	uint32_t	i = threadIdx.x;
	key_type   *number = reinterpret_cast<key_type *>(side_value(view, i));

	if (i < SIDE_SLOTS && view.side_present[i] != 0)
		*number = (key_type) renumber(records, *number, fresh, sums, counts);
}

/* One thread per record: it is where its values are now. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
resettle_kernel(value_record *records, const uint64_t *sums, uint64_t keys, char *values,
				uint32_t value_size)
{
	uint64_t	i = ELEMENT;

	if (i >= keys)
		return;
	records[i].start = values + sums[i] * value_size;
	records[i].room = records[i].count;
}

/* Memory for a compaction: what stays, and what is freed after it. */
struct compaction
{
	value_record *records;
	char	   *values;
	void	   *scratch;
	uint64_t	scratch_bytes;
	uint64_t   *sums;
	void	   *scan_space;
	size_t		scan_bytes;
	long_runs	later;
};

/* Cuts the scratch, or with a NULL base only adds up. */
static void
compaction_carve(const cuda_table *table, compaction *work, void *base, uint64_t keys,
				 uint64_t values)
{
	carver		carver = {static_cast<char *>(base), 0};

	work->scan_bytes = scan_space_bytes(keys + 1);
	work->sums = carver.array<uint64_t>(keys + 1);
	work->scan_space = carver.take(work->scan_bytes);
	work->later = runs_carve(&carver, runs_long_max(table, keys, values));
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
	if (table->options.memory_limit == 0 || keys == 0 || table_pages(table) || table->store.in_slots)
		return;
	compaction_carve(table, &work, nullptr, keys, values);
	table->reserved = keys * sizeof(value_record) + values * table->options.value_size +
		work.scratch_bytes;
}

static void
compaction_free(cuda_table *table, compaction *work)
{
	device_free(table, work->records, table->keys * sizeof(value_record));
	device_free(table, work->values, table->values * table->options.value_size);
	device_free(table, work->scratch, work->scratch_bytes);
}

static GhStatus
compaction_alloc(cuda_table *table, compaction *work, GhError *error)
{
	void	   *memory;

	GH_TRY(table_alloc(table, table->keys * sizeof(value_record), &memory, error));
	work->records = static_cast<value_record *>(memory);
	GH_TRY(table_alloc(table, table->values * table->options.value_size, &memory, error));
	work->values = static_cast<char *>(memory);
	compaction_carve(table, work, nullptr, table->keys, table->values);
	GH_TRY(table_alloc(table, work->scratch_bytes, &work->scratch, error));
	compaction_carve(table, work, work->scratch, table->keys, table->values);
	return GH_OK;
}

/* Gives every live key a new record. */
static GhStatus
compaction_renumber(cuda_table *table, const compaction *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	cudaStream_t stream = lane->stream;

	GH_TRY(lane_count_reset(table, lane, error));
	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		uint64_t	slots = table->sub[i].buckets * table->bucket_slots;

		TOGETHER_DISPATCH(table, renumber_kernel<L><<<blocks_for(slots), BLOCK_THREADS, 0,
					   stream>>>(table->sub[i].slots, slots, table->store.records,
								 work->records, work->sums, lane->device_count));
		LAUNCH_TRY(table, error);
	}
	TOGETHER_DISPATCH(table, renumber_side_kernel<L><<<1, 32, 0, stream>>>(
					   table_make_view(table), table->store.records, work->records,
					   work->sums, lane->device_count));
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Copies everything live to the new memory.  Waits for the device. */
static GhStatus
compaction_run(cuda_table *table, const compaction *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	cudaStream_t stream = lane->stream;
	run_list	runs = {table->keys, work->records, sizeof(value_record), work->sums,
		nullptr, 0, table->values, work->values};

	static_assert(offsetof(value_record, start) == 0, "runs are read through records");
	CUDA_TRY(table, cudaMemsetAsync(work->sums, 0, sizeof(uint64_t), stream), error);
	GH_TRY(compaction_renumber(table, work, error));
	GH_TRY(scan_sums(table, lane, work->sums, table->keys + 1, work->scan_space,
					 work->scan_bytes, error));
	GH_TRY(runs_copy(table, &runs, &work->later, error));
	resettle_kernel<<<blocks_for(table->keys), BLOCK_THREADS, 0, stream>>>(
		work->records, work->sums, table->keys, work->values, table->options.value_size);
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
	if (store->in_slots)
		return GH_OK;
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
	uint64_t	slack = COMPACT_SLACK_BYTES / table->options.value_size;
	bool		done;

	if (store->used <= 4 * table->values + slack &&
		store->record_used <= 2 * table->keys + COMPACT_SLACK_RECORDS &&
		store->segment_count < SEGMENTS_MAX)
		return GH_OK;
	return values_compact(table, &done, error);
}
