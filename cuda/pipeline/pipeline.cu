/*
 * pipeline.cu
 *		Pipelines on a device: handles, requests, results.
 *
 * Requests are done one after the other, batch by batch, in the pipeline's one stream.  The first part of a batch is
 * launched and not waited for; a poll that finds it done does the rest, and launches the next batch, of this request or
 * of the one behind it, before it returns.  So the device has work between polls, and pipelines of one thread overlap.
 * The first batch is launched by submit where no other request is in front.
 *
 * All memory that a request needs beside the sink's is taken before its first batch; so what ends it later is the stop
 * flag, or the device.  When it is stopped the sink is what it was before: rows and records that were added are cut
 * off, and groups are put back as they were saved (pipeline_groups.cu).  However a request ends, nothing that was
 * launched for it reads its input any more, for that is the caller's again.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/pipeline/pipeline.cuh"

/* GhPipelineRequest.engine_state */
enum pipe_request_state
{
	PIPE_NEXT,					/* the request behind it in the queue */
	PIPE_AT,					/* the first page, or row, that has not been launched */
	PIPE_BEGUN					/* 1: it has its memory */
};

static cuda_pipeline *
pipeline_of(GhPipeline *handle)
{
	return reinterpret_cast<cuda_pipeline *>(handle);
}

/* ------------------------------------------------------------------ requests */

/* Groups may have become more since the pipeline was made. */
static GhStatus
check_groups_range(const cuda_pipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	const GhPipelineSource *source = &pipeline->plan.options.source;
	uint64_t	count;

	if (request->kind != GH_INPUT_SOURCE || source->kind != GH_SOURCE_GROUPS)
		return GH_OK;
	count = reinterpret_cast<const cuda_pipeline *>(source->groups)->ngroups;
	if (request->first > count || request->count > count - request->first)
		return gh_error_set(error, GH_INVALID, "a request is for %llu groups from group %llu on, of %llu",
							(unsigned long long) request->count, (unsigned long long) request->first,
							(unsigned long long) count);
	return GH_OK;
}

static void
clear_counts(GhPipelineRequest *request)
{
	request->nback = request->seen = request->counted = request->no_memory = 0;
	memset(request->passed, 0, sizeof(request->passed));
}

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

/* Memory for all of a request but its place in the sink. */
static GhStatus
begin_request(cuda_pipeline *pipeline, GhPipelineRequest *request, GhError *error)
{
	uint64_t	rows = request->count;

	if (request->kind == GH_INPUT_PAGES)
		rows = 0;
	for (uint32_t p = 0; request->kind == GH_INPUT_PAGES && p < request->npages; p++)
		rows += request->pages[p].lines;
	GH_TRY(batch_reserve(pipeline, rows, error));
	GH_TRY(input_begin(pipeline, request, error));
	GH_TRY(pipe_probes_send(pipeline, error));
	undo_begin(pipeline);
	request->engine_state[PIPE_BEGUN] = 1;
	return GH_OK;
}

/* Launches a batch of the oldest request; GH_BUSY: it is under way. */
static GhStatus
launch_batch(cuda_pipeline *pipeline, GhPipelineRequest *request, GhError *error)
{
	PIPE_TRY(&pipeline->memory, cudaSetDevice(pipeline->memory.device), error);
	if (request->engine_state[PIPE_BEGUN] == 0)
		GH_TRY(begin_request(pipeline, request, error));
	GH_TRY(batch_launch(pipeline, request, &request->engine_state[PIPE_AT], error));
	return GH_BUSY;
}

/* Is the oldest request to end because of the flag? */
static bool
is_stopped(const cuda_pipeline *pipeline, const GhPipelineRequest *request)
{
	return pipe_stopped(&pipeline->memory) &&
		(request->engine_state[PIPE_BEGUN] == 0 || pipeline->undo.possible);
}

/* What was launched for it is through. */
static GhStatus
stop_request(cuda_pipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	pipeline->launched = false;
	if (request->engine_state[PIPE_BEGUN] != 0)
		GH_TRY(undo(pipeline, error));
	return gh_error_set(error, GH_STOPPED, "the request was stopped");
}

/*
 * Finishes the batch of the oldest request that is under way, if the device is through with it, and launches the next
 * one; wait: waits for the device.  GH_BUSY: there is more of the request.
 */
