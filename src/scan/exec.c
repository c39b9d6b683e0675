/*
 * exec.c
 *		GpuHashScan at run time: a Seq Scan whose conditions are evaluated a page at a time.
 *
 * A page is read as the joins' sources read one (../heap/README, "Pages").  The conditions that
 * have a program are evaluated for all of its visible tuples; those that pass, and those that the
 * program hands back, are picks.  They come out one by one, in the page's order, while the page is pinned:
 * further conditions, and of rows handed back all of them, are evaluated by PostgreSQL's expressions when
 * a row's turn comes, and not before, so that no error or other effect is seen that a Seq Scan would not
 * have had.
 *
 * The scan tuple is the tuple in the page, as a Seq Scan has it: system columns, whole rows and WHERE CURRENT
 * OF find what they look for.  Where pages may not be read in this way, and from the first row on that is
 * asked for backward, the node does what a Seq Scan does.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "clock.h"
#include "compat.h"
#include "scan/node.h"
#include "service/service.h"

static Node *create_state(CustomScan *cscan);
static void begin_scan(CustomScanState *css, EState *estate, int eflags);
static TupleTableSlot *exec_scan(CustomScanState *css);
static void end_scan(CustomScanState *css);
static void rescan(CustomScanState *css);

static const CustomScanMethods scan_methods = {
	.CustomName = GH_ROWSCAN_NAME,
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = GH_ROWSCAN_NAME,
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = exec_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = gh_rowscan_estimate_dsm,
	.InitializeDSMCustomScan = gh_rowscan_init_dsm,
	.ReInitializeDSMCustomScan = gh_rowscan_reinit_dsm,
	.InitializeWorkerCustomScan = gh_rowscan_init_worker,
	.ShutdownCustomScan = gh_rowscan_shutdown,
	.ExplainCustomScan = gh_rowscan_explain,
};

/* --------------------------------------------------------------- set-up */

static Node *
create_state(CustomScan *cscan)
{
	GhRowScan  *node = palloc0(sizeof(GhRowScan));

	(void) cscan;
	NodeSetTag(node, T_CustomScanState);
	node->fragment.css.methods = &exec_methods;
	return (Node *) node;
}

/* GhFragmentMethods: a cursor may stay where it is for days, and go back from there. */
static const char *
why_not_on_device(const GhFragment *fragment)
{
	return ((const GhRowScan *) fragment)->is_scrolled ? "the cursor may be scrolled" : NULL;
}

/* GhFragmentMethods */
static void
device_sink(GhFragment *fragment, GhSink *sink)
{
	(void) fragment;
	sink->kind = GH_SINK_PLACES;
}

/* Rows come out as they are found, and are never begun anew: pages of the CPU engine's are this node's. */
static const GhFragmentMethods fragment_methods = {
	.doing = "scan on the GPU",
	.why_not_on_device = why_not_on_device,
	.device_sink = device_sink,
};

/* The scan tuple is one of the table's; the core has prepared for a virtual one. */
static void
init_slot(ScanState *ss, EState *estate)
{
	/* subplans of the expressions come again */
	ss->ps.subPlan = NIL;
	gh_init_table_slot(estate, ss);
	ExecAssignScanProjectionInfo(ss);
	ss->ps.qual = ExecInitQual(ss->ps.plan->qual, &ss->ps);
}

static void
begin_scan(CustomScanState *css, EState *estate, int eflags)
{
	GhRowScan  *node = (GhRowScan *) css;

	gh_service_count_node(GH_USE_SCANS, eflags);
	init_slot(&css->ss, estate);
	node->reads_pages = gh_may_read_relation(css->ss.ss_currentRelation, estate);
	node->plain = !node->reads_pages;
	node->is_scrolled = (eflags & EXEC_FLAG_BACKWARD) != 0;
	/* the plan of such a cursor is not shut down between FETCHes */
	node->may_stop = !node->is_scrolled && (estate->es_top_eflags & EXEC_FLAG_BACKWARD) != 0;
	node->fragment.methods = &fragment_methods;
	node->fragment.scan = &css->ss.ps;
	node->fragment.pages = &node->fragment.own_pages;
	gh_pages_init(node->fragment.pages, estate->es_query_cxt);
	gh_page_conditions_init(&node->conditions, &css->ss, node->fragment.pages, true);
	node->fragment.timing = (estate->es_instrument & INSTRUMENT_TIMER) != 0;
	gh_bound_find(&node->bound, estate, css->ss.ps.plan);
	gh_rowscan_device_init(node);
}

