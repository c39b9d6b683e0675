/*
 * client_scan.c
 *		Scans of the service: what a session does to have a worker's GPU make one, go over
 *		pages, and give the groups back.
 *
 * A scan has an entry among the tables, and so an executor that all its requests go to.
 * All scans of a process have the same executor, since one may join with the table of another.
 */
#include "postgres.h"

#include "storage/proc.h"

#include "service/client.h"
#include "service/placement.h"
#include "service/plan.h"

/* Of GhScanRequest.engine_state. */
enum
{
	STATE_SLOT,
	STATE_GENERATION
};

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
		tables[i].table = ((const GhServiceScan *) table)->entry.table;
		tables[i].generation = ((const GhServiceScan *) table)->entry.generation;
	}
	return GH_OK;
}

/* The executor that a new scan is to have: that of the tables that it joins with. */
static int
executor_for(const GhScanOptions *options, const GhPlanTable *tables)
{
	return (int) ((options->njoins > 0 ? tables[0].table : (uint32) gh_my_procno()) % GH_EXECUTORS);
}

/* A handle without a scan; NULL: out of memory. */
static GhServiceScan *
make_handle(const GhHost *host, bool shared, GhError *error)
{
	GhServiceScan *scan = gh_client_alloc(sizeof(*scan), error);

	if (scan == NULL)
		return NULL;
	scan->common.engine = &gh_service_scans;
	scan->entry.host = *host;
	scan->entry.shared = shared;
	return scan;
}

static GhStatus
make_scan(const GhHost *host, const GhScanOptions *options, const GhPlanTable *tables, bool shared,
		  const void *buffer, Size bytes, GhScan **result, GhError *error)
{
	GhServiceScan *scan = make_handle(host, shared, error);
	GhStatus	status;

	if (scan == NULL)
		return GH_NO_MEMORY;
	status = gh_entry_create(&scan->entry, options->device, GH_ENTRY_SCAN, executor_for(options, tables),
							 GH_SERVICE_SCAN_CREATE, buffer, bytes, error);
	if (status == GH_OK)
		*result = &scan->common;
	else
		pfree(scan);
	return status;
}

static GhStatus
create_scan(const GhHost *host, const GhScanOptions *options, bool shared, GhScan **result,
			GhError *error)
{
	GhPlanTable tables[GH_SCAN_JOINS_MAX];
	GhDevice   *device = gh_device_at(options->device);
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
	status = make_scan(host, options, tables, shared, buffer, bytes, result, error);
	gh_service_return(buffer);
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
		*root = gh_entry_root(&((GhServiceScan *) *result)->entry);
	return status;
}

GhStatus
gh_service_scan_attach(GhRef root, const GhHost *host, GhScan **result, GhError *error)
{
	GhServiceScan *scan = make_handle(host, true, error);
	GhStatus	status;

	*result = NULL;
	if (scan == NULL)
		return GH_NO_MEMORY;
	status = gh_entry_attach(&scan->entry, root, GH_ENTRY_SCAN, error);
	if (status == GH_OK)
		*result = &scan->common;
	else
		pfree(scan);
	return status;
}

/* One that several processes have a handle on goes with gh_service_table_release. */
static void
service_scan_destroy(GhScan *handle)
{
	GhServiceScan *scan = (GhServiceScan *) handle;

	if (scan == NULL)
		return;
	gh_entry_close(&scan->entry);
	pfree(scan);
}

/* ------------------------------------------------------------------- requests */

static void
service_scan_times(const GhScan *handle, uint64_t *queue_ns, uint64_t *device_ns)
{
	const GhServiceScan *scan = (const GhServiceScan *) handle;

	*queue_ns = scan->entry.queue_ns;
	*device_ns = scan->entry.run_ns;
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
	if (!gh_entry_lives(&scan->entry))
		return request->status = gh_entry_lost(&scan->entry, &request->error);
	if (!gh_entry_slot(&scan->entry, request->pages, GH_SERVICE_SCAN, &number))
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
			status = gh_entry_wrong_answer(&((GhServiceScan *) request->scan)->entry, &request->error);
		gh_entry_add_times(&((GhServiceScan *) request->scan)->entry, slot);
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
	status = gh_flight_wait(flight_of(request), &scan->entry.host, &request->error);
	return status == GH_STOPPED ? GH_STOPPED : request_end(request, status);
}

/* -------------------------------------------------------------------- results */

static GhStatus
service_scan_results(GhScan *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes, GhError *error)
{
	return gh_entry_results(&((GhServiceScan *) handle)->entry, GH_SERVICE_SCAN_RESULTS, cursor, capacity, buffer,
							bytes, error);
}

static GhStatus
service_scan_make_table(GhScan *handle, GhScanTable *table, GhError *error)
{
	uint32		number;
	GhStatus	status = gh_entry_control(&((GhServiceScan *) handle)->entry, GH_SERVICE_SCAN_TABLE, 0, &number, error);

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
	GhStatus	status = gh_entry_control(&((GhServiceScan *) handle)->entry, GH_SERVICE_SCAN_STATS, 0, &number, error);

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
