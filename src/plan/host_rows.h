/*
 * host_rows.h
 *		Rows of joins that the CPU engine makes as a whole.
 */
#ifndef GPUHASH_HOST_ROWS_H
#define GPUHASH_HOST_ROWS_H

#include "postgres.h"

#include "nodes/plannodes.h"

#include "plan/wanted.h"

/* So many rows of the scan's table have to be read for one that comes out. */
#define GH_READ_FOR_ONE 5
/* Of the table's pages, the share of which columns are there. */
#define GH_COLUMNS_THERE 0.5

/* Whether there may be such nodes: no device is expected to do the joins. */
extern bool gh_host_rows_are_expected(void);

/* Puts such nodes into a statement's plans. */
extern void gh_host_rows(PlannedStmt *stmt, int options);
/* What that would save of the plan's cost; columns that lack for it are wanted. */
extern Cost gh_host_rows_save(PlannedStmt *stmt, int options, GhWantedList *wanted);

#endif							/* GPUHASH_HOST_ROWS_H */
