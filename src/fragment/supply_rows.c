/*
 * supply_rows.c
 *		Rows that come through the executor, or are columns already, supplied to a pipeline of an engine as columns.
 *
 * The columns of some thousand rows, and the bytes of their texts, are put together in a request's buffer,
 * in the place of pages' copies; requests then go as those of pages do (supply.c).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine/pipeline/record_row.h"
#include "expr/values.h"
#include "fragment/supply.h"

struct GhSupplyRows
{
	GhSupply   *supply;
	uint32		ncolumns;		/* of the program */
	const GhColumn *columns;
	uint8		classes[GH_PROGRAM_VECTORS_MAX];
	bool		has_texts;
	MemoryContext values;		/* that were compressed, of one row */
	/* in the buffer of the request that is filled */
	GhVector   *vectors;
	uint16	   *given;			/* their numbers */
	uint32		step;			/* before which they enter */
	uint32		room;			/* rows */
	uint32		nrows;
	char	   *texts;			/* where the next text goes */
	Size		texts_left;		/* bytes */
};

static bool
fail(GhSupply *supply)
{
	supply->failed = true;
	(void) gh_error_set(&supply->error, GH_DECLINED,
						"rows of an inner side have values that the engines do not hold");
	return false;
}

static bool
is_text(const GhSupplyRows *rows, uint32 column)
{
	return rows->classes[column] == GH_CLASS_TEXT;
}

/* Bytes of a row, but for its texts. */
static Size
row_bytes(const GhSupplyRows *rows)
{
	Size		bytes = 0;

	for (uint32 c = 0; c < rows->ncolumns; c++)
		bytes += sizeof(uint64) + sizeof(uint8) + (gh_class_has_high(rows->classes[c]) ? sizeof(uint64) : 0);
	return bytes;
}

/* Lays the columns out in the buffer of the request that is to be filled. */
static void
lay_out(GhSupplyRows *rows)
{
	const GhSupply *supply = rows->supply;
	char	   *at = supply->requests[supply->current].copies;
	char	   *end = at + (Size) supply->copy_room * BLCKSZ;
	Size		left;

	rows->vectors = (GhVector *) at;
	rows->given = (uint16 *) (rows->vectors + rows->ncolumns);
	at = (char *) rows->given + TYPEALIGN(8, sizeof(uint16) * rows->ncolumns);
	left = end - at;
	rows->room = (rows->has_texts ? left / 2 : left) / row_bytes(rows);
	/* each may go back; a multiple of 8 keeps the arrays aligned */
	rows->room = TYPEALIGN_DOWN(8, Min(rows->room, supply->room * MaxHeapTuplesPerPage));
	for (uint32 v = 0; v < rows->ncolumns; v++)
	{
		bool		has_high = gh_class_has_high(rows->classes[v]);

		rows->given[v] = v;
		rows->vectors[v].low = (uint64 *) at;
		rows->vectors[v].high = has_high ? rows->vectors[v].low + rows->room : NULL;
		rows->vectors[v].null = (uint8 *) (rows->vectors[v].low + (has_high ? 2 : 1) * rows->room);
		at = (char *) rows->vectors[v].null + rows->room;
	}
	Assert(at <= end);
	rows->nrows = 0;
	rows->texts = at;
	rows->texts_left = end - at;
}

/*
 * Begins with rows of the program's columns, in this order, when no request is in flight; NULL: the supply
 * has failed.
 */
GhSupplyRows *
gh_supply_open_rows(GhSupply *supply, const GhProgram *program)
{
	GhSupplyRows *rows;
	GhError		error;

	/* rows lie in the place of copies, for which buffers of pages that the caller has pinned have no room */
	if (supply->pages == NULL && supply->pins)
	{
		gh_supply_free_buffers(supply);
		supply->pins = false;
	}
	if (!gh_supply_take_buffers(supply))
		return NULL;
	Assert(supply->copy_room > 0);
	rows = MemoryContextAllocZero(supply->context, sizeof(GhSupplyRows));
	rows->supply = supply;
	rows->ncolumns = program->ncolumns;
	rows->columns = gh_program_columns(program);
	if (gh_program_check_classes(program, program->bytes, rows->classes, &error) != GH_OK)
		elog(ERROR, "%s", error.message);
	for (uint32 c = 0; c < rows->ncolumns; c++)
		rows->has_texts |= is_text(rows, c);
	rows->values = AllocSetContextCreate(supply->context, "GpuHash supplied rows", ALLOCSET_SMALL_SIZES);
	lay_out(rows);
	return rows;
}

/* Rows enter before that step of the pipeline, and not the first one. */
void
gh_supply_rows_enter(GhSupplyRows *rows, uint32 step)
{
	rows->step = step;
}

