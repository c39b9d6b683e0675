/*
 * test_pipeline_spans.c
 *		Pipelines: pages that stay in spans, against the model: put there while they are read, and read there
 *		when there is nothing left of them elsewhere; spans and requests that are refused; memory.
 */
#include "pipeline_model.h"

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

/* ------------------------------------------------------------- pages that stay */

/*
 * A first pipeline finds some pages in places and puts others there; a second one then finds them all there.
 */
static void
put_and_read(Context *c)
{
	if (no_pipelines(c))
		return;
	for (uint64_t round = 0; round < sized(c, 200, 40) && c->failures == 0; round++)
	{
		uint32_t	npages = 1 + (uint32_t) random_below(c, random_below(c, 4) == 0 ? TRIAL_PAGES_MAX : 6);
		Trial	   *pages = draw_pages(c, npages);
		Stage	   *first = pages_stage(c, pages);
		Stage	   *second = pages_stage(c, pages);
		HostState	state;
		GhHost		host;

		host_init(&state, &host);
		first->in_spans = true;
		second->cut = 1 + random_below(c, npages);
		if (stage_run(c, first, &host))
		{
			spans_only(c, pages);
			second->nspans = first->nspans;
			memcpy(second->spans, first->spans, sizeof(first->spans));
			(void) stage_run(c, second, &host);
			second->nspans = 0;
		}
		stage_end(second);
		stage_end(first);
		CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
		second->pages = NULL;
		stage_drop(c, second);
		stage_drop(c, first);
	}
}

/* --------------------------------------------------- two pipelines at a time */

#define PAGES (TRIAL_PAGES_MAX / 2)
#define ROUNDS 20

/* Two pipelines that count rows of the same pages, a span, and how many tuples each page has. */
typedef struct Pair
{
	HostState	state;
	GhHost		host;
	Trial	   *pages;
	Stage	   *stages[2];
	GhPageSpan *span;			/* place 2 p is page p's, and the one behind it, too */
	GhBackRow  *back[2];
} Pair;

/* All lines that are normal, and visible. */
static void
ask_all(Trial *pages)
{
	for (uint32_t p = 0; p < pages->npages; p++)
	{
		pages->pages[p].lines = gh_page_lines(pages->pages[p].page, pages->relation.page_bytes);
		pages->pages[p].bitmap = GH_PAGE_ALL_LINES;
		pages->pages[p].hinted = 0;
	}
}

static bool
pair_open(Context *c, Pair *pair)
{
	GhError		error = {0};
	GhStatus	status = GH_OK;

	memset(pair, 0, sizeof(*pair));
	host_init(&pair->state, &pair->host);
	if (no_pipelines(c))
		return false;
	pair->pages = draw_pages(c, PAGES);
	ask_all(pair->pages);
	for (int i = 0; i < 2 && status == GH_OK; i++)
	{
		Stage	   *stage = pages_stage(c, pair->pages);

		pair->stages[i] = stage;
		pair->back[i] = make_memory((size_t) PAGES * TRIAL_LINES_MAX * sizeof(GhBackRow));
		stage->options.sink.kind = GH_SINK_GROUPS;
		stage->options.sink.groups.nkeys = 0;
		stage->engine = c->engine;
		status = stage_create(stage, &pair->host, &error);
	}
	if (status == GH_OK)
		status = c->engine->pipelines->span_create(&pair->host, 0, pair->pages->relation.page_bytes, 2 * PAGES,
												   &pair->span, &error);
	return CHECK(c, status == GH_OK, "pipelines and a span: %s", error.message);
}

static void
pair_close(Context *c, Pair *pair)
{
	for (int i = 0; i < 2; i++)
	{
		if (pair->stages[i] == NULL)
			continue;
		stage_end(pair->stages[i]);
		if (i == 0)
			pair->stages[i]->pages = NULL;
		free(pair->back[i]);
	}
	if (pair->span != NULL)
		c->engine->pipelines->span_destroy(pair->span);
	CHECK_U64(c, "bytes left", pair->state.allocated + pair->state.device_bytes, 0);
	for (int i = 0; i < 2; i++)
		stage_drop(c, pair->stages[i]);
}

