/*
 * test_scan_matches.c
 *		Joins of scans that make several rows of one: as many as may be, and one more; more than engines
 *		have places for at first; the same sums again.
 *
 * All rows of the table have one key, a constant, which is that of all rows that are joined.  Random
 * joins with several matches are in test_scan_join.c.
 */
#include "join_test.h"

#define LINES 5					/* of the side that is joined */

enum
{
	FILLED = SIDE_COLUMNS,		/* the table's float8, */
	FILLED_NUMBER,				/* int8, */
	FILLED_TEXT,				/* text */
	COLUMNS,
	CONSTANT = COLUMNS,			/* the key; of the table SIDE_COLUMNS */
	NUMBER,						/* FILLED_NUMBER as a float8 */
	DIFFERENT,					/* bits of SIDE_INT8 and FILLED_NUMBER, */
	SEVENTH,					/* the last three of them, and */
	QUOTIENT					/* seven divided by them: the row goes back where they are the same */
};

/* All columns, and a constant, which is no text. */
static void
make_program(Context *c, Side *side, bool joined, bool divides)
{
	static const uint8_t filled[] = {GH_LOAD_FLOAT8, GH_LOAD_INT8, GH_LOAD_TEXT};
	Trial	   *trial = &side->trial;
	GhValue		seven = {7, 0, 0};
	Parts		parts;
	GhError		error = {0};

	memset(&parts, 0, sizeof(parts));
	for (uint32_t i = 0; i < SIDE_COLUMNS; i++)
		parts.columns[i] = gh_program_columns(trial->program)[i];
	parts.ncolumns = SIDE_COLUMNS;
	for (uint32_t i = 0; joined && i < COLUMNS - FILLED; i++)
	{
		parts.columns[parts.ncolumns].load = filled[i];
		parts.columns[parts.ncolumns].attribute = (uint16_t) (parts.ncolumns + 1);
		parts.ncolumns++;
	}
	(void) add_constant(&parts, GH_CLASS_INT, seven);
	if (joined)
		(void) add_instruction(&parts, GH_OP_FROM_INT, GH_CLASS_FLOAT8, FILLED_NUMBER, 0, 0);
	parts.ntemporaries = joined;
	if (divides)
	{
		add_instruction(&parts, GH_OP_BIT_XOR, GH_CLASS_INT, SIDE_INT8, FILLED_NUMBER, 0)->result = DIFFERENT;
		add_instruction(&parts, GH_OP_BIT_AND, GH_CLASS_INT, DIFFERENT, CONSTANT, 0)->result = SEVENTH;
		add_instruction(&parts, GH_OP_DIV, GH_CLASS_INT, CONSTANT, SEVENTH, 0)->result = QUOTIENT;
		parts.instructions[parts.ninstructions - 1].width = 8;
		parts.ntemporaries = 4;
	}
	free(trial->program);
	trial->program = build_program(&parts);
	trial->options.program = trial->program;
	trial->options.program_bytes = trial->program->bytes;
	trial->options.joins_at = 0;
	CHECK_STATUS(c, "a program", gh_program_check_classes(trial->program, trial->program->bytes,
														  trial->classes, &error), GH_OK);
}

/* So many of the side's rows are asked for, in the order of pages, or all, where there are fewer: how many. */
static uint32_t
ask_for(Side *side, uint32_t rows)
{
	Trial	   *trial = &side->trial;
	uint32_t	wanted = rows;

	memset(trial->bitmaps, 0, (size_t) trial->npages * TRIAL_WORDS * sizeof(uint64_t));
	for (uint32_t p = 0; p < trial->npages; p++)
	{
		trial->pages[p].lines = gh_page_lines(trial->pages[p].page, trial->relation.page_bytes);
		trial->pages[p].bitmap = p * TRIAL_WORDS;
		for (uint32_t t = 0; t < trial->written[p].ntuples && rows > 0; t++, rows--)
		{
			uint32_t	bit = trial->written[p].numbers[t] - 1u;

			trial->bitmaps[p * TRIAL_WORDS + bit / 64] |= UINT64_C(1) << bit % 64;
		}
	}
	return wanted - rows;
}

/* A side all of whose rows can be read. */
static Side *
draw_side(Context *c, bool is_table)
{
	for (;;)
	{
		Side	   *side = side_draw(c, SIDE_MANY, is_table, NULL, 0);

		if (side->trial.relation.odd == 0 && side->trial.relation.shorter == 0)
			return side;
		side_drop(c, side);
	}
}

