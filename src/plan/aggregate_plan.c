/*
 * aggregate_plan.c
 *		From the chosen path to the CustomScan node.
 *
 * The scan tuple that custom_scan_tlist describes has the child's columns, the keys that are
 * none of these, and the aggregates.  setrefs.c turns what the target list and the quals
 * have of it into references to it.  It does so with custom_exprs, too, where nothing but the
 * child's columns may be referred to: a key is to be computed from them, not read from the
 * place where its value is put for the output.  So the columns in custom_exprs are
 * marked (marks.c), whereby no expression over them equals a key.
 *
 * Of grouping sets a key comes out as another expression than what rows are grouped by (sets.c), and the
 * columns are marked in the scan tuple, too, so that nothing but a marked column equals one.
 *
 * A key without columns (a parameter, now()) could still be taken for a part of an expression there.  Its
 * place in the scan tuple is marked instead: the target list evaluates it itself.  Likewise the place of a
 * child's column that has no columns and is no key, since the planner leaves out keys that are the same in
 * all rows: there is no value for the output in it.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "plan/aggregate_plan.h"
#include "plan/input_path.h"
#include "plan/parts_path.h"
#include "plan/planning.h"

uint64		gh_aggregate_plans = 0;
uint64		gh_parts_plans = 0;

/* Marks the child's columns in an expression or a list of them. */
static Node *
mark_columns_mutator(Node *node, List *columns)
{
	if (node == NULL)
		return NULL;
	if (!IsA(node, List) && !IsA(node, Const) && list_member(columns, node))
		return (Node *) gh_marked((Expr *) copyObject(node));
	return expression_tree_mutator(node, mark_columns_mutator, (void *) columns);
}

static List *
mark_columns(List *columns, List *exprs)
{
	return (List *) mark_columns_mutator((Node *) exprs, columns);
}

/* From 0; -1: it is none of these. */
static int
find_expr(List *exprs, Expr *expr)
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
 * The scan tuple's columns for keys; adds those that are not there to *scan.  The last ones, nhidden, are no
 * keys of what comes out, which then has no value for them.
 */
static List *
place_keys(List *keys, int nhidden, List **scan)
{
	List	   *places = NIL;
	ListCell   *lc;

	foreach(lc, keys)
	{
		Expr	   *key = lfirst(lc);
		bool		hidden = foreach_current_index(lc) >= list_length(keys) - nhidden;
		int			place = find_expr(*scan, key);

		if (place < 0)
		{
			place = list_length(*scan);
			*scan = lappend(*scan, contain_var_clause((Node *) key) && !hidden ? key : gh_marked(key));
		}
		places = lappend_int(places, place);
	}
	return places;
}

/*
 * Marks the child's columns in the scan tuple that the target list could take for values of a group, and are
 * none.
 */
static void
mark_constants(List *scan, int ncolumns, const List *places)
{
	ListCell   *lc;

	foreach(lc, scan)
	{
		int			place = foreach_current_index(lc);

		if (place >= ncolumns)
			break;
		if (!IsA(lfirst(lc), Const) && !contain_var_clause(lfirst(lc)) && !list_member_int(places, place))
			lfirst(lc) = gh_marked(copyObject(lfirst(lc)));
	}
}

/* custom_exprs, in the order of GhAggregateExprs. */
static List *
make_exprs(List *columns, List *keys, List *aggregates)
{
	List	   *arguments = NIL;
	List	   *filters = NIL;
	ListCell   *lc;

	foreach(lc, aggregates)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);
		Expr	   *argument = gh_aggregate_argument(aggref);

		arguments = lappend(arguments, argument != NULL ? (Node *) argument :
							makeBoolConst(false, true));
		filters = lappend(filters, aggref->aggfilter != NULL ? (Node *) aggref->aggfilter :
						  makeBoolConst(true, false));
	}
	return list_make3(mark_columns(columns, keys), mark_columns(columns, arguments),
					  mark_columns(columns, filters));
}

static List *
make_scan_tlist(List *exprs)
{
	List	   *tlist = NIL;
	ListCell   *lc;

	foreach(lc, exprs)
		tlist = lappend(tlist, makeTargetEntry(copyObject(lfirst(lc)), list_length(tlist) + 1,
											   NULL, false));
	return tlist;
}

/* Conditions in the order in which the planner has them evaluated, for PostgreSQL's aggregation: by cost. */
static List *
in_turn(PlannerInfo *root, List *conditions)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		QualCost	cost;
		int			at = list_length(result);

		cost_qual_eval_node(&cost, lfirst(lc), root);
		for (; at > 0; at--)
		{
			QualCost	before;

			cost_qual_eval_node(&before, list_nth(result, at - 1), root);
			if (before.per_tuple <= cost.per_tuple)
				break;
		}
		result = list_insert_nth(result, at, lfirst(lc));
	}
	return result;
}

