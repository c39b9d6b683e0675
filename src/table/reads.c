/*
 * reads.c
 *		Look-ups in a named table, as requests to its engines.
 *
 * A table on the host answers by itself what is small: a request to the device costs
 * more than the look-ups.  Larger reads go to the copy on the device, if there is
 * one; should it fail, the host's table does what is left, and the copy is given up.
 *
 * All values of many keys come from the host where there is one, whatever their
 * number: making rows of them costs more than finding them, and after gpuhash_delete_one
 * the copy has as many values of a key as the host, but maybe others.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "host.h"
#include "service/service.h"
#include "table/table.h"

/* Reads of fewer keys stay on the host. */
#define GH_DEVICE_KEYS_MIN 4096

/* Keys of a chunk without a buffer. */
#define GH_FIND_KEYS_MAX (1024 * 1024)

/* Keys of a chunk of value lists; bytes of the values, unless one key has more. */
#define GH_LIST_KEYS_MAX 8192
#define GH_LIST_BYTES_MAX (8 * 1024 * 1024)

/* ---------------------------------------------------------------- failures */

/* After a failure: returns if the rest is the host's to do, else throws. */
static void
leave_device(GhAccess *access, const GhError *error)
{
	if (access->info.on_host)
		return;
	gh_store_unlock(access);
	if (error->status == GH_DEVICE_ERROR)
		gh_table_report_lost(access->info.key.name);
	gh_table_report(access->info.key.name, gh_service_engine(), error, "read");
}

/* A read on the device ended with an error.  Likewise. */
static void
read_failed(GhAccess *access, uint64 word, const GhRequest *request)
{
	GhError		error = request->error;

	gh_store_copy_failed(access, word, &error);
	leave_device(access, &error);
}

/* ---------------------------------------------------------------- look-up */

/* Looks up on the device what it can; returns the number of keys that are through. */
static uint64
look_up_on_device(GhAccess *access, const GhRequest *whole)
{
	uint64		word;
	GhTable    *on_device;
	GhError		error = {0};
	uint64		keys = GH_FIND_KEYS_MAX;
	uint64		done = 0;

	/* a copy that was made after the look that found no need for a buffer */
	if (gh_service_enabled() && access->buffer == NULL)
		return 0;
	on_device = gh_store_ready_device(access, &word, &error);
	if (access->buffer != NULL)
		keys = gh_store_transfer_keys(&access->info, whole, access->buffer_bytes);
	if (on_device == NULL)
		leave_device(access, &error);
	while (on_device != NULL && done < whole->count)
	{
		GhRequest	request;

		gh_store_part(&access->info, whole, done, keys, &request);
		if (gh_store_run(access, on_device, &request) != GH_OK)
		{
			read_failed(access, word, &request);
			break;
		}
		done += request.count;
	}
	return done;
}

/* The keys from position `done` on. */
static void
look_up_on_host(GhAccess *access, const GhRequest *whole, uint64 done)
{
	GhTable    *host = gh_table_host(access);

	while (done < whole->count)
	{
		GhRequest	request;

		gh_store_part(&access->info, whole, done, GH_FIND_KEYS_MAX, &request);
		if (gh_run_request(host, &request) != GH_OK)
			gh_table_report(access->info.key.name, host->engine, &request.error, "read");
		done += request.count;
	}
}

static void
look_up(const GhStoredInfo *info, const GhRequest *whole)
{
	bool		large = whole->count >= GH_DEVICE_KEYS_MIN;
	GhAccess	access = {0};
	uint64		done = 0;

	if (large)
		gh_store_copy_make_if_due(info);
	gh_table_lock_buffered(&access, info, GH_TO_READ, large, GH_CHUNK_BYTES);
	if (large || !access.info.on_host)
		done = look_up_on_device(&access, whole);
	if (done < whole->count)
		look_up_on_host(&access, whole, done);
	pg_atomic_fetch_add_u64(&access.stored->reads, (int64) whole->count);
	gh_store_unlock(&access);
	gh_table_report_copy(&access);
}

void
gh_find(const GhStoredInfo *info, const void *keys, uint64 count, void *values, uint8 *found)
{
	GhRequest	request = {.op = GH_FIND, .count = count, .keys = keys};

	request.values_out = values;
	request.flags_out = found;
	look_up(info, &request);
}

void
gh_count(const GhStoredInfo *info, const void *keys, uint64 count, uint64 *counts)
{
	GhRequest	request = {.op = GH_COUNT, .count = count, .keys = keys};

	request.counts_out = counts;
	look_up(info, &request);
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
lists_request(GhRequest *request, const void *keys, uint64 count, GhValueLists *lists)
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
lists_direct(GhAccess *access, GhTable *table, uint64 word, const void *keys, uint64 count,
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
		if (status != GH_TOO_SMALL && table->engine->on_device)
			read_failed(access, word, &request);
		if (status != GH_TOO_SMALL)
			gh_table_report(access->info.key.name, table->engine, &request.error, "read");
		count = keys_that_fit(lists->offsets, count, GH_LIST_BYTES_MAX / value_size);
		reserve_lists(lists, value_size, count, lists->offsets[count]);
	}
}

/*
 * Through the service's buffer.  Returns the number of keys; 0: the buffer must have
 * *wanted bytes.
 */
