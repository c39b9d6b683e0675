/*
 * resize.cu
 *		Growing and shrinking, one subtable at a time (dyhash.txt, sections 5.1
 *		and 5.3).
 *
 * Upsizing doubles the smallest subtable.  The bucket number is the hash's low
 * bits, so an entry of bucket b goes to a bucket that is b modulo the old
 * number of buckets, and keeps its slot there: no two entries can meet, and one
 * thread per slot moves everything without locks.  Several doublings of one
 * subtable at once work the same way.
 *
 * Downsizing halves the largest.  Buckets b and b + half become bucket b; what
 * does not fit, the residuals, goes to other buckets by the insert path, which
 * may move entries of any subtable.  The old subtable is kept until all residuals
 * have a place, and the moves are noted in a journal: if a residual finds
 * none, the journal is undone backwards, the old subtable is put back, and
 * nothing has happened.
 *
 * A subtable's copy counts for the memory limit beside the original.
 */
#include "probe.cuh"
#include "table.h"

/* Moves a residual may take, on average, before downsizing is given up. */
#define MOVES_PER_RESIDUAL 4
#define MOVES_EXTRA 256

/* One thread per slot of the old subtable. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
split_kernel(const uint64_t *old_words, uint64_t old_slots, subtable_view grown,
			 uint64_t table_seed, uint32_t bucket_words)
{
	uint64_t	i = ELEMENT;

	if (i >= old_slots)
		return;

	uint64_t	slot = i % BUCKET_SLOTS;
	const uint64_t *from = old_words + i / BUCKET_SLOTS * bucket_words + slot;
	uint64_t	key = *from;

	if (key == SLOT_EMPTY)
		return;

	uint64_t	hash = hash_key(table_seed, key);
	uint64_t   *to = grown.words +
		hash_bucket(hash, grown.seed, grown.mask) * bucket_words + slot;

	*to = key;
	if (bucket_words > BUCKET_SLOTS)
		to[BUCKET_SLOTS] = from[BUCKET_SLOTS];
}

/* One thread per bucket of the halved subtable: how many entries are too many? */
static __global__ void __launch_bounds__(BLOCK_THREADS)
residuals_kernel(const uint64_t *old_words, uint64_t half, uint32_t bucket_words,
				 counters *counts)
{
	uint64_t	i = ELEMENT;
	uint64_t	entries = 0;

	if (i < half)
		for (uint32_t slot = 0; slot < 2 * BUCKET_SLOTS; slot++)
		{
			uint64_t	bucket = slot < BUCKET_SLOTS ? i : i + half;

			if (old_words[bucket * bucket_words + slot % BUCKET_SLOTS] != SLOT_EMPTY)
				entries++;
		}
	block_add(&counts->residuals, entries > BUCKET_SLOTS ? entries - BUCKET_SLOTS : 0);
}

/* One thread per bucket of the halved subtable: fills it and lists the rest. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
merge_kernel(const uint64_t *old_words, uint64_t half, uint64_t *new_words,
			 uint32_t bucket_words, uint64_t *residual_keys, uint64_t *residual_values,
			 counters *counts)
{
	uint64_t	i = ELEMENT;
	uint32_t	filled = 0;

	if (i >= half)
		return;

	uint64_t   *bucket = new_words + i * bucket_words;
	bool		has_values = bucket_words > BUCKET_SLOTS;

	for (uint32_t slot = 0; slot < 2 * BUCKET_SLOTS; slot++)
	{
		const uint64_t *from = old_words +
			(slot < BUCKET_SLOTS ? i : i + half) * bucket_words + slot % BUCKET_SLOTS;
		uint64_t	key = *from;

		if (key == SLOT_EMPTY)
			continue;
		if (filled < BUCKET_SLOTS)
		{
			bucket[filled] = key;
			if (has_values)
				bucket[filled + BUCKET_SLOTS] = from[BUCKET_SLOTS];
			filled++;
		}
		else
		{
			uint32_t	index = append_index(&counts->appended);

			residual_keys[index] = key;
			if (has_values)
				residual_values[index] = from[BUCKET_SLOTS];
		}
	}
	for (; filled < BUCKET_SLOTS; filled++)
		bucket[filled] = SLOT_EMPTY;
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

/* Fills the new, larger buckets with the entries of sub, which stays as it is. */
static GhStatus
subtable_split(cuda_table *table, const subtable *sub, subtable_view grown,
			   uint64_t buckets, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	uint64_t	old_slots = sub->buckets * BUCKET_SLOTS;

	CUDA_TRY(table, cudaMemsetAsync(grown.words, 0xff, subtable_bytes(table, buckets), stream),
			 error);
	split_kernel<<<blocks_for(old_slots), BLOCK_THREADS, 0, stream>>>(
		sub->words, old_slots, grown, table->options.seed,
		table_make_view(table).bucket_words);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	return GH_OK;
}

