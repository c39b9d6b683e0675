/*
 * load.c
 *		gpuhash_load: the rows of a query become entries of a named table.
 *
 * The query runs as the caller, with the caller's privileges and row security,
 * and may only read.  Its rows stream through a DestReceiver that collects them
 * and stores a batch at a time, so that neither side is ever whole in memory.
 *
 * What comes to an empty table with many values for a key is gathered first, up to
 * maintenance_work_mem, for a static build (requests.c).  More than that follows in batches.
 *
 * The query can call functions, ours too.  Therefore the table is looked up
 * anew for every batch: it may have been dropped since.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"

#include "compat.h"
#include "table/table.h"

/* Rows of a batch, and bytes of its values at most. */
#define GH_LOAD_ROWS 16384
#define GH_LOAD_BYTES (4 * 1024 * 1024)

typedef struct GhLoader
{
	DestReceiver receiver;		/* first */
	const char *name;			/* of the table */
	uint64		id;				/* of the table that was there at the start */
	int			key_size;		/* bytes, of the table */
	int			value_size;		/* likewise; 0: a set */
	Oid			types[2];		/* of the query's columns: key, value */
	MemoryContext context;		/* reset after each batch */
	bool		gathers;		/* for a static build */
	uint64		capacity;		/* rows that there is room for */
	uint64		count;			/* rows collected */
	void	   *keys;			/* key_size each */
	char	   *values;			/* value_size each; NULL for a set */
	uint64		loaded;			/* rows stored */
} GhLoader;

PG_FUNCTION_INFO_V1(gpuhash_load);

static void
table_of_loader(GhLoader *loader, GhStoredInfo *info)
{
	gh_table_lookup(loader->name, GH_MAY_WRITE, info);
	if (info->id != loader->id)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("hash table \"%s\" was replaced while it was being loaded", loader->name),
				 errhint("The query of gpuhash_load must not drop the table.")));
	if (info->lost)
		gh_table_report_lost(info->key.name);
}

/* -------------------------------------------------------------- columns */

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

static void
report_columns(const GhStoredInfo *table, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("rows of the query do not fit hash table \"%s\"", table->key.name),
			 errdetail("%s", detail),
			 table->value_size == 0 ?
			 errhint("A query for a set returns one column: the key, of type bigint.") :
			 table->value_size == sizeof(int64) ?
			 errhint("The query returns two columns: key and value, of type bigint.") :
			 errhint("The query returns two columns: the key of type bigint, the value of type bytea.")));
}

static void
check_columns(GhLoader *loader, const GhStoredInfo *table, TupleDesc columns)
{
	int			wanted = loader->value_size == 0 ? 1 : 2;

	if (columns->natts != wanted)
		report_columns(table,
					   psprintf("Number of returned columns (%d) does not match expected column count (%d).",
								columns->natts, wanted));
	for (int i = 0; i < wanted; i++)
	{
		Oid			type = getBaseType(TupleDescAttr(columns, i)->atttypid);
		bool		fits = i == 0 || table->value_size == sizeof(int64) ? is_integer(type) : false;

		if (i == 1 && type == BYTEAOID)
			fits = true;
		if (!fits)
			report_columns(table, psprintf("Returned type of column %d, \"%s\", is %s.", i + 1,
										   NameStr(TupleDescAttr(columns, i)->attname),
										   format_type_be(TupleDescAttr(columns, i)->atttypid)));
		loader->types[i] = type;
	}
}

static uint64
integer_of(Datum datum, Oid type)
{
	switch (type)
	{
		case INT2OID:
			return (uint64) (int64) DatumGetInt16(datum);
		case INT4OID:
			return (uint64) (int64) DatumGetInt32(datum);
		default:
			return (uint64) DatumGetInt64(datum);
	}
}

/* ------------------------------------------------------------- receiver */

static uint64
rows_of_batch(const GhLoader *loader)
{
	return Min(GH_LOAD_ROWS, GH_LOAD_BYTES / Max(loader->value_size, 1));
}

/* Makes room for more rows than a batch, if there may be any. */
static bool
gather_more(GhLoader *loader)
{
	Size		row = loader->key_size + loader->value_size;
	uint64		limit = Min((Size) maintenance_work_mem * 1024 / row, GH_BATCH_MAX);

	if (!loader->gathers || loader->capacity >= limit)
		return false;
	loader->capacity = Min(2 * loader->capacity, limit);
	loader->keys = repalloc_huge(loader->keys, loader->capacity * loader->key_size);
	loader->values = repalloc_huge(loader->values, loader->capacity * loader->value_size);
	return true;
}

static void
flush(GhLoader *loader)
{
	GhStoredInfo info;
	MemoryContext old;

	if (loader->count == 0)
		return;
	old = MemoryContextSwitchTo(loader->context);
	table_of_loader(loader, &info);
	gh_put(&info, loader->keys, loader->values, loader->count);
	MemoryContextSwitchTo(old);
	MemoryContextReset(loader->context);
	loader->loaded += loader->count;
	loader->count = 0;
	loader->gathers = false;
	loader->capacity = rows_of_batch(loader);
}

