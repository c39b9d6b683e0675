/*
 * row_steps.cuh
 *		The steps of a pipeline over a row, by one thread, where the row becomes one line at most.
 */
#ifndef GPUHASH_ROW_STEPS_CUH
#define GPUHASH_ROW_STEPS_CUH

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
	uint32_t	number;			/* of the probe's view, where others come behind the first match */
	bool		left;			/* there are more */
	bool		several;		/* at is a place among members */
	bool		matched;
	bool		back;			/* the row goes back because of one */
};

/*
 * Nothing more is done of a row that goes back; but where matches are marked all else that it becomes goes
 * on, so that of the first step at which it was seen all matches in front are marked.
 */
static __device__ __forceinline__ void
note_back(const pipe_view &view, row_run *run, uint32_t step)
{
	if (step < run->back)
		run->back = step;
	run->over |= view.marks == 0;
}

/* ------------------------------------------------------------------- matches */

/*
 * Which view of a probe a row's key is looked up by: that of the table, or, if it is one of those keys, of
 * the other rows.
 */
static __device__ __forceinline__ uint32_t
view_of_row(const pipe_view &view, const probe_view *probes, uint32_t number, const line_values &row)
{
	const probe_view &probe = probes[number];
	uint64_t	value;
	uint64_t   *place;
	uint64_t	key;

	if (probe.has_changed == 0 || !line_key(probe.parts, probe.nparts, row, &key))
		return number;
	return (probe.changed_values != 0 ? locate_key<layout_k8v8>(probe.changed, key, &value, &place) :
			locate_key<layout_k8>(probe.changed, key, &value, &place)) ? view.nprobes + number : number;
}

/* Inlined, as what it calls: of a function that is called, a row's values and the walk are in memory. */
static __device__ __forceinline__ void
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

/*
 * Goes on to a match for which the step's instructions drop nothing; the columns are filled.  PROGRAM, here and in what
 * follows: steps may have instructions.
 */
template <bool MARKS, bool PROGRAM> static __device__ bool
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
			if (PROGRAM)
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
template <bool MARKS, bool PROGRAM> static __device__ bool
probe_row(const pipe_view &view, const probe_view &probe, const line_values &row, row_run *run, uint32_t step,
		  match_walk *walk)
{
	bool		match;

	walk_begin(probe, row, step, walk);
	match = walk_match<MARKS, PROGRAM>(view, probe, row, run, walk);
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

/* Can the line be added for all sets?  *takes: which aggregates of the first one take it. */
static __device__ bool
sets_take(const plan_view &plan, const line_values &row, uint64_t *takes)
{
	uint64_t	unused;

	/* arguments are those of the first set, but another filter may let a value pass */
	for (uint32_t s = 1; s < plan.nsets; s++)
		if (!row_takes(plan_of_set(plan, s), row, &unused))
			return false;
	return row_takes(plan, row, takes);
}

/* Does the line go to the sink?  It may be seen to go back.  *takes: as of sets_take. */
static __device__ bool
ends_in_sink(const pipe_view &view, const line_values &row, row_run *run, uint64_t *takes)
{
	uint64_t	unused;

	if (view.sink == GH_SINK_GROUPS && !sets_take(view.plan, row, takes))
	{
		note_back(view, run, view.nsteps);
		return false;
	}
	/* rows without a key are found by nothing */
	return view.sink != GH_SINK_TABLE || view.numbered != 0 || line_key(view.parts, view.nparts, row, &unused);
}

/* ------------------------------------------------------------ one line of each row */

/* A live row; how many steps it is behind.  It is a line where it is behind the last one. */
template <bool PROGRAM> static __device__ __forceinline__ uint32_t
run_steps(const run_job &job, const step_view *steps, const probe_view *probes, const line_values &row, row_run *run)
{
	const pipe_view &view = job.view;
	uint32_t	step = job.step;

	for (; step < view.nsteps; step++)
	{
		const step_view at = steps[step];
		GhRowState	state;

		if (at.probe != 0)
		{
			match_walk	walk;

			if (!probe_row<true, PROGRAM>(view, probes[view_of_row(view, probes, at.probe - 1, row)], row, run, step, &walk))
				return step - job.step;
			continue;
		}
		if (!PROGRAM)
			continue;
		state = run_program(view.plan, row, at.begin, at.end);
		if (state == GH_ROW_BACK)
			note_back(view, run, step);
		if (state != GH_ROW_LIVE)
			return step - job.step;
	}
	run->lines = 1;
	return step - job.step;
}

/* The same, up to the sink. */
static __device__ __forceinline__ uint32_t
run_one(const run_job &job, const line_values &row, row_run *run, uint64_t *takes)
{
	uint32_t	came = run_steps<true>(job, job.view.steps, job.view.probes, row, run);

	if (run->lines > 0)
		run->lines = ends_in_sink(job.view, row, run, takes);
	return came;
}

#endif							/* GPUHASH_ROW_STEPS_CUH */
