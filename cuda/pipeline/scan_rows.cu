/*
 * scan_rows.cu
 *		The rows that a scan returns one by one: kept on the device, and written as records.
 *
 * A row comes here as those of tables do (scan_join.cuh, scan_table.cu): its values lie beside its line,
 * its texts in the scan's heap, and when the pages were read the live lines are appended.  Rows lie in
 * pieces of memory, which are never moved: with tens of millions of rows a copy would need as much
 * memory again.  A piece is as large as all before it, up to PIECE_BYTES_MAX.
 *
 * Results are written on the device, a warp a record, and copied as they are: what the host has to do for
 * a record would take longer than the bus.  Where there are texts, records differ in size: sizes are
 * summed up first, and the host is told how many records fit.
 */
#include <cub/device/device_scan.cuh>
#include <stdlib.h>
#include <string.h>

#include "cuda/pipeline/scan_device.cuh"

#define ROOM_MIN ((uint64_t) 256)	/* rows */
#define PIECE_BYTES_MAX ((uint64_t) 1 << 30)
#define STAGE_BYTES ((uint64_t) 4 << 20)	/* of records that are copied at once */

static_assert(GH_SCAN_KEYS_MAX <= 32, "each value of a record has a lane of a warp");

/* The first records from a row on that fit into some bytes. */
struct records_cut
{
	uint64_t	rows;
	uint64_t	bytes;
	uint64_t	first_bytes;	/* of the first one, whether it fits or not */
};

/* What records are made in. */
struct records_stage
{
	char	   *records;
	uint64_t   *sizes;			/* by row; 0 behind the last one */
	uint64_t   *offsets;
	records_cut *cut;
	void	   *space;			/* CUB's */
	size_t		space_bytes;
};

/* --------------------------------------------------------------------- memory */

/* Records that a stage may have, at least one. */
static uint64_t
stage_rows(const cuda_scan *scan)
{
	return STAGE_BYTES / scan->plan.group_bytes;
}

static cudaError_t
sum_sizes(const records_stage *stage, void *space, size_t *space_bytes, uint64_t count,
		  cudaStream_t stream)
{
	return cub::DeviceScan::ExclusiveSum(space, *space_bytes, stage->sizes, stage->offsets, count,
										 stream);
}

static records_stage
stage_carve(const cuda_scan *scan, size_t space_bytes, carver *carver)
{
	records_stage stage;

	stage.records = carver->array<char>(STAGE_BYTES);
	stage.sizes = carver->array<uint64_t>(stage_rows(scan) + 1);
	stage.offsets = carver->array<uint64_t>(stage_rows(scan) + 1);
	stage.cut = carver->array<records_cut>(1);
	stage.space = carver->array<char>(space_bytes);
	stage.space_bytes = space_bytes;
	return stage;
}

/* Rows have their room when they come; that of results is taken now, so that they do not lack it. */
GhStatus
records_create(cuda_scan *scan, GhError *error)
{
	records_stage none = {};
	carver		sizes = {};
	size_t		space_bytes = 0;

	SCAN_TRY(scan, sum_sizes(&none, nullptr, &space_bytes, stage_rows(scan) + 1, scan->reduce_stream),
			 error);
	(void) stage_carve(scan, space_bytes, &sizes);
	scan->records.space_bytes = space_bytes;
	return scan_alloc(scan, sizes.used, false, &scan->records.stage_block, error);
}

void
records_destroy(cuda_scan *scan)
{
	for (uint32_t i = 0; i < scan->records.count; i++)
		scan_free(scan, true, &scan->records.pieces[i].block);
	scan_free(scan, false, &scan->records.stage_block);
	free(scan->records.pieces);
	scan->records = {};
}

/* One more piece; GH_LIMIT and GH_NO_MEMORY leave all as it is. */
static GhStatus
add_piece(cuda_scan *scan, uint64_t room, GhError *error)
{
	scan_records *records = &scan->records;
	records_piece *piece;

	if (records->count == records->places)
	{
		uint32_t	places = records->places > 0 ? 2 * records->places : 16;
		void	   *larger = realloc(records->pieces, places * sizeof(records_piece));

		if (larger == nullptr)
			return gh_error_set(error, GH_NO_MEMORY, "out of memory for a list of pieces");
		records->pieces = static_cast<records_piece *>(larger);
		records->places = places;
	}
	piece = &records->pieces[records->count];
	*piece = {};
	GH_TRY(scan_alloc(scan, room * scan->view.ninputs * sizeof(uint64_t), true, &piece->block, error));
	piece->words = reinterpret_cast<uint64_t *>(piece->block.memory);
	piece->first = records->room;
	records->room += room;
	records->count++;
	return GH_OK;
}

