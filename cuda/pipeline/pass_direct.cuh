/*
 * pass_direct.cuh
 *		Counts, sums, least and greatest of integers over pages in the device's memory, with one join at most,
 *		and with conditions that compare columns with constants: a kernel without vectors.
 *
 * A warp has a page at a time, a lane every 32nd line of it, and all that is needed of a line is in the
 * lane's registers.  Pages are read where they are: a line's bytes come through the multiprocessor's cache,
 * of which shared memory leaves most.  So twice as many warps are there as in the general kernel
 * (pass_pages.cuh), with less than half of the instructions a row.
 *
 *	1. Columns are integers at places that do not depend on the tuple, in tuples without NULLs.  Of each the
 *	   aligned word is loaded that has it, and shifted.
 *	2. A comparison with a constant lets a range of values pass, or all outside of one: a subtraction and a
 *	   comparison.
 *	3. Where a line is not as this kernel takes it, the page goes on a list, from that line on, and the host
 *	   has the general kernel do what is on the list (pass_job.rest).  So whatever is NULL, short or damaged
 *	   is met there.
 *	4. Without keys each lane has sums of its own, which are a chunk's of the block in the end.  With a key
 *	   rows are added to the block's table of groups, as pass_groups.cuh says.
 */
#ifndef GPUHASH_PASS_DIRECT_CUH
#define GPUHASH_PASS_DIRECT_CUH

#include "cuda/pipeline/pass_groups.cuh"
#include "cuda/pipeline/pass_pages.cuh"
#include "cuda/pipeline/table_locate.cuh"

/* Threads of a block, and blocks on a multiprocessor; with a key one has it all, for one table. */
#define DIRECT_THREADS 256
#define DIRECT_BLOCKS 4
#define DIRECT_THREADS_KEYED 1024

/* Aggregates, at most: a lane has a sum of each in registers. */
#define DIRECT_AGGREGATES 4
#define DIRECT_CONDITIONS 4

/* An integer in a tuple's data. */
struct direct_operand
{
	uint16_t	word;			/* bytes from the start of the data to the aligned word that has it */
	uint8_t		left;			/* the word is shifted so many bits, */
	uint8_t		right;			/* and then back, as a signed number */
};

/* A value is let pass that is in a range, or that is outside of it. */
struct direct_condition
{
	direct_operand operand;
	uint32_t	outside;
	uint64_t	low;
	uint64_t	span;			/* the greatest, less the least */
};

/* What a row's key is looked up in. */
enum direct_probe
{
	DIRECT_NO_PROBE,
	DIRECT_PROBE,
	DIRECT_CHANGED				/* the rows of some keys are in another table */
};

/* And the tables, in a block's shared memory. */
enum direct_tables
{
	DIRECT_TABLE,
	DIRECT_CHANGED_KEYS,
	DIRECT_INSTEAD,
	DIRECT_TABLES
};

/* What is done with each row, as the kernel's constants. */
struct direct_plan
{
	direct_operand arguments[DIRECT_AGGREGATES];
	uint32_t	naggregates;
	uint32_t	values;			/* bit a: aggregate a needs its argument's values, */
	uint32_t	adds;			/* and is a sum, */
	uint32_t	least;			/* or the least one; else the greatest */
	uint32_t	joined;			/* bit a: its argument is what the probe finds */
	direct_condition conditions[DIRECT_CONDITIONS];
	uint32_t	nconditions;
	uint32_t	filter_step;	/* that has them; 0 without */
	uint32_t	columns;		/* 0: tuples are not looked at */
	uint32_t	prefix;			/* attributes that a tuple has to have, and bytes of its data */
	uint32_t	prefix_bytes;
	direct_operand probe;		/* the key, of which these bits are taken: */
	uint64_t	probe_mask;
	uint32_t	anti;			/* 1: rows go on that find nothing */
	uint32_t	instead;		/* 1: changed keys may have rows */
	uint32_t	probe_step;		/* or, without a probe, the number of steps */
	uint32_t	nsteps;
	direct_operand group;
	uint32_t	group_joined;	/* 1: the key is what the probe finds */
};

struct direct_job
{
	direct_plan plan;
	plan_view	view;			/* for groups */
	const probe_view *probe;
	const pass_page *pages;
	uint32_t	npages;
	uint32_t	page_bytes;
	pass_page  *rest;			/* pages for the general kernel (pass_job.rest) */
	pipe_counters *counters;
	GhAggregateState *partial;	/* by block, of all aggregates */
	uint32_t   *partial_rows;	/* by block */
	pass_groups grouped;
};

