/*
 * columns_make.c
 *		Columns of tables in shared memory: those of a stripe, out of its pages.
 *
 * The order of rule 4 (README, "Resident pages"): the snapshot is held; then the map's page was read, bits
 * and LSN together; then, under its lock, the heap page's LSN, and that all of its rows are visible; then its
 * bytes, beside the pin.  They are copied, and taken apart when nothing is pinned any more.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"

#include "engine/page/cpu_page.h"
#include "heap/layout.h"
#include "store/columns_use.h"

/* Blocks that a column may cost the others. */
#define GH_LOST_MAX (GH_STRIPE_BLOCKS / 8)

/* A page that was copied. */
typedef struct CopiedPage
{
	uint32		nlines;
	uint16		lines[MaxHeapTuplesPerPage];
} CopiedPage;

struct GhStripeMaker
{
	GhPages    *pages;
	char	   *bytes;			/* GH_STRIPE_BLOCKS pages */
	CopiedPage *copied;			/* likewise */
	uint8	   *state;			/* of rows: GhRowState */
	uint32		ncolumns;		/* that vectors has room for */
	GhVector	vectors[GH_STORED_COLUMNS_MAX];
	uint16	   *lines;			/* of rows */
};

/* Rows that a page adds, behind which vectors are written to. */
#define GH_ROWS_ROOM (GH_STRIPE_ROWS + GH_VECTOR_ROWS)

static GhStripeMaker *
create_maker(GhColumnsUse *use)
{
	MemoryContext saved = MemoryContextSwitchTo(use->context);
	GhStripeMaker *maker = palloc0(sizeof(GhStripeMaker));

	maker->pages = gh_named_create(use->context);
	maker->bytes = (char *) TYPEALIGN(GH_PAGE_ALIGNMENT, palloc(GH_STRIPE_BLOCKS * BLCKSZ + GH_PAGE_ALIGNMENT));
	maker->copied = palloc(sizeof(CopiedPage) * GH_STRIPE_BLOCKS);
	maker->state = palloc(GH_ROWS_ROOM);
	maker->lines = palloc(sizeof(uint16) * GH_ROWS_ROOM);
	MemoryContextSwitchTo(saved);
	return maker;
}

static void
make_vectors(GhColumnsUse *use, uint32 ncolumns)
{
	GhStripeMaker *maker = use->maker;
	MemoryContext saved = MemoryContextSwitchTo(use->context);

	for (; maker->ncolumns < ncolumns; maker->ncolumns++)
	{
		maker->vectors[maker->ncolumns].low = palloc(sizeof(uint64) * GH_ROWS_ROOM);
		maker->vectors[maker->ncolumns].high = palloc(sizeof(uint64) * GH_ROWS_ROOM);
		maker->vectors[maker->ncolumns].null = palloc(GH_ROWS_ROOM);
	}
	MemoryContextSwitchTo(saved);
}

/* ---------------------------------------------------------------- the pages */

/* The lines of the page that is pinned that lead to its visible tuples, which stay as long as it is. */
static void
list_lines(const GhPages *pages, CopiedPage *copied)
{
	Page		page = BufferGetPage(pages->buffer);

	copied->nlines = 0;
	for (int i = 0; i < pages->ntuples; i++)
	{
		OffsetNumber line = pages->all_visible ? FirstOffsetNumber + i : pages->lines[i];

		if (ItemIdIsNormal(PageGetItemId(page, line)))
			copied->lines[copied->nlines++] = line;
	}
}

/* Copies the pages of blocks that are all-visible by the map; which, by a bit each. */
static uint32
copy_pages(GhColumnsUse *use, uint32 number, GhStripe *stripe)
{
	GhStripeMaker *maker = use->maker;
	GhPages    *pages = maker->pages;
	BlockNumber first = gh_stripe_begin(number);
	uint32		nblocks = gh_stripe_blocks(use, number);
	uint32		copied = 0;

	gh_named_turn_to(pages, use->pages, first, nblocks);
	while (gh_pages_next(pages, (int) nblocks))
	{
		uint32		i = pages->block - first;

		if (!pages->visible_now || stripe->map_lsn[i] == InvalidXLogRecPtr)
			continue;
		list_lines(pages, &maker->copied[i]);
		memcpy(maker->bytes + (Size) i * BLCKSZ, BufferGetPage(pages->buffer), BLCKSZ);
		stripe->heap_lsn[i] = pages->lsn;
		copied |= UINT32_C(1) << i;
	}
	gh_pages_park(pages);
	return copied;
}

