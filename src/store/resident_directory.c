/*
 * resident_directory.c
 *		The files of relations that have pages on devices: found by device and file, of all databases.
 *
 * A file that is opened stays.  One that nobody has open goes when its relation has another file, or is no
 * more, or when its pages have to make room for those of others.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/syscache.h"

#include "compat.h"
#include "service/service.h"
#include "store/inside.h"
#include "store/resident_file.h"

/* Pages that were not used for so long may make room. */
#define GH_IDLE_US INT64CONST(1000000)
/* So long the memory of spans that were given up is waited for. */
#define GH_ROOM_WAIT_MS 5

static GhResidentFile *
file_at(dsa_pointer file)
{
	return dsa_get_address(gh_store_area(), file);
}

/* ------------------------------------------------------------ making, freeing */

static void
free_file(GhResidentFile *file)
{
	/* a worker that is just taking one of its spans away has done so soon */
	for (int ms = 0; !gh_file_forget_all(gh_store_area(), file) && ms < GH_ROOM_WAIT_MS; ms++)
		gh_wait_for_memory(1);
	dsa_free(gh_store_area(), file->self);
}

static void
init_file(GhResidentFile *file, dsa_pointer self, const GhResidentKey *key, Oid relid)
{
	file->key = *key;
	file->self = self;
	file->relid = relid;
	file->in_recovery = RecoveryInProgress();
	LWLockInitialize(&file->lock, gh_store_area_tranche());
	pg_atomic_init_u64(&file->hits, 0);
	pg_atomic_init_u64(&file->revalidated, 0);
	pg_atomic_init_u64(&file->used, (uint64) GetCurrentTimestamp());
}

/* Frees the file of a key if nobody has it open, or has the last one who has it open free it. */
static void
drop_file(const GhResidentKey *key)
{
	dshash_table *files = gh_store_area_residents();
	GhResidentEntry *entry = dshash_find(files, key, true);
	GhResidentFile *file;

	if (entry == NULL)
		return;
	file = file_at(entry->file);
	file->doomed = true;
	if (file->opened > 0)
	{
		dshash_release_lock(files, entry);
		return;
	}
	dshash_delete_entry(files, entry);
	free_file(file);
}

/* ----------------------------------------------------------------- lists */

typedef struct KeyList
{
	GhResidentKey *keys;
	Oid		   *relids;
	TimestampTz *used;
	int			count;
	int			room;
} KeyList;

static void
append_key(KeyList *list, const GhResidentFile *file)
{
	if (list->count == list->room)
	{
		list->room *= 2;
		list->keys = repalloc(list->keys, list->room * sizeof(GhResidentKey));
		list->relids = repalloc(list->relids, list->room * sizeof(Oid));
		list->used = repalloc(list->used, list->room * sizeof(TimestampTz));
	}
	list->keys[list->count] = file->key;
	list->relids[list->count] = file->relid;
	list->used[list->count++] = (TimestampTz) pg_atomic_read_u64(&((GhResidentFile *) file)->used);
}

/* Files that are not about to be freed; idle: nobody has them open. */
static void
list_files(KeyList *list, bool idle)
{
	dshash_seq_status scan;
	GhResidentEntry *entry;

	list->count = 0;
	list->room = 16;
	list->keys = palloc(list->room * sizeof(GhResidentKey));
	list->relids = palloc(list->room * sizeof(Oid));
	list->used = palloc(list->room * sizeof(TimestampTz));
	dshash_seq_init(&scan, gh_store_area_residents(), false);
	while ((entry = dshash_seq_next(&scan)) != NULL)
	{
		const GhResidentFile *file = file_at(entry->file);

		if (!file->doomed && (!idle || file->opened == 0))
			append_key(list, file);
	}
	dshash_seq_term(&scan);
}

static void
free_list(KeyList *list)
{
	pfree(list->keys);
	pfree(list->relids);
	pfree(list->used);
}

/* ------------------------------------------------------ what has become of them */

/*
 * Whether the relation still has the file, or its database is another one, of which that is not known here.
 */
bool
gh_resident_has_file(const GhResidentKey *key, Oid relid)
{
	HeapTuple	tuple;
	bool		same;

	if (key->database != MyDatabaseId)
		return SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(key->database));
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return false;
	same = ((Form_pg_class) GETSTRUCT(tuple))->relfilenode == key->number;
	ReleaseSysCache(tuple);
	return same;
}

