/*
 * reload.c
 *		The launcher of loads: it remembers which relations have pages on devices, and when a device's worker
 *		begins to serve, after a restart of it or of the server, it has them loaded again.  It also has columns
 *		of tables made that the planner asks for (columns_wanted.c), and copies of indexes made again (index_wanted.c).
 *
 * One process a server, with no database.  It looks at what is there once a minute, when a worker ends, and
 * when it is told to end itself, and writes a list (remember.c) when that has changed.  The list of a device
 * changes only while that device is `served`: after what was remembered has been loaded again, and until its
 * worker ends.  What an ended worker's device had can still be told then (gh_service_span_stayed), until the
 * next worker begins.
 *
 * One database after the other gets a process that loads (../fragment/reload.c), which has the list from the
 * file.
 *
 * What ends a worker, or the server, might be what is loaded.  So nothing is loaded for a second time of
 * which the first load did not come to its end: the file says while there is one.  Likewise, of columns and
 * copies: after such an end none are made until the server is restarted.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "service/faults.h"
#include "service/service.h"
#include "store/columns_wanted.h"
#include "store/index_wanted.h"
#include "store/inside.h"
#include "store/remember.h"
#include "store/resident_file.h"

/* Between two looks; tests wait for them. */
#define GH_LOOK_MS GH_WITH_FAULT_POINTS(100, 60000)

/* By device: the worker on whose device all is again that is remembered; 0: none. */
static uint64 *served;
/* What is in the file, or could not be written to it. */
static GhRememberedList remembered;
/* Columns are made in the background, as far as the setting says so. */
static bool may_make = true;

/* ---------------------------------------------------------------- remembering */

/* By device, and what was used last first. */
static int
compare(const void *a, const void *b)
{
	const GhRemembered *left = a;
	const GhRemembered *right = b;

	if (left->device != right->device)
		return left->device < right->device ? -1 : 1;
	if (left->used != right->used)
		return left->used > right->used ? -1 : 1;
	return 0;
}

/* When they were used matters only as far as it is their order. */
static bool
are_same(const GhRememberedList *a, const GhRememberedList *b)
{
	if (a->count != b->count)
		return false;
	for (int i = 0; i < a->count; i++)
		if (memcmp(&a->entries[i], &b->entries[i], offsetof(GhRemembered, used)) != 0)
			return false;
	return true;
}

static void
append(GhRememberedList *list, const GhResidentInfo *info)
{
	GhRemembered *entry = &list->entries[list->count++];

	entry->device = gh_service_device_number((int) info->key.device);
	entry->database = info->key.database;
	entry->tablespace = info->key.tablespace;
	entry->number = info->key.number;
	entry->relid = info->relid;
	entry->blocks = (BlockNumber) info->resident;
	entry->used = info->used;
}

/* Of devices that are looked at, what is there; of others, what is remembered. */
static GhRememberedList
make_list(const GhResidentInfo *infos, int count, const bool *looked)
{
	GhRememberedList list = {.loading = remembered.loading};

	list.entries = palloc((count + remembered.count + 1) * sizeof(GhRemembered));
	for (int i = 0; i < count; i++)
		if (looked[infos[i].key.device] && infos[i].resident > 0)
			append(&list, &infos[i]);
	for (int d = 0; d < gh_service_devices(); d++)
		for (int i = 0; i < remembered.count && !looked[d]; i++)
			if (remembered.entries[i].device == gh_service_device_number(d))
				list.entries[list.count++] = remembered.entries[i];
	qsort(list.entries, list.count, sizeof(GhRemembered), compare);
	list.count = Min(list.count, GH_REMEMBERED_MAX);
	return list;
}

static void
set_remembered(const GhRememberedList *list)
{
	if (remembered.entries != NULL)
		pfree(remembered.entries);
	remembered.entries = MemoryContextAlloc(TopMemoryContext, (list->count + 1) * sizeof(GhRemembered));
	if (list->count > 0)
		memcpy(remembered.entries, list->entries, list->count * sizeof(GhRemembered));
	remembered.count = list->count;
}

