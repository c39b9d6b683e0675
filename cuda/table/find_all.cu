/*
 * find_all.cu
 *		FIND_ALL: every value of every key, values of a key contiguous.
 *
 * Two passes over the batch, slice by slice.  The first counts: each key's
 * record tells how many values it has, and prefix sums that go on from slice to
 * slice are the offsets.  If the caller's array holds them all, the second pass
 * gathers: runs.cu copies the keys' runs of values to where the offsets say, in
 * windows of the output, so that a key with very many values is everybody's work
 * and the stop flag is looked at in between.  A batch that is one slice, as nearly
 * all are, is looked up once for both passes.  Nothing runs beside a find-all
 * (queue.cu), so both passes see the same.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* Keys of a slice whose arrays are on the device: each takes 8 bytes of scratch
 * memory, and only the keys of one slice need not be looked up again. */
#define FIND_ALL_DEVICE_MAX ((uint64_t) 1 << 27)

/* Values of a window, which is copied in one go: of a host's array, of a device's. */
#define WINDOW_BYTES ((uint64_t) 8 << 20)
#define DEVICE_WINDOW_BYTES ((uint64_t) 2 << 30)

enum find_all_phase
{
	PHASE_COUNT,
	PHASE_GATHER
};

/* A slice's arrays: in lane 0, or the caller's on the device. */
struct find_all_slice
{
	uint32_t	count;
	const void *keys;
	const char **starts;		/* of each key's values; in lane 0 */
	uint64_t   *offsets;		/* count + 1 */
	uint8_t    *flags;			/* NULL: not asked for */
	void	   *scan_space;
	size_t		scan_bytes;
	long_runs	later;
	char	   *values;			/* a window of the output; NULL: the caller's array */
	uint64_t	window;			/* values */
};

/*
 * Element i + 1 of the offsets becomes key i's count and element 0 the offset
 * that the slice begins at: their prefix sums are the offsets.
 */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
count_kernel(const __grid_constant__ table_view view, find_all_slice slice,
			 const value_record *records, uint64_t first_offset, counters *counts)
{
	typedef typename L::key_type key_type;
	__shared__ uint32_t shared[block_sums::WORDS];
	block_sums	sums;
	uint64_t	i = ELEMENT;
	bool		listed = i < slice.count;
	key_type	key = listed ? static_cast<const key_type *>(slice.keys)[i] : 0;
	entry_place place;

	sums.begin(shared);
	place = warp_locate<L>(view, key, listed);
	if (listed)
	{
		const char *start = nullptr;
		uint64_t	count = 0;

		if (place.found)
		{
			start = records == nullptr ? place.value : records[place.loaded].start;
			count = records == nullptr ? 1 : records[place.loaded].count;
		}
		slice.starts[i] = start;
		slice.offsets[i + 1] = count;
		if (slice.flags != nullptr)
			slice.flags[i] = place.found ? 1 : 0;
		if (i == 0)
			slice.offsets[0] = first_offset;
	}
	sums.add_one(block_sums::ENTRIES, place.found);
	sums.add_reads(view, place.reads);
	sums.end(counts, &counts->matched, 1);
}

/* Values of the largest window. */
static uint64_t
window_max(const cuda_table *table, bool on_device)
{
	uint64_t	values = (on_device ? DEVICE_WINDOW_BYTES : WINDOW_BYTES) /
		table->options.value_size;

	return values > SLICE_MIN ? values : SLICE_MIN;
}

/* The caller's arrays from position start on, where they are on the device. */
static void
slice_on_device(const cuda_table *table, const GhRequest *request, uint64_t start,
				find_all_slice *slice)
{
	slice->keys = static_cast<const char *>(request->keys) +
		start * table->options.key_size;
	slice->offsets = request->offsets_out + start;
	slice->flags = request->flags_out != nullptr ? request->flags_out + start : nullptr;
}

/* Cuts a buffer, or with a NULL base only adds up. */
static find_all_slice
slice_carve(const cuda_table *table, bool on_device, void *base, uint64_t keys,
			uint64_t window, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	find_all_slice slice = {};

	slice.count = (uint32_t) keys;
	slice.starts = carver.array<const char *>(keys);
	slice.scan_bytes = scan_space_bytes(keys + 1);
	slice.scan_space = carver.take(slice.scan_bytes);
	slice.window = window;
	slice.later = runs_carve(&carver, runs_long_max(table, keys, window));
	if (!on_device)
	{
		slice.keys = carver.take(keys * table->options.key_size);
		slice.offsets = carver.array<uint64_t>(keys + 1);
		slice.flags = carver.array<uint8_t>(keys);
		slice.values = carver.array<char>(window * table->options.value_size);
	}
	*bytes = carver.used;
	return slice;
}

