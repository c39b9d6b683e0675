/*
 * parallel.c
 *		A GpuHashAggregate that all participants of a parallel query run together.
 *
 * Each participant reads its part of the scan into groups of its own.  When it is done it leaves them to the
 * others, as bytes.  Who starts when the last one was done has nothing left to read.
 *
 * Where each has few groups, they are left in dynamic shared memory, and the last one that is done merges
 * them all and returns the final groups; the others return nothing, and nobody waits.
 *
 * Where they are many, or have outgrown a participant's memory, they are left in a file, by parts of the hash
 * of their keys: in chunks of one part each, of which each has the place of the one before it.  (A file for
 * each part would be many files, and some file systems take long to make these.)  A participant that has left
 * a file waits until all are done; then each takes one part after the other, merges what all have left of it,
 * and returns its groups.  It waits only while it has returned nothing, and for others that are reading, so
 * that nobody is blocked by a full queue of result rows.  One that fails ends the query.
 *
 * Where a second level of groups is made of these (regroup.c), parts are of the hash of some of the keys: of
 * aggregates with DISTINCT of all but their arguments, so that all values of a group are in one part.  Those
 * of grouping sets, or without other keys, are all the last one's: it takes all parts.  So does it where few
 * parts have any, since others would have nothing to do, and it may use the memory of all.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "utils/dsa.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "aggregate/exec.h"
#include "fragment/parallel.h"

/*
 * Bytes of a chunk, but where one group has more: those of all parts take a quarter of the memory for groups,
 * within these limits.
 */
#define GH_CHUNK_MIN ((Size) 1024)
#define GH_CHUNK_MAX ((Size) 16 * 1024)

/*
 * Parts of groups with DISTINCT that there are for each participant, at least, where all of them take some.
 */
#define GH_EVEN_PARTS 2

/* A place in a file. */
typedef struct GhChunkPlace
{
	int			segment;		/* as BufFileTell() says; -1: there is none */
	off_t		offset;
} GhChunkPlace;

/* A chunk: its groups, as records, follow. */
typedef struct GhChunk
{
	uint64		bytes;			/* of these */
	GhChunkPlace before;		/* the one before it of the same part */
} GhChunk;

/* What a participant left. */
typedef struct GhSharedGroups
{
	dsa_pointer records;		/* InvalidDsaPointer: none */
	Size		bytes;
	bool		has_file;
	GhChunkPlace last[GH_SHARED_PARTS]; /* of it */
} GhSharedGroups;

typedef struct GhAggregateShared
{
	GhFragmentShared fragment;	/* must be first */
	uint64		wanted;			/* groups, as of gh_bound_rows: workers do not see the Limit */
	SharedFileSet files;
	ConditionVariable ready_changed;
	pg_atomic_uint32 parted;	/* somebody has left a file */
	pg_atomic_uint32 ready;		/* everybody has left what there is, and parts may be taken: */
	bool		by_last;		/* by the last one alone */
	pg_atomic_uint32 next_part;
	GhSharedGroups left[FLEXIBLE_ARRAY_MEMBER]; /* by participant; then what the last one made a file of for all */
} GhAggregateShared;

typedef struct GhAggregateMember
{
	GhFragmentMember fragment;	/* must be first */
	int			writes;			/* whose file this is: */
	BufFile    *file;			/* what this participant leaves; NULL: no file */
	GhRecordBuffer *chunks;		/* by part, the one that is not written yet: */
	Size	   *chunk_bytes;
	GhRecordBuffer left;		/* or is about to leave in shared memory: */
	Size		left_bytes;
	bool		merges;			/* it is the last one, and has the groups of all in memory, or in files of its own */
	GhSharedParts parts;		/* those that it takes: */
	int			part;			/* the one that is read */
	int			whose;			/* and whose file of it */
	GhChunkPlace next;			/* of it, the chunk that is next */
	int			nopened;
	BufFile   **opened;			/* by participant; NULL: not yet */
	GhFragmentCounts counts_left;	/* what it has told the others that it counted */
} GhAggregateMember;

static GhAggregateMember *
member_of(const GhAggregateNode *node)
{
	return (GhAggregateMember *) node->fragment.member;
}

static GhAggregateShared *
shared_of(const GhAggregateNode *node)
{
	return (GhAggregateShared *) node->fragment.member->shared;
}

/* -------------------------------------------------------- shared memory */

/* EstimateDSMCustomScan */
Size
gh_aggregate_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	(void) css;
	return add_size(offsetof(GhAggregateShared, left),
					mul_size(sizeof(GhSharedGroups), pcxt->nworkers + 2));
}

