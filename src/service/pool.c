/*
 * pool.c
 *		The server's buffers, as a worker's device reads them by itself.
 *
 * The worker maps them a second time, for reading only, and makes that mapping known to the device as memory
 * that it cannot write to: so no store of a kernel, or of this process by such an address, can reach a user's
 * pages.  Huge pages cannot be mapped a second time: of these it is the server's mapping, and the device has
 * it for reading only as well.  It is done in pieces by a thread, in the background: meanwhile, and where
 * anything of it is refused, requests are served all the same, with pages that are copied first.
 *
 * Main thread and thread take turns: the thread has what is in here from its start until it
 * says that it is over.  Executors only count themselves in and out, so that nothing is
 * taken back that the device still reads.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* mremap */
#endif
#include "postgres.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "service/executor.h"
#include "service/pool.h"
#include "service/threads.h"

/* Registered at a time, whole pages of the buffers; a test has few of them. */
#define PIECE_BYTES ((Size) GH_WITH_FAULT_POINTS(16, 128) * 1024 * 1024)

StaticAssertDecl(PIECE_BYTES % BLCKSZ == 0, "a page lies in one piece");

/* Between two looks whether the device still reads. */
#define LOOK_NS 1000000

typedef enum Phase
{
	PHASE_OFF,					/* nothing is mapped */
	PHASE_REGISTERING,			/* by a thread */
	PHASE_READABLE,
	PHASE_REFUSED,				/* nothing is mapped, and the error says why */
	PHASE_WITHDRAWING			/* by a thread */
} Phase;

static struct
{
	Phase		phase;			/* the main thread's */
	const GhEngine *engine;
	int			device;			/* CUDA's number of it */
	int			pipe_end;
	char	   *mapping;		/* whole pages of the system's around the buffers */
	bool		own;			/* it is the worker's second one */
	Size		bytes;
	Size		piece;			/* bytes of each but the last */
	Size		registered;		/* bytes so far */
	GhStatus	status;
	GhError		error;
	uint64		ns;				/* that it took */
	pg_atomic_uint32 over;		/* the thread's work */
	pg_atomic_uint32 unwanted;	/* it is to stop */
	pg_atomic_uint32 readable;	/* for executors */
	pg_atomic_uint32 readers;	/* of them, requests */
} pool;

/* ------------------------------------------------------------------- executors */

bool
gh_pool_enter(void)
{
	pg_atomic_fetch_add_u32(&pool.readers, 1);
	/* a full barrier: who withdraws sees the count, or this sees that it was withdrawn */
	if (pg_atomic_read_u32(&pool.readable) != 0)
		return true;
	gh_pool_leave();
	return false;
}

void
gh_pool_leave(void)
{
	pg_atomic_fetch_sub_u32(&pool.readers, 1);
}

static Size
page_offset(void)
{
	return (Size) ((uintptr_t) BufferBlocks % (Size) sysconf(_SC_PAGESIZE));
}

const char *
gh_pool_place(const char *page)
{
	return pool.mapping + page_offset() + (page - BufferBlocks);
}

/* ---------------------------------------------------------------- the mapping */

/* What is registered, and in which pieces. */
static void
take_mapping(char *mapping, bool own)
{
	pool.mapping = mapping;
	pool.own = own;
	/* a page across two pieces might be none for a device */
	pool.piece = page_offset() == 0 && BLCKSZ % sysconf(_SC_PAGESIZE) == 0 ? PIECE_BYTES : pool.bytes;
	pool.registered = 0;
}

/* Maps the buffers for reading; false with *error: the system does not. */
static bool
map_buffers(GhError *error)
{
	Size		os_page = (Size) sysconf(_SC_PAGESIZE);
	char	   *begin = BufferBlocks - page_offset();
	void	   *mapping;

	pool.bytes = TYPEALIGN(os_page, page_offset() + (Size) NBuffers * BLCKSZ);
	/* of shared memory an old size of 0 asks for one more mapping of the same */
	mapping = mremap(begin, 0, pool.bytes, MREMAP_MAYMOVE);
	/* the kernel's answer for huge pages */
	if (mapping == MAP_FAILED && errno == EINVAL)
	{
		take_mapping(begin, false);
		return true;
	}
	if (mapping == MAP_FAILED)
	{
		(void) gh_error_set(error, GH_UNSUPPORTED, "shared_buffers cannot be mapped again: %s", strerror(errno));
		return false;
	}
	if (mprotect(mapping, pool.bytes, PROT_READ) != 0)
	{
		(void) gh_error_set(error, GH_UNSUPPORTED, "shared_buffers cannot be mapped for reading only: %s", strerror(errno));
		(void) munmap(mapping, pool.bytes);
		return false;
	}
	take_mapping(mapping, true);
	return true;
}

/* Called by a thread, or where none is. */
static void
unmap_buffers(void)
{
	for (Size at = 0; at < pool.registered; at += pool.piece)
		pool.engine->memory_unregister(pool.device, pool.mapping + at);
	pool.registered = 0;
	if (pool.own)
		(void) munmap(pool.mapping, pool.bytes);
	pool.mapping = NULL;
}

/* --------------------------------------------------------------------- threads */

static GhStatus
register_piece(GhError *error)
{
	Size		bytes = Min(pool.piece, pool.bytes - pool.registered);
	GhStatus	status = gh_fault_status(gh_fault_pass(GH_FAULT_POINT_POOL), error);

	if (status == GH_OK && pool.engine->memory_register == NULL)
		status = gh_error_set(error, GH_UNSUPPORTED, "the engine registers no memory");
	if (status == GH_OK)
		status = pool.engine->memory_register(pool.device, pool.mapping + pool.registered, bytes, true, error);
	if (status == GH_OK)
		pool.registered += bytes;
	return status;
}

