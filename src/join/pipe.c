/*
 * pipe.c
 *		Joined rows from one GpuHashJoin to the next, without the executor between.
 *
 * In a star join the outer side of a join is a join itself.  Its next row is taken out of its
 * scan tuple, in which it is put together, straight into the batch above: there is no
 * result slot in between, no target list, and no call of ExecProcNode a row.  The lower
 * join goes through the same states as otherwise, so everything that it can do it does here,
 * too; its rows, loops and time are counted a batch at a time.
 *
 * Where the lower join's target list computes something, its rows come through the
 * executor.
 */
#include "postgres.h"

#include "executor/executor.h"

#include "join/join.h"
#include "join/source.h"

/* The lower join's scan column that is its output column resno, from 1. */
static int
scan_column(const GhPipe *pipe, int resno)
{
	return pipe->child->output_columns[resno - 1] + 1;
}

/* Makes js->pipe where the outer child is such a join. */
void
gh_pipe_init(GhJoinState *js)
{
	GhJoinState *child = gh_as_join(gh_child(js, GH_OUTER));
	const GhKeySide *keys = &js->keys[GH_OUTER];
	GhPipe	   *pipe;

	if (child == NULL || child->output_columns == NULL)
		return;
	pipe = palloc0(sizeof(GhPipe));
	pipe->child = child;
	pipe->columns = js->columns[GH_OUTER];
	pipe->columns.attnos = palloc(sizeof(int) * Max(pipe->columns.ncolumns, 1));
	for (int i = 0; i < pipe->columns.ncolumns; i++)
		pipe->columns.attnos[i] = scan_column(pipe, js->columns[GH_OUTER].attnos[i]);

	pipe->maps_keys = keys->exact && !keys->has_exprs;
	if (pipe->maps_keys)
	{
		pipe->keys = *keys;
		pipe->keys.columns = palloc(sizeof(GhKeyColumn) * keys->ncolumns);
		for (int i = 0; i < keys->ncolumns; i++)
		{
			pipe->keys.columns[i] = keys->columns[i];
			pipe->keys.columns[i].attno = scan_column(pipe, keys->columns[i].attno);
		}
	}
	js->pipe = pipe;
}

/*
 * Goes on to the lower join's next row and tells its key; false when there are no more.
 * The caller has called gh_child_start.
 */
bool
gh_pipe_next(GhJoinState *js, uint64 *key, bool *has_key)
{
	GhPipe	   *pipe = js->pipe;
	GhJoinState *child = pipe->child;

	if (!gh_join_advance(child))
		return false;
	if (pipe->maps_keys)
		*has_key = gh_encode_key(&pipe->keys, child->css.ss.ss_ScanTupleSlot,
								 js->css.ss.ps.ps_ExprContext, key);
	else
		*has_key = gh_row_key(js, GH_OUTER, gh_emit_project(child), key);
	return true;
}

/*
 * Copies the kept columns of that row.  By-reference values go to arena: the lower join's
 * batch may be gone before ours.  Returns the bytes taken there.
 */
Size
gh_pipe_copy(GhJoinState *js, bool *nulls, Datum *values, MemoryContext arena)
{
	const GhColumns *columns = &js->pipe->columns;
	TupleTableSlot *scan = js->pipe->child->css.ss.ss_ScanTupleSlot;

	if (!columns->all_byval)
		return gh_columns_copy(columns, scan, nulls, values, arena);
	for (int i = 0; i < columns->ncolumns; i++)
	{
		int			column = columns->attnos[i] - 1;

		nulls[i] = scan->tts_isnull[column];
		values[i] = scan->tts_values[column];
	}
	return 0;
}
