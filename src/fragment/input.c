/*
 * input.c
 *		The rows of a fragment: pages of a scan, as wholes, or row by row.
 *
 * Where the child is a scan whose pages the node may read, or joins over one (joined.c), a page enters a
 * pipeline (enter.c) while it is pinned: its columns are decoded, the scan's conditions, joins and what the
 * node makes of a row evaluated by the engine.  Rows that the engine hands back, and all where there is no
 * program, are evaluated by PostgreSQL's own expressions, from the scan's first condition on.  Other
 * children's rows come through the executor: rows.c.
 *
 * What a page and a scan ask for is in ../heap/README, "Pages".
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "fragment/device.h"
#include "fragment/fragment.h"
#include "fragment/joined.h"

/* ----------------------------------------------------------- set-up, the end */

/* What a node's state is, when its plan is known: the child is made. */
void
gh_fragment_init(GhFragment *fragment, const GhFragmentMethods *methods, int ncolumns, EState *estate, int eflags)
{
	CustomScanState *css = &fragment->css;

	fragment->methods = methods;
	fragment->ncolumns = ncolumns;
	fragment->child = outerPlanState(css) = ExecInitNode(outerPlan(css->ss.ps.plan), estate, eflags);
	if (gh_may_read_pages(fragment->child, estate, eflags))
		fragment->scan = fragment->child;
	else if (gh_parts_init(fragment, fragment->child, eflags))
		fragment->scan = fragment->parts[0].scan;
	else
		gh_joined_init(fragment, eflags);
	if (fragment->scan != NULL && fragment->joined == NULL)
	{
		fragment->attnos = palloc(sizeof(int) * Max(ncolumns, 1));
		for (int i = 0; i < ncolumns; i++)
			fragment->attnos[i] = gh_relation_attno(fragment->scan, i + 1);
	}
	gh_pages_init(&fragment->own_pages, estate->es_query_cxt);
	fragment->pages = fragment->parts != NULL ? &fragment->parts[0].pages :
		fragment->joined != NULL ? gh_joined_pages(fragment->joined) : &fragment->own_pages;
	fragment->program.context = AllocSetContextCreate(CurrentMemoryContext, "GpuHash program", ALLOCSET_DEFAULT_SIZES);
	fragment->timing = (estate->es_instrument & INSTRUMENT_TIMER) != 0;
	gh_device_init(fragment);
}

/* Before a rescan: whether the input may be another one than it was. */
bool
gh_fragment_changes(GhFragment *fragment)
{
	return fragment->css.ss.ps.chgParam != NULL;
}

/* All has been forgotten, and is to be read anew. */
void
gh_fragment_rescan(GhFragment *fragment)
{
	fragment->rescanned = true;
	if (fragment->child->chgParam == NULL)
		ExecReScan(fragment->child);
}

/*
 * Forgets what was prepared for the input as it was; the node has forgotten what it made of it, but not its
 * program.
 */
void
gh_fragment_forget(GhFragment *fragment)
{
	gh_device_forget(fragment);
	/* the next run may read pages, and its program is about theirs */
	fragment->passes_on = fragment->by_rows = false;
	gh_fragment_forget_program(fragment);
	if (fragment->joined != NULL)
		gh_joined_arrange(fragment->joined, -1);
	/* the joins see to theirs */
	gh_pages_park(&fragment->own_pages);
	gh_parts_turn_to(fragment, 0);
}

void
gh_fragment_end(GhFragment *fragment)
{
	gh_pages_end(&fragment->own_pages);
	gh_parts_end(fragment);
	ExecEndNode(fragment->child);
}

/* ----------------------------------------- one row, by PostgreSQL's expressions */

/*
 * A visible tuple of a page of the scan, which is pinned, by PostgreSQL's expressions.  Whether the scan's
 * conditions accept it: only then is it counted as handed back.  Which of the others the program could not do
 * depends on their values, and they may be rows that a policy hides from who reads the count.
 */
