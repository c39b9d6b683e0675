/*
 * result_rows.c
 *		Rows that the SQL functions return, as the script of this version declares them.
 *
 * A new library is there before ALTER EXTENSION UPDATE, and anybody may call the functions meanwhile: rows are made by place.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/regproc.h"

#include "compat.h"
#include "result_rows.h"

static Oid
type_of(char letter)
{
	switch (letter)
	{
		case 'b':
			return BOOLOID;
		case 'i':
			return INT4OID;
		case 'l':
			return INT8OID;
		case 'f':
			return FLOAT8OID;
		case 't':
			return TEXTOID;
		case 'y':
			return BYTEAOID;
		case 'o':
			return OIDOID;
		case 'z':
			return TIMESTAMPTZOID;
		case 'B':
			return BOOLARRAYOID;
		case 'L':
			return INT8ARRAYOID;
		case 'T':
			return TEXTARRAYOID;
		case 'Y':
			return BYTEAARRAYOID;
		default:
			elog(ERROR, "unrecognized type of a column: %c", letter);
	}
}

GH_NORETURN static void
report_other_version(FunctionCallInfo fcinfo)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("function %s is of another version of the extension than the library", format_procedure(fcinfo->flinfo->fn_oid)),
			 errhint("Update the extension: ALTER EXTENSION gpuhash UPDATE. Of a development version, drop it and create it again.")));
}

static void
expect_columns(FunctionCallInfo fcinfo, TupleDesc desc, const char *columns)
{
	int			count = (int) strlen(columns);

	if (desc->natts != count)
		report_other_version(fcinfo);
	for (int i = 0; i < count; i++)
		if (TupleDescAttr(desc, i)->atttypid != type_of(columns[i]))
			report_other_version(fcinfo);
}

void
gh_rows_begin(FunctionCallInfo fcinfo, const char *columns)
{
	InitMaterializedSRF(fcinfo, 0);
	expect_columns(fcinfo, ((ReturnSetInfo *) fcinfo->resultinfo)->setDesc, columns);
}

TupleDesc
gh_row_type(FunctionCallInfo fcinfo, const char *columns)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		report_other_version(fcinfo);
	expect_columns(fcinfo, desc, columns);
	return BlessTupleDesc(desc);
}
