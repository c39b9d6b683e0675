/*
 * path.c
 *		When the planner considers a GpuHashJoin, and what it costs.
 *
 * The hook is called for every pair of inputs of every join, in either order and
 * with the join type that goes with the order; the second input is the one that is
 * hashed.  So it turns down by row count before it looks at a clause.  Which paths of
 * the inputs are joined is what PostgreSQL's hash join does.  The hook never touches a
 * GPU: plans are made, and kept, where there may be none.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

#include "aggregate/rows_path.h"
#include "gpuhash.h"
#include "join/join.h"
#include "planning.h"
#include "rowscan/rowscan.h"
#include "why.h"

static set_join_pathlist_hook_type previous_hook = NULL;

static List *reparameterize_private(PlannerInfo *root, List *custom_private,
									RelOptInfo *child_rel);

static const CustomPathMethods gh_join_path_methods = {
	.CustomName = GH_JOIN_NAME,
	.PlanCustomPath = gh_join_plan,
	.ReparameterizeCustomPathByChild = reparameterize_private,
};

/* What the paths have in common that one call of the hook adds. */
typedef struct JoinInputs
{
	PlannerInfo *root;
	RelOptInfo *joinrel;
	RelOptInfo *outerrel;
	RelOptInfo *innerrel;
	JoinType	jointype;
	JoinPathExtraData *extra;
	bool		may_stay_unread;	/* rows of the join: see ahead.c */
	List	   *hash_clauses;
	bool		keys_are_exact;	/* else the hash clauses are rechecked */
	bool		has_semifactors;	/* extra->semifactors are there */
	Selectivity hash_selectivity;	/* where they are not: of the hash clauses */
	QualCost	hash_cost;		/* of evaluating the hash clauses */
	QualCost	qual_cost;		/* and all of the join's clauses */
} JoinInputs;

/* ------------------------------------------------------------- clauses */

/*
 * Whether the clause compares an expression over one input with one over the
 * other, by an operator that can be hashed, and to how many bits: gh_operator_key_bits.
 */
static int
hash_clause_bits(const JoinInputs *inputs, RestrictInfo *rinfo)
{
	RelOptInfo *outerrel = inputs->outerrel;
	RelOptInfo *innerrel = inputs->innerrel;
	bool		outer_is_left;

	/* an outer join is decided by its own clauses alone */
	if (IS_OUTER_JOIN(inputs->jointype) && RINFO_IS_PUSHED_DOWN(rinfo, inputs->joinrel->relids))
		return -1;
	if (!rinfo->can_join || !OidIsValid(rinfo->hashjoinoperator))
		return -1;
	outer_is_left = bms_is_subset(rinfo->left_relids, outerrel->relids) &&
		bms_is_subset(rinfo->right_relids, innerrel->relids);
	if (!outer_is_left &&
		!(bms_is_subset(rinfo->left_relids, innerrel->relids) &&
		  bms_is_subset(rinfo->right_relids, outerrel->relids)))
		return -1;
	if (!IsA(rinfo->clause, OpExpr) ||
		(inputs->may_stay_unread && !gh_key_is_quiet(rinfo, outer_is_left)))
		return -1;
	return gh_operator_key_bits(((OpExpr *) rinfo->clause)->opno);
}

/* False: there is no hash clause, or the core would lose a clause. */
static bool
find_hash_clauses(JoinInputs *inputs)
{
	List	   *clauses = inputs->extra->restrictlist;
	int			bits = 0;
	bool		all = true;
	ListCell   *lc;

	inputs->keys_are_exact = true;
	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		int			key_bits;

		if (rinfo->pseudoconstant && !GH_CORE_GATES_JOINS)
			return false;
		key_bits = hash_clause_bits(inputs, rinfo);
		if (key_bits < 0)
		{
			/* until here the list itself would have done, as it does nearly always */
			if (all)
				inputs->hash_clauses = list_copy_head(clauses, foreach_current_index(lc));
			all = false;
			continue;
		}
		if (!all)
			inputs->hash_clauses = lappend(inputs->hash_clauses, rinfo);
		bits += key_bits;
		if (key_bits == 0 || bits > GH_KEY_BITS)
			inputs->keys_are_exact = false;
	}
	if (all)
		inputs->hash_clauses = clauses;
	return inputs->hash_clauses != NIL;
}

/* ---------------------------------------------------------------- cost */

