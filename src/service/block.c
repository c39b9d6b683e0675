/*
 * block.c
 *		Options as one block of bytes: arrays, named by their offsets.
 *
 * The block is what a client writes, so the reader copies it first and holds every offset and size against
 * the copy.
 */
#include "postgres.h"

#include <stdlib.h>

#include "service/block.h"

GhOffset
gh_block_put(char *block, Size *used, const void *array, Size count, Size size)
{
	Size		at = *used;

	if (array == NULL)
		return GH_NO_ARRAY;
	/* what is far too much is refused by its size */
	if (count > GH_BLOCK_BYTES_MAX)
		count = GH_BLOCK_BYTES_MAX;
	if (block != NULL && count > 0)
		memcpy(block + at, array, count * size);
	*used = TYPEALIGN(GH_BLOCK_ALIGNMENT, at + count * size);
	return at;
}

bool
gh_block_find(const void *block, Size bytes, GhOffset offset, uint64 count, Size size, const void **array)
{
	*array = NULL;
	if (offset == GH_NO_ARRAY)
		return true;
	if (offset % GH_BLOCK_ALIGNMENT != 0 || offset > bytes || count > (bytes - offset) / size)
		return false;
	*array = (const char *) block + offset;
	return true;
}

GhStatus
gh_block_copy(const void *from, Size bytes, Size head, void **block, GhError *error)
{
	*block = NULL;
	if (bytes < head || bytes > GH_BLOCK_BYTES_MAX)
		return gh_error_set(error, GH_INVALID, "there is no plan of %zu bytes", bytes);
	*block = aligned_alloc(GH_BLOCK_ALIGNMENT, TYPEALIGN(GH_BLOCK_ALIGNMENT, bytes));
	if (*block == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a plan of %zu bytes", bytes);
	memcpy(*block, from, bytes);
	return GH_OK;
}
