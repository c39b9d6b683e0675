/*
 * pipeline.c
 *		Accepts or refuses the options and requests of pipelines: sizes and copies; pipeline_check.c
 *		has what the parts of options have to do with one another.
 */
#include "engine/page/packed.h"
#include "engine/pipeline/pipeline.h"

#include <stdlib.h>

/* --------------------------------------------------------------- the copies */

static size_t
aligned(size_t bytes)
{
	return (bytes + 15) & ~(size_t) 15;
}

/* A walk over all arrays of options: it sums their bytes, and the second time copies them. */
typedef struct Copies
{
	char	   *place;			/* NULL: sizes only */
	size_t		bytes;
} Copies;

/* Where an array is to be from now on. */
static const void *
copy_array(Copies *copies, const void *from, size_t bytes)
{
	char	   *to = copies->place + copies->bytes;

	copies->bytes += aligned(bytes);
	if (copies->place == NULL)
		return from;
	if (bytes > 0)
		memcpy(to, from, bytes);
	return to;
}

static void
copy_sink(Copies *copies, GhSink *sink)
{
	/* of other sinks nobody looks at these, but engines may ask how many sets there are */
	if (sink->kind != GH_SINK_GROUPS)
		sink->groups.nsets = 0;
	if (sink->kind == GH_SINK_GROUPS)
	{
		uint32_t	nsets = gh_sink_sets(&sink->groups);

		sink->groups.keys = copy_array(copies, sink->groups.keys, nsets * sink->groups.nkeys * sizeof(GhRecordKey));
		sink->groups.aggregates = copy_array(copies, sink->groups.aggregates,
											 nsets * sink->groups.naggregates * sizeof(GhAggregate));
	}
	else if (sink->kind == GH_SINK_TABLE)
	{
		sink->table.parts = copy_array(copies, sink->table.parts, sink->table.nparts * sizeof(GhKeyPart));
		sink->table.kept = copy_array(copies, sink->table.kept, sink->table.nkept * sizeof(GhKept));
	}
	else if (sink->kind == GH_SINK_ROWS)
		sink->rows.values = copy_array(copies, sink->rows.values, sink->rows.nvalues * sizeof(GhRecordKey));
}

/* All arrays that options point to; the probes have been copied to `probes`. */
static void
copy_arrays(Copies *copies, GhPipelineOptions *options, GhProbe *probes)
{
	GhPipelineSource *source = &options->source;

	options->program = copy_array(copies, options->program, options->program_bytes);
	if (gh_source_has_pages(source))
		source->attributes = copy_array(copies, source->attributes, source->natts * sizeof(GhPageAttribute));
	if (source->kind == GH_SOURCE_GROUPS)
		source->columns = copy_array(copies, source->columns, source->natts * sizeof(GhGroupColumn));
	options->steps = copy_array(copies, options->steps, options->nsteps * sizeof(GhStep));
	for (uint32_t i = 0; i < options->nprobes; i++)
	{
		probes[i].parts = copy_array(copies, probes[i].parts, probes[i].nparts * sizeof(GhKeyPart));
		probes[i].fills = copy_array(copies, probes[i].fills, probes[i].nfills * sizeof(GhProbeFill));
	}
	copy_sink(copies, &options->sink);
	options->probes = copy_array(copies, probes, options->nprobes * sizeof(GhProbe));
}

/* ------------------------------------------------------------------- sizes */

/* An array of so many elements, of `most` at most. */
static bool
has_array(const void *array, uint64_t count, uint64_t most)
{
	return count <= most && (count == 0 || array != NULL);
}

static GhStatus
check_source_sizes(const GhPipelineSource *source, GhError *error)
{
	if (source->kind < GH_SOURCE_PAGES || source->kind > GH_SOURCE_LEAVES)
		return gh_error_set(error, GH_INVALID, "a pipeline has a source of kind %u", source->kind);
	if (source->natts > GH_ATTRIBUTE_MAX ||
		(gh_source_has_pages(source) && !has_array(source->attributes, source->natts, GH_ATTRIBUTE_MAX)) ||
		(source->kind == GH_SOURCE_GROUPS && !has_array(source->columns, source->natts, GH_ATTRIBUTE_MAX)))
		return gh_error_set(error, GH_INVALID, "the source of a pipeline has no %u attributes", source->natts);
	if (source->kind == GH_SOURCE_GROUPS && source->groups == NULL)
		return gh_error_set(error, GH_INVALID, "a pipeline's source is groups of none");
	return GH_OK;
}

