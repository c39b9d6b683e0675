/*
 * resize.cu
 *		Growing (dyhash.txt, sections 5.1 and 5.3).
 *
 * Upsizing doubles the smallest subtable: the buckets of its one region, or the number of
 * its regions once that has as many buckets as a region may.  The hash is scaled to these
 * numbers, so the entries of a bucket go to two buckets of the new subtable: side by side
 * in the one case, at the same place in regions 2r and 2r + 1 in the other.  They keep
 * their slots there: no two entries can meet, and every thread writes its 16 bytes of
 * both new buckets without locks, in whole lines.  Doubling several times at once works
 * the same way.  The free slots of a bucket that may have been
 * full are FREED in the new ones, for the keys that found it full are elsewhere.
 *
 * As long as memory is plentiful all subtables are doubled, which keeps them alike: no pair
 * of them is crowded while another has room, and keys stay in order (README, "Resizing").
 *
 * A subtable's copy counts for the memory limit beside the original.
 */
#include <math.h>

#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* More than any device's memory has room for. */
#define KEYS_MAX 1e15

/* Memory is plentiful where this part of what is free is enough for all new subtables. */
#define PLENTIFUL_SHARE 64

/* The bucket of a grown subtable that a key goes to. */
template <typename L> static __device__ __forceinline__ uint64_t
grown_bucket(uint64_t table_seed, uint32_t pairs, const subtable_view &grown,
			 typename L::key_type key)
{
	uint64_t	hash = hash_key(table_seed, key);

	return hash_bucket(hash, grown.seed, hash_region_bits(hash, pairs), grown.regions,
					   grown.span);
}

/* How a subtable grows: by more regions, by more buckets in each, or by both. */
struct split_factors
{
	uint32_t	regions;
	uint32_t	spans;
};

/* The number-th of the buckets that come of an old one. */
static __device__ __forceinline__ uint64_t
split_bucket(uint64_t old_bucket, uint32_t old_span, const subtable_view &grown,
			 const split_factors &factors, uint32_t number)
{
	return (old_bucket / old_span * factors.regions + number / factors.spans) * grown.span +
		old_bucket % old_span * factors.spans + number % factors.spans;
}

/* One thread for 16 bytes of an old bucket; it writes those of all buckets that come of it. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
split_kernel(const char *old_slots, uint64_t old_buckets, uint32_t old_span,
			 subtable_view grown, split_factors factors, uint64_t table_seed, uint32_t pairs)
{
	uint64_t	i = ELEMENT;
	uint64_t	bucket = i / TILE_LANES;
	bool		inside = bucket < old_buckets;
	uint32_t	tile = (threadIdx.x & 31) / TILE_LANES * TILE_LANES;
	fragment	read = make_uint4(0, 0, 0, 0);
	uint64_t	target[L::lane_slots];
	bool		has_empty = false;
	uint32_t	empties;

	if (inside)
		read = load_fragment(old_slots + i * 16);
#pragma unroll
	for (int s = 0; s < L::lane_slots; s++)
	{
		typename L::key_type key = L::fragment_key(read, s);

		has_empty |= key == L::empty_key;
		/* a free slot goes nowhere */
		target[s] = L::special(key) ? UINT64_MAX :
			grown_bucket<L>(table_seed, pairs, grown, key);
	}
	empties = __ballot_sync(ALL_LANES, has_empty) >> tile & ((1u << TILE_LANES) - 1);
	if (!inside)
		return;

	for (uint32_t part = 0; part < factors.regions * factors.spans; part++)
	{
		uint64_t	to = split_bucket(bucket, old_span, grown, factors, part);
		fragment	out;

		L::fill_fragment(out, empties != 0 ? L::empty_word : L::freed_word);
#pragma unroll
		for (int s = 0; s < L::lane_slots; s++)
			if (target[s] == to)
				L::copy_slot(out, read, s);
		*reinterpret_cast<fragment *>(grown.slots + to * BUCKET_BYTES + i % TILE_LANES * 16) = out;
	}
}

/* One thread per slot: its value, where values are apart, follows the key. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
split_values_kernel(const char *old_slots, const char *old_values, uint64_t old_count,
					subtable_view grown, uint32_t value_size, uint64_t table_seed,
					uint32_t pairs)
{
	uint64_t	i = ELEMENT;
	bool		inside = i < old_count;
	typename L::key_type key = inside ?
		*reinterpret_cast<const typename L::key_type *>(old_slots + i * L::slot_bytes) :
		L::empty_key;
	bool		used = !L::special(key);
	uint64_t	to = used ? grown_bucket<L>(table_seed, pairs, grown, key) * L::slots +
		i % L::slots : 0;

	warp_copy_values(used, grown.values + to * value_size, old_values + i * value_size,
					 value_size);
}

/* ----------------------------------------------------------------- upsizing */

