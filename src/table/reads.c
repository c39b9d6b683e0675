/*
 * reads.c
 *		Look-ups in a named table, as requests to its engines.
 *
 * A table on the host answers by itself what is small: a request to the device costs
 * more than the look-ups.  Larger reads go to the copy on the device, if there is
 * one; should it fail, the host's table does what is left, and the copy is given up.
 *
 * All values of many keys come from the host where there is one, whatever their
 * number: making rows of them costs more than finding them.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "service/service.h"
#include "session.h"
#include "table/table.h"

/* Reads of fewer keys stay on the host. */
#define GH_DEVICE_KEYS_MIN 4096

/* Keys of a chunk without a buffer. */
#define GH_FIND_KEYS_MAX (1024 * 1024)

/* Keys of a chunk of value lists; bytes of the values, unless one key has more. */
#define GH_LIST_KEYS_MAX 8192
#define GH_LIST_BYTES_MAX (8 * 1024 * 1024)

/* ---------------------------------------------------------------- failures */

/*
 * A failure on the device.  A copy counts as failed whatever it was; a table that is
 * there alone is only lost when the device says so, and not when it does not answer.
 */
static void
note_failure(GhAccess *access, uint64 word, const GhError *error)
{
	if (access->info.on_host || error->status == GH_DEVICE_ERROR)
		gh_copy_failed(access, word, error);
}

/*
 * The handle on the device's table, and the word under which it can be relied on; or
 * NULL, and why.  A new table may have come between the looks at word and root.
 */
static GhTable *
ready_device(GhAccess *access, uint64 *word, GhError *error)
{
	GhTable    *on_device;

	error->status = GH_DEVICE_ERROR;
	*word = gh_copy_word_of(access->table);
	if (gh_copy_state(*word) != GH_COPY_READY)
		return NULL;
	on_device = gh_device_of(access, error);
	pg_read_barrier();
	if (gh_copy_word_of(access->table) != *word)
		return NULL;
	if (on_device == NULL)
		note_failure(access, *word, error);
	return on_device;
}

/* After a failure: returns if the rest is the host's to do, else throws. */
static void
leave_device(GhAccess *access, const GhError *error)
{
	if (access->info.on_host)
		return;
	gh_access_end(access);
	if (error->status == GH_DEVICE_ERROR)
		gh_table_report_lost(access->info.name);
	gh_table_report(access->info.name, gh_service_engine(), error, "read");
}

/* A read on the device ended with an error.  Likewise. */
static void
read_failed(GhAccess *access, uint64 word, const GhRequest *request)
{
	GhError		error = request->error;

	note_failure(access, word, &error);
	leave_device(access, &error);
}

/* ---------------------------------------------------------------- look-up */

/* The arrays of a find: of the caller, or in the service's buffer. */
static void
find_request(GhRequest *request, const uint64 *keys, uint64 count, void *values, uint8 *found)
{
	memset(request, 0, sizeof(*request));
	request->op = GH_FIND;
	request->count = count;
	request->keys = keys;
	request->values_out = values;
	request->flags_out = found;
}

/* One chunk through the service's buffer, which has room for it. */
static GhStatus
find_buffered(GhTable *on_device, GhRequest *request, char *buffer, int value_size)
{
	GhRequest	moved = *request;
	Size		key_bytes = request->count * sizeof(uint64);
	Size		value_bytes = request->values_out == NULL ? 0 : request->count * value_size;
	GhStatus	status;

	memcpy(buffer, request->keys, key_bytes);
	moved.keys = buffer;
	if (value_bytes > 0)
		moved.values_out = buffer + key_bytes;
	/* aligned enough: flags are bytes, but an array begins at a multiple of 8 */
	moved.flags_out = (uint8 *) buffer + MAXALIGN(key_bytes + value_bytes);
	status = gh_run_request(on_device, &moved);
	if (status == GH_OK)
	{
		if (value_bytes > 0)
			memcpy(request->values_out, moved.values_out, value_bytes);
		memcpy(request->flags_out, moved.flags_out, request->count);
	}
	request->error = moved.error;
	return status;
}

/* Finds on the device what it can; returns the number of keys that are through. */
static uint64
find_on_device(GhAccess *access, const uint64 *keys, uint64 count, char *values, uint8 *found)
{
	int			value_size = values == NULL ? 0 : access->info.value_size;
	uint64		word;
	GhTable    *on_device;
	GhError		error = {0};
	uint64		chunk = GH_FIND_KEYS_MAX;
	uint64		done = 0;

	/* a copy that was made after the look that found no need for a buffer */
	if (gh_service_enabled() && access->buffer == NULL)
		return 0;
	on_device = ready_device(access, &word, &error);
	if (access->buffer != NULL)
		chunk = (access->buffer_bytes - MAXIMUM_ALIGNOF) / (sizeof(uint64) + value_size + 1) & ~UINT64CONST(7);
	if (on_device == NULL)
		leave_device(access, &error);
	while (on_device != NULL && done < count)
	{
		GhRequest	request;
		GhStatus	status;

		find_request(&request, keys + done, Min(count - done, chunk),
					 values == NULL ? NULL : values + done * value_size, found + done);
		status = access->buffer == NULL ? gh_run_request(on_device, &request) :
			find_buffered(on_device, &request, access->buffer, value_size);
		if (status != GH_OK)
		{
			read_failed(access, word, &request);
			break;
		}
		done += request.count;
	}
	return done;
}

