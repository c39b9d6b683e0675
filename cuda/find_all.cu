/*
 * find_all.cu
 *		FIND_ALL: every value of every key, values of a key contiguous.
 *
 * Two passes over the batch, slice by slice.  The first counts: each key's
 * record tells how many values it has, and prefix sums that go on from slice to
 * slice are the offsets.  If the caller's array holds them all, the second pass
 * gathers: one thread per value finds the key that it belongs to by
 * bisecting the offsets, so that a key with very many values is everybody's
 * work.  Nothing runs beside a find-all (queue.cu), so both passes see the same.
 */
#include "probe.cuh"
#include "table.h"

enum find_all_phase
{
	PHASE_COUNT,
	PHASE_GATHER
};

/* A slice's arrays in lane 0. */
struct find_all_view
{
	uint32_t	count;
	uint64_t   *keys;
	uint64_t  **starts;			/* of each key's values */
	uint64_t   *offsets;		/* count + 1 */
	uint8_t    *flags;
	void	   *scan_space;
	size_t		scan_bytes;
	uint64_t   *values;			/* a chunk of the output */
	uint64_t	chunk;			/* values it holds */
};

/*
 * Element i + 1 of the offsets becomes key i's count and element 0 the offset
 * that the slice begins at: their prefix sums are the offsets.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
count_kernel(table_view view, find_all_view slice, const value_record *records,
			 uint64_t first_offset, counters *counts)
{
	uint64_t	i = ELEMENT;
	bool		found = false;

	if (i < slice.count)
	{
		entry_place place = table_find(view, slice.keys[i]);
		value_record record = {nullptr, 0, 0};

		found = place.slot != nullptr;
		if (found)
			record = records[place.slot[BUCKET_SLOTS]];
		slice.starts[i] = record.start;
		slice.offsets[i + 1] = record.count;
		slice.flags[i] = found ? 1 : 0;
		if (i == 0)
			slice.offsets[0] = first_offset;
	}
	block_add(&counts->matched, found ? 1 : 0);
}

/* One thread per value of the chunk, which begins at that offset of the output. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
copy_kernel(find_all_view slice, uint64_t chunk_offset, uint64_t count)
{
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;

	uint64_t	offset = chunk_offset + i;
	uint64_t	key = owner_of(slice.offsets, slice.count, offset);

	slice.values[i] = slice.starts[key][offset - slice.offsets[key]];
}

/* Cuts a buffer; the chunk is what the buffer has behind the rest. */
static find_all_view
carve_slice(void *base, size_t buffer_bytes, uint64_t keys, uint64_t chunk, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	find_all_view slice = {};

	slice.count = (uint32_t) keys;
	slice.keys = carver.array<uint64_t>(keys);
	slice.starts = carver.array<uint64_t *>(keys);
	slice.offsets = carver.array<uint64_t>(keys + 1);
	slice.flags = carver.array<uint8_t>(keys);
	slice.scan_bytes = scan_space_bytes(keys + 1);
	slice.scan_space = carver.take(slice.scan_bytes);
	slice.chunk = base == nullptr ? chunk :
		(buffer_bytes - carver.used) / sizeof(uint64_t);
	if (slice.chunk > SLICE_MAX)
		slice.chunk = SLICE_MAX;	/* the stop flag is looked at between chunks */
	slice.values = carver.array<uint64_t>(slice.chunk);
	*bytes = carver.used;
	return slice;
}

/* Bytes of a lane for that many keys and a chunk of that many values. */
size_t
find_all_bytes(uint64_t keys, uint64_t chunk)
{
	size_t		bytes;

	(void) carve_slice(nullptr, 0, keys, chunk, &bytes);
	return bytes;
}

static uint64_t
at_least_min(uint64_t elements)
{
	return elements > SLICE_MIN ? elements : SLICE_MIN;
}

/* The next slice, as large as lane 0 gets; SLICE_MIN keys always fit. */
static GhStatus
reserve_slice(cuda_table *table, const GhRequest *request, bool gather,
			  find_all_view *slice, GhError *error)
{
	uint64_t	start = request->engine_state[STATE_STARTED];
	uint64_t	keys = request->count - start < SLICE_MAX ? request->count - start : SLICE_MAX;
	uint64_t	limit = SLICE_MAX;
	lane	   *lane = &table->lanes[0];

	for (;;)
	{
		uint64_t	chunk = gather ? request->offsets_out[start + keys] -
			request->offsets_out[start] : 0;
		size_t		bytes;
		GhStatus	status;

		if (chunk > limit)
			chunk = limit;
		status = lane_reserve(table, lane, find_all_bytes(keys, chunk));
		if (status == GH_OK)
		{
			*slice = carve_slice(lane->buffer, lane->bytes, keys, chunk, &bytes);
			return GH_OK;
		}
		if (status == GH_DEVICE_ERROR || (keys <= SLICE_MIN && limit <= SLICE_MIN))
			return gh_error_set(error, status,
								"no device memory for a slice of %llu keys",
								(unsigned long long) keys);
		if (keys > SLICE_MIN)
			keys = at_least_min(keys / 2);
		limit = at_least_min(limit / 2);
	}
}