static Side *
draw_table(Context *c)
{
	Side	   *table = draw_side(c, true);
	GhScanOptions *options = &table->trial.options;

	make_program(c, table, false, false);
	table->key.nparts = options->nparts = 1;
	table->parts[0] = (GhScanPart) {SIDE_COLUMNS, 64, 0};
	options->nkept = 3;
	table->kept[0] = SIDE_FLOAT8;
	table->kept[1] = SIDE_INT8;
	table->kept[2] = SIDE_TEXT;
	options->all_matches = 1;
	return table;
}

/* Joined so many times with the table, the last time to fill columns. */
static Side *
draw_joined(Context *c, Side *table, uint32_t njoins, bool divides)
{
	Side	   *side = draw_side(c, false);
	GhScanOptions *options = &side->trial.options;

	make_program(c, side, true, divides);
	options->joins = side->joins;
	options->njoins = njoins;
	for (uint32_t j = 0; j < njoins; j++)
	{
		side->tables[j] = table;
		side->joins[j] = (GhScanJoin) {.kind = GH_SCAN_INNER,.nparts = 1,.parts = side->join_parts[j]};
		side->join_parts[j][0] = (GhScanPart) {CONSTANT, 64, 0};
	}
	side->joins[njoins - 1].fills = side->fills[0];
	side->joins[njoins - 1].nfills = 3;
	for (uint32_t f = 0; f < 3; f++)
		side->fills[0][f] = (GhScanFill) {(uint16_t) (FILLED + f), (uint16_t) f};
	options->nkeys = 2;
	side->trial.keys[0] = (GhScanKey) {FILLED_TEXT, GH_CLASS_TEXT, 0};
	side->trial.keys[1] = (GhScanKey) {SIDE_INT4, GH_CLASS_INT, 0};
	options->keys = side->trial.keys;
	options->each_row = 1;
	options->naggregates = 0;
	options->aggregates = side->trial.aggregates;
	return side;
}

static void
sum_up(Side *side)
{
	static const uint16_t arguments[] = {0, FILLED_NUMBER, SIDE_INT2};
	GhScanOptions *options = &side->trial.options;

	options->each_row = 0;
	options->naggregates = 3;
	for (uint32_t a = 0; a < 3; a++)
		side->trial.aggregates[a] = (GhAggregate) {.kind = a == 0 ? GH_AGGREGATE_COUNT_ROWS : GH_AGGREGATE_SUM,
			.value_class = a == 0 ? 0 : GH_CLASS_INT,.argument = arguments[a],.filter = GH_AGGREGATE_NO_FILTER};
}

/* The side's rows are what the model says, and so many. */
static void
check_side(Context *c, Side *side, uint64_t rows)
{
	if (side_run(c, side, c->engine))
	{
		side_model(c, side);
		side_check(c, side);
		CHECK_U64(c, "rows of a join", side->outcome.counted, rows);
		side_forget(side);
	}
	side_end(c, side);
}

/* All groups, or records, together have so many rows. */
static void
check_total(Context *c, const Side *side, uint64_t expected)
{
	uint64_t	rows = 0;

	for (uint32_t i = 0; i < side->outcome.count; i++)
		rows += ((const GhScanGroup *) side->outcome.records[i])->rows;
	CHECK_U64(c, "rows of all groups", rows, expected);
}

/* 64 matches twice are just as many rows as may be. */
static void
most_matches(Context *c)
{
	static const uint32_t matches[] = {1, 2, 33, 63, 64, 65};

	if (no_scans(c))
		return;
	for (uint32_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++)
	{
		uint32_t	n = matches[i];
		Side	   *table = draw_table(c);
		Side	   *side = draw_joined(c, table, 2, false);
		uint64_t	rows = n * n <= GH_SCAN_MATCHES_MAX ? LINES * n * n : 0;

		ask_for(table, n);
		ask_for(side, LINES);
		if (side_run(c, table, c->engine))
		{
			side_model(c, table);
			side_check(c, table);
			if (rows <= 5000)
			{
				check_side(c, side, rows);
				sum_up(side);
				check_side(c, side, rows);
			}
			else if (side_run(c, side, c->engine))
			{
				CHECK_U64(c, "rows of a join", side->outcome.counted, rows);
				CHECK_U64(c, "records", side->outcome.told, rows);
				CHECK_U64(c, "rows behind a join", side->outcome.joined[0], LINES * n);
				side_end(c, side);
			}
			else
				side_end(c, side);
			side_forget(table);
		}
		side_end(c, table);
		side_drop(c, side);
		side_drop(c, table);
	}
}

