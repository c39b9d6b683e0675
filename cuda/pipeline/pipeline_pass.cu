/*
 * pipeline_pass.cu
 *		Pages that are added up by the kernel that reads them: one pass, with no place for each row.
 *
 * Where rows are added to one group, or to few, and most pages of a request are in the device's memory already, neither
 * the bus nor the sink is what a request waits for, but what its kernels write for one another.  So one kernel does all:
 *
 *	1. A block has one page at a time, in shared memory, and loads its next one meanwhile, unless its pages have few lines; a
 *	   thread has a line, whose vectors are in shared memory, too.
 *	2. It reads the line's columns, does the steps, and adds the row to states of its own; or, with keys, to the sums of its
 *	   group (pass_groups.cuh).
 *	3. When the block has done its pages, its threads' states are merged, and are one chunk's (group_reduce.cuh), which go
 *	   to the group when the batch is the oldest.  With keys that is when the batch's groups go to those of the pipeline
 *	   (pipeline_pass_groups.cu).
 *
 * A request is one batch.  Rows that go back are listed as they come, and put in their order by the host.  If there are more of
 * them than the list has room for, or more groups than the batch has, all is done once more in the other way
 * (do_without_pass), for nothing of it is in the sink yet.
 *
 * Not for sums of floats: here the order of rows depends on how many blocks there are.
 */
#include <cuda_pipeline.h>

#include <algorithm>

#include "cuda/pipeline/group_reduce.cuh"
#include "cuda/pipeline/pass_groups.cuh"
#include "cuda/pipeline/page_lines.cuh"
#include "cuda/pipeline/pipeline_spans.cuh"
#include "cuda/pipeline/row_steps.cuh"

/* Lines of a page, at most, and of the smallest block. */
#define PASS_THREADS_MAX 320
#define PASS_THREADS_MIN 64
/*
 * Blocks of fewer threads have room for one page: more blocks, and a larger cache of what they all read, are worth more
 * than that a page is there before the one in front of it is done.
 */
#define PASS_THREADS_AHEAD 128
/* Blocks of the largest size on a multiprocessor that there are registers for. */
#define PASS_BLOCKS 2
#define PASS_BLOCKS_MAX 2048
/* Shared memory of a block, and, with keys, as much as leaves room for two others on a multiprocessor. */
#define PASS_SHARED_MAX ((size_t) 96 << 10)
#define PASS_SHARED_KEYED ((size_t) 72 << 10)
/* Of it, what needs no leave. */
#define PASS_SHARED_FREE ((size_t) 48 << 10)
/* Of a batch's memory: rows that go back, and chunks for all blocks. */
#define PASS_ROWS ((uint64_t) 65536)

/* What a list of pages takes as a rule: the first requests have fewer, and larger memory waits for the device. */
#define PASS_INPUT ((size_t) 512 << 10)

static_assert(PASS_ROWS / SEGMENT_SHORT >= PASS_BLOCKS_MAX, "each block has a chunk");

/* A page, as a block is told. */
struct pass_page
{
	const char *at;				/* in the device's memory */
	uint32_t	block;			/* other: its number among the others */
	uint16_t	lines;			/* all are asked for */
	uint16_t	other;			/* 1: more is to be said of it */
};

struct pass_job
{
	run_job		run;
	const pass_page *pages;
	const input_page *others;
	const uint64_t *bitmaps;
	uint32_t	npages;
	uint32_t	first;			/* page, of the request's */
	GhBackRow  *back;
	uint32_t	back_room;
	GhAggregateState *partial;	/* by block, of all aggregates */
	uint32_t   *partial_rows;	/* by block */
	uint32_t	nlows;
	uint32_t	nhighs;
	pass_groups grouped;		/* with keys */
};

/* ---------------------------------------------------------------- the kernel */

/* What a thread has of its rows so far. */
struct pass_tally
{
	GhAggregateState states[PASS_AGGREGATES_MAX];	/* without keys */
	uint32_t	lacking;		/* rows without a group */
	uint32_t	seen;
	uint32_t	lines;			/* that were added */
	bool		fits;
};

/*
 * The vectors of a thread's row, behind the pages: zero at first, for arguments that an instruction does not have
 * are read.
 */