static void
find_on_host(GhAccess *access, const uint64 *keys, uint64 count, char *values, uint8 *found)
{
	GhTable    *host = gh_host_of(access);

	for (uint64 done = 0; done < count;)
	{
		GhRequest	request;

		find_request(&request, keys + done, Min(count - done, GH_FIND_KEYS_MAX),
					 values == NULL ? NULL : values + done * access->info.value_size, found + done);
		if (gh_run_request(host, &request) != GH_OK)
			gh_table_report(access->info.name, host->engine, &request.error, "read");
		done += request.count;
	}
}

void
gh_find(const GhTableInfo *info, const uint64 *keys, uint64 count, void *values, uint8 *found)
{
	bool		large = count >= GH_DEVICE_KEYS_MIN;
	GhAccess	access = {0};
	uint64		done = 0;

	if (large)
		gh_copy_make_if_due(info);
	gh_access_open(&access, info, GH_TO_READ, large, GH_CHUNK_BYTES);
	if (large || !access.info.on_host)
		done = find_on_device(&access, keys, count, values, found);
	if (done < count)
		find_on_host(&access, keys + done, count - done,
					 values == NULL ? NULL : (char *) values + done * info->value_size, found + done);
	pg_atomic_fetch_add_u64(&access.table->reads, (int64) count);
	gh_access_end(&access);
	gh_copy_report(&access);
}

/* ------------------------------------------------------------ value lists */

/* Makes room in lists for keys and values; what is in there is gone. */
static void
reserve_lists(GhValueLists *lists, int value_size, uint64 keys, uint64 values)
{
	if (keys > lists->keys_capacity)
	{
		if (lists->offsets != NULL)
			pfree(lists->offsets);
		lists->offsets = MemoryContextAlloc(lists->context, (keys + 1) * sizeof(uint64));
		lists->keys_capacity = keys;
	}
	if (values > lists->values_capacity)
	{
		if (lists->values != NULL)
			pfree(lists->values);
		lists->values = MemoryContextAllocHuge(lists->context, values * value_size);
		lists->values_capacity = values;
	}
}

/* After GH_TOO_SMALL, the offsets are right: keys whose values fit the bound. */
static uint64
keys_that_fit(const uint64 *offsets, uint64 count, uint64 values)
{
	while (count > 1 && offsets[count] > values)
		count--;
	return count;
}

static void
lists_request(GhRequest *request, const uint64 *keys, uint64 count, GhValueLists *lists)
{
	memset(request, 0, sizeof(*request));
	request->op = GH_FIND_ALL;
	request->count = count;
	request->keys = keys;
	request->values_out = lists->values;
	request->values_capacity = lists->values_capacity;
	request->offsets_out = lists->offsets;
}

/* On a table whose requests take any memory. */
static uint64
lists_direct(GhAccess *access, GhTable *table, uint64 word, const uint64 *keys, uint64 count,
			 GhValueLists *lists)
{
	int			value_size = access->info.value_size;

	reserve_lists(lists, value_size, count, 2 * count);
	for (;;)
	{
		GhRequest	request;
		GhStatus	status;

		lists_request(&request, keys, count, lists);
		status = gh_run_request(table, &request);
		if (status == GH_OK)
			return count;
		if (status != GH_TOO_SMALL && table->engine->asynchronous)
			read_failed(access, word, &request);
		if (status != GH_TOO_SMALL)
			gh_table_report(access->info.name, table->engine, &request.error, "read");
		count = keys_that_fit(lists->offsets, count, GH_LIST_BYTES_MAX / value_size);
		reserve_lists(lists, value_size, count, lists->offsets[count]);
	}
}

/*
 * Through the service's buffer.  Returns the number of keys; 0: the buffer must have
 * *wanted bytes.
 */
static uint64
lists_buffered(GhAccess *access, GhTable *on_device, uint64 word, const uint64 *keys,
			   uint64 count, GhValueLists *lists, Size *wanted)
{
	int			value_size = access->info.value_size;
	char	   *buffer = access->buffer;

	for (;;)
	{
		Size		key_bytes = count * sizeof(uint64);
		Size		head = 2 * key_bytes + sizeof(uint64);
		GhRequest	request;
		GhValueLists moved = {0};
		GhStatus	status;

		moved.offsets = (uint64 *) (buffer + key_bytes);
		moved.values = buffer + head;
		moved.values_capacity = (access->buffer_bytes - head) / value_size;
		memcpy(buffer, keys, key_bytes);
		lists_request(&request, (uint64 *) buffer, count, &moved);
		status = gh_run_request(on_device, &request);
		if (status == GH_OK)
		{
			reserve_lists(lists, value_size, count, moved.offsets[count]);
			memcpy(lists->offsets, moved.offsets, key_bytes + sizeof(uint64));
			memcpy(lists->values, moved.values, moved.offsets[count] * value_size);
			return count;
		}
		if (status != GH_TOO_SMALL)
			read_failed(access, word, &request);
		if (count == 1)
		{
			*wanted = head + moved.offsets[1] * value_size;
			return 0;
		}
		count = keys_that_fit(moved.offsets, count, moved.values_capacity);
	}
}

