/*
 * cpu_page.c
 *		A heap page's tuples, by their offset numbers, into the column vectors of a batch.
 *
 * In three passes.  First all tuples are found in the page.  Then the columns that lie at
 * the same place in every tuple that has the shape's prefix are read, a column at a time,
 * in loops without a branch: a tuple without the prefix is taken to start at the page's
 * first byte there, and what is read for it is overwritten by the last pass, which steps
 * over the attributes of each tuple for what is left.
 */
#include "engine/page/cpu_page.h"

/* The tuples of a page that become rows of a batch. */
typedef struct Rows
{
	const GhPageShape *shape;
	const uint8_t *page;
	uint32_t	count;
	bool		walks;			/* some have to be stepped through, or all */
	GhPageTuple tuples[GH_VECTOR_ROWS];
	uint32_t	prefixed[GH_VECTOR_ROWS];	/* where the data of one with the prefix start, else 0 */
} Rows;

static bool
open_tuples(Rows *rows, const uint16_t *numbers)
{
	uint32_t	page_bytes = rows->shape->page_bytes;
	uint32_t	lines = gh_page_lines(rows->page, page_bytes);

	rows->walks = rows->shape->nfixed < rows->shape->ncolumns;
	for (uint32_t i = 0; i < rows->count; i++)
	{
		GhPageTuple *tuple = &rows->tuples[i];

		if (!gh_page_tuple(rows->page, page_bytes, lines, numbers[i], tuple))
			return false;
		rows->prefixed[i] = gh_page_has_prefix(rows->shape, rows->page, tuple) ? tuple->data : 0;
		rows->walks |= rows->prefixed[i] == 0;
	}
	return true;
}

/* One loop over the rows of a column at a fixed place; `at` is where its bytes are. */
#define EACH_ROW(statement) \
	do { \
		for (uint32_t i = 0; i < rows->count; i++) \
		{ \
			const uint8_t *at = column_start + rows->prefixed[i]; \
			statement; \
		} \
	} while (0)

static void
load_fixed(const Rows *rows, const GhPageColumn *column, GhVector vector, uint8_t *state)
{
	const uint8_t *column_start = rows->page + column->place;
	uint64_t   *low = vector.low;

	memset(vector.null, 0, rows->count);
	switch (column->column.load)
	{
		case GH_LOAD_INT2:
			EACH_ROW(low[i] = (uint64_t) (int64_t) (int16_t) gh_read_u16(at));
			break;
		case GH_LOAD_INT4:
			EACH_ROW(low[i] = (uint64_t) (int64_t) (int32_t) gh_read_u32(at));
			break;
		case GH_LOAD_OID:
			EACH_ROW(low[i] = gh_read_u32(at));
			break;
		case GH_LOAD_INT8:
		case GH_LOAD_FLOAT8:
			EACH_ROW(low[i] = gh_read_u64(at));
			break;
		case GH_LOAD_FLOAT4:
			EACH_ROW(low[i] = gh_float4_bits(gh_read_u32(at)));
			break;
		case GH_LOAD_BOOL:
			EACH_ROW(low[i] = at[0]);
			for (uint32_t i = 0; i < rows->count; i++)
				if (low[i] > 1 && rows->prefixed[i] != 0)
					state[i] = GH_ROW_BACK;
			break;
		default:
			EACH_ROW(low[i] = (uint64_t) (uintptr_t) at);
			for (uint32_t i = 0; i < rows->count; i++)
				vector.high[i] = column->column.length;
			break;
	}
}

/* Puts what was found for row i of the vector there; false: the row is to be handed back. */
static bool
store_place(const Rows *rows, const GhColumn *column, GhPlace place, GhVector vector, uint32_t i)
{
	vector.null[i] = place.kind == GH_PLACE_NULL || place.kind == GH_PLACE_MISSING;
	if (place.kind == GH_PLACE_HERE)
		return gh_page_load(column, rows->page, place, &vector.low[i], &vector.high[i]);
	return place.kind == GH_PLACE_NULL ||
		(place.kind == GH_PLACE_MISSING && column->missing == GH_MISSING_NULL);
}

/*
 * Steps over attributes of the kinds that nearly all are, up to this one: of a fixed length, or varlenas whose header is one
 * byte.  One that does not lie in the tuple is for the next step to see.
 */
static void
skip_plain(const GhPageShape *shape, const uint8_t *page, const GhPageTuple *tuple, GhPageWalk *walk,
		   uint32_t attribute)
{
	uint32_t	at = walk->offset;
	uint32_t	next = walk->next;

	for (; next < attribute; next++)
	{
		GhPageAttribute step = shape->attributes[next];
		uint32_t	first;

		if (tuple->has_nulls && gh_page_is_null(page, tuple, next))
			continue;
		if (step.length >= 0)
		{
			uint32_t	end = gh_align_up(at, step.alignment) + (uint32_t) step.length;

			if (end > tuple->end)
				break;
			at = end;
			continue;
		}
		if (at >= tuple->end)
			break;
		first = page[at];
		if (!(first & GH_VARLENA_SHORT_BIT) || first == GH_VARLENA_EXTERNAL)
			break;
		if ((first >> GH_VARLENA_SHORT_SHIFT) > tuple->end - at)
			break;
		at += first >> GH_VARLENA_SHORT_SHIFT;
	}
	walk->next = next;
	walk->offset = at;
}

