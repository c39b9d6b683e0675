/*
 * stats.c
 *		SQL functions that tell about named tables and devices; the views
 *		gpuhash_tables, gpuhash_subtables and gpuhash_devices select from them.
 *
 * A table that is lost with its device has no numbers: the views show NULLs and
 * go on with the next table.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "gpuhash.h"
#include "result_rows.h"
#include "service/placement.h"
#include "service/service.h"
#include "service/stats.h"
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
	STAT_READS_CACHED,
	STAT_READS_PAGED,
	STAT_WRITES,
	STAT_COLUMNS
};

/* Columns of gpuhash_list_tables, in order. */
enum
{
	TABLE_NAME,
	TABLE_OWNER,
	TABLE_GRANTS,
	TABLE_STATUS,
	TABLE_ENGINE,
	TABLE_DEVICE,
	TABLE_KEY_SIZE,
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
	SUBTABLE_BYTES,
	SUBTABLE_DEVICE_BYTES,
	SUBTABLE_COLUMNS
};

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
	GhStoredInfo info;
	GhTableNumbers numbers;
	const GhTableStats *stats = &numbers.stats;
	TupleDesc	columns = gh_row_type(fcinfo, "titlliLffflllllllllll");
	Datum		row[STAT_COLUMNS];
	bool		nulls[STAT_COLUMNS] = {false};

	gh_table_arg(fcinfo, GH_MAY_READ, &info);
	if (!gh_read_numbers(&info, &numbers))
		gh_table_report_missing(info.key.name);
	if (numbers.lost)
		gh_table_report_lost(info.key.name);
	if (numbers.unknown)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not read the statistics of hash table \"%s\": its GPU does not answer", info.key.name),
				 errhint("Look at the view gpuhash_devices.")));

	row[STAT_ENGINE] = CStringGetTextDatum(numbers.engine);
	row[STAT_DEVICE] = Int32GetDatum(gh_service_device_number(numbers.device));
	nulls[STAT_DEVICE] = numbers.device < 0;
	row[STAT_ENGINE_REASON] = CStringGetTextDatum(numbers.reason);
	nulls[STAT_ENGINE_REASON] = numbers.reason[0] == '\0';
	row[STAT_KEYS] = Int64GetDatum((int64) stats->keys);
	row[STAT_ENTRIES] = Int64GetDatum((int64) stats->values);
	row[STAT_SUBTABLES] = Int32GetDatum((int32) stats->subtables);
	row[STAT_SIZES] = sizes_array(stats);
	row[STAT_FILL_FACTOR] = Float8GetDatum(stats->fill);
	row[STAT_FILL_MIN] = Float8GetDatum(stats->fill_min);
	row[STAT_FILL_MAX] = Float8GetDatum(stats->fill_max);
	row[STAT_RESIZES] = Int64GetDatum((int64) (stats->upsizes + stats->downsizes));
	row[STAT_UPSIZES] = Int64GetDatum((int64) stats->upsizes);
	row[STAT_DOWNSIZES] = Int64GetDatum((int64) stats->downsizes);
	row[STAT_BYTES] = Int64GetDatum((int64) numbers.host_bytes);
	row[STAT_DEVICE_BYTES] = Int64GetDatum((int64) numbers.device_bytes);
	row[STAT_BYTES_TO_DEVICE] = Int64GetDatum((int64) numbers.bytes_to_device);
	row[STAT_BYTES_FROM_DEVICE] = Int64GetDatum((int64) numbers.bytes_from_device);
	row[STAT_READS] = Int64GetDatum((int64) numbers.reads);
	row[STAT_READS_CACHED] = Int64GetDatum((int64) stats->reads_cached);
	row[STAT_READS_PAGED] = Int64GetDatum((int64) stats->reads_paged);
	row[STAT_WRITES] = Int64GetDatum((int64) numbers.writes);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(columns, row, nulls)));
}

/* ------------------------------------------------------------------- views */

typedef void (*EmitTable) (ReturnSetInfo *result, const GhStoredInfo *info, const GhRights *rights,
						   const GhTableNumbers *numbers);

static void
emit_table(ReturnSetInfo *result, const GhStoredInfo *info, const GhRights *rights,
		   const GhTableNumbers *numbers)
{
	Datum		row[TABLE_COLUMNS] = {0};
	bool		nulls[TABLE_COLUMNS] = {false};
	const GhTableStats *stats = &numbers->stats;

	row[TABLE_NAME] = CStringGetTextDatum(info->key.name);
	row[TABLE_OWNER] = ObjectIdGetDatum(rights->owner);
	row[TABLE_GRANTS] = PointerGetDatum(gh_grants_array(rights));
	row[TABLE_STATUS] = CStringGetTextDatum(numbers->lost ? "lost" :
												numbers->unknown ? "no answer" : "ready");
	row[TABLE_DEVICE] = Int32GetDatum(gh_service_device_number(numbers->device));
	nulls[TABLE_DEVICE] = numbers->device < 0;
	row[TABLE_KEY_SIZE] = Int32GetDatum(info->key_size);
	row[TABLE_VALUE_SIZE] = Int32GetDatum(info->value_size);
	row[TABLE_MULTI] = BoolGetDatum(info->multi);
	row[TABLE_HOST_COPY] = BoolGetDatum(info->host_copy);
	row[TABLE_BYTES] = Int64GetDatum((int64) numbers->host_bytes);
	if (numbers->unknown)
		nulls[TABLE_ENGINE] = nulls[TABLE_KEYS] = nulls[TABLE_ENTRIES] =
			nulls[TABLE_FILL_FACTOR] = nulls[TABLE_DEVICE_BYTES] = true;
	else
	{
		row[TABLE_ENGINE] = CStringGetTextDatum(numbers->engine);
		row[TABLE_KEYS] = Int64GetDatum((int64) stats->keys);
		row[TABLE_ENTRIES] = Int64GetDatum((int64) stats->values);
		row[TABLE_FILL_FACTOR] = Float8GetDatum(stats->fill);
		row[TABLE_DEVICE_BYTES] = Int64GetDatum((int64) numbers->device_bytes);
	}
	tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
}

