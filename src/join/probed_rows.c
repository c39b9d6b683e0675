/*
 * probed_rows.c
 *		A table for the node above (probed.c), of rows of another plan, which are put into it as they come.
 *
 * Rows that are stored first and then entered take memory twice.  Where the planner expects that both
 * take more than there is, and not that the table alone takes far more, rows go into the pipeline a
 * thousand at a time.  Each is written to a file before that, as a stored row is: the plan that makes
 * them is run once, and the join may have to return them after all.  That is so where the table outgrows
 * memory, where a value is none that the engines hold, and where another join of the chain cannot be
 * probed.  Then the rows of the file are stored, or parted, as if they came from the plan, and behind
 * them those that have not come yet.
 *
 * All participants of a parallel join do so together, each with its part of the rows and a file of its own
 * (parallel_probed.c).
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "join/join.h"
#include "join/parallel.h"

/* Rows enter early when they take this much memory. */
#define GH_ENTER_BYTES_MAX ((Size) 1024 * 1024)

/* Rows that have been read so. */
typedef struct GhProbedFile
{
	BufFile    *file;			/* all of them */
	bool		ended;			/* there are no others */
} GhProbedFile;

/* ------------------------------------------------------------------- whether */

/* Whether the inner side is to be read so: by the planner's numbers. */
bool
gh_probed_takes_rows(const GhJoinState *js)
{
	Plan	   *inner = gh_child(js, GH_INNER)->plan;
	double		stored = sizeof(GhRow) + inner->plan_width;

	return !js->probed->has_refs && !js->fill_inner && js->source[GH_INNER] == NULL &&
		js->css.ss.ps.state->es_epq_active == NULL &&
		inner->plan_rows * (stored + (double) js->probed->row_bytes) > (double) js->memory_limit &&
		gh_probed_may_fit(js);
}

/* Of all participants: some row, or its file, could not be taken. */
static bool
is_refused(const GhJoinState *js)
{
	return js->parallel != NULL && pg_atomic_read_u32(&js->parallel->shared->refused) != 0;
}

/* Counts rows that are going to enter; whether the table of all has memory for them, but for their texts. */
static bool
has_room(const GhJoinState *js)
{
	uint64		rows = js->inner_rows;
	uint64		limit = js->memory_limit;

	if (js->parallel != NULL)
	{
		rows = pg_atomic_add_fetch_u64(&js->parallel->shared->nkeys, (int64) js->store.nkeys);
		limit *= (uint64) js->parallel->shared->nmembers;
	}
	return rows * js->probed->row_bytes <= limit;
}

/* ------------------------------------------------------------------- reading */

static void
open_file(GhJoinState *js)
{
	MemoryContext saved = MemoryContextSwitchTo(js->context);
	GhProbedFile *file = palloc0(sizeof(GhProbedFile));

	PrepareTempTablespaces();
	file->file = BufFileCreateTemp(false);
	js->probed->file = file;
	MemoryContextSwitchTo(saved);
}

/* The stored rows, of which there are few, go to the file. */
static void
write_rows(GhJoinState *js)
{
	GhRowCursor cursor = {0};
	GhRow	   *row;

	while ((row = gh_row_store_next(&js->store, &cursor)) != NULL)
		gh_spill_write(js, js->probed->file->file, row, gh_row_size(js->store.columns, row));
}

/* And into the pipeline; false: it does not take them. */
static bool
enter_rows(GhJoinState *js, GhStage *stage, MemoryContext context)
{
	MemoryContext rows = AllocSetContextCreate(context, "GpuHashJoin entering rows",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(rows);
	bool		entered = !is_refused(js) && has_room(js) && gh_probed_enter_stored(js, stage, rows);

	MemoryContextSwitchTo(saved);
	MemoryContextDelete(rows);
	return entered;
}

/* Reads the inner side's next rows into the store, as many as enter together; false: it is at its end. */
static bool
read_some(GhJoinState *js)
{
	/* the executor's memory is that of the query */
	MemoryContext saved = MemoryContextSwitchTo(js->css.ss.ps.state->es_query_cxt);

	while (!js->probed->file->ended && js->store.nrows < GH_VECTOR_ROWS &&
		   js->store.bytes <= GH_ENTER_BYTES_MAX)
	{
		uint64		key;
		bool		has_key;
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		slot = gh_next_row(js, GH_INNER, &key, &has_key);
		if (TupIsNull(slot))
			js->probed->file->ended = true;
		else if (has_key)
		{
			js->inner_rows++;
			gh_row_store_add_slot(&js->store, slot, key, true);
		}
	}
	MemoryContextSwitchTo(saved);
	return js->store.nrows > 0;
}

/*
 * Reads the inner side, or this participant's part of it, into a pipeline; false: that does not take it.
 *
 * One of several participants reads to the end in any case: it is going to wait for the others, and must not
 * do so with a plan below it half read.
 */
bool
gh_probed_pass_rows(GhJoinState *js, GhStage *stage, MemoryContext context)
{
	bool		entered = true;

	open_file(js);
	while ((entered || js->parallel != NULL) && read_some(js))
	{
		write_rows(js);
		entered = entered && enter_rows(js, stage, context);
		/* others need not go on with theirs either */
		if (!entered && js->parallel != NULL)
			pg_atomic_write_u32(&js->parallel->shared->refused, 1);
		gh_row_store_reset(&js->store);
	}
	return entered;
}

/* -------------------------------------------------------------- taking back */

void
gh_probed_forget_rows(GhJoinState *js)
{
	if (js->probed == NULL || js->probed->file == NULL)
		return;
	BufFileClose(js->probed->file->file);
	pfree(js->probed->file);
	js->probed->file = NULL;
}

/* The rows of the file, as of the inner side. */
static void
read_file(GhJoinState *js, BufFile *file)
{
	GhRow	   *row;

	if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of a hash join: %m")));
	while ((row = gh_spill_read_file(js, file)) != NULL)
		gh_join_store_row(js, row);
}

/*
 * There is no such table, or none any more: stores the rows that have been read so, and reads those that have
 * not.
 */
void
gh_probed_take_rows_back(GhJoinState *js)
{
	GhProbedFile *file = js->probed->file;
	bool		ended = false;

	if (file != NULL)
	{
		read_file(js, file->file);
		ended = file->ended;
		gh_probed_forget_rows(js);
	}
	if (!ended)
		gh_join_read_inner(js);
}
