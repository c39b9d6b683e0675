/*
 * pipeline_batch.cu
 *		A batch of a request, from its input to what the caller is told.
 *
 *	1. The rows are put to vectors (pipeline_input.cu), and a thread each does the steps (pipeline_run.cu).
 *	2. Sums over the lines that rows become tell where each goes.  Where rows become several, as many rows at a time
 *	   are done once more as have their lines in the batch's memory.
 *	3. The lines go to the sink, unless there is no place for them: then their rows go back, with all their lines.
 *	4. Counts are made of the rows that do not go back, and those that do are listed.
 *
 * Step 1 and the first sums are launched and not waited for (batch_read): they read the input over the bus,
 * which is most of the time, and the host goes on with other batches meanwhile.  So are the lines' way into
 * the sink and the counts (batch_take), but where the host has to see first how much memory the lines need.
 * When all is through the request is told (batch_tell), and the lane is free.
 *
 * The stop flag is looked at before and behind step 1 (pipeline.cu), and before each of the pieces of step 2,
 * as long as what the request has put into the sink can be taken out again.
 */
#include <string.h>

#include "cuda/pipeline/pipeline.cuh"
#include "cuda/table/memory.cuh"

/* ------------------------------------------------------------------- kernels */

/* The rows that are a line each. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
list_kernel(const batch_view batch, uint32_t *rows)
{
	uint64_t	row = ELEMENT;

	if (row < batch.rows && batch.counts[row] != 0)
		rows[batch.sums[row]] = (uint32_t) row;
}

/* How many rows from first on have their lines in so much room; a row's own always have. */
static __global__ void
range_kernel(const batch_view batch, uint32_t first, uint32_t room)
{
	uint64_t	before = batch.sums[first];
	uint32_t	low = first + 1;
	uint32_t	high = batch.rows;

	while (low < high)
	{
		uint32_t	middle = high - (high - low) / 2;

		if (batch.sums[middle] - before <= room)
			low = middle;
		else
			high = middle - 1;
	}
	batch.counters->range_end = low;
	batch.counters->range_lines = batch.sums[low] - before;
}

static __global__ void
total_kernel(const batch_view batch)
{
	batch.counters->lines = batch.sums[batch.rows];
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
refuse_kernel(const pipe_view view, const batch_view batch, const pipe_lines lines, const uint8_t *state, uint32_t entered)
{
	uint64_t	line = ELEMENT;
	bool		first = false;

	if (line < lines.count && (lines.rows != nullptr || state[line] == LINE_LIVE))
		first = row_turns_back(view, batch, row_of_line(lines, (uint32_t) line), entered);
	add_tally(&batch.counters->no_memory, first);
}

/* Where rows become several: behind which steps those were that do not go back. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
tally_kernel(const pipe_view view, const batch_view batch)
{
	uint64_t	row = ELEMENT;
	bool		there = row < batch.rows && batch.back[row] == NO_STEP;

	for (uint32_t s = 0; s < view.nsteps; s++)
		tally_block(&batch.counters->passed[s], there ? batch.came[s * batch.values.stride + row] : 0);
}

/* 1 in counts for each row that is listed. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
listed_kernel(const pipe_view view, const batch_view batch)
{
	uint64_t	row = ELEMENT;

	if (row <= batch.rows)
		batch.counts[row] = row < batch.rows &&
			(batch.back[row] != NO_STEP || (batch.state[row] == STATE_LIVE && view.sink == GH_SINK_PLACES));
}

/* What became of a page's lines is listed by their numbers. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
back_kernel(const batch_view batch, uint64_t first, GhBackRow *list)
{
	uint64_t	row = ELEMENT;

	if (row < batch.rows && batch.counts[row] != 0)
	{
		GhBackRow	back = {(uint32_t) (first + row), 0, (uint16_t) batch.back[row]};

		/* the host knows of which page it is; 1: the page as a whole */
		back.line = batch.state[row] == STATE_PAGE;
		list[batch.sums[row]] = back;
	}
}

/* ---------------------------------------------------------------------- lines */

GhStatus
lines_refuse(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	refuse_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, pipeline->lane->batch, *lines, pipeline->lane->sink.lines.state, pipeline->lane->input.step);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

