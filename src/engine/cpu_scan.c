/*
 * cpu_scan.c
 *		Scans on the CPU: pages through gh_cpu_page_load(), gh_program_run() and
 *		gh_cpu_aggregate().
 *
 * Nothing runs but inside poll and wait, which do SLICE_PAGES pages at a time of the oldest
 * request.  A request that was begun is done to its end, whatever the stop flag says: so it is
 * counted in full.
 */
#include "cpu_page.h"
#include "cpu_scan.h"

#include <stdlib.h>

#define SLICE_PAGES 16

/* GhScanRequest.engine_state */
enum
{
	STATE_NEXT,					/* the request behind it in the queue */
	STATE_PAGE					/* the first page that is not done */
};

typedef struct CpuScan
{
	GhScan		base;			/* first */
	GhHost		host;
	GhScanPlan	plan;
	GhCpuGroups groups;
	GhVectorBatch batch;
	void	   *batch_memory;
	uint32_t	found[GH_VECTOR_ROWS];	/* the rows' groups */
	uint16_t   *numbers;		/* of a page's lines that are asked for */
	GhScanRequest *first;		/* oldest */
	GhScanRequest *last;
	uint64_t	lines;			/* of all requests so far */
	uint64_t	counted;
} CpuScan;

/* -------------------------------------------------------------------- a page */

/* The lines that are asked for; false: the page does not have them. */
static bool
list_lines(CpuScan *scan, const GhScanRequest *request, const GhScanPage *page, uint32_t *count)
{
	const uint8_t *bytes = page->page;

	*count = 0;
	if (page->lines > gh_page_lines(bytes, scan->plan.options.page_bytes))
		return false;
	for (uint32_t number = 1; number <= page->lines; number++)
		if (gh_scan_asks(page, request->bitmaps, number) &&
			(page->bitmap != GH_SCAN_ALL || gh_scan_is_normal(bytes, number)))
			scan->numbers[(*count)++] = (uint16_t) number;
	return true;
}

static void
hand_back(GhScanRequest *request, uint32_t page, uint32_t line)
{
	request->back[request->nback].page = page;
	request->back[request->nback].line = line;
	request->nback++;
}

/* Finds or makes the groups of the live rows; those that get none go back. */
static void
find_groups(CpuScan *scan, GhScanRequest *request)
{
	const GhScanOptions *options = &scan->plan.options;
	GhValue		values[GH_SCAN_KEYS_MAX];

	for (uint32_t i = 0; i < scan->batch.nrows; i++)
	{
		if (scan->batch.state[i] != GH_ROW_LIVE)
			continue;
		for (uint32_t k = 0; k < options->nkeys; k++)
		{
			const GhVector *vector = &scan->batch.vectors[options->keys[k].vector];
			bool		wide = gh_scan_has_high(options->keys[k].value_class);

			values[k].low = vector->low[i];
			values[k].high = wide ? vector->high[i] : 0;
			values[k].null = vector->null[i];
		}
		scan->found[i] = gh_cpu_group_find(&scan->groups, values);
		if (scan->found[i] == GH_CPU_NO_GROUP)
		{
			scan->batch.state[i] = GH_ROW_BACK;
			request->no_group++;
		}
	}
}

/* Rows with a value that no engine sums go back. */
static void
check_sums(CpuScan *scan)
{
	const GhScanOptions *options = &scan->plan.options;
	const GhVectorBatch *batch = &scan->batch;

	for (uint32_t a = 0; a < options->naggregates; a++)
	{
		const GhAggregate *aggregate = &options->aggregates[a];
		const GhVector *vector = &batch->vectors[aggregate->argument];
		bool		wide = aggregate->value_class == GH_CLASS_INT128;

		for (uint32_t i = 0; gh_scan_is_sum(aggregate) && i < batch->nrows; i++)
			if (batch->state[i] == GH_ROW_LIVE && gh_aggregate_takes(aggregate, batch->vectors, i) &&
				!gh_scan_fits(aggregate, vector->low[i], wide ? vector->high[i] : 0))
				batch->state[i] = GH_ROW_BACK;
	}
}

