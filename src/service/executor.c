/*
 * executor.c
 *		The threads of a worker that talk to the device.
 *
 * Each has the tables whose number is its own modulo GH_EXECUTORS, so that a table
 * is used by one thread and its requests are done in the order of their submission.
 * A thread takes slots from its ring, checks what they ask for, hands them to the
 * engine, and polls until they are through; finds of many tables are in flight at a
 * time.  With nothing to do it looks for gpuhash.worker_spin longer and then sleeps.
 *
 * Threads call no function of PostgreSQL (atomics are none): waking sleeping clients,
 * logging and ending the process is the main thread's, which is told through a pipe.
 * What a slot says is not trusted: it is copied and checked against what this process
 * knows of the buffer and the table.
 */
#include "postgres.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/executor.h"
#include "service/faults.h"
#include "service/shared.h"

/* Empty looks at the ring between two looks at the clock. */
#define GH_LOOKS_PER_TICK 64

/* The engines ask for this; and for host memory of any size. */
#define GH_HOST_ALIGNMENT 64

typedef struct Executor
{
	pthread_t	thread;
	GhRing	   *ring;
	uint32		number;
	pg_atomic_uint64 reaping_ns;	/* since when it frees a table; 0: it does not */
	uint32	   *running;		/* slots with a request in the engine */
	uint32		nrunning;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool		woken;
} Executor;

/* A request in the engine, by slot. */
typedef struct Running
{
	bool		active;
	uint32		table;
	GhRequest	request;
} Running;

/* A table of this worker. */
typedef struct WorkerTable
{
	GhTable    *handle;			/* NULL: none */
	uint64		generation;
	GhTableOptions options;
	uint32		running;		/* requests in the engine */
	uint32		number;
} WorkerTable;

static Executor executors[GH_EXECUTORS];
static Running *running_by_slot;
static WorkerTable *tables;
static const GhEngine *engine;
static GhDevice *device;
static uint32 device_index;
static int	cuda_device;
static uint64 instance;
static int	wake_pipe;

/* Set by a thread, read by the main thread: the device is of no use any more. */
static pg_atomic_uint32 device_lost;
static GhError lost_error;

/* ------------------------------------------------------------------ losses */

static void
tell_main(void)
{
	char		byte = 0;

	/* a full pipe wakes it, too */
	if (write(wake_pipe, &byte, 1) < 0)
		return;
}

static void
declare_lost(const GhError *error)
{
	if (pg_atomic_read_u32(&device_lost) != 0)
		return;
	lost_error = *error;
	pg_write_barrier();
	pg_atomic_write_u32(&device_lost, 1);
	tell_main();
}

bool
gh_executors_device_lost(GhError *error)
{
	if (pg_atomic_read_u32(&device_lost) == 0)
		return false;
	pg_read_barrier();
	*error = lost_error;
	return true;
}

/* A fault point on the way of a request: what a test wants to happen, as a status. */
static GhStatus
pass_point(GhFaultPoint point, GhError *error)
{
	GhFaultKind kind = gh_fault_pass(point);
	GhStatus	status = gh_fault_status(kind, error);

	if (kind == GH_FAULT_STICKY)
		declare_lost(error);
	return status;
}

/* ----------------------------------------------------------------- memory */

static GhRef
host_alloc(void *ctx, size_t bytes)
{
	(void) ctx;
	bytes = (bytes + GH_HOST_ALIGNMENT - 1) / GH_HOST_ALIGNMENT * GH_HOST_ALIGNMENT;
	return (GhRef) (uintptr_t) aligned_alloc(GH_HOST_ALIGNMENT, bytes);
}

static void
host_free(void *ctx, GhRef ref)
{
	(void) ctx;
	free((void *) (uintptr_t) ref);
}

static void *
host_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

/* Device memory, counted for the table and within the limit for all of them. */
static bool
take_device(void *ctx, uint64_t bytes)
{
	WorkerTable *table = ctx;
	uint64		before = pg_atomic_fetch_add_u64(&device->memory_used, (int64) bytes);
	GhError		ignored;

	if (pass_point(GH_FAULT_POINT_ALLOCATION, &ignored) != GH_OK ||
		before + bytes > pg_atomic_read_u64(&device->memory_limit))
	{
		pg_atomic_fetch_sub_u64(&device->memory_used, (int64) bytes);
		return false;
	}
	pg_atomic_fetch_add_u64(&gh_table_entry_at(table->number)->bytes, (int64) bytes);
	return true;
}

