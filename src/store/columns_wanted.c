/*
 * columns_wanted.c
 *		The list of tables whose columns the planner would have liked to find in shared memory.
 *
 * A session that plans a query asks for them; what was asked for twice is made by a process that the launcher
 * starts (reload.c, ../fragment/reload_columns.c).  The list is short, and what nobody asks for any more
 * leaves it: it is no promise, for whoever goes on asking is heard again.
 *
 * Columns are made for an entry once, whatever comes of it: then they are there, and nobody asks, or they
 * cannot be, and asking is in vain.  It is counted again for these columns after a while, which doubles each
 * time: so nothing is made again and again, although the planner goes on asking.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "service/faults.h"
#include "service/service.h"
#include "store/columns_wanted.h"
#include "store/inside.h"
#include "store/resident_file.h"
#include "store/shared_copies.h"

/* Tables that are known of at a time. */
#define GH_WANTED_TABLES GH_WITH_FAULT_POINTS(8, 64)
/* What nobody has asked for since is forgotten. */
#define GH_WANTED_MS (10 * 60 * 1000)
/* What was made, or could not be, is not made again so soon; so often doubled, at most. */
#define GH_WANTED_AGAIN_MS (60 * 1000)
#define GH_WANTED_DOUBLED 6
/* Bytes that a value is expected to take. */
#define GH_WANTED_VALUE_BYTES 4

typedef struct WantedTable
{
	Oid			database;		/* InvalidOid: the entry is free */
	Oid			relation;
	uint64		once;			/* columns that were asked for */
	uint64		twice;			/* of these, those that were so by another statement before */
	uint64		made;			/* columns that were begun to be made, with or without success */
	int			times;			/* so often */
	TimestampTz begun;			/* when for the last time */
	TimestampTz asked;			/* when it was asked for them last */
} WantedTable;

typedef struct Wanted
{
	LWLock		lock;			/* guards what follows */
	WantedTable tables[GH_WANTED_TABLES];
} Wanted;

static Wanted *wanted_tables = NULL;

static Size
wanted_size(void)
{
	return sizeof(Wanted);
}

static void
wanted_place(void *place, bool found)
{
	wanted_tables = place;
	if (found)
		return;
	memset(wanted_tables, 0, sizeof(Wanted));
	LWLockInitialize(&wanted_tables->lock, gh_store_area_tranche());
}

void
gh_columns_wanted_init(void)
{
	gh_service_add_memory("gpuhash wanted columns", wanted_size, wanted_place);
}

/* ------------------------------------------------------- entries, under the lock */

/* Whether these columns were made not long ago, or could not be. */
static bool
is_in_vain(const WantedTable *table, uint64 columns)
{
	int64		wait = (int64) GH_WANTED_AGAIN_MS << Min(table->times, GH_WANTED_DOUBLED + 1) >> 1;

	return table->times > 0 && (columns & ~table->made) == 0 &&
		!TimestampDifferenceExceeds(table->begun, GetCurrentTimestamp(), (int) wait);
}

/* Whether the entry is as good as none. */
static bool
is_forgotten(const WantedTable *table)
{
	return TimestampDifferenceExceeds(table->asked, GetCurrentTimestamp(), GH_WANTED_MS) && !is_in_vain(table, 0);
}

static bool
is_due(const WantedTable *table)
{
	return OidIsValid(table->database) && table->twice != 0 && !is_in_vain(table, table->twice) && !is_forgotten(table);
}

static WantedTable *
find_table(Oid relation)
{
	for (int i = 0; i < GH_WANTED_TABLES; i++)
		if (wanted_tables->tables[i].relation == relation && wanted_tables->tables[i].database == MyDatabaseId)
			return &wanted_tables->tables[i];
	return NULL;
}

/* The entry of which was asked longest ago: a free one, if there is any. */
static WantedTable *
find_oldest(void)
{
	WantedTable *oldest = &wanted_tables->tables[0];

	for (int i = 1; i < GH_WANTED_TABLES; i++)
		if (wanted_tables->tables[i].asked < oldest->asked)
			oldest = &wanted_tables->tables[i];
	return oldest;
}

