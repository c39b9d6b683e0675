/*
 * worker_memory.c
 *		What engines in a worker ask of their host: memory, on the device and page-locked within the limits for all; and how
 *		much of the device's is left.
 *
 * Called by threads.
 */
#include "postgres.h"

#include <pthread.h>
#include <stdlib.h>

#include "host.h"
#include "service/threads.h"

/* So long what the device has said of its memory is good. */
#define GH_MEMORY_ASKED_NS UINT64CONST(1000000000)

static GhRef
host_alloc(void *ctx, size_t bytes)
{
	(void) ctx;
	bytes = (bytes + GH_HOST_ALIGNMENT - 1) / GH_HOST_ALIGNMENT * GH_HOST_ALIGNMENT;
	return (GhRef) (uintptr_t) aligned_alloc(GH_HOST_ALIGNMENT, bytes);
}

static void
host_free(void *ctx, GhRef ref)
{
	(void) ctx;
	free((void *) (uintptr_t) ref);
}

static void *
host_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

/* Of the limit, what the engine may keep from one pipeline to the next. */
#define GH_KEPT_SHARE 8

/* Bytes that are kept; of all threads. */
static uint64 bytes_kept;

/* Counts bytes within a limit. */
static bool
take_within(pg_atomic_uint64 *counted, uint64 limit, uint64 bytes)
{
	uint64		used = pg_atomic_read_u64(counted);

	do
	{
		if (used > limit || bytes > limit - used)
			return false;
	} while (!pg_atomic_compare_exchange_u64(counted, &used, used + bytes));
	return true;
}

/* Device memory within the limit for all. */
static bool
take_bytes(uint64 bytes)
{
	return take_within(&gh_worker.device->memory_used, pg_atomic_read_u64(&gh_worker.device->memory_limit), bytes);
}

static void
give_bytes(uint64 bytes)
{
	pg_atomic_fetch_sub_u64(&gh_worker.device->memory_used, (int64) bytes);
}

static void
give_lasting(void *ctx, uint64_t bytes)
{
	(void) ctx;
	(void) __atomic_fetch_sub(&bytes_kept, bytes, __ATOMIC_RELAXED);
	give_bytes(bytes);
}

static bool
take_lasting(void *ctx, uint64_t bytes)
{
	uint64		kept = __atomic_add_fetch(&bytes_kept, bytes, __ATOMIC_RELAXED);

	(void) ctx;
	if (kept <= pg_atomic_read_u64(&gh_worker.device->memory_limit) / GH_KEPT_SHARE && take_bytes(bytes))
		return true;
	(void) __atomic_fetch_sub(&bytes_kept, bytes, __ATOMIC_RELAXED);
	return false;
}

/* What the engine keeps is nobody's. */
static const GhHost lasting_host = {
	.take_device = take_lasting,
	.give_device = give_lasting,
};

/* The same, counted for the table. */
static bool
take_device(void *ctx, uint64_t bytes)
{
	GhWorkerTable *table = ctx;
	GhError		ignored;

	if (gh_table_entry_at(table->number)->kind != GH_ENTRY_SPAN)
		gh_spans_make_room(bytes, table->number % GH_EXECUTORS);
	if (gh_executor_pass_point(GH_FAULT_POINT_ALLOCATION, &ignored) != GH_OK || !take_bytes(bytes))
		return false;
	pg_atomic_fetch_add_u64(&gh_table_entry_at(table->number)->bytes, (int64) bytes);
	return true;
}

static void
give_device(void *ctx, uint64_t bytes)
{
	GhWorkerTable *table = ctx;

	give_bytes(bytes);
	pg_atomic_fetch_sub_u64(&gh_table_entry_at(table->number)->bytes, (int64) bytes);
}

/* What resident pages have is somebody's, too, though they would give way. */
static bool
spare_device(void *ctx, uint64_t bytes)
{
	uint64		limit = pg_atomic_read_u64(&gh_worker.device->memory_limit);
	uint64		used = pg_atomic_read_u64(&gh_worker.device->memory_used);

	(void) ctx;
	/* as it was noted last */
	return used <= limit && bytes <= limit - used && bytes <= gh_worker.device->info.memory_free;
}

static bool
take_paged(void *ctx, uint64_t bytes)
{
	GhError		ignored;

	(void) ctx;
	return gh_executor_pass_point(GH_FAULT_POINT_ALLOCATION, &ignored) == GH_OK &&
		take_within(&gh_worker.device->paging_used, pg_atomic_read_u64(&gh_worker.device->paging_limit), bytes);
}

static void
give_paged(void *ctx, uint64_t bytes)
{
	(void) ctx;
	pg_atomic_fetch_sub_u64(&gh_worker.device->paging_used, (int64) bytes);
}

void
gh_executor_host(GhWorkerTable *table, GhHost *host)
{
	memset(host, 0, sizeof(*host));
	host->ctx = table;
	host->alloc = host_alloc;
	host->free = host_free;
	host->address = host_address;
	host->take_device = take_device;
	host->give_device = give_device;
	host->spare_device = spare_device;
	host->take_host = take_paged;
	host->give_host = give_paged;
	host->lasting = &lasting_host;
}

/*
 * Notes how much memory the device has left.  To ask it takes milliseconds, in which no thread gets to it; so
 * that is done once in a while, for what others have taken, and in between what this worker has taken or
 * given back since is counted.
 */
void
gh_executor_note_memory(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static uint64 asked_ns = 0;
	static uint64 asked_free;
	static uint64 asked_used;
	uint64		now = gh_monotonic_ns();
	GhDeviceInfo info;
	GhError		ignored;

	pthread_mutex_lock(&mutex);
	if ((asked_ns == 0 || now - asked_ns >= GH_MEMORY_ASKED_NS) &&
		gh_worker.engine->device_info(gh_worker.cuda_device, &info, &ignored) == GH_OK)
	{
		asked_ns = now;
		asked_free = info.memory_free;
		asked_used = pg_atomic_read_u64(&gh_worker.device->memory_used);
	}
	if (asked_ns != 0)
	{
		uint64		used = pg_atomic_read_u64(&gh_worker.device->memory_used);

		gh_worker.device->info.memory_free = asked_free + asked_used > used ? asked_free + asked_used - used : 0;
	}
	pthread_mutex_unlock(&mutex);
}
