/*
 * fault_pipeline.c
 *		Pipelines of the stand-in for the CUDA engine: the CPU engine's, with a device that can fail (fault_engine.c
 *		tells how).
 *
 *	- The first poll of a request does nothing, so that several of them are in flight.
 *	- A request that fails does half of its pages or rows; the pipeline is lost from then on.
 *	- A page of a request that says that the device reads it must be registered whole; arrays, and other pages, must
 *	  be where a device could copy from or to.
 *	- A span is the CPU engine's, in memory of the device.
 *	- As the CUDA engine it shares no sinks, and adds no rows in their order.
 */
#include <stdlib.h>
#include <string.h>

#include "fault.h"

/* A request that was submitted and has not ended. */
typedef struct Flight
{
	GhPipelineRequest *request;
	GhPipelineRequest inner;	/* the CPU engine's */
	GhPageSpan *spans[GH_REQUEST_SPANS_MAX];	/* its spans */
	bool		fails;			/* does half, and ends with the device */
	bool		polled;
	struct Flight *next;
} Flight;

/* What a request's Flight is found by: GhPipelineRequest.engine_state */
#define STATE_FLIGHT 0

typedef struct FaultPipeline
{
	GhPipeline	common;			/* first */
	FaultMemory *memory;		/* the table that it makes has it, too */
	GhPipeline *inner;			/* of the CPU engine */
	uint32_t	page_bytes;
	bool		failed;			/* it met a failure of the device */
	Flight	   *first;			/* oldest */
	Flight	   *last;
} FaultPipeline;

typedef struct FaultSpan
{
	GhPageSpan	common;			/* first */
	FaultMemory *memory;
	GhPageSpan *inner;			/* of the CPU engine */
} FaultSpan;

/* What a GhMarks of this engine is. */
typedef struct FaultMarks
{
	FaultMemory *memory;
	GhMarks    *inner;			/* of the CPU engine */
} FaultMarks;

/* ------------------------------------------------------------------- flights */

/* Results lie together in a request. */
static void
take_results(GhPipelineRequest *to, const GhPipelineRequest *from)
{
	memcpy(&to->nback, &from->nback, offsetof(GhPipelineRequest, pipeline) - offsetof(GhPipelineRequest, nback));
}

/* The request has ended: the oldest flight is its. */
static void
flight_end(FaultPipeline *pipeline, GhStatus status)
{
	static const GhPipelineRequest none = {0};
	Flight	   *flight = pipeline->first;
	GhPipelineRequest *request = flight->request;

	take_results(request, status == GH_OK ? &flight->inner : &none);
	request->error = flight->inner.error;
	request->status = status == GH_DEVICE_ERROR ? fault_fail(&request->error) :
		fault_status_of(pipeline->memory, status, &request->error);
	request->pipeline = NULL;
	pipeline->first = flight->next;
	if (pipeline->first == NULL)
		pipeline->last = NULL;
	free(flight);
}

/* A slice of the oldest request; after a failure, all end. */
static void
pipeline_advance(FaultPipeline *pipeline)
{
	Flight	   *flight = pipeline->first;

	if (gh_cpu_pipelines.poll(&flight->inner) == GH_BUSY)
		return;
	pipeline->failed = flight->fails;
	if (!pipeline->failed)
		flight_end(pipeline, flight->inner.status);
	while (pipeline->failed && pipeline->first != NULL)
		flight_end(pipeline, GH_DEVICE_ERROR);
}

/* Whether all of a request is where a device reads or writes it; rows as columns are copied from anywhere. */
static bool
can_reach(const FaultPipeline *pipeline, const GhPipelineRequest *request)
{
	if (!can_transfer(request->back, request->back_room * sizeof(GhBackRow), true))
		return false;
	if (request->kind != GH_INPUT_PAGES)
		return true;
	if (!can_transfer(request->bitmaps, request->nbitmaps * sizeof(uint64_t), false))
		return false;
	for (uint32_t p = 0; p < request->npages; p++)
	{
		const void *page = request->pages[p].page;

		if (page == NULL)
			continue;
		if (request->readable ? !is_registered(page, pipeline->page_bytes) :
			!can_transfer(page, pipeline->page_bytes, false))
			return false;
	}
	return true;
}

