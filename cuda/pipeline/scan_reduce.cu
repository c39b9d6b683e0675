/*
 * scan_reduce.cu
 *		Adds the rows of a request to the states of their groups.
 *
 *	1. Lines are sorted by group, stably; what is not live comes last.  Without keys there is
 *	   nothing to sort.  Where joins make several rows of one, a list of these is (scan_collect.cu).
 *	2. Where a group's lines begin and end: a "segment".
 *	3. A short segment is added by one thread, from its first row to its last, and put to the
 *	   group's state.  A long one is cut into chunks, from its begin on.
 *	4. A warp adds the rows of a chunk for one aggregate: each lane every 32nd, and then the
 *	   lanes' states are merged as a tree.
 *	5. A warp does the same with the states of a long segment's chunks, and puts the result to
 *	   the group's.
 *
 * Nothing here depends on which thread comes first: a group's rows, in the order of pages
 * and lines, are cut and merged in one way only.  So floats repeat themselves.  Requests are
 * reduced one after the other, in one stream.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/pipeline/scan_device.cuh"
#include "cuda/pipeline/scan_reduce.cuh"

/* ----------------------------------------------------------------- the host */

/* Bits that tell groups apart: GROUP_NONE's are all ones, and no group's are. */
static int
group_bits(const cuda_scan *scan)
{
	int			bits = 0;

	while (bits < 32 && scan->groups.room >> bits != 0)
		bits++;
	return bits;
}

/* The stable sort by group; with a NULL space it only tells how much it wants. */
static cudaError_t
sort_lines(const cuda_scan *scan, const uint32_t *groups, const uint32_t *numbers, void *space,
		   size_t *space_bytes, uint32_t count, int bits)
{
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, groups, scan->reduce.sorted,
											   numbers, scan->reduce.order, (int) count, 0, bits,
											   scan->reduce_stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

static reduce_view
reduce_carve(const cuda_scan *scan, carver *carver, uint32_t lines, size_t sort_bytes)
{
	uint32_t	chunks = most_chunks(lines);
	reduce_view reduce = {};

	reduce.numbers = carver->array<uint32_t>(lines);
	reduce.list = carver->array<uint32_t>(scan->view.multiplies ? lines : 0);
	reduce.groups = carver->array<uint32_t>(scan->view.multiplies ? lines : 0);
	reduce.sorted = carver->array<uint32_t>(lines);
	reduce.order = carver->array<uint32_t>(lines);
	reduce.sort_space = carver->take(sort_bytes);
	reduce.sort_bytes = sort_bytes;
	reduce.segments = carver->array<uint32_t>(lines);
	reduce.longs = carver->array<long_segment>(chunks);
	reduce.chunks = carver->array<uint2>(chunks);
	reduce.partial = carver->array<GhAggregateState>((uint64_t) chunks *
													 scan->plan.options.naggregates);
	reduce.partial_rows = carver->array<uint32_t>(chunks);
	return reduce;
}

/* Memory to reduce so many lines; anything but GH_OK and GH_DEVICE_ERROR leaves what there is. */
GhStatus
reduce_reserve(cuda_scan *scan, uint32_t lines, GhError *error)
{
	size_t		sort_bytes = 0;
	carver		sizes = {};
	carver		arrays = {};
	scan_block	block;

	if (lines <= scan->reduce_lines)
		return GH_OK;
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	/* for any number of bits: the table of groups may grow */
	SCAN_TRY(scan, sort_lines(scan, nullptr, nullptr, nullptr, &sort_bytes, lines, 32), error);
	(void) reduce_carve(scan, &sizes, lines, sort_bytes);
	GH_TRY(scan_alloc(scan, sizes.used, false, &block, error));
	scan_free(scan, false, &scan->reduce_block);
	scan->reduce_block = block;
	arrays.base = block.memory;
	scan->reduce = reduce_carve(scan, &arrays, lines, sort_bytes);
	scan->reduce_lines = lines;
	number_kernel<<<blocks_for(lines), BLOCK_THREADS, 0, scan->reduce_stream>>>
		(scan->reduce.numbers, lines);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}

/* Blocks of kernels that go round, of so many elements at most. */
static uint32_t
blocks_of(const cuda_scan *scan, uint64_t elements)
{
	uint64_t	most = (uint64_t) (scan->multiprocessors > 0 ? scan->multiprocessors : 1) * 8;
	uint64_t	wanted = blocks_for(elements);

	return (uint32_t) (wanted < most ? wanted : most);
}

/*
 * Enqueues the reduction of lines that were read, of which so many rows came; the sums are in the states when
 * it is done.
 */
GhStatus
reduce_launch(cuda_scan *scan, const lines_view *lines, uint32_t extras, uint32_t rows,
			  scan_counters *counters, GhError *error)
{
	cudaStream_t stream = scan->reduce_stream;
	size_t		sort_bytes = scan->reduce.sort_bytes;
	const uint32_t *groups = lines->group;
	const uint32_t *numbers = scan->reduce.numbers;
	uint64_t	threads;
	reduce_job	job;

	if (!scan->view.multiplies)
		rows = lines->count;
	if (rows == 0)
		return GH_OK;
	if (scan->view.multiplies)
	{
		groups = scan->reduce.groups;
		numbers = scan->reduce.list;
		GH_TRY(collect_list(scan, lines, extras, scan->reduce.list, scan->reduce.groups, error));
	}
	threads = (uint64_t) most_chunks(rows) * warps_each(scan->view) * 32;
	job.plan = scan->view;
	job.groups = scan->groups;
	job.lines = *lines;
	job.reduce = scan->reduce;
	job.rows = rows;
	job.places = lines->count + extras;
	if (scan->view.nkeys == 0)
		job.reduce.order = const_cast<uint32_t *>(numbers);
	job.counters = counters;
	if (scan->view.nkeys == 0)
		whole_kernel<<<1, 1, 0, stream>>>(job);
	else
	{
		SCAN_TRY(scan, sort_lines(scan, groups, numbers, scan->reduce.sort_space, &sort_bytes, rows,
								  group_bits(scan)), error);
		segments_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, stream>>>(job);
	}
	SCAN_TRY(scan, launch_status(), error);
	short_kernel<<<blocks_of(scan, rows), BLOCK_THREADS, 0, stream>>>(job);
	SCAN_TRY(scan, launch_status(), error);
	chunk_kernel<<<blocks_of(scan, threads), BLOCK_THREADS, 0, stream>>>(job);
	SCAN_TRY(scan, launch_status(), error);
	long_kernel<<<blocks_of(scan, threads), BLOCK_THREADS, 0, stream>>>(job);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}
