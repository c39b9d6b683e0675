/*
 * keys.c
 *		GpuHashKeys at run time: rows with `k = ANY (array)`, or `k IN (SELECT ...)`, looked up in the copy of an index
 *		(../store/README, "Copies of indexes").
 *
 * The keys are sorted, and each is there once, so that the entries of the copy, which are in the order of
 * their keys, are gone through once, too: from one key's to the next one's by steps that double, and then by
 * halves.  Entries on blocks that the copy is right for, in the query's snapshot, are rows.  Those of the
 * other blocks come from the table, each of whose rows is looked at.  The order is that of the proof
 * (../index/README, "Copies"): the snapshot is held, then the copy is asked for its blocks.
 *
 * Where there is no copy, where it has not what is read, or where the keys are few for the blocks that it is
 * not right for, the rows are those of the outer child, PostgreSQL's scan of the index.  So are they in
 * serializable transactions: that locks what it reads of the index and the table, and here all of both had to
 * be locked.
 *
 * Of `k IN (SELECT ...)` the outer child is a semi join with the same rows, which reads the keys by itself.
 * The inner one has the keys, and is run when there is a copy.  Where they outgrow the memory of a hash
 * table, the join does it.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "compat.h"
#include "fragment/explain.h"
#include "gpuhash.h"
#include "plan/keys_path.h"
#include "scan/keys.h"
#include "scan/node.h"
#include "service/service.h"

static Node *create_state(CustomScan *cscan);
static void begin_keys(CustomScanState *css, EState *estate, int eflags);
static TupleTableSlot *exec_keys(CustomScanState *css);
static void end_keys(CustomScanState *css);
static void rescan_keys(CustomScanState *css);
static void explain_keys(CustomScanState *css, List *ancestors, ExplainState *es);

static const CustomScanMethods keys_methods = {
	.CustomName = GH_KEYS_NAME,
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = GH_KEYS_NAME,
	.BeginCustomScan = begin_keys,
	.ExecCustomScan = exec_keys,
	.EndCustomScan = end_keys,
	.ReScanCustomScan = rescan_keys,
	.ExplainCustomScan = explain_keys,
};

/* -------------------------------------------------------------------- set-up */

static Node *
create_state(CustomScan *cscan)
{
	GhKeysNode *node = palloc0(sizeof(GhKeysNode));

	(void) cscan;
	NodeSetTag(node, T_CustomScanState);
	node->css.methods = &exec_methods;
	return (Node *) node;
}

/* Also after an error. */
static void
release_copy(void *arg)
{
	gh_shared_copy_close(&((GhKeysNode *) arg)->hold);
}

/* Which columns are read. */
static void
find_columns(GhKeysNode *node)
{
	const CustomScan *cscan = (const CustomScan *) node->css.ss.ps.plan;
	TupleDesc	desc = RelationGetDescr(node->css.ss.ss_currentRelation);
	Bitmapset  *attnos = NULL;
	int			bit = -1;

	pull_varattnos((Node *) cscan->scan.plan.targetlist, cscan->scan.scanrelid, &attnos);
	pull_varattnos((Node *) cscan->scan.plan.qual, cscan->scan.scanrelid, &attnos);
	node->columns = palloc0(sizeof(KeysColumn) * (bms_num_members(attnos) + 1));
	while ((bit = bms_next_member(attnos, bit)) >= 0)
	{
		AttrNumber	attno = bit + FirstLowInvalidHeapAttributeNumber;

		if (attno <= 0 || attno > desc->natts)
			elog(ERROR, "gpuhash: column %d of \"%s\" is none that an index has", attno,
				 RelationGetRelationName(node->css.ss.ss_currentRelation));
		node->columns[node->ncolumns++].attno = attno;
		node->max_attno = Max(node->max_attno, attno);
	}
	bms_free(attnos);
}

static void
begin_keys(CustomScanState *css, EState *estate, int eflags)
{
	GhKeysNode *node = (GhKeysNode *) css;
	const CustomScan *cscan = (const CustomScan *) css->ss.ps.plan;

	gh_service_count_node(GH_USE_SCANS, eflags);
	outerPlanState(css) = ExecInitNode(outerPlan(cscan), estate, eflags);
	node->tuple = ExecInitExtraTupleSlot(estate, RelationGetDescr(css->ss.ss_currentRelation),
										 table_slot_callbacks(css->ss.ss_currentRelation));
	if (innerPlan(cscan) != NULL)
	{
		innerPlanState(css) = ExecInitNode(innerPlan(cscan), estate, eflags);
		node->element = TupleDescAttr(ExecGetResultType(innerPlanState(css)), 0)->atttypid;
	}
	else
	{
		node->array = ExecInitExpr(linitial(cscan->custom_exprs), &css->ss.ps);
		node->element = get_element_type(exprType(linitial(cscan->custom_exprs)));
	}
	find_columns(node);
	/* columns that are not read */
	memset(css->ss.ss_ScanTupleSlot->tts_isnull, true, css->ss.ss_ScanTupleSlot->tts_tupleDescriptor->natts);
	node->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHashKeys", ALLOCSET_DEFAULT_SIZES);
	node->cleanup.func = release_copy;
	node->cleanup.arg = node;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &node->cleanup);
}