static GhStatus
check_sink_sizes(const GhSink *sink, GhError *error)
{
	switch (sink->kind)
	{
		case GH_SINK_GROUPS:
			if (!has_array(sink->groups.keys, sink->groups.nkeys, GH_VALUES_MAX) ||
				!has_array(sink->groups.aggregates, sink->groups.naggregates, GH_AGGREGATES_MAX))
				return gh_error_set(error, GH_INVALID, "a pipeline makes no groups of %u keys and %u aggregates",
									sink->groups.nkeys, sink->groups.naggregates);
			if (sink->groups.nsets > GH_SINK_SETS_MAX)
				return gh_error_set(error, GH_INVALID, "a pipeline makes no groups of %u sets", sink->groups.nsets);
			return GH_OK;
		case GH_SINK_TABLE:
			if (sink->table.nparts == 0 || !has_array(sink->table.parts, sink->table.nparts, GH_KEY_PARTS_MAX) ||
				!has_array(sink->table.kept, sink->table.nkept, GH_TABLE_KEPT_MAX))
				return gh_error_set(error, GH_INVALID, "a pipeline makes no table with a key of %u parts and %u values",
									sink->table.nparts, sink->table.nkept);
			return GH_OK;
		case GH_SINK_ROWS:
			if (!has_array(sink->rows.values, sink->rows.nvalues, GH_VALUES_MAX))
				return gh_error_set(error, GH_INVALID, "a pipeline keeps no rows of %u values", sink->rows.nvalues);
			return GH_OK;
		case GH_SINK_PLACES:
			return GH_OK;
	}
	return gh_error_set(error, GH_INVALID, "a pipeline has a sink of kind %u", sink->kind);
}

/* Can all arrays be copied?  The probes are: to `probes`. */
static GhStatus
check_sizes(const GhPipelineOptions *options, GhProbe *probes, GhError *error)
{
	GhStatus	status = check_source_sizes(&options->source, error);

	if (status == GH_OK)
		status = check_sink_sizes(&options->sink, error);
	if (status != GH_OK)
		return status;
	if (options->program == NULL || options->program_bytes < sizeof(GhProgram) ||
		options->program_bytes > GH_PROGRAM_BYTES_MAX)
		return gh_error_set(error, GH_INVALID, "a pipeline has no program of %zu bytes", options->program_bytes);
	if (!has_array(options->steps, options->nsteps, GH_STEPS_MAX) ||
		!has_array(options->probes, options->nprobes, GH_PROBES_MAX))
		return gh_error_set(error, GH_INVALID, "a pipeline has no %u steps with %u probes", options->nsteps,
							options->nprobes);
	if (options->nprobes > 0)
		memcpy(probes, options->probes, options->nprobes * sizeof(GhProbe));
	for (uint32_t i = 0; i < options->nprobes; i++)
		if (probes[i].nparts == 0 || !has_array(probes[i].parts, probes[i].nparts, GH_KEY_PARTS_MAX) ||
			!has_array(probes[i].fills, probes[i].nfills, GH_PROGRAM_VECTORS_MAX))
			return gh_error_set(error, GH_INVALID, "probe %u of a pipeline has no key of %u parts and %u columns", i,
								probes[i].nparts, probes[i].nfills);
	return GH_OK;
}

/* -------------------------------------------------------------------- plans */

