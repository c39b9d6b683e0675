/*
 * build.cu
 *		BUILD: every key and value of a multi table that is empty, in one go.
 *
 *	size	the table is made large enough for the different keys, by an estimate.  Where keys come
 *			several times, build_regions.cu does all of the rest, if it can
 *	place	all positions are placed as if they were different keys, many of them by
 *			regions (regions.cu), each with its own number for a value.  One position of each key wins, and the winner's
 *			number is the number of the key's record; the others are listed.  Where there are none,
 *			and regions do it, slots have the values instead, and that is all (records.cu)
 *	number	(duplicates.cu, where there are any)  the others look up whose they are,
 *			and take their ranks from the record's counter; prefix sums over the counters
 *			tell where each record's values begin
 *	fill	records are written in their order, and every position's value goes to its
 *			place.  Without duplicates that is where it stands in the batch
 *
 * After an error, or when the stop flag is seen between two phases, the table is
 * emptied again.
 */
#include "cuda/table/build.cuh"

/* Bytes from the host between two looks at the stop flag. */
#define COPY_BYTES ((uint64_t) 8 << 20)

/* A multi table's records as words, so that they are written in whole lines. */
#define RECORD_WORDS (sizeof(value_record) / sizeof(uint64_t))

static __global__ void __launch_bounds__(BLOCK_THREADS)
records_kernel(uint64_t *words, record_plan plan, char *values, uint32_t value_size)
{
	uint64_t	i = ELEMENT;
	uint64_t	record = i / RECORD_WORDS;

	if (record >= plan.records)
		return;
	/* start, count, room */
	if (i % RECORD_WORDS == 0)
		words[i] = reinterpret_cast<uint64_t>(
			values + (plan.starts == nullptr ? record : plan.starts[record]) * value_size);
	else
		words[i] = plan.counts == nullptr ? 1 : plan.counts[record];
}

/* Values that are positions. */
template <typename VALUE> static __global__ void __launch_bounds__(BLOCK_THREADS)
positions_kernel(VALUE *values, uint64_t count)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		values[i] = (VALUE) i;
}

/* ------------------------------------------------------------------- memory */

/*
 * Cuts the scratch memory, or with a NULL base only adds up: copies of what the
 * host has, and what placing needs.
 */
static void
build_carve(const cuda_table *table, const GhRequest *request, build_work *work, void *base)
{
	carver		carver = {static_cast<char *>(base), 0};
	uint64_t	count = request->count;

	work->list = {request->keys, nullptr, nullptr, (uint32_t) count};
	work->values = static_cast<const char *>(request->values_in);
	if (!request->on_device)
	{
		work->list.keys = carver.take(count * table->options.key_size);
		if (request->values_in != nullptr)
			work->values = carver.array<char>(count * table->options.value_size);
	}
	if (!work->apart)
		place_carve(&carver, count, &work->lists);
	work->lists.flags = request->on_device && request->flags_out != nullptr ?
		request->flags_out : carver.array<uint8_t>(count);
	work->sketch = carver.take(estimate_bytes());
	work->bytes = carver.used;
}

/* Gets scratch memory: lane 0's where that suffices and is not for regions, else memory
 * of its own, which costs little beside a build of that size and is given back. */
static GhStatus
build_scratch(cuda_table *table, const GhRequest *request, build_work *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	work->apart = regions_may(table, request->count);
	work->flags_wanted = request->flags_out != nullptr;
	build_carve(table, request, work, nullptr);
	if (work->apart || work->bytes > lane->bytes)
		GH_TRY(table_alloc(table, work->bytes, &work->own, error));
	build_carve(table, request, work, work->own != nullptr ? work->own : lane->buffer);
	return GH_OK;
}

/* Copies in pieces, for the stop flag. */
static GhStatus
copy_in(cuda_table *table, const void *device, const void *host, uint64_t bytes,
		GhError *error)
{
	for (uint64_t at = 0; at < bytes; at += COPY_BYTES)
	{
		uint64_t	piece = bytes - at < COPY_BYTES ? bytes - at : COPY_BYTES;

		if (stop_seen(table))
			return GH_STOPPED;
		GH_TRY(lane_copy_in(table, &table->lanes[0],
							static_cast<char *>(const_cast<void *>(device)) + at,
							static_cast<const char *>(host) + at, piece, error));
	}
	return GH_OK;
}