static GhStatus
do_slice(cuda_pipeline *pipeline, GhPipelineRequest *request, bool wait, GhError *error)
{
	GhStatus	status;

	PIPE_TRY(&pipeline->memory, cudaSetDevice(pipeline->memory.device), error);
	if (pipeline->launched)
		GH_TRY(batch_ready(pipeline, wait, error));
	if (is_stopped(pipeline, request))
		return stop_request(pipeline, request, error);
	if (!pipeline->launched)
		return launch_batch(pipeline, request, error);
	status = batch_finish(pipeline, request, error);
	if (status == GH_STOPPED)
		return stop_request(pipeline, request, error);
	/* a stopped one ends with the next slice */
	if (status == GH_BUSY && !is_stopped(pipeline, request))
		status = launch_batch(pipeline, request, error);
	return status;
}

/* The oldest request is through. */
static void
end_request(cuda_pipeline *pipeline, GhStatus status, const GhError *error)
{
	GhPipelineRequest *request = pipeline->first;

	/* after an error: from here on nothing may read the caller's memory */
	if (pipeline->launched)
	{
		(void) cudaStreamSynchronize(pipeline->memory.stream);
		(void) cudaGetLastError();
	}
	pipeline->launched = false;
	if (status != GH_OK)
	{
		clear_counts(request);
		request->error = status == GH_DEVICE_ERROR ? pipeline->memory.error : *error;
	}
	pipeline->counted += request->counted;
	pipeline->first = reinterpret_cast<GhPipelineRequest *>(request->engine_state[PIPE_NEXT]);
	request->status = status;
	request->pipeline = nullptr;
}

/*
 * Launches the first batch of the oldest request, so that the device does not wait for its poll.  The stop flag is left
 * to that; an error ends the request, and then it is the turn of the one behind it.
 */
static void
launch_ahead(cuda_pipeline *pipeline)
{
	while (pipeline->first != nullptr && !pipeline->launched && !pipeline->memory.failed &&
		   !pipe_stopped(&pipeline->memory))
	{
		GhError		error = {};
		GhStatus	status = launch_batch(pipeline, pipeline->first, &error);

		if (status != GH_BUSY)
			end_request(pipeline, status, &error);
	}
}

static void
advance_queue(cuda_pipeline *pipeline, bool wait)
{
	GhError		error = {};
	GhStatus	status = GH_DEVICE_ERROR;

	if (!pipeline->memory.failed)
		status = do_slice(pipeline, pipeline->first, wait, &error);
	if (status == GH_BUSY)
		return;
	end_request(pipeline, status, &error);
	launch_ahead(pipeline);
}

