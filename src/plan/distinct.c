/*
 * distinct.c
 *		Aggregates with DISTINCT in a grouping.
 *
 * Their argument becomes a key, the last one, so that the engines' groups have each of its values once; the node
 * makes the groups that come out of these (../aggregate/distinct.c).  So all such aggregates of a query have one
 * argument.  Other aggregates are computed beside them, of the same groups, and merged.
 *
 * An aggregate's FILTER decides about rows, not about values: what counts for it is whether some row of a value
 * passes, and such rows are counted by one more aggregate.  Where all of them have a FILTER, the argument is not
 * evaluated for rows that pass none, as in PostgreSQL: it may fail there, and would make groups that nobody needs.
 *
 * Which of equal values an aggregate adds does not matter: they are added up, or counted, and where they look
 * different (numerics of several scales) they are no keys.  Floats are PostgreSQL's, which adds them in their own order.
 */
#include "postgres.h"

#include <limits.h>

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "expr/aggregates.h"
#include "plan/aggregate_plan.h"

/* Each aggregate may have one more that tells its scale, in a group that has all of them. */
#define GH_BESIDE_DISTINCT_MAX (GH_AGGREGATES_MAX / 2)

static bool
declines(GhGrouping *grouping, Aggref *aggref, const char *why)
{
	grouping->why_not = why;
	grouping->why_expr = (Expr *) aggref;
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

/* Collects an aggregate with DISTINCT, of one argument, that the engines have; false: they have no such thing. */
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
		return declines(grouping, aggref, "an argument with DISTINCT cannot be hashed, or its equality is not that of its bytes");
	if (function->kind != GH_AGGREGATE_COUNT && is_float(getBaseType(exprType((Node *) argument))))
		return declines(grouping, aggref, "floats with DISTINCT are added in their own order");
	if (grouping->distinct != NIL && !equal(argument, gh_aggregate_argument(linitial(grouping->distinct))))
		return declines(grouping, aggref, "aggregates have DISTINCT and different arguments");
	grouping->distinct = list_append_unique(grouping->distinct, aggref);
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

/* From 0. */
static int
place_of(List *aggregates, const Aggref *aggref)
{
	ListCell   *lc;

	foreach(lc, aggregates)
	{
		if (equal(lfirst(lc), aggref))
			return foreach_current_index(lc);
	}
	return -1;
}

/* The argument of all of them, or, where each has a FILTER, that of rows that pass one, and NULL of others. */
static Expr *
make_key(const GhGrouping *grouping)
{
	Expr	   *argument = gh_aggregate_argument(linitial(grouping->distinct));
	CaseExpr   *choice = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);
	List	   *filters = NIL;
	ListCell   *lc;

	foreach(lc, grouping->distinct)
	{
		if (lfirst_node(Aggref, lc)->aggfilter == NULL)
			return argument;
		filters = list_append_unique(filters, lfirst_node(Aggref, lc)->aggfilter);
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

/* An aggregate whose result depends on the order in which rows come, which groups by values change; NULL: there is none. */
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

/* All is collected: adds the argument to the keys, and counts for filters.  False: there is too much of it, or floats. */
bool
gh_distinct_add_key(GhGrouping *grouping)
{
	Aggref	   *ordered = grouping->distinct == NIL ? NULL : gh_find_ordered(grouping);
	ListCell   *lc;

	if (grouping->distinct == NIL)
		return true;
	if (ordered != NULL)
		return declines(grouping, ordered, "floats are added in the order of rows, which DISTINCT changes");
	grouping->keys = lappend(grouping->keys, make_key(grouping));
	foreach(lc, grouping->distinct)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);
		Aggref	   *count;
		int			filter = -1;

		if (aggref->aggfilter != NULL)
		{
			count = make_filter_count(aggref);
			grouping->aggregates = list_append_unique(grouping->aggregates, count);
			filter = place_of(grouping->aggregates, count);
		}
		grouping->distinct_filters = lappend_int(grouping->distinct_filters, filter);
	}
	if (list_length(grouping->aggregates) + list_length(grouping->distinct) <= GH_BESIDE_DISTINCT_MAX)
		return true;
	return declines(grouping, NULL, "there are too many aggregates, some with DISTINCT");
}

/*
 * What a path carries: the aggregates, their filters, and how many groups by all keys are expected; NIL: there
 * are none.
 */
List *
gh_distinct_path_list(const GhGrouping *grouping, double groups)
{
	if (grouping->distinct == NIL)
		return NIL;
	return list_make3(grouping->distinct, grouping->distinct_filters, makeInteger((int) Min(groups, INT_MAX)));
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
	return list_make3(functions, lsecond(of_path), lthird(of_path));
}