/* A request of one of the pipelines for pages that the list has. */
static void
start_request(Context *c, Pair *pair, int i, const GhPageRef *list, uint32_t npages, GhPipelineRequest *request)
{
	GhStatus	status;

	memset(request, 0, sizeof(*request));
	request->kind = GH_INPUT_PAGES;
	request->readable = pair->pages->registered;
	request->npages = npages;
	request->pages = list;
	request->nspans = 1;
	request->spans = &pair->span;
	request->back = pair->back[i];
	request->back_room = (uint64_t) PAGES * TRIAL_LINES_MAX;
	status = c->engine->pipelines->submit(pair->stages[i]->pipeline, request);
	CHECK(c, status == GH_OK || status == GH_BUSY, "submit: %s", request->error.message);
}

static void
end_request(Context *c, GhPipelineRequest *request, uint64_t tuples)
{
	CHECK(c, c->engine->pipelines->wait(request) == GH_OK, "wait: %s", request->error.message);
	CHECK_U64(c, "rows", request->counted + request->nback, tuples);
}

/* Both read all pages in their places, while one puts them into other places, where both read them then. */
static void
read_and_move(Context *c, Pair *pair, uint64_t tuples)
{
	GhPageRef	here[PAGES];
	GhPageRef	there[PAGES];
	GhPipelineRequest requests[3];

	memcpy(there, pair->pages->pages, sizeof(there));
	for (uint32_t p = 0; p < PAGES; p++)
	{
		there[p].span = 1;
		there[p].place = 2 * p;
	}
	start_request(c, pair, 0, there, PAGES, &requests[0]);
	end_request(c, &requests[0], tuples);
	for (uint64_t round = 0; round < ROUNDS && c->failures == 0; round++)
	{
		memcpy(here, there, sizeof(here));
		for (uint32_t p = 0; p < PAGES; p++)
		{
			here[p].page = NULL;
			there[p].place ^= 1;
		}
		start_request(c, pair, 0, here, PAGES, &requests[0]);
		start_request(c, pair, 0, there, PAGES, &requests[1]);
		start_request(c, pair, 1, here, PAGES, &requests[2]);
		for (int i = 0; i < 3; i++)
			end_request(c, &requests[i], tuples);
	}
}

static void
two_pipelines(Context *c)
{
	Pair		pair;

	if (pair_open(c, &pair))
	{
		uint64_t	tuples = 0;

		for (uint32_t p = 0; p < PAGES; p++)
			tuples += pair.pages->written[p].ntuples;
		read_and_move(c, &pair, tuples);
	}
	pair_close(c, &pair);
}

/* ------------------------------------------------------------------- many pages */

#define MANY 9000				/* more than an engine does at a time; of three one has a place */
#define MANY_LINES 800			/* pages with more are asked for nothing */

/* Brings the pages of a list; they have so many tuples. */
static void
bring_list(Context *c, Pair *pair, GhPageSpan *span, const GhPageRef *list, uint32_t npages, uint64_t tuples)
{
	GhPipelineRequest request = {.kind = GH_INPUT_PAGES,.readable = pair->pages->registered,.npages = npages,
		.pages = list,.nspans = 1,.spans = &span
	};

	for (uint32_t p = 0; p < npages; p++)
		request.back_room += list[p].lines;
	request.back = make_memory(request.back_room * sizeof(GhBackRow));
	CHECK(c, stage_request(pair->stages[0], &request) == GH_OK, "a request: %s", request.error.message);
	CHECK_U64(c, "rows", request.counted + request.nback, tuples);
	free(request.back);
}