/* Looks at what is there now. */
static void
look(void)
{
	int			ndevices = gh_service_devices();
	bool	   *looked = palloc0(ndevices * sizeof(bool));
	int			count;
	GhResidentInfo *infos = gh_resident_list_all(&count);
	GhRememberedList list;

	for (int d = 0; d < ndevices; d++)
	{
		bool		ready;

		/* after the list was made: with another worker, nothing of it holds */
		looked[d] = gh_service_worker_of(d, &ready) == served[d] && served[d] != 0;
		if (!ready)
			served[d] = 0;
	}
	list = make_list(infos, count, looked);
	if (!are_same(&list, &remembered))
	{
		set_remembered(&list);
		gh_remembered_write(&remembered);
	}
}

/* Whether there is a load is in the file before there is one. */
static void
set_loading(bool loading)
{
	if (remembered.loading == loading)
		return;
	remembered.loading = loading;
	gh_remembered_write(&remembered);
}

/*
 * With gpuhash.reload_resident off: what is there now is not loaded by this server, and by none that is
 * started later.
 */
static void
forget(void)
{
	const GhRememberedList nothing = {0};

	set_remembered(&nothing);
	remembered.loading = false;
	gh_remembered_forget();
	for (int d = 0; d < gh_service_devices(); d++)
	{
		bool		ready;
		uint64		worker = gh_service_worker_of(d, &ready);

		served[d] = ready ? worker : 0;
	}
}

static void
remember(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash resident list",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);

	if (gh_reload_resident)
		look();
	else
		forget();
	MemoryContextSwitchTo(saved);
	MemoryContextDelete(context);
}

/* Waits for something to happen, or for the next look, and takes it. */
static void
sleep_and_look(BackgroundWorkerHandle *loader)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, GH_LOOK_MS,
					 gh_wait_event(GH_WAIT_RELOAD));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	remember();
	if (!ShutdownRequestPending)
		return;
	if (loader != NULL)
		TerminateBackgroundWorker(loader);
	set_loading(false);
	gh_making_end();
	/* with another status, the postmaster would not start it again where it was ended alone */
	proc_exit(1);
}

/* -------------------------------------------------------------------- loading */

/*
 * Whether there is the database, and it may be connected to: else a process would end with an error in the
 * log.
 */
static bool
accepts_connections(Oid database)
{
	bool		accepts = false;
	Relation	databases;
	TableScanDesc scan;
	HeapTuple	tuple;

	/* the server's caches are there for processes of a database alone */
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	databases = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(databases, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);

		/* a limit below -1: it is about to be dropped */
		if (form->oid == database)
			accepts = form->datallowconn && form->datconnlimit >= -1;
	}
	table_endscan(scan);
	table_close(databases, AccessShareLock);
	CommitTransactionCommand();
	return accepts;
}

/* Has a process do that in a database, and waits for its end; false: there is none to be had. */
static bool
run_loader(Oid database, const char *function, const char *type, const GhReloadTask *task)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	pid_t		pid;

	gh_service_init_worker(&worker, function);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker.bgw_name, sizeof(worker.bgw_name), "%s for database %u", type, database);
	strlcpy(worker.bgw_type, type, sizeof(worker.bgw_type));
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	memcpy(worker.bgw_extra, task, sizeof(*task));
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		ereport(DEBUG1,
				(errmsg("there is no %s now: max_worker_processes are there", type)));
		return false;
	}
	while (GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED)
		sleep_and_look(handle);
	pfree(handle);
	return true;
}

/* The databases of the device's relations, each once, as they come in the list. */
static int
list_databases(int device, Oid *databases)
{
	int			number = gh_service_device_number(device);
	int			count = 0;

	for (int i = 0; i < remembered.count; i++)
	{
		int			known = 0;

		if (remembered.entries[i].device != number)
			continue;
		while (known < count && databases[known] != remembered.entries[i].database)
			known++;
		if (known == count)
			databases[count++] = remembered.entries[i].database;
	}
	return count;
}

static bool
still_serves(int device, uint64 worker)
{
	bool		ready;

	return gh_service_worker_of(device, &ready) == worker && ready;
}

/* Nothing of the device is remembered any more. */
static void
forget_device(int device)
{
	int			count = 0;

	for (int i = 0; i < remembered.count; i++)
		if (remembered.entries[i].device != gh_service_device_number(device))
			remembered.entries[count++] = remembered.entries[i];
	remembered.count = count;
}

/*
 * Has the databases' relations loaded, one database after the other; false: not all, and it may be tried
 * again.
 */
