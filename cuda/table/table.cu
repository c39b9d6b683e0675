/*
 * table.cu
 *		Making, emptying, describing and freeing a table.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/table/table.h"

/* Standard deviations by which a region may have more keys than on average. */
#define REGION_DEVIATIONS 6.0

uint64_t
table_slots(const cuda_table *table)
{
	uint64_t	slots = 0;

	for (uint32_t i = 0; i < table->options.subtables; i++)
		slots += table->sub[i].buckets * table->bucket_slots;
	return slots;
}

/* Keys of a piece or slice from host memory: as many as asked for, unless wide. */
uint64_t
table_staged_keys(const cuda_table *table, uint64_t most)
{
	uint64_t	fit = STAGED_BYTES / (table->options.key_size + table->options.value_size);

	if (fit < SLICE_MIN)
		fit = SLICE_MIN;
	return paging_keys(table, most < fit ? most : fit);
}

/* Bytes of a subtable's values, when they are apart from the keys. */
static uint64_t
loose_bytes(const cuda_table *table, uint64_t buckets)
{
	return values_together(table) ? 0 : buckets * table->bucket_slots * table->slot_value_size;
}

uint64_t
subtable_bytes(const cuda_table *table, uint64_t buckets)
{
	return buckets * BUCKET_BYTES + loose_bytes(table, buckets);
}

/* Memory for that many buckets, of any content. */
GhStatus
subtable_alloc(cuda_table *table, uint64_t buckets, subtable *sub, GhError *error)
{
	uint64_t	bytes = loose_bytes(table, buckets);
	void	   *slots;
	void	   *values = nullptr;

	*sub = {};
	GH_TRY(table_alloc(table, buckets * BUCKET_BYTES, &slots, error));
	if (bytes != 0)
	{
		GhStatus	status = table_alloc(table, bytes, &values, error);

		if (status != GH_OK)
		{
			device_free(table, slots, buckets * BUCKET_BYTES);
			return status;
		}
	}
	sub->slots = static_cast<char *>(slots);
	sub->values = static_cast<char *>(values);
	sub->buckets = buckets;
	return GH_OK;
}

void
subtable_free(cuda_table *table, subtable *sub)
{
	device_free(table, sub->values, loose_bytes(table, sub->buckets));
	device_free(table, sub->slots, sub->buckets * BUCKET_BYTES);
	*sub = {};
}

/*
 * A subtable of at most region_span buckets is one region.  Doubling it makes its region
 * larger up to that, and the number of its regions from there on.
 */
subtable_view
subtable_regions(const cuda_table *table, uint64_t buckets)
{
	subtable_view view = {};

	view.regions = buckets <= table->region_span ? 1 :
		(uint32_t) (buckets / table->region_span);
	view.span = (uint32_t) (buckets / view.regions);
	return view;
}

/* A subtable as kernels see it, with the hash function of subtable `number`. */
subtable_view
subtable_view_of(const cuda_table *table, uint32_t number, const subtable *sub)
{
	subtable_view view = subtable_regions(table, sub->buckets);

	view.slots = sub->slots;
	view.values = sub->values;
	view.seed = hash_subtable_seed(table->options.seed, number);
	return view;
}

/* Bounds of the steering bits: theorem 1, or even ones while order is kept. */
static void
make_bounds(const cuda_table *table, table_view *view)
{
	for (uint32_t i = 0; i < view->pairs; i++)
	{
		subtable_pair pair = hash_pair(i);
		const subtable *a = &table->sub[pair.a];
		const subtable *b = &table->sub[pair.b];

		view->bound[i] = table->ordered ? STEERING_EVEN :
			hash_steering((double) (a->buckets * table->bucket_slots),
						  (double) a->entries,
						  (double) (b->buckets * table->bucket_slots),
						  (double) b->entries);
	}
}

table_view
table_make_view(const cuda_table *table)
{
	table_view	view = {};

	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		view.sub[i] = subtable_view_of(table, i, &table->sub[i]);
		view.sub[i].near_bytes = paging_near_bytes(table, table->sub[i].slots);
	}
	view.subtables = table->options.subtables;
	view.pairs = hash_pair_count(table->options.subtables);
	view.value_size = table->slot_value_size;
	view.seed = table->options.seed;
	view.ordered = table->ordered ? 1 : 0;
	view.count_reads = table->options.timing ? 1 : 0;
	view.side_present = table->side_present;
	view.side_values = table->side_values;
	view.hot = {table->hot.buckets, (uint32_t) (table->hot.bytes / BUCKET_BYTES)};
	make_bounds(table, &view);
	return view;
}

