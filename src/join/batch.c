/*
 * batch.c
 *		The outer side: batches of rows, filled from the child and probed.
 *
 * A batch is filled row by row from the outer child: the kept columns and the
 * key are copied into arrays.  Of a child that the join reads itself (source.c), a batch
 * has whole pages: their tuples are copied as they are, and just those that come out
 * are taken apart, when they do.  Then the batch's keys are probed in one request.  The
 * first batch is small and batches double, so that a LIMIT or a cursor's first
 * row waits for little.
 *
 * With an asynchronous engine there are two batches: the next one is filled
 * while the engine probes the present one.  A synchronous engine needs just one.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/source.h"
#include "service/placement.h"

/* A batch ends early when its by-reference values, or tuples, take this many bytes. */
#define GH_ARENA_MAX ((Size) 4 * 1024 * 1024)

/*
 * Rows of a batch of pages that the join reads itself, for an engine that gains nothing by more: those pages
 * are still in memory when a node above looks up other rows of theirs, by an index.  Of a table that is large
 * beside shared_buffers, a scan keeps 32 pages there.
 */
#define GH_PAGES_BATCH_ROWS 1024

/* A batch's arrays may take this share of the memory for rows and table. */
#define GH_BATCH_SHARE 8

/* ------------------------------------------------------------ buffers */

/*
 * What the join's batches hold at most, from its start to its end: gpuhash.batch_rows, but
 * fewer when rows are wide.
 */
void
gh_batch_init(GhJoinState *js)
{
	Size		row = 2 * sizeof(uint64) + sizeof(bool) +
		js->columns[GH_OUTER].ncolumns * (sizeof(Datum) + sizeof(bool));
	Size		rows = Max(js->memory_limit / GH_BATCH_SHARE / row, GH_BATCH_ROWS_MIN);

	js->batch_rows_max = (int) Min(rows, (Size) gh_batch_rows);
	js->batch_rows = GH_BATCH_ROWS_MIN;
}

/* Room that arrays have beyond the rows of a batch: pages are taken whole. */
static int
rows_beyond(const GhJoinState *js)
{
	return js->source[GH_OUTER] != NULL ? MaxHeapTuplesPerPage : 0;
}

/* Of a batch that is not in use. */
static void
free_arrays(GhBatch *batch)
{
	if (batch->capacity == 0)
		return;
	if (!batch->in_transfer)
		pfree(batch->keys);
	pfree(batch->has_key);
	pfree(batch->nulls);
	pfree(batch->values);
	if (batch->tuples != NULL)
		pfree(batch->tuples);
	batch->tuples = NULL;
	batch->capacity = 0;
}

/*
 * Buffers that a device's engine transfers best, for the whole of the query, taken in
 * one step before there is a table.  False: the engine has none.
 */
bool
gh_take_transfer(GhJoinState *js)
{
	Size		bytes = ((Size) js->batch_rows_max + rows_beyond(js)) * 2 * sizeof(uint64);

	if (js->transfer_engine != NULL)
		return true;
	if (!gh_buffers_alloc(js->engine, 2, bytes, js->transfer))
		return false;
	js->transfer_engine = js->engine;
	js->transfer_bytes = bytes;
	for (int i = 0; i < 2; i++)
		free_arrays(&js->batch[i]);
	return true;
}

/*
 * Gives the buffers back.  With a request of the service in flight they stay the
 * service's until it is through; of other engines the table must be gone, or idle.
 */
void
gh_free_transfer(GhJoinState *js)
{
	const GhEngine *engine = js->transfer_engine;

	if (engine == NULL)
		return;
	js->transfer_engine = NULL;
	for (int i = 0; i < 2; i++)
	{
		engine->buffer_free(js->transfer[i]);
		js->transfer[i] = NULL;
	}
}

/* Ordinary memory for a batch's keys and matches. */
static void
alloc_arrays(GhJoinState *js, GhBatch *batch, int rows)
{
	batch->keys = MemoryContextAllocHuge(js->context, (Size) rows * 2 * sizeof(uint64));
	batch->found = batch->keys + rows;
	batch->in_transfer = false;
}