/* ------------------------------------------------- as a Seq Scan does it */

/* ExecScanAccessMtd */
static TupleTableSlot *
next_tuple(ScanState *ss)
{
	if (ss->ss_currentScanDesc == NULL)
		ss->ss_currentScanDesc = gh_beginscan(ss);
	if (table_scan_getnextslot(ss->ss_currentScanDesc, ss->ps.state->es_direction, ss->ss_ScanTupleSlot))
		return ss->ss_ScanTupleSlot;
	return NULL;
}

/* ExecScanRecheckMtd: nothing but the conditions, which ExecScan sees to */
static bool
recheck_tuple(ScanState *ss, TupleTableSlot *slot)
{
	(void) ss;
	(void) slot;
	return true;
}

/* Tells the relation's statistics of the page's tuples that were looked at. */
static void
count_tuples(GhRowScan *node)
{
	int			done = node->conditions.tuple;

	if (done > node->counted)
		pgstat_count_index_tuples(node->fragment.css.ss.ss_currentRelation, done - node->counted);
	node->counted = done;
}

/* Leaves the scan's descriptor as a Seq Scan would have left it after the row that came out last. */
static void
become_plain(GhRowScan *node)
{
	node->plain = true;
	count_tuples(node);
	gh_pages_return_to_scan(node->fragment.pages, node->conditions.tuple, node->ended);
}

/* ----------------------------------------------------------------- pages */

/*
 * Reads the next page; false: there are no more.  Pages are read ahead, and held by a pin, as far as a Seq
 * Scan's stream does so, but for a cursor that may stay where it is for days.
 */
static bool
next_page(GhRowScan *node)
{
	int			wanted = GH_PAGES_AHEAD_MAX;

	if (node->is_scrolled)
		wanted = Max(1, Min(node->blank, wanted));
	if (!gh_rowscan_next_page(node, wanted))
		return false;
	node->counted = 0;
	return true;
}

/* Picks rows of the page; those that are left out are none that a condition has removed. */
static void
pick_rows(GhRowScan *node)
{
	gh_page_conditions_pick(&node->conditions, true);
	node->fragment.counts.groups_left += node->conditions.left;
	InstrCountFiltered1(node, -(double) node->conditions.left);
}

/* Finds the next page with a row that is picked; false at the end of the scan. */
static bool
next_picks(GhRowScan *node)
{
	instr_time	clock = {0};
	bool		found;

	gh_clock(node->fragment.timing, NULL, &clock);
	gh_pages_begin(node->fragment.pages, &node->fragment.css.ss.ps);
	node->fragment.ran = true;
	do
	{
		count_tuples(node);
		if (!node->conditions.in_run)
			gh_rowscan_look_for_first(node);
		/* its rows come next */
		if (!node->conditions.in_run && gh_rowscan_device_wants(node))
			return true;
		found = next_page(node);
		gh_clock(node->fragment.timing, &node->fragment.counts.source_time, &clock);
		node->blank++;
		if (found)
			pick_rows(node);
		gh_clock(node->fragment.timing, &node->fragment.counts.evaluate_time, &clock);
	} while (found && node->conditions.npicks == 0);
	node->blank = 0;
	if (node->is_scrolled)
		gh_pages_forget_ahead(node->fragment.pages);
	return found;
}

/* ------------------------------------------------------------------- rows */

