/*
 * cpu_pipeline_run.c
 *		The steps of a pipeline on the CPU, some hundred rows at a time.
 *
 * A row goes back as a whole, whatever it has become by then.  So where probes make several rows of one, those that
 * come to the end wait until all rows of level 0 are done.  When there is no more room for them, all is
 * forgotten and half as many rows are done at a time, down to one.  A row that becomes more than there is room for goes
 * through the steps twice:
 *
 *	1. Whenever there is no more room, places in the sink are found for what waits, and it is forgotten.  Nothing is
 *	   added, so that the row can still go back.  At the end there is memory in the sink for all, or it goes back.
 *	2. It becomes the same rows again, which are added whenever there is no more room.  Nothing can fail.
 */
#include "engine/clones.h"
#include "engine/pipeline/cpu_pipeline.h"

void
gh_cpu_hand_back(GhCpuPipeline *pipeline, uint32_t level, uint32_t row, uint32_t step)
{
	GhCpuLevel *at = pipeline->levels[level];
	uint32_t	origin = level == 0 ? row : at->origin[row];

	if (level > 0)
		at->batch.state[row] = GH_ROW_DROPPED;
	pipeline->levels[0]->batch.state[origin] = GH_ROW_BACK;
	pipeline->nback += pipeline->back_step[origin] == GH_CPU_NO_STEP;
	if (step < pipeline->back_step[origin])
		pipeline->back_step[origin] = (uint16_t) step;
}

uint32_t
gh_cpu_pad(const GhCpuPipeline *pipeline, GhVectorBatch *batch)
{
	/* which a run of no instructions sees to */
	return gh_program_run_part(pipeline->plan.options.program, batch, 0, 0);
}

void
gh_cpu_note_back(GhCpuPipeline *pipeline, uint32_t level, uint32_t step)
{
	const GhVectorBatch *batch = &pipeline->levels[level]->batch;

	for (uint32_t i = 0; i < batch->nrows; i++)
		if (batch->state[i] == GH_ROW_BACK)
			gh_cpu_hand_back(pipeline, level, i, step);
}

void
gh_cpu_note_came(GhCpuPipeline *pipeline, uint32_t level, uint32_t step, const GhCpuPicks *picks)
{
	const uint16_t *origin = pipeline->levels[level]->origin;

	for (uint32_t i = 0; i < picks->n; i++)
		pipeline->came[step][level == 0 ? picks->rows[i] : origin[picks->rows[i]]]++;
}

/* The rows that are live have come behind a step; how many they are. */
static uint32_t
count_live(GhCpuPipeline *pipeline, uint32_t level, uint32_t step)
{
	const GhCpuLevel *at = pipeline->levels[level];
	uint32_t	live;
	uint32_t	back;

	gh_batch_count(&at->batch, &live, &back);
	/* of level 0, more than are known; where it is done in parts, those of others count among these */
	if (back > (level == 0 && !pipeline->multiplies ? pipeline->nback : 0))
		gh_cpu_note_back(pipeline, level, step);
	if (!pipeline->multiplies)
		pipeline->live[step] += live;
	for (uint32_t i = 0; pipeline->multiplies && i < at->batch.nrows; i++)
		if (at->batch.state[i] == GH_ROW_LIVE)
			pipeline->came[step][level == 0 ? i : at->origin[i]]++;
	return live;
}

/* Whether all live rows' values of 128 bits can be summed (gh_aggregate_fits), as almost always, in a loop without a branch. */
GH_CLONES static bool
all_fit(const GhVectorBatch *batch, const GhVector *vector)
{
	const uint8_t *state = batch->state;
	const uint64_t *high = vector->high;
	uint32_t	nrows = gh_loop_rows(batch->nrows);
	uint64_t	magnitudes = 0;

	for (uint32_t i = 0; i < nrows; i++)
		magnitudes |= (high[i] ^ gh_sign_extension(high[i])) & (0 - (uint64_t) (state[i] == GH_ROW_LIVE));
	return magnitudes >> (GH_SUM_BITS - 64) == 0;
}

