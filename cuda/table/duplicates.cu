/*
 * duplicates.cu
 *		BUILD where keys have more than one position.
 *
 * When this begins every key's slot has the position that won it.  That is the
 * number of the key's record as long as most positions are winners; otherwise the
 * winners are numbered anew, without gaps, and the slots are changed in one pass over
 * the table.  The losers look their keys up.  Lanes of a warp that have the
 * same key send one of them, and take their ranks with one atomic: a key with all
 * positions costs an atomic for every 32.
 */
#include <cub/device/device_scan.cuh>

#include "cuda/table/build.cuh"

/* ------------------------------------------------------------------ kernels */

/* In multi tables a slot is a key and a number of its size. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
renumber_kernel(char *slots, uint64_t count, const uint32_t *numbers)
{
	typedef typename L::key_type key_type;
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;

	key_type   *slot = reinterpret_cast<key_type *>(slots + i * L::slot_bytes);

	if (!L::special(slot[0]))
		slot[1] = numbers[slot[1]];
}

/* The same for the side bucket, in one small block. */
template <typename L> static __global__ void
renumber_side_kernel(const __grid_constant__ table_view view, const uint32_t *numbers)
{
	typename L::key_type *number =
		reinterpret_cast<typename L::key_type *>(side_value(view, threadIdx.x));

	if (threadIdx.x < SIDE_SLOTS && view.side_present[threadIdx.x] != 0)
		*number = numbers[*number];
}

/* Counters begin with the winners; records of other positions' numbers have none. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
counts_kernel(uint32_t *counts, uint64_t records, const uint8_t *flags)
{
	uint64_t	i = ELEMENT;

	if (i < records)
		counts[i] = flags == nullptr ? 1 : flags[i];
}

/* Losers find their records and take their ranks. */
template <typename L> static __global__ void __launch_bounds__(BLOCK_THREADS)
owners_kernel(const __grid_constant__ table_view view, entry_list losers, build_work work)
{
	typedef typename L::key_type key_type;
	uint64_t	i = ELEMENT;
	bool		listed = i < losers.count;
	uint32_t	lane = threadIdx.x & 31;
	key_type	key = listed ? list_key<L>(losers, list_position(losers, i)) : 0;
	uint32_t	together = __ballot_sync(ALL_LANES, listed);
	uint32_t	peers = listed ? __match_any_sync(together, key) : 1u << lane;
	int			sent = __ffs((int) peers) - 1;
	bool		asking = listed && (uint32_t) sent == lane;
	entry_place place = warp_locate<L>(view, key, asking);
	uint32_t	record = (uint32_t) place.loaded;
	uint32_t	first = 0;

	if (asking)
		first = atomicAdd(&work.counts[record], (uint32_t) __popc(peers));
	record = __shfl_sync(ALL_LANES, record, sent);
	first = __shfl_sync(ALL_LANES, first, sent);
	if (listed)
	{
		work.owner[i] = record;
		work.rank[i] = first + (uint32_t) __popc(peers & ((1u << lane) - 1));
	}
}

/* Stores the value of each listed lane's position.  All lanes of the warp come here. */
static __device__ __forceinline__ void
store_values(bool listed, const build_work &work, uint32_t position, char *to,
			 uint32_t value_size)
{
	if (work.values != nullptr)
		warp_copy_values(listed, to, work.values + (uint64_t) position * value_size,
						 value_size);
	else if (listed)
		value_from_word(to, position, value_size);
}

/* Winners' values are the first of their records. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
winners_kernel(build_work work, char *values, uint32_t value_size)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < work.list.count;
	uint32_t	position = listed ? list_position(work.list, i) : 0;
	bool		winner = listed && work.lists.flags[position] != 0;
	char	   *to = values;

	if (winner)
	{
		uint32_t	record = work.numbers == nullptr ? position : work.numbers[position];

		to += (uint64_t) work.starts[record] * value_size;
	}
	store_values(winner, work, position, to, value_size);
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
losers_kernel(build_work work, uint32_t count, char *values, uint32_t value_size)
{
	uint64_t	i = ELEMENT;
	bool		listed = i < count;
	uint32_t	position = listed ? work.lists.present[i] : 0;
	char	   *to = values;

	if (listed)
		to += (uint64_t) (work.starts[work.owner[i]] + work.rank[i]) * value_size;
	store_values(listed, work, position, to, value_size);
}

/* --------------------------------------------------------------- prefix sums */

/*
 * Sums of what comes before each element; with a NULL space it only tells how much
 * it wants.  Sums are of positions of one batch: 32 bits hold them.
 */
