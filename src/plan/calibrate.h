/*
 * calibrate.h
 *		What gpuhash_calibrate measures.
 */
#ifndef GPUHASH_PLAN_CALIBRATE_H
#define GPUHASH_PLAN_CALIBRATE_H

#include "postgres.h"

#define GH_CALIBRATE_JOINS_MAX 8
#define GH_CALIBRATE_SCANS_MAX 4

/* A join, by PostgreSQL's hash join and by GpuHashJoin. */
typedef struct GhJoinTimes
{
	double		outer_rows;
	double		inner_rows;
	double		native_ms;
	double		native_cost;
	double		ms;
	double		other_cost;		/* the plan's, with gpuhash's own settings at 0 */
} GhJoinTimes;

/* A sum over a table, by a device. */
typedef struct GhScanTimes
{
	double		pages;
	double		pinned;			/* of them, those that it read in shared_buffers */
	double		ms;
} GhScanTimes;

typedef struct GhMeasurements
{
	int			njoins;
	GhJoinTimes joins[GH_CALIBRATE_JOINS_MAX];
	int			nscans;
	GhScanTimes scans[GH_CALIBRATE_SCANS_MAX];
	const char *no_joins;		/* constant: why there are too few, or NULL */
	const char *no_scans;
} GhMeasurements;

/* ---- calibrate_measure.c ---- */

extern void gh_calibrate_measure(const char *schema, GhMeasurements *measured);

#endif							/* GPUHASH_PLAN_CALIBRATE_H */
