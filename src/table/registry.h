/*
 * registry.h
 *		What the registry of named tables wants of the server's start.
 */
#ifndef GPUHASH_REGISTRY_H
#define GPUHASH_REGISTRY_H

#include "postgres.h"

/* Nothing of it is in shared memory yet. */
static inline Size
gh_registry_shmem_size(void)
{
	return 0;
}

static inline void
gh_registry_shmem_init(void *place, bool found)
{
	(void) place;
	(void) found;
}

static inline void
gh_registry_init(void)
{
}

#endif							/* GPUHASH_REGISTRY_H */