/* Does one of the rows that a tuple becomes go back? */
static bool
divides_by_zero(const Side *side, const Side *table, uint32_t p, uint32_t t)
{
	Written		value = trial_value(&side->trial, p, t, SIDE_INT8);

	for (uint64_t i = 0; i < table->nrows && value.kind == WRITTEN_VALUE; i++)
	{
		GhValue		match = table->rows[i].values[SIDE_INT8];

		if (!match.null && ((match.low ^ value.low) & 7) == 0)
			return true;
	}
	return false;
}

/* A row goes back with all that becomes of it, or not at all. */
static void
all_or_none(Context *c)
{
	uint64_t	nback = 0;
	uint64_t	ncounted = 0;

	if (no_scans(c))
		return;
	for (uint32_t round = 0; round < 12; round++)
	{
		Side	   *table = draw_table(c);
		Side	   *side = draw_joined(c, table, 1, true);
		uint64_t	back = 0;
		uint64_t	asked = 0;

		ask_for(table, 1 + round % 6);
		ask_for(side, 200);
		if (round % 2 == 1)
			sum_up(side);
		if (side_run(c, table, c->engine))
		{
			side_model(c, table);
			if (side_run(c, side, c->engine))
			{
				for (uint32_t p = 0; p < side->trial.npages; p++)
					for (uint32_t t = 0; t < side->trial.written[p].ntuples; t++)
						if (trial_expects(&side->trial, p, t) != 0)
						{
							asked++;
							back += divides_by_zero(side, table, p, t);
						}
				CHECK_U64(c, "rows handed back", side->outcome.nback, back);
				CHECK_U64(c, "rows", side->outcome.counted, (asked - back) * table->nrows);
				CHECK_U64(c, "rows behind the join", side->outcome.joined[0], (asked - back) * table->nrows);
				CHECK_U64(c, "rows before it", side->outcome.passed, asked - back);
				check_total(c, side, (asked - back) * table->nrows);
				nback += back;
				ncounted += asked - back;
			}
			side_end(c, side);
			side_forget(table);
		}
		side_end(c, table);
		side_drop(c, side);
		side_drop(c, table);
	}
	CHECK(c, (nback > 0 && ncounted > 0) || c->failures > 0, "all rows go back, or none");
}

/* A table of rows that a join has multiplied, and rows that are returned, without memory for all of them. */
static void
limited_matches(Context *c)
{
	uint64_t	none = 0;
	uint64_t	some = 0;

	if (no_scans(c))
		return;
	for (uint32_t round = 0; round < 40 && c->failures == 0; round++)
	{
		Side	   *table = draw_table(c);
		Side	   *side = draw_joined(c, table, 1, false);
		GhScanOptions *options = &side->trial.options;

		ask_for(table, 37);
		ask_for(side, 40);
		side->trial.cut = 1;
		options->memory_limit = 1 + random_below(c, 400000);
		side->is_table = round % 2 == 0;
		if (side->is_table)
		{
			options->each_row = options->nkeys = 0;
			side->key.nparts = options->nparts = 1;
			options->parts = side->parts;
			side->parts[0] = (GhScanPart) {FILLED_NUMBER, 64, 0};
			options->kept = side->kept;
			side->kept[0] = FILLED_TEXT;
			options->nkept = 1;
		}
		if (side_run(c, table, c->engine))
		{
			side_model(c, table);
			if (side_run(c, side, c->engine))
			{
				side_model(c, side);
				side_check(c, side);
				side_forget(side);
				none += side->outcome.no_group;
				some += side->outcome.counted;
			}
			side_end(c, side);
			side_forget(table);
		}
		side_end(c, table);
		side_drop(c, side);
		side_drop(c, table);
	}
	CHECK(c, (none > 0 && some > 0) || c->failures > 0, "all rows had memory, or none");
}

/* Each way to do without all matches: where they are not asked for, or rows are listed, rows go back. */
static void
one_match(Context *c)
{
	if (no_scans(c))
		return;
	for (int way = 0; way < 3; way++)
	{
		Side	   *table = draw_table(c);
		Side	   *side = draw_joined(c, table, 1, false);
		GhScanOptions *options = &side->trial.options;

		ask_for(table, way == 2 ? 1 : 3);
		ask_for(side, LINES);
		table->trial.options.all_matches = way != 0;
		options->lists_rows = way > 0;
		if (options->lists_rows)
			options->each_row = options->nkeys = 0;
		if (side_run(c, table, c->engine))
		{
			GhScan	   *scan;
			GhError		error = {0};
			GhHost		host;

			outcome_make(&side->outcome, &side->trial);
			host_init(&side->state, &host);
			side->joins[0].table = table->scan;
			if (CHECK_STATUS(c, "a scan", c->engine->scans->create(&host, options, &scan, &error), GH_OK))
			{
				(void) trial_requests(c, &side->trial, c->engine->scans, scan, side->trial.pages,
									  side->trial.bitmaps, &side->outcome);
				CHECK_U64(c, "rows", side->outcome.counted, way == 2 ? LINES : 0);
				CHECK_U64(c, "rows that are told", side->outcome.nback, LINES);
				c->engine->scans->destroy(scan);
			}
			outcome_drop(&side->outcome);
		}
		side_end(c, table);
		side_drop(c, side);
		side_drop(c, table);
	}
}

