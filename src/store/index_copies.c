/*
 * index_copies.c
 *		The list of copies of indexes in shared memory, and their memory.
 *
 * Each copy lies in an area of its own (dsa.h).  Whoever uses it attaches the area, and so it is there until
 * the last one has detached it, although it may have left the list meanwhile: nobody waits for anybody.  The
 * list is guarded by one lock, under which areas are attached, so that none that is in the list is gone.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "guard.h"
#include "host.h"
#include "service/service.h"
#include "store/index_copies.h"
#include "store/inside.h"
#include "store/resident_file.h"

/* As many as there are touched maps. */
#define GH_COPY_PLACES 64
/* What was refused is not tried again for so long. */
#define GH_REFUSED_MS 60000
/* What the first segment of an area takes. */
#define GH_AREA_BYTES_MIN ((uint64) 2 * 1024 * 1024)
/* Nor is one made again within so many times of what it took to make it. */
#define GH_MADE_TIMES 10
/* Of what tables on the host may take, without gpuhash.resident_memory. */
#define GH_COPIES_SHARE(bytes) ((bytes) / 4)

typedef enum PlaceState
{
	PLACE_FREE,
	PLACE_MAKING,
	PLACE_READY,
	PLACE_REFUSED				/* there is none, and why not is not going to change soon */
} PlaceState;

typedef struct Place
{
	PlaceState	state;
	Oid			database;
	Oid			index;
	Oid			tablespace;
	Oid			number;			/* of its file */
	uint64		id;				/* of the copy */
	dsa_handle	area;
	dsa_pointer copy;
	uint64		bytes;			/* making: that are expected */
	uint64		rows;
	int64		made_ms;		/* that it took */
	TimestampTz since;			/* making began, or it was published or refused */
	pg_atomic_uint64 used;		/* TimestampTz */
	pg_atomic_uint64 hits;
} Place;

typedef struct Copies
{
	LWLock		lock;			/* guards what follows, but for what is atomic */
	uint64		last_id;
	Place		places[GH_COPY_PLACES];
} Copies;

static Copies *copies = NULL;
static const GhIndexCopyMethods *methods = NULL;

static Size
copies_size(void)
{
	return sizeof(Copies);
}

static void
copies_place(void *place, bool found)
{
	copies = place;
	if (found)
		return;
	memset(copies, 0, sizeof(Copies));
	LWLockInitialize(&copies->lock, gh_store_area_tranche());
	for (int i = 0; i < GH_COPY_PLACES; i++)
	{
		pg_atomic_init_u64(&copies->places[i].used, 0);
		pg_atomic_init_u64(&copies->places[i].hits, 0);
	}
}

void
gh_index_copies_init(void)
{
	gh_service_add_memory("gpuhash index copies", copies_size, copies_place);
}

void
gh_index_copies_register(const GhIndexCopyMethods *those)
{
	methods = those;
}

const GhIndexCopyMethods *
gh_index_copy_methods(void)
{
	return methods;
}

uint64
gh_index_copies_limit(void)
{
	if (gh_resident_memory >= 0)
		return (uint64) gh_resident_memory * 1024 * 1024;
	return GH_COPIES_SHARE(gh_store_host_memory());
}

/* --------------------------------------------------------------------- places */

static bool
is_of(const Place *place, Relation index)
{
	return place->state != PLACE_FREE && place->index == RelationGetRelid(index) && place->database == MyDatabaseId &&
		place->number == gh_relation_number(index) && place->tablespace == index->rd_rel->reltablespace;
}

static Place *
find_place(Relation index)
{
	for (int i = 0; i < GH_COPY_PLACES; i++)
		if (is_of(&copies->places[i], index))
			return &copies->places[i];
	return NULL;
}

/* An area that this process has attached, as it can be only once. */
typedef struct Attached
{
	dsa_area   *area;			/* NULL: the place is free */
	dsa_handle	handle;
	int			users;
} Attached;

static Attached *attached = NULL;
static int	nattached = 0;

static Attached *
find_attached(const dsa_area *area, dsa_handle handle)
{
	for (int i = 0; i < nattached; i++)
		if (attached[i].area != NULL && (area != NULL ? attached[i].area == area : attached[i].handle == handle))
			return &attached[i];
	return NULL;
}

/* Room for one more area.  May throw. */
static void
reserve_attached(void)
{
	for (int i = 0; i < nattached; i++)
		if (attached[i].area == NULL)
			return;
	if (attached == NULL)
		attached = MemoryContextAlloc(TopMemoryContext, sizeof(Attached));
	else
		attached = repalloc(attached, (nattached + 1) * sizeof(Attached));
	attached[nattached++].area = NULL;
}

