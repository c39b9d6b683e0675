/*
 * host.c
 *		Hosts for tables: one over malloc, with device memory, that counts, fails
 *		where told and checks how locks are used, and one whose memory is mapped at
 *		several addresses.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* memfd_create */
#endif

#include "conformance.h"

#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------ over malloc */

#define BLOCK_MAGIC UINT64_C(0xB10CB10CB10CB10C)

/* More is refused here: malloc might promise what it does not have. */
#define BLOCK_BYTES_MAX ((size_t) 1 << 34)

/* Stands before every block. */
typedef struct BlockHeader
{
	uint64_t	magic;
	uint64_t	bytes;
	uint64_t	unused[6];
} BlockHeader;

static GhRef
block_alloc(void *ctx, size_t bytes)
{
	HostState  *state = ctx;
	BlockHeader *header;

	state->calls++;
	if (state->fail_at > 0 && (state->calls == state->fail_at ||
							   (state->fail_after && state->calls > state->fail_at)))
	{
		state->failed = true;
		return 0;
	}
	if (bytes > BLOCK_BYTES_MAX || (state->room > 0 && state->allocated + bytes > state->room))
		return 0;
	header = aligned_alloc(64, sizeof(BlockHeader) + ((bytes + 63) & ~(size_t) 63));
	if (header == NULL)
		return 0;
	header->magic = BLOCK_MAGIC;
	header->bytes = bytes;
	/* memory of any content: not the content an engine may hope for */
	memset(header + 1, 0xA5, bytes);
	state->allocated += bytes;
	state->blocks++;
	return (uintptr_t) (header + 1);
}

static void
block_free(void *ctx, GhRef ref)
{
	HostState  *state = ctx;
	BlockHeader *header = (BlockHeader *) (uintptr_t) ref - 1;

	if (header->magic != BLOCK_MAGIC)
	{
		state->damaged = true;
		return;
	}
	header->magic = 0;
	state->allocated -= header->bytes;
	state->blocks--;
	memset(header + 1, 0x5A, header->bytes);
	free(header);
}

static void *
block_address(void *ctx, GhRef ref)
{
	(void) ctx;
	return (void *) (uintptr_t) ref;
}

