/*
 * test_page.c
 *		Heap pages into batches: what was written is read, and nothing else ever is.
 */
#include "page_writer.h"

/* A batch of vectors whose content before is known. */
static void
batch_make(GhVectorBatch *batch, uint32_t nvectors, int fill)
{
	memset(batch, 0, sizeof(*batch));
	batch->nvectors = nvectors;
	batch->state = make_memory(GH_VECTOR_ROWS);
	memset(batch->state, fill, GH_VECTOR_ROWS);
	batch->vectors = make_memory(nvectors * sizeof(GhVector));
	for (uint32_t v = 0; v < nvectors; v++)
	{
		GhVector   *vector = &batch->vectors[v];

		vector->low = make_words(GH_VECTOR_ROWS);
		vector->high = make_words(GH_VECTOR_ROWS);
		vector->null = make_memory(GH_VECTOR_ROWS);
		memset(vector->low, fill, GH_VECTOR_ROWS * sizeof(uint64_t));
		memset(vector->high, fill, GH_VECTOR_ROWS * sizeof(uint64_t));
		memset(vector->null, fill, GH_VECTOR_ROWS);
	}
}

static void
batch_drop(GhVectorBatch *batch)
{
	for (uint32_t v = 0; v < batch->nvectors; v++)
	{
		free(batch->vectors[v].low);
		free(batch->vectors[v].high);
		free(batch->vectors[v].null);
	}
	free(batch->vectors);
	free(batch->state);
}

#define COLUMNS_MAX (WRITER_NATTS_MAX + 1)

/* Some columns of a relation, in any order, and the tuples' places among them. */
static uint32_t
columns_draw(Context *c, const Relation *relation, GhColumn *columns)
{
	static const GhColumn tid = {.load = GH_LOAD_TID};
	uint32_t	n = 0;
	uint64_t	share = random_below(c, 101);

	if (random_below(c, 3) == 0)
		columns[n++] = tid;

	for (uint32_t i = 0; i < relation->natts; i++)
	{
		uint32_t	at = (uint32_t) random_below(c, n + 1);

		if (random_below(c, 100) >= share)
			continue;
		columns[n++] = columns[at];
		columns[at] = relation->loads[i];
	}
	return n;
}

#define BLOCK 0xfedcba98		/* number of any page */

static bool
is_text(const GhColumn *column)
{
	return column->load == GH_LOAD_TEXT || column->load == GH_LOAD_FIXED;
}

/* ------------------------------------------------------- what was written is read */

/* What a column is to hold for a tuple. */
static Written
expected_value(const WrittenPage *written, uint32_t t, const GhColumn *column)
{
	Written		place = {WRITTEN_VALUE, UINT64_C(65536) * BLOCK + written->numbers[t], 0};

	return column->load == GH_LOAD_TID ? place : written->values[t][column->attribute - 1];
}

static GhRowState
expected_state(const GhColumn *columns, uint32_t ncolumns, const WrittenPage *written, uint32_t t)
{
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		WrittenKind kind = expected_value(written, t, &columns[i]).kind;

		if (kind == WRITTEN_UNREADABLE ||
			(kind == WRITTEN_MISSING && columns[i].missing == GH_MISSING_BACK))
			return GH_ROW_BACK;
	}
	return GH_ROW_LIVE;
}

static void
check_value(Context *c, const WrittenPage *written, const GhColumn *column,
			const Written *expected, const GhVector *vector, uint32_t row)
{
	bool		null = expected->kind == WRITTEN_NULL || expected->kind == WRITTEN_MISSING;
	uint64_t	low = expected->low;

	if (expected->kind == WRITTEN_TEXT)
		low += (uint64_t) (uintptr_t) written->page;
	CHECK(c, vector->null[row] == null, "attribute %d (load %d) of row %u: null is %d",
		  column->attribute, column->load, row, vector->null[row]);
	if (null)
		return;
	CHECK(c, vector->low[row] == low, "attribute %d (load %d) of row %u is %" PRIx64
		  ", expected %" PRIx64, column->attribute, column->load, row, vector->low[row], low);
	if (is_text(column) || column->load == GH_LOAD_NUMERIC)
		CHECK(c, vector->high[row] == expected->high, "attribute %d (load %d) of row %u: high is %"
			  PRIx64 ", expected %" PRIx64, column->attribute, column->load, row,
			  vector->high[row], expected->high);
}

