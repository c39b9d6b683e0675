/*
 * index_copies.h
 *		Copies of indexes of the access method gpuhash in shared memory: their entries as columns, and a table
 *		of the CPU engine from keys to rows.
 *
 * README, "Copies of indexes", has who makes one, who uses it, and when it goes.
 */
#ifndef GPUHASH_INDEX_COPIES_H
#define GPUHASH_INDEX_COPIES_H

#include "postgres.h"

#include "storage/block.h"
#include "utils/rel.h"

#include "engine/pipeline/pipeline.h"
#include "store/shared_copies.h"

#define GH_COPY_COLUMNS_MAX 32
#define GH_COPY_KEYS_MAX 4

/* Tables of fewer blocks are read faster than looked up. */
#define GH_COPY_BLOCKS_MIN 16
/*
 * A copy is not used where more blocks than this, or of its entries more, are not right: then a table of all rows
 * is as cheap.  Each participant makes a table of its own of what is on them (BENCHMARKS.md).
 */
#define GH_COPY_HEAP_MAX(all, participants) ((all) / (4 + 2 * (participants)))

/* A column of the index. */
typedef struct GhCopyColumn
{
	AttrNumber	attno;			/* of the table */
	bool		is_key;			/* a part of the key, in the order of the columns */
	uint8		bits;			/* and then, how many of the key's */
	uint16		kept;			/* else: number of the table's value */
	GhColumn	column;			/* how programs load it */
	GhKept		held;			/* what it holds */
	dsa_pointer low;			/* by entry: uint64; of texts, where in the copy's texts they begin */
	dsa_pointer high;			/* likewise, or InvalidDsaPointer: the class has none */
	dsa_pointer null;			/* by entry: a byte, or InvalidDsaPointer: none is NULL */
} GhCopyColumn;

/* In the copy's own area; it does not change once it is published. */
typedef struct GhIndexCopy
{
	uint64		generation;		/* GhCopied of index/touched.h */
	BlockNumber nblocks;
	uint64		rows;			/* entries that have a key */
	int			nkeys;			/* columns that make up the key: the first ones */
	int			ncolumns;
	GhCopyColumn columns[GH_COPY_COLUMNS_MAX];
	dsa_pointer blocks;			/* by entry: uint32, the block of its row */
	dsa_pointer order;			/* entries by their blocks: uint32 */
	dsa_pointer starts;			/* by block, and one more: uint32, where its entries begin there */
	dsa_pointer keys;			/* by entry: uint64, as the table has it */
	dsa_pointer texts;
	GhRef		root;			/* of the table; 0: there are no rows */
	bool		several;		/* some key has several */
} GhIndexCopy;

/* What the room of the access method does for those who use copies. */
typedef struct GhIndexCopyMethods
{
	/* Makes the copy of an index and publishes it; false: there is none.  A snapshot is active. */
	bool		(*make) (Relation index, Relation heap);
	/* What columns a copy of the index has, or would have: those of *copy alone are set; false: there is none. */
	bool		(*describe) (Relation index, GhIndexCopy *copy);
	/*
	 * Which blocks the copy is right for, by a bit for each of copy->nblocks; how many, and of these and
	 * those that are not, how many the visibility map has as all-visible.
	 */
	BlockNumber (*blocks) (Relation index, Relation heap, const GhIndexCopy *copy, uint32 *bits,
						   BlockNumber *all_visible);
	/* Likewise, no more than how many, in less time: for costs. */
	BlockNumber (*blocks_at_least) (Relation index, Relation heap, const GhIndexCopy *copy);
} GhIndexCopyMethods;

extern void gh_index_copies_register(const GhIndexCopyMethods *methods);
extern const GhIndexCopyMethods *gh_index_copy_methods(void);
/* Sets generation and number of blocks of the one that there is, which is not attached; false: there is none. */
extern bool gh_index_copy_look(Relation index, GhIndexCopy *copy);

static inline void *
gh_copy_address(const GhCopyHold *hold, dsa_pointer pointer)
{
	return dsa_get_address(hold->area, pointer);
}

#endif							/* GPUHASH_INDEX_COPIES_H */
