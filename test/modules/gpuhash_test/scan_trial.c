/*
 * scan_trial.c
 *		Scans of tables' pages through the service, as a node has them done, for tests
 *		that compare them with PostgreSQL's own answers.
 *
 * The tables have an int4 as their first column and an int8 as their second one, and no rows that
 * some do not see.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "service/client.h"
#include "service/placement.h"

#include "scan_trial.h"

PG_FUNCTION_INFO_V1(gpuhash_trial_scan);
PG_FUNCTION_INFO_V1(gpuhash_trial_join);

#define BITMAP_WORDS ((MaxHeapTuplesPerPage + 63) / 64)
#define FLIGHT_MAX 4
#define PAGES_MAX 64			/* of a request */

/* A request, its buffer, and what it has pinned. */
typedef struct Lane
{
	char	   *buffer;
	GhScanPage *pages;
	uint64	   *bitmaps;
	GhScanRow  *back;
	char	   *copies;
	Buffer		pins[PAGES_MAX];
	uint32		npins;
	GhScanRequest request;
	bool		busy;
} Lane;

typedef struct Trial
{
	const GhScanEngine *engine;
	bool		pinned;			/* pages are shown where they are, and not copied */
	bool		bitmaps;		/* rows are asked for one by one */
	int			npages;			/* of a request */
	int			flight;			/* requests at a time */
	Lane		lanes[FLIGHT_MAX];
	GhScan	   *scan;
	GhScan	   *table;
	uint64		nback;
	char	   *answer;
	GhScanTable made;
} Trial;

/* -------------------------------------------------------------------- options */

void
gh_trial_plan(GhTrialPlan *plan, bool joined)
{
	GhColumn   *columns = plan->columns;

	memset(plan, 0, sizeof(*plan));
	plan->program.magic = GH_PROGRAM_MAGIC;
	plan->program.ncolumns = joined ? 3 : 2;
	plan->program.bytes = sizeof(GhProgram) + plan->program.ncolumns * sizeof(GhColumn);
	columns[0].attribute = 1;
	columns[0].load = GH_LOAD_INT4;
	columns[1].attribute = 2;
	columns[1].load = GH_LOAD_INT8;
	/* of no page: the table's */
	columns[2].attribute = 3;
	columns[2].load = GH_LOAD_INT8;
	plan->attributes[0].length = plan->attributes[0].alignment = 4;
	plan->attributes[1].length = plan->attributes[1].alignment = 8;
	plan->key.vector = 0;
	plan->key.value_class = GH_CLASS_INT;
	for (int i = 0; i < 3; i++)
		plan->aggregates[i].filter = GH_AGGREGATE_NO_FILTER;
	plan->aggregates[0].kind = GH_AGGREGATE_COUNT_ROWS;
	for (int i = 1; i < 3; i++)
	{
		plan->aggregates[i].kind = GH_AGGREGATE_SUM;
		plan->aggregates[i].value_class = GH_CLASS_INT;
		plan->aggregates[i].argument = (uint16) i;
	}
	plan->part.vector = 0;
	plan->part.bits = 32;
	plan->kept = 1;
	plan->fill.column = 2;
	plan->fill.kept = 0;
	plan->options.program = &plan->program;
	plan->options.program_bytes = plan->program.bytes;
	plan->options.page_bytes = BLCKSZ;
	plan->options.natts = 2;
	plan->options.attributes = plan->attributes;
	plan->options.seed = 42;
	plan->options.device = gh_service_choose_device();
}

void
gh_trial_groups(GhTrialPlan *plan, bool joined)
{
	plan->options.nkeys = 1;
	plan->options.keys = &plan->key;
	plan->options.naggregates = joined ? 3 : 2;
	plan->options.aggregates = plan->aggregates;
}

void
gh_trial_table(GhTrialPlan *plan)
{
	plan->options.nparts = 1;
	plan->options.parts = &plan->part;
	plan->options.nkept = 1;
	plan->options.kept = &plan->kept;
}

void
gh_trial_join(GhTrialPlan *plan, GhScan *table)
{
	plan->join.table = table;
	plan->join.kind = GH_SCAN_INNER;
	plan->join.nparts = 1;
	plan->join.parts = &plan->part;
	plan->join.nfills = 1;
	plan->join.fills = &plan->fill;
	plan->options.njoins = 1;
	plan->options.joins = &plan->join;
}

