/*
 * create.c
 *		gpuhash_create and gpuhash_drop, and the drop of all tables of a session.
 *
 * A new table is entered under its name before it is made, not ready, so that two
 * sessions do not make one of the same name.  Its maker holds the table's lock
 * meanwhile, and takes the entry back when it fails, at the end of its process too.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"

#include "gpuhash.h"
#include "service/service.h"
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

static void
value_size_args(FunctionCallInfo fcinfo, GhTableInfo *info)
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
read_arguments(FunctionCallInfo fcinfo, GhTableInfo *info)
{
	memset(info, 0, sizeof(*info));
	strlcpy(info->name, gh_table_name_arg(fcinfo, 0), NAMEDATALEN);
	info->database = MyDatabaseId;
	info->owner = GetUserId();
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

static void
mark_ready(GhTableInfo *info, void *arg)
{
	(void) arg;
	info->ready = true;
}

/* The table goes, with all that there is of it; under GH_TO_DROP. */
static void
remove_table(GhAccess *access)
{
	uint64		id = access->info.id;
	GhNamedTable *table = access->table;

	if (access->handle != NULL)
		gh_engines_close(access);
	access->table = NULL;
	gh_handle_forget(id);
	gh_names_remove(table);
	if (gh_service_enabled())
		pg_atomic_fetch_add_u64(gh_shared_drops(), 1);
}

/* Enters the table.  One of that name that is not ready is being made: its maker is
 * waited for. */
static GhNamedTable *
enter_table(const GhTableInfo *info)
{
	for (;;)
	{
		GhNamedTable *table = gh_names_add(info);
		GhTableInfo other;
		GhAccess	access = {0};

		if (table != NULL)
			return table;
		CHECK_FOR_INTERRUPTS();
		if (!gh_names_find(MyDatabaseId, info->name, &other))
			continue;
		if (other.ready)
			report_duplicate(info->name);
		if (!gh_access_try(&access, &other, GH_TO_DROP))
			continue;
		/* its maker could neither finish it nor take it back */
		if (!access.info.ready)
			remove_table(&access);
		gh_access_end(&access);
	}
}

/* The table that this process is making. */
static GhAccess *making = NULL;

static void
take_back(void)
{
	GhAccess   *access = making;

	making = NULL;
	/* an error may have come from within the registry */
	LWLockReleaseAll();
	remove_table(access);
}

static void
take_back_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	if (making != NULL)
		take_back();
}

Datum
gpuhash_create(PG_FUNCTION_ARGS)
{
	static int	registered = 0;
	GhTableInfo info;
	GhAccess	access = {0};
	GhNamedTable *table;

	read_arguments(fcinfo, &info);
	if (registered != MyProcPid)
		before_shmem_exit(take_back_at_exit, (Datum) 0);
	registered = MyProcPid;
	info.id = gh_names_new_id();
	/* before the entry, so that nobody finds it without the lock */
	gh_access_lock_new(&access, &info);
	table = enter_table(&info);
	access.table = table;
	making = &access;
	PG_TRY();
	{
		gh_access_new(&access, table);
		gh_engines_open(&access);
		(void) gh_names_change(&access.info, mark_ready, NULL);
	}
	PG_CATCH();
	{
		take_back();
		PG_RE_THROW();
	}
	PG_END_TRY();
	making = NULL;
	gh_access_end(&access);
	PG_RETURN_VOID();
}

/* --------------------------------------------------------------------- drop */

Datum
gpuhash_drop(PG_FUNCTION_ARGS)
{
	GhTableInfo info;
	GhAccess	access = {0};

	gh_table_lookup(gh_table_name_arg(fcinfo, 0), GH_MAY_OWN, &info);
	if (!gh_access_try(&access, &info, GH_TO_DROP))
		gh_table_report_missing(info.name);
	remove_table(&access);
	gh_access_end(&access);
	PG_RETURN_VOID();
}

/*
 * Of a session without the service.  A call on a table runs no statement of a user's while it holds the table, and
 * looks the name up again before it goes on: so nothing is dropped under somebody.
 */
void
gh_drop_session_tables(void)
{
	int			count;
	GhTableInfo *tables = gh_names_list(MyDatabaseId, &count);

	for (int i = 0; i < count; i++)
	{
		GhAccess	access = {0};

		if (!gh_access_try(&access, &tables[i], GH_TO_DROP))
			continue;
		remove_table(&access);
		gh_access_end(&access);
	}
	pfree(tables);
}
