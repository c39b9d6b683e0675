/*
 * pipeline_table.cu
 *		The table that a pipeline makes of its rows: an index by their keys; and marks of its rows.
 *
 * The index is a table of this engine, of keys and values of 8 bytes.  A value is the number of a row.  Where
 * probes are to find all rows of a key, and some key has several, the rows are sorted by the row that their
 * key has in the index, and such a key's value is the place in that list with which its rows begin
 * (ROW_SEVERAL, table_chains.cuh). The index is the handle that the caller gets, and has the rows.
 *
 * Where a row keeps no more than one value of 8 bytes, which is NULL in none, and nothing else asks for rows,
 * the index has that value in place of the row's number, and there are no rows (in_index): so a probe reads
 * one place of memory, not two.  Whether some key has several rows is known when all keys are in the index.
 * If a probe is to find them all, numbers take the values' places then.
 */
#include <stdlib.h>

#include "cuda/pipeline/table_chains.cuh"
#include "cuda/pipeline/pipeline.cuh"

/* Arrays of a table that is being made. */
struct index_work
{
	pipe_block	block;
	const uint64_t *keys;		/* what goes into the index, */
	uint64_t	count;			/* as many, */
	uint64_t   *values;			/* with these */
	uint64_t   *keyed;			/* room for keys */
	uint32_t   *counts;			/* COUNTS: of rows (survey_kernel) */
};

/* -------------------------------------------------------------------- kernels */

#define COUNTS 3

/* Counts rows that have a key, those that hand back, and those whose first value is NULL. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
survey_kernel(const uint64_t *words, uint32_t row_words, uint32_t keyless_bit, uint32_t back_bit, uint64_t rows,
			  uint32_t *counts)
{
	uint64_t	row = ELEMENT;
	bool		keyed = false;
	bool		back = false;
	bool		null = false;

	if (row < rows)
	{
		const uint64_t *bits = words + row * row_words;

		keyed = (bits[keyless_bit / 64] >> keyless_bit % 64 & 1) == 0;
		back = (bits[back_bit / 64] >> back_bit % 64 & 1) != 0;
		null = keyless_bit > 0 && (bits[0] & 1) != 0;
	}
	add_tally(&counts[0], keyed);
	add_tally(&counts[1], back);
	add_tally(&counts[2], null);
}

/* A word of each row, side by side. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
words_kernel(const uint64_t *words, uint32_t row_words, uint32_t word, uint64_t rows, uint64_t *values)
{
	uint64_t	row = ELEMENT;

	if (row < rows)
		values[row] = words[row * row_words + word];
}

/* No key has a number in place of its value yet. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
unnumber_kernel(const table_view view, const uint64_t *keys, uint64_t rows)
{
	uint64_t	row = ELEMENT;
	uint64_t	found;
	uint64_t   *place = row < rows ? scan_locate(view, keys[row], &found) : nullptr;

	if (place != nullptr)
		*place = UINT64_MAX;
}

/* The number of its first row. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
renumber_kernel(const table_view view, const uint64_t *keys, uint64_t rows)
{
	uint64_t	row = ELEMENT;
	uint64_t	found;
	uint64_t   *place = row < rows ? scan_locate(view, keys[row], &found) : nullptr;

	if (place != nullptr)
		atomicMin(reinterpret_cast<unsigned long long *>(place), (unsigned long long) row);
}

/* ---------------------------------------------------------------------- index */

/* What a failure of the index is to the pipeline. */
static GhStatus
index_status(cuda_pipeline *pipeline, GhStatus status, const GhError *why, GhError *error)
{
	if (status == GH_OK)
		return GH_OK;
	if (status != GH_DEVICE_ERROR)
		return gh_error_set(error, status == GH_NO_MEMORY || status == GH_STOPPED ? status : GH_LIMIT, "%s",
							why->message);
	if (!pipeline->memory.failed)
		(void) gh_error_set(&pipeline->memory.error, GH_DEVICE_ERROR, "%s", why->message);
	pipeline->memory.failed = true;
	*error = pipeline->memory.error;
	return GH_DEVICE_ERROR;
}

static GhStatus
create_index(cuda_pipeline *pipeline, uint64_t keys, GhTable **index, GhError *error)
{
	const GhTableSink *sink = &pipeline->plan.options.sink.table;
	const pipe_memory *memory = &pipeline->memory;
	GhTableOptions options = {};
	GhError		why = {};

	if (memory->limit > 0 && memory->bytes >= memory->limit)
		return gh_error_set(error, GH_LIMIT, "the memory limit of a pipeline leaves none for its table");
	options.key_size = sizeof(uint64_t);
	options.value_size = sizeof(uint64_t);
	options.subtables = sink->subtables;
	options.fill_min = sink->fill_min;
	options.fill_max = sink->fill_max;
	options.capacity = keys;
	options.memory_limit = memory->limit > 0 ? memory->limit - memory->bytes : 0;
	options.seed = sink->seed;
	options.device = memory->device;
	return index_status(pipeline, cuda_table_create(&memory->host, &options, index, &why), &why, error);
}

