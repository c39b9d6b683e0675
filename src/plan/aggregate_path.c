/*
 * aggregate_path.c
 *		When the planner considers a GpuHashAggregate, and what it costs.
 *
 * The hook is called once for each grouping, and once for each partition of one that is done partition by
 * partition; and once for SELECT DISTINCT, which is a grouping without aggregates.  The node reads a plain
 * table's pages by itself, or looks these rows up in the tables of joins; of any other plan it takes the
 * rows, which pays where there are groups. The hook never touches a GPU: plans are made, and kept, where
 * there may be none.
 */
#include "postgres.h"

#include <math.h>

#include "access/table.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"

#include "compat.h"
#include "expr/aggregates.h"
#include "expr/key.h"
#include "expr/translate.h"
#include "gpuhash.h"
#include "plan/aggregate_path.h"
#include "plan/aggregate_plan.h"
#include "plan/chain.h"
#include "plan/doubt.h"
#include "plan/groups_path.h"
#include "plan/input_path.h"
#include "plan/join_path.h"
#include "plan/note.h"
#include "plan/parts_path.h"
#include "plan/planning.h"
#include "plan/scan_path.h"
#include "plan/wanted.h"
#include "plan/why.h"
#include "plan/wide_texts.h"

static create_upper_paths_hook_type previous_hook = NULL;

static const CustomPathMethods gh_aggregate_path_methods = {
	.CustomName = GH_AGGREGATE_NAME,
	.PlanCustomPath = gh_aggregate_plan,
};

bool
gh_is_aggregate_path(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &gh_aggregate_path_methods;
}

/* All that is computed of a row. */
static List *
row_exprs(const GhGrouping *grouping)
{
	List	   *exprs = list_copy(grouping->keys);
	ListCell   *lc;

	foreach(lc, grouping->aggregates)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);

		if (gh_aggregate_argument(aggref) != NULL)
			exprs = lappend(exprs, gh_aggregate_argument(aggref));
		if (aggref->aggfilter != NULL)
			exprs = lappend(exprs, aggref->aggfilter);
	}
	return exprs;
}

/* Rows to be grouped, and into how many groups. */
static void
estimate_groups(GhAggregateInputs *inputs)
{
	List	   *exprs = get_sortgrouplist_exprs(inputs->by.clauses, inputs->by.tlist);

	inputs->wide = gh_read_wide_texts(inputs->root, row_exprs(&inputs->grouping));
	inputs->rows = inputs->input_rel->rows;
	inputs->returned = inputs->by.written == NIL ? 1.0 :
		gh_estimate_groups(inputs->root, exprs, inputs->rows);
	inputs->groups = inputs->returned;
	if (inputs->grouping.sets != NIL)
	{
		inputs->groups = gh_estimate_groups(inputs->root, inputs->grouping.keys, inputs->rows);
		inputs->returned = gh_sets_estimate(inputs->root, &inputs->grouping, inputs->rows);
	}
	if (inputs->grouping.distinct != NIL)
		inputs->groups = gh_distinct_estimate(inputs->root, &inputs->grouping, exprs, inputs->rows);
}

/* --------------------------------------------------------------- paths */

