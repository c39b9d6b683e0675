/*
 * resident_tables.c
 *		Tables of joins that stay on a device.
 *
 * A table is found by what it is made of: the relation's file, and a digest of the pipeline that made it,
 * with the values of all parameters.  It is that of a query if every block of the relation was all-visible
 * when the pipeline began, and is now, by pages of the map whose LSNs have not moved: then no row of it has
 * changed (resident.c).  A few blocks may lack the mark if every snapshot saw their rows then
 * (../heap/settled.c), and their pages have the LSNs that they had.
 *
 * Or it is the copy of an index: then it is found by the index's file, and by the copy's generation.
 *
 * A table is of one executor of the service, and so are all that a pipeline probes.  So sessions of each
 * executor have tables of their own.
 *
 * Who borrows a table holds its entry, and it is not given up as long as somebody does.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "gpuhash.h"
#include "heap/map.h"
#include "heap/settled.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/inside.h"
#include "store/resident_file.h"
#include "store/resident_tables.h"

/* Of all databases and devices. */
#define GH_RESIDENT_TABLES 256
/* Pages of the map that a relation may have: of 16 GB. */
#define GH_TABLE_MAPS_MAX 64
/* Blocks that the map has not. */
#define GH_TABLE_UNMARKED_MAX 128
/* Of tables that were made and did not stay, how many are known. */
#define GH_TABLES_WANTED 1024
/* Of a device's memory, or gpuhash.resident_memory, what they may take together. */
#define GH_TABLES_SHARE(bytes) ((bytes) / 8)

typedef struct TableKey
{
	GhResidentKey file;
	uint32		executor;
	uint8		identity[PG_SHA256_DIGEST_LENGTH];
} TableKey;

/* A block that is not all-visible by the map, but settled. */
typedef struct UnmarkedBlock
{
	XLogRecPtr	lsn;			/* of the page; or GH_PAGE_IS_NEW */
	uint64		block;
} UnmarkedBlock;

/* The relation's rows; or an index's entries, of its copy. */
typedef struct TableRows
{
	bool		in_recovery;
	uint64		generation;		/* of the copy; 0: of rows, and what follows tells which */
	BlockNumber nblocks;
	uint32		nmaps;
	uint32		nunmarked;
	XLogRecPtr	lsns[GH_TABLE_MAPS_MAX];	/* of the pages of the map */
	UnmarkedBlock unmarked[GH_TABLE_UNMARKED_MAX];
} TableRows;

struct GhTableSource
{
	TableKey	key;
	Oid			relid;
	TableRows	rows;
};

typedef struct ResidentTable
{
	GhRef		root;			/* 0: the place is free */
	bool		stale;			/* it is not to be borrowed any more, and goes when nobody holds it */
	TableKey	key;
	Oid			relid;
	TableRows	made_of;
	uint64		rows;
	uint64		bytes;
	pg_atomic_uint64 used;		/* by turns: the largest was used last */
	pg_atomic_uint64 hits;		/* of a copy of an index, as what follows: queries that used it */
	pg_atomic_uint64 last_used; /* a TimestampTz */
} ResidentTable;

typedef struct ResidentTables
{
	pg_atomic_uint64 turn;
	LWLock		lock;			/* guards what follows; `used` is atomic */
	uint64		digests[GH_RESIDENT_TABLES];	/* the first bytes of each table's identity */
	uint64		wanted[GH_TABLES_WANTED];	/* likewise, of tables for which there was no room */
	uint32		next_wanted;	/* in it, round and round */
	ResidentTable tables[GH_RESIDENT_TABLES];
} ResidentTables;

static ResidentTables *shared = NULL;

static Size
tables_size(void)
{
	return sizeof(ResidentTables);
}

static void
tables_init(void *place, bool found)
{
	shared = place;
	if (found)
		return;
	memset(shared, 0, sizeof(ResidentTables));
	pg_atomic_init_u64(&shared->turn, 0);
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
	{
		pg_atomic_init_u64(&shared->tables[i].used, 0);
		pg_atomic_init_u64(&shared->tables[i].hits, 0);
		pg_atomic_init_u64(&shared->tables[i].last_used, 0);
	}
	LWLockInitialize(&shared->lock, gh_store_area_tranche());
}

