/*
 * supply.c
 *		The pages of a heap scan, supplied to a scan of an engine.
 *
 * PostgreSQL's functions have looked at a page (join/pages.c): what is visible is known, and the page is
 * pinned.  It goes into a request, with the lines that are asked for.  When a request is full it is
 * submitted, and the next one is filled while the device works.  When it is through, rows that were
 * handed back are given to the caller, and the pins are given up.
 *
 * Pages are either left where they are, and stay pinned until the device has read them, or they
 * are copied into the request's buffer and unpinned at once.  The first costs less, but asks for a device
 * that reads shared buffers, and for many pins: it is for relations that are not read through a ring
 * of few buffers, where this backend's share of the buffers is large enough.  Beside a pin, others may
 * set hints in a page and add tuples; neither is looked at.
 *
 * All calls but gh_supply_begin leave the supply failed, with the error, when the device is lost.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "aggregate/supply.h"
#include "service/service.h"
#include "session.h"

/* Pages of a request. */
#define GH_SUPPLY_PINNED 1024
#define GH_SUPPLY_COPIED 192
/* With fewer than this, there is no point. */
#define GH_SUPPLY_MIN 64

/* Words that a page's bitmap may take. */
#define GH_BITMAP_WORDS ((MaxHeapTuplesPerPage + 63) / 64)

/* Bytes of a request's buffer that a page takes, but for its copy. */
#define GH_SUPPLY_PAGE_BYTES \
	(sizeof(GhScanPage) + GH_BITMAP_WORDS * sizeof(uint64) + MaxHeapTuplesPerPage * sizeof(GhScanRow))

/* -------------------------------------------------------------------- set-up */

/* How many pages may be pinned at a time: what others could claim, too, of the buffers that there are. */
static uint32
pins_allowed(void)
{
	return (uint32) (NBuffers / (MaxBackends + NUM_AUXILIARY_PROCS));
}

static bool
may_pin(const GhSupply *supply, const GhScanOptions *options)
{
	return supply->engine == gh_service_engine() && gh_service_reads_pool(options->device) &&
		!RelationUsesLocalBuffers(supply->pages->scan->rs_base.rs_rd) &&
		supply->pages->scan->rs_strategy == NULL &&
		pins_allowed() / GH_SUPPLY_REQUESTS >= GH_SUPPLY_MIN;
}

static void
lay_out(GhSupply *supply, GhSupplyRequest *request, char *buffer)
{
	request->copies = supply->pinned ? NULL : buffer;
	buffer += supply->pinned ? 0 : (Size) supply->room * BLCKSZ;
	request->pages = (GhScanPage *) buffer;
	request->bitmaps = (uint64 *) (request->pages + supply->room);
	request->back = (GhScanRow *) (request->bitmaps + (Size) supply->room * GH_BITMAP_WORDS);
	request->blocks = MemoryContextAlloc(supply->context, sizeof(BlockNumber) * supply->room);
	request->pins = MemoryContextAlloc(supply->context, sizeof(Buffer) * supply->room);
}

static Size
buffer_bytes(const GhSupply *supply)
{
	return (GH_SUPPLY_PAGE_BYTES + (supply->pinned ? 0 : BLCKSZ)) * supply->room;
}

/*
 * As large as can be had: others need some, too.  They are taken when there is a page or a result to
 * be put into them, so that the scans of a node have theirs one after the other.
 */
static bool
take_buffers(GhSupply *supply)
{
	if (supply->buffers[0] != NULL)
		return true;
	supply->room = supply->pinned ? Min(pins_allowed() / GH_SUPPLY_REQUESTS, GH_SUPPLY_PINNED) :
		GH_SUPPLY_COPIED;
	while (!gh_buffers_alloc(supply->engine, GH_SUPPLY_REQUESTS, buffer_bytes(supply), supply->buffers))
	{
		supply->buffers[0] = NULL;
		supply->room /= 2;
		if (supply->room >= GH_SUPPLY_MIN)
			continue;
		supply->failed = true;
		(void) gh_error_set(&supply->error, GH_NO_MEMORY, GH_NO_BUFFERS_MESSAGE);
		return false;
	}
	for (int i = 0; i < GH_SUPPLY_REQUESTS; i++)
		lay_out(supply, &supply->requests[i], supply->buffers[i]);
	return true;
}

/* No request is in flight, or the scan is gone. */
void
gh_supply_free_buffers(GhSupply *supply)
{
	if (supply->buffers[0] == NULL)
		return;
	for (int i = 0; i < GH_SUPPLY_REQUESTS; i++)
		supply->engine->buffer_free(supply->buffers[i]);
	supply->buffers[0] = NULL;
}

/* Gives all back that is not PostgreSQL's; the engine waits for what the device still reads. */
static void
release(void *arg)
{
	GhSupply   *supply = arg;

	if (supply->scan != NULL)
		supply->engine->scans->destroy(supply->scan);
	supply->scan = NULL;
	gh_supply_free_buffers(supply);
}