static CustomPath *
make_aggregate_path(const GhAggregateInputs *inputs, Path *child, double rows)
{
	RelOptInfo *output_rel = inputs->output_rel;
	CustomPath *cpath = makeNode(CustomPath);
	double		divisor = child->parallel_workers > 0 ? gh_parallel_divisor(child->parallel_workers) : 1.0;
	/* rows are divided among participants, but each may meet all groups */
	double		met = Min(inputs->groups, ceil(inputs->rows / divisor));

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = output_rel;
	cpath->path.pathtarget = inputs->by.target;
	/* of a device, each process of several would have the same done again */
	cpath->path.parallel_safe = output_rel->consider_parallel && child->parallel_safe &&
		(gh_force_offload || child->parallel_workers > 0 || !gh_aggregate_is_for_device(inputs, child));
	/* the child of participants is divided among them, and so are the groups that they return */
	cpath->path.parallel_aware = child->parallel_workers > 0;
	cpath->path.parallel_workers = child->parallel_workers;
	cpath->path.rows = gh_aggregate_groups_out(inputs, child->parallel_workers > 0 ? clamp_row_est(rows / divisor) : rows);
	gh_copy_disabled_nodes(&cpath->path, child);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(child);
	cpath->methods = &gh_aggregate_path_methods;
	/* in the order of GhAggregatePathPrivate */
	cpath->custom_private = list_make5(inputs->grouping.keys, inputs->grouping.aggregates,
									   inputs->by.having,
									   gh_distinct_path_list(&inputs->grouping, met),
									   gh_sets_path_list(&inputs->grouping, met));
	cpath->custom_private = lappend(cpath->custom_private, makeInteger((int) Min(met, INT_MAX)));
	cpath->custom_private = lappend(cpath->custom_private,
									makeBoolean(gh_aggregate_is_for_device(inputs, child)));
	cpath->custom_private = lappend(cpath->custom_private, makeInteger(inputs->ninstructions));
	gh_cost_aggregate(inputs, cpath, rows);
	return cpath;
}

/* The columns that are computed with. */
static List *
columns_read(const GhGrouping *grouping)
{
	PathTarget *target = create_empty_pathtarget();

	add_new_columns_to_pathtarget(target, pull_var_clause((Node *) row_exprs(grouping), PVC_RECURSE_PLACEHOLDERS));
	return target->exprs;
}

/* A scan of them. */
static Path *
make_scan_path(const GhAggregateInputs *inputs, int workers)
{
	List	   *columns = columns_read(&inputs->grouping);
	PathTarget *target = create_empty_pathtarget();
	Path	   *path;

	if (gh_find_parts(inputs->root, inputs->input_rel) != NULL)
		return gh_parts_scan(inputs->root, inputs->input_rel, columns, workers);
	path = create_seqscan_path(inputs->root, inputs->input_rel, NULL, workers);
	target->exprs = columns;
	path->pathtarget = set_pathtarget_cost_width(inputs->root, target);
	/* as the node reads it */
	path->total_cost = gh_pages_cost(inputs->root, path, inputs->ninstructions, workers > 0 ? gh_parallel_divisor(workers) : 1.0);
	return path;
}

/* The part of the input that one of several participants has, or NULL. */
static Path *
make_partial_child(const GhAggregateInputs *inputs)
{
	RelOptInfo *rel = inputs->input_rel;
	int			workers;

	if (inputs->partial_join != NULL)
		return gh_joins_with_target(inputs->root, inputs->partial_join, row_exprs(&inputs->grouping));
	if (rel->partial_pathlist == NIL)
		return NULL;
	if (!inputs->pages)
	{
		Path	   *child = linitial(rel->partial_pathlist);

		/* rows of the same columns, for which there is the program */
		return inputs->join == NULL && equal(child->pathtarget->exprs, rel->cheapest_total_path->pathtarget->exprs) ?
			child : NULL;
	}
	workers = compute_parallel_worker(rel, gh_pages_read(inputs->root, rel), -1, max_parallel_workers_per_gather);
	return workers <= 0 ? NULL : make_scan_path(inputs, workers);
}

/*
 * Whether PostgreSQL's plan takes less time than a path by the CPU engine, if pages are in memory that it
 * reads at random.
 */
static bool
loses_in_memory(const GhAggregateInputs *inputs, const Path *path, Path *child)
{
	return (inputs->pages || inputs->join != NULL || inputs->partial_join != NULL) && !gh_aggregate_is_for_device(inputs, child) &&
		gh_aggregate_loses_in_memory(inputs->root, &inputs->planned, path, child, inputs->ninstructions);
}