/* Reads these columns of all tuples, behind rows that are there, and compares. */
static void
check_columns(Context *c, const WrittenPage *written, const GhColumn *columns, uint32_t ncolumns)
{
	const Relation *relation = written->relation;
	uint32_t	first = (uint32_t) random_below(c, GH_VECTOR_ROWS + 1 - written->ntuples);
	GhPageShape shape;
	GhVectorBatch batch;
	GhError		error = {0};

	batch_make(&batch, ncolumns, 0x5a);
	batch.nrows = first;
	if (!CHECK_STATUS(c, "shape", gh_page_shape_init(&shape, relation->page_bytes, relation->natts,
													 relation->attributes, ncolumns, columns,
													 &error), GH_OK) ||
		!CHECK_STATUS(c, "page", gh_cpu_page_load(&shape, written->page, BLOCK, written->numbers,
												  written->ntuples, &batch), GH_OK))
	{
		batch_drop(&batch);
		return;
	}
	CHECK_U64(c, "rows", batch.nrows, first + written->ntuples);
	for (uint32_t t = 0; t < written->ntuples; t++)
	{
		CHECK_U64(c, "state", batch.state[first + t], expected_state(columns, ncolumns, written, t));
		for (uint32_t i = 0; i < ncolumns && batch.state[first + t] == GH_ROW_LIVE; i++)
		{
			Written		expected = expected_value(written, t, &columns[i]);

			check_value(c, written, &columns[i], &expected, &batch.vectors[i], first + t);
		}
	}
	/* the rows before, and all after, are as they were */
	for (uint32_t i = 0; i < GH_VECTOR_ROWS; i++)
		CHECK(c, (i >= first && i < first + written->ntuples) || batch.state[i] == 0x5a,
			  "row %u was changed", i);
	batch_drop(&batch);
}

static void
pages_written(Context *c)
{
	uint64_t	pages = sized(c, 3000, 600);
	uint64_t	tuples = 0;

	for (uint64_t p = 0; p < pages; p++)
	{
		Relation	relation;
		WrittenPage written;
		GhColumn	columns[COLUMNS_MAX] = {{0}};

		relation_draw(c, &relation);
		page_draw(c, &relation, &written);
		check_columns(c, &written, columns, columns_draw(c, &relation, columns));
		columns[0] = relation.loads[random_below(c, relation.natts)];
		check_columns(c, &written, columns, 1);
		tuples += written.ntuples;
		page_drop(&written);
	}
	CHECK(c, tuples > pages, "only %" PRIu64 " tuples in all", tuples);
}

/* ------------------------------------------------------------- any bytes at all */

/* Something of what is done to a page: to its header, a line pointer, a tuple, anything. */
static void
spoil(Context *c, const WrittenPage *written)
{
	uint32_t	page_bytes = written->relation->page_bytes;
	uint32_t	n = written->ntuples == 0 ? 0 : (uint32_t) random_below(c, written->ntuples);
	uint32_t	from = 0;
	uint32_t	room = page_bytes;

	switch (written->ntuples == 0 ? 3 : random_below(c, 5))
	{
		case 0:
			from = 24 + (written->numbers[n] - 1u) * 4;
			room = 4;
			break;
		case 1:
			from = written->starts[n] + 18;
			room = 5;
			break;
		case 2:
			from = written->starts[n];
			room = written->lengths[n];
			break;
		case 3:
			from = 8;
			room = 16;
			break;
	}
	if (random_below(c, 2) == 0)
		written->page[from + random_below(c, room)] ^= (uint8_t) (1u << random_below(c, 8));
	else
		written->page[from + random_below(c, room)] = (uint8_t) random_next(c);
}

/* Every value that a row which is not handed back has can be looked at. */
static uint64_t
look_at_values(Context *c, const GhPageShape *shape, const uint8_t *page,
			   const GhVectorBatch *batch)
{
	uint64_t	sum = 0;

	for (uint32_t v = 0; v < shape->ncolumns; v++)
	{
		const GhPageColumn *column = &shape->columns[v];
		const GhVector *vector = &batch->vectors[column->vector];

		for (uint32_t i = 0; i < batch->nrows; i++)
		{
			const uint8_t *at = (const uint8_t *) (uintptr_t) vector->low[i];

			if (batch->state[i] != GH_ROW_LIVE || vector->null[i])
				continue;
			sum = mix(sum + vector->low[i]);
			if (!is_text(&column->column) ||
				!CHECK(c, at >= page && at <= page + shape->page_bytes &&
					   vector->high[i] <= (uint64_t) (page + shape->page_bytes - at),
					   "text of row %u is not in the page", i))
				continue;
			for (uint64_t k = 0; k < vector->high[i]; k++)
				sum = mix(sum + at[k]);
		}
	}
	return sum;
}