static GhStatus
build_copy_in(cuda_table *table, const GhRequest *request, const build_work *work,
			  GhError *error)
{
	if (request->on_device)
		return GH_OK;
	GH_TRY(copy_in(table, work->list.keys, request->keys,
				   request->count * table->options.key_size, error));
	if (request->values_in == nullptr)
		return GH_OK;
	return copy_in(table, work->values, request->values_in,
				   request->count * table->options.value_size, error);
}

/* ------------------------------------------------------------------- phases */

/*
 * Makes the table large enough, if it is not for that many different keys: when it
 * has too few slots even for the least that the estimate allows, for the most.
 * In between placing finds out, for a table of just the right capacity
 * should not grow by chance.
 */
static GhStatus
build_size(cuda_table *table, build_work *work, GhError *error)
{
	double		room = table->options.fill_max * (double) table_slots(table);
	uint64_t	keys = work->list.count;
	GhStatus	status = GH_OK;

	if ((double) keys <= room)
		return GH_OK;
	GH_TRY(estimate_keys(table, &work->list, work->sketch, &keys, error));
	if ((double) keys * (1 - ESTIMATE_ERROR) > room)
	{
		keys = (uint64_t) ((double) keys * (1 + ESTIMATE_ERROR));
		if (keys > work->list.count)
			keys = work->list.count;
		status = table_make_room(table, keys, GROW_LEAST, error);
	}
	/* without memory for so many: there may be fewer, and placing will tell */
	work->lists.sized = status == GH_OK;
	return status == GH_DEVICE_ERROR ? status : GH_OK;
}

/*
 * Stores the batch by regions, if there is memory for that and nothing stands against it: with the values in
 * the slots, which needs no records, or else with positions, whose values come later.
 */
static GhStatus
build_by_regions(cuda_table *table, build_work *work, regions_outcome *outcome,
				 GhError *error)
{
	entry_list	valued = work->list;
	region_work regions;

	*outcome = {};
	GH_TRY(regions_reserve(table, work->list.count, &regions, error));
	if (regions.bytes == 0)
		return GH_OK;
	/* pairs that have values do not tell their positions, which flags are by */
	if (!work->flags_wanted && table->options.value_size == table->slot_value_size)
	{
		valued.values = work->values;
		GH_TRY(regions_store(table, &valued, &regions, nullptr, false, outcome, error));
		table->store.in_slots = outcome->stored;
		/* what is too much for a region, but for equal keys, is so with positions, too */
		if (outcome->stored || table->lanes[0].host_count->invalid != 0 || stop_seen(table))
			return GH_OK;
	}
	return regions_store(table, &work->list, &regions, work->lists.flags, true, outcome, error);
}

/* Places all positions, and lists those that lost; *stored: values and records are there as well. */
static GhStatus
build_place(cuda_table *table, build_work *work, uint32_t *placed, uint32_t *present,
			bool *stored, GhError *error)
{
	carver		carver = {nullptr, 0};
	uint8_t    *flags = work->lists.flags;
	regions_outcome outcome;
	GhStatus	status;

	*stored = false;
	if (work->apart)
	{
		/* with too many for that, they cannot be all different */
		GH_TRY(build_by_regions(table, work, &outcome, error));
		if (outcome.stored)
		{
			*stored = table->store.in_slots;
			table->values = *stored ? work->list.count : 0;
			*placed = outcome.placed;
			*present = outcome.present;
			work->lists.present = outcome.equals;
			return GH_OK;
		}
		if (stop_seen(table))
			return GH_STOPPED;
		GH_TRY(build_by_lists(table, work, stored, error));
		if (*stored)
		{
			*placed = (uint32_t) table->keys;
			return GH_OK;
		}
		if (stop_seen(table))
			return GH_STOPPED;
		place_carve(&carver, work->list.count, &work->lists);
		status = table_alloc(table, carver.used, &work->placing, error);
		if (status == GH_LIMIT || status == GH_NO_MEMORY)
		{
			/* what the regions were to be made in may be what is wanting */
			lane_shrink(table, &table->lanes[0], 0);
			status = table_alloc(table, carver.used, &work->placing, error);
		}
		GH_TRY(status);
		work->placing_bytes = carver.used;
		carver = {static_cast<char *>(work->placing), 0};
		place_carve(&carver, work->list.count, &work->lists);
		work->lists.flags = flags;
	}
	return entries_place(table, &work->list, &work->lists, placed, present, error);
}