bool
gh_add_tuple(GhFragment *fragment, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	ScanState  *child = (ScanState *) fragment->scan;
	TupleTableSlot *to = fragment->css.ss.ss_ScanTupleSlot;
	TupleTableSlot *from = child->ss_ScanTupleSlot;

	if (!gh_scan_accepts(child, fragment->pages, buffer, block, line, child->ps.qual))
		return false;
	fragment->counts.back++;
	if (gh_joined_nprobes(fragment) > 0)
	{
		slot_getallattrs(from);
		gh_joined_add_row(fragment, from->tts_values, from->tts_isnull);
		return true;
	}
	ResetExprContext(fragment->css.ss.ps.ps_ExprContext);
	for (int c = 0; c < fragment->ncolumns; c++)
		to->tts_values[c] = slot_getattr(from, fragment->attnos[c], &to->tts_isnull[c]);
	fragment->methods->add_row(fragment);
	return true;
}

/* A visible tuple of the page that was read last. */
static bool
add_tuple(GhFragment *fragment, OffsetNumber line)
{
	const GhPages *pages = fragment->pages;

	return gh_add_tuple(fragment, pages->buffer, pages->block, line);
}

/* -------------------------------------------------------------- a page */

/* The page's rows, by the pipeline.  The scan's conditions have not let those before `from` through. */
static int
enter_page(GhFragment *fragment, int from)
{
	GhBackRow	back[MaxHeapTuplesPerPage];
	uint32		nback;
	int			rows;

	fragment->pages->tuples_unread = fragment->program.program->ncolumns == 0;
	rows = (int) gh_enter_page(fragment, back, &nback);
	for (uint32 i = 0; i < nback; i++)
		if (back[i].line >= fragment->pages->lines[from])
			rows += add_tuple(fragment, back[i].line);
	fragment->methods->enter_waiting(fragment);
	return rows;
}

/* The page that is pinned, from a visible tuple on.  How many rows the scan's conditions accept. */
static int
add_page(GhFragment *fragment, int from, instr_time *clock)
{
	int			ntuples = fragment->pages->ntuples;
	int			rows = 0;

	if (from == ntuples)
		return 0;
	if (fragment->methods->stage(fragment) != NULL)
		rows = enter_page(fragment, from);
	else
		for (int i = from; i < ntuples; i++)
			rows += add_tuple(fragment, fragment->pages->lines[i]);
	gh_fragment_clock(fragment, &fragment->counts.evaluate_time, clock);
	/* the slot has a pin of its own */
	ExecClearTuple(((ScanState *) fragment->scan)->ss_ScanTupleSlot);
	InstrCountFiltered1(fragment->scan, ntuples - from - rows);
	return rows;
}

/* Goes on to the next page; false at the end.  *from: its first tuple that is not done. */
static bool
next_page(GhFragment *fragment, int *from)
{
	const GhPages *pages = fragment->pages;

	*from = 0;
	gh_pages_begin(fragment->pages, fragment->scan);
	/* nothing is returned before all are read */
	if (!gh_pages_next(fragment->pages, GH_PAGES_AHEAD_MAX))
		return false;
	pgstat_count_index_tuples(pages->relation, pages->ntuples);
	if (!fragment->device->tried)
		gh_device_log(fragment->device, fragment->part, pages->block, pages->run);
	return true;
}

static bool
read_page(GhFragment *fragment)
{
	instr_time	clock = {0};
	bool		ahead = fragment->joined != NULL && fragment->joined->first >= 0;
	bool		found = true;
	int			from;
	int			rows = 0;

	gh_fragment_clock(fragment, NULL, &clock);
	if (fragment->joined != NULL)
		gh_joined_start(fragment);
	gh_child_start(fragment->scan);
	if (ahead)
	{
		from = fragment->joined->first;
		fragment->joined->first = -1;
	}
	else
		found = next_page(fragment, &from);
	gh_fragment_clock(fragment, &fragment->counts.source_time, &clock);
	if (found)
	{
		rows = add_page(fragment, from, &clock);
		fragment->counts.pages++;
		fragment->counts.rows += rows;
	}
	/* a row that was found ahead was counted then */
	gh_child_stop(fragment->scan, rows - (ahead ? 1 : 0));
	if (fragment->joined != NULL)
		gh_joined_stop(fragment);
	return found;
}

