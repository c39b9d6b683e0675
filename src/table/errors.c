/*
 * errors.c
 *		A call's hold on a named table, and the errors of what cannot be had or done.
 *
 * The store tells what is the matter by statuses; here they become errors that name the
 * table and what its user can do.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "gpuhash.h"
#include "service/placement.h"
#include "service/service.h"
#include "table/table.h"

static void
check_locked(GhAccess *access, const char *name, bool locked)
{
	if (!locked)
		gh_table_report_missing(name);
	if (access->info.lost)
	{
		gh_store_unlock(access);
		gh_table_report_lost(name);
	}
}

void
gh_table_lock(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode)
{
	check_locked(access, info->key.name, gh_store_lock(access, info, mode));
}

void
gh_table_lock_buffered(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode, bool large,
					   Size buffer_bytes)
{
	check_locked(access, info->key.name,
				 gh_store_lock_buffered(access, info, mode, large, buffer_bytes));
}

GhTable *
gh_table_host(GhAccess *access)
{
	GhError		error = {0};
	GhTable    *host = gh_store_host(access, &error);

	if (host == NULL)
		gh_table_report(access->info.key.name, gh_cpu_engine(), &error, "use");
	return host;
}

/* ------------------------------------------------------------------- errors */

void
gh_table_report_missing(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("hash table \"%s\" does not exist", name),
			 errhint("Create it with gpuhash_create.  Hash tables belong to a database, or to one session unless gpuhash is in \"shared_preload_libraries\".")));
	pg_unreachable();
}

void
gh_table_report_lost(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("hash table \"%s\" was lost with its GPU", name),
			 errhint("Call gpuhash_clear and load it again; tables created with host_copy survive.")));
	pg_unreachable();
}

void
gh_table_report(const char *name, const GhEngine *engine, const GhError *error,
				const char *verb)
{
	/* memory may have been refused because of a cancel, which then is the reason */
	CHECK_FOR_INTERRUPTS();
	/* options only: the same ones for a table and for its host copy */
	if (error->status == GH_INVALID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("could not create hash table \"%s\": %s", name, error->message),
				 errhint("Bounds that are not given are taken from \"gpuhash.subtables\", \"gpuhash.fill_min\" and \"gpuhash.fill_max\".")));
	if (error->status == GH_NO_MEMORY ||
		(error->status == GH_LIMIT && !engine->on_device))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not %s hash table \"%s\": %s", verb, name, error->message),
				 errhint("Give a smaller capacity, or drop hash tables that are no longer needed.")));
	if (error->status == GH_LIMIT)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("could not %s hash table \"%s\": %s", verb, name, error->message),
				 errhint("Raise \"gpuhash.device_memory_limit\" or, for a table without a host copy, \"gpuhash.paging_memory\".")));
	gh_report_error(error, psprintf("%s hash table \"%s\"", verb, name));
}

void
gh_table_report_copy(const GhAccess *access)
{
	const GhError *error = &access->left;

	if (error->status == GH_OK)
		return;
	if (gh_service_enabled())
		gh_service_count_fallback(gh_service_fallback_of(error));
	if (gh_fallback_setting == GH_FALLBACK_ERROR)
		gh_report_error(error, psprintf("use hash table \"%s\" on the GPU", access->info.key.name));
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("hash table \"%s\" continues on the CPU engine", access->info.key.name),
			 errdetail("The GPU failed: %s.", error->message)));
}