/* Counts the rows of a batch, whose lines' numbers are these, or hands them back. */
static void
count_batch(CpuScan *scan, GhScanRequest *request, uint32_t page, const uint16_t *numbers)
{
	const GhScanOptions *options = &scan->plan.options;

	(void) gh_program_run(options->program, &scan->batch);
	check_sums(scan);
	find_groups(scan, request);
	gh_cpu_aggregate(options->aggregates, options->naggregates, &scan->batch, scan->found,
					 scan->groups.states);
	for (uint32_t i = 0; i < scan->batch.nrows; i++)
	{
		if (scan->batch.state[i] == GH_ROW_BACK)
			hand_back(request, page, numbers[i]);
		if (scan->batch.state[i] != GH_ROW_LIVE)
			continue;
		gh_cpu_group_at(&scan->groups, scan->found[i])->rows++;
		request->counted++;
	}
}

/* Loads the page's rows, and counts them; false: it is not to be trusted. */
static bool
go_over_page(CpuScan *scan, GhScanRequest *request, uint32_t page, uint32_t nlines, bool count)
{
	for (uint32_t at = 0; at < nlines; at += GH_VECTOR_ROWS)
	{
		uint32_t	n = nlines - at < GH_VECTOR_ROWS ? nlines - at : GH_VECTOR_ROWS;

		scan->batch.nrows = 0;
		if (gh_cpu_page_load(&scan->plan.shape, request->pages[page].page, scan->numbers + at, n,
							 &scan->batch) != GH_OK)
			return false;
		if (count)
			count_batch(scan, request, page, scan->numbers + at);
	}
	return true;
}

static void
do_page(CpuScan *scan, GhScanRequest *request, uint32_t page)
{
	uint32_t	nlines;

	/* rows of several batches: all are loaded once before any is counted */
	if (!list_lines(scan, request, &request->pages[page], &nlines) ||
		(nlines > GH_VECTOR_ROWS && !go_over_page(scan, request, page, nlines, false)) ||
		!go_over_page(scan, request, page, nlines, true))
		hand_back(request, page, 0);
}

/* ------------------------------------------------------------------ requests */

static GhScanRequest *
next_in_queue(const GhScanRequest *request)
{
	return (GhScanRequest *) (uintptr_t) request->engine_state[STATE_NEXT];
}

static GhStatus
cpu_scan_submit(GhScan *handle, GhScanRequest *request)
{
	CpuScan    *scan = (CpuScan *) handle;
	uint64_t	lines;
	GhStatus	status;

	request->counted = request->nback = request->no_group = 0;
	request->scan = NULL;
	status = gh_scan_request_check(&scan->plan, request, &lines, &request->error);
	if (status == GH_OK && lines > GH_SCAN_ROWS_MAX - scan->lines)
		status = gh_error_set(&request->error, GH_LIMIT, "a scan of more than 2^40 rows");
	if (status != GH_OK)
		return request->status = status;
	memset(&request->error, 0, sizeof(request->error));
	memset(request->engine_state, 0, sizeof(request->engine_state));
	request->status = GH_BUSY;
	request->scan = handle;
	scan->lines += lines;
	if (scan->first == NULL)
		scan->first = request;
	else
		scan->last->engine_state[STATE_NEXT] = (uintptr_t) request;
	scan->last = request;
	return GH_BUSY;
}

/* One slice of the oldest request. */
static GhStatus
do_slice(CpuScan *scan, GhScanRequest *request)
{
	uint32_t	page = (uint32_t) request->engine_state[STATE_PAGE];

	if (page == 0 && scan->host.stop != NULL && *scan->host.stop != 0)
		return gh_error_set(&request->error, GH_STOPPED, "the request was stopped");
	for (uint32_t i = 0; i < SLICE_PAGES && page < request->npages; i++)
		do_page(scan, request, page++);
	request->engine_state[STATE_PAGE] = page;
	return page < request->npages ? GH_BUSY : GH_OK;
}

static void
advance_queue(CpuScan *scan)
{
	GhScanRequest *request = scan->first;
	GhStatus	status = do_slice(scan, request);

	if (status == GH_BUSY)
		return;
	scan->counted += request->counted;
	scan->first = next_in_queue(request);
	request->status = status;
	request->scan = NULL;
}

static GhStatus
cpu_scan_poll(GhScanRequest *request)
{
	if (request->status == GH_BUSY && request->scan != NULL)
		advance_queue((CpuScan *) request->scan);
	return request->status;
}

