/*
 * batch.cu
 *		Operations that change the table: cutting a batch into slices.
 *
 * A slice's arrays come to device memory, its operation runs there to the end, and
 * its results go back, before anything behind it is started.  Arrays that are on
 * the device are used where they are, and their slices are longer.
 *
 * When memory cannot be had for what a slice needs, the operation leaves the
 * table as it was and a smaller slice is tried, down to one key; so what fits
 * is done, and an error leaves a finished prefix.
 *
 * A large batch that fills an empty table is stored whole: by regions, where that suits
 * (regions.cu), or as a build (build.cu).  And slices that are large beside the table are done by
 * regions as well (change.cu).
 */
#include "cuda/table/regions.cuh"

static const slice_operation *
operation_of(GhOp op)
{
	switch (op)
	{
		case GH_INSERT:
		case GH_EXCHANGE:
			return &insert_operation;
		case GH_UPSERT:
			return &upsert_operation;
		case GH_ADD:
			return &add_operation;
		case GH_DELETE:
			return &delete_operation;
		case GH_DELETE_ONE:
			return &delete_one_operation;
		case GH_MIXED:
			return &mixed_operation;
		default:
			return nullptr;		/* finds, counts and builds are not done in slices */
	}
}

static bool
op_returns_values(const GhRequest *request)
{
	return request->op == GH_EXCHANGE ||
		(request->op == GH_MIXED && request->values_out != nullptr);
}

/* Does the operation read values_in? */
static bool
op_takes_values(const cuda_table *table, GhOp op)
{
	return table->options.value_size != 0 && op != GH_DELETE && op != GH_DELETE_ONE;
}

/* A slice in the order of regions (arrange.cu). */
struct slice_order
{
	arrangement order;
	slice_io	slice;
};

static void
carve_ordered(const cuda_table *table, const slice_io *slice, carver *carver, slice_order *ordered)
{
	uint64_t	keys = slice->count;
	uint32_t	value_size = table->options.value_size;

	arrange_carve(carver, keys, &ordered->order);
	ordered->slice = {};
	ordered->slice.count = slice->count;
	ordered->slice.keys = carver->take(keys * table->options.key_size);
	if (slice->values != nullptr || carver->base == nullptr)
		ordered->slice.values = carver->array<char>(keys * value_size);
	if (slice->values_out != nullptr || carver->base == nullptr)
		ordered->slice.values_out = carver->array<char>(keys * value_size);
	if (slice->ops != nullptr || carver->base == nullptr)
		ordered->slice.ops = carver->array<uint8_t>(keys);
	ordered->slice.flags = carver->array<uint8_t>(keys);
	ordered->slice.scratch = slice->scratch;
}

/*
 * The slice's arrays: carved out of lane 0's buffer, which with a NULL base only
 * adds up, or, where the request has them on the device, those.
 */
static slice_io
slice_carve(const cuda_table *table, const GhRequest *request, void *base, uint64_t keys,
			slice_order *ordered, size_t *bytes)
{
	carver		carver = {static_cast<char *>(base), 0};
	uint64_t	done = request->outcome.done;
	uint32_t	key_size = table->options.key_size;
	uint32_t	value_size = table->options.value_size;
	slice_io	slice = {};

	slice.count = (uint32_t) keys;
	if (request->on_device)
	{
		slice.keys = static_cast<const char *>(request->keys) + done * key_size;
		if (op_takes_values(table, request->op))
			slice.values = static_cast<const char *>(request->values_in) +
				done * value_size;
		if (op_returns_values(request))
			slice.values_out = static_cast<char *>(request->values_out) +
				done * value_size;
		slice.ops = request->op == GH_MIXED ? request->ops + done : nullptr;
		slice.flags = request->flags_out != nullptr ? request->flags_out + done :
			carver.array<uint8_t>(keys);
	}
	else
	{
		slice.keys = carver.take(keys * key_size);
		if (op_takes_values(table, request->op))
			slice.values = carver.array<char>(keys * value_size);
		if (op_returns_values(request))
			slice.values_out = carver.array<char>(keys * value_size);
		if (request->op == GH_MIXED)
			slice.ops = carver.array<uint8_t>(keys);
		slice.flags = carver.array<uint8_t>(keys);
	}
	slice.scratch = carver.take(operation_of(request->op)->scratch_bytes(table, keys));
	if (ordered != nullptr)
		carve_ordered(table, &slice, &carver, ordered);
	*bytes = carver.used;
	return slice;
}

