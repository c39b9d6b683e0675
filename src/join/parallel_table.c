/*
 * parallel_table.c
 *		The table that all participants of a parallel join have: on a device of the
 *		service, or on the CPU engine in dynamic shared memory.
 *
 * One participant makes it, empty and large enough, and each attaches it by its root
 * and enters its own rows.
 *
 * When a device fails while rows are being entered, nobody follows a link yet: the
 * participants make the table again on the CPU engine, together.  When it fails while
 * the table is probed, others may be walking chains, so no link may change.  Then one
 * participant makes a table of the chains as they are: it enters just the rows that no
 * other row links to.  Its links must all be there for that, and are: rows were entered
 * before the first probe.  Who fails meanwhile waits for it.  It is busy with memory
 * alone, so that the wait ends.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "gpuhash.h"
#include "guard.h"
#include "join/join.h"
#include "join/parallel.h"
#include "service/placement.h"

/* Rows entered at a time. */
#define GH_RESCUE_BATCH 4096

/* ------------------------------------- the CPU engine's memory, shared */

/* Stands before each block. */
typedef struct GhBlock
{
	dsa_pointer start;			/* as it was allocated */
	GhRef		next;
} GhBlock;

StaticAssertDecl(sizeof(GhBlock) <= GH_HOST_ALIGNMENT, "a block's header fits before it");

typedef struct BlockWork
{
	dsa_area   *area;
	Size		bytes;
	dsa_pointer start;
	GhRef		ref;			/* 0: there is none to be had */
} BlockWork;

static void *
block_address(void *ctx, GhRef ref)
{
	struct GhParallel *parallel = ctx;

	return dsa_get_address(parallel->area, (dsa_pointer) ref);
}

static GhBlock *
block_of(struct GhParallel *parallel, GhRef ref)
{
	return (GhBlock *) block_address(parallel, ref) - 1;
}

static void
alloc_work(void *arg)
{
	BlockWork  *work = arg;

	work->ref = gh_area_alloc(work->area, work->bytes, sizeof(GhBlock), &work->start);
}

/*
 * An engine must see no error thrown, so the allocation is guarded.  What it leaves to
 * the resource owner goes when the join ends with an error, which it does without the
 * memory.
 */
static GhRef
block_alloc(void *ctx, size_t bytes)
{
	struct GhParallel *parallel = ctx;
	BlockWork	work = {.area = parallel->area};
	GhBlock    *block;

	if (parallel->abandoned || bytes > MaxAllocHugeSize - 2 * GH_HOST_ALIGNMENT)
		return 0;
	work.bytes = bytes + 2 * GH_HOST_ALIGNMENT;
	if (!gh_run_guarded(CurrentResourceOwner, alloc_work, &work) || work.ref == 0)
		return 0;
	block = block_of(parallel, work.ref);
	block->start = work.start;
	block->next = parallel->shared->blocks;
	parallel->shared->blocks = work.ref;
	parallel->shared->blocks_changed++;
	return work.ref;
}

static void
free_work(void *arg)
{
	BlockWork  *work = arg;

	dsa_free(work->area, work->start);
}

static void
block_free(void *ctx, GhRef ref)
{
	struct GhParallel *parallel = ctx;
	GhRef	   *at = &parallel->shared->blocks;
	BlockWork	work = {.area = parallel->area};

	if (ref == 0 || parallel->abandoned)
		return;
	while (*at != ref)
		at = &block_of(parallel, *at)->next;
	*at = block_of(parallel, ref)->next;
	work.start = block_of(parallel, ref)->start;
	(void) gh_run_guarded(CurrentResourceOwner, free_work, &work);
}

/* Maps all blocks in this process.  May throw. */
static void
map_blocks(struct GhParallel *parallel)
{
	for (GhRef ref = parallel->shared->blocks; ref != 0; ref = block_of(parallel, ref)->next)
		continue;
	parallel->blocks_seen = parallel->shared->blocks_changed;
}

/*
 * Blocks that another process has made since are mapped here: the engine is about to
 * look at them.  Where that fails, it throws, with nothing begun; the join ends
 * with it, and the table.
 */
static void
table_lock(void *ctx, GhLockMode mode)
{
	struct GhParallel *parallel = ctx;
	GhShared   *shared = parallel->shared;

	if (parallel->abandoned)
		return;
	LWLockAcquire(&shared->lock, mode == GH_LOCK_SHARED ? LW_SHARED : LW_EXCLUSIVE);
	if (parallel->blocks_seen != shared->blocks_changed)
		map_blocks(parallel);
}

static void
table_unlock(void *ctx)
{
	struct GhParallel *parallel = ctx;

	if (parallel->abandoned)
		return;
	LWLockRelease(&parallel->shared->lock);
}

