/*
 * columns_open.c
 *		Columns of tables in shared memory: a use's begin and end, and what was asked for before.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "service/faults.h"
#include "store/columns_use.h"
#include "store/inside.h"
#include "store/resident_file.h"

/* A table with fewer blocks is read as fast; those of tests are small. */
#define GH_COLUMNS_BLOCKS_MIN GH_WITH_FAULT_POINTS(2, 128)
/* Columns that were asked for so often are made. */
#define GH_ASKED_TIMES 2
/* What a copy takes before there is a stripe. */
#define GH_EMPTY_BYTES (1024 * 1024)

/* ------------------------------------------------------------- what was asked for */

/*
 * What is known of a column that was asked for, under the copy's lock; NULL: it was not, or that is
 * forgotten.
 */
static GhAskedColumn *
find_asked(GhStoredColumns *root, const GhColumn *column)
{
	for (uint32 a = 0; a < root->nasked; a++)
		if (gh_is_same_column(&root->asked[a].column, column))
			return &root->asked[a];
	return NULL;
}

/*
 * A column that is asked for the first time: where there is no room, another one that was asked for least
 * often goes.
 */
static GhAskedColumn *
add_asked(GhStoredColumns *root, const GhColumn *column)
{
	uint32		least = 0;

	if (root->nasked < GH_STORED_COLUMNS_MAX)
		least = root->nasked++;
	else
		for (uint32 a = 1; a < root->nasked; a++)
			if (root->asked[a].times <= root->asked[least].times)
				least = a;
	root->asked[least] = (GhAskedColumn) {.column = *column};
	return &root->asked[least];
}

/* Counts that the columns are asked for; whether all of them were so before. */
static bool
ask_for_columns(GhColumnsUse *use, uint32 times)
{
	GhStoredColumns *root = use->hold.columns;
	bool		all = true;

	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	for (uint32 c = 0; c < use->ncolumns; c++)
	{
		GhAskedColumn *asked;

		if ((int) c == use->places)
			continue;
		asked = find_asked(root, &use->columns[c]);
		if (asked == NULL)
			asked = add_asked(root, &use->columns[c]);
		asked->times = Max(asked->times + (IsParallelWorker() ? 0 : 1), times);
		all &= asked->times >= GH_ASKED_TIMES && !asked->unreadable;
	}
	LWLockRelease(&root->lock);
	return all;
}

/* Values of that column cannot be read, of so many blocks that it is not asked for any more. */
void
gh_columns_note_unreadable(GhColumnsUse *use, const GhColumn *column)
{
	GhStoredColumns *root = use->hold.columns;
	GhAskedColumn *asked;

	LWLockAcquire(&root->lock, LW_EXCLUSIVE);
	asked = find_asked(root, column);
	if (asked != NULL)
		asked->unreadable = true;
	LWLockRelease(&root->lock);
	use->makes = false;
}

bool
gh_columns_is_unreadable(const GhColumnsUse *use, const GhColumn *column)
{
	GhStoredColumns *root = use->hold.columns;
	const GhAskedColumn *asked;
	bool		unreadable;

	LWLockAcquire(&root->lock, LW_SHARED);
	asked = find_asked(root, column);
	unreadable = asked != NULL && asked->unreadable;
	LWLockRelease(&root->lock);
	return unreadable;
}

/* --------------------------------------------------------------- open, close */

static void
forget_use(void *arg)
{
	GhColumnsUse *use = arg;

	gh_shared_copy_took(&use->hold, (int64) INSTR_TIME_GET_MILLISEC(use->making));
	gh_shared_copy_close(&use->hold);
}

/* An empty copy of the table.  False: there is none. */
static bool
make_copy(Relation relation, GhCopyHold *hold)
{
	const GhCopyFacts none = {0};
	GhStoredColumns *root;

	if (!gh_shared_copy_begin(GH_COPY_OF_COLUMNS, relation, GH_EMPTY_BYTES, sizeof(GhStoredColumns), hold))
		return false;
	root = hold->columns;
	LWLockInitialize(&root->lock, gh_store_area_tranche());
	gh_shared_copy_publish(hold, &none, true);
	return true;
}

