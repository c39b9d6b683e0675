/*
 * client_scan.c
 *		Scans of the service: what a session does to have a worker's GPU make one, go over
 *		pages, and give the groups back.
 *
 * A scan has an entry among the tables, and so an executor that all its requests go to.
 * All scans of a process have the same executor, since one may join with the table of another.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "service/client.h"
#include "service/placement.h"
#include "service/plan.h"

/* Of GhScanRequest.engine_state. */
enum
{
	STATE_SLOT,
	STATE_GENERATION
};

static GhServiceScan *own_scans = NULL;

bool
gh_client_reads_pool(int number)
{
	GhDevice   *device = gh_device_at(number);

	return device != NULL && gh_device_is_ready(device) &&
		pg_atomic_read_u32(&device->pool) == GH_POOL_READABLE;
}

static GhStatus
scan_is_lost(const GhServiceScan *scan, GhError *error)
{
	return gh_error_set(error, GH_DEVICE_ERROR, "the scan was lost with the worker of GPU %d",
						gh_service_device_number((int) gh_table_entry_at(scan->table)->device));
}

/* More was told than there is room for: the buffer is not to be read by such numbers. */
static GhStatus
answer_is_wrong(const GhServiceScan *scan, GhError *error)
{
	return gh_error_set(error, GH_DEVICE_ERROR, "the worker of GPU %d tells of more than was asked for",
						gh_service_device_number((int) gh_table_entry_at(scan->table)->device));
}

/* A slot of this process that no request is in, for one of the scan. */
static bool
slot_begin(const GhServiceScan *scan, const void *address, GhServiceOp op, uint32 *number)
{
	GhSlot	   *slot;

	if (address == NULL || !gh_buffer_slot(address, number) ||
		gh_slot_state(pg_atomic_read_u64(&gh_slot_at(*number)->word)) != GH_SLOT_OWNED)
		return false;
	slot = gh_slot_at(*number);
	slot->op = op;
	slot->device = gh_table_entry_at(scan->table)->device;
	slot->table = scan->table;
	slot->table_generation = scan->generation;
	return true;
}

/* ------------------------------------------------------------- making, ending */

/* The entries of the tables that the scan joins with; GH_INVALID: they are not of this service. */
static GhStatus
find_tables(const GhScanOptions *options, GhPlanTable *tables, GhError *error)
{
	memset(tables, 0, GH_SCAN_JOINS_MAX * sizeof(GhPlanTable));
	for (uint32 i = 0; options->joins != NULL && i < options->njoins; i++)
	{
		const GhScan *table = options->joins[i].table;

		if (table == NULL || table->engine != &gh_service_scans)
			return gh_error_set(error, GH_INVALID, "join %u of a scan is with no table of the service", i);
		tables[i].table = ((const GhServiceScan *) table)->table;
		tables[i].generation = ((const GhServiceScan *) table)->generation;
	}
	return GH_OK;
}

/* The executor that a new scan is to have: that of the tables that it joins with. */
static int
executor_for(const GhScanOptions *options, const GhPlanTable *tables)
{
	return (int) ((options->njoins > 0 ? tables[0].table : (uint32) gh_my_procno()) % GH_EXECUTORS);
}

/* Has the worker make the scan that the plan in the buffer tells. */
static GhStatus
ask_for_scan(GhServiceScan *scan, const void *buffer, Size bytes, GhError *error)
{
	uint32		number;
	GhSlot	   *slot;
	GhStatus	status;

	if (!slot_begin(scan, buffer, GH_SERVICE_SCAN_CREATE, &number))
		return gh_error_set(error, GH_INVALID, "the buffer of a plan is not this session's");
	slot = gh_slot_at(number);
	slot->block = 0;
	slot->count = bytes;
	(void) gh_client_slot_submit(number);
	status = gh_client_slot_wait(number, &scan->host, error);
	if (status != GH_OK)
		return status;
	if (slot->status != GH_OK)
		*error = slot->error;
	return slot->status;
}

/* A handle without a scan; NULL: out of memory. */
static GhServiceScan *
make_handle(const GhHost *host, bool shared, GhError *error)
{
	GhServiceScan *scan = MemoryContextAllocExtended(TopMemoryContext, sizeof(*scan),
													 MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);

	if (scan == NULL)
	{
		(void) gh_error_set(error, GH_NO_MEMORY, "out of memory");
		return NULL;
	}
	scan->common.engine = &gh_service_scans;
	scan->host = *host;
	scan->shared = shared;
	return scan;
}

