/*
 * fault_scan.c
 *		Scans of the stand-in for the CUDA engine: the CPU engine's, with a device that can
 *		fail (fault_engine.c tells how).
 *
 *	- The first poll of a request does nothing, so that several of them are in flight.
 *	- A request that fails does half of its pages; the scan is lost from then on.
 *	- A page of a request that says that the device reads it must be registered whole; arrays,
 *	  and other pages, must be where a device could copy from or to.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu_scan.h"
#include "fault.h"

/* A request that was submitted and has not ended. */
typedef struct Flight
{
	GhScanRequest *request;
	GhScanRequest inner;		/* the CPU engine's */
	bool		fails;			/* does half, and ends with the device */
	bool		polled;
	struct Flight *next;
} Flight;

/* What a request's Flight is found by: GhScanRequest.engine_state */
#define STATE_FLIGHT 0

typedef struct FaultScan
{
	GhScan		common;			/* first */
	FaultMemory memory;
	GhScan	   *inner;			/* of the CPU engine */
	uint32_t	page_bytes;
	bool		failed;			/* it met a failure of the device */
	Flight	   *first;			/* oldest */
	Flight	   *last;
} FaultScan;

/* ------------------------------------------------------------------- flights */

/* The request has ended: the oldest flight is its. */
static void
flight_end(FaultScan *scan, GhStatus status)
{
	Flight	   *flight = scan->first;
	GhScanRequest *request = flight->request;
	const GhScanRequest *inner = &flight->inner;
	bool		good = status == GH_OK;

	request->counted = good ? inner->counted : 0;
	request->seen = good ? inner->seen : 0;
	request->passed = good ? inner->passed : 0;
	memset(request->joined, 0, sizeof(request->joined));
	if (good)
		memcpy(request->joined, inner->joined, sizeof(request->joined));
	request->nback = good ? inner->nback : 0;
	request->no_group = good ? inner->no_group : 0;
	request->error = inner->error;
	request->status = status == GH_DEVICE_ERROR ? fault_fail(&request->error) :
		fault_status_of(&scan->memory, status, &request->error);
	request->scan = NULL;
	scan->first = flight->next;
	if (scan->first == NULL)
		scan->last = NULL;
	free(flight);
}

/* A slice of the oldest request; after a failure, all end. */
static void
scan_advance(FaultScan *scan)
{
	Flight	   *flight = scan->first;

	if (gh_cpu_scans.poll(&flight->inner) == GH_BUSY)
		return;
	scan->failed = flight->fails;
	if (!scan->failed)
		flight_end(scan, flight->inner.status);
	while (scan->failed && scan->first != NULL)
		flight_end(scan, GH_DEVICE_ERROR);
}

/* Whether all of a request is where a device reads or writes it. */
static bool
can_reach(const FaultScan *scan, const GhScanRequest *request)
{
	if (!can_transfer(request->bitmaps, request->nbitmaps * sizeof(uint64_t), false) ||
		!can_transfer(request->back, request->back_room * sizeof(GhScanRow), true))
		return false;
	for (uint32_t p = 0; p < request->npages; p++)
	{
		const void *page = request->pages[p].page;

		if (request->readable ? !is_registered(page, scan->page_bytes) :
			!can_transfer(page, scan->page_bytes, false))
			return false;
	}
	return true;
}

/* Gives the request to the CPU engine, or half of it when the device is to fail. */
static GhStatus
flight_start(FaultScan *scan, Flight *flight)
{
	GhScanRequest *request = flight->request;
	GhScanRequest *inner = &flight->inner;
	GhStatus	status;

	*inner = *request;
	flight->fails = !fault_device_works(true) || fault_launch_due();
	if (flight->fails)
	{
		inner->npages /= 2;
		inner->nrows /= 2;
	}
	status = gh_cpu_scans.submit(scan->inner, inner);
	if (status > GH_BUSY)
	{
		request->error = inner->error;
		return status;
	}
	/* the CPU engine accepted it, so its arrays are there; it is never polled again */
	if (!can_reach(scan, request))
	{
		scan->failed = true;
		return gh_error_set(&request->error, GH_DEVICE_ERROR,
							"a page or an array of the request is not where a device reads or writes");
	}
	request->engine_state[STATE_FLIGHT] = (uintptr_t) flight;
	if (scan->last == NULL)
		scan->first = flight;
	else
		scan->last->next = flight;
	scan->last = flight;
	return GH_BUSY;
}

static GhStatus
fault_scan_submit(GhScan *handle, GhScanRequest *request)
{
	FaultScan  *scan = (FaultScan *) handle;
	Flight	   *flight;
	GhStatus	status;

	request->scan = NULL;
	request->counted = request->seen = request->passed = request->nback = request->no_group = 0;
	memset(request->joined, 0, sizeof(request->joined));
	memset(&request->error, 0, sizeof(request->error));
	if (scan->failed)
		return request->status = fault_fail(&request->error);
	flight = calloc(1, sizeof(*flight));
	if (flight == NULL)
		return request->status = gh_error_set(&request->error, GH_NO_MEMORY, "out of memory");
	flight->request = request;
	status = flight_start(scan, flight);
	if (status == GH_BUSY)
		request->scan = handle;
	else
		free(flight);
	return request->status = status;
}