static __global__ void
bytes_kernel(const uint64_t *offsets, uint32_t count, pipe_counters *counters)
{
	counters->bytes = offsets[count];
}

GhStatus
lines_measure(cuda_pipeline *pipeline, const pipe_lines *lines, lines_kernel kernel, uint64_t *bytes, GhError *error)
{
	const sink_arrays *sink = &pipeline->lane->sink;

	kernel<<<blocks_for((uint64_t) lines->count + 1), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, *lines, sink->bytes);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	GH_TRY(sums_launch(pipeline, sink->bytes, sink->offsets, lines->count, error));
	bytes_kernel<<<1, 1, 0, pipeline->memory.stream>>>(sink->offsets, lines->count, pipeline->lane->batch.counters);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	GH_TRY(counters_fetch(pipeline, error));
	*bytes = pipeline->lane->host_counters->bytes;
	return GH_OK;
}

/* Sums of so many more could not be added up: a group may be one of all sets. */
static bool
are_too_many(const cuda_pipeline *pipeline, uint64_t lines)
{
	return pipeline->counted + pipeline->first->counted + pipeline->lane->host_counters->counted + lines >
		GH_PIPELINE_ROWS_MAX / pipeline->view.plan.nsets;
}

/* Puts lines into the sink; counters->counted grows by those that are in it. */
static GhStatus
take_lines(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	if (lines->count == 0)
		return GH_OK;
	if (are_too_many(pipeline, lines->count))
		return lines_refuse(pipeline, lines, error);
	switch (pipeline->plan.options.sink.kind)
	{
		case GH_SINK_GROUPS:
			return groups_take(pipeline, lines, error);
		case GH_SINK_TABLE:
			return pipe_rows_take(pipeline, lines, error);
		default:
			return pipe_records_take(pipeline, lines, error);
	}
}

/* Before the sink changes for the first time: can it be had again? */
static GhStatus
save_sink(cuda_pipeline *pipeline, bool last, GhError *error)
{
	pipe_undo  *undo = &pipeline->undo;
	GhStatus	status;

	if (undo->saved || !undo->possible || last || pipeline->plan.options.sink.kind != GH_SINK_GROUPS)
		return GH_OK;
	status = groups_save(pipeline, error);
	undo->saved = status == GH_OK;
	/* then it is done to its end */
	undo->possible = undo->saved;
	return lacks_memory(status) ? GH_OK : status;
}

/* Rows that are a line each, to groups; *sent: counters are on their way to the host. */
static GhStatus
add_rows_to_groups(cuda_pipeline *pipeline, bool last, bool *sent, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	pipe_lines	lines = {lane->batch.values, nullptr, 0, lane->batch.rows};

	if (lane->host_counters->lines == 0)
		return GH_OK;
	if (are_too_many(pipeline, lane->host_counters->lines))
		return lines_refuse(pipeline, &lines, error);
	GH_TRY(save_sink(pipeline, last, error));
	*sent = true;
	return groups_take_rows(pipeline, error);
}

static GhStatus
do_single(cuda_pipeline *pipeline, bool last, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	pipe_lines	lines = {lane->batch.values, lane->sink.rows, 0, (uint32_t) lane->host_counters->lines};

	if (lines.count == 0)
		return GH_OK;
	GH_TRY(save_sink(pipeline, last, error));
	list_kernel<<<blocks_for(lane->batch.rows), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(lane->batch, lane->sink.rows);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return take_lines(pipeline, &lines, error);
}

/* Rows that become several, as many at a time as there is room for. */
static GhStatus
do_several(cuda_pipeline *pipeline, uint32_t step, bool last, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	pipe_counters *counters = lane->host_counters;
	uint64_t	all = counters->lines;

	if (all > 0)
		GH_TRY(save_sink(pipeline, last && all <= lane->batch_rows, error));
	for (uint32_t first = 0; first < lane->batch.rows && all > 0;)
	{
		pipe_lines	lines = {lane->sink.copies, lane->sink.rows, 1, (uint32_t) all};
		uint32_t	end = lane->batch.rows;

		if (all > lane->batch_rows)
		{
			if (first > 0 && pipeline->undo.possible && pipe_stopped(&pipeline->memory))
				return GH_STOPPED;
			range_kernel<<<1, 1, 0, pipeline->memory.stream>>>(lane->batch, first, lane->batch_rows);
			PIPE_TRY(&pipeline->memory, launch_status(), error);
			GH_TRY(counters_fetch(pipeline, error));
			end = (uint32_t) counters->range_end;
			lines.count = (uint32_t) counters->range_lines;
		}
		if (lines.count > 0)
		{
			GH_TRY(emit_launch(pipeline, step, first, end, error));
			GH_TRY(take_lines(pipeline, &lines, error));
		}
		first = end;
	}
	return GH_OK;
}

