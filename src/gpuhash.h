/*
 * gpuhash.h
 *		The settings, which gpuhash.c defines.
 */
#ifndef GPUHASH_H
#define GPUHASH_H

#include "postgres.h"

/* ---- gpuhash.c: settings (GUCs), see README for each ---- */

typedef enum GhEngineSetting
{
	GH_ENGINE_AUTO,				/* CUDA where there is a GPU and it pays, else CPU */
	GH_ENGINE_CUDA,
	GH_ENGINE_CPU
} GhEngineSetting;

typedef enum GhFallbackSetting
{
	GH_FALLBACK_CPU,			/* a device error moves the query to the CPU engine */
	GH_FALLBACK_ERROR			/* a device error is the query's error */
} GhFallbackSetting;

/* What the settings allow; an engine may ask for more (gh_options_check). */
#define GH_FILL_MIN_MIN 0.01
#define GH_FILL_MAX_MIN 0.05

#define GH_BATCH_ROWS_MIN 256
#define GH_BATCH_ROWS_DEFAULT 16384
#define GH_BATCH_ROWS_MAX 1048576

#define GH_DEVICES_PER_QUERY_MIN 1
#define GH_DEVICES_PER_QUERY_DEFAULT 1
#define GH_DEVICES_PER_QUERY_MAX 16

/*
 * In the planner's unit, a page read in sequence.  PostgreSQL's hash join counts
 * 0.0125 an inner row and 0.0025 to 0.005 an outer row.  Measured against it
 * (BENCHMARKS.md), storing an inner row costs 1.2 times as much here, and looking
 * up an outer row a fifth where the table outgrows the processor's caches.
 */
#define GH_SETUP_COST_DEFAULT 100.0
#define GH_BUILD_TUPLE_COST_DEFAULT 0.0150
#define GH_PROBE_TUPLE_COST_DEFAULT 0.0005
/* of 25, 7 and 50,000 rows of PostgreSQL's scan, at 22 ns each: measured on one host */
#define GH_DEVICE_PAGE_COST_DEFAULT 0.25
#define GH_DEVICE_BUS_COST_DEFAULT 0.07
#define GH_DEVICE_START_COST_DEFAULT 500.0

extern bool gh_enabled;
extern bool gh_enable_join;
extern bool gh_enable_scan;
extern bool gh_enable_aggregate;
extern bool gh_enable_rows;
extern bool gh_enable_inline;
extern bool gh_enable_unnest;
extern bool gh_enable_index;
extern bool gh_enable_key_values;
extern bool gh_enable_resident;
extern int	gh_engine_setting;
extern int	gh_fallback_setting;
extern bool gh_force_offload;
extern bool gh_explain_why;
extern int	gh_devices_per_query;
extern int	gh_batch_rows;
extern int	gh_subtables;
extern double gh_fill_min;
extern double gh_fill_max;
extern double gh_setup_cost;
extern double gh_build_tuple_cost;
extern double gh_probe_tuple_cost;
extern double gh_device_page_cost;
extern double gh_device_bus_cost;
extern double gh_device_start_cost;
extern int	gh_device_memory_limit; /* MB; -1: what the device has */
extern int	gh_paging_memory;	/* MB; -1: gh_paging_limit says it */

#endif							/* GPUHASH_H */
