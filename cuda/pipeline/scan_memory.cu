/*
 * scan_memory.cu
 *		Memory of scans: on the device, for groups under the scan's limit and all of it out of
 *		the budget that is shared with others; page-locked; and what a failed CUDA call means.
 */
#include "cuda/pipeline/scan_device.cuh"

/*
 * After a CUDA call failed the groups are unknown.  The streams are waited for: when a request is
 * told to have failed, nothing may still read its pages.
 */
GhStatus
scan_failed(cuda_scan *scan, cudaError_t status, const char *call, GhError *error)
{
	(void) cudaGetLastError();
	if (!scan->failed)
	{
		scan->failed = true;
		(void) gh_error_set(&scan->error, GH_DEVICE_ERROR, "CUDA device %d failed: %s (in %.60s)",
							scan->plan.options.device, cudaGetErrorString(status), call);
		for (int i = 0; i < SCAN_LANES; i++)
			if (scan->lanes[i].stream != nullptr)
				(void) cudaStreamSynchronize(scan->lanes[i].stream);
		if (scan->reduce_stream != nullptr)
			(void) cudaStreamSynchronize(scan->reduce_stream);
		(void) cudaGetLastError();
	}
	if (error != nullptr && error != &scan->error)
		*error = scan->error;
	return GH_DEVICE_ERROR;
}

static void
budget_give(const cuda_scan *scan, uint64_t bytes)
{
	if (scan->host.give_device != nullptr)
		scan->host.give_device(scan->host.ctx, bytes);
}

/* limited: it counts for the scan's memory limit. */
GhStatus
scan_alloc(cuda_scan *scan, uint64_t bytes, bool limited, scan_block *block, GhError *error)
{
	uint64_t	limit = scan->plan.options.memory_limit;
	void	   *memory = nullptr;
	cudaError_t status;

	*block = {};
	if (limited && limit != 0 && (scan->bytes > limit || bytes > limit - scan->bytes))
		return gh_error_set(error, GH_LIMIT, "the scan's memory limit of %llu bytes does not allow "
							"%llu more", (unsigned long long) limit, (unsigned long long) bytes);
	if (scan->host.take_device != nullptr && !scan->host.take_device(scan->host.ctx, bytes))
		return gh_error_set(error, GH_LIMIT, "the device memory for all does not allow %llu more "
							"bytes", (unsigned long long) bytes);
	status = device_malloc(&memory, bytes);
	if (status != cudaSuccess)
		budget_give(scan, bytes);
	if (status == cudaErrorMemoryAllocation)
	{
		/* not sticky */
		(void) cudaGetLastError();
		return gh_error_set(error, GH_NO_MEMORY, "CUDA device %d has no %llu bytes of free memory",
							scan->plan.options.device, (unsigned long long) bytes);
	}
	if (status != cudaSuccess)
		return scan_failed(scan, status, "cudaMalloc", error);
	block->memory = static_cast<char *>(memory);
	block->bytes = bytes;
	if (!limited)
	{
		scan->work_bytes += bytes;
		return GH_OK;
	}
	scan->bytes += bytes;
	if (scan->bytes > scan->bytes_peak)
		scan->bytes_peak = scan->bytes;
	return GH_OK;
}

/* Waits for the device, so that kernels in flight keep what they use. */
void
scan_free(cuda_scan *scan, bool limited, scan_block *block)
{
	cudaError_t status;

	if (block->memory == nullptr)
		return;
	status = cudaFree(block->memory);
	if (status != cudaSuccess)
		(void) scan_failed(scan, status, "cudaFree", nullptr);
	*(limited ? &scan->bytes : &scan->work_bytes) -= block->bytes;
	budget_give(scan, block->bytes);
	*block = {};
}

