/*
 * device_copy.h
 *		The copy of an index as the table of a join on a device: what device_copy.c and device_apart.c share.
 */
#ifndef GPUHASH_FRAGMENT_DEVICE_COPY_H
#define GPUHASH_FRAGMENT_DEVICE_COPY_H

#include "postgres.h"

#include "fragment/inner_side.h"
#include "store/index_copies.h"

/* Of the host for a row that is read, beside its values, at most about. */
#define GH_READ_ROW_BYTES 64

/* A row of a block that the copy is not right for, by the copy's columns. */
typedef struct GhReadRow
{
	struct GhReadRow *next;
	Datum	   *values;			/* as the programs that tell keys apart have them */
	bool	   *nulls;
} GhReadRow;

typedef struct GhCopyReader
{
	GhFragment *fragment;
	GhDeviceTable *table;
	const GhInnerSide *side;
	Relation	index;
	GhIndexCopy copy;			/* the one on the device: its columns, generation, blocks */
	GhCopyBlocks blocks;
	/* what has changed */
	GhProgram  *program;		/* vector c is column c; behind them the block */
	GhKeyPart	parts[GH_COPY_KEYS_MAX];
	GhKeyPart	block;
	GhKeyPart	nothing;		/* a constant, by which nothing is looked up */
	GhMarks    *marks;			/* none is set: all rows of the table are without a match */
	GhTable    *stale;			/* blocks that the copy is not right for and has entries on; NULL: there are none */
	GhSupply   *keys;			/* its groups are the changed keys */
	GhReadRow  *rows;			/* that were read */
	uint64		nrows;
} GhCopyReader;

/* Blocks of the table that the copy is not right for. */
static inline BlockNumber
gh_copy_other_blocks(const GhCopyReader *reader)
{
	return reader->blocks.nblocks - reader->blocks.right;
}

/* ---- device_apart.c ---- */

/*
 * Makes the tables of what has changed (GhDeviceTable.changed, instead), in the run's context; the copy's is
 * there.  Or the copy is not used, or the table's supply has failed.
 */
extern GhCopyTable gh_device_tell_apart(GhCopyReader *reader);

#endif							/* GPUHASH_FRAGMENT_DEVICE_COPY_H */
