/*
 * supply.c
 *		The pages of a heap scan, supplied to a pipeline of an engine.
 *
 * PostgreSQL's functions have looked at a page (heap/pages.c): what is visible is known, and the page is
 * pinned.  It goes into a request, with the lines that are asked for.  When a request is full it is
 * submitted, and the next one is filled while the device works.  When it is through, rows that were
 * handed back are given to the caller, and the pins are given up.
 *
 * Each page is either left where it is, and stays pinned until the device has read it, or it
 * is copied into the request's buffer and unpinned at once.  The first costs less, but asks for a device
 * that reads shared buffers, and for many pins: this backend's share of the buffers has to be large enough.
 * Of a scan through a ring of few buffers, pages that are found in the pool are left there, and those that
 * had to be read are copied, so that the ring can go on with their buffers.  Beside a pin, others may
 * set hints in a page, add tuples and delete them; record_row.h knows of that.
 *
 * Of a page that is not all-visible, the device finds by the tuples' hints which ones the snapshot sees
 * (GhPageRef.hinted).  Tuples that are handed back are judged here, as PostgreSQL does it, which sets
 * their hints, and those that are visible are asked for in the request that is filled next.  Where
 * there are many of them, as after a bulk load, all of a page is judged here before it is supplied.
 *
 * All calls but gh_supply_begin leave the supply failed, with the error, when the device is lost.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "clock.h"
#include "fragment/shared_groups.h"
#include "fragment/supply.h"
#include "service/placement.h"
#include "service/service.h"

/* -------------------------------------------------------------------- set-up */

/* The snapshot's xmin, for hints to be held against; 0: not of such a snapshot. */
static uint32
seen_before(const GhPages *pages)
{
	Snapshot	snapshot = pages->snapshot;

	return snapshot->snapshot_type == SNAPSHOT_MVCC ? snapshot->xmin : 0;
}

/*
 * How many lines a request may have beyond those whose rows could all come back; 0: none.  That is for the
 * service, which bears it that there are more (service.h).  Floats are added request by request: where one
 * ends is not to depend on what came back.
 */
static uint32
most_lines(const GhEngine *engine, const GhPipelineOptions *options)
{
	const GhGroupsSink *groups = &options->sink.groups;

	if (!engine->shares_tables || options->sink.kind == GH_SINK_PLACES)
		return 0;
	if (options->sink.kind != GH_SINK_GROUPS)
		return GH_SUPPLY_LINES_TAKEN;
	for (uint32 a = 0; a < groups->naggregates; a++)
		if (gh_class_is_float(groups->aggregates[a].value_class))
			return 0;
	if (groups->nkeys == 0 || (groups->expected > 0 && groups->expected <= GH_FEW_GROUPS &&
							   options->nprobes <= GH_FEW_PROBES))
		return GH_SUPPLY_LINES_ADDED;
	return GH_SUPPLY_LINES_TAKEN;
}

/* Gives all back that is not PostgreSQL's; the engine waits for what the device still reads. */
static void
release(void *arg)
{
	GhSupply   *supply = arg;

	gh_supply_drop_levels(supply, 0);
	if (supply->lender != NULL)
		gh_shared_groups_leave(supply);
	else if (supply->pipeline != NULL)
		supply->engine->pipelines->destroy(supply->pipeline);
	supply->pipeline = NULL;
	gh_supply_free_buffers(supply);
}

/* The options, for the pages of a scan that has begun, or none. */
static GhPipelineOptions
options_seen(const GhPipelineOptions *options, const GhPages *pages)
{
	GhPipelineOptions seen = *options;

	seen.source.seen_before = pages != NULL ? seen_before(pages) : 0;
	return seen;
}

/* Makes a pipeline that pages, or rows, are to be supplied to; it is destroyed before the context goes. */
GhStatus
gh_supply_make_pipeline(const GhEngine *engine, const GhPipelineOptions *options, const GhPages *pages,
						MemoryContext context, GhPipeline **pipeline, GhError *error)
{
	GhPipelineOptions seen = options_seen(options, pages);
	GhHost		host;
	GhStatus	status;

	gh_host_init(&host, context);
	while ((status = engine->pipelines->create(&host, &seen, pipeline, error)) == GH_STOPPED)
		gh_serve_interrupt();
	return status;
}

