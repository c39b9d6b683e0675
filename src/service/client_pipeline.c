/*
 * client_pipeline.c
 *		Pipelines of the service: what a session does to have a worker's GPU make one, bring it pages and rows that
 *		the device has, and fetch what it made.
 *
 * A pipeline has an entry among the tables, and so an executor that all its requests go to.  make_table turns
 * its entry into that of the table: the name stays, and the worker has no more of the pipeline.  Marks have
 * entries, too.
 *
 * All that a pipeline uses is of one executor: that of the process's procno, where it uses nothing.
 */
#include "postgres.h"

#include "storage/proc.h"

#include "service/client.h"
#include "service/pipeline_block.h"
#include "service/placement.h"

/* Of GhPipelineRequest.engine_state. */
enum
{
	STATE_SLOT,
	STATE_GENERATION
};

static GhServicePipeline *
pipeline_of(GhPipeline *handle)
{
	return (GhServicePipeline *) handle;
}

/* ------------------------------------------------------------- making, ending */

static GhRef
root_of_table(const GhTable *table)
{
	return table == NULL || table->engine != gh_service_engine() ? 0 : table->engine->table_root(table);
}

static GhRef
root_of_marks(const GhMarks *marks)
{
	return marks == NULL ? 0 : gh_entry_root(&((const GhServiceMarks *) marks)->entry);
}

/* The roots of what a pipeline uses; GH_INVALID: it is not of this service. */
static GhStatus
find_names(const GhPipelineOptions *options, GhPipelineNames *names, GhError *error)
{
	const GhPipelineSource *source = &options->source;

	memset(names, 0, sizeof(*names));
	if (source->kind == GH_SOURCE_GROUPS)
	{
		if (source->groups == NULL || source->groups->engine != &gh_service_pipelines)
			return gh_error_set(error, GH_INVALID, "the source of a pipeline is not of the service");
		names->source = gh_entry_root(&((const GhServicePipeline *) source->groups)->entry);
	}
	if (options->nprobes > GH_PROBES_MAX)
		return gh_error_set(error, GH_INVALID, "a pipeline has no %u probes", options->nprobes);
	for (uint32 i = 0; options->probes != NULL && i < options->nprobes; i++)
	{
		names->tables[i] = root_of_table(options->probes[i].table);
		names->marks[i] = root_of_marks(options->probes[i].marks);
		names->changed[i] = root_of_table(options->probes[i].changed);
		names->instead[i] = root_of_table(options->probes[i].instead);
		if (names->tables[i] == 0 || (names->changed[i] == 0) != (options->probes[i].changed == NULL) ||
			(names->instead[i] == 0) != (options->probes[i].instead == NULL))
			return gh_error_set(error, GH_INVALID, "probe %u of a pipeline is of no table of the service", i);
	}
	return GH_OK;
}

uint32
gh_service_executor(void)
{
	return (uint32) gh_my_procno() % GH_EXECUTORS;
}

static int	used_table_executor = -1;

void
gh_service_use_table_executor(int executor)
{
	used_table_executor = executor;
}

uint32
gh_service_table_executor(void)
{
	const PGPROC *leader = MyProc->lockGroupLeader != NULL ? MyProc->lockGroupLeader : MyProc;

	return used_table_executor >= 0 ? (uint32) used_table_executor : (uint32) gh_procno(leader) % GH_EXECUTORS;
}

/* The executor that a new pipeline is to have: that of what it uses. */
static int
executor_for(const GhPipelineOptions *options, const GhPipelineNames *names)
{
	GhRef		used = names->source != 0 ? names->source : names->tables[0];

	if (used != 0)
		return gh_client_root_executor(used);
	return (int) (options->sink.kind == GH_SINK_TABLE ? gh_service_table_executor() : gh_service_executor());
}

/* A handle without a pipeline; NULL: out of memory. */
static GhServicePipeline *
make_handle(const GhHost *host, bool shared, GhError *error)
{
	GhServicePipeline *pipeline = gh_client_alloc(sizeof(*pipeline), error);

	if (pipeline == NULL)
		return NULL;
	pipeline->common.engine = &gh_service_pipelines;
	pipeline->entry.host = *host;
	pipeline->entry.shared = shared;
	return pipeline;
}

static GhStatus
make_pipeline(const GhHost *host, int device, int executor, bool shared, const void *buffer, Size bytes,
			  GhPipeline **result, GhError *error)
{
	GhServicePipeline *pipeline = make_handle(host, shared, error);
	GhStatus	status;

	if (pipeline == NULL)
		return GH_NO_MEMORY;
	status = gh_entry_create(&pipeline->entry, device, GH_ENTRY_PIPELINE, executor, GH_SERVICE_PIPELINE_CREATE, buffer,
							 bytes, error);
	if (status == GH_OK)
		*result = &pipeline->common;
	else
		pfree(pipeline);
	return status;
}

