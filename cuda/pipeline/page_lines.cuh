/*
 * page_lines.cuh
 *		A page in shared memory: what those who read it are told of it, its lines, and where it is to stay.
 */
#ifndef GPUHASH_PAGE_LINES_CUH
#define GPUHASH_PAGE_LINES_CUH

#include "cuda/pipeline/page_columns.cuh"
#include "cuda/pipeline/pipeline.cuh"

/* A page of a batch, as the device is told. */
struct input_page
{
	GhPageRef	asked;			/* page: where it is read */
	char	   *kept;			/* where it is put, and texts are read; NULL: they are read where it is */
	uint32_t	first;			/* row */
	uint32_t	near;			/* 1: it is read in the device's memory */
};

/* What is known of a line that was read: with neither it is not there for the request. */
struct line_seen
{
	bool		visible;
	bool		untold;			/* whether it is visible its header does not tell */
	bool		back;			/* visible, but a column cannot be read here */
};

/* Reads a line of a page that has it, its columns into the row; false: the page is broken. */
template <typename ROW> static __device__ __forceinline__ bool
read_line(const pipe_view &view, const ROW &row, const GhPageRef &asked, const uint64_t *bitmaps, const uint8_t *page,
		  const uint8_t *text_at, uint32_t page_lines, uint32_t number, line_seen *seen)
{
	GhPageTuple tuple;

	*seen = {false, false, false};
	if (gh_line_is_asked(&asked, bitmaps, number) &&
		(asked.bitmap != GH_PAGE_ALL_LINES || gh_line_is_normal(page, number)) &&
		!judge_line(view.page_bytes, view.seen_before, asked, page, page_lines, number, &seen->untold, &seen->visible))
		return false;
	if (!seen->visible)
		return true;
	/* without columns the tuples are not looked at: as gh_cpu_page_load() does */
	if (view.shape->ncolumns > 0 &&
		(!gh_page_tuple(page, view.page_bytes, page_lines, number, &tuple) ||
		 !load_columns(view.shape, row, page, text_at, &tuple, 0, &seen->back)))
		return false;
	if (view.shape->tids != 0)
		row.set(view.shape->tids - 1, GhValue{gh_tid_value(asked.block, number), 0, 0});
	return true;
}

/*
 * Reads a line of a leaf page, as read_line() does; first: of its entries.  One that is not of one row goes
 * back.
 */
template <typename ROW> static __device__ __forceinline__ bool
read_entry(const pipe_view &view, const ROW &row, const uint8_t *page, const uint8_t *text_at, uint32_t page_lines,
		   uint32_t first, uint32_t number, line_seen *seen)
{
	GhPageTuple tuple;
	GhLeafEntryKind kind;
	uint32_t	block;

	*seen = {false, false, false};
	if (number < first || !gh_line_is_normal(page, number))
		return true;
	kind = gh_leaf_entry(page, view.page_bytes, page_lines, number, &tuple, &block);
	if (kind == GH_LEAF_BROKEN)
		return false;
	seen->visible = true;
	if (kind == GH_LEAF_ELSE)
		tuple.natts = 0;
	if (view.shape->ncolumns > 0 && !load_columns(view.shape, row, page, text_at, &tuple, 0, &seen->back))
		return false;
	if (view.shape->tids != 0)
		row.set(view.shape->tids - 1, GhValue{block, 0, 0});
	seen->back |= kind == GH_LEAF_ELSE;
	return true;
}

/*
 * Stores the page.  In a place later requests judge its headers, which others may have written to
 * while it was read: so there, who deleted a tuple is read once more, now that all infomasks have been
 * (gh_line_judge).
 */
template <typename THREADS> static __device__ void
keep_page(const uint4 *copy, const input_page &from, uint32_t page_bytes)
{
	const uint8_t *page = reinterpret_cast<const uint8_t *>(copy);
	const char *original = static_cast<const char *>(from.asked.page);
	uint4	   *kept = reinterpret_cast<uint4 *>(from.kept);
	uint32_t	lines = gh_page_lines(page, page_bytes);
	GhPageTuple tuple;

	for (uint32_t i = THREADS::rank(); i < page_bytes / sizeof(uint4); i += THREADS::count())
		kept[i] = copy[i];
	/* the host copies from the end to the begin, and a place has been through this */
	if (from.asked.span == 0 || from.near != 0)
		return;
	THREADS::sync();
	for (uint32_t number = THREADS::rank() + 1; number <= lines; number += THREADS::count())
		if (gh_page_tuple(page, page_bytes, lines, number, &tuple) &&
			(gh_read_u16(page + tuple.header + GH_TUPLE_INFOMASK_AT) & GH_TUPLE_XMAX_COMMITTED) != 0)
			*reinterpret_cast<uint32_t *>(from.kept + tuple.header + GH_TUPLE_XMAX_AT) =
				__ldcv(reinterpret_cast<const uint32_t *>(original + tuple.header + GH_TUPLE_XMAX_AT));
}

#endif							/* GPUHASH_PAGE_LINES_CUH */
