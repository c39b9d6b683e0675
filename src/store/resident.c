/*
 * resident.c
 *		Pages of relations that stay on a device: a scan's use of them.
 *
 * A block that the visibility map has as all-visible holds rows that every snapshot sees.  To set the bit
 * moves the LSN of the map's page, and to clear it takes the bit away.  So a block that was all-visible when
 * it was copied, and is now, by a map's page with the same LSN, still has the rows that it had.  Where that
 * LSN has moved, the heap page's own LSN tells.  README, "Resident pages", has all the rules, and what each
 * rests on.
 *
 * The order is: the snapshot is held; then the map's page is read, bits and LSN together; then, under its
 * lock, the heap page's LSN; then, beside the pin, its bytes.
 */
#include "postgres.h"

#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "gpuhash.h"
#include "host.h"
#include "service/faults.h"
#include "service/service.h"
#include "store/inside.h"
#include "store/resident_use.h"

/* Of a file's pages, what a further span is for, when there are places for all. */
#define GH_SPARE_SHARE 8
/* Pages of the smallest span. */
#define GH_SPAN_PAGES_MIN 16

/* -------------------------------------------------------------- open, close */

/* Whether pages of the relation, or what is made of them, may ever stay on a device. */
bool
gh_resident_allowed(Relation relation)
{
	return gh_enable_resident && gh_service_enabled() && gh_resident_memory != 0 && RelationNeedsWAL(relation) &&
		!RelationUsesLocalBuffers(relation) && !IsCatalogRelation(relation) && !gh_old_snapshots_end();
}

void
gh_resident_key(GhResidentKey *key, Relation relation, int device)
{
	key->device = (uint32) device;
	key->database = MyDatabaseId;
	key->tablespace = gh_relation_tablespace(relation);
	key->number = gh_relation_number(relation);
}

/* Pages of the relation that are on a device; -1: none is ready. */
static double
pages_on(Relation relation, int device)
{
	GhResidentKey key;

	if (device < 0)
		return 0;
	gh_resident_key(&key, relation, device);
	return (double) gh_resident_file_pages(&key, RelationGetRelid(relation));
}

/* Likewise on all that are ready: a page is on one of them, as a rule. */
static double
pages_on_all(Relation relation)
{
	double		pages = 0;
	bool		ready;

	for (int device = 0; device < gh_service_devices(); device++)
	{
		(void) gh_service_worker_of(device, &ready);
		pages += pages_on(relation, ready ? device : -1);
	}
	return pages;
}

/*
 * About what share of so many pages a scan would have no need to read, from 0 to 1: for costs.  Of the pages
 * that are on the device which a scan would be given now, no more count than VACUUM has found all-visible.
 */
double
gh_resident_share(Relation relation, BlockNumber npages)
{
	double		visible = relation->rd_rel->relallvisible;
	double		there;

	if (npages == 0 || visible <= 0 || !gh_resident_allowed(relation))
		return 0;
	there = gh_devices_per_query > 1 ? pages_on_all(relation) : pages_on(relation, gh_service_choose_device());
	return Min(Min(there, visible) / npages, 1);
}

/* About how many of the relation's blocks the use will find, by the map's bits as they are now. */
BlockNumber
gh_resident_expected(const GhResident *resident)
{
	BlockNumber visible;
	uint64		there;

	visibilitymap_count(resident->relation, &visible, NULL);
	LWLockAcquire(&resident->file->lock, LW_SHARED);
	there = gh_file_count_blocks(gh_store_area(), resident->file, false);
	LWLockRelease(&resident->file->lock);
	return (BlockNumber) Min(Min(there, visible), resident->nblocks);
}

/* Whose processes fill the file: the leader of this one's, if it has one. */
static int
filler_of_process(void)
{
	return MyProc->lockGroupLeader != NULL ? MyProc->lockGroupLeader->pid : MyProcPid;
}

/* One session at a time fills a file, but all of its processes do. */
static void
begin_use(GhResident *resident)
{
	GhResidentFile *file = resident->file;

	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	/* others' requests that nobody waited for have what they write to, or most spans have gone */
	if (file->users[0] + file->users[1] == 0 && gh_file_is_worn(gh_store_area(), file))
		(void) gh_file_forget_all(gh_store_area(), file);
	gh_file_begin_use(file, &resident->period);
	resident->fills = file->fillers == 0 || file->filler == filler_of_process();
	if (resident->fills)
	{
		file->filler = filler_of_process();
		file->fillers++;
	}
	LWLockRelease(&file->lock);
}

