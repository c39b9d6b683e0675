/*
 * requests.c
 *		What the threads of a worker do with the slots that come through their rings.
 *
 * What a slot says is not trusted: it is copied and checked against what this process
 * knows of the buffer and the table.  No function of PostgreSQL is called here.
 */
#include "postgres.h"

#include "service/threads.h"

/* ----------------------------------------------------------------- answers */

void
gh_executor_count(GhCounter counter, uint64 amount)
{
	pg_atomic_fetch_add_u64(&gh_worker.device->counter[counter], (int64) amount);
}

void
gh_executor_check_device(const GhError *error)
{
	GhDeviceInfo info;
	GhError		ignored;

	if (gh_worker.engine->device_info(gh_worker.cuda_device, &info, &ignored) != GH_OK)
		gh_executor_declare_lost(error);
}

void
gh_executor_answer(uint32 number)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint64		started = pg_atomic_read_u64(&slot->started_ns);
	GhError		ignored;

	(void) gh_executor_pass_point(GH_FAULT_POINT_REPLY, &ignored);
	gh_executor_count(GH_COUNT_REQUESTS, 1);
	slot->queue_ns = slot->run_ns = 0;
	if (started != 0)
	{
		slot->queue_ns = started - Min(slot->submitted_ns, started);
		slot->run_ns = gh_monotonic_ns() - started;
		gh_executor_count(GH_COUNT_QUEUE_NS, slot->queue_ns);
		gh_executor_count(GH_COUNT_RUN_NS, slot->run_ns);
	}
	if (slot->status != GH_OK && slot->status != GH_TOO_SMALL)
		gh_executor_count(GH_COUNT_ERRORS, 1);
	pg_atomic_write_u64(&slot->started_ns, 0);
	if (gh_slot_finish(number, gh_worker.running_by_slot[number].generation))
		gh_executor_tell_main();
}

void
gh_executor_refuse(uint32 number, GhStatus status, const char *why)
{
	GhSlot	   *slot = gh_slot_at(number);

	slot->status = gh_error_set(&slot->error, status, "%s", why);
	gh_executor_answer(number);
}

/* ---------------------------------------------------------------- requests */

bool
gh_executor_array(uint32 number, uint32 units, const void *array, uint64 count, uint64 size)
{
	uint64		room = (uint64) units * GH_UNIT_BYTES;
	uint64		offset = (uint64) ((uintptr_t) array - (uintptr_t) gh_buffer_at(number));

	return array == NULL ||
		(offset % 8 == 0 && offset <= room && (size == 0 || count <= (room - offset) / size));
}

bool
gh_executor_is_buffer(uint32 first, uint32 units)
{
	if (first >= gh_service->units || units == 0 || units > gh_service->units - first)
		return false;
	for (uint32 i = 0; i < units; i++)
		if (pg_atomic_read_u32(gh_unit_at(first + i)) != gh_unit_of(first))
			return false;
	return true;
}

/* The engine's request out of what was asked for, checked. */
static bool
build_request(uint32 number, const GhSlot *asked, const GhWorkerTable *table, GhRequest *request)
{
	uint64		count = asked->request.count;
	uint64		out = asked->request.op == GH_FIND_ALL ? asked->request.values_capacity : count;
	const struct
	{
		const void *array;
		uint64		count;
		uint64		size;
	}			arrays[] = {
		{asked->request.keys, count, table->options.key_size},
		{asked->request.values_in, count, table->options.value_size},
		{asked->request.ops, count, 1},
		{asked->request.values_out, out, table->options.value_size},
		{asked->request.flags_out, count, 1},
		{asked->request.counts_out, count, sizeof(uint64)},
		{asked->request.offsets_out, count + 1, sizeof(uint64)}
	};

	*request = asked->request;
	/* not the session's to say */
	request->on_device = false;
	memset(&request->status, 0, sizeof(GhRequest) - offsetof(GhRequest, status));
	if (!gh_executor_is_buffer(number, asked->units) || count > GH_BATCH_MAX || request->outcome.done > count ||
		out > (uint64) asked->units * GH_UNIT_BYTES)
		return false;
	for (int i = 0; i < (int) lengthof(arrays); i++)
		if (!gh_executor_array(number, asked->units, arrays[i].array, arrays[i].count, arrays[i].size))
			return false;
	return true;
}