static GhStatus
create_pipeline(const GhHost *host, const GhPipelineOptions *options, bool shared, GhPipeline **result,
				GhError *error)
{
	GhPipelineNames names;
	void	   *buffer;
	Size		bytes;
	GhStatus	status = find_names(options, &names, error);

	*result = NULL;
	if (status != GH_OK)
		return status;
	if (options->shared_sink != 0)
		return gh_error_set(error, GH_UNSUPPORTED, "processes do not share a sink on a device");
	bytes = gh_pipeline_block_write(options, &names, NULL);
	if (bytes == 0)
		return gh_error_set(error, GH_INVALID, "the options of a pipeline are too large");
	if (gh_device_at(options->device) == NULL || !gh_device_is_ready(gh_device_at(options->device)))
		return gh_device_unavailable(options->device, error);
	gh_client_join();
	if (!gh_service_reserve_briefly(bytes, &buffer))
		return gh_no_buffers(error);
	(void) gh_pipeline_block_write(options, &names, buffer);
	status = make_pipeline(host, options->device, executor_for(options, &names), shared, buffer, bytes, result, error);
	gh_service_return(buffer);
	return status;
}

static GhStatus
service_pipeline_create(const GhHost *host, const GhPipelineOptions *options, GhPipeline **result, GhError *error)
{
	return create_pipeline(host, options, false, result, error);
}

GhStatus
gh_service_pipeline_create_shared(const GhHost *host, const GhPipelineOptions *options, GhRef *root,
								  GhPipeline **result, GhError *error)
{
	GhStatus	status = create_pipeline(host, options, true, result, error);

	if (status == GH_OK)
		*root = gh_entry_root(&pipeline_of(*result)->entry);
	return status;
}

GhStatus
gh_service_pipeline_attach(GhRef root, const GhHost *host, GhPipeline **result, GhError *error)
{
	GhServicePipeline *pipeline = make_handle(host, true, error);
	GhStatus	status;

	*result = NULL;
	if (pipeline == NULL)
		return GH_NO_MEMORY;
	status = gh_entry_attach(&pipeline->entry, root, GH_ENTRY_PIPELINE, error);
	if (status == GH_OK)
		*result = &pipeline->common;
	else
		pfree(pipeline);
	return status;
}

/*
 * One that several processes have a handle on goes with gh_service_table_release; one that made a table, with
 * that.
 */
static void
service_pipeline_destroy(GhPipeline *handle)
{
	GhServicePipeline *pipeline = pipeline_of(handle);

	if (pipeline == NULL)
		return;
	if (!pipeline->made)
		gh_entry_close(&pipeline->entry);
	pfree(pipeline);
}

/* ------------------------------------------------------------------- requests */

static GhFlight
flight_of(const GhPipelineRequest *request)
{
	return (GhFlight){(uint32) request->engine_state[STATE_SLOT], request->engine_state[STATE_GENERATION]};
}

static void
fill_slot(GhSlot *slot, const GhPipelineRequest *request)
{
	bool		pages = request->kind == GH_INPUT_PAGES;

	slot->count = pages ? request->npages : 0;
	slot->brought = *request;
	if (!pages)
		slot->brought.nspans = 0;
	for (uint32 i = 0; i < slot->brought.nspans; i++)
		slot->spans[i] = ((const GhServiceSpan *) request->spans[i])->root;
}

/* What is known of a request without the worker: GH_BUSY: it is the worker's to do. */
static GhStatus
check_request(const GhServicePipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	if (pipeline->made)
		return gh_error_set(error, GH_INVALID, "a pipeline whose table was made takes no more rows");
	if ((request->kind == GH_INPUT_PAGES ? request->npages : request->count) == 0)
		return GH_OK;
	if (request->kind == GH_INPUT_PAGES && request->nspans > GH_REQUEST_SPANS_MAX)
		return gh_error_set(error, GH_INVALID, "a request names %u spans, of %d at most", request->nspans,
							GH_REQUEST_SPANS_MAX);
	for (uint32 i = 0; request->kind == GH_INPUT_PAGES && i < request->nspans; i++)
		if (request->spans[i] == NULL || request->spans[i]->engine != &gh_service_pipelines)
			return gh_error_set(error, GH_INVALID, "span %u of a request is not of the service", i);
	return gh_entry_lives(&pipeline->entry) ? GH_BUSY : gh_entry_lost(&pipeline->entry, error);
}

