/*
 * shared_copies.c
 *		The list of copies in shared memory, and their memory: of indexes, and of tables' columns.
 *
 * Each copy lies in an area of its own (dsa.h).  Whoever uses it attaches the area, and so it is there until
 * the last one has detached it, although it may have left the list meanwhile: nobody waits for anybody.  The
 * list is guarded by one lock, under which areas are attached, so that none that is in the list is gone.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "gpuhash.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/areas.h"
#include "store/inside.h"
#include "store/resident_file.h"
#include "store/shared_copies.h"

/* Of either kind more than will be in use at a time. */
#define GH_COPY_PLACES 256
/*
 * What failed is not tried again for so long, twice as long with each time in a row, and for the greatest
 * time at most: who was cancelled, or found a moment's lack of memory, hardly waits, and what fails for good
 * costs little.
 */
#define GH_REFUSED_MS_MIN 1000
#define GH_REFUSED_MS 60000
/* What the first segment of an area takes. */
#define GH_AREA_BYTES_MIN ((uint64) 2 * 1024 * 1024)
/* Nor is one made again within so many times of what it took to make it, or to fail. */
#define GH_MADE_TIMES 10
/* Nor, on a standby, where it is a query that waits for it, within so long; tests do not wait for that. */
#define GH_RECOVERY_MS GH_WITH_FAULT_POINTS(100, 60000)
/* Nor do columns, which are made again and again in part, stay longer than so after a use. */
#define GH_COLUMNS_STAY_MS 10000

typedef enum PlaceState
{
	PLACE_FREE,
	PLACE_SEEN,					/* there is none, but it was asked for once */
	PLACE_MAKING,
	PLACE_READY,
	PLACE_REFUSED				/* there is none, for making it failed */
} PlaceState;

typedef struct Place
{
	PlaceState	state;
	GhCopyKind	kind;
	Oid			database;
	Oid			relation;
	Oid			tablespace;
	Oid			number;			/* of its file */
	uint64		id;				/* of the copy */
	dsa_handle	area;
	dsa_pointer copy;
	uint64		bytes;			/* making: that are expected */
	GhCopyFacts facts;			/* ready */
	int64		made_ms;		/* that it took, or to fail */
	uint32		failures;		/* in a row, so far */
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
/* What this process makes is not made at the cost of copies that were used within so long. */
static int64 others_stay_ms = 0;

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
gh_shared_copies_init(void)
{
	gh_service_add_memory("gpuhash shared copies", copies_size, copies_place);
}

/* --------------------------------------------------------------------- places */

static bool
is_of(const Place *place, GhCopyKind kind, Relation relation)
{
	return place->state != PLACE_FREE && place->relation == RelationGetRelid(relation) && place->kind == kind &&
		place->database == MyDatabaseId && place->number == gh_relation_number(relation) &&
		place->tablespace == relation->rd_rel->reltablespace;
}

/* Whether they are of the same. */
static bool
is_same(const Place *a, const Place *b)
{
	return a->relation == b->relation && a->kind == b->kind && a->database == b->database && a->number == b->number &&
		a->tablespace == b->tablespace;
}

/*
 * One that is ready, or is not: an index may have one of each, for another copy is made beside the one that
 * is in use.
 */
static Place *
find_one(GhCopyKind kind, Relation relation, bool ready)
{
	for (int i = 0; i < GH_COPY_PLACES; i++)
		if (is_of(&copies->places[i], kind, relation) && (copies->places[i].state == PLACE_READY) == ready)
			return &copies->places[i];
	return NULL;
}

static Place *
find_place(GhCopyKind kind, Relation relation)
{
	Place	   *ready = find_one(kind, relation, true);

	return ready != NULL ? ready : find_one(kind, relation, false);
}

/* The copy leaves the list; its area stays for those who have it.  With the lock. */
static void
free_place(Place *place)
{
	dsa_area   *area = place->state == PLACE_READY ? gh_area_try_attach(place->area) : NULL;

	if (area != NULL)
		dsa_unpin(area);
	place->state = PLACE_FREE;
	place->bytes = 0;
	if (area != NULL)
		gh_area_detach(area);
}

/* Whether an index or table of this database is no more, or has another file. */
static bool
is_gone(const Place *place)
{
	HeapTuple	tuple;
	bool		gone;

	if (place->database != MyDatabaseId)
		return !SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(place->database));
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(place->relation));
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
		there = seen.state == PLACE_READY || seen.state == PLACE_REFUSED || seen.state == PLACE_SEEN;
		if (!there || !is_gone(&seen))
			continue;
		LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
		if (copies->places[i].id == seen.id && copies->places[i].state == seen.state)
			free_place(&copies->places[i]);
		LWLockRelease(&copies->lock);
	}
}

