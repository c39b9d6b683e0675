/*
 * pipeline_run.cu
 *		The steps of a pipeline: a thread has a row, and does all steps with it.
 *
 * Where a probe makes several rows of one, the thread goes on with one match, through all steps behind, and then comes
 * back for the next (match_walk).  What steps set of vectors that were set before the probe is put back before each
 * further match (saved_vector).  So what a row becomes is known to one thread: how many lines, or that the row goes
 * back, and at which step that was seen.
 *
 * Where rows may become several this is done twice: count_kernel counts the lines of each row and marks matches, then,
 * when it is known where each row's lines go, emit_kernel does the same once more and puts what the sink reads of
 * each line there.  Tables do not change meanwhile, so that it finds the same; and what a row enters with is put back
 * before.  So lines are in the order of rows, and of each row's matches, whatever thread comes first.
 */
#include "cuda/pipeline/pipeline.cuh"
#include "cuda/pipeline/group_find.cuh"
#include "cuda/pipeline/table_locate.cuh"
#include "cuda/pipeline/row_program.cuh"

struct run_job
{
	pipe_view	view;
	batch_view	batch;
	lines_view	lines;			/* of a batch whose rows are a line each, and are added to groups */
	uint32_t	step;			/* before which rows enter */
};

struct emit_job
{
	run_job		run;
	values_view copies;
	uint32_t   *rows;			/* by line */
	uint32_t	first;			/* rows */
	uint32_t	end;
};

/* What a thread knows of its row. */
struct row_run
{
	uint32_t	back;			/* the step at which it was seen that it goes back, or NO_STEP */
	uint32_t	matches;		/* of those that GH_ROW_MATCHES_MAX bounds */
	uint32_t	deepest;		/* step with such matches */
	uint32_t	lines;
	bool		over;			/* nothing of it is wanted any more */
};

/* The matches of a row in a table, on the way. */
struct match_walk
{
	uint64_t	at;				/* a row's number, a value, or the next place among members */
	uint32_t	step;
	bool		left;			/* there are more */
	bool		several;		/* at is a place among members */
	bool		matched;
	bool		back;			/* the row goes back because of one */
};

/*
 * Nothing more is done of a row that goes back; but where matches are marked all else that it becomes goes on, so that
 * of the first step at which it was seen all matches in front are marked.
 */
static __device__ __forceinline__ void
note_back(const pipe_view &view, row_run *run, uint32_t step)
{
	if (step < run->back)
		run->back = step;
	run->over |= view.marks == 0;
}

/* ------------------------------------------------------------------- matches */

static __device__ void
walk_begin(const probe_view &probe, const line_values &row, uint32_t step, match_walk *walk)
{
	uint64_t	value = 0;
	uint64_t   *place = nullptr;
	uint64_t	key;

	walk->step = step;
	walk->matched = walk->back = walk->several = false;
	walk->left = probe.has_index != 0 && line_key(probe.parts, probe.nparts, row, &key) &&
		(probe.has_values != 0 ? locate_key<layout_k8v8>(probe.index, key, &value, &place) :
		 locate_key<layout_k8>(probe.index, key, &value, &place));
	walk->at = value;
	if (walk->left && probe.by_number != 0 && (value & ROW_SEVERAL) != 0)
	{
		walk->several = true;
		walk->at = value & ~ROW_SEVERAL;
	}
}

/* The next row of the table, or value. */
static __device__ __forceinline__ uint64_t
walk_next(const probe_view &probe, match_walk *walk)
{
	uint32_t	member;

	if (!walk->several)
	{
		walk->left = false;
		return walk->at;
	}
	member = probe.rows.members[walk->at++];
	walk->left = (member & MEMBER_LAST) == 0;
	return member & ~MEMBER_LAST;
}

static __device__ void
fill_match(const probe_view &probe, const line_values &row, uint64_t found)
{
	for (uint32_t f = 0; f < probe.nfills; f++)
	{
		join_fill	fill = probe.fills[f];
		GhValue		value = {found, 0, 0};

		if (probe.by_number != 0)
			value = kept_at(probe.rows, found, fill.kept);
		row.set(fill.column, value);
	}
}

static __device__ void
fill_nulls(const probe_view &probe, const line_values &row)
{
	for (uint32_t f = 0; f < probe.nfills; f++)
		row.set(probe.fills[f].column, GhValue{0, 0, 1});
}

/* Many rows find the same few: only the first of them waits for the word. */
static __device__ __forceinline__ void
mark_row(uint32_t *marks, uint64_t number)
{
	uint32_t	bit = (uint32_t) 1 << number % 32;

	if ((load_relaxed(&marks[number / 32]) & bit) == 0)
		atomicOr(&marks[number / 32], bit);
}

