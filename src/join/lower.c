/*
 * lower.c
 *		The join as a node above sees it that may do it by itself (../fragment/lower.h).
 */
#include "postgres.h"

#include "executor/executor.h"

#include "join/join.h"
#include "join/source.h"

static GhJoinState *
join_of(const GhLowerJoin *lower)
{
	return (GhJoinState *) lower->ps;
}

static bool
offer(GhLowerJoin *lower, const bool *read)
{
	GhJoinState *js = join_of(lower);

	if (!gh_probed_init(js, read))
		return false;
	lower->by_ref = js->probed->by_ref;
	return true;
}

static bool
open_table(GhLowerJoin *lower, bool on_host)
{
	GhJoinState *js = join_of(lower);
	bool		open = gh_join_open_for_probes(js, on_host);

	lower->table = open ? js->probed->table : NULL;
	/* a copy's only key column has all bits, for all whole numbers */
	lower->key_bits = open && js->probed->copy.area != NULL && js->keys[GH_INNER].ncolumns == 1 ? GH_KEY_BITS : 0;
	return open;
}

static void
return_rows(GhLowerJoin *lower)
{
	lower->table = NULL;
	gh_join_return_rows(join_of(lower));
}

static void
close_table(GhLowerJoin *lower)
{
	lower->table = NULL;
	gh_join_close_for_probes(join_of(lower));
}

static bool
asks_outer_first(GhLowerJoin *lower)
{
	return gh_join_asks_outer_first(join_of(lower));
}

static bool
is_shared(const GhLowerJoin *lower)
{
	return join_of(lower)->parallel != NULL;
}

static bool
peek(GhLowerJoin *lower)
{
	return gh_source_peek(join_of(lower)->source[GH_OUTER]);
}

static int
leave_page(GhLowerJoin *lower)
{
	GhSource   *source = join_of(lower)->source[GH_OUTER];

	return source->peeked ? gh_source_leave_page(source) : -1;
}

static bool
store_inner(GhLowerJoin *lower)
{
	GhJoinState *js = join_of(lower);

	memset(&js->given, 0, sizeof(js->given));
	return gh_join_store_inner(js);
}

static bool
next_stored(GhLowerJoin *lower, uint64 *key, Datum *values, bool *nulls)
{
	GhJoinState *js = join_of(lower);
	const GhColumns *columns = &js->columns[GH_INNER];
	GhRow	   *row;

	do
	{
		row = gh_row_store_next(&js->store, &js->given);
	} while (row != NULL && !gh_row_has_key(row));
	if (row == NULL)
		return false;
	*key = row->key;
	memcpy(nulls, gh_row_nulls(row), sizeof(bool) * columns->ncolumns);
	for (int c = 0; c < columns->ncolumns; c++)
		values[c] = nulls[c] ? (Datum) 0 : gh_row_datum(columns, row, c);
	return true;
}

static Datum
stored_value(const GhLowerJoin *lower, int column, uint64 ref)
{
	GhJoinState *js = join_of(lower);

	return gh_row_datum(&js->columns[GH_INNER], gh_row_at(&js->store, ref), column);
}

/* The scan tuple, whose columns the node above has filled, is what expressions read. */
static ExprContext *
context_of_tuple(GhJoinState *js)
{
	ExprContext *econtext = js->css.ss.ps.ps_ExprContext;
	TupleTableSlot *scan = js->css.ss.ss_ScanTupleSlot;

	ResetExprContext(econtext);
	scan->tts_flags &= ~TTS_FLAG_EMPTY;
	scan->tts_nvalid = scan->tts_tupleDescriptor->natts;
	econtext->ecxt_scantuple = scan;
	return econtext;
}

/* Not counted: which rows a node above has evaluated so depends on their values, which a policy may hide. */
static bool
is_match(GhLowerJoin *lower)
{
	GhJoinState *js = join_of(lower);
	ExprContext *econtext = context_of_tuple(js);

	return (js->recheck == NULL || ExecQual(js->recheck, econtext)) &&
		(js->joinqual == NULL || ExecQual(js->joinqual, econtext));
}

static bool
comes_out(GhLowerJoin *lower)
{
	PlanState  *ps = lower->ps;

	return ps->qual == NULL || ExecQual(ps->qual, context_of_tuple(join_of(lower)));
}

static void
tell_copy(GhLowerJoin *lower, uint64 copy_blocks, uint64 heap_blocks, uint64 heap_rows)
{
	join_of(lower)->copy_use = (GhCopyUse) {copy_blocks + heap_blocks > 0, copy_blocks, heap_blocks, heap_rows};
}

static const GhLowerMethods methods = {
	.offer = offer,
	.open = open_table,
	.return_rows = return_rows,
	.close = close_table,
	.asks_outer_first = asks_outer_first,
	.is_shared = is_shared,
	.peek = peek,
	.leave_page = leave_page,
	.store_inner = store_inner,
	.next_stored = next_stored,
	.stored_value = stored_value,
	.is_match = is_match,
	.comes_out = comes_out,
	.tell_copy = tell_copy,
};

/* Where the columns of the scan tuple come from, but for those that only keys read: they come behind. */
static GhLowerColumn *
columns_of(const GhJoinState *js)
{
	int			kept = js->nkept[GH_OUTER] + js->nkept[GH_INNER];
	GhLowerColumn *columns = palloc(sizeof(GhLowerColumn) * Max(kept + js->ncopies, 1));

	for (int i = 0; i < kept + js->ncopies; i++)
	{
		int			column = i < kept ? i : js->copy_sources[i - kept];
		bool		is_outer = column < js->nkept[GH_OUTER];

		columns[i].side = is_outer ? GH_OUTER : GH_INNER;
		columns[i].column = is_outer ? js->scan_attnos[column] : column - js->nkept[GH_OUTER];
	}
	return columns;
}

/* When all else of the join is set up. */
void
gh_lower_init(GhJoinState *js)
{
	GhLowerJoin *lower = &js->lower;

	lower->ps = &js->css.ss.ps;
	lower->methods = &methods;
	for (int side = GH_OUTER; side <= GH_INNER; side++)
	{
		lower->children[side] = gh_child(js, side);
		lower->keys[side] = &js->keys[side];
		lower->pages[side] = js->source[side] != NULL ? &js->source[side]->pages : NULL;
	}
	lower->jointype = js->jointype;
	lower->index = js->index;
	lower->single_match = js->single_match;
	lower->is_plain = js->is_plain;
	lower->is_coded = js->is_coded;
	lower->key_clauses = js->hash_clauses;
	lower->join_quals = js->is_coded ? list_concat_copy(js->hash_clauses, js->join_quals) : js->join_quals;
	lower->nkept = js->nkept[GH_INNER];
	lower->kept_attnos = js->columns[GH_INNER].attnos;
	lower->ncolumns = js->nkept[GH_OUTER] + js->nkept[GH_INNER] + js->ncopies;
	lower->columns = columns_of(js);
	lower->output_columns = js->output_columns;
}

/* GhLowerFind */
GhLowerJoin *
gh_lower_of(PlanState *ps)
{
	GhJoinState *js = gh_as_join(ps);

	return js != NULL ? &js->lower : NULL;
}