/* A pipeline of several processes; shared: see gh_supply_begin. */
static GhStatus
open_shared(GhSupply *supply, const GhHost *host, const GhPipelineOptions *options, GhRef *shared)
{
	supply->attached = *shared != 0;
	if (supply->attached)
		return gh_service_pipeline_attach(*shared, host, &supply->pipeline, &supply->error);
	return gh_service_pipeline_create_shared(host, options, shared, &supply->pipeline, &supply->error);
}

/* A supply without a pipeline. */
static void
init(GhSupply *supply, const GhEngine *engine, const GhPipelineOptions *options, GhPages *pages,
	 MemoryContext context)
{
	memset(supply, 0, sizeof(*supply));
	supply->engine = engine;
	supply->pages = pages;
	supply->context = context;
	supply->failed = true;
	supply->pins = pages != NULL && gh_supply_may_pin(supply, options->device);
	supply->lists = options->sink.kind == GH_SINK_PLACES;
	supply->most_lines = most_lines(engine, options);
	supply->device = options->device;
	supply->callback.func = release;
	supply->callback.arg = supply;
	MemoryContextRegisterResetCallback(context, &supply->callback);
}

/*
 * Makes the pipeline.  The pages' scan has begun; NULL: it is for rows (supply_rows.c).  All is given back by
 * gh_supply_end or with the context.  False: the error says why not.
 *
 * shared: the pipeline is one of the service that several processes supply.  Where *shared is 0 it is made,
 * and *shared becomes the name of it for the others; it is the caller's to have it released.
 */
bool
gh_supply_begin(GhSupply *supply, const GhEngine *engine, const GhPipelineOptions *options, GhRef *shared,
				GhPages *pages, MemoryContext context)
{
	GhPipelineOptions seen;
	GhHost		host;
	GhStatus	status;

	init(supply, engine, options, pages, context);
	if (shared == NULL)
		status = gh_supply_make_pipeline(engine, options, pages, context, &supply->pipeline, &supply->error);
	else
	{
		seen = options_seen(options, pages);
		gh_host_init(&host, context);
		while ((status = open_shared(supply, &host, &seen, shared)) == GH_STOPPED)
			gh_serve_interrupt();
	}
	if (status != GH_OK)
		supply->pipeline = NULL;
	supply->failed = status != GH_OK;
	return !supply->failed;
}

/* As gh_supply_begin, with a pipeline that is there, and is not the supply's to end (shared_groups.c). */
void
gh_supply_begin_lent(GhSupply *supply, const GhEngine *engine, const GhPipelineOptions *options,
					 GhPipeline *pipeline, GhPages *pages, MemoryContext context)
{
	init(supply, engine, options, pages, context);
	supply->pipeline = pipeline;
	supply->failed = false;
}

/* As of GhPipelineEngine.times; 0 where nobody takes the time. */
void
gh_supply_times(const GhSupply *supply, uint64 *queue_ns, uint64 *device_ns)
{
	*queue_ns = *device_ns = 0;
	if (supply->pipeline != NULL && !(supply->lender != NULL && supply->attached) &&
		supply->engine->pipelines->times != NULL)
		supply->engine->pipelines->times(supply->pipeline, queue_ns, device_ns);
}

/* ------------------------------------------------------------------- requests */

static void
fail(GhSupply *supply, const GhError *error)
{
	supply->failed = true;
	supply->error = *error;
}

/* What was pinned for the request is given up, and it is empty. */
static void
release_pins(GhSupplyRequest *request)
{
	for (uint32 i = 0; i < request->request.npages; i++)
		if (BufferIsValid(request->pins[i]))
			ReleaseBuffer(request->pins[i]);
	memset(&request->request, 0, sizeof(request->request));
	request->ncopies = 0;
	request->nhinted = 0;
	request->nagain = 0;
	request->nresident = request->nnotes = request->nall = request->nlines = 0;
	request->submitted = false;
}

