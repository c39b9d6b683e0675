/*
 * entries.c
 *		Tables of the store come and go.
 *
 * A new table is entered under its key before it is made, not ready, so that two
 * sessions do not make one of the same key.  Its maker holds the table's lock
 * meanwhile, and takes the entry back when it fails, at the end of its process too.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"

#include "service/service.h"
#include "store/inside.h"

void
gh_store_drop(GhAccess *access)
{
	uint64		id = access->info.id;
	GhStored   *stored = access->stored;

	if (access->handle != NULL)
		gh_store_engines_close(access);
	access->stored = NULL;
	gh_store_forget_handle(id);
	gh_store_remove(stored);
	if (gh_service_enabled())
		pg_atomic_fetch_add_u64(gh_store_area_drops(), 1);
}

void
gh_store_drop_database(Oid database)
{
	int			count;
	GhStoredInfo *infos;

	if (!gh_service_enabled())
		return;
	infos = gh_store_list(GH_STORE_ANY, database, &count);
	for (int i = 0; i < count; i++)
	{
		GhStored   *stored = infos[i].stored;

		if (gh_store_word_state(gh_store_copy_word(stored)) != GH_COPY_NONE)
			gh_service_table_release(stored->device_root);
		gh_store_blocks_free(stored);
		gh_store_remove(stored);
	}
	pg_atomic_fetch_add_u64(gh_store_area_drops(), 1);
	pfree(infos);
}

/* ------------------------------------------------------------------- create */

/* Enters the table.  One of that key that is not ready is being made: its maker is
 * waited for.  NULL: there is one that is ready. */
static GhStored *
enter(const GhStoredInfo *info, const void *extra, Size extra_bytes)
{
	for (;;)
	{
		GhStored   *stored = gh_store_add(info, extra, extra_bytes);
		GhStoredInfo other;
		GhAccess	access = {0};

		if (stored != NULL)
			return stored;
		CHECK_FOR_INTERRUPTS();
		if (!gh_store_find(&info->key, &other, NULL))
			continue;
		if (other.ready)
			return NULL;
		if (!gh_store_lock(&access, &other, GH_TO_DROP))
			continue;
		/* its maker could neither finish it nor take it back */
		if (!access.info.ready)
			gh_store_drop(&access);
		gh_store_unlock(&access);
	}
}

/* The table that this process is making. */
static GhAccess *making = NULL;

static void
take_back(void)
{
	GhAccess   *access = making;

	making = NULL;
	/* an error may have come from within the directory */
	LWLockReleaseAll();
	gh_store_drop(access);
}

static void
take_back_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	if (making != NULL)
		take_back();
}

bool
gh_store_create(GhStoredInfo *info, const void *extra, Size extra_bytes, const GhEngine **failed,
				GhError *error)
{
	static int	registered = 0;
	GhAccess	access = {0};

	if (registered != MyProcPid)
		before_shmem_exit(take_back_at_exit, (Datum) 0);
	registered = MyProcPid;
	info->id = gh_store_new_id();
	/* before the entry, so that nobody finds it without the lock */
	gh_store_lock_new(&access, info);
	access.stored = enter(info, extra, extra_bytes);
	if (access.stored == NULL)
	{
		gh_store_unlock(&access);
		return false;
	}
	making = &access;
	PG_TRY();
	{
		gh_store_lock_entered(&access);
		error->status = gh_store_engines_open(&access, failed, error);
		if (error->status == GH_OK)
			gh_store_set_ready(access.stored);
		else
			take_back();
	}
	PG_CATCH();
	{
		if (making != NULL)
			take_back();
		PG_RE_THROW();
	}
	PG_END_TRY();
	making = NULL;
	gh_store_unlock(&access);
	return true;
}
