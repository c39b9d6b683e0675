/*
 * copies.c
 *		The copy that a table on the host has on a device: when it can be relied on,
 *		how it is made and given up, and how it makes room for others.
 *
 * GhNamedTable.copy is one word: a state and a number that goes up with every table
 * on the device.  A read notes the word, and a failure counts for the copy of that
 * word only: by then there may be a new one.
 *
 * Making a copy locks out those who write and those who make one, not those who read.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"

#include "gpuhash.h"
#include "service/service.h"
#include "session.h"
#include "table/registry.h"
#include "table/table.h"

/* A table that was not used for so long is idle. */
#define GH_IDLE_MS 1000

/* So long the memory of a table given up is waited for. */
#define GH_EVICT_WAIT_MS 50

/* -------------------------------------------------------------------- state */

uint64
gh_copy_word_of(GhNamedTable *table)
{
	uint64		word = pg_atomic_read_u64(&table->copy);

	pg_read_barrier();
	return word;
}

bool
gh_copy_is_ready(GhNamedTable *table)
{
	return gh_copy_state(gh_copy_word_of(table)) == GH_COPY_READY;
}

void
gh_copy_set(GhNamedTable *table, GhCopyState state)
{
	pg_write_barrier();
	pg_atomic_write_u64(&table->copy, gh_copy_word(gh_copy_number(gh_copy_word_of(table)), state));
}

static void
note_failure(GhAccess *access, const GhError *error)
{
	GhNamedTable *table = access->table;

	pg_atomic_write_u64(&table->copy_tried, (uint64) GetCurrentTimestamp());
	access->left = *error;
}

void
gh_copy_failed(GhAccess *access, uint64 word, const GhError *error)
{
	/* some other reader may have found it out already, and a new one been made */
	if (pg_atomic_compare_exchange_u64(&access->table->copy, &word,
									   gh_copy_word(gh_copy_number(word), GH_COPY_UNSURE)))
		note_failure(access, error);
}

void
gh_copy_drop(GhAccess *access, const GhError *error)
{
	gh_device_close(access);
	strlcpy(access->table->reason, GH_REASON_FAILED, GH_REASON_SIZE);
	if (error != NULL)
		note_failure(access, error);
}

void
gh_copy_report(const GhAccess *access)
{
	const GhError *error = &access->left;

	if (error->status == GH_OK)
		return;
	if (gh_service_enabled())
		gh_service_count_fallback(gh_service_fallback_of(error));
	if (gh_fallback_setting == GH_FALLBACK_ERROR)
		gh_report_error(error, psprintf("use hash table \"%s\" on the GPU", access->info.name));
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("hash table \"%s\" continues on the CPU engine", access->info.name),
			 errdetail("The GPU failed: %s.", error->message)));
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
	return engine->asynchronous ? engine : NULL;
}

/* Where a chunk's keys and values are. */
typedef struct Chunk
{
	uint64		capacity;		/* keys */
	void	   *keys;
	void	   *values;
} Chunk;

static void
place_chunk(Chunk *chunk, int value_size, char *memory)
{
	/* a multiple of 8, so that values are aligned, too */
	chunk->capacity = GH_CHUNK_BYTES / (sizeof(uint64) + value_size) & ~UINT64CONST(7);
	chunk->keys = memory;
	chunk->values = value_size == 0 ? NULL : memory + chunk->capacity * sizeof(uint64);
}

