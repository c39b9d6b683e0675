/*
 * test_pipeline_leaves.c
 *		Pipelines: leaf pages of an index against the model, into rows, groups, and tables all of whose rows
 *		come out again; pages such as no index has, of which the engine and the CPU engine must make the same,
 *		and look at nothing outside of them; what is refused.
 */
#include "pipeline_model.h"

static Trial *
draw_leaves(Context *c, uint32_t npages)
{
	Trial	   *pages = make_memory(sizeof(Trial));

	memset(pages, 0, sizeof(*pages));
	leaf_relation_draw(c, &pages->relation);
	trial_pages(c, pages, npages);
	trial_ask(c, pages);
	return pages;
}

/* Its rows, by the block of each one's row. */
static Stage *
leaves_stage(Context *c, uint32_t npages)
{
	return pages_stage(c, draw_leaves(c, npages));
}

static uint32_t
some_pages(Context *c)
{
	return 1 + (uint32_t) random_below(c, random_below(c, 5) == 0 ? TRIAL_PAGES_MAX : 4);
}

/* ------------------------------------------------------------------- sinks */

static void
group(Context *c, Stage *stage)
{
	GhSink	   *sink = &stage->options.sink;

	sink->kind = GH_SINK_GROUPS;
	if (random_below(c, 2) == 0)
		sink->groups.nkeys = 0;
	stage_aggregate(stage, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	for (uint32_t v = 0; v < stage->parts.ncolumns && sink->groups.naggregates < STAGE_AGGREGATES_MAX; v++)
		if (stage->classes[v] == GH_CLASS_INT)
			stage_aggregate(stage, GH_AGGREGATE_SUM, v, GH_CLASS_INT);
}

/* As the copy of an index is made: by an integer, or the block, and with the block and columns. */
static void
make_table(Context *c, Stage *stage)
{
	GhTableSink *sink = &stage->options.sink.table;
	uint32_t	part = 0;

	stage->options.sink.kind = GH_SINK_TABLE;
	for (uint32_t v = 1; v < stage->parts.ncolumns; v++)
		if (stage->classes[v] == GH_CLASS_INT && random_below(c, 2) == 0)
			part = v;
	memset(sink, 0, sizeof(*sink));
	stage_part(stage, part, 64);
	stage_keep(stage, 0, GH_CLASS_INT, 8);
	for (uint32_t v = 1; v < stage->parts.ncolumns && sink->nkept < STAGE_KEPT_MAX; v++)
		if (stage->classes[v] == GH_CLASS_INT || stage->classes[v] == GH_CLASS_TEXT ||
			stage->classes[v] == GH_CLASS_INT128)
			stage_keep(stage, v, stage->classes[v], stage->classes[v] == GH_CLASS_INT ? 8 : 0);
	sink->matches = GH_MATCHES_ALL;
	sink->numbered = 1;
	sink->expected = random_below(c, 2) == 0 ? 0 : random_below(c, 10000);
}

/* All rows of the table that was made, in requests of some: none is marked. */
static void
read_all(Context *c, Stage *made, const GhHost *host)
{
	Stage	   *reader = stage_make();

	stage_of_table(reader, &made->made);
	reader->options.sink.kind = GH_SINK_ROWS;
	for (uint32_t k = 0; k < made->made.nkept; k++)
		stage_key(reader, k, made->made.kept[k].value_class);
	stage_finish(c, reader);
	(void) stage_run(c, reader, host);
	stage_end(reader);
	stage_drop(c, reader);
}

/* ------------------------------------------------------------------------ tests */

static void
any_index(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 600, 90) && c->failures == 0; round++)
	{
		Stage	   *stage = leaves_stage(c, some_pages(c));
		HostState	state;
		GhHost		host;

		host_init(&state, &host);
		if (round % 3 == 1)
			group(c, stage);
		if (round % 3 == 2)
			make_table(c, stage);
		if (stage_run(c, stage, &host) && round % 3 == 2)
			read_all(c, stage, &host);
		stage_end(stage);
		stage_end_table(stage);
		CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
		stage_drop(c, stage);
	}
}