static uint32_t
smallest(const uint64_t *buckets, uint32_t subtables)
{
	uint32_t	chosen = 0;

	for (uint32_t i = 1; i < subtables; i++)
		if (buckets[i] < buckets[chosen])
			chosen = i;
	return chosen;
}

/* The entries of sub, which stays as it is, go to the new, larger buckets. */
static GhStatus
entries_split(cuda_table *table, const subtable *sub, const subtable_view *grown, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint64_t	old_slots = sub->buckets * table->bucket_slots;
	uint32_t	pairs = hash_pair_count(table->options.subtables);
	subtable_view old = subtable_regions(table, sub->buckets);
	split_factors factors = {grown->regions / old.regions, grown->span / old.span};

	LAYOUT_DISPATCH(table, split_kernel<L><<<blocks_for(sub->buckets * TILE_LANES),
					BLOCK_THREADS, 0, stream>>>(sub->slots, sub->buckets, old.span, *grown,
												factors, table->options.seed, pairs));
	LAUNCH_TRY(table, error);
	if (sub->values != nullptr)
	{
		LAYOUT_DISPATCH(table, split_values_kernel<L><<<blocks_for(old_slots),
						BLOCK_THREADS, 0, stream>>>(sub->slots, sub->values, old_slots,
													*grown, table->slot_value_size,
													table->options.seed, pairs));
		LAUNCH_TRY(table, error);
	}
	return GH_OK;
}

/* Fills the new, larger buckets. */
static GhStatus
subtable_split(cuda_table *table, const subtable *sub, const subtable_view *grown,
			   GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	if (table->keys == 0)
		CUDA_TRY(table, cudaMemsetAsync(grown->slots, 0xff, (uint64_t) grown->regions * grown->span *
										BUCKET_BYTES, stream), error);
	else
		GH_TRY(entries_split(table, sub, grown, error));
	/* other lanes read it next */
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/* Puts a grown subtable, which has memory, in the place of subtable `number`; after an
 * error its memory is given back. */
static GhStatus
subtable_replace(cuda_table *table, uint32_t number, subtable *grown, GhError *error)
{
	subtable   *sub = &table->sub[number];
	subtable_view view = subtable_view_of(table, number, grown);
	GhStatus	status = subtable_split(table, sub, &view, error);

	if (status != GH_OK)
	{
		subtable_free(table, grown);
		return status;
	}
	for (uint64_t size = sub->buckets; size < grown->buckets; size *= 2)
		table->stats.upsizes++;
	grown->entries = sub->entries;
	subtable_free(table, sub);
	*sub = *grown;
	*grown = {};
	return table->failed ? table_failed(table, cudaErrorUnknown, "cudaFree", error) : GH_OK;
}

/* Is so much memory nothing, beside what is free? */
static bool
memory_is_plentiful(const cuda_table *table, uint64_t bytes)
{
	uint64_t	limit = table->options.memory_limit;
	uint64_t	held = table->stats.bytes + table->reserved;

	if (table_pages(table) || (limit != 0 && (held > limit || bytes > (limit - held) / PLENTIFUL_SHARE)))
		return false;
	if (table->host.spare_device != nullptr)
		return table->host.spare_device(table->host.ctx, bytes * PLENTIFUL_SHARE);
	return bytes <= device_free_bytes(table) / PLENTIFUL_SHARE;
}

/*
 * All subtables as large as the largest of `buckets`, which are enough.  False: that many keys would not fill
 * them to fill_min, or memory is not plentiful.
 */
static bool
choose_alike(const cuda_table *table, const uint64_t *buckets, uint64_t keys, uint64_t *alike)
{
	uint32_t	d = table->options.subtables;
	uint64_t	most = buckets[0];
	uint64_t	added = 0;

	for (uint32_t i = 1; i < d; i++)
		if (buckets[i] > most)
			most = buckets[i];
	for (uint32_t i = 0; i < d; i++)
	{
		if (table->sub[i].buckets != most)
			added += subtable_bytes(table, most);
		alike[i] = most;
	}
	return (double) keys >= table->options.fill_min * (double) (d * most * table->bucket_slots) &&
		memory_is_plentiful(table, added);
}

/* Gives subtables their new sizes one after the other; some may have them after an error. */
static GhStatus
grow_in_turn(cuda_table *table, const uint64_t *buckets, GhError *error)
{
	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		subtable	grown;

		if (buckets[i] == table->sub[i].buckets)
			continue;
		GH_TRY(subtable_alloc(table, buckets[i], &grown, error));
		GH_TRY(subtable_replace(table, i, &grown, error));
	}
	return GH_OK;
}

