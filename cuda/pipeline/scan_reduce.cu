/*
 * scan_reduce.cu
 *		Adds the rows of a request to the states of their groups.
 *
 *	1. Lines are sorted by group, stably; what is not live comes last.  Without keys there is
 *	   nothing to sort.  Where joins make several rows of one, a list of these is (scan_collect.cu).
 *	2. Where a group's lines begin and end: a "segment".
 *	3. A short segment is added by one thread, from its first row to its last, and put to the
 *	   group's state.  A long one is cut into chunks, from its begin on.
 *	4. A warp adds the rows of a chunk for one aggregate: each lane every 32nd, and then the
 *	   lanes' states are merged as a tree.
 *	5. A warp does the same with the states of a long segment's chunks, and puts the result to
 *	   the group's.
 *
 * Nothing here depends on which thread comes first: a group's rows, in the order of pages
 * and lines, are cut and merged in one way only.  So floats repeat themselves.  Requests are
 * reduced one after the other, in one stream.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/pipeline/scan_device.cuh"
#include "cuda/table/memory.cuh"

/* What the kernels here work on. */
struct reduce_job
{
	plan_view	plan;
	groups_view groups;
	lines_view	lines;
	reduce_view reduce;
	uint32_t	rows;			/* of reduce.order: lines, or rows alone where there are extras */
	uint32_t	places;			/* of lines, and extras */
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
static __device__ void
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
			line[k] = i + k * step < end ? job.reduce.order[i + k * step] : job.places;
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

static __device__ uint32_t
count_lines(const reduce_job &job, uint32_t begin, uint32_t end, uint32_t step)
{
	uint32_t	rows = 0;

	for (uint32_t i = begin; i < end; i += step)
		rows += job.lines.state[job.reduce.order[i]] == LINE_LIVE;
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

	reinterpret_cast<GhScanGroup *>(record)->rows += rows;
}

/* --------------------------------------------------------------------- kernels */

static __global__ void __launch_bounds__(BLOCK_THREADS)
number_kernel(uint32_t *numbers, uint32_t count)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		numbers[i] = (uint32_t) i;
}

/* Without keys: all lines are one segment. */
static __global__ void
whole_kernel(const reduce_job job)
{
	job.groups.begin[0] = 0;
	job.groups.end[0] = job.rows;
	job.reduce.segments[0] = 0;
	job.counters->segments = 1;
}

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

			add_lines(job, a, begin, end, 1, &state, &fits);
			put_state(job, group, a, state, &fits);
		}
		put_rows(job, group, count_lines(job, begin, end, 1));
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

/* A warp a chunk and aggregate. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
chunk_kernel(const reduce_job job)
{
	uint32_t	each = warps_each(job.plan);
	uint64_t	all = (uint64_t) job.counters->chunks * each;
	uint32_t	lane = threadIdx.x & 31;
	bool		fits = true;

	for (uint64_t w = ELEMENT / 32; w < all; w += gridDim.x * (BLOCK_THREADS / 32))
	{
		uint32_t	k = (uint32_t) (w / each);
		uint32_t	a = (uint32_t) (w % each);
		uint2		range = job.reduce.chunks[k];
		GhAggregateState state = {};

		if (a == 0)
		{
			uint32_t	rows = sum_lanes(count_lines(job, range.x + lane, range.y, 32));

			if (lane == 0)
				job.reduce.partial_rows[k] = rows;
		}
		if (a >= job.plan.naggregates)
			continue;
		add_lines(job, a, range.x + lane, range.y, 32, &state, &fits);
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

/* A warp a long segment and aggregate. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
long_kernel(const reduce_job job)
{
	uint32_t	each = warps_each(job.plan);
	uint64_t	all = (uint64_t) job.counters->longs * each;
	uint32_t	lane = threadIdx.x & 31;
	bool		fits = true;

	for (uint64_t w = ELEMENT / 32; w < all; w += gridDim.x * (BLOCK_THREADS / 32))
	{
		long_segment segment = job.reduce.longs[w / each];
		uint32_t	a = (uint32_t) (w % each);
		GhAggregateState state = {};

		if (a == 0)
			add_rows(job, segment, lane);
		if (a >= job.plan.naggregates)
			continue;
		for (uint32_t k = lane; k < segment.chunks; k += 32)
			fits &= gh_aggregate_merge(&job.plan.aggregates[a], &state,
									   &job.reduce.partial[(uint64_t) (segment.first + k) *
														   job.plan.naggregates + a]);
		merge_lanes(&job.plan.aggregates[a], &state, &fits);
		if (lane == 0)
			put_state(job, segment.group, a, state, &fits);
	}
	if (!fits)
		job.counters->unfit = 1;
}

/* ----------------------------------------------------------------- the host */

/* Bits that tell groups apart: GROUP_NONE's are all ones, and no group's are. */
static int
group_bits(const cuda_scan *scan)
{
	int			bits = 0;

	while (bits < 32 && scan->groups.room >> bits != 0)
		bits++;
	return bits;
}