/*
 * Whether it may go: a copy that took long to make stays for a time after each use, or two would take turns.
 */
static bool
may_go(Place *place, PlaceState state)
{
	int64		used = (int64) pg_atomic_read_u64(&place->used);
	int64		stay = place->kind == GH_COPY_OF_COLUMNS ? GH_COLUMNS_STAY_MS : PG_INT32_MAX;

	return place->state == state &&
		(state != PLACE_READY ||
		 TimestampDifferenceExceeds(used, GetCurrentTimestamp(),
									(int) Max(Min(place->made_ms * GH_MADE_TIMES, stay), others_stay_ms)));
}

void
gh_shared_copies_spare(int64 ms)
{
	others_stay_ms = ms;
}

/* Of a database that is no more: another one may have its OID, and copies of its files. */
void
gh_shared_copies_drop_database(Oid database)
{
	if (copies == NULL)
		return;
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GH_COPY_PLACES; i++)
		if (copies->places[i].state != PLACE_FREE && copies->places[i].database == database)
			free_place(&copies->places[i]);
	LWLockRelease(&copies->lock);
}

/*
 * That one goes which was used longest ago, of all in that state but for one, which may be NULL; false: there
 * is none.
 */
static bool
free_oldest(PlaceState state, const Place *but)
{
	Place	   *oldest = NULL;

	for (int i = 0; i < GH_COPY_PLACES; i++)
	{
		Place	   *place = &copies->places[i];

		if (place != but && may_go(place, state) &&
			(oldest == NULL || pg_atomic_read_u64(&place->used) < pg_atomic_read_u64(&oldest->used)))
			oldest = place;
	}
	if (oldest != NULL)
		free_place(oldest);
	return oldest != NULL;
}

/*
 * What all take with so many bytes more of that one, if it grows, or of a new one; at_least: but for others
 * that may go.
 */
static GhCopiesTaken
taken(bool at_least, const Place *but, uint64 more, bool grows)
{
	GhCopiesTaken sum = {0};

	for (int i = 0; i < GH_COPY_PLACES; i++)
	{
		Place	   *place = &copies->places[i];

		if (place == but)
			gh_copies_take(&sum, place->bytes + (grows ? more : 0));
		else if (!at_least || !may_go(place, PLACE_READY))
			gh_copies_take(&sum, place->bytes);
	}
	if (!grows)
		gh_copies_take(&sum, more);
	return sum;
}

/*
 * Room for so many bytes, of that one that grows or of a new one, at the cost of others than it, which may be
 * NULL; false: there is none.
 */
static bool
make_room(uint64 bytes, const Place *but, bool grows)
{
	/* the setting may have been lowered */
	while (!gh_copies_fit(taken(false, but, 0, grows)))
		if (!free_oldest(PLACE_READY, but))
			break;
	/* none goes in vain; an area may double when it grows */
	if (!gh_copies_fit(taken(true, but, bytes, grows)) ||
		!gh_copies_leave_room(bytes + (grows ? but->bytes : 0)))
		return false;
	while (!gh_copies_fit(taken(false, but, bytes, grows)))
		if (!free_oldest(PLACE_READY, but))
			return false;
	return true;
}