/* Called while the libraries are preloaded. */
void
gh_resident_tables_init(void)
{
	gh_service_add_memory("gpuhash resident tables", tables_size, tables_init);
}

/* ------------------------------------------------------------------- sources */

/*
 * Whether tables of the relation's rows may stay at all.  Serializable transactions have to lock what they
 * read.
 */
bool
gh_resident_tables_apply(Relation relation, Snapshot snapshot)
{
	return snapshot->snapshot_type == SNAPSHOT_MVCC && !IsolationIsSerializable() &&
		gh_resident_allowed(relation);
}

/* Lists the blocks of a page of the map that it has not as all-visible; false: they are too many. */
static bool
list_unmarked(const GhMapPage *map, BlockNumber first, BlockNumber end, TableRows *rows)
{
	for (BlockNumber block = first; (block = gh_map_next_unmarked(map, block, end)) < end; block++)
	{
		if (rows->nunmarked == GH_TABLE_UNMARKED_MAX)
			return false;
		rows->unmarked[rows->nunmarked++].block = block;
	}
	return true;
}

/* Reads the map; false: too many blocks are not all-visible by it, or there are too many in all. */
static bool
read_map(Relation relation, TableRows *rows)
{
	GhMapPage  *map = palloc(sizeof(GhMapPage));
	bool		listed = rows->nmaps <= GH_TABLE_MAPS_MAX;

	for (uint32 i = 0; listed && i < rows->nmaps; i++)
	{
		BlockNumber first = i * GH_MAP_BLOCKS;

		CHECK_FOR_INTERRUPTS();
		gh_map_read(relation, i, map);
		rows->lsns[i] = map->lsn;
		listed = map->lsn != InvalidXLogRecPtr &&
			list_unmarked(map, first, Min(rows->nblocks, first + GH_MAP_BLOCKS), rows);
	}
	pfree(map);
	return listed;
}

/*
 * What the relation has now; false: there are rows that not every snapshot sees, or too many blocks that
 * would have to be asked.
 */
static bool
read_rows(Relation relation, TableRows *rows)
{
	TransactionId horizon = InvalidTransactionId;
	bool		settled;

	memset(rows, 0, sizeof(*rows));
	rows->in_recovery = RecoveryInProgress();
	rows->nblocks = RelationGetNumberOfBlocks(relation);
	rows->nmaps = rows->nblocks == 0 ? 0 : gh_map_page_of(rows->nblocks - 1) + 1;
	settled = read_map(relation, rows) && (rows->nunmarked == 0 || !rows->in_recovery);
	if (settled && rows->nunmarked > 0)
		horizon = GetOldestNonRemovableTransactionId(relation);
	for (uint32 i = 0; settled && i < rows->nunmarked; i++)
		settled = gh_page_is_settled(relation, (BlockNumber) rows->unmarked[i].block, horizon,
									 &rows->unmarked[i].lsn);
	return settled;
}

/*
 * Looks at the relation, before anything of it is read for the table; the snapshot is held.  identity: a
 * digest of all else that the table depends on.  In the current context; NULL: such a table can be neither
 * borrowed nor kept.
 */
GhTableSource *
gh_resident_table_source(Relation relation, int device, const uint8 identity[PG_SHA256_DIGEST_LENGTH])
{
	GhTableSource *source = palloc0(sizeof(GhTableSource));

	source->relid = RelationGetRelid(relation);
	gh_resident_key(&source->key.file, relation, device);
	source->key.executor = gh_service_table_executor();
	memcpy(source->key.identity, identity, PG_SHA256_DIGEST_LENGTH);
	if (read_rows(relation, &source->rows))
		return source;
	pfree(source);
	return NULL;
}

/*
 * The same of the copy of an index on the device: the table has its entries, whatever has become of the rows
 * since.  For which of them it is right is asked for each use, by the copy's generation
 * (../fragment/device_copy.c).
 */
GhTableSource *
gh_resident_table_source_of_copy(Relation index, uint64 generation, int device)
{
	GhTableSource *source = palloc0(sizeof(GhTableSource));

	source->relid = RelationGetRelid(index);
	gh_resident_key(&source->key.file, index, device);
	source->key.executor = GH_DEVICE_COPY_EXECUTOR;
	memcpy(source->key.identity, &generation, sizeof(generation));
	source->rows.generation = generation;
	return source;
}