/* ---------------------------------------------------------------- the columns */

/* Columns of the use that the stripe lacks, as far as there is room. */
static void
add_lacking(const GhColumnsUse *use, GhStripe *stripe)
{
	for (uint32 c = 0; c < use->ncolumns; c++)
		if ((int) c != use->places && stripe->ncolumns < GH_STORED_COLUMNS_MAX &&
			gh_stripe_column(stripe, &use->columns[c]) == stripe->ncolumns)
			stripe->columns[stripe->ncolumns++] = use->columns[c];
}

/*
 * Columns of the use, and those that the stripe had, as far as there is room: but for those that cannot be
 * read, and attributes that others' programs read in another way, for a page is read once.
 */
static void
collect_columns(const GhColumnsUse *use, const GhStripe *before, GhStripe *stripe)
{
	stripe->ncolumns = 0;
	add_lacking(use, stripe);
	for (uint32 b = 0; before != NULL && b < before->ncolumns && stripe->ncolumns < GH_STORED_COLUMNS_MAX; b++)
	{
		bool		read = before->columns[b].attribute > use->natts ||
			gh_columns_is_unreadable(use, &before->columns[b]);

		for (uint32 s = 0; s < stripe->ncolumns; s++)
			read |= stripe->columns[s].attribute == before->columns[b].attribute;
		if (!read)
			stripe->columns[stripe->ncolumns++] = before->columns[b];
	}
}

/* Appends the rows of a page; false: some value cannot be read. */
static bool
append_page(GhStripeMaker *maker, const GhPageShape *shape, uint32 i, uint32 *nrows)
{
	const CopiedPage *copied = &maker->copied[i];
	GhVector	vectors[GH_STORED_COLUMNS_MAX];
	GhVectorBatch batch = {.ready = GH_VECTOR_ROWS,.vectors = vectors,.nvectors = shape->ncolumns};
	uint32		from = *nrows;

	for (uint32 c = 0; c < shape->ncolumns; c++)
		vectors[c] = (GhVector) {maker->vectors[c].low + from, maker->vectors[c].high + from,
			maker->vectors[c].null + from};
	batch.state = maker->state + from;
	if (gh_cpu_page_load(shape, (const uint8 *) maker->bytes + (Size) i * BLCKSZ, 0, copied->lines, copied->nlines,
						 &batch) != GH_OK)
		return false;
	for (uint32 r = 0; r < copied->nlines; r++)
		if (batch.state[r] != GH_ROW_LIVE)
			return false;
	memcpy(maker->lines + from, copied->lines, sizeof(uint16) * copied->nlines);
	*nrows += copied->nlines;
	return true;
}

/* Whether the lines of each block are 1, 2, 3 and so on. */
static bool
are_plain(const GhStripeMaker *maker, const GhStripe *stripe)
{
	for (uint32 i = 0; i < GH_STRIPE_BLOCKS; i++)
		for (uint32 row = stripe->first[i]; row < stripe->first[i + 1]; row++)
			if (maker->lines[row] != row - stripe->first[i] + FirstOffsetNumber)
				return false;
	return true;
}

/* Packs a column at the end of use->stripe, in which there is room. */
static void
add_packed(GhColumnsUse *use, GhStripe *head, uint32 c, const GhVector *vector)
{
	GhPackedColumn *packed = (GhPackedColumn *) ((char *) use->stripe + head->bytes);

	gh_pack_column(&head->columns[c], vector, head->first[GH_STRIPE_BLOCKS], packed);
	head->at[c] = (uint32) head->bytes;
	head->bytes = MAXALIGN(head->bytes + packed->bytes);
}