/* The engine's scan; shared: see gh_supply_begin. */
static GhStatus
open_scan(GhSupply *supply, const GhHost *host, const GhScanOptions *options, GhRef *shared)
{
	if (shared == NULL)
		return supply->engine->scans->create(host, options, &supply->scan, &supply->error);
	supply->attached = *shared != 0;
	if (supply->attached)
		return gh_service_scan_attach(*shared, host, &supply->scan, &supply->error);
	return gh_service_scan_create_shared(host, options, shared, &supply->scan, &supply->error);
}

/*
 * Makes the scan.  The pages' scan has begun.  All is given back by
 * gh_supply_end or with the context.  False: the error says why not.
 *
 * shared: the scan is one of the service that several processes supply.  Where *shared is 0 it is made,
 * and *shared becomes the name of it for the others; it is the caller's to have it released.
 */
bool
gh_supply_begin(GhSupply *supply, const GhEngine *engine, const GhScanOptions *options, GhRef *shared,
				GhPages *pages, MemoryContext context)
{
	GhHost		host;
	GhStatus	status;

	memset(supply, 0, sizeof(*supply));
	supply->engine = engine;
	supply->pages = pages;
	supply->context = context;
	supply->failed = true;
	supply->pinned = may_pin(supply, options);
	supply->callback.func = release;
	supply->callback.arg = supply;
	MemoryContextRegisterResetCallback(context, &supply->callback);
	gh_host_init(&host, context);
	do
	{
		status = open_scan(supply, &host, options, shared);
		if (status == GH_STOPPED)
			gh_serve_interrupt();
	} while (status == GH_STOPPED);
	if (status != GH_OK)
		supply->scan = NULL;
	supply->failed = status != GH_OK;
	return !supply->failed;
}

/* ------------------------------------------------------------ rows that come back */

/* By the page as it was supplied: lines of a page that was copied may have got other tuples since. */
static bool
is_asked(const GhSupplyRequest *request, const GhScanPage *page, OffsetNumber line)
{
	if (page->bitmap == GH_SCAN_ALL)
		return ItemIdIsNormal(PageGetItemId((Page) page->page, line));
	return (request->bitmaps[page->bitmap + (line - 1) / 64] >> (line - 1) % 64 & 1) != 0;
}

/* A row, or all that was asked for of the page. */
static void
give_back(GhSupply *supply, const GhSupplyRequest *request, Buffer buffer, const GhScanRow *row)
{
	const GhScanPage *page = &request->pages[row->page];
	BlockNumber block = request->blocks[row->page];

	for (OffsetNumber line = Max(row->line, 1); line <= (row->line != 0 ? row->line : page->lines); line++)
		if (is_asked(request, page, line))
		{
			supply->counts.back++;
			supply->row_back(supply->arg, buffer, block, line);
		}
}

/*
 * Of a copied page, the page itself is pinned again: visible tuples are still where they were.
 */
static void
give_back_rows(GhSupply *supply, GhSupplyRequest *request)
{
	Buffer		buffer = InvalidBuffer;
	uint32		pinned = 0;

	for (uint64 i = 0; i < request->request.nback; i++)
	{
		GhScanRow	row = request->back[i];

		if (row.page >= request->request.npages || row.line > request->pages[row.page].lines)
			elog(ERROR, "a scan on a device has handed back line %u of page %u", row.line, row.page);
		if (!supply->pinned && (buffer == InvalidBuffer || pinned != row.page))
		{
			if (buffer != InvalidBuffer)
				ReleaseBuffer(buffer);
			buffer = gh_pages_pin_again(supply->pages, request->blocks[row.page]);
			pinned = row.page;
		}
		give_back(supply, request, supply->pinned ? request->pins[row.page] : buffer, &row);
	}
	if (buffer != InvalidBuffer)
		ReleaseBuffer(buffer);
}

/* ------------------------------------------------------------------- requests */

static void
fail(GhSupply *supply, const GhError *error)
{
	supply->failed = true;
	supply->error = *error;
}

static void
release_pins(GhSupply *supply, GhSupplyRequest *request)
{
	for (uint32 i = 0; i < request->request.npages && supply->pinned; i++)
		ReleaseBuffer(request->pins[i]);
	memset(&request->request, 0, sizeof(request->request));
	request->submitted = false;
}

static void
submit(GhSupply *supply, GhSupplyRequest *request)
{
	GhStatus	status;

	request->request.readable = supply->pinned || supply->engine != gh_service_engine();
	request->request.pages = request->pages;
	request->request.bitmaps = request->bitmaps;
	request->request.back = request->back;
	request->request.back_room = (uint64) supply->room * MaxHeapTuplesPerPage;
	status = supply->engine->scans->submit(supply->scan, &request->request);
	request->submitted = status == GH_OK || status == GH_BUSY;
	if (!request->submitted)
		fail(supply, &request->request.error);
}

