/*
 * input_path.c
 *		Inputs whose pages the nodes read by themselves, as paths: which there are, and what they cost.
 *
 * A table's pages are read, and rows looked up in the tables of joins, by programs on the host or by a scan
 * on a device.  None of this touches a GPU: plans are made, and kept, where there may be none.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/spccache.h"

#include "compat.h"
#include "expr/key.h"
#include "expr/translate.h"
#include "plan/chain.h"
#include "plan/index_side.h"
#include "plan/input_path.h"
#include "plan/join_path.h"
#include "plan/join_plan.h"
#include "plan/keys_path.h"
#include "plan/note.h"
#include "plan/rows_path.h"
#include "plan/whole.h"
#include "service/placement.h"

/* -------------------------------------------------------------- columns */

/*
 * Tells where the column comes from, if that is a relation, as the executor will: by_rows, it does not know,
 * but there may be too many digits all the same.
 */
static void
note_shown(PlannerInfo *root, TupleDesc desc, int attno, const Var *var, bool by_rows)
{
	const RangeTblEntry *rte;

	/* of a set operation there is no relation */
	if (var->varno <= 0 || var->varno > list_length(root->parse->rtable))
		return;
	rte = planner_rt_fetch(var->varno, root);
	/* of partitions the executor does not know either */
	if (rte->rtekind == RTE_RELATION && !rte->inh && gh_is_open_numeric(var->vartype, var->vartypmod) &&
		(!by_rows || gh_shown_digits(rte->relid, var->varattno) < 0))
		gh_shown_note(desc, attno, rte->relid, var->varattno);
}

/*
 * A row type of columns that are expressions; NULL: EXPLAIN could not show one of them.  by_rows: they come
 * from the executor, and not from relations whose pages the node reads.
 */