/*
 * The use ends with its context.  No request that names its spans is in flight, but those that were left to
 * themselves.
 */
static void
end_use(void *arg)
{
	GhResident *resident = arg;
	GhResidentFile *file = resident->file;

	if (!resident->unasked)
	{
		pg_atomic_write_u64(&file->used, (uint64) GetCurrentTimestamp());
		pg_atomic_fetch_add_u64(&file->hits, (int64) resident->counts.hits);
		pg_atomic_fetch_add_u64(&file->revalidated, (int64) resident->counts.revalidated);
	}
	/* before the last user has gone: who comes then may give them up */
	for (uint32 i = 0; i < resident->nspans; i++)
		if (resident->spans[i].state == SPAN_HELD)
			gh_service_entry_leave(resident->spans[i].span->root);
	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	gh_file_give_places(gh_store_area(), file, resident->claimed + resident->next_claimed,
						resident->nclaimed - resident->next_claimed);
	file->lost += resident->in_flight;
	if (resident->fills)
		file->fillers--;
	gh_file_end_use(gh_store_area(), file, resident->period);
	LWLockRelease(&file->lock);
	gh_resident_file_close(file);
}

/*
 * Begins a use of the relation's pages on a device, which ends with the context.  The snapshot is held.
 * NULL: there are none, and none are to be put there.
 */
GhResident *
gh_resident_open(Relation relation, Snapshot snapshot, int device, MemoryContext context)
{
	GhResidentKey key;
	GhResident *resident;

	if (!gh_resident_allowed(relation) || snapshot->snapshot_type != SNAPSHOT_MVCC)
		return NULL;
	gh_resident_key(&key, relation, device);
	context = AllocSetContextCreate(context, "GpuHash resident pages", ALLOCSET_DEFAULT_SIZES);
	resident = MemoryContextAllocZero(context, sizeof(GhResident));
	resident->relation = relation;
	resident->device = device;
	resident->context = context;
	resident->nblocks = RelationGetNumberOfBlocks(relation);
	resident->chunk = InvalidBlockNumber;
	resident->file = gh_resident_file_open(&key, RelationGetRelid(relation));
	if (resident->file == NULL)
	{
		MemoryContextDelete(context);
		return NULL;
	}
	begin_use(resident);
	resident->callback.func = end_use;
	resident->callback.arg = resident;
	MemoryContextRegisterResetCallback(context, &resident->callback);
	return resident;
}

/*
 * From its begin on, this use is a load that no query wants: it takes no memory from pages that queries have
 * brought, and what it brings is as long unused as it was when it was there last.
 */
void
gh_resident_load(GhResident *resident, TimestampTz used)
{
	GhResidentFile *file = resident->file;

	resident->unasked = true;
	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	/* a query that uses it meanwhile tells so at its end */
	if (file->nspans == 0)
		pg_atomic_write_u64(&file->used, (uint64) used);
	LWLockRelease(&file->lock);
}

/* For so many spans, and so many ms, it is awaited that their memory is free again. */
#define GH_GIVEN_UP_SPANS 64
#define GH_GIVEN_UP_WAIT_MS 1000

/*
 * Gives up all pages of a file if nobody uses them, and they lie in short runs; roots: of the spans that they
 * were in, or 0.
 */
static void
give_up_scattered(GhResidentFile *file, GhRef roots[GH_GIVEN_UP_SPANS])
{
	dsa_area   *area = gh_store_area();

	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	if (file->users[0] + file->users[1] == 0 && gh_file_is_scattered(area, file))
	{
		for (uint32 i = 0; i < file->nspans && i < GH_GIVEN_UP_SPANS; i++)
			roots[i] = gh_file_spans(area, file)[i].root;
		(void) gh_file_forget_all(area, file);
	}
	LWLockRelease(&file->lock);
}

/*
 * Before all pages of the relation are brought: if nobody uses those that are there, and they lie in short
 * runs, as after changes of many, they are given up, so that all come in the order of the blocks.  Scans of
 * long runs take half of the time or less.
 */
void
gh_resident_give_up_scattered(Relation relation, int device)
{
	GhRef		roots[GH_GIVEN_UP_SPANS] = {0};
	GhResidentKey key;
	GhResidentFile *file;

	if (!gh_resident_allowed(relation))
		return;
	gh_resident_key(&key, relation, device);
	file = gh_resident_file_open(&key, RelationGetRelid(relation));
	if (file == NULL)
		return;
	give_up_scattered(file, roots);
	gh_resident_file_close(file);
	/* lest it be taken from others */
	for (int i = 0, ms = 0; i < GH_GIVEN_UP_SPANS && ms < GH_GIVEN_UP_WAIT_MS;)
	{
		if (roots[i] == 0 || gh_service_table_is_gone(roots[i]))
		{
			i++;
			continue;
		}
		CHECK_FOR_INTERRUPTS();
		gh_wait_for_memory(1);
		ms++;
	}
}

