/*
 * engines.c
 *		The engines' tables that a stored table consists of: how they are made and
 *		freed, and where a new table goes.
 *
 * Always under the table's lock in a mode that allows it.  A table on a device is
 * GH_COPY_UNSURE from before it can be found to when it is complete, so that one whose
 * maker was stopped halfway, in whatever way, is known for what it is.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "gpuhash.h"
#include "service/placement.h"
#include "service/service.h"
#include "store/inside.h"

/* What a table on a device takes of its memory, at most, beside its keys and values:
 * free slots, and larger subtables while it is being made. */
#define GH_ROOM_FACTOR 2

/* Tables that other sessions may use. */
static GhServiceScope scope;

/* ------------------------------------------------------------------ options */

static void
make_options(const GhStoredInfo *info, const GhEngine *engine, uint64 keys,
			 GhTableOptions *options)
{
	gh_options_init(options, engine);
	options->key_size = info->key_size;
	options->value_size = info->value_size;
	options->multi = info->multi;
	if (info->subtables != 0)
		options->subtables = info->subtables;
	if (info->fill_min != 0)
		options->fill_min = info->fill_min;
	if (info->fill_max != 0)
		options->fill_max = info->fill_max;
	options->capacity = keys;
	/* a copy that has no room on the device is not worth a second copy of the table on the host */
	options->pages = engine->on_device && !info->host_copy;
	if (!engine->on_device)
		options->memory_limit = gh_store_host_memory();
}

/* --------------------------------------------------------------------- host */

static GhStatus
open_host(GhAccess *access, GhError *error)
{
	GhStored   *stored = access->stored;
	GhHandle   *handle = access->handle;
	const GhEngine *cpu = gh_cpu_engine();
	GhTableOptions options;
	GhHost		host;
	GhStatus	status;

	if (gh_service_enabled())
		gh_store_blocks_host(&host, stored);
	else
		gh_host_init(&host, handle->context);
	make_options(&access->info, cpu, access->info.capacity, &options);
	status = gh_create_table(cpu, &host, &options, &handle->host, error);
	if (status != GH_OK)
		return status;
	handle->host_root = cpu->table_root(handle->host);
	stored->host = handle->host_root;
	return GH_OK;
}

/* ------------------------------------------------------------------- device */

static GhStatus
create_on_device(GhAccess *access, const GhEngine *engine, const GhTableOptions *options,
				 GhTable **made, GhError *error)
{
	GhHost		host = {0};

	if (engine->shares_tables)
	{
		scope.database = MyDatabaseId;
		host.ctx = &scope;
		host.stop = &InterruptPending;
	}
	else
	{
		gh_host_init(&host, access->handle->context);
		gh_host_pages(&host);
	}
	return gh_create_table(engine, &host, options, made, error);
}

/* A new table is in part in the host's memory: those that are not in use make room for it. */
static void
settle(const GhEngine *engine, GhTable *made, int device)
{
	GhTableStats stats;
	GhError		ignored = {0};

	if (made->engine->table_stats(made, &stats, &ignored) == GH_OK && stats.bytes_paged > 0 &&
		gh_make_room(engine, GH_LIMIT, device, stats.bytes_paged))
		(void) made->engine->table_flush(made, &ignored);
}

GhStatus
gh_store_device_open(GhAccess *access, const GhEngine *engine, uint64 keys, GhError *error)
{
	GhStored   *stored = access->stored;
	GhHandle   *handle = access->handle;
	GhTableOptions options;
	GhTable    *made = NULL;
	GhStatus	status;

	Assert(gh_store_word_state(gh_store_copy_word(stored)) == GH_COPY_NONE);
	make_options(&access->info, engine, keys, &options);
	status = create_on_device(access, engine, &options, &made, error);
	/* those that are not in use make room; whether it was enough the next try tells */
	if (gh_make_room(engine, status, options.device,
					 GH_ROOM_FACTOR * keys * (options.key_size + options.value_size)))
		status = create_on_device(access, engine, &options, &made, error);
	if (status != GH_OK)
		return status;

	/* a handle on an earlier one that this process has not missed yet */
	if (handle->on_device != NULL)
		handle->on_device->engine->table_detach(handle->on_device);
	handle->on_device = made;
	/* a session's own is known by its handle */
	handle->device_root = engine->shares_tables ? engine->table_root(made) :
		(GhRef) (uintptr_t) made;
	stored->device_root = handle->device_root;
	stored->device = options.device;
	pg_write_barrier();
	pg_atomic_write_u64(&stored->copy,
						gh_store_make_word(gh_store_word_number(gh_store_copy_word(stored)) + 1, GH_COPY_UNSURE));
	/* an interrupt may end it: only now somebody knows of the table */
	if (options.pages)
		settle(engine, made, options.device);
	return GH_OK;
}

void
gh_store_device_close(GhAccess *access)
{
	GhStored   *stored = access->stored;
	GhHandle   *handle = access->handle;

	if (gh_store_word_state(gh_store_copy_word(stored)) == GH_COPY_NONE)
		return;
	gh_store_copy_set(stored, GH_COPY_NONE);
	if (handle->on_device != NULL && handle->device_root != stored->device_root)
	{
		/* an earlier one that is gone */
		handle->on_device->engine->table_detach(handle->on_device);
		handle->on_device = NULL;
	}
	if (handle->on_device != NULL)
		handle->on_device->engine->table_destroy(handle->on_device);
	else
		gh_service_table_release(stored->device_root);
	handle->on_device = NULL;
	handle->device_root = 0;
	stored->device_root = 0;
}

/* ------------------------------------------------------------------ opening */

static void
set_reason(GhStored *stored, const char *reason)
{
	strlcpy(stored->reason, reason == NULL ? "" : reason, GH_REASON_SIZE);
}

/*
 * The host comes first: should the wait for the device be cut short, the caller has
 * a table that is whole or, without a host copy, one that is lost.
 */
GhStatus
gh_store_engines_open(GhAccess *access, const GhEngine **failed, GhError *error)
{
	GhStored   *stored = access->stored;
	const GhStoredInfo *info = &access->info;
	const char *reason;
	const GhEngine *engine = gh_choose_engine(info->capacity, &reason);
	GhStatus	status = GH_OK;

	gh_store_engines_close(access);
	set_reason(stored, reason);
	*failed = gh_cpu_engine();
	if (!engine->on_device || info->host_copy)
		status = open_host(access, error);
	if (!engine->on_device || status != GH_OK)
		return status;

	*failed = engine;
	status = gh_store_device_open(access, engine, info->capacity, error);
	if (status == GH_OK)
	{
		gh_store_copy_set(stored, GH_COPY_READY);
		return GH_OK;
	}
	/* With engine = auto, what the device declines is the host's to do. */
	if (status == GH_INVALID || gh_engine_setting != GH_ENGINE_AUTO)
		return status;
	gh_count_fallback(engine, error);
	set_reason(stored, "the GPU declined the table");
	*failed = gh_cpu_engine();
	memset(error, 0, sizeof(*error));
	return stored->host == 0 ? open_host(access, error) : GH_OK;
}

void
gh_store_engines_close(GhAccess *access)
{
	GhStored   *stored = access->stored;
	GhHandle   *handle = access->handle;

	gh_store_device_close(access);
	if (stored->host == 0)
		return;
	if (handle->host != NULL && handle->host_root == stored->host)
		handle->host->engine->table_destroy(handle->host);
	else
		gh_store_blocks_free(stored);
	handle->host = NULL;
	handle->host_root = 0;
	stored->host = 0;
}