/* Gives a subtable a larger power of two of buckets. */
static GhStatus
subtable_grow(cuda_table *table, uint32_t number, uint64_t buckets, GhError *error)
{
	subtable   *sub = &table->sub[number];
	subtable_view grown = table_make_view(table).sub[number];
	void	   *words;
	GhStatus	status;

	GH_TRY(device_alloc(table, subtable_bytes(table, buckets), &words, error));
	grown.words = static_cast<uint64_t *>(words);
	grown.mask = buckets - 1;
	status = subtable_split(table, sub, grown, buckets, error);
	if (status != GH_OK)
	{
		device_free(table, grown.words, subtable_bytes(table, buckets));
		return status;
	}

	device_free(table, sub->words, subtable_bytes(table, sub->buckets));
	sub->words = grown.words;
	for (; sub->buckets < buckets; sub->buckets *= 2)
		table->stats.upsizes++;
	return table->failed ? table_failed(table, cudaErrorUnknown, "cudaFree", error) : GH_OK;
}

/*
 * Doubles subtables, smallest first, until that many keys stay within fill_max.
 * The sizes are chosen before anything is done, and refused whole if on the way
 * the limit would be passed.
 */
GhStatus
table_make_room(cuda_table *table, uint64_t keys, GhError *error)
{
	uint32_t	d = table->options.subtables;
	uint64_t	slots = table_slots(table);
	uint64_t	held = table->stats.bytes + table->reserved;
	uint64_t	limit = table->options.memory_limit;
	uint64_t	buckets[GH_SUBTABLES_MAX];

	for (uint32_t i = 0; i < d; i++)
		buckets[i] = table->sub[i].buckets;
	while ((double) keys > table->options.fill_max * (double) slots)
	{
		uint32_t	i = smallest(buckets, d);

		if (buckets[i] >= SUBTABLE_BUCKETS_MAX)
			return gh_error_set(error, GH_NO_MEMORY,
								"%llu keys are more than a device can hold",
								(unsigned long long) keys);
		slots += buckets[i] * BUCKET_SLOTS;
		buckets[i] *= 2;
	}
	for (uint32_t i = 0; i < d; i++)
	{
		if (buckets[i] == table->sub[i].buckets)
			continue;
		held += subtable_bytes(table, buckets[i]);
		if (limit != 0 && held > limit)
			return gh_error_set(error, GH_LIMIT,
								"the table's memory limit of %llu bytes does not allow %llu keys",
								(unsigned long long) limit, (unsigned long long) keys);
		held -= subtable_bytes(table, table->sub[i].buckets);
	}
	for (uint32_t i = 0; i < d; i++)
		if (buckets[i] != table->sub[i].buckets)
			GH_TRY(subtable_grow(table, i, buckets[i], error));
	return GH_OK;
}

/* Doubles the smallest subtable once. */
GhStatus
table_upsize(cuda_table *table, GhError *error)
{
	uint64_t	buckets[GH_SUBTABLES_MAX];
	uint32_t	i;

	for (i = 0; i < table->options.subtables; i++)
		buckets[i] = table->sub[i].buckets;
	i = smallest(buckets, table->options.subtables);
	if (buckets[i] >= SUBTABLE_BUCKETS_MAX)
		return gh_error_set(error, GH_NO_MEMORY, "a subtable cannot be doubled further");
	return subtable_grow(table, i, 2 * buckets[i], error);
}

/* --------------------------------------------------------------- downsizing */

/* What a downsizing works with. */
struct downsizing
{
	subtable	old;			/* the subtable before */
	uint64_t   *words;			/* after: half as many buckets */
	uint32_t	residuals;
	void	   *scratch;		/* for the residuals; NULL without any */
	uint64_t	scratch_bytes;
	uint64_t   *keys;
	uint64_t   *values;
	uint32_t   *lists[2];
	move_journal journal;
};

static uint64_t
downsizing_carve(downsizing *work, void *base)
{
	carver		carver = {static_cast<char *>(base), 0};

	work->journal.room = work->residuals * MOVES_PER_RESIDUAL + MOVES_EXTRA;
	work->keys = carver.array<uint64_t>(work->residuals);
	work->values = carver.array<uint64_t>(work->residuals);
	work->lists[0] = carver.array<uint32_t>(work->residuals);
	work->lists[1] = carver.array<uint32_t>(work->residuals);
	work->journal.moves = carver.array<move_record>(work->journal.room);
	work->journal.used = carver.array<uint32_t>(1);
	return carver.used;
}

