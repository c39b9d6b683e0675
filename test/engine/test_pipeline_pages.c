/*
 * test_pipeline_pages.c
 *		Pipelines: pages of any relation against the model; pages such as no heap has, of which the engine and the
 *		CPU engine must make the same; pages that others write to between requests.
 */
#include "pipeline_model.h"

/* ----------------------------------------------------------------------- stages */

static Trial *
draw_pages(Context *c, uint32_t npages)
{
	Trial	   *pages = make_memory(sizeof(Trial));

	memset(pages, 0, sizeof(*pages));
	relation_draw(c, &pages->relation);
	trial_pages(c, pages, npages);
	trial_ask(c, pages);
	trial_hint(c, pages);
	return pages;
}

Stage *
pages_stage(Context *c, Trial *pages)
{
	Stage	   *stage = stage_make();
	uint32_t	column;

	stage->pages = pages;
	stage->cut = pages->cut;
	stage->options.source.natts = pages->relation.natts;
	stage->options.sink.kind = GH_SINK_ROWS;
	column = stage_column(stage, GH_CLASS_INT, 0);
	stage->parts.columns[column].load = GH_LOAD_TID;
	stage_key(stage, column, GH_CLASS_INT);
	for (uint32_t i = 0; i < pages->relation.natts && stage->parts.ncolumns < PARTS_MAX / 2; i++)
	{
		if (random_below(c, 100) < 40)
			continue;
		column = stage_column(stage, GH_CLASS_INT, i + 1);
		stage->parts.columns[column] = pages->relation.loads[i];
		stage->classes[column] = column_class(&pages->relation.loads[i]);
		if (stage->options.sink.rows.nvalues < STAGE_KEYS_MAX)
			stage_key(stage, column, stage->classes[column]);
	}
	stage_finish(c, stage);
	return stage;
}

static void
drop_stage(Context *c, Stage *stage)
{
	stage_end(stage);
	stage_drop(c, stage);
}

/* ------------------------------------------------------------------- comparison */

/* What an engine made of a stage's pages. */
typedef struct Made
{
	GhBackRow  *back;			/* of all requests, with the stage's page numbers */
	uint64_t	nback;
	uint64_t	seen;
	uint64_t	counted;
	Keyed	   *rows;			/* records */
	uint64_t	nrows;
} Made;

static void
made_drop(Made *made)
{
	free(made->back);
	if (made->rows != NULL)
		keyed_drop(made->rows, made->nrows);
}

static bool
bring_pages(Context *c, Stage *stage, uint32_t first, uint32_t end, Made *made)
{
	const Trial *pages = stage->pages;
	GhPipelineRequest request = {.kind = GH_INPUT_PAGES,.readable = pages->registered,.npages = end - first};

	request.pages = pages->pages + first;
	request.bitmaps = pages->bitmaps;
	request.nbitmaps = (uint64_t) pages->npages * TRIAL_WORDS;
	request.nspans = stage->nspans;
	request.spans = stage->spans;
	request.back = made->back + made->nback;
	for (uint32_t p = first; p < end; p++)
		request.back_room += pages->pages[p].lines;
	if (!CHECK(c, stage_request(stage, &request) == GH_OK, "pages: %s", request.error.message))
		return false;
	for (uint64_t i = 0; i < request.nback; i++)
		request.back[i].page += first;
	made->nback += request.nback;
	made->seen += request.seen;
	made->counted += request.counted;
	return true;
}

/* Records differ as their bytes do. */
static void
key_rows(const char *records, size_t bytes, Made *made)
{
	made->rows = make_memory((bytes / sizeof(GhRecordHead) + 1) * sizeof(Keyed));
	for (size_t at = 0; at < bytes; made->nrows++)
	{
		size_t		length = ((const GhRecordHead *) (records + at))->bytes;
		Keyed		keyed = {make_memory(length), length, 0};

		memcpy(keyed.bytes, records + at, length);
		made->rows[made->nrows] = keyed;
		at += length;
	}
	keyed_sort(made->rows, made->nrows);
}

