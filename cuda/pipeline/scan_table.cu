/*
 * scan_table.cu
 *		The table that a scan makes: rows, and in the end a hash table over them.
 *
 * The pages' kernel leaves a row's key and words beside its line, as it leaves arguments of
 * aggregates, and its texts in the scan's heap (scan_join.cuh).  When the pages were read, the live
 * lines are appended to the rows: how many there are is known then, so the room is made before, and
 * each is appended once, however often its page was read.  Without room they all go back.
 *
 * The table is a table of this engine, of 8-byte keys: their values are numbers of rows or, where
 * that is all there is to a row, the one word that it keeps.  Equal keys keep the number of one of
 * the rows, with a bit that says that there are several; or, where joins are to find all of them, their
 * place in a list (scan_chains.cu).
 */
#include "cuda/pipeline/scan_chains.cuh"
#include "cuda/pipeline/scan_device.cuh"
#include "cuda/pipeline/scan_join.cuh"

#define ROOM_MIN ((uint64_t) 256)	/* rows */
#define TEXT_BYTES_MIN ((uint64_t) 4096)
#define TEXT_BYTES_GUESS ((uint64_t) 16)	/* of a row */

/* --------------------------------------------------------------------- memory */

static GhStatus
texts_set_used(cuda_scan *scan, uint64_t used, GhError *error)
{
	SCAN_TRY(scan, cudaMemcpyAsync(scan->rows.texts.used, &used, sizeof(used),
								   cudaMemcpyHostToDevice, scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	return GH_OK;
}

/* Memory for texts, all zero, and whole words, as they are read. */
static GhStatus
texts_alloc(cuda_scan *scan, uint64_t bytes, scan_block *block, GhError *error)
{
	cudaError_t status;

	bytes = bytes > TEXT_BYTES_MIN ? (bytes + 15) / 16 * 16 : TEXT_BYTES_MIN;
	GH_TRY(scan_alloc(scan, bytes, true, block, error));
	status = cudaMemsetAsync(block->memory, 0, block->bytes, scan->reduce_stream);
	if (status == cudaSuccess)
		return GH_OK;
	scan_free(scan, true, block);
	return scan_failed(scan, status, "cudaMemsetAsync", error);
}

/* Room comes with the first rows; for texts there is some if that is to be had. */
GhStatus
rows_create(cuda_scan *scan, GhError *error)
{
	scan_rows  *rows = &scan->rows;
	uint64_t	expected = scan->plan.options.groups;
	GhStatus	status;

	GH_TRY(scan_alloc(scan, sizeof(uint64_t), false, &rows->used_block, error));
	rows->texts.used = reinterpret_cast<uint64_t *>(rows->used_block.memory);
	if (!scan_keeps_texts(scan))
		return texts_set_used(scan, 0, error);
	status = texts_alloc(scan, (expected < GH_BATCH_MAX ? expected : GH_BATCH_MAX) * TEXT_BYTES_GUESS,
						 &rows->texts_block, error);
	rows->texts.bytes = rows->texts_block.memory;
	rows->texts.room = rows->texts_block.bytes;
	/* waits for the zeros, too */
	return status == GH_DEVICE_ERROR ? status : texts_set_used(scan, 0, error);
}

void
rows_destroy(cuda_scan *scan)
{
	if (scan->rows.table != nullptr)
		cuda_table_destroy(&scan->rows.table->base);
	scan->rows.table = nullptr;
	scan_free(scan, true, &scan->rows.block);
	scan_free(scan, true, &scan->rows.texts_block);
	scan_free(scan, true, &scan->rows.members_block);
	scan_free(scan, true, &scan->rows.marks_block);
	scan_free(scan, false, &scan->rows.used_block);
}

/*
 * Pages were read whose texts did not fit, and will be once more where *grown.  It is no error where
 * there is no memory.
 */
GhStatus
rows_grow_texts(cuda_scan *scan, bool *grown, GhError *error)
{
	scan_rows  *rows = &scan->rows;
	uint64_t	used;
	uint64_t	wanted;
	scan_block	block;
	GhStatus	status;

	*grown = false;
	GH_TRY(scan_wait_streams(scan, error));
	SCAN_TRY(scan, cudaMemcpyAsync(&used, rows->texts.used, sizeof(used), cudaMemcpyDeviceToHost,
								   scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	/* what found no room was counted, too */
	wanted = used < 2 * rows->texts.room ? 2 * rows->texts.room : used + used / 2;
	used = used < rows->texts.room ? used : rows->texts.room;
	status = texts_alloc(scan, wanted, &block, error);
	if (status != GH_OK)
		return status == GH_DEVICE_ERROR ? status : GH_OK;
	if (used > 0)
	{
		cudaError_t copied = cudaMemcpyAsync(block.memory, rows->texts.bytes, used,
											 cudaMemcpyDeviceToDevice, scan->reduce_stream);

		if (copied != cudaSuccess)
		{
			scan_free(scan, true, &block);
			return scan_failed(scan, copied, "cudaMemcpyAsync", error);
		}
	}
	scan_free(scan, true, &rows->texts_block);
	rows->texts_block = block;
	rows->texts.bytes = block.memory;
	rows->texts.room = block.bytes;
	scan->generation++;
	*grown = true;
	if (scan->failed)
		return GH_DEVICE_ERROR;
	return texts_set_used(scan, used, error);
}

static void
rows_carve(const cuda_scan *scan, scan_rows *rows, uint64_t room, carver *carver)
{
	rows->room = room;
	rows->keys = carver->array<uint64_t>(room);
	rows->words = carver->array<uint64_t>(room * scan->view.ninputs);
}

/* Room for so many rows; GH_LIMIT and GH_NO_MEMORY leave all as it is. */
static GhStatus
rows_set_room(cuda_scan *scan, uint64_t room, GhError *error)
{
	scan_rows  *rows = &scan->rows;
	scan_rows	larger = *rows;
	carver		sizes = {};
	carver		arrays = {};
	cudaError_t copied = cudaSuccess;

	rows_carve(scan, &larger, room, &sizes);
	GH_TRY(scan_alloc(scan, sizes.used, true, &larger.block, error));
	arrays.base = larger.block.memory;
	rows_carve(scan, &larger, room, &arrays);
	if (rows->count > 0)
		copied = cudaMemcpyAsync(larger.keys, rows->keys, rows->count * sizeof(uint64_t),
								 cudaMemcpyDeviceToDevice, scan->reduce_stream);
	if (rows->count > 0 && copied == cudaSuccess && scan->view.ninputs > 0)
		copied = cudaMemcpyAsync(larger.words, rows->words,
								 rows->count * scan->view.ninputs * sizeof(uint64_t),
								 cudaMemcpyDeviceToDevice, scan->reduce_stream);
	/* waits for the copies */
	scan_free(scan, true, &rows->block);
	*rows = larger;
	if (copied != cudaSuccess)
		return scan_failed(scan, copied, "cudaMemcpyAsync", error);
	return scan->failed ? GH_DEVICE_ERROR : GH_OK;
}

static GhStatus
rows_reserve(cuda_scan *scan, uint64_t more, GhError *error)
{
	scan_rows  *rows = &scan->rows;
	uint64_t	needed = rows->count + more;
	uint64_t	wanted = 2 * rows->room;
	GhStatus	status;

	if (needed <= rows->room)
		return GH_OK;
	/* a table is made in one request */
	if (needed > GH_BATCH_MAX)
		return GH_LIMIT;
	if (rows->room == 0)
		wanted = scan->plan.options.groups > ROOM_MIN ? scan->plan.options.groups : ROOM_MIN;
	if (wanted > GH_BATCH_MAX)
		wanted = GH_BATCH_MAX;
	if (wanted <= needed)
		return rows_set_room(scan, needed, error);
	status = rows_set_room(scan, wanted, error);
	if (status == GH_LIMIT || status == GH_NO_MEMORY)
		status = rows_set_room(scan, needed, error);
	return status;
}

/* ----------------------------------------------------------------------- rows */

static __global__ void __launch_bounds__(BLOCK_THREADS)
append_kernel(const lines_view lines, uint32_t places, uint32_t nwords, uint64_t first, uint64_t *keys,
			  uint64_t *words)
{
	uint64_t	place = ELEMENT;
	uint32_t	number;
	uint64_t	row;

	if (place >= places || !row_at(lines, (uint32_t) place, &number))
		return;
	row = first + number;
	keys[row] = lines.takes[place];
	for (uint32_t w = 0; w < nwords; w++)
		words[row * nwords + w] = lines.low[w * lines.stride + place];
}

/* Hands live lines back. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
refuse_kernel(const lines_view lines, uint32_t nlines)
{
	uint64_t	line = ELEMENT;

	if (line < nlines && lines.state[line] == LINE_LIVE)
		lines.state[line] = LINE_NO_GROUP;
}

GhStatus
rows_refuse(cuda_scan *scan, const lines_view *lines, GhError *error)
{
	refuse_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, scan->reduce_stream>>>
		(*lines, lines->count);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}

/*
 * Enqueues the rows of live lines, which are so many, into those that are kept, in their order; *refused:
 * they go back.
 */
GhStatus
rows_append(cuda_scan *scan, const lines_view *lines, uint32_t extras, uint64_t rows, bool *refused,
			GhError *error)
{
	uint32_t	places = lines->count + extras;
	bool		returned = scan->plan.options.each_row != 0;
	GhStatus	status = returned ? records_reserve(scan, rows, error) : rows_reserve(scan, rows, error);

	*refused = status == GH_LIMIT || status == GH_NO_MEMORY;
	if (rows == 0)
		return GH_OK;
	if (*refused)
		return rows_refuse(scan, lines, error);
	GH_TRY(status);
	GH_TRY(collect_launch(scan, lines, error));
	if (returned)
		GH_TRY(records_append(scan, lines, extras, error));
	else
		append_kernel<<<blocks_for(places), BLOCK_THREADS, 0, scan->reduce_stream>>>
			(*lines, places, scan->view.ninputs, scan->rows.count, scan->rows.keys, scan->rows.words);
	scan->rows.count += rows;
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}

/* ------------------------------------------------------------------- the table */

/* The second word of each row of two; *odd: one is NULL. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
words_kernel(const uint64_t *words, uint64_t rows, uint64_t *values, uint32_t *odd)
{
	uint64_t	row = ELEMENT;

	if (row >= rows)
		return;
	values[row] = words[2 * row + 1];
	if (words[2 * row] != 0)
		*odd = 1;
}

/* Rows whose key has the number of another one say so there. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
several_kernel(const table_view view, const uint64_t *keys, const keyed_rows keyed, uint64_t rows)
{
	uint64_t	row = ELEMENT;
	uint64_t   *place;
	uint64_t	value;

	if (row >= rows || !has_key(keyed, row))
		return;
	place = scan_locate(view, keys[row], &value);
	if (place != nullptr && (value & ~ROW_SEVERAL) != row)
		atomicOr(reinterpret_cast<unsigned long long *>(place), (unsigned long long) ROW_SEVERAL);
}

/* Arrays of a table that is being made. */
struct make_work
{
	scan_block	block;
	const uint64_t *keys;		/* what goes into the table, */
	uint64_t	count;			/* as many, */
	uint64_t   *values;			/* with these */
	uint64_t   *keyed;			/* room for keys, where not all rows have one */
	uint32_t   *odd;			/* 1: a value is NULL; or how many rows have a key */
};

static GhStatus
work_create(cuda_scan *scan, make_work *work, GhError *error)
{
	carver		sizes = {};
	carver		arrays = {};
	uint64_t	marked = scan->plan.options.marks_matches != 0 ? scan->rows.count : 0;

	(void) sizes.array<uint64_t>(scan->rows.count);
	(void) sizes.array<uint64_t>(marked);
	(void) sizes.array<uint32_t>(1);
	GH_TRY(scan_alloc(scan, sizes.used, false, &work->block, error));
	arrays.base = work->block.memory;
	work->values = arrays.array<uint64_t>(scan->rows.count);
	work->keyed = arrays.array<uint64_t>(marked);
	work->odd = arrays.array<uint32_t>(1);
	work->keys = scan->rows.keys;
	work->count = scan->rows.count;
	return GH_OK;
}

/* What a table's failure is to the scan. */
static GhStatus
table_status(cuda_scan *scan, GhStatus status, const GhError *why, GhError *error)
{
	if (status == GH_OK)
		return GH_OK;
	if (status != GH_DEVICE_ERROR)
		return gh_error_set(error, status == GH_NO_MEMORY || status == GH_TOO_MANY ? status : GH_LIMIT, "%s",
							why->message);
	if (!scan->failed)
		(void) gh_error_set(&scan->error, GH_DEVICE_ERROR, "%s", why->message);
	scan->failed = true;
	*error = scan->error;
	return GH_DEVICE_ERROR;
}

/* Puts all keys into the table, with the values; *keys: how many different ones there are. */
static GhStatus
insert_rows(cuda_scan *scan, const make_work *work, uint64_t *keys, GhError *error)
{
	GhRequest	request = {};
	GhStatus	status;

	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	*keys = 0;
	if (work->count == 0)
		return GH_OK;
	request.op = GH_INSERT;
	request.on_device = true;
	request.count = work->count;
	request.keys = work->keys;
	request.values_in = work->values;
	status = cuda_submit(&scan->rows.table->base, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = cuda_wait(&request);
	*keys = request.outcome.inserted;
	return table_status(scan, status, &request.error, error);
}

/* The one word of each row as values, if that can be: then *values is VALUES_OF_ROWS. */
static GhStatus
values_of_rows(cuda_scan *scan, const make_work *work, table_values *values, GhError *error)
{
	uint32_t	odd = 0;

	*values = VALUES_NUMBERS;
	/* what has no number cannot be marked */
	if (scan->plan.options.marks_matches != 0)
		return GH_OK;
	if (scan->plan.options.nkept != 1 || scan->view.ninputs != 2 || scan->rows.count == 0)
		return GH_OK;
	SCAN_TRY(scan, cudaMemsetAsync(work->odd, 0, sizeof(odd), scan->reduce_stream), error);
	words_kernel<<<blocks_for(scan->rows.count), BLOCK_THREADS, 0, scan->reduce_stream>>>
		(scan->rows.words, scan->rows.count, work->values, work->odd);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, cudaMemcpyAsync(&odd, work->odd, sizeof(odd), cudaMemcpyDeviceToHost,
								   scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	if (odd == 0)
		*values = VALUES_OF_ROWS;
	return GH_OK;
}

/* The keys that go into the table are those of some rows: tells how many. */
static GhStatus
pick_keyed(cuda_scan *scan, make_work *work, GhError *error)
{
	uint64_t	rows = scan->rows.count;
	uint32_t	count;

	SCAN_TRY(scan, cudaMemsetAsync(work->odd, 0, sizeof(count), scan->reduce_stream), error);
	keyed_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, scan->reduce_stream>>>
		(scan->rows.keys, rows_keyed(scan), rows, work->keyed, work->values, work->odd);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, cudaMemcpyAsync(&count, work->odd, sizeof(count), cudaMemcpyDeviceToHost,
								   scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	work->keys = work->keyed;
	work->count = count;
	return GH_OK;
}

static GhStatus
insert_numbers(cuda_scan *scan, make_work *work, uint64_t *keys, GhError *error)
{
	uint64_t	rows = scan->rows.count;

	if (rows == 0)
		return GH_OK;
	if (scan->plan.options.marks_matches != 0)
		GH_TRY(pick_keyed(scan, work, error));
	else
		numbers_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, scan->reduce_stream>>>(rows, work->values);
	SCAN_TRY(scan, launch_status(), error);
	GH_TRY(insert_rows(scan, work, keys, error));
	if (*keys == work->count)
		return GH_OK;
	if (scan->plan.options.all_matches != 0)
		return chains_make(scan, error);
	several_kernel<<<blocks_for(rows), BLOCK_THREADS, 0, scan->reduce_stream>>>
		(table_make_view(scan->rows.table), scan->rows.keys, rows_keyed(scan), rows);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	return GH_OK;
}

/* Fills the table, which is empty. */
static GhStatus
fill_table(cuda_scan *scan, make_work *work, uint64_t *keys, GhError *error)
{
	scan_rows  *rows = &scan->rows;
	GhError		why = {};

	*keys = 0;
	GH_TRY(values_of_rows(scan, work, &rows->values, error));
	if (rows->values == VALUES_OF_ROWS)
	{
		GH_TRY(insert_rows(scan, work, keys, error));
		if (*keys == rows->count)
			return GH_OK;
		/* numbers, then, which can say that there are several */
		rows->values = VALUES_NUMBERS;
		GH_TRY(table_status(scan, cuda_table_clear(&rows->table->base, &why), &why, error));
	}
	return insert_numbers(scan, work, keys, error);
}

static GhStatus
create_table(cuda_scan *scan, GhError *error)
{
	const GhScanOptions *options = &scan->plan.options;
	GhTableOptions table_options = {};
	GhHost		host = scan->host;
	GhTable    *table = nullptr;
	GhError		why = {};
	GhStatus	status;

	if (options->memory_limit > 0 && scan->bytes >= options->memory_limit)
		return gh_error_set(error, GH_LIMIT, "the memory limit of a scan leaves none for its table");
	/* a table is made whole */
	host.stop = nullptr;
	table_options.key_size = sizeof(uint64_t);
	table_options.value_size = sizeof(uint64_t);
	table_options.capacity = scan->rows.count;
	table_options.memory_limit = options->memory_limit > 0 ? options->memory_limit - scan->bytes : 0;
	table_options.seed = options->seed;
	table_options.device = options->device;
	status = cuda_table_create(&host, &table_options, &table, &why);
	scan->rows.table = reinterpret_cast<cuda_table *>(table);
	return table_status(scan, status, &why, error);
}

/* Memory for what a table has beside it, which counts for the limit as the table does. */
GhStatus
rows_extra_alloc(cuda_scan *scan, uint64_t bytes, scan_block *block, GhError *error)
{
	uint64_t	limit = scan->plan.options.memory_limit;
	GhTableStats stats;
	GhError		why = {};

	if (cuda_table_stats(&scan->rows.table->base, &stats, &why) != GH_OK)
		return scan_failed(scan, cudaErrorUnknown, "cuda_table_stats", error);
	if (limit > 0 && scan->bytes + stats.bytes_peak + bytes > limit)
		return gh_error_set(error, GH_LIMIT, "the memory limit of a scan leaves none for %llu bytes beside its "
							"table", (unsigned long long) bytes);
	return scan_alloc(scan, bytes, true, block, error);
}

/* What is no longer needed goes, and the table is counted. */
static GhStatus
finish_table(cuda_scan *scan, GhError *error)
{
	scan_rows  *rows = &scan->rows;
	GhTableStats stats;
	GhError		why = {};
	GhStatus	status;

	/* it is only read from now on, by the kernels of scans */
	lane_shrink(rows->table, &rows->table->lanes[0], true);
	status = cuda_table_stats(&rows->table->base, &stats, &why);
	GH_TRY(table_status(scan, status, &why, error));
	rows->table_bytes = stats.bytes;
	if (scan->bytes + stats.bytes_peak > scan->bytes_peak)
		scan->bytes_peak = scan->bytes + stats.bytes_peak;
	/* rows without a match are found by their keys */
	if (scan->plan.options.marks_matches == 0)
		rows->keys = nullptr;
	if (rows->keys == nullptr && (rows->values == VALUES_OF_ROWS || scan->view.ninputs == 0))
	{
		scan_free(scan, true, &rows->block);
		rows->words = nullptr;
	}
	scan_free(scan, false, &rows->used_block);
	return scan->failed ? GH_DEVICE_ERROR : GH_OK;
}

/* GhScanEngine.make_table, when nothing is in flight. */
GhStatus
rows_make_table(cuda_scan *scan, GhScanTable *made, GhError *error)
{
	make_work	work = {};
	GhStatus	status;

	scan->rows.made = true;
	status = create_table(scan, error);
	if (status == GH_OK)
		status = work_create(scan, &work, error);
	made->rows = scan->rows.count;
	if (status == GH_OK)
		status = fill_table(scan, &work, &made->keys, error);
	scan_free(scan, false, &work.block);
	if (status == GH_OK && scan->plan.options.marks_matches != 0)
		status = marks_make(scan, error);
	if (status == GH_OK)
		status = finish_table(scan, error);
	if (status == GH_DEVICE_ERROR)
		*error = scan->error;
	scan->base.table_made = status == GH_OK;
	scan->base.several = status == GH_OK && made->keys < work.count;
	scan->base.rows = status == GH_OK ? made->rows : 0;
	return status;
}

keyed_rows
rows_keyed(const cuda_scan *scan)
{
	keyed_rows	keyed = {};

	if (scan->plan.options.marks_matches == 0)
		return keyed;
	keyed.words = scan->rows.words;
	keyed.row_words = scan->view.ninputs;
	keyed.bit = scan_keyless_bit(&scan->plan);
	return keyed;
}

made_table
rows_table(const cuda_scan *scan)
{
	made_table	table = {};

	table.view = table_make_view(scan->rows.table);
	table.values = scan->rows.values;
	table.words = scan->rows.words;
	table.row_words = scan->view.ninputs;
	table.texts = scan->rows.texts.bytes;
	table.members = reinterpret_cast<const uint32_t *>(scan->rows.members_block.memory);
	table.marks = reinterpret_cast<uint32_t *>(scan->rows.marks_block.memory);
	table.keys = scan->rows.keys;
	table.keyed = rows_keyed(scan);
	table.rows = scan->rows.count;
	return table;
}