/* A bitmap for the page's lines. */
static void
put_bitmap(GhSupplyRequest *request, GhPageRef *page, const uint64 *words)
{
	uint32		nwords = (page->lines + 63) / 64;

	page->bitmap = (uint32) request->request.nbitmaps;
	memcpy(&request->bitmaps[page->bitmap], words, sizeof(uint64) * nwords);
	request->request.nbitmaps += nwords;
}

/* A page that is no run was put into the request. */
static void
count_page(GhSupplyRequest *request, uint32 i)
{
	request->firsts[i] = request->nall++;
	request->nlines += request->pages[i].lines;
}

/*
 * Page i of the request, which is empty but for pages before it, becomes the next one.  copy: which one it
 * is.
 */
static void
ask_again(GhSupplyRequest *request, uint32 i, uint32 copy, const GhJudgedPage *judged)
{
	uint32		to = request->request.npages++;
	GhPageRef *page = &request->pages[to];

	request->blocks[to] = request->blocks[i];
	memset(page, 0, sizeof(*page));
	page->block = request->blocks[to];
	page->lines = judged->lines;
	put_bitmap(request, page, judged->visible);
	count_page(request, to);
	request->pins[to] = request->pins[i];
	/* copies, too, lie in the order of the pages */
	page->page = BufferIsValid(request->pins[to]) ? BufferGetPage(request->pins[to]) :
		memmove(request->copies + (Size) request->ncopies++ * BLCKSZ, request->copies + (Size) copy * BLCKSZ, BLCKSZ);
}

/* Gives up the pages but those that were judged, which are asked once more. */
static void
keep_judged(GhSupply *supply, GhSupplyRequest *request)
{
	uint32		npages = request->request.npages;
	uint32		next = 0;
	uint32		copies = 0;

	/* from here on, the request's pins are those of its pages */
	memset(&request->request, 0, sizeof(request->request));
	request->nhinted = 0;
	request->ncopies = 0;
	request->nresident = request->nnotes = request->nall = request->nlines = 0;
	request->submitted = false;
	for (uint32 i = 0; i < npages; i++)
	{
		bool		is_pinned = BufferIsValid(request->pins[i]);
		bool		is_copy = !is_pinned && request->pages[i].page != NULL;

		if (next < supply->njudged && supply->judged[next].page == i)
			ask_again(request, i, copies, &supply->judged[next++]);
		else if (is_pinned)
			ReleaseBuffer(request->pins[i]);
		copies += is_copy;
	}
	request->nagain = request->request.npages;
}

static void
submit(GhSupply *supply, GhSupplyRequest *request)
{
	GhStatus	status;

	/* other kinds are set where they are filled */
	if (request->request.kind == 0)
		request->request.kind = GH_INPUT_PAGES;
	/* in the engine's own buffers, or where it reads them; a worker of the service judges by itself */
	request->request.readable = true;
	request->request.pages = request->pages;
	request->request.bitmaps = request->bitmaps;
	request->request.back = request->back;
	request->request.back_room = supply->rows_room;
	request->request.spans = request->named;
	status = supply->engine->pipelines->submit(supply->pipeline, &request->request);
	request->submitted = status == GH_OK || status == GH_BUSY;
	if (!request->submitted)
		fail(supply, &request->request.error);
}

/* Waits for a request that was submitted to a pipeline of the supply's engine. */
GhStatus
gh_supply_wait(const GhSupply *supply, GhPipeline *pipeline, GhPipelineRequest *request)
{
	for (;;)
	{
		GhStatus	status = supply->engine->pipelines->wait(request);

		if (status != GH_STOPPED)
			return status;
		gh_serve_interrupt();
		/* the service still has it */
		if (request->status == GH_BUSY)
			continue;
		status = supply->engine->pipelines->submit(pipeline, request);
		if (status != GH_OK && status != GH_BUSY)
			return status;
	}
}

