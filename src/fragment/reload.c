/*
 * reload.c
 *		Loads again what relations of a database had on a GPU before a restart: a background worker, which the
 *		launcher (../store/reload.c) starts for one database after the other.
 *
 * It is in nobody's way.  A relation is loaded in parts, and each part has a transaction of its own: so a
 * lock is held for the time of a part, and no snapshot keeps VACUUM from removing rows for longer.  The
 * relation is locked only where nobody holds a lock against it, or waits for one: else the rest of it is
 * left.  And with each part the database is locked, as a new session locks it: who is about to drop it, to
 * rename it or to copy it has a lock against that, and then waits for five seconds for the sessions to go, of
 * which this one goes at once.
 *
 * It stops where the GPU has no room left: what queries have brought since stays there.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "fragment/prewarm.h"
#include "service/service.h"
#include "store/remember.h"

/*
 * Blocks of a part: 64 MB, which take less than a second where they are in memory, and a few where they are
 * not.
 */
#define GH_PART_BLOCKS 8192
/* Where queries have all buffers, it waits so often, and so long. */
#define GH_BUFFER_TRIES 60
#define GH_BUFFER_WAIT_MS 1000

/* What is to be done next. */
typedef enum Next
{
	NEXT_PART,
	NEXT_RELATION,
	NEXT_NOTHING				/* it ends */
} Next;

typedef struct Reload
{
	int			device;
	const GhRemembered *entry;	/* of the relation that is loaded */
	BlockNumber first;			/* of its next part */
	uint64		there;			/* pages of it that are on the device */
	uint64		brought;		/* pages that were not there before, of all relations */
	int			relations;		/* of which some were brought */
	int			tries;			/* to get buffers */
	Next		next;
} Reload;

/* ------------------------------------------------- of whoever loads in the background */

/* Until the transaction's end; false: somebody has a lock against sessions of this database. */
bool
gh_loader_lock_database(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	return LockAcquire(&tag, RowExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

/* Whether somebody waits for a lock against that one. */
bool
gh_loader_database_is_waited_for(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, ShareUpdateExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, ShareUpdateExclusiveLock, false);
	return false;
}

/* Connects to the database. */
void
gh_loader_begin(Datum database)
{
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
	/* which a standby allows, and which leaves no locks on what was read */
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	/* from 17 on: it is for users' transactions */
	if (GetConfigOption("transaction_timeout", true, false) != NULL)
		SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	MemoryContextSwitchTo(TopMemoryContext);
}

/* A part, in a transaction of its own, with a snapshot; then the settings may have changed. */
void
gh_loader_in_transaction(void (*part) (void *arg), void *arg)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	part(arg);
	PopActiveSnapshot();
	CommitTransactionCommand();
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/* --------------------------------------------------------------- pages, again */

/* The relation, with its lock; NULL: it is gone, it has another file, or it is not to be had now. */
static Relation
open_relation(const GhRemembered *entry)
{
	Relation	relation;

	if (!ConditionalLockRelationOid(entry->relid, AccessShareLock))
		return NULL;
	relation = try_relation_open(entry->relid, NoLock);
	if (relation == NULL)
		return NULL;
	if (gh_relation_number(relation) == entry->number &&
		gh_relation_tablespace(relation) == entry->tablespace && gh_is_loadable(relation))
		return relation;
	relation_close(relation, NoLock);
	return NULL;
}

/* A part could not be loaded. */
static Next
after_failure(Reload *reload, const GhError *error)
{
	if (error->status == GH_NO_BUFFERS && reload->tries++ < GH_BUFFER_TRIES)
		return NEXT_PART;
	ereport(DEBUG1,
			(errmsg("gpuhash does not load pages onto GPU %d again: %s",
					gh_service_device_number(reload->device), error->message)));
	return NEXT_NOTHING;
}

/* The next part of a relation, which has so many pages at most that are not there yet. */
static Next
load_part(Reload *reload, Relation relation, uint64 most)
{
	GhPrewarm	load = {.device = reload->device};

	load.unasked = true;
	load.used = reload->entry->used;
	load.first = reload->first;
	load.most_blocks = GH_PART_BLOCKS;
	load.most_pages = most;
	if (!gh_load_pages(relation, &load))
		return after_failure(reload, &load.error);
	reload->tries = 0;
	reload->first = load.first;
	reload->there += load.pages;
	reload->brought += load.brought;
	/* where another session brings its pages there may be room yet: the next relation finds that out */
	return load.ended || load.full || load.pages >= most ? NEXT_RELATION : NEXT_PART;
}

static Next
load_next(Reload *reload)
{
	uint64		most = reload->entry->blocks - reload->there;
	Relation	relation;
	Next		next;

	/* before anything is made on the device, for which the worker would take pages away */
	if (!gh_loader_lock_database() || !gh_service_span_fits(reload->device, (uint32) Min(most, GH_PART_BLOCKS)))
		return NEXT_NOTHING;
	relation = open_relation(reload->entry);
	if (relation == NULL)
		return NEXT_RELATION;
	next = load_part(reload, relation, most);
	relation_close(relation, NoLock);
	return next;
}

static void
do_part(void *arg)
{
	Reload	   *reload = arg;

	reload->next = load_next(reload);
}

/* Waits for buffers, if there were none. */
static void
wait_for_buffers(void)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, GH_BUFFER_WAIT_MS,
					 gh_wait_event(GH_WAIT_RELOAD));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

static Next
load_in_transaction(Reload *reload)
{
	gh_loader_in_transaction(do_part, reload);
	if (reload->next == NEXT_PART && reload->tries > 0)
		wait_for_buffers();
	return gh_reload_resident ? reload->next : NEXT_NOTHING;
}

static Next
load_relation(Reload *reload, const GhRemembered *entry)
{
	uint64		brought = reload->brought;
	Next		next = NEXT_PART;

	reload->entry = entry;
	reload->first = 0;
	reload->there = 0;
	while (next == NEXT_PART)
		next = load_in_transaction(reload);
	reload->relations += reload->brought > brought;
	return next;
}

static void
report(const Reload *reload)
{
	if (reload->brought == 0)
		return;
	StartTransactionCommand();
	ereport(LOG,
			(errmsg("gpuhash loaded " UINT64_FORMAT " pages onto GPU %d again", reload->brought,
					gh_service_device_number(reload->device)),
			 errdetail("They are of %d relations of database \"%s\".", reload->relations,
					   get_database_name(MyDatabaseId))));
	CommitTransactionCommand();
}

void
gh_reload_worker_main(Datum arg)
{
	GhReloadTask task;
	Reload		reload = {0};
	GhRememberedList list;

	memcpy(&task, MyBgworkerEntry->bgw_extra, sizeof(task));
	reload.device = task.device;
	gh_loader_begin(arg);
	gh_remembered_read(&list, DEBUG1);
	for (int i = 0; i < list.count; i++)
	{
		const GhRemembered *entry = &list.entries[i];

		if (entry->database == MyDatabaseId && entry->device == gh_service_device_number(reload.device) &&
			load_relation(&reload, entry) == NEXT_NOTHING)
			break;
	}
	report(&reload);
}
