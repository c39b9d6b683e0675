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
		gh_explain_page_supply(&node->counts, es);
	if (es->timing && node->timing)
	{
		gh_explain_input_times(&node->counts, es);
		gh_explain_other_times(&node->counts, &css->ss.ps, es);
	}
	gh_explain_reasons(&node->counts, node->conditions.why_not, gh_rowscan_device_why_not(node), es);
}
