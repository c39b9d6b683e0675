/*
 * drops.c
 *		What becomes of named tables when a database or a role is dropped, and when a
 *		session discards what it has.
 *
 * A hook tells of the drop while it may yet fail, so it is noted and acted upon when
 * the transaction has committed: the tables of a database go; a role's grants go,
 * and its tables are then superusers' to drop.
 *
 * Without the service a session's tables go with its temporary tables, that is by DISCARD
 * ALL and DISCARD TEMP, once PostgreSQL has done its part.  They are memory outside
 * transactions: unlike temporary tables they do not come back when DISCARD TEMP is rolled
 * back.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "service/service.h"
#include "store/resident_tables.h"
#include "store/shared_copies.h"
#include "table/table.h"

/* A drop of this transaction, or of a subtransaction that may have been undone. */
typedef struct GhDrop
{
	struct GhDrop *next;
	Oid			catalog;
	Oid			object;
	bool		certain;		/* the object is gone as the transaction commits */
} GhDrop;

static GhDrop *drops = NULL;
static object_access_hook_type previous_hook = NULL;

static void
note_drop(ObjectAccessType access, Oid catalog, Oid object, int part, void *arg)
{
	if (previous_hook != NULL)
		previous_hook(access, catalog, object, part, arg);
	if (access == OAT_DROP && (catalog == DatabaseRelationId || catalog == AuthIdRelationId))
	{
		GhDrop	   *drop = MemoryContextAllocZero(TopTransactionContext, sizeof(GhDrop));

		drop->catalog = catalog;
		drop->object = object;
		drop->next = drops;
		drops = drop;
	}
}

/* -------------------------------------------------------------------- roles */

static void
forget_role(void *extra, void *arg)
{
	GhRights   *rights = extra;
	Oid			role = *(Oid *) arg;

	if (rights->owner == role)
		rights->owner = InvalidOid;
	for (int i = 0; i < rights->ngrants;)
	{
		if (rights->grants[i].role == role)
			rights->grants[i] = rights->grants[--rights->ngrants];
		else
			i++;
	}
}

/* ------------------------------------------------------------ end of the transaction */

/* What is not possible after the commit: looking at the catalogs, and locks. */
static void
make_certain(void)
{
	for (GhDrop *drop = drops; drop != NULL; drop = drop->next)
	{
		bool		database = drop->catalog == DatabaseRelationId;

		drop->certain = database ? get_database_name(drop->object) == NULL :
			!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(drop->object));
		/* nobody can be connected to it any more, but whoever needs memory of a device
		 * may be about to take its tables from there */
		if (drop->certain && database)
			gh_store_keep_out(drop->object);
	}
}

static void
forget_grants(Oid role)
{
	int			count;
	GhStoredInfo *tables = gh_store_list(GH_STORE_TABLE, InvalidOid, &count);

	for (int i = 0; i < count; i++)
		(void) gh_store_change(&tables[i], forget_role, &role);
	pfree(tables);
}

static void
act(void)
{
	for (GhDrop *drop = drops; drop != NULL; drop = drop->next)
	{
		if (drop->certain && drop->catalog == AuthIdRelationId)
			forget_grants(drop->object);
		else if (drop->certain)
		{
			gh_store_drop_database(drop->object);
			gh_shared_copies_drop_database(drop->object);
			gh_resident_copies_drop_database(drop->object);
		}
	}
}

/* The transaction has committed: an error would be the end of the server. */
static void
act_safely(void)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		interrupts = InterruptHoldoffCount;

	PG_TRY();
	{
		act();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		EmitErrorReport();
		FlushErrorState();
		LWLockReleaseAll();
		InterruptHoldoffCount = interrupts;
	}
	PG_END_TRY();
}

static void
end_transaction(XactEvent event, void *arg)
{
	(void) arg;
	if (drops == NULL)
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			make_certain();
			break;
		case XACT_EVENT_COMMIT:
			act_safely();
			drops = NULL;
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			drops = NULL;
			break;
		default:
			break;
	}
}

/* ------------------------------------------------------------------ DISCARD */

static ProcessUtility_hook_type previous_utility_hook = NULL;

/* The statement is looked at before it runs: DISCARD ALL may free it. */
static void
utility_hook(PlannedStmt *pstmt, const char *query, bool readOnlyTree, ProcessUtilityContext context,
			 ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	Node	   *statement = pstmt->utilityStmt;
	bool		discards = IsA(statement, DiscardStmt) &&
		(((DiscardStmt *) statement)->target == DISCARD_ALL || ((DiscardStmt *) statement)->target == DISCARD_TEMP);

	if (previous_utility_hook != NULL)
		previous_utility_hook(pstmt, query, readOnlyTree, context, params, environment, dest, completion);
	else
		standard_ProcessUtility(pstmt, query, readOnlyTree, context, params, environment, dest, completion);
	if (discards && !gh_service_enabled())
		gh_drop_session_tables();
}

void
gh_tables_init(void)
{
	previous_hook = object_access_hook;
	object_access_hook = note_drop;
	RegisterXactCallback(end_transaction, NULL);
	previous_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = utility_hook;
}
