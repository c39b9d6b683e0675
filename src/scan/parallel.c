/*
 * parallel.c
 *		GpuHashScan in a parallel query.
 *
 * Participants take blocks of the relation by PostgreSQL's own allocator, as those of a Parallel
 * Seq Scan do.  What EXPLAIN ANALYZE shows is added up in the same memory: each participant leaves its
 * counts when it is through, and the leader keeps the sums when the segment goes.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "storage/spin.h"

#include "scan/node.h"

typedef struct GhRowScanShared
{
	slock_t		mutex;			/* of totals */
	GhFragmentCounts totals;
} GhRowScanShared;

#define GH_SHARED_BYTES MAXALIGN(sizeof(GhRowScanShared))

static ParallelTableScanDesc
shared_scan(void *coordinate)
{
	return (ParallelTableScanDesc) ((char *) coordinate + GH_SHARED_BYTES);
}

/* EstimateDSMCustomScan */
Size
gh_rowscan_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	(void) pcxt;
	return add_size(GH_SHARED_BYTES, table_parallelscan_estimate(css->ss.ss_currentRelation,
																 css->ss.ps.state->es_snapshot));
}

static void
attach(GhRowScan *node, void *coordinate)
{
	node->shared = coordinate;
	node->css.ss.ss_currentScanDesc = table_beginscan_parallel(node->css.ss.ss_currentRelation,
															   shared_scan(coordinate));
}

/* This participant's counts join the others'. */
static void
leave_counts(GhRowScan *node)
{
	SpinLockAcquire(&node->shared->mutex);
	gh_counts_add(&node->shared->totals, &node->counts);
	SpinLockRelease(&node->shared->mutex);
	memset(&node->counts, 0, sizeof(node->counts));
}

/*
 * The leader's segment goes, when all workers have left; or after an error, when pins are no longer this
 * process's to give up.
 */
static void
keep_totals(dsm_segment *segment, Datum arg)
{
	GhRowScan  *node = (GhRowScan *) DatumGetPointer(arg);

	(void) segment;
	leave_counts(node);
	node->counts = node->shared->totals;
	node->ran = true;
	node->shared = NULL;
	node->segment = NULL;
}

/* The node's memory goes first, after an error: nothing shared is to be touched. */
static void
forget_segment(void *arg)
{
	GhRowScan  *node = (GhRowScan *) arg;

	if (node->segment != NULL)
		cancel_on_dsm_detach(node->segment, keep_totals, PointerGetDatum(node));
	node->segment = NULL;
}

/* InitializeDSMCustomScan, in the leader.  Without a segment there are no workers. */
void
gh_rowscan_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	GhRowScan  *node = (GhRowScan *) css;
	GhRowScanShared *shared = coordinate;
	MemoryContextCallback *cleanup;

	memset(shared, 0, sizeof(*shared));
	SpinLockInit(&shared->mutex);
	table_parallelscan_initialize(css->ss.ss_currentRelation, shared_scan(coordinate),
								  css->ss.ps.state->es_snapshot);
	attach(node, coordinate);
	if (pcxt->seg == NULL)
	{
		node->shared = NULL;
		return;
	}
	node->segment = pcxt->seg;
	on_dsm_detach(pcxt->seg, keep_totals, PointerGetDatum(node));
	cleanup = MemoryContextAlloc(css->ss.ps.state->es_query_cxt, sizeof(MemoryContextCallback));
	cleanup->func = forget_segment;
	cleanup->arg = node;
	MemoryContextRegisterResetCallback(css->ss.ps.state->es_query_cxt, cleanup);
}

/* ReInitializeDSMCustomScan: the workers of the last run have left. */
void
gh_rowscan_reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	(void) pcxt;
	table_parallelscan_reinitialize(css->ss.ss_currentRelation, shared_scan(coordinate));
}

/* InitializeWorkerCustomScan */
void
gh_rowscan_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	(void) toc;
	attach((GhRowScan *) css, coordinate);
}

/*
 * ShutdownCustomScan.  A cursor's portal calls this after each FETCH, and goes on; one of several participants
 * is through.
 */
void
gh_rowscan_shutdown(CustomScanState *css)
{
	GhRowScan  *node = (GhRowScan *) css;

	if (node->shared == NULL)
	{
		gh_rowscan_device_park(node);
		return;
	}
	gh_rowscan_device_stop(node);
	leave_counts(node);
}
