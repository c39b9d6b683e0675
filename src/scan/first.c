/*
 * first.c
 *		ORDER BY ... LIMIT above a GpuHashScan: a condition that lets through the rows that may be among the first ones.
 *
 * Before the first page is read, the program goes over a sample of the pages, on the CPU, and the values that
 * the Sort's first key has of the rows that pass tell what the others have to be (../fragment/first.c).  That
 * becomes the program's last condition, for either engine.
 *
 * So it is where the program has all of the scan's conditions, and all that is computed of rows: what comes
 * out of it is a row for sure, and of a row that does not come out nothing is left undone that PostgreSQL's
 * expressions might raise an error for.  A row of which the program cannot tell is handed back, and comes
 * out.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "fragment/first.h"
#include "scan/node.h"

/* Shows the rows of the sample's page that pass. */
static void
show_page(GhRowScan *node, GhPages *pages, ExprState *key, GhFirstValues *values)
{
	TupleTableSlot *slot = node->fragment.css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->fragment.css.ss.ps.ps_ExprContext;
	GhBackRow	rows[MaxHeapTuplesPerPage];
	uint32		nrows = gh_stage_page(node->conditions.stage, pages, rows);

	for (uint32 i = 0; i < nrows; i++)
	{
		NullableDatum value;

		if (rows[i].step != GH_STEP_LIVE)
			continue;
		gh_pages_store(pages, pages->buffer, pages->block, rows[i].line, slot);
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		value.value = ExecEvalExprSwitchContext(key, econtext, &value.isnull);
		gh_first_values_add(values, value);
	}
	/* it has a pin of its own */
	ExecClearTuple(slot);
}

/* Reads so many pages, spread over the relation, by a scan of their own. */
static void
read_sample(GhRowScan *node, BlockNumber npages, ExprState *key, GhFirstValues *values)
{
	GhPages    *pages = gh_sample_begin(node->fragment.pages, npages);

	while (gh_pages_next(pages, GH_PAGES_AHEAD_MAX))
		show_page(node, pages, key, values);
	gh_sample_end(pages);
}

/* What a sample of so many pages tells of rows that may be among the first ones; NULL: nothing. */
static Expr *
find_condition(GhRowScan *node, uint64 wanted, BlockNumber npages)
{
	PlanState  *ps = &node->fragment.css.ss.ps;
	Expr	   *key = gh_bound_key(&node->bound, ps->plan);
	GhFirstValues *values = gh_first_values_begin(node->bound.sort, key, wanted);

	if (values == NULL)
		return NULL;
	read_sample(node, npages, ExecInitExpr(key, ps), values);
	return gh_first_values_condition(values);
}

/* Whether it is known what the program has of the conditions: no subquery's result is awaited. */
static bool
conditions_are_known(GhRowScan *node)
{
	if (node->fragment.css.ss.ps.plan->qual != NIL)
		(void) gh_page_conditions_compile(&node->conditions);
	return node->conditions.awaited == NULL;
}

/*
 * Before a page is read, or given to a device: makes the program let through the first rows of the order, and
 * few others, if that is not done, and can be.  The scan has begun.
 */
void
gh_rowscan_look_for_first(GhRowScan *node)
{
	MemoryContext saved;
	BlockNumber npages;
	uint64		wanted;
	Expr	   *condition;

	if (node->looked || node->bound.sort == NULL || !conditions_are_known(node))
		return;
	node->looked = true;
	wanted = gh_rowscan_wanted(node);
	npages = (BlockNumber) gh_first_sample_pages(node->fragment.pages->nblocks, (double) wanted);
	if (npages == 0 || !gh_page_conditions_narrow(&node->conditions, NULL))
		return;
	saved = MemoryContextSwitchTo(node->conditions.context);
	condition = find_condition(node, wanted, npages);
	MemoryContextSwitchTo(saved);
	/* what was computed is not, then */
	if (condition == NULL || !gh_page_conditions_narrow(&node->conditions, condition))
		gh_page_conditions_forget(&node->conditions);
}
