/*
 * pipeline_groups.cu
 *		The groups of a pipeline: lines find theirs and are added to its states.
 *
 * First each line looks its group up or makes it (group_find.cuh); where there was no room the table grows
 * and they look once more.  A row that has a line without a group goes back with all its lines.  The others
 * are added as group_reduce.cuh has it, in the order of lines.
 *
 * Where rows are a line each (groups_take_rows) the host does not wait for the look-up: what found its group
 * is added at once, and what did not is seen with the batch's counters (groups_settle).  Of a group's lines
 * in a batch either all find it or none does: room only gets less, and who finds none looks once more whether
 * another took the last of it for the same keys (search_claim).  So they are added in their order all the
 * same.  Where rows become several the host waits, for then a row of which one line lacks a group must not
 * have added another one (groups_take).
 *
 * So it is where lines are added for several sets: each line looks up a group of every set, and when all rows that lack
 * one are known, the lines of the others are added set by set, one after the other, for a group may be one of several
 * sets: then it has a writer at a time.
 */
#include <stdlib.h>
#include <string.h>

#include <cub/device/device_radix_sort.cuh>

#include "cuda/pipeline/pipeline.cuh"
#include "cuda/pipeline/group_find.cuh"
#include "cuda/pipeline/row_program.cuh"
#include "cuda/pipeline/group_reduce.cuh"

/* ----------------------------------------------------------------------- lines */

/* The groups that lines have in the plan's set, where rows become several or there are several sets. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
find_kernel(const pipe_view view, const plan_view plan, const batch_view batch, const groups_view groups,
			const pipe_lines lines, uint32_t *found)
{
	uint64_t	line = ELEMENT;
	scan_counters *counters = &batch.counters->groups;
	bool		lacks = false;

	if (line < lines.count)
	{
		uint32_t	group = group_find(plan, groups, line_at(view, lines, (uint32_t) line), counters);

		found[line] = group;
		lacks = group == GROUP_NONE;
	}
	add_tally(&counters->no_group, lacks);
}

/*
 * The groups of rows that are a line each; again: those that have one have been added, and are not any more.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
find_rows_kernel(const pipe_view view, const batch_view batch, const groups_view groups, const lines_view out,
				 bool again)
{
	uint64_t	row = ELEMENT;
	scan_counters *counters = &batch.counters->groups;
	bool		live = row < batch.rows && out.state[row] == LINE_LIVE;
	uint32_t	group = GROUP_NONE;

	if (live && again && out.group[row] != GROUP_NONE)
	{
		out.state[row] = LINE_NONE;
		live = false;
	}
	if (live)
		group = group_find(view.plan, groups, line_values(view.program, batch.values, row), counters);
	if (row < batch.rows)
		out.group[row] = group;
	add_tally(&counters->no_group, live && group == GROUP_NONE);
	tally_block(&batch.counters->counted, group != GROUP_NONE);
}

/* Has the line found no group in some set? */
static __device__ __forceinline__ bool
lacks_group(const plan_view &plan, const lines_view &lines, uint64_t line)
{
	bool		lacks = false;

	for (uint32_t s = 0; s < plan.nsets; s++)
		lacks |= lines.group[s * lines.stride + line] == GROUP_NONE;
	return lacks;
}

/* The rows of lines that found no group go back. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
lacking_kernel(const pipe_view view, const batch_view batch, const pipe_lines lines, const lines_view out,
			   uint32_t entered)
{
	uint64_t	line = ELEMENT;
	bool		first = false;

	if (line < lines.count && (lines.rows != nullptr || out.state[line] == LINE_LIVE) && lacks_group(view.plan, out, line))
		first = row_turns_back(view, batch, row_of_line(lines, (uint32_t) line), entered);
	add_tally(&batch.counters->no_memory, first);
}

/* Does the line's row not go back?  Where rows become several, or there are several sets. */
static __device__ __forceinline__ bool
line_stays(const batch_view &batch, const pipe_lines &lines, uint64_t line)
{
	return line < lines.count && batch.back[lines.rows[line]] == NO_STEP;
}