/* Looks a slice's keys up and makes its offsets. */
static GhStatus
slice_count(cuda_table *table, const GhRequest *request, const find_all_view *slice,
			uint64_t first_offset, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(lane_count_reset(table, lane, error));
	GH_TRY(lane_copy_in(table, lane, slice->keys,
						request->keys + request->engine_state[STATE_STARTED],
						slice->count * sizeof(uint64_t), error));
	GH_TRY(lane_mark(table, lane, 1, error));
	count_kernel<<<blocks_for(slice->count), BLOCK_THREADS, 0, lane->stream>>>(
		table_make_view(table), *slice, table->store.records, first_offset,
		lane->device_count);
	LAUNCH_TRY(table, error);
	return scan_sums(table, lane, slice->offsets, slice->count + (uint64_t) 1,
					 slice->scan_space, slice->scan_bytes, error);
}

/* First pass, one slice: offsets and flags. */
static GhStatus
step_count(cuda_table *table, GhRequest *request, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	start = request->engine_state[STATE_STARTED];
	find_all_view slice;

	GH_TRY(reserve_slice(table, request, false, &slice, error));
	GH_TRY(slice_count(table, request, &slice, request->values_count, error));
	GH_TRY(lane_mark(table, lane, 2, error));
	/* the last element is the next slice's first, the same value */
	GH_TRY(lane_copy_out(table, lane, request->offsets_out + start, slice.offsets,
						 (slice.count + (size_t) 1) * sizeof(uint64_t), error));
	if (request->flags_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->flags_out + start, slice.flags,
							 slice.count, error));
	GH_TRY(lane_mark(table, lane, 3, error));
	GH_TRY(lane_count_read(table, lane, error));
	GH_TRY(lane_add_times(table, lane, error));
	request->matched += lane->host_count->matched;
	request->values_count = request->offsets_out[start + slice.count];
	request->engine_state[STATE_STARTED] += slice.count;
	table->stats.reads += slice.count;
	return GH_OK;
}

/* Second pass, one slice: its values, in chunks that fit the lane. */
static GhStatus
step_gather(cuda_table *table, GhRequest *request, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	start = request->engine_state[STATE_STARTED];
	find_all_view slice;
	uint64_t	end;

	GH_TRY(reserve_slice(table, request, true, &slice, error));
	GH_TRY(slice_count(table, request, &slice, request->offsets_out[start], error));
	GH_TRY(lane_mark(table, lane, 2, error));
	end = request->offsets_out[start + slice.count];
	for (uint64_t offset = request->offsets_out[start]; offset < end;)
	{
		uint64_t	count = end - offset < slice.chunk ? end - offset : slice.chunk;

		if (stop_seen(table))
		{
			/* copies to the caller's array may be in flight */
			CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
			return GH_STOPPED;
		}
		copy_kernel<<<blocks_for(count), BLOCK_THREADS, 0, lane->stream>>>(
			slice, offset, count);
		LAUNCH_TRY(table, error);
		GH_TRY(lane_copy_out(table, lane, request->values_out + offset, slice.values,
							 count * sizeof(uint64_t), error));
		/* a look at the stop flag for every chunk needs the chunks to be done */
		CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
		offset += count;
	}
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	GH_TRY(lane_add_times(table, lane, error));
	request->engine_state[STATE_STARTED] += slice.count;
	return GH_OK;
}

/* Does the request's next slice: GH_BUSY, or GH_OK when all is done. */
GhStatus
find_all_step(cuda_table *table, GhRequest *request, GhError *error)
{
	if (request->count == 0)
	{
		request->offsets_out[0] = 0;
		return GH_OK;
	}
	if (request->engine_state[STATE_PHASE] == PHASE_COUNT)
	{
		GH_TRY(step_count(table, request, error));
		if (request->engine_state[STATE_STARTED] < request->count)
			return GH_BUSY;
		if (request->values_count > request->values_capacity)
			return gh_error_set(error, GH_TOO_SMALL,
								"the keys have %llu values but values_out holds %llu",
								(unsigned long long) request->values_count,
								(unsigned long long) request->values_capacity);
		request->engine_state[STATE_PHASE] = PHASE_GATHER;
		request->engine_state[STATE_STARTED] = 0;
		if (request->values_count > 0)
			return GH_BUSY;
	}
	else
	{
		GH_TRY(step_gather(table, request, error));
		if (request->engine_state[STATE_STARTED] < request->count)
			return GH_BUSY;
	}
	request->done = request->count;
	return GH_OK;
}
