/*
 * values.c
 *		Values of named tables as bytes.
 *
 * The engines store 8-byte values.  A value of 1 to 8 bytes is such a number; a
 * wider one has a slot in a store on the host, and the engine's value is the
 * slot's number.  A store is a growing list of chunks of slots; a free slot
 * holds the number of the next free one.
 */
#include "postgres.h"

#include "port/pg_bswap.h"
#include "utils/memutils.h"

#include "compat.h"
#include "table/table.h"

/* Bytes of a chunk: slots are a power of two of at most this size together. */
#define GH_CHUNK_BYTES (256 * 1024)

struct GhValueStore
{
	MemoryContext context;		/* of the chunks */
	int			value_size;		/* bytes */
	Size		stride;			/* bytes of a slot */
	int			shift;			/* a chunk has 2^shift slots */
	char	  **chunks;
	uint64		nchunks;
	uint64		chunks_capacity;	/* elements of chunks */
	uint64		used;			/* slots below this one were handed out before */
	uint64		free_head;		/* a free slot among them, or GH_NO_SLOT */
};

GhValueStore *
gh_values_create(MemoryContext parent, int value_size)
{
	GhValueStore *store = MemoryContextAllocZero(parent, sizeof(GhValueStore));

	store->context = AllocSetContextCreate(parent, "gpuhash values",
										   ALLOCSET_DEFAULT_SIZES);
	store->value_size = value_size;
	store->stride = MAXALIGN(value_size);
	while (store->stride << (store->shift + 1) <= GH_CHUNK_BYTES)
		store->shift++;
	store->free_head = GH_NO_SLOT;
	return store;
}

void
gh_values_reset(GhValueStore *store)
{
	MemoryContextReset(store->context);
	store->chunks = NULL;
	store->nchunks = 0;
	store->chunks_capacity = 0;
	store->used = 0;
	store->free_head = GH_NO_SLOT;
}

char *
gh_values_at(GhValueStore *store, uint64 slot)
{
	uint64		within = slot & ((UINT64CONST(1) << store->shift) - 1);

	Assert(slot < store->used);
	return store->chunks[slot >> store->shift] + within * store->stride;
}

/* Makes room in the list of chunks; false: out of memory. */
static bool
grow_chunk_list(GhValueStore *store)
{
	uint64		capacity = Max(16, store->chunks_capacity * 2);
	Size		bytes = capacity * sizeof(char *);
	char	  **chunks;

	chunks = MemoryContextAllocExtended(store->context, bytes,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (chunks == NULL)
		return false;
	if (store->chunks != NULL)
	{
		memcpy(chunks, store->chunks, store->nchunks * sizeof(char *));
		pfree(store->chunks);
	}
	store->chunks = chunks;
	store->chunks_capacity = capacity;
	return true;
}

static bool
add_chunk(GhValueStore *store)
{
	char	   *chunk;

	if (store->nchunks == store->chunks_capacity && !grow_chunk_list(store))
		return false;
	chunk = MemoryContextAllocExtended(store->context,
									   store->stride << store->shift,
									   MCXT_ALLOC_NO_OOM);
	if (chunk == NULL)
		return false;
	store->chunks[store->nchunks++] = chunk;
	return true;
}

uint64
gh_values_alloc(GhValueStore *store)
{
	uint64		slot = store->free_head;

	if (slot != GH_NO_SLOT)
	{
		memcpy(&store->free_head, gh_values_at(store, slot), sizeof(uint64));
		return slot;
	}
	if (store->used == store->nchunks << store->shift && !add_chunk(store))
		return GH_NO_SLOT;
	return store->used++;
}

void
gh_values_free(GhValueStore *store, uint64 slot)
{
	memcpy(gh_values_at(store, slot), &store->free_head, sizeof(uint64));
	store->free_head = slot;
}

uint64
gh_value_pack(const char *bytes, int value_size)
{
	uint64		number = 0;

	memcpy((char *) &number + sizeof(number) - value_size, bytes, value_size);
	return pg_ntoh64(number);
}

void
gh_value_unpack(uint64 value, int value_size, char *bytes)
{
	uint64		number = pg_hton64(value);

	memcpy(bytes, (char *) &number + sizeof(number) - value_size, value_size);
}

void
gh_value_bytes(GhNamedTable *table, uint64 value, char *bytes)
{
	if (gh_table_is_wide(table))
		memcpy(bytes, gh_values_at(table->store, value), table->value_size);
	else
		gh_value_unpack(value, table->value_size, bytes);
}
