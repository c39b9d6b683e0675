/*
 * scan.cu
 *		Scans: made and ended; requests on their way through the lanes.
 *
 * Requests wait in a list in the order of submission.  Whoever calls submit or poll moves them on,
 * and nothing else does:
 *
 *	1. The first one takes a free lane.  Lists and bitmaps are sent, the pages' kernel is
 *	   enqueued on the lane's stream (scan_pages.cu), and its counters are fetched.
 *	2. When the oldest request's pages are read: if rows found no group and there can be room for
 *	   more, the table of groups grows and the pages are read once more; nothing has been
 *	   counted so far.  Else its reduction is enqueued (scan_reduce.cu) on the one stream that all
 *	   requests are reduced in.
 *	3. When that is through, the request is finished, and its lane is free.
 *
 * So one request's pages come over the bus while the one before it is reduced.  States change
 * in step 2 alone, and in the order of the requests.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/pipeline/scan_device.cuh"

/*
 * Polls before wait begins to sleep between them, which takes about a millisecond, and how long it
 * asks to sleep; it takes three times that, which requests of a thousand pages would notice.
 */
#define POLLS_BEFORE_SLEEP 2000
#define SLEEP_MICROSECONDS 20

/* Places for rows that come of a line beside the first: at first, and at most. */
#define EXTRAS_SHARE 4			/* of the lines */
#define EXTRAS_MIN 256
#define EXTRAS_MAX ((uint64_t) 1 << 26)

/* GhScanRequest.engine_state */
enum scan_request_state
{
	SCAN_STATE_NEXT,			/* the request behind it in the pending list */
	SCAN_STATE_LINES			/* of all its pages */
};

/* -------------------------------------------------------------------- the queue */

static void
finish(GhScanRequest *request, GhStatus status)
{
	request->status = status;
	request->scan = nullptr;
	if (status == GH_STOPPED)
		(void) gh_error_set(&request->error, GH_STOPPED, "the request was stopped");
}

static void
pending_pop(cuda_scan *scan)
{
	scan->pending =
		reinterpret_cast<GhScanRequest *>(scan->pending->engine_state[SCAN_STATE_NEXT]);
	if (scan->pending == nullptr)
		scan->pending_last = nullptr;
}

