/*
 * copies.c
 *		The copy that a table on the host has on a device: when it can be relied on,
 *		and how it is made and given up.
 *
 * GhStored.copy is one word: a state and a number that goes up with every table
 * on the device.  A read notes the word, and a failure counts for the copy of that
 * word only: by then there may be a new one.
 *
 * Making a copy locks out those who write and those who make one, not those who read.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "gpuhash.h"
#include "service/placement.h"
#include "service/service.h"
#include "store/inside.h"

/* -------------------------------------------------------------------- state */

uint64
gh_store_copy_word(GhStored *stored)
{
	uint64		word = pg_atomic_read_u64(&stored->copy);

	pg_read_barrier();
	return word;
}

bool
gh_store_copy_is_ready(GhStored *stored)
{
	return gh_store_word_state(gh_store_copy_word(stored)) == GH_COPY_READY;
}

void
gh_store_copy_set(GhStored *stored, GhCopyState state)
{
	uint64		number = gh_store_word_number(gh_store_copy_word(stored));

	pg_write_barrier();
	pg_atomic_write_u64(&stored->copy, gh_store_make_word(number, state));
}

static void
note_failure(GhAccess *access, const GhError *error)
{
	GhStored   *stored = access->stored;

	pg_atomic_write_u64(&stored->copy_tried, (uint64) GetCurrentTimestamp());
	access->left = *error;
}

void
gh_store_copy_failed(GhAccess *access, uint64 word, const GhError *error)
{
	if (!access->info.on_host && error->status != GH_DEVICE_ERROR)
		return;
	/* some other reader may have found it out already, and a new one been made */
	if (pg_atomic_compare_exchange_u64(&access->stored->copy, &word,
									   gh_store_make_word(gh_store_word_number(word), GH_COPY_UNSURE)))
		note_failure(access, error);
}

void
gh_store_copy_drop(GhAccess *access, const GhError *error)
{
	gh_store_device_close(access);
	strlcpy(access->stored->reason, GH_REASON_FAILED, GH_REASON_SIZE);
	if (error != NULL)
		note_failure(access, error);
}

GhTable *
gh_store_ready_device(GhAccess *access, uint64 *word, GhError *error)
{
	GhTable    *on_device;

	error->status = GH_DEVICE_ERROR;
	*word = gh_store_copy_word(access->stored);
	if (gh_store_word_state(*word) != GH_COPY_READY)
		return NULL;
	on_device = gh_store_device(access, error);
	/* a new table may have come between the looks at word and root */
	pg_read_barrier();
	if (gh_store_copy_word(access->stored) != *word)
		return NULL;
	if (on_device == NULL)
		gh_store_copy_failed(access, *word, error);
	return on_device;
}

/* ------------------------------------------------------------------- making */

/* The engine that a copy of so many keys goes to, or NULL. */
static const GhEngine *
engine_for_copy(uint64 keys)
{
	const GhEngine *engine;
	const char *reason;
	bool		down;

	if (gh_engine_setting == GH_ENGINE_CPU)
		return NULL;
	/* asked first: the choice below complains of a GPU that is missing, or counts it */
	if (gh_service_enabled() && !gh_service_ready(&reason, &down))
		return NULL;
	if (!gh_service_enabled() && gh_engine_setting == GH_ENGINE_CUDA &&
		gh_cuda_engine_open(false, NULL) == NULL)
		return NULL;
	engine = gh_choose_engine((double) keys, &reason);
	return engine->on_device ? engine : NULL;
}

/* Where a chunk's keys and values are. */
typedef struct Chunk
{
	uint64		capacity;		/* keys */
	void	   *keys;
	void	   *values;
} Chunk;

static void
place_chunk(Chunk *chunk, const GhStoredInfo *info, char *memory)
{
	/* a multiple of 8, so that values are aligned, too */
	chunk->capacity = GH_CHUNK_BYTES / (info->key_size + info->value_size) & ~UINT64CONST(7);
	chunk->keys = memory;
	chunk->values = info->value_size == 0 ? NULL : memory + chunk->capacity * info->key_size;
}