static void
count_request(GhSupply *supply, const GhSupplyRequest *request)
{
	GhSupplyCounts *counts = &supply->counts;

	counts->bytes += (uint64) (request->request.npages - request->nagain - request->nresident) * BLCKSZ;
	if (request->request.kind == GH_INPUT_UNMATCHED)
		counts->unmatched += request->request.seen;
	else
		counts->tuples += request->request.seen;
	counts->counted += request->request.counted;
	counts->back += request->request.nback;
	/* the next ones may have more lines, or have to have fewer again */
	supply->lines_room = supply->rows_room;
	if (counts->back <= counts->tuples / GH_SUPPLY_BACK_SHARE)
		supply->lines_room = Max(supply->lines_room, supply->most_lines);
	for (int s = 0; s < GH_STEPS_MAX; s++)
		counts->passed[s] += request->request.passed[s];
}

/* Why rows that come back, and are in no page of a scan, end it: a constant string. */
static const char *
why_back(uint32 kind)
{
	return kind == GH_INPUT_UNMATCHED ? "rows without a match were handed back" :
		"rows of an inner side were handed back";
}

/* Rows that were handed back; one that is in no page cannot be found again. */
static void
give_back(GhSupply *supply, const GhSupplyRequest *request)
{
	if (request->request.kind == GH_INPUT_PAGES && supply->line_back != NULL)
		gh_supply_give_lines_back(supply, request);
	else if (request->request.kind == GH_INPUT_PAGES)
		gh_supply_give_back(supply, request);
	else if (request->request.nback > 0)
	{
		supply->failed = true;
		(void) gh_error_set(&supply->error, GH_DECLINED, "%s", why_back(request->request.kind));
	}
}

/*
 * A request has failed.  Of rows that came back there were more than could be foreseen: that is for the CPU
 * engine, as if there were no device for such rows.
 */
static void
fail_request(GhSupply *supply, const GhPipelineRequest *request)
{
	fail(supply, &request->error);
	if (request->error.status == GH_TOO_SMALL)
		(void) gh_error_set(&supply->error, GH_DECLINED, "%s", request->kind == GH_INPUT_PAGES ?
							"too many rows were handed back at a time" : why_back(request->kind));
}

/* Waits for a request and empties it, but for pages that are to be asked once more. */
static void
complete(GhSupply *supply, GhSupplyRequest *request)
{
	instr_time	clock = {0};

	supply->njudged = 0;
	if (request->submitted)
	{
		GhStatus	status;

		gh_clock(supply->timing, NULL, &clock);
		status = gh_supply_wait(supply, supply->pipeline, &request->request);
		gh_clock(supply->timing, &supply->counts.wait_time, &clock);
		if (status != GH_OK)
			fail_request(supply, &request->request);
		else if (!supply->failed)
		{
			count_request(supply, request);
			gh_supply_publish(supply, request);
			give_back(supply, request);
		}
		gh_clock(supply->timing, &supply->counts.back_time, &clock);
	}
	if (supply->failed)
		release_pins(request);
	else
		keep_judged(supply, request);
}

/* ---------------------------------------------------------------------- pages */

/* Which lines of the page are wanted. */
static void
ask_for_lines(GhSupplyRequest *request, GhPageRef *page, const GhPages *pages)
{
	uint64		words[GH_LINE_WORDS];

	request->nhinted += pages->by_headers;
	if (gh_ask_for_lines(pages, page, words))
		put_bitmap(request, page, words);
}

/*
 * Copies the page.  Where what is visible is found in the copy it is made under the lock, so that all
 * of a header is of one time.
 */
static void *
copy_page(char *to, const GhPages *pages)
{
	Buffer		buffer = pages->buffer;

	if (pages->by_headers)
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(to, BufferGetPage(buffer), BLCKSZ);
	if (pages->by_headers)
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return to;
}

/* Whether the request is full: it has so many pages, or as many copies as there is room for. */
static bool
is_full(const GhSupply *supply, const GhSupplyRequest *request, uint32 room)
{
	return request->request.npages == supply->list_room || request->request.npages - request->nresident == room ||
		request->request.nspans == GH_REQUEST_SPANS_MAX || request->nall >= gh_supply_most_pages(supply) ||
		request->nlines + MaxHeapTuplesPerPage > supply->lines_room || request->nnotes >= room ||
		(supply->copy_room > 0 && request->ncopies == supply->copy_room);
}

