/*
 * stats.c
 *		What the service tells of itself: devices, sums, and who is doing what.
 *
 * Numbers are read without locks while others change them: each is right, though
 * two of them may be of slightly different moments.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "catalog/pg_authid.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "result_rows.h"
#include "service/client.h"
#include "service/shared.h"
#include "service/stats.h"

PG_FUNCTION_INFO_V1(gpuhash_service_stat);
PG_FUNCTION_INFO_V1(gpuhash_service_activity);
PG_FUNCTION_INFO_V1(gpuhash_stat_reset);


/* Columns of gpuhash_service_stat, in order; after them the fallbacks by reason, and what was offloaded. */
enum
{
	STAT_REQUESTS,
	STAT_BATCHES,
	STAT_KEYS,
	STAT_PAGE_BATCHES,
	STAT_PAGES,
	STAT_PAGES_DIRECT,
	STAT_PAGES_RESIDENT,
	STAT_PAGE_BYTES,
	STAT_BYTES_TO,
	STAT_BYTES_FROM,
	STAT_QUEUE_TIME,
	STAT_DEVICE_TIME,
	STAT_ERRORS,
	STAT_ABANDONED,
	STAT_BUFFERS,
	STAT_BUFFERS_FREE,
	STAT_TABLES,
	STAT_SCANS,
	STAT_FALLBACKS,
	STAT_USES = STAT_FALLBACKS + GH_FALLBACKS,
	STAT_RESET = STAT_USES + GH_USES,
	STAT_COLUMNS
};

/* Columns of gpuhash_service_activity, in order. */
enum
{
	ACTIVITY_PID,
	ACTIVITY_DATABASE,
	ACTIVITY_ROLE,
	ACTIVITY_DEVICE,
	ACTIVITY_STATE,
	ACTIVITY_OPERATION,
	ACTIVITY_KEYS,
	ACTIVITY_PAGES,
	ACTIVITY_TIME,
	ACTIVITY_COLUMNS
};

/* Entries of a kind, there or about to be freed; device -1: of all of them. */
static int64
count_entries(int device, GhEntryKind kind)
{
	int64		n = 0;

	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
	{
		GhTableEntry *entry = gh_table_entry_at(i);
		GhTableState state = (GhTableState) gh_slot_state(pg_atomic_read_u64(&entry->word));

		if (state != GH_TABLE_FREE && entry->kind == kind && (device < 0 || entry->device == (uint32) device))
			n++;
	}
	return n;
}

/* Bytes of a device's tables that outlive the queries that made them. */
static uint64
bytes_that_stay(int device)
{
	uint64		bytes = 0;

	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
	{
		GhTableEntry *entry = gh_table_entry_at(i);

		if (gh_entry_stays(entry, device))
			bytes += pg_atomic_read_u64(&entry->bytes);
	}
	return bytes;
}

/* -------------------------------------------------------------- devices */

static const char *
device_status(GhDevice *device)
{
	switch ((GhDeviceState) pg_atomic_read_u32(&device->state))
	{
		case GH_DEVICE_READY:
			return "ready";
		case GH_DEVICE_STARTING:
			return "its worker is starting";
		default:
			return device->message[0] != '\0' ? device->message : "its worker ended";
	}
}

/* How the device comes by pages of the server's buffers. */
static const char *
buffers_status(GhDevice *device)
{
	switch ((GhPoolState) pg_atomic_read_u32(&device->pool))
	{
		case GH_POOL_READABLE:
			return "direct";
		case GH_POOL_OFF:
			return "gpuhash.register_buffers is off";
		case GH_POOL_REFUSED:
			return device->pool_message;
		default:
			return "being registered";
	}
}

