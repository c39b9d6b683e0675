/*
 * engines.c
 *		The engines' tables that a named table consists of: how they are made and
 *		freed, where a new table goes, and what their errors read like.
 *
 * Always under the table's lock in a mode that allows it.  A table on a device is
 * GH_COPY_UNSURE from before it can be found to when it is complete, so that one whose
 * maker was stopped halfway, in whatever way, is known for what it is.
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"

#include "gpuhash.h"
#include "service/service.h"
#include "session.h"
#include "table/registry.h"
#include "table/table.h"

/*
 * What a table on the host may take of the machine's memory.  More could not
 * be kept in memory anyway: a capacity out of reach is to be an error, not the
 * end of the server process.
 */
#define GH_HOST_MEMORY_SHARE 0.75

/* What a table on a device takes of its memory, at most, beside its keys and values:
 * free slots, and larger subtables while it is being made. */
#define GH_ROOM_FACTOR 2

/* Tables that other sessions may use. */
static GhServiceScope scope;

/* ------------------------------------------------------------------ options */

static void
make_options(const GhTableInfo *info, const GhEngine *engine, uint64 keys,
			 GhTableOptions *options)
{
	gh_options_init(options, engine);
	options->value_size = info->value_size;
	options->multi = info->multi;
	if (info->subtables != 0)
		options->subtables = info->subtables;
	if (info->fill_min != 0)
		options->fill_min = info->fill_min;
	if (info->fill_max != 0)
		options->fill_max = info->fill_max;
	options->capacity = keys;
	if (!engine->asynchronous)
		options->memory_limit = (uint64)
			(GH_HOST_MEMORY_SHARE * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

/* --------------------------------------------------------------------- host */

static void
open_host(GhAccess *access)
{
	GhNamedTable *table = access->table;
	GhHandle   *handle = access->handle;
	const GhEngine *cpu = gh_cpu_engine();
	GhTableOptions options;
	GhHost		host;
	GhError		error = {0};

	if (gh_service_enabled())
		gh_shared_host_init(&host, table);
	else
		gh_host_init(&host, handle->context);
	make_options(&access->info, cpu, access->info.capacity, &options);
	if (gh_create_table(cpu, &host, &options, &handle->host, &error) != GH_OK)
	{
		handle->host = NULL;
		gh_table_report(access->info.name, cpu, &error, "create");
	}
	handle->host_root = cpu->table_root(handle->host);
	table->host = handle->host_root;
}

/* ------------------------------------------------------------------- device */

static GhStatus
create_on_device(GhAccess *access, const GhEngine *engine, const GhTableOptions *options,
				 GhTable **made, GhError *error)
{
	GhHost		host = {0};

	if (engine == gh_service_engine())
	{
		scope.database = MyDatabaseId;
		host.ctx = &scope;
		host.stop = &InterruptPending;
	}
	else
		gh_host_init(&host, access->handle->context);
	return gh_create_table(engine, &host, options, made, error);
}

GhStatus
gh_device_open(GhAccess *access, const GhEngine *engine, uint64 keys, GhError *error)
{
	GhNamedTable *table = access->table;
	GhHandle   *handle = access->handle;
	GhTableOptions options;
	GhTable    *made = NULL;
	GhStatus	status;

	Assert(gh_copy_state(gh_copy_word_of(table)) == GH_COPY_NONE);
	make_options(&access->info, engine, keys, &options);
	status = create_on_device(access, engine, &options, &made, error);
	/* those that are not in use make room; whether it was enough the next try tells */
	if ((status == GH_LIMIT || status == GH_NO_MEMORY) && engine == gh_service_engine() &&
		gh_named_tables_evict(options.device,
							  GH_ROOM_FACTOR * keys * (sizeof(uint64) + options.value_size)))
		status = create_on_device(access, engine, &options, &made, error);
	if (status != GH_OK)
		return status;

	/* a handle on an earlier one that this process has not missed yet */
	if (handle->on_device != NULL)
		handle->on_device->engine->table_detach(handle->on_device);
	handle->on_device = made;
	/* a session's own is known by its handle */
	handle->device_root = engine == gh_service_engine() ? engine->table_root(made) :
		(GhRef) (uintptr_t) made;
	table->device_root = handle->device_root;
	table->device = options.device;
	pg_write_barrier();
	pg_atomic_write_u64(&table->copy,
						gh_copy_word(gh_copy_number(gh_copy_word_of(table)) + 1, GH_COPY_UNSURE));
	return GH_OK;
}

void
gh_device_close(GhAccess *access)
{
	GhNamedTable *table = access->table;
	GhHandle   *handle = access->handle;

	if (gh_copy_state(gh_copy_word_of(table)) == GH_COPY_NONE)
		return;
	gh_copy_set(table, GH_COPY_NONE);
	if (handle->on_device != NULL && handle->device_root != table->device_root)
	{
		/* an earlier one that is gone */
		handle->on_device->engine->table_detach(handle->on_device);
		handle->on_device = NULL;
	}
	if (handle->on_device != NULL)
		handle->on_device->engine->table_destroy(handle->on_device);
	else
		gh_service_table_release(table->device_root);
	handle->on_device = NULL;
	handle->device_root = 0;
	table->device_root = 0;
}

/* ------------------------------------------------------------------ opening */

static void
set_reason(GhNamedTable *table, const char *reason)
{
	strlcpy(table->reason, reason == NULL ? "" : reason, GH_REASON_SIZE);
}

/*
 * The host comes first: should the wait for the device be cut short, the caller has
 * a table that is whole or, without a host copy, one that is lost.
 */
void
gh_engines_open(GhAccess *access)
{
	GhNamedTable *table = access->table;
	const GhTableInfo *info = &access->info;
	const char *reason;
	const GhEngine *engine = gh_choose_engine(info->capacity, &reason);
	GhError		error = {0};
	GhStatus	status;

	gh_engines_close(access);
	set_reason(table, reason);
	if (!engine->asynchronous || info->host_copy)
		open_host(access);
	if (!engine->asynchronous)
		return;

	status = gh_device_open(access, engine, info->capacity, &error);
	if (status == GH_OK)
	{
		gh_copy_set(table, GH_COPY_READY);
		return;
	}
	/* With engine = auto, what the device declines is the host's to do. */
	if (status == GH_INVALID || gh_engine_setting != GH_ENGINE_AUTO)
		gh_table_report(info->name, engine, &error, "create");
	gh_count_fallback(engine, &error);
	set_reason(table, "the GPU declined the table");
	if (table->host == 0)
		open_host(access);
}

void
gh_engines_close(GhAccess *access)
{
	GhNamedTable *table = access->table;
	GhHandle   *handle = access->handle;

	gh_device_close(access);
	if (table->host == 0)
		return;
	if (handle->host != NULL && handle->host_root == table->host)
		handle->host->engine->table_destroy(handle->host);
	else
		gh_shared_free_blocks(table);
	handle->host = NULL;
	handle->host_root = 0;
	table->host = 0;
}

/* ------------------------------------------------------------------- errors */

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
		(error->status == GH_LIMIT && !engine->asynchronous))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not %s hash table \"%s\": %s", verb, name, error->message),
				 errhint("Give a smaller capacity, or drop hash tables that are no longer needed.")));
	gh_report_error(error, psprintf("%s hash table \"%s\"", verb, name));
}
