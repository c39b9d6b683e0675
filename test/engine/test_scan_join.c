/*
 * test_scan_join.c
 *		Scans that make tables, and scans that join with these, against a model.
 */
#include "join_test.h"

#define TABLES_MAX 3

/* Sides, of which the last one makes groups and the others tables. */
typedef struct Sides
{
	Side	   *side[TABLES_MAX + 1];
	uint32_t	count;
} Sides;

static SideSize
draw_size(Context *c)
{
	uint64_t	drawn = random_below(c, 100);

	return drawn < 8 ? SIDE_EMPTY : drawn < 16 ? SIDE_ONE : drawn < 90 ? SIDE_FEW : SIDE_MANY;
}

static void
sides_draw(Context *c, Sides *sides, bool many)
{
	sides->count = 1 + (uint32_t) random_below(c, TABLES_MAX);
	for (uint32_t i = 0; i < sides->count; i++)
		sides->side[i] = side_draw(c, many ? SIDE_MANY : draw_size(c), true, sides->side, i);
	sides->side[sides->count] = side_draw(c, random_below(c, 10) == 0 ? draw_size(c) : SIDE_FEW,
										  false, sides->side, sides->count);
	sides->count++;
}

static void
sides_drop(Context *c, Sides *sides)
{
	for (uint32_t i = 0; i < sides->count; i++)
		side_drop(c, sides->side[i]);
}

/* Runs and checks one side after the other; false: one could not be run. */
static bool
sides_check(Context *c, Sides *sides, const GhEngine *engine)
{
	uint32_t	n = 0;
	bool		good = true;

	for (; n < sides->count && good; n++)
	{
		side_shrink(c, sides->side[n]);
		good = side_run(c, sides->side[n], engine);
		if (!good)
		{
			side_end(c, sides->side[n]);
			break;
		}
		side_model(c, sides->side[n]);
		good = !sides->side[n]->lacking;
		if (good)
			side_check(c, sides->side[n]);
	}
	/* tables outlive those that use them */
	for (uint32_t i = n; i-- > 0;)
	{
		side_end(c, sides->side[i]);
		side_forget(sides->side[i]);
	}
	return good;
}

static void
random_joins(Context *c)
{
	uint64_t	multiplied = 0;
	uint64_t	unmatched = 0;

	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 300, 40) && c->failures == 0; round++)
	{
		Sides		sides;

		sides_draw(c, &sides, false);
		(void) sides_check(c, &sides, c->engine);
		for (uint32_t i = 0; i < sides.count; i++)
		{
			multiplied += sides.side[i]->multiplied;
			unmatched += sides.side[i]->unmatched;
		}
		sides_drop(c, &sides);
	}
	CHECK(c, multiplied > 0 || c->failures > 0, "no row became several");
	CHECK(c, unmatched > 0 || c->failures > 0, "all rows of tables had a match");
}

/* ------------------------------------------------------------------ a table that grows */

/*
 * A side's program over the columns of its pages, and those that a join with a table fills, which lie
 * before the tuples' places; behind them it has a text.
 */
static void
make_program(Context *c, Side *side, const Side *pages, const Side *table)
{
	static const GhColumn tid = {.load = GH_LOAD_TID};
	Trial	   *trial = &side->trial;
	Parts		parts;
	GhError		error = {0};

	memset(&parts, 0, sizeof(parts));
	memcpy(parts.columns, gh_program_columns(pages->trial.program), SIDE_COLUMNS * sizeof(GhColumn));
	parts.ncolumns = SIDE_TID;
	for (uint32_t k = 0; table != NULL && k < table->trial.options.nkept; k++)
	{
		parts.columns[parts.ncolumns] = parts.columns[table->kept[k] < SIDE_COLUMNS ?
													  table->kept[k] : SIDE_TEXT];
		parts.columns[parts.ncolumns].attribute = (uint16_t) (parts.ncolumns + 1);
		side->fills[0][k].column = (uint16_t) parts.ncolumns++;
		side->fills[0][k].kept = (uint16_t) k;
	}
	parts.columns[parts.ncolumns++] = tid;
	(void) add_text(&parts, "a text", 6);
	trial->program = build_program(&parts);
	trial->options.program = trial->program;
	trial->options.program_bytes = trial->program->bytes;
	trial->options.joins_at = 0;
	CHECK_STATUS(c, "a program", gh_program_check_classes(trial->program, trial->program->bytes,
														  trial->classes, &error), GH_OK);
}