/* Of entries of 16 bytes there are as many on a page as on any. */
static void
full_pages(Context *c)
{
	Trial	   *pages = make_memory(sizeof(Trial));
	uint32_t	longest = 0;
	Stage	   *stage;
	HostState	state;
	GhHost		host;

	memset(pages, 0, sizeof(*pages));
	pages->relation = (Relation) {
		.page_bytes = 8192,.natts = 1,.attributes = {{8, 8}},.loads = {{.attribute = 1,.load = GH_LOAD_INT8}},
		.leaves = true,.plain = true
	};
	trial_pages(c, pages, TRIAL_PAGES_MAX);
	trial_ask(c, pages);
	for (uint32_t p = 0; p < pages->npages; p++)
	{
		pages->pages[p].lines = gh_page_lines(pages->pages[p].page, 8192);
		longest = pages->pages[p].lines > longest ? pages->pages[p].lines : longest;
	}
	CHECK_U64(c, "lines of the longest page", longest, 407);
	stage = pages_stage(c, pages);
	host_init(&state, &host);
	if (!no_pipelines(c))
		(void) stage_run(c, stage, &host);
	stage_end(stage);
	stage_drop(c, stage);
}

/* Each page is in memory of its own, of just its size, which tools that look for it see the end of. */
static void
damaged_leaves(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 2000, 200) && c->failures == 0; round++)
	{
		Stage	   *stage = leaves_stage(c, some_pages(c));
		Trial	   *pages = stage->pages;
		uint32_t	bytes = pages->relation.page_bytes;

		if (random_below(c, 3) == 0)
			make_table(c, stage);
		stage->options.sink.kind = GH_SINK_ROWS;
		trial_damage(c, pages);
		for (uint32_t p = 0; p < pages->npages && !pages->registered; p++)
		{
			void	   *own = aligned_alloc(16, bytes);

			memcpy(own, pages->pages[p].page, bytes);
			pages->pages[p].page = own;
		}
		compare_engines(c, stage);
		for (uint32_t p = 0; p < pages->npages && !pages->registered; p++)
			free((void *) (uintptr_t) pages->pages[p].page);
		stage_end(stage);
		stage_drop(c, stage);
	}
}

/* Such a page is not looked at, whatever its end is: there is no room for it to go back. */
static void
no_lines(Context *c)
{
	Stage	   *stage;
	GhPipelineRequest request = {.kind = GH_INPUT_PAGES};
	HostState	state;
	GhHost		host;
	GhError		error = {0};

	if (no_pipelines(c))
		return;
	stage = leaves_stage(c, 3);
	for (uint32_t p = 0; p < 3; p++)
	{
		memset(stage->pages->memory + (size_t) p * stage->pages->relation.page_bytes + 16,
			   p == 0 ? 0 : 0xff, 2);
		stage->pages->pages[p].lines = 0;
	}
	host_init(&state, &host);
	stage->engine = c->engine;
	if (CHECK(c, stage_create(stage, &host, &error) == GH_OK, "create: %s", error.message))
	{
		request.npages = 3;
		request.pages = stage->pages->pages;
		CHECK_STATUS(c, "pages without lines", stage_request(stage, &request), GH_OK);
		CHECK_U64(c, "rows", request.seen + request.nback + request.counted, 0);
	}
	stage_end(stage);
	stage_drop(c, stage);
}

/* --------------------------------------------------------------------- refused */

static void
expect_page(Context *c, Stage *stage, GhPipelineRequest request, const char *what, GhStatus expected)
{
	CHECK_STATUS(c, what, stage_request(stage, &request), expected);
	CHECK(c, expected == GH_OK || (request.counted | request.seen | request.nback) == 0,
		  "%s: it has counted", what);
}