/* Reads the page twice, all tuples at once and each alone, with the same outcome. */
static uint64_t
check_any_page(Context *c, const GhPageShape *shape, const WrittenPage *written)
{
	uint16_t	numbers[WRITER_TUPLES_MAX];
	uint32_t	count = written->ntuples;
	GhVectorBatch batch[2];
	GhStatus	status[2];
	uint64_t	sum[2];
	uint64_t	alone = 0;

	memcpy(numbers, written->numbers, sizeof(numbers));
	if (count > 0 && random_below(c, 20) == 0)
		numbers[random_below(c, count)] = (uint16_t) random_next(c);
	for (int i = 0; i < 2; i++)
	{
		batch_make(&batch[i], shape->ncolumns + (shape->tids > 0), i == 0 ? 0 : 0xff);
		status[i] = gh_cpu_page_load(shape, written->page, BLOCK, numbers, count, &batch[i]);
		CHECK_U64(c, "rows", batch[i].nrows, status[i] == GH_OK ? count : 0);
		sum[i] = look_at_values(c, shape, written->page, &batch[i]);
	}
	CHECK_STATUS(c, "a second time", status[1], status[0]);
	CHECK(c, status[0] == GH_OK || status[0] == GH_INVALID, "status %d", status[0]);
	CHECK_U64(c, "values a second time", sum[1], sum[0]);
	CHECK(c, memcmp(batch[0].state, batch[1].state, batch[0].nrows) == 0, "states differ");
	for (uint32_t t = 0; t < count; t++)
	{
		batch[1].nrows = 0;
		if (gh_cpu_page_load(shape, written->page, BLOCK, &numbers[t], 1, &batch[1]) != GH_OK)
			continue;
		CHECK(c, status[0] != GH_OK || batch[0].state[t] == batch[1].state[0],
			  "tuple %u has another state when read alone", t);
		alone++;
	}
	CHECK(c, status[0] == GH_OK ? alone == count : alone < count,
		  "%" PRIu64 " of %u tuples can be read, and all together: status %d", alone, count,
		  status[0]);
	batch_drop(&batch[0]);
	batch_drop(&batch[1]);
	return status[0] != GH_OK;
}

static void
pages_of_any_bytes(Context *c)
{
	uint64_t	pages = sized(c, 3000, 600);
	uint64_t	refused = 0;

	for (uint64_t p = 0; p < pages; p++)
	{
		Relation	relation;
		WrittenPage written;
		GhColumn	columns[COLUMNS_MAX] = {{0}};
		uint32_t	ncolumns;
		GhPageShape shape;

		relation_draw(c, &relation);
		page_draw(c, &relation, &written);
		ncolumns = columns_draw(c, &relation, columns);
		CHECK_STATUS(c, "shape", gh_page_shape_init(&shape, relation.page_bytes, relation.natts,
													relation.attributes, ncolumns, columns, NULL),
					 GH_OK);
		if (random_below(c, 10) == 0)
			for (uint32_t i = random_below(c, 2) ? 24 : 0; i < relation.page_bytes; i++)
				written.page[i] = (uint8_t) random_next(c);
		for (uint64_t i = random_below(c, 12); i > 0; i--)
			spoil(c, &written);
		refused += check_any_page(c, &shape, &written);
		page_drop(&written);
	}
	CHECK(c, refused > pages / 10 && refused < pages - pages / 10,
		  "%" PRIu64 " of %" PRIu64 " pages were refused", refused, pages);
}

/* -------------------------------------------------------------- what is refused */

/* Where the tuple of small_page is. */
#define AT(offset) (8192 - 64 + (offset))

