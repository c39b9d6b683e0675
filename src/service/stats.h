/*
 * stats.h
 *		The list of devices, as the service and as a session of its own tell it.
 */
#ifndef GPUHASH_SERVICE_STATS_H
#define GPUHASH_SERVICE_STATS_H

#include "postgres.h"

#include "nodes/execnodes.h"

/* Columns of gpuhash_list_devices, in order. */
typedef enum GhDeviceColumn
{
	GH_DEVICE_COLUMN_ENGINE,
	GH_DEVICE_COLUMN_NUMBER,
	GH_DEVICE_COLUMN_NAME,
	GH_DEVICE_COLUMN_STATUS,
	GH_DEVICE_COLUMN_MEMORY_TOTAL,
	GH_DEVICE_COLUMN_MEMORY_FREE,
	GH_DEVICE_COLUMN_TABLES,
	GH_DEVICE_COLUMN_MEMORY_LIMIT,	/* from here on of the service only */
	GH_DEVICE_COLUMN_MEMORY_USED,
	GH_DEVICE_COLUMN_MEMORY_RESIDENT,
	GH_DEVICE_COLUMN_TRANSFER,
	GH_DEVICE_COLUMN_BUFFERS,
	GH_DEVICE_COLUMN_WORKER_PID,
	GH_DEVICE_COLUMN_WORKER_STARTS,
	GH_DEVICE_COLUMN_WORKER_CPU,
	GH_DEVICE_COLUMNS
} GhDeviceColumn;

/* A row of gpuhash_list_devices for each GPU of the service. */
extern void gh_service_emit_devices(ReturnSetInfo *result);

#endif							/* GPUHASH_SERVICE_STATS_H */
