/*
 * source.c
 *		A child that is a plain heap scan, read by the join itself.
 *
 * The child stays a node of the plan: it is initialised, rescanned, ended and shown by
 * EXPLAIN as any other, and its scan descriptor is what the join reads from.  Only
 * ExecProcNode is left out: the join takes the rows a page at a time that meet the
 * node's quals, of which a program over the page may tell most of the result, and tells the
 * node's instrumentation and the relation's statistics what a Seq Scan would have told them.
 * README, "Sources", has the duties.
 *
 * A source reads a page, and its rows are good until it is told to read on, to park or to
 * forget.  Between two calls of the join's node, no page is pinned.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "gpuhash.h"
#include "heap/layout.h"
#include "join/source.h"

/*
 * Of smaller tables the quals are evaluated row by row: they may be scanned again and again, with other
 * parameters.
 */
#define GH_PROGRAM_PAGES_MIN 16

/* ----------------------------------------------------------- set-up */

/* A reader of columns of the child; their values go to outputs, or, NULL, into its row. */
static void
init_reader(GhSource *source, GhTupleReader *reader, int ncolumns, const int *resnos,
			const int *outputs)
{
	TupleDesc	desc = RelationGetDescr(((ScanState *) source->child)->ss_currentRelation);
	int		   *attnos = palloc(sizeof(int) * Max(ncolumns, 1));
	int		   *places = palloc(sizeof(int) * Max(ncolumns, 1));

	for (int i = 0; i < ncolumns; i++)
	{
		attnos[i] = gh_relation_attno(source->child, resnos[i]);
		places[i] = outputs != NULL ? outputs[i] : resnos[i] - 1;
	}
	gh_reader_init(reader, desc, ncolumns, attnos, places);
	pfree(attnos);
	pfree(places);
}

/* What the keys read.  Of those that are expressions, all that the scan tuple has. */
static void
init_key_reader(GhJoinState *js, GhSource *source)
{
	GhKeySide  *keys = &js->keys[source->side];
	int		   *resnos = palloc(sizeof(int) * Max(js->nscan, keys->ncolumns));
	int			n = 0;

	if (keys->has_exprs)
	{
		for (int i = 0; i < js->nscan; i++)
			if (js->scan_sides[i] == source->side)
				resnos[n++] = js->scan_attnos[i];
	}
	else
		for (int i = 0; i < keys->ncolumns; i++)
			resnos[n++] = keys->columns[i].attno;
	init_reader(source, &source->key_columns, n, resnos, NULL);
	pfree(resnos);

	source->key_load = GH_KEY_LOAD_ANY;
	if (keys->ncolumns == 1 && keys->exact && source->key_columns.nfixed == 1 &&
		!keys->has_exprs)
	{
		source->key_bits = keys->columns[0].bits;
		if (keys->columns[0].encoding == GH_KEY_INT4)
			source->key_load = GH_KEY_LOAD_INT4;
		else if (keys->columns[0].encoding == GH_KEY_INT8)
			source->key_load = GH_KEY_LOAD_INT8;
	}
}

/* Makes js->source[side] where the join may read the child by itself. */
void
gh_source_init(GhJoinState *js, int side, EState *estate, int eflags)
{
	PlanState  *child = gh_child(js, side);
	const GhColumns *columns = &js->columns[side];
	GhSource   *source;
	int		   *places;

	if (!gh_may_read_pages(child, estate, eflags))
		return;
	source = palloc0(sizeof(GhSource));
	source->child = child;
	source->side = side;
	gh_pages_init(&source->pages, estate->es_query_cxt);
	gh_page_conditions_init(&source->conditions, (ScanState *) child, &source->pages, false);
	source->slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(child), &TTSOpsVirtual);
	/* valid from now on: columns are put in place one by one */
	ExecStoreAllNullTuple(source->slot);

	init_key_reader(js, source);
	init_reader(source, &source->slot_columns, columns->ncolumns, columns->attnos, NULL);
	places = palloc(sizeof(int) * Max(columns->ncolumns, 1));
	for (int i = 0; i < columns->ncolumns; i++)
		places[i] = i;
	init_reader(source, &source->kept_columns, columns->ncolumns, columns->attnos, places);
	pfree(places);
	js->source[side] = source;
}

