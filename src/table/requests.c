/*
 * requests.c
 *		Modifications of a named table, as requests to its engines.
 *
 * Where there is a table on the host it decides, and its results are the call's.  A chunk
 * of keys is done there first; what was done of it, a prefix, is then sent to the copy on
 * the device (replica.c), which works on it while the host does the next chunk.
 *
 * A table on the device alone is changed there, chunk by chunk; when the device fails
 * the table is lost.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "host.h"
#include "service/service.h"
#include "table/table.h"

/* A chunk's keys, at most. */
#define GH_CHUNK_KEYS 65536

/* So many keys and values that come to an empty multi table are worth a static build. */
#define GH_BUILD_KEYS_MIN 4096

/* A modification, and what came of it so far. */
typedef struct GhChange
{
	GhRequest	whole;			/* operation and arrays of the whole batch */
	uint64		chunk;			/* keys of a chunk at most */
	uint64		done;			/* keys */
	uint64		inserted;
	uint64		removed;
	uint64		values_count;	/* values removed */
	GhStatus	status;
	GhError		error;
} GhChange;

/* Also to the table's counters, which must not miss it if the call ends with an error. */
static void
take_results(GhAccess *access, GhChange *change, const GhRequest *request, GhStatus status)
{
	int64		keys = (int64) (request->outcome.inserted - request->outcome.removed);

	pg_atomic_fetch_add_u64(&access->stored->writes, (int64) request->outcome.done);
	pg_atomic_fetch_add_u64(&access->stored->keys, keys);
	change->done += request->outcome.done;
	change->inserted += request->outcome.inserted;
	change->removed += request->outcome.removed;
	change->values_count += request->outcome.values_count;
	change->status = status;
	if (status != GH_OK)
		change->error = request->error;
}

/* ------------------------------------------------------------ static build */

/*
 * Keys and values that come to an empty multi table are stored in one request, which makes
 * the same table faster and its values contiguous.  false: they are to be added in chunks,
 * where there is not the memory for it, too, or an interrupt came: a build that is stopped begins
 * anew, so that it would never end where interrupts come all the time that raise no error.
 */
static bool
build(GhAccess *access, GhTable *table, GhChange *change)
{
	GhRequest	request = change->whole;
	GhTableStats stats;
	GhError		error = {0};
	GhStatus	status;

	if (request.op != GH_ADD || request.count < GH_BUILD_KEYS_MIN || request.count > GH_BATCH_MAX ||
		table->engine->table_stats(table, &stats, &error) != GH_OK || stats.keys > 0)
		return false;
	request.op = GH_BUILD;
	CHECK_FOR_INTERRUPTS();
	status = table->engine->submit(table, &request);
	if (status == GH_OK || status == GH_BUSY)
		status = table->engine->wait(&request);
	if (status == GH_STOPPED)
		gh_serve_interrupt();
	if (status == GH_STOPPED || status == GH_NO_MEMORY || status == GH_LIMIT)
		return false;
	take_results(access, change, &request, status);
	return true;
}

/* The copy gets what the host was built of, chunk by chunk. */
static void
replicate_build(GhAccess *access, GhReplica *replica, const GhChange *built)
{
	GhChange	rest = *built;

	for (rest.done = 0; rest.done < built->done;)
	{
		GhRequest	request;

		gh_store_part(&access->info, &rest.whole, rest.done, rest.chunk, &request);
		request.outcome.done = request.count;
		rest.done += request.count;
		/* which of the keys were new in which chunk nobody knows */
		request.outcome.inserted = rest.done < built->done ? 0 : built->inserted;
		CHECK_FOR_INTERRUPTS();
		gh_store_replica_send(access, replica, &request);
	}
}

/* ------------------------------------------------------------ modifications */

