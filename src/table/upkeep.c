/*
 * upkeep.c
 *		SQL functions on a named table as a whole: gpuhash_clear, gpuhash_reserve and
 *		gpuhash_compact, and what they ask of the engines.
 *
 * Room that is made or given back changes nothing of what a table holds.  So the copy on a
 * device can be relied on meanwhile, and one that has no memory for the room stays as it is.
 */
#include "postgres.h"

#include "compat.h"
#include "host.h"
#include "service/service.h"
#include "table/table.h"

PG_FUNCTION_INFO_V1(gpuhash_clear);
PG_FUNCTION_INFO_V1(gpuhash_reserve);
PG_FUNCTION_INFO_V1(gpuhash_compact);

/* -------------------------------------------------------------------- clear */

/* The host's table first, which is empty from the first moment on. */
static void
clear_host(GhAccess *access)
{
	GhTable    *host = gh_table_host(access);
	GhReplica	replica;
	GhError		error = {0};

	gh_store_replica_begin(access, &replica);
	if (gh_clear_table(host, &error) != GH_OK)
		gh_table_report(access->info.key.name, host->engine, &error, "clear");
	if (replica.on_device != NULL && gh_clear_table(replica.on_device, &error) != GH_OK)
		gh_store_replica_fail(access, &replica, &error);
	gh_store_replica_end(access, &replica);
}

/* One that is lost, or is found to be, is made anew. */
static void
clear_device(GhAccess *access)
{
	const char *name = access->info.key.name;
	GhTable    *on_device = NULL;
	const GhEngine *failed;
	GhError		error = {0};
	GhStatus	status = GH_DEVICE_ERROR;

	if (gh_store_copy_is_ready(access->stored))
		on_device = gh_store_device(access, &error);
	if (on_device != NULL)
		status = gh_clear_table(on_device, &error);
	if (status != GH_DEVICE_ERROR && status != GH_OK)
		gh_table_report(name, on_device->engine, &error, "clear");
	if (status == GH_DEVICE_ERROR && gh_store_engines_open(access, &failed, &error) != GH_OK)
		gh_table_report(name, failed, &error, "create");
}

static void
remove_all(const GhStoredInfo *info)
{
	GhAccess	access = {0};

	if (!gh_store_lock(&access, info, GH_TO_WRITE))
		gh_table_report_missing(info->key.name);
	if (access.info.on_host)
		clear_host(&access);
	else
		clear_device(&access);
	pg_atomic_write_u64(&access.stored->keys, 0);
	gh_store_unlock(&access);
	gh_table_report_copy(&access);
}

Datum
gpuhash_clear(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;

	gh_table_lookup(gh_table_name_arg(fcinfo, 0), GH_MAY_WRITE, &info);
	remove_all(&info);
	PG_RETURN_VOID();
}

/* --------------------------------------------------------------------- room */

/* What is done with the room of an engine's table. */
typedef struct RoomWork
{
	const char *verb;
	bool		gives_back;		/* room that is not needed; else makes it */
	uint64		keys;			/* for so many */
} RoomWork;

static GhStatus
change_room(GhTable *table, const RoomWork *work, GhError *error)
{
	for (;;)
	{
		GhStatus	status = work->gives_back ? table->engine->table_flush(table, error) :
			table->engine->table_reserve(table, work->keys, error);

		if (status != GH_STOPPED)
			return status;
		gh_serve_interrupt();
	}
}

static void
change_room_of_copy(GhAccess *access, const RoomWork *work)
{
	GhError		error = {0};
	GhTable    *on_device;
	GhStatus	status;

	if (!gh_store_copy_is_ready(access->stored))
		return;
	on_device = gh_store_device(access, &error);
	status = on_device == NULL ? GH_DEVICE_ERROR : change_room(on_device, work, &error);
	if (status != GH_OK && status != GH_NO_MEMORY && status != GH_LIMIT)
		gh_store_copy_drop(access, &error);
}

static void
change_room_of_host(GhAccess *access, const RoomWork *work)
{
	GhTable    *host = gh_table_host(access);
	GhError		error = {0};

	if (change_room(host, work, &error) != GH_OK)
		gh_table_report(access->info.key.name, host->engine, &error, work->verb);
	change_room_of_copy(access, work);
}

static void
change_room_of_device(GhAccess *access, const RoomWork *work)
{
	GhError		error = {0};
	GhTable    *on_device = gh_store_device(access, &error);
	GhStatus	status = on_device == NULL ? error.status : change_room(on_device, work, &error);

	if (status == GH_OK)
		return;
	if (status == GH_DEVICE_ERROR)
		gh_store_copy_drop(access, NULL);
	gh_store_unlock(access);
	if (status == GH_DEVICE_ERROR)
		gh_table_report_lost(access->info.key.name);
	gh_table_report(access->info.key.name, gh_service_engine(), &error, work->verb);
}

static void
run_room_work(const GhStoredInfo *info, const RoomWork *work)
{
	GhAccess	access = {0};

	gh_table_lock(&access, info, GH_TO_WRITE);
	if (access.info.on_host)
		change_room_of_host(&access, work);
	else
		change_room_of_device(&access, work);
	gh_store_unlock(&access);
	gh_table_report_copy(&access);
}

static uint64
entries_arg(FunctionCallInfo fcinfo)
{
	int64		entries;

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("entries must not be null"),
				 errhint("Give the number of keys to make room for.")));
	entries = PG_GETARG_INT64(1);
	if (entries < GH_CAPACITY_MIN || entries > GH_CAPACITY_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("entries is %lld but must be between %d and %lld keys",
						(long long) entries, GH_CAPACITY_MIN, (long long) GH_CAPACITY_MAX),
				 errhint("Tables grow by themselves: reserve what is sure to come.")));
	return (uint64) entries;
}

Datum
gpuhash_reserve(PG_FUNCTION_ARGS)
{
	RoomWork	work = {"make room in", false, 0};
	GhStoredInfo info;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	work.keys = entries_arg(fcinfo);
	run_room_work(&info, &work);
	PG_RETURN_VOID();
}

Datum
gpuhash_compact(PG_FUNCTION_ARGS)
{
	RoomWork	work = {"compact", true, 0};
	GhStoredInfo info;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	run_room_work(&info, &work);
	PG_RETURN_VOID();
}
