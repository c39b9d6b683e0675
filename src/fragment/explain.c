/*
 * explain.c
 *		What EXPLAIN shows of a fragment, and of any node whose pages a device reads.
 *
 * With ANALYZE, what went through it and, where timing is on, where its own time went.  Every line is a property,
 * so that all formats have it.  Text leaves out what is zero or as usual, unless VERBOSE is on; the other
 * formats have every number of a node that ran, for programs that read them.
 */
#include "postgres.h"

#include "fragment/device.h"
#include "fragment/explain.h"
#include "fragment/fragment.h"
#include "fragment/joined.h"
#include "fragment/supply.h"

/* Whether what is zero or as usual is shown, too. */
bool
gh_explain_all(const ExplainState *es)
{
	return es->verbose || es->format != EXPLAIN_FORMAT_TEXT;
}

/* A number that is usually zero. */
void
gh_explain_count(const char *label, const char *unit, uint64 value, ExplainState *es)
{
	if (value > 0 || gh_explain_all(es))
		ExplainPropertyUInteger(label, unit, value, es);
}

/* Milliseconds, unless they would be shown as zero. */
void
gh_explain_time(const char *label, double milliseconds, ExplainState *es)
{
	if (milliseconds >= 0.0005 || gh_explain_all(es))
		ExplainPropertyFloat(label, "ms", milliseconds, 3, es);
}

/* What the device did meanwhile, as far as it tells; it reads pages and works on them at a time. */
void
gh_explain_device_times(uint64 queue_ns, uint64 kernel_ns, ExplainState *es)
{
	gh_explain_time("Queue Time", queue_ns / 1e6, es);
	gh_explain_time("Kernel Time", kernel_ns / 1e6, es);
}

/* How the device came by pages, of which so many were there, and so many were read where they are in shared buffers. */
void
gh_explain_page_supply(uint64 all, uint64 resident, uint64 pinned, ExplainState *es)
{
	const char *supply = "both";
	uint64		pages = all - resident;

	if (all == 0)
		supply = "none";
	else if (pages == 0)
		supply = "resident";
	else if (pinned == 0)
		supply = "copied";
	else if (pinned == pages)
		supply = "pinned";
	if (all > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Page Supply", supply, es);
	gh_explain_count("Resident Pages", NULL, resident, es);
	/* of both, how many of each */
	if ((pinned > 0 && pinned < pages) || gh_explain_all(es))
	{
		ExplainPropertyUInteger("Pages Pinned", NULL, pinned, es);
		ExplainPropertyUInteger("Pages Copied", NULL, pages - pinned, es);
	}
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

	ExplainPropertyText("Engine", counts->device_pages > 0 || counts->on_device ? "cuda" : "cpu", es);
	gh_explain_count("Pages", NULL, counts->pages, es);
	ExplainPropertyUInteger("Input Rows", NULL, counts->rows, es);
	gh_explain_count("Rows Handed Back", NULL, counts->back, es);
}

/* What a device did, and what was written to files. */
void
gh_fragment_explain_device(const GhFragment *fragment, ExplainState *es)
{
	const GhFragmentCounts *counts = &fragment->counts;

	if (counts->device_pages > 0 || es->format != EXPLAIN_FORMAT_TEXT)
	{
		gh_explain_page_supply(counts->device_pages, counts->resident_pages, counts->pinned_pages, es);
		if (gh_explain_all(es))
		{
			ExplainPropertyUInteger("Hinted Pages", NULL, counts->hinted_pages, es);
			ExplainPropertyUInteger("Tuples Judged", NULL, counts->judged, es);
			if (fragment->joined != NULL && fragment->joined->fills_inner)
				ExplainPropertyUInteger("Unmatched Inner Rows", NULL, counts->unmatched, es);
		}
		gh_explain_count("Resident Tables", NULL, counts->resident_tables, es);
		ExplainPropertyUInteger("Device Memory", "kB", gh_to_kilobytes(counts->device_memory), es);
		ExplainPropertyUInteger("Bytes Transferred", NULL, counts->device_bytes, es);
	}
	if (counts->device_pages > 0 || counts->on_device || es->format != EXPLAIN_FORMAT_TEXT)
		gh_explain_count("Groups Left on Device", NULL, counts->groups_left, es);
	gh_explain_count("Disk Usage", "kB", gh_to_kilobytes(counts->disk), es);
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

	gh_explain_time("Build Time", build, es);
	gh_explain_time("Source Time", source, es);
	gh_explain_time("Wait Time", wait, es);
	gh_explain_time("Evaluate Time", evaluate, es);
	gh_explain_time("Merge Time", merge, es);
	gh_explain_time("Emit Time", Max(total - build - source - wait - evaluate - merge, 0.0), es);
	gh_explain_device_times(counts->queue_ns, counts->kernel_ns, es);
}

/* Times, and why it was not done otherwise. */
void
gh_fragment_explain_end(const GhFragment *fragment, ExplainState *es)
{
	const GhFragmentCounts *counts = &fragment->counts;

	if (es->timing && fragment->timing)
		show_times(fragment, es);
	if (counts->fallback_reason[0] != '\0')
		ExplainPropertyText("Fallback Reason", counts->fallback_reason, es);
	else if (es->verbose && fragment->program.why_not != NULL)
		ExplainPropertyText("Fallback Reason", fragment->program.why_not, es);
	if ((es->verbose || gh_explain_why) && fragment->device->why_not != NULL)
		ExplainPropertyText("Engine Reason", fragment->device->why_not, es);
}