static void
init_run(GhAggregateShared *shared)
{
	pg_atomic_init_u32(&shared->parted, 0);
	pg_atomic_init_u32(&shared->ready, 0);
	shared->by_last = false;
	pg_atomic_init_u32(&shared->next_part, 0);
	for (int i = 0; i <= shared->fragment.nmembers; i++)
	{
		shared->left[i].records = InvalidDsaPointer;
		shared->left[i].bytes = 0;
		shared->left[i].has_file = false;
		for (int part = 0; part < GH_SHARED_PARTS; part++)
			shared->left[i].last[part].segment = -1;
	}
}

static GhFragmentMember *
make_member(CustomScanState *css)
{
	GhAggregateMember *member = MemoryContextAllocZero(css->ss.ps.state->es_query_cxt, sizeof(GhAggregateMember));

	return &member->fragment;
}

/* By the leader, before each run. */
static void
tell_wanted(CustomScanState *css, GhAggregateShared *shared)
{
	shared->wanted = gh_bound_rows(&((GhAggregateNode *) css)->bound, &css->ss.ps);
}

/* InitializeDSMCustomScan, in the leader.  Without a segment there are no workers. */
void
gh_aggregate_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	GhAggregateShared *shared = coordinate;

	if (pcxt->seg == NULL)
		return;
	SharedFileSetInit(&shared->files, pcxt->seg);
	ConditionVariableInit(&shared->ready_changed);
	gh_fragment_init_dsm((GhFragment *) css, pcxt, &shared->fragment, make_member(css));
	init_run(shared);
	tell_wanted(css, shared);
}

/* ReInitializeDSMCustomScan: the workers of the last run have left. */
void
gh_aggregate_reinit_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	GhAggregateShared *shared = coordinate;

	(void) pcxt;
	for (int i = 0; i < shared->fragment.nmembers; i++)
		if (DsaPointerIsValid(shared->left[i].records))
			dsa_free(css->ss.ps.state->es_query_dsa, shared->left[i].records);
	SharedFileSetDeleteAll(&shared->files);
	gh_fragment_reinit_dsm(&shared->fragment);
	init_run(shared);
	tell_wanted(css, shared);
}

/* InitializeWorkerCustomScan */
void
gh_aggregate_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	GhAggregateShared *shared = coordinate;

	(void) toc;
	SharedFileSetAttach(&shared->files, dsm_find_mapping(shared->fragment.segment));
	gh_fragment_init_worker((GhFragment *) css, &shared->fragment, make_member(css));
}

/* ------------------------------------------------------ what is left to others */

static void
file_name(char *name, int member)
{
	snprintf(name, MAXPGPATH, "groups.%d", member);
}

static void
create_file(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);
	MemoryContext context = node->fragment.css.ss.ps.state->es_query_cxt;
	MemoryContext saved = MemoryContextSwitchTo(context);
	char		name[MAXPGPATH];

	file_name(name, member->writes);
	member->file = BufFileCreateFileSet(&shared_of(node)->files.fs, name);
	member->chunks = palloc0(sizeof(GhRecordBuffer) * GH_SHARED_PARTS);
	member->chunk_bytes = palloc0(sizeof(Size) * GH_SHARED_PARTS);
	for (int part = 0; part < GH_SHARED_PARTS; part++)
		member->chunks[part].context = context;
	MemoryContextSwitchTo(saved);
}

static Size
chunk_room(const GhAggregateNode *node)
{
	return Max(Min(node->fragment.memory_limit / 4 / GH_SHARED_PARTS, GH_CHUNK_MAX), GH_CHUNK_MIN);
}

/* The part's chunk goes to the file. */
static void
write_chunk(GhAggregateNode *node, int part)
{
	GhAggregateMember *member = member_of(node);
	GhChunkPlace *last = &shared_of(node)->left[member->writes].last[part];
	GhChunk		chunk;
	GhChunkPlace place;

	memset(&chunk, 0, sizeof(chunk));
	chunk.bytes = member->chunk_bytes[part];
	chunk.before = *last;
	BufFileTell(member->file, &place.segment, &place.offset);
	BufFileWrite(member->file, &chunk, sizeof(chunk));
	BufFileWrite(member->file, member->chunks[part].data, chunk.bytes);
	*last = place;
	member->chunk_bytes[part] = 0;
}

/* Whether one participant alone makes the second level of groups. */
static bool
regroups_alone(const GhAggregateNode *node)
{
	return node->sets != NULL || (node->distinct != NULL && node->nkeys == node->distinct->nkeys);
}

