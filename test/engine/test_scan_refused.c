/*
 * test_scan_refused.c
 *		Scans and requests that are refused or stopped, and scans whose device fails.
 */
#include "scan_test.h"

#define RESULT_BYTES 65536		/* of a buffer of records */

/* ------------------------------------------------------------ what is refused */

static void
expect_refused(Context *c, const GhScanOptions *options, GhStatus expected,
			   const char *what)
{
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;
	GhStatus	status;

	host_init(&state, &host);
	status = c->engine->scans->create(&host, options, &scan, &error);
	CHECK_STATUS(c, what, status, expected);
	CHECK(c, expected == GH_OK || (error.status == expected && error.message[0] != '\0'),
		  "%s: no message", what);
	if (status == GH_OK)
		c->engine->scans->destroy(scan);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
}

static void
refused_options(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));
	GhScanOptions options;
	GhAggregate sum = {GH_AGGREGATE_SUM, GH_CLASS_FLOAT4, 0, GH_AGGREGATE_NO_FILTER, 0};

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 2, 0);
	expect_refused(c, &trial->options, GH_OK, "options");
	expect_refused(c, NULL, GH_INVALID, "no options");
#define REFUSED(field, value, status) \
	do { \
		options = trial->options; \
		options.field = value; \
		expect_refused(c, &options, status, #field " " #value); \
	} while (0)
	REFUSED(program, NULL, GH_INVALID);
	REFUSED(program_bytes, 4, GH_INVALID);
	REFUSED(program_bytes, GH_PROGRAM_BYTES_MAX + 1, GH_INVALID);
	REFUSED(program_bytes, options.program_bytes - 8, GH_INVALID);
	REFUSED(page_bytes, 8191, GH_INVALID);
	REFUSED(natts, 2, GH_INVALID);
	REFUSED(natts, GH_ATTRIBUTE_MAX + 1, GH_INVALID);
	REFUSED(attributes, NULL, GH_INVALID);
	REFUSED(keys, NULL, GH_INVALID);
	REFUSED(nkeys, GH_SCAN_KEYS_MAX + 1, GH_INVALID);
	REFUSED(aggregates, NULL, GH_INVALID);
	REFUSED(naggregates, GH_AGGREGATES_MAX + 1, GH_INVALID);
	REFUSED(device, -1, GH_INVALID);
	REFUSED(memory_limit, 1, GH_LIMIT);
	trial->keys[1].value_class = GH_CLASS_BOOL;
	expect_refused(c, &trial->options, GH_INVALID, "a key of another class");
	trial->keys[1].value_class = trial->classes[1];
	trial->keys[1].padded = 2;
	expect_refused(c, &trial->options, GH_INVALID, "a key that is padded twice");
	trial->keys[1].padded = 0;
	trial->keys[1].vector = (uint16_t) gh_program_vectors(trial->program);
	expect_refused(c, &trial->options, GH_INVALID, "a key that is no vector");
	trial->keys[1].vector = (uint16_t) (gh_program_vectors(trial->program) - 1);
	expect_refused(c, &trial->options, GH_INVALID, "a key that nothing sets");
	trial->keys[1].vector = 1;
#undef REFUSED
	/* one of the columns is a float4 from here on */
	trial->relation.attributes[2].length = 4;
	for (uint32_t i = 0; i < trial->program->ncolumns; i++)
		if (gh_program_columns(trial->program)[i].attribute == 3)
		{
			((GhColumn *) gh_program_columns(trial->program))[i].load = GH_LOAD_FLOAT4;
			sum.argument = (uint16_t) i;
		}
	trial->options.aggregates = &sum;
	trial->options.naggregates = 1;
	trial->options.nkeys = 0;
	expect_refused(c, &trial->options, GH_UNSUPPORTED, "a sum of float4");
	sum.kind = GH_AGGREGATE_MOMENTS;
	expect_refused(c, &trial->options, GH_OK, "moments of float4");
	trial_drop(c, trial);
	free(trial);
}