/* Writes records and values where there are no duplicates: all in order. */
static GhStatus
fill_in_order(cuda_table *table, const build_work *work, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint64_t	count = work->list.count;
	uint32_t	value_size = table->options.value_size;
	char	   *values = table->store.segments[0].values;

	if (work->values != nullptr)
		GH_TRY(paging_copy(table, values, work->values, count * value_size, error));
	else if (value_size == sizeof(uint64_t))
		positions_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>(
			reinterpret_cast<uint64_t *>(values), count);
	else
		positions_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>(
			reinterpret_cast<uint32_t *>(values), count);
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Gets the store's memory and fills it. */
static GhStatus
build_fill(cuda_table *table, build_work *work, uint32_t placed, uint32_t present,
		   GhError *error)
{
	value_store *store = &table->store;
	uint64_t	count = work->list.count;
	record_plan plan = {count, nullptr, nullptr};

	if (present > 0)
		GH_TRY(duplicates_number(table, work, placed, present, &plan, error));
	if (stop_seen(table))
		return GH_STOPPED;
	GH_TRY(values_room_for(table, count, plan.records, error));
	static_assert(offsetof(value_record, start) == 0 &&
				  sizeof(value_record) == 3 * sizeof(uint64_t), "of words, the start first");
	records_kernel<<<blocks_for(plan.records * RECORD_WORDS), BLOCK_THREADS, 0,
		table->lanes[0].stream>>>(reinterpret_cast<uint64_t *>(store->records), plan,
								  store->segments[0].values, table->options.value_size);
	LAUNCH_TRY(table, error);
	if (present > 0)
		GH_TRY(duplicates_fill(table, work, present, error));
	else
		GH_TRY(fill_in_order(table, work, error));
	store->segments[0].used = store->used = count;
	store->record_used = plan.records;
	table->values = count;
	return GH_OK;
}

static GhStatus
build_run(cuda_table *table, GhRequest *request, build_work *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint32_t	placed;
	uint32_t	present;
	bool		stored;

	GH_TRY(build_scratch(table, request, work, error));
	GH_TRY(lane_mark(table, lane, 0, error));
	GH_TRY(build_copy_in(table, request, work, error));
	GH_TRY(lane_mark(table, lane, 1, error));
	GH_TRY(build_size(table, work, error));
	if (stop_seen(table))
		return GH_STOPPED;
	GH_TRY(build_place(table, work, &placed, &present, &stored, error));
	/* the estimate may have been low */
	GH_TRY(table_make_room(table, table->keys, GROW_LEAST, error));
	if (stop_seen(table))
		return GH_STOPPED;
	if (!stored)
		GH_TRY(build_fill(table, work, placed, present, error));
	GH_TRY(lane_mark(table, lane, 2, error));
	if (!request->on_device && request->flags_out != nullptr)
		GH_TRY(lane_copy_out(table, lane, request->flags_out, work->lists.flags,
							 request->count, error));
	GH_TRY(lane_mark(table, lane, 3, error));
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
	GH_TRY(lane_add_times(table, lane, error));
	request->outcome.inserted += placed;
	return GH_OK;
}

/*
 * Does the request in full: GH_OK, or an error or GH_STOPPED that leave an empty
 * table.
 */
GhStatus
build_step(cuda_table *table, GhRequest *request, GhError *error)
{
	build_work	work = {};
	GhStatus	status;

	if (request->outcome.done == request->count)
		return GH_OK;
	if (table->keys > 0)
		return gh_error_set(error, GH_INVALID,
							"a build request needs an empty table, and this one has %llu keys",
							(unsigned long long) table->keys);
	request->outcome.done = 0;
	/* what deleted keys left */
	values_clear(table);
	status = build_run(table, request, &work, error);
	if (status != GH_OK && status != GH_DEVICE_ERROR)
	{
		/* copies from the caller's arrays may be in flight */
		cudaError_t waited = cudaStreamSynchronize(table->lanes[0].stream);

		if (waited != cudaSuccess)
			status = table_failed(table, waited, "cudaStreamSynchronize", error);
	}
	device_free(table, work.own, work.bytes);
	device_free(table, work.placing, work.placing_bytes);
	device_free(table, work.more, work.more_bytes);
	if (status == GH_OK)
	{
		request->outcome.done = request->count;
		/* a build may use all memory there is; then there is none for compaction */
		values_hold_back(table, table->keys, table->values);
		if (!device_fits(table, 0))
			table->reserved = 0;
		return GH_OK;
	}
	if (status == GH_DEVICE_ERROR)
		return status;
	values_clear(table);
	GH_TRY(table_erase(table, error));
	GH_TRY(table_downsize_if_due(table, false, error));
	return status;
}
