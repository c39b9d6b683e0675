/*
 * guard.h
 *		guard.c: calls that may throw, from where nothing may be thrown.
 */
#ifndef GPUHASH_GUARD_H
#define GPUHASH_GUARD_H

#include "postgres.h"

#include "utils/resowner.h"

/*
 * Runs work, which calls dsa.h or dsm.h, with that resource owner; false: it threw an
 * error, which is forgotten.
 */
extern bool gh_run_guarded(ResourceOwner owner, void (*work) (void *arg), void *arg);

/* Likewise, for work that may take long: what cancels or ends the statement is thrown on. */
extern bool gh_run_tried(ResourceOwner owner, void (*work) (void *arg), void *arg);

#endif							/* GPUHASH_GUARD_H */
