/*
 * test_scan_time.c
 *		What a page of a scan takes, and pages that others write to between requests.
 */
#include "scan_test.h"

/* The pages of a trial again and again, in memory of so many. */
static void
time_pages(Context *c, const Trial *trial, uint32_t npages, uint32_t cut, bool readable)
{
	GhScanPage *pages = make_memory(npages * sizeof(GhScanPage));
	uint32_t	nrequests = (npages + cut - 1) / cut;
	GhScanRequest *requests = make_memory(nrequests * sizeof(GhScanRequest));
	uint64_t	expected = 0;
	uint64_t	counted = 0;
	double		begin;
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;

	memset(requests, 0, nrequests * sizeof(GhScanRequest));
	for (uint32_t p = 0; p < npages; p++)
	{
		pages[p] = trial->pages[p % trial->npages];
		pages[p].page = trial->memory + (size_t) p * 8192;
		expected += trial->written[p % trial->npages].ntuples;
	}
	for (uint32_t r = 0; r < nrequests; r++)
	{
		requests[r].pages = pages + r * cut;
		requests[r].npages = r + 1 < nrequests ? cut : npages - r * cut;
		requests[r].readable = readable;
		requests[r].back_room = cut * UINT64_C(300);
		requests[r].back = make_memory(requests[r].back_room * sizeof(GhScanRow));
	}
	host_init(&state, &host);
	CHECK_STATUS(c, "a scan", c->engine->scans->create(&host, &trial->options, &scan, &error), GH_OK);
	/* the first one also finds the memory */
	for (int round = 0; round < 2; round++)
	{
		begin = seconds_now();
		for (uint32_t r = 0; r < nrequests; r++)
			(void) c->engine->scans->submit(scan, &requests[r]);
		for (uint32_t r = 0; r < nrequests; r++)
			if (CHECK(c, c->engine->scans->wait(&requests[r]) == GH_OK, "%s", requests[r].error.message))
				counted += requests[r].counted + requests[r].nback;
	}
	begin = seconds_now() - begin;
	printf("  %u pages, %u a request, %u keys, %s: %.0f ns a page, %.1f GB/s\n", npages, cut,
		   trial->options.nkeys, readable ? "registered" : "staged", begin * 1e9 / npages,
		   npages * 8192.0 / begin / 1e9);
	CHECK_U64(c, "rows", counted, 2 * expected);
	c->engine->scans->destroy(scan);
	for (uint32_t r = 0; r < nrequests; r++)
		free(requests[r].back);
	free(requests);
	free(pages);
}

/* Tells what a page takes, without keys and with few groups; checks that all rows were seen. */
static void
throughput(Context *c)
{
	uint32_t	npages = c->on_host ? 4096 : (uint32_t) sized(c, 131072, 2048);
	Trial	   *trial = make_memory(sizeof(Trial));
	size_t		bytes = (size_t) npages * 8192;
	uint8_t    *own;
	uint8_t    *memory;
	GhError		error = {0};
	bool		registered;

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 0, 0);
	for (uint32_t p = 0; p < trial->npages; p++)
	{
		trial->pages[p].lines = gh_page_lines(trial->pages[p].page, 8192);
		trial->pages[p].bitmap = GH_SCAN_ALL;
	}
	memory = aligned_alloc(4096, bytes);
	if (memory == NULL)
		exit(2);
	for (uint32_t p = 0; p < npages; p++)
		memcpy(memory + (size_t) p * 8192, trial->pages[p % trial->npages].page, 8192);
	registered = c->engine->memory_register != NULL &&
		c->engine->memory_register(0, memory, bytes, false, &error) == GH_OK;
	own = trial->memory;
	trial->memory = memory;
	for (trial->options.nkeys = 0; trial->options.nkeys <= 1; trial->options.nkeys++)
	{
		time_pages(c, trial, npages, 4096, false);
		if (registered)
		{
			time_pages(c, trial, npages, 1024, true);
			time_pages(c, trial, npages, 4096, true);
		}
		trial->keys[0].vector = 0;
		trial->keys[0].value_class = trial->classes[0];
	}
	trial->memory = own;
	if (registered)
		c->engine->memory_unregister(0, memory);
	free(memory);
	trial_drop(c, trial);
	free(trial);
}

