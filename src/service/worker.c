/*
 * worker.c
 *		The background worker of a GPU: its main thread.
 *
 * It opens the CUDA engine, makes the transfer area known to the device, and starts
 * the threads that serve requests (executor.c).  After that it wakes whom they want
 * woken, watches that no request takes longer than gpuhash.device_timeout, and ends
 * the process where the device fails or the postmaster says so; then a new one comes.
 *
 * It connects to no database.  Where there is no usable GPU it says so once and tries
 * again every minute.
 */
#include "postgres.h"

#include <fcntl.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "utils/guc.h"

#include "gpuhash.h"
#include "service/client.h"
#include "service/executor.h"
#include "service/faults.h"
#include "service/shared.h"
#include "session.h"

/* Between two tries to find a GPU. */
#define GH_RETRY_MS 60000

/* While requests are served, time limits are looked at so often. */
#define GH_WATCH_MS 100

static GhDevice *device;
static uint32 device_index;
static int	cuda_device;
static int	wake_pipe[2];

/* ------------------------------------------------------------------- ends */

/*
 * Runs last of all callbacks: what CUDA and its threads would do at exit might never
 * return where the device hangs.
 */
static void
leave_at_once(int code, Datum arg)
{
	(void) arg;
	_exit(code);
}

/* Everyone whose request is here looks again. */
static void
wake_clients(bool all)
{
	for (uint32 i = 0; i < gh_service->slots; i++)
	{
		GhSlot	   *slot = gh_slot_at(i);
		int			procno = slot->procno;

		if (pg_atomic_read_u32(&slot->sleeping) != 0 && slot->device == device_index && procno >= 0 &&
			(all || gh_slot_state(pg_atomic_read_u64(&slot->word)) == GH_SLOT_DONE))
			SetLatch(&ProcGlobal->allProcs[procno].procLatch);
	}
}

/*
 * From here on clients see that no answer will come.  Their buffers stay where they
 * are: the device may still write to them until this process is gone.
 */
static void
go_down(int code, Datum arg)
{
	(void) code;
	(void) arg;
	pg_atomic_write_u32(&device->state, GH_DEVICE_DOWN);
	device->procno = -1;
	device->pid = 0;
	pg_memory_barrier();
	wake_clients(true);
}

/* ------------------------------------------------------------------ start */

/* What an earlier worker, which is gone for good, left behind. */
static void
clean_up_after_predecessor(void)
{
	for (int e = 0; e < GH_EXECUTORS; e++)
	{
		uint32		slot;

		while (gh_ring_take(&device->ring[e], &slot))
			continue;
		pg_atomic_write_u32(&device->ring[e].asleep, 1);
		pg_atomic_write_u32(&device->ring[e].dying, 0);
	}
	for (uint32 i = 0; i < gh_service->slots; i++)
	{
		GhSlot	   *slot = gh_slot_at(i);
		GhSlotState state = gh_slot_state(pg_atomic_read_u64(&slot->word));

		if (slot->device != device_index ||
			(state != GH_SLOT_SUBMITTED && state != GH_SLOT_ABANDONED))
			continue;
		slot->status = gh_error_set(&slot->error, GH_DEVICE_ERROR, "the worker of GPU %d ended", cuda_device);
		if (gh_slot_finish(i) && slot->procno >= 0)
			SetLatch(&ProcGlobal->allProcs[slot->procno].procLatch);
	}
	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
	{
		GhTableEntry *entry = gh_table_entry_at(i);
		uint64		word = pg_atomic_read_u64(&entry->word);
		uint64		generation = gh_slot_generation(word);

		if (entry->device != device_index)
			continue;
		if ((GhTableState) gh_slot_state(word) == GH_TABLE_LIVE)
			(void) pg_atomic_compare_exchange_u64(&entry->word, &word,
												  gh_slot_word(generation, GH_TABLE_LOST));
		/* unchanged, or its owner just gave it up */
		word = pg_atomic_read_u64(&entry->word);
		if ((GhTableState) gh_slot_state(word) == GH_TABLE_DYING)
			pg_atomic_write_u64(&entry->word, gh_slot_word(generation + 1, GH_TABLE_FREE));
		pg_atomic_write_u64(&entry->bytes, 0);
	}
	pg_atomic_write_u64(&device->memory_used, 0);
}