/*
 * All that a source says, for a digest of what is made of several: of two that are equal, a table would be.
 */
const void *
gh_resident_table_source_bytes(const GhTableSource *source, Size *bytes)
{
	*bytes = sizeof(GhTableSource);
	return source;
}

static bool
has_same_rows(const TableRows *a, const TableRows *b)
{
	return a->in_recovery == b->in_recovery && a->generation == b->generation && a->nblocks == b->nblocks &&
		((a->nunmarked == b->nunmarked &&
		  memcmp(a->unmarked, b->unmarked, sizeof(UnmarkedBlock) * a->nunmarked) == 0) ||
		 gh_fault_pass(GH_FAULT_POINT_RESIDENT_HEAP) != GH_FAULT_NONE) &&
		(memcmp(a->lsns, b->lsns, sizeof(XLogRecPtr) * a->nmaps) == 0 ||
		 gh_fault_pass(GH_FAULT_POINT_RESIDENT_MAP) != GH_FAULT_NONE);
}

/* ------------------------------------------------- the list, under its lock */

/* Gives the memory of a table back, or of what is left of it; false: somebody holds it. */
static bool
free_table(ResidentTable *table)
{
	if (!gh_service_entry_release(table->root))
		return false;
	table->root = 0;
	return true;
}

/* Whether the relation had other rows, or another file, than as it is seen now. */
static bool
is_outdated(const ResidentTable *table, const GhTableSource *now)
{
	return table->relid == now->relid && table->key.file.database == now->key.file.database &&
		table->key.file.device == now->key.file.device &&
		(memcmp(&table->key.file, &now->key.file, sizeof(GhResidentKey)) != 0 ||
		 !has_same_rows(&table->made_of, &now->rows));
}

/*
 * Tables that nobody can borrow any more go, as far as nobody holds them.  now: a relation as it was just
 * seen, or NULL.
 */
static void
sweep(const GhTableSource *now)
{
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
	{
		ResidentTable *table = &shared->tables[i];

		if (table->root == 0)
			continue;
		table->stale |= gh_service_entry_used(table->root) == 0 || (now != NULL && is_outdated(table, now));
		if (table->stale)
			(void) free_table(table);
	}
}

static uint64
first_bytes(const TableKey *key)
{
	uint64		bytes;

	memcpy(&bytes, key->identity, sizeof(bytes));
	return bytes;
}

static ResidentTable *
find_table(const TableKey *key)
{
	uint64		digest = first_bytes(key);

	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
	{
		ResidentTable *table = &shared->tables[i];

		if (shared->digests[i] == digest && table->root != 0 && !table->stale &&
			memcmp(&table->key, key, sizeof(*key)) == 0)
			return table;
	}
	return NULL;
}

/*
 * A device's table that was used longest ago of those that nobody holds gives its memory back; device -1: any
 * one's.  Its name; 0: there is none.
 */
static GhRef
free_oldest(int device, uint64 *bytes)
{
	bool		tried[GH_RESIDENT_TABLES] = {false};

	for (;;)
	{
		ResidentTable *oldest = NULL;
		GhRef		root;

		for (int i = 0; i < GH_RESIDENT_TABLES; i++)
		{
			ResidentTable *table = &shared->tables[i];

			if (table->root != 0 && !tried[i] && (device < 0 || table->key.file.device == (uint32) device) &&
				(oldest == NULL || pg_atomic_read_u64(&table->used) < pg_atomic_read_u64(&oldest->used)))
				oldest = table;
		}
		if (oldest == NULL)
			return 0;
		*bytes = oldest->bytes;
		root = oldest->root;
		if (free_table(oldest))
			return root;
		tried[oldest - shared->tables] = true;
	}
}

static uint64
bytes_on(int device)
{
	uint64		bytes = 0;

	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
		if (shared->tables[i].root != 0 && shared->tables[i].key.file.device == (uint32) device)
			bytes += shared->tables[i].bytes;
	return bytes;
}

/* Whether a table like it was made before, and did not stay; from now on, one was. */
static bool
was_wanted(const TableKey *key)
{
	uint64		digest = first_bytes(key);

	for (int i = 0; i < GH_TABLES_WANTED; i++)
		if (shared->wanted[i] == digest)
			return true;
	shared->wanted[shared->next_wanted++ % GH_TABLES_WANTED] = digest;
	return false;
}