/* Values that no engine sums. */
static void
check_sums(GhCpuPipeline *pipeline, uint32_t level)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	const GhVectorBatch *batch = &pipeline->levels[level]->batch;

	for (uint32_t a = 0; options->sink.kind == GH_SINK_GROUPS && a < gh_sink_sets(&options->sink.groups) * options->sink.groups.naggregates;
		 a++)
	{
		const GhAggregate *aggregate = &options->sink.groups.aggregates[a];
		const GhVector *vector = &batch->vectors[aggregate->argument];
		bool		wide = aggregate->value_class == GH_CLASS_INT128;

		/* 64 bits always fit; of floats that are added in order it is seen there */
		if (!gh_aggregate_is_sum(aggregate) ||
			(aggregate->kind == GH_AGGREGATE_SUM && aggregate->value_class == GH_CLASS_INT) ||
			(options->sink.groups.in_order != 0 && gh_class_is_float(aggregate->value_class)) ||
			(aggregate->kind == GH_AGGREGATE_SUM && wide && (batch->bits[aggregate->argument] != 0 || all_fit(batch, vector))))
			continue;
		for (uint32_t i = 0; i < batch->nrows; i++)
			if (batch->state[i] == GH_ROW_LIVE && gh_aggregate_takes(aggregate, batch->vectors, i) &&
				!gh_aggregate_fits(aggregate, vector->low[i], wide ? vector->high[i] : 0))
				gh_cpu_hand_back(pipeline, level, i, options->nsteps);
	}
}

/* As gh_cpu_probe(), with the columns that it reads. */
static bool
run_probe(GhCpuPipeline *pipeline, uint32_t level, uint32_t step)
{
	if (!gh_cpu_decode_for(pipeline, level, step))
		gh_cpu_note_back(pipeline, level, step);
	return gh_cpu_probe(pipeline, level, step);
}

bool
gh_cpu_run_level(GhCpuPipeline *pipeline, uint32_t level, uint32_t step)
{
	const GhPipelineOptions *options = &pipeline->plan.options;

	for (uint32_t s = step; s < options->nsteps; s++)
	{
		if (gh_cpu_sees_stop(pipeline))
			return false;
		if (options->steps[s].probe == 0)
			gh_cpu_run_instructions(pipeline, level, s);
		else if (!run_probe(pipeline, level, s))
			return false;
		if (count_live(pipeline, level, s) == 0)
			return false;
	}
	if (!gh_cpu_decode_for(pipeline, level, options->nsteps))
		gh_cpu_note_back(pipeline, level, options->nsteps);
	check_sums(pipeline, level);
	if (pipeline->multiplies)
		gh_cpu_stage(pipeline, level);
	return true;
}

/* Of what was counted, what did not go back. */
static void
add_counts(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t step)
{
	const GhVectorBatch *batch = &pipeline->levels[0]->batch;
	uint32_t	nsteps = pipeline->plan.options.nsteps;

	for (uint32_t s = step; s < nsteps; s++)
	{
		uint64_t	passed = pipeline->multiplies ? 0 : pipeline->live[s];

		for (uint32_t i = 0; pipeline->multiplies && i < batch->nrows; i++)
			if (pipeline->back_step[i] == GH_CPU_NO_STEP)
				passed += pipeline->came[s][i];
		for (uint32_t i = 0; !pipeline->multiplies && pipeline->nback > 0 && i < batch->nrows; i++)
			passed -= pipeline->back_step[i] != GH_CPU_NO_STEP && pipeline->back_step[i] > s;
		request->passed[s] += passed;
	}
}

/* The step at which rows have gone back that the source, or a probe whose rows without a match come, handed back. */
static uint32_t
source_step(const GhPipelineRequest *request, uint32_t step)
{
	return request->kind == GH_INPUT_UNMATCHED ? request->step : step;
}

/* Where rows may become several: the steps of rows first up to end of level 0, the others being none. */
static void
run_steps(GhCpuPipeline *pipeline, const GhPipelineRequest *request, uint32_t step, uint32_t first, uint32_t end,
		  GhCpuStage stage)
{
	GhVectorBatch *batch = &pipeline->levels[0]->batch;

	pipeline->nstaged = 0;
	pipeline->stage = stage;
	pipeline->staged_rows = pipeline->staged_bytes = 0;
	for (uint32_t i = first; i < end; i++)
		if (pipeline->back_step[i] != GH_CPU_NO_STEP)
		{
			pipeline->back_step[i] = GH_CPU_NO_STEP;
			pipeline->nback--;
		}
	memset(batch->state, GH_ROW_DROPPED, batch->nrows);
	memcpy(batch->state + first, pipeline->state + first, end - first);
	for (uint32_t s = 0; s < pipeline->plan.options.nsteps; s++)
		memset(pipeline->came[s] + first, 0, (end - first) * sizeof(**pipeline->came));
	gh_cpu_note_back(pipeline, 0, source_step(request, step));
	(void) gh_cpu_run_level(pipeline, 0, step);
}

