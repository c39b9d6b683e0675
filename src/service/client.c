/*
 * client.c
 *		The service as an engine: what a session does to have a worker's GPU build,
 *		change and search its tables.
 *
 * Each request goes into the slot of the buffer that its arrays are in; requests
 * without arrays go into the slot of the process.  The slot's number is appended
 * to the ring of the executor that has the table, and from then on slot and buffer
 * are the service's until it says that it is through.  A client that cannot wait
 * so long leaves the slot where it is: the executor frees it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "service/client.h"
#include "service/shared.h"

/* For so long a client looks before it sleeps: a small request is through by then. */
#define GH_CLIENT_SPIN_NS UINT64CONST(50000)

/* An interrupt that may not throw waits so long for the answer. */
#define GH_INTERRUPT_MS 20

/* A sleeping client looks at least so often whether its worker is still there. */
#define GH_CLIENT_NAP_MS 1000

/* While the process's slot has an earlier request, it is looked at so often. */
#define GH_SLOT_RETRY_MS 1

static GhServiceTable *own_tables = NULL;

/* ----------------------------------------------------------------- devices */

GhDevice *
gh_device_at(int device)
{
	if (gh_service == NULL || device < 0 || (uint32) device >= gh_service->devices)
		return NULL;
	return &gh_service->device[device];
}

uint64
gh_service_device_memory(int device)
{
	return gh_device_at(device) == NULL ? 0 : gh_memory_of_device(gh_device_at(device));
}

bool
gh_device_is_ready(GhDevice *device)
{
	return pg_atomic_read_u32(&device->state) == GH_DEVICE_READY;
}

bool
gh_service_ready(const char **reason, bool *down)
{
	*down = false;
	for (uint32 i = 0; i < gh_service->devices; i++)
	{
		GhDevice   *device = &gh_service->device[i];
		uint32		state = pg_atomic_read_u32(&device->state);

		if (state == GH_DEVICE_READY)
			return true;
		if (state != GH_DEVICE_ABSENT)
			*down = true;
	}
	*reason = *down ? "the GPU worker is starting" : "no usable GPU";
	return false;
}

/* Pages that stay make room for all else. */
static uint64
memory_left(GhDevice *device)
{
	uint64		limit = pg_atomic_read_u64(&device->memory_limit);
	uint64		resident = pg_atomic_read_u64(&device->resident_used);
	uint64		used = pg_atomic_read_u64(&device->memory_used);

	used -= Min(used, resident);
	return used < limit ? Min(limit - used, device->info.memory_free + resident) : 0;
}

int
gh_service_device_number(int device)
{
	return gh_device_at(device) == NULL ? device : gh_device_at(device)->number;
}

int
gh_service_devices(void)
{
	return (int) gh_service->devices;
}

uint64
gh_service_worker_of(int device, bool *ready)
{
	GhDevice   *known = &gh_service->device[device];

	*ready = gh_device_is_ready(known);
	return pg_atomic_read_u64(&known->instance);
}

static void
watch_no_more(int code, Datum arg)
{
	(void) code;
	(void) arg;
	gh_service->watcher = -1;
}

void
gh_service_watch(void)
{
	before_shmem_exit(watch_no_more, (Datum) 0);
	gh_service->watcher = gh_my_procno();
	/* before it looks at the devices */
	pg_memory_barrier();
}

void
gh_service_wake_watcher(void)
{
	int			procno = gh_service->watcher;

	if (procno >= 0)
		SetLatch(&ProcGlobal->allProcs[procno].procLatch);
}

int
gh_service_choose_device(void)
{
	int			best = -1;

	for (uint32 i = 0; i < gh_service->devices; i++)
		if (gh_device_is_ready(&gh_service->device[i]) &&
			(best < 0 || memory_left(&gh_service->device[i]) > memory_left(&gh_service->device[best])))
			best = (int) i;
	return best;
}