static void
emit_device(ReturnSetInfo *result, int number)
{
	GhDevice   *device = &gh_service->device[number];
	uint64		limit = pg_atomic_read_u64(&device->memory_limit);
	uint64		used = pg_atomic_read_u64(&device->memory_used);
	bool		ready = pg_atomic_read_u32(&device->state) == GH_DEVICE_READY;
	Datum		row[GH_DEVICE_COLUMNS] = {0};
	bool		nulls[GH_DEVICE_COLUMNS] = {false};

	row[GH_DEVICE_COLUMN_ENGINE] = CStringGetTextDatum("cuda");
	row[GH_DEVICE_COLUMN_NUMBER] = Int32GetDatum(device->number);
	row[GH_DEVICE_COLUMN_BUFFERS] = CStringGetTextDatum(buffers_status(device));
	row[GH_DEVICE_COLUMN_STATUS] = CStringGetTextDatum(device_status(device));
	row[GH_DEVICE_COLUMN_TABLES] = Int64GetDatum(count_entries(number, GH_ENTRY_TABLE));
	nulls[GH_DEVICE_COLUMN_NAME] = nulls[GH_DEVICE_COLUMN_MEMORY_TOTAL] = nulls[GH_DEVICE_COLUMN_MEMORY_FREE] =
		nulls[GH_DEVICE_COLUMN_TRANSFER] = nulls[GH_DEVICE_COLUMN_BUFFERS] = nulls[GH_DEVICE_COLUMN_WORKER_PID] = !ready;
	if (ready)
	{
		row[GH_DEVICE_COLUMN_NAME] = CStringGetTextDatum(device->info.name);
		row[GH_DEVICE_COLUMN_MEMORY_TOTAL] = Int64GetDatum((int64) device->info.memory_total);
		row[GH_DEVICE_COLUMN_MEMORY_FREE] = Int64GetDatum((int64) device->info.memory_free);
		row[GH_DEVICE_COLUMN_TRANSFER] = CStringGetTextDatum(device->registered ? "direct" : device->message);
		row[GH_DEVICE_COLUMN_WORKER_PID] = Int32GetDatum(device->pid);
	}
	row[GH_DEVICE_COLUMN_MEMORY_LIMIT] = Int64GetDatum((int64) limit);
	nulls[GH_DEVICE_COLUMN_MEMORY_LIMIT] = limit == PG_UINT64_MAX;
	row[GH_DEVICE_COLUMN_MEMORY_USED] = Int64GetDatum((int64) used);
	row[GH_DEVICE_COLUMN_MEMORY_RESIDENT] = Int64GetDatum((int64) (pg_atomic_read_u64(&device->resident_used) +
																   bytes_that_stay(number)));
	row[GH_DEVICE_COLUMN_WORKER_STARTS] = Int64GetDatum((int64) pg_atomic_read_u64(&device->started));
	row[GH_DEVICE_COLUMN_WORKER_CPU] = Float8GetDatum((double) pg_atomic_read_u64(&device->cpu_ns) / GH_NS_PER_MS);
	tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
}

void
gh_service_emit_devices(ReturnSetInfo *result)
{
	for (uint32 i = 0; i < gh_service->devices; i++)
		emit_device(result, (int) i);
}

/* ------------------------------------------------------------------ sums */

static uint64
sum_of(GhCounter counter)
{
	uint64		sum = 0;

	for (uint32 i = 0; i < gh_service->devices; i++)
		sum += pg_atomic_read_u64(&gh_service->device[i].counter[counter]);
	return sum;
}

static int64
count_free_buffers(void)
{
	int64		n = 0;

	for (uint32 i = 0; i < gh_service->units; i++)
		if (pg_atomic_read_u32(gh_unit_at(i)) == 0)
			n++;
	return n;
}

