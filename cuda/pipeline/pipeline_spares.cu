/*
 * pipeline_spares.cu
 *		Small blocks of device memory that pipelines leave for those after them: what each has for its plan and its groups.
 *
 * To free device memory waits for all that runs on the device, of all pipelines; so with many short ones at a
 * time it is what they wait for.  Blocks are as large as powers of two, so that those of one pipeline fit the
 * next one.  A pipeline's budget has what it asked for; while a block is nobody's its memory is taken from
 * the budget of GhHost.lasting, and where a host has none, or there are enough, it is freed.  spares_lock
 * guards what is kept.
 */
#include <pthread.h>

#include "cuda/pipeline/pipeline.cuh"

#define SPARES_KEPT 512
#define SPARE_BYTES_MIN ((uint64_t) 4096)
#define SPARE_BYTES_MAX ((uint64_t) 4 << 20)
/* Of all together. */
#define SPARES_BYTES_MAX ((uint64_t) 256 << 20)

struct spare_block
{
	char	   *memory;
	uint64_t	room;
	int			device;
	const GhHost *lasting;
};

static pthread_mutex_t spares_lock = PTHREAD_MUTEX_INITIALIZER;
static spare_block spares[SPARES_KEPT];
static uint32_t nspares;
static uint64_t spare_bytes;

uint64_t
spare_room(const pipe_memory *memory, uint64_t bytes)
{
	uint64_t	room = SPARE_BYTES_MIN;

	if (memory->host.lasting == nullptr || bytes == 0 || bytes > SPARE_BYTES_MAX)
		return 0;
	while (room < bytes)
		room *= 2;
	return room;
}

/* The last one that was left. */
char *
spare_take(const pipe_memory *memory, uint64_t room)
{
	spare_block found = {};

	(void) pthread_mutex_lock(&spares_lock);
	for (uint32_t i = nspares; i > 0 && found.memory == nullptr; i--)
		if (spares[i - 1].device == memory->device && spares[i - 1].room == room)
		{
			found = spares[i - 1];
			spares[i - 1] = spares[--nspares];
			spare_bytes -= room;
		}
	(void) pthread_mutex_unlock(&spares_lock);
	if (found.memory != nullptr)
		budget_give(found.lasting, room);
	return found.memory;
}

/* Whether it is kept. */
static bool
keep_block(const spare_block *spare)
{
	bool		kept;

	(void) pthread_mutex_lock(&spares_lock);
	kept = nspares < SPARES_KEPT && spare_bytes + spare->room <= SPARES_BYTES_MAX;
	if (kept)
	{
		spares[nspares++] = *spare;
		spare_bytes += spare->room;
	}
	(void) pthread_mutex_unlock(&spares_lock);
	return kept;
}

void
spare_leave(pipe_memory *memory, bool limited, pipe_block *block)
{
	const GhHost *lasting = memory->host.lasting;
	spare_block spare = {block->memory, block->room, memory->device, lasting};

	if (block->memory == nullptr)
		return;
	if (block->room == 0 || memory->failed || lasting == nullptr || !budget_take(lasting, block->room))
	{
		pipe_free(memory, limited, block);
		return;
	}
	if (!keep_block(&spare))
	{
		budget_give(lasting, block->room);
		pipe_free(memory, limited, block);
		return;
	}
	*(limited ? &memory->bytes : &memory->work_bytes) -= block->bytes;
	budget_give(&memory->host, block->bytes);
	*block = {};
}

bool
spares_free(void)
{
	bool		any = false;
	spare_block spare;

	do
	{
		spare = {};
		(void) pthread_mutex_lock(&spares_lock);
		if (nspares > 0)
		{
			spare = spares[--nspares];
			spare_bytes -= spare.room;
		}
		(void) pthread_mutex_unlock(&spares_lock);
		if (spare.memory == nullptr)
			break;
		if (device_release(spare.memory) != cudaSuccess)
			(void) cudaGetLastError();
		budget_give(spare.lasting, spare.room);
		any = true;
	} while (true);
	return any;
}
