/*
 * test_resize.c
 *		Growth and shrinking, the bounds of the filled factor, crowded tables.
 */
#include "conformance.h"

/* The i-th key of these tests, and its value. */
static uint64_t
key_of(const Context *c, uint64_t i)
{
	return mix(i * UINT64_C(0x9E3779B97F4A7C15) + c->seed);
}

static uint64_t
value_of(uint64_t key)
{
	return ~key;
}

/* Below this a table is too small for its filled factor to say much. */
#define SLOTS_THAT_COUNT 8192

/* Arrays for batches of keys numbered begin to end. */
typedef struct Range
{
	uint64_t   *keys;
	uint64_t   *values;
	uint64_t   *out;
	uint64_t	room;
} Range;

static void
range_make(Range *r, uint64_t room)
{
	r->room = room;
	r->keys = make_words(room);
	r->values = make_words(room);
	r->out = make_words(room);
}

static void
range_drop(Range *r)
{
	free(r->keys);
	free(r->values);
	free(r->out);
}

static bool
range_do(Context *c, GhTable *table, Range *r, GhOp op, uint64_t begin, uint64_t end,
		 uint64_t expected)
{
	GhRequest	request = {.op = op, .count = end - begin, .keys = r->keys};
	uint64_t	i;

	for (i = 0; i < end - begin; i++)
	{
		r->keys[i] = key_of(c, begin + i);
		r->values[i] = value_of(r->keys[i]);
	}
	if (op == GH_INSERT || op == GH_UPSERT)
		request.values_in = r->values;
	if (op == GH_FIND)
		request.values_out = r->out;
	if (!CHECK_STATUS(c, "batch", do_request(c, table, &request), GH_OK) ||
		!CHECK_U64(c, "matched, inserted and removed of the batch",
				   request.outcome.matched + request.outcome.inserted + request.outcome.removed, expected))
		return false;
	for (i = 0; op == GH_FIND && i < end - begin; i++)
	{
		if (!CHECK(c, r->out[i] == (expected > 0 ? r->values[i] : 0),
				   "key number %" PRIu64 " has a wrong value", begin + i))
			return false;
	}
	return true;
}

/* Keys begin to end are there, and with their values; or none is. */
static bool
range_find(Context *c, GhTable *table, Range *r, uint64_t begin, uint64_t end, bool there)
{
	bool		right = true;

	for (; begin < end && right; begin += r->room)
	{
		uint64_t	until = end - begin < r->room ? end : begin + r->room;

		right = range_do(c, table, r, GH_FIND, begin, until, there ? until - begin : 0);
	}
	return right;
}

static void
grow(Context *c, Subject *s, Range *r)
{
	uint64_t	checked = 0;
	uint64_t	batch = 1;
	uint64_t	i;

	for (i = 0; i < c->growth; i += batch)
	{
		GhTableStats stats;

		batch = i / 4 + 1 > r->room ? r->room : i / 4 + 1;
		if (batch > c->growth - i)
			batch = c->growth - i;
		if (!range_do(c, s->table, r, GH_INSERT, i, i + batch, batch) ||
			!check_shape(c, s->table, &stats))
			return;
		CHECK_U64(c, "keys", stats.keys, i + batch);
		if (stats.upsizes > 0 && stats.keys > SLOTS_THAT_COUNT)
			CHECK(c, stats.fill >= stats.fill_min, "fill %g is below fill_min after growth",
				  stats.fill);
		if (i + batch > 3 * checked)
		{
			checked = i + batch;
			if (!range_find(c, s->table, r, 0, i + batch, true) ||
				!range_do(c, s->table, r, GH_FIND, i + batch, i + batch + 100, 0))
				return;
		}
	}
	range_find(c, s->table, r, 0, c->growth, true);
}

static void
shrink(Context *c, Subject *s, Range *r, uint64_t slots_at_first)
{
	uint64_t	left = c->growth;
	uint64_t	checked = c->growth;

	while (left > 0)
	{
		uint64_t	batch = left / 4 + 1 > r->room ? r->room : left / 4 + 1;
		GhTableStats stats;
		uint64_t	slots;

		left -= batch;
		if (!range_do(c, s->table, r, GH_DELETE, left, left + batch, batch) ||
			!check_shape(c, s->table, &stats))
			return;
		CHECK_U64(c, "keys", stats.keys, left);
		slots = slots_of(&stats);
		if (slots > slots_at_first && slots > SLOTS_THAT_COUNT)
			CHECK(c, stats.fill >= stats.fill_min, "fill %g is below fill_min after deletes",
				  stats.fill);
		if (left < checked / 3)
		{
			checked = left;
			if (!range_find(c, s->table, r, 0, left, true) ||
				!range_do(c, s->table, r, GH_FIND, left, left + 100, 0))
				return;
		}
	}
}