static void
expect_request(Context *c, GhScan *scan, GhScanRequest request, GhStatus expected, const char *what)
{
	GhStatus	status = c->engine->scans->submit(scan, &request);

	if (status == GH_BUSY || status == GH_OK)
		status = c->engine->scans->wait(&request);
	CHECK_STATUS(c, what, status, expected);
	CHECK_STATUS(c, what, request.status, expected);
	CHECK(c, expected == GH_OK || (request.counted == 0 && request.nback == 0), "%s: counted", what);
}

/* With a snapshot, pages may be hinted. */
static void
expect_hints_refused(Context *c, const Trial *trial, const GhScanRequest *good, GhScanPage *page)
{
	GhScanOptions options = trial->options;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;

	options.seen_before = 5;
	host_init(&state, &host);
	CHECK_STATUS(c, "a scan with a snapshot", c->engine->scans->create(&host, &options, &scan, &error), GH_OK);
	*page = trial->pages[0];
	page->hinted = options.page_bytes + 1;
	expect_request(c, scan, *good, GH_INVALID, "a page whose tuples begin behind it");
	page->hinted = options.page_bytes;
	expect_request(c, scan, *good, GH_OK, "a page that is hinted");
	c->engine->scans->destroy(scan);
}

/* Requests that are refused, and one that is stopped; the scan counts as if they were not. */
static void
refused_requests(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));
	GhScanRow  *back = make_memory(TRIAL_PAGES_MAX * TRIAL_LINES_MAX * sizeof(GhScanRow));
	GhScanRequest good = {0};
	GhScanRequest bad;
	GhScanPage	page;
	GhScanStats stats;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;

	if (no_scans(c))
	{
		free(trial);
		free(back);
		return;
	}
	make_many(c, trial, 0, 0);
	trial->pages[0].lines = gh_page_lines(trial->pages[0].page, 8192);
	trial->pages[0].bitmap = GH_SCAN_ALL;
	host_init(&state, &host);
	CHECK_STATUS(c, "a scan", c->engine->scans->create(&host, &trial->options, &scan, &error), GH_OK);
	good.npages = 1;
	good.pages = &page;
	good.bitmaps = trial->bitmaps;
	good.nbitmaps = TRIAL_WORDS;
	good.back = back;
	good.back_room = TRIAL_LINES_MAX;
#define REFUSED(target, value) \
	do { \
		page = trial->pages[0]; \
		bad = good; \
		target = value; \
		expect_request(c, scan, bad, GH_INVALID, #target " " #value); \
	} while (0)
	REFUSED(bad.pages, NULL);
	REFUSED(bad.npages, GH_SCAN_PAGES_MAX + 1);
	REFUSED(bad.back, NULL);
	REFUSED(bad.back_room, page.lines - 1);
	REFUSED(page.page, NULL);
	REFUSED(page.page, (const char *) page.page + 8);
	REFUSED(page.lines, (8192 - 24) / 4 + 1);
	REFUSED(page.bitmap, TRIAL_WORDS);
	REFUSED(page.bitmap, UINT32_MAX - 1);
	REFUSED(page.hinted, 1);
	page = trial->pages[0];
	state.stop = 1;
	expect_request(c, scan, good, GH_STOPPED, "a stopped request");
	state.stop = 0;
	expect_request(c, scan, good, GH_OK, "a request");
	bad = good;
	bad.npages = 0;
	expect_request(c, scan, bad, GH_OK, "a request of no pages");
	page.lines = 0;
	expect_request(c, scan, good, GH_OK, "a request of no lines");
	CHECK_STATUS(c, "stats", c->engine->scans->stats(scan, &stats, &error), GH_OK);
	CHECK_U64(c, "counted", stats.counted, trial->written[0].ntuples);
#undef REFUSED
	c->engine->scans->destroy(scan);
	expect_hints_refused(c, trial, &good, &page);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	trial_drop(c, trial);
	free(trial);
	free(back);
}

