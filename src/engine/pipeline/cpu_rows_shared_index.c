/*
 * cpu_rows_shared_index.c
 *		The index of a table that several participants have filled: all rows get numbers, and then all participants
 *		enter them.  cpu_rows_shared.c has the phases.
 */
#include "engine/pipeline/cpu_rows_shared.h"
#include "engine/table/cpu_internal.h"

#include <stdlib.h>

#define PIECE_ROWS 65536		/* few large requests wait for the exclusive lock less often than many small ones */

/* ---------------------------------------------------------------- gathering */

/* A chunk that is not full. */
typedef struct Rest
{
	GhCpuBlock	chunk;
	uint64_t	rows;
} Rest;

/* Fills the chunks up from the last ones, until at most one is not full; they are appended to the list. */
static uint32_t
fill_up(GhCpuAt *at, const GhCpuRows *rows, Rest *rests, uint32_t nrests, GhCpuBlock *list)
{
	uint64_t	most = UINT64_C(1) << rows->chunk_shift;
	uint32_t	to = 0;
	uint32_t	n = 0;

	while (to < nrests)
	{
		Rest	   *last = &rests[nrests - 1];
		uint64_t	moved = most - rests[to].rows < last->rows ? most - rests[to].rows : last->rows;

		if (to < nrests - 1)
		{
			char	   *into = gh_cpu_block_address(&at->memory, rests[to].chunk);
			const char *from = gh_cpu_block_address(&at->memory, last->chunk);

			last->rows -= moved;
			memcpy(into + rests[to].rows * rows->row_bytes, from + last->rows * rows->row_bytes,
				   moved * rows->row_bytes);
			rests[to].rows += moved;
		}
		if (last->rows == 0)
		{
			gh_cpu_block_give(&at->memory, last->chunk);
			nrests--;
		}
		if (to == nrests - 1 || (to < nrests && rests[to].rows == most))
			list[n++] = rests[to++].chunk;
	}
	return n;
}

/* A share's full chunks to the list, its texts by their numbers; what is left of it is a rest.  How many were full. */
static uint32_t
take_share(GhCpuAt *at, const GhCpuRows *rows, const GhCpuShare *share, GhCpuBlock *list, GhCpuBlock *texts, Rest *rest)
{
	uint64_t	full = share->rows >> rows->chunk_shift;

	memcpy(list, share->blocks, full * sizeof(GhCpuBlock));
	*rest = (Rest) {{0, 0}, share->rows - (full << rows->chunk_shift)};
	for (uint64_t c = full; c < share->nchunks; c++)
		if (c == full && rest->rows > 0)
			rest->chunk = share->blocks[c];
		else
			gh_cpu_block_give(&at->memory, share->blocks[c]);
	for (uint32_t t = 0; t < share->ntexts; t++)
	{
		GhCpuBlock	block = share->blocks[share->nchunks + t];
		uint64_t	number;

		memcpy(&number, gh_cpu_block_address(&at->memory, block), sizeof(number));
		texts[number] = block;
	}
	return (uint32_t) full;
}

/* All chunks into one directory. */
static GhStatus
gather(GhCpuAt *at, const GhCpuRows *rows, GhError *error)
{
	GhCpuSharedRows *shared = at->shared;
	uint32_t	nchunks = 0;
	uint32_t	nrests = 0;
	uint32_t	n = 0;
	GhCpuBlock *list;
	Rest	   *rests;

	for (GhCpuShare *share = gh_cpu_share_at(at, shared->shares); share != NULL; share = gh_cpu_share_at(at, share->next))
		nchunks += share->nchunks;
	/* of each share there may be a rest */
	rests = malloc((shared->finished + 1) * sizeof(Rest));
	if (rests == NULL)
		return gh_error_set(error, GH_NO_MEMORY, "out of memory to gather the rows of a table");
	shared->directory = gh_cpu_block_take(&at->memory, (nchunks + shared->ntexts + 1) * sizeof(GhCpuBlock));
	if (shared->directory.ref == 0)
	{
		free(rests);
		return gh_error_set(error, GH_NO_MEMORY, "out of memory to gather the rows of a table");
	}
	list = gh_cpu_directory_of(at);
	memset(list, 0, shared->directory.bytes);
	shared->nchunks = nchunks;
	while (shared->shares != 0)
	{
		GhCpuShare	   *share = gh_cpu_share_at(at, shared->shares);

		n += take_share(at, rows, share, list + n, list + nchunks, &rests[nrests]);
		nrests += rests[nrests].rows > 0;
		shared->shares = share->next;
		gh_cpu_block_give(&at->memory, share->block);
	}
	(void) fill_up(at, rows, rests, nrests, list + n);
	free(rests);
	return GH_OK;
}

