/*
 * device_headers.cu
 *		Compiled, not run: the headers of src/engine that the device shares, in a kernel as
 *		the CUDA engine would use them, by its compiler and with its warnings.
 */
#include "engine/program/aggregate.h"
#include "engine/page/page.h"

/* A thread a tuple: its values into vectors; status says where the page is none. */
__global__ void
load_page_kernel(GhPageShape shape, const uint8_t *page, const uint16_t *numbers, uint32_t count,
				 GhVectorBatch batch, int *status)
{
	uint32_t	row = blockIdx.x * blockDim.x + threadIdx.x;
	GhPageTuple tuple;
	GhPageWalk	walk;
	bool		prefixed;

	if (row >= count)
		return;
	if (!gh_page_tuple(page, shape.page_bytes, gh_page_lines(page, shape.page_bytes), numbers[row],
					   &tuple))
	{
		*status = GH_INVALID;
		return;
	}
	batch.state[row] = GH_ROW_LIVE;
	prefixed = gh_page_has_prefix(&shape, page, &tuple);
	walk.next = prefixed ? shape.prefix : 0;
	walk.offset = tuple.data + (prefixed ? shape.prefix_bytes : 0);
	for (uint32_t c = 0; c < shape.ncolumns; c++)
	{
		const GhPageColumn *column = &shape.columns[c];
		uint32_t	attribute = column->column.attribute - 1u;
		GhVector	vector = batch.vectors[column->vector];
		GhPlace		place = prefixed && c < shape.nfixed ?
			gh_place(GH_PLACE_HERE, tuple.data + column->place,
					 (uint32_t) shape.attributes[attribute].length) :
			gh_page_find(&shape, page, &tuple, &walk, attribute);

		if (place.kind == GH_PLACE_BROKEN)
			*status = GH_INVALID;
		vector.null[row] = place.kind != GH_PLACE_HERE;
		if (place.kind == GH_PLACE_HERE &&
			!gh_page_load(&column->column, page, place, &vector.low[row], &vector.high[row]))
			batch.state[row] = GH_ROW_BACK;
	}
}

/* A thread a group: its rows, in their order, and then what another participant has of it. */
__global__ void
aggregate_kernel(const GhAggregate *aggregates, uint32_t count, GhVectorBatch batch,
				 const uint32_t *groups, uint32_t ngroups, GhAggregateState *states,
				 const GhAggregateState *others, uint8_t *unmerged)
{
	uint32_t	group = blockIdx.x * blockDim.x + threadIdx.x;
	GhAggregateState *own = states + (size_t) group * count;

	if (group >= ngroups)
		return;
	for (uint32_t row = 0; row < batch.nrows; row++)
		if (batch.state[row] == GH_ROW_LIVE && groups[row] == group &&
			!gh_aggregates_add_row(aggregates, count, batch.vectors, row, own))
			batch.state[row] = GH_ROW_BACK;
	unmerged[group] = !gh_aggregates_merge(aggregates, count, own,
										   others + (size_t) group * count);
}
