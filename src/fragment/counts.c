/*
 * counts.c
 *		What nodes count, added up.
 */
#include "postgres.h"

#include "fragment/counts.h"

/* Of several reasons the first one, but of who failed rather than of those who could not go on without it. */
static void
add_reason(GhFragmentCounts *totals, const GhFragmentCounts *counts)
{
	if (counts->fallback_reason[0] == '\0' ||
		(totals->fallback_reason[0] != '\0' && (!totals->fell_with_others || counts->fell_with_others)))
		return;
	strlcpy(totals->fallback_reason, counts->fallback_reason, sizeof(totals->fallback_reason));
	totals->fell_with_others = counts->fell_with_others;
}

/* Of another participant. */
void
gh_counts_add(GhFragmentCounts *totals, const GhFragmentCounts *counts)
{
	/* of those that had rows: one that came when all had been read may have had no tables to probe */
	if (counts->rows > 0)
		totals->joins_below = totals->rows > 0 ? Max(totals->joins_below, counts->joins_below) : counts->joins_below;
	totals->pages += counts->pages;
	totals->rows += counts->rows;
	totals->back += counts->back;
	totals->groups += counts->groups;
	totals->memory += counts->memory;
	totals->disk += counts->disk;
	totals->devices = Max(totals->devices, counts->devices);
	totals->device_pages += counts->device_pages;
	totals->pinned_pages += counts->pinned_pages;
	totals->resident_pages += counts->resident_pages;
	totals->column_pages += counts->column_pages;
	totals->hinted_pages += counts->hinted_pages;
	totals->judged += counts->judged;
	totals->unmatched += counts->unmatched;
	totals->resident_tables += counts->resident_tables;
	totals->groups_shared += counts->groups_shared;
	totals->groups_left += counts->groups_left;
	totals->unwanted += counts->unwanted;
	totals->on_device |= counts->on_device;
	totals->device_bytes += counts->device_bytes;
	totals->device_memory += counts->device_memory;
	totals->queue_ns += counts->queue_ns;
	totals->kernel_ns += counts->kernel_ns;
	INSTR_TIME_ADD(totals->wait_time, counts->wait_time);
	add_reason(totals, counts);
	INSTR_TIME_ADD(totals->build_time, counts->build_time);
	INSTR_TIME_ADD(totals->source_time, counts->source_time);
	INSTR_TIME_ADD(totals->evaluate_time, counts->evaluate_time);
	INSTR_TIME_ADD(totals->merge_time, counts->merge_time);
}

/* Of a supply.  *elapsed: time that has been counted, waits and rows that came back included. */
void
gh_counts_add_supply(GhFragmentCounts *counts, const GhSupply *supply, instr_time *elapsed)
{
	uint64		queue_ns;
	uint64		kernel_ns;

	gh_supply_times(supply, &queue_ns, &kernel_ns);
	counts->queue_ns += queue_ns;
	counts->kernel_ns += kernel_ns;
	counts->device_pages += supply->counts.pages;
	counts->pinned_pages += supply->counts.pinned;
	counts->resident_pages += supply->counts.resident;
	counts->hinted_pages += supply->counts.hinted;
	counts->judged += supply->counts.judged;
	counts->unmatched += supply->counts.unmatched;
	counts->device_bytes += supply->counts.bytes;
	INSTR_TIME_ADD(counts->wait_time, supply->counts.wait_time);
	INSTR_TIME_ADD(counts->evaluate_time, supply->counts.back_time);
	INSTR_TIME_SUBTRACT(*elapsed, supply->counts.wait_time);
	INSTR_TIME_SUBTRACT(*elapsed, supply->counts.back_time);
}
