/*
 * parallel.c
 *		A fragment that all participants of a parallel query run together: each reads its part of the scan.
 *
 * Who starts when the last one was done has nothing left to read.  Nobody waits for anybody here; for joins on a
 * device participants meet (device_parallel.c).
 */
#include "postgres.h"

#include "executor/executor.h"

#include "fragment/parallel.h"

/* -------------------------------------------------------- shared memory */

static void
init_run(GhFragmentShared *shared)
{
	gh_device_share(&shared->device);
	shared->started = shared->done = 0;
	shared->closed = false;
	memset(&shared->totals, 0, sizeof(shared->totals));
}

/* The leader's segment goes, when all workers have left: EXPLAIN shows what all did. */
static void
keep_totals(dsm_segment *segment, Datum arg)
{
	GhFragment *fragment = (GhFragment *) DatumGetPointer(arg);

	(void) segment;
	fragment->counts = fragment->member->shared->totals;
	fragment->ran = true;
	fragment->member = NULL;
}

/* The node's memory goes first, after an error: nothing shared is to be touched. */
static void
forget_segment(void *arg)
{
	GhFragment *fragment = (GhFragment *) arg;

	if (fragment->member != NULL)
		cancel_on_dsm_detach(fragment->member->segment, keep_totals, PointerGetDatum(fragment));
	fragment->member = NULL;
}

/* A process unmaps the segment, after an error too. */
static void
leave_segment(dsm_segment *segment, Datum arg)
{
	GhFragmentShared *shared = (GhFragmentShared *) DatumGetPointer(arg);

	(void) segment;
	if (pg_atomic_sub_fetch_u32(&shared->users, 1) == 0)
		gh_device_unshare(&shared->device);
}

static void
use_shared(GhFragment *fragment, GhFragmentShared *shared, GhFragmentMember *member, dsm_segment *segment, int number)
{
	member->shared = shared;
	member->segment = segment;
	member->number = number;
	fragment->member = member;
	pg_atomic_fetch_add_u32(&shared->users, 1);
	on_dsm_detach(segment, leave_segment, PointerGetDatum(shared));
}

/* In the leader, that has a segment.  member: the node's, zeroed, in the query's memory. */
void
gh_fragment_init_dsm(GhFragment *fragment, ParallelContext *pcxt, GhFragmentShared *shared, GhFragmentMember *member)
{
	shared->segment = dsm_segment_handle(pcxt->seg);
	shared->nmembers = pcxt->nworkers + 1;
	SpinLockInit(&shared->mutex);
	pg_atomic_init_u32(&shared->users, 0);
	init_run(shared);
	use_shared(fragment, shared, member, pcxt->seg, 0);
	on_dsm_detach(pcxt->seg, keep_totals, PointerGetDatum(fragment));
	member->cleanup.func = forget_segment;
	member->cleanup.arg = fragment;
	MemoryContextRegisterResetCallback(fragment->css.ss.ps.state->es_query_cxt, &member->cleanup);
}

/* The workers of the last run have left. */
void
gh_fragment_reinit_dsm(GhFragmentShared *shared)
{
	gh_device_unshare(&shared->device);
	init_run(shared);
}

void
gh_fragment_init_worker(GhFragment *fragment, GhFragmentShared *shared, GhFragmentMember *member)
{
	use_shared(fragment, shared, member, dsm_find_mapping(shared->segment), ParallelWorkerNumber + 1);
}

/* --------------------------------------------------------------- who is done */

/* Begins a participant's part; false: all is done. */
bool
gh_fragment_attach(GhFragment *fragment)
{
	GhFragmentShared *shared = fragment->member->shared;
	bool		closed;

	memset(&fragment->counts, 0, sizeof(fragment->counts));
	SpinLockAcquire(&shared->mutex);
	closed = shared->closed;
	if (!closed)
		shared->started++;
	SpinLockRelease(&shared->mutex);
	return !closed;
}

/* Whether this is the last participant that is not done, or, done, whether all are. */
bool
gh_fragment_is_last(GhFragment *fragment, bool done)
{
	GhFragmentShared *shared = fragment->member->shared;
	bool		last;

	SpinLockAcquire(&shared->mutex);
	shared->done += done;
	last = shared->started - shared->done == (done ? 0 : 1);
	shared->closed = shared->closed || last;
	SpinLockRelease(&shared->mutex);
	return last;
}

/* -------------------------------------------------------------------- counts */

/* Of several reasons the first one, but that of who failed rather than that of those who could not go on without it. */
static void
add_reason(GhFragmentCounts *totals, const GhFragmentCounts *counts)
{
	if (counts->fallback_reason[0] == '\0' ||
		(totals->fallback_reason[0] != '\0' && (!totals->fell_with_others || counts->fell_with_others)))
		return;
	strlcpy(totals->fallback_reason, counts->fallback_reason, sizeof(totals->fallback_reason));
	totals->fell_with_others = counts->fell_with_others;
}

static void
add_counts(GhFragmentCounts *totals, const GhFragmentCounts *counts)
{
	totals->pages += counts->pages;
	totals->rows += counts->rows;
	totals->back += counts->back;
	totals->joins_below = Max(totals->joins_below, counts->joins_below);
	totals->groups += counts->groups;
	totals->memory += counts->memory;
	totals->disk += counts->disk;
	totals->device_pages += counts->device_pages;
	totals->pinned_pages += counts->pinned_pages;
	totals->resident_pages += counts->resident_pages;
	totals->hinted_pages += counts->hinted_pages;
	totals->judged += counts->judged;
	totals->unmatched += counts->unmatched;
	totals->device_bytes += counts->device_bytes;
	totals->device_memory += counts->device_memory;
	totals->queue_ns += counts->queue_ns;
	totals->kernel_ns += counts->kernel_ns;
	INSTR_TIME_ADD(totals->wait_time, counts->wait_time);
	add_reason(totals, counts);
	INSTR_TIME_ADD(totals->build_time, counts->build_time);
	INSTR_TIME_ADD(totals->source_time, counts->source_time);
	INSTR_TIME_ADD(totals->evaluate_time, counts->evaluate_time);
	INSTR_TIME_ADD(totals->merge_time, counts->merge_time);
}

void
gh_fragment_leave_counts(GhFragment *fragment)
{
	GhFragmentShared *shared = fragment->member->shared;

	SpinLockAcquire(&shared->mutex);
	add_counts(&shared->totals, &fragment->counts);
	SpinLockRelease(&shared->mutex);
}