static void
test_growth(Context *c)
{
	GhTableStats first;
	GhTableStats peak;
	GhTableStats last;
	uint64_t	slots;
	Subject		s;
	Range		r;

	if (!subject_open_kind(&s, c, KIND_MAP))
		return;
	range_make(&r, c->growth / 8 + 100);
	check_shape(c, s.table, &first);
	grow(c, &s, &r);
	check_shape(c, s.table, &peak);
	slots = slots_of(&first);
	shrink(c, &s, &r, slots);
	if (check_shape(c, s.table, &last))
	{
		CHECK_U64(c, "keys at the end", last.keys, 0);
		CHECK(c, peak.upsizes > 0 && last.downsizes > 0, "%" PRIu64 " upsizes, %" PRIu64
			  " downsizes", peak.upsizes, last.downsizes);
		CHECK(c, slots_of(&last) <= slots || slots_of(&last) <= SLOTS_THAT_COUNT,
			  "an empty table of %" PRIu64 " slots, at first %" PRIu64, slots_of(&last), slots);
		CHECK(c, last.bytes < peak.bytes, "no memory was given back");
		CHECK(c, last.bytes_peak >= peak.bytes, "bytes_peak fell");
	}
	/* and it is as good as new */
	grow(c, &s, &r);
	range_drop(&r);
	subject_close(&s);
}

/* A flush goes as far as fill_max allows, above fill_min too. */
static void
test_flush(Context *c)
{
	uint64_t	count = sized(c, 200000, 10000);
	uint32_t	d;
	Range		r;

	range_make(&r, count);
	for (d = GH_SUBTABLES_MIN; d <= GH_SUBTABLES_MAX; d++)
	{
		GhTableOptions options = options_of(c, type_of_kind(KIND_MAP));
		GhTableStats before;
		GhTableStats after;
		GhError		error = {0};
		uint64_t	left;
		Subject		s;

		options.subtables = d;
		options.seed = random_next(c);
		if (!subject_open(&s, c, &options))
			break;
		range_do(c, s.table, &r, GH_INSERT, 0, count, count);
		check_shape(c, s.table, &before);
		left = (uint64_t) ((before.fill_min + 0.01) * (double) slots_of(&before));
		range_do(c, s.table, &r, GH_DELETE, left, count, count - left);
		check_shape(c, s.table, &before);
		CHECK_U64(c, "downsizes above fill_min", before.downsizes, 0);
		CHECK_STATUS(c, "flush", c->engine->table_flush(s.table, &error), GH_OK);
		check_shape(c, s.table, &after);
		/* halving one of d equal subtables takes the most of the filled factor, of 2 a third */
		CHECK(c, after.downsizes > 0 && after.fill > 0.6 * after.fill_max &&
			  after.bytes < before.bytes, "%u subtables: %" PRIu64
			  " downsizes of a flush, which took the filled factor from %g to %g", (unsigned) d,
			  after.downsizes, before.fill, after.fill);
		range_find(c, s.table, &r, 0, left, true);
		range_find(c, s.table, &r, left, count, false);
		subject_close(&s);
	}
	range_drop(&r);
}

/* A table filled to fill_max, for every number of subtables. */
static void
test_high_fill(Context *c)
{
	uint64_t	count = sized(c, 300000, 5000);
	uint32_t	d;
	Range		r;

	range_make(&r, 4 * count);
	for (d = GH_SUBTABLES_MIN; d <= GH_SUBTABLES_MAX; d++)
	{
		GhTableOptions options = options_of(c, type_of_kind(KIND_MAP));
		GhTableStats stats;
		Subject		s;
		uint64_t	step = count / 100;
		uint64_t	n = 0;
		double		highest = 0;

		options.subtables = d;
		options.fill_max = GH_FILL_MAX_MAX;
		options.seed = random_next(c);
		options.capacity = count;
		if (!subject_open(&s, c, &options))
			break;
		check_shape(c, s.table, &stats);
		while (n < 3 * count && range_do(c, s.table, &r, GH_INSERT, n, n + step, step) &&
			   check_shape(c, s.table, &stats))
		{
			n += step;
			highest = stats.fill > highest ? stats.fill : highest;
		}
		CHECK(c, highest > 0.85, "%u subtables were filled to %g only", (unsigned) d, highest);
		range_find(c, s.table, &r, 0, n, true);
		subject_close(&s);
	}
	range_drop(&r);
}

