/*
 * exec.c
 *		GpuHashJoin at run time: set-up, the state machine, rescans.
 *
 *	phase			does									next
 *	START			reads the inner side, makes the table	FETCH, or DONE where
 *					(kept over a rescan)					a side is empty
 *	FETCH			fills, probes and awaits a batch		EMIT, or at the end of the
 *															outer rows UNMATCHED
 *	EMIT			returns the batch's joined rows			FETCH
 *	UNMATCHED		returns inner rows without a match,		FETCH, or DONE
 *					where they come out; then goes to the
 *					next partition; of several participants
 *					with a common table the last one does
 *	DONE			returns nothing
 */
#include "postgres.h"

#include <math.h>

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/source.h"
#include "service/placement.h"
#include "service/service.h"

static Node *create_state(CustomScan *cscan);
static void begin_join(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_join(CustomScanState *node);
static void end_join(CustomScanState *node);
static void rescan_join(CustomScanState *node);

static const CustomScanMethods scan_methods = {
	.CustomName = GH_JOIN_NAME,
	.CreateCustomScanState = create_state,
};

static const CustomExecMethods exec_methods = {
	.CustomName = GH_JOIN_NAME,
	.BeginCustomScan = begin_join,
	.ExecCustomScan = exec_join,
	.EndCustomScan = end_join,
	.ReScanCustomScan = rescan_join,
	.EstimateDSMCustomScan = gh_parallel_estimate,
	.InitializeDSMCustomScan = gh_parallel_init,
	.ReInitializeDSMCustomScan = gh_parallel_reinit,
	.InitializeWorkerCustomScan = gh_parallel_init_worker,
	.ShutdownCustomScan = gh_parallel_shutdown,
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

/* Reads what join_plan.c wrote about the scan tuple. */
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

/* What the join type asks of emission; the table is in emit.c. */
static void
init_join_type(GhJoinState *js, CustomScan *cscan)
{
	JoinType	type = (JoinType) intVal(list_nth(cscan->custom_private, GH_PRIVATE_JOINTYPE));
	bool		inner_unique = intVal(list_nth(cscan->custom_private, GH_PRIVATE_INNER_UNIQUE)) != 0;
	int			key_bits = 0;

	for (int i = 0; i < js->keys[GH_INNER].ncolumns; i++)
		key_bits += js->keys[GH_INNER].columns[i].bits;
	js->keys_are_short = js->keys[GH_INNER].exact && key_bits <= GH_SHORT_KEY_BITS;
	js->jointype = type;
	js->keys_repeat = intVal(list_nth(cscan->custom_private, GH_PRIVATE_KEYS_REPEAT)) != 0;
	js->is_plain = intVal(list_nth(cscan->custom_private, GH_PRIVATE_PLAIN)) != 0;
	js->is_coded = js->is_plain && !js->keys[GH_OUTER].exact;
	js->index = linitial_oid(list_nth(cscan->custom_private, GH_PRIVATE_INDEX));
	js->single_match = inner_unique || type == JOIN_SEMI || type == JOIN_ANTI;
	js->emits_pairs = type != JOIN_ANTI && !gh_is_right_anti(type);
	js->fill_outer = type == JOIN_LEFT || type == JOIN_FULL || type == JOIN_ANTI;
	js->fill_inner = type == JOIN_RIGHT || type == JOIN_FULL || gh_is_right_anti(type);
	js->once_per_inner = gh_is_right_semi(type) || gh_is_right_anti(type);
	js->marks_inner = js->fill_inner || js->once_per_inner;
	js->looks_at_inner = !js->single_match || js->marks_inner || js->recheck != NULL ||
		js->joinqual != NULL || (js->emits_pairs && js->nkept[GH_INNER] > 0);
}

/* Runs when the query's memory goes, after an error too. */
static void
release_engine(void *arg)
{
	GhJoinState *js = (GhJoinState *) arg;

	gh_parallel_forget(js);
	/* the table first: it waits for what is in flight into the buffers */
	gh_join_close_table(js);
	gh_free_transfer(js);
}

static void
begin_join(CustomScanState *node, EState *estate, int eflags)
{
	GhJoinState *js = (GhJoinState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;

	gh_service_count_node(GH_USE_JOINS, eflags);
	outerPlanState(node) = ExecInitNode(outerPlan(cscan), estate, eflags);
	innerPlanState(node) = ExecInitNode(innerPlan(cscan), estate, eflags);

	/* the scan tuple has columns for the keys, so it never is the result itself */
	if (node->ss.ps.ps_ProjInfo == NULL)
		elog(ERROR, "a hash join's output is its scan tuple");
	init_columns(js, cscan);
	init_keys(js, cscan, GH_OUTER);
	init_keys(js, cscan, GH_INNER);
	js->hash_clauses = list_nth(cscan->custom_exprs, GH_EXPRS_HASH_CLAUSES);
	js->join_quals = list_nth(cscan->custom_exprs, GH_EXPRS_JOIN_QUALS);
	if (!js->keys[GH_OUTER].exact)
		js->recheck = ExecInitQual(js->hash_clauses, &node->ss.ps);
	js->joinqual = ExecInitQual(js->join_quals, &node->ss.ps);
	gh_source_init(js, GH_OUTER, estate, eflags);
	gh_source_init(js, GH_INNER, estate, eflags);
	gh_pipe_init(js);
	init_join_type(js, cscan);
	gh_carry_init(js);
	gh_emit_init(js);

	js->context = AllocSetContextCreate(CurrentMemoryContext, "GpuHashJoin",
										ALLOCSET_DEFAULT_SIZES);
	js->cleanup.func = release_engine;
	js->cleanup.arg = js;
	MemoryContextRegisterResetCallback(js->context, &js->cleanup);
	js->memory_limit = get_hash_memory_limit();
	js->table_bytes_per_row = (Size) ceil(gh_table_bytes_per_row(sizeof(uint64)));
	gh_row_store_init(&js->store, js->context, &js->columns[GH_INNER], js->memory_limit);
	js->spill.context = js->context;
	js->spill.nparts = js->partitions_peak = 1;
	js->timing = estate->es_instrument & INSTRUMENT_TIMER;
	gh_batch_init(js);
	gh_lower_init(js);
	js->phase = GH_JOIN_START;
}

/* ---------------------------------------------------- the state machine */

/*
 * Whether to read one outer row before the inner side, which with no outer row need
 * not be read: not where its rows come out anyway; and else where that row is
 * cheap, or where an empty inner side would not end the join.
 */
static bool
outer_comes_first(GhJoinState *js)
{
	if (js->fill_inner)
		return false;
	return js->fill_outer ||
		gh_child(js, GH_OUTER)->plan->startup_cost < gh_child(js, GH_INNER)->plan->total_cost;
}

/*
 * The join is to return its rows, and has a table for the node above.  Where that was made of pages, the
 * inner side is read once more; where of rows as they came, their file is.
 */
static void
give_probed_up(GhJoinState *js)
{
	PlanState  *inner = gh_child(js, GH_INNER);

	if (!js->probed->of_pages)
	{
		gh_probed_drop(js);
		js->engine = NULL;
		if (js->probed->file != NULL)
			gh_probed_take_rows_back(js);
		gh_join_make_table(js);
		return;
	}
	gh_join_drop_inner(js);
	if (inner->chgParam == NULL)
		ExecReScan(inner);
}

/* Reads the inner side unless that was done before a rescan.  Returns the next phase. */
static GhJoinPhase
start_join(GhJoinState *js)
{
	bool		probed = gh_is_probed_above(js);

	if (js->parallel != NULL)
		return gh_parallel_start(js);
	if (js->built && !probed && js->probed != NULL && js->probed->table != NULL)
		give_probed_up(js);
	if (!js->built)
	{
		if (!probed && !js->stored && outer_comes_first(js) && !gh_outer_has_row(js))
			return GH_JOIN_DONE;
		gh_join_build(js);
	}
	if (js->fill_outer || js->table != NULL || js->spill.nparts > 1 || (probed && js->probed->table != NULL))
		return GH_JOIN_FETCH;
	/* no outer row can have a match, and none that was looked at is needed */
	if (js->source[GH_OUTER] != NULL)
		gh_source_reset(js->source[GH_OUTER]);
	gh_emit_unmatched_start(js);
	return GH_JOIN_UNMATCHED;
}

/* Puts the node's next row into the scan tuple; false when there are no more. */
bool
gh_join_advance(GhJoinState *js)
{
	for (;;)
	{
		switch (js->phase)
		{
			case GH_JOIN_START:
				js->phase = start_join(js);
				break;

			case GH_JOIN_FETCH:
				if (gh_next_batch(js))
				{
					gh_emit_start(js);
					js->phase = GH_JOIN_EMIT;
				}
				else if (gh_parallel_probed(js))
				{
					gh_emit_unmatched_start(js);
					js->phase = GH_JOIN_UNMATCHED;
				}
				else
					js->phase = GH_JOIN_DONE;
				break;

			case GH_JOIN_EMIT:
				if (gh_emit_row(js))
					return true;
				js->phase = GH_JOIN_FETCH;
				break;

			case GH_JOIN_UNMATCHED:
				if (js->fill_inner && gh_emit_unmatched(js))
					return true;
				js->phase = gh_next_partition(js) ? GH_JOIN_FETCH : GH_JOIN_DONE;
				break;

			case GH_JOIN_DONE:
				return false;
		}
	}
}

/* Whether the join, when it starts, would look for an outer row before it reads its inner side. */
bool
gh_join_asks_outer_first(GhJoinState *js)
{
	return js->parallel == NULL && js->phase == GH_JOIN_START && !js->built && !js->stored &&
		outer_comes_first(js);
}

/*
 * For a node above that reads the outer side by itself: reads the inner side.  on_host: with
 * engine = cuda, too, the table is to be one of the CPU engine.  True: it may probe js->probed->table, and no
 * more rows are to be asked for.  False: this node returns its rows.
 */
bool
gh_join_open_for_probes(GhJoinState *js, bool on_host)
{
	if (js->probed == NULL || (!on_host && gh_engine_setting == GH_ENGINE_CUDA))
		return false;
	js->probed->wanted = true;
	if (js->phase == GH_JOIN_START)
		js->phase = start_join(js);
	js->probed->wanted = js->phase == GH_JOIN_FETCH && js->probed->table != NULL;
	return js->probed->wanted;
}

/*
 * The node above does not probe after all, as another join was not open to that, and this one returns rows.
 * It is one of this process alone.
 */
void
gh_join_return_rows(GhJoinState *js)
{
	Assert(js->parallel == NULL);
	js->probed->wanted = false;
	js->phase = GH_JOIN_START;
}

/*
 * For a node above that has an engine make the table: reads an inner side that is rows, which stay stored,
 * for this join too if it is to return rows after all.  False: they are not all in memory, or that is not for
 * a single process to do.
 */
bool
gh_join_store_inner(GhJoinState *js)
{
	if (js->parallel != NULL || js->source[GH_INNER] != NULL || js->css.ss.ps.state->es_epq_active != NULL ||
		(js->probed != NULL && js->probed->file != NULL))
		return false;
	if (!js->built && !js->stored)
	{
		instr_time	start;

		gh_time_start(js, &start);
		gh_join_read_inner(js);
		js->stored = true;
		gh_time_stop(js, &js->build_time, start);
	}
	return js->spill.nparts == 1;
}

/* The node above has read all of the outer side. */
void
gh_join_close_for_probes(GhJoinState *js)
{
	(void) gh_parallel_probed(js);
	js->phase = GH_JOIN_DONE;
}

static TupleTableSlot *
exec_join(CustomScanState *node)
{
	GhJoinState *js = (GhJoinState *) node;

	return gh_join_advance(js) ? gh_emit_project(js) : NULL;
}

/* The node's state, if it is such a join; else NULL. */
GhJoinState *
gh_as_join(PlanState *ps)
{
	if (IsA(ps, CustomScanState) && ((CustomScanState *) ps)->methods == &exec_methods)
		return (GhJoinState *) ps;
	return NULL;
}

/*
 * The table is kept unless the inner side may now have other rows or its keys
 * other values, or part of it is gone with its partition.  Its rows' marks go.
 */
static void
rescan_join(CustomScanState *node)
{
	GhJoinState *js = (GhJoinState *) node;
	PlanState  *outer = gh_child(js, GH_OUTER);
	PlanState  *inner = gh_child(js, GH_INNER);

	gh_forget_batches(js);
	if (js->probed != NULL)
		js->probed->wanted = false;
	for (int side = GH_OUTER; side <= GH_INNER; side++)
		if (js->source[side] != NULL)
			gh_source_reset(js->source[side]);
	if (js->parallel != NULL)
	{
		gh_parallel_rescan(js);
		if (inner->chgParam == NULL)
			ExecReScan(inner);
	}
	else if (inner->chgParam != NULL || js->spill.nparts > 1 ||
		(node->ss.ps.chgParam != NULL && js->keys[GH_INNER].has_exprs))
	{
		gh_join_drop_inner(js);
		/* with changed parameters, the first ExecProcNode rescans the child */
		if (inner->chgParam == NULL)
			ExecReScan(inner);
	}
	else if (!js->built && !js->stored)
	{
		js->inner_rows = 0;
		ExecReScan(inner);
	}
	else if (js->marks_inner)
		gh_unmark_rows(js);
	if (outer->chgParam == NULL)
		ExecReScan(outer);
	js->phase = GH_JOIN_START;
}

static void
end_join(CustomScanState *node)
{
	GhJoinState *js = (GhJoinState *) node;

	gh_parallel_shutdown(node);
	for (int side = GH_OUTER; side <= GH_INNER; side++)
		if (js->source[side] != NULL)
			gh_source_end(js->source[side]);
	ExecEndNode(outerPlanState(node));
	ExecEndNode(innerPlanState(node));
	gh_spill_reset(&js->spill);
	gh_probed_forget_rows(js);
	/* its callback gives back what the engine holds */
	if (js->context != NULL)
		MemoryContextDelete(js->context);
	js->context = NULL;
}

/* Called by _PG_init. */
void
gh_join_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
	gh_lower_register(gh_lower_of);
}