/* The same pages many times: put into places, read there beside others, and then those of one page alone. */
static void
put_and_count(Context *c, Pair *pair, GhPageSpan *span)
{
	GhPageRef  *list = make_memory(MANY * sizeof(GhPageRef));
	uint64_t	counts[PAGES];
	uint64_t	all = 0;

	for (uint32_t p = 0; p < PAGES; p++)
	{
		GhPageRef  *page = &pair->pages->pages[p];

		page->lines = page->lines > MANY_LINES ? 0 : page->lines;
		counts[p] = page->lines > 0 ? pair->pages->written[p].ntuples : 0;
	}
	for (uint32_t p = 0; p < MANY; p++)
	{
		list[p] = pair->pages->pages[p % PAGES];
		list[p].span = p % 3 == 0;
		list[p].place = p / 3;
		all += counts[p % PAGES];
	}
	bring_list(c, pair, span, list, MANY, all);
	for (uint32_t p = 0; p < MANY; p += 3)
		list[p].page = NULL;
	bring_list(c, pair, span, list, MANY, all);
	for (uint32_t one = 0; one < PAGES && c->failures == 0; one += 3)
	{
		uint32_t	n = 0;

		for (uint32_t p = one; p < MANY; p += PAGES)
		{
			list[n] = pair->pages->pages[one];
			list[n].page = NULL;
			list[n].span = 1;
			list[n++].place = p / 3;
		}
		bring_list(c, pair, span, list, n, n * counts[one]);
	}
	free(list);
}

static void
many_pages(Context *c)
{
	GhPageSpan *span = NULL;
	GhError		error = {0};
	Pair		pair;

	_Static_assert(PAGES % 3 == 0 && MANY % 3 == 0, "of a page all, or none, have places");
	if (pair_open(c, &pair))
	{
		if (CHECK(c, c->engine->pipelines->span_create(&pair.host, 0, pair.span->page_bytes, MANY / 3, &span,
													   &error) == GH_OK, "a span: %s", error.message))
			put_and_count(c, &pair, span);
		c->engine->pipelines->span_destroy(span);
	}
	pair_close(c, &pair);
}

/* ------------------------------------------------------------------------ runs */

/* A pipeline over pages that are in the places of a span by their numbers. */
typedef struct Runs
{
	HostState	state;
	GhHost		host;
	Trial	   *pages;
	Stage	   *stage;
	GhPageSpan *span;
	uint64_t	lines;			/* of all pages */
} Runs;

static bool
runs_open(Context *c, Runs *runs, bool places)
{
	GhError		error = {0};
	GhStatus	status;

	memset(runs, 0, sizeof(*runs));
	host_init(&runs->state, &runs->host);
	runs->pages = draw_pages(c, 1 + (uint32_t) random_below(c, TRIAL_PAGES_MAX));
	ask_all(runs->pages);
	for (uint32_t p = 0; p < runs->pages->npages; p++)
	{
		runs->pages->pages[p].block = 100 + p;
		runs->lines += runs->pages->pages[p].lines;
	}
	runs->stage = pages_stage(c, runs->pages);
	runs->stage->options.sink.kind = places ? GH_SINK_PLACES : GH_SINK_GROUPS;
	runs->stage->options.sink.groups.nkeys = 0;
	runs->stage->engine = c->engine;
	status = stage_create(runs->stage, &runs->host, &error);
	if (status == GH_OK)
		status = c->engine->pipelines->span_create(&runs->host, 0, runs->pages->relation.page_bytes,
												   runs->pages->npages, &runs->span, &error);
	return CHECK(c, status == GH_OK, "a pipeline and a span: %s", error.message);
}

static void
runs_close(Context *c, Runs *runs)
{
	stage_end(runs->stage);
	if (runs->span != NULL)
		c->engine->pipelines->span_destroy(runs->span);
	CHECK_U64(c, "bytes left", runs->state.allocated + runs->state.device_bytes, 0);
	stage_drop(c, runs->stage);
}

/* Brings pages of a list, whose results are the caller's then, as what went back. */
static void
bring_runs(Context *c, const Runs *runs, const GhPageRef *list, uint32_t npages, const uint16_t *page_lines,
		   GhPipelineRequest *request)
{
	memset(request, 0, sizeof(*request));
	request->kind = GH_INPUT_PAGES;
	request->readable = runs->pages->registered;
	request->npages = npages;
	request->pages = list;
	request->page_lines = page_lines;
	request->nspans = 1;
	request->spans = &runs->span;
	request->back_room = runs->lines;
	request->back = make_memory(runs->lines * sizeof(GhBackRow) + 1);
	CHECK(c, stage_request(runs->stage, request) == GH_OK, "a request: %s", request->error.message);
}

