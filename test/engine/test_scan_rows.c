/*
 * test_scan_rows.c
 *		Scans that return rows: against what was written to the pages, and against the CPU engine.
 *
 * Records are compared byte by byte, in an order of their own.
 */
#include "scan_test.h"

#define LARGE_TEXT 200000		/* bytes */

/* ---------------------------------------------------------------- sorted records */

typedef struct Sorted
{
	const GhScanGroup **records;
	uint64_t	count;
} Sorted;

static int
compare_records(const void *a, const void *b)
{
	const GhScanGroup *x = *(const GhScanGroup *const *) a;
	const GhScanGroup *y = *(const GhScanGroup *const *) b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return memcmp(x, y, x->bytes);
}

static void
add_sorted(Sorted *sorted, const char *rows, size_t bytes)
{
	for (size_t at = 0; at < bytes;)
	{
		const GhScanGroup *record = (const GhScanGroup *) (rows + at);

		sorted->records[sorted->count++] = record;
		at += record->bytes;
	}
}

/* Are the rows of `got`, and those of `rest` if that is not NULL, the expected ones? */
static void
check_rows(Context *c, const ScanOutcome *got, const ScanOutcome *rest, const char *expected,
		   size_t expected_bytes)
{
	size_t		bytes = got->rows_bytes + (rest == NULL ? 0 : rest->rows_bytes);
	Sorted		is = {make_memory(bytes + 8), 0};
	Sorted		should = {make_memory(expected_bytes + 8), 0};

	add_sorted(&is, got->rows, got->rows_bytes);
	if (rest != NULL)
		add_sorted(&is, rest->rows, rest->rows_bytes);
	add_sorted(&should, expected, expected_bytes);
	CHECK_U64(c, "rows", is.count, should.count);
	qsort(is.records, is.count, sizeof(is.records[0]), compare_records);
	qsort(should.records, should.count, sizeof(should.records[0]), compare_records);
	for (uint64_t i = 0; i < is.count && i < should.count; i++)
		if (!CHECK(c, compare_records(&is.records[i], &should.records[i]) == 0, "row %" PRIu64 " of %"
				   PRIu64 " is another one", i, is.count))
			break;
	free(is.records);
	free(should.records);
}

/* Both engines return the same rows, and hand the same ones back. */
static void
compare_rows(Context *c, const Trial *trial)
{
	ScanOutcome expected;
	ScanOutcome got;

	if (trial_run(c, trial, gh_cpu_engine_with_scans(), &expected))
	{
		CHECK_U64(c, "records of the CPU's rows", expected.told, expected.counted);
		if (trial_run(c, trial, c->engine, &got))
		{
			CHECK_U64(c, "records", got.told, got.counted);
			CHECK_U64(c, "rows handed back", got.nback, expected.nback);
			CHECK(c, got.nback != expected.nback || got.nback == 0 ||
				  memcmp(got.back, expected.back, got.nback * sizeof(GhScanRow)) == 0,
				  "other rows are handed back");
			check_rows(c, &got, NULL, expected.rows, expected.rows_bytes);
		}
		outcome_drop(&got);
	}
	outcome_drop(&expected);
}

static void
return_rows(Trial *trial)
{
	trial->options.each_row = 1;
	trial->options.naggregates = 0;
	trial->options.aggregates = NULL;
}

/* ----------------------------------------------------------------- random trials */

static void
random_rows(Context *c)
{
	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 300, 50) && c->failures == 0; round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));

		memset(trial, 0, sizeof(*trial));
		relation_draw(c, &trial->relation);
		trial_pages(c, trial, 1 + (uint32_t) random_below(c, random_below(c, 5) == 0 ?
														  TRIAL_PAGES_MAX : 4));
		trial_ask(c, trial);
		if (random_below(c, 2) == 0)
			trial_damage(c, trial);
		trial_program(c, trial, (uint32_t) random_below(c, 16));
		trial_keys(c, trial, (uint32_t) random_below(c, random_below(c, 3) == 0 ?
													 GH_SCAN_KEYS_MAX + 1 : 6));
		return_rows(trial);
		trial->options.groups = random_below(c, 2) * random_below(c, 10000);
		compare_rows(c, trial);
		trial_drop(c, trial);
		free(trial);
	}
}

