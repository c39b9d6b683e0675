/*
 * pipeline_memory.cu
 *		Memory of pipelines: on the device, for the sink under the pipeline's limit and all of it out of the budget
 *		that is shared with others; what a batch is worked on in; and what a failed CUDA call means.
 */
#include <cub/device/device_scan.cuh>

#include "cuda/pipeline/pipeline.cuh"
#include "cuda/pipeline/group_reduce.cuh"

/*
 * After a CUDA call failed what is on the device is unknown.  The queue sees to it that nothing reads a
 * caller's memory.
 */
GhStatus
pipe_failed(pipe_memory *memory, cudaError_t status, const char *call, GhError *error)
{
	(void) cudaGetLastError();
	if (!memory->failed)
	{
		memory->failed = true;
		(void) gh_error_set(&memory->error, GH_DEVICE_ERROR, "CUDA device %d failed: %s (in %.60s)", memory->device,
							cudaGetErrorString(status), call);
		if (memory->stream != nullptr)
			(void) cudaStreamSynchronize(memory->stream);
		(void) cudaGetLastError();
	}
	if (error != nullptr && error != &memory->error)
		*error = memory->error;
	return GH_DEVICE_ERROR;
}

static void
account(pipe_memory *memory, bool limited, uint64_t bytes)
{
	if (!limited)
	{
		memory->work_bytes += bytes;
		return;
	}
	memory->bytes += bytes;
	if (memory->bytes > memory->bytes_peak)
		memory->bytes_peak = memory->bytes;
}

/* room: not 0: a spare one of that size will do. */
static GhStatus
alloc_block(pipe_memory *memory, uint64_t bytes, uint64_t room, bool limited, pipe_block *block, GhError *error)
{
	void	   *place;
	cudaError_t status;

	*block = {};
	if (limited && memory->limit != 0 && (memory->bytes > memory->limit || bytes > memory->limit - memory->bytes))
		return gh_error_set(error, GH_LIMIT, "the memory limit of a pipeline, %llu bytes, does not allow %llu more",
							(unsigned long long) memory->limit, (unsigned long long) bytes);
	if (!budget_take(&memory->host, bytes))
		return gh_error_set(error, GH_LIMIT, "the device memory for all does not allow %llu more bytes",
							(unsigned long long) bytes);
	place = room > 0 ? spare_take(memory, room) : nullptr;
	status = place != nullptr ? cudaSuccess : device_malloc(&memory->host, &place, room > 0 ? room : bytes);
	if (status != cudaSuccess)
		budget_give(&memory->host, bytes);
	if (status == cudaErrorMemoryAllocation)
		return gh_error_set(error, GH_NO_MEMORY, "CUDA device %d has no %llu bytes of free memory", memory->device,
							(unsigned long long) bytes);
	if (status != cudaSuccess)
		return pipe_failed(memory, status, "cudaMalloc", error);
	block->memory = static_cast<char *>(place);
	block->bytes = bytes;
	block->room = room;
	account(memory, limited, bytes);
	return GH_OK;
}

/* limited: it counts for the memory limit. */
GhStatus
pipe_alloc(pipe_memory *memory, uint64_t bytes, bool limited, pipe_block *block, GhError *error)
{
	return alloc_block(memory, bytes, 0, limited, block, error);
}

GhStatus
pipe_alloc_small(pipe_memory *memory, uint64_t bytes, bool limited, pipe_block *block, GhError *error)
{
	return alloc_block(memory, bytes, spare_room(memory, bytes), limited, block, error);
}

/* Waits for the device, so that kernels in flight keep what they use. */
void
pipe_free(pipe_memory *memory, bool limited, pipe_block *block)
{
	cudaError_t status;

	if (block->memory == nullptr)
		return;
	status = device_release(block->memory);
	if (status != cudaSuccess)
		(void) pipe_failed(memory, status, "cudaFree", nullptr);
	*(limited ? &memory->bytes : &memory->work_bytes) -= block->bytes;
	budget_give(&memory->host, block->bytes);
	*block = {};
}

