/*
 * directory.c
 *		From a key to what is stored under it.
 *
 * With the service it is a hash table in shared memory, whose partition locks guard an
 * entry, the pointer in it, and what GhStored says that the directory guards.  Without,
 * it is a hash table of the session.
 *
 * A look-up copies what it finds.  The table itself is not to be touched before its
 * own lock is held and a second look-up has found it still there (access.c).
 */
#include "postgres.h"

#include "lib/dshash.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "service/service.h"
#include "store/inside.h"

/* After a copy on a device failed or was taken away, none is tried for so long. */
#define GH_COPY_PAUSE_MS 60000

static HTAB *session_names = NULL;
static MemoryContext session_context = NULL;
static uint64 session_last_id = 0;

/* ------------------------------------------------------------------- memory */

static uint64
stored_alloc(Size bytes)
{
	if (gh_service_enabled())
		return dsa_allocate0(gh_store_area(), bytes);
	return (uint64) (uintptr_t) MemoryContextAllocZero(session_context, bytes);
}

static GhStored *
stored_at(uint64 stored)
{
	if (gh_service_enabled())
		return dsa_get_address(gh_store_area(), stored);
	return (GhStored *) (uintptr_t) stored;
}

static void
stored_free(uint64 stored)
{
	if (gh_service_enabled())
		dsa_free(gh_store_area(), stored);
	else
		pfree((void *) (uintptr_t) stored);
}

/* -------------------------------------------------------------------- names */

