/*
 * rows.c
 *		Rows of a child that the node does not read by itself, or of a join below those that it probes (joined.c), some
 *		hundred at a time.
 *
 * They come through the executor one by one and are kept, since the child may reuse what they lie in.
 * What the program reads of them enters the pipeline as columns, and rows that are handed back are evaluated
 * from what is kept.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "fragment/fragment.h"
#include "fragment/joined.h"

/* Rows are done early when their by-reference values take this many bytes. */
#define GH_ROWS_BYTES_MAX (1024 * 1024)

typedef struct GhRowBuffer
{
	MemoryContext context;		/* of by-reference values */
	PlanState  *child;			/* whose rows they are */
	TupleDesc	desc;
	int			ncolumns;
	int			nrows;
	Datum	   *values;			/* by row and column */
	bool	   *nulls;
} GhRowBuffer;

/* Whose rows come in. */
static PlanState *
rows_child(const GhFragment *fragment)
{
	const GhJoined *joined = fragment->joined;

	return gh_joined_nprobes(fragment) > 0 ? joined->levels[joined->base].lower->ps : fragment->child;
}

static GhRowBuffer *
make_buffer(GhFragment *fragment)
{
	MemoryContext context = AllocSetContextCreate(fragment->css.ss.ps.state->es_query_cxt, "GpuHash rows",
												  ALLOCSET_DEFAULT_SIZES);
	GhRowBuffer *buffer = MemoryContextAllocZero(context, sizeof(GhRowBuffer));
	PlanState  *child = rows_child(fragment);
	Size		cells;

	buffer->context = AllocSetContextCreate(context, "GpuHash values", ALLOCSET_DEFAULT_SIZES);
	buffer->child = child;
	buffer->desc = ExecGetResultType(child);
	buffer->ncolumns = child == fragment->child ? fragment->ncolumns : buffer->desc->natts;
	cells = (Size) GH_VECTOR_ROWS * Max(buffer->ncolumns, 1);
	buffer->values = MemoryContextAlloc(context, cells * sizeof(Datum));
	buffer->nulls = MemoryContextAlloc(context, cells * sizeof(bool));
	return buffer;
}

/* One for the rows that come in now: before a rescan they may have been others. */
static GhRowBuffer *
get_buffer(GhFragment *fragment)
{
	if (fragment->rows != NULL && fragment->rows->child != rows_child(fragment))
	{
		MemoryContextDelete(MemoryContextGetParent(fragment->rows->context));
		fragment->rows = NULL;
	}
	if (fragment->rows == NULL)
		fragment->rows = make_buffer(fragment);
	return fragment->rows;
}

/* Keeps a row; bytes that it takes. */
static Size
keep_row(GhRowBuffer *buffer, TupleTableSlot *slot)
{
	Datum	   *values = buffer->values + (Size) buffer->nrows * buffer->ncolumns;
	bool	   *nulls = buffer->nulls + (Size) buffer->nrows * buffer->ncolumns;
	Size		bytes = 0;

	slot_getsomeattrs(slot, buffer->ncolumns);
	for (int c = 0; c < buffer->ncolumns; c++)
	{
		Form_pg_attribute attribute = TupleDescAttr(buffer->desc, c);

		nulls[c] = slot->tts_isnull[c];
		values[c] = slot->tts_values[c];
		if (!nulls[c] && !attribute->attbyval)
		{
			values[c] = datumCopy(values[c], false, attribute->attlen);
			bytes += datumGetSize(values[c], false, attribute->attlen);
		}
	}
	buffer->nrows++;
	return bytes;
}

/* Fills the buffer; false when the child has no more rows. */
static bool
fill_buffer(GhRowBuffer *buffer)
{
	Size		bytes = 0;

	MemoryContextReset(buffer->context);
	buffer->nrows = 0;
	while (buffer->nrows < GH_VECTOR_ROWS && bytes < GH_ROWS_BYTES_MAX)
	{
		TupleTableSlot *slot = ExecProcNode(buffer->child);
		MemoryContext saved;

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
			return false;
		saved = MemoryContextSwitchTo(buffer->context);
		bytes += keep_row(buffer, slot);
		MemoryContextSwitchTo(saved);
	}
	return true;
}

/* A row, by PostgreSQL's expressions. */
static void
add_kept_row(GhFragment *fragment, const GhRowBuffer *buffer, int row)
{
	TupleTableSlot *to = fragment->css.ss.ss_ScanTupleSlot;
	const Datum *values = buffer->values + (Size) row * buffer->ncolumns;
	const bool *nulls = buffer->nulls + (Size) row * buffer->ncolumns;

	CHECK_FOR_INTERRUPTS();
	fragment->counts.back++;
	if (gh_joined_nprobes(fragment) > 0)
	{
		gh_joined_add_row(fragment, values, nulls);
		return;
	}
	ResetExprContext(fragment->css.ss.ps.ps_ExprContext);
	memcpy(to->tts_values, values, sizeof(Datum) * fragment->ncolumns);
	memcpy(to->tts_isnull, nulls, sizeof(bool) * fragment->ncolumns);
	fragment->methods->add_row(fragment);
}