static __device__ values_view
pass_values(const pass_job &job, uint64_t *at)
{
	uint32_t	words = (job.nlows + job.nhighs) * blockDim.x;
	values_view values = job.run.batch.values;

	values.low = at;
	values.high = at + (uint64_t) job.nlows * blockDim.x;
	values.null = reinterpret_cast<uint8_t *>(at + words);
	values.stride = blockDim.x;
	for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
		at[i] = 0;
	for (uint32_t i = threadIdx.x; i < job.nlows * blockDim.x; i += blockDim.x)
		values.null[i] = 0;
	return values;
}

/* Has the page loaded, not waited for; others are read when it is their turn. */
static __device__ __forceinline__ void
fetch_page(const pass_job &job, const pass_page &page, uint4 *to)
{
	const uint4 *from = reinterpret_cast<const uint4 *>(page.at);

	if (page.other == 0)
		for (uint32_t at = threadIdx.x; at < job.run.view.page_bytes / sizeof(uint4); at += blockDim.x)
			__pipeline_memcpy_async(to + at, from + at, sizeof(uint4));
	__pipeline_commit();
}

static __host__ __device__ __forceinline__ uint32_t
pages_of_block(uint32_t threads)
{
	return threads < PASS_THREADS_AHEAD ? 1 : 2;
}

static __device__ void
note_back_row(const pass_job &job, uint32_t page, uint32_t line, uint32_t step)
{
	uint64_t	at = atomicAdd(reinterpret_cast<unsigned long long *>(&job.run.batch.counters->backs), 1ull);

	if (at < job.back_room)
		job.back[at] = {job.first + page, (uint16_t) line, (uint16_t) step};
}

/* Adds a row to what each aggregate has that takes it. */
static __device__ __forceinline__ void
add_row(const plan_view &plan, const line_values &row, uint64_t takes, pass_tally *tally)
{
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const GhAggregate aggregate = plan.aggregates[a];
		GhValue		value = {0, 0, 0};

		if ((takes >> a & 1) == 0)
			continue;
		if (aggregate.kind > GH_AGGREGATE_COUNT)
			value = row.get(plan.inputs[plan.input_of[a]].vector);
		tally->fits &= gh_aggregate_add(&aggregate, &tally->states[a], value.low,
										aggregate.value_class == GH_CLASS_INT128 ? value.high : 0);
	}
}

/* All threads of a warp come here: rows that do not go back, behind so many steps. */
static __device__ __forceinline__ void
count_steps(uint32_t nsteps, uint32_t came, uint32_t *passed)
{
	for (uint32_t s = 0; s < nsteps; s++)
	{
		uint32_t	behind = __ballot_sync(~0u, came > s);

		if (threadIdx.x % 32 == 0 && behind != 0)
			atomicAdd(&passed[s], (uint32_t) __popc(behind));
	}
}

/* Does the lines of the page that the block has, a thread each. */
template <bool KEYED> static __device__ __forceinline__ void
pass_lines(const pass_job &job, const values_view &values, const pass_table &table, const GhPageRef &asked,
		   const uint8_t *page, const uint8_t *text_at, uint32_t number, uint32_t *passed, pass_tally *tally)
{
	const pipe_view &view = job.run.view;
	line_values row(view.program, values, threadIdx.x);
	uint32_t	page_lines = gh_page_lines(page, view.page_bytes);
	bool		broken = asked.lines > page_lines;
	line_seen	seen = {false, false, false};
	row_run		run = {NO_STEP, 0, 0, 0, false};
	uint64_t	takes = 0;
	uint32_t	came = 0;

	if (threadIdx.x < asked.lines && !broken)
		broken = !read_line(view, row, asked, job.bitmaps, page, text_at, page_lines, threadIdx.x + 1, &seen);
	if (__syncthreads_or(broken))
	{
		if (threadIdx.x == 0 && asked.lines > 0)
			note_back_row(job, number, 0, 0);
		return;
	}
	tally->seen += seen.visible;
	if (seen.untold || seen.back)
		run.back = seen.untold ? (uint32_t) GH_STEP_VISIBILITY : 0;
	else if (seen.visible)
		came = run_one(job.run, row, &run, &takes);
	if (run.back != NO_STEP)
		note_back_row(job, number, threadIdx.x + 1, run.back);
	else if (run.lines > 0)
	{
		if (!KEYED)
			add_row(view.plan, row, takes, tally);
		else if (!add_grouped(view.plan, job.grouped, table, row, takes, &job.run.batch.counters->groups))
			tally->lacking++;
		tally->lines++;
	}
	count_steps(view.nsteps, run.back == NO_STEP ? came : 0, passed);
}

