/*
 * order.cu
 *		Positions of a slice in the order of their keys, and of positions among
 *		equal ones: a stable sort of the places at which group.cu has them meet.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/table/table.h"

static __global__ void __launch_bounds__(BLOCK_THREADS)
number_kernel(uint32_t *positions, uint32_t count)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		positions[i] = (uint32_t) i;
}

/* The stable sort; with a NULL space it only tells how much it wants. */
static cudaError_t
sort_pairs(const group_view *group, const key_order *order, void *space,
		   size_t *space_bytes, uint32_t count, cudaStream_t stream)
{
	int			bits = 0;

	while (bits < 32 && group->mask >> bits != 0)
		bits++;
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, group->place,
											   order->places, order->unsorted,
											   order->positions, (int) count, 0, bits,
											   stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

/* Takes a key_order for that many positions, grouped in that group, out of a buffer. */
key_order
order_carve(carver *carver, const group_view *group, uint64_t keys)
{
	key_order	order = {};

	order.unsorted = carver->array<uint32_t>(keys);
	order.positions = carver->array<uint32_t>(keys);
	order.places = carver->array<uint32_t>(keys);
	if (sort_pairs(group, &order, nullptr, &order.space_bytes, (uint32_t) keys,
				   nullptr) != cudaSuccess)
		/* the failure is the device's and shows at the next call */
		(void) cudaGetLastError();
	order.space = carver->take(order.space_bytes);
	return order;
}

/* Enqueues the sort of positions that were grouped, all of them, on lane 0. */
GhStatus
order_positions(cuda_table *table, const group_view *group, const key_order *order,
				uint32_t count, GhError *error)
{
	cudaStream_t stream = table->lanes[0].stream;
	size_t		bytes = order->space_bytes;

	number_kernel<<<blocks_for(count), BLOCK_THREADS, 0, stream>>>(order->unsorted, count);
	LAUNCH_TRY(table, error);
	CUDA_TRY(table, sort_pairs(group, order, order->space, &bytes, count, stream), error);
	return GH_OK;
}