/*
 * What is to be added in the plan's set of lines that stay.  first: inputs are not there yet, which are the same in all sets;
 * counts: nor have the lines been counted.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
arguments_kernel(const pipe_view view, const plan_view plan, const batch_view batch, const pipe_lines lines,
				 const lines_view out, bool first, bool counts)
{
	uint64_t	line = ELEMENT;
	bool		live = line_stays(batch, lines, line);

	if (live)
	{
		line_values row = line_at(view, lines, (uint32_t) line);
		uint64_t	takes = 0;

		(void) row_takes(plan, row, &takes);
		out.takes[line] = takes;
		out.state[line] = LINE_LIVE;
		if (first)
			store_inputs(plan, out, row, (uint32_t) line);
	}
	else if (line < lines.count)
	{
		out.takes[line] = 0;
		out.state[line] = LINE_NONE;
		out.group[line] = GROUP_NONE;
	}
	add_tally(&batch.counters->counted, live && counts);
}

/* Of a set whose aggregates take no row: the groups of lines that stay have rows. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
touch_kernel(const batch_view batch, const groups_view groups, const pipe_lines lines, const uint32_t *found,
			 bool counts)
{
	uint64_t	line = ELEMENT;
	bool		live = line_stays(batch, lines, line);

	if (live)
	{
		uint64_t   *rows = &group_at(groups, found[line])->rows;

		/* nobody is told how many; most groups have some */
		if (load_relaxed(rows) == 0)
			atomicMax(reinterpret_cast<unsigned long long *>(rows), 1ull);
	}
	add_tally(&batch.counters->counted, live && counts);
}


/* The lane's lines, with their groups of a set. */
static lines_view
lines_of_set(const cuda_pipeline *pipeline, uint32_t set)
{
	lines_view	lines = pipeline->lane->sink.lines;

	lines.group += set * lines.stride;
	return lines;
}

static GhStatus
counters_renew(cuda_pipeline *pipeline, GhError *error)
{
	/* all in front of it counts for one reduction; that one did not fit is not forgotten */
	return pipe_zero(&pipeline->memory, &pipeline->lane->batch.counters->groups, offsetof(scan_counters, unfit), error);
}

static GhStatus
turn_lacking_back(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	lacking_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, pipeline->lane->batch, *lines, pipeline->lane->sink.lines, pipeline->lane->input.step);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* The look-up of a set's groups is on its way. */
static GhStatus
find_set(cuda_pipeline *pipeline, const pipe_lines *lines, uint32_t set, GhError *error)
{
	find_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, plan_of_set(pipeline->view.plan, set), pipeline->lane->batch, pipeline->groups, *lines,
		 lines_of_set(pipeline, set).group);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Each line's groups, as far as there is room for more of them. */
static GhStatus
find_groups(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	const scan_counters *counters = &pipeline->lane->host_counters->groups;
	bool		grown = true;

	GH_TRY(counters_renew(pipeline, error));
	if (pipeline->view.plan.nkeys == 0)
		return GH_OK;
	while (grown)
	{
		for (uint32_t s = 0; s < pipeline->view.plan.nsets; s++)
			GH_TRY(find_set(pipeline, lines, s, error));
		GH_TRY(counters_fetch(pipeline, error));
		if (counters->no_group == 0)
			return GH_OK;
		grown = false;
		if (counters->groups_full + counters->texts_full > 0)
			GH_TRY(groups_grow(pipeline, counters, &grown, error));
		GH_TRY(counters_renew(pipeline, error));
	}
	return turn_lacking_back(pipeline, lines, error);
}

