/*
 * pipeline.cuh
 *		Pipelines: the host's structs, and what the files pipeline*.cu offer each other.
 *
 * A request is done in batches of rows, each in a lane, which has memory and a stream of its own: while one
 * batch goes into the sink, the next one is read.  Of a batch each row has a place in vectors, vector by
 * vector, so that the threads of a warp read one vector's values side by side.  A thread has a row from there
 * on, and does all steps with it, and with all that it becomes, one after the other (pipeline_run.cu).  So
 * what a row becomes, and whether any of it has to go back, one thread knows.
 */
#ifndef GPUHASH_PIPELINE_CUH
#define GPUHASH_PIPELINE_CUH

#include "cuda/pipeline/batch_views.cuh"
#include "cuda/table/memory.cuh"
#include "cuda/table/table.h"
#include "engine/pipeline/pipeline.h"

/* -------------------------------------------------------------------- memory */

struct pipe_block
{
	char	   *memory;			/* device */
	uint64_t	bytes;
	uint64_t	room;			/* what there is in truth, if it may be a spare one for others; else 0 */
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

/* --------------------------------------------------------------------- the host */

/* Rows of a batch that there is memory for: at first, and at most. */
#define BATCH_ROWS_MIN ((uint32_t) 8192)
#define BATCH_ROWS_MAX ((uint32_t) 1 << 20)
/*
 * Where rows may become several, so many are counted at first, and then as many as become about so many
 * lines.
 */
#define BATCH_ROWS_SEVERAL ((uint32_t) 1 << 16)
#define BATCH_LINES ((uint64_t) 1 << 22)
/* Memory of a batch, about, and its pages at most. */
#define BATCH_BYTES ((uint64_t) 512 << 20)
#define BATCH_PAGES ((uint32_t) 32768)

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
	bool		in_index;		/* the index has what each row keeps, a value at most; there are no words */
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

/* A place among the pages of a request: those of runs are gone through one by one. */
struct page_walk
{
	uint32_t	page;			/* among all */
	uint32_t	listed;			/* in the list */
	uint32_t	in_run;
};

static inline uint32_t
lines_of_page(const GhPipelineRequest *request, uint32_t page)
{
	return request->page_lines != nullptr ? request->page_lines[page] : request->pages[page].lines;
}

/* The page there, as one that is no run. */
static inline GhPageRef
walk_page(const GhPipelineRequest *request, const page_walk *walk)
{
	GhPageRef	page = request->pages[walk->listed];

	if (page.run <= 1)
		return page;
	page.run = 0;
	page.place += walk->in_run;
	page.block += walk->in_run;
	page.lines = request->page_lines[walk->page];
	return page;
}

static inline void
walk_on(const GhPipelineRequest *request, page_walk *walk)
{
	walk->page++;
	walk->in_run++;
	if (walk->in_run < request->pages[walk->listed].run)
		return;
	walk->listed++;
	walk->in_run = 0;
}

/* Where some of a request's rows come from. */
struct batch_input
{
	uint64_t	first;			/* row of the request; of pages: the page */
	page_walk	walk;			/* pages: the same */
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
	pipe_block	groups_block;	/* of a batch that is done in one pass, with keys */
	uint32_t	chunk_lines;	/* without keys: of so many lines, chunk by chunk, there are sums */
	uint32_t	chunks;			/* of a batch in one pass: as many blocks have sums */
	bool		counters_zero;	/* on the device */

