/*
 * faults.c
 *		Fault points of a build with FAULT_POINTS=yes: a test arms one from SQL, and
 *		the worker's threads pass it.
 *
 * gh_fault_pass calls no function of PostgreSQL: threads come here.
 */
#include "postgres.h"

#ifdef GH_FAULT_POINTS

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "service/faults.h"
#include "service/shared.h"

PG_FUNCTION_INFO_V1(gpuhash_fault_arm);
PG_FUNCTION_INFO_V1(gpuhash_fault_fired);
PG_FUNCTION_INFO_V1(gpuhash_fault_list);

static const char *const point_names[] = {
#define NAME_OF(name, text) text,
	GH_FAULT_POINT_LIST(NAME_OF)
};

static const char *const kind_names[] = {
	"none",
	GH_FAULT_KIND_LIST(NAME_OF)
#undef NAME_OF
};

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
	uint32		kind = pg_atomic_read_u32(&faults->kind);
	uint32		armed = pg_atomic_read_u32(&faults->point);

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
		case GH_FIND:
			return GH_FAULT_POINT_FIND;
		case GH_FIND_ALL:
			return GH_FAULT_POINT_FIND_ALL;
		case GH_DELETE:
			return GH_FAULT_POINT_DELETE;
		default:
			return GH_FAULT_POINT_ANY;
	}
}

static uint32
lookup(const char *const *names, uint32 count, const char *name, const char *what)
{
	for (uint32 i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("there is no fault %s \"%s\"", what, name)));
	return 0;
}

static GhFaults *
faults_of_service(void)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to use fault points")));
	if (gh_service == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("fault points need the service")));
	return &gh_service->faults;
}

/* gpuhash_fault_arm(point text, kind text, after int, times int, ms int) */
Datum
gpuhash_fault_arm(PG_FUNCTION_ARGS)
{
	GhFaults   *faults = faults_of_service();
	uint32		point = lookup(point_names, GH_FAULT_POINTS_COUNT,
							   text_to_cstring(PG_GETARG_TEXT_PP(0)), "point");
	uint32		kind = lookup(kind_names, GH_FAULT_KINDS_COUNT,
							  text_to_cstring(PG_GETARG_TEXT_PP(1)), "kind");

	pg_atomic_write_u32(&faults->kind, GH_FAULT_NONE);
	pg_atomic_write_u32(&faults->point, point);
	pg_atomic_write_u32(&faults->after, (uint32) PG_GETARG_INT32(2));
	pg_atomic_write_u32(&faults->times, (uint32) PG_GETARG_INT32(3));
	pg_atomic_write_u32(&faults->delay_ms, (uint32) PG_GETARG_INT32(4));
	pg_atomic_write_u32(&faults->fired, 0);
	pg_memory_barrier();
	pg_atomic_write_u32(&faults->kind, kind);
	PG_RETURN_VOID();
}

/* How often it happened since it was armed. */
Datum
gpuhash_fault_fired(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) pg_atomic_read_u32(&faults_of_service()->fired));
}

/* gpuhash_fault_list(what text): the names of all points, or of all kinds. */
Datum
gpuhash_fault_list(PG_FUNCTION_ARGS)
{
	bool		points = strcmp(text_to_cstring(PG_GETARG_TEXT_PP(0)), "points") == 0;
	const char *const *names = points ? point_names : kind_names + 1;
	int			count = points ? (int) GH_FAULT_POINTS_COUNT : (int) GH_FAULT_KINDS_COUNT - 1;
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < count; i++)
		appendStringInfo(&list, "%s%s", i > 0 ? "," : "", names[i]);
	PG_RETURN_TEXT_P(cstring_to_text(list.data));
}

#endif							/* GH_FAULT_POINTS */
