/*
 * batch_views.cuh
 *		A batch of a pipeline as its kernels have it in device memory: values of lines, tables and the plan, what is counted.
 */
#ifndef GPUHASH_BATCH_VIEWS_CUH
#define GPUHASH_BATCH_VIEWS_CUH

#include "cuda/pipeline/sink_views.cuh"
#include "cuda/table/memory.cuh"
#include "cuda/table/table.h"
#include "engine/pipeline/pipeline.h"

/* ---------------------------------------------------------- values of lines */

#define PLACE_NONE UINT16_MAX

/* Which of the arrays have a vector's words; high: PLACE_NONE where no value of it has one. */
struct vector_place
{
	uint16_t	low;			/* and null */
	uint16_t	high;
};

struct values_view
{
	uint64_t   *low;			/* array by array */
	uint64_t   *high;
	uint8_t    *null;
	const vector_place *places; /* by vector of the program */
	uint64_t	stride;			/* elements from one array to the next */
};

/* A vector, and a place for its value of now. */
struct saved_vector
{
	uint16_t	vector;
	vector_place place;
};

/* The values of one line. */
struct line_values
{
	const GhProgram *program;
	const GhConstant *constants;
	const vector_place *places;
	uint64_t   *low;
	uint64_t   *high;
	uint8_t    *null;
	uint64_t	stride;
	uint32_t	ncolumns;
	uint32_t	nconstants;

	__device__ __forceinline__
	line_values(const GhProgram *of, const values_view &values, uint64_t line)
	{
		program = of;
		constants = gh_program_constants(of);
		places = values.places;
		low = values.low + line;
		high = values.high + line;
		null = values.null + line;
		stride = values.stride;
		ncolumns = of->ncolumns;
		nconstants = of->nconstants;
	}

	__device__ __forceinline__ GhValue
	get_at(vector_place place) const
	{
		GhValue		value;

		value.low = low[place.low * stride];
		value.high = place.high != PLACE_NONE ? high[place.high * stride] : 0;
		value.null = null[place.low * stride];
		return value;
	}

	__device__ __forceinline__ void
	set_at(vector_place place, const GhValue &value) const
	{
		low[place.low * stride] = value.low;
		null[place.low * stride] = value.null;
		if (place.high != PLACE_NONE)
			high[place.high * stride] = value.high;
	}

	/* Constants have no place. */
	__device__ __forceinline__ GhValue
	get(uint32_t vector) const
	{
		GhValue		value;

		if (vector - ncolumns >= nconstants)
			return get_at(places[vector]);
		value.low = constants[vector - ncolumns].low;
		value.high = constants[vector - ncolumns].high;
		value.null = constants[vector - ncolumns].null;
		if (constants[vector - ncolumns].value_class == GH_CLASS_TEXT)
			value.low += (uint64_t) (uintptr_t) program;
		return value;
	}

	__device__ __forceinline__ void
	set(uint32_t vector, const GhValue &value) const
	{
		set_at(places[vector], value);
	}
};

/* ------------------------------------------------------- tables and the plan */

/* The rows of a table that a pipeline made. */
struct rows_view
{
	const uint64_t *words;		/* of rows, one behind the other */
	const char *texts;
	const uint32_t *members;	/* rows by key, where probes find all of several; else NULL */
	uint64_t	rows;
	uint32_t	row_words;
	uint32_t	back_bit;		/* of a row's: a match with it hands back; UINT32_MAX: of none */
};

struct step_view
{
	uint32_t	begin;			/* instructions */
	uint32_t	end;
	uint32_t	probe;			/* its number + 1; 0: a run */
};

struct probe_view
{
	uint32_t	kind;			/* a GhProbeKind */
	uint32_t	multiplies;		/* 1: a row may become several */
	uint32_t	counts;			/* 1: its matches count for GH_ROW_MATCHES_MAX */
	uint32_t	by_number;		/* 1: what is found are numbers of rows; 0: values, of a table that no pipeline made */
	uint32_t	has_index;		/* 0: no row has a key */
	uint32_t	has_values;		/* keys and values are together */
	uint32_t	nparts;
	uint32_t	nfills;
	uint32_t	nsaved;
	const GhKeyPart *parts;
	const join_fill *fills;
	const saved_vector *saved;	/* what steps behind it set once more */
	table_view	index;
	rows_view	rows;
	uint32_t   *marks;			/* bits by row, or NULL */
	/* keys whose rows are in another table, which a view of its own has (view_of_row) */
	uint32_t	has_changed;
	uint32_t	changed_values; /* their table has keys and values together */
	table_view	changed;
};

/* A column of a source that is groups. */
struct group_fill
{
	uint16_t	column;
	uint8_t		part;			/* a GhGroupPart */
	uint8_t		number;
	uint8_t		narrow;			/* 1: a sum that has to fit in 64 bits */
};

/* The plan, with the tables that it probes; all of it is read only. */
struct pipe_view
{
	const GhProgram *program;
	const GhPageShape *shape;
	const step_view *steps;
	const probe_view *probes;	/* by probe; where some has changed keys, behind these the views of their tables likewise */
	const saved_vector *saved;	/* what steps set once more of what a row enters with */
	const group_fill *group_columns;
	/* of the vectors that the sink reads: where their copies are; also by vector */
	const saved_vector *copies;
	const vector_place *copied;
	uint32_t	nsteps;
	uint32_t	nsaved;
	uint32_t	ncolumns;		/* of group_columns */
	uint32_t	ncopied;
	uint32_t	multiplies;		/* 1: some probe does */
	uint32_t	marks;			/* 1: some probe marks */
	uint32_t	nprobes;
	uint32_t	first_several;	/* of where a batch's rows enter and behind: the first step that makes several of one */
	uint32_t	sink;			/* a GhSinkKind */
	uint32_t	seen_before;
	uint32_t	page_bytes;
	/* tables */
	uint32_t	nparts;
	uint32_t	numbered;
	uint32_t	keyless_bit;
	uint32_t	back_bit;		/* UINT32_MAX: no row hands back */
	uint32_t	back_vector;
	uint32_t	row_words;
	const GhKeyPart *parts;
	const kept_value *kept;
	uint32_t	nkept;
	/* rows */
	uint32_t	record_bytes;	/* without texts */
	uint32_t	has_texts;		/* of what is kept, or the values, or the keys */
	/* keys, aggregates, inputs; and the program */
	plan_view	plan;
};

