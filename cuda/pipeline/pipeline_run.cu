/*
 * pipeline_run.cu
 *		The steps of a pipeline: a thread has a row, and does all steps with it.
 *
 * Where a probe makes several rows of one, the thread goes on with one match, through all steps behind, and
 * then comes back for the next (match_walk).  What steps set of vectors that were set before the probe is put
 * back before each further match (saved_vector).  So what a row becomes is known to one thread: how many
 * lines, or that the row goes back, and at which step that was seen.
 *
 * Where rows may become several this is done twice: count_kernel counts the lines of each row and marks
 * matches, then, when it is known where each row's lines go, emit_kernel does the same once more and puts
 * what the sink reads of each line there.  Tables do not change meanwhile, so that it finds the same; and
 * what a row enters with is put back before.  So lines are in the order of rows, and of each row's matches,
 * whatever thread comes first.
 */
#include "cuda/pipeline/row_steps.cuh"

struct emit_job
{
	run_job		run;
	values_view copies;
	uint32_t   *rows;			/* by line */
	uint32_t	first;			/* rows */
	uint32_t	end;
};

static __device__ __forceinline__ void
save_vectors(const line_values &row, const saved_vector *saved, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		row.set_at(saved[i].place, row.get(saved[i].vector));
}

static __device__ __forceinline__ void
put_vectors_back(const line_values &row, const saved_vector *saved, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		row.set(saved[i].vector, row.get_at(saved[i].place));
}

/* ---------------------------------------------------------- several lines of a row */

/* What becomes of a line of a row that came to the end. */
struct counting
{
	static constexpr bool marks = true;
	const batch_view *batch;
	uint64_t	row;

	__device__ __forceinline__ void
	came(uint32_t step) const
	{
		batch->came[step * batch->values.stride + row]++;
	}

	__device__ __forceinline__ void
	put(const pipe_view &, const line_values &, uint32_t) const
	{
	}
};

struct emitting
{
	static constexpr bool marks = false;
	const emit_job *job;
	uint32_t	row;
	uint64_t	to;				/* its first line */

	__device__ __forceinline__ void
	came(uint32_t) const
	{
	}

	__device__ __forceinline__ void
	put(const pipe_view &view, const line_values &row_values, uint32_t number) const
	{
		line_values copy(view.program, job->copies, to + number);

		for (uint32_t i = 0; i < view.ncopied; i++)
			copy.set_at(view.copies[i].place, row_values.get(view.copies[i].vector));
		job->rows[to + number] = row;
	}
};

/* Does the row, from where it enters on, with all its matches. */
template <typename LINES> static __device__ void
run_several(const run_job &job, const line_values &row, const LINES &lines, row_run *run)
{
	const pipe_view &view = job.view;
	match_walk	walks[GH_PROBES_MAX];
	uint32_t	depth = 0;
	uint32_t	step = job.step;
	uint64_t	unused;

	for (;;)
	{
		bool		live = true;

		for (; live && step < view.nsteps; step++)
		{
			const step_view at = view.steps[step];

			if (at.probe == 0)
			{
				GhRowState	state = run_program(view.plan, row, at.begin, at.end);

				if (state == GH_ROW_BACK)
					note_back(view, run, step);
				live = state == GH_ROW_LIVE;
			}
			else
			{
				const uint32_t number = view_of_row(view, view.probes, at.probe - 1, row);
				const probe_view &probe = view.probes[number];

				walks[depth].number = number;
				live = probe_row<LINES::marks, true>(view, probe, row, run, step, &walks[depth]);
				if (live && probe.multiplies != 0 && walks[depth].left)
				{
					save_vectors(row, probe.saved, probe.nsaved);
					depth++;
				}
			}
			if (live)
				lines.came(step);
		}
		if (live && ends_in_sink(view, row, run, &unused))
			lines.put(view, row, run->lines++);
		/* back to the last probe that has a match left */
		for (live = false; !live && depth > 0 && !run->over;)
		{
			match_walk *walk = &walks[depth - 1];
			const probe_view &probe = view.probes[walk->number];

			put_vectors_back(row, probe.saved, probe.nsaved);
			live = walk_match<LINES::marks, true>(view, probe, row, run, walk);
			if (live)
			{
				step = walk->step;
				lines.came(step++);
			}
			/* conditions may have been met by the last one */
			if (!walk->left)
				depth--;
		}
		if (!live)
			return;
	}
}

/* --------------------------------------------------------------------- kernels */

/* What is known of a live row, or of one that was done before, when all its steps have been. */
static __device__ __forceinline__ bool
note_row(const batch_view &batch, uint64_t number, bool live, row_run *run)
{
	bool		back = run->back != NO_STEP;

	if (back)
		run->lines = 0;
	if (live)
	{
		batch.back[number] = run->back;
		batch.state[number] = back ? STATE_BACK : run->lines > 0 ? STATE_LIVE : STATE_DROPPED;
	}
	return back;
}