static GhStatus
cpu_scan_wait(GhScanRequest *request)
{
	while (cpu_scan_poll(request) == GH_BUSY)
		continue;
	return request->status;
}

/* ------------------------------------------------------------------- results */

static GhStatus
cpu_scan_results(GhScan *handle, GhCursor *cursor, size_t capacity, void *buffer, size_t *bytes,
				 GhError *error)
{
	CpuScan    *scan = (CpuScan *) handle;
	const GhCpuGroups *groups = &scan->groups;
	uint32_t	naggregates = scan->plan.options.naggregates;
	size_t		needed;

	*bytes = 0;
	while (scan->first != NULL)
		advance_queue(scan);
	for (; cursor->position < groups->count; cursor->position++)
	{
		const GhScanGroup *group = gh_cpu_group_at(groups, (uint32_t) cursor->position);

		if (group->rows == 0 ||
			gh_scan_record_put(&scan->plan, group, groups->states + cursor->position * naggregates,
							   groups->texts, capacity, buffer, bytes, &needed))
			continue;
		if (*bytes > 0)
			return GH_OK;
		*bytes = needed;
		return gh_error_set(error, GH_TOO_SMALL, "a group needs %zu bytes", needed);
	}
	cursor->finished = true;
	return GH_OK;
}

static GhStatus
cpu_scan_stats(GhScan *handle, GhScanStats *stats, GhError *error)
{
	const CpuScan *scan = (const CpuScan *) handle;

	(void) error;
	stats->groups = scan->groups.count;
	stats->counted = scan->counted;
	stats->bytes = scan->groups.bytes;
	stats->bytes_peak = scan->groups.bytes_peak;
	stats->work_bytes = 0;
	return GH_OK;
}

/* ---------------------------------------------------------- making and ending */

static void
cpu_scan_destroy(GhScan *handle)
{
	CpuScan    *scan = (CpuScan *) handle;

	if (scan == NULL)
		return;
	gh_cpu_groups_drop(&scan->groups);
	gh_scan_plan_drop(&scan->plan);
	free(scan->numbers);
	free(scan->batch_memory);
	free(scan);
}

static GhStatus
make_contents(CpuScan *scan, GhError *error)
{
	const GhScanOptions *options = &scan->plan.options;
	size_t		bytes = (gh_batch_bytes(options->program) + 63) & ~(size_t) 63;

	scan->numbers = malloc(options->page_bytes / GH_LINE_BYTES * sizeof(uint16_t));
	scan->batch_memory = aligned_alloc(64, bytes);
	if (scan->numbers == NULL || scan->batch_memory == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a scan's handle");
	gh_batch_prepare(&scan->batch, options->program, scan->batch_memory);
	return gh_cpu_groups_init(&scan->groups, &scan->host, &scan->plan, error);
}

static GhStatus
cpu_scan_create(const GhHost *host, const GhScanOptions *options, GhScan **handle, GhError *error)
{
	CpuScan    *scan;
	GhStatus	status;

	*handle = NULL;
	if (host == NULL || host->alloc == NULL || host->free == NULL || host->address == NULL)
		return gh_error_set(error, GH_INVALID, "the CPU engine needs a host's memory");
	scan = calloc(1, sizeof(CpuScan));
	if (scan == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a scan's handle");
	scan->base.engine = &gh_cpu_scans;
	scan->host = *host;
	status = gh_scan_plan_init(&scan->plan, options, error);
	if (status == GH_OK && scan->plan.options.device != 0)
		status = gh_error_set(error, GH_INVALID, "the CPU engine has no device %d",
							  scan->plan.options.device);
	if (status == GH_OK)
		status = make_contents(scan, error);
	if (status != GH_OK)
	{
		cpu_scan_destroy(&scan->base);
		return status;
	}
	*handle = &scan->base;
	return GH_OK;
}

const GhScanEngine gh_cpu_scans = {
	.create = cpu_scan_create,
	.destroy = cpu_scan_destroy,
	.submit = cpu_scan_submit,
	.poll = cpu_scan_poll,
	.wait = cpu_scan_wait,
	.results = cpu_scan_results,
	.stats = cpu_scan_stats,
};