/* The request is full: it is submitted, and the oldest one is the next to be filled. */
void
gh_supply_turn_over(GhSupply *supply)
{
	do
	{
		submit(supply, &supply->requests[supply->current]);
		supply->current = (supply->current + 1) % GH_SUPPLY_REQUESTS;
		complete(supply, &supply->requests[supply->current]);
		/* it may be full of pages that are asked once more, which are not for a third time */
	} while (!supply->failed && is_full(supply, &supply->requests[supply->current], supply->room));
}

/*
 * Before the first page is read: lines suffice, and the hints of tuples, but where `hints` is false: for
 * which tuples they tell what is visible, and so the order in which rows are added, depends on what else has
 * read them before.
 */
void
gh_supply_open_pages(GhSupply *supply, bool hints)
{
	GhPages    *pages = supply->pages;

	pages->tuples_unread = pages->tells_pooled = supply->pins;
	pages->lines_suffice = true;
	pages->headers_suffice = hints && seen_before(pages) != 0;
	pages->headers_doubted = true;
	gh_supply_open_resident(supply);
	if (supply->turned)
		gh_supply_fit_buffers(supply);
	supply->turned = false;
}

/* Others may read them again. */
void
gh_supply_close_pages(GhSupply *supply)
{
	GhPages    *pages = supply->pages;

	pages->tuples_unread = pages->tells_pooled = pages->lines_suffice = pages->headers_suffice = false;
	gh_supply_close_resident(supply);
}

/* What is supplied next are pages of another relation, to the same pipeline; all requests have ended. */
void
gh_supply_turn_to(GhSupply *supply, GhPages *pages)
{
	gh_supply_close_pages(supply);
	gh_supply_leave_resident(supply);
	supply->pages = pages;
	supply->turned = true;
}

/*
 * The request that is filled is on its way.  They become larger, for the first rows should not be waited for.
 */
static void
pass_on(GhSupply *supply)
{
	submit(supply, &supply->requests[supply->current]);
	supply->current = (supply->current + 1) % GH_SUPPLY_REQUESTS;
	supply->fill = Min(supply->room, 2 * supply->fill);
}

/* The next page of the request, which the pages' scan has pinned. */
static void
put_page(GhSupply *supply, GhSupplyRequest *request)
{
	GhPages    *pages = supply->pages;
	/* there is room for copies where the scan had a ring when the buffers were taken */
	bool		in_place = supply->pins && (!pages->was_read || supply->copy_room == 0);
	GhResidentNote note;
	GhResidentOffer offer = gh_supply_offer_page(supply, in_place, &note);
	uint32		i;

	if (offer == GH_RESIDENT_SAME)
	{
		gh_supply_put_resident(supply, request, &note.at, 1, note.at.lines);
		gh_supply_note(request, &note);
		gh_pages_leave(pages);
		return;
	}
	supply->counts.pinned += in_place;
	i = request->request.npages++;
	request->blocks[i] = pages->block;
	ask_for_lines(request, &request->pages[i], pages);
	count_page(request, i);
	supply->counts.hinted += pages->by_headers;
	if (offer == GH_RESIDENT_KEEP)
	{
		gh_supply_name_place(supply, request, &request->pages[i], &note.at);
		note.at.lines = request->pages[i].lines;
		note.unsure = !pages->all_visible;
		note.listed = i;
		gh_supply_note(request, &note);
	}
	if (in_place)
	{
		request->pins[i] = gh_pages_take_pin(pages);
		request->pages[i].page = BufferGetPage(request->pins[i]);
	}
	else
	{
		request->pins[i] = InvalidBuffer;
		request->pages[i].page = copy_page(request->copies + (Size) request->ncopies++ * BLCKSZ, pages);
		gh_pages_leave(pages);
	}
}

/*
 * Takes over the page that the pages' scan has pinned, or of which it said that the supply has it.  False:
 * the supply has failed.
 */