/* Bytes of a lane for that many keys and a window of that many values. */
size_t
find_all_bytes(const cuda_table *table, uint64_t keys, uint64_t window)
{
	size_t		bytes;

	(void) slice_carve(table, false, nullptr, keys, window, &bytes);
	return bytes;
}

static uint64_t
at_least_min(uint64_t elements)
{
	return elements > SLICE_MIN ? elements : SLICE_MIN;
}

/* The next slice, as large as lane 0 gets; SLICE_MIN keys always fit. */
static GhStatus
reserve_slice(cuda_table *table, const GhRequest *request, find_all_slice *slice,
			  GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	start = request->engine_state[STATE_STARTED];
	uint64_t	keys = request->count - start;
	uint64_t	most = table->stats.bytes_paged > 0 ? PAGED_LOOSE_MAX :
		request->on_device ? FIND_ALL_DEVICE_MAX : SLICE_MAX;
	uint64_t	window = window_max(table, request->on_device);
	size_t		bytes;
	GhStatus	status;

	if (keys > most)
		keys = most;
	if (window > at_least_min(request->values_capacity))
		window = at_least_min(request->values_capacity);
	for (;;)
	{
		(void) slice_carve(table, request->on_device, nullptr, keys, window, &bytes);
		status = lane_reserve(table, lane, bytes);
		if (status == GH_OK)
			break;
		if (status == GH_DEVICE_ERROR || (keys <= SLICE_MIN && window <= SLICE_MIN))
			return gh_error_set(error, status,
								"no device memory for a slice of %llu keys",
								(unsigned long long) keys);
		if (keys > SLICE_MIN)
			keys = at_least_min(keys / 2);
		window = at_least_min(window / 2);
	}
	*slice = slice_carve(table, request->on_device, lane->buffer, keys, window, &bytes);
	if (request->on_device)
		slice_on_device(table, request, start, slice);
	return GH_OK;
}

/*
 * Looks a slice's keys up and makes its offsets, from first_offset on; *end is the
 * last.  Waits for the device; the counters are in lane 0.
 */
