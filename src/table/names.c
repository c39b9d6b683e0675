/*
 * names.c
 *		The registry of named tables: from a name to a table.
 *
 * With the service it is a hash table in shared memory, keyed by database and name,
 * whose partition locks guard an entry, the pointer in it, and what GhTableInfo says
 * that the registry guards.  Without, it is a hash table of the session.
 *
 * A look-up copies what it finds.  The table itself is not to be touched before its
 * own lock is held and a second look-up has found it still there (access.c).
 */
#include "postgres.h"

#include "lib/dshash.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "service/service.h"
#include "table/table.h"

/* After a copy on a device failed or was taken away, none is tried for so long. */
#define GH_COPY_PAUSE_MS 60000

static HTAB *session_names = NULL;
static MemoryContext session_context = NULL;
static uint64 session_last_id = 0;

/* ------------------------------------------------------------------- memory */

static uint64
table_alloc(void)
{
	if (gh_service_enabled())
		return gh_shared_alloc(sizeof(GhNamedTable));
	return (uint64) (uintptr_t) MemoryContextAllocZero(session_context, sizeof(GhNamedTable));
}

static GhNamedTable *
table_at(uint64 table)
{
	if (gh_service_enabled())
		return gh_shared_address(table);
	return (GhNamedTable *) (uintptr_t) table;
}

static void
table_free(uint64 table)
{
	if (gh_service_enabled())
		gh_shared_free(table);
	else
		pfree((void *) (uintptr_t) table);
}

/* -------------------------------------------------------------------- names */

static void
fill_key(GhTableKey *key, Oid database, const char *name)
{
	memset(key, 0, sizeof(*key));
	key->database = database;
	strlcpy(key->name, name, NAMEDATALEN);
}

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
	control.keysize = sizeof(GhTableKey);
	control.entrysize = sizeof(GhNameEntry);
	control.hcxt = session_context;
	session_names = hash_create("gpuhash table names", 16, &control,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Under the registry's lock. */
static void
take_info(GhNamedTable *table, GhTableInfo *info)
{
	uint64		copy = pg_atomic_read_u64(&table->copy);
	TimestampTz tried = (TimestampTz) pg_atomic_read_u64(&table->copy_tried);

	*info = table->info;
	info->table = table;
	info->on_host = table->host != 0;
	info->device = gh_copy_state(copy) == GH_COPY_READY ? table->device : -1;
	info->lost = !info->on_host && info->device < 0;
	info->copy_due = info->wants_copy && info->on_host && info->device < 0 &&
		(tried == 0 || TimestampDifferenceExceeds(tried, GetCurrentTimestamp(), GH_COPY_PAUSE_MS));
	info->keys = pg_atomic_read_u64(&table->keys);
	info->used = (TimestampTz) pg_atomic_read_u64(&table->used);
}

/* The entry, locked with the service, or NULL. */
static GhNameEntry *
entry_find(const GhTableKey *key, bool exclusive)
{
	if (gh_service_enabled())
		return dshash_find(gh_shared_names(), key, exclusive);
	return session_names == NULL ? NULL : hash_search(session_names, key, HASH_FIND, NULL);
}

static void
entry_release(GhNameEntry *entry)
{
	if (gh_service_enabled())
		dshash_release_lock(gh_shared_names(), entry);
}

bool
gh_names_find(Oid database, const char *name, GhTableInfo *info)
{
	GhTableKey	key;
	GhNameEntry *entry;

	fill_key(&key, database, name);
	entry = entry_find(&key, false);
	if (entry == NULL)
		return false;
	take_info(table_at(entry->table), info);
	entry_release(entry);
	return true;
}

uint64
gh_names_new_id(void)
{
	return gh_service_enabled() ? gh_shared_new_id() : ++session_last_id;
}

static void
init_table(GhNamedTable *table, uint64 self, const GhTableInfo *info)
{
	table->info = *info;
	table->self = self;
	pg_atomic_init_u64(&table->copy, gh_copy_word(0, GH_COPY_NONE));
	pg_atomic_init_u64(&table->copy_tried, 0);
	pg_atomic_init_u64(&table->keys, 0);
	pg_atomic_init_u64(&table->reads, 0);
	pg_atomic_init_u64(&table->writes, 0);
	pg_atomic_init_u64(&table->used, (uint64) GetCurrentTimestamp());
}

GhNamedTable *
gh_names_add(const GhTableInfo *info)
{
	GhTableKey	key;
	GhNameEntry *entry;
	GhNamedTable *table;
	uint64		self;
	bool		found;

	if (!gh_service_enabled())
		open_session_names();
	fill_key(&key, info->database, info->name);
	self = table_alloc();
	table = table_at(self);
	init_table(table, self, info);

	if (gh_service_enabled())
		entry = dshash_find_or_insert(gh_shared_names(), &key, &found);
	else
		entry = hash_search(session_names, &key, HASH_ENTER, &found);
	if (!found)
		entry->table = self;
	entry_release(entry);
	if (!found)
		return table;
	table_free(self);
	return NULL;
}

void
gh_names_remove(GhNamedTable *table)
{
	GhTableKey	key;
	GhNameEntry *entry;
	uint64		self = table->self;

	fill_key(&key, table->info.database, table->info.name);
	entry = entry_find(&key, true);
	if (entry != NULL && entry->table == self)
	{
		if (gh_service_enabled())
			dshash_delete_entry(gh_shared_names(), entry);
		else
			(void) hash_search(session_names, &key, HASH_REMOVE, NULL);
	}
	else if (entry != NULL)
		entry_release(entry);
	table_free(self);
}

bool
gh_names_change(const GhTableInfo *info, void (*change) (GhTableInfo *info, void *arg), void *arg)
{
	GhTableKey	key;
	GhNameEntry *entry;
	GhNamedTable *table;
	bool		same;

	fill_key(&key, info->database, info->name);
	entry = entry_find(&key, true);
	if (entry == NULL)
		return false;
	table = table_at(entry->table);
	same = table->info.id == info->id;
	if (same)
		change(&table->info, arg);
	entry_release(entry);
	return same;
}

/* --------------------------------------------------------------------- lists */

typedef struct InfoList
{
	GhTableInfo *items;
	int			count;
	int			capacity;
} InfoList;

static void
append_info(InfoList *list, GhNamedTable *table, Oid database)
{
	if (!table->info.ready || (OidIsValid(database) && table->info.database != database))
		return;
	if (list->count == list->capacity)
	{
		list->capacity *= 2;
		list->items = repalloc_huge(list->items, list->capacity * sizeof(GhTableInfo));
	}
	take_info(table, &list->items[list->count++]);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(((const GhTableInfo *) a)->name, ((const GhTableInfo *) b)->name);
}

GhTableInfo *
gh_names_list(Oid database, int *count)
{
	InfoList	list = {palloc(16 * sizeof(GhTableInfo)), 0, 16};
	GhNameEntry *entry;

	if (gh_service_enabled())
	{
		dshash_seq_status scan;

		dshash_seq_init(&scan, gh_shared_names(), false);
		while ((entry = dshash_seq_next(&scan)) != NULL)
			append_info(&list, table_at(entry->table), database);
		dshash_seq_term(&scan);
	}
	else if (session_names != NULL)
	{
		HASH_SEQ_STATUS scan;

		hash_seq_init(&scan, session_names);
		while ((entry = hash_seq_search(&scan)) != NULL)
			append_info(&list, table_at(entry->table), database);
	}
	qsort(list.items, list.count, sizeof(GhTableInfo), compare_names);
	*count = list.count;
	return list.items;
}