static int
part_of(const GhAggregateNode *node, const char *record, Size size)
{
	uint64		hash = node->is_part_key == NULL ? gh_group_record_hash(record) :
		gh_group_record_part_hash(node->groups, record, size, node->is_part_key);

	return (int) (hash >> (64 - GH_SHARED_PART_BITS));
}

/* GhPutRecord, of one that is left in a file. */
static void
write_record(void *arg, const char *record, Size size)
{
	GhAggregateNode *node = arg;
	GhAggregateMember *member = member_of(node);
	int			part = part_of(node, record, size);
	Size		room = chunk_room(node);

	if (member->file == NULL)
		create_file(node);
	if (member->chunk_bytes[part] > 0 && member->chunk_bytes[part] + size > room)
		write_chunk(node, part);
	memcpy(gh_record_buffer(&member->chunks[part], Max(member->chunk_bytes[part] + size, room)) +
		   member->chunk_bytes[part], record, size);
	member->chunk_bytes[part] += size;
	node->fragment.counts.disk += size;
}

static void
free_chunks(GhAggregateMember *member)
{
	for (int part = 0; part < GH_SHARED_PARTS; part++)
		if (member->chunks[part].data != NULL)
			pfree(member->chunks[part].data);
	pfree(member->chunks);
	pfree(member->chunk_bytes);
	member->chunks = NULL;
	member->chunk_bytes = NULL;
}

/* Records that lie one behind the other. */
static void
write_records(GhAggregateNode *node, const char *records, Size bytes)
{
	for (Size at = 0; at < bytes;)
	{
		Size		size = *(const uint64 *) (records + at);

		CHECK_FOR_INTERRUPTS();
		if (size < sizeof(uint64) || size > bytes - at)
			elog(ERROR, "group of a hash aggregation has a wrong size");
		write_record(node, records + at, size);
		at += size;
	}
}

/* What was written is forgotten. */
void
gh_aggregate_drop_shared(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);
	char		name[MAXPGPATH];

	if (member->file == NULL)
		return;
	BufFileClose(member->file);
	member->file = NULL;
	free_chunks(member);
	for (int part = 0; part < GH_SHARED_PARTS; part++)
		shared_of(node)->left[member->writes].last[part].segment = -1;
	file_name(name, member->writes);
	BufFileDeleteFileSet(&shared_of(node)->files.fs, name, true);
}

/*
 * The groups have outgrown memory: what they are so far is left to the others.  False: this
 * process is the one that merges, and they are its own to keep.
 */
bool
gh_aggregate_put_shared(GhAggregateNode *node)
{
	if (member_of(node)->merges)
		return false;
	gh_aggregate_put_groups(node, write_record, node);
	return true;
}

/*
 * GhPutRecord, of one that is left in shared memory if all are small enough together.  The one group without
 * keys is no part.
 */
static void
leave_record(void *arg, const char *record, Size size)
{
	GhAggregateNode *node = arg;
	GhAggregateMember *member = member_of(node);
	bool		many = node->nkeys > 0 && size > GH_SHARED_GROUPS_MAX - member->left_bytes;

	if (member->file == NULL && many)
		write_records(node, member->left.data, member->left_bytes);
	if (member->file != NULL || many)
	{
		write_record(node, record, size);
		return;
	}
	memcpy(gh_record_buffer(&member->left, member->left_bytes + size) + member->left_bytes, record, size);
	member->left_bytes += size;
}

/* The file that was written is left to the others. */
static void
leave_file(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);
	GhAggregateShared *shared = shared_of(node);

	for (int part = 0; part < GH_SHARED_PARTS; part++)
		if (member->chunk_bytes[part] > 0)
			write_chunk(node, part);
	BufFileExportFileSet(member->file);
	BufFileClose(member->file);
	member->file = NULL;
	free_chunks(member);
	shared->left[member->writes].has_file = true;
	pg_atomic_write_u32(&shared->parted, 1);
}

/* Leaves the groups to the others. */
static void
leave_groups(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);
	GhSharedGroups *left = &shared_of(node)->left[member->writes];

	member->left = (GhRecordBuffer) {.context = CurrentMemoryContext};
	member->left_bytes = 0;
	gh_aggregate_put_groups(node, leave_record, node);
	gh_aggregate_drop_stage(node);
	if (member->file != NULL)
		leave_file(node);
	else if (member->left_bytes > 0)
	{
		dsa_area   *area = node->fragment.css.ss.ps.state->es_query_dsa;

		left->records = dsa_allocate(area, member->left_bytes);
		left->bytes = member->left_bytes;
		memcpy(dsa_get_address(area, left->records), member->left.data, left->bytes);
	}
	if (member->left.data != NULL)
		pfree(member->left.data);
}

