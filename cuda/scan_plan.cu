/*
 * scan_plan.cu
 *		Puts the plan of a scan, and what follows from it, into device memory.
 */
#include <stdlib.h>
#include <string.h>

#include "scan_device.cuh"

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
};

static plan_parts
plan_carve(const GhScanOptions *options, carver *carver)
{
	plan_parts	parts;

	parts.program = carver->array<char>(options->program_bytes);
	parts.shape = carver->array<GhPageShape>(1);
	parts.attributes = carver->array<GhPageAttribute>(options->natts);
	parts.keys = carver->array<GhScanKey>(options->nkeys);
	parts.aggregates = carver->array<GhAggregate>(options->naggregates);
	parts.inputs = carver->array<scan_input>(options->naggregates);
	parts.input_of = carver->array<uint8_t>(options->naggregates);
	return parts;
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
	view->nkeys = options->nkeys;
	view->naggregates = options->naggregates;
	view->page_bytes = options->page_bytes;
	view->seed = options->seed;
	status = cudaMemcpyAsync(scan->plan_block.memory, host.base, bytes, cudaMemcpyHostToDevice,
							 scan->reduce_stream);
	if (status == cudaSuccess)
		status = cudaStreamSynchronize(scan->reduce_stream);
	free(host.base);
	SCAN_TRY(scan, status, error);
	return GH_OK;
}