/* Stores a chunk on the device.  Throws on cancel. */
static GhStatus
store_chunk(const GhTableInfo *info, GhTable *on_device, const Chunk *chunk, uint64 count,
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
	GhTable    *host = gh_host_of(access);
	GhTable    *on_device = gh_device_of(access, error);
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
	GhNamedTable *table = access->table;
	GhTable    *host = gh_host_of(access);
	const GhEngine *engine;
	GhTableStats stats;
	GhError		error = {0};
	GhStatus	status;

	if (!access->info.copy_due || host->engine->table_stats(host, &stats, &error) != GH_OK)
		return;
	pg_atomic_write_u64(&table->keys, stats.keys);
	engine = engine_for_copy(stats.keys);
	if (engine == NULL)
		return;

	gh_device_close(access);
	status = gh_device_open(access, engine, stats.keys, &error);
	if (status == GH_OK)
		status = fill_copy(access, chunk, &error);
	if (status == GH_OK)
	{
		table->reason[0] = '\0';
		gh_copy_set(table, GH_COPY_READY);
		return;
	}
	gh_device_close(access);
	pg_atomic_write_u64(&table->copy_tried, (uint64) GetCurrentTimestamp());
	gh_count_fallback(engine, &error);
}

void
gh_copy_make_if_due(const GhTableInfo *info)
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
	place_chunk(&chunk, info->value_size, gh_service_enabled() ? access.buffer : memory);
	/* where others are at work on it, the host answers at once */
	if (gh_access_try_now(&access, info, GH_TO_COPY))
	{
		make_copy(&access, &chunk);
		gh_access_end(&access);
	}
	else if (access.buffer != NULL)
		gh_service_return(access.buffer);
	if (memory != NULL)
		pfree(memory);
}

/* ----------------------------------------------------------------- eviction */

static int
compare_used(const void *a, const void *b)
{
	TimestampTz left = ((const GhTableInfo *) a)->used;
	TimestampTz right = ((const GhTableInfo *) b)->used;

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
	if (!access->info.on_host || !gh_copy_is_ready(access->table))
		return;
	*root = access->table->device_root;
	*bytes += gh_service_table_bytes(*root);
	gh_device_close(access);
	strlcpy(access->table->reason, "others needed the GPU's memory", GH_REASON_SIZE);
	pg_atomic_write_u64(&access->table->copy_tried, (uint64) GetCurrentTimestamp());
}

/* Gives up the copy if nobody uses the table.  Its root, or 0. */
static GhRef
evict(const GhTableInfo *info, uint64 *bytes)
{
	GhAccess	access = {0};
	GhRef		root = 0;
	bool		visit = info->database != MyDatabaseId;

	if (visit && !gh_access_visit(info->database))
		return 0;
	if (gh_access_try_now(&access, info, GH_TO_WRITE))
	{
		give_up_copy(&access, &root, bytes);
		gh_access_end(&access);
	}
	if (visit)
		gh_access_visited(info->database);
	return root;
}

/*
 * What the device tells of its free memory is not of this moment.  So what is given up
 * is counted: as much as was missing or, where nothing seemed to, as much as is wanted.
 */
bool
gh_named_tables_evict(int device, uint64 bytes)
{
	TimestampTz now = GetCurrentTimestamp();
	uint64		given_up = 0;
	uint64		missing;
	int			count;
	GhTableInfo *tables;

	/* a parallel worker's lock would not keep it from its leader's tables */
	if (!gh_service_enabled() || IsParallelWorker())
		return false;
	missing = free_memory(device);
	missing = missing < bytes ? bytes - missing : bytes;
	tables = gh_names_list(InvalidOid, &count);
	qsort(tables, count, sizeof(GhTableInfo), compare_used);
	for (int i = 0; i < count && given_up < missing; i++)
	{
		GhRef		root = 0;

		CHECK_FOR_INTERRUPTS();
		if (tables[i].device == device && tables[i].on_host &&
			TimestampDifferenceExceeds(tables[i].used, now, GH_IDLE_MS))
			root = evict(&tables[i], &given_up);
		/* its executor frees it, soon if it has nothing else to do */
		for (int ms = 0; root != 0 && ms < GH_EVICT_WAIT_MS && !gh_service_table_is_gone(root); ms++)
			pg_usleep(1000);
	}
	pfree(tables);
	return given_up >= missing;
}
