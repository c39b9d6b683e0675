/*
 * table.cu
 *		Making, emptying, describing and freeing a table.
 */
#include <stdlib.h>
#include <string.h>

#include "table.h"

uint64_t
table_slots(const cuda_table *table)
{
	uint64_t	slots = 0;

	for (uint32_t i = 0; i < table->options.subtables; i++)
		slots += table->sub[i].buckets * BUCKET_SLOTS;
	return slots;
}

static uint32_t
bucket_words(const cuda_table *table)
{
	return table->has_values ? 2 * BUCKET_SLOTS : BUCKET_SLOTS;
}

uint64_t
subtable_bytes(const cuda_table *table, uint64_t buckets)
{
	return buckets * bucket_words(table) * sizeof(uint64_t);
}

table_view
table_make_view(const cuda_table *table)
{
	table_view	view = {};

	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		view.sub[i].words = table->sub[i].words;
		view.sub[i].mask = table->sub[i].buckets - 1;
		view.sub[i].seed = hash_subtable_seed(table->options.seed, i);
	}
	view.side = table->side;
	view.seed = table->options.seed;
	view.pairs = hash_pair_count(table->options.subtables);
	view.bucket_words = bucket_words(table);
	return view;
}

steering_view
table_make_steering(const cuda_table *table)
{
	steering_view steering = {};

	for (uint32_t i = 0; i < hash_pair_count(table->options.subtables); i++)
	{
		subtable_pair pair = hash_pair(i);
		const subtable *a = &table->sub[pair.a];
		const subtable *b = &table->sub[pair.b];

		steering.bound[i] = hash_steering((double) a->buckets * BUCKET_SLOTS,
										  (double) a->entries,
										  (double) b->buckets * BUCKET_SLOTS,
										  (double) b->entries);
	}
	return steering;
}

/*
 * Sets the sizes at creation: the smallest for which the capacity stays within
 * fill_max, grown as the table itself grows.
 */
static GhStatus
choose_base_buckets(cuda_table *table, GhError *error)
{
	uint32_t	d = table->options.subtables;
	uint64_t	bytes = 0;

	for (uint32_t i = 0; i < d; i++)
		table->sub[i].buckets = SUBTABLE_BUCKETS_MIN;
	for (uint32_t next = 0;
		 (double) table->options.capacity >
		 table->options.fill_max * (double) table_slots(table);
		 next = (next + 1) % d)
	{
		/* in turn is smallest first: they start out equal */
		if (table->sub[next].buckets >= SUBTABLE_BUCKETS_MAX)
			return gh_error_set(error, table->options.memory_limit != 0 ?
								GH_LIMIT : GH_NO_MEMORY,
								"a capacity of %llu keys is more than a device can hold",
								(unsigned long long) table->options.capacity);
		table->sub[next].buckets *= 2;
	}
	for (uint32_t i = 0; i < d; i++)
	{
		table->sub[i].base_buckets = table->sub[i].buckets;
		bytes += subtable_bytes(table, table->sub[i].buckets);
	}
	table->base_slots = table_slots(table);
	if (!device_fits(table, bytes))
		return gh_error_set(error, GH_LIMIT,
							"a capacity of %llu keys takes %llu bytes, more than the table's memory limit of %llu bytes",
							(unsigned long long) table->options.capacity,
							(unsigned long long) bytes,
							(unsigned long long) table->options.memory_limit);
	return GH_OK;
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

	for (int op = GH_INSERT; op <= GH_DELETE; op++)
	{
		size_t		wanted = op == GH_FIND_ALL ? find_all_bytes(SLICE_MIN, SLICE_MIN) :
			batch_bytes(table, static_cast<GhOp>(op), SLICE_MIN);

		if (wanted > bytes)
			bytes = wanted;
	}
	/* as lane_reserve, but with an error that says why */
	GH_TRY(device_alloc(table, bytes, &table->lanes[0].buffer, error));
	table->lanes[0].bytes = bytes;

	GH_TRY(device_alloc(table, subtable_bytes(table, 1), &memory, error));
	table->side = static_cast<uint64_t *>(memory);
	return GH_OK;
}

/* Empties the buckets as they are. */
static GhStatus
erase_buckets(cuda_table *table, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		subtable   *sub = &table->sub[i];

		CUDA_TRY(table, cudaMemsetAsync(sub->words, 0xff,
										subtable_bytes(table, sub->buckets), stream), error);
		sub->entries = 0;
	}
	CUDA_TRY(table, cudaMemsetAsync(table->side, 0xff, subtable_bytes(table, 1), stream),
			 error);
	/* other lanes read the buckets next */
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	table->keys = 0;
	table->values = 0;
	return GH_OK;
}

static GhStatus
create_contents(cuda_table *table, GhError *error)
{
	GH_TRY(choose_base_buckets(table, error));
	GH_TRY(create_fixtures(table, error));
	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		void	   *words;

		GH_TRY(device_alloc(table, subtable_bytes(table, table->sub[i].buckets), &words,
							error));
		table->sub[i].words = static_cast<uint64_t *>(words);
	}
	return erase_buckets(table, error);
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
	table->has_values = checked.value_size != 0;

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

	values_clear(table);
	for (uint32_t i = 0; i < table->options.subtables; i++)
		if (table->sub[i].words != nullptr)
			device_free(table, table->sub[i].words,
						subtable_bytes(table, table->sub[i].buckets));
	if (table->side != nullptr)
		device_free(table, table->side, subtable_bytes(table, 1));
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
	void	   *words;

	if (sub->buckets == sub->base_buckets)
		return;
	if (device_alloc(table, subtable_bytes(table, sub->base_buckets), &words,
					 &ignored) != GH_OK)
		return;
	device_free(table, sub->words, subtable_bytes(table, sub->buckets));
	sub->words = static_cast<uint64_t *>(words);
	sub->buckets = sub->base_buckets;
}

GhStatus
cuda_table_clear(GhTable *handle, GhError *error)
{
	cuda_table *table = reinterpret_cast<cuda_table *>(handle);

	/* requests submitted before come first */
	queue_drain(table);
	if (table->failed)
	{
		if (error != nullptr)
			*error = table->error;
		return GH_DEVICE_ERROR;
	}
	CUDA_TRY(table, cudaSetDevice(table->options.device), error);
	values_clear(table);
	for (uint32_t i = 0; i < table->options.subtables; i++)
		restore_base_size(table, &table->sub[i]);
	return erase_buckets(table, error);
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
		stats->subtable[i].slots = table->sub[i].buckets * BUCKET_SLOTS;
		stats->subtable[i].entries = table->sub[i].entries;
	}
	stats->fill = (double) table->keys / (double) table_slots(table);
	stats->fill_min = table->options.fill_min;
	stats->fill_max = table->options.fill_max;
	return GH_OK;
}
