/*
 * explain.c
 *		What EXPLAIN shows of a GpuHashJoin.
 *
 * The plan: join type, hash condition, join filter.  With ANALYZE, what the
 * table looked like and, where timing is on, where the node's own time went.
 * Every line is a property, so that all formats have it; text leaves out what is zero
 * or as usual, unless VERBOSE is on (../fragment/explain.c).
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "fragment/explain.h"
#include "join/join.h"
#include "plan/planning.h"

static const char *
join_type_name(JoinType jointype)
{
	if (gh_is_right_anti(jointype))
		return "Right Anti";
	if (gh_is_right_semi(jointype))
		return "Right Semi";
	switch (jointype)
	{
		case JOIN_INNER:
			return "Inner";
		case JOIN_LEFT:
			return "Left";
		case JOIN_RIGHT:
			return "Right";
		case JOIN_FULL:
			return "Full";
		case JOIN_SEMI:
			return "Semi";
		case JOIN_ANTI:
			return "Anti";
		default:
			pg_unreachable();
	}
}

/*
 * Takes the marks off in the plan itself, for the deparser, which has to find this very
 * node below the nodes that give it parameters.  They have done their work by now, and
 * execution does not look at these expressions.
 */
static void
unmark_scan_tuple(CustomScan *cscan)
{
	ListCell   *lc;

	foreach(lc, cscan->custom_scan_tlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		tle->expr = gh_unmarked(tle->expr);
	}
}

static void
show_clauses(const char *label, List *clauses, CustomScanState *node,
			 List *ancestors, ExplainState *es)
{
	List	   *context;
	bool		prefix;

	if (clauses == NIL)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
	prefix = gh_explained_relations(es) > 1 || es->verbose;
	ExplainPropertyText(label,
						deparse_expression((Node *) make_ands_explicit(clauses),
										   context, prefix, false),
						es);
}

/* The node above has looked its rows up in the table by itself. */
static bool
is_looked_up_above(const GhJoinState *js)
{
	return gh_is_probed_above(js) && js->nbatches == 0;
}

static void
show_table(GhJoinState *js, ExplainState *es)
{
	const GhTableStats *stats = &js->stats;
	bool		on_device = js->engine->on_device;
	uint64		memory = js->store.bytes_peak + (on_device ? 0 : js->table_bytes_peak);

	if (gh_explain_all(es))
	{
		ExplainPropertyUInteger("Subtables", NULL, stats->subtables, es);
		ExplainPropertyFloat("Fill Factor", NULL, stats->fill, 2, es);
		ExplainPropertyText("Table Values", js->carried ? "columns" : "rows", es);
	}
	gh_explain_count("Resizes", NULL, stats->upsizes + stats->downsizes, es);
	gh_explain_count("Batches", NULL, js->nbatches, es);
	if (js->partitions_peak > 1 || gh_explain_all(es))
		ExplainPropertyUInteger("Partitions", NULL, js->partitions_peak, es);
	if (js->partitions_peak > 1 || js->spill.bytes_written > 0 || gh_explain_all(es))
		ExplainPropertyUInteger("Disk Usage", "kB", gh_to_kilobytes(js->spill.bytes_written), es);
	ExplainPropertyUInteger("Memory Usage", "kB", gh_to_kilobytes(memory), es);
	if (on_device || es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyUInteger("Device Memory", "kB", on_device ? gh_to_kilobytes(js->table_bytes_peak) : 0, es);
		ExplainPropertyUInteger("Bytes Transferred", NULL,
								on_device ? stats->bytes_to_device + stats->bytes_from_device : 0, es);
	}
}

/*
 * Source Time is spent filling batches, the outer child's time included; Build
 * Time reading the inner child and making the table; Wait Time probing.  Emit
 * Time is the rest of the node's time: asking the clock for each row would cost
 * more than the row.
 */
static void
show_times(GhJoinState *js, ExplainState *es)
{
	double		source = INSTR_TIME_GET_MILLISEC(js->source_time);
	double		build = INSTR_TIME_GET_MILLISEC(js->build_time);
	double		wait = INSTR_TIME_GET_MILLISEC(js->wait_time);
	double		total = gh_node_ms(js->css.ss.ps.instrument);
	double		emit = total - source - build - wait;

	/* the rest is the time of the node above */
	if (is_looked_up_above(js))
		emit = 0.0;
	gh_explain_time("Source Time", source, es);
	gh_explain_time("Build Time", build, es);
	gh_explain_time("Wait Time", wait, es);
	gh_explain_time("Emit Time", Max(emit, 0.0), es);
	if (js->engine->on_device || es->format != EXPLAIN_FORMAT_TEXT)
	{
		gh_explain_time("Queue Time", js->stats.queue_ns / 1e6, es);
		gh_explain_time("Transfer Time", js->stats.transfer_ns / 1e6, es);
		gh_explain_time("Kernel Time", js->stats.kernel_ns / 1e6, es);
	}
}

/* Whose copy is the table, and where the rows came from. */
static void
show_copy(const GhJoinState *js, ExplainState *es)
{
	const GhCopyUse *use = &js->copy_use;
	char	   *name = get_rel_name(js->index);

	if (name == NULL)
		return;
	if (!use->used)
	{
		if (use->why_not != NULL)
			ExplainPropertyText("Without Copy", psprintf("%s: %s", name, use->why_not), es);
		return;
	}
	ExplainPropertyText("Inner Index", name, es);
	if (es->timing)
		gh_explain_time("Copy Build Time", use->made_ms, es);
	ExplainPropertyUInteger("Blocks From Index", NULL, use->copy_blocks, es);
	gh_explain_count("Blocks From Heap", NULL, use->heap_blocks, es);
	gh_explain_count("Rows From Heap", NULL, use->heap_rows, es);
}

/* ExplainCustomScan */
void
gh_join_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GhJoinState *js = (GhJoinState *) node;

	unmark_scan_tuple((CustomScan *) node->ss.ps.plan);
	ExplainPropertyText("Join Type", join_type_name(js->jointype), es);
	show_clauses("Hash Cond", js->hash_clauses, node, ancestors, es);
	show_clauses("Join Filter", js->join_quals, node, ancestors, es);
	if (!es->analyze)
		return;
	if (!js->built && !js->ran_parallel)
	{
		/* of a table that a device has made */
		show_copy(js, es);
		return;
	}

	if (js->join_quals != NIL)
		gh_explain_count("Rows Removed by Join Filter", NULL, js->removed_by_join_filter, es);
	/* else it is that of the node above */
	if (js->engine != NULL && (!is_looked_up_above(js) || gh_explain_all(es)))
		ExplainPropertyText("Engine", js->engine->name, es);
	ExplainPropertyUInteger("Inner Rows", NULL, js->inner_rows, es);
	show_copy(js, es);
	if (js->engine != NULL)
	{
		gh_join_take_stats(js);
		show_table(js, es);
		if (es->timing && js->timing)
			show_times(js, es);
	}
	if (js->fallback_reason[0] != '\0')
		ExplainPropertyText("Fallback Reason", js->fallback_reason, es);
	else if (es->verbose && js->engine_reason != NULL)
		ExplainPropertyText("Engine Reason", js->engine_reason, es);
}
