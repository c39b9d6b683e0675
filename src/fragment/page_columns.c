/*
 * page_columns.c
 *		Rows of a scan that its conditions accept, by columns that are in shared memory (../store/README, "Columns of tables"):
 *		pages without such a row are not read.
 *
 * A run of blocks is a request by itself, which lists the rows that pass, or are handed back.  Then the pages
 * that have some come one by one, as if they had been read and picked from: whoever takes the rows has their
 * tuples there, and counts what was removed as ever, page by page.
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "fragment/page_conditions.h"
#include "fragment/supply.h"
#include "service/faults.h"

/* A scan that ends sooner, as below a LIMIT, asks for no columns, and makes none. */
#define GH_PAGES_BEFORE_COLUMNS GH_WITH_FAULT_POINTS(1, 32)

/*
 * Whether columns are to be looked for: not where half of the rows are picked, for all pages are read then,
 * one at a time; nor where the result of a subquery makes another program soon.
 */
static bool
wants_columns(GhPageConditions *conditions)
{
	return conditions->pages_picked >= GH_PAGES_BEFORE_COLUMNS && conditions->picked <= conditions->seen / 2 &&
		gh_page_conditions_compile(conditions) && conditions->awaited == NULL;
}

/* Has the pages of the run's picks read, which were found not to be in the pool lately. */
static void
prefetch_pages(const GhPageConditions *conditions)
{
	const GhStage *stage = conditions->stage;
	const GhHeldPages *held = stage->held;
	BlockNumber last = InvalidBlockNumber;

	for (uint32 i = 0; i < held->nback; i++)
	{
		BlockNumber block;

		(void) gh_columns_line(stage->columns, held->run_rows.first + held->back[i].page, &block);
		if (block != last)
			(void) PrefetchBuffer(conditions->pages->relation, MAIN_FORKNUM, block);
		last = block;
	}
}

/* Rows of the run before that one, of blocks without a pick, have been removed. */
static void
pass_over(GhPageConditions *conditions, uint32 row)
{
	pgstat_count_index_tuples(conditions->pages->relation, row - conditions->run_row);
	InstrCountFiltered1(conditions->scan, row - conditions->run_row);
	conditions->run_row = row;
}

/*
 * Turns to the next page of the run that has rows that were picked, which is pinned then; false: there is
 * none.
 */
static bool
turn_to_page(GhPageConditions *conditions)
{
	GhPages    *pages = conditions->pages;
	const GhStage *stage = conditions->stage;
	const GhHeldPages *held = stage->held;
	GhColumnRows rows;
	BlockNumber block;
	int			n = 0;

	conditions->tuple = conditions->next = conditions->npicks = 0;
	if (conditions->run_pick == held->nback)
	{
		pass_over(conditions, conditions->run_end);
		conditions->in_run = false;
		pages->ntuples = 0;
		return false;
	}
	(void) gh_columns_line(stage->columns, held->run_rows.first + held->back[conditions->run_pick].page, &block);
	rows = gh_columns_rows(stage->columns, block, 1);
	pass_over(conditions, rows.first);
	conditions->missed |= gh_pages_turn_to(pages, block, (int) rows.count);
	conditions->run_row = rows.first + rows.count;
	for (; conditions->run_pick < held->nback; conditions->run_pick++)
	{
		const GhBackRow *picked = &held->back[conditions->run_pick];
		uint32		row = held->run_rows.first + picked->page;
		OffsetNumber line;

		if (row >= conditions->run_row)
			break;
		line = gh_columns_line(stage->columns, row, &block);
		/* nothing on the page has changed */
		if (!gh_supply_has_tuple(pages->buffer, line))
			elog(ERROR, "columns of relation \"%s\" have line %u of block %u, where no tuple is",
				 RelationGetRelationName(pages->relation), line, block);
		conditions->picks[n++] = (GhBackRow) {.page = row - rows.first,.line = line,.step = picked->step};
		pages->lines[row - rows.first] = line;
	}
	conditions->npicks = n;
	return true;
}

/*
 * Reads the next page, as gh_pages_next() does.  by_columns: or, where columns are stored, the blocks that
 * follow one another there (in_run); then turns from one page of these that has rows to the next.  False:
 * there are no more.
 */
bool
gh_page_conditions_read(GhPageConditions *conditions, int wanted, bool by_columns)
{
	GhPages    *pages = conditions->pages;
	bool		found;

	conditions->pages_read = conditions->column_pages = 0;
	if (conditions->in_run && turn_to_page(conditions))
		return true;
	by_columns = by_columns && wants_columns(conditions);
	if (by_columns)
		(void) gh_stage_begin_reading(conditions->stage, pages);
	if (by_columns && conditions->stage->held != NULL)
		conditions->stage->held->most = GH_HELD_MAX;
	found = gh_pages_next(pages, wanted);
	if (by_columns)
		gh_stage_end_reading(conditions->stage, pages);
	if (!found)
		return false;
	conditions->pages_read = pages->run;
	if (pages->elsewhere)
	{
		gh_stage_hold_run(conditions->stage, pages);
		conditions->in_run = true;
		conditions->run_picked = false;
		conditions->column_pages = pages->run;
	}
	return true;
}

/*
 * Picks the rows of the run that was read last, if they are not known, and turns to the first page that has
 * some, if one has.
 */
void
gh_page_columns_pick(GhPageConditions *conditions)
{
	GhStage    *stage = conditions->stage;
	GhHeldPages *held = stage->held;

	if (conditions->run_picked)
		return;
	gh_stage_run_rows(stage);
	held->run = 0;
	conditions->run_picked = true;
	conditions->run_pick = 0;
	conditions->run_row = held->run_rows.first;
	conditions->run_end = held->run_rows.first + held->run_rows.count;
	conditions->seen += held->run_rows.count;
	conditions->picked += held->nback;
	conditions->left = gh_page_conditions_left(conditions, &held->request);
	if (conditions->missed)
		prefetch_pages(conditions);
	conditions->missed = false;
	(void) turn_to_page(conditions);
}
