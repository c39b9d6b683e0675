/*
 * parallel.c
 *		A GpuHashAggregate that all participants of a parallel query run together.
 *
 * Each participant reads its part of the scan into groups of its own.  When it is done it
 * leaves them to the others, as bytes in dynamic shared memory or, where they are many or have
 * outgrown its memory, in a file; and the last one that is done merges them all and returns the
 * final groups.  A participant that starts when the last one was done has nothing left to read, and
 * nothing to return.  Nobody waits for anybody.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/spin.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

#include "aggregate/device.h"
#include "aggregate/enter.h"

/* What a participant left. */
typedef struct GhSharedGroups
{
	dsa_pointer records;		/* InvalidDsaPointer: none */
	Size		bytes;
	bool		has_file;
} GhSharedGroups;

typedef struct GhAggregateShared
{
	dsm_handle	segment;
	int			nmembers;
	SharedFileSet files;
	pg_atomic_uint32 users;		/* processes that have the segment mapped */
	GhDeviceShared device;
	slock_t		mutex;			/* of what follows */
	int			started;		/* participants */
	int			done;
	bool		closed;			/* all that had started were done */
	GhAggregateCounts totals;
	GhSharedGroups left[FLEXIBLE_ARRAY_MEMBER];	/* by participant */
} GhAggregateShared;

typedef struct GhAggregateMember
{
	GhAggregateShared *shared;
	dsm_segment *segment;
	int			number;
	BufFile    *file;			/* what this participant leaves; NULL: no file */
	GhRecordBuffer left;		/* or is about to leave in shared memory: */
	Size		left_bytes;
	bool		merges;			/* it is the last one */
	MemoryContextCallback cleanup;
} GhAggregateMember;

/* -------------------------------------------------------- shared memory */

/* EstimateDSMCustomScan */
Size
gh_aggregate_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	(void) css;
	return add_size(offsetof(GhAggregateShared, left),
					mul_size(sizeof(GhSharedGroups), pcxt->nworkers + 1));
}

static void
init_run(GhAggregateShared *shared)
{
	gh_device_share(&shared->device);
	shared->started = shared->done = 0;
	shared->closed = false;
	memset(&shared->totals, 0, sizeof(shared->totals));
	for (int i = 0; i < shared->nmembers; i++)
	{
		shared->left[i].records = InvalidDsaPointer;
		shared->left[i].bytes = 0;
		shared->left[i].has_file = false;
	}
}

/* The leader's segment goes, when all workers have left: EXPLAIN shows what all did. */
static void
keep_totals(dsm_segment *segment, Datum arg)
{
	GhAggregateNode *node = (GhAggregateNode *) DatumGetPointer(arg);

	(void) segment;
	node->counts = node->member->shared->totals;
	node->ran = true;
	node->member = NULL;
}

/* The node's memory goes first, after an error: nothing shared is to be touched. */
static void
forget_segment(void *arg)
{
	GhAggregateNode *node = (GhAggregateNode *) arg;

	if (node->member != NULL)
		cancel_on_dsm_detach(node->member->segment, keep_totals, PointerGetDatum(node));
	node->member = NULL;
}

/* A process unmaps the segment, after an error too. */
static void
leave_segment(dsm_segment *segment, Datum arg)
{
	GhAggregateShared *shared = (GhAggregateShared *) DatumGetPointer(arg);

	(void) segment;
	if (pg_atomic_sub_fetch_u32(&shared->users, 1) == 0)
		gh_device_unshare(&shared->device);
}

static GhAggregateMember *
use_shared(GhAggregateNode *node, GhAggregateShared *shared, dsm_segment *segment, int number)
{
	GhAggregateMember *member = MemoryContextAllocZero(node->css.ss.ps.state->es_query_cxt,
													   sizeof(GhAggregateMember));

	member->shared = shared;
	member->segment = segment;
	member->number = number;
	node->member = member;
	pg_atomic_fetch_add_u32(&shared->users, 1);
	on_dsm_detach(segment, leave_segment, PointerGetDatum(shared));
	return member;
}

/* InitializeDSMCustomScan, in the leader.  Without a segment there are no workers. */
void
gh_aggregate_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	GhAggregateNode *node = (GhAggregateNode *) css;
	GhAggregateShared *shared = coordinate;
	GhAggregateMember *member;

	if (pcxt->seg == NULL)
		return;
	shared->segment = dsm_segment_handle(pcxt->seg);
	shared->nmembers = pcxt->nworkers + 1;
	SpinLockInit(&shared->mutex);
	pg_atomic_init_u32(&shared->users, 0);
	SharedFileSetInit(&shared->files, pcxt->seg);
	init_run(shared);
	member = use_shared(node, shared, pcxt->seg, 0);
	on_dsm_detach(pcxt->seg, keep_totals, PointerGetDatum(node));
	member->cleanup.func = forget_segment;
	member->cleanup.arg = node;
	MemoryContextRegisterResetCallback(css->ss.ps.state->es_query_cxt, &member->cleanup);
}