/* The rows of the pages that the stage holds, as of add_page(). */
static int
add_held(GhFragment *fragment, instr_time *clock)
{
	GhStage    *stage = fragment->program.stage;
	const GhHeldPages *held = stage->held;
	int			rows = (int) gh_enter_held(fragment);

	for (uint32 i = 0; i < held->nback; i++)
	{
		BlockNumber block;
		OffsetNumber line;
		Buffer		buffer = gh_stage_back_row(stage, fragment->pages, &held->back[i], &block, &line);

		rows += gh_add_tuple(fragment, buffer, block, line);
	}
	fragment->methods->enter_waiting(fragment);
	gh_fragment_clock(fragment, &fragment->counts.evaluate_time, clock);
	/* the slot has a pin of its own */
	ExecClearTuple(((ScanState *) fragment->scan)->ss_ScanTupleSlot);
	InstrCountFiltered1(fragment->scan, (double) held->ntuples - rows);
	fragment->counts.pages += gh_held_count(held);
	if (held->npages == 0)
		fragment->counts.column_pages += held->run;
	fragment->counts.rows += rows;
	gh_stage_release(stage);
	return rows;
}

/* Reads pages, as many as enter the pipeline together; false: there is none. */
static bool
read_pages(GhFragment *fragment)
{
	GhStage    *stage = fragment->program.stage;
	instr_time	clock = {0};
	bool		found = false;
	int			rows = 0;
	int			from;

	gh_fragment_clock(fragment, NULL, &clock);
	if (fragment->joined != NULL)
		gh_joined_start(fragment);
	gh_child_start(fragment->scan);
	fragment->pages->tuples_unread = fragment->program.program->ncolumns == 0;
	gh_pages_begin(fragment->pages, fragment->scan);
	found = gh_stage_begin_reading(stage, fragment->pages);
	while (gh_stage_has_room(stage, fragment->pages) && next_page(fragment, &from))
	{
		gh_stage_hold(stage, fragment->pages);
		if (fragment->pages->elsewhere)
			pgstat_count_index_tuples(fragment->pages->relation, stage->held->run_rows.count);
		found = true;
	}
	gh_stage_end_reading(stage, fragment->pages);
	gh_fragment_clock(fragment, &fragment->counts.source_time, &clock);
	if (found)
		rows = add_held(fragment, &clock);
	gh_child_stop(fragment->scan, rows);
	if (fragment->joined != NULL)
		gh_joined_stop(fragment);
	return found;
}

/* A page that was read before.  The scan's node may have counted its rows then. */
void
gh_fragment_reread(GhFragment *fragment, BlockNumber block, bool counted)
{
	instr_time	clock = {0};
	int			rows;

	gh_fragment_clock(fragment, NULL, &clock);
	if (fragment->joined != NULL)
		gh_joined_start(fragment);
	gh_child_start(fragment->scan);
	gh_pages_read_block(fragment->pages, block);
	gh_fragment_clock(fragment, &fragment->counts.source_time, &clock);
	rows = add_page(fragment, 0, &clock);
	fragment->counts.pages++;
	fragment->counts.rows += rows;
	if (counted)
		InstrCountFiltered1(fragment->scan, rows - fragment->pages->ntuples);
	else
		pgstat_count_index_tuples(fragment->pages->relation, fragment->pages->ntuples);
	gh_child_stop(fragment->scan, counted ? 0 : rows);
	if (fragment->joined != NULL)
		gh_joined_stop(fragment);
}

/* -------------------------------------------------------------------- all */

