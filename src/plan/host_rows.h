/*
 * host_rows.h
 *		Rows of joins that the CPU engine makes as a whole.
 */
#ifndef GPUHASH_HOST_ROWS_H
#define GPUHASH_HOST_ROWS_H

#include "postgres.h"

#include "nodes/plannodes.h"

extern void gh_host_rows(PlannedStmt *stmt, int options);

#endif							/* GPUHASH_HOST_ROWS_H */
