/*
 * cpu_request.c
 *		Requests: a queue on the handle, done in slices by whoever polls.
 *
 * Nothing runs but inside poll and wait.  A slice takes the lock, does a few
 * thousand keys or a piece of a resize, and releases the lock: other processes
 * get their turn, and the stop flag is seen within a millisecond.
 */
#include "engine/table/cpu_internal.h"

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

	status = table->rows != NULL ? gh_made_request_check(table->made_value_size, request, &request->error) :
		gh_request_check(&root->options, request, &request->error);
	if (status == GH_OK && request->on_device)
		status = gh_error_set(&request->error, GH_UNSUPPORTED,
							  "the CPU engine has no device memory");
	if (status != GH_OK)
	{
		request->status = status;
		request->table = NULL;
		return status;
	}
	if (request->op == GH_FIND_ALL || request->op == GH_BUILD)
		request->outcome.done = 0;
	if (gh_cpu_exchange_goes_on(root, request))
		request->engine_state[GH_CPU_STATE_NEXT] = 0;
	else
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

static GhStatus
do_operation(GhCpuTable *table, GhRequest *request)
{
	switch (request->op)
	{
		case GH_FIND:
			return table->rows != NULL ? gh_cpu_made_find_slice(table, request) : gh_cpu_find_slice(table, request);
		case GH_COUNT:
			return gh_cpu_count_slice(table, request);
		case GH_FIND_ALL:
			return gh_cpu_find_all_slice(table, request);
		case GH_DELETE:
		case GH_DELETE_ONE:
			return gh_cpu_delete_slice(table, request);
		case GH_MIXED:
			return gh_cpu_mixed_slice(table, request);
		case GH_BUILD:
			return gh_cpu_build_slice(table, request);
		case GH_EXCHANGE:
			return gh_cpu_exchange_slice(table, request);
		default:
			return gh_cpu_write_slice(table, request);
	}
}

/* What a slice that writes finds to do before its own work; false: nothing. */
bool
gh_cpu_carry_on(GhCpuTable *table)
{
	GhCpuRoot  *root = table->view.root;

	/* its build was overtaken: it has no say any more */
	if (table->building != 0 && root->hidden != table->building)
		return false;
	if (root->hidden != 0 && root->hidden != table->building)
	{
		/* a build that nobody goes on with, or that this one overtakes */
		if (root->hidden != GH_CPU_BLANKING)
			gh_cpu_hide(table);
		if (gh_cpu_blank_slice(table))
			root->hidden = 0;
		return true;
	}
	if (root->resize.phase == GH_CPU_STEADY)
		return false;
	gh_cpu_resize_slice(table);
	return true;
}

/* One slice of the request at the head of the queue. */
static GhStatus
do_slice(GhCpuTable *table, GhRequest *request)
{
	bool		reads = gh_cpu_reads(request->op);
	uint64_t	before = request->outcome.done;
	GhCpuRoot  *root;
	GhStatus	status;

	if (gh_cpu_stopped(table))
	{
		if (table->building != 0)
			gh_cpu_build_give_up(table);
		return gh_error_set(&request->error, GH_STOPPED, "the request was stopped");
	}

	if (gh_cpu_exchange_shared(table, request, &status))
		return status;
	gh_cpu_lock(table, reads ? GH_LOCK_SHARED : GH_LOCK_EXCLUSIVE);
	root = table->view.root;
	if (!reads)
		root->version++;
	if (!reads && gh_cpu_carry_on(table))
		status = GH_BUSY;
	else
		status = do_operation(table, request);

	/* readers hold a shared lock only */
	if (reads)
		(void) __atomic_fetch_add(&root->reads, request->outcome.done - before, __ATOMIC_RELAXED);
	else
		root->writes += request->outcome.done - before;
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
	table->building = 0;
	table->queue_head = next_in_queue(request);
	if (table->queue_head == NULL)
		table->queue_tail = NULL;
	request->status = status;
	request->table = NULL;
}

/* Does what was submitted before a call that is not a request. */
void
gh_cpu_drain(GhCpuTable *table)
{
	while (table->queue_head != NULL)
		advance_queue(table);
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
