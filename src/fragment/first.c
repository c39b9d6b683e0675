/*
 * first.c
 *		ORDER BY ... LIMIT above a node: what lets the first rows of the order through, and few others, as some of the
 *		rows tell.
 *
 * Of the rows that are shown here, the values of the Sort's first key are kept that come first in its order,
 * as many as rows are wanted.  None of these rows comes behind the last one of these values: so whatever does
 * is not wanted.  Of n rows, with w wanted and s shown, some n * w / s come through: the fewest are seen in
 * all with s = sqrt(n * w). The Sort above puts them in order, and the Limit takes what it wants.
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "lib/binaryheap.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

#include "compat.h"
#include "fragment/first.h"

/* Pages of a sample, at least; and what part of all it is at most: where it is of no use, nobody notices. */
#define GH_SAMPLE_PAGES_MIN 8
#define GH_SAMPLE_PART 32
/* Rows that are wanted, at most: the values of as many are kept. */
#define GH_SAMPLE_WANTED_MAX 50000
/* A page of the sample costs what so many rows do that come out. */
#define GH_SAMPLE_PAGE_ROWS 8

struct GhFirstValues
{
	MemoryContext context;
	uint64		wanted;
	Expr	   *key;
	Oid			not_behind;		/* operator: a value is not behind another one in the order */
	Oid			collation;
	int16		length;			/* of the key's type */
	bool		by_value;
	SortSupportData order;
	binaryheap *heap;			/* the first ones, the last of these on top */
	uint64		shown;			/* values */
	uint64		ties;			/* of them, as good as the one on top, but not in the heap */
};

/* ---------------------------------------------------------------- the order */

/* binaryheap_comparator: the one that comes last is on top. */
static int
compare(Datum a, Datum b, void *arg)
{
	GhFirstValues *first = arg;
	const NullableDatum *left = (const NullableDatum *) DatumGetPointer(a);
	const NullableDatum *right = (const NullableDatum *) DatumGetPointer(b);

	return ApplySortComparator(left->value, left->isnull, right->value, right->isnull, &first->order);
}

/* Whether there is an operator that tells what is not behind, of the key's own type. */
static bool
find_order(GhFirstValues *first, const Sort *sort)
{
	Oid			family;
	Oid			type;
	gh_ordering ordering;
	int16		strategy;

	if (!get_ordering_op_properties(sort->sortOperators[0], &family, &type, &ordering) ||
		!IsBinaryCoercible(exprType((Node *) first->key), type))
		return false;
	strategy = ordering == GH_ORDERING_LESS ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	first->not_behind = get_opfamily_member(family, type, type, strategy);
	first->collation = sort->collations[0];
	get_typlenbyval(type, &first->length, &first->by_value);
	first->order.ssup_cxt = first->context;
	first->order.ssup_collation = sort->collations[0];
	first->order.ssup_nulls_first = sort->nullsFirst[0];
	PrepareSortSupportFromOrderingOp(sort->sortOperators[0], &first->order);
	return OidIsValid(first->not_behind);
}

/* --------------------------------------------------------------- the values */

/*
 * Of the first key of the Sort, an expression over rows, of which so many are wanted; all is in the current
 * context.  NULL: the order is of no operators.
 */
GhFirstValues *
gh_first_values_begin(const Sort *sort, Expr *key, uint64 wanted)
{
	GhFirstValues *first = palloc0(sizeof(GhFirstValues));

	first->context = CurrentMemoryContext;
	first->wanted = wanted;
	first->key = key;
	if (!find_order(first, sort))
		return NULL;
	first->heap = binaryheap_allocate((int) wanted, compare, first);
	return first;
}

static void
free_value(const GhFirstValues *first, NullableDatum *value)
{
	if (!value->isnull && !first->by_value)
		pfree(DatumGetPointer(value->value));
	pfree(value);
}

/* One that is in front of the last of the first ones takes its place among them. */
static void
replace_last(GhFirstValues *first, NullableDatum *kept)
{
	Datum		last = binaryheap_first(first->heap);

	binaryheap_replace_first(first->heap, PointerGetDatum(kept));
	first->ties = compare(last, binaryheap_first(first->heap), first) == 0 ? first->ties + 1 : 0;
	free_value(first, (NullableDatum *) DatumGetPointer(last));
}

static bool
is_full(const GhFirstValues *first)
{
	return (uint64) first->heap->bh_size == first->wanted;
}

