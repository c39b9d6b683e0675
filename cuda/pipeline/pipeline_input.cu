/*
 * pipeline_input.cu
 *		The rows that a request brings to a pipeline: of pages, of columns that are handed over, of a table or of
 *		groups, and those of a table that no row matched.  They become the vectors of a batch.
 *
 * Of pages, or leaf pages, a block has one at a time, in shared memory, and every check is of this copy; a thread has a line.
 * Where the bytes are not those of a heap page, or a tuple is not of the shape, the whole page is handed
 * back. Pages are read where they are (readable, or in their places of spans), or are sent in one piece.
 * Texts stay where the page is on the device until the batch is done.
 */
#include <string.h>

#include "cuda/pipeline/pipeline_spans.cuh"
#include "cuda/pipeline/page_lines.cuh"
#include "cuda/pipeline/group_find.cuh"
#include "cuda/pipeline/row_program.cuh"

#define PAGE_THREADS 128
/*
 * Blocks on a multiprocessor that read pages over the bus: a few keep it busy, and other kernels shall have
 * room.
 */
#define PAGE_BLOCKS 3
/* Likewise of pages that are in the device's memory: as many as there are registers for (64 a thread). */
#define NEAR_BLOCKS 8

/* What a request may stage of columns at a time, unless one row has more. */
#define COLUMN_BYTES ((uint64_t) 64 << 20)

struct pages_input
{
	pipe_view	view;
	batch_view	batch;
	const input_page *pages;
	const uint64_t *bitmaps;
	uint32_t	npages;
};

/* ---------------------------------------------------------------------- pages */

/* A line of a page that has it, or of a leaf page whose entries begin with that one; false: the page is broken. */
template <bool LEAVES> static __device__ bool
load_line(const pages_input &job, const GhPageRef &asked, const uint8_t *page, const uint8_t *text_at,
		  uint32_t page_lines, uint32_t first_entry, uint32_t number, uint32_t row, uint32_t *all_seen)
{
	line_values values(job.view.program, job.batch.values, row);
	line_seen	seen;

	if (LEAVES ? !read_entry(job.view, values, page, text_at, page_lines, first_entry, number, &seen) :
		!read_line(job.view, values, asked, job.bitmaps, page, text_at, page_lines, number, &seen))
		return false;
	job.batch.state[row] = seen.untold || seen.back ? STATE_BACK : seen.visible ? STATE_LIVE : STATE_DROPPED;
	job.batch.back[row] = seen.untold ? (uint32_t) GH_STEP_VISIBILITY : seen.back ? 0 : NO_STEP;
	*all_seen += seen.visible;
	return true;
}

/* Overwrites what the threads wrote of a page that is handed back whole. */
static __device__ void
refuse_lines(const batch_view &batch, uint32_t first, uint32_t count)
{
	for (uint32_t i = threadIdx.x; i < count; i += PAGE_THREADS)
	{
		batch.state[first + i] = i == 0 ? STATE_PAGE : STATE_DROPPED;
		batch.back[first + i] = i == 0 ? 0 : NO_STEP;
	}
}

template <bool LEAVES> static __global__ void __launch_bounds__(PAGE_THREADS)
pages_input_kernel(const __grid_constant__ pages_input job)
{
	extern __shared__ uint4 page_copy[];
	const uint8_t *page = reinterpret_cast<const uint8_t *>(page_copy);
	uint32_t	all_seen = 0;

	for (uint32_t p = blockIdx.x; p < job.npages; p += gridDim.x)
	{
		input_page	from = job.pages[p];
		GhPageRef	asked = from.asked;
		uint32_t	first = from.first;
		const uint8_t *text_at = static_cast<const uint8_t *>(asked.page);
		uint32_t	seen = 0;
		uint32_t	first_entry = 1;
		uint32_t	page_lines;
		bool		broken;

		if (from.near != 0)
			page_read_near<block_threads>(page_copy, asked.page, job.view.page_bytes);
		else
			page_read<block_threads>(page_copy, asked.page, job.view.page_bytes);
		__syncthreads();
		if (from.kept != nullptr)
		{
			keep_page<block_threads>(page_copy, from, job.view.page_bytes);
			text_at = reinterpret_cast<const uint8_t *>(from.kept);
		}
		page_lines = gh_page_lines(page, job.view.page_bytes);
		if (LEAVES)
			first_entry = gh_leaf_first_line(page, job.view.page_bytes);
		broken = asked.lines > page_lines || first_entry == 0;
		for (uint32_t i = threadIdx.x; i < asked.lines && !broken; i += PAGE_THREADS)
			broken = !load_line<LEAVES>(job, asked, page, text_at, page_lines, first_entry, i + 1, first + i, &seen);
		/* also keeps the copy until all have done with it */
		if (__syncthreads_or(broken))
			refuse_lines(job.batch, first, asked.lines);
		else
			all_seen += seen;
	}
	add_tally(&job.batch.counters->seen, all_seen);
}

