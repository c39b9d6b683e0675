/*
 * shared_copies_memory.c
 *		Memory of copies in shared memory, in the area that each has.
 *
 * What the system refuses is an error of PostgreSQL's, thrown with the area's lock held: so it is run guarded.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "guard.h"
#include "host.h"
#include "store/areas.h"
#include "store/inside.h"
#include "store/shared_copies.h"

typedef struct AllocWork
{
	dsa_area   *area;
	Size		bytes;
	GhRef		ref;
	dsa_pointer start;
} AllocWork;

static void
alloc_work(void *arg)
{
	AllocWork  *work = arg;

	work->ref = gh_area_alloc(work->area, work->bytes, sizeof(dsa_pointer), &work->start);
}

/* In front of a block is what is to be freed. */
static GhRef
block_alloc(void *ctx, size_t bytes)
{
	GhCopyHold *hold = ctx;
	AllocWork	work = {.area = hold->area};

	if (bytes > MaxAllocHugeSize - 2 * GH_HOST_ALIGNMENT)
		return 0;
	work.bytes = bytes + 2 * GH_HOST_ALIGNMENT;
	if (!gh_run_guarded(NULL, alloc_work, &work) || work.ref == 0)
		return 0;
	((dsa_pointer *) dsa_get_address(hold->area, work.ref))[-1] = work.start;
	return work.ref;
}

static void
free_work(void *arg)
{
	AllocWork  *work = arg;

	dsa_free(work->area, work->start);
}

static void
block_free(void *ctx, GhRef ref)
{
	GhCopyHold *hold = ctx;
	AllocWork	work = {.area = hold->area};

	if (ref == 0)
		return;
	work.start = ((dsa_pointer *) dsa_get_address(hold->area, ref))[-1];
	(void) gh_run_guarded(NULL, free_work, &work);
}

static void *
block_address(void *ctx, GhRef ref)
{
	return dsa_get_address(((GhCopyHold *) ctx)->area, ref);
}

/* One process makes a copy, and nothing of it changes later. */
void
gh_shared_copy_host(GhCopyHold *hold, GhHost *host)
{
	gh_store_make_host(host, hold, block_alloc, block_free, block_address);
}

static void
entries_work(void *arg)
{
	AllocWork  *work = arg;

	work->start = dsa_allocate_extended(work->area, work->bytes, DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
}

bool
gh_shared_copy_alloc(GhCopyHold *hold, Size bytes, dsa_pointer *at)
{
	AllocWork	work = {.area = hold->area,.bytes = Max(bytes, 1)};

	if (!gh_run_guarded(NULL, entries_work, &work))
		return false;
	*at = work.start;
	return DsaPointerIsValid(*at);
}

void
gh_shared_copy_free(GhCopyHold *hold, dsa_pointer at)
{
	AllocWork	work = {.area = hold->area,.start = at};

	(void) gh_run_guarded(NULL, free_work, &work);
}
