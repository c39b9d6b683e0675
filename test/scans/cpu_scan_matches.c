/*
 * cpu_scan_matches.c
 *		Rows that joins of scans on the CPU make several of.
 *
 * What becomes of a row is a list of paths: the entries that it was joined with, one for each join.  The
 * list is made join by join.  Then the program's rest runs over the rows that the paths stand for, in
 * batches: once to see whether all of them can be counted, and finds their groups or adds them to the
 * table; and once more to count them.  If one of them goes back, so does the row, and nothing of it is left.
 */
#include "cpu_scan.h"

#include <stdlib.h>

typedef struct Path
{
	const GhCpuEntry *entries[GH_SCAN_JOINS_MAX];	/* NULL: there is no match, or no column is filled */
} Path;

typedef struct GhCpuMatches
{
	GhVectorBatch batch;		/* of rows that paths stand for */
	void	   *batch_memory;
	Path	   *paths;			/* GH_SCAN_MATCHES_MAX of each */
	Path	   *longer;
	uint32_t   *found;			/* by path: the group */
	uint64_t	joined[GH_SCAN_JOINS_MAX];
} GhCpuMatches;

/* What there was before a row. */
typedef struct Mark
{
	uint32_t	groups;
	uint64_t	group_texts;
	uint64_t	entries;
	uint64_t	entry_texts;
} Mark;