static uint32_t
bitmap_words(const GhPageRef *page)
{
	return page->bitmap == GH_PAGE_ALL_LINES ? 0 : (page->lines + 63) / 64;
}

/* Where the input of a batch of pages is, on the host and on the device alike. */
struct page_arrays
{
	input_page *pages;
	uint64_t   *bitmaps;
	size_t		list_bytes;		/* of all that */
	char	   *copies;			/* the host has none of pages that are read in place */
};

static page_arrays
pages_carve(const cuda_pipeline *pipeline, uint32_t npages, uint64_t words, uint32_t ncopies, carver *carver)
{
	page_arrays arrays;

	arrays.pages = carver->array<input_page>(npages);
	arrays.bitmaps = carver->array<uint64_t>(words);
	arrays.list_bytes = carver->used;
	arrays.copies = carver->array<char>((uint64_t) ncopies * pipeline->view.page_bytes);
	return arrays;
}

/* How many copies a batch of the request has at most. */
static uint32_t
most_copies(const GhPipelineRequest *request, bool in_place)
{
	uint32_t	copies = 0;

	for (uint32_t p = 0; p < request->npages && copies < BATCH_PAGES; p++)
		copies += is_copied(&request->pages[p], in_place);
	return copies;
}

/* How many words of bitmaps a batch of the request has at most. */
static uint64_t
most_words(const GhPipelineRequest *request)
{
	uint64_t	words = 0;

	for (uint32_t p = 0; p < request->npages; p++)
		words += bitmap_words(&request->pages[p]);
	return words;
}

void
input_send_page(const cuda_pipeline *pipeline, const GhPipelineRequest *request, const GhPageRef *from,
				input_page *page, char *host_copies, char *device_copies, uint32_t *copies)
{
	size_t		page_bytes = pipeline->view.page_bytes;
	bool		in_place = reads_in_place(pipeline, request);
	size_t		at = *copies * page_bytes;

	*copies += is_copied(from, in_place);
	page->asked = *from;
	page->kept = from->span != 0 ? span_place(request->spans[from->span - 1], from->place) : nullptr;
	page->near = !in_place || from->page == nullptr;
	if (from->page == nullptr)
	{
		page->asked.page = page->kept;
		page->kept = nullptr;
	}
	else if (in_place)
		page->kept = page->kept != nullptr ? page->kept : device_copies + at;
	else
	{
		page->asked.page = device_copies + at;
		if (from->hinted != 0 || from->span != 0)
			gh_page_copy_backwards(host_copies + at, from->page, page_bytes);
		else
			memcpy(host_copies + at, from->page, page_bytes);
	}
}

