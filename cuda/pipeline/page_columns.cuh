/*
 * page_columns.cuh
 *		A block's page: its copy in shared memory, which of its lines are to be read, and the columns of a tuple.
 */
#ifndef GPUHASH_PAGE_COLUMNS_CUH
#define GPUHASH_PAGE_COLUMNS_CUH

#include <cuda_runtime.h>

#include "engine/pipeline/record_row.h"

/* Threads that have a page together: all of a block. */
struct block_threads
{
	/* of them, those that read over the bus, with one load on its way each */
	static constexpr uint32_t readers = 64;

	static __device__ __forceinline__ uint32_t rank() { return threadIdx.x; }
	static __device__ __forceinline__ uint32_t count() { return blockDim.x; }
	static __device__ __forceinline__ void sync() { __syncthreads(); }
};

/* A warp, of which there are more. */
struct warp_threads
{
	static constexpr uint32_t readers = 16;

	static __device__ __forceinline__ uint32_t rank() { return threadIdx.x % 32; }
	static __device__ __forceinline__ uint32_t count() { return 32; }
	static __device__ __forceinline__ void sync() { __syncwarp(); }
};

/*
 * Pages are read once, and hosts write to them: nothing of them is to stay in a cache.  Few loads
 * are on their way, as many as keep the bus busy: whatever else goes over it, and that is every
 * launch of another kernel, waits behind all of them.
 */
template <typename THREADS> static __device__ __forceinline__ void
page_read(uint4 *to, const void *from, uint32_t bytes)
{
	const uint4 *source = static_cast<const uint4 *>(from);

	if (THREADS::rank() >= THREADS::readers)
		return;
#pragma unroll 1
	for (uint32_t at = THREADS::rank(); at < bytes / sizeof(uint4); at += THREADS::readers)
		to[at] = __ldcs(source + at);
}

/* Of a page in the device's memory, by all threads; texts of it are read there again soon. */
template <typename THREADS> static __device__ __forceinline__ void
page_read_near(uint4 *to, const void *from, uint32_t bytes)
{
	const uint4 *source = static_cast<const uint4 *>(from);

#pragma unroll 4
	for (uint32_t at = THREADS::rank(); at < bytes / sizeof(uint4); at += THREADS::count())
		to[at] = __ldcg(source + at);
}

/*
 * Loads the columns from `first` on into the row; false: the page is broken.  *back: the row goes back.
 * Texts are read later at text_at, where the page is, too.
 */
template <typename ROW> static __device__ __forceinline__ bool
load_columns(const GhPageShape *shape, const ROW &row, const uint8_t *page, const uint8_t *text_at,
			 const GhPageTuple *tuple, uint32_t first, bool *back)
{
	bool		prefixed = gh_page_has_prefix(shape, page, tuple);
	GhPageWalk	walk;

	walk.next = prefixed ? shape->prefix : 0;
	walk.offset = tuple->data + (prefixed ? shape->prefix_bytes : 0);
	for (uint32_t c = first; c < shape->ncolumns; c++)
	{
		const GhPageColumn *column = &shape->columns[c];
		uint32_t	attribute = column->column.attribute - 1u;
		GhValue		value = {0, 0, 0};
		GhPlace		place = prefixed && c < shape->nfixed ?
			gh_place(GH_PLACE_HERE, tuple->data + column->place,
					 (uint32_t) shape->attributes[attribute].length) :
			gh_page_find(shape, page, tuple, &walk, attribute);

		if (place.kind == GH_PLACE_BROKEN)
			return false;
		if (place.kind == GH_PLACE_HERE)
			*back |= !gh_page_load(&column->column, page, place, &value.low, &value.high);
		else
		{
			*back |= place.kind == GH_PLACE_ELSEWHERE ||
				(place.kind == GH_PLACE_MISSING && column->column.missing != GH_MISSING_NULL);
			value.null = 1;
		}
		if (column->column.load == GH_LOAD_TEXT || column->column.load == GH_LOAD_FIXED)
			value.low += (uint64_t) (uintptr_t) text_at - (uint64_t) (uintptr_t) page;
		row.set(column->vector, value);
	}
	return true;
}

/* Whether a line that is asked for is to be read, or may have to be; false: the page is broken. */
static __device__ bool
judge_line(uint32_t page_bytes, uint32_t seen_before, const GhPageRef &asked, const uint8_t *page,
		   uint32_t page_lines, uint32_t number, bool *untold, bool *visible)
{
	GhPageTuple tuple;
	GhTupleSeen	seen;

	*visible = !asked.hinted || !gh_line_is_newer(&asked, page, number);
	if (!asked.hinted || !*visible)
		return true;
	if (!gh_page_tuple(page, page_bytes, page_lines, number, &tuple))
		return false;
	seen = gh_line_judge(page, asked.page, tuple.header, seen_before);
	*visible = seen == GH_SEEN_VISIBLE;
	*untold = seen == GH_SEEN_UNTOLD;
	return true;
}

#endif							/* GPUHASH_PAGE_COLUMNS_CUH */
