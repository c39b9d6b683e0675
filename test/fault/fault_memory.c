/*
 * fault_memory.c
 *		Memory of the stand-in's devices: what tables and pipelines hold of it comes from the host of their
 *		caller, and counts for the device and for that host's budget.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"

/* Before every block; the block stays aligned. */
#define HEADER_BYTES 64

typedef struct Header
{
	uint64_t	bytes;
	uint64_t	paged;			/* 1: they count as page-locked memory of the host */
} Header;

static _Atomic uint64_t device_taken[FAULT_DEVICES_MAX];	/* bytes */

uint64_t
fault_memory_taken(int device)
{
	return atomic_load(&device_taken[device]);
}

static void
memory_give(FaultMemory *memory, uint64_t bytes)
{
	memory->held -= bytes;
	atomic_fetch_sub(&device_taken[memory->device], bytes);
	if (memory->host.give_device != NULL)
		memory->host.give_device(memory->host.ctx, bytes);
}

static bool
memory_take(FaultMemory *memory, uint64_t bytes)
{
	_Atomic uint64_t *taken = &device_taken[memory->device];

	memory->refused = false;
	if (fault_allocation_due())
		return false;
	if (atomic_fetch_add(taken, bytes) + bytes <= FAULT_DEVICE_BYTES)
	{
		memory->refused = (memory->limit > 0 && memory->held + bytes > memory->limit) ||
			(memory->host.take_device != NULL && !memory->host.take_device(memory->host.ctx, bytes));
		if (!memory->refused)
		{
			memory->held += bytes;
			return true;
		}
	}
	atomic_fetch_sub(taken, bytes);
	return false;
}

static void
paged_give(FaultMemory *memory, uint64_t bytes)
{
	memory->paged -= bytes;
	if (memory->host.give_host != NULL)
		memory->host.give_host(memory->host.ctx, bytes);
}

static bool
paged_take(FaultMemory *memory, uint64_t bytes)
{
	if (!memory->pages || fault_allocation_due())
		return false;
	memory->refused = memory->host.take_host != NULL && !memory->host.take_host(memory->host.ctx, bytes);
	if (!memory->refused)
		memory->paged += bytes;
	return !memory->refused;
}

static void *
memory_address(void *ctx, GhRef ref)
{
	FaultMemory *memory = ctx;

	return (char *) memory->host.address(memory->host.ctx, ref) + HEADER_BYTES;
}

static GhRef
memory_alloc(void *ctx, size_t bytes)
{
	FaultMemory *memory = ctx;
	bool		on_device = bytes <= FAULT_DEVICE_BYTES && memory_take(memory, bytes);
	GhRef		ref;

	if (!on_device && !paged_take(memory, bytes))
		return 0;
	ref = memory->host.alloc(memory->host.ctx, bytes + HEADER_BYTES);
	if (ref != 0)
		*(Header *) memory->host.address(memory->host.ctx, ref) = (Header) {bytes, on_device ? 0 : 1};
	else if (on_device)
		memory_give(memory, bytes);
	else
		paged_give(memory, bytes);
	return ref;
}

static void
memory_free(void *ctx, GhRef ref)
{
	FaultMemory *memory = ctx;
	Header		header = *(Header *) memory->host.address(memory->host.ctx, ref);

	memory->host.free(memory->host.ctx, ref);
	if (header.paged != 0)
		paged_give(memory, header.bytes);
	else
		memory_give(memory, header.bytes);
}

void
fault_inner_host(FaultMemory *memory, GhHost *inner)
{
	memset(inner, 0, sizeof(*inner));
	inner->ctx = memory;
	inner->alloc = memory_alloc;
	inner->free = memory_free;
	inner->address = memory_address;
	inner->stop = memory->host.stop;
}

FaultMemory *
fault_memory_make(const GhHost *host, int device)
{
	FaultMemory *memory = calloc(1, sizeof(*memory));

	if (memory == NULL)
		return NULL;
	memory->host = *host;
	memory->device = device;
	atomic_init(&memory->users, 1);
	return memory;
}

void
fault_memory_page(FaultMemory *memory, uint64_t limit)
{
	memory->pages = true;
	memory->limit = limit;
}

FaultMemory *
fault_memory_share(FaultMemory *memory)
{
	atomic_fetch_add(&memory->users, 1);
	return memory;
}

void
fault_memory_leave(FaultMemory *memory)
{
	if (atomic_fetch_sub(&memory->users, 1) == 1)
		free(memory);
}

GhStatus
fault_status_of(const FaultMemory *memory, GhStatus status, GhError *error)
{
	if (status == GH_NO_MEMORY && memory->refused)
		return gh_error_set(error, GH_LIMIT, "the device memory for all tables is used up");
	return status;
}
