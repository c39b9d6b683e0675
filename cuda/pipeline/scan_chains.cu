/*
 * scan_chains.cu
 *		The rows of a table that have the same key, one behind the other, for joins that return them all.
 *
 * All keys are in the table, each with the number of one of its rows.  Rows are sorted by that number,
 * stably: so those of a key lie side by side, in the order in which they were appended, and their numbers
 * are the list of members.  A key of several rows then gets its place in the list in place of the
 * number.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/pipeline/scan_device.cuh"
#include "cuda/pipeline/scan_join.cuh"

/* What a list is made with. */
struct chain_work
{
	scan_block	block;
	uint32_t   *firsts;			/* by row: the number that its key has */
	uint32_t   *sorted;
	uint32_t   *numbers;
	void	   *space;			/* CUB's */
	size_t		space_bytes;
};

static __global__ void __launch_bounds__(BLOCK_THREADS)
firsts_kernel(const table_view view, const uint64_t *keys, const keyed_rows keyed, uint32_t rows,
			  chain_work work)
{
	uint64_t	row = ELEMENT;
	uint64_t	found = row;

	if (row >= rows)
		return;
	/* a row without a key is alone: no key has its number */
	if (has_key(keyed, row))
		(void) scan_locate(view, keys[row], &found);
	work.firsts[row] = (uint32_t) found;
	work.numbers[row] = (uint32_t) row;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
link_kernel(const table_view view, const uint64_t *keys, uint32_t rows, const uint32_t *sorted,
			uint32_t *members)
{
	uint64_t	i = ELEMENT;
	bool		first;
	bool		last;
	uint64_t	found;
	uint64_t   *place;

	if (i >= rows)
		return;
	first = i == 0 || sorted[i - 1] != sorted[i];
	last = i + 1 == rows || sorted[i + 1] != sorted[i];
	if (last)
		members[i] |= MEMBER_LAST;
	if (!first || last)
		return;
	place = scan_locate(view, keys[sorted[i]], &found);
	if (place != nullptr)
		*place = ROW_SEVERAL | i;
}

static cudaError_t
sort_rows(const chain_work *work, uint32_t *members, void *space, size_t *space_bytes, uint32_t rows,
		  cudaStream_t stream)
{
	int			bits = 1;

	while (bits < 32 && rows >> bits != 0)
		bits++;
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, work->firsts, work->sorted,
											   work->numbers, members, (int) rows, 0, bits, stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

static void
work_carve(chain_work *work, uint32_t rows, carver *carver)
{
	work->firsts = carver->array<uint32_t>(rows);
	work->sorted = carver->array<uint32_t>(rows);
	work->numbers = carver->array<uint32_t>(rows);
	work->space = carver->take(work->space_bytes);
}

static GhStatus
link_rows(cuda_scan *scan, const chain_work *work, GhError *error)
{
	cudaStream_t stream = scan->reduce_stream;
	uint32_t	rows = (uint32_t) scan->rows.count;
	uint32_t   *members = reinterpret_cast<uint32_t *>(scan->rows.members_block.memory);
	table_view	view = table_make_view(scan->rows.table);
	size_t		space_bytes = work->space_bytes;

	firsts_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, stream>>>(view, scan->rows.keys, rows_keyed(scan), rows,
																  *work);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, sort_rows(work, members, work->space, &space_bytes, rows, stream), error);
	link_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, stream>>>(view, scan->rows.keys, rows, work->sorted,
																 members);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/* Of a table whose keys are inserted, with the numbers of rows; GH_LIMIT, GH_NO_MEMORY: it cannot be made. */
GhStatus
chains_make(cuda_scan *scan, GhError *error)
{
	uint32_t	rows = (uint32_t) scan->rows.count;
	chain_work	work = {};
	carver		sizes = {};
	carver		arrays = {};
	GhStatus	status;

	GH_TRY(rows_extra_alloc(scan, rows * sizeof(uint32_t), &scan->rows.members_block, error));
	SCAN_TRY(scan, sort_rows(&work, nullptr, nullptr, &work.space_bytes, rows, scan->reduce_stream), error);
	work_carve(&work, rows, &sizes);
	GH_TRY(scan_alloc(scan, sizes.used, false, &work.block, error));
	arrays.base = work.block.memory;
	work_carve(&work, rows, &arrays);
	status = link_rows(scan, &work, error);
	scan_free(scan, false, &work.block);
	return status != GH_OK ? status : scan->failed ? GH_DEVICE_ERROR : GH_OK;
}