/* Rows that become several; how many lines is summed up behind it. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
count_kernel(const __grid_constant__ run_job job)
{
	uint64_t	number = ELEMENT;
	const batch_view &batch = job.batch;
	bool		back = false;

	if (number < batch.rows)
	{
		line_values row(job.view.program, batch.values, number);
		row_run		run = {batch.back[number], 0, 0, 0, false};
		bool		live = batch.state[number] == STATE_LIVE;

		for (uint32_t s = 0; s < job.view.nsteps; s++)
			batch.came[s * batch.values.stride + number] = 0;
		if (live)
		{
			counting	lines = {&batch, number};

			save_vectors(row, job.view.saved, job.view.nsaved);
			run_several(job, row, lines, &run);
		}
		back = note_row(batch, number, live, &run);
		batch.counts[number] = run.lines;
	}
	else if (number == batch.rows)
		batch.counts[number] = 0;
	add_tally(&batch.counters->backs, back);
}

/* Rows that are a line each; GROUPS: what is to be added of them is put side by side. */
template <bool GROUPS> static __global__ void __launch_bounds__(BLOCK_THREADS)
run_kernel(const __grid_constant__ run_job job)
{
	uint64_t	number = ELEMENT;
	const batch_view &batch = job.batch;
	row_run		run = {NO_STEP, 0, 0, 0, false};
	uint32_t	came = 0;
	bool		back = false;

	if (number < batch.rows)
	{
		line_values row(job.view.program, batch.values, number);
		bool		live = batch.state[number] == STATE_LIVE;
		uint64_t	takes = 0;

		run.back = batch.back[number];
		if (live)
			came = run_one(job, row, &run, &takes);
		back = note_row(batch, number, live, &run);
		batch.came[number] = came;
		if (GROUPS)
		{
			job.lines.takes[number] = run.lines > 0 ? takes : 0;
			job.lines.state[number] = run.lines > 0 ? LINE_LIVE : LINE_NONE;
			if (run.lines > 0)
				store_inputs(job.view.plan, job.lines, row, (uint32_t) number);
		}
		else
			batch.counts[number] = run.lines;
	}
	else if (!GROUPS && number == batch.rows)
		batch.counts[number] = 0;
	for (uint32_t s = job.step; s < job.view.nsteps; s++)
		tally_block(&batch.counters->passed[s], !back && came > s - job.step);
	tally_block(&batch.counters->lines, run.lines);
	add_tally(&batch.counters->backs, back);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
emit_kernel(const __grid_constant__ emit_job job)
{
	uint64_t	number = job.first + ELEMENT;
	const batch_view &batch = job.run.batch;

	if (number >= job.end || batch.counts[number] == 0)
		return;
	line_values row(job.run.view.program, batch.values, number);
	row_run		run = {NO_STEP, 0, 0, 0, false};
	emitting	lines = {&job, (uint32_t) number, batch.sums[number] - batch.sums[job.first]};

	put_vectors_back(row, job.run.view.saved, job.run.view.nsaved);
	run_several(job.run, row, lines, &run);
}

/* What is done with rows that enter before a step. */
static run_job
job_from(const cuda_pipeline *pipeline, uint32_t step)
{
	const GhPipelineOptions *options = &pipeline->plan.options;
	run_job		job = {pipeline->view, pipeline->lane->batch, pipeline->lane->sink.lines, step};

	for (; step < options->nsteps; step++)
		if (options->steps[step].probe != 0 && pipeline->probes[options->steps[step].probe - 1].multiplies != 0)
			break;
	job.view.first_several = step;
	return job;
}

GhStatus
run_launch(cuda_pipeline *pipeline, uint32_t step, GhError *error)
{
	uint32_t	blocks = blocks_for((uint64_t) pipeline->lane->batch.rows + 1);
	run_job		job = job_from(pipeline, step);

	if (pipeline->view.multiplies != 0)
		count_kernel<<<blocks, BLOCK_THREADS, 0, pipeline->memory.stream>>>(job);
	else if (adds_rows(pipeline))
		run_kernel<true><<<blocks, BLOCK_THREADS, 0, pipeline->memory.stream>>>(job);
	else
		run_kernel<false><<<blocks, BLOCK_THREADS, 0, pipeline->memory.stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

GhStatus
emit_launch(cuda_pipeline *pipeline, uint32_t step, uint32_t first, uint32_t end, GhError *error)
{
	emit_job	job = {job_from(pipeline, step), pipeline->lane->sink.copies, pipeline->lane->sink.rows, first, end};

	emit_kernel<<<blocks_for(end - first), BLOCK_THREADS, 0, pipeline->memory.stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}