/* Counts the residuals and gets the memory for it all. */
static GhStatus
downsizing_prepare(cuda_table *table, downsizing *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	half = work->old.buckets / 2;
	void	   *memory;

	GH_TRY(device_alloc(table, subtable_bytes(table, half), &memory, error));
	work->words = static_cast<uint64_t *>(memory);
	GH_TRY(lane_count_reset(table, lane, error));
	residuals_kernel<<<blocks_for(half), BLOCK_THREADS, 0, lane->stream>>>(
		work->old.words, half, table_make_view(table).bucket_words, lane->device_count);
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	if (lane->host_count->residuals == 0)
		return GH_OK;
	if (lane->host_count->residuals > UINT32_MAX / (2 * MOVES_PER_RESIDUAL))
		return gh_error_set(error, GH_NO_MEMORY, "too many entries to move at once");
	work->residuals = (uint32_t) lane->host_count->residuals;
	work->scratch_bytes = downsizing_carve(work, nullptr);
	GH_TRY(device_alloc(table, work->scratch_bytes, &work->scratch, error));
	(void) downsizing_carve(work, work->scratch);
	CUDA_TRY(table, cudaMemsetAsync(work->journal.used, 0, sizeof(uint32_t), lane->stream),
			 error);
	return GH_OK;
}

/*
 * Halves subtable `number`, or leaves the table as it was, with *done false.
 * work has the memory, which is the caller's to free.
 */
static GhStatus
downsizing_run(cuda_table *table, uint32_t number, downsizing *work, bool *done,
			   GhError *error)
{
	lane	   *lane = &table->lanes[0];
	subtable	before[GH_SUBTABLES_MAX];
	uint64_t	half = work->old.buckets / 2;
	uint32_t	left = work->residuals;

	GH_TRY(lane_count_reset(table, lane, error));
	merge_kernel<<<blocks_for(half), BLOCK_THREADS, 0, lane->stream>>>(
		work->old.words, half, work->words, table_make_view(table).bucket_words,
		work->keys, work->values, lane->device_count);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);

	for (uint32_t i = 0; i < table->options.subtables; i++)
		before[i] = table->sub[i];
	table->sub[number].words = work->words;
	table->sub[number].buckets = half;
	table->sub[number].entries -= left;
	if (left > 0)
		GH_TRY(residuals_insert(table, work->keys,
								table->has_values ? work->values : nullptr,
								work->lists, &left, &work->journal, error));
	*done = left == 0;
	if (!*done)
	{
		GH_TRY(residuals_undo(table, &work->journal, error));
		for (uint32_t i = 0; i < table->options.subtables; i++)
			table->sub[i] = before[i];
	}
	return GH_OK;
}

/* Halves a subtable if there is memory for it and its residuals find a place. */
static GhStatus
subtable_halve(cuda_table *table, uint32_t number, bool *done, GhError *error)
{
	downsizing	work = {};
	GhStatus	status;

	*done = false;
	work.old = table->sub[number];
	status = downsizing_prepare(table, &work, error);
	if (status == GH_OK)
		status = downsizing_run(table, number, &work, done, error);
	if (status == GH_DEVICE_ERROR)
	{
		/* which of the two the table has is told by its words: the other goes */
		device_free(table, work.scratch, work.scratch_bytes);
		if (table->sub[number].words == work.words)
			device_free(table, work.old.words, subtable_bytes(table, work.old.buckets));
		else
			device_free(table, work.words, subtable_bytes(table, work.old.buckets / 2));
		return status;
	}
	device_free(table, work.scratch, work.scratch_bytes);
	if (*done)
	{
		device_free(table, work.old.words, subtable_bytes(table, work.old.buckets));
		table->stats.downsizes++;
	}
	else
		device_free(table, work.words, subtable_bytes(table, work.old.buckets / 2));
	/* for want of memory the table stays as it is: a delete has not failed for that */
	return GH_OK;
}

/*
 * Halves subtables, largest first, while the filled factor is below fill_min.
 * Never below the size at creation, and never so far that the next key would
 * double it again.
 */
GhStatus
table_downsize_if_due(cuda_table *table, GhError *error)
{
	for (;;)
	{
		uint32_t	largest = 0;
		uint64_t	slots = table_slots(table);
		uint64_t	less;
		bool		done;

		if ((double) table->keys >= table->options.fill_min * (double) slots)
			return GH_OK;
		/* the last of the largest: the reverse of upsizing's order */
		for (uint32_t i = 1; i < table->options.subtables; i++)
			if (table->sub[i].buckets >= table->sub[largest].buckets)
				largest = i;
		less = table->sub[largest].buckets / 2 * BUCKET_SLOTS;
		if (table->sub[largest].buckets <= SUBTABLE_BUCKETS_MIN ||
			slots - less < table->base_slots ||
			(double) (table->keys + 1) > table->options.fill_max * (double) (slots - less))
			return GH_OK;
		GH_TRY(subtable_halve(table, largest, &done, error));
		if (!done)
			return GH_OK;
	}
}