static void
open_session_names(void)
{
	HASHCTL		control;

	if (session_names != NULL)
		return;
	if (session_context == NULL)
		session_context = AllocSetContextCreate(TopMemoryContext, "gpuhash table names",
												ALLOCSET_SMALL_SIZES);
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(GhStoreKey);
	control.entrysize = sizeof(GhStoreEntry);
	control.hcxt = session_context;
	session_names = hash_create("gpuhash table names", 16, &control,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Under the directory's lock. */
static void
take_info(GhStored *stored, GhStoredInfo *info)
{
	uint64		copy = pg_atomic_read_u64(&stored->copy);
	TimestampTz tried = (TimestampTz) pg_atomic_read_u64(&stored->copy_tried);

	*info = stored->info;
	info->stored = stored;
	info->on_host = stored->host != 0;
	info->device = gh_store_word_state(copy) == GH_COPY_READY ? stored->device : -1;
	info->lost = !info->on_host && info->device < 0;
	info->copy_due = info->wants_copy && info->on_host && info->device < 0 &&
		(tried == 0 || TimestampDifferenceExceeds(tried, GetCurrentTimestamp(), GH_COPY_PAUSE_MS));
	info->keys = pg_atomic_read_u64(&stored->keys);
	info->used = (TimestampTz) pg_atomic_read_u64(&stored->used);
}

/* The entry, locked with the service, or NULL. */
static GhStoreEntry *
entry_find(const GhStoreKey *key, bool exclusive)
{
	if (gh_service_enabled())
		return dshash_find(gh_store_area_entries(), key, exclusive);
	return session_names == NULL ? NULL : hash_search(session_names, key, HASH_FIND, NULL);
}

static void
entry_release(GhStoreEntry *entry)
{
	if (gh_service_enabled())
		dshash_release_lock(gh_store_area_entries(), entry);
}

bool
gh_store_find(const GhStoreKey *key, GhStoredInfo *info, void *extra)
{
	GhStoreEntry *entry = entry_find(key, false);
	GhStored   *stored;

	if (entry == NULL)
		return false;
	stored = stored_at(entry->stored);
	take_info(stored, info);
	if (extra != NULL)
		memcpy(extra, stored->extra, stored->extra_bytes);
	entry_release(entry);
	return true;
}

uint64
gh_store_new_id(void)
{
	return gh_service_enabled() ? gh_store_area_new_id() : ++session_last_id;
}

static void
init_stored(GhStored *stored, uint64 self, const GhStoredInfo *info)
{
	stored->info = *info;
	stored->self = self;
	pg_atomic_init_u64(&stored->copy, gh_store_make_word(0, GH_COPY_NONE));
	pg_atomic_init_u64(&stored->copy_tried, 0);
	pg_atomic_init_u64(&stored->keys, 0);
	pg_atomic_init_u64(&stored->reads, 0);
	pg_atomic_init_u64(&stored->writes, 0);
	pg_atomic_init_u64(&stored->used, (uint64) GetCurrentTimestamp());
}

GhStored *
gh_store_add(const GhStoredInfo *info, const void *extra, Size extra_bytes)
{
	GhStoreEntry *entry;
	GhStored   *stored;
	uint64		self;
	bool		found;

	if (!gh_service_enabled())
		open_session_names();
	self = stored_alloc(offsetof(GhStored, extra) + extra_bytes);
	stored = stored_at(self);
	init_stored(stored, self, info);
	stored->extra_bytes = extra_bytes;
	memcpy(stored->extra, extra, extra_bytes);

	if (gh_service_enabled())
		entry = dshash_find_or_insert(gh_store_area_entries(), &info->key, &found);
	else
		entry = hash_search(session_names, &info->key, HASH_ENTER, &found);
	if (!found)
		entry->stored = self;
	entry_release(entry);
	if (!found)
		return stored;
	stored_free(self);
	return NULL;
}

void
gh_store_remove(GhStored *stored)
{
	GhStoreKey	key = stored->info.key;
	GhStoreEntry *entry = entry_find(&key, true);
	uint64		self = stored->self;

	if (entry != NULL && entry->stored == self)
	{
		if (gh_service_enabled())
			dshash_delete_entry(gh_store_area_entries(), entry);
		else
			(void) hash_search(session_names, &key, HASH_REMOVE, NULL);
	}
	else if (entry != NULL)
		entry_release(entry);
	stored_free(self);
}

/* The entry, locked, if it still is of that number. */
static GhStoreEntry *
entry_find_same(const GhStoredInfo *info)
{
	GhStoreEntry *entry = entry_find(&info->key, true);

	if (entry == NULL || stored_at(entry->stored)->info.id == info->id)
		return entry;
	entry_release(entry);
	return NULL;
}

bool
gh_store_change(const GhStoredInfo *info, void (*change) (void *extra, void *arg), void *arg)
{
	GhStoreEntry *entry = entry_find_same(info);

	if (entry == NULL)
		return false;
	change(stored_at(entry->stored)->extra, arg);
	entry_release(entry);
	return true;
}

void
gh_store_set_ready(GhStored *stored)
{
	GhStoreEntry *entry = entry_find_same(&stored->info);

	if (entry == NULL)
		return;
	stored->info.ready = true;
	entry_release(entry);
}

/* --------------------------------------------------------------------- lists */

typedef struct InfoList
{
	GhStoredInfo *items;
	int			count;
	int			capacity;
} InfoList;

static void
append_info(InfoList *list, GhStored *stored, GhStoreKind kind, Oid database)
{
	const GhStoreKey *key = &stored->info.key;

	if (!stored->info.ready || (kind != GH_STORE_ANY && key->kind != kind) ||
		(OidIsValid(database) && key->database != database))
		return;
	if (list->count == list->capacity)
	{
		list->capacity *= 2;
		list->items = repalloc_huge(list->items, list->capacity * sizeof(GhStoredInfo));
	}
	take_info(stored, &list->items[list->count++]);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(((const GhStoredInfo *) a)->key.name, ((const GhStoredInfo *) b)->key.name);
}

GhStoredInfo *
gh_store_list(GhStoreKind kind, Oid database, int *count)
{
	InfoList	list = {palloc(16 * sizeof(GhStoredInfo)), 0, 16};
	GhStoreEntry *entry;

	if (gh_service_enabled())
	{
		dshash_seq_status scan;

		dshash_seq_init(&scan, gh_store_area_entries(), false);
		while ((entry = dshash_seq_next(&scan)) != NULL)
			append_info(&list, stored_at(entry->stored), kind, database);
		dshash_seq_term(&scan);
	}
	else if (session_names != NULL)
	{
		HASH_SEQ_STATUS scan;

		hash_seq_init(&scan, session_names);
		while ((entry = hash_seq_search(&scan)) != NULL)
			append_info(&list, stored_at(entry->stored), kind, database);
	}
	qsort(list.items, list.count, sizeof(GhStoredInfo), compare_names);
	*count = list.count;
	return list.items;
}
