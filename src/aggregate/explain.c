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

/* Key k as it comes out; in node->keys, columns have aggregate_plan.c's marks. */
static char *
key_name(GhAggregateNode *node, int k, List *context, bool prefix)
{
	CustomScan *scan = (CustomScan *) node->fragment.css.ss.ps.plan;
	TargetEntry *tle = list_nth_node(TargetEntry, scan->custom_scan_tlist, node->key_columns[k]);

	return deparse_expression((Node *) gh_unmarked(tle->expr), context, prefix, false);
}

/* Those from `first` on, before `end`. */
static void
show_keys(GhAggregateNode *node, const char *label, int first, int end, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt, node->fragment.css.ss.ps.plan, ancestors);
	bool		prefix = gh_explained_relations(es) > 1 || es->verbose;
	List	   *names = NIL;

	for (int k = first; k < end; k++)
		names = lappend(names, key_name(node, k, context, prefix));
	if (names != NIL)
		ExplainPropertyList(label, names, es);
}

/* Each of the grouping sets, in parentheses; the planner has those with the most keys last. */
static void
show_sets(GhAggregateNode *node, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt, node->fragment.css.ss.ps.plan, ancestors);
	bool		prefix = gh_explained_relations(es) > 1 || es->verbose;
	List	   *names = NIL;

	for (int set = node->sets->count - 1; set >= 0; set--)
	{
		StringInfoData name;
		const char *separator = "";

		initStringInfo(&name);
		appendStringInfoChar(&name, '(');
		for (int k = 0; k < node->nkeys; k++)
			if (node->sets->has_key[set * node->nkeys + k])
			{
				appendStringInfo(&name, "%s%s", separator, key_name(node, k, context, prefix));
				separator = ", ";
			}
		appendStringInfoChar(&name, ')');
		names = lappend(names, name.data);
	}
	ExplainPropertyList("Grouping Sets", names, es);
}

/* ExplainCustomScan */
void
gh_aggregate_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GhAggregateNode *node = (GhAggregateNode *) css;
	GhFragmentCounts *counts = &node->fragment.counts;
	int			ngrouped = node->distinct != NULL ? node->nkeys - node->distinct->nkeys : node->nkeys;
	GhLastSteps steps = {.name = ngrouped > 0 ? "Group" : "Aggregate",.unwanted = counts->unwanted};

	show_keys(node, "Group Key", 0, ngrouped, ancestors, es);
	show_keys(node, "Distinct Key", ngrouped, node->nkeys, ancestors, es);
	if (node->sets != NULL)
		show_sets(node, ancestors, es);
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
