/*
 * pipeline_trial.c
 *		Pipelines of tests: their stages, the pages that they read, and what comes out.
 *
 * Tables have an int4 as their first column and an int8 as their second one, and no rows that some do not see.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "host.h"
#include "service/placement.h"

#include "pipeline_trial.h"

#define BITMAP_WORDS ((MaxHeapTuplesPerPage + 63) / 64)
#define LANE_BYTES (2 * GH_UNIT_BYTES)
#define LANE_ROWS 20000			/* without pages, of a request: as many fit a lane */

/* --------------------------------------------------------------------- stages */

static void
add_columns(GhTrialStage *stage, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		GhColumn   *column = &stage->columns[stage->program.ncolumns++];

		column->attribute = (uint16) stage->program.ncolumns;
		column->load = i == 0 ? GH_LOAD_INT4 : GH_LOAD_INT8;
	}
	stage->program.bytes = sizeof(GhProgram) + stage->program.ncolumns * sizeof(GhColumn);
	stage->options.program_bytes = stage->program.bytes;
}

void
gh_trial_stage_begin(GhTrialStage *stage, GhPipeline *groups)
{
	GhPipelineSource *source = &stage->options.source;

	memset(stage, 0, sizeof(*stage));
	stage->program.magic = GH_PROGRAM_MAGIC;
	stage->options.program = &stage->program;
	add_columns(stage, 2);
	stage->attributes[0].length = stage->attributes[0].alignment = 4;
	stage->attributes[1].length = stage->attributes[1].alignment = 8;
	stage->group_columns[0] = (GhGroupColumn){GH_GROUP_KEY, 0};
	stage->group_columns[1] = (GhGroupColumn){GH_GROUP_VALUE, 1};
	stage->part.bits = 32;
	source->kind = groups != NULL ? GH_SOURCE_GROUPS : GH_SOURCE_PAGES;
	source->natts = 2;
	source->page_bytes = BLCKSZ;
	source->attributes = stage->attributes;
	source->groups = groups;
	source->columns = stage->group_columns;
	stage->options.steps = stage->steps;
	stage->options.probes = stage->probes;
	for (uint16 i = 0; i < GH_TRIAL_COLUMNS_MAX; i++)
	{
		stage->values[i].vector = i;
		stage->values[i].value_class = GH_CLASS_INT;
		stage->aggregates[i].kind = i == 0 ? GH_AGGREGATE_COUNT_ROWS : GH_AGGREGATE_SUM;
		stage->aggregates[i].value_class = i == 0 ? 0 : GH_CLASS_INT;
		stage->aggregates[i].argument = i;
		stage->aggregates[i].filter = GH_AGGREGATE_NO_FILTER;
	}
}

void
gh_trial_stage_probe(GhTrialStage *stage, GhProbeKind kind, uint16 nfills, GhTable *table, GhMarks *marks)
{
	uint32		p = stage->options.nprobes++;
	GhProbe    *probe = &stage->probes[p];

	probe->table = table;
	probe->kind = kind;
	probe->nparts = 1;
	probe->parts = &stage->part;
	probe->marks = marks;
	stage->steps[stage->options.nsteps++].probe = p + 1;
	for (uint16 f = 0; f < nfills; f++)
		stage->fills[p][f] = (GhProbeFill){(uint16) (stage->program.ncolumns + f), f};
	probe->nfills = nfills;
	probe->fills = stage->fills[p];
	add_columns(stage, nfills);
}

void
gh_trial_stage_groups(GhTrialStage *stage)
{
	GhGroupsSink *sink = &stage->options.sink.groups;

	stage->options.sink.kind = GH_SINK_GROUPS;
	sink->nkeys = 1;
	sink->keys = stage->values;
	sink->naggregates = stage->program.ncolumns;
	sink->aggregates = stage->aggregates;
	sink->seed = 42;
}

void
gh_trial_stage_sets(GhTrialStage *stage, uint32 nsets)
{
	GhGroupsSink *sink = &stage->options.sink.groups;

	gh_trial_stage_groups(stage);
	sink->nsets = nsets;
	sink->keys = stage->set_keys;
	sink->aggregates = stage->set_aggregates;
	for (uint32 s = 0; s < nsets; s++)
	{
		stage->set_keys[s] = stage->values[s % 2];
		memcpy(stage->set_aggregates + s * sink->naggregates, stage->aggregates, sink->naggregates * sizeof(GhAggregate));
	}
}

void
gh_trial_stage_rows(GhTrialStage *stage)
{
	stage->options.sink.kind = GH_SINK_ROWS;
	stage->options.sink.rows.nvalues = stage->program.ncolumns;
	stage->options.sink.rows.values = stage->values;
}