static ResidentTable *
free_place(void)
{
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
		if (shared->tables[i].root == 0)
			return &shared->tables[i];
	return NULL;
}

/* Of a device, what tables may take together. */
static uint64
most_bytes(int device)
{
	uint64		most = gh_service_device_memory(device);

	if (gh_resident_memory >= 0)
		most = Min(most, (uint64) gh_resident_memory * 1024 * 1024);
	return GH_TABLES_SHARE(most);
}

bool
gh_resident_table_is_there(const GhTableSource *source)
{
	bool		found;

	LWLockAcquire(&shared->lock, LW_SHARED);
	found = find_table(&source->key) != NULL;
	LWLockRelease(&shared->lock);
	return found;
}

/* Whether there is room for a table of so many bytes, if others go for it. */
bool
gh_resident_table_may_stay(const GhTableSource *source, uint64 bytes)
{
	return bytes <= most_bytes((int) source->key.file.device);
}

/*
 * A place for a table of so many bytes; NULL: there is no room.  Others go for it if such a table is wanted
 * for the second time: queries with another constant each time do not drive out what is used again.  Or if it
 * is the copy of an index, which somebody has asked for.
 */
static ResidentTable *
make_place(const TableKey *key, uint64 bytes, bool is_copy)
{
	int			device = (int) key->file.device;
	uint64		most = most_bytes(device);
	ResidentTable *place = free_place();
	uint64		freed;

	if (bytes > most)
		return NULL;
	if ((place == NULL || bytes_on(device) + bytes > most) && !is_copy && !was_wanted(key))
		return NULL;
	while (bytes_on(device) + bytes > most)
		if (free_oldest(device, &freed) == 0)
			return NULL;
	if (free_place() == NULL)
		(void) free_oldest(-1, &freed);
	return free_place();
}

/* ---------------------------------------------------------------- its users */

/* The table of that name is not to be borrowed any more. */
static void
note_stale(GhRef root)
{
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
		if (shared->tables[i].root == root)
			shared->tables[i].stale = true;
	LWLockRelease(&shared->lock);
}

/* Tables whose relation, or database, is no more, or has another file, are not borrowed any more. */
static void
note_gone(void)
{
	GhRef	   *roots = palloc(sizeof(GhRef) * GH_RESIDENT_TABLES);
	Oid		   *relids = palloc(sizeof(Oid) * GH_RESIDENT_TABLES);
	GhResidentKey *files = palloc(sizeof(GhResidentKey) * GH_RESIDENT_TABLES);
	int			count = 0;

	LWLockAcquire(&shared->lock, LW_SHARED);
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
	{
		const ResidentTable *table = &shared->tables[i];

		if (table->root == 0 || table->stale)
			continue;
		roots[count] = table->root;
		relids[count] = table->relid;
		files[count++] = table->key.file;
	}
	LWLockRelease(&shared->lock);
	for (int i = 0; i < count; i++)
		if (!gh_resident_has_file(&files[i], relids[i]))
			note_stale(roots[i]);
	pfree(roots);
	pfree(relids);
	pfree(files);
}

static void
note_use(ResidentTable *table)
{
	pg_atomic_write_u64(&table->used, pg_atomic_add_fetch_u64(&shared->turn, 1));
	if (table->made_of.generation == 0)
		return;
	pg_atomic_fetch_add_u64(&table->hits, 1);
	pg_atomic_write_u64(&table->last_used, (uint64) GetCurrentTimestamp());
}

/*
 * Borrows the table that was made of the same, until gh_resident_table_return; false: there is none.  The map
 * was read for the source when the snapshot was held.
 */
bool
gh_resident_table_borrow(const GhTableSource *source, GhRef *root, uint64 *rows)
{
	GhRef		stale = 0;
	ResidentTable *table;
	bool		found = false;

	LWLockAcquire(&shared->lock, LW_SHARED);
	table = find_table(&source->key);
	if (table != NULL && !has_same_rows(&table->made_of, &source->rows))
		stale = table->root;
	else if (table != NULL && gh_service_entry_hold(table->root))
	{
		*root = table->root;
		*rows = table->rows;
		note_use(table);
		found = true;
	}
	LWLockRelease(&shared->lock);
	if (stale != 0)
		note_stale(stale);
	return found;
}