/* ------------------------------------------------------ rows of a page */

/* The visible tuple of the page that is next. */
static inline HeapTupleHeader
next_tuple(const GhSource *source, uint16 *size)
{
	const GhPages *pages = &source->pages;
	Page		page = BufferGetPage(pages->buffer);
	ItemId		lp = PageGetItemId(page, pages->lines[source->conditions.tuple]);

	*size = ItemIdGetLength(lp);
	return (HeapTupleHeader) PageGetItem(page, lp);
}

/* Goes on to the page's next tuple that the quals accept; false when it has no more. */
static inline bool
find_row(GhSource *source)
{
	if (source->child->qual != NULL && !source->passed)
		source->passed = gh_page_conditions_next(&source->conditions);
	else
		source->passed = source->conditions.tuple < source->pages.ntuples;
	return source->passed;
}

/* The tuple's key; false when it has none. */
static inline bool
tuple_key(GhJoinState *js, GhSource *source, HeapTupleHeader tuple, uint64 *key)
{
	const GhTupleReader *reader = &source->key_columns;

	if (source->key_load != GH_KEY_LOAD_ANY && gh_tuple_has_prefix(tuple, reader->prefix))
	{
		const char *place = (const char *) tuple + tuple->t_hoff + reader->columns[0].offset;
		uint64		code = source->key_load == GH_KEY_LOAD_INT8 ?
			(uint64) *(const int64 *) place : (uint64) (int64) *(const int32 *) place;

		/* the same as of a row that comes another way */
		*key = gh_code_bits(code, source->key_bits);
		return true;
	}
	/* one key may take long to hash, and there may be hundreds */
	CHECK_FOR_INTERRUPTS();
	gh_reader_load(reader, tuple, source->slot->tts_values, source->slot->tts_isnull);
	return gh_row_key(js, source->side, source->slot, key);
}

/* Tells the relation's statistics of tuples that were looked at, up to the next one. */
static void
count_tuples(GhSource *source, int upto)
{
	pgstat_count_index_tuples(source->pages.relation, upto - source->counted);
	source->counted = upto;
}

/* The slot that quals read has a pin of its own on the page. */
static inline void
clear_scan_slot(GhSource *source)
{
	if (source->child->qual != NULL)
		ExecClearTuple(((ScanState *) source->child)->ss_ScanTupleSlot);
}

/* Fills source->page with the rows of the scan's page, from the next one on. */
static void
take_rows(GhJoinState *js, GhSource *source)
{
	GhPage	   *rows = &source->page;
	int			n = 0;

	for (; find_row(source); source->conditions.tuple++, source->passed = false)
	{
		HeapTupleHeader tuple = next_tuple(source, &rows->sizes[n]);

		rows->tuples[n] = tuple;
		rows->keys[n] = 0;
		rows->has_key[n] = tuple_key(js, source, tuple, &rows->keys[n]);
		n++;
	}
	rows->nrows = n;
	source->rows_peak = Max(source->rows_peak, n);
	count_tuples(source, source->conditions.tuple);
	clear_scan_slot(source);
}

/*
 * Pages to ask for, to get about so many rows and no more.  After some without a row, as
 * many more are thought to have none.
 */
static int
pages_wanted(const GhSource *source, int rows)
{
	int			pages = source->rows_peak == 0 ? 1 : rows / source->rows_peak;

	return Max(1, Min(Max(pages, source->blank), GH_PAGES_AHEAD_MAX));
}

