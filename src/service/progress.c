/*
 * progress.c
 *		How far work is that takes long and is no query of its own: gpuhash_stat_progress.
 *
 * PostgreSQL's progress views know PostgreSQL's own commands alone, so this is a table of our own in the
 * service's memory.  A process has one entry while it does such work.  Entries are taken without a lock, by
 * the process's number, and given back when the memory context of the work goes, which errors see to as well.
 * A process that ends at once (FATAL) leaves its entry: nobody shows it, and the next who looks for one takes
 * it.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "result_rows.h"
#include "service/progress.h"
#include "service/shared.h"

PG_FUNCTION_INFO_V1(gpuhash_service_progress);

/* Columns of gpuhash_service_progress, in order. */
enum
{
	PROGRESS_PID,
	PROGRESS_DATABASE,
	PROGRESS_RELATION,
	PROGRESS_DEVICE,
	PROGRESS_COMMAND,
	PROGRESS_PHASE,
	PROGRESS_TOTAL,
	PROGRESS_DONE,
	PROGRESS_STARTED,
	PROGRESS_COLUMNS
};

static GhProgress *mine = NULL; /* this process's entry */

/* ------------------------------------------------------------------ writing */

static bool
is_alive(uint32 pid)
{
	return BackendPidGetProc((int) pid) != NULL;
}

/* An entry that nobody has, or whose process is no more; NULL: there is none. */
static GhProgress *
take_entry(void)
{
	for (int i = 0; i < GH_PROGRESS_MAX; i++)
	{
		GhProgress *entry = &gh_service->progress[i];
		uint32		pid = pg_atomic_read_u32(&entry->pid);

		if ((pid == 0 || !is_alive(pid)) && pg_atomic_compare_exchange_u32(&entry->pid, &pid, (uint32) MyProcPid))
			return entry;
	}
	return NULL;
}

/* The work has ended, or failed. */
static void
give_back(void *arg)
{
	GhProgress *entry = arg;

	mine = NULL;
	pg_atomic_write_u32(&entry->shown, 0);
	pg_write_barrier();
	pg_atomic_write_u32(&entry->pid, 0);
}

void
gh_progress_begin(MemoryContext context, GhProgressCommand command, Oid relation, int device)
{
	MemoryContextCallback *callback;

	if (gh_service == NULL || mine != NULL)
		return;
	callback = MemoryContextAllocZero(context, sizeof(MemoryContextCallback));
	mine = take_entry();
	if (mine == NULL)
		return;
	callback->func = give_back;
	callback->arg = mine;
	MemoryContextRegisterResetCallback(context, callback);
	pg_atomic_write_u32(&mine->shown, 0);
	pg_write_barrier();
	mine->database = MyDatabaseId;
	mine->role = GetSessionUserId();
	mine->relation = relation;
	mine->device = device;
	mine->command = command;
	mine->started = GetCurrentTimestamp();
	gh_progress_phase(GH_PROGRESS_BEGINS, 0);
	pg_write_barrier();
	pg_atomic_write_u32(&mine->shown, 1);
}

void
gh_progress_phase(GhProgressPhase phase, uint64 total)
{
	if (mine == NULL)
		return;
	pg_atomic_write_u64(&mine->done, 0);
	pg_atomic_write_u64(&mine->total, total);
	pg_atomic_write_u32(&mine->phase, phase);
}

void
gh_progress_done(uint64 done)
{
	if (mine != NULL)
		pg_atomic_write_u64(&mine->done, done);
}

/* ------------------------------------------------------------------ reading */

/* As in PostgreSQL's progress views, others see that a process is at work, and no more. */
static bool
may_see(const GhProgress *entry)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) || has_privs_of_role(GetUserId(), entry->role);
}

static void
emit_progress(ReturnSetInfo *result, GhProgress *entry, uint32 pid)
{
	static const char *const commands[GH_PROGRESS_COMMANDS] = {
		[GH_PROGRESS_PREWARM] = "prewarm",
		[GH_PROGRESS_RELOAD] = "reload",
		[GH_PROGRESS_COPY] = "copy of index",
	};
	static const char *const phases[GH_PROGRESS_PHASES] = {
		[GH_PROGRESS_BEGINS] = "beginning",
		[GH_PROGRESS_READS] = "reading pages",
		[GH_PROGRESS_ENTERS] = "making the hash table",
		[GH_PROGRESS_SHARES] = "moving into shared memory",
	};
	uint32		command = entry->command;
	uint32		phase = pg_atomic_read_u32(&entry->phase);
	uint64		total = pg_atomic_read_u64(&entry->total);
	Datum		row[PROGRESS_COLUMNS] = {0};
	bool		nulls[PROGRESS_COLUMNS] = {false};

	/* another process may be writing it */
	if (command >= GH_PROGRESS_COMMANDS || phase >= GH_PROGRESS_PHASES)
		return;
	row[PROGRESS_PID] = Int32GetDatum((int32) pid);
	row[PROGRESS_DATABASE] = ObjectIdGetDatum(entry->database);
	if (!may_see(entry))
	{
		memset(&nulls[PROGRESS_RELATION], true, sizeof(bool) * (PROGRESS_COLUMNS - PROGRESS_RELATION));
		tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
		return;
	}
	row[PROGRESS_RELATION] = ObjectIdGetDatum(entry->relation);
	row[PROGRESS_DEVICE] = Int32GetDatum(entry->device);
	nulls[PROGRESS_DEVICE] = entry->device < 0;
	row[PROGRESS_COMMAND] = CStringGetTextDatum(commands[command]);
	row[PROGRESS_PHASE] = CStringGetTextDatum(phases[phase]);
	row[PROGRESS_TOTAL] = Int64GetDatum((int64) total);
	nulls[PROGRESS_TOTAL] = total == 0;
	row[PROGRESS_DONE] = Int64GetDatum((int64) pg_atomic_read_u64(&entry->done));
	nulls[PROGRESS_DONE] = total == 0;
	row[PROGRESS_STARTED] = TimestampTzGetDatum(entry->started);
	tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
}

/* What is under way; none in a session without the service. */
Datum
gpuhash_service_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	gh_rows_begin(fcinfo, "iooittllz");
	if (gh_service == NULL)
		return (Datum) 0;
	for (int i = 0; i < GH_PROGRESS_MAX; i++)
	{
		GhProgress *entry = &gh_service->progress[i];
		uint32		pid = pg_atomic_read_u32(&entry->pid);

		if (pid != 0 && pg_atomic_read_u32(&entry->shown) != 0 && is_alive(pid))
			emit_progress(result, entry, pid);
	}
	return (Datum) 0;
}
