/*
 * stage_pages.c
 *		Several pages in one request to a pipeline of the CPU engine, each pinned meanwhile.
 *
 * A request takes some time however few rows it has, and so does each vector of each instruction.  Pages of
 * wide rows have some fifty.  So pages are held until they have some hundred lines, and are done together.
 * Their pins are given up before the node returns to the executor.
 *
 * Of a scan through a ring of few buffers fewer pages are held: they are those that were read last, which the
 * ring uses again only after all others, so that it need not take further buffers of the pool in their place.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "utils/rel.h"

#include "fragment/stage.h"

/* Pages of a request of a scan through a ring: a quarter of the smallest ring. */
#define GH_HELD_RING_MAX (256 * 1024 / BLCKSZ / 4)

/* With so many lines a request is full: of more, each takes no less time. */
#define GH_HELD_LINES 512

/*
 * Of its share of the buffers a process holds a part at the most: rows that are handed back may call
 * functions, whose queries hold pages, too.
 */
#define GH_HELD_PART 4

/* Lines of a request, at most: all but those of the last page are fewer than that. */
#define GH_HELD_ROWS (GH_HELD_LINES + MaxHeapTuplesPerPage)

void
gh_stage_make_held(GhStage *stage)
{
	MemoryContext saved;
	GhHeldPages *held;

	if (stage->held != NULL)
		return;
	saved = MemoryContextSwitchTo(stage->context);
	held = stage->held = palloc0(sizeof(GhHeldPages));
	held->most = 1;
	held->buffers = palloc(sizeof(Buffer) * GH_HELD_MAX);
	held->refs = palloc(sizeof(GhPageRef) * GH_HELD_MAX);
	held->asked = palloc(sizeof(uint64) * GH_LINE_WORDS * GH_HELD_MAX);
	held->listed = palloc(sizeof(GhBackRow) * GH_HELD_ROWS);
	held->back = palloc(sizeof(GhBackRow) * GH_HELD_ROWS);
	MemoryContextSwitchTo(saved);
}

/* How many pages may be held at a time: one, at least. */
static uint32
held_room(const GhPages *pages)
{
	uint32		share = NBuffers / (MaxBackends + NUM_AUXILIARY_PROCS) / GH_HELD_PART;

	/* one is copied if it lies at an address that engines do not take */
	if (RelationUsesLocalBuffers(pages->relation))
		return 1;
	return Max(Min(share, pages->strategy != NULL ? GH_HELD_RING_MAX : GH_HELD_MAX), 1);
}

/* Whether the next request has room for one more page of these. */
bool
gh_stage_has_room(const GhStage *stage, const GhPages *pages)
{
	const GhHeldPages *held = stage->held;

	if (held == NULL || gh_held_count(held) == 0)
		return true;
	return held->run == 0 && held->npages < Min(held->most, held_room(pages)) &&
		held->nlines < GH_HELD_LINES;
}

/*
 * The page that is pinned, of which the visible lines are known: the pin becomes the stage's.  Or blocks that
 * were not read, as columns of them are stored.
 */
void
gh_stage_hold(GhStage *stage, GhPages *pages)
{
	GhHeldPages *held;
	GhPageRef  *ref;

	gh_stage_make_held(stage);
	if (pages->elsewhere)
	{
		gh_stage_hold_run(stage, pages);
		return;
	}
	held = stage->held;
	ref = &held->refs[held->npages];
	if (pages->ntuples == 0)
		*ref = (GhPageRef) {.block = pages->block,.bitmap = GH_PAGE_ALL_LINES};
	else if (gh_ask_for_lines(pages, ref, held->asked + held->npages * GH_LINE_WORDS))
		ref->bitmap = held->npages * GH_LINE_WORDS;
	ref->page = gh_stage_aligned_page(stage, pages);
	held->buffers[held->npages++] = gh_pages_take_pin(pages);
	held->nlines += ref->lines;
	held->ntuples += pages->ntuples;
}

