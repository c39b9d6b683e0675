/*
 * test_reserve.c
 *		Room asked for, and a table that neither grows nor shrinks while it is in use.
 */
#include "conformance.h"

/* Small tables may be unlucky with their pairs of subtables. */
#define KEYS_THAT_COUNT 8192

/* Inserts keys numbered from to `to`; these are distinct. */
static void
store_numbers(Subject *s, uint64_t *keys, uint64_t from, uint64_t to, GhOp op)
{
	uint64_t	i;

	for (i = from; i < to; i++)
		keys[i - from] = mix(i + s->c->seed);
	if (s->key_size == 4)
	{
		/* a permutation of the 32-bit words, so that none comes twice */
		for (i = from; i < to; i++)
			keys[i - from] = (uint32_t) (i * 2654435761u);
	}
	do_checked(s, op, keys, NULL, to - from);
}

static void
try_reserve(Context *c, TableType type, uint64_t most, uint64_t *keys)
{
	GhTableOptions options = options_of(c, type);
	uint64_t	before = random_below(c, most / 4);
	uint64_t	room = most / 2 + random_below(c, most / 2);
	GhTableStats made;
	GhTableStats reserved;
	GhTableStats stats;
	GhError		error = {0};
	Subject		s;
	uint32_t	i;

	options.subtables = (uint32_t) (GH_SUBTABLES_MIN + random_below(c, 7));
	if (!subject_open(&s, c, &options))
		return;
	check_shape(c, s.table, &made);
	store_numbers(&s, keys, 0, before, storing_op(&s));
	CHECK_STATUS(c, "reserve", c->engine->table_reserve(s.table, room, &error), GH_OK);
	check_content(&s);
	check_shape(c, s.table, &reserved);
	/* less than there is room for changes nothing */
	CHECK_STATUS(c, "reserve less", c->engine->table_reserve(s.table, room / 2, &error), GH_OK);
	CHECK_STATUS(c, "reserve none", c->engine->table_reserve(s.table, 0, &error), GH_OK);
	store_numbers(&s, keys, before, room, storing_op(&s));
	check_shape(c, s.table, &stats);
	if (room > KEYS_THAT_COUNT)
		CHECK_U64(c, "upsizes within what was reserved", stats.upsizes, reserved.upsizes);
	check_content(&s);
	/* nor do keys that are there, however little room is left */
	store_numbers(&s, keys, 0, room, storing_op(&s));
	check_shape(c, s.table, &stats);
	if (room > KEYS_THAT_COUNT)
		CHECK_U64(c, "upsizes for keys that are there", stats.upsizes, reserved.upsizes);
	check_content(&s);
	store_numbers(&s, keys, 0, room, GH_DELETE);
	CHECK_STATUS(c, "flush", c->engine->table_flush(s.table, &error), GH_OK);
	check_shape(c, s.table, &stats);
	for (i = 0; i < stats.subtables; i++)
		CHECK(c, stats.subtable[i].slots >= reserved.subtable[i].slots,
			  "the table shrank below what was reserved");
	/* a clear is the end of it */
	subject_clear(&s);
	check_shape(c, s.table, &stats);
	CHECK_U64(c, "slots after clear", slots_of(&stats), slots_of(&made));
	store_numbers(&s, keys, 0, room, storing_op(&s));
	store_numbers(&s, keys, 0, room, GH_DELETE);
	check_shape(c, s.table, &stats);
	if (room > 8 * KEYS_THAT_COUNT)
		CHECK(c, slots_of(&stats) < slots_of(&reserved), "what was reserved outlived a clear");
	check_content(&s);
	subject_close(&s);
}

static void
test_reserve(Context *c)
{
	uint64_t	most = sized(c, 40000, 4000);
	uint64_t   *keys = make_words(4 * most);
	TableType	type;
	uint32_t	t;

	for (t = 0; type_at(c, t, &type); t++)
		try_reserve(c, type, type.value_size > 64 ? most / 2 : type.value_size == 8 ? 4 * most : most,
					keys);
	free(keys);
}