/* The threads' states become the block's chunk; scratch has room for a state a warp. */
static __device__ __forceinline__ void
merge_threads(const pass_job &job, pass_tally *tally, GhAggregateState *scratch)
{
	const plan_view &plan = job.run.view.plan;
	uint32_t	warps = blockDim.x / 32;

	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		merge_lanes(&plan.aggregates[a], &tally->states[a], &tally->fits);
		__syncthreads();
		if (threadIdx.x % 32 == 0)
			scratch[threadIdx.x / 32] = tally->states[a];
		__syncthreads();
		for (uint32_t w = 1; threadIdx.x == 0 && w < warps; w++)
			tally->fits &= gh_aggregate_merge(&plan.aggregates[a], &tally->states[a], &scratch[w]);
		if (threadIdx.x == 0)
			job.partial[(uint64_t) blockIdx.x * plan.naggregates + a] = tally->states[a];
	}
}

/* What the block has counted. */
template <bool KEYED> static __device__ __forceinline__ void
tell_tally(const pass_job &job, const pass_tally *tally, const uint32_t *passed)
{
	pipe_counters *counters = job.run.batch.counters;
	uint32_t	lines = sum_lanes(tally->lines);

	add_tally(&counters->seen, tally->seen);
	if (threadIdx.x % 32 == 0 && lines > 0)
	{
		add_relaxed(&counters->lines, lines);
		if (!KEYED)
			atomicAdd(&job.partial_rows[blockIdx.x], lines);
	}
	if (KEYED)
		add_tally(&counters->groups.no_group, tally->lacking);
	if (threadIdx.x < job.run.view.nsteps && passed[threadIdx.x] > 0)
		add_relaxed(&counters->passed[threadIdx.x], passed[threadIdx.x]);
	if (!tally->fits)
		counters->groups.unfit = 1;
}

/* Behind the vectors of the block's rows. */
static __device__ __forceinline__ uint64_t *
pass_table_at(const pass_job &job, const values_view &values)
{
	return reinterpret_cast<uint64_t *>(values.null + (uint64_t) job.nlows * blockDim.x);
}

template <bool KEYED> static __global__ void __launch_bounds__(PASS_THREADS_MAX, PASS_BLOCKS)
pass_kernel(const __grid_constant__ pass_job job)
{
	extern __shared__ uint4 pass_memory[];
	__shared__ uint32_t passed[GH_STEPS_MAX];
	uint32_t	page_words = job.run.view.page_bytes / sizeof(uint4);
	bool		ahead = pages_of_block(blockDim.x) > 1;
	values_view values = pass_values(job, reinterpret_cast<uint64_t *>(pass_memory + (ahead ? 2 : 1) * page_words));
	pass_tally tally = {};
	pass_table	table = {};
	pass_page	here = job.pages[blockIdx.x];
	uint4	   *copy = pass_memory;

	tally.fits = true;
	if (threadIdx.x < GH_STEPS_MAX)
		passed[threadIdx.x] = 0;
	if (KEYED)
		table = table_begin(job.run.view.plan, job.grouped, pass_table_at(job, values));
	else if (threadIdx.x == 0)
		job.partial_rows[blockIdx.x] = 0;
	fetch_page(job, here, copy);
	for (uint32_t p = blockIdx.x; p < job.npages; p += gridDim.x)
	{
		pass_page	page = here;
		GhPageRef	asked = {page.at, page.lines, GH_PAGE_ALL_LINES, page.block, 0, 0, 0, 0};
		const char *text_at = page.at;
		uint4	   *other = ahead && copy == pass_memory ? pass_memory + page_words : pass_memory;

		if (p + gridDim.x < job.npages)
			here = job.pages[p + gridDim.x];
		if (!ahead && p != blockIdx.x)
		{
			/* all have done with the one before */
			__syncthreads();
			fetch_page(job, page, copy);
		}
		__pipeline_wait_prior(0);
		/* the page is there, and all have done with the one before */
		__syncthreads();
		if (ahead && p + gridDim.x < job.npages)
			fetch_page(job, here, other);
		if (page.other != 0)
		{
			input_page	from = job.others[page.block];

			asked = from.asked;
			if (from.near != 0)
				page_read_near(copy, asked.page, job.run.view.page_bytes);
			else
				page_read(copy, asked.page, job.run.view.page_bytes);
			__syncthreads();
			if (from.kept != nullptr)
				keep_page(copy, from, job.run.view.page_bytes);
			text_at = from.kept != nullptr ? from.kept : static_cast<const char *>(asked.page);
		}
		pass_lines<KEYED>(job, values, table, asked, reinterpret_cast<const uint8_t *>(copy),
						  reinterpret_cast<const uint8_t *>(text_at), p, passed, &tally);
		copy = other;
	}
	__syncthreads();
	if (KEYED)
		table_end(job.run.view.plan, job.grouped, table);
	else
		merge_threads(job, &tally, reinterpret_cast<GhAggregateState *>(pass_memory));
	__syncthreads();
	tell_tally<KEYED>(job, &tally, passed);
}