/* A page as a whole, line by line. */
static GhBackRow *
list_page(const GhHeldPages *held, uint32 number, GhBackRow *row)
{
	const GhPageRef *ref = &held->refs[number];

	for (uint32 line = 1; line <= ref->lines; line++)
		if (ref->bitmap == GH_PAGE_ALL_LINES ||
			(held->asked[ref->bitmap + (line - 1) / 64] >> (line - 1) % 64 & 1) != 0)
			*row++ = (GhBackRow) {.page = number,.line = line};
	return row;
}

/* The rows that were handed back, line by line, into held->back. */
static void
list_back(GhHeldPages *held, uint64 nlisted)
{
	GhBackRow  *row = held->back;

	for (uint64 i = 0; i < nlisted; i++)
		if (held->listed[i].line == 0)
			row = list_page(held, held->listed[i].page, row);
		else
			*row++ = held->listed[i];
	held->nback = row - held->back;
}

static void
run_held(GhStage *stage)
{
	GhHeldPages *held = stage->held;
	GhPipelineRequest *request = &held->request;

	if (held->npages == 0)
	{
		gh_stage_run_rows(stage);
		return;
	}
	memset(request, 0, sizeof(*request));
	request->kind = GH_INPUT_PAGES;
	request->npages = held->npages;
	request->pages = held->refs;
	request->bitmaps = held->asked;
	request->nbitmaps = held->npages * GH_LINE_WORDS;
	request->back = held->listed;
	request->back_room = GH_HELD_ROWS;
	gh_stage_run(stage, request);
	list_back(held, request->nback);
}

/*
 * Brings the pages that are held, or, without one, the run.  Which rows of them are handed back is in
 * held->back, by the pages' numbers, and held->request has the counts.
 */
void
gh_stage_run_held(GhStage *stage)
{
	GhHeldPages *held = stage->held;

	run_held(stage);
	/* where rows are added in order, all of a request behind one that is handed back go back with it */
	held->most = held->nback > 0 ? 1 : Min(held->most * 2, GH_HELD_MAX);
}

/* Brings the rows of them that were handed back once more. */
void
gh_stage_run_held_again(GhStage *stage)
{
	GhHeldPages *held = stage->held;

	if (held->npages == 0)
	{
		gh_stage_ask_again_of_run(held);
		run_held(stage);
		return;
	}
	memset(held->asked, 0, sizeof(uint64) * GH_LINE_WORDS * held->npages);
	for (uint32 p = 0; p < held->npages; p++)
	{
		held->refs[p].lines = 0;
		held->refs[p].bitmap = p * GH_LINE_WORDS;
	}
	for (uint32 i = 0; i < held->nback; i++)
	{
		const GhBackRow *row = &held->back[i];
		uint64	   *asked = held->asked + row->page * GH_LINE_WORDS;

		asked[(row->line - 1) / 64] |= UINT64CONST(1) << (row->line - 1) % 64;
		held->refs[row->page].lines = row->line;
	}
	run_held(stage);
}

/* The page of a row that was handed back, pinned: it is there up to the next call, or the release. */
Buffer
gh_stage_back_row(GhStage *stage, GhPages *pages, const GhBackRow *row, BlockNumber *block, OffsetNumber *line)
{
	const GhHeldPages *held = stage->held;

	if (held->npages == 0)
		return gh_stage_pin_row(stage, pages, row, block, line);
	*block = held->refs[row->page].block;
	*line = row->line;
	return held->buffers[row->page];
}

/* Gives up the pins of what was brought.  A run that was held behind pages is next. */
void
gh_stage_release(GhStage *stage)
{
	GhHeldPages *held = stage->held;

	if (held->npages == 0)
		held->run = 0;
	gh_stage_leave_row(held);
	for (uint32 p = 0; p < held->npages; p++)
		ReleaseBuffer(held->buffers[p]);
	held->npages = held->nlines = 0;
	held->ntuples = held->run > 0 ? held->run_rows.count : 0;
}