/*
 * Each row of many pages, that are read one by one, keeps a text, and finds it again: room for
 * rows and texts grows while there are some.
 */
static void
grown_table(Context *c)
{
	const GhScanPart part = {SIDE_INT8, 64, 0};
	Side	   *table;
	Side	   *groups;
	GhProgram  *drawn;

	if (no_scans(c))
		return;
	table = side_draw(c, SIDE_MANY, true, NULL, 0);
	drawn = table->trial.program;
	table->trial.cut = 1;
	table->trial.options.groups = 0;
	table->key.nparts = table->trial.options.nparts = 1;
	table->trial.options.nkept = 4;
	table->parts[0] = part;
	table->kept[0] = SIDE_COLUMNS;
	table->kept[1] = SIDE_TEXT;
	table->kept[2] = SIDE_NUMERIC;
	table->kept[3] = SIDE_INT8;
	groups = make_memory(sizeof(Side));
	memcpy(groups, table, sizeof(Side));
	make_program(c, table, table, NULL);
	groups->is_table = false;
	groups->trial.options.nparts = groups->trial.options.nkept = groups->trial.options.all_matches = 0;
	groups->trial.options.marks_matches = 0;
	groups->tables[0] = table;
	groups->joins[0].kind = GH_SCAN_LEFT;
	groups->joins[0].nparts = 1;
	groups->joins[0].parts = groups->join_parts[0];
	groups->join_parts[0][0] = part;
	groups->joins[0].nfills = 4;
	groups->joins[0].fills = groups->fills[0];
	groups->trial.options.joins = groups->joins;
	groups->trial.options.njoins = 1;
	make_program(c, groups, table, table);
	groups->trial.options.keys = groups->trial.keys;
	groups->trial.options.nkeys = 5;
	for (uint32_t k = 0; k < 5; k++)
	{
		uint16_t	vector = k < 4 ? groups->fills[0][k].column : SIDE_TID + 4;

		groups->trial.keys[k].vector = vector;
		groups->trial.keys[k].value_class = groups->trial.classes[vector];
	}
	if (side_run(c, table, c->engine))
	{
		side_model(c, table);
		side_check(c, table);
		if (side_run(c, groups, c->engine))
		{
			side_model(c, groups);
			side_check(c, groups);
			CHECK(c, groups->nrows > 100, "only %" PRIu64 " rows found theirs", groups->nrows);
			side_forget(groups);
		}
		side_end(c, groups);
		side_forget(table);
	}
	side_end(c, table);
	free(groups->trial.program);
	free(groups);
	free(drawn);
	side_drop(c, table);
}

/* ------------------------------------------------------------------ too little memory */

static void
limited_tables(Context *c)
{
	uint64_t	full = 0;

	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 60, 15) && c->failures == 0; round++)
	{
		Sides		sides;

		sides_draw(c, &sides, true);
		/* that of groups is limited elsewhere */
		for (uint32_t i = 0; i < sides.count; i++)
			if (sides.side[i]->is_table || sides.side[i]->trial.options.each_row)
				sides.side[i]->trial.options.memory_limit = 1 + random_below(c, 1000) *
					random_below(c, 200);
		(void) sides_check(c, &sides, c->engine);
		for (uint32_t i = 0; i + 1 < sides.count; i++)
			full += sides.side[i]->outcome.no_group > 0;
		sides_drop(c, &sides);
	}
	CHECK(c, full > 0 || c->failures > 0, "all tables had memory enough");
}

