/*
 * shown.c
 *		How many digits after the point the values of a numeric column have, which its type does not tell.
 *
 * An engine has all values of a column at one scale.  Where the type has none it is the largest that ANALYZE has seen
 * among its samples; a value with more digits is handed back.  So this decides on speed alone, but it must be the same
 * in all processes of a query, which put their sums together: therefore statistics are read as the query's snapshot
 * sees them, and not as they are now.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "engine/page/numeric.h"
#include "expr/translate.h"

/* Of no column of a table: means have 16, or with a factor some more; numbers are below 1e20, then. */
#define GH_SHOWN_CALCULATED 18
#define GH_SHOWN_UNKNOWN (-2)
#define GH_SHOWN_TOO_MANY (GH_SCALE_MAX + 1)
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
	int			digits;			/* GH_SHOWN_UNKNOWN: no value tells; -1: too many */
	TransactionId made_by;		/* the version; not valid: nothing was found yet */
	ItemPointerData place;
} Shown;

static HTAB *shown_columns = NULL;

/* ---------------------------------------------------------------- statistics */

/* Sampled values, those that no engine has, and the most digits among the others. */
typedef struct Sample
{
	int			values;
	int			odd;
	int			most;
} Sample;

static void
look_at(HeapTuple statistics, int kind, Sample *sample)
{
	AttStatsSlot slot;

	if (!get_attstatsslot(&slot, statistics, kind, InvalidOid, ATTSTATSSLOT_VALUES))
		return;
	for (int i = 0; i < slot.nvalues && getBaseType(slot.valuetype) == NUMERICOID; i++)
	{
		struct varlena *stored = PG_DETOAST_DATUM_PACKED(slot.values[i]);
		uint64		digits;

		sample->values++;
		if (gh_numeric_scale((const uint8 *) VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored), &digits) &&
			digits <= GH_QUOTIENT_SCALE)
			sample->most = Max(sample->most, (int) digits);
		else
			sample->odd++;
	}
	free_attstatsslot(&slot);
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
digits_of(Column column, HeapTuple statistics)
{
	Shown	   *shown = remembered(column);
	Sample		sample = {0};
	TransactionId made_by = HeapTupleHeaderGetRawXmin(statistics->t_data);

	if (shown->made_by == made_by && TransactionIdIsValid(made_by) && ItemPointerEquals(&shown->place, &statistics->t_self))
		return shown->digits;
	/* an error here must leave nothing that is believed */
	shown->made_by = InvalidTransactionId;
	look_at(statistics, STATISTIC_KIND_MCV, &sample);
	look_at(statistics, STATISTIC_KIND_HISTOGRAM, &sample);
	shown->digits = sample.values == 0 ? GH_SHOWN_UNKNOWN : sample.odd > sample.values / 4 ? -1 : sample.most;
	shown->place = statistics->t_self;
	shown->made_by = made_by;
	return shown->digits;
}

/*
 * Digits after the point that are read of such a column of a relation, without a scale of its own: by its own
 * statistics, or else by those of it and its children.  -1: nothing tells, or most rows would be handed back.
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
		digits = digits_of(column, statistics);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return Max(digits, -1);
}

/* ------------------------------------------------------------------ row types */

/*
 * Tells the translation of a row type, which describes no relation itself, where an attribute comes from.  A type's
 * modifier of no digits in all, which there is not, says how many are read after the point.
 */
void
gh_shown_note(TupleDesc desc, AttrNumber attno, Oid relation, AttrNumber number)
{
	Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);
	int			digits;

	if (!gh_is_open_numeric(attribute->atttypid, attribute->atttypmod))
		return;
	digits = gh_shown_digits(relation, number);
	attribute->atttypmod = VARHDRSZ + (digits < 0 ? GH_SHOWN_TOO_MANY : digits);
}

/*
 * Of an attribute of the row type, which is such a numeric; -1: there is no such number.  *guessed: it is no column of a
 * table, and nothing is known of its numbers.
 */
int
gh_shown_of(TupleDesc desc, AttrNumber attno, bool *guessed)
{
	Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);
	int			noted = attribute->atttypmod - VARHDRSZ;

	*guessed = false;
	if (noted >= 0 && noted >> 16 == 0)
		return noted == GH_SHOWN_TOO_MANY ? -1 : noted;
	if (OidIsValid(attribute->attrelid) && attribute->attnum == attno)
		return gh_shown_digits(attribute->attrelid, attno);
	*guessed = true;
	return GH_SHOWN_CALCULATED;
}