/* The layout of a slot for the widths of keys and values. */
static void
choose_layout(cuda_table *table)
{
	const GhTableOptions *options = &table->options;
	bool		narrow = options->key_size == 4;

	/* the number of a record takes as much as a key */
	table->slot_value_size = options->multi ? options->key_size : options->value_size;
	if (table->slot_value_size == options->key_size)
		table->layout = narrow ? LAYOUT_K4V4 : LAYOUT_K8V8;
	else
		table->layout = narrow ? LAYOUT_K4 : LAYOUT_K8;
	LAYOUT_DISPATCH(table, table->slot_bytes = L::slot_bytes;
					table->bucket_slots = L::slots);
}

/*
 * The least buckets of a region in each subtable.  Two choices fill buckets of 4 slots to
 * 0.98 and larger ones to 0.995 at least, and no region may be asked for more: the fuller
 * tables may be, the larger it has to be for what chance brings.
 */
static uint64_t
least_span(const cuda_table *table)
{
	double		threshold = table->bucket_slots == 4 ? 0.98 : 0.995;
	double		gap = (threshold - table->options.fill_max) / REGION_DEVIATIONS;
	double		slots = table->options.fill_max / (gap * gap);
	double		least = (double) REGION_BYTES / table->slot_bytes;

	return (uint64_t) ceil((slots > least ? slots : least) / table->options.subtables /
						   table->bucket_slots);
}

/*
 * Chooses region_span for base_buckets, which are rounded up to whole regions if they are
 * two or more.  Smaller subtables double to the span, so it is their size times a power of
 * two.
 */
static void
choose_regions(cuda_table *table)
{
	uint64_t	least = least_span(table);
	uint64_t	buckets = table->base_buckets;
	uint64_t	best = least;
	uint64_t	best_waste = UINT64_MAX;

	if (buckets < 2 * least)
	{
		for (table->region_span = buckets; table->region_span < least;)
			table->region_span *= 2;
		return;
	}
	/* a thousandth more is as good as none */
	for (uint64_t span = least; span < 2 * least && best_waste > buckets / 1024; span++)
	{
		uint64_t	waste = (span - buckets % span) % span;

		if (waste < best_waste)
		{
			best = span;
			best_waste = waste;
		}
	}
	table->region_span = best;
	table->base_buckets += best_waste;
}

/*
 * Sets the sizes at creation: all subtables alike, as small as the capacity allows
 * within fill_max.
 */
static GhStatus
choose_base_buckets(cuda_table *table, GhError *error)
{
	uint32_t	d = table->options.subtables;
	double		slots = (double) table->options.capacity / table->options.fill_max;
	double		buckets = ceil(slots / d / table->bucket_slots);

	/* with room for a last region that is not full */
	if (buckets > (double) SUBTABLE_BUCKETS_MAX / 2)
		return gh_error_set(error, table->options.memory_limit != 0 ?
							GH_LIMIT : GH_NO_MEMORY,
							"a capacity of %llu keys is more than a device can hold",
							(unsigned long long) table->options.capacity);
	table->base_buckets = (uint64_t) buckets > SUBTABLE_BUCKETS_MIN ?
		(uint64_t) buckets : SUBTABLE_BUCKETS_MIN;
	choose_regions(table);
	table->floor_slots = table->base_buckets * d * table->bucket_slots;
	if (!table_pages(table) && !device_fits(table, d * subtable_bytes(table, table->base_buckets)))
		return gh_error_set(error, GH_LIMIT,
							"a capacity of %llu keys takes %llu bytes, more than the table's memory limit of %llu bytes",
							(unsigned long long) table->options.capacity,
							(unsigned long long) (d * subtable_bytes(table, table->base_buckets)),
							(unsigned long long) table->options.memory_limit);
	return GH_OK;
}

/* Bytes of a side slot's value, so that what follows is aligned. */
static uint64_t
side_stride(const cuda_table *table)
{
	return ((uint64_t) table->slot_value_size + 15) / 16 * 16;
}

