/*
 * pipeline_spans.c
 *		Pages of stages of tests of pipelines that are in spans, or are put there.
 */
#include "pipeline_model.h"

#define TRIES 4

/* ------------------------------------------------------------------- places */

typedef struct Place
{
	uint32_t	span;			/* number + 1 */
	uint32_t	place;
} Place;

/* Spans that have as many places as there are pages, or more. */
static GhStatus
make_spans(Context *c, Stage *stage, const GhHost *host, GhError *error)
{
	const Trial *pages = stage->pages;
	uint32_t	count = 1 + (uint32_t) random_below(c, random_below(c, 4) == 0 ? GH_REQUEST_SPANS_MAX : 3);

	for (uint32_t s = 0; s < count; s++)
	{
		uint32_t	npages = pages->npages / count + 1 + (uint32_t) random_below(c, 3);
		GhStatus	status = GH_NO_MEMORY;

		for (int i = 0; i < TRIES && lacks_memory(status); i++)
			status = stage->engine->pipelines->span_create(host, stage->options.device, pages->relation.page_bytes,
														   npages, &stage->spans[s], error);
		if (status != GH_OK)
			return status;
		stage->nspans++;
	}
	return GH_OK;
}

/* Another place for each page. */
static void
draw_places(Context *c, const Stage *stage)
{
	Place		places[GH_REQUEST_SPANS_MAX * (TRIAL_PAGES_MAX + 4)];
	uint32_t	n = 0;

	for (uint32_t s = 0; s < stage->nspans; s++)
		for (uint32_t place = 0; place < stage->spans[s]->npages; place++, n++)
		{
			uint32_t	other = (uint32_t) random_below(c, n + 1);

			if (other < n)
				places[n] = places[other];
			places[other] = (Place) {s + 1, place};
		}
	for (uint32_t p = 0; p < stage->pages->npages; p++)
	{
		stage->pages->pages[p].span = places[p].span;
		stage->pages->pages[p].place = places[p].place;
	}
}

/* ---------------------------------------------------------- pages that stay */

void
spans_only(Context *c, Trial *pages)
{
	for (uint32_t p = 0; p < pages->npages; p++)
	{
		uint8_t    *page = pages->memory + (size_t) p * pages->relation.page_bytes;

		if (pages->pages[p].span == 0)
			continue;
		memset(page, (int) random_below(c, 256), pages->relation.page_bytes);
		pages->pages[p].page = NULL;
	}
}

/* A pipeline that counts the rows of a stage's pages. */
static Stage *
make_counter(Context *c, const Stage *stage)
{
	Stage	   *counter = stage_make();

	counter->engine = stage->engine;
	counter->scarce = stage->scarce;
	counter->pages = stage->pages;
	counter->options.source.natts = stage->pages->relation.natts;
	counter->options.sink.kind = GH_SINK_GROUPS;
	stage_aggregate(counter, GH_AGGREGATE_COUNT_ROWS, 0, 0);
	stage_finish(c, counter);
	return counter;
}

/* Has a pipeline put all pages that have places there; lines: it asks for their lines, too. */
static GhStatus
put_pages(Context *c, Stage *stage, const GhHost *host, bool lines, GhError *error)
{
	Trial	   *pages = stage->pages;
	Stage	   *counter = make_counter(c, stage);
	GhPageRef	list[TRIAL_PAGES_MAX];
	GhPipelineRequest request = {.kind = GH_INPUT_PAGES,.readable = pages->registered,.pages = list};
	GhStatus	status = stage_create(counter, host, error);

	for (uint32_t p = 0; p < pages->npages; p++)
		if (pages->pages[p].span != 0)
		{
			GhPageRef  *page = &list[request.npages++];

			*page = pages->pages[p];
			page->lines = lines ? page->lines : 0;
			request.back_room += page->lines;
		}
	request.bitmaps = pages->bitmaps;
	request.nbitmaps = (uint64_t) pages->npages * TRIAL_WORDS;
	request.nspans = stage->nspans;
	request.spans = stage->spans;
	request.back = make_memory(request.back_room * sizeof(GhBackRow));
	if (status == GH_OK)
	{
		status = stage_request(counter, &request);
		*error = request.error;
	}
	stage_end(counter);
	counter->pages = NULL;
	stage_drop(c, counter);
	free(request.back);
	return status;
}

GhStatus
spans_open(Context *c, Stage *stage, const GhHost *host, GhError *error)
{
	Trial	   *pages = stage->pages;
	GhPageRef	kept[TRIAL_PAGES_MAX];
	uint32_t	early = (uint32_t) random_below(c, 101);	/* pages of 100 */
	GhStatus	status = make_spans(c, stage, host, error);

	if (status != GH_OK)
		return status;
	draw_places(c, stage);
	memcpy(kept, pages->pages, sizeof(kept));
	for (uint32_t p = 0; p < pages->npages; p++)
		if (random_below(c, 100) >= early)
			pages->pages[p].span = 0;
	status = put_pages(c, stage, host, random_below(c, 2) == 0, error);
	if (status != GH_OK)
		return status;
	spans_only(c, pages);
	for (uint32_t p = 0; p < pages->npages; p++)
		if (pages->pages[p].span == 0 && random_below(c, 2) == 0)
			pages->pages[p].span = kept[p].span;
	return GH_OK;
}

void
spans_drop(Stage *stage)
{
	for (uint32_t s = 0; s < stage->nspans; s++)
		stage->engine->pipelines->span_destroy(stage->spans[s]);
	stage->nspans = 0;
}
