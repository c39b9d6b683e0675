/*
 * pipeline_kits.cu
 *		What the lanes of pipelines leave for those after them: streams, events, page-locked memory, and the memory that
 *		batches are worked on in.
 *
 * To make all that takes longer than to read a small table, and to free device memory waits for all that runs
 * on the device.  So a lane takes its kit from a pipeline before it, if one has left some, the last one
 * first.
 *
 * Memory that is kept is taken from the budget of GhHost.lasting; where a host has none it is not kept.  It
 * is freed when there would be too little for anybody else (device_spare_with).  The kits of a pipeline whose
 * device failed are not kept.  Other threads take and leave kits at the same time: kits_lock guards what is
 * kept.
 */
#include <pthread.h>

#include "cuda/pipeline/pipeline.cuh"

#define KITS_KEPT 256
#define KEPT_BYTES_MAX ((uint64_t) 2 << 30) /* of device memory */
#define KEPT_INPUT_MAX ((size_t) 16 << 20)	/* of page-locked memory, each */

struct kept_kit
{
	lane_kit	kit;
	int			device;
	const GhHost *lasting;		/* whose budget its memory is taken from; NULL: it has none */
};

static pthread_mutex_t kits_lock = PTHREAD_MUTEX_INITIALIZER;
static kept_kit kept[KITS_KEPT];
static uint32_t nkept;
static uint64_t kept_bytes;

/* -------------------------------------------------------------------- memory */

static void
free_kept(const GhHost *lasting, pipe_block *block)
{
	if (block->memory == nullptr)
		return;
	if (device_release(block->memory) != cudaSuccess)
		(void) cudaGetLastError();
	budget_give(lasting, block->bytes);
	*block = {};
}

/* Frees all memory that is kept; false: there is none. */
static bool
free_spare(void)
{
	kept_kit	spare[KITS_KEPT];
	uint32_t	count;
	uint64_t	bytes;

	(void) pthread_mutex_lock(&kits_lock);
	count = nkept;
	bytes = kept_bytes;
	for (uint32_t i = 0; i < count; i++)
	{
		spare[i] = kept[i];
		kept[i].kit.batch_block = kept[i].kit.input_block = {};
	}
	kept_bytes = 0;
	(void) pthread_mutex_unlock(&kits_lock);
	for (uint32_t i = 0; i < count; i++)
	{
		free_kept(spare[i].lasting, &spare[i].kit.batch_block);
		free_kept(spare[i].lasting, &spare[i].kit.input_block);
	}
	return spares_free() || bytes > 0;
}

/* The block is the pipeline's from here on, unless its budget has no room for it. */
static void
adopt_block(pipe_memory *memory, const GhHost *lasting, pipe_block *block)
{
	if (block->memory == nullptr)
		return;
	budget_give(lasting, block->bytes);
	if (memory->host.take_device == nullptr || memory->host.take_device(memory->host.ctx, block->bytes))
	{
		memory->work_bytes += block->bytes;
		return;
	}
	if (device_release(block->memory) != cudaSuccess)
		(void) cudaGetLastError();
	*block = {};
}

/* The block is kept, or freed. */
static void
leave_block(pipe_memory *memory, pipe_block *block, uint64_t *bytes)
{
	const GhHost *lasting = memory->host.lasting;

	if (block->memory == nullptr || memory->failed || lasting == nullptr || *bytes + block->bytes > KEPT_BYTES_MAX)
	{
		pipe_free(memory, false, block);
		return;
	}
	memory->work_bytes -= block->bytes;
	budget_give(&memory->host, block->bytes);
	if (lasting->take_device == nullptr || lasting->take_device(lasting->ctx, block->bytes))
	{
		*bytes += block->bytes;
		return;
	}
	if (device_release(block->memory) != cudaSuccess)
		(void) cudaGetLastError();
	*block = {};
}

/* ---------------------------------------------------------------------- kits */

static void
kit_destroy(lane_kit *kit)
{
	if (kit->host_input != nullptr)
		(void) cudaFreeHost(kit->host_input);
	if (kit->host_counters != nullptr)
		(void) cudaFreeHost(kit->host_counters);
	if (kit->read != nullptr)
		(void) cudaEventDestroy(kit->read);
	if (kit->done != nullptr)
		(void) cudaEventDestroy(kit->done);
	if (kit->stream != nullptr)
		(void) cudaStreamDestroy(kit->stream);
	(void) cudaGetLastError();
	*kit = {};
}

