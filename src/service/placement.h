/*
 * placement.h
 *		placement.c: which engine and device a backend uses, and what its failures are to
 *		the user.
 */
#ifndef GPUHASH_PLACEMENT_H
#define GPUHASH_PLACEMENT_H

#include "postgres.h"

#include "compat.h"
#include "engine/engine.h"
#include "gpuhash.h"
#include "host.h"

/*
 * The engine to use for about `keys` keys (built plus probed) under the present
 * settings.  With engine = auto, *reason is NULL or a constant string that says
 * why it is not CUDA.  With engine = cuda and no usable GPU: ereport(ERROR).
 * The device is open on return.
 */
extern const GhEngine *gh_choose_engine(double keys, const char **reason);

/*
 * Whether gh_choose_engine would, as it looks now, choose a device that is open already.  For costs:
 * it raises no error and opens nothing.
 */
extern bool gh_device_is_expected(double keys);

/* Whether there may be a number of keys for which it does: a quick answer. */
extern bool gh_device_may_be_expected(void);

/*
 * The CUDA engine with its device open, or NULL with *error telling why.  Tries
 * once in a session; retry asks anew.
 */
extern const GhEngine *gh_cuda_engine_open(bool retry, GhError *error);

/*
 * n buffers for requests' arrays, of `bytes` each, in the memory that the engine can
 * transfer best; all or none.  Of the service's engine requests need them; others
 * take ordinary memory, too.
 */
extern bool gh_buffers_alloc(const GhEngine *engine, int n, Size bytes, void **buffers);

/* What it is where gh_buffers_alloc, or gh_service_reserve, had nothing: GH_NO_BUFFERS. */
extern GhStatus gh_no_buffers(GhError *error);

/*
 * Frees memory of a device of the service, of what its owners can do without: so many bytes
 * should be free then, or false.  It waits for no lock.  May ereport.
 */
typedef bool (*GhEvictor) (int device, uint64 bytes);

/* Of _PG_init: who has such memory. */
extern void gh_evictor_register(GhEvictor evict);
/*
 * After a table of so many bytes was answered with this status: whether it was refused for lack of
 * memory and others have made room, so that it is worth another try.  May ereport.
 */
extern bool gh_make_room(const GhEngine *engine, GhStatus status, int device, uint64 bytes);

/* Counts that the CPU engine does what failed on this engine. */
extern void gh_count_fallback(const GhEngine *engine, const GhError *error);

/*
 * Table options from the settings: subtables, fill bounds, device and, for the
 * CUDA engine, the device memory limit.  8-byte keys, 8-byte values, a random
 * seed; capacity and the rest are the caller's.
 */
extern void gh_options_init(GhTableOptions *options, const GhEngine *engine);

/*
 * ereport(ERROR) for an engine's failure, with SQLSTATE and hint by status.
 * what completes the sentence "could not ...", e.g. "insert into table \"t\"".
 */
GH_NORETURN extern void gh_report_error(const GhError *error, const char *what);

/*
 * Bytes of table that a row will need: key and value, each of so many bytes, at a filled
 * factor between the upper bound and, right after a doubling, half of it.
 */
static inline double
gh_table_bytes_per_row(Size word)
{
	return 2 * word / (0.75 * gh_fill_max);
}

#endif							/* GPUHASH_PLACEMENT_H */