/*
 * Devices for the pages of a table, `most` at most: how many.  They are the same ones each time, and in the
 * same order; if none but those that are ready are wanted, as long as these are the same ones.  Other tables
 * begin with others.
 */
int
gh_service_choose_devices(Oid table, bool ready, int most, int *devices)
{
	uint32		count = gh_service->devices;
	int			n = 0;

	for (uint32 i = 0; i < count && n < most; i++)
	{
		uint32		device = (table % count + i) % count;

		if (!ready || gh_device_is_ready(&gh_service->device[device]))
			devices[n++] = (int) device;
	}
	return n;
}

static GhStatus
service_device_count(int *count, GhError *error)
{
	(void) error;
	*count = (int) gh_service->devices;
	return GH_OK;
}

GhStatus
gh_device_unavailable(int number, GhError *error)
{
	GhDevice   *device = gh_device_at(number);

	return gh_error_set(error, GH_UNAVAILABLE, "the worker of GPU %d is not ready: %s", gh_service_device_number(number),
						device == NULL ? "there is no such GPU" : device->message);
}

static GhStatus
service_open_device(int device, GhError *error)
{
	GhDevice   *known = gh_device_at(device);

	return known != NULL && gh_device_is_ready(known) ? GH_OK : gh_device_unavailable(device, error);
}

static GhStatus
service_device_info(int device, GhDeviceInfo *info, GhError *error)
{
	GhDevice   *known = gh_device_at(device);

	if (known == NULL || !gh_device_is_ready(known))
		return gh_device_unavailable(device, error);
	*info = known->info;
	info->memory_free = memory_left(known);
	return GH_OK;
}

static bool
service_reads_pool(int number)
{
	GhDevice   *device = gh_device_at(number);

	return device != NULL && gh_device_is_ready(device) &&
		pg_atomic_read_u32(&device->pool) == GH_POOL_READABLE;
}

bool
gh_service_reads_pool(void)
{
	for (int device = 0; gh_device_at(device) != NULL; device++)
		if (service_reads_pool(device))
			return true;
	return false;
}

static void *
service_buffer_alloc(int device, size_t bytes)
{
	void	   *buffer;

	(void) device;
	return gh_service_reserve(1, bytes, &buffer) ? buffer : NULL;
}

/* -------------------------------------------------------- slots in flight */

GhRing *
gh_client_ring(uint32 device, uint32 table)
{
	return &gh_service->device[device].ring[table % GH_EXECUTORS];
}

void
gh_client_wake(uint32 device, GhRing *ring)
{
	int			procno = gh_service->device[device].procno;

	pg_memory_barrier();
	if (pg_atomic_read_u32(&ring->asleep) != 0 && procno >= 0)
		SetLatch(&ProcGlobal->allProcs[procno].procLatch);
}

uint64
gh_client_slot_submit(uint32 number)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint32		device = slot->device;
	GhRing	   *ring = gh_client_ring(device, slot->table);
	uint64		generation;

	slot->instance = pg_atomic_read_u64(&gh_service->device[device].instance);
	slot->submitted_ns = gh_monotonic_ns();
	pg_atomic_write_u64(&slot->started_ns, 0);
	pg_atomic_write_u32(&slot->sleeping, 0);
	generation = gh_slot_submit(number);
	gh_ring_append(ring, number, generation);
	gh_client_wake(device, ring);
	return generation;
}

/*
 * A request has taken too long when the device has had it for gpuhash.device_timeout;
 * for one that waits behind others, the worker sees to it that they end.
 */
GhStatus
gh_client_slot_look(uint32 number, GhError *error)
{
	GhSlot	   *slot = gh_slot_at(number);
	GhDevice   *device = &gh_service->device[slot->device];
	uint64		started;

	if (gh_slot_state(pg_atomic_read_u64(&slot->word)) == GH_SLOT_DONE)
	{
		pg_read_barrier();
		return GH_OK;
	}
	if (!gh_device_is_ready(device) || pg_atomic_read_u64(&device->instance) != slot->instance)
		return gh_error_set(error, GH_DEVICE_ERROR, "the worker of GPU %d ended", device->number);
	started = pg_atomic_read_u64(&slot->started_ns);
	if (gh_device_timeout != 0 && started != 0 &&
		gh_monotonic_ns() > started + (uint64) gh_device_timeout * GH_NS_PER_MS)
		return gh_error_set(error, GH_TIMEOUT, "no answer from GPU %d within %d ms",
							device->number, gh_device_timeout);
	return GH_BUSY;
}