/* Puts the stripe together, behind its head, in use->stripe. */
static void
pack_stripe(GhColumnsUse *use, GhStripe *head)
{
	const GhStripeMaker *maker = use->maker;
	uint32		nrows = head->first[GH_STRIPE_BLOCKS];
	Size		most = MAXALIGN(sizeof(GhStripe)) + MAXALIGN(nrows * sizeof(uint16));
	char	   *to;

	for (uint32 c = 0; c < head->ncolumns; c++)
		most += MAXALIGN(gh_packed_bytes_max(&head->columns[c], &maker->vectors[c], nrows));
	gh_columns_reserve(use, most);
	to = (char *) use->stripe;
	head->bytes = MAXALIGN(sizeof(GhStripe));
	head->lines_at = 0;
	if (!are_plain(maker, head))
	{
		head->lines_at = (uint32) head->bytes;
		memcpy(to + head->bytes, maker->lines, nrows * sizeof(uint16));
		head->bytes = MAXALIGN(head->bytes + nrows * sizeof(uint16));
	}
	for (uint32 c = 0; c < head->ncolumns; c++)
		add_packed(use, head, c, &maker->vectors[c]);
	memcpy(to, head, sizeof(GhStripe));
}

/*
 * The rows of those blocks whose pages were copied, by these columns; which of them are there, by a bit each.
 */
static uint32
read_rows(GhColumnsUse *use, const GhPageShape *shape, uint32 copied, uint32 *first)
{
	uint32		there = 0;
	uint32		nrows = 0;

	make_vectors(use, shape->ncolumns);
	for (uint32 i = 0; i < GH_STRIPE_BLOCKS; i++)
	{
		first[i] = nrows;
		if ((copied >> i & 1) != 0 && append_page(use->maker, shape, i, &nrows))
			there |= UINT32_C(1) << i;
	}
	first[GH_STRIPE_BLOCKS] = nrows;
	return there;
}

static bool
init_shape(const GhColumnsUse *use, const GhStripe *head, uint32 from, GhPageShape *shape)
{
	GhError		error;

	return gh_page_shape_init(shape, BLCKSZ, use->natts, use->attributes, head->ncolumns - from, head->columns + from,
							  &error) == GH_OK;
}

/* Of how many of the blocks that were copied some value of the column cannot be read. */
static int
count_lost(GhColumnsUse *use, const GhColumn *column, uint32 copied)
{
	GhStripe	one = {.ncolumns = 1,.columns = {*column}};
	uint32		first[GH_STRIPE_BLOCKS + 1];
	GhPageShape shape;

	return init_shape(use, &one, 0, &shape) ? pg_popcount32(copied & ~read_rows(use, &shape, copied, first)) :
		GH_STRIPE_BLOCKS;
}

/*
 * Notes which of the columns cannot be read of more of the blocks that were copied than may be lost.  False:
 * none.
 */
static bool
note_unreadable(GhColumnsUse *use, const GhStripe *head, uint32 copied)
{
	bool		some = false;

	for (uint32 c = 0; c < head->ncolumns; c++)
	{
		if (count_lost(use, &head->columns[c], copied) <= GH_LOST_MAX)
			continue;
		gh_columns_note_unreadable(use, &head->columns[c]);
		some = true;
	}
	return some;
}

/*
 * Leaves out what the stripe did not have, and would cost the other columns blocks: no query has asked for
 * it.
 */
static void
leave_costly(GhColumnsUse *use, const GhStripe *before, GhStripe *head, uint32 copied)
{
	uint32		ncolumns = 0;

	for (uint32 c = 0; c < head->ncolumns; c++)
		if ((before != NULL && gh_stripe_column(before, &head->columns[c]) < before->ncolumns &&
			 !gh_columns_is_unreadable(use, &head->columns[c])) ||
			count_lost(use, &head->columns[c], copied) == 0)
			head->columns[ncolumns++] = head->columns[c];
	head->ncolumns = ncolumns;
}