GhStatus
gh_pipeline_plan_init(GhPipelinePlan *plan, const GhPipelineEngine *engine, GhTableDescribe describe,
					  const GhPipelineOptions *options, GhError *error)
{
	GhProbe		probes[GH_PROBES_MAX];
	GhPipelineOptions sized;
	Copies		copies = {NULL, 0};
	GhStatus	status;
	uint32_t	nkeys;

	memset(plan, 0, sizeof(*plan));
	if (options == NULL)
		return gh_error_set(error, GH_INVALID, "a pipeline has no options");
	plan->options = sized = *options;
	status = check_sizes(&sized, probes, error);
	if (status != GH_OK)
		return status;
	copy_arrays(&copies, &sized, probes);
	plan->memory = aligned_alloc(16, copies.bytes + aligned(sized.nprobes * sizeof(GhTableShape)) + 16);
	if (plan->memory == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the plan of a pipeline");
	plan->probed = (GhTableShape *) ((char *) plan->memory + copies.bytes);
	copies = (Copies) {plan->memory, 0};
	copy_arrays(&copies, &plan->options, probes);
	status = gh_pipeline_check(plan, engine, describe, error);
	if (status != GH_OK)
		gh_pipeline_plan_drop(plan);
	(void) gh_pipeline_keys(&plan->options, &nkeys);
	plan->group_bytes = (uint32_t) (sizeof(GhRecordHead) + nkeys * sizeof(GhRecordValue));
	return status;
}

void
gh_pipeline_plan_drop(GhPipelinePlan *plan)
{
	free(plan->memory);
	plan->memory = NULL;
}

const GhRecordKey *
gh_pipeline_keys(const GhPipelineOptions *options, uint32_t *count)
{
	bool		rows = options->sink.kind == GH_SINK_ROWS;

	*count = rows ? options->sink.rows.nvalues : options->sink.kind == GH_SINK_GROUPS ? options->sink.groups.nkeys : 0;
	return rows ? options->sink.rows.values : options->sink.groups.keys;
}

/* Is the vector a constant that lets no row pass a filter? */
static bool
is_never(const GhProgram *program, uint16_t filter)
{
	const GhConstant *constant;

	if (filter < program->ncolumns || filter >= program->ncolumns + program->nconstants)
		return false;
	constant = &gh_program_constants(program)[filter - program->ncolumns];
	return constant->null != 0 || constant->low == 0;
}

bool
gh_sink_set_adds(const GhPipelineOptions *options, uint32_t set)
{
	const GhGroupsSink *sink = &options->sink.groups;
	const GhAggregate *aggregates = sink->aggregates + set * sink->naggregates;

	for (uint32_t a = 0; a < sink->naggregates; a++)
		if (aggregates[a].filter == GH_AGGREGATE_NO_FILTER || !is_never(options->program, aggregates[a].filter))
			return true;
	return false;
}

uint32_t
gh_step_begin(const GhPipelineOptions *options, uint32_t step)
{
	return step > 0 ? options->steps[step - 1].end : 0;
}

bool
gh_probe_multiplies(const GhPipelinePlan *plan, uint32_t probe)
{
	uint32_t	kind = plan->options.probes[probe].kind;

	return plan->probed[probe].several && (kind == GH_PROBE_INNER || kind == GH_PROBE_LEFT);
}

/* -------------------------------------------------------------------- spans */

GhStatus
gh_span_check(uint32_t page_bytes, uint32_t npages, GhError *error)
{
	if (page_bytes < GH_PAGE_BYTES_MIN || page_bytes > GH_PAGE_BYTES_MAX ||
		(page_bytes & (page_bytes - 1)) != 0)
		return gh_error_set(error, GH_INVALID, "a span has pages of %u bytes", page_bytes);
	if (npages == 0 || npages > GH_SPAN_PAGES_MAX)
		return gh_error_set(error, GH_INVALID, "a span has no room for %u pages, of %d at most", npages,
							GH_SPAN_PAGES_MAX);
	return GH_OK;
}

uint64_t
gh_request_pages(const GhPageRef *list, uint32_t count)
{
	uint64_t	pages = 0;

	for (uint32_t i = 0; i < count; i++)
		pages += list[i].run > 1 ? list[i].run : 1;
	return pages;
}

/* Are the spans of a request such as the pipeline's pages can be in? */
static GhStatus
check_spans(const GhPipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	const GhPipelineOptions *options = &pipeline->plan->options;

	if (!has_array(request->spans, request->nspans, GH_REQUEST_SPANS_MAX))
		return gh_error_set(error, GH_INVALID, "a request has no %u spans, of %d at most", request->nspans,
							GH_REQUEST_SPANS_MAX);
	for (uint32_t s = 0; s < request->nspans; s++)
	{
		const GhPageSpan *span = request->spans[s];

		if (span == NULL || span->engine != pipeline->engine || span->device != options->device)
			return gh_error_set(error, GH_INVALID, "span %u of a request is none of the pipeline's engine and "
								"device", s);
		if (span->page_bytes != options->source.page_bytes)
			return gh_error_set(error, GH_INVALID, "span %u of a request has pages of %u bytes, and the source "
								"of %u", s, span->page_bytes, options->source.page_bytes);
	}
	return GH_OK;
}

/* ----------------------------------------------------------------- requests */

/* Is the page at an address, or in a place, or both? */
static GhStatus
check_where(const GhPipelineRequest *request, uint32_t p, GhError *error)
{
	const GhPageRef *page = &request->pages[p];

	if ((page->page == NULL && page->span == 0) || (uintptr_t) page->page % 16 != 0)
		return gh_error_set(error, GH_INVALID, "page %u of a request is not at an address that is aligned to 16 bytes",
							p);
	if (page->span > request->nspans)
		return gh_error_set(error, GH_INVALID, "page %u of a request is in span %u, of %u", p, page->span - 1,
							request->nspans);
	if (page->span > 0 && page->place >= request->spans[page->span - 1]->npages)
		return gh_error_set(error, GH_INVALID, "page %u of a request is in place %u of a span of %u pages", p,
							page->place, request->spans[page->span - 1]->npages);
	return GH_OK;
}

/* A run: the pages' lines, of which none has more than `most`, add up to what it says. */
static GhStatus
check_run(const GhPipelineRequest *request, uint32_t p, const uint16_t *lines, uint32_t most, GhError *error)
{
	const GhPageRef *page = &request->pages[p];
	uint64_t	sum = 0;
	uint32_t	longest = 0;

	if (page->page != NULL || page->hinted != 0 || page->bitmap != GH_PAGE_ALL_LINES ||
		page->run > request->spans[page->span - 1]->npages - page->place)
		return gh_error_set(error, GH_INVALID, "page %u of a request stands for %u pages", p, page->run);
	for (uint32_t k = 0; k < page->run; k++)
	{
		sum += lines[k];
		longest = lines[k] > longest ? lines[k] : longest;
	}
	if (sum != page->lines || longest > most)
		return gh_error_set(error, GH_INVALID, "page %u of a request stands for %u pages that have other lines", p,
							page->run);
	return GH_OK;
}

/* at: of the page, or of the run's first one, among all. */
static GhStatus
check_page(const GhPipeline *pipeline, const GhPipelineRequest *request, uint32_t p, uint64_t at, GhError *error)
{
	const GhPipelineSource *source = &pipeline->plan->options.source;
	const GhPageRef *page = &request->pages[p];
	uint32_t	most = (source->page_bytes - GH_PAGE_LINES_AT) / GH_LINE_BYTES;
	GhStatus	status = check_where(request, p, error);

	if (status != GH_OK)
		return status;
	if (page->run > 1)
		return pipeline->engine->takes_runs && request->page_lines != NULL ?
			check_run(request, p, request->page_lines + at, most, error) :
			gh_error_set(error, GH_INVALID, "page %u of a request stands for %u pages", p, page->run);
	if (page->lines > most)
		return gh_error_set(error, GH_INVALID, "page %u of a request has %u lines, of %u at most", p, page->lines, most);
	if (source->kind == GH_SOURCE_LEAVES && (page->hinted != 0 || page->span != 0 || page->bitmap != GH_PAGE_ALL_LINES))
		return gh_error_set(error, GH_INVALID, "page %u of a request is asked for as no leaf page is", p);
	if (page->hinted > source->page_bytes || (page->hinted > 0 && source->seen_before == 0))
		return gh_error_set(error, GH_INVALID, "page %u of a request has tuples whose headers do not tell what is "
							"visible", p);
	if (page->bitmap != GH_PAGE_ALL_LINES && page->lines > 0 &&
		((uint64_t) page->bitmap + (page->lines + 63) / 64 > request->nbitmaps || request->bitmaps == NULL))
		return gh_error_set(error, GH_INVALID, "page %u of a request has a bitmap that is not in the request", p);
	return GH_OK;
}

static GhStatus
check_pages(const GhPipeline *pipeline, const GhPipelineRequest *request, uint64_t *rows, GhError *error)
{
	uint64_t	at = 0;
	GhStatus	status;

	if (!gh_source_has_pages(&pipeline->plan->options.source))
		return gh_error_set(error, GH_INVALID, "a request has pages, and the pipeline's source none");
	if (!has_array(request->pages, request->npages, GH_REQUEST_PAGES_MAX))
		return gh_error_set(error, GH_INVALID, "a request has no %u pages, of %d at most", request->npages,
							GH_REQUEST_PAGES_MAX);
	if (gh_request_pages(request->pages, request->npages) > GH_REQUEST_PAGES_MAX)
		return gh_error_set(error, GH_INVALID, "a request has more than %d pages", GH_REQUEST_PAGES_MAX);
	status = check_spans(pipeline, request, error);
	if (status != GH_OK)
		return status;
	for (uint32_t p = 0; p < request->npages; p++)
	{
		const GhPageRef *page = &request->pages[p];

		status = check_page(pipeline, request, p, at, error);
		if (status != GH_OK)
			return status;
		/* a page by itself may be said to have lines there, too */
		if (request->page_lines != NULL && page->run <= 1 && request->page_lines[at] != page->lines)
			return gh_error_set(error, GH_INVALID, "page %u of a request has %u lines, and not %u", p, page->lines,
								request->page_lines[at]);
		*rows += page->lines;
		at += page->run > 1 ? page->run : 1;
	}
	return GH_OK;
}

/* One of the columns that are given packed. */
static GhStatus
check_packed(const GhProgram *program, const GhPipelineRequest *request, uint32_t i, GhError *error)
{
	uint32_t	v = request->given[i];

	/* later a step may have set it to something else */
	if (request->step != 0)
		return gh_error_set(error, GH_INVALID, "packed columns enter before step %u", request->step);
	if (request->first > GH_PACKED_ROWS_MAX || request->count > GH_PACKED_ROWS_MAX)
		return gh_error_set(error, GH_INVALID, "a request is for more packed rows than there may be");
	if (v >= program->ncolumns || request->packed[i] == NULL ||
		!gh_packed_is_of(request->packed[i], &gh_program_columns(program)[v], request->first + request->count))
		return gh_error_set(error, GH_INVALID, "packed column %u of a request is not vector %u of the program", i, v);
	return GH_OK;
}

/* Are these arrays there?  Packed columns are none of every engine's. */
static GhStatus
check_given(const GhPipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	uint64_t	words = request->bitmaps == NULL ? 0 : (request->count + 63) / 64;

	if (request->packed != NULL && !pipeline->engine->takes_packed)
		return gh_error_set(error, GH_UNSUPPORTED, "the engine takes no packed columns");
	if (request->packed != NULL && words > request->nbitmaps)
		return gh_error_set(error, GH_INVALID, "a request of packed columns has no bits for all of its rows");
	if (!has_array(request->given, request->ngiven, GH_PROGRAM_VECTORS_MAX) ||
		(request->packed == NULL && !has_array(request->vectors, request->ngiven, GH_PROGRAM_VECTORS_MAX)))
		return gh_error_set(error, GH_INVALID, "a request has no %u vectors", request->ngiven);
	return GH_OK;
}

/* Is it a vector of the program that rows may bring, and are its values there? */
static GhStatus
check_vector(const GhPipelinePlan *plan, const GhPipelineRequest *request, uint32_t i, GhError *error)
{
	const GhProgram *program = plan->options.program;
	uint32_t	nvectors = gh_program_vectors(program);
	uint32_t	v = request->given[i];
	bool		constant = v >= program->ncolumns && v < program->ncolumns + program->nconstants;

	if (request->packed != NULL)
		return check_packed(program, request, i, error);
	if (v >= nvectors || constant || request->vectors[i].low == NULL || request->vectors[i].null == NULL ||
		(plan->wide[v] != 0 && request->vectors[i].high == NULL))
		return gh_error_set(error, GH_INVALID, "vector %u of a request is vector %u of a program of %u", i, v,
							nvectors);
	return GH_OK;
}

/* Are all vectors given that the steps from there on read? */
static GhStatus
check_columns(const GhPipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	const GhPipelinePlan *plan = pipeline->plan;
	uint64_t	given[GH_PROGRAM_VECTORS_MAX / 64] = {0};
	GhStatus	status;

	if (request->step > plan->options.nsteps)
		return gh_error_set(error, GH_INVALID, "rows enter a pipeline of %u steps before step %u",
							plan->options.nsteps, request->step);
	status = check_given(pipeline, request, error);
	for (uint32_t i = 0; i < request->ngiven && status == GH_OK; i++)
	{
		status = check_vector(plan, request, i, error);
		if (status == GH_OK)
			given[request->given[i] / 64] |= UINT64_C(1) << request->given[i] % 64;
	}
	if (status != GH_OK)
		return status;
	for (uint32_t w = 0; w < GH_PROGRAM_VECTORS_MAX / 64; w++)
		if ((plan->needed[request->step][w] & ~given[w]) != 0)
			return gh_error_set(error, GH_INVALID, "rows that enter before step %u lack a vector that is read",
								request->step);
	return GH_OK;
}

/* Rows first up to first + count of so many. */
static GhStatus
check_range(const GhPipelineRequest *request, uint64_t rows, GhError *error)
{
	if (request->first > rows || request->count > rows - request->first)
		return gh_error_set(error, GH_INVALID, "a request is for %llu rows from row %llu on, of %llu",
							(unsigned long long) request->count, (unsigned long long) request->first,
							(unsigned long long) rows);
	return GH_OK;
}

static GhStatus
check_unmatched(const GhPipelinePlan *plan, const GhPipelineRequest *request, GhError *error)
{
	const GhPipelineOptions *options = &plan->options;
	uint32_t	probe = request->step < options->nsteps ? options->steps[request->step].probe : 0;

	if (probe == 0 || options->probes[probe - 1].marks == NULL)
		return gh_error_set(error, GH_INVALID, "a request is for rows without a match, of step %u, which marks none",
							request->step);
	return check_range(request, plan->probed[probe - 1].rows, error);
}

/* *rows: lines of all pages, or rows. */
static GhStatus
check_request(const GhPipeline *pipeline, const GhPipelineRequest *request, uint64_t groups, uint64_t *rows,
			  GhError *error)
{
	const GhPipelinePlan *plan = pipeline->plan;
	uint32_t	source = plan->options.source.kind;
	GhStatus	status;

	*rows = request->kind == GH_INPUT_PAGES ? 0 : request->count;
	switch (request->kind)
	{
		case GH_INPUT_PAGES:
			status = check_pages(pipeline, request, rows, error);
			break;
		case GH_INPUT_COLUMNS:
			status = check_columns(pipeline, request, error);
			break;
		case GH_INPUT_SOURCE:
			if (source == GH_SOURCE_GROUPS)
				status = check_range(request, groups, error);
			else
				status = gh_error_set(error, GH_INVALID, "a request is for rows of a source of kind %u", source);
			break;
		case GH_INPUT_UNMATCHED:
			status = check_unmatched(plan, request, error);
			break;
		default:
			status = gh_error_set(error, GH_INVALID, "a request brings rows of kind %u", request->kind);
	}
	if (status != GH_OK)
		return status;
	if (*rows > GH_REQUEST_LINES_MAX)
		return gh_error_set(error, GH_INVALID, "a request has %llu rows, of %d at most", (unsigned long long) *rows,
							GH_REQUEST_LINES_MAX);
	if (*rows > request->back_room || (*rows > 0 && request->back == NULL))
		return gh_error_set(error, GH_INVALID, "a request has no room for %llu rows that may be handed back",
							(unsigned long long) *rows);
	return GH_OK;
}

void
gh_pipeline_request_clear(GhPipelineRequest *request)
{
	request->nback = request->seen = request->counted = request->no_memory = 0;
	memset(request->passed, 0, sizeof(request->passed));
}

GhStatus
gh_pipeline_request_take(GhPipeline *pipeline, GhPipelineRequest *request, GhPipelineIntake *intake, uint64_t *rows)
{
	const GhPipelinePlan *plan = pipeline->plan;
	uint64_t	counted;
	GhStatus	status;

	gh_pipeline_request_clear(request);
	/* not all of it: a page may be a request */
	request->error.status = GH_OK;
	request->error.message[0] = '\0';
	memset(request->engine_state, 0, sizeof(request->engine_state));
	request->pipeline = NULL;
	status = check_request(pipeline, request, intake->groups, rows, &request->error);
	if (status == GH_OK && intake->made)
		status = gh_error_set(&request->error, GH_INVALID, "a pipeline whose table was made takes no more rows");
	/* nothing is kept of rows whose places are listed */
	counted = plan->options.sink.kind == GH_SINK_PLACES ? 0 : *rows;
	if (status == GH_OK && counted > GH_PIPELINE_ROWS_MAX - intake->submitted)
		status = gh_error_set(&request->error, GH_TOO_MANY, "a pipeline of more than 2^40 rows");
	if (status != GH_OK)
		return request->status = status;
	intake->submitted += counted;
	request->pipeline = pipeline;
	return request->status = GH_BUSY;
}
