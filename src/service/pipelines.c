/*
 * pipelines.c
 *		What the threads of a worker do with requests on pipelines, and on marks.
 *
 * As everywhere in a worker, what a client wrote is copied and checked: options (pipeline_block.c), lists of
 * pages (pages.c), and offsets; numbers of steps and rows are the engine's to check.  No function of
 * PostgreSQL is called here.
 *
 * Other entries that a pipeline uses are of the same executor, and stay as long as it.  One thread does the
 * requests of all of them, but several of these may be in the engine at a time.  So before a request of a
 * pipeline begins, all those of what it uses have ended, and before what is used changes, those of its users
 * (gh_executor_drain_users).
 */
#include "postgres.h"

#include "service/pipeline_block.h"
#include "service/threads.h"

/* ------------------------------------------------------------------- requests */

/*
 * Room for all rows of pages to go back, or of a table or groups, as the engine asks for, where the client's
 * is less: of pages that stay rows hardly ever do, and of what an engine has made, and so requests of many
 * need no large buffers.
 */
static const char *
make_room_for_back(GhRunning *running, GhPipelineRequest *request)
{
	/* with none at all it is the engine's to refuse, as with too many lines */
	if (request->back == NULL || request->back_room == 0 || running->nlines <= request->back_room ||
		running->nlines > GH_REQUEST_LINES_MAX)
		return NULL;
	running->back = malloc(running->nlines * sizeof(GhBackRow));
	if (running->back == NULL)
		return "out of memory for rows that go back";
	running->client_back = request->back;
	running->client_room = request->back_room;
	request->back = running->back;
	request->back_room = running->nlines;
	return NULL;
}

/* The rows that went back, where the client sees them; GH_TOO_SMALL: they are too many for it. */
static GhStatus
give_back_rows(const GhRunning *running, GhPipelineRequest *request)
{
	if (running->back == NULL || request->nback == 0)
		return GH_OK;
	if (request->nback > running->client_room)
		return gh_error_set(&request->error, GH_TOO_SMALL, "%llu rows were handed back, with room for %llu",
							(unsigned long long) request->nback, (unsigned long long) running->client_room);
	memcpy(running->client_back, running->back, request->nback * sizeof(GhBackRow));
	return GH_OK;
}

/* The pages of a request; NULL, or what is wrong. */
static const char *
build_pages(uint32 number, const GhSlot *asked, const GhWorkerTable *table, GhPipelineRequest *request)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	const GhPipelineRequest *brought = &asked->brought;
	const char *why;

	if (table->page_bytes == 0 || brought->npages > GH_REQUEST_PAGES_MAX)
		return "a request has pages that its pipeline does not take";
	if (!gh_executor_array(number, asked->units, brought->pages, brought->npages, sizeof(GhPageRef)) ||
		!gh_executor_array(number, asked->units, brought->bitmaps, brought->nbitmaps, sizeof(uint64)) ||
		brought->pages == NULL)
		return "an array of the request is outside its buffer";
	why = gh_spans_take(asked, running, request);
	if (why == NULL)
		why = gh_pages_take(asked, brought->pages, brought->npages, table->page_bytes, running);
	if (why != NULL)
		return why;
	request->readable = running->readable;
	request->npages = running->nlisted;
	request->pages = running->pages;
	request->page_lines = running->page_lines;
	request->bitmaps = brought->bitmaps;
	request->nbitmaps = brought->bitmaps == NULL ? 0 : brought->nbitmaps;
	return make_room_for_back(running, request);
}

