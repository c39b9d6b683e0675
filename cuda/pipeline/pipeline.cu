/*
 * pipeline.cu
 *		Pipelines on a device: handles, requests, results.
 *
 * Requests are done in batches, each in a lane with a stream of its own.  The first part of a batch, which
 * reads it over the bus, is launched and not waited for; so is its way into the sink, behind that.  A poll
 * looks at the oldest batch, does what comes next of it, and launches the next ones, of this request or of
 * those behind it.  So the bus has work between polls, and pipelines of one thread overlap.  The first batch
 * is launched by submit.  Only the oldest batch changes the sink, so that lines come there in the order of
 * requests.
 *
 * Where rows become several there is one batch at a time: how many rows are done at a time then depends on
 * the batch before, and where batches end is to depend on the requests alone.
 *
 * All memory that a request needs beside the sink's is taken before its first batch; so what ends it later is
 * the stop flag, or the device.  A lane for which there is none is left alone while another one is in use.
 * When a request is stopped the sink is what it was before: rows and records that were added are cut off, and
 * groups are put back as they were saved (pipeline_group_room.cu).  However a request ends, nothing that was
 * launched for it is under way any more, for its memory is the caller's again.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/pipeline/pipeline_spans.cuh"

static cuda_pipeline *
pipeline_of(GhPipeline *handle)
{
	return reinterpret_cast<cuda_pipeline *>(handle);
}

/* ------------------------------------------------------------------ requests */

/* What the sink is now, before a request. */
static void
undo_begin(cuda_pipeline *pipeline)
{
	pipe_undo  *undo = &pipeline->undo;
	const pipe_records *records = &pipeline->records;

	undo->possible = true;
	undo->saved = false;
	undo->records = records->records;
	undo->segment = records->filling;
	undo->segment_used = records->count > 0 ? records->segments[records->filling].used : 0;
	if (pipeline->rows == nullptr)
		return;
	undo->rows = pipeline->rows->count;
	undo->text_bytes = pipeline->rows->text_bytes;
}

static GhStatus
undo(cuda_pipeline *pipeline, GhError *error)
{
	const pipe_undo *before = &pipeline->undo;

	if (pipeline->plan.options.sink.kind == GH_SINK_ROWS)
		pipe_records_cut(pipeline, before->segment, before->segment_used, before->records);
	if (pipeline->rows != nullptr)
	{
		pipeline->rows->count = before->rows;
		pipeline->rows->text_bytes = before->text_bytes;
	}
	return before->saved ? groups_restore(pipeline, error) : GH_OK;
}

/* ---------------------------------------------------------------------- lanes */

static void
use_lane(cuda_pipeline *pipeline, pipe_lane *lane)
{
	pipeline->lane = lane;
	pipeline->memory.stream = lane->stream;
}

/* The oldest lane that is in use has done its batch, or gives it up. */
static void
free_oldest(cuda_pipeline *pipeline)
{
	pipeline->flight[0]->request = nullptr;
	pipeline->flying--;
	memmove(pipeline->flight, pipeline->flight + 1, pipeline->flying * sizeof(pipe_lane *));
}

/* Nothing of the oldest request is under way from here on. */
static void
ground_request(cuda_pipeline *pipeline)
{
	while (pipeline->flying > 0 && pipeline->flight[0]->request == pipeline->first)
	{
		if (cudaStreamSynchronize(pipeline->flight[0]->stream) != cudaSuccess)
			(void) cudaGetLastError();
		free_oldest(pipeline);
	}
}

/* Where the next batch of a request is to be done; NULL: it has to wait. */
static pipe_lane *
choose_lane(cuda_pipeline *pipeline, const GhPipelineRequest *request)
{
	pipe_lane  *chosen = nullptr;

	/* what has no match is known when all rows before have been there */
	if (pipeline->flying > 0 && (pipeline->view.multiplies != 0 || request->kind == GH_INPUT_UNMATCHED))
		return nullptr;
	for (pipe_lane &lane : pipeline->lanes)
	{
		if (lane.request != nullptr)
			continue;
		/* the one that was used last has memory */
		if (chosen == nullptr || lane.prepared > chosen->prepared)
			chosen = &lane;
	}
	return chosen;
}