/* What went to the device and came back. */
static void
count_bytes(const GhRequest *request, const GhTableOptions *options)
{
	uint64		values = request->op == GH_FIND_ALL ? request->outcome.values_count : request->outcome.done;
	uint64		to = options->key_size + (request->values_in != NULL ? options->value_size : 0) +
		(request->ops != NULL ? 1 : 0);
	uint64		from = (request->flags_out != NULL ? 1 : 0) +
		(request->counts_out != NULL ? sizeof(uint64) : 0) +
		(request->offsets_out != NULL ? sizeof(uint64) : 0);

	gh_executor_count(GH_COUNT_BYTES_TO, request->outcome.done * to);
	gh_executor_count(GH_COUNT_BYTES_FROM, request->outcome.done * from +
					  (request->values_out != NULL ? values * options->value_size : 0));
}

/* The engine is through with a request. */
static void
finish_request(uint32 number, const GhWorkerTable *table, const GhRequest *request, GhStatus status)
{
	GhSlot	   *slot = gh_slot_at(number);

	slot->status = status;
	if (status != GH_OK)
		slot->error = request->error;
	slot->request.outcome = request->outcome;
	gh_executor_count(GH_COUNT_BATCHES, 1);
	gh_executor_count(GH_COUNT_KEYS, request->outcome.done);
	count_bytes(request, &table->options);
	if (status == GH_DEVICE_ERROR)
		gh_executor_check_device(&request->error);
	gh_executor_answer(number);
}

static void
run_request(GhExecutor *executor, uint32 number, const GhSlot *asked, GhWorkerTable *table)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];
	GhStatus	status;

	/* one that a pipeline made does not change any more */
	if (!table->was_made)
		gh_executor_drain_users(executor, table);
	if (!build_request(number, asked, table, &running->request))
	{
		gh_executor_refuse(number, GH_INVALID, "an array of the request is outside its buffer");
		return;
	}
	status = gh_executor_pass_point(gh_fault_point_of(running->request.op), &running->request.error);
	if (status == GH_OK)
		status = gh_worker.engine->submit(table->handle, &running->request);
	if (status != GH_OK && status != GH_BUSY)
	{
		finish_request(number, table, &running->request, status);
		return;
	}
	gh_executor_runs(executor, number, table, GH_RUNNING_TABLE);
}

void
gh_executor_runs(GhExecutor *executor, uint32 number, GhWorkerTable *table, GhRunningKind kind)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];

	running->active = true;
	running->kind = kind;
	running->table = table->number;
	table->running++;
	executor->running[executor->nrunning++] = number;
}

static GhStatus
poll_running(GhRunning *running)
{
	switch (running->kind)
	{
		case GH_RUNNING_PIPELINE:
			return gh_worker.engine->pipelines->poll(&running->pipeline_request);
		default:
			return gh_worker.engine->poll(&running->request);
	}
}

static void
finish_running(uint32 number, GhStatus status)
{
	GhRunning  *running = &gh_worker.running_by_slot[number];

	if (running->kind == GH_RUNNING_PIPELINE)
		gh_pipelines_finish(number, status);
	else
		finish_request(number, &gh_worker.tables[running->table], &running->request, status);
}

/* Polls everything in the engine once; true when something ended. */
bool
gh_executor_poll(GhExecutor *executor)
{
	bool		ended = false;

	for (uint32 i = 0; i < executor->nrunning;)
	{
		uint32		number = executor->running[i];
		GhRunning  *running = &gh_worker.running_by_slot[number];
		GhWorkerTable *table = &gh_worker.tables[running->table];
		GhStatus	status = poll_running(running);

		if (status == GH_BUSY)
		{
			i++;
			continue;
		}
		running->active = false;
		table->running--;
		/* order is kept: the oldest is looked at first */
		executor->nrunning--;
		memmove(&executor->running[i], &executor->running[i + 1],
				(executor->nrunning - i) * sizeof(uint32));
		finish_running(number, status);
		ended = true;
	}
	return ended;
}