/* The engine's request out of what was asked for; NULL, or what is wrong. */
static const char *
build_request(uint32 number, const GhSlot *asked, const GhWorkerTable *table)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	GhPipelineRequest *request = &running->pipeline_request;
	const GhPipelineRequest *brought = &asked->brought;

	memset(request, 0, sizeof(*request));
	if (!gh_executor_is_buffer(number, asked->units) ||
		!gh_executor_array(number, asked->units, brought->back, brought->back_room, sizeof(GhBackRow)))
		return "an array of the request is outside its buffer";
	request->kind = brought->kind;
	request->back = brought->back;
	request->back_room = brought->back == NULL ? 0 : brought->back_room;
	if (brought->kind == GH_INPUT_PAGES)
		return build_pages(number, asked, table, request);
	request->step = brought->step;
	request->first = brought->first;
	request->count = brought->count;
	if (brought->kind == GH_INPUT_COLUMNS)
		return gh_columns_take(number, asked, table, request);
	running->nlines = request->count;
	return make_room_for_back(running, request);
}

/* What the request had beside the engine's. */
static void
drop_input(GhRunning *running)
{
	free(running->back);
	running->back = NULL;
	gh_pages_drop(running);
	gh_spans_drop(running);
	gh_columns_drop(running);
}

void
gh_pipelines_finish(uint32 number, GhStatus status)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	GhPipelineRequest *request = &running->pipeline_request;
	GhSlot	   *slot = gh_slot_at(number);

	if (status == GH_OK)
	{
		gh_spans_note_lines(running);
		status = give_back_rows(running, request);
	}
	slot->status = status;
	if (status != GH_OK)
		slot->error = request->error;
	gh_take_results(&slot->brought, request);
	if (gh_fault_pass(GH_FAULT_POINT_SCAN_ANSWER) != GH_FAULT_NONE)
		slot->brought.nback = PG_UINT64_MAX;
	gh_pages_count(running, request->nbitmaps, request->nback * sizeof(GhBackRow));
	drop_input(running);
	if (status == GH_DEVICE_ERROR)
		gh_executor_check_device(&request->error);
	gh_executor_answer(number);
}

/*
 * Gives the request to the engine; GH_BUSY: it is there.  Marks are read when all who set them are through.
 */
static GhStatus
submit_request(GhExecutor *executor, GhWorkerTable *table, GhPipelineRequest *request)
{
	GhStatus	status;

	for (uint32 i = 0; i < table->nused; i++)
	{
		GhWorkerTable *used = &gh_worker.tables[table->used[i]];

		gh_executor_drain(executor, used);
		if (request->kind == GH_INPUT_UNMATCHED && used->marks != NULL)
			gh_executor_drain_users(executor, used);
	}
	gh_executor_drain_users(executor, table);
	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN, &request->error);
	if (status == GH_OK)
		status = gh_worker.engine->pipelines->submit(table->pipeline, request);
	return status == GH_OK ? GH_BUSY : status;
}

static void
run_rows(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	const char *why;
	GhStatus	status;

	why = build_request(number, asked, table);
	if (why != NULL)
	{
		drop_input(running);
		gh_executor_refuse(number, GH_INVALID, why);
		return;
	}
	status = submit_request(executor, table, &running->pipeline_request);
	if (status == GH_BUSY)
		gh_executor_runs(executor, number, table, GH_RUNNING_PIPELINE);
	else
		gh_pipelines_finish(number, status);
}

/* ---------------------------------------------------------------- making one */

/* While the names of a pipeline are looked up. */
typedef struct Search
{
	const GhExecutor *executor;
	const GhSlot *asked;
	GhWorkerTable *user;
	const char *why;			/* what is wrong; NULL: nothing so far */
} Search;

/* What the root names, which the user has hold of from here on; NULL: none, or nothing that it may use. */
static const GhWorkerTable *
use_named(Search *search, GhRef root)
{
	uint32		number;
	uint64		generation;
	const GhWorkerTable *used;

	if (root == 0 || search->why != NULL)
		return NULL;
	gh_root_split(root, &number, &generation);
	used = gh_executor_named(search->executor, search->asked, number, generation, &search->why);
	if (used != NULL)
		gh_executor_hold(search->user, number);
	return used;
}

static GhTable *
use_table(Search *search, GhRef root)
{
	const GhWorkerTable *used = use_named(search, root);

	return used != NULL ? used->handle : NULL;
}