/* Memory for all of a request's batches in the lane but their place in the sink. */
static GhStatus
prepare_lane(cuda_pipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	uint64_t	rows = request->count;

	if (pipeline->lane->prepared == request->engine_state[PIPE_NUMBER])
		return GH_OK;
	if (request->kind == GH_INPUT_PAGES)
		rows = 0;
	for (uint32_t p = 0; request->kind == GH_INPUT_PAGES && p < request->npages; p++)
		rows += request->pages[p].lines;
	if (is_one_pass(request))
		GH_TRY(pass_begin(pipeline, request, error));
	else
	{
		GH_TRY(batch_reserve(pipeline, rows, error));
		GH_TRY(input_begin(pipeline, request, error));
	}
	pipeline->lane->prepared = request->engine_state[PIPE_NUMBER];
	return GH_OK;
}

/* The tables that are probed may not be what they were for the request before. */
static GhStatus
begin_request(cuda_pipeline *pipeline, GhPipelineRequest *request, GhError *error)
{
	if ((request->engine_state[PIPE_BEGUN] & LAUNCHED) != 0)
		return GH_OK;
	GH_TRY(pipe_probes_send(pipeline, error));
	request->engine_state[PIPE_BEGUN] |= LAUNCHED;
	return GH_OK;
}

/* Launches the next batch in the pipeline's lane. */
static GhStatus
launch_batch(cuda_pipeline *pipeline, GhPipelineRequest *request, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;

	PIPE_TRY(&pipeline->memory, cudaSetDevice(pipeline->memory.device), error);
	GH_TRY(prepare_lane(pipeline, request, error));
	GH_TRY(begin_request(pipeline, request, error));
	/* side by side they would be read until the same time, and then go into the sink with the bus idle */
	if (pipeline->flying > 0 && !is_one_pass(request))
		PIPE_TRY(&pipeline->memory,
				 cudaStreamWaitEvent(lane->stream, pipeline->flight[pipeline->flying - 1]->read, 0), error);
	lane->request = request;
	pipeline->flight[pipeline->flying++] = lane;
	GH_TRY(batch_read(pipeline, request, error));
	if (lane->last)
		pipeline->launching = reinterpret_cast<GhPipelineRequest *>(request->engine_state[PIPE_NEXT]);
	return GH_OK;
}

/* ------------------------------------------------------------------- the queue */

/* The oldest request is through. */
static void
end_request(cuda_pipeline *pipeline, GhStatus status, const GhError *error)
{
	GhPipelineRequest *request = pipeline->first;

	/* after an error: from here on nothing may read the caller's memory */
	ground_request(pipeline);
	if (status != GH_OK)
	{
		gh_pipeline_request_clear(request);
		request->error = status == GH_DEVICE_ERROR ? pipeline->memory.error : *error;
	}
	pipeline->counted += request->counted;
	pipeline->first = reinterpret_cast<GhPipelineRequest *>(request->engine_state[PIPE_NEXT]);
	if (pipeline->launching == request)
		pipeline->launching = pipeline->first;
	request->status = status;
	request->pipeline = nullptr;
}

/* Is the oldest request to end because of the flag? */
static bool
is_stopped(const cuda_pipeline *pipeline)
{
	return pipe_stopped(&pipeline->memory) &&
		((pipeline->first->engine_state[PIPE_BEGUN] & TAKEN) == 0 || pipeline->undo.possible);
}

/*
 * Launches batches while there is room for them, so that the device does not wait for their polls.  The stop
 * flag is left to these; an error ends the request if it is the oldest, and else waits for its turn.
 */
static void
launch_ahead(cuda_pipeline *pipeline)
{
	while (pipeline->launching != nullptr && !pipeline->memory.failed)
	{
		GhPipelineRequest *request = pipeline->launching;
		pipe_lane  *lane = choose_lane(pipeline, request);
		GhError		error = {};
		GhStatus	status;

		if (lane == nullptr || (request == pipeline->first ? is_stopped(pipeline) : pipe_stopped(&pipeline->memory)))
			return;
		use_lane(pipeline, lane);
		status = launch_batch(pipeline, request, &error);
		if (status == GH_OK)
			continue;
		/* of the oldest one a batch may be under way, in a lane that has memory and will be free */
		if (request != pipeline->first || (lacks_memory(status) && pipeline->flying > 0))
			return;
		end_request(pipeline, status, &error);
	}
}