/* The share of all pairs that the hash clauses leave, taken for an inner join. */
static Selectivity
hash_selectivity(const JoinInputs *inputs)
{
	SpecialJoinInfo sjinfo;
	Selectivity result = 1.0;
	ListCell   *lc;

	memset(&sjinfo, 0, sizeof(sjinfo));
	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.min_lefthand = sjinfo.syn_lefthand = inputs->outerrel->relids;
	sjinfo.min_righthand = sjinfo.syn_righthand = inputs->innerrel->relids;
	sjinfo.jointype = JOIN_INNER;
	foreach(lc, inputs->hash_clauses)
		result *= clause_selectivity(inputs->root, (Node *) lfirst(lc), 0, JOIN_INNER, &sjinfo);
	return result;
}

/* What the costs of all the paths need. */
static void
prepare_costs(JoinInputs *inputs)
{
	List	   *clauses = inputs->extra->restrictlist;

	/* as add_paths_to_joinrel() has it; a join with a unique-ified side is inner here */
	inputs->has_semifactors = inputs->jointype == JOIN_SEMI || inputs->jointype == JOIN_ANTI ||
		inputs->extra->inner_unique;
	if (!inputs->has_semifactors)
		inputs->hash_selectivity = hash_selectivity(inputs);
	cost_qual_eval(&inputs->qual_cost, clauses, inputs->root);
	if (inputs->hash_clauses == clauses)
		inputs->hash_cost = inputs->qual_cost;
	else
		cost_qual_eval(&inputs->hash_cost, inputs->hash_clauses, inputs->root);
}

/*
 * Pairs of rows that the look-up gives and that are looked at, counted as PostgreSQL's
 * hash join counts them, lest like be held against unlike: also with a common table, of
 * which it takes the inner rows of one process.
 */
static double
looked_at_pairs(const JoinInputs *inputs, Path *outer, Path *inner)
{
	double		matched;

	if (!inputs->has_semifactors)
		return clamp_row_est(outer->rows * inner->rows * inputs->hash_selectivity);
	matched = rint(outer->rows * inputs->extra->semifactors.outer_match_frac);
	return clamp_row_est(inputs->jointype == JOIN_ANTI ? outer->rows - matched : matched);
}

/* Bytes of row store and table for the inner side, as estimated. */
static double
estimate_memory(Path *inner)
{
	double		width = inner->pathtarget->width + sizeof(GhRow) + sizeof(Datum);

	return inner->rows * (width + gh_table_bytes_per_row());
}

bool
gh_is_join_path(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &gh_join_path_methods;
}

/* What the path costs, GH_FORCED_SCALE undone; also of a path whose rows are gathered. */
static void
real_cost(Path *path, Cost *startup, Cost *total)
{
	Path	   *join = path;

	*startup = path->startup_cost;
	*total = path->total_cost;
	if (!gh_force_offload)
		return;
	if (IsA(join, GatherPath))
		join = ((GatherPath *) join)->subpath;
	else if (IsA(join, GatherMergePath))
		join = ((GatherMergePath *) join)->subpath;
	if (gh_is_join_path(join) || gh_rows_joins(join) != NULL)
	{
		*startup += join->startup_cost * (1 / GH_FORCED_SCALE - 1);
		*total += join->total_cost * (1 / GH_FORCED_SCALE - 1);
	}
}

/* Pages of rows in temporary files, as PostgreSQL's hash join counts them. */
static double
spilled_pages(Path *path)
{
	return ceil(path->rows * (path->pathtarget->width + sizeof(GhRow) + sizeof(Datum)) /
				BLCKSZ);
}

/* A path that may be made, and what it would cost. */
typedef struct JoinChoice
{
	Path	   *outer;
	Path	   *inner;
	List	   *clauses;		/* of the join, those that parameters bring among them */
	bool		has_parameters;
	int			workers;		/* of a path of which each process gives a part, else 0 */
	bool		common_table;	/* whose inner rows each reads a part of */
	double		rows;			/* that come out, of one process */
	Cost		startup_cost;
	Cost		total_cost;
} JoinChoice;

/*
 * Startup: the whole inner side, stored and entered.  Then, for each outer row,
 * its look-up; for each match, the rechecks and join quals, and PostgreSQL's
 * usual cost of making a row.  Where keys are hashed, that is done for the rows of
 * both sides, and the hash clauses are rechecked.  Where memory does not hold the inner
 * side, all but the first partition of both sides is written and read once.
 *
 * Of a parallel path, this is what one process does.  Those with a common table put
 * their memory together.
 */
