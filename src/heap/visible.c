/*
 * visible.c
 *		What is visible on a page, for those to whom lines suffice.
 *
 * Readers who look at tuples have the page prepared by whoever chose it, and get a list of the visible ones.
 * For one who sends the page to a device it is enough, and takes far less, to know that all tuples are
 * visible, or that their hints tell which ones are.  README says why both may be used beside the pin, without
 * the lock.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/visibilitymap.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

#include "compat.h"
#include "heap/pages.h"

/*
 * Whether the tuple's hints say that it is visible: its inserter had committed before anything that the
 * snapshot does not see, and nobody has done more to it since than lock it.  The others are PostgreSQL's
 * to judge.
 */
static inline bool
is_plainly_visible(HeapTupleHeader tuple, Snapshot snapshot)
{
	return HeapTupleHeaderXminCommitted(tuple) &&
		(tuple->t_infomask & (HEAP_XMAX_INVALID | HEAP_XMAX_LOCK_ONLY)) != 0 &&
		(HeapTupleHeaderXminFrozen(tuple) ||
		 TransactionIdPrecedes(HeapTupleHeaderGetRawXmin(tuple), snapshot->xmin));
}

/* The page's tuples that are visible; it is locked. */
static void
collect_tuples(GhPages *pages, Page page)
{
	OffsetNumber lines = PageGetMaxOffsetNumber(page);
	int			n = 0;

	for (OffsetNumber line = FirstOffsetNumber; line <= lines; line++)
	{
		ItemId		item = PageGetItemId(page, line);

		if (ItemIdIsNormal(item) &&
			(is_plainly_visible((HeapTupleHeader) PageGetItem(page, item), pages->snapshot) ||
			 gh_pages_is_visible(pages, pages->buffer, pages->block, line)))
			pages->lines[n++] = line;
	}
	pages->ntuples = n;
}

/* Of some of the tuples, the last one among them: those without hints are mostly there. */
static bool
hints_are_set(const GhPages *pages, Page page)
{
	OffsetNumber lines = PageGetMaxOffsetNumber(page);
	const OffsetNumber some[] = {lines, lines / 2, Min(lines, FirstOffsetNumber)};

	for (int i = 0; i < lengthof(some); i++)
	{
		OffsetNumber line = some[i];

		if (line != InvalidOffsetNumber && ItemIdIsNormal(PageGetItemId(page, line)) &&
			!is_plainly_visible((HeapTupleHeader) PageGetItem(page, PageGetItemId(page, line)),
								pages->snapshot))
			return false;
	}
	return true;
}

/*
 * Whether somebody else is to find what is visible by the tuples' hints, beside the pin; README says why
 * that is right.  The page is locked.
 */
static bool
leave_to_headers(GhPages *pages, Page page)
{
	return pages->headers_suffice && (!pages->headers_doubted || hints_are_set(pages, page));
}

/*
 * In recovery the visibility map tells which pages are all-visible to the snapshot: README.  Has the map's
 * page at hand, so that nothing is read under the heap page's lock.
 */
static void
pin_map(GhPages *pages)
{
	if (pages->snapshot->takenDuringRecovery && PageIsAllVisible(BufferGetPage(pages->buffer)) &&
		!visibilitymap_pin_ok(pages->block, pages->map))
		(void) visibilitymap_get_status(pages->relation, pages->block, &pages->map);
}

/* Whether the page's block is all-visible by the map now; the page is locked. */
static bool
map_says_visible(GhPages *pages)
{
	return visibilitymap_pin_ok(pages->block, pages->map) &&
		(visibilitymap_get_status(pages->relation, pages->block, &pages->map) & VISIBILITYMAP_ALL_VISIBLE) != 0;
}

/* Whether all of the page's tuples are visible; it is locked. */
static bool
all_are_visible(GhPages *pages, Page page)
{
	return PageIsAllVisible(page) && (!pages->snapshot->takenDuringRecovery || map_says_visible(pages));
}

/* The page that is pinned must not have more lines than whoever lists them has room for. */
void
gh_pages_check_lines(const GhPages *pages)
{
	uint32		lines = PageGetMaxOffsetNumber(BufferGetPage(pages->buffer));

	if (lines > MaxHeapTuplesPerPage)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s\" has %u line pointers, of %d at most", pages->block,
						RelationGetRelationName(pages->relation), lines, (int) MaxHeapTuplesPerPage)));
}

/*
 * Where lines suffice, does what PostgreSQL does when it prepares a page.  Whether all of its tuples
 * are visible, and will be as long as it is pinned, is told without a look at them: no line that
 * is free now can be used by a new one then.  False: the page is PostgreSQL's to prepare.
 */
bool
gh_pages_prepare_lines(GhPages *pages)
{
	Snapshot	snapshot = pages->snapshot;
	Page		page;

	pages->all_visible = pages->visible_now = pages->by_headers = false;
	if (!pages->lines_suffice || CheckForSerializableConflictOutNeeded(pages->relation, snapshot))
		return false;
	page = BufferGetPage(pages->buffer);
	gh_pages_check_lines(pages);
	gh_prune_page(pages->relation, pages->buffer, &pages->map, pages->read_only);
	pin_map(pages);
	LockBuffer(pages->buffer, BUFFER_LOCK_SHARE);
	gh_test_old_snapshot(snapshot, pages->relation, page);
	pages->visible_now = all_are_visible(pages, page);
	pages->all_visible = pages->visible_now && !PageHasFreeLinePointers(page);
	pages->by_headers = !pages->all_visible && leave_to_headers(pages, page);
	if (pages->visible_now && pages->tells_lsn)
		pages->lsn = BufferGetLSNAtomic(pages->buffer);
	pages->upper = ((PageHeader) page)->pd_upper;
	if (pages->all_visible || pages->by_headers)
		pages->ntuples = PageGetMaxOffsetNumber(page);
	else
	{
		gh_page_fetch(pages->buffer);
		collect_tuples(pages, page);
	}
	LockBuffer(pages->buffer, BUFFER_LOCK_UNLOCK);
	return true;
}

/* Whether a line leads to a tuple whose hints say that it is visible.  The page of the buffer is locked. */
bool
gh_pages_hints_tell(const GhPages *pages, Buffer buffer, OffsetNumber line)
{
	Page		page = BufferGetPage(buffer);

	return line <= PageGetMaxOffsetNumber(page) && ItemIdIsNormal(PageGetItemId(page, line)) &&
		is_plainly_visible((HeapTupleHeader) PageGetItem(page, PageGetItemId(page, line)),
						   pages->snapshot);
}

/* Whether a line leads to a tuple that is visible.  The page of the buffer, that block, is locked. */
bool
gh_pages_is_visible(const GhPages *pages, Buffer buffer, BlockNumber block, OffsetNumber line)
{
	Page		page = BufferGetPage(buffer);
	HeapTupleData tuple;
	ItemId		item;

	/* lines at the end that lead nowhere may have gone */
	if (line > PageGetMaxOffsetNumber(page))
		return false;
	item = PageGetItemId(page, line);
	if (!ItemIdIsNormal(item))
		return false;
	tuple.t_tableOid = RelationGetRelid(pages->relation);
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple.t_len = ItemIdGetLength(item);
	ItemPointerSet(&tuple.t_self, block, line);
	return HeapTupleSatisfiesVisibility(&tuple, pages->snapshot, buffer);
}