static GhStatus
service_pipeline_submit(GhPipeline *handle, GhPipelineRequest *request)
{
	static const GhPipelineRequest none = {0};
	GhServicePipeline *pipeline = pipeline_of(handle);
	const void *address = request->kind == GH_INPUT_PAGES ? (const void *) request->pages : request->back;
	uint32		number;
	GhStatus	status;

	gh_take_results(request, &none);
	memset(request->engine_state, 0, sizeof(request->engine_state));
	request->pipeline = NULL;
	status = check_request(pipeline, request, &request->error);
	if (status != GH_BUSY)
		return request->status = status;
	if (!gh_entry_slot(&pipeline->entry, address, GH_SERVICE_PIPELINE, &number))
		return request->status = gh_error_set(&request->error, GH_INVALID,
											  "the arrays of a request must be in one idle buffer of the transfer area");
	fill_slot(gh_slot_at(number), request);
	request->engine_state[STATE_SLOT] = number;
	request->pipeline = handle;
	request->status = GH_BUSY;
	request->engine_state[STATE_GENERATION] = gh_client_slot_submit(number);
	return GH_BUSY;
}

/* Takes over the results of a slot whose request is done. */
static GhStatus
take_results(GhPipelineRequest *request, GhEntryHandle *entry, const GhSlot *slot)
{
	gh_entry_add_times(entry, slot);
	if (slot->status != GH_OK)
	{
		request->error = slot->error;
		return slot->status;
	}
	gh_take_results(request, &slot->brought);
	return request->nback > request->back_room ? gh_entry_wrong_answer(entry, &request->error) : GH_OK;
}

/* Takes over the outcome that gh_flight_poll or gh_flight_wait has found. */
static GhStatus
request_end(GhPipelineRequest *request, GhStatus status)
{
	uint32		number = (uint32) request->engine_state[STATE_SLOT];

	if (status == GH_OK)
	{
		status = take_results(request, &pipeline_of(request->pipeline)->entry, gh_slot_at(number));
		gh_slot_reuse(number);
	}
	request->pipeline = NULL;
	return request->status = status;
}

static GhStatus
service_pipeline_poll(GhPipelineRequest *request)
{
	GhStatus	status;

	if (request->status != GH_BUSY || request->pipeline == NULL)
		return request->status;
	status = gh_flight_poll(flight_of(request), &request->error);
	return status == GH_BUSY ? GH_BUSY : request_end(request, status);
}

static GhStatus
service_pipeline_wait(GhPipelineRequest *request)
{
	GhStatus	status;

	if (request->status != GH_BUSY || request->pipeline == NULL)
		return request->status;
	status = gh_flight_wait(flight_of(request), &pipeline_of(request->pipeline)->entry.host, &request->error);
	return status == GH_STOPPED ? GH_STOPPED : request_end(request, status);
}

/* -------------------------------------------------------------------- results */

static GhStatus
service_pipeline_results(GhPipeline *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
						 GhError *error)
{
	return gh_entry_results(&pipeline_of(handle)->entry, GH_SERVICE_PIPELINE_RESULTS, cursor, capacity, buffer, bytes,
							error);
}

static GhStatus
service_pipeline_clear(GhPipeline *handle, GhError *error)
{
	uint32		number;
	GhStatus	status = gh_entry_control(&pipeline_of(handle)->entry, GH_SERVICE_PIPELINE_CLEAR, 0, &number, error);

	if (status == GH_OK)
		gh_slot_leave(number);
	return status;
}

static GhStatus
service_pipeline_make_table(GhPipeline *handle, GhMadeTable *made, GhError *error)
{
	GhServicePipeline *pipeline = pipeline_of(handle);
	GhServiceTable *table;
	uint32		number;
	GhStatus	status;

	memset(made, 0, sizeof(*made));
	if (pipeline->made)
		return gh_error_set(error, GH_INVALID, "a pipeline made its table before");
	table = gh_client_table_handle(&pipeline->entry.host, pipeline->entry.table, pipeline->entry.generation, error);
	if (table == NULL)
		return GH_NO_MEMORY;
	status = gh_entry_control(&pipeline->entry, GH_SERVICE_PIPELINE_TABLE, 0, &number, error);
	if (status != GH_OK)
	{
		pfree(table);
		return status;
	}
	*made = gh_slot_at(number)->made_table;
	made->table = &table->common;
	gh_slot_leave(number);
	gh_entry_forget(&pipeline->entry);
	pipeline->made = true;
	table->made = true;
	table->options.key_size = sizeof(uint64);
	table->options.value_size = made->value_size;
	if (!pipeline->entry.shared)
		gh_client_own_table(table);
	return GH_OK;
}