GhStatus
pipe_zero(pipe_memory *memory, void *at, uint64_t bytes, GhError *error)
{
	if (bytes > 0)
		PIPE_TRY(memory, cudaMemsetAsync(at, 0, bytes, memory->stream), error);
	return GH_OK;
}

/* From and to wherever that is; from ordinary memory of the host it is over when this returns. */
GhStatus
pipe_copy(pipe_memory *memory, void *to, const void *from, uint64_t bytes, GhError *error)
{
	if (bytes > 0)
		PIPE_TRY(memory, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, memory->stream), error);
	return GH_OK;
}

GhStatus
pipe_wait(pipe_memory *memory, GhError *error)
{
	PIPE_TRY(memory, cudaStreamSynchronize(memory->stream), error);
	return GH_OK;
}

bool
pipe_stopped(const pipe_memory *memory)
{
	return memory->host.stop != nullptr && *memory->host.stop != 0;
}

#define INPUT_BYTES_MIN ((uint64_t) 65536)

/* ---------------------------------------------------------------------- sums */

static cudaError_t
sums_of(void *space, size_t *space_bytes, const uint64_t *counts, uint64_t *sums, uint64_t count, cudaStream_t stream)
{
	try
	{
		return cub::DeviceScan::ExclusiveSum(space, *space_bytes, counts, sums, (int) count, stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

GhStatus
sums_launch(cuda_pipeline *pipeline, const uint64_t *counts, uint64_t *sums, uint32_t count, GhError *error)
{
	size_t		bytes = pipeline->lane->sum_space_bytes;

	PIPE_TRY(&pipeline->memory, sums_of(pipeline->lane->sum_space, &bytes, counts, sums, (uint64_t) count + 1,
										pipeline->memory.stream), error);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

static __global__ void
counters_kernel(pipe_counters *to, pipe_counters *from, bool last)
{
	send_counters(to, from, last);
}

/* By a kernel: a copy takes longer to begin and to end, while the bus is full of pages. */
GhStatus
counters_send(cuda_pipeline *pipeline, bool last, GhError *error)
{
	counters_kernel<<<1, 64, 0, pipeline->memory.stream>>>
		(pipeline->lane->host_counters, pipeline->lane->batch.counters, last);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	pipeline->lane->counters_zero = last;
	return GH_OK;
}

GhStatus
counters_fetch(cuda_pipeline *pipeline, GhError *error)
{
	GH_TRY(counters_send(pipeline, false, error));
	return pipe_wait(&pipeline->memory, error);
}

/* --------------------------------------------------------------------- a batch */

/* Memory of CUB's, which depends on how much there is to do. */
struct batch_spaces
{
	size_t		sums;
	size_t		sort;
};

static void
carve_values(values_view *values, uint32_t lows, uint32_t highs, uint64_t rows, carver *carver)
{
	values->low = carver->array<uint64_t>(lows * rows);
	values->high = carver->array<uint64_t>(highs * rows);
	values->null = carver->array<uint8_t>(lows * rows);
	values->stride = rows;
}

static void
carve_reduce(const cuda_pipeline *pipeline, sink_arrays *sink, uint64_t lines, size_t sort_bytes, carver *carver)
{
	uint32_t	chunks = most_chunks((uint32_t) lines);
	reduce_view *reduce = &sink->reduce;

	reduce->numbers = carver->array<uint32_t>(lines);
	reduce->sorted = carver->array<uint32_t>(lines);
	reduce->order = carver->array<uint32_t>(lines);
	reduce->sort_space = carver->take(sort_bytes);
	reduce->sort_bytes = sort_bytes;
	reduce->segments = carver->array<uint32_t>(lines);
	reduce->longs = carver->array<long_segment>(chunks);
	reduce->chunks = carver->array<uint2>(chunks);
	reduce->partial = carver->array<GhAggregateState>((uint64_t) chunks *
													  pipeline->plan.options.sink.groups.naggregates);
	reduce->partial_rows = carver->array<uint32_t>(chunks);
}

static void
carve_sink(const cuda_pipeline *pipeline, sink_arrays *sink, uint64_t lines, const batch_spaces *spaces,
		   carver *carver)
{
	uint32_t	kind = pipeline->plan.options.sink.kind;

	if (kind == GH_SINK_PLACES)
		return;
	sink->rows = carver->array<uint32_t>(lines);
	if (pipeline->view.multiplies != 0)
		carve_values(&sink->copies, pipeline->view.ncopied, pipeline->ncopied_highs, lines, carver);
	if (kind != GH_SINK_GROUPS)
	{
		sink->bytes = carver->array<uint64_t>(lines + 1);
		sink->offsets = carver->array<uint64_t>(lines + 1);
		return;
	}
	sink->lines.stride = lines;
	sink->lines.state = carver->array<uint8_t>(lines);
	sink->lines.group = carver->array<uint32_t>(pipeline->view.plan.nsets * lines);
	sink->lines.takes = carver->array<uint64_t>(lines);
	sink->lines.low = carver->array<uint64_t>(pipeline->view.plan.ninputs * lines);
	sink->lines.high = carver->array<uint64_t>(pipeline->ninput_highs * lines);
	carve_reduce(pipeline, sink, lines, spaces->sort, carver);
}

static void
carve_batch(const cuda_pipeline *pipeline, batch_view *batch, sink_arrays *sink, GhBackRow **back_rows, void **space,
			uint64_t rows, const batch_spaces *spaces, carver *carver)
{
	bool		several = pipeline->view.multiplies != 0;

	batch->counters = carver->array<pipe_counters>(1);
	carve_values(&batch->values, pipeline->nlows, pipeline->nhighs, rows, carver);
	batch->state = carver->array<uint8_t>(rows);
	batch->back = carver->array<uint32_t>(rows);
	batch->came = carver->array<uint32_t>(several ? rows * pipeline->view.nsteps : rows);
	batch->counts = carver->array<uint64_t>(rows + 1);
	batch->sums = carver->array<uint64_t>(rows + 1);
	*back_rows = carver->array<GhBackRow>(rows);
	*space = carver->take(spaces->sums);
	carve_sink(pipeline, sink, rows, spaces, carver);
}

static GhStatus
batch_spaces_of(cuda_pipeline *pipeline, uint64_t rows, batch_spaces *spaces, GhError *error)
{
	*spaces = {};
	PIPE_TRY(&pipeline->memory, sums_of(nullptr, &spaces->sums, nullptr, nullptr, rows + 1, pipeline->memory.stream),
			 error);
	if (pipeline->plan.options.sink.kind == GH_SINK_GROUPS)
		PIPE_TRY(&pipeline->memory, groups_sort_bytes((uint32_t) rows, &spaces->sort), error);
	return GH_OK;
}

static GhStatus
batch_bytes(cuda_pipeline *pipeline, uint64_t rows, batch_spaces *spaces, uint64_t *bytes, GhError *error)
{
	batch_view	batch = {};
	sink_arrays sink = {};
	GhBackRow  *back_rows;
	void	   *space;
	carver		sizes = {};

	GH_TRY(batch_spaces_of(pipeline, rows, spaces, error));
	carve_batch(pipeline, &batch, &sink, &back_rows, &space, rows, spaces, &sizes);
	*bytes = sizes.used;
	return GH_OK;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
count_up_kernel(uint32_t *numbers, uint32_t count)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		numbers[i] = (uint32_t) i;
}

static GhStatus
set_batch_rows(cuda_pipeline *pipeline, uint32_t rows, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	const vector_place *places = lane->batch.values.places;
	batch_spaces spaces;
	carver		arrays = {};
	pipe_block	block;
	uint64_t	bytes;

	GH_TRY(batch_bytes(pipeline, rows, &spaces, &bytes, error));
	if (bytes > lane->batch_block.bytes)
	{
		GH_TRY(pipe_alloc(&pipeline->memory, bytes, false, &block, error));
		pipe_free(&pipeline->memory, false, &lane->batch_block);
		lane->batch_block = block;
	}
	lane->batch_rows = rows;
	lane->counters_zero = true;
	lane->batch = {};
	lane->sink = {};
	arrays.base = lane->batch_block.memory;
	carve_batch(pipeline, &lane->batch, &lane->sink, &lane->back_rows, &lane->sum_space, rows, &spaces,
				&arrays);
	lane->batch.values.places = places;
	lane->sink.copies.places = pipeline->view.copied;
	lane->sum_space_bytes = spaces.sums;
	/* arguments that an instruction does not have are read, too */
	GH_TRY(pipe_zero(&pipeline->memory, lane->batch_block.memory, bytes, error));
	if (pipeline->plan.options.sink.kind == GH_SINK_GROUPS)
	{
		count_up_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, pipeline->memory.stream>>>
			(lane->sink.reduce.numbers, rows);
		PIPE_TRY(&pipeline->memory, launch_status(), error);
	}
	return pipeline->memory.failed ? GH_DEVICE_ERROR : GH_OK;
}

bool
adds_floats(const cuda_pipeline *pipeline)
{
	const GhSink *sink = &pipeline->plan.options.sink;

	for (uint32_t a = 0; sink->kind == GH_SINK_GROUPS && a < sink->groups.naggregates; a++)
		if (gh_aggregate_is_sum(&sink->groups.aggregates[a]) && gh_class_is_float(sink->groups.aggregates[a].value_class))
			return true;
	return false;
}

/*
 * Memory for batches of a request of so many rows.  Without memory for more they are as large as they can be,
 * and it is an error only where there is none for the least; but floats are added in an order that depends on
 * the requests alone, and not on memory.
 */
GhStatus
batch_reserve(cuda_pipeline *pipeline, uint64_t rows, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	uint32_t	most = BATCH_ROWS_MAX;
	uint32_t	wanted = BATCH_ROWS_MIN;
	batch_spaces spaces;
	GhStatus	status;
	uint64_t	bytes;

	if (lane->batch_rows >= BATCH_ROWS_MIN && (rows <= lane->batch_rows || lane->batch_rows >= most))
		return GH_OK;
	GH_TRY(batch_bytes(pipeline, BATCH_ROWS_MIN, &spaces, &bytes, error));
	while (wanted < most && wanted < rows && bytes / BATCH_ROWS_MIN * wanted * 2 <= BATCH_BYTES)
		wanted *= 2;
	if (wanted <= lane->batch_rows)
		return GH_OK;
	status = set_batch_rows(pipeline, wanted, error);
	if (adds_floats(pipeline))
		return status;
	while (lacks_memory(status) && wanted / 2 > lane->batch_rows && wanted / 2 >= BATCH_ROWS_MIN)
		status = set_batch_rows(pipeline, wanted /= 2, error);
	return lacks_memory(status) && lane->batch_rows > 0 ? GH_OK : status;
}

/* So many bytes, or more, so that there are few sizes; 0: none. */
static uint64_t
input_room(uint64_t bytes)
{
	uint64_t	room = INPUT_BYTES_MIN;

	while (room < bytes)
		room *= 2;
	return bytes == 0 ? 0 : room;
}

/* Page-locked memory and device memory for a batch's input. */
GhStatus
input_reserve(cuda_pipeline *pipeline, uint64_t host_bytes, uint64_t bytes, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	void	   *larger = nullptr;
	pipe_block	block;

	if (host_bytes > lane->host_input_bytes)
	{
		host_bytes = input_room(host_bytes);
		if (cudaHostAlloc(&larger, host_bytes, cudaHostAllocPortable) != cudaSuccess)
		{
			(void) cudaGetLastError();
			return gh_error_set(error, GH_NO_MEMORY, "CUDA device %d locks no %llu bytes of memory",
								pipeline->memory.device, (unsigned long long) host_bytes);
		}
		if (lane->host_input != nullptr)
			(void) cudaFreeHost(lane->host_input);
		lane->host_input = static_cast<char *>(larger);
		lane->host_input_bytes = host_bytes;
	}
	if (bytes <= lane->input_block.bytes)
		return GH_OK;
	GH_TRY(pipe_alloc(&pipeline->memory, input_room(bytes), false, &block, error));
	pipe_free(&pipeline->memory, false, &lane->input_block);
	lane->input_block = block;
	return pipeline->memory.failed ? GH_DEVICE_ERROR : GH_OK;
}
