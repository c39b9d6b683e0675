/*
 * sets.c
 *		Grouping sets in a grouping: GROUPING SETS, ROLLUP and CUBE.
 *
 * Rows are grouped by the keys of all sets, once; of these groups the node makes those of each set, by
 * merging (../aggregate/sets.c).  So what merging changes is PostgreSQL's: sums of floats, which are added in
 * the order of rows, and aggregates with DISTINCT.
 *
 * A key is NULL in what comes out of a set without it.  So there it is another expression than what rows are
 * grouped by: from 18 on its columns are marked as what the grouping makes NULL, and before, the planner
 * wraps what it pulls up from a subquery.  Neither is anything to what is computed of rows.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "plan/aggregate_plan.h"
#include "plan/planning.h"

/* More sets than that are PostgreSQL's: each is one more look-up of each group. */
#define GH_SETS_MAX 64

/*
 * Keys that part the groups have so many values at least: some dozens for each part (../aggregate/spill.c).
 */
#define GH_PART_VALUES_MIN 2048.0

/* GROUPING() has a bit for each of its arguments. */
#define GH_GROUPING_ARGUMENTS_MAX 31

static bool
declines(GhGrouping *grouping, Expr *expr, const char *why)
{
	grouping->why_not = why;
	grouping->why_expr = expr;
	return false;
}

/* --------------------------------------------------------------- what rows have */

/* What is inside of placeholders, but for marked columns. */
static Node *
placeholders_mutator(Node *node, void *unused)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, PlaceHolderVar))
		return placeholders_mutator((Node *) ((PlaceHolderVar *) node)->phexpr, unused);
	if (IsA(node, RelabelType) && gh_unmarked((Expr *) node) != (Expr *) node)
		return node;
	return expression_tree_mutator(node, placeholders_mutator, unused);
}

/* An expression, or a list of them, as it is computed of rows. */
Node *
gh_sets_row_expr(Node *expr)
{
	return placeholders_mutator(expr, NULL);
}

static bool
has_placeholder(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	return IsA(node, PlaceHolderVar) || expression_tree_walker(node, has_placeholder, unused);
}

/* --------------------------------------------------------------- collecting */

/* Adds a key, as it comes out; false: there cannot be such a one. */
bool
gh_sets_add_key(PlannerInfo *root, GhGrouping *grouping, Expr *shown)
{
	Expr	   *key = (Expr *) gh_below_grouping(root, (Node *) shown);

	if (has_placeholder((Node *) key, NULL))
	{
		if (!grouping->looks_through)
			return declines(grouping, shown, "a key of grouping sets may be computed below a join");
		key = (Expr *) gh_sets_row_expr((Node *) key);
	}
	if (!contain_var_clause((Node *) key))
		return declines(grouping, shown, "a key of grouping sets is the same in all rows");
	if (list_member(grouping->keys, key))
		return declines(grouping, shown, "two keys of grouping sets are the same");
	grouping->keys = lappend(grouping->keys, key);
	grouping->shown_keys = lappend(grouping->shown_keys, shown);
	return true;
}

/* The numbers of a set's keys. */
static List *
keys_of_set(const GhGroupBy *by, List *refs)
{
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, by->written)
		if (list_member_int(refs, lfirst_node(SortGroupClause, lc)->tleSortGroupRef))
			keys = lappend_int(keys, foreach_current_index(lc));
	return keys;
}

/* What GROUPING() is for the groups of a set: a bit for each argument, 1 where it is no key of the set. */
static int
value_of_grouping(const GroupingFunc *function, List *refs)
{
	uint32		value = 0;
	ListCell   *lc;

	foreach(lc, function->refs)
		value = value << 1 | !list_member_int(refs, lfirst_int(lc));
	return (int) value;
}

/*
 * All is collected: what the sets have of it.  False: there is too much of it, or what merging would change.
 */
