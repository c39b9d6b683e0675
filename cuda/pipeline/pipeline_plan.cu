/*
 * pipeline_plan.cu
 *		Puts the plan of a pipeline, and what follows from it, into device memory.
 *
 * A vector that is no constant has a place among the arrays of a batch: one for low words and NULLs, one more
 * for high words where some value of it has one.  Steps may set a vector more than once.  Where a row becomes
 * several, the steps behind are done with one after the other, and each has to find what was there before the
 * one in front of it: such vectors are saved in further places, by each probe that multiplies, and when a row
 * enters.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/pipeline/pipeline.cuh"

/* Where the parts of the plan are, on the host and on the device alike. */
struct pipe_parts
{
	char	   *program;
	GhPageShape *shape;
	GhPageAttribute *attributes;
	step_view  *steps;
	vector_place *places;
	vector_place *copied;
	saved_vector *copies;
	saved_vector *saved;		/* when a row enters, and then of all probes */
	group_fill *group_columns;
	GhRecordKey  *keys;
	GhAggregate *aggregates;
	scan_input *inputs;
	uint8_t    *input_of;
	GhKeyPart *parts;			/* of the table, and then of all probes */
	join_fill  *fills;			/* of all probes */
	kept_value *kept;
};

/* How many there are of what is not in the options. */
struct pipe_counts
{
	uint32_t	saved;
	uint32_t	parts;
	uint32_t	fills;
};

static uint32_t
vectors_of(const cuda_pipeline *pipeline)
{
	return gh_program_vectors(pipeline->plan.options.program);
}

static bool
is_constant(const cuda_pipeline *pipeline, uint32_t vector)
{
	const GhProgram *program = pipeline->plan.options.program;

	return vector >= program->ncolumns && vector < program->ncolumns + program->nconstants;
}

static bool
is_needed(const cuda_pipeline *pipeline, uint32_t step, uint32_t vector)
{
	return (pipeline->plan.needed[step][vector / 64] >> vector % 64 & 1) != 0;
}

/* Is the vector set by an instruction of a step from this one on? */
static bool
is_set_from(const cuda_pipeline *pipeline, uint32_t step, uint32_t vector)
{
	const GhProgram *program = pipeline->plan.options.program;

	for (uint32_t i = gh_step_begin(&pipeline->plan.options, step); i < program->ninstructions; i++)
	{
		const GhInstruction *in = &gh_program_instructions(program)[i];

		if (gh_program_result_class(in) != 0 && in->result == vector)
			return true;
	}
	return false;
}

/* Is the vector read in front of a step, by it or by what is behind, and set once more from there on? */
static bool
is_set_anew_by_any(const cuda_pipeline *pipeline, uint32_t vector)
{
	for (uint32_t s = 0; s <= pipeline->plan.options.nsteps; s++)
		if (is_needed(pipeline, s, vector) && is_set_from(pipeline, s, vector))
			return true;
	return false;
}

/* The same behind a probe; its conditions read with each match. */
static bool
is_set_anew_behind(const cuda_pipeline *pipeline, uint32_t step, uint32_t vector)
{
	return (is_needed(pipeline, step, vector) || is_needed(pipeline, step + 1, vector)) &&
		is_set_from(pipeline, step + 1, vector);
}

/* -------------------------------------------------------------------- places */

static vector_place
next_place(cuda_pipeline *pipeline, uint32_t vector)
{
	vector_place place = {(uint16_t) pipeline->nlows++, PLACE_NONE};

	if (pipeline->plan.wide[vector] != 0)
		place.high = (uint16_t) pipeline->nhighs++;
	return place;
}

/* The step that is this probe. */
static uint32_t
step_of(const GhPipelineOptions *options, uint32_t probe)
{
	uint32_t	step = 0;

	while (options->steps[step].probe != probe + 1)
		step++;
	return step;
}

/* Vectors that are saved when a row enters (probe -1), or by a probe, to `saved`; how many. */
static uint32_t
list_saved(cuda_pipeline *pipeline, int probe, saved_vector *saved)
{
	uint32_t	step = 0;
	uint32_t	n = 0;

	if (probe >= 0)
	{
		if (!gh_probe_multiplies(&pipeline->plan, (uint32_t) probe))
			return 0;
		step = step_of(&pipeline->plan.options, (uint32_t) probe);
	}
	for (uint32_t v = 0; v < vectors_of(pipeline); v++)
		if (!is_constant(pipeline, v) &&
			(probe < 0 ? is_set_anew_by_any(pipeline, v) : is_set_anew_behind(pipeline, step, v)))
			saved[n++] = {(uint16_t) v, next_place(pipeline, v)};
	return n;
}