static GhStatus
stop_request(cuda_pipeline *pipeline, GhError *error)
{
	ground_request(pipeline);
	if ((pipeline->first->engine_state[PIPE_BEGUN] & TAKEN) != 0)
		GH_TRY(undo(pipeline, error));
	return gh_error_set(error, GH_STOPPED, "the request was stopped");
}

/*
 * There was no room to list the rows that go back, or for groups: all that is under way, of which nothing is
 * in the sink, is done once more, and from here on with a place for each row.
 */
static void
do_without_pass(cuda_pipeline *pipeline)
{
	pipeline->one_pass = false;
	for (uint32_t i = pipeline->flying; i > 0; i--)
	{
		pipe_lane  *lane = pipeline->flight[i - 1];

		if (cudaStreamSynchronize(lane->stream) != cudaSuccess)
			(void) cudaGetLastError();
		input_step_back(lane->request, &lane->input);
		lane->request->engine_state[PIPE_BEGUN] &= ~(uint64_t) ONE_PASS;
		lane->request = nullptr;
		lane->counters_zero = false;
		lane->prepared = 0;
	}
	pipeline->flying = 0;
	pipeline->launching = pipeline->first;
	for (GhPipelineRequest *request = pipeline->first; request != nullptr;
		 request = reinterpret_cast<GhPipelineRequest *>(request->engine_state[PIPE_NEXT]))
		request->engine_state[PIPE_BEGUN] &= ~(uint64_t) ONE_PASS;
}

/* What comes next of the oldest batch, whose phase is over; GH_BUSY: there is more of the request. */
static GhStatus
advance_batch(cuda_pipeline *pipeline, GhError *error)
{
	pipe_lane  *lane = pipeline->lane;
	bool		last = lane->last;
	bool		can_be_taken;
	GhStatus	status;

	if (lane->phase == BATCH_TAKEN)
	{
		GH_TRY(batch_tell(pipeline, error));
		free_oldest(pipeline);
		return last ? GH_OK : GH_BUSY;
	}
	if (is_stopped(pipeline))
		return stop_request(pipeline, error);
	if (is_one_pass(pipeline->first))
	{
		GH_TRY(pass_can_be_taken(pipeline, &can_be_taken, error));
		if (!can_be_taken)
		{
			do_without_pass(pipeline);
			return GH_BUSY;
		}
	}
	if ((pipeline->first->engine_state[PIPE_BEGUN] & TAKEN) == 0)
		undo_begin(pipeline);
	pipeline->first->engine_state[PIPE_BEGUN] |= TAKEN;
	status = batch_take(pipeline, error);
	if (status == GH_STOPPED)
		return stop_request(pipeline, error);
	return status == GH_OK ? GH_BUSY : status;
}

/* Goes on with the oldest request, if the device is through with what was launched; wait: waits for it. */
static GhStatus
do_slice(cuda_pipeline *pipeline, bool wait, GhError *error)
{
	PIPE_TRY(&pipeline->memory, cudaSetDevice(pipeline->memory.device), error);
	/* none of it is under way if the flag was set, or there was no memory */
	if (pipeline->flying == 0)
		return is_stopped(pipeline) ? stop_request(pipeline, error) : GH_BUSY;
	use_lane(pipeline, pipeline->flight[0]);
	GH_TRY(batch_ready(pipeline, wait, error));
	return advance_batch(pipeline, error);
}

static void
advance_queue(cuda_pipeline *pipeline, bool wait)
{
	GhError		error = {};
	GhStatus	status = GH_DEVICE_ERROR;

	if (!pipeline->memory.failed)
		status = do_slice(pipeline, wait, &error);
	if (status != GH_BUSY)
		end_request(pipeline, status, &error);
	launch_ahead(pipeline);
}