/* -------------------------------------------------- merging, by the last one */

/* What participant i has left in shared memory; NULL: nothing. */
static const char *
left_by(const GhAggregateNode *node, int i)
{
	const GhSharedGroups *left = &shared_of(node)->left[i];

	return DsaPointerIsValid(left->records) ?
		dsa_get_address(node->fragment.css.ss.ps.state->es_query_dsa, left->records) : NULL;
}

static void
merge_groups(GhAggregateNode *node)
{
	GhAggregateShared *shared = shared_of(node);
	instr_time	clock = {0};

	gh_fragment_clock(&node->fragment, NULL, &clock);
	member_of(node)->merges = true;
	/* the others have given theirs back */
	node->fragment.memory_limit *= shared->fragment.started;
	for (int i = 0; i < shared->fragment.nmembers; i++)
	{
		const char *records = left_by(node, i);

		if (records != NULL)
			gh_groups_merge_records(node->groups, records, shared->left[i].bytes);
		gh_aggregate_keep_within_memory(&node->fragment);
	}
	gh_fragment_clock(&node->fragment, &node->fragment.counts.merge_time, &clock);
}

/* --------------------------------------------------------- merging, by parts */

/* GhSharedParts */
static bool
next_part(void *arg)
{
	GhAggregateMember *member = arg;
	GhAggregateShared *shared = (GhAggregateShared *) member->fragment.shared;

	member->part = (int) pg_atomic_fetch_add_u32(&shared->next_part, 1);
	member->whose = -1;
	member->next.segment = -1;
	return member->part < GH_SHARED_PARTS;
}

/* The file of that participant, which stays open. */
static BufFile *
open_file(GhAggregateMember *member, int whose)
{
	GhAggregateShared *shared = (GhAggregateShared *) member->fragment.shared;
	MemoryContext saved = MemoryContextSwitchTo(GetMemoryChunkContext(member));
	char		name[MAXPGPATH];

	if (member->opened == NULL)
	{
		member->nopened = shared->fragment.nmembers + 1;
		member->opened = palloc0(sizeof(BufFile *) * member->nopened);
	}
	if (member->opened[whose] == NULL)
	{
		file_name(name, whose);
		member->opened[whose] = BufFileOpenFileSet(&shared->files.fs, name, O_RDONLY, false);
	}
	MemoryContextSwitchTo(saved);
	return member->opened[whose];
}

/* GhSharedParts; what is shared may be gone already. */
static void
close_files(void *arg)
{
	GhAggregateMember *member = arg;

	for (int i = 0; i < member->nopened; i++)
		if (member->opened[i] != NULL)
			BufFileClose(member->opened[i]);
	if (member->opened != NULL)
		pfree(member->opened);
	member->opened = NULL;
	member->nopened = 0;
}