/* Whether there is room for so many bytes when that one goes. */
static bool
fits_instead(uint64 bytes, Place *place)
{
	GhCopiesTaken sum = taken(true, NULL, bytes, false);

	if (!may_go(place, PLACE_READY))
	{
		sum.bytes -= place->bytes;
		sum.segments -= gh_copies_segments(place->bytes);
	}
	return gh_copies_fit(sum) && gh_copies_leave_room(bytes - Min(bytes, place->bytes));
}

/*
 * Room for a new one beside one that is in use, which may be NULL; where there is none for both, in the place
 * of that.
 */
static bool
make_room_beside(uint64 bytes, Place **in_use)
{
	if (make_room(bytes, *in_use, false))
		return true;
	if (*in_use == NULL || !fits_instead(bytes, *in_use))
		return false;
	free_place(*in_use);
	*in_use = NULL;
	return make_room(bytes, NULL, false);
}

/* A place that nothing is in, at the cost of others than that one, which may be NULL; NULL: there is none. */
static Place *
find_free_place(const Place *but)
{
	do
	{
		for (int i = 0; i < GH_COPY_PLACES; i++)
			if (copies->places[i].state == PLACE_FREE)
				return &copies->places[i];
	} while (free_oldest(PLACE_SEEN, NULL) || free_oldest(PLACE_REFUSED, NULL) || free_oldest(PLACE_READY, but));
	return NULL;
}

/* failures: those before */
static void
set_place(Place *place, PlaceState state, GhCopyKind kind, Relation relation, uint64 bytes, uint32 failures)
{
	place->state = state;
	place->kind = kind;
	place->database = MyDatabaseId;
	place->relation = RelationGetRelid(relation);
	place->tablespace = relation->rd_rel->reltablespace;
	place->number = gh_relation_number(relation);
	place->id = ++copies->last_id;
	place->bytes = bytes;
	place->facts = (GhCopyFacts) {0};
	place->made_ms = 0;
	place->failures = failures;
	place->since = GetCurrentTimestamp();
	pg_atomic_write_u64(&place->used, (uint64) place->since);
	pg_atomic_write_u64(&place->hits, 0);
}

/* ----------------------------------------------------------------------- use */

bool
gh_shared_copy_open(GhCopyKind kind, Relation relation, GhCopyHold *hold)
{
	Place	   *place;

	memset(hold, 0, sizeof(*hold));
	if (copies == NULL)
		return false;
	LWLockAcquire(&copies->lock, LW_SHARED);
	place = find_place(kind, relation);
	if (place != NULL && place->state == PLACE_READY)
	{
		hold->area = gh_area_try_attach(place->area);
		hold->at = place->copy;
		if (hold->area != NULL)
			hold->any = dsa_get_address(hold->area, hold->at);
		hold->place = (int) (place - copies->places);
		hold->number = place->id;
	}
	LWLockRelease(&copies->lock);
	return hold->area != NULL;
}

void
gh_shared_copy_close(GhCopyHold *hold)
{
	if (hold->area != NULL)
		gh_area_detach(hold->area);
	hold->area = NULL;
	hold->any = NULL;
}

/* It may be another copy's place by now: what is counted then is no matter. */
void
gh_shared_copy_count_use(int place)
{
	pg_atomic_write_u64(&copies->places[place].used, (uint64) GetCurrentTimestamp());
	pg_atomic_fetch_add_u64(&copies->places[place].hits, 1);
}

bool
gh_shared_copy_look(GhCopyKind kind, Relation relation, GhCopyFacts *facts)
{
	const Place *place;
	bool		ready;

	if (copies == NULL)
		return false;
	LWLockAcquire(&copies->lock, LW_SHARED);
	place = find_place(kind, relation);
	ready = place != NULL && place->state == PLACE_READY;
	if (ready)
	{
		*facts = place->facts;
		facts->place = (int) (place - copies->places);
	}
	LWLockRelease(&copies->lock);
	return ready;
}

void
gh_shared_copy_retire(GhCopyKind kind, Relation relation, uint64 generation)
{
	Place	   *place;

	if (copies == NULL)
		return;
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	place = find_one(kind, relation, true);
	if (place != NULL && place->facts.generation == generation)
	{
		const bool	other = find_one(kind, relation, false) != NULL;

		free_place(place);
		/* when it was made is known as long as nobody makes another one */
		if (!other)
		{
			place->state = PLACE_REFUSED;
			place->failures = 1;
		}
	}
	LWLockRelease(&copies->lock);
}

