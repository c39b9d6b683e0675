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

#include "aggregate/enter.h"
#include "aggregate/joined.h"

/* Rows are aggregated early when their by-reference values take this many bytes. */
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
rows_child(const GhAggregateNode *node)
{
	return gh_joined_nprobes(node) > 0 ? &node->joined->levels[node->joined->base].js->css.ss.ps : node->child;
}

static GhRowBuffer *
make_buffer(GhAggregateNode *node)
{
	MemoryContext context = AllocSetContextCreate(node->css.ss.ps.state->es_query_cxt, "GpuHashAggregate rows",
												  ALLOCSET_DEFAULT_SIZES);
	GhRowBuffer *buffer = MemoryContextAllocZero(context, sizeof(GhRowBuffer));
	PlanState  *child = rows_child(node);
	Size		cells;

	buffer->context = AllocSetContextCreate(context, "GpuHashAggregate values", ALLOCSET_DEFAULT_SIZES);
	buffer->child = child;
	buffer->desc = ExecGetResultType(child);
	buffer->ncolumns = child == node->child ? node->ncolumns : buffer->desc->natts;
	cells = (Size) GH_VECTOR_ROWS * Max(buffer->ncolumns, 1);
	buffer->values = MemoryContextAlloc(context, cells * sizeof(Datum));
	buffer->nulls = MemoryContextAlloc(context, cells * sizeof(bool));
	return buffer;
}

/* One for the rows that come in now: before a rescan they may have been others. */
static GhRowBuffer *
get_buffer(GhAggregateNode *node)
{
	if (node->rows != NULL && node->rows->child != rows_child(node))
	{
		MemoryContextDelete(MemoryContextGetParent(node->rows->context));
		node->rows = NULL;
	}
	if (node->rows == NULL)
		node->rows = make_buffer(node);
	return node->rows;
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
add_kept_row(GhAggregateNode *node, const GhRowBuffer *buffer, int row)
{
	TupleTableSlot *to = node->css.ss.ss_ScanTupleSlot;
	const Datum *values = buffer->values + (Size) row * buffer->ncolumns;
	const bool *nulls = buffer->nulls + (Size) row * buffer->ncolumns;

	CHECK_FOR_INTERRUPTS();
	node->counts.back++;
	if (gh_joined_nprobes(node) > 0)
	{
		gh_joined_add_row(node, values, nulls);
		return;
	}
	ResetExprContext(node->css.ss.ps.ps_ExprContext);
	memcpy(to->tts_values, values, sizeof(Datum) * node->ncolumns);
	memcpy(to->tts_isnull, nulls, sizeof(bool) * node->ncolumns);
	gh_add_input_row(node);
}

/* What the program reads of the rows; *taken[row]: a vector can hold all of it. */
static void
load_vectors(GhAggregateNode *node, const GhRowBuffer *buffer, bool *taken)
{
	const GhColumn *columns = gh_program_columns(node->program.program);
	const GhEnteringRows *rows = node->program.rows;

	memset(taken, true, buffer->nrows);
	for (uint32 v = 0; v < rows->ngiven; v++)
	{
		GhVector   *vector = &rows->vectors[v];
		const GhColumn *column = &columns[rows->given[v]];
		Size		cell = column->attribute - 1;

		for (int row = 0; row < buffer->nrows; row++, cell += buffer->ncolumns)
		{
			vector->null[row] = buffer->nulls[cell];
			if (!buffer->nulls[cell] &&
				!gh_store_value((GhLoad) column->load, column->scale, buffer->values[cell], vector, row))
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

/* Room for the columns of the program that come in: others are filled by joins. */
static GhEnteringRows *
make_entering(const GhAggregateProgram *program, const GhRowBuffer *buffer)
{
	const GhColumn *columns = gh_program_columns(program->program);
	MemoryContext saved = MemoryContextSwitchTo(program->context);
	GhEnteringRows *rows = palloc(sizeof(GhEnteringRows));
	uint16		given[GH_PROGRAM_VECTORS_MAX];
	uint32		ngiven = 0;

	for (uint32 v = 0; v < program->program->ncolumns; v++)
		if (columns[v].attribute <= buffer->ncolumns)
			given[ngiven++] = v;
	gh_entering_init(rows, ngiven, GH_VECTOR_ROWS);
	memcpy(rows->given, given, sizeof(uint16) * ngiven);
	MemoryContextSwitchTo(saved);
	return rows;
}

/* The rows of the buffer enter the pipeline; taken[row]: it was not handed back. */
static void
enter_buffer(GhAggregateNode *node, const GhRowBuffer *buffer, bool *taken)
{
	GhEnteringRows *rows = node->program.rows;
	uint32		nback;

	if (rows == NULL)
		rows = node->program.rows = make_entering(&node->program, buffer);
	gh_enter_rows(node, false);
	load_vectors(node, buffer, taken);
	nback = gh_enter_columns(node, 0, rows, pick_taken(rows, buffer->nrows, taken, gh_aggregate_order_matters(node)));
	for (uint32 i = 0; i < nback; i++)
		taken[rows->numbers[i]] = false;
}

/* Adds the rows of the buffer. */
static void
add_buffer(GhAggregateNode *node, GhRowBuffer *buffer)
{
	instr_time	clock = {0};
	bool		taken[GH_VECTOR_ROWS] = {false};

	node->counts.rows += buffer->nrows;
	gh_aggregate_clock(node, NULL, &clock);
	if (node->joined != NULL)
		gh_joined_start(node);
	if (buffer->nrows > 0 && node->collected == NULL && gh_aggregate_stage(node) != NULL)
		enter_buffer(node, buffer, taken);
	for (int row = 0; row < buffer->nrows; row++)
		if (!taken[row])
			add_kept_row(node, buffer, row);
	gh_enter_rows(node, false);
	if (node->joined != NULL)
		gh_joined_stop(node);
	gh_aggregate_clock(node, &node->counts.evaluate_time, &clock);
}

/* Adds some of the child's rows; false: they were the last. */
bool
gh_aggregate_read_rows(GhAggregateNode *node)
{
	instr_time	clock = {0};
	bool		more;

	GhRowBuffer *buffer;

	if (node->collected != NULL && gh_joined_nprobes(node) == 0)
		return gh_collect_child_row(node);
	buffer = get_buffer(node);
	gh_aggregate_clock(node, NULL, &clock);
	more = fill_buffer(buffer);
	gh_aggregate_clock(node, &node->counts.source_time, &clock);
	add_buffer(node, buffer);
	return more;
}
