/*
 * columns.c
 *		Columns of tables in shared memory: a scan's use of them.
 *
 * A stripe is 32 blocks.  What is known of one lies in the copy's area, under the copy's lock: a query copies
 * the columns that it needs out of it, while it holds that lock shared, and so nobody waits for a query.
 * Which blocks of it are what they were is found as for pages on a device: README, "Resident pages", rules 1
 * to 7, and "Columns of tables".
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "heap/hints.h"
#include "service/faults.h"
#include "service/progress.h"
#include "store/columns_use.h"

/*
 * Of a scan's time, what making stripes takes at most: to make them takes some times as long as to read their
 * pages.
 */
#define GH_MAKING_SHARE GH_WITH_FAULT_POINTS(1e9, 0.4)

/* Room for a stripe of so many bytes. */
void
gh_columns_reserve(GhColumnsUse *use, Size bytes)
{
	if (bytes <= use->room)
		return;
	if (use->stripe != NULL)
		pfree(use->stripe);
	use->stripe = NULL;
	use->room = bytes + bytes / 4;
	use->stripe = MemoryContextAllocHuge(use->context, use->room);
}

/* ------------------------------------------------------------------ freshness */

/* The map's page of a block: once it was read it is right for this scan, as later ones would be. */
static const GhMapPage *
map_of(GhColumnsUse *use, BlockNumber block)
{
	uint32		number = gh_map_page_of(block);

	if (number != use->map_number)
	{
		gh_map_read(use->pages->relation, number, &use->map);
		use->map_number = number;
	}
	return &use->map;
}

/* Blocks of a stripe that are all-visible, and what is known of them. */
typedef struct Judged
{
	uint32		visible;
	uint32		fresh;			/* rows that are there are the relation's */
	uint32		hopeless;		/* they could not be taken out, and are what they were then */
	uint32		renewed;		/* fresh by the page's LSN, while the map's has moved */
	XLogRecPtr	map_lsn[GH_STRIPE_BLOCKS];	/* of the visible ones, of the map's page that says so; of others, none */
} Judged;

/* One that was looked at, and is all-visible.  Rules 2 and 3. */
static void
judge_block(const GhColumnsUse *use, const GhStripe *stripe, uint32 i, BlockNumber block, Judged *judged)
{
	uint32		bit = UINT32_C(1) << i;
	XLogRecPtr	lsn;

	if (stripe->map_lsn[i] != judged->map_lsn[i] && gh_fault_pass(GH_FAULT_POINT_RESIDENT_MAP) == GH_FAULT_NONE)
	{
		if (stripe->heap_lsn[i] == InvalidXLogRecPtr || !gh_hint_lsn(use->pages->relation, block, &lsn) ||
			(lsn != stripe->heap_lsn[i] && gh_fault_pass(GH_FAULT_POINT_RESIDENT_HEAP) == GH_FAULT_NONE))
			return;
		judged->renewed |= bit;
	}
	if ((stripe->there & bit) != 0)
		judged->fresh |= bit;
	else
		judged->hopeless |= bit;
}

/* stripe: NULL: there is none. */
static void
judge(GhColumnsUse *use, uint32 number, const GhStripe *stripe, Judged *judged)
{
	BlockNumber first = gh_stripe_begin(number);

	memset(judged, 0, sizeof(*judged));
	for (uint32 i = 0; i < gh_stripe_blocks(use, number); i++)
	{
		const GhMapPage *map = map_of(use, first + i);

		if (map->lsn == InvalidXLogRecPtr || !gh_map_is_visible(map, first + i))
			continue;
		judged->visible |= UINT32_C(1) << i;
		judged->map_lsn[i] = map->lsn;
		if (stripe != NULL && (stripe->looked_at >> i & 1) != 0)
			judge_block(use, stripe, i, first + i, judged);
	}
}

/* -------------------------------------------------------------------- look-up */