static GhStatus
fault_scan_poll(GhScanRequest *request)
{
	Flight	   *flight;

	if (request->status != GH_BUSY || request->scan == NULL)
		return request->status;
	flight = (Flight *) (uintptr_t) request->engine_state[STATE_FLIGHT];
	if (!flight->polled)
		flight->polled = true;
	else
		scan_advance((FaultScan *) request->scan);
	return request->status;
}

static GhStatus
fault_scan_wait(GhScanRequest *request)
{
	while (fault_scan_poll(request) == GH_BUSY)
		continue;
	return request->status;
}

/* ---------------------------------------------------------- making and ending */

/* Waits for what was submitted, before a call that is not a request. */
static GhStatus
scan_enter(FaultScan *scan, GhError *error)
{
	while (scan->first != NULL)
		scan_advance(scan);
	if (!fault_device_works(false) || fault_launch_due())
		scan->failed = true;
	return scan->failed ? fault_fail(error) : GH_OK;
}

static void
fault_scan_destroy(GhScan *handle)
{
	FaultScan  *scan = (FaultScan *) handle;

	if (scan == NULL)
		return;
	/* requests may be gone already: they are not looked at */
	while (scan->first != NULL)
	{
		Flight	   *flight = scan->first;

		scan->first = flight->next;
		free(flight);
	}
	gh_cpu_scans.destroy(scan->inner);
	free(scan);
}

/*
 * The joins with tables as the CPU engine knows them; any that is none of this engine's stays what
 * it is, or none, for the CPU engine to refuse.
 */
static void
inner_joins(const GhScanOptions *options, GhScanJoin *joins)
{
	for (uint32_t i = 0; i < options->njoins; i++)
	{
		GhScan	   *table = options->joins[i].table;

		joins[i] = options->joins[i];
		if (table != NULL && table->engine == &fault_scans)
			joins[i].table = table->table_made ? ((FaultScan *) table)->inner : NULL;
	}
}

static GhStatus
fault_scan_create(const GhHost *host, const GhScanOptions *options, GhScan **result, GhError *error)
{
	GhScanOptions inner = {0};
	GhScanJoin	joins[GH_SCAN_JOINS_MAX];
	GhHost		inner_host;
	FaultScan  *scan;
	GhStatus	status;

	*result = NULL;
	if (options == NULL)
		return gh_error_set(error, GH_INVALID, "a scan has no options");
	inner = *options;
	status = fault_open_device(inner.device, error);
	if (status != GH_OK)
		return status;
	if (!fault_device_works(false))
		return fault_fail(error);
	if (inner.joins != NULL && inner.njoins <= GH_SCAN_JOINS_MAX)
	{
		inner_joins(&inner, joins);
		inner.joins = joins;
	}
	scan = calloc(1, sizeof(*scan));
	if (scan == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory");
	scan->common.engine = &fault_scans;
	scan->memory.host = *host;
	scan->memory.device = inner.device;
	scan->page_bytes = inner.page_bytes;
	inner.device = 0;
	fault_inner_host(&scan->memory, &inner_host);
	status = gh_cpu_scans.create(&inner_host, &inner, &scan->inner, error);
	if (status == GH_OK)
	{
		*result = &scan->common;
		return GH_OK;
	}
	status = fault_status_of(&scan->memory, status, error);
	free(scan);
	return status;
}

/* -------------------------------------------------------------------- results */

static GhStatus
fault_scan_results(GhScan *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
				   GhError *error)
{
	FaultScan  *scan = (FaultScan *) handle;
	GhStatus	status = scan_enter(scan, error);

	*bytes = 0;
	return status != GH_OK ? status :
		gh_cpu_scans.results(scan->inner, cursor, capacity, buffer, bytes, error);
}

static GhStatus
fault_scan_make_table(GhScan *handle, GhScanTable *table, GhError *error)
{
	FaultScan  *scan = (FaultScan *) handle;
	GhStatus	status = scan_enter(scan, error);

	if (status == GH_OK)
		status = gh_cpu_scans.make_table(scan->inner, table, error);
	if (status == GH_OK)
		scan->common.table_made = true;
	return fault_status_of(&scan->memory, status, error);
}

static GhStatus
fault_scan_stats(GhScan *handle, GhScanStats *stats, GhError *error)
{
	FaultScan  *scan = (FaultScan *) handle;

	memset(stats, 0, sizeof(*stats));
	if (!fault_device_works(false))
		scan->failed = true;
	return scan->failed ? fault_fail(error) : gh_cpu_scans.stats(scan->inner, stats, error);
}

const GhScanEngine fault_scans = {
	.create = fault_scan_create,
	.destroy = fault_scan_destroy,
	.submit = fault_scan_submit,
	.poll = fault_scan_poll,
	.wait = fault_scan_wait,
	.results = fault_scan_results,
	.make_table = fault_scan_make_table,
	.stats = fault_scan_stats,
};
