/*
 * host_rows.h
 *		Rows of joins that the CPU engine makes as a whole.
 */
#ifndef GPUHASH_HOST_ROWS_H
#define GPUHASH_HOST_ROWS_H

#include "postgres.h"

#include "nodes/plannodes.h"

#include "plan/wanted.h"

/* Puts such nodes into a statement's plans; columns that lack for it are wanted. */
extern void gh_host_rows(PlannedStmt *stmt, int options, GhWantedList *wanted);

#endif							/* GPUHASH_HOST_ROWS_H */
