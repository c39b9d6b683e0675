/*
 * transfer.c
 *		Parts of a large request, and its arrays in a buffer of the service.
 *
 * Engines take a request's arrays wherever they are, the service's client only those in
 * one buffer of the transfer area.  There they lie one after the other, each at a multiple
 * of 8.  What of them there is, the request says: a pointer that is NULL has no array.
 */
#include "postgres.h"

#include "host.h"
#include "store/inside.h"

/* Arrays that a request may have here; each may be followed by a gap. */
#define GH_ARRAYS_MAX 6

uint64
gh_store_transfer_keys(const GhStoredInfo *info, const GhRequest *request, Size bytes)
{
	Size		of_key = info->key_size +
		(request->values_in != NULL ? info->value_size : 0) +
		(request->ops != NULL ? sizeof(*request->ops) : 0) +
		(request->values_out != NULL ? info->value_size : 0) +
		(request->flags_out != NULL ? sizeof(*request->flags_out) : 0) +
		(request->counts_out != NULL ? sizeof(*request->counts_out) : 0);

	return (bytes - GH_ARRAYS_MAX * MAXIMUM_ALIGNOF) / of_key & ~UINT64CONST(7);
}

/* Room for an array; NULL where the request has none. */
static void *
take(char **at, const void *array, Size bytes)
{
	char	   *place = *at;

	if (array == NULL)
		return NULL;
	*at += MAXALIGN(bytes);
	return place;
}

static const void *
take_copy(char **at, const void *array, Size bytes)
{
	void	   *place = take(at, array, bytes);

	if (place != NULL)
		memcpy(place, array, bytes);
	return place;
}

void
gh_store_transfer_in(const GhStoredInfo *info, GhRequest *request, char *buffer)
{
	uint64		count = request->count;
	char	   *at = buffer;

	request->keys = take_copy(&at, request->keys, count * info->key_size);
	request->values_in = take_copy(&at, request->values_in, count * info->value_size);
	request->ops = take_copy(&at, request->ops, count * sizeof(*request->ops));
	request->values_out = take(&at, request->values_out, count * info->value_size);
	request->counts_out = take(&at, request->counts_out, count * sizeof(*request->counts_out));
	request->flags_out = take(&at, request->flags_out, count * sizeof(*request->flags_out));
}

/* The results of the positions that were done. */
static void
take_out(const GhStoredInfo *info, const GhRequest *moved, GhRequest *request)
{
	uint64		done = moved->outcome.done;

	if (request->values_out != NULL)
		memcpy(request->values_out, moved->values_out, done * info->value_size);
	if (request->counts_out != NULL)
		memcpy(request->counts_out, moved->counts_out, done * sizeof(*request->counts_out));
	if (request->flags_out != NULL)
		memcpy(request->flags_out, moved->flags_out, done * sizeof(*request->flags_out));
	request->outcome = moved->outcome;
	request->error = moved->error;
}

GhStatus
gh_store_run(GhAccess *access, GhTable *on_device, GhRequest *request)
{
	GhRequest	moved = *request;
	GhStatus	status;

	if (access->buffer == NULL)
		return gh_run_request(on_device, request);
	gh_store_transfer_in(&access->info, &moved, access->buffer);
	status = gh_run_request(on_device, &moved);
	take_out(&access->info, &moved, request);
	return status;
}

/* -------------------------------------------------------------------- parts */

/* The array from an element on; NULL stays NULL. */
static void *
from_element(const void *array, uint64 element, Size size)
{
	return array == NULL ? NULL : (char *) unconstify(void *, array) + element * size;
}

void
gh_store_part(const GhStoredInfo *info, const GhRequest *whole, uint64 done, uint64 keys, GhRequest *part)
{
	memset(part, 0, sizeof(*part));
	part->op = whole->op;
	part->count = Min(whole->count - done, keys);
	part->keys = from_element(whole->keys, done, info->key_size);
	part->values_in = from_element(whole->values_in, done, info->value_size);
	part->ops = from_element(whole->ops, done, sizeof(*whole->ops));
	part->values_out = from_element(whole->values_out, done, info->value_size);
	part->flags_out = from_element(whole->flags_out, done, sizeof(*whole->flags_out));
	part->counts_out = from_element(whole->counts_out, done, sizeof(*whole->counts_out));
}