static void
cost_join(const JoinInputs *inputs, JoinChoice *choice)
{
	Path	   *outer = choice->outer;
	Path	   *inner = choice->inner;
	PathTarget *target = inputs->joinrel->reltarget;
	QualCost	quals = inputs->qual_cost;
	double		memory = estimate_memory(inner);
	double		limit = get_hash_memory_limit();
	Cost		outer_startup;
	Cost		outer_total;
	Cost		inner_startup;
	Cost		inner_total;
	Cost		startup;
	Cost		run;

	real_cost(outer, &outer_startup, &outer_total);
	real_cost(inner, &inner_startup, &inner_total);
	/* parameters bring more clauses */
	if (choice->has_parameters)
		cost_qual_eval(&quals, choice->clauses, inputs->root);
	startup = outer_startup + inner_total + gh_setup_cost + gh_build_tuple_cost * inner->rows;
	run = outer_total - outer_startup + gh_probe_tuple_cost * outer->rows;
	if (inputs->keys_are_exact)
		/* the look-up's own price covers them once */
		quals.per_tuple -= inputs->hash_cost.per_tuple;
	else
	{
		startup += cpu_operator_cost * list_length(inputs->hash_clauses) * inner->rows;
		run += inputs->hash_cost.per_tuple * outer->rows;
	}
	startup += quals.startup;
	run += (cpu_tuple_cost + quals.per_tuple) * looked_at_pairs(inputs, outer, inner);
	if (choice->common_table)
	{
		/* as the inner path's rows were divided: among fewer workers, it may be */
		memory *= gh_parallel_divisor(inner->parallel_workers);
		limit *= choice->workers + 1;
	}
	if (memory > limit)
	{
		double		spilled = 1.0 - limit / memory;

		startup += seq_page_cost * spilled * spilled_pages(inner);
		run += seq_page_cost * spilled * (spilled_pages(inner) + 2 * spilled_pages(outer));
	}
	startup += target->cost.startup;
	run += target->cost.per_tuple * choice->rows;

	choice->startup_cost = startup;
	choice->total_cost = startup + run;
	if (gh_force_offload)
	{
		choice->startup_cost *= GH_FORCED_SCALE;
		choice->total_cost *= GH_FORCED_SCALE;
	}
}

/* --------------------------------------------------------------- paths */

/*
 * Whether a path that joins these two, one of which has parameters, is one that may be
 * there, and that the planner has a use for above this join.
 */
static bool
may_have_parameters(const JoinInputs *inputs, Path *outer, Path *inner)
{
	JoinPathExtraData *extra = inputs->extra;

	/* an outer side that is read ahead: its clauses with parameters come from elsewhere */
	return (outer->param_info == NULL || !inputs->may_stay_unread) &&
		!gh_needs_this_join(outer, extra->sjinfo) &&
		!gh_needs_this_join(inner, extra->sjinfo) &&
		(bms_overlap(PATH_REQ_OUTER(outer), extra->param_source_rels) ||
		 bms_overlap(PATH_REQ_OUTER(inner), extra->param_source_rels));
}

/* The chosen path. */
static CustomPath *
make_join_path(const JoinInputs *inputs, const JoinChoice *choice, ParamPathInfo *param_info)
{
	CustomPath *cpath = makeNode(CustomPath);
	Path	   *outer = choice->outer;
	Path	   *inner = choice->inner;

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = inputs->joinrel;
	cpath->path.pathtarget = inputs->joinrel->reltarget;
	cpath->path.param_info = param_info;
	cpath->path.parallel_aware = choice->common_table;
	cpath->path.parallel_workers = choice->workers;
	cpath->path.parallel_safe = inputs->joinrel->consider_parallel &&
		outer->parallel_safe && inner->parallel_safe;
	cpath->path.rows = choice->rows;
	cpath->path.startup_cost = choice->startup_cost;
	cpath->path.total_cost = choice->total_cost;
	gh_sum_disabled_nodes(&cpath->path, outer, inner);
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make2(outer, inner);
	cpath->methods = &gh_join_path_methods;
	gh_set_path_restrictinfo(cpath, choice->clauses);
	/* in the order of GhJoinPathPrivate */
	cpath->custom_private = list_make3(list_make2_int(inputs->jointype,
													  inputs->extra->inner_unique),
									   choice->clauses,
									   inputs->hash_clauses);
	return cpath;
}

