/*
 * cpu_pipeline.c
 *		Pipelines on the CPU: handles, requests, results.
 *
 * Nothing runs but inside poll and wait, which do some hundred rows, or a page, at a time of the oldest request.  One
 * that is stopped on the way leaves nothing in the sink (cpu_pipeline_undo.c).
 */
#include "engine/pipeline/cpu_pipeline.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

#define SLICE_PAGES 16			/* or batches of rows; the stop flag is looked at before each */

/* GhPipelineRequest.engine_state */
enum
{
	STATE_NEXT,					/* the request behind it in the queue */
	STATE_AT,					/* the first page, or row, that is not done */
	STATE_ROWS					/* as GH_PIPELINE_ROWS_MAX counts them */
};

/* ------------------------------------------------------------------ requests */

static GhStatus
cpu_pipeline_submit(GhPipeline *handle, GhPipelineRequest *request)
{
	GhCpuPipeline *pipeline = (GhCpuPipeline *) handle;
	const GhPipelineSource *source = &pipeline->plan.options.source;
	uint64_t	rows;

	if (source->kind == GH_SOURCE_GROUPS)
		pipeline->intake.groups = ((const GhCpuPipeline *) source->groups)->groups.count;
	if (gh_pipeline_request_take(handle, request, &pipeline->intake, &rows) != GH_BUSY)
		return request->status;
	request->engine_state[STATE_ROWS] = rows;
	if (pipeline->first == NULL)
		pipeline->first = request;
	else
		pipeline->last->engine_state[STATE_NEXT] = (uintptr_t) request;
	pipeline->last = request;
	return GH_BUSY;
}

/* The sink is as if the request had never been there; that there was one is not forgotten (gh_cpu_shared_leave). */
static GhStatus
stop_request(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	gh_cpu_undo(pipeline);
	gh_pipeline_request_clear(request);
	return gh_error_set(&request->error, GH_STOPPED, "the request was stopped");
}

/* One slice of the oldest request. */
static GhStatus
do_slice(GhCpuPipeline *pipeline, GhPipelineRequest *request)
{
	if (request->engine_state[STATE_AT] == 0)
	{
		gh_cpu_undo_begin(pipeline, request->engine_state[STATE_ROWS]);
		pipeline->order_is_broken = false;
	}
	for (uint32_t i = 0; i < SLICE_PAGES && !gh_cpu_sees_stop(pipeline); i++)
		if (!gh_cpu_input(pipeline, request, &request->engine_state[STATE_AT]))
		{
			gh_cpu_undo_end(pipeline);
			return GH_OK;
		}
	return pipeline->stopped ? stop_request(pipeline, request) : GH_BUSY;
}

static void
advance_queue(GhCpuPipeline *pipeline)
{
	GhPipelineRequest *request = pipeline->first;
	GhStatus	status = do_slice(pipeline, request);

	if (status == GH_BUSY)
		return;
	pipeline->counted += request->counted;
	pipeline->first = (GhPipelineRequest *) (uintptr_t) request->engine_state[STATE_NEXT];
	request->status = status;
	request->pipeline = NULL;
}

static GhStatus
cpu_pipeline_poll(GhPipelineRequest *request)
{
	if (request->status == GH_BUSY && request->pipeline != NULL)
		advance_queue((GhCpuPipeline *) request->pipeline);
	return request->status;
}

static GhStatus
cpu_pipeline_wait(GhPipelineRequest *request)
{
	while (cpu_pipeline_poll(request) == GH_BUSY)
		continue;
	return request->status;
}

/* Does all requests; those that can be stopped end soon where the flag is set. */
static void
drain(GhCpuPipeline *pipeline)
{
	while (pipeline->first != NULL)
		advance_queue(pipeline);
}

/* ------------------------------------------------------------------- results */

static GhStatus
cpu_pipeline_results(GhPipeline *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
					 GhError *error)
{
	GhCpuPipeline *pipeline = (GhCpuPipeline *) handle;
	uint32_t	kind = pipeline->plan.options.sink.kind;

	*bytes = 0;
	if (kind != GH_SINK_GROUPS && kind != GH_SINK_ROWS)
		return gh_error_set(error, GH_INVALID, "a pipeline's sink of kind %u has no records", kind);
	drain(pipeline);
	if (gh_cpu_is_stopped(&pipeline->host))
		return gh_error_set(error, GH_STOPPED, "the results of a pipeline were stopped");
	return gh_cpu_sink_results(pipeline, cursor, capacity, buffer, bytes, error);
}

