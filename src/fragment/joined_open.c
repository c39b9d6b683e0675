/*
 * joined_open.c
 *		The joins of a chain whose rows a fragment joins by itself (joined.c): when they read their
 *		inner sides, and what the executor is told of them.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"

#include "fragment/joined.h"

/* Of the scan below the joins. */
GhPages *
gh_joined_pages(const GhJoined *joined)
{
	return joined->levels[0].lower->pages[GH_OUTER];
}

/* Before anything is read: with changed parameters, each node is rescanned when it is started. */
void
gh_joined_reset(GhFragment *fragment)
{
	fragment->joined->first = -1;
	gh_joined_arrange(fragment->joined, -1);
	gh_joined_enter(fragment->joined);
	gh_parts_begin(fragment);
}

static bool
open_table(GhJoinLevel *level, bool on_host)
{
	GhLowerJoin *lower = level->lower;

	gh_child_start(lower->ps);
	level->open = lower->methods->open(lower, on_host);
	gh_child_stop(lower->ps, 0);
	return level->open;
}

/*
 * Of the joins, some are open.  The highest that is not returns its rows, and so do all below it; those above
 * it are probed.
 */
static bool
settle(GhFragment *fragment)
{
	GhJoined   *joined = fragment->joined;
	int			base = joined->nlevels - 1;

	while (base >= 0 && joined->levels[base].open)
		base--;
	for (int i = 0; i < joined->nlevels; i++)
	{
		GhJoinLevel *level = &joined->levels[i];

		if (i <= base && level->open)
			level->lower->methods->return_rows(level->lower);
		level->open = i > base;
	}
	joined->open = base < 0;
	gh_joined_arrange(fragment->joined, base);
	return joined->open;
}

/* Has the joins read their inner sides.  False: not all of their tables can be probed. */
bool
gh_joined_open_tables(GhFragment *fragment, bool on_host)
{
	GhJoined   *joined = fragment->joined;
	bool		open = !joined->fills_inner;

	for (int i = joined->nlevels - 1; i >= 0 && open; i--)
		open = open_table(&joined->levels[i], on_host);
	return settle(fragment);
}

/*
 * Whether a join looks for an outer row before it reads its inner side, which otherwise is not read, for it
 * may take long or raise an error.  Not above one that participants of a parallel query share: that one
 * cannot return its rows any more once it was opened.
 */
static bool
asks_outer_first(const GhJoined *joined, int number)
{
	GhLowerJoin *lower = joined->levels[number].lower;

	for (int i = 0; i < number; i++)
		if (joined->levels[i].lower->methods->is_shared(joined->levels[i].lower))
			return false;
	return lower->methods->asks_outer_first(lower);
}

/* Whether there is a row that the scan's conditions accept; the lowest join keeps it. */
static bool
has_outer_row(GhFragment *fragment)
{
	GhLowerJoin *lowest = fragment->joined->levels[0].lower;

	return fragment->parts != NULL ? gh_fragment_has_row(fragment, true) : lowest->methods->peek(lowest);
}

/*
 * The same of a join and all below it, in the order in which the executor would have them read: where a join
 * asks for an outer row first, those below come first.  *no_row: there was none.
 *
 * So participants of a parallel query have joined all barriers of shared tables when they take a page:
 * whoever came to one after the others are through would find that nothing is left to be done, and the page
 * were lost.
 */
static bool
open_in_turn(GhFragment *fragment, int number, bool *no_row)
{
	bool		asks;

	/* those below return their rows in any case */
	if (number < gh_joined_first_within_limits(fragment->joined))
		return true;
	asks = asks_outer_first(fragment->joined, number);
	if (asks && !open_in_turn(fragment, number - 1, no_row))
		return false;
	if (asks && !*no_row)
		*no_row = !has_outer_row(fragment);
	if (*no_row)
		return true;
	return open_table(&fragment->joined->levels[number], false) && (asks || open_in_turn(fragment, number - 1, no_row));
}

/*
 * Whether the joins had better return their rows: where there is no program for the joined ones, each would
 * have to be joined by itself.
 */
static bool
has_no_program(GhFragment *fragment)
{
	return !gh_fragment_compile(fragment) && fragment->program.tried;
}

/* What may be read of the joins, with their tables made. */
GhJoinedInput
gh_joined_open(GhFragment *fragment)
{
	GhJoined   *joined = fragment->joined;
	bool		no_row = false;

	gh_joined_reset(fragment);
	/* rows that are collected pass through, where no device has joined them */
	if (joined->fills_inner || fragment->methods->for_device || has_no_program(fragment))
	{
		(void) settle(fragment);
		return GH_JOINED_ROWS;
	}
	(void) open_in_turn(fragment, joined->nlevels - 1, &no_row);
	if (no_row)
		return GH_JOINED_NOTHING;
	if (!settle(fragment))
		return GH_JOINED_ROWS;
	if (fragment->parts == NULL)
		joined->first = joined->levels[0].lower->methods->leave_page(joined->levels[0].lower);
	return GH_JOINED_PAGES;
}

/* All has been read. */
void
gh_joined_close(GhFragment *fragment)
{
	GhJoined   *joined = fragment->joined;

	for (int i = joined->nlevels - 1; i >= 0; i--)
	{
		if (joined->levels[i].open)
			joined->levels[i].lower->methods->close(joined->levels[i].lower);
		joined->levels[i].open = false;
	}
	joined->open = false;
}

/* What the executor does before and after it has the joins make rows: a page's. */
static void
start_joins(GhJoined *joined)
{
	for (int i = joined->nlevels - 1; i > joined->base; i--)
	{
		gh_child_start(joined->levels[i].lower->ps);
		joined->levels[i].rows = 0;
	}
}

static void
stop_joins(GhJoined *joined)
{
	for (int i = joined->base + 1; i < joined->nlevels; i++)
		gh_child_stop(joined->levels[i].lower->ps, (double) joined->levels[i].rows);
}

/* No rows: but with changed parameters, each is rescanned. */
void
gh_joined_enter(GhJoined *joined)
{
	start_joins(joined);
	stop_joins(joined);
}

void
gh_joined_start(GhFragment *fragment)
{
	start_joins(fragment->joined);
}

void
gh_joined_stop(GhFragment *fragment)
{
	stop_joins(fragment->joined);
}

/* So many more rows came behind the steps of a pipeline, of those that nobody has counted yet. */
void
gh_joined_add_rows(GhJoined *joined, const uint64 *passed)
{
	for (int i = 0; i < joined->nlevels; i++)
		gh_child_start(joined->levels[i].lower->ps);
	gh_joined_count(joined, passed);
	stop_joins(joined);
}
