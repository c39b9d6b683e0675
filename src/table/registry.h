/*
 * registry.h
 *		What the rest of gpuhash.so wants of the named tables.
 */
#ifndef GPUHASH_REGISTRY_H
#define GPUHASH_REGISTRY_H

#include "postgres.h"

#include "nodes/execnodes.h"

/* ---- shared.c: while the server starts with the service ---- */

extern Size gh_registry_shmem_size(void);
/* Under AddinShmemInitLock. */
extern void gh_registry_shmem_init(void *place, bool found);

/* ---- drops.c ---- */

/* Of _PG_init. */
extern void gh_registry_init(void);

/* ---- copies.c ---- */

/*
 * After the device refused so much memory: takes named tables that have a host copy,
 * and were not used for a second, from there, least recently used first, until that
 * much should be free; false when there were too few.  It waits for no lock, and for
 * a moment for the memory of each.  May ereport.
 */
extern bool gh_named_tables_evict(int device, uint64 bytes);

/* ---- stats.c ---- */

/* Named tables of this database on that device, or, device < 0, on the host alone. */
extern int64 gh_named_tables_count(int device);

#endif							/* GPUHASH_REGISTRY_H */
