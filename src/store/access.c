/*
 * access.c
 *		A call's hold on a table: the table's lock, the look-up that confirms
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

#include "access/parallel.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "service/placement.h"
#include "service/service.h"
#include "store/inside.h"

/* The fourth field of the lock's tag; those of pg_advisory_lock are 1 and 2. */
#define GH_LOCK_CLASS 0x6770

static HTAB *handles = NULL;
static uint64 drops_seen = 0;

/* --------------------------------------------------------------------- lock */

static void
fill_tag(LOCKTAG *tag, const GhStoredInfo *info)
{
	SET_LOCKTAG_ADVISORY(*tag, info->key.database, (uint32) (info->id >> 32), (uint32) info->id,
						 GH_LOCK_CLASS);
}

static bool
lock_take(const GhStoredInfo *info, LOCKMODE mode, bool wait)
{
	LOCKTAG		tag;

	if (!gh_service_enabled())
		return true;
	fill_tag(&tag, info);
	return LockAcquire(&tag, mode, false, !wait) != LOCKACQUIRE_NOT_AVAIL;
}

static void
lock_release(const GhStoredInfo *info, LOCKMODE mode)
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
gh_store_forget_handle(uint64 id)
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
	uint64		drops = pg_atomic_read_u64(gh_store_area_drops());
	HASH_SEQ_STATUS scan;
	GhHandle   *handle;

	if (drops == drops_seen)
		return;
	hash_seq_init(&scan, handles);
	while ((handle = hash_seq_search(&scan)) != NULL)
	{
		GhStoredInfo info;

		if (!gh_store_find(&handle->key, &info, NULL) || info.id != handle->id)
			gh_store_forget_handle(handle->id);
	}
	drops_seen = drops;
}

static GhHandle *
handle_of(const GhStoredInfo *info)
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
		handle->key = info->key;
	}
	return handle;
}

GhTable *
gh_store_host(GhAccess *access, GhError *error)
{
	GhHandle   *handle = access->handle;
	GhStored   *stored = access->stored;
	GhHost		host;

	if (handle->host != NULL && handle->host_root == stored->host)
		return handle->host;
	drop_host_handle(handle);
	/* of a session's table the first handle stays */
	Assert(gh_service_enabled());
	gh_store_blocks_host(&host, stored);
	if (gh_cpu_engine()->table_attach(&host, stored->host, &handle->host, error) != GH_OK)
	{
		handle->host = NULL;
		return NULL;
	}
	handle->host_root = stored->host;
	return handle->host;
}

GhTable *
gh_store_device(GhAccess *access, GhError *error)
{
	GhHandle   *handle = access->handle;
	GhRef		root = access->stored->device_root;
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

/*
 * Workers and leader of a parallel query wait for each other nowhere in the lock
 * manager: the table's lock would not keep them apart.
 */
void
gh_store_refuse_parallel_worker(const char *name)
{
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot use hash table \"%s\" in a parallel worker", name),
				 errhint("Declare functions that call those of gpuhash as PARALLEL RESTRICTED or PARALLEL UNSAFE.")));
}

static bool
access_take(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode, bool wait)
{
	void	   *buffer = access->buffer;
	Size		buffer_bytes = access->buffer_bytes;
	GhStoredInfo wanted = *info;

	gh_store_refuse_parallel_worker(info->key.name);
	if (!lock_take(&wanted, mode, wait))
		return false;
	if (!gh_store_find(&wanted.key, &access->info, NULL) || access->info.id != wanted.id)
	{
		lock_release(&wanted, mode);
		return false;
	}
	access->mode = mode;
	access->buffer = buffer;
	access->buffer_bytes = buffer_bytes;
	access->stored = access->info.stored;
	access->handle = handle_of(&access->info);
	if (gh_service_enabled())
	{
		gh_store_segments_sweep();
		if (access->handle->blocks_seen != access->stored->blocks_changed)
			gh_store_blocks_map(access->stored);
	}
	access->handle->blocks_seen = access->stored->blocks_changed;
	pg_atomic_write_u64(&access->stored->used, (uint64) GetCurrentTimestamp());
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
gh_store_visit(Oid database)
{
	LOCKTAG		tag;

	fill_database_tag(&tag, database);
	return LockAcquire(&tag, ShareLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
gh_store_visited(Oid database)
{
	LOCKTAG		tag;

	fill_database_tag(&tag, database);
	(void) LockRelease(&tag, ShareLock, false);
}

void
gh_store_keep_out(Oid database)
{
	LOCKTAG		tag;

	if (!gh_service_enabled())
		return;
	fill_database_tag(&tag, database);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

bool
gh_store_lock(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode)
{
	return access_take(access, info, mode, true);
}

bool
gh_store_lock_now(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode)
{
	return access_take(access, info, mode, false);
}

static void
return_buffer(GhAccess *access)
{
	if (access->buffer != NULL)
		gh_service_return(access->buffer);
	access->buffer = NULL;
}

/* A request of the call goes to the service. */
static bool
needs_buffer(const GhStoredInfo *info, LOCKMODE mode, bool large)
{
	return gh_service_enabled() &&
		(!info->on_host || (info->device >= 0 && (mode != GH_TO_READ || large)));
}

bool
gh_store_lock_buffered(GhAccess *access, const GhStoredInfo *info, LOCKMODE mode, bool large,
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
		if (!gh_store_lock(access, info, mode))
		{
			return_buffer(access);
			return false;
		}
		if (access->buffer != NULL || access->info.lost || !needs_buffer(&access->info, mode, large))
			return true;
		gh_store_unlock(access);
		borrow = true;
	}
}

void
gh_store_lock_new(GhAccess *access, const GhStoredInfo *info)
{
	(void) lock_take(info, GH_TO_DROP, true);
	access->info = *info;
	access->mode = GH_TO_DROP;
}

void
gh_store_lock_entered(GhAccess *access)
{
	access->handle = handle_of(&access->info);
	if (!gh_service_enabled())
		access->handle->context = AllocSetContextCreate(TopMemoryContext, "gpuhash table",
														ALLOCSET_DEFAULT_SIZES);
}

void
gh_store_unlock(GhAccess *access)
{
	/* what this call allocated is mapped here */
	if (access->stored != NULL)
		access->handle->blocks_seen = access->stored->blocks_changed;
	lock_release(&access->info, access->mode);
	return_buffer(access);
	access->stored = NULL;
}
