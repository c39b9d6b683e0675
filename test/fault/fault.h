/*
 * fault.h
 *		What the files of the stand-in for the CUDA engine offer each other.
 */
#ifndef GH_FAULT_H
#define GH_FAULT_H

#include "engine/engine.h"
#include "engine/pipeline/pipeline.h"

#define FAULT_DEVICES_MAX 64
#define FAULT_DEVICE_BYTES ((uint64_t) 1 << 30) /* of each device */

/* ---- fault_memory.c ---- */

/* What a table or a pipeline holds counts as memory of its device, and of its host's budget. */
typedef struct FaultMemory
{
	GhHost		host;			/* the caller's */
	int			device;
	bool		refused;		/* the last allocation was, by the budget */
	bool		pages;			/* what a device refuses is the host's (GhTableOptions.pages) */
	uint64_t	limit;			/* bytes of the device; 0: none */
	_Atomic uint64_t held;		/* bytes of the device */
	_Atomic uint64_t paged;		/* bytes of the host, beside those */
	_Atomic uint32_t users;		/* of one that was made: a pipeline, and the table that it made */
} FaultMemory;

/* One with a user; NULL: out of memory.  It goes with the last of its users. */
extern FaultMemory *fault_memory_make(const GhHost *host, int device);
extern FaultMemory *fault_memory_share(FaultMemory *memory);
extern void fault_memory_leave(FaultMemory *memory);
/* Beyond that limit of the device, 0 for none, and where that refuses, it is the host's from now on. */
extern void fault_memory_page(FaultMemory *memory, uint64_t limit);
/* Bytes of the device that are taken. */
extern uint64_t fault_memory_taken(int device);
/* The host of the CPU engine's table or pipeline that takes such memory. */
extern void fault_inner_host(FaultMemory *memory, GhHost *inner);
/* The CPU engine knows no budget: to it, what the budget refused is lack of memory. */
extern GhStatus fault_status_of(const FaultMemory *memory, GhStatus status, GhError *error);

/* ---- fault_engine.c ---- */

/*
 * A table of this engine out of one of the CPU engine, which it becomes the owner of; a pipeline made it, with values of so
 * many bytes to requests.  NULL: out of memory.
 */
extern GhTable *fault_table_wrap(FaultMemory *memory, GhTable *inner, uint32_t value_size);
/* The CPU engine's table in it; one that is none of this engine stays what it is. */
extern GhTable *fault_table_inner(GhTable *table);

/* Whether the device still works; a request uses up one of those that may succeed. */
extern bool fault_device_works(bool is_request);
/* The allocation, and the launch, that are to fail by gh_cuda_fault_arm. */
extern bool fault_allocation_due(void);
extern bool fault_launch_due(void);
extern GhStatus fault_open_device(int device, GhError *error);
extern GhStatus fault_fail(GhError *error);

/* ---- fault_pipeline.c ---- */

extern const GhPipelineEngine fault_pipelines;

/* ---- registered.c ---- */

extern GhStatus range_register(void *memory, size_t bytes, bool read_only, GhError *error);
extern void range_unregister(void *memory);
/* A copy from or to memory that is registered in part fails on a device, and so does
 * one to memory that no device can write to. */
extern bool can_transfer(const void *array, uint64_t bytes, bool written);
/* Whether a device reads all of that itself; not across two registrations. */
extern bool is_registered(const void *array, uint64_t bytes);

#endif							/* GH_FAULT_H */