/* What js->engine gets for the common table, in place of what is a process's own. */
void
gh_parallel_host(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhHost	   *host = &js->host;

	if (js->engine->shares_tables)
	{
		host->ctx = &parallel->scope;
		return;
	}
	host->ctx = parallel;
	host->alloc = block_alloc;
	host->free = block_free;
	host->address = block_address;
	host->lock = table_lock;
	host->unlock = table_unlock;
}

/* After an error, which may have come out of one of these: what goes now asks nothing of them. */
void
gh_parallel_abandon(GhJoinState *js)
{
	js->parallel->abandoned = true;
}

/* Frees the table of an earlier run. */
void
gh_parallel_free_blocks(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;

	while (parallel->shared->blocks != 0)
		block_free(parallel, parallel->shared->blocks);
}

/* ------------------------------------------------------ making, entering */

/*
 * The engine for this join.  Without the service no process can use the GPU of
 * another one.
 */
const GhEngine *
gh_parallel_choose_engine(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	Plan	   *outer = gh_child(js, GH_OUTER)->plan;

	if (gh_service_enabled())
		return gh_choose_engine(pg_atomic_read_u64(&shared->nkeys) +
								outer->plan_rows * shared->nmembers, &js->engine_reason);
	js->engine_reason = gh_engine_setting == GH_ENGINE_CPU ? NULL : "parallel worker";
	return gh_cpu_engine();
}

/* Gives the table on the device back; once, whoever asks. */
void
gh_shared_table_release(GhShared *shared)
{
	gh_service_table_release(pg_atomic_exchange_u64(&shared->device_root, 0));
}

static void
publish_root(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	GhRef		root = js->engine->table_root(js->table);

	if (js->engine->on_device)
	{
		pg_atomic_write_u64(&shared->device_root, root);
		shared->engine = GH_SHARED_SERVICE;
	}
	else
	{
		shared->cpu_root = root;
		shared->engine = GH_SHARED_CPU;
	}
}

static void
publish_carry(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	shared->carries = js->carry.in_use;
	shared->narrow = js->carry.narrow;
	shared->absent = js->carry.absent;
}

/* What EXPLAIN says of it is the first failure. */
static void
note_failure(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	SpinLockAcquire(&shared->mutex);
	if (shared->fallback_reason[0] == '\0')
		strlcpy(shared->fallback_reason, js->fallback_reason, GH_MESSAGE_SIZE);
	SpinLockRelease(&shared->mutex);
}

static void
open_on_cpu(GhJoinState *js, uint64 keys)
{
	GhError		error;

	gh_leave_transfer(js);
	js->engine = gh_cpu_engine();
	if (gh_join_open_table(js, keys, &error) != GH_OK)
		gh_report_error(&error, "join through the hash table");
}

/* Rows with a key that all participants have stored. */
uint64
gh_parallel_keys(const GhJoinState *js)
{
	return pg_atomic_read_u64(&js->parallel->shared->nkeys);
}

/*
 * A table of the join's own that cannot come to nothing, where there is a row with a key: in place of one for
 * the node above, by one participant.
 */
void
gh_shared_table_make_last(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;

	if (gh_parallel_keys(js) == 0)
		return;
	gh_carry_start(js);
	gh_carry_stop(js);
	publish_carry(js);
	js->table_shared = true;
	open_on_cpu(js, gh_parallel_keys(js));
	publish_root(js);
	shared->enter = true;
}

/* Phase TABLE, by one participant.  No rows with a key: no table. */
void
gh_shared_table_make(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	uint64		keys = pg_atomic_read_u64(&shared->nkeys);
	GhError		error;

	if (gh_shared_probed_make(js) || keys == 0)
		return;
	gh_carry_start(js);
	publish_carry(js);
	shared->enter = true;
	js->engine = gh_parallel_choose_engine(js);
	js->table_shared = true;
	if (gh_join_open_table(js, keys, &error) != GH_OK)
	{
		gh_join_report_failure(js, &error);
		note_failure(js);
		open_on_cpu(js, keys);
	}
	publish_root(js);
}

/* This process's handle on the common table, unless it has one. */
static GhStatus
attach_table(GhJoinState *js, GhError *error)
{
	struct GhParallel *parallel = js->parallel;
	bool		on_device = js->engine->on_device;
	GhRef		root = on_device ? pg_atomic_read_u64(&parallel->shared->device_root) :
		parallel->shared->cpu_root;
	GhStatus	status;

	if (js->table != NULL)
		return GH_OK;
	js->table_shared = true;
	if (on_device && !gh_take_transfer(js))
		return gh_no_buffers(error);
	gh_host_init(&js->host, js->context);
	gh_parallel_host(js);
	if (!on_device)
	{
		table_lock(parallel, GH_LOCK_SHARED);
		table_unlock(parallel);
	}
	while ((status = js->engine->table_attach(&js->host, root, &js->table, error)) == GH_STOPPED)
		gh_serve_interrupt();
	if (status != GH_OK)
		js->table = NULL;
	return status;
}

