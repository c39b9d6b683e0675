/*
 * scan_collect.cu
 *		Rows of a request that are live, in the order of pages and lines: how many there are before each
 *		line's, and, where joins make several rows of one, a list of their places.
 *
 * The order in which threads come to it must not matter, for sums of floats depend on the order of what is
 * added; and so they do on that of a table's rows with the same key.
 */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "cuda/pipeline/scan_device.cuh"

/* Rows of a line. */
struct rows_of_line
{
	const uint8_t *state;
	const uint32_t *derived;	/* NULL: one, where the line is live */

	__device__ uint32_t
	operator()(uint32_t line) const
	{
		if (state[line] != LINE_LIVE)
			return 0;
		return derived == nullptr ? 1 : derived[line];
	}
};

/* With a NULL space it only tells how much it wants. */
static cudaError_t
sum_rows(const lines_view *lines, void *space, size_t *space_bytes, uint32_t count, cudaStream_t stream)
{
	thrust::counting_iterator<uint32_t> numbers(0);
	rows_of_line rows = {lines->state, lines->derived};

	try
	{
		return cub::DeviceScan::ExclusiveSum(space, *space_bytes,
											 thrust::make_transform_iterator(numbers, rows),
											 lines->base, (int) count, stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* Bytes that collect_launch() works in, for so many lines. */
GhStatus
collect_bytes(cuda_scan *scan, uint32_t lines, size_t *bytes, GhError *error)
{
	lines_view	none = {};

	*bytes = 0;
	SCAN_TRY(scan, sum_rows(&none, nullptr, bytes, lines > 0 ? lines : 1, scan->reduce_stream), error);
	return GH_OK;
}

/* Enqueues lines->base. */
GhStatus
collect_launch(cuda_scan *scan, const lines_view *lines, GhError *error)
{
	size_t		space_bytes = lines->space_bytes;

	if (lines->count == 0)
		return GH_OK;
	SCAN_TRY(scan, sum_rows(lines, lines->space, &space_bytes, lines->count, scan->reduce_stream), error);
	return GH_OK;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
list_kernel(const lines_view lines, uint32_t places, uint32_t *list, uint32_t *groups)
{
	uint64_t	place = ELEMENT;
	uint32_t	row;

	if (place >= places || !row_at(lines, (uint32_t) place, &row))
		return;
	list[row] = (uint32_t) place;
	groups[row] = lines.group[place];
}

/* Enqueues, too, the places of all rows in their order, and their groups. */
GhStatus
collect_list(cuda_scan *scan, const lines_view *lines, uint32_t extras, uint32_t *list, uint32_t *groups,
			 GhError *error)
{
	uint32_t	places = lines->count + extras;

	GH_TRY(collect_launch(scan, lines, error));
	list_kernel<<<blocks_for(places), BLOCK_THREADS, 0, scan->reduce_stream>>>(*lines, places, list, groups);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}