/*
 * Keeps a table that was made of all of the source's rows, and is shared by its root, for others, and holds
 * it as if it were borrowed.  False: it is still the caller's alone.
 */
bool
gh_resident_table_keep(const GhTableSource *source, GhRef root, uint64 rows)
{
	uint64		bytes = gh_service_table_bytes(root);
	ResidentTable *table;

	note_gone();
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	sweep(source);
	/* another session may have been first */
	table = find_table(&source->key) != NULL ? NULL :
		make_place(&source->key, bytes, source->rows.generation > 0);
	if (table != NULL && gh_service_entry_hold(root))
	{
		gh_service_table_stays(root);
		shared->digests[table - shared->tables] = first_bytes(&source->key);
		table->root = root;
		table->stale = false;
		table->key = source->key;
		table->relid = source->relid;
		table->made_of = source->rows;
		table->rows = rows;
		table->bytes = bytes;
		note_use(table);
		pg_atomic_write_u64(&table->hits, 0);
	}
	else
		table = NULL;
	LWLockRelease(&shared->lock);
	return table != NULL;
}

/* Another process has borrowed the table: so has this one, then; false: it has gone. */
bool
gh_resident_table_hold(GhRef root)
{
	return gh_service_entry_hold(root);
}

/* No request that probes the table is in flight. */
void
gh_resident_table_return(GhRef root)
{
	gh_service_entry_leave(root);
}

/*
 * So many bytes of a device are wanted for something else: gives up tables that nobody holds, and waits for
 * each of them, at most for so long, until its executor has freed it.  The bytes that were given up.
 */
uint64
gh_resident_tables_give_up(int device, uint64 bytes, int wait_ms)
{
	uint64		given_up = 0;
	GhRef		root = 1;

	while (shared != NULL && root != 0 && given_up < bytes)
	{
		uint64		freed = 0;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
		root = free_oldest(device, &freed);
		LWLockRelease(&shared->lock);
		given_up += freed;
		for (int ms = 0; root != 0 && ms < wait_ms && !gh_service_table_is_gone(root); ms++)
			gh_wait_for_memory(1);
	}
	return given_up;
}

/* Tables of relations that are no more, or have another file, go, as far as nobody holds them. */
void
gh_resident_tables_forget_gone(void)
{
	note_gone();
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	sweep(NULL);
	LWLockRelease(&shared->lock);
}

void
gh_resident_copies_drop_database(Oid database)
{
	if (shared == NULL)
		return;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
		if (shared->tables[i].made_of.generation > 0 && shared->tables[i].key.file.database == database)
			shared->tables[i].stale = true;
	LWLockRelease(&shared->lock);
}

GhDeviceCopyInfo *
gh_resident_copies_list(int *count)
{
	GhDeviceCopyInfo *infos = palloc(sizeof(GhDeviceCopyInfo) * GH_RESIDENT_TABLES);

	*count = 0;
	LWLockAcquire(&shared->lock, LW_SHARED);
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
	{
		ResidentTable *table = &shared->tables[i];

		if (table->root != 0 && !table->stale && table->made_of.generation > 0 && table->key.file.database == MyDatabaseId)
			infos[(*count)++] = (GhDeviceCopyInfo)
			{
				table->relid, (int) table->key.file.device, table->bytes, pg_atomic_read_u64(&table->hits),
					(TimestampTz) pg_atomic_read_u64(&table->last_used)
			};
	}
	LWLockRelease(&shared->lock);
	return infos;
}

/* How many of a relation of this database there are, and their memory. */
void
gh_resident_tables_count(int device, Oid relid, uint64 *tables, uint64 *bytes)
{
	*tables = *bytes = 0;
	LWLockAcquire(&shared->lock, LW_SHARED);
	for (int i = 0; i < GH_RESIDENT_TABLES; i++)
	{
		const ResidentTable *table = &shared->tables[i];

		if (table->root == 0 || table->stale || table->relid != relid ||
			table->key.file.database != MyDatabaseId || table->key.file.device != (uint32) device)
			continue;
		++*tables;
		*bytes += table->bytes;
	}
	LWLockRelease(&shared->lock);
}
