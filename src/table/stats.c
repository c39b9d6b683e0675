/*
 * stats.c
 *		SQL functions that tell about named tables and devices; the views
 *		gpuhash_tables, gpuhash_subtables and gpuhash_devices select from them.
 *
 * A table that is lost with its device has no numbers: the views show NULLs and
 * go on with the next table.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "compat.h"
#include "gpuhash.h"
#include "session.h"
#include "table/table.h"

PG_FUNCTION_INFO_V1(gpuhash_table_stats);
PG_FUNCTION_INFO_V1(gpuhash_list_tables);
PG_FUNCTION_INFO_V1(gpuhash_list_subtables);
PG_FUNCTION_INFO_V1(gpuhash_list_devices);

/* Columns of gpuhash_table_stats, in order. */
enum
{
	STAT_ENGINE,
	STAT_DEVICE,
	STAT_ENGINE_REASON,
	STAT_KEYS,
	STAT_ENTRIES,
	STAT_SUBTABLES,
	STAT_SIZES,
	STAT_FILL_FACTOR,
	STAT_FILL_MIN,
	STAT_FILL_MAX,
	STAT_RESIZES,
	STAT_UPSIZES,
	STAT_DOWNSIZES,
	STAT_BYTES,
	STAT_DEVICE_BYTES,
	STAT_BYTES_TO_DEVICE,
	STAT_BYTES_FROM_DEVICE,
	STAT_READS,
	STAT_WRITES,
	STAT_COLUMNS
};

/* Columns of gpuhash_list_tables, in order. */
enum
{
	TABLE_NAME,
	TABLE_OWNER,
	TABLE_STATUS,
	TABLE_ENGINE,
	TABLE_DEVICE,
	TABLE_VALUE_SIZE,
	TABLE_MULTI,
	TABLE_HOST_COPY,
	TABLE_KEYS,
	TABLE_ENTRIES,
	TABLE_FILL_FACTOR,
	TABLE_BYTES,
	TABLE_DEVICE_BYTES,
	TABLE_COLUMNS
};

/* Columns of gpuhash_list_subtables, in order. */
enum
{
	SUBTABLE_TABLE,
	SUBTABLE_NUMBER,
	SUBTABLE_SLOTS,
	SUBTABLE_ENTRIES,
	SUBTABLE_FILL_FACTOR,
	SUBTABLE_COLUMNS
};

/* Columns of gpuhash_list_devices, in order. */
enum
{
	DEVICE_ENGINE,
	DEVICE_NUMBER,
	DEVICE_NAME,
	DEVICE_STATUS,
	DEVICE_MEMORY_TOTAL,
	DEVICE_MEMORY_FREE,
	DEVICE_TABLES,
	DEVICE_COLUMNS
};

/* The engines that work on devices are the asynchronous ones. */
static bool
is_on_device(GhNamedTable *table)
{
	return table->main != NULL && table->main->engine->asynchronous;
}

/* Everything of the table that is in this process: a host copy, wide values. */
static Datum
host_bytes(GhNamedTable *table)
{
	return Int64GetDatum((int64) MemoryContextMemAllocated(table->context, true));
}

static Datum
sizes_array(const GhTableStats *stats)
{
	uint64		slots[GH_SUBTABLES_MAX];

	for (uint32 i = 0; i < stats->subtables; i++)
		slots[i] = stats->subtable[i].slots;
	return PointerGetDatum(gh_make_bigint_array(slots, NULL, stats->subtables));
}