/* Whether it is time to make one again, or to try. */
static bool
has_waited(const Place *place)
{
	int64		wait = place->made_ms * GH_MADE_TIMES;

	if (place->state == PLACE_REFUSED)
		wait = Max(wait, Min((int64) GH_REFUSED_MS_MIN << Min(place->failures - 1, 10), GH_REFUSED_MS));
	if (place->kind == GH_COPY_OF_INDEX && RecoveryInProgress())
		wait = Max(wait, GH_RECOVERY_MS);
	return TimestampDifferenceExceeds(place->since, GetCurrentTimestamp(), (int) Min(wait, PG_INT32_MAX));
}

bool
gh_shared_copy_is_due(GhCopyKind kind, Relation relation)
{
	bool		due = true;

	if (copies == NULL)
		return false;
	LWLockAcquire(&copies->lock, LW_SHARED);
	for (int i = 0; i < GH_COPY_PLACES; i++)
		if (is_of(&copies->places[i], kind, relation))
			due &= copies->places[i].state != PLACE_MAKING && has_waited(&copies->places[i]);
	LWLockRelease(&copies->lock);
	return due;
}

bool
gh_shared_copy_is_made(GhCopyKind kind, Relation relation)
{
	const Place *place;
	bool		is_made;

	if (copies == NULL)
		return false;
	LWLockAcquire(&copies->lock, LW_SHARED);
	place = find_one(kind, relation, false);
	is_made = place != NULL && place->state == PLACE_MAKING;
	LWLockRelease(&copies->lock);
	return is_made;
}

/* --------------------------------------------------------------------- making */

bool
gh_shared_copy_begin(GhCopyKind kind, Relation relation, uint64 bytes, Size root_bytes, GhCopyHold *hold)
{
	Place	   *place;
	Place	   *in_use;
	uint32		failures = 0;

	memset(hold, 0, sizeof(*hold));
	if (copies == NULL)
		return false;
	forget_gone();
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	in_use = find_one(kind, relation, true);
	place = find_one(kind, relation, false);
	/* nor columns that somebody else has just begun */
	if ((place != NULL && place->state == PLACE_MAKING) || (in_use != NULL && kind == GH_COPY_OF_COLUMNS))
	{
		LWLockRelease(&copies->lock);
		return false;
	}
	if (place != NULL)
	{
		failures = place->failures;
		free_place(place);
	}
	place = make_room_beside(bytes, &in_use) ? find_free_place(in_use) : NULL;
	if (place != NULL)
	{
		set_place(place, PLACE_MAKING, kind, relation, bytes, failures);
		hold->number = place->id;
		hold->place = (int) (place - copies->places);
	}
	LWLockRelease(&copies->lock);
	if (place == NULL)
		return false;
	hold->area = gh_area_try_create(gh_store_area_tranche(), Max(gh_shared_copies_limit(), GH_AREA_BYTES_MIN));
	if (hold->area == NULL || !gh_shared_copy_alloc(hold, root_bytes, &hold->at))
	{
		gh_shared_copy_abandon(hold, true);
		return false;
	}
	hold->any = dsa_get_address(hold->area, hold->at);
	memset(hold->any, 0, root_bytes);
	return true;
}

/* The copy is in the list from here on; of one that goes on to grow, the hold stays. */
void
gh_shared_copy_publish(GhCopyHold *hold, const GhCopyFacts *facts, bool grows)
{
	Place	   *place = &copies->places[hold->place];
	TimestampTz now = GetCurrentTimestamp();

	dsa_pin(hold->area);
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	/* whoever has the one before goes on with it */
	for (int i = 0; i < GH_COPY_PLACES; i++)
		if (copies->places[i].state == PLACE_READY && is_same(&copies->places[i], place))
			free_place(&copies->places[i]);
	place->area = dsa_get_handle(hold->area);
	place->copy = hold->at;
	place->bytes = gh_area_size(hold->area, place->bytes);
	place->facts = *facts;
	place->made_ms = TimestampDifferenceMilliseconds(place->since, now);
	place->failures = 0;
	place->since = now;
	place->state = PLACE_READY;
	LWLockRelease(&copies->lock);
	if (!grows)
		gh_shared_copy_close(hold);
}