void
gh_trial_stage_places(GhTrialStage *stage)
{
	stage->options.sink.kind = GH_SINK_PLACES;
}

void
gh_trial_stage_table(GhTrialStage *stage)
{
	GhTableSink *sink = &stage->options.sink.table;

	stage->options.sink.kind = GH_SINK_TABLE;
	stage->kept[0] = (GhKept){0, GH_CLASS_INT, 4};
	stage->kept[1] = (GhKept){1, GH_CLASS_INT, 8};
	sink->nparts = 1;
	sink->parts = &stage->part;
	sink->nkept = 2;
	sink->kept = stage->kept;
	sink->matches = GH_MATCHES_ALL;
	sink->numbered = 1;
	sink->seed = 42;
}

void
gh_trial_create(GhTrial *trial, GhTrialStage *stage)
{
	GhHost		host;
	GhError		error;
	GhStatus	status;

	gh_host_init(&host, TopMemoryContext);
	stage->options.device = trial->engine->on_device ? gh_service_choose_device() : 0;
	while ((status = trial->engine->pipelines->create(&host, &stage->options, &stage->pipeline, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status != GH_OK)
		gh_report_error(&error, "make the pipeline of a test");
}

void
gh_trial_destroy(GhTrialStage *stage)
{
	if (stage->pipeline != NULL)
		stage->pipeline->engine->destroy(stage->pipeline);
	stage->pipeline = NULL;
}

/* ---------------------------------------------------------------------- lanes */

void
gh_trial_begin(GhTrial *trial, const char *engine, const char *mode, int npages, int flight, int capacity)
{
	void	   *buffers[GH_TRIAL_LANES_MAX];
	bool		service = strcmp(engine, "service") == 0;

	if (!superuser() || gh_service == NULL || npages < 1 || npages > GH_TRIAL_PAGES_MAX || flight < 1 ||
		flight > GH_TRIAL_LANES_MAX)
		elog(ERROR, "cannot try %d pages, %d requests", npages, flight);
	memset(trial, 0, sizeof(*trial));
	trial->engine = service ? gh_service_engine() : gh_cpu_engine();
	trial->pinned = strstr(mode, "pinned") != NULL;
	trial->bitmaps = strstr(mode, "bitmaps") != NULL;
	trial->npages = npages;
	trial->flight = flight;
	trial->capacity = (size_t) capacity;
	if (service && !gh_service_reserve(flight, LANE_BYTES, buffers))
		elog(ERROR, "no buffer for transfers to the GPU is free");
	for (int i = 0; i < flight; i++)
	{
		GhTrialLane *lane = &trial->lanes[i];

		lane->buffer = service ? buffers[i] : (char *) TYPEALIGN(64, palloc(LANE_BYTES + 64));
		lane->copies = lane->buffer;
		lane->pages = (GhPageRef *) (lane->copies + (Size) npages * BLCKSZ);
		lane->bitmaps = (uint64 *) (lane->pages + npages);
		lane->back = (GhBackRow *) (lane->bitmaps + npages * BITMAP_WORDS);
	}
}

void
gh_trial_give_back(GhTrial *trial)
{
	for (int i = 0; trial->engine == gh_service_engine() && i < trial->flight; i++)
		gh_service_return(trial->lanes[i].buffer);
}

/* What a row that went back, or is listed, is to others: whatever page it was of which request. */
static uint64
place_of(const GhTrialLane *lane, const GhBackRow *row)
{
	bool		pages = lane->request.kind == GH_INPUT_PAGES;
	uint64		at = pages ? lane->pages[row->page].block : lane->request.first + row->page;

	return hash_bytes_uint32_extended((uint32) at, (uint64) row->line << 16 | row->step);
}

static void
lane_end(GhTrial *trial, GhTrialLane *lane)
{
	const GhPipelineRequest *request = &lane->request;
	GhStatus	status;

	if (!lane->busy)
		return;
	while ((status = trial->engine->pipelines->wait(&lane->request)) == GH_STOPPED)
		gh_serve_interrupt();
	lane->busy = false;
	while (lane->npins > 0)
		ReleaseBuffer(lane->pins[--lane->npins]);
	if (status != GH_OK)
		gh_report_error(&request->error, "bring rows of a test");
	trial->nback += request->nback;
	trial->seen += request->seen;
	trial->counted += request->counted;
	for (int p = 0; p < GH_TRIAL_PROBES_MAX; p++)
		trial->passed[p] += request->passed[p];
	for (uint64 i = 0; i < request->nback; i++)
		trial->places += place_of(lane, &lane->back[i]);
}

static void
lane_begin(GhTrial *trial, GhTrialLane *lane, GhPipeline *pipeline)
{
	GhStatus	status;

	lane->request.back = lane->back;
	lane->busy = true;
	status = trial->engine->pipelines->submit(pipeline, &lane->request);
	if (status != GH_OK && status != GH_BUSY)
		gh_report_error(&lane->request.error, "bring rows of a test");
}

static void
lane_begin_pages(GhTrial *trial, GhTrialLane *lane, GhPipeline *pipeline, uint32 npages)
{
	memset(&lane->request, 0, sizeof(lane->request));
	lane->request.kind = GH_INPUT_PAGES;
	lane->request.npages = npages;
	lane->request.pages = lane->pages;
	lane->request.bitmaps = trial->bitmaps ? lane->bitmaps : NULL;
	lane->request.nbitmaps = trial->bitmaps ? npages * BITMAP_WORDS : 0;
	lane->request.back_room = npages * MaxHeapTuplesPerPage;
	lane_begin(trial, lane, pipeline);
}

void
gh_trial_wait(GhTrial *trial)
{
	for (int i = 0; i < trial->flight; i++)
		lane_end(trial, &trial->lanes[(trial->at + i) % trial->flight]);
}

/* ---------------------------------------------------------------------- pages */

static void
lane_add(GhTrial *trial, GhTrialLane *lane, uint32 at, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	GhPageRef *shown = &lane->pages[at];
	uint64	   *bits = lane->bitmaps + at * BITMAP_WORDS;

	memset(shown, 0, sizeof(*shown));
	shown->page = page;
	shown->block = BufferGetBlockNumber(buffer);
	shown->lines = PageGetMaxOffsetNumber(page);
	shown->bitmap = trial->bitmaps ? at * BITMAP_WORDS : GH_PAGE_ALL_LINES;
	memset(bits, 0, BITMAP_WORDS * sizeof(uint64));
	for (uint32 line = 1; line <= shown->lines; line++)
		if (ItemIdIsNormal(PageGetItemId(page, line)))
			bits[(line - 1) / 64] |= UINT64CONST(1) << (line - 1) % 64;
	if (!trial->pinned)
		shown->page = memcpy(lane->copies + (Size) at * BLCKSZ, page, BLCKSZ);
}

void
gh_trial_bring(GhTrial *trial, GhPipeline *pipeline, Oid relid, BlockNumber first, BlockNumber end)
{
	Relation	relation = relation_open(relid, AccessShareLock);
	BlockNumber block = first;

	end = Min(end, RelationGetNumberOfBlocks(relation));
	while (block < end)
	{
		GhTrialLane *lane = &trial->lanes[trial->at++ % trial->flight];
		uint32		n = 0;

		lane_end(trial, lane);
		for (; n < (uint32) trial->npages && block < end; n++, block++)
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
		lane_begin_pages(trial, lane, pipeline, n);
	}
	if (!trial->hasty)
		gh_trial_wait(trial);
	relation_close(relation, AccessShareLock);
}

void
gh_trial_bring_rows(GhTrial *trial, GhPipeline *pipeline, GhInputKind kind, uint32 step, uint64 rows)
{
	for (uint64 first = 0; first < rows; first += LANE_ROWS)
	{
		GhTrialLane *lane = &trial->lanes[trial->at++ % trial->flight];

		lane_end(trial, lane);
		memset(&lane->request, 0, sizeof(lane->request));
		lane->request.kind = kind;
		lane->request.step = step;
		lane->request.first = first;
		lane->request.count = lane->request.back_room = Min(LANE_ROWS, rows - first);
		lane_begin(trial, lane, pipeline);
	}
	if (!trial->hasty)
		gh_trial_wait(trial);
}

void
gh_trial_make_table(GhTrial *trial, GhPipeline *pipeline, GhMadeTable *made)
{
	GhError		error;
	GhStatus	status;

	while ((status = trial->engine->pipelines->make_table(pipeline, made, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status != GH_OK)
		gh_report_error(&error, "make the table of a test");
}

uint64
gh_trial_find(GhTrial *trial, GhTable *table, int64 first, uint64 count, int64 *sum)
{
	GhRequest	request = {0};
	int64	   *keys = (int64 *) trial->lanes[0].buffer;
	int64	   *values = keys + count;
	uint8	   *flags = (uint8 *) (values + count);
	uint64		there = 0;

	for (uint64 i = 0; i < count; i++)
		keys[i] = (uint32) (first + (int64) i);	/* as the parts of stages make them */
	request.op = GH_FIND;
	request.count = count;
	request.keys = keys;
	request.values_out = sum != NULL ? values : NULL;
	request.flags_out = flags;
	if (gh_run_request(table, &request) != GH_OK)
		gh_report_error(&request.error, "find keys in the table of a test");
	if (sum != NULL)
		*sum = 0;
	for (uint64 i = 0; i < count; i++)
	{
		there += flags[i];
		if (sum != NULL)
			*sum += values[i];
	}
	if (there != request.outcome.matched)
		elog(ERROR, "%llu keys matched, and %llu are there", (unsigned long long) request.outcome.matched,
			 (unsigned long long) there);
	return there;
}

GhMarks *
gh_trial_marks(GhTrial *trial, GhTable *table)
{
	GhHost		host;
	GhMarks    *marks;
	GhError		error;
	GhStatus	status;

	gh_host_init(&host, TopMemoryContext);
	while ((status = trial->engine->pipelines->marks_create(&host, table, &marks, &error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status != GH_OK)
		gh_report_error(&error, "make the marks of a test");
	return marks;
}

/* -------------------------------------------------------------------- results */

/* All records; *n of them, in memory of the context. */
static GhRecordHead **
fetch_records(GhTrial *trial, GhPipeline *pipeline, int *n)
{
	GhRecordHead **records = palloc(sizeof(void *));
	int			room = 1;
	size_t		capacity = trial->capacity;
	GhCursor	cursor = {0};
	GhError		error;
	GhStatus	status;

	*n = 0;
	while (!cursor.finished)
	{
		size_t		bytes;
		char	   *copy;

		while ((status = trial->engine->pipelines->results(pipeline, &cursor, capacity, trial->lanes[0].buffer, &bytes,
														   &error)) == GH_STOPPED)
			gh_serve_interrupt();
		if (status == GH_TOO_SMALL)
			capacity = bytes;
		else if (status != GH_OK)
			gh_report_error(&error, "fetch the records of a test");
		else
		{
			copy = memcpy(palloc(bytes + 1), trial->lanes[0].buffer, bytes);
			for (size_t at = 0; at < bytes; at += ((GhRecordHead *) (copy + at))->bytes)
			{
				if (*n == room)
					records = repalloc(records, (room *= 2) * sizeof(void *));
				records[(*n)++] = (GhRecordHead *) (copy + at);
			}
		}
	}
	return records;
}

static int
compare_groups(const void *a, const void *b)
{
	int64		x = (int64) (*(GhRecordHead *const *) a + 1)->bytes;
	int64		y = (int64) (*(GhRecordHead *const *) b + 1)->bytes;

	return x < y ? -1 : x > y;
}

char *
gh_trial_groups_text(GhTrial *trial, GhPipeline *pipeline, int nsums)
{
	int			n;
	GhRecordHead **groups = fetch_records(trial, pipeline, &n);
	StringInfoData text;

	qsort(groups, n, sizeof(void *), compare_groups);
	initStringInfo(&text);
	for (int i = 0; i < n; i++)
	{
		const GhRecordValue *key = (const GhRecordValue *) (groups[i] + 1);
		const GhAggregateState *states = (const GhAggregateState *) (key + 1);

		appendStringInfo(&text, "%lld %llu", (long long) key->low, (unsigned long long) states[0].count);
		for (int s = 1; s <= nsums; s++)
			appendStringInfo(&text, " %lld", (long long) states[s].low);
		appendStringInfoChar(&text, ',');
	}
	appendStringInfo(&text, "back %llu", (unsigned long long) trial->nback);
	return text.data;
}

char *
gh_trial_digest(GhTrial *trial, GhPipeline *pipeline)
{
	StringInfoData text;
	uint64		sum = 0;
	int			n = 0;
	GhRecordHead **records = pipeline != NULL ? fetch_records(trial, pipeline, &n) : NULL;

	for (int i = 0; i < n; i++)
		sum += hash_bytes_extended((const unsigned char *) records[i], (int) records[i]->bytes, 42);
	initStringInfo(&text);
	appendStringInfo(&text, "%d records %016llx, seen %llu, counted %llu, back %llu %016llx, passed", n,
					 (unsigned long long) sum, (unsigned long long) trial->seen, (unsigned long long) trial->counted,
					 (unsigned long long) trial->nback, (unsigned long long) trial->places);
	for (int p = 0; p < GH_TRIAL_PROBES_MAX; p++)
		appendStringInfo(&text, " %llu", (unsigned long long) trial->passed[p]);
	return text.data;
}