/* The stable sort by group; with a NULL space it only tells how much it wants. */
static cudaError_t
sort_lines(const cuda_scan *scan, const uint32_t *groups, const uint32_t *numbers, void *space,
		   size_t *space_bytes, uint32_t count, int bits)
{
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, groups, scan->reduce.sorted,
											   numbers, scan->reduce.order, (int) count, 0, bits,
											   scan->reduce_stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* Long segments are longer than SEGMENT_SHORT, and have a chunk more than full ones at most. */
static uint32_t
most_chunks(uint32_t lines)
{
	return lines / SEGMENT_SHORT + lines / CHUNK_ROWS + 1;
}

static reduce_view
reduce_carve(const cuda_scan *scan, carver *carver, uint32_t lines, size_t sort_bytes)
{
	uint32_t	chunks = most_chunks(lines);
	reduce_view reduce = {};

	reduce.numbers = carver->array<uint32_t>(lines);
	reduce.list = carver->array<uint32_t>(scan->view.multiplies ? lines : 0);
	reduce.groups = carver->array<uint32_t>(scan->view.multiplies ? lines : 0);
	reduce.sorted = carver->array<uint32_t>(lines);
	reduce.order = carver->array<uint32_t>(lines);
	reduce.sort_space = carver->take(sort_bytes);
	reduce.sort_bytes = sort_bytes;
	reduce.segments = carver->array<uint32_t>(lines);
	reduce.longs = carver->array<long_segment>(chunks);
	reduce.chunks = carver->array<uint2>(chunks);
	reduce.partial = carver->array<GhAggregateState>((uint64_t) chunks *
													 scan->plan.options.naggregates);
	reduce.partial_rows = carver->array<uint32_t>(chunks);
	return reduce;
}

/* Memory to reduce so many lines; anything but GH_OK and GH_DEVICE_ERROR leaves what there is. */
GhStatus
reduce_reserve(cuda_scan *scan, uint32_t lines, GhError *error)
{
	size_t		sort_bytes = 0;
	carver		sizes = {};
	carver		arrays = {};
	scan_block	block;

	if (lines <= scan->reduce_lines)
		return GH_OK;
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	/* for any number of bits: the table of groups may grow */
	SCAN_TRY(scan, sort_lines(scan, nullptr, nullptr, nullptr, &sort_bytes, lines, 32), error);
	(void) reduce_carve(scan, &sizes, lines, sort_bytes);
	GH_TRY(scan_alloc(scan, sizes.used, false, &block, error));
	scan_free(scan, false, &scan->reduce_block);
	scan->reduce_block = block;
	arrays.base = block.memory;
	scan->reduce = reduce_carve(scan, &arrays, lines, sort_bytes);
	scan->reduce_lines = lines;
	number_kernel<<<blocks_for(lines), BLOCK_THREADS, 0, scan->reduce_stream>>>
		(scan->reduce.numbers, lines);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}

/* Blocks of kernels that go round, of so many elements at most. */
static uint32_t
blocks_of(const cuda_scan *scan, uint64_t elements)
{
	uint64_t	most = (uint64_t) (scan->multiprocessors > 0 ? scan->multiprocessors : 1) * 8;
	uint64_t	wanted = blocks_for(elements);

	return (uint32_t) (wanted < most ? wanted : most);
}

/*
 * Enqueues the reduction of lines that were read, of which so many rows came; the sums are in the states when
 * it is done.
 */
GhStatus
reduce_launch(cuda_scan *scan, const lines_view *lines, uint32_t extras, uint32_t rows,
			  scan_counters *counters, GhError *error)
{
	cudaStream_t stream = scan->reduce_stream;
	size_t		sort_bytes = scan->reduce.sort_bytes;
	const uint32_t *groups = lines->group;
	const uint32_t *numbers = scan->reduce.numbers;
	uint64_t	threads;
	reduce_job	job;

	if (!scan->view.multiplies)
		rows = lines->count;
	if (rows == 0)
		return GH_OK;
	if (scan->view.multiplies)
	{
		groups = scan->reduce.groups;
		numbers = scan->reduce.list;
		GH_TRY(collect_list(scan, lines, extras, scan->reduce.list, scan->reduce.groups, error));
	}
	threads = (uint64_t) most_chunks(rows) * warps_each(scan->view) * 32;
	job.plan = scan->view;
	job.groups = scan->groups;
	job.lines = *lines;
	job.reduce = scan->reduce;
	job.rows = rows;
	job.places = lines->count + extras;
	if (scan->view.nkeys == 0)
		job.reduce.order = const_cast<uint32_t *>(numbers);
	job.counters = counters;
	if (scan->view.nkeys == 0)
		whole_kernel<<<1, 1, 0, stream>>>(job);
	else
	{
		SCAN_TRY(scan, sort_lines(scan, groups, numbers, scan->reduce.sort_space, &sort_bytes, rows,
								  group_bits(scan)), error);
		segments_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, stream>>>(job);
	}
	SCAN_TRY(scan, launch_status(), error);
	short_kernel<<<blocks_of(scan, rows), BLOCK_THREADS, 0, stream>>>(job);
	SCAN_TRY(scan, launch_status(), error);
	chunk_kernel<<<blocks_of(scan, threads), BLOCK_THREADS, 0, stream>>>(job);
	SCAN_TRY(scan, launch_status(), error);
	long_kernel<<<blocks_of(scan, threads), BLOCK_THREADS, 0, stream>>>(job);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}
