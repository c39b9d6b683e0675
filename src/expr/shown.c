/*
 * shown.c
 *		How many digits after the point the values of a numeric column have, which its type does not tell.
 *
 * An engine has all values of a column at one scale.  Where the type has none it is one that nearly all
 * values have among those that ANALYZE has kept; a value with more digits is handed back.  So this decides on
 * speed alone, but it must be the same in all processes of a query, which put their sums together: therefore
 * statistics are read as the query's snapshot sees them, and not as they are now.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "engine/page/numeric.h"
#include "expr/translate.h"

/* Of no column of a table: means have 16, or with a factor some more; numbers are below 1e20, then. */
#define GH_SHOWN_CALCULATED 18
/* In place of what is not there, noted for a row type. */
#define GH_SHOWN_NONE (GH_SCALE_MAX + 1)
/* So many of the values are to have no more, */
#define GH_SHOWN_SHARE 0.98
/* and so many are read at least: of what comes next, some may have more than what ANALYZE has seen. */
#define GH_SHOWN_LEAST 4
/* Decimal digits of what a sum takes: the engines leave room for very many of them in 127 bits. */
#define GH_SUMMAND_DIGITS 25
/* Columns that are remembered; when there are more, all are looked up anew. */
#define GH_SHOWN_COLUMNS_MAX 4096

typedef struct Column
{
	Oid			relation;
	AttrNumber	number;
} Column;

/* What was found, and in which version of the statistics. */
typedef struct Shown
{
	Column		column;			/* the key */
	int			digits;			/* or GH_SHOWN_UNKNOWN, GH_SHOWN_TOO_MANY */
	TransactionId made_by;		/* the version; not valid: nothing was found yet */
	ItemPointerData place;
} Shown;

static HTAB *shown_columns = NULL;

/* ---------------------------------------------------------------- statistics */

/* A column's values among those that are not NULL, as far as ANALYZE has kept some. */
typedef struct Sampled
{
	double		share;			/* that is like this one */
	int			digits;			/* after the point, that it shows; more than any engine has, if it is no number */
	int			before;			/* digits before the point; 0 or less: of a fraction */
} Sampled;

typedef struct Sample
{
	int			count;
	Sampled    *values;
} Sample;

/* Bytes of a stored numeric; they may be another column's type's, whose column this once was. */
static ArrayType *
sampled_values(TupleDesc desc, HeapTuple statistics, int slot)
{
	bool		null;
	Datum		values = heap_getattr(statistics, Anum_pg_statistic_stavalues1 + slot, desc, &null);
	ArrayType  *array;
	Oid			type;

	if (null)
		return NULL;
	array = DatumGetArrayTypeP(values);
	type = ARR_ELEMTYPE(array);
	/* a domain may be gone, for those who see older statistics */
	return type == NUMERICOID ||
		(SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)) && getBaseType(type) == NUMERICOID) ? array : NULL;
}

/* How often the values of most common ones are, each; NULL: they are all alike. */
static float4 *
sampled_shares(TupleDesc desc, HeapTuple statistics, int slot, int nvalues)
{
	bool		null;
	Datum		numbers = heap_getattr(statistics, Anum_pg_statistic_stanumbers1 + slot, desc, &null);
	ArrayType  *array = null ? NULL : DatumGetArrayTypeP(numbers);

	return array != NULL && ARR_NDIM(array) == 1 && ARR_DIMS(array)[0] >= nvalues && ARR_ELEMTYPE(array) == FLOAT4OID &&
		!ARR_HASNULL(array) ? (float4 *) ARR_DATA_PTR(array) : NULL;
}

static Sampled
sampled_value(Datum value, double share)
{
	struct varlena *stored = PG_DETOAST_DATUM_PACKED(value);
	Sampled		sampled = {.share = share,.digits = GH_SHOWN_NONE};
	GhNumeric	numeric;

	if (!gh_numeric_open((const uint8 *) VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored), &numeric))
		return sampled;
	sampled.digits = (int) Min(numeric.scale, GH_SHOWN_NONE);
	if (numeric.ndigits == 0)
		return sampled;
	sampled.before = GH_NUMERIC_BASE_DIGITS * numeric.weight;
	for (uint32 first = gh_numeric_digit(&numeric, 0); first > 0; first /= 10)
		sampled.before++;
	return sampled;
}

/* Adds the values of a kind; so many of all that are not NULL are this kind's. */
static double
add_values(TupleDesc desc, HeapTuple statistics, int kind, double rest, Sample *sample)
{
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(statistics);
	const int16 *kinds = &form->stakind1;
	ArrayType  *array;
	float4	   *shares;
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;
	int			slot = 0;
	double		added = 0;

	while (slot < STATISTIC_NUM_SLOTS && kinds[slot] != kind)
		slot++;
	if (slot == STATISTIC_NUM_SLOTS || (array = sampled_values(desc, statistics, slot)) == NULL)
		return 0;
	deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_INT, &values, &nulls, &nvalues);
	shares = kind == STATISTIC_KIND_MCV ? sampled_shares(desc, statistics, slot, nvalues) : NULL;
	sample->values = sample->count == 0 ? palloc(sizeof(Sampled) * Max(nvalues, 1)) :
		repalloc(sample->values, sizeof(Sampled) * (sample->count + nvalues));
	for (int i = 0; i < nvalues; i++)
	{
		double		share = shares != NULL ? shares[i] : rest / nvalues;

		added += share;
		sample->values[sample->count++] = sampled_value(values[i], share);
	}
	return added;
}

