/*
 * arrange.cu
 *		Batches on tables of which a part is in the host's memory: their positions in the order
 *		of the regions that their keys are in.
 *
 * The bus moves single buckets fast where they lie near each other, and several times slower
 * where they are all over gigabytes, for the addresses have to be translated, too.  So the arrays
 * of a large slice or piece are brought into the order of regions, which is the order of addresses in
 * every subtable, worked on in that order, and the results go back to their positions.
 *
 * The sort is stable, and equal keys are in one region: so each position sees before it the
 * positions of its key that it would have seen, and no operation looks at those of other keys.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/table/memory.cuh"
#include "cuda/table/table.h"

/*
 * Bits that regions are picked by.  All are sorted by: what is on its way is nearer then than by the first eight,
 * and equal keys meet.
 */
#define REGION_BITS 32

/* Is it worth it for so many keys? */
bool
arranges(const cuda_table *table, uint64_t keys)
{
	return table->stats.bytes_paged > 0 && keys >= ARRANGE_KEYS_MIN;
}

template <typename KEY> static __global__ void __launch_bounds__(BLOCK_THREADS)
bits_kernel(const KEY *keys, uint32_t count, uint64_t seed, uint32_t pairs, uint32_t *bits,
			uint32_t *positions)
{
	uint64_t	i = ELEMENT;

	if (i >= count)
		return;
	bits[i] = hash_region_bits(hash_key(seed, keys[i]), pairs);
	positions[i] = (uint32_t) i;
}

/* Elements of so many units each, to the order of positions, or, backwards, from it. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
move_kernel(char *to, const char *from, const uint32_t *positions, uint64_t count, uint32_t units,
			uint32_t unit, bool back)
{
	uint64_t	i = ELEMENT;

	if (i < count * units)
	{
		uint64_t	there = (uint64_t) positions[i / units] * units + i % units;

		copy_unit(to + (back ? there : i) * unit, from + (back ? i : there) * unit, unit);
	}
}

/* With a NULL space it only tells how much it wants. */
static cudaError_t
sort_bits(const arrangement *order, void *space, size_t *space_bytes, uint32_t count, cudaStream_t stream)
{
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, order->unsorted_bits, order->bits,
											   order->unsorted, order->positions, (int) count,
											   0, REGION_BITS, stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* Takes what sorting that many keys needs out of a buffer. */
void
arrange_carve(carver *carver, uint64_t keys, arrangement *order)
{
	*order = {};
	order->unsorted_bits = carver->array<uint32_t>(keys);
	order->bits = carver->array<uint32_t>(keys);
	order->unsorted = carver->array<uint32_t>(keys);
	order->positions = carver->array<uint32_t>(keys);
	if (sort_bits(order, nullptr, &order->space_bytes, (uint32_t) keys, nullptr) != cudaSuccess)
		/* the failure is the device's and shows at the next call */
		(void) cudaGetLastError();
	order->space = carver->take(order->space_bytes);
}

/* Enqueues the sort; equal keys are together, but where others have all bits of the region like them. */
GhStatus
arrange_keys(cuda_table *table, lane *lane, const void *keys, uint32_t count, const arrangement *order,
			 GhError *error)
{
	uint32_t	pairs = hash_pair_count(table->options.subtables);
	size_t		bytes = order->space_bytes;

	if (table->options.key_size == sizeof(uint32_t))
		bits_kernel<<<blocks_for(count), BLOCK_THREADS, 0, lane->stream>>>(
			static_cast<const uint32_t *>(keys), count, table->options.seed, pairs, order->unsorted_bits, order->unsorted);
	else
		bits_kernel<<<blocks_for(count), BLOCK_THREADS, 0, lane->stream>>>(
			static_cast<const uint64_t *>(keys), count, table->options.seed, pairs, order->unsorted_bits, order->unsorted);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, sort_bits(order, order->space, &bytes, count, lane->stream), error);
	return GH_OK;
}

/* Enqueues the move of an array's elements to that order or back; NULL: there is no such array. */
GhStatus
arrange_move(cuda_table *table, lane *lane, const arrangement *order, void *to, const void *from,
			 uint32_t count, uint32_t size, bool back, GhError *error)
{
	uint32_t	unit = value_unit(size);

	if (from == nullptr || size == 0)
		return GH_OK;
	move_kernel<<<blocks_for((uint64_t) count * (size / unit)), BLOCK_THREADS, 0, lane->stream>>>(
		static_cast<char *>(to), static_cast<const char *>(from), order->positions, count, size / unit, unit, back);
	LAUNCH_TRY(table, error);
	return GH_OK;
}
