/*
 * executor.c
 *		The threads of a worker that talk to the device.
 *
 * Each has the tables whose number is its own modulo GH_EXECUTORS, so that a table
 * is used by one thread and its requests are done in the order of their submission.
 * A thread takes slots from its ring, checks what they ask for, hands them to the
 * engine, and polls until they are through; finds of many tables are in flight at a
 * time.  With nothing to do it looks for gpuhash.worker_spin longer and then sleeps.
 *
 * Threads call no function of PostgreSQL (atomics are none): waking sleeping clients,
 * logging and ending the process is the main thread's, which is told through a pipe.
 * What they do with a slot is in requests.c.
 */
#include "postgres.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/threads.h"

/* Empty looks at the ring between two looks at the clock. */
#define GH_LOOKS_PER_TICK 64

GhWorker	gh_worker;

static GhExecutor executors[GH_EXECUTORS];

/* Set by a thread, read by the main thread: the device is of no use any more. */
static pg_atomic_uint32 device_lost;
static GhError lost_error;

/* ------------------------------------------------------------------ losses */

void
gh_executor_tell_main(void)
{
	char		byte = 0;

	/* a full pipe wakes it, too */
	if (write(gh_worker.wake_pipe, &byte, 1) < 0)
		return;
}

void
gh_executor_declare_lost(const GhError *error)
{
	if (pg_atomic_read_u32(&device_lost) != 0)
		return;
	lost_error = *error;
	pg_write_barrier();
	pg_atomic_write_u32(&device_lost, 1);
	gh_executor_tell_main();
}

bool
gh_executors_device_lost(GhError *error)
{
	if (pg_atomic_read_u32(&device_lost) == 0)
		return false;
	pg_read_barrier();
	*error = lost_error;
	return true;
}

/* A fault point on the way of a request: what a test wants to happen, as a status. */
GhStatus
gh_executor_pass_point(GhFaultPoint point, GhError *error)
{
	GhFaultKind kind = gh_fault_pass(point);
	GhStatus	status = gh_fault_status(kind, error);

	if (kind == GH_FAULT_STICKY)
		gh_executor_declare_lost(error);
	return status;
}

/* Since when a table is being freed, by the executor that is at it longest; 0: by none. */
uint64
gh_executors_reaping_since(void)
{
	uint64		oldest = 0;

	for (int i = 0; i < GH_EXECUTORS; i++)
	{
		uint64		since = pg_atomic_read_u64(&executors[i].reaping_ns);

		if (since != 0 && (oldest == 0 || since < oldest))
			oldest = since;
	}
	return oldest;
}

/* ----------------------------------------------------------------- threads */

/* Until the main thread says that there is something to do. */
static void
sleep_executor(GhExecutor *executor)
{
	GhRing	   *ring = executor->ring;
	uint32		slot;
	uint64		generation;

	pg_atomic_write_u32(&ring->asleep, 1);
	pg_memory_barrier();
	/* what came in before the flag was seen; the main thread may have seen it, and is
	 * told to watch */
	if (gh_ring_take(ring, &slot, &generation))
	{
		pg_atomic_write_u32(&ring->asleep, 0);
		gh_executor_tell_main();
		gh_executor_start(executor, slot, generation);
		return;
	}
	if (pg_atomic_read_u32(&ring->dying) != 0)
	{
		pg_atomic_write_u32(&ring->asleep, 0);
		gh_executor_tell_main();
		return;
	}
	pthread_mutex_lock(&executor->mutex);
	while (!executor->woken)
		pthread_cond_wait(&executor->wake, &executor->mutex);
	executor->woken = false;
	pthread_mutex_unlock(&executor->mutex);
	pg_atomic_write_u32(&ring->asleep, 0);
}

static void *
executor_main(void *arg)
{
	GhExecutor   *executor = arg;
	uint64		idle_since = gh_monotonic_ns();
	uint32		looks = 0;

	for (;;)
	{
		bool		busy = false;
		uint32		slot;
		uint64		generation;

		while (gh_ring_take(executor->ring, &slot, &generation))
		{
			gh_executor_start(executor, slot, generation);
			/* what is through must not wait until no more comes */
			(void) gh_executor_poll(executor);
			busy = true;
		}
		busy |= gh_executor_poll(executor);
		busy |= gh_executor_reap(executor);
		if (busy || executor->nrunning > 0)
		{
			looks = 0;
			idle_since = 0;
			continue;
		}
		pg_spin_delay();
		if (++looks % GH_LOOKS_PER_TICK != 0)
			continue;
		if (idle_since == 0)
			idle_since = gh_monotonic_ns();
		if (gh_monotonic_ns() - idle_since >= (uint64) gh_worker_spin * 1000)
		{
			sleep_executor(executor);
			idle_since = 0;
		}
	}
	return NULL;
}

/* Whether a sleeping executor would find something; its client has appended by now. */
static bool
has_work(GhRing *ring)
{
	return pg_atomic_read_u64(&ring->head) != pg_atomic_read_u64(&ring->tail) ||
		pg_atomic_read_u32(&ring->dying) != 0;
}

void
gh_executors_wake(void)
{
	for (int i = 0; i < GH_EXECUTORS; i++)
	{
		GhExecutor   *executor = &executors[i];

		if (pg_atomic_read_u32(&executor->ring->asleep) == 0 || !has_work(executor->ring))
			continue;
		pthread_mutex_lock(&executor->mutex);
		executor->woken = true;
		/* from here on it is watched: it may never get to say so itself */
		pg_atomic_write_u32(&executor->ring->asleep, 0);
		pthread_cond_signal(&executor->wake);
		pthread_mutex_unlock(&executor->mutex);
	}
}

bool
gh_executors_asleep(void)
{
	for (int i = 0; i < GH_EXECUTORS; i++)
		if (pg_atomic_read_u32(&executors[i].ring->asleep) == 0)
			return false;
	return true;
}

/* Called once in a worker, with all signals blocked, which the threads inherit. */
bool
gh_executors_start(uint32 index, int cuda_number, const GhEngine *the_engine, int pipe_end)
{
	gh_worker.device_index = index;
	gh_worker.device = &gh_service->device[index];
	gh_worker.instance = pg_atomic_read_u64(&gh_worker.device->instance);
	gh_worker.cuda_device = cuda_number;
	gh_worker.engine = the_engine;
	gh_worker.wake_pipe = pipe_end;
	pg_atomic_init_u32(&device_lost, 0);
	gh_worker.running_by_slot = calloc(gh_service->slots, sizeof(GhRunning));
	gh_worker.tables = calloc(GH_TABLES_MAX, sizeof(GhWorkerTable));
	if (gh_worker.running_by_slot == NULL || gh_worker.tables == NULL)
		return false;
	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
		gh_worker.tables[i].number = i;
	for (uint32 i = 0; i < GH_EXECUTORS; i++)
	{
		GhExecutor   *executor = &executors[i];

		executor->number = i;
		pg_atomic_init_u64(&executor->reaping_ns, 0);
		executor->ring = &gh_worker.device->ring[i];
		executor->running = calloc(gh_service->slots, sizeof(uint32));
		if (executor->running == NULL ||
			pthread_mutex_init(&executor->mutex, NULL) != 0 ||
			pthread_cond_init(&executor->wake, NULL) != 0)
			return false;
		pg_atomic_write_u32(&executor->ring->asleep, 0);
		if (pthread_create(&executor->thread, NULL, executor_main, executor) != 0)
			return false;
	}
	return true;
}
