/*
 * distinct.c
 *		Aggregates with DISTINCT in a grouping.
 *
 * Their arguments become keys, the last ones, so that the engines' groups have each of their values once; the
 * node makes the groups that come out of these (../aggregate/distinct.c).  Other aggregates are computed
 * beside them, of the same groups, and merged.  Where there are several arguments each row is in several
 * groups: in one for each argument, of which the others are NULL.  The first of these has the other
 * aggregates.
 *
 * An aggregate's FILTER decides about rows, not about values: what counts for it is whether some row of a
 * value passes, and such rows are counted by one more aggregate.  Where all of them have a FILTER, the
 * argument is not evaluated for rows that pass none, as in PostgreSQL: it may fail there, and would make
 * groups that nobody needs.
 *
 * Which of equal values an aggregate adds does not matter: they are added up, or counted, and where they look
 * different (numerics of several scales) they are no keys.  Floats are PostgreSQL's, which adds them in their
 * own order.
 */
#include "postgres.h"

#include <limits.h>
#include <math.h>

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "engine/pipeline/pipeline.h"
#include "expr/aggregates.h"
#include "plan/aggregate_plan.h"

/* Each aggregate may have one more that tells its scale, in a group that has all of them. */
#define GH_BESIDE_DISTINCT_MAX (GH_AGGREGATES_MAX / 2)

static bool
declines(GhGrouping *grouping, Expr *expr, const char *why)
{
	grouping->why_not = why;
	grouping->why_expr = expr;
	return false;
}

/* Whether it comes to the same of all values as of those that differ. */
static bool
is_same_of_all(const GhAggregateFunction *function)
{
	return function->kind == GH_AGGREGATE_MIN || function->kind == GH_AGGREGATE_MAX ||
		function->kind == GH_AGGREGATE_BOOL_AND || function->kind == GH_AGGREGATE_BOOL_OR;
}

static bool
is_float(Oid type)
{
	return type == FLOAT4OID || type == FLOAT8OID;
}

/* From 0. */
static int
place_of(List *exprs, const void *expr)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (equal(lfirst(lc), expr))
			return foreach_current_index(lc);
	}
	return -1;
}

/*
 * Collects an aggregate with DISTINCT, of one argument, that the engines have; false: they have no such
 * thing.
 */
bool
gh_distinct_collect(GhGrouping *grouping, Aggref *aggref)
{
	const GhAggregateFunction *function = gh_find_aggregate(aggref->aggfnoid);
	SortGroupClause *clause = linitial_node(SortGroupClause, aggref->aggdistinct);
	Expr	   *argument = gh_aggregate_argument(aggref);

	if (is_same_of_all(function))
	{
		grouping->aggregates = list_append_unique(grouping->aggregates, aggref);
		return true;
	}
	if (!clause->hashable || !gh_can_be_key(argument, clause->eqop))
		return declines(grouping, (Expr *) aggref, "an argument with DISTINCT cannot be hashed, or its equality is not that of its bytes");
	if (function->kind != GH_AGGREGATE_COUNT && is_float(getBaseType(exprType((Node *) argument))))
		return declines(grouping, (Expr *) aggref, "floats with DISTINCT are added in their own order");
	if (list_member(grouping->distinct, aggref))
		return true;
	grouping->distinct = lappend(grouping->distinct, aggref);
	grouping->distinct_arguments = list_append_unique(grouping->distinct_arguments, argument);
	grouping->distinct_keys = lappend_int(grouping->distinct_keys, place_of(grouping->distinct_arguments, argument));
	return true;
}

/* An aggregate that counts the rows that the other's FILTER lets pass. */
static Aggref *
make_filter_count(const Aggref *aggref)
{
	Aggref	   *count = makeNode(Aggref);

	count->aggfnoid = F_COUNT_;
	count->aggtype = count->aggtranstype = INT8OID;
	count->aggfilter = aggref->aggfilter;
	count->aggstar = true;
	count->aggkind = AGGKIND_NORMAL;
	count->aggsplit = AGGSPLIT_SIMPLE;
	count->aggno = count->aggtransno = -1;
	count->location = -1;
	return count;
}

/*
 * An argument, or, where each aggregate of it has a FILTER, that of rows that pass one, and NULL of others.
 */
static Expr *
make_key(const GhGrouping *grouping, Expr *argument)
{
	CaseExpr   *choice = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);
	List	   *filters = NIL;
	ListCell   *lc;

	foreach(lc, grouping->distinct)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);

		if (!equal(gh_aggregate_argument(aggref), argument))
			continue;
		if (aggref->aggfilter == NULL)
			return argument;
		filters = list_append_unique(filters, aggref->aggfilter);
	}
	when->expr = list_length(filters) == 1 ? linitial(filters) : make_orclause(filters);
	when->result = argument;
	when->location = -1;
	choice->casetype = exprType((Node *) argument);
	choice->casecollid = exprCollation((Node *) argument);
	choice->args = list_make1(when);
	choice->defresult = (Expr *) makeNullConst(choice->casetype, exprTypmod((Node *) argument), choice->casecollid);
	choice->location = -1;
	return (Expr *) choice;
}

/*
 * An aggregate whose result depends on the order in which rows come, which groups by values change; NULL:
 * there is none.
 */