/* The stripe of that number, under the copy's lock; NULL: there is none. */
static GhStripe *
find_stripe(const GhColumnsUse *use, uint32 number)
{
	const GhStoredColumns *root = use->hold.columns;
	const dsa_pointer *stripes;

	if (number >= root->nstripes)
		return NULL;
	stripes = dsa_get_address(use->hold.area, root->stripes);
	return DsaPointerIsValid(stripes[number]) ? dsa_get_address(use->hold.area, stripes[number]) : NULL;
}

/* The same, if it is still the one with that head. */
static GhStripe *
find_same_stripe(const GhColumnsUse *use, uint32 number, const GhStripe *head)
{
	GhStripe   *stripe = find_stripe(use, number);

	return stripe != NULL && stripe->number == head->number ? stripe : NULL;
}

/* Where the stripe has the columns of the use; false: it lacks some. */
static bool
map_columns(const GhColumnsUse *use, const GhStripe *stripe, uint32 *at)
{
	for (uint32 c = 0; c < use->ncolumns; c++)
	{
		uint32		s = gh_stripe_column(stripe, &use->columns[c]);

		if ((int) c == use->places)
			continue;
		if (s == stripe->ncolumns)
			return false;
		at[c] = stripe->at[s];
	}
	return true;
}

static Size
packed_bytes(const GhStripe *stripe, uint32 at)
{
	return ((const GhPackedColumn *) ((const char *) stripe + at))->bytes;
}

/* Copies all of the stripe, for which there is room, if it is still that one. */
bool
gh_columns_copy_stripe(GhColumnsUse *use, uint32 number, const GhStripe *head)
{
	GhStoredColumns *root = use->hold.columns;
	const GhStripe *stripe;

	LWLockAcquire(&root->lock, LW_SHARED);
	stripe = find_same_stripe(use, number, head);
	if (stripe != NULL)
		memcpy(use->stripe, stripe, head->bytes);
	LWLockRelease(&root->lock);
	return stripe != NULL;
}

/* Copies a part of a stripe to the private one's end; where it is there. */
static uint32
copy_part(GhStripe *to, const GhStripe *from, uint32 at, Size bytes)
{
	uint32		end = (uint32) to->bytes;

	memcpy((char *) to + end, (const char *) from + at, bytes);
	to->bytes = MAXALIGN(end + bytes);
	return end;
}

/* Copies the columns of the use out of the stripe, if it is still that one. */
static bool
copy_columns(GhColumnsUse *use, uint32 number, const GhStripe *head)
{
	GhStoredColumns *root = use->hold.columns;
	uint32		at[GH_STORED_COLUMNS_MAX];
	const GhStripe *stripe;
	GhStripe   *to;
	uint32		nrows = head->first[GH_STRIPE_BLOCKS];

	/* what does not fit is no more than all of it */
	gh_columns_reserve(use, head->bytes + MAXALIGN(sizeof(GhStripe)));
	to = use->stripe;
	LWLockAcquire(&root->lock, LW_SHARED);
	stripe = find_same_stripe(use, number, head);
	if (stripe == NULL || !map_columns(use, stripe, at))
	{
		LWLockRelease(&root->lock);
		return false;
	}
	*to = *head;
	to->bytes = MAXALIGN(sizeof(GhStripe));
	to->ncolumns = 0;
	if (head->lines_at != 0)
		to->lines_at = copy_part(to, stripe, head->lines_at, nrows * sizeof(uint16));
	for (uint32 c = 0; c < use->ncolumns; c++)
	{
		if ((int) c == use->places)
			continue;
		to->columns[to->ncolumns] = use->columns[c];
		to->at[to->ncolumns++] = copy_part(to, stripe, at[c], packed_bytes(stripe, at[c]));
	}
	LWLockRelease(&root->lock);
	return true;
}

/* The number of a row's line, and its block: of those that were found. */
OffsetNumber
gh_columns_line(const GhColumnsUse *use, uint32 row, BlockNumber *block)
{
	const GhStripe *stripe = use->stripe;
	uint32		i = 0;

	while (row >= stripe->first[i + 1])
		i++;
	*block = gh_stripe_begin(use->number) + i;
	if (stripe->lines_at == 0)
		return (OffsetNumber) (row - stripe->first[i] + FirstOffsetNumber);
	return ((const uint16 *) ((const char *) stripe + stripe->lines_at))[row];
}

