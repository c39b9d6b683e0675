/*
 * client_request.c
 *		Requests with arrays: out of a buffer of the transfer area into its slot, and
 *		the outcome back.
 */
#include "postgres.h"

#include "service/client.h"

/* Of GhRequest.engine_state. */
enum
{
	STATE_SLOT,
	STATE_GENERATION
};

static GhFlight
flight_of(const GhRequest *request)
{
	return (GhFlight){(uint32) request->engine_state[STATE_SLOT], request->engine_state[STATE_GENERATION]};
}

GhStatus
gh_client_submit(GhTable *table, GhRequest *request)
{
	GhServiceTable *handle = (GhServiceTable *) table;
	GhTableEntry *entry = gh_table_entry_at(handle->table);
	GhSlot	   *slot;
	GhStatus	status;
	uint32		number;

	request->table = NULL;
	status = handle->made ? gh_made_request_check(handle->options.value_size, request, &request->error) :
		gh_request_check(&handle->options, request, &request->error);
	if (status != GH_OK)
		return request->status = status;
	if (request->on_device)
		return request->status = gh_error_set(&request->error, GH_UNSUPPORTED,
											  "a session has no device memory of its own");
	if (request->count == 0)
		return request->status = GH_OK;
	if (!gh_client_entry_lives(handle->table, handle->generation))
		return request->status = gh_error_set(&request->error, GH_DEVICE_ERROR,
											  "the table was lost with the worker of GPU %d",
											  gh_service_device_number((int) entry->device));
	if (!gh_buffer_slot(request->keys, &number) ||
		gh_slot_state(pg_atomic_read_u64(&gh_slot_at(number)->word)) != GH_SLOT_OWNED)
		return request->status = gh_error_set(&request->error, GH_INVALID,
											  "the arrays of a request must be in one idle buffer of the transfer area");
	slot = gh_slot_at(number);
	slot->op = GH_SERVICE_RUN;
	slot->device = entry->device;
	slot->table = handle->table;
	slot->table_generation = handle->generation;
	slot->request = *request;
	slot->count = request->count;
	request->engine_state[STATE_SLOT] = number;
	request->table = table;
	request->status = GH_BUSY;
	request->engine_state[STATE_GENERATION] = gh_client_slot_submit(number);
	return GH_BUSY;
}

/* Takes over the outcome that gh_flight_poll or gh_flight_wait has found. */
static GhStatus
request_end(GhRequest *request, GhStatus status)
{
	GhFlight	flight = flight_of(request);
	const GhSlot *slot = gh_slot_at(flight.slot);

	request->table = NULL;
	if (status != GH_OK)
		return request->status = status;
	request->outcome = slot->request.outcome;
	request->status = slot->status;
	request->error = slot->error;
	gh_slot_reuse(flight.slot);
	return request->status;
}

GhStatus
gh_client_poll(GhRequest *request)
{
	GhStatus	status;

	if (request->status != GH_BUSY || request->table == NULL)
		return request->status;
	status = gh_flight_poll(flight_of(request), &request->error);
	return status == GH_BUSY ? GH_BUSY : request_end(request, status);
}

GhStatus
gh_client_wait(GhRequest *request)
{
	GhServiceTable *handle = (GhServiceTable *) request->table;
	GhStatus	status;

	if (request->status != GH_BUSY || handle == NULL)
		return request->status;
	status = gh_flight_wait(flight_of(request), &handle->host, &request->error);
	return status == GH_STOPPED ? GH_STOPPED : request_end(request, status);
}