/* Bytes of lane 0 that a slice of that many keys from host memory takes. */
size_t
batch_bytes(const cuda_table *table, GhOp op, uint64_t keys)
{
	GhRequest	request = {};
	char		nothing;
	size_t		bytes;

	request.op = op;
	request.values_out = &nothing;	/* as if it were wanted */
	if (op == GH_FIND_ALL)
		return find_all_bytes(table, keys, keys);
	if (op == GH_FIND || op == GH_COUNT)
		return find_bytes(table, keys);
	if (operation_of(op) == nullptr)
		return 0;
	(void) slice_carve(table, &request, nullptr, keys, nullptr, &bytes);
	return bytes;
}

static GhStatus
slice_copy_in(cuda_table *table, const GhRequest *request, const slice_io *slice,
			  GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	done = request->outcome.done;
	size_t		key_size = table->options.key_size;
	size_t		value_size = table->options.value_size;

	if (request->on_device)
		return GH_OK;
	GH_TRY(lane_copy_in(table, lane, const_cast<void *>(slice->keys),
						static_cast<const char *>(request->keys) + done * key_size,
						slice->count * key_size, error));
	if (slice->values != nullptr)
		GH_TRY(lane_copy_in(table, lane, const_cast<char *>(slice->values),
							static_cast<const char *>(request->values_in) +
							done * value_size, slice->count * value_size, error));
	if (slice->ops != nullptr)
		GH_TRY(lane_copy_in(table, lane, const_cast<uint8_t *>(slice->ops),
							request->ops + done, slice->count, error));
	return GH_OK;
}

/* Copies the slice's results out and waits for all of it. */
static GhStatus
slice_copy_out(cuda_table *table, const GhRequest *request, const slice_io *slice,
			   GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	done = request->outcome.done;
	size_t		value_size = table->options.value_size;

	if (!request->on_device && request->flags_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->flags_out + done, slice->flags,
							 slice->count, error));
	if (!request->on_device && slice->values_out != nullptr)
		GH_TRY(lane_copy_out(table, lane,
							 static_cast<char *>(request->values_out) + done * value_size,
							 slice->values_out, slice->count * value_size, error));
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	return lane_add_times(table, lane, error);
}

/* Gets lane 0 a buffer for up to *keys keys, which may be lowered to what there
 * is memory for: SLICE_MIN at least. */
static GhStatus
reserve_slice(cuda_table *table, const GhRequest *request, uint64_t *keys, bool *arranged,
			  GhError *error)
{
	slice_order ordered;
	GhStatus	status;
	size_t		bytes;

	for (;;)
	{
		*arranged = arranges(table, *keys);
		(void) slice_carve(table, request, nullptr, *keys, *arranged ? &ordered : nullptr, &bytes);
		status = lane_reserve(table, &table->lanes[0], bytes);
		if (status == GH_OK)
			return GH_OK;
		if (status == GH_DEVICE_ERROR || *keys <= SLICE_MIN)
			return gh_error_set(error, status, "no device memory for a slice of %llu keys",
								(unsigned long long) *keys);
		*keys = *keys / 2 > SLICE_MIN ? *keys / 2 : SLICE_MIN;
	}
}

/* The operation, on a slice that is arranged; the results are at their positions. */
static GhStatus
slice_operate_arranged(cuda_table *table, GhRequest *request, const slice_io *slice, const slice_order *ordered,
					   GhError *error)
{
	lane	   *lane = &table->lanes[0];
	const arrangement *order = &ordered->order;
	const slice_io *in = &ordered->slice;
	uint32_t	count = slice->count;
	uint32_t	value_size = table->options.value_size;

	GH_TRY(arrange_keys(table, lane, slice->keys, count, order, error));
	GH_TRY(arrange_move(table, lane, order, const_cast<void *>(in->keys), slice->keys, count,
						table->options.key_size, false, error));
	GH_TRY(arrange_move(table, lane, order, const_cast<char *>(in->values), slice->values, count, value_size, false, error));
	GH_TRY(arrange_move(table, lane, order, const_cast<uint8_t *>(in->ops), slice->ops, count, 1, false, error));
	GH_TRY(operation_of(request->op)->run(table, request, in, error));
	GH_TRY(arrange_move(table, lane, order, slice->flags, in->flags, count, 1, true, error));
	return arrange_move(table, lane, order, slice->values_out, in->values_out, count, value_size, true, error);
}

