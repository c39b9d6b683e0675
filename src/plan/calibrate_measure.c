/*
 * calibrate_measure.c
 *		Times of joins and scans for gpuhash_calibrate.
 *
 * All happens in a subtransaction that is rolled back: tables and settings go with it.  The tables are
 * unlogged, for a device reads none of a session's own, and their rows are written frozen, on pages that are
 * all visible, as a VACUUM leaves them: rows of a transaction that is not over would be judged one by one,
 * and be slower than what the settings are about.  Nobody else can see the tables, so nobody can see the rows
 * too early.
 *
 * Joins are done by the CPU engine, in one process, whose processor time counts; scans by a device, if the
 * service has one, by the clock.  Of each time the least of several runs counts, which others on the machine
 * disturb least.
 */
#include "postgres.h"

#include <time.h>

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/resowner.h"

#include "hash.h"
#include "plan/calibrate.h"
#include "service/service.h"

#define RUNS 3					/* of a query, after one that reads its tables and makes its plan; */
#define RUNS_MS_MAX 300.0		/* fewer where they take longer */
#define MS_MAX 8000.0			/* nothing more is begun then */
#define ROWS_AT_A_TIME 500
#define OUTER_COLUMNS 4			/* a value, and a key for each inner table */

static const int inner_sizes[] = {1000, 10000, 100000};
/* the smallest tells what a start costs */
static const int outer_sizes[] = {1000, 50000, 400000};

/* So that plans are those that are to be measured. */
static const char *const measuring_settings[] = {
	"search_path = pg_catalog, pg_temp", "default_statistics_target = 10", "jit = off",
	"max_parallel_workers_per_gather = 0",
	"work_mem = '64MB'", "hash_mem_multiplier = 1", "enable_seqscan = on", "enable_hashjoin = on",
	"enable_nestloop = off", "enable_mergejoin = off", "gpuhash.enable_join = on", "gpuhash.enable_scan = on",
	"gpuhash.enable_aggregate = off", "gpuhash.enable_rows = off", "gpuhash.fallback = cpu",
	"gpuhash.engine = cpu", "gpuhash.enable_resident = off",
	"gpuhash.setup_cost = 0", "gpuhash.build_tuple_cost = 0", "gpuhash.probe_tuple_cost = 0"
};

typedef struct Calibration
{
	const char *schema;			/* quoted */
	Oid			namespace;
	double		start;			/* milliseconds of the clock */
	GhMeasurements *measured;
} Calibration;

/*
 * Of the clock, or of processors, for what this process does alone: others on the machine do not count then.
 */
static double
milliseconds_now(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		elog(ERROR, "could not read the clock: %m");
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static bool
is_late(const Calibration *calibration)
{
	return milliseconds_now(CLOCK_MONOTONIC) - calibration->start > MS_MAX;
}

static void
execute(const char *command)
{
	int			code = SPI_execute(command, false, 0);

	if (code < 0)
		elog(ERROR, "could not execute \"%s\": %s", command, SPI_result_code_string(code));
}

static void
set_local(const char *assignment)
{
	execute(psprintf("SET LOCAL %s", assignment));
}

/* ------------------------------------------------------------------- tables */

/* An inner table has the keys of 1 to its number of rows; an outer row finds one of them in each of these. */
static void
set_row(TupleTableSlot *slot, int row, bool outer)
{
	ExecClearTuple(slot);
	slot->tts_values[0] = Int64GetDatum(row);
	slot->tts_values[1] = Int64GetDatum((int64) gh_mix64(row));
	for (int c = 1; outer && c < OUTER_COLUMNS; c++)
		slot->tts_values[c] = Int64GetDatum((int64) gh_mix64(1 + gh_mix64(row + 7) % inner_sizes[c - 1]));
	memset(slot->tts_isnull, 0, sizeof(bool) * slot->tts_tupleDescriptor->natts);
	ExecStoreVirtualTuple(slot);
}

static void
fill_table(Relation relation, int rows, bool outer)
{
	TupleTableSlot *slots[ROWS_AT_A_TIME];
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash calibration",
												  ALLOCSET_DEFAULT_SIZES);

	for (int i = 0; i < ROWS_AT_A_TIME; i++)
		slots[i] = MakeSingleTupleTableSlot(RelationGetDescr(relation), table_slot_callbacks(relation));
	for (int first = 0; first < rows; first += ROWS_AT_A_TIME)
	{
		int			nrows = Min(rows - first, ROWS_AT_A_TIME);
		MemoryContext saved = MemoryContextSwitchTo(context);

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < nrows; i++)
			set_row(slots[i], first + i + 1, outer);
		table_multi_insert(relation, slots, nrows, GetCurrentCommandId(true),
						   TABLE_INSERT_SKIP_FSM | TABLE_INSERT_FROZEN, NULL);
		MemoryContextSwitchTo(saved);
		MemoryContextReset(context);
	}
	for (int i = 0; i < ROWS_AT_A_TIME; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	MemoryContextDelete(context);
}