static GhStatus
cuda_pipeline_submit(GhPipeline *handle, GhPipelineRequest *request)
{
	cuda_pipeline *pipeline = pipeline_of(handle);
	const GhPipelineSource *source = &pipeline->plan.options.source;
	uint64_t	rows;

	if (source->kind == GH_SOURCE_GROUPS)
		pipeline->intake.groups = reinterpret_cast<const cuda_pipeline *>(source->groups)->ngroups;
	if (pipeline->memory.failed)
	{
		gh_pipeline_request_clear(request);
		request->error = pipeline->memory.error;
		request->pipeline = nullptr;
		return request->status = GH_DEVICE_ERROR;
	}
	if (gh_pipeline_request_take(handle, request, &pipeline->intake, &rows) != GH_BUSY)
		return request->status;
	request->engine_state[PIPE_NUMBER] = ++pipeline->requests;
	if (pass_takes(pipeline, request))
		request->engine_state[PIPE_BEGUN] = ONE_PASS;
	if (pipeline->first == nullptr)
		pipeline->first = request;
	else
		pipeline->tail->engine_state[PIPE_NEXT] = reinterpret_cast<uintptr_t>(request);
	pipeline->tail = request;
	if (pipeline->launching == nullptr)
		pipeline->launching = request;
	launch_ahead(pipeline);
	/* also if it has ended: that is the poll's to say */
	return GH_BUSY;
}

static GhStatus
cuda_pipeline_poll(GhPipelineRequest *request)
{
	if (request->status == GH_BUSY && request->pipeline != nullptr)
		advance_queue(pipeline_of(request->pipeline), false);
	return request->status;
}

static GhStatus
cuda_pipeline_wait(GhPipelineRequest *request)
{
	while (request->status == GH_BUSY && request->pipeline != nullptr)
		advance_queue(pipeline_of(request->pipeline), true);
	return request->status;
}

/* Does all requests, with the device current then. */
static GhStatus
drain(cuda_pipeline *pipeline, GhError *error)
{
	while (pipeline->first != nullptr)
		advance_queue(pipeline, true);
	if (!pipeline->memory.failed)
		PIPE_TRY(&pipeline->memory, cudaSetDevice(pipeline->memory.device), error);
	if (!pipeline->memory.failed)
		return GH_OK;
	*error = pipeline->memory.error;
	return GH_DEVICE_ERROR;
}

/* ------------------------------------------------------------------- results */

static GhStatus
cuda_pipeline_results(GhPipeline *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
					  GhError *error)
{
	cuda_pipeline *pipeline = pipeline_of(handle);
	uint32_t	kind = pipeline->plan.options.sink.kind;
	char	   *to = static_cast<char *>(buffer);

	*bytes = 0;
	if (kind != GH_SINK_GROUPS && kind != GH_SINK_ROWS)
		return gh_error_set(error, GH_INVALID, "a pipeline's sink of kind %u has no records", kind);
	GH_TRY(drain(pipeline, error));
	if (pipe_stopped(&pipeline->memory))
		return gh_error_set(error, GH_STOPPED, "the results of a pipeline were stopped");
	if (kind == GH_SINK_ROWS)
		return pipe_records_fetch(pipeline, cursor, capacity, to, bytes, error);
	return groups_fetch(pipeline, cursor, capacity, to, bytes, error);
}

static GhStatus
cuda_pipeline_clear(GhPipeline *handle, GhError *error)
{
	cuda_pipeline *pipeline = pipeline_of(handle);
	uint32_t	kind = pipeline->plan.options.sink.kind;

	GH_TRY(drain(pipeline, error));
	if (kind == GH_SINK_TABLE)
		return gh_error_set(error, GH_INVALID, "the table of a pipeline is not emptied");
	if (kind == GH_SINK_ROWS)
		pipe_records_cut(pipeline, 0, 0, 0);
	return kind == GH_SINK_GROUPS ? groups_empty(pipeline, error) : GH_OK;
}

