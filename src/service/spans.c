/*
 * spans.c
 *		Room for pages on the worker's device, which stay there from one request to the next (GhPageSpan).
 *
 * A span has an entry, like a table, and one executor makes it and frees it.  But requests on pipelines of
 * all executors name it, at the same time.  So what a span is, and how many requests in the engine name it,
 * is looked at and changed under a mutex of the worker's.
 *
 * Where memory lacks, any executor gives up the span that was used longest ago, of those that no request
 * names, and that no session holds because it is about to name it (GhTableEntry.holders).  Its entry becomes
 * LOST, as if its worker had gone, and so whoever has pages there finds out.  A session adds itself to the
 * holders and then sees that the entry is LIVE; an executor takes LIVE away and then sees that there are no
 * holders: so one of the two knows of the other.
 *
 * When there are no idle spans left, tables of joins that stay give up their memory likewise: those are freed
 * by their own executors.
 *
 * Called by threads.
 */
#include "postgres.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "service/threads.h"

/* Of the device's memory, or its limit, what spans may take: where resident_memory does not say it. */
#define GH_SPANS_SHARE(bytes) ((bytes) / 4 * 3)
/* Of the same, what is used before others have spans give up memory. */
#define GH_FULL_SHARE(bytes) ((bytes) / 16 * 15)

/* So long the memory of tables that other executors are to free is waited for. */
#define GH_TABLES_WAIT_MS 100

static pthread_mutex_t spans_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Whether there may be so many bytes more of spans.  Any process may ask. */
bool
gh_spans_may_grow(GhDevice *device, uint64 bytes)
{
	uint64		room = gh_memory_of_device(device);
	uint64		most = GH_SPANS_SHARE(room);
	int			setting = gh_resident_memory;

	if (setting >= 0)
		most = (uint64) setting * 1024 * 1024;
	/* what the device tells of its memory is of a moment ago, but others may use it, too */
	return device->info.memory_free >= bytes + (room - GH_FULL_SHARE(room)) &&
		pg_atomic_read_u64(&device->resident_used) + bytes <= most &&
		pg_atomic_read_u64(&device->memory_used) + bytes <= GH_FULL_SHARE(room);
}

