/*
 * parallel.c
 *		A GpuHashJoin that all participants of a parallel query run together: shared
 *		state, phases, and who leaves when.
 *
 * Each participant stores its part of the inner side in chunks of dynamic shared
 * memory.  When all have, one makes a table for all the rows, each enters its own,
 * and each probes for its part of the outer side.  Rows that do not fit in memory go
 * into files by partition, of both sides, and then each participant takes partitions
 * and joins them by itself: parallel_spill.c.
 *
 * Phases follow one another at a barrier (parallel.h).  There is no deadlock because
 * a participant waits only while it has returned nothing: whoever it waits for is
 * reading an input, making the table, or waiting, too; none of them can be blocked by
 * a full queue of result rows.  A participant that comes late does what is left, and one
 * that ends early leaves the barrier.  One that fails does not: the leader learns of
 * it where it waits, and ends the query.
 *
 * The leader's DSM segment and what belongs to it, rows, files and the CPU engine's
 * table, go with the query.  A table on a device does not: the last participant to
 * leave gives it back, and after an error the last process to unmap the segment.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/wait_event.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/parallel.h"
#include "service/placement.h"

/* -------------------------------------------------------- shared memory */

/* EstimateDSMCustomScan */
Size
gh_parallel_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	(void) node;
	return add_size(offsetof(GhShared, member),
					mul_size(sizeof(GhSharedMember), pcxt->nworkers + 1));
}

/* What a run begins with. */
static void
init_run(GhShared *shared)
{
	BarrierInit(&shared->barrier, 0);
	pg_atomic_write_u32(&shared->last_chunk, 0);
	pg_atomic_write_u64(&shared->row_bytes, 0);
	pg_atomic_write_u64(&shared->row_bytes_peak, 0);
	pg_atomic_write_u64(&shared->nkeys, 0);
	pg_atomic_write_u64(&shared->probed_bytes, 0);
	pg_atomic_write_u32(&shared->has_nulls, 0);
	pg_atomic_write_u32(&shared->of_pages, GH_OF_PAGES_UNDECIDED);
	pg_atomic_write_u32(&shared->unprobed, 0);
	pg_atomic_write_u32(&shared->own_chunks, 0);
	pg_atomic_write_u32(&shared->failed, 0);
	pg_atomic_write_u32(&shared->refused, 0);
	pg_atomic_write_u32(&shared->nparts, 0);
	pg_atomic_write_u32(&shared->next_part, 0);
	shared->engine = GH_SHARED_NO_TABLE;
	shared->cpu_root = 0;
	shared->enter = shared->probed = shared->carries = shared->narrow = false;
	shared->absent = 0;
	shared->rescue = GH_RESCUE_NONE;
	shared->skip_unmatched = false;
	memset(shared->has_rows, 0, sizeof(shared->has_rows));
	for (int i = 0; i < shared->nmembers; i++)
		shared->member[i].nchunks = 0;
}

/* A process unmaps the segment, after an error too: see above. */
static void
leave_segment(dsm_segment *segment, Datum arg)
{
	GhShared   *shared = (GhShared *) DatumGetPointer(arg);

	(void) segment;
	if (pg_atomic_sub_fetch_u32(&shared->users, 1) == 0)
		gh_shared_table_release(shared);
}

static void
use_shared(GhJoinState *js, GhShared *shared, dsm_segment *segment, int member)
{
	struct GhParallel *parallel = MemoryContextAllocZero(js->context, sizeof(*parallel));

	parallel->shared = shared;
	parallel->segment = segment;
	parallel->area = js->css.ss.ps.state->es_query_dsa;
	parallel->member = member;
	parallel->is_leader = member == 0;
	parallel->scope.database = MyDatabaseId;
	js->parallel = parallel;
	/* of a run that was shut down before a rescan */
	js->engine = NULL;
	js->inner_rows = 0;
	js->partitions_peak = 1;
	pg_atomic_fetch_add_u32(&shared->users, 1);
	on_dsm_detach(segment, leave_segment, PointerGetDatum(shared));
}

/* -------------------------------------------------- what EXPLAIN shows */

