/*
 * pass_pages.cuh
 *		The kernel that adds up the rows of pages as it reads them (pipeline_pass.cu).
 *
 * A warp has a page at a time, in shared memory, and a lane every 32nd line of it.  No warp waits for another
 * one, but at the begin and the end of its block.  Without keys what the lanes' rows come to is added over
 * the lanes at once (pass_sums.cuh), and lane a has the sum of aggregate a; least and greatest values,
 * moments and truth values each lane has for itself.
 */
#ifndef GPUHASH_PASS_PAGES_CUH
#define GPUHASH_PASS_PAGES_CUH

#include <cuda_pipeline.h>

#include "cuda/pipeline/group_reduce.cuh"
#include "cuda/pipeline/pass_groups.cuh"
#include "cuda/pipeline/pass_sums.cuh"
#include "cuda/pipeline/page_lines.cuh"
#include "cuda/pipeline/row_steps.cuh"

/* Warps of a block without keys.  With them a block's table of groups is its warps' together. */
#define PASS_WARPS 4
/*
 * Warps on a multiprocessor: with more there were fewer registers, and less room in the cache for what is
 * read of tables, in which each lane has a line of its own on its way.
 */
#define PASS_WARPS_RESIDENT 16

/* A page, as a warp is told. */
struct pass_page
{
	const char *at;				/* in the device's memory */
	uint32_t	block;			/* other: its number among the others */
	uint16_t	lines;			/* all are asked for */
	uint16_t	other;			/* 1: more is to be said of it */
};

/* A column that lies at one place in all tuples without NULLs, as its value does in a vector. */
struct pass_column
{
	uint16_t	place;			/* bytes from the start of a tuple's data: aligned */
	uint16_t	low;			/* number of the array of its vector, which has no high words */
	uint32_t	load;			/* a GhLoad: of a number or a truth value */
};

/* Such columns that are read so, at most. */
#define PASS_COLUMNS_MAX 16

/* What each row needs of the plan: with the job in the kernel's constant memory. */
struct pass_plan
{
	vector_place places[GH_PROGRAM_VECTORS_MAX];
	step_view	steps[GH_STEPS_MAX];
	GhAggregate aggregates[PASS_AGGREGATES_MAX];
	GhRecordKey keys[PASS_KEYS_MAX];
	pass_column columns[PASS_COLUMNS_MAX];
	uint32_t	naggregates;
	uint32_t	nkeys;
	uint32_t	nprobes;		/* views of probes, with those of changed keys */
	uint32_t	nparts;			/* of all probes */
	uint32_t	ncolumns;		/* of these; others of the page are behind them */
	uint32_t	nothers;
	uint32_t	prefix;			/* attributes that a tuple has to have for them, and bytes of its data */
	uint32_t	prefix_bytes;
	uint32_t	tids;			/* 1: there is a column of places */
	uint32_t	sure;			/* 1: all values may be summed */
};

struct pass_job
{
	run_job		run;
	pass_plan	plan;
	const pass_page *pages;
	const input_page *others;
	const uint64_t *bitmaps;
	uint32_t	npages;
	uint32_t	first;			/* page, of the request's */
	GhBackRow  *back;
	uint32_t	back_room;
	GhAggregateState *partial;	/* by block, of all aggregates */
	uint32_t   *partial_rows;	/* by block */
	uint32_t	nlows;
	uint32_t	nhighs;
	uint32_t	warp_bytes;		/* of shared memory (pass_warp_bytes) */
	uint32_t	probes_bytes;	/* likewise, of a block */
	uint32_t	rest;			/* 1: pages are those that another kernel has left (leave_rest) */
	pass_groups grouped;		/* with keys */
};

/* What such a page has in place of its block: its number, above that by how many times 32 lines are done. */
#define REST_PAGE_BITS 20
#define REST_PAGE_MASK ((1u << REST_PAGE_BITS) - 1)

static_assert(GH_REQUEST_PAGES_MAX < 1 << REST_PAGE_BITS &&
			  GH_PAGE_BYTES_MAX / GH_LINE_BYTES / 32 <= 1 << (32 - REST_PAGE_BITS),
			  "a page and a line fit in a word");

