/*
 * pipeline_pass.cu
 *		Pages that are added up by the kernel that reads them: one pass, with no place for each row.
 *
 * Where rows are added to one group, or to few, and most pages of a request are in the device's memory
 * already, neither the bus nor the sink is what a request waits for, but what its kernels write for one
 * another.  So one kernel does all (pass_pages.cuh):
 *
 *	1. A warp has one page at a time, in shared memory, and has its next one brought into L2 meanwhile; a lane has a line,
 *	   whose vectors are in shared memory, too.
 *	2. It reads the line's columns, does the steps, and adds the row to states of its warp; or, with keys, to the sums of its
 *	   group (pass_groups.cuh).
 *	3. When the block has done its pages, its warps' states are merged, and are one chunk's (group_reduce.cuh), which go
 *	   to the group when the batch is the oldest.  With keys that is when the batch's groups go to those of the pipeline
 *	   (pipeline_pass_groups.cu).
 *
 * Integers that are counted and summed have a kernel of their own, without vectors (pass_direct.cuh), which
 * leaves to the one above what it does not take.
 *
 * A request is one batch.  Rows that go back are listed as they come, and put in their order by the host.  If
 * there are more of them than the list has room for, or more groups than the batch has, or a page is broken
 * of which rows may have been added, all is done once more in the other way (do_without_pass), for nothing of
 * it is in the sink yet.
 *
 * Not for sums of floats: here the order of rows depends on how many blocks there are.
 */
#include <algorithm>

#include "cuda/pipeline/pipeline_pass.cuh"
#include "cuda/pipeline/pipeline_spans.cuh"

#define PASS_BLOCKS_MAX 2048
/* Shared memory of a block that needs no leave. */
#define PASS_SHARED_FREE ((size_t) 48 << 10)
/* What each block takes of a multiprocessor's beside its own. */
#define PASS_SHARED_BESIDE ((size_t) 1 << 10)
/* Of a batch's memory: rows that go back, and chunks for all blocks. */
#define PASS_ROWS ((uint64_t) 65536)

/*
 * What a list of pages takes as a rule: the first requests have fewer, and larger memory waits for the
 * device.
 */
#define PASS_INPUT ((size_t) 512 << 10)
/* With room for those that are left. */
#define PASS_INPUT_DEVICE ((size_t) 1024 << 10)
/* More than this part of a request's pages left by the kernel without vectors costs more than it saves. */
#define PASS_REST_PART 16

static_assert(PASS_ROWS / SEGMENT_SHORT >= PASS_BLOCKS_MAX, "each block has a chunk");

/* ------------------------------------------------------------------- the host */

static inline bool
is_keyed(const cuda_pipeline *pipeline)
{
	return pipeline->plan.options.sink.groups.nkeys > 0;
}

static size_t
warp_bytes(const cuda_pipeline *pipeline)
{
	return pass_warp_bytes(pipeline->view.page_bytes, pipeline->nlows, pipeline->nhighs);
}

static size_t
probes_bytes(const cuda_pipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	uint32_t	nparts = 0;
	uint32_t	nfills = 0;

	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		nparts += options->probes[p].nparts;
		nfills += options->probes[p].nfills;
	}
	return pipeline->nviews == 0 ? pass_probes_bytes(0, 0, 0) :
		pass_probes_bytes(pipeline->nviews, nparts * (pipeline->nviews / options->nprobes),
						  nfills * (pipeline->nviews / options->nprobes));
}

/* What a block may have of shared memory on this device. */
static size_t
shared_most(const cuda_pipeline *pipeline)
{
	return std::max(PASS_SHARED_FREE, (size_t) pipeline->block_shared);
}

/* How a kernel is cut into blocks. */
struct pass_cut
{
	uint32_t	warps;			/* of a block; 0: there is no room for one */
	uint32_t	entries;		/* with keys: of the block's table of groups */
	size_t		shared;			/* bytes of a block */
};

/* The warps that are on a multiprocessor at a time in blocks of so many. */
static uint32_t
resident_warps(const cuda_pipeline *pipeline, uint32_t warps, size_t shared)
{
	size_t		blocks = (shared_most(pipeline) + PASS_SHARED_BESIDE) / (shared + PASS_SHARED_BESIDE);

	return warps * (uint32_t) std::min(blocks, (size_t) (PASS_WARPS_RESIDENT / warps));
}

/* Blocks of the fewest warps with which most are on a multiprocessor, beside a table of so many entries. */
static pass_cut
cut_keyed(const cuda_pipeline *pipeline, uint32_t entries)
{
	pass_cut	cut = {0, entries, 0};
	uint32_t	most = 0;

	for (uint32_t warps = 1; warps <= PASS_WARPS_RESIDENT; warps++)
	{
		size_t		shared = warps * warp_bytes(pipeline) + probes_bytes(pipeline) + pass_groups_shared(pipeline, entries);
		uint32_t	resident = resident_warps(pipeline, warps, shared);

		if (resident > most)
		{
			cut = {warps, entries, shared};
			most = resident;
		}
	}
	return cut;
}