/* The share of the values that are read at so many digits, and that sums have room for then. */
static double
fitting_share(const Sample *sample, int digits)
{
	double		fitting = 0;
	double		all = 0;

	for (int i = 0; i < sample->count; i++)
	{
		const Sampled *value = &sample->values[i];

		all += value->share;
		if (value->digits <= digits && value->before + digits <= GH_SUMMAND_DIGITS)
			fitting += value->share;
	}
	return fitting / all;
}

/* The fewest digits that nearly all values have, or fewer; GH_SHOWN_TOO_MANY: there is no such number. */
static int
digits_of_sample(const Sample *sample)
{
	int			digits = GH_SHOWN_LEAST;

	while (digits <= GH_QUOTIENT_SCALE && fitting_share(sample, digits) < GH_SHOWN_SHARE)
		digits++;
	return digits <= GH_QUOTIENT_SCALE ? digits : GH_SHOWN_TOO_MANY;
}

/* -------------------------------------------------------------- what was found */

static Shown *
remembered(Column column)
{
	HASHCTL		options = {.keysize = sizeof(Column),.entrysize = sizeof(Shown)};
	Shown	   *shown;
	bool		found;

	if (shown_columns != NULL && hash_get_num_entries(shown_columns) >= GH_SHOWN_COLUMNS_MAX)
	{
		hash_destroy(shown_columns);
		shown_columns = NULL;
	}
	if (shown_columns == NULL)
		shown_columns = hash_create("gpuhash digits of numeric columns", 64, &options, HASH_ELEM | HASH_BLOBS);
	shown = hash_search(shown_columns, &column, HASH_ENTER, &found);
	if (!found)
		shown->made_by = InvalidTransactionId;
	return shown;
}

/* The digits of this version of the column's statistics. */
static int
digits_of(Column column, TupleDesc desc, HeapTuple statistics)
{
	Shown	   *shown = remembered(column);
	Sample		sample = {0};
	double		common;
	TransactionId made_by = HeapTupleHeaderGetRawXmin(statistics->t_data);

	if (shown->made_by == made_by && TransactionIdIsValid(made_by) && ItemPointerEquals(&shown->place, &statistics->t_self))
		return shown->digits;
	/* an error here must leave nothing that is believed */
	shown->made_by = InvalidTransactionId;
	common = add_values(desc, statistics, STATISTIC_KIND_MCV, 1.0, &sample);
	(void) add_values(desc, statistics, STATISTIC_KIND_HISTOGRAM, Max(1.0 - common, 0.01), &sample);
	shown->digits = sample.count == 0 ? GH_SHOWN_UNKNOWN : digits_of_sample(&sample);
	shown->place = statistics->t_self;
	shown->made_by = made_by;
	return shown->digits;
}

/*
 * Digits after the point that are read of such a column of a relation, without a scale of its own: by its own
 * statistics, or else by those of it and its children.  GH_SHOWN_TOO_MANY: many rows would be handed back;
 * GH_SHOWN_UNKNOWN: nothing tells.
 */
int
gh_shown_digits(Oid relation, AttrNumber number)
{
	Snapshot	snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
	Relation	catalog = table_open(StatisticRelationId, AccessShareLock);
	Column		column;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	statistics;
	int			digits = GH_SHOWN_UNKNOWN;

	/* what lies between its parts is a part of the key */
	memset(&column, 0, sizeof(column));
	column.relation = relation;
	column.number = number;
	ScanKeyInit(&keys[0], Anum_pg_statistic_starelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
	ScanKeyInit(&keys[1], Anum_pg_statistic_staattnum, BTEqualStrategyNumber, F_INT2EQ, Int16GetDatum(number));
	scan = systable_beginscan(catalog, StatisticRelidAttnumInhIndexId, true, snapshot, 2, keys);
	while (digits == GH_SHOWN_UNKNOWN && HeapTupleIsValid(statistics = systable_getnext(scan)))
		digits = digits_of(column, RelationGetDescr(catalog), statistics);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return digits;
}

/* ------------------------------------------------------------------ row types */

/*
 * Tells the translation of a row type, which describes no relation itself, where an attribute comes from.  A
 * type's modifier of no digits in all, which there is not, says how many are read after the point.
 */
void
gh_shown_note(TupleDesc desc, AttrNumber attno, Oid relation, AttrNumber number)
{
	Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);
	int			digits;

	if (!gh_is_open_numeric(attribute->atttypid, attribute->atttypmod))
		return;
	digits = gh_shown_digits(relation, number);
	attribute->atttypmod = VARHDRSZ + (digits < 0 ? GH_SHOWN_NONE - digits : digits);
}

/*
 * Of an attribute of the row type, which is such a numeric, or why there is no such number.  *guessed: it is
 * no column of a table, and nothing is known of its numbers.
 */
int
gh_shown_of(TupleDesc desc, AttrNumber attno, bool *guessed)
{
	Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);
	int			noted = attribute->atttypmod - VARHDRSZ;

	*guessed = false;
	if (noted >= 0 && noted >> 16 == 0)
		return noted > GH_SHOWN_NONE ? GH_SHOWN_NONE - noted : noted;
	if (OidIsValid(attribute->attrelid) && attribute->attnum == attno)
		return gh_shown_digits(attribute->attrelid, attno);
	*guessed = true;
	return GH_SHOWN_CALCULATED;
}
