/*
 * copy_maker.h
 *		A copy of an index that is being made: copy.c; copy_share.c: moved into shared memory; copy_device.c: on a device.
 */
#ifndef GPUHASH_INDEX_COPY_MAKER_H
#define GPUHASH_INDEX_COPY_MAKER_H

#include "postgres.h"

#include "utils/rel.h"

#include "expr/translate.h"
#include "index/touched.h"
#include "store/index_copies.h"

/* Rows that enter the table together, and that are gone through without a look at interrupts. */
#define GH_COPY_BATCH 32768

/* A copy under way. */
typedef struct GhCopyMaker
{
	Relation	index;
	Relation	heap;
	int			where;			/* GH_COPY_SHARED, or a device */
	GhCopyStop	stop;			/* or NULL */
	GhCopyHold	hold;
	MemoryContext context;
	GhProgram  *program;		/* vector 0 is the key, 1 + c column c */
	int			ncolumns;
	int			nkeys;
	GhCopyColumn columns[GH_COPY_COLUMNS_MAX];
	int			sources[GH_COPY_COLUMNS_MAX];	/* by column: which of the index's, from 0 */
	GhKept		kept[GH_COPY_COLUMNS_MAX];	/* the table's */
	int			nkept;

	GhCopied	copied;
	GhCopied	in_use;			/* generation: of the copy that there was at the begin; 0: there was none */
	uint32	   *bits;			/* of blocks that were all-visible at the begin: others are left out */

	/* entries that have been read */
	uint64		rows;
	uint64		room;
	bool		descends;		/* some key is less than the one before */
	uint32	   *blocks;
	uint64	   *keys;
	GhVector	vectors[GH_COPY_COLUMNS_MAX];	/* high: NULL, where there is none */
	uint64		nulls[GH_COPY_COLUMNS_MAX];
	char	   *text;			/* where the next one goes */
	Size		text_room;
	Size		text_bytes;		/* of all */
	MemoryContext unpacked;
} GhCopyMaker;

/* ---- copy.c: what a maker begins with, and, in recovery, ends with ---- */

extern bool gh_copy_maker_may(GhCopyMaker *maker);
extern bool gh_copy_maker_begin(GhCopyMaker *maker, bool *later);
extern bool gh_copy_maker_asks_again(GhCopyMaker *maker);

/* ---- copy_device.c ---- */

/* GhIndexCopyMethods.make_on_device */
extern bool gh_copy_make_on_device(Relation index, Relation heap, int device, GhCopyStop stop);

/* ---- copy_share.c ---- */

/* All entries, as the copy has them; false: there is no memory. */
extern bool gh_copy_share(GhCopyMaker *maker);

#endif							/* GPUHASH_INDEX_COPY_MAKER_H */
