/*
 * pipeline.cuh
 *		Pipelines: what is in device memory, and how kernels are told where; the host's structs; what the files
 *		pipeline*.cu offer each other.
 *
 * A request is done in batches of rows, each in a lane, which has memory and a stream of its own: while one batch goes
 * into the sink, the next one is read.  Of a batch each row has a place in vectors, vector by vector, so that the
 * threads of a warp read one vector's values side by side.  A thread has a row from there on, and does all steps with
 * it, and with all that it becomes, one after the other (pipeline_run.cu).  So what a row becomes, and whether
 * any of it has to go back, one thread knows.
 */
#ifndef GPUHASH_PIPELINE_CUH
#define GPUHASH_PIPELINE_CUH

#include "cuda/pipeline/sink_views.cuh"
#include "cuda/table/memory.cuh"
#include "cuda/table/table.h"
#include "engine/pipeline/pipeline.h"

/* -------------------------------------------------------------------- memory */

struct pipe_block
{
	char	   *memory;			/* device */
	uint64_t	bytes;
};

/* What takes device memory: a pipeline, and then the rows of the table that it made. */
struct pipe_memory
{
	GhHost		host;
	int			device;
	cudaStream_t stream;		/* of the lane that is worked on; NULL: the rows of a table have none */
	uint64_t	limit;			/* of bytes; 0: none */
	uint64_t	bytes;			/* of the sink: under the limit */
	uint64_t	bytes_peak;
	uint64_t	work_bytes;		/* all other */
	bool		failed;			/* the device did; error says how */
	GhError		error;
};

#define lacks_memory(status) ((status) == GH_LIMIT || (status) == GH_NO_MEMORY)	/* which is met by doing with less */

