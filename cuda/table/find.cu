/*
 * find.cu
 *		FIND and COUNT: a batch is cut into pieces, and a piece runs in a lane
 *		without anyone waiting for it.
 *
 * A warp looks up 32 keys (probe.cuh).  Nothing changes the table while finds run
 * (queue.cu), so there are no locks and no fences.  A request whose arrays are on
 * the device needs no memory, and its pieces are large.
 */
#include "cuda/table/hot.cuh"
#include "cuda/table/table.h"

/* A piece's arrays in device memory. */
struct find_view
{
	const void *keys;
	char	   *values_out;		/* NULL: not asked for */
	uint8_t    *flags_out;		/* NULL: not asked for */
	uint64_t   *counts_out;		/* COUNT; else NULL */
	const value_record *records;	/* of a multi table; NULL: a key has one value */
	uint64_t	absent;
	uint32_t	count;
};

/* Stores each lane's value, or the absent one. */
template <typename L> static __device__ __forceinline__ void
find_store(const table_view &view, const find_view &piece, uint64_t i, bool listed,
		   const entry_place &place)
{
	char	   *to = piece.values_out + i * view.value_size;

	if (L::together)
	{
		uint64_t	value = place.found ? place.loaded : piece.absent;

		if (listed)
			value_from_word(to, value, view.value_size);
		return;
	}
	warp_copy_values(place.found, to, place.value, view.value_size);
	if (listed && !place.found)
		value_from_word(to, piece.absent, view.value_size);
}

/* Looks up the keys of lanes that ask; HOT: copies of entries first (hot.cu). */
template <typename L, bool HOT> static __device__ __forceinline__ entry_place
locate(const table_view &view, typename L::key_type key, bool asking, hot_use *use)
{
	return HOT ? warp_locate_hot<L>(view, key, asking, use) : warp_locate<L>(view, key, asking);
}

/*
 * Of lanes with equal keys side by side the first one looks the key up, and the others have what it
 * found: a key that comes often is read once for a warp.  All lanes of the warp come here.
 */
template <typename L, bool HOT> static __device__ __forceinline__ entry_place
locate_runs(const table_view &view, typename L::key_type key, bool listed, hot_use *use)
{
	uint32_t	lane = threadIdx.x & 31;
	typename L::key_type before = __shfl_up_sync(ALL_LANES, key, 1);
	bool		first = listed && (lane == 0 || before != key);
	uint32_t	firsts = __ballot_sync(ALL_LANES, first) & (ALL_LANES >> (31 - lane));
	int			from = firsts == 0 ? 0 : 31 - __clz((int) firsts);
	entry_place place = locate<L, HOT>(view, key, first, use);
	int			found = __shfl_sync(ALL_LANES, (place.found ? 1 : 0) | (use->hit ? 2 : 0), from);

	place.loaded = __shfl_sync(ALL_LANES, (unsigned long long) place.loaded, from);
	place.value = reinterpret_cast<char *>(
		__shfl_sync(ALL_LANES, reinterpret_cast<unsigned long long>(place.value), from));
	place.found = listed && (found & 1) != 0;
	use->hit = listed && (found & 2) != 0;
	return place;
}

/* ARRANGED: equal keys are side by side, but where chance has another one between them. */
template <typename L, bool ARRANGED, bool HOT> static __global__ void __launch_bounds__(BLOCK_THREADS)
find_kernel(const __grid_constant__ table_view view, find_view piece, counters *counts)
{
	typedef typename L::key_type key_type;
	__shared__ uint32_t shared[block_sums::WORDS];
	block_sums	sums;

	sums.begin(shared);
	{
		uint64_t	i = ELEMENT;
		bool		listed = i < piece.count;
		key_type	key = listed ? static_cast<const key_type *>(piece.keys)[i] : 0;
		hot_use		use = {};
		entry_place place = ARRANGED ? locate_runs<L, HOT>(view, key, listed, &use) :
			locate<L, HOT>(view, key, listed, &use);

		if (piece.values_out != nullptr)
			find_store<L>(view, piece, i, listed, place);
		if (piece.flags_out != nullptr && listed)
			piece.flags_out[i] = place.found ? 1 : 0;
		if (piece.counts_out != nullptr)
		{
			uint64_t	values = !place.found ? 0 :
				piece.records == nullptr ? 1 : piece.records[place.loaded].count;

			if (listed)
				piece.counts_out[i] = values;
			block_add(&counts->values, values);
		}
		sums.add_one(block_sums::ENTRIES, place.found);
		sums.add_reads(view, place.reads);
		if (HOT)
		{
			sums.add_one(block_sums::CACHED, use.hit);
			sums.add_one(block_sums::FAR, use.far);
		}
	}
	sums.end(counts, &counts->matched, 1);
}

