/*
 * scan.c
 *		Accepts or refuses the options and requests of scans, and writes the records of groups:
 *		what all engines have in common.
 */
#include "engine/pipeline/scan.h"

#include <stdlib.h>

/* ------------------------------------------------------------------- options */

static size_t
aligned(size_t bytes)
{
	return (bytes + 15) & ~(size_t) 15;
}

/* Copies an array to *place, which goes on behind it. */
static void *
copy_array(char **place, const void *from, size_t bytes)
{
	void	   *to = *place;

	if (bytes > 0)
		memcpy(to, from, bytes);
	*place += aligned(bytes);
	return to;
}

static GhStatus
check_join_sizes(const GhScanJoin *joins, uint32_t njoins, GhError *error)
{
	for (uint32_t j = 0; j < njoins; j++)
	{
		if (joins[j].nparts == 0 || joins[j].nparts > GH_SCAN_PARTS_MAX || joins[j].parts == NULL)
			return gh_error_set(error, GH_INVALID, "join %u of a scan has no key of %u parts", j,
								joins[j].nparts);
		if (joins[j].nfills > GH_PROGRAM_VECTORS_MAX ||
			(joins[j].nfills > 0 && joins[j].fills == NULL))
			return gh_error_set(error, GH_INVALID, "join %u of a scan fills no %u columns", j,
								joins[j].nfills);
	}
	return GH_OK;
}

/* Are the sizes such that the arrays can be copied?  The joins are: to joins. */
static GhStatus
check_sizes(const GhScanOptions *options, GhScanJoin *joins, GhError *error)
{
	if (options->program == NULL || options->program_bytes < sizeof(GhProgram) ||
		options->program_bytes > GH_PROGRAM_BYTES_MAX)
		return gh_error_set(error, GH_INVALID, "a scan has no program of %zu bytes",
							options->program_bytes);
	if (options->natts > GH_ATTRIBUTE_MAX || (options->natts > 0 && options->attributes == NULL))
		return gh_error_set(error, GH_INVALID, "a scan has no %u attributes", options->natts);
	if (options->nkeys > GH_SCAN_KEYS_MAX || (options->nkeys > 0 && options->keys == NULL))
		return gh_error_set(error, GH_INVALID, "a scan has no %u keys", options->nkeys);
	if (options->naggregates > GH_AGGREGATES_MAX ||
		(options->naggregates > 0 && options->aggregates == NULL))
		return gh_error_set(error, GH_INVALID, "a scan has no %u aggregates", options->naggregates);
	if (options->each_row > 1 || (options->each_row == 1 && options->naggregates + options->nparts > 0))
		return gh_error_set(error, GH_INVALID, "a scan returns rows (%u), with %u aggregates and a table's "
							"key of %u parts", options->each_row, options->naggregates, options->nparts);
	if (options->lists_rows > 1 ||
		(options->lists_rows == 1 &&
		 options->nkeys + options->naggregates + options->nparts + options->each_row > 0))
		return gh_error_set(error, GH_INVALID, "a scan lists rows (%u), with %u keys, %u aggregates and a table's "
							"key of %u parts", options->lists_rows, options->nkeys, options->naggregates,
							options->nparts);
	if (options->nparts > GH_SCAN_PARTS_MAX || (options->nparts > 0 && options->parts == NULL))
		return gh_error_set(error, GH_INVALID, "a scan makes no table with a key of %u parts",
							options->nparts);
	if (options->nkept > GH_SCAN_KEPT_MAX || (options->nkept > 0 && options->kept == NULL))
		return gh_error_set(error, GH_INVALID, "a scan makes no table of %u values",
							options->nkept);
	if (options->njoins > GH_SCAN_JOINS_MAX || (options->njoins > 0 && options->joins == NULL))
		return gh_error_set(error, GH_INVALID, "a scan has no %u joins", options->njoins);
	if (options->njoins > 0)
		memcpy(joins, options->joins, options->njoins * sizeof(GhScanJoin));
	return check_join_sizes(joins, options->njoins, error);
}