/* There is room. */
static void
note_attached(dsa_area *area)
{
	int			i = 0;

	while (attached[i].area != NULL)
		i++;
	attached[i] = (Attached) {area, dsa_get_handle(area), 1};
	dsa_pin_mapping(area);
}

/* An area that is in the list, attached until it is detached. */
static dsa_area *
attach_area(dsa_handle handle)
{
	Attached   *known = find_attached(NULL, handle);
	MemoryContext saved;
	dsa_area   *area;

	if (known != NULL)
	{
		known->users++;
		return known->area;
	}
	reserve_attached();
	saved = MemoryContextSwitchTo(TopMemoryContext);
	area = dsa_attach(handle);
	MemoryContextSwitchTo(saved);
	note_attached(area);
	return area;
}

static void
detach_area(dsa_area *area)
{
	Attached   *known = find_attached(area, 0);

	if (--known->users > 0)
		return;
	known->area = NULL;
	dsa_detach(area);
}

typedef struct AttachWork
{
	dsa_handle	handle;
	dsa_area   *area;
} AttachWork;

static void
attach_work(void *arg)
{
	AttachWork *work = arg;

	work->area = attach_area(work->handle);
}

/* The same without an error; NULL: it cannot be. */
static dsa_area *
try_attach(dsa_handle handle)
{
	AttachWork	work = {handle};

	return gh_run_guarded(NULL, attach_work, &work) ? work.area : NULL;
}

/* The copy leaves the list; its area stays for those who have it.  With the lock. */
static void
free_place(Place *place)
{
	dsa_area   *area = place->state == PLACE_READY ? try_attach(place->area) : NULL;

	if (area != NULL)
		dsa_unpin(area);
	place->state = PLACE_FREE;
	place->bytes = 0;
	if (area != NULL)
		detach_area(area);
}

/* Whether an index of this database is no more, or has another file. */
static bool
is_gone(const Place *place)
{
	HeapTuple	tuple;
	bool		gone;

	if (place->database != MyDatabaseId)
		return !SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(place->database));
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(place->index));
	gone = !HeapTupleIsValid(tuple) || ((Form_pg_class) GETSTRUCT(tuple))->relfilenode != place->number;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return gone;
}

/* Copies of what is no more go.  Looks into catalogs, and so without the lock. */
static void
forget_gone(void)
{
	for (int i = 0; i < GH_COPY_PLACES; i++)
	{
		Place		seen;
		bool		there;

		LWLockAcquire(&copies->lock, LW_SHARED);
		seen = copies->places[i];
		LWLockRelease(&copies->lock);
		there = seen.state == PLACE_READY || seen.state == PLACE_REFUSED;
		if (!there || !is_gone(&seen))
			continue;
		LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
		if (copies->places[i].id == seen.id && copies->places[i].state == seen.state)
			free_place(&copies->places[i]);
		LWLockRelease(&copies->lock);
	}
}

/* Whether it may go: a copy that took long to make stays for a time after each use, or two would take turns. */
static bool
may_go(Place *place, PlaceState state)
{
	int64		used = (int64) pg_atomic_read_u64(&place->used);

	return place->state == state &&
		(state != PLACE_READY ||
		 TimestampDifferenceExceeds(used, GetCurrentTimestamp(), (int) Min(place->made_ms * GH_MADE_TIMES, PG_INT32_MAX)));
}

/* Of a database that is no more: another one may have its OID, and copies of its files. */
void
gh_index_copies_drop_database(Oid database)
{
	if (copies == NULL)
		return;
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_COPY_PLACES; i++)
		if (copies->places[i].state != PLACE_FREE && copies->places[i].database == database)
			free_place(&copies->places[i]);
	LWLockRelease(&copies->lock);
}

/* That one goes which was used longest ago, of all or, without a copy, of what was refused; false: there is none. */
static bool
free_oldest(PlaceState state)
{
	Place	   *oldest = NULL;

	for (int i = 0; i < GH_COPY_PLACES; i++)
	{
		Place	   *place = &copies->places[i];

		if (may_go(place, state) &&
			(oldest == NULL || pg_atomic_read_u64(&place->used) < pg_atomic_read_u64(&oldest->used)))
			oldest = place;
	}
	if (oldest != NULL)
		free_place(oldest);
	return oldest != NULL;
}