/* Room for so many more rows; GH_LIMIT and GH_NO_MEMORY leave all as it is. */
GhStatus
records_reserve(cuda_scan *scan, uint64_t more, GhError *error)
{
	scan_records *records = &scan->records;
	uint64_t	needed = scan->rows.count + more;
	uint64_t	wanted = records->room;
	uint64_t	least;
	uint64_t	most;
	GhStatus	status;

	/* rows without values are only counted */
	if (needed <= records->room || scan->view.ninputs == 0)
		return GH_OK;
	least = needed - records->room;
	most = PIECE_BYTES_MAX / (scan->view.ninputs * sizeof(uint64_t));
	if (wanted == 0)
		wanted = scan->plan.options.groups > ROOM_MIN ? scan->plan.options.groups : ROOM_MIN;
	wanted = wanted < most ? wanted : most;
	wanted = wanted > least ? wanted : least;
	while ((status = add_piece(scan, wanted, error)) != GH_OK && status != GH_DEVICE_ERROR &&
		   wanted > least)
		wanted = wanted / 2 > least ? wanted / 2 : least;
	return status;
}

/* ----------------------------------------------------------------------- rows */

/* Rows up to `split` go to one place, the others to the next piece. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
append_records_kernel(const lines_view lines, uint32_t places, uint32_t nwords, uint64_t *to,
					  uint64_t split, uint64_t *next)
{
	uint64_t	place = ELEMENT;
	uint32_t	row;

	if (place >= places || !row_at(lines, (uint32_t) place, &row))
		return;
	to = row < split ? to + (uint64_t) row * nwords : next + (row - split) * nwords;
	for (uint32_t w = 0; w < nwords; w++)
		to[w] = lines.low[w * lines.stride + place];
}

static const records_piece *
piece_of(const scan_records *records, uint64_t row)
{
	const records_piece *piece = &records->pieces[records->count - 1];

	while (piece->first > row)
		piece--;
	return piece;
}

/* The first row behind a piece. */
static uint64_t
piece_end(const scan_records *records, const records_piece *piece)
{
	return piece == &records->pieces[records->count - 1] ? records->room : piece[1].first;
}

/* Enqueues the rows of live lines, for which there is room, behind the others; their number is added later. */
GhStatus
records_append(cuda_scan *scan, const lines_view *lines, uint32_t extras, GhError *error)
{
	uint32_t	places = lines->count + extras;
	const scan_records *records = &scan->records;
	uint32_t	nwords = scan->view.ninputs;
	uint64_t	first = scan->rows.count;
	const records_piece *piece;
	uint64_t	split;

	if (nwords == 0)
		return GH_OK;
	piece = piece_of(records, first);
	split = piece_end(records, piece) - first;
	append_records_kernel<<<blocks_for(places), BLOCK_THREADS, 0, scan->reduce_stream>>>
		(*lines, places, nwords, piece->words + (first - piece->first) * nwords, split,
		 piece_end(records, piece) < records->room ? piece[1].words : nullptr);
	SCAN_TRY(scan, launch_status(), error);
	return GH_OK;
}

/* -------------------------------------------------------------------- records */

/* What writes records is told of rows that follow one another in a piece. */
struct records_job
{
	plan_view	plan;
	const uint64_t *words;
	const char *texts;
	uint64_t	rows;
	const uint64_t *offsets;	/* of records; NULL: all are of group_bytes */
	uint32_t	group_bytes;
	char	   *records;
};

static __device__ __forceinline__ bool
value_is_null(const kept_value &kept, const uint64_t *words)
{
	return (words[kept.null_word] >> kept.null_bit & 1) != 0;
}

/* Bytes of a value that is text, else 0. */
static __device__ __forceinline__ uint64_t
text_bytes(const kept_value &kept, const uint64_t *words)
{
	return kept.value_class == GH_CLASS_TEXT && !value_is_null(kept, words) ? words[kept.word + 1] : 0;
}

static __device__ __forceinline__ uint64_t
whole_words(uint64_t bytes)
{
	return (bytes + 7) & ~(uint64_t) 7;
}

