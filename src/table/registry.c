/*
 * registry.c
 *		The named tables of a session: names, owners, life and death.
 *
 * A table and everything of it that is in host memory live in a memory context
 * of their own; what an engine holds elsewhere (device memory) is given back by
 * that context's reset callback.  The context is made under the caller's and
 * moves under TopMemoryContext once the table is complete, so that an error
 * halfway frees all of it.
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "compat.h"
#include "gpuhash.h"
#include "session.h"
#include "table/table.h"

/*
 * What a table on the host may take of the machine's memory.  More could not
 * be kept in memory anyway: a capacity out of reach is to be an error, not the
 * end of the server process.
 */
#define GH_HOST_MEMORY_SHARE 0.75

typedef struct GhNameEntry
{
	char		name[NAMEDATALEN];	/* key */
	GhNamedTable *table;
} GhNameEntry;

static HTAB *names = NULL;
static MemoryContext tables_context = NULL;
static uint64 last_id = 0;

PG_FUNCTION_INFO_V1(gpuhash_create);
PG_FUNCTION_INFO_V1(gpuhash_drop);

/* ------------------------------------------------------------------ names */

static void
open_registry(void)
{
	HASHCTL		control;

	if (names != NULL)
		return;
	if (tables_context == NULL)
		tables_context = AllocSetContextCreate(TopMemoryContext, "gpuhash tables",
											   ALLOCSET_SMALL_SIZES);
	memset(&control, 0, sizeof(control));
	control.keysize = NAMEDATALEN;
	control.entrysize = sizeof(GhNameEntry);
	control.hcxt = tables_context;
	names = hash_create("gpuhash table names", 16, &control,
						HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
}

char *
gh_table_name_arg(FunctionCallInfo fcinfo, int argno)
{
	char	   *name;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("name of a hash table must not be null"),
				 errhint("Give the name that gpuhash_create was called with.")));
	name = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("name of a hash table must not be empty"),
				 errhint("Use 1 to %d bytes.", NAMEDATALEN - 1)));
	if (strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("name of hash table \"%s\" is too long", name),
				 errhint("Use 1 to %d bytes.", NAMEDATALEN - 1)));
	return name;
}

GhNamedTable *
gh_table_lookup(const char *name)
{
	GhNameEntry *entry = NULL;

	if (names != NULL)
		entry = hash_search(names, name, HASH_FIND, NULL);
	if (entry == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("hash table \"%s\" does not exist", name),
				 errhint("Create it with gpuhash_create; hash tables belong to the session that made them.")));
	if (!has_privs_of_role(GetUserId(), entry->table->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for hash table \"%s\"", name),
				 errhint("Only the role that created it, or a member of that role, may use it.")));
	return entry->table;
}

GhNamedTable *
gh_table_arg(FunctionCallInfo fcinfo)
{
	GhNamedTable *table = gh_table_lookup(gh_table_name_arg(fcinfo, 0));

	if (table->main == NULL)
		gh_table_report_lost(table);
	return table;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp((*(GhNamedTable *const *) a)->name,
				  (*(GhNamedTable *const *) b)->name);
}

GhNamedTable **
gh_table_list(int *count)
{
	GhNamedTable **list;
	GhNameEntry *entry;
	HASH_SEQ_STATUS scan;
	int			n = 0;

	*count = names == NULL ? 0 : (int) hash_get_num_entries(names);
	list = palloc(Max(*count, 1) * sizeof(GhNamedTable *));
	if (*count == 0)
		return list;
	hash_seq_init(&scan, names);
	while ((entry = hash_seq_search(&scan)) != NULL)
		list[n++] = entry->table;
	qsort(list, n, sizeof(GhNamedTable *), compare_names);
	return list;
}

/* ------------------------------------------------------------- engines */

/* Of the table's context: the engines' memory that is not in it. */
static void
destroy_engine_tables(void *arg)
{
	GhNamedTable *table = arg;

	if (table->main != NULL)
		table->main->engine->table_destroy(table->main);
	if (table->copy != NULL)
		table->copy->engine->table_destroy(table->copy);
	table->main = NULL;
	table->copy = NULL;
}