/* A page, and the vectors of a row for each lane. */
static __host__ __device__ __forceinline__ uint32_t
pass_warp_bytes(uint32_t page_bytes, uint32_t nlows, uint32_t nhighs)
{
	return page_bytes + 32 * (nlows * (uint32_t) (sizeof(uint64_t) + 1) + nhighs * (uint32_t) sizeof(uint64_t));
}

/* Of shared memory, for a block's copy of what is probed. */
static __host__ __device__ __forceinline__ uint32_t
pass_probes_bytes(uint32_t nprobes, uint32_t nparts, uint32_t nfills)
{
	uint32_t	bytes = nprobes * (uint32_t) sizeof(probe_view) + nparts * (uint32_t) sizeof(GhKeyPart) +
		nfills * (uint32_t) sizeof(join_fill);

	return (bytes + 15) / 16 * 16;
}

/*
 * What a lane has of its rows so far, or of those of all lanes.  Beside it there are, without keys, states of
 * the lane's rows, by aggregate, for those that are no sums: they are indexed, and so in memory.
 */
struct pass_tally
{
	uint64_t	count;			/* of all lanes: values of the aggregate whose number is the lane's */
	uint64_t	low;			/* and their sum */
	uint64_t	high;
	uint32_t	passed;			/* likewise: rows that do not go back, behind the step whose number is the lane's */
	uint32_t	lacking;		/* rows without a group */
	uint32_t	seen;			/* of all lanes */
	uint32_t	lines;			/* likewise, that were added */
	bool		fits;
};

static_assert(GH_STEPS_MAX <= 32 && PASS_AGGREGATES_MAX <= 32, "a lane has a step and an aggregate at most");

/* ---------------------------------------------------------------------- pages */

/*
 * The vectors of a warp's rows, behind its page: zero at first, for arguments that an instruction does not
 * have are read.
 */
static __device__ __forceinline__ values_view
warp_values(const pass_job &job, char *at)
{
	uint64_t   *words = reinterpret_cast<uint64_t *>(at);
	uint32_t	nwords = (job.nlows + job.nhighs) * 32;
	values_view values;

	values.places = job.plan.places;
	values.low = words;
	values.high = words + job.nlows * 32;
	values.null = reinterpret_cast<uint8_t *>(words + nwords);
	values.stride = 32;
	for (uint32_t i = threadIdx.x % 32; i < nwords; i += 32)
		words[i] = 0;
	for (uint32_t i = threadIdx.x % 32; i < job.nlows * 32; i += 32)
		values.null[i] = 0;
	return values;
}

/*
 * What is probed, copied by all threads of the block: the rows of tables would take it out of the cache again
 * and again. Who reads it waits for them.
 */
static __device__ const probe_view *
probes_begin(const pass_job &job, char *at)
{
	const uint64_t *from = reinterpret_cast<const uint64_t *>(job.run.view.probes);
	probe_view *probes = reinterpret_cast<probe_view *>(at);
	GhKeyPart  *parts = reinterpret_cast<GhKeyPart *>(probes + job.plan.nprobes);
	join_fill  *fills = reinterpret_cast<join_fill *>(parts + job.plan.nparts);

	for (uint32_t i = threadIdx.x; i < job.plan.nprobes * sizeof(probe_view) / sizeof(uint64_t); i += blockDim.x)
		reinterpret_cast<uint64_t *>(at)[i] = from[i];
	__syncthreads();
	for (uint32_t p = 0; threadIdx.x == 0 && p < job.plan.nprobes; p++)
	{
		probe_view *probe = &probes[p];

		for (uint32_t k = 0; k < probe->nparts; k++)
			parts[k] = probe->parts[k];
		for (uint32_t f = 0; f < probe->nfills; f++)
			fills[f] = probe->fills[f];
		probe->parts = parts;
		probe->fills = fills;
		parts += probe->nparts;
		fills += probe->nfills;
	}
	return probes;
}

/* Has a page that is in the device's memory brought nearer, for the warp's next turn. */
static __device__ __forceinline__ void
prefetch_page(const pass_page &page, uint32_t page_bytes)
{
	if (page.other == 0)
		for (uint32_t at = threadIdx.x % 32 * 128; at < page_bytes; at += 32 * 128)
			asm volatile("prefetch.global.L2 [%0];" :: "l"(page.at + at));
}

