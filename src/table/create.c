/*
 * create.c
 *		gpuhash_create and gpuhash_drop, and the drop of all tables of a session.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "gpuhash.h"
#include "table/table.h"

PG_FUNCTION_INFO_V1(gpuhash_create);
PG_FUNCTION_INFO_V1(gpuhash_drop);

/* ---------------------------------------------------------------- arguments */

static int
subtables_arg(FunctionCallInfo fcinfo, int argno)
{
	int32		subtables;

	if (PG_ARGISNULL(argno))
		return 0;
	subtables = PG_GETARG_INT32(argno);
	if (subtables < GH_SUBTABLES_MIN || subtables > GH_SUBTABLES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("subtables is %d but must be between %d and %d", subtables,
						GH_SUBTABLES_MIN, GH_SUBTABLES_MAX),
				 errhint("Leave it out for the value of \"gpuhash.subtables\".")));
	return subtables;
}

/*
 * Only what the engines would take for "not given" is checked here; they check
 * how the bounds fit each other and the subtables.
 */
static double
fill_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	double		fill;

	if (PG_ARGISNULL(argno))
		return 0;
	fill = PG_GETARG_FLOAT8(argno);
	if (!(fill > 0 && fill <= GH_FILL_MAX_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is %g but must be above 0 and at most %g", name, fill,
						GH_FILL_MAX_MAX),
				 errhint("Leave it out for the value of \"gpuhash.%s\".", name)));
	return fill;
}

static int64
capacity_arg(FunctionCallInfo fcinfo, int argno)
{
	int64		capacity = PG_ARGISNULL(argno) ? GH_CAPACITY_DEFAULT : PG_GETARG_INT64(argno);

	if (capacity < GH_CAPACITY_MIN || capacity > GH_CAPACITY_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity is %lld but must be between %d and %lld keys",
						(long long) capacity, GH_CAPACITY_MIN,
						(long long) GH_CAPACITY_MAX),
				 errhint("Tables grow by themselves: leave it out when it is not known.")));
	return capacity;
}

static int
key_size_arg(FunctionCallInfo fcinfo, int argno)
{
	int			key_size = PG_ARGISNULL(argno) ? GH_KEY_SIZE_DEFAULT : PG_GETARG_INT32(argno);

	if (key_size != GH_KEY_SIZE_MIN && key_size != GH_KEY_SIZE_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("key_size is %d but must be %d or %d bytes", key_size, GH_KEY_SIZE_MIN, GH_KEY_SIZE_MAX),
				 errhint("8 is for keys of type bigint, 4 for those that fit type integer.")));
	return key_size;
}

static void
value_size_args(FunctionCallInfo fcinfo, GhStoredInfo *info)
{
	info->value_size = PG_ARGISNULL(1) ? GH_VALUE_SIZE_DEFAULT : PG_GETARG_INT32(1);
	info->multi = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	if (info->value_size < GH_VALUE_SIZE_MIN || info->value_size > GH_VALUE_SIZE_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value_size is %d but must be between %d and %d bytes",
						info->value_size, GH_VALUE_SIZE_MIN, GH_VALUE_SIZE_MAX),
				 errhint("8 is for bigint values, 0 for a set of keys, any other size for values of type bytea.")));
	if (info->multi && info->value_size == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a set cannot hold many values for a key"),
				 errhint("Leave out multi, or give a value_size of at least 1.")));
}

static void
read_arguments(FunctionCallInfo fcinfo, GhStoredInfo *info)
{
	memset(info, 0, sizeof(*info));
	gh_table_key(&info->key, gh_table_name_arg(fcinfo, 0));
	/* the script of an earlier build has not the argument */
	info->key_size = PG_NARGS() > 8 ? key_size_arg(fcinfo, 8) : GH_KEY_SIZE_DEFAULT;
	value_size_args(fcinfo, info);
	info->subtables = subtables_arg(fcinfo, 3);
	info->fill_min = fill_arg(fcinfo, 4, "fill_min");
	info->fill_max = fill_arg(fcinfo, 5, "fill_max");
	info->capacity = capacity_arg(fcinfo, 6);
	info->host_copy = PG_ARGISNULL(7) || PG_GETARG_BOOL(7);
	info->wants_copy = info->host_copy && gh_engine_setting != GH_ENGINE_CPU;
}

/* ------------------------------------------------------------------- create */

static void
report_duplicate(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("hash table \"%s\" already exists", name),
			 errhint("Empty it with gpuhash_clear, or drop it with gpuhash_drop.")));
}

Datum
gpuhash_create(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhRights	rights;
	const GhEngine *failed;
	GhError		error = {0};

	read_arguments(fcinfo, &info);
	memset(&rights, 0, sizeof(rights));
	rights.owner = GetUserId();
	if (!gh_store_create(&info, &rights, sizeof(rights), &failed, &error))
		report_duplicate(info.key.name);
	if (error.status != GH_OK)
		gh_table_report(info.key.name, failed, &error, "create");
	PG_RETURN_VOID();
}

/* --------------------------------------------------------------------- drop */

Datum
gpuhash_drop(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhAccess	access = {0};

	gh_table_lookup(gh_table_name_arg(fcinfo, 0), GH_MAY_OWN, &info);
	if (!gh_store_lock(&access, &info, GH_TO_DROP))
		gh_table_report_missing(info.key.name);
	gh_store_drop(&access);
	gh_store_unlock(&access);
	PG_RETURN_VOID();
}

/*
 * Of a session without the service.  A call on a table runs no statement of a user's while
 * it holds the table, and looks the name up again before it goes on: so nothing is dropped
 * under somebody.
 */
void
gh_drop_session_tables(void)
{
	int			count;
	GhStoredInfo *tables = gh_store_list(GH_STORE_TABLE, MyDatabaseId, &count);

	for (int i = 0; i < count; i++)
	{
		GhAccess	access = {0};

		if (!gh_store_lock(&access, &tables[i], GH_TO_DROP))
			continue;
		gh_store_drop(&access);
		gh_store_unlock(&access);
	}
	pfree(tables);
}