GhScan *
gh_trial_make(GhTrialPlan *plan)
{
	GhHost		host;
	GhError		error;
	GhScan	   *scan;
	GhStatus	status;

	gh_host_init(&host, TopMemoryContext);
	while ((status = gh_service_engine()->scans->create(&host, &plan->options, &scan, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status != GH_OK)
		gh_report_error(&error, "make the scan of a test");
	return scan;
}

/* ---------------------------------------------------------------------- pages */

static void
lane_end(Trial *trial, Lane *lane)
{
	GhStatus	status;

	if (!lane->busy)
		return;
	while ((status = trial->engine->wait(&lane->request)) == GH_STOPPED)
		gh_serve_interrupt();
	lane->busy = false;
	while (lane->npins > 0)
		ReleaseBuffer(lane->pins[--lane->npins]);
	if (status != GH_OK)
		gh_report_error(&lane->request.error, "scan the pages of a test");
	trial->nback += lane->request.nback;
}

static void
lane_begin(Trial *trial, Lane *lane, GhScan *scan, uint32 npages)
{
	GhStatus	status;

	memset(&lane->request, 0, sizeof(lane->request));
	lane->request.npages = npages;
	lane->request.pages = lane->pages;
	lane->request.bitmaps = trial->bitmaps ? lane->bitmaps : NULL;
	lane->request.nbitmaps = trial->bitmaps ? npages * BITMAP_WORDS : 0;
	lane->request.back = lane->back;
	lane->request.back_room = npages * MaxHeapTuplesPerPage;
	lane->busy = true;
	status = trial->engine->submit(scan, &lane->request);
	if (status != GH_OK && status != GH_BUSY)
		gh_report_error(&lane->request.error, "scan the pages of a test");
}

static void
lane_add(Trial *trial, Lane *lane, uint32 at, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	GhScanPage *shown = &lane->pages[at];
	uint64	   *bits = lane->bitmaps + at * BITMAP_WORDS;

	memset(shown, 0, sizeof(*shown));
	shown->page = page;
	shown->block = BufferGetBlockNumber(buffer);
	shown->hinted = 0;
	shown->lines = PageGetMaxOffsetNumber(page);
	shown->bitmap = trial->bitmaps ? at * BITMAP_WORDS : GH_SCAN_ALL;
	memset(bits, 0, BITMAP_WORDS * sizeof(uint64));
	for (uint32 line = 1; line <= shown->lines; line++)
		if (ItemIdIsNormal(PageGetItemId(page, line)))
			bits[(line - 1) / 64] |= UINT64CONST(1) << (line - 1) % 64;
	if (!trial->pinned)
		shown->page = memcpy(lane->copies + (Size) at * BLCKSZ, page, BLCKSZ);
}

static void
scan_relation(Trial *trial, GhScan *scan, Oid relid)
{
	Relation	relation = relation_open(relid, AccessShareLock);
	BlockNumber blocks = RelationGetNumberOfBlocks(relation);
	int			at = 0;

	for (BlockNumber block = 0; block < blocks;)
	{
		Lane	   *lane = &trial->lanes[at++ % trial->flight];
		uint32		n = 0;

		lane_end(trial, lane);
		for (; n < (uint32) trial->npages && block < blocks; n++, block++)
		{
			Buffer		buffer = ReadBuffer(relation, block);

			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			lane_add(trial, lane, n, buffer);
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			if (trial->pinned)
				lane->pins[lane->npins++] = buffer;
			else
				ReleaseBuffer(buffer);
		}
		lane_begin(trial, lane, scan, n);
	}
	for (int i = 0; i < trial->flight; i++)
		lane_end(trial, &trial->lanes[at++ % trial->flight]);
	relation_close(relation, AccessShareLock);
}

/* -------------------------------------------------------------------- results */

static int
compare_groups(const void *a, const void *b)
{
	int64		x = (int64) (*(GhScanGroup *const *) a + 1)->bytes;
	int64		y = (int64) (*(GhScanGroup *const *) b + 1)->bytes;

	return x < y ? -1 : x > y;
}

/* "key count sum ..." of each group, in the order of the keys, and how many rows came back. */
static char *
tell_groups(Trial *trial, GhScan *scan, int nsums, size_t capacity)
{
	GhScanGroup **groups = palloc(sizeof(void *));
	int			ngroups = 0;
	GhCursor	cursor = {0};
	GhError		error;
	GhStatus	status;
	StringInfoData text;

	while (!cursor.finished)
	{
		size_t		bytes;
		char	   *copy;

		while ((status = trial->engine->results(scan, &cursor, capacity, trial->lanes[0].buffer,
												&bytes, &error)) == GH_STOPPED)
			gh_serve_interrupt();
		if (status == GH_TOO_SMALL)
			capacity = bytes;
		else if (status != GH_OK)
			gh_report_error(&error, "fetch the groups of a test");
		else
		{
			copy = memcpy(palloc(bytes + 1), trial->lanes[0].buffer, bytes);
			for (size_t at = 0; at < bytes; at += ((GhScanGroup *) (copy + at))->bytes)
			{
				groups = repalloc(groups, (ngroups + 1) * sizeof(void *));
				groups[ngroups++] = (GhScanGroup *) (copy + at);
			}
		}
	}
	qsort(groups, ngroups, sizeof(void *), compare_groups);
	initStringInfo(&text);
	for (int i = 0; i < ngroups; i++)
	{
		const GhScanValue *key = (const GhScanValue *) (groups[i] + 1);
		const GhAggregateState *states = (const GhAggregateState *) (key + 1);

		appendStringInfo(&text, "%lld %llu", (long long) key->low, (unsigned long long) states[0].count);
		for (int s = 1; s <= nsums; s++)
			appendStringInfo(&text, " %lld", (long long) states[s].low);
		appendStringInfoChar(&text, ',');
	}
	appendStringInfo(&text, "back %llu", (unsigned long long) trial->nback);
	return text.data;
}

/* ---------------------------------------------------------------------- trials */

static void
trial_begin(Trial *trial, const char *mode, int npages, int flight)
{
	void	   *buffers[FLIGHT_MAX];

	if (!superuser() || gh_service == NULL || npages < 1 || npages > PAGES_MAX || flight < 1 ||
		flight > FLIGHT_MAX)
		elog(ERROR, "cannot try %d pages, %d requests", npages, flight);
	memset(trial, 0, sizeof(*trial));
	trial->engine = gh_service_engine()->scans;
	trial->pinned = strstr(mode, "pinned") != NULL;
	trial->bitmaps = strstr(mode, "bitmaps") != NULL;
	trial->npages = npages;
	trial->flight = flight;
	if (!gh_service_reserve(flight, 2 * GH_UNIT_BYTES, buffers))
		elog(ERROR, "no buffer for transfers to the GPU is free");
	for (int i = 0; i < flight; i++)
	{
		Lane	   *lane = &trial->lanes[i];

		lane->buffer = buffers[i];
		lane->copies = lane->buffer;
		lane->pages = (GhScanPage *) (lane->copies + (Size) npages * BLCKSZ);
		lane->bitmaps = (uint64 *) (lane->pages + npages);
		lane->back = (GhScanRow *) (lane->bitmaps + npages * BITMAP_WORDS);
	}
}

/* The table that others join with goes first: it is the worker's to keep it as long as needed. */
static void
trial_end(Trial *trial)
{
	for (int i = 0; i < trial->flight; i++)
		gh_service_return(trial->lanes[i].buffer);
	trial->engine->destroy(trial->table);
	trial->engine->destroy(trial->scan);
}

/*
 * gpuhash_trial_scan(relation oid, mode text, pages int, flight int, capacity int): count and sum
 * by groups, with so many pages a request, requests at a time, and bytes of results at a time.
 * The mode has "pinned" in it, or "copied", and maybe "bitmaps".
 */
Datum
gpuhash_trial_scan(PG_FUNCTION_ARGS)
{
	Trial		trial;
	GhTrialPlan plan;

	trial_begin(&trial, text_to_cstring(PG_GETARG_TEXT_PP(1)), PG_GETARG_INT32(2), PG_GETARG_INT32(3));
	PG_TRY();
	{
		gh_trial_plan(&plan, false);
		gh_trial_groups(&plan, false);
		trial.scan = gh_trial_make(&plan);
		scan_relation(&trial, trial.scan, PG_GETARG_OID(0));
		trial.answer = tell_groups(&trial, trial.scan, 1, (size_t) PG_GETARG_INT32(4));
	}
	PG_FINALLY();
	{
		trial_end(&trial);
	}
	PG_END_TRY();
	PG_RETURN_TEXT_P(cstring_to_text(trial.answer));
}

/*
 * gpuhash_trial_join(outer oid, inner oid, mode text, pages int, flight int, early bool): the same
 * of both tables joined by their first columns, with the sums of both second ones.  early: the
 * inner table's scan is destroyed before the outer one begins with its pages.
 */
Datum
gpuhash_trial_join(PG_FUNCTION_ARGS)
{
	Trial		trial;
	GhTrialPlan plan;
	GhError		error;
	GhStatus	status;

	trial_begin(&trial, text_to_cstring(PG_GETARG_TEXT_PP(2)), PG_GETARG_INT32(3), PG_GETARG_INT32(4));
	PG_TRY();
	{
		gh_trial_plan(&plan, false);
		gh_trial_table(&plan);
		trial.table = gh_trial_make(&plan);
		scan_relation(&trial, trial.table, PG_GETARG_OID(1));
		while ((status = trial.engine->make_table(trial.table, &trial.made, &error)) == GH_STOPPED)
			gh_serve_interrupt();
		if (status != GH_OK)
			gh_report_error(&error, "make the table of a test");
		gh_trial_plan(&plan, true);
		gh_trial_groups(&plan, true);
		gh_trial_join(&plan, trial.table);
		trial.scan = gh_trial_make(&plan);
		if (PG_GETARG_BOOL(5))
		{
			trial.engine->destroy(trial.table);
			trial.table = NULL;
		}
		scan_relation(&trial, trial.scan, PG_GETARG_OID(0));
		trial.answer = tell_groups(&trial, trial.scan, 2, 65536);
	}
	PG_FINALLY();
	{
		trial_end(&trial);
	}
	PG_END_TRY();
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%s, table of %llu", trial.answer, (unsigned long long) trial.made.rows)));
}
