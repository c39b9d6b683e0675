/*
 * cpu_request.c
 *		Requests: a queue on the handle, done in slices by whoever polls.
 *
 * Nothing runs but inside poll and wait.  A slice takes the lock, does a few
 * thousand keys or a piece of a resize, and releases the lock: other processes
 * get their turn, and the stop flag is seen within a millisecond.
 */
#include "cpu_internal.h"

#include <string.h>

static GhRequest *
next_in_queue(const GhRequest *request)
{
	return (GhRequest *) (uintptr_t) request->engine_state[GH_CPU_STATE_NEXT];
}

GhStatus
gh_cpu_submit(GhTable *common, GhRequest *request)
{
	GhCpuTable *table = (GhCpuTable *) common;
	const GhCpuRoot *root = table->host.address(table->host.ctx, table->root);
	GhStatus	status;

	status = gh_request_check(&root->options, request, &request->error);
	if (status != GH_OK)
	{
		request->status = status;
		request->table = NULL;
		return status;
	}
	if (request->op == GH_FIND_ALL)
		request->done = request->matched = request->values_count = 0;
	memset(request->engine_state, 0, sizeof(request->engine_state));
	memset(&request->error, 0, sizeof(request->error));
	request->status = GH_BUSY;
	request->table = common;
	if (table->queue_head == NULL)
		table->queue_head = request;
	else
		table->queue_tail->engine_state[GH_CPU_STATE_NEXT] = (uintptr_t) request;
	table->queue_tail = request;
	return GH_BUSY;
}

/* One slice of the request at the head of the queue. */
static GhStatus
do_slice(GhCpuTable *table, GhRequest *request)
{
	bool		reads = request->op == GH_FIND || request->op == GH_FIND_ALL;
	uint64_t	before = request->done;
	GhCpuRoot  *root;
	GhStatus	status;

	if (gh_cpu_stopped(table))
		return gh_error_set(&request->error, GH_STOPPED, "the request was stopped");

	gh_cpu_lock(table, reads ? GH_LOCK_SHARED : GH_LOCK_EXCLUSIVE);
	root = table->view.root;
	if (!reads)
		root->version++;
	if (!reads && root->resize.phase != GH_CPU_STEADY)
	{
		gh_cpu_resize_slice(table);
		status = GH_BUSY;
	}
	else if (request->op == GH_FIND)
		status = gh_cpu_find_slice(table, request);
	else if (request->op == GH_FIND_ALL)
		status = gh_cpu_find_all_slice(table, request);
	else if (request->op == GH_DELETE)
		status = gh_cpu_delete_slice(table, request);
	else
		status = gh_cpu_write_slice(table, request);

	/* readers hold a shared lock only */
	if (reads)
		(void) __atomic_fetch_add(&root->reads, request->done - before, __ATOMIC_RELAXED);
	else
		root->writes += request->done - before;
	gh_cpu_unlock(table);
	return status;
}

static void
advance_queue(GhCpuTable *table)
{
	GhRequest  *request = table->queue_head;
	GhStatus	status = do_slice(table, request);

	if (status == GH_BUSY)
		return;
	table->queue_head = next_in_queue(request);
	if (table->queue_head == NULL)
		table->queue_tail = NULL;
	request->status = status;
	request->table = NULL;
}

GhStatus
gh_cpu_poll(GhRequest *request)
{
	if (request->status == GH_BUSY && request->table != NULL)
		advance_queue((GhCpuTable *) request->table);
	return request->status;
}

GhStatus
gh_cpu_wait(GhRequest *request)
{
	while (gh_cpu_poll(request) == GH_BUSY)
		continue;
	return request->status;
}
