/*
 * result_rows.h
 *		What the SQL functions of this library return, where that is rows: as the script of this version declares it.
 */
#ifndef GPUHASH_RESULT_ROWS_H
#define GPUHASH_RESULT_ROWS_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "fmgr.h"

/*
 * The columns of a function's result are told by a letter each: b bool, i int, l bigint, f float8, t text, y bytea, o oid,
 * z timestamptz; in upper case (B, L, T, Y), an array of such.  Where the script of another version has made the function, so that it has
 * others, these end with an error (55000).
 */

/* Begins a set of rows, as InitMaterializedSRF. */
extern void gh_rows_begin(FunctionCallInfo fcinfo, const char *columns);
/* Of one row. */
extern TupleDesc gh_row_type(FunctionCallInfo fcinfo, const char *columns);

#endif							/* GPUHASH_RESULT_ROWS_H */
