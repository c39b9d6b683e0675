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
/*
 * Its two parts: whether the server has a list of the locks that this process holds, and the same call,
 * with that list or without it.
 */
extern bool gh_server_lists_locks(void);
extern bool gh_run_guarded_by(bool has_list, ResourceOwner owner, void (*work) (void *arg), void *arg);

#endif							/* GPUHASH_GUARD_H */
