/*
 * key_statistics.c
 *		Statistics of a column's values, made of all of them, as ANALYZE would have made them.
 *
 * A row of pg_statistic that is never stored: how many values differ and, where these are not too many, all
 * of them as the column's most common ones.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
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

/* Brings values into order; returns how many differ, and these as runs, if they are not too many. */
static int
find_runs(Form_pg_attribute attribute, Datum *values, int nvalues, Run *runs)
{
	SortSupportData order;
	int			nruns = 0;

	memset(&order, 0, sizeof(order));
	order.ssup_cxt = CurrentMemoryContext;
	order.ssup_collation = attribute->attcollation;
	PrepareSortSupportFromOrderingOp(type_of(attribute)->lt_opr, &order);
	qsort_arg(values, nvalues, sizeof(Datum), compare_values, &order);
	for (int i = 0; i < nvalues; i++)
	{
		if (i == 0 || compare_values(&values[i - 1], &values[i], &order) != 0)
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
 * Of a column's values in so many rows, those that are not NULL, which it brings into order.  In the current
 * memory context.
 */
HeapTuple
gh_key_statistics(Form_pg_attribute attribute, Datum *values, int nvalues, double nrows)
{
	Relation	catalog = table_open(StatisticRelationId, AccessShareLock);
	Datum		row[Natts_pg_statistic] = {0};
	bool		nulls[Natts_pg_statistic] = {0};
	Run			runs[GH_KEY_COMMON_MAX];
	int			nruns = find_runs(attribute, values, nvalues, runs);
	HeapTuple	result;

	row[Anum_pg_statistic_starelid - 1] = ObjectIdGetDatum(attribute->attrelid);
	row[Anum_pg_statistic_staattnum - 1] = Int16GetDatum(attribute->attnum);
	row[Anum_pg_statistic_stainherit - 1] = BoolGetDatum(false);
	row[Anum_pg_statistic_stanullfrac - 1] = Float4GetDatum(nrows > 0 ? (float4) (1.0 - nvalues / nrows) : 0);
	row[Anum_pg_statistic_stawidth - 1] = Int32GetDatum(get_attavgwidth(attribute->attrelid, attribute->attnum));
	row[Anum_pg_statistic_stadistinct - 1] = Float4GetDatum((float4) Max(nruns, 1));
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