void
gh_shared_copy_abandon(GhCopyHold *hold, bool refused)
{
	Place	   *place = &copies->places[hold->place];

	gh_shared_copy_close(hold);
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	if (place->state == PLACE_MAKING && place->id == hold->number)
	{
		const TimestampTz now = GetCurrentTimestamp();

		place->bytes = 0;
		place->made_ms = TimestampDifferenceMilliseconds(place->since, now);
		place->failures++;
		place->since = now;
		place->state = refused ? PLACE_REFUSED : PLACE_FREE;
	}
	LWLockRelease(&copies->lock);
}

/* ---------------------------------------------------------- copies that grow */

/* Whether this is not the first time that somebody asks for one. */
bool
gh_shared_copy_was_seen(GhCopyKind kind, Relation relation)
{
	Place	   *place;
	bool		seen;

	if (copies == NULL)
		return false;
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	place = find_place(kind, relation);
	/* not by the same statement: of a parallel one, each participant asks */
	seen = place != NULL && place->state == PLACE_SEEN && place->since < GetCurrentStatementStartTimestamp();
	/* what was refused may be tried again, after a while */
	if (place != NULL && place->state == PLACE_REFUSED && has_waited(place))
		set_place(place, PLACE_SEEN, kind, relation, 0, place->failures);
	if (place == NULL && (place = find_free_place(NULL)) != NULL)
		set_place(place, PLACE_SEEN, kind, relation, 0, 0);
	LWLockRelease(&copies->lock);
	return seen;
}

/*
 * Whether so many bytes more may be taken for the copy, at the cost of others.  False: not, or it is in the
 * list no more.
 */
bool
gh_shared_copy_may_grow(const GhCopyHold *hold, uint64 bytes)
{
	Place	   *place = &copies->places[hold->place];
	bool		may;

	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	may = place->state == PLACE_READY && place->id == hold->number && make_room(bytes, place, true);
	LWLockRelease(&copies->lock);
	/* the setting may be another one than it was */
	if (may)
		dsa_set_size_limit(hold->area, Max(gh_shared_copies_limit(), GH_AREA_BYTES_MIN));
	return may;
}

/* The copy has so many bytes, and rows, more, or fewer; and these columns, if it is one of columns. */
void
gh_shared_copy_grew(const GhCopyHold *hold, int64 bytes, int64 rows, uint64 columns)
{
	Place	   *place = &copies->places[hold->place];

	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	if (place->state == PLACE_READY && place->id == hold->number)
	{
		place->bytes = gh_area_size(hold->area, place->bytes + (uint64) bytes);
		place->facts.rows += (uint64) rows;
		place->facts.columns |= columns;
	}
	LWLockRelease(&copies->lock);
}

/* What grew took so long to make. */
void
gh_shared_copy_took(const GhCopyHold *hold, int64 ms)
{
	Place	   *place = &copies->places[hold->place];

	if (ms == 0)
		return;
	LWLockAcquire(&copies->lock, LW_EXCLUSIVE);
	if (place->state == PLACE_READY && place->id == hold->number)
		place->made_ms += ms;
	LWLockRelease(&copies->lock);
}

GhSharedCopyInfo *
gh_shared_copies_list(int *count)
{
	GhSharedCopyInfo *infos = palloc0(sizeof(GhSharedCopyInfo) * GH_COPY_PLACES);

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
		infos[(*count)++] = (GhSharedCopyInfo)
		{
			place->kind, place->relation, place->bytes, place->facts.rows, pg_atomic_read_u64(&place->hits),
				(TimestampTz) pg_atomic_read_u64(&place->used)
		};
	}
	LWLockRelease(&copies->lock);
	return infos;
}
