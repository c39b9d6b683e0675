/*
 * scan_unmatched.cu
 *		Rows of a table that no row matched: their marks, and the kernel that goes on with them as what a
 *		scan's last join returns.
 *
 * The table is gone through by numbers of rows, a thread a row.  Its key is looked up as any other is, for the
 * mark is that of the value which the key has there: one of its rows' numbers, or its place among members.  What has no
 * mark becomes a line of the request, which ends as lines of pages do; to read such rows once more, as
 * when there was no room for a group, is to look at the same marks again.
 */
#include "cuda/pipeline/scan_device.cuh"
#include "cuda/pipeline/scan_find.cuh"
#include "cuda/pipeline/scan_join.cuh"
#include "cuda/pipeline/scan_matches.cuh"
#include "cuda/pipeline/scan_program.cuh"

/* ----------------------------------------------------------------------- marks */

/* Of a table whose rows have their numbers; none is set.  GH_LIMIT, GH_NO_MEMORY: it cannot be made. */
GhStatus
marks_make(cuda_scan *scan, GhError *error)
{
	scan_rows  *rows = &scan->rows;
	uint64_t	words = 2 * rows->count / 32 + 1;

	GH_TRY(rows_extra_alloc(scan, words * sizeof(uint32_t), &rows->marks_block, error));
	SCAN_TRY(scan, cudaMemsetAsync(rows->marks_block.memory, 0, rows->marks_block.bytes,
								   scan->reduce_stream), error);
	/* scans that join with the table have streams of their own */
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	return GH_OK;
}

static __device__ bool
has_match(const made_table &table, uint64_t table_row)
{
	uint64_t	found;
	uint32_t	bit;
	uint32_t   *word;

	if (!has_key(table.keyed, table_row) || scan_locate(table.view, table.keys[table_row], &found) == nullptr)
		return false;
	word = mark_of(table, found, &bit);
	return (*word & bit) != 0;
}

/* ------------------------------------------------------------------------ rows */

/* What threads count. */
struct unmatched_tally
{
	uint32_t	counted;
	uint32_t	came;			/* behind the join, and did not go back */
	uint32_t	back;
	uint32_t	no_group;
};

/* The row as it comes out of the join: behind all columns but those that it fills there is NULL. */
static __device__ GhRowState
make_row(const plan_view &plan, const row_values &row, uint64_t table_row)
{
	const GhInstruction *in = gh_program_instructions(plan.program);

	for (uint32_t c = 0; c < plan.program->ncolumns; c++)
		row.set(c, GhValue{0, 0, 1});
	for (uint32_t i = 0; i < plan.joins_at; i++)
		/* for what it sets: such a row is none that a filter there could drop */
		if (in[i].op != GH_OP_FILTER && run_program(plan, row, i, i + 1) != GH_ROW_LIVE)
			return GH_ROW_BACK;
	fill_columns(plan.joins[plan.njoins - 1], row, true, table_row);
	return GH_ROW_LIVE;
}

/* A row of the table, which has no match, as a line. */
static __device__ void
do_row(const pages_job &job, const row_values &row, uint64_t table_row, uint32_t line,
	   unmatched_tally *tally)
{
	line_state	state = LINE_BACK;
	line_rows	rows = {};

	if (make_row(job.plan, row, table_row) == GH_ROW_LIVE)
		state = place_match(job, row, line, &rows);
	job.lines.state[line] = (uint8_t) state;
	job.lines.group[line] = state == LINE_LIVE ? rows.group : GROUP_NONE;
	job.lines.takes[line] = state == LINE_LIVE ? rows.takes : 0;
	if (job.lines.derived != nullptr)
		job.lines.derived[line] = rows.live;
	tally->counted += state == LINE_LIVE;
	tally->came += state < LINE_BACK;
	tally->back += state >= LINE_BACK;
	tally->no_group += state == LINE_NO_GROUP;
}

static __global__ void __launch_bounds__(SCAN_THREADS)
unmatched_kernel(const pages_job job, uint64_t first_row)
{
	const made_table &table = job.plan.joins[job.plan.njoins - 1].table;
	row_values	row(job.plan.program, job.scratch);
	unmatched_tally tally = {};

	for (uint32_t line = blockIdx.x * SCAN_THREADS + threadIdx.x; line < job.lines.count;
		 line += gridDim.x * SCAN_THREADS)
	{
		if (!has_match(table, first_row + line))
		{
			do_row(job, row, first_row + line, line, &tally);
			continue;
		}
		job.lines.state[line] = LINE_NONE;
		job.lines.group[line] = GROUP_NONE;
		job.lines.takes[line] = 0;
	}
	add_tally(&job.counters->counted, tally.counted);
	add_tally(&job.counters->rows, tally.counted);
	add_tally(&job.counters->came[job.plan.njoins], tally.came);
	add_tally(&job.counters->back, tally.back);
	add_tally(&job.counters->no_group, tally.no_group);
}

/* Enqueues the lines of a request, which are rows of the last join's table from first_row on. */
GhStatus
unmatched_launch(cuda_scan *scan, const pages_job *job, uint64_t first_row, cudaStream_t stream,
				 GhError *error)
{
	uint32_t	blocks = pages_blocks(scan);
	uint32_t	needed = (job->lines.count + SCAN_THREADS - 1) / SCAN_THREADS;

	if (needed < blocks)
		blocks = needed;
	if (blocks == 0)
		return GH_OK;
	unmatched_kernel<<<blocks, SCAN_THREADS, 0, stream>>>(*job, first_row);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}
