/*
 * resident.c
 *		What the view gpuhash_resident shows: tables of this database with pages on GPUs, what has copies in
 *		shared memory, indexes and tables' columns, and indexes that have copies on GPUs.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "result_rows.h"
#include "service/service.h"
#include "store/shared_copies.h"
#include "store/resident_file.h"
#include "store/resident_tables.h"

PG_FUNCTION_INFO_V1(gpuhash_list_resident);

/* Columns of gpuhash_list_resident, in order. */
enum
{
	RESIDENT_RELATION,
	RESIDENT_DEVICE,
	RESIDENT_PAGES,
	RESIDENT_BYTES,
	RESIDENT_USED,
	RESIDENT_HITS,
	RESIDENT_REVALIDATED,
	RESIDENT_WHY_NOT,
	RESIDENT_TABLES,
	RESIDENT_TABLE_BYTES,
	RESIDENT_COLUMNS
};

/* Copies of indexes on devices. */
static void
list_device_copies(ReturnSetInfo *result)
{
	int			count;
	GhDeviceCopyInfo *infos = gh_resident_copies_list(&count);

	for (int i = 0; i < count; i++)
	{
		Datum		row[RESIDENT_COLUMNS] = {0};
		bool		nulls[RESIDENT_COLUMNS] = {false};

		row[RESIDENT_RELATION] = ObjectIdGetDatum(infos[i].relation);
		row[RESIDENT_DEVICE] = Int32GetDatum(gh_service_device_number(infos[i].device));
		row[RESIDENT_USED] = TimestampTzGetDatum(infos[i].used);
		row[RESIDENT_HITS] = Int64GetDatum((int64) infos[i].hits);
		nulls[RESIDENT_WHY_NOT] = true;
		row[RESIDENT_TABLES] = Int64GetDatum(1);
		row[RESIDENT_TABLE_BYTES] = Int64GetDatum((int64) infos[i].bytes);
		tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
	}
}

/* Copies in shared memory, which are on no device. */
static void
list_copies(ReturnSetInfo *result)
{
	int			count;
	GhSharedCopyInfo *infos = gh_shared_copies_list(&count);

	for (int i = 0; i < count; i++)
	{
		const GhSharedCopyInfo *info = &infos[i];
		bool		is_index = info->kind == GH_COPY_OF_INDEX;
		Datum		row[RESIDENT_COLUMNS] = {0};
		bool		nulls[RESIDENT_COLUMNS] = {false};

		row[RESIDENT_RELATION] = ObjectIdGetDatum(info->relation);
		nulls[RESIDENT_DEVICE] = true;
		row[RESIDENT_PAGES] = Int64GetDatum(is_index ? 0 : (int64) info->rows);
		row[RESIDENT_BYTES] = Int64GetDatum(is_index ? 0 : (int64) info->bytes);
		row[RESIDENT_USED] = TimestampTzGetDatum(info->used);
		row[RESIDENT_HITS] = Int64GetDatum((int64) info->hits);
		nulls[RESIDENT_WHY_NOT] = true;
		row[RESIDENT_TABLES] = Int64GetDatum(is_index ? 1 : 0);
		row[RESIDENT_TABLE_BYTES] = Int64GetDatum(is_index ? (int64) info->bytes : 0);
		tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
	}
}

Datum
gpuhash_list_resident(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GhResidentInfo *infos;
	int			count = 0;

	gh_rows_begin(fcinfo, "oillzlltll");
	if (!gh_service_enabled())
		return (Datum) 0;
	gh_resident_tables_forget_gone();
	infos = gh_resident_list(MyDatabaseId, &count);
	for (int i = 0; i < count; i++)
	{
		const GhResidentInfo *info = &infos[i];
		Datum		row[RESIDENT_COLUMNS];
		bool		nulls[RESIDENT_COLUMNS] = {false};
		uint64		tables;
		uint64		table_bytes;

		gh_resident_tables_count((int) info->key.device, info->relid, &tables, &table_bytes);
		row[RESIDENT_RELATION] = ObjectIdGetDatum(info->relid);
		row[RESIDENT_DEVICE] = Int32GetDatum(gh_service_device_number((int) info->key.device));
		row[RESIDENT_PAGES] = Int64GetDatum((int64) info->resident);
		row[RESIDENT_BYTES] = Int64GetDatum((int64) info->bytes);
		row[RESIDENT_USED] = TimestampTzGetDatum(info->used);
		row[RESIDENT_HITS] = Int64GetDatum((int64) info->hits);
		row[RESIDENT_REVALIDATED] = Int64GetDatum((int64) info->revalidated);
		nulls[RESIDENT_WHY_NOT] = info->why_not[0] == '\0';
		row[RESIDENT_WHY_NOT] = CStringGetTextDatum(info->why_not);
		row[RESIDENT_TABLES] = Int64GetDatum((int64) tables);
		row[RESIDENT_TABLE_BYTES] = Int64GetDatum((int64) table_bytes);
		tuplestore_putvalues(result->setResult, result->setDesc, row, nulls);
	}
	list_copies(result);
	list_device_copies(result);
	return (Datum) 0;
}
