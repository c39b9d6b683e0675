/*
 * gpuhash_test.c
 *		The library: SQL functions that look into gpuhash.so, for tests alone.
 *
 * It calls internal functions of gpuhash.so and reads its variables; README says how they are
 * found.  Their addresses are known before _PG_init runs, because this library names that one
 * as needed; but gpuhash.so is initialized by PostgreSQL alone, when PostgreSQL loads it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "service/shared.h"

#include "gpuhash_test.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	load_file("$libdir/gpuhash", false);
}

void
gh_test_needs_service(void)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to test the service")));
	if (gh_service == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this server runs without the service")));
}
