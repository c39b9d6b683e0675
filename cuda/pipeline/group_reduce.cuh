/*
 * group_reduce.cuh
 *		The kernels that add lines to the states of their groups.
 *
 *	1. Lines are sorted by group, stably; what is not live comes last.
 *	2. Where a group's lines begin and end: a "segment".
 *	3. A short segment is added by one thread, from its first line to its last, and put to the
 *	   group's state.  A long one is cut into chunks, from its begin on.
 *	4. A warp adds the lines of a chunk for one aggregate: each lane every 32nd, and then the
 *	   lanes' states are merged as a tree.
 *	5. A warp does the same with the states of a long segment's chunks, and puts the result to
 *	   the group's.
 *
 * Without keys all lines are one long segment, in the order that they have (WHOLE): steps 4 and 5 are all
 * there is.
 *
 * Nothing here depends on which thread comes first: a group's lines, in their order, are cut and
 * merged in one way only.  So floats repeat themselves.
 */
#ifndef GPUHASH_GROUP_REDUCE_CUH
#define GPUHASH_GROUP_REDUCE_CUH

#include "cuda/pipeline/sink_views.cuh"
#include "cuda/table/memory.cuh"

/* What the kernels here work on. */
struct reduce_job
{
	plan_view	plan;
	groups_view groups;
	lines_view	lines;
	reduce_view reduce;
	uint32_t	rows;			/* of reduce.order */
	uint32_t	places;			/* lines */
	scan_counters *counters;
};

/* ------------------------------------------------------------------- states */

static __device__ __forceinline__ uint64_t
shuffle_down(uint64_t word, int offset)
{
	return __shfl_down_sync(~0u, (unsigned long long) word, offset);
}

/* The state of the lane that is so many behind. */
static __device__ __forceinline__ GhAggregateState
state_behind(const GhAggregateState &state, int offset)
{
	GhAggregateState behind;

	behind.count = shuffle_down(state.count, offset);
	behind.low = shuffle_down(state.low, offset);
	behind.high = shuffle_down(state.high, offset);
	behind.squares_low = shuffle_down(state.squares_low, offset);
	behind.squares_high = shuffle_down(state.squares_high, offset);
	return behind;
}

/* Merges the lanes' states, in their order, into lane 0's; all lanes come here. */
static __device__ void
merge_lanes(const GhAggregate *aggregate, GhAggregateState *state, bool *fits)
{
	for (int offset = 1; offset < 32; offset *= 2)
	{
		GhAggregateState behind = state_behind(*state, offset);

		/* of other lanes the result is not used */
		if ((threadIdx.x & 31) % (2 * (uint32_t) offset) == 0)
			*fits &= gh_aggregate_merge(aggregate, state, &behind);
	}
}

/* Lines whose values are loaded before the first of them is added. */
#define AHEAD 4

/* Adds the lines that are so many apart from each other, in their order. */
template <bool WHOLE> static __device__ void
add_lines(const reduce_job &job, uint32_t a, uint32_t begin, uint32_t end, uint32_t step,
		  GhAggregateState *state, bool *fits)
{
	const GhAggregate aggregate = job.plan.aggregates[a];
	bool		counts = aggregate.kind <= GH_AGGREGATE_COUNT;
	scan_input	input = counts ? scan_input{0, 0} : job.plan.inputs[job.plan.input_of[a]];
	const uint64_t *lows = job.lines.low +
		(counts ? 0 : (uint64_t) job.plan.input_of[a] * job.lines.stride);
	const uint64_t *highs = job.lines.high + (input.high == 0 ? 0 : input.high - 1u) * job.lines.stride;
	bool		wide = aggregate.value_class == GH_CLASS_INT128 && !counts;

	for (uint32_t i = begin; i < end; i += AHEAD * step)
	{
		uint32_t	line[AHEAD];
		bool		taken[AHEAD];
		uint64_t	low[AHEAD];
		uint64_t	high[AHEAD];

#pragma unroll
		for (uint32_t k = 0; k < AHEAD; k++)
			line[k] = i + k * step >= end ? job.places : WHOLE ? i + k * step : job.reduce.order[i + k * step];
#pragma unroll
		for (uint32_t k = 0; k < AHEAD; k++)
			taken[k] = line[k] < job.places && (job.lines.takes[line[k]] >> a & 1) != 0;
#pragma unroll
		for (uint32_t k = 0; k < AHEAD; k++)
		{
			low[k] = taken[k] && !counts ? lows[line[k]] : 0;
			high[k] = taken[k] && wide ? highs[line[k]] : 0;
		}
#pragma unroll
		for (uint32_t k = 0; k < AHEAD; k++)
			if (taken[k])
				*fits &= gh_aggregate_add(&aggregate, state, low[k], high[k]);
	}
}

