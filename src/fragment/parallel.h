/*
 * parallel.h
 *		parallel.c: a fragment that all participants of a parallel query run together.
 */
#ifndef GPUHASH_FRAGMENT_PARALLEL_H
#define GPUHASH_FRAGMENT_PARALLEL_H

#include "postgres.h"

#include "storage/dsm.h"
#include "storage/spin.h"

#include "fragment/device.h"

/* What they share; a node's own follows. */
typedef struct GhFragmentShared
{
	dsm_handle	segment;
	int			nmembers;
	pg_atomic_uint32 users;		/* processes that have the segment mapped */
	GhDeviceShared device;
	slock_t		mutex;			/* of what follows */
	int			started;		/* participants */
	int			done;
	bool		closed;			/* all that had started were done */
	GhFragmentCounts totals;
} GhFragmentShared;

/* A process's view of it; a node's own follows. */
typedef struct GhFragmentMember
{
	GhFragmentShared *shared;
	dsm_segment *segment;
	int			number;
	MemoryContextCallback cleanup;
} GhFragmentMember;

extern void gh_fragment_init_dsm(GhFragment *fragment, ParallelContext *pcxt, GhFragmentShared *shared,
								 GhFragmentMember *member);
extern void gh_fragment_reinit_dsm(GhFragmentShared *shared);
extern void gh_fragment_init_worker(GhFragment *fragment, GhFragmentShared *shared, GhFragmentMember *member);
extern bool gh_fragment_attach(GhFragment *fragment);
extern bool gh_fragment_is_last(GhFragment *fragment, bool done);
extern void gh_fragment_leave_counts(GhFragment *fragment);

#endif							/* GPUHASH_FRAGMENT_PARALLEL_H */
