/*
 * test_random.c
 *		Random sequences of operations on random tables.
 */
#include "conformance.h"

#define BATCH_MOST 3000

static GhOp
random_op(Context *c, Kind kind)
{
	static const GhOp ops[KINDS][8] = {
		{GH_INSERT, GH_INSERT, GH_UPSERT, GH_FIND, GH_DELETE, GH_DELETE, GH_INSERT, GH_FIND},
		{GH_INSERT, GH_UPSERT, GH_EXCHANGE, GH_EXCHANGE, GH_FIND, GH_DELETE, GH_DELETE, GH_UPSERT},
		{GH_ADD, GH_ADD, GH_ADD, GH_FIND, GH_FIND_ALL, GH_DELETE, GH_ADD, GH_DELETE}
	};

	return ops[kind][random_below(c, 8)];
}

/* Mostly small batches, some large. */
static uint64_t
random_count(Context *c)
{
	return random_below(c, random_below(c, 4) != 0 ? 100 : BATCH_MOST + 1);
}

static void
run_sequence(Context *c, Kind kind, uint64_t operations)
{
	GhTableOptions options = options_of(c, kind);
	uint64_t	keys[BATCH_MOST];
	uint64_t	universe = UINT64_C(1) << (1 + random_below(c, 15));
	bool		scattered = random_below(c, 2) != 0;
	uint64_t	done = 0;
	uint64_t	checked = 0;
	Subject		s;

	options.subtables = (uint32_t) (GH_SUBTABLES_MIN +
									random_below(c, GH_SUBTABLES_MAX - GH_SUBTABLES_MIN + 1));
	options.fill_max = 0.7 + 0.05 * (double) random_below(c, 6);
	options.fill_min = 0.1 + 0.1 * (double) random_below(c, 3);
	options.capacity = random_below(c, 2) != 0 ? 0 : random_below(c, 2 * universe);
	options.seed = random_next(c);
	if (!subject_open(&s, c, &options))
		return;
	while (done < operations && c->failures == 0)
	{
		uint64_t	count = random_count(c);
		uint64_t	from = random_next(c);
		bool		in_a_row = random_below(c, 3) == 0;
		GhTableStats stats;
		GhError		error;
		uint64_t	i;

		for (i = 0; i < count; i++)
		{
			uint64_t	k = (in_a_row ? from + i : random_next(c)) % universe;

			keys[i] = scattered ? mix(k) : k;
		}
		do_checked(&s, random_op(c, kind), keys, NULL, count);
		if (random_below(c, 500) == 0)
		{
			CHECK_STATUS(c, "clear", c->engine->table_clear(s.table, &error), GH_OK);
			model_clear(s.model);
		}
		done += count;
		if (done - checked > s.model->count * 4 + 20000)
		{
			checked = done;
			check_content(&s);
			check_shape(c, s.table, &stats);
		}
	}
	check_content(&s);
	subject_close(&s);
}

static void
test_random_sequences(Context *c)
{
	uint64_t	rounds = sized(c, 8, 2);
	uint64_t	operations = sized(c, 100000, 5000);
	Kind		kind;
	uint64_t	round;

	for (round = 0; round < rounds; round++)
	{
		for (kind = 0; kind < KINDS; kind++)
			run_sequence(c, kind, operations);
	}
	if (c->failures > 0)
		printf("  repeat with --seed %" PRIu64 "\n", c->seed);
}

const Test	random_tests[] = {
	{"random sequences", test_random_sequences, false},
	{NULL, NULL, false}
};
