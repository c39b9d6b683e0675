/*
 * explain.c
 *		What EXPLAIN shows of a GpuHashScan, beside its relation and its conditions, which are
 *		shown as a Seq Scan's.
 *
 * Every line is a property, so that all formats have it; text leaves out what is zero
 * (../fragment/explain.c).
 */
#include "postgres.h"

#include "fragment/explain.h"
#include "scan/node.h"

/* ExplainCustomScan */
void
gh_rowscan_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GhRowScan  *node = (GhRowScan *) css;
	GhFragment *fragment = &node->fragment;
	const GhFragmentCounts *counts = &fragment->counts;

	(void) ancestors;
	if (!es->analyze || !fragment->ran)
		return;
	/* it may have been stopped by a LIMIT */
	gh_rowscan_device_stop(node);
	ExplainPropertyText("Engine", counts->device_pages > 0 ? "cuda" : "cpu", es);
	ExplainPropertyUInteger("Pages", NULL, counts->pages, es);
	gh_explain_count("Column Pages", NULL, counts->column_pages, es);
	gh_explain_count("Rows Handed Back", NULL, counts->back, es);
	gh_explain_count("Rows Left Out", NULL, counts->groups_left, es);
	if (counts->device_pages > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		gh_explain_page_supply(counts, es);
	if (es->timing && fragment->timing)
	{
		gh_explain_input_times(counts, es);
		gh_explain_other_times(counts, &css->ss.ps, es);
	}
	gh_explain_reasons(counts, node->conditions.why_not, fragment->device->why_not, es);
}