static size_t
arrays_bytes(const GhScanOptions *options, const GhScanJoin *joins)
{
	size_t		bytes = aligned(options->program_bytes) +
		aligned(options->natts * sizeof(GhPageAttribute)) +
		aligned(options->nkeys * sizeof(GhScanKey)) +
		aligned(options->naggregates * sizeof(GhAggregate)) +
		aligned(options->nparts * sizeof(GhScanPart)) +
		aligned(options->nkept * sizeof(uint16_t)) + aligned(options->njoins * sizeof(GhScanJoin));

	for (uint32_t j = 0; j < options->njoins; j++)
		bytes += aligned(joins[j].nparts * sizeof(GhScanPart)) +
			aligned(joins[j].nfills * sizeof(GhScanFill));
	return bytes;
}

static GhStatus
copy_arrays(GhScanPlan *plan, const GhScanOptions *options, GhScanJoin *joins, GhError *error)
{
	GhScanOptions *copy = &plan->options;
	char	   *place = aligned_alloc(16, arrays_bytes(options, joins));

	if (place == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the plan of a scan");
	plan->memory = place;
	*copy = *options;
	copy->program = copy_array(&place, options->program, options->program_bytes);
	copy->attributes = copy_array(&place, options->attributes,
								  options->natts * sizeof(GhPageAttribute));
	copy->keys = copy_array(&place, options->keys, options->nkeys * sizeof(GhScanKey));
	copy->aggregates = copy_array(&place, options->aggregates,
								  options->naggregates * sizeof(GhAggregate));
	copy->parts = copy_array(&place, options->parts, options->nparts * sizeof(GhScanPart));
	copy->kept = copy_array(&place, options->kept, options->nkept * sizeof(uint16_t));
	for (uint32_t j = 0; j < options->njoins; j++)
	{
		joins[j].parts = copy_array(&place, joins[j].parts, joins[j].nparts * sizeof(GhScanPart));
		joins[j].fills = copy_array(&place, joins[j].fills, joins[j].nfills * sizeof(GhScanFill));
	}
	copy->joins = copy_array(&place, joins, options->njoins * sizeof(GhScanJoin));
	return GH_OK;
}

static GhStatus
check_keys(const GhScanOptions *options, const uint8_t *classes, uint32_t nvectors, GhError *error)
{
	for (uint32_t k = 0; k < options->nkeys; k++)
	{
		const GhScanKey *key = &options->keys[k];

		if (key->vector >= nvectors || key->value_class == 0 ||
			classes[key->vector] != key->value_class)
			return gh_error_set(error, GH_INVALID, "key %u of a scan is vector %d, which is not of "
								"class %d", k, key->vector, key->value_class);
		if (key->padded > (key->value_class == GH_CLASS_TEXT))
			return gh_error_set(error, GH_INVALID, "key %u of a scan is padded and of class %d", k,
								key->value_class);
	}
	return GH_OK;
}

/* float4s are summed in PostgreSQL's order, or not at all. */
static GhStatus
check_support(const GhScanOptions *options, GhError *error)
{
	for (uint32_t a = 0; a < options->naggregates; a++)
		if (options->aggregates[a].kind == GH_AGGREGATE_SUM &&
			options->aggregates[a].value_class == GH_CLASS_FLOAT4)
			return gh_error_set(error, GH_UNSUPPORTED, "aggregate %u of a scan is a sum of float4",
								a);
	return GH_OK;
}

/* The shape of a page has the columns whose attributes are its tuples'; the joins fill the others. */
static GhStatus
make_shape(GhScanPlan *plan, GhError *error)
{
	const GhScanOptions *options = &plan->options;
	const GhColumn *columns = gh_program_columns(options->program);
	GhColumn	own[GH_PROGRAM_VECTORS_MAX] = {0}; /* none at all may be passed on */
	uint32_t	vectors[GH_PROGRAM_VECTORS_MAX];
	uint32_t	n = 0;
	GhStatus	status;

	for (uint32_t i = 0; i < options->program->ncolumns; i++)
		if (columns[i].attribute <= options->natts)
		{
			vectors[n] = i;
			own[n++] = columns[i];
		}
	status = gh_page_shape_init(&plan->shape, options->page_bytes, options->natts,
								options->attributes, n, own, error);
	/* the shape numbers the columns that it was given */
	for (uint32_t i = 0; status == GH_OK && i < n; i++)
		plan->shape.columns[i].vector = vectors[plan->shape.columns[i].vector];
	if (status == GH_OK && plan->shape.tids != 0)
		plan->shape.tids = vectors[plan->shape.tids - 1] + 1;
	return status;
}

static GhStatus
check_copies(GhScanPlan *plan, const GhScanEngine *engine, GhError *error)
{
	const GhScanOptions *options = &plan->options;
	const GhProgram *program = options->program;
	GhStatus	status;

	status = gh_program_check_classes(program, options->program_bytes, plan->classes, error);
	if (status == GH_OK)
		status = make_shape(plan, error);
	if (status == GH_OK)
		status = check_keys(options, plan->classes, gh_program_vectors(program), error);
	if (status == GH_OK)
		status = gh_aggregates_check(options->aggregates, options->naggregates, plan->classes,
									 gh_program_vectors(program), error);
	if (status == GH_OK)
		status = gh_scan_joins_check(plan, engine, error);
	if (status == GH_OK)
		status = check_support(options, error);
	return status;
}

GhStatus
gh_scan_plan_init(GhScanPlan *plan, const GhScanEngine *engine, const GhScanOptions *options,
				  GhError *error)
{
	GhScanJoin	joins[GH_SCAN_JOINS_MAX];
	GhScanOptions copy;
	GhStatus	status;

	memset(plan, 0, sizeof(*plan));
	if (options == NULL)
		return gh_error_set(error, GH_INVALID, "a scan has no options");
	copy = *options;
	status = check_sizes(&copy, joins, error);
	if (status == GH_OK)
		status = copy_arrays(plan, &copy, joins, error);
	if (status == GH_OK)
		status = check_copies(plan, engine, error);
	if (status != GH_OK)
		gh_scan_plan_drop(plan);
	plan->group_bytes = (uint32_t) (sizeof(GhScanGroup) +
									plan->options.nkeys * sizeof(GhScanValue));
	return status;
}

void
gh_scan_plan_drop(GhScanPlan *plan)
{
	free(plan->memory);
	plan->memory = NULL;
}

/* ------------------------------------------------------------------ requests */

static GhStatus
check_page(const GhScanPlan *plan, const GhScanRequest *request, uint32_t p, GhError *error)
{
	const GhScanPage *page = &request->pages[p];
	uint32_t	most = (plan->options.page_bytes - GH_PAGE_LINES_AT) / GH_LINE_BYTES;

	if (page->page == NULL || (uintptr_t) page->page % 16 != 0)
		return gh_error_set(error, GH_INVALID, "page %u of a scan is not at an address that is "
							"aligned to 16 bytes", p);
	if (page->lines > most)
		return gh_error_set(error, GH_INVALID, "page %u of a scan has %u lines, of %u at most", p,
							page->lines, most);
	if (page->hinted > plan->options.page_bytes || (page->hinted > 0 && plan->options.seen_before == 0))
		return gh_error_set(error, GH_INVALID, "page %u of a scan has tuples whose headers do not tell "
							"what is visible", p);
	if (page->bitmap != GH_SCAN_ALL && page->lines > 0 &&
		((uint64_t) page->bitmap + (page->lines + 63) / 64 > request->nbitmaps ||
		 request->bitmaps == NULL))
		return gh_error_set(error, GH_INVALID, "page %u of a scan has a bitmap that is not in the "
							"request", p);
	return GH_OK;
}

/* Rows of a table that have no match; lists of them come from where others can write. */
static GhStatus
check_unmatched(const GhScanPlan *plan, const GhScanRequest *request, GhError *error)
{
	const GhScan *table = gh_scan_marked_table(&plan->options);

	if (request->unmatched > 1)
		return gh_error_set(error, GH_INVALID, "a request is for rows without a match: %u", request->unmatched);
	if (table == NULL)
		return gh_error_set(error, GH_INVALID, "a request is for rows without a match, of a scan whose last join "
							"marks none");
	if (request->npages > 0)
		return gh_error_set(error, GH_INVALID, "a request for rows without a match has %u pages",
							request->npages);
	if (request->nrows > GH_SCAN_LINES_MAX || request->first_row > table->rows ||
		request->nrows > table->rows - request->first_row)
		return gh_error_set(error, GH_INVALID, "a request is for %llu rows from row %llu on, of a table of "
							"%llu, and %d at most", (unsigned long long) request->nrows,
							(unsigned long long) request->first_row, (unsigned long long) table->rows,
							GH_SCAN_LINES_MAX);
	return GH_OK;
}

GhStatus
gh_scan_request_check(const GhScanPlan *plan, const GhScanRequest *request, uint64_t *lines,
					  GhError *error)
{
	if (request->unmatched != 0)
	{
		*lines = request->nrows;
		return check_unmatched(plan, request, error);
	}
	*lines = 0;
	if (request->npages > GH_SCAN_PAGES_MAX || (request->npages > 0 && request->pages == NULL))
		return gh_error_set(error, GH_INVALID, "a request has no %u pages, of %d at most",
							request->npages, GH_SCAN_PAGES_MAX);
	for (uint32_t p = 0; p < request->npages; p++)
	{
		GhStatus	status = check_page(plan, request, p, error);

		if (status != GH_OK)
			return status;
		*lines += request->pages[p].lines;
	}
	if (*lines > GH_SCAN_LINES_MAX)
		return gh_error_set(error, GH_INVALID, "the pages of a request have %llu lines, of %d at "
							"most", (unsigned long long) *lines, GH_SCAN_LINES_MAX);
	if (*lines > request->back_room || (*lines > 0 && request->back == NULL))
		return gh_error_set(error, GH_INVALID, "a request has no room for %llu rows that may be "
							"handed back", (unsigned long long) *lines);
	return GH_OK;
}

/* ------------------------------------------------------------------- records */

static bool
is_text(const GhScanPlan *plan, const GhScanGroup *group, uint32_t k)
{
	return plan->options.keys[k].value_class == GH_CLASS_TEXT && (group->nulls >> k & 1) == 0;
}

bool
gh_scan_record_put(const GhScanPlan *plan, const GhScanGroup *group, const GhAggregateState *states,
				   const char *texts, size_t capacity, char *buffer, size_t *used, size_t *needed)
{
	size_t		states_bytes = plan->options.naggregates * sizeof(GhAggregateState);
	size_t		at = plan->group_bytes + states_bytes;
	char	   *record = buffer + *used;
	GhScanValue *keys = (GhScanValue *) (record + sizeof(GhScanGroup));
	const GhScanValue *held = (const GhScanValue *) (group + 1);

	*needed = at;
	for (uint32_t k = 0; k < plan->options.nkeys; k++)
		*needed += is_text(plan, group, k) ? (size_t) held[k].high : 0;
	*needed = (*needed + 7) & ~(size_t) 7;
	if (*needed > capacity - *used)
		return false;
	memcpy(record, group, plan->group_bytes);
	if (states_bytes > 0)
		memcpy(record + plan->group_bytes, states, states_bytes);
	((GhScanGroup *) record)->bytes = *needed;
	for (uint32_t k = 0; k < plan->options.nkeys; k++)
	{
		if (!is_text(plan, group, k))
			continue;
		/* without any text but empty ones, there is no memory for them */
		if (held[k].high > 0)
			memcpy(record + at, texts + held[k].low, (size_t) held[k].high);
		keys[k].low = at;
		at += (size_t) held[k].high;
	}
	memset(record + at, 0, *needed - at);
	*used += *needed;
	return true;
}
