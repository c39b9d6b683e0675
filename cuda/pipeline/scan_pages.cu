/*
 * scan_pages.cu
 *		Reads heap pages: their rows' columns, the program, what aggregates take of them, and
 *		their groups.
 *
 * A block has a page at a time.  It is read once, by loads of 16 bytes that lie side by side,
 * into shared memory; everything after that, and every check, is of this copy, whatever others do to
 * the page meanwhile.  Then each thread has a line: finds the tuple, loads the columns, runs the
 * program.  What comes of a line is written to its place among the lines of the request, which no
 * other thread writes to; nothing is added up here, so that no order matters.
 *
 * Where the bytes are not those of a heap page, or a tuple is not of the shape, the whole page
 * is handed back: its threads agree on that at the end, and overwrite what they wrote.  Groups
 * that such rows have made stay, without rows.
 *
 * The values of a row are in memory of the grid's own, vector by vector, so that the threads of a
 * warp read one vector's side by side; constants are read from the program.  That is what a local
 * array would be, but of just the size that the program needs.
 */
#include "cuda/pipeline/scan_columns.cuh"
#include "cuda/pipeline/scan_device.cuh"
#include "cuda/pipeline/scan_find.cuh"
#include "cuda/pipeline/scan_join.cuh"
#include "cuda/pipeline/scan_matches.cuh"
#include "cuda/pipeline/scan_program.cuh"

/* Threads that know what became of their lines of a page. */
struct page_tally
{
	uint32_t	counted;
	uint32_t	seen;
	uint32_t	back;
	uint32_t	no_group;
	uint64_t	came;			/* COUNT_BITS each: rows that came to the joins and no further... */
	match_tally matches;		/* in place of that where rows may become several */
};

/* A thread has at most GH_PAGE_BYTES_MAX / GH_LINE_BYTES / SCAN_THREADS lines of a page: 64. */
#define COUNT_BITS 7
static_assert(GH_PAGE_BYTES_MAX / GH_LINE_BYTES / SCAN_THREADS < 1 << COUNT_BITS &&
			  COUNT_BITS * (GH_SCAN_JOINS_MAX + 1) <= 64, "the counts of a page fit in a word");

/* *came: to the joins, 1; behind the first one, 2... */
static __device__ GhRowState
run_and_join(const plan_view &plan, const row_values &row, uint32_t *came)
{
	GhRowState	state = run_program(plan, row, 0, plan.joins_at);

	if (state != GH_ROW_LIVE)
		return state;
	*came = 1;
	for (uint32_t j = 0; j < plan.njoins; j++)
	{
		state = join_row(plan.joins[j], row);
		if (state != GH_ROW_LIVE)
			return state;
		++*came;
	}
	return run_program(plan, row, plan.joins_at, plan.program->ninstructions);
}

/* What becomes of a tuple whose columns are loaded; a row that is live has its group. */
static __device__ line_state
count_row(const pages_job &job, const row_values &row, uint32_t line, uint64_t *takes,
		  uint32_t *group, uint32_t *came)
{
	GhRowState	state = run_and_join(job.plan, row, came);

	if (state != GH_ROW_LIVE)
		return state == GH_ROW_DROPPED ? LINE_NONE : LINE_BACK;
	if (job.plan.nparts > 0 || job.plan.each_row != 0)
		return store_row(job, row, line, takes);
	if (!row_takes(job.plan, row, takes))
		return LINE_BACK;
	*group = job.plan.nkeys == 0 ? 0 : group_find(job.plan, job.groups, row, job.counters);
	if (*group == GROUP_NONE)
		return LINE_NO_GROUP;
	store_inputs(job.plan, job.lines, row, line);
	return LINE_LIVE;
}

/* ---------------------------------------------------------------------- a page */

/* A line of a page that has it; false: the page is broken. */
template <bool SEVERAL> static __device__ bool
do_line(const pages_job &job, const row_values &row, const GhScanPage &asked, const uint8_t *page,
		uint32_t page_lines, uint32_t number, uint32_t line, page_tally *tally)
{
	line_state	state = LINE_NONE;
	uint32_t	group = GROUP_NONE;
	uint64_t	takes = 0;
	uint32_t	came = 0;
	GhPageTuple tuple;
	bool		back = false;
	bool		visible = false;

	if (gh_scan_asks(&asked, job.bitmaps, number) &&
		(asked.bitmap != GH_SCAN_ALL || gh_scan_is_normal(page, number)) &&
		!judge_line(job.plan.page_bytes, job.plan.seen_before, asked, page, page_lines, number, &back, &visible))
		return false;
	if (back)
		state = LINE_BACK;
	if (visible)
	{
		/* without columns the tuples are not looked at: as gh_cpu_page_load() does */
		if (job.plan.shape->ncolumns > 0 &&
			(!gh_page_tuple(page, job.plan.page_bytes, page_lines, number, &tuple) ||
			 !load_columns(job.plan.shape, row, page, page, &tuple, &back)))
			return false;
		if (job.plan.shape->tids != 0)
			row.set(job.plan.shape->tids - 1, GhValue{gh_tid_value(asked.block, number), 0, 0});
		state = back ? LINE_BACK :
			SEVERAL ? count_matches(job, row, line, &takes, &group, &tally->matches) :
			count_row(job, row, line, &takes, &group, &came);
	}
	job.lines.state[line] = (uint8_t) state;
	job.lines.group[line] = state == LINE_LIVE ? group : GROUP_NONE;
	job.lines.takes[line] = state == LINE_LIVE ? takes : 0;
	tally->counted += state == LINE_LIVE;
	tally->seen += visible && state < LINE_BACK;
	tally->back += state == LINE_BACK || state == LINE_NO_GROUP;
	tally->no_group += state == LINE_NO_GROUP;
	if (came > 0 && state < LINE_BACK)
		tally->came += (uint64_t) 1 << COUNT_BITS * (came - 1);
	return true;
}