static GhStatus
make_scan(const GhHost *host, const GhScanOptions *options, const GhPlanTable *tables, bool shared,
		  const void *buffer, Size bytes, GhServiceScan **result, GhError *error)
{
	GhServiceScan *scan = make_handle(host, shared, error);
	GhStatus	status;

	if (scan == NULL)
		return GH_NO_MEMORY;
	if (!gh_client_entry_take((uint32) options->device, shared ? -1 : gh_my_procno(), true,
							  executor_for(options, tables), &scan->table, &scan->generation))
	{
		pfree(scan);
		return gh_error_set(error, GH_TOO_MANY, "there are too many tables on GPUs already");
	}
	status = ask_for_scan(scan, buffer, bytes, error);
	if (status != GH_OK)
	{
		gh_client_entry_drop(scan->table, scan->generation);
		pfree(scan);
		return status;
	}
	*result = scan;
	if (shared)
		return GH_OK;
	scan->next = own_scans;
	own_scans = scan;
	return GH_OK;
}

static GhStatus
create_scan(const GhHost *host, const GhScanOptions *options, bool shared, GhScan **result,
			GhError *error)
{
	GhPlanTable tables[GH_SCAN_JOINS_MAX];
	GhDevice   *device = gh_device_at(options->device);
	GhServiceScan *scan = NULL;
	Size		bytes = gh_plan_write(options, NULL, NULL);
	void	   *buffer;
	GhStatus	status;

	*result = NULL;
	if (bytes == 0)
		return gh_error_set(error, GH_INVALID, "the options of a scan are too large");
	status = find_tables(options, tables, error);
	if (status != GH_OK)
		return status;
	if (device == NULL || !gh_device_is_ready(device))
		return gh_device_unavailable(options->device, error);
	gh_client_join();
	if (!gh_service_reserve(1, bytes, &buffer))
		return gh_no_buffers(error);
	(void) gh_plan_write(options, tables, buffer);
	status = make_scan(host, options, tables, shared, buffer, bytes, &scan, error);
	gh_service_return(buffer);
	if (status == GH_OK)
		*result = &scan->common;
	return status;
}

static GhStatus
service_scan_create(const GhHost *host, const GhScanOptions *options, GhScan **result,
					GhError *error)
{
	return create_scan(host, options, false, result, error);
}

GhStatus
gh_service_scan_create_shared(const GhHost *host, const GhScanOptions *options, GhRef *root,
							  GhScan **result, GhError *error)
{
	GhStatus	status = create_scan(host, options, true, result, error);

	if (status == GH_OK)
		*root = gh_client_entry_root(((GhServiceScan *) *result)->table,
									 ((GhServiceScan *) *result)->generation);
	return status;
}

GhStatus
gh_service_scan_attach(GhRef root, const GhHost *host, GhScan **result, GhError *error)
{
	GhServiceScan *scan;
	uint32		table;
	uint64		generation;

	*result = NULL;
	if (!gh_client_entry_find(root, &table, &generation) || !gh_table_entry_at(table)->is_scan)
		return gh_error_set(error, GH_DEVICE_ERROR, "the scan to attach is gone");
	gh_client_join();
	scan = make_handle(host, true, error);
	if (scan == NULL)
		return GH_NO_MEMORY;
	scan->table = table;
	scan->generation = generation;
	*result = &scan->common;
	return GH_OK;
}

/* One that several processes have a handle on goes with gh_service_table_release. */
static void
service_scan_destroy(GhScan *handle)
{
	GhServiceScan *scan = (GhServiceScan *) handle;

	if (scan == NULL)
		return;
	if (!scan->shared)
		gh_client_entry_drop(scan->table, scan->generation);
	for (GhServiceScan **at = &own_scans; *at != NULL; at = &(*at)->next)
		if (*at == scan)
		{
			*at = scan->next;
			break;
		}
	pfree(scan);
}

void
gh_client_drop_scans(void)
{
	for (GhServiceScan *scan = own_scans; scan != NULL; scan = scan->next)
		gh_client_entry_drop(scan->table, scan->generation);
	own_scans = NULL;
}