static GhStatus
cpu_pipeline_clear(GhPipeline *handle, GhError *error)
{
	GhCpuPipeline *pipeline = (GhCpuPipeline *) handle;
	uint32_t	kind = pipeline->plan.options.sink.kind;

	drain(pipeline);
	if (kind == GH_SINK_TABLE)
		return gh_error_set(error, GH_INVALID, "the table of a pipeline is not emptied");
	pipeline->records.used = pipeline->records.count = 0;
	if (kind == GH_SINK_GROUPS)
		gh_cpu_grouping_clear(&pipeline->groups);
	return GH_OK;
}

static GhStatus
cpu_pipeline_make_table(GhPipeline *handle, GhMadeTable *made, GhError *error)
{
	GhCpuPipeline *pipeline = (GhCpuPipeline *) handle;
	GhStatus	status;

	memset(made, 0, sizeof(*made));
	if (pipeline->plan.options.sink.kind != GH_SINK_TABLE || pipeline->intake.made ||
		pipeline->plan.options.shared_sink != 0)
		return gh_error_set(error, GH_INVALID, "a pipeline %s", pipeline->intake.made ? "made its table before" :
							"makes no table of its own");
	drain(pipeline);
	/* else it might lack the rows of requests that were stopped just now */
	if (gh_cpu_is_stopped(&pipeline->host))
		return gh_error_set(error, GH_STOPPED, "the making of a pipeline's table was stopped");
	status = gh_cpu_rows_make(pipeline->rows, &pipeline->plan.options.sink.table, made, error);
	pipeline->intake.made = status != GH_STOPPED;
	if (status != GH_OK)
		return status;
	pipeline->made_stats = (GhPipelineStats) {
		.entries = pipeline->rows->count,
		.bytes = pipeline->rows->memory.bytes + gh_cpu_index_bytes(made->table),
		.bytes_peak = pipeline->rows->memory.bytes_peak + gh_cpu_index_bytes(made->table),
	};
	pipeline->rows = NULL;
	return GH_OK;
}

/* Its rows go to all participants. */
static GhStatus
cpu_pipeline_finish(GhPipeline *handle, GhError *error)
{
	GhCpuPipeline *pipeline = (GhCpuPipeline *) handle;
	GhStatus	status;

	if (pipeline->plan.options.shared_sink == 0 || pipeline->intake.made)
		return gh_error_set(error, GH_INVALID, "a pipeline %s", pipeline->intake.made ? "finished before" :
							"shares no sink");
	drain(pipeline);
	/* requests that were stopped just now may still be submitted again */
	if (gh_cpu_is_stopped(&pipeline->host))
		return gh_error_set(error, GH_STOPPED, "the end of a pipeline's rows was stopped");
	status = gh_cpu_shared_finish(pipeline->rows, error);
	pipeline->intake.made = status == GH_OK;
	return status;
}

static GhStatus
cpu_pipeline_stats(GhPipeline *handle, GhPipelineStats *stats, GhError *error)
{
	const GhCpuPipeline *pipeline = (const GhCpuPipeline *) handle;
	const GhCpuSinkMemory *memory = pipeline->rows != NULL ? &pipeline->rows->memory : &pipeline->memory;

	(void) error;
	*stats = pipeline->made_stats;
	stats->counted = pipeline->counted;
	if (pipeline->made_stats.bytes > 0)
		return GH_OK;
	stats->entries = pipeline->rows != NULL ? pipeline->rows->count : pipeline->groups.count + pipeline->records.count;
	stats->bytes = memory->bytes;
	stats->bytes_peak = memory->bytes_peak;
	return GH_OK;
}

/* ---------------------------------------------------------- making and ending */

static void
drop_level(GhCpuLevel *level)
{
	if (level == NULL)
		return;
	free(level->memory);
	free(level);
}

static void
cpu_pipeline_destroy(GhPipeline *handle)
{
	GhCpuPipeline *pipeline = (GhCpuPipeline *) handle;

	if (pipeline == NULL)
		return;
	gh_cpu_undo_end(pipeline);
	gh_cpu_sink_drop(pipeline);
	for (uint32_t l = 0; l <= GH_PROBES_MAX; l++)
		drop_level(pipeline->levels[l]);
	for (uint32_t p = 0; p < GH_PROBES_MAX; p++)
		gh_cpu_sieve_end(&pipeline->sieves[p]);
	free(pipeline->came);
	free(pipeline->numbers);
	free(pipeline->untold);
	gh_pipeline_plan_drop(&pipeline->plan);
	free(pipeline);
}

static GhCpuLevel *
create_level(const GhProgram *program, bool probes, bool by_rows)
{
	GhCpuLevel *level = calloc(1, probes ? sizeof(GhCpuLevel) : offsetof(GhCpuLevel, probing));

	if (level == NULL)
		return NULL;
	level->memory = aligned_alloc(64, (gh_batch_bytes(program) + 63) & ~(size_t) 63);
	if (level->memory == NULL)
	{
		free(level);
		return NULL;
	}
	if (by_rows)
		gh_batch_begin(&level->batch, program, level->memory);
	else
		gh_batch_prepare(&level->batch, program, level->memory);
	return level;
}

