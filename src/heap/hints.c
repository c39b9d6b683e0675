/*
 * hints.c
 *		Where blocks of relations were in shared buffers: a guess that spares the pool's table.
 *
 * To pin a page that is in shared buffers, PostgreSQL looks the block up in a hash table of the whole pool.
 * For a scan that reads little else of its pages that is half of the work, most of it waiting for memory.
 * Here, a table with a place for each buffer remembers in which one a block was seen last. The places of
 * consecutive blocks lie side by side, so that a scan reads them in order.  A block has two places, for two
 * relations that are read by turns may lie on one another in the first one, and took it from one another in
 * every query.  A place may be overwritten by any other block, and what it says may be out of date:
 * ReadRecentBuffer makes sure.
 *
 * A page that is pinned in this way does not count as used once more, which it is to the pool's clock
 * when it is looked up.  So hints are good only for pages whose use count is not low yet.  Read through a
 * ring of buffers, a page counts as used once at most, so that a count of one is enough.
 *
 * The table is in shared memory, 8 bytes for each buffer, and there only with the library preloaded.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "heap/hints.h"
#include "heap/pages.h"

/* Uses that a page must have left; and for a scan through a ring. */
#define GH_HINT_USES 2
#define GH_HINT_RING_USES 1

/* How many blocks on. */
#define GH_BLOCKS_AHEAD 4

/* By relation, so that those of several do not fall on the same places: of the first and the second place. */
static const uint32 spreads[] = {0x9e3779b1u, 0x85ebca77u};

/* Whose block it is, in the upper half, and its buffer; 0: none. */
static pg_atomic_uint64 *hints = NULL;
static uint32 hint_mask;

Size
gh_hints_shmem_size(void)
{
	return sizeof(pg_atomic_uint64) * pg_nextpower2_32(NBuffers);
}

/* Called in the postmaster, and in every process that maps its memory by itself. */
void
gh_hints_shmem_init(void *memory, bool found)
{
	hints = memory;
	hint_mask = pg_nextpower2_32(NBuffers) - 1;
	for (uint32 i = 0; i <= hint_mask && !found; i++)
		pg_atomic_init_u64(&hints[i], 0);
}

static inline pg_atomic_uint64 *
place_of(Relation relation, BlockNumber block, int which)
{
	return &hints[(gh_relation_number(relation) * spreads[which] + block) & hint_mask];
}

/* What tells a block from others that have the same place: not all of them. */
static inline uint64
mark_of(Relation relation, BlockNumber block)
{
	return (uint64) (gh_relation_number(relation) * 0xc2b2ae35u + block) << 32;
}

static inline bool
is_marked(uint64 hint, uint64 mark)
{
	return (uint32) hint != 0 && (hint ^ mark) >> 32 == 0;
}

/* The buffer that the block was in; InvalidBuffer: it is not known. */
static inline Buffer
known_buffer(Relation relation, BlockNumber block)
{
	uint64		mark = mark_of(relation, block);
	uint64		hint = pg_atomic_read_u64(place_of(relation, block, 0));

	if (!is_marked(hint, mark))
		hint = pg_atomic_read_u64(place_of(relation, block, 1));
	return is_marked(hint, mark) && (uint32) hint <= (uint32) NBuffers ? (Buffer) (uint32) hint : InvalidBuffer;
}

/* The buffer that is likely to have the block still; InvalidBuffer: none is. */
static inline Buffer
likely_buffer(Relation relation, BlockNumber block, bool ring)
{
	Buffer		buffer;
	BufferDesc *desc;
	GhBufferState state;

	if (hints == NULL)
		return InvalidBuffer;
	buffer = known_buffer(relation, block);
	if (buffer == InvalidBuffer)
		return InvalidBuffer;
	desc = GetBufferDescriptor(buffer - 1);
	state = gh_buffer_state(desc);
	return (state & BM_VALID) != 0 &&
		BUF_STATE_GET_USAGECOUNT(state) >= (ring ? GH_HINT_RING_USES : GH_HINT_USES) &&
		desc->tag.blockNum == block ? buffer : InvalidBuffer;
}

bool
gh_hint_is_good(Relation relation, BlockNumber block, bool ring)
{
	return likely_buffer(relation, block, ring) != InvalidBuffer;
}