/* Keys of a probe whose rows are in another table, and that one. */
static void
use_changed(Search *search, GhPipelineBlock *block, uint32 number)
{
	GhProbe    *probe = &block->probes[number];

	probe->changed = use_table(search, block->names.changed[number]);
	probe->instead = use_table(search, block->names.instead[number]);
	if ((probe->changed == NULL) != (block->names.changed[number] == 0) ||
		(probe->instead == NULL) != (block->names.instead[number] == 0))
		search->why = "a table of other rows of a probe is none";
}

/*
 * All that the options name.  What is not there is NULL, for the engine to refuse, but for marks, which may
 * be.
 */
static void
use_all(Search *search, GhPipelineBlock *block)
{
	GhPipelineSource *source = &block->options.source;
	const GhWorkerTable *used;

	if (source->kind == GH_SOURCE_GROUPS)
	{
		used = use_named(search, block->names.source);
		source->groups = used != NULL ? used->pipeline : NULL;
	}
	for (uint32 i = 0; block->options.probes != NULL && i < block->options.nprobes; i++)
	{
		block->probes[i].table = use_table(search, block->names.tables[i]);
		use_changed(search, block, i);
		used = use_named(search, block->names.marks[i]);
		block->probes[i].marks = used != NULL ? used->marks : NULL;
		if (used != NULL && used->marks == NULL)
			search->why = "the marks of a probe are none";
	}
}

static GhStatus
make_pipeline(GhExecutor *executor, const GhSlot *asked, GhWorkerTable *table, GhPipelineBlock *block,
			  GhError *error)
{
	Search		search = {executor, asked, table, NULL};
	GhHost		host;
	GhStatus	status;

	use_all(&search, block);
	if (search.why != NULL)
		return gh_error_set(error, GH_INVALID, "%s", search.why);
	/* its root would be an address of another process */
	if (block->options.shared_sink != 0)
		return gh_error_set(error, GH_UNSUPPORTED, "processes do not share a sink on a device");
	gh_executor_host(table, &host);
	block->options.device = gh_worker.cuda_device;
	table->page_bytes = gh_source_has_pages(&block->options.source) ? block->options.source.page_bytes : 0;
	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_CREATE, error);
	if (status == GH_OK)
		status = gh_worker.engine->pipelines->create(&host, &block->options, &table->pipeline, error);
	if (status != GH_OK)
		table->pipeline = NULL;
	else
		gh_columns_note_texts(block->options.program, block->options.program_bytes, table);
	return status;
}

/* Whether the bytes that are asked for are in the slot's buffer. */
static bool
has_block(uint32 number, const GhSlot *asked)
{
	return gh_executor_is_buffer(number, asked->units) && asked->block != NULL &&
		gh_executor_array(number, asked->units, asked->block, asked->count, 1);
}

static GhStatus
create_pipeline(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table, GhError *error)
{
	GhPipelineBlock block;
	GhStatus	status;

	if (!has_block(number, asked))
		return gh_error_set(error, GH_INVALID, "the options of a pipeline are outside their buffer");
	status = gh_pipeline_block_read(asked->block, asked->count, &block, error);
	if (status != GH_OK)
		return status;
	status = make_pipeline(executor, asked, table, &block, error);
	gh_pipeline_block_drop(&block);
	return status;
}

static GhStatus
create_marks(GhExecutor *executor, const GhSlot *asked, GhWorkerTable *table, GhError *error)
{
	Search		search = {executor, asked, table, NULL};
	GhTable    *marked = use_table(&search, asked->named);
	GhHost		host;
	GhStatus	status;

	if (marked == NULL)
		return gh_error_set(error, GH_INVALID, "%s", search.why != NULL ? search.why : "there is no table to mark");
	gh_executor_host(table, &host);
	status = gh_executor_pass_point(GH_FAULT_POINT_CREATE, error);
	if (status == GH_OK)
		status = gh_worker.engine->pipelines->marks_create(&host, marked, &table->marks, error);
	if (status != GH_OK)
		table->marks = NULL;
	return status;
}

