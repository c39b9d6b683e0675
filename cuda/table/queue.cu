/*
 * queue.cu
 *		Requests: submit, poll, wait.
 *
 * Requests wait in a list in the order of submission.  Whoever calls submit or
 * poll moves the list on, and nothing else does:
 *
 *	- FIND and COUNT are cut into pieces.  Each takes a free lane, and its copy in, kernel,
 *	  copy out and event are enqueued without waiting.  Pieces of several
 *	  requests may be in flight; they only read the table.  Pieces are finished
 *	  in the order they were started, so that GhOutcome.done is a prefix.
 *	- Any other request waits until no piece is in flight and is then done
 *	  slice by slice, one slice a poll; the slice waits for the device.  So
 *	  finds behind it start when the table is as it left it, and kernels that
 *	  change the table never run beside others.
 *
 * The stop flag is looked at before a piece or slice is started; what is in
 * flight is short and is waited for, for the device writes to the caller's
 * arrays until then.
 */
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/table/table.h"

/* polls before wait begins to sleep between them, and how long it does */
#define POLLS_BEFORE_SLEEP 200
#define SLEEP_MICROSECONDS 20

static uint64_t
clock_ns(void)
{
	struct timespec now;

	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

bool
stop_seen(const cuda_table *table)
{
	return table->host.stop != nullptr && *table->host.stop != 0;
}

static cuda_table *
request_table(const GhRequest *request)
{
	return reinterpret_cast<cuda_table *>(request->table);
}

static void
finish(GhRequest *request, GhStatus status)
{
	request->status = status;
	request->table = nullptr;
	if (status == GH_STOPPED)
		(void) gh_error_set(&request->error, GH_STOPPED, "the request was stopped");
}

static void
pending_pop(cuda_table *table)
{
	GhRequest  *request = table->pending;

	table->pending = reinterpret_cast<GhRequest *>(request->engine_state[STATE_NEXT]);
	if (table->pending == nullptr)
		table->pending_last = nullptr;
}

/* Finishes pieces that are through, oldest first. */
static void
finish_flights(cuda_table *table)
{
	while (table->flying > 0)
	{
		lane	   *oldest = table->flight[0];
		GhRequest  *request = oldest->request;
		cudaError_t status = cudaEventQuery(oldest->done);

		if (status == cudaErrorNotReady)
		{
			/* not a failure, but remembered as if it were one */
			(void) cudaGetLastError();
			return;
		}
		if (status != cudaSuccess)
		{
			(void) table_failed(table, status, "cudaEventQuery", nullptr);
			return;
		}
		if (find_finish(table, oldest, nullptr) != GH_OK)
			return;
		table->flying--;
		memmove(table->flight, table->flight + 1, table->flying * sizeof(lane *));
		oldest->request = nullptr;

		request->engine_state[STATE_FLYING]--;
		if (request->outcome.done == request->count)
			finish(request, GH_OK);
		else if (request->engine_state[STATE_STOPPED] != 0 &&
				 request->engine_state[STATE_FLYING] == 0)
			finish(request, GH_STOPPED);
	}
}

/* Takes the first pending request out, to be finished when its pieces are. */
static void
stop_first(cuda_table *table)
{
	GhRequest  *request = table->pending;

	pending_pop(table);
	if (request->engine_state[STATE_FLYING] == 0)
		finish(request, GH_STOPPED);
	else
		request->engine_state[STATE_STOPPED] = 1;
}

/* The request's first piece or slice starts; nothing is before it in its lane. */
static void
count_queue_time(cuda_table *table, GhRequest *request)
{
	if (request->engine_state[STATE_SUBMITTED_NS] == 0)
		return;
	table->stats.queue_ns += clock_ns() - request->engine_state[STATE_SUBMITTED_NS];
	request->engine_state[STATE_SUBMITTED_NS] = 0;
}

/* One slice of the first pending request, which is no FIND or COUNT. */
static void
step_first(cuda_table *table)
{
	GhRequest  *request = table->pending;
	uint64_t	before = request->outcome.done;
	GhStatus	status;

	count_queue_time(table, request);
	if (request->op == GH_FIND_ALL)
		status = find_all_step(table, request, &request->error);
	else
	{
		status = request->op == GH_BUILD ? build_step(table, request, &request->error) :
			batch_step(table, request, &request->error);
		table->stats.writes += request->outcome.done - before;
		if (status == GH_BUSY && request->outcome.done == request->count)
			status = GH_OK;
	}
	if (status != GH_BUSY)
	{
		if (status != GH_DEVICE_ERROR)
		{
			/* the memory of very large slices is not kept */
			lane_shrink(table, &table->lanes[0],
						request->op == GH_BUILD ? BUILT_KEPT_BYTES : LANE_KEPT_BYTES);
			/* what scratch memory, values that were compacted or a larger subtable had is free now */
			if (request->op != GH_FIND_ALL && paging_settle(table, &request->error) != GH_OK)
				status = GH_DEVICE_ERROR;
		}
		/* the first failure tells why, not what could not be done after it */
		if (status == GH_DEVICE_ERROR)
			request->error = table->error;
		pending_pop(table);
		finish(request, status);
	}
}

/* Starts pieces of the first pending request, a FIND or COUNT; false when no more can be. */
static bool
start_first(cuda_table *table)
{
	GhRequest  *request = table->pending;
	bool		started = true;

	while (started && request->engine_state[STATE_STARTED] < request->count)
	{
		if (find_start(table, request, &started, nullptr) != GH_OK)
			return false;
		if (started)
			count_queue_time(table, request);
	}
	if (request->engine_state[STATE_STARTED] < request->count)
		return false;
	pending_pop(table);
	if (request->count == request->outcome.done)
		finish(request, GH_OK);
	return true;
}

/* Does what can be done now, without waiting but for one slice. */
static void
queue_advance(cuda_table *table)
{
	cudaError_t status;

	if (table->failed)
		return;
	status = cudaSetDevice(table->options.device);
	if (status != cudaSuccess)
	{
		(void) table_failed(table, status, "cudaSetDevice", nullptr);
		return;
	}
	finish_flights(table);
	while (!table->failed && table->pending != nullptr)
	{
		GhRequest  *request = table->pending;

		if (stop_seen(table) && request->outcome.done < request->count)
			stop_first(table);
		else if (request->op == GH_FIND || request->op == GH_COUNT)
		{
			if (!start_first(table))
				return;
		}
		else
		{
			if (table->flying == 0)
				step_first(table);
			return;
		}
	}
}

/* Kernels read keys and values on the device in units of up to 16 bytes; an address
 * that does not allow it would cost the table its content. */
static GhStatus
check_alignment(GhRequest *request)
{
	uintptr_t	addresses = reinterpret_cast<uintptr_t>(request->keys) |
		reinterpret_cast<uintptr_t>(request->values_in) |
		reinterpret_cast<uintptr_t>(request->values_out) |
		reinterpret_cast<uintptr_t>(request->counts_out) |
		reinterpret_cast<uintptr_t>(request->offsets_out);

	if (addresses % 16 != 0)
		return gh_error_set(&request->error, GH_INVALID,
							"an array on the device is not aligned to 16 bytes");
	return GH_OK;
}

GhStatus
cuda_submit(GhTable *handle, GhRequest *request)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);
	GhStatus	status;

	request->table = nullptr;
	if (table->failed)
	{
		request->error = table->error;
		return request->status = GH_DEVICE_ERROR;
	}
	status = table->rows != nullptr ? gh_made_request_check(table->made_value_size, request, &request->error) :
		gh_request_check(&table->options, request, &request->error);
	if (status == GH_OK && request->on_device)
		status = check_alignment(request);
	if (status != GH_OK)
		return request->status = status;

	memset(&request->error, 0, sizeof(request->error));
	memset(request->engine_state, 0, sizeof(request->engine_state));
	/* these two start anew */
	if (request->op == GH_FIND_ALL || request->op == GH_BUILD)
		request->outcome = {};
	request->engine_state[STATE_STARTED] = request->outcome.done;
	request->engine_state[STATE_SUBMITTED_NS] = table->options.timing ? clock_ns() : 0;
	request->status = GH_BUSY;
	request->table = handle;
	if (table->pending == nullptr)
		table->pending = request;
	else
		table->pending_last->engine_state[STATE_NEXT] =
			reinterpret_cast<uintptr_t>(request);
	table->pending_last = request;
	queue_advance(table);
	return request->status == GH_BUSY ? GH_BUSY : GH_OK;
}

GhStatus
cuda_poll(GhRequest *request)
{
	cuda_table *table;

	if (request->status != GH_BUSY || request->table == nullptr)
		return request->status;
	table = request_table(request);
	queue_advance(table);
	if (request->status == GH_BUSY && table->failed)
	{
		/* nothing runs any more: the failure waited for the lanes */
		request->error = table->error;
		finish(request, GH_DEVICE_ERROR);
	}
	return request->status;
}

GhStatus
cuda_wait(GhRequest *request)
{
	for (uint32_t polls = 0; cuda_poll(request) == GH_BUSY; polls++)
	{
		/* only finds in flight get here often: slices wait for themselves */
		if (polls < POLLS_BEFORE_SLEEP)
			(void) sched_yield();
		else
			(void) usleep(SLEEP_MICROSECONDS);
	}
	return request->status;
}

/* Until nothing is pending or in flight. */
void
queue_drain(cuda_table *table)
{
	while (!table->failed && (table->pending != nullptr || table->flying > 0))
	{
		queue_advance(table);
		(void) sched_yield();
	}
}
