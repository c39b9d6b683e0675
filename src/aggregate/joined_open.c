/*
 * joined_open.c
 *		The joins of a chain whose rows the aggregate joins by itself (joined.c): when they read their
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
	gh_joined_arrange(node, -1);
	gh_joined_start(node);
	gh_joined_stop(node);
}

static bool
open_table(GhJoinLevel *level, bool on_host)
{
	gh_child_start(&level->js->css.ss.ps);
	level->open = gh_join_open_for_probes(level->js, on_host);
	gh_child_stop(&level->js->css.ss.ps, 0);
	return level->open;
}

/*
 * Of the joins, some are open.  The highest that is not returns its rows, and so do all below it; those above it are
 * probed.
 */
static bool
settle(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;
	int			base = joined->nlevels - 1;

	while (base >= 0 && joined->levels[base].open)
		base--;
	for (int i = 0; i < joined->nlevels; i++)
	{
		GhJoinLevel *level = &joined->levels[i];

		if (i <= base && level->open)
			gh_join_return_rows(level->js);
		level->open = i > base;
	}
	joined->open = base < 0;
	gh_joined_arrange(node, base);
	return joined->open;
}

/* Has the joins read their inner sides.  False: not all of their tables can be probed. */
bool
gh_joined_open_tables(GhAggregateNode *node, bool on_host)
{
	GhJoined   *joined = node->joined;
	bool		open = !joined->for_device;

	for (int i = joined->nlevels - 1; i >= 0 && open; i--)
		open = open_table(&joined->levels[i], on_host);
	return settle(node);
}

/*
 * Whether a join looks for an outer row before it reads its inner side, which otherwise is not read, for it may take long
 * or raise an error.  Not above one that participants of a parallel query share: that one cannot return its rows any
 * more once it was opened.
 */
static bool
asks_outer_first(const GhJoined *joined, int number)
{
	for (int i = 0; i < number; i++)
		if (joined->levels[i].js->parallel != NULL)
			return false;
	return gh_join_asks_outer_first(joined->levels[number].js);
}

/*
 * The same of a join and all below it, in the order in which the executor would have them read: where a join
 * asks for an outer row first, those below come first.  *no_row: there was none.
 *
 * So participants of a parallel query have joined all barriers of shared tables when they take a page: whoever
 * came to one after the others are through would find that nothing is left to be done, and the page were lost.
 */
static bool
open_in_turn(GhAggregateNode *node, int number, bool *no_row)
{
	bool		asks;

	if (number < 0)
		return true;
	asks = asks_outer_first(node->joined, number);
	if (asks && !open_in_turn(node, number - 1, no_row))
		return false;
	if (asks && !*no_row)
		*no_row = !gh_source_peek(scan_source(node));
	if (*no_row)
		return true;
	return open_table(&node->joined->levels[number], false) && (asks || open_in_turn(node, number - 1, no_row));
}

/*
 * Whether the joins had better return their rows: where there is no program for the joined ones, each would have to be
 * joined by itself.
 */
static bool
has_no_program(GhAggregateNode *node)
{
	return !gh_aggregate_compile(node) && node->program.tried;
}

/* What may be read of the joins, with their tables made. */
GhJoinedInput
gh_joined_open(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;
	bool		no_row = false;

	gh_joined_reset(node);
	/* rows that are collected pass through, where no device has joined them */
	if (joined->for_device || node->collected != NULL || has_no_program(node))
	{
		(void) settle(node);
		return GH_JOINED_ROWS;
	}
	(void) open_in_turn(node, joined->nlevels - 1, &no_row);
	if (no_row)
		return GH_JOINED_NOTHING;
	if (!settle(node))
		return GH_JOINED_ROWS;
	if (scan_source(node)->peeked)
		joined->first = gh_source_leave_page(scan_source(node));
	return GH_JOINED_PAGES;
}

/* All has been read. */
void
gh_joined_close(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;

	for (int i = joined->nlevels - 1; i >= 0; i--)
	{
		if (joined->levels[i].open)
			gh_join_close_for_probes(joined->levels[i].js);
		joined->levels[i].open = false;
	}
	joined->open = false;
}

/* What the executor does before and after it has the joins make rows: a page's. */
void
gh_joined_start(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;

	for (int i = joined->nlevels - 1; i > joined->base; i--)
	{
		gh_child_start(&joined->levels[i].js->css.ss.ps);
		joined->levels[i].rows = 0;
	}
}

void
gh_joined_stop(GhAggregateNode *node)
{
	GhJoined   *joined = node->joined;

	for (int i = joined->base + 1; i < joined->nlevels; i++)
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
