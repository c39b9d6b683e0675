/*
 * explain.c
 *		What EXPLAIN shows of a GpuHashScan, beside its relation and its conditions, which are
 *		shown as a Seq Scan's.
 *
 * Every line is a property, so that all formats have it.
 */
#include "postgres.h"

#include "rowscan/node.h"

static void
show_times(GhRowScan *node, ExplainState *es)
{
	double		source = INSTR_TIME_GET_MILLISEC(node->counts.source_time);
	double		evaluate = INSTR_TIME_GET_MILLISEC(node->counts.evaluate_time);
	double		total = node->css.ss.ps.instrument->total * 1000.0;

	ExplainPropertyFloat("Source Time", "ms", source, 3, es);
	ExplainPropertyFloat("Evaluate Time", "ms", evaluate, 3, es);
	ExplainPropertyFloat("Emit Time", "ms", Max(total - source - evaluate, 0.0), 3, es);
}

/* ExplainCustomScan */
void
gh_rowscan_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GhRowScan  *node = (GhRowScan *) css;

	(void) ancestors;
	if (!es->analyze || !node->ran)
		return;
	ExplainPropertyText("Engine", "cpu", es);
	ExplainPropertyUInteger("Pages", NULL, node->counts.pages, es);
	ExplainPropertyUInteger("Rows Handed Back", NULL, node->counts.back, es);
	if (es->timing && node->timing)
		show_times(node, es);
	if (es->verbose && node->program.why_not != NULL)
		ExplainPropertyText("Fallback Reason", node->program.why_not, es);
}
