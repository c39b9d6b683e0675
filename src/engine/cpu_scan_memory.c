/*
 * cpu_scan_memory.c
 *		Memory of a scan on the CPU: taken from the host under the scan's limit.
 */
#include "cpu_scan.h"

#define TEXTS_MIN 4096			/* bytes */

/* Memory within the limit; ref 0: there is none. */
GhCpuBlock
gh_cpu_block_take(GhCpuScanMemory *memory, uint64_t bytes)
{
	GhCpuBlock	block = {0, bytes};

	if (memory->limit != 0 && (bytes > memory->limit || memory->bytes > memory->limit - bytes))
		return block;
	block.ref = memory->host.alloc(memory->host.ctx, bytes);
	if (block.ref == 0)
		return block;
	memory->bytes += bytes;
	if (memory->bytes > memory->bytes_peak)
		memory->bytes_peak = memory->bytes;
	return block;
}

void
gh_cpu_block_give(GhCpuScanMemory *memory, GhCpuBlock block)
{
	if (block.ref == 0)
		return;
	memory->host.free(memory->host.ctx, block.ref);
	memory->bytes -= block.bytes;
}

void *
gh_cpu_block_address(const GhCpuScanMemory *memory, GhCpuBlock block)
{
	return memory->host.address(memory->host.ctx, block.ref);
}

/* Room for so many more bytes; false: there is no memory. */
bool
gh_cpu_texts_reserve(GhCpuScanMemory *memory, GhCpuTexts *texts, uint64_t bytes)
{
	uint64_t	room = texts->room == 0 ? TEXTS_MIN : texts->room;
	GhCpuBlock	block;
	char	   *place;

	if (bytes <= texts->room - texts->used)
		return true;
	while (room - texts->used < bytes)
		room *= 2;
	block = gh_cpu_block_take(memory, room);
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
