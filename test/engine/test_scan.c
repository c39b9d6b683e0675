/*
 * test_scan.c
 *		Scans: the engine against the CPU engine, and that against what was written.
 */
#include "scan_test.h"

#include <float.h>
#include <math.h>

bool
no_scans(Context *c)
{
	if (c->engine->scans != NULL)
		return false;
	(void) CHECK(c, false, "the engine has no scans");
	return true;
}

/* ------------------------------------------------------------------ comparison */

static double
greater(double a, double b)
{
	return a > b ? a : b;
}

/* Sums of so many floats that are at most so large differ by less, in whatever order. */
static bool
near(uint64_t got, uint64_t expected, double tolerance)
{
	double		a = gh_to_double(got);
	double		b = gh_to_double(expected);

	return isnan(b) ? isnan(a) : a == b || fabs(a - b) <= tolerance;
}

/* Least and greatest value are two and one aggregates before a sum of floats. */
static bool
same_float_sum(const GhAggregateState *got, const GhAggregateState *expected)
{
	double		most = greater(fabs(gh_to_double(expected[-2].low)),
							   fabs(gh_to_double(expected[-1].low)));
	double		n = (double) expected->count;
	double		error = isfinite(most) ? n * n * DBL_EPSILON : 0;

	return near(got->low, expected->low, error * most + n * DBL_TRUE_MIN) &&
		near(got->squares_low, expected->squares_low, 64 * error * most * most + DBL_MIN);
}

static bool
same_state(const GhAggregate *aggregate, const GhAggregateState *got,
		   const GhAggregateState *expected)
{
	bool		floats = gh_class_is_float(aggregate->value_class);

	if (got->count != expected->count || got->count == 0 ||
		aggregate->kind <= GH_AGGREGATE_COUNT || !floats)
		return memcmp(got, expected, sizeof(*got)) == 0;
	if (gh_scan_is_sum(aggregate))
		return same_float_sum(got, expected);
	return gh_scan_float_code(got->low) == gh_scan_float_code(expected->low);
}

static void
check_group(Context *c, const Trial *trial, const GhScanGroup *got, const GhScanGroup *expected)
{
	if (!CHECK(c, expected != NULL, "a group of %" PRIu64 " rows is none", got->rows))
		return;
	CHECK_U64(c, "rows of a group", got->rows, expected->rows);
	for (uint32_t a = 0; a < trial->options.naggregates; a++)
	{
		const GhAggregateState *is = &record_states(trial, got)[a];
		const GhAggregateState *should = &record_states(trial, expected)[a];

		CHECK(c, same_state(&trial->aggregates[a], is, should), "aggregate %u (kind %d, class %d) is "
			  "%" PRIu64 ": %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %016" PRIx64 ", expected %"
			  PRIu64 ": %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %016" PRIx64, a,
			  trial->aggregates[a].kind, trial->aggregates[a].value_class, is->count, is->high,
			  is->low, is->squares_high, is->squares_low, should->count, should->high, should->low,
			  should->squares_high, should->squares_low);
	}
}

static void
check_groups(Context *c, const ScanOutcome *got, const ScanOutcome *expected)
{
	CHECK_U64(c, "counted rows", got->counted, expected->counted);
	CHECK_U64(c, "visible tuples", got->seen + got->nback, expected->seen + expected->nback);
	CHECK_U64(c, "groups", got->count, expected->count);
	for (uint32_t i = 0; i < got->count; i++)
	{
		const GhScanGroup *group = (const GhScanGroup *) got->records[i];

		check_group(c, got->trial, group, outcome_find(expected, group));
	}
}

static void
check_back(Context *c, const ScanOutcome *got, const ScanOutcome *expected)
{
	CHECK_U64(c, "rows handed back", got->nback, expected->nback);
	for (uint64_t i = 0; i < got->nback && i < expected->nback; i++)
		if (!CHECK(c, got->back[i].page == expected->back[i].page &&
				   got->back[i].line == expected->back[i].line, "row %u of page %u is handed back, "
				   "expected row %u of page %u", got->back[i].line, got->back[i].page,
				   expected->back[i].line, expected->back[i].page))
			return;
}

void
compare_engines(Context *c, const Trial *trial)
{
	ScanOutcome expected;
	ScanOutcome got;

	if (trial_run(c, trial, gh_cpu_engine_with_scans(), &expected))
	{
		CHECK_U64(c, "rows without a group", expected.no_group, 0);
		CHECK_U64(c, "records of the CPU's groups", expected.told, expected.count);
		if (trial_run(c, trial, c->engine, &got))
		{
			check_back(c, &got, &expected);
			check_groups(c, &got, &expected);
		}
		outcome_drop(&got);
	}
	outcome_drop(&expected);
}

/* ---------------------------------------------------------------- random trials */

