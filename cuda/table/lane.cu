/*
 * lane.cu
 *		Lanes: a stream each, with device memory that only grows, counters, and
 *		the times of what ran.
 */
#include "cuda/table/table.h"

/* Arrays begin at multiples of this; wide loads need 16. */
#define ARRAY_ALIGNMENT ((size_t) 256)

/* Lanes may use up to this part of a memory limit, each. */
#define LANE_LIMIT_SHARE 16

void *
carver::take(size_t bytes)
{
	size_t		at = used;

	used += (bytes + ARRAY_ALIGNMENT - 1) / ARRAY_ALIGNMENT * ARRAY_ALIGNMENT;
	return base == nullptr ? nullptr : base + at;
}

/* On failure the lane is as far as it came; lane_destroy copes. */
GhStatus
lane_create(cuda_table *table, lane *lane, counters *device_count, counters *host_count,
			GhError *error)
{
	lane->device_count = device_count;
	lane->host_count = host_count;
	/* not ordered with the default stream, which nobody here uses */
	CUDA_TRY(table, cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking), error);
	CUDA_TRY(table, cudaEventCreateWithFlags(&lane->done, cudaEventDisableTiming), error);
	if (table->options.timing)
		for (int i = 0; i < 4; i++)
			CUDA_TRY(table, cudaEventCreate(&lane->mark[i]), error);
	return GH_OK;
}

/* The lane's stream must be idle. */
void
lane_destroy(cuda_table *table, lane *lane)
{
	device_free(table, lane->buffer, lane->bytes);
	for (int i = 0; i < 4; i++)
		if (lane->mark[i] != nullptr)
			(void) cudaEventDestroy(lane->mark[i]);
	if (lane->done != nullptr)
		(void) cudaEventDestroy(lane->done);
	if (lane->stream != nullptr)
		(void) cudaStreamDestroy(lane->stream);
	*lane = {};
}

/*
 * Gives back a buffer of more than so many bytes.  What every operation needs for SLICE_MIN keys
 * stays, or all of it, when there is no memory for a smaller one.
 */
void
lane_shrink(cuda_table *table, lane *lane, size_t most)
{
	void	   *buffer;
	GhError		ignored;

	if (lane->bytes <= (most > table->lane_min_bytes ? most : table->lane_min_bytes) ||
		device_alloc(table, table->lane_min_bytes, &buffer, &ignored) != GH_OK)
		return;
	device_free(table, lane->buffer, lane->bytes);
	lane->buffer = buffer;
	lane->bytes = table->lane_min_bytes;
}

/* Gives back what an idle lane has, but what every operation needs for SLICE_MIN keys; false: nothing was. */
static bool
lane_yield(cuda_table *table, lane *lane)
{
	size_t		before = lane->bytes;

	if (lane == &table->lanes[0])
		lane_shrink(table, lane, 0);
	else
	{
		device_free(table, lane->buffer, lane->bytes);
		lane->buffer = nullptr;
		lane->bytes = 0;
	}
	return lane->bytes < before && !table->failed;
}

/* Would limit and budget allow that many bytes in the place of what the lane has? */
static bool
lane_could_have(const cuda_table *table, const lane *lane, size_t bytes)
{
	size_t		more = bytes - lane->bytes;

	if (lane->bytes <= table->lane_min_bytes || !device_fits(table, more) || !budget_take(&table->host, more))
		return false;
	budget_give(&table->host, more);
	return true;
}

/*
 * Makes an idle lane's buffer at least that large; its content is lost.
 * Anything but GH_OK and GH_DEVICE_ERROR leaves the lane as it was, or as it began, for a
 * smaller slice to try.
 */