/* Reads a chunk of the file, the next one then being that before it. */
static Size
read_chunk(BufFile *file, GhChunkPlace *place, GhRecordBuffer *buffer)
{
	GhChunk		chunk;

	if (BufFileSeek(file, place->segment, place->offset, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of a hash aggregation: %m")));
	gh_read_temp_file(file, &chunk, sizeof(chunk), false);
	if (chunk.bytes == 0 || chunk.bytes > MaxAllocHugeSize)
		elog(ERROR, "temporary file of a hash aggregation has a chunk of the wrong size");
	gh_read_temp_file(file, gh_record_buffer(buffer, chunk.bytes), chunk.bytes, false);
	*place = chunk.before;
	return chunk.bytes;
}

/* GhSharedParts */
static Size
next_records(void *arg, GhRecordBuffer *buffer)
{
	GhAggregateMember *member = arg;
	GhAggregateShared *shared = (GhAggregateShared *) member->fragment.shared;

	while (member->next.segment < 0)
	{
		if (++member->whose > shared->fragment.nmembers)
			return 0;
		if (shared->left[member->whose].has_file)
			member->next = shared->left[member->whose].last[member->part];
	}
	return read_chunk(open_file(member, member->whose), &member->next, buffer);
}

/* Parts of which somebody has left something. */
static int
count_parts(const GhAggregateShared *shared)
{
	int			n = 0;

	for (int part = 0; part < GH_SHARED_PARTS; part++)
	{
		int			whose = 0;

		while (whose <= shared->fragment.nmembers && shared->left[whose].last[part].segment < 0)
			whose++;
		n += whose <= shared->fragment.nmembers;
	}
	return n;
}

/* The last one makes a file of what is left in shared memory, too, and lets the others go on. */
static void
open_parts(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);
	GhAggregateShared *shared = shared_of(node);

	member->writes = shared->fragment.nmembers;
	for (int i = 0; i < shared->fragment.nmembers; i++)
	{
		const char *records = left_by(node, i);

		if (records != NULL)
			write_records(node, records, shared->left[i].bytes);
	}
	if (member->file != NULL)
		leave_file(node);
	shared->by_last = regroups_alone(node) ||
		(node->distinct != NULL && count_parts(shared) < GH_EVEN_PARTS * shared->fragment.started);
	if (shared->by_last)
		node->fragment.memory_limit *= shared->fragment.started;
	/* whoever sees that they are ready sees these */
	pg_write_barrier();
	pg_atomic_write_u32(&shared->ready, 1);
	ConditionVariableBroadcast(&shared->ready_changed);
}

static void
await_parts(GhAggregateNode *node)
{
	GhAggregateShared *shared = shared_of(node);

	ConditionVariablePrepareToSleep(&shared->ready_changed);
	while (pg_atomic_read_u32(&shared->ready) == 0)
		ConditionVariableSleep(&shared->ready_changed, WAIT_EVENT_HASH_BUILD_HASH_INNER);
	ConditionVariableCancelSleep();
	pg_memory_barrier();
}

/* The parts that this process takes are what comes out of the node. */
static void
take_parts(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);

	member->parts = (GhSharedParts) {
		.next_part = next_part,
		.next_records = next_records,
		.close = close_files,
		.arg = member,
	};
	gh_aggregate_create_files(node);
	gh_group_files_share(node->files, &member->parts);
}

/* ------------------------------------------------------------------ one run */

/* How many groups an ORDER BY ... LIMIT above wants; 0: all, or that is not known. */
uint64
gh_aggregate_wanted(const GhAggregateNode *node)
{
	return node->fragment.member != NULL ? shared_of(node)->wanted :
		gh_bound_rows(&node->bound, unconstify(PlanState *, &node->fragment.css.ss.ps));
}

/* What this participant has counted before its groups come out. */
void
gh_aggregate_leave_counts(GhAggregateNode *node)
{
	gh_fragment_leave_counts(&node->fragment);
	member_of(node)->counts_left = node->fragment.counts;
}

/* All groups have come out: which did not, and what it took to make those of parts, is only known now. */
void
gh_aggregate_leave_later_counts(GhAggregateNode *node)
{
	GhFragmentShared *shared = node->fragment.member->shared;
	const GhFragmentCounts *now = &node->fragment.counts;
	const GhFragmentCounts *left = &member_of(node)->counts_left;
	GhFragmentCounts later;

	memset(&later, 0, sizeof(later));
	later.unwanted = now->unwanted;
	later.memory = now->memory - left->memory;
	later.disk = now->disk - left->disk;
	INSTR_TIME_ACCUM_DIFF(later.merge_time, now->merge_time, left->merge_time);
	SpinLockAcquire(&shared->mutex);
	gh_counts_add(&shared->totals, &later);
	SpinLockRelease(&shared->mutex);
}

/* Begins a participant's part; false: all is done. */
bool
gh_aggregate_attach(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);

	member->merges = false;
	member->writes = member->fragment.number;
	node->fragment.memory_limit = gh_aggregate_memory_limit();
	return gh_fragment_attach(&node->fragment);
}

/*
 * This participant has read its part.  False: nothing comes out of the node here.  Else groups do: those of
 * all, for it was the last one, or parts that it takes.
 */
bool
gh_aggregate_hand_over(GhAggregateNode *node)
{
	GhAggregateShared *shared = shared_of(node);
	bool		has_left_file;

	if (member_of(node)->file == NULL && gh_fragment_is_last(&node->fragment, false) &&
		pg_atomic_read_u32(&shared->parted) == 0)
	{
		merge_groups(node);
		return true;
	}
	Assert(node->nkeys > 0 || member_of(node)->file == NULL);
	leave_groups(node);
	has_left_file = shared->left[member_of(node)->writes].has_file;
	if (gh_fragment_is_last(&node->fragment, true))
	{
		/* what it has left comes back as everybody else's does */
		if (pg_atomic_read_u32(&shared->parted) == 0)
		{
			merge_groups(node);
			return true;
		}
		open_parts(node);
		take_parts(node);
		return true;
	}
	if (!has_left_file || regroups_alone(node))
		return false;
	await_parts(node);
	if (shared->by_last)
		return false;
	take_parts(node);
	return true;
}