static pass_cut
cut_pass(const cuda_pipeline *pipeline)
{
	size_t		room = (shared_most(pipeline) - probes_bytes(pipeline)) / warp_bytes(pipeline);
	uint32_t	warps = (uint32_t) std::min(room, (size_t) PASS_WARPS);
	pass_cut	cut = {warps, 0, warps * warp_bytes(pipeline) + probes_bytes(pipeline)};

	if (!is_keyed(pipeline))
		return cut;
	cut = cut_keyed(pipeline, pass_groups_entries(pipeline));
	while (cut.entries > PASS_ENTRIES_MIN && cut.warps < PASS_WARPS)
		cut = cut_keyed(pipeline, cut.entries / 2);
	return cut;
}

bool
pass_suits(const cuda_pipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	return options->source.kind == GH_SOURCE_PAGES && adds_rows(pipeline) &&
		options->sink.groups.naggregates <= PASS_AGGREGATES_MAX && !adds_floats(pipeline) &&
		(!is_keyed(pipeline) || pass_groups_suit(pipeline)) && cut_pass(pipeline).warps > 0;
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

	if (!pipeline->one_pass || request->kind != GH_INPUT_PAGES ||
		pipeline->intake.submitted > GH_PIPELINE_ROWS_MAX / 2)
		return false;
	npages = (uint32_t) gh_request_pages(request->pages, request->npages);
	for (uint32_t p = 0; p < request->npages; p++)
	{
		far += request->pages[p].page != nullptr;
		lines += request->pages[p].lines;
	}
	return far <= npages / 2 && (far == 0 || reads_in_place(pipeline, request)) &&
		(!is_keyed(pipeline) || lines <= PASS_KEYED_LINES);
}

/* Where the input of a batch is, on the host and on the device alike. */
struct pass_arrays
{
	pass_page  *pages;
	input_page *others;
	uint64_t   *bitmaps;
	uint32_t	nothers;
	size_t		list_bytes;		/* of all that */
	/* on the device alone: */
	pass_page  *rest;			/* room for all pages */
	char	   *copies;
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
	arrays.nothers = others;
	arrays.bitmaps = carver->array<uint64_t>(words);
	arrays.list_bytes = carver->used;
	arrays.rest = carver->array<pass_page>(gh_request_pages(request->pages, request->npages));
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
	return input_reserve(pipeline, std::max(arrays.list_bytes, PASS_INPUT),
						 std::max(sizes.used, PASS_INPUT_DEVICE), error);
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

uint32_t
pass_chunks(const cuda_pipeline *pipeline)
{
	return std::min((uint32_t) PASS_BLOCKS_MAX, most_chunks(pipeline->lane->batch_rows));
}

/*
 * As many blocks as are on the device at a time, but no more than have pages, and no more than so many
 * chunks.
 */
static GhStatus
choose_blocks(cuda_pipeline *pipeline, pass_function *kernel, uint32_t npages, const pass_cut *cut,
			  uint32_t chunks, uint32_t *blocks, GhError *error)
{
	int			each = 0;

	if (cut->shared > PASS_SHARED_FREE)
		PIPE_TRY(&pipeline->memory, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
														 (int) shared_most(pipeline)), error);
	PIPE_TRY(&pipeline->memory,
			 cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, (int) cut->warps * 32, cut->shared), error);
	*blocks = std::min((uint32_t) std::max(each, 1) * pipeline->multiprocessors, chunks);
	*blocks = std::max(std::min(*blocks, (npages + cut->warps - 1) / cut->warps), 1u);
	return GH_OK;
}

bool
pass_is_plain_column(const cuda_pipeline *pipeline, const GhPageColumn *column)
{
	uint32_t	bytes = (uint32_t) pipeline->plan.shape.attributes[column->column.attribute - 1].length;

	return column->column.load <= GH_LOAD_FLOAT8 && column->place % bytes == 0 && column->place <= UINT16_MAX &&
		pipeline->places[column->vector].high == PLACE_NONE;
}

static bool
is_sure(const GhAggregate *aggregate)
{
	return !gh_aggregate_is_sum(aggregate) ||
		(aggregate->kind == GH_AGGREGATE_SUM && aggregate->value_class == GH_CLASS_INT);
}

