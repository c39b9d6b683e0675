/*
 * inner_side.h
 *		The inner side of a join whose table is made on a device: what device_joins.c, device_rows.c and
 *		inner_side.c share.
 */
#ifndef GPUHASH_FRAGMENT_INNER_SIDE_H
#define GPUHASH_FRAGMENT_INNER_SIDE_H

#include "postgres.h"

#include "fragment/device.h"

/* An inner side: what its table is made of. */
typedef struct GhInnerSide
{
	GhFragment *fragment;
	GhJoinLevel *level;
	GhJoined   *joined;			/* it is these joins; NULL: a scan, or rows */
	bool		by_rows;		/* it is rows of the executor, which the join stores (device_rows.c) */
	PlanState  *scan;			/* by_rows: the plan that makes them */
	Relation	relation;		/* by_rows: NULL, and so is pages */
	GhPages    *pages;
	GhTranslation *translation;
	int			nkeys;			/* parts of the key: of rows 1, which is the whole key */
	GhOperand  *keys;
	GhOperand  *kept;			/* by the level's columns; behind them, where it is asked for, the place */
	GhProgram  *program;
	uint32		nfilters;		/* instructions of the scan's conditions */
} GhInnerSide;

/* ---- inner_side.c ---- */

extern bool gh_side_find(GhFragment *fragment, GhJoinLevel *level, GhInnerSide *side);
extern bool gh_side_make_program(GhInnerSide *side);
extern void gh_side_options(GhInnerSide *side, GhPipelineOptions *options);
extern int	gh_side_count_kept(const GhJoinLevel *level);

/* ---- device_joins.c ---- */

extern GhProbe *gh_device_make_probes(const GhDeviceRun *device, const GhJoined *joined);

/* ---- device_tables.c ---- */

extern bool gh_device_digest(GhFragment *fragment, GhInnerSide *side, uint8 digest[PG_SHA256_DIGEST_LENGTH]);

/* ---- device_rows.c ---- */

extern const char *gh_side_rows_refused(const GhInnerSide *side);
extern GhTranslation *gh_side_begin_rows(const GhInnerSide *side);
extern bool gh_side_store_rows(GhFragment *fragment, int number, bool *reached);
extern bool gh_side_supply_rows(GhFragment *fragment, int number);

/* The device does not do it, for this reason: a constant string.  Returns false. */
static inline bool
gh_device_refuses(GhFragment *fragment, const char *why)
{
	fragment->device->why_not = why;
	return false;
}

/* Whether nothing comes out of the join without a match. */
static inline bool
gh_drops_without_match(const GhLowerJoin *lower)
{
	return lower->jointype == JOIN_INNER || lower->jointype == JOIN_SEMI;
}

#endif							/* GPUHASH_FRAGMENT_INNER_SIDE_H */
