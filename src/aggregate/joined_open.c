/*
 * joined_open.c
 *		The joins of a chain whose rows the aggregate looks up by itself (joined.c): when they read their
 *		inner sides, and what the executor is told of them.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"

#include "aggregate/joined.h"
#include "join/source.h"

/* The source that the lowest join has for the scan, as the node reads it. */
static GhSource *
scan_source(GhAggregateNode *node)
{
	return node->joined->levels[0].js->source[GH_OUTER];
}

GhPages *
gh_joined_pages(GhAggregateNode *node)
{
	return &scan_source(node)->pages;
}

/* Before anything is read: with changed parameters, each node is rescanned when it is started. */
void
gh_joined_reset(GhAggregateNode *node)
{
	node->joined->first = -1;
	gh_joined_start(node);
	gh_joined_stop(node);
}

static bool
open_table(GhJoinState *js, bool on_host)
{
	bool		open;

	gh_child_start(&js->css.ss.ps);
	open = gh_join_open_for_probes(js, on_host);
	gh_child_stop(&js->css.ss.ps, 0);
	return open;
}

/* Has the joins read their inner sides.  False: their tables cannot be probed. */
bool
gh_joined_open_tables(GhAggregateNode *node, bool on_host)
{
	GhJoined   *joined = node->joined;

	joined->open = !joined->for_device;
	for (int i = joined->nlevels - 1; i >= 0 && joined->open; i--)
		joined->open = open_table(joined->levels[i].js, on_host);
	return joined->open;
}

/*
 * The same of a join and all below it, in the order in which the executor would have them read: where a join
 * asks for an outer row before it reads its inner side, which otherwise is not read, for it may take long or
 * raise an error, those below come first.  *no_row: there was none.
 *
 * So participants of a parallel query have joined all barriers of shared tables when they take a page: whoever
 * came to one after the others are through would find that nothing is left to be done, and the page were lost.
 */
static bool
open_in_turn(GhAggregateNode *node, int number, bool *no_row)
{
	GhJoinState *js;
	bool		asks;

	if (number < 0)
		return true;
	js = node->joined->levels[number].js;
	asks = gh_join_asks_outer_first(js);
	if (asks && !open_in_turn(node, number - 1, no_row))
		return false;
	if (asks && !*no_row)
		*no_row = !gh_source_peek(scan_source(node));
	if (*no_row)
		return true;
	return open_table(js, false) && (asks || open_in_turn(node, number - 1, no_row));
}

/* What may be read of the joins, with their tables made. */
GhJoinedInput
gh_joined_open(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;
	bool		no_row = false;

	gh_joined_reset(node);
	if (joined->for_device)
		return GH_JOINED_ROWS;
	joined->open = open_in_turn(node, joined->nlevels - 1, &no_row);
	if (!joined->open)
		return GH_JOINED_ROWS;
	if (no_row)
		return GH_JOINED_NOTHING;
	if (scan_source(node)->peeked)
		joined->first = gh_source_leave_page(scan_source(node));
	return GH_JOINED_PAGES;
}

void
gh_joined_close(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;

	for (int i = joined->nlevels - 1; i >= 0; i--)
		gh_join_close_for_probes(joined->levels[i].js);
	joined->open = false;
}

/* What the executor does before and after it has the joins make rows: a page's. */
void
gh_joined_start(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;

	for (int i = joined->nlevels - 1; i >= 0; i--)
	{
		gh_child_start(&joined->levels[i].js->css.ss.ps);
		joined->levels[i].rows = 0;
	}
}

void
gh_joined_stop(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;

	for (int i = 0; i < joined->nlevels; i++)
		gh_child_stop(&joined->levels[i].js->css.ss.ps, (double) joined->levels[i].rows);
}

/* So many more rows came out of each join, of those that nobody has counted yet. */
void
gh_joined_add_rows(GhAggregateNode *node, const uint64 *rows)
{
	for (int i = 0; i < node->joined->nlevels; i++)
	{
		gh_child_start(&node->joined->levels[i].js->css.ss.ps);
		node->joined->levels[i].rows += rows[i];
	}
	gh_joined_stop(node);
}
