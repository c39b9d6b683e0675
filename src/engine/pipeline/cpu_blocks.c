/*
 * cpu_blocks.c
 *		Memory of a sink on the CPU: taken from the host under the sink's limit.
 */
#include "engine/pipeline/cpu_blocks.h"

#define TEXTS_MIN 4096			/* bytes */
#define WORTH_PART 8			/* near the limit of memory, room for less than such a part more is none */

static void
lock(const GhCpuSinkMemory *memory)
{
	if (memory->host.lock != NULL)
		memory->host.lock(memory->host.ctx, GH_LOCK_EXCLUSIVE);
}

static void
unlock(const GhCpuSinkMemory *memory)
{
	if (memory->host.unlock != NULL)
		memory->host.unlock(memory->host.ctx);
}

static bool
passes(uint64_t limit, uint64_t taken, uint64_t bytes)
{
	return limit != 0 && (bytes > limit || taken > limit - bytes);
}

static void
count(uint64_t *taken, uint64_t *peak, uint64_t bytes)
{
	*taken += bytes;
	if (*taken > *peak)
		*peak = *taken;
}

/* Memory within the limit; ref 0: there is none.  A host that several processes have is locked meanwhile. */
GhCpuBlock
gh_cpu_block_take(GhCpuSinkMemory *memory, uint64_t bytes)
{
	GhCpuBlock	block = {0, bytes};
	GhCpuTaken *common = memory->common;

	if (passes(memory->limit, memory->bytes, bytes))
		return block;
	lock(memory);
	if (common == NULL || !passes(common->limit, common->bytes, bytes))
		block.ref = memory->host.alloc(memory->host.ctx, bytes);
	if (block.ref != 0)
	{
		count(&memory->bytes, &memory->bytes_peak, bytes);
		if (common != NULL)
			count(&common->bytes, &common->bytes_peak, bytes);
	}
	unlock(memory);
	return block;
}

/* The same in the place of a block, which goes when it was moved and does not count beside it. */
GhCpuBlock
gh_cpu_block_take_instead(GhCpuSinkMemory *memory, GhCpuBlock old, uint64_t bytes)
{
	uint64_t	limit = memory->limit;
	GhCpuBlock	block;

	if (limit != 0 && old.ref != 0)
		memory->limit += old.bytes;
	block = gh_cpu_block_take(memory, bytes);
	memory->limit = limit;
	return block;
}

void
gh_cpu_block_give(GhCpuSinkMemory *memory, GhCpuBlock block)
{
	if (block.ref == 0)
		return;
	lock(memory);
	memory->host.free(memory->host.ctx, block.ref);
	memory->bytes -= block.bytes;
	if (memory->common != NULL)
		memory->common->bytes -= block.bytes;
	unlock(memory);
}

void *
gh_cpu_block_address(const GhCpuSinkMemory *memory, GhCpuBlock block)
{
	return memory->host.address(memory->host.ctx, block.ref);
}

/* The room that the limit leaves, where twice as much does not fit; 0: it is not worth the texts' being moved. */
static uint64_t
room_to_limit(const GhCpuSinkMemory *memory, const GhCpuTexts *texts)
{
	uint64_t	others = memory->bytes - texts->block.bytes;
	uint64_t	room = memory->limit > others ? memory->limit - others : 0;

	return room > texts->room && room - texts->room >= texts->room / WORTH_PART ? room : 0;
}

/* Room for so many more bytes; false: there is no memory. */
bool
gh_cpu_texts_reserve(GhCpuSinkMemory *memory, GhCpuTexts *texts, uint64_t bytes)
{
	uint64_t	room = texts->room == 0 ? TEXTS_MIN : texts->room;
	GhCpuBlock	block;
	char	   *place;

	if (bytes <= texts->room - texts->used)
		return true;
	while (room - texts->used < bytes)
		room *= 2;
	block = gh_cpu_block_take_instead(memory, texts->block, room);
	if (block.ref == 0)
	{
		room = room_to_limit(memory, texts);
		if (room < texts->used + bytes)
			return false;
		block = gh_cpu_block_take_instead(memory, texts->block, room);
	}
	if (block.ref == 0)
		return false;
	place = gh_cpu_block_address(memory, block);
	if (texts->used > 0)
		memcpy(place, texts->bytes, texts->used);
	gh_cpu_block_give(memory, texts->block);
	texts->bytes = place;
	texts->room = room;
	texts->block = block;
	return true;
}

uint64_t
gh_cpu_texts_add(GhCpuTexts *texts, uint64_t low, uint64_t high)
{
	uint64_t	at = texts->used;

	if (high > 0)
		memcpy(texts->bytes + at, (const char *) (uintptr_t) low, high);
	texts->used += high;
	return at;
}