/* ------------------------------------------------------------------ the table */

/*
 * The scan of the table, of which the blocks are read that the copy is not right for; its number of blocks is
 * the query's.
 */
void
gh_keys_begin_scan(GhKeysNode *node)
{
	EState	   *estate = node->css.ss.ps.state;

	node->scan = table_beginscan_strat(node->css.ss.ss_currentRelation, estate->es_snapshot, 0, NULL, true, false);
	memset(&node->pages, 0, sizeof(GhPages));
	gh_pages_init(&node->pages, node->context);
	gh_pages_of_scan(&node->pages, node->scan);
}

static void
end_scan(GhKeysNode *node)
{
	if (node->scan == NULL)
		return;
	ExecClearTuple(node->tuple);
	gh_pages_end(&node->pages);
	table_endscan(node->scan);
	node->scan = NULL;
}

static bool
next_page(GhKeysNode *node)
{
	MemoryContext saved = MemoryContextSwitchTo(node->context);
	bool		found = gh_pages_next(&node->pages, GH_PAGES_AHEAD_MAX);

	MemoryContextSwitchTo(saved);
	return found;
}

/* The next row of the other blocks with a key; false: there are no more. */
static bool
next_tuple(GhKeysNode *node, TupleTableSlot *slot)
{
	GhPages    *pages = &node->pages;

	for (;;)
	{
		while (!pages->elsewhere && node->next < pages->ntuples)
		{
			bool		null;
			Datum		key;

			gh_pages_store(pages, pages->buffer, pages->block, pages->lines[node->next++], node->tuple);
			slot_getsomeattrs(node->tuple, node->max_attno);
			key = slot_getattr(node->tuple, node->key_attno, &null);
			if (null || !gh_keys_have(node, gh_keys_number(key, node->key_width)))
				continue;
			for (int c = 0; c < node->ncolumns; c++)
			{
				int			at = node->columns[c].attno - 1;

				slot->tts_values[at] = node->tuple->tts_values[at];
				slot->tts_isnull[at] = node->tuple->tts_isnull[at];
			}
			node->heap_rows++;
			return true;
		}
		CHECK_FOR_INTERRUPTS();
		if (!next_page(node))
			return false;
		node->next = 0;
		if (!pages->elsewhere)
			pgstat_count_index_tuples(pages->relation, pages->ntuples);
	}
}

/* -------------------------------------------------------------------- rows */

static void
end_run(GhKeysNode *node)
{
	end_scan(node);
	gh_shared_copy_close(&node->hold);
	MemoryContextReset(node->context);
	node->keys = NULL;
	node->nkeys = 0;
}

/* Why the copy is not used, as far as can be told without keys; NULL: it may be. */
static const char *
why_not_asked(GhKeysNode *node, Relation index)
{
	GhIndexCopy copy = {0};
	int			place;

	if (!gh_enable_index || !gh_may_read_relation(node->css.ss.ss_currentRelation, node->css.ss.ps.state))
		return "it is switched off, or the table is not read as such";
	if (IsolationIsSerializable())
		return "the transaction is serializable";
	return node->array != NULL || gh_index_copy_look(index, &copy, &place) ? NULL : GH_COPY_IS_NOT_THERE;
}

/* Reads the keys: why they are not looked up; NULL: they are. */
static const char *
read_keys(GhKeysNode *node)
{
	MemoryContext saved;

	/* what the inner child allocates outlives this run */
	if (node->array == NULL)
		return gh_keys_read_rows(node) ? NULL : "the keys do not fit in memory";
	saved = MemoryContextSwitchTo(node->context);
	gh_keys_read_array(node);
	MemoryContextSwitchTo(saved);
	return node->nkeys == 0 || (node->nkeys < GH_KEYS_MIN && !gh_force_offload) ? GH_COPY_FEW_KEYS : NULL;
}

/* Why the copy is not used; NULL: it is, and all is set for that, or there are no keys. */
static const char *
why_not_copy(GhKeysNode *node)
{
	const CustomScan *cscan = (const CustomScan *) node->css.ss.ps.plan;
	Oid			relid = linitial_oid(list_nth(cscan->custom_private, GH_KEYS_INDEX));
	Relation	index = try_relation_open(relid, AccessShareLock);
	const char *why;

	/* behind a cursor it may have been dropped in this transaction */
	if (index == NULL)
		return GH_COPY_IS_NOT_THERE;
	why = why_not_asked(node, index);

	if (why == NULL)
		why = read_keys(node);
	if (why == NULL && node->nkeys > 0)
	{
		MemoryContext saved = MemoryContextSwitchTo(node->context);

		why = gh_keys_open_copy(node, index);
		MemoryContextSwitchTo(saved);
	}
	relation_close(index, NoLock);
	return why;
}

