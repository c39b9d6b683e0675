/*
 * replica.c
 *		The copy on the device follows a modification of the host's table.
 *
 * From before the first chunk until the device has said that all went well the copy is
 * GH_COPY_UNSURE.  So it does not matter in which way a call ends before that, the
 * process's end included: the next one finds a copy that is not to be used.
 */
#include "postgres.h"

#include "host.h"
#include "store/inside.h"

/* The copy is of no use any more. */
void
gh_store_replica_fail(GhAccess *access, GhReplica *replica, const GhError *error)
{
	replica->on_device = NULL;
	replica->in_flight = false;
	gh_store_copy_drop(access, error);
}

void
gh_store_replica_begin(GhAccess *access, GhReplica *replica)
{
	GhError		error = {0};

	memset(replica, 0, sizeof(*replica));
	if (!gh_store_copy_is_ready(access->stored))
	{
		/* a call was cut short, or a read failed */
		gh_store_device_close(access);
		return;
	}
	gh_store_copy_set(access->stored, GH_COPY_UNSURE);
	replica->on_device = gh_store_device(access, &error);
	if (replica->on_device == NULL)
		gh_store_replica_fail(access, replica, &error);
}

/* The outcome of the request in flight. */
static void
replica_check(GhAccess *access, GhReplica *replica, GhStatus status)
{
	GhRequest  *request = &replica->request;
	GhError		error = request->error;

	replica->device_inserted += request->outcome.inserted;
	replica->device_removed += request->outcome.removed;
	if (status != GH_OK)
		gh_store_replica_fail(access, replica, &error);
}

static void
replica_wait(GhAccess *access, GhReplica *replica)
{
	if (!replica->in_flight)
		return;
	replica->in_flight = false;
	replica_check(access, replica, gh_wait_request(replica->on_device, &replica->request));
}

void
gh_store_replica_send(GhAccess *access, GhReplica *replica, const GhRequest *done)
{
	GhRequest  *request = &replica->request;
	GhStatus	status;

	replica_wait(access, replica);
	replica->inserted += done->outcome.inserted;
	replica->removed += done->outcome.removed;
	if (replica->on_device == NULL || done->outcome.done == 0)
		return;
	memset(request, 0, sizeof(*request));
	request->op = done->op;
	request->count = done->outcome.done;
	request->keys = done->keys;
	request->values_in = done->values_in;
	request->ops = done->ops;
	if (access->buffer == NULL)
	{
		replica_check(access, replica, gh_run_request(replica->on_device, request));
		return;
	}
	gh_store_transfer_in(&access->info, request, access->buffer);
	status = replica->on_device->engine->submit(replica->on_device, request);
	if (status == GH_BUSY)
		replica->in_flight = true;
	else
		replica_check(access, replica, status);
}

/* The device must have done just what the host did. */
void
gh_store_replica_end(GhAccess *access, GhReplica *replica)
{
	GhError		error = {0};

	replica_wait(access, replica);
	if (replica->on_device != NULL &&
		(replica->device_inserted != replica->inserted || replica->device_removed != replica->removed))
	{
		(void) gh_error_set(&error, GH_DEVICE_ERROR, "its table differs from the host's");
		gh_store_replica_fail(access, replica, &error);
	}
	if (replica->on_device != NULL)
		gh_store_copy_set(access->stored, GH_COPY_READY);
}