/* What the program reads of the rows; *taken[row]: a vector can hold all of it. */
static void
load_vectors(GhFragment *fragment, const GhRowBuffer *buffer, bool *taken)
{
	const GhEnteringRows *rows = fragment->program.rows;

	memset(taken, true, buffer->nrows);
	for (uint32 v = 0; v < rows->ngiven; v++)
	{
		GhVector   *vector = &rows->vectors[v];
		const GhColumn *column = &rows->columns[rows->given[v]];
		Size		cell = column->attribute - 1;

		for (int row = 0; row < buffer->nrows; row++, cell += buffer->ncolumns)
		{
			if (!gh_store_value(column, buffer->values[cell], buffer->nulls[cell], NULL, vector, row))
				taken[row] = false;
		}
	}
}

/* Moves the rows that enter to the front; how many. */
static uint32
pick_taken(GhEnteringRows *rows, int nrows, bool *taken, bool in_order)
{
	uint32		n = 0;

	for (int row = 0; row < nrows; row++)
	{
		/* those behind one that cannot enter wait for it */
		if (in_order && row > 0 && !taken[row - 1])
			taken[row] = false;
		if (!taken[row])
			continue;
		rows->numbers[n] = row;
		gh_entering_move(rows, n++, row);
	}
	return n;
}

/* Room for the columns of the program that come in. */
static void
make_entering(GhFragmentProgram *program, const GhRowBuffer *buffer)
{
	MemoryContext saved = MemoryContextSwitchTo(program->context);

	program->rows = gh_entering_create(program->program, buffer->ncolumns, GH_VECTOR_ROWS);
	MemoryContextSwitchTo(saved);
}

/* The rows of the buffer enter the pipeline; taken[row]: it was not handed back. */
static void
enter_buffer(GhFragment *fragment, const GhRowBuffer *buffer, bool *taken)
{
	GhEnteringRows *rows;
	uint32		nrows;
	uint32		nback;

	if (fragment->program.rows == NULL)
		make_entering(&fragment->program, buffer);
	rows = fragment->program.rows;
	fragment->methods->enter_waiting(fragment);
	load_vectors(fragment, buffer, taken);
	nrows = pick_taken(rows, buffer->nrows, taken, fragment->methods->order_matters(fragment));
	nback = gh_enter_columns(fragment, 0, rows, nrows);
	for (uint32 i = 0; i < nback; i++)
		taken[rows->numbers[i]] = false;
}

/* Adds the rows of the buffer. */
static void
add_buffer(GhFragment *fragment, GhRowBuffer *buffer)
{
	instr_time	clock = {0};
	bool		taken[GH_VECTOR_ROWS] = {false};

	fragment->counts.rows += buffer->nrows;
	gh_fragment_clock(fragment, NULL, &clock);
	if (fragment->joined != NULL)
		gh_joined_start(fragment);
	if (buffer->nrows > 0 && fragment->methods->stage(fragment) != NULL)
		enter_buffer(fragment, buffer, taken);
	for (int row = 0; row < buffer->nrows; row++)
		if (!taken[row])
			add_kept_row(fragment, buffer, row);
	fragment->methods->enter_waiting(fragment);
	if (fragment->joined != NULL)
		gh_joined_stop(fragment);
	gh_fragment_clock(fragment, &fragment->counts.evaluate_time, &clock);
}

/* The child's next row, as it is; false: there are no more. */
static bool
put_child_row(GhFragment *fragment)
{
	TupleTableSlot *slot = ExecProcNode(fragment->child);

	if (TupIsNull(slot))
		return false;
	slot_getallattrs(slot);
	fragment->methods->put_child_row(fragment, slot);
	fragment->counts.rows++;
	return true;
}

/* Adds some of the child's rows; false: they were the last. */
bool
gh_fragment_read_rows(GhFragment *fragment)
{
	instr_time	clock = {0};
	GhRowBuffer *buffer;
	bool		more;

	if (fragment->methods->put_child_row != NULL && gh_joined_nprobes(fragment) == 0)
		return put_child_row(fragment);
	buffer = get_buffer(fragment);
	gh_fragment_clock(fragment, NULL, &clock);
	more = fill_buffer(buffer);
	gh_fragment_clock(fragment, &fragment->counts.source_time, &clock);
	add_buffer(fragment, buffer);
	return more;
}
