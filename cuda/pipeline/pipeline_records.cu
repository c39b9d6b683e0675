/*
 * pipeline_records.cu
 *		The rows that a pipeline keeps as records (GhRecordHead), as they are given out.
 *
 * How many bytes each line's record takes is summed up, so that each is written to its place by the line's
 * thread, in the order of lines.  Records lie in segments that never move; none is in two of them.  Where
 * there is no memory for the next segment the lines' rows go back.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/pipeline/pipeline.cuh"

#define SEGMENT_BYTES_MIN ((uint64_t) 65536)
#define SEGMENT_BYTES_MAX ((uint64_t) 1 << 30)
/* Of records on their way to the host, before a look at the stop flag. */
#define PIECE_BYTES ((uint64_t) 16 << 20)

/* ------------------------------------------------------------------- kernels */

static __global__ void __launch_bounds__(BLOCK_THREADS)
record_bytes_kernel(const pipe_view view, const pipe_lines lines, uint64_t *bytes)
{
	uint64_t	line = ELEMENT;
	uint64_t	sum = 0;

	if (line > lines.count)
		return;
	if (line < lines.count)
	{
		line_values row = line_at(view, lines, (uint32_t) line);

		sum = view.record_bytes;
		for (uint32_t k = 0; k < view.plan.nkeys; k++)
		{
			GhValue		value;

			if (view.plan.keys[k].value_class != GH_CLASS_TEXT)
				continue;
			value = row.get(view.plan.keys[k].vector);
			sum += value.null ? 0 : value.high;
		}
		sum = (sum + 7) / 8 * 8;
	}
	bytes[line] = sum;
}

/* offsets: NULL: all records are of one size. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
records_kernel(const pipe_view view, const pipe_lines lines, const uint64_t *offsets, char *to,
			   pipe_counters *counters)
{
	uint64_t	line = ELEMENT;

	if (line >= lines.count)
		return;
	line_values row = line_at(view, lines, (uint32_t) line);
	char	   *record = to + (offsets == nullptr ? line * view.record_bytes : offsets[line]);
	GhRecordValue *values = reinterpret_cast<GhRecordValue *>(record + sizeof(GhRecordHead));
	GhRecordHead head = {0, 1, 0};
	uint64_t	at = view.record_bytes;

	for (uint32_t k = 0; k < view.plan.nkeys; k++)
	{
		GhRecordKey	key = view.plan.keys[k];
		GhValue		value = row.get(key.vector);
		GhRecordValue held = {0, 0};

		head.nulls |= (uint64_t) (value.null != 0) << k;
		if (!value.null)
		{
			held.low = value.low;
			held.high = gh_class_has_high(key.value_class) ? value.high : 0;
		}
		if (!value.null && key.value_class == GH_CLASS_TEXT)
		{
			const char *from = reinterpret_cast<const char *>((uintptr_t) value.low);

			held.low = at;
			for (uint64_t i = 0; i < value.high; i++)
				record[at++] = from[i];
		}
		values[k] = held;
	}
	for (; at % 8 != 0; at++)
		record[at] = 0;
	head.bytes = at;
	*reinterpret_cast<GhRecordHead *>(record) = head;
	if (line == 0)
		counters->counted += lines.count;
}

/* -------------------------------------------------------------------- segments */

