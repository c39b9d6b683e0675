/*
 * requests.c
 *		Modifications of a named table, as requests to its engines.
 *
 * Where there is a table on the host it decides.  A chunk of keys is done there first;
 * what was done of it, a prefix, is then sent to the copy on the device, which works
 * on it while the host does the next chunk.  From before the first chunk until the
 * device has said that all went well the copy is GH_COPY_UNSURE.  So it does not
 * matter in which way a call ends before that, the process's end included: the next
 * one finds a copy that is not to be used.
 *
 * A table on the device alone is changed there, chunk by chunk; when the device fails
 * the table is lost.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "gpuhash.h"
#include "service/service.h"
#include "session.h"
#include "table/table.h"

/* A chunk's keys, at most. */
#define GH_CHUNK_KEYS 65536

/* A modification, and what came of it so far. */
typedef struct GhChange
{
	GhOp		op;
	int			value_size;		/* bytes; 0: no values come with the keys */
	const uint64 *keys;
	const char *values;
	uint64		count;
	uint64		chunk;			/* keys of a chunk at most */
	uint64		done;			/* keys */
	uint64		inserted;
	uint64		removed;
	uint64		values_count;	/* values removed */
	GhStatus	status;
	GhError		error;
} GhChange;

/* The copy on the device, while a modification follows the host's. */
typedef struct GhReplica
{
	GhTable    *on_device;		/* NULL: there is none, or none any more */
	GhRequest	request;		/* in flight */
	bool		in_flight;
	uint64		inserted;		/* what the host has told for it */
	uint64		removed;
} GhReplica;

/* ------------------------------------------------------------------ chunks */

static void
begin_change(GhChange *change, const GhTableInfo *info, GhOp op, const uint64 *keys,
			 const void *values, uint64 count)
{
	memset(change, 0, sizeof(*change));
	change->op = op;
	change->value_size = values == NULL ? 0 : info->value_size;
	change->keys = keys;
	change->values = values;
	change->count = count;
	/* a multiple of 8, so that the values of every chunk are aligned */
	change->chunk = Min(GH_CHUNK_BYTES / (sizeof(uint64) + change->value_size), GH_CHUNK_KEYS) &
		~UINT64CONST(7);
}

static void
next_request(const GhChange *change, GhRequest *request)
{
	memset(request, 0, sizeof(*request));
	request->op = change->op;
	request->count = Min(change->count - change->done, change->chunk);
	request->keys = change->keys + change->done;
	if (change->value_size > 0)
		request->values_in = change->values + change->done * change->value_size;
}

static void
take_results(GhChange *change, const GhRequest *request, GhStatus status)
{
	change->done += request->done;
	change->inserted += request->inserted;
	change->removed += request->removed;
	change->values_count += request->values_count;
	change->status = status;
	if (status != GH_OK)
		change->error = request->error;
}

/* Has the request's arrays in the service's buffer. */
static void
move_to_buffer(GhRequest *request, int value_size, char *buffer)
{
	Size		key_bytes = request->count * sizeof(uint64);

	memcpy(buffer, request->keys, key_bytes);
	request->keys = buffer;
	if (value_size > 0)
	{
		memcpy(buffer + key_bytes, request->values_in, request->count * value_size);
		request->values_in = buffer + key_bytes;
	}
}

/* ------------------------------------------------------------- replication */

/* The copy is of no use any more. */
static void
replica_fail(GhAccess *access, GhReplica *replica, const GhError *error)
{
	replica->on_device = NULL;
	replica->in_flight = false;
	gh_copy_drop(access, error);
}

static void
replica_begin(GhAccess *access, GhReplica *replica)
{
	GhError		error = {0};

	memset(replica, 0, sizeof(*replica));
	if (!gh_copy_is_ready(access->table))
	{
		/* a call was cut short, or a read failed */
		gh_device_close(access);
		return;
	}
	gh_copy_set(access->table, GH_COPY_UNSURE);
	replica->on_device = gh_device_of(access, &error);
	if (replica->on_device == NULL)
		replica_fail(access, replica, &error);
}

/*
 * The outcome of the request in flight.  The device must have done just what the
 * host did.
 */
static void
replica_check(GhAccess *access, GhReplica *replica, GhStatus status)
{
	GhRequest  *request = &replica->request;
	GhError		error = {0};

	if (status != GH_OK)
	{
		error = request->error;
		replica_fail(access, replica, &error);
	}
	else if (request->inserted != replica->inserted || request->removed != replica->removed)
	{
		(void) gh_error_set(&error, GH_DEVICE_ERROR, "its table differs from the host's");
		replica_fail(access, replica, &error);
	}
}

static void
replica_wait(GhAccess *access, GhReplica *replica)
{
	if (!replica->in_flight)
		return;
	replica->in_flight = false;
	replica_check(access, replica, gh_wait_request(replica->on_device, &replica->request));
}