static GhStatus
make_engine_table(GhNamedTable *table, const GhEngine *engine, GhTable **result,
				  GhError *error)
{
	GhTableOptions options;
	GhHost		host;

	gh_host_init(&host, table->context);
	gh_options_init(&options, engine);
	options.value_size = table->value_size == 0 ? 0 : sizeof(uint64);
	options.multi = table->multi;
	if (table->subtables != 0)
		options.subtables = table->subtables;
	if (table->fill_min != 0)
		options.fill_min = table->fill_min;
	if (table->fill_max != 0)
		options.fill_max = table->fill_max;
	options.capacity = table->capacity;
	if (!engine->asynchronous)
		options.memory_limit = (uint64)
			(GH_HOST_MEMORY_SHARE * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	table->device = options.device;
	return gh_create_table(engine, &host, &options, result, error);
}

/*
 * The copy comes first: should the wait for main be cut short, the table has
 * no main yet and counts as lost, and the next call starts from here again.
 */
void
gh_table_open_engines(GhNamedTable *table)
{
	const GhEngine *cpu = gh_cpu_engine();
	const GhEngine *engine = gh_choose_engine(table->capacity, &table->reason);
	GhError		error = {0};
	GhStatus	status;

	destroy_engine_tables(table);
	if (engine->asynchronous && table->host_copy &&
		make_engine_table(table, cpu, &table->copy, &error) != GH_OK)
	{
		table->copy = NULL;
		gh_table_report(table, cpu, &error, "create the host copy of");
	}

	status = make_engine_table(table, engine, &table->main, &error);
	if (status == GH_OK)
		return;
	table->main = NULL;

	/* With engine = auto, what the device declines is the host's to do. */
	if (engine->asynchronous && status != GH_INVALID &&
		gh_engine_setting == GH_ENGINE_AUTO)
	{
		engine = cpu;
		table->reason = "the GPU declined the table";
		table->main = table->copy;
		table->copy = NULL;
		if (table->main != NULL ||
			make_engine_table(table, engine, &table->main, &error) == GH_OK)
			return;
		table->main = NULL;
	}
	gh_table_report(table, engine, &error, "create");
}

void
gh_table_report_lost(GhNamedTable *table)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("hash table \"%s\" was lost with its GPU", table->name),
			 errhint("Call gpuhash_clear and load it again; tables created with host_copy survive.")));
}

void
gh_table_report(GhNamedTable *table, const GhEngine *engine, const GhError *error,
				const char *verb)
{
	/* options only: the same ones for a table and for its host copy */
	if (error->status == GH_INVALID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("could not create hash table \"%s\": %s", table->name,
						error->message),
				 errhint("Bounds that are not given are taken from \"gpuhash.subtables\", \"gpuhash.fill_min\" and \"gpuhash.fill_max\".")));
	if (error->status == GH_NO_MEMORY ||
		(error->status == GH_LIMIT && !engine->asynchronous))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not %s hash table \"%s\": %s", verb, table->name,
						error->message),
				 errhint("Give a smaller capacity, or drop hash tables that are no longer needed.")));
	gh_report_error(error, psprintf("%s hash table \"%s\"", verb, table->name));
}

/* ------------------------------------------------------- what a table holds */

static void
report_wrong_kind(GhNamedTable *table, const char *wanted)
{
	if (table->value_size == 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" does not hold %s values", table->name, wanted),
				 errdetail("It is a set: keys without values."),
				 errhint("Use gpuhash_insert with keys alone, and gpuhash_contains.")));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("hash table \"%s\" does not hold %s values", table->name, wanted),
			 errdetail("Its values are of %d bytes.", table->value_size),
			 errhint("Use gpuhash_insert with values of type bytea, gpuhash_find_bytea and gpuhash_find_all_bytea.")));
}

void
gh_require_bigint(GhNamedTable *table)
{
	if (table->value_size != sizeof(int64))
		report_wrong_kind(table, "bigint");
}

void
gh_require_bytes(GhNamedTable *table)
{
	if (table->value_size == 0)
		report_wrong_kind(table, "bytea");
}

void
gh_require_set(GhNamedTable *table)
{
	if (table->value_size != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" holds a value for each key", table->name),
				 errhint("Give values with the keys, or create a set: value_size => 0.")));
}

void
gh_require_single(GhNamedTable *table)
{
	if (table->multi)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("hash table \"%s\" holds many values for a key", table->name),
				 errhint("Use gpuhash_find_all or gpuhash_find_all_bytea.")));
}

/* ------------------------------------------------------- create and drop */

static int
subtables_arg(FunctionCallInfo fcinfo, int argno)
{
	int32		subtables;

	if (PG_ARGISNULL(argno))
		return 0;
	subtables = PG_GETARG_INT32(argno);
	if (subtables < GH_SUBTABLES_MIN || subtables > GH_SUBTABLES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("subtables is %d but must be between %d and %d", subtables,
						GH_SUBTABLES_MIN, GH_SUBTABLES_MAX),
				 errhint("Leave it out for the value of \"gpuhash.subtables\".")));
	return subtables;
}

