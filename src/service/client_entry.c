/*
 * client_entry.c
 *		Entries: what a session has on a worker's device, by name; and what requests on pipelines and marks
 *		have in common.
 *
 * An entry has a number, which says the executor that all its requests go to, and a generation.  Other
 * processes know it by its root, which is both.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "service/client.h"
#include "service/placement.h"

/* Of this process, not shared: they go with it. */
static GhEntryHandle *own_entries = NULL;

/* ------------------------------------------------------------------ names */

static bool
entry_move(GhTableEntry *entry, uint64 generation, GhTableState from, GhTableState to)
{
	uint64		word = gh_slot_word(generation, from);

	return pg_atomic_compare_exchange_u64(&entry->word, &word,
										  gh_slot_word(generation + (to == GH_TABLE_FREE ? 1 : 0), to));
}

bool
gh_client_entry_take(uint32 device, int procno, GhEntryKind kind, int executor, uint32 *table,
					 uint64 *generation)
{
	bool		found = false;

	LWLockAcquire(&gh_service->lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < GH_TABLES_MAX && !found; i++)
	{
		uint32		number = (gh_service->table_hint + i) % GH_TABLES_MAX;
		GhTableEntry *entry = gh_table_entry_at(number);
		uint64		word = pg_atomic_read_u64(&entry->word);

		if ((GhTableState) gh_slot_state(word) != GH_TABLE_FREE ||
			(executor >= 0 && number % GH_EXECUTORS != (uint32) executor))
			continue;
		entry->device = device;
		entry->kind = kind;
		entry->procno = procno;
		entry->database = MyDatabaseId;
		entry->stays = false;
		pg_atomic_write_u64(&entry->bytes, 0);
		pg_atomic_write_u64(&entry->used_ns, gh_monotonic_ns());
		*table = number;
		*generation = gh_slot_generation(word);
		found = entry_move(entry, *generation, GH_TABLE_FREE, GH_TABLE_LIVE);
		gh_service->table_hint = number + 1;
	}
	LWLockRelease(&gh_service->lock);
	return found;
}

void
gh_client_entry_drop(uint32 table, uint64 generation)
{
	GhTableEntry *entry = gh_table_entry_at(table);
	GhRing	   *ring = gh_client_ring(entry->device, table);

	if (entry_move(entry, generation, GH_TABLE_LIVE, GH_TABLE_DYING))
	{
		pg_atomic_write_u32(&ring->dying, 1);
		gh_client_wake(entry->device, ring);
	}
	else
		(void) entry_move(entry, generation, GH_TABLE_LOST, GH_TABLE_FREE);
}

bool
gh_client_entry_lives(uint32 table, uint64 generation)
{
	GhTableEntry *entry = gh_table_entry_at(table);

	return pg_atomic_read_u64(&entry->word) == gh_slot_word(generation, GH_TABLE_LIVE) &&
		gh_device_is_ready(&gh_service->device[entry->device]);
}

void
gh_service_table_release(GhRef root)
{
	uint32		table;
	uint64		generation;

	if (root == 0)
		return;
	gh_root_split(root, &table, &generation);
	gh_client_entry_drop(table, generation);
}

/* The entry that a root names, or named. */
static GhTableEntry *
entry_of(GhRef root, uint64 *generation)
{
	uint32		table;

	gh_root_split(root, &table, generation);
	return gh_table_entry_at(table);
}

uint64
gh_service_table_bytes(GhRef root)
{
	uint64		generation;

	return pg_atomic_read_u64(&entry_of(root, &generation)->bytes);
}

bool
gh_service_table_is_gone(GhRef root)
{
	uint64		generation;
	GhTableEntry *entry = entry_of(root, &generation);

	return gh_slot_generation(pg_atomic_read_u64(&entry->word)) != generation;
}

int
gh_client_root_device(GhRef root)
{
	uint64		generation;

	return (int) entry_of(root, &generation)->device;
}

int
gh_client_root_executor(GhRef root)
{
	uint32		table;
	uint64		generation;

	gh_root_split(root, &table, &generation);
	return (int) (table % GH_EXECUTORS);
}

