/*
 * child.c
 *		A heap scan of the plan whose pages the node above reads.
 *
 * The scan stays a node of the plan: it is initialised, rescanned, ended and shown by EXPLAIN
 * as any other, and its scan descriptor is what is read from.  Only ExecProcNode is left out.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "gpuhash.h"
#include "heap/pages.h"

/* Whether all that the scan puts out are columns of its table. */
static bool
has_plain_columns(Plan *plan)
{
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(expr, Var) || ((Var *) expr)->varattno <= 0)
			return false;
	}
	return true;
}

/*
 * Whether a query may read a relation's pages by itself.  A recheck of EvalPlanQual has rows of
 * its own in place of the scan's.  Without a snapshot of the MVCC kind, a page's rows
 * would have to be looked at one by one.
 */
bool
gh_may_read_relation(Relation relation, EState *estate)
{
	return gh_enable_scan && estate->es_epq_active == NULL &&
		relation->rd_tableam == GetHeapamTableAmRoutine() &&
		estate->es_snapshot != NULL && IsMVCCSnapshot(estate->es_snapshot);
}

/* The same of a child, by the node above. */
bool
gh_may_read_pages(PlanState *child, EState *estate, int eflags)
{
	return IsA(child, SeqScanState) && (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		gh_may_read_relation(((ScanState *) child)->ss_currentRelation, estate) &&
		has_plain_columns(child->plan);
}

/* The relation's column that such a child puts out as number resno. */
int
gh_relation_attno(PlanState *child, int resno)
{
	return castNode(Var, list_nth_node(TargetEntry, child->plan->targetlist,
									   resno - 1)->expr)->varattno;
}

/* The child's scan, begun as the node itself would begin it. */
void
gh_pages_begin(GhPages *pages, PlanState *child)
{
	ScanState  *node = (ScanState *) child;
	/* it is the node's, which ends it */
	MemoryContext saved = MemoryContextSwitchTo(node->ps.state->es_query_cxt);

	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = gh_beginscan(node);
	MemoryContextSwitchTo(saved);
	/* asked for each page */
	if (pages->source != node->ss_currentScanDesc || !gh_pages_have_begun(pages))
		gh_pages_of_scan(pages, node->ss_currentScanDesc);
}

/*
 * Puts a visible tuple of a page that is pinned into the scan's slot; whether some of its conditions, or
 * NULL, accept it.
 */
bool
gh_scan_accepts(ScanState *scan, GhPages *pages, Buffer buffer, BlockNumber block, OffsetNumber line, ExprState *quals)
{
	ExprContext *econtext = scan->ps.ps_ExprContext;

	gh_pages_store(pages, buffer, block, line, scan->ss_ScanTupleSlot);
	/* one row may take long, and there may be hundreds */
	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = scan->ss_ScanTupleSlot;
	return quals == NULL || ExecQual(quals, econtext);
}

/* What ExecProcNode does before and after it has the node make rows. */
void
gh_child_start(PlanState *child)
{
	if (child->chgParam != NULL)
	{
		/* what it tells its children of changed parameters stays until they are run, which may be in another run of ours */
		MemoryContext saved = MemoryContextSwitchTo(child->state->es_query_cxt);

		ExecReScan(child);
		MemoryContextSwitchTo(saved);
	}
	if (child->instrument != NULL)
		InstrStartNode(child->instrument);
}

void
gh_child_stop(PlanState *child, double rows)
{
	if (child->instrument != NULL)
		InstrStopNode(child->instrument, rows);
}

/* The child's scan begins anew, if it has begun at all: this process's, */
void
gh_child_rewind(PlanState *child)
{
	TableScanDesc scan = ((ScanState *) child)->ss_currentScanDesc;

	if (scan != NULL)
		table_rescan(scan, NULL);
}

/* and, by one of them, what participants share of it. */
void
gh_child_rewind_for_all(PlanState *child)
{
	TableScanDesc scan = ((ScanState *) child)->ss_currentScanDesc;

	if (scan != NULL && scan->rs_parallel != NULL)
		table_parallelscan_reinitialize(scan->rs_rd, scan->rs_parallel);
}
