/*
 * input_path.c
 *		Inputs whose pages the nodes read by themselves, as paths: which there are, and what they cost.
 *
 * A table's pages are read, and rows looked up in the tables of joins, by programs on the host or by a scan on
 * a device.  None of this touches a GPU: plans are made, and kept, where there may be none.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#include "aggregate/input_path.h"
#include "aggregate/rows_path.h"
#include "join/join.h"
#include "join/path.h"
#include "layout.h"
#include "session.h"

/* --------------------------------------------------------------- tables */

/* Whether the input is a table that the node might read by itself, before expressions are looked at. */
bool
gh_is_plain_table(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *rte;
	ListCell   *lc;

	if (!gh_enable_scan || !gh_layout_is_known() || !IS_SIMPLE_REL(rel) ||
		rel->rtekind != RTE_RELATION)
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	if ((rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) || rte->inh ||
		rte->tablesample != NULL)
		return false;
	foreach(lc, rel->baserestrictinfo)
	{
		/* the plan would have a Result node above the scan */
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return false;
	}
	return true;
}

/* A row type of columns that are expressions; NULL: EXPLAIN could not show one of them. */
TupleDesc
gh_columns_desc(List *columns)
{
	TupleDesc	desc = CreateTemplateTupleDesc(list_length(columns));
	ListCell   *lc;

	foreach(lc, columns)
	{
		Node	   *column = (Node *) lfirst(lc);

		/* of an anonymous record, it finds the fields' names in the plan node below */
		if (exprType(column) == RECORDOID)
			return NULL;
		TupleDescInitEntry(desc, foreach_current_index(lc) + 1, NULL, exprType(column),
						   exprTypmod(column), 0);
	}
	return desc;
}

/* ---------------------------------------------------------------- joins */

static bool
contains_placeholders(Node *node)
{
	ListCell   *lc;

	foreach(lc, pull_var_clause(node, PVC_INCLUDE_PLACEHOLDERS))
	{
		if (IsA(lfirst(lc), PlaceHolderVar))
			return true;
	}
	return false;
}

/* Whether the expressions are columns of tables, none of them one that every table has. */
bool
gh_are_columns(List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (!IsA(lfirst(lc), Var) || lfirst_node(Var, lc)->varattno <= 0)
			return false;
	}
	return true;
}

/*
 * Whether the last join of a chain may be one that just a device does in the node: a right or full one, where it is to
 * mark the inner rows that have a match, or one with conditions beside its keys.
 */
static bool
may_need_device(PlannerInfo *root, Path *path)
{
	return gh_device_reads(root, path) || (gh_force_offload && gh_engine_setting != GH_ENGINE_CPU);
}

/*
 * The scan below the joins of a path, when they are such that the node can look its rows up in
 * their tables; or NULL.  *conditions: of the last join, beside its keys.
 */
static Path *
scan_below_joins(PlannerInfo *root, Path *path, List **conditions)
{
	Path	   *outer = path;

	*conditions = NIL;
	while (gh_is_join_path(outer) && outer->param_info == NULL)
	{
		List	   *own;

		if (!gh_join_path_is_plain(root, (CustomPath *) outer, &own))
			return NULL;
		if ((own != NIL || gh_join_path_fills_inner((CustomPath *) outer)) &&
			(outer != path || !may_need_device(root, path)))
			return NULL;
		*conditions = list_concat(*conditions, own);
		outer = linitial(((CustomPath *) outer)->custom_paths);
		if (!gh_are_columns(outer->pathtarget->exprs))
			return NULL;
	}
	return outer != path && outer->pathtype == T_SeqScan && outer->param_info == NULL &&
		gh_is_plain_table(root, outer->parent) ? outer : NULL;
}

Path *
gh_scan_below_joins(PlannerInfo *root, Path *path)
{
	List	   *conditions;

	return scan_below_joins(root, path, &conditions);
}

/* The cheapest of the paths that are such joins, or return their rows; or NULL. */
Path *
gh_find_joins(PlannerInfo *root, List *paths)
{
	Path	   *best = NULL;
	Cost		best_total = 0;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);
		Cost		startup;
		Cost		total;

		if (IsA(path, ProjectionPath))
			path = ((ProjectionPath *) path)->subpath;
		path = gh_rows_unwrapped(path);
		gh_real_cost(path, &startup, &total);
		if ((best == NULL || total < best_total) && gh_scan_below_joins(root, path) != NULL)
		{
			best = path;
			best_total = total;
		}
	}
	return best;
}