/* Shows the key's value of one more row. */
void
gh_first_values_add(GhFirstValues *first, NullableDatum value)
{
	NullableDatum *kept;
	MemoryContext saved;
	int			order = -1;

	first->shown++;
	if (is_full(first))
		order = compare(PointerGetDatum(&value), binaryheap_first(first->heap), first);
	first->ties += order == 0;
	if (order >= 0)
		return;
	saved = MemoryContextSwitchTo(first->context);
	kept = palloc(sizeof(NullableDatum));
	kept->isnull = value.isnull;
	kept->value = value.isnull ? (Datum) 0 : datumCopy(value.value, first->by_value, first->length);
	MemoryContextSwitchTo(saved);
	if (is_full(first))
		replace_last(first, kept);
	else
		binaryheap_add(first->heap, PointerGetDatum(kept));
}

/* ------------------------------------------------------------ the condition */

/* Whether the key is not behind a value that is not NULL. */
static Expr *
make_comparison(const GhFirstValues *first, Expr *value)
{
	Expr	   *not_behind = make_opclause(first->not_behind, BOOLOID, false, first->key, value, InvalidOid,
										   first->collation);

	set_opfuncid((OpExpr *) not_behind);
	return not_behind;
}

/*
 * A condition like one that there may be: whether the key can be compared is known before there are values.
 */
Expr *
gh_first_values_comparison(const GhFirstValues *first)
{
	return make_comparison(first, first->key);
}

/* Whatever is not behind the last of the first ones: NULL is one of them, or is behind all that are none. */
static Expr *
make_condition(const GhFirstValues *first, const NullableDatum *last)
{
	Oid			type = exprType((Node *) first->key);
	Const	   *value;
	NullTest   *null;
	Expr	   *not_behind;

	null = makeNode(NullTest);
	null->arg = first->key;
	null->nulltesttype = IS_NULL;
	null->location = -1;
	if (last->isnull)
		return (Expr *) null;
	value = makeConst(type, exprTypmod((Node *) first->key), exprCollation((Node *) first->key),
					  first->length, last->value, false, first->by_value);
	not_behind = make_comparison(first, (Expr *) value);
	return first->order.ssup_nulls_first ? makeBoolExpr(OR_EXPR, list_make2(null, not_behind), -1) :
		not_behind;
}

/*
 * What is true of rows that may be among the first ones, over the key's rows.  NULL: all may, or most, by
 * what the key tells.
 */
Expr *
gh_first_values_condition(const GhFirstValues *first)
{
	const NullableDatum *last;

	if (!is_full(first) || first->wanted + first->ties > first->shown / 2)
		return NULL;
	last = (const NullableDatum *) DatumGetPointer(binaryheap_first(first->heap));
	if (last->isnull && !first->order.ssup_nulls_first)
		return NULL;
	return make_condition(first, last);
}

/* --------------------------------------------------------------- the sample */

/*
 * How many of so many pages are to be looked at where so many of their rows are wanted; 0: it is of no use.
 * Of b pages with s in the sample, b / s rows come out for each that is wanted; where the sample has fewer
 * than are wanted, all are few.
 */
double
gh_first_sample_pages(double pages, double wanted)
{
	double		most = floor(pages / GH_SAMPLE_PART);
	double		best = floor(sqrt(wanted * pages / GH_SAMPLE_PAGE_ROWS));

	if (wanted == 0 || wanted > GH_SAMPLE_WANTED_MAX || most < GH_SAMPLE_PAGES_MIN)
		return 0;
	return Min(Max(best, GH_SAMPLE_PAGES_MIN), most);
}

/*
 * Of a sample of groups: so many for each that is wanted; and it is no use if it is more than this part of
 * all.
 */
#define GH_SAMPLE_GROUPS_EACH 16
#define GH_SAMPLE_GROUPS_PART 4

/*
 * Likewise of groups, of which at least so many are looked at.  Of n groups with s in the sample, n / s come
 * out for each that is wanted.
 */
uint64
gh_first_sample_groups(uint64 groups, uint64 wanted, uint64 least)
{
	uint64		sample = (uint64) sqrt((double) groups * Min(wanted, groups));

	sample = Max(Max(sample, least), Min(wanted, groups) * GH_SAMPLE_GROUPS_EACH);
	return wanted == 0 || sample > groups / GH_SAMPLE_GROUPS_PART ? 0 : sample;
}