/* The rows that are there go on their way. */
static void
submit_rows(GhSupplyRows *rows)
{
	GhSupply   *supply = rows->supply;
	GhPipelineRequest *request = &supply->requests[supply->current].request;

	request->kind = GH_INPUT_COLUMNS;
	request->step = rows->step;
	request->ngiven = rows->ncolumns;
	request->given = rows->given;
	request->vectors = rows->vectors;
	request->count = rows->nrows;
	supply->counts.bytes += rows->nrows * row_bytes(rows);
	gh_supply_turn_over(supply);
	lay_out(rows);
}

/* Moves a text's bytes into the buffer; false: there is no room for them. */
static bool
move_text(GhSupplyRows *rows, GhVector *vector)
{
	uint64	   *low = &vector->low[rows->nrows];
	Size		bytes = vector->high[rows->nrows];

	if (bytes > rows->texts_left)
		return false;
	memcpy(rows->texts, (const void *) (uintptr_t) *low, bytes);
	*low = (uintptr_t) rows->texts;
	rows->texts += bytes;
	rows->texts_left -= bytes;
	return true;
}

typedef enum Put
{
	PUT_DONE,
	PUT_FULL,					/* there is no room for its texts */
	PUT_REFUSED
} Put;

static Put
put_row(GhSupplyRows *rows, const Datum *values, const bool *nulls)
{
	for (uint32 c = 0; c < rows->ncolumns; c++)
	{
		GhVector   *vector = &rows->vectors[c];

		vector->low[rows->nrows] = 0;
		if (vector->high != NULL)
			vector->high[rows->nrows] = 0;
		if (!gh_store_value(&rows->columns[c], values[c], nulls[c], rows->values, vector, rows->nrows))
			return PUT_REFUSED;
		if (is_text(rows, c) && !nulls[c] && !move_text(rows, vector))
			return PUT_FULL;
	}
	rows->nrows++;
	return PUT_DONE;
}

/* Takes a row over, by the program's columns.  False: the supply has failed. */
bool
gh_supply_row(GhSupplyRows *rows, const Datum *values, const bool *nulls)
{
	Put			put;

	if (rows->nrows == rows->room)
		submit_rows(rows);
	put = rows->supply->failed ? PUT_REFUSED : put_row(rows, values, nulls);
	if (put == PUT_FULL && rows->nrows > 0)
	{
		submit_rows(rows);
		put = rows->supply->failed ? PUT_REFUSED : put_row(rows, values, nulls);
	}
	MemoryContextReset(rows->values);
	if (put != PUT_DONE && !rows->supply->failed)
		return fail(rows->supply);
	return put == PUT_DONE;
}

/* So many rows of columns, from one on: just one where there are texts, whose places count from `texts`. */
static Put
put_columns(GhSupplyRows *rows, const GhVector *from, const char *texts, uint64 at, uint32 count)
{
	for (uint32 c = 0; c < rows->ncolumns; c++)
	{
		GhVector   *vector = &rows->vectors[c];

		memcpy(vector->low + rows->nrows, from[c].low + at, count * sizeof(uint64));
		if (vector->high != NULL)
			memcpy(vector->high + rows->nrows, from[c].high + at, count * sizeof(uint64));
		if (from[c].null != NULL)
			memcpy(vector->null + rows->nrows, from[c].null + at, count);
		else
			memset(vector->null + rows->nrows, 0, count);
		if (is_text(rows, c) && !vector->null[rows->nrows])
		{
			vector->low[rows->nrows] += (uint64) (uintptr_t) texts;
			if (!move_text(rows, vector))
				return PUT_FULL;
		}
	}
	rows->nrows += count;
	return PUT_DONE;
}

/*
 * Takes rows over that are columns, the program's in its order; null is NULL where no value of the column is.
 * Texts' places count from `texts`.  False: the supply has failed.
 */
bool
gh_supply_columns(GhSupplyRows *rows, const GhVector *from, const char *texts, uint64 count)
{
	uint64		at = 0;

	while (at < count)
	{
		uint32		n = rows->has_texts ? 1 : (uint32) Min(count - at, Max(rows->room - rows->nrows, 1));

		CHECK_FOR_INTERRUPTS();
		if (rows->nrows == rows->room)
		{
			submit_rows(rows);
			n = rows->has_texts ? 1 : (uint32) Min(count - at, rows->room);
		}
		if (rows->supply->failed)
			return false;
		if (put_columns(rows, from, texts, at, n) == PUT_DONE)
			at += n;
		else if (rows->nrows == 0)
			return fail(rows->supply);
		else
			submit_rows(rows);
	}
	return true;
}

/* There are no more.  False: the supply has failed. */
bool
gh_supply_close_rows(GhSupplyRows *rows)
{
	if (rows->nrows > 0 && !rows->supply->failed)
		submit_rows(rows);
	return gh_supply_flush(rows->supply);
}