static uint64_t
side_bytes(const cuda_table *table)
{
	return SIDE_SLOTS * (side_stride(table) + sizeof(uint32_t));
}

/* The side bucket, the lanes with their counters, and a buffer for lane 0. */
static GhStatus
create_fixtures(cuda_table *table, GhError *error)
{
	counters   *host_count;
	counters   *device_count;
	void	   *memory;
	size_t		bytes = 0;

	GH_TRY(device_alloc(table, LANES * sizeof(counters), &memory, error));
	device_count = static_cast<counters *>(memory);
	table->lanes[0].device_count = device_count;	/* destroy finds it here */
	host_count = static_cast<counters *>(device_buffer_alloc(table->options.device,
															 LANES * sizeof(counters)));
	if (host_count == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "no page-locked memory for a table's counters");
	table->lanes[0].host_count = host_count;
	for (int i = 0; i < LANES; i++)
		GH_TRY(lane_create(table, &table->lanes[i], device_count + i, host_count + i,
						   error));

	for (int op = GH_INSERT; op <= GH_MIXED; op++)
	{
		size_t		wanted = batch_bytes(table, static_cast<GhOp>(op), SLICE_MIN);

		if (wanted > bytes)
			bytes = wanted;
	}
	/* as lane_reserve, but with an error that says why */
	GH_TRY(device_alloc(table, bytes, &table->lanes[0].buffer, error));
	table->lanes[0].bytes = table->lane_min_bytes = bytes;

	GH_TRY(device_alloc(table, side_bytes(table), &memory, error));
	table->side_values = static_cast<char *>(memory);
	table->side_present = reinterpret_cast<uint32_t *>(
		table->side_values + SIDE_SLOTS * side_stride(table));
	return GH_OK;
}

/* Empties the buckets as they are. */
GhStatus
table_erase(cuda_table *table, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		subtable   *sub = &table->sub[i];

		/* EMPTY has all bits set */
		CUDA_TRY(table, cudaMemsetAsync(sub->slots, 0xff, sub->buckets * BUCKET_BYTES,
										stream), error);
		sub->entries = 0;
	}
	CUDA_TRY(table, cudaMemsetAsync(table->side_present, 0, SIDE_SLOTS * sizeof(uint32_t),
									stream), error);
	GH_TRY(hot_forget_all(table, error));
	/* other lanes read the buckets next */
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	table->keys = 0;
	table->values = 0;
	table->ordered = true;
	table->crowded_slots = 0;
	table->crowded_keys = 0;
	return GH_OK;
}

static GhStatus
create_contents(cuda_table *table, GhError *error)
{
	GH_TRY(choose_base_buckets(table, error));
	GH_TRY(create_fixtures(table, error));
	for (uint32_t i = 0; i < table->options.subtables; i++)
		GH_TRY(subtable_alloc(table, table->base_buckets, &table->sub[i], error));
	GH_TRY(hot_settle(table, error));
	return table_erase(table, error);
}

GhStatus
cuda_table_create(const GhHost *host, const GhTableOptions *options, GhTable **handle,
				  GhError *error)
{
	GhTableOptions checked;
	cuda_table *table;
	GhStatus	status;

	*handle = nullptr;
	if (options != nullptr)
		checked = *options;
	GH_TRY(gh_options_check(options != nullptr ? &checked : nullptr, error));
	GH_TRY(device_open(checked.device, error));

	table = static_cast<cuda_table *>(calloc(1, sizeof(cuda_table)));
	if (table == nullptr)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a table's handle");
	table->base.engine = gh_cuda_engine();
	if (host != nullptr)
		table->host = *host;
	table->options = checked;
	choose_layout(table);
	table->multiprocessors = device_attribute(checked.device,
											  cudaDevAttrMultiProcessorCount);

	status = create_contents(table, error);
	if (status != GH_OK)
	{
		cuda_table_destroy(&table->base);
		return status;
	}
	*handle = &table->base;
	return GH_OK;
}

/*
 * Requests are not looked at: whoever destroys a table may have left them.
 * After a device error the calls fail, which is as it should be.
 */