/* The same, but with the memory for all before any is changed: all are grown or, for want of memory, none. */
static GhStatus
grow_together(cuda_table *table, const uint64_t *buckets, GhError *error)
{
	subtable	grown[GH_SUBTABLES_MAX] = {};
	GhStatus	status = GH_OK;

	for (uint32_t i = 0; i < table->options.subtables && status == GH_OK; i++)
		if (buckets[i] != table->sub[i].buckets)
			status = subtable_alloc(table, buckets[i], &grown[i], error);
	for (uint32_t i = 0; i < table->options.subtables && status == GH_OK; i++)
		if (grown[i].slots != nullptr)
			status = subtable_replace(table, i, &grown[i], error);
	for (uint32_t i = 0; i < table->options.subtables; i++)
		subtable_free(table, &grown[i]);
	return status;
}

/*
 * Chooses sizes with that many slots in all, by doubling the smallest; and refuses them if on the way to
 * them, one after the other, the limit would be passed.
 */
static GhStatus
choose_least(const cuda_table *table, uint64_t wanted, uint64_t *buckets, GhError *error)
{
	uint32_t	d = table->options.subtables;
	uint64_t	slots = table_slots(table);
	uint64_t	held = table->stats.bytes + table->reserved;
	uint64_t	limit = table_pages(table) ? 0 : table->options.memory_limit;

	for (uint32_t i = 0; i < d; i++)
		buckets[i] = table->sub[i].buckets;
	while (slots < wanted)
	{
		uint32_t	i = smallest(buckets, d);

		if (buckets[i] > SUBTABLE_BUCKETS_MAX / 2)
			return gh_error_set(error, table->options.memory_limit != 0 ? GH_LIMIT : GH_NO_MEMORY,
								"%llu slots are more than a table can have",
								(unsigned long long) wanted);
		slots += buckets[i] * table->bucket_slots;
		buckets[i] *= 2;
	}
	for (uint32_t i = 0; i < d; i++)
	{
		if (buckets[i] == table->sub[i].buckets)
			continue;
		held += subtable_bytes(table, buckets[i]);
		if (limit != 0 && held > limit)
			return gh_error_set(error, GH_LIMIT,
								"the table's memory limit of %llu bytes does not allow %llu slots",
								(unsigned long long) limit, (unsigned long long) wanted);
		held -= subtable_bytes(table, table->sub[i].buckets);
	}
	return GH_OK;
}

/*
 * Grows to that many slots, if there are fewer, for so many keys.  The sizes are chosen before anything is
 * done.  GROW_TOGETHER takes more memory while it is done.
 */
static GhStatus
grow_slots(cuda_table *table, uint64_t wanted, uint64_t keys, table_growth growth, GhError *error)
{
	uint64_t	buckets[GH_SUBTABLES_MAX];
	uint64_t	alike[GH_SUBTABLES_MAX];
	GhStatus	status = GH_NO_MEMORY;

	if (table_slots(table) >= wanted)
		return paging_settle(table, error);
	GH_TRY(choose_least(table, wanted, buckets, error));
	if (growth == GROW_ALIKE && choose_alike(table, buckets, keys, alike))
		status = grow_together(table, alike, error);
	/* where there is no memory for more than must be, that will do */
	if (status != GH_OK && status != GH_DEVICE_ERROR)
		status = growth == GROW_TOGETHER ? grow_together(table, buckets, error) :
			grow_in_turn(table, buckets, error);
	/* where there was no device memory for old and new together, there may be now */
	return status == GH_OK ? paging_settle(table, error) : status;
}

/* Doubles subtables until that many keys stay within fill_max. */
GhStatus
table_make_room(cuda_table *table, uint64_t keys, table_growth growth, GhError *error)
{
	double		slots = ceil((double) keys / table->options.fill_max);

	/* also what no longer is an exact number */
	if (slots > KEYS_MAX)
		return gh_error_set(error, table->options.memory_limit != 0 ? GH_LIMIT : GH_NO_MEMORY,
							"%llu keys are more than a table can have",
							(unsigned long long) keys);
	return grow_slots(table, (uint64_t) slots, keys, growth, error);
}

/* Doubles the smallest subtable once, at least. */
GhStatus
table_upsize(cuda_table *table, GhError *error)
{
	return grow_slots(table, table_slots(table) + 1, table->keys, GROW_ALIKE, error);
}
