/*
 * values.cu
 *		Multi tables: where the values of a key are kept.
 *
 * A key's value in its slot is the number of a record (start, count, room).  Its
 * values are contiguous at start, so that FIND_ALL copies runs.  Room is
 * handed out of segments front to back.  A key whose new values do not fit its room
 * gets twice as much elsewhere (add.cu), and its values are moved there by
 * all threads together, however many they are; the old room is lost until
 * compaction (compact.cu).
 *
 * The pointer in a record is an address, which stays what it is when a table that pages has the
 * memory there replaced (paging.cu).
 */
#include <cub/device/device_scan.cuh>

#include "cuda/table/table.h"

/* The least a segment or the records are made for. */
#define VALUES_MIN ((uint64_t) 1024)

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

/* ---------------------------------------------------------------- the store */

/* Memory for `wanted` elements or, if there is not that much, for `least`. */
static GhStatus
alloc_elements(cuda_table *table, uint64_t wanted, uint64_t least, uint64_t element_bytes,
			   void **memory, uint64_t *room, GhError *error)
{
	GhStatus	status;

	*room = wanted > least ? wanted : least;
	status = table_alloc(table, *room * element_bytes, memory, error);
	if ((status == GH_LIMIT || status == GH_NO_MEMORY) && *room > least)
	{
		*room = least;
		status = table_alloc(table, *room * element_bytes, memory, error);
	}
	return status;
}

static GhStatus
records_copy(cuda_table *table, void *to, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	if (table->store.record_used == 0)
		return GH_OK;
	GH_TRY(paging_copy(table, to, table->store.records, table->store.record_used * sizeof(value_record), error));
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/* Room for that many records in all. */
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
	/* their numbers must fit slots */
	if (table->slot_value_size == sizeof(uint32_t) && least > UINT32_MAX)
		return gh_error_set(error, GH_TOO_MANY,
							"a multi table of 4-byte keys has no number for key %llu",
							(unsigned long long) least);
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

/* Sees to it that the last segment has room for that many values. */
static GhStatus
segment_reserve(cuda_table *table, uint64_t values, GhError *error)
{
	value_store *store = &table->store;
	uint64_t	wanted = store->used / 2 > VALUES_MIN ? store->used / 2 : VALUES_MIN;
	uint64_t	room;
	void	   *memory;

	if (store->segment_count > 0)
	{
		const segment *last = &store->segments[store->segment_count - 1];

		if (last->room - last->used >= values)
			return GH_OK;
	}
	if (store->segment_count == SEGMENTS_MAX)
		return gh_error_set(error, GH_NO_MEMORY,
							"the table's values are in %d pieces and there is no memory to join them",
							SEGMENTS_MAX);
	GH_TRY(alloc_elements(table, wanted, values, table->options.value_size, &memory, &room,
						  error));
	store->segments[store->segment_count++] = {static_cast<char *>(memory), room, 0};
	return GH_OK;
}

/*
 * Room for that many more values, in one piece, and more records: changes nothing
 * that the table holds.
 */
GhStatus
values_room_for(cuda_table *table, uint64_t values, uint64_t records, GhError *error)
{
	GH_TRY(records_reserve(table, table->store.record_used + records, error));
	return segment_reserve(table, values, error);
}

/*
 * Finds room for an ADD of `added` values, plan->fresh with what moves, and the
 * records of `absent` new keys, changing nothing that the table holds.
 */
GhStatus
values_reserve(cuda_table *table, value_plan *plan, uint32_t absent, uint32_t added,
			   GhError *error)
{
	value_store *store = &table->store;

	values_hold_back(table, table->keys + absent, table->values + added);
	if (!table_pages(table) && !device_fits(table, 0))
		return gh_error_set(error, GH_LIMIT,
							"the table's memory limit of %llu bytes does not allow %llu values",
							(unsigned long long) table->options.memory_limit,
							(unsigned long long) (table->values + added));
	GH_TRY(values_room_for(table, plan->fresh, absent, error));
	plan->from = &store->segments[store->segment_count - 1];
	plan->start = plan->from->values + plan->from->used * table->options.value_size;
	return GH_OK;
}

/* Frees all segments and records. */
void
values_clear(cuda_table *table)
{
	value_store *store = &table->store;

	for (uint32_t i = 0; i < store->segment_count; i++)
		device_free(table, store->segments[i].values,
					store->segments[i].room * table->options.value_size);
	device_free(table, store->records, store->record_room * sizeof(value_record));
	*store = {};
	table->reserved = 0;
}
