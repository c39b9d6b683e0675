/*
 * build.c
 *		The inner side: its rows, and the table from keys to rows.
 *
 * All inner rows are stored first, with their keys, so that the table can be
 * made at its right size.  The table maps a key to the first row of a chain:
 * an exchange enters where a row is under its key and returns what was there, which
 * becomes the row's next.  A key with any number of rows takes
 * one entry, and emitting its matches needs no memory.  Where keys have one row each
 * and the join needs little of it, the table has that in the place of the row: carry.c.
 *
 * The rows keep their keys, so that the table can be made again on the CPU
 * engine when the GPU is lost.  That may reorder a chain, so it happens only
 * between batches, never while a chain is being walked.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/source.h"
#include "service/placement.h"

/* Rows entered at a time. */
#define GH_BUILD_BATCH 65536

/* The next row of a side that is read in one go, and its key, or an empty slot. */
TupleTableSlot *
gh_next_row(GhJoinState *js, int side, uint64 *key, bool *has_key)
{
	TupleTableSlot *slot;

	if (js->source[side] != NULL)
		return gh_source_row(js, js->source[side], key, has_key);
	slot = ExecProcNode(gh_child(js, side));
	if (!TupIsNull(slot))
	{
		slot_getsomeattrs(slot, js->columns[side].max_attno);
		*has_key = gh_row_key(js, side, slot, key);
	}
	return slot;
}

/*
 * Reads the inner side, or this participant's part of it, to its end.  Rows with a NULL
 * key match nothing, so they are kept only where just such rows come out.
 */
void
gh_join_read_inner(GhJoinState *js)
{
	for (;;)
	{
		TupleTableSlot *slot;
		uint64		key;
		bool		has_key;
		int			partition;

		CHECK_FOR_INTERRUPTS();
		slot = gh_next_row(js, GH_INNER, &key, &has_key);
		if (TupIsNull(slot))
			break;
		if (!has_key && !js->fill_inner)
			continue;
		if (!has_key)
			key = js->inner_rows;
		js->inner_rows++;
		partition = gh_spill_partition(&js->spill, key);
		if (js->parallel != NULL)
			gh_parallel_store_slot(js, slot, key, has_key);
		else if (partition == js->spill.current)
		{
			gh_row_store_add_slot(&js->store, slot, key, has_key);
			gh_spill_keep_within_memory(js);
		}
		else
			gh_spill_slot(js, GH_INNER, partition, slot, key, has_key);
	}
}

/* Keeps an inner row that was read before, as one that is read. */
static void
store_row(GhJoinState *js, GhRow *row)
{
	int			partition = gh_spill_partition(&js->spill, row->key);

	if (partition == js->spill.current)
	{
		gh_row_store_add_row(&js->store, row);
		gh_spill_keep_within_memory(js);
	}
	else
		gh_spill_row(js, GH_INNER, partition, row);
}

/* The same of an inner row of all participants, where there are several. */
void
gh_join_store_row(GhJoinState *js, GhRow *row)
{
	if (js->parallel != NULL)
		gh_parallel_store_row(js, row);
	else
		store_row(js, row);
}

/* Likewise for the current partition, out of its file. */
static void
store_spilled_rows(GhJoinState *js)
{
	GhRow	   *row;

	while ((row = gh_spill_read(js, GH_INNER)) != NULL)
	{
		gh_row_store_add_row(&js->store, row);
		gh_spill_keep_within_memory(js);
	}
}

/* Likewise for the participants' common partition that this one has taken. */
static void
store_shared_rows(GhJoinState *js)
{
	GhRow	   *row;

	while ((row = gh_parallel_read(js, GH_INNER)) != NULL)
		store_row(js, row);
}