/*
 * The value of the next attribute, of the kinds that nearly all are: an integer of 4 or 8 bytes, or a varlena whose header
 * is one byte.  False: it is for gh_page_find() to see to.
 */
static inline bool
load_plain(const Rows *rows, const GhPageTuple *tuple, GhPageWalk *walk, const GhColumn *column, GhVector vector,
		   uint32_t i)
{
	GhPageAttribute step = rows->shape->attributes[walk->next];
	const uint8_t *page = rows->page;
	uint32_t	at = walk->offset;
	uint32_t	bytes;

	if (tuple->has_nulls && gh_page_is_null(page, tuple, walk->next))
		return false;
	if (column->load == GH_LOAD_TEXT && step.length < 0)
	{
		if (at >= tuple->end || !(page[at] & GH_VARLENA_SHORT_BIT) || page[at] == GH_VARLENA_EXTERNAL)
			return false;
		bytes = page[at] >> GH_VARLENA_SHORT_SHIFT;
		if (bytes > tuple->end - at)
			return false;
		vector.low[i] = (uint64_t) (uintptr_t) (page + at + 1);
		vector.high[i] = bytes - 1;
	}
	else if (column->load == GH_LOAD_INT4 || column->load == GH_LOAD_INT8)
	{
		bytes = (uint32_t) step.length;
		at = gh_align_up(at, step.alignment);
		if (at > tuple->end || bytes > tuple->end - at)
			return false;
		vector.low[i] = column->load == GH_LOAD_INT8 ? gh_read_u64(page + at) :
			(uint64_t) (int64_t) (int32_t) gh_read_u32(page + at);
	}
	else
		return false;
	vector.null[i] = 0;
	walk->next++;
	walk->offset = at + bytes;
	return true;
}

/* The columns that have no fixed place or, of a tuple without the prefix, all. */
static bool
walk_tuple(const Rows *rows, uint32_t i, const GhVector *vectors, uint32_t first, uint8_t *state)
{
	const GhPageShape *shape = rows->shape;
	const GhPageTuple *tuple = &rows->tuples[i];
	bool		prefixed = rows->prefixed[i] != 0;
	GhPageWalk	walk = {0, tuple->data};

	if (prefixed)
	{
		walk.next = shape->prefix;
		walk.offset += shape->prefix_bytes;
	}
	for (uint32_t c = prefixed ? shape->nfixed : 0; c < shape->ncolumns; c++)
	{
		const GhPageColumn *column = &shape->columns[c];
		uint32_t	attribute = column->column.attribute - 1u;
		GhPlace		place;

		if (attribute < tuple->natts)
			skip_plain(shape, rows->page, tuple, &walk, attribute);
		if (attribute < tuple->natts && walk.next == attribute &&
			load_plain(rows, tuple, &walk, &column->column, vectors[column->vector], first + i))
			continue;
		place = gh_page_find(shape, rows->page, tuple, &walk, attribute);
		if (place.kind == GH_PLACE_BROKEN)
			return false;
		if (!store_place(rows, &column->column, place, vectors[column->vector], first + i))
			state[i] = GH_ROW_BACK;
	}
	return true;
}

static void
load_tids(GhVector vector, uint32_t first, uint32_t block, const uint16_t *numbers, uint32_t count)
{
	memset(vector.null + first, 0, count);
	for (uint32_t i = 0; i < count; i++)
		vector.low[first + i] = gh_tid_value(block, numbers[i]);
}

/*
 * Appends the page's tuples of these offset numbers to the batch, a row each in their order,
 * with the columns of the shape in its vectors, all of whose arrays are there; text stays
 * where it lies in the page.  Rows are GH_ROW_LIVE or, where a value cannot be read,
 * GH_ROW_BACK.  The page's block number is for the tuples' places alone.
 *
 * GH_TOO_SMALL: the batch has no room for so many.  GH_INVALID: this is no heap page, or a
 * tuple is not of the shape, and nothing in the page is to be trusted.  Both leave the
 * batch's rows as they were.  A shape without attributes takes any page, and looks at nothing in it.
 */
GhStatus
gh_cpu_page_load(const GhPageShape *shape, const uint8_t *page, uint32_t block,
				 const uint16_t *numbers, uint32_t count, GhVectorBatch *batch)
{
	uint32_t	first = batch->nrows;
	uint8_t    *state = batch->state + first;
	Rows		rows;

	if (first > GH_VECTOR_ROWS || count > GH_VECTOR_ROWS - first)
		return GH_TOO_SMALL;
	gh_batch_make_ready(batch, first + count);
	rows.shape = shape;
	rows.page = page;
	/* no column: the tuples are not looked at */
	rows.count = shape->ncolumns > 0 ? count : 0;
	if (!open_tuples(&rows, numbers))
		return GH_INVALID;
	memset(state, GH_ROW_LIVE, count);
	for (uint32_t c = 0; c < shape->nfixed; c++)
	{
		GhVector	vector = batch->vectors[shape->columns[c].vector];

		vector.low += first;
		vector.high += first;
		vector.null += first;
		load_fixed(&rows, &shape->columns[c], vector, state);
	}
	for (uint32_t i = 0; rows.walks && i < rows.count; i++)
		if ((rows.prefixed[i] == 0 || shape->nfixed < shape->ncolumns) &&
			!walk_tuple(&rows, i, batch->vectors, first, state))
			return GH_INVALID;
	if (shape->tids != 0)
		load_tids(batch->vectors[shape->tids - 1], first, block, numbers, count);
	batch->nrows = first + count;
	return GH_OK;
}