/* An interrupt that is sure to throw, or any that has waited for a while. */
static bool
stop_wanted(const GhHost *host, uint64 *since)
{
	if (host->stop == NULL || *host->stop == 0)
		return false;
	if (*since == 0)
		*since = gh_monotonic_ns();
	return QueryCancelPending || ProcDiePending ||
		gh_monotonic_ns() - *since > GH_INTERRUPT_MS * GH_NS_PER_MS;
}

/*
 * Waits for the slot's answer: GH_OK, why there will be none, or GH_STOPPED with the
 * request still in flight.
 */
GhStatus
gh_client_slot_wait(uint32 number, const GhHost *host, GhError *error)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint64		spin_end = gh_monotonic_ns() + GH_CLIENT_SPIN_NS;
	uint64		since = 0;
	GhStatus	status;

	while ((status = gh_client_slot_look(number, error)) == GH_BUSY)
	{
		if (stop_wanted(host, &since))
			return gh_error_set(error, GH_STOPPED, "the wait was stopped");
		if (gh_monotonic_ns() < spin_end)
		{
			pg_spin_delay();
			continue;
		}
		ResetLatch(MyLatch);
		pg_atomic_write_u32(&slot->sleeping, 1);
		pg_memory_barrier();
		if (gh_client_slot_look(number, error) == GH_BUSY && !stop_wanted(host, &since))
		{
			long		nap = since != 0 ? GH_INTERRUPT_MS : GH_CLIENT_NAP_MS;

			if (gh_device_timeout != 0)
				nap = Min(nap, gh_device_timeout / 2 + 1);
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, nap,
							 gh_wait_event(GH_WAIT_REQUEST));
		}
		pg_atomic_write_u32(&slot->sleeping, 0);
	}
	return status;
}

/* Whether the request's buffer was given back meanwhile. */
static bool
flight_is_void(GhFlight flight)
{
	return gh_slot_generation(pg_atomic_read_u64(&gh_slot_at(flight.slot)->word)) != flight.generation;
}

GhStatus
gh_flight_poll(GhFlight flight, GhError *error)
{
	if (flight_is_void(flight))
		return gh_error_set(error, GH_INVALID, "the request's buffer was given back");
	return gh_client_slot_look(flight.slot, error);
}

GhStatus
gh_flight_wait(GhFlight flight, const GhHost *host, GhError *error)
{
	GhError		why;
	GhStatus	status;

	if (flight_is_void(flight))
		return gh_flight_poll(flight, error);
	status = gh_client_slot_wait(flight.slot, host, &why);
	/* of a wait that was stopped the request's error knows nothing */
	if (status != GH_OK && status != GH_STOPPED)
		*error = why;
	return status;
}

/*
 * A request without arrays, from the filled slot of this process to its end.  On GH_OK
 * the answer is in *slot until the caller leaves it.
 */
GhStatus
gh_client_control(uint32 number, const GhHost *host, GhError *error)
{
	GhSlot	   *slot = gh_slot_at(number);
	GhStatus	status;

	(void) gh_client_slot_submit(number);
	status = gh_client_slot_wait(number, host, error);
	if (status != GH_OK)
	{
		gh_slot_leave(number);
		return status;
	}
	status = slot->status;
	if (status != GH_OK)
		*error = slot->error;
	return status;
}

/*
 * Takes this process's slot.  A request that was cut short may still be in it; nobody
 * tells when it is through, which takes as long as what the device does at the moment.
 */