/* ------------------------------------------------------------------- the host */

static inline bool
is_keyed(const cuda_pipeline *pipeline)
{
	return pipeline->plan.options.sink.groups.nkeys > 0;
}

/* Shared memory of a block, but for what is static and its table of groups. */
static size_t
pass_shared(const cuda_pipeline *pipeline, uint32_t threads)
{
	size_t		each = pipeline->nlows * (sizeof(uint64_t) + 1) + pipeline->nhighs * sizeof(uint64_t);

	return pages_of_block(threads) * (size_t) pipeline->view.page_bytes + threads * each;
}

bool
pass_suits(const cuda_pipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	return options->source.kind == GH_SOURCE_PAGES && adds_rows(pipeline) &&
		options->sink.groups.naggregates <= PASS_AGGREGATES_MAX && !adds_floats(pipeline) &&
		pipeline->view.page_bytes >= PASS_THREADS_MAX / 32 * sizeof(GhAggregateState) &&
		(!is_keyed(pipeline) || pass_groups_suit(pipeline));
}

static uint32_t
longest_page(const GhPipelineRequest *request, uint32_t npages)
{
	uint32_t	longest = 0;

	for (uint32_t p = 0; p < npages; p++)
		longest = std::max(longest, lines_of_page(request, p));
	return longest;
}

/* Threads of a block, for pages of so many lines. */
static uint32_t
block_threads(uint32_t lines)
{
	return std::max((lines + 31) / 32 * 32, (uint32_t) PASS_THREADS_MIN);
}

/* Entries of a block's table of groups: as many as are wanted and have room, or the fewest. */
static uint32_t
block_entries(const cuda_pipeline *pipeline, uint32_t threads)
{
	uint32_t	entries = pass_groups_entries(pipeline);

	while (entries > PASS_ENTRIES_MIN &&
		   pass_shared(pipeline, threads) + pass_groups_shared(pipeline, entries) > PASS_SHARED_KEYED)
		entries /= 2;
	return entries;
}

static size_t
block_shared(const cuda_pipeline *pipeline, uint32_t threads)
{
	size_t		shared = pass_shared(pipeline, threads);

	if (is_keyed(pipeline))
		shared += pass_groups_shared(pipeline, block_entries(pipeline, threads));
	return shared;
}

/* What a block may have of it on this device. */
static size_t
pass_shared_most(const cuda_pipeline *pipeline)
{
	return std::min(PASS_SHARED_MAX, std::max(PASS_SHARED_FREE, (size_t) pipeline->block_shared));
}

/* Pages that are in the host's memory, or of which more is to be said. */
static bool
is_other(const GhPageRef *page)
{
	return page->page != nullptr || page->hinted != 0 || page->bitmap != GH_PAGE_ALL_LINES;
}

