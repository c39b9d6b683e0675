/*
 * explain.c
 *		What EXPLAIN shows of a fragment, and of any node whose pages a device reads.
 *
 * With ANALYZE, what went through it and, where timing is on, where its own time went.  Every line is a
 * property, so that all formats have it.  Text leaves out what is zero or as usual, unless VERBOSE is on; the
 * other formats have every number of a node that ran, for programs that read them.
 */
#include "postgres.h"

#include "compat.h"
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

static double
ms_of(instr_time time)
{
	return INSTR_TIME_GET_MILLISEC(time);
}

/* Where pages were read, and rows evaluated. */
void
gh_explain_input_times(const GhFragmentCounts *counts, ExplainState *es)
{
	gh_explain_time("Source Time", ms_of(counts->source_time), es);
	gh_explain_time("Wait Time", ms_of(counts->wait_time), es);
	gh_explain_time("Evaluate Time", ms_of(counts->evaluate_time), es);
}

/*
 * The rest of the node's time, and what the device did meanwhile, as far as it tells; it reads pages and
 * works on them at a time.
 */
void
gh_explain_other_times(const GhFragmentCounts *counts, const PlanState *ps, ExplainState *es)
{
	double		counted = ms_of(counts->build_time) + ms_of(counts->source_time) + ms_of(counts->wait_time) +
		ms_of(counts->evaluate_time) + ms_of(counts->merge_time);

	gh_explain_time("Emit Time", Max(gh_node_ms(ps->instrument) - counted, 0.0), es);
	gh_explain_time("Queue Time", counts->queue_ns / 1e6, es);
	gh_explain_time("Kernel Time", counts->kernel_ns / 1e6, es);
}

/*
 * How the device came by pages: some were there, others are read where they are in shared buffers.  Where
 * most were there, how it came by the rest is told by their numbers.
 */
void
gh_explain_page_supply(const GhFragmentCounts *counts, ExplainState *es)
{
	const char *supply = "both";
	uint64		pinned = counts->pinned_pages;
	uint64		pages = counts->device_pages - counts->resident_pages;
	bool		is_resident = counts->resident_pages > pages;

	if (counts->device_pages == 0)
		supply = "none";
	else if (is_resident)
		supply = "resident";
	else if (pinned == 0)
		supply = "copied";
	else if (pinned == pages)
		supply = "pinned";
	ExplainPropertyText("Page Supply", supply, es);
	gh_explain_count("Resident Pages", NULL, counts->resident_pages, es);
	if ((is_resident && pages > 0) || (pinned > 0 && pinned < pages) || gh_explain_all(es))
	{
		ExplainPropertyUInteger("Pages Pinned", NULL, pinned, es);
		ExplainPropertyUInteger("Pages Copied", NULL, pages - pinned, es);
	}
}

/* Why it was not done otherwise: what failed, or has no program; why no device was chosen. */
void
gh_explain_reasons(const GhFragmentCounts *counts, const char *no_program, const char *no_device,
				   ExplainState *es)
{
	if (counts->fallback_reason[0] != '\0')
		ExplainPropertyText("Fallback Reason", counts->fallback_reason, es);
	else if (es->verbose && no_program != NULL)
		ExplainPropertyText("Fallback Reason", no_program, es);
	if ((es->verbose || gh_explain_why) && no_device != NULL)
		ExplainPropertyText("Engine Reason", no_device, es);
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
	gh_explain_count("Column Pages", NULL, counts->column_pages, es);
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
		if (counts->devices > 1)
			ExplainPropertyUInteger("Devices", NULL, counts->devices, es);
		gh_explain_page_supply(counts, es);
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
	{
		if (fragment->sharers > 1)
			gh_explain_count("Groups Shared", NULL, counts->groups_shared, es);
		gh_explain_count(psprintf("%s Left on Device", fragment->methods->left_there), NULL, counts->groups_left, es);
	}
	gh_explain_count("Disk Usage", "kB", gh_to_kilobytes(counts->disk), es);
}

/* Times, and why it was not done otherwise. */
void
gh_fragment_explain_end(const GhFragment *fragment, ExplainState *es)
{
	const GhFragmentCounts *counts = &fragment->counts;

	if (es->timing && fragment->timing)
	{
		gh_explain_time("Build Time", ms_of(counts->build_time), es);
		gh_explain_input_times(counts, es);
		gh_explain_time("Merge Time", ms_of(counts->merge_time), es);
		gh_explain_other_times(counts, &fragment->css.ss.ps, es);
	}
	gh_explain_reasons(counts, fragment->program.why_not, fragment->device->why_not, es);
}