static void
take_settings(void)
{
	uint64		limit = PG_UINT64_MAX;

	if (gh_device_memory_limit >= 0)
		limit = (uint64) gh_device_memory_limit * 1024 * 1024;
	pg_atomic_write_u64(&device->memory_limit, limit);
}

/* The engine with the device open, or NULL with *error. */
static const GhEngine *
open_device(GhError *error)
{
	const GhEngine *engine;
	GhStatus	status = gh_fault_status(gh_fault_pass(GH_FAULT_POINT_OPEN), error);

	if (status != GH_OK)
		return NULL;
	engine = gh_cuda_engine_for_worker(cuda_device, error);
	if (engine == NULL)
		return NULL;
	return engine->device_info(cuda_device, &device->info, error) == GH_OK ? engine : NULL;
}

/* Requests work without it as well, through pageable memory. */
static void
register_area(const GhEngine *engine)
{
	GhError		error;
	Size		bytes = gh_service->units * GH_UNIT_BYTES;
	sigset_t	all;
	sigset_t	saved;
	GhStatus	status = gh_fault_status(gh_fault_pass(GH_FAULT_POINT_REGISTER), &error);

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &saved);
	if (status == GH_OK)
		status = engine->memory_register == NULL ? GH_UNSUPPORTED :
			engine->memory_register(cuda_device, gh_buffer_at(0), bytes, false, &error);
	sigprocmask(SIG_SETMASK, &saved, NULL);
	device->registered = status == GH_OK;
	device->message[0] = '\0';
	if (status == GH_OK)
		return;
	strlcpy(device->message, error.message, sizeof(device->message));
	ereport(LOG,
			(errmsg("gpuhash transfers to GPU %d are slower: its transfer area cannot be registered", cuda_device),
			 errdetail("%s.", error.message)));
}

/* Waits until the device is there; ends the process where it is told to. */
static const GhEngine *
wait_for_device(void)
{
	bool		said = false;

	for (;;)
	{
		GhError		error = {0};
		const GhEngine *engine = open_device(&error);

		if (engine != NULL)
			return engine;
		strlcpy(device->message, error.message, sizeof(device->message));
		pg_atomic_write_u32(&device->state, GH_DEVICE_ABSENT);
		if (!said)
			ereport(LOG,
					(errmsg("gpuhash does not use GPU %d: %s", cuda_device, error.message),
					 errdetail("Hash tables are kept by the CPU engine."),
					 errhint("It is looked for again every minute; this message is not repeated.")));
		said = true;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, GH_RETRY_MS,
						 gh_wait_event(GH_WAIT_WORKER));
		ResetLatch(MyLatch);
		if (ShutdownRequestPending)
			proc_exit(1);
		CHECK_FOR_INTERRUPTS();
	}
}

/* ------------------------------------------------------------------ watch */

static bool
is_too_long_ago(uint64 since)
{
	uint64		now = gh_monotonic_ns();

	return since != 0 && now > since &&
		now - since >= (uint64) gh_device_timeout * UINT64CONST(1000000);
}

static void
end_hanging(const char *detail)
{
	strlcpy(device->message, "a request took longer than gpuhash.device_timeout", sizeof(device->message));
	ereport(LOG,
			(errmsg("GPU %d has not answered for %d ms: its gpuhash worker ends", cuda_device, gh_device_timeout),
			 errdetail("%s", detail),
			 errhint("A new worker starts by itself; look at the GPU if this happens again.")));
	proc_exit(1);
}

