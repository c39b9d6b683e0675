/*
 * pipeline_rows.cu
 *		The rows of the table that a pipeline makes.
 *
 * A row is words: NULL bits, behind them a bit that says that it has no key and one that a match with it
 * hands back; then a word or two for each value.  Texts lie in one heap, and a row has where.  Lines are
 * appended in their order. How much room they need is known before the first is written, so that they are all
 * appended, or their rows go back.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/pipeline/pipeline.cuh"

#define ROOM_MIN ((uint64_t) 256)	/* rows */
#define TEXT_BYTES_MIN ((uint64_t) 4096)

/* -------------------------------------------------------------------- layout */

/* Bits of a row in front of its values. */
static uint32_t
null_words_of(const GhTableShape *shape)
{
	return (shape->nkept + 2 + 63) / 64;
}

/* Of the value behind the last one, how many words a row has. */
kept_value
pipe_kept_place(const GhTableShape *shape, uint32_t k)
{
	kept_value	kept = {};
	uint32_t	word = null_words_of(shape);

	for (uint32_t i = 0; i < k; i++)
		word += gh_class_has_high(shape->kept[i].value_class) ? 2 : 1;
	kept.word = (uint16_t) word;
	kept.null_word = (uint16_t) (k / 64);
	kept.null_bit = (uint8_t) (k % 64);
	kept.value_class = k < shape->nkept ? shape->kept[k].value_class : 0;
	return kept;
}

rows_view
pipe_rows_view(const pipe_rows *rows)
{
	rows_view	view = {};

	view.words = reinterpret_cast<const uint64_t *>(rows->block.memory);
	view.texts = rows->texts_block.memory;
	view.members = reinterpret_cast<const uint32_t *>(rows->members_block.memory);
	view.rows = rows->count;
	view.row_words = rows->row_words;
	view.back_bit = rows->any_back ? rows->back_bit : UINT32_MAX;
	return view;
}

/* ---------------------------------------------------------------------- memory */