static const GhEngine *
shared_engine(const GhShared *shared)
{
	return shared->engine == GH_SHARED_SERVICE ? gh_service_engine() : gh_cpu_engine();
}

/* What the common table's entries are. */
static void
take_carry(GhJoinState *js)
{
	const GhShared *shared = js->parallel->shared;

	gh_carry_use(js, shared->carries, shared->narrow, shared->absent);
}

/* A device failed while rows were entered: they will be entered on the CPU engine. */
static void
report_loss(GhJoinState *js, const GhError *error)
{
	gh_join_report_failure(js, error);
	note_failure(js);
	pg_atomic_write_u32(&js->parallel->shared->failed, 1);
}

/* Phases ENTER.  Links are written anew. */
void
gh_shared_table_enter(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	GhStatus	status;
	GhError		error;

	if (!shared->enter)
		return;
	if (shared->probed)
	{
		gh_shared_probed_enter(js);
		return;
	}
	js->engine = shared_engine(shared);
	/* of an earlier phase, on a device; the handle may have failed, with the buffers there */
	if (js->table != NULL && js->table->engine != js->engine)
		gh_join_close_table(js);
	if (js->transfer_engine != js->engine)
		gh_leave_transfer(js);
	if (js->store.nkeys == 0)
		return;
	take_carry(js);
	if (!js->carry.in_use || js->engine->on_device)
		gh_parallel_share_rows(js);
	status = attach_table(js, &error);
	if (status == GH_OK)
		status = gh_join_enter_rows(js, &error);
	if (status != GH_OK)
		report_loss(js, &error);
	else if (js->carry.refused)
		pg_atomic_write_u32(&shared->refused, 1);
}

/* Empties the common table, or reports that the device failed. */
static void
empty_table(GhJoinState *js)
{
	GhError		error;
	GhStatus	status;

	js->engine = shared_engine(js->parallel->shared);
	status = attach_table(js, &error);
	if (status == GH_OK)
		status = gh_clear_table(js->table, &error);
	if (status != GH_OK)
		report_loss(js, &error);
}

/* Phases TABLE_2 to TABLE_4, by one participant. */
void
gh_shared_table_make_again(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	bool		refused = pg_atomic_exchange_u32(&shared->refused, 0) != 0;

	if (shared->probed)
	{
		gh_shared_probed_go_on(js, refused);
		return;
	}
	shared->enter = refused || pg_atomic_read_u32(&shared->failed) != 0;
	/* whoever makes a table knows what its entries are */
	take_carry(js);
	if (refused)
	{
		gh_carry_stop(js);
		publish_carry(js);
	}
	if (refused && pg_atomic_read_u32(&shared->failed) == 0)
		empty_table(js);
	if (pg_atomic_exchange_u32(&shared->failed, 0) != 0)
	{
		gh_join_close_table(js);
		gh_shared_table_release(shared);
		js->table_shared = true;
		open_on_cpu(js, pg_atomic_read_u64(&shared->nkeys));
		publish_root(js);
	}
}

/* -------------------------------------------------------------- probing */

/* Phase PROBE: all participants' rows, and the table. */
void
gh_shared_table_open(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	GhError		error;

	gh_parallel_map_rows(js);
	/* they are in the table of all, or stored, and are not asked for again */
	gh_probed_forget_rows(js);
	if (!gh_shared_probed_gave_up(js))
		gh_probed_tell_pages(js);
	if (shared->engine == GH_SHARED_NO_TABLE)
	{
		/* one that came to nothing was the CPU engine's: what this participant counts as it leaves must not bring others to it */
		js->engine = NULL;
		return;
	}
	if (shared->probed)
	{
		if (gh_shared_probed_is_copy(js))
		{
			(void) gh_shared_probed_take_copy(js);
			return;
		}
		if (!gh_is_probed_above(js))
			elog(ERROR, "participants of a hash join do not agree on who probes");
		gh_probed_attach(js, shared->cpu_root);
		return;
	}
	take_carry(js);
	js->carried = js->carry.in_use;
	if (js->table == NULL)
		js->engine = shared_engine(shared);
	if (attach_table(js, &error) != GH_OK)
		gh_join_fall_back(js, &error);
}