void
cuda_table_destroy(GhTable *handle)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);

	if (table == nullptr)
		return;
	(void) cudaSetDevice(table->options.device);
	/* copies to and from callers' arrays must be over before the arrays go */
	for (int i = 0; i < LANES; i++)
		if (table->lanes[i].stream != nullptr)
			(void) cudaStreamSynchronize(table->lanes[i].stream);

	pipe_rows_destroy(table->rows);
	hot_drop(table);
	values_clear(table);
	for (uint32_t i = 0; i < table->options.subtables; i++)
		subtable_free(table, &table->sub[i]);
	device_free(table, table->side_values, side_bytes(table));
	device_free(table, table->lanes[0].device_count, LANES * sizeof(counters));
	if (table->lanes[0].host_count != nullptr)
		(void) cudaFreeHost(table->lanes[0].host_count);
	for (int i = 0; i < LANES; i++)
		lane_destroy(table, &table->lanes[i]);
	(void) cudaGetLastError();
	free(table);
}

/*
 * Gives a grown subtable its size at creation.  Without memory for that it
 * keeps its own, which is larger than it need be and right all the same.
 */
static void
restore_base_size(cuda_table *table, subtable *sub)
{
	GhError		ignored;
	subtable	base;

	if (sub->buckets == table->base_buckets ||
		subtable_alloc(table, table->base_buckets, &base, &ignored) != GH_OK)
		return;
	subtable_free(table, sub);
	*sub = base;
}

GhStatus
table_enter(cuda_table *table, GhError *error)
{
	/* requests submitted before come first */
	queue_drain(table);
	if (table->failed)
	{
		if (error != nullptr)
			*error = table->error;
		return GH_DEVICE_ERROR;
	}
	CUDA_TRY(table, cudaSetDevice(table->options.device), error);
	return GH_OK;
}

GhStatus
cuda_table_clear(GhTable *handle, GhError *error)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);

	if (table->rows != nullptr)
		return gh_made_refuse(error);
	GH_TRY(table_enter(table, error));
	values_clear(table);
	for (uint32_t i = 0; i < table->options.subtables; i++)
		restore_base_size(table, &table->sub[i]);
	GH_TRY(paging_settle(table, error));
	table->floor_slots = table->base_buckets * table->options.subtables *
		table->bucket_slots;
	return table_erase(table, error);
}

GhStatus
cuda_table_reserve(GhTable *handle, uint64_t keys, GhError *error)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);
	uint64_t	slots;

	if (table->rows != nullptr)
		return gh_made_refuse(error);
	GH_TRY(table_enter(table, error));
	GH_TRY(table_make_room(table, keys, GROW_TOGETHER, error));
	/* what it has now is enough; it shrinks to what is enough, too */
	slots = (uint64_t) ceil((double) keys / table->options.fill_max);
	if (slots > table->floor_slots)
		table->floor_slots = slots;
	return GH_OK;
}

GhStatus
cuda_table_flush(GhTable *handle, GhError *error)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);
	bool		done;

	if (table->rows != nullptr)
		return gh_made_refuse(error);
	GH_TRY(table_enter(table, error));
	if (table->options.multi)
		GH_TRY(values_compact(table, &done, error));
	GH_TRY(table_downsize_if_due(table, true, error));
	return paging_settle(table, error);
}

GhStatus
cuda_table_stats(GhTable *handle, GhTableStats *stats, GhError *error)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);

	*stats = table->stats;
	if (table->failed)
	{
		if (error != nullptr)
			*error = table->error;
		return GH_DEVICE_ERROR;
	}
	stats->keys = table->keys;
	stats->values = table->options.multi ? table->values : table->keys;
	stats->subtables = table->options.subtables;
	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		stats->subtable[i].slots = table->sub[i].buckets * table->bucket_slots;
		stats->subtable[i].entries = table->sub[i].entries;
		stats->subtable[i].bytes_paged = paging_bytes(table, table->sub[i].slots) +
			paging_bytes(table, table->sub[i].values);
		stats->subtable[i].bytes = subtable_bytes(table, table->sub[i].buckets);
		/* pieces are larger than what they have to hold */
		stats->subtable[i].bytes -= stats->subtable[i].bytes_paged < stats->subtable[i].bytes ?
			stats->subtable[i].bytes_paged : stats->subtable[i].bytes;
	}
	stats->fill = (double) table->keys / (double) table_slots(table);
	stats->fill_min = table->options.fill_min;
	stats->fill_max = table->options.fill_max;
	return GH_OK;
}