/* ------------------------------------------------------------------- requests */

/* The time that the slot's request took, which is through. */
static void
add_times(GhServiceScan *scan, const GhSlot *slot)
{
	scan->queue_ns += slot->queue_ns;
	scan->run_ns += slot->run_ns;
}

static void
service_scan_times(const GhScan *handle, uint64_t *queue_ns, uint64_t *device_ns)
{
	const GhServiceScan *scan = (const GhServiceScan *) handle;

	*queue_ns = scan->queue_ns;
	*device_ns = scan->run_ns;
}

static GhFlight
flight_of(const GhScanRequest *request)
{
	return (GhFlight){(uint32) request->engine_state[STATE_SLOT], request->engine_state[STATE_GENERATION]};
}

static void
clear_outcome(GhScanRequest *request)
{
	request->counted = request->seen = request->passed = request->nback = request->no_group = 0;
	memset(request->joined, 0, sizeof(request->joined));
	memset(&request->error, 0, sizeof(request->error));
	memset(request->engine_state, 0, sizeof(request->engine_state));
}

static GhStatus
service_scan_submit(GhScan *handle, GhScanRequest *request)
{
	GhServiceScan *scan = (GhServiceScan *) handle;
	uint32		number;
	GhSlot	   *slot;

	clear_outcome(request);
	request->scan = NULL;
	if (request->npages == 0 && !request->unmatched)
		return request->status = GH_OK;
	if (!gh_client_entry_lives(scan->table, scan->generation))
		return request->status = scan_is_lost(scan, &request->error);
	if (!slot_begin(scan, request->pages, GH_SERVICE_SCAN, &number))
		return request->status = gh_error_set(&request->error, GH_INVALID,
											  "the pages of a request must be listed in an idle buffer of the transfer area");
	slot = gh_slot_at(number);
	slot->count = request->npages;
	slot->nbitmaps = request->nbitmaps;
	slot->back_room = request->back_room;
	slot->unmatched = request->unmatched;
	slot->first_row = request->first_row;
	slot->nrows = request->nrows;
	if (!gh_client_array(number, request->pages, &slot->pages) ||
		!gh_client_array(number, request->bitmaps, &slot->bitmaps) ||
		!gh_client_array(number, request->back, &slot->back))
		return request->status = gh_error_set(&request->error, GH_INVALID,
											  "the arrays of a request must be in one buffer of the transfer area");
	request->engine_state[STATE_SLOT] = number;
	request->scan = handle;
	request->status = GH_BUSY;
	request->engine_state[STATE_GENERATION] = gh_client_slot_submit(number);
	return GH_BUSY;
}

/* Takes over the outcome that gh_flight_poll or gh_flight_wait has found. */
static GhStatus
request_end(GhScanRequest *request, GhStatus status)
{
	uint32		number = (uint32) request->engine_state[STATE_SLOT];
	GhSlot	   *slot = gh_slot_at(number);
	/* rows without a match are only counted */
	uint64		most = request->unmatched ? request->nrows : request->back_room;

	if (status == GH_OK)
	{
		request->counted = slot->counted;
		request->seen = slot->seen;
		request->passed = slot->passed;
		memcpy(request->joined, slot->joined, sizeof(request->joined));
		request->nback = slot->nback;
		request->no_group = slot->no_group;
		status = slot->status;
		if (status != GH_OK)
			request->error = slot->error;
		else if (request->nback > most)
			status = answer_is_wrong((const GhServiceScan *) request->scan, &request->error);
		add_times((GhServiceScan *) request->scan, slot);
		gh_slot_reuse(number);
	}
	request->scan = NULL;
	return request->status = status;
}

static GhStatus
service_scan_poll(GhScanRequest *request)
{
	GhStatus	status;

	if (request->status != GH_BUSY || request->scan == NULL)
		return request->status;
	status = gh_flight_poll(flight_of(request), &request->error);
	return status == GH_BUSY ? GH_BUSY : request_end(request, status);
}

static GhStatus
service_scan_wait(GhScanRequest *request)
{
	GhServiceScan *scan = (GhServiceScan *) request->scan;
	GhStatus	status;

	if (request->status != GH_BUSY || scan == NULL)
		return request->status;
	status = gh_flight_wait(flight_of(request), &scan->host, &request->error);
	return status == GH_STOPPED ? GH_STOPPED : request_end(request, status);
}