static void
random_trials(Context *c, bool damaged)
{
	uint64_t	rounds = sized(c, 400, 60);

	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < rounds && c->failures == 0; round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));

		memset(trial, 0, sizeof(*trial));
		relation_draw(c, &trial->relation);
		trial_pages(c, trial, 1 + (uint32_t) random_below(c, random_below(c, 5) == 0 ?
														  TRIAL_PAGES_MAX : 4));
		trial_ask(c, trial);
		trial_hint(c, trial);
		if (damaged)
			trial_damage(c, trial);
		trial_program(c, trial, (uint32_t) random_below(c, 16));
		trial_keys(c, trial, (uint32_t) random_below(c, random_below(c, 5) == 0 ? 9 : 4));
		trial_aggregates(c, trial, (uint32_t) random_below(c, 12));
		trial->options.groups = random_below(c, 2) * random_below(c, 10000);
		compare_engines(c, trial);
		trial_drop(c, trial);
		free(trial);
	}
}

static void
undamaged_pages(Context *c)
{
	random_trials(c, false);
}

static void
damaged_pages(Context *c)
{
	random_trials(c, true);
}

/* --------------------------------------------------------------- what was written */

static void
count_columns(Trial *trial)
{
	const GhProgram *program = trial->program;

	trial->options.aggregates = trial->aggregates;
	trial->aggregates[0].kind = GH_AGGREGATE_COUNT_ROWS;
	trial->aggregates[0].filter = GH_AGGREGATE_NO_FILTER;
	trial->options.naggregates = 1;
	for (uint32_t i = 0; i < program->ncolumns && trial->options.naggregates < TRIAL_AGGREGATES_MAX; i++)
	{
		GhAggregate *aggregate = &trial->aggregates[trial->options.naggregates++];

		aggregate->kind = trial->classes[i] == GH_CLASS_INT ? GH_AGGREGATE_SUM : GH_AGGREGATE_COUNT;
		aggregate->value_class = trial->classes[i];
		aggregate->argument = (uint16_t) i;
		aggregate->filter = GH_AGGREGATE_NO_FILTER;
	}
}

Written
trial_value(const Trial *trial, uint32_t p, uint32_t t, uint32_t column)
{
	const GhColumn *is = &gh_program_columns(trial->program)[column];
	Written		place = {WRITTEN_VALUE, trial->pages[p].block, 0};

	place.low = place.low * 65536 + trial->written[p].numbers[t];
	return is->load == GH_LOAD_TID ? place : trial->written[p].values[t][is->attribute - 1];
}

int
trial_expects(const Trial *trial, uint32_t p, uint32_t t)
{
	const GhScanPage *page = &trial->pages[p];
	uint32_t	bit = trial->written[p].numbers[t] - 1u;

	if (bit >= page->lines || (page->bitmap != GH_SCAN_ALL &&
							   (trial->bitmaps[page->bitmap + bit / 64] >> bit % 64 & 1) == 0))
		return 0;
	if (page->hinted && hinted_tuple(trial, p, t) != GH_SCAN_VISIBLE)
		return hinted_tuple(trial, p, t) == GH_SCAN_UNTOLD ? 2 : 0;
	for (uint32_t i = 0; i < trial->program->ncolumns; i++)
	{
		const GhColumn *column = &gh_program_columns(trial->program)[i];
		WrittenKind kind = trial_value(trial, p, t, i).kind;

		if (kind == WRITTEN_UNREADABLE ||
			(kind == WRITTEN_MISSING && column->missing == GH_MISSING_BACK))
			return 2;
	}
	return 1;
}

static void
add_written(const Trial *trial, uint32_t p, uint32_t t, GhAggregateState *states)
{
	states[0].count++;
	for (uint32_t a = 1; a < trial->options.naggregates; a++)
	{
		Written		value = trial_value(trial, p, t, trial->aggregates[a].argument);
		__int128	sum = (__int128) ((unsigned __int128) states[a].high << 64 | states[a].low);

		if (value.kind != WRITTEN_VALUE && value.kind != WRITTEN_TEXT)
			continue;
		states[a].count++;
		if (trial->aggregates[a].kind != GH_AGGREGATE_SUM)
			continue;
		sum += (int64_t) value.low;
		states[a].low = (uint64_t) sum;
		states[a].high = (uint64_t) (sum >> 64);
	}
}

