/*
 * key_statistics.c
 *		Statistics of a column's values, made of all of them, as ANALYZE would have made them.
 *
 * A row of pg_statistic that is never stored: how many values differ and, where these are not too many, all
 * of them as the column's most common ones.
 *
 * Of two columns that are equal the planner takes it that the one with fewer values has none that the other
 * has not.  The Novembers of two hundred years have more days than five years of sales, but few of these days
 * are among them.  What share is, a sample tells: the other column's common values and the bounds of its
 * histogram.  So the number of values is said to be as much larger.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/pathnodes.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"

#include "plan/key_values.h"

/*
 * The share of rows that the common values have together.  With all of them the planner would take the least
 * and the largest as the bounds of the column, and let a merge join's other side end there; what is below
 * that side is not priced well for a part of it.
 */
#define GH_COMMON_SHARE 0.9999

/* Equal values, which lie side by side from `first` on. */
typedef struct Run
{
	int			first;
	int			count;
} Run;

static TypeCacheEntry *
type_of(Form_pg_attribute attribute)
{
	return lookup_type_cache(getBaseType(attribute->atttypid), TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR);
}

/*
 * Whether values of the column are of a type of PostgreSQL's own that has an order, without which they are
 * not counted.
 */
bool
gh_key_has_statistics(Form_pg_attribute attribute)
{
	const TypeCacheEntry *type = type_of(attribute);

	/* a deep tsquery may lack the stack to be compared */
	return type->type_id < FirstUnpinnedObjectId && type->type_id != TSQUERYOID && type->typtype == TYPTYPE_BASE && !OidIsValid(get_element_type(type->type_id)) &&
		OidIsValid(type->eq_opr) && OidIsValid(type->lt_opr) &&
		(OidIsValid(attribute->attcollation) || !type_is_collatable(attribute->atttypid));
}

static int
compare_values(const void *a, const void *b, void *order)
{
	return ApplySortComparator(*(const Datum *) a, false, *(const Datum *) b, false, order);
}

static int
compare_counts(const void *a, const void *b)
{
	const Run  *run_a = a;
	const Run  *run_b = b;

	if (run_a->count != run_b->count)
		return run_a->count > run_b->count ? -1 : 1;
	return run_a->first < run_b->first ? -1 : 1;
}

static void
prepare_order(Form_pg_attribute attribute, SortSupport order)
{
	memset(order, 0, sizeof(*order));
	order->ssup_cxt = CurrentMemoryContext;
	order->ssup_collation = attribute->attcollation;
	PrepareSortSupportFromOrderingOp(type_of(attribute)->lt_opr, order);
}

/* Brings values into order; returns how many differ, and these as runs, if they are not too many. */
static int
find_runs(SortSupport order, Datum *values, int nvalues, Run *runs)
{
	int			nruns = 0;

	qsort_arg(values, nvalues, sizeof(Datum), compare_values, order);
	for (int i = 0; i < nvalues; i++)
	{
		if (i == 0 || compare_values(&values[i - 1], &values[i], order) != 0)
		{
			if (nruns < GH_KEY_COMMON_MAX)
				runs[nruns] = (Run) {.first = i};
			nruns++;
		}
		if (nruns <= GH_KEY_COMMON_MAX)
			runs[nruns - 1].count++;
	}
	return nruns;
}

/* ------------------------------------------------------------- another column */

/* What another column's statistics show of how many of its values are among some. */
typedef struct Shared
{
	bool		is_known;
	double		values;			/* that it has */
	int			ncommon;		/* of its common values: how many are among them, */
	double		common;			/* which share of all rows these have, */
	double		all_common;		/* and all common ones */
	double		others;			/* of its other values, the share */
} Shared;

