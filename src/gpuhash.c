/*
 * gpuhash.c
 *		_PG_init: settings and hooks, nothing else.
 *
 * The library is active in a session that loads it: through
 * session_preload_libraries, LOAD, or one of the SQL functions.  In
 * shared_preload_libraries it is loaded once and active in every session.
 */
#include "postgres.h"

#include <float.h>
#include <limits.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"

#include "aggregate/node.h"
#include "engine/engine.h"
#include "expr/key.h"
#include "gpuhash.h"
#include "heap/hints.h"
#include "index/copy.h"
#include "index/index.h"
#include "index/touched.h"
#include "join/join.h"
#include "plan/keys_path.h"
#include "plan/planning.h"
#include "plan/why.h"
#include "rows/node.h"
#include "scan/node.h"
#include "service/service.h"
#include "store/store.h"
#include "table/table.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

bool		gh_enabled = true;
bool		gh_enable_join = true;
bool		gh_enable_scan = true;
bool		gh_enable_aggregate = true;
bool		gh_enable_rows = true;
bool		gh_enable_inline = true;
bool		gh_enable_unnest = true;
bool		gh_enable_index = true;
bool		gh_enable_key_values = true;
bool		gh_enable_resident = true;
int			gh_engine_setting = GH_ENGINE_AUTO;
int			gh_fallback_setting = GH_FALLBACK_CPU;
bool		gh_force_offload = false;
bool		gh_explain_why = false;
int			gh_devices_per_query = GH_DEVICES_PER_QUERY_DEFAULT;
int			gh_batch_rows = GH_BATCH_ROWS_DEFAULT;
int			gh_subtables = GH_SUBTABLES_DEFAULT;
double		gh_fill_min = GH_FILL_MIN_DEFAULT;
double		gh_fill_max = GH_FILL_MAX_DEFAULT;
double		gh_setup_cost = GH_SETUP_COST_DEFAULT;
double		gh_build_tuple_cost = GH_BUILD_TUPLE_COST_DEFAULT;
double		gh_probe_tuple_cost = GH_PROBE_TUPLE_COST_DEFAULT;
double		gh_device_page_cost = GH_DEVICE_PAGE_COST_DEFAULT;
double		gh_device_bus_cost = GH_DEVICE_BUS_COST_DEFAULT;
double		gh_device_start_cost = GH_DEVICE_START_COST_DEFAULT;
int			gh_device_memory_limit = -1;
int			gh_paging_memory = -1;

static const struct config_enum_entry engine_options[] = {
	{"auto", GH_ENGINE_AUTO, false},
	{"cuda", GH_ENGINE_CUDA, false},
	{"cpu", GH_ENGINE_CPU, false},
	{NULL, 0, false}
};

static const struct config_enum_entry fallback_options[] = {
	{"cpu", GH_FALLBACK_CPU, false},
	{"error", GH_FALLBACK_ERROR, false},
	{NULL, 0, false}
};

/* Plans that were kept were made with the other value: of prepared statements, and of functions in PL/pgSQL. */
static void
forget_plans(bool enabled, void *extra)
{
	if (enabled != gh_enabled)
		ResetPlanCache();
}