TupleDesc
gh_columns_desc(PlannerInfo *root, List *columns, bool by_rows)
{
	TupleDesc	desc = CreateTemplateTupleDesc(list_length(columns));
	ListCell   *lc;

	foreach(lc, columns)
	{
		int			attno = foreach_current_index(lc) + 1;
		Node	   *column = (Node *) lfirst(lc);

		/* of an anonymous record, it finds the fields' names in the plan node below */
		if (exprType(column) == RECORDOID)
			return NULL;
		TupleDescInitEntry(desc, attno, NULL, exprType(column), exprTypmod(column), 0);
		if (IsA(column, Var) && ((Var *) column)->varattno > 0)
			note_shown(root, desc, attno, (Var *) column, by_rows);
	}
	gh_finish_desc(desc);
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

/* What joins cost below a node that reads their table by itself: on the host, or less on a device. */
static Cost
cost_below_node(PlannerInfo *root, Path *joins)
{
	Cost		startup;
	Cost		total;
	Cost		pages;
	Cost		rows;

	gh_real_cost(joins, &startup, &total);
	gh_inner_chains_save(root, joins, &pages, &rows);
	total -= gh_copies_save(root, joins) + pages + rows;
	if (!gh_force_offload && gh_device_reads(root, joins))
		total = Min(total, gh_device_reading_cost(root, joins));
	return total;
}

/*
 * The cheapest path of the relation, or partial one, that is such joins, or returns their rows; or NULL, also
 * where the planner's own takes less.
 */
Path *
gh_find_joins(PlannerInfo *root, RelOptInfo *rel, bool partial)
{
	Path	   *best = gh_kept_joins(root, rel, partial);
	Cost		best_total = 0;
	ListCell   *lc;

	if (best != NULL)
	{
		best = gh_rows_unwrapped(root, best);
		best_total = cost_below_node(root, best);
	}
	foreach(lc, partial ? rel->partial_pathlist : rel->pathlist)
	{
		Path	   *path = lfirst(lc);
		Cost		total;

		if (IsA(path, ProjectionPath))
			path = ((ProjectionPath *) path)->subpath;
		path = gh_rows_unwrapped(root, gh_keys_replaced(path));
		if (gh_scan_below_joins(root, path) == NULL)
			continue;
		total = cost_below_node(root, path);
		if (best == NULL || total < best_total)
		{
			best = path;
			best_total = total;
		}
	}
	if (best != NULL && gh_plan_is_lighter(root, rel, best))
	{
		gh_note(root, rel)->joins_cost_more = true;
		return NULL;
	}
	return best;
}

/*
 * The same, or the joins of the cheapest path, whatever kind they are, as such joins, if these cost less.
 * The answer is that of the first time.
 */
Path *
gh_find_whole(PlannerInfo *root, RelOptInfo *rel, bool partial)
{
	GhNote	   *note = gh_note(root, rel);
	Path	   *joins;
	Path	   *whole;

	if (!note->has_whole[partial])
	{
		joins = gh_find_joins(root, rel, partial);
		whole = gh_whole_joins(root, rel, partial);
		note->whole[partial] = joins == NULL ||
			(whole != NULL && gh_charged(&gh_step(whole)->spared, cost_below_node(root, whole)) < cost_below_node(root, joins)) ? whole : joins;
		note->has_whole[partial] = true;
	}
	return note->whole[partial];
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

/* Whether there is a program for conditions of a join. */
bool
gh_conditions_translate(PlannerInfo *root, List *conditions)
{
	GhGrouping	grouping = {0};
	GhGroupingInput input = {.varno = INDEX_VAR,.quals = conditions};
	int			ninstructions;

	if (conditions == NIL)
		return true;
	if (contains_placeholders((Node *) conditions))
		return false;
	input.columns = pull_var_clause((Node *) conditions, 0);
	input.desc = gh_columns_desc(root, input.columns, false);
	return input.desc != NULL && gh_grouping_translates(&grouping, &input, &ninstructions);
}

/* Whether there is a program for the expressions of a grouping over the rows of such joins. */
bool
gh_joins_translate(PlannerInfo *root, GhGrouping *grouping, Path *joins, List *exprs, int *ninstructions)
{
	List	   *conditions = gh_chain_conditions(root, joins);
	RelOptInfo *rel = gh_scan_below_joins(root, joins)->parent;
	GhGroupingInput input = {.varno = INDEX_VAR};

	input.quals = list_concat(extract_actual_clauses(rel->baserestrictinfo, false), conditions);
	/* for the host, joins whose rows are read so return them */
	if (contains_placeholders((Node *) exprs) ||
		(gh_linked_step(root, joins)->on_device &&
		 bms_overlap(pull_varnos(root, (Node *) exprs), gh_linked_step(root, joins)->unread)))
		return false;
	input.columns = list_concat_unique(pull_var_clause((Node *) exprs, PVC_RECURSE_PLACEHOLDERS),
									   pull_var_clause((Node *) input.quals, PVC_RECURSE_PLACEHOLDERS));
	input.desc = gh_columns_desc(root, input.columns, false);
	return input.desc != NULL && gh_grouping_translates(grouping, &input, ninstructions);
}

/* ---------------------------------------------------------------- costs */

/*
 * What it costs the CPU engine to read a table's pages, or those of several; or its columns, for pages of
 * which these are in memory.
 */
Cost
gh_pages_cost(PlannerInfo *root, Path *scan, int ninstructions, double divisor)
{
	RelOptInfo *rel = scan->parent;
	double		page_cost;
	Cost		cost = 0;
	Cost		saved_pages;
	Cost		saved_rows;
	ListCell   *lc;

	if (IsA(scan, AppendPath))
	{
		foreach(lc, ((AppendPath *) scan)->subpaths)
			cost += gh_pages_cost(root, lfirst(lc), ninstructions, divisor);
		return cost;
	}

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	gh_columns_saved(root, rel, divisor, &saved_pages, &saved_rows);
	/* what the scan starts with: subplans of its quals, and that it is switched off */
	return scan->startup_cost + gh_cpu_pages_cost(rel->pages, rel->tuples, page_cost, ninstructions, divisor) -
		saved_pages - saved_rows;
}

/* What a node above is charged for a chain that costs so much. */
Cost
gh_charged(const GhSpared *spared, Cost cost)
{
	cost = Max(cost - spared->pages, 0);
	return Max(cost - spared->doubt, Min(cost, spared->least));
}

/*
 * Of joins, what their look-ups cost, and all but what their outer rows and results do.  Where the inner side
 * of one does not fit in memory, its rows come through files, and all joins do what they do anywhere.  An
 * inner side whose table is the copy of an index is not read.
 */
Cost
gh_joins_cost(PlannerInfo *root, Path *join, const GhSpared *spared, int ninstructions, double divisor)
{
	Path	   *outer = join;
	double		saved = 0;
	Cost		startup;
	Cost		cost;
	Cost		pages;
	Cost		rows;

	gh_real_cost(join, &startup, &cost);
	gh_inner_chains_save(root, join, &pages, &rows);
	cost -= pages + rows;
	for (; gh_is_join_path(outer); outer = linitial(((CustomPath *) outer)->custom_paths))
	{
		Cost		saved_by_copy = gh_copy_saves(root, outer);

		if (saved_by_copy == 0 && !gh_join_fits_in_memory((CustomPath *) outer))
			return gh_charged(spared, cost) + join->rows *
				(GH_KEPT_ROW_COST * cpu_tuple_cost + GH_INSTRUCTION_COST * cpu_operator_cost * ninstructions);
		saved += cpu_tuple_cost * outer->rows + saved_by_copy;
	}
	return gh_charged(spared, Max(cost - saved - outer->total_cost, 0) + gh_pages_cost(root, outer, ninstructions, divisor));
}