/*
 * Moves both batches out of the buffers and gives those back: a device that does not
 * answer may go on writing matches to them.  Keys are only read by it.
 */
void
gh_leave_transfer(GhJoinState *js)
{
	for (int i = 0; i < 2; i++)
	{
		GhBatch    *batch = &js->batch[i];
		const uint64 *keys = batch->keys;
		const uint64 *found = batch->found;

		if (batch->capacity == 0 || !batch->in_transfer)
			continue;
		alloc_arrays(js, batch, batch->capacity);
		memcpy(batch->keys, keys, batch->nprobes * sizeof(uint64));
		if (!batch->pending)
			memcpy(batch->found, found, batch->nprobes * sizeof(uint64));
	}
	gh_free_transfer(js);
}

/* Makes room for rows, and those beyond, in a batch that is not in use. */
static void
grow_batch(GhJoinState *js, GhBatch *batch, int rows)
{
	const GhColumns *columns = &js->columns[GH_OUTER];

	rows += rows_beyond(js);
	if (batch->capacity >= rows)
		return;
	if (js->transfer_engine != NULL)
		rows = js->batch_rows_max + rows_beyond(js);
	free_arrays(batch);
	if (batch->arena == NULL)
		batch->arena = AllocSetContextCreate(js->context, "GpuHashJoin batch",
											 ALLOCSET_DEFAULT_SIZES);
	if (js->transfer_engine != NULL)
	{
		batch->keys = js->transfer[batch - js->batch];
		batch->found = batch->keys + rows;
		batch->in_transfer = true;
	}
	else
		alloc_arrays(js, batch, rows);
	batch->has_key = MemoryContextAlloc(js->context, rows * sizeof(bool));
	batch->nulls = MemoryContextAllocHuge(js->context,
										  (Size) rows * columns->ncolumns * sizeof(bool) + 1);
	batch->values = MemoryContextAllocHuge(js->context,
										   (Size) rows * columns->ncolumns * sizeof(Datum) + 1);
	if (js->source[GH_OUTER] != NULL)
		batch->tuples = MemoryContextAllocHuge(js->context, rows * sizeof(HeapTupleHeader));
	batch->capacity = rows;
}

/* ------------------------------------------------------------- filling */

/* Whether the outer child has a row.  It is read, and kept for the first batch. */
bool
gh_outer_has_row(GhJoinState *js)
{
	if (js->source[GH_OUTER] != NULL)
		return gh_source_peek(js->source[GH_OUTER]);
	js->first_outer = ExecProcNode(gh_child(js, GH_OUTER));
	return !TupIsNull(js->first_outer);
}

/* The next row of the outer child, or an empty slot. */
static TupleTableSlot *
next_child_row(GhJoinState *js)
{
	TupleTableSlot *slot = js->first_outer;

	if (slot != NULL)
		js->first_outer = NULL;
	else
		slot = ExecProcNode(gh_child(js, GH_OUTER));
	return slot;
}

/* Where the batch's next row keeps its columns. */
static inline bool *
new_row_nulls(GhJoinState *js, GhBatch *batch)
{
	return batch->nulls + (Size) batch->nrows * js->columns[GH_OUTER].ncolumns;
}

static inline Datum *
new_row_values(GhJoinState *js, GhBatch *batch)
{
	return batch->values + (Size) batch->nrows * js->columns[GH_OUTER].ncolumns;
}

/* Ends a row whose columns are in place. */
static inline void
finish_row(GhBatch *batch, bool has_key, uint64 key)
{
	batch->has_key[batch->nrows] = has_key;
	if (has_key)
		gh_word_set(batch->narrow, batch->keys, batch->nprobes++, key);
	batch->nrows++;
}

/* What becomes of an outer row. */
typedef enum RowFate
{
	GH_ROW_JOINS,				/* it goes into the batch */
	GH_ROW_WAITS,				/* for its partition */
	GH_ROW_DROPS				/* nothing can come of it */
} RowFate;

/*
 * A row that has a key, but no inner row to go with it, loses the key.  *partition is
 * that of a row that waits.
 */