bool
pass_takes(const cuda_pipeline *pipeline, const GhPipelineRequest *request)
{
	uint64_t	lines = 0;
	uint32_t	far = 0;
	uint32_t	npages;
	uint32_t	threads;

	if (!pipeline->one_pass || request->kind != GH_INPUT_PAGES ||
		pipeline->intake.submitted > GH_PIPELINE_ROWS_MAX / 2)
		return false;
	npages = (uint32_t) gh_request_pages(request->pages, request->npages);
	for (uint32_t p = 0; p < request->npages; p++)
	{
		far += request->pages[p].page != nullptr;
		lines += request->pages[p].lines;
	}
	threads = block_threads(longest_page(request, npages));
	return far <= npages / 2 && (far == 0 || reads_in_place(pipeline, request)) && threads <= PASS_THREADS_MAX &&
		block_shared(pipeline, threads) <= pass_shared_most(pipeline) &&
		(!is_keyed(pipeline) || lines <= PASS_KEYED_LINES);
}

/* Where the input of a batch is, on the host and on the device alike. */
struct pass_arrays
{
	pass_page  *pages;
	input_page *others;
	uint64_t   *bitmaps;
	size_t		list_bytes;		/* of all that */
	char	   *copies;			/* on the device alone */
};

static pass_arrays
pass_carve(const cuda_pipeline *pipeline, const GhPipelineRequest *request, carver *carver)
{
	uint64_t	words = 0;
	uint32_t	others = 0;
	uint32_t	copies = 0;
	pass_arrays arrays;

	for (uint32_t p = 0; p < request->npages; p++)
	{
		others += is_other(&request->pages[p]);
		words += request->pages[p].bitmap == GH_PAGE_ALL_LINES ? 0 : (request->pages[p].lines + 63) / 64;
		copies += request->pages[p].page != nullptr && request->pages[p].span == 0;
	}
	arrays.pages = carver->array<pass_page>(gh_request_pages(request->pages, request->npages));
	arrays.others = carver->array<input_page>(others);
	arrays.bitmaps = carver->array<uint64_t>(words);
	arrays.list_bytes = carver->used;
	arrays.copies = carver->array<char>((uint64_t) copies * pipeline->view.page_bytes);
	return arrays;
}

/* Memory for a request. */
GhStatus
pass_begin(cuda_pipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	carver		sizes = {};
	pass_arrays arrays = pass_carve(pipeline, request, &sizes);

	GH_TRY(batch_reserve(pipeline, PASS_ROWS, error));
	if (is_keyed(pipeline))
		GH_TRY(pass_groups_reserve(pipeline, error));
	return input_reserve(pipeline, std::max(arrays.list_bytes, PASS_INPUT), std::max(sizes.used, PASS_INPUT), error);
}

/* The pages of a run, or one; where the next ones go. */
static pass_page *
list_near(const GhPipelineRequest *request, const GhPageRef *from, uint32_t page, pass_page *to)
{
	const GhPageSpan *span = request->spans[from->span - 1];
	const char *at = span_place(span, from->place);
	uint32_t	run = from->run > 1 ? from->run : 1;

	for (uint32_t k = 0; k < run; k++, at += span->page_bytes)
		*to++ = pass_page{at, from->block + k, (uint16_t) lines_of_page(request, page + k), 0};
	return to;
}

/* Says of all pages where they are. */
static void
list_pages(const cuda_pipeline *pipeline, const GhPipelineRequest *request, const pass_arrays *host,
		   const pass_arrays *device)
{
	pass_page  *to = host->pages;
	uint32_t	page = 0;
	uint32_t	others = 0;
	uint32_t	copies = 0;
	uint64_t	word = 0;

	for (uint32_t p = 0; p < request->npages; p++)
	{
		const GhPageRef *from = &request->pages[p];
		input_page *other = &host->others[others];
		uint32_t	words = from->bitmap == GH_PAGE_ALL_LINES ? 0 : (from->lines + 63) / 64;

		if (!is_other(from))
		{
			to = list_near(request, from, page, to);
			page = (uint32_t) (to - host->pages);
			continue;
		}
		input_send_page(pipeline, request, from, other, nullptr, device->copies, &copies);
		if (words > 0)
		{
			memcpy(host->bitmaps + word, request->bitmaps + from->bitmap, words * sizeof(uint64_t));
			other->asked.bitmap = (uint32_t) word;
			word += words;
		}
		*to++ = pass_page{nullptr, others++, 0, 1};
		page++;
	}
}

typedef void pass_function(const pass_job job);