/* More than can be had leaves the table as it was. */
static void
test_reserve_too_much(Context *c)
{
	static const uint64_t huge[] = {UINT64_C(1) << 40, UINT64_C(1) << 50, UINT64_MAX / 3, UINT64_MAX};
	uint64_t	count = sized(c, 20000, 2000);
	uint64_t   *keys = make_words(count);
	Kind		kind;
	size_t		i;
	int			limited;

	for (kind = 0; kind < KINDS; kind++)
	{
		for (limited = 0; limited <= 1; limited++)
		{
			GhTableOptions options = options_of(c, type_of_kind(kind));
			GhTableStats before;
			GhTableStats after;
			Subject		s;

			options.memory_limit = limited ? (uint64_t) 64 << 20 : 0;
			if (!subject_open(&s, c, &options))
				break;
			/* an engine may try to get there step by step */
			s.state.room = (uint64_t) 32 << 20;
			store_numbers(&s, keys, 0, count, storing_op(&s));
			check_shape(c, s.table, &before);
			for (i = 0; i < sizeof(huge) / sizeof(huge[0]); i++)
			{
				GhError		error = {0};
				GhStatus	status = c->engine->table_reserve(s.table, huge[i], &error);

				CHECK(c, status == GH_LIMIT || (status == GH_NO_MEMORY && !limited),
					  "reserve of %" PRIu64 " keys: %s", huge[i], gh_status_name(status));
				CHECK(c, error.message[0] != '\0', "a failed reserve says nothing");
				check_shape(c, s.table, &after);
				CHECK(c, slots_of(&after) == slots_of(&before) && after.bytes == before.bytes,
					  "a failed reserve left %" PRIu64 " slots, there were %" PRIu64,
					  slots_of(&after), slots_of(&before));
				check_content(&s);
			}
			store_numbers(&s, keys, 0, count, GH_DELETE);
			check_content(&s);
			check_shape(c, s.table, &after);
			CHECK(c, slots_of(&after) < slots_of(&before) || count < KEYS_THAT_COUNT,
				  "what could not be reserved is kept free all the same");
			subject_close(&s);
		}
	}
	free(keys);
}

/* ------------------------------------------------------------- oscillation */

/* Keys numbered from *first to *end are in the table, whose filled factor is just that,
 * as far as it can be had without a resize. */
static void
fill_to(Subject *s, double fill, uint64_t *keys, uint64_t most, uint64_t *first, uint64_t *end)
{
	GhTableStats stats;

	*first = 0;
	*end = most / 2;
	store_numbers(s, keys, 0, *end, storing_op(s));
	while (check_shape(s->c, s->table, &stats) && stats.fill < fill && *end < most)
	{
		store_numbers(s, keys, *end, *end + most / 200, storing_op(s));
		*end += most / 200;
	}
	while (check_shape(s->c, s->table, &stats) && stats.fill > fill && *first < *end / 2)
	{
		store_numbers(s, keys, *first, *first + most / 400, GH_DELETE);
		*first += most / 400;
	}
}

/* Keys come until one subtable, just doubled, is larger than all others, or all have been
 * doubled: then the filled factor is as low as growing makes it. */
static void
fill_to_first(Subject *s, uint64_t *keys, uint64_t most, uint64_t *end)
{
	GhTableStats stats = {0};
	uint64_t	upsizes;
	uint32_t	larger = 0;
	uint32_t	i;

	*end = most / 2;
	store_numbers(s, keys, 0, *end, storing_op(s));
	check_shape(s->c, s->table, &stats);
	do
	{
		upsizes = stats.upsizes;
		store_numbers(s, keys, *end, *end + most / 200, storing_op(s));
		*end += most / 200;
		if (!check_shape(s->c, s->table, &stats))
			return;
		larger = 0;
		for (i = 0; i < stats.subtables; i++)
		{
			if (stats.subtable[i].slots * stats.subtables > slots_of(&stats))
				larger++;
		}
	} while ((stats.upsizes == upsizes || (larger != 1 && stats.upsizes - upsizes < stats.subtables)) &&
			 *end < 4 * most);
	CHECK(s->c, *end < 4 * most, "%u of %u subtables are doubled", (unsigned) larger,
		  (unsigned) stats.subtables);
}