/* A page of one tuple of an int4 and a text of 5 bytes: 24 + 4 + 1 + 5 bytes. */
static void
small_page(uint8_t *page)
{
	static const uint8_t tuple[] = {
		[18] = 2, [20] = 2, [22] = 24,[24] = 42,[28] = 13, 'a', 'b', 'c', 'd', 'e'
	};
	const uint32_t at = AT(0);
	const uint32_t line = (uint32_t) sizeof(tuple) << 17 | 1u << 15 | at;

	memset(page, 0, 8192);
	page[12] = 28;
	page[18] = 4;
	page[19] = 8192 >> 8;
	memcpy(page + 24, &line, sizeof(line));
	memcpy(page + at, tuple, sizeof(tuple));
}

static const struct
{
	const char *what;
	uint32_t	at;				/* byte that is set: of the page, */
	uint8_t		byte;
	uint32_t	at2;			/* and another one */
	uint8_t		byte2;
	GhStatus	status;
}			changes[] = {
	{"nothing", 0, 0, 0, 0, GH_OK},
	{"another size of pages", 19, 0x40, 0, 0, GH_INVALID},
	{"another version", 18, 3, 0, 0, GH_INVALID},
	{"no line pointers", 12, 24, 0, 0, GH_INVALID},
	{"part of a line pointer", 12, 27, 0, 0, GH_INVALID},
	{"an end of line pointers inside the header", 12, 20, 0, 0, GH_INVALID},
	{"line pointers up to the tuple", 12, AT(0) & 0xff, 13, AT(0) >> 8, GH_OK},
	{"line pointers up into the tuple", 12, AT(4) & 0xff, 13, AT(4) >> 8, GH_INVALID},
	{"an end of line pointers behind the page", 12, 4, 13, 8192 >> 8, GH_INVALID},
	{"an unused line pointer", 25, AT(0) >> 8 & 0x7f, 26, 34 << 1, GH_INVALID},
	{"a redirected line pointer", 25, AT(0) >> 8 & 0x7f, 26, 34 << 1 | 1, GH_INVALID},
	{"a dead line pointer", 25, AT(0) >> 8 | 0x80, 26, 34 << 1 | 1, GH_INVALID},
	{"a tuple among the line pointers", 24, 24, 25, 0x80, GH_INVALID},
	{"a tuple off its alignment", 24, AT(1) & 0xff, 0, 0, GH_INVALID},
	{"a tuple up to the page's end", 26, 64 << 1, 0, 0, GH_OK},
	{"a tuple beyond the page's end", 26, 65 << 1, 0, 0, GH_INVALID},
	{"less than a tuple's header", 26, 22 << 1, 0, 0, GH_INVALID},
	{"a tuple without its data", 26, 23 << 1, 0, 0, GH_INVALID},
	{"a tuple that ends in its last value", 26, 33 << 1, 0, 0, GH_INVALID},
	{"a tuple that ends before its last value", 26, 28 << 1, 0, 0, GH_INVALID},
	{"a tuple that ends in its first value", 26, 27 << 1, 0, 0, GH_INVALID},
	{"data in the header", AT(22), 16, 0, 0, GH_INVALID},
	{"data off their alignment", AT(22), 28, 0, 0, GH_INVALID},
	{"data behind the tuple", AT(22), 40, 0, 0, GH_INVALID},
	{"a bitmap of 8 attributes", AT(20), 3, AT(23), 3, GH_OK},
	{"a bitmap that goes into the data", AT(20), 3, AT(18), 9, GH_INVALID},
	{"no length of a varlena", AT(28), 1, AT(29), 0, GH_INVALID},
	{"a toasted varlena that is not there", AT(28), 1, AT(29), 18, GH_INVALID},
	{"a toasted varlena of another kind", AT(28), 1, 26, 64 << 1, GH_INVALID},
	{"a varlena as long as the tuple", AT(28), 6 << 1 | 1, 0, 0, GH_OK},
	{"a varlena longer than the tuple", AT(28), 7 << 1 | 1, 0, 0, GH_INVALID},
	{"a long varlena without its header", AT(28), 3 << 2, AT(29), 0, GH_INVALID},
	{"a compressed varlena without its header", AT(28), 6 << 2 | 2, AT(29), 0, GH_INVALID}
};

