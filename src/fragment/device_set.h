/*
 * device_set.h
 *		What device_set.c and device_set_read.c share.
 */
#ifndef GPUHASH_FRAGMENT_DEVICE_SET_H
#define GPUHASH_FRAGMENT_DEVICE_SET_H

#include "postgres.h"

#include "fragment/device.h"

/* Devices that a fragment's pages are divided among. */
typedef struct GhDeviceSet
{
	GhFragment *fragment;
	int			nruns;
	GhDeviceRun *runs[GH_DEVICES_PER_QUERY_MAX];	/* by their turns */
	GhSupplies	supplies;		/* theirs; of one that is lost it has failed */
	int			alone;			/* the device that does all, if the pages are not divided */
	uint64		read_before;	/* pages in the first one's log that no device had */
	GhDeviceRun *holder;		/* on whose device the blocks are that were looked up last */
	GhBlockLog	again;			/* what lost devices have read */
	const GhSupply *declined;	/* whose rows are for the CPU engine; NULL: none are */
} GhDeviceSet;

/* ---- device_set.c ---- */

extern void gh_set_lose(GhDeviceSet *set, GhDeviceRun *run, const GhSupply *supply);
extern void gh_set_move_log(GhDeviceSet *set, GhDeviceRun *run);

static inline int
gh_set_count_left(const GhDeviceSet *set)
{
	int			left = 0;

	for (int i = 0; i < set->nruns; i++)
		left += !set->runs[i]->lost;
	return left;
}

static inline bool
gh_set_goes_on(const GhDeviceSet *set)
{
	return set->declined == NULL && gh_set_count_left(set) > 0;
}

#endif							/* GPUHASH_FRAGMENT_DEVICE_SET_H */
