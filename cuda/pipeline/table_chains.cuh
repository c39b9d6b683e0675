/*
 * table_chains.cuh
 *		The rows of a table that have the same key, one behind the other, for probes that return them all.
 *
 * All keys are in the table, each with the number of one of its rows.  Rows are sorted by that number,
 * stably: so those of a key lie side by side, in the order in which they were appended, and their numbers
 * are the list of members.  A key of several rows then gets its place in the list in place of the
 * number.
 */
#ifndef GPUHASH_TABLE_CHAINS_CUH
#define GPUHASH_TABLE_CHAINS_CUH

#include <cub/device/device_radix_sort.cuh>

#include "cuda/pipeline/sink_views.cuh"
#include "cuda/pipeline/table_locate.cuh"

static __global__ void __launch_bounds__(BLOCK_THREADS)
numbers_kernel(uint64_t rows, uint64_t *values)
{
	uint64_t	row = ELEMENT;

	if (row < rows)
		values[row] = row;
}

/* The keys of rows that have one, in any order, and the rows' numbers. */
static __global__ void __launch_bounds__(BLOCK_THREADS)
keyed_kernel(const uint64_t *from, const keyed_rows keyed, uint64_t rows, uint64_t *keys, uint64_t *values,
			 uint32_t *count)
{
	uint64_t	row = ELEMENT;
	uint32_t	to;

	if (row >= rows || !has_key(keyed, row))
		return;
	to = append_index(count);
	keys[to] = from[row];
	values[to] = row;
}

/* What a list is made with. */
struct chain_work
{
	uint32_t   *firsts;			/* by row: the number that its key has */
	uint32_t   *sorted;
	uint32_t   *numbers;
	void	   *space;			/* CUB's */
	size_t		space_bytes;
};

static __global__ void __launch_bounds__(BLOCK_THREADS)
firsts_kernel(const table_view view, const uint64_t *keys, const keyed_rows keyed, uint32_t rows,
			  chain_work work)
{
	uint64_t	row = ELEMENT;
	uint64_t	found = row;

	if (row >= rows)
		return;
	/* a row without a key is alone: no key has its number */
	if (has_key(keyed, row))
		(void) scan_locate(view, keys[row], &found);
	work.firsts[row] = (uint32_t) found;
	work.numbers[row] = (uint32_t) row;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
link_kernel(const table_view view, const uint64_t *keys, uint32_t rows, const uint32_t *sorted,
			uint32_t *members)
{
	uint64_t	i = ELEMENT;
	bool		first;
	bool		last;
	uint64_t	found;
	uint64_t   *place;

	if (i >= rows)
		return;
	first = i == 0 || sorted[i - 1] != sorted[i];
	last = i + 1 == rows || sorted[i + 1] != sorted[i];
	if (last)
		members[i] |= MEMBER_LAST;
	if (!first || last)
		return;
	place = scan_locate(view, keys[sorted[i]], &found);
	if (place != nullptr)
		*place = ROW_SEVERAL | i;
}

static inline cudaError_t
sort_rows(const chain_work *work, uint32_t *members, void *space, size_t *space_bytes, uint32_t rows,
		  cudaStream_t stream)
{
	int			bits = 1;

	while (bits < 32 && rows >> bits != 0)
		bits++;
	try
	{
		return cub::DeviceRadixSort::SortPairs(space, *space_bytes, work->firsts, work->sorted,
											   work->numbers, members, (int) rows, 0, bits, stream);
	}
	catch (...)
	{
		return cudaErrorUnknown;
	}
}

static inline void
work_carve(chain_work *work, uint32_t rows, carver *carver)
{
	work->firsts = carver->array<uint32_t>(rows);
	work->sorted = carver->array<uint32_t>(rows);
	work->numbers = carver->array<uint32_t>(rows);
	work->space = carver->take(work->space_bytes);
}

#endif							/* GPUHASH_TABLE_CHAINS_CUH */
