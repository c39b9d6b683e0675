/*
 * emit.c
 *		Joined rows: the scan tuple, the matches of a batch, and what has no match.
 *
 * Outer rows come out in their order.  An outer row's matches are the chain that
 * starts at the row the probe found.  What a join type does with them:
 *
 *	type			matches		outer rows without one	inner rows without one
 *	INNER			come out
 *	LEFT			come out	come out
 *	RIGHT			come out							come out
 *	FULL			come out	come out				come out
 *	SEMI			the first of an outer row
 *	RIGHT SEMI		the first of an inner row
 *	ANTI						come out
 *	RIGHT ANTI											come out
 *
 * The join's own quals decide what a match is; the filter drops of what comes out,
 * and has no say in whether a row was matched.
 *
 * An inner row that was matched is marked, where that is asked for later: by the
 * scan over the partition's rows that follows its last batch, or by the next outer
 * row of a right semi or right anti join.  The marks are cleared for a rescan.
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "gpuhash.h"
#include "join/join.h"
#include "join/source.h"

/* How many outer rows ahead of emission an inner row is fetched into cache. */
#define GH_PREFETCH_ROWS 12

/* ------------------------------------------------------- the scan tuple */

/* Makes a virtual slot, whose values are in place, hold a row. */
static inline void
mark_tuple_full(TupleTableSlot *slot)
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
		mark_tuple_full(scan);
		econtext->ecxt_scantuple = scan;
	}
	saved = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	found = gh_encode_key(keys, slot, econtext, key);
	MemoryContextSwitchTo(saved);
	return found;
}

/* Columns first to first + n - 1; values NULL: the null-extended row. */
static inline void
load_columns(TupleTableSlot *scan, int first, int n, const Datum *values, const bool *nulls)
{
	if (values == NULL)
		for (int i = first; i < first + n; i++)
		{
			scan->tts_values[i] = (Datum) 0;
			scan->tts_isnull[i] = true;
		}
	else
		for (int i = 0; i < n; i++)
		{
			scan->tts_values[first + i] = values[i];
			scan->tts_isnull[first + i] = nulls[i];
		}
}

static inline void
load_outer(GhJoinState *js, const GhBatch *batch)
{
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	int			n = js->nkept[GH_OUTER];

	if (batch->as_tuples)
		gh_reader_load(&js->source[GH_OUTER]->kept_columns, batch->tuples[js->row],
					   scan->tts_values, scan->tts_isnull);
	else
		load_columns(scan, 0, n, batch->values + (Size) js->row * n,
					 batch->nulls + (Size) js->row * n);
	js->row_loaded = true;
}

/* Completes the scan tuple, whose kept columns are there, and makes it what expressions read. */
static inline void
finish_scan_tuple(GhJoinState *js)
{
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	int			first = js->nkept[GH_OUTER] + js->nkept[GH_INNER];

	for (int i = 0; i < js->ncopies; i++)
	{
		scan->tts_values[first + i] = scan->tts_values[js->copy_sources[i]];
		scan->tts_isnull[first + i] = scan->tts_isnull[js->copy_sources[i]];
	}
	mark_tuple_full(scan);
	js->css.ss.ps.ps_ExprContext->ecxt_scantuple = scan;
}

/* The scan tuple's inner columns, after the outer ones.  inner NULL: the null-extended row. */
static inline void
load_inner(GhJoinState *js, GhRow *inner)
{
	const GhColumns *columns = &js->columns[GH_INNER];
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	int			first = js->nkept[GH_OUTER];

	if (inner == NULL || columns->all_byval)
		load_columns(scan, first, columns->ncolumns,
					 inner == NULL ? NULL : gh_row_values(columns, inner),
					 inner == NULL ? NULL : gh_row_nulls(inner));
	else
		gh_row_load(columns, inner, scan->tts_isnull + first, scan->tts_values + first);
	finish_scan_tuple(js);
}

/* Likewise the inner columns that the table has. */
static inline void
load_carried(GhJoinState *js, uint64 value)
{
	const GhColumns *columns = &js->columns[GH_INNER];
	const GhCarry *carry = &js->carry;
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	int			first = js->nkept[GH_OUTER];
	GhCarried	carried = {0};
	int			nulls = 0;

	if (carry->narrow)
		carried.narrow = (uint32) value;
	else
		carried.value = value;
	if (carry->has_nulls)
		nulls = carried.bytes[carry->narrow ? GH_CARRY_NARROW_NULLS : GH_CARRY_NULLS];
	for (int i = 0; i < columns->ncolumns; i++)
	{
		scan->tts_values[first + i] = fetch_att(carried.bytes + carry->offsets[i], true,
												columns->typlens[i]);
		scan->tts_isnull[first + i] = (nulls >> i & 1) != 0;
	}
	finish_scan_tuple(js);
}