/* Puts the page's next row that meets the conditions into the scan tuple; false: it has no more. */
static inline bool
take_page_row(GhRowScan *node)
{
	GhPages    *pages = node->fragment.pages;

	if (!gh_page_conditions_next(&node->conditions))
		return false;
	if (!node->conditions.in_slot)
		gh_pages_store(pages, pages->buffer, pages->block, pages->lines[node->conditions.tuple],
					   node->fragment.css.ss.ss_ScanTupleSlot);
	node->conditions.tuple++;
	node->fragment.counts.back += node->conditions.is_back;
	return true;
}

/* Puts the next row of the device's into the scan tuple; false: there are no more. */
static bool
take_device_row(GhRowScan *node)
{
	ScanState  *ss = &node->fragment.css.ss;
	GhDeviceRow row;
	Buffer		buffer;

	while (BufferIsValid(buffer = gh_rowscan_device_row(node, &row)))
	{
		if (gh_scan_accepts(ss, node->fragment.pages, buffer, row.block, row.line,
							row.back ? ss->ps.qual : node->conditions.rest))
		{
			node->fragment.counts.back += row.back;
			InstrCountFiltered1(node, -(int) row.removed);
			return true;
		}
		InstrCountFiltered1(node, !row.removed);
	}
	return false;
}

/*
 * Puts the next row that comes out into the scan tuple; false: there are no more.  A row that was handed back
 * is counted as such only here: it depends on the values of the others which of them are handed back, and
 * they may be rows that a policy hides from who reads the count.
 */
static bool
take_row(GhRowScan *node)
{
	while (!node->ended)
	{
		if (take_device_row(node) || take_page_row(node))
			return true;
		node->ended = !next_picks(node);
	}
	return false;
}

static TupleTableSlot *
exec_scan(CustomScanState *css)
{
	GhRowScan  *node = (GhRowScan *) css;
	ScanState  *ss = &css->ss;
	ExprContext *econtext = ss->ps.ps_ExprContext;
	ProjectionInfo *projection = ss->ps.ps_ProjInfo;

	if (!node->plain && !ScanDirectionIsForward(ss->ps.state->es_direction))
		become_plain(node);
	if (node->plain)
		return ExecScan(ss, next_tuple, recheck_tuple);

	ResetExprContext(econtext);
	if (take_row(node))
	{
		if (projection == NULL)
			return ss->ss_ScanTupleSlot;
		econtext->ecxt_scantuple = ss->ss_ScanTupleSlot;
		return ExecProject(projection);
	}
	ExecClearTuple(ss->ss_ScanTupleSlot);
	return projection == NULL ? ss->ss_ScanTupleSlot : ExecClearTuple(projection->pi_state.resultslot);
}

/* -------------------------------------------------------- rescans, the end */

/* Nothing is read any more where it was. */
static void
leave(GhRowScan *node)
{
	if (!node->plain)
		count_tuples(node);
	ExecClearTuple(node->fragment.css.ss.ss_ScanTupleSlot);
	gh_rowscan_device_end(node);
	gh_pages_park(node->fragment.pages);
	/* of the page that was read last, nothing is left to be done */
	node->conditions.tuple = node->counted = node->fragment.pages->ntuples;
	gh_page_conditions_leave(&node->conditions);
	node->blank = 0;
	node->ended = false;
}

static void
rescan(CustomScanState *css)
{
	GhRowScan  *node = (GhRowScan *) css;

	leave(node);
	node->fragment.rescanned = true;
	node->plain = !node->reads_pages;
	if (css->ss.ps.chgParam != NULL)
	{
		gh_page_conditions_forget(&node->conditions);
		node->looked = false;
	}
	if (css->ss.ss_currentScanDesc != NULL)
		table_rescan(css->ss.ss_currentScanDesc, NULL);
	ExecScanReScan(&css->ss);
}

static void
end_scan(CustomScanState *css)
{
	GhRowScan  *node = (GhRowScan *) css;

	leave(node);
	gh_pages_end(node->fragment.pages);
	if (css->ss.ss_currentScanDesc != NULL)
		table_endscan(css->ss.ss_currentScanDesc);
}

/* Called by _PG_init. */
void
gh_rowscan_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
}