/* Adds what this participant did to the totals. */
static void
count_participant(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;
	GhJoinTotals *totals = &shared->totals;

	if (parallel->counted)
		return;
	parallel->counted = true;
	/* a table on a device is asked */
	if (js->css.ss.ps.state->es_instrument != 0)
		gh_join_take_stats(js);
	SpinLockAcquire(&shared->mutex);
	totals->inner_rows += js->inner_rows;
	totals->nbatches += js->nbatches;
	totals->removed_by_join_filter += js->removed_by_join_filter;
	totals->bytes_written += js->spill.bytes_written;
	if (parallel->in_files)
		totals->private_bytes += js->store.bytes_peak;
	totals->table_bytes = Max(totals->table_bytes, js->table_bytes_peak);
	totals->built = totals->built || js->built;
	totals->carried = totals->carried || js->carried;
	totals->partitions = Max(totals->partitions, js->partitions_peak);
	INSTR_TIME_ADD(totals->source_time, js->source_time);
	INSTR_TIME_ADD(totals->build_time, js->build_time);
	INSTR_TIME_ADD(totals->wait_time, js->wait_time);
	if (js->stats.writes + js->stats.reads >= totals->stats.writes + totals->stats.reads)
		totals->stats = js->stats;
	if (js->fallback_reason[0] != '\0' && shared->fallback_reason[0] == '\0')
		strlcpy(shared->fallback_reason, js->fallback_reason, GH_MESSAGE_SIZE);
	if (js->engine != NULL && (parallel->in_files || !js->engine->on_device))
		shared->engine = js->engine->on_device ? GH_SHARED_SERVICE : GH_SHARED_CPU;
	if (js->engine_reason != NULL)
		strlcpy(shared->engine_reason, js->engine_reason, GH_MESSAGE_SIZE);
	SpinLockRelease(&shared->mutex);
}

/* In the leader: what is known so far of all participants takes the place of its own. */
static void
take_totals(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;
	GhJoinTotals *totals = &shared->totals;
	uint32		nparts = pg_atomic_read_u32(&shared->nparts);

	SpinLockAcquire(&shared->mutex);
	js->inner_rows = totals->inner_rows;
	js->nbatches = totals->nbatches;
	js->removed_by_join_filter = totals->removed_by_join_filter;
	js->spill.bytes_written = totals->bytes_written;
	js->store.bytes_peak = Max(totals->private_bytes, pg_atomic_read_u64(&shared->row_bytes_peak));
	js->table_bytes_peak = totals->table_bytes;
	js->carried = totals->carried;
	js->partitions_peak = Max(nparts, 1) * Max(totals->partitions, 1);
	js->source_time = totals->source_time;
	js->build_time = totals->build_time;
	js->wait_time = totals->wait_time;
	js->stats = totals->stats;
	strlcpy(js->fallback_reason, shared->fallback_reason, GH_MESSAGE_SIZE);
	strlcpy(parallel->engine_reason, shared->engine_reason, GH_MESSAGE_SIZE);
	js->engine_reason = parallel->engine_reason[0] != '\0' ? parallel->engine_reason : NULL;
	if (shared->engine != GH_SHARED_NO_TABLE)
		js->engine = shared->engine == GH_SHARED_SERVICE ? gh_service_engine() : gh_cpu_engine();
	SpinLockRelease(&shared->mutex);
	js->ran_parallel = totals->built;
}

/*
 * The leader's segment goes, when all workers have left: under a LIMIT they may do so
 * after the leader.
 */
static void
keep_totals(dsm_segment *segment, Datum arg)
{
	GhJoinState *js = (GhJoinState *) DatumGetPointer(arg);

	(void) segment;
	take_totals(js);
	js->parallel = NULL;
}

/* The node's memory goes; touches nothing shared, which may be gone already. */
void
gh_parallel_forget(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;

	if (parallel != NULL && parallel->is_leader)
		cancel_on_dsm_detach(parallel->segment, keep_totals, PointerGetDatum(js));
	js->parallel = NULL;
}