void
gh_executor_drain(GhExecutor *executor, const GhWorkerTable *table)
{
	while (table->running > 0)
		(void) gh_executor_poll(executor);
}

/* Which ones use it is not known from here: they are of this executor. */
void
gh_executor_drain_users(GhExecutor *executor, const GhWorkerTable *table)
{
	while (table->users > 0 && executor->nrunning > 0)
		(void) gh_executor_poll(executor);
}

/* --------------------------------------------------------- other requests */

static void
create_table(uint32 number, const GhSlot *asked, GhWorkerTable *table)
{
	GhSlot	   *slot = gh_slot_at(number);
	GhHost		host;

	gh_executor_host(table, &host);
	table->was_made = false;
	table->options = asked->options;
	table->options.device = gh_worker.cuda_device;
	table->generation = asked->table_generation;
	slot->status = gh_executor_pass_point(GH_FAULT_POINT_CREATE, &slot->error);
	if (slot->status == GH_OK)
		slot->status = gh_worker.engine->table_create(&host, &table->options, &table->handle, &slot->error);
	if (slot->status != GH_OK)
		table->handle = NULL;
	if (slot->status == GH_DEVICE_ERROR)
		gh_executor_check_device(&slot->error);
	else
		gh_executor_note_memory();
	gh_executor_answer(number);
}

static GhStatus
control_table(GhSlot *slot, const GhSlot *asked, GhWorkerTable *table)
{
	static const GhFaultPoint points[] = {
		[GH_SERVICE_CLEAR] = GH_FAULT_POINT_CLEAR,
		[GH_SERVICE_RESERVE] = GH_FAULT_POINT_RESERVE,
		[GH_SERVICE_FLUSH] = GH_FAULT_POINT_FLUSH,
		[GH_SERVICE_STATS] = GH_FAULT_POINT_STATS,
	};
	GhStatus	status = gh_executor_pass_point(points[asked->op], &slot->error);

	if (status != GH_OK)
		return status;
	switch (asked->op)
	{
		case GH_SERVICE_CLEAR:
			return gh_worker.engine->table_clear(table->handle, &slot->error);
		case GH_SERVICE_RESERVE:
			return gh_worker.engine->table_reserve(table->handle, asked->keys_wanted, &slot->error);
		case GH_SERVICE_FLUSH:
			return gh_worker.engine->table_flush(table->handle, &slot->error);
		default:
			slot->options = table->options;
			slot->was_made = table->was_made;
			return gh_worker.engine->table_stats(table->handle, &slot->stats, &slot->error);
	}
}

static void
create_span(uint32 number, const GhSlot *asked, GhWorkerTable *table)
{
	GhSlot	   *slot = gh_slot_at(number);

	slot->status = gh_spans_create(asked, table, &slot->error);
	if (slot->status == GH_DEVICE_ERROR)
		gh_executor_check_device(&slot->error);
	else
		gh_executor_note_memory();
	gh_executor_answer(number);
}

/* ----------------------------------------------------------------- entries */

/* Why the slot's process may not use the entry of that number and generation; NULL: it may. */
static const char *
entry_refusal(const GhSlot *asked, uint32 table, uint64 generation)
{
	const GhTableEntry *entry;
	uint64		word;

	if (table >= GH_TABLES_MAX)
		return "there is no such table";
	entry = gh_table_entry_at(table);
	word = pg_atomic_read_u64((pg_atomic_uint64 *) &entry->word);
	if (word != gh_slot_word(generation, GH_TABLE_LIVE) || entry->device != gh_worker.device_index)
		return "the table is gone";
	if (entry->procno == -1 ? entry->database != asked->database : entry->procno != asked->procno)
		return "the table is another session's";
	return NULL;
}

