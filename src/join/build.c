/*
 * build.c
 *		The inner side: its rows, and the table from keys to rows.
 *
 * All inner rows are stored first, with their keys, so that the table can be
 * made at its right size.  The table maps a key to the first row of a chain:
 * an exchange enters a row's address under its key and returns the address that
 * was there, which becomes the row's next.  A key with any number of rows takes
 * one entry, and emitting its matches needs no memory.
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
#include "session.h"

/* Rows entered at a time; three 8-byte arrays of this many are needed. */
#define GH_BUILD_BATCH 65536

/* Reads the inner side to its end.  Rows with a NULL key match nothing. */
static void
store_inner_rows(GhJoinState *js)
{
	PlanState  *inner = gh_child(js, GH_INNER);

	for (;;)
	{
		TupleTableSlot *slot;
		uint64		key;

		CHECK_FOR_INTERRUPTS();
		slot = ExecProcNode(inner);
		if (TupIsNull(slot))
			break;
		slot_getsomeattrs(slot, js->columns[GH_INNER].max_attno);
		if (gh_row_key(js, GH_INNER, slot, &key))
			gh_row_store_add(&js->store, slot, key);
	}
}

/* Submits the rows of one batch and links what comes back. */
static GhStatus
enter_batch(GhJoinState *js, uint64 *buffer, uint64 nrows, GhError *error)
{
	GhRequest	request = {0};
	GhStatus	status;

	request.op = GH_EXCHANGE;
	request.count = nrows;
	request.keys = buffer;
	request.values_in = buffer + GH_BUILD_BATCH;
	request.values_out = buffer + 2 * GH_BUILD_BATCH;
	request.absent = 0;
	status = gh_run_request(js->table, &request);
	if (status != GH_OK)
	{
		*error = request.error;
		return status;
	}
	for (uint64 i = 0; i < nrows; i++)
		((GhRow *) (uintptr_t) request.values_in[i])->next =
			(GhRow *) (uintptr_t) request.values_out[i];
	return GH_OK;
}

static GhStatus
enter_rows(GhJoinState *js, uint64 *buffer, GhError *error)
{
	GhRowCursor cursor = {0};
	GhStatus	status = GH_OK;
	uint64		n = 0;
	GhRow	   *row;

	while ((row = gh_row_store_next(&js->store, &cursor)) != NULL)
	{
		buffer[n] = row->key;
		buffer[GH_BUILD_BATCH + n] = (uint64) (uintptr_t) row;
		if (++n == GH_BUILD_BATCH)
		{
			status = enter_batch(js, buffer, n, error);
			if (status != GH_OK)
				return status;
			n = 0;
		}
	}
	if (n > 0)
		status = enter_batch(js, buffer, n, error);
	return status;
}

/*
 * Makes the table on js->engine out of the stored rows.  On failure there is no
 * table and *error tells why.
 */
static GhStatus
make_table(GhJoinState *js, GhError *error)
{
	GhTableOptions options;
	GhStatus	status;
	uint64	   *buffer;

	gh_options_init(&options, js->engine);
	options.capacity = js->store.nrows;
	options.timing = js->timing;
	gh_host_init(&js->host, js->context);
	status = gh_create_table(js->engine, &js->host, &options, &js->table, error);
	if (status != GH_OK)
	{
		js->table = NULL;
		return status;
	}

	buffer = MemoryContextAlloc(js->context, 3 * GH_BUILD_BATCH * sizeof(uint64));
	status = enter_rows(js, buffer, error);
	pfree(buffer);
	if (status != GH_OK)
		gh_join_drop_table(js);
	return status;
}

/* Keeps what EXPLAIN shows of a table that is about to go, or is in use. */
void
gh_join_take_stats(GhJoinState *js)
{
	GhError		error;

	if (js->table != NULL)
		(void) js->engine->table_stats(js->table, &js->stats, &error);
}

void
gh_join_drop_table(GhJoinState *js)
{
	GhTable    *table = js->table;

	if (table == NULL)
		return;
	gh_join_take_stats(js);
	js->table = NULL;
	js->engine->table_destroy(table);
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

	if (!js->engine->asynchronous || gh_fallback_setting == GH_FALLBACK_ERROR)
		gh_report_error(&cause, "join through the hash table");
	strlcpy(js->fallback_reason, cause.message, sizeof(js->fallback_reason));
	gh_join_drop_table(js);
	js->engine = gh_cpu_engine();
	if (make_table(js, &cause) != GH_OK)
		gh_report_error(&cause, "join through the hash table");
}

/*
 * Reads the inner side and makes the table.  With no inner rows there is no
 * table, and no engine is woken.
 */
void
gh_join_build(GhJoinState *js)
{
	EState	   *estate = js->css.ss.ps.state;
	Plan	   *outer_plan = gh_child(js, GH_OUTER)->plan;
	instr_time	start;
	GhError		error;

	gh_time_start(js, &start);
	store_inner_rows(js);
	if (js->store.nrows > 0)
	{
		/* a row that EvalPlanQual looks at again is no work for a device */
		if (estate->es_epq_active != NULL)
			js->engine = gh_cpu_engine();
		else
			js->engine = gh_choose_engine(js->store.nrows + outer_plan->plan_rows,
										  &js->engine_reason);
		if (make_table(js, &error) != GH_OK)
			gh_join_fall_back(js, &error);
	}
	js->built = true;
	gh_time_stop(js, &js->build_time, start);
}