static GhStatus
take_process_slot(int device, const GhHost *host, uint32 *number, GhError *error)
{
	uint64		since = 0;

	for (;;)
	{
		if (!gh_device_is_ready(&gh_service->device[device]))
			return gh_error_set(error, GH_DEVICE_ERROR, "the worker of GPU %d is not there",
								gh_service_device_number(device));
		if (gh_slot_of_process(number))
			return GH_OK;
		if (stop_wanted(host, &since))
			return gh_error_set(error, GH_STOPPED, "the wait was stopped");
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, GH_SLOT_RETRY_MS,
						 gh_wait_event(GH_WAIT_REQUEST));
		ResetLatch(MyLatch);
	}
}

/* The slot of this process, for a request on the table. */
GhStatus
gh_client_control_begin(int device, GhServiceOp op, uint32 table, uint64 generation, const GhHost *host,
						uint32 *number, GhError *error)
{
	GhSlot	   *slot;
	GhStatus	status = take_process_slot(device, host, number, error);

	if (status != GH_OK)
		return status;
	slot = gh_slot_at(*number);
	slot->device = (uint32) device;
	slot->op = op;
	slot->table = table;
	slot->table_generation = generation;
	return GH_OK;
}

/* ------------------------------------------------------------------ tables */

GhServiceTable *
gh_client_table_handle(const GhHost *host, uint32 table, uint64 generation, GhError *error)
{
	GhServiceTable *handle = gh_client_alloc(sizeof(*handle), error);

	if (handle == NULL)
		return NULL;
	handle->common.engine = gh_service_engine();
	handle->host = *host;
	handle->table = table;
	handle->generation = generation;
	return handle;
}

void
gh_client_own_table(GhServiceTable *handle)
{
	handle->own = true;
	handle->next = own_tables;
	own_tables = handle;
}

static void
handle_free(GhServiceTable *handle)
{
	for (GhServiceTable **at = &own_tables; *at != NULL; at = &(*at)->next)
		if (*at == handle)
		{
			*at = handle->next;
			break;
		}
	pfree(handle);
}

static GhStatus
service_table_create(const GhHost *host, const GhTableOptions *options, GhTable **result,
					 GhError *error)
{
	const GhServiceScope *scope = host->ctx;
	GhServiceTable *handle;
	GhTableOptions checked = *options;
	uint32		table;
	uint64		generation;
	uint32		number;
	GhStatus	status = gh_options_check(&checked, error);

	if (status != GH_OK)
		return status;
	if (gh_device_at(options->device) == NULL)
		return gh_device_unavailable(options->device, error);
	gh_client_join();
	if (!gh_client_entry_take((uint32) options->device, scope == NULL ? gh_my_procno() : -1, GH_ENTRY_TABLE,
							  -1, &table, &generation))
		return gh_error_set(error, GH_TOO_MANY, "there are %d tables on GPUs already", GH_TABLES_MAX);
	handle = gh_client_table_handle(host, table, generation, error);
	status = handle == NULL ? GH_NO_MEMORY :
		gh_client_control_begin(options->device, GH_SERVICE_CREATE, table, generation, host, &number, error);
	if (status == GH_OK)
	{
		gh_slot_at(number)->options = checked;
		status = gh_client_control(number, host, error);
		gh_slot_leave(number);
	}
	if (status != GH_OK)
	{
		gh_client_entry_drop(table, generation);
		if (handle != NULL)
			pfree(handle);
		return status;
	}
	handle->options = checked;
	if (scope == NULL)
		gh_client_own_table(handle);
	*result = &handle->common;
	return GH_OK;
}

static GhRef
service_table_root(const GhTable *table)
{
	const GhServiceTable *handle = (const GhServiceTable *) table;

	return gh_root_of(handle->table, handle->generation);
}