static void
change_host(GhAccess *access, GhChange *change)
{
	GhTable    *host = gh_table_host(access);
	GhReplica	replica;

	gh_store_replica_begin(access, &replica);
	if (build(access, host, change))
		replicate_build(access, &replica, change);
	while (change->done < change->whole.count && change->status == GH_OK)
	{
		GhRequest	request;
		GhStatus	status;

		gh_store_part(&access->info, &change->whole, change->done, change->chunk, &request);
		status = gh_run_request(host, &request);
		take_results(access, change, &request, status);
		gh_store_replica_send(access, &replica, &request);
	}
	gh_store_replica_end(access, &replica);
}

static void
change_device(GhAccess *access, GhChange *change)
{
	GhTable    *on_device = gh_store_device(access, &change->error);

	if (on_device == NULL)
		change->status = change->error.status;
	/* the service takes no more than its buffer holds at a time */
	else if (access->buffer == NULL)
		(void) build(access, on_device, change);
	while (change->done < change->whole.count && change->status == GH_OK)
	{
		GhRequest	request;
		GhStatus	status;

		gh_store_part(&access->info, &change->whole, change->done, change->chunk, &request);
		status = gh_store_run(access, on_device, &request);
		take_results(access, change, &request, status);
	}
	if (change->status == GH_DEVICE_ERROR)
		gh_store_copy_drop(access, NULL);
}

/* Does it all, or throws. */
static void
run_change(const GhStoredInfo *info, GhChange *change, const char *verb)
{
	GhAccess	access = {0};
	const GhEngine *engine;

	/* a multiple of 8, so that the arrays of every chunk are aligned */
	change->chunk = Min(gh_store_transfer_keys(info, &change->whole, GH_CHUNK_BYTES), GH_CHUNK_KEYS);
	gh_table_lock_buffered(&access, info, GH_TO_WRITE, true, GH_CHUNK_BYTES);
	if (access.info.on_host)
		change_host(&access, change);
	else
		change_device(&access, change);
	engine = access.info.on_host ? gh_cpu_engine() : gh_service_engine();
	gh_store_unlock(&access);

	if (change->status == GH_DEVICE_ERROR)
		gh_table_report_lost(info->key.name);
	if (change->status != GH_OK)
		gh_table_report(info->key.name, engine, &change->error, verb);
	gh_table_report_copy(&access);
}

uint64
gh_put(const GhStoredInfo *info, const void *keys, const void *values, uint64 count)
{
	GhChange	change = {{0}};

	change.whole.op = info->multi ? GH_ADD : values != NULL ? GH_UPSERT : GH_INSERT;
	change.whole.count = count;
	change.whole.keys = keys;
	change.whole.values_in = values;
	run_change(info, &change, "insert into");
	return change.inserted;
}

static GhChange
remove_keys(const GhStoredInfo *info, GhOp op, const void *keys, uint64 count)
{
	GhChange	change = {{0}};

	change.whole.op = op;
	change.whole.count = count;
	change.whole.keys = keys;
	run_change(info, &change, "delete from");
	return change;
}

uint64
gh_remove(const GhStoredInfo *info, const void *keys, uint64 count)
{
	GhChange	change = remove_keys(info, GH_DELETE, keys, count);

	return info->multi ? change.values_count : change.removed;
}

/*
 * Which value goes is each engine's choice: the copy may keep another one than the host.
 * Nobody reads a multi table's values from a copy (gh_find_lists).
 */
uint64
gh_remove_one(const GhStoredInfo *info, const void *keys, uint64 count)
{
	return remove_keys(info, GH_DELETE_ONE, keys, count).values_count;
}

void
gh_apply(const GhStoredInfo *info, const GhMixedBatch *batch)
{
	GhChange	change = {{0}};

	change.whole.op = GH_MIXED;
	change.whole.count = batch->count;
	change.whole.keys = batch->keys;
	change.whole.ops = batch->ops;
	change.whole.values_in = batch->values;
	change.whole.values_out = batch->found;
	change.whole.flags_out = batch->flags;
	run_change(info, &change, "change");
}
