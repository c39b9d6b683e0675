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
#include <pthread.h>
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
#include "host.h"
#include "service/client.h"
#include "service/executor.h"
#include "service/faults.h"
#include "service/pool.h"
#include "service/shared.h"

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
	gh_service_wake_watcher();
}

/* ------------------------------------------------------------------ start */

/* What an earlier worker, which is gone for good, left behind. */
static void
clean_up_after_predecessor(void)
{
	for (int e = 0; e < GH_EXECUTORS; e++)
	{
		uint32		slot;
		uint64		generation;

		while (gh_ring_take(&device->ring[e], &slot, &generation))
			continue;
		pg_atomic_write_u32(&device->ring[e].asleep, 1);
		pg_atomic_write_u32(&device->ring[e].dying, 0);
	}
	for (uint32 i = 0; i < gh_service->slots; i++)
	{
		GhSlot	   *slot = gh_slot_at(i);
		uint64		word = pg_atomic_read_u64(&slot->word);
		GhSlotState state = gh_slot_state(word);
		int			procno = slot->procno;

		if (slot->device != device_index ||
			(state != GH_SLOT_SUBMITTED && state != GH_SLOT_ABANDONED))
			continue;
		slot->status = gh_error_set(&slot->error, GH_DEVICE_ERROR, "the worker of GPU %d ended", cuda_device);
		if (gh_slot_finish(i, gh_slot_generation(word)) && procno >= 0)
			SetLatch(&ProcGlobal->allProcs[procno].procLatch);
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
	pg_atomic_write_u64(&device->resident_used, 0);
	pg_atomic_write_u64(&device->paging_used, 0);
}

static void
take_settings(void)
{
	uint64		limit = PG_UINT64_MAX;

	if (gh_device_memory_limit >= 0)
		limit = (uint64) gh_device_memory_limit * 1024 * 1024;
	pg_atomic_write_u64(&device->memory_limit, limit);
	pg_atomic_write_u64(&device->paging_limit, gh_paging_limit(gh_service_devices()));
}

static void
empty_pipe(void)
{
	char		bytes[64];

	while (read(wake_pipe[0], bytes, sizeof(bytes)) > 0)
		continue;
}

/*
 * The start of a device, in a thread: a driver that does not answer must not keep the
 * main thread from ending the process when it is told to.
 */
typedef struct Opening
{
	const GhEngine *engine;		/* with the device open, or NULL */
	GhError		error;			/* why NULL */
	GhStatus	registered;		/* the transfer area */
	GhError		register_error;
	pg_atomic_uint32 over;
} Opening;

static const GhEngine *
open_device(GhError *error)
{
	const GhEngine *engine = NULL;
	GhStatus	status = gh_fault_status(gh_fault_pass(GH_FAULT_POINT_OPEN), error);

	if (status != GH_OK)
		return NULL;
	/* each opening is a new try */
	if (gh_cuda_engine_load(cuda_device, true, &engine, error) != GH_OK)
		return NULL;
	return engine->device_info(cuda_device, &device->info, error) == GH_OK ? engine : NULL;
}

static GhStatus
register_area(const GhEngine *engine, GhError *error)
{
	Size		bytes = gh_service->units * GH_UNIT_BYTES;
	GhStatus	status = gh_fault_status(gh_fault_pass(GH_FAULT_POINT_REGISTER), error);

	if (status != GH_OK)
		return status;
	if (engine->memory_register == NULL)
		return gh_error_set(error, GH_UNSUPPORTED, "the engine registers no memory");
	return engine->memory_register(cuda_device, gh_buffer_at(0), bytes, false, error);
}

static void *
open_in_thread(void *arg)
{
	Opening    *opening = arg;

	opening->engine = open_device(&opening->error);
	if (opening->engine != NULL)
		opening->registered = register_area(opening->engine, &opening->register_error);
	pg_write_barrier();
	pg_atomic_write_u32(&opening->over, 1);
	/* a full pipe wakes the main thread, too */
	if (write(wake_pipe[1], "", 1) < 0)
		return NULL;
	return NULL;
}

void
gh_worker_start_thread(void *(*routine) (void *), void *arg)
{
	pthread_t	thread;
	sigset_t	all;
	sigset_t	saved;
	int			failed;

	/* it inherits this, and so do the driver's threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	failed = pthread_create(&thread, NULL, routine, arg);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	if (failed != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start a thread of the gpuhash worker")));
	(void) pthread_detach(thread);
}

static void
end_if_told(void)
{
	if (ShutdownRequestPending)
		proc_exit(1);
	CHECK_FOR_INTERRUPTS();
}

/* The driver does not answer: the worker waits on, and everyone else does without. */
static void
say_open_hangs(void)
{
	strlcpy(device->message, "its driver does not answer", sizeof(device->message));
	pg_atomic_write_u32(&device->state, GH_DEVICE_ABSENT);
	ereport(LOG,
			(errmsg("GPU %d has not been opened for %d ms: its driver does not answer", cuda_device, gh_device_timeout),
			 errdetail("Hash tables are kept by the CPU engine until it does.")));
}

/* The engine with the device open, or NULL with *error. */
static const GhEngine *
try_to_open(GhError *error)
{
	static Opening opening;
	bool		timed = gh_device_timeout != 0;

	memset(&opening, 0, sizeof(opening));
	pg_atomic_init_u32(&opening.over, 0);
	(void) gh_cuda_library_path();
	gh_worker_start_thread(open_in_thread, &opening);
	while (pg_atomic_read_u32(&opening.over) == 0)
	{
		int			events = WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH;
		int			got = WaitLatchOrSocket(MyLatch, timed ? events | WL_TIMEOUT : events, wake_pipe[0],
											gh_device_timeout, gh_wait_event(GH_WAIT_WORKER));

		if (got & WL_TIMEOUT)
		{
			timed = false;
			say_open_hangs();
		}
		ResetLatch(MyLatch);
		empty_pipe();
		end_if_told();
	}
	pg_read_barrier();
	if (opening.engine == NULL)
	{
		*error = opening.error;
		return NULL;
	}
	device->registered = opening.registered == GH_OK;
	device->message[0] = '\0';
	if (device->registered)
		return opening.engine;
	/* requests work without it as well, through pageable memory */
	strlcpy(device->message, opening.register_error.message, sizeof(device->message));
	ereport(LOG,
			(errmsg("gpuhash transfers to GPU %d are slower: its transfer area cannot be registered", cuda_device),
			 errdetail("%s.", device->message)));
	return opening.engine;
}

/* Waits until the device is there; ends the process where it is told to. */
static const GhEngine *
wait_for_device(void)
{
	bool		said = false;

	for (;;)
	{
		GhError		error = {0};
		const GhEngine *engine = try_to_open(&error);

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
		end_if_told();
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
		bool		of_pages = slot->op >= GH_SERVICE_PIPELINE_CREATE;

		if (slot->device == device_index &&
			(state == GH_SLOT_SUBMITTED || state == GH_SLOT_ABANDONED) &&
			is_too_long_ago(pg_atomic_read_u64(&slot->started_ns)))
			end_hanging(psprintf("The request is of the process %d, over %llu %s.", slot->pid,
								 (unsigned long long) (gh_op_brings_pages(slot->op) || !of_pages ? slot->count : 0),
								 of_pages ? "pages" : "keys"));
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

/* Until the end of the process. */
static void
serve(const GhEngine *engine)
{
	WaitEventSet *set = gh_create_wait_event_set(3);

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, wake_pipe[0], NULL, NULL);
	gh_pool_look(device, engine, wake_pipe[1]);
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
		end_if_told();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			take_settings();
		}
		gh_pool_look(device, engine, wake_pipe[1]);
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
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	started = gh_executors_start(device_index, cuda_device, engine, wake_pipe[1]);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
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
	pg_atomic_write_u32(&device->pool, GH_POOL_UNKNOWN);
	pg_atomic_fetch_add_u64(&device->instance, 1);
	pg_memory_barrier();
	before_shmem_exit(go_down, (Datum) 0);
	clean_up_after_predecessor();
	take_settings();
	open_pipe();
	for (int i = 0; i < GH_WAITS; i++)
		(void) gh_wait_event((GhWait) i);
	engine = wait_for_device();
	start_executors(engine);
	device->pid = MyProcPid;
	device->procno = gh_my_procno();
	pg_atomic_fetch_add_u64(&device->started, 1);
	pg_memory_barrier();
	pg_atomic_write_u32(&device->state, GH_DEVICE_READY);
	pg_memory_barrier();
	gh_service_wake_watcher();
	ereport(LOG,
			(errmsg("gpuhash uses GPU %d, %s, with %llu MB of memory", cuda_device, device->info.name,
					(unsigned long long) (device->info.memory_total / 1024 / 1024))));
	serve(engine);
}