/* Where the rows are, as a column. */
static const GhPackedColumn *
make_places(GhColumnsUse *use)
{
	const GhStripe *stripe = use->stripe;
	uint32		nrows = stripe->first[GH_STRIPE_BLOCKS];
	GhPackedColumn *column = use->place_column;
	uint64	   *values;

	if (column == NULL)
		column = use->place_column = MemoryContextAlloc(use->context, sizeof(GhPackedColumn) +
														 sizeof(uint64) * GH_STRIPE_ROWS);
	values = (uint64 *) (column + 1);
	*column = (GhPackedColumn)
	{
		.bytes = sizeof(GhPackedColumn) + sizeof(uint64) * nrows,.nrows = nrows,.kind = GH_PACKED_NUMBERS,
			.width = sizeof(uint64),.values_at = sizeof(GhPackedColumn)
	};
	for (uint32 row = 0; row < nrows; row++)
	{
		BlockNumber block;
		OffsetNumber line = gh_columns_line(use, row, &block);

		values[row] = gh_tid_value(block, line);
	}
	return column;
}

/* The columns of the use in its copy of a stripe. */
static void
point_to_columns(GhColumnsUse *use)
{
	uint32		at[GH_STORED_COLUMNS_MAX] = {0};

	if (!map_columns(use, use->stripe, at))
		elog(ERROR, "a stripe lacks columns that it was made of");
	for (uint32 c = 0; c < use->ncolumns; c++)
		use->packed[c] = (int) c == use->places ? make_places(use) :
			(const GhPackedColumn *) ((const char *) use->stripe + at[c]);
}

/* The blocks are as of the pages of the map that this use has read. */
static void
renew(GhColumnsUse *use, uint32 number, const GhStripe *head, const Judged *judged)
{
	GhStoredColumns *root = use->hold.columns;
	GhStripe   *stripe;

	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	stripe = find_same_stripe(use, number, head);
	for (uint32 i = 0; stripe != NULL && i < GH_STRIPE_BLOCKS; i++)
		if ((judged->renewed >> i & 1) != 0)
			stripe->map_lsn[i] = Max(stripe->map_lsn[i], judged->map_lsn[i]);
	LWLockRelease(&root->lock);
}

/* Copies the head of a stripe, and tells whether it has the columns; false: there is none. */
static bool
read_head(GhColumnsUse *use, uint32 number, GhStripe *head, bool *has_columns)
{
	GhStoredColumns *root = use->hold.columns;
	uint32		at[GH_STORED_COLUMNS_MAX];
	const GhStripe *stripe;

	LWLockAcquire(&root->lock, LW_SHARED);
	stripe = find_stripe(use, number);
	if (stripe != NULL)
	{
		*head = *stripe;
		*has_columns = map_columns(use, stripe, at);
	}
	LWLockRelease(&root->lock);
	return stripe != NULL;
}

static GhToMake
what_to_make(const GhColumnsUse *use, const GhStripe *stripe, const Judged *judged, bool has_columns)
{
	if (stripe == NULL)
		return GH_MAKE_ALL;
	if (has_columns)
		return GH_MAKE_RENEWED;
	/* all that it has is right, and little would be gained but columns */
	return judged->fresh == stripe->there &&
		pg_popcount32(judged->visible & ~judged->fresh & ~judged->hopeless) < gh_gained_min(use) ? GH_MAKE_LACKING : GH_MAKE_ALL;
}

/* Whether making stripes has taken no more than its share of the scan's time so far. */
static bool
has_time_to_make(const GhColumnsUse *use)
{
	instr_time	elapsed;

	INSTR_TIME_SET_CURRENT(elapsed);
	INSTR_TIME_SUBTRACT(elapsed, use->begun);
	return use->fills || INSTR_TIME_GET_DOUBLE(use->making) <= GH_MAKING_SHARE * INSTR_TIME_GET_DOUBLE(elapsed);
}

/*
 * Whether the stripe is to be made, now or anew: enough blocks would be gained.  In a parallel query by
 * whoever has its first block.
 */