/* The options are the table's; the caller who attaches it knows them. */
static GhStatus
service_table_attach(const GhHost *host, GhRef root, GhTable **result, GhError *error)
{
	uint32		table;
	uint64		generation;
	GhServiceTable *handle;
	uint32		number;
	GhStatus	status;

	if (!gh_client_entry_find(root, &table, &generation))
		return gh_error_set(error, GH_DEVICE_ERROR, "the table is no longer on a GPU");
	handle = gh_client_table_handle(host, table, generation, error);
	if (handle == NULL)
		return GH_NO_MEMORY;
	gh_client_join();
	/* what the table's options are, the worker knows */
	status = gh_client_control_begin((int) gh_table_entry_at(table)->device, GH_SERVICE_STATS, table,
									 generation, host, &number, error);
	if (status == GH_OK)
	{
		status = gh_client_control(number, host, error);
		handle->options = gh_slot_at(number)->options;
		handle->made = gh_slot_at(number)->was_made;
		gh_slot_leave(number);
	}
	if (status != GH_OK)
	{
		pfree(handle);
		return status;
	}
	*result = &handle->common;
	return GH_OK;
}

static void
service_table_detach(GhTable *table)
{
	handle_free((GhServiceTable *) table);
}

static void
service_table_destroy(GhTable *table)
{
	GhServiceTable *handle = (GhServiceTable *) table;

	gh_client_entry_drop(handle->table, handle->generation);
	handle_free(handle);
}

void
gh_client_drop_tables(void)
{
	for (GhServiceTable *handle = own_tables; handle != NULL; handle = handle->next)
		gh_client_entry_drop(handle->table, handle->generation);
	own_tables = NULL;
	gh_client_drop_entries();
}

/* A request on the table without arrays. */
static GhStatus
table_control(GhTable *table, GhServiceOp op, uint64 keys, GhTableStats *stats, GhError *error)
{
	GhServiceTable *handle = (GhServiceTable *) table;
	uint32		number;
	GhStatus	status = gh_client_control_begin((int) gh_table_entry_at(handle->table)->device, op,
												 handle->table, handle->generation, &handle->host,
												 &number, error);

	if (status != GH_OK)
		return status;
	gh_slot_at(number)->keys_wanted = keys;
	status = gh_client_control(number, &handle->host, error);
	if (status == GH_OK && stats != NULL)
		*stats = gh_slot_at(number)->stats;
	gh_slot_leave(number);
	return status;
}

static GhStatus
service_table_clear(GhTable *table, GhError *error)
{
	return table_control(table, GH_SERVICE_CLEAR, 0, NULL, error);
}

static GhStatus
service_table_reserve(GhTable *table, uint64_t keys, GhError *error)
{
	return table_control(table, GH_SERVICE_RESERVE, keys, NULL, error);
}

static GhStatus
service_table_flush(GhTable *table, GhError *error)
{
	return table_control(table, GH_SERVICE_FLUSH, 0, NULL, error);
}

static GhStatus
service_table_stats(GhTable *table, GhTableStats *stats, GhError *error)
{
	return table_control(table, GH_SERVICE_STATS, 0, stats, error);
}

const GhEngine *
gh_service_engine(void)
{
	static const GhEngine engine = {
		.abi_version = GH_ABI_VERSION,
		.name = "cuda",
		.asynchronous = true,
		.on_device = true,
		.buffers_required = true,
		.shares_tables = true,
		.device_count = service_device_count,
		.open_device = service_open_device,
		.device_info = service_device_info,
		.buffer_alloc = service_buffer_alloc,
		.buffer_free = gh_service_return,
		.reads_pool = service_reads_pool,
		.table_create = service_table_create,
		.table_root = service_table_root,
		.table_attach = service_table_attach,
		.table_detach = service_table_detach,
		.table_destroy = service_table_destroy,
		.table_clear = service_table_clear,
		.table_reserve = service_table_reserve,
		.table_flush = service_table_flush,
		.table_stats = service_table_stats,
		.submit = gh_client_submit,
		.poll = gh_client_poll,
		.wait = gh_client_wait,
		.pipelines = &gh_service_pipelines,
	};

	return &engine;
}