/* -------------------------------------------------------------------- results */

/* Whether the buffer still has the request of a call that was stopped. */
static bool
results_pending(const GhServiceScan *scan, uint32 number)
{
	return scan->results_generation != 0 && scan->results_slot == number &&
		gh_slot_generation(pg_atomic_read_u64(&gh_slot_at(number)->word)) == scan->results_generation;
}

static GhStatus
begin_results(GhServiceScan *scan, const GhCursor *cursor, size_t capacity, void *buffer,
			  uint32 *number, GhError *error)
{
	GhSlot	   *slot;

	if (gh_buffer_slot(buffer, number) && results_pending(scan, *number))
		return GH_OK;
	if (!gh_client_entry_lives(scan->table, scan->generation))
		return scan_is_lost(scan, error);
	if (!slot_begin(scan, buffer, GH_SERVICE_SCAN_RESULTS, number) ||
		!gh_client_array(*number, buffer, &gh_slot_at(*number)->block))
		return gh_error_set(error, GH_INVALID,
							"results must go to an idle buffer of the transfer area");
	slot = gh_slot_at(*number);
	slot->count = capacity;
	slot->cursor = *cursor;
	scan->results_slot = *number;
	scan->results_generation = gh_client_slot_submit(*number);
	return GH_OK;
}

static GhStatus
service_scan_results(GhScan *handle, GhCursor *cursor, size_t capacity, void *buffer,
					 size_t *bytes, GhError *error)
{
	GhServiceScan *scan = (GhServiceScan *) handle;
	uint32		number;
	GhSlot	   *slot;
	GhStatus	status;

	*bytes = 0;
	status = begin_results(scan, cursor, capacity, buffer, &number, error);
	if (status == GH_OK)
		status = gh_client_slot_wait(number, &scan->host, error);
	if (status == GH_STOPPED)
		return status;
	scan->results_generation = 0;
	if (status != GH_OK)
		return status;
	slot = gh_slot_at(number);
	add_times(scan, slot);
	status = slot->status;
	*cursor = slot->cursor;
	*bytes = slot->bytes;
	if (status != GH_OK)
		*error = slot->error;
	else if (*bytes > capacity)
		status = answer_is_wrong(scan, error);
	gh_slot_reuse(number);
	return status;
}

/* A request without arrays; on GH_OK the answer is in the slot until it is left. */
static GhStatus
scan_control(GhServiceScan *scan, GhServiceOp op, uint32 *number, GhError *error)
{
	GhStatus	status;

	if (!gh_client_entry_lives(scan->table, scan->generation))
		return scan_is_lost(scan, error);
	status = gh_client_control_begin((int) gh_table_entry_at(scan->table)->device, op, scan->table,
									 scan->generation, &scan->host, number, error);
	if (status != GH_OK)
		return status;
	status = gh_client_control(*number, &scan->host, error);
	if (status == GH_OK)
		add_times(scan, gh_slot_at(*number));
	else
		gh_slot_leave(*number);
	return status;
}

static GhStatus
service_scan_make_table(GhScan *handle, GhScanTable *table, GhError *error)
{
	uint32		number;
	GhStatus	status = scan_control((GhServiceScan *) handle, GH_SERVICE_SCAN_TABLE, &number, error);

	if (status != GH_OK)
		return status;
	*table = gh_slot_at(number)->made;
	gh_slot_leave(number);
	return GH_OK;
}

static GhStatus
service_scan_stats(GhScan *handle, GhScanStats *stats, GhError *error)
{
	uint32		number;
	GhStatus	status = scan_control((GhServiceScan *) handle, GH_SERVICE_SCAN_STATS, &number, error);

	if (status != GH_OK)
		return status;
	*stats = gh_slot_at(number)->scan_stats;
	gh_slot_leave(number);
	return GH_OK;
}

const GhScanEngine gh_service_scans = {
	.create = service_scan_create,
	.destroy = service_scan_destroy,
	.submit = service_scan_submit,
	.poll = service_scan_poll,
	.wait = service_scan_wait,
	.results = service_scan_results,
	.make_table = service_scan_make_table,
	.stats = service_scan_stats,
	.times = service_scan_times,
};