/* Whether the pages that were copied are those that the stripe is of. */
static bool
are_same_pages(const GhStripe *before, const GhStripe *head, uint32 copied)
{
	if ((before->there & ~copied) != 0)
		return false;
	for (uint32 i = 0; i < GH_STRIPE_BLOCKS; i++)
		if ((before->there >> i & 1) != 0 &&
			(head->heap_lsn[i] == InvalidXLogRecPtr || head->heap_lsn[i] != before->heap_lsn[i]))
			return false;
	return true;
}

/*
 * Adds columns to a stripe all of whose blocks are fresh: those that it has are not read again.  False: not
 * all of these pages are what they were, or have these columns.
 */
static bool
add_columns(GhColumnsUse *use, uint32 number, const GhStripe *before, const GhStripe *pages, uint32 copied)
{
	GhStripe	head = *before;
	uint32		first[GH_STRIPE_BLOCKS + 1];
	uint32		nrows = before->first[GH_STRIPE_BLOCKS];
	GhPageShape shape;
	Size		most = before->bytes;

	add_lacking(use, &head);
	if (!are_same_pages(before, pages, copied) || head.ncolumns == before->ncolumns ||
		!init_shape(use, &head, before->ncolumns, &shape) ||
		read_rows(use, &shape, before->there, first) != before->there || memcmp(first, before->first, sizeof(first)) != 0)
		return false;
	for (uint32 c = before->ncolumns; c < head.ncolumns; c++)
		most += MAXALIGN(gh_packed_bytes_max(&head.columns[c], &use->maker->vectors[c - before->ncolumns], nrows));
	gh_columns_reserve(use, most);
	if (!gh_columns_copy_stripe(use, number, before))
		return false;
	for (uint32 c = before->ncolumns; c < head.ncolumns; c++)
		add_packed(use, &head, c, &use->maker->vectors[c - before->ncolumns]);
	memcpy(use->stripe, &head, sizeof(GhStripe));
	return true;
}

/*
 * Makes the columns of the stripe of that number in use->stripe.  before: as it was; of GH_MAKE_ALL it may be
 * NULL.  map_lsn: by block, of the map's page by which it is all-visible, or none.
 */
GhMade
gh_columns_make(GhColumnsUse *use, uint32 number, const GhStripe *before, GhToMake what, const XLogRecPtr *map_lsn)
{
	GhStripe	head = {0};
	uint32		copied;
	GhPageShape shape;

	if (use->maker == NULL)
		use->maker = create_maker(use);
	memcpy(head.map_lsn, map_lsn, sizeof(head.map_lsn));
	copied = copy_pages(use, number, &head);
	if (copied == 0)
		return GH_MADE_NOTHING;
	if (what == GH_MAKE_RENEWED && before->there != 0 && are_same_pages(before, &head, copied) &&
		pg_popcount32(copied & ~before->looked_at) < gh_gained_min(use))
		return GH_MADE_SAME;
	if (what == GH_MAKE_LACKING && add_columns(use, number, before, &head, copied))
		return GH_MADE_STRIPE;
	collect_columns(use, before, &head);
	if (!init_shape(use, &head, 0, &shape))
		return GH_MADE_NOTHING;
	head.looked_at = copied;
	head.there = read_rows(use, &shape, copied, head.first);
	if (use->fills && head.there != copied)
	{
		leave_costly(use, before, &head, copied);
		if (!init_shape(use, &head, 0, &shape))
			return GH_MADE_NOTHING;
		head.there = read_rows(use, &shape, copied, head.first);
	}
	else if (pg_popcount32(copied & ~head.there) > GH_LOST_MAX)
	{
		if (note_unreadable(use, &head, copied))
			return GH_MADE_NOTHING;
		/* no column alone costs too many blocks; but each was read by itself, in the place of the rows */
		head.there = read_rows(use, &shape, copied, head.first);
	}
	pack_stripe(use, &head);
	return GH_MADE_STRIPE;
}
