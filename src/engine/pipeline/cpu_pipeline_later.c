/*
 * cpu_pipeline_later.c
 *		Numeric columns of pages that a pipeline on the CPU decodes when they are read.
 *
 * To decode a numeric takes longer than to find it, and most rows are often dropped by conditions on other columns, or by
 * a join.  So pages are loaded by a shape in which such a column is a text, whose place is in its vector; before the first
 * instruction or probe that reads it, the rows that are still live get its value there.  A value that cannot be read
 * hands its row back at that step, and not at all where the row was dropped before.
 *
 * Where rows become several, level 0 is gone through more than once, by parts of its rows; then all columns are
 * decoded when pages are loaded.
 */
#include "engine/page/numeric.h"
#include "engine/pipeline/cpu_pipeline.h"

static bool
reads(const GhInstruction *in, uint32_t vector)
{
	for (uint32_t a = 0; a < gh_program_args(in); a++)
		if (in->args[a] == vector)
			return true;
	return false;
}

/* Is the vector set by an instruction, or by a probe? */
static bool
is_set(const GhPipelineOptions *options, uint32_t vector)
{
	for (uint32_t i = 0; i < options->program->ninstructions; i++)
	{
		const GhInstruction *in = &gh_program_instructions(options->program)[i];

		if (gh_program_result_class(in) != 0 && in->result == vector)
			return true;
	}
	for (uint32_t p = 0; p < options->nprobes; p++)
		for (uint32_t f = 0; f < options->probes[p].nfills; f++)
			if (options->probes[p].fills[f].column == vector)
				return true;
	return false;
}

static bool
is_key(const GhProbe *probe, uint32_t vector)
{
	for (uint32_t k = 0; k < probe->nparts; k++)
		if (probe->parts[k].vector == vector)
			return true;
	return false;
}

/* Where a column is read first. */
static GhCpuLater
find_reader(const GhPipelinePlan *plan, uint32_t vector, uint32_t scale)
{
	const GhPipelineOptions *options = &plan->options;
	bool		by_sink = (plan->needed[options->nsteps][vector / 64] >> vector % 64 & 1) != 0;

	for (uint32_t s = 0; s < options->nsteps; s++)
	{
		uint32_t	probe = options->steps[s].probe;

		for (uint32_t i = gh_step_begin(options, s); i < options->steps[s].end; i++)
			if (reads(&gh_program_instructions(options->program)[i], vector))
				return (GhCpuLater) {vector, scale, s, probe == 0 ? i : 0};
		if (probe != 0 && is_key(&options->probes[probe - 1], vector))
			return (GhCpuLater) {vector, scale, s, 0};
	}
	return (GhCpuLater) {vector, scale, options->nsteps + !by_sink, 0};
}

static void
insert_later(GhCpuPipeline *pipeline, GhCpuLater later)
{
	uint32_t	at = pipeline->nlater++;

	for (; at > 0; at--)
	{
		const GhCpuLater *before = &pipeline->later[at - 1];

		if (before->step < later.step || (before->step == later.step && before->instruction <= later.instruction))
			break;
		pipeline->later[at] = *before;
	}
	pipeline->later[at] = later;
}

void
gh_cpu_later_init(GhCpuPipeline *pipeline)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	pipeline->shape = pipeline->plan.shape;
	pipeline->nlater = 0;
	if (options->source.kind != GH_SOURCE_PAGES || pipeline->multiplies)
		return;
	for (uint32_t c = 0; c < pipeline->shape.ncolumns; c++)
	{
		GhPageColumn *column = &pipeline->shape.columns[c];

		if (column->column.load != GH_LOAD_NUMERIC || is_set(options, column->vector))
			continue;
		insert_later(pipeline, find_reader(&pipeline->plan, column->vector, column->column.scale));
		column->column.load = GH_LOAD_TEXT;
	}
}

/* False: a row is handed back. */
static bool
decode(GhVectorBatch *batch, const GhCpuLater *later)
{
	const GhVector *vector = &batch->vectors[later->vector];
	bool		all = true;

	for (uint32_t i = 0; i < batch->nrows; i++)
	{
		if (batch->state[i] != GH_ROW_LIVE || vector->null[i] != 0 ||
			gh_numeric_read((const uint8_t *) (uintptr_t) vector->low[i], (uint32_t) vector->high[i], later->scale,
							&vector->low[i], &vector->high[i]))
			continue;
		batch->state[i] = GH_ROW_BACK;
		all = false;
	}
	return all;
}

bool
gh_cpu_decode_for(GhCpuPipeline *pipeline, uint32_t level, uint32_t step)
{
	bool		all = true;

	for (; pipeline->decoded < pipeline->nlater && pipeline->later[pipeline->decoded].step <= step; pipeline->decoded++)
		all &= decode(&pipeline->levels[level]->batch, &pipeline->later[pipeline->decoded]);
	return all;
}

void
gh_cpu_run_instructions(GhCpuPipeline *pipeline, uint32_t level, uint32_t step)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	GhVectorBatch *batch = &pipeline->levels[level]->batch;
	uint32_t	first = gh_step_begin(options, step);
	uint32_t	end = options->steps[step].end;

	for (; pipeline->decoded < pipeline->nlater && pipeline->later[pipeline->decoded].step == step; pipeline->decoded++)
	{
		const GhCpuLater *later = &pipeline->later[pipeline->decoded];

		if (later->instruction > first && gh_program_run_part(options->program, batch, first, later->instruction) == 0)
			return;
		first = later->instruction;
		(void) decode(batch, later);
	}
	(void) gh_program_run_part(options->program, batch, first, end);
}
