/*
 * faults.c
 *		Fault points of a build with FAULT_POINTS=yes: a test arms one
 *		(test/modules/gpuhash_test/faults.c), and the worker's threads pass it.
 *
 * gh_fault_pass calls no function of PostgreSQL, but on a process's own thread: others come here, too.
 */
#include "postgres.h"

#ifdef GH_FAULT_POINTS

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/procsignal.h"

#include "service/faults.h"
#include "service/shared.h"

void
gh_faults_init(GhFaults *faults)
{
	pg_atomic_init_u32(&faults->kind, GH_FAULT_NONE);
	pg_atomic_init_u32(&faults->point, 0);
	pg_atomic_init_u32(&faults->after, 0);
	pg_atomic_init_u32(&faults->times, 0);
	pg_atomic_init_u32(&faults->delay_ms, 0);
	pg_atomic_init_u32(&faults->fired, 0);
}

/* One less, unless it is zero already: the number before. */
static uint32
count_down(pg_atomic_uint32 *counter)
{
	uint32		value = pg_atomic_read_u32(counter);

	while (value > 0 && !pg_atomic_compare_exchange_u32(counter, &value, value - 1))
		continue;
	return value;
}

static void
sleep_ms(uint32 ms)
{
	struct timespec time = {ms / 1000, (long) (ms % 1000) * 1000000};

	while (nanosleep(&time, &time) != 0)
		continue;
}

/* As a driver does that finds itself broken: in this thread, which has signals blocked. */
static void
end_by_signal(int signal)
{
	sigset_t	set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	(void) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void) raise(signal);
}

GhFaultKind
gh_fault_pass(GhFaultPoint point)
{
	GhFaults   *faults = &gh_service->faults;
	uint32		kind;
	uint32		armed;

	/* nobody arms any where the library was not preloaded */
	if (gh_service == NULL)
		return GH_FAULT_NONE;
	kind = pg_atomic_read_u32(&faults->kind);
	armed = pg_atomic_read_u32(&faults->point);
	if (kind == GH_FAULT_NONE || (armed != point && armed != GH_FAULT_POINT_ANY))
		return GH_FAULT_NONE;
	if (count_down(&faults->after) > 0 || count_down(&faults->times) == 0)
		return GH_FAULT_NONE;
	pg_atomic_fetch_add_u32(&faults->fired, 1);
	switch (kind)
	{
		case GH_FAULT_TERM:
			(void) kill(getpid(), SIGTERM);
			break;
		case GH_FAULT_KILL:
			(void) kill(getpid(), SIGKILL);
			break;
		case GH_FAULT_CRASH:
			end_by_signal(SIGABRT);
			break;
		case GH_FAULT_HANG:
			for (;;)
				sleep_ms(1000);
		case GH_FAULT_HOLD:
			while (pg_atomic_read_u32(&faults->kind) == GH_FAULT_HOLD)
			{
				/* from 19 on, a promotion waits for all sessions to do this */
				if (ProcSignalBarrierPending && InterruptHoldoffCount == 0 && syscall(SYS_gettid) == getpid())
					ProcessProcSignalBarrier();
				sleep_ms(1);
			}
			break;
		case GH_FAULT_DELAY:
			sleep_ms(pg_atomic_read_u32(&faults->delay_ms));
			break;
		default:
			break;
	}
	return (GhFaultKind) kind;
}

GhFaultPoint
gh_fault_point_of(GhOp op)
{
	switch (op)
	{
		case GH_INSERT:
			return GH_FAULT_POINT_INSERT;
		case GH_UPSERT:
			return GH_FAULT_POINT_UPSERT;
		case GH_EXCHANGE:
			return GH_FAULT_POINT_EXCHANGE;
		case GH_ADD:
			return GH_FAULT_POINT_ADD;
		case GH_BUILD:
			return GH_FAULT_POINT_BUILD;
		case GH_FIND:
			return GH_FAULT_POINT_FIND;
		case GH_COUNT:
			return GH_FAULT_POINT_COUNT;
		case GH_FIND_ALL:
			return GH_FAULT_POINT_FIND_ALL;
		case GH_DELETE:
			return GH_FAULT_POINT_DELETE;
		case GH_DELETE_ONE:
			return GH_FAULT_POINT_DELETE_ONE;
		case GH_MIXED:
			return GH_FAULT_POINT_MIXED;
		default:
			return GH_FAULT_POINT_ANY;
	}
}

#endif							/* GH_FAULT_POINTS */
