/*
 * faults.c
 *		The fault points of the service (src/service/faults.c) by their names, and what a
 *		test looks at after one: who is ready again, and whether anything is left over.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "service/faults.h"
#include "service/shared.h"
#include "store/resident_tables.h"

#include "gpuhash_test.h"

PG_FUNCTION_INFO_V1(gpuhash_fault_arm);
PG_FUNCTION_INFO_V1(gpuhash_fault_fired);
PG_FUNCTION_INFO_V1(gpuhash_fault_list);
PG_FUNCTION_INFO_V1(gpuhash_fault_leftovers);
PG_FUNCTION_INFO_V1(gpuhash_fault_paging_limit);
PG_FUNCTION_INFO_V1(gpuhash_fault_ready);

static const char *const point_names[] = {
#define NAME_OF(name, text) text,
	GH_FAULT_POINT_LIST(NAME_OF)
};

static const char *const kind_names[] = {
	"none",
	GH_FAULT_KIND_LIST(NAME_OF)
#undef NAME_OF
};

/* ---------------------------------------------------------------- arming */

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
	gh_test_needs_service();
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

/* ------------------------------------------------------------- leftovers */

static int
count_units(void)
{
	int			n = 0;

	for (uint32 i = 0; i < gh_service->units; i++)
		n += pg_atomic_read_u32(gh_unit_at(i)) != 0;
	return n;
}

static int
count_slots(void)
{
	int			n = 0;

	for (uint32 i = 0; i < gh_service->slots; i++)
		n += gh_slot_state(pg_atomic_read_u64(&gh_slot_at(i)->word)) != GH_SLOT_FREE;
	return n;
}

/* Entries but for spans, which stay; and who holds these. */
static int
count_tables(int *holds)
{
	int			n = 0;

	*holds = 0;
	for (uint32 i = 0; i < GH_TABLES_MAX; i++)
	{
		GhTableEntry *entry = gh_table_entry_at(i);

		*holds += pg_atomic_read_u32(&entry->holders);
		n += (GhTableState) gh_slot_state(pg_atomic_read_u64(&entry->word)) != GH_TABLE_FREE &&
			entry->kind != GH_ENTRY_SPAN;
	}
	return n;
}

/*
 * gpuhash_fault_leftovers(): what is taken at the moment by all, bytes by device without those of pages that stay.  Tables of
 * joins that stay are given up, so that those are left which somebody holds.
 */
Datum
gpuhash_fault_leftovers(PG_FUNCTION_ARGS)
{
	StringInfoData text;
	int			holds;
	int			tables;

	gh_test_needs_service();
	for (uint32 i = 0; i < gh_service->devices; i++)
		(void) gh_resident_tables_give_up((int) i, PG_UINT64_MAX, 0);
	initStringInfo(&text);
	tables = count_tables(&holds);
	appendStringInfo(&text, "buffers %d, slots %d, tables %d, holds %d, waiters %u, bytes", count_units(), count_slots(),
					 tables, holds, pg_atomic_read_u32(&gh_service->waiting));
	for (uint32 i = 0; i < gh_service->devices; i++)
		appendStringInfo(&text, " %llu",
						 (unsigned long long) (pg_atomic_read_u64(&gh_service->device[i].memory_used) -
											   pg_atomic_read_u64(&gh_service->device[i].resident_used) +
											   pg_atomic_read_u64(&gh_service->device[i].paging_used)));
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}

/* gpuhash_fault_paging_limit(): bytes that tables of the first device may page. */
Datum
gpuhash_fault_paging_limit(PG_FUNCTION_ARGS)
{
	gh_test_needs_service();
	PG_RETURN_INT64((int64) pg_atomic_read_u64(&gh_service->device[0].paging_limit));
}

/* gpuhash_fault_ready(): devices whose worker serves requests. */
Datum
gpuhash_fault_ready(PG_FUNCTION_ARGS)
{
	int			n = 0;

	gh_test_needs_service();
	for (uint32 i = 0; i < gh_service->devices; i++)
		n += pg_atomic_read_u32(&gh_service->device[i].state) == GH_DEVICE_READY;
	PG_RETURN_INT32(n);
}
