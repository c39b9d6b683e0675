/*
 * session.h
 *		session.c: an engine as one backend uses it: which engine, its memory out
 *		of memory contexts, its waits with PostgreSQL's interrupts, its failures
 *		as ereport.
 */
#ifndef GPUHASH_SESSION_H
#define GPUHASH_SESSION_H

#include "postgres.h"

#include "compat.h"
#include "engine/engine.h"

/*
 * Where a table of this session keeps its host memory.  Lives at least as long
 * as the table; gh_host_init fills host so that it allocates from context.
 * The memory is freed by the table, or with the context at the latest.
 */
extern void gh_host_init(GhHost *host, MemoryContext context);

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

/*
 * The CUDA engine with its device open, or NULL with *error telling why.  Tries
 * once in a session; retry asks anew.
 */
extern const GhEngine *gh_cuda_engine_open(bool retry, GhError *error);

/* The path of gpuhash.so itself, or an empty string.  The main thread calls first. */
extern const char *gh_library_path(void);

/* That of the CUDA engine's library: beside gpuhash.so, else in pkglibdir.  The main thread calls first. */
extern const char *gh_cuda_library_path(void);

/* Likewise in a worker of the service, by any of its threads, for that CUDA device; each
 * call is a new try. */
extern const GhEngine *gh_cuda_engine_for_worker(int device, GhError *error);

/*
 * n buffers for requests' arrays, of `bytes` each, in the memory that the engine can
 * transfer best; all or none.  Of the service's engine requests need them; others
 * take ordinary memory, too.
 */
extern bool gh_buffers_alloc(const GhEngine *engine, int n, Size bytes, void **buffers);

/* Counts that the CPU engine does what failed on this engine. */
extern void gh_count_fallback(const GhEngine *engine, const GhError *error);

/*
 * Table options from the settings: subtables, fill bounds, device and, for the
 * CUDA engine, the device memory limit.  8-byte keys, 8-byte values, a random
 * seed; capacity and the rest are the caller's.
 */
extern void gh_options_init(GhTableOptions *options, const GhEngine *engine);

/*
 * Submits a request and waits for its end, cancel and statement_timeout
 * included.  Returns the final status, never GH_BUSY or GH_STOPPED; what is an
 * error is the caller's to decide (gh_report_error).
 */
extern GhStatus gh_run_request(GhTable *table, GhRequest *request);
/* The second half, for a request already submitted. */
extern GhStatus gh_wait_request(GhTable *table, GhRequest *request);
/* Likewise for calls that return GH_STOPPED when interrupted: create, clear. */
extern GhStatus gh_create_table(const GhEngine *engine, const GhHost *host,
								const GhTableOptions *options, GhTable **table,
								GhError *error);
extern GhStatus gh_clear_table(GhTable *table, GhError *error);

/*
 * Serves the interrupt that ended an engine's call with GH_STOPPED; to be called
 * before the call is tried again.  Throws when the interrupt says so, and when
 * interrupts are held off: every further try would stop at once.
 */
extern void gh_serve_interrupt(void);

/*
 * ereport(ERROR) for an engine's failure, with SQLSTATE and hint by status.
 * what completes the sentence "could not ...", e.g. "insert into table \"t\"".
 */
GH_NORETURN extern void gh_report_error(const GhError *error, const char *what);

#endif							/* GPUHASH_SESSION_H */