template <typename COUNT> static cudaError_t
exclusive_sum(void *space, size_t *space_bytes, const COUNT *counts, uint32_t *sums,
			  uint64_t elements, cudaStream_t stream)
{
	try
	{
		return cub::DeviceScan::ExclusiveScan(space, *space_bytes, counts, sums,
											  ::cuda::std::plus<uint32_t>(), (uint32_t) 0,
											  (int64_t) elements, stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* Bytes for sums over flags or counters of that many elements. */
static size_t
sum_space_bytes(uint64_t elements)
{
	size_t		flags = 0;
	size_t		counts = 0;

	if (exclusive_sum<uint8_t>(nullptr, &flags, nullptr, nullptr, elements,
							   nullptr) != cudaSuccess ||
		exclusive_sum<uint32_t>(nullptr, &counts, nullptr, nullptr, elements,
								nullptr) != cudaSuccess)
		/* the failure is the device's and shows at the next call */
		(void) cudaGetLastError();
	return flags > counts ? flags : counts > 0 ? counts : 1;
}

/* ------------------------------------------------------------------ the host */

static void
duplicates_carve(build_work *work, void *base, uint64_t records, uint32_t present)
{
	carver		carver = {static_cast<char *>(base), 0};

	work->counts = carver.array<uint32_t>(records);
	work->starts = carver.array<uint32_t>(records);
	work->owner = carver.array<uint32_t>(present);
	work->rank = carver.array<uint32_t>(present);
	work->scan_bytes = sum_space_bytes(work->list.count);
	work->scan_space = carver.take(work->scan_bytes);
	work->more_bytes = carver.used;
}

/* Numbers the winners without gaps, and has their slots tell the new numbers. */
static GhStatus
renumber_winners(cuda_table *table, const build_work *work, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	size_t		bytes = work->scan_bytes;

	CUDA_TRY(table, exclusive_sum(work->scan_space, &bytes, work->lists.flags,
								  work->numbers, work->list.count, stream), error);
	for (uint32_t i = 0; i < table->options.subtables; i++)
	{
		uint64_t	slots = table->sub[i].buckets * table->bucket_slots;

		TOGETHER_DISPATCH(table, renumber_kernel<L><<<blocks_for(slots), BLOCK_THREADS, 0,
					   stream>>>(table->sub[i].slots, slots, work->numbers));
		LAUNCH_TRY(table, error);
	}
	TOGETHER_DISPATCH(table, renumber_side_kernel<L><<<1, 32, 0, stream>>>(
					   table_make_view(table), work->numbers));
	LAUNCH_TRY(table, error);
	return GH_OK;
}

/*
 * Finds out the records of a batch of which `placed` positions won their keys and
 * `present` lost.  After an error the memory is the caller's to free.
 */
GhStatus
duplicates_number(cuda_table *table, build_work *work, uint32_t placed, uint32_t present,
				  record_plan *plan, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	entry_list	losers = work->list;
	/* less than half of the records in use would be compacted at once */
	bool		dense = work->list.count / 2 > placed;
	uint64_t	records = dense ? placed : work->list.count;
	size_t		bytes;

	losers.positions = work->lists.present;
	losers.count = present;
	duplicates_carve(work, nullptr, records, present);
	GH_TRY(table_alloc(table, work->more_bytes, &work->more, error));
	duplicates_carve(work, work->more, records, present);
	if (dense)
	{
		/* placing is through with this list */
		work->numbers = work->lists.overflow;
		GH_TRY(renumber_winners(table, work, error));
	}
	counts_kernel<<<blocks_for(records), BLOCK_THREADS, 0, stream>>>(
		work->counts, records, dense ? nullptr : work->lists.flags);
	LAUNCH_TRY(table, error);
	TOGETHER_DISPATCH(table, owners_kernel<L><<<blocks_for(present), BLOCK_THREADS, 0,
				   stream>>>(table_make_view(table), losers, *work));
	LAUNCH_TRY(table, error);
	bytes = work->scan_bytes;
	CUDA_TRY(table, exclusive_sum(work->scan_space, &bytes, work->counts, work->starts,
								  records, stream), error);
	CUDA_TRY(table, cudaStreamSynchronize(stream), error);
	*plan = {records, work->starts, work->counts};
	return GH_OK;
}

/* Puts every value where its record has it. */
GhStatus
duplicates_fill(cuda_table *table, const build_work *work, uint32_t present,
				GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	char	   *values = table->store.segments[0].values;
	uint32_t	value_size = table->options.value_size;

	winners_kernel<<<blocks_for(work->list.count), BLOCK_THREADS, 0, stream>>>(
		*work, values, value_size);
	LAUNCH_TRY(table, error);
	losers_kernel<<<blocks_for(present), BLOCK_THREADS, 0, stream>>>(
		*work, present, values, value_size);
	LAUNCH_TRY(table, error);
	return GH_OK;
}
