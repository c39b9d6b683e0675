/*
 * block.h
 *		Options as one block of bytes without addresses, for the way from a session to a worker: a head, then
 *		arrays, each at a multiple of 16 and named by its offset.
 */
#ifndef GPUHASH_SERVICE_BLOCK_H
#define GPUHASH_SERVICE_BLOCK_H

#include "service/shared.h"

/* The most bytes of a block: a program, and arrays that are small beside it. */
#define GH_BLOCK_BYTES_MAX (2 * (Size) GH_PROGRAM_BYTES_MAX)
#define GH_BLOCK_ALIGNMENT 16

/*
 * Puts an array behind what is there, and returns where; GH_NO_ARRAY of one that is NULL.  Without a block it
 * is only counted; of too many elements so that *used is more than any block has.
 */
extern GhOffset gh_block_put(char *block, Size *used, const void *array, Size count, Size size);
/* An array of a block that no other can change; false: it is not in there. */
extern bool gh_block_find(const void *block, Size bytes, GhOffset offset, uint64 count, Size size,
						  const void **array);
/*
 * A copy, to be free()d, of a block that others may change, with a head of so many bytes.  Called by threads.
 */
extern GhStatus gh_block_copy(const void *from, Size bytes, Size head, void **block, GhError *error);

#endif							/* GPUHASH_SERVICE_BLOCK_H */
