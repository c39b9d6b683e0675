/*
 * device_headers.cu
 *		Compiled, not run: the headers of src/engine that the device shares, in a kernel as
 *		the CUDA engine would use them, by its compiler and with its warnings.
 */
#include "page.h"

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