bool
gh_client_entry_find(GhRef root, uint32 *table, uint64 *generation)
{
	GhTableEntry *entry = entry_of(root, generation);

	gh_root_split(root, table, generation);
	return root != 0 && pg_atomic_read_u64(&entry->word) == gh_slot_word(*generation, GH_TABLE_LIVE) &&
		entry->procno == -1 && entry->database == MyDatabaseId;
}

/* ---------------------------------------------------------------- handles */

void *
gh_client_alloc(Size bytes, GhError *error)
{
	void	   *memory = MemoryContextAllocExtended(TopMemoryContext, bytes, MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);

	if (memory == NULL)
		(void) gh_error_set(error, GH_NO_MEMORY, "out of memory");
	return memory;
}

static int
device_number(const GhEntryHandle *handle)
{
	return gh_service_device_number((int) gh_table_entry_at(handle->table)->device);
}

bool
gh_entry_lives(const GhEntryHandle *handle)
{
	return gh_client_entry_lives(handle->table, handle->generation);
}

GhStatus
gh_entry_lost(const GhEntryHandle *handle, GhError *error)
{
	return gh_error_set(error, GH_DEVICE_ERROR, "what was made on it was lost with the worker of GPU %d",
						device_number(handle));
}

GhStatus
gh_entry_wrong_answer(const GhEntryHandle *handle, GhError *error)
{
	return gh_error_set(error, GH_DEVICE_ERROR, "the worker of GPU %d tells of more than was asked for",
						device_number(handle));
}

GhRef
gh_entry_root(const GhEntryHandle *handle)
{
	return gh_root_of(handle->table, handle->generation);
}

GhStatus
gh_entry_open(GhEntryHandle *handle, int device, GhEntryKind kind, int executor, GhError *error)
{
	if (gh_device_at(device) == NULL || !gh_device_is_ready(gh_device_at(device)))
		return gh_device_unavailable(device, error);
	gh_client_join();
	if (!gh_client_entry_take((uint32) device, handle->shared ? -1 : gh_my_procno(), kind, executor, &handle->table,
							  &handle->generation))
		return gh_error_set(error, GH_TOO_MANY, "there are too many tables on GPUs already");
	if (handle->shared)
		return GH_OK;
	handle->next = own_entries;
	own_entries = handle;
	return GH_OK;
}

/* Has the worker make what the block in a buffer tells. */
static GhStatus
request_create(GhEntryHandle *handle, GhServiceOp op, const void *buffer, Size bytes, GhError *error)
{
	uint32		number;
	GhSlot	   *slot;
	GhStatus	status;

	if (!gh_entry_slot(handle, buffer, op, &number))
		return gh_error_set(error, GH_INVALID, "the buffer of a plan is not this session's");
	slot = gh_slot_at(number);
	slot->block = gh_buffer_at(number);
	slot->count = bytes;
	(void) gh_client_slot_submit(number);
	status = gh_client_slot_wait(number, &handle->host, error);
	if (status != GH_OK)
		return status;
	if (slot->status != GH_OK)
		*error = slot->error;
	return slot->status;
}

GhStatus
gh_entry_create(GhEntryHandle *handle, int device, GhEntryKind kind, int executor, GhServiceOp op, const void *buffer,
				Size bytes, GhError *error)
{
	GhStatus	status = gh_entry_open(handle, device, kind, executor, error);

	if (status != GH_OK)
		return status;
	status = request_create(handle, op, buffer, bytes, error);
	if (status != GH_OK)
		gh_entry_drop(handle);
	return status;
}

GhStatus
gh_entry_attach(GhEntryHandle *handle, GhRef root, GhEntryKind kind, GhError *error)
{
	if (!gh_client_entry_find(root, &handle->table, &handle->generation) ||
		gh_table_entry_at(handle->table)->kind != kind)
		return gh_error_set(error, GH_DEVICE_ERROR, "what is to be attached on a GPU is gone");
	gh_client_join();
	handle->shared = true;
	return GH_OK;
}

void
gh_entry_forget(GhEntryHandle *handle)
{
	for (GhEntryHandle **at = &own_entries; *at != NULL; at = &(*at)->next)
		if (*at == handle)
		{
			*at = handle->next;
			return;
		}
}