/* ----------------------------------------------------------------- failures */

/* A whole scan, in which a launch fails; false: none did any more. */
static bool
fail_launch(Context *c, const Trial *trial, FaultArm arm, uint64_t launch)
{
	const GhScanEngine *engine = c->engine->scans;
	GhScanRequest requests[TRIAL_PAGES_MAX] = {0};
	GhScanRow  *back = make_memory(TRIAL_PAGES_MAX * TRIAL_LINES_MAX * sizeof(GhScanRow));
	char	   *results = make_memory(RESULT_BYTES);
	GhScanStats stats;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;
	GhStatus	status;
	bool		failed = false;

	host_init(&state, &host);
	arm(0, launch);
	status = engine->create(&host, &trial->options, &scan, &error);
	for (uint32_t p = 0; status == GH_OK && p < trial->npages; p++)
	{
		requests[p].npages = 1;
		requests[p].pages = &trial->pages[p];
		requests[p].bitmaps = trial->bitmaps;
		requests[p].nbitmaps = (uint64_t) trial->npages * TRIAL_WORDS;
		requests[p].back = back + (size_t) p * TRIAL_LINES_MAX;
		requests[p].back_room = TRIAL_LINES_MAX;
		(void) engine->submit(scan, &requests[p]);
	}
	for (uint32_t p = 0; status == GH_OK && p < trial->npages; p++)
	{
		GhStatus	ended = engine->wait(&requests[p]);

		CHECK(c, failed ? ended == GH_DEVICE_ERROR : ended == GH_OK || ended == GH_DEVICE_ERROR,
			  "request %u: %s: %s", p, gh_status_name(ended), requests[p].error.message);
		failed |= ended == GH_DEVICE_ERROR;
	}
	for (GhCursor cursor = {0}; status == GH_OK && !failed && !cursor.finished;)
	{
		size_t		bytes;
		GhStatus	ended = engine->results(scan, &cursor, RESULT_BYTES, results, &bytes, &error);

		CHECK(c, ended == GH_OK || ended == GH_DEVICE_ERROR, "results: %s", error.message);
		failed = ended != GH_OK;
	}
	if (status == GH_OK)
	{
		CHECK_STATUS(c, "stats", engine->stats(scan, &stats, &error),
					 failed ? GH_DEVICE_ERROR : GH_OK);
		engine->destroy(scan);
	}
	else
		CHECK_STATUS(c, "create", status, GH_DEVICE_ERROR);
	arm(0, 0);
	CHECK_U64(c, "bytes left", state.allocated + state.device_bytes, 0);
	free(back);
	free(results);
	return failed || status != GH_OK;
}

static void
fail_launches(Context *c, uint32_t each_row)
{
	FaultArm	arm = find_fault_arm(c);
	Trial	   *trial = make_memory(sizeof(Trial));
	uint64_t	launch = 1;

	if (arm == NULL || no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 3, 20);
	trial->npages = 6;
	trial->options.groups = 1;
	trial->options.each_row = each_row;
	trial->options.naggregates *= 1 - each_row;
	while (c->failures == 0 && fail_launch(c, trial, arm, launch))
		launch++;
	/* of the stand-in a request is one */
	CHECK(c, launch > (c->stand_in ? trial->npages : 20) || c->failures > 0, "a scan has %" PRIu64 " launches only", launch);
	trial->npages = TRIAL_PAGES_MAX;
	trial_drop(c, trial);
	free(trial);
}

static void
failing_launches(Context *c)
{
	fail_launches(c, 0);
}

static void
failing_rows(Context *c)
{
	fail_launches(c, 1);
}

const Test	scan_refused_tests[] = {
	{"scans: options that are refused", refused_options, false},
	{"scans: requests that are refused", refused_requests, false},
	{"scans: launches that fail", failing_launches, false},
	{"rows of scans: launches that fail", failing_rows, false},
	{NULL, NULL, false}
};