static bool
make_by(Context *c, Stage *stage, const GhEngine *engine, bool in_spans, Made *made)
{
	HostState	state;
	GhHost		host;
	GhError		error = {0};
	uint64_t	lines = 0;
	char	   *records = NULL;
	size_t		bytes = 0;
	bool		good;

	memset(made, 0, sizeof(*made));
	for (uint32_t p = 0; p < stage->pages->npages; p++)
		lines += stage->pages->pages[p].lines;
	made->back = make_memory(lines * sizeof(GhBackRow));
	host_init(&state, &host);
	stage->engine = engine;
	good = CHECK(c, stage_create(stage, &host, &error) == GH_OK &&
				 (!in_spans || spans_open(c, stage, &host, &error) == GH_OK), "a pipeline: %s", error.message);
	for (uint32_t p = 0; good && p < stage->pages->npages; p += (uint32_t) stage->cut)
		good = bring_pages(c, stage, p, stage->cut < stage->pages->npages - p ? p + (uint32_t) stage->cut :
						   stage->pages->npages, made);
	if (good)
		records = stage_records(c, stage, &bytes);
	if (records != NULL)
		key_rows(records, bytes, made);
	free(records);
	stage_end(stage);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	return made->rows != NULL;
}

/* Is it the same row that goes back?  A column is read when the page is, or by the step that needs it. */
static bool
same_back(const GhBackRow *got, const GhBackRow *expected)
{
	return got->page == expected->page && got->line == expected->line;
}

/*
 * An engine that reads all columns with the page hands rows back for one that nothing needs, too, and the other does not:
 * what goes back has all that is expected to, in its order, and all other rows come to the end, in theirs.
 */
static void
compare_made(Context *c, const Made *got, const Made *expected)
{
	uint64_t	more = got->nback - expected->nback;
	uint64_t	at = 0;

	CHECK(c, got->nback >= expected->nback, "%llu rows go back, of %llu", (unsigned long long) got->nback,
		  (unsigned long long) expected->nback);
	CHECK_U64(c, "counted rows", got->counted + more, expected->counted);
	CHECK_U64(c, "visible tuples", got->seen, expected->seen);
	CHECK_U64(c, "records", got->nrows + more, expected->nrows);
	for (uint64_t i = 0; i < got->nback && c->failures == 0; i++)
		at += at < expected->nback && same_back(&got->back[i], &expected->back[at]);
	CHECK_U64(c, "rows that go back with both", at, expected->nback);
	at = 0;
	for (uint64_t i = 0; i < expected->nrows && c->failures == 0; i++)
		at += at < got->nrows && keyed_same(&got->rows[at], &expected->rows[i]);
	CHECK_U64(c, "records of both", at, got->nrows);
}

void
compare_engines(Context *c, Stage *stage)
{
	Made		expected;
	Made		got = {0};

	/* with spans, the pages' memory is overwritten */
	if (make_by(c, stage, gh_cpu_engine(), false, &expected) &&
		make_by(c, stage, c->engine, stage->in_spans, &got))
		compare_made(c, &got, &expected);
	made_drop(&expected);
	made_drop(&got);
}

/* ------------------------------------------------------------------------ tests */

static void
any_relation(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 200, 40) && c->failures == 0; round++)
	{
		Stage	   *stage = pages_stage(c, draw_pages(c, 1 + (uint32_t) random_below(c, 4)));
		HostState	state;
		GhHost		host;

		host_init(&state, &host);
		(void) stage_run(c, stage, &host);
		drop_stage(c, stage);
	}
}

static void
damaged_pages(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 400, 60) && c->failures == 0; round++)
	{
		uint32_t	most = random_below(c, 5) == 0 ? TRIAL_PAGES_MAX : 4;
		Stage	   *stage = pages_stage(c, draw_pages(c, 1 + (uint32_t) random_below(c, most)));

		trial_damage(c, stage->pages);
		stage->in_spans = random_below(c, 2) == 0;
		compare_engines(c, stage);
		drop_stage(c, stage);
	}
}