static __device__ __forceinline__ void
load_page(const pass_page &page, uint4 *to, uint32_t page_bytes)
{
	const uint4 *from = reinterpret_cast<const uint4 *>(page.at);

#pragma unroll 4
	for (uint32_t at = threadIdx.x % 32; at < page_bytes / sizeof(uint4); at += 32)
		__pipeline_memcpy_async(to + at, from + at, sizeof(uint4));
	__pipeline_commit();
	__pipeline_wait_prior(0);
	__syncwarp();
}

/* One of which more is to be said; returns where its texts are. */
static __device__ const char *
load_other(const input_page &from, uint4 *to, uint32_t page_bytes)
{
	if (from.near != 0)
		page_read_near<warp_threads>(to, from.asked.page, page_bytes);
	else
		page_read<warp_threads>(to, from.asked.page, page_bytes);
	__syncwarp();
	if (from.kept == nullptr)
		return static_cast<const char *>(from.asked.page);
	keep_page<warp_threads>(to, from, page_bytes);
	return from.kept;
}

/* ---------------------------------------------------------------------- lines */

static __device__ void
note_back_row(const pass_job &job, uint32_t page, uint32_t line, uint32_t step)
{
	uint64_t	at = atomicAdd(reinterpret_cast<unsigned long long *>(&job.run.batch.counters->backs), 1ull);

	if (at < job.back_room)
		job.back[at] = {job.first + page, (uint16_t) line, (uint16_t) step};
}

/*
 * A page is broken of which rows may have been added: as if more went back than there is room for, all is
 * done once more.
 */
static __device__ void
give_up(const pass_job &job)
{
	add_relaxed(&job.run.batch.counters->backs, (uint64_t) job.back_room + 1);
}

/* Adds the lanes' rows to what each aggregate has that takes them; all lanes come here. */
static __device__ __forceinline__ void
add_rows_of_lanes(const pass_plan &plan, const line_values &row, uint32_t takes, GhAggregateState *states,
				  pass_tally *tally)
{
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const GhAggregate aggregate = plan.aggregates[a];
		bool		mine = (takes >> a & 1) != 0;
		uint32_t	mask = __ballot_sync(~0u, mine);
		GhValue		value = {0, 0, 0};
		GhInt128	sum = 0;

		if (mask == 0)
			continue;
		if (mine && aggregate.kind > GH_AGGREGATE_COUNT)
			value = row.get(aggregate.argument);
		if (aggregate.kind > GH_AGGREGATE_SUM)
		{
			if (mine)
				tally->fits &= gh_aggregate_add(&aggregate, &states[a], value.low,
												aggregate.value_class == GH_CLASS_INT128 ? value.high : 0);
			continue;
		}
		if (aggregate.kind == GH_AGGREGATE_SUM)
			sum = sum_values(mask, value.low,
							 aggregate.value_class == GH_CLASS_INT128 ? value.high : gh_sign_extension(value.low));
		if (threadIdx.x % 32 == a)
		{
			tally->count += __popc(mask);
			tally->fits &= gh_sum_add(&tally->low, &tally->high, (uint64_t) sum, (uint64_t) ((GhUint128) sum >> 64));
		}
	}
}

/* Which aggregates take the row; false: a value is one that is not summed. */
static __device__ __forceinline__ bool
lane_takes(const pass_plan &plan, const line_values &row, uint32_t *takes)
{
	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		const GhAggregate aggregate = plan.aggregates[a];
		GhValue		value;

		if (aggregate.filter != GH_AGGREGATE_NO_FILTER)
		{
			value = row.get(aggregate.filter);
			if (!gh_bool_true(value.low, value.null))
				continue;
		}
		if (aggregate.kind != GH_AGGREGATE_COUNT_ROWS)
		{
			value = row.get(aggregate.argument);
			if (value.null)
				continue;
			if (plan.sure == 0 && gh_aggregate_is_sum(&aggregate) && !gh_aggregate_fits(&aggregate, value.low, value.high))
				return false;
		}
		*takes |= (uint32_t) 1 << a;
	}
	return true;
}

/* Rows that do not go back, behind so many steps each; all lanes come here. */
static __device__ __forceinline__ void
count_steps(uint32_t nsteps, uint32_t came, pass_tally *tally)
{
	for (uint32_t s = 0; s < nsteps; s++)
	{
		uint32_t	behind = __ballot_sync(~0u, came > s);

		if (threadIdx.x % 32 == s)
			tally->passed += __popc(behind);
	}
}