/* Submits the rows of one batch and links what comes back. */
static GhStatus
enter_batch(GhJoinState *js, void *arrays[3], uint64 nrows, GhError *error)
{
	GhCarry    *carry = &js->carry;
	bool		narrow = carry->narrow;
	GhRequest	request = {0};
	GhStatus	status;

	request.op = GH_EXCHANGE;
	request.count = nrows;
	request.keys = arrays[0];
	request.values_in = arrays[1];
	request.values_out = arrays[2];
	request.absent = carry->absent;
	status = gh_run_request(js->table, &request);
	if (status != GH_OK)
	{
		*error = request.error;
		return status;
	}
	if (carry->in_use)
	{
		carry->refused = carry->needs_columns && request.outcome.inserted < nrows;
		return GH_OK;
	}
	for (uint64 i = 0; i < nrows; i++)
		gh_row_set_next(gh_row_at(&js->store, gh_value_ref(narrow, gh_word(narrow, arrays[1], i))),
						gh_value_ref(narrow, gh_word(narrow, arrays[2], i)));
	return GH_OK;
}

/* Ends early, with js->carry.refused, where rows cannot be entered as columns. */
static GhStatus
enter_rows(GhJoinState *js, char *buffer, uint64 capacity, GhError *error)
{
	bool		narrow = js->carry.narrow;
	Size		size = capacity * gh_word_size(js);
	void	   *arrays[3] = {buffer, buffer + size, buffer + 2 * size};
	GhRowCursor cursor = {0};
	GhStatus	status = GH_OK;
	uint64		n = 0;
	GhRow	   *row;

	while ((row = gh_row_store_next(&js->store, &cursor)) != NULL)
	{
		uint64		value;

		if (!gh_row_has_key(row))
			continue;
		js->carry.refused = !gh_table_value(js, row, cursor.ref, &value);
		if (js->carry.refused)
			return GH_OK;
		gh_word_set(narrow, arrays[0], n, row->key);
		gh_word_set(narrow, arrays[1], n, value);
		if (++n == capacity)
		{
			status = enter_batch(js, arrays, n, error);
			if (status != GH_OK || js->carry.refused)
				return status;
			n = 0;
		}
	}
	if (n > 0)
		status = enter_batch(js, arrays, n, error);
	return status;
}

/*
 * Gives the table up, or the handle on it where other participants have it, too.  Asks
 * nothing of a device, which may have failed.  The table knows its engine: js->engine
 * may be that of other participants, for EXPLAIN.
 */
void
gh_join_close_table(GhJoinState *js)
{
	GhTable    *table = js->table;

	gh_probed_drop(js);
	js->table = NULL;
	if (table == NULL)
		return;
	if (js->table_shared)
		table->engine->table_detach(table);
	else
		table->engine->table_destroy(table);
}

/*
 * Opens an empty table on js->engine.  On failure there is no table and *error tells
 * why.
 */
GhStatus
gh_join_open_table(GhJoinState *js, uint64 keys, GhError *error)
{
	GhTableOptions options;
	GhStatus	status;

	/* other engines work with ordinary memory, too */
	if (js->engine->on_device && !gh_take_transfer(js) && js->engine->buffers_required)
		return gh_no_buffers(error);
	gh_options_init(&options, js->engine);
	options.key_size = options.value_size = gh_word_size(js);
	options.capacity = keys;
	options.timing = js->timing;
	options.concurrent_exchange = js->table_shared;
	gh_host_init(&js->host, js->context);
	if (js->table_shared)
		gh_parallel_host(js);
	/* a table of this process alone */
	else if (js->engine->shares_tables)
		js->host.ctx = NULL;
	status = gh_create_table(js->engine, &js->host, &options, &js->table, error);
	/* idle named tables can make room */
	if (gh_make_room(js->engine, status, options.device,
					 options.capacity * gh_table_bytes_of_row(js, js->carry.narrow)))
		status = gh_create_table(js->engine, &js->host, &options, &js->table, error);
	if (status != GH_OK)
		js->table = NULL;
	return status;
}

/*
 * Enters the stored rows, this participant's own ones, into the table.  With
 * js->carry.refused it is to be cleared and they entered again.
 */