/* A level for the source's rows, and one for those of each probe that makes several of one. */
static bool
create_levels(GhCpuPipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	pipeline->nlevels = 1;
	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		pipeline->nlevels += gh_probe_multiplies(&pipeline->plan, p);
		pipeline->marks |= options->probes[p].marks != NULL;
	}
	pipeline->multiplies = pipeline->nlevels > 1;
	for (uint32_t l = 0; l < pipeline->nlevels; l++)
	{
		pipeline->levels[l] = create_level(options->program, options->nprobes > 0, !pipeline->multiplies);
		if (pipeline->levels[l] == NULL)
			return false;
	}
	return true;
}

/* Are the marks of a probe those of its table, and the rows of some keys in one other table only? */
static GhStatus
check_probes(const GhPipelineOptions *options, GhError *error)
{
	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		const GhProbe *probe = &options->probes[p];

		if (probe->marks != NULL && probe->marks->rows != gh_cpu_rows_of(probe->table))
			return gh_error_set(error, GH_INVALID, "probe %u of a pipeline has marks of another table", p);
		if (probe->changed != NULL && ((const GhCpuTable *) probe->table)->overlay != NULL)
			return gh_error_set(error, GH_UNSUPPORTED, "probe %u of a pipeline has changed keys, and its table an overlay", p);
	}
	return GH_OK;
}

static GhStatus
create_contents(GhCpuPipeline *pipeline, GhError *error)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	size_t		lines = gh_source_has_pages(&options->source) ?
		options->source.page_bytes / GH_LINE_BYTES : 1;
	bool		created = create_levels(pipeline);

	pipeline->numbers = malloc(2 * lines * sizeof(uint16_t));
	pipeline->untold = malloc(lines * sizeof(uint16_t));
	pipeline->came = calloc(pipeline->multiplies ? options->nsteps : 1, sizeof(*pipeline->came));
	if (!created || pipeline->numbers == NULL || pipeline->untold == NULL || pipeline->came == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a pipeline's handle");
	pipeline->all_numbers = pipeline->numbers + lines;
	gh_cpu_later_init(pipeline);
	return gh_cpu_sink_init(pipeline, error);
}

static GhStatus
cpu_pipeline_create(const GhHost *host, const GhPipelineOptions *options, GhPipeline **handle, GhError *error)
{
	GhCpuPipeline *pipeline;
	GhStatus	status;

	*handle = NULL;
	if (host == NULL || host->alloc == NULL || host->free == NULL || host->address == NULL)
		return gh_error_set(error, GH_INVALID, "the CPU engine needs a host's memory");
	pipeline = calloc(1, sizeof(GhCpuPipeline));
	if (pipeline == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a pipeline's handle");
	pipeline->base.engine = &gh_cpu_pipelines;
	pipeline->base.plan = &pipeline->plan;
	pipeline->host = pipeline->memory.host = *host;
	status = gh_pipeline_plan_init(&pipeline->plan, &gh_cpu_pipelines, gh_cpu_table_describe, options, error);
	if (status == GH_OK && pipeline->plan.options.device != 0)
		status = gh_error_set(error, GH_INVALID, "the CPU engine has no device %d", pipeline->plan.options.device);
	if (status == GH_OK)
		status = check_probes(&pipeline->plan.options, error);
	if (status == GH_OK)
		status = create_contents(pipeline, error);
	if (status != GH_OK)
	{
		cpu_pipeline_destroy(&pipeline->base);
		return status;
	}
	*handle = &pipeline->base;
	return GH_OK;
}

const GhPipelineEngine gh_cpu_pipelines = {
	.create = cpu_pipeline_create,
	.destroy = cpu_pipeline_destroy,
	.submit = cpu_pipeline_submit,
	.poll = cpu_pipeline_poll,
	.wait = cpu_pipeline_wait,
	.results = cpu_pipeline_results,
	.clear = cpu_pipeline_clear,
	.make_table = cpu_pipeline_make_table,
	.stats = cpu_pipeline_stats,
	.span_create = gh_cpu_span_create,
	.span_destroy = gh_cpu_span_destroy,
	.marks_create = gh_cpu_marks_create,
	.marks_destroy = gh_cpu_marks_destroy,
	.takes_packed = true,
	.shares_sinks = true,
	.share_sink = gh_cpu_shared_create,
	.unshare_sink = gh_cpu_shared_destroy,
	.finish = cpu_pipeline_finish,
	.index_begin = gh_cpu_shared_begin,
	.index_enter = gh_cpu_shared_enter,
	.table_attach = gh_cpu_shared_attach,
	.table_overlay = gh_cpu_table_overlay,
	.compares_texts = true,
	.adds_sets = true,
};
