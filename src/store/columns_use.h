/*
 * columns_use.h
 *		A scan's use of a table's columns in shared memory: what its files share.
 */
#ifndef GPUHASH_COLUMNS_USE_H
#define GPUHASH_COLUMNS_USE_H

#include "portability/instr_time.h"
#include "storage/lwlock.h"

#include "heap/map.h"
#include "store/columns.h"
#include "store/shared_copies.h"

/*
 * Rows of the blocks of a stripe, by columns: one block of bytes without addresses in it.  A block that was
 * looked at has LSNs; of one of these that is not there, some value cannot be read, or its rows were not all
 * visible.
 */
typedef struct GhStripe
{
	uint64		number;			/* never used again */
	Size		bytes;			/* of all of it */
	uint32		there;			/* a bit for each block, as of: */
	uint32		looked_at;
	XLogRecPtr	map_lsn[GH_STRIPE_BLOCKS];	/* the map's page by which it was all-visible */
	XLogRecPtr	heap_lsn[GH_STRIPE_BLOCKS]; /* the page's own; 0: it proves nothing */
	uint32		first[GH_STRIPE_BLOCKS + 1];	/* rows of all blocks before it */
	uint32		lines_at;		/* uint16 by row: its line; 0: of each block they are 1, 2, 3 and so on */
	uint32		ncolumns;
	GhColumn	columns[GH_STORED_COLUMNS_MAX];
	uint32		at[GH_STORED_COLUMNS_MAX];	/* where they are: a GhPackedColumn */
} GhStripe;

/* How often a column was asked for, before any of it was made. */
typedef struct GhAskedColumn
{
	GhColumn	column;
	uint32		times;
	bool		unreadable;		/* of too many blocks: others would lose these */
} GhAskedColumn;

/* The root of a table's columns. */
typedef struct GhStoredColumns
{
	LWLock		lock;			/* guards what follows, and all stripes */
	uint64		last_number;
	uint32		nstripes;
	dsa_pointer stripes;		/* dsa_pointer each, or invalid */
	uint32		nasked;
	GhAskedColumn asked[GH_STORED_COLUMNS_MAX];
} GhStoredColumns;

/* What the columns of a stripe are made in. */
typedef struct GhStripeMaker GhStripeMaker;

struct GhColumnsUse
{
	const GhPages *pages;		/* of the scan */
	MemoryContext context;
	MemoryContextCallback callback;
	GhCopyHold	hold;
	BlockNumber nblocks;
	bool		makes;			/* stripes that lack */
	bool		fills;			/* it is no scan's, but makes all that can be made, each column where it costs no block */
	instr_time	begun;			/* when the first one was looked up */
	instr_time	making;			/* what it took to make some */
	GhStripeMaker *maker;		/* NULL: it made none so far */
	uint32		natts;
	const GhPageAttribute *attributes;
	uint32		ncolumns;
	GhColumn	columns[GH_STORED_COLUMNS_MAX];
	const GhPackedColumn *packed[GH_STORED_COLUMNS_MAX];
	int			places;			/* which of them is where rows are (GH_LOAD_TID); -1: none */
	GhPackedColumn *place_column;	/* its values */
	uint32		map_number;		/* of the map's page that was read last; or InvalidBlockNumber */
	GhMapPage	map;
	uint32		number;			/* of the stripe that was looked up last; or InvalidBlockNumber */
	uint32		fresh;			/* a bit for each of its blocks: these rows are there */
	bool		found;			/* some were, at least once */
	GhStripe   *stripe;			/* a copy of it, with its columns */
	Size		room;			/* bytes for that */
};

/* Of a stripe's blocks, as many have to be gained by making it anew. */
static inline int
gh_gained_min(const GhColumnsUse *use)
{
	return use->fills ? 1 : GH_STRIPE_BLOCKS / 8;
}

static inline BlockNumber
gh_stripe_begin(uint32 number)
{
	return (BlockNumber) number * GH_STRIPE_BLOCKS;
}

/* Two columns are the same where their values are. */
static inline bool
gh_is_same_column(const GhColumn *a, const GhColumn *b)
{
	return memcmp(a, b, sizeof(GhColumn)) == 0;
}

/* The blocks of the stripe that the relation has. */
static inline uint32
gh_stripe_blocks(const GhColumnsUse *use, uint32 number)
{
	return Min((uint32) GH_STRIPE_BLOCKS, use->nblocks - gh_stripe_begin(number));
}

/* The column's number in the stripe; as many as it has: it lacks that one. */
static inline uint32
gh_stripe_column(const GhStripe *stripe, const GhColumn *column)
{
	uint32		s = 0;

	while (s < stripe->ncolumns && !gh_is_same_column(&stripe->columns[s], column))
		s++;
	return s;
}

/* columns_open.c: what was asked for before */
extern void gh_columns_note_unreadable(GhColumnsUse *use, const GhColumn *column);
extern bool gh_columns_is_unreadable(const GhColumnsUse *use, const GhColumn *column);

/* columns.c */
extern void gh_columns_reserve(GhColumnsUse *use, Size bytes);
extern bool gh_columns_publish(GhColumnsUse *use, uint32 number);
extern bool gh_columns_copy_stripe(GhColumnsUse *use, uint32 number, const GhStripe *head);
/* What came of reading a stripe's pages. */
typedef enum GhMade
{
	GH_MADE_NOTHING,
	GH_MADE_SAME,				/* they are those that the stripe is of */
	GH_MADE_STRIPE				/* use->stripe has its columns */
} GhMade;

/* What is to be made. */
typedef enum GhToMake
{
	GH_MAKE_ALL,				/* all anew */
	GH_MAKE_LACKING,			/* columns that it lacks: all that is there is right */
	GH_MAKE_RENEWED				/* it has all columns, but its pages may have changed */
} GhToMake;

/* columns_make.c: the columns of a stripe out of the pages */
extern GhMade gh_columns_make(GhColumnsUse *use, uint32 number, const GhStripe *before, GhToMake what,
							  const XLogRecPtr *map_lsn);

#endif							/* GPUHASH_COLUMNS_USE_H */
