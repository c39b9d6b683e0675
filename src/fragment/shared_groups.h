/*
 * shared_groups.h
 *		Groups that a device makes once for several nodes of a query.
 */
#ifndef GPUHASH_SHARED_GROUPS_H
#define GPUHASH_SHARED_GROUPS_H

#include "postgres.h"

#include "fragment/fragment.h"
#include "fragment/supply.h"

typedef struct GhSharedGroups GhSharedGroups;

extern bool gh_shared_groups_apply(const GhFragment *fragment);
extern void gh_shared_groups_choose_device(const GhFragment *fragment, int *device);
extern bool gh_shared_groups_are_there(GhFragment *fragment, const GhPipelineOptions *options);
extern bool gh_shared_groups_begin(GhFragment *fragment, GhSupply *supply, const GhPipelineOptions *options,
								   bool *there);
extern void gh_shared_groups_offer(GhFragment *fragment);
extern void gh_shared_groups_leave(GhSupply *supply);
extern void gh_shared_groups_end(GhFragment *fragment);

#endif							/* GPUHASH_SHARED_GROUPS_H */
