/*
 * device.h
 *		What a GpuHashAggregate has done by a scan of an engine (engine/scan.h): on the device.
 */
#ifndef GPUHASH_AGGREGATE_DEVICE_H
#define GPUHASH_AGGREGATE_DEVICE_H

#include "postgres.h"

#include "aggregate/exec.h"
#include "aggregate/supply.h"

/* Blocks that were read one behind the other. */
typedef struct GhBlockRange
{
	BlockNumber first;
	BlockNumber count;
} GhBlockRange;

typedef struct GhDevice
{
	MemoryContext context;		/* of all that one run needs */
	bool		tried;			/* in this run */
	bool		running;		/* pages go to the device */
	bool		tables_made;	/* of the joins, on the device */
	const char *why_not;		/* a constant string */
	GhSupply	supply;
	GhSupply   *tables[GH_SCAN_JOINS_MAX];	/* that made the joins' tables, by level */
	/* what this participant has read, to read it again where the device is lost */
	int			nranges;
	int			ranges_room;
	GhBlockRange *ranges;
} GhDevice;

extern void gh_device_init(GhAggregateNode *node);
extern void gh_device_options(const GhEngine *engine, Relation relation, const GhProgram *program,
							  GhScanOptions *options);
extern void gh_device_give_up(GhAggregateNode *node, const GhSupply *supply);
extern void gh_device_keep_counts(GhAggregateNode *node, const GhSupply *supply,
												instr_time *elapsed);
extern bool gh_device_open_joins(GhAggregateNode *node);
extern bool gh_device_wants(GhAggregateNode *node);
extern bool gh_device_read(GhAggregateNode *node);
extern void gh_device_log(GhAggregateNode *node, BlockNumber block);
extern void gh_device_forget(GhAggregateNode *node);

/* ---- device_joins.c ---- */

extern bool gh_device_make_tables(GhAggregateNode *node, const GhEngine *engine);
extern void gh_device_end_tables(GhAggregateNode *node);
extern GhScanJoin *gh_device_joins(GhAggregateNode *node);

#endif							/* GPUHASH_AGGREGATE_DEVICE_H */