/* One more match than a row may have; false: it may. */
static __device__ __forceinline__ bool
is_too_many(const pipe_view &view, const probe_view &probe, row_run *run, uint32_t step)
{
	if (probe.counts == 0)
		return false;
	if (step > run->deepest)
		run->deepest = step;
	if (++run->matches <= GH_ROW_MATCHES_MAX)
		return false;
	/*
	 * All that is in front of the step that is reported has been done with the whole row: where matches are marked
	 * that is all in front of the first step that made several of it.
	 */
	note_back(view, run, view.marks != 0 && view.first_several < run->deepest ? view.first_several : run->deepest);
	run->over = true;
	return true;
}

/* Goes on to a match for which the step's instructions drop nothing; the columns are filled. */
template <bool MARKS> static __device__ bool
walk_match(const pipe_view &view, const probe_view &probe, const line_values &row, row_run *run, match_walk *walk)
{
	const step_view step = view.steps[walk->step];

	while (walk->left)
	{
		uint64_t	found = walk_next(probe, walk);
		GhRowState	state = GH_ROW_LIVE;

		if (is_too_many(view, probe, run, walk->step))
		{
			walk->back = true;
			break;
		}
		if (probe.by_number != 0 && row_hands_back(probe.rows, found))
			state = GH_ROW_BACK;
		else
		{
			fill_match(probe, row, found);
			state = run_program(view.plan, row, step.begin, step.end);
		}
		if (state == GH_ROW_BACK)
		{
			note_back(view, run, walk->step);
			walk->back = true;
			break;
		}
		if (state != GH_ROW_LIVE)
			continue;
		walk->matched = true;
		if (MARKS && probe.marks != nullptr)
			mark_row(probe.marks, found);
		return true;
	}
	walk->left = false;
	return false;
}

/* Does the row go on behind a probe, for the first time?  What is left of its matches is in the walk. */
template <bool MARKS> static __device__ bool
probe_row(const pipe_view &view, const probe_view &probe, const line_values &row, row_run *run, uint32_t step,
		  match_walk *walk)
{
	bool		match;

	walk_begin(probe, row, step, walk);
	match = walk_match<MARKS>(view, probe, row, run, walk);
	if (walk->back)
		return false;
	if (probe.kind == GH_PROBE_LEFT && !match)
	{
		fill_nulls(probe, row);
		return true;
	}
	return match != (probe.kind == GH_PROBE_ANTI);
}

/* -------------------------------------------------------------------- the end */

/* Does the line go to the sink?  It may be seen to go back.  *takes: which aggregates take it. */
static __device__ bool
ends_in_sink(const pipe_view &view, const line_values &row, row_run *run, uint64_t *takes)
{
	uint64_t	unused;

	if (view.sink == GH_SINK_GROUPS && !row_takes(view.plan, row, takes))
	{
		note_back(view, run, view.nsteps);
		return false;
	}
	/* rows without a key are found by nothing */
	return view.sink != GH_SINK_TABLE || view.numbered != 0 || line_key(view.parts, view.nparts, row, &unused);
}

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

/* ------------------------------------------------------------ one line of each row */

/* A live row; how many steps it is behind. */
static __device__ uint32_t
run_one(const run_job &job, const line_values &row, row_run *run, uint64_t *takes)
{
	const pipe_view &view = job.view;
	uint32_t	step = job.step;

	for (; step < view.nsteps; step++)
	{
		const step_view at = view.steps[step];
		GhRowState	state;

		if (at.probe != 0)
		{
			match_walk	walk;

			if (!probe_row<true>(view, view.probes[at.probe - 1], row, run, step, &walk))
				return step - job.step;
			continue;
		}
		state = run_program(view.plan, row, at.begin, at.end);
		if (state == GH_ROW_BACK)
			note_back(view, run, step);
		if (state != GH_ROW_LIVE)
			return step - job.step;
	}
	run->lines = ends_in_sink(view, row, run, takes);
	return step - job.step;
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
				const probe_view &probe = view.probes[at.probe - 1];

				live = probe_row<LINES::marks>(view, probe, row, run, step, &walks[depth]);
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
			const probe_view &probe = view.probes[view.steps[walk->step].probe - 1];

			put_vectors_back(row, probe.saved, probe.nsaved);
			live = walk_match<LINES::marks>(view, probe, row, run, walk);
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
count_kernel(const run_job job)
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
run_kernel(const run_job job)
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
emit_kernel(const emit_job job)
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
