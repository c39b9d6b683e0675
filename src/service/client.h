/*
 * client.h
 *		The client's side of the service: what slots.c, client.c and client_request.c
 *		offer each other.
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
extern uint64 gh_slot_submit(uint32 number);
extern void gh_slot_reuse(uint32 number);
extern void gh_slot_leave(uint32 number);
extern bool gh_buffer_slot(const void *address, uint32 *number);

/* ---- client.c ---- */

/* A process's handle on a table of the service. */
typedef struct GhServiceTable
{
	GhTable		common;			/* first */
	GhHost		host;
	GhTableOptions options;
	uint32		table;
	uint64		generation;
	bool		own;			/* goes with this process */
	struct GhServiceTable *next;	/* of this process's own tables */
} GhServiceTable;

/* At this process's end: its tables go. */
extern void gh_client_drop_tables(void);
/* Of the service's devices; NULL: there is none of that number. */
extern GhDevice *gh_device_at(int device);
extern GhStatus gh_device_unavailable(int device, GhError *error);
extern bool gh_device_is_ready(GhDevice *device);
/* From here on the slot and its buffer are the service's; the generation names the request. */
extern uint64 gh_client_slot_submit(uint32 number);
/* GH_OK: the answer is in the slot.  GH_BUSY, or why there will be none. */
extern GhStatus gh_client_slot_look(uint32 number, GhError *error);
/* Waits for it; GH_STOPPED, after an interrupt: the request is still in flight. */
extern GhStatus gh_client_slot_wait(uint32 number, const GhHost *host, GhError *error);

/* A request that was submitted with its buffer: the slot, and the generation that names it. */
typedef struct GhFlight
{
	uint32		slot;
	uint64		generation;
} GhFlight;

/* GH_OK: its answer is in the slot.  GH_BUSY, or why there will be none. */
extern GhStatus gh_flight_poll(GhFlight flight, GhError *error);
/* Waits for it; GH_STOPPED, which leaves *error alone: the request is still in flight. */
extern GhStatus gh_flight_wait(GhFlight flight, const GhHost *host, GhError *error);

/*
 * A free entry, now LIVE, or false.  procno -1: any process of the database's; executor -1:
 * any of them.
 */
extern bool gh_client_entry_take(uint32 device, int procno, bool is_scan, int executor,
								 uint32 *table, uint64 *generation);
/* What an entry is named by for other processes; and the entry of such a name, if it is one that
 * sessions of this database may use. */
extern GhRef gh_client_entry_root(uint32 table, uint64 generation);
extern bool gh_client_entry_find(GhRef root, uint32 *table, uint64 *generation);
/* The table is to be freed, by its executor if it has one. */
extern void gh_client_entry_drop(uint32 table, uint64 generation);
/* Whether it is there, and its worker. */
extern bool gh_client_entry_lives(uint32 table, uint64 generation);
/* The slot of this process, for a request on the table; waits until an earlier one is through. */
extern GhStatus gh_client_control_begin(int device, GhServiceOp op, uint32 table,
										uint64 generation, const GhHost *host, uint32 *number,
										GhError *error);
/* Such a request to its end.  On GH_OK the answer is in the slot until the caller leaves it. */
extern GhStatus gh_client_control(uint32 number, const GhHost *host, GhError *error);

/* ---- client_request.c: of engine.h ---- */

/* Where an array is in the slot's buffer, GH_NO_ARRAY if it is NULL; false when it is elsewhere. */
extern bool gh_client_array(uint32 number, const void *array, GhOffset *offset);


extern GhStatus gh_client_submit(GhTable *table, GhRequest *request);
extern GhStatus gh_client_poll(GhRequest *request);
extern GhStatus gh_client_wait(GhRequest *request);

/* ---- client_scan.c: of scan.h ---- */

/* A process's handle on a scan of the service. */
typedef struct GhServiceScan
{
	GhScan		common;			/* first */
	GhHost		host;
	uint32		table;			/* its entry */
	uint64		generation;
	uint32		results_slot;	/* of a call that was stopped on its way */
	uint64		results_generation; /* of its request; 0: there is none */
	uint64		queue_ns;		/* sums of the requests so far */
	uint64		run_ns;
	bool		shared;			/* other processes have handles on it, too */
	struct GhServiceScan *next;	/* of this process, not shared */
} GhServiceScan;

extern const GhScanEngine gh_service_scans;
/* Of engine.h: whether that device's worker has registered the server's buffers. */
extern bool gh_client_reads_pool(int device);
extern void gh_client_drop_scans(void);

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