Datum
gpuhash_table_stats(PG_FUNCTION_ARGS)
{
	GhNamedTable *table = gh_table_arg(fcinfo);
	GhTableStats stats;
	GhError		error = {0};
	TupleDesc	columns;
	Datum		row[STAT_COLUMNS];
	bool		nulls[STAT_COLUMNS] = {false};

	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(columns->natts == STAT_COLUMNS);
	if (!gh_read_stats(table, &stats, &error))
	{
		if (table->main == NULL)
			gh_table_report_lost(table);
		gh_table_report(table, table->main->engine, &error, "read the statistics of");
	}

	row[STAT_ENGINE] = CStringGetTextDatum(table->main->engine->name);
	row[STAT_DEVICE] = Int32GetDatum(table->device);
	nulls[STAT_DEVICE] = !is_on_device(table);
	nulls[STAT_ENGINE_REASON] = table->reason == NULL;
	row[STAT_ENGINE_REASON] = table->reason == NULL ? (Datum) 0 :
		CStringGetTextDatum(table->reason);
	row[STAT_KEYS] = Int64GetDatum((int64) stats.keys);
	row[STAT_ENTRIES] = Int64GetDatum((int64) stats.values);
	row[STAT_SUBTABLES] = Int32GetDatum((int32) stats.subtables);
	row[STAT_SIZES] = sizes_array(&stats);
	row[STAT_FILL_FACTOR] = Float8GetDatum(stats.fill);
	row[STAT_FILL_MIN] = Float8GetDatum(stats.fill_min);
	row[STAT_FILL_MAX] = Float8GetDatum(stats.fill_max);
	row[STAT_RESIZES] = Int64GetDatum((int64) (stats.upsizes + stats.downsizes));
	row[STAT_UPSIZES] = Int64GetDatum((int64) stats.upsizes);
	row[STAT_DOWNSIZES] = Int64GetDatum((int64) stats.downsizes);
	row[STAT_BYTES] = host_bytes(table);
	row[STAT_DEVICE_BYTES] = Int64GetDatum(is_on_device(table) ? (int64) stats.bytes : 0);
	row[STAT_BYTES_TO_DEVICE] = Int64GetDatum((int64) stats.bytes_to_device);
	row[STAT_BYTES_FROM_DEVICE] = Int64GetDatum((int64) stats.bytes_from_device);
	row[STAT_READS] = Int64GetDatum((int64) stats.reads);
	row[STAT_WRITES] = Int64GetDatum((int64) stats.writes);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), row, nulls)));
}

/* ------------------------------------------------------------------- views */

static void
emit_table(ReturnSetInfo *result, GhNamedTable *table)
{
	Datum		row[TABLE_COLUMNS] = {0};
	bool		nulls[TABLE_COLUMNS] = {false};
	GhTableStats stats;
	GhError		error = {0};
	bool		known = gh_read_stats(table, &stats, &error);

	row[TABLE_NAME] = CStringGetTextDatum(table->name);
	row[TABLE_OWNER] = ObjectIdGetDatum(table->owner);
	row[TABLE_STATUS] = CStringGetTextDatum(known ? "ready" : "lost");
	row[TABLE_ENGINE] = CStringGetTextDatum(table->main == NULL ? "" : table->main->engine->name);
	nulls[TABLE_ENGINE] = table->main == NULL;
	row[TABLE_DEVICE] = Int32GetDatum(table->device);
	nulls[TABLE_DEVICE] = !is_on_device(table);
	row[TABLE_VALUE_SIZE] = Int32GetDatum(table->value_size);
	row[TABLE_MULTI] = BoolGetDatum(table->multi);
	row[TABLE_HOST_COPY] = BoolGetDatum(table->host_copy);
	row[TABLE_BYTES] = host_bytes(table);
	if (known)
	{
		row[TABLE_KEYS] = Int64GetDatum((int64) stats.keys);
		row[TABLE_ENTRIES] = Int64GetDatum((int64) stats.values);
		row[TABLE_FILL_FACTOR] = Float8GetDatum(stats.fill);
		row[TABLE_DEVICE_BYTES] = Int64GetDatum(is_on_device(table) ? (int64) stats.bytes : 0);
	}
	else
		nulls[TABLE_KEYS] = nulls[TABLE_ENTRIES] = nulls[TABLE_FILL_FACTOR] =
			nulls[TABLE_DEVICE_BYTES] = true;
	tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
}

Datum
gpuhash_list_tables(PG_FUNCTION_ARGS)
{
	GhNamedTable **tables;
	int			count;

	InitMaterializedSRF(fcinfo, 0);
	tables = gh_table_list(&count);
	for (int i = 0; i < count; i++)
		emit_table((ReturnSetInfo *) fcinfo->resultinfo, tables[i]);
	return (Datum) 0;
}

