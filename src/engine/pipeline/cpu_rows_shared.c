/*
 * cpu_rows_shared.c
 *		The rows of a table that several participants fill together, each in a process of its own.
 *
 * All of it lies in the memory of a host that they share, and blocks know each other by GhRef.  The phases, which
 * the caller keeps apart by barriers:
 *
 *	filling		A participant's rows are its own: it takes chunks and blocks of texts when it needs them, under the
 *				lock, and writes to them without.  When it finishes it lists them in a block, its share, which it
 *				links to the root.
 *	gathering	One: all chunks become one directory, which numbers the rows.  The chunks that are not full, at most
 *				one of each participant, are filled up from one another; so numbers have no gaps.  Texts do not
 *				move: a row names the block by a number that the root has given it.
 *	entering	All: pieces of rows, claimed by a counter, go into the index by GH_EXCHANGE, which several handles do
 *				at the same time.  A row is entered, and linked, by who claimed its piece.  Where values are to be
 *				carried and a key came twice, the index is emptied, and there is another round.
 *	ready		Nothing changes any more; each has a handle of its own.
 *
 * Nobody is waited for in here.  That something is missing is found by counts: participants that joined and have not
 * finished, rows that were claimed and not entered.  Then there is no table.
 */
#include "engine/pipeline/cpu_rows_shared.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

/* Locking also maps what others have allocated since. */
static void
map(const GhHost *host)
{
	host->lock(host->ctx, GH_LOCK_SHARED);
	host->unlock(host->ctx);
}

static GhStatus
check_host(const GhHost *host, GhError *error)
{
	if (host == NULL || host->alloc == NULL || host->free == NULL || host->address == NULL || host->lock == NULL ||
		host->unlock == NULL)
		return gh_error_set(error, GH_INVALID, "a sink that processes share needs a host's memory and its lock");
	return GH_OK;
}

GhStatus
gh_cpu_shared_come(const GhHost *host, GhRef root, GhCpuAt *at, GhError *error)
{
	GhStatus	status = check_host(host, error);

	if (status != GH_OK)
		return status;
	if (root == 0)
		return gh_error_set(error, GH_INVALID, "there is no shared sink at root 0");
	map(host);
	*at = (GhCpuAt) {.memory = {.host = *host},.shared = host->address(host->ctx, root),.root = root};
	if (at->shared->magic != GH_CPU_SHARED_MAGIC)
		return gh_error_set(error, GH_INVALID, "there is no shared sink at this root");
	at->memory.common = &at->shared->taken;
	return GH_OK;
}

/* ------------------------------------------------------------------- making */

GhStatus
gh_cpu_shared_create(const GhHost *host, const GhPipelineOptions *options, GhRef *root, GhError *error)
{
	GhPipelinePlan plan;
	GhStatus	status = check_host(host, error);
	GhCpuSharedRows *shared;
	GhCpuSinkMemory memory;
	GhCpuBlock	block;

	*root = 0;
	if (status == GH_OK)
		status = gh_pipeline_plan_init(&plan, &gh_cpu_pipelines, gh_cpu_table_describe, options, error);
	if (status != GH_OK)
		return status;
	gh_pipeline_plan_drop(&plan);
	memory = (GhCpuSinkMemory) {.host = *host,.limit = options->memory_limit};
	if (options->sink.kind != GH_SINK_TABLE)
		return gh_error_set(error, GH_UNSUPPORTED, "processes do not share a sink of kind %u", options->sink.kind);
	block = gh_cpu_block_take(&memory, sizeof(GhCpuSharedRows));
	if (block.ref == 0)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory for a sink that processes share");
	shared = gh_cpu_block_address(&memory, block);
	memset(shared, 0, sizeof(*shared));
	shared->magic = GH_CPU_SHARED_MAGIC;
	shared->sink = options->sink.table;
	if (shared->sink.nkept > 0)
		memcpy(shared->kept, options->sink.table.kept, shared->sink.nkept * sizeof(GhKept));
	shared->sink.parts = NULL;
	shared->sink.kept = NULL;
	shared->taken = (GhCpuTaken) {options->memory_limit, memory.bytes, memory.bytes};
	shared->phase = GH_CPU_PHASE_FILLING;
	*root = block.ref;
	return GH_OK;
}

GhCpuRows *
gh_cpu_shared_rows(const GhCpuAt *at, GhError *error)
{
	GhTableSink sink = at->shared->sink;
	GhCpuRows  *rows;

	sink.kept = at->shared->kept;
	rows = gh_cpu_rows_create(&at->memory.host, &sink, 0, error);
	if (rows == NULL)
		return NULL;
	rows->memory.common = at->memory.common;
	rows->shared = at->shared;
	rows->root = at->root;
	return rows;
}