/* Overwrites what the threads wrote of a page that is handed back whole. */
static __device__ void
refuse_page(const lines_view &lines, uint32_t first, uint32_t count)
{
	for (uint32_t i = threadIdx.x; i < count; i += SCAN_THREADS)
	{
		lines.state[first + i] = i == 0 ? LINE_PAGE : LINE_NONE;
		lines.group[first + i] = GROUP_NONE;
		lines.takes[first + i] = 0;
	}
}

/* Of a page, on which a thread has no more rows than 64 * GH_SCAN_MATCHES_MAX. */
static __device__ void
add_matches(const pages_job &job, const match_tally &matches)
{
	for (uint32_t i = 0; i <= job.plan.njoins; i++)
	{
		add_tally(&job.counters->live[i], matches.live[i]);
		add_tally(&job.counters->dropped[i], matches.dropped[i]);
	}
	add_tally(&job.counters->rows, matches.rows);
	add_tally(&job.counters->wanted, matches.extras);
}

/* SEVERAL: joins may make several rows of one. */
template <bool SEVERAL> static __global__ void __launch_bounds__(SCAN_THREADS)
pages_kernel(const pages_job job)
{
	extern __shared__ uint4 page_copy[];
	const uint8_t *page = reinterpret_cast<const uint8_t *>(page_copy);
	row_values	row(job.plan.program, job.scratch);
	page_tally	total = {};

	for (uint32_t p = blockIdx.x; p < job.npages; p += gridDim.x)
	{
		GhScanPage	asked = job.pages[p];
		uint32_t	first = job.firsts[p];
		page_tally	tally = {};
		uint32_t	page_lines;
		bool		broken;

		page_read(page_copy, asked.page, job.plan.page_bytes);
		__syncthreads();
		page_lines = gh_page_lines(page, job.plan.page_bytes);
		broken = asked.lines > page_lines;
		for (uint32_t i = threadIdx.x; i < asked.lines && !broken; i += SCAN_THREADS)
			broken = !do_line<SEVERAL>(job, row, asked, page, page_lines, i + 1, first + i, &tally);
		/* also keeps the copy until all have done with it */
		if (__syncthreads_or(broken))
		{
			refuse_page(job.lines, first, asked.lines);
			total.back += threadIdx.x == 0;
			continue;
		}
		total.counted += tally.counted;
		total.seen += tally.seen;
		total.back += tally.back;
		total.no_group += tally.no_group;
		if (SEVERAL)
			add_matches(job, tally.matches);
		for (uint32_t i = 0; i <= job.plan.njoins && !SEVERAL; i++)
			add_tally(&job.counters->came[i],
					  (uint32_t) (tally.came >> COUNT_BITS * i) & ((1u << COUNT_BITS) - 1));
	}
	add_tally(&job.counters->counted, total.counted);
	add_tally(&job.counters->seen, total.seen);
	add_tally(&job.counters->back, total.back);
	add_tally(&job.counters->no_group, total.no_group);
}

/* ------------------------------------------------------------------- the host */

/* As many blocks as run at a time; each has values for its threads. */
uint32_t
pages_blocks(const cuda_scan *scan)
{
	return (scan->multiprocessors > 0 ? scan->multiprocessors : 1) * SCAN_BLOCKS;
}

GhStatus
pages_launch(cuda_scan *scan, const pages_job *job, cudaStream_t stream, GhError *error)
{
	uint32_t	blocks = pages_blocks(scan);

	if (job->npages < blocks)
		blocks = job->npages;
	if (blocks == 0)
		return GH_OK;
	if (job->plan.multiplies)
		pages_kernel<true><<<blocks, SCAN_THREADS, job->plan.page_bytes, stream>>>(*job);
	else
		pages_kernel<false><<<blocks, SCAN_THREADS, job->plan.page_bytes, stream>>>(*job);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}
