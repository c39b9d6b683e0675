/*
 * operators.c
 *		gpuhash_add_operator_classes: gives the access method the operator families and classes that
 *		PostgreSQL's B-tree has, with their names, their defaults and all their members.
 *
 * The extension's script calls it, so that each server brings its own; then only what is PostgreSQL's own
 * is added. Later calls add what is not there yet: the operator classes of other extensions and of users,
 * members that were added to a family, and what a newer server has after pg_upgrade.
 *
 * All members of a family, those of different types, too: from 18 on the planner puts equalities together
 * only where all access methods that sort have them in the same families, those of other tables' columns,
 * too.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(gpuhash_add_operator_classes);

/*
 * Families of B-tree and ours of the same name, with the schemas of both.  What PostgreSQL's own schema
 * has is in that of our handler here; where another of that name is there already, this is left out.  $1:
 * only PostgreSQL's own.
 *
 * Members are strings, as they stand in CREATE OPERATOR CLASS.
 */
static const char families[] =
"WITH method AS ("
"	SELECT a.oid AS ours, b.oid AS theirs, p.pronamespace AS home, 'pg_catalog'::regnamespace::oid AS own"
"	FROM pg_am a JOIN pg_proc p ON p.oid = a.amhandler, pg_am b"
"	WHERE a.amname = 'gpuhash' AND b.amname = 'btree'), "
"family AS ("
"	SELECT m.*, b.oid AS their_family, b.opfname AS name, s.schema, g.oid AS our_family"
"	FROM method m JOIN pg_opfamily b ON b.opfmethod = m.theirs"
"	CROSS JOIN LATERAL ("
"		SELECT CASE b.opfnamespace WHEN m.own THEN m.home ELSE b.opfnamespace END AS schema) s"
"	LEFT JOIN pg_opfamily g ON g.opfmethod = m.ours AND g.opfname = b.opfname AND g.opfnamespace = s.schema"
"	WHERE (b.opfnamespace = m.own OR NOT $1)"
"	AND (b.opfnamespace = m.own OR b.opfnamespace <> m.home OR NOT EXISTS ("
"		SELECT FROM pg_opfamily o"
"		WHERE o.opfmethod = m.theirs AND o.opfnamespace = m.own AND o.opfname = b.opfname))), "
"member AS ("
"	SELECT amopfamily AS family, amoplefttype AS lefttype, amoprighttype AS righttype, 'o' AS kind,"
"		amopstrategy AS number, oprnamespace AS schema,"
"		format('OPERATOR %s %s.%s (%s, %s)', amopstrategy, oprnamespace::regnamespace,"
"		oprname, format_type(oprleft, NULL), format_type(oprright, NULL)) AS item"
"	FROM pg_amop JOIN pg_operator o ON o.oid = amopopr"
"	UNION ALL"
"	SELECT amprocfamily, amproclefttype, amprocrighttype, 'f', amprocnum, pronamespace,"
"		format('FUNCTION %s (%s, %s) %s', amprocnum, format_type(amproclefttype, NULL),"
"		format_type(amprocrighttype, NULL), p.oid::regprocedure)"
"	FROM pg_amproc JOIN pg_proc p ON p.oid = amproc), "
"missing AS ("
"	SELECT f.*, b.lefttype, b.righttype, b.kind, b.number, b.item"
"	FROM family f JOIN member b ON b.family = f.their_family AND (b.schema = f.own OR NOT $1)"
"	WHERE NOT EXISTS (SELECT FROM member o WHERE o.family = f.our_family AND o.lefttype = b.lefttype"
"		AND o.righttype = b.righttype AND o.kind = b.kind AND o.number = b.number)) ";

static const char make_families[] =
"SELECT format('CREATE OPERATOR FAMILY %s.%I USING gpuhash', schema::regnamespace, name)"
" FROM family WHERE our_family IS NULL ORDER BY their_family";

/*
 * Of classes with the same type in one family, as text_ops and varchar_ops, the first one has the
 * members.  The grammar wants something of the others: what they store is what they compare.
 */
static const char make_classes[] =
"SELECT format('CREATE OPERATOR CLASS %s.%I %sFOR TYPE %s USING gpuhash FAMILY %s.%I AS %s',"
"	s.schema::regnamespace, c.opcname,"
"	CASE WHEN c.opcdefault AND NOT EXISTS (SELECT FROM pg_opclass d WHERE d.opcmethod = f.ours"
"		AND d.opcintype = c.opcintype AND d.opcdefault) THEN 'DEFAULT ' END,"
"	format_type(c.opcintype, NULL), f.schema::regnamespace, f.name,"
"	coalesce(CASE WHEN c.oid = first_value(c.oid) OVER ("
"			PARTITION BY c.opcfamily, c.opcintype ORDER BY c.opcdefault DESC, c.oid) THEN"
"		(SELECT string_agg(item, ', ' ORDER BY kind DESC, number) FROM missing m"
"		WHERE m.their_family = c.opcfamily AND m.lefttype = c.opcintype AND m.righttype = c.opcintype) END,"
"		'STORAGE ' || format_type(c.opcintype, NULL)))"
" FROM family f JOIN pg_opclass c ON c.opcfamily = f.their_family AND (c.opcnamespace = f.own OR NOT $1)"
" CROSS JOIN LATERAL (SELECT CASE c.opcnamespace WHEN f.own THEN f.home ELSE c.opcnamespace END AS schema) s"
" WHERE NOT EXISTS (SELECT FROM pg_opclass o"
"	WHERE o.opcmethod = f.ours AND o.opcname = c.opcname AND o.opcnamespace = s.schema)"
" ORDER BY c.oid";

static const char add_members[] =
"SELECT format('ALTER OPERATOR FAMILY %s.%I USING gpuhash ADD %s', schema::regnamespace, name,"
"	string_agg(item, ', ' ORDER BY kind DESC, lefttype, righttype, number))"
" FROM missing GROUP BY schema, name, their_family ORDER BY their_family";

/* Whether the script of this extension runs. */
static bool
is_our_script(void)
{
	return creating_extension && CurrentExtensionObject == get_extension_oid("gpuhash", true);
}

/* Runs the statements that this query makes, each of which is a row of the result, too. */
static void
run_made(const char *query, bool only_own, ReturnSetInfo *result)
{
	Oid			type = BOOLOID;
	Datum		argument = BoolGetDatum(only_own);
	StringInfoData text;
	uint64		count;
	char	  **statements;

	initStringInfo(&text);
	appendStringInfoString(&text, families);
	appendStringInfoString(&text, query);
	if (SPI_execute_with_args(text.data, 1, &type, &argument, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list operator classes");
	count = SPI_processed;
	statements = palloc_array(char *, count);
	for (uint64 i = 0; i < count; i++)
		statements[i] = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
	for (uint64 i = 0; i < count; i++)
	{
		Datum		value = CStringGetTextDatum(statements[i]);
		bool		isnull = false;

		if (SPI_execute(statements[i], false, 0) != SPI_OK_UTILITY)
			elog(ERROR, "could not run \"%s\"", statements[i]);
		tuplestore_putvalues(result->setResult, result->setDesc, &value, &isnull);
	}
}

Datum
gpuhash_add_operator_classes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		only_own = is_our_script();

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	run_made(make_families, only_own, result);
	run_made(make_classes, only_own, result);
	run_made(add_members, only_own, result);
	SPI_finish();
	return (Datum) 0;
}
