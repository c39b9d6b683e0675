/*
 * leaves.c
 *		Reads the leaf pages of an index, from the first one by their links to the right, as nbtree writes
 *		them: their entries, or the pages as they are.
 *
 * Each page is copied under its share lock, or pinned for who can tell that it has changed since, and looked
 * at afterwards: on a leaf page, entries move under a pin.  A page that is split meanwhile has its entries on itself and pages to its right, which come later;
 * the link that is followed is that of the copy.  Pages that are half-dead or deleted have no entries, and
 * lead to the right.
 *
 * What is on disk is not trusted: whatever is not within its bounds ends the reading, and it is nbtree that
 * tells the user, when it meets it.  An entry's columns are found here, as index_getattr looks at no bounds.
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/nbtree.h"
#include "access/tupmacs.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "compat.h"
#include "index/leaves.h"
#include "service/faults.h"
#include "service/progress.h"

/* More levels than any index has. */
#define GH_LEVELS_MAX 32

struct GhLeafReader
{
	Relation	index;
	TupleDesc	desc;
	GhLeafEntry entry;
	GhLeafRoom	room;			/* NULL: all pages have one place */
	GhLeafPage	leaf;
	GhLeafPinned pinned;
	void	   *arg;
	BlockNumber nblocks;		/* of the index, as was seen last */
	BufferAccessStrategy strategy;	/* a ring, where it is large */
	char	   *page;			/* a copy */
	Datum	   *values;
	bool	   *nulls;
};

typedef GhLeafReader Reader;

/* ---------------------------------------------------------------------- pages */

/* Pins a page, which is locked; InvalidBuffer: there is none. */
static Buffer
lock_page(Reader *reader, BlockNumber block)
{
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	if (block >= reader->nblocks)
		reader->nblocks = RelationGetNumberOfBlocks(reader->index);
	if (block >= reader->nblocks)
		return InvalidBuffer;
	buffer = ReadBufferExtended(reader->index, MAIN_FORKNUM, block, RBM_NORMAL, reader->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	return buffer;
}

static bool
has_head(Page page)
{
	PageHeader	head = (PageHeader) page;

	return !PageIsNew(page) && head->pd_special == BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData)) &&
		head->pd_lower >= SizeOfPageHeaderData && head->pd_lower <= head->pd_upper &&
		head->pd_upper <= head->pd_special;
}