static void
emit_subtables(ReturnSetInfo *result, GhNamedTable *table)
{
	GhTableStats stats;
	GhError		error = {0};

	if (!gh_read_stats(table, &stats, &error))
		return;
	for (uint32 i = 0; i < stats.subtables; i++)
	{
		const GhSubtableStats *subtable = &stats.subtable[i];
		Datum		row[SUBTABLE_COLUMNS];
		bool		nulls[SUBTABLE_COLUMNS] = {false};

		row[SUBTABLE_TABLE] = CStringGetTextDatum(table->name);
		row[SUBTABLE_NUMBER] = Int32GetDatum((int32) i);
		row[SUBTABLE_SLOTS] = Int64GetDatum((int64) subtable->slots);
		row[SUBTABLE_ENTRIES] = Int64GetDatum((int64) subtable->entries);
		row[SUBTABLE_FILL_FACTOR] = Float8GetDatum(subtable->slots == 0 ? 0.0 :
												   (double) subtable->entries / subtable->slots);
		tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
	}
}

Datum
gpuhash_list_subtables(PG_FUNCTION_ARGS)
{
	GhNamedTable **tables;
	int			count;

	InitMaterializedSRF(fcinfo, 0);
	tables = gh_table_list(&count);
	for (int i = 0; i < count; i++)
		emit_subtables((ReturnSetInfo *) fcinfo->resultinfo, tables[i]);
	return (Datum) 0;
}

/* ----------------------------------------------------------------- devices */

static int64
count_tables(bool on_device, int device)
{
	int			count;
	GhNamedTable **tables = gh_table_list(&count);
	int64		n = 0;

	for (int i = 0; i < count; i++)
		if (tables[i]->main != NULL && is_on_device(tables[i]) == on_device &&
			(!on_device || tables[i]->device == device))
			n++;
	return n;
}

/* device < 0: no number.  info NULL: nothing known of it but the status. */
static void
emit_device(ReturnSetInfo *result, const char *engine, int device,
			const GhDeviceInfo *info, const char *status)
{
	Datum		row[DEVICE_COLUMNS] = {0};
	bool		nulls[DEVICE_COLUMNS] = {false};

	row[DEVICE_ENGINE] = CStringGetTextDatum(engine);
	row[DEVICE_NUMBER] = Int32GetDatum(device);
	nulls[DEVICE_NUMBER] = device < 0;
	row[DEVICE_STATUS] = CStringGetTextDatum(status);
	row[DEVICE_TABLES] = Int64GetDatum(count_tables(strcmp(engine, "cpu") != 0, device));
	nulls[DEVICE_NAME] = nulls[DEVICE_MEMORY_TOTAL] = nulls[DEVICE_MEMORY_FREE] = info == NULL;
	if (info != NULL)
	{
		row[DEVICE_NAME] = CStringGetTextDatum(info->name);
		row[DEVICE_MEMORY_TOTAL] = Int64GetDatum((int64) info->memory_total);
		row[DEVICE_MEMORY_FREE] = Int64GetDatum((int64) info->memory_free);
	}
	tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
}

/*
 * Asking a device takes a CUDA context on it, 0.5 GB of its memory.  Only the
 * one that this session uses is asked.
 */
static void
emit_cuda_devices(ReturnSetInfo *result)
{
	const GhEngine *engine;
	GhTableOptions options;
	GhError		error = {0};
	int			count = 0;

	if (gh_engine_setting == GH_ENGINE_CPU)
	{
		emit_device(result, "cuda", -1, NULL, "not asked for: \"gpuhash.engine\" is \"cpu\"");
		return;
	}
	engine = gh_cuda_engine_open(false, &error);
	if (engine == NULL || engine->device_count(&count, &error) != GH_OK)
	{
		emit_device(result, "cuda", -1, NULL, error.message);
		return;
	}
	gh_options_init(&options, engine);
	for (int device = 0; device < count; device++)
	{
		GhDeviceInfo info;

		if (device != options.device)
			emit_device(result, engine->name, device, NULL, "not used by this session");
		else if (engine->device_info(device, &info, &error) == GH_OK)
			emit_device(result, engine->name, device, &info, "ready");
		else
			emit_device(result, engine->name, device, NULL, error.message);
	}
}

Datum
gpuhash_list_devices(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	emit_device(result, gh_cpu_engine()->name, -1, NULL, "ready");
	emit_cuda_devices(result);
	return (Datum) 0;
}
