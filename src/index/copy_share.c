/*
 * copy_share.c
 *		The entries of a copy of an index, moved into the shared memory that it has: texts, keys, columns, and which entries are on which
 *		block of the table (copy.c).
 */
#include "postgres.h"

#include "miscadmin.h"

#include "index/copy_maker.h"
#include "service/progress.h"

/* Shared memory with these bytes; false: there is none. */
static bool
share(GhCopyMaker *maker, const void *from, Size bytes, dsa_pointer *to)
{
	if (!gh_shared_copy_alloc(&maker->hold, bytes, to))
		return false;
	if (from != NULL)
		memcpy(dsa_get_address(maker->hold.area, *to), from, bytes);
	return true;
}

/* Texts one behind the other; where they are becomes their place there. */
static bool
share_texts(GhCopyMaker *maker)
{
	char	   *texts;
	Size		at = 0;

	if (!share(maker, NULL, maker->text_bytes, &maker->hold.copy->texts))
		return false;
	texts = dsa_get_address(maker->hold.area, maker->hold.copy->texts);
	for (int c = 0; c < maker->ncolumns; c++)
	{
		GhVector   *vector = &maker->vectors[c];

		for (uint64 row = 0; maker->columns[c].held.value_class == GH_CLASS_TEXT && row < maker->rows; row++)
		{
			memcpy(texts + at, (const void *) (uintptr_t) vector->low[row], vector->high[row]);
			vector->low[row] = at;
			at += vector->high[row];
		}
	}
	return true;
}

/* Which entries are on which block, those of one in the order of the index. */
static bool
share_order(GhCopyMaker *maker)
{
	GhIndexCopy *copy = maker->hold.copy;
	Size		nstarts = (Size) maker->copied.nblocks + 1;
	uint32	   *order;
	uint32	   *starts;
	uint32		before = 0;

	if (!share(maker, NULL, maker->rows * sizeof(uint32), &copy->order) ||
		!share(maker, NULL, nstarts * sizeof(uint32), &copy->starts))
		return false;
	order = dsa_get_address(maker->hold.area, copy->order);
	starts = dsa_get_address(maker->hold.area, copy->starts);
	memset(starts, 0, nstarts * sizeof(uint32));
	for (uint64 row = 0; row < maker->rows; row++)
	{
		if (row % GH_COPY_BATCH == 0)
			CHECK_FOR_INTERRUPTS();
		starts[maker->blocks[row]]++;
	}
	for (BlockNumber block = 0; block < maker->copied.nblocks; block++)
	{
		uint32		count = starts[block];

		starts[block] = before;
		before += count;
	}
	/* each start moves to its end, which is the next one's start */
	for (uint64 row = 0; row < maker->rows; row++)
	{
		if (row % GH_COPY_BATCH == 0)
			CHECK_FOR_INTERRUPTS();
		order[starts[maker->blocks[row]]++] = (uint32) row;
	}
	memmove(starts + 1, starts, maker->copied.nblocks * sizeof(uint32));
	starts[0] = 0;
	return true;
}

bool
gh_copy_share(GhCopyMaker *maker)
{
	GhIndexCopy *copy = maker->hold.copy;
	Size		bytes = maker->rows * sizeof(uint64);

	gh_progress_phase(GH_PROGRESS_SHARES, 0);
	if (!share_texts(maker) || !share_order(maker) ||
		!share(maker, maker->blocks, maker->rows * sizeof(uint32), &copy->blocks) ||
		!share(maker, maker->keys, bytes, &copy->keys))
		return false;
	for (int c = 0; c < maker->ncolumns; c++)
	{
		GhCopyColumn *column = &maker->columns[c];
		const GhVector *vector = &maker->vectors[c];

		if (!share(maker, vector->low, bytes, &column->low) ||
			(vector->high != NULL && !share(maker, vector->high, bytes, &column->high)) ||
			(maker->nulls[c] > 0 && !share(maker, vector->null, maker->rows, &column->null)))
			return false;
	}
	copy->rows = maker->rows;
	copy->text_bytes = maker->text_bytes;
	copy->ascending = !maker->descends;
	copy->nkeys = maker->nkeys;
	copy->ncolumns = maker->ncolumns;
	memcpy(copy->columns, maker->columns, sizeof(GhCopyColumn) * maker->ncolumns);
	return true;
}