static GhStatus
kit_create(pipe_memory *memory, lane_kit *kit, GhError *error)
{
	void	   *counters = nullptr;

	/* not ordered with the default stream, which nobody here uses */
	PIPE_TRY(memory, cudaStreamCreateWithFlags(&kit->stream, cudaStreamNonBlocking), error);
	PIPE_TRY(memory, cudaEventCreateWithFlags(&kit->read, cudaEventDisableTiming), error);
	PIPE_TRY(memory, cudaEventCreateWithFlags(&kit->done, cudaEventDisableTiming), error);
	if (cudaHostAlloc(&counters, sizeof(pipe_counters), cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return gh_error_set(error, GH_NO_MEMORY, "CUDA device %d locks no memory", memory->device);
	}
	kit->host_counters = static_cast<pipe_counters *>(counters);
	return GH_OK;
}

/* The last one that was left on this device; false: there is none. */
static bool
kit_find(int device, kept_kit *found)
{
	uint32_t	at;

	(void) pthread_mutex_lock(&kits_lock);
	for (at = nkept; at > 0 && kept[at - 1].device != device; at--)
		;
	if (at > 0)
	{
		*found = kept[at - 1];
		kept_bytes -= found->kit.batch_block.bytes + found->kit.input_block.bytes;
		nkept--;
		for (uint32_t i = at - 1; i < nkept; i++)
			kept[i] = kept[i + 1];
	}
	(void) pthread_mutex_unlock(&kits_lock);
	return at > 0;
}

GhStatus
kit_take(pipe_memory *memory, lane_kit *kit, GhError *error)
{
	kept_kit	found;

	*kit = {};
	if (!kit_find(memory->device, &found))
		return kit_create(memory, kit, error);
	*kit = found.kit;
	adopt_block(memory, found.lasting, &kit->batch_block);
	adopt_block(memory, found.lasting, &kit->input_block);
	return GH_OK;
}

void
kit_leave(pipe_memory *memory, lane_kit *kit)
{
	bool		whole = kit->host_counters != nullptr;
	bool		taken = false;
	uint64_t	before;
	uint64_t	bytes;

	(void) pthread_mutex_lock(&kits_lock);
	before = bytes = kept_bytes;
	(void) pthread_mutex_unlock(&kits_lock);
	leave_block(memory, &kit->batch_block, &bytes);
	leave_block(memory, &kit->input_block, &bytes);
	if (kit->host_input_bytes > KEPT_INPUT_MAX)
	{
		(void) cudaFreeHost(kit->host_input);
		kit->host_input = nullptr;
		kit->host_input_bytes = 0;
	}
	(void) pthread_mutex_lock(&kits_lock);
	if (whole && !memory->failed && nkept < KITS_KEPT)
	{
		kept[nkept++] = {*kit, memory->device, memory->host.lasting};
		kept_bytes += bytes - before;
		taken = true;
	}
	(void) pthread_mutex_unlock(&kits_lock);
	if (taken)
	{
		device_spare_with(free_spare);
		*kit = {};
		return;
	}
	if (bytes > before)
	{
		free_kept(memory->host.lasting, &kit->batch_block);
		free_kept(memory->host.lasting, &kit->input_block);
	}
	kit_destroy(kit);
}

void
kits_give_back(void)
{
	kept_kit	found;

	(void) free_spare();
	for (;;)
	{
		(void) pthread_mutex_lock(&kits_lock);
		found = {};
		if (nkept > 0)
		{
			found = kept[--nkept];
			kept_bytes -= found.kit.batch_block.bytes + found.kit.input_block.bytes;
		}
		(void) pthread_mutex_unlock(&kits_lock);
		if (found.kit.stream == nullptr)
			return;
		/* memory that another thread has left meanwhile */
		free_kept(found.lasting, &found.kit.batch_block);
		free_kept(found.lasting, &found.kit.input_block);
		kit_destroy(&found.kit);
	}
}