static void
add_grouped_path(const GhAggregateInputs *inputs, Path *path, Path *child)
{
	if (loses_in_memory(inputs, path, child))
	{
		gh_why(inputs->root, inputs->why_of, "an index takes less time, if its pages are in memory");
		return;
	}
	gh_why_cost(inputs->root, inputs->why_of, GH_AGGREGATE_NAME, path->startup_cost, path->total_cost, false);
	add_path(inputs->output_rel, path);
}

/* The whole by one process. */
static void
add_serial_path(const GhAggregateInputs *inputs, Path *child, double rows)
{
	Path	   *path = (Path *) make_aggregate_path(inputs, child, rows);
	double		doubtful;

	if (!gh_force_offload && gh_aggregate_is_spared_doubt(inputs, child, &doubtful))
		gh_drop_doubtful(inputs->output_rel, path, child->rows, doubtful);
	add_grouped_path(inputs, path, child);
}

/*
 * Participants of a parallel query, below a Gather of their own: their rows are final.  Where each of them
 * returns some, what is above may be done by them as well.
 */
static void
add_parallel_path(const GhAggregateInputs *inputs, double rows)
{
	RelOptInfo *output_rel = inputs->output_rel;
	Path	   *child;
	CustomPath *cpath;

	if (!output_rel->consider_parallel)
		return;
	child = make_partial_child(inputs);
	if (child == NULL)
		return;
	cpath = make_aggregate_path(inputs, child, rows);
	/*
	 * Another one, for it may be freed; and where there are some already (of a grouping that is done partition by partition), they may have
	 * Gathers above them, and are not to be driven out.  Those of a subquery may be a side of a parallel join, though one participant has them all.
	 */
	if (output_rel->partial_pathlist == NIL &&
		(inputs->root->query_level > 1 || gh_aggregate_is_merged_by_all(inputs, child->parallel_workers)))
		add_partial_path(output_rel, (Path *) make_aggregate_path(inputs, child, rows));
	add_grouped_path(inputs, (Path *) create_gather_path(inputs->root, output_rel, &cpath->path,
														 inputs->by.target, NULL, &rows), child);
}

static void
add_aggregate_paths(GhAggregateInputs *inputs)
{
	List	   *having = inputs->by.having;
	Path	   *child = inputs->pages ? make_scan_path(inputs, 0) :
		inputs->join != NULL ? gh_joins_with_target(inputs->root, inputs->join, row_exprs(&inputs->grouping)) :
		inputs->partial_join == NULL ? inputs->input_rel->cheapest_total_path : NULL;
	double		rows;

	estimate_groups(inputs);
	if (!inputs->planned.is_weighed)
		gh_weigh_planned(inputs->root, inputs->output_rel, &inputs->planned);
	rows = inputs->returned;
	if (having != NIL)
		rows = clamp_row_est(rows * clauselist_selectivity(inputs->root, having, 0, JOIN_INNER,
														   NULL));
	if (child != NULL)
		add_serial_path(inputs, child, rows);
	add_parallel_path(inputs, rows);
}

/* --------------------------------------------------------------- inputs */

/* Whether there is a program for the grouping, over rows of the table. */
static bool
table_translates(GhAggregateInputs *inputs, GhGrouping *grouping, RelOptInfo *rel)
{
	Relation	relation = table_open(planner_rt_fetch(rel->relid, inputs->root)->relid, NoLock);
	GhGroupingInput input = {.varno = rel->relid, .quals = extract_actual_clauses(rel->baserestrictinfo, false)};
	bool		done;

	input.desc = RelationGetDescr(relation);
	done = gh_grouping_translates(grouping, &input, &inputs->ninstructions);
	table_close(relation, NoLock);
	return done;
}