/* Each piece of memory that a table takes is refused once. */
static void
refused_memory(Context *c)
{
	Side	   *side;
	uint64_t	at = 1;

	if (no_scans(c))
		return;
	side = side_draw(c, SIDE_MANY, true, NULL, 0);
	side->trial.options.groups = 1;
	for (bool refused = true; refused && c->failures == 0; at++)
	{
		side->trial.fail_at = at;
		if (side_run(c, side, c->engine))
		{
			side_model(c, side);
			side_check(c, side);
			side_forget(side);
		}
		refused = side->state.failed || side->state.refused;
		side_end(c, side);
	}
	CHECK(c, at > 2 || c->failures > 0, "a table takes memory %" PRIu64 " times only", at);
	side_drop(c, side);
}

/* -------------------------------------------------------------- damaged pages */

/* The groups of both, by their records; those with floats of many bits have several. */
static void
compare_outcomes(Context *c, const Side *side, const ScanOutcome *got, const ScanOutcome *expected)
{
	CHECK_U64(c, "counted", got->counted, expected->counted);
	CHECK_U64(c, "passed", got->passed, expected->passed);
	for (uint32_t j = 0; j < GH_SCAN_JOINS_MAX; j++)
		CHECK_U64(c, "joined", got->joined[j], expected->joined[j]);
	CHECK_U64(c, "rows handed back", got->nback, expected->nback);
	CHECK(c, got->nback != expected->nback || got->nback == 0 ||
		  memcmp(got->back, expected->back, got->nback * sizeof(GhScanRow)) == 0,
		  "other rows are handed back");
	CHECK_U64(c, "groups", got->count, expected->count);
	for (uint32_t i = 0; i < got->count; i++)
	{
		const GhScanGroup *group = (const GhScanGroup *) got->records[i];
		const GhScanGroup *same = outcome_find(expected, group);

		CHECK(c, same != NULL && same->rows == group->rows &&
			  memcmp(record_states(&side->trial, same), record_states(&side->trial, group),
					 side->trial.options.naggregates * sizeof(GhAggregateState)) == 0,
			  "a group of %" PRIu64 " rows is another", group->rows);
	}
}

/* Both engines make the same of pages that may be any. */
static void
damaged_pages(Context *c)
{
	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 100, 15) && c->failures == 0; round++)
	{
		ScanOutcome expected[TABLES_MAX + 1];
		GhScanTable made[TABLES_MAX + 1];
		const GhEngine *engines[2] = {gh_cpu_engine_with_scans(), c->engine};
		Sides		sides;
		bool		good = true;

		sides_draw(c, &sides, false);
		for (uint32_t i = 0; i < sides.count; i++)
			trial_damage(c, &sides.side[i]->trial);
		for (int e = 0; e < 2 && good; e++)
		{
			uint32_t	n = 0;

			while (n < sides.count && good)
				good = side_run(c, sides.side[n++], engines[e]);
			for (uint32_t i = n; i-- > 0;)
			{
				Side	   *side = sides.side[i];

				if (e == 0)
				{
					expected[i] = side->outcome;
					made[i] = side->made;
					outcome_make(&side->outcome, &side->trial);
				}
				else
				{
					compare_outcomes(c, side, &side->outcome, &expected[i]);
					CHECK(c, memcmp(&made[i], &side->made, sizeof(made[i])) == 0,
						  "a table has other rows or keys");
					outcome_drop(&expected[i]);
				}
				side_end(c, side);
			}
		}
		sides_drop(c, &sides);
	}
}

const Test	scan_join_tests[] = {
	{"joins of scans: random", random_joins, false},
	{"joins of scans: a table that grows", grown_table, false},
	{"joins of scans: damaged pages", damaged_pages, false},
	{"joins of scans: tables without memory", limited_tables, false},
	{"joins of scans: memory that is refused", refused_memory, false},
	{NULL, NULL, false}
};
