/*
 * host.h
 *		host.c: what an engine is given by the backend that uses it: memory out of memory
 *		contexts, waits with PostgreSQL's interrupts, and its library.
 */
#ifndef GPUHASH_HOST_H
#define GPUHASH_HOST_H

#include "postgres.h"

#include "utils/dsa.h"

#include "compat.h"
#include "engine/engine.h"

/* Of memory that engines ask for. */
#define GH_HOST_ALIGNMENT 64

/*
 * Memory in an area: of so many bytes, of which twice the alignment at most are in front of what is returned,
 * with a head of the caller's there.  0: there is none.  *start: what is to be freed.  May throw.
 */
extern GhRef gh_area_alloc(dsa_area *area, Size bytes, Size head, dsa_pointer *start);

/*
 * Where a table of this session keeps its host memory.  Lives at least as long
 * as the table; gh_host_init fills host so that it allocates from context.
 * The memory is freed by the table, or with the context at the latest.
 */
extern void gh_host_init(GhHost *host, MemoryContext context);

/* What tables that page may take of page-locked memory, for each of so many that share it, in bytes. */
extern uint64 gh_paging_limit(int sharers);
/* The host takes such memory, from what this session may. */
extern void gh_host_pages(GhHost *host);

/* The path of gpuhash.so itself, or an empty string.  The main thread calls first. */
extern const char *gh_library_path(void);

/* That of the CUDA engine's library: beside gpuhash.so, else in pkglibdir.  The main thread calls first. */
extern const char *gh_cuda_library_path(void);

/*
 * Loads the CUDA engine and opens the device, with signals blocked.  Does not throw; retry:
 * where it failed before, anew.  In a worker of the service any thread may call it.
 */
extern GhStatus gh_cuda_engine_load(int device, bool retry, const GhEngine **engine, GhError *error);

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

#endif							/* GPUHASH_HOST_H */
