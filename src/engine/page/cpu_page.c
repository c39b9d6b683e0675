/*
 * cpu_page.c
 *		A heap page's tuples, or a leaf page's entries, by their offset numbers, into the column vectors of a
 *		batch.
 *
 * In three passes.  First all tuples are found in the page.  Then the columns that lie at
 * the same place in every tuple that has the shape's prefix are read, a column at a time,
 * in loops without a branch: a tuple without the prefix is taken to start at the page's
 * first byte there, and what is read for it is overwritten by the last pass, which steps
 * over the attributes of each tuple for what is left.
 *
 * In the last pass tuples such as nearly all are, without NULLs and with short varlenas, are
 * stepped through four at a time, an attribute of all four after the other: what an attribute
 * is need be looked at once for all of them, and whether they are of that kind, and all was
 * inside of them, is seen at the end.  If not, or there is another tuple, it is done by itself.
 */
#include "engine/page/cpu_page.h"

/* The tuples of a page that become rows of a batch. */
typedef struct Rows
{
	const GhPageShape *shape;
	const uint8_t *page;
	uint32_t	count;
	bool		unprefixed;		/* some have not the shape's prefix */
	bool		some_else;		/* some entry of a leaf page is not of one row: it has no attributes here */
	GhPageTuple tuples[GH_VECTOR_ROWS];
	uint32_t	prefixed[GH_VECTOR_ROWS];	/* where the data of one with the prefix start, else 0 */
} Rows;

/* The entry of a leaf page, and the block of its row; false: the page is broken. */
static bool
open_entry(Rows *rows, uint32_t lines, uint32_t number, GhPageTuple *tuple, uint64_t *block)
{
	uint32_t	of_row;
	GhLeafEntryKind kind = gh_leaf_entry(rows->page, rows->shape->page_bytes, lines, number, tuple, &of_row);

	if (kind == GH_LEAF_BROKEN)
		return false;
	*block = of_row;
	if (kind == GH_LEAF_ELSE)
		tuple->natts = 0;
	rows->some_else |= kind == GH_LEAF_ELSE;
	return true;
}

