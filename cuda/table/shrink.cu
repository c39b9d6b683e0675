/*
 * shrink.cu
 *		Shrinking, one subtable at a time (dyhash.txt, section 5.3).
 *
 * Downsizing halves the largest subtable.  The two buckets that one would be split into
 * (resize.cu) become one again; what
 * does not fit, the residuals, goes to other buckets by relocation, which may
 * move entries of any subtable.  The old subtable is kept until all residuals
 * have a place, and the moves are noted in a journal: if a residual finds
 * none, the journal is undone backwards, the old subtable is put back, and
 * nothing has happened.
 */
#include "cuda/table/probe.cuh"
#include "cuda/table/table.h"

/* Moves a residual may take, on average, before downsizing is given up. */
#define MOVES_PER_RESIDUAL 6
#define MOVES_EXTRA 256

/* A downsizing must leave the table this far below fill_max, or a few inserts would
 * double the subtable again. */
#define DOWNSIZE_FILL_SHARE (15.0 / 16.0)

/* And this far below the number of keys that crowded the smaller size: else a steady
 * number of keys could be too many for it and too few for the larger one. */
#define CROWDED_SHARE (7.0 / 8.0)

/* Of a subtable that is halved: where the two buckets lie that become one. */
struct merge_places
{
	uint32_t	span;			/* of the halved subtable */
	bool		by_region;		/* in regions 2r and 2r + 1; else they are 2b and 2b + 1 */
};

/* The first, or second, of the two buckets that become bucket i. */
static __device__ __forceinline__ uint64_t
merged_bucket(uint64_t i, uint32_t second, const merge_places &places)
{
	return places.by_region ? (i / places.span * 2 + second) * places.span + i % places.span :
		i * 2 + second;
}

/* The lanes of a tile for which it holds, as bits. */
static __device__ __forceinline__ uint32_t
tile_ballot(bool holds)
{
	uint32_t	tile = (threadIdx.x & 31) / TILE_LANES * TILE_LANES;

	return __ballot_sync(ALL_LANES, holds) >> tile & ((1u << TILE_LANES) - 1);
}

/* A tile of lanes per bucket of the halved subtable: how many entries are too many? */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
residuals_kernel(const char *old_slots, uint64_t half, merge_places places, counters *counts)
{
	uint64_t	i = ELEMENT / TILE_LANES;
	uint32_t	lane = threadIdx.x % TILE_LANES;
	uint32_t	entries = 0;

#pragma unroll
	for (uint32_t second = 0; second < 2; second++)
	{
		fragment	read = make_uint4(0, 0, 0, 0);

		if (i < half)
			read = load_fragment(old_slots + merged_bucket(i, second, places) * BUCKET_BYTES +
								 lane * 16);
#pragma unroll
		for (int s = 0; s < L::lane_slots; s++)
			entries += (uint32_t) __popc(tile_ballot(i < half &&
													 !L::special(L::fragment_key(read, s))));
	}
	block_add(&counts->residuals, lane == 0 && entries > L::slots ? entries - L::slots : 0);
}

/* Residuals, taken out of the subtable to be placed elsewhere. */
struct residual_lists
{
	char	   *keys;			/* by key_size */
	char	   *values;			/* by slot_value_size; NULL in a set */
};

/*
 * The same tiles: fill it and list the rest.  A free slot is EMPTY only when neither of the two can
 * have been full.  The list is appended to once for a block: residuals are many.
 */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