GhStatus
pipe_rows_create(cuda_pipeline *pipeline, GhError *error)
{
	const GhTableSink *sink = &pipeline->plan.options.sink.table;
	pipe_rows  *rows = static_cast<pipe_rows *>(calloc(1, sizeof(pipe_rows)));

	pipeline->rows = rows;
	if (rows == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the rows of a table");
	rows->shape.nkept = sink->nkept;
	if (sink->nkept > 0)
		memcpy(rows->shape.kept, sink->kept, sink->nkept * sizeof(GhKept));
	rows->shape.numbered = sink->numbered != 0;
	rows->keyless_bit = sink->nkept;
	rows->back_bit = sink->nkept + 1;
	rows->row_words = pipe_kept_place(&rows->shape, sink->nkept).word;
	return GH_OK;
}

void
pipe_rows_drop(pipe_memory *memory, pipe_rows *rows)
{
	if (rows == nullptr)
		return;
	pipe_free(memory, true, &rows->block);
	pipe_free(memory, true, &rows->keys_block);
	pipe_free(memory, true, &rows->texts_block);
	pipe_free(memory, true, &rows->members_block);
	free(rows);
}

void
pipe_rows_destroy(pipe_rows *rows)
{
	pipe_memory memory;

	if (rows == nullptr)
		return;
	memory = rows->memory;
	pipe_rows_drop(&memory, rows);
}

/* Puts a larger block in the place of one of which so many bytes are used. */
static GhStatus
replace_block(cuda_pipeline *pipeline, pipe_block *block, uint64_t used, uint64_t bytes, GhError *error)
{
	pipe_block	larger;
	GhStatus	status;

	GH_TRY(pipe_alloc(&pipeline->memory, bytes, true, &larger, error));
	status = pipe_copy(&pipeline->memory, larger.memory, block->memory, used, error);
	/* what is read of texts is whole words */
	if (status == GH_OK)
		status = pipe_zero(&pipeline->memory, larger.memory + used, bytes - used, error);
	/* waits for the copy */
	pipe_free(&pipeline->memory, true, block);
	*block = larger;
	return pipeline->memory.failed ? GH_DEVICE_ERROR : status;
}

/* Room for so many rows; GH_LIMIT and GH_NO_MEMORY leave all as it is. */
static GhStatus
set_room(cuda_pipeline *pipeline, uint64_t room, GhError *error)
{
	pipe_rows  *rows = pipeline->rows;
	uint64_t	row_bytes = rows->row_words * sizeof(uint64_t);

	if (rows->keys_block.bytes < room * sizeof(uint64_t))
		GH_TRY(replace_block(pipeline, &rows->keys_block, rows->count * sizeof(uint64_t), room * sizeof(uint64_t),
							 error));
	GH_TRY(replace_block(pipeline, &rows->block, rows->count * row_bytes, room * row_bytes, error));
	rows->room = room;
	return GH_OK;
}

static GhStatus
reserve_rows(cuda_pipeline *pipeline, uint64_t more, GhError *error)
{
	pipe_rows  *rows = pipeline->rows;
	uint64_t	expected = pipeline->plan.options.sink.table.expected;
	uint64_t	needed = rows->count + more;
	uint64_t	wanted = 2 * rows->room;
	GhStatus	status;

	if (needed <= rows->room)
		return GH_OK;
	/* a table is made in one request */
	if (needed > GH_BATCH_MAX)
		return GH_LIMIT;
	/* an estimate is as often too low as too high, and to move rows takes longer than a few more bytes */
	if (rows->room == 0)
		wanted = expected > ROOM_MIN ? expected + expected / 16 : ROOM_MIN;
	if (wanted > GH_BATCH_MAX)
		wanted = GH_BATCH_MAX;
	if (wanted <= needed)
		return set_room(pipeline, needed, error);
	status = set_room(pipeline, wanted, error);
	return lacks_memory(status) ? set_room(pipeline, needed, error) : status;
}

static GhStatus
reserve_texts(cuda_pipeline *pipeline, uint64_t more, GhError *error)
{
	pipe_rows  *rows = pipeline->rows;
	uint64_t	needed = (rows->text_bytes + more + 31) / 16 * 16;
	uint64_t	wanted = 2 * rows->texts_block.bytes;
	GhStatus	status;

	if (more == 0 || needed <= rows->texts_block.bytes)
		return GH_OK;
	if (wanted < TEXT_BYTES_MIN)
		wanted = TEXT_BYTES_MIN;
	if (wanted <= needed)
		return replace_block(pipeline, &rows->texts_block, rows->text_bytes, needed, error);
	status = replace_block(pipeline, &rows->texts_block, rows->text_bytes, wanted, error);
	return lacks_memory(status) ? replace_block(pipeline, &rows->texts_block, rows->text_bytes, needed, error) :
		status;
}

/* ----------------------------------------------------------------------- lines */

static __global__ void __launch_bounds__(BLOCK_THREADS)
text_bytes_kernel(const pipe_view view, const pipe_lines lines, uint64_t *bytes)
{
	uint64_t	line = ELEMENT;
	uint64_t	sum = 0;

	if (line > lines.count)
		return;
	if (line < lines.count)
	{
		line_values row = line_at(view, lines, (uint32_t) line);

		for (uint32_t k = 0; k < view.nkept; k++)
		{
			GhValue		value;

			if (view.kept[k].value_class != GH_CLASS_TEXT)
				continue;
			value = row.get(view.kept[k].vector);
			sum += value.null ? 0 : value.high;
		}
	}
	bytes[line] = sum;
}

struct append_job
{
	pipe_view	view;
	pipe_lines	lines;
	const uint64_t *offsets;	/* of their texts; NULL: there are none */
	uint64_t   *keys;			/* from where the first line goes */
	uint64_t   *words;
	char	   *texts;			/* all of them, and */
	uint64_t	text_at;		/* where the lines' begin */
	pipe_counters *counters;
};

/* A value's words; a text is copied to *text_at of the heap. */
static __device__ void
store_value(const append_job &job, const kept_value &kept, GhValue value, uint64_t *words, uint64_t *text_at)
{
	if (value.null)
		value.low = value.high = 0;
	else if (kept.value_class == GH_CLASS_TEXT)
	{
		const char *from = reinterpret_cast<const char *>((uintptr_t) value.low);

		for (uint64_t i = 0; i < value.high; i++)
			job.texts[*text_at + i] = from[i];
		value.low = *text_at;
		*text_at += value.high;
	}
	words[kept.word] = value.low;
	if (gh_class_has_high(kept.value_class))
		words[kept.word + 1] = value.high;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
append_kernel(const append_job job)
{
	uint64_t	line = ELEMENT;

	if (line >= job.lines.count)
		return;
	const pipe_view &view = job.view;
	line_values row = line_at(view, job.lines, (uint32_t) line);
	uint64_t   *words = job.words + line * view.row_words;
	uint64_t	text_at = job.text_at + (job.offsets != nullptr ? job.offsets[line] : 0);
	uint64_t	bits = 0;
	uint64_t	key;
	bool		keyless = !line_key(view.parts, view.nparts, row, &key);

	job.keys[line] = keyless ? 0 : key;
	/* the bits of all values, and two more */
	for (uint32_t k = 0; k < view.nkept + 2; k++)
	{
		bool		bit = k == view.nkept && keyless;

		if (k < view.nkept)
		{
			GhValue		value = row.get(view.kept[k].vector);

			store_value(job, view.kept[k], value, words, &text_at);
			bit = value.null != 0;
		}
		else if (k == view.back_bit)
		{
			GhValue		value = row.get(view.back_vector);

			bit = gh_bool_true(value.low, value.null);
		}
		if (k % 64 == 0)
			bits = 0;
		bits |= (uint64_t) bit << k % 64;
		/* the last one of these words is whole with the last bit */
		words[k / 64] = bits;
	}
	if (line == 0)
		job.counters->counted += job.lines.count;
}

GhStatus
pipe_rows_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	pipe_rows  *rows = pipeline->rows;
	uint64_t	bytes = 0;
	append_job	job;
	GhStatus	status;

	if (pipeline->view.has_texts != 0)
		GH_TRY(lines_measure(pipeline, lines, text_bytes_kernel, &bytes, error));
	status = reserve_rows(pipeline, lines->count, error);
	if (status == GH_OK)
		status = reserve_texts(pipeline, bytes, error);
	if (lacks_memory(status))
		return lines_refuse(pipeline, lines, error);
	GH_TRY(status);
	job.view = pipeline->view;
	job.lines = *lines;
	job.offsets = pipeline->view.has_texts != 0 ? pipeline->lane->sink.offsets : nullptr;
	job.keys = reinterpret_cast<uint64_t *>(rows->keys_block.memory) + rows->count;
	job.words = reinterpret_cast<uint64_t *>(rows->block.memory) + rows->count * rows->row_words;
	job.texts = rows->texts_block.memory;
	job.text_at = rows->text_bytes;
	job.counters = pipeline->lane->batch.counters;
	append_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>(job);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	rows->count += lines->count;
	rows->text_bytes += bytes;
	return GH_OK;
}

/* --------------------------------------------------------------------- requests */

static __global__ void __launch_bounds__(BLOCK_THREADS)
values_kernel(const rows_view rows, const kept_value kept, uint64_t *values, uint32_t count, uint64_t absent)
{
	uint64_t	i = ELEMENT;
	uint64_t	value = absent;

	if (i >= count)
		return;
	if (values[i] != NO_ROW)
	{
		GhValue		found = kept_at(rows, values[i], kept);

		value = found.null ? absent : found.low;
	}
	values[i] = value;
}

void
pipe_rows_values(const pipe_rows *rows, uint64_t *values, uint32_t count, uint64_t absent, cudaStream_t stream)
{
	values_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>
		(pipe_rows_view(rows), pipe_kept_place(&rows->shape, 0), values, count, absent);
}