/* The bytes of all; but for those that may go. */
static uint64
taken(bool at_least)
{
	uint64		bytes = 0;

	for (int i = 0; i < GH_COPY_PLACES; i++)
		if (!at_least || !may_go(&copies->places[i], PLACE_READY))
			bytes += copies->places[i].bytes;
	return bytes;
}

/* A free place, and room for so many bytes; NULL: there is none. */
static Place *
make_room(uint64 bytes)
{
	uint64		limit = gh_index_copies_limit();

	/* none goes in vain */
	if (taken(true) + bytes > limit)
		return NULL;
	while (taken(false) + bytes > limit)
		if (!free_oldest(PLACE_READY))
			return NULL;
	do
	{
		for (int i = 0; i < GH_COPY_PLACES; i++)
			if (copies->places[i].state == PLACE_FREE)
				return &copies->places[i];
	} while (free_oldest(PLACE_REFUSED) || free_oldest(PLACE_READY));
	return NULL;
}

/* ----------------------------------------------------------------------- use */

bool
gh_index_copy_open(Relation index, GhCopyHold *hold)
{
	Place	   *place;

	memset(hold, 0, sizeof(*hold));
	if (copies == NULL)
		return false;
	LWLockAcquire(&copies->lock, LW_SHARED);
	place = find_place(index);
	if (place != NULL && place->state == PLACE_READY)
	{
		hold->area = try_attach(place->area);
		hold->at = place->copy;
		if (hold->area != NULL)
			hold->copy = dsa_get_address(hold->area, hold->at);
		hold->place = (int) (place - copies->places);
		hold->number = place->id;
	}
	LWLockRelease(&copies->lock);
	return hold->area != NULL;
}

void
gh_index_copy_close(GhCopyHold *hold)
{
	if (hold->area != NULL)
		detach_area(hold->area);
	hold->area = NULL;
	hold->copy = NULL;
}

/* It may be another copy's place by now: what is counted then is no matter. */
void
gh_index_copy_count_use(const GhCopyHold *hold)
{
	Place	   *place = &copies->places[hold->place];

	pg_atomic_write_u64(&place->used, (uint64) GetCurrentTimestamp());
	pg_atomic_fetch_add_u64(&place->hits, 1);
}

bool
gh_index_copy_is_due(Relation index)
{
	const Place *place;
	bool		due = true;

	if (copies == NULL)
		return false;
	LWLockAcquire(&copies->lock, LW_SHARED);
	place = find_place(index);
	if (place != NULL)
	{
		int64		wait = place->state == PLACE_REFUSED ? GH_REFUSED_MS : place->made_ms * GH_MADE_TIMES;

		due = place->state != PLACE_MAKING &&
			TimestampDifferenceExceeds(place->since, GetCurrentTimestamp(), (int) Min(wait, PG_INT32_MAX));
	}
	LWLockRelease(&copies->lock);
	return due;
}

/* --------------------------------------------------------------------- memory */

typedef struct AllocWork
{
	dsa_area   *area;
	Size		bytes;
	GhRef		ref;
	dsa_pointer start;
} AllocWork;

static void
alloc_work(void *arg)
{
	AllocWork  *work = arg;

	work->ref = gh_area_alloc(work->area, work->bytes, sizeof(dsa_pointer), &work->start);
}

/* In front of a block is what is to be freed. */
static GhRef
block_alloc(void *ctx, size_t bytes)
{
	GhCopyHold *hold = ctx;
	AllocWork	work = {.area = hold->area};

	if (bytes > MaxAllocHugeSize - 2 * GH_HOST_ALIGNMENT)
		return 0;
	work.bytes = bytes + 2 * GH_HOST_ALIGNMENT;
	if (!gh_run_guarded(NULL, alloc_work, &work) || work.ref == 0)
		return 0;
	((dsa_pointer *) dsa_get_address(hold->area, work.ref))[-1] = work.start;
	return work.ref;
}

static void
free_work(void *arg)
{
	AllocWork  *work = arg;

	dsa_free(work->area, work->start);
}

static void
block_free(void *ctx, GhRef ref)
{
	GhCopyHold *hold = ctx;
	AllocWork	work = {.area = hold->area};

	if (ref == 0)
		return;
	work.start = ((dsa_pointer *) dsa_get_address(hold->area, ref))[-1];
	(void) gh_run_guarded(NULL, free_work, &work);
}

static void *
block_address(void *ctx, GhRef ref)
{
	return dsa_get_address(((GhCopyHold *) ctx)->area, ref);
}

/* One process makes a copy, and nothing of it changes later. */
void
gh_index_copy_host(GhCopyHold *hold, GhHost *host)
{
	gh_store_make_host(host, hold, block_alloc, block_free, block_address);
}

