/*
 * access.c
 *		A call's hold on a named table: the table's lock, the look-up that confirms
 *		that it is still there, and this process's handles on the engines' tables.
 *
 * The lock is one of the lock manager's, an advisory lock of a class of its own, so
 * that a wait for it ends with a cancel, shows up in pg_locks, and is looked at for
 * deadlocks.  It belongs to the transaction, which releases it should an error end
 * the call; without one it is released at the call's end.  A session's own tables
 * need none.
 *
 * Nobody waits for a buffer of the service while holding the lock: a buffer is
 * borrowed before, and when a look under the lock shows that one is needed, the lock
 * is released first.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "service/service.h"
#include "session.h"
#include "table/table.h"

/* The fourth field of the lock's tag; those of pg_advisory_lock are 1 and 2. */
#define GH_LOCK_CLASS 0x6770

static HTAB *handles = NULL;
static uint64 drops_seen = 0;

/* --------------------------------------------------------------------- lock */

static void
fill_tag(LOCKTAG *tag, const GhTableInfo *info)
{
	SET_LOCKTAG_ADVISORY(*tag, info->database, (uint32) (info->id >> 32), (uint32) info->id,
						 GH_LOCK_CLASS);
}

static bool
lock_take(const GhTableInfo *info, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	if (!gh_service_enabled())
		return true;
	fill_tag(&tag, info);
	return LockAcquire(&tag, mode, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

static void
lock_release(const GhTableInfo *info, LOCKMODE mode)
{
	LOCKTAG		tag;

	if (!gh_service_enabled())
		return;
	fill_tag(&tag, info);
	(void) LockRelease(&tag, mode, false);
}

/* ------------------------------------------------------------------ handles */

static void
drop_host_handle(GhHandle *handle)
{
	if (handle->host != NULL)
		handle->host->engine->table_detach(handle->host);
	handle->host = NULL;
	handle->host_root = 0;
}

static void
drop_device_handle(GhHandle *handle)
{
	if (handle->on_device != NULL)
		handle->on_device->engine->table_detach(handle->on_device);
	handle->on_device = NULL;
	handle->device_root = 0;
}

void
gh_handle_forget(uint64 id)
{
	GhHandle   *handle = handles == NULL ? NULL : hash_search(handles, &id, HASH_FIND, NULL);

	if (handle == NULL)
		return;
	drop_host_handle(handle);
	drop_device_handle(handle);
	if (handle->context != NULL)
		MemoryContextDelete(handle->context);
	(void) hash_search(handles, &id, HASH_REMOVE, NULL);
}

/* Lets go of tables that others have dropped since. */
static void
sweep_handles(void)
{
	uint64		drops = pg_atomic_read_u64(gh_shared_drops());
	HASH_SEQ_STATUS scan;
	GhHandle   *handle;

	if (drops == drops_seen)
		return;
	hash_seq_init(&scan, handles);
	while ((handle = hash_seq_search(&scan)) != NULL)
	{
		GhTableInfo info;

		if (!gh_names_find(handle->key.database, handle->key.name, &info) || info.id != handle->id)
			gh_handle_forget(handle->id);
	}
	drops_seen = drops;
}

static GhHandle *
handle_of(const GhTableInfo *info, GhNamedTable *table)
{
	GhHandle   *handle;
	bool		found;

	if (handles == NULL)
	{
		HASHCTL		control;

		memset(&control, 0, sizeof(control));
		control.keysize = sizeof(uint64);
		control.entrysize = sizeof(GhHandle);
		control.hcxt = TopMemoryContext;
		handles = hash_create("gpuhash table handles", 16, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	if (gh_service_enabled())
		sweep_handles();
	handle = hash_search(handles, &info->id, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) handle + sizeof(uint64), 0, sizeof(*handle) - sizeof(uint64));
		handle->key.database = info->database;
		strlcpy(handle->key.name, info->name, NAMEDATALEN);
		handle->table = table;
	}
	return handle;
}

GhTable *
gh_host_of(GhAccess *access)
{
	GhHandle   *handle = access->handle;
	GhNamedTable *table = access->table;
	GhHost		host;
	GhError		error = {0};

	if (handle->host != NULL && handle->host_root == table->host)
		return handle->host;
	drop_host_handle(handle);
	/* of a session's table the first handle stays */
	Assert(gh_service_enabled());
	gh_shared_host_init(&host, table);
	if (gh_cpu_engine()->table_attach(&host, table->host, &handle->host, &error) != GH_OK)
	{
		handle->host = NULL;
		gh_table_report(access->info.name, gh_cpu_engine(), &error, "use");
	}
	handle->host_root = table->host;
	return handle->host;
}

GhTable *
gh_device_of(GhAccess *access, GhError *error)
{
	GhHandle   *handle = access->handle;
	GhRef		root = access->table->device_root;
	GhStatus	status;

	if (handle->on_device != NULL && handle->device_root == root)
		return handle->on_device;
	drop_device_handle(handle);
	Assert(gh_service_enabled());
	for (;;)
	{
		GhHost		host = {0};

		host.stop = &InterruptPending;
		status = gh_service_engine()->table_attach(&host, root, &handle->on_device, error);
		if (status != GH_STOPPED)
			break;
		gh_serve_interrupt();
	}
	if (status != GH_OK)
	{
		handle->on_device = NULL;
		return NULL;
	}
	handle->device_root = root;
	return handle->on_device;
}

/* ------------------------------------------------------------------- access */

static bool
access_take(GhAccess *access, const GhTableInfo *info, LOCKMODE mode, bool wait)
{
	void	   *buffer = access->buffer;
	Size		buffer_bytes = access->buffer_bytes;
	GhTableInfo wanted = *info;

	gh_refuse_parallel_worker(info->name);
	if (!lock_take(&wanted, mode, wait))
		return false;
	if (!gh_names_find(wanted.database, wanted.name, &access->info) || access->info.id != wanted.id)
	{
		lock_release(&wanted, mode);
		return false;
	}
	access->mode = mode;
	access->buffer = buffer;
	access->buffer_bytes = buffer_bytes;
	access->table = access->info.table;
	access->handle = handle_of(&access->info, access->table);
	if (gh_service_enabled())
	{
		gh_segments_sweep();
		if (access->handle->blocks_seen != access->table->blocks_changed)
			gh_shared_map_blocks(access->table);
	}
	access->handle->blocks_seen = access->table->blocks_changed;
	pg_atomic_write_u64(&access->table->used, (uint64) GetCurrentTimestamp());
	return true;
}

/*
 * Sessions of other databases come to a table only to take it from a device.  They hold
 * this lock of its database meanwhile, and whoever drops the database takes it, so that
 * one lock is enough for all tables.
 */
static void
fill_database_tag(LOCKTAG *tag, Oid database)
{
	/* no table has the number 0 */
	SET_LOCKTAG_ADVISORY(*tag, database, 0, 0, GH_LOCK_CLASS);
}

bool
gh_access_visit(Oid database)
{
	LOCKTAG		tag;

	fill_database_tag(&tag, database);
	return LockAcquire(&tag, ShareLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
gh_access_visited(Oid database)
{
	LOCKTAG		tag;

	fill_database_tag(&tag, database);
	(void) LockRelease(&tag, ShareLock, false);
}

void
gh_access_keep_out(Oid database)
{
	LOCKTAG		tag;

	fill_database_tag(&tag, database);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

bool
gh_access_try(GhAccess *access, const GhTableInfo *info, LOCKMODE mode)
{
	return access_take(access, info, mode, true);
}

bool
gh_access_try_now(GhAccess *access, const GhTableInfo *info, LOCKMODE mode)
{
	return access_take(access, info, mode, false);
}

void
gh_access_begin(GhAccess *access, const GhTableInfo *info, LOCKMODE mode)
{
	if (!gh_access_try(access, info, mode))
		gh_table_report_missing(info->name);
	if (access->info.lost)
	{
		gh_access_end(access);
		gh_table_report_lost(info->name);
	}
}

/* A request of the call goes to the service. */
static bool
needs_buffer(const GhTableInfo *info, LOCKMODE mode, bool large)
{
	return gh_service_enabled() &&
		(!info->on_host || (info->device >= 0 && (mode != GH_TO_READ || large)));
}

void
gh_access_open(GhAccess *access, const GhTableInfo *info, LOCKMODE mode, bool large,
			   Size buffer_bytes)
{
	bool		borrow = needs_buffer(info, mode, large);

	for (;;)
	{
		if (borrow)
		{
			access->buffer = gh_service_borrow(CurrentMemoryContext, buffer_bytes);
			access->buffer_bytes = buffer_bytes;
		}
		gh_access_begin(access, info, mode);
		if (access->buffer != NULL || !needs_buffer(&access->info, mode, large))
			return;
		gh_access_end(access);
		borrow = true;
	}
}

void
gh_access_lock_new(GhAccess *access, const GhTableInfo *info)
{
	(void) lock_take(info, GH_TO_DROP, true);
	access->info = *info;
	access->mode = GH_TO_DROP;
}

void
gh_access_new(GhAccess *access, GhNamedTable *table)
{
	access->table = table;
	access->handle = handle_of(&table->info, table);
	if (!gh_service_enabled())
		access->handle->context = AllocSetContextCreate(TopMemoryContext, "gpuhash table",
														ALLOCSET_DEFAULT_SIZES);
}

void
gh_access_end(GhAccess *access)
{
	/* what this call allocated is mapped here */
	if (access->table != NULL)
		access->handle->blocks_seen = access->table->blocks_changed;
	lock_release(&access->info, access->mode);
	if (access->buffer != NULL)
		gh_service_return(access->buffer);
	access->buffer = NULL;
	access->table = NULL;
}