static uint64
lists_buffered(GhAccess *access, GhTable *on_device, uint64 word, const void *keys,
			   uint64 count, GhValueLists *lists, Size *wanted)
{
	int			value_size = access->info.value_size;
	char	   *buffer = access->buffer;

	for (;;)
	{
		Size		key_bytes = MAXALIGN(count * access->info.key_size);
		Size		offset_bytes = (count + 1) * sizeof(uint64);
		Size		head = key_bytes + offset_bytes;
		GhRequest	request;
		GhValueLists moved = {0};
		GhStatus	status;

		moved.offsets = (uint64 *) (buffer + key_bytes);
		moved.values = buffer + head;
		moved.values_capacity = (access->buffer_bytes - head) / value_size;
		memcpy(buffer, keys, count * access->info.key_size);
		lists_request(&request, buffer, count, &moved);
		status = gh_run_request(on_device, &request);
		if (status == GH_OK)
		{
			reserve_lists(lists, value_size, count, moved.offsets[count]);
			memcpy(lists->offsets, moved.offsets, offset_bytes);
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
lists_on_device(GhAccess *access, const void *keys, uint64 count, GhValueLists *lists,
				Size *wanted)
{
	uint64		word;
	GhError		error = {0};
	GhTable    *on_device = gh_store_ready_device(access, &word, &error);

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
find_single_lists(const GhStoredInfo *info, const void *keys, uint64 count, GhValueLists *lists)
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

/* Of keys that are aligned to 8 bytes. */
static uint64
find_lists(const GhStoredInfo *info, const void *keys, uint64 count, GhValueLists *lists)
{
	Size		wanted = GH_CHUNK_BYTES;

	if (!info->multi)
		return find_single_lists(info, keys, count, lists);
	for (;;)
	{
		GhAccess	access = {0};
		uint64		found;

		gh_table_lock_buffered(&access, info, GH_TO_READ, false, wanted);
		if (access.info.on_host)
			found = lists_direct(&access, gh_table_host(&access), 0, keys, count, lists);
		else
			found = lists_on_device(&access, keys, wanted == GH_CHUNK_BYTES ? count : 1, lists, &wanted);
		pg_atomic_fetch_add_u64(&access.stored->reads, (int64) found);
		gh_store_unlock(&access);
		if (found > 0)
			return found;
	}
}

uint64
gh_find_lists(const GhStoredInfo *info, const void *keys, uint64 count, GhValueLists *lists)
{
	void	   *aligned;
	uint64		found;

	count = Min(count, GH_LIST_KEYS_MAX);
	if ((uintptr_t) keys % sizeof(uint64) == 0)
		return find_lists(info, keys, count, lists);
	/* where the last chunk ended, with keys of 4 bytes */
	aligned = palloc(count * info->key_size);
	memcpy(aligned, keys, count * info->key_size);
	found = find_lists(info, aligned, count, lists);
	pfree(aligned);
	return found;
}

/* -------------------------------------------------------------- statistics */

static void
device_numbers(GhAccess *access, GhTableNumbers *numbers)
{
	uint64		word;
	GhError		error = {0};
	GhTable    *on_device = gh_store_ready_device(access, &word, &error);
	GhTableStats stats = {0};
	GhStatus	status = error.status;

	if (on_device != NULL)
	{
		while ((status = on_device->engine->table_stats(on_device, &stats, &error)) == GH_STOPPED)
			gh_serve_interrupt();
		if (status != GH_OK)
			gh_store_copy_failed(access, word, &error);
	}
	numbers->lost = !access->info.on_host && status == GH_DEVICE_ERROR;
	numbers->unknown = !access->info.on_host && status != GH_OK;
	if (status != GH_OK)
		return;
	numbers->engine = on_device->engine->name;
	numbers->device = access->stored->device;
	numbers->device_bytes = stats.bytes;
	numbers->host_bytes = stats.bytes_paged;
	numbers->bytes_to_device = stats.bytes_to_device;
	numbers->bytes_from_device = stats.bytes_from_device;
	if (!access->info.on_host)
	{
		numbers->stats = stats;
		numbers->parts_on_device = true;
	}
}

bool
gh_read_numbers(const GhStoredInfo *info, GhTableNumbers *numbers)
{
	GhAccess	access = {0};
	GhError		error = {0};

	memset(numbers, 0, sizeof(*numbers));
	numbers->device = -1;
	if (!gh_store_lock(&access, info, GH_TO_READ))
		return false;
	device_numbers(&access, numbers);
	numbers->host_bytes += offsetof(GhStored, extra) + access.stored->extra_bytes;
	if (access.info.on_host)
	{
		GhTable    *host = gh_table_host(&access);

		if (host->engine->table_stats(host, &numbers->stats, &error) != GH_OK)
			gh_table_report(info->key.name, host->engine, &error, "read the statistics of");
		numbers->host_bytes += numbers->stats.bytes;
		if (numbers->engine == NULL)
			numbers->engine = host->engine->name;
	}
	/* a read that failed could not write it down */
	strlcpy(numbers->reason, gh_store_word_state(gh_store_copy_word(access.stored)) == GH_COPY_UNSURE ?
			GH_REASON_FAILED : access.stored->reason, GH_REASON_SIZE);
	numbers->reads = pg_atomic_read_u64(&access.stored->reads);
	numbers->writes = pg_atomic_read_u64(&access.stored->writes);
	gh_store_unlock(&access);
	return true;
}