/* Takes the arrays of a piece. */
static find_view
carve_arrays(const cuda_table *table, const GhRequest *request, carver *carver, uint64_t keys)
{
	find_view	piece = {};

	piece.keys = carver->take(keys * table->options.key_size);
	if (request->values_out != nullptr)
		piece.values_out = carver->array<char>(keys * table->options.value_size);
	if (request->flags_out != nullptr)
		piece.flags_out = carver->array<uint8_t>(keys);
	if (request->op == GH_COUNT)
		piece.counts_out = carver->array<uint64_t>(keys);
	return piece;
}

/* What a lane's buffer has: a piece's arrays, unless the caller's are used, and those that it
 * is looked up in where it is arranged. */
struct find_arrays
{
	find_view	piece;
	bool		arranged;
	arrangement order;
	find_view	ordered;
};

/* Cuts a lane's buffer into arrays, or with a NULL base only adds up. */
static find_arrays
carve_piece(const cuda_table *table, const GhRequest *request, void *base, uint64_t keys,
			size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	find_arrays arrays = {};

	if (!request->on_device)
		arrays.piece = carve_arrays(table, request, &carver, keys);
	arrays.arranged = arranges(table, keys);
	if (arrays.arranged)
	{
		arrange_carve(&carver, keys, &arrays.order);
		arrays.ordered = carve_arrays(table, request, &carver, keys);
	}
	*bytes = carver.used;
	return arrays;
}

/* Bytes of a lane for a piece of that many keys with everything asked for. */
size_t
find_bytes(const cuda_table *table, uint64_t keys)
{
	GhRequest	request = {};
	char		nothing;
	uint8_t		flag;
	size_t		bytes;

	request.op = GH_COUNT;
	request.values_out = &nothing;
	request.flags_out = &flag;
	(void) carve_piece(table, &request, nullptr, keys, &bytes);
	return bytes;
}

/* The piece is the caller's arrays themselves. */
static find_view
device_piece(const cuda_table *table, const GhRequest *request, uint64_t start)
{
	find_view	piece = {};

	piece.keys = static_cast<const char *>(request->keys) + start * table->options.key_size;
	if (request->values_out != nullptr)
		piece.values_out = static_cast<char *>(request->values_out) +
			start * table->options.value_size;
	if (request->flags_out != nullptr)
		piece.flags_out = request->flags_out + start;
	if (request->op == GH_COUNT)
		piece.counts_out = request->counts_out + start;
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
		size_t		bytes = 0;
		GhStatus	status = GH_OK;

		if (lane->request != nullptr)
			continue;
		(void) carve_piece(table, request, nullptr, fits, &bytes);
		/* without memory for more: what the lane has, in lane 0 enough for SLICE_MIN */
		while ((status = lane_reserve(table, lane, bytes)) != GH_OK && fits > SLICE_MIN)
		{
			if (status == GH_DEVICE_ERROR)
				return status;
			fits = fits / 2 > SLICE_MIN ? fits / 2 : SLICE_MIN;
			(void) carve_piece(table, request, nullptr, fits, &bytes);
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

static GhStatus
piece_results(cuda_table *table, const GhRequest *request, lane *lane,
			  const find_view *piece, uint64_t start, GhError *error)
{
	uint32_t	value_size = table->options.value_size;

	if (piece->values_out != nullptr)
		GH_TRY(lane_copy_out(table, lane,
							 static_cast<char *>(request->values_out) + start * value_size,
							 piece->values_out, piece->count * (size_t) value_size, error));
	if (piece->flags_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->flags_out + start, piece->flags_out,
							 piece->count, error));
	if (piece->counts_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->counts_out + start, piece->counts_out,
							 piece->count * sizeof(uint64_t), error));
	return GH_OK;
}