/* A pipeline, or marks. */
static GhStatus
create_one(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table, GhError *error)
{
	GhStatus	status;

	if (gh_worker.engine->pipelines == NULL)
		return gh_error_set(error, GH_UNSUPPORTED, "the engine has no pipelines");
	table->generation = asked->table_generation;
	table->was_made = false;
	table->make_error.status = GH_OK;
	memset(&table->options, 0, sizeof(table->options));
	memset(&table->results_from, 0, sizeof(table->results_from));
	memset(&table->results_to, 0, sizeof(table->results_to));
	status = asked->op == GH_SERVICE_MARKS_CREATE ? create_marks(executor, asked, table, error) :
		create_pipeline(executor, number, asked, table, error);
	if (status != GH_OK)
		gh_executor_let_go(executor, table);
	if (status != GH_DEVICE_ERROR)
		gh_executor_note_memory();
	return status;
}

void
gh_pipelines_destroy(GhExecutor *executor, GhWorkerTable *table)
{
	GhPipeline *pipeline = table->pipeline;
	GhMarks    *marks = table->marks;

	table->pipeline = NULL;
	table->marks = NULL;
	if (pipeline != NULL)
		gh_worker.engine->pipelines->destroy(pipeline);
	if (marks != NULL)
		gh_worker.engine->pipelines->marks_destroy(marks);
	gh_executor_let_go(executor, table);
}

/* ------------------------------------------------------------- what they made */

static bool
is_at(const GhCursor *cursor, const GhCursor *place)
{
	return cursor->position == place->position && cursor->value == place->value && cursor->finished == place->finished;
}

/*
 * Whether results are asked for from their begin on, from where they ended last, or from there once more
 * where the answer was lost.  Elsewhere there may be no record, and what lies there was the session's to
 * choose.
 */
static bool
is_cursor(const GhWorkerTable *table, const GhCursor *cursor)
{
	const GhCursor begin = {0};

	return is_at(cursor, &begin) || is_at(cursor, &table->results_from) || is_at(cursor, &table->results_to);
}

/*
 * Records into the slot's buffer; the executor waits for the device meanwhile.  The engine reads their
 * lengths again, and so has them in memory that is not the session's, too.
 */
static GhStatus
fetch_records(GhExecutor *executor, GhWorkerTable *table, GhCursor *cursor, size_t capacity, void *place, size_t *bytes,
			  GhError *error)
{
	GhStatus	status;

	if (capacity > executor->records_bytes || executor->records == NULL)
	{
		free(executor->records);
		executor->records = malloc(Max(capacity, 1));
		executor->records_bytes = executor->records == NULL ? 0 : capacity;
	}
	if (executor->records == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for results");
	status = gh_worker.engine->pipelines->results(table->pipeline, cursor, capacity, executor->records, bytes, error);
	if (status == GH_OK && *bytes > 0)
		memcpy(place, executor->records, *bytes);
	return status;
}

static GhStatus
fetch_results(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table, GhError *error)
{
	GhSlot	   *slot = gh_slot_at(number);
	GhCursor	cursor = asked->cursor;
	size_t		bytes = 0;
	GhStatus	status;

	slot->bytes = 0;
	if (!has_block(number, asked))
		return gh_error_set(error, GH_INVALID, "the place for results is outside its buffer");
	if (!is_cursor(table, &asked->cursor))
		return gh_error_set(error, GH_INVALID, "results are not asked for from where they ended");
	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_RESULTS, error);
	if (status == GH_OK)
		status = fetch_records(executor, table, &cursor, asked->count, asked->block, &bytes, error);
	table->results_from = asked->cursor;
	table->results_to = cursor;
	slot->cursor = cursor;
	slot->bytes = gh_fault_pass(GH_FAULT_POINT_SCAN_ANSWER) == GH_FAULT_NONE ? bytes : SIZE_MAX;
	if (status == GH_OK)
		gh_executor_count(GH_COUNT_BYTES_FROM, bytes);
	return status;
}

