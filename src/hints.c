/*
 * hints.c
 *		Where blocks of relations were in shared buffers: a guess that spares the pool's table.
 *
 * To pin a page that is in shared buffers, PostgreSQL looks the block up in a hash table of the whole
 * pool.  For a scan that reads little else of its pages that is half of the work, most of it waiting for
 * memory.  Here, a table with a place for each buffer remembers in which one a block was seen last.
 * The places of consecutive blocks lie side by side, so that a scan reads them in order.  A place may
 * be overwritten by any other block, and what it says may be out of date: ReadRecentBuffer makes sure.
 *
 * A page that is pinned in this way does not count as used once more, which it is to the pool's clock
 * when it is looked up.  So hints are good only for pages whose use count is not low yet.
 *
 * The table is in shared memory, 4 bytes for each buffer, and there only with the library preloaded.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "hints.h"

/* Uses that a page must have left. */
#define GH_HINT_USES 2

/* How many blocks on. */
#define GH_BLOCKS_AHEAD 4

/* By relation, so that those of several do not fall on the same places. */
#define GH_HINT_SPREAD 0x9e3779b1u

static pg_atomic_uint32 *hints = NULL;	/* buffers, or InvalidBuffer */
static uint32 hint_mask;

Size
gh_hints_shmem_size(void)
{
	return sizeof(pg_atomic_uint32) * pg_nextpower2_32(NBuffers);
}

/* Called in the postmaster, and in every process that maps its memory by itself. */
void
gh_hints_shmem_init(void *memory, bool found)
{
	hints = memory;
	hint_mask = pg_nextpower2_32(NBuffers) - 1;
	for (uint32 i = 0; i <= hint_mask && !found; i++)
		pg_atomic_init_u32(&hints[i], InvalidBuffer);
}

static inline pg_atomic_uint32 *
place_of(Relation relation, BlockNumber block)
{
	return &hints[(gh_relation_number(relation) * GH_HINT_SPREAD + block) & hint_mask];
}

/* The buffer that is likely to have the block; InvalidBuffer: none is. */
static inline Buffer
likely_buffer(Relation relation, BlockNumber block)
{
	Buffer		buffer;
	BufferDesc *desc;
	uint32		state;

	if (hints == NULL)
		return InvalidBuffer;
	buffer = (Buffer) pg_atomic_read_u32(place_of(relation, block));
	if (buffer <= 0 || buffer > NBuffers)
		return InvalidBuffer;
	desc = GetBufferDescriptor(buffer - 1);
	state = pg_atomic_read_u32(&desc->state);
	return (state & BM_VALID) != 0 && BUF_STATE_GET_USAGECOUNT(state) >= GH_HINT_USES &&
		desc->tag.blockNum == block ? buffer : InvalidBuffer;
}

bool
gh_hint_is_good(Relation relation, BlockNumber block)
{
	return likely_buffer(relation, block) != InvalidBuffer;
}

/* What will be read of the block some pages on, and is far away: its buffer's state, and its header. */
static inline void
fetch_ahead(Relation relation, BlockNumber block)
{
	Buffer		buffer = (Buffer) pg_atomic_read_u32(place_of(relation, block));

	if (buffer <= 0 || buffer > NBuffers)
		return;
	__builtin_prefetch(GetBufferDescriptor(buffer - 1));
	__builtin_prefetch(BufferGetBlock(buffer));
}

/* Pins the block in the buffer where it is likely to be; false: it is not there. */
bool
gh_hint_read(Relation relation, BlockNumber block, Buffer *buffer)
{
	if (hints != NULL)
		fetch_ahead(relation, block + GH_BLOCKS_AHEAD);
	*buffer = likely_buffer(relation, block);
	if (*buffer == InvalidBuffer ||
		!ReadRecentBuffer(gh_relation_locator(relation), MAIN_FORKNUM, block, *buffer))
		return false;
	pgstat_count_buffer_read(relation);
	pgstat_count_buffer_hit(relation);
	return true;
}

/* The block is in the buffer. */
void
gh_hint_keep(Relation relation, BlockNumber block, Buffer buffer)
{
	if (hints != NULL && buffer > 0)
		pg_atomic_write_u32(place_of(relation, block), (uint32) buffer);
}
