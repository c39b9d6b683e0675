/*
 * cpu_scan.c
 *		Scans on the CPU: pages through gh_cpu_page_load(), gh_program_run_part(),
 *		gh_cpu_scan_join() and gh_cpu_aggregate(), or into a table.
 *
 * Nothing runs but inside poll and wait, which do SLICE_PAGES pages at a time of the oldest
 * request, or look at SLICE_ROWS rows of a table.  A request that was begun is done to its end, whatever the stop
 * flag says: so it is counted in full.
 */
#include "cpu_scan.h"
#include "engine/page/cpu_page.h"

#include <stdlib.h>

#define SLICE_PAGES 16
#define SLICE_ROWS 4096			/* of a request for rows without a match */

/* GhScanRequest.engine_state */
enum
{
	STATE_NEXT,					/* the request behind it in the queue */
	STATE_PAGE					/* the first page, or row, that is not done */
};

/* -------------------------------------------------------------------- a page */

/* The lines of a page that is asked for, by what is to be done with them. */
typedef struct Lines
{
	uint32_t	asked;			/* in scan->numbers: rows */
	uint32_t	untold;			/* in scan->untold: they are handed back */
} Lines;

/* A line that is asked for; false: the page is not to be trusted. */
static bool
list_line(GhCpuScan *scan, const GhScanPage *page, uint32_t page_lines, uint32_t number, Lines *lines)
{
	GhScanSeen	seen = GH_SCAN_VISIBLE;
	GhPageTuple tuple;

	if (page->hinted && gh_scan_is_newer(page, page->page, number))
		return true;
	if (page->hinted)
	{
		if (!gh_page_tuple(page->page, scan->plan.options.page_bytes, page_lines, number, &tuple))
			return false;
		seen = gh_scan_judge(page->page, page->page, tuple.header, scan->plan.options.seen_before);
	}
	if (seen == GH_SCAN_VISIBLE)
		scan->numbers[lines->asked++] = (uint16_t) number;
	else if (seen == GH_SCAN_UNTOLD)
		scan->untold[lines->untold++] = (uint16_t) number;
	return true;
}

/* The lines that are asked for; false: the page does not have them, or is not to be trusted. */
static bool
list_lines(GhCpuScan *scan, const GhScanRequest *request, const GhScanPage *page, Lines *lines)
{
	const uint8_t *bytes = page->page;
	uint32_t	page_lines = gh_page_lines(bytes, scan->plan.options.page_bytes);

	memset(lines, 0, sizeof(*lines));
	if (page->lines > page_lines)
		return false;
	for (uint32_t number = 1; number <= page->lines; number++)
		if (gh_scan_asks(page, request->bitmaps, number) &&
			(page->bitmap != GH_SCAN_ALL || gh_scan_is_normal(bytes, number)) &&
			!list_line(scan, page, page_lines, number, lines))
			return false;
	return true;
}

static void
hand_back(GhScanRequest *request, uint32_t page, uint32_t line)
{
	request->back[request->nback].page = page;
	request->back[request->nback].line = line;
	request->nback++;
}

uint32_t
gh_cpu_scan_find_groups(GhCpuScan *scan, const GhVectorBatch *batch, uint32_t *found)
{
	const GhScanOptions *options = &scan->plan.options;
	GhValue		values[GH_SCAN_KEYS_MAX];
	uint32_t	none = 0;

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		if (batch->state[i] != GH_ROW_LIVE)
			continue;
		for (uint32_t k = 0; k < options->nkeys; k++)
		{
			const GhVector *vector = &batch->vectors[options->keys[k].vector];
			bool		wide = gh_scan_has_high(options->keys[k].value_class);

			values[k].low = vector->low[i];
			values[k].high = wide ? vector->high[i] : 0;
			values[k].null = vector->null[i];
		}
		found[i] = options->each_row != 0 ? gh_cpu_group_add(&scan->groups, values) :
			gh_cpu_group_find(&scan->groups, values);
		if (found[i] == GH_CPU_NO_GROUP)
		{
			batch->state[i] = GH_ROW_BACK;
			none++;
		}
	}
	return none;
}