/* ReInitializeDSMCustomScan: the workers of the last run have left. */
void
gh_aggregate_reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	GhAggregateShared *shared = coordinate;

	(void) pcxt;
	for (int i = 0; i < shared->nmembers; i++)
		if (DsaPointerIsValid(shared->left[i].records))
			dsa_free(css->ss.ps.state->es_query_dsa, shared->left[i].records);
	SharedFileSetDeleteAll(&shared->files);
	gh_device_unshare(&shared->device);
	init_run(shared);
}

GhDeviceShared *
gh_aggregate_device_shared(GhAggregateNode *node)
{
	return &node->member->shared->device;
}

/* InitializeWorkerCustomScan */
void
gh_aggregate_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	GhAggregateShared *shared = coordinate;
	dsm_segment *segment = dsm_find_mapping(shared->segment);

	(void) toc;
	SharedFileSetAttach(&shared->files, segment);
	use_shared((GhAggregateNode *) css, shared, segment, ParallelWorkerNumber + 1);
}

/* ------------------------------------------------------ what is left to others */

static void
file_name(char *name, int member)
{
	snprintf(name, MAXPGPATH, "groups.%d", member);
}

/* GhPutRecord */
static void
write_record(void *arg, const char *record, Size size)
{
	GhAggregateNode *node = arg;

	BufFileWrite(node->member->file, unconstify(char *, record), size);
	node->counts.disk += size;
}

static void
open_file(GhAggregateNode *node)
{
	GhAggregateMember *member = node->member;
	MemoryContext saved = MemoryContextSwitchTo(node->css.ss.ps.state->es_query_cxt);
	char		name[MAXPGPATH];

	file_name(name, member->number);
	member->file = BufFileCreateFileSet(&member->shared->files.fs, name);
	MemoryContextSwitchTo(saved);
}

/* What was written is forgotten. */
void
gh_aggregate_drop_file(GhAggregateNode *node)
{
	GhAggregateMember *member = node->member;
	char		name[MAXPGPATH];

	if (member->file == NULL)
		return;
	BufFileClose(member->file);
	member->file = NULL;
	file_name(name, member->number);
	BufFileDeleteFileSet(&member->shared->files.fs, name, true);
}

/*
 * The groups have outgrown memory: what they are so far is left to the others.  False: this
 * process is the one that merges, and they are its own to keep.
 */
bool
gh_aggregate_put_shared(GhAggregateNode *node)
{
	if (node->member->merges)
		return false;
	if (node->member->file == NULL)
		open_file(node);
	gh_aggregate_put_groups(node, write_record, node);
	return true;
}

/* GhPutRecord, of one that is left in shared memory if all are small enough together. */
static void
leave_record(void *arg, const char *record, Size size)
{
	GhAggregateNode *node = arg;
	GhAggregateMember *member = node->member;

	if (member->file == NULL && size > GH_SHARED_GROUPS_MAX - member->left_bytes)
	{
		open_file(node);
		write_record(node, member->left.data, member->left_bytes);
	}
	if (member->file != NULL)
	{
		write_record(node, record, size);
		return;
	}
	memcpy(gh_record_buffer(&member->left, member->left_bytes + size) + member->left_bytes, record, size);
	member->left_bytes += size;
}

/* Leaves the groups to the others. */
static void
leave_groups(GhAggregateNode *node)
{
	GhAggregateMember *member = node->member;
	GhSharedGroups *left = &member->shared->left[member->number];

	member->left = (GhRecordBuffer) {.context = CurrentMemoryContext};
	member->left_bytes = 0;
	gh_aggregate_put_groups(node, leave_record, node);
	gh_aggregate_drop_stage(node);
	if (member->file != NULL)
	{
		BufFileExportFileSet(member->file);
		BufFileClose(member->file);
		member->file = NULL;
		left->has_file = true;
	}
	else if (member->left_bytes > 0)
	{
		left->records = dsa_allocate(node->css.ss.ps.state->es_query_dsa, member->left_bytes);
		left->bytes = member->left_bytes;
		memcpy(dsa_get_address(node->css.ss.ps.state->es_query_dsa, left->records), member->left.data, left->bytes);
	}
	if (member->left.data != NULL)
		pfree(member->left.data);
}

/* ----------------------------------------------------------------- merging */