/* Of a table on the device alone. */
static uint64
lists_on_device(GhAccess *access, const uint64 *keys, uint64 count, GhValueLists *lists,
				Size *wanted)
{
	uint64		word;
	GhError		error = {0};
	GhTable    *on_device = ready_device(access, &word, &error);

	if (on_device == NULL)
		leave_device(access, &error);
	if (access->buffer == NULL)
		return lists_direct(access, on_device, word, keys, count, lists);
	/* half of the first buffer is for values */
	return lists_buffered(access, on_device, word, keys, Min(count, GH_CHUNK_BYTES / (4 * sizeof(uint64))),
						  lists, wanted);
}

/* A table of single values, told as lists of one or none. */
static uint64
find_single_lists(const GhTableInfo *info, const uint64 *keys, uint64 count, GhValueLists *lists)
{
	int			value_size = info->value_size;
	uint8	   *found = palloc(count);
	uint64		n = 0;

	reserve_lists(lists, value_size, count, count);
	gh_find(info, keys, count, lists->values, found);
	for (uint64 i = 0; i < count; i++)
	{
		lists->offsets[i] = n;
		if (found[i])
			memmove(lists->values + n++ * value_size, lists->values + i * value_size, value_size);
	}
	lists->offsets[count] = n;
	pfree(found);
	return count;
}

uint64
gh_find_lists(const GhTableInfo *info, const uint64 *keys, uint64 count, GhValueLists *lists)
{
	Size		wanted = GH_CHUNK_BYTES;

	count = Min(count, GH_LIST_KEYS_MAX);
	if (!info->multi)
		return find_single_lists(info, keys, count, lists);
	for (;;)
	{
		GhAccess	access = {0};
		uint64		found;

		gh_access_open(&access, info, GH_TO_READ, false, wanted);
		if (access.info.on_host)
			found = lists_direct(&access, gh_host_of(&access), 0, keys, count, lists);
		else
			found = lists_on_device(&access, keys, wanted == GH_CHUNK_BYTES ? count : 1, lists, &wanted);
		pg_atomic_fetch_add_u64(&access.table->reads, (int64) found);
		gh_access_end(&access);
		if (found > 0)
			return found;
	}
}

/* -------------------------------------------------------------- statistics */

static void
device_numbers(GhAccess *access, GhTableNumbers *numbers)
{
	uint64		word;
	GhError		error = {0};
	GhTable    *on_device = ready_device(access, &word, &error);
	GhTableStats stats = {0};
	GhStatus	status = error.status;

	if (on_device != NULL)
	{
		while ((status = on_device->engine->table_stats(on_device, &stats, &error)) == GH_STOPPED)
			gh_serve_interrupt();
		if (status != GH_OK)
			note_failure(access, word, &error);
	}
	numbers->lost = !access->info.on_host && status == GH_DEVICE_ERROR;
	numbers->unknown = !access->info.on_host && status != GH_OK;
	if (status != GH_OK)
		return;
	numbers->engine = on_device->engine->name;
	numbers->device = access->table->device;
	numbers->device_bytes = stats.bytes;
	numbers->bytes_to_device = stats.bytes_to_device;
	numbers->bytes_from_device = stats.bytes_from_device;
	if (!access->info.on_host)
		numbers->stats = stats;
}

bool
gh_read_numbers(const GhTableInfo *info, GhTableNumbers *numbers)
{
	GhAccess	access = {0};
	GhError		error = {0};

	memset(numbers, 0, sizeof(*numbers));
	numbers->device = -1;
	if (!gh_access_try(&access, info, GH_TO_READ))
		return false;
	device_numbers(&access, numbers);
	numbers->host_bytes = sizeof(GhNamedTable);
	if (access.info.on_host)
	{
		GhTable    *host = gh_host_of(&access);

		if (host->engine->table_stats(host, &numbers->stats, &error) != GH_OK)
			gh_table_report(info->name, host->engine, &error, "read the statistics of");
		numbers->host_bytes += numbers->stats.bytes;
		if (numbers->engine == NULL)
			numbers->engine = host->engine->name;
	}
	/* a read that failed could not write it down */
	strlcpy(numbers->reason, gh_copy_state(gh_copy_word_of(access.table)) == GH_COPY_UNSURE ?
			GH_REASON_FAILED : access.table->reason, GH_REASON_SIZE);
	numbers->reads = pg_atomic_read_u64(&access.table->reads);
	numbers->writes = pg_atomic_read_u64(&access.table->writes);
	gh_access_end(&access);
	return true;
}