/* ------------------------------------------------------------------- a batch */

enum row_state
{
	STATE_LIVE,					/* or it has become something that is */
	STATE_DROPPED,
	STATE_BACK,
	STATE_PAGE					/* the first one of a page that is handed back whole */
};

/* Of a row that goes on. */
#define NO_STEP ((uint32_t) GH_STEP_LIVE)

/* What a batch counts, zero at first. */
struct pipe_counters
{
	uint64_t	seen;
	uint64_t	backs;			/* rows that go back */
	uint64_t	no_memory;		/* of them */
	uint64_t	lines;			/* to the sink */
	uint64_t	bytes;			/* of texts, or records */
	uint64_t	range_end;		/* rows up to this one become so many lines: */
	uint64_t	range_lines;
	uint64_t	counted;
	uint64_t	rest;			/* pages that are left to the general kernel */
	uint64_t	passed[GH_STEPS_MAX];
	scan_counters groups;
	groups_used used;			/* by groups, when the last lines had theirs; 0: no line was looked up */
};

static_assert(sizeof(pipe_counters) % sizeof(uint64_t) == 0, "counters are sent by words");

/* To page-locked memory, by a block; last: they are zero then. */
static __device__ __forceinline__ void
send_counters(pipe_counters *to, pipe_counters *from, bool last)
{
	uint64_t   *words = reinterpret_cast<uint64_t *>(from);

	for (uint32_t i = threadIdx.x; i < sizeof(pipe_counters) / sizeof(uint64_t); i += blockDim.x)
	{
		reinterpret_cast<uint64_t *>(to)[i] = words[i];
		if (last)
			words[i] = 0;
	}
}

/* Adds up what a block's threads have, all of which come here. */
static __device__ __forceinline__ void
tally_block(uint64_t *counter, uint32_t amount)
{
	__shared__ unsigned long long sum;

	if (threadIdx.x == 0)
		sum = 0;
	__syncthreads();
	for (int offset = 16; offset > 0; offset /= 2)
		amount += __shfl_down_sync(~0u, amount, offset);
	if (threadIdx.x % 32 == 0 && amount > 0)
		atomicAdd(&sum, (unsigned long long) amount);
	__syncthreads();
	if (threadIdx.x == 0 && sum > 0)
		add_relaxed(counter, sum);
	__syncthreads();
}

struct batch_view
{
	values_view values;
	uint8_t    *state;
	uint32_t   *back;			/* the step at which it is handed back, or NO_STEP */
	/* behind how many steps it came; where rows become several: by step, how many it was behind it */
	uint32_t   *came;
	uint64_t   *counts;			/* lines that it becomes, where they are counted; then, 1: it is listed; one more than rows */
	uint64_t   *sums;			/* of those before it; likewise */
	uint32_t	rows;
	pipe_counters *counters;
};

/* Lines that are to go to the sink, in the order of rows. */
struct pipe_lines
{
	values_view values;
	const uint32_t *rows;		/* the row that each is of; NULL: each row has its place, and its state says if it is one */
	uint32_t	several;		/* 0: a line's values are its row's */
	uint32_t	count;
};

static __device__ __forceinline__ uint32_t
row_of_line(const pipe_lines &lines, uint32_t line)
{
	return lines.rows != nullptr ? lines.rows[line] : line;
}

static __device__ __forceinline__ line_values
line_at(const pipe_view &view, const pipe_lines &lines, uint32_t line)
{
	return line_values(view.program, lines.values, lines.several != 0 ? line : row_of_line(lines, line));
}

/* False: a part is NULL. */
static __device__ __forceinline__ bool
line_key(const GhKeyPart *parts, uint32_t nparts, const line_values &row, uint64_t *key)
{
	bool		there = true;

	*key = 0;
	for (uint32_t k = 0; k < nparts; k++)
	{
		GhKeyPart	part = parts[k];
		GhValue		value = row.get(part.vector);

		there &= value.null == 0;
		*key = gh_key_part_add(*key, &part, value.low);
	}
	return there;
}

/* A value that a row of a table keeps. */
static __device__ __forceinline__ GhValue
kept_at(const rows_view &rows, uint64_t number, const kept_value &kept)
{
	const uint64_t *words = rows.words + number * rows.row_words;
	GhValue		value = {0, 0, 0};

	value.null = (uint8_t) (load_passing(&words[kept.null_word]) >> kept.null_bit & 1);
	value.low = load_passing(&words[kept.word]);
	if (gh_class_has_high(kept.value_class))
		value.high = load_passing(&words[kept.word + 1]);
	if (kept.value_class == GH_CLASS_TEXT)
		value.low += (uint64_t) (uintptr_t) rows.texts;
	return value;
}

static __device__ __forceinline__ bool
row_hands_back(const rows_view &rows, uint64_t number)
{
	return rows.back_bit != UINT32_MAX &&
		(rows.words[number * rows.row_words + rows.back_bit / 64] >> rows.back_bit % 64 & 1) != 0;
}

#endif							/* GPUHASH_BATCH_VIEWS_CUH */