/* Is the entry of the kind that an operation is of? */
static bool
has_what_is_asked(const GhWorkerTable *table, GhServiceOp op)
{
	if (op < GH_SERVICE_PIPELINE_CREATE)
		return table->handle != NULL;
	/* a client that was stopped may not know that its table was made */
	if (op == GH_SERVICE_PIPELINE_TABLE || op == GH_SERVICE_PIPELINE_STATS)
		return table->pipeline != NULL || (table->handle != NULL && table->was_made);
	return table->pipeline != NULL;
}

/* Whether the slot's process may use the table of that number and generation. */
static const char *
refusal(const GhSlot *asked)
{
	const char *why = entry_refusal(asked, asked->table, asked->table_generation);
	const GhWorkerTable *table = &gh_worker.tables[asked->table % GH_TABLES_MAX];

	if (why != NULL)
		return why;
	if (gh_op_creates(asked->op))
		return table->handle != NULL || table->pipeline != NULL || table->marks != NULL || table->span != NULL ?
			"the table is there already" : NULL;
	if (!has_what_is_asked(table, asked->op) || table->generation != asked->table_generation)
		return "the table was not made";
	return NULL;
}

GhWorkerTable *
gh_executor_named(const GhExecutor *executor, const GhSlot *asked, uint32 table, uint64 generation, const char **why)
{
	*why = entry_refusal(asked, table, generation);
	if (*why == NULL && table % GH_EXECUTORS != executor->number)
		*why = "the table is another executor's";
	if (*why == NULL && gh_worker.tables[table].generation != generation)
		*why = "the table was not made";
	return *why == NULL ? &gh_worker.tables[table] : NULL;
}

void
gh_executor_hold(GhWorkerTable *user, uint32 used)
{
	user->used[user->nused++] = used;
	gh_worker.tables[used].users++;
}

/* What is used may wait to be freed. */
void
gh_executor_let_go(GhExecutor *executor, GhWorkerTable *user)
{
	for (uint32 i = 0; i < user->nused; i++)
		gh_worker.tables[user->used[i]].users--;
	if (user->nused > 0)
		pg_atomic_write_u32(&executor->ring->dying, 1);
	user->nused = 0;
}

/* A request that was checked, except for its arrays. */
static void
start_request(GhExecutor *executor, uint32 number, const GhSlot *asked)
{
	GhSlot	   *slot = gh_slot_at(number);
	GhWorkerTable *table = &gh_worker.tables[asked->table];
	uint64		now = gh_monotonic_ns();

	pg_atomic_write_u64(&slot->started_ns, now);
	pg_atomic_write_u64(&gh_table_entry_at(asked->table)->used_ns, now);
	switch (asked->op)
	{
		case GH_SERVICE_RUN:
			run_request(executor, number, asked, table);
			break;
		case GH_SERVICE_CREATE:
			create_table(number, asked, table);
			break;
		case GH_SERVICE_CLEAR:
		case GH_SERVICE_RESERVE:
		case GH_SERVICE_FLUSH:
		case GH_SERVICE_STATS:
			gh_executor_drain(executor, table);
			if (!table->was_made)
				gh_executor_drain_users(executor, table);
			slot->status = control_table(slot, asked, table);
			if (slot->status == GH_DEVICE_ERROR)
				gh_executor_check_device(&slot->error);
			gh_executor_answer(number);
			break;
		case GH_SERVICE_SPAN_CREATE:
			create_span(number, asked, table);
			break;
		case GH_SERVICE_PIPELINE_CREATE:
		case GH_SERVICE_PIPELINE:
		case GH_SERVICE_PIPELINE_RESULTS:
		case GH_SERVICE_PIPELINE_TABLE:
		case GH_SERVICE_PIPELINE_CLEAR:
		case GH_SERVICE_PIPELINE_STATS:
		case GH_SERVICE_MARKS_CREATE:
			gh_pipelines_start(executor, number, asked);
			break;
		default:
			gh_executor_refuse(number, GH_INVALID, "there is no such request");
	}
}

