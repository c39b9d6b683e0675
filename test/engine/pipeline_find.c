/*
 * pipeline_find.c
 *		What requests find in a table that a stage of the tests of pipelines made, against the model; and that they
 *		change nothing.
 */
#include "pipeline_model.h"

#define FINDS_MOST 3000			/* keys that are there, and as many others */

typedef struct KeyedRow
{
	uint64_t	key;
	uint64_t	row;			/* of the model */
} KeyedRow;

/* The rows of the model that have a key, by it. */
typedef struct Index
{
	const ModelTable *made;
	KeyedRow   *rows;
	uint64_t	count;
} Index;

static int
order_rows(const void *a, const void *b)
{
	uint64_t	x = ((const KeyedRow *) a)->key;
	uint64_t	y = ((const KeyedRow *) b)->key;

	return x < y ? -1 : x > y;
}

static void
index_rows(const ModelTable *made, Index *index)
{
	index->made = made;
	index->rows = make_memory((made->rows.count + 1) * sizeof(KeyedRow));
	index->count = 0;
	for (uint64_t i = 0; i < made->rows.count; i++)
		if (made->has_key[i])
			index->rows[index->count++] = (KeyedRow) {made->keys[i], i};
	qsort(index->rows, index->count, sizeof(KeyedRow), order_rows);
}

/* The first of the rows of a key, or of what would be behind it. */
static uint64_t
first_of(const Index *index, uint64_t key)
{
	uint64_t	from = 0;
	uint64_t	to = index->count;

	while (from < to)
	{
		uint64_t	middle = from + (to - from) / 2;

		if (index->rows[middle].key < key)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool
is_there(const Index *index, uint64_t key)
{
	uint64_t	at = first_of(index, key);

	return at < index->count && index->rows[at].key == key;
}

/* May a find of the key have this value?  It is that of one of the key's rows. */
static bool
may_be(const Index *index, uint64_t key, uint64_t value, uint64_t absent)
{
	for (uint64_t at = first_of(index, key); at < index->count && index->rows[at].key == key; at++)
	{
		const GhValue *kept = rows_at(&index->made->rows, index->rows[at].row);

		if (value == (kept->null ? absent : kept->low))
			return true;
	}
	return !is_there(index, key) && value == absent;
}

static uint32_t
expected_size(const ModelTable *made)
{
	bool		back = false;

	for (uint64_t i = 0; i < made->rows.count; i++)
		back |= made->back[i];
	return made->nkept == 1 && made->kept[0].value_class == GH_CLASS_INT && !back && !(made->all && made->several) ? 8 : 0;
}

/* Keys of the model, and such as most likely are none, in any order; *count of them. */
static uint64_t *
draw_keys(Context *c, const Index *index, uint64_t *count)
{
	uint64_t	n = index->count < FINDS_MOST ? index->count : FINDS_MOST;
	uint64_t   *keys = make_words(2 * n + 2);

	*count = 2 * n + 2;
	for (uint64_t i = 0; i < *count; i++)
		keys[i] = i % 2 == 0 && n > 0 ? index->rows[random_below(c, index->count)].key :
			random_next(c) >> random_below(c, 64);
	return keys;
}

static void
check_finds(Context *c, GhTable *table, const Index *index, uint32_t value_size)
{
	uint64_t	count;
	uint64_t   *keys = draw_keys(c, index, &count);
	uint64_t   *values = make_words(count);
	uint64_t   *counts = make_words(count);
	uint8_t    *flags = make_memory(count);
	GhRequest	find = {.op = GH_FIND,.count = count,.keys = keys,.flags_out = flags,.absent = random_next(c)};
	GhRequest	counting = {.op = GH_COUNT,.count = count,.keys = keys,.counts_out = counts};
	uint64_t	matched = 0;

	find.values_out = value_size > 0 ? values : NULL;
	if (CHECK_STATUS(c, "a find in a table that was made", do_request(c, table, &find), GH_OK) &&
		CHECK_STATUS(c, "a count in it", do_request(c, table, &counting), GH_OK))
		for (uint64_t i = 0; i < count && c->failures == 0; i++)
		{
			bool		there = is_there(index, keys[i]);

			matched += there;
			CHECK(c, flags[i] == there && counts[i] == there, "key %016" PRIx64 " is there: %d, %d, %" PRIu64, keys[i],
				  there, flags[i], counts[i]);
			CHECK(c, value_size == 0 || may_be(index, keys[i], values[i], find.absent), "key %016" PRIx64 " has the value "
				  "%016" PRIx64, keys[i], values[i]);
		}
	if (c->failures == 0)
		CHECK_U64(c, "keys that matched", find.outcome.matched, matched);
	free(keys);
	free(values);
	free(counts);
	free(flags);
}

static void
check_refused(Context *c, GhTable *table, uint32_t value_size)
{
	static const GhOp ops[] = {GH_INSERT, GH_UPSERT, GH_EXCHANGE, GH_DELETE, GH_MIXED, GH_FIND_ALL, GH_ADD};
	const GhEngine *engine = c->engine;
	uint64_t	word[2] = {0, 0};
	uint8_t		op = GH_DELETE;
	GhCursor	cursor = {0};
	uint64_t	count;
	GhError		error = {0};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
	{
		GhRequest	request = {
			.op = ops[i],.count = 1,.keys = word,.values_in = word,.values_out = word,.ops = &op,.offsets_out = word
		};

		CHECK_STATUS(c, op_name(ops[i]), do_request(c, table, &request), GH_INVALID);
	}
	if (value_size == 0)
	{
		GhRequest	request = {.op = GH_FIND,.count = 1,.keys = word,.values_out = word};

		CHECK_STATUS(c, "values of a set", do_request(c, table, &request), GH_INVALID);
	}
	CHECK_STATUS(c, "clear", engine->table_clear(table, &error), GH_INVALID);
	CHECK_STATUS(c, "reserve", engine->table_reserve(table, 1000, &error), GH_INVALID);
	CHECK_STATUS(c, "flush", engine->table_flush(table, &error), GH_INVALID);
	CHECK_STATUS(c, "export", engine->table_export(table, &cursor, 1, word, word, &count, &error), GH_INVALID);
}

/* A handle on the table: of a crew that of any of them, who is at work then. */
static GhTable *
any_handle(Context *c, const Stage *stage)
{
	Stage		other = {.crew = stage->crew};

	if (stage->crew == NULL)
		return stage->made.table;
	other.first_member = (uint32_t) random_below(c, stage->crew->count);
	crew_turn(&other, 0);
	return stage->made.tables[other.first_member];
}

void
stage_find(Context *c, const Stage *stage, uint32_t value_size)
{
	GhTable    *table = any_handle(c, stage);
	Index		index;

	CHECK_U64(c, "bytes of values that requests see", value_size, expected_size(&stage->made));
	if (c->failures > 0)
		return;
	check_refused(c, table, value_size);
	index_rows(&stage->made, &index);
	check_finds(c, table, &index, value_size);
	free(index.rows);
	crew_turn(stage, 0);
}
