/*
 * fault.h
 *		What the files of the stand-in for the CUDA engine offer each other.
 */
#ifndef GH_FAULT_H
#define GH_FAULT_H

#include "engine/engine.h"
#include "engine/pipeline/scan.h"

/* ---- fault_engine.c ---- */

/* What a table or scan holds counts as memory of its device, and of its host's budget. */
typedef struct FaultMemory
{
	GhHost		host;			/* the caller's */
	int			device;
	bool		refused;		/* the last allocation was, by the budget */
} FaultMemory;

/* The host of the CPU engine's table or scan that takes such memory. */
extern void fault_inner_host(FaultMemory *memory, GhHost *inner);
/* The CPU engine knows no budget: to it, what the budget refused is lack of memory. */
extern GhStatus fault_status_of(const FaultMemory *memory, GhStatus status, GhError *error);
/* Whether the device still works; a request uses up one of those that may succeed. */
extern bool fault_device_works(bool is_request);
/* The launch that is to fail by gh_cuda_fault_arm. */
extern bool fault_launch_due(void);
extern GhStatus fault_open_device(int device, GhError *error);
extern GhStatus fault_fail(GhError *error);

/* ---- fault_scan.c ---- */

extern const GhScanEngine fault_scans;

/* ---- registered.c ---- */

extern GhStatus range_register(void *memory, size_t bytes, bool read_only, GhError *error);
extern void range_unregister(void *memory);
/* A copy from or to memory that is registered in part fails on a device, and so does
 * one to memory that no device can write to. */
extern bool can_transfer(const void *array, uint64_t bytes, bool written);
/* Whether a device reads all of that itself; not across two registrations. */
extern bool is_registered(const void *array, uint64_t bytes);

#endif							/* GH_FAULT_H */