static void
broken_pages(Context *c)
{
	static const GhPageAttribute attributes[] = {{4, 4}, {-1, 4}};
	static const GhColumn columns[] = {
		{.attribute = 1,.load = GH_LOAD_INT4}, {.attribute = 2,.load = GH_LOAD_TEXT}
	};
	const uint16_t number = 1;
	uint8_t    *page = make_memory(8192);
	GhPageShape shape;
	GhVectorBatch batch;

	batch_make(&batch, 2, 0);
	CHECK_STATUS(c, "shape", gh_page_shape_init(&shape, 8192, 2, attributes, 2, columns, NULL), GH_OK);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
	{
		small_page(page);
		if (changes[i].at != 0)
			page[changes[i].at] = changes[i].byte;
		if (changes[i].at2 != 0)
			page[changes[i].at2] = changes[i].byte2;
		batch.nrows = 0;
		CHECK_STATUS(c, changes[i].what, gh_cpu_page_load(&shape, page, BLOCK, &number, 1, &batch),
					 changes[i].status);
		CHECK_U64(c, changes[i].what, batch.nrows, changes[i].status == GH_OK);
	}
	small_page(page);
	for (uint16_t n = 0; n < 4; n++)
		CHECK_STATUS(c, "an offset number", gh_cpu_page_load(&shape, page, BLOCK, &n, 1, &batch),
					 n == 1 ? GH_OK : GH_INVALID);
	batch.nrows = GH_VECTOR_ROWS;
	CHECK_STATUS(c, "a full batch", gh_cpu_page_load(&shape, page, BLOCK, &number, 1, &batch), GH_TOO_SMALL);
	CHECK_STATUS(c, "no row more", gh_cpu_page_load(&shape, page, BLOCK, &number, 0, &batch), GH_OK);
	batch.nrows = GH_VECTOR_ROWS - 1;
	CHECK_STATUS(c, "the last row", gh_cpu_page_load(&shape, page, BLOCK, &number, 1, &batch), GH_OK);
	batch_drop(&batch);
	free(page);
}

/* All of a tuple moved by half of its alignment, or only its data. */
static void
shifted_tuples(Context *c)
{
	static const GhPageAttribute attributes[] = {{4, 4}, {-1, 4}};
	static const GhColumn columns[] = {
		{.attribute = 1,.load = GH_LOAD_INT4}, {.attribute = 2,.load = GH_LOAD_TEXT}
	};
	uint8_t    *page = make_memory(8192);
	GhPageShape shape;
	GhVectorBatch batch;

	batch_make(&batch, 2, 0);
	CHECK_STATUS(c, "shape", gh_page_shape_init(&shape, 8192, 2, attributes, 2, columns, NULL), GH_OK);
	for (uint32_t by = 0; by <= 8; by += 4)
		for (uint32_t from = 0; from <= 24; from += 24)
		{
			const uint16_t number = 1;

			small_page(page);
			memmove(page + AT(from + by), page + AT(from), 34 - from);
			page[24] = (uint8_t) (AT(from == 0 ? by : 0) & 0xff);
			page[26] = (uint8_t) ((from == 0 ? 34 : 34 + by) << 1);
			page[AT(22 + (from == 0 ? by : 0))] = (uint8_t) (from == 0 ? 24 : 24 + by);
			batch.nrows = 0;
			CHECK_STATUS(c, from == 0 ? "a tuple" : "its data",
						 gh_cpu_page_load(&shape, page, BLOCK, &number, 1, &batch),
						 by == 4 ? GH_INVALID : GH_OK);
		}
	batch_drop(&batch);
	free(page);
}

/* Fixed columns alone, in tuples that end before, in or right behind the last one. */
static void
short_tuples(Context *c)
{
	static const GhPageAttribute attributes[] = {{4, 4}, {2, 2}};
	static const GhColumn columns[] = {
		{.attribute = 1,.load = GH_LOAD_INT4}, {.attribute = 2,.load = GH_LOAD_INT2}
	};
	uint8_t    *page = make_memory(8192);
	GhPageShape shape;
	GhVectorBatch batch;

	batch_make(&batch, 2, 0);
	CHECK_STATUS(c, "shape", gh_page_shape_init(&shape, 8192, 2, attributes, 2, columns, NULL), GH_OK);
	for (uint32_t bytes = 24; bytes <= 31; bytes++)
	{
		const uint16_t number = 1;

		small_page(page);
		page[26] = (uint8_t) (bytes << 1);
		batch.nrows = 0;
		CHECK_STATUS(c, "a short tuple", gh_cpu_page_load(&shape, page, BLOCK, &number, 1, &batch),
					 bytes >= 30 ? GH_OK : GH_INVALID);
	}
	/* so many line pointers that one is behind the page */
	small_page(page);
	page[12] = 0xfc;
	page[13] = 0xff;
	for (uint16_t n = 2042; n < 2046; n++)
		CHECK_STATUS(c, "a line pointer behind the page",
					 gh_cpu_page_load(&shape, page, BLOCK, &n, 1, &batch), GH_INVALID);
	batch_drop(&batch);
	free(page);
}