static GhStatus
cuda_pipeline_make_table(GhPipeline *handle, GhMadeTable *made, GhError *error)
{
	cuda_pipeline *pipeline = pipeline_of(handle);
	GhStatus	status;

	*made = {};
	if (pipeline->plan.options.sink.kind != GH_SINK_TABLE || pipeline->intake.made)
		return gh_error_set(error, GH_INVALID, "a pipeline %s", pipeline->intake.made ? "made its table before" :
							"makes no table of its own");
	GH_TRY(drain(pipeline, error));
	/* else it might lack the rows of requests that were stopped just now */
	if (pipe_stopped(&pipeline->memory))
		return gh_error_set(error, GH_STOPPED, "the making of a pipeline's table was stopped");
	status = pipe_make_table(pipeline, made, error);
	/* a stop leaves the rows as they were */
	pipeline->intake.made = status != GH_STOPPED;
	return status;
}

static GhStatus
cuda_pipeline_stats(GhPipeline *handle, GhPipelineStats *stats, GhError *error)
{
	cuda_pipeline *pipeline = pipeline_of(handle);
	const pipe_memory *memory = &pipeline->memory;

	memset(stats, 0, sizeof(*stats));
	GH_TRY(drain(pipeline, error));
	*stats = pipeline->made_stats;
	stats->counted = pipeline->counted;
	stats->work_bytes = memory->work_bytes;
	if (pipeline->made_stats.bytes > 0)
		return GH_OK;
	stats->entries = pipeline->rows != nullptr ? pipeline->rows->count :
		pipeline->ngroups + pipeline->records.records;
	stats->bytes = memory->bytes;
	stats->bytes_peak = memory->bytes_peak;
	return GH_OK;
}

/* ---------------------------------------------------------- making and ending */

/* After a device error the calls fail, which is as it should be. */
static void
cuda_pipeline_destroy(GhPipeline *handle)
{
	cuda_pipeline *pipeline = pipeline_of(handle);
	pipe_memory *memory;

	if (pipeline == nullptr)
		return;
	memory = &pipeline->memory;
	(void) cudaSetDevice(memory->device);
	for (pipe_lane &lane : pipeline->lanes)
		if (lane.stream != nullptr)
			(void) cudaStreamSynchronize(lane.stream);
	pipe_rows_drop(memory, pipeline->rows);
	pipe_records_drop(pipeline);
	groups_drop(pipeline);
	spare_leave(memory, false, &pipeline->plan_block);
	spare_leave(memory, false, &pipeline->probes_block);
	for (pipe_lane &lane : pipeline->lanes)
	{
		spare_leave(memory, false, &lane.groups_block);
		kit_leave(memory, &lane);
	}
	(void) cudaGetLastError();
	free(pipeline->probes);
	gh_pipeline_plan_drop(&pipeline->plan);
	free(pipeline);
}

static bool
is_on(const GhTable *table, int device)
{
	return table == nullptr || reinterpret_cast<const cuda_table *>(table)->options.device == device;
}

/* What the plan's check does not know: marks, devices, and what this engine does not do. */
static GhStatus
check_options(const GhPipelineOptions *options, GhError *error)
{
	const GhPipelineSource *source = &options->source;

	if (options->shared_sink != 0)
		return gh_error_set(error, GH_UNSUPPORTED, "processes do not share a sink on a device");
	if (options->sink.kind == GH_SINK_GROUPS && options->sink.groups.in_order != 0)
		return gh_error_set(error, GH_UNSUPPORTED, "rows are not added in their order on a device");
	if (source->kind == GH_SOURCE_GROUPS && source->groups->plan->options.device != options->device)
		return gh_error_set(error, GH_INVALID, "the source of a pipeline is on another device");
	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		const GhProbe *probe = &options->probes[p];
		const cuda_table *table = reinterpret_cast<const cuda_table *>(probe->table);

		if (table->options.device != options->device)
			return gh_error_set(error, GH_INVALID, "the table of probe %u of a pipeline is on another device", p);
		if (!is_on(probe->changed, options->device) || !is_on(probe->instead, options->device))
			return gh_error_set(error, GH_INVALID, "rows of other keys of probe %u of a pipeline are on another device", p);
		if (probe->marks != nullptr && probe->marks->table != table)
			return gh_error_set(error, GH_INVALID, "probe %u of a pipeline has marks of another table", p);
	}
	return GH_OK;
}