/* Some of the pages as runs, some where they were; how many there are in the list. */
static uint32_t
draw_runs(Context *c, const Runs *runs, GhPageRef *list, uint16_t *page_lines)
{
	const Trial *pages = runs->pages;
	uint32_t	n = 0;

	for (uint32_t p = 0; p < pages->npages; n++)
	{
		uint32_t	most = 1 + (uint32_t) random_below(c, 5);
		GhPageRef  *page = &list[n];

		*page = pages->pages[p];
		page->span = page->run = 0;
		page_lines[p++] = (uint16_t) page->lines;
		if (random_below(c, 4) == 0)
			continue;
		page->page = NULL;
		page->span = 1;
		page->place = p - 1;
		for (page->run = 1; page->run < most && p < pages->npages; page->run++)
		{
			page_lines[p] = (uint16_t) pages->pages[p].lines;
			page->lines += pages->pages[p++].lines;
		}
	}
	return n;
}

/* The same pages one by one and as runs: the same becomes of them. */
static void
compare_runs(Context *c, const Runs *runs)
{
	GhPageRef	list[TRIAL_PAGES_MAX];
	uint16_t	page_lines[TRIAL_PAGES_MAX];
	GhPipelineRequest first;
	GhPipelineRequest second;

	for (uint32_t p = 0; p < runs->pages->npages; p++)
	{
		list[p] = runs->pages->pages[p];
		list[p].span = 1;
		list[p].place = p;
	}
	bring_runs(c, runs, list, runs->pages->npages, NULL, &first);
	for (int i = 0; i < 3 && c->failures == 0; i++)
	{
		bring_runs(c, runs, list, draw_runs(c, runs, list, page_lines), page_lines, &second);
		CHECK_U64(c, "rows", second.counted, first.counted);
		CHECK_U64(c, "tuples", second.seen, first.seen);
		CHECK(c, memcmp(second.passed, first.passed, sizeof(first.passed)) == 0, "rows behind the steps differ");
		CHECK(c, second.nback == first.nback &&
			  memcmp(second.back, first.back, first.nback * sizeof(GhBackRow)) == 0, "other rows went back");
		free(second.back);
	}
	free(first.back);
}

static void
pages_in_runs(Context *c)
{
	if (no_pipelines(c) || !c->engine->pipelines->takes_runs)
		return;
	for (uint64_t round = 0; round < sized(c, 200, 40) && c->failures == 0; round++)
	{
		Runs		runs;

		if (runs_open(c, &runs, round % 2 == 0))
			compare_runs(c, &runs);
		runs_close(c, &runs);
	}
}

/* -------------------------------------------------------------------- refusals */