/* Enqueues the look-up of a piece. */
static GhStatus
piece_look_up(cuda_table *table, lane *lane, const find_view *piece, bool arranged, GhError *error)
{
	void		(*kernel) (table_view view, find_view piece, counters *counts) = nullptr;

	if (table->hot.bytes != 0)
		LAYOUT_DISPATCH(table, kernel = arranged ? find_kernel<L, true, true> :
						find_kernel<L, false, true>);
	else
		LAYOUT_DISPATCH(table, kernel = arranged ? find_kernel<L, true, false> :
						find_kernel<L, false, false>);
	kernel<<<blocks_for(piece->count), BLOCK_THREADS, 0, lane->stream>>>(table_make_view(table), *piece,
																		 lane->device_count);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* A part of an arranged piece: kernels follow one another, so that what is on its way is near. */
static find_view
part_of(const cuda_table *table, const find_view *piece, uint32_t first, uint32_t most)
{
	find_view	part = *piece;

	part.count = piece->count - first < most ? piece->count - first : most;
	part.keys = static_cast<const char *>(piece->keys) + (size_t) first * table->options.key_size;
	if (piece->values_out != nullptr)
		part.values_out = piece->values_out + (size_t) first * table->options.value_size;
	if (piece->flags_out != nullptr)
		part.flags_out = piece->flags_out + first;
	if (piece->counts_out != nullptr)
		part.counts_out = piece->counts_out + first;
	return part;
}

/* Enqueues the look-up of a piece in the order of regions. */
static GhStatus
piece_arranged(cuda_table *table, lane *lane, const find_arrays *arrays, const find_view *piece, GhError *error)
{
	const arrangement *order = &arrays->order;
	uint32_t	count = piece->count;
	uint32_t	wave = paging_wave(table, count);
	find_view	ordered = *piece;

	ordered.keys = arrays->ordered.keys;
	ordered.values_out = arrays->ordered.values_out;
	ordered.flags_out = arrays->ordered.flags_out;
	ordered.counts_out = arrays->ordered.counts_out;
	GH_TRY(arrange_keys(table, lane, piece->keys, count, order, error));
	GH_TRY(arrange_move(table, lane, order, const_cast<void *>(ordered.keys), piece->keys, count,
						table->options.key_size, false, error));
	for (uint32_t first = 0; first < count; first += wave)
	{
		find_view	part = part_of(table, &ordered, first, wave);

		GH_TRY(piece_look_up(table, lane, &part, true, error));
	}
	GH_TRY(arrange_move(table, lane, order, piece->values_out, ordered.values_out, count,
						table->options.value_size, true, error));
	GH_TRY(arrange_move(table, lane, order, piece->flags_out, ordered.flags_out, count, 1, true, error));
	return arrange_move(table, lane, order, piece->counts_out, ordered.counts_out, count,
						sizeof(uint64_t), true, error);
}

/* Enqueues a piece's copies and its kernel. */
static GhStatus
piece_enqueue(cuda_table *table, const GhRequest *request, lane *lane, const find_arrays *arrays,
			  find_view *piece, uint64_t start, GhError *error)
{
	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(lane_count_reset(table, lane, error));
	if (!request->on_device)
		GH_TRY(lane_copy_in(table, lane, const_cast<void *>(piece->keys),
							static_cast<const char *>(request->keys) +
							start * table->options.key_size,
							piece->count * (size_t) table->options.key_size, error));
	GH_TRY(lane_mark(table, lane, 1, error));
	piece->records = table_records(table);
	piece->absent = table->by_number ? NO_ROW : request->absent;
	GH_TRY(arrays->arranged ? piece_arranged(table, lane, arrays, piece, error) :
		   piece_look_up(table, lane, piece, false, error));
	if (table->by_number && table->made_value_size != 0 && piece->values_out != nullptr)
	{
		pipe_rows_values(table->rows, reinterpret_cast<uint64_t *>(piece->values_out), piece->count, request->absent,
						 lane->stream);
		LAUNCH_TRY(table, error);
	}
	GH_TRY(lane_mark(table, lane, 2, error));
	if (!request->on_device)
		GH_TRY(piece_results(table, request, lane, piece, start, error));
	CUDA_TRY(table, cudaMemcpyAsync(lane->host_count, lane->device_count,
									sizeof(counters), cudaMemcpyDeviceToHost,
									lane->stream), error);
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaEventRecord(lane->done, lane->stream), error);
	return GH_OK;
}

/* Starts the request's next piece if a lane is free. */
GhStatus
find_start(cuda_table *table, GhRequest *request, bool *started, GhError *error)
{
	uint64_t	start = request->engine_state[STATE_STARTED];
	uint64_t	keys = request->count - start;
	uint64_t	most = table->stats.bytes_paged > 0 ? PAGED_KEYS_MAX : PIECE_MAX;
	find_arrays arrays;
	find_view	piece;
	size_t		bytes;
	lane	   *lane;

	*started = false;
	if (request->on_device)
		keys = paging_keys(table, keys < DEVICE_PIECE_MAX ? keys : DEVICE_PIECE_MAX);
	else
		keys = table_staged_keys(table, keys < most ? keys : most);
	GH_TRY(find_lane(table, request, &keys, &lane));
	if (lane == nullptr)
		return GH_OK;
	arrays = carve_piece(table, request, lane->buffer, keys, &bytes);
	piece = request->on_device ? device_piece(table, request, start) : arrays.piece;
	piece.count = (uint32_t) keys;
	GH_TRY(piece_enqueue(table, request, lane, &arrays, &piece, start, error));

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

	request->outcome.matched += lane->host_count->matched;
	request->outcome.values_count += lane->host_count->values;
	request->outcome.done += lane->count;
	table->stats.reads += lane->count;
	table->stats.bucket_reads += lane->host_count->bucket_reads;
	table->stats.reads_cached += lane->host_count->cached;
	table->stats.reads_paged += lane->host_count->far;
	return lane_add_times(table, lane, error);
}