/* One row; none in a session without the service. */
Datum
gpuhash_service_stat(PG_FUNCTION_ARGS)
{
	static const int counters[] = {
		[STAT_REQUESTS] = GH_COUNT_REQUESTS,
		[STAT_BATCHES] = GH_COUNT_BATCHES,
		[STAT_KEYS] = GH_COUNT_KEYS,
		[STAT_PAGE_BATCHES] = GH_COUNT_PAGE_BATCHES,
		[STAT_PAGES] = GH_COUNT_PAGES,
		[STAT_PAGES_DIRECT] = GH_COUNT_PAGES_DIRECT,
		[STAT_PAGES_RESIDENT] = GH_COUNT_PAGES_RESIDENT,
		[STAT_PAGE_BYTES] = GH_COUNT_PAGE_BYTES,
		[STAT_BYTES_TO] = GH_COUNT_BYTES_TO,
		[STAT_BYTES_FROM] = GH_COUNT_BYTES_FROM,
		[STAT_QUEUE_TIME] = GH_COUNT_QUEUE_NS,
		[STAT_DEVICE_TIME] = GH_COUNT_RUN_NS,
		[STAT_ERRORS] = GH_COUNT_ERRORS,
		[STAT_ABANDONED] = GH_COUNT_ABANDONED,
	};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		row[STAT_COLUMNS];
	bool		nulls[STAT_COLUMNS] = {false};
	uint64		reset;

	gh_rows_begin(fcinfo, "llllllllllffllllllllllllllllllz");
	if (!gh_service_enabled())
		return (Datum) 0;
	for (int i = STAT_REQUESTS; i <= STAT_ABANDONED; i++)
	{
		uint64		sum = sum_of((GhCounter) counters[i]);

		row[i] = i == STAT_QUEUE_TIME || i == STAT_DEVICE_TIME ?
			Float8GetDatum((double) sum / GH_NS_PER_MS) : Int64GetDatum((int64) sum);
	}
	row[STAT_BUFFERS] = Int64GetDatum((int64) gh_service->units);
	row[STAT_BUFFERS_FREE] = Int64GetDatum(count_free_buffers());
	row[STAT_TABLES] = Int64GetDatum(count_entries(-1, GH_ENTRY_TABLE));
	row[STAT_SCANS] = Int64GetDatum(count_entries(-1, GH_ENTRY_PIPELINE));
	for (int i = 0; i < GH_FALLBACKS; i++)
		row[STAT_FALLBACKS + i] = Int64GetDatum((int64) pg_atomic_read_u64(&gh_service->fallbacks[i]));
	for (int i = 0; i < GH_USES; i++)
		row[STAT_USES + i] = Int64GetDatum((int64) pg_atomic_read_u64(&gh_service->uses[i]));
	reset = pg_atomic_read_u64(&gh_service->reset_at);
	row[STAT_RESET] = TimestampTzGetDatum((TimestampTz) reset);
	nulls[STAT_RESET] = reset == 0;
	tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
	return (Datum) 0;
}