#define REFUSED(target, value) \
	do { \
		__typeof__(target) was = target; \
		target = value; \
		expect_refused(c, &pair, list, request, #target " = " #value); \
		target = was; \
	} while (0)

static void
expect_refused(Context *c, const Pair *pair, const GhPageRef *list, GhPipelineRequest request, const char *what)
{
	request.pages = list;
	CHECK_STATUS(c, what, stage_request(pair->stages[0], &request), GH_INVALID);
	CHECK(c, request.error.message[0] != '\0', "%s: no message", what);
	CHECK_U64(c, what, request.counted | request.seen | request.nback, 0);
}

/* Spans that are the pipeline's in all but one thing. */
static void
refuse_spans(Context *c, const Pair *pair, const GhPageRef *list, GhPipelineRequest request)
{
	GhPageSpan	forged = *pair->span;
	GhPageSpan *spans[] = {pair->span, &forged};
	GhError		error = {0};

	request.nspans = 2;
	request.spans = spans;
	forged.engine = NULL;
	expect_refused(c, pair, list, request, "a span of another engine");
	forged.engine = pair->span->engine;
	forged.device++;
	expect_refused(c, pair, list, request, "a span of another device");
	spans[1] = NULL;
	expect_refused(c, pair, list, request, "no span");
	CHECK(c, c->engine->pipelines->span_create(&pair->host, 0, pair->span->page_bytes == 8192 ? 16384 : 8192, 1,
											   &spans[1], &error) == GH_OK, "a span: %s", error.message);
	if (c->failures == 0)
		expect_refused(c, pair, list, request, "a span of other pages");
	c->engine->pipelines->span_destroy(spans[1]);
}

/* A run of both pages, which are in the last two places, in all but one thing. */
static void
refuse_runs(Context *c, const Pair *ours, const GhPageRef *pages, GhPipelineRequest request)
{
	Pair		pair = *ours;
	GhPageRef	list[1] = {pages[0]};
	uint16_t	lines[2] = {(uint16_t) pages[0].lines, (uint16_t) pages[1].lines};

	request.npages = 1;
	request.page_lines = lines;
	list[0].page = NULL;
	list[0].span = 1;
	list[0].place = 2 * PAGES - 2;
	list[0].run = 2;
	list[0].lines = pages[0].lines + pages[1].lines;
	if (!c->engine->pipelines->takes_runs)
	{
		expect_refused(c, &pair, list, request, "a run");
		return;
	}
	REFUSED(request.page_lines, NULL);
	REFUSED(list[0].page, pages[0].page);
	REFUSED(list[0].place, 2 * PAGES - 1);
	REFUSED(list[0].run, 3);
	REFUSED(list[0].lines, list[0].lines + 1);
	REFUSED(list[0].hinted, 1);
	REFUSED(list[0].bitmap, 0);
	REFUSED(lines[0], UINT16_MAX);
}

static void
refused_requests(Context *c)
{
	Pair		pair;

	if (pair_open(c, &pair))
	{
		GhPageRef	list[2] = {pair.pages->pages[0], pair.pages->pages[1]};
		GhPipelineRequest request = {.kind = GH_INPUT_PAGES,.readable = pair.pages->registered,.npages = 2,
			.pages = list,.nspans = 1,.spans = &pair.span,.back = pair.back[0],
			.back_room = (uint64_t) PAGES * TRIAL_LINES_MAX
		};

		list[1].span = 1;
		list[1].place = 2 * PAGES - 1;
		REFUSED(request.nspans, 0);
		REFUSED(request.nspans, GH_REQUEST_SPANS_MAX + 1);
		REFUSED(request.spans, NULL);
		REFUSED(list[0].page, NULL);
		REFUSED(list[1].page, (const char *) pair.pages->memory + 8);
		REFUSED(list[1].span, 2);
		REFUSED(list[1].span, UINT16_MAX);
		REFUSED(list[1].run, 2);
		REFUSED(list[1].place, 2 * PAGES);
		REFUSED(list[1].place, UINT32_MAX);
		refuse_spans(c, &pair, list, request);
		refuse_runs(c, &pair, list, request);
		CHECK_STATUS(c, "a page is put into its place", stage_request(pair.stages[0], &request), GH_OK);
		list[1].page = NULL;
		CHECK_STATUS(c, "and read there", stage_request(pair.stages[0], &request), GH_OK);
		/* a request whose pages are in no span may name some all the same, or none */
		list[1] = pair.pages->pages[1];
		CHECK_STATUS(c, "spans with no page in them", stage_request(pair.stages[0], &request), GH_OK);
		request.nspans = 0;
		request.spans = NULL;
		list[0].place = UINT32_MAX;
		CHECK_STATUS(c, "no spans", stage_request(pair.stages[0], &request), GH_OK);
	}
	pair_close(c, &pair);
}

static void
expect_span(Context *c, int device, uint32_t page_bytes, uint32_t npages, GhStatus expected)
{
	GhPageSpan *span = NULL;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhStatus	status;

	host_init(&state, &host);
	status = c->engine->pipelines->span_create(&host, device, page_bytes, npages, &span, &error);
	CHECK(c, status == expected && (status == GH_OK) == (span != NULL), "a span of %u pages of %u bytes on device "
		  "%d: %d, expected %d: %s", npages, page_bytes, device, status, expected, error.message);
	CHECK(c, status == GH_OK || (error.status == status && error.message[0] != '\0'), "there is no message");
	if (status == GH_OK)
	{
		CHECK(c, span->engine == c->engine->pipelines && span->device == device && span->page_bytes == page_bytes &&
			  span->npages == npages, "a span is another one");
		CHECK(c, state.allocated + state.device_bytes >= (uint64_t) page_bytes * npages,
			  "the span's memory is not counted");
		c->engine->pipelines->span_destroy(span);
	}
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
}

static void
refused_spans(Context *c)
{
	if (no_pipelines(c))
		return;
	expect_span(c, 0, 8192, 1, GH_OK);
	expect_span(c, 0, GH_PAGE_BYTES_MIN, GH_SPAN_PAGES_MAX, GH_OK);
	expect_span(c, 0, GH_PAGE_BYTES_MAX, 3, GH_OK);
	expect_span(c, 0, 8192, 0, GH_INVALID);
	expect_span(c, 0, GH_PAGE_BYTES_MIN, GH_SPAN_PAGES_MAX + 1, GH_INVALID);
	expect_span(c, 0, 0, 1, GH_INVALID);
	expect_span(c, 0, GH_PAGE_BYTES_MIN / 2, 1, GH_INVALID);
	expect_span(c, 0, GH_PAGE_BYTES_MAX * 2, 1, GH_INVALID);
	expect_span(c, 0, 8192 + 16, 1, GH_INVALID);
	expect_span(c, -1, 8192, 1, GH_INVALID);
	expect_span(c, 1000, 8192, 1, GH_INVALID);
	c->engine->pipelines->span_destroy(NULL);
}

/* --------------------------------------------------------------------- memory */

static void
no_memory(Context *c)
{
	GhPageSpan *span = NULL;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhStatus	status;

	if (no_pipelines(c))
		return;
	host_init(&state, &host);
	state.fail_at = state.refuse_at = 1;
	state.fail_after = state.refuse_after = true;
	status = c->engine->pipelines->span_create(&host, 0, 8192, 10, &span, &error);
	CHECK(c, lacks_memory(status) && error.status == status && span == NULL, "a span without memory: %d", status);
	CHECK(c, state.failed || state.refused, "the host was not asked for memory");
	state.fail_at = state.refuse_at = 0;
	state.fail_after = state.refuse_after = false;
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	CHECK_STATUS(c, "a span", c->engine->pipelines->span_create(&host, 0, 8192, 10, &span, &error), GH_OK);
	c->engine->pipelines->span_destroy(span);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
}

static void
failing_allocation(Context *c)
{
	FaultArm	arm = no_pipelines(c) ? NULL : find_fault_arm(c);
	GhPageSpan *span = NULL;
	GhError		error = {0};
	HostState	state;
	GhHost		host;

	if (arm == NULL)
		return;
	host_init(&state, &host);
	arm(1, 0);
	CHECK_STATUS(c, "a span without memory", c->engine->pipelines->span_create(&host, 0, 8192, 10, &span, &error),
				 GH_NO_MEMORY);
	arm(0, 0);
	CHECK(c, span == NULL, "there is a span");
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
}

const Test	pipeline_span_tests[] = {
	{"pipelines: pages that stay in spans", put_and_read, false},
	{"pipelines: two pipelines and a span", two_pipelines, false},
	{"pipelines: many pages in a span", many_pages, false},
	{"pipelines: pages in runs", pages_in_runs, false},
	{"pipelines: pages in spans that are refused", refused_requests, false},
	{"pipelines: spans that are refused", refused_spans, false},
	{"pipelines: spans without memory", no_memory, false},
	{"pipelines: spans and failed device allocations", failing_allocation, false},
	{NULL, NULL, false}
};