static GhStatus
create_index(GhCpuAt *at, GhError *error)
{
	GhCpuSharedRows *shared = at->shared;
	GhTableOptions options = gh_cpu_index_options(&shared->sink, shared->count - shared->nkeyless);
	GhHost		host = at->memory.host;
	GhTable    *index;
	GhStatus	status;

	host.stop = NULL;
	options.concurrent_exchange = true;
	if (shared->taken.limit != 0)
	{
		if (shared->taken.bytes >= shared->taken.limit)
			return gh_error_set(error, GH_LIMIT, "the rows of a table leave no memory for its index");
		options.memory_limit = shared->taken.limit - shared->taken.bytes;
	}
	host.lock(host.ctx, GH_LOCK_EXCLUSIVE);
	status = gh_cpu_table_create(&host, &options, &index, error);
	host.unlock(host.ctx);
	if (status != GH_OK)
		return status;
	shared->index = gh_cpu_table_root(index);
	gh_cpu_table_detach(index);
	return GH_OK;
}

/* Everybody has finished: numbers the rows, and makes the index, which is empty. */
static GhStatus
begin_entering(GhCpuAt *at, GhError *error)
{
	GhCpuSharedRows *shared = at->shared;
	GhCpuRows  *rows;
	GhStatus	status;

	if (shared->lost || shared->joined != shared->finished)
		return gh_error_set(error, GH_INVALID, "of %u participants that fill a table %u have finished%s", shared->joined,
							shared->finished, shared->lost ? ", and rows are lost" : "");
	rows = gh_cpu_shared_rows(at, error);
	if (rows == NULL)
		return GH_NO_MEMORY;
	rows->any_null = shared->any_null;
	rows->any_back = shared->any_back;
	shared->carried = gh_cpu_rows_lay_out_carried(rows);
	status = gather(at, rows, error);
	gh_cpu_rows_drop(rows);
	if (status == GH_OK)
		status = create_index(at, error);
	if (status == GH_OK)
		shared->phase = GH_CPU_PHASE_ENTERING;
	return status;
}

/* ----------------------------------------------------------------- entering */

/* Some key came twice, and its values are not to be carried. */
static bool
is_refused(const GhCpuSharedRows *shared)
{
	return shared->carried && shared->sink.matches == GH_MATCHES_ALL &&
		__atomic_load_n(&shared->twice, __ATOMIC_RELAXED) != 0;
}

/* Rows piece by piece, until nobody needs to any more. */
static GhStatus
enter_pieces(GhCpuSharedRows *shared, GhCpuRows *rows, GhCpuPiece *piece, const volatile sig_atomic_t *stop,
			 GhError *error)
{
	while (!is_refused(shared) && __atomic_load_n(&shared->failure, __ATOMIC_RELAXED) == GH_OK)
	{
		bool		twice = false;
		uint64_t	first;
		uint64_t	end;

		/* before a claim: what was claimed is done */
		if (stop != NULL && *stop != 0)
			return gh_error_set(error, GH_STOPPED, "the making of a table was stopped");
		first = __atomic_fetch_add(&shared->next, PIECE_ROWS, __ATOMIC_RELAXED);
		if (first >= shared->count)
			return GH_OK;
		end = shared->count - first < PIECE_ROWS ? shared->count : first + PIECE_ROWS;
		for (uint64_t number = first; number < end;)
		{
			GhStatus	status = gh_cpu_rows_enter(rows, piece, GH_EXCHANGE,
												   shared->sink.matches == GH_MATCHES_ALL, &number, end, &twice, error);

			if (status == GH_OK)
				continue;
			__atomic_store_n(&shared->failure, (uint32_t) status, __ATOMIC_RELAXED);
			return status;
		}
		if (twice)
			__atomic_store_n(&shared->twice, 1, __ATOMIC_RELAXED);
		(void) __atomic_fetch_add(&shared->entered, end - first, __ATOMIC_RELAXED);
	}
	return GH_OK;
}