/* The same joins, with the columns of these expressions as their result. */
Path *
gh_joins_with_target(PlannerInfo *root, Path *join, List *exprs)
{
	CustomPath *path = makeNode(CustomPath);
	PathTarget *target = create_empty_pathtarget();

	memcpy(path, join, sizeof(CustomPath));
	add_new_columns_to_pathtarget(target, pull_var_clause((Node *) exprs, PVC_RECURSE_PLACEHOLDERS));
	path->path.pathtarget = set_pathtarget_cost_width(root, target);
	return &path->path;
}

/* Whether there is a program for the expressions of a grouping over the rows of such joins. */
bool
gh_joins_translate(PlannerInfo *root, GhGrouping *grouping, Path *joins, List *exprs, int *ninstructions)
{
	List	   *conditions;
	RelOptInfo *rel = scan_below_joins(root, joins, &conditions)->parent;
	GhGroupingInput input = {.varno = INDEX_VAR};
	Relation	relation;
	bool		is_heap;

	input.quals = list_concat(extract_actual_clauses(rel->baserestrictinfo, false), conditions);
	if (contains_placeholders((Node *) exprs) || contains_placeholders((Node *) conditions))
		return false;
	relation = table_open(planner_rt_fetch(rel->relid, root)->relid, NoLock);
	is_heap = relation->rd_tableam == GetHeapamTableAmRoutine();
	table_close(relation, NoLock);
	input.columns = list_concat_unique(pull_var_clause((Node *) exprs, PVC_RECURSE_PLACEHOLDERS),
									   pull_var_clause((Node *) input.quals, PVC_RECURSE_PLACEHOLDERS));
	input.desc = gh_columns_desc(input.columns);
	return is_heap && input.desc != NULL &&
		gh_grouping_translates(grouping, &input, ninstructions);
}

/* ---------------------------------------------------------------- costs */

/* What it costs to read a table's pages. */
Cost
gh_pages_cost(Path *scan, int ninstructions, double divisor)
{
	RelOptInfo *rel = scan->parent;
	double		page_cost;

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	/* what the scan starts with: subplans of its quals, and that it is switched off */
	return scan->startup_cost + gh_cpu_pages_cost(rel->pages, rel->tuples, page_cost, ninstructions, divisor);
}

/*
 * Of joins, what their look-ups cost, and all but what their outer rows and results do.  Where the inner side of one
 * does not fit in memory, its rows come through files, and all joins do what they do anywhere.
 */
Cost
gh_joins_cost(Path *join, int ninstructions, double divisor)
{
	Path	   *outer = join;
	double		saved = 0;
	Cost		startup;
	Cost		cost;

	gh_real_cost(join, &startup, &cost);
	for (; gh_is_join_path(outer); outer = linitial(((CustomPath *) outer)->custom_paths))
	{
		if (!gh_join_fits_in_memory((CustomPath *) outer))
			return cost + join->rows *
				(GH_KEPT_ROW_COST * cpu_tuple_cost + GH_INSTRUCTION_COST * cpu_operator_cost * ninstructions);
		saved += cpu_tuple_cost * outer->rows;
	}
	return Max(cost - saved - outer->total_cost, 0) + gh_pages_cost(outer, ninstructions, divisor);
}

/* What one of several processes does to have a device read a table's pages. */
static Cost
device_pages_cost(RelOptInfo *rel, Path *scan, double divisor)
{
	double		page_cost;

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	return scan->startup_cost + gh_device_pages_cost(rel->pages, page_cost, divisor);
}

/* What it costs that a device reads a table's pages alone. */
Cost
gh_device_scan_cost(Path *scan, double divisor)
{
	return gh_device_start_cost + device_pages_cost(scan->parent, scan, divisor);
}

/* Whether a device is expected to read a scan, and those below joins, whose tables it makes. */
bool
gh_device_reads(PlannerInfo *root, Path *child)
{
	Path	   *outer = child;

	for (; gh_is_join_path(outer); outer = linitial(((CustomPath *) outer)->custom_paths))
		if (!gh_join_path_is_for_device(root, (CustomPath *) outer))
			return false;
	return outer->pathtype == T_SeqScan && gh_device_is_expected(outer->parent->tuples);
}

/* What it costs that a device reads all that, until it has its results. */
Cost
gh_device_reading_cost(Path *child, double divisor)
{
	Path	   *outer = child;
	Cost		cost = gh_device_start_cost;

	for (; gh_is_join_path(outer); outer = linitial(((CustomPath *) outer)->custom_paths))
	{
		Path	   *inner = lsecond(((CustomPath *) outer)->custom_paths);

		cost += device_pages_cost(inner->parent, inner, inner->parallel_aware ? divisor : 1.0) +
			inner->parent->tuples * GH_DEVICE_TABLE_COST * cpu_tuple_cost;
	}
	return cost + device_pages_cost(outer->parent, outer, divisor);
}
