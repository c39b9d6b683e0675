/*
 * client.h
 *		The client's side of the service: what slots.c and client.c offer each
 *		other.
 */
#ifndef GPUHASH_SERVICE_CLIENT_H
#define GPUHASH_SERVICE_CLIENT_H

#include "service/shared.h"

/* Buffers that are reserved at a time. */
#define GH_RESERVE_MAX 8

/* ---- slots.c ---- */

extern void gh_client_join(void);
/* Takes this process's own slot; false while an earlier request is still in it. */
extern bool gh_slot_of_process(uint32 *number);
extern void gh_slot_leave(uint32 number);
extern bool gh_buffer_slot(const void *address, uint32 *number);

/* ---- client.c ---- */

/* At this process's end: its tables go. */
extern void gh_client_drop_tables(void);

/* ---- shmem.c ---- */

typedef enum GhWait
{
	GH_WAIT_REQUEST,			/* an answer of the worker */
	GH_WAIT_BUFFER,				/* units of the transfer area */
	GH_WAIT_WORKER,				/* the worker, for requests */
	GH_WAITS
} GhWait;

extern uint32 gh_wait_event(GhWait wait);

#endif							/* GPUHASH_SERVICE_CLIENT_H */