/* Hundreds of rows of each line, more than anybody expects: made of all that there are, twice. */
static void
many_matches(Context *c)
{
	Side	   *table;
	Side	   *side;
	char	   *first = NULL;
	size_t		first_bytes = 0;
	uint64_t	rows;

	if (no_scans(c))
		return;
	table = draw_table(c);
	side = draw_joined(c, table, 1, false);
	/* small pages have fewer */
	rows = (uint64_t) ask_for(table, 700) * ask_for(side, 1000);
	side->trial.options.nkeys = 0;
	sum_up(side);
	side->trial.aggregates[1] = (GhAggregate) {.kind = GH_AGGREGATE_SUM,.value_class = GH_CLASS_FLOAT8,
		.argument = NUMBER,.filter = GH_AGGREGATE_NO_FILTER};
	side->trial.cut = 7;
	for (int times = 0; times < 3; times++)
	{
		if (side_run(c, table, c->engine))
		{
			if (side_run(c, side, c->engine) && CHECK_U64(c, "groups", side->outcome.count, 1))
			{
				const GhScanGroup *group = (const GhScanGroup *) side->outcome.records[0];

				CHECK_U64(c, "rows", group->rows, rows);
				if (first == NULL)
				{
					first = make_memory(first_bytes = group->bytes);
					memcpy(first, group, first_bytes);
				}
				CHECK(c, first_bytes == group->bytes && memcmp(first, group, first_bytes) == 0,
					  "sums of the same rows differ");
			}
			side_end(c, side);
		}
		side_end(c, table);
	}
	free(first);
	side_drop(c, side);
	side_drop(c, table);
}

/* The side makes a table of the rows that it becomes, each row's with its place for a key. */
static void
make_places(Side *side)
{
	GhScanOptions *options = &side->trial.options;

	side->is_table = true;
	options->each_row = options->nkeys = options->naggregates = 0;
	options->groups = 0;
	side->key.nparts = options->nparts = 1;
	options->parts = side->parts;
	side->parts[0] = (GhScanPart) {SIDE_TID, 64, 0};
	options->kept = side->kept;
	options->nkept = COLUMNS - FILLED;
	for (uint32_t f = 0; f < options->nkept; f++)
		side->kept[f] = (uint16_t) (FILLED + f);
	options->all_matches = options->marks_matches = 1;
}

/* The same rows, some of which are asked for, joined with that table by their places. */
static void
join_places(Side *side, Side *places, GhScanJoinKind kind, uint32_t rows)
{
	GhScanOptions *options = &side->trial.options;

	*side = *places;
	side->is_table = false;
	options->nparts = options->nkept = options->all_matches = options->marks_matches = 0;
	side->tables[0] = places;
	side->joins[0].kind = kind;
	side->joins[0].parts = side->join_parts[0];
	side->joins[0].fills = side->fills[0];
	side->join_parts[0][0] = (GhScanPart) {SIDE_TID, 64, 0};
	options->joins = side->joins;
	options->keys = side->trial.keys;
	options->aggregates = side->trial.aggregates;
	sum_up(side);
	(void) ask_for(side, rows);
}

/* However many rows find their places: each row of the table comes once. */
static void
check_places(Context *c, Side *side, uint64_t rows, uint64_t matched, const GhAggregateState *sum)
{
	if (side_run(c, side, c->engine) && CHECK(c, side->asked, "rows went back"))
	{
		CHECK_U64(c, "rows", side->outcome.counted, rows);
		CHECK_U64(c, "rows behind the join", side->outcome.joined[0], rows);
		CHECK_U64(c, "rows that came to it", side->outcome.passed, matched);
		check_total(c, side, rows);
		if (side->trial.options.naggregates > 0 && side->trial.options.nkeys == 0 && side->outcome.count == 1)
			CHECK(c, memcmp(&record_states(&side->trial, (const GhScanGroup *) side->outcome.records[0])[1], sum,
							sizeof(*sum)) == 0, "the sum over all rows is another");
	}
	side_end(c, side);
}