static void
fill_places(cuda_pipeline *pipeline, vector_place *places, vector_place *copied)
{
	for (uint32_t v = 0; v < vectors_of(pipeline); v++)
	{
		places[v] = copied[v] = {PLACE_NONE, PLACE_NONE};
		if (is_constant(pipeline, v))
			continue;
		places[v] = next_place(pipeline, v);
		if (!is_needed(pipeline, pipeline->plan.options.nsteps, v))
			continue;
		copied[v].low = (uint16_t) pipeline->view.ncopied++;
		if (pipeline->plan.wide[v] != 0)
			copied[v].high = (uint16_t) pipeline->ncopied_highs++;
	}
}

/* What vectors hold in front of each step, where they are read. */
static void
fill_classes(cuda_pipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhProgram *program = options->program;
	uint8_t		all[GH_PROGRAM_VECTORS_MAX] = {0};
	GhError		ignored;

	/* which has accepted it before */
	(void) gh_program_check_classes(program, options->program_bytes, all, &ignored);
	for (uint32_t s = 0; s <= options->nsteps; s++)
	{
		memcpy(pipeline->class_at[s], all, sizeof(all));
		for (uint32_t i = gh_step_begin(options, s); s < options->nsteps && i < options->steps[s].end; i++)
		{
			const GhInstruction *in = &gh_program_instructions(program)[i];

			if (gh_program_result_class(in) != 0)
				all[in->result] = gh_program_result_class(in);
		}
	}
}

/* --------------------------------------------------------------------- parts */

static pipe_counts
counts_of(const GhPipelineOptions *options, uint32_t saved)
{
	pipe_counts counts = {saved, options->sink.kind == GH_SINK_TABLE ? options->sink.table.nparts : 0, 0};

	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		counts.parts += options->probes[p].nparts;
		counts.fills += options->probes[p].nfills;
	}
	return counts;
}

static pipe_parts
parts_carve(const GhPipelineOptions *options, const pipe_counts *counts, carver *carver)
{
	bool		groups = options->sink.kind == GH_SINK_GROUPS;
	uint32_t	naggregates = groups ? options->sink.groups.naggregates : 0;
	uint32_t	nsets = groups ? gh_sink_sets(&options->sink.groups) : 1;
	uint32_t	nkeys;
	pipe_parts	parts;

	(void) gh_pipeline_keys(options, &nkeys);
	parts.program = carver->array<char>(options->program_bytes);
	parts.shape = carver->array<GhPageShape>(1);
	parts.attributes = carver->array<GhPageAttribute>(gh_source_has_pages(&options->source) ? options->source.natts : 0);
	parts.steps = carver->array<step_view>(options->nsteps);
	parts.places = carver->array<vector_place>(GH_PROGRAM_VECTORS_MAX);
	parts.copied = carver->array<vector_place>(GH_PROGRAM_VECTORS_MAX);
	parts.copies = carver->array<saved_vector>(GH_PROGRAM_VECTORS_MAX);
	parts.saved = carver->array<saved_vector>(counts->saved);
	parts.group_columns = carver->array<group_fill>(options->program->ncolumns);
	parts.keys = carver->array<GhRecordKey>(nsets * nkeys);
	parts.aggregates = carver->array<GhAggregate>(nsets * naggregates);
	parts.inputs = carver->array<scan_input>(naggregates);
	parts.input_of = carver->array<uint8_t>(naggregates);
	parts.parts = carver->array<GhKeyPart>(counts->parts);
	parts.fills = carver->array<join_fill>(counts->fills);
	parts.kept = carver->array<kept_value>(options->sink.kind == GH_SINK_TABLE ? options->sink.table.nkept : 0);
	return parts;
}

/* Columns of a source that is groups. */
static void
fill_columns_of(cuda_pipeline *pipeline, const pipe_parts *parts)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	uint32_t	n = 0;

	for (uint32_t c = 0; options->source.kind == GH_SOURCE_GROUPS && c < options->program->ncolumns; c++)
	{
		const GhColumn *column = &gh_program_columns(options->program)[c];

		if (column->attribute > options->source.natts)
			continue;

		const GhGroupColumn *from = &options->source.columns[column->attribute - 1];
		const GhGroupsSink *sink = &options->source.groups->plan->options.sink.groups;
		const GhAggregate *aggregate = &sink->aggregates[from->number];
		bool		narrow = from->part == GH_GROUP_VALUE && gh_aggregate_is_sum(aggregate) &&
			aggregate->value_class == GH_CLASS_INT && column->load != GH_LOAD_NUMERIC;

		parts->group_columns[n++] = {(uint16_t) c, from->part, from->number, narrow};
	}
	pipeline->view.ncolumns = n;
}

