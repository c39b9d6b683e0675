/*
 * evict.c
 *		A device's memory for those who need it now: copies of tables that were not used
 *		for a while are given up.
 *
 * They are looked for in all databases, and only locks that are free are taken.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"

#include "service/service.h"
#include "store/inside.h"
#include "store/resident_tables.h"

/* A table that was not used for so long is idle. */
#define GH_IDLE_MS 1000

/* So long the memory of a table given up is waited for. */
#define GH_EVICT_WAIT_MS 50

static int
compare_used(const void *a, const void *b)
{
	TimestampTz left = ((const GhStoredInfo *) a)->used;
	TimestampTz right = ((const GhStoredInfo *) b)->used;

	return left < right ? -1 : left > right ? 1 : 0;
}

static uint64
free_memory(int device)
{
	GhDeviceInfo info;
	GhError		error = {0};

	if (gh_service_engine()->device_info(device, &info, &error) != GH_OK)
		return 0;
	return info.memory_free;
}

static void
give_up_copy(GhAccess *access, GhRef *root, uint64 *bytes)
{
	if (!access->info.on_host || !gh_store_copy_is_ready(access->stored))
		return;
	*root = access->stored->device_root;
	*bytes += gh_service_table_bytes(*root);
	gh_store_device_close(access);
	strlcpy(access->stored->reason, "others needed the GPU's memory", GH_REASON_SIZE);
	pg_atomic_write_u64(&access->stored->copy_tried, (uint64) GetCurrentTimestamp());
}

/* Gives up the copy if nobody uses the table.  Its root, or 0. */
static GhRef
evict(const GhStoredInfo *info, uint64 *bytes)
{
	GhAccess	access = {0};
	GhRef		root = 0;
	bool		visit = info->key.database != MyDatabaseId;

	if (visit && !gh_store_visit(info->key.database))
		return 0;
	if (gh_store_lock_now(&access, info, GH_TO_WRITE))
	{
		give_up_copy(&access, &root, bytes);
		gh_store_unlock(&access);
	}
	if (visit)
		gh_store_visited(info->key.database);
	return root;
}

/*
 * What the device tells of its free memory is not of this moment.  So what is given up
 * is counted: as much as was missing or, where nothing seemed to, as much as is wanted.
 */
bool
gh_store_evict(int device, uint64 bytes)
{
	TimestampTz now = GetCurrentTimestamp();
	uint64		given_up = 0;
	uint64		of_joins;
	uint64		missing;
	int			count;
	GhStoredInfo *tables;

	/* a parallel worker's lock would not keep it from its leader's tables */
	if (!gh_service_enabled() || IsParallelWorker())
		return false;
	missing = free_memory(device);
	missing = missing < bytes ? bytes - missing : bytes;
	given_up = of_joins = gh_resident_tables_give_up(device, missing, GH_EVICT_WAIT_MS);
	tables = gh_store_list(GH_STORE_ANY, InvalidOid, &count);
	qsort(tables, count, sizeof(GhStoredInfo), compare_used);
	for (int i = 0; i < count && given_up < missing; i++)
	{
		GhRef		root = 0;

		CHECK_FOR_INTERRUPTS();
		if (tables[i].device == device && tables[i].on_host &&
			TimestampDifferenceExceeds(tables[i].used, now, GH_IDLE_MS))
			root = evict(&tables[i], &given_up);
		/* its executor frees it, soon if it has nothing else to do */
		for (int ms = 0; root != 0 && ms < GH_EVICT_WAIT_MS && !gh_service_table_is_gone(root); ms++)
			gh_wait_for_memory(1);
	}
	pfree(tables);
	/* how much is missing of a limit is not known: a table that stayed may have been all of it */
	return given_up >= missing || of_joins > 0;
}
