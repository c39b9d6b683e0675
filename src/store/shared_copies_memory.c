/*
 * shared_copies_memory.c
 *		Memory of copies in shared memory: how much they may take, and what is in the area that each has.
 *
 * What the system refuses is an error of PostgreSQL's, thrown with the area's lock held: so it is run
 * guarded.
 */
#include "postgres.h"

#include <sys/statvfs.h>

#include "miscadmin.h"
#include "storage/dsm_impl.h"
#include "utils/memutils.h"

#include "guard.h"
#include "host.h"
#include "service/service.h"
#include "store/areas.h"
#include "store/inside.h"
#include "store/shared_copies.h"

/* Of what tables on the host may take, without gpuhash.resident_memory. */
#define GH_COPIES_SHARE(bytes) ((bytes) / 4)

/* A quarter of the segments that dsm.c has, for parallel queries need some, too. */
#define GH_SEGMENTS_MAX ((64 + 5 * (uint32) MaxBackends) / 4)

/* ---------------------------------------------------------- how much they may take */

uint64
gh_shared_copies_limit(void)
{
	if (gh_resident_memory >= 0)
		return (uint64) gh_resident_memory * 1024 * 1024;
	return GH_COPIES_SHARE(gh_store_host_memory());
}

/* Of an area of so many bytes: two segments of each size, from a megabyte on (dsa.c). */
uint32
gh_copies_segments(uint64 bytes)
{
	uint32		n = 0;

	for (uint64 size = 1024 * 1024; bytes > 0; n++)
	{
		bytes -= Min(bytes, size);
		size *= 1 + n % 2;
	}
	return n;
}

void
gh_copies_take(GhCopiesTaken *sum, uint64 bytes)
{
	sum->bytes += bytes;
	sum->segments += gh_copies_segments(bytes);
}

bool
gh_copies_fit(GhCopiesTaken sum)
{
	return sum.bytes <= gh_shared_copies_limit() && sum.segments <= GH_SEGMENTS_MAX;
}

bool
gh_copies_leave_room(uint64 bytes)
{
	struct statvfs system;

	return dynamic_shared_memory_type != DSM_IMPL_POSIX || statvfs("/dev/shm", &system) != 0 ||
		(uint64) system.f_bavail * system.f_frsize >= (uint64) system.f_blocks * system.f_frsize / 2 + bytes;
}

/* --------------------------------------------------------------------- in an area */

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