/* ----------------------------------------------------------------- rows that are listed */

/* Do the same rows come again where only these are asked for, and as many as are returned by a scan that does that? */
static void
check_listed(Context *c, Trial *trial, const ScanOutcome *listed)
{
	ScanOutcome again;
	ScanOutcome returned;
	uint64_t	pages = 0;

	for (uint64_t i = 0; i < listed->nback; i++)
		pages += listed->back[i].line == 0;
	CHECK_U64(c, "rows that are listed", listed->listed, listed->counted);
	if (trial_run_back(c, trial, listed, c->engine, &again))
	{
		CHECK_U64(c, "rows that are listed again", again.listed, listed->listed);
		/* a page that is broken may come back whole though nothing of it is asked for */
		CHECK(c, pages > 0 || again.nback == listed->nback, "%" PRIu64 " rows are told again, not %" PRIu64,
			  again.nback, listed->nback);
	}
	outcome_drop(&again);
	trial->options.lists_rows = 0;
	trial->options.each_row = 1;
	if (trial_run(c, trial, gh_cpu_engine_with_scans(), &returned))
	{
		CHECK_U64(c, "rows that are returned", returned.told, listed->listed);
		CHECK_U64(c, "rows that are handed back", returned.nback, listed->nback - listed->listed);
		CHECK_U64(c, "tuples that are seen", returned.seen, listed->seen);
	}
	outcome_drop(&returned);
}

static void
list_rows(Context *c, Trial *trial)
{
	ScanOutcome expected;
	ScanOutcome got;

	trial->options.nkeys = 0;
	trial->options.lists_rows = 1;
	if (trial_run(c, trial, gh_cpu_engine_with_scans(), &expected))
	{
		if (trial_run(c, trial, c->engine, &got))
		{
			CHECK_U64(c, "rows told", got.nback, expected.nback);
			CHECK(c, got.nback != expected.nback || got.nback == 0 ||
				  memcmp(got.back, expected.back, got.nback * sizeof(GhScanRow)) == 0, "other rows are told");
			CHECK_U64(c, "rows that passed", got.passed, expected.passed);
			CHECK_U64(c, "tuples that were seen", got.seen, expected.seen);
			check_listed(c, trial, &got);
		}
		outcome_drop(&got);
	}
	outcome_drop(&expected);
}

static void
listed_rows(Context *c)
{
	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 300, 50) && c->failures == 0; round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));

		memset(trial, 0, sizeof(*trial));
		relation_draw(c, &trial->relation);
		trial_pages(c, trial, 1 + (uint32_t) random_below(c, random_below(c, 5) == 0 ?
														  TRIAL_PAGES_MAX : 4));
		trial_ask(c, trial);
		if (random_below(c, 2) == 0)
			trial_damage(c, trial);
		trial_program(c, trial, (uint32_t) random_below(c, 16));
		trial->options.naggregates = 0;
		trial->options.aggregates = NULL;
		list_rows(c, trial);
		trial_drop(c, trial);
		free(trial);
	}
}

/* --------------------------------------------------------------- what was written */