Datum
gpuhash_stat_reset(PG_FUNCTION_ARGS)
{
	if (!gh_service_enabled())
		PG_RETURN_VOID();
	for (uint32 i = 0; i < gh_service->devices; i++)
		for (int c = 0; c < GH_COUNTERS; c++)
			pg_atomic_write_u64(&gh_service->device[i].counter[c], 0);
	for (int i = 0; i < GH_FALLBACKS; i++)
		pg_atomic_write_u64(&gh_service->fallbacks[i], 0);
	for (int i = 0; i < GH_USES; i++)
		pg_atomic_write_u64(&gh_service->uses[i], 0);
	pg_atomic_write_u64(&gh_service->reset_at, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}

/* -------------------------------------------------------------- activity */

static const char *
operation_name(const GhSlot *slot)
{
	static const char *const controls[] = {
		[GH_SERVICE_CREATE] = "create",
		[GH_SERVICE_CLEAR] = "clear",
		[GH_SERVICE_RESERVE] = "reserve",
		[GH_SERVICE_FLUSH] = "flush",
		[GH_SERVICE_STATS] = "stats",
		[GH_SERVICE_PIPELINE_CREATE] = "create pipeline",
		[GH_SERVICE_PIPELINE] = "pipeline",
		[GH_SERVICE_PIPELINE_RESULTS] = "pipeline results",
		[GH_SERVICE_PIPELINE_TABLE] = "make table",
		[GH_SERVICE_PIPELINE_CLEAR] = "clear pipeline",
		[GH_SERVICE_PIPELINE_STATS] = "pipeline stats",
		[GH_SERVICE_MARKS_CREATE] = "create marks",
	};
	static const char *const runs[] = {
		[GH_INSERT] = "insert",
		[GH_UPSERT] = "upsert",
		[GH_EXCHANGE] = "build",
		[GH_ADD] = "add",
		[GH_BUILD] = "build",
		[GH_FIND] = "find",
		[GH_COUNT] = "count",
		[GH_FIND_ALL] = "find all",
		[GH_DELETE] = "delete",
		[GH_DELETE_ONE] = "delete one",
		[GH_MIXED] = "mixed",
	};
	uint32		op = slot->op == GH_SERVICE_RUN ? (uint32) slot->request.op : (uint32) slot->op;
	uint32		count = slot->op == GH_SERVICE_RUN ? lengthof(runs) : lengthof(controls);

	/* another process may be writing it */
	if (op == 0 || op >= count)
		return "unknown";
	return slot->op == GH_SERVICE_RUN ? runs[op] : controls[op];
}

static void
emit_activity(ReturnSetInfo *result, const GhSlot *slot, GhSlotState state)
{
	uint64		started = pg_atomic_read_u64((pg_atomic_uint64 *) &slot->started_ns);
	uint64		since = started != 0 ? started : slot->submitted_ns;
	uint64		now = gh_monotonic_ns();
	Datum		row[ACTIVITY_COLUMNS];
	bool		nulls[ACTIVITY_COLUMNS] = {false};

	row[ACTIVITY_PID] = Int32GetDatum(slot->pid);
	row[ACTIVITY_DATABASE] = ObjectIdGetDatum(slot->database);
	row[ACTIVITY_ROLE] = ObjectIdGetDatum(slot->role);
	row[ACTIVITY_DEVICE] = Int32GetDatum(gh_service_device_number((int) slot->device));
	row[ACTIVITY_STATE] = CStringGetTextDatum(state == GH_SLOT_ABANDONED ? "abandoned" :
											  started != 0 ? "running" : "queued");
	row[ACTIVITY_OPERATION] = CStringGetTextDatum(operation_name(slot));
	row[ACTIVITY_KEYS] = Int64GetDatum(slot->op == GH_SERVICE_RUN ? (int64) slot->count : 0);
	nulls[ACTIVITY_KEYS] = slot->op != GH_SERVICE_RUN;
	row[ACTIVITY_PAGES] = Int64GetDatum(gh_op_brings_pages(slot->op) ? (int64) slot->count : 0);
	nulls[ACTIVITY_PAGES] = !gh_op_brings_pages(slot->op);
	row[ACTIVITY_TIME] = Float8GetDatum((double) (now - Min(since, now)) / GH_NS_PER_MS);
	tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
}

/* What is on its way to a GPU or on it: one's own, or all for members of pg_monitor. */
Datum
gpuhash_service_activity(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);

	gh_rows_begin(fcinfo, "iooittllf");
	if (!gh_service_enabled())
		return (Datum) 0;
	for (uint32 i = 0; i < gh_service->slots; i++)
	{
		GhSlot		slot = *gh_slot_at(i);
		GhSlotState state = gh_slot_state(pg_atomic_read_u64(&slot.word));

		if ((state == GH_SLOT_SUBMITTED || state == GH_SLOT_ABANDONED) &&
			(all || has_privs_of_role(GetUserId(), slot.role)))
			emit_activity(result, &slot, state);
	}
	return (Datum) 0;
}

/* --------------------------------------------------------------- fallbacks */

GhFallback
gh_service_fallback_of(const GhError *error)
{
	switch (error->status)
	{
		case GH_TIMEOUT:
			return GH_FALLBACK_TIMEOUT;
		case GH_NO_BUFFERS:
			return GH_FALLBACK_NO_BUFFERS;
		case GH_LIMIT:
		case GH_TOO_MANY:
		case GH_NO_MEMORY:
			return GH_FALLBACK_MEMORY;
		case GH_UNAVAILABLE:
			return GH_FALLBACK_WORKER_DOWN;
		case GH_DECLINED:
			return GH_FALLBACK_DECLINED;
		default:
			return GH_FALLBACK_DEVICE;
	}
}

void
gh_service_count_fallback(GhFallback reason)
{
	if (gh_service != NULL)
		pg_atomic_fetch_add_u64(&gh_service->fallbacks[reason], 1);
}

/* ---------------------------------------------------------------- what was offloaded */

void
gh_service_count_use(GhUse use)
{
	if (gh_service != NULL)
		pg_atomic_fetch_add_u64(&gh_service->uses[use], 1);
}

void
gh_service_count_node(GhUse use, int eflags)
{
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 && !IsParallelWorker())
		gh_service_count_use(use);
}
