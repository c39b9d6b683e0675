/*
 * pool.h
 *		pool.c: the server's buffers, where the worker's device reads them.
 */
#ifndef GPUHASH_SERVICE_POOL_H
#define GPUHASH_SERVICE_POOL_H

#include "service/shared.h"

/* ---- of the worker's main thread ---- */

/* Does what gpuhash.register_buffers says, and tells what came of it: once the device is ready,
 * after a reload, and whenever a thread of this file has woken the main thread. */
extern void gh_pool_look(GhDevice *device, const GhEngine *engine, int pipe_end);

/* ---- of its executors ---- */

/* Whether the device reads the buffers; if so it does until gh_pool_leave. */
extern bool gh_pool_enter(void);
extern void gh_pool_leave(void);
/* Where the device reads a page of the buffers, between these two. */
extern const char *gh_pool_place(const char *page);

#endif							/* GPUHASH_SERVICE_POOL_H */