GhStatus
pipe_records_init(cuda_pipeline *pipeline, GhError *error)
{
	pipeline->records.segments = static_cast<record_segment *>(calloc(RECORD_SEGMENTS_MAX, sizeof(record_segment)));
	if (pipeline->records.segments == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the rows of a pipeline");
	return GH_OK;
}

void
pipe_records_drop(cuda_pipeline *pipeline)
{
	pipe_records *records = &pipeline->records;

	for (uint32_t s = 0; s < records->count; s++)
		pipe_free(&pipeline->memory, true, &records->segments[s].block);
	free(records->segments);
	*records = {};
}

void
pipe_records_cut(cuda_pipeline *pipeline, uint32_t segment, uint64_t used, uint64_t records)
{
	pipeline->records.filling = segment;
	pipeline->records.records = records;
	for (uint32_t s = segment; s < pipeline->records.count; s++)
		pipeline->records.segments[s].used = s == segment ? used : 0;
}

/* A further segment, with room for so much at least. */
static GhStatus
add_segment(cuda_pipeline *pipeline, uint64_t bytes, GhError *error)
{
	pipe_records *records = &pipeline->records;
	uint64_t	wanted = records->count > 0 ? 2 * records->segments[records->count - 1].block.bytes :
		SEGMENT_BYTES_MIN;
	GhStatus	status;

	if (records->count == RECORD_SEGMENTS_MAX)
		return gh_error_set(error, GH_LIMIT, "a pipeline keeps no more rows");
	if (wanted > SEGMENT_BYTES_MAX)
		wanted = SEGMENT_BYTES_MAX;
	if (wanted < bytes)
		wanted = bytes;
	status = pipe_alloc(&pipeline->memory, wanted, true, &records->segments[records->count].block, error);
	if (lacks_memory(status) && wanted > bytes)
		status = pipe_alloc(&pipeline->memory, bytes, true, &records->segments[records->count].block, error);
	records->count += status == GH_OK;
	return status;
}

/* The segment that so many bytes go to; those without room for them are left as they are. */
static GhStatus
reserve_records(cuda_pipeline *pipeline, uint64_t bytes, record_segment **segment, GhError *error)
{
	pipe_records *records = &pipeline->records;

	for (uint32_t s = records->filling;; s++)
	{
		if (s == records->count)
			GH_TRY(add_segment(pipeline, bytes, error));
		*segment = &records->segments[s];
		if (bytes <= (*segment)->block.bytes - (*segment)->used)
		{
			records->filling = s;
			return GH_OK;
		}
	}
}

GhStatus
pipe_records_take(cuda_pipeline *pipeline, const pipe_lines *lines, GhError *error)
{
	record_segment *segment;
	uint64_t	bytes = (uint64_t) lines->count * pipeline->view.record_bytes;
	GhStatus	status;

	if (pipeline->view.has_texts != 0)
		GH_TRY(lines_measure(pipeline, lines, record_bytes_kernel, &bytes, error));
	status = reserve_records(pipeline, bytes, &segment, error);
	if (lacks_memory(status))
		return lines_refuse(pipeline, lines, error);
	GH_TRY(status);
	records_kernel<<<blocks_for(lines->count), BLOCK_THREADS, 0, pipeline->memory.stream>>>
		(pipeline->view, *lines, pipeline->view.has_texts != 0 ? pipeline->lane->sink.offsets : nullptr,
		 segment->block.memory + segment->used, pipeline->lane->batch.counters);
	PIPE_TRY(&pipeline->memory, launch_status(), error);
	segment->used += bytes;
	pipeline->records.records += lines->count;
	return GH_OK;
}

/* --------------------------------------------------------------------- results */

/*
 * Whole records of so many bytes, from a record's begin on; *needed: of the first one, if it is no whole one.
 */
static size_t
whole_records(const char *buffer, uint64_t bytes, size_t *needed)
{
	uint64_t	at = 0;

	while (bytes - at >= sizeof(GhRecordHead))
	{
		uint64_t	record = reinterpret_cast<const GhRecordHead *>(buffer + at)->bytes;

		if (record > bytes - at)
		{
			if (at == 0)
				*needed = record;
			break;
		}
		at += record;
	}
	return at;
}

/* Bytes of the record there, whatever room the caller has. */
static GhStatus
first_bytes(cuda_pipeline *pipeline, const char *from, size_t *needed, GhError *error)
{
	GhRecordHead head;

	GH_TRY(pipe_copy(&pipeline->memory, &head, from, sizeof(head), error));
	GH_TRY(pipe_wait(&pipeline->memory, error));
	*needed = head.bytes;
	return GH_OK;
}

GhStatus
pipe_records_fetch(cuda_pipeline *pipeline, GhCursor *cursor, size_t capacity, char *buffer, size_t *bytes,
				   GhError *error)
{
	const pipe_records *records = &pipeline->records;
	uint64_t	before = 0;		/* bytes of segments */
	size_t		needed = 0;

	for (uint32_t s = 0; s < records->count && needed == 0; s++)
	{
		const record_segment *segment = &records->segments[s];

		while (cursor->position - before < segment->used && needed == 0)
		{
			uint64_t	at = cursor->position - before;
			uint64_t	most = segment->used - at < capacity - *bytes ? segment->used - at : capacity - *bytes;
			size_t		whole;

			if (pipe_stopped(&pipeline->memory))
				return *bytes > 0 ? GH_OK : gh_error_set(error, GH_STOPPED, "the results of a pipeline were stopped");
			most = most < PIECE_BYTES ? most : PIECE_BYTES;
			GH_TRY(pipe_copy(&pipeline->memory, buffer + *bytes, segment->block.memory + at, most, error));
			GH_TRY(pipe_wait(&pipeline->memory, error));
			whole = whole_records(buffer + *bytes, most, &needed);
			if (whole == 0)
				GH_TRY(first_bytes(pipeline, segment->block.memory + at, &needed, error));
			/* one that is larger than a piece */
			if (whole == 0 && needed <= capacity - *bytes)
			{
				GH_TRY(pipe_copy(&pipeline->memory, buffer + *bytes, segment->block.memory + at, needed, error));
				GH_TRY(pipe_wait(&pipeline->memory, error));
				whole = needed;
				needed = 0;
			}
			*bytes += whole;
			cursor->position += whole;
		}
		before += segment->used;
	}
	cursor->finished = needed == 0;
	if (needed == 0 || *bytes > 0)
		return GH_OK;
	*bytes = needed;
	return gh_error_set(error, GH_TOO_SMALL, "a row needs %zu bytes", needed);
}