merge_kernel(subtable_view old, uint64_t half, subtable_view merged, merge_places places,
			 uint32_t value_size, residual_lists residuals, counters *counts)
{
	typedef typename L::key_type key_type;
	__shared__ uint32_t block_rest;
	__shared__ uint32_t block_begin;
	uint64_t	i = ELEMENT / TILE_LANES;
	bool		inside = i < half;
	uint32_t	lane = threadIdx.x % TILE_LANES;
	char	   *bucket = merged.slots + i * BUCKET_BYTES;
	uint32_t	filled = 0;
	uint32_t	entries = 0;
	uint32_t	rest = 0;		/* where the tile's residuals begin */
	bool		never_full = true;
	fragment	read[2];

	if (threadIdx.x == 0)
		block_rest = 0;
	__syncthreads();			/* nobody adds before the zero is there */
#pragma unroll
	for (uint32_t second = 0; second < 2; second++)
	{
		bool		has_empty = false;

		read[second] = make_uint4(0, 0, 0, 0);
		if (inside)
			read[second] = load_fragment(old.slots + merged_bucket(i, second, places) *
										 BUCKET_BYTES + lane * 16);
#pragma unroll
		for (int s = 0; s < L::lane_slots; s++)
		{
			key_type	key = L::fragment_key(read[second], s);

			has_empty |= key == L::empty_key;
			entries += (uint32_t) __popc(tile_ballot(inside && !L::special(key)));
		}
		never_full &= tile_ballot(has_empty) != 0;
	}
	if (lane == 0 && entries > L::slots)
		rest = atomicAdd(&block_rest, entries - L::slots);
	__syncthreads();			/* all have added */
	if (threadIdx.x == 0 && block_rest > 0)
		block_begin = atomicAdd(&counts->appended, block_rest);
	__syncthreads();			/* it is known where the block's begin */
	rest = __shfl_sync(ALL_LANES, rest, 0, TILE_LANES);
	if (entries > L::slots)
		rest += block_begin;
#pragma unroll
	for (uint32_t second = 0; second < 2; second++)
#pragma unroll
		for (int s = 0; s < L::lane_slots; s++)
		{
			key_type	key = L::fragment_key(read[second], s);
			bool		used = inside && !L::special(key);
			uint32_t	together = tile_ballot(used);
			uint32_t	place = filled + (uint32_t) __popc(together & ((1u << lane) - 1));
			uint64_t	number = merged_bucket(i, second, places) * L::slots +
				lane * L::lane_slots + (uint32_t) s;
			char	   *to;

			filled += (uint32_t) __popc(together);
			if (!used)
				continue;
			if (place < L::slots)
			{
				L::store_slot(bucket_slot<L>(bucket, place), read[second], s);
				to = merged.values + (i * L::slots + place) * value_size;
			}
			else
			{
				uint32_t	index = rest + place - L::slots;

				reinterpret_cast<key_type *>(residuals.keys)[index] = key;
				to = residuals.values + (uint64_t) index * value_size;
				if (L::together)
					value_from_word(to, L::fragment_value(read[second], s), value_size);
			}
			if (!L::together && value_size != 0)
				value_copy(to, old.values + number * value_size, value_size);
		}
	if (!inside)
		return;
	for (uint32_t place = filled + lane; place < L::slots; place += TILE_LANES)
	{
		typename L::word_type *slot = bucket_slot<L>(bucket, place);

		*slot = never_full ? L::empty_word : L::freed_word;
		blank_value<L>(slot);
	}
}

/*
 * Undoes the journal's moves, the last first, in one thread: each finds its
 * target as the move left it and its source free.
 */
template <typename L> static __global__ void
undo_kernel(move_journal journal, uint32_t value_size)
{
	typedef typename L::word_type word_type;
	uint32_t	moves = *journal.used < journal.room ? *journal.used : journal.room;

	while (moves-- > 0)
	{
		move_record move = journal.moves[moves];
		word_type  *to = static_cast<word_type *>(move.to);

		if (move.from != nullptr)
		{
			if (move.from_value != nullptr)
				value_copy(static_cast<char *>(move.from_value),
						   static_cast<const char *>(move.to_value), value_size);
			*static_cast<word_type *>(move.from) = *to;
		}
		*to = L::freed_word;
		blank_value<L>(to);
	}
}

/* --------------------------------------------------------------- downsizing */

/* What a downsizing works with. */
struct downsizing
{
	subtable	old;			/* the subtable before */
	subtable	halved;			/* after */
	uint32_t	residuals;
	void	   *scratch;		/* for the residuals; NULL without any */
	uint64_t	scratch_bytes;
	residual_lists list;
	uint32_t   *spare[2];
	move_journal journal;
};

static uint64_t
downsizing_carve(const cuda_table *table, downsizing *work, void *base)
{
	carver		carver = {static_cast<char *>(base), 0};

	work->journal.room = work->residuals * MOVES_PER_RESIDUAL + MOVES_EXTRA;
	work->list.keys = carver.array<char>((uint64_t) work->residuals *
										 table->options.key_size);
	work->list.values = table->slot_value_size == 0 ? nullptr :
		carver.array<char>((uint64_t) work->residuals * table->slot_value_size);
	work->spare[0] = carver.array<uint32_t>(work->residuals);
	work->spare[1] = carver.array<uint32_t>(work->residuals);
	work->journal.moves = carver.array<move_record>(work->journal.room);
	work->journal.used = carver.array<uint32_t>(1);
	return carver.used;
}

static merge_places
merge_places_of(const cuda_table *table, const downsizing *work)
{
	return {subtable_regions(table, work->halved.buckets).span,
		subtable_regions(table, work->old.buckets).regions > 1};
}

