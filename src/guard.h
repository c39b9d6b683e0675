/*
 * guard.h
 *		guard.c: calls that may throw, from where nothing may be thrown.
 */
#ifndef GPUHASH_GUARD_H
#define GPUHASH_GUARD_H

#include "postgres.h"

#include "utils/resowner.h"

/*
 * Runs work, which calls dsa.h or dsm.h to allocate or to free, with that resource owner; false: there was an
 * error, which the log has, and the caller must end what it does.
 */
extern bool gh_run_guarded(ResourceOwner owner, void (*work) (void *arg), void *arg);

#endif							/* GPUHASH_GUARD_H */
