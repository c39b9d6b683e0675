/*
 * index_copies.c
 *		Copies of indexes: what the room of the access method does for those who use them, which it registers here, and what
 *		the planner sees of them.
 */
#include "postgres.h"

#include "access/xlog.h"

#include "heap/pages.h"
#include "store/index_copies.h"
#include "store/index_wanted.h"

static const GhIndexCopyMethods *methods = NULL;

void
gh_index_copies_register(const GhIndexCopyMethods *those)
{
	methods = those;
}

const GhIndexCopyMethods *
gh_index_copy_methods(void)
{
	return methods;
}

bool
gh_index_copy_look(Relation index, GhIndexCopy *copy, int *place)
{
	GhCopyFacts facts;

	if (!gh_shared_copy_look(GH_COPY_OF_INDEX, index, &facts))
		return false;
	copy->rows = facts.rows;
	copy->generation = facts.generation;
	copy->nblocks = facts.nblocks;
	*place = facts.place;
	return true;
}

void
gh_copy_ask_blocks(Relation index, Relation heap, const GhIndexCopy *copy, BlockNumber nblocks, GhCopyBlocks *blocks)
{
	BlockNumber visible;

	blocks->copied = copy->nblocks;
	blocks->nblocks = nblocks;
	blocks->bits = palloc0((copy->nblocks / GH_COPY_BITS + 1) * sizeof(uint32));
	blocks->right = methods->blocks(index, heap, copy, blocks->bits, &visible);
	blocks->stale = visible - blocks->right;
	for (BlockNumber block = nblocks; block < copy->nblocks; block++)
		if (gh_copy_is_right(blocks, block))
		{
			blocks->bits[block / GH_COPY_BITS] &= ~((uint32) 1 << block % GH_COPY_BITS);
			blocks->right--;
		}
}

/* Of the table's blocks, that are all-visible, and that the copy is only not right for any more. */
#define GH_STALE_SHARE(nblocks) ((nblocks) / 10)

bool
gh_copy_is_right_on_device(Relation index, Relation heap, int device, GhIndexCopy *copy, GhCopyBlocks *blocks)
{
	if (!methods->look_up_on_device(index, device, &copy->generation, &copy->nblocks))
		return false;
	gh_copy_ask_blocks(index, heap, copy, RelationGetNumberOfBlocks(heap), blocks);
	return blocks->right > 0 && blocks->stale == 0;
}

bool
gh_copy_is_stale(const GhCopyBlocks *blocks)
{
	return blocks->stale > GH_STALE_SHARE(blocks->nblocks) || blocks->right == 0;
}

void
gh_copy_make_again_on_device(Relation index, const GhCopyBlocks *blocks)
{
	if (gh_copy_is_stale(blocks) && !RecoveryInProgress())
		gh_index_want(RelationGetRelid(index));
}

bool
gh_copy_make_again(Relation index, const GhCopyBlocks *blocks)
{
	if (!gh_copy_is_stale(blocks) ||
		!gh_shared_copy_is_due(GH_COPY_OF_INDEX, index))
		return false;
	if (RecoveryInProgress())
		return true;
	gh_index_want(RelationGetRelid(index));
	return false;
}

uint32
gh_copy_count_right(void *blocks, BlockNumber block)
{
	uint32		count = 0;

	while (count < GH_PAGES_AHEAD_MAX && gh_copy_is_right(blocks, block + count))
		count++;
	return count;
}

BlockNumber
gh_copy_next_stale(const GhCopyBlocks *blocks, BlockNumber block)
{
	while (block < blocks->copied && gh_copy_is_right(blocks, block))
		block += block % GH_COPY_BITS == 0 && blocks->bits[block / GH_COPY_BITS] == PG_UINT32_MAX ? GH_COPY_BITS : 1;
	return Min(block, blocks->copied);
}

uint64
gh_copy_stale_rows(const GhCopyHold *hold, const GhCopyBlocks *blocks)
{
	const uint32 *starts = gh_copy_address(hold, hold->copy->starts);
	uint64		rows = 0;

	for (BlockNumber block = gh_copy_next_stale(blocks, 0); block < blocks->copied;
		 block = gh_copy_next_stale(blocks, block + 1))
		rows += starts[block + 1] - starts[block];
	return rows;
}