template <bool WHOLE> static __device__ uint32_t
count_lines(const reduce_job &job, uint32_t begin, uint32_t end, uint32_t step)
{
	uint32_t	rows = 0;

	for (uint32_t i = begin; i < end; i += step)
		rows += job.lines.state[WHOLE ? i : job.reduce.order[i]] == LINE_LIVE;
	return rows;
}

static __device__ uint32_t
sum_lanes(uint32_t amount)
{
	for (int offset = 16; offset > 0; offset /= 2)
		amount += __shfl_down_sync(~0u, amount, offset);
	return amount;
}

/* A group's state has one writer in a request. */
static __device__ void
put_state(const reduce_job &job, uint32_t group, uint32_t a, const GhAggregateState &state,
		  bool *fits)
{
	*fits &= gh_aggregate_merge(&job.plan.aggregates[a],
								&job.groups.states[(uint64_t) group * job.plan.naggregates + a],
								&state);
}

static __device__ void
put_rows(const reduce_job &job, uint32_t group, uint32_t rows)
{
	char	   *record = job.groups.records + (uint64_t) group * job.groups.record_bytes;

	reinterpret_cast<GhRecordHead *>(record)->rows += rows;
}

/* --------------------------------------------------------------------- kernels */

static __global__ void __launch_bounds__(BLOCK_THREADS)
segments_kernel(const reduce_job job)
{
	const uint32_t *sorted = job.reduce.sorted;
	uint64_t	i = ELEMENT;
	uint32_t	group;

	if (i >= job.rows)
		return;
	group = sorted[i];
	if (group == GROUP_NONE)
		return;
	if (i == 0 || sorted[i - 1] != group)
	{
		job.groups.begin[group] = (uint32_t) i;
		job.reduce.segments[append_index(&job.counters->segments)] = group;
	}
	if (i + 1 == job.rows || sorted[i + 1] != group)
		job.groups.end[group] = (uint32_t) i + 1;
}

static __device__ void
cut_segment(const reduce_job &job, uint32_t group, uint32_t begin, uint32_t end)
{
	uint32_t	chunks = (end - begin + CHUNK_ROWS - 1) / CHUNK_ROWS;
	uint32_t	first = atomicAdd(&job.counters->chunks, chunks);

	job.reduce.longs[atomicAdd(&job.counters->longs, 1u)] = {group, first, chunks};
	for (uint32_t k = 0; k < chunks; k++, begin += CHUNK_ROWS)
		job.reduce.chunks[first + k] = make_uint2(begin, end - begin < CHUNK_ROWS ? end :
												  begin + CHUNK_ROWS);
}

/* A thread a segment. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
short_kernel(const reduce_job job)
{
	uint32_t	segments = job.counters->segments;
	bool		fits = true;

	for (uint64_t s = ELEMENT; s < segments; s += (uint64_t) gridDim.x * blockDim.x)
	{
		uint32_t	group = job.reduce.segments[s];
		uint32_t	begin = job.groups.begin[group];
		uint32_t	end = job.groups.end[group];

		if (end - begin > SEGMENT_SHORT)
		{
			cut_segment(job, group, begin, end);
			continue;
		}
		for (uint32_t a = 0; a < job.plan.naggregates; a++)
		{
			GhAggregateState state = {};

			add_lines<false>(job, a, begin, end, 1, &state, &fits);
			put_state(job, group, a, state, &fits);
		}
		put_rows(job, group, count_lines<false>(job, begin, end, 1));
	}
	if (!fits)
		job.counters->unfit = 1;
}

/* Warps of a chunk or of a long segment: one an aggregate, the first of which counts the rows. */
static __host__ __device__ __forceinline__ uint32_t
warps_each(const plan_view &plan)
{
	return plan.naggregates > 0 ? plan.naggregates : 1;
}