/*
 * Has the system give the piece its memory, which takes far longer than to register it, and which the driver
 * would wait for with a lock in hand that every request needs.
 */
static void
touch_piece(void)
{
	Size		os_page = (Size) sysconf(_SC_PAGESIZE);
	Size		end = Min(pool.registered + pool.piece, pool.bytes);

	for (Size at = pool.registered; at < end && pg_atomic_read_u32(&pool.unwanted) == 0; at += os_page)
		(void) *(volatile char *) (pool.mapping + at);
}

/*
 * Requests have the driver as long as the last piece did: its lock may go to whoever asks for it most often.
 */
static void
let_requests_pass(uint64 ns)
{
	struct timespec time = {(time_t) (ns / 1000000000), (long) (ns % 1000000000)};

	if (!gh_executors_asleep())
		(void) nanosleep(&time, NULL);
}

static void
say_over(void)
{
	char		byte = 0;

	pg_write_barrier();
	pg_atomic_write_u32(&pool.over, 1);
	/* a full pipe wakes the main thread, too */
	if (write(pool.pipe_end, &byte, 1) < 0)
		return;
}

static void *
register_in_thread(void *arg)
{
	uint64		begin = gh_monotonic_ns();

	pool.status = GH_OK;
	while (pool.status == GH_OK && pool.registered < pool.bytes && pg_atomic_read_u32(&pool.unwanted) == 0)
	{
		uint64		piece_begin;

		touch_piece();
		if (pg_atomic_read_u32(&pool.unwanted) != 0)
			break;
		piece_begin = gh_monotonic_ns();
		pool.status = register_piece(&pool.error);
		if (pool.status == GH_OK && pool.registered < pool.bytes)
			let_requests_pass(gh_monotonic_ns() - piece_begin);
	}
	pool.ns = gh_monotonic_ns() - begin;
	if (pool.registered < pool.bytes)
		unmap_buffers();
	say_over();
	return arg;
}

/* The device may still be reading for requests that began before. */
static void *
withdraw_in_thread(void *arg)
{
	while (pg_atomic_read_u32(&pool.readers) != 0)
	{
		struct timespec time = {0, LOOK_NS};

		(void) nanosleep(&time, NULL);
	}
	unmap_buffers();
	say_over();
	return arg;
}

/* ----------------------------------------------------------------- main thread */

static void
refuse(GhDevice *device)
{
	pool.phase = PHASE_REFUSED;
	strlcpy(device->pool_message, pool.error.message, sizeof(device->pool_message));
	pg_write_barrier();
	pg_atomic_write_u32(&device->pool, GH_POOL_REFUSED);
	ereport(LOG,
			(errmsg("GPU %d does not read shared_buffers: gpuhash copies pages for it", device->number),
			 errdetail("%s.", device->pool_message)));
}

static void
begin_registering(GhDevice *device)
{
	pool.device = device->number;
	memset(&pool.error, 0, sizeof(pool.error));
	pg_atomic_write_u32(&pool.over, 0);
	pg_atomic_write_u32(&pool.unwanted, 0);
	if (!map_buffers(&pool.error))
	{
		refuse(device);
		return;
	}
	pool.phase = PHASE_REGISTERING;
	pg_atomic_write_u32(&device->pool, GH_POOL_REGISTERING);
	gh_worker_start_thread(register_in_thread, NULL);
}

static void
end_registering(GhDevice *device)
{
	if (pool.status != GH_OK)
		refuse(device);
	else if (pool.mapping == NULL)
		pool.phase = PHASE_OFF;
	else
	{
		pool.phase = PHASE_READABLE;
		pg_atomic_write_u32(&pool.readable, 1);
		pg_atomic_write_u32(&device->pool, GH_POOL_READABLE);
		ereport(LOG,
				(errmsg("GPU %d reads shared_buffers: %llu MB were registered in %.1f s", device->number,
						(unsigned long long) (pool.bytes / 1024 / 1024), (double) pool.ns / 1e9)));
	}
}

static void
begin_withdrawing(GhDevice *device)
{
	pool.phase = PHASE_WITHDRAWING;
	pg_atomic_write_u32(&device->pool, GH_POOL_OFF);
	pg_atomic_write_u32(&pool.over, 0);
	pg_atomic_write_u32(&pool.readable, 0);
	/* before the readers are counted, as in gh_pool_enter */
	pg_memory_barrier();
	gh_worker_start_thread(withdraw_in_thread, NULL);
}

void
gh_pool_look(GhDevice *device, const GhEngine *engine, int pipe_end)
{
	pool.engine = engine;
	pool.pipe_end = pipe_end;
	if (pg_atomic_read_u32(&pool.over) != 0)
	{
		pg_read_barrier();
		pg_atomic_write_u32(&pool.over, 0);
		if (pool.phase == PHASE_REGISTERING)
			end_registering(device);
		else
			pool.phase = PHASE_OFF;
	}
	if (gh_register_buffers && pool.phase == PHASE_OFF)
		begin_registering(device);
	else if (!gh_register_buffers)
	{
		if (pool.phase == PHASE_READABLE)
			begin_withdrawing(device);
		else if (pool.phase == PHASE_REGISTERING)
			pg_atomic_write_u32(&pool.unwanted, 1);
		else if (pool.phase == PHASE_REFUSED)
			pool.phase = PHASE_OFF;
		if (pool.phase != PHASE_REGISTERING)
			pg_atomic_write_u32(&device->pool, GH_POOL_OFF);
	}
}