static void
add_join_path(const JoinInputs *inputs, Path *any_outer, Path *any_inner)
{
	Path	   *outer = gh_rowscan_absorbed(inputs->root, any_outer);
	Path	   *inner = gh_rowscan_absorbed(inputs->root, any_inner);
	JoinPathExtraData *extra = inputs->extra;
	RelOptInfo *joinrel = inputs->joinrel;
	ParamPathInfo *param_info = NULL;
	Relids		required_outer = NULL;
	JoinChoice	choice = {
		.outer = outer,
		.inner = inner,
		.clauses = extra->restrictlist,
		.rows = joinrel->rows,
	};
	bool		may_win;

	if (!gh_force_offload && outer->rows + inner->rows < GH_MIN_ROWS)
		return;
	if (outer->param_info != NULL || inner->param_info != NULL)
	{
		if (!may_have_parameters(inputs, outer, inner))
			return;
		/* clauses that compare with the parameters come to the join's own */
		required_outer = calc_non_nestloop_required_outer(outer, inner);
		param_info = get_joinrel_parampathinfo(inputs->root, joinrel, outer, inner,
											   extra->sjinfo, required_outer, &choice.clauses);
		if (param_info != NULL)
		{
			choice.has_parameters = true;
			choice.rows = param_info->ppi_rows;
		}
	}
	cost_join(inputs, &choice);
	/* a path with parameters is for one row of another relation */
	if (required_outer == NULL)
		gh_why_cost(inputs->root, joinrel->relids, GH_JOIN_NAME, choice.startup_cost, choice.total_cost, false);
	/* most of a large query's joins have cheaper paths */
	may_win = gh_path_may_win(joinrel, outer, inner, choice.startup_cost, choice.total_cost, required_outer);
	if (!may_win && !gh_rows_may_win(joinrel, outer, inner))
		return;
	param_info = gh_join_param_info(param_info, outer, inner, choice.clauses);
	gh_rows_add_paths(inputs->root, (Path *) make_join_path(inputs, &choice, param_info), may_win, add_path);
}

/*
 * A path of which each process gives a part of the rows.  With a common table, each
 * has a part of the inner rows, too; else all of them to itself.
 */
static void
add_partial_join_path(const JoinInputs *inputs, Path *any_outer, Path *any_inner, bool common_table)
{
	Path	   *outer = gh_rowscan_absorbed(inputs->root, any_outer);
	Path	   *inner = gh_rowscan_absorbed(inputs->root, any_inner);
	JoinChoice	choice = {
		.outer = outer,
		.inner = inner,
		.clauses = inputs->extra->restrictlist,
		.workers = outer->parallel_workers,
		.common_table = common_table,
	};

	choice.rows = clamp_row_est(inputs->joinrel->rows / gh_parallel_divisor(choice.workers));
	cost_join(inputs, &choice);
	gh_why_cost(inputs->root, inputs->joinrel->relids, GH_JOIN_NAME, choice.startup_cost, choice.total_cost, true);
	gh_rows_add_paths(inputs->root, (Path *) make_join_path(inputs, &choice, NULL), true, add_partial_path);
}

/*
 * ReparameterizeCustomPathByChild: the path's parameters come from a partition instead of
 * its partitioned table.
 */
static List *
reparameterize_private(PlannerInfo *root, List *custom_private, RelOptInfo *child_rel)
{
	List	   *result = list_copy(custom_private);

	for (int i = GH_PATH_CLAUSES; i <= GH_PATH_HASH_CLAUSES; i++)
		lfirst(list_nth_cell(result, i)) =
			gh_clauses_of_child(root, list_nth(custom_private, i), child_rel);
	return result;
}

/* Whether the path needs parameters from the relation, or from the parent that it is a part of. */
static bool
needs_rel(Path *path, RelOptInfo *rel)
{
	return path->param_info != NULL &&
		(bms_overlap(PATH_REQ_OUTER(path), rel->relids) ||
		 bms_overlap(PATH_REQ_OUTER(path), rel->top_parent_relids));
}

/* The outer path that starts most cheaply, where the query may want its first rows soon. */
static Path *
startup_path(const JoinInputs *inputs)
{
	return inputs->joinrel->consider_startup ? inputs->outerrel->cheapest_startup_path : NULL;
}

/*
 * Parallel paths, as PostgreSQL's hash join has them.  total_inner is the inner path to
 * take where each process reads all of it; made_distinct says that nothing may take its
 * place.
 */