/* The page that a warp has. */
struct pass_here
{
	const uint8_t *page;		/* in shared memory */
	const char *text_at;
	const input_page *other;	/* where more is to be said of it; else NULL */
	uint32_t	block;			/* else */
	uint32_t	asked;			/* lines */
	uint32_t	lines;			/* that it has */
	uint32_t	number;			/* of the batch */
	const probe_view *probes;
};

/* The value of such a column; *back: it cannot be read here. */
static __device__ __forceinline__ uint64_t
column_value(uint32_t load, const uint8_t *at, bool *back)
{
	switch (load)
	{
		case GH_LOAD_INT2:
			return (uint64_t) (int64_t) *reinterpret_cast<const int16_t *>(at);
		case GH_LOAD_INT4:
			return (uint64_t) (int64_t) *reinterpret_cast<const int32_t *>(at);
		case GH_LOAD_OID:
			return gh_read_aligned_u32(at);
		case GH_LOAD_FLOAT4:
			return gh_float4_bits(gh_read_aligned_u32(at));
		case GH_LOAD_BOOL:
			*back |= at[0] > 1;
			return at[0];
		default:
			return gh_read_aligned_u64(at);
	}
}

/* What is known of a line, in one word. */
#define OTHER_READ 1			/* the page is not broken */
#define OTHER_VISIBLE 2
#define OTHER_UNTOLD 4
#define OTHER_BACK 8

/* load_columns() of what is no pass_column, or where a tuple has NULLs; OTHER_READ and OTHER_BACK. */
static __device__ __noinline__ uint32_t
other_columns(const pass_job &job, const line_values row, const pass_here here, const GhPageTuple tuple, uint32_t first)
{
	bool		back = false;
	bool		read = load_columns(job.run.view.shape, row, here.page, reinterpret_cast<const uint8_t *>(here.text_at), &tuple, first,
									 &back);

	return (read ? OTHER_READ : 0) | (back ? OTHER_BACK : 0);
}

template <bool PROGRAM> static __device__ __forceinline__ bool
read_columns(const pass_job &job, const line_values &row, const pass_here &here, const GhPageTuple &tuple, uint32_t first,
			 bool *back)
{
	uint32_t	known;

	if (PROGRAM)
		return load_columns(job.run.view.shape, row, here.page, reinterpret_cast<const uint8_t *>(here.text_at), &tuple, first,
							back);
	known = other_columns(job, row, here, tuple, first);
	*back |= (known & OTHER_BACK) != 0;
	return (known & OTHER_READ) != 0;
}

/* read_line() of a page of which nothing more is to be said. */
template <bool PROGRAM> static __device__ __forceinline__ bool
read_plain_line(const pass_job &job, const line_values &row, const pass_here &here, uint32_t number, line_seen *seen)
{
	const pass_plan &plan = job.plan;
	const pipe_view &view = job.run.view;
	uint32_t	ncolumns = 0;
	GhPageTuple tuple;

	seen->visible = gh_line_is_normal(here.page, number);
	if (!seen->visible || plan.ncolumns + plan.nothers == 0)
		return true;
	if (!gh_page_tuple(here.page, view.page_bytes, here.lines, number, &tuple))
		return false;
	if (!tuple.has_nulls && tuple.natts >= plan.prefix && tuple.end - tuple.data >= plan.prefix_bytes)
		for (; ncolumns < plan.ncolumns; ncolumns++)
		{
			pass_column column = plan.columns[ncolumns];

			row.low[column.low * 32] = column_value(column.load, here.page + tuple.data + column.place, &seen->back);
			row.null[column.low * 32] = 0;
		}
	return ncolumns == plan.ncolumns + plan.nothers ||
		read_columns<PROGRAM>(job, row, here, tuple, ncolumns, &seen->back);
}

/* Called, so that what it needs takes no registers elsewhere. */
static __device__ __noinline__ uint32_t
other_line(const pass_job &job, const line_values row, const pass_here here, uint32_t number)
{
	GhPageRef	asked = {here.text_at, here.asked, GH_PAGE_ALL_LINES, here.block, 0, 0, 0, 0};
	line_seen	seen;
	bool		read;

	if (here.other != nullptr)
		asked = here.other->asked;
	read = read_line(job.run.view, row, asked, job.bitmaps, here.page, reinterpret_cast<const uint8_t *>(here.text_at),
					 here.lines, number, &seen);

	return (read ? OTHER_READ : 0) | (seen.visible ? OTHER_VISIBLE : 0) | (seen.untold ? OTHER_UNTOLD : 0) |
		(seen.back ? OTHER_BACK : 0);
}