/* For CUDA calls after which nothing can be trusted when they fail. */
#define PIPE_TRY(memory, call, error) \
	do { \
		cudaError_t pipe_try_status = (call); \
		if (pipe_try_status != cudaSuccess) \
			return pipe_failed(memory, pipe_try_status, #call, error); \
	} while (0)

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
	const probe_view *probes;
	const saved_vector *saved;	/* what steps set once more of what a row enters with */
	const join_fill *columns;	/* of a source that is a table */
	const group_fill *group_columns;
	/* of the vectors that the sink reads: where their copies are; also by vector */
	const saved_vector *copies;
	const vector_place *copied;
	uint32_t	nsteps;
	uint32_t	nsaved;
	uint32_t	ncolumns;		/* of columns, or group_columns */
	uint32_t	ncopied;
	uint32_t	multiplies;		/* 1: some probe does */
	uint32_t	marks;			/* 1: some probe marks */
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

	value.null = (uint8_t) (words[kept.null_word] >> kept.null_bit & 1);
	value.low = words[kept.word];
	if (gh_class_has_high(kept.value_class))
		value.high = words[kept.word + 1];
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

/* --------------------------------------------------------------------- the host */

/* Rows of a batch that there is memory for: at first, and at most. */
#define BATCH_ROWS_MIN ((uint32_t) 8192)
#define BATCH_ROWS_MAX ((uint32_t) 1 << 20)
/* Where rows may become several, so many are counted at first, and then as many as become about so many lines. */
#define BATCH_ROWS_SEVERAL ((uint32_t) 1 << 16)
#define BATCH_LINES ((uint64_t) 1 << 22)
/* Memory of a batch, about, and its pages at most. */
#define BATCH_BYTES ((uint64_t) 512 << 20)
#define BATCH_PAGES ((uint32_t) 8192)

static_assert(BATCH_ROWS_MIN >= GH_PAGE_BYTES_MAX / GH_LINE_BYTES && BATCH_ROWS_MIN >= GH_ROW_MATCHES_MAX,
			  "a page's lines, and what a row becomes, fit in a batch");

/* The sink's arrays, by line. */
struct sink_arrays
{
	lines_view	lines;			/* state, group, takes; low and high by input */
	uint32_t   *rows;			/* the row that it is of */
	values_view copies;			/* where rows become several: of the vectors that the sink reads */
	uint64_t   *bytes;			/* of its texts, or record; one more than lines */
	uint64_t   *offsets;		/* of those before it; likewise */
	reduce_view reduce;
};

struct record_segment
{
	pipe_block	block;
	uint64_t	used;			/* bytes */
};

#define RECORD_SEGMENTS_MAX 256

/* The records of rows. */
struct pipe_records
{
	record_segment *segments;	/* RECORD_SEGMENTS_MAX */
	uint32_t	count;			/* that have memory */
	uint32_t	filling;		/* the one that is being filled; those behind it are empty */
	uint64_t	records;
};

/* Rows that a table has, or is to have; the table's own when it is made. */
struct pipe_rows
{
	pipe_memory memory;			/* of a made table */
	pipe_block	block;			/* words */
	pipe_block	keys_block;		/* until it is made */
	pipe_block	texts_block;
	pipe_block	members_block;
	uint64_t	count;
	uint64_t	room;			/* rows */
	uint64_t	text_bytes;
	bool		any_back;		/* a match with some row hands back */
	uint32_t	row_words;
	uint32_t	back_bit;
	uint32_t	keyless_bit;
	bool		has_index;		/* some row has a key */
	GhTableShape shape;
};

/* What the sink was before a request. */
struct pipe_undo
{
	bool		possible;
	pipe_block	block;			/* records and states of groups; kept for the next request */
	uint64_t	records;
	uint64_t	rows;
	uint64_t	text_bytes;
	uint32_t	segment;		/* of records, and how much of it was used */
	uint64_t	segment_used;
	uint32_t	groups;
	uint64_t	group_text_bytes;
	bool		saved;			/* groups are in the block */
};

/* Where some of a request's rows come from. */
struct batch_input
{
	uint64_t	first;			/* row of the request; of pages: the page */
	uint32_t	pages;
	uint32_t	rows;
	uint32_t	step;			/* before which they enter */
};

#define PIPE_LANES 2

enum batch_phase
{
	BATCH_READING,				/* up to where it is known how many lines the batch becomes */
	BATCH_TAKEN					/* the lines are on their way into the sink, and counts to the host */
};

/* Of a lane, what another pipeline may have after this one (pipeline_kits.cu). */
struct lane_kit
{
	cudaStream_t stream;
	cudaEvent_t read;			/* the request's rows have been read */
	cudaEvent_t done;			/* the phase is over, and counters are on the host */
	pipe_block	batch_block;
	pipe_block	input_block;
	char	   *host_input;		/* page-locked */
	size_t		host_input_bytes;
	pipe_counters *host_counters;	/* page-locked */
};

/* What a batch is done in. */
struct pipe_lane : lane_kit
{
	uint32_t	batch_rows;		/* room */
	batch_view	batch;
	sink_arrays sink;
	void	   *sum_space;
	size_t		sum_space_bytes;
	GhBackRow  *back_rows;
	uint64_t	prepared;		/* number of the last request that there is memory for */
	bool		counters_zero;	/* on the device */

	GhPipelineRequest *request; /* NULL: the lane is free */
	batch_phase	phase;
	batch_input input;
	bool		last;			/* the request has no more */
};

struct cuda_pipeline
{
	GhPipeline	base;			/* first: it is the handle */
	GhPipelinePlan plan;
	GhRecordPlan record_plan;	/* keys and aggregates, for those who write records */
	pipe_memory memory;
	uint32_t	multiprocessors;
	bool		direct;			/* the device reads registered memory by the host's addresses */
	uint8_t		class_at[GH_STEPS_MAX + 1][GH_PROGRAM_VECTORS_MAX]; /* of vectors in front of each step; 0: none */

	pipe_view	view;
	pipe_block	plan_block;
	pipe_block	probes_block;
	probe_view *probes;			/* as they were sent last */
	uint32_t	nlows;			/* arrays of values */
	uint32_t	nhighs;
	uint32_t	ncopied_highs;
	uint32_t	ninput_highs;

	/* batches */
	pipe_lane	lanes[PIPE_LANES];
	pipe_lane  *lane;			/* that is worked on */
	pipe_lane  *flight[PIPE_LANES]; /* in use, oldest first */
	uint32_t	flying;
	uint32_t	at_once;		/* rows that are done at a time, if there is room */

	/* sinks */
	groups_view groups;
	pipe_block	groups_block;
	pipe_block	texts_block;
	uint32_t	ngroups;		/* as of the last request */
	pipe_records records;
	pipe_rows  *rows;			/* of a table; NULL: it has been made, or there is none */
	GhPipelineStats made_stats;
	pipe_undo	undo;

	GhPipelineRequest *first;	/* oldest */
	GhPipelineRequest *tail;	/* youngest */
	GhPipelineRequest *launching;	/* the oldest of which not all has been launched; NULL: there is none */
	uint64_t	requests;		/* so far */
	GhPipelineIntake intake;
	uint64_t	counted;
};

struct GhMarks
{
	pipe_memory memory;
	pipe_block	block;
	const cuda_table *table;
};

/* --------------------------------------------------------- pipeline_memory.cu */

extern GhStatus pipe_failed(pipe_memory *memory, cudaError_t status, const char *call, GhError *error);
extern GhStatus pipe_alloc(pipe_memory *memory, uint64_t bytes, bool limited, pipe_block *block, GhError *error);
extern void pipe_free(pipe_memory *memory, bool limited, pipe_block *block);
extern GhStatus pipe_zero(pipe_memory *memory, void *at, uint64_t bytes, GhError *error);
extern GhStatus pipe_copy(pipe_memory *memory, void *to, const void *from, uint64_t bytes, GhError *error);
extern GhStatus pipe_wait(pipe_memory *memory, GhError *error);
extern bool pipe_stopped(const pipe_memory *memory);
extern GhStatus batch_reserve(cuda_pipeline *pipeline, uint64_t rows, GhError *error);
extern GhStatus input_reserve(cuda_pipeline *pipeline, uint64_t host_bytes, uint64_t bytes, GhError *error);
/* sums[i]: of counts before i, of so many, and one more. */
extern GhStatus sums_launch(cuda_pipeline *pipeline, const uint64_t *counts, uint64_t *sums, uint32_t count,
							GhError *error);
/* Has what has been counted so far sent to the host, and counters set to zero (last); fetch: and waits for it. */
extern GhStatus counters_send(cuda_pipeline *pipeline, bool last, GhError *error);
extern GhStatus counters_fetch(cuda_pipeline *pipeline, GhError *error);

/* ----------------------------------------------------------- pipeline_kits.cu */

/* Streams, events and page-locked memory for a lane; and, where one has left it there, memory. */
extern GhStatus kit_take(pipe_memory *memory, lane_kit *kit, GhError *error);
/* Nothing is under way in the lane. */
extern void kit_leave(pipe_memory *memory, lane_kit *kit);

/* ----------------------------------------------------------- pipeline_plan.cu */

extern GhStatus pipe_plan_upload(cuda_pipeline *pipeline, GhError *error);
/* The tables as they are now. */
extern GhStatus pipe_probes_send(cuda_pipeline *pipeline, GhError *error);

/* ---------------------------------------------------------- pipeline_input.cu */

/* Memory for the input of a request's batches, before the first of them. */
extern GhStatus input_begin(cuda_pipeline *pipeline, const GhPipelineRequest *request, GhError *error);
/* How many rows are done at a time. */
static inline uint32_t
rows_at_once(const cuda_pipeline *pipeline)
{
	return pipeline->at_once < pipeline->lane->batch_rows ? pipeline->at_once : pipeline->lane->batch_rows;
}

/* Some of the request's rows from *at on, which it advances. */
extern batch_input input_next(const cuda_pipeline *pipeline, const GhPipelineRequest *request, uint64_t *at);
extern GhStatus input_launch(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input,
							 GhError *error);

/* ------------------------------------------------------------ pipeline_run.cu */

extern GhStatus run_launch(cuda_pipeline *pipeline, uint32_t step, GhError *error);
/* Of rows that become several, those from first up to end: their lines, put to the sink's copies. */
extern GhStatus emit_launch(cuda_pipeline *pipeline, uint32_t step, uint32_t first, uint32_t end, GhError *error);

/* Does the row go back from here on?  It is not counted behind steps any more, and true: it is the first to say so. */
static __device__ __forceinline__ bool
row_turns_back(const pipe_view &view, const batch_view &batch, uint32_t row, uint32_t entered)
{
	if (compare_and_swap(&batch.back[row], NO_STEP, view.nsteps) != NO_STEP)
		return false;
	for (uint32_t s = 0; view.multiplies == 0 && s < batch.came[row]; s++)
		add_relaxed(&batch.counters->passed[entered + s], (uint64_t) -1);
	return true;
}

/* Are rows a line each, and these added to groups? */
static inline bool
adds_rows(const cuda_pipeline *pipeline)
{
	return pipeline->view.multiplies == 0 && pipeline->view.sink == GH_SINK_GROUPS;
}

/* ---------------------------------------------------------- pipeline_batch.cu */

/*
 * A batch of a request, in the pipeline's lane.  batch_read puts it into the stream up to where it is known how many lines
 * it becomes, and advances *at.  batch_ready says GH_BUSY until the device is through with the lane's phase, or waits.
 * Then nothing reads the request's input any more, and batch_take puts the lines into the sink, of the oldest batch alone;
 * batch_tell, behind that, tells the request.
 */
extern GhStatus batch_read(cuda_pipeline *pipeline, const GhPipelineRequest *request, uint64_t *at, GhError *error);
extern GhStatus batch_ready(cuda_pipeline *pipeline, bool wait, GhError *error);
extern GhStatus batch_take(cuda_pipeline *pipeline, GhError *error);
extern GhStatus batch_tell(cuda_pipeline *pipeline, GhError *error);
/* What each line takes, and 0 behind the last one, by a thread each. */
typedef void (*lines_kernel) (const pipe_view view, const pipe_lines lines, uint64_t *bytes);
/* How many bytes all lines take; the sink's offsets are where each one's begin. */
extern GhStatus lines_measure(cuda_pipeline *pipeline, const pipe_lines *lines, lines_kernel kernel, uint64_t *bytes,
							  GhError *error);
/* All rows that the lines are of go back: there is no place for them. */
extern GhStatus lines_refuse(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error);

/* --------------------------------------------------------- pipeline_groups.cu */

extern GhStatus groups_init(cuda_pipeline *pipeline, GhError *error);
extern void groups_drop(cuda_pipeline *pipeline);
/* Adds lines, where rows become several; the host waits. */
extern GhStatus groups_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error);
/* Of rows that are one line each: those of the batch, whose counters then are on their way to the host. */
extern GhStatus groups_take_rows(cuda_pipeline *pipeline, GhError *error);
/* When these are there: GH_BUSY: some rows found no group, and are being added to what has grown meanwhile. */
extern GhStatus groups_settle(cuda_pipeline *pipeline, GhError *error);
/* What can be done before the sink is changed. */
extern GhStatus groups_prepare_rows(cuda_pipeline *pipeline, GhError *error);
/* Notes how many groups there are, when a batch's counters are on the host. */
extern void groups_count(cuda_pipeline *pipeline);
extern GhStatus groups_empty(cuda_pipeline *pipeline, GhError *error);
extern GhStatus groups_save(cuda_pipeline *pipeline, GhError *error);
extern GhStatus groups_restore(cuda_pipeline *pipeline, GhError *error);
extern cudaError_t groups_sort_bytes(uint32_t lines, size_t *bytes);