static bool
is_worth_making(const GhColumnsUse *use, uint32 number, BlockNumber block, const Judged *judged, bool has_columns)
{
	uint32		gained = judged->visible & ~judged->hopeless;

	if (!use->makes || (use->pages->shared && block != gh_stripe_begin(number)))
		return false;
	if (has_columns)
		gained &= ~judged->fresh;
	return pg_popcount32(gained) >= Min(gh_gained_min(use), (int) gh_stripe_blocks(use, number)) && has_time_to_make(use);
}

/* Makes the stripe, and publishes it, or finds that it is what it was; which blocks are fresh then. */
static uint32
make_stripe(GhColumnsUse *use, uint32 number, const GhStripe *before, GhToMake what, Judged *judged)
{
	uint32		fresh = 0;
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	switch (gh_columns_make(use, number, before, what, judged->map_lsn))
	{
		case GH_MADE_NOTHING:
			break;
		case GH_MADE_SAME:
			judged->renewed = before->there;
			renew(use, number, before, judged);
			if (copy_columns(use, number, before))
				fresh = before->there;
			break;
		case GH_MADE_STRIPE:
			fresh = use->stripe->there;
			/* what cannot be kept is right for this scan all the same, but not worth it for the next stripe */
			if (!gh_columns_publish(use, number))
			{
				use->makes = false;
				fresh = use->fills ? 0 : fresh;
			}
			break;
	}
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(use->making, end, start);
	return fresh;
}

/* Looks up a stripe, of which a block is wanted: which of its blocks are fresh, and their columns. */
static void
look_up(GhColumnsUse *use, uint32 number, BlockNumber block)
{
	GhStripe	head;
	Judged		judged;
	bool		has_columns = false;
	const GhStripe *before = read_head(use, number, &head, &has_columns) ? &head : NULL;

	if (INSTR_TIME_IS_ZERO(use->begun))
		INSTR_TIME_SET_CURRENT(use->begun);
	use->number = number;
	use->fresh = 0;
	judge(use, number, before, &judged);
	if (judged.renewed != 0)
		renew(use, number, before, &judged);
	if (is_worth_making(use, number, block, &judged, has_columns))
		use->fresh = make_stripe(use, number, before, what_to_make(use, before, &judged, has_columns), &judged);
	if (use->fresh == 0 && (use->fills || (has_columns && judged.fresh != 0 && copy_columns(use, number, before))))
		use->fresh = judged.fresh;
	if (use->fresh == 0 || use->fills)
		return;
	if (!use->found)
		gh_shared_copy_count_use(use->hold.place);
	use->found = true;
	point_to_columns(use);
}

/* How many blocks from that one on have their rows here, all of one stripe: these need not be read. */
uint32
gh_columns_find(GhColumnsUse *use, BlockNumber block)
{
	uint32		i = block % GH_STRIPE_BLOCKS;
	uint32		from;

	if (block >= use->nblocks)
		return 0;
	if (use->number != block / GH_STRIPE_BLOCKS)
		look_up(use, block / GH_STRIPE_BLOCKS, block);
	from = use->fresh >> i;
	/* bits from the lowest one on that are set */
	return ~from == 0 ? GH_STRIPE_BLOCKS : (uint32) pg_rightmost_one_pos32(~from);
}

/* Whether stripes may be made, as far as it is known: not, when there was no room for one. */
bool
gh_columns_may_grow(const GhColumnsUse *use)
{
	return use->makes;
}

/*
 * Makes the stripes of these blocks, all of which are whole, as far as there is room; of how many blocks
 * there are rows then.
 */
uint64
gh_columns_fill(GhColumnsUse *use, BlockNumber first, BlockNumber end)
{
	uint64		there = 0;

	Assert(first % GH_STRIPE_BLOCKS == 0);
	gh_progress_phase(GH_PROGRESS_READS, use->nblocks);
	for (BlockNumber block = first; block < Min(end, use->nblocks); block += GH_STRIPE_BLOCKS)
	{
		CHECK_FOR_INTERRUPTS();
		(void) gh_columns_find(use, block);
		there += pg_popcount32(use->fresh);
		gh_progress_done(Min(block + GH_STRIPE_BLOCKS, use->nblocks));
	}
	return there;
}