/* ------------------------------------------------------------------ the planner */

/* rows: of the table, that columns would be made of. */
bool
gh_columns_may_be_wanted(Relation relation, double rows, const GhWantedColumns *wanted)
{
	const WantedTable *table;
	bool		in_vain;

	if (wanted_tables == NULL || !gh_prewarm_columns || !gh_resident_allowed(relation) ||
		rows * pg_popcount64(wanted->columns) * GH_WANTED_VALUE_BYTES > (double) gh_shared_copies_limit())
		return false;
	LWLockAcquire(&wanted_tables->lock, LW_SHARED);
	table = find_table(wanted->relation);
	in_vain = table != NULL && is_in_vain(table, wanted->columns);
	LWLockRelease(&wanted_tables->lock);
	return !in_vain;
}

/*
 * Counts that they are asked for, once in a statement; when all of them were so before, the launcher is told.
 */
void
gh_columns_ask(const GhWantedColumns *wanted)
{
	WantedTable *table;
	bool		due;

	LWLockAcquire(&wanted_tables->lock, LW_EXCLUSIVE);
	table = find_table(wanted->relation);
	if (table == NULL || is_forgotten(table))
	{
		if (table == NULL)
			table = find_oldest();
		*table = (WantedTable) {.database = MyDatabaseId,.relation = wanted->relation};
	}
	if (!is_in_vain(table, wanted->columns))
	{
		/* not by the same statement: it may be planned several times, and its functions' statements are */
		if (table->asked < GetCurrentStatementStartTimestamp())
			table->twice |= table->once & wanted->columns;
		table->once |= wanted->columns;
		table->asked = GetCurrentTimestamp();
	}
	due = (wanted->columns & ~table->twice) == 0;
	LWLockRelease(&wanted_tables->lock);
	if (due)
		gh_service_wake_watcher();
}

/* ------------------------------------------------------- the launcher, its process */

/* That which was asked for last comes first: it is what queries wait for now. */
static WantedTable *
find_due(Oid database)
{
	WantedTable *last = NULL;

	for (int i = 0; i < GH_WANTED_TABLES; i++)
	{
		WantedTable *table = &wanted_tables->tables[i];

		if ((database == InvalidOid || table->database == database) && is_due(table) &&
			(last == NULL || table->asked > last->asked))
			last = table;
	}
	return last;
}

Oid
gh_columns_wanted_database(void)
{
	const WantedTable *table;
	Oid			database;

	LWLockAcquire(&wanted_tables->lock, LW_SHARED);
	table = find_due(InvalidOid);
	database = table != NULL ? table->database : InvalidOid;
	LWLockRelease(&wanted_tables->lock);
	return database;
}

/*
 * What was asked for before its process began, and it has not begun to make, is forgotten: it failed, or the
 * database is gone.
 */
void
gh_columns_wanted_end(Oid database, TimestampTz began)
{
	LWLockAcquire(&wanted_tables->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_WANTED_TABLES; i++)
	{
		WantedTable *table = &wanted_tables->tables[i];

		if (table->database == database && table->asked < began && is_due(table))
			table->once = table->twice = 0;
	}
	LWLockRelease(&wanted_tables->lock);
}

bool
gh_columns_wanted_next(GhWantedColumns *wanted)
{
	WantedTable *table;

	LWLockAcquire(&wanted_tables->lock, LW_EXCLUSIVE);
	table = find_due(MyDatabaseId);
	if (table != NULL)
	{
		wanted->relation = table->relation;
		wanted->columns = table->twice;
		/* before it is done, as that may end the process */
		table->made |= table->twice;
		table->once = table->twice = 0;
		table->times++;
		table->begun = GetCurrentTimestamp();
	}
	LWLockRelease(&wanted_tables->lock);
	return table != NULL;
}
