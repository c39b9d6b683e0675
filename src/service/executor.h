/*
 * executor.h
 *		The threads of a worker, as its main thread sees them.
 */
#ifndef GPUHASH_SERVICE_EXECUTOR_H
#define GPUHASH_SERVICE_EXECUTOR_H

#include "postgres.h"

#include "engine/engine.h"

/* Starts them for the index-th device of the service, which the engine has open. */
extern bool gh_executors_start(uint32 index, int cuda_number, const GhEngine *engine,
							   int pipe_end);
/* Those that sleep and have something to do begin. */
extern void gh_executors_wake(void);
extern bool gh_executors_asleep(void);
/* Since when one of them frees a table, monotonic; 0: none does. */
extern uint64 gh_executors_reaping_since(void);
/* The device answers no more: this process is of no use. */
extern bool gh_executors_device_lost(GhError *error);

#endif							/* GPUHASH_SERVICE_EXECUTOR_H */