GhStatus
gh_join_enter_rows(GhJoinState *js, GhError *error)
{
	Size		row = 3 * gh_word_size(js);
	GhStatus	status;
	char	   *buffer;
	uint64		capacity;

	/* even: arrays of 4 bytes an element begin at a multiple of 8 bytes, too */
	capacity = js->transfer_engine == NULL ? TYPEALIGN(2, Min(js->store.nkeys, GH_BUILD_BATCH)) :
		TYPEALIGN_DOWN(2, js->transfer_bytes / row);
	/* no batch is in flight yet: the first one's buffer is free */
	buffer = js->transfer_engine == NULL ?
		MemoryContextAlloc(js->context, capacity * row) : js->transfer[0];
	status = enter_rows(js, buffer, capacity, error);
	if (js->transfer_engine == NULL)
		pfree(buffer);
	return status;
}

/*
 * Makes the table on js->engine out of the stored rows; failures as above.  In the place
 * of another one that was probed it finds the same in them.
 */
static GhStatus
make_table(GhJoinState *js, GhError *error)
{
	GhStatus	status = gh_join_open_table(js, js->store.nkeys, error);

	if (status != GH_OK)
		return status;
	status = gh_join_enter_rows(js, error);
	if (status == GH_OK && js->carry.refused)
	{
		gh_carry_stop(js);
		status = gh_clear_table(js->table, error);
		if (status == GH_OK)
			status = gh_join_enter_rows(js, error);
	}
	if (status != GH_OK)
		gh_join_close_table(js);
	else if (js->carry.in_use)
		js->carried = true;
	return status;
}

/* Keeps what EXPLAIN shows of a table that is about to go, or is in use. */
void
gh_join_take_stats(GhJoinState *js)
{
	GhTable    *table = js->table == NULL && js->probed != NULL ? js->probed->table : js->table;
	GhError		error;

	if (table != NULL && table->engine->table_stats(table, &js->stats, &error) == GH_OK)
		js->table_bytes_peak = Max(js->table_bytes_peak, js->stats.bytes_peak);
}

void
gh_join_drop_table(GhJoinState *js)
{
	gh_join_take_stats(js);
	gh_join_close_table(js);
}

/* Back to where nothing of the inner side was read. */
void
gh_join_drop_inner(GhJoinState *js)
{
	gh_join_drop_table(js);
	gh_probed_forget_rows(js);
	gh_leave_transfer(js);
	gh_row_store_reset(&js->store);
	gh_spill_reset(&js->spill);
	js->engine = NULL;
	js->inner_rows = 0;
	js->stored = js->built = js->copy_use.used = false;
	if (js->probed != NULL)
		js->probed->of_pages = false;
}

/*
 * A device failed: counts that, and keeps what EXPLAIN says.  With gpuhash.fallback =
 * error, or when it was the CPU engine, raises the error.
 */
void
gh_join_report_failure(GhJoinState *js, const GhError *error)
{
	if (!js->engine->on_device || gh_fallback_setting == GH_FALLBACK_ERROR)
		gh_report_error(error, "join through the hash table");
	strlcpy(js->fallback_reason, error->message, sizeof(js->fallback_reason));
	gh_count_fallback(js->engine, error);
}

/*
 * Goes on without the GPU: the table is made again on the CPU engine.  With
 * gpuhash.fallback = error, or when the CPU engine cannot do it either, raises
 * the error.
 */
void
gh_join_fall_back(GhJoinState *js, const GhError *error)
{
	GhError		cause = *error;

	gh_join_report_failure(js, &cause);
	gh_join_close_table(js);
	if (js->table_shared)
	{
		gh_parallel_fall_back(js);
		return;
	}
	gh_leave_transfer(js);
	js->engine = gh_cpu_engine();
	if (make_table(js, &cause) != GH_OK)
		gh_report_error(&cause, "join through the hash table");
}