/* blocks: of entries' rows. */
static bool
open_tuples(Rows *rows, const uint16_t *numbers, uint64_t *blocks)
{
	uint32_t	page_bytes = rows->shape->page_bytes;
	uint32_t	lines = gh_page_lines(rows->page, page_bytes);

	rows->unprefixed = rows->some_else = false;
	for (uint32_t i = 0; i < rows->count; i++)
	{
		GhPageTuple *tuple = &rows->tuples[i];

		if (rows->shape->leaves != 0 ? !open_entry(rows, lines, numbers[i], tuple, &blocks[i]) :
			!gh_page_tuple(rows->page, page_bytes, lines, numbers[i], tuple))
			return false;
		rows->prefixed[i] = gh_page_has_prefix(rows->shape, rows->page, tuple) ? tuple->data : 0;
		rows->unprefixed |= rows->prefixed[i] == 0;
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

/* The part of a vector that begins with this row. */
static inline GhVector
rows_from(GhVector vector, uint32_t first)
{
	return (GhVector) {vector.low + first, vector.high + first, vector.null + first};
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

/* ---------------------------------------------------------- some tuples together */

/* Tuples that are stepped through together: while one's next attribute is looked for, so are those of the others. */
#define TOGETHER 4

/* Unrolled, so that their places are in registers. */
#ifdef __clang__
#define EACH_OF_THEM _Pragma("unroll") for (uint32_t k = 0; k < TOGETHER; k++)
#else
#define EACH_OF_THEM _Pragma("GCC unroll 4") for (uint32_t k = 0; k < TOGETHER; k++)
#endif

/* From so many bytes before the page's end on nothing is read: no value of fixed length that is read has more. */
#define END_BYTES 8

/* The sign of what is below 0, as a flag. */
#define IS_NEGATIVE 0x80000000u

typedef struct Together
{
	uint32_t	rows[TOGETHER]; /* of the page */
	uint32_t	at[TOGETHER];	/* where the next attribute is looked for */
	uint32_t	headers;		/* of varlenas: the bits that all have */
	uint32_t	odd;			/* IS_NEGATIVE: some tuple is of another kind */
	uint32_t	back;			/* rows whose values cannot be read, a bit each */
} Together;

/* Near the page's end: no place is behind where the page may be read.  A tuple that has such a place is left to walk_tuple(). */
static inline void
keep_in_page(const Rows *rows, Together *t)
{
	uint32_t	last = rows->shape->page_bytes - END_BYTES;

	EACH_OF_THEM
	{
		t->odd |= last - t->at[k];
		t->at[k] = t->at[k] < last ? t->at[k] : last;
	}
}

/* A varlena's bytes, header included; its header is to be one byte. */
static inline uint32_t
short_bytes(Together *t, uint32_t header)
{
	uint32_t	bytes = header >> GH_VARLENA_SHORT_SHIFT;

	t->headers &= header;
	/* that of an external one would be of no bytes */
	t->odd |= bytes - 1;
	return bytes;
}

static inline void
skip_attribute(const Rows *rows, GhPageAttribute step, Together *t)
{
	if (step.length < 0)
	{
		EACH_OF_THEM
			t->at[k] += short_bytes(t, rows->page[t->at[k]]);
		return;
	}
	EACH_OF_THEM
		t->at[k] = gh_align_up(t->at[k], step.alignment) + (uint32_t) step.length;
}

/* A value of a kind that is seldom read here, which first has to be known to lie in its tuple. */
static inline void
load_value(const Rows *rows, GhPageAttribute step, const GhColumn *column, GhVector vector, Together *t, uint32_t k)
{
	uint32_t	row = t->rows[k];
	uint32_t	at = t->at[k];
	uint32_t	header = step.length < 0 ? 1 : 0;
	uint32_t	bytes = (uint32_t) step.length;

	if (step.length < 0)
		bytes = short_bytes(t, rows->page[at]);
	else
		at = gh_align_up(at, step.alignment);
	if (at + bytes > rows->tuples[row].end || (t->odd & IS_NEGATIVE) != 0 || (t->headers & GH_VARLENA_SHORT_BIT) == 0)
		t->odd |= IS_NEGATIVE;
	else if (!gh_page_load(column, rows->page, gh_place(GH_PLACE_HERE, at + header, bytes - header), &vector.low[row],
						   &vector.high[row]))
		t->back |= 1u << k;
	t->at[k] = at + bytes;
}

static inline void
load_attribute(const Rows *rows, GhPageAttribute step, const GhColumn *column, GhVector vector, Together *t)
{
	const uint8_t *page = rows->page;

	EACH_OF_THEM
		vector.null[t->rows[k]] = 0;
	if (column->load == GH_LOAD_TEXT)
	{
		EACH_OF_THEM
		{
			uint32_t	bytes = short_bytes(t, page[t->at[k]]);

			vector.low[t->rows[k]] = (uint64_t) (uintptr_t) (page + t->at[k] + 1);
			vector.high[t->rows[k]] = bytes - 1;
			t->at[k] += bytes;
		}
	}
	else if (column->load == GH_LOAD_INT4)
	{
		EACH_OF_THEM
		{
			uint32_t	at = gh_align_up(t->at[k], step.alignment);

			vector.low[t->rows[k]] = (uint64_t) (int64_t) (int32_t) gh_read_u32(page + at);
			t->at[k] = at + (uint32_t) sizeof(uint32_t);
		}
	}
	else
		for (uint32_t k = 0; k < TOGETHER; k++)
			load_value(rows, step, column, vector, t, k);
}

/*
 * The columns that have no fixed place, of some tuples such as nearly all are: with all attributes, none of
 * them NULL, and varlenas whose headers are one byte.  What is looked at lies in the page, and at the end it
 * is seen whether it was in the tuples.  False: some are others, and what was read does not count.
 */
static inline bool
walk_together(const Rows *rows, const GhVector *vectors, uint32_t first, const uint32_t *numbers, bool near_end,
			  uint32_t *back)
{
	const GhPageShape *shape = rows->shape;
	const GhPageAttribute *step = shape->attributes + shape->prefix;
	/* no one else's, so that it is in registers */
	Together	t = {.headers = GH_VARLENA_SHORT_BIT};

	EACH_OF_THEM
	{
		t.rows[k] = numbers[k];
		t.at[k] = rows->prefixed[numbers[k]] + shape->prefix_bytes;
	}
	for (uint32_t c = shape->nfixed; c < shape->ncolumns; c++)
	{
		const GhPageColumn *column = &shape->columns[c];
		const GhPageAttribute *end = shape->attributes + column->column.attribute - 1;

		for (; step < end; step++)
		{
			if (near_end)
				keep_in_page(rows, &t);
			skip_attribute(rows, *step, &t);
		}
		if (near_end)
			keep_in_page(rows, &t);
		load_attribute(rows, *step++, &column->column, rows_from(vectors[column->vector], first), &t);
	}
	EACH_OF_THEM
		t.odd |= rows->tuples[t.rows[k]].end - t.at[k];
	*back = t.back;
	return (t.odd & IS_NEGATIVE) == 0 && t.headers != 0;
}

/* -------------------------------------------------------------- tuple by tuple */

/*
 * Steps over attributes of the kinds that nearly all are, up to this one: of a fixed length, or varlenas
 * whose header is one byte.  One that does not lie in the tuple is for the next step to see.
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
 * The value of the next attribute, of the kinds that nearly all are: an integer of 4 or 8 bytes, or a varlena
 * whose header is one byte.  False: it is for gh_page_find() to see to.
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

/* ------------------------------------------------------------------ all tuples */

/* The most bytes that a varlena whose header is one byte takes. */
#define SHORT_VARLENA_MAX 127

/* How far behind the start of a tuple's data walk_together() looks at most. */
static uint32_t
find_reach(const GhPageShape *shape)
{
	uint32_t	reach = shape->prefix_bytes + END_BYTES;

	for (uint32_t a = shape->prefix; a < shape->natts; a++)
	{
		GhPageAttribute step = shape->attributes[a];

		reach += step.length < 0 ? SHORT_VARLENA_MAX : (uint32_t) step.length + step.alignment - 1u;
	}
	return reach;
}

/* May a tuple be walked with others? */
static inline bool
may_go_along(const Rows *rows, uint32_t i)
{
	const GhPageTuple *tuple = &rows->tuples[i];

	return rows->prefixed[i] != 0 && !tuple->has_nulls && tuple->natts >= rows->shape->natts;
}

/*
 * The first n tuples of a group; where that is not all of it, the first one is done once more.  False: each
 * is to be walked by itself.
 */
static bool
walk_group(const Rows *rows, const GhVector *vectors, uint32_t first, uint32_t reach, uint32_t *numbers, uint32_t n,
		   uint8_t *state)
{
	uint32_t	farthest = 0;
	uint32_t	back;

	for (uint32_t k = 0; k < TOGETHER; k++)
	{
		numbers[k] = numbers[k < n ? k : 0];
		if (rows->prefixed[numbers[k]] > farthest)
			farthest = rows->prefixed[numbers[k]];
	}
	if (!(farthest + reach > rows->shape->page_bytes ? walk_together(rows, vectors, first, numbers, true, &back) :
		  walk_together(rows, vectors, first, numbers, false, &back)))
		return false;
	for (uint32_t k = 0; back != 0 && k < n; k++)
		if ((back >> k & 1) != 0)
			state[numbers[k]] = GH_ROW_BACK;
	return true;
}

/* The columns that have no fixed place; false: a tuple is broken. */
static bool
walk_tuples(const Rows *rows, const GhVector *vectors, uint32_t first, uint8_t *state)
{
	uint32_t	reach = find_reach(rows->shape);
	uint32_t	passed = 0;
	uint32_t	failed = 0;
	uint32_t	n = 0;
	uint32_t	group[TOGETHER];

	for (uint32_t i = 0; i < rows->count; i++)
	{
		/* of pages whose varlenas are long, most groups fail */
		bool		along = failed <= passed && may_go_along(rows, i);
		bool		done;

		if (along)
			group[n++] = i;
		else if (!walk_tuple(rows, i, vectors, first, state))
			return false;
		if (n == 0 || (n < TOGETHER && i + 1 < rows->count))
			continue;
		done = walk_group(rows, vectors, first, reach, group, n, state);
		passed += done;
		failed += !done;
		for (uint32_t k = 0; !done && k < n; k++)
			if (!walk_tuple(rows, group[k], vectors, first, state))
				return false;
		n = 0;
	}
	return true;
}

/* Where the tuples are; blocks: of entries' rows. */
static void
load_tids(const GhPageShape *shape, GhVector vector, uint32_t block, const uint16_t *numbers, const uint64_t *blocks,
		  uint32_t count)
{
	memset(vector.null, 0, count);
	for (uint32_t i = 0; i < count; i++)
		vector.low[i] = shape->leaves != 0 ? blocks[i] : gh_tid_value(block, numbers[i]);
}

/*
 * Appends the page's tuples of these offset numbers to the batch, a row each in their order,
 * with the columns of the shape in its vectors, all of whose arrays are there; text stays
 * where it lies in the page.  Rows are GH_ROW_LIVE or, where a value cannot be read,
 * GH_ROW_BACK.  The page's block number is for the tuples' places alone.
 *
 * Of a leaf page, tuples are entries; one that is not of one row is GH_ROW_BACK.
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
	uint64_t	blocks[GH_VECTOR_ROWS];
	Rows		rows;

	if (first > GH_VECTOR_ROWS || count > GH_VECTOR_ROWS - first)
		return GH_TOO_SMALL;
	gh_batch_make_ready(batch, first + count);
	rows.shape = shape;
	rows.page = page;
	/* no column: the tuples are not looked at */
	rows.count = shape->ncolumns > 0 || shape->leaves != 0 ? count : 0;
	if (!open_tuples(&rows, numbers, blocks))
		return GH_INVALID;
	memset(state, GH_ROW_LIVE, count);
	for (uint32_t c = 0; c < shape->nfixed; c++)
		load_fixed(&rows, &shape->columns[c], rows_from(batch->vectors[shape->columns[c].vector], first), state);
	if (shape->nfixed < shape->ncolumns && !walk_tuples(&rows, batch->vectors, first, state))
		return GH_INVALID;
	for (uint32_t i = 0; rows.unprefixed && shape->nfixed == shape->ncolumns && i < rows.count; i++)
		if (rows.prefixed[i] == 0 && !walk_tuple(&rows, i, batch->vectors, first, state))
			return GH_INVALID;
	if (shape->tids != 0)
		load_tids(shape, rows_from(batch->vectors[shape->tids - 1], first), block, numbers, blocks, count);
	for (uint32_t i = 0; rows.some_else && i < count; i++)
		if (rows.tuples[i].natts == 0)
			state[i] = GH_ROW_BACK;
	batch->nrows = first + count;
	return GH_OK;
}