static void
fill_plan(const cuda_pipeline *pipeline, pass_plan *plan)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhGroupsSink *sink = &options->sink.groups;
	const GhPageShape *shape = &pipeline->plan.shape;

	memcpy(plan->places, pipeline->places, sizeof(plan->places));
	for (uint32_t s = 0; s < options->nsteps; s++)
		plan->steps[s] = {gh_step_begin(options, s), options->steps[s].end, options->steps[s].probe};
	plan->naggregates = sink->naggregates;
	plan->nkeys = sink->nkeys;
	plan->nprobes = pipeline->nviews;
	for (uint32_t p = 0; p < pipeline->nviews; p++)
		plan->nparts += options->probes[p % options->nprobes].nparts;
	std::copy(sink->aggregates, sink->aggregates + sink->naggregates, plan->aggregates);
	std::copy(sink->keys, sink->keys + sink->nkeys, plan->keys);
	plan->sure = std::all_of(plan->aggregates, plan->aggregates + plan->naggregates,
							 [](const GhAggregate &aggregate) { return is_sure(&aggregate); });
	plan->prefix = shape->prefix;
	plan->prefix_bytes = shape->prefix_bytes;
	while (plan->ncolumns < std::min(shape->nfixed, (uint32_t) PASS_COLUMNS_MAX) &&
		   pass_is_plain_column(pipeline, &shape->columns[plan->ncolumns]))
	{
		const GhPageColumn *column = &shape->columns[plan->ncolumns];

		plan->columns[plan->ncolumns++] = {(uint16_t) column->place, pipeline->places[column->vector].low,
			column->column.load};
	}
	plan->tids = shape->tids != 0;
	plan->nothers = shape->ncolumns - plan->ncolumns;
}

static pass_job
job_of(const cuda_pipeline *pipeline, const batch_input *input, const pass_arrays *device)
{
	const pipe_lane *lane = pipeline->lane;
	pass_job	job = {};

	fill_plan(pipeline, &job.plan);
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
	job.warp_bytes = (uint32_t) warp_bytes(pipeline);
	job.probes_bytes = (uint32_t) probes_bytes(pipeline);
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

static pass_function *
kernel_of(const cuda_pipeline *pipeline)
{
	if (pipeline->plan.options.program->ninstructions > 0)
		return is_keyed(pipeline) ? pass_kernel<true, true> : pass_kernel<false, true>;
	return is_keyed(pipeline) ? pass_kernel<true, false> : pass_kernel<false, false>;
}

/* The general kernel, over the job's pages; its blocks' chunks are behind those that the lane has. */
static GhStatus
launch_general(cuda_pipeline *pipeline, pass_job *job, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	pass_function *kernel = kernel_of(pipeline);
	pass_cut	cut = cut_pass(pipeline);
	uint32_t	blocks = 1;

	GH_TRY(choose_blocks(pipeline, kernel, job->npages, &cut, pass_chunks(pipeline) - lane->chunks, &blocks,
						 error));
	job->partial += (uint64_t) lane->chunks * job->plan.naggregates;
	job->partial_rows += lane->chunks;
	if (is_keyed(pipeline))
		job->grouped = pass_groups_of(pipeline, cut.entries);
	kernel<<<blocks, cut.warps * 32, cut.shared, pipeline->memory.stream>>>(*job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	lane->chunks += blocks;
	lane->chunk_lines = lane->chunks * CHUNK_ROWS;
	return is_keyed(pipeline) ? pass_groups_tell(pipeline, &job->grouped, error) : GH_OK;
}

/* The kernel without vectors (pass_direct.cuh); it puts to `rest` what it leaves. */
static GhStatus
launch_direct(cuda_pipeline *pipeline, pass_job *job, pass_page *rest, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	if (is_keyed(pipeline))
		job->grouped = pass_groups_of(pipeline, 0);
	GH_TRY(direct_launch(pipeline, job, rest, &lane->chunks, error));
	lane->chunk_lines = lane->chunks * CHUNK_ROWS;
	return is_keyed(pipeline) ? pass_groups_tell(pipeline, &job->grouped, error) : GH_OK;
}

GhStatus
pass_launch(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input, GhError *error)
{
	pass_arrays device;
	pass_job	job;

	GH_TRY(send_pages(pipeline, request, &device, error));
	job = job_of(pipeline, input, &device);
	pipeline->lane->chunks = 0;
	if (is_keyed(pipeline))
		GH_TRY(pass_groups_begin(pipeline, error));
	return device.nothers == 0 && direct_suits(pipeline) ? launch_direct(pipeline, &job, device.rest, error) :
		launch_general(pipeline, &job, error);
}

/*
 * The general kernel does the pages that the other one has left of the batch, and the host waits.  Where they
 * are many it does all of the requests that are to come.
 */
static GhStatus
do_rest(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	uint64_t	rest = lane->host_counters->rest;
	carver		on_device = {};
	pass_arrays device;
	pass_job	job;

	on_device.base = lane->input_block.memory;
	device = pass_carve(pipeline, lane->request, &on_device);
	job = job_of(pipeline, &lane->input, &device);
	job.rest = 1;
	job.pages = device.rest;
	pipeline->no_direct |= rest > job.npages / PASS_REST_PART;
	job.npages = (uint32_t) rest;
	GH_TRY(launch_general(pipeline, &job, error));
	return counters_fetch(pipeline, error);
}

GhStatus
pass_can_be_taken(cuda_pipeline *pipeline, bool *can, GhError *error)
{
	const pipe_counters *counters = pipeline->lane->host_counters;

	*can = true;
	if (pipeline->lane->input.rows == 0)
		return GH_OK;
	if (counters->rest > 0)
		GH_TRY(do_rest(pipeline, error));
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