/* Whether this use may put more pages there: there is room, and nobody else is at it. */
bool
gh_resident_may_fill(const GhResident *resident)
{
	return resident->fills && !resident->full;
}

/* Pages that this use has put there, or is about to. */
uint64
gh_resident_brought(const GhResident *resident)
{
	return resident->counts.kept + resident->in_flight;
}

void
gh_resident_close(GhResident *resident)
{
	MemoryContextDelete(resident->context);
}

/* Pages that were found are named in a request. */
void
gh_resident_count_hits(GhResident *resident, uint32 pages)
{
	resident->counts.hits += pages;
}

const GhResidentCounts *
gh_resident_counts(const GhResident *resident)
{
	return &resident->counts;
}

/* -------------------------------------------------------------------- spans */

static OwnSpan *
own_span(GhResident *resident, uint32 number)
{
	uint32		had = resident->nspans;

	if (number < had)
		return &resident->spans[number];
	resident->nspans = Max(number + 1, 2 * had);
	resident->spans = had == 0 ? MemoryContextAlloc(resident->context, resident->nspans * sizeof(OwnSpan)) :
		repalloc(resident->spans, resident->nspans * sizeof(OwnSpan));
	memset(resident->spans + had, 0, (resident->nspans - had) * sizeof(OwnSpan));
	return &resident->spans[number];
}

/* Holds a span of that root; false: it is gone. */
static bool
hold_span(GhResident *resident, uint32 number, GhRef root, uint32 npages)
{
	OwnSpan    *own = own_span(resident, number);
	GhServiceSpan *span;

	if (own->state != SPAN_UNKNOWN)
		return own->state == SPAN_HELD;
	span = MemoryContextAlloc(resident->context, sizeof(GhServiceSpan));
	own->state = SPAN_GONE;
	if (root == 0 || !gh_service_entry_hold(root))
		return false;
	gh_service_span_init(span, root, npages);
	own->span = span;
	own->state = SPAN_HELD;
	return true;
}

/* The span of a number that was told by find or offer. */
GhPageSpan *
gh_resident_span(GhResident *resident, uint32 span)
{
	return &resident->spans[span].span->common;
}

static inline bool
is_held(const GhResident *resident, uint32 number)
{
	return number < resident->nspans && resident->spans[number].state == SPAN_HELD;
}

/* Under the file's lock, a shared one. */
bool
gh_resident_hold_span(GhResident *resident, uint32 number)
{
	const GhFileSpan *span;

	if (number < resident->nspans && resident->spans[number].state != SPAN_UNKNOWN)
		return resident->spans[number].state == SPAN_HELD;
	span = &gh_file_spans(gh_store_area(), resident->file)[number];
	return hold_span(resident, number, span->gone ? 0 : span->root, span->npages);
}

/* Notes spans that were found to be gone, and gives back what is left of those that were before. */
static void
tell_gone(GhResident *resident)
{
	GhResidentFile *file = resident->file;
	dsa_area   *area = gh_store_area();

	for (uint32 i = 0; i < file->nspans; i++)
	{
		const GhFileSpan *span = &gh_file_spans(area, file)[i];

		if (span->root != 0 && (span->gone || gh_service_entry_used(span->root) == 0))
			gh_file_lose_span(area, file, i);
	}
}

/* --------------------------------------------------------------- new places */

static bool
lacks_room(GhStatus status)
{
	return status == GH_LIMIT || status == GH_NO_MEMORY;
}

/* Waits for the worker, and serves interrupts meanwhile. */
static GhStatus
create_span(int device, uint32 npages, GhRef *root, GhError *error)
{
	GhStatus	status;

	while ((status = gh_service_span_create(device, npages, root, error)) == GH_STOPPED)
		gh_serve_interrupt();
	return status;
}

