/*
 * find.cu
 *		FIND: a batch is cut into pieces, and a piece runs in a lane without
 *		anyone waiting for it.
 *
 * One thread per key.  It reads the 64 bytes of keys of one bucket, those of
 * the other bucket if need be, and one word of values.  Nothing changes the
 * table while finds run (queue.cu), so there are no locks and no fences.
 */
#include "probe.cuh"
#include "table.h"

/* A piece's arrays in its lane. */
struct find_view
{
	uint64_t   *keys;
	uint64_t   *values_out;		/* NULL: not asked for */
	uint8_t    *flags_out;		/* NULL: not asked for */
};

static __global__ void __launch_bounds__(BLOCK_THREADS)
find_kernel(table_view view, find_view piece, uint32_t count, uint64_t absent,
			counters *counts)
{
	uint64_t	i = ELEMENT;
	bool		found = false;

	if (i < count)
	{
		entry_place place = table_find(view, piece.keys[i]);

		found = place.slot != nullptr;
		if (piece.values_out != nullptr)
			piece.values_out[i] = found ? place.slot[BUCKET_SLOTS] : absent;
		if (piece.flags_out != nullptr)
			piece.flags_out[i] = found ? 1 : 0;
	}
	block_add(&counts->matched, found ? 1 : 0);
}

static find_view
carve_piece(void *base, const GhRequest *request, uint64_t keys, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	find_view	piece = {};

	piece.keys = carver.array<uint64_t>(keys);
	if (request->values_out != nullptr)
		piece.values_out = carver.array<uint64_t>(keys);
	if (request->flags_out != nullptr)
		piece.flags_out = carver.array<uint8_t>(keys);
	*bytes = carver.used;
	return piece;
}

/*
 * A free lane for up to *keys keys, which may be lowered to what it holds;
 * NULL when there is none now.
 */
static GhStatus
find_lane(cuda_table *table, const GhRequest *request, uint64_t *keys, lane **chosen)
{
	*chosen = nullptr;
	for (int i = 0; i < LANES; i++)
	{
		lane	   *lane = &table->lanes[i];
		uint64_t	fits = *keys;
		size_t		bytes;
		GhStatus	status = GH_OK;

		if (lane->request != nullptr)
			continue;
		(void) carve_piece(nullptr, request, fits, &bytes);
		/* without memory for more: what the lane has, in lane 0 enough for SLICE_MIN */
		while ((status = lane_reserve(table, lane, bytes)) != GH_OK && fits > SLICE_MIN)
		{
			if (status == GH_DEVICE_ERROR)
				return status;
			fits = fits / 2 > SLICE_MIN ? fits / 2 : SLICE_MIN;
			(void) carve_piece(nullptr, request, fits, &bytes);
		}
		if (status == GH_DEVICE_ERROR)
			return status;
		if (status != GH_OK)
			continue;
		*chosen = lane;
		*keys = fits;
		return GH_OK;
	}
	return GH_OK;
}

/* Starts the request's next piece if a lane is free. */
GhStatus
find_start(cuda_table *table, GhRequest *request, bool *started, GhError *error)
{
	uint64_t	start = request->engine_state[STATE_STARTED];
	uint64_t	keys = request->count - start < PIECE_MAX ? request->count - start : PIECE_MAX;
	find_view	piece;
	size_t		bytes;
	lane	   *lane;

	*started = false;
	GH_TRY(find_lane(table, request, &keys, &lane));
	if (lane == nullptr)
		return GH_OK;
	piece = carve_piece(lane->buffer, request, keys, &bytes);

	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(lane_count_reset(table, lane, error));
	GH_TRY(lane_copy_in(table, lane, piece.keys, request->keys + start,
						keys * sizeof(uint64_t), error));
	GH_TRY(lane_mark(table, lane, 1, error));
	find_kernel<<<blocks_for(keys), BLOCK_THREADS, 0, lane->stream>>>(
		table_make_view(table), piece, (uint32_t) keys, request->absent,
		lane->device_count);
	LAUNCH_TRY(table, error);
	GH_TRY(lane_mark(table, lane, 2, error));
	if (piece.values_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->values_out + start, piece.values_out,
							 keys * sizeof(uint64_t), error));
	if (piece.flags_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->flags_out + start, piece.flags_out,
							 keys, error));
	CUDA_TRY(table, cudaMemcpyAsync(lane->host_count, lane->device_count,
									sizeof(counters), cudaMemcpyDeviceToHost,
									lane->stream), error);
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaEventRecord(lane->done, lane->stream), error);

	lane->request = request;
	lane->count = keys;
	table->flight[table->flying++] = lane;
	request->engine_state[STATE_FLYING]++;
	request->engine_state[STATE_STARTED] += keys;
	*started = true;
	return GH_OK;
}

/* The lane's piece is through: its results are in the caller's arrays. */
GhStatus
find_finish(cuda_table *table, lane *lane, GhError *error)
{
	GhRequest  *request = lane->request;

	request->matched += lane->host_count->matched;
	request->done += lane->count;
	table->stats.reads += lane->count;
	return lane_add_times(table, lane, error);
}
