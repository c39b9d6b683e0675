/*
 * runs.cu
 *		Copying runs of values, each from a place of its own: what FIND_ALL gives
 *		out, what an ADD moves to larger room, what compaction gathers.
 *
 * A warp takes 32 runs.  Their lengths are summed up in registers, and the lanes
 * walk along the concatenation of the runs, so that lanes are busy and stores are
 * whole lines however short or uneven the runs are; which run an element belongs to
 * is found in five steps among the lanes.  Lengths are in units, the widest
 * words that a value is made of, so a wide value is a short run itself.
 *
 * Runs longer than RUN_LONG are listed instead, and then copied in pieces by the
 * whole grid.  One 64-bit atomic per long run gives it its place in the list and the
 * number of its first piece at once, so the list is ordered by piece and a
 * block finds a piece's run by bisection.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* Units; a run that is longer is everybody's work. */
#define RUN_LONG 4096
/* Units of a piece of a long run: a block's work. */
#define PIECE_UNITS ((uint64_t) 8192)
/* Blocks that share the pieces. */
#define PIECE_BLOCKS 2048

/* Elements of a lane that are in flight together. */
#define IN_FLIGHT 4

/* The part of a run that is to be copied. */
template <typename UNIT>
struct run_part
{
	const UNIT *from;
	UNIT	   *to;
	uint64_t	length;			/* units */
};

template <typename UNIT> static __device__ __forceinline__ run_part<UNIT>
clip_run(const run_list &runs, uint32_t units, uint64_t i)
{
	uint64_t	begin = runs.offsets[i];
	uint64_t	end = runs.offsets[i + 1];
	uint64_t	low = begin > runs.first ? begin : runs.first;
	uint64_t	high = end < runs.end ? end : runs.end;
	run_part<UNIT> part = {nullptr, nullptr, 0};

	if (low < high)
	{
		const char *source = static_cast<const char *>(runs.sources) +
			i * runs.source_stride;
		uint64_t	target = runs.targets == nullptr ? low - runs.first :
			runs.targets[i] + (low - begin);

		part.from = *reinterpret_cast<const UNIT *const *>(source) + (low - begin) * units;
		part.to = reinterpret_cast<UNIT *>(runs.to) + target * units;
		part.length = (high - low) * units;
	}
	return part;
}

/* Lists a long run. */
static __device__ __forceinline__ void
defer_run(const long_runs &later, uint64_t i, uint64_t length)
{
	uint64_t	pieces = (length + PIECE_UNITS - 1) / PIECE_UNITS;
	uint64_t	before = atomicAdd(reinterpret_cast<unsigned long long *>(later.taken),
								   (unsigned long long) (pieces << 32 | 1));

	later.runs[(uint32_t) before] = make_uint2((uint32_t) i, (uint32_t) (before >> 32));
}

/* The last lane whose begin is not above the element: the one whose run it is in. */
static __device__ __forceinline__ int
owner_lane(uint32_t begin, uint32_t element)
{
	int			owner = 0;

#pragma unroll
	for (int step = 16; step > 0; step /= 2)
		if (__shfl_sync(ALL_LANES, begin, owner + step) <= element)
			owner += step;
	return owner;
}

template <typename UNIT> static __global__ void __launch_bounds__(BLOCK_THREADS)
runs_kernel(run_list runs, uint32_t units, long_runs later)
{
	uint64_t	i = ELEMENT;
	uint32_t	lane = threadIdx.x & 31;
	run_part<UNIT> part = {nullptr, nullptr, 0};
	uint32_t	sum;
	uint32_t	total;
	uint32_t	begin;

	if (i < runs.count)
		part = clip_run<UNIT>(runs, units, i);
	if (part.length > RUN_LONG)
	{
		defer_run(later, i, part.length);
		part.length = 0;
	}
	sum = (uint32_t) part.length;
	for (int apart = 1; apart < 32; apart *= 2)
	{
		uint32_t	before = __shfl_up_sync(ALL_LANES, sum, (unsigned) apart);

		if (lane >= (uint32_t) apart)
			sum += before;
	}
	total = __shfl_sync(ALL_LANES, sum, 31);
	begin = sum - (uint32_t) part.length;

	for (uint32_t base = 0; base < total; base += 32 * IN_FLIGHT)
	{
		UNIT		unit[IN_FLIGHT] = {};
		UNIT	   *to[IN_FLIGHT];

#pragma unroll
		for (int k = 0; k < IN_FLIGHT; k++)
		{
			uint32_t	element = base + (uint32_t) k * 32 + lane;
			int			owner = owner_lane(begin, element);
			uint32_t	at = element - __shfl_sync(ALL_LANES, begin, owner);
			const UNIT *from = reinterpret_cast<const UNIT *>(__shfl_sync(
				ALL_LANES, reinterpret_cast<unsigned long long>(part.from), owner));

			to[k] = reinterpret_cast<UNIT *>(__shfl_sync(
				ALL_LANES, reinterpret_cast<unsigned long long>(part.to), owner)) + at;
			if (element < total)
				unit[k] = from[at];
		}
#pragma unroll
		for (int k = 0; k < IN_FLIGHT; k++)
			if (base + (uint32_t) k * 32 + lane < total)
				*to[k] = unit[k];
	}
}

