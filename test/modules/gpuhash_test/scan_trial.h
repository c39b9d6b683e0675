/*
 * scan_trial.h
 *		Plans of scans for tests.
 */
#ifndef GPUHASH_TEST_SCAN_TRIAL_H
#define GPUHASH_TEST_SCAN_TRIAL_H

#include "service/client.h"

/* Over an int4 and an int8; options, and what they point to. */
typedef struct GhTrialPlan
{
	GhScanOptions options;
	pg_attribute_aligned(16) GhProgram program;
	GhColumn	columns[3];		/* behind the program */
	GhPageAttribute attributes[2];
	GhScanKey	key;
	GhAggregate aggregates[3];
	GhScanPart	part;
	uint16		kept;
	GhScanFill	fill;
	GhScanJoin	join;
} GhTrialPlan;

/* Columns only; joined: a third one, that a table fills. */
extern void gh_trial_plan(GhTrialPlan *plan, bool joined);
/* Groups by the first column, with their count and sums. */
extern void gh_trial_groups(GhTrialPlan *plan, bool joined);
/* A table by the first column, that keeps the second one. */
extern void gh_trial_table(GhTrialPlan *plan);
/* An inner join with such a table. */
extern void gh_trial_join(GhTrialPlan *plan, GhScan *table);
/* Such a scan of this process; throws where there is none. */
extern GhScan *gh_trial_make(GhTrialPlan *plan);

#endif							/* GPUHASH_TEST_SCAN_TRIAL_H */