static bool
load_databases(const Oid *databases, int count, int device, uint64 worker)
{
	GhReloadTask task = {.device = device};

	for (int i = 0; i < count && gh_reload_resident && still_serves(device, worker); i++)
		if (accepts_connections(databases[i]) && !run_loader(databases[i], "gh_reload_worker_main", "gpuhash reload worker", &task))
			return false;
	return true;
}

/*
 * Loads what is remembered of a device onto it; it is served then, or this is tried again with the next look.
 */
static void
load_device(int device, uint64 worker)
{
	/* the list may change meanwhile: of other devices, or when the setting is switched off */
	Oid		   *databases = palloc((remembered.count + 1) * sizeof(Oid));
	int			count = list_databases(device, databases);
	bool		done;

	set_loading(count > 0);
	done = load_databases(databases, count, device, worker);
	if (!still_serves(device, worker))
		forget_device(device);
	else if (done)
		served[device] = worker;
	set_loading(false);
}

static void
load_devices(void)
{
	for (int d = 0; d < gh_service_devices() && gh_reload_resident; d++)
	{
		bool		ready;
		uint64		worker = gh_service_worker_of(d, &ready);

		if (ready && served[d] != worker)
			load_device(d, worker);
	}
}

/*
 * Has columns or copies made of a database.  False: there is no process to be had.  What ends it is not made
 * again soon (columns_wanted.c, index_wanted.c); what ends the server with it is found out by the next
 * launcher.
 */
static bool
make_of(Oid database, const char *function, const char *type, void (*end) (Oid database, TimestampTz began))
{
	const GhReloadTask none = {0};
	TimestampTz began = GetCurrentTimestamp();
	bool		done;

	gh_making_begin();
	done = !accepts_connections(database) || run_loader(database, function, type, &none);
	gh_making_end();
	if (done)
		end(database, began);
	return done;
}

/*
 * Has columns made that the planner asked for, in one database; the next one has its turn in the next round,
 * at once.
 */
static void
make_columns(void)
{
	Oid			database = may_make && gh_prewarm_columns ? gh_columns_wanted_database() : InvalidOid;

	if (OidIsValid(database) &&
		make_of(database, "gh_columns_worker_main", "gpuhash columns worker", gh_columns_wanted_end))
		SetLatch(MyLatch);
}

/* Has copies of indexes made again, likewise. */
static void
make_copies(void)
{
	Oid			database = may_make ? gh_index_wanted_database() : InvalidOid;

	if (OidIsValid(database) &&
		make_of(database, "gh_copies_worker_main", "gpuhash copies worker", gh_index_wanted_end))
		SetLatch(MyLatch);
}

/* What ended the server might be what was loaded then. */
static void
find_cut_off(void)
{
	may_make = !gh_making_was_cut_off();
	if (!may_make)
		ereport(LOG,
				(errmsg("gpuhash makes no columns of tables, nor copies of indexes, in the background until the server is restarted"),
				 errdetail("The server ended when it had begun to.")));
	if (gh_remembered_read(&remembered, LOG) && !remembered.loading)
		return;
	if (remembered.loading)
		ereport(LOG,
				(errmsg("gpuhash does not load again what was on a GPU before the restart"),
				 errdetail("The server ended when it had begun to.")));
	remembered.count = 0;
	remembered.loading = false;
	gh_remembered_write(&remembered);
}

void
gh_reload_launcher_main(Datum arg)
{
	MemoryContext context;

	(void) arg;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	/* to none, for the list of databases */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	gh_service_watch();
	served = MemoryContextAllocZero(TopMemoryContext, gh_service_devices() * sizeof(uint64));
	MemoryContextSwitchTo(TopMemoryContext);
	find_cut_off();
	context = AllocSetContextCreate(TopMemoryContext, "gpuhash reload launcher", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	remember();
	for (;;)
	{
		load_devices();
		make_copies();
		make_columns();
		MemoryContextSwitchTo(context);
		MemoryContextReset(context);
		sleep_and_look(NULL);
	}
}

/* ------------------------------------------------------------------ its start */

void
gh_reload_init(void)
{
	BackgroundWorker worker;

	gh_service_init_worker(&worker, "gh_reload_launcher_main");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	strlcpy(worker.bgw_name, "gpuhash reload launcher", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "gpuhash reload launcher", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}