/* ------------------------------------------------------------------ filling */

static bool
same_sink(const GhCpuSharedRows *shared, const GhTableSink *sink)
{
	const GhTableSink *own = &shared->sink;

	for (uint32_t k = 0; k < sink->nkept && k < own->nkept; k++)
		if (gh_cpu_kept_bytes(&sink->kept[k]) != gh_cpu_kept_bytes(&shared->kept[k]) ||
			sink->kept[k].value_class != shared->kept[k].value_class)
			return false;
	return sink->nkept == own->nkept && sink->numbered == own->numbered && sink->matches == own->matches;
}

GhStatus
gh_cpu_shared_join(const GhHost *host, GhRef root, const GhTableSink *sink, GhCpuRows **rows, GhError *error)
{
	GhCpuAt			at;
	GhStatus	status = gh_cpu_shared_come(host, root, &at, error);
	bool		filling;

	if (status != GH_OK)
		return status;
	if (!same_sink(at.shared, sink))
		return gh_error_set(error, GH_INVALID, "a pipeline's sink is not the one that it is to share");
	*rows = gh_cpu_shared_rows(&at, error);
	if (*rows == NULL)
		return GH_NO_MEMORY;
	host->lock(host->ctx, GH_LOCK_EXCLUSIVE);
	filling = at.shared->phase == GH_CPU_PHASE_FILLING;
	at.shared->joined += filling;
	host->unlock(host->ctx);
	if (filling)
		return GH_OK;
	(*rows)->finished = true;
	return gh_error_set(error, GH_INVALID, "the table of a shared sink is made already");
}

uint64_t
gh_cpu_shared_text_number(GhCpuRows *rows)
{
	return __atomic_fetch_add(&rows->shared->ntexts, 1, __ATOMIC_RELAXED);
}

void
gh_cpu_shared_leave(GhCpuRows *rows, bool used)
{
	const GhHost *host = &rows->memory.host;

	if (rows->finished)
		return;
	host->lock(host->ctx, GH_LOCK_EXCLUSIVE);
	if (used)
		rows->shared->lost = true;
	else
		rows->shared->joined--;
	host->unlock(host->ctx);
	rows->finished = true;
}

/* Lists the blocks, which are this process's no longer. */
static void
list_blocks(GhCpuShare *share, GhCpuRows *rows)
{
	share->nchunks = rows->chunks.count;
	share->ntexts = rows->texts.count;
	share->rows = rows->count;
	memcpy(share->blocks, rows->chunks.blocks, share->nchunks * sizeof(GhCpuBlock));
	if (share->ntexts > 0)
		memcpy(share->blocks + share->nchunks, rows->texts.blocks, share->ntexts * sizeof(GhCpuBlock));
	rows->chunks.count = rows->texts.count = 0;
}

GhStatus
gh_cpu_shared_finish(GhCpuRows *rows, GhError *error)
{
	GhCpuSharedRows *shared = rows->shared;
	const GhHost *host = &rows->memory.host;
	GhCpuBlock	block = {0, 0};
	GhCpuShare	   *share = NULL;

	if (rows->count > 0)
	{
		block = gh_cpu_block_take(&rows->memory, sizeof(GhCpuShare) +
								  (rows->chunks.count + rows->texts.count) * sizeof(GhCpuBlock));
		if (block.ref == 0)
			return gh_error_set(error, GH_NO_MEMORY, "out of memory to share the rows of a table");
		share = gh_cpu_block_address(&rows->memory, block);
		share->block = block;
		list_blocks(share, rows);
	}
	else
		gh_cpu_rows_free(rows);
	host->lock(host->ctx, GH_LOCK_EXCLUSIVE);
	if (share != NULL)
	{
		share->next = shared->shares;
		shared->shares = block.ref;
	}
	shared->count += rows->count;
	shared->nkeyless += rows->nkeyless;
	shared->any_null |= rows->any_null;
	shared->any_back |= rows->any_back;
	shared->finished++;
	host->unlock(host->ctx);
	rows->finished = true;
	return GH_OK;
}

/* ------------------------------------------------------------------ opening */

