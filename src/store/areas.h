/*
 * areas.h
 *		Areas of shared memory (dsa.h) that a process has attached, or made: for as long as it uses them.
 */
#ifndef GPUHASH_AREAS_H
#define GPUHASH_AREAS_H

#include "postgres.h"

#include "utils/dsa.h"

/* A new area; NULL: it cannot be, and the log has why.  Locks in it are of that tranche. */
extern dsa_area *gh_area_try_create(int tranche, Size limit);
/* An area that there is, attached until it is detached as often; NULL: it cannot be. */
extern dsa_area *gh_area_try_attach(dsa_handle handle);
extern void gh_area_detach(dsa_area *area);

#endif							/* GPUHASH_AREAS_H */
