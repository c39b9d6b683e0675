/*
 * explain.c
 *		What EXPLAIN shows of a fragment, and of any node whose pages a device reads.
 *
 * With ANALYZE, what went through it and, where timing is on, where its own time went.  Every line is a property,
 * so that all formats have it.
 */
#include "postgres.h"

#include "fragment/device.h"
#include "fragment/fragment.h"
#include "fragment/joined.h"
#include "fragment/supply.h"

/* What the device did meanwhile, as far as it tells; it reads pages and works on them at a time. */
void
gh_explain_device_times(uint64 queue_ns, uint64 kernel_ns, ExplainState *es)
{
	if (queue_ns == 0 && kernel_ns == 0)
		return;
	ExplainPropertyFloat("Queue Time", "ms", queue_ns / 1e6, 3, es);
	ExplainPropertyFloat("Kernel Time", "ms", kernel_ns / 1e6, 3, es);
}

/* Whether the device has read pages where they are: so many of all. */
const char *
gh_page_supply(uint64 pages, uint64 pinned)
{
	if (pinned == 0)
		return "copied";
	return pinned == pages ? "pinned" : "both";
}

uint64
gh_to_kilobytes(uint64 bytes)
{
	return (bytes + 1023) / 1024;
}

/* What came in, and by which engine. */
void
gh_fragment_explain_input(const GhFragment *fragment, ExplainState *es)
{
	const GhFragmentCounts *counts = &fragment->counts;

	ExplainPropertyText("Engine", counts->device_pages > 0 ? "cuda" : "cpu", es);
	if (fragment->scan != NULL || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger("Pages", NULL, counts->pages, es);
	ExplainPropertyUInteger("Input Rows", NULL, counts->rows, es);
	ExplainPropertyUInteger("Rows Handed Back", NULL, counts->back, es);
}

/* What a device did, and what was written to files. */
void
gh_fragment_explain_device(const GhFragment *fragment, ExplainState *es)
{
	const GhFragmentCounts *counts = &fragment->counts;

	if (counts->device_pages > 0)
	{
		ExplainPropertyText("Page Supply", gh_page_supply(counts->device_pages, counts->pinned_pages), es);
		if (es->verbose)
		{
			ExplainPropertyUInteger("Hinted Pages", NULL, counts->hinted_pages, es);
			ExplainPropertyUInteger("Tuples Judged", NULL, counts->judged, es);
			if (fragment->joined != NULL && fragment->joined->fills_inner)
				ExplainPropertyUInteger("Unmatched Inner Rows", NULL, counts->unmatched, es);
		}
		ExplainPropertyUInteger("Device Memory", "kB", gh_to_kilobytes(counts->device_memory), es);
		ExplainPropertyUInteger("Bytes Transferred", NULL, counts->device_bytes, es);
	}
	if (counts->disk > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger("Disk Usage", "kB", gh_to_kilobytes(counts->disk), es);
}

static void
show_times(const GhFragment *fragment, ExplainState *es)
{
	const GhFragmentCounts *counts = &fragment->counts;
	double		source = INSTR_TIME_GET_MILLISEC(counts->source_time);
	double		build = INSTR_TIME_GET_MILLISEC(counts->build_time);
	double		wait = INSTR_TIME_GET_MILLISEC(counts->wait_time);
	double		evaluate = INSTR_TIME_GET_MILLISEC(counts->evaluate_time);
	double		merge = INSTR_TIME_GET_MILLISEC(counts->merge_time);
	double		total = fragment->css.ss.ps.instrument->total * 1000.0;

	if (fragment->joined != NULL)
		ExplainPropertyFloat("Build Time", "ms", build, 3, es);
	ExplainPropertyFloat("Source Time", "ms", source, 3, es);
	if (counts->device_pages > 0)
		ExplainPropertyFloat("Wait Time", "ms", wait, 3, es);
	ExplainPropertyFloat("Evaluate Time", "ms", evaluate, 3, es);
	if (counts->disk > 0 || !INSTR_TIME_IS_ZERO(counts->merge_time) || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyFloat("Merge Time", "ms", merge, 3, es);
	ExplainPropertyFloat("Emit Time", "ms", Max(total - build - source - wait - evaluate - merge, 0.0), 3, es);
}

/* Times, and why it was not done otherwise. */
void
gh_fragment_explain_end(const GhFragment *fragment, ExplainState *es)
{
	const GhFragmentCounts *counts = &fragment->counts;

	if (es->timing && fragment->timing)
	{
		show_times(fragment, es);
		gh_explain_device_times(counts->queue_ns, counts->kernel_ns, es);
	}
	if (counts->fallback_reason[0] != '\0')
		ExplainPropertyText("Fallback Reason", counts->fallback_reason, es);
	else if (es->verbose && fragment->program.why_not != NULL)
		ExplainPropertyText("Fallback Reason", fragment->program.why_not, es);
	if ((es->verbose || gh_explain_why) && fragment->device->why_not != NULL)
		ExplainPropertyText("Engine Reason", fragment->device->why_not, es);
}