GhStatus
lane_reserve(cuda_table *table, lane *lane, size_t bytes)
{
	uint64_t	limit = table->options.memory_limit;
	void	   *buffer;
	GhError		error;
	GhStatus	status;

	if (bytes <= lane->bytes)
		return GH_OK;
	/* the first buffer of lane 0 is part of the table, whatever the limit */
	if (limit != 0 && (lane != &table->lanes[0] || lane->bytes != 0) &&
		bytes > limit / LANE_LIMIT_SHARE)
		return GH_LIMIT;
	status = device_alloc(table, bytes, &buffer, &error);
	/* a table that pages leaves little beside: the old buffer and the new one may be too much */
	if (status == GH_LIMIT && lane_could_have(table, lane, bytes) && lane_yield(table, lane))
		status = device_alloc(table, bytes, &buffer, &error);
	GH_TRY(status);
	device_free(table, lane->buffer, lane->bytes);
	lane->buffer = buffer;
	lane->bytes = bytes;
	return table->failed ? GH_DEVICE_ERROR : GH_OK;
}

GhStatus
lane_mark(cuda_table *table, lane *lane, int mark, GhError *error)
{
	if (table->options.timing)
		CUDA_TRY(table, cudaEventRecord(lane->mark[mark], lane->stream), error);
	return GH_OK;
}

/*
 * Adds the times between the lane's four marks, all of which have happened.
 * In operations that ask the device in between, the kernels' part has the
 * host's answers in it.
 */
GhStatus
lane_add_times(cuda_table *table, lane *lane, GhError *error)
{
	float		milliseconds[3];

	if (!table->options.timing)
		return GH_OK;
	for (int i = 0; i < 3; i++)
		CUDA_TRY(table, cudaEventElapsedTime(&milliseconds[i], lane->mark[i],
											 lane->mark[i + 1]), error);
	table->stats.transfer_ns +=
		(uint64_t) (((double) milliseconds[0] + milliseconds[2]) * 1e6);
	table->stats.kernel_ns += (uint64_t) ((double) milliseconds[1] * 1e6);
	return GH_OK;
}

/* A lane's counters go to the host, and are zeroes again, if they shall be. */
static __global__ void
report_kernel(uint64_t *device_count, uint64_t *host_count, bool clear)
{
	for (uint32_t i = threadIdx.x; i < sizeof(counters) / sizeof(uint64_t); i += blockDim.x)
	{
		host_count[i] = device_count[i];
		if (clear)
			device_count[i] = 0;
	}
}

/* The next kernels count from zero. */
GhStatus
lane_count_reset(cuda_table *table, lane *lane, GhError *error)
{
	if (!lane->count_clear)
		CUDA_TRY(table, cudaMemsetAsync(lane->device_count, 0, sizeof(counters),
										lane->stream), error);
	lane->count_clear = false;
	return GH_OK;
}

/* By a kernel: a copy takes some microseconds more, which is a tenth of a small batch. */
static GhStatus
count_report(cuda_table *table, lane *lane, bool clear, GhError *error)
{
	static_assert(sizeof(counters) % sizeof(uint64_t) == 0, "they are copied by words");

	report_kernel<<<1, 32, 0, lane->stream>>>(reinterpret_cast<uint64_t *>(lane->device_count),
											  reinterpret_cast<uint64_t *>(lane->host_count), clear);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	lane->count_clear = clear;
	return GH_OK;
}

/* Waits for the lane and has its counters in host_count; on the device they are zeroes then. */
GhStatus
lane_count_read(cuda_table *table, lane *lane, GhError *error)
{
	return count_report(table, lane, true, error);
}

/* The same, but they go on from where they are. */
GhStatus
lane_count_look(cuda_table *table, lane *lane, GhError *error)
{
	return count_report(table, lane, false, error);
}

GhStatus
lane_copy_in(cuda_table *table, lane *lane, void *device, const void *host, size_t bytes,
			 GhError *error)
{
	CUDA_TRY(table, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
									lane->stream), error);
	table->stats.bytes_to_device += bytes;
	return GH_OK;
}

GhStatus
lane_copy_out(cuda_table *table, lane *lane, void *host, const void *device, size_t bytes,
			  GhError *error)
{
	CUDA_TRY(table, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
									lane->stream), error);
	table->stats.bytes_from_device += bytes;
	return GH_OK;
}