static bool
is_among(SortSupport order, const Datum *values, int nvalues, Datum value)
{
	int			low = 0;
	int			high = nvalues;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		int			result = ApplySortComparator(values[middle], false, value, false, order);

		if (result == 0)
			return true;
		if (result < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

static int64
integer_of(Oid type, Datum value)
{
	if (type == INT2OID)
		return DatumGetInt16(value);
	return type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
}

/* A value of another type as one of the key's, for the key's order; false: there is none. */
static bool
as_key(Oid type, Oid from, Datum *value)
{
	int64		number;

	if (type == from || IsBinaryCoercible(from, type))
		return true;
	number = integer_of(from, *value);
	if (type == INT2OID)
		*value = Int16GetDatum((int16) number);
	else
		*value = type == INT4OID ? Int32GetDatum((int32) number) : Int64GetDatum(number);
	return integer_of(type, *value) == number;
}

static bool
are_comparable(Oid type, Oid other)
{
	return type == other || IsBinaryCoercible(other, type) || (is_integer(type) && is_integer(other));
}

/* A sample without any says that there are fewer than one would be. */
static double
share_of(int found, int all)
{
	return all == 0 ? 1.0 : Max(found, 0.5) / all;
}

static void
look_among(const VariableStatData *data, SortSupport order, Oid type, const Datum *values, int nvalues,
		   Shared *shared)
{
	AttStatsSlot slot;
	int			nfound = 0;
	int			nbounds = 0;

	if (get_attstatsslot(&slot, data->statsTuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		shared->is_known = are_comparable(type, slot.valuetype);
		for (int i = 0; i < slot.nvalues && shared->is_known; i++)
		{
			shared->all_common += slot.numbers[i];
			if (!as_key(type, slot.valuetype, &slot.values[i]) ||
				!is_among(order, values, nvalues, slot.values[i]))
				continue;
			shared->common += slot.numbers[i];
			shared->ncommon++;
		}
		free_attstatsslot(&slot);
	}
	if (get_attstatsslot(&slot, data->statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		shared->is_known = are_comparable(type, slot.valuetype);
		nbounds = slot.nvalues;
		for (int i = 0; i < nbounds && shared->is_known; i++)
			nfound += as_key(type, slot.valuetype, &slot.values[i]) &&
				is_among(order, values, nvalues, slot.values[i]);
		free_attstatsslot(&slot);
	}
	shared->others = share_of(nfound, nbounds);
}

/* Of values that are in order. */
static Shared
find_shared(PlannerInfo *root, SortSupport order, Oid type, const Datum *values, int nvalues,
			const Var *other)
{
	VariableStatData data;
	Shared		shared = {0};
	bool		is_default;

	examine_variable(root, (Node *) other, 0, &data);
	shared.values = get_variable_numdistinct(&data, &is_default);
	if (HeapTupleIsValid(data.statsTuple) && data.acl_ok)
		look_among(&data, order, type, values, nvalues, &shared);
	ReleaseVariableStats(data);
	return shared;
}

/*
 * How many values the column is to be said to have that has so many, so that joins with the other one have as
 * many rows as that has of these; 0: nobody knows.  Of common values the planner finds out by itself.
 */
static double
distinct_values(const Shared *shared, int nruns)
{
	if (!shared->is_known)
		return nruns <= GH_KEY_COMMON_MAX || nruns <= shared->values ? Max(nruns, 1) : 0;
	if (nruns <= GH_KEY_COMMON_MAX)
		return Max(shared->ncommon + (nruns - shared->ncommon) / shared->others, 1);
	return nruns / Max(shared->common + (1 - Min(shared->all_common, 1)) * shared->others, 1e-4);
}

/* -------------------------------------------------------------- the statistics */

/* As one slot of statistics: the runs' values, and which share of all rows each has. */
static void
set_common(Form_pg_attribute attribute, const Datum *values, const Run *runs, int nruns, double nrows, Datum *row, bool *nulls)
{
	const TypeCacheEntry *type = type_of(attribute);
	Datum	   *common = palloc(nruns * sizeof(Datum));
	Datum	   *shares = palloc(nruns * sizeof(Datum));

	for (int i = 0; i < nruns; i++)
	{
		common[i] = values[runs[i].first];
		shares[i] = Float4GetDatum((float4) (GH_COMMON_SHARE * runs[i].count / nrows));
	}
	row[Anum_pg_statistic_stakind1 - 1] = Int16GetDatum(STATISTIC_KIND_MCV);
	row[Anum_pg_statistic_staop1 - 1] = ObjectIdGetDatum(type->eq_opr);
	row[Anum_pg_statistic_stacoll1 - 1] = ObjectIdGetDatum(attribute->attcollation);
	row[Anum_pg_statistic_stanumbers1 - 1] = PointerGetDatum(construct_array(shares, nruns, FLOAT4OID, sizeof(float4), true, TYPALIGN_INT));
	row[Anum_pg_statistic_stavalues1 - 1] =
		PointerGetDatum(construct_array(common, nruns, type->type_id, type->typlen, type->typbyval, type->typalign));
	nulls[Anum_pg_statistic_stanumbers1 - 1] = nulls[Anum_pg_statistic_stavalues1 - 1] = false;
}

/*
 * Of a column's values in so many rows, those that are not NULL, which it brings into order; other: a column
 * that is equal.  NULL: they would say less than there is.  In the current memory context.
 */
HeapTuple
gh_key_statistics(PlannerInfo *root, Form_pg_attribute attribute, Datum *values, int nvalues, double nrows,
				  const Var *other)
{
	Relation	catalog;
	Datum		row[Natts_pg_statistic] = {0};
	bool		nulls[Natts_pg_statistic] = {0};
	Run			runs[GH_KEY_COMMON_MAX];
	SortSupportData order;
	Shared		shared;
	int			nruns;
	double		distinct;
	HeapTuple	result;

	prepare_order(attribute, &order);
	nruns = find_runs(&order, values, nvalues, runs);
	shared = find_shared(root, &order, type_of(attribute)->type_id, values, nvalues, other);
	distinct = distinct_values(&shared, nruns);
	if (distinct == 0)
		return NULL;
	catalog = table_open(StatisticRelationId, AccessShareLock);
	row[Anum_pg_statistic_starelid - 1] = ObjectIdGetDatum(attribute->attrelid);
	row[Anum_pg_statistic_staattnum - 1] = Int16GetDatum(attribute->attnum);
	row[Anum_pg_statistic_stainherit - 1] = BoolGetDatum(false);
	row[Anum_pg_statistic_stanullfrac - 1] = Float4GetDatum(nrows > 0 ? (float4) (1.0 - nvalues / nrows) : 0);
	row[Anum_pg_statistic_stawidth - 1] = Int32GetDatum(get_attavgwidth(attribute->attrelid, attribute->attnum));
	row[Anum_pg_statistic_stadistinct - 1] = Float4GetDatum((float4) distinct);
	for (int i = 0; i < STATISTIC_NUM_SLOTS; i++)
	{
		nulls[Anum_pg_statistic_stanumbers1 - 1 + i] = true;
		nulls[Anum_pg_statistic_stavalues1 - 1 + i] = true;
	}
	if (nruns > 0 && nruns <= GH_KEY_COMMON_MAX)
	{
		qsort(runs, nruns, sizeof(Run), compare_counts);
		set_common(attribute, values, runs, nruns, nrows, row, nulls);
	}
	result = heap_form_tuple(RelationGetDescr(catalog), row, nulls);
	table_close(catalog, AccessShareLock);
	return result;
}