/* The record of a tuple with all of the trial's keys, which are columns. */
static size_t
write_record(const Trial *trial, uint32_t p, uint32_t t, char *to)
{
	GhScanGroup *record = (GhScanGroup *) to;
	size_t		at = sizeof(GhScanGroup) + trial->options.nkeys * sizeof(GhScanValue);

	record->rows = 1;
	record->nulls = 0;
	memset(record + 1, 0, trial->options.nkeys * sizeof(GhScanValue));
	for (uint32_t k = 0; k < trial->options.nkeys; k++)
	{
		Written		value = trial_value(trial, p, t, trial->keys[k].vector);
		GhScanValue *held = &gh_scan_keys(record)[k];

		if (value.kind == WRITTEN_NULL || value.kind == WRITTEN_MISSING)
		{
			record->nulls |= UINT64_C(1) << k;
			continue;
		}
		held->low = value.low;
		held->high = gh_scan_has_high(trial->keys[k].value_class) ? value.high : 0;
		if (value.kind != WRITTEN_TEXT)
			continue;
		held->low = at;
		memcpy(to + at, trial->written[p].page + value.low, value.high);
		at += value.high;
	}
	while (at % 8 != 0)
		to[at++] = 0;
	record->bytes = at;
	return at;
}

static void
check_written(Context *c, const Trial *trial, const ScanOutcome *got)
{
	size_t		most = 0;
	size_t		bytes = 0;
	uint64_t	nback = 0;
	char	   *expected;

	for (uint32_t p = 0; p < trial->npages; p++)
		most += trial->written[p].ntuples *
			(sizeof(GhScanGroup) + 8 + trial->options.nkeys * sizeof(GhScanValue)) +
			(size_t) trial->options.nkeys * trial->relation.page_bytes;
	expected = make_memory(most);
	for (uint32_t p = 0; p < trial->npages; p++)
		for (uint32_t t = 0; t < trial->written[p].ntuples; t++)
		{
			int			row = trial_expects(trial, p, t);

			if (row == 1)
				bytes += write_record(trial, p, t, expected + bytes);
			nback += row == 2;
		}
	CHECK_U64(c, "rows handed back", got->nback, nback);
	check_rows(c, got, NULL, expected, bytes);
	free(expected);
}

/* All rows of the pages, with some of their columns, in any order. */
static void
what_was_written(Context *c)
{
	if (no_scans(c))
		return;
	for (uint64_t round = 0; round < sized(c, 200, 40) && c->failures == 0; round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));
		ScanOutcome got;

		memset(trial, 0, sizeof(*trial));
		relation_draw(c, &trial->relation);
		trial_pages(c, trial, 1 + (uint32_t) random_below(c, 6));
		trial_ask(c, trial);
		trial_program(c, trial, 0);
		trial->options.keys = trial->keys;
		if (trial->program->ncolumns > 0)
			trial->options.nkeys = (uint32_t) random_below(c, GH_SCAN_KEYS_MAX + 1);
		for (uint32_t k = 0; k < trial->options.nkeys; k++)
		{
			trial->keys[k].vector = (uint16_t) random_below(c, trial->program->ncolumns);
			trial->keys[k].value_class = trial->classes[trial->keys[k].vector];
		}
		return_rows(trial);
		if (trial_run(c, trial, c->engine, &got))
			check_written(c, trial, &got);
		outcome_drop(&got);
		trial_drop(c, trial);
		free(trial);
	}
}

/* ------------------------------------------------------------------ chosen cases */

/* Many rows, of one page a request, with and without texts; then none at all. */
static void
many_rows(Context *c)
{
	if (no_scans(c))
		return;
	for (uint32_t nkeys = 0; nkeys <= 3; nkeys++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));

		make_many(c, trial, nkeys, nkeys == 2 ? 20 : 0);
		trial->cut = nkeys % 2 == 0 ? 1 : TRIAL_PAGES_MAX;
		trial->options.groups = nkeys;
		return_rows(trial);
		compare_rows(c, trial);
		for (uint32_t p = 0; p < trial->npages; p++)
			trial->pages[p].lines = 0;
		compare_rows(c, trial);
		trial_drop(c, trial);
		free(trial);
	}
}

