/*
 * rows.c
 *		Rows of a child that the node does not read by itself, some hundred at a time.
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
#include "engine/page/numeric.h"

/* Rows are aggregated early when their by-reference values take this many bytes. */
#define GH_ROWS_BYTES_MAX (1024 * 1024)

typedef struct GhRowBuffer
{
	MemoryContext context;		/* of by-reference values */
	TupleDesc	desc;			/* of the child's rows */
	int			nrows;
	Datum	   *values;			/* by row, and column of the child */
	bool	   *nulls;
} GhRowBuffer;

static GhRowBuffer *
make_buffer(GhAggregateNode *node)
{
	GhRowBuffer *buffer = MemoryContextAllocZero(node->css.ss.ps.state->es_query_cxt,
												 sizeof(GhRowBuffer));
	Size		cells = (Size) GH_VECTOR_ROWS * Max(node->ncolumns, 1);

	buffer->context = AllocSetContextCreate(node->css.ss.ps.state->es_query_cxt,
											"GpuHashAggregate rows", ALLOCSET_DEFAULT_SIZES);
	buffer->desc = ExecGetResultType(node->child);
	buffer->values = MemoryContextAlloc(node->css.ss.ps.state->es_query_cxt, cells * sizeof(Datum));
	buffer->nulls = MemoryContextAlloc(node->css.ss.ps.state->es_query_cxt, cells * sizeof(bool));
	return buffer;
}

/* Keeps a row; bytes that it takes. */
static Size
keep_row(GhAggregateNode *node, GhRowBuffer *buffer, TupleTableSlot *slot)
{
	Datum	   *values = buffer->values + (Size) buffer->nrows * node->ncolumns;
	bool	   *nulls = buffer->nulls + (Size) buffer->nrows * node->ncolumns;
	Size		bytes = 0;

	slot_getsomeattrs(slot, node->ncolumns);
	for (int c = 0; c < node->ncolumns; c++)
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
fill_buffer(GhAggregateNode *node, GhRowBuffer *buffer)
{
	Size		bytes = 0;

	MemoryContextReset(buffer->context);
	buffer->nrows = 0;
	while (buffer->nrows < GH_VECTOR_ROWS && bytes < GH_ROWS_BYTES_MAX)
	{
		TupleTableSlot *slot = ExecProcNode(node->child);
		MemoryContext saved;

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
			return false;
		saved = MemoryContextSwitchTo(buffer->context);
		bytes += keep_row(node, buffer, slot);
		MemoryContextSwitchTo(saved);
	}
	return true;
}

/* A row, by PostgreSQL's expressions. */
static void
add_kept_row(GhAggregateNode *node, const GhRowBuffer *buffer, int row)
{
	TupleTableSlot *to = node->css.ss.ss_ScanTupleSlot;

	CHECK_FOR_INTERRUPTS();
	node->counts.back++;
	ResetExprContext(node->css.ss.ps.ps_ExprContext);
	for (int c = 0; c < node->ncolumns; c++)
	{
		to->tts_values[c] = buffer->values[(Size) row * node->ncolumns + c];
		to->tts_isnull[c] = buffer->nulls[(Size) row * node->ncolumns + c];
	}
	gh_add_input_row(node);
}

/* Puts a value into a vector, as a page's would be read; false: it cannot be. */
bool
gh_store_value(GhLoad load, int scale, Datum value, GhVector *vector, int row)
{
	float8		number;
	struct varlena *bytes;

	switch (load)
	{
		case GH_LOAD_INT2:
			vector->low[row] = (uint64) (int64) DatumGetInt16(value);
			return true;
		case GH_LOAD_INT4:
			vector->low[row] = (uint64) (int64) DatumGetInt32(value);
			return true;
		case GH_LOAD_INT8:
			vector->low[row] = (uint64) DatumGetInt64(value);
			return true;
		case GH_LOAD_OID:
			vector->low[row] = DatumGetObjectId(value);
			return true;
		case GH_LOAD_BOOL:
			vector->low[row] = DatumGetBool(value);
			return true;
		case GH_LOAD_FLOAT4:
		case GH_LOAD_FLOAT8:
			number = load == GH_LOAD_FLOAT4 ? (float8) DatumGetFloat4(value) : DatumGetFloat8(value);
			memcpy(&vector->low[row], &number, sizeof(number));
			return true;
		case GH_LOAD_NUMERIC:
		case GH_LOAD_TEXT:
			bytes = (struct varlena *) DatumGetPointer(value);
			if (VARATT_IS_EXTERNAL(bytes) || VARATT_IS_COMPRESSED(bytes))
				return false;
			if (load == GH_LOAD_NUMERIC)
				return gh_numeric_read((const uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes),
									   scale, &vector->low[row], &vector->high[row]);
			vector->low[row] = (uint64) (uintptr_t) VARDATA_ANY(bytes);
			vector->high[row] = VARSIZE_ANY_EXHDR(bytes);
			return true;
		case GH_LOAD_FIXED:
		case GH_LOAD_TID:
			break;
	}
	return false;
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
		Size		cell = columns[v].attribute - 1;

		for (int row = 0; row < buffer->nrows; row++, cell += node->ncolumns)
		{
			vector->null[row] = buffer->nulls[cell];
			if (!buffer->nulls[cell] &&
				!gh_store_value((GhLoad) columns[v].load, columns[v].scale, buffer->values[cell], vector, row))
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

/* Room for the columns of the program. */
static GhEnteringRows *
make_entering(const GhAggregateProgram *program)
{
	GhEnteringRows *rows = MemoryContextAlloc(program->context, sizeof(GhEnteringRows));
	MemoryContext saved = MemoryContextSwitchTo(program->context);

	gh_entering_init(rows, program->program->ncolumns, GH_VECTOR_ROWS);
	MemoryContextSwitchTo(saved);
	for (uint32 v = 0; v < rows->ngiven; v++)
		rows->given[v] = v;
	return rows;
}

/* The rows of the buffer enter the pipeline; taken[row]: it was not handed back. */
static void
enter_buffer(GhAggregateNode *node, const GhRowBuffer *buffer, bool *taken)
{
	GhEnteringRows *rows = node->program.rows;
	uint32		nback;

	if (rows == NULL)
		rows = node->program.rows = make_entering(&node->program);
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
	if (buffer->nrows > 0 && gh_aggregate_stage(node) != NULL)
		enter_buffer(node, buffer, taken);
	for (int row = 0; row < buffer->nrows; row++)
		if (!taken[row])
			add_kept_row(node, buffer, row);
	gh_enter_rows(node, false);
	gh_aggregate_clock(node, &node->counts.evaluate_time, &clock);
}

/* Adds some of the child's rows; false: they were the last. */
bool
gh_aggregate_read_rows(GhAggregateNode *node)
{
	instr_time	clock = {0};
	bool		more;

	if (node->collected != NULL)
		return gh_collect_child_row(node);
	if (node->rows == NULL)
		node->rows = make_buffer(node);
	gh_aggregate_clock(node, NULL, &clock);
	more = fill_buffer(node, node->rows);
	gh_aggregate_clock(node, &node->counts.source_time, &clock);
	add_buffer(node, node->rows);
	return more;
}