/* -------------------------------------------------- pipeline_group_records.cu */

extern GhStatus groups_fetch(cuda_pipeline *pipeline, GhCursor *cursor, size_t capacity, char *buffer, size_t *bytes,
							 GhError *error);

/* -------------------------------------------------------- pipeline_records.cu */

extern GhStatus pipe_records_init(cuda_pipeline *pipeline, GhError *error);
extern void pipe_records_drop(cuda_pipeline *pipeline);
extern GhStatus pipe_records_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error);
/* Forgets all behind so many bytes of a segment. */
extern void pipe_records_cut(cuda_pipeline *pipeline, uint32_t segment, uint64_t used, uint64_t records);
extern GhStatus pipe_records_fetch(cuda_pipeline *pipeline, GhCursor *cursor, size_t capacity, char *buffer,
								   size_t *bytes, GhError *error);

/* ----------------------------------------------------------- pipeline_rows.cu */

extern GhStatus pipe_rows_create(cuda_pipeline *pipeline, GhError *error);
extern GhStatus pipe_rows_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error);
extern void pipe_rows_drop(pipe_memory *memory, pipe_rows *rows);
/* Of a table that was made, whose handle is destroyed. */
extern void pipe_rows_destroy(pipe_rows *rows);
extern kept_value pipe_kept_place(const GhTableShape *shape, uint32_t k);
extern rows_view pipe_rows_view(const pipe_rows *rows);

/* ---------------------------------------------------------- pipeline_table.cu */

extern GhStatus pipe_make_table(cuda_pipeline *pipeline, GhMadeTable *made, GhError *error);
extern bool cuda_table_describe(const GhTable *table, GhTableShape *shape);
extern GhStatus cuda_marks_create(const GhHost *host, GhTable *table, GhMarks **marks, GhError *error);
extern void cuda_marks_destroy(GhMarks *marks);

/* ---------------------------------------------------------------- pipeline.cu */

extern const GhPipelineEngine cuda_pipelines;

#endif							/* GPUHASH_PIPELINE_CUH */