static void
check_written(Context *c, const Trial *trial, const ScanOutcome *got)
{
	GhAggregateState expected[TRIAL_AGGREGATES_MAX] = {{0, 0, 0, 0, 0}};
	uint64_t	nback = 0;

	for (uint32_t p = 0; p < trial->npages; p++)
		for (uint32_t t = 0; t < trial->written[p].ntuples; t++)
		{
			int			row = trial_expects(trial, p, t);

			if (row == 1)
				add_written(trial, p, t, expected);
			if (row == 2 && CHECK(c, nback < got->nback, "too few rows are handed back"))
			{
				CHECK(c, got->back[nback].page == p &&
					  got->back[nback].line == trial->written[p].numbers[t],
					  "row %u of page %u is handed back", got->back[nback].line,
					  got->back[nback].page);
				nback++;
			}
		}
	CHECK_U64(c, "rows handed back", got->nback, nback);
	CHECK_U64(c, "counted", got->counted, expected[0].count);
	CHECK_U64(c, "visible tuples", got->seen, expected[0].count);
	CHECK_U64(c, "groups", got->count, expected[0].count > 0);
	if (got->count == 1)
		CHECK(c, memcmp(record_states(trial, (const GhScanGroup *) got->records[0]), expected,
						trial->options.naggregates * sizeof(GhAggregateState)) == 0,
			  "counts and sums are others than those of what was written");
}

/* All rows of the pages, one group: counts and sums. */
static void
what_was_written(Context *c)
{
	uint64_t	rounds = sized(c, 200, 40);

	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < rounds && c->failures == 0; round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));
		ScanOutcome got;

		memset(trial, 0, sizeof(*trial));
		relation_draw(c, &trial->relation);
		trial_pages(c, trial, 1 + (uint32_t) random_below(c, 6));
		trial_ask(c, trial);
		trial_hint(c, trial);
		trial_program(c, trial, 0);
		count_columns(trial);
		if (trial_run(c, trial, c->engine, &got))
			check_written(c, trial, &got);
		outcome_drop(&got);
		trial_drop(c, trial);
		free(trial);
	}
}

/* ------------------------------------------------------------------ rows of groups */

static bool
has_key(const GhScanGroup *group, Written value)
{
	if (value.kind == WRITTEN_NULL)
		return group->nulls == 1;
	return group->nulls == 0 && gh_scan_keys(group)->low == value.low;
}

/* Grouped by one column of integers; every group has the rows that hold its key. */
static void
check_rows_of_groups(Context *c, const Trial *trial, const ScanOutcome *got)
{
	for (uint32_t i = 0; i < got->count; i++)
	{
		const GhScanGroup *group = (const GhScanGroup *) got->records[i];
		uint64_t	rows = 0;

		for (uint32_t p = 0; p < trial->npages; p++)
			for (uint32_t t = 0; t < trial->written[p].ntuples; t++)
				rows += trial_expects(trial, p, t) == 1 &&
					has_key(group, trial_value(trial, p, t, trial->keys[0].vector));
		CHECK_U64(c, "rows of a group", group->rows, rows);
	}
}

/* ------------------------------------------------------------------- many groups */

static uint32_t
attributes_read(const Trial *trial)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < trial->program->ncolumns; i++)
		n += gh_program_columns(trial->program)[i].load != GH_LOAD_TID;
	return n;
}

/* Pages of an int8, a text and a float8 of many values; the first columns are keys. */
void
make_many(Context *c, Trial *trial, uint32_t nkeys, uint32_t nulls)
{
	Relation   *relation = &trial->relation;
	static const uint8_t loads[] = {GH_LOAD_INT8, GH_LOAD_TEXT, GH_LOAD_FLOAT8};

	memset(trial, 0, sizeof(*trial));
	relation->page_bytes = 8192;
	relation->natts = 3;
	relation->nulls = nulls;
	for (uint32_t i = 0; i < 3; i++)
	{
		relation->attributes[i].length = loads[i] == GH_LOAD_TEXT ? -1 : 8;
		relation->attributes[i].alignment = loads[i] == GH_LOAD_TEXT ? 4 : 8;
		relation->loads[i].attribute = (uint16_t) (i + 1);
		relation->loads[i].load = loads[i];
	}
	trial_pages(c, trial, TRIAL_PAGES_MAX);
	trial_ask(c, trial);
	do
	{
		free(trial->program);
		trial_program(c, trial, 0);
	} while (attributes_read(trial) < 3);
	trial->options.keys = trial->keys;
	trial->options.nkeys = nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		trial->keys[k].vector = (uint16_t) k;
		trial->keys[k].value_class = trial->classes[k];
	}
	count_columns(trial);
}

static void
many_groups(Context *c)
{
	if (no_scans(c))
		return;
	for (uint32_t nkeys = 1; nkeys <= 3; nkeys++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));

		make_many(c, trial, nkeys, 0);
		compare_engines(c, trial);
		trial_drop(c, trial);
		free(trial);
	}
}