static inline RowFate
decide_row(GhJoinState *js, uint64 key, bool *has_key, int *partition)
{
	if (*has_key)
	{
		*partition = gh_spill_partition(&js->spill, key);
		if (*partition == js->spill.current)
			*has_key = js->table != NULL;
		else if (gh_spill_may_have_rows(&js->spill, GH_INNER, *partition))
			return GH_ROW_WAITS;
		else
			*has_key = false;	/* no such inner row in any partition */
	}
	return *has_key || js->fill_outer ? GH_ROW_JOINS : GH_ROW_DROPS;
}

/*
 * Takes one outer row into the batch, unless it waits for a later partition or
 * nothing can come of it.  Adds to *bytes what its by-reference values take.
 */
static inline void
add_child_row(GhJoinState *js, GhBatch *batch, TupleTableSlot *slot, Size *bytes)
{
	const GhColumns *columns = &js->columns[GH_OUTER];
	uint64		key = 0;
	bool		has_key;
	int			partition;
	RowFate		fate;

	slot_getsomeattrs(slot, columns->max_attno);
	has_key = gh_row_key(js, GH_OUTER, slot, &key);
	fate = decide_row(js, key, &has_key, &partition);
	if (fate == GH_ROW_WAITS)
		gh_spill_slot(js, GH_OUTER, partition, slot, key, true);
	if (fate != GH_ROW_JOINS)
		return;
	*bytes += gh_columns_copy(columns, slot, new_row_nulls(js, batch),
							  new_row_values(js, batch), batch->arena);
	finish_row(batch, has_key, key);
}

/* Likewise for a row out of a file, of which that is known. */
static void
add_stored_row(GhJoinState *js, GhBatch *batch, GhRow *row, bool has_key, Size *bytes)
{
	const GhColumns *columns = &js->columns[GH_OUTER];

	if (!has_key && !js->fill_outer)
		return;
	if (!columns->all_byval)
	{
		Size		size = gh_row_size(columns, row);
		GhRow	   *copy = MemoryContextAllocHuge(batch->arena, size);

		memcpy(copy, row, size);
		row = copy;
		*bytes += size;
	}
	gh_row_load(columns, row, new_row_nulls(js, batch), new_row_values(js, batch));
	finish_row(batch, has_key, row->key);
}

/* Likewise for a row of the participants' common partition that this one has taken. */
static void
add_shared_row(GhJoinState *js, GhBatch *batch, GhRow *row, Size *bytes)
{
	bool		has_key = gh_row_has_key(row);
	int			partition;
	RowFate		fate = decide_row(js, row->key, &has_key, &partition);

	if (fate == GH_ROW_WAITS)
		gh_spill_row(js, GH_OUTER, partition, row);
	if (fate == GH_ROW_JOINS)
		add_stored_row(js, batch, row, has_key, bytes);
}

/* Whether the present rows come from the participants' files. */
static inline bool
reads_shared_files(const GhJoinState *js)
{
	return js->spill.current == 0 && js->parallel != NULL && gh_parallel_in_files(js);
}

/* Adds a row from wherever they come; false when there are no more. */
static inline bool
add_outer_row(GhJoinState *js, GhBatch *batch, Size *bytes)
{
	if (reads_shared_files(js))
	{
		GhRow	   *row = gh_parallel_read(js, GH_OUTER);

		if (row == NULL)
			return false;
		add_shared_row(js, batch, row, bytes);
	}
	else if (js->spill.current == 0)
	{
		TupleTableSlot *slot = next_child_row(js);

		if (TupIsNull(slot))
			return false;
		add_child_row(js, batch, slot, bytes);
	}
	else
	{
		GhRow	   *row = gh_spill_read(js, GH_OUTER);

		if (row == NULL)
			return false;
		add_stored_row(js, batch, row, js->table != NULL, bytes);
	}
	return true;
}