/* ------------------------------------------------------- start and end */

/*
 * InitializeDSMCustomScan, in the leader.  Without a segment there are no workers, and
 * the leader joins alone.
 */
void
gh_parallel_init(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GhJoinState *js = (GhJoinState *) node;
	GhShared   *shared = coordinate;

	if (pcxt->seg == NULL)
		return;
	memset(shared, 0, offsetof(GhShared, member));
	shared->segment = dsm_segment_handle(pcxt->seg);
	shared->nmembers = pcxt->nworkers + 1;
	pg_atomic_init_u32(&shared->users, 0);
	pg_atomic_init_u32(&shared->last_chunk, 0);
	pg_atomic_init_u64(&shared->row_bytes, 0);
	pg_atomic_init_u64(&shared->row_bytes_peak, 0);
	pg_atomic_init_u64(&shared->nkeys, 0);
	pg_atomic_init_u64(&shared->probed_bytes, 0);
	pg_atomic_init_u32(&shared->has_nulls, 0);
	pg_atomic_init_u32(&shared->of_pages, GH_OF_PAGES_UNDECIDED);
	pg_atomic_init_u32(&shared->unprobed, 0);
	pg_atomic_init_u32(&shared->own_chunks, 0);
	pg_atomic_init_u64(&shared->device_root, 0);
	pg_atomic_init_u32(&shared->failed, 0);
	pg_atomic_init_u32(&shared->refused, 0);
	pg_atomic_init_u32(&shared->nparts, 0);
	pg_atomic_init_u32(&shared->next_part, 0);
	LWLockInitialize(&shared->lock, LWTRANCHE_PARALLEL_HASH_JOIN);
	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->rescued);
	ConditionVariableInit(&shared->decided);
	SharedFileSetInit(&shared->files, pcxt->seg);
	init_run(shared);
	/* of an earlier run, which may have had no segment, under a LIMIT that is rescanned */
	gh_forget_batches(js);
	gh_join_drop_inner(js);
	use_shared(js, shared, pcxt->seg, 0);
	on_dsm_detach(pcxt->seg, keep_totals, PointerGetDatum(js));
}

/* InitializeWorkerCustomScan */
void
gh_parallel_init_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GhJoinState *js = (GhJoinState *) node;
	GhShared   *shared = coordinate;
	dsm_segment *segment = dsm_find_mapping(shared->segment);

	(void) toc;
	SharedFileSetAttach(&shared->files, segment);
	use_shared(js, shared, segment, ParallelWorkerNumber + 1);
}

/*
 * Leaves the barrier.  Whoever leaves before it has probed with all its outer rows is
 * no longer asked for rows, and so are the others: the plan stops, and rows without a
 * match cannot be told any more.
 */
static void
leave_barrier(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;

	if (!parallel->attached)
		return;
	parallel->attached = false;
	if (js->phase == GH_JOIN_FETCH || js->phase == GH_JOIN_EMIT)
		shared->skip_unmatched = true;
	/* phase PROBE ends with the last one; what comes after stays */
	if (BarrierPhase(&shared->barrier) < GH_SHARED_DONE ?
		BarrierArriveAndDetach(&shared->barrier) : BarrierDetach(&shared->barrier))
		gh_shared_table_release(shared);
}

/* Gives up what this process has of a run: its handle on the table, its view of the rows. */
static void
leave_run(GhJoinState *js)
{
	Size		bytes_peak = js->store.bytes_peak;

	if (js->table_shared)
		gh_join_close_table(js);
	else
		gh_join_drop_table(js);
	js->table_shared = false;
	gh_leave_transfer(js);
	gh_parallel_forget_rows(js);
	gh_row_store_init(&js->store, js->context, &js->columns[GH_INNER], js->memory_limit);
	js->store.bytes_peak = bytes_peak;
	gh_spill_reset(&js->spill);
	gh_parallel_close_files(js);
	gh_probed_forget_rows(js);
	js->built = false;
}

/*
 * ShutdownCustomScan: no more rows are wanted.  A cursor's plan is shut down after each
 * fetch, but then never runs in parallel.
 */
