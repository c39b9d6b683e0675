/*
 * first.c
 *		ORDER BY ... LIMIT above groups on a device: a condition that lets through the first ones of the
 *		order, and few others.
 *
 * The first key of the Sort is computed for a sample of the groups that HAVING lets out.  As many of them as
 * are wanted do not come behind the last one of these: so whatever does is not wanted.  Of n groups, with w
 * wanted and s in the sample, some n * w / s come out: the fewest are seen in all with s = sqrt(n * w).  The
 * Sort above puts them in order, and the Limit takes what it wants.
 *
 * A group that does not come out is not seen by any expression of PostgreSQL's: so all that is computed of
 * groups has to have a program, or to be just a column, and a group for which PostgreSQL might raise an error
 * hands back.
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "executor/executor.h"
#include "lib/binaryheap.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

#include "aggregate/level.h"
#include "fragment/bound.h"

/* Groups of a sample: so many at least, or a batch, and so many for each that is wanted. */
#define GH_SAMPLE_MIN 4096
#define GH_SAMPLE_PER_GROUP 16
/* It is no use if the sample is more than this part of all. */
#define GH_SAMPLE_PART 4

struct GhFirstGroups
{
	GhAggregateNode *node;
	MemoryContext context;
	uint64		wanted;
	uint64		sample;
	Expr	   *key;			/* over the scan tuple */
	ExprState  *key_state;
	Oid			not_behind;		/* operator: a value is not behind another one in the order */
	Oid			collation;
	int16		length;			/* of the key's type */
	bool		by_value;
	SortSupportData order;
	binaryheap *heap;			/* the first ones of the sample, the last of these on top */
	uint64		taken;			/* groups of the sample */
	uint64		ties;			/* of them, as good as the one on top, but not in the heap */
	Expr	   *condition;		/* over the scan tuple */
};

/* ---------------------------------------------------------------- the order */

/* binaryheap_comparator: the one that comes last is on top. */
static int
compare(Datum a, Datum b, void *arg)
{
	GhFirstGroups *first = arg;
	const NullableDatum *left = (const NullableDatum *) DatumGetPointer(a);
	const NullableDatum *right = (const NullableDatum *) DatumGetPointer(b);

	return ApplySortComparator(left->value, left->isnull, right->value, right->isnull, &first->order);
}

/* Whether there is an operator that tells what is not behind, of the key's own type. */
static bool
find_order(GhFirstGroups *first, const Sort *sort)
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

/* ---------------------------------------------------------------- the sample */

/*
 * Of so many groups, of which HAVING lets some out; NULL: that no few first ones are wanted, or that cannot
 * be told.
 */
GhFirstGroups *
gh_first_begin(GhAggregateNode *node, uint64 ngroups)
{
	PlanState  *ps = &node->fragment.css.ss.ps;
	uint64		wanted = node->bound.limit == NULL ? 0 : gh_bound_rows(&node->bound, ps);
	uint64		sample = (uint64) sqrt((double) ngroups * Min(wanted, ngroups));
	GhTranslation *translation;
	GhFirstGroups *first;

	sample = Max(Max(sample, Min(GH_SAMPLE_MIN, gh_batch_rows)), Min(wanted, ngroups) * GH_SAMPLE_PER_GROUP);
	if (wanted == 0 || sample > ngroups / GH_SAMPLE_PART)
		return NULL;
	translation = gh_having_begin(node, false);
	if (translation == NULL)
		return NULL;
	first = palloc0(sizeof(GhFirstGroups));
	first->node = node;
	first->context = CurrentMemoryContext;
	first->wanted = wanted;
	first->sample = sample;
	first->key = list_nth_node(TargetEntry, ps->plan->targetlist, node->bound.sort->sortColIdx[0] - 1)->expr;
	if (!find_order(first, node->bound.sort) || !gh_first_translate(first, translation))
		return NULL;
	first->key_state = ExecInitExpr(first->key, ps);
	first->heap = binaryheap_allocate((int) wanted, compare, first);
	return first;
}

/* Groups that are to be taken, at least. */
uint64
gh_first_sample(const GhFirstGroups *first)
{
	return first->sample;
}

/* One that is in front of the last of the first ones takes its place among them. */
static void
replace_last(GhFirstGroups *first, NullableDatum *kept)
{
	Datum		last = binaryheap_first(first->heap);

	binaryheap_replace_first(first->heap, PointerGetDatum(kept));
	first->ties = compare(last, binaryheap_first(first->heap), first) == 0 ? first->ties + 1 : 0;
}

/* A group of the sample is in the scan tuple. */
static void
take_group(void *arg)
{
	GhFirstGroups *first = arg;
	ExprContext *econtext = first->node->fragment.css.ss.ps.ps_ExprContext;
	NullableDatum key;
	NullableDatum *kept;
	MemoryContext saved;
	bool		full = first->heap->bh_size == (int) first->wanted;
	int			order = -1;

	first->taken++;
	key.value = ExecEvalExprSwitchContext(first->key_state, econtext, &key.isnull);
	if (full)
		order = compare(PointerGetDatum(&key), binaryheap_first(first->heap), first);
	first->ties += order == 0;
	if (order >= 0)
		return;
	saved = MemoryContextSwitchTo(first->context);
	kept = palloc(sizeof(NullableDatum));
	kept->isnull = key.isnull;
	kept->value = key.isnull ? (Datum) 0 : datumCopy(key.value, first->by_value, first->length);
	MemoryContextSwitchTo(saved);
	if (full)
		replace_last(first, kept);
	else
		binaryheap_add(first->heap, PointerGetDatum(kept));
}

/* Takes some of the sample's groups, as records. */
void
gh_first_take(GhFirstGroups *first, const char *records, Size size)
{
	gh_output_show(first->node, records, size, take_group, first);
}

/* Whatever is not behind the last of the first ones: NULL is one of them, or is behind all that are none. */
static Expr *
make_condition(const GhFirstGroups *first, const NullableDatum *last)
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
	not_behind = make_opclause(first->not_behind, BOOLOID, false, first->key, (Expr *) value, InvalidOid,
							   first->collation);
	set_opfuncid((OpExpr *) not_behind);
	return first->order.ssup_nulls_first ? makeBoolExpr(OR_EXPR, list_make2(null, not_behind), -1) :
		not_behind;
}

/*
 * The sample is taken.  False: all groups may be among the first ones, or most, by what the first key tells.
 */
bool
gh_first_end(GhFirstGroups *first)
{
	const NullableDatum *last;

	if (first->heap->bh_size < (int) first->wanted || first->wanted + first->ties > first->taken / 2)
		return false;
	last = (const NullableDatum *) DatumGetPointer(binaryheap_first(first->heap));
	if (last->isnull && !first->order.ssup_nulls_first)
		return false;
	first->condition = make_condition(first, last);
	return true;
}

/* ------------------------------------------------------------- the condition */

/*
 * All that PostgreSQL computes of a group, and then the condition, if it is there; false: that has no
 * program.
 */
bool
gh_first_translate(const GhFirstGroups *first, GhTranslation *translation)
{
	return gh_level_translate_computed(first->node, translation) &&
		(first->condition == NULL ||
		 gh_translate_filter(translation, gh_having_over_groups(first->node, first->condition)));
}