/* The request's spans as the CPU engine knows them; what is wrong with their array is left for it to refuse. */
static GhStatus
inner_spans(const FaultPipeline *pipeline, Flight *flight)
{
	GhPipelineRequest *inner = &flight->inner;

	if (inner->kind != GH_INPUT_PAGES || inner->spans == NULL || inner->nspans > GH_REQUEST_SPANS_MAX)
		return GH_OK;
	for (uint32_t s = 0; s < inner->nspans; s++)
	{
		const FaultSpan *span = (const FaultSpan *) inner->spans[s];

		if (span == NULL || span->common.engine != &fault_pipelines ||
			span->common.device != pipeline->memory->device)
			return gh_error_set(&inner->error, GH_INVALID, "span %u of a request is none of the pipeline's engine "
								"and device", s);
		flight->spans[s] = span->inner;
	}
	inner->spans = flight->spans;
	return GH_OK;
}

/* Gives the request to the CPU engine, or half of it when the device is to fail. */
static GhStatus
flight_start(FaultPipeline *pipeline, Flight *flight)
{
	GhPipelineRequest *request = flight->request;
	GhPipelineRequest *inner = &flight->inner;
	GhStatus	status;

	*inner = *request;
	flight->fails = !fault_device_works(true) || fault_launch_due();
	if (flight->fails)
	{
		inner->npages /= 2;
		inner->count /= 2;
	}
	status = inner_spans(pipeline, flight);
	if (status == GH_OK)
		status = gh_cpu_pipelines.submit(pipeline->inner, inner);
	if (status > GH_BUSY)
	{
		request->error = inner->error;
		return status;
	}
	/* the CPU engine accepted it, so its arrays are there; it is never polled again */
	if (!can_reach(pipeline, request))
	{
		pipeline->failed = true;
		return gh_error_set(&request->error, GH_DEVICE_ERROR,
							"a page or an array of the request is not where a device reads or writes");
	}
	request->engine_state[STATE_FLIGHT] = (uintptr_t) flight;
	if (pipeline->last == NULL)
		pipeline->first = flight;
	else
		pipeline->last->next = flight;
	pipeline->last = flight;
	return GH_BUSY;
}

static GhStatus
fault_pipeline_submit(GhPipeline *handle, GhPipelineRequest *request)
{
	static const GhPipelineRequest none = {0};
	FaultPipeline *pipeline = (FaultPipeline *) handle;
	Flight	   *flight;
	GhStatus	status;

	take_results(request, &none);
	request->pipeline = NULL;
	if (pipeline->failed)
		return request->status = fault_fail(&request->error);
	flight = calloc(1, sizeof(*flight));
	if (flight == NULL)
		return request->status = gh_error_set(&request->error, GH_NO_MEMORY, "out of memory");
	flight->request = request;
	status = flight_start(pipeline, flight);
	if (status == GH_BUSY)
		request->pipeline = handle;
	else if (!pipeline->failed)
		free(flight);
	return request->status = status;
}

static GhStatus
fault_pipeline_poll(GhPipelineRequest *request)
{
	Flight	   *flight;

	if (request->status != GH_BUSY || request->pipeline == NULL)
		return request->status;
	flight = (Flight *) (uintptr_t) request->engine_state[STATE_FLIGHT];
	if (!flight->polled)
		flight->polled = true;
	else
		pipeline_advance((FaultPipeline *) request->pipeline);
	return request->status;
}

static GhStatus
fault_pipeline_wait(GhPipelineRequest *request)
{
	while (fault_pipeline_poll(request) == GH_BUSY)
		continue;
	return request->status;
}

/* ---------------------------------------------------------- making and ending */

/* Waits for what was submitted, before a call that is not a request. */
static GhStatus
pipeline_enter(FaultPipeline *pipeline, GhError *error)
{
	while (pipeline->first != NULL)
		pipeline_advance(pipeline);
	if (!fault_device_works(false) || fault_launch_due())
		pipeline->failed = true;
	return pipeline->failed ? fault_fail(error) : GH_OK;
}

static void
fault_pipeline_destroy(GhPipeline *handle)
{
	FaultPipeline *pipeline = (FaultPipeline *) handle;

	if (pipeline == NULL)
		return;
	gh_cpu_pipelines.destroy(pipeline->inner);
	/* requests may be gone already: they are not looked at */
	while (pipeline->first != NULL)
	{
		Flight	   *flight = pipeline->first;

		pipeline->first = flight->next;
		free(flight);
	}
	fault_memory_leave(pipeline->memory);
	free(pipeline);
}