/*
 * A slot that came through the ring, with the request that the generation names.  A client
 * that was stopped on its way may have appended it late, after an earlier worker ended:
 * then the slot has another generation, before or after it is copied.
 */
void
gh_executor_start(GhExecutor *executor, uint32 number, uint64 generation)
{
	GhSlot		asked;
	const char *why;
	uint64		word;

	if (number >= gh_service->slots || gh_worker.running_by_slot[number].active)
		return;
	word = pg_atomic_read_u64(&gh_slot_at(number)->word);
	if (word != gh_slot_word(generation, GH_SLOT_SUBMITTED) &&
		word != gh_slot_word(generation, GH_SLOT_ABANDONED))
		return;
	pg_read_barrier();
	asked = *gh_slot_at(number);
	pg_read_barrier();
	word = pg_atomic_read_u64(&gh_slot_at(number)->word);
	if (gh_slot_generation(word) != generation || asked.device != gh_worker.device_index ||
		asked.table % GH_EXECUTORS != executor->number)
		return;
	gh_worker.running_by_slot[number].generation = generation;
	why = asked.instance != gh_worker.instance ? "the worker was started anew" : refusal(&asked);
	if (why != NULL)
		gh_executor_refuse(number, GH_DEVICE_ERROR, why);
	else
		start_request(executor, number, &asked);
}

void
gh_executor_note_dying(uint32 table)
{
	pg_atomic_write_u32(&gh_worker.device->ring[table % GH_EXECUTORS].dying, 1);
	/* it may sleep */
	gh_executor_tell_main();
}

/* False: it is to stay as yet, which is told when that ends. */
static bool
reap_table(GhExecutor *executor, GhWorkerTable *table, uint64 generation)
{
	GhTable    *handle = table->handle;
	GhError		ignored;

	if (table->span != NULL && table->generation == generation && !gh_spans_destroy(table))
		return false;
	gh_executor_drain(executor, table);
	/* the device may hang here as in a request, but no slot tells */
	pg_atomic_write_u64(&executor->reaping_ns, gh_monotonic_ns());
	(void) gh_executor_pass_point(GH_FAULT_POINT_DESTROY, &ignored);
	if ((table->pipeline != NULL || table->marks != NULL) && table->generation == generation)
		gh_pipelines_destroy(executor, table);
	if (handle != NULL && table->generation == generation)
	{
		table->handle = NULL;
		table->was_made = false;
		gh_worker.engine->table_destroy(handle);
	}
	gh_executor_note_memory();
	pg_atomic_write_u64(&executor->reaping_ns, 0);
	return true;
}

/*
 * Frees tables that nobody wants any more; true when there was one.  Whoever makes an
 * entry DYING sets the flag after that: so it is taken back first and then all are
 * looked at.  What is used by others stays until they are gone, which set the flag again.
 */
bool
gh_executor_reap(GhExecutor *executor)
{
	bool		found = false;

	if (pg_atomic_read_u32(&executor->ring->dying) == 0)
		return false;
	pg_atomic_write_u32(&executor->ring->dying, 0);
	pg_memory_barrier();
	for (uint32 i = executor->number; i < GH_TABLES_MAX; i += GH_EXECUTORS)
	{
		GhTableEntry *entry = gh_table_entry_at(i);
		uint64		word = pg_atomic_read_u64(&entry->word);
		uint64		generation = gh_slot_generation(word);

		if ((GhTableState) gh_slot_state(word) != GH_TABLE_DYING || entry->device != gh_worker.device_index ||
			gh_worker.tables[i].users > 0 || !reap_table(executor, &gh_worker.tables[i], generation))
			continue;
		pg_atomic_write_u64(&entry->word, gh_slot_word(generation + 1, GH_TABLE_FREE));
		found = true;
	}
	return found;
}
