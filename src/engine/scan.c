/*
 * scan.c
 *		Accepts or refuses the options and requests of scans, and writes the records of groups:
 *		what all engines have in common.
 */
#include "scan.h"

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

/* Are the sizes such that the arrays can be copied? */
static GhStatus
check_sizes(const GhScanOptions *options, GhError *error)
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
	return GH_OK;
}

static GhStatus
copy_arrays(GhScanPlan *plan, const GhScanOptions *options, GhError *error)
{
	size_t		attributes = options->natts * sizeof(GhPageAttribute);
	size_t		keys = options->nkeys * sizeof(GhScanKey);
	size_t		aggregates = options->naggregates * sizeof(GhAggregate);
	char	   *place = aligned_alloc(16, aligned(options->program_bytes) + aligned(attributes) +
									  aligned(keys) + aligned(aggregates));

	if (place == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the plan of a scan");
	plan->memory = place;
	plan->options = *options;
	plan->options.program = copy_array(&place, options->program, options->program_bytes);
	plan->options.attributes = copy_array(&place, options->attributes, attributes);
	plan->options.keys = copy_array(&place, options->keys, keys);
	plan->options.aggregates = copy_array(&place, options->aggregates, aggregates);
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

static GhStatus
check_copies(GhScanPlan *plan, GhError *error)
{
	const GhScanOptions *options = &plan->options;
	const GhProgram *program = options->program;
	uint8_t		classes[GH_PROGRAM_VECTORS_MAX];
	GhStatus	status;

	status = gh_program_check_classes(program, options->program_bytes, classes, error);
	if (status == GH_OK)
		status = gh_page_shape_init(&plan->shape, options->page_bytes, options->natts,
									options->attributes, program->ncolumns,
									gh_program_columns(program), error);
	if (status == GH_OK)
		status = check_keys(options, classes, gh_program_vectors(program), error);
	if (status == GH_OK)
		status = gh_aggregates_check(options->aggregates, options->naggregates, classes,
									 gh_program_vectors(program), error);
	if (status == GH_OK)
		status = check_support(options, error);
	return status;
}

GhStatus
gh_scan_plan_init(GhScanPlan *plan, const GhScanOptions *options, GhError *error)
{
	GhScanOptions copy;
	GhStatus	status;

	memset(plan, 0, sizeof(*plan));
	if (options == NULL)
		return gh_error_set(error, GH_INVALID, "a scan has no options");
	copy = *options;
	status = check_sizes(&copy, error);
	if (status == GH_OK)
		status = copy_arrays(plan, &copy, error);
	if (status == GH_OK)
		status = check_copies(plan, error);
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
	if (page->bitmap != GH_SCAN_ALL && page->lines > 0 &&
		((uint64_t) page->bitmap + (page->lines + 63) / 64 > request->nbitmaps ||
		 request->bitmaps == NULL))
		return gh_error_set(error, GH_INVALID, "page %u of a scan has a bitmap that is not in the "
							"request", p);
	return GH_OK;
}

GhStatus
gh_scan_request_check(const GhScanPlan *plan, const GhScanRequest *request, uint64_t *lines,
					  GhError *error)
{
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