/* Sends what the host has done of a request. */
static void
replica_send(GhAccess *access, GhReplica *replica, const GhRequest *done, int value_size)
{
	GhRequest  *request = &replica->request;

	replica_wait(access, replica);
	if (replica->on_device == NULL || done->done == 0)
		return;
	memset(request, 0, sizeof(*request));
	request->op = done->op;
	request->count = done->done;
	request->keys = done->keys;
	request->values_in = done->values_in;
	replica->inserted = done->inserted;
	replica->removed = done->removed;
	if (access->buffer == NULL)
		replica_check(access, replica, gh_run_request(replica->on_device, request));
	else
	{
		GhStatus	status;

		move_to_buffer(request, value_size, access->buffer);
		status = replica->on_device->engine->submit(replica->on_device, request);
		if (status == GH_BUSY)
			replica->in_flight = true;
		else
			replica_check(access, replica, status);
	}
}

static void
replica_end(GhAccess *access, GhReplica *replica)
{
	replica_wait(access, replica);
	if (replica->on_device != NULL)
		gh_copy_set(access->table, GH_COPY_READY);
}

/* ------------------------------------------------------------ modifications */

static void
change_host(GhAccess *access, GhChange *change)
{
	GhTable    *host = gh_host_of(access);
	GhReplica	replica;

	replica_begin(access, &replica);
	while (change->done < change->count && change->status == GH_OK)
	{
		GhRequest	request;
		GhStatus	status;

		next_request(change, &request);
		status = gh_run_request(host, &request);
		take_results(change, &request, status);
		replica_send(access, &replica, &request, change->value_size);
	}
	replica_end(access, &replica);
}

static void
change_device(GhAccess *access, GhChange *change)
{
	GhTable    *on_device = gh_device_of(access, &change->error);

	if (on_device == NULL)
		change->status = change->error.status;
	while (change->done < change->count && change->status == GH_OK)
	{
		GhRequest	request;
		GhStatus	status;

		next_request(change, &request);
		if (access->buffer != NULL)
			move_to_buffer(&request, change->value_size, access->buffer);
		status = gh_run_request(on_device, &request);
		take_results(change, &request, status);
	}
	if (change->status == GH_DEVICE_ERROR)
		gh_copy_drop(access, NULL);
}

/* Does it all, or throws. */
static void
run_change(const GhTableInfo *info, GhChange *change, const char *verb)
{
	GhAccess	access = {0};
	const GhEngine *engine;

	gh_access_open(&access, info, GH_TO_WRITE, true, GH_CHUNK_BYTES);
	if (access.info.on_host)
		change_host(&access, change);
	else
		change_device(&access, change);
	engine = access.info.on_host ? gh_cpu_engine() : gh_service_engine();
	pg_atomic_fetch_add_u64(&access.table->writes, (int64) change->done);
	pg_atomic_fetch_add_u64(&access.table->keys, (int64) (change->inserted - change->removed));
	gh_access_end(&access);

	if (change->status == GH_DEVICE_ERROR)
		gh_table_report_lost(info->name);
	if (change->status != GH_OK)
		gh_table_report(info->name, engine, &change->error, verb);
	gh_copy_report(&access);
}

uint64
gh_put(const GhTableInfo *info, const uint64 *keys, const void *values, uint64 count)
{
	GhChange	change;

	begin_change(&change, info, info->multi ? GH_ADD : values != NULL ? GH_UPSERT : GH_INSERT,
				 keys, values, count);
	run_change(info, &change, "insert into");
	return change.inserted;
}

uint64
gh_remove(const GhTableInfo *info, const uint64 *keys, uint64 count)
{
	GhChange	change;

	begin_change(&change, info, GH_DELETE, keys, NULL, count);
	run_change(info, &change, "delete from");
	return info->multi ? change.values_count : change.removed;
}

/* -------------------------------------------------------------------- clear */

/* The host's table first, which is empty from the first moment on. */
static void
clear_host(GhAccess *access)
{
	GhTable    *host = gh_host_of(access);
	GhReplica	replica;
	GhError		error = {0};

	replica_begin(access, &replica);
	if (gh_clear_table(host, &error) != GH_OK)
		gh_table_report(access->info.name, host->engine, &error, "clear");
	if (replica.on_device != NULL && gh_clear_table(replica.on_device, &error) != GH_OK)
		replica_fail(access, &replica, &error);
	replica_end(access, &replica);
}

/* One that is lost, or is found to be, is made anew. */
static void
clear_device(GhAccess *access)
{
	GhTable    *on_device = NULL;
	GhError		error = {0};
	GhStatus	status = GH_DEVICE_ERROR;

	if (gh_copy_is_ready(access->table))
		on_device = gh_device_of(access, &error);
	if (on_device != NULL)
		status = gh_clear_table(on_device, &error);
	if (status == GH_DEVICE_ERROR)
		gh_engines_open(access);
	else if (status != GH_OK)
		gh_table_report(access->info.name, on_device->engine, &error, "clear");
}

void
gh_remove_all(const GhTableInfo *info)
{
	GhAccess	access = {0};

	if (!gh_access_try(&access, info, GH_TO_WRITE))
		gh_table_report_missing(info->name);
	if (access.info.on_host)
		clear_host(&access);
	else
		clear_device(&access);
	pg_atomic_write_u64(&access.table->keys, 0);
	gh_access_end(&access);
	gh_copy_report(&access);
}