static void
add_partial_paths(const JoinInputs *inputs, Path *total_inner, bool made_distinct)
{
	RelOptInfo *joinrel = inputs->joinrel;
	List	   *outer_paths = inputs->outerrel->partial_pathlist;
	List	   *inner_paths = inputs->innerrel->partial_pathlist;
	bool		fills_inner = inputs->jointype == JOIN_FULL ||
		inputs->jointype == JOIN_RIGHT || gh_is_right_anti(inputs->jointype);

	if (!joinrel->consider_parallel || outer_paths == NIL ||
		!bms_is_empty(joinrel->lateral_relids))
		return;
	/* two processes may find the first match of an inner row at the same time */
	if (gh_is_right_semi(inputs->jointype) || (fills_inner && !GH_PARALLEL_FILLS_INNER))
		return;

	/* parts of it, each made distinct, would not be distinct together */
	if (inner_paths != NIL && !made_distinct && enable_parallel_hash)
		add_partial_join_path(inputs, linitial(outer_paths), linitial(inner_paths), true);

	/* no process of several knows all the matches of an inner row */
	if (fills_inner)
		return;
	if (!total_inner->parallel_safe)
		total_inner = made_distinct ? NULL :
			get_cheapest_parallel_safe_total_inner(inputs->innerrel->pathlist);
	if (total_inner != NULL && bms_is_empty(PATH_REQ_OUTER(total_inner)))
		add_partial_join_path(inputs, linitial(outer_paths), total_inner, false);
}

/*
 * The cheapest outer paths, by startup and by total cost, with the cheapest inner path,
 * and what there is with parameters, unless they come from the other input.
 */
static void
add_join_paths(const JoinInputs *inputs)
{
	Path	   *startup_outer = startup_path(inputs);
	Path	   *total_inner = inputs->innerrel->cheapest_total_path;
	ListCell   *lo;
	ListCell   *li;

	if (startup_outer != NULL)
		add_join_path(inputs, startup_outer, total_inner);
	foreach(lo, inputs->outerrel->cheapest_parameterized_paths)
	{
		Path	   *outer = (Path *) lfirst(lo);

		if (needs_rel(outer, inputs->innerrel))
			continue;
		foreach(li, inputs->innerrel->cheapest_parameterized_paths)
		{
			Path	   *inner = (Path *) lfirst(li);

			if (!needs_rel(inner, inputs->outerrel) &&
				(outer != startup_outer || inner != total_inner))
				add_join_path(inputs, outer, inner);
		}
	}
	add_partial_paths(inputs, total_inner, false);
}

/* A semijoin as an inner join with its right side's rows made distinct before. */
static void
add_unique_paths(const JoinInputs *inputs, JoinType unique_side)
{
	SpecialJoinInfo *sjinfo = inputs->extra->sjinfo;
	Path	   *startup_outer = startup_path(inputs);
	Path	   *outer = inputs->outerrel->cheapest_total_path;
	Path	   *inner = inputs->innerrel->cheapest_total_path;

	if (unique_side == JOIN_UNIQUE_OUTER)
		outer = gh_unique_path(inputs->root, inputs->outerrel, outer, sjinfo);
	else
		inner = gh_unique_path(inputs->root, inputs->innerrel, inner, sjinfo);
	if (outer == NULL || inner == NULL)
		return;
	add_join_path(inputs, outer, inner);
	if (unique_side == JOIN_UNIQUE_INNER && startup_outer != NULL && startup_outer != outer)
		add_join_path(inputs, startup_outer, inner);
	/* parts of an outer side, each made distinct, would not be distinct together */
	if (unique_side == JOIN_UNIQUE_INNER)
		add_partial_paths(inputs, inner, true);
}

/* Join types that were not there when this was written stay with PostgreSQL. */
static bool
knows_join_type(JoinType jointype)
{
	switch (jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_RIGHT:
		case JOIN_FULL:
		case JOIN_SEMI:
		case JOIN_ANTI:
		case JOIN_UNIQUE_OUTER:
		case JOIN_UNIQUE_INNER:
			return true;
		default:
			return gh_is_right_anti(jointype) || gh_is_right_semi(jointype);
	}
}

/* Whether a path of rel has parameters, and not from the other input, which cannot give them. */
static bool
has_parameters_from_outside(RelOptInfo *rel, RelOptInfo *other)
{
	ListCell   *lc;

	foreach(lc, rel->cheapest_parameterized_paths)
	{
		Path	   *path = (Path *) lfirst(lc);

		if (path->param_info != NULL && !needs_rel(path, other))
			return true;
	}
	return false;
}