GhStatus
gh_spans_create(const GhSlot *asked, GhWorkerTable *table, GhError *error)
{
	uint64		npages = asked->named;
	uint64		bytes;
	GhPageSpan *span = NULL;
	uint16	   *lines;
	GhHost		host;
	GhStatus	status;

	if (npages == 0 || npages > GH_SPAN_PAGES_MAX)
		return gh_error_set(error, GH_INVALID, "a span has no %llu pages", (unsigned long long) npages);
	bytes = npages * BLCKSZ;
	if (!gh_spans_may_grow(gh_worker.device, bytes))
		return gh_error_set(error, GH_LIMIT, "pages on the GPU have all the memory that they may take");
	lines = calloc(npages, sizeof(uint16));
	if (lines == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for the pages of a span");
	gh_executor_host(table, &host);
	table->generation = asked->table_generation;
	status = gh_executor_pass_point(GH_FAULT_POINT_SPAN_CREATE, error);
	if (status == GH_OK)
		status = gh_worker.engine->pipelines->span_create(&host, gh_worker.cuda_device, BLCKSZ, (uint32) npages,
														  &span, error);
	if (status != GH_OK)
	{
		free(lines);
		return status;
	}
	pg_atomic_fetch_add_u64(&gh_worker.device->resident_used, (int64) bytes);
	pthread_mutex_lock(&spans_mutex);
	table->span = span;
	table->span_lines = lines;
	table->naming = 0;
	pthread_mutex_unlock(&spans_mutex);
	return GH_OK;
}

/* What was a table's span, and is nobody's any more. */
typedef struct Freed
{
	GhPageSpan *span;
	uint16	   *lines;
} Freed;

/* Takes the span from its table.  Under the mutex. */
static Freed
take_span(GhWorkerTable *table)
{
	Freed		freed = {table->span, table->span_lines};

	table->span = NULL;
	table->span_lines = NULL;
	return freed;
}

static void
free_span(Freed freed)
{
	GhPageSpan *span = freed.span;

	free(freed.lines);
	if (span == NULL)
		return;
	pg_atomic_fetch_sub_u64(&gh_worker.device->resident_used, (int64) ((uint64) span->npages * span->page_bytes));
	gh_worker.engine->pipelines->span_destroy(span);
}

/* False: requests name it. */
bool
gh_spans_destroy(GhWorkerTable *table)
{
	Freed		freed = {NULL, NULL};
	bool		unnamed;

	pthread_mutex_lock(&spans_mutex);
	unnamed = table->naming == 0;
	if (unnamed)
		freed = take_span(table);
	pthread_mutex_unlock(&spans_mutex);
	free_span(freed);
	return unnamed;
}

/*
 * Whether the entry is one of the database's, in this worker.  It may be LOST for the moment in which
 * somebody who would give it up sees that it is held.
 */
static bool
may_be_named(const GhSlot *asked, uint32 number, uint64 generation)
{
	const GhTableEntry *entry = gh_table_entry_at(number);
	uint64		word = pg_atomic_read_u64((pg_atomic_uint64 *) &entry->word);

	return (word == gh_slot_word(generation, GH_TABLE_LIVE) || word == gh_slot_word(generation, GH_TABLE_LOST)) &&
		entry->device == gh_worker.device_index && entry->procno == -1 && entry->database == asked->database;
}

/* The entry of a span that the slot's session may name; NULL: there is none.  Under the mutex. */
static GhWorkerTable *
find_span(const GhSlot *asked, GhRef root)
{
	uint32		number;
	uint64		generation;
	GhWorkerTable *table;

	if (root == 0)
		return NULL;
	gh_root_split(root, &number, &generation);
	if (!may_be_named(asked, number, generation))
		return NULL;
	table = &gh_worker.tables[number];
	return table->generation == generation && table->span != NULL ? table : NULL;
}

const char *
gh_spans_take(const GhSlot *asked, GhRunning *running, GhPipelineRequest *request)
{
	uint32		count = asked->brought.nspans;
	uint64		now = gh_monotonic_ns();
	const char *why = NULL;

	running->nspans = 0;
	if (count > GH_REQUEST_SPANS_MAX)
		return "a request names too many spans";
	if (count == 0)
		return NULL;
	pthread_mutex_lock(&spans_mutex);
	for (uint32 i = 0; i < count && why == NULL; i++)
	{
		GhWorkerTable *table = find_span(asked, asked->spans[i]);

		if (table == NULL)
		{
			why = "a request names a span that is gone";
			break;
		}
		table->naming++;
		pg_atomic_write_u64(&gh_table_entry_at(table->number)->used_ns, now);
		running->spans[i] = table->span;
		running->span_tables[i] = table->number;
		running->nspans++;
	}
	pthread_mutex_unlock(&spans_mutex);
	request->nspans = running->nspans;
	request->spans = running->spans;
	return why;
}

void
gh_spans_note_lines(const GhRunning *running)
{
	for (uint32 i = 0; running->nspans > 0 && i < running->nlisted; i++)
	{
		const GhPageRef *page = &running->pages[i];

		if (page->span > 0 && page->page != NULL)
			gh_worker.tables[running->span_tables[page->span - 1]].span_lines[page->place] = (uint16) page->lines;
	}
}

void
gh_spans_drop(GhRunning *running)
{
	if (running->nspans == 0)
		return;
	pthread_mutex_lock(&spans_mutex);
	for (uint32 i = 0; i < running->nspans; i++)
	{
		uint32		number = running->span_tables[i];

		gh_worker.tables[number].naming--;
		/* it may have to be freed */
		if ((GhTableState) gh_slot_state(pg_atomic_read_u64(&gh_table_entry_at(number)->word)) == GH_TABLE_DYING)
			gh_executor_note_dying(number);
	}
	running->nspans = 0;
	pthread_mutex_unlock(&spans_mutex);
}

/* The span that was used longest ago of those that nobody names; NULL: there is none.  Under the mutex. */
static GhWorkerTable *
find_idle(void)
{
	GhWorkerTable *oldest = NULL;
	uint64		oldest_ns = 0;

	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
	{
		GhWorkerTable *table = &gh_worker.tables[i];
		GhTableEntry *entry = gh_table_entry_at(i);
		uint64		used_ns = pg_atomic_read_u64(&entry->used_ns);

		if (table->span == NULL || table->naming > 0 || pg_atomic_read_u32(&entry->holders) > 0 ||
			pg_atomic_read_u64(&entry->word) != gh_slot_word(table->generation, GH_TABLE_LIVE))
			continue;
		if (oldest == NULL || used_ns < oldest_ns)
		{
			oldest = table;
			oldest_ns = used_ns;
		}
	}
	return oldest;
}

/* Gives up a span that nobody names; false: there is none. */
static bool
give_up_one(void)
{
	Freed		freed = {NULL, NULL};
	GhWorkerTable *table;

	pthread_mutex_lock(&spans_mutex);
	while (freed.span == NULL && (table = find_idle()) != NULL)
		if (gh_entry_give_up(table->number, table->generation, GH_TABLE_LOST))
			freed = take_span(table);
	pthread_mutex_unlock(&spans_mutex);
	free_span(freed);
	return freed.span != NULL;
}

/* A table that stays and that nobody holds. */
static bool
is_idle_table(uint32 number)
{
	GhTableEntry *entry = gh_table_entry_at(number);

	return gh_entry_stays(entry, gh_worker.device_index) && pg_atomic_read_u32(&entry->holders) == 0;
}

static uint64
bytes_of_idle_tables(void)
{
	uint64		bytes = 0;

	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
		if (is_idle_table(i))
			bytes += pg_atomic_read_u64(&gh_table_entry_at(i)->bytes);
	return bytes;
}

/*
 * Gives up tables that stay, those that were used longest ago first, until so many bytes will be free: their
 * executors free them when they get to it.  Whether there are some of other executors than that one, which is
 * waiting for memory.
 */
static bool
give_up_tables(uint64 bytes, uint32 executor)
{
	uint64		given_up = 0;
	bool		of_others = false;
	int			oldest;

	do
	{
		oldest = -1;
		for (uint32 i = 0; i < GH_TABLES_MAX; i++)
			if (is_idle_table(i) &&
				(oldest < 0 || pg_atomic_read_u64(&gh_table_entry_at(i)->used_ns) <
				 pg_atomic_read_u64(&gh_table_entry_at((uint32) oldest)->used_ns)))
				oldest = (int) i;
		if (oldest >= 0)
		{
			GhTableEntry *entry = gh_table_entry_at((uint32) oldest);

			given_up += pg_atomic_read_u64(&entry->bytes);
			(void) gh_entry_give_up((uint32) oldest, gh_slot_generation(pg_atomic_read_u64(&entry->word)), GH_TABLE_DYING);
			gh_executor_note_dying((uint32) oldest);
			of_others |= (uint32) oldest % GH_EXECUTORS != executor;
		}
	} while (oldest >= 0 && given_up < bytes);
	return of_others;
}

/* Until no more than that is used, but not for long. */
static void
wait_for_room(uint64 bytes)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < GH_TABLES_WAIT_MS && pg_atomic_read_u64(&gh_worker.device->memory_used) > bytes; i++)
		(void) nanosleep(&ms, NULL);
}

void
gh_spans_make_room(uint64 bytes, uint32 executor)
{
	GhDevice   *device = gh_worker.device;
	uint64		full = GH_FULL_SHARE(gh_memory_of_device(device));
	uint64		resident;

	if (pg_atomic_read_u64(&device->memory_used) + bytes <= full)
		return;
	/* what would not fit without them either */
	resident = pg_atomic_read_u64(&device->resident_used) + bytes_of_idle_tables();
	if (pg_atomic_read_u64(&device->memory_used) - resident + bytes > full)
		return;
	while (pg_atomic_read_u64(&device->memory_used) + bytes > full)
		if (pg_atomic_read_u64(&device->resident_used) == 0 || !give_up_one())
		{
			if (give_up_tables(pg_atomic_read_u64(&device->memory_used) + bytes - full, executor))
				wait_for_room(full - bytes);
			return;
		}
}