/* --------------------------------------------------------- pages that change */

#define HALF (TRIAL_PAGES_MAX / 2)

/* Half of a trial's pages, and a request for them. */
typedef struct Changing
{
	const GhScanPage *pages;
	const WrittenPage *written;
	GhScanRequest request;
	uint64_t	normal;			/* line pointers */
} Changing;

/* Makes a line pointer of each page unused, or normal again. */
static void
change_lines(Context *c, Changing *half)
{
	for (uint32_t p = 0; p < HALF; p++)
	{
		uint32_t	tuple = (uint32_t) random_below(c, half->written[p].ntuples);
		uint32_t	number = half->written[p].numbers[tuple];
		uint8_t    *at = (uint8_t *) half->pages[p].page + 24 + (number - 1) * 4;
		uint32_t	line;

		memcpy(&line, at, 4);
		line ^= UINT32_C(1) << 15;
		memcpy(at, &line, 4);
		half->normal += (line >> 15 & 1) != 0 ? 1 : UINT64_MAX;
	}
}

static void
change_and_scan(Context *c, GhScan *scan, Changing *half)
{
	GhScanRow  *back = half->request.back;

	memset(&half->request, 0, sizeof(half->request));
	half->request.npages = HALF;
	half->request.readable = true;
	half->request.pages = half->pages;
	half->request.back = back;
	half->request.back_room = HALF * TRIAL_LINES_MAX;
	change_lines(c, half);
	(void) c->engine->scans->submit(scan, &half->request);
}

/* Each request is of pages as they are when it is submitted, whatever was read of them before. */
static void
changing_pages(Context *c)
{
	Trial	   *trial = make_memory(sizeof(Trial));
	Changing	halves[2] = {{0}};
	GhError		error = {0};
	HostState	state;
	GhHost		host;
	GhScan	   *scan;
	uint64_t	rounds = sized(c, 40000, 200);

	if (no_scans(c))
	{
		free(trial);
		return;
	}
	make_many(c, trial, 0, 0);
	if (!trial->registered)
		trial->registered = c->engine->memory_register != NULL &&
			c->engine->memory_register(0, trial->memory, trial->memory_bytes, false, &error) == GH_OK;
	for (uint32_t p = 0; p < TRIAL_PAGES_MAX; p++)
	{
		trial->pages[p].lines = gh_page_lines(trial->pages[p].page, 8192);
		trial->pages[p].bitmap = GH_SCAN_ALL;
		halves[p / HALF].normal += trial->written[p].ntuples;
	}
	host_init(&state, &host);
	CHECK_STATUS(c, "a scan", c->engine->scans->create(&host, &trial->options, &scan, &error), GH_OK);
	for (uint32_t i = 0; i < 2; i++)
	{
		halves[i].pages = trial->pages + i * HALF;
		halves[i].written = trial->written + i * HALF;
		halves[i].request.back = make_memory(HALF * TRIAL_LINES_MAX * sizeof(GhScanRow));
	}
	for (uint64_t round = 0; round < rounds + 2 && c->failures == 0; round++)
	{
		Changing   *half = &halves[round % 2];

		if (round >= 2 && CHECK(c, c->engine->scans->wait(&half->request) == GH_OK, "%s",
								half->request.error.message))
			CHECK_U64(c, "rows", half->request.counted + half->request.nback, half->normal);
		if (round < rounds)
			change_and_scan(c, scan, half);
	}
	c->engine->scans->destroy(scan);
	free(halves[0].request.back);
	free(halves[1].request.back);
	trial_drop(c, trial);
	free(trial);
}

const Test	scan_time_tests[] = {
	{"scans: pages that change", changing_pages, false},
	{"scans: throughput", throughput, false},
	{NULL, NULL, false}
};