bool
gh_sets_collect(const GhGroupBy *by, GhGrouping *grouping)
{
	Aggref	   *ordered = by->sets == NIL ? NULL : gh_find_ordered(grouping);
	ListCell   *lc;
	ListCell   *function;

	if (by->sets == NIL)
		return true;
	if (grouping->keys == NIL)
		return declines(grouping, NULL, "grouping sets have no keys");
	if (grouping->distinct != NIL)
		return declines(grouping, linitial(grouping->distinct), "an aggregate of grouping sets has DISTINCT");
	if (ordered != NULL)
		return declines(grouping, (Expr *) ordered, "floats are added in the order of rows, which grouping sets change");
	if (list_length(by->sets) > GH_SETS_MAX)
		return declines(grouping, NULL, "there are too many grouping sets");
	foreach(lc, by->sets)
		grouping->sets = lappend(grouping->sets, keys_of_set(by, lfirst(lc)));
	foreach(function, grouping->functions)
	{
		List	   *values = NIL;

		if (list_length(lfirst_node(GroupingFunc, function)->refs) > GH_GROUPING_ARGUMENTS_MAX)
			return declines(grouping, lfirst(function), "GROUPING has too many arguments");
		foreach(lc, by->sets)
			values = lappend_int(values, value_of_grouping(lfirst(function), lfirst(lc)));
		grouping->function_values = lappend(grouping->function_values, values);
	}
	return true;
}

/* --------------------------------------------------------------- paths and plans */

/* Whether one of them has all keys: its groups are those that the input is read into. */
bool
gh_sets_have_all_keys(const GhGrouping *grouping)
{
	ListCell   *lc;

	foreach(lc, grouping->sets)
		if (list_length((List *) lfirst(lc)) == list_length(grouping->keys))
			return true;
	return false;
}

/* Groups by some keys, of so many rows. */
static double
groups_by(PlannerInfo *root, const GhGrouping *grouping, List *keys, double rows)
{
	List	   *exprs = NIL;
	ListCell   *lc;

	foreach(lc, keys)
		exprs = lappend(exprs, list_nth(grouping->keys, lfirst_int(lc)));
	return exprs == NIL ? 1.0 : gh_estimate_groups(root, exprs, rows);
}

/* The set of the most groups, of those that are left; NULL: none has so many as it takes. */
static const ListCell *
take_largest(const List *sets, double *groups)
{
	const ListCell *largest = NULL;
	double		most = GH_PART_VALUES_MIN;
	const ListCell *lc;

	foreach(lc, sets)
	{
		if (groups[foreach_current_index(lc)] < most)
			continue;
		most = groups[foreach_current_index(lc)];
		largest = lc;
	}
	if (largest != NULL)
		groups[list_cell_number(sets, largest)] = 0.0;
	return largest;
}

/*
 * The keys by which the groups by all keys go to files, in parts: all groups of sets that have these keys are
 * made of one part each (../aggregate/regroup.c).  They are keys of as many groups as can be, the largest
 * sets first, but of so many values that there is something in each part.
 */
static List *
choose_part_keys(PlannerInfo *root, const GhGrouping *grouping, double *groups, double rows)
{
	List	   *parts = NIL;
	const ListCell *lc;

	while ((lc = take_largest(grouping->sets, groups)) != NULL)
	{
		List	   *common = parts == NIL ? lfirst(lc) : list_intersection_int(parts, lfirst(lc));

		if (parts == NIL || groups_by(root, grouping, common, rows) >= GH_PART_VALUES_MIN)
			parts = common;
	}
	return parts;
}

/* Groups of all sets that come of so many rows, and the keys that part them. */
double
gh_sets_estimate(PlannerInfo *root, GhGrouping *grouping, double rows)
{
	double	   *groups = palloc(sizeof(double) * list_length(grouping->sets));
	double		all = 0;
	ListCell   *lc;

	foreach(lc, grouping->sets)
		all += groups[foreach_current_index(lc)] = groups_by(root, grouping, lfirst(lc), rows);
	grouping->part_keys = choose_part_keys(root, grouping, groups, rows);
	pfree(groups);
	return all;
}

/* What a path carries, in the order of GhSetsPathPrivate; NIL: there are none. */
List *
gh_sets_path_list(const GhGrouping *grouping, double groups)
{
	if (grouping->sets == NIL)
		return NIL;
	return list_concat(list_make4(grouping->sets, grouping->function_values, makeInteger((int) Min(groups, INT_MAX)),
								  grouping->part_keys),
					   list_make2(grouping->shown_keys, grouping->functions));
}

/* The same as a plan carries it, in the order of GhSetsPrivate. */
List *
gh_sets_plan_list(List *of_path)
{
	return of_path == NIL ? NIL : list_make4(linitial(of_path), lsecond(of_path), lthird(of_path), lfourth(of_path));
}

/* The scan column that tells the number of a group's set: nothing refers to it. */
Expr *
gh_sets_number_column(void)
{
	return gh_marked((Expr *) makeConst(INT2OID, -1, InvalidOid, sizeof(int16), Int16GetDatum(0), false, true));
}