static void
refused_pages(Context *c)
{
	Stage	   *stage;
	GhPageRef  *page;
	GhPipelineRequest request = {.kind = GH_INPUT_PAGES,.npages = 1};
	GhPageSpan *span = NULL;
	HostState	state;
	GhHost		host;
	GhError		error = {0};
	bool		spans;

	if (no_pipelines(c))
		return;
	stage = leaves_stage(c, 1);
	page = &stage->pages->pages[0];
	host_init(&state, &host);
	stage->engine = c->engine;
	/* so that headers could tell what is visible, of other pages */
	stage->options.source.seen_before = 1000;
	request.pages = page;
	request.back_room = page->lines;
	request.back = make_memory((page->lines + 1) * sizeof(GhBackRow));
	request.bitmaps = stage->pages->bitmaps;
	request.nbitmaps = TRIAL_WORDS;
	spans = c->engine->pipelines->span_create != NULL;
	if (spans)
		CHECK(c, c->engine->pipelines->span_create(&host, stage->options.device, stage->pages->relation.page_bytes, 1,
												   &span, &error) == GH_OK, "a span: %s", error.message);
	if (CHECK(c, stage_create(stage, &host, &error) == GH_OK, "create: %s", error.message))
	{
		expect_page(c, stage, request, "a leaf page", GH_OK);
		page->bitmap = 0;
		expect_page(c, stage, request, "some of its lines", GH_INVALID);
		page->bitmap = GH_PAGE_ALL_LINES;
		page->hinted = 1;
		expect_page(c, stage, request, "what is visible of them", GH_INVALID);
		page->hinted = 0;
		request.nspans = spans;
		request.spans = &span;
		page->span = 1;
		if (spans)
			expect_page(c, stage, request, "a page that stays", GH_INVALID);
		page->span = 0;
		expect_page(c, stage, request, "a leaf page again", GH_OK);
	}
	if (span != NULL)
		c->engine->pipelines->span_destroy(span);
	free(request.back);
	stage_end(stage);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	stage_drop(c, stage);
}

/* A pipeline that reads this attribute of an index that has more. */
static void
expect_attribute(Context *c, uint32_t attribute, GhStatus expected)
{
	static const GhPageAttribute attributes[WRITER_NATTS_MAX] = {{4, 4}};
	GhPageAttribute all[WRITER_NATTS_MAX];
	Stage	   *stage = stage_make();
	HostState	state;
	GhHost		host;
	GhError		error = {0};

	for (uint32_t i = 0; i < WRITER_NATTS_MAX; i++)
		all[i] = attributes[0];
	stage->options.source.natts = WRITER_NATTS_MAX;
	stage_key(stage, stage_column(stage, GH_CLASS_INT, attribute), GH_CLASS_INT);
	stage->parts.columns[0].load = GH_LOAD_INT4;
	stage->options.sink.kind = GH_SINK_ROWS;
	stage_finish(c, stage);
	stage->options.source.kind = GH_SOURCE_LEAVES;
	stage->options.source.page_bytes = 8192;
	stage->options.source.attributes = all;
	host_init(&state, &host);
	stage->engine = c->engine;
	CHECK(c, stage_create(stage, &host, &error) == expected, "attribute %u: %s", attribute, error.message);
	stage_end(stage);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	stage_drop(c, stage);
}

static void
refused_attributes(Context *c)
{
	if (no_pipelines(c))
		return;
	expect_attribute(c, 1, GH_OK);
	expect_attribute(c, GH_LEAF_ATTRIBUTES, GH_OK);
	expect_attribute(c, GH_LEAF_ATTRIBUTES + 1, GH_INVALID);
	expect_attribute(c, WRITER_NATTS_MAX, GH_INVALID);
}

const Test	pipeline_leaf_tests[] = {
	{"pipelines: leaf pages of any index", any_index, false},
	{"pipelines: leaf pages that are full", full_pages, false},
	{"pipelines: damaged leaf pages", damaged_leaves, false},
	{"pipelines: leaf pages without lines", no_lines, false},
	{"pipelines: leaf pages that are refused", refused_pages, false},
	{"pipelines: attributes of leaf pages that are refused", refused_attributes, false},
	{NULL, NULL, false}
};