/* What the device has had for too long means that it hangs. */
static void
check_time_limits(void)
{
	if (gh_device_timeout == 0)
		return;
	if (is_too_long_ago(gh_executors_reaping_since()))
		end_hanging("It was freeing a table.");
	for (uint32 i = 0; i < gh_service->slots; i++)
	{
		GhSlot	   *slot = gh_slot_at(i);
		GhSlotState state = gh_slot_state(pg_atomic_read_u64(&slot->word));

		if (slot->device == device_index &&
			(state == GH_SLOT_SUBMITTED || state == GH_SLOT_ABANDONED) &&
			is_too_long_ago(pg_atomic_read_u64(&slot->started_ns)))
			end_hanging(psprintf("The request is of the process %d, over %llu keys.", slot->pid,
								 (unsigned long long) slot->count));
	}
}

static void
check_device(void)
{
	GhError		error;

	if (!gh_executors_device_lost(&error))
		return;
	strlcpy(device->message, error.message, sizeof(device->message));
	ereport(LOG,
			(errmsg("GPU %d failed: its gpuhash worker ends", cuda_device),
			 errdetail("%s.", error.message),
			 errhint("A new worker starts by itself; tables with a host copy lose nothing.")));
	proc_exit(1);
}

static void
note_cpu_time(void)
{
	struct timespec used;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
		pg_atomic_write_u64(&device->cpu_ns, (uint64) used.tv_sec * UINT64CONST(1000000000) +
							(uint64) used.tv_nsec);
}

static void
empty_pipe(void)
{
	char		bytes[64];

	while (read(wake_pipe[0], bytes, sizeof(bytes)) > 0)
		continue;
}

/* Until the end of the process. */
static void
serve(void)
{
	WaitEventSet *set = gh_create_wait_event_set(3);

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, wake_pipe[0], NULL, NULL);
	for (;;)
	{
		WaitEvent	event;
		bool		asleep = gh_executors_asleep();

		if (asleep)
			note_cpu_time();
		(void) WaitEventSetWait(set, asleep ? -1 : GH_WATCH_MS, &event, 1,
								gh_wait_event(GH_WAIT_WORKER));
		ResetLatch(MyLatch);
		empty_pipe();
		gh_executors_wake();
		wake_clients(false);
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			proc_exit(1);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			take_settings();
		}
		check_device();
		check_time_limits();
	}
}

static void
open_pipe(void)
{
	if (pipe(wake_pipe) != 0 || fcntl(wake_pipe[0], F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(wake_pipe[1], F_SETFL, O_NONBLOCK) < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open a pipe for the gpuhash worker: %m")));
}

static void
start_executors(const GhEngine *engine)
{
	sigset_t	all;
	sigset_t	saved;
	bool		started;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &saved);
	started = gh_executors_start(device_index, cuda_device, engine, wake_pipe[1]);
	sigprocmask(SIG_SETMASK, &saved, NULL);
	if (!started)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start the threads of the gpuhash worker")));
}

void
gh_worker_main(Datum arg)
{
	const GhEngine *engine;

	on_proc_exit(leave_at_once, (Datum) 0);
	device_index = (uint32) DatumGetInt32(arg);
	memcpy(&cuda_device, MyBgworkerEntry->bgw_extra, sizeof(int));
	device = &gh_service->device[device_index];
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	pg_atomic_write_u32(&device->state, GH_DEVICE_STARTING);
	pg_atomic_fetch_add_u64(&device->instance, 1);
	pg_memory_barrier();
	before_shmem_exit(go_down, (Datum) 0);
	clean_up_after_predecessor();
	take_settings();
	open_pipe();
	engine = wait_for_device();
	register_area(engine);
	start_executors(engine);
	device->pid = MyProcPid;
	device->procno = gh_my_procno();
	pg_atomic_fetch_add_u64(&device->started, 1);
	pg_memory_barrier();
	pg_atomic_write_u32(&device->state, GH_DEVICE_READY);
	ereport(LOG,
			(errmsg("gpuhash uses GPU %d, %s, with %llu MB of memory", cuda_device, device->info.name,
					(unsigned long long) (device->info.memory_total / 1024 / 1024))));
	serve();
}