/*
 * Only what the engines would take for "not given" is checked here; they check
 * how the bounds fit each other and the subtables.
 */
static double
fill_arg(FunctionCallInfo fcinfo, int argno, const char *name)
{
	double		fill;

	if (PG_ARGISNULL(argno))
		return 0;
	fill = PG_GETARG_FLOAT8(argno);
	if (!(fill > 0 && fill <= GH_FILL_MAX_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is %g but must be above 0 and at most %g", name, fill,
						GH_FILL_MAX_MAX),
				 errhint("Leave it out for the value of \"gpuhash.%s\".", name)));
	return fill;
}

static int64
capacity_arg(FunctionCallInfo fcinfo, int argno)
{
	int64		capacity = PG_ARGISNULL(argno) ? GH_CAPACITY_DEFAULT : PG_GETARG_INT64(argno);

	if (capacity < GH_CAPACITY_MIN || capacity > GH_CAPACITY_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity is %lld but must be between %d and %lld keys",
						(long long) capacity, GH_CAPACITY_MIN,
						(long long) GH_CAPACITY_MAX),
				 errhint("Tables grow by themselves: leave it out when it is not known.")));
	return capacity;
}

static void
value_size_args(FunctionCallInfo fcinfo, GhNamedTable *table)
{
	table->value_size = PG_ARGISNULL(1) ? GH_VALUE_SIZE_DEFAULT : PG_GETARG_INT32(1);
	table->multi = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	if (table->value_size < GH_VALUE_SIZE_MIN || table->value_size > GH_VALUE_SIZE_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value_size is %d but must be between %d and %d bytes",
						table->value_size, GH_VALUE_SIZE_MIN, GH_VALUE_SIZE_MAX),
				 errhint("8 is for bigint values, 0 for a set of keys, any other size for values of type bytea.")));
	if (table->multi && table->value_size == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a set cannot hold many values for a key"),
				 errhint("Leave out multi, or give a value_size of at least 1.")));
}

/* Does not throw once the name is entered. */
static void
register_table(GhNamedTable *table)
{
	GhNameEntry *entry = hash_search(names, table->name, HASH_ENTER, NULL);

	entry->table = table;
	MemoryContextSetParent(table->context, tables_context);
}

Datum
gpuhash_create(PG_FUNCTION_ARGS)
{
	char	   *name = gh_table_name_arg(fcinfo, 0);
	MemoryContext context;
	GhNamedTable *table;

	open_registry();
	if (hash_search(names, name, HASH_FIND, NULL) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("hash table \"%s\" already exists", name),
				 errhint("Empty it with gpuhash_clear, or drop it with gpuhash_drop.")));

	context = AllocSetContextCreate(CurrentMemoryContext, "gpuhash table",
									ALLOCSET_DEFAULT_SIZES);
	table = MemoryContextAllocZero(context, sizeof(GhNamedTable));
	strlcpy(table->name, name, NAMEDATALEN);
	MemoryContextSetIdentifier(context, table->name);
	table->context = context;
	table->destroy.func = destroy_engine_tables;
	table->destroy.arg = table;
	MemoryContextRegisterResetCallback(context, &table->destroy);

	table->id = ++last_id;
	table->owner = GetUserId();
	table->stage.lists.context = context;
	value_size_args(fcinfo, table);
	table->subtables = subtables_arg(fcinfo, 3);
	table->fill_min = fill_arg(fcinfo, 4, "fill_min");
	table->fill_max = fill_arg(fcinfo, 5, "fill_max");
	table->capacity = capacity_arg(fcinfo, 6);
	table->host_copy = PG_ARGISNULL(7) || PG_GETARG_BOOL(7);
	if (table->value_size > GH_INLINE_VALUE_SIZE)
		table->store = gh_values_create(context, table->value_size);
	gh_table_open_engines(table);
	register_table(table);
	PG_RETURN_VOID();
}

Datum
gpuhash_drop(PG_FUNCTION_ARGS)
{
	GhNamedTable *table = gh_table_lookup(gh_table_name_arg(fcinfo, 0));

	hash_search(names, table->name, HASH_REMOVE, NULL);
	MemoryContextDelete(table->context);
	PG_RETURN_VOID();
}