/* What a lane has of its rows; without keys their sums, too. */
struct direct_tally
{
	uint32_t	seen;
	uint32_t	live;			/* for which the conditions hold */
	uint32_t	lines;
	uint32_t	lacking;		/* rows without a group */
	uint64_t	low[DIRECT_AGGREGATES];	/* or the least or greatest value so far */
	int32_t		high[DIRECT_AGGREGATES];	/* upper words: a lane has no more than 2^31 rows of a batch */
};

/* The row of a key, for who looks for its group. */
struct direct_key
{
	uint64_t	value;

	__device__ __forceinline__ GhValue
	get(uint32_t) const
	{
		return GhValue{value, 0, 0};
	}
};

/* ----------------------------------------------------------------------- lines */

static __device__ __forceinline__ uint64_t
operand_value(const direct_operand &operand, const uint8_t *data)
{
	return (uint64_t) ((int64_t) (gh_read_aligned_u64(data + operand.word) << operand.left) >> operand.right);
}

/* Where the line's data begins, if it is as this kernel takes it; else NULL. */
static __device__ __forceinline__ const uint8_t *
plain_data(const direct_job &job, const uint8_t *page, uint32_t lines, uint32_t number)
{
	GhPageTuple tuple;

	if (job.plan.columns == 0)
		return page;
	if (!gh_page_tuple(page, job.page_bytes, lines, number, &tuple) || tuple.has_nulls ||
		tuple.natts < job.plan.prefix || tuple.end - tuple.data < job.plan.prefix_bytes)
		return nullptr;
	return page + tuple.data;
}

/* ---------------------------------------------------------------------- groups */

/* Called, so that what it needs takes no registers elsewhere. */
static __device__ __noinline__ uint32_t
direct_group(const direct_job &job, uint64_t key)
{
	return group_find(job.view, job.grouped.groups, direct_key{key}, &job.counters->groups);
}

/* To the batch's sums. */
static __device__ __noinline__ void
add_far(const direct_job &job, uint32_t group, uint32_t a, uint64_t value)
{
	pass_sum   *sum = &job.grouped.sums[(uint64_t) group * job.plan.naggregates + a];

	if (is_narrow(value, gh_sign_extension(value)))
		add_relaxed(&sum->narrow, value);
	else
		add_limbs(sum, value, gh_sign_extension(value));
}

/* Adds the row to its group; false: it has none. */
static __device__ __forceinline__ bool
add_direct(const direct_job &job, const pass_table &table, uint64_t key, const uint64_t *values)
{
	uint64_t	words[PASS_KEYS_MAX] = {key};
	uint32_t	before[DIRECT_AGGREGATES];
	uint32_t	vacant;
	uint32_t	entry = entry_find(table, job.grouped.entries * PASS_SLOTS_EACH, 1, words, 0, &vacant);
	uint32_t	group = GROUP_NONE;
	uint32_t   *sums;
	uint32_t	at = 1 + job.plan.naggregates;

	if (entry == ENTRY_NONE)
	{
		group = direct_group(job, key);
		if (group == GROUP_NONE)
			return false;
		if (vacant != ENTRY_NONE)
			entry_add(table, job.grouped.entries, 1, vacant, words, 0, group);
		add_relaxed(&job.grouped.rows[group], 1);
#pragma unroll
		for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
			if ((job.plan.adds >> a & 1) != 0)
				add_far(job, group, a, values[a]);
		return true;
	}
	sums = table.words + entry * table.width;
	atomicAdd(&sums[0], 1u);
	/* all are on their way before the first carry is waited for */
#pragma unroll
	for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
		if ((job.plan.adds >> a & 1) != 0)
		{
			before[a] = is_narrow(values[a], gh_sign_extension(values[a])) ?
				atomicAdd(&sums[at], (uint32_t) values[a]) : 0;
			at += 2;
		}
	at = 1 + job.plan.naggregates;
#pragma unroll
	for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
		if ((job.plan.adds >> a & 1) != 0)
		{
			uint32_t	low = (uint32_t) values[a];
			uint32_t	high = (uint32_t) (values[a] >> 32) + (before[a] + low < low);

			if (!is_narrow(values[a], gh_sign_extension(values[a])))
				add_far(job, table.groups[entry], a, values[a]);
			else if (high != 0)
				atomicAdd(&sums[at + 1], high);
			at += 2;
		}
	return true;
}

