/*
 * parallel_probed.c
 *		A table for the node above (probed.c) in the phases of a parallel join: of stored rows, of rows as they come, or
 *		straight from pages.
 *
 * Made of pages it needs each row once in memory, and no copy of it.  Where that comes to nothing, as a value
 * is none that the engines hold or there is not the memory, the scan starts once more for all, and its rows
 * are stored.  So are rows of another plan then, which each participant has in a file.
 */
#include "postgres.h"

#include "utils/wait_event.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/parallel.h"

/* Whether each participant takes the copy of an index. */
bool
gh_shared_probed_is_copy(const GhJoinState *js)
{
	return pg_atomic_read_u32(&js->parallel->shared->of_pages) == GH_OF_COPY;
}

/* Takes the copy, unless this participant has it.  Each has all of its rows, and who decides counts them. */
bool
gh_shared_probed_take_copy(GhJoinState *js)
{
	if (!gh_is_probed_above(js))
		elog(ERROR, "participants of a hash join do not agree on who probes");
	if (js->probed->table != NULL)
		return true;
	if (!gh_probed_copy(js))
		return false;
	js->inner_rows = 0;
	return true;
}

/* Up to phase ENTER: likewise, or all give it up. */
static void
take_copy(GhJoinState *js)
{
	if (!gh_shared_probed_take_copy(js))
		pg_atomic_write_u32(&js->parallel->shared->refused, 1);
}

static uint32
choose(GhJoinState *js)
{
	if (!gh_is_probed_above(js))
		return GH_OF_PAGES_NO;
	if (gh_probed_copy(js))
		return GH_OF_COPY;
	if (gh_probed_may_read_together(js))
		return GH_OF_PAGES_YES;
	return gh_probed_takes_rows(js) ? GH_OF_ROWS : GH_OF_PAGES_NO;
}

/* Who decides waits for nobody, and after an error of it all end. */
static void
await_decision(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	ConditionVariablePrepareToSleep(&shared->decided);
	while (pg_atomic_read_u32(&shared->of_pages) == GH_OF_PAGES_DECIDING)
		ConditionVariableSleep(&shared->decided, WAIT_EVENT_HASH_BUILD_ALLOCATE);
	ConditionVariableCancelSleep();
}

/*
 * Phase ROWS: whether the table for the node above is made straight from pages or of rows as they come, or is
 * a copy, so that no rows are to be stored.  The first one here decides for all.
 */
bool
gh_shared_probed_needs_no_rows(GhJoinState *js)
{
	uint32		undecided = GH_OF_PAGES_UNDECIDED;
	pg_atomic_uint32 *of_pages = &js->parallel->shared->of_pages;
	bool		mine = pg_atomic_compare_exchange_u32(of_pages, &undecided, GH_OF_PAGES_DECIDING);
	uint32		decided;

	if (mine)
	{
		pg_atomic_write_u32(of_pages, choose(js));
		ConditionVariableBroadcast(&js->parallel->shared->decided);
	}
	else
		await_decision(js);
	decided = pg_atomic_read_u32(of_pages);
	if (decided == GH_OF_COPY)
	{
		take_copy(js);
		return true;
	}
	gh_probed_drop(js);
	if (decided == GH_OF_PAGES_YES && gh_is_probed_above(js) && js->probed->reader == NULL)
		(void) gh_probed_may_read_together(js);
	return decided == GH_OF_PAGES_YES || decided == GH_OF_ROWS;
}

bool
gh_shared_probed_gave_rows_up(const GhJoinState *js)
{
	return pg_atomic_read_u32(&js->parallel->shared->of_pages) == GH_OF_ROWS_GIVEN_UP;
}

/* Whether what was read into the table, or was to be, is to be stored. */
bool
gh_shared_probed_gave_up(const GhJoinState *js)
{
	return pg_atomic_read_u32(&js->parallel->shared->of_pages) == GH_OF_PAGES_GIVEN_UP || gh_shared_probed_gave_rows_up(js);
}

static bool
is_of_pages(GhShared *shared)
{
	return pg_atomic_read_u32(&shared->of_pages) == GH_OF_PAGES_YES;
}

static bool
is_of_rows(GhShared *shared)
{
	return pg_atomic_read_u32(&shared->of_pages) == GH_OF_ROWS;
}