static void
rows_of_groups(Context *c)
{
	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 10, 3); round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));
		ScanOutcome got;

		make_many(c, trial, 1, 20);
		while (trial->classes[trial->keys[0].vector] != GH_CLASS_INT)
			trial->keys[0].vector++;
		trial->keys[0].value_class = GH_CLASS_INT;
		if (trial_run(c, trial, c->engine, &got))
			check_rows_of_groups(c, trial, &got);
		outcome_drop(&got);
		trial_drop(c, trial);
		free(trial);
	}
}

/* The least memory that a scan of the engine can be made with, about. */
static uint64_t
least_limit(Context *c, Trial *trial)
{
	uint64_t	limit = 1;

	for (;; limit += limit / 4 + 1)
	{
		GhError		error = {0};
		HostState	state;
		GhHost		host;
		GhScan	   *scan;

		trial->options.memory_limit = limit;
		host_init(&state, &host);
		if (c->engine->scans->create(&host, &trial->options, &scan, &error) == GH_OK)
		{
			c->engine->scans->destroy(scan);
			return limit;
		}
	}
}

/*
 * Rows that find no group are handed back, and are all that is missing.  True: some memory was
 * refused by the host.
 */
static bool
check_limited(Context *c, Trial *trial)
{
	ScanOutcome limited;
	ScanOutcome rest;
	ScanOutcome all;
	bool		good = trial_run(c, trial, c->engine, &limited);
	bool		refused = limited.refused;

	trial->options.memory_limit = trial->fail_at = 0;
	good &= trial_run_back(c, trial, &limited, gh_cpu_engine_with_scans(), &rest);
	good &= trial_run(c, trial, gh_cpu_engine_with_scans(), &all);
	if (good)
	{
		CHECK_U64(c, "rows without a group", limited.no_group, limited.nback);
		for (uint32_t i = 0; i < rest.count; i++)
			outcome_add(c, &limited, (const GhScanGroup *) rest.records[i]);
		limited.counted += rest.counted;
		check_groups(c, &limited, &all);
	}
	outcome_drop(&limited);
	outcome_drop(&rest);
	outcome_drop(&all);
	return good && refused;
}

static void
limited_groups(Context *c)
{
	if (no_scans(c))
		return;
	for (uint32_t round = 0; round < sized(c, 20, 5); round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));

		make_many(c, trial, 1 + round % 3, 20);
		trial->options.memory_limit = least_limit(c, trial) * (1 + random_below(c, 5)) +
			random_below(c, 100000);
		(void) check_limited(c, trial);
		trial_drop(c, trial);
		free(trial);
	}
}

/* Each piece of memory is refused once: what fails for it is tried again. */
static void
refused_memory(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));
	uint64_t	at = 1;

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 3, 20);
	trial->options.groups = 1;
	for (bool refused = true; refused && c->failures == 0; at++)
	{
		trial->fail_at = at;
		refused = check_limited(c, trial);
	}
	CHECK(c, at > 5 || c->failures > 0, "a scan takes memory %" PRIu64 " times only", at);
	trial_drop(c, trial);
	free(trial);
}

/* ------------------------------------------------------------------ the same again */

/* Floats that are summed twice have the same bits. */
static void
repeated_sums(Context *c)
{
	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 40, 8); round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));
		ScanOutcome first;
		ScanOutcome second;

		memset(trial, 0, sizeof(*trial));
		relation_draw(c, &trial->relation);
		trial_pages(c, trial, TRIAL_PAGES_MAX);
		trial_ask(c, trial);
		trial_hint(c, trial);
		trial_program(c, trial, 3);
		trial_keys(c, trial, (uint32_t) random_below(c, 3));
		trial_aggregates(c, trial, 12);
		if (trial_run(c, trial, c->engine, &first) && trial_run(c, trial, c->engine, &second))
		{
			check_back(c, &first, &second);
			CHECK_U64(c, "groups", first.count, second.count);
			for (uint32_t i = 0; i < first.count; i++)
			{
				const GhScanGroup *group = (const GhScanGroup *) first.records[i];
				const GhScanGroup *again = outcome_find(&second, group);

				CHECK(c, again != NULL && memcmp(record_states(trial, group), record_states(trial, again),
												 trial->options.naggregates *
												 sizeof(GhAggregateState)) == 0,
					  "a group of %" PRIu64 " rows has other states the second time", group->rows);
			}
			outcome_drop(&second);
		}
		outcome_drop(&first);
		trial_drop(c, trial);
		free(trial);
	}
}

const Test	scan_tests[] = {
	{"scans: what was written", what_was_written, false},
	{"scans: groups", undamaged_pages, false},
	{"scans: damaged pages", damaged_pages, false},
	{"scans: rows of groups", rows_of_groups, false},
	{"scans: many groups", many_groups, false},
	{"scans: groups without memory", limited_groups, false},
	{"scans: memory that is refused", refused_memory, false},
	{"scans: sums repeat themselves", repeated_sums, false},
	{NULL, NULL, false}
};