static __device__ __forceinline__ void
add_values(const direct_plan &plan, const uint64_t *values, direct_tally *tally)
{
#pragma unroll
	for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
		if ((plan.adds >> a & 1) != 0)
		{
			tally->low[a] += values[a];
			tally->high[a] += (int32_t) (values[a] >> 32) >> 31;
			tally->high[a] += tally->low[a] < values[a];
		}
		else if ((plan.values >> a & 1) != 0 &&
				 ((int64_t) values[a] < (int64_t) tally->low[a]) == ((plan.least >> a & 1) != 0))
			tally->low[a] = values[a];
}

/* ------------------------------------------------------------------------ pages */

/* What the key finds; false: nothing. */
template <direct_probe PROBED> static __device__ __forceinline__ bool
direct_find(const direct_plan &plan, const table_view *index, uint64_t key, uint64_t *found)
{
	uint64_t   *place;

	if (PROBED == DIRECT_CHANGED && locate_key<layout_k8v8>(index[DIRECT_CHANGED_KEYS], key, found, &place))
		return plan.instead != 0 && locate_key<layout_k8v8>(index[DIRECT_INSTEAD], key, found, &place);
	return locate_key<layout_k8v8>(index[DIRECT_TABLE], key, found, &place);
}

/* A line for each lane, from the line behind `first` on; false: the general kernel has to do them. */
template <bool KEYED, direct_probe PROBED> static __device__ __forceinline__ bool
direct_lines(const direct_job &job, const table_view *index, const pass_table &table, const uint8_t *page,
			 uint32_t asked, uint32_t lines, uint32_t first, direct_tally *tally)
{
	const direct_plan &plan = job.plan;
	uint32_t	number = first + threadIdx.x % 32 + 1;
	bool		goes = number <= asked && gh_line_is_normal(page, number);
	const uint8_t *data = goes ? plain_data(job, page, lines, number) : page;
	uint64_t	values[DIRECT_AGGREGATES];
	uint64_t	group = 0;

	if (!__all_sync(~0u, data != nullptr))
		return false;
	tally->seen += goes;
	for (uint32_t c = 0; c < plan.nconditions; c++)
	{
		const direct_condition &condition = plan.conditions[c];

		goes = goes && (operand_value(condition.operand, data) - condition.low <= condition.span) !=
			(condition.outside != 0);
	}
	tally->live += goes;
	/* of a lane without a line the words are some of the page */
#pragma unroll
	for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
		values[a] = (plan.values >> a & 1) != 0 ? operand_value(plan.arguments[a], data) : 0;
	if (KEYED)
		group = operand_value(plan.group, data);
	if (PROBED != DIRECT_NO_PROBE)
	{
		uint64_t	found = 0;
		uint64_t	key = operand_value(plan.probe, data) & plan.probe_mask;

		goes = goes && direct_find<PROBED>(plan, index, key, &found) != (plan.anti != 0);
#pragma unroll
		for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
			values[a] = (plan.joined >> a & 1) != 0 ? found : values[a];
		if (KEYED && plan.group_joined != 0)
			group = found;
	}
	tally->lines += goes;
	if (!goes)
		return true;
	if (!KEYED)
		add_values(plan, values, tally);
	else if (!add_direct(job, table, group, values))
		tally->lacking++;
	return true;
}

/* The general kernel does the page from there on. */
static __device__ __forceinline__ void
leave_rest(const direct_job &job, pass_page page, uint32_t number, uint32_t first)
{
	page.block = number | first / 32 << REST_PAGE_BITS;
	if (threadIdx.x % 32 == 0)
		job.rest[atomicAdd(reinterpret_cast<unsigned long long *>(&job.counters->rest), 1ull)] = page;
}

template <bool KEYED, direct_probe PROBED> static __device__ __forceinline__ void
direct_page(const direct_job &job, const table_view *index, const pass_table &table, const pass_page &page,
			uint32_t number, direct_tally *tally)
{
	const uint8_t *at = reinterpret_cast<const uint8_t *>(page.at);
	uint32_t	lines = gh_page_lines(at, job.page_bytes);

	if (page.lines > lines)
	{
		leave_rest(job, page, number, 0);
		return;
	}
	for (uint32_t first = 0; first < page.lines; first += 32)
	{
		bool		done = direct_lines<KEYED, PROBED>(job, index, table, at, page.lines, lines, first,
													   tally);

		/* lanes that have added a row come back to those that had none */
		__syncwarp();
		if (!done)
		{
			leave_rest(job, page, number, first);
			return;
		}
	}
}