/* The rows of blocks that were found so. */
GhColumnRows
gh_columns_rows(const GhColumnsUse *use, BlockNumber block, uint32 count)
{
	const uint32 *first = &use->stripe->first[block % GH_STRIPE_BLOCKS];

	return (GhColumnRows) {.first = first[0],.count = first[count] - first[0]};
}

/* The columns of the program, as it has them, with rows as gh_columns_rows() tells. */
const GhPackedColumn *const *
gh_columns_packed(const GhColumnsUse *use)
{
	return use->packed;
}

/* ------------------------------------------------------------------ publishing */

/* Room for the stripe of that number among those of the copy; false: there is no memory. */
static bool
has_room_for(GhColumnsUse *use, uint32 number)
{
	GhStoredColumns *root = use->hold.columns;
	uint32		nstripes = Max(number + 1, (use->nblocks + GH_STRIPE_BLOCKS - 1) / GH_STRIPE_BLOCKS);
	Size		bytes = nstripes * sizeof(dsa_pointer);
	dsa_pointer made = InvalidDsaPointer;
	dsa_pointer unused = InvalidDsaPointer;

	LWLockAcquire(&root->lock, LW_SHARED);
	nstripes = number < root->nstripes ? 0 : nstripes;
	LWLockRelease(&root->lock);
	if (nstripes == 0)
		return true;
	if (!gh_shared_copy_may_grow(&use->hold, bytes) || !gh_shared_copy_alloc(&use->hold, bytes, &made))
		return false;
	memset(dsa_get_address(use->hold.area, made), 0, bytes);
	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	unused = made;
	/* others may have been faster */
	if (number >= root->nstripes)
	{
		unused = root->stripes;
		if (root->nstripes > 0)
			memcpy(dsa_get_address(use->hold.area, made), dsa_get_address(use->hold.area, root->stripes),
				   root->nstripes * sizeof(dsa_pointer));
		root->stripes = made;
		root->nstripes = nstripes;
	}
	LWLockRelease(&root->lock);
	if (DsaPointerIsValid(unused))
		gh_shared_copy_free(&use->hold, unused);
	return true;
}

/* For all that use the copy: the use's stripe instead of the one of that number.  False: there is no room. */
bool
gh_columns_publish(GhColumnsUse *use, uint32 number)
{
	GhStoredColumns *root = use->hold.columns;
	GhStripe   *stripe = use->stripe;
	dsa_pointer at = InvalidDsaPointer;
	dsa_pointer *place;
	dsa_pointer before;
	int64		bytes = (int64) stripe->bytes;
	int64		pages = pg_popcount32(stripe->there);
	uint64		columns = 0;

	for (uint32 s = 0; s < stripe->ncolumns; s++)
		if (stripe->columns[s].attribute <= GH_FACTS_COLUMNS)
			columns |= UINT64CONST(1) << (stripe->columns[s].attribute - 1);
	if (!has_room_for(use, number) || !gh_shared_copy_may_grow(&use->hold, stripe->bytes) ||
		!gh_shared_copy_alloc(&use->hold, stripe->bytes, &at))
		return false;
	memcpy(dsa_get_address(use->hold.area, at), stripe, stripe->bytes);
	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	stripe->number = ((GhStripe *) dsa_get_address(use->hold.area, at))->number = ++root->last_number;
	place = (dsa_pointer *) dsa_get_address(use->hold.area, root->stripes) + number;
	before = *place;
	*place = at;
	LWLockRelease(&root->lock);
	/* whoever reads it holds the lock, and it is not to be found any more */
	if (DsaPointerIsValid(before))
	{
		const GhStripe *old = dsa_get_address(use->hold.area, before);

		bytes -= (int64) old->bytes;
		pages -= pg_popcount32(old->there);
		gh_shared_copy_free(&use->hold, before);
	}
	gh_shared_copy_grew(&use->hold, bytes, pages, columns);
	return true;
}