static void
define_switches(void)
{
	DefineCustomBoolVariable("gpuhash.enabled",
							 "Lets gpuhash take part in planning.",
							 "The one off switch: when off, every plan is PostgreSQL's own.",
							 &gh_enabled,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 forget_plans,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_join",
							 "Lets the planner consider GpuHashJoin.",
							 NULL,
							 &gh_enable_join,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_aggregate",
							 "Lets the planner consider GpuHashAggregate.",
							 NULL,
							 &gh_enable_aggregate,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_rows",
							 "Lets the planner consider GpuHashRows, which returns the rows of joins that the GPU does.",
							 NULL,
							 &gh_enable_rows,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_inline",
							 "Lets queries be planned with queries in WITH that are read more than once inlined, too.",
							 "The cheaper plan is taken.",
							 &gh_enable_inline,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_unnest",
							 "Lets queries be planned with correlated subqueries, and sides of a UNION ALL, as groups, too.",
							 "The cheaper plan is taken.",
							 &gh_enable_unnest,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_index",
							 "Lets joins use copies of indexes of the access method gpuhash, and make them.",
							 NULL,
							 &gh_enable_index,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_key_values",
							 "Lets the planner look up which keys of small tables their conditions leave, to estimate joins.",
							 NULL,
							 &gh_enable_key_values,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_resident",
							 "Lets queries use pages of tables that are on a GPU, or their columns in memory, and leave them there.",
							 NULL,
							 &gh_enable_resident,
							 true,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.enable_scan",
							 "Lets the planner consider GpuHashScan, and GpuHashJoin and GpuHashAggregate read the pages of a table by themselves.",
							 "When off, tables are scanned by PostgreSQL's executor alone.",
							 &gh_enable_scan,
							 true,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.force_offload",
							 "Chooses GpuHashScan, GpuHashJoin, GpuHashRows and GpuHashAggregate wherever they are legal, whatever they cost.",
							 "For tests.",
							 &gh_force_offload,
							 false,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomBoolVariable("gpuhash.explain_why",
							 "EXPLAIN says why scans, joins and aggregates stay with PostgreSQL.",
							 NULL,
							 &gh_explain_why,
							 false,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomEnumVariable("gpuhash.engine",
							 "The hash table engine: auto, cuda or cpu.",
							 "auto takes the GPU where there is one and the work is large enough.",
							 &gh_engine_setting,
							 GH_ENGINE_AUTO,
							 engine_options,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomEnumVariable("gpuhash.fallback",
							 "What a query does when the GPU fails under it: cpu or error.",
							 NULL,
							 &gh_fallback_setting,
							 GH_FALLBACK_CPU,
							 fallback_options,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomIntVariable("gpuhash.devices_per_query",
							"GPUs that a query's pages are divided among, at most.",
							"Of the service. With 1, each query uses one.",
							&gh_devices_per_query,
							GH_DEVICES_PER_QUERY_DEFAULT,
							GH_DEVICES_PER_QUERY_MIN,
							GH_DEVICES_PER_QUERY_MAX,
							PGC_USERSET,
							GUC_EXPLAIN,
							NULL,
							NULL,
							NULL);
}

static void
define_table_settings(void)
{
	DefineCustomIntVariable("gpuhash.batch_rows",
							"Outer rows that GpuHashJoin probes at a time.",
							NULL,
							&gh_batch_rows,
							GH_BATCH_ROWS_DEFAULT,
							GH_BATCH_ROWS_MIN,
							GH_BATCH_ROWS_MAX,
							PGC_USERSET,
							0,
							NULL,
							NULL,
							NULL);
	DefineCustomIntVariable("gpuhash.subtables",
							"Subtables of a new hash table.",
							NULL,
							&gh_subtables,
							GH_SUBTABLES_DEFAULT,
							GH_SUBTABLES_MIN,
							GH_SUBTABLES_MAX,
							PGC_USERSET,
							0,
							NULL,
							NULL,
							NULL);
	DefineCustomRealVariable("gpuhash.fill_min",
							 "Filled factor below which a hash table shrinks.",
							 "Must be less than d / (d + 1) of gpuhash.fill_max for d subtables.",
							 &gh_fill_min,
							 GH_FILL_MIN_DEFAULT,
							 GH_FILL_MIN_MIN,
							 GH_FILL_MAX_MAX,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomRealVariable("gpuhash.fill_max",
							 "Filled factor above which a hash table grows.",
							 NULL,
							 &gh_fill_max,
							 GH_FILL_MAX_DEFAULT,
							 GH_FILL_MAX_MIN,
							 GH_FILL_MAX_MAX,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
}

static void
define_limits(void)
{
	DefineCustomIntVariable("gpuhash.device_memory_limit",
							"Device memory that hash tables may take.",
							"-1: as much as the device has. For all tables of a GPU with the service, else for each.",
							&gh_device_memory_limit,
							-1,
							-1,
							INT_MAX,
							process_shared_preload_libraries_in_progress ? PGC_SIGHUP : PGC_SUSET,
							GUC_UNIT_MB,
							NULL,
							NULL,
							NULL);
	DefineCustomIntVariable("gpuhash.paging_memory",
							"Page-locked memory for the part of hash tables that a GPU has no memory for.",
							"-1: a quarter of the machine's, shared by its GPUs, 64 GB at most. For all tables of a GPU with the service, else of each session, a sixteenth of that.",
							&gh_paging_memory,
							-1,
							-1,
							INT_MAX,
							process_shared_preload_libraries_in_progress ? PGC_SIGHUP : PGC_SUSET,
							GUC_UNIT_MB,
							NULL,
							NULL,
							NULL);
}

static void
define_costs(void)
{
	DefineCustomRealVariable("gpuhash.setup_cost",
							 "Planner's cost of starting a GpuHashScan, GpuHashJoin or GpuHashAggregate.",
							 NULL,
							 &gh_setup_cost,
							 GH_SETUP_COST_DEFAULT,
							 0,
							 DBL_MAX,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomRealVariable("gpuhash.build_tuple_cost",
							 "Planner's cost of storing one inner row.",
							 NULL,
							 &gh_build_tuple_cost,
							 GH_BUILD_TUPLE_COST_DEFAULT,
							 0,
							 DBL_MAX,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomRealVariable("gpuhash.probe_tuple_cost",
							 "Planner's cost of looking up one outer row.",
							 NULL,
							 &gh_probe_tuple_cost,
							 GH_PROBE_TUPLE_COST_DEFAULT,
							 0,
							 DBL_MAX,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
}

/* Of scans by a GPU; those of joins are above. */
static void
define_device_costs(void)
{
	DefineCustomRealVariable("gpuhash.device_page_cost",
							 "Planner's cost of a process supplying one page to a GPU.",
							 NULL,
							 &gh_device_page_cost,
							 GH_DEVICE_PAGE_COST_DEFAULT,
							 0,
							 DBL_MAX,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomRealVariable("gpuhash.device_bus_cost",
							 "Planner's cost of one page on its way to a GPU, which processes share.",
							 NULL,
							 &gh_device_bus_cost,
							 GH_DEVICE_BUS_COST_DEFAULT,
							 0,
							 DBL_MAX,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
	DefineCustomRealVariable("gpuhash.device_start_cost",
							 "Planner's cost of starting a scan by a GPU, and of fetching its results.",
							 NULL,
							 &gh_device_start_cost,
							 GH_DEVICE_START_COST_DEFAULT,
							 0,
							 DBL_MAX,
							 PGC_USERSET,
							 GUC_EXPLAIN,
							 NULL,
							 NULL,
							 NULL);
}

void
_PG_init(void)
{
	define_switches();
	define_table_settings();
	define_limits();
	define_costs();
	define_device_costs();
	if (process_shared_preload_libraries_in_progress)
	{
		gh_service_init();
		gh_service_add_memory("gpuhash buffer hints", gh_hints_shmem_size, gh_hints_shmem_init);
	}
	else
		gh_service_define_settings();
	MarkGUCPrefixReserved("gpuhash");
	gh_rowscan_register();
	gh_keys_register();
	gh_join_register();
	gh_aggregate_register();
	gh_rows_register();
	gh_key_init();
	gh_rowscan_init();
	gh_keys_init();
	gh_key_values_init();
	gh_join_init();
	gh_aggregate_init();
	gh_plan_choice_init();
	gh_in_memory_init();
	gh_why_init();
	gh_store_init();
	gh_index_init();
	gh_touched_init();
	gh_index_copy_init();
	gh_tables_init();
}