/* A varlena that begins in the page's last byte, and would go on. */
static void
last_byte(Context *c)
{
	static const GhPageAttribute attributes[] = {{-1, 4}, {-1, 4}};
	static const GhColumn columns[] = {
		{.attribute = 1,.load = GH_LOAD_TEXT}, {.attribute = 2,.load = GH_LOAD_TEXT}
	};
	const uint32_t at = 8192 - 40;
	const uint32_t line = 40u << 17 | 1u << 15 | at;
	const uint16_t number = 1;
	uint8_t    *page = make_memory(8192);
	GhPageShape shape;
	GhVectorBatch batch;

	batch_make(&batch, 2, 0);
	CHECK_STATUS(c, "shape", gh_page_shape_init(&shape, 8192, 2, attributes, 2, columns, NULL), GH_OK);
	for (int first = 0; first < 256; first++)
	{
		small_page(page);
		memcpy(page + 24, &line, sizeof(line));
		memmove(page + at, page + AT(0), 24);
		page[at + 24] = 15 << 1 | 1;
		page[8191] = (uint8_t) first;
		batch.nrows = 0;
		/* 3: a header of one byte, and nothing behind it */
		CHECK_STATUS(c, "the last byte", gh_cpu_page_load(&shape, page, BLOCK, &number, 1, &batch),
					 first == 3 ? GH_OK : GH_INVALID);
	}
	batch_drop(&batch);
	free(page);
}

/* --------------------------------------------------------------------- shapes */

static void
try_shape(Context *c, const char *what, uint32_t page_bytes, uint32_t natts,
		  GhPageAttribute attribute, uint32_t ncolumns, GhColumn column, GhStatus expected)
{
	static GhPageAttribute attributes[GH_ATTRIBUTE_MAX + 1];
	static GhColumn columns[GH_PROGRAM_VECTORS_MAX + 1];
	GhPageShape shape;
	GhError		error = {0};

	for (uint32_t i = 0; i < natts; i++)
		attributes[i] = attribute;
	for (uint32_t i = 0; i < ncolumns; i++)
	{
		columns[i] = column;
		columns[i].attribute = (uint16_t) (column.attribute + i);
	}
	CHECK_STATUS(c, what, gh_page_shape_init(&shape, page_bytes, natts, attributes, ncolumns,
											 columns, &error), expected);
	CHECK(c, expected == GH_OK || (error.status == expected && error.message[0] != '\0'),
		  "%s: no message", what);
}