/* A table made for n keys takes n keys as it is. */
static void
test_capacity(Context *c)
{
	uint64_t	most = sized(c, 1000000, 20000);
	uint64_t	capacity;
	Range		r;

	range_make(&r, most);
	for (capacity = 1; capacity <= most; capacity += capacity / 4 + 1 + random_below(c, capacity + 1))
	{
		GhTableOptions options = options_of(c, type_of_kind(KIND_MAP));
		GhTableStats made;
		GhTableStats full;
		GhTableStats empty;
		Subject		s;
		uint32_t	i;

		options.capacity = capacity;
		options.subtables = (uint32_t) (GH_SUBTABLES_MIN + random_below(c, 7));
		options.fill_max = c->on_host && random_below(c, 2) != 0 ? GH_FILL_MAX_MAX : 0;
		if (!subject_open(&s, c, &options))
			break;
		check_shape(c, s.table, &made);
		range_do(c, s.table, &r, GH_INSERT, 0, capacity, capacity);
		check_shape(c, s.table, &full);
		/* small tables may be unlucky with their pairs */
		if (capacity > SLOTS_THAT_COUNT)
			CHECK_U64(c, "upsizes within the capacity", full.upsizes, 0);
		range_do(c, s.table, &r, GH_DELETE, 0, capacity, capacity);
		check_shape(c, s.table, &empty);
		for (i = 0; i < made.subtables; i++)
			CHECK(c, empty.subtable[i].slots >= made.subtable[i].slots,
				  "the table shrank below its capacity");
		subject_close(&s);
	}
	range_drop(&r);
}

/* Random growth and shrinking of narrow bounds, on every kind and count. */
static void
test_breathing(Context *c)
{
	uint64_t	most = sized(c, 20000, 2000);
	uint64_t   *keys = make_words(most);
	uint32_t	d;
	Kind		kind;

	for (d = GH_SUBTABLES_MIN; d <= GH_SUBTABLES_MAX; d++)
	{
		for (kind = 0; kind < KINDS; kind++)
		{
			GhTableOptions options = options_of(c, type_of_kind(kind));
			GhTableStats stats;
			Subject		s;
			int			round;

			options.subtables = d;
			options.fill_max = 0.5 + 0.05 * (double) random_below(c, 10);
			options.fill_min = 0.97 * d / (d + 1) * options.fill_max;
			options.seed = random_next(c);
			if (!subject_open(&s, c, &options))
				break;
			for (round = 0; round < 12; round++)
			{
				uint64_t	count = random_below(c, most);
				uint64_t	from = random_below(c, most);
				uint64_t	i;

				for (i = 0; i < count; i++)
					keys[i] = (from + i) % most;
				do_checked(&s, random_below(c, 2) != 0 ? GH_DELETE :
						   kind == KIND_MULTI ? GH_ADD : GH_INSERT, keys, NULL, count);
				check_shape(c, s.table, &stats);
				check_content(&s);
			}
			subject_close(&s);
		}
	}
	free(keys);
}

/* Keys that differ in few bits must spread like any others. */
static void
test_patterned_keys(Context *c)
{
	static const uint64_t strides[] = {
		1, 2, 8, 64, 1 << 12, 1 << 20, UINT64_C(1) << 32, UINT64_C(1) << 40, UINT64_C(1) << 45,
		UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0x0101010101010101), UINT64_C(0x8000000040000000)
	};
	uint64_t	count = sized(c, 100000, 3000);
	uint64_t   *keys = make_words(count);
	size_t		i;

	for (i = 0; i < sizeof(strides) / sizeof(strides[0]); i++)
	{
		GhTableOptions options = options_of(c, type_of_kind(KIND_SET));
		GhTableStats stats;
		Subject		s;
		uint64_t	k;

		options.seed = i;
		options.capacity = count;
		if (!subject_open(&s, c, &options))
			break;
		for (k = 0; k < count; k++)
			keys[k] = k * strides[i];
		do_checked(&s, GH_INSERT, keys, NULL, count);
		check_shape(c, s.table, &stats);
		if (count > SLOTS_THAT_COUNT)
			CHECK(c, stats.upsizes == 0, "keys of stride %" PRIx64 " crowd the table", strides[i]);
		check_content(&s);
		subject_close(&s);
	}
	free(keys);
}

const Test	resize_tests[] = {
	{"growth and back", test_growth, false},
	{"flush above fill_min", test_flush, false},
	{"high fill", test_high_fill, false},
	{"capacity", test_capacity, false},
	{"breathing", test_breathing, false},
	{"patterned keys", test_patterned_keys, false},
	{NULL, NULL, false}
};