/* Reads the keys, and chooses whose the rows are. */
static void
start(GhKeysNode *node)
{
	node->ran = true;
	node->why_child = why_not_copy(node);
	if (node->why_child != NULL)
	{
		end_run(node);
		node->phase = KEYS_CHILD;
	}
	else if (node->nkeys == 0)
		node->phase = KEYS_END;
	else
	{
		gh_shared_copy_count_use(node->hold.place);
		node->looked_up += node->nkeys;
		node->copy_blocks = node->blocks.right;
		node->heap_blocks = node->pages.nblocks - node->blocks.right;
		gh_keys_find_from_first(node);
		node->phase = KEYS_COPY;
	}
}

/* The next row of the child's, whose columns are this node's, and which meets all conditions. */
static bool
next_of_child(GhKeysNode *node, TupleTableSlot *slot)
{
	TupleTableSlot *row = ExecProcNode(outerPlanState(node));
	ListCell   *lc;

	if (TupIsNull(row))
		return false;
	slot_getallattrs(row);
	foreach(lc, node->css.ss.ps.plan->targetlist)
	{
		int			at = lfirst_node(TargetEntry, lc)->resno - 1;
		int			to = castNode(Var, lfirst_node(TargetEntry, lc)->expr)->varattno - 1;

		slot->tts_values[to] = row->tts_values[at];
		slot->tts_isnull[to] = row->tts_isnull[at];
	}
	return true;
}

static void
begin_heap(GhKeysNode *node)
{
	node->pages.has_blocks = gh_copy_count_right;
	node->pages.has_blocks_arg = &node->blocks;
	node->pages.ntuples = node->next = 0;
	node->phase = KEYS_HEAP;
}

/* Values of the next row, into the slot; false: there are no more. */
static bool
next_row(GhKeysNode *node, TupleTableSlot *slot)
{
	if (node->phase == KEYS_START)
		start(node);
	if (node->phase == KEYS_COPY)
	{
		if (gh_keys_next_entry(node, slot))
			return true;
		begin_heap(node);
	}
	if (node->phase == KEYS_HEAP)
	{
		if (next_tuple(node, slot))
			return true;
		end_run(node);
		node->phase = KEYS_END;
	}
	return node->phase == KEYS_CHILD && next_of_child(node, slot);
}

/* ExecCustomScan */
static TupleTableSlot *
exec_keys(CustomScanState *css)
{
	GhKeysNode *node = (GhKeysNode *) css;
	ExprContext *econtext = css->ss.ps.ps_ExprContext;
	ProjectionInfo *projection = css->ss.ps.ps_ProjInfo;
	TupleTableSlot *slot = css->ss.ss_ScanTupleSlot;

	for (;;)
	{
		ResetExprContext(econtext);
		ExecClearTuple(slot);
		if (!next_row(node, slot))
			return projection == NULL ? slot : ExecClearTuple(projection->pi_state.resultslot);
		ExecStoreVirtualTuple(slot);
		econtext->ecxt_scantuple = slot;
		if (node->phase == KEYS_CHILD || css->ss.ps.qual == NULL || ExecQual(css->ss.ps.qual, econtext))
			return projection == NULL ? slot : ExecProject(projection);
		InstrCountFiltered1(css, 1);
		CHECK_FOR_INTERRUPTS();
	}
}

/* ------------------------------------------------------------ rescans, the end */

/* ReScanCustomScan: the keys may be others. */
static void
rescan_keys(CustomScanState *css)
{
	GhKeysNode *node = (GhKeysNode *) css;
	PlanState  *child = outerPlanState(css);

	end_run(node);
	node->phase = KEYS_START;
	/* else it is run anew when a row is asked for */
	if (child->chgParam == NULL)
		ExecReScan(child);
	if (innerPlanState(css) != NULL && innerPlanState(css)->chgParam == NULL)
		ExecReScan(innerPlanState(css));
}

static void
end_keys(CustomScanState *css)
{
	end_run((GhKeysNode *) css);
	ExecEndNode(outerPlanState(css));
	ExecEndNode(innerPlanState(css));
}

/* -------------------------------------------------------------------- EXPLAIN */

static void
explain_keys(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GhKeysNode *node = (const GhKeysNode *) css;
	const CustomScan *cscan = (const CustomScan *) css->ss.ps.plan;
	const char *index = get_rel_name(linitial_oid(list_nth(cscan->custom_private, GH_KEYS_INDEX)));

	(void) ancestors;
	if (index != NULL)
		ExplainPropertyText("Index", index, es);
	if (!es->analyze || !node->ran)
		return;
	if (node->why_child != NULL)
		ExplainPropertyText("Without Copy", node->why_child, es);
	gh_explain_count("Keys", NULL, node->looked_up, es);
	if (node->looked_up == 0)
		return;
	ExplainPropertyUInteger("Blocks From Index", NULL, node->copy_blocks, es);
	gh_explain_count("Blocks From Heap", NULL, node->heap_blocks, es);
	gh_explain_count("Rows From Heap", NULL, node->heap_rows, es);
}

/* Called by _PG_init. */
void
gh_keys_register(void)
{
	RegisterCustomScanMethods(&keys_methods);
}