/* Also one behind the last, which is 0. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
sizes_kernel(const records_job job, uint64_t *sizes)
{
	uint64_t	row = ELEMENT;
	const uint64_t *words = job.words + row * job.plan.ninputs;
	uint64_t	bytes = job.group_bytes;

	if (row > job.rows)
		return;
	for (uint32_t k = 0; row < job.rows && k < job.plan.nkept; k++)
		bytes += text_bytes(job.plan.kept[k], words);
	sizes[row] = row < job.rows ? whole_words(bytes) : 0;
}

/* One thread: the most records whose bytes are within the room. */
static __global__ void
cut_kernel(const uint64_t *offsets, uint64_t rows, uint64_t room, records_cut *cut)
{
	uint64_t	fit = 0;
	uint64_t	more = rows + 1;	/* do not */

	while (more - fit > 1)
	{
		uint64_t	middle = fit + (more - fit) / 2;

		if (offsets[middle] <= room)
			fit = middle;
		else
			more = middle;
	}
	cut->rows = fit;
	cut->bytes = offsets[fit];
	cut->first_bytes = offsets[1];
}

/* A warp writes a record, a lane each of its values; then all copy its texts. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
records_kernel(const records_job job)
{
	uint64_t	row = ELEMENT / 32;
	uint32_t	lane = threadIdx.x % 32;
	const uint64_t *words = job.words + row * job.plan.ninputs;
	uint64_t	begin = row * job.group_bytes;
	uint64_t	end = job.group_bytes;	/* of what is written so far */
	GhScanValue value = {0, 0};
	uint64_t	length = 0;
	bool		null = false;
	bool		text = false;
	uint32_t	nulls;
	char	   *record;

	if (row >= job.rows)
		return;
	if (job.offsets != nullptr)
		begin = job.offsets[row];
	record = job.records + begin;
	if (lane < job.plan.nkept)
	{
		kept_value	kept = job.plan.kept[lane];

		null = value_is_null(kept, words);
		value.low = words[kept.word];
		if (gh_scan_has_high(kept.value_class))
			value.high = words[kept.word + 1];
		length = text_bytes(kept, words);
		text = kept.value_class == GH_CLASS_TEXT && !null;
	}
	nulls = __ballot_sync(~0u, null);
	for (uint32_t texts = __ballot_sync(~0u, text); texts != 0; texts &= texts - 1)
	{
		int			k = __ffs((int) texts) - 1;
		uint64_t	bytes = __shfl_sync(~0u, (unsigned long long) length, k);
		const char *from = job.texts + __shfl_sync(~0u, (unsigned long long) value.low, k);

		for (uint64_t i = lane; i < bytes; i += 32)
			record[end + i] = from[i];
		if (lane == (uint32_t) k)
			value.low = end;
		end += bytes;
	}
	if (lane < job.plan.nkept)
		reinterpret_cast<GhScanValue *>(record + sizeof(GhScanGroup))[lane] = value;
	if (end + lane < whole_words(end))
		record[end + lane] = 0;
	if (lane == 0)
		*reinterpret_cast<GhScanGroup *>(record) = {whole_words(end), 1, nulls};
}

/* -------------------------------------------------------------------- results */

