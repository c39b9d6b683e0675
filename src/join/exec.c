/*
 * exec.c
 *		GpuHashJoin at run time: set-up, the state machine, emission.
 *
 *	phase			does									next
 *	START			reads the inner side, makes the table	FETCH, or DONE where
 *					(kept over a rescan)					a side is empty
 *	FETCH			fills, probes and awaits a batch; at	EMIT, or DONE
 *					the end, goes to the next partition
 *	EMIT			returns the batch's joined rows			FETCH
 *	DONE			returns nothing
 *
 * Rows come out in the order of the outer side.  An outer row's matches are the
 * chain that starts at the row the probe found.
 */
#include "postgres.h"

#include <math.h>

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "join/join.h"
#include "session.h"

/* How many outer rows ahead of emission an inner row is fetched into cache. */
#define GH_PREFETCH_ROWS 12

static Node *create_state(CustomScan *cscan);
static void begin_join(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_join(CustomScanState *node);
static void end_join(CustomScanState *node);
static void rescan_join(CustomScanState *node);

const CustomScanMethods gh_join_scan_methods = {
	.CustomName = GH_JOIN_NAME,
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = GH_JOIN_NAME,
	.BeginCustomScan = begin_join,
	.ExecCustomScan = exec_join,
	.EndCustomScan = end_join,
	.ReScanCustomScan = rescan_join,
	.ExplainCustomScan = gh_join_explain,
};

/* --------------------------------------------------------------- set-up */

static Node *
create_state(CustomScan *cscan)
{
	GhJoinState *js = palloc0(sizeof(GhJoinState));

	NodeSetTag(js, T_CustomScanState);
	js->css.methods = &exec_methods;
	return (Node *) js;
}

static int *
int_array(List *list)
{
	int		   *array = palloc(sizeof(int) * Max(list_length(list), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, list)
		array[n++] = lfirst_int(lc);
	return array;
}

/* Reads what plan.c wrote about the scan tuple. */
static void
init_columns(GhJoinState *js, CustomScan *cscan)
{
	List	   *private = cscan->custom_private;
	int			kept;

	js->nkept[GH_OUTER] = intVal(list_nth(private, GH_PRIVATE_KEPT_OUTER));
	js->nkept[GH_INNER] = intVal(list_nth(private, GH_PRIVATE_KEPT_INNER));
	kept = js->nkept[GH_OUTER] + js->nkept[GH_INNER];
	js->ncopies = intVal(list_nth(private, GH_PRIVATE_COPIES));
	js->scan_sides = int_array(list_nth(private, GH_PRIVATE_SCAN_SIDES));
	js->scan_attnos = int_array(list_nth(private, GH_PRIVATE_SCAN_ATTNOS));
	js->nscan = list_length(list_nth(private, GH_PRIVATE_SCAN_SIDES));

	js->copy_sources = palloc0(sizeof(int) * Max(js->ncopies, 1));
	for (int i = 0; i < js->ncopies; i++)
		for (int j = 0; j < kept; j++)
			if (js->scan_sides[j] == js->scan_sides[kept + i] &&
				js->scan_attnos[j] == js->scan_attnos[kept + i])
				js->copy_sources[i] = j;

	for (int side = GH_OUTER; side <= GH_INNER; side++)
	{
		GhColumns  *columns = &js->columns[side];

		gh_columns_init(columns, js->nkept[side],
						js->scan_attnos + (side == GH_OUTER ? 0 : js->nkept[GH_OUTER]),
						ExecGetResultType(gh_child(js, side)));
		/* keys may read columns that are not kept */
		for (int i = 0; i < js->nscan; i++)
			if (js->scan_sides[i] == side)
				columns->max_attno = Max(columns->max_attno, js->scan_attnos[i]);
	}
}

/* A key that is nothing but a column of the child is read from its slot. */
static int
plain_column(GhJoinState *js, Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	if (IsA(expr, Var) && ((Var *) expr)->varno == INDEX_VAR)
		return js->scan_attnos[((Var *) expr)->varattno - 1];
	return 0;
}

static void
init_keys(GhJoinState *js, CustomScan *cscan, int side)
{
	List	   *exprs = list_nth(cscan->custom_exprs,
								 side == GH_OUTER ? GH_EXPRS_OUTER_KEYS : GH_EXPRS_INNER_KEYS);
	List	   *encodings = list_nth(cscan->custom_private, GH_PRIVATE_KEY_ENCODINGS);
	List	   *procs = list_nth(cscan->custom_private, GH_PRIVATE_KEY_PROCS);
	List	   *collations = list_nth(cscan->custom_private, GH_PRIVATE_KEY_COLLATIONS);
	List	   *bits = list_nth(cscan->custom_private, GH_PRIVATE_KEY_BITS);
	GhKeySide  *keys = &js->keys[side];

	keys->ncolumns = list_length(exprs);
	keys->columns = palloc0(sizeof(GhKeyColumn) * keys->ncolumns);
	keys->exact = true;
	for (int i = 0; i < keys->ncolumns; i++)
	{
		GhKeyColumn *column = &keys->columns[i];
		Oid			proc = list_nth_oid(procs, 2 * i + side);

		column->encoding = (GhKeyEncoding) list_nth_int(encodings, 2 * i + side);
		column->bits = list_nth_int(bits, i);
		column->collation = list_nth_oid(collations, i);
		column->attno = plain_column(js, list_nth(exprs, i));
		if (column->attno == 0)
		{
			column->expr = ExecInitExpr(list_nth(exprs, i), &js->css.ss.ps);
			keys->has_exprs = true;
		}
		if (OidIsValid(proc))
			fmgr_info(proc, &column->hash);
		keys->exact = keys->exact && column->bits > 0;
	}
}

/* Runs when the query's memory goes, after an error too. */
static void
release_engine(void *arg)
{
	GhJoinState *js = (GhJoinState *) arg;

	/* the table first: it waits for what is in flight into the buffers */
	if (js->table != NULL)
		js->engine->table_destroy(js->table);
	js->table = NULL;
	gh_free_transfer(js);
}

static void
begin_join(CustomScanState *node, EState *estate, int eflags)
{
	GhJoinState *js = (GhJoinState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	ListCell   *lc;

	foreach(lc, cscan->custom_plans)
		node->custom_ps = lappend(node->custom_ps,
								  ExecInitNode((Plan *) lfirst(lc), estate, eflags));

	js->jointype = (JoinType) intVal(list_nth(cscan->custom_private, GH_PRIVATE_JOINTYPE));
	js->single_match = intVal(list_nth(cscan->custom_private, GH_PRIVATE_INNER_UNIQUE)) != 0;
	init_columns(js, cscan);
	init_keys(js, cscan, GH_OUTER);
	init_keys(js, cscan, GH_INNER);
	js->hash_clauses = list_nth(cscan->custom_exprs, GH_EXPRS_HASH_CLAUSES);
	js->join_quals = list_nth(cscan->custom_exprs, GH_EXPRS_JOIN_QUALS);
	if (!js->keys[GH_OUTER].exact)
		js->recheck = ExecInitQual(js->hash_clauses, &node->ss.ps);
	js->joinqual = ExecInitQual(js->join_quals, &node->ss.ps);

	js->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHashJoin",
										ALLOCSET_DEFAULT_SIZES);
	js->cleanup.func = release_engine;
	js->cleanup.arg = js;
	MemoryContextRegisterResetCallback(js->context, &js->cleanup);
	js->memory_limit = get_hash_memory_limit();
	js->table_bytes_per_row = (Size) ceil(gh_table_bytes_per_row());
	gh_row_store_init(&js->store, js->context, &js->columns[GH_INNER], js->memory_limit);
	js->spill.context = js->context;
	js->spill.nparts = js->partitions_peak = 1;
	js->timing = estate->es_instrument & INSTRUMENT_TIMER;
	js->batch_rows = GH_BATCH_ROWS_MIN;
	js->phase = GH_JOIN_START;
}

/* ------------------------------------------------------- the scan tuple */

/* Nobody above the node gets this slot, so nobody else changes it. */
static inline void
mark_scan_tuple_full(TupleTableSlot *slot)
{
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
}

/*
 * The key of a child's row; false when it has none (NULL).  Keys that are
 * expressions are evaluated over the scan tuple, so its columns of that side
 * are loaded first: never while a row is being emitted.
 */
bool
gh_row_key(GhJoinState *js, int side, TupleTableSlot *slot, uint64 *key)
{
	ExprContext *econtext = js->css.ss.ps.ps_ExprContext;
	GhKeySide  *keys = &js->keys[side];
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	MemoryContext saved;
	bool		found;

	/* encodings that call no function need no memory */
	if (keys->exact && !keys->has_exprs)
		return gh_encode_key(keys, slot, econtext, key);

	ResetExprContext(econtext);
	if (keys->has_exprs)
	{
		for (int i = 0; i < js->nscan; i++)
			if (js->scan_sides[i] == side)
			{
				scan->tts_values[i] = slot->tts_values[js->scan_attnos[i] - 1];
				scan->tts_isnull[i] = slot->tts_isnull[js->scan_attnos[i] - 1];
			}
		mark_scan_tuple_full(scan);
		econtext->ecxt_scantuple = scan;
	}
	saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	found = gh_encode_key(keys, slot, econtext, key);
	MemoryContextSwitchTo(saved);
	return found;
}

static inline void
load_outer(GhJoinState *js, const GhBatch *batch)
{
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	int			n = js->nkept[GH_OUTER];
	const Datum *values = batch->values + (Size) js->row * n;
	const bool *nulls = batch->nulls + (Size) js->row * n;

	for (int i = 0; i < n; i++)
	{
		scan->tts_values[i] = values[i];
		scan->tts_isnull[i] = nulls[i];
	}
	js->row_loaded = true;
}

static inline void
load_copies(GhJoinState *js)
{
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	int			first = js->nkept[GH_OUTER] + js->nkept[GH_INNER];

	for (int i = 0; i < js->ncopies; i++)
	{
		scan->tts_values[first + i] = scan->tts_values[js->copy_sources[i]];
		scan->tts_isnull[first + i] = scan->tts_isnull[js->copy_sources[i]];
	}
}

/* inner NULL: the null-extended row of a left join. */
static inline void
load_inner(GhJoinState *js, GhRow *inner)
{
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	int			first = js->nkept[GH_OUTER];
	int			n = js->nkept[GH_INNER];

	if (inner != NULL)
	{
		const Datum *values = gh_row_values(&js->columns[GH_INNER], inner);
		const bool *nulls = gh_row_nulls(inner);

		for (int i = 0; i < n; i++)
		{
			scan->tts_values[first + i] = values[i];
			scan->tts_isnull[first + i] = nulls[i];
		}
	}
	else
		for (int i = first; i < first + n; i++)
		{
			scan->tts_values[i] = (Datum) 0;
			scan->tts_isnull[i] = true;
		}
	load_copies(js);
	mark_scan_tuple_full(scan);
}

/* ------------------------------------------------------------- emission */

/* The scan tuple as the node's result, or NULL when the filter drops it. */
static TupleTableSlot *
project_row(GhJoinState *js)
{
	PlanState  *ps = &js->css.ss.ps;

	if (ps->qual != NULL && !ExecQual(ps->qual, ps->ps_ExprContext))
	{
		InstrCountFiltered1(ps, 1);
		return NULL;
	}
	/* the scan tuple has columns for the keys, so it never is the result itself */
	Assert(ps->ps_ProjInfo != NULL);
	return ExecProject(ps->ps_ProjInfo);
}

/* Starts on the current outer row: looks up its first match. */
static inline void
open_row(GhJoinState *js, const GhBatch *batch)
{
	js->row_open = true;
	js->row_loaded = false;
	js->row_matched = false;
	js->match = NULL;
	if (batch->has_key[js->row])
	{
		int			ahead = js->probe + GH_PREFETCH_ROWS;

		js->match = (GhRow *) (uintptr_t) batch->found[js->probe++];
		if (ahead < batch->nprobes && batch->found[ahead] != 0)
		{
			const char *row = (const char *) (uintptr_t) batch->found[ahead];

			/* rows are not aligned to cache lines: most take two */
			__builtin_prefetch(row);
			__builtin_prefetch(row + 64);
		}
	}
}

/*
 * The current outer row's next joined row, or NULL when it has no more.  The
 * join's own quals decide what matches; the filter only what comes out.
 */
static TupleTableSlot *
next_joined_row(GhJoinState *js, const GhBatch *batch)
{
	ExprContext *econtext = js->css.ss.ps.ps_ExprContext;

	while (js->match != NULL)
	{
		GhRow	   *inner = js->match;
		TupleTableSlot *result;

		/* quals may drop any number of matches before a row comes out */
		CHECK_FOR_INTERRUPTS();
		js->match = inner->next;
		if (js->match != NULL)
			__builtin_prefetch(js->match);
		ResetExprContext(econtext);
		if (!js->row_loaded)
			load_outer(js, batch);
		load_inner(js, inner);
		econtext->ecxt_scantuple = js->css.ss.ss_ScanTupleSlot;
		if (js->recheck != NULL && !ExecQual(js->recheck, econtext))
			continue;
		if (js->joinqual != NULL && !ExecQual(js->joinqual, econtext))
		{
			js->removed_by_join_filter++;
			continue;
		}
		js->row_matched = true;
		if (js->single_match)
			js->match = NULL;
		result = project_row(js);
		if (result != NULL)
			return result;
	}

	if (js->jointype == JOIN_LEFT && !js->row_matched)
	{
		/* once: the row now counts as matched */
		js->row_matched = true;
		ResetExprContext(econtext);
		if (!js->row_loaded)
			load_outer(js, batch);
		load_inner(js, NULL);
		econtext->ecxt_scantuple = js->css.ss.ss_ScanTupleSlot;
		return project_row(js);
	}
	return NULL;
}

/* The current batch's next joined row, or NULL at its end. */
static TupleTableSlot *
emit_row(GhJoinState *js)
{
	const GhBatch *batch = &js->batch[js->current];

	while (js->row < batch->nrows)
	{
		TupleTableSlot *result;

		/* likewise outer rows */
		CHECK_FOR_INTERRUPTS();
		if (!js->row_open)
			open_row(js, batch);
		result = next_joined_row(js, batch);
		if (result != NULL)
			return result;
		js->row_open = false;
		js->row++;
	}
	return NULL;
}

/* ---------------------------------------------------- the state machine */

/*
 * Reads the inner side unless that was done before a rescan.  When the outer
 * side starts more cheaply than the inner side takes in all, one outer row is
 * read first: with none, the inner side need not be read.  False: no result.
 */
static bool
start_join(GhJoinState *js)
{
	PlanState  *outer = gh_child(js, GH_OUTER);
	PlanState  *inner = gh_child(js, GH_INNER);

	if (!js->built)
	{
		if (outer->plan->startup_cost < inner->plan->total_cost)
		{
			js->first_outer = ExecProcNode(outer);
			if (TupIsNull(js->first_outer))
				return false;
		}
		gh_join_build(js);
	}
	return js->jointype == JOIN_LEFT || js->table != NULL || js->spill.nparts > 1;
}

static TupleTableSlot *
exec_join(CustomScanState *node)
{
	GhJoinState *js = (GhJoinState *) node;

	for (;;)
	{
		TupleTableSlot *result;

		switch (js->phase)
		{
			case GH_JOIN_START:
				js->phase = start_join(js) ? GH_JOIN_FETCH : GH_JOIN_DONE;
				break;

			case GH_JOIN_FETCH:
				if (!gh_next_batch(js))
				{
					if (!gh_next_partition(js))
						js->phase = GH_JOIN_DONE;
					break;
				}
				js->row = js->probe = 0;
				js->row_open = false;
				js->phase = GH_JOIN_EMIT;
				break;

			case GH_JOIN_EMIT:
				result = emit_row(js);
				if (result != NULL)
					return result;
				js->phase = GH_JOIN_FETCH;
				break;

			case GH_JOIN_DONE:
				return NULL;
		}
	}
}

static void
drop_inner(GhJoinState *js)
{
	gh_join_drop_table(js);
	gh_leave_transfer(js);
	gh_row_store_reset(&js->store);
	gh_spill_reset(&js->spill);
	js->engine = NULL;
	js->inner_rows = 0;
	js->built = false;
}

/*
 * The table is kept unless the inner side may now have other rows or its keys
 * other values, or part of it is gone with its partition.
 */
static void
rescan_join(CustomScanState *node)
{
	GhJoinState *js = (GhJoinState *) node;
	PlanState  *outer = gh_child(js, GH_OUTER);
	PlanState  *inner = gh_child(js, GH_INNER);

	/* the core does this for left and right subtrees only */
	if (node->ss.ps.chgParam != NULL)
	{
		UpdateChangedParamSet(outer, node->ss.ps.chgParam);
		UpdateChangedParamSet(inner, node->ss.ps.chgParam);
	}

	gh_forget_batches(js);
	if (inner->chgParam != NULL || js->spill.nparts > 1 ||
		(node->ss.ps.chgParam != NULL && js->keys[GH_INNER].has_exprs))
	{
		drop_inner(js);
		/* with changed parameters, the first ExecProcNode rescans the child */
		if (inner->chgParam == NULL)
			ExecReScan(inner);
	}
	else if (!js->built)
		ExecReScan(inner);
	if (outer->chgParam == NULL)
		ExecReScan(outer);
	js->phase = GH_JOIN_START;
}

static void
end_join(CustomScanState *node)
{
	GhJoinState *js = (GhJoinState *) node;
	ListCell   *lc;

	foreach(lc, node->custom_ps)
		ExecEndNode((PlanState *) lfirst(lc));
	gh_spill_reset(&js->spill);
	/* its callback gives back what the engine holds */
	if (js->context != NULL)
		MemoryContextDelete(js->context);
	js->context = NULL;
}