/*
 * Reads on to the next page that has a row for the join; false at the end of the scan.  by_columns: pages
 * without one may be passed over; else it is left to whoever reads on from there.
 */
static bool
find_page(GhSource *source, int rows_wanted, bool by_columns)
{
	bool		by_program = gh_layout_is_known();

	gh_pages_begin(&source->pages, source->child);
	for (source->blank = 0;; source->blank++)
	{
		if (!gh_page_conditions_read(&source->conditions, pages_wanted(source, rows_wanted), by_columns))
			return false;
		source->counted = 0;
		source->passed = false;
		if (source->child->qual == NULL)
			source->conditions.tuple = 0;
		else
			gh_page_conditions_pick(&source->conditions, by_program && source->pages.nblocks >= GH_PROGRAM_PAGES_MIN);
		if (find_row(source))
			return true;
		count_tuples(source, source->conditions.tuple);
		clear_scan_slot(source);
	}
}

/* ------------------------------------------------- what the join calls */

/*
 * The next page that has rows, or NULL at the end.  The caller can do with so many rows
 * before the node returns; a page has up to MaxHeapTuplesPerPage.
 */
GhPage *
gh_source_page(GhJoinState *js, GhSource *source, int rows_wanted)
{
	bool		peeked = source->peeked;
	bool		found;

	gh_child_start(source->child);
	found = peeked || find_page(source, rows_wanted, true);
	source->peeked = false;
	if (found)
		take_rows(js, source);
	gh_child_stop(source->child, found ? source->page.nrows - peeked : 0);
	source->row = 0;
	return found ? &source->page : NULL;
}

/*
 * Whether there is a row.  It is not looked at yet but for the scan's quals, and those
 * that follow not at all; its page is the next one, also when it is asked again.
 */
bool
gh_source_peek(GhSource *source)
{
	if (source->peeked)
		return true;
	gh_child_start(source->child);
	source->peeked = find_page(source, 1, false);
	if (source->peeked)
		count_tuples(source, source->conditions.tuple + 1);
	gh_child_stop(source->child, source->peeked);
	return source->peeked;
}

/*
 * Leaves the page that was peeked at to the caller, who reads on from there: the first of its
 * visible tuples that the quals accepted.
 */
int
gh_source_leave_page(GhSource *source)
{
	source->peeked = false;
	count_tuples(source, source->pages.ntuples);
	clear_scan_slot(source);
	return source->conditions.tuple;
}

/* The tuple as a row of the child, with what the join keeps of it. */
TupleTableSlot *
gh_source_slot(GhSource *source, HeapTupleHeader tuple)
{
	gh_reader_load(&source->slot_columns, tuple, source->slot->tts_values,
				   source->slot->tts_isnull);
	return source->slot;
}

/*
 * Row by row, for a side that is read to its end in one go: the next row and its key,
 * or NULL.
 */
TupleTableSlot *
gh_source_row(GhJoinState *js, GhSource *source, uint64 *key, bool *has_key)
{
	GhPage	   *page = &source->page;
	int			row;

	if (source->row >= page->nrows && gh_source_page(js, source, INT_MAX) == NULL)
		return NULL;
	row = source->row++;
	*key = page->keys[row];
	*has_key = page->has_key[row];
	return gh_source_slot(source, page->tuples[row]);
}

/* Before the node returns: no page is to stay pinned. */
void
gh_source_park(GhSource *source)
{
	clear_scan_slot(source);
	gh_pages_park(&source->pages);
	source->page.nrows = 0;
}

/* Before the child is rescanned. */
void
gh_source_reset(GhSource *source)
{
	if (source->child->chgParam != NULL)
		gh_page_conditions_forget(&source->conditions);
	gh_page_conditions_leave(&source->conditions);
	source->peeked = false;
	source->row = 0;
	gh_source_park(source);
}

/* Before the child ends. */
void
gh_source_end(GhSource *source)
{
	gh_pages_end(&source->pages);
}
