/*
 * touched.h
 *		Copies of an index, and which blocks of the table they are right for (README, "Copies").
 */
#ifndef GPUHASH_INDEX_TOUCHED_H
#define GPUHASH_INDEX_TOUCHED_H

#include "postgres.h"

#include "storage/block.h"
#include "utils/rel.h"

/* Where a copy is: in shared memory, or on a device of that number. */
#define GH_COPY_SHARED (-1)

/* A copy that was begun. */
typedef struct GhCopied
{
	uint64		generation;		/* no two copies have the same */
	BlockNumber nblocks;		/* of the table, at the begin */
} GhCopied;

/* Some blocks of a table, in the order of their numbers. */
#define GH_BLOCK_RUNS 16

typedef struct GhBlockRuns
{
	uint32		n;
	struct
	{
		BlockNumber first;
		BlockNumber count;
	}			runs[GH_BLOCK_RUNS];
} GhBlockRuns;

/* ---- touched.c ---- */

/* Of _PG_init, after the store's. */
extern void gh_touched_init(void);

/* Whether there can be a copy of this index at all: of some a standby has no files. */
extern bool gh_may_be_copied(Relation index, Relation heap);
/*
 * Of whoever copies: from now on it is noted what changes.  Read the leaf pages after it, with a snapshot
 * that is held from before this until the last of them is read: so long no page of the index that was deleted
 * is used for something else.  Whoever does not come to the end calls gh_copy_end.  False: there can be no
 * copy of this index, or its table has too many blocks.  Those of it that were begun before in the same place
 * are right for no block any more, but for the one of the generation `keep`, as far as there is room for
 * both; nor, where there is no room, are those of others that were begun before all others.  One process at a
 * time does that for an index's copy in shared memory (../store/shared_copies.h); of two on a device the
 * first one to begin has made a copy that is right for no block.
 */
extern bool gh_copy_begin(Relation index, Relation heap, int where, uint64 keep, GhCopied *copied);
/*
 * Of a device: the copy is there, for all to look up, and the one before it is right for no block.  False: so
 * is this one by now.
 */
extern bool gh_copy_publish(Relation index, const GhCopied *copied);
/* The copy that a device has, or has had; false: there is none. */
extern bool gh_copy_look_up(Relation index, int where, GhCopied *copied);
/* From now on that one, or none where its generation is 0, is right for no block. */
extern void gh_copy_end(const GhCopied *copied);
/* All of the index are right for no block any more. */
extern void gh_copies_end(Relation index);
/*
 * Sets in bits, of which there are copied->nblocks, those of blocks that the copy is right for: its entries
 * on such a block are the rows of the block that any snapshot sees that the caller has had before.  Returns
 * how many there are; *all_visible, unless NULL: how many of the table's are all-visible, those and new ones
 * among them.
 */
extern BlockNumber gh_copy_blocks(Relation index, Relation heap, const GhCopied *copied, uint32 *bits,
								  BlockNumber *all_visible);

/*
 * Of whoever copies: these blocks had no rows, once it was begun.  The copy is right for them until an entry
 * is made.
 */
extern void gh_copy_note_empty(Relation index, const GhCopied *copied, const GhBlockRuns *runs);

/* Of whoever copies: those blocks whose bit is not set are not the copy's. */
extern void gh_copy_leave_out(Relation index, const GhCopied *copied, const uint32 *bits);

/* Of the access method: there is an entry for a row on that block; and entries were removed. */
extern void gh_touch_inserted(Relation index, BlockNumber block);
extern void gh_touch_removed(Relation index);

/* ---- empty.c ---- */

extern BlockNumber gh_find_empty(Relation heap, BlockNumber nblocks, uint32 *bits, GhBlockRuns *runs);
extern BlockNumber gh_count_visible_or_empty(Relation heap, BlockNumber nblocks);

#endif							/* GPUHASH_INDEX_TOUCHED_H */
