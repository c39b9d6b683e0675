/*
 * scan_chains.cu
 *		The rows of a table that have the same key, one behind the other, for joins that return them all.
 *
 * All keys are in the table, each with the number of one of its rows.  Rows are sorted by that number,
 * stably: so those of a key lie side by side, in the order in which they were appended, and their numbers
 * are the list of members.  A key of several rows then gets its place in the list in place of the
 * number.
 */
#include "cuda/pipeline/scan_chains.cuh"

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
