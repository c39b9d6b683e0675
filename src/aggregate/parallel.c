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
#include "utils/dsa.h"
#include "utils/memutils.h"

#include "aggregate/exec.h"
#include "fragment/parallel.h"

/* What a participant left. */
typedef struct GhSharedGroups
{
	dsa_pointer records;		/* InvalidDsaPointer: none */
	Size		bytes;
	bool		has_file;
} GhSharedGroups;

typedef struct GhAggregateShared
{
	GhFragmentShared fragment;	/* must be first */
	SharedFileSet files;
	GhSharedGroups left[FLEXIBLE_ARRAY_MEMBER];	/* by participant */
} GhAggregateShared;

typedef struct GhAggregateMember
{
	GhFragmentMember fragment;	/* must be first */
	BufFile    *file;			/* what this participant leaves; NULL: no file */
	GhRecordBuffer left;		/* or is about to leave in shared memory: */
	Size		left_bytes;
	bool		merges;			/* it is the last one */
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
					mul_size(sizeof(GhSharedGroups), pcxt->nworkers + 1));
}

static void
init_run(GhAggregateShared *shared)
{
	for (int i = 0; i < shared->fragment.nmembers; i++)
	{
		shared->left[i].records = InvalidDsaPointer;
		shared->left[i].bytes = 0;
		shared->left[i].has_file = false;
	}
}

static GhFragmentMember *
make_member(CustomScanState *css)
{
	GhAggregateMember *member = MemoryContextAllocZero(css->ss.ps.state->es_query_cxt, sizeof(GhAggregateMember));

	return &member->fragment;
}

/* InitializeDSMCustomScan, in the leader.  Without a segment there are no workers. */
void
gh_aggregate_init_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	GhAggregateShared *shared = coordinate;

	if (pcxt->seg == NULL)
		return;
	SharedFileSetInit(&shared->files, pcxt->seg);
	gh_fragment_init_dsm((GhFragment *) css, pcxt, &shared->fragment, make_member(css));
	init_run(shared);
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

/* GhPutRecord */
static void
write_record(void *arg, const char *record, Size size)
{
	GhAggregateNode *node = arg;

	BufFileWrite(member_of(node)->file, unconstify(char *, record), size);
	node->fragment.counts.disk += size;
}

static void
open_file(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);
	MemoryContext saved = MemoryContextSwitchTo(node->fragment.css.ss.ps.state->es_query_cxt);
	char		name[MAXPGPATH];

	file_name(name, member->fragment.number);
	member->file = BufFileCreateFileSet(&shared_of(node)->files.fs, name);
	MemoryContextSwitchTo(saved);
}

/* What was written is forgotten. */
void
gh_aggregate_drop_file(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);
	char		name[MAXPGPATH];

	if (member->file == NULL)
		return;
	BufFileClose(member->file);
	member->file = NULL;
	file_name(name, member->fragment.number);
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
	if (member_of(node)->file == NULL)
		open_file(node);
	gh_aggregate_put_groups(node, write_record, node);
	return true;
}

/* GhPutRecord, of one that is left in shared memory if all are small enough together. */
static void
leave_record(void *arg, const char *record, Size size)
{
	GhAggregateNode *node = arg;
	GhAggregateMember *member = member_of(node);

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
	GhAggregateMember *member = member_of(node);
	GhSharedGroups *left = &shared_of(node)->left[member->fragment.number];

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
		dsa_area   *area = node->fragment.css.ss.ps.state->es_query_dsa;

		left->records = dsa_allocate(area, member->left_bytes);
		left->bytes = member->left_bytes;
		memcpy(dsa_get_address(area, left->records), member->left.data, left->bytes);
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
	file = BufFileOpenFileSet(&shared_of(node)->files.fs, name, O_RDONLY, false);
	while ((size = gh_records_read(&buffer, file)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		gh_groups_merge_records(node->groups, buffer.data, size);
		gh_aggregate_keep_within_memory(&node->fragment);
	}
	if (buffer.data != NULL)
		pfree(buffer.data);
	BufFileClose(file);
}

static void
merge_groups(GhAggregateNode *node)
{
	GhAggregateShared *shared = shared_of(node);
	instr_time	clock = {0};

	gh_fragment_clock(&node->fragment, NULL, &clock);
	/* the others have given theirs back */
	node->fragment.memory_limit *= shared->fragment.started;
	for (int i = 0; i < shared->fragment.nmembers; i++)
	{
		const GhSharedGroups *left = &shared->left[i];

		if (DsaPointerIsValid(left->records))
			gh_groups_merge_records(node->groups,
									dsa_get_address(node->fragment.css.ss.ps.state->es_query_dsa, left->records),
									left->bytes);
		if (left->has_file)
			merge_file(node, i);
		gh_aggregate_keep_within_memory(&node->fragment);
	}
	gh_fragment_clock(&node->fragment, &node->fragment.counts.merge_time, &clock);
}

/* Begins a participant's part; false: all is done. */
bool
gh_aggregate_attach(GhAggregateNode *node)
{
	member_of(node)->merges = false;
	node->fragment.memory_limit = gh_aggregate_memory_limit();
	return gh_fragment_attach(&node->fragment);
}

/*
 * This participant has read its part.  True: it was the last one, and has the groups of all;
 * else it has left them.
 */
bool
gh_aggregate_hand_over(GhAggregateNode *node)
{
	GhAggregateMember *member = member_of(node);

	member->merges = member->file == NULL && gh_fragment_is_last(&node->fragment, false);
	if (!member->merges)
	{
		leave_groups(node);
		/* what it has left comes back as everybody else's does */
		member->merges = gh_fragment_is_last(&node->fragment, true);
	}
	if (member->merges)
		merge_groups(node);
	return member->merges;
}
