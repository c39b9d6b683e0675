/*
 * scan_trial.c
 *		Draws pages with programs, keys and aggregates over them, has an engine scan them, and
 *		gathers what comes of it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* MAP_ANONYMOUS */
#endif

#include "scan_test.h"

#include <sys/mman.h>

#define RESULT_BYTES 4096		/* of a buffer of records, at first */

static bool
chance(Context *c, uint32_t percent)
{
	return random_below(c, 100) < percent;
}

/* --------------------------------------------------------------------- pages */

/* Pages of one relation, in memory that the engine registers where it does so. */
void
trial_pages(Context *c, Trial *trial, uint32_t npages)
{
	GhError		error = {0};

	trial->npages = npages;
	trial->memory_bytes = ((size_t) npages * trial->relation.page_bytes + 4095) & ~(size_t) 4095;
	trial->memory = mmap(NULL, trial->memory_bytes, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (trial->memory == MAP_FAILED)
		exit(2);
	for (uint32_t p = 0; p < npages; p++)
	{
		uint8_t    *page = trial->memory + (size_t) p * trial->relation.page_bytes;

		page_draw(c, &trial->relation, &trial->written[p]);
		memcpy(page, trial->written[p].page, trial->relation.page_bytes);
		trial->pages[p].page = page;
		trial->pages[p].block = (uint32_t) random_next(c);
	}
	trial->bitmaps = make_words((uint64_t) npages * TRIAL_WORDS);
	trial->registered = chance(c, 50) && c->engine->memory_register != NULL &&
		c->engine->memory_register(0, trial->memory, trial->memory_bytes, false, &error) == GH_OK;
	trial->cut = 1 + (uint32_t) random_below(c, npages);
}

/* What is asked of the pages: all lines up to some, or some of the tuples. */
void
trial_ask(Context *c, Trial *trial)
{
	memset(trial->bitmaps, 0, (size_t) trial->npages * TRIAL_WORDS * sizeof(uint64_t));
	for (uint32_t p = 0; p < trial->npages; p++)
	{
		const WrittenPage *written = &trial->written[p];
		GhScanPage *page = &trial->pages[p];
		uint32_t	lines = gh_page_lines(page->page, trial->relation.page_bytes);
		uint32_t	share = chance(c, 50) ? 100 : (uint32_t) random_below(c, 101);

		page->lines = chance(c, 80) ? lines : (uint32_t) random_below(c, lines + 1);
		page->bitmap = chance(c, 50) ? GH_SCAN_ALL : p * TRIAL_WORDS;
		for (uint32_t t = 0; t < written->ntuples; t++)
		{
			uint32_t	bit = written->numbers[t] - 1u;

			if (chance(c, share))
				trial->bitmaps[p * TRIAL_WORDS + bit / 64] |= UINT64_C(1) << bit % 64;
		}
	}
}

/* Some pages become what no heap has, or are asked for what they have not. */
void
trial_damage(Context *c, Trial *trial)
{
	for (uint32_t p = 0; p < trial->npages; p++)
	{
		uint8_t    *bytes = trial->memory + (size_t) p * trial->relation.page_bytes;
		GhScanPage *page = &trial->pages[p];
		uint32_t	most = (trial->relation.page_bytes - 24) / 4;

		switch (random_below(c, 12))
		{
			case 0:				/* no page */
				bytes[18 + random_below(c, 2)] ^= (uint8_t) (1 + random_below(c, 255));
				break;
			case 1:				/* not so many lines */
				if (page->lines < most)
					page->lines += 1 + (uint32_t) random_below(c, most - page->lines);
				break;
			case 2:				/* maybe a line without a tuple */
				if (page->lines > 0)
				{
					uint32_t	bit = (uint32_t) random_below(c, page->lines);

					trial->bitmaps[p * TRIAL_WORDS + bit / 64] |= UINT64_C(1) << bit % 64;
				}
				break;
			case 3:				/* bytes of tuples, or any */
			case 4:
				for (uint64_t n = 1 + random_below(c, 40); n > 0; n--)
					bytes[random_below(c, trial->relation.page_bytes)] ^=
						(uint8_t) (1u << random_below(c, 8));
				break;
			default:
				break;
		}
	}
}

/* ---------------------------------------------------------------- what is done */

static void
add_columns(Context *c, const Trial *trial, Parts *parts)
{
	static const GhColumn tid = {.load = GH_LOAD_TID};
	uint64_t	share = 20 + random_below(c, 81);

	if (chance(c, 30))
		parts->columns[parts->ncolumns++] = tid;
	for (uint32_t i = 0; i < trial->relation.natts && parts->ncolumns < PARTS_MAX / 2; i++)
	{
		uint32_t	at = (uint32_t) random_below(c, parts->ncolumns + 1);

		if (random_below(c, 100) >= share)
			continue;
		parts->columns[parts->ncolumns++] = parts->columns[at];
		parts->columns[at] = trial->relation.loads[i];
	}
}

/* A program of random instructions; its first temporaries give few values, for keys. */
void
trial_program(Context *c, Trial *trial, uint32_t ninstructions)
{
	static const int64_t integers[] = {-3, 0, 1, 2, 7};
	static const char *const texts[] = {"", "a", "ab"};
	GhValue		seven = {7, 0, 0};
	GhValue		half = {UINT64_C(0x3fe0000000000000), 0, 0};
	GhValue		million = {1000000, 0, 0};
	GhValue		null = {0, 0, 1};
	GhError		error = {0};
	Parts		parts;

	memset(&parts, 0, sizeof(parts));
	add_columns(c, trial, &parts);
	(void) add_constant(&parts, GH_CLASS_INT, seven);
	(void) add_constant(&parts, GH_CLASS_FLOAT8, half);
	(void) add_constant(&parts, GH_CLASS_INT128, million);
	(void) add_constant(&parts, GH_CLASS_INT, null);
	(void) add_text(&parts, "ab", 2);
	(void) add_text(&parts, "ab  ", 4);
	(void) add_int_list(&parts, integers, 5, chance(c, 50));
	(void) add_text_list(&parts, texts, 3, chance(c, 50));
	parts.ntemporaries = 10;
	for (uint32_t i = 0; i < parts.ncolumns && ninstructions > 0; i++)
		if (column_class(&parts.columns[i]) == GH_CLASS_INT)
		{
			(void) add_instruction(&parts, GH_OP_BIT_AND, GH_CLASS_INT, i, parts.ncolumns, 0);
			break;
		}
	for (uint32_t i = 0; i < ninstructions; i++)
		add_random_instruction(c, &parts);
	trial->program = build_program(&parts);
	CHECK_STATUS(c, "a random program", gh_program_check_classes(
					 trial->program, trial->program->bytes, trial->classes, &error), GH_OK);
	trial->options.program = trial->program;
	trial->options.program_bytes = trial->program->bytes;
	trial->options.page_bytes = trial->relation.page_bytes;
	trial->options.natts = trial->relation.natts;
	trial->options.attributes = trial->relation.attributes;
	trial->options.seed = random_next(c);
}

void
trial_keys(Context *c, Trial *trial, uint32_t nkeys)
{
	uint32_t	nvectors = gh_program_vectors(trial->program);
	uint32_t	bit_and = trial->program->ncolumns + trial->program->nconstants;

	trial->options.keys = trial->keys;
	trial->options.nkeys = nkeys;
	for (uint32_t k = 0; k < nkeys; k++)
	{
		GhScanKey  *key = &trial->keys[k];

		memset(key, 0, sizeof(*key));
		do
			key->vector = (uint16_t) (chance(c, 60) ? bit_and : random_below(c, nvectors));
		while (trial->classes[key->vector] == 0);
		key->value_class = trial->classes[key->vector];
		key->padded = key->value_class == GH_CLASS_TEXT && chance(c, 50);
	}
}

/*
 * Any aggregates; before a sum of floats come the least and the greatest of them, which tell how
 * exact the sum can be.
 */
void
trial_aggregates(Context *c, Trial *trial, uint32_t count)
{
	uint32_t	nvectors = gh_program_vectors(trial->program);
	GhScanOptions *options = &trial->options;
	GhError		error;

	options->aggregates = trial->aggregates;
	options->naggregates = 0;
	while (options->naggregates < count && options->naggregates + 3 <= TRIAL_AGGREGATES_MAX)
	{
		GhAggregate *aggregate = &trial->aggregates[options->naggregates];
		GhAggregate drawn = {0};

		drawn.kind = (uint8_t) (1 + random_below(c, GH_AGGREGATE_MOMENTS));
		drawn.argument = (uint16_t) (drawn.kind == GH_AGGREGATE_COUNT_ROWS ? 0 :
									 random_below(c, nvectors));
		drawn.value_class = drawn.kind == GH_AGGREGATE_COUNT_ROWS ? 0 :
			trial->classes[drawn.argument];
		drawn.filter = (uint16_t) (chance(c, 70) ? GH_AGGREGATE_NO_FILTER :
								   random_below(c, nvectors));
		if (gh_aggregates_check(&drawn, 1, trial->classes, nvectors, &error) != GH_OK ||
			(drawn.kind == GH_AGGREGATE_SUM && drawn.value_class == GH_CLASS_FLOAT4))
			continue;
		if (gh_scan_is_sum(&drawn) && gh_class_is_float(drawn.value_class))
		{
			aggregate[0] = aggregate[1] = drawn;
			aggregate[0].kind = GH_AGGREGATE_MIN;
			aggregate[1].kind = GH_AGGREGATE_MAX;
			aggregate += 2;
			options->naggregates += 2;
		}
		*aggregate = drawn;
		options->naggregates++;
	}
}

void
trial_drop(Context *c, Trial *trial)
{
	if (trial->registered)
		c->engine->memory_unregister(0, trial->memory);
	for (uint32_t p = 0; p < trial->npages; p++)
		page_drop(&trial->written[p]);
	munmap(trial->memory, trial->memory_bytes);
	free(trial->bitmaps);
	free(trial->program);
}

/* -------------------------------------------------------------------- outcomes */

static uint64_t
record_hash(const Trial *trial, const GhScanGroup *record)
{
	uint64_t	hash = 0;

	for (uint32_t k = 0; k < trial->options.nkeys; k++)
	{
		GhValue		value = gh_scan_group_value(&trial->keys[k], record, k, (const char *) record);

		hash = gh_scan_hash(&trial->keys[k], &value, hash);
	}
	return hash;
}

static bool
same_keys(const Trial *trial, const GhScanGroup *a, const GhScanGroup *b)
{
	for (uint32_t k = 0; k < trial->options.nkeys; k++)
	{
		GhValue		left = gh_scan_group_value(&trial->keys[k], a, k, (const char *) a);
		GhValue		right = gh_scan_group_value(&trial->keys[k], b, k, (const char *) b);

		if (!gh_scan_equal(&trial->keys[k], &left, &right))
			return false;
	}
	return true;
}

const GhAggregateState *
record_states(const Trial *trial, const GhScanGroup *record)
{
	return (const GhAggregateState *) (gh_scan_keys(record) + trial->options.nkeys);
}

static uint32_t *
record_slot(const ScanOutcome *outcome, const GhScanGroup *record)
{
	uint32_t	at = (uint32_t) record_hash(outcome->trial, record);

	for (;; at++)
	{
		uint32_t   *slot = &outcome->slots[at & (outcome->nslots - 1)];

		if (*slot == 0 ||
			same_keys(outcome->trial, (const GhScanGroup *) outcome->records[*slot - 1], record))
			return slot;
	}
}

const GhScanGroup *
outcome_find(const ScanOutcome *outcome, const GhScanGroup *record)
{
	uint32_t	slot = *record_slot(outcome, record);

	return slot == 0 ? NULL : (const GhScanGroup *) outcome->records[slot - 1];
}

/* Joins make more groups than there are lines. */
static void
grow(ScanOutcome *outcome)
{
	outcome->nslots *= 2;
	free(outcome->slots);
	outcome->slots = make_memory(outcome->nslots * sizeof(uint32_t));
	memset(outcome->slots, 0, outcome->nslots * sizeof(uint32_t));
	outcome->records = realloc(outcome->records, outcome->nslots * sizeof(char *));
	if (outcome->records == NULL)
		exit(2);
	for (uint32_t i = 0; i < outcome->count; i++)
		*record_slot(outcome, (const GhScanGroup *) outcome->records[i]) = i + 1;
}

void
outcome_add(Context *c, ScanOutcome *outcome, const GhScanGroup *record)
{
	uint32_t   *slot = record_slot(outcome, record);
	GhScanGroup *copy;

	if (*slot != 0)
	{
		copy = (GhScanGroup *) outcome->records[*slot - 1];
		copy->rows += record->rows;
		CHECK(c, gh_aggregates_merge(outcome->trial->aggregates, outcome->trial->options.naggregates,
									 (GhAggregateState *) record_states(outcome->trial, copy),
									 record_states(outcome->trial, record)),
			  "states of a scan do not merge");
		return;
	}
	copy = make_memory(record->bytes);
	memcpy(copy, record, record->bytes);
	outcome->records[outcome->count++] = (char *) copy;
	*slot = outcome->count;
	if (2 * outcome->count >= outcome->nslots)
		grow(outcome);
}

void
outcome_make(ScanOutcome *outcome, const Trial *trial)
{
	uint64_t	most = 1;		/* rows, and groups */

	memset(outcome, 0, sizeof(*outcome));
	outcome->trial = trial;
	for (uint32_t p = 0; p < trial->npages; p++)
		most += trial->pages[p].lines;
	outcome->nslots = 4;
	while (outcome->nslots < 2 * most)
		outcome->nslots *= 2;
	outcome->slots = make_memory(outcome->nslots * sizeof(uint32_t));
	memset(outcome->slots, 0, outcome->nslots * sizeof(uint32_t));
	outcome->records = make_memory(outcome->nslots * sizeof(char *));
	outcome->back = make_memory(most * sizeof(GhScanRow));
}

void
outcome_drop(ScanOutcome *outcome)
{
	for (uint32_t i = 0; i < outcome->count; i++)
		free(outcome->records[i]);
	free(outcome->records);
	free(outcome->slots);
	free(outcome->back);
	free(outcome->rows);
}

static void
keep_rows(ScanOutcome *outcome, const char *records, size_t bytes)
{
	while (outcome->rows_room - outcome->rows_bytes < bytes)
	{
		outcome->rows_room = 2 * outcome->rows_room + bytes;
		outcome->rows = realloc(outcome->rows, outcome->rows_room);
		if (outcome->rows == NULL)
			exit(2);
	}
	if (bytes > 0)
		memcpy(outcome->rows + outcome->rows_bytes, records, bytes);
	outcome->rows_bytes += bytes;
}

/* --------------------------------------------------------------------- running */

/* All records, in buffers that are too small at times. */
bool
trial_results(Context *c, const GhScanEngine *engine, GhScan *scan, ScanOutcome *outcome)
{
	bool		each_row = outcome->trial->options.each_row != 0;
	size_t		capacity = each_row ? (size_t) random_below(c, 4 * RESULT_BYTES) : RESULT_BYTES;
	char	   *buffer = make_memory(capacity);
	GhCursor	cursor = {0};
	GhError		error = {0};
	GhStatus	status = GH_OK;

	while (!cursor.finished && (status == GH_OK || status == GH_TOO_SMALL))
	{
		size_t		bytes;

		status = engine->results(scan, &cursor, capacity, buffer, &bytes, &error);
		if (status == GH_TOO_SMALL)
		{
			CHECK(c, bytes > capacity, "a record of %zu bytes is too large for %zu", bytes, capacity);
			free(buffer);
			buffer = make_memory(capacity = bytes);
			continue;
		}
		for (size_t at = 0; status == GH_OK && at < bytes;)
		{
			const GhScanGroup *record = (const GhScanGroup *) (buffer + at);

			CHECK(c, each_row ? record->rows == 1 : record->rows > 0, "a group of %" PRIu64
				  " rows is told", record->rows);
			outcome_add(c, outcome, record);
			outcome->told++;
			at += record->bytes;
		}
		if (each_row && status == GH_OK)
			keep_rows(outcome, buffer, bytes);
	}
	free(buffer);
	return CHECK_STATUS(c, error.message, status, GH_OK);
}

/* In the order of pages and lines, and none twice? */
static void
gather_back(Context *c, ScanOutcome *outcome, const GhScanRequest *request, uint32_t first)
{
	for (uint64_t i = 0; i < request->nback; i++)
	{
		GhScanRow	row = request->back[i];

		bool		live = (row.line & GH_SCAN_LIVE) != 0;

		row.line &= ~GH_SCAN_LIVE;
		CHECK(c, (!live || (outcome->trial->options.lists_rows != 0 && row.line > 0)) &&
			  row.page < request->npages && row.line <= request->pages[row.page].lines &&
			  (i == 0 || request->back[i - 1].page < row.page ||
			   (request->back[i - 1].page == row.page && (request->back[i - 1].line & ~GH_SCAN_LIVE) < row.line)), "row %u of page %u is handed back", row.line,
			  row.page);
		outcome->listed += live;
		row.line = request->back[i].line;
		row.page += first;
		outcome->back[outcome->nback++] = row;
	}
	outcome->counted += request->counted;
	outcome->seen += request->seen;
	outcome->passed += request->passed;
	for (int j = 0; j < GH_SCAN_JOINS_MAX; j++)
		outcome->joined[j] += request->joined[j];
	outcome->no_group += request->no_group;
}

bool
lacks_memory(GhStatus status)
{
	return status == GH_LIMIT || status == GH_NO_MEMORY;
}

/* All pages, in requests of so many that are all submitted before the first is waited for. */
bool
trial_requests(Context *c, const Trial *trial, const GhScanEngine *engine, GhScan *scan,
			   const GhScanPage *pages, const uint64_t *bitmaps, ScanOutcome *outcome)
{
	GhScanRequest requests[TRIAL_PAGES_MAX] = {0};
	uint32_t	nrequests = 0;
	bool		good = true;

	for (uint32_t p = 0; p < trial->npages; p += trial->cut, nrequests++)
	{
		GhScanRequest *request = &requests[nrequests];
		GhStatus	status;

		request->npages = trial->npages - p < trial->cut ? trial->npages - p : trial->cut;
		request->readable = trial->registered;
		request->pages = pages + p;
		request->bitmaps = bitmaps;
		request->nbitmaps = (uint64_t) trial->npages * TRIAL_WORDS;
		for (uint32_t i = 0; i < request->npages; i++)
			request->back_room += pages[p + i].lines;
		request->back = make_memory(request->back_room * sizeof(GhScanRow));
		status = engine->submit(scan, request);
		good &= CHECK(c, status == GH_OK || status == GH_BUSY, "submit: %s", request->error.message);
	}
	for (uint32_t r = 0; r < nrequests; r++)
	{
		GhStatus	status = good ? engine->wait(&requests[r]) : GH_INVALID;

		if (lacks_memory(status) && trial->fail_at > 0)
		{
			CHECK(c, requests[r].counted == 0 && requests[r].nback == 0, "a failed request counted");
			status = engine->submit(scan, &requests[r]);
			status = status == GH_BUSY ? engine->wait(&requests[r]) : requests[r].status;
		}
		good &= good && CHECK(c, status == GH_OK, "wait: %s", requests[r].error.message);
		if (good)
			gather_back(c, outcome, &requests[r], r * trial->cut);
	}
	/* of one that failed the engine may still have a hold */
	for (uint32_t r = 0; good && r < nrequests; r++)
		free(requests[r].back);
	return good;
}

static bool
run_pages(Context *c, const Trial *trial, const GhEngine *engine, const GhScanPage *pages,
		  const uint64_t *bitmaps, ScanOutcome *outcome)
{
	GhScanStats stats = {0};
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;
	GhStatus	status;
	bool		good;

	outcome_make(outcome, trial);
	host_init(&state, &host);
	state.fail_at = state.refuse_at = trial->fail_at;
	status = engine->scans->create(&host, &trial->options, &scan, &error);
	if (lacks_memory(status) && trial->fail_at > 0)
	{
		CHECK_U64(c, "bytes left by a failed create", state.allocated + state.device_bytes, 0);
		status = engine->scans->create(&host, &trial->options, &scan, &error);
	}
	if (!CHECK_STATUS(c, "a scan", status, GH_OK))
	{
		printf("  %s\n", error.message);
		return false;
	}
	good = trial_requests(c, trial, engine->scans, scan, pages, bitmaps, outcome) &&
		(trial->options.lists_rows != 0 || trial_results(c, engine->scans, scan, outcome)) &&
		CHECK_STATUS(c, "stats", engine->scans->stats(scan, &stats, &error), GH_OK);
	CHECK(c, !good || trial->options.memory_limit == 0 ||
		  stats.bytes_peak <= trial->options.memory_limit, "%" PRIu64 " bytes of %" PRIu64,
		  stats.bytes_peak, trial->options.memory_limit);
	CHECK(c, !good || stats.counted == outcome->counted, "%" PRIu64 " rows were counted, not %"
		  PRIu64, stats.counted, outcome->counted);
	engine->scans->destroy(scan);
	outcome->refused = state.failed || state.refused;
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	CHECK(c, !state.overdrawn && !state.damaged, "the host's memory was misused");
	return good;
}

bool
trial_run(Context *c, const Trial *trial, const GhEngine *engine, ScanOutcome *outcome)
{
	return run_pages(c, trial, engine, trial->pages, trial->bitmaps, outcome);
}

bool
trial_run_back(Context *c, const Trial *trial, const ScanOutcome *back, const GhEngine *engine,
			   ScanOutcome *outcome)
{
	size_t		words = (size_t) trial->npages * TRIAL_WORDS;
	uint64_t   *bitmaps = make_words(words);
	GhScanPage	pages[TRIAL_PAGES_MAX];
	bool		good;

	memcpy(pages, trial->pages, sizeof(pages));
	memset(bitmaps, 0, words * sizeof(uint64_t));
	for (uint32_t p = 0; p < trial->npages; p++)
		pages[p].bitmap = p * TRIAL_WORDS;
	for (uint64_t i = 0; i < back->nback; i++)
	{
		uint32_t	p = back->back[i].page;
		uint32_t	bit = (back->back[i].line & ~GH_SCAN_LIVE) - 1;

		if (back->back[i].line > 0)
			bitmaps[p * TRIAL_WORDS + bit / 64] |= UINT64_C(1) << bit % 64;
	}
	good = run_pages(c, trial, engine, pages, bitmaps, outcome);
	free(bitmaps);
	return good;
}