static void
give_device(void *ctx, uint64_t bytes)
{
	WorkerTable *table = ctx;

	pg_atomic_fetch_sub_u64(&device->memory_used, (int64) bytes);
	pg_atomic_fetch_sub_u64(&gh_table_entry_at(table->number)->bytes, (int64) bytes);
}

/* ----------------------------------------------------------------- answers */

static void
count(GhCounter counter, uint64 amount)
{
	pg_atomic_fetch_add_u64(&device->counter[counter], (int64) amount);
}

/* What of the device's memory is free, tables of others counted in. */
static void
note_free_memory(void)
{
	GhDeviceInfo info;
	GhError		ignored;

	if (engine->device_info(cuda_device, &info, &ignored) == GH_OK)
		device->info.memory_free = info.memory_free;
}

/* After an error that cost a table its content: does the device still answer? */
static void
check_device(const GhError *error)
{
	GhDeviceInfo info;
	GhError		ignored;

	if (engine->device_info(cuda_device, &info, &ignored) != GH_OK)
		declare_lost(error);
}

/* The slot's answer is written; whoever waits is told. */
static void
slot_answer(uint32 number)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint64		started = pg_atomic_read_u64(&slot->started_ns);
	GhError		ignored;

	(void) pass_point(GH_FAULT_POINT_REPLY, &ignored);
	count(GH_COUNT_REQUESTS, 1);
	if (started != 0)
	{
		count(GH_COUNT_QUEUE_NS, started - Min(slot->submitted_ns, started));
		count(GH_COUNT_RUN_NS, gh_monotonic_ns() - started);
	}
	if (slot->status != GH_OK && slot->status != GH_TOO_SMALL)
		count(GH_COUNT_ERRORS, 1);
	pg_atomic_write_u64(&slot->started_ns, 0);
	if (gh_slot_finish(number))
		tell_main();
}

static void
slot_refuse(uint32 number, GhStatus status, const char *why)
{
	GhSlot	   *slot = gh_slot_at(number);

	slot->status = gh_error_set(&slot->error, status, "%s", why);
	slot_answer(number);
}

/* ---------------------------------------------------------------- requests */

/* An array of `bytes` in the slot's buffer; false when it would leave it. */
static bool
place_array(uint32 number, uint32 units, GhOffset offset, uint64 count, uint64 size,
			void **array)
{
	uint64		room = (uint64) units * GH_UNIT_BYTES;

	*array = NULL;
	if (offset == GH_NO_ARRAY)
		return true;
	if (offset % 8 != 0 || offset > room || (size != 0 && count > (room - offset) / size))
		return false;
	*array = gh_buffer_at(number) + offset;
	return true;
}

/* Whether a buffer of so many units, and no other, begins there. */
static bool
is_buffer(uint32 first, uint32 units)
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
build_request(uint32 number, const GhSlot *asked, const WorkerTable *table, GhRequest *request)
{
	uint32		units = asked->units;
	void	   *keys;
	void	   *values_in;
	void	   *ops;
	void	   *flags;
	void	   *counts;
	void	   *offsets;
	uint64		out = asked->run_op == GH_FIND_ALL ? asked->values_capacity : asked->count;

	if (!is_buffer(number, units) || asked->count > GH_BATCH_MAX ||
		asked->done > asked->count || out > (uint64) units * GH_UNIT_BYTES)
		return false;
	memset(request, 0, sizeof(*request));
	if (!place_array(number, units, asked->keys, asked->count, table->options.key_size, &keys) ||
		!place_array(number, units, asked->values_in, asked->count, table->options.value_size, &values_in) ||
		!place_array(number, units, asked->ops, asked->count, 1, &ops) ||
		!place_array(number, units, asked->values_out, out, table->options.value_size, &request->values_out) ||
		!place_array(number, units, asked->flags_out, asked->count, 1, &flags) ||
		!place_array(number, units, asked->counts_out, asked->count, sizeof(uint64), &counts) ||
		!place_array(number, units, asked->offsets_out, asked->count + 1, sizeof(uint64), &offsets))
		return false;
	request->op = asked->run_op;
	request->count = asked->count;
	request->keys = keys;
	request->values_in = values_in;
	request->ops = ops;
	request->absent = asked->absent;
	request->flags_out = flags;
	request->counts_out = counts;
	request->offsets_out = offsets;
	request->values_capacity = asked->values_capacity;
	request->done = asked->done;
	request->matched = asked->matched;
	request->inserted = asked->inserted;
	request->replaced = asked->replaced;
	request->removed = asked->removed;
	request->values_count = asked->values_count;
	return true;
}