/* What will be read of a block, and is far away: its buffer's state, and its page's header. */
void
gh_hint_fetch_header(Relation relation, BlockNumber block)
{
	Buffer		buffer = hints == NULL ? InvalidBuffer : known_buffer(relation, block);

	if (buffer == InvalidBuffer)
		return;
	__builtin_prefetch(GetBufferDescriptor(buffer - 1));
	__builtin_prefetch(BufferGetBlock(buffer));
}

/*
 * The LSN of the block's page, if it is where it was last; false: it is not known, or somebody changes the
 * page just now. It is not pinned, which is most of what a look at a page takes: its share lock keeps out who
 * would change it, and its buffer's header lock who would put another page there.  From 19 on there is no
 * share lock without a pin.  So somebody may begin to change the page while its LSN is read, and it is the
 * LSN from before or from after: ../store/README, rule 3.
 */
bool
gh_hint_lsn(Relation relation, BlockNumber block, XLogRecPtr *lsn)
{
	Buffer		buffer = hints == NULL ? InvalidBuffer : known_buffer(relation, block);
	BufferDesc *desc;
	BufferTag	tag;
	GhBufferState state;
	bool		there;

	if (buffer == InvalidBuffer)
		return false;
	desc = GetBufferDescriptor(buffer - 1);
	if (!gh_try_share_page(desc))
		return false;
	gh_init_buffer_tag(&tag, relation, block);
	state = LockBufHdr(desc);
	there = (state & BM_VALID) != 0 && !gh_page_is_locked(state) && memcmp(&desc->tag, &tag, sizeof(tag)) == 0;
	if (there)
		*lsn = PageGetLSN(BufferGetPage(buffer));
	gh_unlock_header(desc, state);
	gh_end_sharing(desc);
	return there;
}

/*
 * The page of the block into the cache, where it was last: its lines come while the rows of another are done.
 * Not pinned, it may be another page by then, which does no harm.
 */
void
gh_hint_fetch(Relation relation, BlockNumber block)
{
	Buffer		buffer = hints == NULL ? InvalidBuffer : known_buffer(relation, block);
	const char *page;

	if (buffer == InvalidBuffer)
		return;
	page = BufferGetBlock(buffer);
	for (int at = 0; at < BLCKSZ; at += GH_FETCH_BYTES)
		__builtin_prefetch(page + at, 0, 2);
}

/* Pins the block in the buffer where it is likely to be; false: it is not there.  ring: the scan has one. */
bool
gh_hint_read(Relation relation, BlockNumber block, bool ring, Buffer *buffer)
{
	gh_hint_fetch_header(relation, block + GH_BLOCKS_AHEAD);
	*buffer = likely_buffer(relation, block, ring);
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
	uint64		mark = mark_of(relation, block);
	uint64		first;
	uint64		second;
	int			which;

	if (hints == NULL || buffer <= 0)
		return;
	first = pg_atomic_read_u64(place_of(relation, block, 0));
	second = pg_atomic_read_u64(place_of(relation, block, 1));
	/* where nothing of another block is lost, if there is such a place */
	which = first != 0 && !is_marked(first, mark) && (second == 0 || is_marked(second, mark));
	pg_atomic_write_u64(place_of(relation, block, which), mark | (uint32) buffer);
}

/* Whether the block is in shared buffers now, by the pool's table. */
bool
gh_block_is_in_pool(Relation relation, BlockNumber block)
{
	BufferTag	tag;
	uint32		hash;
	LWLock	   *lock;
	bool		found;

	gh_init_buffer_tag(&tag, relation, block);
	hash = BufTableHashCode(&tag);
	lock = BufMappingPartitionLock(hash);
	LWLockAcquire(lock, LW_SHARED);
	found = BufTableLookup(&tag, hash) >= 0;
	LWLockRelease(lock);
	return found;
}

/* Blocks that are looked up to tell what share of a relation there is. */
#define GH_SAMPLED_BLOCKS 32

/* About what share of so many blocks is in shared buffers now, from 0 to 1. */
double
gh_share_in_pool(Relation relation, BlockNumber nblocks)
{
	uint64		sampled = Min(nblocks, GH_SAMPLED_BLOCKS);
	int			found = 0;

	for (uint64 i = 0; i < sampled; i++)
		found += gh_block_is_in_pool(relation, (BlockNumber) ((2 * i + 1) * nblocks / (2 * sampled)));
	return sampled == 0 ? 0 : (double) found / sampled;
}