static GhStatus
tell_failure(const GhCpuSharedRows *shared, GhError *error)
{
	return gh_error_set(error, (GhStatus) shared->failure, "the table of a shared sink could not be made");
}

GhStatus
gh_cpu_shared_enter(const GhHost *host, GhRef root, bool *ready, GhError *error)
{
	GhCpuAt			at;
	GhStatus	status = gh_cpu_shared_come(host, root, &at, error);
	GhCpuRows  *rows;
	GhCpuPiece *piece;

	*ready = false;
	if (status != GH_OK)
		return status;
	if (at.shared->phase == GH_CPU_PHASE_FAILED)
		return tell_failure(at.shared, error);
	*ready = at.shared->phase == GH_CPU_PHASE_READY;
	if (*ready)
		return GH_OK;
	if (at.shared->phase != GH_CPU_PHASE_ENTERING)
		return gh_error_set(error, GH_INVALID, "rows are entered before all participants have finished");
	/* what was begun is done in full */
	at.memory.host.stop = NULL;
	rows = gh_cpu_shared_open(&at, error);
	if (rows == NULL)
		return GH_NO_MEMORY;
	piece = gh_cpu_piece_create(PIECE_ROWS);
	status = piece == NULL ? gh_error_set(error, GH_NO_MEMORY, "out of memory to enter rows into a table") :
		enter_pieces(at.shared, rows, piece, host->stop, error);
	free(piece);
	gh_cpu_table_detach(rows->index);
	gh_cpu_rows_drop(rows);
	return status;
}

/* -------------------------------------------------------------- between rounds */

/* The index is empty again, and its values are going to be numbers. */
static GhStatus
enter_again(GhCpuAt *at, GhError *error)
{
	GhCpuSharedRows *shared = at->shared;
	GhHost		host = at->memory.host;
	GhTable    *index;
	GhStatus	status;

	host.stop = NULL;
	status = gh_cpu_table_attach(&host, shared->index, &index, error);
	if (status != GH_OK)
		return status;
	status = gh_cpu_table_clear(index, error);
	gh_cpu_table_detach(index);
	shared->carried = false;
	shared->next = shared->entered = 0;
	shared->twice = 0;
	return status;
}

static GhStatus
end_round(GhCpuAt *at, GhError *error)
{
	GhCpuSharedRows *shared = at->shared;

	if (is_refused(shared))
		return enter_again(at, error);
	/* all who came were stopped: there is more to do */
	if (shared->next < shared->count)
		return GH_OK;
	if (shared->entered != shared->count)
		return gh_error_set(error, GH_INVALID, "of %llu rows of a table %llu were entered",
							(unsigned long long) shared->count, (unsigned long long) shared->entered);
	shared->several = shared->twice != 0 && shared->sink.matches == GH_MATCHES_ALL;
	if (shared->carried)
		gh_cpu_shared_give(at);
	shared->phase = GH_CPU_PHASE_READY;
	return GH_OK;
}

GhStatus
gh_cpu_shared_begin(const GhHost *host, GhRef root, GhError *error)
{
	GhCpuAt			at;
	GhStatus	status = gh_cpu_shared_come(host, root, &at, error);
	GhCpuSharedRows *shared;

	if (status != GH_OK)
		return status;
	shared = at.shared;
	if (shared->phase == GH_CPU_PHASE_READY)
		return GH_OK;
	if (shared->phase == GH_CPU_PHASE_FAILED || shared->failure != GH_OK)
	{
		shared->phase = GH_CPU_PHASE_FAILED;
		return tell_failure(shared, error);
	}
	status = shared->phase == GH_CPU_PHASE_FILLING ? begin_entering(&at, error) : GH_OK;
	/* also where there was nothing to enter */
	if (status == GH_OK)
		status = end_round(&at, error);
	if (status != GH_OK)
	{
		shared->failure = (uint32_t) status;
		shared->phase = GH_CPU_PHASE_FAILED;
	}
	return status;
}