/* Marks the rows that others link to, by chunk number and offset: a bit for 8 bytes. */
static uint64 **
linked_rows(const GhRowStore *store, MemoryContext context)
{
	GhRowCursor cursor = {0};
	uint64	  **bits = MemoryContextAllocZero(context, sizeof(uint64 *) * store->max_bases);
	GhRow	   *row;

	for (uint32 i = 0; i < store->nchunks; i++)
		bits[store->chunks[i].number] =
			MemoryContextAllocExtended(context, (store->chunks[i].used / 512 + 1) * sizeof(uint64),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	while ((row = gh_row_store_next(store, &cursor)) != NULL)
	{
		GhRowRef	next = gh_row_next(row);

		CHECK_FOR_INTERRUPTS();
		if (next != 0)
			bits[next >> GH_REF_SHIFT][(uint32) next / 512] |= UINT64CONST(1) << (next / 8 % 64);
	}
	return bits;
}

static void
insert_heads(GhJoinState *js, const void *keys, const void *values, uint64 n)
{
	GhRequest	request = {0};

	request.op = GH_INSERT;
	request.count = n;
	request.keys = keys;
	request.values_in = values;
	if (gh_run_request(js->table, &request) != GH_OK)
		gh_report_error(&request.error, "join through the hash table");
}

/* A table on the CPU engine of the chains as they are. */
static void
make_of_chains(GhJoinState *js)
{
	const GhRowStore *store = &js->store;
	MemoryContext context = AllocSetContextCreate(js->context, "GpuHashJoin rescue",
												  ALLOCSET_DEFAULT_SIZES);
	uint64	  **linked = linked_rows(store, context);
	bool		narrow = js->carry.narrow;
	void	   *keys = MemoryContextAlloc(context, GH_RESCUE_BATCH * sizeof(uint64));
	void	   *values = MemoryContextAlloc(context, GH_RESCUE_BATCH * sizeof(uint64));
	uint64		n = 0;
	GhRowCursor cursor = {0};
	GhRow	   *row;

	open_on_cpu(js, pg_atomic_read_u64(&js->parallel->shared->nkeys));
	while ((row = gh_row_store_next(store, &cursor)) != NULL)
	{
		GhRowRef	ref = cursor.ref;
		uint64		value;

		CHECK_FOR_INTERRUPTS();
		if (!gh_row_has_key(row) ||
			(linked[ref >> GH_REF_SHIFT][(uint32) ref / 512] >> (ref / 8 % 64) & 1) != 0)
			continue;
		/* what the table that is lost had */
		if (!gh_table_value(js, row, ref, &value))
			elog(ERROR, "a row of a hash join is not what it was");
		gh_word_set(narrow, keys, n, row->key);
		gh_word_set(narrow, values, n, value);
		if (++n == GH_RESCUE_BATCH)
		{
			insert_heads(js, keys, values, n);
			n = 0;
		}
	}
	if (n > 0)
		insert_heads(js, keys, values, n);
	MemoryContextDelete(context);
}

/* Whether this process is the one to make the table. */
static bool
take_rescue(GhShared *shared)
{
	bool		first;

	SpinLockAcquire(&shared->mutex);
	first = shared->rescue == GH_RESCUE_NONE;
	if (first)
		shared->rescue = GH_RESCUE_MAKING;
	SpinLockRelease(&shared->mutex);
	return first;
}

static bool
rescue_is_ready(GhShared *shared)
{
	bool		ready;

	SpinLockAcquire(&shared->mutex);
	ready = shared->rescue == GH_RESCUE_READY;
	SpinLockRelease(&shared->mutex);
	return ready;
}

/*
 * Goes on without the device while the table is probed.  The failure was reported, the
 * handle is given back.  A maker that fails ends the query.
 */
void
gh_parallel_fall_back(GhJoinState *js)
{
	GhShared   *shared = js->parallel->shared;
	GhError		error;

	note_failure(js);
	gh_leave_transfer(js);
	if (take_rescue(shared))
	{
		make_of_chains(js);
		shared->cpu_root = js->engine->table_root(js->table);
		SpinLockAcquire(&shared->mutex);
		shared->rescue = GH_RESCUE_READY;
		SpinLockRelease(&shared->mutex);
		ConditionVariableBroadcast(&shared->rescued);
		return;
	}
	ConditionVariablePrepareToSleep(&shared->rescued);
	while (!rescue_is_ready(shared))
		ConditionVariableSleep(&shared->rescued, WAIT_EVENT_HASH_BUILD_ALLOCATE);
	ConditionVariableCancelSleep();
	js->engine = gh_cpu_engine();
	if (attach_table(js, &error) != GH_OK)
		gh_report_error(&error, "join through the hash table");
}
