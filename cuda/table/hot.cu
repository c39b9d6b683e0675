/*
 * hot.cu
 *		The keys that are used most, of tables of which a part is in the host's memory: copies of their
 *		entries in device memory.
 *
 * The hash spreads keys over all of a table's memory, whatever they are used for, so a part of
 * those that are used most is always in the host's.  Look-ups (FIND, COUNT, those of MIXED) find
 * copies of entries here first.  A key that they found over the bus is copied, and goes where it is
 * used more than others (hot.cuh); so batches without such keys change little.  HH hash keeps such keys
 * on the device alone; here the table has them, too, and what is here may be lost at any time.
 *
 * Only keys that the table has are here, each with the value that it has there:
 *
 *	- What is here is changed by two kinds of kernels: look-ups, which change no table, and those below,
 *	  which run alone, as do all that change the table (queue.cu).
 *	- A slice of UPSERT, EXCHANGE and DELETE has all its keys forgotten before it begins; it may
 *	  fail then or be undone (hot_forget).  INSERT changes no key that the table has.
 *	- MIXED has the keys that it changes or removes brought to what they are then (hot_refresh), after
 *	  all that can fail.
 *	- What empties the table forgets all (hot_forget_all).
 *	- Growing, shrinking and moves change places, of which nothing is here.
 *	- Operations by regions, which are for tables that are on the device, find nothing here: where
 *	  nothing is paged the memory is given back (hot_settle).
 *
 * Look-ups of several pieces run at the same time, load slots whole and store them whole.  Equal keys may be
 * in two slots of a bucket for a while; whatever changes one changes both.
 *
 * Entries where key and value are together, and keys of sets.  Not those of multi tables, whose values
 * are found by their records, and no values that are apart.
 */
#include "cuda/table/hot.cuh"
#include "cuda/table/table.h"

/* The part of the table's device memory that is taken. */
#define HOT_SHARE 8
#define HOT_BYTES_MIN ((uint64_t) 4096)
/* As much as hash_scale tells apart without equal ones */
#define HOT_BUCKETS_MAX ((uint64_t) 1 << 28)
/* Parts of what is wanted, at least, that are taken where there is less. */
#define HOT_PARTS 4

/* Brings equal keys to the value of a position, or with no sources, or NONE of them, forgets them. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
refresh_kernel(const __grid_constant__ table_view view, entry_list list, const uint32_t *sources)
{
	typedef typename L::key_type key_type;
	uint64_t	i = ELEMENT;
	bool		listed = i < list.count;
	uint32_t	position = listed ? list_position(list, i) : 0;
	key_type	key = listed ? list_key<L>(list, position) : 0;
	uint32_t	source = listed && sources != nullptr ? sources[position] : POSITION_NONE;
	bool		ordinary = listed && !L::special(key);
	char	   *bucket = ordinary ? hot_bucket(view, hash_key(view.seed, key)) : nullptr;
	bucket_scan scan = warp_scan<L, true>(bucket, key);
	word_pair	held = {~UINT64_C(0), ~UINT64_C(0)};

	if (!ordinary || scan.match == 0)
		return;
	if (source != POSITION_NONE)
		held = hot_entry<L>(key, view.value_size == 0 ? 0 :
							value_word(list.values + (uint64_t) source * view.value_size, view.value_size));
	for (uint32_t bit = 0; bit < L::slots; bit++)
		if ((scan.match >> bit & 1) != 0)
			hot_store<L>(bucket, bit, held);
}

/* Do entries of the table suit? */
static bool
hot_suits(const cuda_table *table)
{
	return !table->options.multi && table->rows == nullptr &&
		(table->options.value_size == 0 || table->options.value_size == table->options.key_size);
}

/* What a table that pages and has so much more device memory wants, unless it has some. */
uint64_t
hot_bytes_wanted(const cuda_table *table, uint64_t more)
{
	uint64_t	bytes = (table->stats.bytes + more) / HOT_SHARE;

	if (!hot_suits(table) || table->hot.bytes != 0)
		return 0;
	if (bytes > HOT_BUCKETS_MAX * BUCKET_BYTES)
		bytes = HOT_BUCKETS_MAX * BUCKET_BYTES;
	return bytes < HOT_BYTES_MIN ? HOT_BYTES_MIN : bytes / BUCKET_BYTES * BUCKET_BYTES;
}

/* Gives the memory back; no kernel of the table runs. */
void
hot_drop(cuda_table *table)
{
	device_free(table, table->hot.buckets, table->hot.bytes);
	table->hot = {};
}

/* Is there memory for twice as much, and does the table's size ask for it by now? */
static bool
hot_is_small(const cuda_table *table)
{
	uint64_t	bytes = table->hot.bytes;

	return bytes != 0 && 2 * bytes <= (table->stats.bytes - bytes) / HOT_SHARE &&
		paging_has(table, 2 * bytes);
}

/*
 * Takes the memory for a table of which a part is paged, if there is any beside what is left for
 * lanes; gives it back where nothing is paged.  No kernel of the table runs.  An error is the
 * device's failure alone.
 */
GhStatus
hot_settle(cuda_table *table, GhError *error)
{
	uint64_t	wanted;
	void	   *memory = nullptr;
	GhError		why;

	if (table->stats.bytes_paged == 0 || hot_is_small(table))
		hot_drop(table);
	if (table->failed)
		return table_failed(table, cudaErrorUnknown, "cudaFree", error);
	wanted = table->stats.bytes_paged == 0 ? 0 : hot_bytes_wanted(table, 0);
	for (uint64_t bytes = wanted; bytes >= HOT_BYTES_MIN && bytes >= wanted / HOT_PARTS; bytes /= 2)
	{
		GhStatus	status = GH_LIMIT;

		bytes = bytes / BUCKET_BYTES * BUCKET_BYTES;
		if (paging_has(table, bytes))
			status = device_alloc(table, bytes, &memory, &why);
		if (status == GH_DEVICE_ERROR)
		{
			*error = why;
			return status;
		}
		if (status != GH_OK)
			continue;
		table->hot.buckets = static_cast<char *>(memory);
		table->hot.bytes = bytes;
		return hot_forget_all(table, error);
	}
	return GH_OK;
}

/* Empties all buckets; whoever looks keys up next sees it. */
GhStatus
hot_forget_all(cuda_table *table, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;

	if (table->hot.bytes == 0)
		return GH_OK;
	/* EMPTY has all bits set */
	CUDA_TRY(table, cudaMemsetAsync(table->hot.buckets, 0xff, table->hot.bytes, stream), error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/*
 * Enqueues on lane 0 that keys of a list, each once, have the value of the position `sources` has for
 * theirs, or are gone: POSITION_NONE.
 */
GhStatus
hot_refresh(cuda_table *table, const entry_list *list, const uint32_t *sources, GhError *error)
{
	if (table->hot.bytes == 0 || list->count == 0)
		return GH_OK;
	LAYOUT_DISPATCH(table, refresh_kernel<L><<<blocks_for(list->count), BLOCK_THREADS, 0,
					table->lanes[0].stream>>>(table_make_view(table), *list, sources));
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/* Enqueues on lane 0 that keys are forgotten which a slice of that operation may change. */
GhStatus
hot_forget(cuda_table *table, GhOp op, const void *keys, uint32_t count, GhError *error)
{
	entry_list	list = {keys, nullptr, nullptr, count};

	/* what MIXED changes is known in the end, and a new key of INSERT is not there */
	if (op == GH_MIXED || op == GH_INSERT)
		return GH_OK;
	return hot_refresh(table, &list, nullptr, error);
}
