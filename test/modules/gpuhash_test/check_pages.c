/*
 * check_pages.c
 *		What the engine reads from a table's pages, compared with what PostgreSQL reads.
 *
 * gpuhash_check_pages(regclass) reads all tuples that have a normal line pointer, visible or
 * not: all columns together, in groups as large as a batch takes, and each one alone.  It
 * fails on the first difference: another value, or a row that is handed back without a cause
 * in PostgreSQL's own values, or not in spite of one.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/tupmacs.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "engine/page/cpu_page.h"
#include "heap/layout.h"

PG_FUNCTION_INFO_V1(gpuhash_check_pages);

/* Columns of numeric without a declared scale are read at this one. */
#define SCALE_ASSUMED 2

typedef struct Check
{
	Relation	relation;
	TupleDesc	desc;
	GhPageAttribute *attributes;
	int			ncolumns;
	GhColumn   *columns;
	int			nshapes;
	GhPageShape *shapes;
	GhVectorBatch batch;
	/* of the page: by tuple, then attribute */
	BlockNumber block;
	const uint8 *page;
	uint32		ntuples;
	uint16		numbers[MaxHeapTuplesPerPage];
	int			natts[MaxHeapTuplesPerPage];
	Datum	   *values;
	bool	   *nulls;
	int64		tuples;
	int64		compared;		/* values, in all loads */
	int64		back;			/* rows handed back, in all loads */
} Check;

/* ------------------------------------------------------------------- columns */

static int
declared_scale(int32 typmod)
{
	if (typmod < (int32) VARHDRSZ)
		return SCALE_ASSUMED;
	/* below 0, no digit is shown */
	return Max(gh_typmod_scale(typmod), 0);
}

/* The way to load an attribute by its type; 0: by its length. */
static GhLoad
load_of_type(Oid type)
{
	switch (type)
	{
		case INT2OID:
			return GH_LOAD_INT2;
		case INT4OID:
		case DATEOID:
			return GH_LOAD_INT4;
		case INT8OID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return GH_LOAD_INT8;
		case OIDOID:
			return GH_LOAD_OID;
		case BOOLOID:
			return GH_LOAD_BOOL;
		case FLOAT4OID:
			return GH_LOAD_FLOAT4;
		case FLOAT8OID:
			return GH_LOAD_FLOAT8;
		case NUMERICOID:
			return GH_LOAD_NUMERIC;
		default:
			return 0;
	}
}

static void
add_column(Check *check, Form_pg_attribute att)
{
	GhColumn   *column = &check->columns[check->ncolumns];

	column->attribute = att->attnum;
	column->missing = att->atthasmissing ? GH_MISSING_BACK : GH_MISSING_NULL;
	column->load = load_of_type(att->atttypid);
	if (column->load == GH_LOAD_NUMERIC)
		column->scale = declared_scale(att->atttypmod);
	if (column->load == 0 || column->scale > GH_SCALE_MAX)
	{
		column->load = att->attlen < 0 ? GH_LOAD_TEXT : GH_LOAD_FIXED;
		column->length = Max(att->attlen, 0);
		column->scale = 0;
	}
	check->ncolumns++;
}

static void
add_shape(Check *check, int first, int ncolumns)
{
	GhError		error;

	if (gh_page_shape_init(&check->shapes[check->nshapes++], BLCKSZ, check->desc->natts,
						   check->attributes, ncolumns, &check->columns[first], &error) != GH_OK)
		ereport(ERROR, (errmsg("shape of columns %d to %d: %s", first, first + ncolumns - 1,
							   error.message)));
}