/* Likewise a page of rows.  Returns the bytes that the copies of their tuples take. */
static Size
add_page(GhJoinState *js, GhBatch *batch, GhPage *page)
{
	int			first = batch->nrows;
	char	   *low = NULL;
	char	   *high = NULL;

	for (int i = 0; i < page->nrows; i++)
	{
		char	   *tuple = (char *) page->tuples[i];
		bool		has_key = page->has_key[i];
		int			partition;
		RowFate		fate = decide_row(js, page->keys[i], &has_key, &partition);
		Size		taken = MAXALIGN(page->sizes[i]);

		if (fate == GH_ROW_WAITS)
			gh_spill_slot(js, GH_OUTER, partition,
						  gh_source_slot(js->source[GH_OUTER], page->tuples[i]),
						  page->keys[i], true);
		if (fate != GH_ROW_JOINS)
			continue;
		low = low == NULL ? tuple : Min(low, tuple);
		high = Max(high, tuple + taken);
		page->sizes[batch->nrows - first] = taken;
		batch->tuples[batch->nrows] = page->tuples[i];
		finish_row(batch, has_key, page->keys[i]);
	}
	if (batch->nrows == first)
		return 0;
	return gh_copy_tuples(&batch->copies, js->context, batch->nrows - first,
						  batch->tuples + first, page->sizes, low, high);
}

/* Fills the batch with pages; false when there are no more. */
static bool
fill_from_source(GhJoinState *js, GhBatch *batch, int rows)
{
	GhSource   *source = js->source[GH_OUTER];
	Size		bytes = 0;
	GhPage	   *page = NULL;

	gh_forget_copies(&batch->copies);
	do
	{
		page = gh_source_page(js, source, rows - batch->nrows);
		if (page != NULL)
			bytes += add_page(js, batch, page);
	} while (page != NULL && batch->nrows < rows && bytes < GH_ARENA_MAX);
	gh_source_park(source);
	return page != NULL;
}

/* Fills the batch with rows of a join below; false when there are no more. */
static bool
fill_from_join(GhJoinState *js, GhBatch *batch, int rows)
{
	GhJoinState *child = js->pipe->child;
	Size		bytes = 0;
	bool		more = true;
	int			n = 0;

	if (js->first_outer != NULL)
		add_child_row(js, batch, js->first_outer, &bytes);
	js->first_outer = NULL;
	gh_child_start(&child->css.ss.ps);
	for (; batch->nrows < rows && bytes < GH_ARENA_MAX; n++)
	{
		uint64		key = 0;
		bool		has_key;
		int			partition;
		RowFate		fate;

		CHECK_FOR_INTERRUPTS();
		more = gh_pipe_next(js, &key, &has_key);
		if (!more)
			break;
		fate = decide_row(js, key, &has_key, &partition);
		if (fate == GH_ROW_WAITS)
		{
			/* what is written is for this join, and counted here */
			gh_child_stop(&child->css.ss.ps, 0);
			gh_spill_slot(js, GH_OUTER, partition, gh_emit_project(child), key, true);
			gh_child_start(&child->css.ss.ps);
		}
		if (fate != GH_ROW_JOINS)
			continue;
		bytes += gh_pipe_copy(js, new_row_nulls(js, batch), new_row_values(js, batch),
							  batch->arena);
		finish_row(batch, has_key, key);
	}
	gh_child_stop(&child->css.ss.ps, n);
	return more;
}

/* Fills the batch with rows one by one; false when there are no more. */
static bool
fill_row_by_row(GhJoinState *js, GhBatch *batch, int rows)
{
	Size		bytes = 0;

	while (batch->nrows < rows && bytes < GH_ARENA_MAX)
	{
		CHECK_FOR_INTERRUPTS();
		if (!add_outer_row(js, batch, &bytes))
			return false;
	}
	return true;
}

/* Fills the batch; false when the outer side has no more rows. */
static bool
fill_batch(GhJoinState *js, GhBatch *batch)
{
	int			rows = js->batch_rows;
	bool		from_child;
	instr_time	start;

	gh_time_start(js, &start);
	if (js->source[GH_OUTER] != NULL && (js->engine == NULL || !js->engine->asynchronous))
		rows = Min(rows, GH_PAGES_BATCH_ROWS);
	grow_batch(js, batch, rows);
	js->batch_rows = Min(js->batch_rows * 2, js->batch_rows_max);
	MemoryContextReset(batch->arena);
	batch->nrows = 0;
	batch->nprobes = 0;
	batch->narrow = js->carry.narrow;
	from_child = js->spill.current == 0 && !reads_shared_files(js);
	batch->as_tuples = from_child && js->source[GH_OUTER] != NULL;
	if (batch->as_tuples)
		js->outer_done = !fill_from_source(js, batch, rows);
	else if (from_child && js->pipe != NULL)
		js->outer_done = !fill_from_join(js, batch, rows);
	else
		js->outer_done = !fill_row_by_row(js, batch, rows);
	gh_time_stop(js, &js->source_time, start);
	if (batch->nrows > 0)
		js->nbatches++;
	return batch->nrows > 0;
}