/* A program whose first constant that is a text is so long, for rows of some megabytes. */
static void
lengthen_text(Context *c, Trial *trial)
{
	GhProgram  *program;
	uint32_t	at = (trial->program->bytes + 7) & ~7u;
	GhError		error = {0};

	program = aligned_alloc(16, (at + LARGE_TEXT + 15) & ~(size_t) 15);
	if (program == NULL)
		exit(2);
	memset(program, 0, at);
	memcpy(program, trial->program, trial->program->bytes);
	free(trial->program);
	trial->program = program;
	program->bytes = at + LARGE_TEXT;
	for (uint32_t i = 0; i < LARGE_TEXT; i++)
		((char *) program)[at + i] = (char) ('a' + i % 23);
	for (uint32_t i = 0; i < program->nconstants; i++)
	{
		GhConstant *constant = (GhConstant *) gh_program_constants(program) + i;

		if (constant->value_class != GH_CLASS_TEXT)
			continue;
		constant->low = at;
		constant->high = LARGE_TEXT;
		trial->keys[0].vector = (uint16_t) (program->ncolumns + i);
		break;
	}
	trial->options.program = program;
	trial->options.program_bytes = program->bytes;
	CHECK_STATUS(c, "a long program", gh_program_check_classes(program, program->bytes, trial->classes,
															   &error), GH_OK);
}

/* Rows of a few bytes beside such that no engine can make many of at a time. */
static void
large_rows(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 3, 0);
	lengthen_text(c, trial);
	for (uint32_t p = 0; p < trial->npages; p++)
		trial->pages[p].lines = p < 2 && trial->pages[p].lines > 5 ? 5 : 0;
	return_rows(trial);
	for (uint32_t nkeys = 1; nkeys <= GH_SCAN_KEYS_MAX; nkeys += GH_SCAN_KEYS_MAX - 1)
	{
		trial->options.nkeys = nkeys;
		for (uint32_t k = 0; k < nkeys; k++)
		{
			trial->keys[k].vector = k % 5 == 4 ? 1 : trial->keys[0].vector;
			trial->keys[k].value_class = trial->classes[trial->keys[k].vector];
		}
		compare_rows(c, trial);
	}
	trial_drop(c, trial);
	free(trial);
}

/* Results may be asked for before the last request, and twice. */
static void
rows_between(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));
	ScanOutcome once;
	ScanOutcome twice;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 3, 20);
	return_rows(trial);
	outcome_make(&once, trial);
	outcome_make(&twice, trial);
	host_init(&state, &host);
	if (CHECK_STATUS(c, "a scan", c->engine->scans->create(&host, &trial->options, &scan, &error), GH_OK))
	{
		if (trial_requests(c, trial, c->engine->scans, scan, trial->pages, trial->bitmaps, &once) &&
			trial_results(c, c->engine->scans, scan, &once) &&
			trial_requests(c, trial, c->engine->scans, scan, trial->pages, trial->bitmaps, &twice) &&
			trial_results(c, c->engine->scans, scan, &twice))
		{
			ScanOutcome half = once;

			CHECK_U64(c, "rows of twice the pages", twice.told, 2 * (uint64_t) once.told);
			check_rows(c, &once, &half, twice.rows, twice.rows_bytes);
		}
		c->engine->scans->destroy(scan);
	}
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	outcome_drop(&once);
	outcome_drop(&twice);
	trial_drop(c, trial);
	free(trial);
}

/* -------------------------------------------------------------- too little memory */

/* Rows without memory are handed back, and are all that is missing; false: none was refused. */
static bool
check_limited(Context *c, Trial *trial, uint64_t *no_room)
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
		CHECK_U64(c, "rows without memory", limited.no_group, limited.nback);
		CHECK_U64(c, "records", limited.told, limited.counted);
		check_rows(c, &limited, &rest, all.rows, all.rows_bytes);
	}
	*no_room += limited.no_group;
	outcome_drop(&limited);
	outcome_drop(&rest);
	outcome_drop(&all);
	return good && refused;
}