/* --------------------------------------------------------------------- making */

static void
create_work(void *arg)
{
	GhCopyHold *hold = arg;
	MemoryContext saved;

	reserve_attached();
	saved = MemoryContextSwitchTo(TopMemoryContext);
	hold->area = dsa_create(gh_store_area_tranche());
	MemoryContextSwitchTo(saved);
	note_attached(hold->area);
	dsa_set_size_limit(hold->area, Max(gh_index_copies_limit(), GH_AREA_BYTES_MIN));
}

static void
entries_work(void *arg)
{
	AllocWork  *work = arg;

	work->start = dsa_allocate_extended(work->area, work->bytes, DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
}

bool
gh_index_copy_alloc(GhCopyHold *hold, Size bytes, dsa_pointer *at)
{
	AllocWork	work = {.area = hold->area,.bytes = Max(bytes, 1)};

	if (!gh_run_guarded(NULL, entries_work, &work))
		return false;
	*at = work.start;
	return DsaPointerIsValid(*at);
}

bool
gh_index_copy_begin(Relation index, uint64 bytes, GhCopyHold *hold)
{
	Place	   *place;

	memset(hold, 0, sizeof(*hold));
	if (copies == NULL)
		return false;
	forget_gone();
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	place = find_place(index);
	if (place != NULL && place->state == PLACE_MAKING)
	{
		LWLockRelease(&copies->lock);
		return false;
	}
	if (place != NULL)
		free_place(place);
	place = make_room(bytes);
	if (place != NULL)
	{
		place->state = PLACE_MAKING;
		place->database = MyDatabaseId;
		place->index = RelationGetRelid(index);
		place->tablespace = index->rd_rel->reltablespace;
		place->number = gh_relation_number(index);
		place->id = hold->number = ++copies->last_id;
		place->bytes = bytes;
		place->made_ms = 0;
		place->since = GetCurrentTimestamp();
		pg_atomic_write_u64(&place->used, (uint64) place->since);
		pg_atomic_write_u64(&place->hits, 0);
		hold->place = (int) (place - copies->places);
	}
	LWLockRelease(&copies->lock);
	if (place == NULL)
		return false;
	if (!gh_run_guarded(NULL, create_work, hold) || !gh_index_copy_alloc(hold, sizeof(GhIndexCopy), &hold->at))
	{
		gh_index_copy_abandon(hold, true);
		return false;
	}
	hold->copy = dsa_get_address(hold->area, hold->at);
	memset(hold->copy, 0, sizeof(GhIndexCopy));
	return true;
}

void
gh_index_copy_publish(GhCopyHold *hold)
{
	Place	   *place = &copies->places[hold->place];
	TimestampTz now = GetCurrentTimestamp();

	/* from here on the list keeps it */
	dsa_pin(hold->area);
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	place->area = dsa_get_handle(hold->area);
	place->copy = hold->at;
	place->bytes = gh_area_size(hold->area, place->bytes);
	place->rows = hold->copy->rows;
	place->made_ms = TimestampDifferenceMilliseconds(place->since, now);
	place->since = now;
	place->state = PLACE_READY;
	LWLockRelease(&copies->lock);
	gh_index_copy_close(hold);
}

void
gh_index_copy_abandon(GhCopyHold *hold, bool refused)
{
	Place	   *place = &copies->places[hold->place];

	gh_index_copy_close(hold);
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	if (place->state == PLACE_MAKING && place->id == hold->number)
	{
		place->bytes = 0;
		place->since = GetCurrentTimestamp();
		place->state = refused ? PLACE_REFUSED : PLACE_FREE;
	}
	LWLockRelease(&copies->lock);
}

GhIndexCopyInfo *
gh_index_copies_list(int *count)
{
	GhIndexCopyInfo *infos = palloc0(sizeof(GhIndexCopyInfo) * GH_COPY_PLACES);

	*count = 0;
	if (copies == NULL)
		return infos;
	forget_gone();
	LWLockAcquire(&copies->lock, LW_SHARED);
	for (int i = 0; i < GH_COPY_PLACES; i++)
	{
		Place	   *place = &copies->places[i];

		if (place->state != PLACE_READY || place->database != MyDatabaseId)
			continue;
		infos[(*count)++] = (GhIndexCopyInfo)
		{
			place->database, place->index, place->bytes, place->rows, pg_atomic_read_u64(&place->hits),
				(TimestampTz) pg_atomic_read_u64(&place->used)
		};
	}
	LWLockRelease(&copies->lock);
	return infos;
}