/* What a pair with the current outer row begins with. */
static inline void
start_pair(GhJoinState *js, const GhBatch *batch)
{
	if (js->evaluates)
		ResetExprContext(js->css.ss.ps.ps_ExprContext);
	if (!js->row_loaded)
		load_outer(js, batch);
}

/* The scan tuple of the current outer row and an inner row, or NULL for none. */
static inline void
load_pair(GhJoinState *js, const GhBatch *batch, GhRow *inner)
{
	start_pair(js, batch);
	load_inner(js, inner);
}

/* The scan tuple's columns that make up the node's result. */
static inline TupleTableSlot *
copy_columns(GhJoinState *js)
{
	const TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;
	TupleTableSlot *result = js->css.ss.ps.ps_ResultTupleSlot;
	int			n = result->tts_tupleDescriptor->natts;

	/* a node above may have had it hold copies of its own */
	if (TTS_SHOULDFREE(result))
		ExecClearTuple(result);
	for (int i = 0; i < n; i++)
	{
		result->tts_values[i] = scan->tts_values[js->output_columns[i]];
		result->tts_isnull[i] = scan->tts_isnull[js->output_columns[i]];
	}
	mark_tuple_full(result);
	return result;
}

/* Whether the filter lets the row in the scan tuple come out. */
static inline bool
passes_filter(GhJoinState *js)
{
	PlanState  *ps = &js->css.ss.ps;

	if (ps->qual == NULL || ExecQual(ps->qual, ps->ps_ExprContext))
		return true;
	InstrCountFiltered1(ps, 1);
	return false;
}

/* The row in the scan tuple as the node's result. */
TupleTableSlot *
gh_emit_project(GhJoinState *js)
{
	/* the scan tuple has columns for the keys, so it never is the result itself */
	Assert(js->css.ss.ps.ps_ProjInfo != NULL);
	return js->output_columns != NULL ? copy_columns(js) :
		ExecProject(js->css.ss.ps.ps_ProjInfo);
}

/*
 * What the node's output asks of emission.  Where it is just columns, they are copied, and
 * without a qual either, nothing is evaluated.
 */
void
gh_emit_init(GhJoinState *js)
{
	PlanState  *ps = &js->css.ss.ps;
	const GhColumns *inner = &js->columns[GH_INNER];
	List	   *tlist = ps->plan->targetlist;
	int		   *columns = palloc(sizeof(int) * Max(list_length(tlist), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, tlist)
	{
		Var		   *var = (Var *) lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(var, Var) || var->varno != INDEX_VAR || var->varattno <= 0)
			break;
		columns[n++] = var->varattno - 1;
	}
	js->output_columns = n == list_length(tlist) ? columns : NULL;
	js->evaluates = js->output_columns == NULL || ps->qual != NULL ||
		js->recheck != NULL || js->joinqual != NULL;
	js->prefetch_span = (int) Min((Size) 64, gh_row_fixed_size(inner) - 1);
}

/* -------------------------------------------------- the rows of a batch */

/* Starts on the current batch. */
void
gh_emit_start(GhJoinState *js)
{
	js->row = js->probe = 0;
	js->row_open = false;
}

/* Starts on the current outer row: looks up its first match. */
static inline void
open_row(GhJoinState *js, const GhBatch *batch)
{
	js->row_open = true;
	js->row_loaded = false;
	js->row_matched = false;
	js->match = 0;
	if (batch->has_key[js->row])
	{
		int			ahead = js->probe + GH_PREFETCH_ROWS;

		js->match = batch->found[js->probe++];
		if (js->looks_at_inner && ahead < batch->nprobes && batch->found[ahead] != 0)
		{
			const char *row = (const char *) gh_row_at(&js->store, batch->found[ahead]);

			/* rows are not aligned to cache lines: many lie in two */
			__builtin_prefetch(row);
			__builtin_prefetch(row + js->prefetch_span);
		}
	}
}

/* Whether the join's own quals accept the pair in the scan tuple. */
static inline bool
pair_matches(GhJoinState *js)
{
	ExprContext *econtext = js->css.ss.ps.ps_ExprContext;

	if (js->recheck != NULL && !ExecQual(js->recheck, econtext))
		return false;
	if (js->joinqual != NULL && !ExecQual(js->joinqual, econtext))
	{
		js->removed_by_join_filter++;
		return false;
	}
	return true;
}

/*
 * Takes the current outer row's next candidate out of its chain.  NULL: no more, or
 * none that is worth a look.
 */