/* This process's part of the input is to be read once more: nothing of it is kept. */
void
gh_fragment_start_anew(GhFragment *fragment)
{
	fragment->counts.pages = fragment->counts.rows = fragment->counts.back = fragment->counts.groups = 0;
	fragment->counts.disk = fragment->counts.column_pages = 0;
	fragment->methods->start_anew(fragment);
}

/* What is read, the joins' tables having been made where pages are. */
static GhJoinedInput
open_input(GhFragment *fragment)
{
	instr_time	clock = {0};
	GhJoinedInput input;

	if (fragment->joined == NULL)
	{
		gh_parts_begin(fragment);
		return fragment->scan != NULL ? GH_JOINED_PAGES : GH_JOINED_ROWS;
	}
	switch (gh_device_open_joins(fragment))
	{
		case GH_DEVICE_TABLES:
			return GH_JOINED_PAGES;
		case GH_DEVICE_NO_INPUT:
			return GH_JOINED_NOTHING;
		case GH_DEVICE_NO_TABLES:
			break;
	}
	gh_fragment_clock(fragment, NULL, &clock);
	input = gh_joined_open(fragment);
	/* a program for the scan's rows is none for those of the joins */
	if (input == GH_JOINED_ROWS)
		gh_fragment_forget_program(fragment);
	gh_fragment_clock(fragment, &fragment->counts.build_time, &clock);
	return input;
}

/*
 * Whether pages are read some at a time: there is a pipeline, which the first rows make, and no row was found
 * ahead.
 */
static bool
enters_together(const GhFragment *fragment)
{
	return fragment->program.stage != NULL && (fragment->joined == NULL || fragment->joined->first < 0);
}

/* Reads some of the input; false at its end.  *input changes where it has to be begun anew. */
static bool
read_some(GhFragment *fragment, GhJoinedInput *input)
{
	if (*input == GH_JOINED_NOTHING)
		return false;
	if (*input == GH_JOINED_ROWS)
		return gh_fragment_read_rows(fragment);
	if (!gh_device_wants(fragment))
		return (enters_together(fragment) ? read_pages(fragment) : read_page(fragment)) || gh_parts_next(fragment);
	return !gh_device_read(fragment, input);
}

static void
count_joins_below(GhFragment *fragment)
{
	if (fragment->joined != NULL)
		fragment->counts.joins_below = (uint32) (fragment->joined->base + 1);
}

/* Before the input is read; false: the child's rows are to be passed on. */
bool
gh_fragment_begin_input(GhFragment *fragment)
{
	fragment->input = open_input(fragment);
	fragment->by_rows = fragment->input == GH_JOINED_ROWS;
	fragment->passes_on = fragment->methods->put_child_row != NULL && fragment->by_rows && gh_joined_nprobes(fragment) == 0;
	count_joins_below(fragment);
	return !fragment->passes_on;
}

/* Reads some of it; false: it has been read. */
bool
gh_fragment_read_some(GhFragment *fragment)
{
	if (!read_some(fragment, &fragment->input))
		return false;
	CHECK_FOR_INTERRUPTS();
	fragment->by_rows = fragment->input == GH_JOINED_ROWS;
	count_joins_below(fragment);
	fragment->methods->keep_within_memory(fragment);
	return true;
}

/* It has been read, or no more of it is asked for. */
void
gh_fragment_end_input(GhFragment *fragment)
{
	gh_pages_park(fragment->pages);
	if (fragment->input == GH_JOINED_PAGES)
		gh_parts_stop(fragment);
	if (fragment->joined != NULL)
		gh_joined_close(fragment);
}

/* Reads the child to its end, unless its rows are to be passed on. */
void
gh_fragment_read_input(GhFragment *fragment)
{
	if (!gh_fragment_begin_input(fragment))
		return;
	while (gh_fragment_read_some(fragment))
		continue;
	fragment->methods->end_input(fragment);
	gh_fragment_end_input(fragment);
}