GhStatus
gh_cpu_matches_init(GhCpuScan *scan, GhError *error)
{
	const GhScanOptions *options = &scan->plan.options;
	size_t		bytes = (gh_batch_bytes(options->program) + 63) & ~(size_t) 63;
	bool		needed = false;
	GhCpuMatches *matches;

	for (uint32_t j = 0; j < options->njoins; j++)
		needed |= gh_scan_join_multiplies(options, j);
	if (!needed)
		return GH_OK;
	matches = scan->matches = calloc(1, sizeof(GhCpuMatches));
	if (matches == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the matches of a scan");
	matches->batch_memory = aligned_alloc(64, bytes);
	matches->paths = malloc(GH_SCAN_MATCHES_MAX * sizeof(Path));
	matches->longer = malloc(GH_SCAN_MATCHES_MAX * sizeof(Path));
	matches->found = malloc(GH_SCAN_MATCHES_MAX * sizeof(uint32_t));
	if (matches->batch_memory == NULL || matches->paths == NULL || matches->longer == NULL ||
		matches->found == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the matches of a scan");
	gh_batch_prepare(&matches->batch, options->program, matches->batch_memory);
	return GH_OK;
}

void
gh_cpu_matches_drop(GhCpuScan *scan)
{
	if (scan->matches == NULL)
		return;
	free(scan->matches->batch_memory);
	free(scan->matches->paths);
	free(scan->matches->longer);
	free(scan->matches->found);
	free(scan->matches);
	scan->matches = NULL;
}

/* ---------------------------------------------------------------------- paths */

/* Row `to` of the batch becomes what the scan's row is behind so many joins, on this path. */
static void
put_row(GhCpuScan *scan, uint32_t row, const Path *path, uint32_t njoins, uint32_t to)
{
	const GhScanOptions *options = &scan->plan.options;
	const GhVectorBatch *batch = &scan->matches->batch;
	uint32_t	constants = options->program->ncolumns;

	batch->state[to] = GH_ROW_LIVE;
	for (uint32_t v = 0; v < batch->nvectors; v++)
	{
		if (v >= constants && v < constants + options->program->nconstants)
			continue;
		batch->vectors[v].low[to] = scan->batch.vectors[v].low[row];
		batch->vectors[v].high[to] = scan->batch.vectors[v].high[row];
		batch->vectors[v].null[to] = scan->batch.vectors[v].null[row];
	}
	for (uint32_t j = 0; j < njoins; j++)
		gh_cpu_scan_fill(&options->joins[j], gh_cpu_joined_table(&options->joins[j]),
						 path->entries[j], batch, to);
}

/* Appends the path with this entry; false: there are too many. */
static bool
add_path(GhCpuMatches *matches, const Path *path, uint32_t j, const GhCpuEntry *entry, uint32_t *count)
{
	if (*count == GH_SCAN_MATCHES_MAX)
		return false;
	matches->longer[*count] = *path;
	matches->longer[(*count)++].entries[j] = entry;
	return true;
}

/* All paths behind join j of one before it; false: the row goes back. */
static bool
extend_path(GhCpuScan *scan, uint32_t row, const Path *path, uint32_t j, uint32_t *count)
{
	GhCpuMatches *matches = scan->matches;
	const GhScanJoin *join = &scan->plan.options.joins[j];
	const GhCpuScanTable *table = gh_cpu_joined_table(join);
	const GhCpuEntry *entry;

	put_row(scan, row, path, j, 0);
	entry = gh_cpu_scan_match(join, table, &matches->batch, 0);
	if (!gh_scan_kind_goes_on(join->kind, entry != NULL))
		return true;
	if (entry == NULL || join->kind == GH_SCAN_SEMI)
		return add_path(matches, path, j, NULL, count);
	if (entry->next != 0 && !gh_scan_join_multiplies(&scan->plan.options, j))
		return false;
	for (; entry != NULL; entry = gh_cpu_table_next(table, entry))
		if (!add_path(matches, path, j, entry, count))
			return false;
	return true;
}

/* The paths behind all joins, in the order of the tables' rows; false: the row goes back. */
static bool
find_paths(GhCpuScan *scan, uint32_t row, uint32_t *count)
{
	const GhScanOptions *options = &scan->plan.options;
	GhCpuMatches *matches = scan->matches;

	memset(matches->paths, 0, sizeof(Path));
	*count = 1;
	for (uint32_t j = 0; j < options->njoins; j++)
	{
		Path	   *paths = matches->paths;
		uint32_t	longer = 0;

		for (uint32_t p = 0; p < *count; p++)
			if (!extend_path(scan, row, &paths[p], j, &longer))
				return false;
		matches->paths = matches->longer;
		matches->longer = paths;
		matches->joined[j] = *count = longer;
	}
	return true;
}

/* ----------------------------------------------------------------- what comes of them */

/* Runs the program's rest over the rows of some paths; false: one of them goes back. */
static bool
run_paths(GhCpuScan *scan, uint32_t row, uint32_t first, uint32_t count)
{
	const GhScanOptions *options = &scan->plan.options;
	GhVectorBatch *batch = &scan->matches->batch;
	uint32_t	live;
	uint32_t	back;

	batch->nrows = count;
	for (uint32_t i = 0; i < count; i++)
		put_row(scan, row, &scan->matches->paths[first + i], options->njoins, i);
	(void) gh_program_run_part(options->program, batch, options->joins_at,
							   options->program->ninstructions);
	gh_cpu_scan_check_sums(scan, batch);
	gh_batch_count(batch, &live, &back);
	return back == 0;
}

/* How many paths are looked at together. */
static uint32_t
batch_of(uint32_t first, uint32_t count)
{
	return count - first < GH_VECTOR_ROWS ? count - first : GH_VECTOR_ROWS;
}

/* Finds groups for all rows, or adds them; false: the row goes back. */
static bool
place_rows(GhCpuScan *scan, GhScanRequest *request, uint32_t row, uint32_t count)
{
	GhCpuMatches *matches = scan->matches;

	for (uint32_t first = 0; first < count; first += GH_VECTOR_ROWS)
	{
		uint32_t	none;

		if (!run_paths(scan, row, first, batch_of(first, count)))
			return false;
		none = scan->plan.options.nparts > 0 ? gh_cpu_scan_add_to_table(scan, &matches->batch) :
			gh_cpu_scan_find_groups(scan, &matches->batch, matches->found + first);
		if (none > 0)
		{
			request->no_group++;
			return false;
		}
	}
	return true;
}

/* Counts the rows that are live, all of which have their places; returns how many there are. */
static uint64_t
count_rows(GhCpuScan *scan, uint32_t row, uint32_t count)
{
	const GhScanOptions *options = &scan->plan.options;
	GhCpuMatches *matches = scan->matches;
	uint64_t	rows = 0;

	for (uint32_t first = 0; first < count; first += GH_VECTOR_ROWS)
	{
		uint32_t	n = batch_of(first, count);

		(void) run_paths(scan, row, first, n);
		if (options->nparts == 0)
			gh_cpu_aggregate(options->aggregates, options->naggregates, &matches->batch,
							 matches->found + first, scan->groups.states);
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	key;

			if (matches->batch.state[i] != GH_ROW_LIVE ||
				(options->nparts > 0 && options->marks_matches == 0 &&
				 !gh_cpu_scan_key(options->parts, options->nparts, &matches->batch, i, &key)))
				continue;
			rows++;
			if (options->nparts == 0)
				gh_cpu_group_at(&scan->groups, matches->found[first + i])->rows++;
		}
	}
	return rows;
}

static Mark
mark_of(const GhCpuScan *scan)
{
	return (Mark) {scan->groups.count, scan->groups.texts.used, scan->table.count, scan->table.texts.used};
}

/* Groups that are looked up stay, without rows. */
static void
take_back(GhCpuScan *scan, const Mark *mark)
{
	scan->table.count = mark->entries;
	scan->table.texts.used = mark->entry_texts;
	if (scan->plan.options.each_row == 0)
		return;
	scan->groups.count = mark->groups;
	scan->groups.texts.used = mark->group_texts;
}

bool
gh_cpu_matches_count(GhCpuScan *scan, GhScanRequest *request, uint32_t row)
{
	Mark		mark = mark_of(scan);
	uint32_t	count;

	if (!find_paths(scan, row, &count) ||
		scan->counted + request->counted + count > GH_SCAN_ROWS_MAX ||
		!place_rows(scan, request, row, count))
	{
		take_back(scan, &mark);
		return false;
	}
	request->counted += count_rows(scan, row, count);
	request->passed++;
	for (uint32_t j = 0; j < scan->plan.options.njoins; j++)
		request->joined[j] += scan->matches->joined[j];
	return true;
}