static void
emit_subtables(ReturnSetInfo *result, const GhStoredInfo *info, const GhRights *rights,
			   const GhTableNumbers *numbers)
{
	(void) rights;
	/* none of a lost table */
	for (uint32 i = 0; i < numbers->stats.subtables; i++)
	{
		const GhSubtableStats *subtable = &numbers->stats.subtable[i];
		Datum		row[SUBTABLE_COLUMNS];
		bool		nulls[SUBTABLE_COLUMNS] = {false};

		row[SUBTABLE_TABLE] = CStringGetTextDatum(info->key.name);
		row[SUBTABLE_NUMBER] = Int32GetDatum((int32) i);
		row[SUBTABLE_SLOTS] = Int64GetDatum((int64) subtable->slots);
		row[SUBTABLE_ENTRIES] = Int64GetDatum((int64) subtable->entries);
		row[SUBTABLE_FILL_FACTOR] = Float8GetDatum(subtable->slots == 0 ? 0.0 :
												   (double) subtable->entries / subtable->slots);
		row[SUBTABLE_BYTES] = Int64GetDatum((int64) (numbers->parts_on_device ? subtable->bytes_paged : subtable->bytes));
		row[SUBTABLE_DEVICE_BYTES] = Int64GetDatum((int64) (numbers->parts_on_device ? subtable->bytes : 0));
		tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
	}
}

/* Rows of the tables of this database that the current user may read, or watch over. */
static Datum
emit_all(FunctionCallInfo fcinfo, const char *columns, EmitTable emit)
{
	bool		all = has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
	GhStoredInfo *tables;
	int			count;

	gh_rows_begin(fcinfo, columns);
	tables = gh_store_list(GH_STORE_TABLE, MyDatabaseId, &count);
	for (int i = 0; i < count; i++)
	{
		GhRights	rights;
		GhTableNumbers numbers;

		if (gh_store_find(&tables[i].key, &tables[i], &rights) && tables[i].ready &&
			(all || gh_privilege_of(&rights, GetUserId()) >= GH_MAY_READ) &&
			gh_read_numbers(&tables[i], &numbers))
			emit((ReturnSetInfo *) fcinfo->resultinfo, &tables[i], &rights, &numbers);
	}
	return (Datum) 0;
}

Datum
gpuhash_list_tables(PG_FUNCTION_ARGS)
{
	return emit_all(fcinfo, "toTttiiibbllfll", emit_table);
}

Datum
gpuhash_list_subtables(PG_FUNCTION_ARGS)
{
	return emit_all(fcinfo, "tillfll", emit_subtables);
}

/* ----------------------------------------------------------------- devices */

/* Tables of this database on that device, or, device < 0, on the host alone. */
static int64
count_tables(int device)
{
	int			count;
	GhStoredInfo *tables = gh_store_list(GH_STORE_TABLE, MyDatabaseId, &count);
	int64		n = 0;

	for (int i = 0; i < count; i++)
		if (device < 0 ? tables[i].on_host && tables[i].device < 0 : tables[i].device == device)
			n++;
	return n;
}

/* device < 0: no number.  info NULL: nothing known of it but the status. */
static void
emit_device(ReturnSetInfo *result, const char *engine, int device,
			const GhDeviceInfo *info, const char *status)
{
	Datum		row[GH_DEVICE_COLUMNS] = {0};
	bool		nulls[GH_DEVICE_COLUMNS] = {false};

	row[GH_DEVICE_COLUMN_ENGINE] = CStringGetTextDatum(engine);
	row[GH_DEVICE_COLUMN_NUMBER] = Int32GetDatum(device);
	nulls[GH_DEVICE_COLUMN_NUMBER] = device < 0;
	row[GH_DEVICE_COLUMN_STATUS] = CStringGetTextDatum(status);
	row[GH_DEVICE_COLUMN_TABLES] = Int64GetDatum(strcmp(engine, "cpu") != 0 && device < 0 ? 0 : count_tables(device));
	for (int i = GH_DEVICE_COLUMN_MEMORY_LIMIT; i < GH_DEVICE_COLUMNS; i++)
		nulls[i] = true;
	nulls[GH_DEVICE_COLUMN_NAME] = nulls[GH_DEVICE_COLUMN_MEMORY_TOTAL] = nulls[GH_DEVICE_COLUMN_MEMORY_FREE] = info == NULL;
	if (info != NULL)
	{
		row[GH_DEVICE_COLUMN_NAME] = CStringGetTextDatum(info->name);
		row[GH_DEVICE_COLUMN_MEMORY_TOTAL] = Int64GetDatum((int64) info->memory_total);
		row[GH_DEVICE_COLUMN_MEMORY_FREE] = Int64GetDatum((int64) info->memory_free);
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

	gh_rows_begin(fcinfo, "tittllllllttilf");
	emit_device(result, gh_cpu_engine()->name, -1, NULL, "ready");
	if (gh_service_enabled())
		gh_service_emit_devices(result);
	else
		emit_cuda_devices(result);
	return (Datum) 0;
}