/* --------------------------------------------------------------- what is told */

/* Which line of which page the rows of a list are. */
static void
name_lines(const GhPipelineRequest *request, const batch_input *input, GhBackRow *list, uint64_t count)
{
	uint32_t	page = (uint32_t) input->first;
	uint64_t	first = 0;

	for (uint64_t i = 0; i < count; i++)
	{
		uint64_t	row = list[i].page - input->first;
		bool		whole = list[i].line != 0;

		for (; row - first >= lines_of_page(request, page); page++)
			first += lines_of_page(request, page);
		list[i].page = page;
		list[i].line = (uint16_t) (whole ? 0 : row - first + 1);
	}
}

/* Rows that go back, and of places those that came to the end: so many. */
static GhStatus
list_back(cuda_pipeline *pipeline, GhPipelineRequest *request, const batch_input *input, uint64_t count,
		  GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	GhBackRow  *to = request->back + request->nback;

	listed_kernel<<<blocks_for((uint64_t) lane->batch.rows + 1), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, lane->batch);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	GH_TRY(sums_launch(pipeline, lane->batch.counts, lane->batch.sums, lane->batch.rows, error));
	back_kernel<<<blocks_for(lane->batch.rows), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(lane->batch, input->first, lane->back_rows);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	GH_TRY(pipe_copy(&pipeline->memory, to, lane->back_rows, count * sizeof(GhBackRow), error));
	GH_TRY(pipe_wait(&pipeline->memory, error));
	if (request->kind == GH_INPUT_PAGES)
		name_lines(request, input, to, count);
	request->nback += count;
	return GH_OK;
}

/* How far rows came, and what else was counted, is on its way to the host. */
static GhStatus
count_batch(cuda_pipeline *pipeline, GhError *error)
{
	const batch_view *batch = &pipeline->lane->batch;

	if (pipeline->view.multiplies != 0)
	{
		tally_kernel<<<blocks_for(batch->rows), BLOCK_THREADS, 0, pipeline->memory.stream>>>(pipeline->view, *batch);
		PIPE_TRY(&pipeline->memory, launch_status(), error);
	}
	return counters_send(pipeline, true, error);
}

static GhStatus
tell_batch(cuda_pipeline *pipeline, GhPipelineRequest *request, const batch_input *input, GhError *error)
{
	const pipe_counters *counters = pipeline->lane->host_counters;
	bool		places = pipeline->plan.options.sink.kind == GH_SINK_PLACES;
	uint64_t	listed;

	if (counters->groups.unfit != 0)
	{
		/* it cannot be: what might not fit went back */
		pipeline->memory.failed = true;
		(void) gh_error_set(&pipeline->memory.error, GH_DEVICE_ERROR, "a sum of a pipeline did not fit");
		*error = pipeline->memory.error;
		return GH_DEVICE_ERROR;
	}
	groups_count(pipeline);
	request->seen += counters->seen;
	if (request->kind == GH_INPUT_COLUMNS)
		request->seen += input->rows;
	request->no_memory += counters->no_memory;
	request->counted += places ? counters->lines : counters->counted;
	for (uint32_t s = 0; s < GH_STEPS_MAX; s++)
		request->passed[s] += counters->passed[s];
	/* no row is in two of these: no_memory is of rows that did not go back before, and lines of those that never do */
	listed = counters->backs + counters->no_memory + (places ? counters->lines : 0);
	if (listed == 0)
		return GH_OK;
	return is_one_pass(request) ? pass_list_back(pipeline, request, listed, error) :
		list_back(pipeline, request, input, listed, error);
}

/* ----------------------------------------------------------------------- a batch */

/*
 * More rows at a time where they become few lines, fewer where they become many: counting them shall not take
 * long.
 */