/*
 * The options as the CPU engine knows them; what is none of this engine's stays what it is, for the CPU engine to
 * refuse.
 */
static void
inner_options(GhPipelineOptions *options, GhProbe *probes)
{
	GhPipelineSource *source = &options->source;

	options->device = 0;
	if (source->kind == GH_SOURCE_GROUPS && source->groups != NULL && source->groups->engine == &fault_pipelines)
		source->groups = ((FaultPipeline *) source->groups)->inner;
	if (options->probes == NULL || options->nprobes > GH_PROBES_MAX)
		return;
	for (uint32_t i = 0; i < options->nprobes; i++)
	{
		probes[i] = options->probes[i];
		probes[i].table = fault_table_inner(probes[i].table);
		probes[i].changed = fault_table_inner(probes[i].changed);
		probes[i].instead = fault_table_inner(probes[i].instead);
		if (probes[i].marks != NULL)
			probes[i].marks = ((FaultMarks *) probes[i].marks)->inner;
	}
	options->probes = probes;
}

/* What the CPU engine does and a device does not. */
static GhStatus
check_options(const GhPipelineOptions *options, GhError *error)
{
	if (options == NULL)
		return gh_error_set(error, GH_INVALID, "a pipeline has no options");
	if (options->shared_sink != 0)
		return gh_error_set(error, GH_UNSUPPORTED, "processes do not share a sink on a device");
	if (options->sink.kind == GH_SINK_GROUPS && options->sink.groups.in_order == 1)
		return gh_error_set(error, GH_UNSUPPORTED, "rows are not added in their order on a device");
	return fault_open_device(options->device, error);
}

static GhStatus
fault_pipeline_create(const GhHost *host, const GhPipelineOptions *options, GhPipeline **result, GhError *error)
{
	GhProbe		probes[GH_PROBES_MAX];
	GhPipelineOptions inner;
	GhHost		inner_host;
	FaultPipeline *pipeline;
	GhStatus	status = check_options(options, error);

	*result = NULL;
	if (status != GH_OK)
		return status;
	if (!fault_device_works(false) || fault_launch_due())
		return fault_fail(error);
	pipeline = calloc(1, sizeof(*pipeline));
	if (pipeline != NULL)
		pipeline->memory = fault_memory_make(host, options->device);
	if (pipeline == NULL || pipeline->memory == NULL)
	{
		free(pipeline);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory");
	}
	inner = *options;
	inner_options(&inner, probes);
	fault_inner_host(pipeline->memory, &inner_host);
	pipeline->common.engine = &fault_pipelines;
	pipeline->page_bytes = inner.source.page_bytes;
	status = gh_cpu_pipelines.create(&inner_host, &inner, &pipeline->inner, error);
	if (status != GH_OK)
	{
		status = fault_status_of(pipeline->memory, status, error);
		fault_memory_leave(pipeline->memory);
		free(pipeline);
		return status;
	}
	pipeline->common.plan = pipeline->inner->plan;
	*result = &pipeline->common;
	return GH_OK;
}

/* -------------------------------------------------------------------- results */

static GhStatus
fault_pipeline_results(GhPipeline *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
					   GhError *error)
{
	FaultPipeline *pipeline = (FaultPipeline *) handle;
	GhStatus	status = pipeline_enter(pipeline, error);

	*bytes = 0;
	return status != GH_OK ? status :
		gh_cpu_pipelines.results(pipeline->inner, cursor, capacity, buffer, bytes, error);
}

static GhStatus
fault_pipeline_clear(GhPipeline *handle, GhError *error)
{
	FaultPipeline *pipeline = (FaultPipeline *) handle;
	GhStatus	status = pipeline_enter(pipeline, error);

	return status != GH_OK ? status : gh_cpu_pipelines.clear(pipeline->inner, error);
}

