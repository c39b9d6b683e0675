/*
 * rows.c
 *		Rows as the join keeps them.
 *
 * The join keeps, of either side, only the columns that its output and its
 * quals need, as an array of Datums with by-reference values copied behind
 * them.  Loading such a row into the scan tuple is two short copies; nothing is
 * deformed twice.  The inner rows lie in large chunks in the order in which they
 * came and never move.  The table stores where: the chunk's number and the offset in it,
 * which is the same wherever a process has mapped the chunk.
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "engine/huge_pages.h"
#include "join/join.h"

/* Chunks double up to the maximum, so that small joins stay small. */
#define GH_CHUNK_MIN ((Size) 64 * 1024)
#define GH_CHUNK_MAX ((Size) 32 * 1024 * 1024)

StaticAssertDecl(GH_CHUNK_MAX / 8 <= (Size) 1 << GH_NARROW_SHIFT, "offsets in 4 bytes of a reference");

/* What an allocation takes beside its bytes: header and rounding, about. */
#define GH_ALLOCATION_OVERHEAD 16

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
			total += size + GH_ALLOCATION_OVERHEAD;
		}
	}
	return total;
}

/* ------------------------------------------------------------ stored rows */

/* Bytes of the row that slot, deformed as far as max_attno, would become. */
Size
gh_row_size_of_slot(const GhColumns *columns, TupleTableSlot *slot)
{
	Size		size = gh_row_fixed_size(columns);

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

/* Bytes of a stored row. */
Size
gh_row_size(const GhColumns *columns, GhRow *row)
{
	Size		size = gh_row_fixed_size(columns);
	bool	   *nulls = gh_row_nulls(row);

	if (columns->all_byval)
		return size;
	for (int i = 0; i < columns->ncolumns; i++)
		if (!columns->typbyvals[i] && !nulls[i])
			size += MAXALIGN(datumGetSize(gh_row_datum(columns, row, i), false,
										  columns->typlens[i]));
	return size;
}

/* Makes the row of slot in memory of gh_row_size_of_slot bytes. */
void
gh_row_form(const GhColumns *columns, TupleTableSlot *slot, uint64 key, bool has_key,
			GhRow *row)
{
	bool	   *nulls = gh_row_nulls(row);
	Datum	   *values = gh_row_values(columns, row);
	char	   *data = (char *) row + gh_row_fixed_size(columns);
	bool		has_nulls = false;

	row->key = key;
	for (int i = 0; i < columns->ncolumns; i++)
	{
		int			att = columns->attnos[i] - 1;

		nulls[i] = slot->tts_isnull[att];
		values[i] = slot->tts_values[att];
		has_nulls |= nulls[i];
		if (!nulls[i] && !columns->typbyvals[i])
		{
			Size		size = value_size(values[i], columns->typlens[i]);

			value_copy(data, values[i], columns->typlens[i], size);
			values[i] = (Datum) (data - (char *) row);
			data += MAXALIGN(size);
		}
	}
	row->link = (has_key ? 0 : GH_ROW_KEYLESS) | (has_nulls ? GH_ROW_NULLS : 0);
}

/* ------------------------------------------------------------- the store */

/* An empty store.  Chunks stay small against memory_limit (bytes). */
void
gh_row_store_init(GhRowStore *store, MemoryContext context, const GhColumns *columns,
				  Size memory_limit)
{
	memset(store, 0, sizeof(*store));
	store->context = context;
	store->columns = columns;
	store->chunk_max = Max(GH_CHUNK_MIN, Min(GH_CHUNK_MAX, memory_limit / 16));
}

/* From now on, chunks are taken from the area; others may map them. */
void
gh_row_store_share(GhRowStore *store, dsa_area *area, pg_atomic_uint32 *last_number)
{
	store->area = area;
	store->last_number = last_number;
}

/* Frees the rows of one chunk, before all of them are. */
void
gh_row_store_free_chunk(GhRowStore *store, int chunk)
{
	char	  **start = &store->base[store->chunks[chunk].number];

	if (*start == NULL)
		return;
	if (store->area != NULL)
		dsa_free(store->area, store->chunks[chunk].shared);
	else
		pfree(*start);
	*start = NULL;
}

/* Leaves the rows to whoever else knows them, as if there were none. */
void
gh_row_store_forget(GhRowStore *store)
{
	if (store->chunks != NULL)
		pfree(store->chunks);
	if (store->base != NULL)
		pfree(store->base);
	store->chunks = NULL;
	store->base = NULL;
	store->max_chunks = store->max_bases = store->nchunks = 0;
	store->nrows = store->nkeys = 0;
	store->has_nulls = false;
	store->bytes = 0;
}

/* Frees every row. */
void
gh_row_store_reset(GhRowStore *store)
{
	for (int i = 0; i < store->nchunks; i++)
		gh_row_store_free_chunk(store, i);
	store->nchunks = 0;
	store->nrows = 0;
	store->nkeys = 0;
	store->has_nulls = false;
	store->bytes = 0;
}

/* An array that grows: room for element n. */
static void *
grow_array(GhRowStore *store, void *array, Size element, uint32 n, uint32 *max)
{
	uint32		old_max = *max;

	if (n < old_max)
		return array;
	*max = Max(16, (n + 1) * 2);
	if (array == NULL)
		return MemoryContextAllocHuge(store->context, element * *max);
	return repalloc_huge(array, element * *max);
}

static char *
chunk_memory(GhRowStore *store, GhRowChunk *chunk)
{
	chunk->shared = InvalidDsaPointer;
	if (store->area == NULL)
		return MemoryContextAllocHuge(store->context, chunk->size);
	chunk->shared = dsa_allocate_extended(store->area, chunk->size,
										  DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
	if (!DsaPointerIsValid(chunk->shared))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed on a request of %zu bytes of dynamic shared memory.", chunk->size)));
	return dsa_get_address(store->area, chunk->shared);
}

/* Appends rows that another store of the area has: they can be read by their refs. */
void
gh_row_store_map(GhRowStore *store, const GhRowChunk *chunks, uint32 nchunks)
{
	for (uint32 i = 0; i < nchunks; i++)
	{
		uint32		number = chunks[i].number;

		store->chunks = grow_array(store, store->chunks, sizeof(GhRowChunk), store->nchunks,
								   &store->max_chunks);
		store->base = grow_array(store, store->base, sizeof(char *), number, &store->max_bases);
		store->base[number] = dsa_get_address(store->area, chunks[i].shared);
		store->chunks[store->nchunks++] = chunks[i];
	}
}

/* Opens a chunk with room for at least size bytes. */
static void
add_chunk(GhRowStore *store, Size size)
{
	GhRowChunk *chunk;
	Size		want = GH_CHUNK_MIN;
	uint32		number;

	if (store->nchunks > 0)
		want = Min(store->chunks[store->nchunks - 1].size * 2, store->chunk_max);
	want = Max(want, size);

	store->chunks = grow_array(store, store->chunks, sizeof(GhRowChunk), store->nchunks,
							   &store->max_chunks);
	number = store->area == NULL ? store->nchunks + 1 :
		pg_atomic_add_fetch_u32(store->last_number, 1);
	store->base = grow_array(store, store->base, sizeof(char *), number, &store->max_bases);
	chunk = &store->chunks[store->nchunks];
	chunk->number = number;
	chunk->size = want;
	chunk->used = 0;
	store->base[number] = chunk_memory(store, chunk);
	gh_advise_huge_pages(store->base[number], want);
	store->nchunks++;
	store->bytes += want;
	store->bytes_peak = Max(store->bytes_peak, store->bytes);
}

/* Room for a row at the end of the store. */
static GhRow *
add_space(GhRowStore *store, Size size)
{
	GhRowChunk *chunk = store->nchunks > 0 ? &store->chunks[store->nchunks - 1] : NULL;
	GhRow	   *row;

	if (chunk == NULL || chunk->size - chunk->used < size)
	{
		add_chunk(store, size);
		chunk = &store->chunks[store->nchunks - 1];
	}
	row = (GhRow *) (store->base[chunk->number] + chunk->used);
	chunk->used += size;
	store->nrows++;
	return row;
}

/* Appends the row in slot, deformed as far as max_attno. */
void
gh_row_store_add_slot(GhRowStore *store, TupleTableSlot *slot, uint64 key, bool has_key)
{
	GhRow	   *row = add_space(store, gh_row_size_of_slot(store->columns, slot));

	gh_row_form(store->columns, slot, key, has_key, row);
	store->nkeys += has_key;
	store->has_nulls |= (row->link & GH_ROW_NULLS) != 0;
}

/* Appends a copy of a row that lies elsewhere. */
void
gh_row_store_add_row(GhRowStore *store, GhRow *row)
{
	Size		size = gh_row_size(store->columns, row);
	GhRow	   *copy = add_space(store, size);

	memcpy(copy, row, size);
	gh_row_set_next(copy, 0);
	store->nkeys += gh_row_has_key(copy);
	store->has_nulls |= (copy->link & GH_ROW_NULLS) != 0;
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
			GhRow	   *row;

			cursor->ref = ((GhRowRef) chunk->number << GH_REF_SHIFT) | cursor->offset;
			row = gh_row_at(store, cursor->ref);
			cursor->offset += gh_row_size(store->columns, row);
			return row;
		}
		cursor->chunk++;
		cursor->offset = 0;
	}
	return NULL;
}