/* The entry is the table's from then on, and of the pipeline nothing is left but its numbers. */
static GhStatus
turn_into_table(GhExecutor *executor, uint32 number, GhWorkerTable *table, GhError *error)
{
	const GhPipelineEngine *engine = gh_worker.engine->pipelines;
	GhStatus	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_TABLE, error);

	if (status == GH_OK)
		status = engine->make_table(table->pipeline, &table->made_table, error);
	if (status != GH_OK && status != GH_STOPPED)
		table->make_error = *error;
	if (status != GH_OK)
		return status;
	table->handle = table->made_table.table;
	table->was_made = true;
	table->options.key_size = sizeof(uint64);
	table->options.value_size = table->made_table.value_size;
	gh_table_entry_at(number)->kind = GH_ENTRY_TABLE;
	status = engine->stats(table->pipeline, &table->made_stats, error);
	gh_pipelines_destroy(executor, table);
	gh_executor_note_memory();
	return status;
}

/* A client that was stopped on its way asks again, or another one asks, too, and gets the same answer. */
static GhStatus
make_table(GhExecutor *executor, GhSlot *slot, uint32 number, GhWorkerTable *table, GhError *error)
{
	GhStatus	status = table->make_error.status;

	if (status != GH_OK)
		*error = table->make_error;
	else if (!table->was_made)
		status = turn_into_table(executor, number, table, error);
	if (status != GH_OK)
		return status;
	slot->made_table = table->made_table;
	slot->made_table.table = NULL;
	return GH_OK;
}

static GhStatus
report_stats(GhSlot *slot, const GhWorkerTable *table, GhError *error)
{
	GhPipelineStats stats = {0};
	GhStatus	status = gh_executor_pass_point(GH_FAULT_POINT_SCAN_STATS, error);

	if (status == GH_OK && table->was_made)
		stats = table->made_stats;
	else if (status == GH_OK)
		status = gh_worker.engine->pipelines->stats(table->pipeline, &stats, error);
	slot->pipeline_stats = stats;
	return status;
}

static GhStatus
clear_sink(GhExecutor *executor, GhWorkerTable *table, GhError *error)
{
	GhStatus	status = gh_executor_pass_point(GH_FAULT_POINT_CLEAR, error);

	gh_executor_drain_users(executor, table);
	return status != GH_OK ? status : gh_worker.engine->pipelines->clear(table->pipeline, error);
}

/* A request without rows, to its end. */
static GhStatus
run_control(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table, GhError *error)
{
	GhSlot	   *slot = gh_slot_at(number);

	gh_executor_drain(executor, table);
	switch (asked->op)
	{
		case GH_SERVICE_PIPELINE_RESULTS:
			return fetch_results(executor, number, asked, table, error);
		case GH_SERVICE_PIPELINE_TABLE:
			return make_table(executor, slot, asked->table, table, error);
		case GH_SERVICE_PIPELINE_CLEAR:
			return clear_sink(executor, table, error);
		case GH_SERVICE_PIPELINE_STATS:
			return report_stats(slot, table, error);
		default:
			return create_one(executor, number, asked, table, error);
	}
}

/*
 * Status and error are in the slot, where others may change them, only once nothing depends on them any more.
 */
void
gh_pipelines_start(GhExecutor *executor, uint32 number, const GhSlot *asked)
{
	GhWorkerTable *table = &gh_worker.tables[asked->table];
	GhSlot	   *slot = gh_slot_at(number);
	GhError		error = {GH_OK, ""};
	GhStatus	status;

	if (asked->op == GH_SERVICE_PIPELINE)
	{
		run_rows(executor, number, asked, table);
		return;
	}
	status = run_control(executor, number, asked, table, &error);
	if (status == GH_DEVICE_ERROR)
		gh_executor_check_device(&error);
	slot->error = error;
	slot->status = status;
	gh_executor_answer(number);
}
