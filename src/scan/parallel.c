/*
 * parallel.c
 *		GpuHashScan in a parallel query.
 *
 * Participants take blocks of the relation by PostgreSQL's own allocator, as those of a Parallel
 * Seq Scan do.  What EXPLAIN ANALYZE shows is added up by the fragment: each participant leaves its
 * counts when it is through, of all runs together.
 */
#include "postgres.h"

#include "access/tableam.h"

#include "compat.h"
#include "scan/node.h"

/* What participants share; the scan's own follows. */
typedef struct GhRowScanShared
{
	GhFragmentShared fragment;	/* first */
	uint64		wanted;			/* rows, as of gh_bound_rows: workers do not see the Limit */
} GhRowScanShared;

static ParallelTableScanDesc
shared_scan(void *coordinate)
{
	return (ParallelTableScanDesc) ((char *) coordinate + MAXALIGN(sizeof(GhRowScanShared)));
}

/* How many rows an ORDER BY ... LIMIT above wants; 0: all, or that is not known. */
uint64
gh_rowscan_wanted(GhRowScan *node)
{
	return node->fragment.member != NULL ? ((GhRowScanShared *) node->fragment.member->shared)->wanted :
		gh_bound_rows(&node->bound, &node->fragment.css.ss.ps);
}

/* EstimateDSMCustomScan */
Size
gh_rowscan_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	(void) pcxt;
	return add_size(MAXALIGN(sizeof(GhRowScanShared)),
					table_parallelscan_estimate(css->ss.ss_currentRelation, css->ss.ps.state->es_snapshot));
}

static void
begin_scan(CustomScanState *css, void *coordinate)
{
	css->ss.ss_currentScanDesc = gh_beginscan_parallel(&css->ss, shared_scan(coordinate));
}

/* By the leader, before each run. */
static void
tell_wanted(CustomScanState *css, GhRowScanShared *shared)
{
	shared->wanted = gh_bound_rows(&((GhRowScan *) css)->bound, &css->ss.ps);
}

/* InitializeDSMCustomScan, in the leader.  Without a segment there are no workers. */
void
gh_rowscan_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	table_parallelscan_initialize(css->ss.ss_currentRelation, shared_scan(coordinate), css->ss.ps.state->es_snapshot);
	begin_scan(css, coordinate);
	tell_wanted(css, coordinate);
	if (pcxt->seg != NULL)
		gh_fragment_init_dsm((GhFragment *) css, pcxt, coordinate, &((GhRowScan *) css)->member);
}

/* ReInitializeDSMCustomScan: the workers of the last run have left. */
void
gh_rowscan_reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	(void) pcxt;
	tell_wanted(css, coordinate);
	table_parallelscan_reinitialize(css->ss.ss_currentRelation, shared_scan(coordinate));
}

/* InitializeWorkerCustomScan */
void
gh_rowscan_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	(void) toc;
	begin_scan(css, coordinate);
	gh_fragment_init_worker((GhFragment *) css, coordinate, &((GhRowScan *) css)->member);
}

/*
 * ShutdownCustomScan.  A cursor's portal calls this after each FETCH, and goes on; one of several
 * participants is through.
 */
void
gh_rowscan_shutdown(CustomScanState *css)
{
	GhRowScan  *node = (GhRowScan *) css;

	if (node->fragment.member == NULL)
	{
		gh_rowscan_device_park(node);
		return;
	}
	gh_rowscan_device_stop(node);
	gh_fragment_leave_counts(&node->fragment);
	memset(&node->fragment.counts, 0, sizeof(GhFragmentCounts));
}