/* Each argument is one input, of whichever aggregates have it, and the same in all sets. */
static void
fill_inputs(cuda_pipeline *pipeline, const pipe_parts *parts)
{
	const GhGroupsSink *sink = &pipeline->plan.options.sink.groups;
	uint32_t	n = 0;

	for (uint32_t a = 0; a < sink->naggregates; a++)
	{
		const GhAggregate *aggregate = &sink->aggregates[a];
		uint32_t	i = 0;

		/* counts need no values */
		if (aggregate->kind <= GH_AGGREGATE_COUNT)
			continue;
		while (i < n && parts->inputs[i].vector != aggregate->argument)
			i++;
		if (i == n)
			parts->inputs[n++] = {aggregate->argument, 0};
		if (aggregate->value_class == GH_CLASS_INT128 && parts->inputs[i].high == 0)
			parts->inputs[i].high = (uint16_t) ++pipeline->ninput_highs;
		parts->input_of[a] = (uint8_t) i;
	}
	pipeline->view.plan.ninputs = n;
}

static void
fill_sink(cuda_pipeline *pipeline, const pipe_parts *parts)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhTableSink *table = &options->sink.table;
	pipe_view  *view = &pipeline->view;
	uint32_t	nsets = options->sink.kind == GH_SINK_GROUPS ? gh_sink_sets(&options->sink.groups) : 1;
	uint32_t	nkeys;
	const GhRecordKey *keys = gh_pipeline_keys(options, &nkeys);

	if (nkeys > 0)
		memcpy(parts->keys, keys, nsets * nkeys * sizeof(GhRecordKey));
	for (uint32_t k = 0; k < nkeys; k++)
		view->has_texts |= keys[k].value_class == GH_CLASS_TEXT;
	view->plan.nkeys = nkeys;
	view->plan.nsets = nsets;
	view->record_bytes = pipeline->plan.group_bytes;
	if (options->sink.kind == GH_SINK_GROUPS)
	{
		view->plan.naggregates = options->sink.groups.naggregates;
		view->plan.seed = options->sink.groups.seed;
		if (view->plan.naggregates > 0)
			memcpy(parts->aggregates, options->sink.groups.aggregates,
				   nsets * view->plan.naggregates * sizeof(GhAggregate));
		fill_inputs(pipeline, parts);
	}
	if (options->sink.kind != GH_SINK_TABLE)
		return;
	memcpy(parts->parts, table->parts, table->nparts * sizeof(GhKeyPart));
	for (uint32_t k = 0; k < table->nkept; k++)
	{
		parts->kept[k] = pipe_kept_place(&pipeline->rows->shape, k);
		parts->kept[k].vector = table->kept[k].vector;
		view->has_texts |= table->kept[k].value_class == GH_CLASS_TEXT;
	}
	view->nparts = table->nparts;
	view->nkept = table->nkept;
	view->numbered = table->numbered;
	view->row_words = pipeline->rows->row_words;
	view->keyless_bit = pipeline->rows->keyless_bit;
	view->back_bit = table->back_vector != 0 ? pipeline->rows->back_bit : UINT32_MAX;
	view->back_vector = table->back_vector != 0 ? table->back_vector - 1 : 0;
}

/* What of the probes does not change; the tables are put in when they are sent. */
static void
fill_probes(cuda_pipeline *pipeline, const pipe_parts *parts, const pipe_parts *device, const uint32_t *nsaved)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	uint32_t	saved = nsaved[0];
	uint32_t	part = pipeline->view.nparts;
	uint32_t	fill = 0;

	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		const GhProbe *probe = &options->probes[p];
		probe_view *view = &pipeline->probes[p];

		view->kind = probe->kind;
		view->multiplies = gh_probe_multiplies(&pipeline->plan, p);
		view->counts = pipeline->plan.probed[p].several;
		view->nparts = probe->nparts;
		view->nfills = probe->nfills;
		view->nsaved = nsaved[p + 1];
		view->parts = device->parts + part;
		view->fills = device->fills + fill;
		view->saved = device->saved + saved;
		memcpy(parts->parts + part, probe->parts, probe->nparts * sizeof(GhKeyPart));
		for (uint32_t f = 0; f < probe->nfills; f++)
			parts->fills[fill + f] = {probe->fills[f].column, pipe_kept_place(&pipeline->plan.probed[p],
																			  probe->fills[f].kept)};
		part += probe->nparts;
		fill += probe->nfills;
		saved += nsaved[p + 1];
		pipeline->view.marks |= probe->marks != nullptr;
	}
	/* of changed keys: what they look up is put in with the tables */
	for (uint32_t p = options->nprobes; p < pipeline->nviews; p++)
		memcpy(&pipeline->probes[p], &pipeline->probes[p - options->nprobes], sizeof(probe_view));
}