/* ------------------------------------------------------------------- the kernel */

/* By a block's threads. */
static __device__ __forceinline__ void
copy_view(table_view *to, const table_view *from)
{
	for (uint32_t i = threadIdx.x; i < sizeof(*to) / sizeof(uint64_t); i += blockDim.x)
		reinterpret_cast<uint64_t *>(to)[i] = reinterpret_cast<const uint64_t *>(from)[i];
}

static __device__ __forceinline__ uint32_t
sum_of_warp(uint32_t amount)
{
	for (int offset = 16; offset > 0; offset /= 2)
		amount += __shfl_down_sync(~0u, amount, offset);
	return amount;
}

/* What the warp has counted. */
template <bool KEYED> static __device__ __forceinline__ void
tell_direct(const direct_job &job, const direct_tally *tally)
{
	uint32_t	seen = sum_of_warp(tally->seen);
	uint32_t	live = sum_of_warp(tally->live);
	uint32_t	lines = sum_of_warp(tally->lines);
	uint32_t	lacking = sum_of_warp(tally->lacking);

	if (threadIdx.x % 32 != 0)
		return;
	add_relaxed(&job.counters->seen, seen);
	add_relaxed(&job.counters->lines, lines);
	for (uint32_t s = 0; s < job.plan.nsteps; s++)
		add_relaxed(&job.counters->passed[s],
					s < job.plan.filter_step ? seen : s < job.plan.probe_step ? live : lines);
	if (KEYED && lacking > 0)
		atomicAdd(&job.counters->groups.no_group, lacking);
	if (!KEYED)
		atomicAdd(&job.partial_rows[blockIdx.x], lines);
}

template <bool KEYED, direct_probe PROBED> static __global__ void
__launch_bounds__(KEYED ? DIRECT_THREADS_KEYED : DIRECT_THREADS, KEYED ? 1 : DIRECT_BLOCKS)
direct_kernel(const __grid_constant__ direct_job job)
{
	extern __shared__ uint64_t direct_memory[];
	__shared__ table_view index[PROBED == DIRECT_CHANGED ? DIRECT_TABLES : 1];
	uint32_t	warps = blockDim.x / 32;
	uint32_t	all = gridDim.x * warps;
	uint32_t	p = blockIdx.x * warps + threadIdx.x / 32;
	direct_tally tally = {};
	pass_table	table = {};
	pass_page	next = {};

	if (PROBED != DIRECT_NO_PROBE)
		copy_view(&index[DIRECT_TABLE], &job.probe->index);
	if (PROBED == DIRECT_CHANGED)
	{
		copy_view(&index[DIRECT_CHANGED_KEYS], &job.probe->changed);
		copy_view(&index[DIRECT_INSTEAD], &job.probe[1].index);
	}
	if (KEYED)
		table = table_begin(job.view, job.grouped, direct_memory);
	else if (threadIdx.x == 0)
		job.partial_rows[blockIdx.x] = 0;
	__syncthreads();
#pragma unroll
	for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
		if (((job.plan.values & ~job.plan.adds) >> a & 1) != 0)
			tally.low[a] = (job.plan.least >> a & 1) != 0 ? (uint64_t) INT64_MAX : (uint64_t) INT64_MIN;
	if (p < job.npages)
		next = job.pages[p];
	for (; p < job.npages; p += all)
	{
		pass_page	page = next;

		if (p + all < job.npages)
		{
			next = job.pages[p + all];
			prefetch_page(next, job.page_bytes);
		}
		direct_page<KEYED, PROBED>(job, index, table, page, p, &tally);
	}
	__syncthreads();
	if (KEYED)
		table_end(job.view, job.grouped, table);
	else
	{
		__shared__ GhAggregateState scratch[DIRECT_THREADS / 32];

#pragma unroll
		for (uint32_t a = 0; a < DIRECT_AGGREGATES; a++)
			if (a < job.plan.naggregates)
			{
				GhAggregateState state = {tally.lines, tally.low[a], (uint64_t) (int64_t) tally.high[a], 0,
					0};
				bool		fits = true;

				if (tally.lines == 0)
					state = {};
				merge_block(job.view.aggregates[a], state, scratch,
							&job.partial[(uint64_t) blockIdx.x * job.plan.naggregates + a], &fits);
			}
	}
	tell_direct<KEYED>(job, &tally);
}

static_assert(sizeof(table_view) % sizeof(uint64_t) == 0, "what is probed is copied by words");

#endif							/* GPUHASH_PASS_DIRECT_CUH */
