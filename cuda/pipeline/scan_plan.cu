/*
 * scan_plan.cu
 *		Puts the plan of a scan, and what follows from it, into device memory.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/pipeline/scan_device.cuh"

/* Where the parts of the plan are, on the host and on the device alike. */
struct plan_parts
{
	char	   *program;
	GhPageShape *shape;
	GhPageAttribute *attributes;
	GhScanKey  *keys;
	GhAggregate *aggregates;
	scan_input *inputs;
	uint8_t    *input_of;
	join_view  *joins;
	GhScanPart *parts;			/* of the table, and then of all joins */
	join_fill  *fills;			/* of all joins */
	kept_value *kept;
};

/* The values that a row keeps: of a table what it is told, else all that it is returned with. */
static uint32_t
kept_count(const GhScanOptions *options)
{
	return options->each_row != 0 ? options->nkeys : options->nkept;
}

static uint16_t
kept_vector(const GhScanOptions *options, uint32_t k)
{
	return options->each_row != 0 ? options->keys[k].vector : options->kept[k];
}

bool
scan_keeps_rows(const cuda_scan *scan)
{
	return scan->plan.options.nparts > 0 || scan->plan.options.each_row != 0;
}

bool
scan_keeps_texts(const cuda_scan *scan)
{
	const GhScanOptions *options = &scan->plan.options;

	for (uint32_t k = 0; k < kept_count(options); k++)
		if (scan->plan.classes[kept_vector(options, k)] == GH_CLASS_TEXT)
			return true;
	return false;
}

static plan_parts
plan_carve(const GhScanOptions *options, carver *carver)
{
	plan_parts	parts;
	uint64_t	nparts = options->nparts;
	uint64_t	nfills = 0;

	for (uint32_t j = 0; j < options->njoins; j++)
	{
		nparts += options->joins[j].nparts;
		nfills += options->joins[j].nfills;
	}

	parts.program = carver->array<char>(options->program_bytes);
	parts.shape = carver->array<GhPageShape>(1);
	parts.attributes = carver->array<GhPageAttribute>(options->natts);
	parts.keys = carver->array<GhScanKey>(options->nkeys);
	parts.aggregates = carver->array<GhAggregate>(options->naggregates);
	parts.inputs = carver->array<scan_input>(options->naggregates);
	parts.input_of = carver->array<uint8_t>(options->naggregates);
	parts.joins = carver->array<join_view>(options->njoins);
	parts.parts = carver->array<GhScanPart>(nparts);
	parts.fills = carver->array<join_fill>(nfills);
	parts.kept = carver->array<kept_value>(kept_count(options));
	return parts;
}

/* It lies behind the NULL bits of the values. */
uint32_t
scan_keyless_bit(const GhScanPlan *plan)
{
	return plan->options.nkept;
}

/* Words of NULL bits are the first ones of a row. */
static uint32_t
null_words(const GhScanOptions *options)
{
	return (kept_count(options) + (options->marks_matches != 0 ? 1 : 0) + 63) / 64;
}

kept_value
scan_kept_place(const GhScanPlan *plan, uint32_t k)
{
	kept_value	kept = {};
	uint32_t	word = null_words(&plan->options);

	for (uint32_t i = 0; i < k; i++)
		word += gh_scan_has_high(plan->classes[kept_vector(&plan->options, i)]) ? 2 : 1;
	kept.vector = kept_vector(&plan->options, k);
	kept.word = (uint16_t) word;
	kept.null_word = (uint16_t) (k / 64);
	kept.null_bit = (uint8_t) (k % 64);
	kept.value_class = plan->classes[kept.vector];
	return kept;
}

/* The words of a row that is kept. */
static uint32_t
row_words(const GhScanPlan *plan)
{
	uint32_t	count = kept_count(&plan->options);
	kept_value	last;

	if (count == 0)
		return null_words(&plan->options);
	last = scan_kept_place(plan, count - 1);
	return last.word + (gh_scan_has_high(last.value_class) ? 2u : 1u);
}

/* The joins, with the tables of their scans as they are. */
static void
fill_joins(const GhScanOptions *options, const plan_parts *parts, const plan_parts *device)
{
	uint32_t	part = options->nparts;
	uint32_t	fill = 0;

	if (options->nparts > 0)
		memcpy(parts->parts, options->parts, options->nparts * sizeof(GhScanPart));
	for (uint32_t j = 0; j < options->njoins; j++)
	{
		const GhScanJoin *join = &options->joins[j];
		join_view  *view = &parts->joins[j];

		view->kind = join->kind;
		view->multiplies = gh_scan_join_multiplies(options, j);
		view->nparts = join->nparts;
		view->nfills = join->nfills;
		view->parts = device->parts + part;
		view->fills = device->fills + fill;
		view->table = rows_table(reinterpret_cast<const cuda_scan *>(join->table));
		memcpy(parts->parts + part, join->parts, join->nparts * sizeof(GhScanPart));
		part += join->nparts;
		for (uint32_t f = 0; f < join->nfills; f++, fill++)
		{
			parts->fills[fill].column = join->fills[f].column;
			parts->fills[fill].kept = scan_kept_place(join->table->plan, join->fills[f].kept);
		}
	}
}