static void
fill_parts(cuda_pipeline *pipeline, const pipe_parts *parts, const pipe_parts *device)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	memcpy(parts->program, options->program, options->program_bytes);
	*parts->shape = pipeline->plan.shape;
	parts->shape->attributes = device->attributes;
	if (gh_source_has_pages(&options->source) && options->source.natts > 0)
		memcpy(parts->attributes, options->source.attributes, options->source.natts * sizeof(GhPageAttribute));
	for (uint32_t s = 0; s < options->nsteps; s++)
		parts->steps[s] = {gh_step_begin(options, s), options->steps[s].end, options->steps[s].probe};
	fill_columns_of(pipeline, parts);
	fill_sink(pipeline, parts);
}

static void
fill_view(cuda_pipeline *pipeline, const pipe_parts *device, uint32_t nsaved)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	pipe_view  *view = &pipeline->view;

	view->program = reinterpret_cast<const GhProgram *>(device->program);
	view->shape = device->shape;
	view->steps = device->steps;
	view->probes = reinterpret_cast<const probe_view *>(pipeline->probes_block.memory);
	view->saved = device->saved;
	view->nsaved = nsaved;
	view->group_columns = device->group_columns;
	view->copied = device->copied;
	view->copies = device->copies;
	view->nsteps = options->nsteps;
	view->nprobes = options->nprobes;
	view->sink = options->sink.kind;
	view->seen_before = options->source.seen_before;
	view->page_bytes = gh_source_has_pages(&options->source) ? options->source.page_bytes : 0;
	view->parts = device->parts;
	view->kept = device->kept;
	view->plan.program = view->program;
	view->plan.keys = device->keys;
	view->plan.aggregates = device->aggregates;
	view->plan.inputs = device->inputs;
	view->plan.input_of = device->input_of;
	for (pipe_lane &lane : pipeline->lanes)
		lane.batch.values.places = device->places;
}

GhStatus
pipe_plan_upload(cuda_pipeline *pipeline, GhError *error)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	saved_vector saved[(GH_PROBES_MAX + 1) * GH_PROGRAM_VECTORS_MAX];
	vector_place places[GH_PROGRAM_VECTORS_MAX] = {};
	vector_place copied[GH_PROGRAM_VECTORS_MAX] = {};
	uint32_t	nsaved[GH_PROBES_MAX + 1] = {0};
	uint32_t	all_saved = 0;
	pipe_counts counts;
	pipe_parts	parts;
	pipe_parts	device;
	carver		sizes = {};
	carver		arrays = {};
	GhStatus	status;

	fill_classes(pipeline);
	fill_places(pipeline, places, copied);
	memcpy(pipeline->places, places, sizeof(places));
	pipeline->nviews = options->nprobes;
	for (uint32_t p = 0; p < options->nprobes; p++)
	{
		pipeline->view.multiplies |= gh_probe_multiplies(&pipeline->plan, p);
		if (options->probes[p].changed != nullptr)
			pipeline->nviews = 2 * options->nprobes;
	}
	for (uint32_t p = 0; pipeline->view.multiplies != 0 && p <= options->nprobes; p++)
	{
		nsaved[p] = list_saved(pipeline, (int) p - 1, saved + all_saved);
		all_saved += nsaved[p];
	}
	counts = counts_of(options, all_saved);
	(void) parts_carve(options, &counts, &sizes);
	GH_TRY(pipe_alloc_small(&pipeline->memory, sizes.used, false, &pipeline->plan_block, error));
	if (options->nprobes > 0)
		GH_TRY(pipe_alloc_small(&pipeline->memory, pipeline->nviews * sizeof(probe_view), false, &pipeline->probes_block,
						  error));
	arrays.base = pipeline->plan_block.memory;
	device = parts_carve(options, &counts, &arrays);
	arrays = {};
	arrays.base = static_cast<char *>(calloc(1, sizes.used));
	pipeline->probes = static_cast<probe_view *>(calloc(pipeline->nviews + 1, sizeof(probe_view)));
	if (arrays.base == nullptr || pipeline->probes == nullptr)
	{
		free(arrays.base);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the plan of a pipeline");
	}
	parts = parts_carve(options, &counts, &arrays);
	memcpy(parts.places, places, sizeof(places));
	memcpy(parts.copied, copied, sizeof(copied));
	for (uint32_t v = 0, n = 0; v < GH_PROGRAM_VECTORS_MAX; v++)
		if (v < vectors_of(pipeline) && copied[v].low != PLACE_NONE)
			parts.copies[n++] = {(uint16_t) v, copied[v]};
	if (all_saved > 0)
		memcpy(parts.saved, saved, all_saved * sizeof(saved_vector));
	fill_parts(pipeline, &parts, &device);
	fill_probes(pipeline, &parts, &device, nsaved);
	fill_view(pipeline, &device, nsaved[0]);
	/* of ordinary memory: it is over when this returns */
	status = pipe_copy(&pipeline->memory, pipeline->plan_block.memory, arrays.base, sizes.used, error);
	if (status == GH_OK)
		status = pipe_wait(&pipeline->memory, error);
	free(arrays.base);
	return status;
}