/* Counts the residuals and gets the memory for it all. */
static GhStatus
downsizing_prepare(cuda_table *table, downsizing *work, GhError *error)
{
	lane	   *lane = &table->lanes[0];
	uint64_t	half = work->old.buckets / 2;

	GH_TRY(subtable_alloc(table, half, &work->halved, error));
	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, residuals_kernel<L><<<blocks_for(half * TILE_LANES), BLOCK_THREADS, 0,
					lane->stream>>>(work->old.slots, half, merge_places_of(table, work),
									lane->device_count));
	LAUNCH_TRY(table, error);
	GH_TRY(lane_count_read(table, lane, error));
	if (lane->host_count->residuals == 0)
		return GH_OK;
	if (lane->host_count->residuals > UINT32_MAX / (2 * MOVES_PER_RESIDUAL))
		return gh_error_set(error, GH_NO_MEMORY, "too many entries to move at once");
	work->residuals = (uint32_t) lane->host_count->residuals;
	work->scratch_bytes = downsizing_carve(table, work, nullptr);
	GH_TRY(device_alloc(table, work->scratch_bytes, &work->scratch, error));
	(void) downsizing_carve(table, work, work->scratch);
	CUDA_TRY(table, cudaMemsetAsync(work->journal.used, 0, sizeof(uint32_t), lane->stream),
			 error);
	return GH_OK;
}

/* Makes every slot hold what it held before the journal; counts are the caller's. */
static GhStatus
relocation_undo(cuda_table *table, const move_journal *journal, GhError *error)
{
	lane	   *lane = &table->lanes[0];

	LAYOUT_DISPATCH(table, undo_kernel<L><<<1, 1, 0, lane->stream>>>(
						*journal, table->slot_value_size));
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);
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
	entry_list	list = {work->list.keys, work->list.values, nullptr, work->residuals};

	GH_TRY(lane_count_reset(table, lane, error));
	LAYOUT_DISPATCH(table, merge_kernel<L><<<blocks_for(half * TILE_LANES), BLOCK_THREADS, 0,
					lane->stream>>>(subtable_view_of(table, number, &work->old), half,
									subtable_view_of(table, number, &work->halved),
									merge_places_of(table, work), table->slot_value_size, work->list,
									lane->device_count));
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, cudaStreamSynchronize(lane->stream), error);

	for (uint32_t i = 0; i < table->options.subtables; i++)
		before[i] = table->sub[i];
	work->halved.entries = work->old.entries - work->residuals;
	table->sub[number] = work->halved;
	if (list.count > 0)
		GH_TRY(relocate_rounds(table, &list, nullptr, work->spare, &work->journal, error));
	*done = list.count == 0;
	if (!*done)
	{
		GH_TRY(relocation_undo(table, &work->journal, error));
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
	device_free(table, work.scratch, work.scratch_bytes);
	/* which of the two the table has is told by its slots: the other goes */
	if (table->sub[number].slots != work.halved.slots)
		subtable_free(table, &work.halved);
	else
		subtable_free(table, &work.old);
	if (*done)
		table->stats.downsizes++;
	/* for want of memory the table stays as it is: a delete has not failed for that */
	return status == GH_DEVICE_ERROR ? status : GH_OK;
}

/* The last of the largest: the reverse of upsizing's order. */
static uint32_t
largest(const cuda_table *table)
{
	uint32_t	chosen = 0;

	for (uint32_t i = 1; i < table->options.subtables; i++)
		if (table->sub[i].buckets >= table->sub[chosen].buckets)
			chosen = i;
	return chosen;
}

/* May the table have so many slots only, with room for a while of inserts left? */
static bool
may_shrink_to(const cuda_table *table, uint64_t slots)
{
	if (slots < table->floor_slots || (double) table->keys >
		table->options.fill_max * DOWNSIZE_FILL_SHARE * (double) slots)
		return false;
	/* where keys found no room they would find none again */
	return table->crowded_keys == 0 || slots > table->crowded_slots ||
		(double) table->keys <= CROWDED_SHARE * (double) table->crowded_keys;
}

/* The keys that the table has could not be held in that many slots. */
void
table_note_crowded(cuda_table *table, uint64_t slots)
{
	if (table->crowded_keys != 0 && table->crowded_slots == slots &&
		table->crowded_keys <= table->keys)
		return;
	table->crowded_slots = slots;
	table->crowded_keys = table->keys;
}

/*
 * Halves subtables, largest first, while the filled factor is below fill_min, or, to
 * flush, while the smaller table takes the keys.  Never below the size at creation or
 * what was reserved.
 */
GhStatus
table_downsize_if_due(cuda_table *table, bool flush, GhError *error)
{
	for (;;)
	{
		uint32_t	chosen = largest(table);
		uint64_t	buckets = table->sub[chosen].buckets;
		uint64_t	slots = table_slots(table);
		bool		done;

		/* a table may stay larger than it need be; an empty one is halved in no time */
		if (stop_seen(table) && table->keys > 0)
			return GH_OK;
		if (!flush && (double) table->keys >= table->options.fill_min * (double) slots)
			return GH_OK;
		slots -= buckets / 2 * table->bucket_slots;
		if (buckets <= table->base_buckets || !may_shrink_to(table, slots))
			return GH_OK;
		GH_TRY(subtable_halve(table, chosen, &done, error));
		if (!done)
		{
			table_note_crowded(table, slots);
			return GH_OK;
		}
	}
}