static GhStatus
service_pipeline_stats(GhPipeline *handle, GhPipelineStats *stats, GhError *error)
{
	uint32		number;
	GhStatus	status = gh_entry_control(&pipeline_of(handle)->entry, GH_SERVICE_PIPELINE_STATS, 0, &number, error);

	if (status != GH_OK)
		return status;
	*stats = gh_slot_at(number)->pipeline_stats;
	gh_slot_leave(number);
	return GH_OK;
}

static void
service_pipeline_times(const GhPipeline *handle, uint64_t *queue_ns, uint64_t *device_ns)
{
	const GhServicePipeline *pipeline = (const GhServicePipeline *) handle;

	*queue_ns = pipeline->entry.queue_ns;
	*device_ns = pipeline->entry.run_ns;
}

/* ---------------------------------------------------------------------- marks */

/* The entry is of the executor of the table. */
static GhStatus
make_marks(GhServiceMarks *marks, GhRef table, GhError *error)
{
	uint32		number;
	GhStatus	status = gh_entry_open(&marks->entry, gh_client_root_device(table), GH_ENTRY_MARKS,
									   gh_client_root_executor(table), error);

	if (status != GH_OK)
		return status;
	status = gh_entry_control(&marks->entry, GH_SERVICE_MARKS_CREATE, table, &number, error);
	if (status == GH_OK)
		gh_slot_leave(number);
	else
		gh_entry_drop(&marks->entry);
	return status;
}

/* A handle without marks; NULL: out of memory. */
static GhServiceMarks *
make_marks_handle(const GhHost *host, bool shared, GhError *error)
{
	GhServiceMarks *marks = gh_client_alloc(sizeof(*marks), error);

	if (marks == NULL)
		return NULL;
	marks->entry.host = *host;
	marks->entry.shared = shared;
	return marks;
}

static GhStatus
create_marks(const GhHost *host, GhTable *table, bool shared, GhMarks **result, GhError *error)
{
	GhRef		root = root_of_table(table);
	GhServiceMarks *marks;
	GhStatus	status;

	*result = NULL;
	if (root == 0)
		return gh_error_set(error, GH_INVALID, "there are no marks of a table that is not of the service");
	marks = make_marks_handle(host, shared, error);
	if (marks == NULL)
		return GH_NO_MEMORY;
	status = make_marks(marks, root, error);
	if (status == GH_OK)
		*result = (GhMarks *) marks;
	else
		pfree(marks);
	return status;
}

static GhStatus
service_marks_create(const GhHost *host, GhTable *table, GhMarks **result, GhError *error)
{
	return create_marks(host, table, false, result, error);
}

GhStatus
gh_service_marks_create_shared(const GhHost *host, GhTable *table, GhRef *root, GhMarks **result, GhError *error)
{
	GhStatus	status = create_marks(host, table, true, result, error);

	if (status == GH_OK)
		*root = root_of_marks(*result);
	return status;
}

GhStatus
gh_service_marks_attach(GhRef root, const GhHost *host, GhMarks **result, GhError *error)
{
	GhServiceMarks *marks = make_marks_handle(host, true, error);
	GhStatus	status;

	*result = NULL;
	if (marks == NULL)
		return GH_NO_MEMORY;
	status = gh_entry_attach(&marks->entry, root, GH_ENTRY_MARKS, error);
	if (status == GH_OK)
		*result = (GhMarks *) marks;
	else
		pfree(marks);
	return status;
}

static void
service_marks_destroy(GhMarks *handle)
{
	GhServiceMarks *marks = (GhServiceMarks *) handle;

	if (marks == NULL)
		return;
	gh_entry_close(&marks->entry);
	pfree(marks);
}

const GhPipelineEngine gh_service_pipelines = {
	.create = service_pipeline_create,
	.destroy = service_pipeline_destroy,
	.submit = service_pipeline_submit,
	.poll = service_pipeline_poll,
	.wait = service_pipeline_wait,
	.results = service_pipeline_results,
	.clear = service_pipeline_clear,
	.make_table = service_pipeline_make_table,
	.stats = service_pipeline_stats,
	.times = service_pipeline_times,
	.marks_create = service_marks_create,
	.marks_destroy = service_marks_destroy,
	.shares_sinks = false,
	.adds_sets = true,
};
