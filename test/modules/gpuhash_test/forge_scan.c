/*
 * forge_scan.c
 *		Requests on scans that no client of ours would make.
 *
 * gpuhash_forge_hold_scan makes a scan, the table of another one, a scan with a right join, and a buffer of this session;
 * gpuhash_forge_scan, of this or another session, has a scan do one page, with anything changed;
 * gpuhash_forge_plans has scans made by damaged plans.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/builtins.h"

#include "compat.h"
#include "service/placement.h"
#include "service/plan.h"

#include "forge.h"
#include "scan_trial.h"

PG_FUNCTION_INFO_V1(gpuhash_forge_hold_scan);
PG_FUNCTION_INFO_V1(gpuhash_forge_scan);
PG_FUNCTION_INFO_V1(gpuhash_forge_plans);

/* Where things are in the buffer of a forged request. */
#define BACK_AT 4096

static GhScan *held_scan = NULL;
static GhScan *held_table = NULL;
static GhScan *held_right = NULL;
static char *held_buffer = NULL;

/*
 * gpuhash_forge_hold_scan(): "slot scan generation table generation right generation", the slot being that of a
 * buffer, the table one that was made, of no rows, and right a scan whose last join asks for these rows without
 * a match.
 */
Datum
gpuhash_forge_hold_scan(PG_FUNCTION_ARGS)
{
	GhTrialPlan plan;
	GhScanTable made;
	GhError		error;
	void	   *buffer;
	uint32		slot;
	const GhServiceScan *scan;
	const GhServiceScan *table;
	const GhServiceScan *right;

	if (!superuser() || gh_service == NULL || held_scan != NULL)
		elog(ERROR, "this session cannot hold a scan, or holds one already");
	gh_trial_plan(&plan, false);
	gh_trial_table(&plan);
	plan.options.marks_matches = 1;
	held_table = gh_trial_make(&plan);
	if (gh_service_scans.make_table(held_table, &made, &error) != GH_OK)
		gh_report_error(&error, "make the table of the test");
	gh_trial_plan(&plan, false);
	gh_trial_groups(&plan, false);
	held_scan = gh_trial_make(&plan);
	gh_trial_plan(&plan, true);
	gh_trial_groups(&plan, true);
	gh_trial_join(&plan, held_table);
	plan.join.kind = GH_SCAN_RIGHT;
	held_right = gh_trial_make(&plan);
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &slot))
		elog(ERROR, "no buffer is free");
	held_buffer = buffer;
	scan = (const GhServiceScan *) held_scan;
	table = (const GhServiceScan *) held_table;
	right = (const GhServiceScan *) held_right;
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%u %u %llu %u %llu %u %llu", slot, scan->entry.table, (unsigned long long) scan->entry.generation,
											  table->entry.table, (unsigned long long) table->entry.generation,
											  right->entry.table, (unsigned long long) right->entry.generation)));
}

/* ---------------------------------------------------------------------- pages */

static void
fill_honest(GhSlot *slot, uint32 table, uint64 generation)
{
	slot->device = gh_table_entry_at(table % GH_TABLES_MAX)->device;
	slot->op = GH_SERVICE_SCAN;
	slot->table = table;
	slot->table_generation = generation;
	slot->count = 1;
	slot->pages = 0;
	slot->bitmaps = GH_NO_ARRAY;
	slot->nbitmaps = 0;
	slot->back = BACK_AT;
	slot->back_room = MaxHeapTuplesPerPage;
	slot->unmatched = 0;
	slot->first_row = slot->nrows = 0;
	slot->block = BACK_AT;
	memset(&slot->cursor, 0, sizeof(slot->cursor));
}

/*
 * gpuhash_forge_scan(relation oid, scan int, generation bigint, page text, offset bigint, fields
 * text): a request of one page, the relation's first if its address is "own" + 0, with some
 * fields changed.
 */