/* *far: pages that are read in the host's memory. */
static GhStatus
send_pages(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input, pages_input *job,
		   uint32_t *far, GhError *error)
{
	page_walk	walk = input->walk;
	bool		in_place = reads_in_place(pipeline, request);
	carver		on_host = {};
	carver		on_device = {};
	page_arrays host;
	page_arrays device;
	uint32_t	row = 0;
	uint32_t	copies = 0;
	uint64_t	word = 0;

	on_host.base = pipeline->lane->host_input;
	on_device.base = pipeline->lane->input_block.memory;
	host = pages_carve(pipeline, input->pages, most_words(request), 0, &on_host);
	device = pages_carve(pipeline, input->pages, most_words(request), 0, &on_device);
	*far = 0;
	for (uint32_t p = 0; p < input->pages; p++, walk_on(request, &walk))
	{
		GhPageRef	from = walk_page(request, &walk);
		input_page *page = &host.pages[p];
		uint32_t	words = bitmap_words(&from);

		input_send_page(pipeline, request, &from, page, host.copies, device.copies, &copies);
		*far += page->near == 0;
		page->first = row;
		row += from.lines;
		if (words > 0)
			memcpy(host.bitmaps + word, request->bitmaps + from.bitmap, words * sizeof(uint64_t));
		if (words > 0)
			page->asked.bitmap = (uint32_t) word;
		word += words;
	}
	job->pages = device.pages;
	job->bitmaps = device.bitmaps;
	job->npages = input->pages;
	/* a block reads what it is told of a page once: over the bus, if most pages are there, too */
	if ((in_place || copies == 0) && word == 0 && *far >= input->pages / 2)
	{
		job->pages = host.pages;
		return GH_OK;
	}
	if ((in_place || copies == 0) && word == 0)
		return pipe_copy(&pipeline->memory, device.pages, host.pages, input->pages * sizeof(input_page), error);
	return pipe_copy(&pipeline->memory, pipeline->lane->input_block.memory, pipeline->lane->host_input,
					 host.list_bytes + (in_place ? 0 : copies * (size_t) pipeline->view.page_bytes), error);
}

