/*
 * copies.h
 *		copies.c: tuples that have left their page.
 */
#ifndef GPUHASH_COPIES_H
#define GPUHASH_COPIES_H

#include "postgres.h"

#include "access/htup.h"

/* Blocks that copies of tuples are put into, one after the other. */
typedef struct GhTupleCopies
{
	int			nblocks;
	int			max_blocks;
	char	  **blocks;
	int			current;		/* the block that is being filled */
	Size		used;			/* bytes of it */
} GhTupleCopies;

extern Size gh_copy_tuples(GhTupleCopies *copies, MemoryContext context, int ntuples,
						   HeapTupleHeader *tuples, const uint16 *sizes,
						   const char *low, const char *high);
extern void gh_forget_copies(GhTupleCopies *copies);

#endif							/* GPUHASH_COPIES_H */