static GhStatus
work_create(cuda_pipeline *pipeline, index_work *work, GhError *error)
{
	uint64_t	rows = pipeline->rows->count;
	carver		sizes = {};
	carver		arrays = {};

	(void) sizes.array<uint64_t>(rows);
	(void) sizes.array<uint64_t>(rows);
	(void) sizes.array<uint32_t>(COUNTS);
	GH_TRY(pipe_alloc(&pipeline->memory, sizes.used, false, &work->block, error));
	arrays.base = work->block.memory;
	work->values = arrays.array<uint64_t>(rows);
	work->keyed = arrays.array<uint64_t>(rows);
	work->counts = arrays.array<uint32_t>(COUNTS);
	return GH_OK;
}

static keyed_rows
rows_with_keys(const pipe_rows *rows, bool some_without)
{
	keyed_rows	keyed = {};

	if (!some_without)
		return keyed;
	keyed.words = reinterpret_cast<const uint64_t *>(rows->block.memory);
	keyed.row_words = rows->row_words;
	keyed.bit = rows->keyless_bit;
	return keyed;
}

/* May the index have what a row keeps, as far as one row shows? */
static bool
fits_in_index(const GhTableSink *sink)
{
	return sink->numbered == 0 &&
		(sink->nkept == 0 || (sink->nkept == 1 && !gh_class_has_high(sink->kept[0].value_class)));
}