void
gh_cpu_scan_check_sums(const GhCpuScan *scan, const GhVectorBatch *batch)
{
	const GhScanOptions *options = &scan->plan.options;

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

uint32_t
gh_cpu_scan_add_to_table(GhCpuScan *scan, const GhVectorBatch *batch)
{
	const GhScanOptions *options = &scan->plan.options;
	uint32_t	none = 0;

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		uint64_t	key;
		bool		has_key;

		if (batch->state[i] != GH_ROW_LIVE)
			continue;
		has_key = gh_cpu_scan_key(options->parts, options->nparts, batch, i, &key);
		if (!has_key && options->marks_matches == 0)
			batch->state[i] = GH_ROW_DROPPED;
		else if (!gh_cpu_table_add(&scan->table, has_key ? &key : NULL, batch, i))
		{
			batch->state[i] = GH_ROW_BACK;
			none++;
		}
	}
	return none;
}

static void
add_to_groups(GhCpuScan *scan, GhScanRequest *request)
{
	const GhScanOptions *options = &scan->plan.options;

	gh_cpu_scan_check_sums(scan, &scan->batch);
	request->no_group += gh_cpu_scan_find_groups(scan, &scan->batch, scan->found);
	gh_cpu_aggregate(options->aggregates, options->naggregates, &scan->batch, scan->found,
					 scan->groups.states);
	for (uint32_t i = 0; i < scan->batch.nrows; i++)
		if (scan->batch.state[i] == GH_ROW_LIVE)
			gh_cpu_group_at(&scan->groups, scan->found[i])->rows++;
}

void
gh_cpu_scan_add(GhCpuScan *scan, GhScanRequest *request)
{
	if (scan->plan.options.nparts > 0)
		request->no_group += gh_cpu_scan_add_to_table(scan, &scan->batch);
	else if (scan->plan.options.lists_rows == 0)
		add_to_groups(scan, request);
}

/* Rows that are live have come one step further. */
static void
note_live(GhCpuScan *scan)
{
	for (uint32_t i = 0; i < scan->batch.nrows; i++)
		scan->came[i] += scan->batch.state[i] == GH_ROW_LIVE;
}

/* Counts the rows of which joins make several, all at once, or hands them back. */
static void
count_several(GhCpuScan *scan, GhScanRequest *request)
{
	for (uint32_t i = 0; i < scan->batch.nrows; i++)
		if (scan->several[i] != 0 && !gh_cpu_matches_count(scan, request, i))
			scan->batch.state[i] = GH_ROW_BACK;
}

static void
run_and_join(GhCpuScan *scan, GhScanRequest *request)
{
	const GhScanOptions *options = &scan->plan.options;

	memset(scan->came, 0, sizeof(scan->came));
	memset(scan->several, 0, sizeof(scan->several));
	(void) gh_program_run_part(options->program, &scan->batch, 0, options->joins_at);
	note_live(scan);
	for (uint32_t j = 0; j < options->njoins; j++)
	{
		gh_cpu_scan_join(&options->joins[j], gh_cpu_joined_table(&options->joins[j]), &scan->batch,
						 gh_scan_join_multiplies(options, j) ? scan->several : NULL);
		note_live(scan);
	}
	/* as long as the rows are what they were before the joins */
	if (scan->matches != NULL)
		count_several(scan, request);
	(void) gh_program_run_part(options->program, &scan->batch, options->joins_at,
							   options->program->ninstructions);
}

/* Counts the rows of a batch, whose lines' numbers are these, or hands them back. */
static void
count_batch(GhCpuScan *scan, GhScanRequest *request, uint32_t page, const uint16_t *numbers)
{
	bool		lists = scan->plan.options.lists_rows != 0;

	run_and_join(scan, request);
	gh_cpu_scan_add(scan, request);
	for (uint32_t i = 0; i < scan->batch.nrows; i++)
	{
		if (scan->batch.state[i] == GH_ROW_BACK)
		{
			hand_back(request, page, numbers[i]);
			continue;
		}
		if (scan->several[i] != 0)
			continue;
		if (lists && scan->batch.state[i] == GH_ROW_LIVE)
			hand_back(request, page, numbers[i] | GH_SCAN_LIVE);
		request->counted += scan->batch.state[i] == GH_ROW_LIVE;
		request->passed += scan->came[i] > 0;
		for (uint32_t j = 0; j + 1 < scan->came[i]; j++)
			request->joined[j]++;
	}
}

/* Loads the page's rows, and counts them; false: it is not to be trusted. */
static bool
go_over_page(GhCpuScan *scan, GhScanRequest *request, uint32_t page, uint32_t nlines, bool count)
{
	for (uint32_t at = 0; at < nlines; at += GH_VECTOR_ROWS)
	{
		uint32_t	n = nlines - at < GH_VECTOR_ROWS ? nlines - at : GH_VECTOR_ROWS;

		scan->batch.nrows = 0;
		if (gh_cpu_page_load(&scan->plan.shape, request->pages[page].page, request->pages[page].block,
							 scan->numbers + at, n, &scan->batch) != GH_OK)
			return false;
		if (count)
			count_batch(scan, request, page, scan->numbers + at);
	}
	return true;
}

