/*
 * parallel_rows.c
 *		The inner rows of a join of all participants: who can read them, and when.
 *
 * References to rows mean something to every participant, so the rows are in the query's dynamic shared
 * memory.  Such memory is dear: the kernel clears it page by page while all others wait for the area's lock,
 * each process takes a fault for each of its pages, and the leader frees it all when the query is over.
 * Where the table is going to have inner columns as its values (carry.c, probed.c), nobody looks at a row of
 * another one, and each participant keeps its rows to itself, until they are entered.  They are shared after
 * all when that comes to nothing: a key came again, a value is none that the table can have, or the table is
 * on a device, whose loss asks for all rows.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/parallel.h"
#include "service/placement.h"

/* Whether to expect that nobody else will look at this participant's rows. */
static bool
keeps_rows(const GhJoinState *js)
{
	double		rows = gh_child(js, GH_INNER)->plan->plan_rows +
		gh_child(js, GH_OUTER)->plan->plan_rows;

	if (gh_is_probed_above(js))
		return !js->probed->has_refs;
	return (js->carry.possible && !gh_device_is_expected(rows * js->parallel->shared->nmembers));
}

static void
use_area(GhJoinState *js)
{
	gh_row_store_share(&js->store, js->parallel->area, &js->parallel->shared->last_chunk);
}

/* Before phase ROWS: the store is empty. */
void
gh_parallel_rows_start(GhJoinState *js)
{
	if (!keeps_rows(js))
		use_area(js);
}

/* Tells the others which chunks this participant has in shared memory. */
static void
publish(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhSharedMember *member = &parallel->shared->member[parallel->member];
	Size		bytes = js->store.nchunks * sizeof(GhRowChunk);

	if (js->store.area == NULL || js->store.nchunks == 0)
		return;
	member->chunks = dsa_allocate_extended(parallel->area, bytes, DSA_ALLOC_HUGE);
	memcpy(dsa_get_address(parallel->area, member->chunks), js->store.chunks, bytes);
	member->nchunks = js->store.nchunks;
}

/* All rows are read. */
void
gh_parallel_rows_end(GhJoinState *js)
{
	if (js->store.area == NULL)
		pg_atomic_fetch_add_u32(&js->parallel->shared->own_chunks, js->store.nchunks);
	gh_parallel_count_rows(js);
	publish(js);
}

/*
 * Of the rows that go into a common table, as far as they are known: whether there are NULLs, and the highest
 * number of a chunk.  Rows that are shared later have as many chunks then as before.  Where each participant
 * has tables of its own nothing is said.
 */
void
gh_parallel_entries(const GhJoinState *js, bool *has_nulls, uint32 *nchunks)
{
	GhShared   *shared = js->parallel->shared;

	if (js->parallel->in_files)
		return;
	*has_nulls = js->store.has_nulls || pg_atomic_read_u32(&shared->has_nulls) != 0;
	*nchunks = pg_atomic_read_u32(&shared->last_chunk) + pg_atomic_read_u32(&shared->own_chunks);
}

/* In phases ENTER: from now on others may look at the rows.  Their bytes have been counted. */
void
gh_parallel_share_rows(GhJoinState *js)
{
	GhRowStore	own = js->store;
	GhRowCursor cursor = {0};

	if (own.area != NULL)
		return;
	gh_row_store_init(&js->store, js->context, &js->columns[GH_INNER], js->memory_limit);
	use_area(js);
	while (cursor.chunk < own.nchunks)
	{
		uint32		chunk = cursor.chunk;

		/* a chunk goes as soon as it is copied */
		while (cursor.offset < own.chunks[chunk].used)
		{
			CHECK_FOR_INTERRUPTS();
			gh_row_store_add_row(&js->store, gh_row_store_next(&own, &cursor));
		}
		gh_row_store_free_chunk(&own, chunk);
		cursor.chunk = chunk + 1;
		cursor.offset = 0;
	}
	gh_row_store_forget(&own);
	publish(js);
}

/* Phase PROBE: all participants' rows that are shared; others are in the table. */
void
gh_parallel_map_rows(GhJoinState *js)
{
	struct GhParallel *parallel = js->parallel;
	GhShared   *shared = parallel->shared;

	gh_parallel_forget_rows(js);
	use_area(js);
	for (int i = 0; i < shared->nmembers; i++)
		if (shared->member[i].nchunks > 0)
			gh_row_store_map(&js->store,
							 dsa_get_address(parallel->area, shared->member[i].chunks),
							 shared->member[i].nchunks);
}

/* Frees rows that are this process's alone; leaves those that are shared to the others. */
void
gh_parallel_forget_rows(GhJoinState *js)
{
	if (js->store.area == NULL)
		gh_row_store_reset(&js->store);
	gh_row_store_forget(&js->store);
}

/* From now on, rows in memory are this process's alone. */
void
gh_parallel_use_private_rows(GhJoinState *js)
{
	gh_row_store_forget(&js->store);
	gh_row_store_init(&js->store, js->context, &js->columns[GH_INNER], js->memory_limit);
}