/* read_line() of any page. */
static __device__ __forceinline__ bool
read_other_line(const pass_job &job, const line_values &row, const pass_here &here, uint32_t number, line_seen *seen)
{
	uint32_t	known = other_line(job, row, here, number);

	*seen = {(known & OTHER_VISIBLE) != 0, (known & OTHER_UNTOLD) != 0, (known & OTHER_BACK) != 0};
	return (known & OTHER_READ) != 0;
}

/* A line for each lane, from the line behind `first` on. */
template <bool KEYED, bool PROGRAM> static __device__ __forceinline__ void
pass_lines(const pass_job &job, const line_values &row, const pass_table &table, const pass_here &here, uint32_t first,
		   GhAggregateState *states, pass_tally *tally)
{
	const pipe_view &view = job.run.view;
	uint32_t	number = first + threadIdx.x % 32 + 1;
	line_seen	seen = {false, false, false};
	row_run		run = {NO_STEP, 0, 0, 0, false};
	uint32_t	takes = 0;
	uint32_t	came = 0;

	if (number <= here.asked &&
		!(here.other == nullptr && job.plan.tids == 0 ? read_plain_line<PROGRAM>(job, row, here, number, &seen) :
		  read_other_line(job, row, here, number, &seen)))
	{
		give_up(job);
		seen = {false, false, false};
	}
	if (seen.untold || seen.back)
		run.back = seen.untold ? (uint32_t) GH_STEP_VISIBILITY : 0;
	else if (seen.visible)
	{
		came = run_steps<PROGRAM>(job.run, job.plan.steps, here.probes, row, &run);
		if (run.lines > 0 && !lane_takes(job.plan, row, &takes))
			run.back = view.nsteps;
	}
	if (run.back != NO_STEP)
	{
		note_back_row(job, here.number, number, run.back);
		came = takes = run.lines = 0;
	}
	if (run.lines == 0)
		takes = 0;
	if (!KEYED)
	{
		__syncwarp();
		add_rows_of_lanes(job.plan, row, takes, states, tally);
	}
	else if (run.lines > 0 && !add_grouped(job.plan, view.plan, job.grouped, table, row, takes, &job.run.batch.counters->groups))
		tally->lacking++;
	__syncwarp();
	tally->seen += __popc(__ballot_sync(~0u, seen.visible));
	tally->lines += __popc(__ballot_sync(~0u, run.lines > 0));
	count_steps(view.nsteps, came, tally);
}

template <bool KEYED, bool PROGRAM> static __device__ __forceinline__ void
pass_page_of_warp(const pass_job &job, const line_values &row, const probe_view *probes, const pass_table &table,
				  const pass_page &page, uint32_t p, uint4 *copy, GhAggregateState *states, pass_tally *tally)
{
	uint32_t	page_bytes = job.run.view.page_bytes;
	uint32_t	number = job.rest != 0 ? page.block & REST_PAGE_MASK : p;
	uint32_t	first = job.rest != 0 ? page.block >> REST_PAGE_BITS << 5 : 0;
	pass_here	here;

	here = {reinterpret_cast<const uint8_t *>(copy), page.at, nullptr, page.block, page.lines, 0, number, probes};
	if (page.other == 0)
		load_page(page, copy, page_bytes);
	else
	{
		here.other = &job.others[page.block];
		here.asked = here.other->asked.lines;
		here.text_at = load_other(*here.other, copy, page_bytes);
	}
	here.lines = gh_page_lines(here.page, page_bytes);
	if (here.asked > here.lines)
	{
		if (threadIdx.x % 32 == 0)
			note_back_row(job, number, 0, 0);
		return;
	}
	for (; first < here.asked; first += 32)
		pass_lines<KEYED, PROGRAM>(job, row, table, here, first, states, tally);
}

/* ------------------------------------------------------------------ the kernel */