/* The CPU engine's table has the pipeline's memory. */
static GhStatus
fault_pipeline_make_table(GhPipeline *handle, GhMadeTable *made, GhError *error)
{
	FaultPipeline *pipeline = (FaultPipeline *) handle;
	GhTable    *inner;
	GhStatus	status = pipeline_enter(pipeline, error);

	memset(made, 0, sizeof(*made));
	if (status == GH_OK)
		status = gh_cpu_pipelines.make_table(pipeline->inner, made, error);
	if (status != GH_OK)
		return fault_status_of(pipeline->memory, status, error);
	inner = made->table;
	made->table = fault_table_wrap(pipeline->memory, inner, made->value_size);
	if (made->table != NULL)
		return GH_OK;
	gh_cpu_engine()->table_destroy(inner);
	return gh_error_set(error, GH_NO_MEMORY, "out of memory");
}

static GhStatus
fault_pipeline_stats(GhPipeline *handle, GhPipelineStats *stats, GhError *error)
{
	FaultPipeline *pipeline = (FaultPipeline *) handle;

	memset(stats, 0, sizeof(*stats));
	while (pipeline->first != NULL)
		pipeline_advance(pipeline);
	if (!fault_device_works(false))
		pipeline->failed = true;
	return pipeline->failed ? fault_fail(error) : gh_cpu_pipelines.stats(pipeline->inner, stats, error);
}

/* ---------------------------------------------------------------------- spans */

static GhStatus
fault_span_create(const GhHost *host, int device, uint32_t page_bytes, uint32_t npages, GhPageSpan **result,
				  GhError *error)
{
	FaultSpan  *span;
	GhHost		inner_host;
	GhStatus	status = fault_open_device(device, error);

	*result = NULL;
	if (status != GH_OK)
		return status;
	if (!fault_device_works(false))
		return fault_fail(error);
	span = calloc(1, sizeof(*span));
	if (span != NULL)
		span->memory = fault_memory_make(host, device);
	if (span == NULL || span->memory == NULL)
	{
		free(span);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory");
	}
	fault_inner_host(span->memory, &inner_host);
	status = gh_cpu_pipelines.span_create(&inner_host, 0, page_bytes, npages, &span->inner, error);
	if (status == GH_OK)
	{
		span->common = (GhPageSpan) {&fault_pipelines, device, page_bytes, npages};
		*result = &span->common;
		return GH_OK;
	}
	status = fault_status_of(span->memory, status, error);
	fault_memory_leave(span->memory);
	free(span);
	return status;
}

static void
fault_span_destroy(GhPageSpan *handle)
{
	FaultSpan  *span = (FaultSpan *) handle;

	if (span == NULL)
		return;
	gh_cpu_pipelines.span_destroy(span->inner);
	fault_memory_leave(span->memory);
	free(span);
}

/* ---------------------------------------------------------------------- marks */

static GhStatus
fault_marks_create(const GhHost *host, GhTable *table, GhMarks **result, GhError *error)
{
	FaultMarks *marks;
	GhHost		inner_host;
	GhStatus	status;

	*result = NULL;
	if (!fault_device_works(false) || fault_launch_due())
		return fault_fail(error);
	marks = calloc(1, sizeof(*marks));
	if (marks != NULL)
		marks->memory = fault_memory_make(host, 0);
	if (marks == NULL || marks->memory == NULL)
	{
		free(marks);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory");
	}
	fault_inner_host(marks->memory, &inner_host);
	status = gh_cpu_pipelines.marks_create(&inner_host, fault_table_inner(table), &marks->inner, error);
	if (status == GH_OK)
	{
		*result = (GhMarks *) marks;
		return GH_OK;
	}
	status = fault_status_of(marks->memory, status, error);
	fault_memory_leave(marks->memory);
	free(marks);
	return status;
}

static void
fault_marks_destroy(GhMarks *handle)
{
	FaultMarks *marks = (FaultMarks *) handle;

	if (marks == NULL)
		return;
	gh_cpu_pipelines.marks_destroy(marks->inner);
	fault_memory_leave(marks->memory);
	free(marks);
}

const GhPipelineEngine fault_pipelines = {
	.create = fault_pipeline_create,
	.destroy = fault_pipeline_destroy,
	.submit = fault_pipeline_submit,
	.poll = fault_pipeline_poll,
	.wait = fault_pipeline_wait,
	.results = fault_pipeline_results,
	.clear = fault_pipeline_clear,
	.make_table = fault_pipeline_make_table,
	.stats = fault_pipeline_stats,
	.span_create = fault_span_create,
	.span_destroy = fault_span_destroy,
	.marks_create = fault_marks_create,
	.marks_destroy = fault_marks_destroy,
	.shares_sinks = false,
	.adds_sets = true,
};