/* A row became more than there is room for.  If there are places for all of them they are added, else it goes back. */
static void
add_in_parts(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t step, uint32_t row)
{
	/* places for what is still staged */
	if (pipeline->back_step[row] == GH_CPU_NO_STEP)
		gh_cpu_sink_rows(pipeline, request);
	if (pipeline->stopped || pipeline->back_step[row] != GH_CPU_NO_STEP)
		return;
	gh_cpu_refill(pipeline, request);
	run_steps(pipeline, request, step, row, row + 1, GH_CPU_STAGE_ADDS);
	if (!pipeline->stopped)
		gh_cpu_sink_rows(pipeline, request);
}

/* Where rows may become several: rows first up to end of level 0, into the sink. */
static void
run_range(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t step, uint32_t first, uint32_t end)
{
	uint32_t	middle = first + (end - first) / 2;

	run_steps(pipeline, request, step, first, end, end - first == 1 ? GH_CPU_STAGE_OF_ONE : GH_CPU_STAGE_OF_ALL);
	if (pipeline->stopped)
		return;
	if (pipeline->stage == GH_CPU_STAGE_IS_FULL)
	{
		pipeline->range = middle - first;
		gh_cpu_refill(pipeline, request);
		run_range(pipeline, request, step, first, middle);
		if (pipeline->stopped)
			return;
		gh_cpu_refill(pipeline, request);
		run_range(pipeline, request, step, middle, end);
	}
	else if (pipeline->stage == GH_CPU_STAGE_CHECKS)
		add_in_parts(pipeline, request, step, first);
	else
		gh_cpu_sink_rows(pipeline, request);
}

/* All rows of level 0, as many at a time as fitted before, and more again while they fit. */
static void
run_ranges(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t step)
{
	uint32_t	nrows = pipeline->levels[0]->batch.nrows;

	for (uint32_t first = 0; first < nrows && !pipeline->stopped;)
	{
		uint32_t	most = pipeline->range == 0 ? nrows : pipeline->range;
		uint32_t	end = most < nrows - first ? first + most : nrows;

		if (first > 0)
			gh_cpu_refill(pipeline, request);
		run_range(pipeline, request, step, first, end);
		/* rows that did not fit have set it to less; after one row that did not, it stays */
		if (pipeline->range == most && pipeline->stage < GH_CPU_STAGE_CHECKS)
			pipeline->range = most >= GH_VECTOR_ROWS / 2 ? 0 : most * 2;
		first = end;
	}
}

void
gh_cpu_run_rows(GhCpuPipeline *pipeline, GhPipelineRequest *request, uint32_t step)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	GhVectorBatch *batch = &pipeline->levels[0]->batch;
	/* a first step that is run sees to the batch's end, and to rows that the source hands back as to its own */
	bool		prepare = pipeline->multiplies || step > 0 || options->nsteps == 0 || options->steps[0].probe != 0;
	bool		all_live = !prepare;

	memset(pipeline->live, 0, sizeof(pipeline->live));
	memset(pipeline->back_step, 0xff, batch->nrows * sizeof(*pipeline->back_step));
	pipeline->nback = 0;
	pipeline->ended = 0;
	if (prepare)
		all_live = gh_cpu_pad(pipeline, batch) == batch->nrows;
	if (pipeline->multiplies)
	{
		memcpy(pipeline->state, batch->state, batch->nrows);
		run_ranges(pipeline, request, step);
	}
	else
	{
		/* as the source has found */
		if (!all_live)
			gh_cpu_note_back(pipeline, 0, source_step(request, step));
		/* rows that go back may break the sink's order */
		if ((gh_cpu_run_level(pipeline, 0, step) || pipeline->nback > 0) && !pipeline->stopped)
			gh_cpu_sink_rows(pipeline, request);
	}
	add_counts(pipeline, request, step);
}