/* Sums of a stage's floats, of all rows or by a truth value; false: it has no floats. */
static bool
sum_floats(Context *c, Stage *stage)
{
	GhSink	   *sink = &stage->options.sink;

	sink->kind = GH_SINK_GROUPS;
	sink->groups.nkeys = 0;
	for (uint32_t v = 1; v < stage->parts.ncolumns && sink->groups.naggregates + 2 <= STAGE_AGGREGATES_MAX; v++)
		if (stage->classes[v] == GH_CLASS_FLOAT8)
		{
			stage_aggregate(stage, GH_AGGREGATE_SUM, v, GH_CLASS_FLOAT8);
			stage_aggregate(stage, GH_AGGREGATE_MOMENTS, v, GH_CLASS_FLOAT8);
		}
		else if (stage->classes[v] == GH_CLASS_BOOL && sink->groups.nkeys == 0 && random_below(c, 2) == 0)
		{
			stage->keys[0].vector = (uint16_t) v;
			stage->keys[0].value_class = GH_CLASS_BOOL;
			sink->groups.nkeys = 1;
		}
	return sink->groups.naggregates > 0;
}

/* Floats that are summed twice have the same bits. */
static void
repeated_sums(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 40, 8) && c->failures == 0;)
	{
		Stage	   *stage = pages_stage(c, draw_pages(c, TRIAL_PAGES_MAX));
		Made		first = {0};
		Made		second = {0};

		if (sum_floats(c, stage))
		{
			if (make_by(c, stage, c->engine, false, &first) && make_by(c, stage, c->engine, false, &second))
				compare_made(c, &second, &first);
			made_drop(&first);
			made_drop(&second);
			round++;
		}
		drop_stage(c, stage);
	}
}

/* ------------------------------------------------------------- pages that change */

/* Makes a line pointer of each page unused, or normal again; how many are normal changes with it. */
static void
change_lines(Context *c, Trial *pages, uint64_t *normal)
{
	for (uint32_t p = 0; p < pages->npages; p++)
	{
		const WrittenPage *written = &pages->written[p];
		uint32_t	number;
		uint8_t    *at;
		uint32_t	line;

		if (written->ntuples == 0)
			continue;
		number = written->numbers[random_below(c, written->ntuples)];
		at = pages->memory + (size_t) p * pages->relation.page_bytes + GH_PAGE_LINES_AT + (number - 1) * GH_LINE_BYTES;
		memcpy(&line, at, sizeof(line));
		line ^= UINT32_C(1) << GH_LINE_OFFSET_BITS;
		memcpy(at, &line, sizeof(line));
		*normal += (line >> GH_LINE_OFFSET_BITS & 1) != 0 ? 1 : UINT64_MAX;
	}
}

/* All lines of all pages are asked for; returns how many tuples there are. */
static uint64_t
ask_all(Trial *pages)
{
	uint64_t	normal = 0;

	for (uint32_t p = 0; p < pages->npages; p++)
	{
		pages->pages[p].lines = gh_page_lines(pages->pages[p].page, pages->relation.page_bytes);
		pages->pages[p].bitmap = GH_PAGE_ALL_LINES;
		pages->pages[p].hinted = 0;
		normal += pages->written[p].ntuples;
	}
	return normal;
}

/* Each request is of pages as they are when it is submitted, whatever was read of them before. */
static void
changing_pages(Context *c)
{
	Stage	   *stage;
	HostState	state;
	GhHost		host;
	GhError		error = {0};
	GhBackRow  *back;
	uint64_t	normal;

	if (no_pipelines(c))
		return;
	stage = pages_stage(c, draw_pages(c, TRIAL_PAGES_MAX / 2));
	normal = ask_all(stage->pages);
	back = make_memory(TRIAL_PAGES_MAX * TRIAL_LINES_MAX * sizeof(GhBackRow));
	stage->options.sink.kind = GH_SINK_GROUPS;
	stage->options.sink.groups.nkeys = 0;
	host_init(&state, &host);
	stage->engine = c->engine;
	if (CHECK(c, stage_create(stage, &host, &error) == GH_OK, "a pipeline: %s", error.message))
		for (uint64_t round = 0; round < sized(c, 10000, 200) && c->failures == 0; round++)
		{
			Made		made = {.back = back};

			change_lines(c, stage->pages, &normal);
			if (bring_pages(c, stage, 0, stage->pages->npages, &made))
				CHECK_U64(c, "rows", made.counted + made.nback, normal);
		}
	free(back);
	drop_stage(c, stage);
}

const Test	pipeline_page_tests[] = {
	{"pipelines: pages of any relation", any_relation, false},
	{"pipelines: damaged pages", damaged_pages, false},
	{"pipelines: sums of floats repeat themselves", repeated_sums, false},
	{"pipelines: pages that change", changing_pages, false},
	{NULL, NULL, false}
};