bool
gh_supply_page(GhSupply *supply)
{
	GhSupplyRequest *request = &supply->requests[supply->current];
	GhPages    *pages = supply->pages;

	supply->counts.pages += pages->run;
	if (pages->ntuples == 0 && !pages->elsewhere)
		return !supply->failed;
	if (!gh_supply_take_buffers(supply))
		return false;
	if (pages->elsewhere)
	{
		gh_supply_put_resident(supply, request, &supply->found, pages->run,
							   gh_resident_lines(supply->resident, pages->block, pages->run));
		gh_resident_count_hits(supply->resident, pages->run);
	}
	else
		put_page(supply, request);
	if (supply->lists && is_full(supply, request, supply->fill))
		pass_on(supply);
	else if (!supply->lists && is_full(supply, request, supply->room))
		gh_supply_turn_over(supply);
	return !supply->failed;
}

/* The request that is not full is on its way, too: no more pages come before the flush. */
void
gh_supply_submit_last(GhSupply *supply)
{
	GhSupplyRequest *request = &supply->requests[supply->current];

	if (!supply->failed && request->request.npages > 0 && !request->submitted)
		submit(supply, request);
}

/* Ends all requests, the one that is not full, too.  False: the supply has failed. */
bool
gh_supply_flush(GhSupply *supply)
{
	bool		again = true;

	gh_supply_submit_last(supply);
	while (again)
	{
		again = false;
		/* the oldest first */
		for (int i = 1; i <= GH_SUPPLY_REQUESTS; i++)
		{
			GhSupplyRequest *request = &supply->requests[(supply->current + i) % GH_SUPPLY_REQUESTS];

			complete(supply, request);
			if (supply->failed || request->request.npages == 0)
				continue;
			submit(supply, request);
			again = true;
		}
	}
	return !supply->failed;
}

/* ------------------------------------------------- requests whose rows are listed */

/* Whether a page may be supplied: else a request is to be read first. */
bool
gh_supply_has_room(const GhSupply *supply)
{
	return !supply->requests[supply->current].submitted;
}

/*
 * The request that is to be read next, when it is through: it stays as it is, and its pages where they are,
 * until gh_supply_done.  Where none is on its way, that is the one that was being filled.  NULL: there are no
 * pages, or the supply has failed.
 */
GhSupplyRequest *
gh_supply_next(GhSupply *supply)
{
	instr_time	clock = {0};

	if (!supply->failed && supply->requests[supply->current].request.npages > 0 &&
		!supply->requests[supply->current].submitted)
		pass_on(supply);
	for (int i = 0; i < GH_SUPPLY_REQUESTS && !supply->failed; i++)
	{
		GhSupplyRequest *request = &supply->requests[(supply->current + i) % GH_SUPPLY_REQUESTS];
		GhStatus	status;

		if (!request->submitted)
			continue;
		gh_clock(supply->timing, NULL, &clock);
		status = gh_supply_wait(supply, supply->pipeline, &request->request);
		gh_clock(supply->timing, &supply->counts.wait_time, &clock);
		if (status != GH_OK)
		{
			fail(supply, &request->request.error);
			return NULL;
		}
		count_request(supply, request);
		gh_supply_publish(supply, request);
		return request;
	}
	return NULL;
}

void
gh_supply_done(GhSupply *supply, GhSupplyRequest *request)
{
	release_pins(request);
}

/* Nobody asks for the rows of a request, but if it is done its pages may be used. */
static void
publish_ended(GhSupply *supply, GhSupplyRequest *request)
{
	if (!supply->failed && request->submitted && request->nnotes > 0 &&
		supply->engine->pipelines->poll(&request->request) == GH_OK)
		gh_supply_publish(supply, request);
}

void
gh_supply_end(GhSupply *supply)
{
	for (int i = 0; i < GH_SUPPLY_REQUESTS; i++)
	{
		publish_ended(supply, &supply->requests[i]);
		release_pins(&supply->requests[i]);
	}
	release(supply);
	gh_supply_leave_resident(supply);
}
