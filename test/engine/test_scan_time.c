/*
 * test_scan_time.c
 *		What a page of a scan takes.
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

const Test	scan_time_tests[] = {
	{"scans: throughput", throughput, false},
	{NULL, NULL, false}
};