static bool
budget_take(Budget *budget, uint64_t bytes)
{
	uint64_t	taken = __atomic_load_n(&budget->taken, __ATOMIC_RELAXED);

	do
	{
		if (taken > budget->limit || bytes > budget->limit - taken)
			return false;
	} while (!__atomic_compare_exchange_n(&budget->taken, &taken, taken + bytes, true,
										  __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

uint64_t
budget_taken(const Budget *budget)
{
	return __atomic_load_n(&budget->taken, __ATOMIC_RELAXED);
}

static bool
take_counted(HostState *state, Budget *budget, uint64_t *counted, uint64_t bytes)
{
	state->takes++;
	if ((state->refuse_at > 0 && (state->takes == state->refuse_at ||
								  (state->refuse_after && state->takes > state->refuse_at))) ||
		(budget != NULL && !budget_take(budget, bytes)))
	{
		state->refused = true;
		return false;
	}
	*counted += bytes;
	return true;
}

static void
give_counted(HostState *state, Budget *budget, uint64_t *counted, uint64_t bytes)
{
	if (bytes > *counted)
	{
		state->overdrawn = true;
		return;
	}
	*counted -= bytes;
	if (budget != NULL)
		(void) __atomic_fetch_sub(&budget->taken, bytes, __ATOMIC_RELAXED);
}

static bool
counted_take(void *ctx, uint64_t bytes)
{
	HostState  *state = ctx;

	return take_counted(state, state->budget, &state->device_bytes, bytes);
}

static void
counted_give(void *ctx, uint64_t bytes)
{
	HostState  *state = ctx;

	give_counted(state, state->budget, &state->device_bytes, bytes);
}

static bool
counted_take_host(void *ctx, uint64_t bytes)
{
	HostState  *state = ctx;

	return take_counted(state, state->host_budget, &state->host_bytes, bytes);
}

static void
counted_give_host(void *ctx, uint64_t bytes)
{
	HostState  *state = ctx;

	give_counted(state, state->host_budget, &state->host_bytes, bytes);
}

static void
counted_lock(void *ctx, GhLockMode mode)
{
	HostState  *state = ctx;

	if (state->lock_depth++ != 0)
		state->lock_misused = true;
	state->lock_mode = mode;
	if (mode == GH_LOCK_SHARED)
		state->locks_shared++;
	else
		state->locks_exclusive++;
	if (state->locks_shared + state->locks_exclusive == state->stop_at_lock)
		state->stop = 1;
}

static void
counted_unlock(void *ctx)
{
	HostState  *state = ctx;

	if (--state->lock_depth != 0)
		state->lock_misused = true;
}

void
host_init(HostState *state, GhHost *host)
{
	memset(state, 0, sizeof(*state));
	memset(host, 0, sizeof(*host));
	host->ctx = state;
	host->alloc = block_alloc;
	host->free = block_free;
	host->address = block_address;
	host->stop = &state->stop;
	host->take_device = counted_take;
	host->give_device = counted_give;
	host->take_host = counted_take_host;
	host->give_host = counted_give_host;
}

void
host_init_locked(HostState *state, GhHost *host)
{
	host_init(state, host);
	host->lock = counted_lock;
	host->unlock = counted_unlock;
}

/* ------------------------------------------------- mapped at several addresses */

#define ARENA_CLASSES 48

/* At the start of the shared memory. */
typedef struct ArenaHeader
{
	uint64_t	used;			/* bytes handed out from the start */
	uint64_t	blocks;			/* outstanding */
	uint64_t	free[ARENA_CLASSES];	/* offsets of free blocks of 2^class bytes */
} ArenaHeader;

struct Arena
{
	int			file;
	size_t		bytes;
	ArenaHeader *header;		/* a mapping of the whole arena of its own */
};

/* A host's mapping; a block is preceded by its class, in 64 bytes. */
typedef struct ArenaMap
{
	size_t		bytes;
	char	   *base;
} ArenaMap;

static GhRef
arena_alloc(void *ctx, size_t bytes)
{
	ArenaMap   *map = ctx;
	ArenaHeader *header = (ArenaHeader *) map->base;
	uint64_t	class = 7;
	uint64_t	at;

	while (((uint64_t) 1 << class) < bytes + 64)
		class++;
	at = header->free[class];
	if (at != 0)
		header->free[class] = *(uint64_t *) (map->base + at + 64);
	else
	{
		at = header->used;
		if (at + ((uint64_t) 1 << class) > map->bytes)
			return 0;
		header->used += (uint64_t) 1 << class;
	}
	*(uint64_t *) (map->base + at) = class;
	header->blocks++;
	return at + 64;
}

static void
arena_free(void *ctx, GhRef ref)
{
	ArenaMap   *map = ctx;
	ArenaHeader *header = (ArenaHeader *) map->base;
	uint64_t	at = ref - 64;
	uint64_t	class = *(uint64_t *) (map->base + at);

	*(uint64_t *) (map->base + ref) = header->free[class];
	header->free[class] = at;
	header->blocks--;
}

static void *
arena_address(void *ctx, GhRef ref)
{
	return ((ArenaMap *) ctx)->base + ref;
}

Arena *
arena_make(size_t bytes)
{
	Arena	   *arena = make_memory(sizeof(Arena));
	void	   *base;

	arena->bytes = bytes;
	arena->file = memfd_create("conformance", 0);
	if (arena->file < 0 || ftruncate(arena->file, (off_t) bytes) != 0)
	{
		free(arena);
		return NULL;
	}
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->file, 0);
	if (base == MAP_FAILED)
	{
		close(arena->file);
		free(arena);
		return NULL;
	}
	arena->header = base;
	arena->header->used = 4096;
	return arena;
}

void
arena_drop(Arena *arena)
{
	munmap(arena->header, arena->bytes);
	close(arena->file);
	free(arena);
}

uint64_t
arena_blocks(const Arena *arena)
{
	return arena->header->blocks;
}

bool
arena_host(Arena *arena, GhHost *host)
{
	ArenaMap   *map = make_memory(sizeof(ArenaMap));

	map->bytes = arena->bytes;
	map->base = mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->file, 0);
	if (map->base == MAP_FAILED)
	{
		free(map);
		return false;
	}
	memset(host, 0, sizeof(*host));
	host->ctx = map;
	host->alloc = arena_alloc;
	host->free = arena_free;
	host->address = arena_address;
	return true;
}

/* The next touch of a raw pointer into this mapping is a crash. */
void
arena_host_unmap(GhHost *host)
{
	ArenaMap   *map = host->ctx;

	munmap(map->base, map->bytes);
	free(map);
	host->ctx = NULL;
}