/* This process's addresses of all chunks and texts. */
static bool
map_blocks(const GhCpuAt *at, GhCpuRows *rows)
{
	const GhCpuSharedRows *shared = at->shared;
	const GhCpuBlock *list = gh_cpu_directory_of(at);

	rows->chunks.bases = calloc(shared->nchunks + 1, sizeof(char *));
	rows->texts.bases = calloc(shared->ntexts + 1, sizeof(char *));
	if (rows->chunks.bases == NULL || rows->texts.bases == NULL)
		return false;
	for (uint64_t b = 0; b < shared->nchunks + shared->ntexts; b++)
	{
		char	  **base = b < shared->nchunks ? &rows->chunks.bases[b] : &rows->texts.bases[b - shared->nchunks];

		*base = list[b].ref == 0 ? NULL : gh_cpu_block_address(&at->memory, list[b]);
	}
	return true;
}

GhCpuRows *
gh_cpu_shared_open(const GhCpuAt *at, GhError *error)
{
	const GhCpuSharedRows *shared = at->shared;
	GhCpuRows  *rows = gh_cpu_shared_rows(at, error);

	if (rows == NULL)
		return NULL;
	rows->finished = true;
	rows->count = rows->shape.rows = shared->count;
	rows->nkeyless = shared->nkeyless;
	rows->any_null = shared->any_null;
	rows->any_back = shared->any_back;
	rows->shape.several = shared->several;
	rows->carried = shared->carried && gh_cpu_rows_lay_out_carried(rows);
	if (map_blocks(at, rows))
	{
		if (gh_cpu_table_attach(&at->memory.host, shared->index, &rows->index, error) == GH_OK)
			return rows;
	}
	else
		(void) gh_error_set(error, GH_NO_MEMORY, "out of memory for a handle on a table");
	gh_cpu_rows_drop(rows);
	return NULL;
}

/* -------------------------------------------------------------------- ending */

void
gh_cpu_shared_give(GhCpuAt *at)
{
	GhCpuSharedRows *shared = at->shared;
	GhCpuBlock *list;

	if (shared->directory.ref == 0)
		return;
	list = gh_cpu_directory_of(at);
	for (uint64_t b = 0; b < shared->nchunks + shared->ntexts; b++)
	{
		gh_cpu_block_give(&at->memory, list[b]);
		list[b].ref = 0;
	}
}

static void
give_shares(GhCpuAt *at)
{
	GhCpuSharedRows *shared = at->shared;

	while (shared->shares != 0)
	{
		GhCpuShare	   *share = gh_cpu_share_at(at, shared->shares);

		for (uint32_t b = 0; b < share->nchunks + share->ntexts; b++)
			gh_cpu_block_give(&at->memory, share->blocks[b]);
		shared->shares = share->next;
		gh_cpu_block_give(&at->memory, share->block);
	}
}

/* All but the index. */
static void
free_shared(GhCpuAt *at)
{
	const GhHost *host = &at->memory.host;

	give_shares(at);
	gh_cpu_shared_give(at);
	gh_cpu_block_give(&at->memory, at->shared->directory);
	at->shared->magic = 0;
	host->lock(host->ctx, GH_LOCK_EXCLUSIVE);
	host->free(host->ctx, at->root);
	host->unlock(host->ctx);
}

void
gh_cpu_shared_destroy(const GhHost *host, GhRef root)
{
	GhCpuAt			at;
	GhError		error;
	GhTable    *index;

	if (gh_cpu_shared_come(host, root, &at, &error) != GH_OK)
		return;
	if (at.shared->index != 0 && gh_cpu_table_attach(host, at.shared->index, &index, &error) == GH_OK)
		gh_cpu_table_destroy(index);
	free_shared(&at);
}

/* The table goes with its rows. */
static void
drop_all(GhCpuRows *rows)
{
	GhCpuAt			at = {rows->memory, rows->shared, rows->root};

	map(&at.memory.host);
	gh_cpu_rows_drop(rows);
	free_shared(&at);
}

GhStatus
gh_cpu_shared_attach(const GhHost *host, GhRef root, GhMadeTable *made, GhError *error)
{
	GhCpuAt			at;
	GhStatus	status = gh_cpu_shared_come(host, root, &at, error);
	GhCpuRows  *rows;

	memset(made, 0, sizeof(*made));
	if (status != GH_OK)
		return status;
	if (at.shared->phase != GH_CPU_PHASE_READY)
		return gh_error_set(error, GH_INVALID, "the table of a shared sink is not ready");
	rows = gh_cpu_shared_open(&at, error);
	if (rows == NULL)
		return GH_NO_MEMORY;
	gh_cpu_rows_hand_over(rows, drop_all, gh_cpu_rows_drop, made);
	return GH_OK;
}
