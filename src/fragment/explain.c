/*
 * explain.c
 *		What EXPLAIN shows of a node whose pages an engine reads.
 */
#include "postgres.h"

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