/* As many blocks as are on the device at a time, but no more than have pages and chunks. */
static GhStatus
choose_blocks(cuda_pipeline *pipeline, pass_function *kernel, uint32_t npages, uint32_t threads, size_t shared,
			  uint32_t *blocks, GhError *error)
{
	int			each = 0;

	if (shared > PASS_SHARED_FREE)
		PIPE_TRY(&pipeline->memory, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
														 (int) pass_shared_most(pipeline)), error);
	PIPE_TRY(&pipeline->memory,
			 cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, (int) threads, shared), error);
	*blocks = std::min((uint32_t) std::max(each, 1) * pipeline->multiprocessors, (uint32_t) PASS_BLOCKS_MAX);
	*blocks = std::min(*blocks, most_chunks(pipeline->lane->batch_rows));
	*blocks = std::max(std::min(*blocks, npages), 1u);
	return GH_OK;
}

static pass_job
job_of(const cuda_pipeline *pipeline, const batch_input *input, const pass_arrays *device)
{
	const pipe_lane *lane = pipeline->lane;
	pass_job	job = {};

	job.run = run_job{pipeline->view, lane->batch, lane->sink.lines, 0};
	job.run.view.first_several = pipeline->view.nsteps;
	job.pages = device->pages;
	job.others = device->others;
	job.bitmaps = device->bitmaps;
	job.npages = input->pages;
	job.first = (uint32_t) input->first;
	job.back = lane->back_rows;
	job.back_room = lane->batch_rows;
	job.partial = lane->sink.reduce.partial;
	job.partial_rows = lane->sink.reduce.partial_rows;
	job.nlows = pipeline->nlows;
	job.nhighs = pipeline->nhighs;
	return job;
}

/* Has the lists of pages sent; *device: where they are. */
static GhStatus
send_pages(cuda_pipeline *pipeline, const GhPipelineRequest *request, pass_arrays *device, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	carver		on_host = {};
	carver		on_device = {};
	pass_arrays host;

	on_host.base = lane->host_input;
	on_device.base = lane->input_block.memory;
	host = pass_carve(pipeline, request, &on_host);
	*device = pass_carve(pipeline, request, &on_device);
	list_pages(pipeline, request, &host, device);
	return pipe_copy(&pipeline->memory, lane->input_block.memory, lane->host_input, host.list_bytes, error);
}

GhStatus
pass_launch(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input, GhError *error)
{
	pass_function *kernel = is_keyed(pipeline) ? pass_kernel<true> : pass_kernel<false>;
	uint32_t	threads = block_threads(longest_page(request, input->pages));
	size_t		shared = block_shared(pipeline, threads);
	uint32_t	blocks = 1;
	pass_arrays device;
	pass_job	job;

	GH_TRY(choose_blocks(pipeline, kernel, input->pages, threads, shared, &blocks, error));
	GH_TRY(send_pages(pipeline, request, &device, error));
	job = job_of(pipeline, input, &device);
	pipeline->lane->chunk_lines = blocks * CHUNK_ROWS;
	if (is_keyed(pipeline))
		GH_TRY(pass_groups_begin(pipeline, block_entries(pipeline, threads), &job.grouped, error));
	kernel<<<blocks, threads, shared, pipeline->memory.stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return is_keyed(pipeline) ? pass_groups_tell(pipeline, &job.grouped, error) : GH_OK;
}

GhStatus
pass_can_be_taken(cuda_pipeline *pipeline, bool *can, GhError *error)
{
	const pipe_counters *counters = pipeline->lane->host_counters;

	*can = true;
	if (pipeline->lane->input.rows == 0)
		return GH_OK;
	*can = counters->backs <= pipeline->lane->batch_rows && counters->groups.no_group == 0;
	return *can && is_keyed(pipeline) ? groups_make_room(pipeline, &counters->used, can, error) : GH_OK;
}

static bool
is_before(const GhBackRow &a, const GhBackRow &b)
{
	return a.page != b.page ? a.page < b.page : a.line < b.line;
}

GhStatus
pass_list_back(cuda_pipeline *pipeline, GhPipelineRequest *request, uint64_t count, GhError *error)
{
	GhBackRow  *to = request->back + request->nback;

	GH_TRY(pipe_copy(&pipeline->memory, to, pipeline->lane->back_rows, count * sizeof(GhBackRow), error));
	GH_TRY(pipe_wait(&pipeline->memory, error));
	std::sort(to, to + count, is_before);
	request->nback += count;
	return GH_OK;
}