static void
init_check(Check *check, Relation relation)
{
	int			natts = RelationGetDescr(relation)->natts;

	memset(check, 0, sizeof(*check));
	check->relation = relation;
	check->desc = RelationGetDescr(relation);
	check->attributes = palloc0(sizeof(GhPageAttribute) * Max(natts, 1));
	check->columns = palloc0(sizeof(GhColumn) * Max(natts, 1));
	for (int attno = 1; attno <= natts; attno++)
	{
		check->attributes[attno - 1] = gh_page_attribute(check->desc, attno);
		add_column(check, TupleDescAttr(check->desc, attno - 1));
	}
	check->shapes = palloc_extended(sizeof(GhPageShape) * (2 * natts + 1), MCXT_ALLOC_HUGE);
	for (int i = 0; i < natts; i += GH_PROGRAM_VECTORS_MAX)
		add_shape(check, i, Min(natts - i, GH_PROGRAM_VECTORS_MAX));
	for (int i = 0; i < natts; i++)
		add_shape(check, i, 1);
	check->batch.nvectors = GH_PROGRAM_VECTORS_MAX;
	check->batch.state = palloc(GH_VECTOR_ROWS);
	check->batch.vectors = palloc(sizeof(GhVector) * GH_PROGRAM_VECTORS_MAX);
	for (int i = 0; i < GH_PROGRAM_VECTORS_MAX; i++)
	{
		check->batch.vectors[i].low = palloc(sizeof(uint64) * GH_VECTOR_ROWS);
		check->batch.vectors[i].high = palloc(sizeof(uint64) * GH_VECTOR_ROWS);
		check->batch.vectors[i].null = palloc(GH_VECTOR_ROWS);
	}
	check->values = palloc_extended(sizeof(Datum) * (Size) (natts + 1) * MaxHeapTuplesPerPage,
									MCXT_ALLOC_HUGE);
	check->nulls = palloc((Size) (natts + 1) * MaxHeapTuplesPerPage);
}

/* --------------------------------------------------------- PostgreSQL's values */

/* The integer that a numeric is at this scale, by its text; false: there is none. */
static bool
numeric_as_integer(Datum value, int scale, uint64 *low, uint64 *high)
{
	const char *text = DatumGetCString(DirectFunctionCall1(numeric_out, value));
	bool		negative = *text == '-';
	int			decimals = -1;	/* no point so far */
	uint128		sum = 0;

	for (text += negative; *text != '\0'; text++)
	{
		if (*text == '.')
			decimals = 0;
		else if (*text < '0' || *text > '9' ||
				 sum > (((uint128) 1 << 127) - 1 - (*text - '0')) / 10)
			return false;
		else
		{
			sum = sum * 10 + (*text - '0');
			decimals += decimals >= 0;
		}
	}
	if (negative)
		sum = -sum;
	*low = (uint64) sum;
	*high = (uint64) (sum >> 64);
	return Max(decimals, 0) == scale;
}

/* Whether the column's value in that tuple is one that a page alone does not give. */
static bool
is_for_postgres(const Check *check, const GhColumn *column, uint32 tuple)
{
	Size		at = (Size) tuple * check->desc->natts + column->attribute - 1;
	uint64		low;
	uint64		high;

	if (column->attribute > check->natts[tuple])
		return column->missing == GH_MISSING_BACK;
	if (check->nulls[at])
		return false;
	if (check->attributes[column->attribute - 1].length == -1 &&
		(VARATT_IS_EXTERNAL(DatumGetPointer(check->values[at])) ||
		 VARATT_IS_COMPRESSED(DatumGetPointer(check->values[at]))))
		return true;
	return column->load == GH_LOAD_NUMERIC &&
		!numeric_as_integer(check->values[at], column->scale, &low, &high);
}

/* Whether a vector's value is that of PostgreSQL. */
static bool
same_value(const Check *check, const GhColumn *column, Datum value, uint64 low, uint64 high)
{
	const void *bytes = (const void *) (uintptr_t) low;
	char		by_value[sizeof(Datum)];
	float8		wide;
	uint64		expected[2];

	switch ((GhLoad) column->load)
	{
		case GH_LOAD_INT2:
			return (int64) low == DatumGetInt16(value);
		case GH_LOAD_INT4:
			return (int64) low == DatumGetInt32(value);
		case GH_LOAD_INT8:
			return (int64) low == DatumGetInt64(value);
		case GH_LOAD_OID:
			return low == DatumGetObjectId(value);
		case GH_LOAD_BOOL:
			return low == DatumGetBool(value);
		case GH_LOAD_FLOAT4:
			wide = DatumGetFloat4(value);
			return memcmp(&low, &wide, sizeof(wide)) == 0;
		case GH_LOAD_FLOAT8:
			wide = DatumGetFloat8(value);
			return memcmp(&low, &wide, sizeof(wide)) == 0;
		case GH_LOAD_NUMERIC:
			return numeric_as_integer(value, column->scale, &expected[0], &expected[1]) &&
				low == expected[0] && high == expected[1];
		case GH_LOAD_TEXT:
			return bytes == VARDATA_ANY(DatumGetPointer(value)) &&
				high == VARSIZE_ANY_EXHDR(DatumGetPointer(value));
		case GH_LOAD_FIXED:
			if (!TupleDescAttr(check->desc, column->attribute - 1)->attbyval)
				return bytes == DatumGetPointer(value) && high == column->length;
			store_att_byval(by_value, value, column->length);
			return memcmp(bytes, by_value, column->length) == 0 && high == column->length;
		case GH_LOAD_TID:
			break;
	}
	return false;
}

