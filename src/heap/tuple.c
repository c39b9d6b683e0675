/*
 * tuple.c
 *		Columns straight from a heap tuple.
 *
 * A row that is read to be looked up has little use for the values of columns but its
 * key's.  A reader fetches the columns that it was made for: at offsets known from the
 * relation's description as far as those before are of fixed width and not NULL, and
 * from there, or else from the start, by stepping over the attributes.
 *
 * Tuples may have fewer attributes than the relation (ALTER TABLE ADD COLUMN does not
 * rewrite it); what is missing has the value noted in the relation's description, or
 * is NULL.  Dropped columns are stepped over like others: their width stays known.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"

#include "heap/layout.h"
#include "heap/tuple.h"

static GhAttribute
make_attribute(Form_pg_attribute att)
{
	GhAttribute attribute;

	attribute.len = att->attlen;
	attribute.byval = att->attbyval;
	attribute.alignby = gh_alignment_bytes(att->attalign);
	return attribute;
}

/* The number of columns, in their order, that go before attno. */
static int
place_of_column(const GhTupleReader *reader, int attno)
{
	int			at = 0;

	while (at < reader->ncolumns && reader->columns[at].attno < attno)
		at++;
	return at;
}

/* Offsets of the attributes up to the first whose place depends on the tuple. */
static void
find_fixed_columns(GhTupleReader *reader, int natts)
{
	int			offset = 0;
	int			att;

	for (att = 0; att < natts && reader->attributes[att].len > 0; att++)
	{
		GhAttribute *attribute = &reader->attributes[att];

		offset = TYPEALIGN(attribute->alignby, offset);
		while (reader->nfixed < reader->ncolumns &&
			   reader->columns[reader->nfixed].attno == att + 1)
			reader->columns[reader->nfixed++].offset = offset;
		offset += attribute->len;
	}
	/* what lies behind the last column does not matter */
	reader->prefix = att;
	reader->walk_offset = offset;
}

/*
 * A reader of the columns attnos of a relation; the value of each goes to the place in
 * outputs.
 */
void
gh_reader_init(GhTupleReader *reader, TupleDesc desc, int ncolumns, const int *attnos,
			   const int *outputs)
{
	int			natts = 0;

	memset(reader, 0, sizeof(*reader));
	reader->desc = desc;
	reader->columns = palloc0(sizeof(GhReaderColumn) * Max(ncolumns, 1));
	for (int i = 0; i < ncolumns; i++)
	{
		int			at = place_of_column(reader, attnos[i]);

		memmove(&reader->columns[at + 1], &reader->columns[at],
				sizeof(GhReaderColumn) * (reader->ncolumns - at));
		reader->columns[at].attno = attnos[i];
		reader->columns[at].output = outputs[i];
		reader->columns[at].attribute = make_attribute(TupleDescAttr(desc, attnos[i] - 1));
		reader->ncolumns++;
		natts = Max(natts, attnos[i]);
	}
	reader->attributes = palloc(sizeof(GhAttribute) * Max(natts, 1));
	for (int att = 0; att < natts; att++)
		reader->attributes[att] = make_attribute(TupleDescAttr(desc, att));
	find_fixed_columns(reader, natts);
}

/* Where the attribute starts that follows what ends at offset. */
static inline uint32
align_offset(const char *data, uint32 offset, GhAttribute attribute)
{
	/* a varlena with a short header is not aligned, and padding is zero */
	if (attribute.len == -1 && data[offset] != 0)
		return offset;
	return TYPEALIGN(attribute.alignby, offset);
}

/*
 * Loads the columns that have no fixed place, or, of a tuple without the prefix, all.
 */
void
gh_reader_walk(const GhTupleReader *reader, HeapTupleHeader tuple, bool prefix,
			   Datum *values, bool *nulls)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	bool		has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			natts = HeapTupleHeaderGetNatts(tuple);
	int			at = prefix ? reader->nfixed : 0;
	uint32		offset = prefix ? reader->walk_offset : 0;

	for (int att = prefix ? reader->prefix : 0; att < natts && at < reader->ncolumns; att++)
	{
		bool		isnull = has_nulls && att_isnull(att, tuple->t_bits);
		GhAttribute attribute = reader->attributes[att];

		if (!isnull)
			offset = align_offset(data, offset, attribute);
		for (; at < reader->ncolumns && reader->columns[at].attno == att + 1; at++)
		{
			int			output = reader->columns[at].output;

			nulls[output] = isnull;
			values[output] = isnull ? (Datum) 0 : gh_fetch_attribute(data + offset, attribute);
		}
		if (!isnull)
			offset = att_addlength_pointer(offset, attribute.len, data + offset);
	}
	for (; at < reader->ncolumns; at++)
	{
		int			output = reader->columns[at].output;

		values[output] = getmissingattr(reader->desc, reader->columns[at].attno,
										&nulls[output]);
	}
}