/* Whether the node above is to have a table that it can probe, and has. */
static bool
make_probed(GhJoinState *js)
{
	return gh_is_probed_above(js) && js->spill.nparts == 1 && (js->parallel == NULL || !gh_parallel_in_files(js)) &&
		(js->store.nkeys > 0 || js->fill_outer) && gh_probed_make(js);
}

/*
 * Makes the table of the current partition's rows.  With no key in them, there is no
 * table and no engine is woken.
 */
void
gh_join_make_table(GhJoinState *js)
{
	GhError		error;

	if (make_probed(js) || js->store.nkeys == 0)
		return;
	if (js->engine == NULL)
	{
		Plan	   *outer_plan = gh_child(js, GH_OUTER)->plan;

		/* a row that EvalPlanQual looks at again is no work for a device */
		if (js->css.ss.ps.state->es_epq_active != NULL)
			js->engine = gh_cpu_engine();
		else if (js->parallel != NULL)
			js->engine = gh_parallel_choose_engine(js);
		else
			js->engine = gh_choose_engine(js->inner_rows + outer_plan->plan_rows,
										  &js->engine_reason);
	}
	gh_carry_start(js);
	if (make_table(js, &error) != GH_OK)
		gh_join_fall_back(js, &error);
}

/* Reads the inner side, of which some rows may have been read into a table that came to nothing. */
static void
read_inner(GhJoinState *js)
{
	if (js->probed != NULL && js->probed->file != NULL)
		gh_probed_take_rows_back(js);
	else
		gh_join_read_inner(js);
}

/* Reads the inner side and makes the first partition's table. */
void
gh_join_build(GhJoinState *js)
{
	instr_time	start;

	gh_time_start(js, &start);
	if (js->stored || !gh_is_probed_above(js) ||
		(!gh_probed_copy(js) && !gh_probed_read(js) && !gh_probed_pass(js)))
	{
		if (!js->stored)
			read_inner(js);
		gh_join_make_table(js);
	}
	js->built = true;
	gh_time_stop(js, &js->build_time, start);
}

/*
 * Goes on to the next partition that can have a result; false when there is
 * none.
 */
static bool
next_spilled_partition(GhJoinState *js)
{
	GhSpill    *spill = &js->spill;
	instr_time	start;

	/* the one table there is stays, for a rescan */
	if (spill->nparts == 1)
		return false;
	gh_join_drop_table(js);
	gh_row_store_reset(&js->store);
	for (;;)
	{
		gh_spill_close_current(spill);
		if (++spill->current >= spill->nparts)
			return false;
		if (gh_spill_has_file(spill, GH_OUTER, spill->current) ||
			(js->fill_inner && gh_spill_has_file(spill, GH_INNER, spill->current)))
			break;
		gh_spill_skip(js);
	}

	gh_time_start(js, &start);
	/* what could not be parted is gone with the last partition */
	spill->grow_at = 0;
	gh_spill_rewind(js);
	store_spilled_rows(js);
	/* without an outer row, its inner rows come out as they are */
	if (gh_spill_has_file(spill, GH_OUTER, spill->current))
		gh_join_make_table(js);
	js->outer_done = false;
	gh_time_stop(js, &js->build_time, start);
	return true;
}

/* Likewise for the partitions that the participants take one by one. */
static bool
next_shared_partition(GhJoinState *js)
{
	instr_time	start;

	if (js->parallel == NULL || !gh_parallel_in_files(js))
		return false;
	gh_join_drop_table(js);
	gh_row_store_reset(&js->store);
	gh_spill_reset(&js->spill);
	if (!gh_parallel_next_partition(js))
		return false;
	gh_time_start(js, &start);
	store_shared_rows(js);
	gh_join_make_table(js);
	js->outer_done = false;
	gh_time_stop(js, &js->build_time, start);
	return true;
}

/* The next partition of either kind.  The outer side's batches are used up. */
bool
gh_next_partition(GhJoinState *js)
{
	return next_spilled_partition(js) || next_shared_partition(js);
}
