/*
 * scan_matches.cuh
 *		Rows that joins make several of.
 *
 * The rows of a table with the same key lie side by side in a list of their numbers (scan_chains.cu).  A thread goes
 * through all that becomes of its row, depth first: behind each join it takes the first match, at the end
 * runs the program's rest, and goes back to the last join that has another one.  So it needs no more than
 * a place in each join's list.
 *
 * The first row that is live has the place of its line.  Those behind it have places behind all lines,
 * "extras", which are taken from a counter, in any order; each knows its line, and its number among the
 * line's.  So they are put into the order of lines later (scan_collect.cu), and are nothing if the line
 * turns out to go back.
 */
#ifndef GPUHASH_SCAN_MATCHES_CUH
#define GPUHASH_SCAN_MATCHES_CUH

#include "cuda/pipeline/scan_device.cuh"
#include "cuda/pipeline/scan_find.cuh"
#include "cuda/pipeline/scan_join.cuh"
#include "cuda/pipeline/scan_program.cuh"

#define MATCH_NONE UINT32_MAX	/* there is no other one */

/* What a thread counts of a page: rows that came to the joins, and behind each... */
struct match_tally
{
	uint32_t	live[GH_SCAN_JOINS_MAX + 1];	/* of lines that are live at the end, and */
	uint32_t	dropped[GH_SCAN_JOINS_MAX + 1];	/* of those that are not */
	uint32_t	rows;			/* live at the end */
	uint32_t	extras;			/* of them, that need a place behind the lines */
};

/* The row at a place of a list; *next: the place behind it, or MATCH_NONE. */
static __device__ __forceinline__ uint64_t
take_member(const made_table &table, uint32_t place, uint32_t *next)
{
	uint32_t	member = table.members[place];

	*next = (member & MEMBER_LAST) != 0 ? MATCH_NONE : place + 1;
	return member & ~MEMBER_LAST;
}

/* The join's first match; false: the row does not go on.  *back: it goes back. */
static __device__ bool
first_match(const join_view &join, const row_values &row, uint32_t *next, bool *back)
{
	uint64_t	found = 0;
	uint64_t	key;
	bool		match = row_key(join.parts, join.nparts, row, &key) &&
		scan_locate(join.table.view, key, &found) != nullptr;

	*next = MATCH_NONE;
	if (match && gh_scan_kind_marks(join.kind))
		mark_key(join.table, found);
	if (!gh_scan_kind_goes_on(join.kind, match))
		return false;
	if (match && gh_scan_kind_fills(join.kind) && join.table.values == VALUES_NUMBERS &&
		(found & ROW_SEVERAL) != 0)
	{
		*back = join.multiplies == 0;
		if (*back)
			return false;
		found = take_member(join.table, (uint32_t) (found & ~ROW_SEVERAL), next);
	}
	fill_columns(join, row, match, found);
	return true;
}

static __device__ bool
next_match(const join_view &join, const row_values &row, uint32_t *next)
{
	if (*next == MATCH_NONE)
		return false;
	fill_columns(join, row, true, take_member(join.table, *next, next));
	return true;
}

/* What becomes of a line, as far as it is known. */
struct line_rows
{
	uint32_t	live;
	bool		lacks;			/* there was no place for all of them */
	uint64_t	takes;			/* of the first one, as what follows */
	uint32_t	group;
};

/* The place of the line's next row; false: there is none. */
static __device__ bool
take_place(const pages_job &job, uint32_t line, line_rows *rows, uint32_t *place)
{
	uint32_t	extra;

	*place = line;
	if (rows->live == 0)
		return true;
	if (rows->lacks)
		return false;
	extra = append_index(&job.counters->extras);
	rows->lacks = extra >= job.lines.extras;
	if (rows->lacks)
		return false;
	job.lines.origins[extra] = {line, rows->live};
	*place = job.lines.count + extra;
	return true;
}

