/*
 * explain.c
 *		What EXPLAIN shows of a GpuHashAggregate.
 *
 * The plan: its keys, and whether the node reads pages.  With ANALYZE, what went through it and,
 * where timing is on, where its own time went.  Every line is a property, so that all formats
 * have it.
 */
#include "postgres.h"

#include "utils/ruleutils.h"

#include "aggregate/device.h"
#include "aggregate/exec.h"
#include "gpuhash.h"
#include "plan/planning.h"

static void
show_keys(GhAggregateNode *node, List *ancestors, ExplainState *es)
{
	CustomScan *scan = (CustomScan *) node->css.ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, node->css.ss.ps.plan, ancestors);
	bool		prefix = gh_explained_relations(es) > 1 || es->verbose;
	List	   *names = NIL;

	if (node->collected != NULL)
		return;
	/* in node->keys, columns have plan.c's marks */
	for (int k = 0; k < node->nkeys; k++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, scan->custom_scan_tlist, node->key_columns[k]);

		names = lappend(names, deparse_expression((Node *) gh_unmarked(tle->expr), context, prefix, false));
	}
	if (names != NIL)
		ExplainPropertyList("Group Key", names, es);
}

/* The tables whose tuples a GpuHashRows fetches: those of its columns that are no keys. */
static void
show_fetched(GhAggregateNode *node, ExplainState *es)
{
	CustomScan *scan = (CustomScan *) node->css.ss.ps.plan;
	Bitmapset  *keys = NULL;
	Bitmapset  *tables = NULL;
	List	   *names = NIL;
	int			varno = -1;

	for (int k = 0; k < node->nkeys; k++)
		keys = bms_add_member(keys, node->key_columns[k]);
	for (int c = 0; c < node->ncolumns; c++)
	{
		const TargetEntry *tle = list_nth_node(TargetEntry, scan->custom_scan_tlist, c);

		if (!bms_is_member(c, keys))
			tables = bms_add_member(tables, castNode(Var, tle->expr)->varno);
	}
	while ((varno = bms_next_member(tables, varno)) >= 0)
		names = lappend(names, list_nth(es->rtable_names, varno - 1));
	if (names != NIL)
		ExplainPropertyList("Tuples Fetched From", names, es);
}

static uint64
to_kilobytes(uint64 bytes)
{
	return (bytes + 1023) / 1024;
}

static void
show_times(GhAggregateNode *node, ExplainState *es)
{
	GhAggregateCounts *counts = &node->counts;
	double		source = INSTR_TIME_GET_MILLISEC(counts->source_time);
	double		build = INSTR_TIME_GET_MILLISEC(counts->build_time);
	double		wait = INSTR_TIME_GET_MILLISEC(counts->wait_time);
	double		evaluate = INSTR_TIME_GET_MILLISEC(counts->evaluate_time);
	double		merge = INSTR_TIME_GET_MILLISEC(counts->merge_time);
	double		total = node->css.ss.ps.instrument->total * 1000.0;

	if (node->joined != NULL)
		ExplainPropertyFloat("Build Time", "ms", build, 3, es);
	ExplainPropertyFloat("Source Time", "ms", source, 3, es);
	if (counts->device_pages > 0)
		ExplainPropertyFloat("Wait Time", "ms", wait, 3, es);
	ExplainPropertyFloat("Evaluate Time", "ms", evaluate, 3, es);
	if (counts->disk > 0 || !INSTR_TIME_IS_ZERO(counts->merge_time) || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyFloat("Merge Time", "ms", merge, 3, es);
	ExplainPropertyFloat("Emit Time", "ms", Max(total - build - source - wait - evaluate - merge, 0.0), 3, es);
}

/* ExplainCustomScan */
void
gh_aggregate_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GhAggregateNode *node = (GhAggregateNode *) css;
	GhAggregateCounts *counts = &node->counts;

	show_keys(node, ancestors, es);
	if (node->collected != NULL && es->verbose)
		show_fetched(node, es);
	if (!es->analyze || !node->ran)
		return;
	ExplainPropertyText("Engine", counts->device_pages > 0 ? "cuda" : "cpu", es);
	if (node->scan != NULL || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger("Pages", NULL, counts->pages, es);
	ExplainPropertyUInteger("Input Rows", NULL, counts->rows, es);
	ExplainPropertyUInteger("Rows Handed Back", NULL, counts->back, es);
	if (node->collected != NULL)
		ExplainPropertyUInteger("Rows Collected", NULL, counts->groups, es);
	else
	{
		if (node->nkeys > 0 || es->format != EXPLAIN_FORMAT_TEXT)
			ExplainPropertyUInteger("Groups", NULL, counts->groups, es);
		ExplainPropertyUInteger("Memory Usage", "kB", to_kilobytes(counts->memory), es);
	}
	if (counts->device_pages > 0)
	{
		ExplainPropertyText("Page Supply", gh_page_supply(counts->device_pages, counts->pinned_pages), es);
		if (es->verbose)
		{
			ExplainPropertyUInteger("Hinted Pages", NULL, counts->hinted_pages, es);
			ExplainPropertyUInteger("Tuples Judged", NULL, counts->judged, es);
			if (node->joined != NULL && node->joined->fills_inner)
				ExplainPropertyUInteger("Unmatched Inner Rows", NULL, counts->unmatched, es);
		}
		ExplainPropertyUInteger("Device Memory", "kB", to_kilobytes(counts->device_memory), es);
		ExplainPropertyUInteger("Bytes Transferred", NULL, counts->device_bytes, es);
	}
	if (counts->disk > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger("Disk Usage", "kB", to_kilobytes(counts->disk), es);
	if (es->timing && node->timing)
	{
		show_times(node, es);
		gh_explain_device_times(counts->queue_ns, counts->kernel_ns, es);
	}
	if (counts->fallback_reason[0] != '\0')
		ExplainPropertyText("Fallback Reason", counts->fallback_reason, es);
	else if (es->verbose && node->program.why_not != NULL)
		ExplainPropertyText("Fallback Reason", node->program.why_not, es);
	if ((es->verbose || gh_explain_why) && node->device->why_not != NULL)
		ExplainPropertyText("Engine Reason", node->device->why_not, es);
}