static cudaError_t
sort_lines(void *space, size_t *space_bytes, const uint32_t *groups, uint32_t *sorted, const uint32_t *numbers,
		   uint32_t *order, uint32_t count, int bits, cudaStream_t stream)
{
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, groups, sorted, numbers, order, (int) count, 0, bits,
											   stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* For any number of bits: the table of groups may grow. */
cudaError_t
groups_sort_bytes(uint32_t lines, size_t *bytes)
{
	return sort_lines(nullptr, bytes, nullptr, nullptr, nullptr, nullptr, lines, 32, nullptr);
}

/* Bits that tell groups apart: GROUP_NONE's are all ones, and no group's are. */
static int
group_bits(const cuda_pipeline *pipeline)
{
	int			bits = 0;

	while (bits < 32 && pipeline->groups.room >> bits != 0)
		bits++;
	return bits;
}

/* Blocks of kernels that go round, of so many elements at most. */
static uint32_t
blocks_of(const cuda_pipeline *pipeline, uint64_t elements)
{
	uint64_t	most = (uint64_t) pipeline->multiprocessors * 8;
	uint64_t	wanted = blocks_for(elements);

	return (uint32_t) (wanted < most ? wanted : most);
}

static reduce_job
job_of(const cuda_pipeline *pipeline, uint32_t lines, uint32_t set)
{
	reduce_job	job;

	job.plan = plan_of_set(pipeline->view.plan, set);
	job.groups = pipeline->groups;
	job.lines = lines_of_set(pipeline, set);
	job.lines.count = lines;
	job.reduce = pipeline->lane->sink.reduce;
	job.rows = lines;
	job.places = lines;
	job.counters = &pipeline->lane->batch.counters->groups;
	return job;
}

/* Enqueues the lines' way into the states of their groups of a set. */
static GhStatus
reduce_lines(cuda_pipeline *pipeline, uint32_t count, uint32_t set, GhError *error)
{
	cudaStream_t stream = pipeline->memory.stream;
	uint64_t	threads = (uint64_t) most_chunks(count) * warps_each(pipeline->view.plan) * 32;
	size_t		sort_bytes = pipeline->lane->sink.reduce.sort_bytes;
	reduce_job	job = job_of(pipeline, count, set);

	PIPE_TRY(&pipeline->memory, sort_lines(job.reduce.sort_space, &sort_bytes, job.lines.group, job.reduce.sorted,
										   job.reduce.numbers, job.reduce.order, count, group_bits(pipeline), stream),
			 error);
	segments_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	short_kernel<<<blocks_of(pipeline, count), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	chunk_kernel<false><<<blocks_of(pipeline, threads), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	long_kernel<<<blocks_of(pipeline, threads), BLOCK_THREADS, 0, stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Without keys: the states of the lines' chunks. */
static GhStatus
reduce_chunks(cuda_pipeline *pipeline, uint32_t count, uint32_t set, GhError *error)
{
	uint64_t	threads = (uint64_t) whole_chunks(count) * warps_each(pipeline->view.plan) * 32;

	chunk_kernel<true><<<blocks_of(pipeline, threads), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(job_of(pipeline, count, set));
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Without keys: the chunks' states go to the group's, by one block; to: counters go there. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
whole_kernel(const reduce_job job, pipe_counters *counters, pipe_counters *to)
{
	uint32_t	each = warps_each(job.plan);
	long_segment segment = {0, 0, whole_chunks(job.rows)};
	bool		fits = true;

	for (uint32_t a = threadIdx.x / 32; a < each; a += BLOCK_THREADS / 32)
		merge_segment(job, segment, a, &fits);
	if (!fits)
		job.counters->unfit = 1;
	if (to == nullptr)
		return;
	if (threadIdx.x == 0)
		counters->counted += counters->lines;
	__syncthreads();
	send_counters(to, counters, true);
}

/*
 * Adds the lines whose rows do not go back to their groups of a set; first: of the first one of which
 * something is added.
 */
static GhStatus
add_set(cuda_pipeline *pipeline, const pipe_lines *lines, uint32_t set, bool first, GhError *error)
{
	arguments_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, plan_of_set(pipeline->view.plan, set), pipeline->lane->batch, *lines,
		 lines_of_set(pipeline, set), first, set == 0);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	if (pipeline->view.plan.nkeys > 0)
	{
		/* of the set before */
		if (!first)
			GH_TRY(counters_renew(pipeline, error));
		return reduce_lines(pipeline, lines->count, set, error);
	}
	GH_TRY(reduce_chunks(pipeline, lines->count, set, error));
	whole_kernel<<<1, BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(job_of(pipeline, lines->count, set), pipeline->lane->batch.counters, nullptr);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* The same where nothing is added but that there are such rows. */
static GhStatus
touch_set(cuda_pipeline *pipeline, const pipe_lines *lines, uint32_t set, GhError *error)
{
	touch_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->lane->batch, pipeline->groups, *lines, lines_of_set(pipeline, set).group, set == 0);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

GhStatus
groups_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	bool		first = true;

	GH_TRY(find_groups(pipeline, lines, error));
	for (uint32_t s = 0; s < pipeline->view.plan.nsets; s++)
	{
		bool		adds = pipeline->view.plan.nkeys == 0 || gh_sink_set_adds(&pipeline->plan.options, s);

		GH_TRY(adds ? add_set(pipeline, lines, s, first, error) : touch_set(pipeline, lines, s, error));
		first &= !adds;
	}
	if (pipeline->view.plan.nkeys == 0)
		return GH_OK;
	/* the host sees it with the batch's last counters */
	return pipe_copy(&pipeline->memory, &pipeline->lane->batch.counters->used, pipeline->groups.used,
					 sizeof(groups_used), error);
}

/* ------------------------------------------------------- rows that are a line each */

GhStatus
groups_prepare_rows(cuda_pipeline *pipeline, GhError *error)
{
	pipeline->lane->chunk_lines = pipeline->lane->batch.rows;
	return pipeline->view.plan.nkeys > 0 ? GH_OK : reduce_chunks(pipeline, pipeline->lane->batch.rows, 0, error);
}

static __global__ void
used_kernel(pipe_counters *counters, const groups_used *used, pipe_counters *to)
{
	if (threadIdx.x == 0)
		counters->used = *used;
	__syncthreads();
	send_counters(to, counters, false);
}

GhStatus
groups_send_counters(cuda_pipeline *pipeline, GhError *error)
{
	used_kernel<<<1, 64, 0, pipeline->memory.stream>>>
		(pipeline->lane->batch.counters, pipeline->groups.used, pipeline->lane->host_counters);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

static GhStatus
add_keyed_rows(cuda_pipeline *pipeline, bool again, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	find_rows_kernel<<<blocks_for(lane->batch.rows), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, lane->batch, pipeline->groups, lane->sink.lines, again);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	GH_TRY(reduce_lines(pipeline, lane->batch.rows, 0, error));
	return groups_send_counters(pipeline, error);
}

GhStatus
groups_take_rows(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	if (pipeline->view.plan.nkeys > 0)
		return is_one_pass(lane->request) ? pass_groups_take(pipeline, error) : add_keyed_rows(pipeline, false, error);
	whole_kernel<<<1, BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(job_of(pipeline, lane->chunk_lines, 0), lane->batch.counters, lane->host_counters);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	lane->counters_zero = true;
	return GH_OK;
}

GhStatus
groups_settle(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	scan_counters counters = lane->host_counters->groups;
	pipe_lines	lines = {lane->batch.values, nullptr, 0, lane->batch.rows};
	bool		grown = false;

	if (counters.no_group == 0)
		return GH_OK;
	if (counters.groups_full + counters.texts_full > 0)
		GH_TRY(groups_grow(pipeline, &counters, &grown, error));
	GH_TRY(counters_renew(pipeline, error));
	if (grown)
		GH_TRY(add_keyed_rows(pipeline, true, error));
	else
	{
		GH_TRY(turn_lacking_back(pipeline, &lines, error));
		GH_TRY(groups_send_counters(pipeline, error));
	}
	PIPE_TRY(&pipeline->memory, cudaEventRecord(lane->done, lane->stream), error);
	return GH_BUSY;
}

void
groups_count(cuda_pipeline *pipeline)
{
	uint32_t	groups = pipeline->lane->host_counters->used.groups;

	if (groups > 0)
		pipeline->ngroups = groups;
}