GhStatus
scan_wait_streams(cuda_scan *scan, GhError *error)
{
	for (int i = 0; i < SCAN_LANES; i++)
		SCAN_TRY(scan, cudaStreamSynchronize(scan->lanes[i].stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	return GH_OK;
}

/* Is what an event stands for done?  After a failure it is not. */
static bool
event_done(cuda_scan *scan, cudaEvent_t event)
{
	cudaError_t status = cudaEventQuery(event);

	if (status == cudaErrorNotReady)
		/* not a failure, but remembered as if it were one */
		(void) cudaGetLastError();
	else if (status != cudaSuccess)
		(void) scan_failed(scan, status, "cudaEventQuery", nullptr);
	return status == cudaSuccess;
}

/* --------------------------------------------------------------- reading pages */

/* Values of the threads that read pages: of columns and temporaries. */
static GhStatus
scratch_reserve(cuda_scan *scan, scan_lane *lane, scratch_view *scratch, GhError *error)
{
	const GhProgram *program = scan->plan.options.program;
	uint64_t	values;
	carver		sizes = {};
	carver		arrays = {};

	scratch->threads = pages_blocks(scan) * SCAN_THREADS;
	/* vector 0 is named where an instruction has no argument */
	values = (uint64_t) scratch->threads * (program->ncolumns + program->ntemporaries + 1);
	(void) sizes.array<uint64_t>(values);
	(void) sizes.array<uint64_t>(values);
	(void) sizes.array<uint8_t>(values);
	if (lane->scratch_block.memory == nullptr)
	{
		GH_TRY(scan_alloc(scan, sizes.used, false, &lane->scratch_block, error));
		SCAN_TRY(scan, cudaMemsetAsync(lane->scratch_block.memory, 0, lane->scratch_block.bytes,
									   lane->stream), error);
	}
	arrays.base = lane->scratch_block.memory;
	scratch->low = arrays.array<uint64_t>(values);
	scratch->high = arrays.array<uint64_t>(values);
	scratch->null = arrays.array<uint8_t>(values);
	return GH_OK;
}

/*
 * Copies a page to which others may write, from its end to its begin: so that of each tuple xmax, which
 * comes first in it, is read after the infomask, as gh_scan_judge() would have it.
 */
static void
copy_backwards(void *to, const void *from, size_t bytes)
{
	uint64_t   *words = static_cast<uint64_t *>(to);
	const uint64_t *source = static_cast<const uint64_t *>(from);

	for (size_t i = bytes / sizeof(uint64_t); i-- > 0;)
		words[i] = __atomic_load_n(&source[i], __ATOMIC_ACQUIRE);
}

/* Copies pages that the device cannot read where they are. */
static GhStatus
stage_pages(cuda_scan *scan, scan_lane *lane, GhError *error)
{
	const GhScanRequest *request = lane->request;
	size_t		page_bytes = scan->plan.options.page_bytes;

	GH_TRY(scan_host_reserve(scan, &lane->staged, &lane->staged_bytes, request->npages * page_bytes,
							 error));
	for (uint32_t p = 0; p < request->npages; p++)
	{
		lane->host_pages[p].page = lane->staged + p * page_bytes;
		if (request->pages[p].hinted)
			copy_backwards(lane->staged + p * page_bytes, request->pages[p].page, page_bytes);
		else
			memcpy(lane->staged + p * page_bytes, request->pages[p].page, page_bytes);
	}
	return GH_OK;
}

/* What the pages' kernel is told, on its way to the device. */
static GhStatus
send_lists(cuda_scan *scan, scan_lane *lane, GhError *error)
{
	const GhScanRequest *request = lane->request;
	uint32_t	first = 0;

	for (uint32_t p = 0; p < request->npages; p++)
	{
		lane->host_pages[p] = request->pages[p];
		lane->host_firsts[p] = first;
		first += request->pages[p].lines;
	}
	if (!request->readable || !scan->direct)
		GH_TRY(stage_pages(scan, lane, error));
	SCAN_TRY(scan, cudaMemcpyAsync(lane->pages, lane->host_pages,
								   request->npages * sizeof(GhScanPage), cudaMemcpyHostToDevice,
								   lane->stream), error);
	SCAN_TRY(scan, cudaMemcpyAsync(lane->firsts, lane->host_firsts,
								   request->npages * sizeof(uint32_t), cudaMemcpyHostToDevice,
								   lane->stream), error);
	if (request->nbitmaps == 0)
		return GH_OK;
	memcpy(lane->host_bitmaps, request->bitmaps, request->nbitmaps * sizeof(uint64_t));
	SCAN_TRY(scan, cudaMemcpyAsync(lane->bitmaps, lane->host_bitmaps,
								   request->nbitmaps * sizeof(uint64_t), cudaMemcpyHostToDevice,
								   lane->stream), error);
	return GH_OK;
}

static GhStatus
fetch_counters(cuda_scan *scan, scan_lane *lane, cudaStream_t stream, cudaEvent_t event,
			   GhError *error)
{
	GH_TRY(scan_send(scan, lane->host_counters, lane->counters, sizeof(scan_counters), stream, error));
	SCAN_TRY(scan, cudaEventRecord(event, stream), error);
	return GH_OK;
}

/* Enqueues the reading of the lane's pages, whose lists are on the device. */
static GhStatus
read_pages(cuda_scan *scan, scan_lane *lane, GhError *error)
{
	pages_job	job;

	job.plan = scan->view;
	job.groups = scan->groups;
	job.texts = scan->rows.texts;
	job.lines = lane->lines;
	job.pages = lane->pages;
	job.firsts = lane->firsts;
	job.bitmaps = lane->bitmaps;
	job.npages = lane->request->npages;
	job.counters = lane->counters;
	GH_TRY(scratch_reserve(scan, lane, &job.scratch, error));
	SCAN_TRY(scan, cudaMemsetAsync(lane->counters, 0, sizeof(scan_counters), lane->stream), error);
	/* one behind the other: side by side both would end at once, and the bus be idle then */
	if (scan->reading != nullptr)
		SCAN_TRY(scan, cudaStreamWaitEvent(lane->stream, scan->reading->read, 0), error);
	scan->reading = lane;
	if (lane->request->unmatched != 0)
		GH_TRY(unmatched_launch(scan, &job, lane->request->first_row, lane->stream, error));
	else
		GH_TRY(pages_launch(scan, &job, lane->stream, error));
	GH_TRY(fetch_counters(scan, lane, lane->stream, lane->read, error));
	lane->generation = scan->generation;
	lane->phase = PHASE_READING;
	return GH_OK;
}

/* Memory for a request, beside that of the threads that read it; see scan_lane_reserve(). */
static GhStatus
reserve_lane(cuda_scan *scan, scan_lane *lane, const GhScanRequest *request, GhError *error)
{
	uint32_t	lines = (uint32_t) request->engine_state[SCAN_STATE_LINES];

	if (!scan_keeps_rows(scan))
		GH_TRY(reduce_reserve(scan, lines + (scan->view.multiplies ? lane->extras : 0), error));
	return scan_lane_reserve(scan, lane, request, lines, error);
}

/* Begins the request in a lane; anything but GH_OK and GH_DEVICE_ERROR leaves the lane free. */
static GhStatus
begin_request(cuda_scan *scan, scan_lane *lane, GhScanRequest *request, GhError *error)
{
	uint32_t	lines = (uint32_t) request->engine_state[SCAN_STATE_LINES];
	scratch_view scratch;
	GhStatus	status;

	if (lane->extras < lines / EXTRAS_SHARE + EXTRAS_MIN)
		lane->extras = lines / EXTRAS_SHARE + EXTRAS_MIN;
	GH_TRY(reserve_lane(scan, lane, request, error));
	GH_TRY(scratch_reserve(scan, lane, &scratch, error));
	lane->request = request;
	status = send_lists(scan, lane, error);
	if (status == GH_OK)
		status = read_pages(scan, lane, error);
	if (status != GH_OK)
		lane->request = nullptr;
	return status;
}

/* Are pages on their way, which may be read once more, and mark what they did not the first time? */
static bool
pages_fly(const cuda_scan *scan)
{
	for (uint32_t i = 0; i < scan->flying; i++)
		if (scan->flight[i]->request->unmatched == 0)
			return true;
	return false;
}

/* Begins the first pending request, or ends it; false: it has to wait. */
static bool
begin_first(cuda_scan *scan)
{
	GhScanRequest *request = scan->pending;
	scan_lane  *lane = nullptr;
	GhError		error = {};
	GhStatus	status;

	if (request->unmatched != 0 && pages_fly(scan))
		return false;
	for (int i = SCAN_LANES - 1; i >= 0; i--)
		if (scan->lanes[i].request == nullptr)
			lane = &scan->lanes[i];
	if (lane == nullptr)
		return false;
	status = scan->host.stop != nullptr && *scan->host.stop != 0 ? GH_STOPPED :
		begin_request(scan, lane, request, &error);
	/* a lane that is in use has memory, and will be free */
	if (status == GH_DEVICE_ERROR ||
		((status == GH_LIMIT || status == GH_NO_MEMORY) && scan->flying > 0))
		return false;
	pending_pop(scan);
	if (status == GH_OK)
		scan->flight[scan->flying++] = lane;
	else
	{
		scan->lines_total -= request->engine_state[SCAN_STATE_LINES];
		request->error = error;
		finish(request, status);
	}
	return true;
}

/* -------------------------------------------------------------------- reducing */

/* The lines are read: enqueues their reduction, or puts them to the rows that are kept, or lists them. */
static GhStatus
reduce_lane(cuda_scan *scan, scan_lane *lane, GhError *error)
{
	bool		lists = scan->plan.options.lists_rows != 0;
	bool		back = lane->host_counters->back > 0 || (lists && lane->host_counters->counted > 0);
	uint32_t	extras = used_extras(lane);
	uint64_t	rows = counted_rows(scan, lane);

	/* more could not be summed up */
	lane->refused = scan->counted + rows > GH_SCAN_ROWS_MAX && rows > lane->lines.count;
	if (lane->refused)
		GH_TRY(rows_refuse(scan, &lane->lines, error));
	else if (scan_keeps_rows(scan))
		GH_TRY(rows_append(scan, &lane->lines, extras, rows, &lane->refused, error));
	else if (!lists)
		GH_TRY(reduce_launch(scan, &lane->lines, extras, (uint32_t) rows, lane->counters, error));
	back |= lane->refused;
	if (back && lane->request->unmatched == 0)
		GH_TRY(scan_send(scan, lane->host_state, lane->lines.state, lane->lines.count,
						 scan->reduce_stream, error));
	lane->phase = PHASE_REDUCING;
	return fetch_counters(scan, lane, scan->reduce_stream, lane->reduced, error);
}

/* More places behind the lines, for pages that are then read again; it is no error where there is no memory. */
static GhStatus
grow_extras(cuda_scan *scan, scan_lane *lane, bool *grown, GhError *error)
{
	const scan_counters *counters = lane->host_counters;
	uint64_t	wanted = counters->wanted + used_extras(lane);
	uint32_t	before = lane->extras;
	GhStatus	status;

	if (wanted < 2 * (uint64_t) before)
		wanted = 2 * (uint64_t) before;
	if (wanted > EXTRAS_MAX)
		wanted = EXTRAS_MAX;
	if (wanted <= before)
		return GH_OK;
	GH_TRY(scan_wait_streams(scan, error));
	lane->extras = (uint32_t) wanted;
	status = reserve_lane(scan, lane, lane->request, error);
	*grown = status == GH_OK;
	if (status == GH_OK)
		return send_lists(scan, lane, error);
	lane->extras = before;
	return status == GH_DEVICE_ERROR ? status : GH_OK;
}

/* Pages of a lane were read: once more, where there is room now for what had none. */
static GhStatus
go_on(cuda_scan *scan, scan_lane *lane, GhError *error)
{
	const scan_counters *counters = lane->host_counters;
	bool		lacks = counters->texts_full + counters->groups_full > 0;
	bool		again = counters->no_group > 0 && lane->generation != scan->generation;
	bool		larger = false;

	if (lacks && !again)
		GH_TRY(scan_keeps_rows(scan) ? rows_grow_texts(scan, &again, error) :
			   groups_grow(scan, counters, &again, error));
	if (counters->extras_full > 0)
		GH_TRY(grow_extras(scan, lane, &larger, error));
	return again || larger ? read_pages(scan, lane, error) : reduce_lane(scan, lane, error);
}

/* The lane's request is counted. */
static void
end_request(cuda_scan *scan, scan_lane *lane)
{
	const scan_counters *counters = lane->host_counters;
	GhScanRequest *request = lane->request;

	if (counters->unfit != 0)
	{
		GhError		ignored;

		/* pages of another request may be on their way */
		(void) scan_wait_streams(scan, &ignored);
		(void) gh_error_set(&scan->error, GH_DEVICE_ERROR, "a sum of a scan did not fit");
		scan->failed = true;
		return;
	}
	tell_counts(scan, lane, request);
	if (counters->back > 0 || lane->refused || (scan->plan.options.lists_rows != 0 && counters->counted > 0))
		list_back(scan, lane, request);
	scan->counted += request->counted;
	scan->flying--;
	memmove(scan->flight, scan->flight + 1, scan->flying * sizeof(scan_lane *));
	lane->request = nullptr;
	finish(request, GH_OK);
}

/* Does what can be done now. */
static void
scan_advance(cuda_scan *scan)
{
	cudaError_t status;
	GhError		error;

	if (scan->failed)
		return;
	status = cudaSetDevice(scan->plan.options.device);
	if (status != cudaSuccess)
	{
		(void) scan_failed(scan, status, "cudaSetDevice", nullptr);
		return;
	}
	for (bool moved = true; moved && !scan->failed;)
	{
		scan_lane  *lane = scan->flying > 0 ? scan->flight[0] : nullptr;

		moved = false;
		if (lane != nullptr && lane->phase == PHASE_READING && event_done(scan, lane->read))
			moved = go_on(scan, lane, &error) == GH_OK;
		else if (lane != nullptr && lane->phase == PHASE_REDUCING &&
				 event_done(scan, lane->reduced))
		{
			end_request(scan, lane);
			moved = true;
		}
		if (!scan->failed && scan->pending != nullptr)
			moved |= begin_first(scan);
	}
}

/* -------------------------------------------------------------------- requests */

static GhStatus
cuda_scan_submit(GhScan *handle, GhScanRequest *request)
{
	cuda_scan  *scan = reinterpret_cast<cuda_scan *>(handle);
	uint64_t	lines;
	GhStatus	status;

	request->scan = nullptr;
	request->counted = request->seen = request->passed = request->nback = request->no_group = 0;
	memset(request->joined, 0, sizeof(request->joined));
	if (scan->failed)
	{
		request->error = scan->error;
		return request->status = GH_DEVICE_ERROR;
	}
	status = gh_scan_request_check(&scan->plan, request, &lines, &request->error);
	if (status == GH_OK && scan->rows.made)
		status = gh_error_set(&request->error, GH_INVALID, "a scan whose table was made takes no "
							  "more pages");
	if (status == GH_OK && lines > GH_SCAN_ROWS_MAX - scan->lines_total)
		status = gh_error_set(&request->error, GH_TOO_MANY, "a scan of more than 2^40 rows");
	if (status != GH_OK)
		return request->status = status;
	memset(&request->error, 0, sizeof(request->error));
	memset(request->engine_state, 0, sizeof(request->engine_state));
	request->engine_state[SCAN_STATE_LINES] = lines;
	request->status = GH_BUSY;
	request->scan = handle;
	scan->lines_total += lines;
	if (scan->pending == nullptr)
		scan->pending = request;
	else
		scan->pending_last->engine_state[SCAN_STATE_NEXT] = reinterpret_cast<uintptr_t>(request);
	scan->pending_last = request;
	scan_advance(scan);
	return request->status == GH_BUSY ? GH_BUSY : GH_OK;
}

static GhStatus
cuda_scan_poll(GhScanRequest *request)
{
	cuda_scan  *scan;

	if (request->status != GH_BUSY || request->scan == nullptr)
		return request->status;
	scan = reinterpret_cast<cuda_scan *>(request->scan);
	scan_advance(scan);
	if (request->status == GH_BUSY && scan->failed)
	{
		/* nothing runs any more: the failure waited for the streams */
		request->error = scan->error;
		finish(request, GH_DEVICE_ERROR);
	}
	return request->status;
}

static GhStatus
cuda_scan_wait(GhScanRequest *request)
{
	for (uint32_t polls = 0; cuda_scan_poll(request) == GH_BUSY; polls++)
	{
		if (polls < POLLS_BEFORE_SLEEP)
			(void) sched_yield();
		else
			(void) usleep(SLEEP_MICROSECONDS);
	}
	return request->status;
}

/* Until nothing is pending or in flight, with the device current. */
static GhStatus
scan_drain(cuda_scan *scan, GhError *error)
{
	while (!scan->failed && (scan->pending != nullptr || scan->flying > 0))
	{
		scan_advance(scan);
		(void) sched_yield();
	}
	if (!scan->failed)
		SCAN_TRY(scan, cudaSetDevice(scan->plan.options.device), error);
	if (scan->failed)
		*error = scan->error;
	return scan->failed ? GH_DEVICE_ERROR : GH_OK;
}

static GhStatus
cuda_scan_results(GhScan *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
				  GhError *error)
{
	cuda_scan  *scan = reinterpret_cast<cuda_scan *>(handle);

	*bytes = 0;
	if (scan->plan.options.nparts > 0)
		return gh_error_set(error, GH_INVALID, "a scan that makes a table has no groups");
	if (scan->plan.options.lists_rows != 0)
		return gh_error_set(error, GH_INVALID, "a scan that lists rows has no groups");
	GH_TRY(scan_drain(scan, error));
	if (scan->plan.options.each_row != 0)
		return records_fetch(scan, cursor, capacity, static_cast<char *>(buffer), bytes, error);
	return scan_fetch(scan, cursor, capacity, static_cast<char *>(buffer), bytes, error);
}

static GhStatus
cuda_scan_make_table(GhScan *handle, GhScanTable *table, GhError *error)
{
	cuda_scan  *scan = reinterpret_cast<cuda_scan *>(handle);

	if (scan->plan.options.nparts == 0 || scan->rows.made)
		return gh_error_set(error, GH_INVALID, "a scan %s", scan->rows.made ?
							"made its table before" : "makes no table");
	GH_TRY(scan_drain(scan, error));
	return rows_make_table(scan, table, error);
}

static GhStatus
cuda_scan_stats(GhScan *handle, GhScanStats *stats, GhError *error)
{
	cuda_scan  *scan = reinterpret_cast<cuda_scan *>(handle);
	uint32_t	count;

	memset(stats, 0, sizeof(*stats));
	GH_TRY(scan_drain(scan, error));
	stats->groups = scan->rows.count;
	if (!scan_keeps_rows(scan))
	{
		GH_TRY(groups_count(scan, &count, error));
		stats->groups = count;
	}
	stats->counted = scan->counted;
	stats->bytes = scan->bytes + scan->rows.table_bytes;
	stats->bytes_peak = scan->bytes_peak;
	stats->work_bytes = scan->work_bytes;
	return GH_OK;
}

/* ------------------------------------------------------------ making and ending */

static void
lane_end(cuda_scan *scan, scan_lane *lane)
{
	scan_free(scan, false, &lane->block);
	scan_free(scan, false, &lane->scratch_block);
	if (lane->host != nullptr)
		(void) cudaFreeHost(lane->host);
	if (lane->staged != nullptr)
		(void) cudaFreeHost(lane->staged);
	if (lane->read != nullptr)
		(void) cudaEventDestroy(lane->read);
	if (lane->reduced != nullptr)
		(void) cudaEventDestroy(lane->reduced);
	if (lane->stream != nullptr)
		(void) cudaStreamDestroy(lane->stream);
}

/* After a device error the calls fail, which is as it should be. */
static void
cuda_scan_destroy(GhScan *handle)
{
	cuda_scan  *scan = reinterpret_cast<cuda_scan *>(handle);

	if (scan == nullptr)
		return;
	(void) cudaSetDevice(scan->plan.options.device);
	/* what is in flight reads callers' pages */
	for (int i = 0; i < SCAN_LANES; i++)
		if (scan->lanes[i].stream != nullptr)
			(void) cudaStreamSynchronize(scan->lanes[i].stream);
	if (scan->reduce_stream != nullptr)
		(void) cudaStreamSynchronize(scan->reduce_stream);
	rows_destroy(scan);
	records_destroy(scan);
	groups_destroy(scan);
	scan_free(scan, false, &scan->plan_block);
	scan_free(scan, false, &scan->reduce_block);
	for (int i = 0; i < SCAN_LANES; i++)
		lane_end(scan, &scan->lanes[i]);
	if (scan->reduce_stream != nullptr)
		(void) cudaStreamDestroy(scan->reduce_stream);
	(void) cudaGetLastError();
	gh_scan_plan_drop(&scan->plan);
	free(scan);
}

static GhStatus
create_contents(cuda_scan *scan, GhError *error)
{
	int			device = scan->plan.options.device;

	/* not ordered with the default stream, which nobody here uses */
	SCAN_TRY(scan, cudaStreamCreateWithFlags(&scan->reduce_stream, cudaStreamNonBlocking), error);
	for (int i = 0; i < SCAN_LANES; i++)
	{
		scan_lane  *lane = &scan->lanes[i];

		SCAN_TRY(scan, cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking), error);
		SCAN_TRY(scan, cudaEventCreateWithFlags(&lane->read, cudaEventDisableTiming), error);
		SCAN_TRY(scan, cudaEventCreateWithFlags(&lane->reduced, cudaEventDisableTiming), error);
	}
	scan->multiprocessors = device_attribute(device, cudaDevAttrMultiProcessorCount);
	scan->direct = device_attribute(device, cudaDevAttrCanUseHostPointerForRegisteredMem) != 0;
	GH_TRY(scan_plan_upload(scan, error));
	if (!scan_keeps_rows(scan))
		return groups_create(scan, error);
	GH_TRY(rows_create(scan, error));
	return scan->plan.options.each_row != 0 ? records_create(scan, error) : GH_OK;
}

static GhStatus
cuda_scan_create(const GhHost *host, const GhScanOptions *options, GhScan **handle, GhError *error)
{
	cuda_scan  *scan = static_cast<cuda_scan *>(calloc(1, sizeof(cuda_scan)));
	GhStatus	status;

	*handle = nullptr;
	if (scan == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a scan's handle");
	scan->base.engine = &cuda_scans;
	scan->base.plan = &scan->plan;
	if (host != nullptr)
		scan->host = *host;
	status = gh_scan_plan_init(&scan->plan, &cuda_scans, options, error);
	if (status == GH_OK)
		status = device_open(scan->plan.options.device, error);
	if (status != GH_OK)
	{
		gh_scan_plan_drop(&scan->plan);
		free(scan);
		return status;
	}
	status = create_contents(scan, error);
	if (status != GH_OK)
	{
		cuda_scan_destroy(&scan->base);
		return status;
	}
	*handle = &scan->base;
	return GH_OK;
}

const GhScanEngine cuda_scans = {
	cuda_scan_create,
	cuda_scan_destroy,
	cuda_scan_submit,
	cuda_scan_poll,
	cuda_scan_wait,
	cuda_scan_results,
	cuda_scan_make_table,
	cuda_scan_stats,
	nullptr						/* times */
};