/* Stores a chunk on the device.  Throws on cancel. */
static GhStatus
store_chunk(const GhStoredInfo *info, GhTable *on_device, const Chunk *chunk, uint64 count,
			GhError *error)
{
	GhRequest	request = {0};
	GhStatus	status;

	request.op = info->multi ? GH_ADD : GH_INSERT;
	request.count = count;
	request.keys = chunk->keys;
	request.values_in = chunk->values;
	status = gh_run_request(on_device, &request);
	if (status != GH_OK)
		*error = request.error;
	return status;
}

/* Fills the device's table, new and empty, with all that the host's has. */
static GhStatus
fill_copy(GhAccess *access, const Chunk *chunk, GhError *error)
{
	GhTable    *host = gh_store_host(access, error);
	GhTable    *on_device = host == NULL ? NULL : gh_store_device(access, error);
	GhCursor	cursor = {0};

	if (on_device == NULL)
		return error->status;
	while (!cursor.finished)
	{
		uint64		count = 0;
		GhStatus	status;

		CHECK_FOR_INTERRUPTS();
		status = host->engine->table_export(host, &cursor, chunk->capacity, chunk->keys,
											chunk->values, &count, error);
		if (status == GH_STOPPED)
			gh_serve_interrupt();
		else if (status != GH_OK)
			return status;
		if (count > 0 &&
			(status = store_chunk(&access->info, on_device, chunk, count, error)) != GH_OK)
			return status;
	}
	return GH_OK;
}

/* Under GH_TO_COPY: whether there is still something to do is looked at again. */
static void
make_copy(GhAccess *access, const Chunk *chunk)
{
	GhStored   *stored = access->stored;
	const GhEngine *engine;
	GhTable    *host;
	GhTableStats stats;
	GhError		error = {0};
	GhStatus	status;

	if (!access->info.copy_due)
		return;
	/* should it fail, so will the read, which says why */
	host = gh_store_host(access, &error);
	if (host == NULL || host->engine->table_stats(host, &stats, &error) != GH_OK)
		return;
	pg_atomic_write_u64(&stored->keys, stats.keys);
	engine = engine_for_copy(stats.keys);
	if (engine == NULL)
		return;

	gh_store_device_close(access);
	status = gh_store_device_open(access, engine, stats.keys, &error);
	if (status == GH_OK)
		status = fill_copy(access, chunk, &error);
	if (status == GH_OK)
	{
		stored->reason[0] = '\0';
		gh_store_copy_set(stored, GH_COPY_READY);
		return;
	}
	gh_store_device_close(access);
	pg_atomic_write_u64(&stored->copy_tried, (uint64) GetCurrentTimestamp());
	gh_count_fallback(engine, &error);
}

void
gh_store_copy_make_if_due(const GhStoredInfo *info)
{
	GhAccess	access = {0};
	Chunk		chunk;
	char	   *memory = NULL;

	if (!info->copy_due || engine_for_copy(info->keys) == NULL)
		return;
	if (gh_service_enabled())
	{
		access.buffer = gh_service_borrow(CurrentMemoryContext, GH_CHUNK_BYTES);
		access.buffer_bytes = GH_CHUNK_BYTES;
	}
	else
		memory = palloc(GH_CHUNK_BYTES);
	place_chunk(&chunk, info, gh_service_enabled() ? access.buffer : memory);
	/* where others are at work on it, the host answers at once */
	if (gh_store_lock_now(&access, info, GH_TO_COPY))
	{
		make_copy(&access, &chunk);
		gh_store_unlock(&access);
	}
	else if (access.buffer != NULL)
		gh_service_return(access.buffer);
	if (memory != NULL)
		pfree(memory);
}