static char *
table_name(const Calibration *calibration, bool outer, int rows)
{
	return psprintf("%s.gpuhash_calibrate_%s_%d", calibration->schema, outer ? "outer" : "inner", rows);
}

static void
make_table(const Calibration *calibration, bool outer, int rows)
{
	char	   *name = table_name(calibration, outer, rows);
	Relation	relation;

	execute(psprintf("CREATE UNLOGGED TABLE %s (v bigint, %s) USING heap", name,
					 outer ? "k0 bigint, k1 bigint, k2 bigint" : "k bigint"));
	relation = table_open(get_relname_relid(strrchr(name, '.') + 1, calibration->namespace), RowExclusiveLock);
	fill_table(relation, rows, outer);
	table_close(relation, NoLock);
	CommandCounterIncrement();
	execute(psprintf("ANALYZE %s", name));
}

/* -------------------------------------------------------------------- times */

/* The name of the first custom scan of a plan, going down; NULL: there is none. */
static const char *
custom_scan_name(const Plan *plan)
{
	for (; plan != NULL; plan = outerPlan(plan))
		if (IsA(plan, CustomScan))
			return ((const CustomScan *) plan)->methods->CustomName;
	return NULL;
}

/* Milliseconds of the query, and what its plan costs; false: this is not the plan of which they are asked. */
static bool
time_query(const char *query, const char *node, clockid_t clock, double *ms, double *cost)
{
	SPIPlanPtr	prepared = SPI_prepare(query, 0, NULL);
	CachedPlan *cached;
	const char *name;
	double		spent = 0;

	if (prepared == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", query, SPI_result_code_string(SPI_result));
	cached = SPI_plan_get_cached_plan(prepared);
	name = custom_scan_name(linitial_node(PlannedStmt, cached->stmt_list)->planTree);
	*cost = linitial_node(PlannedStmt, cached->stmt_list)->planTree->total_cost;
	/* the plan is not a saved one, which would have an owner */
	ReleaseCachedPlan(cached, NULL);
	if (node == NULL ? name != NULL : name == NULL || strcmp(name, node) != 0)
		return false;
	for (int run = 0; run <= RUNS && spent < RUNS_MS_MAX; run++)
	{
		double		start = milliseconds_now(clock);
		double		time;

		if (SPI_execute_plan(prepared, NULL, NULL, true, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not execute \"%s\"", query);
		time = milliseconds_now(clock) - start;
		SPI_freetuptable(SPI_tuptable);
		if (run == 0)
			continue;
		spent += time;
		if (run == 1 || time < *ms)
			*ms = time;
	}
	SPI_freeplan(prepared);
	return true;
}

static bool
time_join(const Calibration *calibration, int outer, int inner, GhJoinTimes *times)
{
	const char *query = psprintf("SELECT sum(o.v), sum(i.v) FROM %s o JOIN %s i ON i.k = o.k%d",
								 table_name(calibration, true, outer_sizes[outer]),
								 table_name(calibration, false, inner_sizes[inner]), inner);
	bool		there;

	times->outer_rows = outer_sizes[outer];
	times->inner_rows = inner_sizes[inner];
	set_local("gpuhash.enabled = off");
	there = time_query(query, NULL, CLOCK_PROCESS_CPUTIME_ID, &times->native_ms, &times->native_cost);
	set_local("gpuhash.enabled = on");
	set_local("gpuhash.force_offload = on");
	if (!there || !time_query(query, "GpuHashJoin", CLOCK_PROCESS_CPUTIME_ID, &times->ms, &times->other_cost))
		return false;
	elog(DEBUG1, "%d rows joined with %d: %.3f ms, cost %.1f; by GpuHashJoin %.3f ms, cost %.1f without settings",
		 outer_sizes[outer], inner_sizes[inner], times->native_ms, times->native_cost, times->ms,
		 times->other_cost);
	return true;
}

static void
time_joins(const Calibration *calibration)
{
	GhMeasurements *measured = calibration->measured;

	measured->no_joins = "the planner makes other plans of these joins here";
	for (int outer = 0; outer < lengthof(outer_sizes); outer++)
		for (int inner = 0; inner < lengthof(inner_sizes); inner++)
		{
			if (inner_sizes[inner] > outer_sizes[outer])
				continue;
			if (is_late(calibration))
			{
				measured->no_joins = "it took too long here";
				return;
			}
			measured->njoins += time_join(calibration, outer, inner, &measured->joins[measured->njoins]);
		}
}

/* -------------------------------------------------------------------- scans */

/* A number of the JSON that EXPLAIN printed. */
static double
number_of(const char *json, const char *label)
{
	const char *found = strstr(json, psprintf("\"%s\": ", label));

	return found != NULL ? strtod(found + strlen(label) + strlen("\"\": "), NULL) : 0;
}

/* Whether the device reads all of the table, and how many pages where they are. */
static bool
is_done_by_device(const char *query, GhScanTimes *times)
{
	const char *json;

	execute(psprintf("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) %s", query));
	json = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	SPI_freetuptable(SPI_tuptable);
	times->pages = number_of(json, "Pages");
	times->pinned = number_of(json, "Pages Pinned");
	return times->pages > 0 && strstr(json, "\"Engine\": \"cuda\"") != NULL &&
		strstr(json, "\"Fallback Reason\"") == NULL && number_of(json, "Rows Handed Back") == 0;
}

static void
time_scan(const Calibration *calibration, const char *table)
{
	GhMeasurements *measured = calibration->measured;
	GhScanTimes *times = &measured->scans[measured->nscans];
	const char *query = psprintf("SELECT sum(v) FROM %s", table);
	double		cost;

	/* once, for the tables' pages to be there */
	execute(query);
	if (is_late(calibration) || !is_done_by_device(query, times) ||
		!time_query(query, "GpuHashAggregate", CLOCK_MONOTONIC, &times->ms, &cost))
		return;
	elog(DEBUG1, "%.0f pages, %.0f of them where they are: %.3f ms", times->pages, times->pinned, times->ms);
	measured->nscans++;
}

static void
time_scans(const Calibration *calibration)
{
	GhMeasurements *measured = calibration->measured;
	bool		down;

	measured->no_scans = "without gpuhash in shared_preload_libraries the planner expects no GPU";
	if (!gh_service_enabled() || !gh_service_ready(&measured->no_scans, &down))
		return;
	set_local("gpuhash.engine = cuda");
	set_local("gpuhash.enable_aggregate = on");
	time_scan(calibration, table_name(calibration, false, inner_sizes[lengthof(inner_sizes) - 1]));
	for (int outer = 0; outer < lengthof(outer_sizes); outer++)
		time_scan(calibration, table_name(calibration, true, outer_sizes[outer]));
	measured->no_scans = is_late(calibration) ? "it took too long here" :
		"the GPU did not do the scans to their end";
}

/* ---------------------------------------------------------------------- all */

static void
measure(const Calibration *calibration)
{
	for (int i = 0; i < lengthof(measuring_settings); i++)
		set_local(measuring_settings[i]);
	for (int inner = 0; inner < lengthof(inner_sizes); inner++)
		make_table(calibration, false, inner_sizes[inner]);
	for (int outer = 0; outer < lengthof(outer_sizes); outer++)
		make_table(calibration, true, outer_sizes[outer]);
	time_joins(calibration);
	time_scans(calibration);
}

/* Whether all went well; the subtransaction is still there. */
static bool
measured_well(const Calibration *calibration, MemoryContext context, ErrorData **error)
{
	*error = NULL;
	PG_TRY();
	{
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");
		measure(calibration);
		SPI_finish();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		*error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	return *error == NULL;
}

/* In tables of this schema, which are gone then. */
void
gh_calibrate_measure(const char *schema, GhMeasurements *measured)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Calibration calibration = {.schema = quote_identifier(schema),.measured = measured};
	ErrorData  *error;
	bool		well;

	calibration.namespace = get_namespace_oid(schema, false);
	calibration.start = milliseconds_now(CLOCK_MONOTONIC);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	well = measured_well(&calibration, context, &error);
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	/* the subtransaction is ours to end: nobody above knows of it */
	if (!well)
		ReThrowError(error);
}