/* Likewise of several tables that are read as one: the program is that of the first. */
static bool
parts_translate(GhAggregateInputs *inputs, const GhParts *parts)
{
	RelOptInfo *rel = inputs->input_rel;
	RelOptInfo *first = linitial(parts->rels);
	GhGrouping	grouping = inputs->grouping;
	List	   *columns = columns_read(&grouping);
	bool		done;

	if (!gh_are_columns(columns) || !gh_parts_have(inputs->root, rel, columns))
		return false;
	grouping.keys = (List *) gh_parts_translated(inputs->root, rel, first, (Node *) grouping.keys);
	grouping.aggregates = (List *) gh_parts_translated(inputs->root, rel, first, (Node *) grouping.aggregates);
	done = table_translates(inputs, &grouping, first);
	inputs->grouping.why_not = grouping.why_not;
	return done;
}

/* Whether there is a program over the table's rows. */
static bool
reads_pages(GhAggregateInputs *inputs)
{
	RelOptInfo *rel = inputs->input_rel;
	const GhParts *parts = gh_find_parts(inputs->root, rel);

	/* where it is forced, its cost does not tell that such scans are switched off */
	if (gh_force_offload && !enable_seqscan)
		return false;
	if (parts != NULL)
		return parts_translate(inputs, parts);
	return gh_note(inputs->root, rel)->is_readable && table_translates(inputs, &inputs->grouping, rel);
}

/* Whether the path reads all pages of a table, or of several. */
static bool
reads_all(Path *path)
{
	ListCell   *lc;

	if (IsA(path, ProjectionPath))
		return reads_all(((ProjectionPath *) path)->subpath);
	if (!IsA(path, AppendPath))
		return path->pathtype == T_SeqScan || gh_is_rowscan_path(path);
	foreach(lc, ((AppendPath *) path)->subpaths)
	{
		if (!reads_all(lfirst(lc)))
			return false;
	}
	return true;
}

/* Whether the table's cheapest path reads all of it, too, or an index that is not worth it. */
static bool
reading_all_pays(const GhAggregateInputs *inputs)
{
	RelOptInfo *rel = inputs->input_rel;
	Path	   *cheapest = gh_below_gather(rel->cheapest_total_path);
	Path	   *scan;
	double		divisor;
	Cost		cost;
	Cost		saved = 0;
	Cost		saved_rows;

	if (gh_force_offload || reads_all(cheapest))
		return true;
	divisor = cheapest->parallel_workers > 0 ? gh_parallel_divisor(cheapest->parallel_workers) : 1.0;
	scan = make_scan_path(inputs, cheapest->parallel_workers);
	cost = gh_pages_cost(inputs->root, scan, inputs->ninstructions, divisor);
	if (!IsA(scan, AppendPath))
		gh_columns_saved(inputs->root, rel, divisor, &saved, &saved_rows);
	if (!gh_grouping_is_for_host(&inputs->grouping) && gh_device_reads(inputs->root, scan))
		cost = Min(cost, gh_device_reading_cost(inputs->root, scan));
	return gh_reading_all_wins(inputs->root, rel, cheapest, 0, cost,
							   gh_whole_tables_cost(inputs->root, scan, false, false) - saved);
}

/*
 * Joins that the node can look up in, for which there is a program: all of them, or else the last ones; or
 * NULL.
 */
static Path *
translated_joins(GhAggregateInputs *inputs, bool partial)
{
	PlannerInfo *root = inputs->root;
	List	   *exprs = row_exprs(&inputs->grouping);
	Path	   *whole = gh_find_whole(root, inputs->input_rel, partial);
	Path	   *joins;

	if (whole != NULL && gh_joins_translate(root, &inputs->grouping, whole, exprs, &inputs->ninstructions))
		return whole;
	joins = gh_find_joins(root, inputs->input_rel, partial);
	return joins != NULL && joins != whole &&
		gh_joins_translate(root, &inputs->grouping, joins, exprs, &inputs->ninstructions) ? joins : NULL;
}

static bool
reads_joins(GhAggregateInputs *inputs)
{
	inputs->join = translated_joins(inputs, false);
	inputs->partial_join = translated_joins(inputs, true);
	return inputs->join != NULL || inputs->partial_join != NULL;
}