/* How many rows have a key; whether some hand back, and whether the index may have what they keep. */
static GhStatus
survey_rows(cuda_pipeline *pipeline, index_work *work, GhError *error)
{
	pipe_rows  *rows = pipeline->rows;
	uint32_t	counts[COUNTS] = {0};

	GH_TRY(pipe_zero(&pipeline->memory, work->counts, sizeof(counts), error));
	survey_kernel<<<blocks_for(rows->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(reinterpret_cast<const uint64_t *>(rows->block.memory), rows->row_words, rows->keyless_bit, rows->back_bit,
		 rows->count, work->counts);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	GH_TRY(pipe_copy(&pipeline->memory, counts, work->counts, sizeof(counts), error));
	GH_TRY(pipe_wait(&pipeline->memory, error));
	work->count = counts[0];
	rows->any_back = counts[1] > 0;
	rows->in_index = fits_in_index(&pipeline->plan.options.sink.table) && work->count == rows->count &&
		!rows->any_back && counts[2] == 0;
	return GH_OK;
}

/* The keys that go into the index, and the numbers of their rows, or what these keep. */
static GhStatus
list_keys(cuda_pipeline *pipeline, index_work *work, GhError *error)
{
	const pipe_rows *rows = pipeline->rows;
	const uint64_t *keys = reinterpret_cast<const uint64_t *>(rows->keys_block.memory);
	cudaStream_t stream = pipeline->memory.stream;

	work->keys = keys;
	if (rows->in_index && rows->shape.nkept > 0)
		words_kernel<<<blocks_for(rows->count), BLOCK_THREADS, 0, stream>>>
			(reinterpret_cast<const uint64_t *>(rows->block.memory), rows->row_words,
			 pipe_kept_place(&rows->shape, 0).word, rows->count, work->values);
	else if (work->count == rows->count)
		numbers_kernel<<<blocks_for(rows->count), BLOCK_THREADS, 0, stream>>>(rows->count, work->values);
	else
	{
		GH_TRY(pipe_zero(&pipeline->memory, work->counts, sizeof(uint32_t), error));
		keyed_kernel<<<blocks_for(rows->count), BLOCK_THREADS, 0, stream>>>
			(keys, rows_with_keys(rows, true), rows->count, work->keyed, work->values, work->counts);
		work->keys = work->keyed;
	}
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return pipe_wait(&pipeline->memory, error);
}

/* Puts the keys into the index; *keys: how many different ones there are. */
static GhStatus
insert_keys(cuda_pipeline *pipeline, const index_work *work, GhTable *index, uint64_t *keys, GhError *error)
{
	GhRequest	request = {};
	GhStatus	status;

	request.op = GH_INSERT;
	request.on_device = true;
	request.count = work->count;
	request.keys = work->keys;
	request.values_in = work->values;
	status = cuda_submit(index, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = cuda_wait(&request);
	*keys = request.outcome.inserted;
	return index_status(pipeline, status, &request.error, error);
}

/* -------------------------------------------------------------- several of a key */

/* Memory for what a table has beside its index, which counts for the limit as that does. */
static GhStatus
alloc_beside(cuda_pipeline *pipeline, GhTable *index, uint64_t bytes, pipe_block *block, GhError *error)
{
	const pipe_memory *memory = &pipeline->memory;
	GhTableStats stats;
	GhError		why = {};

	GH_TRY(index_status(pipeline, cuda_table_stats(index, &stats, &why), &why, error));
	if (memory->limit > 0 && memory->bytes + stats.bytes_peak + bytes > memory->limit)
		return gh_error_set(error, GH_LIMIT, "the memory limit of a pipeline leaves none for %llu bytes beside its "
							"table", (unsigned long long) bytes);
	return pipe_alloc(&pipeline->memory, bytes, true, block, error);
}

static GhStatus
link_rows(cuda_pipeline *pipeline, const cuda_table *index, const chain_work *work, bool some_without,
		  GhError *error)
{
	const pipe_rows *rows = pipeline->rows;
	const uint64_t *keys = reinterpret_cast<const uint64_t *>(rows->keys_block.memory);
	uint32_t   *members = reinterpret_cast<uint32_t *>(rows->members_block.memory);
	cudaStream_t stream = pipeline->memory.stream;
	uint32_t	count = (uint32_t) rows->count;
	table_view	view = table_make_view(index);
	size_t		space_bytes = work->space_bytes;

	firsts_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>
		(view, keys, rows_with_keys(rows, some_without), count, *work);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	PIPE_TRY(&pipeline->memory, sort_rows(work, members, work->space, &space_bytes, count, stream), error);
	link_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>(view, keys, count, work->sorted, members);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return pipe_wait(&pipeline->memory, error);
}

/* The index gets the numbers of rows in place of what they keep. */
static GhStatus
number_rows(cuda_pipeline *pipeline, const GhTable *index, GhError *error)
{
	const pipe_rows *rows = pipeline->rows;
	const uint64_t *keys = reinterpret_cast<const uint64_t *>(rows->keys_block.memory);
	table_view	view = table_make_view(reinterpret_cast<const cuda_table *>(index));
	uint32_t	blocks = blocks_for(rows->count);

	unnumber_kernel<<<blocks, BLOCK_THREADS, 0, pipeline->memory.stream>>>(view, keys, rows->count);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	renumber_kernel<<<blocks, BLOCK_THREADS, 0, pipeline->memory.stream>>>(view, keys, rows->count);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	return GH_OK;
}

/* Of an index with the numbers of rows. */
static GhStatus
chain_rows(cuda_pipeline *pipeline, GhTable *index, bool some_without, GhError *error)
{
	pipe_rows  *rows = pipeline->rows;
	uint32_t	count = (uint32_t) rows->count;
	chain_work	work = {};
	pipe_block	block;
	carver		sizes = {};
	carver		arrays = {};
	GhStatus	status;

	GH_TRY(alloc_beside(pipeline, index, count * sizeof(uint32_t), &rows->members_block, error));
	PIPE_TRY(&pipeline->memory, sort_rows(&work, nullptr, nullptr, &work.space_bytes, count, pipeline->memory.stream),
			 error);
	work_carve(&work, count, &sizes);
	GH_TRY(pipe_alloc(&pipeline->memory, sizes.used, false, &block, error));
	arrays.base = block.memory;
	work_carve(&work, count, &arrays);
	status = link_rows(pipeline, reinterpret_cast<cuda_table *>(index), &work, some_without, error);
	pipe_free(&pipeline->memory, false, &block);
	return status != GH_OK ? status : pipeline->memory.failed ? GH_DEVICE_ERROR : GH_OK;
}

/* ------------------------------------------------------------------- the table */

/* Fills the index with the rows' keys. */
static GhStatus
fill_index(cuda_pipeline *pipeline, index_work *work, GhTable **index, GhError *error)
{
	pipe_rows  *rows = pipeline->rows;
	uint64_t	keys = 0;

	if (rows->count > 0)
	{
		GH_TRY(work_create(pipeline, work, error));
		GH_TRY(survey_rows(pipeline, work, error));
	}
	GH_TRY(create_index(pipeline, work->count, index, error));
	rows->has_index = work->count > 0;
	if (work->count == 0)
		return GH_OK;
	GH_TRY(list_keys(pipeline, work, error));
	if (pipe_stopped(&pipeline->memory))
		return gh_error_set(error, GH_STOPPED, "the making of a pipeline's table was stopped");
	GH_TRY(insert_keys(pipeline, work, *index, &keys, error));
	rows->shape.several = keys < work->count && pipeline->plan.options.sink.table.matches == GH_MATCHES_ALL;
	if (!rows->shape.several)
		return GH_OK;
	if (rows->in_index)
		GH_TRY(number_rows(pipeline, *index, error));
	rows->in_index = false;
	return chain_rows(pipeline, *index, work->count < rows->count, error);
}

/* The rows become the table's. */
static GhStatus
hand_over(cuda_pipeline *pipeline, GhTable *index, GhMadeTable *made, GhError *error)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(index);
	pipe_rows  *rows = pipeline->rows;
	pipe_memory *memory = &pipeline->memory;
	GhTableStats stats;
	GhError		why = {};

	pipe_free(memory, true, &rows->keys_block);
	if (rows->in_index)
		pipe_free(memory, true, &rows->block);
	/* it is only read from now on, mostly by kernels of pipelines */
	lane_shrink(table, &table->lanes[0], 0);
	GH_TRY(index_status(pipeline, cuda_table_stats(index, &stats, &why), &why, error));
	rows->shape.rows = rows->count;
	rows->memory = *memory;
	rows->memory.stream = nullptr;
	rows->memory.bytes = rows->block.bytes + rows->texts_block.bytes + rows->members_block.bytes;
	pipeline->made_stats.entries = rows->count;
	pipeline->made_stats.bytes = rows->memory.bytes + stats.bytes;
	pipeline->made_stats.bytes_peak = memory->bytes + stats.bytes_peak > memory->bytes_peak ?
		memory->bytes + stats.bytes_peak : memory->bytes_peak;
	memory->bytes -= rows->memory.bytes;
	table->rows = rows;
	table->by_number = !rows->in_index;
	table->made_value_size = gh_made_value_size(&rows->shape, rows->any_back);
	pipeline->rows = nullptr;
	made->table = index;
	made->rows = rows->count;
	made->several = rows->shape.several;
	made->value_size = table->made_value_size;
	return memory->failed ? GH_DEVICE_ERROR : GH_OK;
}

/*
 * The flag is looked at before the keys are put into the index, and by that: then nothing of the rows has
 * changed.
 */
GhStatus
pipe_make_table(cuda_pipeline *pipeline, GhMadeTable *made, GhError *error)
{
	index_work	work = {};
	GhTable    *index = nullptr;
	GhStatus	status = fill_index(pipeline, &work, &index, error);

	pipe_free(&pipeline->memory, false, &work.block);
	if (status == GH_OK)
		status = hand_over(pipeline, index, made, error);
	/* what was handed over goes with it */
	if (status != GH_OK)
	{
		*made = {};
		cuda_table_destroy(index);
	}
	return status;
}

bool
cuda_table_describe(const GhTable *table, GhTableShape *shape)
{
	const cuda_table *handle = reinterpret_cast<const cuda_table *>(table);

	if (table->engine != gh_cuda_engine())
		return false;
	if (handle->rows != nullptr)
	{
		*shape = handle->rows->shape;
		return true;
	}
	*shape = {};
	if (handle->options.key_size != sizeof(uint64_t) || handle->options.multi ||
		(handle->options.value_size != 0 && handle->options.value_size != sizeof(uint64_t)))
		return false;
	shape->nkept = handle->options.value_size != 0;
	shape->kept[0].value_class = GH_CLASS_INT;
	shape->kept[0].bytes = sizeof(uint64_t);
	return true;
}

/* ----------------------------------------------------------------------- marks */

GhStatus
cuda_marks_create(const GhHost *host, GhTable *table, GhMarks **result, GhError *error)
{
	const cuda_table *handle = reinterpret_cast<const cuda_table *>(table);
	GhTableShape shape;
	GhMarks    *marks;
	GhStatus	status;

	*result = nullptr;
	if (!cuda_table_describe(table, &shape) || !shape.numbered)
		return gh_error_set(error, GH_INVALID, "there are no marks of a table whose rows are not numbered");
	GH_TRY(device_open(handle->options.device, error));
	marks = static_cast<GhMarks *>(calloc(1, sizeof(GhMarks)));
	if (marks == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for marks");
	if (host != nullptr)
		marks->memory.host = *host;
	marks->memory.device = handle->options.device;
	marks->memory.stream = cudaStreamPerThread;
	marks->table = handle;
	status = pipe_alloc(&marks->memory, (shape.rows / 64 + 1) * sizeof(uint64_t), false, &marks->block, error);
	if (status == GH_OK)
		status = pipe_zero(&marks->memory, marks->block.memory, marks->block.bytes, error);
	if (status == GH_OK)
		status = pipe_wait(&marks->memory, error);
	if (status != GH_OK)
	{
		cuda_marks_destroy(marks);
		return status;
	}
	*result = marks;
	return GH_OK;
}

void
cuda_marks_destroy(GhMarks *marks)
{
	if (marks == nullptr)
		return;
	(void) cudaSetDevice(marks->memory.device);
	pipe_free(&marks->memory, false, &marks->block);
	free(marks);
}