void
gh_entry_drop(GhEntryHandle *handle)
{
	gh_client_entry_drop(handle->table, handle->generation);
	gh_entry_forget(handle);
}

void
gh_entry_close(GhEntryHandle *handle)
{
	if (!handle->shared)
		gh_entry_drop(handle);
}

void
gh_client_drop_entries(void)
{
	while (own_entries != NULL)
		gh_entry_drop(own_entries);
}

/* --------------------------------------------------------------- requests */

bool
gh_entry_slot(const GhEntryHandle *handle, const void *address, GhServiceOp op, uint32 *number)
{
	GhSlot	   *slot;

	if (address == NULL || !gh_buffer_slot(address, number) ||
		gh_slot_state(pg_atomic_read_u64(&gh_slot_at(*number)->word)) != GH_SLOT_OWNED)
		return false;
	slot = gh_slot_at(*number);
	slot->op = op;
	slot->device = gh_table_entry_at(handle->table)->device;
	slot->table = handle->table;
	slot->table_generation = handle->generation;
	return true;
}

void
gh_entry_add_times(GhEntryHandle *handle, const GhSlot *slot)
{
	handle->queue_ns += slot->queue_ns;
	handle->run_ns += slot->run_ns;
}

GhStatus
gh_entry_control(GhEntryHandle *handle, GhServiceOp op, GhRef named, uint32 *number, GhError *error)
{
	GhStatus	status;

	if (!gh_entry_lives(handle))
		return gh_entry_lost(handle, error);
	status = gh_client_control_begin((int) gh_table_entry_at(handle->table)->device, op, handle->table,
									 handle->generation, &handle->host, number, error);
	if (status != GH_OK)
		return status;
	gh_slot_at(*number)->named = named;
	status = gh_client_control(*number, &handle->host, error);
	if (status == GH_OK)
		gh_entry_add_times(handle, gh_slot_at(*number));
	else
		gh_slot_leave(*number);
	return status;
}

/* ---------------------------------------------------------------- results */

/* Whether the buffer still has the request of a call that was stopped. */
static bool
results_pending(const GhEntryHandle *handle, uint32 number)
{
	return handle->results_generation != 0 && handle->results_slot == number &&
		gh_slot_generation(pg_atomic_read_u64(&gh_slot_at(number)->word)) == handle->results_generation;
}

static GhStatus
begin_results(GhEntryHandle *handle, GhServiceOp op, const GhCursor *cursor, size_t capacity, void *buffer,
			  uint32 *number, GhError *error)
{
	GhSlot	   *slot;

	if (gh_buffer_slot(buffer, number) && results_pending(handle, *number))
		return GH_OK;
	if (!gh_entry_lives(handle))
		return gh_entry_lost(handle, error);
	if (!gh_entry_slot(handle, buffer, op, number))
		return gh_error_set(error, GH_INVALID, "results must go to an idle buffer of the transfer area");
	slot = gh_slot_at(*number);
	slot->block = buffer;
	slot->count = capacity;
	slot->cursor = *cursor;
	handle->results_slot = *number;
	handle->results_generation = gh_client_slot_submit(*number);
	return GH_OK;
}

GhStatus
gh_entry_results(GhEntryHandle *handle, GhServiceOp op, GhCursor *cursor, size_t capacity, void *buffer,
				 size_t *bytes, GhError *error)
{
	uint32		number;
	GhSlot	   *slot;
	GhStatus	status;

	*bytes = 0;
	status = begin_results(handle, op, cursor, capacity, buffer, &number, error);
	if (status == GH_OK)
		status = gh_client_slot_wait(number, &handle->host, error);
	if (status == GH_STOPPED)
		return status;
	handle->results_generation = 0;
	if (status != GH_OK)
		return status;
	slot = gh_slot_at(number);
	gh_entry_add_times(handle, slot);
	status = slot->status;
	*cursor = slot->cursor;
	*bytes = slot->bytes;
	if (status != GH_OK)
		*error = slot->error;
	else if (*bytes > capacity)
		status = gh_entry_wrong_answer(handle, error);
	gh_slot_reuse(number);
	return status;
}