static void
adapt_rows(cuda_pipeline *pipeline)
{
	uint64_t	lines = pipeline->lane->host_counters->lines;

	if (pipeline->view.multiplies == 0 || pipeline->lane->batch.rows < rows_at_once(pipeline) / 2)
		return;
	if (lines > BATCH_LINES && pipeline->at_once > BATCH_ROWS_MIN)
		pipeline->at_once /= 2;
	else if (lines < BATCH_LINES / 4 && pipeline->at_once < BATCH_ROWS_MAX)
		pipeline->at_once *= 2;
}

/* How many lines the rows become, and where they go, unless each row has its place. */
static GhStatus
count_lines_of_rows(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	if (is_one_pass(lane->request))
		return GH_OK;
	if (adds_rows(pipeline))
		return groups_prepare_rows(pipeline, error);
	/* pipeline_run.cu counts those that are a line each */
	if (pipeline->view.sink == GH_SINK_PLACES)
		return GH_OK;
	GH_TRY(sums_launch(pipeline, lane->batch.counts, lane->batch.sums, lane->batch.rows, error));
	if (pipeline->view.multiplies == 0)
		return GH_OK;
	total_kernel<<<1, 1, 0, lane->stream>>>(lane->batch);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

GhStatus
batch_read(cuda_pipeline *pipeline, GhPipelineRequest *request, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	lane->input = input_next(pipeline, request);
	lane->last = input_is_over(request);
	lane->phase = BATCH_READING;
	lane->batch.rows = lane->input.rows;
	memset(lane->host_counters, 0, sizeof(pipe_counters));
	if (lane->input.rows > 0)
	{
		if (!lane->counters_zero)
			GH_TRY(pipe_zero(&pipeline->memory, lane->batch.counters, sizeof(pipe_counters), error));
		lane->counters_zero = false;
		GH_TRY(input_launch(pipeline, request, &lane->input, error));
		PIPE_TRY(&pipeline->memory, cudaEventRecord(lane->read, lane->stream), error);
		if (!is_one_pass(request))
			GH_TRY(run_launch(pipeline, lane->input.step, error));
		GH_TRY(count_lines_of_rows(pipeline, error));
		GH_TRY(counters_send(pipeline, false, error));
	}
	/* pages without rows may have places to be put into */
	else if (lane->input.pages > 0 && request->nspans > 0)
		GH_TRY(input_launch(pipeline, request, &lane->input, error));
	PIPE_TRY(&pipeline->memory, cudaEventRecord(lane->done, lane->stream), error);
	return GH_OK;
}

GhStatus
batch_ready(cuda_pipeline *pipeline, bool wait, GhError *error)
{
	cudaEvent_t event = pipeline->lane->done;
	cudaError_t status = wait ? cudaEventSynchronize(event) : cudaEventQuery(event);

	if (status == cudaErrorNotReady)
	{
		/* not a failure, but remembered as if it were one */
		(void) cudaGetLastError();
		return GH_BUSY;
	}
	if (status != cudaSuccess)
		return pipe_failed(&pipeline->memory, status, "the wait for a batch", error);
	return GH_OK;
}

/* GH_STOPPED: some of the lines may be in the sink. */
GhStatus
batch_take(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	bool		sent = false;

	lane->phase = BATCH_TAKEN;
	if (lane->input.rows > 0)
	{
		adapt_rows(pipeline);
		if (pipeline->view.multiplies != 0)
			GH_TRY(do_several(pipeline, lane->input.step, lane->last, error));
		else if (adds_rows(pipeline))
			GH_TRY(add_rows_to_groups(pipeline, lane->last, &sent, error));
		else if (pipeline->plan.options.sink.kind != GH_SINK_PLACES)
			GH_TRY(do_single(pipeline, lane->last, error));
		if (!sent)
			GH_TRY(count_batch(pipeline, error));
	}
	PIPE_TRY(&pipeline->memory, cudaEventRecord(lane->done, lane->stream), error);
	return GH_OK;
}

GhStatus
batch_tell(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	if (lane->input.rows > 0 && adds_rows(pipeline))
		GH_TRY(groups_settle(pipeline, error));
	return lane->input.rows > 0 ? tell_batch(pipeline, lane->request, &lane->input, error) : GH_OK;
}