/* One slice of that many keys; an error leaves the table's content as it was. */
static GhStatus
slice_run(cuda_table *table, GhRequest *request, uint64_t keys, bool arranged, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	slice_order ordered;
	size_t		bytes;
	slice_io	slice = slice_carve(table, request, lane->buffer, keys, arranged ? &ordered : nullptr, &bytes);
	GhStatus	status;

	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(slice_copy_in(table, request, &slice, error));
	GH_TRY(hot_forget(table, request->op, slice.keys, slice.count, error));
	GH_TRY(lane_mark(table, lane, 1, error));
	status = arranged ? slice_operate_arranged(table, request, &slice, &ordered, error) :
		operation_of(request->op)->run(table, request, &slice, error);
	if (status != GH_OK)
	{
		/* room held back for values that did not come */
		if (status != GH_DEVICE_ERROR && table->options.multi)
			values_hold_back(table, table->keys, table->values);
		return status;
	}
	GH_TRY(lane_mark(table, lane, 2, error));
	GH_TRY(slice_copy_out(table, request, &slice, error));
	request->outcome.done += keys;
	return GH_OK;
}

/* Stores the whole request by regions, if it suits and there is memory for that. */
static GhStatus
request_by_regions(cuda_table *table, GhRequest *request, bool *stored, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	entry_list	list = {request->keys, static_cast<const char *>(request->values_in), nullptr,
		(uint32_t) request->count};
	region_work work;
	regions_outcome outcome;

	*stored = false;
	if ((request->op != GH_INSERT && request->op != GH_UPSERT) || !request->on_device ||
		request->outcome.done != 0)
		return GH_OK;
	GH_TRY(regions_reserve(table, request->count, &work, error));
	if (work.bytes == 0)
		return GH_OK;
	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(lane_mark(table, lane, 1, error));
	GH_TRY(regions_store(table, &list, &work, request->flags_out, false, &outcome, error));
	GH_TRY(lane_mark(table, lane, 2, error));
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	GH_TRY(lane_add_times(table, lane, error));
	*stored = outcome.stored;
	if (outcome.stored)
	{
		request->outcome.inserted += outcome.placed;
		request->outcome.done = request->count;
	}
	return GH_OK;
}

/* The positions of a slice, whose flags are still to be found a place, if the caller has none. */
static entry_list
device_list(const cuda_table *table, const GhRequest *request, uint64_t keys, uint8_t **flags)
{
	size_t		bytes;
	slice_io	slice = slice_carve(table, request, nullptr, keys, nullptr, &bytes);

	*flags = request->flags_out == nullptr ? nullptr : slice.flags;
	return {slice.keys, slice.values, nullptr, slice.count};
}

/* Plans a slice by regions, with lane 0's memory; where that cannot be had, a smaller one. */
static GhStatus
reserve_change(cuda_table *table, const GhRequest *request, change_work *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	keys = request->count - request->outcome.done;
	bool		suits = false;
	uint8_t    *flags;
	entry_list	list;
	GhStatus	status;

	change_plan(table, request->op, keys, work);
	if (work->bytes == 0)
		return GH_OK;
	list = device_list(table, request, work->count, &flags);
	GH_TRY(change_suits(table, request->op, &list, &suits, error));
	if (!suits)
		*work = {};
	while (work->bytes != 0)
	{
		work->bytes += request->flags_out == nullptr ? work->count : 0;
		status = lane_reserve(table, lane, work->bytes);
		if (status == GH_DEVICE_ERROR)
			*error = table->error;
		if (status == GH_OK || status == GH_DEVICE_ERROR)
			return status;
		keys = work->count / 2;
		change_plan(table, request->op, keys, work);
	}
	return GH_OK;
}