static void
merge_file(GhAggregateNode *node, int number)
{
	GhRecordBuffer buffer = {.context = CurrentMemoryContext};
	BufFile    *file;
	char		name[MAXPGPATH];
	Size		size;

	file_name(name, number);
	file = BufFileOpenFileSet(&node->member->shared->files.fs, name, O_RDONLY, false);
	while ((size = gh_records_read(&buffer, file)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		gh_groups_merge_records(node->groups, buffer.data, size);
		gh_aggregate_keep_within_memory(node);
	}
	if (buffer.data != NULL)
		pfree(buffer.data);
	BufFileClose(file);
}

static void
merge_groups(GhAggregateNode *node)
{
	GhAggregateShared *shared = node->member->shared;
	instr_time	clock = {0};

	gh_aggregate_clock(node, NULL, &clock);
	/* the others have given theirs back */
	node->memory_limit *= shared->started;
	for (int i = 0; i < shared->nmembers; i++)
	{
		const GhSharedGroups *left = &shared->left[i];

		if (DsaPointerIsValid(left->records))
			gh_groups_merge_records(node->groups,
									dsa_get_address(node->css.ss.ps.state->es_query_dsa, left->records),
									left->bytes);
		if (left->has_file)
			merge_file(node, i);
		gh_aggregate_keep_within_memory(node);
	}
	gh_aggregate_clock(node, &node->counts.merge_time, &clock);
}

static void
add_counts(GhAggregateCounts *totals, const GhAggregateCounts *counts)
{
	totals->pages += counts->pages;
	totals->rows += counts->rows;
	totals->back += counts->back;
	totals->groups += counts->groups;
	totals->memory += counts->memory;
	totals->disk += counts->disk;
	totals->device_pages += counts->device_pages;
	totals->pinned_pages += counts->pinned_pages;
	totals->hinted_pages += counts->hinted_pages;
	totals->judged += counts->judged;
	totals->unmatched += counts->unmatched;
	totals->device_bytes += counts->device_bytes;
	totals->device_memory += counts->device_memory;
	totals->queue_ns += counts->queue_ns;
	totals->kernel_ns += counts->kernel_ns;
	INSTR_TIME_ADD(totals->wait_time, counts->wait_time);
	if (totals->fallback_reason[0] == '\0')
		strlcpy(totals->fallback_reason, counts->fallback_reason, sizeof(totals->fallback_reason));
	INSTR_TIME_ADD(totals->build_time, counts->build_time);
	INSTR_TIME_ADD(totals->source_time, counts->source_time);
	INSTR_TIME_ADD(totals->evaluate_time, counts->evaluate_time);
	INSTR_TIME_ADD(totals->merge_time, counts->merge_time);
}

/* Begins a participant's part; false: all is done. */
bool
gh_aggregate_attach(GhAggregateNode *node)
{
	GhAggregateShared *shared = node->member->shared;
	bool		closed;

	memset(&node->counts, 0, sizeof(node->counts));
	node->member->merges = false;
	node->memory_limit = gh_aggregate_memory_limit();
	SpinLockAcquire(&shared->mutex);
	closed = shared->closed;
	if (!closed)
		shared->started++;
	SpinLockRelease(&shared->mutex);
	return !closed;
}

/* Whether this is the last participant that is not done, or, done, whether all are. */
static bool
is_last(GhAggregateShared *shared, bool done)
{
	bool		last;

	SpinLockAcquire(&shared->mutex);
	shared->done += done;
	last = shared->started - shared->done == (done ? 0 : 1);
	shared->closed = shared->closed || last;
	SpinLockRelease(&shared->mutex);
	return last;
}

static void
leave_counts(GhAggregateNode *node)
{
	GhAggregateShared *shared = node->member->shared;

	SpinLockAcquire(&shared->mutex);
	add_counts(&shared->totals, &node->counts);
	SpinLockRelease(&shared->mutex);
}

/*
 * This participant has collected the rows of its part, and returns them itself.  There is nothing left for those
 * that have not begun, unless rows are passed on.
 */
void
gh_aggregate_leave(GhAggregateNode *node)
{
	if (!node->passes_on)
		(void) is_last(node->member->shared, true);
	leave_counts(node);
}

/*
 * This participant has read its part.  True: it was the last one, and has the groups of all;
 * else it has left them.
 */
bool
gh_aggregate_hand_over(GhAggregateNode *node)
{
	GhAggregateMember *member = node->member;
	GhAggregateShared *shared = member->shared;

	member->merges = member->file == NULL && is_last(shared, false);
	if (!member->merges)
	{
		leave_groups(node);
		/* what it has left comes back as everybody else's does */
		member->merges = is_last(shared, true);
	}
	if (member->merges)
		merge_groups(node);
	leave_counts(node);
	return member->merges;
}