/* What went to the device and came back. */
static void
count_bytes(const GhRequest *request, const GhTableOptions *options)
{
	uint64		values = request->op == GH_FIND_ALL ? request->values_count : request->done;
	uint64		to = options->key_size + (request->values_in != NULL ? options->value_size : 0) +
		(request->ops != NULL ? 1 : 0);
	uint64		from = (request->flags_out != NULL ? 1 : 0) +
		(request->counts_out != NULL ? sizeof(uint64) : 0) +
		(request->offsets_out != NULL ? sizeof(uint64) : 0);

	count(GH_COUNT_BYTES_TO, request->done * to);
	count(GH_COUNT_BYTES_FROM, request->done * from +
		  (request->values_out != NULL ? values * options->value_size : 0));
}

/* The engine is through with a request. */
static void
finish_request(uint32 number, const WorkerTable *table, const GhRequest *request, GhStatus status)
{
	GhSlot	   *slot = gh_slot_at(number);

	slot->status = status;
	if (status != GH_OK)
		slot->error = request->error;
	slot->done = request->done;
	slot->matched = request->matched;
	slot->inserted = request->inserted;
	slot->replaced = request->replaced;
	slot->removed = request->removed;
	slot->values_count = request->values_count;
	count(GH_COUNT_BATCHES, 1);
	count(GH_COUNT_KEYS, request->done);
	count_bytes(request, &table->options);
	if (status == GH_DEVICE_ERROR)
		check_device(&request->error);
	slot_answer(number);
}

static void
run_request(Executor *executor, uint32 number, const GhSlot *asked, WorkerTable *table)
{
	Running    *running = &running_by_slot[number];
	GhStatus	status;

	if (!build_request(number, asked, table, &running->request))
	{
		slot_refuse(number, GH_INVALID, "an array of the request is outside its buffer");
		return;
	}
	status = pass_point(gh_fault_point_of(running->request.op), &running->request.error);
	if (status == GH_OK)
		status = engine->submit(table->handle, &running->request);
	if (status != GH_OK && status != GH_BUSY)
	{
		finish_request(number, table, &running->request, status);
		return;
	}
	running->active = true;
	running->table = table->number;
	table->running++;
	executor->running[executor->nrunning++] = number;
}

/* Polls everything in the engine once; true when something ended. */
static bool
poll_running(Executor *executor)
{
	bool		ended = false;

	for (uint32 i = 0; i < executor->nrunning;)
	{
		uint32		number = executor->running[i];
		Running    *running = &running_by_slot[number];
		GhStatus	status = engine->poll(&running->request);

		if (status == GH_BUSY)
		{
			i++;
			continue;
		}
		running->active = false;
		tables[running->table].running--;
		/* order is kept: the oldest is looked at first */
		executor->nrunning--;
		memmove(&executor->running[i], &executor->running[i + 1],
				(executor->nrunning - i) * sizeof(uint32));
		finish_request(number, &tables[running->table], &running->request, status);
		ended = true;
	}
	return ended;
}

/* Until nothing of the table is in the engine. */
static void
drain_table(Executor *executor, const WorkerTable *table)
{
	while (table->running > 0)
		(void) poll_running(executor);
}

/* --------------------------------------------------------- other requests */

static void
create_table(uint32 number, const GhSlot *asked, WorkerTable *table)
{
	GhSlot	   *slot = gh_slot_at(number);
	GhHost		host = {0};

	host.ctx = table;
	host.alloc = host_alloc;
	host.free = host_free;
	host.address = host_address;
	host.take_device = take_device;
	host.give_device = give_device;
	table->options = asked->options;
	table->options.device = cuda_device;
	table->generation = asked->table_generation;
	slot->status = pass_point(GH_FAULT_POINT_CREATE, &slot->error);
	if (slot->status == GH_OK)
		slot->status = engine->table_create(&host, &table->options, &table->handle, &slot->error);
	if (slot->status != GH_OK)
		table->handle = NULL;
	if (slot->status == GH_DEVICE_ERROR)
		check_device(&slot->error);
	else
		note_free_memory();
	slot_answer(number);
}

