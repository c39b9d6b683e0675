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
#include "service/faults.h"
#include "store/shared_copies.h"

#define GH_COPY_COLUMNS_MAX 32
#define GH_COPY_KEYS_MAX 4

/* Tables of fewer blocks are read faster than looked up. */
#define GH_COPY_BLOCKS_MIN 16
/*
 * A copy is not used where more blocks than this, or of its entries more, are not right: then a table of all
 * rows is as cheap.  Each participant makes a table of its own of what is on them (BENCHMARKS.md).
 */
#define GH_COPY_HEAP_MAX(all, participants) ((all) / (4 + 2 * (participants)))

/*
 * On a device a table of all rows is made of pages that are there in 0.6 ns a row.  To tell keys apart takes
 * a share of that for all rows of the copy; rows that are not right are read on the host, each in so many
 * times that; to begin with it takes as long as so many rows; and so does a part of the outer rows, which are
 * looked up among changed keys, too (BENCHMARKS.md, "The index on a GPU").
 */
#define GH_APART_SHARE GH_WITH_FAULT_POINTS(0.0, 0.3)
#define GH_APART_TIMES GH_WITH_FAULT_POINTS(8, 500)
#define GH_APART_ROWS GH_WITH_FAULT_POINTS(1000, 7500000)
#define GH_APART_OUTER GH_WITH_FAULT_POINTS(0.0, 0.3)
/* Tables of what has changed have so many places at least. */
#define GH_APART_PLACES 65536.0

/* Why a copy is not used, for EXPLAIN. */
#define GH_COPY_IS_NOT_THERE "there is none"
#define GH_COPY_LACKS_COLUMNS "it has not what is read"
#define GH_COPY_SMALL_TABLE "the table is small"
#define GH_COPY_MUCH_CHANGED "too many blocks have changed, or are not all-visible"
#define GH_COPY_ROWS_DO_NOT_FIT "rows of blocks that have changed do not fit in memory"
#define GH_COPY_NOT_GROUPED "the rows of the join are not grouped by gpuhash"
#define GH_COPY_FEW_KEYS "there are few keys"
#define GH_COPY_FEW_FOR_COPY "there are few keys for so large a copy, or so many blocks that have changed"

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
	uint64		text_bytes;		/* of all of them */
	GhRef		root;			/* of the table; 0: there are no rows */
	bool		several;		/* some key has several */
	bool		ascending;		/* no entry's key, as a number with a sign, is less than that of the one before */
} GhIndexCopy;

/* Whether it is to be given up; called once in some thousand entries. */
typedef bool (*GhCopyStop) (Relation index, Relation heap);

/* What the room of the access method does for those who use copies. */
typedef struct GhIndexCopyMethods
{
	/*
	 * Makes a copy of an index and publishes it; the one that there is stays in use meanwhile.  False: it is not made, or was given
	 * up, as stop says, which may be NULL.  A snapshot is active.
	 */
	bool		(*make) (Relation index, Relation heap, GhCopyStop stop);
	/*
	 * Likewise a table on a device of all its entries, which stays there (../index/README, "On a device").
	 */
	bool		(*make_on_device) (Relation index, Relation heap, int device, GhCopyStop stop);
	/* The one that was made there last, if it is right for any block. */
	bool		(*look_up_on_device) (Relation index, int device, uint64 *generation, BlockNumber *nblocks);
	/* What columns a copy of the index has, or would have: those of *copy alone are set; false: there is none. */
	bool		(*describe) (Relation index, GhIndexCopy *copy);
	/*
	 * Which blocks the copy is right for, by a bit for each of copy->nblocks; how many, and how many of the table's the
	 * visibility map has as all-visible: those, others, and new ones.
	 */
	BlockNumber (*blocks) (Relation index, Relation heap, const GhIndexCopy *copy, uint32 *bits,
						   BlockNumber *all_visible);
} GhIndexCopyMethods;

/* Which blocks of the table a copy is right for, as a query has asked. */
typedef struct GhCopyBlocks
{
	uint32	   *bits;			/* by block of the copy */
	BlockNumber copied;			/* of the copy: so many bits */
	BlockNumber nblocks;		/* of the table */
	BlockNumber right;			/* of these; those past the end are no blocks of the query */
	BlockNumber stale;			/* of those for which it is not right: all-visible */
} GhCopyBlocks;

#define GH_COPY_BITS 32

/*
 * Of a copy on a device: what its table keeps of an entry is the block of its row, and then the columns, by
 * their numbers.
 */
#define GH_DEVICE_COPY_BLOCK 0
#define GH_DEVICE_COPY_COLUMN(c) ((c) + 1)

extern void gh_index_copies_register(const GhIndexCopyMethods *methods);
extern const GhIndexCopyMethods *gh_index_copy_methods(void);
/*
 * Sets rows, generation and number of blocks of the one that there is, which is not attached, and its place
 * in the list; false: there is none.
 */
extern bool gh_index_copy_look(Relation index, GhIndexCopy *copy, int *place);
/* Asks for its blocks, of which the table has so many; in the current context. */
extern void gh_copy_ask_blocks(Relation index, Relation heap, const GhIndexCopy *copy, BlockNumber nblocks,
							   GhCopyBlocks *blocks);
/*
 * Where it is not right for many of these, has another one made in the background (README, "Copies of
 * indexes: made again").  True: on a standby nobody does, and whoever can may make one.
 */
extern bool gh_copy_make_again(Relation index, const GhCopyBlocks *blocks);
/* Whether it is not right for so many that another one would be. */
extern bool gh_copy_is_stale(const GhCopyBlocks *blocks);
/* Likewise of one on a device, which nobody makes on a standby. */
extern void gh_copy_make_again_on_device(Relation index, const GhCopyBlocks *blocks);
/*
 * Looks a device's copy up, and asks for its blocks; false: it is not right for all of the table's blocks
 * that another one would be right for, or there is none.
 */
extern bool gh_copy_is_right_on_device(Relation index, Relation heap, int device, GhIndexCopy *copy, GhCopyBlocks *blocks);
/* GhPages.has_blocks, of GhCopyBlocks. */
extern uint32 gh_copy_count_right(void *blocks, BlockNumber block);
/*
 * The next block of the copy, from this one on, that it is not right for; its number of blocks: there is
 * none.
 */
extern BlockNumber gh_copy_next_stale(const GhCopyBlocks *blocks, BlockNumber block);
/* Entries of a copy in shared memory on those. */
extern uint64 gh_copy_stale_rows(const GhCopyHold *hold, const GhCopyBlocks *blocks);

/*
 * Whether a device does with a table of so many entries, where so many rows and entries are not right, for so
 * many outer rows.
 */
static inline bool
gh_copy_tells_apart(double rows, double changed, double outer_rows)
{
	return changed <= 0 ||
		changed * GH_APART_TIMES + GH_APART_ROWS + outer_rows * GH_APART_OUTER + rows * GH_APART_SHARE <= rows;
}

static inline bool
gh_copy_is_right(const GhCopyBlocks *blocks, BlockNumber block)
{
	return block < blocks->copied && (blocks->bits[block / GH_COPY_BITS] >> block % GH_COPY_BITS & 1) != 0;
}

static inline void *
gh_copy_address(const GhCopyHold *hold, dsa_pointer pointer)
{
	return dsa_get_address(hold->area, pointer);
}

#endif							/* GPUHASH_INDEX_COPIES_H */