Datum
gpuhash_forge_scan(PG_FUNCTION_ARGS)
{
	const char *answer = "not answered";
	GhScanPage *list;
	void	   *buffer;
	uint32		number;
	uint32		device;
	GhSlot	   *slot;

	if (!superuser() || gh_service == NULL)
		elog(ERROR, "must be superuser, in a server with the service, to test it");
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	list = buffer;
	gh_forge_copy_page(PG_GETARG_OID(0), (char *) buffer + GH_FORGE_PAGE_AT);
	memset(list, 0, sizeof(*list));
	list->lines = PageGetMaxOffsetNumber((Page) ((char *) buffer + GH_FORGE_PAGE_AT));
	list->bitmap = GH_SCAN_ALL;
	list->block = list->hinted = 0;
	list->page = (const void *) ((uintptr_t) gh_forge_address(text_to_cstring(PG_GETARG_TEXT_PP(3)), buffer) +
								 (uintptr_t) PG_GETARG_INT64(4));
	slot = gh_slot_at(number);
	fill_honest(slot, (uint32) PG_GETARG_INT32(1), (uint64) PG_GETARG_INT64(2));
	device = slot->device;
	gh_forge_fields(slot, text_to_cstring(PG_GETARG_TEXT_PP(5)));
	if (gh_forge_submit(number, device, number))
		answer = slot->status != GH_OK ? psprintf("refused: %s", slot->error.message) :
			psprintf("done, %llu counted, %llu back", (unsigned long long) slot->counted,
					 (unsigned long long) slot->nback);
	gh_service_return(buffer);
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}

/* ---------------------------------------------------------------------- plans */

/* Has a scan made by the block; false: it was refused. */
static bool
make_by(const void *block, Size bytes, uint64 count, char *buffer, uint32 number, char *message)
{
	GhSlot	   *slot = gh_slot_at(number);
	uint32		executor = ((const GhServiceScan *) held_table)->entry.table % GH_EXECUTORS;
	uint32		device = gh_table_entry_at(((const GhServiceScan *) held_table)->entry.table)->device;
	uint32		table;
	uint64		generation;
	bool		made;

	if (!gh_client_entry_take(device, gh_my_procno(), GH_ENTRY_SCAN, (int) executor, &table, &generation))
		elog(ERROR, "no entry is free");
	memcpy(buffer, block, bytes);
	fill_honest(slot, table, generation);
	slot->op = GH_SERVICE_SCAN_CREATE;
	slot->block = 0;
	slot->count = count;
	made = gh_forge_submit(number, device, number) && slot->status == GH_OK;
	if (!made)
		strlcpy(message, slot->error.message, GH_MESSAGE_SIZE);
	gh_client_entry_drop(table, generation);
	return made;
}

/*
 * gpuhash_forge_plans(times int, seed bigint): plans of a scan with a join, damaged; "made n,
 * refused n", and what the last refusal said.
 */
Datum
gpuhash_forge_plans(PG_FUNCTION_ARGS)
{
	int32		times = PG_GETARG_INT32(0);
	GhPlanTable tables[GH_SCAN_JOINS_MAX] = {{0}};
	GhTrialPlan plan;
	pg_prng_state random;
	char		message[GH_MESSAGE_SIZE] = "";
	char	   *good;
	char	   *block;
	void	   *buffer;
	Size		bytes;
	uint32		number;
	int			made = 0;

	if (held_table == NULL)
		elog(ERROR, "this session holds no table");
	pg_prng_seed(&random, (uint64) PG_GETARG_INT64(1));
	gh_trial_plan(&plan, true);
	gh_trial_groups(&plan, true);
	gh_trial_join(&plan, held_table);
	tables[0].table = ((const GhServiceScan *) held_table)->entry.table;
	tables[0].generation = ((const GhServiceScan *) held_table)->entry.generation;
	bytes = gh_plan_write(&plan.options, NULL, NULL);
	good = palloc0(bytes);
	block = palloc0(bytes);
	(void) gh_plan_write(&plan.options, tables, good);
	if (!gh_service_reserve(1, GH_UNIT_BYTES, &buffer) || !gh_buffer_slot(buffer, &number))
		elog(ERROR, "no buffer is free");
	for (int32 i = 0; i < times; i++)
	{
		uint64		count = bytes;

		memcpy(block, good, bytes);
		if (i > 0)
			gh_forge_damage(block, bytes, &random);
		if (i > 0 && pg_prng_uint64_range(&random, 0, 9) == 0)
			count = pg_prng_uint64_range(&random, 0, 2 * GH_UNIT_BYTES);
		made += make_by(block, bytes, count, buffer, number, message);
		/* the first one is good */
		if (made == 0)
			break;
	}
	gh_service_return(buffer);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("made %d, refused %d: %s", made, times - made, message)));
}