/*
 * Whether the node can take the rows of the input's cheapest path one by one, and do with
 * them what it does by programs elsewhere.
 */
static bool
reads_rows(GhAggregateInputs *inputs)
{
	Path	   *child = inputs->input_rel->cheapest_total_path;
	List	   *columns = child->pathtarget->exprs;
	GhGroupingInput input = {.varno = INDEX_VAR, .columns = columns};

	if (child->param_info != NULL)
		return false;
	input.desc = gh_columns_desc(inputs->root, columns, true);
	return input.desc != NULL &&
		gh_grouping_translates(&inputs->grouping, &input, &inputs->ninstructions);
}

/* Whether the rows are groups that are expected on a device, and the node's can be made there, too. */
static bool
reads_groups(GhAggregateInputs *inputs)
{
	const CustomPath *below = gh_groups_below(inputs->input_rel);

	if (below == NULL || gh_grouping_is_for_host(&inputs->grouping) ||
		!gh_groups_translate(inputs->root, inputs->input_rel, &inputs->grouping, &inputs->ninstructions))
		return false;
	inputs->below = below;
	return true;
}

static const char *
why_not_grouped(const GhAggregateInputs *inputs)
{
	return gh_why_of(inputs->root, inputs->grouping.why_not, (Node *) inputs->grouping.why_expr);
}

/*
 * Whether it is sure that a path would not pay.  Few rows may come out of joins that read many; where these
 * may be done below the node, what they cost tells.
 */
static bool
has_few_rows(const GhAggregateInputs *inputs)
{
	RelOptInfo *rel = inputs->input_rel;

	if (IS_JOIN_REL(rel))
		return gh_has_few_rows(rel->rows) && gh_find_whole(inputs->root, rel, false) == NULL &&
			gh_find_whole(inputs->root, rel, true) == NULL;
	return gh_has_few_rows(gh_note(inputs->root, rel)->is_readable || gh_find_parts(inputs->root, rel) != NULL ?
						   gh_tuples_read(inputs->root, rel) : rel->rows) && gh_groups_below(rel) == NULL;
}

/* Why no path is added; NULL: there is one. */
static const char *
why_not_taken(GhAggregateInputs *inputs)
{
	PlannerInfo *root = inputs->root;
	bool		has_pages;

	if (!gh_enable_aggregate)
		return "gpuhash.enable_aggregate is off";
	if (has_few_rows(inputs))
		return "it has few rows";
	if (!gh_grouping_collect(root, &inputs->by, &inputs->grouping))
		return inputs->grouping.why_not != NULL ? why_not_grouped(inputs) :
			"what comes out is neither key nor aggregate";
	has_pages = reads_pages(inputs);
	inputs->pages = has_pages && reading_all_pays(inputs);
	/* for one group, PostgreSQL is as quick to add a row as this node is to keep it */
	if (inputs->pages || reads_joins(inputs) ||
		((gh_force_offload || inputs->grouping.keys != NIL) && reads_rows(inputs)) || reads_groups(inputs))
		return NULL;
	if (inputs->grouping.why_not != NULL)
		return why_not_grouped(inputs);
	return has_pages || gh_note(root, inputs->input_rel)->joins_cost_more ? "it would cost more" :
		"its rows come one by one from the plan below, and there is no GROUP BY";
}

/* GhPathsAside */
static List *
paths_aside(const GhAggregateInputs *inputs)
{
	GhAggregateInputs again = {.root = inputs->root,.input_rel = inputs->input_rel,.by = inputs->by,.sort = inputs->sort,
	.planned = inputs->planned};

	again.output_rel = makeNode(RelOptInfo);
	memcpy(again.output_rel, inputs->output_rel, sizeof(RelOptInfo));
	again.output_rel->pathlist = again.output_rel->partial_pathlist = NIL;
	if (!again.planned.is_weighed)
		gh_weigh_planned(inputs->root, inputs->output_rel, &again.planned);
	if (why_not_taken(&again) == NULL)
		add_aggregate_paths(&again);
	return again.output_rel->pathlist;
}