/* Likewise of grouping sets, with what comes out of these beside; adds all of it to *scan. */
static List *
place_set_keys(List *sets, List **scan)
{
	List	   *places = NIL;
	ListCell   *lc;

	foreach(lc, (List *) list_nth(sets, GH_SETS_PATH_KEYS))
	{
		places = lappend_int(places, list_length(*scan));
		*scan = lappend(*scan, lfirst(lc));
	}
	places = lappend_int(places, list_length(*scan));
	*scan = lappend(*scan, gh_sets_number_column());
	*scan = list_concat(*scan, list_nth(sets, GH_SETS_PATH_FUNCTIONS));
	return places;
}

/* distinct, sets: as of gh_distinct_path_list(), gh_sets_path_list() */
static Plan *
make_plan(PlannerInfo *root, CustomPath *path, List *distinct, List *sets, List *tlist, List *custom_plans,
		  const CustomScanMethods *methods)
{
	CustomScan *cscan = makeNode(CustomScan);
	Plan	   *child = linitial(custom_plans);
	List	   *keys = list_nth(path->custom_private, GH_AGGREGATE_PATH_KEYS);
	List	   *aggregates = list_nth(path->custom_private, GH_AGGREGATE_PATH_AGGREGATES);
	List	   *columns = NIL;
	List	   *functions = NIL;
	List	   *scan;
	List	   *places;
	ListCell   *lc;

	foreach(lc, child->targetlist)
		columns = lappend(columns, lfirst_node(TargetEntry, lc)->expr);
	scan = sets != NIL ? mark_columns(columns, columns) : list_copy(columns);
	places = sets != NIL ? place_set_keys(sets, &scan) : place_keys(keys, gh_distinct_nkeys(distinct), &scan);
	if (sets == NIL)
		mark_constants(scan, list_length(columns), places);
	foreach(lc, aggregates)
		functions = lappend_oid(functions, lfirst_node(Aggref, lc)->aggfnoid);

	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = in_turn(root, list_nth(path->custom_private, GH_AGGREGATE_PATH_HAVING));
	cscan->scan.scanrelid = 0;
	cscan->flags = path->flags;
	outerPlan(cscan) = child;
	cscan->custom_exprs = make_exprs(columns, keys, aggregates);
	if (sets != NIL)
		cscan->custom_exprs = (List *) gh_sets_row_expr((Node *) cscan->custom_exprs);
	/* in the order of GhAggregatePrivate */
	cscan->custom_private = list_make5(makeInteger(list_length(columns)), places,
									   makeInteger(list_length(scan)), functions, gh_distinct_plan_list(distinct));
	cscan->custom_private = lappend(cscan->custom_private, gh_sets_plan_list(sets));
	scan = list_concat(scan, aggregates);
	if (distinct != NIL)
		scan = list_concat(scan, linitial(distinct));
	cscan->custom_scan_tlist = make_scan_tlist(scan);
	cscan->methods = methods;
	return &cscan->scan.plan;
}

/* Whether what the node reads in the end are several tables as one. */
static bool
reads_parts(PlannerInfo *root, const CustomPath *node)
{
	const Path *path = (const Path *) node;

	while (IsA(path, CustomPath) && ((const CustomPath *) path)->custom_paths != NIL)
		path = linitial(((const CustomPath *) path)->custom_paths);
	return gh_is_parts_scan(root, path) && gh_are_columns(path->pathtarget->exprs) &&
		gh_parts_have(root, path->parent, path->pathtarget->exprs);
}

/* PlanCustomPath: the plan node for a path that path.c made. */
Plan *
gh_aggregate_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
				  List *clauses, List *custom_plans)
{
	Plan	   *plan = make_plan(root, path, list_nth(path->custom_private, GH_AGGREGATE_PATH_DISTINCT),
								 list_nth(path->custom_private, GH_AGGREGATE_PATH_SETS), tlist, custom_plans,
								 GetCustomScanMethods(GH_AGGREGATE_NAME, false));
	List	  **private = &((CustomScan *) plan)->custom_private;
	bool		on_device = boolVal(list_nth(path->custom_private, GH_AGGREGATE_PATH_ON_DEVICE));

	*private = lappend(*private, list_nth(path->custom_private, GH_AGGREGATE_PATH_GROUPS));
	*private = lappend(*private, makeInteger(on_device && !path->path.parallel_aware ? -1 : 0));
	gh_aggregate_plans++;
	gh_parts_plans += reads_parts(root, path);
	return plan;
}

/* PlanCustomPath: likewise for one of rows_path.c. */
Plan *
gh_rows_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			 List *custom_plans)
{
	return make_plan(root, path, NIL, NIL, tlist, custom_plans, GetCustomScanMethods(GH_ROWS_NAME, false));
}