/* -------------------------------------------------------------------- probes */

/* A table that no pipeline made may have changed since.  NULL: no key is in it. */
static void
view_table(const GhTable *probed, probe_view *view)
{
	const cuda_table *table = reinterpret_cast<const cuda_table *>(probed);

	view->has_index = table != nullptr && (table->rows == nullptr || table->rows->has_index);
	if (table == nullptr)
		return;
	view->by_number = table->by_number;
	view->has_values = table->layout == LAYOUT_K8V8;
	view->index = table_make_view(table);
	if (table->rows != nullptr)
		view->rows = pipe_rows_view(table->rows);
}

/* Keys whose rows are in the other table, whose view is behind those of all probes. */
static void
view_changed(const GhTable *keys, probe_view *view)
{
	probe_view	of_keys = {};

	if (keys == nullptr)
		return;
	view_table(keys, &of_keys);
	view->has_changed = of_keys.has_index;
	view->changed_values = of_keys.has_values;
	view->changed = of_keys.index;
}

/* The view of a number, as it is now. */
static probe_view
view_now(const cuda_pipeline *pipeline, uint32_t number)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhProbe *probe = &options->probes[number % options->nprobes];
	probe_view	now;

	memcpy(&now, &pipeline->probes[number], sizeof(now));
	view_table(number < options->nprobes ? probe->table : probe->instead, &now);
	if (number < options->nprobes)
		view_changed(probe->changed, &now);
	now.marks = probe->marks != nullptr ? reinterpret_cast<uint32_t *>(probe->marks->block.memory) : nullptr;
	return now;
}

/* Is a table such that nobody knows what is in it? */
static bool
has_failed(cuda_pipeline *pipeline, const GhTable *probed, GhError *error)
{
	const cuda_table *table = reinterpret_cast<const cuda_table *>(probed);

	if (table == nullptr || !table->failed)
		return false;
	pipeline->memory.failed = true;
	*error = pipeline->memory.error = table->error;
	return true;
}

GhStatus
pipe_probes_send(cuda_pipeline *pipeline, GhError *error)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	bool		changed = false;

	for (uint32_t p = 0; p < options->nprobes; p++)
		if (has_failed(pipeline, options->probes[p].table, error) ||
			has_failed(pipeline, options->probes[p].changed, error) ||
			has_failed(pipeline, options->probes[p].instead, error))
			return GH_DEVICE_ERROR;
	for (uint32_t p = 0; p < pipeline->nviews; p++)
	{
		probe_view	now = view_now(pipeline, p);

		changed |= memcmp(&now, &pipeline->probes[p], sizeof(now)) != 0;
		memcpy(&pipeline->probes[p], &now, sizeof(now));
	}
	if (!changed)
		return GH_OK;
	/* other batches may read them */
	for (uint32_t i = 0; i < pipeline->flying; i++)
		PIPE_TRY(&pipeline->memory, cudaStreamSynchronize(pipeline->flight[i]->stream), error);
	GH_TRY(pipe_copy(&pipeline->memory, pipeline->probes_block.memory, pipeline->probes,
					 pipeline->nviews * sizeof(probe_view), error));
	return pipe_wait(&pipeline->memory, error);
}