/*
 * Old keys leave as new ones come: the table finds a size and stays there.  Few at a
 * time, from the filled factor on; or, with 0, many, from the lowest that growing makes.
 */
static void
oscillate(Subject *s, double fill, uint64_t *keys, uint64_t most)
{
	Context    *c = s->c;
	uint64_t	rounds = sized(c, 120, 30);
	GhTableStats warm = {0};
	GhTableStats stats;
	uint64_t	batch = most / 600 + 1;
	uint64_t	first = 0;
	uint64_t	end;
	uint64_t	round;

	if (fill > 0)
		fill_to(s, fill, keys, most, &first, &end);
	else
	{
		fill_to_first(s, keys, most, &end);
		batch = end / 50;
	}
	for (round = 0; round < rounds && c->failures == 0; round++)
	{
		if (round == rounds / 6)
			check_shape(c, s->table, &warm);
		if (round % 2 == 0)
			store_numbers(s, keys, end, end + batch, storing_op(s));
		store_numbers(s, keys, first, first + batch, GH_DELETE);
		if (round % 2 != 0)
			store_numbers(s, keys, end, end + batch, storing_op(s));
		end += batch;
		first += batch;
	}
	if (!check_shape(c, s->table, &stats))
		return;
	CHECK(c, stats.upsizes + stats.downsizes - warm.upsizes - warm.downsizes <= 2,
		  "%u subtables of %g to %g: at %g, batches of %" PRIu64 ", %" PRIu64
		  " upsizes and %" PRIu64 " downsizes of a steady table", (unsigned) stats.subtables,
		  stats.fill_min, stats.fill_max, fill, batch, stats.upsizes - warm.upsizes,
		  stats.downsizes - warm.downsizes);
	check_content(s);
}

/* From just above fill_min to fill_max, in steps of a quarter, and after growing. */
static void
try_steps(Context *c, const GhTableOptions *options, uint64_t *keys, uint64_t most)
{
	int			step;

	for (step = 0; step < 6 && c->failures == 0; step += c->reduced ? 5 : 1)
	{
		GhTableOptions seeded = *options;
		Subject		s;

		seeded.seed = random_next(c);
		if (!subject_open(&s, c, &seeded))
			return;
		oscillate(&s, step == 5 ? 0 : options->fill_min +
				  (options->fill_max - options->fill_min) * (0.02 + 0.245 * step), keys, most);
		subject_close(&s);
	}
}

static void
test_oscillation(Context *c)
{
	/* fill_max, and fill_min as a part of what d and fill_max allow */
	static const double bounds[][2] = {
		{0.85, 0.6}, {0.95, 0.5}, {0.95, 0.97}, {0.7, 0.97}, {0.85, 0.998}
	};
	uint64_t	most = sized(c, 20000, 3000);
	uint64_t   *keys = make_words(most);
	uint32_t	d;
	size_t		b;

	for (d = GH_SUBTABLES_MIN; d <= GH_SUBTABLES_MAX; d++)
	{
		for (b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++)
		{
			GhTableOptions options = options_of(c, type_of_kind((Kind) ((d + b) % KINDS)));

			if (c->reduced && (b + d) % 4 != 0)
				continue;
			options.subtables = d;
			options.fill_max = bounds[b][0];
			options.fill_min = bounds[b][1] * d / (d + 1) * options.fill_max;
			try_steps(c, &options, keys, most);
		}
	}
	free(keys);
}

const Test	reserve_tests[] = {
	{"reserve", test_reserve, false},
	{"reserve too much", test_reserve_too_much, false},
	{"oscillation", test_oscillation, false},
	{NULL, NULL, false}
};