Aggref *
gh_find_ordered(const GhGrouping *grouping)
{
	ListCell   *lc;

	foreach(lc, grouping->aggregates)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);
		Expr	   *argument = gh_aggregate_argument(aggref);

		if (argument != NULL && is_float(getBaseType(exprType((Node *) argument))) &&
			gh_find_aggregate(aggref->aggfnoid)->kind != GH_AGGREGATE_COUNT)
			return aggref;
	}
	return NULL;
}

/*
 * A key that is a float; NULL: there is none.  Which of 0 and -0 comes out is that of the first row of a
 * group.
 */
static Expr *
find_float_key(const GhGrouping *grouping)
{
	ListCell   *lc;

	foreach(lc, grouping->keys)
	{
		if (is_float(getBaseType(exprType(lfirst(lc)))))
			return lfirst(lc);
	}
	return NULL;
}

/*
 * The number of the aggregate that counts what a FILTER lets pass, of rows in groups by an argument; adds it
 * if there is none.  The first argument's groups have all that comes out, too.
 */
static int
place_of_count(GhGrouping *grouping, const Aggref *aggref, int argument)
{
	Aggref	   *count = make_filter_count(aggref);
	ListCell   *lc;

	foreach(lc, grouping->aggregates)
	{
		int			place = foreach_current_index(lc);

		if (list_nth_int(grouping->distinct_sets, place) == argument && equal(lfirst(lc), count))
			return place;
	}
	grouping->aggregates = lappend(grouping->aggregates, count);
	grouping->distinct_sets = lappend_int(grouping->distinct_sets, argument);
	return list_length(grouping->aggregates) - 1;
}

/*
 * All is collected: adds the arguments to the keys, and counts for filters.  False: there is too much of it,
 * or floats.
 */
bool
gh_distinct_add_keys(GhGrouping *grouping)
{
	Aggref	   *ordered = grouping->distinct == NIL ? NULL : gh_find_ordered(grouping);
	int			narguments = list_length(grouping->distinct_arguments);
	ListCell   *lc;
	ListCell   *key;

	if (grouping->distinct == NIL)
		return true;
	if (ordered != NULL)
		return declines(grouping, (Expr *) ordered, "floats are added in the order of rows, which DISTINCT changes");
	foreach(lc, grouping->distinct_arguments)
		grouping->keys = lappend(grouping->keys, make_key(grouping, lfirst(lc)));
	if (narguments > 1 && find_float_key(grouping) != NULL)
		return declines(grouping, find_float_key(grouping), "aggregates have DISTINCT and different arguments, and a key is a float");
	foreach(lc, grouping->aggregates)
		grouping->distinct_sets = lappend_int(grouping->distinct_sets, 0);
	forboth(lc, grouping->distinct, key, grouping->distinct_keys)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);

		grouping->distinct_filters = lappend_int(grouping->distinct_filters, aggref->aggfilter == NULL ? -1 :
												 place_of_count(grouping, aggref, lfirst_int(key)));
	}
	if (list_length(grouping->aggregates) + list_length(grouping->distinct) <= GH_BESIDE_DISTINCT_MAX &&
		narguments <= GH_SINK_SETS_MAX)
		return true;
	return declines(grouping, NULL, "there are too many aggregates, some with DISTINCT");
}

/*
 * Groups by all keys that are expected of so many rows: those by each argument.  For keys of one table the
 * planner takes a tenth of its rows at most, as if they told of each other; here each of the values is a
 * group to be made, and to be written, so they are taken for independent: of as many pairs as there may be,
 * those that so many rows find.
 */
double
gh_distinct_estimate(PlannerInfo *root, const GhGrouping *grouping, List *exprs, double rows)
{
	double		of_keys = exprs == NIL ? 1.0 : gh_estimate_groups(root, exprs, rows);
	double		groups = 0;
	ListCell   *lc;

	foreach(lc, grouping->distinct_arguments)
	{
		double		values = gh_estimate_groups(root, list_make1(lfirst(lc)), rows);
		double		found = -of_keys * values * expm1(-rows / (of_keys * values));

		groups += clamp_row_est(Max(found, Max(of_keys, values)));
	}
	return groups;
}

/*
 * What a path carries: the aggregates, their filters, how many groups by all keys are expected, and which
 * argument is whose; NIL: there are none.
 */
List *
gh_distinct_path_list(const GhGrouping *grouping, double groups)
{
	if (grouping->distinct == NIL)
		return NIL;
	return list_make5(grouping->distinct, grouping->distinct_filters, makeInteger((int) Min(groups, INT_MAX)),
					  grouping->distinct_keys, grouping->distinct_sets);
}

/* The same as a plan carries it, in the order of GhDistinctPrivate. */
List *
gh_distinct_plan_list(List *of_path)
{
	List	   *functions = NIL;
	ListCell   *lc;

	if (of_path == NIL)
		return NIL;
	foreach(lc, (List *) linitial(of_path))
		functions = lappend_oid(functions, lfirst_node(Aggref, lc)->aggfnoid);
	return list_make5(functions, lsecond(of_path), lthird(of_path), lfourth(of_path), list_nth(of_path, 4));
}

/* How many keys are arguments, of what a path carries. */
int
gh_distinct_nkeys(List *of_path)
{
	int			nkeys = 0;
	ListCell   *lc;

	if (of_path == NIL)
		return 0;
	foreach(lc, (List *) lfourth(of_path))
		nkeys = Max(nkeys, lfirst_int(lc) + 1);
	return nkeys;
}