void
gh_parallel_shutdown(CustomScanState *node)
{
	GhJoinState *js = (GhJoinState *) node;

	if (js->parallel == NULL || js->parallel->left)
		return;
	gh_forget_batches(js);
	count_participant(js);
	leave_barrier(js);
	leave_run(js);
	js->parallel->left = true;
	js->phase = GH_JOIN_DONE;
	if (js->parallel->is_leader)
		take_totals(js);
}

/* The node is to run again; gh_parallel_reinit does the shared part, before or after. */
void
gh_parallel_rescan(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;

	leave_run(js);
	js->engine = NULL;
	js->inner_rows = 0;
	parallel->attached = false;
	parallel->in_files = false;
	parallel->bytes_counted = 0;
	parallel->keys = parallel->keys_counted = 0;
	parallel->keyless_rows = 0;
	parallel->blocks_seen = 0;
	gh_probed_forget_pages(js);
}

/* ReInitializeDSMCustomScan, in the leader: the workers of the last run have left. */
void
gh_parallel_reinit(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GhJoinState *js = (GhJoinState *) node;
	GhShared   *shared = coordinate;
	struct GhParallel *parallel = js->parallel;

	(void) pcxt;
	if (parallel == NULL)
		return;
	/* the leader may have stopped with one in flight, and its own rescan comes later */
	gh_forget_batches(js);
	gh_parallel_rescan(js);
	for (int i = 0; i < shared->nmembers; i++)
	{
		GhSharedMember *member = &shared->member[i];
		GhRowChunk *chunks;

		if (member->nchunks == 0)
			continue;
		chunks = dsa_get_address(parallel->area, member->chunks);
		for (uint32 chunk = 0; chunk < member->nchunks; chunk++)
			dsa_free(parallel->area, chunks[chunk].shared);
		dsa_free(parallel->area, member->chunks);
	}
	gh_shared_table_release(shared);
	gh_parallel_free_blocks(js);
	SharedFileSetDeleteAll(&shared->files);
	shared->totals.inner_rows = 0;
	init_run(shared);
}

/* -------------------------------------------------------------- phases */

/* Waits for all participants to end the phase; true for one of them. */
static bool
end_phase(GhJoinState *js)
{
	Barrier    *barrier = &js->parallel->shared->barrier;
	uint32		event;

	switch ((GhSharedPhase) BarrierPhase(barrier))
	{
		case GH_SHARED_ROWS:
			event = WAIT_EVENT_HASH_BUILD_HASH_INNER;
			break;
		case GH_SHARED_ENTER:
		case GH_SHARED_ENTER_2:
		case GH_SHARED_ENTER_3:
			event = WAIT_EVENT_HASH_BUILD_HASH_OUTER;
			break;
		default:
			event = WAIT_EVENT_HASH_BUILD_ALLOCATE;
			break;
	}
	return BarrierArriveAndWait(barrier, event);
}

static void
read_rows(GhJoinState *js)
{
	gh_parallel_rows_start(js);
	gh_join_read_inner(js);
	gh_parallel_rows_end(js);
}

/* Phases TABLE and ENTER, and the later ones that take their place. */
static void
do_table(GhJoinState *js, bool elected, void (*make) (GhJoinState *js))
{
	if (pg_atomic_read_u32(&js->parallel->shared->nparts) != 0)
		gh_parallel_write_rest(js);
	else if (elected)
		make(js);
}

static void
do_enter(GhJoinState *js)
{
	if (pg_atomic_read_u32(&js->parallel->shared->nparts) != 0)
		gh_parallel_write_outer(js);
	else
		gh_shared_table_enter(js);
}

/* Stores the rows that were to be in a table as they came. */
static void
take_rows_back(GhJoinState *js)
{
	gh_parallel_rows_start(js);
	gh_probed_take_rows_back(js);
	gh_parallel_rows_end(js);
}

