/*
 * client.h
 *		The client's side of the service: what slots.c and the files client*.c offer each other.
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
	bool		made;			/* by a pipeline: options are the sizes that requests see */
	struct GhServiceTable *next;	/* of this process's own tables */
} GhServiceTable;

/*
 * A handle on the table of that entry, without its options, to be pfree()d or destroyed; NULL: out of memory.
 */
extern GhServiceTable *gh_client_table_handle(const GhHost *host, uint32 table, uint64 generation, GhError *error);
/* It goes with this process. */
extern void gh_client_own_table(GhServiceTable *handle);
/* At this process's end: its tables go, and its entries. */
extern void gh_client_drop_tables(void);
/* The ring that requests on the table go into; wakes its executor where that sleeps. */
extern GhRing *gh_client_ring(uint32 device, uint32 table);
extern void gh_client_wake(uint32 device, GhRing *ring);
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

/* The slot of this process, for a request on the table; waits until an earlier one is through. */
extern GhStatus gh_client_control_begin(int device, GhServiceOp op, uint32 table,
										uint64 generation, const GhHost *host, uint32 *number,
										GhError *error);
/* Such a request to its end.  On GH_OK the answer is in the slot until the caller leaves it. */
extern GhStatus gh_client_control(uint32 number, const GhHost *host, GhError *error);

/* ---- client_entry.c ---- */

/*
 * A free entry, now LIVE, or false.  procno -1: any process of the database's; executor -1:
 * any of them.
 */
extern bool gh_client_entry_take(uint32 device, int procno, GhEntryKind kind, int executor,
								 uint32 *table, uint64 *generation);
/* The device of an entry by its root, and the executor. */
extern int	gh_client_root_device(GhRef root);
extern int	gh_client_root_executor(GhRef root);
/* The entry of a root, if it is one that sessions of this database may use. */
extern bool gh_client_entry_find(GhRef root, uint32 *table, uint64 *generation);
/* It is to be freed, by its executor if it has one. */
extern void gh_client_entry_drop(uint32 table, uint64 generation);
/* Whether it is there, and its worker. */
extern bool gh_client_entry_lives(uint32 table, uint64 generation);

/* What a handle on a pipeline or marks has of its entry; host and shared are the maker's to set. */
typedef struct GhEntryHandle
{
	GhHost		host;
	uint32		table;			/* its entry */
	uint64		generation;
	bool		shared;			/* other processes have handles on it, too */
	uint32		results_slot;	/* of a call that was stopped on its way */
	uint64		results_generation; /* of its request; 0: there is none */
	uint64		queue_ns;		/* sums of the requests so far */
	uint64		run_ns;
	struct GhEntryHandle *next; /* of this process, not shared */
} GhEntryHandle;

/* Zeroed memory for a handle, to be pfree()d; NULL: there is none. */
extern void *gh_client_alloc(Size bytes, GhError *error);
/* Takes an entry for the handle. */
extern GhStatus gh_entry_open(GhEntryHandle *handle, int device, GhEntryKind kind, int executor, GhError *error);
/* The same, and has the worker make what so many bytes of a buffer tell; after an error there is no entry. */
extern GhStatus gh_entry_create(GhEntryHandle *handle, int device, GhEntryKind kind, int executor, GhServiceOp op,
								const void *buffer, Size bytes, GhError *error);
/* Another handle on a shared one; GH_DEVICE_ERROR: it is gone. */
extern GhStatus gh_entry_attach(GhEntryHandle *handle, GhRef root, GhEntryKind kind, GhError *error);
/* The handle ends, and what is not shared with it. */
extern void gh_entry_close(GhEntryHandle *handle);
/* What it names goes, shared or not. */
extern void gh_entry_drop(GhEntryHandle *handle);
/* It no longer goes with this process. */
extern void gh_entry_forget(GhEntryHandle *handle);
extern GhRef gh_entry_root(const GhEntryHandle *handle);
extern bool gh_entry_lives(const GhEntryHandle *handle);
extern GhStatus gh_entry_lost(const GhEntryHandle *handle, GhError *error);
/* More was told than there is room for: the buffer is not to be read by such numbers. */
extern GhStatus gh_entry_wrong_answer(const GhEntryHandle *handle, GhError *error);
/* The slot of this process's buffer that the address is in, if no request is in it, for one. */
extern bool gh_entry_slot(const GhEntryHandle *handle, const void *address, GhServiceOp op, uint32 *number);
/* The time that the slot's request took, which is through. */
extern void gh_entry_add_times(GhEntryHandle *handle, const GhSlot *slot);
/* A request without arrays; on GH_OK the answer is in the slot until it is left. */
extern GhStatus gh_entry_control(GhEntryHandle *handle, GhServiceOp op, GhRef named, uint32 *number,
								 GhError *error);
/* Records into an idle buffer, as pipeline.h says. */
extern GhStatus gh_entry_results(GhEntryHandle *handle, GhServiceOp op, GhCursor *cursor, size_t capacity,
								 void *buffer, size_t *bytes, GhError *error);
extern void gh_client_drop_entries(void);

/* ---- client_request.c: of engine.h ---- */

extern GhStatus gh_client_submit(GhTable *table, GhRequest *request);
extern GhStatus gh_client_poll(GhRequest *request);
extern GhStatus gh_client_wait(GhRequest *request);

/* ---- client_pipeline.c: of pipeline.h ---- */

/* A process's handle on a pipeline of the service. */
typedef struct GhServicePipeline
{
	GhPipeline	common;			/* first; without a plan */
	GhEntryHandle entry;
	bool		made;			/* the entry is that of the table, and goes with that one's handle */
} GhServicePipeline;

/* What a GhMarks of the service is. */
typedef struct GhServiceMarks
{
	GhEntryHandle entry;
} GhServiceMarks;

extern const GhPipelineEngine gh_service_pipelines;

#endif							/* GPUHASH_SERVICE_CLIENT_H */