/* Each argument is one input, of whichever aggregates have it. */
static void
find_inputs(cuda_scan *scan, const plan_parts *parts)
{
	const GhScanOptions *options = &scan->plan.options;
	uint32_t	n = 0;

	for (uint32_t a = 0; a < options->naggregates; a++)
	{
		const GhAggregate *aggregate = &options->aggregates[a];
		uint32_t	i = 0;

		/* counts need no values */
		if (aggregate->kind <= GH_AGGREGATE_COUNT)
			continue;
		while (i < n && parts->inputs[i].vector != aggregate->argument)
			i++;
		if (i == n)
			parts->inputs[n++] = {aggregate->argument, 0};
		if (aggregate->value_class == GH_CLASS_INT128 && parts->inputs[i].high == 0)
			parts->inputs[i].high = (uint16_t) ++scan->nhighs;
		parts->input_of[a] = (uint8_t) i;
	}
	scan->view.ninputs = n;
}

static void
plan_fill(cuda_scan *scan, const plan_parts *parts, const plan_parts *device)
{
	const GhScanOptions *options = &scan->plan.options;

	memcpy(parts->program, options->program, options->program_bytes);
	*parts->shape = scan->plan.shape;
	parts->shape->attributes = device->attributes;
	if (options->natts > 0)
		memcpy(parts->attributes, options->attributes, options->natts * sizeof(GhPageAttribute));
	if (options->nkeys > 0)
		memcpy(parts->keys, options->keys, options->nkeys * sizeof(GhScanKey));
	if (options->naggregates > 0)
		memcpy(parts->aggregates, options->aggregates, options->naggregates * sizeof(GhAggregate));
	find_inputs(scan, parts);
	for (uint32_t j = 0; j < options->njoins; j++)
		scan->view.multiplies |= gh_scan_join_multiplies(options, j);
	fill_joins(options, parts, device);
	for (uint32_t k = 0; k < kept_count(options); k++)
		parts->kept[k] = scan_kept_place(&scan->plan, k);
	if (scan_keeps_rows(scan))
		scan->view.ninputs = row_words(&scan->plan);
}

GhStatus
scan_plan_upload(cuda_scan *scan, GhError *error)
{
	const GhScanOptions *options = &scan->plan.options;
	plan_view  *view = &scan->view;
	carver		host = {};
	carver		device = {};
	plan_parts	parts;
	plan_parts	places;
	size_t		bytes;
	cudaError_t status;

	(void) plan_carve(options, &host);
	bytes = host.used;
	GH_TRY(scan_alloc(scan, bytes, false, &scan->plan_block, error));
	host = {};
	host.base = static_cast<char *>(calloc(1, bytes));
	if (host.base == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the plan of a scan");
	device.base = scan->plan_block.memory;
	parts = plan_carve(options, &host);
	places = plan_carve(options, &device);
	plan_fill(scan, &parts, &places);
	view->program = reinterpret_cast<const GhProgram *>(places.program);
	view->shape = places.shape;
	view->keys = places.keys;
	view->aggregates = places.aggregates;
	view->inputs = places.inputs;
	view->input_of = places.input_of;
	view->joins = places.joins;
	view->parts = places.parts;
	view->kept = places.kept;
	view->njoins = options->njoins;
	view->joins_at = options->joins_at;
	view->nparts = options->nparts;
	view->each_row = options->each_row;
	view->marks_matches = options->marks_matches;
	view->keyless_bit = scan_keyless_bit(&scan->plan);
	view->nkept = kept_count(options);
	view->nkeys = options->nkeys;
	view->naggregates = options->naggregates;
	view->page_bytes = options->page_bytes;
	view->seen_before = options->seen_before;
	view->seed = options->seed;
	status = cudaMemcpyAsync(scan->plan_block.memory, host.base, bytes, cudaMemcpyHostToDevice,
							 scan->reduce_stream);
	if (status == cudaSuccess)
		status = cudaStreamSynchronize(scan->reduce_stream);
	free(host.base);
	SCAN_TRY(scan, status, error);
	return GH_OK;
}