static inline GhRow *
next_candidate(GhJoinState *js)
{
	bool		has_quals = js->recheck != NULL || js->joinqual != NULL;

	while (js->match != 0)
	{
		GhRow	   *inner = gh_row_at(&js->store, js->match);

		/* quals, or marks, may drop any number of candidates before a row comes out */
		CHECK_FOR_INTERRUPTS();
		if (js->once_per_inner && gh_row_is_matched(inner))
		{
			/* without quals, an outer row matches a whole chain */
			js->match = has_quals ? gh_row_next(inner) : 0;
			continue;
		}
		if (js->single_match && !has_quals)
			js->match = 0;
		else
		{
			js->match = gh_row_next(inner);
			if (js->match != 0)
				__builtin_prefetch(gh_row_at(&js->store, js->match));
		}
		return inner;
	}
	return NULL;
}

/*
 * Puts the current outer row's next joined row into the scan tuple; false when it has no
 * more.
 */
static inline bool
next_joined_row(GhJoinState *js, const GhBatch *batch)
{
	bool		has_quals = js->recheck != NULL || js->joinqual != NULL;
	GhRow	   *inner;

	while ((inner = next_candidate(js)) != NULL)
	{
		if (has_quals || js->emits_pairs)
			load_pair(js, batch, inner);
		if (has_quals && !pair_matches(js))
			continue;
		js->row_matched = true;
		if (js->single_match)
			js->match = 0;
		if (js->marks_inner && !gh_row_is_matched(inner))
			inner->link |= GH_ROW_MATCHED;
		if (js->emits_pairs && passes_filter(js))
			return true;
	}

	if (js->fill_outer && !js->row_matched)
	{
		/* once: the row now counts as matched */
		js->row_matched = true;
		load_pair(js, batch, NULL);
		return passes_filter(js);
	}
	return false;
}

/*
 * Likewise for a row whose match, if it has one, is a value of the table: it has one at
 * most, or one is enough.
 */
static inline bool
joins_carried(GhJoinState *js, const GhBatch *batch)
{
	bool		has_quals = js->joinqual != NULL;
	uint64		value = batch->has_key[js->row] ? batch->found[js->probe++] : js->carry.absent;
	bool		matches = value != js->carry.absent;

	js->row_loaded = false;
	if (matches && (has_quals || js->emits_pairs))
	{
		start_pair(js, batch);
		load_carried(js, value);
		matches = !has_quals || pair_matches(js);
	}
	if (matches)
		return js->emits_pairs && passes_filter(js);
	if (!js->fill_outer)
		return false;
	load_pair(js, batch, NULL);
	return passes_filter(js);
}

/* Likewise for the current batch, where the table's values are inner columns. */
static bool
emit_carried(GhJoinState *js, const GhBatch *batch)
{
	while (js->row < batch->nrows)
	{
		bool		joins;

		CHECK_FOR_INTERRUPTS();
		joins = joins_carried(js, batch);
		js->row++;
		if (joins)
			return true;
	}
	return false;
}

/* Puts the current batch's next joined row into the scan tuple; false at its end. */
bool
gh_emit_row(GhJoinState *js)
{
	const GhBatch *batch = &js->batch[js->current];

	if (js->carry.in_use)
		return emit_carried(js, batch);
	while (js->row < batch->nrows)
	{
		/* likewise outer rows */
		CHECK_FOR_INTERRUPTS();
		if (!js->row_open)
			open_row(js, batch);
		if (next_joined_row(js, batch))
			return true;
		js->row_open = false;
		js->row++;
	}
	return false;
}

/* ----------------------------------------- inner rows without a match */

/* Starts on the current partition's inner rows, after its last batch. */
void
gh_emit_unmatched_start(GhJoinState *js)
{
	memset(&js->unmatched, 0, sizeof(js->unmatched));
}

/* Likewise the partition's next inner row without a match. */
bool
gh_emit_unmatched(GhJoinState *js)
{
	GhRow	   *inner;

	while ((inner = gh_row_store_next(&js->store, &js->unmatched)) != NULL)
	{
		/* most rows may have been matched, or the filter may drop them */
		CHECK_FOR_INTERRUPTS();
		if (gh_row_is_matched(inner))
			continue;
		ResetExprContext(js->css.ss.ps.ps_ExprContext);
		load_columns(js->css.ss.ss_ScanTupleSlot, 0, js->nkept[GH_OUTER], NULL, NULL);
		load_inner(js, inner);
		if (passes_filter(js))
			return true;
	}
	return false;
}

/* Before a rescan that keeps the rows. */
void
gh_unmark_rows(GhJoinState *js)
{
	GhRowCursor cursor = {0};
	GhRow	   *row;

	while ((row = gh_row_store_next(&js->store, &cursor)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		row->link &= ~GH_ROW_MATCHED;
	}
}