static void
consider_aggregate(GhAggregateInputs *inputs)
{
	const char *why = why_not_taken(inputs);

	if (why == NULL)
		add_aggregate_paths(inputs);
	else
		gh_why(inputs->root, inputs->why_of, why);
	gh_want_columns(inputs, paths_aside);
}

/* GROUP BY, or aggregates without. */
static void
consider_grouping(GhAggregateInputs *inputs, const GroupPathExtraData *extra)
{
	PlannerInfo *root = inputs->root;

	inputs->by = (GhGroupBy) {
		.clauses = root->parse->groupingSets != NIL ? root->parse->groupClause : gh_group_clause(root),
		.written = root->parse->groupClause,
		.sets = root->parse->groupingSets,
		.tlist = extra->targetList,
		.having = (List *) extra->havingQual,
		.target = inputs->output_rel->reltarget,
	};
	if (extra->patype != PARTITIONWISE_AGGREGATE_PARTIAL)
		consider_aggregate(inputs);
}

/* Why SELECT DISTINCT is not looked at as a grouping; NULL: it is. */
static const char *
why_not_distinct(const GhAggregateInputs *inputs)
{
	const GhGroupBy *by = &inputs->by;
	ListCell   *lc;

	/* the child would run it, and the node once more */
	foreach(lc, by->target->exprs)
	{
		if (contain_subplans(lfirst(lc)) && !contain_var_clause(lfirst(lc)))
			return "a subquery that is the same in all rows comes out";
	}
	if (by->clauses == NIL)
		return "its columns are the same in all rows, and one is enough";
	if (IS_UPPER_REL(inputs->input_rel))
		return "its rows are those of a grouping, or of window functions";
	/* of DISTINCT ON, what is no key is computed for each row that is read */
	if (inputs->root->parse->hasDistinctOn &&
		(contain_volatile_functions((Node *) by->target->exprs) || contain_subplans((Node *) by->target->exprs) ||
		 expression_returns_set((Node *) by->target->exprs)))
		return "what comes out is volatile, a set, or a subquery";
	return NULL;
}

/* SELECT DISTINCT of a scan's or a join's rows, and DISTINCT ON, where nothing but keys comes out. */
static void
consider_distinct(GhAggregateInputs *inputs)
{
	PlannerInfo *root = inputs->root;
	const char *why;

	inputs->why_of = gh_collects_why ? GH_WHY_DISTINCT : NULL;
	inputs->by = (GhGroupBy) {
		.clauses = gh_distinct_clause(root),
		.written = root->parse->distinctClause,
		.tlist = root->processed_tlist,
		.target = inputs->input_rel->cheapest_total_path->pathtarget,
	};
	why = why_not_distinct(inputs);
	if (why == NULL)
		consider_aggregate(inputs);
	else
		gh_why(root, inputs->why_of, why);
}

static void
upper_paths_hook(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				 RelOptInfo *output_rel, void *extra)
{
	GhAggregateInputs inputs = {
		.root = root,
		.input_rel = input_rel,
		.output_rel = output_rel,
	};

	if (previous_hook)
		previous_hook(root, stage, input_rel, output_rel, extra);
	inputs.sort = gh_sort_of_rows(output_rel);
	/* of set operations there is no input */
	if (!gh_enabled || (stage != UPPERREL_GROUP_AGG && stage != UPPERREL_DISTINCT) || IS_DUMMY_REL(input_rel))
		return;
	if (stage == UPPERREL_GROUP_AGG)
		consider_grouping(&inputs, extra);
	else
		consider_distinct(&inputs);
}

/* Called by _PG_init. */
void
gh_aggregate_init(void)
{
	previous_hook = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths_hook;
}