	GhPipelineRequest *request; /* NULL: the lane is free */
	batch_phase	phase;
	batch_input input;
	bool		last;			/* the request has no more */
};

/* GhPipelineRequest.engine_state */
enum pipe_request_state
{
	PIPE_NEXT,					/* the request behind it in the queue */
	PIPE_AT,					/* the first row that has not been launched; of pages, a page_walk (walk_of) */
	PIPE_NUMBER,				/* of the pipeline's requests, from 1 */
	PIPE_BEGUN					/* bits: */
};

#define LAUNCHED 1				/* some of it has been */
#define TAKEN 2					/* some of it may be in the sink */
#define ONE_PASS 4				/* its pages are added up by the kernel that reads them */

static inline bool
is_one_pass(const GhPipelineRequest *request)
{
	return (request->engine_state[PIPE_BEGUN] & ONE_PASS) != 0;
}

struct cuda_pipeline
{
	GhPipeline	base;			/* first: it is the handle */
	GhPipelinePlan plan;
	GhRecordPlan record_plan;	/* keys and aggregates, for those who write records */
	pipe_memory memory;
	uint32_t	multiprocessors;
	uint32_t	block_shared;	/* bytes of shared memory that a block may have, with leave */
	bool		direct;			/* the device reads registered memory by the host's addresses */
	uint8_t		class_at[GH_STEPS_MAX + 1][GH_PROGRAM_VECTORS_MAX]; /* of vectors in front of each step; 0: none */