/* By one, when nobody reads: all read the inner side once more, or what they have read of it. */
static void
give_up(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	bool		of_rows = is_of_rows(shared);

	pg_atomic_write_u32(&shared->of_pages, of_rows ? GH_OF_ROWS_GIVEN_UP : GH_OF_PAGES_GIVEN_UP);
	pg_atomic_write_u64(&shared->nkeys, 0);
	pg_atomic_write_u64(&shared->probed_bytes, 0);
	shared->engine = GH_SHARED_NO_TABLE;
	shared->enter = shared->probed = false;
	if (!of_rows)
		gh_child_rewind_for_all(gh_child(js, GH_INNER));
}

/*
 * Phase TABLE, by one participant: where the node above wants a table that it can probe, one that all fill.
 */
bool
gh_shared_probed_make(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	if (gh_shared_probed_is_copy(js))
	{
		shared->cpu_root = 0;
		shared->probed = shared->enter = true;
		shared->engine = GH_SHARED_CPU;
		return true;
	}
	if (is_of_pages(shared) || is_of_rows(shared))
	{
		if (is_of_rows(shared) ? !gh_probed_share_passed(js, &shared->cpu_root) :
			!gh_probed_share_pages(js, &shared->cpu_root))
		{
			give_up(js);
			return true;
		}
	}
	else if (!gh_is_probed_above(js) || pg_atomic_read_u32(&shared->unprobed) != 0 || (gh_parallel_keys(js) == 0 && !js->fill_outer) ||
			 !gh_probed_share(js, &shared->cpu_root))
		return false;
	shared->probed = shared->enter = true;
	shared->engine = GH_SHARED_CPU;
	return true;
}

/* The table comes to nothing: what the join has otherwise, such as cannot do so, too. */
static void
make_in_place_of_probed(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	gh_probed_unshare(js, shared->cpu_root);
	shared->probed = false;
	if (is_of_pages(shared) || is_of_rows(shared))
		give_up(js);
	else
		gh_shared_table_make_last(js);
}

/* Of pages without a row with a key: no table, unless it takes that for an outer row to come out. */
static bool
is_not_needed(const GhJoinState *js)
{
	return gh_parallel_keys(js) == 0 && !js->fill_outer;
}

static void
drop_empty(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	gh_probed_unshare(js, shared->cpu_root);
	shared->probed = shared->enter = false;
	shared->engine = GH_SHARED_NO_TABLE;
}

/* Phases TABLE_2 to TABLE_4, by one participant; refused: some row cannot be in it. */
void
gh_shared_probed_go_on(GhJoinState *js, bool refused)
{
	GhShared   *shared = js->parallel->shared;

	if (gh_shared_probed_is_copy(js))
	{
		if (refused && BarrierPhase(&shared->barrier) == GH_SHARED_TABLE_2)
			give_up(js);
		return;
	}
	if (!refused && is_not_needed(js))
	{
		drop_empty(js);
		return;
	}
	if (!refused && gh_probed_begin(js, shared->cpu_root))
		return;
	/* from the next phase on, the rows are nowhere else */
	if (BarrierPhase(&shared->barrier) != GH_SHARED_TABLE_2)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory for the table of a hash join")));
	make_in_place_of_probed(js);
}

/* This participant's rows; false: some cannot be in the table. */
static bool
fill(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	if (is_of_pages(shared))
		return gh_probed_fill_pages(js, shared->cpu_root);
	if (is_of_rows(shared))
		return gh_probed_fill_passed(js, shared->cpu_root);
	return js->store.nkeys == 0 || gh_probed_fill(js, shared->cpu_root);
}

/* In phase ENTER the rows, which may be needed until all have done so, and then the index. */
void
gh_shared_probed_enter(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	if (gh_shared_probed_is_copy(js))
	{
		if (BarrierPhase(&shared->barrier) == GH_SHARED_ENTER)
			take_copy(js);
		return;
	}
	if (BarrierPhase(&shared->barrier) == GH_SHARED_ENTER)
	{
		if (js->probed->has_refs)
			gh_parallel_share_rows(js);
		if (!fill(js))
			pg_atomic_write_u32(&shared->refused, 1);
		return;
	}
	if (!js->probed->has_refs)
		gh_parallel_forget_rows(js);
	gh_probed_enter(js, shared->cpu_root);
}