static GhStatus
slice_count(cuda_table *table, const GhRequest *request, const find_all_slice *slice,
			uint64_t first_offset, uint64_t *end, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	start = request->engine_state[STATE_STARTED];
	uint32_t	key_size = table->options.key_size;

	GH_TRY(lane_count_reset(table, lane, error));
	if (!request->on_device)
		GH_TRY(lane_copy_in(table, lane, const_cast<void *>(slice->keys),
							static_cast<const char *>(request->keys) + start * key_size,
							slice->count * (size_t) key_size, error));
	GH_TRY(lane_mark(table, lane, 1, error));
	TOGETHER_DISPATCH(table, count_kernel<L><<<blocks_for(slice->count), BLOCK_THREADS, 0,
				   lane->stream>>>(table_make_view(table), *slice, table_records(table),
								   first_offset, lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(scan_sums(table, lane, slice->offsets, slice->count + (uint64_t) 1,
					 slice->scan_space, slice->scan_bytes, error));
	GH_TRY(lane_mark(table, lane, 2, error));
	CUDA_TRY(table, cudaMemcpyAsync(end, slice->offsets + slice->count, sizeof(uint64_t),
									cudaMemcpyDeviceToHost, lane->stream), error);
	return lane_count_read(table, lane, error);
}

/* First pass, one slice: offsets and flags. */
static GhStatus
step_count(cuda_table *table, GhRequest *request, const find_all_slice *slice,
		   GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	start = request->engine_state[STATE_STARTED];
	uint64_t	end = 0;

	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(slice_count(table, request, slice, request->outcome.values_count, &end, error));
	if (!request->on_device)
	{
		/* the last element is the next slice's first, the same value */
		GH_TRY(lane_copy_out(table, lane, request->offsets_out + start, slice->offsets,
							 (slice->count + (size_t) 1) * sizeof(uint64_t), error));
		if (request->flags_out != nullptr)
			GH_TRY(lane_copy_out(table, lane, request->flags_out + start, slice->flags,
								 slice->count, error));
	}
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	GH_TRY(lane_add_times(table, lane, error));
	request->outcome.matched += lane->host_count->matched;
	request->outcome.values_count = end;
	request->engine_state[STATE_STARTED] += slice->count;
	table->stats.reads += slice->count;
	table->stats.bucket_reads += lane->host_count->bucket_reads;
	return GH_OK;
}

/* Copies the values of a slice that was counted, from offset first to end. */
static GhStatus
slice_gather(cuda_table *table, GhRequest *request, const find_all_slice *slice,
			 uint64_t first, uint64_t end, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint32_t	value_size = table->options.value_size;
	run_list	runs = {slice->count, slice->starts, sizeof(char *), slice->offsets, nullptr,
		first, end, slice->values};

	while (runs.first < end)
	{
		char	   *out = static_cast<char *>(request->values_out) +
			runs.first * value_size;

		if (stop_seen(table))
			return GH_STOPPED;
		runs.end = end - runs.first < slice->window ? end : runs.first + slice->window;
		if (request->on_device)
			runs.to = out;
		GH_TRY(runs_copy(table, &runs, &slice->later, error));
		if (!request->on_device)
			GH_TRY(lane_copy_out(table, lane, out, slice->values,
								 (runs.end - runs.first) * value_size, error));
		/* a look at the stop flag for every window needs the windows to be done */
		CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
		runs.first = runs.end;
	}
	return GH_OK;
}

/* Second pass, one slice; `counted` says that it is the first pass's only one. */
static GhStatus
step_gather(cuda_table *table, GhRequest *request, const find_all_slice *slice,
			bool counted, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	first = request->engine_state[STATE_GATHERED];
	uint64_t	end = request->outcome.values_count;

	GH_TRY(lane_mark(table, lane, 0, error));
	if (counted)
	{
		GH_TRY(lane_mark(table, lane, 1, error));
		GH_TRY(lane_mark(table, lane, 2, error));
	}
	else
		GH_TRY(slice_count(table, request, slice, first, &end, error));
	GH_TRY(slice_gather(table, request, slice, first, end, error));
	/* to a device's array nothing is transferred: the kernels' time ends here */
	if (request->on_device)
		GH_TRY(lane_mark(table, lane, 2, error));
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	GH_TRY(lane_add_times(table, lane, error));
	request->engine_state[STATE_STARTED] += slice->count;
	request->engine_state[STATE_GATHERED] = end;
	return GH_OK;
}

/* No keys: the one offset is 0. */
static GhStatus
find_nothing(cuda_table *table, const GhRequest *request, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	if (!request->on_device)
	{
		request->offsets_out[0] = 0;
		return GH_OK;
	}
	CUDA_TRY(table, cudaMemsetAsync(request->offsets_out, 0, sizeof(uint64_t), stream),
			 error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/* Does the request's next slice: GH_BUSY, or GH_OK when all is done. */
GhStatus
find_all_step(cuda_table *table, GhRequest *request, GhError *error)
{
	find_all_slice slice;
	bool		whole;

	if (request->count == 0)
		return find_nothing(table, request, error);
	GH_TRY(reserve_slice(table, request, &slice, error));
	whole = slice.count == request->count;
	if (request->engine_state[STATE_PHASE] == PHASE_COUNT)
	{
		GH_TRY(step_count(table, request, &slice, error));
		if (request->engine_state[STATE_STARTED] < request->count)
			return GH_BUSY;
		if (request->outcome.values_count > request->values_capacity)
			return gh_error_set(error, GH_TOO_SMALL,
								"the keys have %llu values but values_out holds %llu",
								(unsigned long long) request->outcome.values_count,
								(unsigned long long) request->values_capacity);
		request->engine_state[STATE_PHASE] = PHASE_GATHER;
		request->engine_state[STATE_STARTED] = 0;
		if (request->outcome.values_count > 0 && !whole)
			return GH_BUSY;
		if (request->outcome.values_count > 0)
			GH_TRY(step_gather(table, request, &slice, true, error));
	}
	else
	{
		GH_TRY(step_gather(table, request, &slice, false, error));
		if (request->engine_state[STATE_STARTED] < request->count)
			return GH_BUSY;
	}
	request->outcome.done = request->count;
	return GH_OK;
}