static GhStatus
wait_for(GhSupply *supply, GhSupplyRequest *request)
{
	for (;;)
	{
		GhStatus	status = supply->engine->scans->wait(&request->request);

		if (status != GH_STOPPED)
			return status;
		gh_serve_interrupt();
		/* the service still has it */
		if (request->request.status == GH_BUSY)
			continue;
		status = supply->engine->scans->submit(supply->scan, &request->request);
		if (status != GH_OK && status != GH_BUSY)
			return status;
	}
}

static void
count_request(GhSupply *supply, const GhSupplyRequest *request)
{
	GhSupplyCounts *counts = &supply->counts;

	counts->bytes += (uint64) request->request.npages * BLCKSZ;
	counts->passed += request->request.passed;
	for (int i = 0; i < GH_SCAN_JOINS_MAX; i++)
		counts->joined[i] += request->request.joined[i];
}

/* Waits for a request and empties it. */
static void
complete(GhSupply *supply, GhSupplyRequest *request)
{
	instr_time	clock = {0};

	if (request->submitted)
	{
		GhStatus	status;

		gh_clock(supply->timing, NULL, &clock);
		status = wait_for(supply, request);
		gh_clock(supply->timing, &supply->counts.wait_time, &clock);
		if (status != GH_OK)
			fail(supply, &request->request.error);
		else if (!supply->failed)
		{
			count_request(supply, request);
			give_back_rows(supply, request);
		}
		gh_clock(supply->timing, &supply->counts.back_time, &clock);
	}
	release_pins(supply, request);
}

/* ---------------------------------------------------------------------- pages */

/* Which lines of the page are wanted. */
static void
ask_for_lines(GhSupplyRequest *request, GhScanPage *page, HeapScanDesc scan, bool all_visible)
{
	const OffsetNumber *visible = scan->rs_vistuples;
	int			n = scan->rs_ntuples;
	uint64	   *words;

	memset(page, 0, sizeof(*page));
	page->block = scan->rs_cblock;
	page->bitmap = GH_SCAN_ALL;
	page->lines = all_visible ? n : visible[n - 1];
	if (page->lines == (uint32) n)
		return;
	page->bitmap = (uint32) request->request.nbitmaps;
	words = &request->bitmaps[page->bitmap];
	request->request.nbitmaps += (page->lines + 63) / 64;
	memset(words, 0, sizeof(uint64) * ((page->lines + 63) / 64));
	for (int i = 0; i < n; i++)
		words[(visible[i] - 1) / 64] |= UINT64CONST(1) << (visible[i] - 1) % 64;
}

/* Takes over the page that the pages' scan has pinned.  False: the supply has failed. */
bool
gh_supply_page(GhSupply *supply)
{
	GhSupplyRequest *request = &supply->requests[supply->current];
	HeapScanDesc scan = supply->pages->scan;
	uint32		i;

	supply->counts.pages++;
	supply->counts.tuples += scan->rs_ntuples;
	if (scan->rs_ntuples == 0)
		return !supply->failed;
	if (!take_buffers(supply))
		return false;
	i = request->request.npages++;
	request->blocks[i] = scan->rs_cblock;
	ask_for_lines(request, &request->pages[i], scan, supply->pages->all_visible);
	if (supply->pinned)
	{
		request->pages[i].page = BufferGetPage(scan->rs_cbuf);
		request->pins[i] = scan->rs_cbuf;
		scan->rs_cbuf = InvalidBuffer;
	}
	else
	{
		request->pages[i].page = memcpy(request->copies + (Size) i * BLCKSZ, BufferGetPage(scan->rs_cbuf),
										BLCKSZ);
		gh_pages_leave(supply->pages);
	}
	if (request->request.npages == supply->room)
	{
		submit(supply, request);
		supply->current = (supply->current + 1) % GH_SUPPLY_REQUESTS;
		complete(supply, &supply->requests[supply->current]);
	}
	return !supply->failed;
}

/* Ends all requests, the one that is not full, too.  False: the supply has failed. */
bool
gh_supply_flush(GhSupply *supply)
{
	if (!supply->failed && supply->requests[supply->current].request.npages > 0)
		submit(supply, &supply->requests[supply->current]);
	/* the oldest first */
	for (int i = 1; i <= GH_SUPPLY_REQUESTS; i++)
		complete(supply, &supply->requests[(supply->current + i) % GH_SUPPLY_REQUESTS]);
	return !supply->failed;
}

/* A buffer for results, while no request is in flight; NULL: no page was supplied. */
void *
gh_supply_buffer(GhSupply *supply, Size *bytes)
{
	*bytes = buffer_bytes(supply);
	*bytes -= *bytes % sizeof(uint64);
	return supply->buffers[0];
}

void
gh_supply_end(GhSupply *supply)
{
	for (int i = 0; i < GH_SUPPLY_REQUESTS; i++)
		release_pins(supply, &supply->requests[i]);
	release(supply);
}