/* Copies a page; false: there is none, or its head is broken. */
static bool
read_page(Reader *reader, BlockNumber block)
{
	Buffer		buffer = lock_page(reader, block);

	if (!BufferIsValid(buffer))
		return false;
	memcpy(reader->page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	return has_head(reader->page);
}

static BTPageOpaque
opaque_of(const Reader *reader)
{
	return (BTPageOpaque) PageGetSpecialPointer(reader->page);
}

/* An item of the page, and its bytes; NULL: it is not within the page, or no item. */
static IndexTuple
item_at(const Reader *reader, OffsetNumber at, Size *bytes)
{
	PageHeader	head = (PageHeader) reader->page;
	ItemId		item;
	IndexTuple	tuple;

	if (at > PageGetMaxOffsetNumber(reader->page))
		return NULL;
	item = PageGetItemId(reader->page, at);
	if (!ItemIdHasStorage(item) || ItemIdGetOffset(item) < head->pd_upper ||
		ItemIdGetOffset(item) != MAXALIGN(ItemIdGetOffset(item)) ||
		ItemIdGetOffset(item) + ItemIdGetLength(item) > head->pd_special ||
		ItemIdGetLength(item) < sizeof(IndexTupleData))
		return NULL;
	tuple = (IndexTuple) PageGetItem(reader->page, item);
	*bytes = IndexTupleSize(tuple);
	return *bytes >= sizeof(IndexTupleData) && *bytes <= ItemIdGetLength(item) ? tuple : NULL;
}

/* The first leaf page, or one that was it; P_NONE: there is none.  False: something is broken. */
static bool
find_first(Reader *reader, BlockNumber *first)
{
	BTMetaPageData *meta;
	BlockNumber block;
	BlockNumber steps = 0;

	if (!read_page(reader, BTREE_METAPAGE))
		return false;
	meta = BTPageGetMeta(reader->page);
	if (meta->btm_magic != BTREE_MAGIC || meta->btm_version < BTREE_MIN_VERSION || meta->btm_version > BTREE_VERSION)
		return false;
	for (block = meta->btm_root; block != P_NONE; steps++)
	{
		BTPageOpaque opaque = opaque_of(reader);
		IndexTuple	tuple;
		Size		bytes;

		if (block == BTREE_METAPAGE || steps > GH_LEVELS_MAX + reader->nblocks || !read_page(reader, block) ||
			P_ISMETA(opaque))
			return false;
		if (P_ISLEAF(opaque))
			break;
		if (P_IGNORE(opaque))
		{
			block = opaque->btpo_next;
			continue;
		}
		tuple = item_at(reader, P_FIRSTDATAKEY(opaque), &bytes);
		if (tuple == NULL)
			return false;
		block = BTreeTupleGetDownLink(tuple);
	}
	*first = block;
	return true;
}

/* -------------------------------------------------------------------- entries */

/* The value of a varlena at that place; NULL: it passes the end, or lies elsewhere. */
static char *
check_varlena(char *at, const char *end)
{
	Size		size;

	if (at >= end || VARATT_IS_EXTERNAL(at))
		return NULL;
	if (!VARATT_IS_1B(at) && at + VARHDRSZ > end)
		return NULL;
	size = VARSIZE_ANY(at);
	if (size < (VARATT_IS_1B(at) ? (Size) VARHDRSZ_SHORT : (Size) VARHDRSZ) || size > (Size) (end - at) ||
		(VARATT_IS_4B_C(at) && size < VARHDRSZ_COMPRESSED))
		return NULL;
	return at + size;
}

/* The columns of an entry, whose key and columns end there; false: they do not. */
static bool
find_columns(Reader *reader, IndexTuple tuple, Size bytes)
{
	char	   *start = (char *) tuple + IndexInfoFindDataOffset(tuple->t_info);
	const char *end = (char *) tuple + bytes;
	uint8	   *bits = (uint8 *) ((char *) tuple + sizeof(IndexTupleData));
	Size		offset = 0;

	if (start > end)
		return false;
	for (int i = 0; i < reader->desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(reader->desc, i);
		char	   *at;
		char	   *next;

		reader->nulls[i] = IndexTupleHasNulls(tuple) && att_isnull(i, bits);
		if (reader->nulls[i])
			continue;
		if (attribute->attlen == -1)
		{
			/* a byte that is not 0 begins a short value, which is not aligned */
			if (start + offset >= end)
				return false;
			offset = att_align_pointer(offset, attribute->attalign, -1, start + offset);
		}
		else
			offset = att_align_nominal(offset, attribute->attalign);
		if (offset > (Size) (end - start))
			return false;
		at = start + offset;
		if (attribute->attlen == -1)
			next = check_varlena(at, end);
		else if (attribute->attlen > 0 && attribute->attlen <= end - at)
			next = at + attribute->attlen;
		else
			return false;
		if (next == NULL)
			return false;
		reader->values[i] = fetchatt(attribute, at);
		offset = (Size) (next - start);
	}
	return true;
}

/* An entry, or several rows of the same key. */
static bool
read_entry(Reader *reader, IndexTuple tuple, Size bytes)
{
	ItemPointer tids = &tuple->t_tid;
	Size		offset;
	int			count = 1;

	if (BTreeTupleIsPivot(tuple))
		return false;
	if (BTreeTupleIsPosting(tuple))
	{
		count = BTreeTupleGetNPosting(tuple);
		offset = BTreeTupleGetPostingOffset(tuple);
		if (count < 1 || offset < sizeof(IndexTupleData) || offset > bytes ||
			offset + count * sizeof(ItemPointerData) > bytes)
			return false;
		tids = (ItemPointer) ((char *) tuple + offset);
		bytes = offset;
	}
	if (!find_columns(reader, tuple, bytes))
		return false;
	for (int i = 0; i < count; i++)
		if (!reader->entry(reader->arg, ItemPointerGetBlockNumberNoCheck(&tids[i]), reader->values, reader->nulls))
			return false;
	return true;
}

/* All entries of the page that was copied. */
static bool
read_entries(Reader *reader)
{
	OffsetNumber last = PageGetMaxOffsetNumber(reader->page);

	for (OffsetNumber at = P_FIRSTDATAKEY(opaque_of(reader)); at <= last; at++)
	{
		Size		bytes;
		IndexTuple	tuple = item_at(reader, at, &bytes);

		if (tuple == NULL)
			return false;
		/* of rows that nobody sees any more */
		if (!ItemIdIsDead(PageGetItemId(reader->page, at)) && !read_entry(reader, tuple, bytes))
			return false;
	}
	return true;
}

/* --------------------------------------------------------------------- the whole */

/* Where the next page goes; false: it is given up. */
static bool
make_room(Reader *reader)
{
	if (reader->room != NULL)
		reader->page = reader->room(reader->arg);
	return reader->page != NULL;
}

/* Whether it can be among the leaf pages, which half-dead and deleted ones are. */
static bool
is_among_leaves(BTPageOpaque opaque)
{
	return !P_ISMETA(opaque) && (P_IGNORE(opaque) || P_ISLEAF(opaque));
}

/* A page that is copied, and the next one; false: nothing is read any more. */
static bool
copy_leaf(Reader *reader, BlockNumber *block)
{
	BTPageOpaque opaque;

	if (!make_room(reader) || !read_page(reader, *block) || !is_among_leaves(opaque = opaque_of(reader)))
		return false;
	*block = opaque->btpo_next;
	/* it may be somebody else's from here on */
	return P_IGNORE(opaque) ||
		(reader->leaf != NULL ? reader->leaf(reader->arg, reader->page) : read_entries(reader));
}

/* Likewise, of one that is pinned. */
static bool
pin_leaf(Reader *reader, BlockNumber *block)
{
	Buffer		buffer = lock_page(reader, *block);
	BTPageOpaqueData opaque;
	XLogRecPtr	lsn;
	uint32		lines;
	Page		page;
	bool		sound;

	if (!BufferIsValid(buffer))
		return false;
	page = BufferGetPage(buffer);
	sound = has_head(page);
	if (sound)
		opaque = *(BTPageOpaque) PageGetSpecialPointer(page);
	lines = PageGetMaxOffsetNumber(page);
	lsn = PageGetLSN(page);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (!sound || !is_among_leaves(&opaque) || P_IGNORE(&opaque))
		ReleaseBuffer(buffer);
	if (!sound || !is_among_leaves(&opaque))
		return false;
	*block = opaque.btpo_next;
	return P_IGNORE(&opaque) || reader->pinned(reader->arg, buffer, lines, lsn);
}

/* Goes through all leaf pages. */
static bool
read_leaves(Reader *reader)
{
	BlockNumber npages = 0;
	BlockNumber block;

	reader->nblocks = RelationGetNumberOfBlocks(reader->index);
	/* as a Seq Scan of so many pages: they are not to take the place of others */
	if (reader->nblocks > (BlockNumber) NBuffers / 4)
		reader->strategy = GetAccessStrategy(BAS_BULKREAD);
	gh_progress_phase(GH_PROGRESS_READS, reader->nblocks);
	if (!make_room(reader) || !find_first(reader, &block))
		return false;
	while (block != P_NONE)
	{
		/* a circle has more pages than the index */
		if (npages++ > reader->nblocks)
			return false;
		if (!(reader->pinned != NULL ? pin_leaf(reader, &block) : copy_leaf(reader, &block)))
			return false;
		(void) gh_fault_pass(GH_FAULT_POINT_INDEX_LEAF);
		gh_progress_done(npages);
	}
	return true;
}

bool
gh_leaves_copy(Relation index, GhLeafRoom room, GhLeafPage page, void *arg)
{
	Reader		reader = {.index = index,.room = room,.leaf = page,.arg = arg};

	return read_leaves(&reader);
}

bool
gh_leaves_pin(Relation index, GhLeafPinned page, void *arg)
{
	Reader		reader = {.index = index,.pinned = page,.arg = arg};

	reader.page = palloc(BLCKSZ);
	return read_leaves(&reader);
}

bool
gh_leaves_read(Relation index, GhLeafEntry entry, void *arg)
{
	GhLeafReader *reader = gh_leaf_reader(index, entry, arg);
	char	   *page = palloc(BLCKSZ);
	bool		all;

	reader->page = page;
	all = read_leaves(reader);
	pfree(page);
	pfree(reader->values);
	pfree(reader->nulls);
	pfree(reader);
	return all;
}

/* ---------------------------------------------------------------------- single lines */

GhLeafReader *
gh_leaf_reader(Relation index, GhLeafEntry entry, void *arg)
{
	GhLeafReader *reader = palloc0(sizeof(GhLeafReader));

	reader->index = index;
	reader->desc = RelationGetDescr(index);
	reader->entry = entry;
	reader->arg = arg;
	reader->values = palloc0(sizeof(Datum) * reader->desc->natts);
	reader->nulls = palloc0(sizeof(bool) * reader->desc->natts);
	return reader;
}

bool
gh_leaf_read_line(GhLeafReader *reader, const char *page, OffsetNumber line)
{
	IndexTuple	tuple;
	Size		bytes;

	reader->page = (char *) page;
	tuple = item_at(reader, line, &bytes);
	return tuple != NULL && read_entry(reader, tuple, bytes);
}