/* Has the worker make another span; false: there is no room. */
static bool
make_span(GhResident *resident, uint32 wanted)
{
	GhResidentFile *file = resident->file;
	uint32		npages = Max(Min(wanted, GH_PLACES_OF_SPAN), GH_SPAN_PAGES_MIN);
	GhRef		root;
	GhError		error;
	GhStatus	status = create_span(resident->device, npages, &root, &error);
	bool		added;

	if (lacks_room(status) && !resident->unasked && gh_resident_make_room(file->key.device, file))
		status = create_span(resident->device, npages, &root, &error);
	/* then as much as there is */
	while (lacks_room(status) && npages / 2 >= GH_SPAN_PAGES_MIN)
		status = create_span(resident->device, npages /= 2, &root, &error);
	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	if (status != GH_OK)
		strlcpy(file->why_not, error.message, sizeof(file->why_not));
	added = status == GH_OK && gh_file_add_span(gh_store_area(), file, root, npages);
	LWLockRelease(&file->lock);
	if (status == GH_OK && !added)
		(void) gh_service_entry_release(root);
	return added;
}

/* Takes places for some pages; false: there is no room. */
static bool
claim(GhResident *resident)
{
	GhResidentFile *file = resident->file;
	uint32		left;

	resident->next_claimed = 0;
	for (int tries = 0; tries < 2; tries++)
	{
		LWLockAcquire(&file->lock, LW_EXCLUSIVE);
		tell_gone(resident);
		resident->nclaimed = gh_file_take_places(gh_store_area(), file, resident->claimed, GH_CLAIM);
		/* as many as lack; where pages change, and their old places are not free yet, some more */
		left = resident->nblocks > file->nplaces ? resident->nblocks - file->nplaces :
			resident->nblocks / GH_SPARE_SHARE;
		LWLockRelease(&file->lock);
		if (resident->nclaimed > 0)
			return true;
		if (tries == 0 && !make_span(resident, left))
			return false;
	}
	return false;
}

/* A place for a page; false: there is none. */
static bool
new_place(GhResident *resident, GhResidentPlace *at)
{
	if (!resident->fills || resident->full)
		return false;
	for (;;)
	{
		uint32		place;
		bool		held;

		if (resident->next_claimed == resident->nclaimed && !claim(resident))
		{
			resident->full = true;
			return false;
		}
		place = resident->claimed[resident->next_claimed++];
		held = is_held(resident, place / GH_PLACES_OF_SPAN);
		if (!held)
		{
			LWLockAcquire(&resident->file->lock, LW_SHARED);
			held = gh_resident_hold_span(resident, place / GH_PLACES_OF_SPAN);
			LWLockRelease(&resident->file->lock);
		}
		if (held)
		{
			gh_set_place(at, place, 0);
			return true;
		}
	}
}

/*
 * A page was read, and is pinned: all of its rows were visible, and its LSN was that, when it was locked.
 * The answer is what is to become of it, with the place in the note; of one that is to be put there, the
 * lines are the caller's to set.
 */
GhResidentOffer
gh_resident_offer(GhResident *resident, BlockNumber block, XLogRecPtr lsn, bool may_keep, GhResidentNote *note)
{
	const GhMapPage *map = gh_resident_map(resident, block);
	const GhResidentBlock *known = &resident->blocks[block % GH_CHUNK_BLOCKS];

	if (map->lsn == InvalidXLogRecPtr || !gh_map_is_visible(map, block))
		return GH_RESIDENT_NOT;
	note->block = block;
	note->map_lsn = map->lsn;
	note->heap_lsn = lsn;
	note->kept = note->spoilt = note->unsure = false;
	if (resident->chunk == block - block % GH_CHUNK_BLOCKS && !resident->is_whole && known->there &&
		((lsn == known->heap_lsn && lsn != InvalidXLogRecPtr) ||
		 gh_fault_pass(GH_FAULT_POINT_RESIDENT_HEAP) != GH_FAULT_NONE))
	{
		gh_set_place(&note->at, known->place, known->lines);
		resident->counts.revalidated++;
		return GH_RESIDENT_SAME;
	}
	if (!may_keep || !new_place(resident, &note->at))
		return GH_RESIDENT_NOT;
	note->kept = true;
	resident->in_flight++;
	return GH_RESIDENT_KEEP;
}

/* The device has done the request of these pages. */
void
gh_resident_publish(GhResident *resident, const GhResidentNote *notes, int count)
{
	GhResidentFile *file = resident->file;
	dsa_area   *area = gh_store_area();
	GhFileChunk chunk = {0};
	GhFileSpan *spans;

	LWLockAcquire(&file->lock, LW_EXCLUSIVE);
	spans = gh_file_spans(area, file);
	for (int i = 0; i < count; i++)
	{
		gh_file_set_block(area, file, spans, &chunk, &notes[i]);
		resident->in_flight -= notes[i].kept;
		resident->counts.kept += notes[i].kept && !notes[i].spoilt;
	}
	LWLockRelease(&file->lock);
}
