/*
 * scan_counts.cu
 *		What a request is told: how many rows came how far, and which ones are handed back.
 */
#include <string.h>

#include "cuda/pipeline/scan_device.cuh"

static void
hand_back(GhScanRequest *request, uint32_t page, uint32_t line)
{
	request->back[request->nback].page = page;
	request->back[request->nback].line = line;
	request->nback++;
}

/* Rows of the lines that are live, when their pages were read. */
uint64_t
counted_rows(const cuda_scan *scan, const scan_lane *lane)
{
	return scan->view.multiplies ? lane->host_counters->rows : lane->host_counters->counted;
}

/* Places behind the lines that have been taken. */
uint32_t
used_extras(const scan_lane *lane)
{
	uint32_t	extras = lane->host_counters->extras;

	return extras < lane->lines.extras ? extras : lane->lines.extras;
}

/* Lines that are handed back or, where rows are listed, live; most of them are neither. */
void
list_back(const cuda_scan *scan, const scan_lane *lane, GhScanRequest *request)
{
	bool		lists = scan->plan.options.lists_rows != 0;
	uint64_t	eight;

	static_assert(LINE_NONE == 0, "what is skipped");
	for (uint32_t p = 0; p < request->npages; p++)
	{
		const uint8_t *state = lane->host_state + lane->host_firsts[p];

		for (uint32_t i = 0; i < request->pages[p].lines; i++)
		{
			if (i + sizeof(eight) <= request->pages[p].lines)
			{
				memcpy(&eight, state + i, sizeof(eight));
				if (eight == 0)
				{
					i += sizeof(eight) - 1;
					continue;
				}
			}
			if (state[i] >= LINE_BACK)
				hand_back(request, p, state[i] == LINE_PAGE ? 0 : i + 1);
			else if (lists && state[i] == LINE_LIVE)
				hand_back(request, p, (i + 1) | GH_SCAN_LIVE);
		}
	}
}

/* Rows of joins, by what has become of their lines. */
static void
tell_behind(const cuda_scan *scan, const uint64_t *behind, GhScanRequest *request)
{
	request->passed += behind[0];
	for (uint32_t j = 0; j < scan->plan.options.njoins; j++)
		request->joined[j] += behind[j + 1];
}

/* The same where a line is one row: each counter is of those that came no further. */
static void
tell_came(const cuda_scan *scan, const scan_counters *counters, GhScanRequest *request)
{
	uint64_t	came = 0;

	for (uint32_t j = scan->plan.options.njoins + 1; j-- > 0;)
	{
		came += counters->came[j];
		*(j > 0 ? &request->joined[j - 1] : &request->passed) = came;
	}
}

/* All that was to be counted went back. */
static void
take_back(const cuda_scan *scan, const scan_counters *counters, GhScanRequest *request)
{
	request->counted = 0;
	request->no_group += counters->counted;
	request->seen -= counters->counted;
	if (scan->view.multiplies)
		return;
	request->passed -= counters->counted;
	for (uint32_t j = 0; j < scan->plan.options.njoins; j++)
		request->joined[j] -= counters->counted;
}

/* Rows without a match came to no join but the last, and those that go back are only counted. */
static void
tell_unmatched(const cuda_scan *scan, const scan_lane *lane, GhScanRequest *request)
{
	const scan_counters *counters = lane->host_counters;
	uint32_t	njoins = scan->plan.options.njoins;
	uint32_t	refused = lane->refused ? counters->counted : 0;

	request->counted = counters->counted - refused;
	request->joined[njoins - 1] = counters->came[njoins] - refused;
	request->nback = counters->back + refused;
	request->no_group = counters->no_group + refused;
}

void
tell_counts(const cuda_scan *scan, const scan_lane *lane, GhScanRequest *request)
{
	const scan_counters *counters = lane->host_counters;

	if (request->unmatched != 0)
	{
		tell_unmatched(scan, lane, request);
		return;
	}
	request->counted = counted_rows(scan, lane);
	request->seen = counters->seen;
	request->no_group = counters->no_group;
	if (!scan->view.multiplies)
		tell_came(scan, counters, request);
	else
		tell_behind(scan, counters->dropped, request);
	if (scan->view.multiplies && !lane->refused)
		tell_behind(scan, counters->live, request);
	if (lane->refused)
		take_back(scan, counters, request);
}