/* A block copies units that stand together. */
template <typename UNIT> static __device__ __forceinline__ void
block_copy(UNIT *to, const UNIT *from, uint32_t length)
{
	for (uint32_t base = threadIdx.x; base < length; base += BLOCK_THREADS * IN_FLIGHT)
	{
		UNIT		unit[IN_FLIGHT] = {};

#pragma unroll
		for (uint32_t k = 0; k < IN_FLIGHT; k++)
			if (base + k * BLOCK_THREADS < length)
				unit[k] = from[base + k * BLOCK_THREADS];
#pragma unroll
		for (uint32_t k = 0; k < IN_FLIGHT; k++)
			if (base + k * BLOCK_THREADS < length)
				to[base + k * BLOCK_THREADS] = unit[k];
	}
}

template <typename UNIT> static __global__ void __launch_bounds__(BLOCK_THREADS)
long_runs_kernel(run_list runs, uint32_t units, long_runs list)
{
	uint32_t	count = (uint32_t) *list.taken;
	uint64_t	pieces = *list.taken >> 32;

	for (uint64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x)
	{
		uint32_t	low = 0;
		uint32_t	high = count;

		/* the last run whose first piece is not above this one */
		while (high - low > 1)
		{
			uint32_t	middle = low + (high - low) / 2;

			if (list.runs[middle].y <= piece)
				low = middle;
			else
				high = middle;
		}

		uint2		run = list.runs[low];
		run_part<UNIT> part = clip_run<UNIT>(runs, units, run.x);
		uint64_t	at = (piece - run.y) * PIECE_UNITS;
		uint64_t	rest = part.length - at;

		block_copy(part.to + at, part.from + at,
				   (uint32_t) (rest < PIECE_UNITS ? rest : PIECE_UNITS));
	}
}

/* How many long runs there can be among that many with that many values in all. */
uint64_t
runs_long_max(const cuda_table *table, uint64_t runs, uint64_t values)
{
	uint32_t	size = table->options.value_size;
	uint64_t	most = values * (size / value_unit(size)) / RUN_LONG;

	return most < runs ? most : runs;
}

long_runs
runs_carve(carver *carver, uint64_t long_max)
{
	long_runs	list;

	list.taken = carver->array<uint64_t>(1);
	list.runs = carver->array<uint2>(long_max);
	return list;
}

template <typename UNIT> static GhStatus
runs_copy_by(cuda_table *table, const run_list *runs, const long_runs *scratch,
			 GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint32_t	units = table->options.value_size / (uint32_t) sizeof(UNIT);

	CUDA_TRY(table, cudaMemsetAsync(scratch->taken, 0, sizeof(uint64_t), stream), error);
	runs_kernel<UNIT><<<blocks_for(runs->count), BLOCK_THREADS, 0, stream>>>(
		*runs, units, *scratch);
	LAUNCH_TRY(table, error);
	/* how many are long only the device knows: without any the blocks end at once */
	long_runs_kernel<UNIT><<<PIECE_BLOCKS, BLOCK_THREADS, 0, stream>>>(
		*runs, units, *scratch);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/*
 * Enqueues the copy on lane 0.  Fewer than 2^32 runs, of fewer than 2^32 pieces;
 * scratch has room for runs_long_max of what is copied.
 */
GhStatus
runs_copy(cuda_table *table, const run_list *runs, const long_runs *scratch, GhError *error)
{
	if (runs->count == 0 || runs->first >= runs->end)
		return GH_OK;
	switch (value_unit(table->options.value_size))
	{
		case 16:
			return runs_copy_by<uint4>(table, runs, scratch, error);
		case 8:
			return runs_copy_by<uint2>(table, runs, scratch, error);
		case 4:
			return runs_copy_by<uint32_t>(table, runs, scratch, error);
		default:
			return runs_copy_by<uint8_t>(table, runs, scratch, error);
	}
}
