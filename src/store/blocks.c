/*
 * blocks.c
 *		What the CPU engine allocates for a table in shared memory, as a GhHost.
 *
 * A block is a piece of the area of shared.c or a segment of segments.c.  An engine
 * must never see an error thrown under it: allocations and frees run under a guard,
 * and all blocks of a table are mapped in this process before an engine looks at them.
 * For that, a table's blocks form a list.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "guard.h"
#include "host.h"
#include "store/inside.h"

/* Blocks from this size on are segments, whose memory goes back when they are freed. */
#define GH_SEGMENT_BYTES_MIN ((Size) 256 * 1024)

/* A block that is a segment: this bit and the segment's number; else a dsa_pointer. */
#define GH_SEGMENT_BIT (UINT64CONST(1) << 63)

/* Stands before each block of a table. */
typedef struct GhBlock
{
	dsa_pointer start;			/* as it was allocated in the area */
	uint64		bytes;			/* counted for it */
	GhRef		next;
	GhRef		previous;
} GhBlock;

StaticAssertDecl(sizeof(GhBlock) <= GH_HOST_ALIGNMENT, "a block is the second cache line of its segment");

/* ---------------------------------------------------------------- both kinds */

static void *
block_address(void *ctx, GhRef ref)
{
	(void) ctx;
	if (ref & GH_SEGMENT_BIT)
		return (char *) gh_store_segment_address((int) (ref & ~GH_SEGMENT_BIT)) + GH_HOST_ALIGNMENT;
	return dsa_get_address(gh_store_area(), ref);
}

static GhBlock *
block_of(GhRef ref)
{
	return (GhBlock *) block_address(NULL, ref) - 1;
}

static void
list_add(GhStored *stored, GhRef ref)
{
	GhBlock    *block = block_of(ref);

	block->previous = 0;
	block->next = stored->blocks;
	if (stored->blocks != 0)
		block_of(stored->blocks)->previous = ref;
	stored->blocks = ref;
	stored->blocks_changed++;
}

static void
list_remove(GhStored *stored, const GhBlock *block)
{
	if (block->next != 0)
		block_of(block->next)->previous = block->previous;
	if (block->previous != 0)
		block_of(block->previous)->next = block->next;
	else
		stored->blocks = block->next;
}

/* -------------------------------------------------------------------- alloc */

typedef struct AllocWork
{
	Size		bytes;
	int			number;			/* of a segment */
	GhRef		ref;			/* 0: there is none to be had */
	dsa_pointer start;
} AllocWork;

static void
segment_work(void *arg)
{
	AllocWork  *work = arg;

	if (gh_store_segment_create(work->number, work->bytes))
		work->ref = GH_SEGMENT_BIT | (GhRef) work->number;
}

static void
alloc_segment(AllocWork *work)
{
	work->number = gh_store_segment_take();
	if (work->number < 0)
		return;
	if (!gh_run_guarded(NULL, segment_work, work))
		work->ref = 0;
	if (work->ref == 0)
		gh_store_segment_leave(work->number);
}

static void
area_work(void *arg)
{
	AllocWork  *work = arg;

	work->ref = gh_area_alloc(gh_store_area(), work->bytes, sizeof(GhBlock), &work->start);
}

static GhRef
block_alloc(void *ctx, size_t bytes)
{
	GhStored   *stored = ctx;
	AllocWork	work = {0};

	if (bytes > SIZE_MAX / 2)
		return 0;
	work.bytes = bytes + 2 * GH_HOST_ALIGNMENT;
	if (!gh_store_area_count((int64) work.bytes))
		return 0;
	/* where there are too many segments the area takes large blocks, too */
	if (bytes >= GH_SEGMENT_BYTES_MIN)
		alloc_segment(&work);
	if (work.ref == 0 && !gh_run_guarded(NULL, area_work, &work))
		work.ref = 0;
	if (work.ref == 0)
	{
		(void) gh_store_area_count(-(int64) work.bytes);
		return 0;
	}
	list_add(stored, work.ref);
	block_of(work.ref)->start = work.start;
	block_of(work.ref)->bytes = work.bytes;
	return work.ref;
}

/* --------------------------------------------------------------------- free */

typedef struct FreeWork
{
	GhRef		ref;
	dsa_pointer start;
} FreeWork;

static void
free_work(void *arg)
{
	FreeWork   *work = arg;

	if (work->ref & GH_SEGMENT_BIT)
		gh_store_segment_free((int) (work->ref & ~GH_SEGMENT_BIT));
	else
		dsa_free(gh_store_area(), work->start);
}

static void
block_free(void *ctx, GhRef ref)
{
	GhStored   *stored = ctx;
	FreeWork	work = {ref};
	GhBlock    *block;

	if (ref == 0)
		return;
	block = block_of(ref);
	list_remove(stored, block);
	work.start = block->start;
	(void) gh_store_area_count(-(int64) block->bytes);
	if (!gh_run_guarded(NULL, free_work, &work))
		ereport(LOG,
				(errmsg("could not free memory of hash table \"%s\"", stored->info.key.name)));
}

/* --------------------------------------------------------------------- host */

static void
no_lock(void *ctx, GhLockMode mode)
{
	(void) ctx;
	(void) mode;
}

static void
no_unlock(void *ctx)
{
	(void) ctx;
}

/* A GhHost in which the engine has nothing to lock: whoever calls it keeps others out. */
void
gh_store_make_host(GhHost *host, void *ctx, GhRef (*alloc) (void *, size_t), void (*free) (void *, GhRef),
				   void *(*address) (void *, GhRef))
{
	memset(host, 0, sizeof(*host));
	host->ctx = ctx;
	host->alloc = alloc;
	host->free = free;
	host->address = address;
	host->lock = no_lock;
	host->unlock = no_unlock;
	host->stop = &InterruptPending;
}

/*
 * The table's lock is held from before the engine's call to after it.  It keeps
 * writers out of whatever the engine does, and others out of what a writer does.
 */
void
gh_store_blocks_host(GhHost *host, GhStored *stored)
{
	gh_store_make_host(host, stored, block_alloc, block_free, block_address);
}

static void
map_block(GhRef ref)
{
	if (ref & GH_SEGMENT_BIT)
		gh_store_segment_map((int) (ref & ~GH_SEGMENT_BIT));
}

void
gh_store_blocks_map(GhStored *stored)
{
	for (GhRef ref = stored->blocks; ref != 0; ref = block_of(ref)->next)
		map_block(ref);
}

static void
map_work(void *arg)
{
	gh_store_blocks_map(arg);
}

void
gh_store_blocks_free(GhStored *stored)
{
	if (!gh_run_guarded(NULL, map_work, stored))
	{
		ereport(LOG,
				(errmsg("could not free memory of hash table \"%s\"", stored->info.key.name)));
		return;
	}
	while (stored->blocks != 0)
		block_free(stored, stored->blocks);
}