/* One of the last phases, where pages were read, or rows as they came, and that came to nothing. */
static void
do_phase_again(GhJoinState *js, GhSharedPhase phase, bool elected)
{
	if (phase == GH_SHARED_ENTER_2 && gh_shared_probed_gave_rows_up(js))
		take_rows_back(js);
	else if (phase == GH_SHARED_ENTER_2)
	{
		/* a copy that others could not take */
		gh_probed_drop(js);
		js->copy_use.used = false;
		gh_child_rewind(gh_child(js, GH_INNER));
		js->inner_rows = 0;
		read_rows(js);
	}
	else if (phase == GH_SHARED_TABLE_3)
		do_table(js, elected, gh_shared_table_make_last);
	else if (phase == GH_SHARED_ENTER_3)
		do_enter(js);
}

static void
do_phase(GhJoinState *js, GhSharedPhase phase, bool elected)
{
	switch (phase)
	{
		case GH_SHARED_ROWS:
			if (!gh_shared_probed_needs_no_rows(js))
				read_rows(js);
			break;
		case GH_SHARED_TABLE:
			do_table(js, elected, gh_shared_table_make);
			break;
		case GH_SHARED_ENTER:
			do_enter(js);
			break;
		case GH_SHARED_TABLE_2:
		case GH_SHARED_TABLE_3:
		case GH_SHARED_TABLE_4:
			if (elected)
				gh_shared_table_make_again(js);
			break;
		default:
			gh_shared_table_enter(js);
			break;
	}
}

/*
 * Phases ROWS to TABLE_4, from the one that there is.  Each of them ends for all
 * participants at once, so that whoever was there for one does the next one, too.
 */
static void
build_together(GhJoinState *js, GhSharedPhase phase)
{
	bool		elected = false;

	for (; phase < GH_SHARED_PROBE; phase++)
	{
		if (phase > GH_SHARED_TABLE_2 && gh_shared_probed_gave_up(js))
			do_phase_again(js, phase, elected);
		else
			do_phase(js, phase, elected);
		elected = end_phase(js);
	}
}

/* Takes part in the run, wherever that is.  Returns the next phase of this process. */
GhJoinPhase
gh_parallel_start(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;
	GhSharedPhase phase = (GhSharedPhase) BarrierAttach(&shared->barrier);
	instr_time	start;

	parallel->attached = true;
	js->built = true;
	if (phase == GH_SHARED_DONE)
	{
		leave_barrier(js);
		return GH_JOIN_DONE;
	}
	gh_time_start(js, &start);
	build_together(js, phase);
	if (pg_atomic_read_u32(&shared->nparts) != 0)
		parallel->in_files = true;
	else
		gh_shared_table_open(js);
	gh_time_stop(js, &js->build_time, start);
	/* it came late, and the copy is no more: others have it */
	if (!parallel->in_files && gh_shared_probed_is_copy(js) && js->probed->table == NULL)
	{
		leave_barrier(js);
		return GH_JOIN_DONE;
	}
	if (parallel->in_files)
	{
		/* of a table for the node above that came to nothing */
		js->engine = NULL;
		gh_parallel_use_private_rows(js);
		return gh_next_partition(js) ? GH_JOIN_FETCH : GH_JOIN_DONE;
	}
	if (js->fill_outer || js->table != NULL || (gh_is_probed_above(js) && js->probed->table != NULL))
		return GH_JOIN_FETCH;
	/* no outer row can have a match */
	gh_emit_unmatched_start(js);
	return gh_parallel_probed(js) ? GH_JOIN_UNMATCHED : GH_JOIN_DONE;
}

/*
 * This process has used up its outer rows.  Whether it is to return inner rows
 * without a match: with a common table the last one does, when all others have probed.
 */
bool
gh_parallel_probed(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;

	if (parallel == NULL || parallel->in_files)
		return true;
	js->phase = GH_JOIN_UNMATCHED;
	if (js->fill_inner)
	{
		parallel->attached = BarrierArriveAndDetachExceptLast(&parallel->shared->barrier);
		if (parallel->attached && !parallel->shared->skip_unmatched)
			return true;
	}
	leave_barrier(js);
	return false;
}

bool
gh_parallel_in_files(const GhJoinState *js)
{
	return js->parallel->in_files;
}
