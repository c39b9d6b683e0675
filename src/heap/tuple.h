/*
 * tuple.h
 *		tuple.c: columns straight from a heap tuple.
 */
#ifndef GPUHASH_TUPLE_H
#define GPUHASH_TUPLE_H

#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"

/* An attribute of the relation, as far as stepping over it needs. */
typedef struct GhAttribute
{
	int16		len;
	bool		byval;
	uint8		alignby;		/* bytes */
} GhAttribute;

typedef struct GhReaderColumn
{
	int			attno;			/* of the relation */
	int			output;			/* where its value goes */
	int			offset;			/* bytes, for one of the nfixed: in the tuple's data */
	GhAttribute attribute;
} GhReaderColumn;

/*
 * Reads some columns of a relation's tuples.  In a tuple without NULLs among its first
 * prefix attributes, the first nfixed columns lie at offsets that are the same for all.
 */
typedef struct GhTupleReader
{
	TupleDesc	desc;
	GhAttribute *attributes;	/* up to the last column's */
	int			ncolumns;
	GhReaderColumn *columns;	/* in the order of the relation */
	int			nfixed;
	int			prefix;
	int			walk_offset;	/* bytes: where the attribute after the prefix starts */
} GhTupleReader;

extern void gh_reader_init(GhTupleReader *reader, TupleDesc desc, int ncolumns,
						   const int *attnos, const int *outputs);
extern void gh_reader_walk(const GhTupleReader *reader, HeapTupleHeader tuple, bool prefix,
						   Datum *values, bool *nulls);

/* Whether the tuple has its first natts attributes, and none of them is NULL. */
static inline bool
gh_tuple_has_prefix(HeapTupleHeader tuple, int natts)
{
	uint8		rest = (1 << natts % 8) - 1;

	if (HeapTupleHeaderGetNatts(tuple) < natts)
		return false;
	if ((tuple->t_infomask & HEAP_HASNULL) == 0)
		return true;
	for (int i = 0; i < natts / 8; i++)
		if (tuple->t_bits[i] != 0xff)
			return false;
	return rest == 0 || (tuple->t_bits[natts / 8] & rest) == rest;
}

static inline Datum
gh_fetch_attribute(const char *place, GhAttribute attribute)
{
	return fetch_att(place, attribute.byval, attribute.len);
}

/* Puts the columns' values where they go. */
static inline void
gh_reader_load(const GhTupleReader *reader, HeapTupleHeader tuple, Datum *values, bool *nulls)
{
	const char *data = (const char *) tuple + tuple->t_hoff;

	if (!gh_tuple_has_prefix(tuple, reader->prefix))
	{
		gh_reader_walk(reader, tuple, false, values, nulls);
		return;
	}
	for (int i = 0; i < reader->nfixed; i++)
	{
		const GhReaderColumn *column = &reader->columns[i];

		values[column->output] = gh_fetch_attribute(data + column->offset, column->attribute);
		nulls[column->output] = false;
	}
	if (reader->nfixed < reader->ncolumns)
		gh_reader_walk(reader, tuple, true, values, nulls);
}

#endif							/* GPUHASH_TUPLE_H */