static GhStatus
create_sink(cuda_pipeline *pipeline, GhError *error)
{
	switch (pipeline->plan.options.sink.kind)
	{
		case GH_SINK_GROUPS:
			return groups_init(pipeline, error);
		case GH_SINK_ROWS:
			return pipe_records_init(pipeline, error);
		default:
			return GH_OK;
	}
}

static GhStatus
create_contents(cuda_pipeline *pipeline, GhError *error)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	pipe_memory *memory = &pipeline->memory;
	uint32_t	nkeys;

	for (pipe_lane &lane : pipeline->lanes)
		GH_TRY(kit_take(memory, &lane, error));
	use_lane(pipeline, &pipeline->lanes[0]);
	pipeline->multiprocessors = device_attribute(memory->device, cudaDevAttrMultiProcessorCount);
	if (pipeline->multiprocessors == 0)
		pipeline->multiprocessors = 1;
	pipeline->block_shared = device_attribute(memory->device, cudaDevAttrMaxSharedMemoryPerBlockOptin);
	pipeline->direct = device_attribute(memory->device, cudaDevAttrCanUseHostPointerForRegisteredMem) != 0;
	pipeline->record_plan.keys = gh_pipeline_keys(options, &nkeys);
	pipeline->record_plan.nkeys = nkeys;
	pipeline->record_plan.group_bytes = pipeline->plan.group_bytes;
	if (options->sink.kind == GH_SINK_GROUPS)
		pipeline->record_plan.naggregates = options->sink.groups.naggregates;
	if (options->sink.kind == GH_SINK_TABLE)
		GH_TRY(pipe_rows_create(pipeline, error));
	GH_TRY(pipe_plan_upload(pipeline, error));
	pipeline->at_once = pipeline->view.multiplies != 0 ? BATCH_ROWS_SEVERAL : BATCH_ROWS_MAX;
	pipeline->one_pass = pass_suits(pipeline);
	GH_TRY(create_sink(pipeline, error));
	return batch_reserve(pipeline, 0, error);
}

static GhStatus
cuda_pipeline_create(const GhHost *host, const GhPipelineOptions *options, GhPipeline **handle, GhError *error)
{
	cuda_pipeline *pipeline = static_cast<cuda_pipeline *>(calloc(1, sizeof(cuda_pipeline)));
	GhStatus	status;

	*handle = nullptr;
	if (pipeline == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a pipeline's handle");
	pipeline->base.engine = &cuda_pipelines;
	pipeline->base.plan = &pipeline->plan;
	if (host != nullptr)
		pipeline->memory.host = *host;
	status = gh_pipeline_plan_init(&pipeline->plan, &cuda_pipelines, cuda_table_describe, options, error);
	if (status == GH_OK)
	{
		pipeline->memory.device = pipeline->plan.options.device;
		pipeline->memory.limit = pipeline->plan.options.memory_limit;
		status = device_open(pipeline->plan.options.device, error);
		if (status == GH_OK)
			status = check_options(&pipeline->plan.options, error);
	}
	if (status != GH_OK)
	{
		gh_pipeline_plan_drop(&pipeline->plan);
		free(pipeline);
		return status;
	}
	status = create_contents(pipeline, error);
	if (status != GH_OK)
	{
		cuda_pipeline_destroy(&pipeline->base);
		return status;
	}
	*handle = &pipeline->base;
	return GH_OK;
}

const GhPipelineEngine cuda_pipelines = {
	cuda_pipeline_create,
	cuda_pipeline_destroy,
	cuda_pipeline_submit,
	cuda_pipeline_poll,
	cuda_pipeline_wait,
	cuda_pipeline_results,
	cuda_pipeline_clear,
	cuda_pipeline_make_table,
	cuda_pipeline_stats,
	nullptr,					/* times */
	cuda_span_create,
	cuda_span_destroy,
	true,						/* takes_runs */
	false,						/* takes_packed */
	cuda_marks_create,
	cuda_marks_destroy,
	kits_give_back,
	false,						/* shares_sinks, and so none of what follows */
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	false,						/* compares_texts */
	true						/* adds_sets */
};
