/*
 * rows.c
 *		Rows as the join keeps them.
 *
 * The join keeps, of either side, only the columns that its output and its
 * quals need, as an array of Datums with by-reference values copied behind
 * them.  Loading such a row into the scan tuple is two short copies; nothing is
 * deformed twice.  The inner rows lie in large chunks in the order in which they
 * came and never move: the table stores their addresses.
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "join/join.h"

/* Chunks double up to the maximum, so that small joins stay small. */
#define GH_CHUNK_MIN ((Size) 64 * 1024)
#define GH_CHUNK_MAX ((Size) 32 * 1024 * 1024)

/* Which columns of a child with row type desc are kept; attnos are copied. */
void
gh_columns_init(GhColumns *columns, int nattnos, const int *attnos, TupleDesc desc)
{
	memset(columns, 0, sizeof(*columns));
	columns->ncolumns = nattnos;
	columns->attnos = palloc(sizeof(int) * Max(nattnos, 1));
	columns->typlens = palloc(sizeof(int16) * Max(nattnos, 1));
	columns->typbyvals = palloc(sizeof(bool) * Max(nattnos, 1));
	columns->all_byval = true;
	columns->nulls_size = MAXALIGN(nattnos * sizeof(bool));
	for (int i = 0; i < nattnos; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, attnos[i] - 1);

		columns->attnos[i] = attnos[i];
		columns->typlens[i] = att->attlen;
		columns->typbyvals[i] = att->attbyval;
		columns->all_byval = columns->all_byval && att->attbyval;
		columns->max_attno = Max(columns->max_attno, attnos[i]);
	}
}

/* ------------------------------------------------ by-reference values */

/*
 * Bytes that a copy of the value takes.  Values in TOAST tables stay there; an
 * expanded object is flattened.
 */
