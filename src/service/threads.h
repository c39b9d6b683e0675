/*
 * threads.h
 *		What the threads of a worker share: executor.c, which has their loops, and
 *		requests.c, which does what slots ask for.
 */
#ifndef GPUHASH_SERVICE_THREADS_H
#define GPUHASH_SERVICE_THREADS_H

#include "postgres.h"

#include <pthread.h>

#include "service/executor.h"
#include "service/faults.h"
#include "service/shared.h"

typedef struct GhExecutor
{
	pthread_t	thread;
	GhRing	   *ring;
	uint32		number;
	pg_atomic_uint64 reaping_ns;	/* since when it frees a table; 0: it does not */
	uint32	   *running;		/* slots with a request in the engine */
	uint32		nrunning;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool		woken;
} GhExecutor;

/* A request in the engine, by slot. */
typedef struct GhRunning
{
	bool		active;
	uint64		generation;		/* of the slot's request */
	uint32		table;
	GhRequest	request;
} GhRunning;

/* A table of this worker. */
typedef struct GhWorkerTable
{
	GhTable    *handle;			/* NULL: none */
	uint64		generation;
	GhTableOptions options;
	uint32		running;		/* requests in the engine */
	uint32		number;
} GhWorkerTable;

/* The worker's own, of this process; fixed once the threads run, but for what slots and
 * tables point to, each of which one thread uses. */
typedef struct GhWorker
{
	GhRunning  *running_by_slot;
	GhWorkerTable *tables;
	const GhEngine *engine;
	GhDevice   *device;
	uint32		device_index;	/* of the service's devices */
	int			cuda_device;	/* CUDA's number of it */
	uint64		instance;
	int			wake_pipe;		/* what is written to it wakes the main thread */
} GhWorker;

extern GhWorker gh_worker;

/* ---- executor.c ---- */

extern void gh_executor_tell_main(void);
/* The device is of no use any more: the main thread ends the process. */
extern void gh_executor_declare_lost(const GhError *error);
/* A fault point on the way of a request: what a test wants to happen, as a status. */
extern GhStatus gh_executor_pass_point(GhFaultPoint point, GhError *error);

/* ---- requests.c ---- */

/* Begins with a slot that came through the ring. */
extern void gh_executor_start(GhExecutor *executor, uint32 number, uint64 generation);
/* Polls everything in the engine once; true when something ended. */
extern bool gh_executor_poll(GhExecutor *executor);
/* Frees tables that nobody wants any more; true when there was one. */
extern bool gh_executor_reap(GhExecutor *executor);

#endif							/* GPUHASH_SERVICE_THREADS_H */
