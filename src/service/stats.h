/*
 * stats.h
 *		What the list of devices takes from the service.
 */
#ifndef GPUHASH_SERVICE_STATS_H
#define GPUHASH_SERVICE_STATS_H

#include "postgres.h"

#include "nodes/execnodes.h"

/* A row of gpuhash_list_devices for each GPU of the service. */
extern void gh_service_emit_devices(ReturnSetInfo *result);

#endif							/* GPUHASH_SERVICE_STATS_H */