/* What all threads of the block have of an aggregate becomes one state; scratch has room for one a warp. */
static __device__ __forceinline__ void
merge_block(const GhAggregate &aggregate, GhAggregateState state, GhAggregateState *scratch,
			GhAggregateState *to, bool *fits)
{
	merge_lanes(&aggregate, &state, fits);
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		scratch[threadIdx.x / 32] = state;
	__syncthreads();
	for (uint32_t w = 1; threadIdx.x == 0 && w < blockDim.x / 32; w++)
		*fits &= gh_aggregate_merge(&aggregate, &state, &scratch[w]);
	if (threadIdx.x == 0)
		*to = state;
}

/* What all warps have becomes the block's chunk. */
static __device__ __forceinline__ void
merge_warps(const pass_job &job, const GhAggregateState *states, pass_tally *tally, GhAggregateState *scratch)
{
	const plan_view &plan = job.run.view.plan;

	for (uint32_t a = 0; a < plan.naggregates; a++)
	{
		GhAggregateState state = states[a];

		if (plan.aggregates[a].kind <= GH_AGGREGATE_SUM)
			state = threadIdx.x % 32 == a ? GhAggregateState{tally->count, tally->low, tally->high, 0, 0} : GhAggregateState{};
		merge_block(plan.aggregates[a], state, scratch,
					&job.partial[(uint64_t) blockIdx.x * plan.naggregates + a], &tally->fits);
	}
}

/* What the warp has counted. */
template <bool KEYED> static __device__ __forceinline__ void
tell_tally(const pass_job &job, const pass_tally *tally)
{
	pipe_counters *counters = job.run.batch.counters;
	uint32_t	lane = threadIdx.x % 32;

	if (lane == 0)
	{
		add_relaxed(&counters->seen, tally->seen);
		add_relaxed(&counters->lines, tally->lines);
		if (!KEYED)
			atomicAdd(&job.partial_rows[blockIdx.x], tally->lines);
	}
	if (KEYED)
		add_tally(&counters->groups.no_group, tally->lacking);
	if (lane < job.run.view.nsteps && tally->passed > 0)
		add_relaxed(&counters->passed[lane], tally->passed);
	if (!tally->fits)
		counters->groups.unfit = 1;
}

template <bool KEYED, bool PROGRAM> static __global__ void
__launch_bounds__(32 * (KEYED ? PASS_WARPS_RESIDENT : PASS_WARPS), KEYED ? 1 : PASS_WARPS_RESIDENT / PASS_WARPS)
pass_kernel(const __grid_constant__ pass_job job)
{
	extern __shared__ uint4 pass_memory[];
	uint32_t	warps = blockDim.x / 32;
	uint32_t	all = gridDim.x * warps;
	uint32_t	page_bytes = job.run.view.page_bytes;
	char	   *own = reinterpret_cast<char *>(pass_memory) + threadIdx.x / 32 * job.warp_bytes;
	uint4	   *copy = reinterpret_cast<uint4 *>(own);
	line_values row(job.run.view.program, warp_values(job, own + page_bytes), threadIdx.x % 32);
	GhAggregateState states[KEYED ? 1 : PASS_AGGREGATES_MAX] = {};
	pass_tally tally = {};
	pass_table	table = {};
	pass_page	next = {};
	char	   *beside = reinterpret_cast<char *>(pass_memory) + warps * job.warp_bytes;
	const probe_view *probes = probes_begin(job, beside);
	uint32_t	p = blockIdx.x * warps + threadIdx.x / 32;

	tally.fits = true;
	if (KEYED)
		table = table_begin(job.run.view.plan, job.grouped, reinterpret_cast<uint64_t *>(beside + job.probes_bytes));
	else if (threadIdx.x == 0)
		job.partial_rows[blockIdx.x] = 0;
	__syncthreads();
	if (p < job.npages)
		next = job.pages[p];
	for (; p < job.npages; p += all)
	{
		pass_page	page = next;

		if (p + all < job.npages)
		{
			next = job.pages[p + all];
			prefetch_page(next, page_bytes);
		}
		/* all lanes have done with the page before */
		__syncwarp();
		pass_page_of_warp<KEYED, PROGRAM>(job, row, probes, table, page, p, copy, states, &tally);
	}
	__syncthreads();
	if (KEYED)
		table_end(job.run.view.plan, job.grouped, table);
	else
		merge_warps(job, states, &tally, reinterpret_cast<GhAggregateState *>(pass_memory));
	tell_tally<KEYED>(job, &tally);
}

#endif							/* GPUHASH_PASS_PAGES_CUH */
