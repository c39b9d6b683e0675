/*
 * order.cu
 *		Positions of a slice in the order of their keys, and of positions among
 *		equal ones: a sort of the places at which group.cu has them meet.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/table/table.h"

static __global__ void __launch_bounds__(BLOCK_THREADS)
number_kernel(group_view group, key_order order, uint32_t count)
{
	uint64_t	i = ELEMENT;

	if (i < count)
		order.unsorted[i] = order_number(order, group.place[i], (uint32_t) i);
}

/* The sort; with a NULL space it only tells how much it wants. */
static cudaError_t
sort_numbers(const key_order *order, void *space, size_t *space_bytes, uint32_t count,
			 cudaStream_t stream)
{
	try
	{
		return cub::DeviceRadixSort::SortKeys(space, *space_bytes, order->unsorted,
											  order->sorted, (int) count, 0, order->bits, stream);
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

	order.unsorted = carver->array<uint64_t>(keys);
	order.sorted = carver->array<uint64_t>(keys);
	while (order.position_bits < 31 && (keys - 1) >> order.position_bits != 0)
		order.position_bits++;
	order.bits = order.position_bits;
	while (order.bits < 63 && (uint64_t) group->mask >> (order.bits - order.position_bits) != 0)
		order.bits++;
	if (sort_numbers(&order, nullptr, &order.space_bytes, (uint32_t) keys, nullptr) != cudaSuccess)
		/* the failure is the device's and shows at the next call */
		(void) cudaGetLastError();
	order.space = carver->take(order.space_bytes);
	return order;
}

GhStatus
order_numbers(cuda_table *table, const key_order *order, uint32_t count, GhError *error)
{
	size_t		bytes = order->space_bytes;

	CUDA_TRY(table, sort_numbers(order, order->space, &bytes, count, table->lanes[0].stream), error);
	return GH_OK;
}

GhStatus
order_positions(cuda_table *table, const group_view *group, const key_order *order,
				uint32_t count, GhError *error)
{
	number_kernel<<<blocks_for(count), BLOCK_THREADS, 0, table->lanes[0].stream>>>(*group, *order, count);
	LAUNCH_TRY(table, error);
	return order_numbers(table, order, count, error);
}
