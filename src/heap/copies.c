/*
 * copies.c
 *		Copies of heap tuples, for rows that outlive the pin on their page.
 *
 * A batch's tuples are copied page by page, and all of them are given up together.  The
 * blocks they lie in stay for the next batch: to give the memory back and to get it anew
 * would cost more than the copies.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "heap/copies.h"


/* Bytes of a block; the tuples of a page fit into one. */
#define GH_COPIES_BLOCK ((Size) 128 * 1024)
StaticAssertDecl(GH_COPIES_BLOCK >= BLCKSZ, "a page's tuples fit into a block");

/* Goes on to the next block, which may have to be made. */
static void
next_block(GhTupleCopies *copies, MemoryContext context)
{
	if (copies->nblocks > 0)
		copies->current++;
	copies->used = 0;
	if (copies->current < copies->nblocks)
		return;
	if (copies->nblocks == copies->max_blocks)
	{
		int			max = Max(8, copies->max_blocks * 2);

		copies->blocks = copies->blocks == NULL ?
			MemoryContextAlloc(context, sizeof(char *) * max) :
			repalloc(copies->blocks, sizeof(char *) * max);
		copies->max_blocks = max;
	}
	copies->blocks[copies->nblocks] = MemoryContextAlloc(context, GH_COPIES_BLOCK);
	copies->nblocks++;
}

static char *
take_space(GhTupleCopies *copies, MemoryContext context, Size size)
{
	char	   *space;

	if (copies->nblocks == 0 || GH_COPIES_BLOCK - copies->used < size)
		next_block(copies, context);
	space = copies->blocks[copies->current] + copies->used;
	copies->used += size;
	return space;
}

/*
 * Copies tuples of one page, which lie between low and high, and makes tuples point to
 * the copies.  sizes are in bytes, aligned.  Where most of what lies between is wanted,
 * it is copied as a whole.  Returns the bytes taken.
 */
Size
gh_copy_tuples(GhTupleCopies *copies, MemoryContext context, int ntuples,
			   HeapTupleHeader *tuples, const uint16 *sizes, const char *low,
			   const char *high)
{
	Size		span = high - low;
	Size		sum = 0;
	char	   *to;

	for (int i = 0; i < ntuples; i++)
		sum += sizes[i];
	if (sum >= span / 2)
	{
		to = take_space(copies, context, span);
		memcpy(to, low, span);
		for (int i = 0; i < ntuples; i++)
			tuples[i] = (HeapTupleHeader) (to + ((const char *) tuples[i] - low));
		return span;
	}
	to = take_space(copies, context, sum);
	for (int i = 0; i < ntuples; i++)
	{
		memcpy(to, tuples[i], sizes[i]);
		tuples[i] = (HeapTupleHeader) to;
		to += sizes[i];
	}
	return sum;
}

/* Gives up all copies; their room stays. */
void
gh_forget_copies(GhTupleCopies *copies)
{
	copies->current = 0;
	copies->used = 0;
}