static void
shapes(Context *c)
{
	const GhPageAttribute int4 = {4, 4};
	const GhPageAttribute text = {-1, 4};
	const GhColumn column = {.attribute = 1,.load = GH_LOAD_INT4};
	const GhColumn numeric = {.attribute = 1,.load = GH_LOAD_NUMERIC,.scale = GH_SCALE_MAX};
	const GhColumn fixed = {.attribute = 1,.load = GH_LOAD_FIXED,.length = 4};
	const GhColumn tid = {.load = GH_LOAD_TID};
	GhColumn	other;

	for (uint32_t bytes = 256; bytes <= 65536; bytes *= 2)
		try_shape(c, "page size", bytes, 1, int4, 1, column,
				  bytes >= GH_PAGE_BYTES_MIN && bytes <= GH_PAGE_BYTES_MAX ? GH_OK : GH_INVALID);
	try_shape(c, "page size + 8", 8200, 1, int4, 1, column, GH_INVALID);
	for (uint32_t n = GH_ATTRIBUTE_MAX - 1; n <= GH_ATTRIBUTE_MAX + 1; n++)
		try_shape(c, "attributes", 8192, n, int4, 1, column,
				  n <= GH_ATTRIBUTE_MAX ? GH_OK : GH_INVALID);
	for (uint32_t n = GH_PROGRAM_VECTORS_MAX - 1; n <= GH_PROGRAM_VECTORS_MAX + 1; n++)
		try_shape(c, "columns", 8192, n, int4, n, column,
				  n <= GH_PROGRAM_VECTORS_MAX ? GH_OK : GH_INVALID);
	try_shape(c, "no columns", 8192, 0, int4, 0, column, GH_OK);
	try_shape(c, "places", 8192, 0, int4, 1, tid, GH_OK);
	for (int field = 0; field < 4; field++)
	{
		other = tid;
		*(field == 0 ? &other.attribute : field == 1 ? &other.scale : &other.length) = field < 3;
		other.missing = field == 3 ? GH_MISSING_BACK : 0;
		try_shape(c, "places of an attribute", 8192, 1, int4, 1, other, GH_INVALID);
	}
	for (uint16_t n = 0; n < 5; n++)
	{
		other = column;
		other.attribute = n;
		try_shape(c, "attribute number", 8192, 3, int4, 1, other,
				  n >= 1 && n <= 3 ? GH_OK : GH_INVALID);
	}
	try_shape(c, "more columns than attributes", 8192, 3, int4, 4, column, GH_INVALID);
	for (uint8_t alignment = 0; alignment < 17; alignment++)
		try_shape(c, "alignment", 8192, 1, (GhPageAttribute) {4, alignment}, 1, column,
				  alignment == 1 || alignment == 2 || alignment == 4 || alignment == 8 ?
				  GH_OK : GH_INVALID);
	for (int16_t length = -3; length < 10; length++)
		for (uint8_t load = 0; load <= GH_LOAD_TID + 1; load++)
		{
			static const int16_t lengths[] = {0, 2, 4, 8, 4, 1, 4, 8, -1, -1, 4, 0, 0};

			other = load == GH_LOAD_FIXED ? fixed : column;
			other.load = load;
			try_shape(c, "length", 8192, 1, (GhPageAttribute) {length, 4}, 1, other,
					  length != 0 && length == lengths[load] ? GH_OK : GH_INVALID);
		}
	try_shape(c, "largest scale", 8192, 1, text, 1, numeric, GH_OK);
	other = numeric;
	other.scale++;
	try_shape(c, "scale", 8192, 1, text, 1, other, GH_INVALID);
	for (uint8_t missing = 0; missing < 3; missing++)
	{
		other = column;
		other.missing = missing;
		try_shape(c, "missing", 8192, 1, int4, 1, other,
				  missing <= GH_MISSING_BACK ? GH_OK : GH_INVALID);
	}
}

/* A cstring behind the last column does not matter, one before it does; no column twice. */
static void
shapes_of_three(Context *c)
{
	static const GhPageAttribute attributes[] = {{4, 4}, {-2, 1}, {4, 4}};
	static const GhColumn twice[] = {
		{.attribute = 1,.load = GH_LOAD_INT4}, {.attribute = 1,.load = GH_LOAD_FLOAT4}
	};
	static const GhColumn places[] = {
		{.load = GH_LOAD_TID}, {.attribute = 1,.load = GH_LOAD_INT4}, {.load = GH_LOAD_TID}
	};
	GhColumn	column = {.attribute = 1,.load = GH_LOAD_INT4};
	GhPageShape shape;

	CHECK_STATUS(c, "places", gh_page_shape_init(&shape, 8192, 1, attributes, 2, places, NULL), GH_OK);
	CHECK_U64(c, "the first column has them", shape.tids, 1);
	CHECK_STATUS(c, "places twice", gh_page_shape_init(&shape, 8192, 1, attributes, 3, places, NULL),
				 GH_INVALID);
	CHECK_STATUS(c, "twice", gh_page_shape_init(&shape, 8192, 1, attributes, 2, twice, NULL),
				 GH_INVALID);
	CHECK_STATUS(c, "cstring behind", gh_page_shape_init(&shape, 8192, 3, attributes, 1, &column,
														 NULL), GH_OK);
	column.attribute = 3;
	CHECK_STATUS(c, "cstring before", gh_page_shape_init(&shape, 8192, 3, attributes, 1, &column,
														 NULL), GH_INVALID);
}

const Test	page_tests[] = {
	{"pages: shapes", shapes, true},
	{"pages: shapes of several attributes", shapes_of_three, true},
	{"pages: what is broken is refused", broken_pages, true},
	{"pages: tuples off their alignment", shifted_tuples, true},
	{"pages: short tuples", short_tuples, true},
	{"pages: a varlena in the last byte", last_byte, true},
	{"pages: what was written is read", pages_written, true},
	{"pages: any bytes", pages_of_any_bytes, true},
	{NULL, NULL, false}
};