/* --------------------------------------------------------------------- pages */

/* Deforms the tuples of a page that is locked. */
static void
deform_page(Check *check, Page page)
{
	check->page = (const uint8 *) page;
	check->ntuples = 0;
	for (OffsetNumber n = FirstOffsetNumber; n <= PageGetMaxOffsetNumber(page); n++)
	{
		ItemId		item = PageGetItemId(page, n);
		Size		at = (Size) check->ntuples * check->desc->natts;
		HeapTupleData tuple;

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(check->relation);
		ItemPointerSet(&tuple.t_self, check->block, n);
		heap_deform_tuple(&tuple, check->desc, &check->values[at], &check->nulls[at]);
		check->natts[check->ntuples] = HeapTupleHeaderGetNatts(tuple.t_data);
		check->numbers[check->ntuples++] = n;
	}
}

static void
check_row(Check *check, const GhPageShape *shape, uint32 tuple, uint32 row)
{
	bool		back = false;

	for (uint32 i = 0; i < shape->ncolumns; i++)
		back = is_for_postgres(check, &shape->columns[i].column, tuple) || back;
	if (check->batch.state[row] != (back ? GH_ROW_BACK : GH_ROW_LIVE))
		elog(ERROR, "tuple (%u,%d), %u columns from %d: state %d, expected %s", check->block,
			 check->numbers[tuple], shape->ncolumns, shape->columns[0].column.attribute,
			 check->batch.state[row], back ? "to be handed back" : "live");
	check->back += back;
	for (uint32 i = 0; i < shape->ncolumns && !back; i++)
	{
		const GhColumn *column = &shape->columns[i].column;
		const GhVector *vector = &check->batch.vectors[shape->columns[i].vector];
		Size		at = (Size) tuple * check->desc->natts + column->attribute - 1;

		if (vector->null[row] != check->nulls[at] ||
			(!check->nulls[at] && !same_value(check, column, check->values[at], vector->low[row],
											  vector->high[row])))
			elog(ERROR, "tuple (%u,%d): attribute %d, load %d, scale %d, of %u columns: null %d, "
				 UINT64_FORMAT " " UINT64_FORMAT, check->block, check->numbers[tuple],
				 column->attribute, column->load, column->scale, shape->ncolumns,
				 vector->null[row], vector->low[row], vector->high[row]);
		check->compared++;
	}
}

/* Loads the page's tuples in batches, by each shape. */
static void
check_page(Check *check)
{
	for (int s = 0; s < check->nshapes; s++)
		for (uint32 first = 0; first < check->ntuples; first += GH_VECTOR_ROWS)
		{
			uint32		count = Min(check->ntuples - first, GH_VECTOR_ROWS);
			GhStatus	status;

			check->batch.nrows = 0;
			status = gh_cpu_page_load(&check->shapes[s], check->page, check->block,
									  &check->numbers[first], count, &check->batch);
			if (status != GH_OK || check->batch.nrows != count)
				elog(ERROR, "page %u: status %d, %u rows of %u", check->block, status,
					 check->batch.nrows, count);
			for (uint32 row = 0; row < count; row++)
				check_row(check, &check->shapes[s], first + row, row);
		}
	check->tuples += check->ntuples;
}

/* gpuhash_check_pages(regclass): what was compared, as text. */
Datum
gpuhash_check_pages(PG_FUNCTION_ARGS)
{
	Relation	relation = relation_open(PG_GETARG_OID(0), AccessShareLock);
	MemoryContext old;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash check of a page",
												  ALLOCSET_DEFAULT_SIZES);
	Check	   *check = palloc0(sizeof(Check));

	if (!superuser() || relation->rd_rel->relam != HEAP_TABLE_AM_OID || !gh_layout_is_known())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot check the pages of \"%s\"", RelationGetRelationName(relation))));
	init_check(check, relation);
	old = MemoryContextSwitchTo(context);
	for (check->block = 0; check->block < RelationGetNumberOfBlocks(relation); check->block++)
	{
		Buffer		buffer = ReadBuffer(relation, check->block);

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		deform_page(check, BufferGetPage(buffer));
		check_page(check);
		UnlockReleaseBuffer(buffer);
		MemoryContextReset(context);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
	relation_close(relation, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("tuples " INT64_FORMAT ", values " INT64_FORMAT
											  ", handed back " INT64_FORMAT, check->tuples,
											  check->compared, check->back)));
}