/* Frees the files of relations that were dropped, truncated or rewritten. */
static void
drop_old_files(void)
{
	KeyList		list;

	list_files(&list, true);
	for (int i = 0; i < list.count; i++)
		if (!gh_resident_has_file(&list.keys[i], list.relids[i]))
			drop_file(&list.keys[i]);
	free_list(&list);
}

/* ----------------------------------------------------------------- open, close */

/* Whether what is known under a relation's key is of that relation, and may be used now. */
static bool
is_as_it_should_be(const GhResidentFile *file, Oid relid)
{
	return !file->doomed && file->relid == relid && file->in_recovery == RecoveryInProgress();
}

/*
 * The file if it is there and as it should be, opened; NULL: there is none.  *stale: it is to be made anew.
 */
static GhResidentFile *
find_file(const GhResidentKey *key, Oid relid, bool *stale)
{
	dshash_table *files = gh_store_area_residents();
	GhResidentEntry *entry = dshash_find(files, key, true);
	GhResidentFile *file = NULL;

	*stale = false;
	if (entry == NULL)
		return NULL;
	file = file_at(entry->file);
	*stale = !is_as_it_should_be(file, relid);
	if (!*stale)
		file->opened++;
	dshash_release_lock(files, entry);
	return *stale ? NULL : file;
}

/* A new one, opened; or that which another process has made meanwhile. */
static GhResidentFile *
make_file(const GhResidentKey *key, Oid relid)
{
	dshash_table *files = gh_store_area_residents();
	dsa_pointer self;
	GhResidentFile *file;
	GhResidentEntry *entry;
	bool		found;

	self = dsa_allocate_extended(gh_store_area(), sizeof(GhResidentFile), DSA_ALLOC_NO_OOM | DSA_ALLOC_ZERO);
	if (!DsaPointerIsValid(self))
		return NULL;
	file = file_at(self);
	init_file(file, self, key, relid);
	entry = dshash_find_or_insert(files, key, &found);
	if (found)
	{
		dsa_free(gh_store_area(), self);
		file = file_at(entry->file);
		/* one that is to go may be used no more */
		if (!is_as_it_should_be(file, relid))
			file = NULL;
	}
	else
		entry->file = self;
	if (file != NULL)
		file->opened++;
	dshash_release_lock(files, entry);
	return file;
}

/* Opens the file of a relation, making it known if it is not; NULL: not now. */
GhResidentFile *
gh_resident_file_open(const GhResidentKey *key, Oid relid)
{
	bool		stale;
	GhResidentFile *file = find_file(key, relid, &stale);

	if (file != NULL)
		return file;
	if (stale)
		drop_file(key);
	/* a new file may be a relation's second one */
	if (!IsParallelWorker())
		drop_old_files();
	return make_file(key, relid);
}

void
gh_resident_file_close(GhResidentFile *file)
{
	dshash_table *files = gh_store_area_residents();
	GhResidentKey key = file->key;
	GhResidentEntry *entry = dshash_find(files, &key, true);

	Assert(entry != NULL && file_at(entry->file) == file);
	if (entry == NULL)
		return;
	if (--file->opened > 0 || !file->doomed)
	{
		dshash_release_lock(files, entry);
		return;
	}
	dshash_delete_entry(files, entry);
	free_file(file);
}

/* -------------------------------------------------------------------- memory */

static bool
is_of_file(const GhResidentKey *key, const GhResidentFile *file)
{
	return file != NULL && memcmp(key, &file->key, sizeof(*key)) == 0;
}

/* Gives up a span of the file, the last one that nobody holds; a file without any goes. */
static void
shrink_file(const GhResidentKey *key, Oid relid)
{
	bool		stale;
	GhResidentFile *file = find_file(key, relid, &stale);
	bool		given_up;

	if (file == NULL)
		return;
	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	given_up = gh_file_shrink(gh_store_area(), file);
	if (given_up)
		strlcpy(file->why_not, "others needed the GPU's memory", sizeof(file->why_not));
	LWLockRelease(&file->lock);
	gh_resident_file_close(file);
	if (!given_up)
		drop_file(key);
}

/*
 * Gives up some pages of the file that was used longest ago, of those on the device that nobody uses and that
 * were not used for a second; false: there is none.
 */