static __host__ __device__ __forceinline__ uint32_t
whole_chunks(uint32_t lines)
{
	return (lines + CHUNK_ROWS - 1) / CHUNK_ROWS;
}

/* A warp a chunk and aggregate. */
template <bool WHOLE> static __global__ void __launch_bounds__(BLOCK_THREADS)
chunk_kernel(const reduce_job job)
{
	uint32_t	each = warps_each(job.plan);
	uint64_t	all = (uint64_t) (WHOLE ? whole_chunks(job.rows) : job.counters->chunks) * each;
	uint32_t	lane = threadIdx.x & 31;
	bool		fits = true;

	for (uint64_t w = ELEMENT / 32; w < all; w += gridDim.x * (BLOCK_THREADS / 32))
	{
		uint32_t	k = (uint32_t) (w / each);
		uint32_t	a = (uint32_t) (w % each);
		uint32_t	left = job.rows - k * CHUNK_ROWS;
		uint2		range = WHOLE ? make_uint2(k * CHUNK_ROWS, k * CHUNK_ROWS + (left < CHUNK_ROWS ? left : CHUNK_ROWS)) :
			job.reduce.chunks[k];
		GhAggregateState state = {};

		if (a == 0)
		{
			uint32_t	rows = sum_lanes(count_lines<WHOLE>(job, range.x + lane, range.y, 32));

			if (lane == 0)
				job.reduce.partial_rows[k] = rows;
		}
		if (a >= job.plan.naggregates)
			continue;
		add_lines<WHOLE>(job, a, range.x + lane, range.y, 32, &state, &fits);
		merge_lanes(&job.plan.aggregates[a], &state, &fits);
		if (lane == 0)
			job.reduce.partial[(uint64_t) k * job.plan.naggregates + a] = state;
	}
	if (!fits)
		job.counters->unfit = 1;
}

static __device__ void
add_rows(const reduce_job &job, const long_segment &segment, uint32_t lane)
{
	uint32_t	rows = 0;

	for (uint32_t k = lane; k < segment.chunks; k += 32)
		rows += job.reduce.partial_rows[segment.first + k];
	rows = sum_lanes(rows);
	if (lane == 0)
		put_rows(job, segment.group, rows);
}

/* A warp has a long segment and an aggregate. */
static __device__ void
merge_segment(const reduce_job &job, const long_segment &segment, uint32_t a, bool *fits)
{
	uint32_t	lane = threadIdx.x & 31;
	GhAggregateState state = {};

	if (a == 0)
		add_rows(job, segment, lane);
	if (a >= job.plan.naggregates)
		return;
	for (uint32_t k = lane; k < segment.chunks; k += 32)
		*fits &= gh_aggregate_merge(&job.plan.aggregates[a], &state,
									&job.reduce.partial[(uint64_t) (segment.first + k) * job.plan.naggregates + a]);
	merge_lanes(&job.plan.aggregates[a], &state, fits);
	if (lane == 0)
		put_state(job, segment.group, a, state, fits);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
long_kernel(const reduce_job job)
{
	uint32_t	each = warps_each(job.plan);
	uint64_t	all = (uint64_t) job.counters->longs * each;
	bool		fits = true;

	for (uint64_t w = ELEMENT / 32; w < all; w += gridDim.x * (BLOCK_THREADS / 32))
		merge_segment(job, job.reduce.longs[w / each], (uint32_t) (w % each), &fits);
	if (!fits)
		job.counters->unfit = 1;
}

/* ----------------------------------------------------------------- the host */

/* Long segments are longer than SEGMENT_SHORT, and have a chunk more than full ones at most. */
static inline uint32_t
most_chunks(uint32_t lines)
{
	return lines / SEGMENT_SHORT + lines / CHUNK_ROWS + 1;
}

#endif							/* GPUHASH_GROUP_REDUCE_CUH */