static Size
value_size(Datum value, int16 typlen)
{
	if (typlen == -1 && VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		return EOH_get_flat_size(DatumGetEOHP(value));
	return datumGetSize(value, false, typlen);
}

static void
value_copy(char *to, Datum value, int16 typlen, Size size)
{
	if (typlen == -1 && VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		EOH_flatten_into(DatumGetEOHP(value), to, size);
	else
		memcpy(to, DatumGetPointer(value), size);
}

/*
 * Copies the kept columns out of slot, which has been deformed as far as
 * max_attno.  By-reference values are allocated in arena.  Returns the bytes
 * taken there.
 */
Size
gh_columns_copy(const GhColumns *columns, TupleTableSlot *slot, bool *nulls,
				Datum *values, MemoryContext arena)
{
	Size		total = 0;

	for (int i = 0; i < columns->ncolumns; i++)
	{
		int			att = columns->attnos[i] - 1;

		nulls[i] = slot->tts_isnull[att];
		values[i] = slot->tts_values[att];
		if (!nulls[i] && !columns->typbyvals[i])
		{
			Size		size = value_size(values[i], columns->typlens[i]);
			char	   *copy = MemoryContextAlloc(arena, size);

			value_copy(copy, values[i], columns->typlens[i], size);
			values[i] = PointerGetDatum(copy);
			total += size;
		}
	}
	return total;
}

/* ------------------------------------------------------------- the store */

void
gh_row_store_init(GhRowStore *store, MemoryContext context, const GhColumns *columns)
{
	memset(store, 0, sizeof(*store));
	store->context = context;
	store->columns = columns;
}

void
gh_row_store_reset(GhRowStore *store)
{
	for (int i = 0; i < store->nchunks; i++)
		pfree(store->chunks[i].start);
	if (store->chunks != NULL)
		pfree(store->chunks);
	gh_row_store_init(store, store->context, store->columns);
}

/* Opens a chunk with room for at least size bytes. */
static void
add_chunk(GhRowStore *store, Size size)
{
	GhRowChunk *chunk;
	Size		want = GH_CHUNK_MIN;

	if (store->nchunks > 0)
		want = Min(store->chunks[store->nchunks - 1].size * 2, GH_CHUNK_MAX);
	want = Max(want, size);

	if (store->nchunks == store->max_chunks)
	{
		int			max = Max(16, store->max_chunks * 2);

		if (store->chunks == NULL)
			store->chunks = MemoryContextAlloc(store->context, sizeof(GhRowChunk) * max);
		else
			store->chunks = repalloc_huge(store->chunks, sizeof(GhRowChunk) * max);
		store->max_chunks = max;
	}
	chunk = &store->chunks[store->nchunks];
	chunk->start = MemoryContextAllocHuge(store->context, want);
	chunk->size = want;
	chunk->used = 0;
	store->nchunks++;
	store->bytes += want;
}

/* Bytes of a row up to its by-reference values. */
static inline Size
fixed_size(const GhColumns *columns)
{
	return sizeof(GhRow) + columns->nulls_size + columns->ncolumns * sizeof(Datum);
}

/* Bytes of the whole row that slot would become. */
static Size
row_size(const GhColumns *columns, TupleTableSlot *slot)
{
	Size		size = fixed_size(columns);

	if (columns->all_byval)
		return size;
	for (int i = 0; i < columns->ncolumns; i++)
	{
		int			att = columns->attnos[i] - 1;

		if (!columns->typbyvals[i] && !slot->tts_isnull[att])
			size += MAXALIGN(value_size(slot->tts_values[att], columns->typlens[i]));
	}
	return size;
}

/* Appends the row in slot, deformed as far as max_attno. */
void
gh_row_store_add(GhRowStore *store, TupleTableSlot *slot, uint64 key)
{
	const GhColumns *columns = store->columns;
	Size		size = row_size(columns, slot);
	GhRowChunk *chunk = store->nchunks > 0 ? &store->chunks[store->nchunks - 1] : NULL;
	GhRow	   *row;
	bool	   *nulls;
	Datum	   *values;
	char	   *data;

	if (chunk == NULL || chunk->size - chunk->used < size)
	{
		add_chunk(store, size);
		chunk = &store->chunks[store->nchunks - 1];
	}
	row = (GhRow *) (chunk->start + chunk->used);
	row->next = NULL;
	row->key = key;
	nulls = gh_row_nulls(row);
	values = gh_row_values(columns, row);
	data = (char *) row + fixed_size(columns);
	for (int i = 0; i < columns->ncolumns; i++)
	{
		int			att = columns->attnos[i] - 1;

		nulls[i] = slot->tts_isnull[att];
		values[i] = slot->tts_values[att];
		if (!columns->typbyvals[i])
		{
			Size		length;

			if (nulls[i])
				continue;
			length = value_size(values[i], columns->typlens[i]);
			value_copy(data, values[i], columns->typlens[i], length);
			values[i] = PointerGetDatum(data);
			data += MAXALIGN(length);
		}
	}
	/* a reader steps from row to row by the same sizes */
	Assert(data == (char *) row + size);
	chunk->used += size;
	store->nrows++;
}

/* Bytes of a stored row. */
static Size
stored_size(const GhColumns *columns, GhRow *row)
{
	Size		size = fixed_size(columns);
	bool	   *nulls = gh_row_nulls(row);
	Datum	   *values = gh_row_values(columns, row);

	if (columns->all_byval)
		return size;
	for (int i = 0; i < columns->ncolumns; i++)
		if (!columns->typbyvals[i] && !nulls[i])
			size += MAXALIGN(datumGetSize(values[i], false, columns->typlens[i]));
	return size;
}

/* The next row in order of arrival, or NULL.  Start with a zeroed cursor. */
GhRow *
gh_row_store_next(const GhRowStore *store, GhRowCursor *cursor)
{
	while (cursor->chunk < store->nchunks)
	{
		GhRowChunk *chunk = &store->chunks[cursor->chunk];

		if (cursor->offset < chunk->used)
		{
			GhRow	   *row = (GhRow *) (chunk->start + cursor->offset);

			cursor->offset += stored_size(store->columns, row);
			return row;
		}
		cursor->chunk++;
		cursor->offset = 0;
	}
	return NULL;
}
