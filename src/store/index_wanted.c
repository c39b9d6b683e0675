/*
 * index_wanted.c
 *		The list of indexes whose copies are to be made again.
 *
 * Whoever finds that a copy is no longer right for many blocks notes its index here, and goes on.  A process
 * that the launcher starts (reload.c, ../fragment/reload_index.c) makes them.  An entry stays for a while
 * after that: so often at most another one is begun of the index, whatever came of it.  The list is short,
 * and no promise: whoever finds no place in it asks again with the next query.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "service/faults.h"
#include "service/service.h"
#include "store/index_wanted.h"
#include "store/resident_file.h"

#define GH_WANTED_INDEXES 32
/* Between two of an index; tests do not wait for that. */
#define GH_WANTED_AGAIN_MS GH_WITH_FAULT_POINTS(100, 10000)

typedef struct WantedIndex
{
	Oid			database;		/* InvalidOid: the entry is free */
	Oid			index;
	bool		wanted;			/* and not begun */
	TimestampTz since;			/* it was asked for; or begun */
} WantedIndex;

typedef struct Wanted
{
	LWLock		lock;			/* guards what follows */
	WantedIndex indexes[GH_WANTED_INDEXES];
} Wanted;

static Wanted *wanted_indexes = NULL;

static Size
wanted_size(void)
{
	return sizeof(Wanted);
}

static void
wanted_place(void *place, bool found)
{
	wanted_indexes = place;
	if (found)
		return;
	memset(wanted_indexes, 0, sizeof(Wanted));
	LWLockInitialize(&wanted_indexes->lock, gh_store_area_tranche());
}

void
gh_index_wanted_init(void)
{
	gh_service_add_memory("gpuhash wanted indexes", wanted_size, wanted_place);
}

/* ------------------------------------------------------- entries, under the lock */

/* Whether it says nothing any more. */
static bool
is_over(const WantedIndex *entry)
{
	return !OidIsValid(entry->database) ||
		(!entry->wanted && TimestampDifferenceExceeds(entry->since, GetCurrentTimestamp(), GH_WANTED_AGAIN_MS));
}

static WantedIndex *
find_index(Oid index)
{
	for (int i = 0; i < GH_WANTED_INDEXES; i++)
		if (wanted_indexes->indexes[i].index == index && wanted_indexes->indexes[i].database == MyDatabaseId)
			return &wanted_indexes->indexes[i];
	return NULL;
}

static WantedIndex *
find_free(void)
{
	for (int i = 0; i < GH_WANTED_INDEXES; i++)
		if (is_over(&wanted_indexes->indexes[i]))
			return &wanted_indexes->indexes[i];
	return NULL;
}

static WantedIndex *
find_wanted(Oid database)
{
	for (int i = 0; i < GH_WANTED_INDEXES; i++)
		if (wanted_indexes->indexes[i].wanted && (database == InvalidOid || wanted_indexes->indexes[i].database == database))
			return &wanted_indexes->indexes[i];
	return NULL;
}

/* ---------------------------------------------------------------------- use */

void
gh_index_want(Oid index)
{
	WantedIndex *entry;

	if (wanted_indexes == NULL)
		return;
	LWLockAcquire(&wanted_indexes->lock, LW_EXCLUSIVE);
	entry = find_index(index);
	if (entry == NULL)
		entry = find_free();
	else if (!is_over(entry))
		entry = NULL;
	if (entry != NULL)
		*entry = (WantedIndex) {MyDatabaseId, index, true, GetCurrentTimestamp()};
	LWLockRelease(&wanted_indexes->lock);
	if (entry != NULL)
		gh_service_wake_watcher();
}

Oid
gh_index_wanted_database(void)
{
	const WantedIndex *entry;
	Oid			database;

	LWLockAcquire(&wanted_indexes->lock, LW_SHARED);
	entry = find_wanted(InvalidOid);
	database = entry != NULL ? entry->database : InvalidOid;
	LWLockRelease(&wanted_indexes->lock);
	return database;
}

/*
 * What was asked for before its process began, and it has not begun to make, is forgotten: it failed, or the
 * database is gone.
 */
void
gh_index_wanted_end(Oid database, TimestampTz began)
{
	LWLockAcquire(&wanted_indexes->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_WANTED_INDEXES; i++)
	{
		WantedIndex *entry = &wanted_indexes->indexes[i];

		if (entry->database == database && entry->wanted && entry->since < began)
			entry->wanted = false;
	}
	LWLockRelease(&wanted_indexes->lock);
}

Oid
gh_index_wanted_next(void)
{
	WantedIndex *entry;
	Oid			index = InvalidOid;

	LWLockAcquire(&wanted_indexes->lock, LW_EXCLUSIVE);
	entry = find_wanted(MyDatabaseId);
	if (entry != NULL)
	{
		index = entry->index;
		/* before it is done, as that may end the process */
		entry->wanted = false;
		entry->since = GetCurrentTimestamp();
	}
	LWLockRelease(&wanted_indexes->lock);
	return index;
}