/* Page-locked memory of at least so many bytes, in which nothing is. */
GhStatus
scan_host_reserve(cuda_scan *scan, char **memory, size_t *room, size_t bytes, GhError *error)
{
	void	   *larger = nullptr;

	if (bytes <= *room)
		return GH_OK;
	if (cudaHostAlloc(&larger, bytes, cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return gh_error_set(error, GH_NO_MEMORY, "CUDA device %d locks no %zu bytes of memory",
							scan->plan.options.device, bytes);
	}
	if (*memory != nullptr)
		(void) cudaFreeHost(*memory);
	*memory = static_cast<char *>(larger);
	*room = bytes;
	return GH_OK;
}

#define SEND_BLOCKS 32			/* the bus takes no more */

static __global__ void __launch_bounds__(BLOCK_THREADS)
send_kernel(char *to, const char *from, uint64_t bytes)
{
	uint64_t	words = bytes / 4;

	for (uint64_t i = ELEMENT; i < words; i += (uint64_t) gridDim.x * BLOCK_THREADS)
		reinterpret_cast<uint32_t *>(to)[i] = reinterpret_cast<const uint32_t *>(from)[i];
	if (ELEMENT < bytes % 4)
		to[words * 4 + ELEMENT] = from[words * 4 + ELEMENT];
}

/*
 * To page-locked memory of a lane, by a kernel: a copy takes longer to begin and to end, while the bus
 * is full of the next request's pages.
 */
GhStatus
scan_send(cuda_scan *scan, void *to, const void *from, uint64_t bytes, cudaStream_t stream,
		  GhError *error)
{
	uint64_t	blocks = blocks_for(bytes / 4 + 1);

	send_kernel<<<(uint32_t) (blocks < SEND_BLOCKS ? blocks : SEND_BLOCKS), BLOCK_THREADS, 0, stream>>>
		(static_cast<char *>(to), static_cast<const char *>(from), bytes);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}

/* Lays out what a lane has on the device; with a NULL base it only adds up. */
static void
lane_carve(const cuda_scan *scan, scan_lane *lane, carver *carver, const GhScanRequest *request,
		   uint32_t lines, size_t space_bytes)
{
	lines_view *view = &lane->lines;
	bool		several = scan->view.multiplies != 0;
	bool		collects = several || scan_keeps_rows(scan);
	uint32_t	extras = several ? lane->extras : 0;
	uint32_t	places = lines + extras;

	lane->counters = carver->array<scan_counters>(1);
	lane->pages = carver->array<GhScanPage>(request->npages);
	lane->firsts = carver->array<uint32_t>(request->npages);
	lane->bitmaps = carver->array<uint64_t>(request->nbitmaps);
	view->count = lines;
	view->extras = extras;
	view->stride = places;
	view->state = carver->array<uint8_t>(places);
	view->group = carver->array<uint32_t>(places);
	view->takes = carver->array<uint64_t>(places);
	view->low = carver->array<uint64_t>((uint64_t) scan->view.ninputs * places);
	view->high = carver->array<uint64_t>((uint64_t) scan->nhighs * places);
	view->origins = carver->array<row_origin>(extras);
	view->derived = several ? carver->array<uint32_t>(lines) : nullptr;
	view->base = collects ? carver->array<uint32_t>(lines) : nullptr;
	view->space = carver->take(space_bytes);
	view->space_bytes = space_bytes;
}

/* The same of page-locked memory. */
static void
lane_carve_host(scan_lane *lane, carver *carver, const GhScanRequest *request, uint32_t lines)
{
	lane->host_counters = carver->array<scan_counters>(1);
	lane->host_pages = carver->array<GhScanPage>(request->npages);
	lane->host_firsts = carver->array<uint32_t>(request->npages);
	lane->host_bitmaps = carver->array<uint64_t>(request->nbitmaps);
	lane->host_state = carver->array<uint8_t>(lines);
}

/*
 * Memory for a request in an idle lane.  Anything but GH_OK and GH_DEVICE_ERROR leaves the lane
 * idle.
 */
GhStatus
scan_lane_reserve(cuda_scan *scan, scan_lane *lane, const GhScanRequest *request, uint32_t lines,
				  GhError *error)
{
	scan_lane	sizes = *lane;
	carver		device = {};
	carver		host = {};
	size_t		space_bytes = 0;

	if (scan_keeps_rows(scan) || scan->view.multiplies)
		GH_TRY(collect_bytes(scan, lines, &space_bytes, error));
	lane_carve(scan, &sizes, &device, request, lines, space_bytes);
	lane_carve_host(&sizes, &host, request, lines);
	GH_TRY(scan_host_reserve(scan, &lane->host, &lane->host_bytes, host.used, error));
	if (device.used > lane->block.bytes)
	{
		scan_block	block;

		GH_TRY(scan_alloc(scan, device.used, false, &block, error));
		scan_free(scan, false, &lane->block);
		lane->block = block;
		if (scan->failed)
			return GH_DEVICE_ERROR;
	}
	device = {};
	device.base = lane->block.memory;
	lane_carve(scan, lane, &device, request, lines, space_bytes);
	host = {};
	host.base = lane->host;
	lane_carve_host(lane, &host, request, lines);
	return GH_OK;
}