static void
loader_startup(DestReceiver *self, int operation, TupleDesc columns)
{
	GhLoader   *loader = (GhLoader *) self;
	GhStoredInfo info;

	table_of_loader(loader, &info);
	check_columns(loader, &info, columns);
	loader->gathers = info.multi && info.keys == 0;
	loader->capacity = rows_of_batch(loader);
	loader->keys = palloc(loader->capacity * loader->key_size);
	if (loader->value_size > 0)
		loader->values = palloc(loader->capacity * loader->value_size);
}

static void
report_null(GhLoader *loader, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("query for hash table \"%s\" returned a null %s", loader->name, what),
			 errhint("Leave such rows out: WHERE ... IS NOT NULL.")));
}

static void
take_key(GhLoader *loader, uint64 key)
{
	if (loader->key_size == sizeof(int32) && (int64) key != (int32) key)
		gh_report_key_outside(loader->name, key);
	gh_set_key(loader->key_size, loader->keys, loader->count, key);
}

static void
take_bytes(GhLoader *loader, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(loader->context);

	gh_check_value_size(loader->name, loader->value_size, value);
	gh_copy_value(loader->value_size, value, loader->values + loader->count * loader->value_size);
	MemoryContextSwitchTo(old);
}

static bool
loader_receive(TupleTableSlot *slot, DestReceiver *self)
{
	GhLoader   *loader = (GhLoader *) self;
	bool		isnull;
	Datum		datum;

	datum = slot_getattr(slot, 1, &isnull);
	if (isnull)
		report_null(loader, "key");
	take_key(loader, integer_of(datum, loader->types[0]));
	if (loader->value_size != 0)
	{
		datum = slot_getattr(slot, 2, &isnull);
		if (isnull)
			report_null(loader, "value");
		if (loader->types[1] == BYTEAOID)
			take_bytes(loader, datum);
		else
			((uint64 *) loader->values)[loader->count] = integer_of(datum, loader->types[1]);
	}
	if (++loader->count == loader->capacity && !gather_more(loader))
		flush(loader);
	return true;
}

static void
loader_shutdown(DestReceiver *self)
{
	flush((GhLoader *) self);
}

static void
loader_destroy(DestReceiver *self)
{
	/* lives in the function's memory context */
}

/* ---------------------------------------------------------------- the query */

/* FOR UPDATE or the like, at any depth: of a subquery, a view, a WITH. */
static bool
locks_rows(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return castNode(Query, node)->rowMarks != NIL ||
			query_tree_walker((Query *) node, locks_rows, context, 0);
	return expression_tree_walker(node, locks_rows, context);
}

/* 42601 unless the plan is one command that only reads. */
static void
check_reads_only(SPIPlanPtr plan)
{
	List	   *sources = SPI_plan_get_plan_sources(plan);
	CachedPlanSource *source;
	Query	   *query;

	if (list_length(sources) == 1)
	{
		source = linitial(sources);
		if (list_length(source->query_list) == 1)
		{
			query = linitial_node(Query, source->query_list);
			if (query->commandType == CMD_SELECT && source->resultDesc != NULL &&
				!query->hasModifyingCTE && !locks_rows((Node *) query, NULL))
				return;
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_SYNTAX_ERROR),
			 errmsg("query of gpuhash_load must be one SELECT that only reads"),
			 errhint("Write a single SELECT, VALUES or TABLE command, without FOR UPDATE and without commands that modify data.")));
}

Datum
gpuhash_load(PG_FUNCTION_ARGS)
{
	GhStoredInfo info;
	GhLoader	loader = {{0}};
	SPIExecuteOptions options = {0};
	SPIPlanPtr	plan;
	int			result;

	gh_table_arg(fcinfo, GH_MAY_WRITE, &info);
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("query must not be null"),
				 errhint("Give a SELECT command as text.")));

	loader.receiver.receiveSlot = loader_receive;
	loader.receiver.rStartup = loader_startup;
	loader.receiver.rShutdown = loader_shutdown;
	loader.receiver.rDestroy = loader_destroy;
	loader.receiver.mydest = DestNone;
	loader.name = pstrdup(info.key.name);
	loader.id = info.id;
	loader.key_size = info.key_size;
	loader.value_size = info.value_size;
	loader.context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash load batch",
										   ALLOCSET_DEFAULT_SIZES);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	plan = SPI_prepare_cursor(text_to_cstring(PG_GETARG_TEXT_PP(1)), 0, NULL,
							  CURSOR_OPT_PARALLEL_OK);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare_cursor failed: %s", SPI_result_code_string(SPI_result));
	check_reads_only(plan);
	options.read_only = true;
	options.dest = &loader.receiver;
	result = SPI_execute_plan_extended(plan, &options);
	if (result < 0)
		elog(ERROR, "SPI_execute_plan_extended failed: %s", SPI_result_code_string(result));
	SPI_finish();
	PG_RETURN_INT64((int64) loader.loaded);
}