/* More rows without a match than a device looks at in one go. */
static void
many_unmatched(Context *c)
{
	static const uint32_t found[] = {0, 1, 100, 200};
	GhAggregateState sum = {0};
	Side	   *table;
	Side	   *places;
	Side	   *side;
	uint64_t	rows;
	uint32_t	nplaces;

	if (no_scans(c))
		return;
	table = draw_table(c);
	places = draw_joined(c, table, 1, false);
	side = make_memory(sizeof(Side));
	rows = ask_for(table, (uint32_t) sized(c, 700, 60));
	nplaces = ask_for(places, 200);
	rows *= nplaces;
	/* the sum over all of them, without that table */
	*side = *places;
	side->joins[0].parts = side->join_parts[0];
	side->joins[0].fills = side->fills[0];
	side->trial.options.joins = side->joins;
	side->trial.options.aggregates = side->trial.aggregates;
	side->trial.options.nkeys = 0;
	sum_up(side);
	if (side_run(c, table, c->engine))
	{
		if (side_run(c, side, c->engine) && CHECK_U64(c, "groups", side->outcome.count, 1))
			sum = record_states(&side->trial, (const GhScanGroup *) side->outcome.records[0])[1];
		side_end(c, side);
		for (uint32_t i = 0; i < 8 && c->failures == 0; i++)
		{
			make_places(places);
			(void) ask_for(places, nplaces);
			if (side_run(c, places, c->engine))
			{
				uint32_t	matched = found[i % 4] < nplaces ? found[i % 4] : nplaces;

				CHECK_U64(c, "rows of a table", places->made.rows, rows);
				join_places(side, places, i < 4 ? GH_SCAN_RIGHT : GH_SCAN_FULL, matched);
				side->trial.options.each_row = i == 6;
				side->trial.options.nkeys = i == 6 || i == 3 ? 2 : 0;
				side->trial.options.naggregates = i == 6 ? 0 : 3;
				check_places(c, side, rows, matched, &sum);
			}
			side_end(c, places);
		}
	}
	side_end(c, table);
	free(side);
	side_drop(c, places);
	side_drop(c, table);
}

/* Rows that a join before has made several of mark what they find, too. */
static void
marks_of_several(Context *c)
{
	if (no_scans(c))
		return;
	for (uint32_t i = 0; i < 6 && c->failures == 0; i++)
	{
		uint32_t	matches = 1 + (uint32_t) random_below(c, 60);
		Side	   *table = draw_table(c);
		Side	   *places = draw_joined(c, table, 1, false);
		Side	   *side = make_memory(sizeof(Side));
		uint32_t	nplaces;

		matches = ask_for(table, matches);
		nplaces = ask_for(places, 50);
		make_places(places);
		if (side_run(c, table, c->engine) && side_run(c, places, c->engine))
		{
			uint32_t	found = (uint32_t) random_below(c, nplaces + 1);
			uint64_t	rows = ((uint64_t) found * matches + nplaces - found) * matches;

			join_places(side, places, i % 2 == 0 ? GH_SCAN_RIGHT : GH_SCAN_FULL, found);
			side->joins[1] = side->joins[0];
			side->tables[1] = places;
			side->joins[0] = places->joins[0];
			side->joins[0].kind = GH_SCAN_INNER;
			side->joins[0].nfills = 0;
			side->joins[0].parts = side->join_parts[1];
			side->join_parts[1][0] = (GhScanPart) {CONSTANT, 64, 0};
			side->tables[0] = table;
			side->trial.options.njoins = 2;
			if (side_run(c, side, c->engine) && CHECK(c, side->asked, "rows went back"))
			{
				CHECK_U64(c, "rows", side->outcome.counted, rows);
				CHECK_U64(c, "rows behind the first join", side->outcome.joined[0], found * matches);
				CHECK_U64(c, "rows behind the last one", side->outcome.joined[1], rows);
				check_total(c, side, rows);
			}
			side_end(c, side);
		}
		side_end(c, places);
		side_end(c, table);
		free(side);
		side_drop(c, places);
		side_drop(c, table);
	}
}

const Test	scan_matches_tests[] = {
	{"joins of scans: as many matches as may be", most_matches, false},
	{"joins of scans: all matches or none", all_or_none, false},
	{"joins of scans: matches without memory", limited_matches, false},
	{"joins of scans: one match of several", one_match, false},
	{"joins of scans: many matches", many_matches, false},
	{"joins of scans: many rows without a match", many_unmatched, false},
	{"joins of scans: marks of several rows", marks_of_several, false},
	{NULL, NULL, false}
};