/* ------------------------------------------------------------- probing */

static void
submit_batch(GhJoinState *js, GhBatch *batch)
{
	GhRequest  *request = &batch->request;

	if (batch->nprobes == 0)
		return;
	memset(request, 0, sizeof(*request));
	request->op = GH_FIND;
	request->count = batch->nprobes;
	request->keys = batch->keys;
	request->values_out = batch->found;
	request->absent = js->carry.absent;
	batch->submitted = js->engine->submit(js->table, request);
	batch->pending = true;
}

/* Whether the engine has the batch's request. */
static bool
in_flight(const GhBatch *batch)
{
	return batch->pending &&
		(batch->submitted == GH_OK || batch->submitted == GH_BUSY);
}

static GhStatus
finish_batch(GhJoinState *js, GhBatch *batch)
{
	return in_flight(batch) ? gh_wait_request(js->table, &batch->request) :
		batch->submitted;
}

/* Matches of 4 bytes become such of 8, from the last one on: they are in the same place. */
static void
widen_matches(GhJoinState *js, GhBatch *batch)
{
	uint64	   *found = batch->found;
	const uint32 *narrow = (const uint32 *) found;

	if (js->carry.in_use)
		for (int i = batch->nprobes - 1; i >= 0; i--)
			found[i] = narrow[i];
	else
		for (int i = batch->nprobes - 1; i >= 0; i--)
			found[i] = gh_widened_ref(narrow[i]);
}

/*
 * Waits for the batch's matches.  When the GPU fails, everything not yet
 * answered is asked again of the CPU engine.
 */
static void
wait_batch(GhJoinState *js, GhBatch *batch)
{
	instr_time	start;
	GhStatus	status;

	if (!batch->pending)
		return;
	gh_time_start(js, &start);
	status = finish_batch(js, batch);
	if (status != GH_OK)
	{
		gh_join_fall_back(js, &batch->request.error);
		for (int i = 0; i < 2; i++)
			if (js->batch[i].pending)
				submit_batch(js, &js->batch[i]);
		status = finish_batch(js, batch);
		if (status != GH_OK)
			gh_report_error(&batch->request.error, "join through the hash table");
	}
	batch->pending = false;
	if (batch->narrow)
		widen_matches(js, batch);
	gh_time_stop(js, &js->wait_time, start);
}

static bool
fill_and_submit(GhJoinState *js, int which)
{
	GhBatch    *batch = &js->batch[which];

	if (js->outer_done || !fill_batch(js, batch))
		return false;
	submit_batch(js, batch);
	return true;
}

/*
 * Makes the next probed batch the current one; false when there is none.  The
 * batch emitted before is given up.
 */
bool
gh_next_batch(GhJoinState *js)
{
	if (js->ahead)
	{
		js->current = 1 - js->current;
		js->ahead = false;
	}
	else if (!fill_and_submit(js, js->current))
		return false;
	if (js->engine != NULL && js->engine->asynchronous)
		js->ahead = fill_and_submit(js, 1 - js->current);
	wait_batch(js, &js->batch[js->current]);
	return true;
}

/* Forgets all batches, after waiting for what the engine has of them. */
void
gh_forget_batches(GhJoinState *js)
{
	for (int i = 0; i < 2; i++)
	{
		GhBatch    *batch = &js->batch[i];

		if (in_flight(batch))
			(void) gh_wait_request(js->table, &batch->request);
		batch->pending = false;
		batch->nrows = 0;
		if (batch->arena != NULL)
			MemoryContextReset(batch->arena);
	}
	js->ahead = false;
	js->outer_done = false;
	js->first_outer = NULL;
	js->batch_rows = GH_BATCH_ROWS_MIN;
}