static GhStatus
cuda_pipeline_submit(GhPipeline *handle, GhPipelineRequest *request)
{
	cuda_pipeline *pipeline = pipeline_of(handle);
	uint64_t	counted;
	uint64_t	rows;
	GhStatus	status;

	clear_counts(request);
	memset(&request->error, 0, sizeof(request->error));
	memset(request->engine_state, 0, sizeof(request->engine_state));
	request->pipeline = nullptr;
	if (pipeline->memory.failed)
	{
		request->error = pipeline->memory.error;
		return request->status = GH_DEVICE_ERROR;
	}
	status = gh_pipeline_request_check(&pipeline->plan, request, &rows, &request->error);
	if (status == GH_OK)
		status = check_groups_range(pipeline, request, &request->error);
	if (status == GH_OK && pipeline->made)
		status = gh_error_set(&request->error, GH_INVALID, "a pipeline whose table was made takes no more rows");
	/* nothing is kept of rows whose places are listed */
	counted = pipeline->plan.options.sink.kind == GH_SINK_PLACES ? 0 : rows;
	if (status == GH_OK && counted > GH_SCAN_ROWS_MAX - pipeline->submitted)
		status = gh_error_set(&request->error, GH_TOO_MANY, "a pipeline of more than 2^40 rows");
	if (status != GH_OK)
		return request->status = status;
	request->status = GH_BUSY;
	request->pipeline = handle;
	pipeline->submitted += counted;
	if (pipeline->first == nullptr)
		pipeline->first = request;
	else
		pipeline->tail->engine_state[PIPE_NEXT] = reinterpret_cast<uintptr_t>(request);
	pipeline->tail = request;
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
	if (pipeline->plan.options.sink.kind != GH_SINK_TABLE || pipeline->made)
		return gh_error_set(error, GH_INVALID, "a pipeline %s", pipeline->made ? "made its table before" :
							"makes no table of its own");
	GH_TRY(drain(pipeline, error));
	/* else it might lack the rows of requests that were stopped just now */
	if (pipe_stopped(&pipeline->memory))
		return gh_error_set(error, GH_STOPPED, "the making of a pipeline's table was stopped");
	status = pipe_make_table(pipeline, made, error);
	/* a stop leaves the rows as they were */
	pipeline->made = status != GH_STOPPED;
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
	if (memory->stream != nullptr)
		(void) cudaStreamSynchronize(memory->stream);
	pipe_rows_drop(memory, pipeline->rows);
	pipe_records_drop(pipeline);
	groups_drop(pipeline);
	pipe_free(memory, false, &pipeline->batch_block);
	pipe_free(memory, false, &pipeline->input_block);
	pipe_free(memory, false, &pipeline->plan_block);
	pipe_free(memory, false, &pipeline->probes_block);
	if (pipeline->host_input != nullptr)
		(void) cudaFreeHost(pipeline->host_input);
	if (pipeline->host_counters != nullptr)
		(void) cudaFreeHost(pipeline->host_counters);
	if (pipeline->lines_known != nullptr)
		(void) cudaEventDestroy(pipeline->lines_known);
	if (memory->stream != nullptr)
		(void) cudaStreamDestroy(memory->stream);
	(void) cudaGetLastError();
	free(pipeline->probes);
	gh_pipeline_plan_drop(&pipeline->plan);
	free(pipeline);
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
	if ((source->kind == GH_SOURCE_TABLE &&
		 reinterpret_cast<const cuda_table *>(source->table)->options.device != options->device) ||
		(source->kind == GH_SOURCE_GROUPS && source->groups->plan->options.device != options->device))
		return gh_error_set(error, GH_INVALID, "the source of a pipeline is on another device");
	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		const GhProbe *probe = &options->probes[p];
		const cuda_table *table = reinterpret_cast<const cuda_table *>(probe->table);

		if (table->options.device != options->device)
			return gh_error_set(error, GH_INVALID, "the table of probe %u of a pipeline is on another device", p);
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
	void	   *counters = nullptr;
	uint32_t	nkeys;

	/* not ordered with the default stream, which nobody here uses */
	PIPE_TRY(memory, cudaStreamCreateWithFlags(&memory->stream, cudaStreamNonBlocking), error);
	PIPE_TRY(memory, cudaEventCreateWithFlags(&pipeline->lines_known, cudaEventDisableTiming), error);
	if (cudaHostAlloc(&counters, sizeof(pipe_counters), cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return gh_error_set(error, GH_NO_MEMORY, "CUDA device %d locks no memory", memory->device);
	}
	pipeline->host_counters = static_cast<pipe_counters *>(counters);
	pipeline->multiprocessors = device_attribute(memory->device, cudaDevAttrMultiProcessorCount);
	if (pipeline->multiprocessors == 0)
		pipeline->multiprocessors = 1;
	pipeline->direct = device_attribute(memory->device, cudaDevAttrCanUseHostPointerForRegisteredMem) != 0;
	pipeline->record_plan.options.keys = gh_pipeline_keys(options, &nkeys);
	pipeline->record_plan.options.nkeys = nkeys;
	pipeline->record_plan.group_bytes = pipeline->plan.group_bytes;
	if (options->sink.kind == GH_SINK_GROUPS)
		pipeline->record_plan.options.naggregates = options->sink.groups.naggregates;
	if (options->sink.kind == GH_SINK_TABLE)
		GH_TRY(pipe_rows_create(pipeline, error));
	GH_TRY(pipe_plan_upload(pipeline, error));
	pipeline->at_once = pipeline->view.multiplies != 0 ? BATCH_ROWS_SEVERAL : BATCH_ROWS_MAX;
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
	cuda_marks_create,
	cuda_marks_destroy,
	false,						/* shares_sinks, and so none of what follows */
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr,
	nullptr
};
