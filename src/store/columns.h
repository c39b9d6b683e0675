/*
 * columns.h
 *		Columns of tables in shared memory, for the CPU engine: taken out of pages of which every snapshot sees all rows, and
 *		used as long as the pages are what they were.
 *
 * README, "Columns of tables", has the rules, and who makes them.
 */
#ifndef GPUHASH_COLUMNS_H
#define GPUHASH_COLUMNS_H

#include "postgres.h"

#include "engine/page/packed.h"
#include "engine/page/page.h"
#include "heap/pages.h"

/* Blocks of which columns are made together. */
#define GH_STRIPE_BLOCKS 32
/* Columns of a table that are known of, at most. */
#define GH_STORED_COLUMNS_MAX 64
/* Rows of a stripe, at most. */
#define GH_STRIPE_ROWS (GH_STRIPE_BLOCKS * MaxHeapTuplesPerPage)

/* A scan's use of them. */
typedef struct GhColumnsUse GhColumnsUse;

/* Rows of blocks that follow one another, as of the last look-up. */
typedef struct GhColumnRows
{
	uint32		first;			/* of the packed columns' rows */
	uint32		count;
} GhColumnRows;

/* columns_open.c */
extern GhColumnsUse *gh_columns_open(const GhPages *pages, uint32 natts, const GhPageAttribute *attributes,
									 uint32 ncolumns, const GhColumn *columns, MemoryContext context);
extern GhColumnsUse *gh_columns_open_to_fill(const GhPages *pages, uint32 natts, const GhPageAttribute *attributes,
											 uint32 ncolumns, const GhColumn *columns, MemoryContext context);
extern void gh_columns_close(GhColumnsUse *use);

/* columns.c */
extern bool gh_columns_may_grow(const GhColumnsUse *use);
extern uint64 gh_columns_fill(GhColumnsUse *use, BlockNumber first, BlockNumber end);
extern uint32 gh_columns_find(GhColumnsUse *use, BlockNumber block);
extern GhColumnRows gh_columns_rows(const GhColumnsUse *use, BlockNumber block, uint32 count);
extern const GhPackedColumn *const *gh_columns_packed(const GhColumnsUse *use);
extern OffsetNumber gh_columns_line(const GhColumnsUse *use, uint32 row, BlockNumber *block);

#endif							/* GPUHASH_COLUMNS_H */