/*
 * Whether any path could win, before the clauses are looked at: a query of many tables
 * asks about thousands of pairs.  An inner join is asked about both ways round, and
 * hashing the smaller side costs less in all.  Otherwise, what a path is sure to cost counts.
 */
static bool
may_win(const JoinInputs *inputs, JoinType jointype)
{
	RelOptInfo *joinrel = inputs->joinrel;
	Path	   *outer = inputs->outerrel->cheapest_total_path;
	Path	   *inner = inputs->innerrel->cheapest_total_path;
	Cost		startup;
	Cost		total;

	if (gh_force_offload || has_parameters_from_outside(inputs->outerrel, inputs->innerrel) ||
		has_parameters_from_outside(inputs->innerrel, inputs->outerrel))
		return true;
	if (jointype == JOIN_INNER && !gh_rows_may_win(joinrel, outer, inner) &&
		(inner->rows > outer->rows ||
		 (inner->rows == outer->rows && inner->pathtarget->width > outer->pathtarget->width)))
		return false;
	/* or others than of these two */
	if (joinrel->consider_startup || gh_rows_may_win(joinrel, outer, inner) ||
		(joinrel->consider_parallel && inputs->outerrel->partial_pathlist != NIL))
		return true;
	startup = outer->startup_cost + inner->total_cost;
	total = outer->total_cost + inner->total_cost + gh_setup_cost +
		gh_build_tuple_cost * inner->rows + gh_probe_tuple_cost * outer->rows;
	return gh_why_wins(inputs->root, joinrel->relids, GH_JOIN_NAME, startup, total,
					   gh_path_may_win(joinrel, outer, inner, startup, total, NULL));
}

/* Why no path is considered, as far as that can be told without looking at the clauses. */
static const char *
why_not_considered(const JoinInputs *inputs, JoinType jointype)
{
	if (!gh_enable_join)
		return "gpuhash.enable_join is off";
	if (!knows_join_type(jointype))
		return "joins of this type are not known";
	if (!gh_force_offload &&
		inputs->outerrel->rows + inputs->innerrel->rows < GH_MIN_ROWS)
		return "it has few rows";
	if (!may_win(inputs, jointype))
		return "it would cost more";
	/* the paths with the fewest parameters: what these need, all the others need */
	if (needs_rel(inputs->outerrel->cheapest_total_path, inputs->innerrel) ||
		needs_rel(inputs->innerrel->cheapest_total_path, inputs->outerrel))
		return "one side has parameters from the other";
	return NULL;
}

static const char *
why_not_taken(JoinInputs *inputs)
{
	if (!find_hash_clauses(inputs))
		return "no condition is an equality of both sides that can be hashed";
	if (!gh_columns_are_plain(inputs->outerrel) || !gh_columns_are_plain(inputs->innerrel))
		return "it has row identities, or columns of anonymous record type";
	if (inputs->may_stay_unread && !gh_outer_is_quiet(inputs->root, inputs->outerrel))
		return "rows may stay unread, and an expression over the outer ones may fail";
	return NULL;
}

static void
consider_join(JoinInputs *inputs, JoinType jointype)
{
	bool		unique = jointype == JOIN_UNIQUE_OUTER || jointype == JOIN_UNIQUE_INNER;
	const char *why = why_not_considered(inputs, jointype);

	if (why == NULL)
	{
		inputs->jointype = unique ? JOIN_INNER : jointype;
		inputs->may_stay_unread = gh_rows_may_stay_unread(inputs->root, inputs->joinrel);
		why = why_not_taken(inputs);
	}
	if (why != NULL)
	{
		gh_why(inputs->root, inputs->joinrel->relids, why);
		return;
	}
	prepare_costs(inputs);
	if (unique)
		add_unique_paths(inputs, jointype);
	else
		add_join_paths(inputs);
}

static void
join_pathlist_hook(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
				   RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	JoinInputs	inputs = {
		.root = root,
		.joinrel = joinrel,
		.outerrel = outerrel,
		.innerrel = innerrel,
		.extra = extra,
	};

	if (previous_hook)
		previous_hook(root, joinrel, outerrel, innerrel, jointype, extra);
	if (gh_enabled)
		consider_join(&inputs, jointype);
}

/* Called by _PG_init. */
void
gh_join_init(void)
{
	RegisterCustomScanMethods(&gh_join_scan_methods);
	gh_key_init();
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = join_pathlist_hook;
}