static bool
may_have_columns(const GhPages *pages, uint32 ncolumns)
{
	return gh_resident_allowed(pages->relation) && pages->snapshot->snapshot_type == SNAPSHOT_MVCC &&
		pages->nblocks >= GH_COLUMNS_BLOCKS_MIN && ncolumns <= GH_STORED_COLUMNS_MAX;
}

/* The use of the copy that is held; times: as often these columns were asked for, at least. */
static GhColumnsUse *
create_use(const GhPages *pages, uint32 natts, const GhPageAttribute *attributes, uint32 ncolumns, const GhColumn *columns,
		   const GhCopyHold *hold, uint32 times, MemoryContext context)
{
	GhColumnsUse *use;

	context = AllocSetContextCreate(context, "GpuHash stored columns", ALLOCSET_DEFAULT_SIZES);
	use = MemoryContextAllocZero(context, sizeof(GhColumnsUse));
	use->context = context;
	use->pages = pages;
	use->hold = *hold;
	use->callback.func = forget_use;
	use->callback.arg = use;
	MemoryContextRegisterResetCallback(context, &use->callback);
	use->nblocks = pages->nblocks;
	use->natts = natts;
	use->attributes = attributes;
	use->ncolumns = ncolumns;
	use->places = -1;
	memcpy(use->columns, columns, sizeof(GhColumn) * ncolumns);
	for (uint32 c = 0; c < ncolumns; c++)
		if (columns[c].load == GH_LOAD_TID)
			use->places = (int) c;
	use->map_number = use->number = InvalidBlockNumber;
	/* of its own, a serializable transaction is not told what is visible */
	use->makes = ask_for_columns(use, times) &&
		!CheckForSerializableConflictOutNeeded(pages->relation, pages->snapshot);
	return use;
}

/*
 * Begins a scan's use of columns of its table: the columns of a program that are the table's, none where rows
 * are only counted. It ends with the context, or before.  The scan has begun, and its snapshot is held.
 * NULL: there are none, and none are to be made.
 */
GhColumnsUse *
gh_columns_open(const GhPages *pages, uint32 natts, const GhPageAttribute *attributes, uint32 ncolumns,
				const GhColumn *columns, MemoryContext context)
{
	GhCopyHold	hold;
	uint32		times = 1;

	if (!may_have_columns(pages, ncolumns))
		return NULL;
	if (!gh_shared_copy_open(GH_COPY_OF_COLUMNS, pages->relation, &hold))
	{
		/* the table was scanned before, and so were these columns, as far as anybody knows */
		times = GH_ASKED_TIMES;
		if (!gh_shared_copy_was_seen(GH_COPY_OF_COLUMNS, pages->relation) || !make_copy(pages->relation, &hold))
			return NULL;
	}
	return create_use(pages, natts, attributes, ncolumns, columns, &hold, times, context);
}

/* The same before any scan, for gh_columns_fill().  NULL: there can be none. */
GhColumnsUse *
gh_columns_open_to_fill(const GhPages *pages, uint32 natts, const GhPageAttribute *attributes, uint32 ncolumns,
						const GhColumn *columns, MemoryContext context)
{
	GhColumnsUse *use;
	GhCopyHold	hold;

	/* twice, as somebody may make it in between */
	if (!may_have_columns(pages, ncolumns) ||
		(!gh_shared_copy_open(GH_COPY_OF_COLUMNS, pages->relation, &hold) && !make_copy(pages->relation, &hold) &&
		 !gh_shared_copy_open(GH_COPY_OF_COLUMNS, pages->relation, &hold)))
		return NULL;
	use = create_use(pages, natts, attributes, ncolumns, columns, &hold, GH_ASKED_TIMES, context);
	use->fills = true;
	use->makes = !CheckForSerializableConflictOutNeeded(pages->relation, pages->snapshot);
	return use;
}

void
gh_columns_close(GhColumnsUse *use)
{
	MemoryContextDelete(use->context);
}