/* Puts the lines that are not known to be visible among those of the page that went back, from first on. */
static void
hand_back_untold(GhCpuScan *scan, GhScanRequest *request, uint32_t page, uint64_t first, uint32_t nuntold)
{
	uint64_t	from = request->nback;
	uint64_t	to = from + nuntold;

	request->nback = to;
	while (nuntold > 0)
	{
		uint32_t	line = scan->untold[nuntold - 1];

		to--;
		if (from > first && (request->back[from - 1].line & ~GH_SCAN_LIVE) > line)
		{
			request->back[to] = request->back[--from];
			continue;
		}
		request->back[to].page = page;
		request->back[to].line = line;
		nuntold--;
	}
}

static void
do_page(GhCpuScan *scan, GhScanRequest *request, uint32_t page)
{
	uint64_t	first = request->nback;
	uint64_t	counted = request->counted;
	Lines		lines;

	/* rows of several batches: all are loaded once before any is counted */
	if (!list_lines(scan, request, &request->pages[page], &lines) ||
		(lines.asked > GH_VECTOR_ROWS && !go_over_page(scan, request, page, lines.asked, false)) ||
		!go_over_page(scan, request, page, lines.asked, true))
	{
		hand_back(request, page, 0);
		return;
	}
	/* of what was told of them, these were not handed back */
	request->seen += lines.asked - (request->nback - first) +
		(scan->plan.options.lists_rows != 0 ? request->counted - counted : 0);
	hand_back_untold(scan, request, page, first, lines.untold);
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
	GhCpuScan  *scan = (GhCpuScan *) handle;
	uint64_t	lines;
	GhStatus	status;

	request->counted = request->seen = request->passed = request->nback = request->no_group = 0;
	memset(request->joined, 0, sizeof(request->joined));
	request->scan = NULL;
	status = gh_scan_request_check(&scan->plan, request, &lines, &request->error);
	if (status == GH_OK && scan->made)
		status = gh_error_set(&request->error, GH_INVALID, "a scan whose table was made takes no "
							  "more pages");
	if (status == GH_OK && lines > GH_SCAN_ROWS_MAX - scan->lines)
		status = gh_error_set(&request->error, GH_TOO_MANY, "a scan of more than 2^40 rows");
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

/* Of rows without a match, one slice. */
static GhStatus
do_unmatched_slice(GhCpuScan *scan, GhScanRequest *request)
{
	uint64_t	done = request->engine_state[STATE_PAGE];
	uint64_t	left = request->nrows - done;
	uint32_t	count = (uint32_t) (left < SLICE_ROWS ? left : SLICE_ROWS);

	gh_cpu_unmatched_rows(scan, request, request->first_row + done, count);
	request->engine_state[STATE_PAGE] = done + count;
	return count < left ? GH_BUSY : GH_OK;
}

/* One slice of the oldest request. */
static GhStatus
do_slice(GhCpuScan *scan, GhScanRequest *request)
{
	uint32_t	page = (uint32_t) request->engine_state[STATE_PAGE];

	if (request->engine_state[STATE_PAGE] == 0 && scan->host.stop != NULL && *scan->host.stop != 0)
		return gh_error_set(&request->error, GH_STOPPED, "the request was stopped");
	if (request->unmatched != 0)
		return do_unmatched_slice(scan, request);
	for (uint32_t i = 0; i < SLICE_PAGES && page < request->npages; i++)
		do_page(scan, request, page++);
	request->engine_state[STATE_PAGE] = page;
	return page < request->npages ? GH_BUSY : GH_OK;
}

static void
advance_queue(GhCpuScan *scan)
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
		advance_queue((GhCpuScan *) request->scan);
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
	GhCpuScan  *scan = (GhCpuScan *) handle;
	const GhCpuGroups *groups = &scan->groups;
	uint32_t	naggregates = scan->plan.options.naggregates;
	size_t		needed;

	*bytes = 0;
	if (scan->plan.options.nparts > 0)
		return gh_error_set(error, GH_INVALID, "a scan that makes a table has no groups");
	if (scan->plan.options.lists_rows != 0)
		return gh_error_set(error, GH_INVALID, "a scan that lists rows has no groups");
	while (scan->first != NULL)
		advance_queue(scan);
	for (; cursor->position < groups->count; cursor->position++)
	{
		const GhScanGroup *group = gh_cpu_group_at(groups, (uint32_t) cursor->position);

		if (group->rows == 0 ||
			gh_scan_record_put(&scan->plan, group, groups->states + cursor->position * naggregates,
							   groups->texts.bytes, capacity, buffer, bytes, &needed))
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
cpu_scan_make_table(GhScan *handle, GhScanTable *table, GhError *error)
{
	GhCpuScan  *scan = (GhCpuScan *) handle;
	GhStatus	status;

	if (scan->plan.options.nparts == 0 || scan->made)
		return gh_error_set(error, GH_INVALID, "a scan %s", scan->made ? "made its table before" :
							"makes no table");
	while (scan->first != NULL)
		advance_queue(scan);
	scan->made = true;
	status = gh_cpu_table_make(&scan->table, table, error);
	scan->base.table_made = status == GH_OK;
	scan->base.several = status == GH_OK && scan->table.several;
	scan->base.rows = status == GH_OK ? table->rows : 0;
	return status;
}

static GhStatus
cpu_scan_stats(GhScan *handle, GhScanStats *stats, GhError *error)
{
	const GhCpuScan *scan = (const GhCpuScan *) handle;

	(void) error;
	stats->groups = scan->plan.options.nparts > 0 ? scan->table.count : scan->groups.count;
	stats->counted = scan->counted;
	stats->bytes = scan->memory.bytes;
	stats->bytes_peak = scan->memory.bytes_peak;
	stats->work_bytes = 0;
	return GH_OK;
}

/* ---------------------------------------------------------- making and ending */

static void
cpu_scan_destroy(GhScan *handle)
{
	GhCpuScan  *scan = (GhCpuScan *) handle;

	if (scan == NULL)
		return;
	gh_cpu_matches_drop(scan);
	gh_cpu_groups_drop(&scan->groups);
	gh_cpu_table_drop(&scan->table);
	gh_scan_plan_drop(&scan->plan);
	free(scan->numbers);
	free(scan->untold);
	free(scan->batch_memory);
	free(scan);
}

static GhStatus
make_contents(GhCpuScan *scan, GhError *error)
{
	const GhScanOptions *options = &scan->plan.options;
	size_t		bytes = (gh_batch_bytes(options->program) + 63) & ~(size_t) 63;
	GhStatus	status;

	scan->numbers = malloc(options->page_bytes / GH_LINE_BYTES * sizeof(uint16_t));
	scan->untold = malloc(options->page_bytes / GH_LINE_BYTES * sizeof(uint16_t));
	scan->batch_memory = aligned_alloc(64, bytes);
	if (scan->numbers == NULL || scan->untold == NULL || scan->batch_memory == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a scan's handle");
	gh_batch_prepare(&scan->batch, options->program, scan->batch_memory);
	scan->memory.limit = options->memory_limit;
	status = gh_cpu_matches_init(scan, error);
	if (status != GH_OK)
		return status;
	if (options->nparts == 0)
		return gh_cpu_groups_init(&scan->groups, &scan->memory, &scan->plan, error);
	gh_cpu_table_init(&scan->table, &scan->memory, &scan->plan);
	return GH_OK;
}

static GhStatus
cpu_scan_create(const GhHost *host, const GhScanOptions *options, GhScan **handle, GhError *error)
{
	GhCpuScan  *scan;
	GhStatus	status;

	*handle = NULL;
	if (host == NULL || host->alloc == NULL || host->free == NULL || host->address == NULL)
		return gh_error_set(error, GH_INVALID, "the CPU engine needs a host's memory");
	scan = calloc(1, sizeof(GhCpuScan));
	if (scan == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a scan's handle");
	scan->base.engine = &gh_cpu_scans;
	scan->base.plan = &scan->plan;
	scan->host = scan->memory.host = *host;
	scan->groups.memory = scan->table.memory = &scan->memory;
	status = gh_scan_plan_init(&scan->plan, &gh_cpu_scans, options, error);
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
	.make_table = cpu_scan_make_table,
	.stats = cpu_scan_stats,
};

const GhEngine *
gh_cpu_engine_with_scans(void)
{
	static GhEngine engine;

	engine = *gh_cpu_engine();
	engine.scans = &gh_cpu_scans;
	return &engine;
}
