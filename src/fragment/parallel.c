/*
 * parallel.c
 *		A fragment that all participants of a parallel query run together: each reads its part of the scan.
 *
 * Who starts when the last one was done has nothing left to read.  Nobody waits for anybody here; for joins
 * on a device participants meet (device_parallel.c).
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
	uint64		unwanted = shared->totals.unwanted;

	gh_device_unshare(&shared->device);
	init_run(shared);
	shared->totals.unwanted = unwanted;
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

/* What EXPLAIN shows of this participant joins the others'. */
void
gh_fragment_leave_counts(GhFragment *fragment)
{
	GhFragmentShared *shared = fragment->member->shared;

	SpinLockAcquire(&shared->mutex);
	gh_counts_add(&shared->totals, &fragment->counts);
	SpinLockRelease(&shared->mutex);
}