static GhStatus
control_table(GhSlot *slot, const GhSlot *asked, WorkerTable *table)
{
	static const GhFaultPoint points[] = {
		[GH_SERVICE_CLEAR] = GH_FAULT_POINT_CLEAR,
		[GH_SERVICE_RESERVE] = GH_FAULT_POINT_RESERVE,
		[GH_SERVICE_FLUSH] = GH_FAULT_POINT_FLUSH,
		[GH_SERVICE_STATS] = GH_FAULT_POINT_STATS,
	};
	GhStatus	status = pass_point(points[asked->op], &slot->error);

	(void) points;
	if (status != GH_OK)
		return status;
	switch (asked->op)
	{
		case GH_SERVICE_CLEAR:
			return engine->table_clear(table->handle, &slot->error);
		case GH_SERVICE_RESERVE:
			return engine->table_reserve(table->handle, asked->keys_wanted, &slot->error);
		case GH_SERVICE_FLUSH:
			return engine->table_flush(table->handle, &slot->error);
		default:
			slot->options = table->options;
			return engine->table_stats(table->handle, &slot->stats, &slot->error);
	}
}

/* Whether the slot's process may use the table of that number and generation. */
static const char *
refusal(const GhSlot *asked)
{
	const GhTableEntry *entry;
	uint64		word;

	if (asked->table >= GH_TABLES_MAX)
		return "there is no such table";
	entry = gh_table_entry_at(asked->table);
	word = pg_atomic_read_u64((pg_atomic_uint64 *) &entry->word);
	if (word != gh_slot_word(asked->table_generation, GH_TABLE_LIVE) || entry->device != device_index)
		return "the table is gone";
	if (entry->procno == -1 ? entry->database != asked->database : entry->procno != asked->procno)
		return "the table is another session's";
	if (asked->op == GH_SERVICE_CREATE)
		return tables[asked->table].handle != NULL ? "the table is there already" : NULL;
	if (tables[asked->table].handle == NULL || tables[asked->table].generation != asked->table_generation)
		return "the table was not made";
	return NULL;
}

/* A request that was checked, except for its arrays. */
static void
start_request(Executor *executor, uint32 number, const GhSlot *asked)
{
	GhSlot	   *slot = gh_slot_at(number);
	WorkerTable *table = &tables[asked->table];
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
			drain_table(executor, table);
			slot->status = control_table(slot, asked, table);
			if (slot->status == GH_DEVICE_ERROR)
				check_device(&slot->error);
			slot_answer(number);
			break;
		default:
			slot_refuse(number, GH_INVALID, "there is no such request");
	}
}

/*
 * A slot that came through the ring.  A client that was stopped on its way may have
 * appended it late, after an earlier worker ended and the slot went to another: what
 * is not SUBMITTED, not this executor's or in the engine already is passed over.
 */
static void
start_slot(Executor *executor, uint32 number)
{
	GhSlotState state;
	GhSlot		asked;
	const char *why;

	if (number >= gh_service->slots || running_by_slot[number].active)
		return;
	state = gh_slot_state(pg_atomic_read_u64(&gh_slot_at(number)->word));
	if (state != GH_SLOT_SUBMITTED && state != GH_SLOT_ABANDONED)
		return;
	pg_read_barrier();
	asked = *gh_slot_at(number);
	if (asked.device != device_index || asked.table % GH_EXECUTORS != executor->number)
		return;
	why = asked.instance != instance ? "the worker was started anew" : refusal(&asked);
	if (why != NULL)
		slot_refuse(number, GH_DEVICE_ERROR, why);
	else
		start_request(executor, number, &asked);
}

static void
reap_table(Executor *executor, WorkerTable *table, uint64 generation)
{
	GhTable    *handle = table->handle;
	GhError		ignored;

	drain_table(executor, table);
	/* the device may hang here as in a request, but no slot tells */
	pg_atomic_write_u64(&executor->reaping_ns, gh_monotonic_ns());
	(void) pass_point(GH_FAULT_POINT_DESTROY, &ignored);
	if (handle != NULL && table->generation == generation)
	{
		table->handle = NULL;
		engine->table_destroy(handle);
	}
	pg_atomic_write_u64(&executor->reaping_ns, 0);
}

/*
 * Frees tables that nobody wants any more; true when there was one.  Whoever makes an
 * entry DYING sets the flag after that: so it is taken back first and then all are
 * looked at.
 */
static bool
reap_tables(Executor *executor)
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

		if ((GhTableState) gh_slot_state(word) != GH_TABLE_DYING || entry->device != device_index)
			continue;
		reap_table(executor, &tables[i], generation);
		pg_atomic_write_u64(&entry->word, gh_slot_word(generation + 1, GH_TABLE_FREE));
		found = true;
	}
	return found;
}