	pipe_view	view;
	pipe_block	plan_block;
	pipe_block	probes_block;
	probe_view *probes;			/* as they were sent last */
	uint32_t	nviews;			/* of them: as many as probes, or twice that, where some has changed keys */
	vector_place places[GH_PROGRAM_VECTORS_MAX];
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
	bool		one_pass;		/* pages may be added up by the kernel that reads them */
	bool		no_direct;		/* the one without vectors has left too many of them */

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
/* Of what each pipeline has, and is small: it may be what one before has left. */
extern GhStatus pipe_alloc_small(pipe_memory *memory, uint64_t bytes, bool limited, pipe_block *block, GhError *error);
extern GhStatus pipe_zero(pipe_memory *memory, void *at, uint64_t bytes, GhError *error);
extern GhStatus pipe_copy(pipe_memory *memory, void *to, const void *from, uint64_t bytes, GhError *error);
extern GhStatus pipe_wait(pipe_memory *memory, GhError *error);
extern bool pipe_stopped(const pipe_memory *memory);
extern GhStatus batch_reserve(cuda_pipeline *pipeline, uint64_t rows, GhError *error);
/* Do sums depend on where batches end? */
extern bool adds_floats(const cuda_pipeline *pipeline);
extern GhStatus input_reserve(cuda_pipeline *pipeline, uint64_t host_bytes, uint64_t bytes, GhError *error);
/* sums[i]: of counts before i, of so many, and one more. */
extern GhStatus sums_launch(cuda_pipeline *pipeline, const uint64_t *counts, uint64_t *sums, uint32_t count,
							GhError *error);
/*
 * Has what has been counted so far sent to the host, and counters set to zero (last); fetch: and waits for
 * it.
 */
extern GhStatus counters_send(cuda_pipeline *pipeline, bool last, GhError *error);
extern GhStatus counters_fetch(cuda_pipeline *pipeline, GhError *error);

/* ----------------------------------------------------------- pipeline_kits.cu */

/* Streams, events and page-locked memory for a lane; and, where one has left it there, memory. */
extern GhStatus kit_take(pipe_memory *memory, lane_kit *kit, GhError *error);
/* Nothing is under way in the lane. */
extern void kit_leave(pipe_memory *memory, lane_kit *kit);
/* All that is kept, spare blocks, too. */
extern void kits_give_back(void);

/* --------------------------------------------------------- pipeline_spares.cu */

/* How large a spare block of so many bytes is; 0: there are none. */
extern uint64_t spare_room(const pipe_memory *memory, uint64_t bytes);
/* One that large; NULL: there is none. */
extern char *spare_take(const pipe_memory *memory, uint64_t room);
/* A block for those that come, or it is freed.  Nothing on the device uses it any more. */
extern void spare_leave(pipe_memory *memory, bool limited, pipe_block *block);
/* Frees all; false: there are none. */
extern bool spares_free(void);

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

/* Some of the request's rows from where its last batch ended, which it notes. */
extern batch_input input_next(const cuda_pipeline *pipeline, GhPipelineRequest *request);
/* Of PIPE_AT: each takes so many bits, as a request has no more pages. */
#define WALK_BITS 20

static_assert(GH_REQUEST_PAGES_MAX < 1 << WALK_BITS, "a place among the pages of a request fits in a word");

static inline page_walk
walk_of(uint64_t at)
{
	uint64_t	mask = ((uint64_t) 1 << WALK_BITS) - 1;

	return page_walk{(uint32_t) (at & mask), (uint32_t) (at >> WALK_BITS & mask), (uint32_t) (at >> 2 * WALK_BITS)};
}

static inline uint64_t
at_of(const page_walk *walk)
{
	return walk->page | (uint64_t) walk->listed << WALK_BITS | (uint64_t) walk->in_run << 2 * WALK_BITS;
}

/* Do batches of the request have all of its rows by now? */
static inline bool
input_is_over(const GhPipelineRequest *request)
{
	uint64_t	at = request->engine_state[PIPE_AT];

	return request->kind == GH_INPUT_PAGES ? walk_of(at).listed >= request->npages : at >= request->count;
}

/* The batch, and what is behind it, is to be done once more. */
static inline void
input_step_back(GhPipelineRequest *request, const batch_input *input)
{
	request->engine_state[PIPE_AT] = request->kind == GH_INPUT_PAGES ? at_of(&input->walk) : input->first;
}

/* Is the page copied for the batch?  For its texts, or because the device has no other. */
static inline bool
is_copied(const GhPageRef *page, bool in_place)
{
	return in_place ? page->span == 0 : page->page != nullptr;
}

static inline bool
reads_in_place(const cuda_pipeline *pipeline, const GhPipelineRequest *request)
{
	return request->readable && pipeline->direct;
}

/* Says where a page is read, and where it is put; copies: of those before it, which it may add to. */
extern void input_send_page(const cuda_pipeline *pipeline, const GhPipelineRequest *request, const GhPageRef *from,
							struct input_page *page, char *host_copies, char *device_copies, uint32_t *copies);
extern GhStatus input_launch(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input,
							 GhError *error);

/* ----------------------------------------------------------- pipeline_pass.cu */

/* May pages of the pipeline be added up by the kernel that reads them? */
extern bool pass_suits(const cuda_pipeline *pipeline);
/* Those of this request? */
extern bool pass_takes(const cuda_pipeline *pipeline, const GhPipelineRequest *request);
extern GhStatus pass_begin(cuda_pipeline *pipeline, const GhPipelineRequest *request, GhError *error);
extern GhStatus pass_launch(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input,
							GhError *error);
/* Is there a list of all rows that go back, and room for all groups?  It is made, if need be. */
extern GhStatus pass_can_be_taken(cuda_pipeline *pipeline, bool *can, GhError *error);
/* Puts them in their order behind those that the request has. */
extern GhStatus pass_list_back(cuda_pipeline *pipeline, GhPipelineRequest *request, uint64_t count, GhError *error);

/* ---------------------------------------------------- pipeline_pass_groups.cu */

struct pass_groups;

extern bool pass_groups_suit(const cuda_pipeline *pipeline);
/* Entries that a block's table should have, and bytes of shared memory for so many. */
extern uint32_t pass_groups_entries(const cuda_pipeline *pipeline);
extern size_t pass_groups_shared(const cuda_pipeline *pipeline, uint32_t entries);
/* Memory for the groups of a batch. */
extern GhStatus pass_groups_reserve(cuda_pipeline *pipeline, GhError *error);
/* None are there yet. */
extern GhStatus pass_groups_begin(cuda_pipeline *pipeline, GhError *error);
/* They, beside tables of so many entries. */
extern pass_groups pass_groups_of(const cuda_pipeline *pipeline, uint32_t entries);
/* The batch's counters say how many there are. */
extern GhStatus pass_groups_tell(cuda_pipeline *pipeline, const pass_groups *batch, GhError *error);
/* Into those of the pipeline, which has room for them. */
extern GhStatus pass_groups_take(cuda_pipeline *pipeline, GhError *error);

/* ------------------------------------------------------------ pipeline_run.cu */

extern GhStatus run_launch(cuda_pipeline *pipeline, uint32_t step, GhError *error);
/* Of rows that become several, those from first up to end: their lines, put to the sink's copies. */
extern GhStatus emit_launch(cuda_pipeline *pipeline, uint32_t step, uint32_t first, uint32_t end, GhError *error);

/*
 * Does the row go back from here on?  It is not counted behind steps any more, and true: it is the first to
 * say so.
 */
static __device__ __forceinline__ bool
row_turns_back(const pipe_view &view, const batch_view &batch, uint32_t row, uint32_t entered)
{
	if (compare_and_swap(&batch.back[row], NO_STEP, view.nsteps) != NO_STEP)
		return false;
	for (uint32_t s = 0; view.multiplies == 0 && s < batch.came[row]; s++)
		add_relaxed(&batch.counters->passed[entered + s], (uint64_t) -1);
	return true;
}

/* Are rows a line each, and these added to groups of one set? */
static inline bool
adds_rows(const cuda_pipeline *pipeline)
{
	return pipeline->view.multiplies == 0 && pipeline->view.sink == GH_SINK_GROUPS && pipeline->view.plan.nsets == 1;
}

/* ---------------------------------------------------------- pipeline_batch.cu */

/*
 * A batch of a request, in the pipeline's lane.  batch_read puts it into the stream up to where it is known
 * how many lines it becomes.  batch_ready says GH_BUSY until the device is through with the lane's phase, or
 * waits. Then nothing reads the request's input any more, and batch_take puts the lines into the sink, of the
 * oldest batch alone; batch_tell, behind that, tells the request.
 */
extern GhStatus batch_read(cuda_pipeline *pipeline, GhPipelineRequest *request, GhError *error);
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

/* Adds lines, where rows become several, or are added for several sets; the host waits. */
extern GhStatus groups_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error);
/* Of rows that are one line each: those of the batch, whose counters then are on their way to the host. */
extern GhStatus groups_take_rows(cuda_pipeline *pipeline, GhError *error);
/*
 * When these are there: GH_BUSY: some rows found no group, and are being added to what has grown meanwhile.
 */
extern GhStatus groups_settle(cuda_pipeline *pipeline, GhError *error);
/* Has the batch's counters sent, with how many groups there are. */
extern GhStatus groups_send_counters(cuda_pipeline *pipeline, GhError *error);
/* What can be done before the sink is changed. */
extern GhStatus groups_prepare_rows(cuda_pipeline *pipeline, GhError *error);
/* Notes how many groups there are, when a batch's counters are on the host. */
extern void groups_count(cuda_pipeline *pipeline);
extern cudaError_t groups_sort_bytes(uint32_t lines, size_t *bytes);

/* ----------------------------------------------------- pipeline_group_room.cu */

extern GhStatus groups_init(cuda_pipeline *pipeline, GhError *error);
extern void groups_drop(cuda_pipeline *pipeline);
/* More room, after lines found too little.  It is no error where there is no memory: *grown tells. */
extern GhStatus groups_grow(cuda_pipeline *pipeline, const scan_counters *counters, bool *grown, GhError *error);
/* Room for so many more, and their texts; *there: there is. */
extern GhStatus groups_make_room(cuda_pipeline *pipeline, const groups_used *more, bool *there, GhError *error);
extern GhStatus groups_empty(cuda_pipeline *pipeline, GhError *error);
extern GhStatus groups_save(cuda_pipeline *pipeline, GhError *error);
extern GhStatus groups_restore(cuda_pipeline *pipeline, GhError *error);

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