/* The cut of records that differ in size, the room being `room` bytes. */
static GhStatus
cut_records(cuda_scan *scan, const records_stage *stage, const records_job *job, uint64_t room,
			records_cut *cut, GhError *error)
{
	cudaStream_t stream = scan->reduce_stream;
	size_t		space_bytes = stage->space_bytes;

	sizes_kernel<<<blocks_for(job->rows + 1), BLOCK_THREADS, 0, stream>>>(*job, stage->sizes);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, sum_sizes(stage, stage->space, &space_bytes, job->rows + 1, stream), error);
	cut_kernel<<<1, 1, 0, stream>>>(stage->offsets, job->rows, room, stage->cut);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, cudaMemcpyAsync(cut, stage->cut, sizeof(*cut), cudaMemcpyDeviceToHost, stream),
			 error);
	SCAN_TRY(scan, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/* Writes records on the device, and copies them. */
static GhStatus
copy_records(cuda_scan *scan, const records_job *job, uint64_t bytes, char *to, GhError *error)
{
	records_kernel<<<blocks_for(job->rows * 32), BLOCK_THREADS, 0, scan->reduce_stream>>>(*job);
	SCAN_TRY(scan, launch_status(), error);
	SCAN_TRY(scan, cudaMemcpyAsync(to, job->records, bytes, cudaMemcpyDeviceToHost,
								   scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	return GH_OK;
}

/* A record that is larger than the stage: it is put together in its place, for which there is room. */
static GhStatus
copy_large_record(cuda_scan *scan, const records_job *job, char *to, GhError *error)
{
	uint64_t	words[2 * GH_SCAN_KEYS_MAX + 1];
	GhScanGroup *group = reinterpret_cast<GhScanGroup *>(to);
	uint64_t	end = job->group_bytes;

	SCAN_TRY(scan, cudaMemcpyAsync(words, job->words, job->plan.ninputs * sizeof(uint64_t),
								   cudaMemcpyDeviceToHost, scan->reduce_stream), error);
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	*group = {0, 1, words[0]};
	for (uint32_t k = 0; k < scan->plan.options.nkeys; k++)
	{
		kept_value	kept = scan_kept_place(&scan->plan, k);
		GhScanValue value = {words[kept.word], 0};

		if (gh_scan_has_high(kept.value_class))
			value.high = words[kept.word + 1];
		if (kept.value_class == GH_CLASS_TEXT && value.high > 0)
			SCAN_TRY(scan, cudaMemcpyAsync(to + end, job->texts + value.low, value.high,
										   cudaMemcpyDeviceToHost, scan->reduce_stream), error);
		if (kept.value_class == GH_CLASS_TEXT && (group->nulls >> k & 1) == 0)
		{
			value.low = end;
			end += value.high;
		}
		gh_scan_keys(group)[k] = value;
	}
	SCAN_TRY(scan, cudaStreamSynchronize(scan->reduce_stream), error);
	for (; end % 8 != 0; end++)
		to[end] = 0;
	group->bytes = end;
	return GH_OK;
}

/*
 * Some records from the cursor's on, into `room` bytes; *cut tells of them: without rows, the first
 * one does not fit.
 */
static GhStatus
fetch_some(cuda_scan *scan, const records_stage *stage, const GhCursor *cursor, uint64_t room,
		   char *to, records_cut *cut, GhError *error)
{
	uint64_t	group_bytes = scan->plan.group_bytes;
	uint64_t	staged = room < STAGE_BYTES ? room : STAGE_BYTES;
	uint64_t	left = scan->rows.count - cursor->position;
	bool		texts = scan_keeps_texts(scan);
	records_job job = {};

	job.plan = scan->view;
	job.texts = scan->rows.texts.bytes;
	job.group_bytes = scan->plan.group_bytes;
	job.records = stage->records;
	if (scan->view.ninputs > 0)
	{
		const records_piece *piece = piece_of(&scan->records, cursor->position);
		uint64_t	end = piece_end(&scan->records, piece);

		job.words = piece->words + (cursor->position - piece->first) * scan->view.ninputs;
		left = left < end - cursor->position ? left : end - cursor->position;
	}
	job.rows = staged / group_bytes < left ? staged / group_bytes : left;
	*cut = {job.rows, job.rows * group_bytes, group_bytes};
	if (texts)
	{
		/* one at least, to tell how large it is */
		job.rows = job.rows > 0 ? job.rows : 1;
		job.offsets = stage->offsets;
		GH_TRY(cut_records(scan, stage, &job, staged, cut, error));
		job.rows = cut->rows;
	}
	if (cut->rows > 0)
		return copy_records(scan, &job, cut->bytes, to, error);
	if (cut->first_bytes > room)
		return GH_OK;
	cut->rows = 1;
	cut->bytes = cut->first_bytes;
	return copy_large_record(scan, &job, to, error);
}

/* GhScanEngine.results of rows, when nothing is in flight. */
GhStatus
records_fetch(cuda_scan *scan, GhCursor *cursor, size_t capacity, char *buffer, size_t *bytes,
			  GhError *error)
{
	records_stage stage;
	carver		arrays = {};

	arrays.base = scan->records.stage_block.memory;
	stage = stage_carve(scan, scan->records.space_bytes, &arrays);
	while (cursor->position < scan->rows.count)
	{
		records_cut cut;

		GH_TRY(fetch_some(scan, &stage, cursor, capacity - *bytes, buffer + *bytes, &cut, error));
		if (cut.rows == 0 && *bytes > 0)
			return GH_OK;
		if (cut.rows == 0)
		{
			*bytes = cut.first_bytes;
			return gh_error_set(error, GH_TOO_SMALL, "a row needs %zu bytes", *bytes);
		}
		cursor->position += cut.rows;
		*bytes += cut.bytes;
	}
	cursor->finished = true;
	return GH_OK;
}