/* Does a slice by regions of a table that has keys, if that suits and there is memory for it. */
static GhStatus
slice_by_regions(cuda_table *table, GhRequest *request, bool *done, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint8_t    *flags;
	entry_list	list;
	change_work work;
	uint32_t	inserted;

	*done = false;
	/* in the host's memory, regions would be read and written over the bus */
	if ((request->op != GH_INSERT && request->op != GH_UPSERT) || !request->on_device ||
		table->stats.bytes_paged != 0 || request->engine_state[STATE_REFUSED] != 0)
		return GH_OK;
	/* what does not suit this slice may not suit the next */
	request->engine_state[STATE_REFUSED] = 1;
	GH_TRY(reserve_change(table, request, &work, error));
	if (work.bytes == 0)
		return GH_OK;
	change_carve(table, lane->buffer, &work);
	list = device_list(table, request, work.count, &flags);
	if (flags == nullptr)
		flags = static_cast<uint8_t *>(lane->buffer) + work.bytes;
	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(lane_mark(table, lane, 1, error));
	GH_TRY(change_run(table, request->op, &list, &work, flags, done, &inserted, error));
	if (!*done)
		return GH_OK;
	GH_TRY(lane_mark(table, lane, 2, error));
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	GH_TRY(lane_add_times(table, lane, error));
	request->engine_state[STATE_REFUSED] = 0;
	request->outcome.inserted += inserted;
	if (request->op == GH_UPSERT)
		request->outcome.replaced += list.count - inserted;
	request->outcome.done += list.count;
	return GH_OK;
}

/*
 * A large ADD of arrays on the device to an empty table is a BUILD, for which the table comes to be the same.
 * What ends that for want of memory leaves it to slices, for which there may be enough.
 */
static GhStatus
add_by_build(cuda_table *table, GhRequest *request, bool *done, GhError *error)
{
	GhStatus	status;

	*done = false;
	if (request->op != GH_ADD || !request->on_device || request->outcome.done != 0 ||
		!regions_may(table, request->count) || request->engine_state[STATE_REFUSED] != 0)
		return GH_OK;
	status = build_step(table, request, error);
	*done = status == GH_OK;
	if (status != GH_LIMIT && status != GH_TOO_MANY && status != GH_NO_MEMORY)
		return status;
	request->engine_state[STATE_REFUSED] = 1;
	return GH_OK;
}

/* What a slice may have left to be tidied up. */
static GhStatus
slice_settle(cuda_table *table, GhOp op, GhError *error)
{
	if (op != GH_DELETE && op != GH_DELETE_ONE && op != GH_MIXED)
		return GH_OK;
	if (table->options.multi)
		GH_TRY(values_compact_if_due(table, error));
	return table_downsize_if_due(table, false, error);
}

/* Keys of the next slice, before memory is asked for. */
static uint64_t
slice_keys(const cuda_table *table, const GhRequest *request)
{
	uint64_t	keys = request->count - request->outcome.done;
	uint64_t	most = request->on_device ? paging_keys(table, operation_of(request->op)->device_slice_max) :
		table_staged_keys(table, SLICE_MAX);

	return keys < most ? keys : most;
}

/*
 * Does the request's next slice: GH_BUSY when that went well, GH_OK when there
 * was nothing left to do.
 */
GhStatus
batch_step(cuda_table *table, GhRequest *request, GhError *error)
{
	uint64_t	keys = slice_keys(table, request);
	bool		tried = false;	/* to compact */
	bool		arranged;
	bool		stored;
	GhStatus	status;
	GhError		why;

	if (keys == 0)
		return GH_OK;
	GH_TRY(request_by_regions(table, request, &stored, error));
	if (!stored)
		GH_TRY(slice_by_regions(table, request, &stored, error));
	if (!stored)
		GH_TRY(add_by_build(table, request, &stored, error));
	if (stored)
		return GH_BUSY;
	if (table->options.multi)
		GH_TRY(values_compact_if_due(table, error));
	GH_TRY(reserve_slice(table, request, &keys, &arranged, error));

	while ((status = slice_run(table, request, keys, arranged, &why)) != GH_OK)
	{
		if (status != GH_LIMIT && status != GH_TOO_MANY && status != GH_NO_MEMORY)
			break;
		/* deleted values may take the memory: once, try without them */
		if (table->options.multi && !tried)
		{
			bool		compacted;

			tried = true;
			GH_TRY(values_compact(table, &compacted, error));
			if (compacted)
				continue;
		}
		/* less may still go, down to a single key */
		if (keys == 1)
			break;
		keys /= 2;
	}
	if (status == GH_OK)
		status = slice_settle(table, request->op, &why);
	if (status == GH_OK)
		return GH_BUSY;
	*error = why;
	return status;
}