static void
limited_rows(Context *c)
{
	uint64_t	no_room = 0;

	if (no_scans(c))
		return;
	for (uint32_t round = 0; round < sized(c, 20, 6) && c->failures == 0; round++)
	{
		Trial	   *trial = make_memory(sizeof(Trial));

		make_many(c, trial, 1 + round % 3, 20);
		trial->options.memory_limit = 1 + round * random_below(c, 100000);
		trial->options.groups = random_below(c, 2) * 100000;
		return_rows(trial);
		(void) check_limited(c, trial, &no_room);
		trial_drop(c, trial);
		free(trial);
	}
	CHECK(c, no_room > 0 || c->failures > 0, "all rows had memory");
}

/* Each piece of memory is refused once. */
static void
refused_memory(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));
	uint64_t	no_room = 0;
	uint64_t	at = 1;

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 3, 20);
	trial->options.groups = 1;
	trial->cut = 2;
	return_rows(trial);
	for (bool refused = true; refused && c->failures == 0; at++)
	{
		trial->fail_at = at;
		refused = check_limited(c, trial, &no_room);
	}
	CHECK(c, at > 3 || c->failures > 0, "a scan takes memory %" PRIu64 " times only", at);
	trial_drop(c, trial);
	free(trial);
}

/* --------------------------------------------------------------- what is refused */

static void
expect_refused(Context *c, const GhScanOptions *options, GhStatus expected, const char *what)
{
	GhScanTable made;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;
	GhStatus	status;

	host_init(&state, &host);
	status = c->engine->scans->create(&host, options, &scan, &error);
	CHECK_STATUS(c, what, status, expected);
	if (status == GH_OK)
	{
		CHECK_STATUS(c, "a table of rows", c->engine->scans->make_table(scan, &made, &error), GH_INVALID);
		c->engine->scans->destroy(scan);
	}
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
}

static void
refused_options(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));
	const uint16_t kept = 0;
	GhScanPart	part = {0, 64, 0};

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 2, 0);
	while (trial->classes[part.vector] != GH_CLASS_INT)
		part.vector++;
	trial->options.each_row = 1;
	expect_refused(c, &trial->options, GH_INVALID, "rows with aggregates");
	trial->options.naggregates = 0;
	expect_refused(c, &trial->options, GH_OK, "rows");
	trial->options.each_row = 2;
	expect_refused(c, &trial->options, GH_INVALID, "rows twice");
	trial->options.each_row = 1;
	trial->options.kept = &kept;
	trial->options.nkept = 1;
	expect_refused(c, &trial->options, GH_INVALID, "rows that keep a value");
	trial->options.nkept = 0;
	trial->options.parts = &part;
	trial->options.nparts = 1;
	expect_refused(c, &trial->options, GH_INVALID, "rows and a table with keys");
	trial->options.nkeys = 0;
	expect_refused(c, &trial->options, GH_INVALID, "rows and a table");
	trial->options.nparts = 0;
	expect_refused(c, &trial->options, GH_OK, "rows without keys");
	trial->options.lists_rows = 1;
	expect_refused(c, &trial->options, GH_INVALID, "rows that are returned and listed");
	trial->options.each_row = 0;
	expect_refused(c, &trial->options, GH_OK, "rows that are listed");
	trial->options.lists_rows = 2;
	expect_refused(c, &trial->options, GH_INVALID, "rows that are listed twice");
	trial->options.lists_rows = 1;
	trial->options.naggregates = 1;
	expect_refused(c, &trial->options, GH_INVALID, "rows that are listed, and aggregates");
	trial_drop(c, trial);
	free(trial);
}

const Test	scan_rows_tests[] = {
	{"rows of scans: what was written", what_was_written, false},
	{"rows of scans: random", random_rows, false},
	{"rows of scans: listed", listed_rows, false},
	{"rows of scans: many", many_rows, false},
	{"rows of scans: large ones", large_rows, false},
	{"rows of scans: between requests", rows_between, false},
	{"rows of scans: without memory", limited_rows, false},
	{"rows of scans: memory that is refused", refused_memory, false},
	{"rows of scans: options that are refused", refused_options, false},
	{NULL, NULL, false}
};