static GhStatus
launch_pages(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input, GhError *error)
{
	uint32_t	blocks = pipeline->multiprocessors;
	uint32_t	far;
	pages_input job;

	job.view = pipeline->view;
	job.batch = pipeline->lane->batch;
	GH_TRY(send_pages(pipeline, request, input, &job, &far, error));
	/* where most pages are near the bus is not what is waited for */
	blocks *= far < input->pages / 2 ? NEAR_BLOCKS : PAGE_BLOCKS;
	if (input->pages < blocks)
		blocks = input->pages;
	if (pipeline->plan.options.source.kind == GH_SOURCE_LEAVES)
		pages_input_kernel<true><<<blocks, PAGE_THREADS, job.view.page_bytes, pipeline->memory.stream>>>(job);
	else
		pages_input_kernel<false><<<blocks, PAGE_THREADS, job.view.page_bytes, pipeline->memory.stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* -------------------------------------------------------------------- columns */

/* A vector that is given; what is text has its bytes' place in the input. */
struct input_vector
{
	const uint64_t *low;
	const uint64_t *high;
	const uint8_t *null;
	const char *texts;			/* or NULL */
	uint32_t	vector;
};

static __global__ void __launch_bounds__(BLOCK_THREADS)
columns_input_kernel(const pipe_view view, const batch_view batch, const input_vector *vectors, uint32_t nvectors)
{
	uint64_t	row = ELEMENT;

	if (row >= batch.rows)
		return;
	line_values values(view.program, batch.values, row);

	for (uint32_t g = 0; g < nvectors; g++)
	{
		const input_vector from = vectors[g];
		GhValue		value = {from.low[row], 0, from.null[row]};

		if (from.high != nullptr)
			value.high = from.high[row];
		if (from.texts != nullptr)
			value.low += (uint64_t) (uintptr_t) from.texts;
		values.set(from.vector, value);
	}
	batch.state[row] = STATE_LIVE;
	batch.back[row] = NO_STEP;
}

/* Is the vector read by what comes behind? */
static bool
is_taken(const cuda_pipeline *pipeline, const GhPipelineRequest *request, uint32_t g)
{
	uint32_t	v = request->given[g];

	return (pipeline->plan.needed[request->step][v / 64] >> v % 64 & 1) != 0;
}

static bool
is_text(const cuda_pipeline *pipeline, const GhPipelineRequest *request, uint32_t g)
{
	return pipeline->class_at[request->step][request->given[g]] == GH_CLASS_TEXT;
}

/* Bytes of texts of a row. */
static uint64_t
text_bytes(const cuda_pipeline *pipeline, const GhPipelineRequest *request, uint64_t row)
{
	uint64_t	bytes = 0;

	for (uint32_t g = 0; g < request->ngiven; g++)
		if (is_taken(pipeline, request, g) && is_text(pipeline, request, g) && !request->vectors[g].null[row])
			bytes += request->vectors[g].high[row];
	return bytes;
}

static bool
has_texts(const cuda_pipeline *pipeline, const GhPipelineRequest *request)
{
	for (uint32_t g = 0; g < request->ngiven; g++)
		if (is_taken(pipeline, request, g) && is_text(pipeline, request, g))
			return true;
	return false;
}

/* How many rows from one on are a batch; *bytes: of their texts. */
static uint32_t
column_rows(const cuda_pipeline *pipeline, const GhPipelineRequest *request, uint64_t first, uint64_t *bytes)
{
	uint64_t	left = request->count - first;
	uint32_t	most = (uint32_t) (left < rows_at_once(pipeline) ? left : rows_at_once(pipeline));

	*bytes = 0;
	if (!has_texts(pipeline, request))
		return most;
	for (uint32_t i = 0; i < most; i++)
	{
		uint64_t	more = text_bytes(pipeline, request, first + i);

		if (i > 0 && *bytes + more > COLUMN_BYTES)
			return i;
		*bytes += more;
	}
	return most;
}

/* Where the input of a batch of columns is. */
struct column_arrays
{
	input_vector *vectors;
	char	   *values[GH_PROGRAM_VECTORS_MAX][3];	/* low, high, null; by what is given */
	char	   *texts;
};

static void
columns_carve(const cuda_pipeline *pipeline, const GhPipelineRequest *request, uint32_t rows, uint64_t bytes,
			  column_arrays *arrays, carver *carver)
{
	arrays->vectors = carver->array<input_vector>(request->ngiven);
	for (uint32_t g = 0; g < request->ngiven; g++)
	{
		if (!is_taken(pipeline, request, g))
			continue;
		arrays->values[g][0] = carver->array<char>(rows * sizeof(uint64_t));
		if (pipeline->plan.wide[request->given[g]] != 0)
			arrays->values[g][1] = carver->array<char>(rows * sizeof(uint64_t));
		arrays->values[g][2] = carver->array<char>(rows);
	}
	/* whole words of texts are read */
	arrays->texts = carver->array<char>(bytes + 16);
}

/* Copies the texts of a vector, and says where each is. */
static void
stage_texts(const GhVector *from, uint64_t first, uint32_t rows, uint64_t *low, char *texts, uint64_t *used)
{
	for (uint32_t i = 0; i < rows; i++)
	{
		uint64_t	bytes = from->null[first + i] ? 0 : from->high[first + i];

		low[i] = *used;
		if (bytes > 0)
			memcpy(texts + *used, reinterpret_cast<const char *>((uintptr_t) from->low[first + i]), bytes);
		*used += bytes;
	}
}

static GhStatus
launch_columns(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input, GhError *error)
{
	uint32_t	rows = input->rows;
	carver		on_host = {};
	carver		on_device = {};
	column_arrays host = {};
	column_arrays device = {};
	uint64_t	bytes;
	uint64_t	used = 0;
	uint32_t	n = 0;

	(void) column_rows(pipeline, request, input->first, &bytes);
	on_host.base = pipeline->lane->host_input;
	on_device.base = pipeline->lane->input_block.memory;
	columns_carve(pipeline, request, rows, bytes, &host, &on_host);
	columns_carve(pipeline, request, rows, bytes, &device, &on_device);
	for (uint32_t g = 0; g < request->ngiven; g++)
	{
		const GhVector *from = &request->vectors[g];
		bool		wide = pipeline->plan.wide[request->given[g]] != 0;
		bool		text = is_text(pipeline, request, g);

		if (!is_taken(pipeline, request, g))
			continue;
		if (text)
			stage_texts(from, input->first, rows, reinterpret_cast<uint64_t *>(host.values[g][0]), host.texts, &used);
		else
			memcpy(host.values[g][0], from->low + input->first, rows * sizeof(uint64_t));
		if (wide)
			memcpy(host.values[g][1], from->high + input->first, rows * sizeof(uint64_t));
		memcpy(host.values[g][2], from->null + input->first, rows);
		host.vectors[n++] = {reinterpret_cast<const uint64_t *>(device.values[g][0]),
			wide ? reinterpret_cast<const uint64_t *>(device.values[g][1]) : nullptr,
			reinterpret_cast<const uint8_t *>(device.values[g][2]), text ? device.texts : nullptr, request->given[g]};
	}
	GH_TRY(pipe_copy(&pipeline->memory, pipeline->lane->input_block.memory, pipeline->lane->host_input, on_host.used,
					 error));
	columns_input_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, pipeline->lane->batch, device.vectors, n);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* -------------------------------------------------------------- other sources */

/* A part of a group; false: it does not fit, and the row goes back. */
static __device__ bool
group_part(const plan_view &plan, const groups_view &groups, uint32_t number, const group_fill &fill, GhValue *value)
{
	const GhRecordHead *group = group_at(groups, number);
	const GhAggregateState *state = &groups.states[(uint64_t) number * plan.naggregates + fill.number];

	if (fill.part == GH_GROUP_KEY)
	{
		*value = gh_record_group_value(&plan.keys[fill.number], group, fill.number, groups.texts);
		return true;
	}
	*value = GhValue{state->count, 0, 0};
	if (fill.part == GH_GROUP_COUNT)
		return true;
	*value = GhValue{state->low, state->high, (uint8_t) (state->count == 0)};
	return state->count == 0 || fill.narrow == 0 || state->high == gh_sign_extension(state->low);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
groups_input_kernel(const pipe_view view, const batch_view batch, const plan_view plan, const groups_view groups,
					uint64_t first)
{
	uint64_t	row = ELEMENT;
	bool		there = row < batch.rows;

	if (there)
	{
		uint32_t	number = (uint32_t) (first + row);
		line_values values(view.program, batch.values, row);
		bool		fits = true;

		there = group_at(groups, number)->rows != 0 || plan.nkeys == 0;
		for (uint32_t c = 0; c < view.ncolumns; c++)
		{
			group_fill	column = view.group_columns[c];
			GhValue		value;

			fits &= group_part(plan, groups, number, column, &value);
			values.set(column.column, value);
		}
		batch.state[row] = !there ? STATE_DROPPED : fits ? STATE_LIVE : STATE_BACK;
		batch.back[row] = there && !fits ? 0 : NO_STEP;
	}
	add_tally(&batch.counters->seen, there);
}

/*
 * A row of a probe's table, if it has no mark.  All columns are NULL but for those that it fills, and what
 * the steps in front of the probe set is set, while filters among them drop nothing.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
unmatched_input_kernel(const pipe_view view, const batch_view batch, uint32_t step, uint64_t first)
{
	uint64_t	row = ELEMENT;
	bool		there = row < batch.rows;

	if (there)
	{
		const probe_view &probe = view.probes[view.steps[step].probe - 1];
		uint64_t	number = first + row;
		line_values values(view.program, batch.values, row);
		bool		back = false;

		there = (probe.marks[number / 32] >> number % 32 & 1) == 0;
		for (uint32_t c = 0; there && c < view.program->ncolumns; c++)
			values.set(c, GhValue{0, 0, 1});
		for (uint32_t s = 0; there && s < step && !back; s++)
			for (uint32_t i = view.steps[s].begin; view.steps[s].probe == 0 && i < view.steps[s].end && !back; i++)
				if (gh_program_instructions(view.program)[i].op != GH_OP_FILTER)
					back = run_program(view.plan, values, i, i + 1) == GH_ROW_BACK;
		for (uint32_t f = 0; there && f < probe.nfills; f++)
			values.set(probe.fills[f].column, kept_at(probe.rows, number, probe.fills[f].kept));
		back |= there && row_hands_back(probe.rows, number);
		batch.state[row] = !there ? STATE_DROPPED : back ? STATE_BACK : STATE_LIVE;
		batch.back[row] = there && back ? step : NO_STEP;
	}
	add_tally(&batch.counters->seen, there);
}

static GhStatus
launch_others(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input, GhError *error)
{
	uint64_t	first = request->first + input->first;
	cudaStream_t stream = pipeline->memory.stream;
	uint32_t	blocks = blocks_for(input->rows);

	if (request->kind == GH_INPUT_UNMATCHED)
		unmatched_input_kernel<<<blocks, BLOCK_THREADS, 0, stream>>>
			(pipeline->view, pipeline->lane->batch, request->step, first);
	else
	{
		const cuda_pipeline *groups = reinterpret_cast<const cuda_pipeline *>(pipeline->plan.options.source.groups);

		groups_input_kernel<<<blocks, BLOCK_THREADS, 0, stream>>>
			(pipeline->view, pipeline->lane->batch, groups->view.plan, groups->groups, first);
	}
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* ------------------------------------------------------------------------ all */

/* Bytes of texts that a batch has at most, however many rows are done at a time. */
static uint64_t
most_text_bytes(const cuda_pipeline *pipeline, const GhPipelineRequest *request)
{
	uint64_t	all = 0;
	uint64_t	largest = 0;	/* of one row */

	for (uint64_t row = 0; has_texts(pipeline, request) && row < request->count; row++)
	{
		uint64_t	bytes = text_bytes(pipeline, request, row);

		all += bytes;
		largest = bytes > largest ? bytes : largest;
	}
	if (largest < COLUMN_BYTES)
		largest = COLUMN_BYTES;
	return all < largest ? all : largest;
}

GhStatus
input_begin(cuda_pipeline *pipeline, const GhPipelineRequest *request, GhError *error)
{
	carver		sizes = {};

	if (request->kind == GH_INPUT_PAGES)
	{
		bool		in_place = reads_in_place(pipeline, request);
		uint64_t	npages = gh_request_pages(request->pages, request->npages);
		page_arrays arrays = pages_carve(pipeline, npages < BATCH_PAGES ? (uint32_t) npages : BATCH_PAGES,
										 most_words(request), most_copies(request, in_place), &sizes);

		/* what is read in place is copied by the device alone */
		return input_reserve(pipeline, in_place ? arrays.list_bytes : sizes.used, sizes.used, error);
	}
	if (request->kind == GH_INPUT_COLUMNS)
	{
		uint64_t	rows = request->count < pipeline->lane->batch_rows ? request->count : pipeline->lane->batch_rows;
		column_arrays arrays = {};

		columns_carve(pipeline, request, (uint32_t) rows, most_text_bytes(pipeline, request), &arrays, &sizes);
	}
	return input_reserve(pipeline, sizes.used, sizes.used, error);
}

/* All that a pass takes is a batch of its own; else as many pages as their rows have places. */
static batch_input
next_pages(const cuda_pipeline *pipeline, const GhPipelineRequest *request, uint64_t *at)
{
	page_walk	walk = walk_of(*at);
	batch_input input = {walk.page, walk, 0, 0, 0};

	if (is_one_pass(request))
	{
		for (; walk.listed < request->npages; walk.listed++)
		{
			input.pages += request->pages[walk.listed].run > 1 ? request->pages[walk.listed].run : 1;
			input.rows += request->pages[walk.listed].lines;
		}
		walk.page = input.pages;
	}
	for (; walk.listed < request->npages && input.pages < BATCH_PAGES; walk_on(request, &walk), input.pages++)
	{
		uint32_t	lines = lines_of_page(request, walk.page);

		if (lines > rows_at_once(pipeline) - input.rows)
			break;
		input.rows += lines;
	}
	*at = at_of(&walk);
	return input;
}

batch_input
input_next(const cuda_pipeline *pipeline, GhPipelineRequest *request)
{
	uint64_t   *at = &request->engine_state[PIPE_AT];
	batch_input input = {*at, {}, 0, 0, 0};
	uint64_t	bytes;

	if (request->kind == GH_INPUT_PAGES)
		return next_pages(pipeline, request, at);
	if (request->kind == GH_INPUT_COLUMNS)
	{
		input.step = request->step;
		input.rows = column_rows(pipeline, request, *at, &bytes);
	}
	else
	{
		uint64_t	left = request->count - *at;

		input.step = request->kind == GH_INPUT_UNMATCHED ? request->step + 1 : 0;
		input.rows = (uint32_t) (left < rows_at_once(pipeline) ? left : rows_at_once(pipeline));
	}
	*at += input.rows;
	return input;
}

/* Rows that are all there are counted by the host. */
GhStatus
input_launch(cuda_pipeline *pipeline, const GhPipelineRequest *request, const batch_input *input, GhError *error)
{
	if (is_one_pass(request))
		return pass_launch(pipeline, request, input, error);
	if (request->kind == GH_INPUT_PAGES)
		return launch_pages(pipeline, request, input, error);
	if (request->kind == GH_INPUT_COLUMNS)
		return launch_columns(pipeline, request, input, error);
	return launch_others(pipeline, request, input, error);
}