/* A row behind all joins: runs the rest, and puts what is live to its place. */
static __device__ line_state
place_match(const pages_job &job, const row_values &row, uint32_t line, line_rows *rows)
{
	const plan_view &plan = job.plan;
	bool		kept = plan.nparts > 0 || plan.each_row != 0;
	GhRowState	state = run_program(plan, row, plan.joins_at, plan.program->ninstructions);
	uint64_t	takes = 0;
	uint32_t	group = GROUP_NONE;
	uint32_t	place;

	if (state != GH_ROW_LIVE)
		return state == GH_ROW_DROPPED ? LINE_NONE : LINE_BACK;
	if (kept && plan.nparts > 0 && !row_key(plan.parts, plan.nparts, row, &takes) &&
		plan.marks_matches == 0)
		return LINE_NONE;
	if (!kept && !row_takes(plan, row, &takes))
		return LINE_BACK;
	if (!kept)
		group = plan.nkeys == 0 ? 0 : group_find(plan, job.groups, row, job.counters);
	if (!kept && group == GROUP_NONE)
		return LINE_NO_GROUP;
	if (take_place(job, line, rows, &place))
	{
		if (kept && store_row(job, row, place, &takes) != LINE_LIVE)
			return LINE_NO_GROUP;
		if (!kept)
			store_inputs(plan, job.lines, row, place);
		job.lines.takes[place] = takes;
		job.lines.group[place] = group;
		job.lines.state[place] = LINE_LIVE;
	}
	if (rows->live == 0)
	{
		rows->takes = takes;
		rows->group = group;
	}
	rows->live++;
	return LINE_LIVE;
}

/* Goes through all that becomes of a row which came to the joins; came: see match_tally. */
static __device__ line_state
go_through(const pages_job &job, const row_values &row, uint32_t line, uint32_t *came, line_rows *rows)
{
	const plan_view &plan = job.plan;
	uint32_t	next[GH_SCAN_JOINS_MAX];
	uint32_t	j = 0;
	bool		again = false;

	for (;;)
	{
		bool		back = false;
		bool		on = false;

		if (j == plan.njoins)
		{
			line_state	state = place_match(job, row, line, rows);

			if (state >= LINE_BACK)
				return state;
		}
		else
			on = again ? next_match(plan.joins[j], row, &next[j]) :
				first_match(plan.joins[j], row, &next[j], &back);
		if (back || (on && ++came[j + 1] > GH_SCAN_MATCHES_MAX))
			return LINE_BACK;
		again = !on;
		if (on)
			j++;
		else if (j-- == 0)
			return rows->live > 0 ? LINE_LIVE : LINE_NONE;
	}
}

/* As count_row() does, of a row that may become several. */
static __device__ line_state
count_matches(const pages_job &job, const row_values &row, uint32_t line, uint64_t *takes,
			  uint32_t *group, match_tally *tally)
{
	uint32_t	came[GH_SCAN_JOINS_MAX + 1] = {1};
	line_rows	rows = {};
	GhRowState	before = run_program(job.plan, row, 0, job.plan.joins_at);
	line_state	state;

	if (before != GH_ROW_LIVE)
		return before == GH_ROW_DROPPED ? LINE_NONE : LINE_BACK;
	state = go_through(job, row, line, came, &rows);
	if (state >= LINE_BACK)
		return state;
	if (rows.live > 1)
		tally->extras += rows.live - 1;
	if (rows.lacks)
	{
		job.counters->extras_full = 1;
		return LINE_NO_GROUP;
	}
	for (uint32_t i = 0; i <= job.plan.njoins; i++)
		(rows.live > 0 ? tally->live : tally->dropped)[i] += came[i];
	tally->rows += rows.live;
	job.lines.derived[line] = rows.live;
	*takes = rows.takes;
	*group = rows.group;
	return state;
}

#endif							/* GPUHASH_SCAN_MATCHES_CUH */
