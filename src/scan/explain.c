/*
 * explain.c
 *		What EXPLAIN shows of a GpuHashScan, beside its relation and its conditions, which are
 *		shown as a Seq Scan's.
 *
 * Every line is a property, so that all formats have it; text leaves out what is zero (../fragment/explain.c).
 */
#include "postgres.h"

#include "fragment/explain.h"
#include "scan/node.h"

static void
show_times(GhRowScan *node, ExplainState *es)
{
	double		source = INSTR_TIME_GET_MILLISEC(node->counts.source_time);
	double		evaluate = INSTR_TIME_GET_MILLISEC(node->counts.evaluate_time);
	double		wait = INSTR_TIME_GET_MILLISEC(node->counts.wait_time);
	double		total = node->css.ss.ps.instrument->total * 1000.0;

	gh_explain_time("Source Time", source, es);
	gh_explain_time("Wait Time", wait, es);
	gh_explain_time("Evaluate Time", evaluate, es);
	gh_explain_time("Emit Time", Max(total - source - wait - evaluate, 0.0), es);
	gh_explain_device_times(node->counts.queue_ns, node->counts.kernel_ns, es);
}

/* ExplainCustomScan */
void
gh_rowscan_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GhRowScan  *node = (GhRowScan *) css;

	(void) ancestors;
	if (!es->analyze || !node->ran)
		return;
	/* it may have been stopped by a LIMIT */
	gh_rowscan_device_stop(node);
	ExplainPropertyText("Engine", node->counts.device_pages > 0 ? "cuda" : "cpu", es);
	ExplainPropertyUInteger("Pages", NULL, node->counts.pages, es);
	gh_explain_count("Rows Handed Back", NULL, node->counts.back, es);
	if (node->counts.device_pages > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		gh_explain_page_supply(node->counts.device_pages, node->counts.resident_pages, node->counts.pinned_pages,
							   es);
	if (es->timing && node->timing)
		show_times(node, es);
	if (node->counts.fallback_reason[0] != '\0')
		ExplainPropertyText("Fallback Reason", node->counts.fallback_reason, es);
	else if (es->verbose && node->program.why_not != NULL)
		ExplainPropertyText("Fallback Reason", node->program.why_not, es);
	if ((es->verbose || gh_explain_why) && gh_rowscan_device_why_not(node) != NULL)
		ExplainPropertyText("Engine Reason", gh_rowscan_device_why_not(node), es);
}