bool
gh_resident_make_room(uint32 device, const GhResidentFile *but)
{
	TimestampTz now = GetCurrentTimestamp();
	KeyList		list;
	int			oldest = -1;

	list_files(&list, true);
	for (int i = 0; i < list.count; i++)
		if (list.keys[i].device == device && !is_of_file(&list.keys[i], but) && now - list.used[i] > GH_IDLE_US &&
			(oldest < 0 || list.used[i] < list.used[oldest]))
			oldest = i;
	if (oldest >= 0)
	{
		shrink_file(&list.keys[oldest], list.relids[oldest]);
		/* its executors free it, soon if they have nothing else to do */
		gh_wait_for_memory(GH_ROOM_WAIT_MS);
	}
	free_list(&list);
	return oldest >= 0;
}

/* -------------------------------------------------------------- what is there */

/* Pages of a relation's file that are there, without opening it. */
uint64
gh_resident_file_pages(const GhResidentKey *key, Oid relid)
{
	dshash_table *files = gh_store_area_residents();
	GhResidentEntry *entry = dshash_find(files, key, false);
	GhResidentFile *file;
	uint64		pages = 0;

	if (entry == NULL)
		return 0;
	file = file_at(entry->file);
	if (is_as_it_should_be(file, relid))
	{
		/* in this order: nobody looks into the directory while holding a file's lock */
		LWLockAcquire(&file->lock, LW_SHARED);
		pages = gh_file_count_blocks(gh_store_area(), file, false);
		LWLockRelease(&file->lock);
	}
	dshash_release_lock(files, entry);
	return pages;
}

/* Pages of a file that are there, and the memory for them. */
static uint64
count_pages(GhResidentFile *file, uint64 *bytes)
{
	dsa_area   *area = gh_store_area();
	uint64		pages;

	*bytes = 0;
	LWLockAcquire(&file->lock, LW_SHARED);
	for (uint32 i = 0; i < file->nspans; i++)
		if (gh_service_entry_used(gh_file_spans(area, file)[i].root) != 0)
			*bytes += (uint64) gh_file_spans(area, file)[i].npages * BLCKSZ;
	pages = gh_file_count_blocks(area, file, false);
	LWLockRelease(&file->lock);
	return pages;
}

/* Of the files of a database, what the view shows. */
GhResidentInfo *
gh_resident_list(Oid database, int *count)
{
	GhResidentInfo *infos;
	KeyList		list;

	drop_old_files();
	list_files(&list, false);
	infos = palloc(Max(list.count, 1) * sizeof(GhResidentInfo));
	*count = 0;
	for (int i = 0; i < list.count; i++)
	{
		bool		stale;
		GhResidentFile *file;
		GhResidentInfo *info = &infos[*count];

		if (list.keys[i].database != database)
			continue;
		file = find_file(&list.keys[i], list.relids[i], &stale);
		if (file == NULL)
			continue;
		info->key = file->key;
		info->relid = file->relid;
		info->resident = count_pages(file, &info->bytes);
		info->hits = pg_atomic_read_u64(&file->hits);
		info->revalidated = pg_atomic_read_u64(&file->revalidated);
		info->used = list.used[i];
		strlcpy(info->why_not, file->why_not, sizeof(info->why_not));
		gh_resident_file_close(file);
		(*count)++;
	}
	free_list(&list);
	return infos;
}

/*
 * Of the files of all databases, what of them is on their devices, or was when its worker ended.  It looks
 * into no catalog, and opens and frees none.
 */
GhResidentInfo *
gh_resident_list_all(int *count)
{
	int			room = 16;
	GhResidentInfo *infos = palloc(room * sizeof(GhResidentInfo));
	dshash_seq_status scan;
	GhResidentEntry *entry;

	*count = 0;
	dshash_seq_init(&scan, gh_store_area_residents(), false);
	while ((entry = dshash_seq_next(&scan)) != NULL)
	{
		GhResidentFile *file = file_at(entry->file);
		GhResidentInfo *info;

		if (file->doomed)
			continue;
		if (*count == room)
			infos = repalloc(infos, (room *= 2) * sizeof(GhResidentInfo));
		info = &infos[(*count)++];
		memset(info, 0, sizeof(*info));
		info->key = file->key;
		info->relid = file->relid;
		info->used = (TimestampTz) pg_atomic_read_u64(&file->used);
		LWLockAcquire(&file->lock, LW_SHARED);
		info->resident = gh_file_count_blocks(gh_store_area(), file, true);
		LWLockRelease(&file->lock);
	}
	dshash_seq_term(&scan);
	return infos;
}
