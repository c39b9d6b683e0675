/*
 * explain.c
 *		What EXPLAIN shows of a GpuHashAggregate.
 *
 * The plan: its keys.  With ANALYZE, its steps, what went through it (../fragment/explain.c), and its groups.
 * Every line is a property, so that all formats have it.
 */
#include "postgres.h"

#include "utils/ruleutils.h"

#include "aggregate/exec.h"
#include "fragment/explain.h"
#include "plan/planning.h"

/* Those from `first` on, before `end`. */
static void
show_keys(GhAggregateNode *node, const char *label, int first, int end, List *ancestors, ExplainState *es)
{
	CustomScan *scan = (CustomScan *) node->fragment.css.ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, node->fragment.css.ss.ps.plan, ancestors);
	bool		prefix = gh_explained_relations(es) > 1 || es->verbose;
	List	   *names = NIL;

	/* in node->keys, columns have aggregate_plan.c's marks */
	for (int k = first; k < end; k++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, scan->custom_scan_tlist, node->key_columns[k]);

		names = lappend(names, deparse_expression((Node *) gh_unmarked(tle->expr), context, prefix, false));
	}
	if (names != NIL)
		ExplainPropertyList(label, names, es);
}

/* ExplainCustomScan */
void
gh_aggregate_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GhAggregateNode *node = (GhAggregateNode *) css;
	GhFragmentCounts *counts = &node->fragment.counts;
	int			ngrouped = node->distinct != NULL ? node->nkeys - 1 : node->nkeys;
	GhLastSteps steps = {.name = ngrouped > 0 ? "Group" : "Aggregate"};

	show_keys(node, "Group Key", 0, ngrouped, ancestors, es);
	show_keys(node, "Distinct Key", ngrouped, node->nkeys, ancestors, es);
	if (!es->analyze || !node->fragment.ran)
		return;
	if (node->distinct != NULL)
	{
		steps.before = "Distinct";
		steps.rows_before = counts->groups;
	}
	gh_fragment_explain_steps(&node->fragment, &steps, es);
	gh_fragment_explain_input(&node->fragment, es);
	if (node->nkeys > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger(node->distinct != NULL ? "Distinct Values" : "Groups", NULL, counts->groups, es);
	ExplainPropertyUInteger("Memory Usage", "kB", gh_to_kilobytes(counts->memory), es);
	gh_fragment_explain_device(&node->fragment, es);
	gh_fragment_explain_end(&node->fragment, es);
}