/* Since when a table is being freed, by the executor that is at it longest; 0: by none. */
uint64
gh_executors_reaping_since(void)
{
	uint64		oldest = 0;

	for (int i = 0; i < GH_EXECUTORS; i++)
	{
		uint64		since = pg_atomic_read_u64(&executors[i].reaping_ns);

		if (since != 0 && (oldest == 0 || since < oldest))
			oldest = since;
	}
	return oldest;
}

/* ----------------------------------------------------------------- threads */

/* Until the main thread says that there is something to do. */
static void
sleep_executor(Executor *executor)
{
	GhRing	   *ring = executor->ring;
	uint32		slot;

	pg_atomic_write_u32(&ring->asleep, 1);
	pg_memory_barrier();
	/* what came in before the flag was seen */
	if (gh_ring_take(ring, &slot))
	{
		pg_atomic_write_u32(&ring->asleep, 0);
		start_slot(executor, slot);
		return;
	}
	if (pg_atomic_read_u32(&ring->dying) == 0)
	{
		pthread_mutex_lock(&executor->mutex);
		while (!executor->woken)
			pthread_cond_wait(&executor->wake, &executor->mutex);
		executor->woken = false;
		pthread_mutex_unlock(&executor->mutex);
	}
	pg_atomic_write_u32(&ring->asleep, 0);
}

static void *
executor_main(void *arg)
{
	Executor   *executor = arg;
	uint64		idle_since = gh_monotonic_ns();
	uint32		looks = 0;

	for (;;)
	{
		bool		busy = false;
		uint32		slot;

		while (gh_ring_take(executor->ring, &slot))
		{
			start_slot(executor, slot);
			busy = true;
		}
		busy |= poll_running(executor);
		busy |= reap_tables(executor);
		if (busy || executor->nrunning > 0)
		{
			looks = 0;
			idle_since = 0;
			continue;
		}
		pg_spin_delay();
		if (++looks % GH_LOOKS_PER_TICK != 0)
			continue;
		if (idle_since == 0)
			idle_since = gh_monotonic_ns();
		if (gh_monotonic_ns() - idle_since >= (uint64) gh_worker_spin * 1000)
		{
			sleep_executor(executor);
			idle_since = 0;
		}
	}
	return NULL;
}

/* Whether a sleeping executor would find something; its client has appended by now. */
static bool
has_work(GhRing *ring)
{
	return pg_atomic_read_u64(&ring->head) != pg_atomic_read_u64(&ring->tail) ||
		pg_atomic_read_u32(&ring->dying) != 0;
}

void
gh_executors_wake(void)
{
	for (int i = 0; i < GH_EXECUTORS; i++)
	{
		Executor   *executor = &executors[i];

		if (pg_atomic_read_u32(&executor->ring->asleep) == 0 || !has_work(executor->ring))
			continue;
		pthread_mutex_lock(&executor->mutex);
		executor->woken = true;
		pthread_cond_signal(&executor->wake);
		pthread_mutex_unlock(&executor->mutex);
	}
}

bool
gh_executors_asleep(void)
{
	for (int i = 0; i < GH_EXECUTORS; i++)
		if (pg_atomic_read_u32(&executors[i].ring->asleep) == 0)
			return false;
	return true;
}

/* Called once in a worker, with all signals blocked, which the threads inherit. */
bool
gh_executors_start(uint32 index, int cuda_number, const GhEngine *the_engine, int pipe_end)
{
	device_index = index;
	device = &gh_service->device[index];
	instance = pg_atomic_read_u64(&device->instance);
	cuda_device = cuda_number;
	engine = the_engine;
	wake_pipe = pipe_end;
	pg_atomic_init_u32(&device_lost, 0);
	running_by_slot = calloc(gh_service->slots, sizeof(Running));
	tables = calloc(GH_TABLES_MAX, sizeof(WorkerTable));
	if (running_by_slot == NULL || tables == NULL)
		return false;
	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
		tables[i].number = i;
	for (uint32 i = 0; i < GH_EXECUTORS; i++)
	{
		Executor   *executor = &executors[i];

		executor->number = i;
		pg_atomic_init_u64(&executor->reaping_ns, 0);
		executor->ring = &device->ring[i];
		executor->running = calloc(gh_service->slots, sizeof(uint32));
		if (executor->running == NULL ||
			pthread_mutex_init(&executor->mutex, NULL) != 0 ||
			pthread_cond_init(&executor->wake, NULL) != 0)
			return false;
		pg_atomic_write_u32(&executor->ring->asleep, 0);
		if (pthread_create(&executor->thread, NULL, executor_main, executor) != 0)
			return false;
	}
	return true;
}
